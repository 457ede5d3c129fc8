"""The optimiser: learning rate schedule, clipping, Adam with weight decay."""

import math

import numpy as np

from bert_np.errors import BertError
from bert_np.training.blocks import by_blocks
from bert_np.training.inputs import (
    check_adam,
    check_float_tree,
    check_number,
    check_schedule,
)
from bert_np.tree import leaves, map_leaves

# Parameters that weight decay does not pull towards 0: biases and norms.
NOT_DECAYED = ("b", "bias", "gamma", "beta")


def learning_rate(step, peak, warmup_steps, total_steps, hold_steps=0):
    """Return the learning rate of a step: a linear rise, then a linear fall.

    peak (step + 1) / warmup_steps while step < warmup_steps; peak for the
    next hold_steps; then, with start = warmup_steps + hold_steps,
    peak (total_steps - step) / (total_steps - start).

    Parameters
    ----------
    step : int
        The number of updates made so far, 0..total_steps - 1.
    peak : float
    warmup_steps : int
    total_steps : int
    hold_steps : int
        0 in the paper.

    Returns
    -------
    float
        Always above 0, so that no update is wasted.

    Examples
    --------
    >>> [learning_rate(step, 1.0, 2, 6) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]

    Source: Devlin et al. 2018, appendix A.2.
    """
    check_schedule(step, peak, warmup_steps, total_steps, hold_steps)
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    start = warmup_steps + hold_steps
    return peak * min(1, (total_steps - step) / max(1, total_steps - start))


def global_norm(grads):
    """Return the length of all gradients, read as one long vector.

    The square root of the sum of all squares, summed in float64.

    Parameters
    ----------
    grads : dict
        A tree of arrays.

    Returns
    -------
    float
    """
    check_float_tree("grads", grads)
    return math.sqrt(
        sum(float(np.square(g).sum(dtype=np.float64)) for _, g in leaves(grads))
    )


def clip_by_global_norm(grads, max_norm):
    """Shorten the gradient if it is too long, and keep its direction.

    grads max_norm / norm if norm > max_norm, else grads.

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
        If the norm is NaN or infinite: the run has diverged.

    Source: Pascanu et al. 2013, algorithm 1.
    """
    max_norm = check_number("max_norm", max_norm, "a number >= 0")
    norm = global_norm(grads)
    if not math.isfinite(norm):
        raise BertError(f"gradient norm is {norm}: try a lower learning rate")
    if norm <= max_norm:
        return grads, norm
    return map_leaves(lambda _, g: g * (max_norm / norm), grads), norm


def init_adam(params):
    """Return Adam's memory before the first update: both means are 0.

    Parameters
    ----------
    params : dict
        A tree of arrays.

    Returns
    -------
    dict
        step : int
        m, v : dict shaped like params; the running means of g and g².
    """
    check_float_tree("params", params)

    def zeros(_, array):
        return np.zeros_like(array)

    return {"step": 0, "m": map_leaves(zeros, params), "v": map_leaves(zeros, params)}


def adam(
    params, grads, state, rate, *, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01
):
    """Move each parameter against its gradient, by about the rate.

    m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g² are
    running means. They start at 0, which dividing by 1 - beta^step
    corrects. Then p = p - rate (m / (sqrt(v) + eps) + weight_decay p).
    The decay is decoupled: it does not pass through m and v. Biases and
    norms do not decay. BERT's own code omits the correction and sets eps
    to 1e-6.

    Parameters
    ----------
    params : dict
        A tree of arrays; never written to.
    grads : dict
        Shaped like params.
    state : dict
        From init_adam or the last call; never written to.
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
    numbers = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
    rate, beta1, beta2, eps, weight_decay = check_adam(
        params, grads, state, rate, **numbers
    )
    step = state["step"] + 1

    def move(p, m, v, decay):
        m = m / (1 - beta1**step)
        v = v / (1 - beta2**step)
        return p - rate * (m / (np.sqrt(v) + eps) + decay * p)

    def update(path, p, g, m, v):
        decay = 0 if path.rsplit(".", 1)[-1] in NOT_DECAYED else weight_decay

        def formula(p, g, m, v):
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            return move(p, m, v, decay), m, v

        return by_blocks(formula, p, g, m, v)

    new = _combine(update, params, grads, state["m"], state["v"])
    params, m, v = (_choose(new, i, params) for i in range(3))
    return params, {"step": step, "m": m, "v": v}


def _combine(function, tree, *others):
    """Return {path: function(path, leaf, ...)} over trees of one form."""
    others = [dict(leaves(other)) for other in others]
    return {
        path: function(path, leaf, *(o[path] for o in others))
        for path, leaf in leaves(tree)
    }


def _choose(results, i, tree):
    """Return the tree of the i-th of each leaf's results."""
    return map_leaves(lambda path, _: results[path][i], tree)
