"""record, branch and compare; and a faulty model for every known mistake."""

import copy
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import (
    BertError,
    attention,
    bert,
    compare,
    functional,
    heads,
    masked_lm_logits,
    model,
    next_sentence_logits,
    scaled_dot_product,
)
from bert_np.trace import branch, record
from bert_np.tree import leaves, map_leaves

PARAMS = random_params()
MASK = (INPUT_IDS != 0).astype(int)
INPUTS = {"input_ids": INPUT_IDS, "segment_ids": SEGMENT_IDS}


def run(params=PARAMS, config=CONFIG, mask=MASK):
    trace = {}
    options = {"params": params, "config": config, "attention_mask": mask}
    out = bert(**INPUTS, **options, trace=trace)
    masked_lm_logits(out["last_hidden_state"], params, config, trace=trace)
    next_sentence_logits(out["pooler_output"], params, trace=trace)
    return trace


TRACE = run()
EMBEDDINGS, ATTENTION = TRACE["embeddings"], TRACE["layers"][0]["attention"]


# record and branch


def test_record_stores_copies_and_leaves_out_none():
    x, trace = np.zeros(3), {}
    record(trace, x=x, y=None)
    record(None, x=x)
    x += 1
    assert list(trace) == ["x"] and not trace["x"].any()


def test_branch_makes_a_part_of_the_trace():
    trace = {}
    record(branch(trace, "pooler"), x=np.zeros(3))
    assert list(trace["pooler"]) == ["x"]
    assert branch(trace, "layers", []) is trace["layers"] == []
    assert branch(None, "pooler") is None


def test_a_name_is_recorded_once():
    trace = {"x": np.zeros(3)}
    for again in (lambda: record(trace, x=np.ones(3)), lambda: branch(trace, "x")):
        with pytest.raises(BertError, match=r"^trace\['x'\] is recorded already"):
            again()
    assert not trace["x"].any()


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
    assert found.missing == () and found.hint == ""
    assert str(found) == "all 45 stages agree, largest difference 0.0e+00"


def test_rounding_agrees_and_its_size_is_told():
    found = compare(TRACE, run(random_params(dtype=np.float32)))
    assert found.agree
    assert 0 < found.largest < 1e-4


def test_the_first_stage_in_the_order_of_computation_is_found():
    flat = list(leaves(TRACE))
    for number, (stage, _) in enumerate(flat):
        other = {p: a + (i >= number) for i, (p, a) in enumerate(flat)}
        assert compare(TRACE, other).stage == stage


def test_the_largest_difference_and_its_place_are_found():
    index = (1, 2, 4, 0)
    value = TRACE["layers"][1]["attention"]["q"][index] + 0.5
    found = compare(TRACE, changed("layers.1.attention.q", with_entry(index, value)))
    assert (found.agree, found.stage) == (False, "layers.1.attention.q")
    assert (found.index, found.a, found.b) == (index, value - 0.5, value)
    np.testing.assert_allclose(found.largest, 0.5, rtol=1e-12)
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
    q = ATTENTION["q"]
    found = compare(TRACE, {"layers": [{"attention": {"q": q, "mine": q}}]})
    assert found.agree and found.compared == 1
    assert len(found.missing) == 45
    assert "layers.0.attention.mine" in found.missing
    assert "only in one of the two: embeddings.norm" in str(found)


def test_traces_of_an_empty_batch_agree():
    traces = [{}, {}]
    for trace in traces:
        bert(np.zeros((0, 5), int), PARAMS, CONFIG, trace=trace)
    assert compare(*traces).agree


class Odd:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    "trace, options, message",
    [
        ({"mine": np.zeros(3)}, {}, r"none of the stages.*\['mine'\]"),
        (changed("embeddings.word", lambda a: "text"), {}, "embeddings.word has dtype"),
        (changed("embeddings.word", lambda a: Odd()), {}, "word is not an array"),
        (
            changed("embeddings.word", lambda a: np.ma.masked_less(a, 0)),
            {},
            "trace_b: embeddings.word is a masked array, allowed: a plain array",
        ),
        (TRACE, {"rtol": -1}, "^rtol = -1, allowed: a number >= 0"),
        (TRACE, {"atol": "1"}, "^atol = '1', allowed"),
    ],
)
def test_what_cannot_be_compared_is_refused(trace, options, message):
    with pytest.raises(BertError, match=message):
        compare(TRACE, trace, **options)


