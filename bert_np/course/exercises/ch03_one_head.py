"""Exercises of chapter 03: one attention head by hand."""

import math

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

Q = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]])
K = np.array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 1, 2, 0]])
V = np.array([[1.0, 0], [0, 1], [1, 1]])


# ----------------------------------------------------------------- softmax


def my_softmax(scores):
    shifted = scores - scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _over_queries(scores):
    """your columns sum to 1: you normalised over queries, axis 0; keys are
    axis -1
    """
    exponentials = np.exp(scores - scores.max(axis=0))
    return exponentials / exponentials.sum(axis=0)


def _naive(scores):
    """it overflows for large scores: subtract each row's maximum first"""
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _exponentials(scores):
    """these are the exponentials: divide each row by its sum"""
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def _one_maximum(scores):
    """you subtracted one maximum from all rows: a row far below it becomes
    0 / 0; subtract from each row its own
    """
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _over_everything(scores):
    """the whole matrix sums to 1: each row must, so sum over axis -1"""
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def _without_keepdims(scores):
    """you divided column j by the sum of row j: keep the summed axis with
    keepdims=True
    """
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1)


def _never_keepdims(scores):
    """the maximum and the sum of row j went to column j: keep the axis
    with keepdims=True, both times
    """
    exponentials = np.exp(scores - scores.max(axis=-1))
    return exponentials / exponentials.sum(axis=-1)


