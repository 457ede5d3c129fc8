"""What drawing functions refuse: calls, and the words of the message.

Each of CASES is a parameter (call, words) of a test. HUGE has more digits
than Python prints.
"""

from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure
from plotting.samples import CONFIG, PARAMS, PROBS, WORDS, K, Q, V, names

import bert_np
from bert_np import plotting

HUGE = 10**5000
TRACE = {}
bert_np.bert([[2, 5, 3]] * 2, PARAMS, CONFIG, trace=TRACE)
bert_np.masked_lm_logits(TRACE["layers"][1]["output"], PARAMS, CONFIG, trace=TRACE)
MAPS = np.tile(PROBS, (2, 3, 1, 1))
MANY = np.broadcast_to(np.float32(1 / 64), (24, 16, 64, 64))
DRAWINGS = {
    plotting.plot_attention: PROBS,
    plotting.plot_heads: MAPS[0],
    plotting.plot_model: MAPS,
    plotting.plot_links: PROBS,
    plotting.attention_table: PROBS,
    plotting.attention_viewer: MAPS,
    plotting.describe_attention: MAPS,
}


def case(words, function, *given, **options):
    """The call is refused with a message that holds all words (between |)."""
    name = f"{function.__name__}: {words[:40]}"
    return pytest.param(lambda: function(*given, **options), words.split("|"), id=name)


TOKENS = [
    ("tokens is a NoneType", None),
    ("tokens is a str", "the"),
    ("tokens has 2 entries, expected 3", WORDS[:2]),
    ("tokens[1] is a int", ["a", 5, "b"]),
    ("tokens[0] is a list|one sentence", [WORDS] * 3),
]
PROB_FAULTS = [
    ("probs has dtype <U4", "maps"),
    ("probs has dtype complex128", PROBS + 0j),
    ("probs has dtype object", None),
    ("probs is not an array", [[1, 2], [3]]),
    ("probs has shape (3,)", np.ones(3)),
    ("probs has shape (3, 2)|two equal last axes", PROBS[:, :2]),
    ("tokens has 3 entries, expected 0", np.ones((0, 0))),
    ("probs[0, 1] = nan|allowed 0 to 1", PROBS * [1, np.nan, 1]),
    ("probs[2, 2] = 1.574|allowed 0 to 1", PROBS * [1, 1, 2]),
    ("probs[0, 0] = -0.6652|allowed 0 to 1", -PROBS),
]
OPTIONS = [
    *[("power = |finite, above 0", {"power": x}) for x in (0, np.nan, "x", True, HUGE)],
    ("title is a bytes", {"title": b"x"}),
    ("special = 'drop'|'renormalise'", {"special": "drop"}),
    ("special = []", {"special": []}),
    ("mean = 'rows'|'layers and heads'", {"mean": "rows"}),
    ("between = 'both'|'first to second'", {"between": "both"}),
    ("segment_ids = None", {"between": "first to second"}),
    ("segment_ids has shape (2,)", {"segment_ids": [0, 2]}),
    ("segment_ids[0] = 2|0 (first sentence)", {"segment_ids": [2] * 3}),
    ("no token is left", {"between": "first to second", "segment_ids": [0] * 3}),
    ("attention_mask = None", {"crop": True}),
    ("every position", {"crop": True, "attention_mask": [0] * 3}),
    ("attention_mask has shape (2,), expected (3,)", {"attention_mask": [1, 1]}),
    ("attention_mask[2] = 0.5|0 (masked)", {"attention_mask": [1, 1, 0.5]}),
    ("visible has shape (3,), expected (3, 3)", {"visible": [1, 1, 1]}),
]


@cache
def viewer():
    return plotting.attention_viewer(PROBS, WORDS)


@cache
def steps():
    return plotting.step_through(TRACE, WORDS)


def view(probs=MAPS, **options):
    plotting.attention_viewer(probs, WORDS, **options)


def save(make, path):
    make().save(path)


