"""The parts that pictures share: maps, numbers, labels, axes."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from bert_np.errors import BertError
from bert_np.plotting import colours
from bert_np.plotting.figure import AXIS_SIZE, add_title, new_figure
from bert_np.plotting.labels import (
    LABEL_SIZE,
    LETTER,
    LINE,
    is_turned,
    text_style,
    thin,
)

MOST_NEAREST = 800  # cells in a direction; more than these are smoothed
HEAD_CELL = 0.4  # inches: the cell of a grid of heads that has room for a number
CELLS_PER_INCH = 80  # fewer than pixels, so that no cell falls between two


def draw_map(ax, probs, visible, norm, inches, centre=None, size=None):
    """Draw one map as an image and hatch the cells that are masked.

    Parameters
    ----------
    ax : matplotlib Axes
    probs : array of shape (Tq, Tk)
    visible : bool array of shape (Tq, Tk)
    norm : matplotlib Normalize
    inches : float
        The longer edge of the map on paper.
    centre : (x, y), optional
        Where the middle of the map lies, in the units of the axes. By
        default cell (i, j) has its middle at y = i, x = j.
    size : float, optional
        The longer edge of the map in the units of the axes; by default
        its number of cells.

    Returns
    -------
    matplotlib.image.AxesImage
    """
    rows, columns = probs.shape
    block = block_size(max(probs.shape), inches)
    cells = largest_of_blocks(np.where(visible | (probs > 0), probs, -1), block)
    cell = (size or max(probs.shape)) / max(probs.shape)
    centre = centre or [(columns - 1) / 2, (rows - 1) / 2]
    left, top = np.subtract(centre, np.multiply([columns, rows], cell / 2))
    down, right = np.multiply(cells.shape, block * cell)
    image = ax.imshow(
        np.ma.masked_less(cells, -0.5),
        norm=norm,
        cmap=colours.attention_colour_map(),
        extent=(left, left + right, top + down, top),
        origin="upper",
        aspect="equal",
        interpolation="nearest",
    )
    ax.set(xlim=(left, left + columns * cell), ylim=(top + rows * cell, top))
    ax.grid(False)
    if not visible.all():
        ax.add_patch(hatching(masked_rectangles(visible) * cell + [left, top]))
    return image


def draw_signed(ax, values, limit, visible=None, aspect="auto"):
    """Draw signed values as an image, blue below 0 and red above.

    Parameters
    ----------
    ax : matplotlib Axes
    values : array of shape (N, M)
    limit : float
        The value of the strongest red; minus it, of the strongest blue.
    visible : bool array of shape (N, M), optional
        The others are grey and hatched.
    aspect : "auto" or "equal"

    Returns
    -------
    matplotlib.image.AxesImage
    """
    visible = np.ones(values.shape, dtype=bool) if visible is None else visible
    image = ax.imshow(
        np.ma.masked_where(~visible, values),
        aspect=aspect,
        norm=colours.signed_norm(limit),
        interpolation="nearest" if max(values.shape) <= MOST_NEAREST else "auto",
        cmap=colours.signed_colour_map(),
    )
    ax.grid(False)
    if not visible.all():
        ax.add_patch(hatching(masked_rectangles(visible) - 0.5))
    return image


def draw_head_grid(ax, values, chosen, side):
    """Draw a number from 0 to 1 for each head: layers down, heads across.

    Parameters
    ----------
    ax : matplotlib Axes
    values : array of shape (L, A)
    chosen : (int, int)
        Layer and head of the cell that gets a frame.
    side : float
        The longer edge in inches.

    Returns
    -------
    matplotlib.image.AxesImage
    """
    layers, heads = values.shape
    height, width = edges(values.shape, side)
    visible, norm = np.ones(values.shape, dtype=bool), colours.attention_norm()
    image = draw_map(ax, values, visible, norm, side)
    write_labels(ax.xaxis, [str(head) for head in range(heads)], width)
    write_labels(ax.yaxis, [str(layer) for layer in range(layers)], height)
    labels_on_top(ax)
    if side / max(values.shape) > 0.99 * HEAD_CELL:
        write_numbers(image, values, side, 2)
    corner = chosen[1] - 0.5, chosen[0] - 0.5
    frame = {"fill": False, "edgecolor": colours.CHOSEN, "linewidth": 2.2}
    ax.add_patch(Rectangle(corner, 1, 1, **frame))
    ax.set_xlabel("head", fontsize=AXIS_SIZE)
    ax.set_ylabel("layer", fontsize=AXIS_SIZE)
    return image


def head_grid_side(values):
    """Return the longer edge in inches of a grid of heads, (L, A)."""
    return min(6.0, HEAD_CELL * max(values.shape))


def write_values(image, values, cell, decimals=2, visible=None):
    """Write numbers into cells if there is room for all of them.

    Parameters
    ----------
    image : matplotlib.image.AxesImage
        Cell (i, j) at y = i, x = j.
    values : array of shape (N, M)
    cell : (height, width)
        Of a cell, in inches.
    decimals : int
    visible : bool array of shape (N, M), optional
        The others get no number.

    Returns
    -------
    bool
        Whether the numbers were written.
    """
    if (decimals + 2) * LETTER > cell[1] or cell[0] < LINE:
        return False
    texts = format_numbers(values, decimals)
    visible = np.ones(values.shape, dtype=bool) if visible is None else visible
    if max(map(len, texts[visible]), default=0) * LETTER + 0.06 > cell[1]:
        return False
    write_cells(image, texts, visible, LABEL_SIZE)
    return True


def write_numbers(image, probs, inches, decimals):
    """Write the value of each cell into a map whose longer edge is `inches`."""
    cell = 72 * inches / max(probs.shape)
    size = min(AXIS_SIZE, cell / (0.64 * (decimals + 2) + 0.6))
    texts = format_numbers(probs, decimals)
    write_cells(image, texts, np.ones(probs.shape, dtype=bool), size)


def write_cells(image, texts, visible, size):
    """Write texts (N, M) into the visible cells of an image, black or white."""
    fills = image.to_rgba(image.get_array())[..., :3]
    for i, j in np.argwhere(visible):
        fill = fills[i, j]
        style = {
            "color": colours.text_colour(fill),
            "bbox": {"facecolor": fill, "edgecolor": "none", "pad": 1},
            "in_layout": False,  # within the map: measuring it would only take time
        }
        write(image.axes, j, i, texts[i, j], size, **style)


def format_numbers(values, decimals):
    """Write each value of an array with this many decimal places."""
    texts = [f"{value:.{decimals}f}" for value in np.ravel(values)]
    return np.reshape(texts, np.shape(values))


def edges(shape, inches):
    """Return the height and width of a map whose longer edge is `inches`."""
    return tuple(inches * n / max(shape) for n in shape)


def block_size(length, inches):
    """Choose how many cells a drawn cell covers in each direction.

    >>> block_size(40, 7.0), block_size(512, 0.75)
    (1, 9)
    """
    return math.ceil(length / (CELLS_PER_INCH * inches))


def block_notes(length, inches):
    """Return the remark that a picture is coarser than its map, if it is."""
    block = block_size(length, inches)
    note = f"each cell drawn is the largest of {block} x {block}"
    return [] if block == 1 else [note]


def largest_of_blocks(cells, block):
    """Take the largest of each block of `block` x `block` cells.

    A thin diagonal, which an average would wash out, stays visible.
    """
    for axis in (0, 1):
        starts = range(0, cells.shape[axis], block)
        cells = np.maximum.reduceat(cells, starts, axis=axis)
    return cells


def masked_rectangles(visible):
    """Return the corners of rectangles that cover the masked cells.

    Parameters
    ----------
    visible : bool array of shape (Tq, Tk)

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
    return PathPatch(
        path, fill=False, linewidth=0, hatch="////", edgecolor=colours.HATCH
    )


