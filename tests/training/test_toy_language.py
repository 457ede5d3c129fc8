"""The toy language: its passages, its skills and its exact answers."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_np.errors import BertError
from bert_np.tokenizer import Tokenizer
from bert_np.training import toy_language as toy
from bert_np.training.toy_grammar import PEOPLE
from bert_np.training.toy_language import CLS, IGNORED, MASK, PAD, SEP, Piece, Slot

GRAMMAR = toy.create_grammar()
BATCH = toy.sample_batch(np.random.default_rng(1), 400, GRAMMAR)


# ----------------- a language so small that all of it can be written out


def piece(weight, length, *slots):
    slots = tuple(Slot(np.array(p), np.array(rows)) for p, rows in slots)
    return Piece(weight, length, slots, ())


FIRST, SECOND = ([0], [[CLS]]), [[SEP]]
PAIRED = ([1, 4], [[5, 5], [6, 7], [6, 8]])
SMALL = toy.Grammar(
    tokens=(*toy.SPECIALS, *"abcdef"),
    single=(piece(1.0, 4, FIRST, ([3], SECOND), ([1, 2], [[5, 6], [5, 7]])),),
    pair=(  # some strings can be made in two ways
        piece(0.5, 6, FIRST, PAIRED, ([2], [[9], [10]]), ([3, 5], [[SEP, SEP]])),
        piece(0.3, 6, FIRST, PAIRED, ([2], [[10]]), ([3, 5], [[SEP, SEP]])),
        piece(0.2, 5, FIRST, ([1, 3], [[5, 7], [6, 8]]), ([2, 4], [[SEP, SEP]])),
    ),
    first=(
        piece(0.8, 4, FIRST, ([1], [[5], [6], [6]]), ([2], [[9], [10]]), ([3], SECOND)),
        piece(0.2, 3, FIRST, ([1], [[5], [6]]), ([2], SECOND)),
    ),
    second=(
        piece(0.8, 2, ([0], [[5], [7], [8]]), ([1], SECOND)),
        piece(0.2, 2, ([0], [[7], [8]]), ([1], SECOND)),
    ),
    single_rate=0.2,
    random_rate=0.4,
)


def derivations(pieces):
    """Yield (probability, tokens) of every way to fill every piece."""
    for p in pieces:
        for rows in product(*(slot.rows for slot in p.slots)):
            tokens = np.zeros(p.length, int)
            for slot, row in zip(p.slots, rows):
                tokens[slot.positions] = row
            ways = np.prod([len(slot.rows) for slot in p.slots])
            yield p.weight / ways, tuple(tokens.tolist())


def all_passages(grammar):
    """{(tokens, label): probability} of the whole language."""
    table, pair_rate = Counter(), 1 - grammar.single_rate
    for p, tokens in derivations(grammar.single):
        table[tokens, IGNORED] += grammar.single_rate * p
    for p, tokens in derivations(grammar.pair):
        table[tokens, 0] += pair_rate * (1 - grammar.random_rate) * p
    for (p, a), (q, b) in product(*map(derivations, (grammar.first, grammar.second))):
        table[a + b, 1] += pair_rate * grammar.random_rate * p * q
    return table


TABLE = all_passages(SMALL)


@given(st.sampled_from(sorted({tokens for tokens, _ in TABLE})), st.integers(0, 15))
def test_exact_distribution_equals_full_enumeration(tokens, choice):
    free = [i for i, token in enumerate(tokens) if token > MASK]
    masked = [i for k, i in enumerate(free) if choice >> k & 1]
    context = [MASK if i in masked else token for i, token in enumerate(tokens)]
    expected = np.zeros((len(masked), len(SMALL.tokens)))
    for (other, _), p in TABLE.items():
        fits = all(c == t or c == MASK and t > MASK for c, t in zip(context, other))
        if fits and len(other) == len(context):
            expected[range(len(masked)), [other[i] for i in masked]] += p
    expected /= expected.sum(axis=1, keepdims=True)
    found = toy.exact_distribution(context, SMALL)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_next_probability_and_ceiling_equal_full_enumeration():
    best = 0
    for tokens in {tokens for tokens, label in TABLE if label != IGNORED}:
        follows, random = TABLE[tokens, 0], TABLE[tokens, 1]
        found = toy.next_probability(tokens, SMALL)
        assert found == pytest.approx(follows / (follows + random), abs=1e-12)
        best += max(follows, random) / (1 - SMALL.single_rate)
    assert 0.6 < best < 0.95  # neither trivial nor certain
    drawn = toy.sample_batch(np.random.default_rng(2), 1500, SMALL)
    assert toy.next_sentence_ceiling(drawn, SMALL) == pytest.approx(best, abs=0.03)


def test_the_sampler_draws_each_passage_as_often_as_it_should():
    assert sum(TABLE.values()) == pytest.approx(1, abs=1e-12)
    n, drawn = 40_000, toy.sample_batch(np.random.default_rng(3), 40_000, SMALL)
    counts = Counter(
        (tuple(ids[ids != PAD].tolist()), label)
        for ids, label in zip(drawn["input_ids"], drawn["next_labels"].tolist())
    )
    assert counts.keys() == {key for key, p in TABLE.items() if p}
    chi2 = sum((counts[key] - n * TABLE[key]) ** 2 / (n * TABLE[key]) for key in counts)
    freedom = len(counts) - 1
    assert chi2 < freedom + 4 * np.sqrt(2 * freedom)


# ------------------------------------------------------ the whole language


def test_the_tokenizer_gives_the_same_arrays():
    tokenizer = Tokenizer.from_tokens(GRAMMAR.tokens)
    ids = BATCH["input_ids"]
    texts = [b if b[1] else b[0] for b in toy.to_texts(ids, GRAMMAR)]
    inputs = tokenizer.encode_batch(texts).inputs
    for name in ("input_ids", "segment_ids", "attention_mask"):
        assert np.array_equal(inputs[name], BATCH[name]), name
    assert not (ids == toy.UNK).any()
    labels = BATCH["next_labels"]
    assert ((ids == SEP).sum(axis=1) == np.where(labels == IGNORED, 1, 2)).all()
    assert np.mean(labels == IGNORED) == pytest.approx(0.25, abs=0.06)
    assert np.mean(labels == 1) == pytest.approx(0.1875, abs=0.06)


@pytest.mark.parametrize("held_out", [True, False])
def test_held_out_passages_are_a_tenth_and_apart(held_out):
    batch = toy.sample_batch(np.random.default_rng(7), 200, GRAMMAR, held_out)
    assert len(batch["input_ids"]) == 200
    wide = np.pad(batch["input_ids"], ((0, 0), (0, 3)))  # padding is ignored
    assert (toy.is_held_out(wide) == held_out).all()
    assert 0.05 < toy.is_held_out(BATCH["input_ids"]).mean() < 0.15


def mass(ids):
    try:
        return sum(m for m, _ in toy._explanations(ids, GRAMMAR))
    except BertError:
        return 0


@pytest.mark.parametrize("row", range(4))
def test_one_mask_obeys_the_rule_of_bayes(row):
    """P(word | rest) is proportional to the probability of the full passage."""
    ids = BATCH["input_ids"][row].copy()
    position = np.random.default_rng(row).choice(np.flatnonzero(ids > MASK))
    masses, word = np.zeros(len(GRAMMAR.tokens)), ids[position]
    for token in range(MASK + 1, len(masses)):
        ids[position] = token
        masses[token] = mass(ids)
    ids[position] = MASK
    (found,) = toy.exact_distribution(ids, GRAMMAR)
    np.testing.assert_allclose(found, masses / masses.sum(), atol=1e-12)
    assert found[word] > 0


def test_impossible_passages_are_refused():
    ids = BATCH["input_ids"][0][BATCH["input_ids"][0] != PAD]
    assert toy.exact_distribution(ids, GRAMMAR).shape == (0, len(GRAMMAR.tokens))
    for wrong in (ids[::-1], ids[:-1], ids[:0], [[1]], [0.5], [999], [PAD]):
        with pytest.raises(BertError, match="input_ids: found"):
            toy.exact_distribution(wrong, GRAMMAR)


def test_probes_ask_for_words_that_are_determined():
    seen = set()
    for probe in toy.find_probes(BATCH, GRAMMAR):
        ids, segments = (BATCH[k][probe.row] for k in ("input_ids", "segment_ids"))
        word, source = (GRAMMAR.tokens[ids[i]] for i in (probe.position, probe.source))
        assert ids[probe.position] in probe.answers
        assert probe.distractor < 0 or ids[probe.distractor] not in probe.answers
        if probe.skill == "pronoun":
            assert (source, word) in PEOPLE
        elif probe.skill == "agreement":
            assert word == "are" or source.endswith("s") != word.endswith("s")
        else:
            assert word == source and probe.source < probe.position
        masked = np.where(np.arange(len(ids)) == probe.position, MASK, ids)
        (exact,) = toy.exact_distribution(masked, GRAMMAR)
        certain = exact[list(probe.answers)].sum()
        # A second text might be random: then the first does not determine it.
        assert certain > (0.9 if segments[probe.position] else 1 - 1e-12)
        seen.add((probe.skill, int(BATCH["next_labels"][probe.row])))
    assert len({skill for skill, _ in seen}) == 5 and len(seen) > 10


def test_mix_and_rates_change_what_is_drawn():
    only = toy.create_grammar({"order": 1}, single_rate=0, random_rate=1)
    drawn = toy.sample_batch(np.random.default_rng(11), 200, only)
    assert (drawn["next_labels"] == 1).all()
    words = {only.tokens[i] for i in np.unique(drawn["input_ids"])}
    assert "away" in words and not words & {"has", "he", "she", "red"}
    sure = toy.create_grammar(single_rate=0, random_rate=0)
    row = toy.sample_batch(np.random.default_rng(12), 1, sure)["input_ids"][0]
    assert toy.next_probability(row, sure) == 1


MIXES = [{"poems": 1}, {"copy": -1}, {"copy": float("nan")}, {"copy": 0}]


def test_bad_arguments_are_named():
    for name, value in [*(("mix", mix) for mix in MIXES), ("random_rate", 1.5)]:
        with pytest.raises(BertError, match=f"{name}: found"):
            toy.create_grammar(**{name: value})
    with pytest.raises(BertError, match="rng is int"):
        toy.sample_batch(0, 4, GRAMMAR)
    with pytest.raises(BertError, match="size is 0"):
        toy.sample_batch(np.random.default_rng(0), 0, GRAMMAR)
