"""What the heads of a model do, in numbers: one point for each head."""

import math

import numpy as np

from bert_np.plotting.checks import check_arrays
from bert_np.plotting.colours import NEUTRAL
from bert_np.plotting.drawing import finish_chart
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import readable, text_style

MOST_COLUMNS, MOST_MEASURES = 4, 40


@in_own_style
def plot_head_summary(measures, *, title=None):
    """Draw measures of every head over the layers, one panel each.

    In each layer the heads go from left to right; the short line is
    their mean. The title of a panel names the head with the largest value.
    The scale is 0 to 1 if all values fit, as do shares of attention and
    normalised entropy.

    Parameters
    ----------
    measures : mapping of str to array of shape (L, A)
        Name of the measure to its value for each layer and head.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Source: after Clark et al. 2019, figure 2.
    """
    measures = check_arrays("measures", measures, "(L, A)", MOST_MEASURES)
    rows = math.ceil(len(measures) / MOST_COLUMNS)
    columns = math.ceil(len(measures) / rows)
    layers = len(next(iter(measures.values())))
    width = min(3.2, max(2.5, 0.28 * layers + 0.6))
    figure = new_figure(columns * width + 0.4, rows * 2.3 + 0.3, title)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[len(measures) :]:
        spare.remove()
    for place, (name, values) in enumerate(measures.items()):
        draw_measure(panels[place], name, values)
        if place + columns >= len(measures):
            panels[place].set_xlabel("layer", fontsize=AXIS_SIZE)
    return finish(panels[0], describe_measures(measures))


def draw_measure(ax, name, values):
    """Draw one measure: a point for each head, a line for each mean."""
    layers, heads = values.shape
    offsets = np.linspace(-0.32, 0.32, heads) if heads > 1 else np.zeros(1)
    places = np.arange(layers)[:, None] + offsets
    ends = np.arange(layers) - 0.4, np.arange(layers) + 0.4
    ax.hlines(values.mean(axis=1), *ends, color=NEUTRAL, linewidth=1.5)
    dots = {"color": NEUTRAL, "markersize": 3.5, "alpha": 0.75, "markeredgewidth": 0}
    ax.plot(places.ravel(), values.ravel(), "o", **dots)
    layer, head = largest(values)
    ring = {"color": "black", "markersize": 7, "fillstyle": "none"}
    ax.plot(places[layer, head], values[layer, head], "o", **ring)
    shown = "".join(readable([name.replace("_", " ")])[0])
    most = f"most: layer {layer}, head {head}, {values[layer, head]:.2f}"
    ax.set_title(f"{shown}\n{most}", **text_style([shown], AXIS_SIZE))
    ax.set(xlim=(-0.6, layers - 0.4), ylim=scale_ends(values))
    ax.set_xticks(range(0, layers, math.ceil(layers / 12)))
    finish_chart(ax, "y")


def largest(values):
    """Return the layer and the head with the largest value."""
    return np.unravel_index(np.argmax(values), values.shape)


def scale_ends(values):
    """Return the ends of the scale, with room: 0 to 1 if it holds all.

    >>> scale_ends(np.array([0.2, 0.9]))
    (-0.04, 1.04)
    """
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    if low == 0 and high <= 1 + 1e-6 and high > 0.02:
        high = 1.0
    room = 0.04 * (high - low or 1.0)
    return low - room, high + room


def describe_measures(measures):
    """Name the head with the largest value of each measure."""
    layers, heads = next(iter(measures.values())).shape
    parts = []
    for name, values in measures.items():
        layer, head = largest(values)
        parts.append(
            f"{name.replace('_', ' ')} {values[layer, head]:.2f} "
            f"(layer {layer}, head {head}; mean {values.mean():.2f})"
        )
    return (
        f"Measures of {layers} layers of {heads} heads, the largest value of each: "
        f"{', '.join(parts)}."
    )
