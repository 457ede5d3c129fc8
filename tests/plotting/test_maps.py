"""Figures of attention: what they contain, and what they refuse."""

import html
import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from bert_np.errors import BertError
from bert_np.plotting import (
    colours,
    crop_padding,
    describe_attention,
    hide_special,
    merge_word_pieces,
    plot_attention,
    plot_heads,
    plot_model,
)
from bert_np.plotting.drawing import largest_of_blocks, masked_rectangles
from bert_np.plotting.labels import LABEL_SIZE, token_labels

WORKED = np.array(
    [[0.6652, 0.2447, 0.0900], [0.2119, 0.5761, 0.2119], [0.1065, 0.1065, 0.7870]]
)
WORDS = ["the", "cat", "sat"]
ODD = [
    "[CLS]",
    "中文字",
    "\U0001f600",
    "$x$",
    "$$",
    r"$\frac$",
    "<b>",
    "مرحبا",
    "שלום",
    "a\x07b",
    "\ud800",
    "",
    " ",
    "\n",
    "antidisestablishmentarianism",
    "ก",
    "हिन्दी",
    "\ue000",
    "W" * 1000,
    "[SEP]",
]


def random_probs(*shape):
    scores = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def names(count):
    return [f"t{i}" for i in range(count)]


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    return buffer.getvalue()


