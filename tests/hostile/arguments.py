"""Calls of public functions with arguments that do not fit.

A case's `given` makes the call; `values`, for a call that is odd but
right, is a function that says whether its result is.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

import bert_np
from bert_np import BertConfig, analysis, tasks
from bert_np.fast import fast_bert, prepare
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.files.pretrained import fetch
from bert_np.parameters import check_params, parameter_shapes
from bert_np.tokenizer import Tokenizer
from bert_np.tree import map_leaves
from hostile.base import TINY, TOKENS, accepted, refused

V, T, P = 10, 5, 7
CONFIG = BertConfig(
    vocab_size=V,
    hidden_size=6,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=8,
    max_position_embeddings=P,
    type_vocab_size=2,
)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(0), heads=True)
BARE = {part: PARAMS[part] for part in ("embeddings", "layers")}
TOKENIZER = Tokenizer.from_tokens(TOKENS)
IDS = np.array([[2, 5, 6, 3, 0], [2, 7, 8, 9, 3]], np.int64)
HUGE = 10**5000  # more digits than Python prints


def with_leaf(path, value):
    return map_leaves(lambda p, a: value if p == path else a, PARAMS)


# -------------------------------------------------------------- the model
def run(ids=IDS, params=PARAMS, config=CONFIG, **options):
    return lambda: bert_np.bert(ids, params, config, **options)


def ragged():
    return [[2, 3], [2, 5, 3]]


class Odd:
    """An object that NumPy asks for an array, and that fails."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no array")


