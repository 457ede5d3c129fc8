"""The toy language: its passages, the skills they test, the exact answers.

The templates and tables of `toy_grammar` compile into pieces: sequences of
token ids of fixed length, made of independent slots. A single is the
beginning of a passage; a pair is a passage cut in two at a full stop; a
random pair joins the first part of one passage to the second part of
another. So the language is a mixture of products, and every conditional
probability is a short exact sum; nothing has to be estimated.
"""

import zlib
from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.training.losses import IGNORED
from bert_np.training.toy_grammar import MIX, SUFFIXES, TABLES, TEMPLATES

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(5)
HELD_OUT_ONE_IN = 10  # one passage in ten is held out


class Slot(NamedTuple):
    """Positions that one of several equally likely rows fills together."""

    positions: np.ndarray  # (k,) within the piece
    rows: np.ndarray  # (n, k) token ids


class Piece(NamedTuple):
    """A sequence of tokens of fixed length: the product of its slots."""

    weight: float  # its probability among the pieces of its kind
    length: int
    slots: tuple
    probes: tuple  # (skill, target, source, distractor)


class Grammar(NamedTuple):
    """The pieces of each kind, and how often each kind occurs."""

    tokens: tuple  # in id order
    single: tuple  # [CLS] text [SEP]
    pair: tuple  # [CLS] A [SEP] B [SEP]
    first: tuple  # [CLS] A [SEP]
    second: tuple  # B [SEP]
    single_rate: float  # probability of a single text
    random_rate: float  # probability that the second text of a pair is random


class Probe(NamedTuple):
    """One question to a model: mask `position` and expect one of `answers`."""

    row: int  # of the batch
    skill: str
    position: int  # of the word to predict, in input_ids
    source: int  # position of the word that determines it
    distractor: int  # position of a word that misleads; -1 if there is none
    answers: tuple  # token ids


# ------------------------------------------------------------ vocabulary


def split_word(word):
    """Return the WordPiece tokens of a word: one, or two with a suffix.

    >>> split_word("playing"), split_word("sleeps")
    (['play', '##ing'], ['sleeps'])
    """
    for suffix in SUFFIXES:
        if word.endswith(suffix):
            return [word[: -len(suffix)], "##" + suffix]
    return [word]


def vocabulary():
    """Return the tokens in the order of their ids: specials, then A to Z."""
    words = {
        word
        for template in TEMPLATES
        for word in template.text.split()
        if not word.isupper()
    }
    words |= {word for _, rows in TABLES for row in rows for word in row}
    pieces = {piece for word in words for piece in split_word(word)}
    return list(SPECIALS) + sorted(pieces)


# --------------------------------------------------- templates to pieces


def create_grammar(mix=MIX, single_rate=0.25, random_rate=0.25):
    """Return the toy language, compiled from its templates.

    Parameters
    ----------
    mix : dict of str to float
        The weight of each family of templates. A family that is left out
        never occurs.
    single_rate : float
        The probability of a single text, from 0 to 1.
    random_rate : float
        The probability that the second text of a pair is random, from 0
        to 1.

    Returns
    -------
    Grammar
    """
    _check_rates(mix, single_rate, random_rate)
    families = [template.family for template in TEMPLATES]
    columns = _columns()
    pieces = {kind: [] for kind in ("single", "pair", "first", "second")}
    for template in TEMPLATES:
        family_weight = mix.get(template.family, 0) / sum(mix.values())
        weight = family_weight / families.count(template.family)
        for kind, cuts in _cut(template.text).items():
            pieces[kind] += [
                _compile(labels, weight / len(cuts), template, columns)
                for labels in cuts
                if weight > 0
            ]
    return Grammar(
        tuple(vocabulary()),
        single_rate=single_rate,
        random_rate=random_rate,
        **{kind: tuple(p) for kind, p in pieces.items()},
    )


def _check_rates(mix, single_rate, random_rate):
    known = sorted({template.family for template in TEMPLATES})
    if (
        set(mix) - set(known)
        or any(not w >= 0 for w in mix.values())
        or not sum(mix.values()) > 0
    ):
        raise BertError(
            f"mix: found {mix}; allowed: weights of at least 0, "
            f"one above 0, for {', '.join(known)}"
        )
    for name, rate in (("single_rate", single_rate), ("random_rate", random_rate)):
        if not 0 <= rate <= 1:
            raise BertError(f"{name}: found {rate}; allowed: 0 to 1")


