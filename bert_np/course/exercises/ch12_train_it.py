"""Exercises of chapter 12: train it."""

import numpy as np

from bert_np.course.exercise import Exercise, mistakes

EPS = 1e-12


def _softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


# -------------------------------------------------------- softmax backward


def my_softmax_backward(d_probs, probs):
    mean = (d_probs * probs).sum(axis=-1, keepdims=True)
    return probs * (d_probs - mean)


def _each_alone(d_probs, probs):
    """p (1 - p) is only what a score does to its own share: the other
    shares fall too
    """
    return probs * (1 - probs) * d_probs


def _only_own(d_probs, probs):
    """subtract the weighted mean from d_probs first: a row of your gradient
    must sum to 0
    """
    return probs * d_probs


def _plain_mean(d_probs, probs):
    """the mean must be weighted by probs"""
    return probs * (d_probs - d_probs.mean(axis=-1, keepdims=True))


def _over_queries(d_probs, probs):
    """you took the mean over queries, axis 0: keys are axis -1"""
    return probs * (d_probs - (d_probs * probs).sum(axis=0))


def _mean_in_columns(d_probs, probs):
    """the mean of row j went to column j: keep the summed axis with
    keepdims=True
    """
    return probs * (d_probs - (d_probs * probs).sum(axis=-1))


def _no_factor(d_probs, probs):
    """the factor probs in front is missing: a share near 0 hardly moves"""
    return d_probs - (d_probs * probs).sum(axis=-1, keepdims=True)


def _one_mean(d_probs, probs):
    """you took one mean for all rows: each query has its own, axis=-1"""
    return probs * (d_probs - (d_probs * probs).sum())


def _first_row(d_probs, probs):
    """you used the shares of the first query for all: each has its own row"""
    return my_softmax_backward(d_probs, np.repeat(probs[:1], len(probs), axis=0))


def _shifted_afterwards(d_probs, probs):
    """the row sums to 0, but not by the weighted mean: subtract that from
    d_probs, before you multiply
    """
    return probs * d_probs - (probs * d_probs).mean(axis=-1, keepdims=True)


def _draw_softmax(rng):
    """Shares of any two sizes, and what the loss says of them."""
    Tq, Tk = rng.integers(1, 6, 2)
    return rng.normal(size=(Tq, Tk)), rng.dirichlet(np.ones(Tk), Tq)


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
    """you treated mean and s as constants: both depend on x"""
    return d_y / _standardised(x)[1]


def _only_mean(d_y, x):
    """s depends on x too: take out z times the mean of d_y z"""
    return (d_y - d_y.mean(axis=-1, keepdims=True)) / _standardised(x)[1]


def _not_divided(d_y, x):
    """the last step is missing: divide by s"""
    return my_layer_norm_backward(d_y, x) * _standardised(x)[1]


def _summed(d_y, x):
    """these are sums: both terms are means over the H numbers"""
    z, s = _standardised(x)
    return (d_y - d_y.sum(-1, keepdims=True) - z * (d_y * z).sum(-1, keepdims=True)) / s


def _x_for_z(d_y, x):
    """the second term needs z, not x"""
    mean = d_y.mean(axis=-1, keepdims=True)
    along = (d_y * x).mean(axis=-1, keepdims=True)
    return (d_y - mean - x * along) / _standardised(x)[1]


def _sample_deviation(d_y, x):
    """you divided the squares by n - 1: LayerNorm divides by n"""
    n = x.shape[-1]
    z, s = _standardised(x)
    s = s * np.sqrt(n / (n - 1))
    z = z * np.sqrt((n - 1) / n)
    mean = d_y.mean(axis=-1, keepdims=True)
    return (d_y - mean - z * (d_y * z).mean(axis=-1, keepdims=True)) / s


def _over_tokens(d_y, x):
    """you took the means over the tokens, axis 0: each token is normalised
    alone, axis -1
    """
    return my_layer_norm_backward(d_y.T, x.T).T


def _by_the_variance(d_y, x):
    """divide by s, the root of the variance, not by the variance"""
    return my_layer_norm_backward(d_y, x) / _standardised(x)[1]


def _one_deviation(d_y, x):
    """you took one s for the whole array: each row has its own"""
    s = x.std()
    z = (x - x.mean(axis=-1, keepdims=True)) / s
    mean = d_y.mean(axis=-1, keepdims=True)
    return (d_y - mean - z * (d_y * z).mean(axis=-1, keepdims=True)) / s


