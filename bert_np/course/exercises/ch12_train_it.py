"""Exercises of chapter 12: train it."""

import math

import numpy as np

import bert_np
from bert_np.course.exercise import Exercise, mistakes
from bert_np.functional import erf

EPS = 1e-12


def _softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


# -------------------------------------------------------- softmax backward


def my_softmax_backward(d_probs, probs):
    mean = (d_probs * probs).sum(axis=-1, keepdims=True)
    return probs * (d_probs - mean)


def _each_alone(d_probs, probs):
    """p (1 - p) is only what a score does to its own probability: the
    others fall too
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
    """the factor probs in front is missing: a probability near 0
    hardly moves
    """
    return d_probs - (d_probs * probs).sum(axis=-1, keepdims=True)


def _one_mean(d_probs, probs):
    """you took one mean for all rows: each query has its own, axis=-1"""
    return probs * (d_probs - (d_probs * probs).sum())


def _first_row(d_probs, probs):
    """you used the probabilities of the first query for all: each has its
    own row"""
    return my_softmax_backward(d_probs, np.repeat(probs[:1], len(probs), axis=0))


def _shifted_afterwards(d_probs, probs):
    """the row sums to 0, but not by the weighted mean: subtract that from
    d_probs, before you multiply
    """
    return probs * d_probs - (probs * d_probs).mean(axis=-1, keepdims=True)


def _draw_softmax(rng):
    """Probabilities of any two sizes, and what the loss says of them."""
    Tq, Tk = rng.integers(1, 6, 2)
    return rng.normal(size=(Tq, Tk)), rng.dirichlet(np.ones(Tk), Tq)


# --------------------------------------------------------- linear backward


def my_linear_backward(d_y, x, W):
    return d_y @ W.T, x.T @ d_y, d_y.sum(axis=0)


def _not_transposed(d_y, x, W):
    """x[i] reaches y[o] through W[i, o], so the way back needs W transposed"""
    return d_y @ W, x.T @ d_y, d_y.sum(axis=0)


def _factors_exchanged(d_y, x, W):
    """your d_W is transposed: it has the shape of W, so x stands first, x.T @ d_y"""
    return d_y @ W.T, d_y.T @ x, d_y.sum(axis=0)


def _mean_of_rows(d_y, x, W):
    """every row of x uses the same b: their gradients add up, they are not averaged"""
    return d_y @ W.T, x.T @ d_y, d_y.mean(axis=0)


def _means_of_rows(d_y, x, W):
    """every row of x uses the same W and b: their gradients add up, they are
    not averaged
    """
    return d_y @ W.T, x.T @ d_y / len(x), d_y.mean(axis=0)


def _bias_not_summed(d_y, x, W):
    """b has one number for each column of y: sum d_y over the rows"""
    return d_y @ W.T, x.T @ d_y, d_y


def _bias_summed_over_columns(d_y, x, W):
    """b is added to every row, so sum d_y over the rows, axis 0"""
    return d_y @ W.T, x.T @ d_y, d_y.sum(axis=1)


def _draw_linear(rng):
    """Any number of rows, and a matrix of any sizes."""
    N, I, O = rng.integers(1, 6, 3)  # noqa: E741
    return rng.normal(size=(N, O)), rng.normal(size=(N, I)), rng.normal(size=(I, O))


# ------------------------------------------------------ attention backward


def my_attention_backward(d_context, q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
    d_v = probs.T @ d_context
    d_probs = d_context @ v.T
    d_scores = probs * (d_probs - (d_probs * probs).sum(axis=-1, keepdims=True))
    d_scores = d_scores / math.sqrt(q.shape[1])
    return d_scores @ k, d_scores.T @ q, d_v


def _attention_parts(d_context, q, k, v):
    """probs and d_scores before they are scaled."""
    probs = _softmax(q @ k.T / math.sqrt(q.shape[1]))
    return probs, my_softmax_backward(d_context @ v.T, probs)


def _unscaled(d_context, q, k, v):
    """the scores were divided by √D on the way forward: divide their gradient, too"""
    probs, d_scores = _attention_parts(d_context, q, k, v)
    return d_scores @ k, d_scores.T @ q, probs.T @ d_context


def _scaled_twice(d_context, q, k, v):
    """you divided by D: divide by √D, and only once"""
    probs, d_scores = _attention_parts(d_context, q, k, v)
    d_scores = d_scores / q.shape[1]
    return d_scores @ k, d_scores.T @ q, probs.T @ d_context


def _through_no_softmax(d_context, q, k, v):
    """the way from probs back to scores is missing: softmax backward"""
    probs, _ = _attention_parts(d_context, q, k, v)
    d_scores = d_context @ v.T / math.sqrt(q.shape[1])
    return d_scores @ k, d_scores.T @ q, probs.T @ d_context


def _values_by_rows(d_context, q, k, v):
    """value j went to every query i with probs[i, j]: on the way back the map
    is transposed, probs.T @ d_context
    """
    probs, d_scores = _attention_parts(d_context, q, k, v)
    d_scores = d_scores / math.sqrt(q.shape[1])
    return d_scores @ k, d_scores.T @ q, probs @ d_context


def _keys_by_rows(d_context, q, k, v):
    """for d_k the map of gradients is transposed: d_scores.T @ q"""
    probs, d_scores = _attention_parts(d_context, q, k, v)
    d_scores = d_scores / math.sqrt(q.shape[1])
    return d_scores @ k, d_scores @ q, probs.T @ d_context


def _queries_and_keys_exchanged(d_context, q, k, v):
    """the first result is d_q: it is d_scores @ k; the second, d_k, needs q"""
    d_q, d_k, d_v = my_attention_backward(d_context, q, k, v)
    return d_k, d_q, d_v


def _draw_attention(rng):
    """A head of any size on a few tokens."""
    T, D = rng.integers(2, 6, 2)
    return tuple(rng.normal(size=(4, T, D)))


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


# ----------------------------------------------------------- GELU backward


def my_gelu_backward(d_y, x):
    probability = (1 + bert_np.functional.erf(x / math.sqrt(2))) / 2
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return d_y * (probability + x * density)


def _phi(x):
    return (1 + erf(x / math.sqrt(2))) / 2


def _density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _probability_held(d_y, x):
    """Φ(x) changes with x as well: by the product rule there is a second
    term, x times the density
    """
    return d_y * _phi(x)


def _density_without_x(d_y, x):
    """the second term is x times the density"""
    return d_y * (_phi(x) + _density(x))


def _density_without_its_constant(d_y, x):
    """the density is exp(-x²/2) divided by √(2π), so that its area is 1"""
    return d_y * (_phi(x) + x * np.exp(-x * x / 2))


def _density_without_its_half(d_y, x):
    """the exponent of the density is -x²/2, not -x²"""
    return d_y * (_phi(x) + x * np.exp(-x * x) / math.sqrt(2 * math.pi))


def _step(d_y, x):
    """that is the slope of ReLU: GELU has a soft corner"""
    return d_y * (x > 0)


def _slope_alone(d_y, x):
    """that is the slope of GELU: multiply by d_y, the gradient that came back"""
    return _phi(x) + x * _density(x)


def _draw_gelu(rng):
    """Any numbers, and the gradient that comes back to each."""
    T, F = rng.integers(1, 6, 2)
    return rng.normal(size=(T, F)), 2 * rng.normal(size=(T, F))


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
    """the other logits count too: each of them takes probability from the
    right word
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


