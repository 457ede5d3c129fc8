"""Self-attention: masks, heads, scores and what is mixed."""

from dataclasses import replace

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, random_params

from bert_np import (
    create_attention_mask,
    merge_heads,
    scaled_dot_product,
    self_attention,
    split_heads,
)

PARAMS = random_params()["layers"][0]["attention"]
MASK = create_attention_mask(INPUT_IDS, 0)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 21))
Q, K, V = RNG.standard_normal((3, 2, 3, 5, 7))


def test_the_mask_is_1_where_the_id_is_not_the_pad_id():
    assert MASK.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert MASK.dtype == np.int64
    nines = create_attention_mask(INPUT_IDS, 9)
    assert nines.tolist() == [[1, 0, 1, 1, 1], [1, 1, 0, 1, 1]]
    assert create_attention_mask(INPUT_IDS, None).all()


def test_head_a_holds_the_a_th_slice_of_each_vector():
    heads = split_heads(X, 3)
    for a in range(3):
        assert np.array_equal(heads[:, a], X[:, :, 7 * a : 7 * (a + 1)])
    assert np.shares_memory(heads, X)
    assert np.array_equal(merge_heads(heads), X)


def test_only_visible_keys_get_probability():
    visible = np.array([1, 0, 1, 1, 0], bool)
    context, probs = scaled_dot_product(Q, K, V, visible)
    short, kept = scaled_dot_product(Q, K[:, :, visible], V[:, :, visible])
    assert np.array_equal(probs[..., ~visible], np.zeros((2, 3, 5, 2)))
    np.testing.assert_allclose(probs[..., visible], kept, atol=1e-15)
    np.testing.assert_allclose(context, short, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_scores_leave_a_masked_key_at_0(dtype):
    q, k, v = (array.astype(dtype) for array in (Q * 1e15, K * 1e15, V))
    _, probs = scaled_dot_product(q, k, v, np.array([1, 1, 1, 0, 1], bool))
    assert not probs[..., 3].any()
    np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-6)


def test_dropout_comes_after_the_recorded_and_returned_probabilities():
    config, trace = replace(CONFIG, attention_probs_dropout_prob=0.5), {}
    rng = np.random.default_rng(0)
    output, probs = self_attention(X, PARAMS, MASK, config, trace=trace, rng=rng)
    _, plain = self_attention(X, PARAMS, MASK, config)
    expected = merge_heads(trace["probs"] * trace["dropout_mask"] @ trace["v"])
    assert np.array_equal(probs, plain) and np.array_equal(trace["probs"], plain)
    assert set(np.unique(trace["dropout_mask"])) == {0.0, 2.0}
    np.testing.assert_allclose(trace["context"], expected, atol=1e-14)
    assert np.array_equal(output, trace["output"])
