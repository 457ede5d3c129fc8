"""The mathematics on bare arrays."""

import math

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_np import functional

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
GELUS = pytest.mark.parametrize("gelu", [functional.gelu, functional.gelu_tanh])


def numbers(*shape, dtype=np.float64, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    array.flags.writeable = False
    return array


CALLS = {
    "linear": lambda x: functional.linear(
        x, np.ones((7, 4), x.dtype), np.ones(4, x.dtype)
    ),
    "layer_norm": lambda x: functional.layer_norm(x, *np.ones((2, 7), x.dtype), 1e-12),
    "softmax": functional.softmax,
    "erf": functional.erf,
    "gelu": functional.gelu,
    "gelu_tanh": functional.gelu_tanh,
    "relu": functional.relu,
    "dropout": lambda x: functional.dropout(x, 0.5, np.random.default_rng(0)),
}


@DTYPES
@pytest.mark.parametrize("name", CALLS)
def test_dtype_is_kept_and_neither_strides_nor_read_only_input_matter(name, dtype):
    x = numbers(2, 5, 14, dtype=dtype)[:, :, ::2].transpose(1, 0, 2)
    y = CALLS[name](x)
    assert y.dtype == dtype
    assert np.array_equal(y, CALLS[name](np.ascontiguousarray(x)))
    assert CALLS[name](x[:0]).shape[0] == 0


def test_epsilon_is_inside_the_root():
    x = np.array([-1e-6, 1e-6])  # variance 1e-12, as large as epsilon
    y = functional.layer_norm(x, np.ones(2), np.zeros(2), 1e-12)
    np.testing.assert_allclose(y, [-math.sqrt(0.5), math.sqrt(0.5)], rtol=1e-12)


@given(
    st.integers(1, 1024),
    st.floats(-1e6, 1e6),
    st.sampled_from([np.float32, np.float64]),
)
def test_a_constant_vector_becomes_exactly_beta(width, value, dtype):
    beta = numbers(width, dtype=dtype)
    x = np.full((2, width), value, dtype)
    y = functional.layer_norm(x, numbers(width, dtype=dtype, seed=1), beta, 1e-12)
    assert np.array_equal(y, [beta, beta])


def test_softmax_along_each_axis_equals_the_loops():
    x = numbers(5, 7)
    rows = [oracle.softmax(row, [True] * 7) for row in x]
    columns = [oracle.softmax(column, [True] * 5) for column in x.T]
    np.testing.assert_allclose(functional.softmax(x), rows, atol=1e-15)
    np.testing.assert_allclose(functional.softmax(x, axis=0).T, columns, atol=1e-15)


@DTYPES
def test_softmax_neither_overflows_nor_loses_a_small_score(dtype):
    x = np.array([[1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype)
    y = functional.softmax(x)
    np.testing.assert_allclose(y, [[0.5, 0.5, 0], [1 / 3] * 3], rtol=1e-6)
    lowest = np.full((1, 4), np.finfo(dtype).min)
    assert np.array_equal(functional.softmax(lowest), [[0.25] * 4])


def test_erf_in_float64_is_pythons():
    x = np.linspace(-7, 7, 2001)
    assert np.array_equal(functional.erf(x), [math.erf(value) for value in x])


@DTYPES
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "erf"])
def test_a_large_array_passes_in_blocks(monkeypatch, name, dtype):
    x = numbers(5, 7, dtype=dtype)
    whole = getattr(functional, name)(x)
    for size in (1, 6, 7, 34, 35):
        monkeypatch.setattr(functional, "BLOCK", size)
        y = getattr(functional, name)(x)
        np.testing.assert_allclose(y, whole, rtol=1e-6, atol=0)
        assert y.shape == x.shape and y.dtype == dtype


def test_erf_in_float32_has_its_documented_error():
    x = np.linspace(-7, 7, 40_001).astype(np.float32)
    exact = np.array([math.erf(value) for value in x.tolist()])
    assert np.abs(functional.erf(x) - exact).max() <= 1.5e-7
    assert np.abs(functional.erf(x)).max() <= 1


@DTYPES
def test_erf_at_the_edges(dtype):
    x = np.array([0.0, -0.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan], dtype)
    y = functional.erf(x)
    np.testing.assert_allclose(y[3:], [1, -1, 1, -1, np.nan], atol=1.5e-7)
    np.testing.assert_allclose(y[2], 1e-30 * 2 / math.sqrt(math.pi), rtol=1e-6)
    assert y[0] == y[1] == 0 and list(np.signbit(y[:2])) == [False, True]


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("dtype, atol", [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_each_activation_equals_its_formula(name, dtype, atol):
    x = np.linspace(-6, 6, 501).astype(dtype)
    formula = getattr(oracle, name)
    y = getattr(functional, name)(x)
    np.testing.assert_allclose(y, [formula(v) for v in x.tolist()], atol=atol)


def test_every_name_of_gelu_means_the_right_form():
    names = functional.ACTIVATIONS
    assert names["gelu"] is names["gelu_python"] is functional.gelu
    tanh = {names[n] for n in ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")}
    assert tanh == {functional.gelu_tanh}


def test_gelu_in_float32_has_its_documented_error():
    x = np.linspace(-12, 12, 40_001).astype(np.float32)
    exact = [v * math.erfc(-v * math.sqrt(0.5)) / 2 for v in x.tolist()]
    assert np.abs(functional.gelu(x) - exact).max() <= 6e-7


@GELUS
def test_large_values_pass_or_vanish_without_a_warning(gelu):
    x = np.array([50, 1e10, 3e38, np.inf, -50, -1e10, -3e38], np.float32)
    assert np.array_equal(gelu(x), np.maximum(x, 0))
    assert np.isnan(gelu(np.float32([np.nan])))


def test_the_two_gelus_differ_by_as_much_as_documented():
    x = np.linspace(-6, 6, 10_001)
    gap = np.abs(functional.gelu(x) - functional.gelu_tanh(x)).max()
    assert 4.6e-4 < gap <= 4.75e-4


@DTYPES
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_has_its_rate_and_keeps_the_mean(rate, dtype):
    trace, x = {}, np.full((100, 1000), 3, dtype)
    y = functional.dropout(x, rate, np.random.default_rng(0), trace)
    deviation = math.sqrt(rate * (1 - rate) / x.size)
    assert np.array_equal(y, x * trace["dropout_mask"])
    assert abs(np.mean(y == 0) - rate) < 4 * deviation
    np.testing.assert_allclose(y[y != 0], 3 / (1 - rate), rtol=1e-6)
    assert abs(y.mean() - 3) < 3 * 4 * deviation / (1 - rate)


def test_dropout_without_generator_or_at_rate_0_changes_nothing():
    x, trace = numbers(5, 7), {}
    assert np.array_equal(functional.dropout(x, 0.5, None, trace), x)
    assert np.array_equal(
        functional.dropout(x, 0.0, np.random.default_rng(0), trace), x
    )
    assert trace == {}


def test_dropout_at_rate_1_drops_everything():
    assert not functional.dropout(numbers(5, 7), 1.0, np.random.default_rng(0)).any()


def test_the_same_seed_drops_the_same_values():
    x = numbers(5, 7)
    first, second, other = (
        functional.dropout(x, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second) and not np.array_equal(first, other)
