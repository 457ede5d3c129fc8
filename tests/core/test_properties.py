"""What must hold for any batch: padding, order, heads, dropout, memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import bert, create_attention_mask
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.tree import leaves, map_leaves

PARAMS = {
    np.float64: random_params(),
    np.float32: random_params(dtype=np.float32, spread=0.15),  # rounding stays small
}
ATOL = {np.float64: 1e-12, np.float32: 1e-5}
DTYPES = pytest.mark.parametrize("dtype", ATOL)
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=4)
quick = settings(max_examples=25, deadline=None)


def make_batch(lengths, seed, padding=0):
    """Ids without 0, segments, and the mask, padded to the longest row and on."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths) + padding)
    mask = np.arange(shape[1]) < np.array(lengths)[:, None]
    return rng.integers(1, 23, shape) * mask, rng.integers(0, 2, shape), mask


def run(ids, segment_ids, mask=None, dtype=np.float64, **options):
    options = {"params": PARAMS[dtype], "config": CONFIG, **options}
    return bert(ids, segment_ids=segment_ids, attention_mask=mask, **options)


def assert_same_rows(out, expected, lengths, atol):
    """Equal at every real position; attention also towards real keys."""
    hidden, probs = out["last_hidden_state"], out["attention_probs"]
    np.testing.assert_allclose(
        out["pooler_output"], expected["pooler_output"], atol=atol
    )
    for i, n in enumerate(lengths):
        np.testing.assert_allclose(
            hidden[i, :n], expected["last_hidden_state"][i, :n], atol=atol
        )
        for a, b in zip(probs, expected["attention_probs"], strict=True):
            np.testing.assert_allclose(a[i, :, :n, :n], b[i, :, :n, :n], atol=atol)


@DTYPES
@quick
@given(lengths=LENGTHS, seed=st.integers(0, 99), padding=st.integers(1, 8))
def test_more_padding_changes_nothing_visible(dtype, lengths, seed, padding):
    ids, segment_ids, _ = make_batch(lengths, seed, padding)
    T = max(lengths)
    padded = run(ids, segment_ids, dtype=dtype)
    plain = run(ids[:, :T], segment_ids[:, :T], dtype=dtype)
    assert_same_rows(padded, plain, lengths, ATOL[dtype])


@quick
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_what_stands_in_the_padding_is_irrelevant(lengths, seed):
    ids, segment_ids, mask = make_batch(lengths, seed, padding=2)
    other = np.random.default_rng(seed + 1).integers(0, 23, ids.shape)
    changed = run(np.where(mask, ids, other), segment_ids * mask, mask)
    assert_same_rows(changed, run(ids, segment_ids), lengths, 1e-12)


@DTYPES
@quick
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_a_sequence_alone_gives_what_it_gives_in_a_batch(dtype, lengths, seed):
    ids, segment_ids, _ = make_batch(lengths, seed)
    together = run(ids, segment_ids, dtype=dtype)
    for i, n in enumerate(lengths):
        alone = run(ids[i : i + 1, :n], segment_ids[i : i + 1, :n], dtype=dtype)
        row = {
            "last_hidden_state": together["last_hidden_state"][i : i + 1],
            "pooler_output": together["pooler_output"][i : i + 1],
            "attention_probs": [p[i : i + 1] for p in together["attention_probs"]],
        }
        assert_same_rows(alone, row, [n], ATOL[dtype])


@quick
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_the_order_in_the_batch_is_irrelevant(lengths, seed):
    ids, segment_ids, _ = make_batch(lengths, seed)
    order = np.random.default_rng(seed).permutation(len(lengths))
    out, expected = run(ids[order], segment_ids[order]), run(ids, segment_ids)
    for (name, a), (_, b) in zip(leaves(out), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b[order], atol=1e-12, err_msg=name)


@DTYPES
@quick
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_attention_rows_sum_to_1_and_padding_gets_exactly_0(dtype, lengths, seed):
    ids, segment_ids, mask = make_batch(lengths, seed, padding=3)
    for probs in run(ids, segment_ids, dtype=dtype)["attention_probs"]:
        np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-6)
        hidden = np.broadcast_to(~mask[:, None, None, :], probs.shape)
        assert not probs[hidden].any()


@DTYPES
def test_a_row_without_a_visible_key_is_finite_and_uniform(dtype):
    mask = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 0, 0]])
    out = run(INPUT_IDS, SEGMENT_IDS, mask, dtype)
    assert all(np.isfinite(array).all() for _, array in leaves(out))
    for probs in out["attention_probs"]:
        assert np.array_equal(probs[0], np.full((3, 5, 5), dtype(0.2)))


def reorder_heads(params, order):
    """The parameters in which head a is what head order[a] was."""
    columns = np.arange(21).reshape(3, 7)[list(order)].ravel()

    def reorder(path, array):
        parts = path.split(".")
        if parts[-2] in ("query", "key", "value"):
            return array[..., columns]
        return array[columns] if path.endswith("attention.output.W") else array

    return map_leaves(reorder, params)


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_heads_may_change_places_with_their_parameters(order):
    expected = run(INPUT_IDS, SEGMENT_IDS)
    params = reorder_heads(PARAMS[np.float64], order)
    out = run(INPUT_IDS, SEGMENT_IDS, params=params)
    for name in ("last_hidden_state", "pooler_output"):
        np.testing.assert_allclose(out[name], expected[name], atol=1e-12)
    for a, b in zip(out["attention_probs"], expected["attention_probs"], strict=True):
        np.testing.assert_allclose(a, b[:, list(order)], atol=1e-12)


