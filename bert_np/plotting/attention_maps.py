"""Pictures of attention: one head, the heads of a layer, the whole model."""

import math

import numpy as np

from bert_np.errors import BertError, require_bool
from bert_np.plotting.checks import check_integer, check_probs
from bert_np.plotting.colours import KEY, QUERY, attention_norm
from bert_np.plotting.drawing import (
    add_colour_bar,
    axes_to_draw_on,
    block_notes,
    draw_map,
    edges,
    labels_on_top,
    shorter_side,
    write_labels,
    write_numbers,
    write_sums,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import key_margin, token_labels, widest
from bert_np.plotting.preparation import prepare_maps

QUERY_STYLE = {"fontsize": AXIS_SIZE, "color": QUERY}
KEY_STYLE = {"fontsize": AXIS_SIZE, "color": KEY}
QUERY_LABEL = "query: the token that looks"
KEY_LABEL = "key: the token looked at"
MOST_NUMBERS = 12  # tokens up to which the cells carry numbers


@in_own_style
def plot_attention(
    probs,
    tokens,
    *,
    power=1.0,
    decimals=2,
    title=None,
    colour_bar=True,
    ax=None,
    **choices,
):
    """Draw the attention map of one head.

    Row i shows how token i spreads its attention over the tokens. The
    number to the right of a row is its sum, the number below a column
    the sum of the column. Up to 12 tokens the cells carry their values.
    Masked cells are hatched, and grey if they are exactly 0.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1. With
        `mean`, also the axes that it removes, such as (A, T, T).
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    decimals : int
        Decimal places of the numbers, 1 to 6.
    title : str, optional
    colour_bar : bool
    ax : matplotlib Axes, optional
        Where to draw. With an Axes made by pyplot, end the cell with a
        semicolon, or the notebook shows the figure twice.
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_bool("colour_bar", colour_bar)
    data = prepare_maps(probs, tokens, 2, **choices)
    norm = attention_norm(power)
    check_integer("decimals", decimals, 1, 6)
    rows, keys, longest = *labels_of(data), max(data.probs.shape)
    side = min(7.0, max(2.8, 0.56 * longest)) if ax is None else shorter_side(ax)
    height, width = edges(data.probs.shape, side)
    wide = max(width, 2.4) + widest(rows) + 2.0
    high = max(height, 2.0) + key_margin(keys, width) + 1.0
    notes = [*data.notes, *block_notes(longest, side)]
    ax = axes_to_draw_on(ax, wide, high, title, notes)
    image = draw_map(ax, data.probs, data.visible, norm, side)
    write_labels(ax.xaxis, keys, width)
    write_labels(ax.yaxis, rows, height)
    labels_on_top(ax)
    ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
    ax.set_ylabel(QUERY_LABEL, **QUERY_STYLE)
    write_sums(ax, data.probs, side, decimals)
    if longest <= MOST_NUMBERS:
        write_numbers(image, data.probs, side, decimals)
    if colour_bar:
        add_colour_bar(image, ax, power)
    return finish(ax, describe_maps(data))


@in_own_style
def plot_heads(probs, tokens, *, power=1.0, title=None, **choices):
    """Draw the attention maps of all heads of one layer, one panel each.

    Parameters
    ----------
    probs : array of shape (A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1. With
        mean="layers" or "heads", of shape (L, A, T, T).
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    data = prepare_maps(probs, tokens, 3, **choices)
    norm = attention_norm(power)
    heads, *shape = data.probs.shape
    columns = math.ceil(math.sqrt(heads))
    side = min(3.5, 9.0 / columns, max(2.0, 0.56 * max(shape)))
    notes = [*data.notes, *block_notes(max(shape), side)]
    panels = new_panels(heads, columns, data, side, title, notes)
    name = "layer" if data.mean == "heads" else "head"
    height, width = edges(shape, side)
    rows, keys = labels_of(data)
    for head, ax in enumerate(panels):
        image = draw_map(ax, data.probs[head], data.visible, norm, side)
        ax.set_title(f"{name} {head}", fontsize=AXIS_SIZE)
        write_labels(ax.xaxis, keys if head + columns >= heads else [], width)
        write_labels(ax.yaxis, rows if head % columns == 0 else [], height)
    add_colour_bar(image, panels, power)
    return finish(ax, describe_maps(data))


@in_own_style
def plot_model(probs, tokens, *, power=1.0, title=None, **choices):
    """Draw the attention maps of all heads of all layers as thumbnails.

    Parameters
    ----------
    probs : list of L arrays of shape (A, T, T), or one (L, A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1. The
        list out["attention_probs"] of a batch of one sentence will do.
        One layer of a batch, (B, A, T, T), has as many axes as a model:
        it is drawn as if its sentences were layers.
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    data = prepare_maps(only_sentence(probs), tokens, 4, **choices)
    norm = attention_norm(power)
    layers, heads, *shape = data.probs.shape
    side = min(1.5, 9.0 / heads, 10.0 / layers)
    notes = [*data.notes, spans(data), *block_notes(max(shape), side)]
    wide, high = max(4.5, heads * side + 1.4), max(2.0, layers * side) + 0.6
    ax = new_figure(wide, high, title, notes).add_subplot()
    for layer, head in np.ndindex(layers, heads):
        cells, centre = data.probs[layer, head], (head, layer)
        image = draw_map(ax, cells, data.visible, norm, side, centre, size=0.92)
    label_grid(ax, layers, heads, side, data.mean or "")
    add_colour_bar(image, ax, power)
    return finish(ax, describe_maps(data))


def only_sentence(probs):
    """Take the sentence out of L layers of a batch of one sentence."""
    batches = isinstance(probs, (list, tuple)) and {
        np.shape(layer)[:-3] for layer in probs
    }
    return [layer[0] for layer in probs] if batches == {(1,)} else probs


def labels_of(data):
    """Return the labels of the rows and of the columns of prepared maps."""
    return token_labels(data.queries), token_labels(data.keys)


def new_panels(count, columns, data, side, title, notes):
    """Make the figure of one layer and return its Axes; side in inches."""
    rows = math.ceil(count / columns)
    height, width = edges(data.probs.shape[-2:], side)
    queries, keys = labels_of(data)
    wide = max(columns * (width + 0.08), 2.4) + widest(queries) + 1.2
    high = max(rows * (height + 0.28), 2.2) + key_margin(keys, width) + 0.9
    figure = new_figure(wide, high, title, notes)
    figure.supxlabel(KEY_LABEL, **KEY_STYLE)
    figure.supylabel(QUERY_LABEL, **QUERY_STYLE)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[count:]:
        spare.remove()
    return list(panels[:count])


def label_grid(ax, layers, heads, side, mean=""):
    """Number the layers and heads of a grid of maps, each `side` inches."""
    across = ["mean"] if "heads" in mean else [str(head) for head in range(heads)]
    down = ["mean"] if "layers" in mean else [str(layer) for layer in range(layers)]
    ax.set(xlim=(-0.5, heads - 0.5), ylim=(layers - 0.5, -0.5))
    write_labels(ax.xaxis, across, heads * side)
    write_labels(ax.yaxis, down, layers * side)
    labels_on_top(ax)
    ax.set_xlabel("head", fontsize=AXIS_SIZE)
    ax.set_ylabel("layer", fontsize=AXIS_SIZE)
    ax.spines[:].set_visible(False)


def spans(data):
    """Describe which tokens the panels of a model show."""
    down, across = span(data.queries), span(data.keys)
    if data.queries == data.keys:
        return f"each panel: queries down, keys across, {down}"
    return f"each panel: queries down, {down}; keys across, {across}"


def span(tokens):
    """Describe how many tokens there are, from which to which.

    >>> span(["[CLS]", "cat", "[SEP]"])
    '3 tokens, [CLS] to [SEP]'
    """
    first, last = token_labels([tokens[0], tokens[-1]])
    return (
        f"{len(tokens)} tokens, {first} to {last}"
        if tokens[1:]
        else f"1 token, {first}"
    )


def describe_attention(probs, tokens):
    """Describe in one sentence what a picture of these maps shows.

    Parameters
    ----------
    probs : array of shape (T, T), (A, T, T) or (L, A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str

    Returns
    -------
    str
        Usable as the alternative text of the picture.

    >>> probs = [[0.75, 0.25], [0.5, 0.5]]
    >>> print(describe_attention(probs, ["cat", "sat"]))
    Attention of one head over 2 tokens, cat to sat: the largest value is
    0.75, from cat (query 0) to cat (key 0); cat (key 0) gets the most
    attention, 62% of the total.
    """
    probs, tokens = check_probs(probs, tokens)
    if probs.ndim > 4:
        raise BertError(f"probs has shape {probs.shape}, expected 2 to 4 axes")
    return describe_maps(prepare_maps(probs, tokens, probs.ndim))


def describe_maps(data):
    """Describe prepared maps by their largest values, and the choices made."""
    axes = ["layers", "heads"][4 - data.probs.ndim :]
    if data.mean == "heads" and data.probs.ndim == 3:
        axes = ["layers"]
    rounded = data.probs.round(5)  # of equal ones, the first on every machine
    *place, query, key = np.unravel_index(rounded.argmax(), rounded.shape)
    where = "".join(
        f", {name[:-1]} {i}"
        for name, i in zip(axes, place)
        if name not in (data.mean or "")
    )
    notes = "; ".join(note for note in data.notes if not note.startswith("mean"))
    received = data.probs.sum(axis=tuple(range(data.probs.ndim - 1)))
    top = received.round(5).argmax()
    rows, columns = labels_of(data)
    over, on = span(data.queries), span(data.keys)
    return (
        f"{whose(dict(zip(axes, data.probs.shape)), data.mean)} over {over}"
        f"{'' if data.queries == data.keys else f' (queries) and {on} (keys)'}"
        f"{f' ({notes})' if notes else ''}: the largest value is "
        f"{data.probs.max():.2f}, from {rows[query]} (query {query}) to "
        f"{columns[key]} (key {key}){where}; {columns[top]} (key {top}) gets "
        f"the most attention, {received[top] / max(received.sum(), 1e-9):.0%} of the "
        "total."
    )


def whose(counts, mean):
    """Name the heads that maps belong to, counted as {"layers": 2, "heads": 3}."""
    if mean is None:
        names = [
            "one head",
            "{heads} heads of one layer",
            "{layers} layers of {heads} heads",
        ]
        return f"Attention of {names[len(counts)].format(**counts)}"
    each = [f" for each of {n} {x}" for x, n in counts.items() if x not in mean]
    return f"Mean attention of all {mean}{''.join(each)}"
