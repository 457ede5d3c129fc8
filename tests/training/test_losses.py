"""The two losses and their gradients."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_np import BertError
from bert_np.training.losses import (
    IGNORED,
    count_right,
    masked_cross_entropy,
    next_sentence_cross_entropy,
)

LABELS = st.lists(st.sampled_from([IGNORED, 0, 1, 2, 3]), min_size=1, max_size=6)


def loss_of_row(row, label):
    """-log(softmax(row)[label]) in Python floats."""
    return math.log(sum(math.exp(z) for z in row)) - row[label]


@given(labels=LABELS, count=st.sampled_from([None, 10]), seed=st.integers(0, 99))
def test_masked_cross_entropy_is_the_mean_over_the_labels(labels, count, seed):
    logits = np.random.default_rng(seed).normal(size=(len(labels), 4)) * 3
    rows = [(i, label) for i, label in enumerate(labels) if label != IGNORED]
    divisor = count or len(rows) or 1
    expected = sum(loss_of_row(logits[i].tolist(), label) for i, label in rows)
    gradient = np.zeros_like(logits)
    for i, label in rows:
        powers = [math.exp(z) for z in logits[i]]
        gradient[i] = [power / sum(powers) / divisor for power in powers]
        gradient[i, label] -= 1 / divisor
    loss, d_logits = masked_cross_entropy(logits, np.array(labels), count)
    assert loss == pytest.approx(expected / divisor, rel=1e-12)
    np.testing.assert_allclose(d_logits, gradient, rtol=0, atol=1e-15)
    many = (logits[None], np.array([labels]), count)  # with a batch axis
    assert np.array_equal(masked_cross_entropy(*many)[1][0], d_logits)


def test_next_sentence_cross_entropy_has_two_classes():
    logits, labels = np.array([[1.0, 3.0], [2.0, 0.0]]), np.array([0, IGNORED])
    loss, _ = next_sentence_cross_entropy(logits, labels)
    assert loss == pytest.approx(loss_of_row([1.0, 3.0], 0), rel=1e-12)
    with pytest.raises(BertError, match=r"shape \(2, 3\), allowed: \(B, 2\)"):
        next_sentence_cross_entropy(np.ones((2, 3)), labels)


@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_a_loss_is_divided_by_a_count(count):
    with pytest.raises(BertError, match=f"count = {count}, allowed: an int >= 1"):
        masked_cross_entropy(np.ones((1, 2)), np.array([1]), count)


def test_huge_logits_give_a_finite_loss():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    loss, d_logits = masked_cross_entropy(logits, np.array([1, 1]))
    assert loss == 1e4
    assert d_logits.tolist() == [[0.5, -0.5], [0, 0]] and d_logits.dtype == np.float32


def test_count_right():
    logits = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 0.0], [0.0, 2.0, 1.0]])
    assert count_right(logits, np.array([1, 1, IGNORED])) == 1


@pytest.mark.parametrize(
    "logits, labels, message",
    [
        (np.ones((2, 23)), np.array([23, 0]), "label 23, allowed: 0..22, or -100"),
        (np.ones((2, 23)), np.array([-1, 0]), "label -1, allowed: 0..22, or -100"),
        (np.ones((2, 2)), np.array([0.0, 1.0]), "dtype float64, allowed: integers"),
        (np.ones((2, 2)), np.array([0, 1, 2]), r"shape \(3,\), allowed: \(2,\)"),
        (np.ones((2, 0)), np.array([0, 0]), r"\(2, 0\), allowed: .* V >= 1"),
        (np.ones((2, 2)), [0, 1], "labels is list, allowed: numpy.ndarray"),
    ],
)
def test_wrong_labels(logits, labels, message):
    with pytest.raises(BertError, match=message):
        masked_cross_entropy(logits, labels)
