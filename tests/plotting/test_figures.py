"""Every figure: the numbers drawn on it, its texts, its description."""

import io
import re
import unicodedata

import matplotlib
import matplotlib.style
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch
from oracle import CONFIG, random_params
from PIL import Image
from plotting import samples
from plotting.samples import ODD, PROBS, WORDS, map_of, names, random_probs, written

import bert_np
from bert_np import BertConfig, split_heads
from bert_np import plotting as P
from bert_np.plotting import describe
from bert_np.plotting.colours import KEY, QUERY, contrast
from bert_np.plotting.diagrams import tint
from bert_np.plotting.examples import words_around
from bert_np.plotting.links import strongest
from bert_np.plotting.png import small_png

Q, K, V = samples.Q, samples.K, samples.V
X = 10 * np.arange(8)[:, None] + np.arange(8)  # a number names its row and column
PLOTS = [name for name in P.__all__ if name.startswith("plot_")]


ON_AXES = ["plot_attention", "plot_bars", "plot_by_layer", "plot_curves", "plot_links"]
ON_AXES += ["plot_histogram", "plot_probe", "plot_relations"]
ON_AXES += ["plot_parameters", "plot_roofline", "plot_tokens", "plot_top_words"]
ON_AXES += ["plot_confusion", "plot_difference", "plot_patch_grid"]


