"""What the heads of a model do, in numbers: a point for each head."""

import math
from collections.abc import Mapping

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.colours import FAINT, NEUTRAL
from bert_np.plotting.figure import AXIS_SIZE, finish, new_figure
from bert_np.plotting.labels import LABEL_SIZE, readable, text_style
from bert_np.plotting.preparation import check_numbers

MOST_COLUMNS = 4


def plot_head_summary(measures, *, title=None):
    """Draw measures of every head over the layers, a panel each.

    In each layer the heads stand from left to right; the short line is
    their mean. Above each panel stands the head with the largest value.
    The scale is 0 to 1 where all values fit, such as shares of attention
    and normalised entropy.

    Parameters
    ----------
    measures : mapping of str to array of shape (L, A)
        Name of the measure to its value for each layer and head.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError

    Source: after Clark et al. 2019, figure 2.
    """
    measures = check_measures(measures)
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


def check_measures(measures):
    """Give {name: (L, A) array}, all of one shape, or raise."""
    if not isinstance(measures, Mapping) or not measures:
        raise BertError(
            f"measures is a {type(measures).__name__}, expected a mapping "
            "of names to arrays of shape (L, A), with one or more"
        )
    arrays = {
        str(name): check_numbers(f"measures[{name!r}]", values, "(L, A)")
        for name, values in measures.items()
    }
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise BertError(f"measures have different shapes, {shapes}")
    return arrays


def draw_measure(ax, name, values):
    """Draw one measure: a point for each head, a line for each mean."""
    layers, heads = values.shape
    offsets = np.linspace(-0.32, 0.32, heads) if heads > 1 else np.zeros(1)
    places = np.arange(layers)[:, None] + offsets
    ax.hlines(
        values.mean(axis=1),
        np.arange(layers) - 0.4,
        np.arange(layers) + 0.4,
        color=NEUTRAL,
        linewidth=1.5,
    )
    ax.plot(
        places.ravel(),
        values.ravel(),
        "o",
        color=NEUTRAL,
        markersize=3.5,
        alpha=0.75,
        markeredgewidth=0,
    )
    layer, head = np.unravel_index(np.argmax(values), values.shape)
    ax.plot(
        places[layer, head],
        values[layer, head],
        "o",
        color="black",
        markersize=7,
        fillstyle="none",
    )
    shown = "".join(readable([name.replace("_", " ")])[0])
    ax.set_title(
        f"{shown}\nmost: layer {layer}, head {head}, {values[layer, head]:.2f}",
        fontsize=AXIS_SIZE,
        **text_style([shown]),
    )
    low, high = scale(values)
    ax.set(xlim=(-0.6, layers - 0.4), ylim=(low, high))
    ax.set_xticks(range(0, layers, math.ceil(layers / 12)))
    ax.tick_params(labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.grid(True, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)


def scale(values):
    """Give the ends of the scale: 0 to 1 where it holds all, with room.

    >>> scale(np.array([0.2, 0.9]))
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
        layer, head = np.unravel_index(np.argmax(values), values.shape)
        parts.append(
            f"{name.replace('_', ' ')} {values[layer, head]:.2f} "
            f"(layer {layer}, head {head}; mean {values.mean():.2f})"
        )
    return (
        f"Measures of {layers} layers of {heads} heads, the largest of each: "
        f"{', '.join(parts)}."
    )
