"""Sentence vectors and search, against plain bert and sentence-transformers."""

import dataclasses
import json

import numpy as np
import pytest
from golden_values import GOLDEN
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.toy import CONFIG, PARAMS, TOY
from tools.make_minilm_cosines import MAX_LENGTH, SENTENCES

import bert_np
from bert_np import BertError, embed_sentences, search


def test_sentence_vectors_do_not_depend_on_company():
    texts = ["the cat sat.", "cat", "", "the the the cats", "sat"]
    together = embed_sentences(texts, *TOY, batch_size=2)
    alone = np.concatenate([embed_sentences([text], *TOY) for text in texts])
    assert together.shape == (5, 8) and together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    assert embed_sentences([], *TOY).shape == (0, 8)


POOLED = {
    "cls": lambda rows: rows[0],
    "max": lambda rows: rows.max(axis=0),
    "mean": lambda rows: rows.mean(axis=0),
    "mean_sqrt_len_tokens": lambda rows: rows.sum(axis=0) / len(rows) ** 0.5,
    "weightedmean": lambda rows: np.average(
        rows, axis=0, weights=range(1, len(rows) + 1)
    ),
    "lasttoken": lambda rows: rows[-1],
}


@pytest.mark.parametrize("pooling", [*POOLED, "cls+mean_sqrt_len_tokens"])
def test_every_pooling_is_computed_over_the_real_tokens(pooling):
    texts = ["the cat sat.", "cat", "the the the cats"]
    vectors = embed_sentences(texts, *TOY, pooling=pooling)
    asked = TOY._replace(config=dataclasses.replace(CONFIG, pooling=pooling))
    np.testing.assert_array_equal(vectors, embed_sentences(texts, *asked))
    for text, vector in zip(texts, vectors):
        inputs = TOY.tokenizer.encode(text).inputs
        rows = bert_np.bert(**inputs, params=PARAMS, config=CONFIG)["last_hidden_state"]
        wanted = np.concatenate([POOLED[way](rows[0]) for way in pooling.split("+")])
        wanted /= np.linalg.norm(wanted)
        np.testing.assert_allclose(vector, wanted, atol=1e-6)


TEXTS = st.lists(st.text("the cat s.", max_size=20), min_size=1, max_size=9)


@settings(max_examples=30)
@given(TEXTS, st.integers(1, 12), st.integers(1, 9))
def test_search_sorts_the_texts_by_their_cosine(texts, top_k, size):
    vectors = embed_sentences(texts, *TOY, max_length=12, batch_size=size)
    asked = embed_sentences(["cat"], *TOY)[0]
    found = search("cat", texts, *TOY, top_k=top_k, max_length=12)
    cosines = [float(sum(vector * asked)) for vector in vectors]
    assert len(found) == min(top_k, len(texts))
    assert [text for text, _, _ in found] == [texts[i] for *_, i in found]
    for _, cosine, i in found:
        assert abs(cosine - cosines[i]) < 1e-5
    best = sorted(cosines, reverse=True)[:top_k]
    np.testing.assert_allclose([cosine for _, cosine, _ in found], best, atol=1e-5)
    again = search("cat", texts, *TOY, top_k=top_k, vectors=vectors)
    np.testing.assert_allclose([f.cosine for f in again], best, atol=1e-5)


def test_search_finds_what_is_meant(minilm):
    texts = ["The dog barks.", "A kitten is asleep.", "Stock prices fell."]
    first, _ = search("sleeping cats", texts, *minilm, top_k=2)
    assert (first.text, first.index) == (texts[1], 1)


NONE = np.zeros((1, 8))


@pytest.mark.parametrize(
    "task, arguments, message",
    [
        (embed_sentences, (["the"], PARAMS, CONFIG, None), "vocab.txt"),
        (embed_sentences, ("the cat", *TOY), "^texts is str, allowed: a list of str"),
        (embed_sentences, (["the"], *TOY, None, 0), "^batch_size = 0"),
        (embed_sentences, (["the"], *TOY, None, 9, "best"), "^pooling = 'best'"),
        (embed_sentences, (["the", 3], *TOY), r"^texts\[1\] must be a str, got int"),
        (embed_sentences, (["the", "\ud800"], *TOY), r"^texts\[1\]\[0\] is U\+D800"),
        (
            embed_sentences,
            (["the", "the " * 11, "cat"], *TOY),
            r"^texts\[1\] has 13 tokens, allowed: at most 12; max_length=12 cuts it",
        ),
        (search, (3, ["the"], *TOY), "^query must be a str, got int"),
        (
            search,
            ("the " * 11, ["the"], *TOY),
            "^query has 13 tokens, .*=12 cuts",
        ),
        (search, ("the", "the", *TOY), "^texts is str, allowed: a list of str"),
        (
            search,
            ("the", ["the", None], *TOY),
            r"^texts\[1\] must be a str",
        ),
        (search, ("the", ["the"], *TOY, 0), "^top_k = 0, allowed: an int >= 1"),
        (
            search,
            ("the", ["a", "b"], *TOY, 5, None, None, NONE),
            r"\(1, 8\), all.* \(2, 8",
        ),
        (
            search,
            ("the", ["a"], *TOY, 5, None, None, [1]),
            "^vectors is list, allowed",
        ),
        (search, ("the", ["a"], PARAMS, CONFIG, None), "vocab.txt"),
    ],
)
def test_a_task_of_sentences_says_what_it_cannot_do(task, arguments, message):
    with pytest.raises(BertError, match=message):
        task(*arguments)


def test_the_advice_on_a_long_text_helps():
    assert embed_sentences(["the", "the " * 11], *TOY, max_length=12).shape == (2, 8)


def test_cosines_equal_those_of_sentence_transformers(minilm):
    golden = json.loads((GOLDEN / "minilm_cosines.json").read_text())["cosines"]
    vectors = embed_sentences(SENTENCES, *minilm, max_length=MAX_LENGTH, batch_size=8)
    np.testing.assert_allclose(vectors @ vectors.T, golden, atol=1e-5)