ID_FAULTS = [
    ("id = V", np.where(IDS == 9, V, IDS), "input_ids[1, 3] = 10", "0..9"),
    ("id = -1", np.where(IDS == 9, -1, IDS), "input_ids[1, 3] = -1", "0..9"),
    (
        "id = 2^63 as uint64",
        IDS.astype(np.uint64) + np.uint64(2**63),
        "input_ids[0, 0] = 92233720368547758",
    ),
    ("id = 2^32 + 2", IDS + 2**32, "input_ids[0, 0] = 4294967298"),
    ("id = -2^63", IDS + np.iinfo(np.int64).min, "input_ids[0, 0]"),
    ("an int beyond 64 bits", [[2, 2**70]], "input_ids", "integers"),
    ("floats", IDS.astype(float), "float64", "integers"),
    ("NaN", np.full((1, 2), np.nan), "float64", "integers"),
    ("bools", IDS > 3, "bool", "integers"),
    ("a bool in a list", [[2, True, 3]], "input_ids", "bool"),
    ("complex", IDS + 0j, "complex128", "integers"),
    ("strings", [["2", "3"]], "<U1", "integers"),
    ("bytes in a list", [[b"2"]], "S1", "integers"),
    ("objects", IDS.astype(object), "object", "integers"),
    ("dates", IDS.astype("datetime64[s]"), "datetime64", "integers"),
    ("records", np.zeros((1, 2), [("a", int)]), "input_ids", "integers"),
    ("None", None, "input_ids is NoneType"),
    ("a text", "the cat", "input_ids is str"),
    ("a number", 5, "input_ids is int"),
    ("a dict", {}, "input_ids is dict"),
    ("a generator", iter([[2]]), "input_ids is list_iterator"),
    ("an object that fails", Odd(), "input_ids is Odd"),
    ("an object that fails, in a list", [[Odd()]], "input_ids", "integers"),
    ("shape (T,)", IDS[0], "(B, T)", "(5,)"),
    ("a flat list", [2, 5, 3], "(B, T)", "(3,)"),
    ("no axis", np.array(3), "(B, T)", "()"),
    ("shape (1, B, T)", IDS[None], "(B, T)", "(1, 2, 5)"),
    ("shape (B, 0)", np.zeros((2, 0), int), "empty sequence", "(2, 0)"),
    ("[[]]", [[]], "empty sequence"),
    ("[]", [], "(B, T)", "(0,)"),
    ("ragged rows", ragged(), "[2, 3]", "pad first"),
    ("a masked array", np.ma.masked_equal(IDS, 0), "input_ids is a masked array"),
    ("a row that is a number", [[2, 5], 3], "input_ids"),
    ("T > P", np.full((1, 8), 2), "8 positions", "at most 7"),
    ("T = 10^6", np.full((1, 10**6), 2), "1000000 positions", "at most 7"),
]
SEGMENT_FAULTS = [
    ("segment 2", np.full((2, 5), 2), "segment_ids[0, 0] = 2", "0..1"),
    ("segment -1", np.full((2, 5), -1), "segment_ids[0, 0] = -1", "0..1"),
    ("segments float", np.zeros((2, 5)), "segment_ids has dtype float64"),
    ("segments bool", np.zeros((2, 5), bool), "segment_ids has dtype bool"),
    ("segments (T,)", np.zeros(5, int), "segment_ids: expected (B, T), got (5,)"),
    (
        "segments (1, T)",
        np.zeros((1, 5), int),
        "segment_ids has shape (1, 5)",
        "(2, 5)",
    ),
    ("segments a str", "00001", "segment_ids is str"),
    ("segments a number", 0, "segment_ids is int"),
]
BIG = np.where(IDS == 0, -10000.0, 0.0)
MASK_FAULTS = [
    ("mask additive", BIG, "attention_mask[0, 4] = -10000.0", "looks additive"),
    ("mask of infinity", np.where(IDS == 0, -np.inf, 0), "-inf", "looks additive"),
    ("mask NaN", np.full((2, 5), np.nan), "attention_mask[0, 0] = nan", "0 or 1"),
    ("mask 0.5", np.full((2, 5), 0.5), "= 0.5", "0 or 1"),
    ("mask 2", np.full((2, 5), 2), "= 2", "0 or 1"),
    ("mask (T,)", np.ones(5), "(5,)", "(2, 5)"),
    ("mask (1, T)", np.ones((1, 5)), "(1, 5)", "(2, 5)"),
    ("mask (B, 1, T)", np.ones((2, 1, 5)), "(2, 1, 5)", "(2, 5)"),
    ("mask (B, 1, 1, T)", np.ones((2, 1, 1, 5)), "(2, 1, 1, 5)"),
    ("mask (T, T)", np.ones((5, 5)), "(5, 5)", "(2, 5)"),
    ("mask of strings", np.full((2, 5), "1"), "attention_mask has dtype <U1"),
    ("mask complex", np.ones((2, 5)) + 0j, "complex128"),
    ("mask of objects", np.ones((2, 5), object), "attention_mask has dtype object"),
    ("mask ragged", [[1, 1], [1]], "attention_mask", "[2, 1]"),
    ("mask a masked array", np.ma.masked_equal(IDS != 0, 0), "masked array"),
    ("mask a str", "11111", "attention_mask is str"),
]
TREE_FAULTS = [
    ("params None", None, "params is NoneType"),
    ("params a list", [], "params is list"),
    ("params empty", {}, "layers"),
    ("params without embeddings", {"layers": PARAMS["layers"]}, "embeddings"),
    ("params with a part more", PARAMS | {"extra": {}}, "extra"),
    ("params with a long name", PARAMS | {"x" * 9999: 1}, "params"),
    (
        "params with a key of 5,001 digits",
        PARAMS | {HUGE: 1},
        "missing nothing, unknown",
    ),
    ("layers a dict", PARAMS | {"layers": {}}, "params.layers is dict"),
    ("layers a tuple", PARAMS | {"layers": tuple(PARAMS["layers"])}, "layers is tuple"),
    ("one layer of two", PARAMS | {"layers": PARAMS["layers"][:1]}, "1 entries", "2"),
    (
        "a layer None",
        PARAMS | {"layers": [None, PARAMS["layers"][1]]},
        "params.layers.0 is NoneType",
    ),
    (
        "embeddings an array",
        PARAMS | {"embeddings": np.zeros(3)},
        "params.embeddings is",
    ),
    *[
        (
            f"word table {kind}",
            with_leaf("embeddings.word", array),
            "params.embeddings.word",
            word,
        )
        for kind, array, word in (
            ("float16", PARAMS["embeddings"]["word"].astype(np.float16), "float16"),
            ("int", PARAMS["embeddings"]["word"].astype(np.int64), "int64"),
            ("transposed", PARAMS["embeddings"]["word"].T, "(6, 10)"),
            ("a list", [[0.0]], "list"),
            ("None", None, "NoneType"),
            ("a row short", PARAMS["embeddings"]["word"][:-1], "(9, 6)"),
            ("complex", PARAMS["embeddings"]["word"] + 0j, "complex"),
        )
    ],
    (
        "float64 among float32",
        with_leaf("layers.1.ffn.outer.b", np.zeros(6)),
        "layers.1.ffn.outer.b is float64",
        "one",
    ),
    (
        "W transposed",
        with_leaf("layers.0.ffn.inner.W", np.zeros((8, 6), np.float32)),
        "params.layers.0.ffn.inner.W",
        "looks transposed",
    ),
]
OPTION_FAULTS = [
    ("config None", run(config=None), "config is NoneType"),
    ("config a dict", run(config={}), "config is dict"),
    ("config of another size", run(config=BertConfig()), "params.layers", "12"),
    (
        "config with 10^12 layers",
        run(config=replace(CONFIG, num_hidden_layers=10**12)),
        "params.layers has 2 entries",
        "1000000000000",
    ),
    ("trace a list", run(trace=[]), "trace is list"),
    (
        "trace used before",
        run(trace={"embeddings": {"word": 0}}),
        "embeddings",
        "new dict",
    ),
    ("rng a seed", run(rng=0), "rng is int", "Generator"),
    ("rng of old", run(rng=np.random.RandomState(0)), "rng is RandomState"),
    ("rng the module", run(rng=np.random), "rng is module"),
    ("return_attention a str", run(return_attention="no"), "return_attention = 'no'"),
    ("return_attention 0", run(return_attention=0), "return_attention = 0"),
]


