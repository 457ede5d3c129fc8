"""Horizontal bars: named amounts, parameters, likely words."""

import numpy as np

from bert_np.config import BertConfig
from bert_np.errors import BertError, require_bool
from bert_np.parameters import parameter_ledger
from bert_np.plotting.checks import (
    check_label,
    check_mapping,
    check_numbers,
    list_texts,
    refuse,
)
from bert_np.plotting.colours import NEUTRAL
from bert_np.plotting.drawing import axes_to_draw_on, finish_chart, write
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import text_style, token_labels, widest

MOST_BARS = 40
LONGEST_NAME = 40  # characters


@in_own_style
def plot_bars(amounts, *, xlabel="", title=None, ax=None):
    """Draw a bar for each amount, with its value and its share of the sum.

    Parameters
    ----------
    amounts : mapping of str to float
        Each 0 or more; drawn from the top in the order given.
    xlabel : str
        What the amounts are, with their unit.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_label("xlabel", xlabel)
    check_mapping("amounts", amounts, MOST_BARS)
    values = check_numbers("amounts", list(amounts.values()), "(N,)")
    refuse("amounts", values, values < 0, "allowed: 0 or more")
    names = token_labels(list(map(str, amounts)), LONGEST_NAME)
    total = values.sum()
    shares = values / total if total else values
    texts = [f"  {value:.3g}  {share:.0%}" for value, share in zip(values, shares)]
    ax = axes_to_draw_on(ax, 8.0, 0.32 * len(names) + 0.5, title)
    draw_bars(ax, names, values, texts, xlabel)
    most = names[int(values.argmax())]
    return finish(
        ax,
        f"Bars of {xlabel or 'amounts'}, {total:.3g} in total; the largest "
        f"is {most}, {values.max():.3g} ({shares.max():.0%}).",
    )


@in_own_style
def plot_parameters(config, *, heads=False, title=None, ax=None):
    """Draw a bar for each part of a model: how many parameters it has.

    Parameters
    ----------
    config : BertConfig, or the rows of `bert_np.parameter_ledger`
    heads : bool
        Draw bars for the two pre-training heads, too. All shares are of
        the model without heads.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_bool("heads", heads)
    parts, model = count_parts(config, heads)
    counts = np.array(list(parts.values()))
    texts = [f"  {count:,}  {count / model:.1%}" for count in counts]
    xlabel = f"millions of parameters; the model has {model:,}"
    ax = axes_to_draw_on(ax, 8.0, 0.32 * len(parts) + 0.5, title)
    draw_bars(ax, list(parts), counts / 1e6, texts, xlabel)
    most = max(parts, key=parts.get)
    embeddings = sum(n for part, n in parts.items() if part.startswith("embeddings"))
    return finish(
        ax,
        f"Where the {model:,} parameters are: most are in {most}, {parts[most]:,} "
        f"({parts[most] / model:.0%}); the embeddings hold {embeddings:,} "
        f"({embeddings / model:.0%}).",
    )


def count_parts(config, heads):
    """Return {part: parameters} and the parameters of the model."""
    rows = parameter_ledger(config) if isinstance(config, BertConfig) else config
    try:
        ledger = {part: int(count) for part, _, count in rows}
        layers = next(part for part in ledger if part.startswith("all "))
        one = sum(n for part, n in ledger.items() if part.startswith("one layer: "))
        number = ledger[layers] // one
        model = ledger["model"]
    except (TypeError, ValueError, KeyError, StopIteration, ZeroDivisionError):
        raise BertError(
            f"config is a {type(config).__name__}, expected a BertConfig "
            "or the rows of parameter_ledger(config)"
        ) from None
    parts = {}
    for part, count in ledger.items():
        kind, _, name = part.partition(": ")
        if kind == "one layer":
            shown = name.replace("_", " ").replace("ffn", "feed-forward")
            parts[f"{number} layers: {shown}"] = number * count
        elif kind in ("embeddings", "pooler") or (heads and part.endswith(" head")):
            parts[part] = count
    return parts, model


@in_own_style
def plot_top_words(words, probs, *, xlabel="probability", title=None, ax=None):
    """Draw the probability of each word as a bar, in the order given.

    Parameters
    ----------
    words : list of N str
    probs : array of shape (N,)
        Each value from 0 to 1. One [MASK] of `bert_np.fill_mask` gives
        both: words, probs = zip(*guesses[0]).
    xlabel : str
        What the values are, if not probabilities, such as cosines.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_label("xlabel", xlabel)
    probs = check_numbers("probs", probs, "(N,)")
    refuse("probs", probs, (probs < 0) | (probs > 1 + 1e-6), "allowed 0 to 1")
    words = list_texts("words", words, len(probs), "of the probs")
    labels = token_labels(words)
    high = min(9.0, 0.28 * len(labels) + 0.5)
    ax = axes_to_draw_on(ax, widest(labels) + 5.0, high, title)
    draw_bars(ax, labels, probs, [f" {value:.2f}" for value in probs], xlabel)
    ax.set(xlim=(0, 1.09), xticks=[0, 0.25, 0.5, 0.75, 1])
    return finish(
        ax,
        f"Bars of {xlabel} for {len(labels)} words, "
        f"from {labels[0]} {probs[0]:.2f} to {labels[-1]} {probs[-1]:.2f}, "
        f"{probs.sum():.2f} in total.",
    )


def draw_bars(ax, names, values, texts, xlabel):
    """Draw the bars from the top, each followed by its text."""
    places = range(len(names))
    ax.barh(places, values, color=NEUTRAL, height=0.7)
    for place, value, text in zip(places, values, texts):
        write(ax, value, place, text, ha="left")
    ax.set_yticks(places, labels=names, **text_style(names))
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 1.5 * (np.max(values) or 1)))
    ax.set_xlabel(xlabel, **text_style([xlabel], AXIS_SIZE))
    ax.tick_params(axis="y", length=0)
    finish_chart(ax, "x")
