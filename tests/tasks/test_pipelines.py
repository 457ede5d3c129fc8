"""The tasks beside transformers: its pipelines, and its model for questions.

transformers 5 has no pipeline for questions any more. There the model and
the windows are its own, and the best span is sought in plain loops.

Where the pipelines mean something else, the tests say so: a single label
without a problem_type goes through their sigmoid and is a number here, and
labels without B- and I- make spans there and none here.
"""

from dataclasses import replace

import numpy as np
import pytest

import bert_np
from bert_np import answer, classify, tag
from bert_np.files.checkpoint import save_pretrained

pytestmark = pytest.mark.references
TEXTS = ["the cat sat on the mat .", "Unhappily, cats sat.", "(no) dog's here", "mat"]
TEXTS += ["the big dog saw the small cat near the old house . " * 3]
NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Make a random model with a head: (ours, a pipeline of transformers)."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    toy = bert_np.load_pretrained("toy")

    def build(head, task, **changes):
        config = replace(toy.config, initializer_range=0.2, **changes)
        rng = np.random.default_rng(5)
        params = bert_np.init_params(config, rng, heads=[head])
        save_pretrained(tmp_path, params, config, toy.tokenizer)
        pipeline = task and transformers.pipeline(task, str(tmp_path), dtype="float32")
        return bert_np.load_pretrained(tmp_path), pipeline

    return build


def test_given_words_have_the_probabilities_of_the_pipeline(make):
    model, pipeline = make("mlm", "fill-mask")
    text, words = "the cat [MASK] on the mat .", ["sat", "saw", "##ing", "the", "play"]
    words = [word for word in words if word in model.tokenizer.vocab]
    (found,) = bert_np.fill_mask(text, *model, targets=[*words, "playing"])
    theirs = pipeline(text, targets=words, top_k=len(words))
    scores = {model.tokenizer.tokens[each["token"]]: each["score"] for each in theirs}
    assert len(scores) == len(words) >= 3
    assert {w: p for w, p in found if w != "playing"} == pytest.approx(scores, rel=1e-4)
    assert dict(found)["playing"] < dict(found)["play"]


@pytest.mark.parametrize(
    "labels, problem",
    [
        (("good", "bad", "neither"), None),
        (("good", "bad"), "single_label_classification"),
        (("new", "long", "loud"), "multi_label_classification"),
        (("only",), "multi_label_classification"),
        (("stars",), "regression"),
    ],
)
def test_labels_and_scores_are_those_of_the_pipeline(make, labels, problem):
    changes = {"labels": labels, "problem_type": problem}
    model, pipeline = make("sequence", "text-classification", **changes)
    found, wanted = classify(TEXTS, *model), pipeline(TEXTS, top_k=None)
    assert len(found) == len(wanted) == len(TEXTS)
    for ours, theirs in zip(found, wanted):
        assert [label for label, _ in ours] == [row["label"] for row in theirs]
        scores = [row["score"] for row in theirs]
        assert [score for _, score in ours] == pytest.approx(scores, abs=1e-5)
    pairs = [("the cat", "sat ."), ("a dog", "the mat")]
    both = pipeline([{"text": a, "text_pair": b} for a, b in pairs], top_k=1)
    for (first, *_), theirs in zip(classify(pairs, *model), both, strict=True):
        row = theirs[0] if isinstance(theirs, list) else theirs
        assert first == (row["label"], pytest.approx(row["score"], abs=1e-5))


def test_one_label_without_a_problem_type_is_read_as_a_number(make):
    model, pipeline = make("sequence", "text-classification", labels=("stars",))
    for ((_, number),), theirs in zip(classify(TEXTS, *model), pipeline(TEXTS)):
        assert 1 / (1 + np.exp(-number)) == pytest.approx(theirs["score"], abs=1e-5)


def same_span(ours, theirs):
    label = theirs["entity_group"]
    place = theirs["start"], theirs["end"]
    score = pytest.approx(theirs["score"], abs=1e-5)
    return ours[1:] == (label, score, *place)


