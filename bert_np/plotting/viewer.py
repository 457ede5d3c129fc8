"""The interactive viewer: maps and tokens in, one piece of HTML out."""

import base64
import json
import re
import uuid
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

import numpy as np
from matplotlib.colors import to_hex

from bert_np.errors import BertError, short
from bert_np.plotting import colours
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    MOST_NUMBERS,
    QUERY_LABEL,
    only_sentence,
    plot_attention,
    plot_heads,
    plot_model,
)
from bert_np.plotting.figure import AXIS_SIZE, NotebookFigure, check_title
from bert_np.plotting.labels import token_text
from bert_np.plotting.pages import write_page
from bert_np.plotting.preparation import ENDS, SPECIAL_NOTES, check_maps, prepare
from bert_np.plotting.table import QUERY_STYLE, cell_colours, map_html, table_html

MOST_TOKENS = 64
MOST_VALUES = 600_000  # 12 x 12 heads of 64 tokens
STRONGEST = 3  # keys of a row in the table of a long text
ROUNDING = "Values are rounded to 1/255: each is off by at most 1/510, 0.002."
SPECIAL_CHOICES = {
    "show": "shown",
    "hide": "hidden, rows as they are",
    "renormalise": "hidden, rows sum to 1",
}


@dataclass(frozen=True)
class AttentionViewer:
    """A picture, a table and an interactive viewer of the same maps.

    A notebook shows the picture first, then the viewer; where scripts
    may not run, the table stands in the place of the viewer.
    """

    figure: NotebookFigure
    table: str
    data: str
    title: str

    def _ipython_display_(self):
        from IPython.display import display

        display(self.figure)
        display(
            {"text/html": viewer_html(self.table, self.data), "text/plain": repr(self)},
            raw=True,
        )

    def _repr_html_(self):
        picture = picture_html(self.figure)
        return viewer_html(f"{picture}\n{self.table}", self.data)

    def __repr__(self):
        return (
            f"{self.figure.description} Interactive in a notebook; "
            ".save(path) writes a page."
        )

    def save(self, path):
        """Write a page that works in a browser without a network.

        Parameters
        ----------
        path : str or Path
            A file in a folder that exists, such as "attention.html".

        Returns
        -------
        Path

        Raises
        ------
        BertError
        """
        return write_page(path, self.title, self._repr_html_())


def attention_viewer(
    probs,
    tokens,
    *,
    layers=None,
    heads=None,
    power=1.0,
    title=None,
    special="show",
    mean=None,
    between=None,
    **choices,
):
    """Make an interactive viewer of attention maps.

    The head view joins each query to the keys by lines that are as
    opaque as the attention; the matrix view shows the same head as a
    map; thumbnails choose the layer and the head. Tokens are chosen by
    pointer or keyboard, and a sentence states the value.

    Parameters
    ----------
    probs : array of shape (T, T), (A, T, T) or (L, A, T, T), or a list
        of L arrays of shape (A, T, T). Rows are queries, columns are
        keys; each value from 0 to 1.
    tokens : list of T str
        At most 64 are shown.
    layers, heads : list of int, optional
        Which to show; by default all.
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    special : "show", "hide" or "renormalise"
        What happens to [CLS] and [SEP] at first; a menu changes it.
    mean, between, **choices
        attention_mask, visible, crop, merge_words, segment_ids: see
        `prepare`. With `between`, `special` stays as it is given.

    Returns
    -------
    AttentionViewer
        Shows itself in a notebook; `save(path)` writes a page.

    Raises
    ------
    BertError
    """
    check_title(title)
    maps, _ = check_maps(only_sentence(probs), tokens)
    maps, names = choose_maps(maps, tokens, layers, heads)
    choices |= {"mean": mean, "between": between}
    start = prepare(maps, tokens, 4, special=special, **choices)
    shown = start if between else prepare(maps, tokens, 4, **choices)
    check_size(shown.probs)
    names = [
        None if axis in (mean or "") else numbers
        for axis, numbers in zip(("layers", "heads"), names)
    ]
    figure = draw_picture(
        maps, tokens, names, title, power=power, special=special, **choices
    )
    data = {
        "title": token_text(title or "Attention", 200),
        "layers": names[0],
        "heads": names[1],
        **pack_maps(shown, special, between is not None),
        **fixed_data(power),
    }
    return AttentionViewer(
        figure, draw_table(start, names, power), script_json(data), data["title"]
    )


