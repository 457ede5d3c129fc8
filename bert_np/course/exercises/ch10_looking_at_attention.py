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
    """these are the right shares: now take their mean"""
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
    """padding counts too: leave out what the mask calls 0"""
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


EXERCISES = (
    Exercise(
        id="10.previous",
        title="A number for a head",
        level=1,
        minutes=6,
        task="Write `my_previous_share(probs)` for one map of shape (T, T): the mean "
        "share that a token gives to the token before it, over all tokens that "
        "have one.",
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
        task="Before you run on: which token gets the most attention of MiniLM over "
        '40 sentences? Set `sink` to `"[CLS]"`, `"[SEP]"`, `"self"` (the token '
        'that looks) or `"previous"`.',
        hints=(
            "Look at the grid of all heads: which column is bright in most maps?",
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
        id="10.sentence",
        title="Which sentence may you write?",
        level=2,
        minutes=5,
        task="A head gives 0.70 from *it* to the right noun in the sentence that you "
        "tried first. Over 50 sentences with two nouns each it gives 0.31 to the "
        "right noun and 0.32 to the other, and the right one gets more in 24. Set "
        '`verdict` to "a" (it finds what *it* means), "b" (from *it*, it looks at '
        'nouns, right or wrong) or "c" (it looks at nothing in particular).',
        hints=(
            "Compare 0.31 with 0.32, and 24 with the half of 50. Then add the two "
            "shares.",
            "The two nouns together get 0.63 of each row: that is a habit. Which "
            "of the two is right makes no difference.",
        ),
        solution="b",
        name="verdict",
        why="Two nouns get 0.63 of the row, so it does look at nouns; a coin would be "
        "right as often as in 24 of 50.",
        mistakes=(
            Mistake(
                "a",
                "in 24 of 50 it is right: so is a coin. The first sentence was luck",
            ),
            Mistake(
                "c",
                "two nouns get 0.63 of a row that has many more tokens: that "
                "is something in particular",
            ),
        ),
    ),
)
