"""Stages of the forward pass as HTML, and a player where scripts run.

Without scripts all stages follow each other down the page. Each row of
numbers is a row of a table, a name beside its own picture, so the names
stay in their places where a front end removes the style.
"""

import re
import secrets
from itertools import groupby

import matplotlib
import numpy as np

from bert_np.plotting import colours
from bert_np.plotting.html import Html, escape, escape_formulas, image, join, tag
from bert_np.plotting.png import palette_png
from bert_np.plotting.scripts import read_part, script_json, with_script
from bert_np.plotting.step_texts import (
    SMALL,
    WIDEST_MAP,
    number_format,
    number_texts,
    summary,
    trace_place,
)

MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 64, 768, 16384  # of a picture
HEIGHT = 18  # pixels of a row
LEVELS = 14  # steps between 15 colours; with that of masked cells they fill 4 bits
FIRST = 3  # numbers of a row that are written beside its picture
PLAYER = ("parts.js", "player.js")
SIDE_COLOURS = {"q": colours.QUERY, "k": colours.KEY, "v": colours.VALUE}
WIDE_SPACE = " \u00a0 "
BOX = "max-height:38em;overflow:auto;padding-right:8px"
SUMMARY = "cursor:pointer;font-size:115%;font-weight:bold;margin-top:8px"
BLOCK = "border-left:4px solid {};padding:1px 0 1px 12px;margin:14px 0"
TABLE = "border-collapse:collapse;margin:4px 0"
CELL = "padding:1px 6px;text-align:right;white-space:nowrap"
PICTURE = f"height:{HEIGHT}px;max-width:none;image-rendering:pixelated"


def steps_html(steps):
    """Write all stages as HTML, in a box that scrolls, with its player."""
    still = tag("div", parts_html(steps, secrets.token_hex(4)), style=BOX)
    style = "".join(map(read_part, ("host.css", "parts.css", "player.css")))
    markup = f"<style>{style}</style>{read_part('player.html')}"
    return with_script(still, PLAYER, "startPlayer", script_json(markup))


def parts_html(steps, uid):
    """Write the stages by parts of the model, each with its neighbours."""
    blocks = []
    linked = zip(steps, neighbours(steps, uid))
    for part, group in groupby(linked, lambda pair: pair[0].part):
        stages = [block_html(stage, uid, links) for stage, links in group]
        title = tag("summary", part, style=SUMMARY)
        blocks.append(tag("details", title, *stages, open=""))
    return join(blocks)


def neighbours(steps, uid):
    """For each stage, write the links to the one before and the one after."""

    def link(stage, form):
        if stage is None:
            return ""
        title = form.format(f"{stage.number} {stage.name}")
        return tag("a", title, href=f"#{uid}-{stage.number}")

    around = [None, *steps, None]
    pairs = zip(around, around[2:])
    return [join([link(a, "← {}"), link(b, "{} →")], WIDE_SPACE) for a, b in pairs]


def stage_html(stage):
    """Write one stage by itself as HTML."""
    return block_html(stage, secrets.token_hex(4), "")


def block_html(stage, uid, links):
    """Write one stage as a block: its words, its numbers, its neighbours."""
    title = f"{stage.number} · {stage.name}"
    name = tag("b", title, id=f"{uid}-{stage.number}")
    lines = [join([name, tag("code", trace_place(stage.path))], WIDE_SPACE)]
    if stage.folded:
        lines.append(f"{stage.sentence} Output {stage.shape}: {summary(stage)}")
    else:
        lines += [stage.sentence, equation_html(stage.equation), stage.shape]
        lines.append(numbers_html(stage))
    lines += [*stage.notes, join(map(remark_html, stage.rows, stage.remarks))]
    lines.append(tag("span", links, style="font-size:90%"))
    colour = SIDE_COLOURS.get(stage.path.rpartition(".")[2], colours.HATCH)
    body = [tag("div", line, style="margin:3px 0") for line in lines]
    place = {"data-stage": stage.number}
    return tag("div", *body, style=BLOCK.format(colour), **place)


def remark_html(row, remark):
    """Write what is remarked on one row; the player finds it by its position."""
    guess = {"data-guess": ""} if remark.startswith("guess") else {}
    return tag("div", escape_formulas(remark), **position_of(row), **guess)


def position_of(row):
    """Return the attribute that marks the row of a position for the player.

    >>> position_of("3 cat"), position_of("sentence")
    ({'data-t': '3'}, {})
    """
    number = row.partition(" ")[0]
    return {"data-t": number} if number.isdigit() else {}


def name_html(name):
    """Write the name of a row or column: a number, then perhaps a token."""
    number, _, token = name.partition(" ")
    words = [escape_formulas(number)]
    return join(words + [tag("bdi", escape_formulas(token))] * bool(token), "\u00a0")


def equation_html(equation):
    """Write an equation with its subscripts.

    >>> equation_html("q = x W_q")
    '<i style="font-family:serif;font-size:120%">q = x W<sub>q</sub></i>'
    """
    lowered = Html(re.sub(r"_(\w+)", r"<sub>\1</sub>", escape(equation)))
    return tag("i", lowered, style="font-family:serif;font-size:120%")


