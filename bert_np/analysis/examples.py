"""Where else does a head do this? Search many sentences for its best and worst."""

import re
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import check_sentences
from bert_np.analysis.corpora import Sentence
from bert_np.analysis.syntax import DIRECTIONS
from bert_np.analysis.words import run_attention
from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.tokenizer import check_choice, check_count

WORD = re.compile(r"[\w'’-]+|[^\w\s]")


class Example(NamedTuple):
    """A place at which a head looks from one word, the query, to another."""

    words: tuple  # of str: the sentence
    query: int  # place of the word that looks
    key: int  # place of the word looked at
    weight: float  # attention from the query to the key
    expected: float  # the mean weight of the places with this distance
    row: np.ndarray  # (W,): attention from the query to each word
    source: str  # which sentence it is


class Examples(NamedTuple):
    """Places of one kind at which a head's weight stands out; lists of Example."""

    largest: list
    smallest: list
    surprising: list  # another word gets far more
    head: tuple  # (layer, head)
    pattern: str  # what kind of places was searched
    places: int  # how many
    mean: float  # the head's mean weight there


def find_examples(
    sentences,
    params,
    config,
    tokenizer,
    *,
    head,
    pattern=None,
    direction=DIRECTIONS[0],
    most=5,
    report=None,
    batch_size=32,
):
    """Find where a head's weight is largest, smallest and most surprising.

    A place is surprising if the head looks elsewhere, and decidedly so:
    the weight of its strongest other word, minus that of the key, is
    large. Where a weight is merely small, the head may have looked at no
    word at all, but at [CLS] or [SEP]. The weight expected at a place is
    the head's mean weight over all places searched whose words are as far
    apart, in the same direction. A list holds each sentence once at most.

    Parameters
    ----------
    sentences : list of Sentence, of str, or of lists of str
        Texts are cut into words and marks. A relation needs Sentence.
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    head : (int, int)
        Layer and head.
    pattern : str, int, function or None
        Which places are searched. A relation such as "obj": from each
        dependent to its syntactic head. An offset such as -1: from each
        word to the one before. A function of a sentence that returns
        pairs (place of the query, place of the key). None: every pair of
        words.
    direction : "dependent to head" or "head to dependent"
        Of a relation: which of the two looks.
    most : int
        How many places each list holds.
    report : function, optional
        Called with a line of text about ten times in all.
    batch_size : int
        How many sentences, of similar length, are run together.

    Returns
    -------
    Examples
    """
    require_config(config)
    head, most = _check_head(head, config), check_count(most, "most", 1)
    check_choice(direction, "direction", DIRECTIONS)
    word_lists = _list_words(sentences, pattern)
    found = _list_places(sentences, word_lists, pattern, direction)
    maps = {}
    options = {"report": report, "batch_size": batch_size}
    model = params, config, tokenizer
    for number, whole in run_attention(word_lists, *model, **options):
        maps[number] = whole[head].astype(float)
    others = {number: strongest_others(values) for number, values in maps.items()}
    weights = np.array([maps[n][i, j] for n, i, j in found])
    elsewhere = np.array([others[n][i, j] for n, i, j in found])
    expected = mean_by_distance([j - i for _, i, j in found], weights)

    def example(place):
        n, i, j = found[place]
        source = getattr(sentences[n], "source", "") or f"sentence {n}"
        numbers = float(weights[place]), float(expected[place])
        return Example(word_lists[n], i, j, *numbers, maps[n][i], source)

    orders = -weights, weights, weights - elsewhere
    lists = [list(map(example, _pick(found, order, most))) for order in orders]
    name = _name_pattern(pattern, direction)
    return Examples(*lists, head, name, len(found), float(weights.mean()))


def strongest_others(weights):
    """Return for each query and key the largest weight of another word.

    Parameters
    ----------
    weights : ndarray of shape (W, W)

    Returns
    -------
    ndarray of shape (W, W)
        Neither the query itself nor the key counts; 0 if nothing is left.

    >>> strongest_others(np.array([[0.5, 0.25, 0.125], [0, 1, 0], [0, 0, 1]]))[0]
    array([0.25 , 0.125, 0.25 ])
    """
    W = len(weights)
    rows = np.where(np.eye(W, dtype=bool), 0, weights)
    *_, second, first = np.sort(np.pad(rows, ((0, 0), (2, 0))), axis=1).T  # each (W,)
    is_first = np.arange(W) == rows.argmax(axis=1)[:, None]
    return np.where(is_first, second[:, None], first[:, None])


