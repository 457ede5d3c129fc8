"""Numbers over layers or over steps, as lines."""

from collections.abc import Mapping

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.colours import DASHES, FAINT, SERIES
from bert_np.plotting.drawing import axes_to_draw_on, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish
from bert_np.plotting.labels import LABEL_SIZE, text_style, token_labels, widest
from bert_np.plotting.preparation import check_numbers, check_tokens

MARKERS = ("o", "s", "^", "D", "v")
MOST_CURVES = 16
LONGEST_NAME = 32  # characters in the legend


def plot_by_layer(curves, *, stages=None, ylabel="", log=False, title=None, ax=None):
    """Draw a value for each layer or stage, a line for each name.

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

    Raises
    ------
    BertError
    """
    curves = check_curves(curves)
    length = len(next(iter(curves.values())))
    if stages is not None:
        stages = token_labels(check_stages(stages, length))
    ax = curve_axes(ax, curves, title, log)
    draw_curves(ax, curves, np.arange(length), ylabel, log, MARKERS)
    if stages is None:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("layer", fontsize=AXIS_SIZE)
    else:
        turned = widest(stages) * length > 6
        ax.set_xticks(
            range(length),
            labels=stages,
            rotation=90 if turned else 0,
            fontsize=LABEL_SIZE,
            **text_style(stages),
        )
    return finish(ax, describe_curves(curves, ylabel, "stages" if stages else "layers"))


def plot_curves(
    curves, x=None, *, xlabel="step", ylabel="loss", log=False, title=None, ax=None
):
    """Draw values over steps, a line for each name.

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

    Raises
    ------
    BertError
    """
    curves = check_curves(curves)
    length = len(next(iter(curves.values())))
    x = np.arange(length) if x is None else check_numbers("x", x, "(N,)")
    if len(x) != length:
        raise BertError(
            f"x has {len(x)} entries, but the curves have {length}; the "
            "two must be equal"
        )
    ax = curve_axes(ax, curves, title, log)
    draw_curves(ax, curves, x, ylabel, log)
    ax.set_xlabel(xlabel, fontsize=AXIS_SIZE, **text_style([xlabel]))
    return finish(ax, describe_curves(curves, ylabel, "steps"))


def check_curves(curves):
    """Give {name: (N,) array}, all of one length, or raise."""
    given = curves if isinstance(curves, Mapping) else {"": curves}
    if not 1 <= len(given) <= MOST_CURVES:
        raise BertError(f"curves has {len(given)} entries, allowed: 1 to {MOST_CURVES}")
    arrays = {
        str(name): check_numbers(
            f"curves[{name!r}]" if name else "curves", values, "(N,)"
        )
        for name, values in given.items()
    }
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise BertError(f"curves have different lengths, {lengths}")
    return arrays


def check_stages(stages, length):
    """Give the names of the stages, one for each place, or raise."""
    stages = check_tokens(stages)
    if len(stages) != length:
        raise BertError(
            f"stages has {len(stages)} entries, but the curves have "
            f"{length}; the two must be equal"
        )
    return stages


def curve_axes(ax, curves, title, log):
    """Give the Axes to draw on, with the title and what is left out."""
    zeros = sum(int((values <= 0).sum()) for values in curves.values())
    notes = [f"not drawn: {zeros} of the values, 0 or less"] if log and zeros else []
    named = [name for name in curves if name]
    side = widest(token_labels(named, LONGEST_NAME)) + 0.8 if len(named) > 1 else 0
    return axes_to_draw_on(ax, 6.5 + side, 3.4, title, notes)


def draw_curves(ax, curves, x, ylabel, log, markers=("",)):
    """Draw the lines; they differ in colour, in dashes and in marks."""
    labels = token_labels(list(curves), LONGEST_NAME)
    for i, (label, values) in enumerate(zip(labels, curves.values())):
        shown = np.where(values > 0, values, np.nan) if log else values
        ax.plot(
            x,
            shown,
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
    ax.set_ylabel(ylabel, fontsize=AXIS_SIZE, **text_style([ylabel]))
    ax.tick_params(labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.grid(True, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)


def describe_curves(curves, ylabel, places):
    """Say where each line begins and ends, and between which values it stays."""
    parts = [
        f"{name or ylabel or 'the value'} from {values[0]:.3g} to {values[-1]:.3g}"
        f" (between {values.min():.3g} and {values.max():.3g})"
        for name, values in curves.items()
    ]
    count = len(next(iter(curves.values())))
    what = f" of {ylabel}" if ylabel and "" not in curves else ""
    return f"Lines{what} over {count} {places}: {'; '.join(parts)}."
