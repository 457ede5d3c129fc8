"""Comparison of an answer with the right one: kind, shape, then values."""

import numpy as np

from bert_np.config import BertConfig


def agrees(answer, expected, tolerance):
    """Return whether an answer equals the expected one.

    Numbers and arrays must have the same shape and differ by at most an
    absolute tolerance, and a bool is not a number. Tuples, lists and
    dicts are compared item by item, everything else by ``==``.

    >>> agrees([0.5, 0.5000001], np.array([0.5, 0.5]), 1e-6)
    True
    >>> agrees([[0.5, 0.5]], np.array([0.5, 0.5]), 1e-6)
    False
    """
    return first_difference(answer, expected, tolerance) is None


def first_difference(answer, expected, tolerance, tell=True):
    """Say where an answer differs from the expected one; None if nowhere.

    With tell=False the expected numbers are not given away, only how
    many of the answer's are right.
    """
    if isinstance(expected, dict):
        return _differing_dict(answer, expected, tolerance, tell)
    if _is_items(expected):
        return _differing_items(answer, expected, tolerance, tell)
    if expected is None or isinstance(expected, (str, bytes, BertConfig)):
        return _differing_word(answer, expected)
    return _differing_numbers(answer, expected, tolerance, tell)


def _differing_word(answer, expected):
    """Say how a string, None, bytes or a config differs."""
    if type(answer) is type(expected) and answer == expected:
        return None
    words = isinstance(answer, str) and isinstance(expected, str)
    if words and _letters(answer) == _letters(expected):
        return f"yours is {_short(answer)}: nearly; mind capitals, spaces and signs"
    return f"yours is {_short(answer)}, not the expected answer"


def _letters(text):
    return [ch for ch in text.lower() if ch.isalnum()]


def _is_items(value):
    """Return whether a value is a tuple, or a list other than of numbers."""
    if isinstance(value, tuple):
        return True
    return (
        isinstance(value, list)
        and any(
            isinstance(item, (str, list, tuple, dict, np.ndarray, type(None)))
            for item in value
        )
        and not _is_array(value)
    )


def _is_array(value):
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _differing_dict(answer, expected, tolerance, tell):
    if not isinstance(answer, dict):
        return f"yours is of type {type(answer).__name__}, expected a dict"
    if answer.keys() != expected.keys():
        return f"yours has the keys {_short(list(answer))}, expected {list(expected)}"
    for key in expected:
        problem = first_difference(answer[key], expected[key], tolerance, tell)
        if problem is not None:
            return f"{key}: {problem}"
    return None


def _differing_items(answer, expected, tolerance, tell):
    if not isinstance(answer, (list, tuple)):
        kind = type(answer).__name__
        return f"yours is of type {kind}, expected {len(expected)} items"
    if len(answer) != len(expected):
        return f"yours has {len(answer)} items, expected {len(expected)}"
    for i, (mine, right) in enumerate(zip(answer, expected)):
        problem = first_difference(mine, right, tolerance, tell)
        if problem is not None:
            return f"item {i}: {problem}"
    return None


def _differing_numbers(answer, expected, tolerance, tell):
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
    return _largest_difference(mine, right, tolerance, tell)


def _largest_difference(mine, right, tolerance, tell):
    """Say where two arrays differ most; None if that is within the tolerance."""
    mine, right = mine.astype(float), right.astype(float)
    same = (mine == right) | (np.isnan(mine) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(mine - right))
    if not gap.size or (gap <= tolerance).all():
        return None
    within = f"(tolerance {tolerance:g})"
    if not tell and gap.ndim:
        right_ones = np.sum(gap <= tolerance)
        return f"{right_ones} of your {gap.size} entries are right {within}"
    if not tell:
        return f"yours is {mine:.6g}, not the expected answer {within}"
    place = np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape)
    where = f" at {tuple(map(int, place))}" if gap.ndim else ""
    return f"yours is {mine[place]:.6g}{where}, expected {right[place]:.6g} {within}"


def same_inputs(now, before):
    """Return whether the arguments are still what they were."""
    return first_difference(now, before, 0) is None


def _short(value, longest=60):
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
