"""The signed difference of two attention maps."""

import numpy as np

from bert_np.analysis.differences import align_tokens, check_pairs, map_difference
from bert_np.errors import BertError
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
    labels_of,
)
from bert_np.plotting.checks import check_positive, list_texts
from bert_np.plotting.drawing import (
    add_signed_bar,
    axes_to_draw_on,
    draw_signed,
    labels_on_top,
    shorter_side,
    write_labels,
    write_values,
)
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import key_margin, token_labels, widest
from bert_np.plotting.preparation import prepare_maps

LONGEST_NAME = 32  # characters of the name of a map
CHOICES = ("mean", "merge_words", "special")


@in_own_style
def plot_difference(
    first,
    second,
    tokens,
    other_tokens=None,
    *,
    pairs=None,
    names=("first", "second"),
    limit=None,
    title=None,
    ax=None,
    **choices,
):
    """Draw what one attention map has more, or less, than another.

    Red where the second map has more, blue where the first has. The maps
    are those of two sentences, of two models, or of one before and after
    training. Two sentences are compared token by token: exchanged tokens
    appear as "it/he"; a token without a partner is hatched, with a − where
    only the first sentence has it and a + where only the second has.

    Parameters
    ----------
    first : array of shape (T, T)
        Rows are queries, columns are keys; each value from 0 to 1.
    second : array of shape (U, U)
    tokens : list of T str
    other_tokens : list of U str, optional
        The tokens of the second map; by default those of the first.
    pairs : list of (int, int), optional
        A position of the first map and its partner in the second, as they
        are after the choices. By default `align_tokens` finds them.
    names : two str
        What the maps are, such as ("step 500", "step 5000").
    limit : float, optional
        The value of the strongest red, up to 1; by default the largest
        absolute difference.
    title : str, optional
        By default what changes most, in words.
    ax : matplotlib Axes, optional
    **choices
        mean, merge_words, special, for both maps: see `prepare_maps`.
        With `mean`, the maps have the axes that it removes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    data = prepare_both(first, second, tokens, other_tokens, choices)
    names = token_labels(list_texts("names", names, 2, "map"), LONGEST_NAME)
    sides = [labels_of(prepared)[0] for prepared in data]
    pairs = pair_up(data, pairs)
    entries = merge_sides(pairs, *map(len, sides))
    values, known = spread(data, pairs, entries)
    limit = np.abs(values).max() if limit is None else check_positive("limit", limit, 1)
    labels = [joint_label(entry, *sides) for entry in entries]
    shown = largest_difference(data, pairs, sides)
    side = min(7.0, max(2.4, 0.56 * len(labels))) if ax is None else shorter_side(ax)
    wide, high = side + widest(labels) + 1.8, side + key_margin(labels, side) + 0.8
    notes = [*data[0].notes, *lonely_notes(entries)]
    ax = axes_to_draw_on(ax, wide, high, shown if title is None else title, notes)
    image = draw_signed(ax, values, limit, known, "equal")
    write_values(image, values.round(2) + 0.0, (side / len(labels),) * 2, visible=known)
    write_labels(ax.xaxis, labels, side)
    write_labels(ax.yaxis, labels, side)
    labels_on_top(ax)
    ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
    ax.set_ylabel(QUERY_LABEL, **QUERY_STYLE)
    add_signed_bar(image, ax, f"attention: {names[1]} − {names[0]}")
    return finish(ax, describe_difference(data, pairs, sides, names))


def prepare_both(first, second, tokens, other_tokens, choices):
    """Return both maps as Prepared, with the same choices."""
    for name in choices.keys() - set(CHOICES):
        raise BertError(f"{name} is no choice here, allowed: {', '.join(CHOICES)}")
    other_tokens = tokens if other_tokens is None else other_tokens
    data = prepare_maps(first, tokens, 2, **choices)
    try:
        return data, prepare_maps(second, other_tokens, 2, **choices)
    except BertError as error:
        raise BertError(f"the second map: {error}") from None


def pair_up(data, pairs):
    """Return the pairs of positions, those given or those that are found."""
    first, second = (prepared.tokens for prepared in data)
    if pairs is not None:
        return check_pairs(pairs, len(first), len(second))
    pairs = align_tokens(first, second)
    if not pairs:
        raise BertError(
            "other_tokens: no token has a partner among tokens; pairs=[(0, 0), ...] "
            "says which belong together"
        )
    return pairs


def merge_sides(pairs, T, U):
    """Put the positions of both sentences in one order.

    Returns
    -------
    list of (int or None, int or None)
        The tokens of the first in their order, each with its partner;
        those that only the second has follow their left neighbour.

    >>> merge_sides([(0, 0), (2, 2)], 3, 3)
    [(0, 0), (None, 1), (1, None), (2, 2)]
    """
    partner = dict(pairs)
    entries = [(i, partner.get(i)) for i in range(T)]
    for j in sorted(set(range(U)) - set(partner.values())):
        places = [n for n, (_, other) in enumerate(entries) if other == j - 1]
        entries.insert(places[0] + 1 if places else 0, (None, j))
    return entries


def spread(data, pairs, entries):
    """Return the differences, and where they are known: 0 without a partner."""
    places = [entries.index(pair) for pair in pairs]
    grid = np.ix_(places, places)
    values, known = np.zeros((len(entries),) * 2), np.zeros((len(entries),) * 2, bool)
    values[grid] = map_difference(data[0].probs, data[1].probs, pairs)
    known[grid] = True
    return values, known


def joint_label(entry, labels, other_labels):
    """Name a position of both sentences: cat, it/he, −only here, +only there.

    >>> joint_label((0, 1), ["it"], ["so", "he"])
    'it/he'
    """
    i, j = entry
    if j is None:
        return f"−{labels[i]}"
    if i is None:
        return f"+{other_labels[j]}"
    same = labels[i] == other_labels[j]
    return labels[i] if same else f"{labels[i]}/{other_labels[j]}"


def lonely_notes(entries):
    """Say what the hatched rows and columns are, if there are any."""
    lonely = any(None in entry for entry in entries)
    return ["hatched: a token without a partner in the other sentence"] * lonely


def largest_difference(data, pairs, sides):
    """Say in words which weight changes most."""
    query, key, before, after = strongest_change(data, pairs)
    if f"{before:.2f}" == f"{after:.2f}":
        return "No weight changes by 0.01 or more"
    more = "more" if after > before else "less"
    q, k = (joint_label(pairs[n], *sides) for n in (query, key))
    return f"'{q}' looks {more} at '{k}': {before:.2f}, then {after:.2f}"


def strongest_change(data, pairs):
    """Return which pair looks at which, and the weights of both maps there."""
    change = map_difference(data[0].probs, data[1].probs, pairs)
    query, key = np.unravel_index(np.argmax(np.abs(change)), change.shape)
    weights = [
        prepared.probs[pairs[query][n], pairs[key][n]]
        for n, prepared in enumerate(data)
    ]
    return query, key, *weights


def describe_difference(data, pairs, sides, names):
    """Describe the largest change, the key that changes most, what is left out."""
    query, key, before, after = strongest_change(data, pairs)
    received = map_difference(data[0].probs, data[1].probs, pairs).sum(axis=0)
    most = np.argmax(np.abs(received))
    q, k, m = (
        f"{joint_label(pairs[n], *sides)} ({kind} {pairs[n][0]})"
        for n, kind in ((query, "query"), (key, "key"), (most, "key"))
    )
    return (
        f"Attention in {names[1]} minus attention in {names[0]}, {len(pairs)} tokens "
        f"compared: from {q} to {k} it changes most, {before:.2f} to {after:.2f}; "
        f"over all queries, {m} {'gains' if received[most] > 0 else 'loses'} most, "
        f"{received[most]:+.2f}{describe_lonely(data, pairs, sides, names)}."
    )


def describe_lonely(data, pairs, sides, names):
    """Say which tokens have no partner, and how much attention they get."""
    parts = []
    for n, (prepared, labels) in enumerate(zip(data, sides)):
        paired = [pair[n] for pair in pairs]
        lonely = sorted(set(range(len(labels))) - set(paired))
        if lonely:
            share = prepared.probs[np.ix_(paired, lonely)].sum() / len(paired)
            tokens = ", ".join(labels[i] for i in lonely[:5])
            more = " and others" if len(lonely) > 5 else ""
            parts.append(
                f"; only in {names[n]}: {tokens}{more}, with {share:.0%} of the "
                "attention of the others"
            )
    return "".join(parts)