def even(result):
    return all(np.isfinite(a).all() for a in result["attention_probs"])


LISTS = {
    "tuples": tuple(map(tuple, IDS.tolist())),
    "int8": IDS.astype(np.int8),
    "uint64": IDS.astype(np.uint64),
    "big-endian": IDS.astype(">i4"),
    "not contiguous": np.repeat(IDS, 2, axis=1)[:, ::2],
    "a list of arrays": list(IDS),
    "a subclass": IDS.view(np.rec.recarray),
}


def as_usual(result):
    plain = bert_np.bert(IDS, PARAMS, CONFIG)["last_hidden_state"]
    return np.array_equal(result["last_hidden_state"], plain)


MODEL = [
    *[refused(f"bert: {name}", run(ids), *words) for name, ids, *words in ID_FAULTS],
    *[
        refused(f"bert: {name}", run(segment_ids=ids), *words)
        for name, ids, *words in SEGMENT_FAULTS
    ],
    *[
        refused(f"bert: {name}", run(attention_mask=mask), *words)
        for name, mask, *words in MASK_FAULTS
    ],
    *[
        refused(f"bert: {name}", run(params=params), *words)
        for name, params, *words in TREE_FAULTS
    ],
    *[refused(f"bert: {name}", call, *words) for name, call, *words in OPTION_FAULTS],
    *[accepted(f"bert: ids {name}", run(ids), as_usual) for name, ids in LISTS.items()],
    accepted(
        "bert: no rows",
        run(np.zeros((0, 5), int)),
        lambda out: out["last_hidden_state"].shape == (0, 5, 6),
    ),
    accepted(
        "bert: T = P",
        run(np.full((1, 7), 2)),
        lambda out: out["last_hidden_state"].shape == (1, 7, 6),
    ),
    accepted(
        "bert: a row of padding alone",
        run(np.zeros((1, 3), int)),
        lambda out: all(
            np.allclose(a, 1 / 3, rtol=0, atol=1e-7) for a in out["attention_probs"]
        ),
    ),
    accepted("bert: mask of floats", run(attention_mask=(IDS != 0) * 1.0), as_usual),
    accepted("bert: mask bool", run(attention_mask=IDS != 0), as_usual),
    accepted("bert: mask a list", run(attention_mask=(IDS != 0).tolist()), as_usual),
]
PREPARED = prepare(PARAMS, CONFIG)
FAST = [
    *[
        refused(
            f"fast_bert: {name}",
            lambda ids=ids: fast_bert(ids, PREPARED, CONFIG),
            *words,
        )
        for name, ids, *words in ID_FAULTS
    ],
    *[
        refused(
            f"fast_bert: {name}",
            lambda mask=mask: fast_bert(IDS, PREPARED, CONFIG, attention_mask=mask),
            *words,
        )
        for name, mask, *words in MASK_FAULTS
    ],
    *[
        refused(
            f"prepare: {name}", lambda params=params: prepare(params, CONFIG), *words
        )
        for name, params, *words in TREE_FAULTS
    ],
]


# ------------------------------------------------- config and parameters
def make(**values):
    return lambda: BertConfig(**values)


def init(config=CONFIG, rng=None, **options):
    rng = np.random.default_rng(0) if rng is None else rng
    return lambda: bert_np.init_params(config, rng, **options)