def _cut(text):
    """Return the lists of labels, one per cut, for each kind of piece.

    A label is a word with its occurrence: the second "the" is "the:2".
    """
    words = text.split()
    labels = [f"{word}:{words[:i].count(word) + 1}" for i, word in enumerate(words)]
    *cuts, end = [i + 1 for i, word in enumerate(words) if word == "."]
    cls, sep = ["[CLS]:1"], ["[SEP]:1"]
    return {
        "single": [cls + labels[:c] + sep for c in (*cuts, end)],
        "pair": [cls + labels[:c] + sep + labels[c:] + ["[SEP]:2"] for c in cuts],
        "first": [cls + labels[:c] + sep for c in cuts],
        "second": [labels[c:] + sep for c in cuts],
    }


def _columns():
    """Return {word or column name: ids of shape (rows, pieces)}."""
    ids = {token: number for number, token in enumerate(vocabulary())}
    fixed = [
        ((word,), [(word,)])
        for template in TEMPLATES
        for word in (*SPECIALS, *template.text.split())
        if not word.isupper() or word in SPECIALS
    ]
    return {
        name: np.array([[ids[piece] for piece in split_word(row[i])] for row in rows])
        for names, rows in (*fixed, *TABLES)
        for i, name in enumerate(names)
    }


def _compile(labels, weight, template, columns):
    """Return the piece that these labelled words form."""
    words = [label.split(":")[0] for label in labels]
    starts = np.cumsum([0] + [columns[word].shape[1] for word in words])
    tables = [names for names, _ in TABLES if set(names) & set(words)]
    fixed = set(words).difference(*tables)
    slots = tuple(_slot(words, starts, names, columns) for names in (fixed, *tables))
    place = {None: -1, **dict(zip(labels, starts.tolist()))}
    probes = tuple(
        (skill, *(place[name] for name in names))
        for skill, *names in template.probes
        if set(names) <= set(place)
    )
    return Piece(weight, int(starts[-1]), slots, probes)


def _slot(words, starts, names, columns):
    """Return the slot of all words that have one of these names."""
    where = [i for i, word in enumerate(words) if word in names]
    positions = [np.arange(starts[i], starts[i + 1]) for i in where]
    return Slot(
        np.concatenate(positions), np.hstack([columns[words[i]] for i in where])
    )


# -------------------------------------------------------------- sampling


def sample_batch(rng, size, grammar, held_out=None):
    """Draw passages as arrays for a model.

    Parameters
    ----------
    rng : numpy.random.Generator
    size : int
        B, the number of passages.
    grammar : Grammar
    held_out : bool or None
        True: only held-out passages (see is_held_out). False: only the
        others, for training. None: both.

    Returns
    -------
    dict
        input_ids, segment_ids, attention_mask : ndarray of shape (B, T),
        with T the longest length in the batch.
        next_labels : ndarray of shape (B,); 0 if the second text follows,
        1 if it is random, -100 for a single text.
        origin : ndarray of shape (B,); the index of the piece among the
        grammar's single, pair or, if the second text is random, first
        pieces.
    """
    _check_draw(rng, size)
    rate = 1 / HELD_OUT_ONE_IN
    kept_rate = {None: 1, True: rate, False: 1 - rate}[held_out]
    parts, found = [], 0
    while found < size:
        ids, labels, origin = _draw(rng, int((size - found) / kept_rate) + 16, grammar)
        keep = slice(None) if held_out is None else is_held_out(ids) == held_out
        parts.append((ids[keep], labels[keep], origin[keep]))
        found += len(parts[-1][0])
    ids, labels, origin = (np.concatenate(p)[:size] for p in zip(*parts))
    ids = ids[:, : (ids != PAD).sum(axis=1).max(initial=1)]
    ends_before = np.cumsum(ids == SEP, axis=1) - (ids == SEP)
    return {
        "input_ids": ids,
        "segment_ids": ((ends_before == 1) & (ids != PAD)).astype(int),
        "attention_mask": (ids != PAD).astype(int),
        "next_labels": labels,
        "origin": origin,
    }


def is_held_out(input_ids):
    """Return which passages are held out of training: one in ten.

    The CRC-32 of the ids decides, so a passage is always on the same side.

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
        Padding at the end does not matter.

    Returns
    -------
    ndarray of shape (B,), bool
    """
    rows = input_ids.astype(np.uint8)
    sums = [zlib.crc32(row.tobytes().rstrip(b"\0")) for row in rows]
    return np.array(sums, np.uint32) % HELD_OUT_ONE_IN == 0


