"""What a row's results depend on, besides the row itself."""

import numpy as np
import pytest
from measure_invariance import (
    QUESTIONS,
    SMALL,
    WIDE,
    fast,
    largest,
    make_batch,
    plain,
    plain_by_rows,
)

from bert_np import init_params
from bert_np.tree import leaves, map_leaves

LIMITS = {np.float32: 1e-5, np.float64: 1e-12}
EXACT, ROUNDED = QUESTIONS[:3], QUESTIONS[3:]
PATHS = pytest.mark.parametrize("make", [plain, fast], ids=lambda f: f.__name__)
CONFIGS = pytest.mark.parametrize("config", [SMALL, WIDE], ids=["H=21", "H=64"])
DTYPES = pytest.mark.parametrize("dtype", LIMITS)


def random_params(config, dtype=np.float32):
    return init_params(config, np.random.default_rng(1), dtype=dtype)


def assert_invariant(found, limit):
    """Equal to the bit in a batch of the same shape, else within the limit."""
    assert {question: found[question] for question in EXACT} == dict.fromkeys(EXACT, 0)
    assert max(found.values()) <= limit, found


@PATHS
@CONFIGS
@DTYPES
def test_a_row_depends_on_nothing_but_itself(make, config, dtype):
    found = largest(make, random_params(config, dtype), config)
    assert_invariant(found, LIMITS[dtype])


@PATHS
def test_a_row_of_minilm_depends_on_nothing_but_itself(make, minilm):
    params, config, _ = minilm
    assert_invariant(largest(make, params, config, [(3, 17), (4, 32)]), 1e-5)


@CONFIGS
@DTYPES
def test_with_a_product_for_each_text_all_is_equal_to_the_bit(config, dtype):
    found = largest(plain_by_rows, random_params(config, dtype), config)
    assert {q: found[q] for q in QUESTIONS[:5]} == dict.fromkeys(QUESTIONS[:5], 0)
    assert found["alone and without padding"] <= LIMITS[dtype]


def with_leak(params, config):
    """A path on which the rows of a batch, and the padding, get mixed."""
    run = plain(params, config)

    def leaking(ids, mask):
        out = run(ids, mask)
        out["last_hidden_state"] += 1e-3 * out["last_hidden_state"].mean(axis=(0, 1))
        return out

    return leaking


def test_a_leak_between_rows_is_found():
    found = largest(with_leak, random_params(SMALL), SMALL)
    assert found["run again"] == 0
    assert min(found[question] for question in QUESTIONS[1:3]) > 1e-6
    assert found["alone"] > 1e-5


@PATHS
@DTYPES
def test_masked_keys_get_exactly_0(make, dtype):
    ids, mask = make_batch((6, 20), 60, np.random.default_rng(3))
    out = make(random_params(WIDE, dtype), WIDE)(ids, mask)
    for probs in out["attention_probs"]:
        hidden = np.broadcast_to(~mask[:, None, None, :], probs.shape)
        assert hidden.any() and not probs[hidden].any()
        seen = probs.sum(axis=-1)[np.broadcast_to(mask[:, None, :], probs.shape[:3])]
        np.testing.assert_allclose(seen, 1, rtol=1e-5)


@PATHS
def test_inputs_and_parameters_may_be_read_only_and_stay_as_they_are(make):
    def lock(_, array):
        array.flags.writeable = False
        return array

    params = map_leaves(lock, random_params(SMALL))
    copies = map_leaves(lambda _, array: array.copy(), params)
    ids, mask = make_batch((5, 9), 60, np.random.default_rng(0))
    given = [lock("", array) for array in (ids, mask)]
    before = [array.copy() for array in given]
    out = make(params, SMALL)(*given)
    assert out["last_hidden_state"].shape == (5, 9, 21)
    assert all(map(np.array_equal, given, before))
    for (path, array), (_, copy) in zip(leaves(params), leaves(copies), strict=True):
        assert array.tobytes() == copy.tobytes(), path