# --------------------------------------------------------------- the steps


def my_sgd(p, g, rate):
    return p - rate * g


def _uphill(p, g, rate):
    """that goes uphill: the gradient points to where the loss rises"""
    return p + rate * g


def _no_rate(p, g, rate):
    """the rate is missing: a whole gradient is far too long a step"""
    return p - g


def _only_the_step(p, g, rate):
    """that is the change alone: return the new p"""
    return -rate * g


def _sign_only(p, g, rate):
    """you used only the sign of the gradient: its size counts, too"""
    return p - rate * np.sign(g)


def _draw_sgd(rng):
    """Parameters, their gradient and a rate."""
    p, g = rng.normal(size=(2, rng.integers(1, 6)))
    return p, g, float(rng.uniform(0.01, 1))


def my_adam(p, g, m, v, step, rate):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g**2
    mean = m / (1 - 0.9**step)
    square = v / (1 - 0.999**step)
    p = p - rate * mean / (np.sqrt(square) + 1e-8)
    return p, m, v


def _adam(p, g, m, v, step, rate, correct=True, root=np.sqrt, kept=False):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    n = step if correct else 1e9
    mean, square = m / (1 - 0.9**n), v / (1 - 0.999**n)
    new = p - rate * mean / (root(square) + 1e-8)
    return (new, mean, square) if kept else (new, m, v)


