"""Large arrays, block by block, give the bits that whole arrays give."""

import numpy as np
import pytest

from bert_np.training import blocks
from bert_np.training.blocks import by_blocks


def roots(x, y):
    return np.sqrt(x) / (y + 1), x * y


@pytest.mark.parametrize("shape", [(63,), (8, 8), (13, 5), (3, 7, 11)])
def test_blocks_give_the_bits_of_the_whole(monkeypatch, shape):
    monkeypatch.setattr(blocks, "LARGE", 64)
    monkeypatch.setattr(blocks, "BLOCK", 10)
    rng = np.random.default_rng(0)
    x, y = (rng.random(shape, np.float32) for _ in "xy")
    calls = []

    def noted(*arrays):
        calls.append(arrays[0].size)
        return roots(*arrays)

    found = by_blocks(noted, x, y)
    for ours, whole in zip(found, roots(x, y), strict=True):
        assert np.array_equal(ours, whole) and ours.dtype == np.float32
    assert sum(calls) == x.size
    assert (max(calls) <= 10) == (x.size >= 64)
