"""What drawing functions refuse: calls, and the words of the message.

Each of CASES is a parameter (call, words) of a test.
"""

from functools import cache

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, random_params
from plotting.samples import (
    PROBS,
    WORDS,
    K,
    Q,
    V,
    found_examples,
    names,
    pair_scores,
    relation_scores,
)

import bert_np
from bert_np import plotting as P
from bert_np.plotting.explorer import load_model, view_of

HUGE = 10**5000  # more digits than Python prints
TRACE, PARAMS = {}, random_params()
out = bert_np.bert(INPUT_IDS, PARAMS, CONFIG, trace=TRACE)["last_hidden_state"]
bert_np.masked_lm_logits(out, PARAMS, CONFIG, trace=TRACE)
MAPS = np.tile(PROBS, (2, 3, 1, 1))
MANY = np.broadcast_to(np.float32(1 / 64), (24, 16, 64, 64))
WORD_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
MODEL = (PARAMS, CONFIG, bert_np.Tokenizer.from_tokens(WORD_PIECES))
DRAWINGS = {P.plot_attention: PROBS, P.attention_table: PROBS, P.attention_viewer: MAPS}
DRAWINGS |= {P.plot_heads: MAPS[0], P.plot_model: MAPS, P.plot_links: PROBS}


def case(words, function, *given, **options):
    """The call is refused with a message that holds all words (between |)."""
    name = f"{function.__name__}: {words[:40]}"
    return pytest.param(lambda: function(*given, **options), words.split("|"), id=name)


@cache
def viewer():
    return P.attention_viewer(PROBS, WORDS)


@cache
def steps():
    return P.step_through(TRACE)


def save(make, path):
    make().save(path)


