"""Pairs of sentences that differ in one thing, and which head notices.

"The boy lost the key because he was tired", "... because it was tired":
one word is changed, and with it the noun that the pronoun can mean. A head
that follows the pronoun looks at the boy in the first sentence and at the
key in the second. A head that ignores the change looks at the same noun
twice, so it is right in exactly one sentence of each pair, whatever it
does: half of all sentences right is no finding.
"""

import math
import re
from itertools import product
from typing import NamedTuple

import numpy as np

from bert_np.analysis.words import run_attention
from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.tokenizer import check_count, check_text

SLOT = re.compile(r"\{(\w+)\}")
MARKS = re.compile(r"([.,;:!?])(?=\s|$)")  # a mark at the end of a word
MOST_PAIRS = 10_000

PEOPLE = ["boy", "farmer", "king", "teacher", "doctor", "man"]
THINGS = ["ball", "cup", "key", "book", "hat", "box"]
ANIMALS = ["dogs", "cats", "horses", "birds", "lions", "bears", "foxes"]
# name -> the arguments of make_pairs. The word between asterisks looks; {first}
# is the noun that it should find in the first sentence, {second} in the second.
# All three stand at the same places in both sentences: a head that goes by
# places alone is right once. A verb should find who undergoes the action.
TEMPLATES = {
    "he or it": {
        "templates": [
            (
                "The {first} dropped the {second} because *he* was old.",
                "The {first} dropped the {second} because *it* was old.",
            ),
            (
                "The {second} fell on the {first} because *he* was heavy.",
                "The {second} fell on the {first} because *it* was heavy.",
            ),
        ],
        "first": PEOPLE,
        "second": THINGS,
    },
    "he or they": {
        "templates": [
            (
                "The {first} met the {second} when *he* came home.",
                "The {first} met the {second} when *they* came home.",
            ),
            (
                "The {second} met the {first} when *he* came home.",
                "The {second} met the {first} when *they* came home.",
            ),
        ],
        "first": PEOPLE,
        "second": ["girls", "farmers", "kings", "teachers", "doctors", "men"],
    },
    "is or are": {
        "templates": [
            (
                "The {first} behind the {second} *is* old.",
                "The {first} behind the {second} *are* old.",
            ),
            (
                "The {second} behind the {first} *is* old.",
                "The {second} behind the {first} *are* old.",
            ),
        ],
        "first": THINGS,
        "second": ["balls", "cups", "keys", "books", "hats", "boxes"],
    },
    "active or passive": {
        "templates": [
            (
                "The {second} also *saw* some {first}.",
                "The {second} were *seen* by {first}.",
            ),
            (
                "The {second} also *chased* some {first}.",
                "The {second} were *chased* by {first}.",
            ),
        ],
        "first": ANIMALS,
        "second": ANIMALS,
    },
}


class MinimalPair(NamedTuple):
    """Two sentences that differ in one thing, and what to look at in each.

    In both sentences one word looks, the query, and there are two
    candidates; the first is right in the first sentence, the second in
    the second.
    """

    words: tuple  # two tuples of str
    queries: tuple  # for each sentence the place of the word that looks
    candidates: tuple  # for each sentence the places of the two candidates
    template: int  # which template it was made from


class PairScores(NamedTuple):
    """How heads look in N minimal pairs.

    S = 2 are the sentences of a pair, C = 2 its candidates.
    """

    labels: tuple  # two names of the sentences: the word that looks in each
    attention: np.ndarray  # (S, C, L, A): mean from the query to each candidate
    outcomes: np.ndarray  # (3, L, A): pairs with neither, one, both sentences right
    margins: np.ndarray  # (N, S, L, A): to the first candidate minus to the second
    best_by_luck: int  # pairs with both right that the luckiest head reaches


