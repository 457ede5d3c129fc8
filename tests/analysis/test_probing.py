"""Probes: the fit, the control task, and states that hold nothing."""

from collections import Counter

import numpy as np
import pytest
from analysis.treebanks import CONFIG, MODEL, PARAMS, SENTENCES, TOKENIZER, parsed

from bert_np import BertError, bert, softmax
from bert_np.analysis import format_probe, probe_layers, read_treebank
from bert_np.analysis.__main__ import main
from bert_np.analysis.probing import (
    control_labels,
    fit_softmax,
    guess_by_word,
    list_labels,
    read_labels,
    resample_sentences,
)
from bert_np.analysis.words import run_states

H, L = CONFIG.hidden_size, CONFIG.num_hidden_layers
N = 3000
PARTS = np.array([0, 0, 0, 1, 2])[np.arange(N) % 5]


def test_states_of_words_are_means_over_their_pieces_in_order():
    lists = [sentence.words for sentence in SENTENCES]
    found = list(run_states(lists, *MODEL, batch_size=2))
    expected = [[] for _ in range(L + 1)]
    for words in lists:
        pieces = [TOKENIZER.tokenize(word) for word in words]
        ids = [TOKENIZER.vocab[piece] for word in pieces for piece in word]
        ids, trace = [[TOKENIZER.cls_token_id, *ids, TOKENIZER.sep_token_id]], {}
        bert(ids, PARAMS, CONFIG, trace=trace)
        for layer, stage in enumerate([trace["embeddings"], *trace["layers"]]):
            start = 1
            for word in pieces:
                rows = stage["output"][0, start : start + len(word)]
                expected[layer].append(sum(rows) / len(rows))
                start += len(word)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# The fit


def test_the_fit_is_where_the_penalised_loss_is_level():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 3)), np.ones(200)])
    truth = rng.normal(size=(4, 3)) * 2
    Y = np.eye(3)[(X @ truth + rng.gumbel(size=(200, 3))).argmax(axis=1)]
    W = fit_softmax(X, Y, 0.01, steps=400)
    slope = X.T @ (Y - softmax(X @ W)) - 0.01 * 200 * W
    assert np.abs(slope).max() < 1e-8
    few = fit_softmax(X, Y, 0.01, steps=30)
    assert np.abs(few - W).max() < 0.02 * np.abs(W).max()
    assert np.linalg.norm(fit_softmax(X, Y, 10.0)) < 0.1 * np.linalg.norm(W)


def planted(noise, rng):
    """States that hold a label of four, of which two go by "a", two by "b"."""
    y = rng.integers(0, 4, N)
    x = np.eye(6)[y] * 3 + noise * rng.normal(size=(N, 6))
    return x + 100, np.array(list("aabb"))[y]  # a constant must not matter


def test_a_label_in_the_states_is_read_and_shuffled_states_hold_none():
    rng = np.random.default_rng(0)
    x, labels = planted(0.3, rng)
    assert read_labels(x, labels, PARTS).mean() > 0.99
    alone = read_labels(rng.permutation(x), labels, PARTS).mean()
    assert alone == pytest.approx(0.5, abs=0.06)


def test_no_label_of_a_test_word_is_seen():
    rng = np.random.default_rng(1)
    x, labels = planted(1.5, rng)
    x = np.column_stack([x, rng.normal(size=(N, 100))])  # strengths matter
    right = read_labels(x, labels, PARTS)
    turned = np.where((PARTS == 2) & (labels == "a"), "b", labels)
    turned[(PARTS == 2) & (labels == "b")] = "a"
    assert 0.6 < right.mean() < 0.99
    np.testing.assert_array_equal(read_labels(x, turned, PARTS), ~right)


# The control task


def test_a_word_has_one_random_label_wherever_it_stands():
    types = [f"w{i % 500}" for i in range(N)]
    labels = np.array(["a", "a", "a", "b"])
    control = control_labels(types, labels, np.random.default_rng(0))
    assert all(control[i] == control[i % 500] for i in range(N))
    counts = Counter(control[:500].tolist())
    assert counts["a"] / 500 == pytest.approx(0.75, abs=0.06)
    other = control_labels(types, labels, np.random.default_rng(1))
    assert (other[:500] != control[:500]).mean() == pytest.approx(0.375, abs=0.08)


def test_the_control_is_read_off_states_that_know_the_word_and_no_others():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 30, N)
    types = [str(word) for word in words]
    control = control_labels(types, np.array(["a", "b"]), rng)
    knows = np.eye(30)[words] + 0.02 * rng.normal(size=(N, 30))
    assert read_labels(knows, control, PARTS).mean() > 0.99
    most = max(np.mean(control == "a"), np.mean(control == "b"))
    blind = read_labels(rng.normal(size=(N, 30)), control, PARTS).mean()
    assert blind == pytest.approx(most, abs=0.07)


