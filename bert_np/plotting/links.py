"""Attention as lines between two columns of tokens."""

from numbers import Real

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from bert_np.errors import BertError, short
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
    sentence_about,
)
from bert_np.plotting.colours import FAINT, NEUTRAL, QUERY, attention_norm
from bert_np.plotting.drawing import check_ax
from bert_np.plotting.figure import add_title, finish, new_figure
from bert_np.plotting.labels import (
    LABEL_SIZE,
    LINE,
    text_style,
    thin,
    token_labels,
    widest,
)
from bert_np.plotting.preparation import check_index, prepare

MOST_LINES = 5000


def plot_links(
    probs, tokens, *, query=None, mass=0.9, power=1.0, title=None, ax=None, **choices
):
    """Draw the attention of one head as lines from queries to keys.

    The thicker and darker a line, the larger its probability. Of each
    query only the largest are drawn, so many that together they carry
    `mass` of its row. Of more than 5,000 lines the weakest are left out,
    and the title says so.

    Parameters
    ----------
    probs : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    tokens : list of T str
    query : int, optional
        The position of a query to highlight, among the rows that are
        left after the choices; its probabilities are written at the
        keys, the lines of the others are faint.
    mass : float
        Above 0, up to 1. 1 draws every line above 0.
    power : float
        A probability p has the strength p ** power.
    title : str, optional
    ax : matplotlib Axes, optional
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
    norm, mass = attention_norm(power), check_mass(mass)
    if query is not None:
        query = check_index("query", query, len(data.queries))
    chosen, cut = limit_lines(data.probs, strongest(data.probs, mass), query)
    notes = [*data.notes, f"per query the largest, up to {mass:.0%} of its row", *cut]
    height = min(9.0, max(2.0, 1.3 * LINE * max(data.probs.shape)))
    if ax is None:
        labels = token_labels(data.queries + data.keys)
        ax = new_figure(
            2 * widest(labels) + 4.0, height + 0.5, title, notes
        ).add_subplot()
    else:
        height, width = check_ax(ax), ax.bbox.width / ax.figure.figure.dpi
        add_title(ax, title, notes, width)
    draw_links(ax, data.probs, chosen, query, norm)
    label_links(ax, data, query, height)
    return finish(ax, describe_links(data, query))


def check_mass(mass):
    """Refuse a share of a row that is not above 0 and up to 1."""
    number = isinstance(mass, Real) and not isinstance(mass, bool)
    if not number or not 0 < mass <= 1:
        raise BertError(f"mass = {short(mass)}, allowed: above 0, up to 1")
    return float(mass)


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
    values = probs[rows, columns]
    order = np.lexsort((values, own))
    rows, columns, values, own = (x[order] for x in (rows, columns, values, own))
    strength = np.asarray(norm(np.clip(values, 0, 1)))
    strong = NEUTRAL if query is None else QUERY
    line = np.where(own[:, None], to_rgba(strong), to_rgba(FAINT))
    line[:, 3] = np.where(own, 0.25 + 0.75 * strength, 0.5 * strength)
    ends = np.stack(
        [
            np.stack([np.zeros(len(rows)), rows], 1),
            np.stack([np.ones(len(rows)), columns], 1),
        ],
        1,
    )
    ax.add_collection(LineCollection(ends, colors=line, linewidths=0.5 + 3 * strength))


def label_links(ax, data, query, inches):
    """Write the queries at the left, the keys at the right."""
    longest = max(data.probs.shape)
    ax.set(xlim=(-0.02, 1.02), ylim=(longest - 0.5, -0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    room = inches / longest
    rows, keys = token_labels(data.queries), token_labels(data.keys)
    first, best = [], []
    if query is not None:
        row = data.probs[query]
        first, best = [query], np.argsort(-row, kind="stable")[:10]
    for i in places(first, len(rows), room):
        ax.text(
            -0.03,
            i,
            rows[i],
            ha="right",
            va="center",
            fontsize=LABEL_SIZE,
            fontweight="bold" if i == query else "normal",
            **text_style([rows[i]]),
        )
    for i in places(best, len(keys), room):
        style = {
            "xy": (1.03, i),
            "va": "center",
            "fontsize": LABEL_SIZE,
            "textcoords": "offset points",
            "annotation_clip": False,
        }
        if query is not None:
            ax.annotate(f"{row[i]:.2f}", xytext=(0, 0), **style)
        ax.annotate(
            keys[i],
            xytext=(0 if query is None else 30, 0),
            **style,
            **text_style([keys[i]]),
        )
    ax.text(
        0,
        -0.5 - 0.1 / room,
        QUERY_LABEL.replace(": ", ":\n"),
        ha="right",
        va="bottom",
        **QUERY_STYLE,
    )
    ax.text(
        1,
        -0.5 - 0.1 / room,
        KEY_LABEL.replace(": ", ":\n"),
        ha="left",
        va="bottom",
        **KEY_STYLE,
    )


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
    """Say what the lines show, of one query where one is highlighted."""
    if query is None:
        return sentence_about(data)
    labels, keys = token_labels(data.queries), token_labels(data.keys)
    row = data.probs[query]
    best = np.argsort(-row, kind="stable")[:3]
    named = ", ".join(f"{keys[i]} (key {i}) {row[i]:.2f}" for i in best)
    return (
        f"Lines from {len(labels)} queries to {len(keys)} keys, with "
        f"{labels[query]} (query {query}) highlighted: it looks most at {named}."
    )
