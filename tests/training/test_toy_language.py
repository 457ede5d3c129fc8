"""The toy language: its passages, its skills and its exact answers."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from bert_np.errors import BertError
from bert_np.tokenizer import Tokenizer
from bert_np.training import toy_grammar
from bert_np.training import toy_language as toy
from bert_np.training.toy_language import IGNORED, MASK, PAD, SEP, Piece, Slot


@pytest.fixture(scope="module")
def grammar():
    return toy.create_grammar()


@pytest.fixture(scope="module")
def batch(grammar):
    return toy.sample_batch(np.random.default_rng(1), 800, grammar)


@pytest.fixture(scope="module")
def small():
    """Three passages' worth of slots, with strings made in two ways."""

    def piece(weight, length, *slots):
        return Piece(
            weight, length, tuple(Slot(np.array(p), np.array(r)) for p, r in slots), ()
        )

    cls, sep = ([0], [[toy.CLS]]), [[SEP]]
    one = ([1, 4], [[5, 5], [6, 7], [6, 8]])
    return toy.Grammar(
        tokens=(*toy.SPECIALS, *"abcdef"),
        single=(piece(1.0, 4, cls, ([3], sep), ([1, 2], [[5, 6], [5, 7]])),),
        pair=(
            piece(0.5, 6, cls, one, ([2], [[9], [10]]), ([3, 5], [[SEP, SEP]])),
            piece(0.3, 6, cls, one, ([2], [[10]]), ([3, 5], [[SEP, SEP]])),
            piece(0.2, 5, cls, ([1, 3], [[5, 7], [6, 8]]), ([2, 4], [[SEP, SEP]])),
        ),
        first=(
            piece(0.5, 4, cls, ([1], [[5], [6], [6]]), ([2], [[9], [10]]), ([3], sep)),
            piece(0.3, 4, cls, ([1], [[5], [6], [6]]), ([2], [[10]]), ([3], sep)),
            piece(0.2, 3, cls, ([1], [[5], [6]]), ([2], sep)),
        ),
        second=(
            piece(0.8, 2, ([0], [[5], [7], [8]]), ([1], sep)),
            piece(0.2, 2, ([0], [[7], [8]]), ([1], sep)),
        ),
        single_rate=0.2,
        random_rate=0.4,
    )


def all_derivations(pieces):
    """Yield (probability, tokens) of every way to fill every piece."""
    for piece in pieces:
        for rows in itertools.product(*(slot.rows for slot in piece.slots)):
            tokens = [None] * piece.length
            chance = piece.weight
            for slot, row in zip(piece.slots, rows):
                chance /= len(slot.rows)
                for position, token in zip(slot.positions, row):
                    tokens[position] = int(token)
            yield chance, tuple(tokens)


def all_passages(grammar):
    """Return {(tokens, label): probability}, by writing out everything."""
    table = {}
    pair_rate = 1 - grammar.single_rate
    firsts = list(all_derivations(grammar.first))
    seconds = list(all_derivations(grammar.second))
    ways = itertools.chain(
        (
            (grammar.single_rate * p, t, IGNORED)
            for p, t in all_derivations(grammar.single)
        ),
        (
            (pair_rate * (1 - grammar.random_rate) * p, t, 0)
            for p, t in all_derivations(grammar.pair)
        ),
        (
            (pair_rate * grammar.random_rate * p * q, t + u, 1)
            for p, t in firsts
            for q, u in seconds
        ),
    )
    for chance, tokens, label in ways:
        table[tokens, label] = table.get((tokens, label), 0) + chance
    return table


def masked_copies(tokens):
    """Yield the passage under every choice of masked positions."""
    free = [i for i, t in enumerate(tokens) if t > MASK]
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            yield [MASK if i in chosen else t for i, t in enumerate(tokens)]


# ------------------------------------------------- against writing it all out


def test_small_grammar_probabilities_sum_to_one(small):
    assert sum(all_passages(small).values()) == pytest.approx(1, abs=1e-12)


def test_exact_distribution_equals_full_enumeration(small):
    table = all_passages(small)
    contexts = {tuple(m) for tokens, _ in table for m in masked_copies(tokens)}
    for context in contexts:
        masked = [i for i, t in enumerate(context) if t == MASK]
        expected = np.zeros((len(masked), len(small.tokens)))
        for (tokens, _), chance in table.items():
            if len(tokens) == len(context) and all(
                c == t or c == MASK and t > MASK for c, t in zip(context, tokens)
            ):
                for row, i in enumerate(masked):
                    expected[row, tokens[i]] += chance
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(
            toy.exact_distribution(context, small), expected, rtol=0, atol=1e-12
        )
    assert len(contexts) > 50


