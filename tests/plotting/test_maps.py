"""Maps of attention: what they show, the choices, tokens of any kind."""

import html
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from plotting import samples
from plotting.samples import PROBS, WORDS, hatched, map_of, names, random_probs, ticks

from bert_np import plotting as P
from bert_np.plotting import colours
from bert_np.plotting.drawing import largest_of_blocks, masked_rectangles
from bert_np.plotting.figure import new_figure
from bert_np.plotting.labels import JOINERS, token_labels, token_text

SQUARES = st.integers(1, 6).flatmap(lambda n: arrays(bool, (n, n)))


def inside(ax):
    """Which of 3 x 3 cells lie within the hatching of a map."""
    (patch,) = hatched(ax)
    points = [(j, i) for i, j in np.ndindex(3, 3)]
    return patch.get_path().contains_points(points).reshape(3, 3)


# ---------------------------------------------------------------- the maps
def test_plot_attention_shows_the_worked_example():
    figure = P.plot_attention(PROBS, WORDS, decimals=4, title="by hand")
    ax, bar = figure.axes
    assert np.array_equal(map_of(figure), PROBS) and not hatched(ax)
    assert samples.written(ax) == [f"{value:.4f}" for value in PROBS.ravel()]
    places = [tuple(map(float, text.get_position())) for text in ax.texts]
    assert places == [(j, i) for i in range(3) for j in range(3)]
    assert ticks(ax.xaxis) == ticks(ax.yaxis) == WORDS
    assert ax.get_ylabel() == "query: the token that looks"
    assert ax.get_xlabel() == "key: the token looked at"
    assert ax.get_ylim() == (2.5, -0.5)  # the first query at the top
    assert bar.get_ylim() == (0, 1) and bar.get_ylabel() == "attention probability"
    right, below = ax.child_axes
    assert ticks(right.yaxis) == ["0.9999", "0.9999", "1.0000"]
    assert ticks(below.xaxis) == ["0.9836", "0.9273", "1.0889"]


def test_cells_carry_readable_numbers_up_to_12_tokens():
    values = np.linspace(0, 1, 144).reshape(12, 12)
    ax = P.plot_attention(values, names(12)).axes[0]
    assert samples.written(ax) == [f"{value:.2f}" for value in values.ravel()]
    cells = ax.images[0].cmap(ax.images[0].norm(values)).reshape(-1, 4)
    inks = [text.get_color() for text in ax.texts]
    assert min(map(colours.contrast, inks, cells)) >= 4.5
    assert not P.plot_attention(random_probs(13, 13), names(13)).axes[0].texts


def test_masked_keys_are_hatched_and_grey_only_if_exactly_zero():
    masked = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0.4, 0.4, 0.2]]
    ax = P.plot_attention(masked, WORDS, attention_mask=[1, 1, 0]).axes[0]
    assert np.argwhere(ax.images[0].get_array().mask).tolist() == [[0, 2], [1, 2]]
    assert samples.written(ax)[8] == "0.20" and inside(ax)[:, 2].all()
    causal = np.tril(np.ones((3, 3)))
    both = P.plot_attention(masked, WORDS, visible=causal, attention_mask=[0, 1, 1])
    assert np.array_equal(inside(both.axes[0]), (causal * [0, 1, 1]) == 0)


@given(visible=SQUARES)
def test_hatching_covers_the_masked_cells_once(visible):
    covered = np.zeros(visible.shape, int)
    for (left, top), _, (right, bottom), _ in masked_rectangles(visible).astype(int):
        covered[top:bottom, left:right] += 1
    assert np.array_equal(covered, ~visible)


@given(count=st.integers(1, 9), block=st.integers(1, 4))
def test_a_block_is_drawn_as_its_largest_cell(count, block):
    cells = random_probs(count, count)
    largest = largest_of_blocks(cells, block)
    for i, j in np.ndindex(largest.shape):
        part = cells[i * block : (i + 1) * block, j * block : (j + 1) * block]
        assert largest[i, j] == part.max()


