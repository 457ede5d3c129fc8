"""Which heads notice the change in minimal pairs, and one of them pair by pair."""

import numpy as np

from bert_np.analysis.minimal_pairs import PairScores
from bert_np.errors import BertError, short
from bert_np.plotting.checks import check_integer
from bert_np.plotting.colours import FAINT, NEUTRAL
from bert_np.plotting.drawing import (
    add_colour_bar,
    draw_head_grid,
    edges,
    finish_chart,
    head_grid_side,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import text_style, token_labels

CORNERS = {  # which sentences are right -> where in the panel, and its name
    (True, False): (0.03, 0.97, "left", "top", "neither\nright"),
    (False, False): (0.97, 0.97, "right", "top", "always\nthe first"),
    (True, True): (0.03, 0.03, "left", "bottom", "always\nthe second"),
    (False, True): (0.97, 0.03, "right", "bottom", "both\nright"),
}


@in_own_style
def plot_pairs(scores, *, head=None, title=None):
    """Draw in how many pairs each head is right twice, and one head's pairs.

    At the left each cell holds the share of pairs in which both sentences
    are right. At the right each point is a pair: across, by how much more
    the head looks at the first candidate in the first sentence; up, the
    same in the second sentence. A head that ignores the change has all
    its points on the dashed line, and is right once in every pair.

    Parameters
    ----------
    scores : PairScores
    head : (int, int), optional
        Layer and head of the right panel; by default the one that is
        right twice most often.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not isinstance(scores, PairScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what score_pairs returns"
        )
    both = scores.outcomes[2] / len(scores.margins)
    head = choose_head(head, both)
    side = head_grid_side(both)
    height, width = edges(both.shape, side)
    figure = new_figure(max(width, 3.2) + 6.4, max(height + 1.2, 4.2), title)
    ratios = [max(width, 3.2) + 0.6, 3.8]
    grid, points = figure.subplots(1, 2, width_ratios=ratios)
    draw_both(grid, both, head, side, scores)
    draw_points(points, scores, head)
    return finish(grid, describe_pairs(scores, head, both))


def choose_head(head, grid):
    """Return (layer, head), by default the place of the largest value."""
    if head is None:
        return tuple(map(int, np.unravel_index(grid.argmax(), grid.shape)))
    if not isinstance(head, (list, tuple)) or len(head) != 2:
        raise BertError(f"head = {short(head)}, allowed: (layer, head), None")
    return tuple(
        check_integer(f"head[{i}]", number, 0, count - 1)
        for i, (number, count) in enumerate(zip(head, grid.shape))
    )


def draw_both(ax, both, head, side, scores):
    """Draw the share of pairs with both sentences right, head by head."""
    image = draw_head_grid(ax, both, head, side)
    lucky = scores.best_by_luck / len(scores.margins)
    ax.set_title(
        f"both sentences right, of {len(scores.margins)} pairs\n"
        f"at random: 0.25; the luckiest head {lucky:.2f}",
        fontsize=AXIS_SIZE,
    )
    add_colour_bar(image, ax, 1, "share of pairs")


def draw_points(ax, scores, head):
    """Draw each pair as a point: what the head prefers in each sentence."""
    layer, number = head
    x, y = scores.margins[:, :, layer, number].T
    limit = 1.5 * max(np.abs([x, y]).max(), 1e-3)
    ax.axhline(0, color=FAINT, linewidth=0.8)
    ax.axvline(0, color=FAINT, linewidth=0.8)
    ax.plot([-limit, limit], [-limit, limit], "--", color=FAINT, linewidth=1.2)
    dots = {"color": NEUTRAL, "markersize": 4, "alpha": 0.55, "markeredgewidth": 0}
    ax.plot(x, y, "o", **dots)
    for (left, low), (at_x, at_y, ha, va, name) in CORNERS.items():
        count = int((((x < 0) == left) & ((y < 0) == low)).sum())
        ax.text(
            at_x,
            at_y,
            f"{name}: {count}",
            ha=ha,
            va=va,
            transform=ax.transAxes,
            fontsize=AXIS_SIZE,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            fontweight="bold" if name == "both\nright" else "normal",
        )
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    ax.set_title(f"head ({layer}, {number})", fontsize=AXIS_SIZE)
    labels = token_labels(scores.labels)
    for axis, label in zip((ax.xaxis, ax.yaxis), labels):
        text = f"{label}: first candidate − second"
        axis.set_label_text(text, **text_style([text], AXIS_SIZE))
    finish_chart(ax)


def describe_pairs(scores, head, both):
    """Say how often the head is right twice, and what luck would give."""
    neither, one, twice = scores.outcomes[:, head[0], head[1]]
    return (
        f"Minimal pairs, {len(both)} layers of {both.shape[1]} heads: head "
        f"({head[0]}, {head[1]}) has both sentences right in {twice} of "
        f"{len(scores.margins)} pairs, one in {one}, neither in {neither}; a head "
        f"that ignores the change has one right in every pair; of heads that decide at "
        f"random, the luckiest has both right in {scores.best_by_luck}."
    )