def numbers_html(stage):
    """Write the numbers of a stage: a table, a picture, or where they were."""
    if stage.repeats:
        return f"{summary(stage)}; {stage.repeats}"
    if stage.values.size <= SMALL or stage.values.dtype.kind in "iu":
        return join([all_numbers_html(stage), summary(stage)])
    return drawn_numbers_html(stage)


def all_numbers_html(stage):
    """Write all numbers of a stage with the names of rows and columns."""
    table = [[["", *map(name_html, stage.columns)], {}]]
    for row, numbers in zip(stage.rows, number_texts(stage)):
        table.append([[name_html(row), *numbers], position_of(row)])
    body = [
        tag("tr", *(tag("td", cell, style=CELL) for cell in cells), **place)
        for cells, place in table
    ]
    return tag("div", tag("table", *body, style=TABLE), style="overflow:auto")


def drawn_numbers_html(stage):
    """Draw the numbers of each row beside its name, with the first few of them."""
    cells, hidden, block = shrink(stage.values, stage.masked)
    limit = colour_limit(stage)
    index = colour_index(cells, hidden, limit)
    names = stage.rows[:: block[0]]
    rows = join(map(row_html, names, index, cells, [limit] * len(names)))
    table = tag("div", tag("table", rows, style=TABLE), style="overflow:auto")
    small = max(stage.values.shape) <= WIDEST_MAP
    numbers = all_numbers_html(stage) if small else ""
    return join([table, scale_html(stage, limit, block), numbers])


def row_html(name, index, cells, limit):
    """Write one row: its name, its picture, its first numbers."""
    width = len(index) * max(1, min(24, MOST_COLUMNS // len(index)))
    form = number_format(cells)
    words = "\u00a0".join([format(x, form) for x in cells[:FIRST].tolist()] + ["…"])
    size = {"width": width, "height": HEIGHT, "style": PICTURE}
    picture = image(scale_png(index[None], limit), "", **size)
    parts = [tag("td", name_html(name), align="right")]
    parts += [tag("td", f"\u00a0{words}\u00a0"), tag("td", picture)]
    return tag("tr", *parts, **position_of(name))


def shrink(values, masked):
    """Make an array small enough to draw: the strongest of each block.

    Returns
    -------
    values, masked : arrays of shape (R', C')
    block : (rows, columns) that one drawn cell stands for
    """
    rows, columns = values.shape
    down = -(-rows // MOST_ROWS)
    drawn = -(-rows // down)
    right = max(-(-columns // MOST_COLUMNS), -(-drawn * columns // MOST_CELLS))
    values = np.where(masked, 0, values)
    high, low = (blocks(f, values, down, right) for f in (np.maximum, np.minimum))
    strongest = np.where(high >= -low, high, low)
    return strongest, blocks(np.logical_and, masked, down, right), (down, right)


def blocks(function, array, down, right):
    """Reduce an array block by block."""
    rows = function.reduceat(array, range(0, len(array), down), axis=0)
    return function.reduceat(rows, range(0, array.shape[1], right), axis=1)


def colour_limit(stage):
    """Return the number that has the last colour; None for probabilities."""
    if stage.path.endswith(".probs"):
        return None
    size = np.abs(stage.values[~stage.masked])
    size = size[np.isfinite(size)]
    return float(max(np.quantile(size, 0.99), 1e-9)) if size.size else 1.0


def colour_index(cells, hidden, limit):
    """Return the place of each number on the colour scale, 0..14; 15 masked."""
    share = cells if limit is None else (cells / limit + 1) / 2
    share = np.nan_to_num(np.clip(share, 0, 1))
    return np.where(hidden, LEVELS + 1, np.rint(share * LEVELS)).astype(np.uint8)


def scale_png(index, limit):
    """Draw a picture in the 16 colours of its scale, as a PNG."""
    name = colours.ATTENTION_MAP if limit is None else colours.SIGNED_MAP
    scale = matplotlib.colormaps[name](np.linspace(0, 1, LEVELS + 1), bytes=True)
    masked = np.rint(np.multiply(matplotlib.colors.to_rgb(colours.MASKED), 255))
    return palette_png(index, np.vstack([scale[:, :3], masked]))


def scale_html(stage, limit, block):
    """Write the colour scale, what it leaves out, and the range."""
    low, high = ("0", "1") if limit is None else (f"{-limit:.3g}", f"{limit:.3g}")
    png = scale_png(np.arange(LEVELS + 1)[None], limit)
    bar = image(png, "", width=120, height=10, style="image-rendering:pixelated")
    columns = f"columns {stage.columns[0]} to {stage.columns[-1]} from left to right"
    words = [summary(stage), columns]
    if limit is not None:
        words.append("numbers beyond the ends have the end colours")
    if stage.masked.any():
        words.append("grey: masked")
    if max(block) > 1:
        words.append(f"each cell is the strongest of {block[0]} × {block[1]} numbers")
    return tag("div", join([low, bar, high], " "), WIDE_SPACE, "; ".join(words))
