"""Answers, against every span of every window in plain loops."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.toy import CONFIG, PARAMS, TOY, without

import bert_np
from bert_np import BertError, answer
from bert_np.tasks.answers import Answer

WORDS = st.lists(st.sampled_from(["the", "cats", "sat", "."]), min_size=1, max_size=20)


def every_span(question, words, longest, room, overlap):
    """[(score, first word, last word)] of all spans, and of [CLS] in each window.

    Also the sum of the exponentials of all starts times that of all ends.
    """
    pieces = [
        (piece, i) for i, w in enumerate(words) for piece in TOY.tokenizer.tokenize(w)
    ]
    asked, spans, nothing, starts, ends = question.split(), [], [], [], []
    for a in range(0, max(1, len(pieces) - overlap), room - overlap):
        part = pieces[a : a + room]
        tokens = ["[CLS]", *asked, "[SEP]", *(piece for piece, _ in part), "[SEP]"]
        ids = [[TOY.tokenizer.vocab[token] for token in tokens]]
        segments = [[0] * (len(asked) + 2) + [1] * (len(part) + 1)]
        hidden = bert_np.bert(ids, PARAMS, CONFIG, segment_ids=segments)
        start, end = (
            row[0].astype(float).tolist()
            for row in bert_np.span_logits(hidden["last_hidden_state"], PARAMS)
        )
        nothing.append(start[0] + end[0])
        first = len(asked) + 2
        starts += [start[0], *start[first:-1]]
        ends += [end[0], *end[first:-1]]
        for i in range(len(part)):
            for j in range(i, min(i + longest, len(part))):
                score = start[first + i] + end[first + j]
                spans.append((score, part[i][1], part[j][1]))
    return spans, min(nothing), sum(map(math.exp, starts)) * sum(map(math.exp, ends))


def characters(words, i, j):
    """Where the words from i to j stand in the text that they make."""
    start = sum(len(word) + 1 for word in words[:i])
    return start, start + len(" ".join(words[i : j + 1]))


@settings(max_examples=20)
@given(WORDS, st.integers(1, 5), st.integers(6, 12), st.integers(0, 2))
def test_the_best_span_of_all_windows_is_the_answer(words, longest, length, overlap):
    question, text = "the cat", " ".join(words)
    options = {"max_length": length, "longest": longest}
    room = length - 5
    overlap = min(overlap, room - 1)
    spans, nothing, total = every_span(question, words, longest, room, overlap)
    score = max(span[0] for span in spans)
    found = answer(question, text, *TOY, overlap=overlap, **options)
    assert found.text == text[found.start : found.end]
    assert found.probability == pytest.approx(math.exp(score) / total, rel=1e-4)
    near = {(i, j) for s, i, j in spans if s > score - 1e-5}
    assert (found.start, found.end) in {characters(words, i, j) for i, j in near}
    options |= {"overlap": overlap}
    gap = score - nothing
    sure = answer(question, text, *TOY, no_answer_threshold=gap - 1e-4, **options)
    assert sure == found
    none = answer(question, text, *TOY, no_answer_threshold=gap + 1e-4, **options)
    probability = pytest.approx(math.exp(nothing) / total, rel=1e-4)
    assert none == Answer("", 0, 0, probability)


def test_the_config_says_whether_there_may_be_no_answer():
    text = "the cat sat."
    always = answer("cat", text, *TOY)
    assert always.text and answer("cat", text, *TOY, no_answer_threshold=-1e9)
    config = replace(CONFIG, no_answer_threshold=1e9)
    model = TOY._replace(config=config)
    assert answer("cat", text, *model).text == ""
    assert answer("cat", text, *model, no_answer_threshold=-1e9) == always
    assert bert_np.BertConfig.from_dict(config.to_dict()) == config


def test_spaces_and_accents_keep_their_places():
    text = "  the  CÁTS\tsat . "
    found = answer("the", text, *TOY, longest=1)
    words = {(2, 5), (7, 11), (12, 15), (16, 17)}
    assert (found.start, found.end) in words
    assert found.text == text[found.start : found.end]


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (("", "cat"), {}, "^question = '' has no words"),
        (("cat", " \u200b"), {}, "^text = .* has no words"),
        ((3, "cat"), {}, "^question must be a str, got int"),
        (("cat", ["cat"]), {}, "^text must be a str, got list"),
        (
            ("cat " * 9, "cat"),
            {},
            "^question has 9 pieces, allowed: at most 8 in",
        ),
        (("cat", "cat"), {"max_length": 13}, "^max_length = 13, allowed: 1..12"),
        (
            ("cat", "cat"),
            {"max_length": 4},
            "^question has 1 pieces, allowed: at m",
        ),
        (("cat", "cat"), {"overlap": 8}, "^overlap = 8, allowed: 0..7"),
        (("cat", "cat"), {"longest": 0}, "^longest = 0, allowed: an int >= 1"),
        (
            ("cat", "cat"),
            {"no_answer_threshold": math.nan},
            "^no_answer_threshold = nan, allowed: a finite",
        ),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(arguments, options, message):
    with pytest.raises(BertError, match=message):
        answer(*arguments, *TOY, **options)


def test_a_model_without_the_head_or_with_one_segment_is_refused():
    with pytest.raises(BertError, match="no 'span': .*parts present: embeddings, lay"):
        answer("cat", "cat", *without("span"))
    with pytest.raises(BertError, match="vocab.txt"):
        answer("cat", "cat", PARAMS, CONFIG, None)
    tables = PARAMS["embeddings"]
    params = PARAMS | {"embeddings": tables | {"segment": tables["segment"][:1]}}
    config = replace(CONFIG, type_vocab_size=1)
    with pytest.raises(BertError, match="^question with text: a pair, but the model"):
        answer("cat", "cat", params, config, TOY.tokenizer)
