"""Drawing functions called with arguments that do not fit.

Each of CASES is (name, call, words that the refusal contains).
"""

from functools import cache

import numpy as np

import bert_np
from bert_np import BertConfig, plotting

HUGE = 10**5000  # more digits than Python prints
CONFIG = BertConfig(
    vocab_size=10,
    hidden_size=6,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=8,
    max_position_embeddings=7,
)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(0))
IDS = np.array([[2, 5, 6, 3, 0], [2, 7, 8, 9, 3]])
TRACE = {}
bert_np.bert(IDS, PARAMS, CONFIG, trace=TRACE)
MAPS = np.array([layer["attention"]["probs"] for layer in TRACE["layers"]])  # L B A T T
PROB_FAULTS = [
    ("a text", "maps", "probs"),
    ("one axis", np.ones(5), "(5,)"),
    ("not square", np.ones((2, 3)) / 3, "(2, 3)"),
    ("empty", np.ones((0, 0)), "(0, 0)"),
    ("scores above 1", np.full((5, 5), 3.0), "3"),
    ("negative", -np.eye(5), "-1"),
    ("NaN", np.full((5, 5), np.nan), "nan"),
    ("complex", np.eye(5) + 0j, "complex"),
    ("strings", np.full((5, 5), "x"), "<U1"),
    ("objects", np.full((5, 5), None), "object"),
]
NAMES = ["[CLS]", "a", "the", "[SEP]", "[PAD]"]
ONE, LAYER, ALL = MAPS[0, 0, 0], MAPS[0, 0], MAPS[:, 0]
NO_TOKENS = [
    ("tokens None", None, "NoneType"),
    ("tokens a text", "abcde", "str"),
    ("a token too few", NAMES[:4], "4"),
    ("a token a number", [*NAMES[:4], 5], "int"),
    ("a token None", [*NAMES[:4], None], "NoneType"),
    ("no tokens", [], "0"),
    ("tokens of a batch", [NAMES] * 5, "list"),
]
DRAWINGS = {
    "plot_attention": (plotting.plot_attention, ONE),
    "plot_heads": (plotting.plot_heads, LAYER),
    "plot_model": (plotting.plot_model, ALL),
    "plot_links": (plotting.plot_links, ONE),
    "attention_table": (plotting.attention_table, ONE),
    "attention_viewer": (plotting.attention_viewer, ALL),
    "describe_attention": (plotting.describe_attention, ALL),
}
OPTIONS = [
    ("power 0", {"power": 0}, "power = 0"),
    ("power NaN", {"power": float("nan")}, "power"),
    ("power a str", {"power": "x"}, "power = 'x'"),
    ("power infinite", {"power": float("inf")}, "power = inf"),
    ("title a number", {"title": 5}, "title is a int"),
    ("title bytes", {"title": b"x"}, "title is a bytes"),
    ("special unknown", {"special": "drop"}, "special = 'drop'"),
    ("special a list", {"special": []}, "special = []"),
    ("mean unknown", {"mean": "rows"}, "mean = 'rows'"),
    ("between unknown", {"between": "both"}, "between = 'both'"),
    ("between without segments", {"between": "first to second"}, "segment_ids"),
    ("crop without a mask", {"crop": True}, "attention_mask"),
    ("mask of another length", {"attention_mask": [1, 1]}, "attention_mask", "(2,)"),
    ("mask of 2", {"attention_mask": [2] * 5}, "attention_mask", "2"),
    (
        "segments of 2",
        {"segment_ids": [2] * 5, "between": "first to second"},
        "segment_ids",
        "2",
    ),
]


def draw(name, probs=None, tokens=NAMES, **options):
    function, maps = DRAWINGS[name]
    return lambda: function(maps if probs is None else probs, tokens, **options)


@cache
def viewer():
    return plotting.attention_viewer(ONE, NAMES)


def page(path):
    return lambda: viewer().save(path)


def steps_page(path):
    return lambda: plotting.step_through(TRACE, NAMES).save(path)


def refused(name, call, *words):
    return name, call, words


