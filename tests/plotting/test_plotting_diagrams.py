"""The diagrams: the numbers and texts on them, and what they refuse."""

import numpy as np
import pytest
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from bert_np import BertConfig, BertError, split_heads
from bert_np.plotting import describe, plot_encoder_layer, plot_split_heads
from bert_np.plotting.colours import contrast
from bert_np.plotting.diagrams import tint

X = 10 * np.arange(3)[:, None] + np.arange(8)
WORDS = ["the", "cat", "sat"]


def texts(figure):
    """The texts drawn; an arrow is a text without letters."""
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def patches(figure, kind):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, kind)]


def cells(figure):
    """The numbers on a figure in the order drawn, and their colours."""
    values = [int(text) for text in texts(figure) if text.isdigit()]
    colours = [patch.get_facecolor()[:3] for patch in patches(figure, Rectangle)]
    return values, colours


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_last_step_holds_the_heads(heads):
    values, _ = cells(plot_split_heads(X, heads, WORDS))
    assert values[: X.size] == X.ravel().tolist()
    assert values[-X.size :] == split_heads(X[None], heads).ravel().tolist()
    assert len(values) == 3 * X.size


def test_without_the_transpose_the_numbers_stay_in_a_row():
    values, _ = cells(plot_split_heads(X, 2, WORDS, transpose=False))
    assert values == 2 * X.ravel().tolist()


@pytest.mark.parametrize("transpose", [True, False])
def test_a_number_keeps_the_colour_of_its_head(transpose):
    values, colours = cells(plot_split_heads(X, 2, WORDS, transpose=transpose))
    assert len(values) == len(colours)
    for value, colour in zip(values, colours):
        assert colour == pytest.approx(tint(value % 10 // 4))
    assert tint(0) != tint(1)


def test_cells_are_pale_enough_for_black_numbers():
    assert min(contrast("black", tint(head)) for head in range(4)) > 7


def test_steps_and_tokens_are_named():
    shown = texts(plot_split_heads(X, 2, WORDS, title="cut"))
    assert {"the", "cat", "sat", "head 0", "head 1"} <= set(shown)
    assert "transpose\n(A, T, D) = (2, 3, 4)" in shown


def test_no_text_lies_on_another():
    for figure in (
        plot_split_heads(X, 2, WORDS, title="cut"),
        plot_encoder_layer(BertConfig(), 512, title="layer"),
    ):
        figure.draw_without_rendering()
        boxes = [
            text.get_window_extent() for text in figure.axes[0].texts if text.get_text()
        ]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])


@pytest.mark.parametrize("x, heads, tokens, message", [
    (X, 3, WORDS, "num_heads = 3, allowed: a divisor of H = 8"),
    (X, 0, WORDS, "num_heads = 0"),
    (X, 2.0, WORDS, "num_heads = 2.0"),
    (X, 2, WORDS[:2], "tokens has 2 entries"),
    (np.zeros((3, 32)), 2, WORDS, "allowed: up to (8, 16)"),
    (np.zeros((1, 3, 8)), 2, WORDS, "x has shape"),
])  # fmt: skip
def test_what_cannot_be_cut_is_refused(x, heads, tokens, message):
    with pytest.raises(BertError) as error:
        plot_split_heads(x, heads, tokens)
    assert message in str(error.value)


# ---------------------------------------------------------------- a layer


@pytest.mark.parametrize(
    "order, expected",
    [
        (
            "post",
            ["self-attention", "+", "LayerNorm", "feed-forward", "+", "LayerNorm"],
        ),
        ("pre", ["LayerNorm", "self-attention", "+", "LayerNorm", "feed-forward", "+"]),
    ],
)
def test_the_parts_stand_in_order(order, expected):
    figure = plot_encoder_layer(BertConfig(), 10, order=order)
    shown = texts(figure)
    parts = [text.split("\n")[0] for text in shown[1:-1] if text != "residual"]
    assert parts == expected
    assert shown.count("residual") == len(patches(figure, Circle)) == 2
    assert len(patches(figure, FancyBboxPatch)) == 4
    assert f"({order}-norm)" in describe(figure)


def test_shapes_are_those_of_the_config():
    text = "\n".join(texts(plot_encoder_layer(BertConfig(), 10)))
    for shape in ("(10, 768)", "(12, 10, 64)", "(12, 10, 10)", "(10, 3072)"):
        assert shape in text


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_residual_leaves_before_its_part_and_ends_at_its_sum(order):
    figure = plot_encoder_layer(BertConfig(), 10, order=order)
    sums = [circle.center[0] for circle in patches(figure, Circle)]
    lines = [line.get_xdata() for line in figure.axes[0].lines]
    boxes = [box.get_x() for box in patches(figure, FancyBboxPatch)]
    starts = [boxes[0], boxes[2]]
    assert [line[-1] for line in lines] == sums
    for line, start, end in zip(lines, starts, sums):
        assert line[0] < start < end


@pytest.mark.parametrize("arguments, options, message", [
    (({}, 10), {}, "config is dict"),
    ((BertConfig(), 10), {"order": "both"}, "order = 'both'"),
    ((BertConfig(), 1000), {}, "length = 1000"),
])  # fmt: skip
def test_what_is_no_layer_is_refused(arguments, options, message):
    with pytest.raises(BertError) as error:
        plot_encoder_layer(*arguments, **options)
    assert message in str(error.value)
