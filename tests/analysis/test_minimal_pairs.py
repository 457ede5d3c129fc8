"""Minimal pairs: made by hand, scored by loops, and heads that cannot notice."""

import math

import numpy as np
import pytest
from analysis.treebanks import CONFIG, MODEL, PARAMS, TOKENIZER

from bert_np import BertError
from bert_np.analysis import (
    MinimalPair,
    format_pairs,
    make_pairs,
    score_pairs,
    word_attention,
)
from bert_np.analysis.__main__ import main
from bert_np.analysis.minimal_pairs import TEMPLATES, best_by_luck

ONE = (
    "the {first} saw the {second}, *he* chased a {noun}.",
    "the {first} saw the {second}, *it* chased a {noun}.",
)
TURNED = (
    "big {second} *saw* old {first}.",
    "the {second} quickly *saw* it, the {first}.",
)
NOUNS = {"first": ["cat", "old dog"], "second": ["dogs", "cat"], "noun": ["cat"]}


def test_templates_are_filled_by_hand():
    pairs = make_pairs([ONE, TURNED], **NOUNS)
    assert len(pairs) == 6  # "cat" beside "cat" is no pair
    assert pairs[0] == MinimalPair(
        words=(
            ("the", "cat", "saw", "the", "dogs", ",", "he", "chased", "a", "cat", "."),
            ("the", "cat", "saw", "the", "dogs", ",", "it", "chased", "a", "cat", "."),
        ),
        queries=(6, 6),
        candidates=((1, 4), (1, 4)),
        template=0,
    )
    last = pairs[-1]
    assert last.words[0] == ("big", "cat", "saw", "old", "old dog", ".")
    assert last.queries == (2, 3) and last.candidates == ((4, 1), (7, 1))
    assert last.template == 1
    assert make_pairs(ONE, **NOUNS) == pairs[:3]


def test_scores_equal_the_loops():
    pairs = make_pairs([ONE, TURNED], **NOUNS)
    scores = score_pairs(pairs, *MODEL, batch_size=3)
    L, A = CONFIG.num_hidden_layers, CONFIG.num_attention_heads
    total, outcomes = np.zeros((2, 2, L, A)), np.zeros((3, L, A))
    for number, pair in enumerate(pairs):
        right = np.zeros((L, A), dtype=int)
        for sentence in (0, 1):
            maps = word_attention(pair.words[sentence], *MODEL)
            row = maps[:, :, pair.queries[sentence]]
            first, second = (row[..., j] for j in pair.candidates[sentence])
            total[sentence] += [first, second]
            right += (first > second) if sentence == 0 else (second > first)
            margins = scores.margins[number, sentence]
            np.testing.assert_allclose(margins, first - second, atol=1e-12)
        for layer, head in np.ndindex(L, A):
            outcomes[right[layer, head], layer, head] += 1
    np.testing.assert_allclose(scores.attention, total / len(pairs), rtol=1e-11)
    np.testing.assert_array_equal(scores.outcomes, outcomes)
    assert scores.labels == ("sentence 1", "sentence 2")
    assert score_pairs(pairs[:3], *MODEL).labels == ("he", "it")


def test_a_head_that_ignores_the_change_is_right_once_in_every_pair():
    tables = PARAMS["embeddings"]
    blind = PARAMS | {"embeddings": tables | {"word": 0 * tables["word"]}}
    pairs = make_pairs(ONE, first=["cat", "dogs"], second=["dog", "cats"], noun=["cat"])
    scores = score_pairs(pairs, blind, CONFIG, TOKENIZER)  # it sees places alone
    assert (scores.outcomes[1] == len(pairs)).all() and len(pairs) == 4
    assert (scores.margins[:, 0] == scores.margins[:, 1]).all()
    row = format_pairs(scores).splitlines()[-3]
    assert row == "| ignores the change | | | | | 0 | 4 | 0 |"


def test_the_luckiest_head_by_exact_fractions():
    for pairs, heads in ((1, 1), (2, 1), (10, 3), (72, 72)):
        k, below = -1, 0
        while below * 20 ** (1 / heads) < 19 ** (1 / heads):
            k += 1
            below += math.comb(pairs, k) * 3 ** (pairs - k) / 4**pairs
        assert best_by_luck(pairs, heads) == k
    assert best_by_luck(10_000, 72) == pytest.approx(2500 + 3.2 * 43.3, abs=10)


