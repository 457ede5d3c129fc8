"""The optimiser: schedule, clipping, and Adam with decoupled decay."""

import math

import numpy as np

from bert_np.errors import BertError
from bert_np.tree import leaves, map_leaves

# Parameters that no weight decay pulls towards 0: biases and norms.
NOT_DECAYED = ("b", "bias", "gamma", "beta")


def learning_rate(step, peak, warmup_steps, total_steps, hold_steps=0):
    """Rise in a straight line to the peak, then fall in one towards 0.

    peak (step + 1) / warmup_steps while step < warmup_steps; the peak for
    hold_steps more; after it, with start = warmup_steps + hold_steps,
    peak (total_steps - step) / (total_steps - start).

    Parameters
    ----------
    step : int
        Updates made so far, 0..total_steps - 1.
    peak : float
    warmup_steps : int
    total_steps : int
    hold_steps : int
        0 in the paper.

    Returns
    -------
    float
        Above 0: no update is wasted.

    Examples
    --------
    >>> [learning_rate(step, 1.0, 2, 6) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]

    Source: Devlin et al. 2018, appendix A.2.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    start = warmup_steps + hold_steps
    return peak * min(1, (total_steps - step) / max(1, total_steps - start))


def global_norm(grads):
    """The length of all gradients, read as one long vector.

    sqrt(sum of all squares), summed in float64.

    Parameters
    ----------
    grads : dict
        A tree of arrays.

    Returns
    -------
    float
    """
    return math.sqrt(
        sum(float(np.square(g).sum(dtype=np.float64)) for _, g in leaves(grads))
    )


def clip_by_global_norm(grads, max_norm):
    """Shorten the gradient, keeping its direction, where it is too long.

    grads max_norm / norm where norm > max_norm, else grads.

    Parameters
    ----------
    grads : dict
        A tree of arrays; never written to.
    max_norm : float

    Returns
    -------
    grads : dict
    norm : float
        Before clipping.

    Raises
    ------
    BertError
        Where the norm is NaN or infinite.

    Source: Pascanu et al. 2013, algorithm 1.
    """
    norm = global_norm(grads)
    if not math.isfinite(norm):
        raise BertError(f"gradient norm is {norm}: try a lower learning rate")
    if norm <= max_norm:
        return grads, norm
    return map_leaves(lambda _, g: g * (max_norm / norm), grads), norm


def init_adam(params):
    """Adam's memory before the first update: no steps, both means 0.

    Parameters
    ----------
    params : dict
        A tree of arrays.

    Returns
    -------
    dict
        step : int
        m, v : dict shaped like params; running means of g and g².
    """

    def zeros(_, array):
        return np.zeros_like(array)

    return {"step": 0, "m": map_leaves(zeros, params), "v": map_leaves(zeros, params)}


def adam(
    params, grads, state, rate, *, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01
):
    """Move each parameter against its gradient, by about rate at most.

    m and v are running means of g and g²; they start at 0, and dividing
    by 1 - beta^step removes that bias. Then
    p = p - rate (m / (sqrt(v) + eps) + weight_decay p). The decay is
    decoupled: it does not pass through m and v. Biases and norms have
    none. BERT's own code leaves the bias in and has eps 1e-6.

    Parameters
    ----------
    params : dict
        A tree of arrays; never written to.
    grads : dict
        Shaped like params.
    state : dict
        As init_adam or the last call gave it; never written to.
    rate : float
        The learning rate of this update.
    beta1, beta2, eps, weight_decay : float

    Returns
    -------
    params : dict
    state : dict

    Source: Kingma & Ba 2014, algorithm 1; Loshchilov & Hutter 2017,
    algorithm 2.
    """
    step = state["step"] + 1
    m = _mix(state["m"], grads, beta1, lambda g: g)
    v = _mix(state["v"], grads, beta2, np.square)
    means, squares = dict(leaves(m)), dict(leaves(v))

    def update(path, p):
        mean = means[path] / (1 - beta1**step)
        square = squares[path] / (1 - beta2**step)
        decay = 0 if path.rsplit(".", 1)[-1] in NOT_DECAYED else weight_decay
        return p - rate * (mean / (np.sqrt(square) + eps) + decay * p)

    return map_leaves(update, params), {"step": step, "m": m, "v": v}


def _mix(old, grads, beta, function):
    """The running means beta old + (1 - beta) function(grads)."""
    grads = dict(leaves(grads))
    return map_leaves(
        lambda path, mean: beta * mean + (1 - beta) * function(grads[path]), old
    )
