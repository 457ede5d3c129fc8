"""Stages of the forward pass as HTML that needs no script.

A notebook that is not trusted keeps all of it: details, tables, inline
style, pictures as data, links within the cell.
"""

import base64
import io
import re
import secrets
from html import escape
from itertools import groupby

import matplotlib
import numpy as np
from PIL import Image

from bert_np.plotting import colours
from bert_np.plotting.colours import KEY, QUERY, VALUE
from bert_np.plotting.step_texts import (
    FEW_COLUMNS,
    SMALL,
    WIDEST_MAP,
    number_format,
    number_texts,
    summary,
    trace_place,
)

SIGNED_MAP = "RdBu_r"
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 64, 768, 16384  # of a picture
LINE = 18  # pixels: the height of a row
LEVELS = 254  # the colours of a picture; one more for masked cells
SIDE_COLOURS = {"q": QUERY, "k": KEY, "v": VALUE}
BOX = "max-height:38em;overflow:auto;padding-right:8px"


def steps_html(steps):
    """All stages as HTML, in a box that scrolls."""
    uid = secrets.token_hex(4)
    return f'<div style="{BOX}">{parts_html(steps, uid)}</div>'


def parts_html(steps, uid):
    """The stages in the parts of the model, each with its neighbours."""
    links = neighbours(steps, uid)
    blocks = []
    for part, group in groupby(zip(steps, links), lambda pair: pair[0].part):
        inner = "".join(block_html(stage, uid, link) for stage, link in group)
        blocks.append(
            f'<details open><summary style="cursor:pointer;font-size:115%;'
            f'font-weight:bold;margin-top:8px">{escape(part)}</summary>{inner}'
            "</details>"
        )
    return "".join(blocks)


def neighbours(steps, uid):
    """For each stage the links to the one before and the one after."""

    def link(stage, form):
        if stage is None:
            return ""
        title = form.format(f"{stage.number} {escape(stage.name)}")
        return f'<a href="#{uid}-{stage.number}">{title}</a>'

    around = [None, *steps, None]
    pairs = zip(around, around[2:])
    return [
        f"{link(before, '← {}')} &nbsp; {link(after, '{} →')}"
        for before, after in pairs
    ]


def stage_html(stage):
    """One stage by itself as HTML."""
    return block_html(stage, secrets.token_hex(4), "")


def block_html(stage, uid, links):
    """One stage as a block: its words, its numbers, its neighbours."""
    colour = SIDE_COLOURS.get(stage.path.rpartition(".")[2], "#8C8C8C")
    head = (
        f'<b id="{uid}-{stage.number}">{stage.number} · {escape(stage.name)}</b> '
        f"&nbsp; <code>{escape(trace_place(stage.path))}</code>"
    )
    lines = [head, escape(stage.sentence)]
    if stage.folded:
        lines[1] += f" Output {escape(stage.shape)}: {escape(summary(stage))}"
    else:
        lines += [equation_html(stage.equation), escape(stage.shape)]
        lines += [numbers_html(stage), *map(plain, stage.notes)]
    lines.append(f'<span style="font-size:90%">{links}</span>')
    body = "".join(f'<div style="margin:3px 0">{line}</div>' for line in lines if line)
    return (
        f'<div style="border-left:4px solid {colour};padding:1px 0 1px 12px;'
        f'margin:14px 0">{body}</div>'
    )


def plain(text):
    r"""Escape a text, and keep a notebook from typesetting it as a formula.

    >>> plain("<b> $x$")
    '&lt;b&gt; <span>$</span>x<span>$</span>'
    """
    return re.sub(r"[$\\]", r"<span>\g<0></span>", escape(text))


def name_html(name):
    """The name of a row or column: a number, then perhaps a token."""
    number, _, token = name.partition(" ")
    return f"{plain(number)} <bdi>{plain(token)}</bdi>" if token else plain(number)


def equation_html(equation):
    """An equation with its subscripts.

    >>> equation_html("q = x W_q")
    '<i style="font-family:serif;font-size:120%">q = x W<sub>q</sub></i>'
    """
    lowered = re.sub(r"_(\w+)", r"<sub>\1</sub>", escape(equation))
    return f'<i style="font-family:serif;font-size:120%">{lowered}</i>'


def numbers_html(stage):
    """The numbers of a stage: a table, a picture, or where they stand."""
    if stage.repeats:
        return f"{escape(summary(stage))}; {escape(stage.repeats)}"
    if stage.values.size <= SMALL or stage.values.dtype.kind in "iu":
        return table_html(stage) + escape(summary(stage))
    return picture_html(stage)