def _check_draw(rng, size):
    if not isinstance(rng, np.random.Generator):
        raise BertError(f"rng is {type(rng).__name__}, allowed: numpy.random.Generator")
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise BertError(f"size is {short(size)}, allowed: an integer above 0")


def _draw(rng, size, grammar):
    """Return ids padded to the longest possible length, labels, origins."""
    pair_rate = 1 - grammar.single_rate
    follow_rate, random_rate = 1 - grammar.random_rate, grammar.random_rate
    rates = [grammar.single_rate, pair_rate * follow_rate, pair_rate * random_rate]
    labels = rng.choice([IGNORED, 0, 1], size, p=rates)
    width = max(piece.length for piece in grammar.first + grammar.single)
    width += max(piece.length for piece in grammar.second)
    ids = np.full((size, width), PAD)
    origin = np.zeros(size, dtype=int)
    kinds = {IGNORED: grammar.single, 0: grammar.pair, 1: grammar.first}
    for label, pieces in kinds.items():
        rows = np.flatnonzero(labels == label)
        origin[rows] = _write(ids, rows, np.zeros_like(rows), pieces, rng)
    starts = (ids[rows] != PAD).sum(axis=1)  # random pairs
    _write(ids, rows, starts, grammar.second, rng)
    return ids, labels, origin


def _write(ids, rows, starts, pieces, rng):
    """Write a random piece into each row; return the indices of the pieces."""
    weights = np.array([piece.weight for piece in pieces])
    drawn = rng.choice(len(pieces), len(rows), p=weights / weights.sum())
    for number in np.unique(drawn):
        at = np.flatnonzero(drawn == number)[:, None]
        for slot in pieces[number].slots:
            row = rng.integers(len(slot.rows), size=len(at))
            ids[rows[at], starts[at] + slot.positions] = slot.rows[row]
    return drawn


def to_texts(input_ids, grammar):
    """Return rows of ids as texts: (first, second), or (text, None).

    >>> grammar = create_grammar()
    >>> to_texts([[CLS, grammar.tokens.index("cat"), SEP]], grammar)
    [('cat', None)]
    """
    texts = []
    for row in np.asarray(input_ids):
        tokens = " ".join(grammar.tokens[i] for i in row[1:] if i != PAD)
        text_a, text_b, *_ = tokens.replace(" ##", "").split("[SEP]") + [""]
        texts.append((text_a.strip(), text_b.strip() or None))
    return texts


# ---------------------------------------------------------------- skills


def find_probes(batch, grammar):
    """Return every question about its skills that a batch allows.

    Only the first text of a random pair has questions. The answers are all
    words that the slot of the passage allows: one word, except for verbs,
    where only singular or plural is determined.

    Parameters
    ----------
    batch : dict
        From sample_batch.
    grammar : Grammar

    Returns
    -------
    list of Probe
    """
    ids = batch["input_ids"]
    return [
        Probe(row, skill, target, *others, _answers(piece, ids[row], target))
        for row, piece in enumerate(_pieces(batch, grammar))
        for skill, target, *others in piece.probes
    ]


def find_targets(batch, grammar):
    """Return (row, position) of every word that find_probes asks for.

    This is much quicker, because it does not look for the answers.
    """
    return [
        (row, target)
        for row, piece in enumerate(_pieces(batch, grammar))
        for _, target, *_ in piece.probes
    ]


def _pieces(batch, grammar):
    """Return the piece of each row; for a random pair, that of its first text."""
    kinds = {IGNORED: grammar.single, 0: grammar.pair, 1: grammar.first}
    labels = batch["next_labels"].tolist()
    return [kinds[label][number] for label, number in zip(labels, batch["origin"])]


def _answers(piece, ids, target):
    """Return the ids that the piece's slot allows at a position."""
    slot = next(s for s in piece.slots if target in s.positions)
    column = slot.positions == target
    agree = (slot.rows == ids[slot.positions]) | column
    return tuple(np.unique(slot.rows[agree.all(axis=1)][:, column]).tolist())


# ---------------------------------------------------------- exact answers