@quick
@given(order=st.permutations(range(5)))
def test_without_positions_tokens_may_change_places(order):
    params = map_leaves(
        lambda path, a: np.zeros_like(a) if path == "embeddings.position" else a,
        PARAMS[np.float64],
    )
    moved = [array[:, order] for array in (INPUT_IDS, SEGMENT_IDS)]
    out = run(*moved, params=params)
    expected = run(INPUT_IDS, SEGMENT_IDS, params=params)
    np.testing.assert_allclose(
        out["last_hidden_state"], expected["last_hidden_state"][:, order], atol=1e-12
    )
    for a, b in zip(out["attention_probs"], expected["attention_probs"], strict=True):
        np.testing.assert_allclose(a, b[:, :, order][..., order], atol=1e-12)


def test_with_positions_the_order_matters():
    out, backwards = (run(ids, None) for ids in (INPUT_IDS, INPUT_IDS[:, ::-1]))
    gap = out["last_hidden_state"] - backwards["last_hidden_state"][:, ::-1]
    assert np.abs(gap).max() > 0.1


def test_the_derived_mask_hides_what_the_tokenizer_padded():
    tokenizer = Tokenizer.from_tokens(["a", *SPECIAL_TOKENS])  # [PAD] is 1
    batch = tokenizer.encode_batch(["a", ("a", "a a"), "a a"])
    derived = create_attention_mask(batch.input_ids, tokenizer.pad_token_id)
    assert np.array_equal(derived, batch.attention_mask)
    assert (derived == 0).any()


def hidden_after(seed, **rates):
    config = replace(CONFIG, **rates)
    rng = None if seed is None else np.random.default_rng(seed)
    return run(INPUT_IDS, SEGMENT_IDS, config=config, rng=rng)["last_hidden_state"]


RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@pytest.mark.parametrize("only", RATES)
def test_dropout_follows_the_generator(only):
    rates = dict.fromkeys(RATES, 0) | {only: 0.5}
    assert np.array_equal(hidden_after(1, **rates), hidden_after(1, **rates))
    assert not np.array_equal(hidden_after(1, **rates), hidden_after(2, **rates))
    assert not np.array_equal(hidden_after(1, **rates), hidden_after(None, **rates))


def test_dropout_of_rate_0_is_the_deterministic_pass():
    rates = dict.fromkeys(RATES, 0.0)
    assert np.array_equal(hidden_after(1, **rates), hidden_after(None))


def test_dropout_moves_no_mean():
    trace, rng = {}, np.random.default_rng(0)
    ids = np.tile(INPUT_IDS, (300, 1))
    config = replace(CONFIG, hidden_dropout_prob=0.3)
    run(ids, None, config=config, trace=trace, rng=rng)
    out, norm = trace["embeddings"]["output"], trace["embeddings"]["norm"]
    deviation = np.abs(norm).mean() * np.sqrt(0.3 / 0.7 / 300)
    gap = (out - norm).reshape(300, 2, 5, 21).mean(axis=0)
    assert np.sqrt(np.square(gap).mean()) < 2 * deviation
    dropped = np.mean(trace["layers"][0]["attention_norm"]["dropout_mask"] == 0)
    assert abs(dropped - 0.3) < 0.01


def test_returned_attention_is_the_distribution_before_dropout():
    config = replace(CONFIG, attention_probs_dropout_prob=0.9)
    out = run(INPUT_IDS, None, config=config, rng=np.random.default_rng(0))
    for probs in out["attention_probs"]:
        np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-12)
        assert (probs[0] > 0).all()


def test_nothing_given_is_written_to():
    copies = [INPUT_IDS.copy(), SEGMENT_IDS.copy(), np.ones((2, 5))]
    params = map_leaves(lambda path, array: array.copy(), PARAMS[np.float64])
    run(*copies, params=params, rng=np.random.default_rng(0), trace={})
    for array, given in zip(copies, (INPUT_IDS, SEGMENT_IDS, np.ones((2, 5)))):
        assert np.array_equal(array, given)
    for (path, array), (_, before) in zip(leaves(params), leaves(PARAMS[np.float64])):
        assert np.array_equal(array, before), path


def test_everything_given_may_be_read_only():
    mask = np.ones((2, 5))
    mask.flags.writeable = False
    given = [INPUT_IDS, SEGMENT_IDS, mask, *(a for _, a in leaves(PARAMS[np.float64]))]
    assert not any(array.flags.writeable for array in given)
    out = run(INPUT_IDS, SEGMENT_IDS, mask, rng=np.random.default_rng(0), trace={})
    assert all(array.flags.writeable for _, array in leaves(out))


def strided(path, array):
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 1] = array
    return wide[..., 1]


@DTYPES
@pytest.mark.parametrize(
    "layout",
    [
        strided,
        lambda path, array: np.asfortranarray(array),
        lambda path, array: np.flip(np.flip(array).copy()),
        lambda path, array: array.astype(array.dtype.newbyteorder(">")),
    ],
    ids=["strided", "Fortran order", "negative strides", "big-endian"],
)
def test_how_parameters_lie_in_memory_is_irrelevant(layout, dtype):
    params = map_leaves(layout, PARAMS[dtype])
    out = run(INPUT_IDS, SEGMENT_IDS, params=params)
    expected = run(INPUT_IDS, SEGMENT_IDS, dtype=dtype)
    for (name, a), (_, b) in zip(leaves(out), leaves(expected), strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, atol=ATOL[dtype], err_msg=name)