def test_next_probability_and_ceiling_equal_full_enumeration(small):
    table = all_passages(small)
    pairs = {tokens for tokens, label in table if label != IGNORED}
    best = 0
    for tokens in pairs:
        follows, random = (table.get((tokens, label), 0) for label in (0, 1))
        assert toy.next_probability(tokens, small) == pytest.approx(
            follows / (follows + random), abs=1e-12
        )
        best += max(follows, random) / (1 - small.single_rate)
    assert 0.6 < best < 0.95  # neither trivial nor certain
    drawn = toy.sample_batch(np.random.default_rng(2), 1500, small)
    assert toy.next_sentence_ceiling(drawn, small) == pytest.approx(best, abs=0.03)


def test_sampler_draws_the_small_grammar(small):
    drawn = toy.sample_batch(np.random.default_rng(3), 40000, small)
    counts = {}
    for ids, label in zip(drawn["input_ids"].tolist(), drawn["next_labels"].tolist()):
        key = tuple(i for i in ids if i != PAD), label
        counts[key] = counts.get(key, 0) + 1
    table = all_passages(small)
    assert set(counts) == set(table)
    chi2 = sum((counts[key] - 40000 * p) ** 2 / (40000 * p) for key, p in table.items())
    freedom = len(table) - 1
    assert chi2 < freedom + 4 * np.sqrt(2 * freedom)


# ------------------------------------------------------- the whole language


def test_vocabulary(grammar):
    tokens = toy.vocabulary()
    assert list(grammar.tokens) == tokens
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(set(tokens)) == len(tokens) and 100 <= len(tokens) <= 205
    assert all(re.fullmatch(r"(##)?[a-z]+|[.?]", t) for t in tokens[5:])


def test_tables_are_rectangular_without_shared_columns():
    columns = [name for names, _ in toy_grammar.TABLES for name in names]
    assert len(columns) == len(set(columns))
    for names, rows in toy_grammar.TABLES:
        assert len(set(rows)) == len(rows) or names[0] == "BALL"
        assert {len(row) for row in rows} == {len(names)}
        for column in zip(*rows):
            assert len({len(toy.split_word(word)) for word in column}) == 1


def test_in_half_of_the_passages_two_things_come_in_the_same_colours():
    (rows,) = [rows for names, rows in toy_grammar.TABLES if names[0] == "BALL"]
    kinds = toy_grammar.KINDS
    alike = 0
    for ball, red, hat, blue in rows:
        assert ball != hat and red != blue
        assert kinds[ball] == kinds[red] and kinds[hat] == kinds[blue]
        alike += kinds[ball] == kinds[hat]
    assert 0.45 < alike / len(rows) < 0.55
    counts = Counter(rows)
    assert {counts[row] for row in rows if kinds[row[0]] == kinds[row[2]]} == {2}
    assert {counts[row] for row in rows if kinds[row[0]] != kinds[row[2]]} == {1}


def test_piece_weights_sum_to_one_and_passages_are_short(grammar):
    for pieces in (grammar.single, grammar.pair, grammar.first, grammar.second):
        assert sum(p.weight for p in pieces) == pytest.approx(1, abs=1e-12)
        for piece in pieces:
            filled = np.concatenate([s.positions for s in piece.slots])
            assert sorted(filled) == list(range(piece.length))
    assert not any(p.probes for p in grammar.second)
    longest = max(p.length for p in grammar.first) + max(
        p.length for p in grammar.second
    )
    assert longest <= 40


def test_tokenizer_gives_the_same_ids(grammar, batch):
    tokenizer = Tokenizer.from_tokens(toy.vocabulary())
    rows = batch["input_ids"][:300]
    for ids, mask, segments, (text_a, text_b) in zip(
        rows, batch["attention_mask"], batch["segment_ids"], toy.to_texts(rows, grammar)
    ):
        encoding = tokenizer.encode(text_a, text_b)
        assert list(encoding.input_ids) == ids[mask == 1].tolist()
        assert list(encoding.segment_ids) == segments[mask == 1].tolist()
        assert toy.UNK not in encoding.input_ids


def test_batch_arrays(batch):
    ids, labels = batch["input_ids"], batch["next_labels"]
    separators = (ids == SEP).sum(axis=1)
    assert (separators == np.where(labels == IGNORED, 1, 2)).all()
    assert (batch["attention_mask"] == (ids != PAD)).all()
    for row, segments in zip(ids, batch["segment_ids"]):
        length = (row != PAD).sum()
        cut = np.flatnonzero(row == SEP)[0] + 1
        assert (
            segments == [0] * cut + [1] * (length - cut) + [0] * (len(row) - length)
        ).all()
    assert ids[:, -1].any()  # no needless padding
    assert np.mean(labels == IGNORED) == pytest.approx(0.25, abs=0.04)
    assert np.mean(labels == 1) == pytest.approx(0.1875, abs=0.04)


