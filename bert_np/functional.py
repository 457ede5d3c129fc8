"""The mathematics on bare arrays: no parameters dict, no config.

float32 in gives float32 out, float64 gives float64. An argument is never
written to; arithmetic in place is on arrays made here.
"""

import math

import numpy as np

# erf(x) = tanh(x P(x²)) for float32: P's coefficients, lowest power first.
# tests/fit_erf.py makes them.
ERF_COEFFICIENTS = (
    1.128379705,
    1.027654815e-1,
    -1.843837337e-4,
    -6.257195318e-4,
    8.971256936e-5,
    -5.985687396e-6,
    1.589600195e-7,
)
BLOCK = 2**16  # values that stay in the cache while a formula is worked out


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
    y = x.reshape(-1, x.shape[-1]) @ W  # one product for all rows
    y += b
    return y.reshape(*x.shape[:-1], W.shape[1])


def layer_norm(x, gamma, beta, eps):
    """Give each vector mean 0 and variance 1, then scale and shift it.

    gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis.
    The variance is the population's: divided by H, not by H - 1.

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
    y = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(y).mean(axis=-1, keepdims=True)
    y /= np.sqrt(variance + eps)
    y *= gamma
    y += beta
    return y


def softmax(x, axis=-1, out=None):
    """Turn scores into positive numbers that sum to 1 along an axis.

    exp(x) / sum(exp(x)). The largest score is subtracted first, which
    changes nothing but keeps exp from overflowing.

    Parameters
    ----------
    x : ndarray of shape (...)
    axis : int
    out : ndarray of shape (...), optional
        Where to write the result, as in NumPy; may be x itself.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> softmax(np.array([2.0, 1.0, 0.0])).round(4)
    array([0.6652, 0.2447, 0.09  ])
    """
    y = np.empty(x.shape, x.dtype) if out is None else out
    for part, probs in _blocks(x, y, axis):  # parts that stay in the cache
        np.subtract(part, part.max(axis=axis, keepdims=True), out=probs)
        np.exp(probs, out=probs)
        probs /= probs.sum(axis=axis, keepdims=True)
    return y


def erf(x):
    """The error function: 2/sqrt(pi) times the integral of exp(-t²), 0 to x.

    NumPy has none. float64 uses Python's, element by element. float32
    uses tanh(x P(x²)) with a fitted polynomial P of degree 6; its error
    is at most 1.5e-7.

    Parameters
    ----------
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> erf(np.array([0.0, 1.0]))
    array([0.        , 0.84270079])
    """
    if x.dtype.itemsize > 4:
        values = [math.erf(value) for value in x.ravel().tolist()]
        return np.array(values, np.float64).reshape(x.shape)
    y = _atanh_erf(x)
    return np.tanh(y, out=y)


@np.errstate(over="ignore")  # inf is as good: tanh(inf) = 1
def _atanh_erf(x):
    """x P(x²), whose tanh is erf(x)."""
    squared = x * x
    y = squared * ERF_COEFFICIENTS[-1]
    for coefficient in ERF_COEFFICIENTS[-2:0:-1]:
        y += coefficient
        y *= squared
    y += ERF_COEFFICIENTS[0]
    y *= x
    return y


def gelu(x, out=None):
    """Weigh each value by the chance that a normal variate is below it.

    x Phi(x) = x (1 + erf(x / sqrt(2))) / 2. HuggingFace calls it "gelu".
    In float32 its error is at most 6e-7 where |x| <= 12.

    Parameters
    ----------
    x : ndarray of shape (...)
    out : ndarray of shape (...), optional
        As of softmax.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(6)
    array([-0.158655,  0.      ,  0.841345])

    Source: Hendrycks & Gimpel 2016, section 2.
    """
    if x.dtype.itemsize > 4:
        return np.multiply(x, (1 + erf(x * math.sqrt(0.5))) / 2, out=out)
    y = np.empty(x.shape, x.dtype) if out is None else out
    for part, result in _blocks(x, y):
        u = _atanh_erf(part * math.sqrt(0.5))
        _times_half(part, u, result)
    return y


def _times_half(x, u, out):
    """x (1 + tanh(u)) / 2, written to out."""
    np.tanh(u, out=u)
    u += 1
    u *= 0.5
    np.multiply(u, x, out=out)


def _blocks(x, y, axis=-1):
    """Cut x, and y to be written, into parts of whole rows, some BLOCK values.

    Where rows are not along the axis, or y is not contiguous, all is one part.
    """
    if x.size <= BLOCK or axis != -1 or not y.flags.c_contiguous:
        yield np.atleast_1d(x, y)
        return
    rows = max(1, BLOCK // x.shape[-1])
    x, y = (array.reshape(-1, array.shape[-1]) for array in (x, y))
    for start in range(0, len(x), rows):
        yield x[start:start + rows], y[start:start + rows]


@np.errstate(over="ignore")
def gelu_tanh(x, out=None):
    """GELU with tanh for erf; up to 4.7e-4 from the exact form.

    x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))) / 2. HuggingFace calls it
    "gelu_new" and "gelu_pytorch_tanh"; google-research's BERT uses it.

    Parameters
    ----------
    x : ndarray of shape (...)
    out : ndarray of shape (...), optional
        As of softmax.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(6)
    array([-0.158808,  0.      ,  0.841192])

    Source: Hendrycks & Gimpel 2016, section 2.
    """
    y = np.empty(x.shape, x.dtype) if out is None else out
    for part, result in _blocks(x, y):
        u = part * part
        u *= 0.044715
        u += 1
        u *= part
        u *= math.sqrt(2 / math.pi)
        _times_half(part, u, result)
    return y


def relu(x, out=None):
    """Keep positive values and set the others to 0: max(x, 0).

    Parameters
    ----------
    x : ndarray of shape (...)
    out : ndarray of shape (...), optional
        As of softmax.

    Returns
    -------
    ndarray of shape (...)
    """
    return np.maximum(x, 0, out=out)


def dropout_mask(shape, rate, rng, dtype):
    """Draw what dropout multiplies by: 0 with chance rate, else 1/(1-rate).

    Parameters
    ----------
    shape : tuple of int
    rate : float
        Between 0 and 1.
    rng : numpy.random.Generator or None
        None is the deterministic forward pass: no dropout.
    dtype : numpy.dtype

    Returns
    -------
    ndarray of that shape, or None where nothing is dropped
    """
    if rng is None or rate == 0:
        return None
    mask = (rng.random(shape, dtype=np.float32) >= rate).astype(dtype)
    if rate < 1:
        mask /= 1 - rate
    return mask


def dropout(x, mask):
    """Multiply by a dropout mask; None leaves x as it is.

    Parameters
    ----------
    x : ndarray of shape (...)
    mask : ndarray of shape (...) or None
        As dropout_mask draws it.

    Returns
    -------
    ndarray of shape (...)

    Source: Devlin et al. 2018, appendix A.2.
    """
    return x if mask is None else x * mask
