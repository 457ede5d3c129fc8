"""Exercises of chapter 08: masking, the MLM head, the loss."""

import math

import numpy as np

import bert_np
from bert_np.course.exercise import Exercise, Mistake, mistakes

# Ids 0 to 4 are [PAD], [UNK], [CLS], [SEP], [MASK].
IDS = np.array([2, 9, 7, 5, 8, 11, 6, 3, 0])
DRAW = np.array([0.01, 0.02, 0.10, 0.50, 0.14, 0.149, 0.90, 0.05, 0.00])
FATE = np.array([0.10, 0.30, 0.85, 0.10, 0.95, 0.79, 0.95, 0.20, 0.50])
RANDOM_IDS = np.array([6, 5, 12, 7, 9, 5, 8, 10, 11])

X = np.array([[1.0, -1, 1, -1], [0.5, 2, -1, 0], [3, 0, 0, 1]])  # (T, H)
W = np.array([[0.0, 2, 0, 0], [0, 0, 0, 2], [2, 0, 0, 0], [0, 0, 2, 1]])
B = np.array([0.0, 0.5, 0, -0.5])
GAMMA, BETA = np.array([1.0, 2, 1, 1]), np.array([0.0, 0, 0.5, 0])
TABLE = np.array(
    [[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [-1, 2, 0, 1]]
)  # (V, H)
BIAS = np.array([0.0, 0.25, 0, -0.5, 1])

LOGITS = np.array([[2.0, 1, 0, 0], [0, 0, 0, 0], [5, 1, 1, 3], [0, 1, 2, 3]])
LABELS = np.array([0, -100, 3, -100])
HUGE = np.array([[800.0, 0, 0, 0], [0, 2, 0, 1], [1, 0, 0, 0]])
HUGE_LABELS = np.array([1, 1, -100])


# ----------------------------------------------------------------- masking


def my_mask_tokens(ids, draw, fate, random_ids):
    chosen = (draw < 0.15) & (ids > 4)
    masked = np.where(chosen & (fate < 0.9), random_ids, ids)
    masked = np.where(chosen & (fate < 0.8), 4, masked)
    return masked, np.where(chosen, ids, -100)


def _specials_too(ids, draw, fate, random_ids):
    """you chose special tokens too: ids 0 to 4 are never asked for"""
    chosen = draw < 0.15
    masked = np.where(chosen & (fate < 0.9), random_ids, ids)
    masked = np.where(chosen & (fate < 0.8), 4, masked)
    return masked, np.where(chosen, ids, -100)


def _always_mask(ids, draw, fate, random_ids):
    """all chosen tokens became [MASK]: only 80 % do, 10 % get a random
    word, 10 % stay
    """
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return np.where(labels == -100, ids, 4), labels


def _never_kept(ids, draw, fate, random_ids):
    """no chosen token stays as it was: from 0.9 on it does"""
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return np.where((labels != -100) & (fate >= 0.9), random_ids, masked), labels


def _never_random(ids, draw, fate, random_ids):
    """no chosen token got a random word: from 0.8 up to 0.9 it does"""
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return np.where((labels != -100) & (fate >= 0.8), ids, masked), labels


def _labels_of_padding(ids, draw, fate, random_ids):
    """0 is an id, that of [PAD]: where nothing is asked the label is -100"""
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return masked, np.where(labels == -100, 0, labels)


def _labels_everywhere(ids, draw, fate, random_ids):
    """labels only where a token was chosen, -100 elsewhere"""
    return my_mask_tokens(ids, draw, fate, random_ids)[0], ids.copy()


def _labels_where_changed(ids, draw, fate, random_ids):
    """a chosen token that stays as it was has a label too"""
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return masked, np.where(masked != ids, labels, -100)


def _labels_of_the_masked(ids, draw, fate, random_ids):
    """the label is the right id, from before the masking"""
    masked, labels = my_mask_tokens(ids, draw, fate, random_ids)
    return masked, np.where(labels == -100, labels, masked)


def _unknown_too(ids, draw, fate, random_ids):
    """[UNK] and [MASK], ids 1 and 4, are special too: ids 0 to 4 are never
    asked for
    """
    return _masked(ids, draw, fate, random_ids, ~np.isin(ids, [0, 2, 3]))


def _mask_too(ids, draw, fate, random_ids):
    """[MASK], id 4, is special too: ids 0 to 4 are never asked for"""
    return _masked(ids, draw, fate, random_ids, ids > 3)


def _not_the_first_word(ids, draw, fate, random_ids):
    """id 5 is a word already: only ids 0 to 4 are special"""
    return _masked(ids, draw, fate, random_ids, ids > 5)


def _masked(ids, draw, fate, random_ids, ordinary):
    """Masking that chooses among the given tokens."""
    chosen = (draw < 0.15) & ordinary
    masked = np.where(chosen & (fate < 0.9), random_ids, ids)
    masked = np.where(chosen & (fate < 0.8), 4, masked)
    return masked, np.where(chosen, ids, -100)


def _up_to(ids, draw, fate, random_ids):
    """a bound is not below itself: a draw of exactly 0.15 is not chosen, a fate
    of exactly 0.8 gets a random word, one of exactly 0.9 stays
    """
    chosen = (draw <= 0.15) & (ids > 4)
    masked = np.where(chosen & (fate <= 0.9), random_ids, ids)
    masked = np.where(chosen & (fate <= 0.8), 4, masked)
    return masked, np.where(chosen, ids, -100)


def _up_to_the_fate(ids, draw, fate, random_ids):
    """a fate of exactly 0.9 leaves the token as it is"""
    masked, labels = my_mask_tokens(
        ids, draw, np.where(fate == 0.9, 0.89, fate), random_ids
    )
    return masked, labels


def _special_by_place(ids, draw, fate, random_ids):
    """special is what has an id from 0 to 4, wherever it stands"""
    inside = np.arange(len(ids))
    inside = (inside > 0) & (inside < len(ids) - 1)
    return _masked(ids, draw, fate, random_ids, inside)


def _draw_row(rng):
    """Ids of all kinds, with draws and fates on the bounds and beside them."""
    T = rng.integers(1, 12)
    ids, random_ids = rng.integers(0, 9, T), rng.integers(5, 13, T)
    draw = rng.choice([0, 0.1, 0.149, 0.15, 0.151, 0.9], T)
    return ids, draw, rng.choice([0, 0.79, 0.8, 0.85, 0.9, 0.95], T), random_ids


# -------------------------------------------------------------------- head


def my_mlm_logits(x, W, b, gamma, beta, word, bias):
    y = bert_np.gelu(x @ W + b)
    y = bert_np.layer_norm(y, gamma, beta, eps=1e-12)
    return y @ word.T + bias


def _one_linear_layer(x, W, b, gamma, beta, word, bias):
    """that is one linear layer: before the word table come a dense layer,
    GELU and a norm
    """
    return x @ word.T + bias


def _no_gelu(x, W, b, gamma, beta, word, bias):
    """the GELU after the dense layer is missing"""
    y = bert_np.layer_norm(x @ W + b, gamma, beta, eps=1e-12)
    return y @ word.T + bias


def _no_norm(x, W, b, gamma, beta, word, bias):
    """the norm before the word table is missing"""
    return bert_np.gelu(x @ W + b) @ word.T + bias


def _norm_first(x, W, b, gamma, beta, word, bias):
    """the order is dense, GELU, norm"""
    y = bert_np.gelu(bert_np.layer_norm(x @ W + b, gamma, beta, eps=1e-12))
    return y @ word.T + bias


def _no_bias(x, W, b, gamma, beta, word, bias):
    """the bias, one number for each word, is missing"""
    return my_mlm_logits(x, W, b, gamma, beta, word, 0 * bias)


def _shares(x, W, b, gamma, beta, word, bias):
    """those are probabilities: logits are before the softmax"""
    return bert_np.softmax(my_mlm_logits(x, W, b, gamma, beta, word, bias))


def _transposed(x, W, b, gamma, beta, word, bias):
    """W is (in, out): x @ W, not x @ W.T"""
    return my_mlm_logits(x, W.T, b, gamma, beta, word, bias)


def _tanh_form(x, W, b, gamma, beta, word, bias):
    """that is GELU's tanh form: BERT has the form with erf, bert_np.gelu"""
    y = bert_np.layer_norm(bert_np.gelu_tanh(x @ W + b), gamma, beta, eps=1e-12)
    return y @ word.T + bias


def _plain_norm(x, W, b, gamma, beta, word, bias):
    """gamma and beta are not used"""
    one = np.ones_like(gamma)
    return my_mlm_logits(x, W, b, one, 0 * one, word, bias)


def _no_beta(x, W, b, gamma, beta, word, bias):
    """the beta of the norm is missing"""
    return my_mlm_logits(x, W, b, gamma, 0 * beta, word, bias)


def _with_residual(x, W, b, gamma, beta, word, bias):
    """you added x: the head has no residual"""
    y = bert_np.layer_norm(x + bert_np.gelu(x @ W + b), gamma, beta, eps=1e-12)
    return y @ word.T + bias


def _draw_mlm_head(rng):
    """A head of pairwise different sizes, and its input."""
    T, H, V = rng.permutation([1, 2, 4, 5, 7])[:3] + [0, 2, 0]
    shapes = ((T, H), (H, H), H, H, H, (V, H), V)
    return tuple(rng.normal(size=shape) for shape in shapes)


# -------------------------------------------------------------------- loss


def my_loss(logits, labels):
    rows = np.flatnonzero(labels != -100)
    z = logits[rows]
    top = z.max(axis=-1)
    log_sum = top + np.log(np.exp(z - top[:, None]).sum(axis=-1))
    return (log_sum - z[np.arange(len(rows)), labels[rows]]).mean()


def _mean_over_all(logits, labels):
    """you divided by the number of all positions: only by those with a
    label
    """
    return my_loss(logits, labels) * (labels != -100).sum() / len(labels)


def _sum(logits, labels):
    """that is the sum: take the mean over the labelled positions"""
    return my_loss(logits, labels) * (labels != -100).sum()


def _ignored_as_word_0(logits, labels):
    """you treated -100 as word 0: such positions have no loss at all"""
    return my_loss(logits, np.where(labels == -100, 0, labels))


def _naive(logits, labels):
    """exp overflows for large logits: subtract each row's maximum"""
    rows = np.flatnonzero(labels != -100)
    with np.errstate(all="ignore"):
        e = np.exp(logits[rows])
        probs = e / e.sum(axis=-1, keepdims=True)
        return -np.log(probs[np.arange(len(rows)), labels[rows]]).mean()


def _log_of_softmax(logits, labels):
    """a probability became 0, and its log is -inf: stay with logs,
    log(sum(exp(z))) − z[label]
    """
    rows = np.flatnonzero(labels != -100)
    probs = bert_np.softmax(logits[rows])
    with np.errstate(all="ignore"):
        return -np.log(probs[np.arange(len(rows)), labels[rows]]).mean()


def _base_two(logits, labels):
    """that is in bits, with log2: BERT's loss is in nats, np.log"""
    return my_loss(logits, labels) / math.log(2)


def _sign(logits, labels):
    """the sign is wrong: a loss is not negative"""
    return -my_loss(logits, labels)


def _not_word_0(logits, labels):
    """the label 0 is asked for too: only -100 is not"""
    return my_loss(logits, np.where(labels == 0, -100, labels))


def _first_label(logits, labels):
    """that is the loss of the first labelled position: take the mean of all"""
    first = np.flatnonzero(labels != -100)[:1]
    return my_loss(logits[first], labels[first])


def _clipped(floor):
    """The mistake of keeping the log of a probability finite by force."""

    def loss(logits, labels):
        rows = np.flatnonzero(labels != -100)
        probs = bert_np.softmax(logits[rows])[np.arange(len(rows)), labels[rows]]
        return -np.log(np.maximum(probs, floor)).mean()

    return Mistake(
        loss,
        f"a probability below {floor:g} has become {floor:g}: the loss must tell how "
        "wrong a sure answer is; stay with logs, log(sum(exp(z))) − z[label]",
    )


def _draw_loss(rng):
    """Logits near or far apart, with at least one label."""
    T, V = rng.integers(1, 7), rng.integers(2, 8)
    labels = np.where(rng.random(T) < 0.5, rng.integers(0, V, T), -100)
    labels[rng.integers(T)] = rng.integers(V)
    return rng.normal(size=(T, V)) * rng.choice([1, 300]), labels


EXERCISES = (
    Exercise(
        id="08.mask",
        title="Hide some words",
        level=2,
        minutes=9,
        task="Write `my_mask_tokens(ids, draw, fate, random_ids)` for four arrays of "
        "shape (T,); draw and fate hold random numbers between 0 and 1. A token is "
        "chosen if its draw is below 0.15, unless it is special (ids 0 to 4). Of the "
        "chosen ones, those with a fate below 0.8 become [MASK] (id 4), those from 0.8 "
        "up to 0.9 get the id in random_ids, and the others stay. Return the masked "
        "ids and the labels: the right id where a token was chosen, -100 elsewhere.",
        hints=(
            "First an array of bools: chosen. Then np.where(condition, this, that), "
            "once for each kind of fate. The labels do not depend on fate.",
            "chosen = (draw < 0.15) & (ids > 4). Put random_ids where chosen & "
            "(fate < 0.9), then 4 over it where chosen & (fate < 0.8).",
        ),
        solution=my_mask_tokens,
        mistakes=mistakes(
            _specials_too,
            _always_mask,
            _never_kept,
            _never_random,
            _labels_of_padding,
            _labels_everywhere,
            _labels_where_changed,
            _labels_of_the_masked,
            _unknown_too,
            _mask_too,
            _not_the_first_word,
            _up_to,
            _up_to_the_fate,
            _special_by_place,
        ),
        cases=(
            (IDS, DRAW, FATE, RANDOM_IDS),
            (
                np.array([2, 5, 6, 7, 3]),
                np.array([0.0, 0.1, 0.15, 0.14, 0.0]),
                np.array([0.5, 0.95, 0.1, 0.8, 0.85]),
                np.array([9, 8, 7, 6, 5]),
            ),
            (
                np.array([1, 4, 5, 6, 7, 8, 1, 4, 5]),
                np.array([0.1, 0.1, 0.1, 0.15, 0, 0.149, 0, 0.1, 0.15]),
                np.array([0.1, 0.85, 0.8, 0.1, 0.9, 0.899, 0.95, 0.3, 0.8]),
                np.array([6, 7, 8, 9, 10, 11, 12, 5, 6]),
            ),
            (np.array([5]), np.array([0.1]), np.array([0.79]), np.array([6])),
        ),
        draw=_draw_row,
    ),
    Exercise(
        id="08.head",
        title="The MLM head",
        level=2,
        minutes=7,
        task="Write `my_mlm_logits(x, W, b, gamma, beta, word, bias)` for x of shape "
        "(T, H) and the word table of shape (V, H): the logits, (T, V). You may "
        "call `bert_np.gelu` and `bert_np.layer_norm` (eps=1e-12).",
        hints=(
            "Three steps before the word table: linear map, GELU, norm.",
            "y = layer_norm(gelu(x @ W + b), gamma, beta, eps=1e-12); then the word "
            "table as a matrix from H to V, word.T, and the bias.",
        ),
        solution=my_mlm_logits,
        mistakes=mistakes(
            _one_linear_layer,
            _no_gelu,
            _no_norm,
            _norm_first,
            _no_bias,
            _shares,
            _transposed,
            _tanh_form,
            _plain_norm,
            _no_beta,
            _with_residual,
        ),
        cases=(
            (X, W, B, GAMMA, BETA, TABLE, BIAS),
            (-X[:2], W.T, -B, GAMMA, BETA, TABLE[:3], BIAS[:3]),
            (X[1:2] / 2, W - 0.3, B + 0.1, GAMMA - 1.5, BETA - 1, TABLE[1:], BIAS[1:]),
            (
                X[:, 1:],
                W[1:, 1:] + 0.2,
                B[1:],
                GAMMA[1:],
                BETA[1:],
                TABLE[:2, 1:],
                B[1:3],
            ),
        ),
        draw=_draw_mlm_head,
    ),
    Exercise(
        id="08.loss",
        title="A loss that ignores",
        level=2,
        minutes=8,
        task="Write `my_loss(logits, labels)` for logits (T, V) and labels (T,): the "
        "mean cross-entropy over the positions whose label is not -100. It must "
        "also work for logits near 800.",
        hints=(
            "First keep only the rows that are asked for. The loss of a row is "
            "log(sum(exp(z))) − z[label]; how can exp(800) be avoided?",
            "With m the row's maximum, log(sum(exp(z))) = m + log(sum(exp(z − m))). "
            "Pick z[label] by z[np.arange(len(z)), labels].",
        ),
        solution=my_loss,
        mistakes=mistakes(
            _mean_over_all,
            _sum,
            _ignored_as_word_0,
            _naive,
            _log_of_softmax,
            _base_two,
            _sign,
            _not_word_0,
            _first_label,
        )
        + tuple(map(_clipped, (1e-12, 1e-10, 1e-9, 1e-8))),
        cases=(
            (LOGITS, LABELS),
            (HUGE, HUGE_LABELS),
            (HUGE, np.array([0, 1, 3])),
            (LOGITS[:3] - 900, np.array([-100, 2, 0])),
            (LOGITS[3:, :3], np.array([0])),
            (np.array([[-800.0, 800, -800, -800], [0, 1, 2, 3]]), np.array([0, -100])),
        ),
        draw=_draw_loss,
    ),
    Exercise(
        id="08.best",
        title="The best possible loss",
        level=2,
        minutes=5,
        task="Of the blanks in a test, three in four are settled by the rest of their "
        "passage. At the fourth, four words are equally likely and nothing tells "
        "which. Set `best` to the smallest mean loss, in nats, that any model can "
        "reach.",
        hints=(
            "The best model gives each word the probability that it really has. What "
            "does it pay at a blank that is settled, and what at one that is open?",
            "0 at three of the blanks and −ln ¼ at the fourth. Take the mean.",
        ),
        solution=0.3466,
        name="best",
        why="A settled blank costs 0 and an open one −ln ¼ = 1.386; the mean of three "
        "and one is 0.347, a perplexity of 1.41.",
        tolerance=5e-3,
        mistakes=(
            Mistake(
                1.3863,
                "that is the loss at the open blank: take the mean over all four",
            ),
            Mistake(
                0.0,
                "a loss of 0 would mean knowing which of the four words it is, but "
                "nothing tells which",
            ),
            Mistake(
                0.5596,
                "that is the logarithm of the mean perplexity: take the mean of the "
                "losses",
            ),
            Mistake(
                0.2076,
                "that is −ln of the fraction of right guesses, 13 in 16: take the mean "
                "of the losses",
            ),
            Mistake(
                0.5, "that is in bits, log2: the course counts in nats, with np.log"
            ),
        ),
    ),
)
