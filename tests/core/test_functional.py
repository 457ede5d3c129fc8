"""The mathematics on bare arrays."""

import math

import numpy as np
import pytest
import reference

from bert_np import functional

DTYPES = (np.float32, np.float64)


def numbers(*shape, dtype=np.float64, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    array.flags.writeable = False
    return array


CALLS = {
    "linear": lambda x: functional.linear(
        x, numbers(7, 4, dtype=x.dtype), numbers(4, dtype=x.dtype)
    ),
    "layer_norm": lambda x: functional.layer_norm(
        x, numbers(7, dtype=x.dtype), numbers(7, dtype=x.dtype), 1e-12
    ),
    "softmax": functional.softmax,
    "erf": functional.erf,
    "gelu": functional.gelu,
    "gelu_tanh": functional.gelu_tanh,
    "relu": functional.relu,
    "dropout": lambda x: functional.dropout(
        x, functional.dropout_mask(x.shape, 0.5, np.random.default_rng(0), x.dtype)
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_the_dtype_is_kept_and_read_only_input_accepted(name, dtype):
    assert CALLS[name](numbers(2, 5, 7, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("name", CALLS)
def test_strides_do_not_matter(name):
    x = numbers(2, 5, 14)[:, :, ::2].transpose(1, 0, 2)
    assert np.array_equal(CALLS[name](x), CALLS[name](np.ascontiguousarray(x)))


def test_linear_equals_the_loops():
    x, W, b = numbers(2, 5, 7), numbers(7, 4), numbers(4)
    y = functional.linear(x, W, b)
    expected = [[reference.linear(row, W, b) for row in rows] for rows in x]
    np.testing.assert_allclose(y, expected, atol=1e-14)
    np.testing.assert_allclose(functional.linear(x[0, 0], W, b), y[0, 0], atol=1e-14)


def test_layer_norm_equals_the_loops():
    x, gamma, beta = 3 * numbers(5, 7) + 2, numbers(7, seed=1), numbers(7, seed=2)
    y = functional.layer_norm(x, gamma, beta, 1e-3)
    expected = [reference.layer_norm(row, gamma, beta, 1e-3) for row in x]
    np.testing.assert_allclose(y, expected, atol=1e-14)


def test_epsilon_is_inside_the_root():
    x = np.array([-1e-6, 1e-6])  # variance 1e-12, as large as epsilon
    y = functional.layer_norm(x, np.ones(2), np.zeros(2), 1e-12)
    np.testing.assert_allclose(y, [-math.sqrt(0.5), math.sqrt(0.5)], rtol=1e-12)


def test_a_constant_vector_becomes_beta():
    beta = numbers(7)
    y = functional.layer_norm(np.full((5, 7), 3.0), np.ones(7), beta, 1e-12)
    assert np.array_equal(y, np.tile(beta, (5, 1)))


def test_softmax_along_each_axis_equals_the_loops():
    x = numbers(5, 7)
    rows = [reference.softmax(row, [True] * 7) for row in x]
    columns = [reference.softmax(column, [True] * 5) for column in x.T]
    np.testing.assert_allclose(functional.softmax(x), rows, atol=1e-15)
    np.testing.assert_allclose(functional.softmax(x, axis=0).T, columns, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_neither_overflows_nor_loses_a_small_score(dtype):
    x = np.array([[1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype)
    y = functional.softmax(x)
    np.testing.assert_allclose(y, [[0.5, 0.5, 0], [1 / 3] * 3], rtol=1e-6)
    lowest = np.full((1, 4), np.finfo(dtype).min)
    assert np.array_equal(functional.softmax(lowest), [[0.25] * 4])


def test_erf_in_float64_is_pythons():
    x = np.linspace(-7, 7, 2001)
    assert np.array_equal(functional.erf(x), [math.erf(value) for value in x])


def test_erf_in_float32_has_its_stated_error():
    x = np.linspace(-7, 7, 40_001).astype(np.float32)
    exact = np.array([math.erf(value) for value in x.tolist()])
    assert np.abs(functional.erf(x) - exact).max() <= 1.5e-7
    assert np.abs(functional.erf(x)).max() <= 1


@pytest.mark.parametrize("dtype", DTYPES)
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
    formula = getattr(reference, name)
    y = getattr(functional, name)(x)
    np.testing.assert_allclose(y, [formula(v) for v in x.tolist()], atol=atol)


def test_gelu_in_float32_has_its_stated_error():
    x = np.linspace(-12, 12, 40_001).astype(np.float32)
    exact = [v * math.erfc(-v * math.sqrt(0.5)) / 2 for v in x.tolist()]
    assert np.abs(functional.gelu(x) - exact).max() <= 6e-7


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_large_values_pass_or_vanish_and_raise_no_warning(name):
    x = np.array([50, 1e10, 3e38, np.inf, -50, -1e10, -3e38], np.float32)
    y = getattr(functional, name)(x)
    assert np.array_equal(y, np.maximum(x, 0))
    assert np.isnan(getattr(functional, name)(np.float32([np.nan])))


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_and_strides_do_not_change_an_activation(name, dtype):
    function = getattr(functional, name)
    x = np.random.default_rng(0).standard_normal((3, functional.BLOCK + 7))
    whole = function(x.astype(dtype))
    for view in (x.astype(dtype).T, np.repeat(x.astype(dtype), 2, axis=1)[:, ::2]):
        y = function(view)
        assert y.shape == view.shape and y.dtype == dtype
        same = whole.T if view.shape != whole.shape else whole
        np.testing.assert_allclose(y, same, rtol=0, atol=1e-6)
    assert function(x[:0].astype(dtype)).shape == (0, x.shape[1])


@pytest.mark.parametrize("name", ["softmax", "gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_written_where_they_are_told(name, dtype):
    function, size = getattr(functional, name), functional.BLOCK // 20
    for shape in ((2, 3), (7, 5, size)):
        x = np.random.default_rng(0).normal(0, 3, shape).astype(dtype)
        before, expected = x.copy(), function(x)
        place, columns = np.empty_like(x), np.empty_like(x, order="F")
        assert function(x, out=place) is place and np.array_equal(place, expected)
        assert function(x, out=columns) is columns and np.array_equal(x, before)
        # softmax adds up in another order there
        rtol = 64 * np.finfo(dtype).eps if name == "softmax" else 0
        np.testing.assert_allclose(columns, expected, rtol=rtol, atol=0)
        assert function(x, out=x) is x and np.array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [-1, 2, 0])
def test_softmax_in_blocks_is_that_of_single_rows(axis, dtype):
    shape = (7, 43, functional.BLOCK // 100)
    x = np.random.default_rng(0).normal(0, 9, shape).astype(dtype)
    assert x.size > 2 * functional.BLOCK and functional.BLOCK % shape[-1]
    expected = np.apply_along_axis(functional.softmax, axis, x)
    before, strided = x.copy(), np.empty((*shape, 2), dtype)[..., 0]
    for place in (None, np.empty_like(x), np.empty_like(x, order="F"), strided):
        y = functional.softmax(x, axis, place)
        assert y.dtype == dtype and np.array_equal(x, before)
        rtol = 64 * np.finfo(dtype).eps
        np.testing.assert_allclose(y, expected, rtol=rtol, atol=0)
        assert place is None or y is place


def test_the_two_gelus_differ_by_as_much_as_documented():
    x = np.linspace(-6, 6, 10_001)
    gap = np.abs(functional.gelu(x) - functional.gelu_tanh(x)).max()
    assert 4.6e-4 < gap < 4.75e-4


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dropout_mask_has_the_rate_and_mean_1(rate, dtype):
    mask = functional.dropout_mask((100, 1000), rate, np.random.default_rng(0), dtype)
    deviation = math.sqrt(rate * (1 - rate) / mask.size)
    kept = mask[mask != 0]
    assert mask.dtype == dtype
    assert abs(np.mean(mask == 0) - rate) < 4 * deviation
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=1e-6)
    assert abs(mask.mean() - 1) < 4 * deviation / (1 - rate)


def test_dropout_without_rng_or_rate_does_nothing():
    x = numbers(5, 7)
    rng = np.random.default_rng(0)
    assert functional.dropout_mask(x.shape, 0.5, None, x.dtype) is None
    assert functional.dropout_mask(x.shape, 0.0, rng, x.dtype) is None
    assert np.array_equal(functional.dropout(x, None), x)


def test_dropout_with_rate_1_drops_everything():
    mask = functional.dropout_mask((5, 7), 1.0, np.random.default_rng(0), np.float32)
    assert np.array_equal(mask, np.zeros((5, 7)))


def test_dropout_multiplies_by_its_mask():
    assert np.array_equal(
        functional.dropout(np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 2.0])),
        [2.0, 0.0, 6.0],
    )


def test_the_same_seed_drops_the_same():
    first, second, other = (
        functional.dropout_mask((5, 7), 0.5, np.random.default_rng(seed), np.float32)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