def test_heads_by_lot_seldom_beat_the_bound():
    rng = np.random.default_rng(0)
    best = (rng.random((400, 72, 60, 2)) < 0.5).all(axis=-1).sum(axis=-1).max(axis=-1)
    assert 0.9 < (best <= best_by_luck(60, 72)).mean() < 0.995


def test_every_set_of_templates_gives_pairs_that_differ_in_little():
    for arguments in TEMPLATES.values():
        pairs = make_pairs(**arguments)
        assert len(pairs) in (72, 84)
        for pair in pairs:
            first, second = (set(words) for words in pair.words)
            assert len(first - second) <= 3 and len(second - first) <= 3
            for words, query, places in zip(*pair[:3]):
                assert len({query, *places}) == 3 and "*" not in "".join(words)
            assert len(set(pair.queries)) == len(set(pair.candidates)) == 1
            assert len(pair.words[0]) == len(pair.words[1])  # so places tell nothing


@pytest.mark.parametrize(
    "templates, words, message",
    [
        ("the cat", {}, "templates: 'the cat', allowed: two str"),
        ([("a", "b", "c")], {}, "allowed: two str"),
        (("*he* {first} {second}", 3), {}, "templates: a sentence must be a str"),
        (("he {first} {second}",) * 2, {}, "0 words between asterisks"),
        (("*he* *it* {first} {second}",) * 2, {}, "2 words between asterisks"),
        (("*he* {first} {first}",) * 2, {}, r"no single word \{first\}"),
        (("*he* {first}s {second}",) * 2, {}, r"no single word \{first\}"),
        (("*he* {first} {second} {verb}",) * 2, {}, r"no words for \{verb\}"),
        (("*he* {first} {second}",) * 2, {"first": "cat"}, "first = 'cat', allowed: a"),
        (("*he* {first} {second}",) * 2, {"first": [" "]}, r"first\[0\] = ' '"),
        (("*he* {first} {second}",) * 2, {"first": ["dog"]}, "are the same word"),
        (("*he* {first} {second}",) * 2, {"verb": ["a"] * 10**5}, "100,000 pairs"),
    ],
)
def test_templates_that_make_no_pairs_are_refused(templates, words, message):
    with pytest.raises(BertError, match=message):
        make_pairs(templates, **{"first": ["cat"], "second": ["dog"]} | words)


def test_what_is_no_list_of_pairs_is_refused():
    pair = make_pairs(ONE, **NOUNS)[0]
    for pairs, message in [
        (pair, "allowed: a list of MinimalPair"),
        ([], "pairs has 0 entries"),
        ([tuple(pair)], r"pairs\[0\] is tuple"),
        ([pair._replace(queries=(3, 11))], r"pairs\[0\]: a place = 11, allowed 0..10"),
        ([pair._replace(queries=(3,))], r"pairs\[0\]: zip"),
        ([pair._replace(candidates=((1, 4), 2))], r"pairs\[0\]: cannot unpack"),
    ]:
        with pytest.raises(BertError, match=message):
            score_pairs(pairs, *MODEL)


def test_the_command_prints_a_table_for_each_set(capsys):
    assert main(["pairs", "toy"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("| ignores the change |") == len(TEMPLATES) == 4
    assert "- The boy dropped the ball because it was old ." in printed


@pytest.mark.slow
def test_head_3_1_of_minilm_follows_agreement_and_who_undergoes(minilm):
    scores = {
        name: score_pairs(make_pairs(**arguments), *minilm)
        for name, arguments in TEMPLATES.items()
    }
    it = scores["he or it"]
    assert it.outcomes[:, 3, 1].tolist() == [0, 5, 67]
    means = it.attention[:, :, 3, 1]
    np.testing.assert_allclose(means, [[0.39, 0.03], [0.07, 0.36]], atol=0.01)
    assert it.outcomes[2, 1, 3] == 72 and it.best_by_luck == 30
    assert scores["active or passive"].outcomes[2, 3, 1] == 80
