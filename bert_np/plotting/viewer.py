"""The interactive viewer: maps and tokens in, one piece of HTML out."""

import re
from dataclasses import dataclass

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
from bert_np.plotting.checks import check_probs
from bert_np.plotting.figure import (
    AXIS_SIZE,
    NotebookFigure,
    check_title,
    in_own_style,
    in_words,
)
from bert_np.plotting.html import Html, base64_text, image, join, tag, write_page
from bert_np.plotting.labels import token_text
from bert_np.plotting.preparation import ENDS, SPECIAL_NOTES, prepare_maps
from bert_np.plotting.scripts import read_part, script_json, with_script
from bert_np.plotting.table import (
    cell_colours,
    frame_html,
    map_html,
    query_row,
    sum_cells,
)

MOST_TOKENS = 512
MOST_VALUES = 600_000  # 12 x 12 heads of 64 tokens, two heads of 512
STRONGEST = 3  # keys of a row in the table of a long text
ROUNDING = (
    "Values are rounded to multiples of 1/255, so each is off by at most 1/510, "
    "about 0.002."
)
SCRIPTS = ("parts.js", "viewer.js")
SPECIAL_CHOICES = {
    "show": "shown",
    "hide": "hidden, rows unchanged",
    "renormalise": "hidden, rows sum to 1 again",
}


@dataclass(frozen=True)
class AttentionViewer:
    """A picture, a table and an interactive viewer of the same maps.

    Where scripts run, the viewer comes first and the rest folds below it;
    elsewhere, as in a notebook that is not trusted, picture and table stay.
    """

    figure: NotebookFigure
    table: Html
    data: str
    title: str
    keep: str = ""  # where the page keeps the choices for the next viewer

    def _repr_html_(self):
        png, words = self.figure.to_png(), self.figure.description
        picture = image(png, words, style="max-width:100%")
        still = join([picture, in_words(words), self.table], "\n")
        keep = script_json(self.keep)
        return with_script(still, SCRIPTS, "startViewer", self.data, keep)

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

    A map and lines from queries to keys show one head, or several at
    once, each in its own colour; thumbnails and sliders choose them.
    Tokens are chosen by pointer or keyboard, and a sentence states the
    values. A line separates the two texts of a pair, as [SEP] marks them.

    Parameters
    ----------
    probs : array of shape (T, T), (A, T, T) or (L, A, T, T), or a list
        of L arrays of shape (A, T, T). Rows are queries, columns are
        keys; each value from 0 to 1.
    tokens : list of T str
        At most 512. If there are more than 40, a sliding window shows 40
        queries and keys.
    layers, heads : list of int, optional
        Which to show; by default all.
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    special : "show", "hide" or "renormalise"
        What happens to [CLS] and [SEP] at first; a menu changes it.
    mean, between, **choices
        attention_mask, visible, crop, merge_words, segment_ids: see
        `prepare_maps`. With `between`, `special` cannot be changed.

    Returns
    -------
    AttentionViewer
        Shows itself in a notebook; `save(path)` writes a page.
    """
    check_title(title)
    maps, _ = check_probs(only_sentence(probs), tokens)
    maps, names = choose_maps(maps, tokens, layers, heads)
    choices |= {"mean": mean, "between": between}
    start = prepare_maps(maps, tokens, 4, special=special, **choices)
    shown = start if between else prepare_maps(maps, tokens, 4, **choices)
    check_size(shown.probs)
    names = [
        None if axis in (mean or "") else numbers
        for axis, numbers in zip(("layers", "heads"), names)
    ]
    choices |= {"power": power, "special": special}
    data = {
        "title": token_text(title or "Attention", 200),
        "layers": names[0],
        "heads": names[1],
        **pack_maps(shown, special, between is not None),
        **fixed_data(power),
    }
    figure = draw_picture(maps, tokens, names, title, **choices)
    table = table_beside(start, names, power)
    return AttentionViewer(figure, table, script_json(data), data["title"])


def choose_maps(maps, tokens, layers, heads):
    """Take the chosen layers and heads out of maps of two to four axes.

    Returns
    -------
    maps : array of shape (L, A, T, T)
    names : [list of int or None, list of int or None]
        The numbers of the layers and of the heads; None if the maps
        have no such axis.
    """
    if maps.ndim > 4:
        prepare_maps(maps, tokens, 4)  # says what is wrong
    names = []
    for name, chosen, axis in (("layers", layers, -4), ("heads", heads, -3)):
        if maps.ndim >= -axis:
            names.append(choose_numbers(name, chosen, maps.shape[axis]))
            maps = np.take(maps, names[-1], axis=axis)
        elif chosen is None:
            names.append(None)
        else:
            raise BertError(
                f"{name} = {short(chosen)}: probs has shape {maps.shape}, "
                f"without an axis of {name}"
            )
    return maps.reshape((1,) * (4 - maps.ndim) + maps.shape), names


def choose_numbers(name, chosen, count):
    """Return a choice of layers or heads as a list of different int."""
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
    """Check that maps fit one page."""
    if max(probs.shape[2:]) > MOST_TOKENS:
        raise BertError(
            f"tokens has {max(probs.shape[2:])} entries to show, at most "
            f"{MOST_TOKENS} fit: take a shorter text, leave out padding with "
            "crop=True, or draw each head with plot_attention"
        )
    if probs.size > MOST_VALUES:
        raise BertError(
            f"probs has {probs.size:,} values to show, at most {MOST_VALUES:,} fit: "
            "choose fewer with layers= and heads=, or take a shorter text"
        )


@in_own_style
def draw_picture(maps, tokens, names, title, **choices):
    """Draw the figure that goes with the viewer, maps (L, A, T, T)."""
    mean = choices["mean"] or ""
    count = [1 if x in mean else n for x, n in zip(("layers", "heads"), maps.shape)]
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
    """Name the layer and head that come first, as far as they have numbers."""
    pairs = zip(("layer", "head"), names)
    return ", ".join(f"{name} {numbers[0]}" for name, numbers in pairs if numbers)


def table_beside(shown, names, power):
    """Write the first map as a table: all of it, or its strongest keys."""
    probs = shown.probs[0, 0]
    lines = [line for line in (first_place(names), *shown.notes) if line]
    if max(probs.shape) <= MOST_NUMBERS:
        return map_html(probs, shown, sum_cells(probs), lines, power)
    colour = cell_colours(probs, power)
    rows = []
    for i, query in enumerate(shown.queries):
        cells = []
        for j in np.argsort(-probs[i], kind="stable")[:STRONGEST]:
            style = "background:{};color:{}".format(*colour[i][j])
            key = tag("bdi", token_text(shown.keys[j]))
            cells.append(tag("td", key, f": {probs[i, j]:.2f}", style=style))
        rows.append(query_row(token_text(query), cells))
    return frame_html(rows, [*lines, f"The {STRONGEST} strongest keys of each query"])


def pack_maps(shown, special, fixed):
    """Return prepared maps as the viewer reads them.

    Parameters
    ----------
    shown : Prepared
        With probs of shape (L, A, Tq, Tk).
    special : str
        The choice to begin with.
    fixed : bool
        Whether `special` is applied already, and cannot be changed.

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
    masked = "".join("01"[not cell] for cell in shown.visible.flat)
    return {
        "shape": shown.probs.shape,
        "masked": masked if "1" in masked else "",
        "sentences": {
            "queries": sentence_numbers(shown.queries),
            "keys": sentence_numbers(shown.keys),
        },
        "remarks": shown.notes,
        "special": "show" if fixed else special,
        "choices": {} if fixed else SPECIAL_CHOICES,
        "queries": [token_text(token) for token in shown.queries],
        "keys": [token_text(token) for token in shown.keys],
        "values": pack_numbers(shown.probs, 255, "u1"),
        "shares": pack_numbers(shares, 65535, "<u2"),
    }


