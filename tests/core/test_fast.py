"""The fast path gives what bert gives, whatever the batch and the threads."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from bert_np import BertConfig, BertError, bert, fast, init_params
from bert_np.fast import fast_bert, prepare
from bert_np.tree import map_leaves


def model(A=2, D=3, F=5, L=1, dtype=np.float32, hidden_act="gelu"):
    config = BertConfig(31, A * D, L, A, F, hidden_act, max_position_embeddings=600)
    rng = np.random.default_rng(0)

    def shake(path, array):  # no bias may be 0
        return (array + 0.2 * rng.standard_normal(array.shape)).astype(dtype)

    return map_leaves(shake, init_params(config, rng)), config


def batch(lengths):
    """Ids, segments and mask of rows of these lengths, padded on the right."""
    rng = np.random.default_rng(1)
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(int)
    ids, segment_ids = rng.integers(1, 31, mask.shape), rng.integers(0, 2, mask.shape)
    return {"input_ids": ids, "segment_ids": segment_ids, "attention_mask": mask}


def run(params, config, inputs, **options):
    options["prepared"] = prepare(params, config)
    return fast_bert(**inputs, config=config, **options)


def assert_equal_at_real_tokens(params, config, inputs, atol, **options):
    plain = bert(**inputs, params=params, config=config)
    found, real = run(params, config, inputs, **options), inputs["attention_mask"] == 1
    assert found.keys() == plain.keys()
    pairs = [(found["last_hidden_state"], plain["last_hidden_state"])]
    for maps in zip(found["attention_probs"], plain["attention_probs"], strict=True):
        pairs.append([array.swapaxes(1, 2) for array in maps])  # (B, Tq, A, Tk)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours[real], theirs[real], rtol=0, atol=atol)
        assert not ours[~real].any() and ours.dtype == theirs.dtype
    pooled = found["pooler_output"], plain["pooler_output"]
    np.testing.assert_allclose(*pooled, rtol=0, atol=atol)


SIZES = [st.integers(1, n) for n in (4, 9, 20, 3)]
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=9)


@settings(max_examples=40)
@given(st.tuples(*SIZES), LENGTHS, st.integers(1, 4), st.booleans())
def test_equal_over_sizes_lengths_masks_and_threads(sizes, lengths, threads, double):
    dtype, atol = (np.float64, 1e-12) if double else (np.float32, 1e-5)
    params, config = model(*sizes, dtype=dtype)
    assert_equal_at_real_tokens(params, config, batch(lengths), atol, threads=threads)


@pytest.mark.parametrize("n", [1, 3, 60])
def test_many_texts_of_one_length(n):
    params, config = model(3, 7, 11, 2)
    assert_equal_at_real_tokens(params, config, batch([70] + [n] * 90 + [2, n]), 1e-5)


@given(LENGTHS, st.data())
def test_pieces_hold_each_query_once_beside_all_keys_of_its_text(lengths, data):
    ends = np.cumsum(lengths)
    start, stop = sorted(data.draw(st.integers(0, int(ends[-1]))) for _ in range(2))
    asked = []
    for rows, queries, keys in fast._pieces(np.array(lengths), slice(start, stop), 2):
        texts = range(len(lengths))[rows]
        assert len({lengths[row] for row in texts}) == 1
        assert keys == slice(ends[rows.start] - lengths[rows.start], ends[texts[-1]])
        assert len(texts) == 1 or queries == keys
        assert keys.start <= queries.start < queries.stop <= keys.stop
        asked += range(queries.start, queries.stop)
    assert asked == list(range(start, stop))


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_equal_in_many_parts_and_for_every_activation(monkeypatch, act):
    monkeypatch.setattr(fast, "MOST_TOKENS", 256)
    monkeypatch.setattr(fast, "BLOCK", 1000)
    monkeypatch.setattr(fast, "SCORES", 20_000)
    lengths = [512, 1, 300, 2, 60, 61, 62, 63, 64, 200]
    params, config = model(3, 7, 11, 2, hidden_act=act)
    assert_equal_at_real_tokens(params, config, batch(lengths), 1e-5)


def test_the_number_of_threads_does_not_change_a_bit():
    inputs = batch([200, 190, 100, 90, 80, 5, 4, 3])
    one, *others = (run(*model(2, 8, 32, 2), inputs, threads=n) for n in (1, 2, 5))
    for other in others:
        for name in one:
            assert np.array_equal(other[name], one[name]), name


@pytest.mark.parametrize(
    "processors, total, sizes",
    [
        (1, 100, [100]),
        (1, 1024, [1024]),
        (1, 2400, [800] * 3),
        (2, 127, [127]),
        (2, 128, [64, 64]),
        (2, 1201, [600, 601]),
        (2, 2049, [512] * 3 + [513]),
        (None, 8, [8]),
        (8, 127, [127]),
        (8, 192, [64] * 3),
        (8, 0, [0]),
    ],
)
def test_parts_are_of_like_size_and_keep_all_processors_busy(
    monkeypatch, processors, total, sizes
):
    monkeypatch.setattr(fast.os, "cpu_count", lambda: processors)
    parts = fast._parts(total)
    tokens = [list(range(total))[part] for part in parts]
    assert sum(tokens, []) == list(range(total))
    assert list(map(len, tokens)) == sizes
    with fast.map_over_threads(len(parts)) as run_all:
        assert list(run_all(_length, parts)) == sizes


def _length(part):
    return part.stop - part.start


def test_one_long_text_is_computed_by_all_threads(monkeypatch):
    used, attend = set(), fast._attend

    def noted(*arguments):
        used.add(threading.get_ident())
        meet.wait(timeout=30)
        attend(*arguments)

    meet = threading.Barrier(2)  # both threads must be inside at once
    monkeypatch.setattr(fast.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(fast, "_attend", noted)
    (params, config), inputs = model(2, 8, 32, 2), batch([512])
    assert_equal_at_real_tokens(params, config, inputs, 1e-5)
    assert len(used) == 2


def blas_threads():
    return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


@pytest.fixture
def found():
    """BLAS with three threads, set and set back by threads that have ended.

    With threadpoolctl 3.8 no other thread could change the limits of BLAS
    while the one that set them is alive.
    """
    with ThreadPoolExecutor(1) as pool:
        limits = pool.submit(threadpool_limits, 3, user_api="blas").result()
    yield blas_threads()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(limits.restore_original_limits).result()


@pytest.mark.parametrize("fails", ["", "A", "B"])
@pytest.mark.parametrize("order", ["AaBb", "ABab", "ABba", "ABaCbc", "ABCacb"])
def test_overlapping_calls_leave_blas_as_it_was(found, order, fails):
    calls = {name: fast.map_over_threads(2) for name in set(order.upper())}
    with ExitStack() as stack:
        threads = {n: stack.enter_context(ThreadPoolExecutor(1)) for n in calls}
        for step in order:  # a capital enters, a small letter leaves
            name = step.upper()
            call, error = calls[name], RuntimeError() if name in fails else None
            if step == name:
                threads[name].submit(call.__enter__).result()
                assert step != "A" or blas_threads() <= {1}
            else:
                how = type(error) if error else None, error, None
                assert not threads[name].submit(call.__exit__, *how).result()
        assert blas_threads() == found


def test_fast_bert_in_many_threads_leaves_blas_as_it_was(found):
    (params, config), inputs = model(), batch([200, 190, 100])
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: run(params, config, inputs), range(16)))
    assert blas_threads() == found
    first = results[0]["last_hidden_state"]
    assert all(np.array_equal(each["last_hidden_state"], first) for each in results)


def test_on_webassembly_no_thread_is_started(monkeypatch):
    (params, config), inputs = model(), batch([200, 190, 100])
    threaded = run(params, config, inputs)
    monkeypatch.setattr(fast, "ThreadPoolExecutor", None)
    monkeypatch.setattr(sys, "platform", "emscripten")
    with fast.map_over_threads(2) as run_all:
        assert run_all is map
    alone = run(params, config, inputs)
    assert np.array_equal(alone["last_hidden_state"], threaded["last_hidden_state"])


def test_attention_may_be_left_out_and_the_pooler_missing():
    (params, config), inputs = model(2, 8, 32, 2), batch([9, 5, 7])
    kept = run(params, config, inputs)
    del params["pooler"]
    found = run(params, config, inputs, return_attention=False)
    assert found["attention_probs"] == [] and found["pooler_output"] is None
    hidden = found["last_hidden_state"], kept["last_hidden_state"]
    np.testing.assert_allclose(*hidden, rtol=0, atol=1e-6)


def test_a_batch_of_no_texts():
    (params, config), none = model(), {"input_ids": np.zeros((0, 5), int)}
    plain, found = bert(**none, params=params, config=config), run(params, config, none)
    for name in ("last_hidden_state", "pooler_output", "attention_probs"):
        assert np.shape(found[name]) == np.shape(plain[name])


@pytest.mark.parametrize("row", [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]])
def test_padding_elsewhere_than_on_the_right_takes_the_plain_path(row):
    params, config = model()
    inputs = {"input_ids": [[9, 8, 5, 6]] * 2, "attention_mask": [row, [1, 1, 1, 0]]}
    with pytest.warns(UserWarning, match="not only on the right: plain bert runs"):
        found = run(params, config, inputs)
    plain = bert(**inputs, params=params, config=config)
    for name in plain:
        assert np.array_equal(found[name], plain[name]), name


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"input_ids": [[31]]}, r"input_ids\[0, 0\] = 31, allowed 0..30"),
        ({"input_ids": [[1, 2]], "segment_ids": [[0, 2]]}, "segment_ids"),
        ({"input_ids": [[1, 2]], "attention_mask": [[1, 2]]}, "attention_mask"),
    ],
)
def test_errors_are_those_of_bert(inputs, message):
    params, config = model()
    for call in (run, lambda p, c, i: bert(**i, params=p, config=c)):
        with pytest.raises(BertError, match=message):
            call(params, config, inputs)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prepared": model()[0]}, r"^prepared is dict, allowed: what prepare\(params"),
        ({"prepared": None}, "^prepared is NoneType"),
        ({"config": {}}, "^config is dict"),
        ({"config": model(A=1, D=6)[1]}, "^config.num_attention_heads = 1, but .* 2;"),
        ({"config": model(L=2)[1]}, "^config.num_hidden_layers = 2, but .* with 1;"),
        ({"return_attention": 0}, "^return_attention = 0"),
        ({"return_attention": "no"}, "^return_attention = 'no'"),
        ({"threads": 0}, "^threads = 0, allowed: an int >= 1"),
        ({"threads": "2"}, "^threads = '2'"),
    ],
)
def test_what_prepare_did_not_make_is_refused(options, message):
    params, config = model()
    arguments = {"prepared": prepare(params, config), "config": config, **options}
    with pytest.raises(BertError, match=message):
        fast_bert([[1, 2]], **arguments)
