"""record, branch and compare; and a faulty model for every known mistake."""

import copy
import math
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import (
    BertError,
    attention,
    bert,
    compare,
    embeddings,
    functional,
    heads,
    masked_lm_logits,
    next_sentence_logits,
    pooler,
    scaled_dot_product,
)
from bert_np.comparison import MISTAKES
from bert_np.trace import branch, record
from bert_np.tree import leaves, map_leaves

PARAMS = random_params()
MASK = (INPUT_IDS != 0).astype(int)
encoder = import_module("bert_np.encoder")
feed_forward = import_module("bert_np.feed_forward")


def run(params=PARAMS, config=CONFIG, mask=MASK):
    trace = {}
    out = bert(
        INPUT_IDS,
        params,
        config,
        segment_ids=SEGMENT_IDS,
        attention_mask=mask,
        trace=trace,
    )
    masked_lm_logits(out["last_hidden_state"], params, config, trace=trace)
    next_sentence_logits(out["pooler_output"], params, trace=trace)
    return trace


TRACE = run()


# record and branch


def test_record_stores_copies():
    x = np.zeros(3)
    trace = {}
    record(trace, x=x)
    x += 1
    assert np.array_equal(trace["x"], np.zeros(3))


def test_record_leaves_out_none_and_needs_no_trace():
    trace = {}
    record(trace, x=None)
    record(None, x=np.zeros(3))
    assert trace == {}


def test_a_name_is_recorded_once():
    trace = {}
    record(trace, x=np.zeros(3))
    with pytest.raises(BertError, match=r"^trace\['x'\] is recorded already"):
        record(trace, x=np.ones(3))
    assert not trace["x"].any()


def test_branch_makes_a_part_of_the_trace():
    trace = {}
    record(branch(trace, "pooler"), x=np.zeros(3))
    assert list(trace["pooler"]) == ["x"]
    assert branch(trace, "layers", []) is trace["layers"] == []
    assert branch(None, "pooler") is None
    with pytest.raises(BertError, match=r"^trace\['pooler'\] is recorded already"):
        branch(trace, "pooler")


def test_the_trace_mirrors_the_parameters():
    assert list(TRACE) == list(PARAMS)
    assert len(TRACE["layers"]) == len(PARAMS["layers"])
    for part in ("attention", "attention_norm", "ffn", "ffn_norm"):
        assert part in TRACE["layers"][0] and part in PARAMS["layers"][0]


# compare


def changed(stage, function):
    """A copy of the correct trace with one stage replaced."""
    return map_leaves(
        lambda path, array: function(array) if path == stage else array, TRACE
    )


