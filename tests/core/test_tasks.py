"""Text to answers: masked words, next sentence, sentence vectors."""

import json
import math

import numpy as np
import pytest
from make_minilm_cosines import GOLDEN, MAX_LENGTH, SENTENCES

import bert_np
from bert_np import BertError, embed_sentences, fill_mask, next_sentence

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]


@pytest.fixture(scope="module")
def toy():
    config = bert_np.BertConfig(
        vocab_size=12, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=12, initializer_range=0.5,
    )  # fmt: skip
    params = bert_np.init_params(config, np.random.default_rng(0), heads=True)
    return params, config, bert_np.Tokenizer.from_tokens(WORDS)


def test_fill_mask_gives_the_softmax_of_the_logits(toy):
    params, config, tokenizer = toy
    guesses = fill_mask("the [MASK] sat.", *toy, top_k=3)
    ids = tokenizer.encode("the [MASK] sat.").input_ids[None]
    hidden = bert_np.bert(ids, params, config)["last_hidden_state"]
    logits = bert_np.masked_lm_logits(hidden, params, config)[0, 2, : len(WORDS)]
    probs = np.exp(logits) / np.exp(logits).sum()
    best = np.argsort(-probs)[:3]
    assert len(guesses) == 1
    assert [word for word, _ in guesses[0]] == [WORDS[i] for i in best]
    np.testing.assert_allclose([p for _, p in guesses[0]], probs[best], rtol=1e-5)


def test_fill_mask_answers_each_mask_in_order(toy):
    both = fill_mask("[MASK] cat [MASK]", *toy, top_k=len(WORDS))
    assert [len(guesses) for guesses in both] == [len(WORDS)] * 2
    assert both[0] != both[1]
    for guesses in both:
        probs = [p for _, p in guesses]
        assert probs == sorted(probs, reverse=True)
        assert math.isclose(sum(probs), 1, rel_tol=1e-9)


def test_fill_mask_reads_a_pair_as_two_segments(toy):
    pair = fill_mask(("the cat", "[MASK]"), *toy)
    assert pair != fill_mask("the cat [SEP] [MASK]", *toy)


@pytest.mark.parametrize(
    "text, culprit", [("the cat", "no [MASK]"), ("the [mask]", "no [MASK]"), (3, "int")]
)
def test_fill_mask_refuses_a_text_without_mask(toy, text, culprit):
    with pytest.raises(BertError) as error:
        fill_mask(text, *toy)
    assert culprit in str(error.value)


@pytest.mark.parametrize("top_k", [0, -1, 11, 2.0, True, "5"])
def test_fill_mask_refuses_top_k(toy, top_k):
    with pytest.raises(BertError, match="top_k"):
        fill_mask("[MASK]", *toy, top_k=top_k)


def test_next_sentence_is_the_first_column(toy):
    params, config, tokenizer = toy
    pair = tokenizer.encode("the cat", "sat.")
    out = bert_np.bert(
        pair.input_ids[None], params, config, segment_ids=pair.segment_ids[None]
    )
    follows, other = bert_np.next_sentence_logits(out["pooler_output"], params)[0]
    expected = 1 / (1 + math.exp(other - follows))
    assert math.isclose(next_sentence("the cat", "sat.", *toy), expected, rel_tol=1e-5)


@pytest.mark.parametrize(
    "absent, task",
    [("mlm", lambda m: fill_mask("[MASK]", *m)),
     ("nsp", lambda m: next_sentence("the", "cat", *m)),
     ("pooler", lambda m: next_sentence("the", "cat", *m))],
)  # fmt: skip
def test_a_model_without_the_head_says_so(toy, absent, task):
    params = {name: part for name, part in toy[0].items() if name != absent}
    with pytest.raises(BertError, match=absent):
        task((params, *toy[1:]))


@pytest.mark.parametrize(
    "task",
    [lambda m: fill_mask("[MASK]", *m), lambda m: next_sentence("a", "b", *m),
     lambda m: embed_sentences(["a"], *m)],
)  # fmt: skip
def test_a_checkpoint_without_vocabulary_says_so(toy, task):
    with pytest.raises(BertError, match="vocab.txt"):
        task((*toy[:2], None))


def test_sentence_vectors_do_not_depend_on_company(toy):
    texts = ["the cat sat.", "cat", "", "the the the cats", "sat"]
    together = embed_sentences(texts, *toy, batch_size=2)
    alone = np.concatenate([embed_sentences([text], *toy) for text in texts])
    assert together.shape == (5, 8) and together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_no_sentences_give_no_vectors(toy):
    assert embed_sentences([], *toy).shape == (0, 8)


@pytest.mark.parametrize(
    "texts, options, culprit",
    [("the cat", {}, "texts is str"),
     (["the"], {"batch_size": 0}, "batch_size = 0"),
     (["the", 3], {}, "int"),
     (["the " * 11], {}, "13 positions, allowed: at most 12")],
)  # fmt: skip
def test_embed_sentences_refuses(toy, texts, options, culprit):
    with pytest.raises(BertError, match=culprit):
        embed_sentences(texts, *toy, **options)


def test_cosines_equal_those_of_sentence_transformers(minilm):
    golden = np.array(json.loads(GOLDEN.read_text())["cosines"])
    vectors = embed_sentences(SENTENCES, *minilm, max_length=MAX_LENGTH, batch_size=8)
    assert golden.shape == (len(SENTENCES),) * 2
    np.testing.assert_allclose(vectors @ vectors.T, golden, atol=1e-5)


def test_minilm_has_no_pretraining_heads(minilm):
    with pytest.raises(BertError, match="MLM"):
        fill_mask("the [MASK] sat.", *minilm)
    with pytest.raises(BertError, match="NSP"):
        next_sentence("one", "two", *minilm)