def test_spans_are_those_of_the_strategy_first(make):
    model, pipeline = make("token", "token-classification", labels=NAMES)
    number = 0
    for text, (words, spans) in zip(TEXTS, tag(TEXTS, *model), strict=True):
        theirs = pipeline(text, aggregation_strategy="first")
        assert len(spans) == len(theirs)
        assert all(map(same_span, spans, theirs))
        rows = pipeline(text, aggregation_strategy="none", ignore_labels=[])
        starts = {row["start"]: row for row in rows}
        for word in words:
            row = starts[word.start]
            assert word.label == row["entity"]
            assert word.probability == pytest.approx(row["score"], abs=1e-5)
        number += len(spans)
    assert number > len(TEXTS)


def test_spans_are_those_of_the_strategy_simple_where_words_are_pieces(make):
    model, pipeline = make("token", "token-classification", labels=NAMES)
    whole = [
        text
        for text in TEXTS
        if not any(piece.startswith("##") for piece in model.tokenizer.tokenize(text))
    ]
    assert len(whole) >= 2
    for text, (_, spans) in zip(whole, tag(whole, *model)):
        theirs = pipeline(text, aggregation_strategy="simple")
        assert len(spans) == len(theirs) and all(map(same_span, spans, theirs))


def test_lists_of_words_are_those_of_the_pipeline(make):
    model, pipeline = make("token", "token-classification", labels=NAMES)
    words = TEXTS[1].replace(",", " ,").split()
    ((found, _),) = tag([words], *model)
    rows = pipeline(
        words,
        is_split_into_words=True,
        aggregation_strategy="none",
        ignore_labels=[],
    )
    (rows,) = rows if isinstance(rows[0], list) else [rows]
    places = {row["start"]: row for row in rows}
    assert [word.text for word in found] == words
    for i, word in enumerate(found):
        row = places[len(" ".join(words[:i])) + (i > 0)]
        assert word.label == row["entity"]
        assert word.probability == pytest.approx(row["score"], abs=1e-5)


def test_labels_without_b_and_i_make_no_spans_here(make):
    model, pipeline = make("token", "token-classification", labels=("NOUN", "VERB"))
    assert [spans for _, spans in tag(TEXTS, *model)] == [[]] * len(TEXTS)
    assert all(pipeline(text, aggregation_strategy="first") for text in TEXTS)


QUESTIONS = ["where is the cat ?", "who sat ?"]
LONG = "the big dog saw the small, unhappy cat near the old house . " * 8


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("text", [*TEXTS, LONG])
def test_answers_are_the_best_spans_of_its_model(make, tmp_path, question, text):
    import torch
    import transformers

    model, _ = make("span", None)
    reader = transformers.BertForQuestionAnswering.from_pretrained(tmp_path)
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path)
    options = {"stride": 8, "max_length": 40, "truncation": "only_second"}
    options |= {"return_overflowing_tokens": True, "return_token_type_ids": True}
    windows = tokenizer(question, text, **options)
    spans = []
    for w, ids in enumerate(windows["input_ids"]):
        segments = torch.tensor([windows["token_type_ids"][w]])
        with torch.no_grad():
            out = reader(torch.tensor([ids]), token_type_ids=segments)
        start, end = out.start_logits[0].numpy(), out.end_logits[0].numpy()
        of_text = [i for i, s in enumerate(windows.sequence_ids(w)) if s == 1]
        for i in of_text:
            for j in range(i, min(i + 7, of_text[-1] + 1)):
                first = windows.token_to_word(w, i), windows.token_to_word(w, j)
                place = [windows.word_to_chars(w, n, 1) for n in first]
                score = float(start[i]) + float(end[j])
                spans.append((score, place[0].start, place[1].end))
    best = max(spans)
    options = {"longest": 7, "max_length": 40, "overlap": 8}
    found = answer(question, text, *model, **options)
    near = [span[1:] for span in spans if span[0] > best[0] - 1e-4]
    assert (found.start, found.end) in near
    assert found.text == text[found.start : found.end]