MASKED = "layers.0.attention.masked_scores"
NUMBERS = pytest.mark.parametrize("number", [-1e4, -1e9, -1.7e308, -np.inf])


def masked(scores, hidden, number):
    return changed(MASKED, lambda _: np.where(hidden, number, scores))


@NUMBERS
def test_every_number_that_masks_a_score_counts_as_equal(number):
    scores, hidden = ATTENTION["scores"], MASK[:, None, None, :] == 0
    assert compare(TRACE, masked(scores, hidden, number)).agree
    found = compare(TRACE, masked(scores, ~hidden, number))
    assert (found.stage, found.hint) == (MASKED, INVERTED)
    found = compare(TRACE, masked(3 * scores + 1, hidden, number))
    assert (found.stage, found.hint) == (MASKED, "")


# A faulty model for every known mistake


def with_params(*paths, change):
    return {"params": map_leaves(lambda p, a: change(a) if p in paths else a, PARAMS)}


def swapped_query_and_key():
    layer, *rest = PARAMS["layers"]
    part = layer["attention"]
    part = part | {"query": part["key"], "key": part["query"]}
    return {"params": PARAMS | {"layers": [layer | {"attention": part}, *rest]}}


def patch(module, **change):
    return {"patch": (module, *change.popitem())}


def by_reshape(x, num_heads):
    B, T, H = x.shape
    return x.reshape(B, num_heads, T, H // num_heads)


def keys_with_queries(q, k, v, visible, **options):
    return scaled_dot_product(k, q, v, visible, **options)


def merged_by_reshape(x):
    return x.reshape(2, 5, 21)


def over_queries(x):
    return functional.softmax(x, axis=-2)


def transposed_probs(x, *options):
    return x.swapaxes(-1, -2)


def no_norm(x, gamma, beta, eps):
    return x


def sample_norm(x, gamma, beta, eps):
    deviation = np.sqrt(x.var(axis=-1, ddof=1, keepdims=True) + eps)
    return gamma * (x - x.mean(axis=-1, keepdims=True)) / deviation + beta


def from_the_second_call(norm):
    """The right layer norm for the embeddings, then a wrong one."""
    norms = chain([functional.layer_norm], repeat(norm))
    return lambda *args, **kwargs: next(norms)(*args, **kwargs)


SMALL = {  # vectors so small that epsilon shows
    "params": map_leaves(lambda path, a: a if "norm" in path else a * 0.1, PARAMS)
}
EPSILON = {"config": replace(CONFIG, layer_norm_eps=1e-5), "correct": SMALL}
TANH = {"config": replace(CONFIG, hidden_act="gelu_new")}
INVERTED = "the attention mask is inverted: 1 is a real token"
NOT_FINITE = "it holds NaN or infinity: did exp overflow, or a row see no key?"
NORM = "layers.0.attention_norm.output"
FFN = "layers.0.ffn.activated"
MASKS = {"the attention mask is not applied": np.ones((2, 5)), INVERTED: 1 - MASK}
ROOTS = {
    "the scale 1/sqrt(head size) is missing": lambda n: 1.0,
    "scaled by sqrt of the hidden size": lambda n: 21**0.5,
    "divided by the head size": lambda n: n,
}
GELUS = {
    "tanh GELU; this model has the erf form": functional.gelu_tanh,
    "ReLU in place of GELU": functional.relu,
    "the activation is missing": np.asarray,
}
NORMS = {"the layer norm is missing": no_norm, "variance divided by n - 1": sample_norm}
NO_TANH = patch(model, np=SimpleNamespace(tanh=np.asarray))
SWAPPED_NSP = with_params("nsp.W", "nsp.b", change=lambda a: a[..., ::-1])
TRANSPOSED = {
    "layers.0.attention.q": "layers.0.attention.query.W",
    "layers.1.attention.k": "layers.1.attention.key.W",
    "layers.0.attention.output": "layers.0.attention.output.W",
    "pooler.dense": "pooler.W",
    "mlm.transform": "mlm.transform.W",
}
FAULTY = [  # (stage, hint, what makes the model faulty)
    ("q", "query and key are swapped", swapped_query_and_key()),
    *[
        (q, "heads are split by", patch(attention, split_heads=by_reshape))
        for q in "qkv"
    ],
    (
        "scores",
        "rows and columns",
        patch(attention, scaled_dot_product=keys_with_queries),
    ),
    *[
        ("scores", hint, patch(attention, math=SimpleNamespace(sqrt=root)))
        for hint, root in ROOTS.items()
    ],
    *[("masked_scores", hint, {"mask": mask}) for hint, mask in MASKS.items()],
    *[("probs", hint, {"mask": mask}) for hint, mask in MASKS.items()],
    ("probs", "softmax over the queries", patch(attention, softmax=over_queries)),
    ("context", "heads are merged", patch(attention, merge_heads=merged_by_reshape)),
    ("context", "the probabilities are", patch(attention, dropout=transposed_probs)),
    *[(FFN, hint, patch(model, ACTIVATIONS={"gelu": f})) for hint, f in GELUS.items()],
    (
        "mlm.activated",
        "tanh GELU",
        patch(heads, ACTIVATIONS={"gelu": functional.gelu_tanh}),
    ),
    (FFN, "erf GELU; this model has the tanh form", {"correct": TANH}),
    ("nsp.logits", "the two columns are exchanged", SWAPPED_NSP),
    ("pooler.output", "the tanh is missing", NO_TANH),
    *[
        (stage, hint, patch(module, layer_norm=wrong(norm)))
        for stage, module, wrong in (
            ("embeddings.norm", model, lambda norm: norm),
            (NORM, model, from_the_second_call),
            ("mlm.norm", heads, lambda norm: norm),
        )
        for hint, norm in NORMS.items()
    ],
    ("embeddings.norm", "layer norm with epsilon 1e-05", SMALL | EPSILON),
    *[
        (stage, "the matrix is transposed", with_params(path, change=np.transpose))
        for stage, path in TRANSPOSED.items()
    ],
]


def only(stage, trace):
    return {stage: dict(leaves(trace))[stage]}


@pytest.mark.parametrize("stage, hint, fault", FAULTY)
def test_the_mistake_of_a_faulty_model_is_named(monkeypatch, stage, hint, fault):
    stage = stage if "." in stage else f"layers.0.attention.{stage}"
    correct = run(**fault.get("correct", {}))
    if "patch" in fault:
        monkeypatch.setattr(*fault["patch"])
    faulty = run(**{k: v for k, v in fault.items() if k not in ("correct", "patch")})
    found = compare(correct, only(stage, faulty), atol=1e-7, params=PARAMS)
    assert found.stage == stage and found.hint.startswith(hint)
    assert f"\nhint: {hint}" in str(found)


LEAKING = functional.softmax(ATTENTION["scores"]) * MASK[:, None, None]
WORD, SEGMENT, POSITION = (EMBEDDINGS[n] for n in ("word", "segment", "position"))


@pytest.mark.parametrize(
    "stage, hint, mistaken",
    [
        ("embeddings.sum", "the position vectors are missing", WORD + SEGMENT),
        ("embeddings.sum", "the segment vectors are missing", WORD + POSITION),
        ("layers.0.attention.probs", "the mask is applied after the softmax", LEAKING),
        ("layers.0.attention.probs", NOT_FINITE, np.full((2, 3, 5, 5), np.nan)),
        ("layers.0.attention.scores", NOT_FINITE, np.full((2, 3, 5, 5), np.inf)),
    ],
)
def test_the_mistake_in_one_stage_is_named(stage, hint, mistaken):
    found = compare(TRACE, changed(stage, lambda array: mistaken))
    assert found.stage == stage and found.hint.startswith(hint)


def test_a_difference_that_fits_no_mistake_gets_no_hint():
    rng = np.random.default_rng(0)
    for stage, _ in leaves(TRACE):
        noise = changed(stage, lambda a: a + rng.standard_normal(a.shape))
        found = compare(TRACE, noise, params=PARAMS)
        assert (found.stage, found.hint) == (stage, "")


def test_without_the_stage_before_no_transpose_is_claimed():
    faulty = run(**with_params("layers.0.attention.query.W", change=np.transpose))
    correct, faulty = (only("layers.0.attention.q", t) for t in (TRACE, faulty))
    assert compare(correct, faulty, params=PARAMS).hint == ""
