"""Masking: how often each thing happens to a token."""

import numpy as np
import pytest

from bert_np import BertError
from bert_np.training.losses import IGNORED
from bert_np.training.masking import mask_tokens

PAD, CLS, SEP, MASK = range(4)
OPTIONS = {"special_ids": (PAD, CLS, SEP, MASK), "mask_id": MASK, "vocab_size": 13}
MANY = np.tile([CLS, *range(4, 13), SEP, PAD], (20_000, 1))
MANY.flags.writeable = False


def generator():
    return np.random.default_rng(42)


def test_rates():
    masked, labels = mask_tokens(MANY, generator(), **OPTIONS)
    words, chosen = MANY > MASK, labels != IGNORED
    assert not chosen[~words].any() and (labels[chosen] == MANY[chosen]).all()
    assert (masked[~chosen] == MANY[~chosen]).all()
    n = chosen.sum()  # about 27,000: a standard deviation is below 0.003
    assert n / words.sum() == pytest.approx(0.15, abs=0.004)
    assert (masked[chosen] == MASK).mean() == pytest.approx(0.8, abs=0.012)
    changed = (masked != MANY) & (masked != MASK)
    kept = chosen & (masked == MANY)
    # The random word is the old one in 1 case of 9.
    assert changed.sum() / n == pytest.approx(0.1 * 8 / 9, abs=0.008)
    assert kept.sum() / n == pytest.approx(0.1 + 0.1 / 9, abs=0.008)
    counts = np.bincount(masked[changed], minlength=13)
    assert (counts[:4] == 0).all() and (counts[4:] > 0.8 * counts[4:].mean()).all()


def test_words_are_chosen_independently_and_equally_often():
    _, labels = mask_tokens(MANY, generator(), **OPTIONS)
    chosen = (labels != IGNORED)[:, 1:10]
    np.testing.assert_allclose(chosen.mean(axis=0), 0.15, atol=0.013)
    assert chosen.sum(axis=1).var() == pytest.approx(9 * 0.15 * 0.85, rel=0.05)


def test_each_token_may_have_a_rate_of_its_own():
    rates = np.where(MANY == 4, 1, np.where(MANY == 5, 0, 0.4))
    _, labels = mask_tokens(MANY, generator(), rate=rates, **OPTIONS)
    chosen = (labels != IGNORED).mean(axis=0)
    assert chosen[1:4] == pytest.approx([1, 0, 0.4], abs=0.02)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rate": 1.5}, "rate = 1.5, allowed: 0..1"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"special_ids": range(13)}, "cover all 13 ids"),
        ({"mask_id": "x"}, "mask_id = 'x', allowed: 0..12"),
        ({"mask_id": -1}, "mask_id = -1, allowed: 0..12"),
        ({"input_ids": np.array([[13]])}, "input_ids holds 13, allowed: 0..12"),
        ({"rate": np.full(MANY.shape, 2)}, "rate holds 2, allowed: 0..1"),
        ({"rng": 42}, "rng is int, allowed: numpy.random.Generator"),
        ({"input_ids": [[1]]}, "input_ids is list, allowed: an array of integers"),
    ],
)
def test_wrong_arguments(change, message):
    arguments = {"input_ids": MANY, "rng": generator()} | OPTIONS | change
    with pytest.raises(BertError, match=message):
        mask_tokens(**arguments)
