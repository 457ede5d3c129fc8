"""Exercises of chapter 12: train it."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake

EPS = 1e-12


def _softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


# -------------------------------------------------------- softmax backward


def my_softmax_backward(d_probs, probs):
    mean = (d_probs * probs).sum(axis=-1, keepdims=True)
    return probs * (d_probs - mean)


def _each_alone(d_probs, probs):
    return probs * (1 - probs) * d_probs


def _only_own(d_probs, probs):
    return probs * d_probs


def _plain_mean(d_probs, probs):
    return probs * (d_probs - d_probs.mean(axis=-1, keepdims=True))


def _over_queries(d_probs, probs):
    return probs * (d_probs - (d_probs * probs).sum(axis=0))


def _mean_in_columns(d_probs, probs):
    return probs * (d_probs - (d_probs * probs).sum(axis=-1))


def _no_factor(d_probs, probs):
    return d_probs - (d_probs * probs).sum(axis=-1, keepdims=True)


# ----------------------------------------------------- layer norm backward


def my_layer_norm_backward(d_y, x):
    distances = x - x.mean(axis=-1, keepdims=True)
    s = np.sqrt((distances**2).mean(axis=-1, keepdims=True) + 1e-12)
    z = distances / s
    mean = d_y.mean(axis=-1, keepdims=True)
    along = (d_y * z).mean(axis=-1, keepdims=True)
    return (d_y - mean - z * along) / s


def _standardised(x):
    distances = x - x.mean(axis=-1, keepdims=True)
    s = np.sqrt((distances**2).mean(axis=-1, keepdims=True) + EPS)
    return distances / s, s


def _constants(d_y, x):
    return d_y / _standardised(x)[1]


def _only_mean(d_y, x):
    return (d_y - d_y.mean(axis=-1, keepdims=True)) / _standardised(x)[1]


def _not_divided(d_y, x):
    return my_layer_norm_backward(d_y, x) * _standardised(x)[1]


def _summed(d_y, x):
    z, s = _standardised(x)
    return (d_y - d_y.sum(-1, keepdims=True) - z * (d_y * z).sum(-1, keepdims=True)) / s


def _x_for_z(d_y, x):
    mean = d_y.mean(axis=-1, keepdims=True)
    along = (d_y * x).mean(axis=-1, keepdims=True)
    return (d_y - mean - x * along) / _standardised(x)[1]


# ----------------------------------------------------------- loss backward


def my_d_logits(logits, label):
    exponentials = np.exp(logits - logits.max())
    probs = exponentials / exponentials.sum()
    one_hot = np.arange(len(logits)) == label
    return probs - one_hot


def _wrong_sign(logits, label):
    return -my_d_logits(logits, label)


def _logits_for_probs(logits, label):
    return logits - (np.arange(len(logits)) == label)


def _only_the_label(logits, label):
    return my_d_logits(logits, label) * (np.arange(len(logits)) == label)


def _probs_alone(logits, label):
    return _softmax(logits)


def _divided(logits, label):
    return my_d_logits(logits, label) / len(logits)


EXERCISES = (
    Exercise(
        id="12.softmax_backward",
        title="Back through softmax",
        level=2,
        minutes=10,
        task="Write `my_softmax_backward(d_probs, probs)`, both of shape (Tq, Tk): the "
        "gradient of the loss with respect to the scores.",
        hints=(
            "Each share rises when its own score rises, and falls when another's does. "
            "What must the gradient of a row sum to?",
            "Take from d_probs its mean weighed by probs, (d_probs * probs).sum(axis="
            "-1, keepdims=True), then multiply by probs.",
        ),
        solution=my_softmax_backward,
        mistakes=(
            Mistake(
                _each_alone,
                "p (1 - p) is only what a score does to its own "
                "share: the other shares fall too",
            ),
            Mistake(
                _only_own,
                "take the weighed mean out of d_probs first: a row of "
                "your gradient must sum to 0",
            ),
            Mistake(_plain_mean, "the mean must be weighed by probs"),
            Mistake(
                _over_queries,
                "you took the mean over queries, axis 0: keys are axis -1",
            ),
            Mistake(
                _mean_in_columns,
                "the mean of row j went to column j: keep the "
                "summed axis with keepdims=True",
            ),
            Mistake(
                _no_factor,
                "the factor probs in front is missing: a share near 0 hardly moves",
            ),
        ),
        cases=(
            (np.array([[1.0, 0.0, 1.0]]), np.array([[0.5, 0.25, 0.25]])),
            (np.array([[2.0, -1.0], [0.5, 1.5]]), np.array([[0.9, 0.1], [0.4, 0.6]])),
        ),
    ),
    Exercise(
        id="12.layer_norm_backward",
        title="Back through LayerNorm",
        level=3,
        minutes=12,
        task="Write `my_layer_norm_backward(d_y, x)`, both of shape (T, H), for y "
        "= z = (x - mean) / s (gamma 1, beta 0, epsilon 1e-12 inside the root): "
        "the gradient with respect to x.",
        hints=(
            "Two directions change nothing: adding one number to all of x, and "
            "stretching x about its mean. Take both out of d_y.",
            "z = distances / s; then (d_y - mean of d_y - z * mean of d_y * z) / s, "
            "means over axis -1 with keepdims=True.",
        ),
        solution=my_layer_norm_backward,
        mistakes=(
            Mistake(_constants, "you took mean and s for constants: both depend on x"),
            Mistake(
                _only_mean, "s depends on x too: take out z times the mean of d_y z"
            ),
            Mistake(_not_divided, "the last step is missing: divide by s"),
            Mistake(_summed, "these are sums: both terms are means over the H numbers"),
            Mistake(_x_for_z, "the second term needs z, not x"),
        ),
        cases=(
            (np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 5.0, 5.0]])),
            (
                np.array([[0.5, -1.0, 2.0], [1.0, 1.0, -3.0]]),
                np.array([[0.0, 3.0, 6.0], [2.0, -1.0, 2.0]]),
            ),
        ),
    ),
    Exercise(
        id="12.d_logits",
        title="Where the gradient begins",
        level=1,
        minutes=6,
        task="Write `my_d_logits(logits, label)` for the logits of one masked word, of "
        "shape (V,), and the id of the right word: the gradient of the loss "
        "-log(softmax(logits)[label]) with respect to the logits.",
        hints=(
            "The loss is log(sum(exp(logits))) - logits[label]. Each of the two terms "
            "has a short derivative.",
            "It is softmax(logits), with 1 taken away at the label.",
        ),
        solution=my_d_logits,
        mistakes=(
            Mistake(
                _wrong_sign,
                "the sign is turned: the loss falls when the right logit rises",
            ),
            Mistake(_logits_for_probs, "you forgot the softmax: probs minus one-hot"),
            Mistake(
                _only_the_label,
                "the other logits count too: each of them takes "
                "share from the right word",
            ),
            Mistake(_probs_alone, "now take 1 away at the label"),
            Mistake(_divided, "there is one word: nothing to divide by"),
        ),
        cases=(
            (np.array([2.0, 1.0, 0.0]), 1),
            (np.array([0.0, 0.0, 3.0, -1.0]), 3),
        ),
    ),
)
