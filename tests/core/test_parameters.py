"""The parameter tree: shapes, random values, checks and counts."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from reference import CONFIG, random_params

from bert_np import (
    BertConfig,
    BertError,
    check_params,
    count_params,
    format_ledger,
    init_params,
    parameter_ledger,
    parameter_shapes,
)
from bert_np.tree import leaves, map_leaves

PARAMS = random_params()


def total(shapes):
    return sum(int(np.prod(shape)) for _, shape in leaves(shapes))


def test_the_tree_has_these_shapes():
    linear, norm = {"W": (21, 21), "b": (21,)}, {"gamma": (21,), "beta": (21,)}
    layer = {
        "attention": dict.fromkeys(("query", "key", "value", "output"), linear),
        "attention_norm": norm,
        "ffn": {
            "inner": {"W": (21, 11), "b": (11,)},
            "outer": {"W": (11, 21), "b": (21,)},
        },
        "ffn_norm": norm,
    }
    model = {
        "embeddings": {
            "word": (23, 21),
            "position": (17, 21),
            "segment": (2, 21),
            "norm": norm,
        },
        "layers": [layer, layer],
        "pooler": linear,
    }
    heads = {
        "mlm": {"transform": linear, "norm": norm, "bias": (23,)},
        "nsp": {"W": (21, 2), "b": (2,)},
    }
    assert parameter_shapes(CONFIG) == model
    assert parameter_shapes(CONFIG, heads=True) == model | heads


def test_counts_are_those_of_the_paper():
    base, large = BertConfig.base(), BertConfig.large()
    assert total(parameter_shapes(base)) == 109_482_240
    assert total(parameter_shapes(base, heads=True)) == 110_106_428
    assert total(parameter_shapes(large)) == 335_141_888


@pytest.mark.parametrize("heads", [False, True])
def test_count_params_counts_every_value(heads):
    params = init_params(CONFIG, np.random.default_rng(0), heads=heads)
    assert count_params(params) == total(parameter_shapes(CONFIG, heads))


def test_the_ledger_of_bert_base():
    rows = parameter_ledger(BertConfig())
    counts = {part: count for part, _, count in rows}
    assert counts == {
        "embeddings: word": 23_440_896,
        "embeddings: position": 393_216,
        "embeddings: segment": 1_536,
        "embeddings: norm": 1_536,
        "one layer: attention": 2_362_368,
        "one layer: attention_norm": 1_536,
        "one layer: ffn": 4_722_432,
        "one layer: ffn_norm": 1_536,
        "all 12 layers": 85_054_464,
        "pooler": 590_592,
        "model": 109_482_240,
        "MLM head": 622_650,
        "NSP head": 1_538,
        "model with both heads": 110_106_428,
    }
    assert parameter_ledger(BertConfig(), heads=False) == rows[:-3]


def test_each_formula_of_the_ledger_gives_its_count():
    formulas = {
        how: count
        for _, how, count in parameter_ledger(BertConfig())
        if "model" not in how and "pooler" not in how
    }
    assert len(formulas) >= 8
    for how, count in formulas.items():
        python = how.replace("×", "*").replace(",", "")
        assert eval(python) == count, how


def test_the_ledger_as_a_table():
    table = format_ledger([("pooler", "2×2 + 2", 6), ("model", "", 1234)])
    assert table.splitlines() == [
        "| part | counted as | parameters | of the model |",
        "|---|---|---:|---:|",
        "| pooler | 2×2 + 2 | 6 | 0.5% |",
        "| model |  | 1,234 | 100.0% |",
    ]


def test_leaves_go_in_order_and_map_leaves_keeps_the_form():
    tree = {"a": [{"b": 1}, {"b": 2}], "c": 3}
    paths = [("a.0.b", 1), ("a.1.b", 2), ("c", 3)]
    assert list(leaves(tree)) == paths
    assert map_leaves(lambda path, leaf: (path, leaf), tree) == {
        "a": [{"b": paths[0]}, {"b": paths[1]}],
        "c": paths[2],
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_params_have_the_stated_law(dtype):
    config = BertConfig(
        vocab_size=500, hidden_size=96, num_hidden_layers=1, initializer_range=0.05
    )
    params = init_params(config, np.random.default_rng(0), heads=True, dtype=dtype)
    check_params(params, config)
    for path, array in leaves(params):
        name = path.rsplit(".")[-1]
        assert array.dtype == dtype
        if name in ("b", "beta", "bias"):
            assert not array.any(), path
        elif name == "gamma":
            assert (array == 1).all(), path
        else:
            error = 0.05 / np.sqrt(array.size)
            assert abs(array.mean()) < 5 * error, path
            assert abs(array.std() - 0.05) < 5 * error, path


def test_random_params_follow_the_generator():
    first, second, other = (
        init_params(CONFIG, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    matrix, key = first["pooler"]["W"], first["layers"][0]["attention"]["key"]["W"]
    assert np.array_equal(matrix, second["pooler"]["W"])
    assert not np.array_equal(matrix, other["pooler"]["W"])
    assert not np.array_equal(matrix, key)


@pytest.mark.parametrize("rng", [0, None, np.random, np.random.RandomState(0)])
def test_a_seed_is_no_generator(rng):
    with pytest.raises(BertError, match="^rng is .*numpy.random.Generator"):
        init_params(CONFIG, rng)


def altered(path, function):
    """PARAMS with the leaf or branch at a path replaced, None: left out."""
    params = copy.deepcopy(PARAMS)
    *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    branch = params
    for key in parents:
        branch = branch[key]
    new = function(branch.get(last) if isinstance(branch, dict) else branch[last])
    if new is None:
        del branch[last]
    else:
        branch[last] = new
    return params


ACCEPTED = {
    "both heads": PARAMS,
    "float32": random_params(dtype=np.float32),
    "big-endian": map_leaves(lambda path, a: a.astype(">f8"), PARAMS),
    "no pooler": altered("pooler", lambda _: None),
    "no MLM head": altered("mlm", lambda _: None),
    "no NSP head": altered("nsp", lambda _: None),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_check_accepts(case):
    assert check_params(ACCEPTED[case], CONFIG) is None


REFUSED = {
    "missing part": ("layers", lambda _: None, r"^params: missing \['layers'\]"),
    "missing array": ("pooler.b", lambda _: None, r"^params\.pooler: missing \['b'\]"),
    "unknown part": ("decoder", lambda _: {}, r"unknown \['decoder'\]"),
    "unknown name": (
        "layers.1.attention.query.weight",
        lambda _: 1,
        r"^params\.layers\.1\.attention\.query: .*unknown \['weight'\]",
    ),
    "no dict": ("layers.0.ffn", lambda _: [], r"^params\.layers\.0\.ffn is list"),
    "no list": ("layers", lambda _: {}, r"^params\.layers is dict"),
    "too few layers": (
        "layers",
        lambda layers: layers[:1],
        r"^params\.layers has 1 entries, allowed: 2",
    ),
    "too many layers": (
        "layers",
        lambda layers: layers + layers,
        r"^params\.layers has 4 entries, allowed: 2",
    ),
    "no array": ("pooler.b", np.ndarray.tolist, r"^params\.pooler\.b is list"),
    "transposed": (
        "layers.1.ffn.inner.W",
        np.transpose,
        r"^params\.layers\.1\.ffn\.inner\.W has shape \(11, 21\), "
        r"allowed: \(21, 11\)\. It looks transposed",
    ),
    "wrong shape": (
        "mlm.bias",
        lambda a: a[1:],
        r"^params\.mlm\.bias has shape \(22,\), allowed: \(23,\)$",
    ),
    "float16": (
        "pooler.W",
        lambda a: a.astype(np.float16),
        r"^params\.pooler\.W is float16, allowed: float32 or float64",
    ),
    "integer": ("pooler.W", lambda a: a.astype(int), r"^params\.pooler\.W is int"),
    "two dtypes": (
        "pooler.W",
        lambda a: a.astype(np.float32),
        r"^params: .*pooler\.W is float32.*share one dtype",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_check_refuses(case):
    path, function, message = REFUSED[case]
    with pytest.raises(BertError, match=message):
        check_params(altered(path, function), CONFIG)


def test_check_refuses_what_is_no_dict():
    with pytest.raises(BertError, match="^params is NoneType"):
        check_params(None, CONFIG)


def test_no_memory_for_an_array_is_the_one_error(monkeypatch):
    def no_memory(shape, dtype):
        raise MemoryError

    rng = np.random.default_rng(0)
    monkeypatch.setattr(np, "zeros", no_memory)
    with pytest.raises(BertError, match="vocab_size = 23, hidden_size = 21"):
        init_params(CONFIG, rng)


def test_more_layers_than_a_tree_can_hold_are_refused():
    config = replace(CONFIG, num_hidden_layers=10_001)
    with pytest.raises(BertError, match="num_hidden_layers = 10001, allowed"):
        parameter_shapes(config)
    config = replace(CONFIG, num_hidden_layers=10_000)
    assert len(parameter_shapes(config)["layers"]) == 10_000


def test_sums_beyond_64_bits_are_exact():
    config = replace(CONFIG, intermediate_size=10**18)
    counts = {part: count for part, _, count in parameter_ledger(config)}
    assert counts["one layer: ffn"] == 2 * 21 * 10**18 + 10**18 + 21
