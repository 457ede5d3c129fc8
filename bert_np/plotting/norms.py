"""Attention beside what it moves."""

import numpy as np

from bert_np.analysis.checks import divide_by_sums
from bert_np.errors import BertError
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
    labels_of,
)
from bert_np.plotting.checks import check_numbers, refuse
from bert_np.plotting.colours import attention_norm
from bert_np.plotting.drawing import (
    add_colour_bar,
    block_notes,
    draw_map,
    edges,
    write_labels,
    write_values,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import key_margin, widest
from bert_np.plotting.preparation import prepare_maps


@in_own_style
def plot_weighted_norms(probs, norms, tokens, *, power=1.0, title=None, **choices):
    """Draw attention beside what each key hands over.

    A key with much attention but a short value hands over little. Left:
    the probabilities. Right: the lengths of what is moved, each row
    divided by its sum.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    norms : array of shape (T, T)
        The lengths of the vectors that each key hands to each query,
        such as norm-weighted attention; 0 or above.
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`. With `mean`, probs and
        norms have the axes that it removes; the mean is over the fractions.

    Returns
    -------
    matplotlib.figure.Figure

    Source: Kobayashi et al. 2020, section 3.
    """
    attention = prepare_maps(probs, tokens, 2, **choices)
    moved = prepare_maps(row_fractions(norms, np.shape(probs)), tokens, 2, **choices)
    scale, shape = attention_norm(power), attention.probs.shape
    rows, keys = labels_of(attention)
    side = min(4.5, max(2.6, 0.45 * max(shape)))
    height, width = edges(shape, side)
    wide = 2 * max(width, 2.4) + widest(rows) + 1.8
    notes = [*attention.notes, *block_notes(max(shape), side)]
    figure = new_figure(wide, height + key_margin(keys, width) + 1.1, title, notes)
    axes = figure.subplots(1, 2)
    names = ("attention", "fraction of what is moved")
    for ax, data, name in zip(axes, (attention, moved), names):
        image = draw_map(ax, data.probs, data.visible, scale, side)
        write_values(image, data.probs, (side / max(shape),) * 2)
        ax.set_title(name, fontsize=AXIS_SIZE)
        write_labels(ax.xaxis, keys, width)
        write_labels(ax.yaxis, rows if ax is axes[0] else [], height)
        ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
    axes[0].set_ylabel(QUERY_LABEL, **QUERY_STYLE)
    add_colour_bar(image, list(axes), power, "fraction of the row")
    return finish(axes[0], describe_norms(attention, moved))


def row_fractions(norms, shape):
    """Divide each row of lengths by its sum; a row of zeros stays."""
    axes = "(T, T)" if len(shape) == 2 else f"({', '.join(['...'] * len(shape))})"
    norms = check_numbers("norms", norms, axes)
    if norms.shape != shape:
        raise BertError(
            f"norms has shape {norms.shape}, expected that of probs, {shape}"
        )
    refuse("norms", norms, norms < 0, "allowed: lengths, 0 or above")
    return divide_by_sums(norms)


def describe_norms(attention, moved):
    """Describe what the most attended key gets and hands over."""
    received, handed = (data.probs.mean(axis=0) for data in (attention, moved))
    key = int(np.argmax(received))
    return (
        f"Attention beside the fraction of what is moved, {len(attention.queries)} "
        f"queries and {len(attention.keys)} keys: {labels_of(attention)[1][key]} "
        f"(key {key}) gets {received[key]:.0%} of the attention and hands over "
        f"{handed[key]:.0%} of what is moved."
    )
