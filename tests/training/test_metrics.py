"""Accuracy, F1 and the confusion matrix, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_np import BertError
from bert_np.training.metrics import accuracy, confusion_matrix, f1_scores, macro_f1

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1)


def f1_of(pairs, k):
    """From precision and recall, in Python; None if neither is defined."""
    both = sum(label == found == k for label, found in pairs)
    there = sum(label == k for label, _ in pairs)
    predicted = sum(found == k for _, found in pairs)
    if not there and not predicted:
        return None
    if not both:
        return 0.0
    precision, recall = both / predicted, both / there
    return 2 * precision * recall / (precision + recall)


@given(pairs=PAIRS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs):
    labels, predictions = zip(*pairs)
    matrix = confusion_matrix(labels, predictions, 4)
    assert matrix.sum() == len(pairs)
    for i in range(4):
        assert matrix[i].tolist() == [pairs.count((i, j)) for j in range(4)]
    expected = [f1_of(pairs, k) for k in range(4)]
    found = [None if np.isnan(f1) else f1 for f1 in f1_scores(matrix)]
    assert found == pytest.approx(expected)
    known = [f1 for f1 in expected if f1 is not None]
    assert macro_f1(matrix) == pytest.approx(sum(known) / len(known))
    right = sum(label == found for label, found in pairs)
    assert accuracy(labels, predictions) == pytest.approx(right / len(pairs))


def test_a_span_is_right_if_both_ends_are():
    assert accuracy([[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 5], [5, 6]]) == 2 / 3


@pytest.mark.parametrize(
    "labels, predictions, message",
    [
        ([0, 1], [0], r"shape \(2,\), predictions \(1,\)"),
        ([0, 4], [0, 1], "labels: 4, allowed: .* 0..3"),
        ([0.5], [1], "labels has dtype float64"),
        (np.zeros(0, int), np.zeros(0, int), "shape"),
    ],
)
def test_wrong_answers(labels, predictions, message):
    with pytest.raises(BertError, match=message):
        confusion_matrix(labels, predictions, 4)


@pytest.mark.parametrize("matrix", [[[1, 2]], [[-1, 2], [1, 1]], [[0]], [[0.5]], "x"])
def test_wrong_matrices(matrix):
    with pytest.raises(BertError, match="matrix"):
        macro_f1(matrix)