def tick_texts(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def cell_texts(ax):
    return [text.get_text() for text in ax.texts]


def hatched(ax):
    return [patch for patch in ax.patches if patch.get_hatch()]


def title_of(figure):
    return figure.get_suptitle() if figure._suptitle else ""


def check_layout(figure):
    """No text outside the figure; neighbouring tick labels do not overlap."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    box, (width, height) = figure.get_tightbbox(renderer), figure.get_size_inches()
    assert box.x0 > -0.01 and box.y0 > -0.01
    assert box.x1 < width + 0.01 and box.y1 < height + 0.01
    axes = [*figure.axes, *(child for ax in figure.axes for child in ax.child_axes)]
    checked = 0
    for axis in [axis for ax in axes for axis in (ax.xaxis, ax.yaxis)]:
        boxes = [
            label.get_window_extent(renderer)
            for label in axis.get_ticklabels()
            if label.get_visible() and label.get_text().strip()
        ]
        for one, two in zip(boxes, boxes[1:]):
            apart = max(
                two.x0 - one.x1, one.x0 - two.x1, two.y0 - one.y1, one.y0 - two.y1
            )
            assert apart > -1, axis  # pixels
            checked += 1
    return checked


# --- one head


def test_plot_attention_shows_the_worked_example():
    figure = plot_attention(WORKED, WORDS, decimals=4, title="by hand")
    assert isinstance(figure, Figure)
    ax, bar = figure.axes
    (image,) = ax.images
    assert np.array_equal(image.get_array(), WORKED)
    assert image.get_clim() == (0, 1)
    assert image.get_cmap().name == "viridis"
    assert cell_texts(ax) == [f"{value:.4f}" for value in WORKED.ravel()]
    places = [tuple(map(float, text.get_position())) for text in ax.texts]
    assert places == [(j, i) for i in range(3) for j in range(3)]
    assert tick_texts(ax.xaxis) == tick_texts(ax.yaxis) == WORDS
    assert ax.get_ylabel() == "query: the token that looks"
    assert ax.get_xlabel() == "key: the token looked at"
    assert ax.get_ylim() == (2.5, -0.5)  # the first query at the top
    assert bar.get_ylim() == (0, 1)
    assert bar.get_ylabel() == "attention probability"
    assert title_of(figure) == "by hand"
    assert not hatched(ax)


def test_plot_attention_writes_row_sums_right_and_column_sums_below():
    ax = plot_attention(WORKED, WORDS, decimals=4).axes[0]
    right, below = ax.child_axes
    assert tick_texts(right.yaxis) == ["0.9999", "0.9999", "1.0000"]
    assert right.get_ylabel() == "row sum"
    assert tick_texts(below.xaxis) == ["0.9836", "0.9273", "1.0889"]
    assert below.get_xlabel() == "column sum"


def test_cells_carry_numbers_up_to_12_tokens():
    twelve, thirteen = random_probs(12, 12), random_probs(13, 13)
    texts = cell_texts(plot_attention(twelve, names(12)).axes[0])
    assert texts == [f"{value:.2f}" for value in twelve.ravel()]
    assert cell_texts(plot_attention(thirteen, names(13)).axes[0]) == []


def test_numbers_contrast_with_their_cells():
    values = np.linspace(0, 1, 25).reshape(5, 5)
    figure = plot_attention(values, names(5))
    image = figure.axes[0].images[0]
    for text, value in zip(figure.axes[0].texts, values.ravel()):
        cell = image.cmap(image.norm(value))
        assert colours.contrast(text.get_color(), cell) >= 4.5


def test_masked_keys_are_hatched_and_grey_where_exactly_zero():
    masked = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0.4, 0.4, 0.2]]
    ax = plot_attention(masked, WORDS, attention_mask=[1, 1, 0]).axes[0]
    assert ax.images[0].get_array().mask.tolist() == [
        [False, False, True],
        [False, False, True],
        [False, False, False],
    ]
    assert cell_texts(ax)[8] == "0.20"
    (patch,) = hatched(ax)
    assert isinstance(patch, PathPatch)
    inside = [
        [bool(patch.get_path().contains_point((j, i))) for j in range(3)]
        for i in range(3)
    ]
    assert inside == [[False, False, True]] * 3


def test_a_visibility_matrix_hatches_its_cells():
    causal = np.tril(np.ones((3, 3)))
    probs = causal / causal.sum(axis=1, keepdims=True)
    ax = plot_attention(probs, WORDS, visible=causal).axes[0]
    path = hatched(ax)[0].get_path()
    inside = [[path.contains_point((j, i)) for j in range(3)] for i in range(3)]
    assert np.array_equal(inside, causal == 0)
    both = plot_attention(probs, WORDS, visible=causal, attention_mask=[0, 1, 1])
    path = hatched(both.axes[0])[0].get_path()
    assert path.contains_point((0, 2)) and path.contains_point((2, 0))
    assert not path.contains_point((1, 2))


def test_masked_rectangles_cover_each_run_once():
    visible = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], bool)
    corners = masked_rectangles(visible)
    assert corners.shape == (4, 4, 2)
    assert corners[0].tolist() == [[1, 0], [3, 0], [3, 1], [1, 1]]
    area = (corners[:, 1, 0] - corners[:, 0, 0]).sum()
    assert area == (~visible).sum()


def test_power_changes_colours_and_is_stated():
    figure = plot_attention(WORKED, WORDS, power=0.5)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (0, 1)
    assert float(image.norm(0.25)) == pytest.approx(0.5)
    assert "p ** 0.5" in figure.axes[1].get_ylabel()
    assert float(plot_attention(WORKED, WORDS).axes[0].images[0].norm(0.25)) == 0.25


def test_scale_does_not_follow_the_data():
    low = plot_attention(WORKED / 100, WORDS).axes[0].images[0]
    assert low.get_clim() == (0, 1)


def test_ax_draws_beside_others():
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    same = plot_attention(WORKED, WORDS, ax=left, colour_bar=False, title="left")
    plot_attention(WORKED, WORDS, ax=right, special="hide")
    assert same is figure
    assert left.get_title() == "left"
    assert "not renormalised" in right.get_title().replace("\n", " ")
    assert len(figure.axes) == 3  # two maps, one colour bar
    assert len(png(figure)) > 1000


# --- heads and model


def test_plot_heads_has_a_panel_per_head():
    probs = random_probs(5, 4, 4)
    figure = plot_heads(probs, names(4), title="layer 3")
    *panels, bar = figure.axes
    assert [ax.get_title() for ax in panels] == [f"head {i}" for i in range(5)]
    for ax, head in zip(panels, probs):
        assert np.array_equal(ax.images[0].get_array(), head)
        assert ax.images[0].get_clim() == (0, 1)
    labelled = [tick_texts(ax.yaxis) == names(4) for ax in panels]
    assert labelled == [True, False, False, True, False]
    labelled = [tick_texts(ax.xaxis) == names(4) for ax in panels]
    assert labelled == [False, False, True, True, True]
    assert figure.get_supylabel() == "query: the token that looks"
    assert figure.get_supxlabel() == "key: the token looked at"
    assert bar.get_ylabel() == "attention probability"


def test_plot_model_has_a_thumbnail_per_head_at_its_place():
    probs = random_probs(3, 4, 5, 5)
    figure = plot_model(list(probs), names(5), attention_mask=[1, 1, 1, 1, 0])
    ax, bar = figure.axes
    assert len(ax.images) == len(hatched(ax)) == 12
    for image, (layer, head) in zip(ax.images, np.ndindex(3, 4)):
        left, right, bottom, top = image.get_extent()
        assert (left + right) / 2 == pytest.approx(head)
        assert (bottom + top) / 2 == pytest.approx(layer)
        assert bottom > top  # rows run downwards
        assert np.array_equal(image.get_array(), probs[layer, head])
    assert tick_texts(ax.xaxis) == ["0", "1", "2", "3"]
    assert tick_texts(ax.yaxis) == ["0", "1", "2"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")
    assert "5 tokens, t0 to t4" in title_of(figure).replace("\n", " ")
    stacked = plot_model(probs, names(5)).axes[0].images
    assert np.array_equal(stacked[7].get_array(), probs[1, 3])


def test_thumbnails_keep_a_thin_diagonal():
    probs = np.eye(500)[None, None].repeat(12, axis=1)
    figure = plot_model(probs, names(500))
    cells = figure.axes[0].images[3].get_array()
    assert len(cells) < 100
    assert np.array_equal(np.diag(cells), np.ones(len(cells)))
    assert "the largest of each" in title_of(figure)


def test_largest_of_blocks_with_a_short_last_block():
    cells = np.arange(25).reshape(5, 5)
    largest = [[6, 8, 9], [16, 18, 19], [21, 23, 24]]
    assert largest_of_blocks(cells, 2).tolist() == largest
    assert np.array_equal(largest_of_blocks(cells, 1), cells)


# --- the choices


def test_crop_padding_leaves_the_real_tokens():
    probs = random_probs(2, 4, 4)
    cropped, tokens = crop_padding(probs, names(4), [0, 1, 1, 0])
    assert tokens == ["t1", "t2"]
    assert np.array_equal(cropped, probs[:, 1:3, 1:3])
    figure = plot_heads(probs, names(4), attention_mask=[0, 1, 1, 0], crop=True)
    assert np.array_equal(figure.axes[0].images[0].get_array(), probs[0, 1:3, 1:3])
    assert not hatched(figure.axes[0])
    assert title_of(figure) == "padding cropped"


def test_hide_special_with_and_without_renormalising():
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    probs = np.array(
        [[1, 0, 0, 0], [0.5, 0.3, 0.1, 0.1], [0.5, 0, 0, 0.5], [0, 0, 1, 0]]
    )
    kept, words = hide_special(probs, tokens)
    assert words == ["a", "b"]
    assert np.array_equal(kept, [[0.3, 0.1], [0, 0]])
    renormalised, _ = hide_special(probs, tokens, renormalise=True)
    assert renormalised == pytest.approx(np.array([[0.75, 0.25], [0, 0]]))
    hidden = plot_attention(probs, tokens, special="hide", title="x")
    assert title_of(hidden) == "x\n[CLS] and [SEP] hidden, rows not renormalised"
    assert tick_texts(hidden.axes[0].child_axes[0].yaxis) == ["0.40", "0.00"]
    again = plot_attention(probs, tokens, special="renormalise")
    assert "rows renormalised to sum to 1" in title_of(again)
    assert cell_texts(again.axes[0]) == ["0.75", "0.25", "0.00", "0.00"]


def test_merge_word_pieces_averages_rows_and_sums_columns():
    tokens = ["[CLS]", "un", "##play", "##able", "games", "[SEP]", "##s", "##"]
    probs = random_probs(2, 8, 8)
    merged, words = merge_word_pieces(probs, tokens)
    assert words == ["[CLS]", "unplayable", "games", "[SEP]", "##s", "##"]
    groups = [[0], [1, 2, 3], [4], [5], [6], [7]]
    for head in range(2):
        for i, rows in enumerate(groups):
            for j, columns in enumerate(groups):
                loop = sum(probs[head, r, c] for r in rows for c in columns) / len(rows)
                assert merged[head, i, j] == pytest.approx(loop, abs=1e-12)
    assert merged.sum(axis=-1) == pytest.approx(np.ones((2, 6)))
    figure = plot_heads(probs, tokens, merge_words=True)
    assert np.array_equal(figure.axes[0].images[0].get_array(), merged[0])
    assert title_of(figure) == "word pieces merged to words"


def test_choices_apply_to_the_mask_as_well():
    tokens = ["[CLS]", "un", "##do", "[SEP]", "[PAD]"]
    figure = plot_attention(
        np.eye(5),
        tokens,
        attention_mask=[1, 1, 1, 1, 0],
        visible=np.tril(np.ones((5, 5))),
        crop=True,
        merge_words=True,
        special="hide",
    )
    assert tick_texts(figure.axes[0].xaxis) == ["undo"]
    assert not hatched(figure.axes[0])
    figure = plot_attention(
        np.eye(5), tokens, attention_mask=[1, 1, 0, 1, 0], merge_words=True
    )
    path = hatched(figure.axes[0])[0].get_path()
    inside = [path.contains_point((j, 0)) for j in range(4)]
    assert inside == [False, False, False, True]


# --- description


def test_describe_attention_names_the_strongest_cell():
    text = describe_attention(WORKED, WORDS)
    assert "0.79, from sat (query 2) to sat (key 2)" in text
    assert "sat (key 2) gets the most, 36% of all" in text
    assert text.count("\n") == 0 and text.endswith(".")
    probs = np.full((2, 3, 4, 4), 0.25)
    probs[1, 2, 3] = [0.1, 0.7, 0.1, 0.1]
    text = describe_attention(probs, names(4))
    assert "2 layers of 3 heads" in text
    assert "0.70, from t3 (query 3) to t1 (key 1), layer 1, head 2" in text
    assert "3 heads of one layer" in describe_attention(probs[1], names(4))
    assert "0%" in describe_attention(np.zeros((1, 1)), ["a"])


# --- any text


def test_odd_tokens_are_drawn_without_a_warning():
    figure = plot_attention(random_probs(len(ODD), len(ODD)), ODD, title="$x$ 中 \a $$")
    labels = tick_texts(figure.axes[0].xaxis)
    assert labels[3:6] == ["$x$", "$$", r"$\frac$"]
    assert labels[9:11] == [r"a\u0007b", r"\ud800"]
    assert labels[13] == r"\u000a"
    assert labels[18] == "W" * 15 + "…"
    assert all(not label.get_parse_math() for label in figure.axes[0].get_xticklabels())
    assert title_of(figure).startswith("$x$ ")
    assert r"\u0007 $$" in title_of(figure)
    assert check_layout(figure) > 20
    assert len(png(plot_heads(random_probs(1, len(ODD), len(ODD)), ODD))) > 1000
    assert len(png(plot_model(random_probs(1, 2, len(ODD), len(ODD)), ODD))) > 1000


def test_a_character_without_a_font_becomes_its_code_point(monkeypatch):
    families = ["DejaVu Sans", "No Such Font"]
    monkeypatch.setattr("bert_np.plotting.labels.FAMILIES", families)
    assert token_labels(["中", "é", "\ue000"]) == [r"\u4e2d", "é", r"\ue000"]
    assert token_labels(["\U0001f9ff"]) == [r"\U0001f9ff"]
    figure = plot_attention(np.eye(2), ["中", "\U0001f9ff"])
    assert len(png(figure)) > 1000


def test_long_tokens_end_in_an_ellipsis_and_never_cut_a_code_point():
    (label,) = token_labels(["\x07" * 5])
    assert label == r"\u0007\u0007…"
    assert token_labels(["x" * 16, "x" * 17]) == ["x" * 16, "x" * 15 + "…"]


@pytest.mark.parametrize("length", [1, 3, 12, 40, 300])
def test_layout_of_one_map(length):
    figure = plot_attention(
        random_probs(length, length), names(length), title="one " * 20
    )
    check_layout(figure)
    labels = figure.axes[0].get_xticklabels()
    assert {label.get_fontsize() for label in labels} == {LABEL_SIZE}
    assert LABEL_SIZE >= 9
    count = len(labels)
    assert count == length if length <= 40 else 10 < count < 40


@pytest.mark.parametrize("heads, length", [(1, 3), (3, 40), (12, 9)])
def test_layout_of_heads(heads, length):
    figure = plot_heads(
        random_probs(heads, length, length),
        ["[CLS]", *(["antidisestablishmentarian"] * (length - 1))],
    )
    assert check_layout(figure) > 0


@pytest.mark.parametrize("layers, heads", [(1, 1), (2, 4), (12, 12)])
def test_layout_of_models(layers, heads):
    figure = plot_model(random_probs(layers, heads, 3, 3), WORDS, title="a model")
    assert check_layout(figure) > 0


def test_right_to_left_letters_are_reversed_where_matplotlib_does_not(monkeypatch):
    word = "##\u05d0\u05d1\u05d2"
    monkeypatch.setattr("matplotlib.__version_info__", (3, 10, 0))
    assert token_labels([word, "abc"]) == ["##\u05d2\u05d1\u05d0", "abc"]
    monkeypatch.setattr("matplotlib.__version_info__", (3, 11, 0))
    assert token_labels([word]) == [word]


# --- notebooks and pyplot


def test_a_notebook_cell_shows_one_png_and_the_description(monkeypatch):
    formatters = pytest.importorskip("IPython.core.formatters")
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append((data, options))
    )
    for figure in (
        plot_attention(WORKED, ["a<b", "cat", "sat"]),
        plot_heads([WORKED], WORDS),
        plot_model([[WORKED]], WORDS),
    ):
        assert formatters.DisplayFormatter().format(figure) == ({}, {})
        (picture, options), (words, _) = shown[-2:]
        assert set(picture) == {"text/plain", "image/png"}
        assert picture["image/png"].startswith(b"\x89PNG")
        assert picture["text/plain"] == figure.description
        assert options["metadata"] == {"image/png": {"alt": figure.description}}
        assert set(words) == {"text/html"}
        assert html.escape(figure.description) in words["text/html"]
        assert "a<b" not in words["text/html"]
    assert len(shown) == 6


def test_pyplot_is_neither_imported_nor_told():
    code = (
        "import sys, numpy as np\n"
        "from bert_np.plotting import plot_attention\n"
        "plot_attention(np.eye(2), ['a', 'b']).canvas.draw()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr


# --- inputs stay as they are


def test_inputs_are_not_written_to():
    probs = random_probs(2, 3, 4, 4)
    before = probs.copy()
    tokens, mask = ["[CLS]", "a", "##b", "[PAD]"], read_only([1, 1, 1, 0])
    figure = plot_model(
        read_only(probs),
        tokens,
        attention_mask=mask,
        crop=True,
        special="renormalise",
        merge_words=True,
    )
    png(figure)
    plot_heads(probs[0], tokens, attention_mask=mask)
    plot_attention(probs[0, 0], tokens, visible=read_only(np.eye(4)))
    describe_attention(probs, tokens)
    assert np.array_equal(probs, before)
    assert tokens == ["[CLS]", "a", "##b", "[PAD]"]


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "int64", "bool"])
def test_any_real_dtype_is_drawn(dtype):
    array = np.eye(3).astype(dtype)
    for figure in (
        plot_attention(array, np.array(WORDS)),
        plot_attention(array.tolist(), tuple(WORDS)),
    ):
        assert np.array_equal(figure.axes[0].images[0].get_array(), np.eye(3))


# --- refusals


def refused(call, *parts):
    with pytest.raises(BertError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    assert len(str(caught.value)) <= 300


def test_a_batch_is_refused_with_the_index_to_take():
    batch = random_probs(2, 12, 3, 3)
    refused(
        lambda: plot_attention(batch, WORDS),
        "(2, 12, 3, 3)",
        "(T, T)",
        'out["attention_probs"][layer][batch][head]',
    )
    refused(lambda: plot_attention(batch[0], WORDS), "(12, 3, 3)", "[head]")
    with pytest.raises(BertError) as caught:
        plot_heads(batch[:1], WORDS)
    message = str(caught.value)
    assert message.startswith("probs has shape (1, 12, 3, 3), expected (A, T, T)")
    assert message.endswith('out["attention_probs"][layer][batch]')
    refused(lambda: plot_heads(batch[0, 0], WORDS), "(3, 3)", "(A, T, T)")
    refused(
        lambda: plot_model([batch, batch], WORDS),
        "(2, 2, 12, 3, 3)",
        '[layer[batch] for layer in out["attention_probs"]]',
    )
    refused(lambda: plot_model(batch[0], WORDS), "(12, 3, 3)", "(L, A, T, T)")
    refused(lambda: describe_attention(batch[None], WORDS), "(1, 2, 12, 3, 3)")


@pytest.mark.parametrize(
    "plot, ndim", [(plot_attention, 2), (plot_heads, 3), (plot_model, 4)]
)
def test_bad_arrays_and_tokens_are_refused(plot, ndim):
    good = np.tile(WORKED, (2,) * (ndim - 2) + (1, 1))

    def changed(value):
        probs = good.copy()
        probs[..., 1, 2] = value
        return probs

    place = ", ".join("0" * (ndim - 2) + "12")
    for value in (np.nan, 1.5, -0.1, np.inf):
        refused(
            lambda: plot(changed(value), WORDS), f"probs[{place}] = {value}", "0 to 1"
        )
    assert isinstance(plot(changed(1.00001), WORDS), Figure)
    refused(
        lambda: plot(good, WORDS[:2]), "tokens has 2", str(good.shape), "3 positions"
    )
    oblong, empty = good[..., :2], good[..., :0, :0]
    refused(lambda: plot(oblong, WORDS), str(oblong.shape), "equal")
    refused(lambda: plot(empty, []), str(empty.shape), "nothing")
    refused(lambda: plot(good + 0j, WORDS), "complex128")
    refused(lambda: plot(good.astype(str), WORDS), "probs", "dtype")
    refused(lambda: plot(None, WORDS), "probs", "object")
    refused(lambda: plot([], WORDS), "(0,)")
    refused(lambda: plot([[1, 2], [3]], WORDS), "different shapes", "(1,)", "(2,)")
    refused(lambda: plot(good, "the"), "tokens is a str")
    refused(lambda: plot(good, 3), "tokens is a int")
    refused(lambda: plot(good, [WORDS] * 3), "tokens[0] is a list", "one sentence")
    refused(lambda: plot(good, ["a", 1, "b"]), "tokens[1] is a int")


@pytest.mark.parametrize(
    "plot, ndim", [(plot_attention, 2), (plot_heads, 3), (plot_model, 4)]
)
def test_bad_choices_are_refused(plot, ndim):
    good = np.tile(WORKED, (1,) * (ndim - 2) + (1, 1))
    refused(
        lambda: plot(good, WORDS, attention_mask=[[1, 1, 0]]),
        "attention_mask",
        "(1, 3)",
        "(3,)",
    )
    for value in (2, -10000, 0.5, np.nan):
        refused(
            lambda: plot(good, WORDS, attention_mask=[1, 1, value]),
            f"attention_mask[2] = {value}",
            "0 (masked) and 1 (visible)",
        )
    refused(lambda: plot(good, WORDS, visible=[1, 1, 1]), "visible", "(3, 3)")
    refused(lambda: plot(good, WORDS, crop=True), "attention_mask = None")
    refused(
        lambda: plot(good, WORDS, attention_mask=[0, 0, 0], crop=True), "every position"
    )
    refused(
        lambda: plot(good, WORDS, special="drop"), "special = 'drop'", "renormalise"
    )
    refused(lambda: plot(good, WORDS, special=["hide"]), "special = ['hide']")
    refused(
        lambda: plot(good, ["[CLS]", "[SEP]", "[SEP]"], special="hide"),
        "nothing is left",
    )
    for power in (0, -1, np.nan, np.inf, "2", True):
        refused(lambda: plot(good, WORDS, power=power), "power")
    refused(lambda: plot(good, WORDS, title=3), "title is a int")


def test_bad_drawing_options_are_refused():
    for decimals in (0, 7, 1.5, 2.0, "2", True, None):
        refused(lambda: plot_attention(WORKED, WORDS, decimals=decimals), "decimals")
    refused(lambda: plot_attention(WORKED, WORDS, ax="here"), "ax is a str")


# --- colours


def test_the_colour_map_grows_lighter_throughout():
    steps = [
        colours.luminance(colour)
        for colour in colours.attention_colour_map()(np.linspace(0, 1, 256))
    ]
    assert np.all(np.diff(steps) > 0)


def test_colours_of_letters_are_readable_on_white():
    palette = [colours.QUERY, colours.KEY, colours.VALUE]
    assert len({*palette, colours.MASKED, colours.HATCH}) == 5
    for colour in palette:
        assert colours.contrast(colour, "white") >= 4.5
    assert colours.contrast("black", "white") == pytest.approx(21)