def _uncorrected(p, g, m, v, step, rate):
    """both running means began at 0: divide m by 1 - 0.9**step and v by
    1 - 0.999**step before the step
    """
    return _adam(p, g, m, v, step, rate, correct=False)


def _step_for_step_minus_one(p, g, m, v, step, rate):
    """steps are counted from 1: the first correction is 1 - 0.9"""
    return _adam(p, g, m, v, step + 1, rate)


def _no_root(p, g, m, v, step, rate):
    """divide by the root of the mean square"""
    return _adam(p, g, m, v, step, rate, root=lambda square: square)


def _corrected_are_kept(p, g, m, v, step, rate):
    """the corrected means are for this step only: return m and v themselves"""
    return _adam(p, g, m, v, step, rate, kept=True)


def _gradient_for_mean(p, g, m, v, step, rate):
    """the step goes along the running mean m, not along g alone"""
    new_m, new_v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    square = new_v / (1 - 0.999**step)
    return p - rate * g / (np.sqrt(square) + 1e-8), new_m, new_v


def _not_squared(p, g, m, v, step, rate):
    """v is the running mean of the squares, g**2"""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * np.abs(g)
    mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return p - rate * mean / (np.sqrt(square) + 1e-8), m, v


def _weights_exchanged(p, g, m, v, step, rate):
    """the old mean keeps most of its weight: 0.9 m + 0.1 g, 0.999 v + 0.001 g²"""
    m, v = 0.1 * m + 0.9 * g, 0.001 * v + 0.999 * g**2
    mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return p - rate * mean / (np.sqrt(square) + 1e-8), m, v


def _adam_uphill(p, g, m, v, step, rate):
    """that goes uphill: subtract"""
    new, m, v = my_adam(p, g, m, v, step, rate)
    return 2 * p - new, m, v


def _draw_adam(rng):
    """A step somewhere in a training."""
    p, g, m = rng.normal(size=(3, rng.integers(1, 6)))
    v = rng.uniform(0.01, 1, p.shape)
    return p, g, m, v, int(rng.integers(1, 50)), float(rng.uniform(0.01, 1))


