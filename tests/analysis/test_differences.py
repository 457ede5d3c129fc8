"""Differences of maps, and which token is whose partner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotting.samples import random_probs

from bert_np import BertError
from bert_np.analysis import align_tokens, map_difference

FIRST, SECOND = random_probs(2, 3, 3), random_probs(2, 4, 4)
words = st.lists(st.sampled_from("abc"), min_size=1, max_size=8)


def test_a_difference_is_taken_between_partners():
    pairs = [(0, 3), (2, 0)]
    found = map_difference(FIRST, SECOND, pairs)
    assert found.shape == (2, 2, 2)
    for a, (i, (q, r)), (j, (k, s)) in (
        (a, row, column)
        for a in (0, 1)
        for row in enumerate(pairs)
        for column in enumerate(pairs)
    ):
        assert found[a, i, j] == SECOND[a, r, s] - FIRST[a, q, k]
    whole = map_difference(FIRST[0], FIRST[1])
    assert np.array_equal(whole, FIRST[1] - FIRST[0])
    assert np.abs(whole.sum(axis=1)).max() < 1e-12


@given(words, words)
def test_partners_stand_in_order_and_each_has_one(tokens, others):
    pairs = align_tokens(tokens, others)
    assert all(0 <= i < len(tokens) and 0 <= j < len(others) for i, j in pairs)
    for (i, j), (k, m) in zip(pairs, pairs[1:]):
        assert i < k and j < m
    assert align_tokens(tokens, tokens) == [(i, i) for i in range(len(tokens))]


def test_one_word_exchanged_or_added_leaves_the_others_paired():
    tokens = ["[CLS]", "she", "saw", "it", ".", "[SEP]"]
    assert align_tokens(tokens, ["[CLS]", "she", "saw", "him", ".", "[SEP]"]) == [
        (i, i) for i in range(6)
    ]
    longer = ["[CLS]", "she", "never", "saw", "it", ".", "[SEP]"]
    expected = [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert align_tokens(tokens, longer) == expected


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: map_difference(FIRST, SECOND), "maps of 3 and 4 positions"),
        (lambda: map_difference(FIRST, FIRST[0]), r"second has shape \(3, 3\)"),
        (lambda: map_difference(FIRST, SECOND, [(0, 0), (0, 1)]), "at most once"),
        (lambda: map_difference(FIRST, SECOND, [(3, 0)]), r"0..2 and 0..3"),
        (lambda: map_difference(FIRST, SECOND, [(True, 0)]), r"pairs = \[\(True, 0\)"),
        (lambda: map_difference(FIRST, 2 * SECOND, []), "allowed: 0..1"),
        (lambda: align_tokens(["a", 3], ["a"]), r"tokens\[1\] is int"),
        (lambda: align_tokens(["a"], "a"), "other_tokens is 'a', allowed: a list"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(BertError, match=message):
        call()
