"""Which heads find which relation: best heads beside a baseline, and all heads."""

import numpy as np
from matplotlib.transforms import ScaledTranslation

from bert_np.analysis.syntax import DIRECTIONS, RelationScores
from bert_np.errors import BertError, short
from bert_np.plotting.checks import check_option
from bert_np.plotting.colours import NEUTRAL, SERIES
from bert_np.plotting.drawing import (
    add_colour_bar,
    axes_to_draw_on,
    draw_head_grid,
    edges,
    finish_chart,
    head_grid_side,
    side_legend,
)
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import text_style, token_labels, widest

MOST_RELATIONS = 40
LONGEST_NAME = 24
BESIDE = (30, 76)  # points: where the columns beside the axes have their middle


@in_own_style
def plot_relations(scores, *, direction=DIRECTIONS[0], title=None, ax=None):
    """Draw how often the best head finds each relation, beside the baseline.

    Relations run down, the one that gains most over its best fixed offset
    at the top. A line shows where 95 % of the resamplings lie.

    Parameters
    ----------
    scores : RelationScores
        Of which at most 40 relations are drawn.
    direction : "dependent to head" or "head to dependent"
        Which of the two looks at the other.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Source: after Clark et al. 2019, table 1.
    """
    require_scores(scores)
    check_option("direction", direction, DIRECTIONS)
    way = DIRECTIONS.index(direction)
    gains = scores.best[way] - scores.baseline
    order = np.argsort(-gains, kind="stable")[:MOST_RELATIONS]
    names = token_labels([scores.relations[row] for row in order], LONGEST_NAME)
    labels = [f"{name}  {scores.counts[row]:,}" for name, row in zip(names, order)]
    wide, high = widest(labels) + 6.6, 0.3 * len(order) + 0.9
    ax = axes_to_draw_on(ax, wide, high, title)
    draw_series(ax, scores, way, order)
    for place, row in enumerate(order):
        layer, head = scores.heads[way, row]
        texts = f"({layer}, {head})", offset_text(scores, way, row)
        write_beside(ax, place, *texts)
    write_beside(ax, -1, "head", "offset")
    ax.set(xlim=(-0.02, 1.02), ylim=(len(order) - 0.5, -0.6))
    ax.set_yticks(range(len(order)), labels=labels, **text_style(labels))
    ax.set_xlabel(f"share of pairs found, {direction}", fontsize=AXIS_SIZE)
    ax.tick_params(axis="y", length=0)
    finish_chart(ax, "x")
    return finish(ax, describe_relations(scores, way, order))


def draw_series(ax, scores, way, order):
    """Draw the best heads, the offsets and the control of these relations."""
    series = [
        ("best head", scores.best[way], scores.best_interval, "o", "full", -0.14),
        ("best offset", scores.baseline, scores.baseline_interval, "s", "none", 0.14),
        ("best head,\nrandom weights", scores.control, None, "x", "full", 0.0),
    ]
    for (label, values, ends, marker, fill, shift), colour in zip(
        series, (NEUTRAL, SERIES[1], SERIES[2])
    ):
        if values is None:
            continue
        values = values[way] if values.ndim == 2 else values
        places = np.arange(len(order)) + shift
        if ends is not None:
            ends = (ends[way] if ends.ndim == 3 else ends)[order]
            ax.hlines(places, *ends.T, color=colour, linewidth=1.4)
        style = {"color": colour, "fillstyle": fill, "markersize": 5.5}
        ax.plot(values[order], places, marker, label=label, **style)
    side_legend(ax)
    beyond = ScaledTranslation(BESIDE[1] / 72 + 0.4, 0, ax.figure.dpi_scale_trans)
    ax.get_legend().set_bbox_to_anchor((1, 1), ax.transAxes + beyond)


def write_beside(ax, place, *texts):
    """Write texts to the right of the axes, in two columns."""
    for points, text in zip(BESIDE, texts):
        ax.annotate(
            text,
            (1, place),
            xycoords=ax.get_yaxis_transform(),
            xytext=(points, 0),
            textcoords="offset points",
            annotation_clip=False,
            ha="center",
            va="center",
            **text_style([text]),
        )


@in_own_style
def plot_relation_heads(scores, relation, *, title=None):
    """Draw how often every head finds one relation, both ways round.

    A frame marks the head that was chosen on the other half of the
    sentences; above each grid is the accuracy of the best offset.

    Parameters
    ----------
    scores : RelationScores
    relation : str
        One of scores.relations.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_scores(scores)
    if not isinstance(relation, str) or relation not in scores.relations:
        allowed = ", ".join(scores.relations)
        raise BertError(f"relation = {short(relation)}, allowed: {allowed}")
    row = scores.relations.index(relation)
    grids = scores.accuracy[:, row]
    side = head_grid_side(grids[0])
    height, width = edges(grids.shape[1:], side)
    name = token_labels([relation], LONGEST_NAME)[0]
    ways = f"{name} to its syntactic head", f"syntactic head to {name}"
    wide = 2 * max(width, widest(ways) + 0.3)
    figure = new_figure(wide + 2.2, height + 1.3, title)
    panels = list(figure.subplots(1, 2))
    for way, ax in enumerate(panels):
        image = draw_head_grid(ax, grids[way], scores.heads[way, row], side)
        offset, share = offset_text(scores, way, row), scores.baseline[row]
        shown = f"{ways[way]}\nbest offset {offset}: {share:.2f}"
        ax.set_title(shown, **text_style([shown], AXIS_SIZE))
    add_colour_bar(image, panels, 1, "share of pairs found")
    return finish(panels[0], describe_grids(scores, row, name))


def offset_text(scores, way, row):
    """Write the offset from the word that looks to the one looked at."""
    return f"{scores.offsets[row] * (1, -1)[way]:+}"


def require_scores(scores):
    """Refuse what score_relations did not return."""
    if not isinstance(scores, RelationScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what score_relations returns"
        )


def describe_relations(scores, way, order):
    """Name the relations that gain most and least over the best offset."""
    parts = []
    for row in (order[0], order[-1]):
        layer, head = scores.heads[way, row]
        parts.append(
            f"{scores.relations[row]}, head ({layer}, {head}) "
            f"{scores.best[way, row]:.2f} against {scores.baseline[row]:.2f}"
        )
    return (
        f"How often the best head finds {len(order)} relations, "
        f"{DIRECTIONS[way]}, beside the best fixed offset: the gain is largest for "
        f"{parts[0]}, smallest for {parts[1]}."
    )


def describe_grids(scores, row, name):
    """Name the chosen heads of one relation with their accuracies."""
    best = [
        f"{DIRECTIONS[way]}, head ({layer}, {head}), {scores.best[way, row]:.2f}"
        for way, (layer, head) in enumerate(scores.heads[:, row])
    ]
    return (
        f"How often each attention head finds {name}: {'; '.join(best)}; the best "
        f"offset, {scores.offsets[row]:+}, reaches {scores.baseline[row]:.2f}."
    )