def mean_by_distance(offsets, weights):
    """Return for each place the mean weight of the places with its offset.

    >>> mean_by_distance([-1, 2, -1], [0.25, 0.5, 0.75])
    array([0.5, 0.5, 0.5])
    """
    _, kinds = np.unique(offsets, return_inverse=True)
    return (np.bincount(kinds, weights) / np.bincount(kinds))[kinds]


def _check_head(head, config):
    if not isinstance(head, (list, tuple)) or len(head) != 2:
        raise BertError(f"head = {short(head)}, allowed: (layer, head)")
    limits = config.num_hidden_layers, config.num_attention_heads
    return tuple(
        check_count(number, f"head[{i}]", 0, limit - 1)
        for i, (number, limit) in enumerate(zip(head, limits))
    )


def _list_words(sentences, pattern):
    """Return the words of each sentence; a relation needs parsed ones."""
    if not isinstance(sentences, (list, tuple)) or len(sentences) == 0:
        raise BertError(f"sentences is {short(sentences)}, allowed: a list of Sentence")
    if isinstance(pattern, str) or isinstance(sentences[0], Sentence):
        check_sentences(sentences)
        return [sentence.words for sentence in sentences]
    lists = [WORD.findall(s) if isinstance(s, str) else s for s in sentences]
    for number, words in enumerate(lists):
        if not isinstance(words, (list, tuple)) or len(words) == 0:
            raise BertError(
                f"sentences[{number}] = {short(sentences[number])}, allowed: "
                "Sentence, a text with words, or a list of words"
            )
    return lists


def _list_places(sentences, word_lists, pattern, direction):
    """List (number of the sentence, query, key) of all places to search."""
    found = [
        (number, query, key)
        for number, (sentence, words) in enumerate(zip(sentences, word_lists))
        for query, key in _places(sentence, words, pattern, direction, number)
    ]
    if not found:
        raise BertError(f"pattern = {short(pattern)}: no such place in the sentences")
    return found


def _places(sentence, words, pattern, direction, number):
    """List the (query, key) of a sentence that fit the pattern."""
    W = len(words)
    if pattern is None:
        return [(i, j) for i in range(W) for j in range(W) if i != j]
    if isinstance(pattern, str):
        pairs = zip(range(W), sentence.heads, sentence.relations)
        found = [(i, j) for i, j, name in pairs if name == pattern and j >= 0]
        return found if direction == DIRECTIONS[0] else [(j, i) for i, j in found]
    if callable(pattern):
        return _given_places(pattern(sentence), W, number)
    offset = check_count(pattern, "pattern", -(2**31), 2**31)
    return [(i, i + offset) for i in range(W) if 0 <= i + offset < W]


def _given_places(pairs, W, number):
    """Check what a function returned: pairs of places within the sentence."""
    name = f"pattern of sentences[{number}]"
    if not isinstance(pairs, (list, tuple)):
        raise BertError(f"{name} is {short(pairs)}, allowed: a list of (query, key)")
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise BertError(f"{name} holds {short(pair)}, allowed: (query, key)")
    return [tuple(check_count(i, name, 0, W - 1) for i in pair) for pair in pairs]


def _pick(found, order, most):
    """Pick the first places in an order, one in each sentence at most."""
    picked = {}
    for place in np.argsort(order, kind="stable"):
        picked.setdefault(found[place][0], place)
        if len(picked) == most:
            break
    return list(picked.values())


def _name_pattern(pattern, direction):
    """Say in words which places were searched."""
    if pattern is None:
        return "every pair of words"
    if isinstance(pattern, str):
        return f"{pattern}, {direction}"
    if callable(pattern):
        return getattr(pattern, "__name__", "places of a function")
    return f"offset {int(pattern):+}"
