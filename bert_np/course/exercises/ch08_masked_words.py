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


def my_mask(ids, draw, fate, random_ids):
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
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return np.where(labels == -100, ids, 4), labels


def _never_kept(ids, draw, fate, random_ids):
    """no chosen token stays as it was: from 0.9 on it does"""
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return np.where((labels != -100) & (fate >= 0.9), random_ids, masked), labels


def _never_random(ids, draw, fate, random_ids):
    """no chosen token got a random word: from 0.8 up to 0.9 it does"""
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return np.where((labels != -100) & (fate >= 0.8), ids, masked), labels


def _labels_of_padding(ids, draw, fate, random_ids):
    """0 is an id, that of [PAD]: where nothing is asked the label is -100"""
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return masked, np.where(labels == -100, 0, labels)


def _labels_everywhere(ids, draw, fate, random_ids):
    """labels only where a token was chosen, -100 elsewhere"""
    return my_mask(ids, draw, fate, random_ids)[0], ids.copy()


def _labels_where_changed(ids, draw, fate, random_ids):
    """a chosen token that stays as it was has a label too"""
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return masked, np.where(masked != ids, labels, -100)


def _labels_of_the_masked(ids, draw, fate, random_ids):
    """the label is the right id, from before the masking"""
    masked, labels = my_mask(ids, draw, fate, random_ids)
    return masked, np.where(labels == -100, labels, masked)


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
    """the sign: a loss is not negative"""
    return -my_loss(logits, labels)


EXERCISES = (
    Exercise(
        id="08.mask",
        title="Hide some words",
        level=2,
        minutes=9,
        task="Write `my_mask(ids, draw, fate, random_ids)` for four arrays of shape "
        "(T,); draw and fate hold random numbers between 0 and 1. A token is chosen "
        "if its draw is below 0.15, unless it is special (ids 0 to 4). Of the chosen "
        "ones, those with a fate below 0.8 become [MASK] (id 4), those from 0.8 up "
        "to 0.9 get the id in random_ids, and the others stay. Return the masked ids "
        "and the labels: the right id where a token was chosen, -100 elsewhere.",
        hints=(
            "First an array of bools: chosen. Then np.where(condition, this, that), "
            "once for each kind of fate. The labels know nothing of fate.",
            "chosen = (draw < 0.15) & (ids > 4). Put random_ids where chosen & "
            "(fate < 0.9), then 4 over it where chosen & (fate < 0.8).",
        ),
        solution=my_mask,
        mistakes=mistakes(
            _specials_too,
            _always_mask,
            _never_kept,
            _never_random,
            _labels_of_padding,
            _labels_everywhere,
            _labels_where_changed,
            _labels_of_the_masked,
        ),
        cases=(
            (IDS, DRAW, FATE, RANDOM_IDS),
            (
                np.array([2, 5, 6, 7, 3]),
                np.array([0.0, 0.1, 0.15, 0.14, 0.0]),
                np.array([0.5, 0.95, 0.1, 0.8, 0.85]),
                np.array([9, 8, 7, 6, 5]),
            ),
        ),
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
            _one_linear_layer, _no_gelu, _no_norm, _norm_first, _no_bias, _shares
        ),
        cases=(
            (X, W, B, GAMMA, BETA, TABLE, BIAS),
            (-X[:2], W.T, -B, GAMMA, BETA, TABLE[:3], BIAS[:3]),
        ),
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
        ),
        cases=((LOGITS, LABELS), (HUGE, HUGE_LABELS), (HUGE, np.array([0, 1, 3]))),
    ),
    Exercise(
        id="08.best",
        title="The best possible loss",
        level=2,
        minutes=5,
        task="In the toy language whoever is thirsty drinks water, milk, tea or juice, "
        "each equally often. Set `best` to the smallest mean loss, in nats, that "
        'any model can reach at the [MASK] of "lisa was thirsty . she drank the '
        '[MASK] ." The vocabulary has 140 tokens.',
        hints=(
            "The best model gives each word the share that it really has. Which share "
            "does it give to the word that stands there?",
            "−log of that share, with the natural logarithm.",
        ),
        solution=1.3863,
        name="best",
        tolerance=5e-3,
        mistakes=(
            Mistake(
                0.0,
                "a loss of 0 would mean knowing which of the four it is, and "
                "nothing in the text tells",
            ),
            Mistake(
                4.9416,
                "that is ln 140, the loss of a model that knows nothing: "
                "only four words are possible here",
            ),
            Mistake(0.25, "0.25 is the probability: the loss is −ln 0.25"),
            Mistake(
                2.0, "that is in bits, log2: the course counts in nats, with np.log"
            ),
        ),
    ),
)
