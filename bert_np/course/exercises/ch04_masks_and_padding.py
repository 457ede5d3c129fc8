"""Exercises of chapter 04: who may look at whom."""

import numpy as np

import bert_np
from bert_np.course.exercise import Exercise, Mistake, mistakes

SCORES = np.array([[2.0, 1, 0], [1, 2, 1], [0, 0, 2]])  # (Tq, Tk)
BATCH = np.stack([[SCORES, 2 * SCORES], [SCORES.T, SCORES - 1]])  # (B, A, Tq, Tk)


# -------------------------------------------------------------------- mask


def my_mask(input_ids, pad_token_id):
    return (input_ids != pad_token_id).astype(int)


def _inverted(input_ids, pad_token_id):
    """yours is the other way round: 1 is for real tokens"""
    return (input_ids == pad_token_id).astype(int)


def _padding_is_always_0(input_ids, pad_token_id):
    """you compared with 0: the padding id is an argument, and not always 0"""
    return (input_ids != 0).astype(int)


def _lengths(input_ids, pad_token_id):
    """that is the length of each row: return one number for each token"""
    return my_mask(input_ids, pad_token_id).sum(axis=1)


def _after_the_first_padding(input_ids, pad_token_id):
    """a real token may stand after padding: look at each id on its own"""
    return 1 - (np.cumsum(input_ids == pad_token_id, axis=1) > 0)


def _padding_at_the_end(input_ids, pad_token_id):
    """padding may stand anywhere in a row, not only at its end"""
    real = (input_ids != pad_token_id)[:, ::-1]
    return np.maximum.accumulate(real, axis=1)[:, ::-1].astype(int)


def _above_the_padding(input_ids, pad_token_id):
    """the padding id need not be the smallest: ask whether an id differs
    from it, with !=
    """
    return (input_ids > pad_token_id).astype(int)


def _first_row(input_ids, pad_token_id):
    """you used the first row for all rows: each has its own padding"""
    return np.repeat(my_mask(input_ids[:1], pad_token_id), len(input_ids), axis=0)


def _draw_batch(rng):
    """Ids of any shape, with the padding id anywhere."""
    return rng.integers(0, 5, rng.integers(1, 6, 2)), int(rng.integers(0, 5))


# ------------------------------------------------------------------- probs


def my_masked_probs(scores, attention_mask):
    visible = attention_mask[:, None, None, :] == 1
    masked = np.where(visible, scores, np.finfo(scores.dtype).min)
    exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _everything(attention_mask):
    return np.ones_like(attention_mask)


def _after_softmax(scores, attention_mask):
    """you masked after the softmax: your rows no longer sum to 1"""
    probs = my_masked_probs(scores, _everything(attention_mask))
    return probs * attention_mask[:, None, None, :]


def _score_0(scores, attention_mask):
    """you multiplied the scores by the mask: a score of 0 still gets a
    probability, for exp(0) is 1
    """
    return my_masked_probs(
        scores * attention_mask[:, None, None, :], _everything(attention_mask)
    )


def _inverted_probs(scores, attention_mask):
    """the mask is inverted: your queries see only the padding"""
    return my_masked_probs(scores, 1 - attention_mask)


def _lowered_the_real(scores, attention_mask):
    """you lowered the scores of the real keys: it is the masked ones that
    get a low score
    """
    lowered = scores - 10000.0 * attention_mask[:, None, None, :]
    return my_masked_probs(lowered, _everything(attention_mask))


def _queries(scores, attention_mask):
    """you masked rows, the queries: the mask belongs to the keys, the last
    axis
    """
    masked = np.where(attention_mask[:, None, :, None] == 1, scores, -1e9)
    return my_masked_probs(masked, _everything(attention_mask))


def _heads(scores, attention_mask):
    """the mask lies along the wrong axis: head 1 got the mask of sentence
    1; use [:, None, None, :]
    """
    masked = np.where(attention_mask[:, None, :] == 1, scores, -1e9)
    return my_masked_probs(masked, _everything(attention_mask))


def _unmasked(scores, attention_mask):
    """nothing is masked: attention_mask has no effect"""
    return my_masked_probs(scores, _everything(attention_mask))


def _added(scores, attention_mask):
    """you added a low number to the scores: where every key of a row is
    masked, the scores still count; put the low number in their place
    """
    lowered = scores + (attention_mask[:, None, None, :] - 1) * 1e5
    return my_masked_probs(lowered, _everything(attention_mask))