PLACES = [None, 5, "a\0b", "no/such/folder/page.html", "/", "", b"page.html"]
STEPS = [
    ("row = 2, allowed: 0 to 1", {"row": 2}),
    ("row = True", {"row": True}),
    ("head = 3, allowed: 0 to 2", {"head": 3}),
    ("layers = 9, allowed: 0 to 1", {"layers": [0, 9]}),
    ("layers = 'all'", {"layers": "all"}),
    *[(option, {option: HUGE}) for option in ("row", "head", "layers", "crop")],
    ("tokens has 1 entries, expected 3", {"tokens": ["a"]}),
    ("tokens is a str", {"tokens": "a b c"}),
    *[
        ("expected the 3 integers", {"input_ids": ids})
        for ids in ([1, 2], [[0.5] * 3], [["a"] * 3], [[1, 2], [1]], 7)
    ],
    ("vocabulary has 24 entries", {"vocabulary": ["a"] * 24}),
    ("vocabulary is a int", {"vocabulary": 3}),
    ("crop = 'no'", {"crop": "no"}),
]
TRACES = [
    ("trace is a NoneType", None),
    ("trace is empty", {}),
    ("'loss', which is no stage", {"loss": np.zeros(3)}),
    ("'input_ids', which is no stage", {"input_ids": np.zeros(3)}),
    ("embeddings.word has shape (3,)", {"embeddings": {"word": np.zeros(3)}}),
    ("embeddings.word has dtype <U4", {"embeddings": {"word": "text"}}),
    ("(1, 0, 3): nothing to show", {"embeddings": {"word": np.zeros((1, 0, 3))}}),
]
VIEWS = [
    *[("heads = |0 to 2", {"heads": x}) for x in ([3], [], [1, 1], [True], "a", HUGE)],
    ("without an axis of layers", {"probs": MAPS[0], "layers": [0]}),
    ("probs has shape (1, 2, 3, 3, 3)|From a batch take", {"probs": MAPS[None]}),
]
P = plotting
CASES = [
    *[
        case(words, plot, probs, tokens)
        for plot, probs in DRAWINGS.items()
        for words, tokens in TOKENS
    ],
    *[
        case(words, plot, probs, WORDS)
        for plot in (P.plot_attention, P.attention_table, P.attention_viewer)
        for words, probs in PROB_FAULTS
    ],
    *[
        case(words, plot, probs, WORDS, **options)
        for plot, probs in list(DRAWINGS.items())[:-1]
        for words, options in OPTIONS
    ],
    *[case(words, P.step_through, TRACE, **options) for words, options in STEPS],
    *[case(words, P.step_through, trace) for words, trace in TRACES],
    *[case(words, view, **options) for words, options in VIEWS],
    *[
        case("path = |cannot", save, page, x)
        for page in (viewer, steps)
        for x in PLACES
    ],
    case("expected (T, T)|[layer][batch][head]", P.plot_attention, MAPS, WORDS),
    case("expected (A, T, T)|[layer][batch]", P.plot_heads, MAPS, WORDS),
    case("(2, 2, 3, 3, 3)|layer[batch]", P.plot_model, [MAPS, MAPS], WORDS),
    case("(1, 2, 3, 3, 3)|2 to 4 axes", P.describe_attention, MAPS[None], WORDS),
    case("plot_attention draws it", P.plot_heads, MAPS, WORDS, mean="layers and heads"),
    case("(3, 3)|(mean = 'heads')", P.plot_attention, PROBS, WORDS, mean="heads"),
    case("nothing is left", P.hide_special, np.eye(2), ["[CLS]", "[SEP]"]),
    *[
        case("decimals = |1 to 6", plot, PROBS, WORDS, decimals=x)
        for plot in (P.plot_attention, P.attention_table)
        for x in (0, 7, 2.0, "2", True, None, HUGE)
    ],
    case("ax is a str", P.plot_attention, PROBS, WORDS, ax="here"),
    case("ax is a str", P.plot_bars, {"a": 1}, ax="here"),
    case("41 entries|plot_attention", P.attention_table, np.eye(41), names(41)),
    case("65 entries|layers= and heads=", P.attention_viewer, np.eye(65), names(65)),
    case("1,572,864 values|shorter", P.attention_viewer, MANY, names(64)),
    case("k[0, 0] = nan|finite", P.plot_steps, Q, K * np.nan, V, WORDS),
    case("q has shape (1, 3, 4)|(T, D)", P.plot_steps, Q[None], K, V, WORDS),
    case("q has shape (0, 4)|nothing", P.plot_steps, Q[:0], K, V, WORDS),
    case("k has shape (2, 4)|(3, 4)", P.plot_steps, Q, K[:2], V, WORDS),
    case("v has shape (2, 2)|3 rows", P.plot_steps, Q, K, V[:2], WORDS),
    case("tokens has 2|row of q, (3, 4)", P.plot_steps, Q, K, V, WORDS[:2]),
    case("(2,), expected (3,)", P.plot_steps, Q, K, V, WORDS, visible=[1, 0]),
    *[
        case("query = |0 to 2", plot, *given, WORDS, query=x)
        for plot, given in ((P.plot_query_key, (Q, K)), (P.plot_links, (PROBS,)))
        for x in (-1, 3, 1.0, True, "cat", HUGE)
    ],
    *[
        case("mass = |up to 1", P.plot_links, PROBS, WORDS, mass=x)
        for x in (0, 1.1, np.nan, "all", True, HUGE)
    ],
    case("norms[0, 0] = -0.6652", P.plot_weighted_norms, PROBS, -PROBS, WORDS),
    case(
        "(2, 3)|that of probs, (3, 3)", P.plot_weighted_norms, PROBS, PROBS[:2], WORDS
    ),
    case("position has shape (3, 2)", P.plot_embedding_sum, Q, V, Q, Q, WORDS),
    case("measures has 0 entries", P.plot_head_summary, {}),
    case("measures is a list", P.plot_head_summary, [1]),
    case("measures['a']|(L, A)", P.plot_head_summary, {"a": [1, 2]}),
    case("different shapes|(3, 2)", P.plot_head_summary, {"a": Q, "b": V}),
    case("config is a str|BertConfig", P.plot_parameters, "bert"),
    case("config is a list", P.plot_parameters, [("a", "b", 1)]),
    case("tokens is empty", P.plot_tokens, []),
    case("input_ids has 1 entries", P.plot_tokens, WORDS, [1]),
    case("segment_ids[2] = 2", P.plot_tokens, WORDS, segment_ids=[0, 1, 2]),
    case("probs[1] = 2|0 to 1", P.plot_top_words, WORDS, [1, 2, 3]),
    case("words has 3 entries", P.plot_top_words, WORDS, [1.0]),
    case("words is a str", P.plot_top_words, "a", [1.0]),
    case("probs has shape (0,)", P.plot_top_words, [], []),
    case("curves has 0 entries", P.plot_curves, {}),
    case("curves has dtype object", P.plot_curves, None),
    case("curves has 17 entries", P.plot_curves, {str(i): [1] for i in range(17)}),
    case("different shapes", P.plot_curves, {"a": [1], "b": [1, 2]}),
    case("x has 1 entries, expected 2", P.plot_curves, [1, 2], [1]),
    case("stages has 1 entries, expected 2", P.plot_by_layer, [1, 2], stages=["a"]),
    case("curves[1] = inf", P.plot_by_layer, [1, np.inf]),
    case("amounts is a list|mapping", P.plot_bars, [1]),
    case("amounts[1] = -2|0 or more", P.plot_bars, {"a": 1, "b": -2}),
    case("points is a list|mapping", P.plot_roofline, [(1, 2)], 1, 1),
    case("value 0|above 0", P.plot_roofline, {"a": (1, 0)}, 1, 1),
    case("(1, 3)|(N, 2)", P.plot_roofline, {"a": (1, 2, 3)}, 1, 1),
    case("products = 0|above 0", P.plot_roofline, {"a": (1, 2)}, 0, 1),
    case("bandwidth = 'x'", P.plot_roofline, {"a": (1, 2)}, 1, "x"),
    case("num_heads = 3|divisor of H = 4", P.plot_split_heads, Q, 3, WORDS),
    *[case("num_heads = |1 to 4", P.plot_split_heads, Q, x, WORDS) for x in (0, 2.0)],
    case("up to (8, 16)", P.plot_split_heads, np.zeros((3, 32)), 2, WORDS),
    case("config is dict", P.plot_encoder_layer, {}, 10),
    case("order = 'both'", P.plot_encoder_layer, CONFIG, 5, order="both"),
    case("length = 8|0 to 7", P.plot_encoder_layer, CONFIG, 8),
    case("without a description", P.describe, Figure()),
    case("figure is a str", P.describe, "x"),
]
