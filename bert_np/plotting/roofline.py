"""How fast a processor can be, and how near to it some work comes."""

from collections.abc import Mapping

import numpy as np
from matplotlib.ticker import NullFormatter

from bert_np.errors import BertError
from bert_np.plotting.colours import DASHES, FAINT, SERIES
from bert_np.plotting.curves import LONGEST_NAME
from bert_np.plotting.drawing import axes_to_draw_on, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish
from bert_np.plotting.labels import LABEL_SIZE, token_labels, widest
from bert_np.plotting.preparation import check_numbers

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_POINTS = 8


def plot_roofline(points, products, bandwidth, *, title=None, ax=None):
    """Draw the roof of a machine and the work that goes on below it.

    No work is faster than the arithmetic, nor than memory brings numbers:
    min(products, bandwidth x) GFLOP/s, with x operations for each byte.

    Parameters
    ----------
    points : mapping of str to (float, float)
        Operations for each byte moved, and GFLOP/s; both above 0.
    products : float
        The machine's speed in large matrix products, in GFLOP/s.
    bandwidth : float
        The speed of its memory, in GB/s.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError

    Source: Williams et al. 2009.
    """
    names, x, y = check_points(points)
    products = check_limit("products", products)
    bandwidth = check_limit("bandwidth", bandwidth)
    ax = axes_to_draw_on(ax, 6.8 + widest(names), 3.6, title)
    draw_roof(ax, x, products, bandwidth)
    for i, name in enumerate(names):
        ax.plot(
            x[i],
            y[i],
            MARKERS[i % len(MARKERS)],
            label=name,
            markersize=8,
            color=SERIES[i % len(SERIES)],
            markeredgecolor="black",
        )
    finish_axes(ax)
    reached = y / np.minimum(products, bandwidth * x)
    best, least = int(reached.argmax()), int(reached.argmin())
    return finish(
        ax,
        f"Speed against operations for each byte, below a roof of "
        f"{products:.3g} GFLOP/s and {bandwidth:.3g} GB/s: nearest to it "
        f"{names[best]} ({reached[best]:.0%}), farthest {names[least]} "
        f"({reached[least]:.0%}).",
    )


def check_points(points):
    """Give the names, the places (N,) and the speeds (N,), or raise."""
    if not isinstance(points, Mapping) or not 1 <= len(points) <= MOST_POINTS:
        raise BertError(
            f"points is a {type(points).__name__}, expected a mapping with "
            f"1 to {MOST_POINTS} entries"
        )
    values = check_numbers("points", list(points.values()), "(N, 2)")
    if values.shape[1] != 2 or (values <= 0).any():
        raise BertError(
            f"points has shape {values.shape} and least value "
            f"{values.min():g}, allowed: (N, 2), all above 0"
        )
    return token_labels(list(map(str, points)), LONGEST_NAME), *values.T


def check_limit(name, value):
    """Give a speed as a float, or raise."""
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise BertError(f"{name} = {value!r}, allowed: a number above 0")
    return float(value)


def draw_roof(ax, x, products, bandwidth):
    """Draw both limits; they meet where arithmetic becomes the narrow place."""
    corner = products / bandwidth
    left, right = min(x.min(), corner) / 2, max(x.max(), corner) * 2
    ax.plot(
        [left, corner, right],
        [bandwidth * left, products, products],
        color="black",
        linewidth=1.6,
        linestyle=DASHES[0],
        label=f"roof: {products:.0f} GFLOP/s, {bandwidth:.0f} GB/s",
    )
    ax.axvline(corner, color=FAINT, linewidth=1)


def finish_axes(ax):
    """Scales, names and legend."""
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("operations for each byte of memory", fontsize=AXIS_SIZE)
    ax.set_ylabel("GFLOP/s", fontsize=AXIS_SIZE)
    side_legend(ax)
    ax.tick_params(labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
