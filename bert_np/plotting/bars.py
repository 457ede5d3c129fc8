"""Named amounts as horizontal bars."""

from collections.abc import Mapping

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.colours import FAINT, NEUTRAL
from bert_np.plotting.drawing import axes_to_draw_on
from bert_np.plotting.figure import AXIS_SIZE, finish
from bert_np.plotting.labels import LABEL_SIZE, text_style, token_labels
from bert_np.plotting.preparation import check_numbers

MOST_BARS = 40
LONGEST_NAME = 40  # characters


def plot_bars(amounts, *, xlabel="", title=None, ax=None):
    """Draw a bar for each amount, with its value and its share of all.

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

    Raises
    ------
    BertError
    """
    names, values = check_amounts(amounts)
    total = values.sum()
    shares = values / total if total else values
    texts = [f"{value:.3g}  {share:.0%}" for value, share in zip(values, shares)]
    ax = axes_to_draw_on(ax, 8.0, bars_height(len(names)), title)
    draw_bars(ax, names, values, texts, xlabel)
    most = names[int(values.argmax())]
    return finish(
        ax,
        f"Bars of {xlabel or 'amounts'}, {total:.3g} in all: most in "
        f"{most}, {values.max():.3g} ({shares.max():.0%}).",
    )


def check_amounts(amounts):
    """Give the names and the values (N,), or raise."""
    if not isinstance(amounts, Mapping):
        raise BertError(
            f"amounts is a {type(amounts).__name__}, expected a mapping of "
            "names to numbers"
        )
    if not 1 <= len(amounts) <= MOST_BARS:
        count = len(amounts)
        raise BertError(f"amounts has {count} entries, allowed: 1 to {MOST_BARS}")
    values = check_numbers("amounts", list(amounts.values()), "(N,)")
    if (values < 0).any():
        name = list(amounts)[int((values < 0).argmax())]
        raise BertError(f"amounts[{name!r}] = {values.min():g}, allowed: 0 or more")
    return token_labels(list(map(str, amounts)), LONGEST_NAME), values


def bars_height(count):
    """The height of a figure of so many bars, in inches."""
    return 0.32 * count + 0.5


def draw_bars(ax, names, values, texts, xlabel):
    """Draw the bars, each with a text after it."""
    ax.barh(range(len(names)), values, color=NEUTRAL, height=0.7)
    for place, (value, text) in enumerate(zip(values, texts)):
        ax.text(value, place, f"  {text}", va="center", fontsize=LABEL_SIZE)
    ax.set_yticks(
        range(len(names)), labels=names, fontsize=LABEL_SIZE, **text_style(names)
    )
    widest = np.max(values) or 1
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 1.5 * widest))
    ax.set_xlabel(xlabel, fontsize=AXIS_SIZE, **text_style([xlabel]))
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.grid(True, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)
