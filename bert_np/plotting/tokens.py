"""Tokens as boxes, with the numbers that go into the model."""

from matplotlib.patches import Rectangle

from bert_np.errors import BertError
from bert_np.plotting.checks import (
    check_binary,
    check_length,
    check_numbers,
    list_texts,
)
from bert_np.plotting.colours import FAINT, HATCH, MASKED, SEGMENTS
from bert_np.plotting.drawing import axes_to_draw_on, inches_of, write
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import LETTER, text_width, token_labels

WIDEST = 9.0  # inches of a line of boxes
MARGIN = 0.85  # inches for the names at the left
ROW = 0.2  # inches
GAP = 0.18  # inches between two lines of boxes
MOST_TOKENS = 64
BROAD = "Mmw&…"  # letters that fill a box more than most
QUIET = "#595959"


@in_own_style
def plot_tokens(
    tokens,
    input_ids=None,
    *,
    segment_ids=None,
    attention_mask=None,
    title=None,
    ax=None,
):
    """Draw tokens as boxes with their positions, ids, segments and mask.

    Segment 1 is darker than segment 0. Masked tokens are hatched. Long
    texts run over several lines; after 64 tokens they are cut.

    Parameters
    ----------
    tokens : list of T str
    input_ids : array of shape (T,) of int, optional
    segment_ids : array of shape (T,), optional
        0 for the first sentence, 1 for the second.
    attention_mask : array of shape (T,), optional
        1 for a real token, 0 for padding.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = token_rows(tokens, input_ids, segment_ids, attention_mask)
    total = len(rows["position"])
    cut = [] if total <= MOST_TOKENS else [f"the first {MOST_TOKENS} of {total} tokens"]
    rows = {name: texts[:MOST_TOKENS] for name, texts in rows.items()}
    across = WIDEST if ax is None else inches_of(ax)[0]
    boxes = place_boxes(rows, across - MARGIN)
    high = (ROW * len(rows) + GAP) * (boxes[-1][1] + 1)
    used = MARGIN + max(x + wide for x, _, wide in boxes)
    ax = axes_to_draw_on(ax, max(used, 3.0) + 0.1, high + 0.1, title, cut)
    ax.set(xlim=(0, used + 0.02), ylim=(high, 0))
    ax.set_axis_off()
    draw_boxes(ax, rows, boxes)
    return finish(ax, describe_tokens(rows, total))


def token_rows(tokens, input_ids, segment_ids, attention_mask):
    """Return {row: texts}, the rows that were given, from top to bottom."""
    tokens = list_texts("tokens", tokens)
    length = len(tokens)
    if not tokens:
        raise BertError("tokens is empty: there is nothing to draw")
    rows = {"position": list(map(str, range(length))), "token": token_labels(tokens)}
    if input_ids is not None:
        ids = check_numbers("input_ids", input_ids, "(T,)")
        check_length("input_ids", ids, length, "token")
        rows["id"] = [f"{int(i)}" for i in ids]
    masks = {
        "segment": ("segment_ids", segment_ids),
        "mask": ("attention_mask", attention_mask),
    }
    for name, (argument, values) in masks.items():
        if values is not None:
            bits = check_binary(argument, values, (length,), "0 and 1")
            rows[name] = [str(int(bit)) for bit in bits]
    return rows


def place_boxes(rows, across):
    """Return (x, line, width) of each token's box."""
    boxes, x, line = [], 0.0, 0
    for texts in zip(*rows.values()):
        wide = max(map(room, texts)) + 0.14
        if x and x + wide > across:
            x, line = 0.0, line + 1
        boxes.append((x, line, wide))
        x += wide
    return boxes


def room(text):
    """Estimate the inches that a text needs, with more for broad letters."""
    return text_width(text) + 0.65 * LETTER * sum(text.count(c) for c in BROAD)


def draw_boxes(ax, rows, boxes):
    """Draw the boxes line by line, with the names of the rows at the left."""
    step = ROW * len(rows) + GAP
    for line in range(boxes[-1][1] + 1):
        for row, name in enumerate(rows):
            height = line * step + ROW * (row + 0.5)
            write(ax, MARGIN - 0.08, height, name, ha="right", color=QUIET)
    for i, (x, line, wide) in enumerate(boxes):
        masked = "mask" in rows and rows["mask"][i] == "0"
        segment = int(rows["segment"][i]) if "segment" in rows else 0
        corner = MARGIN + x + 0.02, line * step + ROW
        colours = {"facecolor": SEGMENTS[segment], "edgecolor": FAINT, "hatch": None}
        if masked:
            colours = {"facecolor": MASKED, "edgecolor": HATCH, "hatch": "////"}
        size = wide - 0.04, ROW * (len(rows) - 1)
        ax.add_patch(Rectangle(corner, *size, linewidth=0.6, **colours))
        for row, (name, texts) in enumerate(rows.items()):
            ground = {"facecolor": MASKED, "edgecolor": "none", "pad": 0.5}
            style = {"color": QUIET if name == "position" else "black"}
            style |= {"bbox": ground} if masked and row else {}
            height = line * step + ROW * (row + 0.5)
            write(ax, MARGIN + x + wide / 2, height, texts[i], **style)


def describe_tokens(rows, total):
    """Describe how many tokens there are, in which segment, and masked."""
    labels = rows["token"]
    text = f"{total} token{'s' * (total > 1)} as boxes: {' '.join(labels[:12])}"
    text += " …" if total > 12 else ""
    if "segment" in rows:
        text += f"; {rows['segment'].count('1')} in segment 1"
    if "mask" in rows:
        text += f"; {rows['mask'].count('0')} masked as padding"
    return f"{text}."
