"""Intermediate results: record them, and find where two runs part."""

import math
import sys
from numbers import Real
from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.parameters import leaves


def record(trace, **arrays):
    """Store named intermediate results; does nothing where trace is None.

    The trace gets copies, so that later arithmetic in place leaves it
    alone. A value of None is not stored.

    Parameters
    ----------
    trace : dict or None
    **arrays : ndarray

    Raises
    ------
    BertError
        Where a name is recorded twice: a trace holds one forward pass.
    """
    if trace is None:
        return
    for name, array in arrays.items():
        if name in trace:
            raise BertError(
                f"trace[{name!r}] is recorded already; "
                "pass a new dict for each forward pass"
            )
        if array is not None:
            trace[name] = np.array(array)


def branch(trace, name, empty=None):
    """The sub-trace of a named part: a new dict, or None without a trace.

    Parameters
    ----------
    trace : dict or None
    name : str
    empty : list, optional
        What the part starts with, where it is not a dict.

    Raises
    ------
    BertError
        Where the part has been traced already.
    """
    if trace is None:
        return None
    if name in trace:
        raise BertError(
            f"trace[{name!r}] is recorded already; "
            "pass a new dict for each forward pass"
        )
    trace[name] = {} if empty is None else empty
    return trace[name]


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
    from bert_np.mistakes import clip_masked, explain  # `import bert_np` stays quick

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
            return Comparison(False, stage, math.nan, (), math.nan, math.nan,
                              hint, len(common), missing)
        gap, index = _largest_gap(*(clip_masked(stage, x) for x in (a, b)), rtol, atol)
        if index is not None:
            hint = explain(stage, b, stages_a, params)
            return Comparison(False, stage, gap, index, float(a[index]),
                              float(b[index]), hint, len(common), missing)
        largest = max(largest, gap)
    return Comparison(True, None, largest, (), math.nan, math.nan, "",
                      len(common), missing)


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
