"""The feed-forward network."""

from dataclasses import replace

import numpy as np
import pytest
from reference import CONFIG, random_params

from bert_np import feed_forward, functional

PARAMS = random_params()["layers"][0]["ffn"]
X = np.random.default_rng(0).standard_normal((2, 5, 21))


@pytest.mark.parametrize(
    "hidden_act, activation",
    [
        ("gelu", functional.gelu),
        ("gelu_new", functional.gelu_tanh),
        ("relu", functional.relu),
    ],
)
def test_two_linear_maps_with_the_activation_between(hidden_act, activation):
    y = feed_forward(X, PARAMS, replace(CONFIG, hidden_act=hidden_act))
    inner, outer = PARAMS["inner"], PARAMS["outer"]
    expected = activation(X @ inner["W"] + inner["b"]) @ outer["W"] + outer["b"]
    np.testing.assert_allclose(y, expected, atol=1e-13)


def test_each_position_is_on_its_own():
    y = feed_forward(X, PARAMS, CONFIG)
    alone = feed_forward(X[1:, 3:4], PARAMS, CONFIG)
    np.testing.assert_allclose(alone[0, 0], y[1, 3], atol=1e-14)
