"""The likeliest words behind a [MASK]."""

from bert_np.plotting.colours import FAINT, NEUTRAL
from bert_np.plotting.drawing import axes_to_draw_on
from bert_np.plotting.figure import AXIS_SIZE, finish
from bert_np.plotting.labels import LABEL_SIZE, text_style, token_labels, widest
from bert_np.plotting.preparation import check_numbers, check_rows, refuse


def plot_top_words(words, probs, *, title=None, ax=None):
    """Draw the probability of each word as a bar, in the order given.

    Parameters
    ----------
    words : list of N str
    probs : array of shape (N,)
        Each value from 0 to 1. One [MASK] of `bert_np.fill_mask` gives
        both: words, probs = zip(*guesses[0]).
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    probs = check_numbers("probs", probs, "(N,)")
    refuse("probs", probs, (probs < 0) | (probs > 1 + 1e-6), "allowed 0 to 1")
    labels = token_labels(check_rows("probs", probs, words))
    high = min(9.0, 0.28 * len(labels) + 0.5)
    ax = axes_to_draw_on(ax, widest(labels) + 5.0, high, title)
    draw_words(ax, labels, probs)
    return finish(
        ax,
        f"The probabilities of {len(labels)} words, "
        f"{labels[0]} {probs[0]:.2f} to {labels[-1]} {probs[-1]:.2f}, "
        f"together {probs.sum():.2f}.",
    )


def draw_words(ax, labels, probs):
    """Draw the bars on a scale from 0 to 1, each with its number."""
    places = range(len(labels))
    ax.barh(places, probs, color=NEUTRAL, height=0.7)
    ax.set_yticks(places, labels=labels, fontsize=LABEL_SIZE, **text_style(labels))
    for place, value in enumerate(probs):
        ax.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=LABEL_SIZE)
    ax.set(
        xlim=(0, 1.09), ylim=(len(labels) - 0.4, -0.6), xticks=[0, 0.25, 0.5, 0.75, 1]
    )
    ax.set_xlabel("probability", fontsize=AXIS_SIZE)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.grid(True, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)