def _draw_norm(rng):
    """Rows at any place, and what the loss says of their norms."""
    T, H = rng.integers(1, 6), rng.integers(2, 8)
    apart = rng.permuted(np.tile(np.arange(H), (T, 1)), axis=1)
    return rng.normal(size=(T, H)), apart + rng.uniform(0, 0.5, (T, H)) + rng.choice(9)


# ----------------------------------------------------------- loss backward


def my_d_logits(logits, label):
    exponentials = np.exp(logits - logits.max())
    probs = exponentials / exponentials.sum()
    one_hot = np.arange(len(logits)) == label
    return probs - one_hot


def _wrong_sign(logits, label):
    """the sign is reversed: the loss falls when the right logit rises"""
    return -my_d_logits(logits, label)


def _logits_for_probs(logits, label):
    """you forgot the softmax: probs minus one-hot"""
    return logits - (np.arange(len(logits)) == label)


def _only_the_label(logits, label):
    """the other logits count too: each of them takes share from the right
    word
    """
    return my_d_logits(logits, label) * (np.arange(len(logits)) == label)


def _probs_alone(logits, label):
    """now subtract 1 at the label"""
    return _softmax(logits)


def _divided(logits, label):
    """there is one word: nothing to divide by"""
    return my_d_logits(logits, label) / len(logits)


def _naive_softmax(logits, label):
    """exp overflows for large logits: subtract the maximum first"""
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum() - (np.arange(len(logits)) == label)


def _at_the_largest(logits, label):
    """subtract 1 at the label, not at the largest logit"""
    return my_d_logits(logits, logits.argmax())


def _draw_logits(rng):
    """Logits near or far apart, and a label."""
    V = rng.integers(1, 8)
    return rng.normal(size=V) * rng.choice([1, 1000]), int(rng.integers(V))


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
            "Subtract from d_probs its mean weighted by probs, (d_probs * probs).sum("
            "axis=-1, keepdims=True), then multiply by probs.",
        ),
        solution=my_softmax_backward,
        mistakes=mistakes(
            _each_alone,
            _only_own,
            _plain_mean,
            _over_queries,
            _mean_in_columns,
            _no_factor,
            _one_mean,
            _first_row,
            _shifted_afterwards,
        ),
        cases=(
            (np.array([[1.0, 0.0, 1.0]]), np.array([[0.5, 0.25, 0.25]])),
            (np.array([[2.0, -1.0], [0.5, 1.5]]), np.array([[0.9, 0.1], [0.4, 0.6]])),
            (
                np.array([[2.0, -1, 3, 1], [0.5, 1, 1, -2], [7, 7, 7, 7]]),
                np.array([[0.4, 0.3, 0.2, 0.1], [0, 1, 0, 0], [0.7, 0.1, 0.1, 0.1]]),
            ),
        ),
        draw=_draw_softmax,
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
        mistakes=mistakes(
            _constants,
            _only_mean,
            _not_divided,
            _summed,
            _x_for_z,
            _sample_deviation,
            _over_tokens,
            _by_the_variance,
            _one_deviation,
        ),
        cases=(
            (np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 5.0, 5.0]])),
            (
                np.array([[0.5, -1.0, 2.0], [1.0, 1.0, -3.0]]),
                np.array([[0.0, 3.0, 6.0], [2.0, -1.0, 2.0]]),
            ),
            (
                np.array([[1.0, 0.5], [-1, 3], [2, 2]]),
                np.array([[10.0, 14], [0, 0.5], [-2, -3]]),
            ),
            (
                np.array([[0.3, -1, 2, 0.5], [1, 4, 2, 2], [0, 1, 0, -1]]).T,
                np.array([[9.0, 10, 14, 10], [0, 2, 0.5, 1], [-2, -3, 1, 3]]).T,
            ),
        ),
        draw=_draw_norm,
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
            "It is softmax(logits), with 1 subtracted at the label.",
        ),
        solution=my_d_logits,
        mistakes=mistakes(
            _wrong_sign,
            _logits_for_probs,
            _only_the_label,
            _probs_alone,
            _divided,
            _naive_softmax,
            _at_the_largest,
        ),
        cases=(
            (np.array([2.0, 1.0, 0.0]), 1),
            (np.array([0.0, 0.0, 3.0, -1.0]), 3),
            (np.array([800.0, 0, 799, 1, -800]), 0),
            (np.array([0.3, -0.2]), 0),
        ),
        draw=_draw_logits,
    ),
)