def test_the_scale_is_fixed_and_its_power_stated():
    figure = P.plot_attention(PROBS / 100, WORDS, power=0.5)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (0, 1) and image.get_cmap().name == "viridis"
    assert float(image.norm(0.25)) == pytest.approx(0.5)
    assert "p ** 0.5" in figure.axes[1].get_ylabel()


def test_plot_heads_has_a_panel_per_head():
    probs = random_probs(5, 4, 4)
    figure = P.plot_heads(probs, names(4))
    *panels, _ = figure.axes
    assert [ax.get_title() for ax in panels] == [f"head {i}" for i in range(5)]
    assert all(np.array_equal(map_of(figure, i), probs[i]) for i in range(5))
    assert [len(ticks(ax.xaxis)) for ax in panels] == [0, 0, 4, 4, 4]
    assert [len(ticks(ax.yaxis)) for ax in panels] == [4, 0, 0, 4, 0]
    assert figure.get_supylabel() == "query: the token that looks"


def test_plot_model_has_a_thumbnail_per_head_at_its_place():
    probs = random_probs(3, 4, 5, 5)
    figure = P.plot_model(list(probs), names(5), attention_mask=[1, 1, 1, 1, 0])
    ax = figure.axes[0]
    assert len(ax.images) == len(hatched(ax)) == 12
    for image, (layer, head) in zip(ax.images, np.ndindex(3, 4)):
        left, right, bottom, top = image.get_extent()
        assert (left + right) / 2 == pytest.approx(head)
        assert (bottom + top) / 2 == pytest.approx(layer) and bottom > top
        assert np.array_equal(image.get_array(), probs[layer, head])
    numbers = ticks(ax.xaxis), ticks(ax.yaxis)
    assert numbers == (["0", "1", "2", "3"], ["0", "1", "2"])
    batch = P.plot_model([probs[:1], probs[1:2]], names(5)).axes[0].images
    assert np.array_equal(batch[7].get_array(), probs[1, 3])


@pytest.mark.parametrize("dtype", ["float16", ">f8", "int64", "bool"])
def test_any_real_dtype_is_drawn(dtype):
    array = np.eye(3).astype(dtype)
    assert np.array_equal(map_of(P.plot_attention(array, np.array(WORDS))), np.eye(3))
    assert np.array_equal(map_of(P.plot_attention(array.tolist(), WORDS)), np.eye(3))


# -------------------------------------------------------------- the choices
def test_crop_padding_leaves_the_real_tokens():
    probs = random_probs(2, 4, 4)
    cropped, tokens = P.crop_padding(probs, names(4), [0, 1, 1, 0])
    assert tokens == ["t1", "t2"] and np.array_equal(cropped, probs[:, 1:3, 1:3])
    figure = P.plot_heads(probs, names(4), attention_mask=[0, 1, 1, 0], crop=True)
    assert np.array_equal(map_of(figure), cropped[0]) and not hatched(figure.axes[0])
    assert samples.title_of(figure) == "padding cropped"


def test_hide_special_with_and_without_renormalising():
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    probs = [[1, 0, 0, 0], [0.5, 0.3, 0.1, 0.1], [0.5, 0, 0, 0.5], [0, 0, 1, 0]]
    kept, words = P.hide_special(probs, tokens)
    assert words == ["a", "b"] and kept.tolist() == [[0.3, 0.1], [0, 0]]
    figure = P.plot_attention(probs, tokens, special="hide", title="x")
    assert samples.title_of(figure) == "x [CLS] and [SEP] hidden, rows not renormalised"
    figure = P.plot_attention(PROBS, WORDS, special="hide")
    title = "no [CLS] or [SEP] among the tokens to hide"
    assert samples.title_of(figure) == title
    again = P.plot_attention(probs, tokens, special="renormalise")
    assert "rows renormalised to sum to 1" in samples.title_of(again)
    assert map_of(again) == pytest.approx(np.array([[0.75, 0.25], [0, 0]]))


