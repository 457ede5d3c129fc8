"""Every figure: the numbers drawn, the text on it, what it refuses."""

import ast
import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import bert_np
from bert_np import plotting
from bert_np.errors import BertError
from bert_np.plotting import (
    describe,
    plot_attention,
    plot_bars,
    plot_by_layer,
    plot_curves,
    plot_embedding_sum,
    plot_head_summary,
    plot_heads,
    plot_links,
    plot_model,
    plot_parameters,
    plot_query_key,
    plot_roofline,
    plot_steps,
    plot_tokens,
    plot_top_words,
    plot_weighted_norms,
)
from bert_np.plotting.links import strongest
from bert_np.plotting.png import small_png

Q = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]])
K = np.array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 1, 2, 0]])
V = np.array([[1.0, 0], [0, 1], [1, 1]])
PROBS = np.array(
    [[0.6652, 0.2447, 0.0900], [0.2119, 0.5761, 0.2119], [0.1065, 0.1065, 0.7870]]
)
WORDS = ["the", "cat", "sat"]
ODD = [
    "[CLS]",
    "un",
    "##play",
    "##able",
    "中文字",
    "\U0001f600",
    "$x$",
    "$$",
    "<b>",
    "a&b",
    '"',
    "שלום",
    "مرحبا",
    "a\x07b",
    "",
    "antidisestablishmentarianism",
    "W" * 1000,
    "[SEP]",
]


def rng():
    return np.random.default_rng(0)