def exact_distribution(input_ids, grammar):
    """Return the exact distribution of each masked word.

    P(x_i | v) = sum_d P(d) P(x_i, v | d) / sum_d P(d) P(v | d)

    over all derivations d, with v the visible tokens. The other masked
    positions are summed over. The separators are visible, so the lengths
    of the texts are known. A word of two tokens is two positions.

    Parameters
    ----------
    input_ids : array-like of shape (T,)
        One passage with its special tokens and [MASK] at the masked
        positions.
    grammar : Grammar

    Returns
    -------
    ndarray of shape (M, V), float64
        One distribution for each [MASK], from left to right.

    Raises
    ------
    BertError
        If the grammar cannot produce the visible tokens.
    """
    joint = sum(joint for _, joint in _explanations(input_ids, grammar))
    return joint / joint.sum(axis=1, keepdims=True)


def next_probability(input_ids, grammar):
    """Return P(B follows A | visible tokens) of one pair, from 0 to 1.

    Parameters and errors are those of exact_distribution.
    """
    (follows, _), (random, _) = _explanations(input_ids, grammar)
    return follows / (follows + random)


def next_sentence_ceiling(batch, grammar):
    """Return the best NSP accuracy that is possible on a batch.

    mean of max(p, 1 - p), with p = P(B follows A | A, B)

    It is below 1 because a random text can follow by chance. Single texts
    do not count.
    """
    rows = batch["input_ids"][batch["next_labels"] != IGNORED]
    p = np.array([next_probability(row, grammar) for row in rows])
    return float(np.maximum(p, 1 - p).mean())


def _explanations(input_ids, grammar):
    """Return (mass, joint) for a text that follows, and for a random one."""
    ids = _check_ids(input_ids, grammar)
    ends = np.flatnonzero(ids == SEP) + 1
    cut = ends[0] if len(ends) else 0
    if len(ends) == 1:
        follow_rate, random_rate = 1, 0  # a single
        mass, joint = _mixture(grammar.single, ids, grammar)
    else:
        follow_rate, random_rate = 1 - grammar.random_rate, grammar.random_rate
        mass, joint = _mixture(grammar.pair, ids, grammar)
    mass_a, joint_a = _mixture(grammar.first, ids[:cut], grammar)
    mass_b, joint_b = _mixture(grammar.second, ids[cut:], grammar)
    joint_ab = np.concatenate([joint_a * mass_b, joint_b * mass_a])
    follows = follow_rate * mass, follow_rate * joint
    random = random_rate * mass_a * mass_b, random_rate * joint_ab
    if not follows[0] + random[0] > 0:
        shown = " ".join(grammar.tokens[i] for i in ids)
        raise BertError(
            f"input_ids: found {shown!r}, which the grammar "
            "cannot produce; allowed: its own passages"
        )
    return follows, random


def _check_ids(input_ids, grammar):
    """Check one passage and return it without its padding."""
    ids = np.asarray(input_ids)
    if (
        ids.ndim != 1
        or ids.dtype.kind not in "iu"
        or not ids.size
        or ids.min() < 0
        or ids.max() >= len(grammar.tokens)
    ):
        raise BertError(
            f"input_ids: found {ids.dtype} of shape {ids.shape}; "
            "allowed: one passage (T,) of integers from 0 to "
            f"{len(grammar.tokens) - 1}"
        )
    return ids[ids != PAD]


def _mixture(pieces, ids, grammar):
    """Return P(visible) and, for each [MASK], P(visible, token)."""
    total, joint = 0.0, np.zeros((len(ids), len(grammar.tokens)))
    for piece in pieces:
        mass, kept = _condition(piece, ids)
        total += mass
        for slot, rows in zip(piece.slots, kept):
            for position, column in zip(slot.positions, rows.T):
                if ids[position] == MASK:
                    counts = np.bincount(column, minlength=len(grammar.tokens))
                    joint[position] += mass * counts / len(column)
    return total, joint[ids == MASK]


def _condition(piece, ids):
    """Return P(piece, visible) and the rows of each slot that fit."""
    mass, kept = piece.weight, []
    if piece.length != len(ids):
        return 0.0, []
    for slot in piece.slots:
        seen = ids[slot.positions]
        agree = ((slot.rows == seen) | (seen == MASK)).all(axis=1)
        kept.append(slot.rows[agree])
        mass *= len(kept[-1]) / len(agree)
        if mass == 0:
            return 0.0, []
    return mass, kept