PIECES = st.integers(0, 2).map(lambda n: ["a", *["##b"] * n])
OTHERS = st.sampled_from([["[CLS]"], ["[SEP]", "##b"], ["##"]])


@given(st.lists(PIECES | OTHERS, min_size=1, max_size=5))
def test_merging_word_pieces_averages_rows_and_sums_columns(groups):
    groups = [part for group in groups for part in split_special(group)]
    tokens = [token for group in groups for token in group]
    ends = np.cumsum([len(group) for group in groups])
    places = [range(end - len(group), end) for end, group in zip(ends, groups)]
    probs = random_probs(2, len(tokens), len(tokens))
    merged, words = P.merge_word_pieces(probs, tokens)
    assert words == [group[0] + "b" * (len(group) - 1) for group in groups]
    for i, j in np.ndindex(len(words), len(words)):
        loop = probs[1][np.ix_(places[i], places[j])].sum() / len(places[i])
        assert merged[1, i, j] == pytest.approx(loop)


def split_special(group):
    """After a special token, a piece is a word of its own."""
    return [[token] for token in group] if group[0] == "[SEP]" else [group]


def test_choices_apply_to_the_masks_as_well():
    tokens, causal = ["[CLS]", "un", "##do", "[SEP]", "[PAD]"], np.tril(np.ones((5, 5)))
    given = {"attention_mask": [1, 1, 1, 1, 0], "visible": causal, "merge_words": True}
    data = P.prepare_maps(np.eye(5), tokens, 2, **given, crop=True, special="hide")
    assert data.queries == data.keys == ["undo"] and data.visible.tolist() == [[True]]
    given = {"attention_mask": [1, 1, 0, 1, 0], "merge_words": True}
    data = P.prepare_maps(np.eye(5), tokens, 2, **given)
    assert data.visible.tolist() == [[True, True, True, False]] * 4


def test_between_draws_one_block():
    tokens = ["[CLS]", "a", "##b", "[SEP]", "c", "[SEP]", "x"]
    probs = random_probs(7, 7)
    choices = {"segment_ids": [0, 0, 0, 0, 1, 1, 0], "between": "first to second"}
    figure = P.plot_attention(probs, tokens, attention_mask=[1] * 6 + [0], **choices)
    assert np.array_equal(map_of(figure), probs[:4, 4:6])
    ax, title = figure.axes[0], "queries of the first sentence, keys of the"
    assert ticks(ax.yaxis) == tokens[:4] and ticks(ax.xaxis) == tokens[4:6]
    sums = [f"{x:.2f}" for x in probs[:4, 4:6].sum(axis=1)]
    assert ticks(ax.child_axes[0].yaxis) == sums
    assert samples.title_of(figure) == f"{title} second"
    choices |= {"between": "second to first", "special": "hide", "merge_words": True}
    back = P.plot_heads(probs[None], [*tokens[:6], "[PAD]"], **choices)
    assert map_of(back) == pytest.approx((probs[4, 1] + probs[4, 2]).reshape(1, 1))
    assert "(queries) and 1 token, ab (keys)" in P.describe(back)


@pytest.mark.parametrize("mean, other", [("heads", "layer"), ("layers", "head")])
def test_means_are_taken_and_named(mean, other):
    probs = random_probs(2, 3, 4, 4)
    expected = probs.mean(1 if mean == "heads" else 0)
    one = P.plot_attention(probs[0], names(4), mean=mean)
    assert f"Mean attention of all {mean} over 4 tokens" in P.describe(one)
    panels = P.plot_heads(probs, names(4), mean=mean)
    assert panels.axes[1].get_title() == f"{other} 1"
    np.testing.assert_allclose(map_of(panels, 1), expected[1])
    assert f", {other} " in P.describe(panels)
    model = P.plot_model(probs, names(4), mean=mean).axes[0]
    assert len(model.images) == len(expected)
    assert ticks(model.xaxis if mean == "heads" else model.yaxis) == ["mean"]