PLACES = [None, 5, "a\0b", "no/such/folder/page.html", "/", "", b"page.html"]
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
    ("probs = None: no attention was kept|return_attention=True|='eager'", None),
    ("probs = (): no attention", ()),
    ("probs = [None, None]: no attention", [None, None]),
    ("probs is not an array", [[1, 2], [3]]),
    ("probs has shape (3,)", np.ones(3)),
    ("probs has shape (3, 2)|two equal last axes", PROBS[:, :2]),
    ("probs[0, 1] = nan|allowed 0 to 1", PROBS * [1, np.nan, 1]),
    ("probs[2, 2] = 1.574|allowed 0 to 1", PROBS * [1, 1, 2]),
    ("probs[0, 0] = -0.6652|allowed 0 to 1", -PROBS),
]
OPTIONS = [
    *[("power = |finite, above 0", {"power": x}) for x in (0, np.nan, "x", True, HUGE)],
    ("title is a bytes", {"title": b"x"}),
    ("special = 'drop'|'renormalise'", {"special": "drop"}),
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
STEPS = [
    ("row = 2, allowed: 0 to 1", {"row": 2}),
    ("head = 3, allowed: 0 to 2", {"head": 3}),
    ("layers = 9, allowed: 0 to 1", {"layers": [0, 9]}),
    ("layers = 'all'", {"layers": "all"}),
    *[(option, {option: HUGE}) for option in ("row", "head", "layers", "crop")],
    ("tokens has 1 entries, expected 5", {"tokens": ["a"]}),
    *[
        ("5 integers", {"input_ids": x})
        for x in ([1, 2], [[0.5] * 5], [[1, 2], [1]], 7)
    ],
    ("vocabulary has 24 entries", {"vocabulary": ["a"] * 24}),
    ("vocabulary is a int", {"vocabulary": 3}),
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
NOT_CHOSEN = ([3], [], [1, 1], [True], "a", HUGE)
PAIRS = pair_scores(["he", "it"])
RELATIONS = relation_scores(["obj", "det"])
COLOURED, CONFUSED = P.plot_coloured_words, P.plot_confusion
ANSWERS = [
    ("matrix has shape (2, 1)", CONFUSED, [[1], [2]], ["a", "b"]),
    ("matrix has shape|0 or more", CONFUSED, [[1, -1], [0, 1]], ["a", "b"]),
    ("labels has 1 entries, expected 2", CONFUSED, np.eye(2), ["a"]),
    ("words is empty", COLOURED, [], {"a": []}),
    ("values['a'] has 1 entries|each word", COLOURED, WORDS, {"a": [1]}),
    ("values has 7 entries", COLOURED, ["x"], dict.fromkeys("abcdefg", [1])),
]
CASES = [
    case("scores is PairScores", P.plot_probe, PAIRS),
    case("examples is list", P.plot_examples, [1]),
    case("examples is tuple", P.examples_table, (1,)),
    case("title is a int", P.examples_table, found_examples(WORDS), title=3),
    case("remarks is a int", COLOURED, ["x"], {"a": [1]}, remarks=1),
    case("scores is RelationScores", P.plot_pairs, RELATIONS),
    case("head[1] = 3, allowed: 0 to 2", P.plot_pairs, PAIRS, head=(0, 3)),
    case("head = 5, allowed: (layer, head)", P.plot_pairs, PAIRS, head=5),
    case("scores is tuple", P.plot_relations, tuple(RELATIONS)),
    case("direction = 'both'|'head to", P.plot_relations, RELATIONS, direction="both"),
    case("relation = 'x', allowed: obj, det", P.plot_relation_heads, RELATIONS, "x"),
    *[case(w, f, probs, x) for f, probs in DRAWINGS.items() for w, x in TOKENS],
    *[
        case(w, f, probs, WORDS, **x)
        for f, probs in DRAWINGS.items()
        for w, x in OPTIONS
    ],
    *[case(w, f, x, WORDS) for f in list(DRAWINGS)[:3] for w, x in PROB_FAULTS],
    *[case(words, P.step_through, TRACE, **options) for words, options in STEPS],
    *[case(words, P.step_through, trace) for words, trace in TRACES],
    *[
        case("path = |cannot", save, page, x)
        for page in (viewer, steps)
        for x in PLACES
    ],
    *[case("0 to 2", P.attention_viewer, MAPS, WORDS, heads=x) for x in NOT_CHOSEN],
    case("axis of layers", P.attention_viewer, MAPS[0], WORDS, layers=[0]),
    case("From a batch take", P.attention_viewer, MAPS[None], WORDS),
    case(
        "513 entries|crop=True|plot_attention",
        P.attention_viewer,
        np.eye(513),
        names(513),
    ),
    case("1,572,864 values|heads=|shorter", P.attention_viewer, MANY, names(64)),
    case("41 entries|plot_attention", P.attention_table, np.eye(41), names(41)),
    case("(T, T)|[layer][batch][head]", P.plot_attention, MAPS, WORDS),
    case("(0, 0)|nothing to draw", P.plot_attention, np.ones((0, 0)), []),
    case("(3, 3)|(mean = 'heads')", P.plot_attention, PROBS, WORDS, mean="heads"),
    case("(A, T, T)|[layer][batch]", P.plot_heads, MAPS, WORDS),
    case("plot_attention draws it", P.plot_heads, MAPS, WORDS, mean="layers and heads"),
    case("(2, 2, 3, 3, 3)|layer[batch]", P.plot_model, [MAPS, MAPS], WORDS),
    case("(1, 2, 3, 3, 3)|2 to 4 axes", P.describe_attention, MAPS[None], WORDS),
    case("nothing is left", P.hide_special, np.eye(2), ["[CLS]", "[SEP]"]),
    *[
        case("decimals = |1 to 6", plot, PROBS, WORDS, decimals=x)
        for plot in (P.plot_attention, P.attention_table)
        for x in (0, 7, 2.0, "2", True, None, HUGE)
    ],
    case("ax is a str", P.plot_attention, PROBS, WORDS, ax="here"),
    case("k[0, 0] = nan|finite", P.plot_steps, Q, K * np.nan, V, WORDS),
    case("q has shape (1, 3, 4)|(T, D)", P.plot_steps, Q[None], K, V, WORDS),
    case("q has shape (0, 4)|nothing", P.plot_steps, Q[:0], K, V, WORDS),
    case("k has shape (2, 4)|(3, 4)", P.plot_steps, Q, K[:2], V, WORDS),
    case("v has shape (2, 2)|3 rows", P.plot_steps, Q, K, V[:2], WORDS),
    case("(2,), expected (3,)", P.plot_steps, Q, K, V, WORDS, visible=[1, 0]),
    *[case("query = |0 to 2", P.plot_query_key, Q, K, WORDS, x) for x in (-1, 3, "a")],
    *[case("query = ", P.plot_links, PROBS, WORDS, query=x) for x in (3, 1.0, HUGE)],
    *[
        case("query = |1 to 4", P.plot_links, PROBS, WORDS, query=x)
        for x in ([], [0, 1, 2, 0, 1])
    ],
    case("query = [1, 1]|different", P.plot_links, PROBS, WORDS, query=[1, 1]),
    case("query = None|only=True needs one", P.plot_links, PROBS, WORDS, only=True),
    case("only = 1, allowed: True", P.plot_links, PROBS, WORDS, query=1, only=1),
    *[case("mass = |up to 1", P.plot_links, PROBS, WORDS, mass=x) for x in (0, 2, "x")],
    case("norms[0, 0] = -0.6652", P.plot_weighted_norms, PROBS, -PROBS, WORDS),
    case(
        "(2, 3)|that of probs, (3, 3)", P.plot_weighted_norms, PROBS, PROBS[:2], WORDS
    ),
    case("position has shape (3, 2)", P.plot_embedding_sum, Q, V, Q, Q, WORDS),
    case("measures is a list", P.plot_head_summary, [1]),
    case("different shapes|(3, 2)", P.plot_head_summary, {"a": Q, "b": V}),
    case("config is a str|BertConfig", P.plot_parameters, "bert"),
    case("tokens is empty", P.plot_tokens, []),
    case("input_ids has 1 entries", P.plot_tokens, WORDS, [1]),
    case("probs[1] = 2|0 to 1", P.plot_top_words, WORDS, [1, 2, 3]),
    case("words has 3 entries", P.plot_top_words, WORDS, [1.0]),
    case("curves has dtype object", P.plot_curves, None),
    case("curves has 17 entries", P.plot_curves, {str(i): [1] for i in range(17)}),
    case("x has 1 entries, expected 2", P.plot_curves, [1, 2], [1]),
    case("stages has 1 entries, expected 2", P.plot_by_layer, [1, 2], stages=["a"]),
    case("curves[1] = inf", P.plot_by_layer, [1, np.inf]),
    case("amounts[1] = -2|0 or more", P.plot_bars, {"a": 1, "b": -2}),
    case("points is a list|mapping", P.plot_roofline, [(1, 2)], 1, 1),
    case("value 0|above 0", P.plot_roofline, {"a": (1, 0)}, 1, 1),
    case("products = 0|above 0", P.plot_roofline, {"a": (1, 2)}, 0, 1),
    case("num_heads = 3|divisor of H = 4", P.plot_split_heads, Q, 3, WORDS),
    case("num_heads = 0|1 to 4", P.plot_split_heads, Q, 0, WORDS),
    case("up to (8, 16)", P.plot_split_heads, np.zeros((3, 32)), 2, WORDS),
    case("num_heads = 5|divisor of hidden_size = 8", P.plot_head_matrices, 3, 8, 5),
    case("part = 'brain'|tokenizer, embeddings", P.plot_overview, "brain"),
    *[case(words, *given) for words, *given in ANSWERS],
    case("word = ''|1 to 24", P.plot_word_pieces, "", ["a"]),
    case(
        "attempts, allowed: 40",
        P.plot_word_pieces,
        "abc" * 8,
        ["##b", "a", "##c", "##a"],
    ),
    case("vocab is a NoneType", P.plot_word_pieces, "a", None),
    case("samples is a list|mapping", P.plot_histogram, [[1.0]]),
    case("samples['a'][0] = nan", P.plot_histogram, {"a": [np.nan]}),
    case("order = 'both'", P.plot_encoder_layer, CONFIG, 5, order="both"),
    case("length = 99|0 to ", P.plot_encoder_layer, CONFIG, 99),
    case("figure is a str", P.describe, "x"),
    case("text = '  ': type a sentence", view_of, "  ", MODEL),
    case("text has 32 tokens, allowed: at most ", view_of, "a " * 30, MODEL),
    case("masked = 5, allowed: 0 to 3", view_of, "a b", MODEL, masked=[5]),
    case("model is a int", load_model, 3),
    case("its tokenizer is None", load_model, (PARAMS, CONFIG, None)),
]