def choose_maps(maps, tokens, layers, heads):
    """Take the chosen layers and heads out of maps of two to four axes.

    Returns
    -------
    maps : array of shape (L, A, T, T)
    names : [list of int or None, list of int or None]
        The numbers of the layers and of the heads; None where the maps
        have no such axis.
    """
    if maps.ndim > 4:
        prepare(maps, tokens, 4)  # says what is wrong
    names = []
    for name, chosen, axis in (("layers", layers, -4), ("heads", heads, -3)):
        if maps.ndim < -axis:
            if chosen is not None:
                found = short(chosen)
                raise BertError(
                    f"{name} = {found}: probs has shape {maps.shape}, "
                    f"without an axis of {name}"
                )
            names.append(None)
        else:
            names.append(check_numbers(name, chosen, maps.shape[axis]))
            maps = np.take(maps, names[-1], axis=axis)
    return maps.reshape((1,) * (4 - maps.ndim) + maps.shape), names


def check_numbers(name, chosen, count):
    """Give a choice of layers or heads as a list of different int."""
    if chosen is None:
        return list(range(count))
    numbers = np.atleast_1d(np.asarray(chosen, dtype=object)).tolist()
    good = [
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) and 0 <= n < count
        for n in numbers
    ]
    if not all(good) or not numbers or len(set(numbers)) < len(numbers):
        raise BertError(
            f"{name} = {short(chosen)}, allowed: different numbers "
            f"from 0 to {count - 1}"
        )
    return [int(n) for n in numbers]


def check_size(probs):
    """Refuse what is too large for one screen or one page."""
    cure = "choose fewer with layers= and heads=, or take a shorter text"
    if max(probs.shape[2:]) > MOST_TOKENS:
        raise BertError(
            f"tokens has {max(probs.shape[2:])} entries to show, at most "
            f"{MOST_TOKENS} fit; {cure} (crop=True leaves out padding)"
        )
    if probs.size > MOST_VALUES:
        raise BertError(
            f"probs has {probs.size:,} values to show, at most "
            f"{MOST_VALUES:,} fit; {cure}"
        )


def draw_picture(maps, tokens, names, title, **choices):
    """Draw the figure that goes with the viewer, maps (L, A, T, T)."""
    mean = choices["mean"] or ""
    count = [
        1 if axis in mean else n for axis, n in zip(("layers", "heads"), maps.shape)
    ]
    if count == [1, 1]:
        maps = maps if "layers" in mean else maps[0]
        maps = maps if "heads" in mean else maps[..., 0, :, :]
        lines = "\n".join(line for line in (title, first_place(names)) if line)
        return plot_attention(maps, tokens, title=lines, **choices)
    if count[0] == 1 and names[0] is None and not mean:
        figure = plot_heads(maps[0], tokens, title=title, **choices)
        for ax, head in zip(figure.axes, names[1]):
            ax.set_title(f"head {head}", fontsize=AXIS_SIZE)
    else:
        figure = plot_model(maps, tokens, title=title, **choices)
        for axis, numbers in zip((figure.axes[0].yaxis, figure.axes[0].xaxis), names):
            if numbers is not None:
                renumber(axis, numbers)
    figure.description = renumbered(figure.description, names)
    return figure


def renumber(axis, numbers):
    """Write these numbers at the places 0, 1, 2, ... of an axis."""
    axis.set_major_formatter(lambda place, _: str(numbers[round(place)]))


def renumbered(description, names):
    """Name the layer and head of a description by their own numbers.

    >>> renumbered("to cat (key 1), head 0; cat", [None, [5, 7]])
    'to cat (key 1), head 5; cat'
    """
    numbers = dict(zip(("layer", "head"), names))

    def own(place):
        name, i = place.groups()
        return f", {name} {(numbers[name] or range(int(i) + 1))[int(i)]}"

    return re.sub(r", (layer|head) (\d+)(?=(?:, head \d+)?;)", own, description)


def first_place(names):
    """Say which layer and head come first, as far as they have numbers."""
    return ", ".join(
        f"{name} {numbers[0]}"
        for name, numbers in zip(("layer", "head"), names)
        if numbers
    )