def write(ax, x, y, text, size=LABEL_SIZE, **style):
    """Write a text at a point of an Axes; by default, that is its middle."""
    style = {"ha": "center", "va": "center", **text_style([text], size), **style}
    ax.text(x, y, text, **style)


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
    shown = [labels[i] for i in places]
    angle = 90 if turned else 0
    axis.set_ticks(places, labels=shown, rotation=angle, **text_style(labels))
    axis.set_tick_params(length=3 if len(places) < len(labels) else 0)


def labels_on_top(ax):
    """Move the labels of the columns above the picture, as in a table."""
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")


def write_sums(ax, probs, inches, decimals):
    """Write the row sums to the right of a map and the column sums below it."""
    height, width = edges(probs.shape, inches)
    right, bottom = ax.secondary_yaxis("right"), ax.secondary_xaxis("bottom")
    write_labels(right.yaxis, format_numbers(probs.sum(axis=1), decimals), height)
    write_labels(bottom.xaxis, format_numbers(probs.sum(axis=0), decimals), width)
    right.set_ylabel("row sum", fontsize=AXIS_SIZE)
    bottom.set_xlabel("column sum", fontsize=AXIS_SIZE)


def add_colour_bar(image, axes, power, label="attention probability"):
    """Add the colour bar, 0 to 1, beside one Axes or a list of them."""
    scale = "" if power == 1 else f" p, colour at p ** {power:g}"
    figure = image.axes.figure
    box = Bbox.union([ax.bbox for ax in np.ravel(axes)])
    width, height = box.size / figure.figure.dpi
    ticks = [0, 0.25, 0.5, 0.75, 1] if height > 1.2 else [0, 1]
    size = {"fraction": 0.25 / width, "pad": 0.2 / width, "aspect": height / 0.15}
    bar = figure.colorbar(image, ax=axes, ticks=ticks, **size)
    bar.set_label(f"{label}{scale}", fontsize=AXIS_SIZE)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.outline.set_visible(False)


