"""The fast path gives what bert gives, whatever the batch and the threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_np import BertConfig, BertError, bert, fast, init_params
from bert_np.fast import MOST_TOKENS, fast_bert, prepare
from bert_np.tree import leaves, map_leaves


def model(sizes, dtype=np.float32, **more):
    A, D, F, L = sizes
    config = BertConfig(
        vocab_size=31,
        hidden_size=A * D,
        num_hidden_layers=L,
        num_attention_heads=A,
        intermediate_size=F,
        max_position_embeddings=600,
        initializer_range=0.2,
        **more,
    )
    rng = np.random.default_rng(0)
    params = init_params(config, rng)  # whose biases are 0: not for a test

    def shake(path, array):
        return (array + 0.1 * rng.standard_normal(array.shape)).astype(dtype)

    return map_leaves(shake, params), config


def batch(rng, lengths):
    """Ids, segments and mask of rows of these lengths, padded on the right."""
    T = max(lengths)
    mask = (np.arange(T) < np.array(lengths)[:, None]).astype(int)
    ids = rng.integers(1, 31, mask.shape)
    return {
        "input_ids": ids,
        "segment_ids": rng.integers(0, 2, mask.shape),
        "attention_mask": mask,
    }


def both(params, config, inputs, **more):
    ids = inputs["input_ids"]
    rest = {name: inputs[name] for name in ("segment_ids", "attention_mask")}
    return (
        bert(ids, params, config, **rest),
        fast_bert(ids, prepare(params, config), config, **rest, **more),
    )


def assert_equal_at_real_tokens(plain, fast, mask, atol):
    real = mask == 1
    assert fast.keys() == plain.keys()
    hidden = fast["last_hidden_state"]
    np.testing.assert_allclose(
        hidden[real], plain["last_hidden_state"][real], rtol=0, atol=atol
    )
    np.testing.assert_allclose(
        fast["pooler_output"], plain["pooler_output"], rtol=0, atol=atol
    )
    assert not hidden[~real].any()
    for ours, theirs in zip(
        fast["attention_probs"], plain["attention_probs"], strict=True
    ):
        ours, theirs = ours.swapaxes(1, 2), theirs.swapaxes(1, 2)  # (B, Tq, A, Tk)
        np.testing.assert_allclose(ours[real], theirs[real], rtol=0, atol=atol)
        assert not ours[~real].any()
        assert ours.dtype == theirs.dtype


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(
        st.integers(1, 4), st.integers(1, 9), st.integers(1, 20), st.integers(1, 3)
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
    st.integers(1, 4),
    st.sampled_from([np.float32, np.float64]),
)
def test_equal_over_sizes_lengths_masks_and_threads(sizes, lengths, threads, dt):
    params, config = model(sizes, dt)
    inputs = batch(np.random.default_rng(1), lengths)
    plain, fast = both(params, config, inputs, threads=threads)
    atol = 1e-5 if dt is np.float32 else 1e-12
    assert_equal_at_real_tokens(plain, fast, inputs["attention_mask"], atol)


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_equal_in_many_parts_and_for_every_activation(act):
    params, config = model((3, 7, 11, 2), hidden_act=act)
    lengths = [512, 1, 300, 2, 60, 61, 62, 63, 64, 200]
    assert sum(lengths) > 4 * MOST_TOKENS
    inputs = batch(np.random.default_rng(2), lengths)
    plain, fast = both(params, config, inputs)
    assert_equal_at_real_tokens(plain, fast, inputs["attention_mask"], 1e-5)


def test_the_number_of_threads_does_not_change_a_bit():
    params, config = model((2, 8, 32, 2))
    inputs = batch(np.random.default_rng(3), [200, 190, 100, 90, 80, 5, 4, 3])
    results = [both(params, config, inputs, threads=n)[1] for n in (1, 2, 5)]
    for other in results[1:]:
        for name in ("last_hidden_state", "pooler_output"):
            assert np.array_equal(other[name], results[0][name])
        assert np.array_equal(other["attention_probs"], results[0]["attention_probs"])


@pytest.mark.parametrize("processors, lengths, sizes", [
    (2, [32] * 3, [96]), (2, [32] * 4, [64, 64]), (2, [512], [512]),
    (2, [30] * 20, [180, 210, 210]), (2, [128] * 8, [256] * 4), (2, [1, 2, 3], [6]),
    (2, [10, 100, 150, 40], [150, 150]), (1, [32] * 8, [256]), (None, [4, 4], [8]),
    (8, [32] * 4, [128]), (8, [512] * 2, [1024]), (8, [128] * 8, [128] * 8),
    (8, [64] * 3, [64] * 3),
])  # fmt: skip
def test_parts_are_of_like_size_and_keep_all_processors_busy(
    monkeypatch, processors, lengths, sizes
):
    monkeypatch.setattr(fast.os, "cpu_count", lambda: processors)
    parts = fast._parts(np.array(lengths))
    assert sorted(np.concatenate(parts)) == list(range(len(lengths)))
    assert [sum(lengths[row] for row in part) for part in parts] == sizes
    with fast._threads(len(parts), None) as run_all:
        assert (run_all is map) == (len(parts) == 1)
        assert list(run_all(len, parts)) == list(map(len, parts))


def test_without_attention_the_rest_is_the_same():
    params, config = model((2, 8, 32, 2))
    inputs = batch(np.random.default_rng(4), [9, 5, 7])
    _, kept = both(params, config, inputs)
    _, fast = both(params, config, inputs, return_attention=False)
    assert fast["attention_probs"] == []
    np.testing.assert_allclose(
        fast["last_hidden_state"], kept["last_hidden_state"], rtol=0, atol=1e-6
    )


def test_the_mask_is_derived_and_the_pooler_may_be_missing():
    params, config = model((2, 3, 5, 1))
    ids = [[4, 5, 6, 0, 0], [7, 8, 9, 10, 11]]
    fast = fast_bert(ids, prepare(params, config), config)
    plain = bert(ids, params, config)
    np.testing.assert_allclose(
        fast["last_hidden_state"][0, :3],
        plain["last_hidden_state"][0, :3],
        rtol=0,
        atol=1e-6,
    )
    assert not fast["last_hidden_state"][0, 3:].any()
    del params["pooler"]
    assert fast_bert(ids, prepare(params, config), config)["pooler_output"] is None


@pytest.mark.parametrize("row", [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]])
def test_padding_elsewhere_than_on_the_right_takes_the_plain_path(row):
    params, config = model((2, 3, 5, 1))
    ids, mask = [[9, 8, 5, 6], [4, 5, 6, 7]], [row, [1, 1, 1, 0]]
    with pytest.warns(UserWarning, match="not only on the right: plain bert runs"):
        fast = fast_bert(ids, prepare(params, config), config, attention_mask=mask)
    plain = bert(ids, params, config, attention_mask=mask)
    assert np.array_equal(fast["last_hidden_state"], plain["last_hidden_state"])
    assert np.array_equal(fast["attention_probs"], plain["attention_probs"])


def test_nothing_given_is_written_to():
    params, config = model((2, 3, 5, 2))
    before = {path: a.copy() for path, a in leaves(params)}
    for _, array in leaves(params):
        array.flags.writeable = False
    inputs = batch(np.random.default_rng(5), [9, 5, 7])
    for array in inputs.values():
        array.flags.writeable = False
    prepared = prepare(params, config)
    frozen = {path: a.copy() for path, a in leaves({"qkv": prepared["qkv"]})}
    fast_bert(
        inputs["input_ids"], prepared, config, attention_mask=inputs["attention_mask"]
    )
    assert all(np.array_equal(a, before[path]) for path, a in leaves(params))
    assert all(
        np.array_equal(a, frozen[path]) for path, a in leaves({"qkv": prepared["qkv"]})
    )


@pytest.mark.parametrize("change, message", [
    ({"input_ids": [[31]]}, r"input_ids\[0, 0\] = 31, allowed 0..30"),
    ({"input_ids": [[1] * 601]}, "601 positions, allowed: at most 600"),
    ({"input_ids": [[1, 2]], "segment_ids": [[0, 2]]}, "segment_ids"),
    ({"input_ids": [[1, 2]], "attention_mask": [[1, 2]]}, "attention_mask"),
])  # fmt: skip
def test_errors_are_those_of_bert(change, message):
    params, config = model((2, 3, 5, 1))
    prepared = prepare(params, config)
    with pytest.raises(BertError, match=message) as fast:
        fast_bert(config=config, prepared=prepared, **change)
    with pytest.raises(BertError) as plain:
        bert(params=params, config=config, **change)
    assert str(fast.value) == str(plain.value)


def test_parameters_are_checked_once():
    params, config = model((2, 3, 5, 1))
    del params["layers"][0]["ffn"]
    with pytest.raises(BertError, match="ffn"):
        prepare(params, config)
