"""The parts that attention pictures share."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from bert_np.errors import BertError
from bert_np.plotting import colours
from bert_np.plotting.figure import AXIS_SIZE
from bert_np.plotting.labels import LABEL_SIZE, is_turned, text_style, thin

CELLS_PER_INCH = 80  # fewer than pixels, so that no cell falls between two


def draw_map(ax, probs, visible, norm, inches, centre=None, size=None):
    """Draw one map as an image and hatch the cells that are masked.

    Parameters
    ----------
    ax : matplotlib Axes
    probs : array of shape (T, T)
    visible : bool array of shape (T, T)
    norm : matplotlib Normalize
    inches : float
        The side of the map on paper.
    centre : (x, y), optional
        Where the middle of the map lies, in the units of the axes. By
        default cell (i, j) has its middle at y = i, x = j.
    size : float, optional
        The side of the map in the units of the axes; by default T.

    Returns
    -------
    matplotlib.image.AxesImage
    """
    length = len(probs)
    block = block_size(length, inches)
    cells = largest_of_blocks(np.where(visible | (probs > 0), probs, -1), block)
    cell = (size or length) / length
    left, top = np.subtract(centre or [(length - 1) / 2] * 2, length * cell / 2)
    reach = len(cells) * block * cell
    image = ax.imshow(
        np.ma.masked_less(cells, -0.5), norm=norm, cmap=colours.attention_colour_map(),
        extent=(left, left + reach, top + reach, top), origin="upper",
        aspect="equal", interpolation="nearest")
    ax.set(xlim=(left, left + length * cell), ylim=(top + length * cell, top))
    ax.grid(False)
    if not visible.all():
        ax.add_patch(hatching(masked_rectangles(visible) * cell + [left, top]))
    return image


def block_size(length, inches):
    """Choose how many cells a drawn cell covers in each direction.

    >>> block_size(40, 7.0), block_size(512, 0.75)
    (1, 9)
    """
    return math.ceil(length / (CELLS_PER_INCH * inches))


def block_notes(length, inches):
    """Say, where it is so, that a picture is coarser than its map."""
    block = block_size(length, inches)
    note = f"drawn as the largest of each {block} x {block} cells"
    return [] if block == 1 else [note]


def largest_of_blocks(cells, block):
    """Take the largest of each block of `block` x `block` cells.

    A thin diagonal stays visible that an average would wash out.
    """
    starts = range(0, len(cells), block)
    rows = np.maximum.reduceat(cells, starts, axis=0)
    return np.maximum.reduceat(rows, starts, axis=1)


def masked_rectangles(visible):
    """Give the corners of rectangles that cover the masked cells.

    Parameters
    ----------
    visible : bool array of shape (T, T)

    Returns
    -------
    float array of shape (N, 4, 2)
        One rectangle for each run of masked cells in a row; x and y of
        its corners, counted in cells from the top left.
    """
    edges = np.diff(np.pad(~visible, ((0, 0), (1, 1))).astype(int), axis=1)
    rows, starts = np.nonzero(edges == 1)
    _, ends = np.nonzero(edges == -1)
    x = np.stack([starts, ends, ends, starts], axis=1)
    y = np.stack([rows, rows, rows + 1, rows + 1], axis=1)
    return np.stack([x, y], axis=2).astype(float)


def hatching(corners):
    """Make one hatched patch of the rectangles, corners (N, 4, 2)."""
    closed = np.concatenate([corners, corners[:, :1]], axis=1)
    codes = [Path.MOVETO] + [Path.LINETO] * 3 + [Path.CLOSEPOLY]
    path = Path(closed.reshape(-1, 2), codes * len(corners))
    return PathPatch(path, fill=False, linewidth=0, hatch="////",
                     edgecolor=colours.HATCH)


def write_labels(axis, labels, inches):
    """Write labels along an axis, as many as have room.

    Labels of columns that are too wide to stand side by side are turned.

    Parameters
    ----------
    axis : matplotlib Axis
    labels : list of str
        One for each of the places 0, 1, 2, ...
    inches : float
        The length of the axis.
    """
    places = thin(len(labels), inches)
    turned = axis.axis_name == "x" and is_turned(labels, inches)
    axis.set_ticks(places, labels=[labels[i] for i in places],
                   rotation=90 if turned else 0, fontsize=LABEL_SIZE,
                   **text_style(labels))
    axis.set_tick_params(length=3 if len(places) < len(labels) else 0)


def write_sums(ax, probs, inches, decimals):
    """Write the row sums at the right and the column sums below.

    Parameters
    ----------
    ax : matplotlib Axes
    probs : array of shape (T, T)
    inches : float
        The side of the map.
    decimals : int
    """
    right, bottom = ax.secondary_yaxis("right"), ax.secondary_xaxis("bottom")
    write_labels(right.yaxis, numbers(probs.sum(axis=1), decimals), inches)
    write_labels(bottom.xaxis, numbers(probs.sum(axis=0), decimals), inches)
    right.set_ylabel("row sum", fontsize=AXIS_SIZE)
    bottom.set_xlabel("column sum", fontsize=AXIS_SIZE)


def write_numbers(image, probs, inches, decimals):
    """Write the value of each cell into it.

    Parameters
    ----------
    image : matplotlib.image.AxesImage
        The map, cell (i, j) at y = i, x = j.
    probs : array of shape (T, T)
    inches : float
        The side of the map.
    decimals : int
    """
    cell = 72 * inches / len(probs)
    size = min(AXIS_SIZE, cell / (0.64 * (decimals + 2) + 0.6))
    cells = image.to_rgba(image.get_array())[..., :3]
    for i, j in np.ndindex(probs.shape):
        image.axes.text(
            j, i, f"{probs[i, j]:.{decimals}f}", ha="center", va="center",
            fontsize=size, color=colours.text_colour(cells[i, j]),
            bbox={"facecolor": cells[i, j], "edgecolor": "none", "pad": 1})


def numbers(values, decimals):
    """Write each value with so many digits after the point."""
    return [f"{value:.{decimals}f}" for value in values]


def add_colour_bar(image, axes, power):
    """Add the colour bar, 0 to 1, beside one Axes or a list of them."""
    scale = "" if power == 1 else f" p, colour at p ** {power:g}"
    figure = image.axes.figure
    box = Bbox.union([ax.bbox for ax in np.ravel(axes)])
    width, height = box.size / figure.figure.dpi
    bar = figure.colorbar(
        image, ax=axes, ticks=[0, 0.25, 0.5, 0.75, 1],
        fraction=0.25 / width, pad=0.2 / width, aspect=height / 0.15)
    bar.set_label(f"attention probability{scale}", fontsize=AXIS_SIZE)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.outline.set_visible(False)


def check_decimals(decimals):
    """Refuse a number of digits other than 1 to 6."""
    whole = isinstance(decimals, (int, np.integer)) and not isinstance(decimals, bool)
    if not whole or not 1 <= decimals <= 6:
        raise BertError(f"decimals = {decimals!r}, allowed: 1 to 6")


def check_ax(ax):
    """Give the shorter side of an Axes in inches, 1 at least."""
    if not isinstance(ax, Axes):
        raise BertError(f"ax is a {type(ax).__name__}, expected a matplotlib Axes")
    return max(1.0, min(ax.bbox.width, ax.bbox.height) / ax.figure.figure.dpi)
