"""Diagrams: how heads are cut out of vectors, and what flows in a layer."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from bert_np.attention import split_heads
from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.plotting.colours import NEUTRAL, SERIES
from bert_np.plotting.figure import AXIS_SIZE, finish, new_figure
from bert_np.plotting.labels import LABEL_SIZE, text_style, token_labels, widest
from bert_np.plotting.preparation import check_index, check_numbers, check_rows

MOST_TOKENS, MOST_COLUMNS = 8, 16
CELL = (0.36, 0.27)  # inches: width and height
GAP = 0.45  # inches between the blocks of two heads
ARROW = 1.15  # inches between two steps

BOXES = {"attention": 1.95, "norm": 1.0, "ffn": 1.95}  # inches
BOX_HEIGHT, WIRE, RADIUS = 0.84, 0.4, 0.15  # inches
ORDERS = {
    "post": ("attention", "+", "norm", "ffn", "+", "norm"),
    "pre": ("norm", "attention", "+", "norm", "ffn", "+"),
}


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

    Raises
    ------
    BertError
    """
    x = check_numbers("x", x, "(T, H)")
    tokens = check_rows("x", x, tokens)
    check_cut(x, num_heads)
    (T, H), A = x.shape, num_heads
    D = H // A
    owner = np.broadcast_to(np.arange(H) // D, x.shape)
    steps = [(f"x\n(T, H) = ({T}, {H})", [x], [owner])]
    if transpose:
        blocks = [list(np.split(cells, A, axis=1)) for cells in (x, owner)]
        steps += [
            (f"reshape\n(T, A, D) = ({T}, {A}, {D})", *blocks),
            (
                f"transpose\n(A, T, D) = ({A}, {T}, {D})",
                *(list(split_heads(cells[None], A)[0]) for cells in (x, owner)),
            ),
        ]
    else:
        steps.append(
            (
                f"reshape only\n(A, T, D) = ({A}, {T}, {D})",
                *(list(cells.reshape(A, T, D)) for cells in (x, owner)),
            )
        )
    return draw_steps(steps, token_labels(tokens), transpose, title)


def check_cut(x, num_heads):
    """Refuse what cannot be cut or is too large to read."""
    (T, H) = x.shape
    if T > MOST_TOKENS or H > MOST_COLUMNS:
        raise BertError(
            f"x has shape {x.shape}, allowed: up to ({MOST_TOKENS}, {MOST_COLUMNS})"
        )
    check_index("num_heads", num_heads, H + 1)
    if num_heads < 1 or H % num_heads:
        raise BertError(f"num_heads = {num_heads}, allowed: a divisor of H = {H}")


def draw_steps(steps, labels, transpose, title):
    """Draw the steps from left to right, the last one's heads stacked."""
    (T, H), A = steps[0][1][0].shape, len(steps[-1][1])
    margin, high = widest(labels) + 0.1, A * T * CELL[1] + (A - 1) * GAP
    ends = [H * CELL[0], H * CELL[0] + (A - 1) * GAP / 2, H // A * CELL[0]]
    if not transpose:
        del ends[1]
    places = margin + np.cumsum([0, *(end + ARROW for end in ends[:-1])])
    ax = blank_axes(places[-1] + ends[-1] + 0.75, high + 0.65, title, top=0.6)
    middle = (high - T * CELL[1]) / 2
    for i, (place, step) in enumerate(zip(places[:-1], steps)):
        draw_step(ax, (place, middle), (H // A * CELL[0] + GAP / 2, 0), step)
        draw_arrow(
            ax, (place + ends[i] + 0.12, high / 2), (places[i + 1] - 0.12, high / 2)
        )
    draw_step(ax, (places[-1], 0), (0, T * CELL[1] + GAP), steps[-1])
    for a in range(A):
        write(
            ax,
            places[-1] + ends[-1] + 0.08,
            a * GAP + (a + 0.5) * T * CELL[1],
            f"head {a}",
            ha="left",
        )
    for t, label in enumerate(labels):
        write(ax, margin - 0.08, middle + (t + 0.5) * CELL[1], label, ha="right")
    return finish(ax, describe_split(T, H, A, transpose))


def draw_step(ax, corner, shift, step):
    """Draw the name of a step and its blocks, each shifted by so much."""
    name, blocks, owners = step
    write(
        ax, corner[0], corner[1] - 0.1, name, ha="left", va="bottom", fontsize=AXIS_SIZE
    )
    for a, (values, owner) in enumerate(zip(blocks, owners)):
        draw_block(ax, np.add(corner, np.multiply(shift, a)), values, owner)


def draw_block(ax, corner, values, owners):
    """Draw numbers in cells, each in the colour of its head."""
    for (t, d), value in np.ndenumerate(values):
        left, top = np.add(corner, np.multiply((d, t), CELL))
        ax.add_patch(
            Rectangle(
                (left, top), *CELL, facecolor=tint(owners[t, d]), edgecolor="white"
            )
        )
        write(ax, left + CELL[0] / 2, top + CELL[1] / 2, f"{value:.3g}")


def tint(head):
    """Give a head's colour, pale enough for black text."""
    return tuple(0.72 + 0.28 * part for part in to_rgb(SERIES[(head + 1) % 4]))


def describe_split(T, H, A, transpose):
    """Say what the reshape and the transpose do."""
    cut = f"{T} vectors of {H} numbers are cut into {A} heads of {H // A}"
    if transpose:
        return (
            f"{cut}: a reshape cuts each token's row, a transpose puts the heads "
            "before the tokens; each head holds its own numbers of every token."
        )
    return (
        f"{cut} by one reshape, without a transpose: the shape is right, but a "
        "head holds numbers of other heads, and of some tokens only."
    )


# ---------------------------------------------------------------- a layer


def plot_encoder_layer(config, length, *, order="post", title=None):
    """Draw the parts of an encoder layer and the shapes between them.

    Parameters
    ----------
    config : BertConfig
    length : int
        T, the number of tokens.
    order : "post" or "pre"
        Where the norms stand: after each sum as in BERT, or before each
        part as in GPT-2.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    require_config(config)
    if order not in ORDERS:
        raise BertError(f"order = {short(order)}, allowed: 'post', 'pre'")
    check_index("length", length, config.max_position_embeddings + 1)
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
        if part == "+":
            draw_sum(ax, place, forks[fork_of(order, len(forks) - 1)])
        else:
            draw_box(ax, place, BOXES[part], texts[part])
        place += BOXES.get(part, 2 * RADIUS)
    draw_arrow(ax, (place, 1.25), (place + WIRE, 1.25))
    write(ax, place + WIRE + 0.05, 1.25, f"output\n{wire}", ha="left")
    return finish(ax, describe_layer(config, length, order))


def fork_of(order, place):
    """Where the residual leaves that is added at this place."""
    return place - (1 if order == "post" else 2)


def box_texts(config, length):
    """Give {part: lines}, with the shapes inside it."""
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
    ax.add_patch(
        FancyBboxPatch(
            (left + 0.05, 1.25 - BOX_HEIGHT / 2 + 0.05),
            width - 0.1,
            BOX_HEIGHT - 0.1,
            boxstyle="round,pad=0.05",
            facecolor="#F4F4F4",
            edgecolor=NEUTRAL,
        )
    )
    write(ax, left + width / 2, 1.25, text)


def draw_sum(ax, left, fork):
    """Draw a sum and the residual that comes from the fork."""
    centre = left + RADIUS
    ax.add_patch(Circle((centre, 1.25), RADIUS, facecolor="white", edgecolor=NEUTRAL))
    write(ax, centre, 1.25, "+", fontsize=AXIS_SIZE + 2)
    ax.plot([fork, fork, centre], [1.25, 0.45, 0.45], color=NEUTRAL, linewidth=1.2)
    draw_arrow(ax, (centre, 0.45), (centre, 1.25 - RADIUS))
    write(ax, (fork + centre) / 2, 0.4, "residual", va="bottom")


def describe_layer(config, length, order):
    """Say in which order the parts of the layer stand."""
    names = {
        "attention": "self-attention",
        "+": "sum with the residual",
        "norm": "LayerNorm",
        "ffn": "feed-forward",
    }
    parts = ", ".join(names[part] for part in ORDERS[order])
    return (
        f"An encoder layer ({order}-norm) from x to its output, both of shape "
        f"({length}, {config.hidden_size}): {parts}."
    )


# ------------------------------------------------------------------ shared


def blank_axes(wide, high, title, top=0.0):
    """Make axes in inches, y downwards, without ticks."""
    ax = new_figure(wide, high, title).add_subplot()
    ax.set(xlim=(0, wide), ylim=(high - top, -top), aspect="equal")
    ax.set_axis_off()
    return ax


def draw_arrow(ax, start, end):
    """Draw an arrow from one point to another."""
    ax.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": NEUTRAL,
            "linewidth": 1.2,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def write(ax, x, y, text, ha="center", va="center", fontsize=LABEL_SIZE):
    """Write a text at a point."""
    ax.text(x, y, text, ha=ha, va=va, fontsize=fontsize, **text_style([text]))