def test_guesses_from_the_words_alone_by_hand():
    types = ["saw", "saw", "saw", "cat", "the", "the", "dog", "saw"]
    labels = np.array(["V", "V", "N", "N", "D", "D", "N", "N"])
    parts = np.array([0, 0, 0, 0, 0, 0, 2, 2])
    # Most frequent of all: V, N and D twice each; V came first. dog: V, wrong.
    assert guess_by_word(types, labels, parts) == 0
    labels[7] = "V"
    assert guess_by_word(types, labels, parts) == 0.5
    assert guess_by_word([""] * 8, labels, parts) == 0.5


def test_intervals_resample_whole_sentences():
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(100) < 0.5, 25).astype(float)  # all alike in each
    numbers = np.repeat(np.arange(100) * 5 + 4, 25)
    low, high = resample_sentences(right, numbers, rng)
    assert high - low == pytest.approx(2 * 1.96 * 0.05, rel=0.15)
    assert low < right.mean() < high


# From sentences to scores


def test_scores_are_those_of_the_parts():
    sentences = SENTENCES * 5
    scores = probe_layers(sentences, *MODEL, rng=np.random.default_rng(5))
    labels = np.array([tag for sentence in sentences for tag in sentence.tags])
    types = [word for sentence in sentences for word in sentence.words]
    numbers = np.repeat(np.arange(15), [len(s.words) for s in sentences])
    parts = np.array([0, 0, 0, 1, 2])[numbers % 5]
    control = control_labels(types, labels[parts == 0], np.random.default_rng(5))
    words = [sentence.words for sentence in sentences]
    for layer, x in enumerate(run_states(words, *MODEL)):
        accuracy = read_labels(x, labels, parts).mean()
        assert scores.accuracy[layer] == accuracy
        assert scores.control[layer] == read_labels(x, control, parts).mean()
        assert scores.selectivity[layer] == accuracy - scores.control[layer]
    assert scores.words == (63, 21, 21) and scores.labels == tuple(np.unique(labels))
    assert scores.by_word == guess_by_word(types, labels, parts)
    for name in ("accuracy", "control", "selectivity"):
        low, high = getattr(scores, f"{name}_interval").T
        assert (low <= getattr(scores, name)).all()
        assert (getattr(scores, name) <= high).all()
    assert len(format_probe(scores).splitlines()) == 2 + L + 1 + 2


def test_labels_of_all_kinds():
    first = parsed("a/X/8/x " + "a/Y/0/x " * 6 + "a/Y/-1/root a/Y/7/x")
    assert list_labels([first], "tag").tolist() == ["X"] + ["Y"] * 8
    distances = ["+5", "-1", "-2", "-3", "-4", "-5", "-5", "root", "-1"]
    assert list_labels([first], "distance").tolist() == distances
    own = list_labels([first], lambda sentence: list(sentence.words))
    assert own.tolist() == ["a"] * 9


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sentences": SENTENCES}, "sentences has 3 entries, allowed: 5 or more"),
        ({"rng": 1}, "rng is int"),
        ({"label": "head"}, "label = 'head', allowed: 'tag', 'distance', function"),
        ({"label": lambda s: ["a"]}, r"label of sentences\[0\] is \['a'\].* 7 str"),
        ({"label": lambda s: [3] * 7}, r"label of sentences\[0\] holds 3"),
        ({"batch_size": 0}, "batch_size = 0"),
    ],
)
def test_what_cannot_be_probed_is_refused(options, message):
    given = {"sentences": SENTENCES * 2, "rng": np.random.default_rng(0)} | options
    with pytest.raises(BertError, match=message):
        probe_layers(given.pop("sentences"), *MODEL, **given)


def test_the_commands_print_a_row_for_each_layer(tmp_path, capsys):
    rows = "the\tDET\t2\tdet\ncat\tNOUN\t3\tnsubj\nsat\tVERB\t0\troot\n\n"
    (tmp_path / "own.tsv").write_text(rows * 5, "utf-8")
    for table in ("tags", "distances"):
        assert main([table, "toy", "--treebank", str(tmp_path / "own.tsv")]) == 0
        printed = capsys.readouterr()
        assert "| embeddings | 1.000 [1.000, 1.000] |" in printed.out
        assert printed.err.splitlines()[-1] == "layer 3/3"


@pytest.mark.slow
def test_minilm_knows_parts_of_speech_beyond_the_words(minilm):
    rng = np.random.default_rng(0)
    scores = probe_layers(read_treebank(), *minilm, rng=rng)
    assert scores.accuracy[2] == pytest.approx(0.945, abs=0.01)
    assert scores.accuracy[2] > scores.accuracy[[0, 6]].max() + 0.03
    assert scores.accuracy.min() > scores.by_word + 0.05
    assert (np.diff(scores.control) < 0).all() and scores.control[0] > 0.65
    assert scores.selectivity[0] < scores.selectivity[2] < scores.selectivity[6]
