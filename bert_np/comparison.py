"""Find where two forward passes part, and name the mistake if it is known.

``compare`` walks through two traces; ``explain`` holds the first stage
that differs against mistakes that ports of BERT are known to make.
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
    stage: str | None  # the first stage that differs, such as "layers.0.ffn.inner"
    largest: float  # the largest absolute difference there, or over all stages
    index: tuple  # where it is
    a: float
    b: float
    hint: str
    compared: int  # stages looked at
    missing: tuple  # stages that only one trace has

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
    """Find the first stage at which two traces part, and guess why.

    Stages are compared in the order in which trace_a recorded them, as
    far as both have them. ``masked_scores`` below -5000 count as equal,
    since every such number is a mask.

    Parameters
    ----------
    trace_a : dict
        The trace of a correct forward pass, as ``bert`` fills it.
    trace_b : dict
        The trace of the model under test: same names, any subset.
    rtol, atol : float
        a and b agree where |a - b| <= atol + rtol |a|.
    params : dict, optional
        The parameter tree; with it a missing transpose can be named.

    Returns
    -------
    Comparison
        Its ``hint`` is empty where no known mistake fits.

    Raises
    ------
    BertError
        Where the traces have no stage in common, or a stage is no array
        of numbers.
    """
    stages_a, stages_b = dict(leaves(trace_a)), dict(leaves(trace_b))
    common = [stage for stage in stages_a if stage in stages_b]
    if not common:
        raise BertError(
            f"trace_b has none of the stages of trace_a, such as {list(stages_a)[:3]}; "
            f"it has {list(stages_b)[:3]}"
        )
    missing = tuple(sorted(stages_a.keys() ^ stages_b.keys()))
    largest = 0.0
    for stage in common:
        a = _as_numbers("trace_a", stage, stages_a[stage])
        b = _as_numbers("trace_b", stage, stages_b[stage])
        if a.shape != b.shape:
            hint = f"shape {b.shape}, expected {a.shape}"
            return Comparison(
                False,
                stage,
                math.nan,
                (),
                math.nan,
                math.nan,
                hint,
                len(common),
                missing,
            )
        gap, index = _largest_gap(*(clip_masked(stage, x) for x in (a, b)), rtol, atol)
        if index is not None:
            hint = explain(stage, b, stages_a, params)
            return Comparison(
                False,
                stage,
                gap,
                index,
                float(a[index]),
                float(b[index]),
                hint,
                len(common),
                missing,
            )
        largest = max(largest, gap)
    return Comparison(
        True, None, largest, (), math.nan, math.nan, "", len(common), missing
    )


def _check_tolerance(name, value):
    if not isinstance(value, Real) or not 0 <= value <= sys.float_info.max:
        raise BertError(f"{name} = {short(value)}, allowed: a number >= 0")


def _as_numbers(name, stage, values):
    """A stage as an array; the trace of another library may hold anything."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise BertError(f"{name}: {stage} is not an array ({error})") from None
    if array.dtype.kind not in "biuf":
        raise BertError(f"{name}: {stage} has dtype {array.dtype}, allowed: numbers")
    return array


def _largest_gap(a, b, rtol, atol):
    """The largest |a - b|, and its index where a and b do not agree."""
    _check_tolerance("rtol", rtol)
    _check_tolerance("atol", atol)
    if a.size == 0:
        return 0.0, None
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)
    index = np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape)
    agree = np.allclose(b, a, rtol=rtol, atol=atol)
    return float(gap[index]), None if agree else tuple(int(i) for i in index)


