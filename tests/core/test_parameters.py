"""The parameter tree: shapes, random values, checks and counts."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from oracle import CONFIG, random_params

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
from bert_np.tree import leaves

PARAMS = random_params()


def generator(seed=0):
    return np.random.default_rng(seed)


def total(shapes):
    return sum(int(np.prod(shape)) for _, shape in leaves(shapes))


def test_counts_are_those_of_the_paper():
    base, large = BertConfig.base(), BertConfig.large()
    assert total(parameter_shapes(base)) == 109_482_240
    assert total(parameter_shapes(base, heads=True)) == 110_106_428
    assert total(parameter_shapes(large)) == 335_141_888
    assert count_params(PARAMS) == total(parameter_shapes(CONFIG, heads=True))


def test_the_ledger_of_bert_base_adds_up():
    rows = parameter_ledger(BertConfig())
    for part, how, count in rows:
        if not part.startswith("model"):
            assert eval(how.replace("×", "*").replace(",", "")) == count, part
    counts = {part: count for part, _, count in rows}
    assert counts["all 12 layers"] == 85_054_464 and counts["model"] == 109_482_240
    assert counts["model with both heads"] == 110_106_428
    assert parameter_ledger(BertConfig(), heads=False) == rows[:-3]


def test_the_ledger_as_a_table():
    table = format_ledger([("pooler", "2×2 + 2", 6), ("model", "", 1234)])
    assert table.splitlines() == [
        "| part | counted as | parameters | of the model |",
        "|---|---|---:|---:|",
        "| pooler | 2×2 + 2 | 6 | 0.5% |",
        "| model |  | 1,234 | 100.0% |",
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_params_have_the_stated_law(dtype):
    config = replace(CONFIG, vocab_size=500, hidden_size=96, initializer_range=0.05)
    params = init_params(config, generator(), heads=True, dtype=dtype)
    check_params(params, config)
    for path, array in leaves(params):
        assert array.dtype == dtype
        if array.ndim == 1:
            assert (array == path.endswith("gamma")).all(), path
        else:
            error = 0.05 / np.sqrt(array.size)
            assert abs(array.mean()) < 5 * error, path
            assert abs(array.std() - 0.05) < 5 * error, path


def test_random_params_follow_the_generator():
    first, second, other = (
        init_params(CONFIG, generator(seed))["pooler"]["W"] for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second) and not np.array_equal(first, other)


def altered(path, function):
    """PARAMS with the leaf or branch at a path replaced, None: left out."""
    params = copy.deepcopy(PARAMS)
    *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    branch = params
    for key in parents:
        branch = branch[key]
    branch[last] = function(branch.get(last))
    if branch[last] is None:
        del branch[last]
    return params


@pytest.mark.parametrize(
    "path, change, message",
    [
        ("layers", lambda _: None, r"^params: missing \['layers'\]"),
        ("pooler.b", lambda _: None, r"^params\.pooler: missing \['b'\]"),
        ("decoder", lambda _: {}, r"unknown \['decoder'\]"),
        ("pooler.weight", lambda _: 1, r"^params\.pooler: .*unknown \['weight'\]"),
        ("layers.0.ffn", lambda _: [], r"^params\.layers\.0\.ffn is list"),
        ("layers", lambda _: {}, r"^params\.layers is dict"),
        ("layers", lambda layers: layers[:1], r"layers has 1 entries, allowed: 2"),
        ("layers", lambda layers: layers * 2, r"layers has 4 entries, allowed: 2"),
        ("pooler.W", lambda a: a.view(np.matrix), r"^params\.pooler\.W is matrix, all"),
        ("pooler.b", np.ndarray.tolist, r"^params\.pooler\.b is list"),
        (
            "layers.1.ffn.inner.W",
            np.transpose,
            r"^params\.layers\.1\.ffn\.inner\.W has shape \(11, 21\), "
            r"allowed: \(21, 11\)\. It looks transposed",
        ),
        ("mlm.bias", lambda a: a[1:], r"has shape \(22,\), allowed: \(23,\)$"),
        ("pooler.W", lambda a: a.astype("f2"), r"^params\.pooler\.W is float16, allow"),
        ("pooler.W", lambda a: a.astype(int), r"^params\.pooler\.W is int"),
        (
            "pooler.W",
            lambda a: a.astype("f4"),
            r"pooler\.W is float32.*share one dtype",
        ),
    ],
)
def test_check_names_the_array_that_is_wrong(path, change, message):
    with pytest.raises(BertError, match=message):
        check_params(altered(path, change), CONFIG)


def test_each_head_is_there_if_asked_for_and_has_a_column_for_each_label():
    shapes = parameter_shapes(CONFIG, heads=["span", "token", "sequence"])
    found = {name: shapes[name]["W"] for name in ("sequence", "token", "span")}
    assert found == {"sequence": (21, 4), "token": (21, 4), "span": (21, 2)}
    body = parameter_shapes(CONFIG)
    assert shapes.keys() - body.keys() == found.keys()
    assert total(shapes) - total(body) == 22 * (4 + 4 + 2)
    params = init_params(CONFIG, generator(), heads=("token", "span"))
    check_params(params, CONFIG)
    assert count_params(params) == total(body) + 22 * (4 + 2)
    with pytest.raises(
        BertError, match=r"token.W has shape \(21, 4\), allowed: \(21, 2"
    ):
        check_params(params, replace(CONFIG, labels=("a", "b")))


LAYERS = replace(CONFIG, num_hidden_layers=10_001)
VALUES = replace(CONFIG, intermediate_size=10**18)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: check_params(None, CONFIG), "^params is NoneType"),
        (lambda: count_params({"pooler": [1]}), r"^params: pooler\.0 is int"),
        (lambda: parameter_shapes(CONFIG, 1), "^heads = 1, allowed: True, False or a"),
        (lambda: parameter_shapes(CONFIG, ["qa"]), r"^heads = \['qa'\].*mlm, nsp, seq"),
        (lambda: parameter_shapes({}), "^config is dict, allowed: BertConfig"),
        (lambda: parameter_shapes(LAYERS), "num_hidden_layers = 10001, allowed"),
        (lambda: init_params(CONFIG, 0), "^rng is int.*numpy.random.Generator"),
        (lambda: init_params(CONFIG, np.random), "^rng is module"),
        (lambda: init_params(CONFIG, generator(), dtype="f2"), "^dtype = 'f2'"),
        (lambda: init_params(CONFIG, generator(), dtype=[]), r"^dtype = \[\]"),
        (lambda: init_params(VALUES, generator()), "^config asks for more parameters"),
    ],
)
def test_what_cannot_be_made_or_counted_is_refused(call, message):
    with pytest.raises(BertError, match=message):
        call()


def test_no_memory_for_an_array_is_the_one_error(monkeypatch):
    def no_memory(shape, dtype):
        raise MemoryError

    rng = generator()
    monkeypatch.setattr(np, "zeros", no_memory)
    with pytest.raises(BertError, match="vocab_size = 23, hidden_size = 21"):
        init_params(CONFIG, rng)