SMALL = dict(hidden_size=6, num_attention_heads=3)
PARAMETERS = [
    *[
        refused(f"BertConfig: {name}", make(**values), *words)
        for name, values, *words in (
            ("heads that do not divide", {"num_attention_heads": 7}, "7", "768"),
            ("hidden_size 0", {"hidden_size": 0}, "hidden_size = 0", "an int >= 1"),
            (
                "hidden_size np.int64",
                {"hidden_size": np.int64(768)},
                "hidden_size",
                "int",
            ),
            (
                "vocab_size of 5,001 digits, negative",
                {"vocab_size": -HUGE},
                "vocab_size",
            ),
            (
                "heads of 5,001 digits",
                {"num_attention_heads": HUGE},
                "num_attention_heads",
            ),
            ("pad_token_id of 5,001 digits", {"pad_token_id": HUGE}, "pad_token_id"),
            ("eps of 5,001 digits", {"layer_norm_eps": HUGE}, "layer_norm_eps"),
            (
                "dropout of 5,001 digits",
                {"hidden_dropout_prob": HUGE},
                "hidden_dropout_prob",
            ),
            ("eps NaN", {"layer_norm_eps": float("nan")}, "layer_norm_eps = nan"),
            ("hidden_act a function", {"hidden_act": len}, "hidden_act", "gelu"),
        )
    ],
    refused("from_dict: None", lambda: BertConfig.from_dict(None), "config = None"),
    refused("from_dict: a list", lambda: BertConfig.from_dict([]), "config = []"),
    refused(
        "from_dict: keys that are no str",
        lambda: BertConfig.from_dict({1: 2}),
        "no model_type",
    ),
    *[
        refused(
            f"from_json: {path!r:.30}",
            lambda path=path: BertConfig.from_json(path),
            *words,
        )
        for path, *words in (
            (None, "path", "NoneType"),
            (5, "path", "int"),
            (b"config.json", "path", "bytes"),
            ("", "cannot be read"),
            ("a\0b", "cannot be read"),
            ("/", "cannot be read"),
            ("no/such/config.json", "config.json", "cannot be read"),
            ("x" * 5000, "cannot be read"),
            ("\ud800", "cannot be read"),
        )
    ],
    *[
        refused(f"init_params: {name}", call, *words)
        for name, call, *words in (
            (
                "config None",
                lambda: bert_np.init_params(None, np.random.default_rng(0)),
                "config is NoneType",
            ),
            ("rng a seed", init(rng=0), "rng is int"),
            ("dtype float16", init(dtype=np.float16), "dtype", "float32"),
            ("dtype a str", init(dtype="half"), "dtype", "'half'"),
            ("dtype int", init(dtype=int), "dtype", "float32"),
            ("dtype None", init(dtype=None), "dtype = None"),
            ("dtype an array", init(dtype=np.zeros(2)), "dtype", "float32"),
            (
                "10^12 layers",
                init(replace(CONFIG, num_hidden_layers=10**12)),
                "num_hidden_layers",
            ),
            (
                "a vocabulary of 10^15",
                init(replace(CONFIG, vocab_size=10**15)),
                "vocab_size",
            ),
            (
                "sizes of 10^30",
                init(BertConfig(hidden_size=10**30, num_attention_heads=1)),
                "hidden_size",
            ),
            (
                "sizes of 5,001 digits",
                init(BertConfig(hidden_size=HUGE, num_attention_heads=1)),
                "hidden_size",
            ),
        )
    ],
    *[
        refused(f"{f.__name__}: {name}", lambda f=f, config=config: f(config), *words)
        for f in (parameter_shapes, bert_np.parameter_ledger)
        for name, config, *words in (
            ("config None", None, "config is NoneType"),
            ("config a dict", {}, "config is"),
            (
                "10^12 layers",
                replace(CONFIG, num_hidden_layers=10**12),
                "num_hidden_layers",
            ),
        )
    ],
    accepted(
        "parameter_ledger: sizes of 10^15",
        lambda: bert_np.parameter_ledger(
            BertConfig(hidden_size=10**15, num_attention_heads=1)
        ),
        lambda rows: exact_ledger(rows),
    ),
    *[
        refused(
            f"check_params: {name}", lambda p=params: check_params(p, CONFIG), *words
        )
        for name, params, *words in TREE_FAULTS
    ],
    *[
        refused(
            f"count_params: {name}", lambda p=params: bert_np.count_params(p), "params"
        )
        for name, params in (
            ("None", None),
            ("a leaf None", {"a": None}),
            ("a number", 5),
            ("a leaf a list of str", {"a": ["x"]}),
        )
    ],
    *[
        refused(f"masked_lm_logits: {name}", call, *words)
        for name, call, *words in (
            (
                "no head",
                lambda: bert_np.masked_lm_logits(np.zeros((1, 2, 6)), BARE, CONFIG),
                "MLM",
                "embeddings, layers",
            ),
            (
                "hidden None",
                lambda: bert_np.masked_lm_logits(None, PARAMS, CONFIG),
                "last_hidden_state",
                "NoneType",
            ),
            (
                "hidden of another size",
                lambda: bert_np.masked_lm_logits(np.zeros((1, 2, 7)), PARAMS, CONFIG),
                "last_hidden_state",
                "(1, 2, 7)",
            ),
            (
                "hidden of ints",
                lambda: bert_np.masked_lm_logits(
                    np.zeros((1, 2, 6), np.int64), PARAMS, CONFIG
                ),
                "last_hidden_state",
                "int64",
            ),
            (
                "params None",
                lambda: bert_np.masked_lm_logits(np.zeros((1, 2, 6)), None, CONFIG),
                "params",
            ),
            (
                "config None",
                lambda: bert_np.masked_lm_logits(np.zeros((1, 2, 6)), PARAMS, None),
                "config",
            ),
        )
    ],
    *[
        refused(f"next_sentence_logits: {name}", call, *words)
        for name, call, *words in (
            (
                "no head",
                lambda: bert_np.next_sentence_logits(np.zeros((1, 6)), BARE),
                "NSP",
            ),
            ("no pooler", lambda: bert_np.next_sentence_logits(None, PARAMS), "pooler"),
            (
                "a list",
                lambda: bert_np.next_sentence_logits([[1.0] * 6], PARAMS),
                "pooler_output",
                "list",
            ),
            (
                "another size",
                lambda: bert_np.next_sentence_logits(np.zeros((1, 5)), PARAMS),
                "pooler_output",
                "(1, 5)",
            ),
        )
    ],
]


