"""The mathematics on bare arrays: no parameter dict, no config.

float32 in gives float32 out, and float64 gives float64. No argument is
ever written to.
"""

import math
from functools import wraps

import numpy as np

from bert_np.checked import checked
from bert_np.trace import record

# erf(x) = tanh(x P(x²)) in float32: P's coefficients, lowest power first.
# tests/tools/fit_erf.py computes them.
ERF_COEFFICIENTS = (
    1.128379705,
    1.027654815e-1,
    -1.843837337e-4,
    -6.257195318e-4,
    8.971256936e-5,
    -5.985687396e-6,
    1.589600195e-7,
)
BLOCK = 2**17  # values, 0.5 MB in float32: they stay in the processor's cache


@checked
def linear(x, W, b):
    """Multiply by a matrix and add a bias: x W + b.

    Parameters
    ----------
    x : ndarray of shape (..., I)
    W : ndarray of shape (I, O)
    b : ndarray of shape (O,)

    Returns
    -------
    ndarray of shape (..., O)

    Examples
    --------
    >>> linear(np.array([[1.0, 2.0]]), W=np.array([[1.0], [10.0]]), b=np.array([0.5]))
    array([[21.5]])
    """
    y = x.reshape(-1, x.shape[-1]) @ W  # all rows in one product
    y += b
    return y.reshape(*x.shape[:-1], W.shape[1])


@checked
def layer_norm(x, gamma, beta, eps):
    """Give each vector mean 0 and variance 1, then scale and shift it.

    gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis.
    The variance is that of a population: divided by H, not by H - 1.

    Parameters
    ----------
    x : ndarray of shape (..., H)
    gamma, beta : ndarray of shape (H,)
    eps : float
        Inside the root; BERT's is 1e-12.

    Returns
    -------
    ndarray of shape (..., H)

    Examples
    --------
    >>> layer_norm(np.array([1.0, 1.0, 5.0, 5.0]), np.ones(4), np.zeros(4), 1e-12)
    array([-1., -1.,  1.,  1.])

    Source: Ba et al. 2016, equation 3.
    """
    x = centre(x)
    variance = (x * x).mean(axis=-1, keepdims=True)
    return gamma * x / np.sqrt(variance + eps) + beta


@checked
def centre(x):
    """Subtract from each vector its mean.

    Twice, because the first mean is rounded: what it leaves of a constant
    vector is the same tiny number everywhere, and the second mean removes
    it exactly. Divided by a deviation of almost 0 it would become large.

    Parameters
    ----------
    x : ndarray of shape (..., H)

    Returns
    -------
    ndarray of shape (..., H)

    Examples
    --------
    >>> centre(np.array([7.7, 7.7, 7.7], np.float32))
    array([0., 0., 0.], dtype=float32)
    """
    x = x - x.mean(axis=-1, keepdims=True)
    return x - x.mean(axis=-1, keepdims=True)


@checked
def softmax(x, axis=-1):
    """Turn scores into positive numbers that sum to 1 along an axis.

    exp(x) / sum(exp(x)). The largest score is subtracted first, which
    changes nothing but keeps exp from overflowing.

    Parameters
    ----------
    x : ndarray of shape (...)
    axis : int

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> softmax(np.array([2.0, 1.0, 0.0])).round(4)
    array([0.6652, 0.2447, 0.09  ])
    """
    y = np.exp(x - x.max(axis=axis, keepdims=True))
    return y / y.sum(axis=axis, keepdims=True)


def in_blocks(function):
    """Decorate an elementwise function: a large array passes in blocks.

    Its intermediate results then stay in the cache.
    """

    @wraps(function)
    def wrapper(x):
        values, y = x.reshape(-1), np.empty(x.size, x.dtype)
        for start in range(0, x.size, BLOCK):
            block = slice(start, start + BLOCK)
            y[block] = function(values[block])
        return y.reshape(x.shape)

    return wrapper


@checked
@in_blocks
def gelu(x):
    """Weight each value by the probability of a smaller normal variable.

    x Phi(x) = x (1 + erf(x / sqrt(2))) / 2. HuggingFace calls it "gelu".

    Parameters
    ----------
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)
        In float32 its error is at most 6e-7 for |x| <= 12.

    Examples
    --------
    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(6)
    array([-0.158655,  0.      ,  0.841345])

    Source: Hendrycks & Gimpel 2016, section 2.
    """
    return x * ((1 + erf(x / math.sqrt(2))) / 2)


@checked
@in_blocks
def gelu_tanh(x):
    """Approximate GELU: tanh in place of erf, within 4.8e-4 of the exact form.

    x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))) / 2. HuggingFace calls it
    "gelu_new" and "gelu_pytorch_tanh"; google-research's BERT uses it.

    Parameters
    ----------
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(6)
    array([-0.158808,  0.      ,  0.841192])

    Source: Hendrycks & Gimpel 2016, section 2.
    """
    cubic = x * (1 + 0.044715 * x * x)  # x + 0.044715 x³
    return x * ((1 + np.tanh(math.sqrt(2 / math.pi) * cubic)) / 2)


@checked
def relu(x):
    """Keep positive values and set the others to 0: max(x, 0).

    Parameters
    ----------
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)
    """
    return np.maximum(x, 0)


# What HuggingFace's config.json calls an activation -> the function.
ACTIVATIONS = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "relu": relu,
}


@checked
@in_blocks
def erf(x):
    """Integrate the bell curve: 2/sqrt(pi) times exp(-t²), from 0 to x.

    This is the error function, which NumPy lacks. In float64 Python's
    own is called for each element. In float32 it is tanh(x P(x²)) with a
    fitted polynomial P of degree 6, computed by Horner's rule.

    Parameters
    ----------
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)
        The float32 form is at most 1.5e-7 from the exact value.

    Examples
    --------
    >>> erf(np.array([0.0, 1.0]))
    array([0.        , 0.84270079])
    """
    if x.dtype.itemsize > 4:
        return np.array([math.erf(value) for value in x.tolist()])
    squared = x * x
    y = squared * ERF_COEFFICIENTS[-1]
    for coefficient in ERF_COEFFICIENTS[-2:0:-1]:
        y += coefficient
        y *= squared
    y += ERF_COEFFICIENTS[0]
    return np.tanh(x * y)


@checked
def dropout(x, rate, rng, trace=None):
    """Set each value to 0 with probability rate, and scale up the others.

    The mean stays the same, since the values kept are divided by 1 - rate.

    Parameters
    ----------
    x : ndarray of shape (...)
    rate : float in 0..1
    rng : numpy.random.Generator or None
        None: the forward pass is deterministic, x is returned unchanged.
    trace : dict, optional
        Receives dropout_mask, the factors of x, if rng is given.

    Returns
    -------
    ndarray of shape (...)

    Source: Devlin et al. 2018, appendix A.2.
    """
    if rng is None or rate == 0:
        return x
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    mask = kept.astype(x.dtype) / (1 - rate if rate < 1 else 1)
    record(trace, dropout_mask=mask)
    return x * mask
