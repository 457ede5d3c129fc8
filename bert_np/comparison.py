"""Find where two forward passes first differ, and name the mistake if known.

``compare`` walks through two traces; ``explain`` tests the first stage
that differs against the mistakes that ports of BERT commonly make.
"""

import math
import sys
from numbers import Real
from typing import NamedTuple

import numpy as np

from bert_np import functional
from bert_np.errors import BertError, short
from bert_np.tree import leaves

# A masked score this low has probability 0, whatever number stands there.
MASKED_SCORE = -5000.0


class Comparison(NamedTuple):
    """What compare found; ``print`` it to read it."""

    agree: bool
    stage: str | None = None  # the first that differs, such as "layers.0.ffn.inner"
    largest: float = math.nan  # the largest difference there, or over all stages
    index: tuple = ()  # where that is
    a: float = math.nan
    b: float = math.nan
    hint: str = ""
    compared: int = 0  # how many stages both traces have
    missing: tuple = ()  # stages that only one trace has

    def __str__(self):
        if self.agree:
            text = (
                f"all {self.compared} stages agree, "
                f"largest difference {self.largest:.1e}"
            )
        else:
            text = (
                f"first difference at {self.stage}{list(self.index)}: "
                f"{self.a:.6g} against {self.b:.6g}, {self.largest:.1e} apart"
            )
        if self.hint:
            text += f"\nhint: {self.hint}"
        if self.missing:
            text += f"\nonly in one of the two: {', '.join(self.missing)}"
        return text


def compare(trace_a, trace_b, rtol=1e-4, atol=1e-5, *, params=None):
    """Find the first stage at which two traces differ, and guess why.

    Stages are compared in the order in which trace_a recorded them, if
    both traces have them. ``masked_scores`` below -5000 count as equal,
    since every such number is a mask.

    Parameters
    ----------
    trace_a : dict
        The trace of a correct forward pass, as ``bert`` fills it.
    trace_b : dict
        The trace of the model under test: same names, any subset.
    rtol, atol : float
        a and b agree if |a - b| <= atol + rtol |a|.
    params : dict, optional
        The parameter tree; with it a missing transpose can be named.

    Returns
    -------
    Comparison
        Its ``hint`` is empty if no known mistake fits.

    Raises
    ------
    BertError
        If the traces have no stage in common, or a stage is not an array
        of numbers.
    """
    rtol, atol = _check_tolerance("rtol", rtol), _check_tolerance("atol", atol)
    if params is not None:
        _check_tree(params)
    stages_a, stages_b = dict(leaves(trace_a)), dict(leaves(trace_b))
    common = [stage for stage in stages_a if stage in stages_b]
    if not common:
        raise BertError(
            f"trace_b has none of the stages of trace_a, such as {list(stages_a)[:3]}; "
            f"it has {list(stages_b)[:3]}"
        )
    missing = tuple(sorted(stages_a.keys() ^ stages_b.keys()))
    counts = {"compared": len(common), "missing": missing}
    largest = 0.0
    for stage in common:
        a = _as_numbers("trace_a", stage, stages_a[stage])
        b = _as_numbers("trace_b", stage, stages_b[stage])
        if a.shape != b.shape:
            hint = f"shape {b.shape}, expected {a.shape}"
            return Comparison(False, stage, hint=hint, **counts)
        gap, index = _largest_gap(*(clip_masked(stage, x) for x in (a, b)), rtol, atol)
        if index is not None:
            values = float(a[index]), float(b[index])
            hint = explain(stage, b, stages_a, params)
            return Comparison(False, stage, gap, index, *values, hint, **counts)
        largest = max(largest, gap)
    return Comparison(True, largest=largest, **counts)


def _check_tolerance(name, value):
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= value <= sys.float_info.max:
        raise BertError(f"{name} = {short(value)}, allowed: a number >= 0")
    return float(value)


def _check_tree(params):
    if not isinstance(params, dict) or not isinstance(params.get("layers"), list):
        kind = type(params).__name__
        raise BertError(f"params is {kind}, allowed: the parameter tree, None")


def _as_numbers(name, stage, values):
    """Return a stage as an array; another library's trace may hold anything."""
    if np.ma.is_masked(values):  # NumPy would read the values under the mask
        raise BertError(f"{name}: {stage} is a masked array, allowed: a plain array")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise BertError(f"{name}: {stage} is not an array ({error})") from None
    if array.dtype.kind not in "biuf":
        raise BertError(f"{name}: {stage} has dtype {array.dtype}, allowed: numbers")
    return array


