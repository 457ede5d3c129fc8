"""The derivatives of ``functional``: bare arrays, one function for each.

``d_y`` is the gradient of the loss with respect to y, of y's shape. Each
function turns the gradient of its result into the gradients of what went
in. float32 in gives float32 out, and no argument is written to.
"""

import math

import numpy as np

from bert_np.functional import centre, gelu, gelu_tanh, relu


def linear_backward(d_y, x, W):
    """Send a gradient back through y = x W + b.

    y[n, o] = sum_i x[n, i] W[i, o] + b[o]. Each x[n, i] reaches the loss
    through row n of y, so d_x = d_y Wᵀ. Each W[i, o] is used by every
    row, so d_W = xᵀ d_y sums over the rows, and d_b = sum of d_y's rows.

    Parameters
    ----------
    d_y : ndarray of shape (..., O)
    x : ndarray of shape (..., I)
    W : ndarray of shape (I, O)

    Returns
    -------
    d_x : ndarray of shape (..., I)
    grads : dict
        W : ndarray of shape (I, O)
        b : ndarray of shape (O,)
    """
    rows, d_rows = x.reshape(-1, x.shape[-1]), d_y.reshape(-1, d_y.shape[-1])
    d_x = d_rows @ W.T
    grads = {"W": rows.T @ d_rows, "b": d_rows.sum(axis=0)}
    return d_x.reshape(x.shape), grads


def layer_norm_backward(d_y, x, gamma, eps):
    """Send a gradient back through y = gamma z + beta, z = (x - m) / s.

    With g = gamma d_y: shifting x moves m, stretching x moves s, and
    neither changes z. So what g says about these two directions is taken
    out: d_x = (g - mean(g) - z mean(g z)) / s, means over the last axis.
    d_gamma = sum of d_y z, d_beta = sum of d_y, over all vectors.

    Parameters
    ----------
    d_y : ndarray of shape (..., H)
    x : ndarray of shape (..., H)
        What the norm was given.
    gamma : ndarray of shape (H,)
    eps : float

    Returns
    -------
    d_x : ndarray of shape (..., H)
    grads : dict
        gamma : ndarray of shape (H,)
        beta : ndarray of shape (H,)

    Source: Ba et al. 2016, section 5.1, on the two invariances.
    """
    axes = tuple(range(x.ndim - 1))
    centred = centre(x)
    s = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    z = centred / s
    grads = {"gamma": (d_y * z).sum(axis=axes), "beta": d_y.sum(axis=axes)}
    g = gamma * d_y
    along_z = z * (g * z).mean(axis=-1, keepdims=True)
    return (g - g.mean(axis=-1, keepdims=True) - along_z) / s, grads


def softmax_backward(d_probs, probs):
    """Send a gradient back through probs = softmax(x), over the last axis.

    d probs[j] / d x[i] = probs[j] ((i == j) - probs[i]). Summed over j
    with d_probs[j]: d_x = probs (d_probs - sum(d_probs probs)). Only what
    lies above or below the average counts, as probs must sum to 1.

    Parameters
    ----------
    d_probs : ndarray of shape (..., N)
    probs : ndarray of shape (..., N)

    Returns
    -------
    ndarray of shape (..., N)
    """
    return probs * (d_probs - (d_probs * probs).sum(axis=-1, keepdims=True))


def gelu_backward(d_y, x, y):
    """Send a gradient back through y = x Phi(x).

    Phi(x) is the probability that a normal variate is below x. By the
    product rule d_x = d_y (Phi(x) + x phi(x)), where phi = Phi' is the
    normal density exp(-x²/2) / sqrt(2 pi). Phi is y / x.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)
    y : ndarray of shape (...)
        gelu(x), as the forward pass gave it.

    Returns
    -------
    ndarray of shape (...)
    """
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return d_y * (_probability_below(x, y) + x * density)


def gelu_tanh_backward(d_y, x, y):
    """Send a gradient back through y = x Phi, Phi = (1 + tanh(u)) / 2.

    u = c (x + a x³) with c = sqrt(2/pi), a = 0.044715. From tanh' =
    1 - tanh² follows Phi' = 2 Phi (1 - Phi) u', u' = c (1 + 3 a x²), and
    by the product rule d_x = d_y (Phi + x Phi').

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)
    y : ndarray of shape (...)
        gelu_tanh(x), as the forward pass gave it.

    Returns
    -------
    ndarray of shape (...)
    """
    below = _probability_below(x, y)
    u_slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return d_y * (below + x * 2 * below * (1 - below) * u_slope)


def _probability_below(x, y):
    """Phi(x), recovered from y = x Phi(x); Phi(0) is one half."""
    with np.errstate(invalid="ignore"):  # 0 / 0, replaced at once
        return np.where(x == 0, x.dtype.type(0.5), y / x)


def relu_backward(d_y, x, y):
    """Send a gradient back through y = max(x, 0).

    Where x > 0 y is x, so d_x = d_y; elsewhere y is constant, so 0.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)
    y : ndarray of shape (...)
        Not needed; the three activations are called alike.

    Returns
    -------
    ndarray of shape (...)
    """
    return d_y * (x > 0)


# Activation -> the function that sends a gradient back through it.
ACTIVATION_BACKWARDS = {
    gelu: gelu_backward,
    gelu_tanh: gelu_tanh_backward,
    relu: relu_backward,
}


def dropout_backward(d_y, mask):
    """Send a gradient back through y = x mask.

    The mask is a constant, so d_x = d_y mask: what was dropped learns
    nothing. Where nothing was dropped the mask is None and d_x is d_y.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    mask : ndarray of shape (...) or None
        The one that the forward pass drew.

    Returns
    -------
    ndarray of shape (...)
    """
    return d_y if mask is None else d_y * mask


def lookup_backward(d_rows, ids, size):
    """Send a gradient back through rows = table[ids].

    A table row reaches the loss through every place that looked it up,
    so its gradient is the sum of theirs; unused rows get 0. Equal ids are
    brought together by sorting, then each run of them is summed.

    Parameters
    ----------
    d_rows : ndarray of shape (..., H)
    ids : ndarray of int of shape (...)
    size : int
        The number of rows of the table.

    Returns
    -------
    ndarray of shape (size, H)

    Examples
    --------
    >>> lookup_backward(np.array([[1.0], [2.0], [4.0]]), np.array([2, 0, 2]), 3)
    array([[2.], [0.], [5.]])
    """
    H = d_rows.shape[-1]
    order = np.argsort(ids, axis=None, kind="stable")
    used, starts = np.unique(ids.ravel()[order], return_index=True)
    d_table = np.zeros((size, H), d_rows.dtype)
    d_table[used] = np.add.reduceat(d_rows.reshape(-1, H)[order], starts, axis=0)
    return d_table