def draw(name, tokens, **more):
    """Draw any figure from read-only arrays: writing to one of them would raise."""
    T, few = len(tokens), tokens[:8]
    q, k, v = samples.frozen(np.random.default_rng(0).normal(size=(3, T, 8)))
    maps, mask = random_probs(2, 3, T, T), samples.frozen([1] * (T - 1) + [0])
    one, halves = maps[0, 0], samples.frozen(np.arange(T) >= T // 2)
    block = {"segment_ids": halves, "between": "first to second"}
    curves = {token: q[:3, i] for i, token in enumerate(tokens[:4])}
    given, options = {
        "plot_attention": ((one, tokens), {"attention_mask": mask}),
        "plot_bars": ((dict(zip(tokens[:40], range(40))),), {}),
        "plot_by_layer": ((curves,), {"stages": tokens[:3]}),
        "plot_coloured_words": (
            (tokens, {tokens[0]: one[0] - 0.2, "attention": one[1]}),
            {"remarks": {"attention": " ".join(tokens)}},
        ),
        "plot_confusion": (
            (samples.frozen(np.arange(T * T).reshape(T, T)), tokens),
            {},
        ),
        "plot_curves": ((curves, [10, 20, 30]), {"log": True}),
        "plot_difference": ((one, maps[1, 1], tokens), {"names": tokens[:2]}),
        "plot_embedding_sum": ((q, k, v[:1], q, tokens), {}),
        "plot_encoder_layer": ((BertConfig(), 512), {}),
        "plot_examples": ((samples.found_examples(tokens, key=T - 1),), {}),
        "plot_head_matrices": ((min(T, 8), 12, 3), {}),
        "plot_head_summary": ((dict.fromkeys(few[:5], one),), {}),
        "plot_heads": ((maps, tokens), {"mean": "layers"}),
        "plot_histogram": ((dict(zip(tokens[:5], q)),), {}),
        "plot_links": ((one, tokens), {"query": 1}),
        "plot_mlm_head": ((BertConfig(),), {}),
        "plot_model": ((maps, tokens), block),
        "plot_overview": (("attention", "heads"), {}),
        "plot_pairs": ((samples.pair_scores(tokens[:2]),), {"head": (0, 1)}),
        "plot_parameters": ((BertConfig(),), {"heads": True}),
        "plot_patch_grid": ((q.T[:5],), {"columns": tokens, "ylabel": tokens[1]}),
        "plot_probe": ((samples.probe_scores(),), {}),
        "plot_query_key": ((q, k, tokens, 1), {"visible": mask}),
        "plot_relation_heads": ((samples.relation_scores(few), few[0]), {}),
        "plot_relations": ((samples.relation_scores(tokens),), {}),
        "plot_roofline": (({x: (i + 1, 5) for i, x in enumerate(few)}, 9, 4), {}),
        "plot_split_heads": ((X[: len(few)], 2, few), {}),
        "plot_steps": ((q, k, v, tokens), {"visible": mask}),
        "plot_tokens": ((tokens, mask), {"segment_ids": halves}),
        "plot_top_words": ((tokens[:12], one[0, :12]), {}),
        "plot_weighted_norms": ((one, maps[1, 1], tokens), {}),
        "plot_word_pieces": (("unplayable", tokens + ["un", "##play"]), {}),
    }[name]
    return getattr(P, name)(*given, title="some title", **options, **more)


# ------------------------------------------------------ any tokens, any size
@pytest.mark.parametrize("name", PLOTS)
def test_texts_fit_and_the_figure_is_described(name):
    figure = draw(name, ODD)
    samples.assert_text_fits(figure)
    text = describe(figure)
    assert text.endswith(".") and len(text) > 30 and text.encode("utf-8")
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("count", [3, 8, 14, 40, 512])
def test_texts_fit_at_every_size(name, count):
    samples.assert_text_fits(draw(name, names(count)))


@pytest.mark.parametrize("name", ON_AXES)
def test_one_axes_can_be_given(name):
    figure = Figure(figsize=(14, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(name, WORDS, ax=left) is figure
    assert left.get_title().startswith("some title") and not right.has_data()
    first = describe(figure)
    draw(name, WORDS, ax=right)
    assert describe(figure) == f"{first} {first}"
    samples.assert_text_fits(figure)


OF_THE_READER = matplotlib.style.library["dark_background"] | {
    "axes.grid": True,
    "font.family": "serif",
    "font.size": 30,
    "savefig.transparent": True,
    "text.usetex": True,
    "xtick.labelsize": 30,
}


FEW = ["plot_bars", "plot_links", "plot_tokens"]
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in PLOTS if name not in FEW]


@pytest.mark.parametrize("name", [*FEW, *LONG])
def test_settings_of_the_reader_do_not_change_a_picture(name):
    expected = draw(name, WORDS * 2)
    with matplotlib.rc_context(OF_THE_READER):
        pixels = samples.drawn(draw(name, WORDS * 2))
    assert np.array_equal(pixels, samples.drawn(expected))


def test_a_picture_is_saved_black_on_white_whatever_the_settings():
    one, two, three = (draw("plot_bars", WORDS) for _ in range(3))
    expected, file = one.to_png(), io.BytesIO()
    with matplotlib.rc_context(OF_THE_READER | {"savefig.dpi": 30}):
        assert two.to_png() == expected
        three.savefig(file, transparent=False)
    with Image.open(file) as image:
        assert image.width == int(30 * three.get_size_inches()[0])
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("name", ON_AXES)
@pytest.mark.parametrize("style", ["dark_background", "grayscale"])
def test_on_axes_of_the_reader_texts_are_legible(name, style):
    with matplotlib.rc_context(matplotlib.style.library[style]):
        figure = Figure(figsize=(9, 5), layout="constrained")
        draw(name, WORDS, ax=figure.subplots())
    back, cells = figure.get_facecolor(), ("black", "white")
    texts = [t for t in samples.texts_of(figure) if t.get_color() not in cells]
    assert all(contrast(text.get_color(), back) >= 4.5 for text in texts)


# ------------------------------------------------------------ the worked example
def test_plot_steps_shows_the_worked_example():
    figure = P.plot_steps(Q, K, V, WORDS, decimals=4)
    scores, scaled, probs, context = figure.axes
    assert written(scores) == [f"{x:.4f}" for x in (Q @ K.T).ravel()]
    assert written(scaled) == [f"{x:.4f}" for x in (Q @ K.T / 2).ravel()]
    assert written(probs)[:5] == ["0.6652", "0.2447", "0.0900", "0.2119", "0.5761"]
    assert written(context)[:4] == ["0.7553", "0.3348", "0.4239", "0.7881"]
    clims = [ax.images[0].get_clim() for ax in (scores, probs)]
    assert clims == [(-4, 4), (0, 1)]
    assert scaled.get_title() == "scaled\nscores / √4 = scores / 2\n(3, 3)"


def test_plot_steps_masks_before_the_softmax():
    figure = P.plot_steps(Q, K, V, WORDS, visible=[1, 1, 0], decimals=4)
    masked, probs = figure.axes[2:4]
    assert masked.get_title().startswith("masked\n")
    assert written(probs)[:3] == ["0.7311", "0.2689", "0.0000"]
    assert masked.images[0].get_array().mask[:, 2].all()
    assert samples.hatched(masked) and samples.hatched(probs)


def test_the_steps_of_a_trace_are_those_of_the_model():
    trace = {}
    bert_np.bert([[2, 5, 3]], random_params(), CONFIG, trace=trace)
    part = trace["layers"][0]["attention"]
    q, k, v = (part[name][0, 1] for name in "qkv")
    figure = P.plot_steps(q, k, v, WORDS)
    np.testing.assert_allclose(map_of(figure, 1), part["scores"][0, 1])
    np.testing.assert_allclose(map_of(figure, 2), part["probs"][0, 1])
    np.testing.assert_allclose(map_of(figure, 3), part["context"][0, :, 7:14])


def test_plot_query_key_shows_products_sums_and_shares():
    figure = P.plot_query_key(Q, K, WORDS, 1, decimals=4)
    query, keys, products, *sums = figure.axes
    assert written(query) == ["0.0000", "2.0000", "0.0000", "0.0000"]
    assert written(keys) == [f"{x:.4f}" for x in K.ravel()]
    assert written(products) == [f"{x:.4f}" for x in (Q[1] * K).ravel()]
    for ax, values in zip(sums, ([2, 4, 2], [1, 2, 1], [0.2119, 0.5761, 0.2119])):
        widths, texts = [bar.get_width() for bar in ax.patches], ax.child_axes[0].yaxis
        assert widths == pytest.approx(values, abs=1e-4)
        assert samples.ticks(texts) == [f"{value:.4f}" for value in values]
    assert sums[2].get_xlim() == (0, 1) and samples.ticks(query.yaxis) == WORDS
    masked = P.plot_query_key(Q, K, WORDS, 1, visible=[1, 1, 0]).axes[5]
    widths = [bar.get_width() for bar in masked.patches]
    assert widths == pytest.approx([0.2689, 0.7311, 0], abs=1e-4)
    assert samples.hatched(masked) == [masked.patches[2]]


# ------------------------------------------------------------- tasks and answers
def test_confusions_are_counts_on_shares_of_their_row():
    figure = P.plot_confusion([[3, 1], [0, 6]], ["no", "yes"])
    np.testing.assert_allclose(map_of(figure, 0), [[0.75, 0.25], [0, 1]])
    assert written(figure.axes[0]) == ["3", "1", "6"]
    assert figure.axes[0].get_ylabel() == "true label"
    assert "9 of 10 answers are right; most often no was mistaken for yes (1)" in (
        describe(figure)
    )
    assert map_of(P.plot_confusion(np.zeros((2, 2)), ["a", "b"]), 0).max() == 0


def test_coloured_words_are_red_above_0_and_blue_below():
    values = {"slope": [2.0, -1.0, 0.0], "attention": [0.5, 0.1, 0.2]}
    figure = P.plot_coloured_words(WORDS, values, remarks={"slope": "Only a slope."})
    ax = figure.axes[0]
    red, blue, white, *others = [patch.get_facecolor()[:3] for patch in ax.patches]
    assert red[0] > red[2] and blue[2] > blue[0] and min(white) > 0.95
    assert all(colour[0] >= colour[2] for colour in others)
    numbers = ["+2.00", "-1.00", "+0.00"]
    texts = written(ax)
    assert texts[1:7] == [t for pair in zip(WORDS, numbers) for t in pair]
    assert texts[7:10] == ["Only a slope.", "attention", WORDS[0]] and "0.50" in texts
    assert f"slope, {WORDS[0]} (+2.00)" in describe(figure)


# ------------------------------------------------------------------------- links
@given(size=st.integers(1, 9), mass=st.floats(0.01, 1))
def test_strongest_takes_the_fewest_that_carry_the_mass(size, mass):
    probs = random_probs(size, size)
    for row, kept in zip(probs, strongest(probs, mass)):
        assert kept.any() and row[kept].sum() >= mass - 1e-9
        assert row[kept].sum() - row[kept].min() < mass
        assert row[~kept].max(initial=0) <= row[kept].min()


def test_links_go_from_queries_to_keys():
    (lines,) = P.plot_links(PROBS, WORDS, mass=1).axes[0].collections
    ends = np.array(lines.get_segments())
    assert ends.shape == (9, 2, 2)
    assert np.all(ends[:, 0, 0] == 0) and np.all(ends[:, 1, 0] == 1)
    values = PROBS[ends[:, 0, 1].astype(int), ends[:, 1, 1].astype(int)]
    assert np.all(np.diff(values) >= 0)  # the strongest on top
    assert np.array(lines.get_linewidths()) == pytest.approx(0.5 + 3 * values)


@pytest.mark.parametrize("query", [None, 5])
def test_of_very_many_lines_the_weakest_are_left_out_and_the_title_says_so(query):
    probs = random_probs(120, 120)
    figure = P.plot_links(probs, names(120), query=query, mass=1)
    ends = np.array(figure.axes[0].collections[0].get_segments())[:, :, 1].astype(int)
    others = ends[ends[:, 0] != query]
    assert 4990 <= len(ends) <= 5120 and len(ends) - len(others) in (0, 120)
    assert probs[tuple(others.T)].min() >= np.sort(probs.ravel())[-5120]
    assert "of 14,400 lines, only those above" in samples.title_of(figure)


def test_a_highlighted_query_shows_its_probabilities_beside_inked_tokens():
    figure = P.plot_links(PROBS, WORDS, query=2, mass=1)
    ax = figure.axes[0]
    assert written(ax)[3:9] == ["0.79", "sat", "0.11", "the", "0.11", "cat"]
    colours = [tuple(colour[:3]) for colour in ax.collections[0].get_colors()]
    assert colours[-3:] == [colours[-1]] * 3 and colours[0] != colours[-1]
    assert "this query attends most to sat (key 2) 0.79" in describe(figure)
    dark = samples.drawn(figure)[::-1].min(axis=2) < 100
    for x, side in ((0, (-30, -5)), (1, (5, 30))):
        column, row = ax.transData.transform((x, 1)).astype(int)
        box = dark[row - 4 : row + 4, column + side[0] : column + side[1]]
        assert box.sum() > 20


def test_several_queries_have_colours_dashes_and_columns_of_their_own():
    figure = P.plot_links(PROBS, WORDS, query=[2, 0], mass=1)
    ax = figure.axes[0]
    assert written(ax)[:3] == ["sat", "the", "cat"]  # the queries, chosen ones first
    assert written(ax)[3:6] == ["0.79", "0.09", "sat"]
    assert "at the keys: sat (query 2), then the (query 0)" in samples.title_of(figure)
    (lines,) = ax.collections
    rows = np.array(lines.get_segments())[:, 0, 1].astype(int)
    pairs = zip(rows, lines.get_colors(), lines.get_linestyles())
    looks = {(row, tuple(colour[:3]), style[1] is None) for row, colour, style in pairs}
    assert len(looks) == len({look[1:] for look in looks}) == 3
    assert "the (query 0) attends most to the (key 0) 0.67" in describe(figure)


@pytest.mark.parametrize("query", [1, [1], [2, 0]])
def test_only_the_lines_of_chosen_queries_are_drawn(query):
    figure = P.plot_links(PROBS, WORDS, query=query, only=True, mass=1)
    ends = np.array(figure.axes[0].collections[0].get_segments())
    wanted = np.repeat(np.sort(np.atleast_1d(query)), 3)
    assert np.sort(ends[:, 0, 1]).tolist() == wanted.tolist()
    assert "alone" in describe(figure)


# ------------------------------------------------ norms, embeddings, summaries
def test_weighted_norms_are_divided_by_their_rows():
    norms = np.array([[8.0, 1, 1], [0, 0, 0], [1, 2, 1]])
    shares = np.array([[0.8, 0.1, 0.1], [0, 0, 0], [0.25, 0.5, 0.25]])
    figure = P.plot_weighted_norms(PROBS, norms, WORDS)
    assert np.array_equal(map_of(figure), PROBS)
    np.testing.assert_allclose(map_of(figure, 1), shares)
    pair = np.stack([norms, np.ones((3, 3))])
    mean = P.plot_weighted_norms([PROBS, PROBS], pair, WORDS, mean="heads")
    np.testing.assert_allclose(map_of(mean, 1), (shares + 1 / 3) / 2)


def test_embedding_strips_add_up():
    word, position, segment, output = np.random.default_rng(0).normal(size=(4, 3, 5))
    figure = P.plot_embedding_sum(word, position, segment[:1], output, WORDS)
    strips = [map_of(figure, i) for i in range(5)]
    assert np.array_equal(strips[2], np.tile(segment[:1], (3, 1)))
    np.testing.assert_allclose(strips[3], word + position + segment[:1])
    assert np.array_equal(strips[4], output)
    assert written(figure.axes[0]) == [f"{x:.2f}" for x in word.ravel()]
    assert len({ax.images[0].get_clim() for ax in figure.axes[:4]}) == 1


def test_one_outlier_does_not_wash_out_the_embeddings():
    word = np.random.default_rng(0).normal(size=(3, 400))
    word[1, 7] = 100
    figure = P.plot_embedding_sum(word, word, word, word, WORDS)
    assert figure.axes[0].images[0].get_clim()[1] < 20
    assert "0.5 %" in samples.title_of(figure)


def test_a_patch_grid_holds_its_numbers_and_is_titled_by_the_largest():
    change = np.array([[0.01, -0.004, 0.5], [0.0, -1.25, 0.0]])
    figure = P.plot_patch_grid(change, columns=["a", "b", "c"], xlabel="position")
    assert np.array_equal(map_of(figure), change)
    assert figure.axes[0].images[0].get_clim() == (-1.25, 1.25)
    texts = ["0.01", "0.00", "0.50", "0.00", "-1.25", "0.00"]
    assert written(figure.axes[0]) == texts
    assert (
        samples.title_of(figure) == "layer 1, position b: -125% of the answer's change"
    )
    assert "2 of the patches" in describe(figure)
    small = P.plot_patch_grid(change[:, :1], limit=0.2)
    assert small.axes[0].images[0].get_clim() == (-0.2, 0.2)
    assert samples.title_of(small) == "No patch changes the answer by 5% or more"


def test_a_difference_is_signed_and_says_what_changed_most():
    first = np.array([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [1, 0, 0]])
    second = np.array([[0.5, 0.5, 0], [0.2, 0.7, 0.1], [0.9, 0, 0.1]])
    figure = P.plot_difference(first, second, WORDS, names=("before", "after"))
    np.testing.assert_allclose(map_of(figure), second - first)
    assert figure.axes[0].images[0].get_clim() == pytest.approx((-0.4, 0.4))
    title = samples.title_of(figure)
    assert title in (
        "'cat' looks more at 'cat': 0.30, then 0.70",
        "'cat' looks less at 'sat': 0.50, then 0.10",
    )
    assert "over all queries, cat (key 1) gains most, +0.40." in describe(figure)
    same = P.plot_difference(first, first, WORDS)
    assert samples.title_of(same) == "No weight changes by 0.01 or more"


def test_a_difference_leaves_out_what_has_no_partner_and_says_so():
    first, second = random_probs(3, 3), random_probs(4, 4)
    tokens, others = ["it", "was", "red"], ["he", "was", "old", "too"]
    given = {"pairs": [(0, 0), (1, 1)]}
    figure = P.plot_difference(first, second, tokens, others, **given)
    ax = figure.axes[0]
    labels = ["it/he", "was", "+old", "+too", "−red"]
    assert samples.ticks(ax.xaxis) == samples.ticks(ax.yaxis) == labels
    cells = ax.images[0].get_array()
    np.testing.assert_allclose(cells[:2, :2], (second[:2, :2] - first[:2, :2]))
    assert cells.mask[2:].all() and cells.mask[:, 2:].all() and samples.hatched(ax)
    lonely = first[:2, 2].mean(), second[:2, 2:].sum(axis=1).mean()
    only = "only in first: red, with {:.0%} .*; only in second: old, too, with {:.0%} "
    assert re.search(only.format(*lonely), describe(figure))
    assert "hatched: a token without a partner" in samples.title_of(figure)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"other_tokens": ["x", "y", "z"], "pairs": None}, None),
        ({"second": np.eye(2), "other_tokens": ["x", "y"]}, "no token has a partner"),
        ({"second": np.eye(2)}, "the second map: tokens has 3 entries, expected 2"),
        ({"crop": True}, "crop is no choice here"),
        ({"names": ["a"]}, "names has 1 entries, expected 2"),
        ({"pairs": [(0, 3)]}, r"pairs = \[\(0, 3\)\], allowed"),
        ({"limit": 2}, "limit = 2, allowed"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    given = {"first": PROBS, "second": PROBS, "tokens": WORDS} | change
    if message is None:  # exchanged one by one, all have partners
        return samples.assert_text_fits(P.plot_difference(**given))
    with pytest.raises(bert_np.BertError, match=message):
        P.plot_difference(**given)


def test_a_head_summary_has_a_point_for_each_head_and_names_the_largest():
    values = np.array([[0.1, 0.9], [0.4, 0.3], [0.2, 0.6]])
    figure = P.plot_head_summary({"to_the_past": values, "$x$": 5 * values - 1})
    first, second = figure.axes
    points, ring = first.lines
    assert points.get_ydata().tolist() == values.ravel().tolist()
    assert ring.get_xydata().tolist() == [[pytest.approx(0.32), 0.9]]
    assert first.get_title() == "to the past\nmost: layer 0, head 1, 0.90"
    assert first.get_ylim() == pytest.approx((-0.04, 1.04)) != second.get_ylim()


def test_parameters_are_counted():
    figure = P.plot_parameters(BertConfig())
    assert "109,482,240 parameters" in describe(figure) and "52%" in describe(figure)
    bars = sum(bar.get_width() for bar in figure.axes[0].patches)
    assert bars * 1e6 == pytest.approx(109_482_240)
    ledger = bert_np.parameter_ledger(BertConfig())
    rows = P.plot_parameters(ledger, heads=True).axes[0].yaxis
    assert samples.ticks(rows)[-2:] == ["MLM head", "NSP head"]


def test_tokens_stand_above_their_numbers():
    masks = {"segment_ids": [0, 1, 0], "attention_mask": [1, 1, 0]}
    figure = P.plot_tokens(["[CLS]", "cat", "[PAD]"], [101, 4937, 0], **masks)
    ax, rows = figure.axes[0], "position token id segment mask"
    columns = "0 [CLS] 101 0 1 1 cat 4937 1 1 2 [PAD] 0 0 0"
    assert " ".join(written(ax)) == f"{rows} {columns}"
    assert samples.hatched(ax) == [ax.patches[2]]
    assert len({box.get_facecolor() for box in ax.patches}) == 3
    cut = samples.title_of(P.plot_tokens(names(65)))
    assert cut == "the first 64 of 65 tokens"


# ------------------------------------------------------- bars, curves, roofline
def test_bars_hold_amounts_and_shares():
    figure = P.plot_bars({"GELU": 3.0, "softmax $x$": 1.0}, xlabel="ms")
    ax = figure.axes[0]
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert written(ax) == ["  3  75%", "  1  25%"]
    assert written(P.plot_bars({"a": 0.0}).axes[0]) == ["  0  0%"]
    words = P.plot_top_words(["cat", "$"], [0.6, 0.25]).axes[0]
    assert [bar.get_width() for bar in words.patches] == [0.6, 0.25]
    assert samples.ticks(words.yaxis) == ["cat", "$"] and words.get_xlim()[0] == 0


def test_curves_draw_the_numbers_given():
    curves = {"a": [3.0, 2, 1], "b": [0.0, 1, 2]}
    figure = P.plot_curves(curves, [10, 20, 30])
    for line, (name, values) in zip(figure.axes[0].lines, curves.items()):
        assert line.get_xdata().tolist() == [10, 20, 30] and line.get_label() == name
        assert line.get_ydata().tolist() == values
    start = "Lines of loss over 3 steps: a from 3 to 1 (between 1 and 3); b from 0"
    assert describe(figure).startswith(start)
    logged = P.plot_by_layer(curves, log=True)
    assert samples.title_of(logged) == "not drawn: 1 value of 0 or less"
    zeros = P.plot_by_layer([0.0, 0], log=True).axes[0]
    scales = logged.axes[0].get_yscale(), zeros.get_yscale()
    assert scales == ("log", "linear")  # nothing to draw on a log scale
    sixteen = P.plot_curves({f"c{i}": [i, i + 1.0] for i in range(16)}).axes[0]
    looks = {(line.get_color(), line.get_linestyle()) for line in sixteen.lines}
    assert len(looks) == 16


def test_the_roof_is_the_lower_of_two_limits():
    points = {"product": (100.0, 150.0), "$softmax$": (0.5, 2.0)}
    figure = P.plot_roofline(points, 200, 10)
    roof, _, *dots = figure.axes[0].lines
    left, corner, right = roof.get_xydata().tolist()
    assert left[0] < 0.5 and left[1] == 10 * left[0] and corner == [20, 200]
    assert right[0] > 100 and right[1] == 200
    assert [tuple(dot.get_xydata()[0]) for dot in dots] == list(points.values())
    nearest = "nearest to it product (75%), farthest $softmax$ (40%)."
    assert describe(figure).endswith(nearest)


# ------------------------------------------------------------------ relations
def test_relations_stand_by_their_gain_over_the_offset():
    scores = samples.relation_scores(["obj", "det", "$x$"])
    figure = P.plot_relations(scores, direction="head to dependent")
    ax = figure.axes[0]
    order = np.argsort(scores.baseline - scores.best[1])
    assert samples.ticks(ax.yaxis) == [
        f"{scores.relations[row]}  {scores.counts[row]:,}" for row in order
    ]
    best, offset, control = (line.get_xdata() for line in ax.lines)
    np.testing.assert_array_equal(best, scores.best[1][order])
    np.testing.assert_array_equal(offset, scores.baseline[order])
    np.testing.assert_array_equal(control, scores.control[1][order])
    ends = np.array([s[:, 0] for s in ax.collections[0].get_segments()])
    np.testing.assert_array_equal(ends, scores.best_interval[1][order])
    shifts = [f"{-scores.offsets[row]:+}" for row in order]  # seen from the head
    assert [text for text in written(ax) if text in shifts] == shifts
    plain = scores._replace(best_interval=None, baseline_interval=None, control=None)
    assert len(P.plot_relations(plain).axes[0].lines) == 2


def test_the_grid_of_a_relation_frames_the_chosen_head():
    scores = samples.relation_scores(["obj", "det"])
    figure = P.plot_relation_heads(scores, "det")
    for way, ax in enumerate(figure.axes[:2]):
        assert np.array_equal(map_of(figure, way), scores.accuracy[way, 1])
        (frame,) = ax.patches
        assert frame.get_xy() == (1.5, 0.5)  # layer 1, head 2
        assert written(ax) == [f"{x:.2f}" for x in scores.accuracy[way, 1].ravel()]
    assert "best offset -1: 0.60" in figure.axes[0].get_title()


def test_minimal_pairs_are_points_and_counted_by_quarter():
    scores = samples.pair_scores(["he", "it"])
    figure = P.plot_pairs(scores)
    grid, points, _ = figure.axes
    np.testing.assert_allclose(map_of(figure), scores.outcomes[2] / 5)
    assert grid.patches[0].get_xy() == (1.5, 0.5)  # the most pairs right: (1, 2)
    assert "luckiest head 0.60" in grid.get_title()
    assert points.lines[-1].get_xydata().tolist() == scores.margins[:, :, 1, 2].tolist()
    counts = [text.split(": ")[1] for text in written(points)]
    assert counts == ["0", "1", "1", "3"]
    assert points.get_xlabel() == "he: first candidate − second"
    assert "both sentences right in 3 of 5 pairs, one in 2" in describe(figure)


def test_the_places_found_stand_below_each_other_with_their_weights():
    examples = samples.found_examples(WORDS)
    figure = P.plot_examples(examples, title="mine")
    texts = written(figure.axes[0])
    assert texts[0] == "largest weight" and texts.count("the") == 4
    assert texts[4] == f"{examples.largest[0].weight:.2f}  usual 0.25"
    assert "head (3, 1), obj: 1,234 places, mean weight 0.50" in samples.title_of(
        figure
    )
    query, key = (figure.axes[0].texts[i] for i in (2, 1))
    assert (query.get_text(), key.get_text()) == ("cat", "the")
    assert query.get_color() == QUERY and key.get_color() == KEY
    widths = [arc.get_linewidth() for arc in figure.axes[0].patches]
    assert 0.6 + 2.4 * examples.largest[0].weight in widths
    assert "largest from cat to the" in describe(figure)


@pytest.mark.parametrize("query, key", [(0, 79), (79, 0), (40, 41)])
def test_of_a_long_sentence_the_words_around_both_ends_are_shown(query, key):
    words = [f"word{i}" for i in range(80)]
    example = samples.found_examples(words, query, key).smallest[0]
    example = example._replace(row=0 * example.row)
    shown = words_around(example)
    kept = [place for place in shown if place is not None]
    assert {query, key} <= set(kept) and kept == sorted(kept) and 10 < len(kept) < 40
    for before, place, after in zip(shown, shown[1:], shown[2:]):
        assert place is not None or after > before + 1  # a gap stands for words


def test_a_probe_has_three_curves_in_their_bands_and_two_levels():
    scores = samples.probe_scores()
    figure = P.plot_probe(scores)
    ax = figure.axes[0]
    drawn = [line.get_ydata() for line in ax.lines]
    np.testing.assert_array_equal(drawn[:3], scores[:3])
    assert [line[0] for line in drawn[3:]] == [0.8, 0.2]
    heights = ax.collections[1].get_paths()[0].vertices[:, 1]
    assert {0.25, 0.05} <= set(heights.round(9)) and heights.max() == 0.35
    assert samples.ticks(ax.xaxis) == ["embed-\ndings", "0", "1"]
    best = "highest at layer 0, 0.90, where the control task gets 0.30"
    assert best in describe(figure)
    assert "selectivity is largest at layer 1, 0.65" in describe(figure)


# ------------------------------------------------------------------- diagrams
@pytest.mark.parametrize("heads, transpose", [(1, True), (4, True), (2, False)])
def test_a_number_is_cut_into_its_head_and_keeps_its_colour(heads, transpose):
    x = X[:3]
    figure = P.plot_split_heads(x, heads, WORDS, transpose=transpose)
    values = [int(text) for text in written(figure.axes[0]) if text.isdigit()]
    last = split_heads(x[None], heads) if transpose else x
    assert values[: x.size] == x.ravel().tolist()
    assert values[-x.size :] == last.ravel().tolist()
    colours = [patch.get_facecolor()[:3] for patch in figure.axes[0].patches]
    expected = [tint(value % 10 // (8 // heads)) for value in values]
    assert np.allclose(colours, expected)
    assert min(contrast("black", colour) for colour in expected) > 7


@pytest.mark.parametrize("order", ["post", "pre"])
def test_the_parts_of_a_layer_stand_in_order(order):
    figure = P.plot_encoder_layer(BertConfig(), 10, order=order)
    texts = written(figure.axes[0])
    parts = [text.split("\n")[0] for text in texts[1:-1] if text != "residual"]
    half = ["self-attention", "+", "LayerNorm", "feed-forward", "+", "LayerNorm"]
    assert parts == (half if order == "post" else [half[-1], *half[:-1]])
    for shape in ("(10, 768)", "(12, 10, 64)", "(12, 10, 10)", "(10, 3072)"):
        assert shape in "\n".join(texts)
    shapes = figure.axes[0].patches
    boxes = [box.get_x() for box in shapes if isinstance(box, FancyBboxPatch)]
    sums = [circle.center[0] for circle in shapes if isinstance(circle, Circle)]
    for line, start, end in zip(figure.axes[0].lines, (boxes[0], boxes[2]), sums):
        assert line.get_xdata()[0] < start < line.get_xdata()[-1] == end


def test_each_head_owns_its_columns_of_the_matrix_and_of_q():
    (ax,) = P.plot_head_matrices(2, 6, 3).axes
    colours = np.array([patch.get_facecolor()[:3] for patch in ax.patches])
    x, matrix, q = np.split(colours, [2 * 6, 2 * 6 + 6 * 6])
    heads = np.array([tint(h // 2) for h in range(6)])
    assert np.allclose(matrix.reshape(6, 6, 3), heads)
    assert np.allclose(q.reshape(2, 6, 3), heads) and len(np.unique(x, axis=0)) == 1


@pytest.mark.parametrize("parts, marked", [
    ((), []),
    (("mask",), ["attention mask"]),
    (("norm", "nsp"), ["+ residual\nLayerNorm"] * 2 + ["NSP head:\nnext sentence?"]),
])  # fmt: skip
def test_the_overview_marks_the_parts_asked_for(parts, marked):
    (ax,) = P.plot_overview(*parts).axes
    assert [t.get_text() for t in ax.texts if t.get_color() == "white"] == marked
    boxes = [box for box in ax.patches if isinstance(box, FancyBboxPatch)]
    assert sum(box.get_facecolor()[:3] == (0, 0, 0) for box in boxes) == len(marked)


@pytest.mark.parametrize("word, rows, end", [
    ("unplayable", 15, "un, ##play, ##able."),
    ("played", 5, "[UNK], because nothing fits at the end."),
])  # fmt: skip
def test_the_cutting_of_a_word_shows_every_attempt(word, rows, end):
    vocab = ["un", "play", "##play", "##able"]
    figure = P.plot_word_pieces(word, vocab)
    tried = [text for text in written(figure.axes[0]) if "  " in text]
    assert len(tried) == rows and tried[0] == f"{word}  not found"
    taken = [text.split("  ")[0] for text in tried if text.endswith("  taken")]
    pieces = bert_np.tokenizer.wordpiece(word, dict.fromkeys(vocab, 0))
    assert taken == (pieces if pieces != ["[UNK]"] else ["play"])
    assert describe(figure).endswith(end)


def test_a_histogram_has_the_density_of_its_samples():
    samples = {"a": np.array([0.0, 0, 1, 3]), "b": np.array([4.0])}
    (ax,) = P.plot_histogram(samples, bins=4).axes
    first, second = (patch.get_data().values for patch in ax.patches)
    assert np.allclose(first, [0.5, 0.25, 0, 0.25]) and np.allclose(
        second, [0, 0, 0, 1]
    )


# ------------------------------------------------------ the PNG of a notebook
def test_a_small_png_keeps_frequent_colours_and_is_close_in_the_others():
    pixels = samples.drawn(P.plot_attention(PROBS, WORDS, title="title"))
    with Image.open(io.BytesIO(small_png(pixels))) as image:
        assert image.mode == "P"
        again = np.asarray(image.convert("RGB"))
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    assert len(colours) > 256
    for colour in colours[np.argsort(-counts)[:150]]:
        assert (again[(pixels == colour).all(axis=2)] == colour).all()
    assert (np.abs(again.astype(int) - pixels).max(axis=2) > 8).mean() < 0.01


def test_a_picture_of_few_colours_stays_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 6, (40, 30, 3)).astype(np.uint8) * 50
    with Image.open(io.BytesIO(small_png(pixels))) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), pixels)