def add_signed_bar(image, ax, label):
    """Add the colour bar of signed values beside one Axes, 0 in its middle."""
    width, height = ax.bbox.size / ax.figure.figure.dpi
    size = {"fraction": 0.25 / width, "pad": 0.15 / width, "aspect": height / 0.15}
    bar = ax.figure.colorbar(image, ax=ax, **size)
    bar.ax.locator_params(nbins=5 if height > 1.2 else 2)
    bar.set_label(label, **text_style([label], AXIS_SIZE))
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.outline.set_visible(False)


def inches_of(ax):
    """Return the width and the height of an Axes in inches."""
    if not isinstance(ax, Axes):
        raise BertError(f"ax is a {type(ax).__name__}, expected a matplotlib Axes")
    return ax.bbox.size / ax.figure.figure.dpi


def shorter_side(ax):
    """Return the shorter side of an Axes in inches, at least 1."""
    return max(1.0, min(inches_of(ax)))


def axes_to_draw_on(ax, width, height, title, notes=()):
    """Make the Axes of a new figure, or take those given; write the title."""
    if ax is None:
        return new_figure(width, height, title, notes).add_subplot()
    add_title(ax, title, notes, inches_of(ax)[0])
    return ax


def finish_chart(ax, grid=None):
    """Take the frame off a chart; lay a faint grid behind the data."""
    ax.tick_params(labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(True, axis=grid, color=colours.FAINT, linewidth=0.5)
        ax.set_axisbelow(True)


def side_legend(ax):
    """Name the lines and marks of an Axes to its right, where no data are."""
    legend = ax.legend(bbox_to_anchor=(1.01, 1), loc="upper left", frameon=False)
    for text in legend.get_texts():
        text.set(**text_style([text.get_text()]))
