"""Attention as lines between two columns of tokens."""

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from bert_np.errors import BertError, require_bool, short
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
    describe_maps,
    labels_of,
)
from bert_np.plotting.checks import check_integer, check_positive
from bert_np.plotting.colours import (
    DASHES,
    FAINT,
    NEUTRAL,
    QUERY,
    SERIES,
    attention_norm,
)
from bert_np.plotting.drawing import axes_to_draw_on, shorter_side, write
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import LINE, text_style, thin, widest
from bert_np.plotting.preparation import prepare_maps

MOST_LINES = 5000
MOST_VALUES = 10  # keys that carry the probability of a highlighted query
OWN = (QUERY, SERIES[3], SERIES[2], SERIES[0])  # of the queries that are highlighted
COLUMN = 30  # points from one query's values to the next one's


@in_own_style
def plot_links(
    probs,
    tokens,
    *,
    query=None,
    only=False,
    mass=0.9,
    power=1.0,
    title=None,
    ax=None,
    **choices,
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
    query : int or list of up to 4 int, optional
        The positions of the queries to highlight, among the rows that
        are left after the choices. Each has its colour and its dashes,
        and a column of its probabilities at the keys; the lines of the
        others are faint.
    only : bool
        Draw the lines of the highlighted queries and no others.
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
    own = check_queries(query, len(data.queries), only)
    chosen = strongest(data.probs, mass)
    if only:
        chosen[np.setdiff1d(range(len(chosen)), own)] = False
    chosen, cut = limit_lines(data.probs, chosen, own)
    largest = f"the largest of each row, at least {mass:.0%} of it"
    notes = [*data.notes, largest, *cut]
    notes += [name_columns(data, own)] if len(own) > 1 else []
    height = min(9.0, max(2.0, 1.3 * LINE * max(data.probs.shape)))
    if ax is not None:
        height = shorter_side(ax)
    wide = 2 * max(map(widest, labels_of(data))) + 4.0 + COLUMN / 72 * len(own[1:])
    ax = axes_to_draw_on(ax, wide, height + 0.5, title, notes)
    draw_links(ax, data.probs, chosen, own, norm)
    label_links(ax, data, own, height)
    return finish(ax, describe_links(data, own, only))


def check_queries(query, count, only):
    """Return the highlighted queries as a list of different int, maybe empty."""
    require_bool("only", only)
    if query is None and not only:
        return []
    given = np.atleast_1d(np.asarray(query, dtype=object)).tolist()
    if query is None or not 1 <= len(given) <= len(OWN):
        raise BertError(
            f"query = {short(query)}, allowed: a position or a list of 1 to {len(OWN)}"
            f"{'; only=True needs one' if only else ''}"
        )
    own = [check_integer("query", i, 0, count - 1) for i in given]
    if len(set(own)) < len(own):
        raise BertError(f"query = {short(query)}, allowed: different positions")
    return own


def name_columns(data, own):
    """Say whose values are at the keys, in the order of their columns."""
    rows = labels_of(data)[0]
    names = ", then ".join(f"{rows[i]} (query {i})" for i in own)
    return f"numbers at the keys: {names}"


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


def limit_lines(probs, chosen, own):
    """Keep the strongest lines and those of the highlighted queries.

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
    kept[own] = chosen[own]
    return kept, [f"of {count:,} lines, only those above {least:.2g}"]


def draw_links(ax, probs, chosen, own, norm):
    """Draw a line for each chosen value, the weakest first."""
    rows, columns = np.nonzero(chosen)
    strong = np.isin(rows, own) if own else np.full(len(rows), True)
    order = np.lexsort((probs[rows, columns], strong))
    rows, columns, strong = rows[order], columns[order], strong[order]
    strength = np.asarray(norm(np.clip(probs[rows, columns], 0, 1)))
    colours = dict(zip(own, OWN)) if own else dict.fromkeys(rows, NEUTRAL)
    line = np.array([to_rgba(colours.get(row, FAINT)) for row in rows]).reshape(-1, 4)
    line[:, 3] = np.where(strong, 0.25 + 0.75 * strength, 0.5 * strength)
    dashes = dict(zip(own, DASHES))
    ends = np.stack([np.zeros(len(rows)), rows, np.ones(len(rows)), columns], axis=1)
    style = {"colors": line, "linewidths": 0.5 + 3 * strength}
    style["linestyles"] = [dashes.get(row, "-") for row in rows] or "-"
    ax.add_collection(LineCollection(ends.reshape(-1, 2, 2), **style))


def label_links(ax, data, own, inches):
    """Write the queries at the left, the keys and their values at the right."""
    longest = max(data.probs.shape)
    ax.set(xlim=(-0.02, 1.02), ylim=(longest - 0.5, -0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    room, (rows, keys) = inches / longest, labels_of(data)
    colours = dict(zip(own, OWN if len(own) > 1 else ["black"]))
    for i in places(own, len(rows), room):
        style = {"color": colours[i], "fontweight": "bold"} if i in own else {}
        write(ax, -0.03, i, rows[i], ha="right", **style)
    best = [np.argsort(-data.probs[i], kind="stable")[:MOST_VALUES] for i in own]
    best = [i for ranked in zip(*best) for i in ranked]
    for i in places(best, len(keys), room):
        beside = [(f"{data.probs[row, i]:.2f}", colours[row]) for row in own]
        for column, (text, colour) in enumerate([*beside, (keys[i], "black")]):
            at = {"xy": (1.03, i), "xytext": (COLUMN * column, 0)}
            at |= {"textcoords": "offset points", "annotation_clip": False}
            ax.annotate(text, **at, va="center", color=colour, **text_style([text]))
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


def describe_links(data, own, only=False):
    """Describe what the lines show; of highlighted queries, if there are any."""
    if not own:
        return describe_maps(data)
    rows, keys = labels_of(data)
    attends = []
    for query in own:
        probs = data.probs[query]
        best = np.argsort(-probs, kind="stable")[:3]
        named = ", ".join(f"{keys[i]} (key {i}) {probs[i]:.2f}" for i in best)
        attends.append(f"attends most to {named}")
    names = [f"{rows[query]} (query {query})" for query in own]
    what = f"with {' and '.join(names)} highlighted"
    if only:
        what = f"of {' and '.join(names)} alone"
    if len(own) == 1:
        told = f"this query {attends[0]}"
    else:
        told = "; ".join(" ".join(pair) for pair in zip(names, attends))
    return f"Lines from {len(rows)} queries to {len(keys)} keys, {what}: {told}."