def random_probs(*shape):
    scores = np.exp(2 * rng().normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def names(count):
    return [f"t{i}" for i in range(count)]


def draw_all(tokens):
    """{name: figure} of every figure, with these tokens."""
    t = len(tokens)
    q, k, v = rng().normal(size=(3, t, 8))
    mask, halves = np.ones(t, int), np.arange(t) >= t // 2
    mask[-1] = 0
    probs = random_probs(2, 3, t, t)
    return {
        "steps": plot_steps(q, k, v, tokens, visible=mask, title="one head"),
        "steps, no mask": plot_steps(q, k, v, tokens),
        "query and key": plot_query_key(q, k, tokens, t - 1, title="one query"),
        "links": plot_links(probs[0, 0], tokens, title="one head"),
        "links of one query": plot_links(probs[0, 0], tokens, query=0),
        "weighted norms": plot_weighted_norms(probs[0, 0], probs[1, 1], tokens),
        "embedding sum": plot_embedding_sum(q, k, v[:1], q, tokens, title="a sum"),
        "tokens": plot_tokens(
            tokens,
            np.arange(t) * 100,
            segment_ids=halves,
            attention_mask=mask,
            title="boxes",
        ),
        "top words": plot_top_words(tokens[:12], probs[0, 0, 0, :12]),
        "stages": plot_by_layer(
            {token: q[:3, i] for i, token in enumerate(tokens[:4])},
            stages=tokens[:3],
            title="stages",
        ),
        "between": plot_attention(
            probs[0, 0], tokens, segment_ids=halves, between="first to second"
        ),
        "between, heads": plot_heads(
            probs[0], tokens, segment_ids=halves, between="second to first"
        ),
        "between, model": plot_model(
            probs, tokens, segment_ids=halves, between="second to first"
        ),
        "mean": plot_heads(probs, tokens, mean="heads"),
    }


def texts_of(figure):
    """The texts that are drawn, those of ticks within the axes only."""
    axes = [*figure.axes, *(child for ax in figure.axes for child in ax.child_axes)]
    texts = [figure._suptitle, figure._supxlabel, figure._supylabel, *figure.texts]
    for ax in axes:
        texts += [*ax.texts, ax.title, ax._left_title, ax._right_title]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            ticks = [tick for tick in axis._update_ticks()]
            texts += [axis.label, *(tick.label1 for tick in ticks)]
            texts += [tick.label2 for tick in ticks]
    texts = {id(text): text for text in texts if text is not None}.values()
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def assert_text_fits(figure, name=""):
    """No text leaves the figure, none overlaps another, none is small."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = texts_of(figure)
    boxes = np.array([t.get_window_extent(renderer).extents for t in texts])
    assert len(texts) > 3, name
    assert min(t.get_fontsize() for t in texts) >= 9, name
    width, height = canvas.get_width_height()
    out = (boxes[:, :2].min(axis=1) < -1) | (boxes[:, 2] > width + 1)
    out |= boxes[:, 3] > height + 1
    assert not out.any(), (name, [t.get_text() for t, o in zip(texts, out) if o])
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    over = np.triu((high - low > 1.5).all(axis=2), 1)  # pixels
    pairs = [(texts[i].get_text(), texts[j].get_text()) for i, j in np.argwhere(over)]
    assert not pairs, (name, pairs[:5])


def written(ax):
    return [text.get_text() for text in ax.texts]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def title_of(figure):
    return figure.get_suptitle().replace("\n", " ") if figure._suptitle else ""


def refused(call, *parts):
    with pytest.raises(BertError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    assert len(str(caught.value)) <= 300


# --- any tokens, any length


@pytest.mark.parametrize("tokens", [WORDS, ODD], ids=["3", "odd"])
def test_texts_fit_and_every_figure_is_described(tokens):
    for name, figure in draw_all(tokens).items():
        assert_text_fits(figure, name)
        text = describe(figure)
        assert text.endswith(".") and "\n" not in text and len(text) > 30, name


def test_512_tokens_fit():
    tokens = names(512)
    probs = random_probs(512, 512)
    q, k, v = rng().normal(size=(3, 512, 64))
    for figure in (
        plot_steps(q, k, v, tokens),
        plot_query_key(q, k, tokens, 200),
        plot_links(probs, tokens, query=300),
        plot_weighted_norms(probs, probs, tokens),
        plot_embedding_sum(q, k, v, q, tokens),
        plot_tokens(tokens, range(512)),
    ):
        assert_text_fits(figure)


@pytest.mark.parametrize("count", [3, 5, 8, 10, 14])
def test_the_title_of_the_steps_stands_above_their_headings(count):
    q, k, v = rng().normal(size=(3, count, 32))
    for visible in (None, np.ones(count)):
        figure = plot_steps(
            q, k, v, names(count), visible=visible, title="MiniLM, layer 0, head 2"
        )
        assert_text_fits(figure, count)


def test_every_exported_plot_is_called_in_a_test():
    plots = {name for name in plotting.__all__ if name.startswith("plot_")}
    calls = {
        getattr(node.func, "id", None)
        for path in Path(__file__).parent.glob("test_plotting*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    }
    assert plots - calls == set()


# --- the worked example


def test_plot_steps_shows_the_worked_example():
    figure = plot_steps(Q, K, V, WORDS, decimals=4)
    scores, scaled, probs, context = figure.axes
    assert written(scores) == [f"{x:.4f}" for x in (Q @ K.T).ravel()]
    assert written(scaled) == [f"{x:.4f}" for x in (Q @ K.T / 2).ravel()]
    assert written(probs)[:6] == [
        "0.6652",
        "0.2447",
        "0.0900",
        "0.2119",
        "0.5761",
        "0.2119",
    ]
    assert written(context) == [
        "0.7553",
        "0.3348",
        "0.4239",
        "0.7881",
        "0.8935",
        "0.8935",
    ]
    assert probs.images[0].get_clim() == (0, 1)
    assert scores.images[0].get_clim() == (-4, 4)
    assert [ax.get_title() for ax in figure.axes] == [
        "scores\nq kᵀ\n(3, 3)",
        "scaled\nscores / √4 = scores / 2\n(3, 3)",
        "probs\nsoftmax of each row\n(3, 3)",
        "context\nprobs v\n(3, 2)",
    ]
    assert scores.get_ylabel() == "query: the token that looks"
    assert scores.get_xlabel() == "key: the token looked at"
    assert "0.67" in describe(figure)


def test_plot_steps_masks_before_the_softmax():
    figure = plot_steps(Q, K, V, WORDS, visible=[1, 1, 0], decimals=4)
    assert [ax.get_title().split("\n")[0] for ax in figure.axes] == [
        "scores",
        "scaled",
        "masked",
        "probs",
        "context",
    ]
    masked, probs = figure.axes[2:4]
    assert written(masked) == ["2.0000", "1.0000", "1.0000", "2.0000"] + ["0.0000"] * 2
    assert written(probs)[:3] == ["0.7311", "0.2689", "0.0000"]
    assert masked.images[0].get_array().mask[:, 2].all()
    assert all(any(p.get_hatch() for p in ax.patches) for ax in (masked, probs))
    causal = plot_steps(Q, K, V, WORDS, visible=np.tril(np.ones((3, 3))))
    assert written(causal.axes[3])[:3] == ["1.00", "0.00", "0.00"]


def test_steps_of_a_trace_are_those_of_the_model():
    trace = {}
    params, config = small_model()
    bert_np.bert([[1, 2, 3]], params, config, trace=trace)
    part = trace["layers"][0]["attention"]
    q, k, v = (part[name][0, 1] for name in "qkv")
    figure = plot_steps(q, k, v, WORDS)
    images = [ax.images[0].get_array() for ax in figure.axes[:4]]
    np.testing.assert_allclose(images[1], part["scores"][0, 1], atol=1e-6)
    np.testing.assert_allclose(images[2], part["probs"][0, 1], atol=1e-6)
    np.testing.assert_allclose(images[3], part["context"][0, :, 4:8], atol=1e-6)


def small_model():
    config = bert_np.BertConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=4,
    )
    return bert_np.init_params(config, rng()), config


def test_plot_query_key_shows_products_sums_and_shares():
    figure = plot_query_key(Q, K, WORDS, 1, decimals=4)
    query, keys, products, total, scaled, shares = figure.axes
    assert written(query) == ["0.0000", "2.0000", "0.0000", "0.0000"]
    assert written(keys) == [f"{x:.4f}" for x in K.ravel()]
    assert written(products) == [f"{x:.4f}" for x in (Q[1] * K).ravel()]
    for ax, values in (
        (total, [2, 4, 2]),
        (scaled, [1, 2, 1]),
        (shares, [0.2119, 0.5761, 0.2119]),
    ):
        widths = [bar.get_width() for bar in ax.patches]
        assert widths == pytest.approx(values, abs=1e-4)
        assert ticks(ax.child_axes[0].yaxis) == [f"{value:.4f}" for value in values]
    assert shares.get_xlim() == (0, 1)
    assert ticks(query.yaxis) == WORDS
    masked = plot_query_key(Q, K, WORDS, 1, visible=[1, 1, 0]).axes[5].patches
    widths = [bar.get_width() for bar in masked]
    assert widths == pytest.approx([0.2689, 0.7311, 0], abs=1e-4)
    assert [bool(bar.get_hatch()) for bar in masked] == [False, False, True]


# --- links


def test_strongest_takes_the_fewest_that_carry_the_mass():
    probs = random_probs(9, 9)
    for mass in (0.1, 0.5, 0.9, 1.0):
        chosen = strongest(probs, mass)
        for row, kept in zip(probs, chosen):
            ordered = sorted(row, reverse=True)
            count = next(n for n in range(1, 10) if sum(ordered[:n]) >= mass - 1e-9)
            assert sorted(row[kept], reverse=True) == ordered[:count]
    assert not strongest(np.zeros((2, 2)), 1.0).any()


def test_links_go_from_queries_to_keys():
    ax = plot_links(PROBS, WORDS, mass=1).axes[0]
    (lines,) = ax.collections
    ends = np.array(lines.get_segments())
    assert ends.shape == (9, 2, 2)
    assert np.all(ends[:, 0, 0] == 0) and np.all(ends[:, 1, 0] == 1)
    values = PROBS[ends[:, 0, 1].astype(int), ends[:, 1, 1].astype(int)]
    assert np.all(np.diff(values) >= 0)  # the strongest on top
    widths = np.array(lines.get_linewidths())
    assert widths == pytest.approx(0.5 + 3 * values)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    few = plot_links(PROBS, WORDS, mass=0.5).axes[0].collections[0].get_segments()
    assert len(few) == 3


def test_of_very_many_lines_the_weakest_are_left_out_and_the_title_says_so():
    probs = random_probs(120, 120)
    figure = plot_links(probs, names(120), query=5, mass=1)
    ends = np.array(figure.axes[0].collections[0].get_segments())[:, :, 1].astype(int)
    assert 4990 <= len(ends) <= 5120 and np.sum(ends[:, 0] == 5) == 120
    drawn = probs[tuple(ends[ends[:, 0] != 5].T)]
    assert drawn.min() >= np.sort(np.delete(probs, 5, axis=0).ravel())[-5000]
    assert "of 14,400 lines those above" in title_of(figure)


def test_a_highlighted_query_shows_its_shares():
    figure = plot_links(PROBS, WORDS, query=2, mass=1)
    texts = written(figure.axes[0])
    assert texts[3:9] == ["0.79", "sat", "0.11", "the", "0.11", "cat"]
    assert "query:\nthe token that looks" in texts
    (lines,) = figure.axes[0].collections
    blue = [tuple(colour[:3]) for colour in lines.get_colors()]
    assert blue[-3:] == [blue[-1]] * 3 and blue[0] != blue[-1]
    assert "sat (query 2) highlighted" in describe(figure)
    assert "sat (key 2) 0.79" in describe(figure)


@pytest.mark.parametrize("query", [None, 1])
def test_tokens_beside_the_lines_are_inked(query):
    figure = plot_links(PROBS, WORDS, query=query)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    dark = np.asarray(canvas.buffer_rgba())[::-1, :, :3].min(axis=2) < 100
    to_pixels = figure.axes[0].transData.transform
    for i in range(3):
        left, right = to_pixels((0, i)).astype(int), to_pixels((1, i)).astype(int)
        rows = slice(left[1] - 4, left[1] + 4)
        assert dark[rows, left[0] - 30 : left[0] - 5].sum() > 20
        assert dark[rows, right[0] + 5 : right[0] + 30].sum() > 20


# --- norms and embeddings


def test_weighted_norms_are_divided_by_their_rows():
    norms = np.array([[8.0, 1, 1], [0, 0, 0], [1, 2, 1]])
    figure = plot_weighted_norms(PROBS, norms, WORDS)
    left, right = (ax.images[0].get_array() for ax in figure.axes[:2])
    assert np.array_equal(left, PROBS)
    np.testing.assert_allclose(right, [[0.8, 0.1, 0.1], [0, 0, 0], [0.25, 0.5, 0.25]])
    assert {ax.images[0].get_clim() for ax in figure.axes[:2]} == {(0, 1)}
    heads = np.stack([norms, norms.T + 1])
    mean = plot_weighted_norms(np.stack([PROBS] * 2), heads, WORDS, mean="heads")
    loop = (norms[2] / norms[2].sum() + (norms.T + 1)[2] / (norms.T + 1)[2].sum()) / 2
    np.testing.assert_allclose(mean.axes[1].images[0].get_array()[2], loop)
    assert title_of(mean) == "mean over heads"


def test_embedding_strips_add_up():
    word, position, segment, output = rng().normal(size=(4, 3, 5))
    figure = plot_embedding_sum(word, position, segment[:1], output, WORDS)
    strips = [ax.images[0].get_array() for ax in figure.axes[:5]]
    assert np.array_equal(strips[2], np.tile(segment[:1], (3, 1)))
    np.testing.assert_allclose(strips[3], word + position + segment[:1])
    assert np.array_equal(strips[4], output)
    assert written(figure.axes[0]) == [f"{x:.2f}" for x in word.ravel()]
    limits = {ax.images[0].get_clim() for ax in figure.axes[:4]}
    assert len(limits) == 1 and limits.pop()[1] == np.abs(strips[:4]).max()
    many = plot_embedding_sum(*rng().normal(size=(4, 3, 400)), WORDS)
    assert "0.5 %" in title_of(many)


# --- heads, parameters, tokens, words, curves


def test_head_summary_has_a_point_for_each_head():
    measures = {"self": rng().random((2, 3)), "distance": 9 * rng().random((2, 3))}
    figure = plot_head_summary(measures)
    for ax, (name, values) in zip(figure.axes, measures.items()):
        points = ax.lines[0]
        assert np.array_equal(points.get_ydata(), values.ravel())
        assert np.array_equal(np.round(points.get_xdata()), [0, 0, 0, 1, 1, 1])
        layer, head = np.unravel_index(values.argmax(), values.shape)
        assert ax.get_title() == (
            f"{name}\nmost: layer {layer}, head {head}, {values.max():.2f}"
        )
        means = ax.collections[0].get_segments()
        assert [s[0][1] for s in means] == pytest.approx(values.mean(axis=1))
    assert figure.axes[0].get_ylim() == (-0.04, 1.04)
    assert figure.axes[1].get_ylim()[1] > measures["distance"].max()
    signed = plot_head_summary({"change": -values}).axes[0]
    assert signed.get_ylim()[0] < -values.max() < 0 < signed.get_ylim()[1]
    assert_text_fits(plot_head_summary({f"m_{i}": values for i in range(8)}, title="x"))
    assert_text_fits(plot_head_summary({"$x$ 中": rng().random((24, 16))}))


def test_parameters_are_those_of_the_ledger():
    config = bert_np.BertConfig()
    figure = plot_parameters(config, title="BERT-Base")
    ax = figure.axes[0]
    bars = dict(zip(ticks(ax.yaxis), (bar.get_width() for bar in ax.patches)))
    assert 1e6 * sum(bars.values()) == pytest.approx(109_482_240)
    assert bars["12 layers: feed-forward"] == pytest.approx(12 * 4.722432)
    assert written(ax)[0].split() == ["23,440,896", "21.4%"]
    assert "109,482,240" in describe(figure) and "56,669,184 (52%)" in describe(figure)
    rows = plot_parameters(bert_np.parameter_ledger(config), heads=True).axes[0]
    assert ticks(rows.yaxis)[-2:] == ["MLM head", "NSP head"]
    assert_text_fits(figure)


def test_tokens_stand_above_their_numbers():
    figure = plot_tokens(
        ["[CLS]", "cat", "[PAD]"],
        [101, 4937, 0],
        segment_ids=[0, 1, 0],
        attention_mask=[1, 1, 0],
    )
    texts = written(figure.axes[0])
    assert texts[:5] == ["position", "token", "id", "segment", "mask"]
    assert texts[5:] == [
        "0",
        "[CLS]",
        "101",
        "0",
        "1",
        "1",
        "cat",
        "4937",
        "1",
        "1",
        "2",
        "[PAD]",
        "0",
        "0",
        "0",
    ]
    boxes = figure.axes[0].patches
    assert [bool(box.get_hatch()) for box in boxes] == [False, False, True]
    assert len({box.get_facecolor() for box in boxes}) == 3
    assert written(plot_tokens(WORDS).axes[0])[:2] == ["position", "token"]
    assert title_of(plot_tokens(names(65))) == "the first 64 of 65 tokens"


def test_top_words_are_bars_from_0_to_1():
    ax = plot_top_words(["cat", "$"], [0.6, 0.25], title="x").axes[0]
    assert [bar.get_width() for bar in ax.patches] == [0.6, 0.25]
    assert ticks(ax.yaxis) == ["cat", "$"] and written(ax) == ["0.60", "0.25"]
    assert ax.get_xlim()[0] == 0 and ax.get_xticks().max() == 1


def test_curves_draw_the_numbers_given():
    curves = {"a": [3.0, 2, 1], "b": [0.0, 1, 2]}
    figure = plot_curves(curves, [10, 20, 30], title="x")
    for line, (name, values) in zip(figure.axes[0].lines, curves.items()):
        assert line.get_xydata().tolist() == list(map(list, zip([10, 20, 30], values)))
        assert line.get_label() == name
    assert len({line.get_linestyle() for line in figure.axes[0].lines}) == 2
    assert describe(figure) == (
        "Lines of loss over 3 steps: a from 3 to 1 (between 1 and 3); "
        "b from 0 to 2 (between 0 and 2)."
    )
    logged = plot_by_layer(curves, log=True)
    assert logged.axes[0].get_yscale() == "log"
    assert title_of(logged) == "not drawn: 1 of the values, 0 or less"
    assert plot_by_layer([0.0, 0]).axes[0].lines[0].get_ydata().tolist() == [0, 0]
    staged = plot_by_layer([1.0, 2], stages=["embeddings", "layer 0"])
    assert ticks(staged.axes[0].xaxis) == ["embeddings", "layer 0"]
    sixteen = plot_curves({f"c{i}": [i, i + 1.0] for i in range(16)}).axes[0].lines
    looks = {(line.get_color(), line.get_linestyle()) for line in sixteen}
    assert len(looks) == 16
    for one in (figure, logged, staged):
        assert_text_fits(one)


def test_bars_hold_amounts_and_shares():
    figure = plot_bars({"GELU": 3.0, "softmax $x$": 1.0}, xlabel="ms", title="x")
    ax = figure.axes[0]
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert ticks(ax.yaxis) == ["GELU", "softmax $x$"]
    assert written(ax) == ["  3  75%", "  1  25%"]
    assert describe(figure) == "Bars of ms, 4 in all: most in GELU, 3 (75%)."
    assert written(plot_bars({"a": 0.0}).axes[0]) == ["  0  0%"]
    for one in (figure, plot_bars({f"name {i}" * 9: i for i in range(40)})):
        assert_text_fits(one)


def test_the_roof_is_the_lower_of_two_limits():
    points = {"product": (100.0, 150.0), "$softmax$": (0.5, 2.0)}
    figure = plot_roofline(points, 200, 10, title="x")
    roof, _, *dots = figure.axes[0].lines
    x, y = roof.get_xdata(), roof.get_ydata()
    np.testing.assert_allclose(y, np.minimum(200, 10 * x))
    assert x[0] < 0.5 and x[1] == 20 and x[2] > 100
    assert [tuple(dot.get_xydata()[0]) for dot in dots] == list(points.values())
    assert len({dot.get_marker() for dot in dots}) == 2
    assert describe(figure).endswith(
        "nearest to it product (75%), farthest $softmax$ (40%)."
    )
    assert_text_fits(figure)
    assert_text_fits(plot_roofline({f"name {i}": (2.0**i, 1) for i in range(8)}, 9, 1))


# --- choices


PAIR = ["[CLS]", "a", "##b", "[SEP]", "c", "[SEP]", "[PAD]"]
SEGMENTS = [0, 0, 0, 0, 1, 1, 0]


def test_between_draws_one_block():
    probs = random_probs(7, 7)
    figure = plot_attention(
        probs, PAIR, segment_ids=SEGMENTS, between="first to second"
    )
    image = figure.axes[0].images[0].get_array()
    assert np.array_equal(image, probs[:4, 4:6])
    assert ticks(figure.axes[0].yaxis) == PAIR[:4]
    assert ticks(figure.axes[0].xaxis) == PAIR[4:6]
    right, below = figure.axes[0].child_axes
    assert ticks(right.yaxis) == [f"{x:.2f}" for x in probs[:4, 4:6].sum(axis=1)]
    assert ticks(below.xaxis) == [f"{x:.2f}" for x in probs[:4, 4:6].sum(axis=0)]
    assert title_of(figure) == (
        "only from the first to the second sentence, the rest left out"
    )
    back = plot_heads(
        probs[None],
        PAIR,
        segment_ids=SEGMENTS,
        between="second to first",
        special="hide",
        merge_words=True,
    )
    merged = (probs[4, 1] + probs[4, 2]).reshape(1, 1)
    np.testing.assert_allclose(back.axes[0].images[0].get_array(), merged)
    assert "rows not renormalised" in title_of(back)
    assert "on 1 token, ab" in describe(back)


def test_between_leaves_masked_tokens_out():
    probs, tokens = random_probs(7, 7), [*PAIR[:-1], "x"]
    figure = plot_model(
        probs[None, None],
        tokens,
        segment_ids=SEGMENTS,
        between="second to first",
        attention_mask=[1] * 6 + [0],
    )
    assert np.array_equal(figure.axes[0].images[0].get_array(), probs[4:6, :4])
    links = plot_links(
        probs,
        tokens,
        segment_ids=SEGMENTS,
        mass=1,
        between="second to first",
        attention_mask=[1] * 6 + [0],
    )
    assert len(links.axes[0].collections[0].get_segments()) == 8


def test_means_are_taken_and_named():
    probs = random_probs(2, 3, 4, 4)
    one = plot_attention(probs[1], names(4), mean="heads")
    np.testing.assert_allclose(one.axes[0].images[0].get_array(), probs[1].mean(0))
    assert title_of(one) == "mean over heads"
    assert "as the mean over heads" in describe(one)
    both = plot_attention(probs, names(4), mean="layers and heads")
    np.testing.assert_allclose(both.axes[0].images[0].get_array(), probs.mean((0, 1)))
    layers = plot_heads(probs, names(4), mean="heads")
    assert [ax.get_title() for ax in layers.axes[:2]] == ["layer 0", "layer 1"]
    np.testing.assert_allclose(layers.axes[1].images[0].get_array(), probs[1].mean(0))
    heads = plot_heads(probs, names(4), mean="layers")
    assert heads.axes[2].get_title() == "head 2"
    np.testing.assert_allclose(heads.axes[2].images[0].get_array(), probs[:, 2].mean(0))
    model = plot_model(probs, names(4), mean="heads")
    assert len(model.axes[0].images) == 2 and ticks(model.axes[0].xaxis) == ["mean"]
    assert "2 layers" in describe(model) and "head 0" not in describe(model)
    flat = plot_model(probs, names(4), mean="layers")
    assert len(flat.axes[0].images) == 3 and ticks(flat.axes[0].yaxis) == ["mean"]


def test_the_output_of_a_model_is_drawn_as_it_is():
    params, config = small_model()
    out = bert_np.bert([[1, 2, 3]], params, config)
    figure = plot_model(out["attention_probs"], WORDS)
    for head, image in enumerate(figure.axes[0].images):
        assert np.array_equal(image.get_array(), out["attention_probs"][0][0, head])
    two = bert_np.bert([[1, 2, 3]] * 2, params, config)["attention_probs"]
    refused(lambda: plot_model(two, WORDS), "(1, 2, 2, 3, 3)", "layer[batch]")


# --- the PNG of a notebook


def test_a_small_png_keeps_frequent_colours_and_is_close_in_the_others():
    figure = plot_attention(random_probs(9, 9), names(9), title="some title")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    with Image.open(io.BytesIO(small_png(pixels))) as image:
        assert image.mode == "P"
        again = np.asarray(image.convert("RGB"))
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    assert len(colours) > 256
    for colour in colours[np.argsort(-counts)[:150]]:
        here = (pixels == colour).all(axis=2)
        assert (again[here] == colour).all()
    wrong = np.abs(again.astype(int) - pixels).max(axis=2) > 8
    assert wrong.mean() < 0.01


def test_a_picture_of_few_colours_stays_as_it_is():
    pixels = rng().integers(0, 6, (40, 30, 3)).astype(np.uint8) * 50
    with Image.open(io.BytesIO(small_png(pixels))) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), pixels)


# --- ax, inputs, refusals


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot_links(PROBS, WORDS, ax=ax, title="x"),
        lambda ax: plot_tokens(WORDS, [1, 2, 3], ax=ax, title="x"),
        lambda ax: plot_top_words(WORDS, [0.5, 0.3, 0.1], ax=ax, title="x"),
        lambda ax: plot_by_layer([1.0, 2], ax=ax, title="x"),
        lambda ax: plot_curves({"a": [1.0, 2], "b": [2.0, 3]}, ax=ax, title="x"),
        lambda ax: plot_parameters(bert_np.BertConfig(), ax=ax, title="x"),
        lambda ax: plot_bars({"a": 1, "b": 2}, ax=ax, title="x"),
        lambda ax: plot_roofline({"a": (1, 2)}, 9, 3, ax=ax, title="x"),
    ],
)
def test_one_axes_can_be_given(draw):
    figure = Figure(figsize=(14, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(left) is figure
    assert left.get_title().startswith("x") and not right.has_data()
    first = describe(figure)
    draw(right)
    assert describe(figure) == f"{first} {first}"
    assert_text_fits(figure)
    refused(lambda: draw("here"), "ax is a str")


def test_inputs_stay_as_they_are():
    arrays = [Q.copy(), K.copy(), V.copy(), PROBS.copy(), rng().random((2, 2, 3, 3))]
    for array in arrays:
        array.flags.writeable = False
    q, k, v, probs, model = arrays
    tokens, mask = list(WORDS), np.array([1, 1, 0])
    for figure in (
        plot_steps(q, k, v, tokens, visible=mask),
        plot_query_key(q, k, tokens, 0, visible=mask),
        plot_links(probs, tokens, query=1),
        plot_weighted_norms(probs, probs, tokens),
        plot_tokens(tokens, mask),
        plot_embedding_sum(q, k, q, k, tokens),
        plot_head_summary({"x": probs}),
        plot_top_words(tokens, probs[0]),
        plot_curves(q[0]),
        plot_by_layer(q[0]),
        plot_model(
            model,
            tokens,
            mean="heads",
            segment_ids=[0, 0, 1],
            between="first to second",
        ),
    ):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        assert buffer.tell() > 1000
    assert np.array_equal(q, Q) and np.array_equal(probs, PROBS)
    assert tokens == WORDS and mask.tolist() == [1, 1, 0]


def test_heads_and_masks_that_do_not_fit_are_refused():
    refused(lambda: plot_steps(Q[None], K, V, WORDS), "q has shape (1, 3, 4)", "(T, D)")
    refused(lambda: plot_steps(Q, K[:2], V, WORDS), "k has shape (2, 4)", "(3, 4)")
    refused(lambda: plot_steps(Q, K, V[:2], WORDS), "v has shape (2, 2)", "3 rows")
    refused(lambda: plot_steps(Q, K, V, WORDS[:2]), "tokens has 2", "3 rows")
    refused(lambda: plot_steps(Q, K * np.nan, V, WORDS), "k[0, 0] = nan", "finite")
    refused(
        lambda: plot_steps(Q, K, V, WORDS, visible=[1, 0]), "attention_mask", "(3,)"
    )
    refused(lambda: plot_steps(Q, K, V, WORDS, decimals=0), "decimals = 0")
    for query in (-1, 3, 1.0, True, None, "cat"):
        refused(lambda: plot_query_key(Q, K, WORDS, query), "query = ", "0 to 2")
    refused(lambda: plot_links(PROBS, WORDS, query=3), "query = 3", "0 to 2")
    for mass in (0, 1.1, np.nan, "all", True):
        refused(lambda: plot_links(PROBS, WORDS, mass=mass), "mass = ", "up to 1")
    refused(lambda: plot_links(PROBS[None], WORDS), "(1, 3, 3)")


def test_numbers_that_do_not_fit_are_refused():
    refused(lambda: plot_weighted_norms(PROBS, -PROBS, WORDS), "norms[0, 0] = -0.6652")
    refused(lambda: plot_weighted_norms(PROBS, PROBS[:2], WORDS), "(2, 3)", "(3, 3)")
    refused(lambda: plot_weighted_norms(PROBS, PROBS, WORDS[:2]), "tokens has 2")
    refused(lambda: plot_embedding_sum(Q, K[:, :2], Q, Q, WORDS), "position", "(3, 2)")
    refused(lambda: plot_head_summary({}), "measures is a dict", "one or more")
    refused(lambda: plot_head_summary([1]), "measures is a list")
    refused(lambda: plot_head_summary({"a": [1, 2]}), "measures['a']", "(L, A)")
    refused(lambda: plot_head_summary({"a": Q, "b": V}), "different shapes", "(3, 2)")
    refused(lambda: plot_parameters("bert"), "config is a str", "BertConfig")
    refused(lambda: plot_parameters([("a", "b", 1)]), "config is a list")
    refused(lambda: plot_tokens([]), "tokens is empty")
    refused(lambda: plot_tokens(WORDS, [1]), "input_ids has shape (1,)", "3 entries")
    refused(lambda: plot_tokens(WORDS, segment_ids=[0, 1, 2]), "segment_ids[2] = 2")
    refused(lambda: plot_top_words(WORDS, [1, 2, 3]), "probs[1] = 2", "0 to 1")
    refused(lambda: plot_top_words(WORDS, [1.0]), "tokens has 3", "1 rows")
    refused(lambda: plot_curves({}), "0 entries")
    refused(lambda: plot_curves({"a": [1], "b": [1, 2]}), "different lengths")
    refused(lambda: plot_curves([1, 2], [1]), "x has 1 entries", "2")
    refused(lambda: plot_by_layer([1, 2], stages=["a"]), "stages has 1 entries", "2")
    refused(lambda: plot_by_layer([1, np.inf]), "curves[1] = inf")
    refused(lambda: plot_bars([1]), "amounts is a list", "mapping")
    refused(lambda: plot_bars({}), "amounts has 0 entries", "1 to 40")
    refused(lambda: plot_bars({"a": 1, "b": -2}), "amounts['b'] = -2", "0 or more")
    refused(lambda: plot_bars({"a": np.nan}), "amounts[0] = nan", "finite")
    refused(lambda: plot_roofline([(1, 2)], 1, 1), "points is a list", "mapping")
    refused(lambda: plot_roofline({"a": (1, 0)}, 1, 1), "value 0", "above 0")
    refused(lambda: plot_roofline({"a": (1, 2, 3)}, 1, 1), "(1, 3)", "(N, 2)")
    refused(lambda: plot_roofline({"a": (1, 2)}, 0, 1), "products = 0", "above 0")
    refused(lambda: plot_roofline({"a": (1, 2)}, 1, "x"), "bandwidth = 'x'")
    refused(lambda: describe(Figure()), "without a description")
    refused(lambda: describe("x"), "figure is a str")


def test_choices_that_do_not_fit_are_refused():
    def draw(**choices):
        return plot_attention(random_probs(7, 7), PAIR, **choices)

    refused(
        lambda: draw(between="ab", segment_ids=SEGMENTS),
        "between = 'ab'",
        "first to second",
    )
    refused(lambda: draw(between="first to second"), "segment_ids = None")
    refused(
        lambda: draw(between="first to second", segment_ids=[0] * 7), "no token is left"
    )
    refused(lambda: draw(segment_ids=[0, 2]), "segment_ids has shape (2,)")
    refused(lambda: draw(mean="head"), "mean = 'head'", "layers and heads")
    refused(lambda: draw(mean="heads"), "(7, 7)", "mean")
    refused(
        lambda: plot_heads(random_probs(2, 2, 3, 3), WORDS, mean="layers and heads"),
        "plot_attention draws it",
    )