WITH_OPTIONS = [name for name in DRAWINGS if name != "describe_attention"]
CASES = [
    *[
        refused(f"{f}: {name}", draw(f, tokens=tokens), "tokens", word)
        for f in DRAWINGS
        for name, tokens, word in NO_TOKENS
    ],
    *[
        refused(f"{f}: {name}", draw(f, probs), "probs", word)
        for f in ("plot_attention", "attention_table", "attention_viewer")
        for name, probs, word in PROB_FAULTS
    ],
    *[
        refused(f"{f}: {name}", draw(f, **options), *words)
        for f in WITH_OPTIONS
        for name, options, *words in OPTIONS
    ],
    *[
        refused(f"plot_attention: {name}", draw("plot_attention", **options), *words)
        for name, options, *words in (
            ("decimals 0", {"decimals": 0}, "decimals = 0"),
            ("decimals 2.0", {"decimals": 2.0}, "decimals = 2.0"),
            ("decimals a str", {"decimals": "2"}, "decimals = '2'"),
            ("ax a number", {"ax": 5}, "ax is a int"),
        )
    ],
    *[
        refused(f"plot_links: {name}", draw("plot_links", **options), *words)
        for name, options, *words in (
            ("query T", {"query": 5}, "query = 5", "0 to 4"),
            ("query -1", {"query": -1}, "query = -1"),
            ("mass 2", {"mass": 2}, "mass = 2"),
            ("mass a str", {"mass": "x"}, "mass = 'x'"),
        )
    ],
    *[
        refused(
            f"plotting: {option} of 5,001 digits", draw(f, **{option: HUGE}), option
        )
        for f, option in (
            ("plot_attention", "power"),
            ("plot_attention", "decimals"),
            ("plot_attention", "mean"),
            ("plot_attention", "special"),
            ("plot_attention", "between"),
            ("plot_links", "query"),
            ("plot_links", "mass"),
            ("attention_viewer", "layers"),
        )
    ],
    *[
        refused(
            f"step_through: {option} of 5,001 digits",
            lambda o=option: plotting.step_through(TRACE, NAMES, **{o: HUGE}),
            option,
        )
        for option in ("row", "layers", "head", "crop")
    ],
    *[
        refused(
            f"step_through: {name}",
            lambda g=given: plotting.step_through(*g[0], **g[1]),
            *words,
        )
        for name, given, *words in (
            ("trace None", ((None,), {}), "trace is a NoneType"),
            ("trace empty", (({},), {}), "trace is empty"),
            ("a stage unknown", (({"x": np.ones(3)},), {}), "'x'"),
            ("row B", ((TRACE, NAMES), {"row": 2}), "row = 2"),
            ("head A", ((TRACE, NAMES), {"head": 3}), "head = 3"),
            ("layer L", ((TRACE, NAMES), {"layers": 2}), "layers", "2"),
            ("layers a str", ((TRACE, NAMES), {"layers": "all"}), "layers"),
            ("a token too few", ((TRACE, NAMES[:3]), {}), "tokens", "3"),
        )
    ],
    *[
        refused(
            f"top words: {name}", lambda g=given: plotting.plot_top_words(*g), *words
        )
        for name, given, *words in (
            ("no words", ([], []), "probs"),
            ("a word too few", (["a"], [0.5, 0.1]), "1"),
            ("probability 2", (["a"], [2]), "probs[0] = 2"),
            ("a text", ("a", [1.0]), "str"),
            ("NaN", (["a"], [float("nan")]), "probs[0] = nan"),
        )
    ],
    *[
        refused(
            f"head summary: {name}", lambda m=given: plotting.plot_head_summary(m), word
        )
        for name, given, word in (
            ("None", None, "measures"),
            ("empty", {}, "measures"),
            ("one axis", {"x": np.ones(3)}, "(3,)"),
            ("two shapes", {"x": np.ones((2, 3)), "y": np.ones((2, 2))}, "shapes"),
        )
    ],
    *[
        refused(f"curves: {name}", lambda c=given: plotting.plot_curves(c), "curves")
        for name, given in (
            ("None", None),
            ("empty", {}),
            ("a text", {"a": "x"}),
            ("two lengths", {"a": [1, 2], "b": [1]}),
            ("too many", {str(i): [1] for i in range(99)}),
        )
    ],
    *[
        refused(f"tokens: {name}", lambda g=given: plotting.plot_tokens(*g), word)
        for name, given, word in (
            ("None", (None,), "NoneType"),
            ("a text", ("ab",), "str"),
            ("an id too few", (["a", "b"], [1]), "1"),
            ("no tokens", ([],), "tokens"),
        )
    ],
    *[
        refused(
            f"cut into heads: {name}",
            lambda n=number: plotting.plot_split_heads(np.ones((2, 6)), n, ["a", "b"]),
            "num_heads",
        )
        for name, number in (
            ("4 of 6", 4),
            ("0 heads", 0),
            ("-1 heads", -1),
            ("2.0 heads", 2.0),
        )
    ],
    *[
        refused(
            f"query and key: {name}",
            lambda q=query: plotting.plot_query_key(
                np.ones((2, 3)), np.ones((2, 3)), ["a", "b"], q
            ),
            "query",
        )
        for name, query in (("query 2", 2), ("query -1", -1), ("query a str", "a"))
    ],
    *[
        refused(
            f"one head's steps: {name}", lambda g=given: plotting.plot_steps(*g), word
        )
        for name, given, word in (
            (
                "k of another size",
                (np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 3)), ["a", "b"]),
                "(2, 4)",
            ),
            ("q None", (None, np.ones((2, 3)), np.ones((2, 3)), ["a", "b"]), "q"),
            (
                "q NaN",
                (np.full((2, 3), np.nan), np.ones((2, 3)), np.ones((2, 3)), ["a", "b"]),
                "q[0, 0] = nan",
            ),
        )
    ],
    *[
        refused(
            f"plot_parameters: {kind}",
            lambda c=config: plotting.plot_parameters(c),
            "config is",
        )
        for kind, config in (("None", None), ("a dict", {}))
    ],
    refused(
        "describe: no figure", lambda: plotting.describe(None), "figure is a NoneType"
    ),
    *[
        refused(f"{kind}.save: {name}", make(path), "path")
        for kind, make in (("viewer", page), ("steps", steps_page))
        for name, path in (
            ("None", None),
            ("5", 5),
            ("NUL", "a\0b"),
            ("nowhere", "no/such/folder/page.html"),
            ("a folder", "/"),
            ("empty", ""),
            ("bytes", b"page.html"),
        )
    ],
]