def _largest_gap(a, b, rtol, atol):
    """Return the largest |a - b|, and its index if a and b do not agree."""
    if a.size == 0:
        return 0.0, None
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)
    index = np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape)
    agree = np.allclose(b, a, rtol=rtol, atol=atol)
    return float(gap[index]), None if agree else tuple(int(i) for i in index)


def explain(stage, b, stages, params=None):
    """Name the mistake that turns the correct trace's stage into b.

    A mistake is named if it accounts for 95 % of the difference.

    Parameters
    ----------
    stage : str
        Dotted path, such as "layers.0.attention.probs".
    b : ndarray
        What the model under test has there.
    stages : dict of str to ndarray
        The correct trace, flat: dotted path to array.
    params : dict, optional
        The parameter tree; needed to recognise a missing transpose.

    Returns
    -------
    str
        Empty if no known mistake fits.
    """
    a, b = clip_masked(stage, stages[stage]), clip_masked(stage, b)
    if not np.isfinite(b).all():
        return "it holds NaN or infinity: did exp overflow, or a row see no key?"
    allowed = 0.05 * np.abs(a - b).max()
    for hint, mistaken in _candidates(stage, stages, params):
        mistaken = clip_masked(stage, mistaken)
        if mistaken.shape == b.shape and np.abs(mistaken - b).max() <= allowed:
            return hint
    return ""


def clip_masked(stage, array):
    """Return the array in float64, every masking score the same number."""
    array = np.asarray(array, np.float64)
    is_masked = stage.endswith("masked_scores")
    return np.maximum(array, MASKED_SCORE) if is_masked else array


def _candidates(stage, stages, params):
    """Yield (hint, what the stage would hold) for the mistakes known there."""
    parent, _, name = stage.rpartition(".")
    part = {
        path.removeprefix(f"{parent}."): np.asarray(array, np.float64)
        for path, array in stages.items()
        if path.startswith(f"{parent}.")
    }
    group = "norm" if parent.endswith("_norm") and name == "output" else name
    for hint, mistake in MISTAKES.get(group, {}).items():
        try:
            yield hint, mistake(part)
        except KeyError:  # the stage that it starts from is not in the trace
            continue
    yield from _norm_mistakes(name, part)
    if params is not None:
        yield from _linear_mistakes(stage, stages, params)


def _split_by_reshape(x):
    """Return the heads as they come out of reshape(B, A, T, D) alone."""
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, A, T, D)


def _merge_by_reshape(x):
    B, A, T, D = x.shape
    return x.reshape(B, T, A * D)


def _merge(x):
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, A * D)


def _swap(x):
    return x.swapaxes(-1, -2)


def _products(part):
    return part["q"] @ _swap(part["k"])


def _scaled_by_hidden_size(part):
    B, A, T, D = part["q"].shape
    return _products(part) / math.sqrt(A * D)


def _inverted_mask(part):
    masked = part["masked_scores"]
    return np.where(masked < MASKED_SCORE, part["scores"], masked.min())


def _mask_after_softmax(part):
    visible = part["masked_scores"] > MASKED_SCORE
    return functional.softmax(part["scores"]) * visible


def _activated_by(function):
    return lambda p: function(p["inner"] if "inner" in p else p["transform"])


RESHAPED = "heads are split by reshape alone: transpose to (B, A, T, D) after it"
# Stage -> {what may have gone wrong: what that would give}. p is the correct
# trace's sub-dict that holds the stage.
MISTAKES = {
    "sum": {
        "the position vectors are missing": lambda p: p["word"] + p["segment"],
        "the segment vectors are missing": lambda p: p["word"] + p["position"],
    },
    "q": {
        "query and key are swapped": lambda p: p["k"],
        RESHAPED: lambda p: _split_by_reshape(p["q"]),
    },
    "k": {RESHAPED: lambda p: _split_by_reshape(p["k"])},
    "v": {RESHAPED: lambda p: _split_by_reshape(p["v"])},
    "scores": {
        "the scale 1/sqrt(head size) is missing": _products,
        "scaled by sqrt of the hidden size: use the head size": _scaled_by_hidden_size,
        "divided by the head size: use its square root": (
            lambda p: _products(p) / p["q"].shape[-1]
        ),
        "rows and columns are exchanged: queries are the rows": (
            lambda p: _swap(p["scores"])
        ),
    },
    "masked_scores": {
        "the attention mask is not applied": lambda p: p["scores"],
        "the attention mask is inverted: 1 is a real token": _inverted_mask,
    },
    "probs": {
        "softmax over the queries: normalise over the keys, the last axis": (
            lambda p: functional.softmax(p["masked_scores"], axis=-2)
        ),
        "the mask is applied after the softmax: the rows no longer sum to 1": (
            _mask_after_softmax
        ),
        "the attention mask is not applied": lambda p: functional.softmax(p["scores"]),
        "the attention mask is inverted: 1 is a real token": (
            lambda p: functional.softmax(_inverted_mask(p))
        ),
    },
    "context": {
        "heads are merged by reshape alone: transpose to (B, T, A, D) before it": (
            lambda p: _merge_by_reshape(p["probs"] @ p["v"])
        ),
        "the probabilities are transposed: rows are queries": (
            lambda p: _merge(_swap(p["probs"]) @ p["v"])
        ),
    },
    "activated": {
        "tanh GELU; this model has the erf form": _activated_by(functional.gelu_tanh),
        "erf GELU; this model has the tanh form": _activated_by(functional.gelu),
        "ReLU in place of GELU": _activated_by(functional.relu),
        "the activation is missing": _activated_by(np.asarray),
    },
    "logits": {
        "the two columns are exchanged: 0 is 'is next'": (
            lambda p: np.flip(p["logits"], axis=-1)
        ),
    },
    "output": {"the tanh is missing": lambda p: p["dense"]},
}


