"""Diagrams: how heads are cut out of vectors, and what flows in a layer."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from bert_np.attention import split_heads
from bert_np.config import require_config
from bert_np.errors import BertError, require_bool
from bert_np.plotting.checks import (
    check_integer,
    check_numbers,
    check_option,
    list_texts,
)
from bert_np.plotting.colours import BOX, NEUTRAL, SERIES, SHADED
from bert_np.plotting.drawing import write
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import token_labels, widest

MOST_TOKENS, MOST_COLUMNS = 8, 16
CELL = (0.36, 0.27)  # inches: width and height
GAP = 0.45  # inches between the blocks of two heads
ARROW = 1.15  # inches between two steps

BOXES = {"attention": 1.95, "norm": 1.0, "ffn": 1.95}  # inches
BOX_HEIGHT, WIRE, RADIUS = 0.84, 0.4, 0.15  # inches
NAMES = {
    "attention": "self-attention",
    "+": "sum with the residual",
    "norm": "LayerNorm",
    "ffn": "feed-forward",
}
ORDERS = {
    "post": ("attention", "+", "norm", "ffn", "+", "norm"),
    "pre": ("norm", "attention", "+", "norm", "ffn", "+"),
}


@in_own_style
def plot_split_heads(x, num_heads, tokens, *, transpose=True, title=None):
    """Draw how the vectors of a sentence are cut into heads.

    From left to right: x, the cut by a reshape, the heads after the
    transpose. A number keeps the colour of the head that it belongs to.

    Parameters
    ----------
    x : array of shape (T, H)
        T up to 8, H up to 16.
    num_heads : int
        A, which divides H.
    tokens : list of T str
    transpose : bool
        False: the wrong way, one reshape to (A, T, D).
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_bool("transpose", transpose)
    x = check_numbers("x", x, "(T, H)")
    (T, H), A = x.shape, check_integer("num_heads", num_heads, 1, x.shape[1])
    tokens = list_texts("tokens", tokens, T, f"row of x, {x.shape}")
    if T > MOST_TOKENS or H > MOST_COLUMNS:
        limit = (MOST_TOKENS, MOST_COLUMNS)
        raise BertError(f"x has shape {x.shape}, allowed: up to {limit}")
    if H % A:
        raise BertError(f"num_heads = {A}, allowed: a divisor of H = {H}")
    D = H // A
    both = x, np.broadcast_to(np.arange(H) // D, x.shape)  # numbers and their heads
    after = f"(A, T, D) = ({A}, {T}, {D})"
    steps = [(f"x\n(T, H) = ({T}, {H})", *([cells] for cells in both))]
    if transpose:
        cut = [np.split(cells, A, axis=1) for cells in both]
        heads = [split_heads(cells[None], A)[0] for cells in both]
        steps.append((f"reshape\n(T, A, D) = ({T}, {A}, {D})", *cut))
        steps.append((f"transpose\n{after}", *heads))
    else:
        mixed = [cells.reshape(A, T, D) for cells in both]
        steps.append((f"reshape only\n{after}", *mixed))
    return draw_cutting(steps, token_labels(tokens), transpose, title)


def draw_cutting(steps, labels, transpose, title):
    """Draw the steps from left to right, the last one's heads stacked."""
    (T, H), A = steps[0][1][0].shape, len(steps[-1][1])
    margin, high = widest(labels) + 0.1, A * T * CELL[1] + (A - 1) * GAP
    ends = [H * CELL[0], H * CELL[0] + (A - 1) * GAP / 2, H // A * CELL[0]]
    if not transpose:
        del ends[1]
    places = margin + np.cumsum([0, *(end + ARROW for end in ends[:-1])])
    ax = blank_axes(places[-1] + ends[-1] + 0.75, high + 0.65, title, top=0.6)
    top = (high - T * CELL[1]) / 2
    for i, (place, step) in enumerate(zip(places[:-1], steps)):
        draw_cut(ax, (place, top), (H // A * CELL[0] + GAP / 2, 0), step)
        start, end = place + ends[i] + 0.12, places[i + 1] - 0.12
        draw_arrow(ax, (start, high / 2), (end, high / 2))
    draw_cut(ax, (places[-1], 0), (0, T * CELL[1] + GAP), steps[-1])
    for a in range(A):
        middle = a * GAP + (a + 0.5) * T * CELL[1]
        write(ax, places[-1] + ends[-1] + 0.08, middle, f"head {a}", ha="left")
    for t, label in enumerate(labels):
        write(ax, margin - 0.08, top + (t + 0.5) * CELL[1], label, ha="right")
    return finish(ax, describe_split(T, H, A, transpose))


def draw_cut(ax, corner, shift, step):
    """Draw the name of a step and its blocks, each `shift` after the last."""
    name, blocks, owners = step
    x, y = corner
    write(ax, x, y - 0.1, name, AXIS_SIZE, ha="left", va="bottom")
    for a, (values, owner) in enumerate(zip(blocks, owners)):
        draw_block(ax, np.add(corner, np.multiply(shift, a)), values, owner)


def draw_block(ax, corner, values, owners):
    """Draw numbers in cells, each in the colour of its head."""
    for (t, d), value in np.ndenumerate(values):
        left, top = np.add(corner, np.multiply((d, t), CELL))
        colours = {"facecolor": tint(owners[t, d]), "edgecolor": "white"}
        ax.add_patch(Rectangle((left, top), *CELL, **colours))
        write(ax, left + CELL[0] / 2, top + CELL[1] / 2, f"{value:.3g}")


def tint(head):
    """Return a head's colour, pale enough for black text."""
    return tuple(0.72 + 0.28 * part for part in to_rgb(SERIES[(int(head) + 1) % 4]))


def describe_split(T, H, A, transpose):
    """Describe what the reshape and the transpose do."""
    cut = f"{T} vectors of {H} numbers are cut into {A} heads of {H // A}"
    if transpose:
        return (
            f"{cut}: a reshape cuts each token's row, a transpose puts the heads "
            "before the tokens; each head holds its part of every token's numbers."
        )
    return (
        f"{cut} by one reshape, without a transpose: the shape is right, but a "
        "head holds numbers that belong to other heads, and not those of every token."
    )


# ------------------------------------------------------- x times W, by heads


@in_own_style
def plot_head_matrices(length, hidden_size, num_heads, *, title=None):
    """Draw x W_q = q with the columns of each head in its colour.

    A head owns D columns of W_q and so D columns of q, but each of its
    numbers is made of all H numbers of x.

    Parameters
    ----------
    length : int
        T, up to 8.
    hidden_size : int
        H, up to 16.
    num_heads : int
        A, which divides H.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Source: Vaswani et al. 2017, section 3.2.2.
    """
    T = check_integer("length", length, 1, MOST_TOKENS)
    H = check_integer("hidden_size", hidden_size, 1, MOST_COLUMNS)
    A = check_integer("num_heads", num_heads, 1, H)
    if H % A:
        raise BertError(f"num_heads = {A}, allowed: a divisor of hidden_size = {H}")
    wide, gap, margin = H * CELL[1], 0.5, 0.6
    names = (f"x (T, H)\n({T}, {H})", f"W_q (H, A·D)\n({H}, {A}·{H // A})")
    blocks = [(T, None), (H, A), (T, A)]
    full = 3 * wide + 2 * gap + 2 * margin
    ax = blank_axes(full, H * CELL[1] + 0.75, title, top=0.55)
    for i, ((rows, heads), name) in enumerate(zip(blocks, (*names, "q, by head"))):
        left, top = margin + i * (wide + gap), (H - rows) / 2 * CELL[1]
        owners = np.arange(H) // (H // heads) if heads else None
        draw_cells(ax, (left, top), rows, H, owners)
        write(ax, left + wide / 2, top - 0.08, name, AXIS_SIZE, va="bottom")
    for i, sign in enumerate("×="):
        place = margin + (i + 1) * wide + (i + 0.5) * gap
        write(ax, place, H * CELL[1] / 2, sign, AXIS_SIZE + 4)
    for a in range(A):
        middle = margin + 2 * (wide + gap) + (a + 0.5) * wide / A
        text = f"head {a}" if A <= 3 else str(a)
        write(ax, middle, (H + T) / 2 * CELL[1] + 0.12, text)
    return finish(
        ax,
        f"x of shape ({T}, {H}) times W_q of shape ({H}, {H}) is q; each of {A} heads "
        f"owns {H // A} columns of W_q and of q, and reads all {H} numbers of x.",
    )


def draw_cells(ax, corner, rows, columns, owners):
    """Draw a matrix as cells without numbers, each column in its head's colour."""
    for t, d in np.ndindex(rows, columns):
        left, top = corner[0] + d * CELL[1], corner[1] + t * CELL[1]
        face = SHADED if owners is None else tint(owners[d])
        look = {"facecolor": face, "edgecolor": "white"}
        ax.add_patch(Rectangle((left, top), CELL[1], CELL[1], **look))


# ---------------------------------------------------------------- a layer


@in_own_style
def plot_encoder_layer(config, length, *, order="post", title=None):
    """Draw the parts of an encoder layer and the shapes between them.

    Parameters
    ----------
    config : BertConfig
    length : int
        T, the number of tokens.
    order : "post" or "pre"
        Where the norms are: after each sum as in BERT, or before each
        part as in GPT-2.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_config(config)
    check_option("order", order, ORDERS)
    check_integer("length", length, 0, config.max_position_embeddings)
    parts = ORDERS[order]
    wide = sum(BOXES.get(part, 2 * RADIUS) for part in parts) + 7 * WIRE + 1.1
    ax = blank_axes(wide, 1.9, title)
    texts, wire = box_texts(config, length), f"(T, H)\n({length}, {config.hidden_size})"
    write(ax, 0.5, 1.25, f"x\n{wire}", ha="right")
    place, forks = 0.55, []
    for part in parts:
        draw_arrow(ax, (place, 1.25), (place + WIRE, 1.25))
        forks.append(place + 0.1)
        place += WIRE
        if part == "+":  # the residual leaves before the part, and before its norm
            draw_sum(ax, place, forks[-2 if order == "post" else -3])
        else:
            draw_box(ax, place, BOXES[part], texts[part])
        place += BOXES.get(part, 2 * RADIUS)
    draw_arrow(ax, (place, 1.25), (place + WIRE, 1.25))
    write(ax, place + WIRE + 0.05, 1.25, f"output\n{wire}", ha="left")
    return finish(
        ax,
        f"An encoder layer ({order}-norm) from x to its output, both of shape "
        f"({length}, {config.hidden_size}): {', '.join(map(NAMES.get, parts))}.",
    )


def box_texts(config, length):
    """Return {part: lines}, with the shapes inside it."""
    A, D = config.num_attention_heads, config.head_size
    return {
        "attention": f"self-attention\nq, k, v ({A}, {length}, {D})\n"
        f"probs ({A}, {length}, {length})",
        "norm": "LayerNorm",
        "ffn": f"feed-forward\ninner ({length}, {config.intermediate_size})\n"
        f"{config.hidden_act}",
    }


def draw_box(ax, left, width, text):
    """Draw a part of the layer with its text."""
    corner = (left + 0.05, 1.25 - BOX_HEIGHT / 2 + 0.05)
    look = {"boxstyle": "round,pad=0.05", "facecolor": BOX, "edgecolor": NEUTRAL}
    ax.add_patch(FancyBboxPatch(corner, width - 0.1, BOX_HEIGHT - 0.1, **look))
    write(ax, left + width / 2, 1.25, text)


def draw_sum(ax, left, fork):
    """Draw a sum and the residual that comes from the fork."""
    centre = left + RADIUS
    ax.add_patch(Circle((centre, 1.25), RADIUS, facecolor="white", edgecolor=NEUTRAL))
    write(ax, centre, 1.25, "+", AXIS_SIZE + 2)
    ax.plot([fork, fork, centre], [1.25, 0.45, 0.45], color=NEUTRAL, linewidth=1.2)
    draw_arrow(ax, (centre, 0.45), (centre, 1.25 - RADIUS))
    write(ax, (fork + centre) / 2, 0.4, "residual", va="bottom")


# ------------------------------------------------------------------ shared


def blank_axes(wide, high, title, top=0.0):
    """Make axes in inches, y downwards, without ticks."""
    ax = new_figure(wide, high, title).add_subplot()
    ax.set(xlim=(0, wide), ylim=(high - top, -top), aspect="equal")
    ax.set_axis_off()
    return ax


def draw_arrow(ax, start, end):
    """Draw an arrow from one point to another."""
    look = {"arrowstyle": "-|>", "color": NEUTRAL, "linewidth": 1.2}
    ax.annotate("", end, start, arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