# ------------------------------------------------------ files and names
def exact_ledger(rows):
    """Whether sizes beyond 64 bits are counted exactly."""
    counts = {part: count for part, _, count in rows}
    return counts["embeddings: word"] == 30522 * 10**15


def save(**changes):
    given = {"folder": Path("/no/such/place"), "params": PARAMS, "config": CONFIG}
    return lambda: save_pretrained(**given | changes)


FILES = [
    *[
        refused(f"load_checkpoint: {name}", lambda f=folder: load_checkpoint(f), *words)
        for name, folder, *words in (
            ("None", None, "folder is NoneType"),
            ("bytes", b"x", "folder is bytes"),
            ("a list", ["x"], "folder is list"),
            ("nowhere", "no/such", "does not exist"),
            ("a file", __file__, "is a file"),
            ("''", "", "does not exist"),
            ("NUL", "a\0b", "does not exist"),
            ("a surrogate", "\ud800", "does not exist"),
            ("5,000 letters", "x" * 5000, "does not exist"),
        )
    ],
    refused(
        "load_checkpoint: allow_nonfinite 1",
        lambda: load_checkpoint(TINY, allow_nonfinite=1),
        "allow_nonfinite = 1",
    ),
    refused(
        "load_checkpoint: allow_nonfinite of 5,001 digits",
        lambda: load_checkpoint(TINY, allow_nonfinite=HUGE),
        "allow_nonfinite",
    ),
    refused(
        "load_checkpoint: report a list",
        lambda: load_checkpoint(TINY, report=[]),
        "report is list",
    ),
    *[
        refused(
            f"load_pretrained: {name!r:.30}",
            lambda n=name: bert_np.load_pretrained(n),
            "name_or_folder",
        )
        for name in (
            None,
            5,
            b"toy",
            ["toy"],
            "",
            "a/b/c",
            "../no-such-model",
            "no-such-model/",
            "C:\\toy",
            "a\0b",
            "\ud800",
            "-toy",
            "x" * 5000,
            "https://huggingface.co/toy",
            "file:///etc",
            "git@github.com:a/b",
            "a b",
            "toy\n",
            Path("toy"),
            "$(true)",
            "a/b.git",
            "a--b",
        )
    ],
    *[
        refused(f"fetch: to {to!r:.20}", lambda to=to: fetch("toy", to), "to ")
        for to in (5, b"x", "a\0b", "\ud800", TINY, __file__)
    ],
    *[
        refused(f"save_pretrained: {name}", save(**changes), *words)
        for name, changes, *words in (
            ("folder None", {"folder": None}, "folder is NoneType"),
            (
                "folder in a file",
                {"folder": Path(__file__) / "x"},
                "folder",
                "cannot be",
            ),
            ("folder with NUL", {"folder": "a\0b"}, "cannot be made"),
            ("params None", {"params": None}, "params is NoneType"),
            ("config None", {"config": None}, "config is NoneType"),
            ("tokenizer a path", {"tokenizer": "vocab.txt"}, "tokenizer is str"),
        )
    ],
]


# ----------------------------------------------------------------- text
def encode(*texts, **options):
    return lambda: TOKENIZER.encode(*texts, **options)


def batch(*texts, **options):
    return lambda: TOKENIZER.encode_batch(*texts, **options)


