"""Self-attention: masks, heads, scores and what is mixed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from reference import CONFIG, INPUT_IDS, random_params

from bert_np import (
    create_attention_mask,
    merge_heads,
    scaled_dot_product,
    self_attention,
    split_heads,
)

PARAMS = random_params()["layers"][0]["attention"]
MASK = create_attention_mask(INPUT_IDS, 0)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


X = numbers(2, 5, 21)
Q, K, V = (numbers(2, 3, 5, 7, seed=seed) for seed in (1, 2, 3))


def test_the_mask_is_1_where_the_id_is_not_the_pad_id():
    assert MASK.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert create_attention_mask(INPUT_IDS, 9).tolist() == [
        [1, 0, 1, 1, 1],
        [1, 1, 0, 1, 1],
    ]
    assert MASK.dtype == np.int64


def test_without_a_pad_id_nothing_is_padding():
    assert np.array_equal(create_attention_mask(INPUT_IDS, None), np.ones((2, 5)))


def test_head_a_holds_the_a_th_slice_of_each_vector():
    heads = split_heads(X, 3)
    assert heads.shape == (2, 3, 5, 7)
    for a in range(3):
        assert np.array_equal(heads[:, a], X[:, :, 7 * a : 7 * (a + 1)])
    assert np.shares_memory(heads, X)


def test_merging_undoes_splitting():
    assert np.array_equal(merge_heads(split_heads(X, 3)), X)


def test_a_row_of_probabilities_worked_by_hand():
    q = np.array([[[[2.0, 0.0, 0.0, 0.0]]]])
    k = np.array([[[[math.log(3), 5, 0, 0], [0, 7, 0, 0]]]])  # scores log 3, 0
    v = np.array([[[[4.0, 0, 0, 0], [0, 8.0, 0, 0]]]])
    context, probs = scaled_dot_product(q, k, v)
    np.testing.assert_allclose(probs, [[[[0.75, 0.25]]]], rtol=1e-15)
    np.testing.assert_allclose(context, [[[[3, 2, 0, 0]]]], rtol=1e-15)


def test_only_visible_keys_get_probability():
    visible = np.array([1, 0, 1, 1, 0], bool)
    context, probs = scaled_dot_product(Q, K, V, visible)
    short, kept = scaled_dot_product(Q, K[:, :, visible], V[:, :, visible])
    assert np.array_equal(probs[..., ~visible], np.zeros((2, 3, 5, 2)))
    np.testing.assert_allclose(probs[..., visible], kept, atol=1e-15)
    np.testing.assert_allclose(context, short, atol=1e-14)


def test_a_query_that_sees_no_key_looks_at_all_alike():
    visible = np.ones((5, 5), bool)
    visible[2] = False
    context, probs = scaled_dot_product(Q, K, V, visible)
    assert np.array_equal(probs[:, :, 2], np.full((2, 3, 5), 0.2))
    np.testing.assert_allclose(context[:, :, 2], V.mean(axis=2), atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_scores_leave_a_masked_key_at_0(dtype):
    scale = np.array(1e15, dtype)
    visible = np.array([1, 1, 1, 0, 1], bool)
    _, probs = scaled_dot_product(
        Q.astype(dtype) * scale, K.astype(dtype) * scale, V.astype(dtype), visible
    )
    assert not probs[..., 3].any()
    np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-6)


def test_the_mask_hides_keys_and_not_queries():
    _, probs = self_attention(X, PARAMS, MASK, CONFIG)
    assert not probs[1, :, :, 3:].any()
    assert (probs[1, :, :, :3] > 0).all() and (probs[0] > 0).all()
    np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-14)


def test_each_head_mixes_its_own_values():
    output, probs = self_attention(X, PARAMS, MASK, CONFIG)
    values = X @ PARAMS["value"]["W"] + PARAMS["value"]["b"]
    context = np.concatenate(
        [probs[:, a] @ values[:, :, 7 * a : 7 * (a + 1)] for a in range(3)], axis=-1
    )
    expected = context @ PARAMS["output"]["W"] + PARAMS["output"]["b"]
    np.testing.assert_allclose(output, expected, atol=1e-13)


def test_scores_are_of_the_query_row_with_the_key_column():
    trace = {}
    self_attention(X, PARAMS, MASK, CONFIG, trace=trace)
    query = X @ PARAMS["query"]["W"] + PARAMS["query"]["b"]
    key = X @ PARAMS["key"]["W"] + PARAMS["key"]["b"]
    expected = query[1, 4, 7:14] @ key[1, 2, 7:14] / math.sqrt(7)
    np.testing.assert_allclose(trace["scores"][1, 1, 4, 2], expected, rtol=1e-13)
    assert trace["masked_scores"][1, 1, 4, 3] == np.finfo(np.float64).min


def test_dropout_comes_after_the_recorded_and_returned_probabilities():
    config = replace(CONFIG, attention_probs_dropout_prob=0.5)
    trace = {}
    output, probs = self_attention(
        X, PARAMS, MASK, config, trace=trace, rng=np.random.default_rng(0)
    )
    _, plain = self_attention(X, PARAMS, MASK, config)
    dropped = trace["probs"] * trace["dropout_mask"]
    expected = merge_heads(dropped @ trace["v"])
    assert np.array_equal(probs, plain) and np.array_equal(trace["probs"], plain)
    assert set(np.unique(trace["dropout_mask"])) == {0.0, 2.0}
    np.testing.assert_allclose(trace["context"], expected, atol=1e-14)
    assert np.array_equal(output, trace["output"])
