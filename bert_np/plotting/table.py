"""One attention map as an HTML table without any script."""

from dataclasses import dataclass
from html import escape

import numpy as np
from matplotlib.colors import to_hex

from bert_np.errors import BertError
from bert_np.plotting import colours
from bert_np.plotting.drawing import check_decimals
from bert_np.plotting.figure import check_title
from bert_np.plotting.labels import terminal_columns, token_text
from bert_np.plotting.preparation import prepare

MOST_TOKENS = 40
PLAIN = "background:#fff;color:#000"
QUERY_STYLE = f"background:#fff;color:{colours.QUERY};text-align:right"
KEY_STYLE = f"background:#fff;color:{colours.KEY};text-align:center"
MASKED_STYLE = f"background:{colours.MASKED};color:#000;text-align:center"
MASKED_NOTE = "grey: masked; \u2020: masked and yet above 0"


@dataclass(frozen=True)
class AttentionTable:
    """A table that notebooks show as HTML and terminals as text."""

    html: str
    text: str

    def _repr_html_(self):
        return self.html

    def __repr__(self):
        return self.text


def attention_table(probs, tokens, *, power=1.0, decimals=2, title=None, **choices):
    r"""Write the attention map of one head as a table.

    Row i shows how token i spreads its attention over the tokens. The
    last column holds the sums of the rows, the last row the sums of the
    columns. Colours and texts of the cells stand in the cells, so the
    table stays whole where a notebook is not trusted.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
        At most 40 are shown.
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    decimals : int
        Digits after the point, 1 to 6.
    title : str, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare`.

    Returns
    -------
    AttentionTable
        HTML in a notebook, text elsewhere.

    Raises
    ------
    BertError

    >>> attention_table([[0.75, 0.25], [0.5, 0.5]], ["cat", "sat"])
    query \ key   cat   sat   sum
    cat          0.75  0.25  1.00
    sat          0.50  0.50  1.00
    sum          1.25  0.75
    """
    data = prepare(probs, tokens, 2, **choices)
    check_decimals(decimals)
    check_title(title)
    if max(data.probs.shape) > MOST_TOKENS:
        raise BertError(
            f"tokens has {max(data.probs.shape)} entries, a table shows at most "
            f"{MOST_TOKENS}: take a shorter text, crop=True, or plot_attention"
        )
    lines = [line for line in (title, *data.notes) if line]
    return AttentionTable(
        map_html(data.probs, data, decimals, lines, power),
        map_text(data, decimals, lines),
    )


def map_html(probs, data, decimals=2, lines=(), power=1.0):
    """Give the HTML of one map, (Tq, Tk), of prepared data."""
    names, keys = (
        [escape(token_text(token)) for token in tokens]
        for tokens in (data.queries, data.keys)
    )
    colour = cell_colours(probs, power)
    if not data.visible.all():
        lines = [*lines, MASKED_NOTE]
    rows = [header_html(keys)]
    for i, name in enumerate(names):
        cells = "".join(
            cell_html(
                f"{probs[i, j]:.{decimals}f}",
                f"{name} attends to {key}",
                colour[i][j],
                data.visible[i, j],
            )
            for j, key in enumerate(keys)
        )
        rows.append(
            f'<tr><th style="{QUERY_STYLE}"><bdi>{name}</bdi></th>{cells}'
            f'<td style="{PLAIN}">{probs[i].sum():.{decimals}f}</td></tr>'
        )
    sums = "".join(
        f'<td style="{PLAIN};text-align:center">{total:.{decimals}f}</td>'
        for total in probs.sum(axis=0)
    )
    rows.append(
        f'<tr><th style="{PLAIN};text-align:right">sum</th>{sums}'
        f'<td style="{PLAIN}"></td></tr>'
    )
    return table_html(rows, lines)


def table_html(rows, lines):
    """Give the HTML of a table of these rows, with lines of text above."""
    caption = "<br>".join(escape(token_text(line, 200)) for line in lines)
    caption = f'<caption style="{PLAIN};text-align:left">{caption}</caption>'
    return f'<table style="{PLAIN}">{caption if lines else ""}{"".join(rows)}</table>'


def header_html(names):
    """Give the HTML of the row of keys; names are escaped already."""
    keys = "".join(f'<th style="{KEY_STYLE}"><bdi>{name}</bdi></th>' for name in names)
    return (
        f'<tr><th style="{PLAIN}">query \\ key</th>{keys}'
        f'<th style="{PLAIN}">sum</th></tr>'
    )


def cell_html(value, words, colour, visible):
    """Give the HTML of one cell: its value, its words, its colours."""
    background, ink = colour
    style, mark = f"background:{background};color:{ink};text-align:center", value
    if not visible:
        words += ", masked"
        mark = f"{value}\u2020"
        if float(value) == 0:
            style, mark = MASKED_STYLE, "\u2013"
    return f'<td style="{style}" title="{words}: {value}">{mark}</td>'


def cell_colours(probs, power=1.0):
    """Give (background, text colour) of each cell of a map, (Tq, Tk)."""
    shades = colours.attention_colour_map()(colours.attention_norm(power)(probs))
    return [
        [(to_hex(shade), colours.text_colour(shade[:3])) for shade in row]
        for row in np.asarray(shades)
    ]


def map_text(data, decimals=2, lines=()):
    """Give a prepared map, (Tq, Tk), as lines of aligned text."""
    names = [token_text(token) for token in data.queries]
    sums = np.append(data.probs.sum(axis=0), np.nan)
    body = np.column_stack([data.probs, data.probs.sum(axis=1)])
    rows = [["query \\ key", *map(token_text, data.keys), "sum"]]
    for name, row in zip([*names, "sum"], [*body, sums]):
        rows.append([name, *("" if np.isnan(p) else f"{p:.{decimals}f}" for p in row)])
    widths = [max(map(terminal_columns, column)) for column in zip(*rows)]
    texts = [
        "  ".join(
            [pad(row[0], widths[0], right=True), *map(pad, row[1:], widths[1:])]
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*(token_text(line, 200) for line in lines), *texts])


def pad(text, width, right=False):
    """Fill a text with spaces, on its left or on its right."""
    space = " " * (width - terminal_columns(text))
    return text + space if right else space + text
