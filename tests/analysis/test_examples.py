"""Where a head stands out: places by loops, and what is no place."""

import numpy as np
import pytest
from analysis.treebanks import MODEL, SENTENCES

from bert_np import BertError
from bert_np.analysis import find_examples, read_treebank, word_attention
from bert_np.analysis.examples import strongest_others

HEAD = (1, 2)


def found_by_loops(places):
    """[(weight, strongest other weight, words, query, key)] of some places."""
    found = []
    for number, query, key in places:
        words = SENTENCES[number].words
        row = word_attention(words, *MODEL)[HEAD][query]
        others = [row[j] for j in range(len(words)) if j not in (query, key)]
        found.append((row[key], max(others), words, query, key))
    return found


def relation_places(name, reverse=False):
    places = [
        (number, i, sentence.heads[i])
        for number, sentence in enumerate(SENTENCES)
        for i, relation in enumerate(sentence.relations)
        if relation == name
    ]
    return [(n, j, i) for n, i, j in places] if reverse else places


def offset_places(offset):
    lengths = [len(sentence.words) for sentence in SENTENCES]
    return [
        (n, i, i + offset)
        for n, W in enumerate(lengths)
        for i in range(W)
        if 0 <= i + offset < W
    ]


BY_TAG = [(0, 3, 2), (0, 3, 5), (1, 3, 2), (1, 3, 6), (2, 3, 1), (2, 5, 1)]


def verbs_to_nouns(sentence):
    places = range(len(sentence.words))
    verbs, nouns = (
        [i for i in places if sentence.tags[i] == tag] for tag in ("VERB", "NOUN")
    )
    return [(i, j) for i in verbs for j in nouns]


@pytest.mark.parametrize(
    "pattern, options, places, name",
    [
        ("det", {}, relation_places("det"), "det, dependent to head"),
        (
            "nsubj",
            {"direction": "head to dependent"},
            relation_places("nsubj", reverse=True),
            "nsubj, head to dependent",
        ),
        (-2, {}, offset_places(-2), "offset -2"),
        (None, {}, [p for k in range(-6, 7) if k for p in offset_places(k)], "every"),
        (verbs_to_nouns, {}, BY_TAG, "verbs_to_nouns"),
    ],
)
def test_places_equal_the_loops(pattern, options, places, name):
    found = find_examples(SENTENCES, *MODEL, head=HEAD, pattern=pattern, **options)
    expected = found_by_loops(places)
    weights = [weight for weight, *_ in expected]
    assert found.places == len(expected) and found.pattern.startswith(name)
    assert found.mean == pytest.approx(np.mean(weights)) and found.head == HEAD
    first = found.largest[0], found.smallest[0], found.surprising[0]
    best = max(expected), min(expected), max(expected, key=lambda e: e[1] - e[0])
    for example, (weight, _, words, query, key) in zip(first, best):
        assert (example.words, example.query, example.key) == (words, query, key)
        assert example.weight == pytest.approx(weight) == example.row[key]
        alike = [e[0] for e in expected if e[4] - e[3] == key - query]
        assert example.expected == pytest.approx(np.mean(alike))


@pytest.mark.parametrize("W", [1, 2, 3, 6])
def test_the_strongest_other_word_is_neither_query_nor_key(W):
    weights = np.random.default_rng(W).random((W, W))
    weights[:, 0] += 1
    weights[np.diag_indices(W)] += 2
    found = strongest_others(weights)
    for query, key in np.ndindex(W, W):
        others = [weights[query, j] for j in range(W) if j not in (query, key)]
        assert found[query, key] == max(others, default=0)


def test_lists_are_in_order_and_hold_a_sentence_once():
    found = find_examples(SENTENCES, *MODEL, head=HEAD, most=3)
    largest, smallest = (
        [e.weight for e in part] for part in (found.largest, found.smallest)
    )
    assert largest == sorted(largest, reverse=True) and smallest == sorted(smallest)
    assert len({e.words for e in found.surprising}) == 3
    assert len(find_examples(SENTENCES, *MODEL, head=HEAD, most=1).smallest) == 1


def test_texts_and_lists_of_words_are_searched_too():
    texts = ["the big cats saw the dogs.", list(SENTENCES[1].words)]
    found = find_examples(texts, *MODEL, head=HEAD, pattern=1)
    same = find_examples(SENTENCES[:2], *MODEL, head=HEAD, pattern=1)
    assert found.mean == pytest.approx(same.mean) and found.places == same.places
    assert found.largest[0].source == "sentence 1" and same.largest[0].source == "n1"


@pytest.mark.parametrize(
    "sentences, options, message",
    [
        ("the cat", {}, "sentences is 'the cat'"),
        (["the cat", "  "], {}, r"sentences\[1\] = '  ', allowed: Sentence"),
        (["the cat"], {"pattern": "obj"}, r"sentences\[0\] is str, allowed: Sentence"),
        (SENTENCES, {"pattern": "iobj"}, "pattern = 'iobj': no such place"),
        (SENTENCES, {"pattern": 40}, "pattern = 40: no such place"),
        (SENTENCES, {"pattern": 1.5}, "pattern must be an int, got float"),
        (SENTENCES, {"pattern": lambda s: 3}, r"pattern of sentences\[0\] is 3"),
        (SENTENCES, {"pattern": lambda s: [3]}, r"holds 3, allowed: \(query, key\)"),
        (SENTENCES, {"pattern": lambda s: [(0, 7)]}, "= 7, allowed 0..6"),
        (SENTENCES, {"head": (2, 0)}, r"head\[0\] = 2, allowed 0..1"),
        (SENTENCES, {"head": 3}, r"head = 3, allowed: \(layer, head\)"),
        (SENTENCES, {"most": 0}, "most = 0, allowed 1 or more"),
        (SENTENCES, {"direction": "up"}, "direction = 'up', allowed 'dependent to"),
    ],
)
def test_what_cannot_be_searched_is_refused(sentences, options, message):
    with pytest.raises(BertError, match=message):
        find_examples(sentences, *MODEL, **{"head": HEAD} | options)


@pytest.mark.slow
def test_the_object_head_of_minilm_misses_relative_pronouns(minilm):
    found = find_examples(read_treebank()[:400], *minilm, head=(2, 0), pattern="obj")
    assert 0.25 < found.mean < 0.4 and found.largest[0].weight > 0.7
    missed = {e.words[e.query].lower() for e in found.smallest}
    assert missed & {"that", "what", "which"}
