"""Pictures of attention: one head, the heads of a layer, the whole model."""

import math

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.colours import KEY, QUERY, attention_norm
from bert_np.plotting.drawing import (
    add_colour_bar,
    block_notes,
    check_ax,
    check_decimals,
    draw_map,
    edges,
    write_labels,
    write_numbers,
    write_sums,
)
from bert_np.plotting.figure import AXIS_SIZE, add_title, finish, new_figure
from bert_np.plotting.labels import key_margin, token_labels, widest
from bert_np.plotting.preparation import check_maps, prepare

QUERY_STYLE = {"fontsize": AXIS_SIZE, "color": QUERY}
KEY_STYLE = {"fontsize": AXIS_SIZE, "color": KEY}
QUERY_LABEL = "query: the token that looks"
KEY_LABEL = "key: the token looked at"
MOST_NUMBERS = 12  # tokens up to which the cells carry numbers


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
    number at the right of a row is its sum, the number below a column
    the sum of the column. Up to 12 tokens the cells carry their values.
    Masked cells are hatched, and grey where they are exactly 0.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1. With
        `mean`, also the axes that it takes away, such as (A, T, T).
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    decimals : int
        Digits after the point of the numbers, 1 to 6.
    title : str, optional
    colour_bar : bool
    ax : matplotlib Axes, optional
        Where to draw. With an Axes made by pyplot, end the cell with a
        semicolon, or the notebook shows the figure twice.
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    data = prepare(probs, tokens, 2, **choices)
    norm = attention_norm(power)
    check_decimals(decimals)
    longest = max(data.probs.shape)
    side = min(7.0, max(2.8, 0.56 * longest)) if ax is None else check_ax(ax)
    notes = [*data.notes, *block_notes(longest, side)]
    if ax is None:
        ax = new_map_axes(data, side, title, notes)
    else:
        add_title(ax, title, notes, side)
    image = draw_map(ax, data.probs, data.visible, norm, side)
    label_map(ax, data, side)
    write_sums(ax, data.probs, side, decimals)
    if longest <= MOST_NUMBERS:
        write_numbers(image, data.probs, side, decimals)
    if colour_bar:
        add_colour_bar(image, ax, power)
    return finish(ax, sentence_about(data))


