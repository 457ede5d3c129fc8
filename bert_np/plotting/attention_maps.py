"""Pictures of attention: one head, the heads of a layer, the whole model."""

import math

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.colours import KEY, QUERY, attention_norm
from bert_np.plotting.drawing import (
    add_colour_bar, block_notes, check_ax, check_decimals, draw_map,
    write_labels, write_numbers, write_sums)
from bert_np.plotting.figure import AXIS_SIZE, add_title, new_figure
from bert_np.plotting.labels import key_margin, token_labels, widest
from bert_np.plotting.preparation import check_maps, prepare

QUERY_STYLE = {"fontsize": AXIS_SIZE, "color": QUERY}
KEY_STYLE = {"fontsize": AXIS_SIZE, "color": KEY}
QUERY_LABEL = "query: the token that looks"
KEY_LABEL = "key: the token looked at"
MOST_NUMBERS = 12  # tokens up to which the cells carry numbers


def plot_attention(probs, tokens, *, power=1.0, decimals=2, title=None,
                   colour_bar=True, ax=None, **choices):
    """Draw the attention map of one head.

    Row i shows how token i spreads its attention over the tokens. The
    number at the right of a row is its sum, the number below a column
    the sum of the column. Up to 12 tokens the cells carry their values.
    Masked cells are hatched, and grey where they are exactly 0.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
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
        attention_mask, visible, crop, special, merge_words: see
        `prepare`.

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
    labels = token_labels(data.tokens)
    side = min(7.0, max(2.8, 0.56 * len(labels))) if ax is None else check_ax(ax)
    notes = [*data.notes, *block_notes(len(labels), side)]
    if ax is None:
        ax = new_map_axes(labels, side, title, notes)
    else:
        add_title(ax, title, notes, side)
    image = draw_map(ax, data.probs, data.visible, norm, side)
    label_map(ax, labels, side)
    write_sums(ax, data.probs, side, decimals)
    if len(labels) <= MOST_NUMBERS:
        write_numbers(image, data.probs, side, decimals)
    if colour_bar:
        add_colour_bar(image, ax, power)
    return ax.figure.figure


def plot_heads(probs, tokens, *, power=1.0, title=None, **choices):
    """Draw the attention maps of all heads of one layer, a panel each.

    Parameters
    ----------
    probs : array of shape (A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    **choices
        attention_mask, visible, crop, special, merge_words: see
        `prepare`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    data = prepare(probs, tokens, 3, **choices)
    norm = attention_norm(power)
    labels = token_labels(data.tokens)
    heads = len(data.probs)
    columns = math.ceil(math.sqrt(heads))
    side = min(3.5, 9.0 / columns, max(2.0, 0.56 * len(labels)))
    notes = [*data.notes, *block_notes(len(labels), side)]
    panels = new_panels(heads, columns, labels, side, title, notes)
    for head, ax in enumerate(panels):
        image = draw_map(ax, data.probs[head], data.visible, norm, side)
        ax.set_title(f"head {head}", fontsize=AXIS_SIZE)
        write_labels(ax.xaxis, labels if head + columns >= heads else [], side)
        write_labels(ax.yaxis, labels if head % columns == 0 else [], side)
    add_colour_bar(image, panels, power)
    return image.figure


def plot_model(probs, tokens, *, power=1.0, title=None, **choices):
    """Draw the attention maps of all heads of all layers as thumbnails.

    Parameters
    ----------
    probs : list of L arrays of shape (A, T, T), or one (L, A, T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
    power : float
        A probability p has the colour at p ** power of the scale 0..1.
    title : str, optional
    **choices
        attention_mask, visible, crop, special, merge_words: see
        `prepare`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    data = prepare(probs, tokens, 4, **choices)
    norm = attention_norm(power)
    layers, heads = data.probs.shape[:2]
    side = min(1.5, 9.0 / heads, 10.0 / layers)
    notes = [*data.notes,
             f"each panel: queries down, keys across, {span(data.tokens)}",
             *block_notes(len(data.tokens), side)]
    figure = new_figure(max(4.5, heads * side + 1.4),
                        max(2.0, layers * side) + 0.6, title, notes)
    ax = figure.add_subplot()
    for layer, head in np.ndindex(layers, heads):
        image = draw_map(ax, data.probs[layer, head], data.visible, norm, side,
                         centre=(head, layer), size=0.92)
    label_grid(ax, layers, heads, side)
    add_colour_bar(image, ax, power)
    return figure


def new_map_axes(labels, side, title, notes):
    """Make the figure of one map and give its Axes; side in inches."""
    figure = new_figure(side + widest(labels) + 2.0,
                        side + key_margin(labels, side) + 1.0, title, notes)
    return figure.add_subplot()


def new_panels(count, columns, labels, side, title, notes):
    """Make the figure of one layer and give its Axes; side in inches."""
    rows = math.ceil(count / columns)
    figure = new_figure(columns * (side + 0.08) + widest(labels) + 1.2,
                        rows * (side + 0.28) + key_margin(labels, side) + 0.3,
                        title, notes)
    figure.supxlabel(KEY_LABEL, **KEY_STYLE)
    figure.supylabel(QUERY_LABEL, **QUERY_STYLE)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[count:]:
        spare.remove()
    return list(panels[:count])


def label_map(ax, labels, side):
    """Write the tokens at the top and the left of one map, as in a table."""
    write_labels(ax.xaxis, labels, side)
    write_labels(ax.yaxis, labels, side)
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
    ax.set_ylabel(QUERY_LABEL, **QUERY_STYLE)


def label_grid(ax, layers, heads, side):
    """Number the layers and heads of a grid of maps, each `side` inches."""
    ax.set(xlim=(-0.5, heads - 0.5), ylim=(layers - 0.5, -0.5))
    write_labels(ax.xaxis, [str(head) for head in range(heads)], heads * side)
    write_labels(ax.yaxis, [str(layer) for layer in range(layers)], layers * side)
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("head", fontsize=AXIS_SIZE)
    ax.set_ylabel("layer", fontsize=AXIS_SIZE)
    ax.spines[:].set_visible(False)


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
    *place, query, key = np.unravel_index(np.argmax(probs), probs.shape)
    whose = ["one head", "{} heads of one layer", "{} layers of {} heads"]
    names = ["layer", "head"][4 - probs.ndim:]
    where = "".join(f", {name} {i}" for name, i in zip(names, place))
    received = probs.sum(axis=tuple(range(probs.ndim - 1)))
    top = np.argmax(received)
    labels = token_labels(tokens)
    return (f"Attention of {whose[probs.ndim - 2].format(*probs.shape)} over "
            f"{span(tokens)}: the strongest is {probs.max():.2f}, from "
            f"{labels[query]} (query {query}) to {labels[key]} (key {key}){where}; "
            f"{labels[top]} (key {top}) gets the most, "
            f"{received[top] / max(received.sum(), 1e-9):.0%} of all.")