def _norm_mistakes(name, part):
    """Yield LayerNorm done wrongly; gamma and beta come from the trace."""
    source = next((s for s in ("residual", "sum", "activated") if s in part), None)
    if source is None or name not in ("norm", "output"):
        return
    x, n = part[source], part[source].shape[-1]
    yield "the layer norm is missing", x
    x = functional.centre(x)
    variance = np.square(x).mean(axis=-1, keepdims=True)
    gamma, beta = _fit_rows(x / np.sqrt(variance + 1e-12), part[name])
    for eps in (1e-5, 1e-6, 1e-3):
        wrong = gamma * x / np.sqrt(variance + eps) + beta
        yield f"layer norm with epsilon {eps:g}", wrong
    wrong = gamma * x / np.sqrt(variance * n / (n - 1)) + beta
    yield "variance divided by n - 1: layer norm divides by n", wrong


def _fit_rows(z, y):
    """Return gamma and beta of y = gamma z + beta, by least squares per column."""
    z, y = z.reshape(-1, z.shape[-1]), y.reshape(-1, y.shape[-1])
    z_mean, y_mean = z.mean(axis=0), y.mean(axis=0)
    z, y_spread = z - z_mean, y - y_mean
    gamma = (z * y_spread).sum(axis=0) / np.square(z).sum(axis=0)
    return gamma, y_mean - gamma * z_mean


# Stage of a linear map -> (its parameters, the stage that goes in), both
# within a layer; "" is what enters the layer.
LAYER_LINEARS = {
    "attention.q": ("attention.query", ""),
    "attention.k": ("attention.key", ""),
    "attention.v": ("attention.value", ""),
    "attention.output": ("attention.output", "attention.context"),
    "ffn.inner": ("ffn.inner", "attention_norm.output"),
    "ffn.outer": ("ffn.outer", "ffn.activated"),
}


def _linear_mistakes(stage, stages, params):
    """Yield what x Wᵀ + b gives in place of x W + b, if that is possible."""
    path, source = _find_linear(stage, len(params["layers"]))
    if source not in stages:
        return
    dense, x = dict(leaves(params)), stages[source]
    W, b = dense.get(f"{path}.W"), dense.get(f"{path}.b")
    H = x.shape[-1:]
    if np.shape(W) != H + H or np.shape(b) != H:
        return
    y = functional.linear(x[:, 0] if path == "pooler" else x, W.T, b)
    if stages[stage].ndim == 4:
        B, A, T, D = stages[stage].shape
        y = y.reshape(B, T, A, D).transpose(0, 2, 1, 3)
    yield "the matrix is transposed: x @ W with W as (in, out)", y


def _find_linear(stage, num_layers):
    """Return (path of the parameters, input stage) of a linear map, or Nones."""
    if stage in ("pooler.dense", "mlm.transform"):
        return stage.removesuffix(".dense"), f"layers.{num_layers - 1}.output"
    layer, _, name = stage.removeprefix("layers.").partition(".")
    if name not in LAYER_LINEARS:
        return None, None
    path, source = LAYER_LINEARS[name]
    if source:
        return f"layers.{layer}.{path}", f"layers.{layer}.{source}"
    before = f"layers.{int(layer) - 1}.output" if int(layer) else "embeddings.output"
    return f"layers.{layer}.{path}", before