def make_pairs(templates, *, first, second, **words):
    """Fill templates with words: one minimal pair for each combination.

    Parameters
    ----------
    templates : (str, str), or list of such
        Two sentences that differ in one thing. {first} and {second} stand
        for the two candidates: the first is right in the first sentence,
        the second in the second. Asterisks mark the word that looks:
        "The {first} lost the {second} because *he* was tired."
    first, second : list of str
        The words for {first} and {second}. Where both are the same word,
        no pair is made.
    **words : list of str
        Words for other slots, such as verb=["lost", "found"] for {verb}.

    Returns
    -------
    list of MinimalPair
    """
    slots = {"first": first, "second": second} | words
    for name, values in slots.items():
        _check_words(name, values)
    count = math.prod(map(len, slots.values()))
    if count > MOST_PAIRS:
        raise BertError(f"the words give {count:,} pairs, allowed: {MOST_PAIRS:,}")
    parsed = [_parse_pair(pair, slots) for pair in _list_templates(templates)]
    pairs = [
        _fill(pair, dict(zip(slots, chosen)), number)
        for number, pair in enumerate(parsed)
        for chosen in product(*slots.values())
        if chosen[0] != chosen[1]
    ]
    if not pairs:
        raise BertError("first and second are the same word: no pair can be made")
    return pairs


