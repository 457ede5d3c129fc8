"""How fast a processor can be, and how close to that some work comes."""

import numpy as np
from matplotlib.ticker import NullFormatter

from bert_np.errors import BertError
from bert_np.plotting.checks import check_mapping, check_numbers, check_positive
from bert_np.plotting.colours import FAINT, SERIES
from bert_np.plotting.curves import LONGEST_NAME
from bert_np.plotting.drawing import axes_to_draw_on, finish_chart, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import token_labels, widest

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_POINTS = 8


@in_own_style
def plot_roofline(points, products, bandwidth, *, title=None, ax=None):
    """Draw the roof of a machine and the speed of some work below it.

    No work is faster than the processor computes, nor faster than memory
    delivers its numbers: the speed is at most min(products, bandwidth x)
    GFLOP/s, with x operations for each byte.

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

    Source: Williams et al. 2009.
    """
    names, x, y = check_points(points)
    products = check_positive("products", products)
    bandwidth = check_positive("bandwidth", bandwidth)
    ax = axes_to_draw_on(ax, 6.8 + widest(names), 3.6, title)
    draw_roof(ax, x, products, bandwidth)
    for name, place, speed, marker, colour in zip(names, x, y, MARKERS, 2 * SERIES):
        style = {"markersize": 8, "color": colour, "markeredgecolor": "black"}
        ax.plot(place, speed, marker, label=name, **style)
    label_roof(ax)
    reached = y / np.minimum(products, bandwidth * x)
    best, least = int(reached.argmax()), int(reached.argmin())
    return finish(
        ax,
        f"Speed against operations for each byte moved, below a roof of "
        f"{products:.3g} GFLOP/s and {bandwidth:.3g} GB/s: nearest to it "
        f"{names[best]} ({reached[best]:.0%}), farthest {names[least]} "
        f"({reached[least]:.0%}).",
    )


def check_points(points):
    """Return the names, the places (N,) and the speeds (N,)."""
    check_mapping("points", points, MOST_POINTS)
    values = check_numbers("points", list(points.values()), "(N, 2)")
    if values.shape[1] != 2 or (values <= 0).any():
        raise BertError(
            f"points has shape {values.shape} and least value "
            f"{values.min():g}, allowed: (N, 2), all above 0"
        )
    return token_labels(list(map(str, points)), LONGEST_NAME), *values.T


def draw_roof(ax, x, products, bandwidth):
    """Draw both limits; where they meet, arithmetic becomes the bottleneck."""
    corner = products / bandwidth
    left, right = min(x.min(), corner) / 2, max(x.max(), corner) * 2
    name = f"roof: {products:.0f} GFLOP/s, {bandwidth:.0f} GB/s"
    heights = [bandwidth * left, products, products]
    ax.plot([left, corner, right], heights, "k-", linewidth=1.6, label=name)
    ax.axvline(corner, color=FAINT, linewidth=1)


def label_roof(ax):
    """Scale and name the axes, and add the legend."""
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("operations for each byte moved", fontsize=AXIS_SIZE)
    ax.set_ylabel("GFLOP/s", fontsize=AXIS_SIZE)
    side_legend(ax)
    finish_chart(ax)
