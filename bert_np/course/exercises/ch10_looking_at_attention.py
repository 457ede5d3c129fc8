"""Exercises of chapter 10: looking at attention."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

PROBS = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
LONGER = np.array(
    [
        [0.4, 0.3, 0.2, 0.1],
        [0.9, 0.0, 0.1, 0.0],
        [0.1, 0.8, 0.0, 0.1],
        [0.0, 0.2, 0.7, 0.1],
    ]
)


# ---------------------------------------------------------- previous token


def my_previous_share(probs):
    shares = [probs[i, i - 1] for i in range(1, len(probs))]
    return sum(shares) / len(shares)


def _next_token(probs):
    """that is the next token: the token before stands below the diagonal,
    at probs[i, i - 1]
    """
    return np.diagonal(probs, 1).mean()


def _own_token(probs):
    """that is the token itself, the diagonal: the token before is one
    column to the left
    """
    return np.diagonal(probs).mean()


def _summed(probs):
    """that is the sum: divide by the number of tokens that have one before
    them, T - 1
    """
    return np.diagonal(probs, -1).sum()


def _divided_by_all(probs):
    """you divided by T: token 0 has none before it, so only T - 1 tokens
    count
    """
    return np.diagonal(probs, -1).sum() / len(probs)


def _wraps_around(probs):
    """row 0 asks for column -1, and NumPy gives the last one: begin at row
    1
    """
    return np.mean([probs[i, i - 1] for i in range(len(probs))])


def _shares_listed(probs):
    """these are the right probabilities: now take their mean"""
    return np.diagonal(probs, -1)


def _of_all_before(probs):
    """you took all tokens before it: only the one just before is asked for"""
    return np.tril(probs, -1).sum() / (len(probs) - 1)


def _median(probs):
    """that is the median: the mean is asked for"""
    return np.median(np.diagonal(probs, -1))


def _draw_map(rng):
    """A map of two tokens or more."""
    T = rng.integers(2, 8)
    return (rng.dirichlet(np.ones(T), T),)


# ------------------------------------------------------------- real tokens


def my_mean_over_real(values, attention_mask):
    real = attention_mask == 1
    return values[real].mean()


def _padding_counts(values, attention_mask):
    """padding counts too: leave out the places where the mask is 0"""
    return values.mean()


def _zeros_count(values, attention_mask):
    """padding is 0 now, but it still counts as a token: divide by
    attention_mask.sum()
    """
    return (values * attention_mask).mean()


def _mean_of_means(values, attention_mask):
    """you took the mean of the sentences' means: then a token of a short
    sentence counts more
    """
    sums = (values * attention_mask).sum(axis=1)
    return (sums / attention_mask.sum(axis=1)).mean()


def _for_each_sentence(values, attention_mask):
    """that is one mean for each sentence: a single number is asked for"""
    return (values * attention_mask).sum(axis=1) / attention_mask.sum(axis=1)


def _where_not_zero(values, attention_mask):
    """a real token may have the value 0: divide by attention_mask.sum()"""
    seen = values * attention_mask
    return seen.sum() / np.count_nonzero(seen)


def _by_length(values, attention_mask):
    """you took the first places of each row: padding may stand elsewhere,
    the mask says where
    """
    lengths = attention_mask.sum(axis=1)
    return values[np.arange(values.shape[1]) < lengths[:, None]].mean()


def _draw_values(rng):
    """Values, zeros among them, and a mask of any form with a real token."""
    shape = rng.integers(1, 6, 2)
    mask = (rng.random(shape) < 0.6).astype(int)
    mask[rng.integers(shape[0]), rng.integers(shape[1])] = 1
    return rng.integers(-2, 4, shape) / 4, mask


# --------------------------------------------------------------- relations


def my_score_relation(attention, dependents, heads):
    own = np.eye(attention.shape[-1], dtype=bool)
    strongest = np.where(own, -1, attention).argmax(axis=-1)  # (A, W)
    return (strongest[:, dependents] == heads).mean(axis=-1)


def _itself_too(attention, dependents, heads):
    """a word that attends most to itself counts for you as not found: look for
    the strongest *other* word
    """
    return (attention.argmax(axis=-1)[:, dependents] == heads).mean(axis=-1)


def _head_looks(attention, dependents, heads):
    """you asked where the syntactic head looks: the dependent is the query"""
    return my_score_relation(attention, heads, dependents)


def _by_columns(attention, dependents, heads):
    """you took the strongest query of a column: a row is the word that looks"""
    return my_score_relation(attention.swapaxes(-1, -2), dependents, heads)


def _mean_attention(attention, dependents, heads):
    """that is the mean attention to the syntactic head: count the pairs in which
    it is the strongest
    """
    return attention[:, dependents, heads].mean(axis=-1)


def _more_than_half(attention, dependents, heads):
    """the strongest other word need not get more than half"""
    return (attention[:, dependents, heads] > 0.5).mean(axis=-1)


def _counted(attention, dependents, heads):
    """that is the number of pairs found: divide by the number of pairs"""
    return my_score_relation(attention, dependents, heads) * len(heads)


def _all_heads_together(attention, dependents, heads):
    """you gave one number for all heads: give each head its own"""
    return my_score_relation(attention, dependents, heads).mean()


def _by_words(attention, dependents, heads):
    """you divided by the number of words: divide by the number of pairs"""
    found = my_score_relation(attention, dependents, heads) * len(heads)
    return found / attention.shape[-1]


def _draw_pairs(rng):
    """Attention of some heads over some words, and pairs of different words."""
    A, W, N = rng.integers(1, 4), rng.integers(2, 7), rng.integers(1, 8)
    scores = np.exp(2 * rng.normal(size=(A, W, W)))
    dependents = rng.integers(0, W, N)
    heads = (dependents + rng.integers(1, W, N)) % W
    return scores / scores.sum(axis=-1, keepdims=True), dependents, heads


PAPER = np.array(
    [
        [0.1, 0.6, 0.2, 0.1],
        [0.5, 0.3, 0.1, 0.1],
        [0.2, 0.2, 0.4, 0.2],
        [0.1, 0.1, 0.3, 0.5],
    ]
)
TURNED = np.array(
    [
        [0.4, 0.1, 0.3, 0.2],
        [0.05, 0.9, 0.02, 0.03],
        [0.1, 0.6, 0.1, 0.2],
        [0.25, 0.2, 0.35, 0.2],
    ]
)

EXERCISES = (
    Exercise(
        id="10.previous",
        title="A number for a head",
        level=1,
        minutes=6,
        task="Write `my_previous_share(probs)` for one map of shape (T, T): the mean "
        "probability with which a token attends to the token before it, over all "
        "tokens that have one.",
        hints=(
            "Row i looks, column j is looked at. Which column is the token before "
            "row i? Which row has none?",
            "Take probs[i, i - 1] for i from 1 to T - 1 and divide their sum by "
            "T - 1; or np.diagonal(probs, -1).mean().",
        ),
        solution=my_previous_share,
        mistakes=mistakes(
            _next_token,
            _own_token,
            _summed,
            _divided_by_all,
            _wraps_around,
            _shares_listed,
            _of_all_before,
            _median,
        ),
        cases=(
            (PROBS,),
            (LONGER,),
            (PROBS[:2, :2],),
            (np.kron(LONGER, PROBS[:2, :2]),),
        ),
        draw=_draw_map,
    ),
    Exercise(
        id="10.sink",
        title="Where does it go?",
        level=1,
        minutes=3,
        task="Before you run on: which of these gets the largest part of MiniLM's "
        'attention over 40 sentences? Set `sink` to `"[CLS]"`, `"[SEP]"`, `"self"` '
        '(the token that looks) or `"previous"` (the token before it).',
        hints=(
            "In the gallery, look at the picture of `plot_model`, all heads on one "
            "sentence: which column is bright in most maps?",
            "It is the first column. Which token stands first in every sentence?",
        ),
        solution="[CLS]",
        name="sink",
        why="[CLS] stands first in every sentence, and over 40 sentences it gets more "
        "of MiniLM's attention than any other token.",
        mistakes=(
            Mistake(
                "[SEP]",
                "in BERT-Base it was (Clark et al. 2019), in MiniLM it is "
                "not: a claim about one model need not hold for another",
            ),
            Mistake(
                "self",
                "the diagonal is dark in most maps: no head gives more "
                "than 0.2 to the token itself",
            ),
            Mistake(
                "previous",
                "one head gives all to the token before, most give "
                "little: a single head is not the model",
            ),
        ),
    ),
    Exercise(
        id="10.real_mean",
        title="Padding does not vote",
        level=2,
        minutes=7,
        task="Write `my_mean_over_real(values, attention_mask)`, both of shape (B, T): "
        "the mean of the values over all real tokens of all sentences, each "
        "token counting alike.",
        hints=(
            "Which entries of attention_mask are 1? By how many must the sum be "
            "divided?",
            "values[attention_mask == 1] has just the real ones; or (values * mask)"
            ".sum() / mask.sum().",
        ),
        solution=my_mean_over_real,
        mistakes=mistakes(
            _padding_counts,
            _zeros_count,
            _mean_of_means,
            _for_each_sentence,
            _where_not_zero,
            _by_length,
        ),
        cases=(
            (
                np.array([[0.9, 0.8, 1.0, 0.7], [0.6, 0.2, 0.3, 0.3]]),
                np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
            ),
            (
                np.array([[0.5, 0.1, 0.1], [1.0, 0.25, 0.5]]),
                np.array([[1, 0, 0], [1, 1, 1]]),
            ),
            (np.array([[0.0, 0.5, 3, 0.25]]), np.array([[1, 1, 0, 1]])),
            (np.array([[0.2], [0.4], [0.9]]), np.array([[0], [1], [1]])),
            (
                np.array([[5.0, 1, -2], [0, 4, 0], [7, 7, 7]]),
                np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]]),
            ),
        ),
        draw=_draw_values,
    ),
    Exercise(
        id="10.score",
        title="How often does a head find it?",
        level=2,
        minutes=10,
        task="Write `my_score_relation(attention, dependents, heads)` for attention of "
        "shape (A, W, W) between W words, and two arrays of N places: each pair is a "
        "dependent and its syntactic head. Return, for each of the A heads, the "
        "fraction of pairs in which the dependent's strongest other word is the "
        "syntactic head.",
        hints=(
            "Which entry of a row must not win, however large it is?",
            "Put -1 on the diagonal; argmax over the last axis gives the strongest "
            "other word of each word, (A, W). Take the columns `dependents`, compare "
            "with `heads`, and average over the pairs.",
        ),
        solution=my_score_relation,
        mistakes=mistakes(
            _itself_too,
            _head_looks,
            _by_columns,
            _mean_attention,
            _more_than_half,
            _counted,
            _all_heads_together,
            _by_words,
        ),
        cases=(
            (PAPER[None], np.array([0, 1, 3]), np.array([1, 2, 2])),
            (
                np.stack([PAPER, TURNED]),
                np.array([0, 1, 2, 3, 3]),
                np.array([2, 0, 1, 2, 0]),
            ),
            (np.stack([TURNED, PAPER, TURNED.T]), np.array([1]), np.array([0])),
        ),
        draw=_draw_pairs,
    ),
    Exercise(
        id="10.sentence",
        title="Which sentence may you write?",
        level=2,
        minutes=5,
        task="In 50 pairs of sentences the last word is changed, and with it the noun "
        "that *it* means. A head is right in exactly one sentence of 48 pairs, in both "
        'of 1 pair and in neither of 1. Set `verdict` to "a" (the head finds what *it* '
        'means half of the time), "b" (the head pays no attention to the last word) or '
        '"c" (the head decides at random).',
        hints=(
            "If it decided at random in each sentence, in how many of the 50 pairs "
            "would both be right?",
            "At random: both right in a quarter of the pairs, one in half of them. In "
            "48 of 50 it gave the same noun twice.",
        ),
        solution="b",
        name="verdict",
        why="It gives the same noun twice in 48 of 50 pairs. At random, 25 pairs would "
        "have exactly one sentence right.",
        mistakes=(
            Mistake(
                "a",
                "half of the sentences right is forced: a head that gives the same "
                "noun twice is right in exactly one of each pair",
            ),
            Mistake(
                "c",
                "at random it would be right in both sentences of some 12 pairs, and "
                "in exactly one of 25, not of 48",
            ),
        ),
    ),
)
