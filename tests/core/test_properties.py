"""What must hold for any batch, on the plain and on the fast path."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import bert
from bert_np.fast import fast_bert, prepare
from bert_np.tree import leaves, map_leaves

PARAMS = {
    np.float64: random_params(),
    np.float32: random_params(dtype=np.float32, spread=0.15),  # rounding stays small
}
ATOL = {np.float64: 1e-12, np.float32: 1e-5}
DTYPES = pytest.mark.parametrize("dtype", ATOL)


NAMES = ("input_ids", "segment_ids", "attention_mask")


def plain(*inputs, params=PARAMS[np.float64], config=CONFIG, rng=None):
    inputs = dict(zip(NAMES, inputs))
    return bert(**inputs, params=params, config=config, rng=rng)


def fast(*inputs, params=PARAMS[np.float64], config=CONFIG):
    inputs = dict(zip(NAMES, inputs))
    return fast_bert(**inputs, prepared=prepare(params, config), config=config)


PATHS = pytest.mark.parametrize("path", [plain, fast])


def for_any_batch(test):
    """Run a test with many (lengths of rows, seed), on both paths and dtypes."""
    lengths = st.lists(st.integers(1, 9), min_size=1, max_size=4)
    test = given(lengths=lengths, seed=st.integers(0, 99))(test)
    return PATHS(DTYPES(settings(max_examples=25)(test)))


def make_batch(lengths, seed, padding=0):
    """Ids without 0, segments, and the mask, padded to the longest row and on."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths) + padding)
    mask = np.arange(shape[1]) < np.array(lengths)[:, None]
    return rng.integers(1, 23, shape) * mask, rng.integers(0, 2, shape), mask


def assert_same_rows(out, expected, lengths, atol):
    """Equal at every real position; attention also towards real keys."""
    pairs = [(out["pooler_output"], expected["pooler_output"])]
    hidden = out["last_hidden_state"], expected["last_hidden_state"]
    for i, n in enumerate(lengths):
        pairs.append([array[i, :n] for array in hidden])
        for probs in zip(out["attention_probs"], expected["attention_probs"]):
            pairs.append([array[i, :, :n, :n] for array in probs])
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


def rows_of(out, rows):
    """The results of some rows of a batch."""
    return map_leaves(lambda _, array: array[rows], out)


@for_any_batch
def test_more_padding_changes_nothing_visible(path, dtype, lengths, seed):
    ids, segment_ids, _ = make_batch(lengths, seed, padding=8)
    T = max(lengths)
    padded = path(ids, segment_ids, params=PARAMS[dtype])
    alone = path(ids[:, :T], segment_ids[:, :T], params=PARAMS[dtype])
    assert_same_rows(padded, alone, lengths, ATOL[dtype])


@for_any_batch
def test_neither_padding_nor_other_rows_change_a_bit(path, dtype, lengths, seed):
    ids, segment_ids, mask = make_batch(lengths, seed, padding=2)
    kept = mask & (np.arange(len(ids))[:, None] == 0)
    other = np.random.default_rng(seed + 1).integers(0, 23, ids.shape)
    changed = np.where(kept, ids, other), np.where(kept, segment_ids, other % 2), mask
    out = rows_of(path(*changed, params=PARAMS[dtype]), [0])
    expected = rows_of(path(ids, segment_ids, mask, params=PARAMS[dtype]), [0])
    assert_same_rows(out, expected, lengths[:1], 0)


@for_any_batch
def test_a_row_alone_gives_what_it_gives_in_a_batch(path, dtype, lengths, seed):
    ids, segment_ids, _ = make_batch(lengths, seed)
    together = path(ids, segment_ids, params=PARAMS[dtype])
    for i, n in enumerate(lengths):
        alone = path(ids[[i], :n], segment_ids[[i], :n], params=PARAMS[dtype])
        assert_same_rows(alone, rows_of(together, [i]), [n], ATOL[dtype])


@for_any_batch
def test_the_order_in_the_batch_is_irrelevant(path, dtype, lengths, seed):
    ids, segment_ids, _ = make_batch(lengths, seed)
    order = np.random.default_rng(seed).permutation(len(lengths))
    out = path(ids[order], segment_ids[order], params=PARAMS[dtype])
    expected = rows_of(path(ids, segment_ids, params=PARAMS[dtype]), order)
    assert_same_rows(out, expected, np.array(lengths)[order], ATOL[dtype])