def table_html(stage):
    """All numbers of a stage with the names of rows and columns."""
    style = 'style="padding:1px 6px;text-align:right;white-space:nowrap"'
    rows = [["", *map(name_html, stage.columns)]]
    rows += [
        [name_html(name), *row] for name, row in zip(stage.rows, number_texts(stage))
    ]
    body = "".join(
        "<tr>" + "".join(f"<td {style}>{cell}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow:auto"><table style="border-collapse:collapse;'
        f'margin:4px 0">{body}</table></div>'
    )


def picture_html(stage):
    """A picture of the numbers beside the tokens, with range and a few."""
    cells, hidden, block = shrink(stage.values, stage.masked)
    width = max(1, min(24, MOST_COLUMNS // cells.shape[1]))
    limit = colour_limit(stage)
    image = png(
        np.repeat(np.repeat(colour_index(cells, hidden, limit), LINE, 0), width, 1),
        limit,
    )
    labels = "".join(
        f'<div style="height:{LINE}px;line-height:{LINE}px;font-size:13px">'
        f"{name_html(name)}</div>"
        for name in stage.rows[:: block[0]]
    )
    cell = 'style="padding:0 6px;text-align:{};white-space:nowrap;vertical-align:top"'
    picture = image_html(image, describe(stage), cells.shape[1] * width)
    table = (
        '<table style="border-collapse:collapse;margin:4px 0"><tr>'
        f'<td {cell.format("right")}><div style="height:16px"></div>{labels}</td>'
        f"<td {cell.format('left')}>{ruler(cells.shape[1], width, block[1])}"
        f"{picture}</td></tr></table>"
    )
    small = max(stage.values.shape) <= WIDEST_MAP
    numbers = table_html(stage) if small else few_html(stage)
    return table + scale_html(stage, limit, block) + numbers


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


def is_probability(stage):
    """Whether the colours run from 0 to 1."""
    return stage.path.endswith(".probs")


def colour_limit(stage):
    """The number that has the last colour; None for probabilities."""
    if is_probability(stage):
        return None
    size = np.abs(stage.values[~stage.masked])
    size = size[np.isfinite(size)]
    return float(max(np.quantile(size, 0.99), 1e-9)) if size.size else 1.0


def colour_index(cells, hidden, limit):
    """The place of each number on the colour scale, 0..254; 255 masked."""
    share = cells if limit is None else (cells / limit + 1) / 2
    share = np.nan_to_num(np.clip(share, 0, 1))
    return np.where(hidden, 255, np.rint(share * LEVELS)).astype(np.uint8)


def png(index, limit):
    """A picture in the 256 colours of its scale, as base64."""
    scale = matplotlib.colormaps[colours.ATTENTION_MAP if limit is None else SIGNED_MAP]
    palette = scale(np.linspace(0, 1, LEVELS + 1), bytes=True)[:, :3]
    masked = matplotlib.colors.to_rgb(colours.MASKED)
    palette = np.vstack([palette, np.rint(np.multiply(masked, 255))]).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(index))
    image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def image_html(data, alt, width):
    """A picture with its alternative text, at its own size."""
    return (
        f'<img alt="{escape(alt)}" width="{width}" style="display:block;'
        f'max-width:none" src="data:image/png;base64,{data}">'
    )


def ruler(columns, width, block):
    """The numbers of columns above a picture."""
    least = 1 if width >= 20 else 40 / width
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if s >= least)
    marks = "".join(
        f'<span style="display:inline-block;width:{step * width}px">{i * block}</span>'
        for i in range(0, columns - step + 1, step)
    )
    return f'<div style="height:16px;line-height:16px;font-size:11px">{marks}</div>'


def describe(stage):
    """What the picture shows, in one sentence."""
    rows, columns = stage.values.shape
    return (
        f"{stage.name}, {stage.part}: {rows} rows, {stage.rows[0]} to "
        f"{stage.rows[-1]}, by {columns} columns; {summary(stage)}."
    )


def scale_html(stage, limit, block):
    """The colour scale, what it leaves out, and the range."""
    low, high = ("0", "1") if limit is None else (f"{-limit:.3g}", f"{limit:.3g}")
    bar = png(np.repeat(np.arange(LEVELS + 1, dtype=np.uint8)[None], 10, 0), limit)
    words = [summary(stage)]
    if limit is not None:
        words.append("stronger ones have the end colours")
    if stage.masked.any():
        words.append("grey: masked")
    if max(block) > 1:
        words.append(f"drawn as the strongest of each {block[0]} × {block[1]} numbers")
    image = image_html(bar, "", 120).replace("display:block", "display:inline-block")
    return f"<div>{low} {image} {high} &nbsp; {escape('; '.join(words))}</div>"


def few_html(stage):
    """The first numbers of the first rows."""
    form = number_format(stage.values[~stage.masked])
    words = [
        f"{name}: {', '.join(format(x, form) for x in row[:FEW_COLUMNS])}, …"
        for name, row in zip(stage.rows[:2], stage.values.tolist())
    ]
    return f"<div>first numbers of {plain('; '.join(words))}</div>"
