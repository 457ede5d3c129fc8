"""Comparing an answer with the right one: kind, shape, then values."""

import numpy as np

from bert_np.config import BertConfig


def agrees(answer, expected, tolerance):
    """Whether an answer equals what is expected.

    Numbers and arrays are equal within an absolute tolerance, with the
    same shape and kind (bool, whole, real); texts, bytes and configs are
    equal; tuples, lists and dicts are so item by item.

    >>> agrees([0.5, 0.5000001], np.array([0.5, 0.5]), 1e-6)
    True
    >>> agrees([[0.5, 0.5]], np.array([0.5, 0.5]), 1e-6)
    False
    """
    return first_difference(answer, expected, tolerance) is None


def first_difference(answer, expected, tolerance):
    """Say where an answer parts from what is expected; None: nowhere."""
    if isinstance(expected, dict):
        return _differing_dict(answer, expected, tolerance)
    if _is_items(expected):
        return _differing_items(answer, expected, tolerance)
    if expected is None or isinstance(expected, (str, bytes, BertConfig)):
        same = type(answer) is type(expected) and answer == expected
        return None if same else f"yours is {_short(answer)}, not the expected answer"
    return _differing_numbers(answer, expected, tolerance)


def _is_items(value):
    """Whether a value is a tuple, or a list that is no array of numbers."""
    if isinstance(value, tuple):
        return True
    return isinstance(value, list) and any(
        isinstance(item, (str, list, tuple, dict, np.ndarray, type(None)))
        for item in value
    ) and not _is_array(value)


def _is_array(value):
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _differing_dict(answer, expected, tolerance):
    if not isinstance(answer, dict):
        return f"yours is a {type(answer).__name__}, expected a dict"
    if answer.keys() != expected.keys():
        return f"yours has the keys {_short(list(answer))}, expected {list(expected)}"
    for key in expected:
        problem = first_difference(answer[key], expected[key], tolerance)
        if problem is not None:
            return f"{key}: {problem}"
    return None


def _differing_items(answer, expected, tolerance):
    if not isinstance(answer, (list, tuple)):
        return f"yours is a {type(answer).__name__}, expected {len(expected)} items"
    if len(answer) != len(expected):
        return f"yours has {len(answer)} items, expected {len(expected)}"
    for i, (mine, right) in enumerate(zip(answer, expected)):
        problem = first_difference(mine, right, tolerance)
        if problem is not None:
            return f"item {i}: {problem}"
    return None


def _differing_numbers(answer, expected, tolerance):
    right = np.asarray(expected)
    try:
        mine = np.asarray(answer)
    except ValueError:
        return "yours has rows of different lengths"
    if mine.dtype.kind not in "biuf":
        return f"yours is {_short(answer)}, expected numbers"
    if mine.shape != right.shape:
        return f"yours has the shape {mine.shape}, expected {right.shape}"
    if (mine.dtype.kind == "b") != (right.dtype.kind == "b"):
        return f"yours is of kind {mine.dtype}, expected {right.dtype}"
    return _largest_difference(mine, right, tolerance)


def _largest_difference(mine, right, tolerance):
    """Say where two arrays of one shape differ most; None: within."""
    mine, right = mine.astype(float), right.astype(float)
    same = (mine == right) | (np.isnan(mine) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(mine - right))
    if not gap.size or (gap <= tolerance).all():
        return None
    place = np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape)
    where = f" at {tuple(map(int, place))}" if gap.ndim else ""
    return (f"yours is {mine[place]:.6g}{where}, expected {right[place]:.6g} "
            f"(tolerance {tolerance:g})")


def same_inputs(now, before):
    """Whether nothing in the arguments has been written to."""
    return first_difference(now, before, 0) is None


def _short(value, longest=60):
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