def score_pairs(pairs, params, config, tokenizer, *, report=None, batch_size=32):
    """Measure which heads notice what changes between minimal pairs.

    A sentence is right for a head if the word that looks gives more
    attention to its right candidate than to the other. A head that
    ignores the change is right in one sentence of every pair. A head that
    decides at random has both right in a quarter of the pairs; of L · A such
    heads the best has at most `best_by_luck` pairs right, with
    probability 0.95. This assumes that pairs are independent, which pairs
    that share nouns are not: a head should be well above it.

    Parameters
    ----------
    pairs : list of MinimalPair
        As `make_pairs` returns them.
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    report : function, optional
        Called with a line of text about ten times in all.
    batch_size : int
        How many sentences, of similar length, are run together.

    Returns
    -------
    PairScores

    Source: the idea of minimal pairs from Linzen et al. 2016 and Marvin
    and Linzen 2018, who ask a model for the likelier sentence.
    """
    require_config(config)
    _check_pairs(pairs)
    words = [words for pair in pairs for words in pair.words]
    size = config.num_hidden_layers, config.num_attention_heads
    looked = np.zeros((len(pairs), 2, 2, *size))  # (N, S, C, L, A)
    options = {"report": report, "batch_size": batch_size}
    for number, maps in run_attention(words, params, config, tokenizer, **options):
        pair, sentence = pairs[number // 2], number % 2
        row = maps[:, :, pair.queries[sentence]]  # (L, A, W)
        for candidate, place in enumerate(pair.candidates[sentence]):
            looked[number // 2, sentence, candidate] = row[..., place]
    margins = looked[:, :, 0] - looked[:, :, 1]
    return PairScores(
        labels=_labels(pairs),
        attention=looked.mean(axis=0),
        outcomes=count_outcomes(margins),
        margins=margins,
        best_by_luck=best_by_luck(len(pairs), math.prod(size)),
    )


def count_outcomes(margins):
    """Count the pairs with neither, one and both sentences right.

    >>> count_outcomes(np.array([[0.2, 0.1], [0.2, -0.1], [0.3, 0.4]]))
    array([0, 2, 1])
    """
    right = (margins[:, 0] > 0).astype(int) + (margins[:, 1] < 0)
    return np.array([(right == count).sum(axis=0) for count in (0, 1, 2)])


def best_by_luck(pairs, heads, probability=0.95):
    """Return how many pairs the luckiest of some heads has right, at most.

    P(best <= k) = P(X <= k) ** heads, where X is binomial(pairs, 1/4).

    Parameters
    ----------
    pairs, heads : int
    probability : float
        That the best head has at most this many.

    Returns
    -------
    int
    """
    total = 0.0
    for k in range(pairs + 1):
        ways = math.lgamma(pairs + 1) - math.lgamma(k + 1) - math.lgamma(pairs - k + 1)
        total += math.exp(ways + k * math.log(0.25) + (pairs - k) * math.log(0.75))
        if total > 0 and heads * math.log(min(total, 1)) >= math.log(probability):
            return k
    return pairs


def format_pairs(scores, most=5):
    """Write pair scores as a Markdown table: the best heads, then luck.

    Parameters
    ----------
    scores : PairScores
    most : int
        How many heads are listed, those with the most pairs right first.

    Returns
    -------
    str
    """
    if not isinstance(scores, PairScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what score_pairs returns"
        )
    most, N = check_count(most, "most", 1), len(scores.margins)
    ways = [f"{label}: {way}" for label in scores.labels for way in ("first", "second")]
    lines = [
        f"| head | {' | '.join(ways)} | neither right | one | both |",
        f"|---|{'---:|' * 7}",
    ]
    both = scores.outcomes[2]
    for place in np.argsort(-both, axis=None, kind="stable")[:most]:
        layer, head = np.unravel_index(place, both.shape)
        means = scores.attention[:, :, layer, head].ravel()
        cells = [f"({layer}, {head})", *(f"{mean:.2f}" for mean in means)]
        cells += map(str, scores.outcomes[:, layer, head])
        lines.append(f"| {' | '.join(cells)} |")
    blank = " |" * 4
    lines.append(f"| ignores the change |{blank} 0 | {N} | 0 |")
    lines.append(f"| decides at random |{blank} {N / 4:g} | {N / 2:g} | {N / 4:g} |")
    lines.append(f"| luckiest of {both.size} |{blank} | | {scores.best_by_luck} |")
    return "\n".join(lines)


def _labels(pairs):
    """Name the two sentences by the words that look, if these tell them apart."""
    looking = {tuple(w[q] for w, q in zip(p.words, p.queries)) for p in pairs}
    labels = looking.pop()
    if looking or labels[0] == labels[1]:
        return "sentence 1", "sentence 2"
    return labels


def _list_templates(templates):
    """Return a list of pairs of str."""
    is_list = isinstance(templates, (list, tuple)) and len(templates) > 0
    pairs = [templates] if is_list and isinstance(templates[0], str) else templates
    for pair in pairs if is_list else [templates]:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise BertError(f"templates: {short(pair)}, allowed: two str, or a list")
        for text in pair:
            check_text(text, "templates: a sentence")
    return pairs


def _parse_pair(pair, slots):
    """Cut two templates into words, and find the query in each."""
    parsed = []
    for text in pair:
        words = MARKS.sub(r" \1", text).split()
        marked = [i for i, w in enumerate(words) if w[0] == w[-1] == "*" and len(w) > 2]
        if len(marked) != 1:
            raise BertError(
                f"template {short(text)} has {len(marked)} words between asterisks, "
                "allowed: one, such as *it*"
            )
        words[marked[0]] = words[marked[0]][1:-1]
        found = [name for word in words for name in SLOT.findall(word)]
        for name in ("first", "second"):
            if words.count(f"{{{name}}}") != 1:
                raise BertError(
                    f"template {short(text)} has no single word {{{name}}}, "
                    "which stands for a candidate"
                )
        if unknown := sorted(set(found) - slots.keys()):
            raise BertError(f"template {short(text)}: no words for {{{unknown[0]}}}")
        parsed.append((words, marked[0]))
    return parsed


def _fill(parsed, chosen, number):
    """Make one minimal pair from two templates and the words for their slots."""
    words, candidates = [], []
    for template, _ in parsed:
        words.append(
            tuple(SLOT.sub(lambda match: chosen[match[1]], word) for word in template)
        )
        places = [template.index(f"{{{name}}}") for name in ("first", "second")]
        candidates.append(tuple(places))
    queries = tuple(query for _, query in parsed)
    return MinimalPair(tuple(words), queries, tuple(candidates), number)


def _check_words(name, values):
    if not isinstance(values, (list, tuple)) or len(values) == 0:
        raise BertError(f"{name} = {short(values)}, allowed: a list of one or more str")
    for place, word in enumerate(values):
        check_text(word, f"{name}[{place}]")
        if not word.strip():
            raise BertError(f"{name}[{place}] = {short(word)}, allowed: a word")


def _check_pairs(pairs):
    """Refuse what is not a list of minimal pairs with places within words."""
    if isinstance(pairs, MinimalPair) or not isinstance(pairs, (list, tuple)):
        raise BertError(f"pairs is {short(pairs)}, allowed: a list of MinimalPair")
    if not 1 <= len(pairs) <= MOST_PAIRS:
        raise BertError(f"pairs has {len(pairs)} entries, allowed: 1 to {MOST_PAIRS:,}")
    for number, pair in enumerate(pairs):
        if not isinstance(pair, MinimalPair):
            raise BertError(
                f"pairs[{number}] is {type(pair).__name__}, allowed: MinimalPair, as "
                "make_pairs returns them"
            )
        try:
            for words, query, (first, second) in zip(*pair[:3], strict=True):
                for place in (query, first, second):
                    check_count(place, f"pairs[{number}]: a place", 0, len(words) - 1)
        except (TypeError, ValueError) as error:
            raise BertError(f"pairs[{number}]: {error}") from None
