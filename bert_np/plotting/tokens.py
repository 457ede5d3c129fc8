"""Tokens as boxes, with the numbers that go into the model."""

from matplotlib.patches import Rectangle

from bert_np.errors import BertError
from bert_np.plotting.colours import FAINT, HATCH, MASKED, SEGMENTS
from bert_np.plotting.drawing import check_ax
from bert_np.plotting.figure import add_title, finish, new_figure
from bert_np.plotting.labels import LABEL_SIZE, LETTER, text_style, token_labels, width
from bert_np.plotting.preparation import check_binary, check_tokens, to_array

NAMES = ("position", "token", "id", "segment", "mask")
WIDEST = 9.0  # inches of a line of boxes
MARGIN = 0.85  # inches for the names at the left
ROW = 0.2  # inches
MOST_TOKENS = 64
BROAD = "MWmw@%&…"


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

    Raises
    ------
    BertError
    """
    rows = token_rows(tokens, input_ids, segment_ids, attention_mask)
    total = len(rows["position"])
    cut = [] if total <= MOST_TOKENS else [f"the first {MOST_TOKENS} of {total} tokens"]
    rows = {name: texts[:MOST_TOKENS] for name, texts in rows.items()}
    across = (
        WIDEST
        if ax is None
        else check_ax(ax) and (ax.bbox.width / ax.figure.figure.dpi)
    )
    boxes, lines = place_boxes(rows, across - MARGIN)
    high = (ROW * len(rows) + 0.18) * lines
    used = MARGIN + max(x + wide for x, _, wide in boxes)
    if ax is None:
        ax = new_figure(max(used, 3.0) + 0.1, high + 0.1, title, cut).add_subplot()
    else:
        add_title(ax, title, cut, across)
    ax.set(xlim=(0, used + 0.02), ylim=(high, 0))
    ax.set_axis_off()
    draw_boxes(ax, rows, boxes)
    return finish(ax, describe_tokens(rows, total))


def token_rows(tokens, input_ids, segment_ids, attention_mask):
    """Give {row: texts}, the rows that were given, from top to bottom."""
    tokens = check_tokens(tokens)
    if not tokens:
        raise BertError("tokens is empty: there is nothing to draw")
    rows = {
        "position": [str(i) for i in range(len(tokens))],
        "token": token_labels(tokens),
    }
    if input_ids is not None:
        ids = to_array("input_ids", input_ids)
        if ids.shape != (len(tokens),):
            raise BertError(
                f"input_ids has shape {ids.shape}, but tokens has "
                f"{len(tokens)} entries; the two must be equal"
            )
        rows["id"] = [f"{int(i)}" for i in ids]
    for name, argument, values in (
        ("segment", "segment_ids", segment_ids),
        ("mask", "attention_mask", attention_mask),
    ):
        if values is not None:
            bits = check_binary(argument, values, (len(tokens),), "0 and 1")
            rows[name] = [str(int(bit)) for bit in bits]
    return rows


def place_boxes(rows, across):
    """Give (x, line, width) of each token's box, and the number of lines."""
    boxes, x, line = [], 0.0, 0
    for texts in zip(*rows.values()):
        wide = max(map(room, texts)) + 0.14
        if x and x + wide > across:
            x, line = 0.0, line + 1
        boxes.append((x, line, wide))
        x += wide
    return boxes, line + 1


def room(text):
    """Give the inches that a text needs, with more for broad letters."""
    return width(text) + 0.65 * LETTER * sum(text.count(c) for c in BROAD)


def draw_boxes(ax, rows, boxes):
    """Draw the boxes line by line, with the names of the rows at the left."""
    step = ROW * len(rows) + 0.18
    for line in range(boxes[-1][1] + 1):
        for row, name in enumerate(rows):
            ax.text(
                MARGIN - 0.08,
                line * step + ROW * (row + 0.5),
                name,
                ha="right",
                va="center",
                fontsize=LABEL_SIZE,
                color="#595959",
            )
    for i, (x, line, wide) in enumerate(boxes):
        top = line * step
        masked = "mask" in rows and rows["mask"][i] == "0"
        segment = int(rows["segment"][i]) if "segment" in rows else 0
        ax.add_patch(
            Rectangle(
                (MARGIN + x + 0.02, top + ROW),
                wide - 0.04,
                ROW * (len(rows) - 1),
                facecolor=MASKED if masked else SEGMENTS[segment],
                edgecolor=HATCH if masked else FAINT,
                linewidth=0.6,
                hatch="////" if masked else None,
            )
        )
        for row, (name, texts) in enumerate(rows.items()):
            ax.text(
                MARGIN + x + wide / 2,
                top + ROW * (row + 0.5),
                texts[i],
                ha="center",
                va="center",
                fontsize=LABEL_SIZE,
                color="#595959" if name == "position" else "black",
                bbox={"facecolor": MASKED, "edgecolor": "none", "pad": 0.5}
                if masked and row
                else None,
                **text_style([texts[i]]),
            )


def describe_tokens(rows, total):
    """Say how many tokens there are, and how many in what."""
    labels = rows["token"]
    text = f"{total} token{'s' * (total > 1)} as boxes: {' '.join(labels[:12])}"
    text += " …" if total > 12 else ""
    if "segment" in rows:
        text += f"; {rows['segment'].count('1')} in segment 1"
    if "mask" in rows:
        text += f"; {rows['mask'].count('0')} masked as padding"
    return f"{text}."
