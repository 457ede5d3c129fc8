"""Batches and windows: what every task does with its texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks.toy import TOY

from bert_np import classify, embed_sentences, fast
from bert_np.tasks.batches import cut_batches, windows


@given(st.integers(0, 50), st.integers(1, 12), st.data())
def test_windows_cover_everything_and_share_the_overlap(length, room, data):
    overlap = data.draw(st.integers(0, room - 1))
    found = windows(length, room, overlap)
    assert found[0][0] == 0 and found[-1][1] == length
    assert all(0 <= end - start <= room for start, end in found)
    for (_, end), (start, _) in zip(found, found[1:]):
        assert end - start == overlap


@given(st.lists(st.integers(1, 512), max_size=60), st.none() | st.integers(1, 9))
def test_batches_hold_each_text_once_the_longest_first(lengths, size):
    batches = cut_batches(lengths, size)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or size or len(batch) * lengths[batch[0]] <= 4096
        assert size is None or len(batch) <= size


def test_ten_batches_show_their_progress_and_nine_do_not(capsys):
    embed_sentences(["the"] * 9, *TOY, batch_size=1)
    assert capsys.readouterr().err == ""
    embed_sentences(["the"] * 10, *TOY, batch_size=1)
    shown = capsys.readouterr().err
    assert "10/10" in shown and "batches" in shown


def test_an_interruption_leaves_nothing_behind(monkeypatch):
    texts = ["the cat sat", "cat"] * 9
    before, calls = classify(texts, *TOY), []
    held = fast.LOCK.locked()

    def interrupt(*arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fast, "embed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            classify(texts, *TOY)
    assert calls and not held and not fast.LOCK.locked()
    np.testing.assert_equal(classify(texts, *TOY), before)
