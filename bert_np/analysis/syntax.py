"""Which heads find which grammatical relation, beside a baseline.

A treebank names the syntactic head of each word: in "the cat sat", *cat*
depends on *sat*, as its subject. An attention head finds this pair if, of
all other words, the dependent attends most to its syntactic head, or the
other way round.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import check_sentences, require_generator
from bert_np.analysis.words import run_attention
from bert_np.config import require_config
from bert_np.errors import BertError, require_bool, short
from bert_np.parameters import init_params
from bert_np.tokenizer import check_count

DIRECTIONS = ("dependent to head", "head to dependent")
LEFT_OUT = ("root", "punct")  # no head; a convention
DRAWS = 1000  # resamplings for an interval


class RelationScores(NamedTuple):
    """How often heads find the pairs of each relation; R relations.

    Axis 0 of length 2 is the direction: 0 if the dependent attends to its
    syntactic head, 1 if the head attends to its dependent. Heads and
    offsets were chosen on one half of the sentences; every number is from
    the other half. Intervals hold 95 % of 1,000 resamplings of sentences.
    """

    relations: tuple  # R names, the most frequent first
    counts: np.ndarray  # (R,): pairs in the half that is reported
    accuracy: np.ndarray  # (2, R, L, A): share of pairs that each head finds
    heads: np.ndarray  # (2, R, 2): layer and head chosen
    best: np.ndarray  # (2, R): accuracy of the chosen head
    offsets: np.ndarray  # (R,): place of the head minus the dependent's, chosen
    baseline: np.ndarray  # (R,): share of pairs at that offset
    best_interval: np.ndarray | None = None  # (2, R, 2); None without rng
    baseline_interval: np.ndarray | None = None  # (R, 2)
    gain_interval: np.ndarray | None = None  # (2, R, 2): of best - baseline
    control: np.ndarray | None = None  # (2, R): best head of random weights


class Pairs(NamedTuple):
    """All pairs of a dependent and its head in some sentences."""

    relations: np.ndarray  # (N,) of str
    sentences: np.ndarray  # (N,): number of the sentence
    dependents: np.ndarray  # (N,): place of the dependent
    heads: np.ndarray  # (N,): place of its head


def score_relations(
    sentences,
    params,
    config,
    tokenizer,
    *,
    rng=None,
    relations=None,
    merge_subtypes=False,
    least=25,
    report=None,
    batch_size=32,
):
    """Measure how often each head finds each grammatical relation.

    A head finds a pair if the dependent's strongest other word is its
    syntactic head (direction 0), or the head's strongest other word is
    this dependent (direction 1). [CLS] and [SEP] are left out, see
    `word_attention`; punctuation marks are words that may be the
    strongest, but their own relation, punct, is not measured.

    The baseline is the best fixed offset, such as "always the next word".
    For each relation the best head and the best offset are chosen on the
    sentences 0, 2, 4, ... and reported on 1, 3, 5, ...: the best of many
    heads is partly lucky on the sentences on which it was chosen.

    Parameters
    ----------
    sentences : list of Sentence
        As `read_treebank` returns them; at least two.
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    rng : numpy.random.Generator, optional
        Draws the resamplings and the random weights of the control.
        Without it there are neither intervals nor control.
    relations : list of str, optional
        Only these; None: all with enough pairs.
    merge_subtypes : bool
        True: what follows a colon is ignored, so that nsubj:pass counts
        as nsubj.
    least : int
        How many pairs a relation needs in each half.
    report : function, optional
        Called with a line of text about ten times for each model.
    batch_size : int
        How many sentences, of similar length, are run together.

    Returns
    -------
    RelationScores
        float64.

    Source: Clark et al. 2019, section 4.2 and table 1.
    """
    require_config(config)
    require_bool("merge_subtypes", merge_subtypes)
    least = check_count(least, "least", 1)
    if rng is not None:
        require_generator(rng)
    check_sentences(sentences, 2)
    pairs = list_pairs(sentences, merge_subtypes)
    groups = split_pairs(pairs, relations, least)
    found = _find_pairs(sentences, pairs, params, config, tokenizer, report, batch_size)
    heads, best, accuracy = choose_heads(found, groups.values())
    offsets, at_offset = choose_offsets(pairs, groups.values())
    scores = RelationScores(
        relations=tuple(groups),
        counts=np.array([len(reported) for _, reported in groups.values()]),
        accuracy=accuracy,
        heads=heads,
        best=best,
        offsets=offsets,
        baseline=np.array([hits.mean() for hits in at_offset]),
    )
    if rng is None:
        return scores
    ends = _intervals(found, heads, at_offset, pairs, groups.values(), rng)
    params = init_params(config, rng)
    random = _find_pairs(
        sentences, pairs, params, config, tokenizer, report, batch_size
    )
    return scores._replace(**ends, control=choose_heads(random, groups.values())[1])


def list_pairs(sentences, merge_subtypes=False):
    """List every pair of a dependent and its head, sentence by sentence."""
    rows = [
        (relation.split(":")[0] if merge_subtypes else relation, number, place, head)
        for number, sentence in enumerate(sentences)
        for place, (head, relation) in enumerate(
            zip(sentence.heads, sentence.relations)
        )
        if head >= 0
    ]
    columns = list(zip(*rows)) or [(), (), (), ()]
    return Pairs(np.array(columns[0], dtype=str), *map(np.array, columns[1:]))


def split_pairs(pairs, relations, least):
    """Return {relation: (pairs to choose on, pairs to report)}.

    The pairs are given by their numbers; the sentences 0, 2, 4, ... are
    those to choose on. The most frequent relation comes first.
    """
    groups = {}
    for name, _ in Counter(pairs.relations.tolist()).most_common():
        rows = np.flatnonzero(pairs.relations == name)
        odd = pairs.sentences[rows] % 2 == 1
        if name not in LEFT_OUT and least <= odd.sum() <= len(rows) - least:
            groups[name] = rows[~odd], rows[odd]
    if not groups:
        raise BertError(
            f"sentences: no relation has {least} pairs in each half of them; "
            "give more sentences, or a smaller least"
        )
    if relations is None:
        return groups
    if not isinstance(relations, (list, tuple)) or len(relations) == 0:
        raise BertError(f"relations = {short(relations)}, allowed: a list of str, None")
    for name in relations:
        if not isinstance(name, str) or name not in groups:
            raise BertError(
                f"relations: {short(name)} has fewer than {least} pairs in a half; "
                f"allowed: {', '.join(groups)}"
            )
    return {name: groups[name] for name in relations}


def _find_pairs(sentences, pairs, params, config, tokenizer, report, batch_size):
    """Return which head finds which pair: bool (2, N, L, A)."""
    words = [sentence.words for sentence in sentences]
    options = {
        "report": report,
        "batch_size": batch_size,
        "what": "sentences[{}].words",
    }
    size = config.num_hidden_layers, config.num_attention_heads
    found = np.zeros((2, len(pairs.heads), *size), dtype=bool)
    for number, maps in run_attention(words, params, config, tokenizer, **options):
        rows = np.flatnonzero(pairs.sentences == number)
        dependents, heads = pairs.dependents[rows], pairs.heads[rows]
        found[:, rows] = find_in_maps(maps, dependents, heads)
    return found


def find_in_maps(maps, dependents, heads):
    """Return which pairs are found in the maps (L, A, W, W) of a sentence.

    Parameters
    ----------
    maps : ndarray of shape (L, A, W, W)
    dependents, heads : ndarray of int of shape (N,)
        Pairs of words.

    Returns
    -------
    ndarray of bool of shape (2, N, L, A)
    """
    others = np.where(np.eye(maps.shape[-1], dtype=bool), -1, maps)
    strongest = others.argmax(axis=-1)  # (L, A, W)
    to_head = strongest[..., dependents] == heads  # (L, A, N)
    to_dependent = strongest[..., heads] == dependents
    return np.moveaxis(np.stack([to_head, to_dependent]), -1, 1)


def choose_heads(found, groups):
    """Choose the best head on one half, and measure all on the other.

    Parameters
    ----------
    found : ndarray of bool of shape (2, N, L, A)
    groups : list of R pairs of int arrays
        For each relation the pairs to choose on, and those to report.

    Returns
    -------
    heads : ndarray of int of shape (2, R, 2)
    best : ndarray of shape (2, R)
    accuracy : ndarray of shape (2, R, L, A)
    """
    choice, accuracy = (
        np.stack([found[:, rows[half]].mean(axis=1) for rows in groups], axis=1)
        for half in (0, 1)
    )  # each (2, R, L, A)
    size = accuracy.shape[2:]
    flat = choice.reshape(*choice.shape[:2], -1).argmax(axis=-1)  # (2, R)
    heads = np.stack(np.unravel_index(flat, size), axis=-1)
    direction, relation = np.indices(flat.shape)
    best = accuracy[direction, relation, heads[..., 0], heads[..., 1]]
    return heads, best, accuracy


def choose_offsets(pairs, groups):
    """Choose the most frequent offset on one half, and apply it to the other.

    Returns
    -------
    offsets : ndarray of int of shape (R,)
    hits : list of R bool arrays
        Of each reported pair, whether it has this offset.
    """
    distances = pairs.heads - pairs.dependents
    offsets = []
    for rows, _ in groups:
        values, counts = np.unique(distances[rows], return_counts=True)
        offsets.append(values[counts.argmax()])
    reported = [distances[rows] for _, rows in groups]
    return np.array(offsets), [d == best for d, best in zip(reported, offsets)]


def _intervals(found, heads, at_offset, pairs, groups, rng):
    """Resample the reported sentences: where 95 % of the means lie."""
    n = pairs.sentences.max() // 2 + 1
    draws = rng.multinomial(n, np.full(n, 1 / n), DRAWS)  # how often each is drawn
    ends = []
    for relation, (_, rows) in enumerate(groups):
        hits = [
            found[way, rows, layer, head]
            for way, (layer, head) in enumerate(heads[:, relation])
        ]
        means = _resample([*hits, at_offset[relation]], pairs.sentences[rows], draws)
        gains = means[:2] - means[2]
        ends.append(np.nanpercentile([*means, *gains], (2.5, 97.5), axis=1))
    ends = np.transpose(ends, (2, 0, 1))  # (5, R, 2)
    return {
        "best_interval": ends[:2],
        "baseline_interval": ends[2],
        "gain_interval": ends[3:],
    }


def _resample(hits, sentences, draws):
    """Return the mean of each kind of hits over the pairs, for each drawing."""
    places = sentences // 2
    counts = draws @ np.bincount(places, minlength=draws.shape[1])
    sums = [draws @ np.bincount(places, h, minlength=draws.shape[1]) for h in hits]
    with np.errstate(invalid="ignore"):  # a drawing may hold no pair
        return np.array(sums) / counts


def format_relations(scores):
    """Write relation scores as a Markdown table, one row per relation.

    Parameters
    ----------
    scores : RelationScores

    Returns
    -------
    str
    """
    if not isinstance(scores, RelationScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what score_relations returns"
        )
    ways = [f"{way} | accuracy | random weights" for way in DIRECTIONS]
    lines = [
        f"| relation | pairs | {' | '.join(ways)} | offset | accuracy |",
        "|---|---:|---|---|---:|---|---|---:|---:|---|",
    ]
    for row, name in enumerate(scores.relations):
        cells = [name, f"{scores.counts[row]:,}"]
        for way in (0, 1):
            layer, head = scores.heads[way, row]
            cells += [f"({layer}, {head})", _with_ends(scores, "best", (way, row))]
            cells.append(
                "" if scores.control is None else f"{scores.control[way, row]:.2f}"
            )
        cells += [f"{scores.offsets[row]:+}", _with_ends(scores, "baseline", row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_ends(scores, name, place):
    """Write a number of the scores, followed by the ends of its interval."""
    value = f"{getattr(scores, name)[place]:.2f}"
    ends = getattr(scores, f"{name}_interval")
    if ends is None:
        return value
    return f"{value} [{ends[place][0]:.2f}, {ends[place][1]:.2f}]"