EXERCISES = (
    Exercise(
        id="12.softmax_backward",
        title="Back through softmax",
        level=2,
        minutes=10,
        task="Write `my_softmax_backward(d_probs, probs)`, both of shape (Tq, Tk): the "
        "gradient of the loss with respect to the scores.",
        hints=(
            "Each probability rises with its own score and falls when another's rises. "
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
        why="Each row of the gradient sums to 0: one probability can rise only if "
        "others fall.",
    ),
    Exercise(
        id="12.linear_backward",
        title="Back through a linear map",
        level=2,
        minutes=8,
        task="y = x W + b with x of shape (N, I) and W of shape (I, O). Write "
        "`my_linear_backward(d_y, x, W)`: the gradients (d_x, d_W, d_b), each with "
        "the shape of what it belongs to.",
        hints=(
            "y[n, o] is the sum over i of x[n, i] W[i, o], plus b[o]. Through which "
            "numbers of y does x[n, i] reach the loss, through which does W[i, o]?",
            "d_x = d_y Wᵀ and d_W = xᵀ d_y; b is added to every row, so sum d_y over "
            "the rows. The shapes leave no other way.",
        ),
        solution=my_linear_backward,
        why="Whatever was used N times gets N gradients, and they add up.",
        mistakes=mistakes(
            _not_transposed,
            _factors_exchanged,
            _mean_of_rows,
            _means_of_rows,
            _bias_not_summed,
            _bias_summed_over_columns,
        ),
        cases=(
            (
                np.array([[1.0, 0.0], [0.0, 2.0]]),
                np.array([[1.0, 2.0], [3.0, -1.0]]),
                np.array([[0.5, -1.0], [2.0, 1.0]]),
            ),
            (
                np.array([[1.0, -2, 0.5]]),
                np.array([[2.0, 1.0]]),
                np.array([[1.0, 2, 3], [4, 5, 6]]),
            ),
            (
                np.array([[0.5, 1.0], [-1, 2], [3, 0.25]]),
                np.array([[1.0, 0, 2, -1], [0, 1, 1, 4], [2, -3, 0.5, 1]]),
                np.array([[1.0, -1], [0.5, 2], [0, 3], [1.5, 1]]),
            ),
            (
                np.array([[1.0, 2, 3], [0, 1, -1], [2, -2, 0.5]]),
                np.array([[0.5, 1, 0], [1, -1, 2], [3, 0, 1]]),
                np.array([[1.0, 2, 0], [0, -1, 1], [4, 1, 2]]),
            ),
        ),
        draw=_draw_linear,
    ),
    Exercise(
        id="12.attention_backward",
        title="Back through a head",
        level=3,
        minutes=15,
        task="One head computes context = softmax(q kᵀ / √D) v from q, k and v of "
        "shape (T, D). Write `my_attention_backward(d_context, q, k, v)`: the "
        "gradients (d_q, d_k, d_v).",
        hints=(
            "Compute probs again. context is a product of probs and v, so both "
            "gradients are those of a linear map. Then softmax backward, then the "
            "product q kᵀ, and do not forget √D.",
            "d_v = probsᵀ d_context and d_probs = d_context vᵀ; d_scores by softmax "
            "backward, divided by √D; d_q = d_scores k and d_k = d_scoresᵀ q.",
        ),
        solution=my_attention_backward,
        why="A query is moved by the keys and a key by the queries, each as far as "
        "the loss cares about their score.",
        mistakes=mistakes(
            _unscaled,
            _scaled_twice,
            _through_no_softmax,
            _values_by_rows,
            _keys_by_rows,
            _queries_and_keys_exchanged,
        ),
        cases=(
            (
                np.array([[1.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
                np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]]),
                np.array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 1, 2, 0]]),
                np.array([[1.0, 0, 2, 0], [0, 1, 0, 1], [1, 1, -1, 0]]),
            ),
            (
                np.array([[1.0, -1], [0.5, 2]]),
                np.array([[1.0, 0], [0.5, 1]]),
                np.array([[1.0, 1], [-1, 0.5]]),
                np.array([[2.0, 0], [1, 3]]),
            ),
            tuple(np.sin(np.arange(60.0) ** 2).reshape(4, 5, 3)),
        ),
        draw=_draw_attention,
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
        why="Neither shifting nor stretching x changes z, so the gradient has no part "
        "in these two directions.",
    ),
    Exercise(
        id="12.gelu_backward",
        title="Back through GELU",
        level=2,
        minutes=7,
        task="y = x Φ(x), number by number. Write `my_gelu_backward(d_y, x)` for "
        "arrays of shape (T, F): the gradient with respect to x. `erf` from "
        "bert_np.functional takes arrays.",
        hints=(
            "The product rule: one term in which Φ(x) stays, one in which it changes. "
            "The derivative of Φ is the bell curve.",
            "d_y (Φ(x) + x φ(x)) with Φ(x) = (1 + erf(x/√2)) / 2 and "
            "φ(x) = exp(-x²/2) / √(2π).",
        ),
        solution=my_gelu_backward,
        why="The slope is near 1 for large x, near 0 for very negative x, and a little "
        "below 0 in the dip: there the loss pushes the other way.",
        mistakes=mistakes(
            _probability_held,
            _density_without_x,
            _density_without_its_constant,
            _density_without_its_half,
            _step,
            _slope_alone,
        ),
        cases=(
            (np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([[-2.0, -0.5, 0.5, 2.0]])),
            (np.array([[2.0, -1], [0.5, 3]]), np.array([[1.0, -0.75], [0.0, -3.0]])),
            (np.array([[1.5], [-2], [0.25]]), np.array([[9.0], [-9.0], [0.1]])),
        ),
        draw=_draw_gelu,
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
        why="Before training every wrong word is pushed down a little and the right "
        "one up; where the model is sure and right, nothing moves.",
    ),
    Exercise(
        id="12.sgd",
        title="One step downhill",
        level=1,
        minutes=3,
        task="Write `my_sgd(p, g, rate)`: the new parameters after one step against "
        "the gradient g, scaled by the learning rate. Do not change p itself.",
        hints=(
            "The gradient points to where the loss rises fastest.",
            "Subtract rate times g.",
        ),
        solution=my_sgd,
        why="A small step against the gradient lowers the loss, whatever the function; "
        "how small it must be, the gradient does not say.",
        mistakes=mistakes(_uphill, _no_rate, _only_the_step, _sign_only),
        cases=(
            (np.array([1.0, 2.0]), np.array([0.5, -1.0]), 0.1),
            (np.array([0.0, 1, 2, 3]), np.array([1.0, -1, 0, 4]), 0.5),
            (np.array([3.0]), np.array([-20.0]), 0.01),
        ),
        draw=_draw_sgd,
    ),
    Exercise(
        id="12.adam",
        title="Adam",
        level=2,
        minutes=10,
        task="Write `my_adam(p, g, m, v, step, rate)` for the parameters p, their "
        "gradient g, the running means m of the gradients and v of their squares "
        "before this step (weights 0.9 and 0.999), step = 1, 2, … and epsilon "
        "1e-8, outside the root. Return the new (p, m, v) and do not change the "
        "old.",
        hints=(
            "m = 0.9 m + 0.1 g, and v likewise with g². Both began at 0 and are too "
            "small at first: divide by 1 - 0.9**step and 1 - 0.999**step.",
            "p - rate * mean / (sqrt(square) + 1e-8), where mean and square are the "
            "corrected m and v; return m and v as they were before the correction.",
        ),
        solution=my_adam,
        why="Mean over root of mean square is near 1 or -1 where the gradients agree, "
        "near 0 where they do not, whatever their size.",
        mistakes=mistakes(
            _uncorrected,
            _step_for_step_minus_one,
            _no_root,
            _corrected_are_kept,
            _gradient_for_mean,
            _not_squared,
            _weights_exchanged,
            _adam_uphill,
        ),
        cases=(
            (
                np.array([1.0, 2.0]),
                np.array([0.5, -3.0]),
                np.zeros(2),
                np.zeros(2),
                1,
                0.1,
            ),
            (
                np.array([0.0, 1.0, -1.0]),
                np.array([0.1, 2.0, 0.0]),
                np.array([0.3, -0.5, 0.2]),
                np.array([0.04, 1.0, 0.5]),
                7,
                0.5,
            ),
            (
                np.array([2.0]),
                np.array([-0.01]),
                np.array([0.02]),
                np.array([0.01]),
                40,
                0.3,
            ),
        ),
        draw=_draw_adam,
    ),
)
