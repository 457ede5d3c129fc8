"""The whole of BERT in one row of boxes, with the parts in question marked."""

from matplotlib.patches import FancyBboxPatch, Rectangle

from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.plotting.colours import BOX, NEUTRAL
from bert_np.plotting.diagrams import blank_axes, draw_arrow
from bert_np.plotting.drawing import write
from bert_np.plotting.figure import finish, in_own_style

# part -> (lines of text, left, middle, width, height), in inches
PARTS = {
    "text": ("text", 0.05, 1.05, 0.6, 0.5),
    "tokenizer": ("tokenizer\nto ids", 0.95, 1.05, 0.95, 0.62),
    "embeddings": ("embeddings\n+ LayerNorm", 2.2, 1.05, 1.2, 0.62),
    "attention": ("self-attention\nA heads", 3.95, 1.05, 1.25, 0.62),
    "mask": ("attention mask", 3.95, 0.24, 1.25, 0.36),
    "norm": ("+ residual\nLayerNorm", 5.45, 1.05, 1.05, 0.62),
    "feed-forward": ("feed-forward\nGELU", 6.75, 1.05, 1.2, 0.62),
    "second norm": ("+ residual\nLayerNorm", 8.2, 1.05, 1.05, 0.62),
    "mlm": ("MLM head:\nmasked words", 9.95, 0.62, 1.25, 0.62),
    "pooler": ("pooler", 9.95, 1.5, 0.7, 0.5),
    "nsp": ("NSP head:\nnext sentence?", 10.95, 1.5, 1.25, 0.62),
}
LAYERS = (3.75, 0.55, 5.7, 1.12)  # the frame of the L layers: left, top, width, height
WIDTH, HEIGHT = 12.25, 1.98
CHAIN = ("text", "tokenizer", "embeddings", "attention", "norm", "feed-forward")
TOGETHER = {
    "norm": ("norm", "second norm"),
    "layers": ("attention", "norm", "feed-forward", "second norm"),
    "heads": ("mlm", "pooler", "nsp"),
    "all": tuple(PARTS),
}


@in_own_style
def plot_overview(*parts, title=None):
    """Draw the way from a text to BERT's answers, with some parts marked.

    Parameters
    ----------
    *parts : str
        What to mark: "text", "tokenizer", "embeddings", "attention",
        "mask", "norm", "feed-forward", "layers", "pooler", "mlm", "nsp",
        "heads" or "all". None marks nothing.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    allowed = [*dict.fromkeys([*PARTS, *TOGETHER])]
    for part in parts:
        if not isinstance(part, str) or part not in allowed:
            raise BertError(f"part = {short(part)}, allowed: {', '.join(allowed)}")
    marked = {name for part in parts for name in TOGETHER.get(part, (part,))}
    ax = blank_axes(WIDTH, HEIGHT, title)
    left, top, width, height = LAYERS
    look = {"facecolor": "none", "edgecolor": NEUTRAL, "linestyle": (0, (4, 3))}
    ax.add_patch(Rectangle((left, top), width, height, **look))
    write(ax, left + width - 0.08, top + height + 0.12, "L layers", ha="right")
    for name, (text, *place) in PARTS.items():
        draw_part(ax, text, place, name in marked)
    for start, end in zip(CHAIN, [*CHAIN[1:], "second norm"]):
        draw_way(ax, start, end)
    x, y = right_of("second norm")
    for end in ("mlm", "pooler"):
        corner = PARTS[end][1] - 0.22
        ax.plot([x, corner, corner], [y, y, PARTS[end][2]], color=NEUTRAL, lw=1.2)
        draw_arrow(ax, (corner, PARTS[end][2]), (PARTS[end][1], PARTS[end][2]))
    draw_way(ax, "pooler", "nsp")
    middle = PARTS["attention"][1] + PARTS["attention"][3] / 2
    draw_arrow(ax, (middle, 0.42), (middle, 0.74))
    names = ", ".join(parts) or "none"
    return finish(
        ax,
        "BERT as a row of boxes: text, tokenizer, embeddings, then L layers of "
        "self-attention and feed-forward, each followed by a sum and LayerNorm, "
        f"then the heads; marked: {names}.",
    )


def draw_part(ax, text, place, marked):
    """Draw one box; a marked one is black with white text."""
    left, middle, width, height = place
    corner = (left + 0.05, middle - height / 2 + 0.05)
    face = "black" if marked else BOX
    look = {"boxstyle": "round,pad=0.05", "facecolor": face, "edgecolor": NEUTRAL}
    ax.add_patch(FancyBboxPatch(corner, width - 0.1, height - 0.1, **look))
    colour = "white" if marked else "black"
    write(ax, left + width / 2, middle, text, color=colour)


def right_of(part):
    """Return the middle of a box's right edge."""
    _, left, middle, width, _ = PARTS[part]
    return left + width, middle


def draw_way(ax, start, end):
    """Draw an arrow from one box to the next."""
    draw_arrow(ax, right_of(start), (PARTS[end][1], PARTS[end][2]))


# -------------------------------------------------------------- the MLM head


@in_own_style
def plot_mlm_head(config, *, title=None):
    """Draw the steps of the masked-word head, with the shape after each.

    Parameters
    ----------
    config : BertConfig
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_config(config)
    H, V = config.hidden_size, config.vocab_size
    steps = [
        ("hidden state\nof one [MASK]", f"({H},)"),
        ("linear\nW, b", f"({H},)"),
        (config.hidden_act.upper().replace("_", " "), f"({H},)"),
        ("LayerNorm", f"({H},)"),
        (f"dot product with\neach of {V:,}\nword vectors, + b", f"({V:,},)"),
        ("softmax", f"({V:,},)"),
    ]
    widths = [1.25, 0.95, 0.85, 1.05, 1.65, 0.95]
    gap = 0.55
    ax = blank_axes(sum(widths) + gap * 6 + 0.95, 1.35, title)
    left = 0.05
    for (text, shape), width in zip(steps, widths):
        draw_part(ax, text, (left, 0.55, width, 0.78), False)
        write(ax, left + width / 2, 1.12, shape)
        draw_arrow(ax, (left + width, 0.55), (left + width + gap, 0.55))
        left += width + gap
    write(ax, left + 0.05, 0.55, "a probability\nfor each word", ha="left")
    return finish(
        ax,
        f"The masked-word head: a hidden state of {H} numbers, a linear map, "
        f"{config.hidden_act}, LayerNorm, a dot product with the vector of each of "
        f"the {V} words, and a softmax.",
    )