def test_same_generator_state_gives_the_same_batch(grammar):
    one, two = (
        toy.sample_batch(np.random.default_rng(5), 64, grammar, False) for _ in range(2)
    )
    other = toy.sample_batch(np.random.default_rng(6), 64, grammar, False)
    assert all(np.array_equal(one[key], two[key]) for key in one)
    assert not np.array_equal(one["input_ids"], other["input_ids"])


def test_held_out_passages_are_a_tenth_and_apart(grammar, batch):
    share = toy.is_held_out(batch["input_ids"]).mean()
    assert 0.07 < share < 0.13
    wide = np.pad(batch["input_ids"], ((0, 0), (0, 3)))
    assert (toy.is_held_out(wide) == toy.is_held_out(batch["input_ids"])).all()
    for held_out in (True, False):
        drawn = toy.sample_batch(np.random.default_rng(7), 200, grammar, held_out)
        assert drawn["input_ids"].shape[0] == 200
        assert (toy.is_held_out(drawn["input_ids"]) == held_out).all()


def test_every_passage_has_a_probability_and_bad_ones_none(grammar, batch):
    for ids in batch["input_ids"]:
        assert toy.exact_distribution(ids, grammar).shape[0] == 0
    ids = batch["input_ids"][0][batch["input_ids"][0] != PAD]
    for wrong in (
        ids[::-1],
        ids[:-1],
        ids[:0],
        np.append(ids, SEP),
        [[1]],
        [0.5],
        [len(grammar.tokens)],
        [PAD],
    ):
        with pytest.raises(BertError, match="input_ids: found"):
            toy.exact_distribution(wrong, grammar)


def test_exact_distribution_sums_to_one_and_allows_the_truth(grammar, batch):
    rng = np.random.default_rng(8)
    for ids in batch["input_ids"][:400]:
        masked = np.flatnonzero((ids > MASK) & (rng.random(len(ids)) < 0.4))
        hidden = ids.copy()
        hidden[masked] = MASK
        exact = toy.exact_distribution(hidden, grammar)
        np.testing.assert_allclose(exact.sum(axis=1), 1, atol=1e-12)
        assert (exact[np.arange(len(masked)), ids[masked]] > 0).all()
        assert not exact[:, : MASK + 1].any()


def test_one_mask_obeys_bayes_rule(grammar, batch):
    """P(word | rest) is proportional to the mass of the filled passage."""

    def mass(ids):
        try:
            (a, _), (b, _) = toy._explanations(ids, grammar)
        except BertError:
            return 0
        return a + b

    rng = np.random.default_rng(9)
    for ids in batch["input_ids"][:25]:
        ids = ids.copy()
        position = rng.choice(np.flatnonzero(ids > MASK))
        masses = np.zeros(len(grammar.tokens))
        for token in range(MASK + 1, len(masses)):
            ids[position] = token
            masses[token] = mass(ids)
        ids[position] = MASK
        np.testing.assert_allclose(
            toy.exact_distribution(ids, grammar)[0], masses / masses.sum(), atol=1e-12
        )


@pytest.fixture(scope="module")
def many(grammar):
    return toy.sample_batch(np.random.default_rng(10), 300_000, grammar)["input_ids"]


@pytest.mark.parametrize(
    "context",
    [
        "the _ that the _ chase _ .",
        "_ has a red _ . [SEP] the _ is _ . she likes the _ _ .",
        "the _ was _ by the _ . [SEP] the cat _ _ .",
        "_ is play ##ing _ ##ly . [SEP] she likes _ ##ing in the _ .",
        "_ _ _ _ _ . [SEP] _ _ _ _ .",
        "_ has a red _ and a _ _ . [SEP] what is _ ? the _ .",
    ],
)
def test_exact_distribution_matches_rejection_sampling(context, many, grammar):
    tokens = f"[CLS] {context} [SEP]".replace("_", "[MASK]").split()
    ids = np.array([grammar.tokens.index(token) for token in tokens])
    drawn = many[(many != PAD).sum(axis=1) == len(ids)][:, : len(ids)]
    agree = ((drawn == ids) | (ids == MASK)) & ((drawn == SEP) == (ids == SEP))
    drawn = drawn[agree.all(axis=1)]
    assert len(drawn) > 80
    for position, exact in zip(
        np.flatnonzero(ids == MASK), toy.exact_distribution(ids, grammar)
    ):
        counts = np.bincount(drawn[:, position], minlength=len(exact))
        assert not counts[exact == 0].any()
        expected = exact[exact > 0] * len(drawn)
        chi2 = ((counts[exact > 0] - expected) ** 2 / expected).sum()
        freedom = len(expected) - 1
        assert chi2 < freedom + 5 * np.sqrt(2 * freedom) + 1e-9


