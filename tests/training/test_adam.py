"""The learning rate, clipping, and Adam."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import random_params

from bert_np import BertError
from bert_np.training.adam import (
    adam,
    clip_by_global_norm,
    global_norm,
    init_adam,
    learning_rate,
)
from bert_np.tree import leaves, map_leaves

GOLDEN = Path(__file__).parents[1] / "golden" / "training.npz"


def test_schedule():
    rates = [learning_rate(step, 8.0, 4, 12) for step in range(12)]
    assert rates == [2, 4, 6, 8, 8, 7, 6, 5, 4, 3, 2, 1]
    assert learning_rate(0, 1.0, 0, 2) == 1  # without warm-up
    assert learning_rate(3, 1.0, 4, 4) == 1  # nothing but warm-up
    held = [learning_rate(step, 6.0, 2, 8, 3) for step in range(8)]
    assert held == [3, 6, 6, 6, 6, 6, 4, 2]
    assert learning_rate(3, 1.0, 1, 4, 3) == 1  # never falls


def test_clipping():
    grads = {"a": np.array([3.0]), "b": [np.array([[0.0, 4.0]])]}
    assert global_norm(grads) == 5
    clipped, norm = clip_by_global_norm(grads, 1.0)
    assert norm == 5 and grads["a"] == 3
    assert clipped["a"] == pytest.approx(0.6)
    assert clipped["b"][0][0, 1] == pytest.approx(0.8)
    same, norm = clip_by_global_norm(grads, 5.0)
    assert same is grads and norm == 5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_refused(value):
    with pytest.raises(BertError, match=f"norm is {value}"):
        clip_by_global_norm({"a": np.array([1.0, value])}, 1.0)


def adam_of_one_number(p, grads, rate, beta1, beta2, eps, decay):
    """Kingma & Ba, algorithm 1, with decoupled decay, in Python floats."""
    m = v = 0.0
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        step = (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
        p = p - rate * (step + decay * p)
    return p


@given(
    numbers=st.lists(st.floats(-10, 10), min_size=2, max_size=6),
    beta1=st.floats(0, 0.99),
    beta2=st.floats(0, 0.999),
    eps=st.floats(1e-8, 1),
    decay=st.floats(0, 1),
)
def test_adam_is_its_equations(numbers, beta1, beta2, eps, decay):
    p, *grads = numbers
    params = {"W": np.array([[p]]), "gamma": np.array([p])}
    state = init_adam(params)
    options = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": decay}
    for g in grads:
        for _, array in [*leaves(params), *leaves([state["m"], state["v"]])]:
            array.flags.writeable = False
        gradient = {"W": np.array([[g]]), "gamma": np.array([g])}
        params, state = adam(params, gradient, state, 0.1, **options)
    for name, rate in (("W", decay), ("gamma", 0)):
        expected = adam_of_one_number(p, grads, 0.1, beta1, beta2, eps, rate)
        assert params[name].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_decay_spares_norms_and_biases():
    params = random_params()
    zero = map_leaves(lambda _, p: np.zeros_like(p), params)
    moved, _ = adam(params, zero, init_adam(params), 0.1, weight_decay=0.5)
    for (path, p), (_, q) in zip(leaves(params), leaves(moved)):
        assert np.array_equal(p, q) == (p.ndim == 1), path


@pytest.mark.parametrize(
    "change, message",
    [
        ({"grads": {"W": np.ones(2)}}, r"grads: W is \(2,\), allowed: \(3,\)"),
        ({"grads": {}}, r"grads: W is missing, allowed: \(3,\)"),
        ({"params": {"W": np.arange(3)}}, "params: W is int64, allowed: an array of"),
    ],
)
def test_what_adam_cannot_take(change, message):
    params = {"W": np.ones(3)}
    right = {"params": params, "grads": params, "state": init_adam(params), "rate": 1}
    with pytest.raises(BertError, match=message):
        adam(**right | change)


def test_a_number_of_numpy_keeps_float32():
    params, number = {"W": np.ones(3, np.float32)}, np.float64(0.5)
    grads, _ = clip_by_global_norm(params, number)
    moved, _ = adam(params, grads, init_adam(params), number, weight_decay=number)
    assert grads["W"].dtype == moved["W"].dtype == np.float32


def assert_adam(golden, dtype, tolerance):
    """Each update of W and b is the stored one of PyTorch's AdamW."""
    from tools.make_training_golden import ADAM, DECAY, RATES, UPDATES

    params = {name: golden[f"adam.start.{name}"].astype(dtype) for name in "Wb"}
    beta1, beta2 = ADAM["betas"]
    state, options = init_adam(params), {"eps": ADAM["eps"], "weight_decay": DECAY}
    for i in range(UPDATES):
        grads = {name: golden[f"adam.grads.{name}"][i].astype(dtype) for name in "Wb"}
        rate = RATES[i * 2 // UPDATES]
        params, state = adam(
            params, grads, state, rate, beta1=beta1, beta2=beta2, **options
        )
        for name, array in params.items():
            expected = golden[f"adam.results.{name}"][i]
            assert array.dtype == dtype
            np.testing.assert_allclose(array, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_adam_gives_what_is_stored_from_torch(dtype, tolerance):
    with np.load(GOLDEN) as golden:
        assert_adam(golden, dtype, tolerance)


@pytest.mark.references
def test_adam_gives_what_torch_gives():
    from tools.make_training_golden import torch_adam

    assert_adam(torch_adam(), np.float64, 1e-14)