@for_any_batch
def test_attention_sums_to_1_and_padding_gets_exactly_0(path, dtype, lengths, seed):
    ids, segment_ids, mask = make_batch(lengths, seed, padding=3)
    for probs in path(ids, segment_ids, params=PARAMS[dtype])["attention_probs"]:
        real = probs.swapaxes(1, 2)[mask]
        np.testing.assert_allclose(real.sum(axis=-1), 1, rtol=1e-6)
        assert not probs[np.broadcast_to(~mask[:, None, None, :], probs.shape)].any()


@DTYPES
def test_a_row_without_a_visible_key_is_finite_and_uniform(dtype):
    mask = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 0, 0]])
    out = plain(INPUT_IDS, SEGMENT_IDS, mask, params=PARAMS[dtype])
    assert all(np.isfinite(array).all() for _, array in leaves(out))
    for probs in out["attention_probs"]:
        assert np.array_equal(probs[0], np.full((3, 5, 5), dtype(0.2)))


def reorder_heads(params, order):
    """The parameters in which head a is what head order[a] was."""
    columns = np.arange(21).reshape(3, 7)[list(order)].ravel()

    def reorder(path, array):
        if path.split(".")[-2] in ("query", "key", "value"):
            return array[..., columns]
        return array[columns] if path.endswith("attention.output.W") else array

    return map_leaves(reorder, params)


@PATHS
@given(order=st.permutations(range(3)))
def test_heads_may_change_places_with_their_parameters(path, order):
    params = reorder_heads(PARAMS[np.float64], order)
    out = path(INPUT_IDS, SEGMENT_IDS, params=params)
    expected = path(INPUT_IDS, SEGMENT_IDS)
    expected["attention_probs"] = [p[:, order] for p in expected["attention_probs"]]
    assert_same_rows(out, expected, [5, 3], 1e-12)


def without_positions(path, array):
    return np.zeros_like(array) if path == "embeddings.position" else array


@given(order=st.permutations(range(5)))
def test_without_positions_tokens_may_change_places(order):
    params = map_leaves(without_positions, PARAMS[np.float64])
    out = plain(INPUT_IDS[:, order], SEGMENT_IDS[:, order], params=params)
    expected = plain(INPUT_IDS, SEGMENT_IDS, params=params)
    hidden = expected["last_hidden_state"][:, order]
    np.testing.assert_allclose(out["last_hidden_state"], hidden, atol=1e-12)
    for a, b in zip(out["attention_probs"], expected["attention_probs"], strict=True):
        np.testing.assert_allclose(a, b[:, :, order][..., order], atol=1e-12)


RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@pytest.mark.parametrize("only", RATES)
def test_dropout_follows_the_generator_and_the_rates(only):
    def hidden(seed, rate=0.5):
        config = replace(CONFIG, **dict.fromkeys(RATES, 0) | {only: rate})
        rng = None if seed is None else np.random.default_rng(seed)
        out = plain(INPUT_IDS, SEGMENT_IDS, config=config, rng=rng)
        return out["last_hidden_state"]

    assert np.array_equal(hidden(1), hidden(1))
    assert not np.array_equal(hidden(1), hidden(2))
    assert not np.array_equal(hidden(1), hidden(None))
    assert np.array_equal(hidden(1, rate=0.0), hidden(None))


def strided(path, array):
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 1] = array
    return wide[..., 1]


@DTYPES
@PATHS
@pytest.mark.parametrize(
    "layout",
    [
        strided,
        lambda path, array: np.asfortranarray(array),
        lambda path, array: array.astype(array.dtype.newbyteorder(">")),
    ],
    ids=["strided", "Fortran order", "big-endian"],
)
def test_how_parameters_lie_in_memory_is_irrelevant(layout, path, dtype):
    out = path(INPUT_IDS, SEGMENT_IDS, params=map_leaves(layout, PARAMS[dtype]))
    assert {array.dtype for _, array in leaves(out)} == {np.dtype(dtype)}
    expected = path(INPUT_IDS, SEGMENT_IDS, params=PARAMS[dtype])
    assert_same_rows(out, expected, [5, 3], ATOL[dtype])
