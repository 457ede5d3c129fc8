"""Calls of plotting and training with arguments that do not fit."""

from functools import cache

import numpy as np

from bert_np import plotting
from bert_np.training.adam import clip_by_global_norm
from bert_np.training.loop import TrainingSettings, train
from bert_np.training.losses import masked_cross_entropy
from bert_np.training.masking import mask_tokens
from bert_np.training.run import load_run
from bert_np.training.toy_language import create_grammar, sample_batch
from hostile.arguments import CONFIG, HUGE, IDS, MAPS, PARAMS, PROB_FAULTS, TRACE
from hostile.base import refused

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


WITH_OPTIONS = [name for name in DRAWINGS if name != "describe_attention"]
PICTURES = [
    *[
        refused(f"{f}: {name}", draw(f, tokens=tokens), "tokens", word)
        for f in DRAWINGS
        for name, tokens, word in NO_TOKENS
    ],
    *[
        refused(f"{f}: {name}", draw(f, probs), "probs", word)
        for f in ("plot_attention", "attention_table", "attention_viewer")
        for name, probs, word in PROB_FAULTS
        if probs is not None
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


# ------------------------------------------------------------- training
GRAMMAR = create_grammar()
SETTINGS = TrainingSettings(steps=1, warmup_steps=0)


def learn(settings=SETTINGS, **options):
    given = {
        "params": PARAMS,
        "config": CONFIG,
        "make_batch": None,
        "rng": np.random.default_rng(0),
        "settings": settings,
    }
    return lambda: train(**given | options)


def mask(ids=IDS, rng=None, **options):
    given = {"special_ids": [0, 1, 2, 3, 4], "mask_id": 4, "vocab_size": 10}
    rng = np.random.default_rng(0) if rng is None else rng
    return lambda: mask_tokens(ids, rng, **given | options)


LOGITS = np.zeros((2, 3))
TRAINING = [
    *[
        refused(f"train: {name}", call, *words)
        for name, call, *words in (
            ("rng a seed", learn(rng=0), "rng is int"),
            ("resume without a file", learn(resume=True), "checkpoint None"),
            ("a checkpoint nowhere", learn(checkpoint="/no/such/x.npz"), "no folder"),
            ("a checkpoint that is there", learn(checkpoint=__file__), "exists"),
            ("checkpoint_every 0", learn(checkpoint_every=0), "checkpoint_every = 0"),
            ("report_every 1.5", learn(report_every=1.5), "report_every = 1.5"),
            ("steps -1", learn(SETTINGS._replace(steps=-1)), "steps = -1"),
            ("steps 1.5", learn(SETTINGS._replace(steps=1.5)), "steps = 1.5"),
            ("more warm-up than steps", learn(SETTINGS._replace(warmup_steps=2)), "2"),
            (
                "rate NaN",
                learn(SETTINGS._replace(peak_rate=float("nan"))),
                "peak_rate = nan",
            ),
            ("rate a str", learn(SETTINGS._replace(peak_rate="x")), "peak_rate = 'x'"),
            ("beta1 of 1", learn(SETTINGS._replace(beta1=1.0)), "beta1 = 1.0"),
            ("parts 0", learn(SETTINGS._replace(parts=0)), "parts = 0"),
            ("settings a dict", learn({}), "settings is dict"),
            (
                "steps of 5,001 digits",
                learn(SETTINGS._replace(steps=-HUGE)),
                "steps = ",
            ),
            (
                "rate of 5,001 digits",
                learn(SETTINGS._replace(peak_rate=-HUGE)),
                "peak_rate",
            ),
            ("beta2 of 5,001 digits", learn(SETTINGS._replace(beta2=HUGE)), "beta2"),
            ("report_every of 5,001 digits", learn(report_every=-HUGE), "report_every"),
            ("params None", learn(params=None), "params is NoneType"),
            ("config None", learn(config=None), "config is NoneType"),
        )
    ],
    *[
        refused(f"mask_tokens: {name}", call, *words)
        for name, call, *words in (
            ("rate 2", mask(rate=2), "rate = 2"),
            ("rate NaN", mask(rate=float("nan")), "rate"),
            ("rate a str", mask(rate="x"), "rate = 'x'"),
            ("rate of 5,001 digits", mask(rate=HUGE), "rate"),
            ("every id special", mask(special_ids=range(10)), "special_ids"),
            ("rng a seed", mask(rng=5), "rng is int"),
            ("ids a list", mask([[1, 2]]), "input_ids", "list"),
        )
    ],
    *[
        refused(f"loss: {name}", lambda a=given: masked_cross_entropy(*a), *words)
        for name, given, *words in (
            ("label V", (LOGITS, np.array([0, 3])), "label 3", "0..2"),
            ("label -1", (LOGITS, np.array([0, -1])), "label -1"),
            ("labels float", (LOGITS, np.zeros(2)), "float64"),
            ("labels of another length", (LOGITS, np.zeros(3, int)), "(3,)", "(2,)"),
            ("labels a list", (LOGITS, [0, 1]), "labels", "list"),
        )
    ],
    *[
        refused(f"sample_batch: {name}", lambda a=given: sample_batch(*a), *words)
        for name, given, *words in (
            ("rng a seed", (0, 2, GRAMMAR), "rng is int"),
            ("size 0", (np.random.default_rng(0), 0, GRAMMAR), "size is 0"),
            (
                "size of 5,001 digits",
                (np.random.default_rng(0), -HUGE, GRAMMAR),
                "size",
            ),
            ("size 1.5", (np.random.default_rng(0), 1.5, GRAMMAR), "size is 1.5"),
        )
    ],
    *[
        refused(f"create_grammar: {name}", lambda o=options: create_grammar(**o), word)
        for name, options, word in (
            ("unknown family", {"mix": {"x": 1}}, "'x'"),
            ("no weight", {"mix": {}}, "mix"),
            ("rate 2", {"single_rate": 2}, "single_rate"),
            ("rate NaN", {"random_rate": float("nan")}, "random_rate"),
        )
    ],
    *[
        refused(f"load_run: {name}", lambda p=path: load_run(p, CONFIG, SETTINGS), word)
        for name, path, word in (
            ("nowhere", "no/such.npz", "such.npz"),
            ("a Python file", __file__, "cannot be read"),
            ("a folder", "/", "cannot be read"),
        )
    ],
    *[
        refused(
            f"clip_by_global_norm: {name}",
            lambda v=value: clip_by_global_norm({"a": np.full(3, v)}, 1.0),
            "norm is",
        )
        for name, value in (("NaN", np.nan), ("infinity", np.inf))
    ],
]
KINDS = {"plotting": PICTURES, "training": TRAINING}
CASES = PICTURES + TRAINING
