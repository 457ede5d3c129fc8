"""Attention as lines between two columns of tokens."""

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
    describe_maps,
    labels_of,
)
from bert_np.plotting.checks import check_integer, check_positive
from bert_np.plotting.colours import FAINT, NEUTRAL, QUERY, attention_norm
from bert_np.plotting.drawing import axes_to_draw_on, shorter_side, write
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import LINE, text_style, thin, widest
from bert_np.plotting.preparation import prepare_maps

MOST_LINES = 5000
MOST_VALUES = 10  # keys that carry the probability of a highlighted query


@in_own_style
def plot_links(
    probs, tokens, *, query=None, mass=0.9, power=1.0, title=None, ax=None, **choices
):
    """Draw the attention of one head as lines from queries to keys.

    The thicker and darker a line, the larger its probability. For each
    query only the largest are drawn, as many as together carry `mass` of
    its row. If there are more than 5,000 lines, the weakest are left out
    and the title says so.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
    query : int, optional
        The position of a query to highlight, among the rows that are
        left after the choices. Its probabilities are written at the
        keys, and the lines of the others are faint.
    mass : float
        Above 0, up to 1. 1 draws every line above 0.
    power : float
        A probability p has the strength p ** power.
    title : str, optional
    ax : matplotlib Axes, optional
    **choices
        attention_mask, visible, mean, crop, merge_words, special,
        segment_ids, between: see `prepare_maps`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    data = prepare_maps(probs, tokens, 2, **choices)
    norm, mass = attention_norm(power), check_positive("mass", mass, 1)
    if query is not None:
        query = check_integer("query", query, 0, len(data.queries) - 1)
    chosen, cut = limit_lines(data.probs, strongest(data.probs, mass), query)
    notes = [*data.notes, f"per query the largest, up to {mass:.0%} of its row", *cut]
    height = min(9.0, max(2.0, 1.3 * LINE * max(data.probs.shape)))
    if ax is not None:
        height = shorter_side(ax)
    wide = 2 * max(map(widest, labels_of(data))) + 4.0
    ax = axes_to_draw_on(ax, wide, height + 0.5, title, notes)
    draw_links(ax, data.probs, chosen, query, norm)
    label_links(ax, data, query, height)
    return finish(ax, describe_links(data, query))


def strongest(probs, mass):
    """Mark the fewest values of each row that carry `mass` of its sum.

    >>> strongest(np.array([[0.6, 0.3, 0.1]]), 0.8)
    array([[ True,  True, False]])
    """
    order = np.argsort(-probs, axis=1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=1).astype(float)
    before = np.cumsum(ranked, axis=1) - ranked
    enough = mass * ranked.sum(axis=1, keepdims=True) - 1e-9
    chosen = np.zeros(probs.shape, dtype=bool)
    np.put_along_axis(chosen, order, (before < enough) & (ranked > 0), axis=1)
    return chosen


def limit_lines(probs, chosen, query):
    """Keep the strongest lines and those of the highlighted query.

    Returns
    -------
    chosen : bool array of shape (Tq, Tk)
    notes : list of str
        What was left out, if anything.
    """
    count = int(chosen.sum())
    if count <= MOST_LINES:
        return chosen, []
    least = np.partition(probs[chosen], count - MOST_LINES)[count - MOST_LINES]
    kept = chosen & (probs > least)
    if query is not None:
        kept[query] = chosen[query]
    return kept, [f"of {count:,} lines those above {least:.2g}"]


def draw_links(ax, probs, chosen, query, norm):
    """Draw a line for each chosen value, the weakest first."""
    rows, columns = np.nonzero(chosen)
    own = np.full(len(rows), query is None) | (rows == query)
    order = np.lexsort((probs[rows, columns], own))
    rows, columns, own = rows[order], columns[order], own[order]
    strength = np.asarray(norm(np.clip(probs[rows, columns], 0, 1)))
    strong = NEUTRAL if query is None else QUERY
    line = np.where(own[:, None], to_rgba(strong), to_rgba(FAINT))
    line[:, 3] = np.where(own, 0.25 + 0.75 * strength, 0.5 * strength)
    ends = np.stack([np.zeros(len(rows)), rows, np.ones(len(rows)), columns], axis=1)
    ends = ends.reshape(-1, 2, 2)
    ax.add_collection(LineCollection(ends, colors=line, linewidths=0.5 + 3 * strength))


def label_links(ax, data, query, inches):
    """Write the queries at the left, the keys at the right."""
    longest = max(data.probs.shape)
    ax.set(xlim=(-0.02, 1.02), ylim=(longest - 0.5, -0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    room = inches / longest
    rows, keys = labels_of(data)
    own, best = [], []
    if query is not None:
        own, best = [query], np.argsort(-data.probs[query], kind="stable")[:MOST_VALUES]
    for i in places(own, len(rows), room):
        weight = "bold" if i == query else "normal"
        write(ax, -0.03, i, rows[i], ha="right", fontweight=weight)
    for i in places(best, len(keys), room):
        values = [] if query is None else [f"{data.probs[query, i]:.2f}"]
        for text, shift in zip([*values, keys[i]], (0, 30)):
            style = {"annotation_clip": False, "va": "center", **text_style([text])}
            at = {"xy": (1.03, i), "xytext": (shift, 0), "textcoords": "offset points"}
            ax.annotate(text, **at, **style)
    top = -0.5 - 0.1 / room
    query_label, key_label = (x.replace(": ", ":\n") for x in (QUERY_LABEL, KEY_LABEL))
    ax.text(0, top, query_label, ha="right", va="bottom", **QUERY_STYLE)
    ax.text(1, top, key_label, ha="left", va="bottom", **KEY_STYLE)


def places(wanted, count, room):
    """Choose which of `count` labels to write, the wanted ones first.

    >>> places([5], 6, 1.0), places([5], 6, 0.1)
    ([5, 0, 1, 2, 3, 4], [5, 0])
    """
    chosen = []
    for i in (*map(int, wanted), *thin(count, room * count)):
        if all(abs(i - other) * room >= LINE for other in chosen):
            chosen.append(i)
    return chosen


def describe_links(data, query):
    """Describe what the lines show; of one query, if one is highlighted."""
    if query is None:
        return describe_maps(data)
    rows, keys = labels_of(data)
    probs = data.probs[query]
    best = np.argsort(-probs, kind="stable")[:3]
    named = ", ".join(f"{keys[i]} (key {i}) {probs[i]:.2f}" for i in best)
    return (
        f"Lines from {len(rows)} queries to {len(keys)} keys, with "
        f"{rows[query]} (query {query}) highlighted: it attends most to {named}."
    )