def _first_column(scores):
    """you subtracted the first score of each row: subtract the largest, or
    it overflows where another is far above
    """
    exponentials = np.exp(scores - scores[:, :1])
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _mean(scores):
    """you subtracted the mean of each row: subtract the largest, or it
    overflows where one score is far above the others
    """
    exponentials = np.exp(scores - scores.mean(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _minimum(scores):
    """you subtracted the minimum: subtract the maximum, so that exp gets
    nothing above 0
    """
    exponentials = np.exp(scores - scores.min(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _zero_for_nan(scores):
    """0 in place of NaN hides the overflow, and the row no longer sums to 1:
    subtract its maximum first
    """
    return np.nan_to_num(_naive(scores))


def _cut_off(scores):
    """you cut large scores off, and 1000 and 999 became equal: subtract each
    row's maximum
    """
    return my_softmax(np.clip(scores, -700, 700))


def _draw_scores(rng):
    """Scores near 0, near 1000 or near -1000, row by row; some far apart."""
    Tq, Tk = rng.integers(1, 7, 2)
    spread, place = rng.choice([1, 30, 400]), rng.choice([-1000, 0, 1000], (Tq, 1))
    return (rng.normal(size=(Tq, Tk)) * spread + place,)


# --------------------------------------------------------------- attention


def my_attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probs @ v, probs


def _no_scale(q, k, v):
    """the scale is missing: divide the scores by the root of D"""
    probs = my_softmax(q @ k.T)
    return probs @ v, probs


def _scaled_by_size(q, k, v):
    """you divided by D: divide by its root"""
    probs = my_softmax(q @ k.T / q.shape[-1])
    return probs @ v, probs


def _scaled_by_tokens(q, k, v):
    """you scaled by the number of tokens: D is the length of a query,
    q.shape[-1]
    """
    probs = my_softmax(q @ k.T / math.sqrt(len(k)))
    return probs @ v, probs


def _scaled_by_two(q, k, v):
    """you divided by 2: that is the root of D only where D = 4; D is
    q.shape[-1]
    """
    probs = my_softmax(q @ k.T / 2)
    return probs @ v, probs


def _softmax_over_queries(q, k, v):
    """your columns sum to 1: you normalised over queries; keys are axis -1"""
    probs = _over_queries(q @ k.T / math.sqrt(q.shape[-1]))
    return probs @ v, probs


def _sums_in_columns(q, k, v):
    """column j is divided by the sum of row j: keep the summed axis with
    keepdims=True
    """
    probs = _without_keepdims(q @ k.T / math.sqrt(q.shape[-1]))
    return probs @ v, probs


def _keys_ask(q, k, v):
    """rows must be queries: q @ k.T, not k @ q.T"""
    return my_attention(k, q, v)


def _probs_transposed(q, k, v):
    """the probs are right, the context is not: probs @ v, not probs.T @ v"""
    _, probs = my_attention(q, k, v)
    return probs.T @ v, probs


def _order_of_results(q, k, v):
    """both are right, but in the wrong order: first the context, then the
    probs
    """
    return my_attention(q, k, v)[::-1]


def _no_transpose(q, k, v):
    """q @ k multiplies a query by a column of k: a score is query times
    key, q @ k.T
    """
    probs = my_softmax(q @ k / math.sqrt(q.shape[-1]))
    return probs @ v, probs


def _naive_head(q, k, v):
    """it overflows for large scores: subtract each row's maximum first, as
    in your softmax
    """
    probs = _naive(q @ k.T / math.sqrt(q.shape[-1]))
    return probs @ v, probs


def _scaled_by_value_size(q, k, v):
    """you scaled by the size of a value: D is the length of a query,
    q.shape[-1]
    """
    probs = my_softmax(q @ k.T / math.sqrt(v.shape[-1]))
    return probs @ v, probs


def _draw_head(rng):
    """Queries, keys and values of different sizes; some scores far apart."""
    T, D, Dv = rng.integers(1, 7, 3)
    q, k = rng.normal(size=(2, T, D)) * rng.choice([1, 30])
    return q, k, rng.normal(size=(T, Dv))


EXERCISES = (
    Exercise(
        id="03.row",
        title="One row on paper",
        level=1,
        minutes=6,
        task="The scaled scores of the query *sat* are [0, 0, 2]. Set `row` to the "
        "list of its three probabilities, to three digits. On paper: e² is 7.389.",
        hints=(
            "exp(0) is 1. Write the three exponentials, then their sum.",
            "The exponentials are 1, 1 and 7.389; their sum is 9.389. Divide each "
            "by it.",
        ),
        solution=[0.1065, 0.1065, 0.787],
        name="row",
        why="Equal scores get equal probabilities, and a score that is 2 higher "
        "gets e² = 7.389 times as much: 0.787 against 0.1065.",
        tolerance=1e-3,
        mistakes=(
            Mistake(
                [0.01766, 0.01766, 0.96467],
                "that is the softmax of [0, 0, 4]: the scores before the scale",
            ),
            Mistake(
                [0.0900, 0.2447, 0.6652],
                "that is the softmax of column 2 of the scores: a query is a row",
            ),
            Mistake(
                [1.0, 1.0, 7.389],
                "those are the exponentials: divide each by their sum, 9.389",
            ),
            Mistake(
                [0.0, 0.0, 1.0],
                "exp(0) is 1, not 0: a score of 0 still gets a probability",
            ),
        ),
    ),
    Exercise(
        id="03.softmax",
        title="A softmax that does not overflow",
        level=1,
        minutes=5,
        task="Write `my_softmax(scores)` for scores of shape (Tq, Tk): each row of "
        "the result sums to 1. It must also work for scores near 1000.",
        hints=(
            "exp(1000) is too large for a float. What may you subtract from a "
            "row without changing its softmax?",
            "Subtract the row's maximum (keepdims=True), take exp, divide by the "
            "row's sum (keepdims=True).",
        ),
        solution=my_softmax,
        mistakes=mistakes(
            _over_queries,
            _naive,
            _over_everything,
            _exponentials,
            _one_maximum,
            _without_keepdims,
            _never_keepdims,
            _first_column,
            _mean,
            _minimum,
            _zero_for_nan,
            _cut_off,
        ),
        cases=(
            (np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 0.0, 2.0]]),),
            (np.array([[1000.0, 999.0], [0.0, -1000.0]]),),
            (np.array([[0.5, 1.5, -1, 2], [3, 3, 3, 3]]),),
            (np.array([[999.0, -999, 998, -1000], [-999, 1000, -998, -1000]]),),
            (np.array([[1000.0]]),),
            (np.array([[1.0], [2], [1000]]),),
            (np.array([[1.0, 2, 3, 1]]),),
        ),
        draw=_draw_scores,
    ),
    Exercise(
        id="03.attention",
        title="One head",
        level=2,
        minutes=10,
        task="Write `my_attention(q, k, v)` for q and k of shape (T, D) and v of "
        "shape (T, Dv). Return two arrays: the context (T, Dv) and the probs "
        "(T, T).",
        hints=(
            "Four steps: scores, scale, softmax of each row, mix the values. D is "
            "the last size of q.",
            "scores = q @ k.T / math.sqrt(q.shape[-1]); the context is probs @ v.",
        ),
        solution=my_attention,
        mistakes=mistakes(
            _no_scale,
            _scaled_by_size,
            _scaled_by_tokens,
            _scaled_by_two,
            _softmax_over_queries,
            _sums_in_columns,
            _keys_ask,
            _probs_transposed,
            _order_of_results,
            _no_transpose,
            _naive_head,
            _scaled_by_value_size,
        ),
        cases=(
            (Q, K, V),
            (Q[:, :2], K[:, :2] - 1, np.array([[0.0, 1, 2], [3, 4, 5], [6, 7, 9]])),
            (Q[:, :3] + K[:, 1:], K[:, :3], V),  # D = T
            (
                30 * Q[:2, :3],
                20 * K[:2, 1:],
                np.array([[1.0, 2, 3, 4, 5], [5, 4, 0, 1, 1]]),
            ),
            (Q[:1], K[:1], V[1:2]),
        ),
        draw=_draw_head,
    ),
    Exercise(
        id="03.fingerprint",
        title="Name the mistake",
        level=2,
        minutes=5,
        task="The row sums of another map are 1.1786, 0.8695 and 0.9520. Set `mistake` "
        'to "a", "b" or "c": (a) the scale is missing, (b) the softmax ran over '
        "the queries, (c) q and k are swapped.",
        hints=(
            "Which of the three can change the sum of a row at all?",
            "A softmax along the last axis always gives rows that sum to 1, whatever "
            "the scores are.",
        ),
        solution="b",
        name="mistake",
        why="A softmax over the keys makes every row sum to 1, whatever the scores "
        "are; only another axis breaks that.",
        mistakes=(
            Mistake(
                "a", "without the scale the rows still sum to 1: softmax sees to that"
            ),
            Mistake(
                "c",
                "with q and k swapped the rows still sum to 1: softmax sees to that",
            ),
        ),
    ),
)