SKILLS = {"agreement", "pronoun", "copy", "binding", "order"}


def test_answers_are_certain_where_the_source_is_in_the_same_text(grammar, batch):
    seen, labels = set(), set()
    for probe in toy.find_probes(batch, grammar):
        ids = batch["input_ids"][probe.row].copy()
        assert ids[probe.position] in probe.answers
        ids[probe.position] = MASK
        exact = toy.exact_distribution(ids, grammar)[0]
        segments = batch["segment_ids"][probe.row]
        if segments[probe.position] == segments[probe.source]:
            assert exact[list(probe.answers)].sum() == pytest.approx(1)
        else:
            assert batch["next_labels"][probe.row] == 0
            assert exact[list(probe.answers)].sum() > 0.9
        seen.add(probe.skill)
        labels.add(int(batch["next_labels"][probe.row]))
    assert seen == SKILLS and labels == {IGNORED, 0, 1}


def test_probe_positions_hold_the_words_they_name(grammar, batch):
    tokens = np.array(grammar.tokens)
    for probe in toy.find_probes(batch, grammar):
        ids = batch["input_ids"][probe.row]
        word, source = tokens[ids[probe.position]], tokens[ids[probe.source]]
        if probe.skill in ("copy", "binding", "order"):
            assert word == source and probe.source < probe.position
        elif probe.skill == "pronoun":
            assert (source, word) in toy_grammar.PEOPLE
            if probe.distractor >= 0:
                other = tokens[ids[probe.distractor]]
                assert (other, word) not in toy_grammar.PEOPLE
        else:
            plural = source.endswith("s")
            assert len(probe.answers) in (1, 4)
            assert word in ("are",) or plural != word.endswith("s")
        if probe.skill in ("binding", "order"):
            distractor = ids[probe.distractor]
            assert distractor not in probe.answers


def test_next_sentence_ceiling_matches_simulation(grammar, batch):
    rows = np.flatnonzero(batch["next_labels"] != IGNORED)
    chance = np.array(
        [toy.next_probability(i, grammar) for i in batch["input_ids"][rows]]
    )
    right = (chance > 0.5) == (batch["next_labels"][rows] == 0)
    ceiling = toy.next_sentence_ceiling(batch, grammar)
    error = np.sqrt(np.mean(chance * (1 - chance)) / len(rows))
    assert abs(right.mean() - ceiling) < 4 * error + 1e-9
    calibrated = chance.mean() - np.mean(batch["next_labels"][rows] == 0)
    assert abs(calibrated) < 4 * error
    assert 0.95 < ceiling < 1


def test_bad_arguments_are_named():
    for bad in (
        {"mix": {"poems": 1}},
        {"mix": {}},
        {"mix": {"copy": -1}},
        {"mix": {"copy": 0}},
        {"mix": {"copy": float("nan")}},
        {"single_rate": 1.5},
        {"random_rate": -0.1},
    ):
        with pytest.raises(BertError, match=f"{next(iter(bad))}: found"):
            toy.create_grammar(**bad)
    grammar = toy.create_grammar({"copy": 1})
    with pytest.raises(BertError, match="rng is int"):
        toy.sample_batch(0, 4, grammar)
    with pytest.raises(BertError, match="size is 0"):
        toy.sample_batch(np.random.default_rng(0), 0, grammar)


def test_mix_and_rates_change_what_is_drawn(batch, grammar):
    only = toy.create_grammar({"order": 1}, single_rate=0, random_rate=1)
    drawn = toy.sample_batch(np.random.default_rng(11), 200, only)
    assert (drawn["next_labels"] == 1).all()
    assert {probe.skill for probe in toy.find_probes(batch, grammar)} > {
        probe.skill for probe in toy.find_probes(drawn, only)
    }
    words = {only.tokens[i] for i in np.unique(drawn["input_ids"])}
    assert "away" in words and not words & {"has", "he", "she", "red"}
    sure = toy.create_grammar(single_rate=0, random_rate=0)
    row = toy.sample_batch(np.random.default_rng(12), 1, sure)["input_ids"][0]
    assert toy.next_probability(row, sure) == 1