def _infinite(scores, attention_mask):
    """where every key of a row is masked, −∞ − (−∞) is NaN: take the lowest
    finite number, np.finfo(scores.dtype).min
    """
    visible = attention_mask[:, None, None, :] == 1
    return bert_np.softmax(np.where(visible, scores, -np.inf))


def _nothing_for_no_key(scores, attention_mask):
    """a row in which every key is masked must sum to 1 too: all keys get
    the same probability
    """
    return np.nan_to_num(_infinite(scores, attention_mask))


def _of_the_first_sentence(scores, attention_mask):
    """you used the first sentence's mask for all: each has its own"""
    return my_masked_probs(scores, attention_mask[:1])


def _shared_again(scores, attention_mask):
    """you masked after the softmax and divided again: where the visible
    scores are far below a masked one, 0 is divided by 0
    """
    probs = _after_softmax(scores, attention_mask)
    return probs / probs.sum(axis=-1, keepdims=True)


def _no_maximum(scores, attention_mask):
    """it overflows for large scores: subtract each row's maximum first"""
    low = np.finfo(scores.dtype).min
    visible = attention_mask[:, None, None, :] == 1
    exponentials = np.exp(np.where(visible, scores, low))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _not_low_enough(low):
    """The mistake of a masked score that other scores lie below."""

    def masked_probs(scores, attention_mask):
        visible = attention_mask[:, None, None, :] == 1
        return bert_np.softmax(np.where(visible, scores, low))

    return Mistake(
        masked_probs,
        f"{low} is not low enough: where the other scores are lower still, a masked "
        "key gets the probability; take np.finfo(scores.dtype).min",
    )


def _draw_masked(rng):
    """Scores near or far apart; masks of any form, empty ones too."""
    B, A, T = rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 6)
    scores = rng.normal(size=(B, A, T, T)) * rng.choice([1, 1000])
    return scores, (rng.random((B, T)) < rng.choice([0.3, 0.8])).astype(int)


# Sizes 2, 3, 4: B, A and T.
STEEP = 3000 * np.cos(np.arange(96.0)).reshape(2, 3, 4, 4)
LOW = np.array([[-15.0, -15, -14], [-50, -51, -50], [-500, -500, -502]])

