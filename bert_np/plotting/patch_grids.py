"""A grid of signed numbers: how the answer changes with each patch."""

import numpy as np

from bert_np.plotting.checks import (
    check_label,
    check_numbers,
    check_positive,
    list_texts,
)
from bert_np.plotting.drawing import (
    add_signed_bar,
    axes_to_draw_on,
    draw_signed,
    inches_of,
    labels_on_top,
    write_labels,
    write_values,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import key_margin, text_style, token_labels, widest

CHANGE = "share of the\nanswer's change"
LONGEST_NAME = 32  # characters of what rows and columns are
SMALL = 0.05  # what is below this is not called a change


@in_own_style
def plot_patch_grid(
    change,
    *,
    rows=None,
    columns=None,
    ylabel="layer",
    xlabel="head",
    limit=None,
    title=None,
    ax=None,
):
    """Draw how much of the answer's change each patch brings about.

    0, white, is the passage's own answer; 1, red, that of the other
    passage, from which the patch is taken. Below 0, blue, a patch makes
    the own answer clearer. If the cells have room, they carry their
    numbers.

    Parameters
    ----------
    change : array of shape (N, M)
        Such as patch_grid(...).change.
    rows, columns : list of str, optional
        What was patched, such as the tokens; by default 0, 1, 2, ...
    ylabel, xlabel : str
        What the rows and the columns are.
    limit : float, optional
        The value of the strongest red; by default 1, or the largest
        absolute value if that is above 1.
    title : str, optional
        By default the patch that changes most, in words.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    change = check_numbers("change", change, "(N, M)")
    check_label("ylabel", ylabel)
    check_label("xlabel", xlabel)
    ylabel, xlabel = token_labels([ylabel, xlabel], LONGEST_NAME)
    down = names_along("rows", rows, change.shape[0])
    across = names_along("columns", columns, change.shape[1])
    limit = max(1.0, np.abs(change).max()) if limit is None else limit
    limit = check_positive("limit", limit)
    shown = largest_change(change, (ylabel, down), (xlabel, across))
    size = np.clip(0.5 * np.array(change.shape), [1.2, 2.4], 8.0)  # inches
    size = size if ax is None else inches_of(ax)[::-1]
    high = size[0] + key_margin(across, size[1]) + 0.7
    wide = size[1] + widest(down) + 1.8
    ax = axes_to_draw_on(ax, wide, high, shown if title is None else title)
    image = draw_signed(ax, change, limit)
    write_values(image, change.round(2) + 0.0, size / change.shape)
    add_signed_bar(image, ax, CHANGE)
    write_labels(ax.xaxis, across, size[1])
    write_labels(ax.yaxis, down, size[0])
    labels_on_top(ax)
    ax.set_xlabel(xlabel, **text_style([xlabel], AXIS_SIZE))
    ax.set_ylabel(ylabel, **text_style([ylabel], AXIS_SIZE))
    return finish(ax, describe_changes(change, shown))


def names_along(name, given, count):
    """Return the labels of an axis: those given, or 0, 1, 2, ..."""
    if given is None:
        return [str(i) for i in range(count)]
    return token_labels(list_texts(name, given, count, "of change"))


def largest_change(change, *axes):
    """Say which patch changes most; each axis is (what it is, names)."""
    cell = np.unravel_index(np.argmax(np.abs(change)), change.shape)
    if abs(change[cell]) < SMALL:
        return f"No patch changes the answer by {SMALL:.0%} or more"
    places = [name_place(what, names, i) for i, (what, names) in zip(cell, axes)]
    return f"{', '.join(places)}: {change[cell]:.0%} of the answer's change"


def name_place(what, names, i):
    """Name one row or column, with its number if others have the same name.

    >>> name_place("position", ["the", "cat", "the"], 2)
    'position the (2)'
    """
    number = f"({i})" if names.count(names[i]) > 1 else ""
    return " ".join(part for part in (what, names[i], number) if part)


def describe_changes(change, shown):
    """Describe the largest change, and how many others there are."""
    count = int((np.abs(change) >= SMALL).sum())
    return (
        f"How the answer changes with each of {change.size} patches, "
        f"{change.shape[0]} rows of {change.shape[1]}; 0 is the passage's own answer, "
        f"1 that of the other passage; {shown[0].lower() + shown[1:]}; {count} of the "
        f"patches change it by {SMALL:.0%} or more."
    )