def explain(stage, b, stages, params=None):
    """Name the mistake that turns the correct trace's stage into b.

    A mistake is named where it accounts for 95 % of the difference.

    Parameters
    ----------
    stage : str
        Dotted path, such as "layers.0.attention.probs".
    b : ndarray
        What the model under test has there.
    stages : dict of str to ndarray
        The correct trace, flat: dotted path to array.
    params : dict, optional
        The parameter tree; needed to see a missing transpose.

    Returns
    -------
    str
        Empty where no known mistake fits.
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
    """The array in float64; every number that masks a score is the same."""
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


def _heads_without_transpose(x):
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, A, T, D)


def _merged_without_transpose(x):
    B, A, T, D = x.shape
    return x.reshape(B, T, A * D)


def _merged(x):
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, A * D)


def _products(part):
    return part["q"] @ part["k"].swapaxes(-1, -2)


def _head_size(part):
    return part["q"].shape[-1]


def _inverted_mask(part):
    lowest = part["masked_scores"].min()
    return np.where(part["masked_scores"] < MASKED_SCORE, part["scores"], lowest)


def _mask_after_softmax(part):
    visible = part["masked_scores"] > MASKED_SCORE
    return functional.softmax(part["scores"]) * visible


def _before_activation(part):
    return part["inner"] if "inner" in part else part["transform"]


# Stage -> {what may have gone wrong: what that would give}. A part is the
# correct trace's sub-dict in which the stage stands.
MISTAKES = {
    "sum": {
        "the position vectors are missing": lambda p: p["word"] + p["segment"],
        "the segment vectors are missing": lambda p: p["word"] + p["position"],
    },
    "q": {
        "query and key are swapped": lambda p: p["k"],
        "heads are split by reshape alone: transpose to (B, A, T, D) after it": lambda p: (
            _heads_without_transpose(p["q"])
        ),
    },
    "k": {
        "heads are split by reshape alone: transpose to (B, A, T, D) after it": lambda p: (
            _heads_without_transpose(p["k"])
        ),
    },
    "v": {
        "heads are split by reshape alone: transpose to (B, A, T, D) after it": lambda p: (
            _heads_without_transpose(p["v"])
        ),
    },
    "scores": {
        "the scale 1/sqrt(head size) is missing": _products,
        "scaled by sqrt of the hidden size: use the head size": lambda p: (
            _products(p) / math.sqrt(p["q"].shape[1] * _head_size(p))
        ),
        "divided by the head size: use its square root": lambda p: (
            _products(p) / _head_size(p)
        ),
        "rows and columns are exchanged: queries are the rows": lambda p: p[
            "scores"
        ].swapaxes(-1, -2),
    },
    "masked_scores": {
        "the attention mask is not applied": lambda p: p["scores"],
        "the attention mask is inverted: 1 is a real token": _inverted_mask,
    },
    "probs": {
        "softmax over the queries: normalise over the keys, the last axis": lambda p: (
            functional.softmax(p["masked_scores"], axis=-2)
        ),
        "the mask is applied after the softmax: the rows no longer sum to 1": _mask_after_softmax,
        "the attention mask is not applied": lambda p: functional.softmax(p["scores"]),
        "the attention mask is inverted: 1 is a real token": lambda p: (
            functional.softmax(_inverted_mask(p))
        ),
    },
    "context": {
        "heads are merged by reshape alone: transpose to (B, T, A, D) before it": lambda p: (
            _merged_without_transpose(p["probs"] @ p["v"])
        ),
        "the probabilities are transposed: rows are queries": lambda p: _merged(
            p["probs"].swapaxes(-1, -2) @ p["v"]
        ),
    },
    "activated": {
        "tanh GELU; this model has the erf form": lambda p: functional.gelu_tanh(
            _before_activation(p)
        ),
        "erf GELU; this model has the tanh form": lambda p: functional.gelu(
            _before_activation(p)
        ),
        "ReLU in the place of GELU": lambda p: functional.relu(_before_activation(p)),
        "the activation is missing": _before_activation,
    },
    "logits": {
        "the two columns are exchanged: 0 is 'is next'": lambda p: p["logits"][
            ..., ::-1
        ],
    },
    "output": {"the tanh is missing": lambda p: p["dense"]},
}


def _norm_mistakes(name, part):
    """LayerNorm done wrongly; gamma and beta are recovered from the trace."""
    for source in ("residual", "sum", "activated"):
        if source in part and name in ("norm", "output"):
            x, y = part[source], part[name]
            break
    else:
        return
    yield "the layer norm is missing", x
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    gamma, beta = _fit_rows(centred / np.sqrt(variance + 1e-12), y)
    n = x.shape[-1]
    for eps in (1e-5, 1e-6, 1e-3):
        yield (
            f"layer norm with epsilon {eps:g}",
            (gamma * centred / np.sqrt(variance + eps) + beta),
        )
    yield (
        "variance divided by n - 1: layer norm divides by n",
        (gamma * centred / np.sqrt(variance * n / (n - 1)) + beta),
    )


def _fit_rows(z, y):
    """gamma and beta of y = gamma z + beta, by least squares per column."""
    z, y = z.reshape(-1, z.shape[-1]), y.reshape(-1, y.shape[-1])
    z_mean, y_mean = z.mean(axis=0), y.mean(axis=0)
    z, y_spread = z - z_mean, y - y_mean
    gamma = (z * y_spread).sum(axis=0) / np.square(z).sum(axis=0)
    return gamma, y_mean - gamma * z_mean


# Stage of a linear map -> (its parameters, the stage that goes in), both
# within a layer; "input" is what enters the layer.
LAYER_LINEARS = {
    "attention.q": ("attention.query", "input"),
    "attention.k": ("attention.key", "input"),
    "attention.v": ("attention.value", "input"),
    "attention.output": ("attention.output", "attention.context"),
    "ffn.inner": ("ffn.inner", "attention_norm.output"),
    "ffn.outer": ("ffn.outer", "ffn.activated"),
}


def _linear_mistakes(stage, stages, params):
    """The outcome of x Wᵀ + b where x W + b was due."""
    found = _find_linear(stage, stages, params)
    if found is None:
        return
    x, W, b, num_heads = found
    if W.shape[0] != W.shape[1]:
        return
    y = functional.linear(x, W.T, b)
    if num_heads:
        B, T, H = y.shape
        y = y.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)
    yield "the matrix is transposed: x @ W with W as (in, out)", y


def _find_linear(stage, stages, params):
    """(input, W, b, heads to split into or 0) of a linear stage, or None."""
    last = stages.get(f"layers.{len(params['layers']) - 1}.output")
    if stage == "pooler.dense" and last is not None:
        return last[:, 0], params["pooler"]["W"], params["pooler"]["b"], 0
    if stage == "mlm.transform" and last is not None:
        dense = params["mlm"]["transform"]
        return last, dense["W"], dense["b"], 0
    top, _, rest = stage.partition(".")
    index, _, name = rest.partition(".")
    if top != "layers" or name not in LAYER_LINEARS:
        return None
    path, source = LAYER_LINEARS[name]
    if source != "input":
        source = f"layers.{index}.{source}"
    else:
        before = int(index) - 1
        source = f"layers.{before}.output" if before >= 0 else "embeddings.output"
    group, part = path.split(".")
    linear = params["layers"][int(index)][group][part]
    heads = stages[stage].shape[1] if stages[stage].ndim == 4 else 0
    if source not in stages:
        return None
    return stages[source], linear["W"], linear["b"], heads
