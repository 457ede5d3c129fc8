"""Layers: residual sums, norms after them, and the stack."""

import numpy as np
from reference import CONFIG, random_params

from bert_np import encoder, encoder_layer, feed_forward, self_attention
from bert_np.functional import layer_norm
from bert_np.model import add_and_norm

PARAMS = random_params()["layers"]
X = np.random.default_rng(0).standard_normal((2, 5, 21))
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def test_the_norm_is_taken_of_the_sum():
    update = np.random.default_rng(1).standard_normal(X.shape)
    norm = PARAMS[0]["ffn_norm"]
    y = add_and_norm(X, update, norm, CONFIG)
    np.testing.assert_allclose(y, layer_norm(X + update, **norm, eps=1e-12), atol=1e-14)


def test_a_layer_is_attention_then_feed_forward_each_added_and_normalised():
    params = PARAMS[0]
    y, probs = encoder_layer(X, params, MASK, CONFIG)
    attended, expected_probs = self_attention(X, params["attention"], MASK, CONFIG)
    x = layer_norm(X + attended, **params["attention_norm"], eps=1e-12)
    x = x + feed_forward(x, params["ffn"], CONFIG)
    expected = layer_norm(x, **params["ffn_norm"], eps=1e-12)
    np.testing.assert_allclose(y, expected, atol=1e-13)
    assert np.array_equal(probs, expected_probs)


def test_each_layer_works_on_the_output_of_the_one_before():
    y, probs = encoder(X, PARAMS, MASK, CONFIG)
    first, first_probs = encoder_layer(X, PARAMS[0], MASK, CONFIG)
    second, second_probs = encoder_layer(first, PARAMS[1], MASK, CONFIG)
    assert np.array_equal(y, second)
    assert np.array_equal(probs, [first_probs, second_probs])


def test_without_layers_nothing_changes():
    y, probs = encoder(X, [], MASK, CONFIG)
    assert np.array_equal(y, X) and probs == []


def test_hidden_dropout_falls_on_the_update_and_not_on_the_residual():
    update = np.random.default_rng(1).standard_normal(X.shape)
    trace = {}
    y = add_and_norm(
        X,
        update,
        PARAMS[0]["ffn_norm"],
        CONFIG,
        trace=trace,
        rng=np.random.default_rng(2),
    )
    mask = trace["dropout_mask"]
    assert 0 < np.count_nonzero(mask == 0) < mask.size / 3
    np.testing.assert_allclose(trace["residual"], X + update * mask, atol=1e-15)
    assert np.array_equal(y, trace["output"])


def test_every_dropout_draws_its_own_mask():
    trace = []
    encoder(X, PARAMS, MASK, CONFIG, trace=trace, rng=np.random.default_rng(0))
    masks = [
        layer[part]["dropout_mask"]
        for layer in trace
        for part in ("attention_norm", "ffn_norm")
    ]
    assert len({mask.tobytes() for mask in masks}) == 4
