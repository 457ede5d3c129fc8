"""Maps of attention: what they show, the choices, tokens of any kind."""

import html
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from plotting.samples import (
    ODD,
    PAIR,
    PROBS,
    SEGMENTS,
    WORDS,
    assert_text_fits,
    hatched,
    map_of,
    names,
    random_probs,
    ticks,
    title_of,
    written,
)

from bert_np.plotting import (
    colours,
    crop_padding,
    describe,
    describe_attention,
    hide_special,
    merge_word_pieces,
    plot_attention,
    plot_heads,
    plot_links,
    plot_model,
    prepare_maps,
)
from bert_np.plotting.drawing import largest_of_blocks, masked_rectangles
from bert_np.plotting.figure import new_figure
from bert_np.plotting.labels import JOINERS, token_labels, token_text

SQUARES = st.integers(1, 6).flatmap(lambda n: arrays(bool, (n, n)))


def inside(ax, shape):
    """Where the hatching of a map lies, as cells."""
    (patch,) = hatched(ax)
    points = [(j, i) for i, j in np.ndindex(shape)]
    return patch.get_path().contains_points(points).reshape(shape)


# ---------------------------------------------------------------- the maps
def test_plot_attention_shows_the_worked_example():
    figure = plot_attention(PROBS, WORDS, decimals=4, title="by hand")
    assert isinstance(figure, Figure) and title_of(figure) == "by hand"
    ax, bar = figure.axes
    assert np.array_equal(map_of(figure), PROBS)
    assert written(ax) == [f"{value:.4f}" for value in PROBS.ravel()]
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
    assert (right.get_ylabel(), below.get_xlabel()) == ("row sum", "column sum")
    assert not hatched(ax)


def test_cells_carry_readable_numbers_up_to_12_tokens():
    values = np.linspace(0, 1, 144).reshape(12, 12)
    ax = plot_attention(values, names(12)).axes[0]
    assert written(ax) == [f"{value:.2f}" for value in values.ravel()]
    for text, value in zip(ax.texts, values.ravel()):
        cell = ax.images[0].cmap(ax.images[0].norm(value))
        assert colours.contrast(text.get_color(), cell) >= 4.5
    assert written(plot_attention(random_probs(13, 13), names(13)).axes[0]) == []


def test_masked_keys_are_hatched_and_grey_only_if_exactly_zero():
    masked = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0.4, 0.4, 0.2]]
    figure = plot_attention(masked, WORDS, attention_mask=[1, 1, 0])
    ax = figure.axes[0]
    grey = ax.images[0].get_array().mask
    assert grey.tolist() == [[False, False, True]] * 2 + [[False] * 3]
    assert written(ax)[8] == "0.20"
    assert inside(ax, (3, 3)).tolist() == [[False, False, True]] * 3
    causal = np.tril(np.ones((3, 3)))
    both = plot_attention(masked, WORDS, visible=causal, attention_mask=[0, 1, 1])
    assert np.array_equal(inside(both.axes[0], (3, 3)), (causal * [0, 1, 1]) == 0)


@given(visible=SQUARES)
def test_hatching_covers_the_masked_cells_once(visible):
    corners = masked_rectangles(visible)
    widths = corners[:, 1, 0] - corners[:, 0, 0]
    assert widths.sum() == (~visible).sum()
    covered = np.zeros(visible.shape, bool)
    for (left, top), _, (right, bottom), _ in corners.astype(int):
        covered[top:bottom, left:right] = True
    assert np.array_equal(covered, ~visible)


@given(count=st.integers(1, 9), block=st.integers(1, 4))
def test_a_block_is_drawn_as_its_largest_cell(count, block):
    cells = random_probs(count, count)
    largest = largest_of_blocks(cells, block)
    for i, j in np.ndindex(largest.shape):
        part = cells[i * block : (i + 1) * block, j * block : (j + 1) * block]
        assert largest[i, j] == part.max()


