"""Numbers over layers or over steps, as lines."""

from collections.abc import Mapping

import numpy as np

from bert_np.errors import require_bool
from bert_np.plotting.checks import (
    check_arrays,
    check_label,
    check_length,
    check_numbers,
    list_texts,
)
from bert_np.plotting.colours import DASHES, SERIES
from bert_np.plotting.drawing import axes_to_draw_on, finish_chart, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style
from bert_np.plotting.labels import text_style, token_labels, widest

MARKERS = ("o", "s", "^", "D", "v")
MOST_CURVES = 16
LONGEST_NAME = 32  # characters in the legend


@in_own_style
def plot_by_layer(curves, *, stages=None, ylabel="", log=False, title=None, ax=None):
    """Draw a value for each layer or stage, one line for each name.

    Parameters
    ----------
    curves : array of shape (L,), or mapping of str to such arrays
    stages : list of L str, optional
        Names for the places 0, 1, 2, ...; by default "layer" 0 to L - 1.
    ylabel : str
        What the values are, with their unit.
    log : bool
        Whether the scale is logarithmic; zeros are then left out.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_bool("log", log)
    check_label("ylabel", ylabel)
    curves, length = check_curves(curves)
    if stages is not None:
        stages = list_texts("stages", stages, length, "value of a curve")
        stages = token_labels(stages)
    ax = curve_axes(ax, curves, title, log)
    draw_curves(ax, curves, np.arange(length), ylabel, log, MARKERS)
    if stages is None:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("layer", fontsize=AXIS_SIZE)
    else:
        angle = 90 if widest(stages) * length > 6 else 0
        ax.set_xticks(
            range(length), labels=stages, rotation=angle, **text_style(stages)
        )
    return finish(ax, describe_curves(curves, ylabel, "stages" if stages else "layers"))


@in_own_style
def plot_curves(
    curves, x=None, *, xlabel="step", ylabel="loss", log=False, title=None, ax=None
):
    """Draw values over steps, one line for each name.

    Parameters
    ----------
    curves : array of shape (N,), or mapping of str to such arrays
    x : array of shape (N,), optional
        The place of each value; by default 0 to N - 1.
    xlabel, ylabel : str
    log : bool
        Whether the scale of the values is logarithmic; zeros are then
        left out.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_bool("log", log)
    check_label("xlabel", xlabel)
    check_label("ylabel", ylabel)
    curves, length = check_curves(curves)
    x = np.arange(length) if x is None else check_numbers("x", x, "(N,)")
    check_length("x", x, length, "value of a curve")
    ax = curve_axes(ax, curves, title, log)
    draw_curves(ax, curves, x, ylabel, log)
    ax.set_xlabel(xlabel, **text_style([xlabel], AXIS_SIZE))
    return finish(ax, describe_curves(curves, ylabel, "steps"))


def check_curves(curves):
    """Return {name: (N,) array} and N, the length of every curve."""
    given = curves if isinstance(curves, Mapping) else {"": curves}
    arrays = check_arrays("curves", given, "(N,)", MOST_CURVES)
    return arrays, len(next(iter(arrays.values())))


def curve_axes(ax, curves, title, log):
    """Return the Axes to draw on, with the title and what is left out."""
    zeros = sum(int((values <= 0).sum()) for values in curves.values())
    lost = f"not drawn: {zeros} value{'s' * (zeros > 1)} of 0 or less"
    notes = [lost] if log and zeros else []
    side = widest(token_labels(list(curves), LONGEST_NAME)) + 0.8
    return axes_to_draw_on(ax, 6.5 + side * (len(curves) > 1), 3.4, title, notes)


def draw_curves(ax, curves, x, ylabel, log, markers=("",)):
    """Draw the lines; they differ in colour, in dashes and in marks."""
    labels = token_labels(list(curves), LONGEST_NAME)
    for i, (label, values) in enumerate(zip(labels, curves.values())):
        ax.plot(
            x,
            np.where(values > 0, values, np.nan) if log else values,
            label=label or "_",
            color=SERIES[i % 4],
            linewidth=1.6,
            linestyle=DASHES[(i + i // 4) % 4],
            marker=markers[i % len(markers)],
            markersize=5,
        )
    if log and any((values > 0).any() for values in curves.values()):
        ax.set_yscale("log")
    if len(curves) > 1:
        side_legend(ax)
    ax.set_ylabel(ylabel, **text_style([ylabel], AXIS_SIZE))
    finish_chart(ax, "y")


def describe_curves(curves, ylabel, places):
    """Describe where each line begins and ends, and its range."""
    parts = [
        f"{name or ylabel or 'the value'} from {values[0]:.3g} to {values[-1]:.3g}"
        f" (between {values.min():.3g} and {values.max():.3g})"
        for name, values in curves.items()
    ]
    count = len(next(iter(curves.values())))
    what = f" of {ylabel}" if ylabel and "" not in curves else ""
    return f"Lines{what} over {count} {places}: {'; '.join(parts)}."