def draw_table(shown, names, power):
    """Give the HTML of the first map: all of it, or its strongest keys."""
    probs = shown.probs[0, 0]
    lines = [line for line in (first_place(names), *shown.notes) if line]
    if max(probs.shape) <= MOST_NUMBERS:
        return map_html(probs, shown, lines=lines, power=power)
    order = np.argsort(-probs, axis=1, kind="stable")[:, :STRONGEST]
    colour = cell_colours(probs, power)
    keys = [escape(token_text(key)) for key in shown.keys]
    rows = []
    for i, query in enumerate(shown.queries):
        cells = "".join(
            f'<td style="background:{colour[i][j][0]};color:{colour[i][j][1]}">'
            f"<bdi>{keys[j]}</bdi>: {probs[i, j]:.2f}</td>"
            for j in order[i]
        )
        name = escape(token_text(query))
        rows.append(f'<tr><th style="{QUERY_STYLE}"><bdi>{name}</bdi></th>{cells}</tr>')
    return table_html(rows, [*lines, f"The {STRONGEST} strongest keys of each query"])


def pack_maps(shown, special, fixed):
    """Give prepared maps as the viewer reads them.

    Parameters
    ----------
    shown : Prepared
        With probs of shape (L, A, Tq, Tk).
    special : str
        The choice to begin with.
    fixed : bool
        Whether the maps are as `special` makes them already.

    Returns
    -------
    dict
        "values" holds the probabilities as bytes round(255 p), "shares"
        what each query gives to tokens other than [CLS] and [SEP] as
        two bytes round(65535 p), low byte first; both in base64.
    """
    kept = [key not in ENDS for key in shown.keys]
    fixed = fixed or all(kept) or not any(kept)
    shares = np.zeros(0) if fixed else shown.probs[..., kept].sum(axis=-1)
    masked = (
        ""
        if shown.visible.all()
        else "".join("01"[not cell] for cell in shown.visible.flat)
    )
    return {
        "shape": shown.probs.shape,
        "masked": masked,
        "remarks": shown.notes,
        "special": "show" if fixed else special,
        "choices": {} if fixed else SPECIAL_CHOICES,
        "queries": [token_text(token) for token in shown.queries],
        "keys": [token_text(token) for token in shown.keys],
        "values": encode(shown.probs, 255, "u1"),
        "shares": encode(shares, 65535, "<u2"),
    }


def encode(probs, scale, dtype):
    """Give probabilities as base64 of whole numbers round(scale * p)."""
    numbers = np.rint(np.clip(probs, 0, 1) * scale).astype(dtype)
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def fixed_data(power):
    """Give what the viewer needs to know besides the maps."""
    places = colours.attention_norm(power)(np.arange(256) / 255)
    shades = colours.attention_colour_map()(places)
    return {
        "markup": f"<style>{read('viewer.css')}</style>{read('viewer.html')}",
        "colours": "".join(to_hex(shade)[1:] for shade in shades),
        "dark": "".join(
            "01"[colours.text_colour(shade[:3]) == "black"] for shade in shades
        ),
        "scale": "attention"
        if power == 1
        else f"attention p, colour at p ** {power:g}:",
        "grey": colours.MASKED.lower(),
        "ends": ENDS,
        "notes": SPECIAL_NOTES,
        "queryLabel": QUERY_LABEL,
        "keyLabel": KEY_LABEL,
        "rounding": ROUNDING,
    }


def read(name):
    """Read a file beside this one, colours filled in, without indents."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    text = "".join(f"{line.strip()}\n" for line in text.splitlines())
    if name.endswith(".css"):
        text = Template(text).substitute(
            query=colours.QUERY,
            key=colours.KEY,
            masked=colours.MASKED,
            hatch=colours.HATCH,
        )
    return text


def script_json(data):
    r"""Write data as JSON that can stand inside a script.

    >>> script_json({"token": "</script>"})
    '{"token": "\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=True)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"})


def picture_html(figure):
    """Give a figure as an image with its description."""
    png = base64.b64encode(figure._repr_png_()).decode("ascii")
    return (
        f'<img alt="{escape(figure.description)}" style="max-width:100%" '
        f'src="data:image/png;base64,{png}">'
    )


def viewer_html(still, data):
    """Give what is shown without script, then the script of the viewer."""
    name = f"attention-{uuid.uuid4().hex}"
    return (
        f'<div id="{name}">\n{still}\n</div>\n<script>(() => {{\n'
        f"{read('viewer.js')}"
        f'startViewer(document.getElementById("{name}"), {data});\n}})();</script>'
    )