def test_the_scale_is_fixed_and_its_power_stated():
    figure = plot_attention(PROBS / 100, WORDS, power=0.5)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (0, 1) and image.get_cmap().name == "viridis"
    assert float(image.norm(0.25)) == pytest.approx(0.5)
    assert "p ** 0.5" in figure.axes[1].get_ylabel()
    assert float(plot_attention(PROBS, WORDS).axes[0].images[0].norm(0.25)) == 0.25


def test_plot_heads_has_a_panel_per_head():
    probs = random_probs(5, 4, 4)
    figure = plot_heads(probs, names(4), title="layer 3")
    *panels, bar = figure.axes
    assert [ax.get_title() for ax in panels] == [f"head {i}" for i in range(5)]
    assert all(np.array_equal(map_of(figure, i), probs[i]) for i in range(5))
    labelled = [
        [ticks(axis) == names(4) for axis in (p.xaxis, p.yaxis)] for p in panels
    ]
    assert [x for x, _ in labelled] == [False, False, True, True, True]
    assert [y for _, y in labelled] == [True, False, False, True, False]
    assert figure.get_supylabel() == "query: the token that looks"
    assert figure.get_supxlabel() == "key: the token looked at"
    assert bar.get_ylabel() == "attention probability"


def test_plot_model_has_a_thumbnail_per_head_at_its_place():
    probs = random_probs(3, 4, 5, 5)
    figure = plot_model(list(probs), names(5), attention_mask=[1, 1, 1, 1, 0])
    ax = figure.axes[0]
    assert len(ax.images) == len(hatched(ax)) == 12
    for image, (layer, head) in zip(ax.images, np.ndindex(3, 4)):
        left, right, bottom, top = image.get_extent()
        assert (left + right) / 2 == pytest.approx(head)
        assert (bottom + top) / 2 == pytest.approx(layer) and bottom > top
        assert np.array_equal(image.get_array(), probs[layer, head])
    assert ticks(ax.xaxis) == ["0", "1", "2", "3"] and ticks(ax.yaxis) == [
        "0",
        "1",
        "2",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")
    assert "5 tokens, t0 to t4" in title_of(figure)
    batch = plot_model([probs[:1, :], probs[1:2, :]], names(5)).axes[0].images
    assert np.array_equal(batch[7].get_array(), probs[1, 3])


def test_thumbnails_keep_a_thin_diagonal():
    probs = np.eye(500)[None, None].repeat(12, axis=1)
    figure = plot_model(probs, names(500))
    cells = figure.axes[0].images[3].get_array()
    assert len(cells) < 100
    assert np.array_equal(np.diag(cells), np.ones(len(cells)))
    assert "the largest of each" in title_of(figure)


@pytest.mark.parametrize("dtype", ["float16", ">f8", "int64", "bool"])
def test_any_real_dtype_is_drawn(dtype):
    array = np.eye(3).astype(dtype)
    assert np.array_equal(map_of(plot_attention(array, np.array(WORDS))), np.eye(3))
    assert np.array_equal(map_of(plot_attention(array.tolist(), WORDS)), np.eye(3))


# -------------------------------------------------------------- the choices
def test_crop_padding_leaves_the_real_tokens():
    probs = random_probs(2, 4, 4)
    cropped, tokens = crop_padding(probs, names(4), [0, 1, 1, 0])
    assert tokens == ["t1", "t2"] and np.array_equal(cropped, probs[:, 1:3, 1:3])
    figure = plot_heads(probs, names(4), attention_mask=[0, 1, 1, 0], crop=True)
    assert np.array_equal(map_of(figure), cropped[0]) and not hatched(figure.axes[0])
    assert title_of(figure) == "padding cropped"


def test_hide_special_with_and_without_renormalising():
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    probs = [[1, 0, 0, 0], [0.5, 0.3, 0.1, 0.1], [0.5, 0, 0, 0.5], [0, 0, 1, 0]]
    kept, words = hide_special(probs, tokens)
    assert words == ["a", "b"]
    assert kept == pytest.approx(np.array([[0.3, 0.1], [0, 0]]))
    shares, _ = hide_special(probs, tokens, renormalise=True)
    assert shares == pytest.approx(np.array([[0.75, 0.25], [0, 0]]))
    figure = plot_attention(probs, tokens, special="hide", title="x")
    assert title_of(figure) == "x [CLS] and [SEP] hidden, rows not renormalised"
    again = plot_attention(probs, tokens, special="renormalise")
    assert "rows renormalised to sum to 1" in title_of(again)
    assert written(again.axes[0]) == ["0.75", "0.25", "0.00", "0.00"]


PIECES = st.integers(0, 2).map(lambda n: ["a", *["##b"] * n])
OTHERS = st.sampled_from([["[CLS]"], ["[SEP]", "##b"], ["##"]])


@given(st.lists(PIECES | OTHERS, min_size=1, max_size=5))
def test_merging_word_pieces_averages_rows_and_sums_columns(groups):
    groups = [part for group in groups for part in split_special(group)]
    tokens = [token for group in groups for token in group]
    ends = np.cumsum([len(group) for group in groups])
    places = [range(end - len(group), end) for end, group in zip(ends, groups)]
    probs = random_probs(2, len(tokens), len(tokens))
    merged, words = merge_word_pieces(probs, tokens)
    assert words == [group[0] + "b" * (len(group) - 1) for group in groups]
    for i, j in np.ndindex(len(words), len(words)):
        loop = probs[1][np.ix_(places[i], places[j])].sum() / len(places[i])
        assert merged[1, i, j] == pytest.approx(loop)


def split_special(group):
    """After a special token, a piece is a word of its own."""
    return [[token] for token in group] if group[0] == "[SEP]" else [group]


def test_choices_apply_to_the_masks_as_well():
    tokens = ["[CLS]", "un", "##do", "[SEP]", "[PAD]"]
    mask, causal = [1, 1, 1, 1, 0], np.tril(np.ones((5, 5)))
    choices = {"crop": True, "merge_words": True, "special": "hide"}
    data = prepare_maps(
        np.eye(5), tokens, 2, attention_mask=mask, visible=causal, **choices
    )
    assert data.queries == data.keys == ["undo"] and data.visible.tolist() == [[True]]
    data = prepare_maps(
        np.eye(5), tokens, 2, attention_mask=[1, 1, 0, 1, 0], merge_words=True
    )
    assert data.visible.tolist() == [[True, True, True, False]] * 4


def test_between_draws_one_block():
    probs, title = random_probs(7, 7), "only from the first to the second sentence"
    choices = {"segment_ids": SEGMENTS, "between": "first to second"}
    figure = plot_attention(probs, PAIR, **choices)
    assert np.array_equal(map_of(figure), probs[:4, 4:6])
    ax = figure.axes[0]
    assert ticks(ax.yaxis) == PAIR[:4] and ticks(ax.xaxis) == PAIR[4:6]
    sums = [f"{x:.2f}" for x in probs[:4, 4:6].sum(axis=1)]
    assert ticks(ax.child_axes[0].yaxis) == sums
    assert title_of(figure) == f"{title}, the rest left out"
    choices |= {"between": "second to first", "special": "hide", "merge_words": True}
    back = plot_heads(probs[None], PAIR, **choices)
    assert map_of(back) == pytest.approx((probs[4, 1] + probs[4, 2]).reshape(1, 1))
    assert "on 1 token, ab" in describe(back)


def test_between_leaves_masked_tokens_out():
    probs, tokens = random_probs(7, 7), [*PAIR[:-1], "x"]
    choices = {"between": "second to first", "attention_mask": [1] * 6 + [0]}
    choices["segment_ids"] = SEGMENTS
    figure = plot_model(probs[None, None], tokens, **choices)
    assert np.array_equal(map_of(figure), probs[4:6, :4])
    links = plot_links(probs, tokens, mass=1, **choices).axes[0].collections[0]
    assert len(links.get_segments()) == 8


@pytest.mark.parametrize("mean, axis", [("heads", 1), ("layers", 0)])
def test_means_are_taken_and_named(mean, axis):
    probs = random_probs(2, 3, 4, 4)
    expected, other = probs.mean(axis), {"heads": "layer", "layers": "head"}[mean]
    one = plot_attention(
        probs[0] if mean == "heads" else probs[:, 0], names(4), mean=mean
    )
    assert title_of(one) == f"mean over {mean}"
    assert f"as the mean over {mean} over 4 tokens" in describe(one)
    panels = plot_heads(probs, names(4), mean=mean)
    assert panels.axes[1].get_title() == f"{other} 1"
    np.testing.assert_allclose(map_of(panels, 1), expected[1])
    assert f", {other} " in describe(panels)
    model = plot_model(probs, names(4), mean=mean).axes[0]
    assert len(model.images) == len(expected)
    assert ticks(model.xaxis if mean == "heads" else model.yaxis) == ["mean"]
    both = plot_attention(probs, names(4), mean="layers and heads")
    np.testing.assert_allclose(map_of(both), probs.mean((0, 1)))


# ------------------------------------------------------------- description
def test_describe_attention_names_the_strongest_cell():
    text = describe_attention(PROBS, WORDS)
    assert "0.79, from sat (query 2) to sat (key 2)" in text
    assert "sat (key 2) gets the most, 36% of all" in text
    assert text.startswith("Attention of one head over 3 tokens, the to sat: ")
    probs = np.full((2, 3, 4, 4), 0.25)
    probs[1, 2, 3] = [0.1, 0.7, 0.1, 0.1]
    text = describe_attention(probs, names(4))
    assert "2 layers of 3 heads" in text
    assert "0.70, from t3 (query 3) to t1 (key 1), layer 1, head 2" in text
    assert "3 heads of one layer" in describe_attention(probs[1], names(4))
    assert "0%" in describe_attention(np.zeros((1, 1)), ["a"])


# ------------------------------------------------------- tokens of any kind
def test_odd_tokens_are_labels_and_never_formulas():
    T = len(ODD)
    figure = plot_attention(random_probs(T, T), ODD, title="$x$ 中 \a $$")
    labels = ticks(figure.axes[0].xaxis)
    assert labels[3:6] == ["$x$", "$$", '<b>&"'] and labels[7:9] == [
        r"a\u0007b",
        r"\ud800",
    ]
    assert labels[11] == "W" * 15 + "…"
    assert not any(tick.get_parse_math() for tick in figure.axes[0].get_xticklabels())
    assert title_of(figure).startswith("$x$ ") and r"\u0007 $$" in title_of(figure)
    assert_text_fits(figure)


def test_a_character_without_a_font_becomes_its_code_point(monkeypatch):
    families = "DejaVu Sans, No Such Font, DejaVu Sans Mono"
    monkeypatch.setattr("bert_np.plotting.labels.FAMILIES", families)
    assert token_labels(["中", "é", "\ue000"]) == [r"\u4e2d", "é", r"\ue000"]
    assert token_labels(["\U0001f9ff"]) == [r"\U0001f9ff"]


def test_long_tokens_end_in_an_ellipsis_and_never_cut_a_code_point():
    assert token_labels(["\x07" * 5]) == [r"\u0007\u0007…"]
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
    from IPython.core import formatters

    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append((data, options))
    )
    figure = plot_attention(PROBS, ["a<b", "cat", "sat"])
    assert formatters.DisplayFormatter().format(figure) == ({}, {})
    (picture, options), (words, _) = shown
    assert set(picture) == {"text/plain", "image/png"}
    assert picture["image/png"].startswith(b"\x89PNG")
    assert picture["text/plain"] == figure.description
    assert options["metadata"] == {"image/png": {"alt": figure.description}}
    assert set(words) == {"text/html"} and "a<b" not in words["text/html"]
    assert html.escape(figure.description) in words["text/html"]
    new_figure(2, 2)._ipython_display_()
    assert len(shown) == 3  # without a description there are no words


@pytest.mark.slow
def test_pyplot_is_not_imported():
    code = (
        "import sys, numpy as np\n"
        "from bert_np.plotting import plot_attention\n"
        "plot_attention(np.eye(2), ['a', 'b']).canvas.draw()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
