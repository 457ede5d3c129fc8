"""How often values occur: one outline for each named sample."""

import numpy as np

from bert_np.plotting.checks import (
    check_integer,
    check_label,
    check_mapping,
    check_numbers,
)
from bert_np.plotting.colours import DASHES, SERIES
from bert_np.plotting.drawing import axes_to_draw_on, finish_chart, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import text_style, token_labels, widest

MOST_SAMPLES = 6
LONGEST_NAME = 32


@in_own_style
def plot_histogram(samples, *, bins=60, xlabel="value", title=None, ax=None):
    """Draw how the values of each sample are spread, on one scale.

    Parameters
    ----------
    samples : mapping of str to array of shape (N,)
        The arrays may have different lengths.
    bins : int
        Into how many equal parts the range of all values is cut.
    xlabel : str
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_label("xlabel", xlabel)
    check_integer("bins", bins, 1, 1000)
    check_mapping("samples", samples, MOST_SAMPLES)
    arrays = {
        str(name): check_numbers(f"samples[{name!r}]", values, "(N,)")
        for name, values in samples.items()
    }
    everything = np.concatenate(list(arrays.values()))
    edges = np.histogram_bin_edges(everything, bins)
    labels = token_labels(list(arrays), LONGEST_NAME)
    ax = axes_to_draw_on(ax, 6.5 + widest(labels) + 0.8, 3.0, title)
    for i, (label, values) in enumerate(zip(labels, arrays.values())):
        heights, _ = np.histogram(values, edges, density=True)
        style = {"color": SERIES[i % 4], "linestyle": DASHES[(i + i // 4) % 4]}
        ax.stairs(heights, edges, label=label, linewidth=1.6, **style)
    if len(arrays) > 1:
        side_legend(ax)
    ax.set_xlabel(xlabel, **text_style([xlabel], AXIS_SIZE))
    ax.set_ylabel("density", fontsize=AXIS_SIZE)
    finish_chart(ax, "y")
    parts = [
        f"{name}: mean {values.mean():.3g}, standard deviation {values.std():.3g}"
        for name, values in arrays.items()
    ]
    return finish(ax, f"Distribution of {xlabel}; {'; '.join(parts)}.")