EXERCISES = (
    Exercise(
        id="04.mask",
        title="The attention mask",
        level=1,
        minutes=4,
        task="Write `my_mask(input_ids, pad_token_id)` for ids of shape (B, T): whole "
        "numbers of the same shape, 1 for a real token, 0 for padding.",
        hints=(
            "Compare the whole array with pad_token_id at once. What does a "
            "comparison give in NumPy?",
            "input_ids != pad_token_id is an array of bool; .astype(int) makes 1 and 0 "
            "of it.",
        ),
        solution=my_mask,
        mistakes=mistakes(
            _inverted,
            _padding_is_always_0,
            _lengths,
            _after_the_first_padding,
            _padding_at_the_end,
            _above_the_padding,
            _first_row,
        ),
        cases=(
            (np.array([[2, 5, 6, 3], [2, 7, 3, 0]]), 0),
            (np.array([[5, 0, 1], [7, 1, 1]]), 1),
            (np.array([[0, 0, 5, 6, 3], [5, 0, 7, 0, 3]]), 0),
            (np.array([[2, 9, 4, 9]]), 9),
            (np.array([[3], [3], [2]]), 3),
        ),
        draw=_draw_batch,
    ),
    Exercise(
        id="04.row",
        title="A masked row on paper",
        level=1,
        minutes=5,
        task="The scaled scores of *cat* are [1, 2, 1]. Key 0 is masked. Set "
        "`masked_row` to the list of its three probabilities, to three digits. On "
        "paper: e is 2.718, e² is 7.389.",
        hints=(
            "Leave key 0 out, then take the softmax of the two scores that remain.",
            "Key 1 gets 7.389 / (7.389 + 2.718), key 2 the rest, key 0 nothing.",
        ),
        solution=[0.0, 0.7311, 0.2689],
        name="masked_row",
        why="The masked key takes nothing. The others share what it would have taken "
        "in the same proportion as before.",
        tolerance=1e-3,
        mistakes=(
            Mistake(
                [0.0, 0.5761, 0.2119],
                "you masked after the softmax: the row sums to 0.788 only",
            ),
            Mistake(
                [0.0900, 0.6652, 0.2447],
                "you set the masked score to 0, and exp(0) is 1: it still gets some",
            ),
            Mistake([0.2119, 0.5761, 0.2119], "that is the row without a mask"),
        ),
    ),
    Exercise(
        id="04.probs",
        title="Masked probabilities for a batch",
        level=2,
        minutes=9,
        task="Write `my_masked_probs(scores, attention_mask)` for scaled scores of "
        "shape (B, A, T, T) and a mask of shape (B, T): the probs, of shape (B, "
        "A, T, T). A masked key gets 0, each row sums to 1. Where every key of a row "
        "is masked, all get the same probability.",
        hints=(
            "The mask needs an axis for the heads and one for the queries, so that it "
            "lies along the keys.",
            "visible = attention_mask[:, None, None, :] == 1, then np.where(visible, "
            "scores, np.finfo(scores.dtype).min), then the softmax of chapter 03.",
        ),
        solution=my_masked_probs,
        mistakes=mistakes(
            _unmasked,
            _after_softmax,
            _score_0,
            _inverted_probs,
            _lowered_the_real,
            _queries,
            _heads,
            _added,
            _infinite,
            _nothing_for_no_key,
            _of_the_first_sentence,
            _shared_again,
            _no_maximum,
        )
        + tuple(map(_not_low_enough, (-10, -20, -100, -1000))),
        cases=(
            (BATCH, np.array([[1, 1, 1], [1, 1, 0]])),
            (BATCH[::-1] * 3, np.array([[1, 0, 1], [1, 0, 0]])),
            (STEEP, np.array([[0, 1, 1, 0], [1, 0, 0, 1]])),
            (BATCH[:1, :1], np.array([[0, 0, 0]])),
            (BATCH, np.array([[0, 0, 0], [0, 1, 1]])),
            (LOW[None, None], np.array([[0, 1, 1]])),
        ),
        draw=_draw_masked,
    ),
    Exercise(
        id="04.bug",
        title="Find the bug",
        level=2,
        minutes=5,
        task='One of the four lines (a) to (d) above is wrong. Set `bug` to "a", "b", '
        '"c" or "d".',
        hints=(
            "Which row of the printed map is odd? And does *the* still look at the "
            "padding?",
            "The mask did hit something: a whole row. Which axis of (B, A, Tq, Tk) is "
            "that, and which should it be?",
        ),
        solution="a",
        name="bug",
        why="In (a) the mask lies along the queries, axis Tq: it must lie along the "
        "keys, attention_mask[:, None, None, :].",
        mistakes=(
            Mistake(
                "b",
                "(b) is right: scores of every query with every key, scaled "
                "by the root of D",
            ),
            Mistake(
                "c",
                "(c) is right: a low score where a cell is not visible. But "
                "is `visible` right?",
            ),
            Mistake("d", "(d) is right: softmax over the keys, so each row sums to 1"),
        ),
    ),
    Exercise(
        id="04.unread",
        title="Who reads the padding?",
        level=2,
        minutes=5,
        task="In a padded batch we give the padded positions another id and keep the "
        "mask. Which results change? Set `changes` to a list of four bools: (a) "
        "the final vector of a real token, (b) the final vector at a padded "
        "position, (c) the mean of the vectors over all positions, (d) the mean "
        "over the real ones.",
        hints=(
            "Masked keys get probability 0, so no query takes anything from a padded "
            "position. But a padded position is a query, too.",
            "(b) changes, for its own id has changed. Now, which of the two means "
            "includes that vector?",
        ),
        solution=[False, True, True, False],
        name="changes",
        why="No token reads a padded position. But it is a query itself, so its own "
        "vector changes, and a mean over all positions includes it.",
        mistakes=(
            Mistake(
                [False, False, False, False],
                "a padded position is a query, too: "
                "it has a vector, which depends on "
                "its id",
            ),
            Mistake(
                [False, True, False, False],
                "(c) includes all positions, the padded ones among them",
            ),
            Mistake(
                [False, True, True, True], "(d) is a mean of vectors that do not change"
            ),
            Mistake(
                [True, True, True, True],
                "(a) takes nothing from masked keys: their probability is exactly 0",
            ),
        ),
    ),
)