TEXT = [
    *[
        refused(f"encode: {name}", call, *words)
        for name, call, *words in (
            ("None", encode(None), "text", "NoneType"),
            ("bytes", encode(b"a"), "bytes"),
            ("a list", encode(["a"]), "list"),
            ("a number", encode(5), "int"),
            ("np.bytes_", encode(np.bytes_(b"a")), "bytes_"),
            ("a lone surrogate", encode("ab\ud800"), "text[2]", "U+D800"),
            ("a pair that is a number", encode("a", 5), "pair", "int"),
            ("a surrogate in the pair", encode("a", "\udfff"), "pair[0]", "U+DFFF"),
            ("max_length 1", encode("a", max_length=1), "max_length = 1", "2"),
            (
                "max_length 2 for a pair",
                encode("a", "a", max_length=2),
                "max_length = 2",
            ),
            ("max_length -1", encode("a", max_length=-1), "max_length = -1"),
            ("max_length a float", encode("a", max_length=5.0), "max_length", "float"),
            ("max_length a str", encode("a", max_length="5"), "max_length", "str"),
            ("max_length True", encode("a", max_length=True), "max_length", "bool"),
            ("max_length -(10^5000)", encode("a", max_length=-HUGE), "max_length"),
            ("truncation True", encode("a", truncation=True), "truncation = True"),
            (
                "truncation unknown",
                encode("a", truncation="last"),
                "'last'",
                "only_first",
            ),
            ("truncation of 5,001 digits", encode("a", truncation=HUGE), "truncation"),
            (
                "only_second without one",
                encode("a a a a", max_length=4, truncation="only_second"),
                "only_second",
            ),
            (
                "only_first that is too short",
                encode("a", "a a a a", max_length=5, truncation="only_first"),
                "only_first",
            ),
            ("allow_special 1", encode("a", allow_special=1), "allow_special = 1"),
        )
    ],
    *[
        refused(f"encode_batch: {name}", call, *words)
        for name, call, *words in (
            ("a text", batch("a"), "texts", "str"),
            ("nothing", batch([]), "length 0"),
            ("None", batch(None), "texts", "NoneType"),
            ("a number in the list", batch(["a", 5]), "texts[1]", "int"),
            ("a tuple of three", batch([("a", "b", "c")]), "texts[0]", "tuple"),
            ("a pair with None first", batch([(None, "a")]), "texts[0]", "NoneType"),
            ("a generator", batch(t for t in "ab"), "texts", "generator"),
            ("pad_to below the row", batch(["a a a"], pad_to=3), "pad_to = 3", "5"),
            ("pad_to 10^12", batch(["a"], pad_to=10**12), "pad_to = 1000000000000"),
            ("pad_to a float", batch(["a"], pad_to=5.0), "pad_to", "float"),
        )
    ],
    *[
        refused(f"decode: {name}", lambda ids=ids: TOKENIZER.decode(ids), *words)
        for name, ids, *words in (
            ("id = V", [V], "ids[0] = 10", "0..9"),
            ("id = -1", [-1], "ids[0] = -1"),
            ("floats", [1.0], "ids", "float64"),
            ("a text", "ab", "ids"),
            ("None", None, "ids"),
            ("two axes", [[1]], "ids", "(1, 1)"),
            ("ragged", [[1], [1, 2]], "ids"),
            ("beyond 64 bits", [2**70], "ids"),
            ("a bool", [True], "ids", "bool"),
            ("objects", [None], "ids", "object"),
        )
    ],
    *[
        refused(
            f"Tokenizer: {name}",
            lambda given=given: Tokenizer.from_tokens(*given),
            *words,
        )
        for name, given, *words in (
            ("tokens a str", ("[PAD]",), "tokens", "str"),
            ("None", (None,), "NoneType"),
            ("an entry 5", ([*TOKENS, 5],), "entry 11", "int"),
            ("an entry twice", ([*TOKENS, "a"],), "'a'", "6", "11"),
            ("no special tokens", (["a"],), "[PAD]"),
            ("lowercase 'no'", (TOKENS, "no"), "lowercase = 'no'"),
            ("lowercase of 5,001 digits", (TOKENS, HUGE), "lowercase"),
        )
    ],
    *[
        refused(
            f"from_vocab: {name}", lambda path=path: Tokenizer.from_vocab(path), *words
        )
        for name, path, *words in (
            ("None", None, "path", "NoneType"),
            ("a number", 5, "path", "int"),
            ("nowhere", "no/such", "no/such", "cannot be read"),
            ("a folder", str(TINY), "cannot be read"),
            ("NUL", "a\0b", "cannot be read"),
        )
    ],
    *[
        refused(f"fill_mask: {name}", call, *words)
        for name, call, *words in (
            (
                "no [MASK]",
                lambda: tasks.fill_mask("a", PARAMS, CONFIG, TOKENIZER),
                "[MASK]",
            ),
            (
                "a text of 10^6 letters",
                lambda: tasks.fill_mask("a" * 10**6, PARAMS, CONFIG, TOKENIZER),
                "[MASK]",
            ),
            (
                "no tokenizer",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, None),
                "tokenizer is None",
            ),
            (
                "tokenizer a str",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, "x"),
                "tokenizer is str",
            ),
            (
                "no head",
                lambda: tasks.fill_mask("[MASK]", BARE, CONFIG, TOKENIZER),
                "MLM",
            ),
            (
                "top_k 0",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, TOKENIZER, 0),
                "top_k = 0",
            ),
            (
                "top_k 11",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, TOKENIZER, 11),
                "top_k = 11",
                "10",
            ),
            (
                "top_k 5.0",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, TOKENIZER, 5.0),
                "top_k = 5.0",
            ),
            (
                "top_k of 5,001 digits",
                lambda: tasks.fill_mask("[MASK]", PARAMS, CONFIG, TOKENIZER, HUGE),
                "top_k",
            ),
            (
                "more tokens than positions",
                lambda: tasks.fill_mask(
                    "[MASK] a a a a a a", PARAMS, CONFIG, TOKENIZER
                ),
                "9 positions",
                "7",
            ),
            (
                "params None",
                lambda: tasks.fill_mask("[MASK]", None, CONFIG, TOKENIZER),
                "params is NoneType",
            ),
            (
                "the words of another model",
                lambda: tasks.fill_mask(
                    "b [MASK]", PARAMS, CONFIG, Tokenizer.from_tokens([*TOKENS, "b"])
                ),
                "input_ids[0, 1] = 10",
            ),
        )
    ],
    *[
        refused(f"next_sentence: {name}", call, *words)
        for name, call, *words in (
            (
                "b None",
                lambda: tasks.next_sentence("a", None, PARAMS, CONFIG, TOKENIZER),
                "b",
                "NoneType",
            ),
            (
                "b empty",
                lambda: tasks.next_sentence("a", "", PARAMS, CONFIG, TOKENIZER),
                "b",
                "empty",
            ),
            (
                "a a number",
                lambda: tasks.next_sentence(5, "a", PARAMS, CONFIG, TOKENIZER),
                "int",
            ),
            (
                "no pooler",
                lambda: tasks.next_sentence("a", "a", BARE, CONFIG, TOKENIZER),
                "NSP",
            ),
            (
                "no tokenizer",
                lambda: tasks.next_sentence("a", "a", PARAMS, CONFIG, None),
                "tokenizer is None",
            ),
        )
    ],
    *[
        refused(f"embed_sentences: {name}", call, *words)
        for name, call, *words in (
            (
                "a text",
                lambda: tasks.embed_sentences("a", PARAMS, CONFIG, TOKENIZER),
                "texts is str",
            ),
            (
                "a number in the list",
                lambda: tasks.embed_sentences(["a", 5], PARAMS, CONFIG, TOKENIZER),
                "int",
            ),
            (
                "batch_size 0",
                lambda: tasks.embed_sentences(
                    ["a"], PARAMS, CONFIG, TOKENIZER, batch_size=0
                ),
                "batch_size = 0",
            ),
            (
                "batch_size of 5,001 digits, negative",
                lambda: tasks.embed_sentences(
                    ["a"], PARAMS, CONFIG, TOKENIZER, batch_size=-HUGE
                ),
                "batch_size",
            ),
            (
                "too long",
                lambda: tasks.embed_sentences(
                    ["a a a a a a"], PARAMS, CONFIG, TOKENIZER
                ),
                "8 positions",
                "7",
            ),
            (
                "no tokenizer",
                lambda: tasks.embed_sentences(["a"], PARAMS, CONFIG, None),
                "tokenizer is None",
            ),
        )
    ],
    accepted(
        "embed_sentences: no text",
        lambda: tasks.embed_sentences([], PARAMS, CONFIG, TOKENIZER),
        lambda out: out.shape == (0, 6),
    ),
    accepted(
        "encode: max_length of 5,001 digits",
        encode("a", max_length=HUGE),
        lambda out: out.tokens == ["[CLS]", "a", "[SEP]"],
    ),
]