def with_entry(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


def test_equal_traces_agree():
    found = compare(TRACE, copy.deepcopy(TRACE))
    assert found.agree and found.stage is None and found.largest == 0
    assert found.compared == len(list(leaves(TRACE))) == 45
    assert found.missing == () and found.hint == ""
    assert str(found) == "all 45 stages agree, largest difference 0.0e+00"


def test_rounding_agrees_and_its_size_is_told():
    found = compare(TRACE, run(random_params(dtype=np.float32)))
    assert found.agree
    assert 0 < found.largest < 1e-4


def test_the_first_stage_in_the_order_of_computation_is_found():
    stages = [path for path, _ in leaves(TRACE)]
    for stage in stages:
        later = stages[stages.index(stage) :]
        other = map_leaves(lambda path, a: a + 1 if path in later else a, TRACE)
        assert compare(TRACE, other).stage == stage


def test_the_largest_difference_and_its_place_are_found():
    index = (1, 2, 4, 0)
    value = TRACE["layers"][1]["attention"]["q"][index] + 0.5
    other = changed("layers.1.attention.q", with_entry(index, value))
    found = compare(TRACE, other)
    assert (found.agree, found.stage) == (False, "layers.1.attention.q")
    assert found.index == index
    np.testing.assert_allclose(found.largest, 0.5, rtol=1e-12)
    assert (found.a, found.b) == (value - 0.5, value)
    text = f"first difference at layers.1.attention.q{list(index)}: "
    assert str(found).startswith(text) and "5.0e-01 apart" in str(found)


def test_the_tolerances_are_absolute_and_relative():
    other = changed("pooler.dense", lambda a: a * (1 + 1e-3))
    assert not compare(TRACE, other).agree
    assert compare(TRACE, other, rtol=2e-3).agree
    other = changed("pooler.dense", lambda a: a + 1e-3)
    assert not compare(TRACE, other).agree
    assert compare(TRACE, other, atol=2e-3).agree


def test_a_shape_that_differs_is_told():
    found = compare(TRACE, changed("embeddings.sum", lambda a: a[:, :4]))
    assert found.stage == "embeddings.sum"
    assert found.hint == "shape (2, 4, 21), expected (2, 5, 21)"


def test_any_subset_can_be_compared():
    q = TRACE["layers"][0]["attention"]["q"]
    found = compare(TRACE, {"layers": [{"attention": {"q": q, "mine": q}}]})
    assert found.agree and found.compared == 1
    assert len(found.missing) == 45
    assert "layers.0.attention.mine" in found.missing
    assert "only in one of the two: embeddings.norm" in str(found)


def test_traces_without_a_common_stage_are_refused():
    with pytest.raises(BertError, match=r"none of the stages.*\['mine'\]"):
        compare(TRACE, {"mine": np.zeros(3)})


@pytest.mark.parametrize("mask_number", [-np.inf, -1e9, -1e4, np.finfo(np.float32).min])
def test_every_way_to_write_a_masked_score_counts_as_equal(mask_number):
    def rewrite(path, array):
        if not path.endswith("masked_scores"):
            return array
        return np.where(array < -1e30, mask_number, array)

    assert compare(TRACE, map_leaves(rewrite, TRACE)).agree


def test_a_missing_mask_does_not_count_as_equal():
    other = changed(
        "layers.0.attention.masked_scores", lambda a: np.where(a < -1e30, 0.0, a)
    )
    assert compare(TRACE, other).stage == "layers.0.attention.masked_scores"


# A faulty model for every known mistake: (first stage that differs, hint,
# what makes the model faulty).


def changed_params(*paths, change):
    return map_leaves(lambda path, a: change(a) if path in paths else a, PARAMS)


def swapped_query_and_key():
    layer = PARAMS["layers"][0]
    part = layer["attention"]
    part = part | {"query": part["key"], "key": part["query"]}
    return PARAMS | {"layers": [layer | {"attention": part}, PARAMS["layers"][1]]}


def sqrt(function):
    return (attention, "math", SimpleNamespace(sqrt=function))


def split_by_reshape(x, num_heads):
    B, T, H = x.shape
    return x.reshape(B, num_heads, T, H // num_heads)


def keys_with_queries(q, k, v, visible, **options):
    return scaled_dot_product(k, q, v, visible, **options)


def norm_with_sample_variance(x, gamma, beta, eps):
    deviation = np.sqrt(x.var(axis=-1, ddof=1, keepdims=True) + eps)
    return gamma * (x - x.mean(axis=-1, keepdims=True)) / deviation + beta


def no_norm(x, gamma, beta, eps):
    return x


TANH = replace(CONFIG, hidden_act="gelu_new")
SMALL = map_leaves(  # vectors so small that epsilon shows
    lambda path, a: a if "norm" in path else a * 0.1, PARAMS
)
RESHAPE = "heads are split by reshape alone: transpose to (B, A, T, D) after it"
TRANSPOSED = "the matrix is transposed: x @ W with W as (in, out)"
NO_MASK = "the attention mask is not applied"
INVERTED = "the attention mask is inverted: 1 is a real token"
MASKED = "layers.0.attention.masked_scores"
SAMPLE = "variance divided by n - 1: layer norm divides by n"
NOT_FINITE = "it holds NaN or infinity: did exp overflow, or a row see no key?"

ACTIVATED = ((feed_forward, "layers.0.ffn.activated"), (heads, "mlm.activated"))

FAULTY = [
    (
        "layers.0.attention.q",
        "query and key are swapped",
        {"params": swapped_query_and_key()},
    ),
    *[
        (
            f"layers.0.attention.{name}",
            RESHAPE,
            {"patch": (attention, "split_heads", split_by_reshape), "only": True},
        )
        for name in "qkv"
    ],
    (
        "layers.0.attention.scores",
        "the scale 1/sqrt(head size) is missing",
        {"patch": sqrt(lambda n: 1.0)},
    ),
    (
        "layers.0.attention.scores",
        "scaled by sqrt of the hidden size: use the head size",
        {"patch": sqrt(lambda n: math.sqrt(21))},
    ),
    (
        "layers.0.attention.scores",
        "divided by the head size: use its square root",
        {"patch": sqrt(lambda n: n)},
    ),
    (
        "layers.0.attention.scores",
        "rows and columns are exchanged: queries are the rows",
        {"patch": (attention, "scaled_dot_product", keys_with_queries)},
    ),
    *[
        (f"layers.0.attention.{stage}", hint, {"mask": mask, "only": True})
        for stage in ("masked_scores", "probs")
        for hint, mask in ((NO_MASK, np.ones((2, 5))), (INVERTED, 1 - MASK))
    ],
    (
        "layers.0.attention.probs",
        "softmax over the queries: normalise over the keys, the last axis",
        {
            "patch": (
                attention,
                "softmax",
                lambda x, out: functional.softmax(x, axis=-2),
            )
        },
    ),
    (
        "layers.0.attention.context",
        "heads are merged by reshape alone: transpose to (B, T, A, D) before it",
        {"patch": (attention, "merge_heads", lambda x: x.reshape(2, 5, 21))},
    ),
    (
        "layers.0.attention.context",
        "the probabilities are transposed: rows are queries",
        {"patch": (attention, "dropout", lambda x, mask: x.swapaxes(-1, -2))},
    ),
    *[
        (stage, hint, {"patch": (module, "functional", SimpleNamespace(gelu=gelu))})
        for module, stage in ACTIVATED
        for hint, gelu in (
            ("tanh GELU; this model has the erf form", functional.gelu_tanh),
            ("ReLU in the place of GELU", functional.relu),
            ("the activation is missing", lambda x, out=None: x),
        )
    ],
    *[
        (
            stage,
            "erf GELU; this model has the tanh form",
            {
                "patch": (
                    module,
                    "functional",
                    SimpleNamespace(gelu_tanh=functional.gelu),
                ),
                "config": TANH,
                "correct": {"config": TANH},
            },
        )
        for module, stage in ACTIVATED
    ],
    (
        "nsp.logits",
        "the two columns are exchanged: 0 is 'is next'",
        {"params": changed_params("nsp.W", "nsp.b", change=lambda a: a[..., ::-1])},
    ),
    (
        "pooler.output",
        "the tanh is missing",
        {"patch": (pooler, "np", SimpleNamespace(tanh=lambda x: x))},
    ),
    *[
        (stage, hint, {"patch": (module, "layer_norm", norm)})
        for module, stage in (
            (embeddings, "embeddings.norm"),
            (encoder, "layers.0.attention_norm.output"),
            (heads, "mlm.norm"),
        )
        for hint, norm in (
            ("the layer norm is missing", no_norm),
            (SAMPLE, norm_with_sample_variance),
        )
    ],
    *[
        (
            "embeddings.norm",
            f"layer norm with epsilon {eps:g}",
            {
                "params": SMALL,
                "config": replace(CONFIG, layer_norm_eps=eps),
                "correct": {"params": SMALL},
            },
        )
        for eps in (1e-3, 1e-5, 1e-6)
    ],
    *[
        (
            f"layers.0.{stage}",
            TRANSPOSED,
            {"params": changed_params(f"layers.0.{matrix}.W", change=np.transpose)},
        )
        for matrix, stage in (
            ("attention.query", "attention.q"),
            ("attention.key", "attention.k"),
            ("attention.value", "attention.v"),
            ("attention.output", "attention.output"),
        )
    ],
    (
        "layers.1.attention.k",
        TRANSPOSED,
        {"params": changed_params("layers.1.attention.key.W", change=np.transpose)},
    ),
    (
        "pooler.dense",
        TRANSPOSED,
        {"params": changed_params("pooler.W", change=np.transpose)},
    ),
    (
        "mlm.transform",
        TRANSPOSED,
        {"params": changed_params("mlm.transform.W", change=np.transpose)},
    ),
]


def only(stage, trace):
    """A trace that holds nothing but this stage of layer 0."""
    tree = dict(leaves(trace))[stage]
    for name in reversed(stage.split(".")):
        tree = [tree] if name == "0" else {name: tree}
    return tree


@pytest.mark.parametrize("stage, hint, fault", FAULTY)
def test_the_mistake_is_found_and_named(monkeypatch, stage, hint, fault):
    options = {k: v for k, v in fault.items() if k not in ("correct", "patch", "only")}
    correct = run(**fault.get("correct", {}))
    if "patch" in fault:
        monkeypatch.setattr(*fault["patch"])
    faulty = run(**options)
    if "only" in fault:
        faulty = only(stage, faulty)
    found = compare(correct, faulty, atol=1e-7, params=PARAMS)
    assert (found.stage, found.hint) == (stage, hint)


EMBEDDINGS, ATTENTION = TRACE["embeddings"], TRACE["layers"][0]["attention"]
ONE_STAGE = {
    "the position vectors are missing": (
        "embeddings.sum",
        EMBEDDINGS["word"] + EMBEDDINGS["segment"],
    ),
    "the segment vectors are missing": (
        "embeddings.sum",
        EMBEDDINGS["word"] + EMBEDDINGS["position"],
    ),
    "the mask is applied after the softmax: the rows no longer sum to 1": (
        "layers.0.attention.probs",
        functional.softmax(ATTENTION["scores"]) * MASK[:, None, None],
    ),
    NOT_FINITE: ("layers.0.attention.probs", np.full((2, 3, 5, 5), np.nan)),
}


@pytest.mark.parametrize("hint", ONE_STAGE)
def test_the_mistake_in_one_stage_is_named(hint):
    stage, mistaken = ONE_STAGE[hint]
    found = compare(TRACE, changed(stage, lambda array: mistaken))
    assert (found.stage, found.hint) == (stage, hint)


@pytest.mark.parametrize("values", ["text", None, np.array([None]), np.array([1j])])
def test_a_stage_that_is_no_array_of_numbers_is_refused(values):
    with pytest.raises(BertError, match="trace_b: embeddings.word "):
        compare(TRACE, changed("embeddings.word", lambda a: values))


def test_a_difference_that_fits_no_mistake_gets_no_hint():
    rng = np.random.default_rng(0)
    for stage, _ in leaves(TRACE):
        noise = changed(stage, lambda a: a + rng.standard_normal(a.shape))
        found = compare(TRACE, noise, params=PARAMS)
        assert (found.stage, found.hint) == (stage, "")


def test_every_known_mistake_has_a_faulty_model():
    shown = {hint for _, hint, _ in FAULTY} | ONE_STAGE.keys()
    known = {hint for mistakes in MISTAKES.values() for hint in mistakes}
    assert known <= shown and len(known) >= 20


@pytest.mark.parametrize("mask_number", [-1e4, -1e9, -np.inf])
def test_a_mistaken_mask_is_named_whatever_number_masks(mask_number):
    scores = TRACE["layers"][0]["attention"]["scores"]
    inverted = np.where(MASK[:, None, None, :] == 1, mask_number, scores)
    found = compare(TRACE, changed(MASKED, lambda array: inverted))
    assert (found.stage, found.hint) == (MASKED, INVERTED)


@pytest.mark.parametrize("mask_number", [-1e4, np.finfo(np.float64).min, -np.inf])
def test_a_masked_number_does_not_hide_what_else_differs(mask_number):
    scores = TRACE["layers"][0]["attention"]["scores"]
    wrong = np.where(MASK[:, None, None, :] == 1, 3 * scores + 1, mask_number)
    found = compare(TRACE, changed(MASKED, lambda array: wrong))
    assert (found.stage, found.hint) == (MASKED, "")


def test_infinity_fits_no_mistake_but_is_told():
    stage = "layers.0.attention.scores"
    found = compare(TRACE, changed(stage, with_entry((0, 0, 0, 0), np.inf)))
    assert (found.stage, found.hint) == (stage, NOT_FINITE)


def test_the_hint_does_not_depend_on_the_order_of_keys():
    params = PARAMS | {"pooler": dict(reversed(PARAMS["pooler"].items()))}
    faulty = run(changed_params("pooler.W", change=np.transpose))
    assert compare(TRACE, faulty, params=params).hint == TRANSPOSED


def test_without_the_stage_before_no_transpose_is_claimed():
    faulty = run(changed_params("layers.0.attention.query.W", change=np.transpose))
    correct, faulty = (only("layers.0.attention.q", t) for t in (TRACE, faulty))
    assert compare(correct, faulty, params=PARAMS).hint == ""


def test_the_hint_is_printed():
    other = changed("pooler.output", lambda array: TRACE["pooler"]["dense"])
    assert str(compare(TRACE, other)).endswith("\nhint: the tanh is missing")


def test_traces_of_an_empty_batch_agree():
    traces = [{}, {}]
    for trace in traces:
        bert(np.zeros((0, 5), int), PARAMS, CONFIG, trace=trace)
    assert compare(*traces).agree
