"""bert and its parts: against the scalar oracle, and each by itself."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import BertConfig, BertError, add_and_norm, bert, embed, pool
from bert_np.functional import layer_norm
from bert_np.parameters import HEADS
from bert_np.tree import leaves

PARAMS = random_params(heads=HEADS)
X, UPDATE = np.random.default_rng(0).standard_normal((2, 2, 5, 21))
MASKS = {
    "padded": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    "pad id that is real": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]],
    "left and holes": [[0, 0, 1, 1, 1], [1, 0, 1, 0, 1]],
    "nothing visible": [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]],
}
MASK = np.array(MASKS["padded"])
CHANGES = [{}, {"layer_norm_eps": 0.1}]
CHANGES += [{"hidden_act": name} for name in ("gelu_new", "relu")]


def generator():
    return np.random.default_rng(0)


# The whole model


def run(params=PARAMS, config=CONFIG, input_ids=INPUT_IDS, **options):
    """bert and its heads; the outputs and the trace."""
    trace = {}
    out = bert(input_ids, params, config, trace=trace, **options)
    hidden, pooled = out["last_hidden_state"], out["pooler_output"]
    out["mlm"] = bert_np.masked_lm_logits(hidden, params, config, trace=trace)
    out["nsp"] = bert_np.next_sentence_logits(pooled, params, trace=trace)
    out["sequence"] = bert_np.sequence_logits(pooled, params, trace=trace)
    out["token"] = bert_np.token_logits(hidden, params, trace=trace)
    out["start"], out["end"] = bert_np.span_logits(hidden, params, trace=trace)
    return out, trace


def assert_equals_oracle(config, mask, given):
    out, trace = run(config=config, segment_ids=SEGMENT_IDS, attention_mask=given)
    expected = oracle.forward(INPUT_IDS, SEGMENT_IDS, mask, PARAMS, config)
    found = dict(leaves(trace))
    assert list(found) == list(expected)
    for stage in expected:
        np.testing.assert_allclose(
            found[stage], expected[stage], rtol=1e-11, atol=1e-12, err_msg=stage
        )
    outputs = {
        "layers.1.output": out["last_hidden_state"],
        "pooler.output": out["pooler_output"],
        "mlm.logits": out["mlm"],
        "nsp.logits": out["nsp"],
        "sequence.logits": out["sequence"],
        "token.logits": out["token"],
        "span.logits": np.stack([out["start"], out["end"]], axis=-1),
        "layers.0.attention.probs": out["attention_probs"][0],
        "layers.1.attention.probs": out["attention_probs"][1],
    }
    for stage, output in outputs.items():
        assert np.array_equal(output, found[stage]), stage


@pytest.mark.parametrize("change", CHANGES)
def test_every_stage_equals_the_scalar_loops(change):
    assert_equals_oracle(replace(CONFIG, **change), MASKS["padded"], None)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_every_stage_equals_the_scalar_loops_under_a_given_mask(mask):
    assert_equals_oracle(CONFIG, mask, mask)


def test_float32_stays_float32_and_close_to_float64():
    exact, _ = run(segment_ids=SEGMENT_IDS)
    single = random_params(dtype=np.float32, heads=HEADS)
    rounded, trace = run(single, segment_ids=SEGMENT_IDS)
    dtypes = {array.dtype for _, array in leaves([trace, rounded])}
    assert dtypes == {np.dtype(np.float32)}
    for (stage, a), (_, b) in zip(leaves(exact), leaves(rounded), strict=True):
        np.testing.assert_allclose(b, a, atol=1e-5, err_msg=stage)


@pytest.mark.slow
def test_bert_base_gives_the_documented_shapes():
    config = BertConfig()
    params = bert_np.init_params(config, generator())
    ids = np.random.default_rng(1).integers(1, config.vocab_size, (2, 8))
    out = bert(ids, params, config)
    assert out["last_hidden_state"].shape == (2, 8, 768)
    assert out["pooler_output"].shape == (2, 768)
    assert [p.shape for p in out["attention_probs"]] == 12 * [(2, 12, 8, 8)]
    assert all(np.isfinite(array).all() for _, array in leaves(out))


def test_the_generator_switches_every_dropout_on_each_with_its_own_mask():
    trace = {}
    bert(INPUT_IDS, PARAMS, CONFIG, trace=trace, rng=generator())
    ending = ".dropout_mask"
    masks = {path: m for path, m in leaves(trace) if path.endswith(ending)}
    parts = ("attention", "attention_norm", "ffn_norm")
    layers = [f"layers.{i}.{part}{ending}" for i in (0, 1) for part in parts]
    assert list(masks) == [f"embeddings{ending}", *layers]
    assert len({mask.tobytes() for mask in masks.values()}) == len(masks)


def test_without_pooler_the_pooled_output_is_none():
    params = {part: PARAMS[part] for part in ("embeddings", "layers")}
    trace = {}
    out = bert(INPUT_IDS, params, CONFIG, trace=trace)
    assert out["pooler_output"] is None
    assert list(trace) == ["embeddings", "layers"]


def test_neither_the_trace_nor_leaving_attention_out_changes_a_result():
    traced, _ = run()
    plain = bert(INPUT_IDS, PARAMS, CONFIG)
    for (stage, a), (_, b) in zip(leaves(plain), leaves(traced)):
        assert np.array_equal(a, b), stage
    out = bert(INPUT_IDS, PARAMS, CONFIG, return_attention=False)
    assert out["attention_probs"] == []
    assert np.array_equal(out["last_hidden_state"], plain["last_hidden_state"])


def test_a_trace_is_filled_once():
    _, trace = run()
    with pytest.raises(BertError, match="'embeddings'.* recorded already"):
        bert(INPUT_IDS, PARAMS, CONFIG, trace=trace)


# Its parts


def test_dropout_of_the_embeddings_comes_after_the_norm():
    trace = {}
    x = embed(
        INPUT_IDS,
        SEGMENT_IDS,
        PARAMS["embeddings"],
        CONFIG,
        trace=trace,
        rng=generator(),
    )
    assert np.array_equal(x, trace["norm"] * trace["dropout_mask"])
    assert np.array_equal(x, trace["output"])


def test_dropout_falls_on_the_update_and_not_on_the_residual():
    trace, norm = {}, PARAMS["layers"][0]["ffn_norm"]
    y = add_and_norm(X, UPDATE, norm, CONFIG, trace=trace, rng=generator())
    residual = X + UPDATE * trace["dropout_mask"]
    assert (trace["dropout_mask"] == 0).any()
    np.testing.assert_allclose(trace["residual"], residual, atol=1e-15)
    np.testing.assert_allclose(y, layer_norm(residual, **norm, eps=1e-12), atol=1e-13)


def test_the_pooled_vector_depends_on_the_first_token_alone():
    others = X.copy()
    others[:, 1:] = np.nan
    found = pool(others, PARAMS["pooler"])
    assert np.array_equal(found, pool(X, PARAMS["pooler"]))