# ------------------------------------------------------------- analysis
TRACE = {}
bert_np.bert(IDS, PARAMS, CONFIG, trace=TRACE)
MAPS = np.array([layer["attention"]["probs"] for layer in TRACE["layers"]])  # L B A T T
NAMES = ["[CLS]", "a", "the", "[SEP]", "[PAD]"]
PROB_FAULTS = [
    ("None", None, "probs"),
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
ANALYSIS = [
    *[
        refused(
            f"{function.__name__}: {name}",
            lambda f=function, p=probs: f(p),
            "probs",
            word,
        )
        for function in (analysis.attention_entropy, analysis.attention_distance)
        for name, probs, word in PROB_FAULTS
    ],
    *[
        refused(
            f"attention_masses: {name}",
            lambda t=tokens: analysis.attention_masses(MAPS[0, 0], t),
            "tokens",
            word,
        )
        for name, tokens, word in (
            ("None", None, "NoneType"),
            ("a text", "abcde", "str"),
            ("too few", NAMES[:4], "4"),
            ("a number", [*NAMES[:4], 5], "int"),
            ("empty", [], "0"),
            ("two lists", [NAMES, NAMES], "2"),
        )
    ],
    *[
        refused(
            f"attention_entropy: mask {name}",
            lambda m=mask: analysis.attention_entropy(MAPS[0, 0], m),
            "attention_mask",
            word,
        )
        for name, mask, word in (
            ("(4,)", np.ones(4), "(4,)"),
            ("of 2", np.full(5, 2), "2"),
            ("NaN", np.full(5, np.nan), "nan"),
            ("a text", "11111", "attention_mask"),
        )
    ],
    *[
        refused(
            f"rollout: {name}",
            lambda m=maps, r=residual: analysis.rollout(m, residual=r),
            word,
        )
        for name, maps, residual, word in (
            ("one map", np.eye(5), 0.5, "(5, 5)"),
            ("residual 2", MAPS, 2, "residual = 2"),
            ("residual NaN", MAPS, float("nan"), "residual = nan"),
            ("residual a str", MAPS, "half", "residual"),
            ("residual of 5,001 digits", MAPS, HUGE, "residual"),
            ("residual None", MAPS, None, "residual = None"),
        )
    ],
    *[
        refused(f"logit_lens: {name}", call, *words)
        for name, call, *words in (
            ("empty trace", lambda: analysis.logit_lens({}, PARAMS, CONFIG), "trace"),
            ("trace None", lambda: analysis.logit_lens(None, PARAMS, CONFIG), "trace"),
            ("no head", lambda: analysis.logit_lens(TRACE, BARE, CONFIG), "MLM"),
            (
                "position T",
                lambda: analysis.logit_lens(TRACE, PARAMS, CONFIG, [5]),
                "positions = 5",
                "0..4",
            ),
            (
                "position of 5,001 digits",
                lambda: analysis.logit_lens(TRACE, PARAMS, CONFIG, HUGE),
                "positions",
            ),
            (
                "position a number",
                lambda: analysis.logit_lens(TRACE, PARAMS, CONFIG, 2),
                "positions = 2",
            ),
        )
    ],
    *[
        refused(f"top_words: {name}", call, *words)
        for name, call, *words in (
            (
                "no tokenizer",
                lambda: analysis.top_words(np.zeros((1, 10)), None),
                "tokenizer",
            ),
            (
                "top_k 0",
                lambda: analysis.top_words(np.zeros((1, 10)), TOKENIZER, 0),
                "top_k = 0",
            ),
            ("logits None", lambda: analysis.top_words(None, TOKENIZER), "logits"),
            (
                "logits of fewer words",
                lambda: analysis.top_words(np.zeros((1, 3)), TOKENIZER),
                "logits",
                "3",
            ),
        )
    ],
    *[
        refused(
            f"without_head: {name}",
            lambda a=given: analysis.without_head(PARAMS, CONFIG, *a),
            *words,
        )
        for name, given, *words in (
            ("layer 2", (2, 0), "layer = 2", "0..1"),
            ("head 3", (0, 3), "head = 3", "0..2"),
            ("layer -1", (-1, 0), "layer = -1"),
            ("head a str", (0, "a"), "head", "str"),
            ("layer True", (True, 0), "layer", "bool"),
        )
    ],
    refused(
        "without_head: params None",
        lambda: analysis.without_head(None, CONFIG, 0, 0),
        "params",
    ),
    refused(
        "without_layer: layer 2",
        lambda: analysis.without_layer(PARAMS, CONFIG, 2),
        "layer = 2",
        "0..1",
    ),
    *[
        refused(
            f"ablation_effects: {name}",
            lambda o=options: analysis.ablation_effects(IDS, PARAMS, CONFIG, **o),
            *words,
        )
        for name, options, *words in (
            ("positions (T,)", {"positions": np.ones(5)}, "positions", "(5,)"),
            (
                "positions without a 1",
                {"positions": np.zeros((2, 5))},
                "positions",
                "no 1",
            ),
            (
                "mask without a 1",
                {"attention_mask": np.zeros((2, 5))},
                "attention_mask",
            ),
        )
    ],
    refused(
        "summarise_heads: no tokenizer",
        lambda: analysis.summarise_heads(["a"], PARAMS, CONFIG, None),
        "tokenizer is None",
    ),
    refused(
        "summarise_heads: a text",
        lambda: analysis.summarise_heads("a", PARAMS, CONFIG, TOKENIZER),
        "texts",
        "str",
    ),
    refused(
        "summarise_heads: batch_size 0",
        lambda: analysis.summarise_heads(
            ["a"], PARAMS, CONFIG, TOKENIZER, batch_size=0
        ),
        "batch_size = 0",
    ),
    *[
        refused(
            f"weighted_norms: {name}",
            lambda g=given: analysis.weighted_norms(*g),
            *words,
        )
        for name, given, *words in (
            ("empty trace", ({}, PARAMS), "trace"),
            ("trace None", (None, PARAMS), "trace"),
            ("params None", (TRACE, None), "params"),
        )
    ],
    *[
        refused(f"compare: {name}", lambda g=given: bert_np.compare(*g), *words)
        for name, given, *words in (
            ("nothing in common", ({"a": 1}, {"b": 1}), "trace_b"),
            ("empty", ({}, {}), "trace_b"),
            ("trace_a None", (None, TRACE), "trace_a"),
            ("trace_b 5", (TRACE, 5), "trace_b"),
            ("a stage a str", ({"a": "x"}, {"a": "x"}), "a has dtype"),
            ("a stage that fails", ({"a": Odd()}, {"a": 1}), "a is not an array"),
            ("rtol a str", (TRACE, TRACE, "x"), "rtol"),
            ("rtol NaN", (TRACE, TRACE, float("nan")), "rtol = nan"),
            ("atol below 0", (TRACE, TRACE, 0.0, -1.0), "atol = -1.0"),
            ("rtol of 5,001 digits", (TRACE, TRACE, -HUGE), "rtol"),
        )
    ],
]
KINDS = {
    "bert": MODEL,
    "fast_bert": FAST,
    "config, parameters, heads": PARAMETERS,
    "files and names": FILES,
    "tokenizer and tasks": TEXT,
    "analysis": ANALYSIS,
}
