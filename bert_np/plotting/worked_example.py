"""Attention step by step: every number of a small example on one screen."""

import math

import numpy as np
from matplotlib.ticker import MaxNLocator

from bert_np.analysis.checks import as_floats
from bert_np.attention import scaled_dot_product
from bert_np.errors import BertError
from bert_np.plotting.attention_maps import (
    KEY_LABEL,
    KEY_STYLE,
    QUERY_LABEL,
    QUERY_STYLE,
)
from bert_np.plotting.checks import check_integer, check_numbers, list_texts
from bert_np.plotting.colours import (
    FAINT,
    HATCH,
    KEY,
    MASKED,
    NEUTRAL,
    QUERY,
    attention_norm,
)
from bert_np.plotting.drawing import (
    draw_map,
    draw_signed,
    format_numbers,
    write_labels,
    write_values,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import LABEL_SIZE, key_margin, token_labels, widest
from bert_np.plotting.preparation import visibility

MOST_ROWS = 24  # tokens up to which bars carry numbers
SIGNS = "red: above 0; white: 0; blue: below 0"


@in_own_style
def plot_steps(q, k, v, tokens, *, visible=None, decimals=2, title=None):
    """Draw the steps of one head in a row, from scores to context.

    scores = q kᵀ, scaled = scores / sqrt(D), masked, probs = softmax of
    each row, context = probs v. Above each step are its formula and its
    shape; if the cells have room, they carry their numbers. The
    masked step is drawn if `visible` is given.

    Parameters
    ----------
    q, k : arrays of shape (T, D)
        Of one head, such as trace["layers"][0]["attention"]["q"][0, 2].
    v : array of shape (T, Dv)
    tokens : list of T str
    visible : array of shape (T, T) or (T,), optional
        1 if the query (row) may attend to the key (column). Of shape
        (T,), such as an attention mask, it holds for every query.
    decimals : int
        Decimal places of the numbers, 1 to 6.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    q, k, v, tokens, seen = check_head(q, k, v, tokens, visible, decimals)
    steps = compute_steps(q, k, v, seen)
    if visible is None:
        del steps["masked"]
    labels = token_labels(tokens)
    side = min(2.2, max(1.75, 0.5 * len(tokens)))
    axes = step_axes(steps, labels, side, title)
    for (name, (formula, values)), ax in zip(steps.items(), axes):
        ax.set_title(f"{name}\n{formula}\n{values.shape}", fontsize=AXIS_SIZE)
        draw_step(ax, name, values, seen, side, decimals)
        label_step(ax, name, labels, values, side, ax is axes[0])
    return finish(axes[0], describe_steps(steps, labels, q.shape[1]))


def check_head(q, k, v, tokens, visible, decimals):
    """Return the arrays of one head, its tokens and who may attend to whom."""
    given = {"q": q, "k": k, "v": v}
    q, k, v = (check_numbers(name, x, "(T, D)") for name, x in given.items())
    tokens = list_texts("tokens", tokens, len(q), f"row of q, {q.shape}")
    if k.shape != q.shape:
        raise BertError(f"k has shape {k.shape}, expected that of q, {q.shape}")
    if len(v) != len(q):
        raise BertError(f"v has shape {v.shape}, expected {len(q)} rows as in q")
    check_integer("decimals", decimals, 1, 6)
    visible = None if visible is None else as_floats("visible", visible)
    masks = (visible, None) if np.ndim(visible) == 1 else (None, visible)
    return q, k, v, tokens, visibility(len(q), *masks)


def compute_steps(q, k, v, seen):
    """Return {step: (formula, array)} in the order of computation."""
    trace = {}
    heads = (x[None, None] for x in (q, k, v))
    context, _ = scaled_dot_product(*heads, visible=seen, trace=trace)
    root = math.sqrt(q.shape[1])
    scaled = trace["scores"][0, 0]
    return {
        "scores": ("q kᵀ", q @ k.T),
        "scaled": (f"scores / √{q.shape[1]} = scores / {root:.4g}", scaled),
        "masked": ("hatched: not visible", scaled),
        "probs": ("softmax of each row", trace["probs"][0, 0]),
        "context": ("probs v", context[0, 0]),
    }


def step_axes(steps, labels, side, title):
    """Make the figure of the steps and one Axes for each; side in inches."""
    ratios = [1.0] * (len(steps) - 1) + [context_ratio(steps["context"][1])]
    wide = widest(labels) + 0.5 + sum(ratios) * side + 0.2 * len(steps)
    figure = new_figure(wide, side + key_margin(labels, side) + 2.1, title)
    return figure.subplots(1, len(steps), width_ratios=ratios)


def context_ratio(context):
    """Return the width of the context over its height: its shape if possible."""
    return min(1.2, max(0.62, context.shape[1] / len(context)))


def draw_step(ax, name, values, seen, side, decimals):
    """Draw one step; without room for numbers it gets a colour bar."""
    if name == "probs":
        image = draw_map(ax, values, seen, attention_norm(), side)
    else:
        shown = seen if name == "masked" else np.ones(values.shape, dtype=bool)
        limit = np.abs(values[shown]).max(initial=0)
        free = name == "context" and (
            values.shape[1] != context_ratio(values) * len(values)
        )
        image = draw_signed(ax, values, limit, shown, "auto" if free else "equal")
        ax.set_box_aspect(1 / context_ratio(values) if free else None)
    wide = side * (context_ratio(values) if name == "context" else 1)
    cell = side / len(values), wide / values.shape[1]
    written = seen if name == "masked" else None
    if not write_values(image, values, cell, decimals, written):
        bar = ax.figure.colorbar(image, ax=ax, location="bottom", pad=0.06)
        bar.ax.tick_params(labelsize=LABEL_SIZE)
        bar.ax.locator_params(nbins=3)


def label_step(ax, name, labels, values, side, first):
    """Write the tokens at the sides of one step."""
    write_labels(ax.yaxis, labels if first else [], side)
    if name == "context":
        columns = [str(d) for d in range(values.shape[1])]
        write_labels(ax.xaxis, columns, side * context_ratio(values))
        ax.set_xlabel("dimension", fontsize=AXIS_SIZE)
    else:
        write_labels(ax.xaxis, labels, side)
    if first:
        ax.set_xlabel(KEY_LABEL, **KEY_STYLE)
        ax.set_ylabel(QUERY_LABEL, **QUERY_STYLE)


def describe_steps(steps, labels, head_size):
    """Describe which steps are drawn, and one row of them."""
    probs, context = steps["probs"][1], steps["context"][1]
    key = int(np.argmax(probs[0]))
    return (
        f"The steps of one head of size {head_size} over {len(labels)} tokens: "
        f"{', '.join(steps)}; query 0 ({labels[0]}) attends most to key {key} "
        f"({labels[key]}), {probs[0, key]:.2f}, and its context begins with "
        f"{context[0, 0]:.2f}."
    )


@in_own_style
def plot_query_key(q, k, tokens, query, *, visible=None, decimals=2, title=None):
    """Draw how one query is compared with every key.

    From left to right: the query, the keys, their products number by
    number, the sum of the products (the score), the score divided by
    sqrt(D), and the softmax of these over the keys.

    Parameters
    ----------
    q, k : arrays of shape (T, D)
        Of one head, such as trace["layers"][0]["attention"]["q"][0, 2].
    tokens : list of T str
    query : int
        The position of the token that looks, 0 to T - 1.
    visible : array of shape (T, T) or (T,), optional
        1 if the query may attend to the key.
    decimals : int
        Decimal places of the numbers, 1 to 6.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    q, k, _, tokens, seen = check_head(q, k, k, tokens, visible, decimals)
    query = check_integer("query", query, 0, len(tokens) - 1)
    labels = token_labels(tokens)
    height = min(7.0, max(1.2, 0.26 * len(tokens)))
    needed = (0.12 + 0.09 * (decimals + 2)) * q.shape[1]  # inches for the numbers
    wide = max(1.6, needed) if needed < 2.9 else 1.9
    notes = [] if wide >= needed else [SIGNS]
    figure = new_figure(widest(labels) + 3 * wide + 4.9, height + 1.1, title, notes)
    axes = figure.subplots(1, 6, width_ratios=[wide] * 3 + [1.1] * 3)
    cell = height / len(tokens), wide / q.shape[1]
    draw_products(axes[:3], q[query], k, query, cell, decimals)
    steps = compute_steps(q, k, k, seen)
    sums = [steps[name][1][query] for name in ("scores", "scaled", "probs")]
    for ax, values, name in zip(axes[3:], sums, ("sum", f"/ √{q.shape[1]}", "softmax")):
        draw_key_bars(ax, values, seen[query], height, decimals)
        ax.set_title(name, fontsize=AXIS_SIZE)
    axes[5].set_xlim(0, 1)
    write_labels(axes[0].yaxis, labels, height)
    axes[0].set_ylabel(KEY_LABEL, **KEY_STYLE)
    return finish(axes[0], describe_query(labels, query, *sums))


def draw_products(axes, q, k, query, cell, decimals):
    """Draw the query in its row, the keys, and their products."""
    own = np.zeros(k.shape, dtype=bool)
    own[query] = True
    limit = max(np.abs(q).max(), np.abs(k).max())
    look = {"aspect": "auto", "interpolation": "nearest"}
    alone = axes[0].imshow(np.ma.masked_where(~own, own * q), **look)
    keys = draw_signed(axes[1], k, limit)
    alone.set(norm=keys.norm, cmap=keys.get_cmap().with_extremes(bad="white"))
    products = draw_signed(axes[2], k * q, np.abs(k * q).max())
    write_values(alone, own * q, cell, decimals, own)
    write_values(keys, k, cell, decimals)
    write_values(products, k * q, cell, decimals)
    names = {"query": QUERY, "keys": KEY, "query × key": "black"}
    for ax, (name, colour) in zip(axes, names.items()):
        ax.set_title(name, fontsize=AXIS_SIZE, color=colour)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color(FAINT)


def draw_key_bars(ax, values, seen, inches, decimals):
    """Draw a bar for each key, its number to the right."""
    places = np.arange(len(values))
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(xticks=[], yticks=[], ylim=(len(values) - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    if len(values) > MOST_ROWS:
        ax.fill_betweenx(places, np.where(seen, values, 0), step="mid", color=NEUTRAL)
        ax.xaxis.set_major_locator(MaxNLocator(2))
        ax.tick_params(labelsize=LABEL_SIZE)
        return
    bars = ax.barh(places, values, height=0.8, color=NEUTRAL, linewidth=0)
    for place in np.flatnonzero(~seen):
        bars[place].set(facecolor=MASKED, hatch="////", edgecolor=HATCH)
    right = ax.secondary_yaxis("right")
    right.spines[:].set_visible(False)
    write_labels(right.yaxis, format_numbers(values, decimals), inches)


def describe_query(labels, query, sums, scaled, probs):
    """Describe which key the query attends to most, with its numbers."""
    key = int(np.argmax(probs))
    return (
        f"The query of {labels[query]} (position {query}) against "
        f"{len(labels)} keys: the largest probability is {probs[key]:.2f}, for "
        f"{labels[key]} (key {key}), from the sum {sums[key]:.2f}, scaled "
        f"{scaled[key]:.2f}."
    )
