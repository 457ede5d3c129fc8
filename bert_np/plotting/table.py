"""One attention map as an HTML table without any script."""

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_hex

from bert_np.errors import BertError
from bert_np.plotting import colours
from bert_np.plotting.checks import check_integer
from bert_np.plotting.drawing import format_numbers
from bert_np.plotting.figure import check_title
from bert_np.plotting.html import Html, join, tag
from bert_np.plotting.labels import fill_columns, terminal_columns, token_text
from bert_np.plotting.preparation import prepare_maps

MOST_TOKENS = 40
BLACK_ON_WHITE = "background:#fff;color:#000"
QUERY_STYLE = f"background:#fff;color:{colours.QUERY};text-align:right"
KEY_STYLE = f"background:#fff;color:{colours.KEY};text-align:center"
MASKED_STYLE = f"background:{colours.MASKED};color:#000;text-align:center"
MASKED_NOTE = "grey: masked; \u2020: masked, yet above 0"
CORNER = "query \\ key"


@dataclass(frozen=True)
class AttentionTable:
    """A table that notebooks show as HTML and terminals as text."""

    html: Html
    text: str

    def _repr_html_(self):
        return self.html

    def __repr__(self):
        return self.text


def attention_table(probs, tokens, *, power=1.0, decimals=2, title=None, **choices):
    r"""Write the attention map of one head as a table.

    Row i shows how token i spreads its attention over the tokens. The
    last column holds the sums of the rows, the last row the sums of the
    columns. Colours and texts are written into each cell, so the table
    stays whole in a notebook that is not trusted.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
        At most 40 are shown.
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    decimals : int
        Decimal places, 1 to 6.
    title : str, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`.

    Returns
    -------
    AttentionTable
        HTML in a notebook, text elsewhere.

    >>> attention_table([[0.75, 0.25], [0.5, 0.5]], ["cat", "sat"])
    query \ key   cat   sat   sum
    cat          0.75  0.25  1.00
    sat          0.50  0.50  1.00
    sum          1.25  0.75
    """
    data = prepare_maps(probs, tokens, 2, **choices)
    check_integer("decimals", decimals, 1, 6)
    check_title(title)
    if max(data.probs.shape) > MOST_TOKENS:
        raise BertError(
            f"tokens has {max(data.probs.shape)} entries, a table shows at most "
            f"{MOST_TOKENS}: take a shorter text, crop=True, or plot_attention"
        )
    lines = [line for line in (title, *data.notes) if line]
    cells = sum_cells(data.probs, decimals)
    return AttentionTable(
        map_html(data.probs, data, cells, lines, power), map_text(data, cells, lines)
    )


def sum_cells(probs, decimals=2):
    """Write a map (Tq, Tk) as texts with its sums, (Tq + 1, Tk + 1)."""
    whole = np.block(
        [[probs, probs.sum(axis=1, keepdims=True)], [probs.sum(axis=0), 0]]
    )
    cells = format_numbers(whole, decimals).astype(object)
    cells[-1, -1] = ""
    return cells


def map_html(probs, data, cells, lines=(), power=1.0):
    """Write one map, (Tq, Tk), of prepared data as HTML."""
    names, keys = [
        [token_text(token) for token in tokens] for tokens in (data.queries, data.keys)
    ]
    colour = cell_colours(probs, power)
    if not data.visible.all():
        lines = [*lines, MASKED_NOTE]
    header = [tag("th", tag("bdi", key), style=KEY_STYLE) for key in keys]
    corner, end = (tag("th", text, style=BLACK_ON_WHITE) for text in (CORNER, "sum"))
    rows = [tag("tr", corner, *header, end)]
    for i, name in enumerate(names):
        shown = [
            cell_html(text, f"{name} attends to {key}", colour[i][j], visible)
            for j, (text, key, visible) in enumerate(
                zip(cells[i], keys, data.visible[i])
            )
        ]
        shown.append(tag("td", cells[i, -1], style=BLACK_ON_WHITE))
        rows.append(query_row(name, shown))
    centred = f"{BLACK_ON_WHITE};text-align:center"
    sums = [tag("td", total, style=centred) for total in cells[-1]]
    name = tag("th", "sum", style=f"{BLACK_ON_WHITE};text-align:right")
    return frame_html([*rows, tag("tr", name, *sums)], lines)


def query_row(name, cells):
    """Write the row of one query."""
    return tag("tr", tag("th", tag("bdi", name), style=QUERY_STYLE), *cells)


def frame_html(rows, lines):
    """Write a table of these rows, with lines of text above."""
    texts = join([token_text(line, 200) for line in lines], tag("br"))
    caption = tag("caption", texts, style=f"{BLACK_ON_WHITE};text-align:left")
    return tag("table", *[caption] * bool(lines), *rows, style=BLACK_ON_WHITE)


def cell_html(value, words, colour, visible):
    """Write one cell: its value, its words, its colours."""
    style, mark = f"background:{colour[0]};color:{colour[1]};text-align:center", value
    if not visible:
        words += ", masked"
        mark = f"{value}\u2020"
        if float(value) == 0:
            style, mark = MASKED_STYLE, "\u2013"
    return tag("td", mark, style=style, title=f"{words}: {value}")


def cell_colours(probs, power=1.0):
    """Return (background, text colour) of each cell of a map, (Tq, Tk)."""
    shades = colours.attention_colour_map()(colours.attention_norm(power)(probs))
    return [
        [(to_hex(shade), colours.text_colour(shade[:3])) for shade in row]
        for row in np.asarray(shades)
    ]


def map_text(data, cells, lines=()):
    """Write a prepared map, (Tq, Tk), as lines of aligned text."""
    names = [CORNER, *map(token_text, data.queries), "sum"]
    columns = zip([*map(token_text, data.keys), "sum"], *cells)
    table = [names, *map(list, columns)]
    widths = [max(map(terminal_columns, column)) for column in table]
    rows = [
        "  ".join(
            fill_columns(text, width, right=place > 0)
            for place, (text, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in zip(*table)
    ]
    return "\n".join([*(token_text(line, 200) for line in lines), *rows])
