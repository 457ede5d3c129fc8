"""The confusion matrix: which label was taken for which."""

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.checks import check_numbers, list_texts
from bert_np.plotting.colours import attention_norm
from bert_np.plotting.drawing import (
    add_colour_bar,
    axes_to_draw_on,
    draw_map,
    format_numbers,
    inches_of,
    labels_on_top,
    write_cells,
    write_labels,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import (
    LABEL_SIZE,
    LETTER,
    key_margin,
    token_labels,
    widest,
)

CELL = 0.45  # inches
LARGEST = 7.0  # inches


@in_own_style
def plot_confusion(matrix, labels, *, title=None, ax=None):
    """Draw which label was taken for which, as shares of each row.

    The rows are the right labels, the columns the predictions: the right
    answers are on the diagonal. The colour is the share of the row, so
    that a rare label is as clear as a frequent one. The numbers, if they
    have room, are counts.

    Parameters
    ----------
    matrix : array of int of shape (K, K)
        As `confusion_matrix` returns it.
    labels : list of K str
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    matrix = check_numbers("matrix", matrix, "(K, K)")
    if matrix.shape[0] != matrix.shape[1] or (matrix < 0).any():
        raise BertError(
            f"matrix has shape {matrix.shape}, expected (K, K) counts, 0 or more"
        )
    names = token_labels(list_texts("labels", labels, len(matrix), "row of matrix"))
    totals = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    side = min(LARGEST, max(1.6, CELL * len(matrix)))
    side = side if ax is None else min(inches_of(ax))
    wide, high = side + widest(names) + 1.8, side + key_margin(names, side) + 0.7
    ax = axes_to_draw_on(ax, wide, high, title)
    visible = np.ones(matrix.shape, dtype=bool)
    image = draw_map(ax, shares, visible, attention_norm(), side)
    counts = format_numbers(matrix, 0)
    if max(map(len, counts.ravel())) * LETTER + 0.06 <= side / len(matrix):
        write_cells(image, counts, matrix > 0, LABEL_SIZE)
    write_labels(ax.xaxis, names, side)
    write_labels(ax.yaxis, names, side)
    labels_on_top(ax)
    ax.set_xlabel("prediction", fontsize=AXIS_SIZE)
    ax.set_ylabel("true label", fontsize=AXIS_SIZE)
    add_colour_bar(image, ax, 1, "fraction of the row")
    return finish(ax, describe_confusion(matrix, names))


def describe_confusion(matrix, names):
    """Describe how many answers are right, and the most frequent confusion."""
    total, right = matrix.sum(), np.trace(matrix)
    wrong = matrix - np.diag(np.diag(matrix))
    text = f"{len(matrix)} labels: {right:.0f} of {total:.0f} answers are right"
    if wrong.any():
        i, j = np.unravel_index(wrong.argmax(), wrong.shape)
        most = f"{names[i]} was mistaken for {names[j]} ({wrong[i, j]:.0f})"
        text += f"; most often {most}"
    return f"{text}."
