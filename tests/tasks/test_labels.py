"""Labels of texts and words, against plain bert and a regular expression."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.toy import CONFIG, LABELS, PARAMS, TOY, plain_bert, without

import bert_np
from bert_np import BertError, classify, tag
from bert_np.tasks.labels import Span, join_spans

TEXTS = ["the cat sat.", ("cat", "sat."), "", "the the the cats", "sat", "cat " * 10]


def asked(**changes):
    return TOY._replace(config=replace(CONFIG, **changes))


def logits_of(text):
    _, pooled = plain_bert(*(text if isinstance(text, tuple) else (text,)))
    return bert_np.sequence_logits(pooled, PARAMS)[0].astype(float)


# -------------------------------------------------------- a text as a whole
def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def logistic(logits):
    return [1 / (1 + math.exp(-x)) for x in logits]


@pytest.mark.parametrize(
    "problem, scores",
    [
        (None, softmax),
        ("single_label_classification", softmax),
        ("multi_label_classification", logistic),
        ("regression", list),
    ],
)
def test_scores_of_labels_are_those_of_plain_bert(problem, scores):
    found = classify(TEXTS, *asked(problem_type=problem))
    assert len(found) == len(TEXTS)
    for text, ranked in zip(TEXTS, found):
        wanted = dict(zip(LABELS, scores(logits_of(text))))
        assert dict(ranked) == pytest.approx(wanted, abs=1e-5)
        values = [score for _, score in ranked]
        if problem == "regression":
            assert [label for label, _ in ranked] == list(LABELS)
        else:
            assert values == sorted(values, reverse=True)


def test_the_best_labels_alone():
    everything = classify(TEXTS, *TOY)
    assert classify(TEXTS, *TOY, top_k=2) == [ranked[:2] for ranked in everything]
    assert classify([], *TOY) == []
    (cut,) = classify(["cat " * 20], *TOY, max_length=6)
    assert dict(cut) == pytest.approx(dict(classify(["cat " * 4], *TOY)[0]), abs=1e-5)


def test_a_head_on_the_mean_reads_the_mean_of_the_real_tokens():
    for text, ranked in zip(TEXTS, classify(TEXTS, *asked(classifier_pooling="mean"))):
        hidden, _ = plain_bert(*(text if isinstance(text, tuple) else (text,)))
        vector = hidden.mean(axis=1)
        wanted = softmax(bert_np.sequence_logits(vector, PARAMS)[0].astype(float))
        assert dict(ranked) == pytest.approx(dict(zip(LABELS, wanted)), abs=1e-5)


def test_one_label_is_a_number_and_large_logits_do_not_overflow():
    params = without("token").params
    params["sequence"] = {"W": np.zeros((8, 1), "f4"), "b": np.ones(1, "f4")}
    config = replace(CONFIG, labels=("stars",))
    assert classify(["cat"], params, config, TOY.tokenizer) == [[("stars", 1.0)]]
    params["sequence"]["b"][0] = -1e5
    config = replace(config, problem_type="multi_label_classification")
    with np.errstate(over="raise"):
        (((_, found),),) = classify(["cat"], params, config, TOY.tokenizer)
    assert 0 <= found < 1e-300


# ---------------------------------------------------------- word by word
def words_and_probs(text):
    """{(start, end): probabilities of its first piece} of a text."""
    encoding, words = TOY.tokenizer.encode(text), {}
    hidden, _ = plain_bert(text)
    rows = bert_np.token_logits(hidden, PARAMS)[0].astype(float)
    for token, (start, end), row in list(zip(encoding.tokens, encoding.offsets, rows))[
        1:-1
    ]:
        if token.startswith("##"):
            (first, _), probs = words.popitem()
            words[first, end] = probs
        else:
            words[start, end] = softmax(row)
    return words


def test_a_word_has_the_label_of_its_first_piece():
    texts = ["the cats sat.", "cat", "", "Catss  CAT the dog.", "sat sat sat."]
    for text, (words, _) in zip(texts, tag(texts, *TOY), strict=True):
        wanted = words_and_probs(text)
        assert [(word.start, word.end) for word in words] == list(wanted)
        for word, probs in zip(words, wanted.values()):
            assert word.text == text[word.start : word.end]
            assert word.label == LABELS[probs.argmax()]
            assert word.probability == pytest.approx(probs.max(), abs=1e-5)


def test_a_list_of_words_stays_as_it_is():
    words = ["the", "cats.", "Sat", "cat sat"]
    ((found, spans),) = tag([words], *TOY)
    assert [word.text for word in found] == words
    assert [(word.start, word.end) for word in found] == [(i, i + 1) for i in range(4)]
    (whole,) = tag([" ".join(words)], *TOY)
    first = {word.text: word for word in whole.words}
    for word in found:
        same = first[re.match("cats|[a-zA-Z]+", word.text)[0]]
        if word.text != "cat sat":  # whose "sat" is a word of the text
            assert (word.label, word.text[:3]) == (same.label, same.text[:3])
    for span in spans:
        assert span.text == " ".join(words[span.start : span.end])


LETTERS = dict(zip(LABELS, "oPpLl")) | {"PER": "x", "B-": "x", "I": "x"}


@given(st.lists(st.sampled_from(sorted(LETTERS)), max_size=12))
def test_labels_are_joined_as_the_regular_expression_says(labels):
    text = "abcdefghijkl"
    words = [Span(text[i], x, (i + 1) / 20, i, i + 1) for i, x in enumerate(labels)]
    marks = "".join(LETTERS[label] for label in labels)
    wanted = [
        Span(
            text[slice(*run.span())],
            {"p": "PER", "l": "LOC"}[run[0][0].lower()],
            pytest.approx((run.start() + 1 + run.end()) / 40),
            *run.span(),
        )
        for run in re.finditer("Pp*|p+|Ll*|l+", marks)
    ]
    assert join_spans(text, words) == wanted


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["the", "cats", "sat"]), min_size=1, max_size=30))
def test_a_long_text_is_read_where_each_word_has_most_context(words):
    overlap, room = 4, CONFIG.max_position_embeddings - 2
    pieces = [piece for word in words for piece in TOY.tokenizer.tokenize(word)]
    best = [(-1, None)] * len(pieces)
    for start in range(0, max(1, len(pieces) - overlap), room - overlap):
        part = pieces[start : start + room]
        ids = [2, *(TOY.tokenizer.vocab[piece] for piece in part), 3]
        hidden = bert_np.bert([ids], PARAMS, CONFIG)["last_hidden_state"]
        rows = bert_np.token_logits(hidden, PARAMS)[0, 1:-1]
        for i, row in enumerate(rows):
            context = min(i, len(part) - 1 - i)
            if context > best[start + i][0]:
                best[start + i] = context, row
    first = [row for piece, (_, row) in zip(pieces, best) if not piece.startswith("##")]
    ((found, _),) = tag([" ".join(words)], *TOY, overlap=overlap)
    probs = [softmax(row.astype(float)).max() for row in first]
    assert [word.text for word in found] == words
    assert [word.probability for word in found] == pytest.approx(probs, abs=1e-5)


# ------------------------------------------------------------------ errors
TABLES = PARAMS["embeddings"]
SHORT = TOY._replace(
    params=PARAMS | {"embeddings": TABLES | {"position": TABLES["position"][:2]}},
    config=replace(CONFIG, max_position_embeddings=2),
)


@pytest.mark.parametrize(
    "task, arguments, message",
    [
        (classify, ("cat", *TOY), "^texts is str, allowed: a list of str or of pairs"),
        (classify, (["cat", 3], *TOY), r"^texts\[1\] must be a str, got int"),
        (classify, ([("a", "b", "c")], *TOY), r"^texts\[0\] must be a str, got tuple"),
        (classify, ([("a", "\ud800")], *TOY), r"^texts\[0\]\[1\]\[0\] is U\+D800"),
        (
            classify,
            (["a", "cat " * 11], *TOY),
            r"^texts\[1\] has 13 tokens, .* most",
        ),
        (classify, (["cat"], *TOY, 6), "^top_k = 6, allowed: 1..5"),
        (
            classify,
            (["cat"], *asked(problem_type="regression"), 1),
            "^top_k = 1",
        ),
        (classify, (["cat"], *TOY, None, 1), r"^texts\[0\]: max_length = 1"),
        (
            classify,
            (["cat"], *without("sequence")),
            "'sequence': .*head; parts present",
        ),
        (
            classify,
            (["cat"], *without("pooler")),
            "'pooler', which the sequence head",
        ),
        (classify, (["cat"], PARAMS, CONFIG, None), "vocab.txt"),
        (
            classify,
            (["cat"], *asked(labels=("a", "b"))),
            r"sequence.W has shape",
        ),
        (tag, ("cat", *TOY), "^texts is str, allowed: a list of str or of lists of"),
        (tag, ([3], *TOY), r"^texts\[0\] must be a str, got int"),
        (tag, (["cat", ["cat", 3]], *TOY), r"^texts\[1\]\[1\] must be a str, got int"),
        (tag, ([["cat", "\u200b"]], *TOY), r"^texts\[0\]\[1\] = '.*' has no pieces"),
        (tag, (["cat"], *TOY, 10), r"^overlap = 10, allowed: 0..9, less than"),
        (tag, (["cat"], *SHORT), "^no room for a text"),
        (tag, (["cat"], *without("token")), "no 'token': this model .* parts present"),
        (tag, (["cat"], PARAMS, CONFIG, TOY.tokenizer.tokens), "^tokenizer is tuple"),
    ],
)
def test_a_task_of_labels_says_what_it_cannot_do(task, arguments, message):
    with pytest.raises(BertError, match=message):
        task(*arguments)