def sentence_numbers(tokens):
    """Number the texts of a pair; padding belongs to the last of them.

    >>> sentence_numbers(["[CLS]", "a", "[SEP]", "b", "[SEP]", "[PAD]"])
    [0, 0, 0, 1, 1, 1]
    """
    numbers, number = [], 0
    for before, token in zip(["", *tokens], tokens):
        number += before == "[SEP]" and token != "[PAD]"
        numbers.append(number)
    return numbers


def pack_numbers(probs, scale, dtype):
    """Return probabilities as base64 of whole numbers round(scale * p)."""
    numbers = np.rint(np.clip(probs, 0, 1) * scale).astype(dtype)
    return base64_text(numbers.tobytes())


def fixed_data(power):
    """Return what the viewer needs to know besides the maps."""
    places = colours.attention_norm(power)(np.arange(256) / 255)
    shades = colours.attention_colour_map()(places)
    dark = ["01"[colours.text_colour(shade[:3]) == "black"] for shade in shades]
    scale = "attention" if power == 1 else f"attention p, colour at p ** {power:g}:"
    style = "".join(map(read_part, ("host.css", "parts.css", "viewer.css")))
    return {
        "markup": f"<style>{style}</style>{read_part('viewer.html')}",
        "colours": "".join(to_hex(shade)[1:] for shade in shades),
        "dark": "".join(dark),
        "scale": scale,
        "grey": colours.MASKED[1:],
        "headColours": colours.HEADS,
        "ends": ENDS,
        "notes": SPECIAL_NOTES,
        "labels": [QUERY_LABEL, KEY_LABEL],
        "rounding": ROUNDING,
    }
