"""What probes read off each layer, beside their control task."""

import numpy as np

from bert_np.analysis.probing import ProbeScores
from bert_np.errors import BertError
from bert_np.plotting.colours import DASHES, NEUTRAL, SERIES
from bert_np.plotting.curves import MARKERS
from bert_np.plotting.drawing import axes_to_draw_on, finish_chart, side_legend
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style

CURVES = {
    "accuracy": "accuracy",
    "control": "control task",
    "selectivity": "selectivity: the difference",
}


@in_own_style
def plot_probe(scores, *, title=None, ax=None):
    """Draw accuracy, control task and selectivity over the layers.

    Behind each curve lies the band of its interval. The level lines are
    guesses that need no states: each word's most frequent label, and the
    most frequent label of all.

    Parameters
    ----------
    scores : ProbeScores
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Source: after Hewitt and Liang 2019, figure 3.
    """
    if not isinstance(scores, ProbeScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what probe_layers returns"
        )
    places = np.arange(len(scores.accuracy))
    ax = axes_to_draw_on(ax, 8.6, 3.6, title)
    for i, (name, label) in enumerate(CURVES.items()):
        low, high = getattr(scores, f"{name}_interval").T
        ax.fill_between(places, low, high, color=SERIES[i], alpha=0.18, linewidth=0)
        style = {"color": SERIES[i], "linestyle": DASHES[i], "marker": MARKERS[i]}
        ax.plot(places, getattr(scores, name), label=label, markersize=5, **style)
    guesses = {
        "the word's most\nfrequent label": scores.by_word,
        "the most frequent\nlabel of all": scores.majority,
    }
    looks = (SERIES[3], "-."), (NEUTRAL, (0, (1, 3)))
    for (label, value), (colour, dashes) in zip(guesses.items(), looks):
        ax.axhline(value, label=label, color=colour, linestyle=dashes, linewidth=1.4)
    side_legend(ax)
    ax.set_xticks(places, labels=["embed-\ndings", *map(str, places[:-1])])
    ax.set_xlabel("output of layer", fontsize=AXIS_SIZE)
    ax.set_ylabel("share of words", fontsize=AXIS_SIZE)
    finish_chart(ax, "y")
    return finish(ax, describe_probe(scores))


def describe_probe(scores):
    """Say where accuracy and selectivity are largest."""
    best, selective = scores.accuracy.argmax(), scores.selectivity.argmax()
    names = ["the embeddings", *(f"layer {i}" for i in range(len(scores.accuracy) - 1))]
    return (
        f"Accuracy of a linear probe for {len(scores.labels)} labels: highest at "
        f"{names[best]}, {scores.accuracy[best]:.2f}, where the control task gets "
        f"{scores.control[best]:.2f}; the selectivity is largest at "
        f"{names[selective]}, {scores.selectivity[selective]:.2f}; guessing each "
        f"word's most frequent label gives {scores.by_word:.2f}."
    )
