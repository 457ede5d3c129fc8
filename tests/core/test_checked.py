"""The equations' arguments, held against their docstrings."""

import numpy as np
import pytest

import bert_np
from bert_np import BertConfig, BertError
from bert_np.checked import checked, documented_kinds

ONES = np.ones(3)


@pytest.mark.parametrize("values", [[1, 2, 3], [True, False, True], np.arange(3)])
def test_lists_and_integers_are_float64(values):
    expected = bert_np.softmax(np.array(values, float))
    found = bert_np.softmax(values)
    assert found.dtype == np.float64 and np.array_equal(found, expected)


def test_float16_is_float32():
    found = bert_np.layer_norm(np.zeros(3, np.float16), ONES, ONES, 1e-12)
    assert np.array_equal(found, ONES)
    assert bert_np.gelu(np.ones(2, np.float16)).dtype == np.float32


@pytest.mark.filterwarnings("error")
def test_what_is_not_finite_gives_nan_without_a_warning():
    assert np.isnan(bert_np.softmax([1, 1, np.inf])).all()
    assert np.isnan(bert_np.layer_norm([1, np.inf, 1], ONES, ONES, 1e-12)).all()
    assert np.array_equal(bert_np.erf([np.inf, -np.inf]), [1, -1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bert_np.softmax("x"), "x has dtype <U1, allowed: numbers"),
        (lambda: bert_np.softmax([[1], [1, 2]]), "x is not an array of numbers"),
        (lambda: bert_np.softmax(1j * ONES), "x has dtype complex128"),
        (lambda: bert_np.softmax(np.ma.ones(3)), "a masked array"),
        (lambda: bert_np.softmax(ONES, axis=1), "softmax: AxisError"),
        (lambda: bert_np.softmax(ONES, axis=True), "axis = True, allowed: int"),
        (
            lambda: bert_np.linear(ONES, np.ones((2, 1)), [0]),
            r"W has shape \(2, 1\), allowed: \(I, O\) with I = 3",
        ),
        (lambda: bert_np.pool(ONES, {}), r"x has shape \(3,\), allowed: \(B, T, H\)"),
        (lambda: bert_np.pool(np.ones((1, 2, 3)), []), r"params = \[\], allowed: dict"),
        (lambda: bert_np.dropout(ONES, 2, None), "rate = 2, allowed: float in 0..1"),
        (lambda: bert_np.dropout(ONES, 0.5, 7), "rng = 7, allowed: numpy.random.Gen"),
        (
            lambda: bert_np.embed([[-1]], [[0]], {}, BertConfig()),
            "input_ids holds -1, allowed: integers >= 0",
        ),
        (lambda: bert_np.embed([[1]], [[0]], {}, BertConfig()), "embed: KeyError"),
        (lambda: bert_np.embed([[1.0]], [[0]], {}, BertConfig()), "allowed: integers"),
    ],
)
def test_what_does_not_fit_the_docstring_is_refused(call, message):
    with pytest.raises(BertError, match=message):
        call()


def test_a_wrong_number_of_arguments_is_pythons_own_error():
    with pytest.raises(TypeError):
        bert_np.softmax(ONES, -1, ONES)
    with pytest.raises(TypeError):
        bert_np.softmax(ONES, x=ONES)


def test_without_a_docstring_nothing_is_checked():
    def double(x):
        return 2 * x

    assert documented_kinds(double) == {} and checked(double)(3) == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_hidden_key_gets_nothing_however_large_the_scores(dtype):
    q, k = np.full((1, 1, 2, 4), 1e25, dtype), np.full((1, 1, 2, 4), -1e13, dtype)
    if dtype == np.float64:
        q, k = q * 1e200, k * 1e100
    v, visible = np.ones_like(q), np.array([True, False])
    _, probs = bert_np.scaled_dot_product(q, k, v, visible)
    assert np.array_equal(probs[0, 0], [[1, 0], [1, 0]])
