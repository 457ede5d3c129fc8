"""The derivatives of ``functional``: one function for each, on bare arrays.

``d_y`` is the gradient of the loss with respect to y and has y's shape.
Each function turns the gradient of a result into the gradients of what
the result was computed from. float32 in gives float32 out, and no
argument is written to.
"""

import math

import numpy as np

from bert_np.functional import centre, erf, gelu, gelu_tanh, relu


def linear_backward(d_y, x, W):
    """Send a gradient back through y = x W + b.

    y[n, o] = sum_i x[n, i] W[i, o] + b[o]. Each x[n, i] reaches the loss
    through row n of y, so d_x = d_y Wᵀ. W and b are used by every row, so
    their gradients sum over the rows: d_W = xᵀ d_y, d_b = sum of d_y.

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
    d_x = (d_rows @ W.T).reshape(x.shape)
    return d_x, {"W": rows.T @ d_rows, "b": d_rows.sum(axis=0)}


def layer_norm_backward(d_y, x, gamma, eps):
    """Send a gradient back through y = gamma z + beta, z = (x - m) / s.

    The gradient of z is g = gamma d_y. Shifting x only moves the mean m,
    stretching x only the deviation s; neither changes z. So these two
    directions are removed from g: d_x = (g - mean(g) - z mean(g z)) / s,
    with means over the last axis. Every vector shares gamma and beta, so
    their gradients are sums: d_gamma = sum of d_y z, d_beta = sum of d_y.

    Parameters
    ----------
    d_y : ndarray of shape (..., H)
    x : ndarray of shape (..., H)
        What the norm was applied to.
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
    centred = centre(x)
    s = np.sqrt(_mean(centred * centred) + eps)
    z = centred / s
    g = gamma * d_y
    d_x = (g - _mean(g) - z * _mean(g * z)) / s
    vectors = tuple(range(x.ndim - 1))  # all axes but the last
    return d_x, {"gamma": (d_y * z).sum(vectors), "beta": d_y.sum(vectors)}


def _mean(x):
    return x.mean(axis=-1, keepdims=True)


def softmax_backward(d_probs, probs):
    """Send a gradient back through probs = softmax(x), over the last axis.

    d probs[j] / d x[i] = probs[j] ((i == j) - probs[i]). Multiplied by
    d_probs[j] and summed over j: d_x = probs (d_probs - sum(d_probs
    probs)). Only the distance from the average counts: probs sum to 1, so
    one can rise only if others fall.

    Parameters
    ----------
    d_probs : ndarray of shape (..., N)
    probs : ndarray of shape (..., N)

    Returns
    -------
    ndarray of shape (..., N)
    """
    return probs * (d_probs - (d_probs * probs).sum(axis=-1, keepdims=True))


def gelu_backward(d_y, x):
    """Send a gradient back through y = x Phi(x).

    Phi(x) is the probability of a normal variable below x. By the
    product rule d_x = d_y (Phi(x) + x phi(x)), where phi = Phi' is the
    normal density, exp(-x²/2) / sqrt(2 pi).

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)
    """
    probability = (1 + erf(x / math.sqrt(2))) / 2
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return d_y * (probability + x * density)


def gelu_tanh_backward(d_y, x):
    """Send a gradient back through y = x (1 + tanh(u)) / 2.

    u = c (x + 0.044715 x³) with c = sqrt(2/pi). By the product and the
    chain rule, and tanh' = 1 - tanh²,
    d_x = d_y (1 + tanh(u) + x (1 - tanh(u)²) u') / 2.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)

    Returns
    -------
    ndarray of shape (...)
    """
    c = math.sqrt(2 / math.pi)
    tanh = np.tanh(c * x * (1 + 0.044715 * x * x))
    u_slope = c * (1 + 3 * 0.044715 * x * x)
    return d_y * (1 + tanh + x * (1 - tanh * tanh) * u_slope) / 2


def relu_backward(d_y, x):
    """Send a gradient back through y = max(x, 0).

    Where x > 0, y is x and d_x = d_y. Elsewhere y is constant and d_x 0.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    x : ndarray of shape (...)

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

    The mask is a constant, so d_x = d_y mask: what was dropped has no
    gradient. If dropout was off, the mask is None and d_x is d_y.

    Parameters
    ----------
    d_y : ndarray of shape (...)
    mask : ndarray of shape (...) or None
        The mask that the forward pass drew.

    Returns
    -------
    ndarray of shape (...)
    """
    return d_y if mask is None else d_y * mask


def lookup_backward(d_rows, ids, size):
    """Send a gradient back through rows = table[ids].

    A row of the table reaches the loss through every place that looked it
    up, so its gradient is the sum of theirs. A row that nobody looked up
    has gradient 0.

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
    d_table = np.zeros((size, d_rows.shape[-1]), d_rows.dtype)
    np.add.at(d_table, ids, d_rows)  # d_table[ids] += d_rows, repeated ids too
    return d_table