# ------------------------------------------------------------- description
def test_describe_attention_names_the_strongest_cell():
    probs = np.full((2, 3, 4, 4), 0.25)
    probs[1, 2, 3] = [0.1, 0.7, 0.1, 0.1]
    text = P.describe_attention(probs, names(4))
    assert text.startswith("Attention of 2 layers of 3 heads over 4 tokens, t0 to t3: ")
    assert "0.70, from t3 (query 3) to t1 (key 1), layer 1, head 2;" in text
    assert "3 heads of one layer" in P.describe_attention(probs[1], names(4))
    assert "0%" in P.describe_attention(np.zeros((1, 1)), ["a"])


# ------------------------------------------------------- tokens of any kind
def test_odd_tokens_are_labels_and_never_formulas():
    T = len(samples.ODD)
    probs, options = random_probs(T, T), {"title": "$x$ \a", "colour_bar": False}
    figure = P.plot_attention(probs, samples.ODD, **options)
    labels, title = ticks(figure.axes[0].xaxis), samples.title_of(figure)
    assert labels[3:6] == ["$x$", "$$", '<b>&"'] and labels[7] == r"a\u0007b"
    assert labels[8] == r"\ud800" and labels[11] == "W" * 15 + "…"
    assert not any(tick.get_parse_math() for tick in figure.axes[0].get_xticklabels())
    assert title == r"$x$ \u0007"


def test_a_character_without_a_font_becomes_its_code_point(monkeypatch):
    families = "DejaVu Sans, No Such Font, DejaVu Sans Mono"
    monkeypatch.setattr("bert_np.plotting.labels.FAMILIES", families)
    assert token_labels(["中", "é", "\ue000"]) == [r"\u4e2d", "é", r"\ue000"]
    assert token_labels(["\U0001f9ff", "\x07" * 5]) == [r"\U0001f9ff", r"\u0007\u0007…"]
    assert token_labels(["x" * 16, "x" * 17]) == ["x" * 16, "x" * 15 + "…"]


def test_right_to_left_letters_are_reversed_if_matplotlib_does_not(monkeypatch):
    word = "##\u05d0\u05d1\u05d2"
    monkeypatch.setattr("matplotlib.__version_info__", (3, 10, 0))
    assert token_labels([word, "abc"]) == ["##\u05d2\u05d1\u05d0", "abc"]
    monkeypatch.setattr("matplotlib.__version_info__", (3, 11, 0))
    assert token_labels([word]) == [word]


def test_tokens_are_written_so_that_they_can_be_seen():
    assert token_text("") == "''" and token_text("   ") == "'   '"
    assert token_text("\ud800\n") == r"\ud800\u000a"
    assert token_text("a\u202e") == r"a\u202e"
    assert token_text(f"a{JOINERS}") == f"a{JOINERS}"
    assert len(token_text("a" * 1000)) == 16 == len(token_text(" " * 1000)) - 2


# ------------------------------------------------------- notebooks and pyplot
def test_a_notebook_cell_shows_one_png_and_the_description(monkeypatch):
    from IPython.core.formatters import DisplayFormatter

    shown, figure = [], P.plot_attention(PROBS, ["a<b", "cat", "sat"])
    show = lambda *given, **options: shown.append((*given, options))  # noqa: E731
    monkeypatch.setattr("IPython.display.display", show)
    assert DisplayFormatter().format(figure) == ({}, {})
    (picture, options), (words, _) = shown
    assert picture.pop("image/png").startswith("iVBORw0KGgo")
    assert picture == {"text/plain": figure.description}
    assert options["metadata"] == {"image/png": {"alt": figure.description}}
    assert html.escape(figure.description) in words["text/html"]
    new_figure(2, 2)._ipython_display_()
    assert len(shown) == 3  # without a description there are no words


@pytest.mark.slow
def test_pyplot_is_not_imported():
    code = """if True:
        import sys, numpy as np, bert_np.plotting
        bert_np.plotting.plot_attention(np.eye(2), ["a", "b"]).canvas.draw()
        assert "matplotlib.pyplot" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