def plot_heads(probs, tokens, *, power=1.0, title=None, **choices):
    """Draw the attention maps of all heads of one layer, a panel each.

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
        segment_ids, between: see `prepare`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    data = prepare(probs, tokens, 3, **choices)
    norm = attention_norm(power)
    heads, *shape = data.probs.shape
    columns = math.ceil(math.sqrt(heads))
    side = min(3.5, 9.0 / columns, max(2.0, 0.56 * max(shape)))
    notes = [*data.notes, *block_notes(max(shape), side)]
    panels = new_panels(heads, columns, data, side, title, notes)
    name = "layer" if data.mean == "heads" else "head"
    height, width = edges(shape, side)
    rows, keys = token_labels(data.queries), token_labels(data.keys)
    for head, ax in enumerate(panels):
        image = draw_map(ax, data.probs[head], data.visible, norm, side)
        ax.set_title(f"{name} {head}", fontsize=AXIS_SIZE)
        write_labels(ax.xaxis, keys if head + columns >= heads else [], width)
        write_labels(ax.yaxis, rows if head % columns == 0 else [], height)
    add_colour_bar(image, panels, power)
    return finish(ax, sentence_about(data))


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
        segment_ids, between: see `prepare`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    data = prepare(only_sentence(probs), tokens, 4, **choices)
    norm = attention_norm(power)
    layers, heads, *shape = data.probs.shape
    side = min(1.5, 9.0 / heads, 10.0 / layers)
    notes = [*data.notes, spans(data), *block_notes(max(shape), side)]
    figure = new_figure(
        max(4.5, heads * side + 1.4), max(2.0, layers * side) + 0.6, title, notes
    )
    ax = figure.add_subplot()
    for layer, head in np.ndindex(layers, heads):
        image = draw_map(
            ax,
            data.probs[layer, head],
            data.visible,
            norm,
            side,
            centre=(head, layer),
            size=0.92,
        )
    label_grid(ax, layers, heads, side, data.mean or "")
    add_colour_bar(image, ax, power)
    return finish(ax, sentence_about(data))


def only_sentence(probs):
    """Take the sentence out of L layers of a batch of one sentence."""
    batches = isinstance(probs, (list, tuple)) and {
        np.shape(layer)[:-3] for layer in probs
    }
    return [layer[0] for layer in probs] if batches == {(1,)} else probs


def new_map_axes(data, side, title, notes):
    """Make the figure of one map and give its Axes; side in inches."""
    height, width = edges(data.probs.shape, side)
    keys = token_labels(data.keys)
    figure = new_figure(
        max(width, 2.4) + widest(token_labels(data.queries)) + 2.0,
        max(height, 2.0) + key_margin(keys, width) + 1.0,
        title,
        notes,
    )
    return figure.add_subplot()


def new_panels(count, columns, data, side, title, notes):
    """Make the figure of one layer and give its Axes; side in inches."""
    rows = math.ceil(count / columns)
    height, width = edges(data.probs.shape[-2:], side)
    margin = key_margin(token_labels(data.keys), width)
    figure = new_figure(
        max(columns * (width + 0.08), 2.4) + widest(token_labels(data.queries)) + 1.2,
        max(rows * (height + 0.28), 2.2) + margin + 0.9,
        title,
        notes,
    )
    figure.supxlabel(KEY_LABEL, **KEY_STYLE)
    figure.supylabel(QUERY_LABEL, **QUERY_STYLE)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[count:]:
        spare.remove()
    return list(panels[:count])


def label_map(ax, data, side):
    """Write the tokens at the top and the left of one map, as in a table."""
    height, width = edges(data.probs.shape, side)
    write_labels(ax.xaxis, token_labels(data.keys), width)
    write_labels(ax.yaxis, token_labels(data.queries), height)
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
    ax.set_ylabel(QUERY_LABEL, **QUERY_STYLE)


def label_grid(ax, layers, heads, side, mean=""):
    """Number the layers and heads of a grid of maps, each `side` inches."""
    across = ["mean"] if "heads" in mean else [str(head) for head in range(heads)]
    down = ["mean"] if "layers" in mean else [str(layer) for layer in range(layers)]
    ax.set(xlim=(-0.5, heads - 0.5), ylim=(layers - 0.5, -0.5))
    write_labels(ax.xaxis, across, heads * side)
    write_labels(ax.yaxis, down, layers * side)
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("head", fontsize=AXIS_SIZE)
    ax.set_ylabel("layer", fontsize=AXIS_SIZE)
    ax.spines[:].set_visible(False)


def spans(data):
    """Say which tokens the panels of a model show."""
    if data.queries == data.keys:
        return f"each panel: queries down, keys across, {span(data.tokens)}"
    return (
        f"each panel: queries down, {span(data.queries)}; "
        f"keys across, {span(data.keys)}"
    )


def span(tokens):
    """Say how many tokens there are, from which to which.

    >>> span(["[CLS]", "cat", "[SEP]"])
    '3 tokens, [CLS] to [SEP]'
    """
    if len(tokens) == 1:
        return f"1 token, {token_labels(tokens)[0]}"
    first, last = token_labels([tokens[0], tokens[-1]])
    return f"{len(tokens)} tokens, {first} to {last}"


def describe_attention(probs, tokens):
    """Say in one sentence what a picture of these maps shows.

    Parameters
    ----------
    probs : array of shape (T, T), (A, T, T) or (L, A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str

    Returns
    -------
    str
        Usable as the alternative text of the picture.

    Raises
    ------
    BertError

    >>> probs = [[0.75, 0.25], [0.5, 0.5]]
    >>> print(describe_attention(probs, ["cat", "sat"]))
    Attention of one head over 2 tokens, cat to sat: the strongest is 0.75,
    from cat (query 0) to cat (key 0); cat (key 0) gets the most, 62% of
    all.
    """
    probs, tokens = check_maps(probs, tokens)
    if probs.ndim > 4:
        raise BertError(f"probs has shape {probs.shape}, expected 2 to 4 axes")
    whose = ["of one head", "of {} heads of one layer", "of {} layers of {} heads"]
    return sentence(probs, tokens, tokens, whose[probs.ndim - 2].format(*probs.shape))


def sentence_about(data):
    """Describe prepared maps, with the choices that made them."""
    names = ["layers", "heads"][4 - data.probs.ndim :]
    layers_heads = dict(zip(names, data.probs.shape))
    if data.mean == "heads" and data.probs.ndim == 3:
        layers_heads = {"layers": len(data.probs)}
    if data.mean is None:
        words = {
            2: "of one head",
            3: "of {heads} heads of one layer",
            4: "of {layers} layers of {heads} heads",
        }[data.probs.ndim]
    else:
        words = "".join(
            f" in each of {n} {name}"
            for name, n in layers_heads.items()
            if name not in data.mean
        )
        words = f"as the mean over {data.mean}{words}"
    notes = [note for note in data.notes if not note.startswith("mean")]
    return sentence(
        data.probs,
        data.queries,
        data.keys,
        words.format(**layers_heads),
        f" ({'; '.join(notes)})" if notes else "",
        ["" if n in (data.mean or "") else n for n in layers_heads],
    )


def sentence(probs, queries, keys, whose, notes="", axes=("layers", "heads")):
    """Describe maps of shape (..., Tq, Tk) by their largest values."""
    *place, query, key = np.unravel_index(np.argmax(probs), probs.shape)
    names = axes[len(axes) - len(place) :]
    where = "".join(f", {name[:-1]} {i}" for name, i in zip(names, place) if name)
    received = probs.sum(axis=tuple(range(probs.ndim - 1)))
    top = np.argmax(received)
    rows, columns = token_labels(queries), token_labels(keys)
    over = span(queries) if queries == keys else f"{span(queries)}, on {span(keys)}"
    return (
        f"Attention {whose} over {over}{notes}: the strongest is "
        f"{probs.max():.2f}, from {rows[query]} (query {query}) to "
        f"{columns[key]} (key {key}){where}; {columns[top]} (key {top}) gets "
        f"the most, {received[top] / max(received.sum(), 1e-9):.0%} of all."
    )
