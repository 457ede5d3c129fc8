"""Comparison of an answer with the right one: kind, shape, then values."""

import ast

import numpy as np

from bert_np.config import BertConfig
from bert_np.errors import short


class Other:
    """A value of a kind that is never a right answer."""

    def __init__(self, kind):
        self.kind = kind  # such as "of type set"


def agrees(answer, expected, tolerance):
    """Return whether an answer equals the expected one.

    Numbers and arrays must have the same shape and differ by at most an
    absolute tolerance; bools stand for 0 and 1, lists and tuples for
    arrays. Other tuples, lists and dicts are compared item by item,
    everything else by ``==``.

    >>> agrees([0.5, 0.5000001], np.array([0.5, 0.5]), 1e-6)
    True
    >>> agrees([[0.5, 0.5]], np.array([0.5, 0.5]), 1e-6)
    False
    """
    return first_difference(answer, expected, tolerance) is None


def first_difference(answer, expected, tolerance, tell=True):
    """Say where an answer differs from the expected one; None if nowhere.

    With tell=False the expected numbers are not given away, only how many
    of the answer's numbers are right.
    """
    if isinstance(answer, Other):
        return f"yours is {answer.kind}"
    if isinstance(expected, dict):
        return _differing_dict(answer, expected, tolerance, tell)
    if _is_items(expected):
        return _differing_items(answer, expected, tolerance, tell)
    if expected is None or isinstance(expected, (str, bytes, BertConfig)):
        return _differing_word(answer, expected)
    return _differing_numbers(answer, expected, tolerance, tell)


def in_the_form_of(answer, expected):
    """Return a value in the form of the expected one if it means the same.

    "(B)" and ["b"] become "b"; "3" becomes 3; [[0, 1]] becomes [0, 1].

    >>> in_the_form_of(" (B) ", "b"), in_the_form_of("[1, 0]", [True, False])
    ('b', [1, 0])
    """
    if isinstance(expected, str):
        while isinstance(answer, (list, tuple)) and len(answer) == 1:
            answer = answer[0]
        same = isinstance(answer, str) and _letters(answer) == _letters(expected)
        return expected if same else answer
    if isinstance(answer, str):
        answer = _literal(answer)
    lists = isinstance(expected, (list, tuple)) and isinstance(answer, (list, tuple))
    if lists and len(answer) == len(expected):
        return [in_the_form_of(*pair) for pair in zip(answer, expected)]
    if not (_is_array(answer) and _is_array(expected)):
        return answer
    same, size = np.shape(answer) == np.shape(expected), np.size(expected)
    fits = np.size(answer) == size and not same
    return np.reshape(answer, np.shape(expected)) if fits else answer


def _literal(text):
    """Return the number or list that a short text holds, else the text."""
    try:
        return ast.literal_eval(text.strip()) if len(text) < 500 else text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _differing_word(answer, expected):
    """Say how a string, None, bytes or a config differs."""
    if type(answer) is type(expected) and answer == expected:
        return None
    words = isinstance(answer, str) and isinstance(expected, str)
    if words and _letters(answer) == _letters(expected):
        return f"yours is {_shown(answer)}: nearly; mind capitals, spaces and signs"
    return f"yours is {_shown(answer)}, not the expected answer"


def _letters(text):
    return [ch for ch in text[:1000].lower() if ch.isalnum()]


def _is_items(value):
    """Return whether a value is a tuple, or a list other than of numbers."""
    if isinstance(value, tuple) or (isinstance(value, list) and not value):
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
        return f"yours has the keys {_shown(list(answer))}, expected {list(expected)}"
    for key in expected:
        problem = first_difference(answer[key], expected[key], tolerance, tell)
        if problem is not None:
            return f"{key}: {problem}"
    return None


def _differing_items(answer, expected, tolerance, tell):
    if isinstance(answer, np.ndarray) and answer.ndim:
        answer = list(answer)
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
        return f"yours is {_shown(answer)}, expected numbers"
    if mine.shape != right.shape:
        return f"yours has the shape {mine.shape}, expected {right.shape}"
    return _largest_difference(mine, right, tolerance, tell)


def _largest_difference(mine, right, tolerance, tell):
    """Say where two arrays differ most; None if that is within the tolerance."""
    digits, mine, right = mine.dtype, mine.astype(float), right.astype(float)
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
    text = f"yours is {mine[place]:.6g}{where}, expected {right[place]:.6g} {within}"
    return text + _likely_cause(mine, right, gap[place], digits)


def _likely_cause(mine, right, gap, digits):
    """Say what a difference looks like: rounding, epsilon, one factor."""
    largest = np.abs(right[np.isfinite(right)]).max(initial=0)
    if gap <= 5e-6 * largest:  # six digits coincide, or nearly
        cause = "epsilon (its size, or outside the root), or n − 1 in place of n"
        if digits in (np.float32, np.float16):
            cause = f"yours is {digits}, which keeps few digits"
        elif gap < 3e-7 * largest:
            cause = "a step in float32"
        return f"; they are {gap:.1e} apart: perhaps {cause}"
    factor = (mine * right).sum() / max((right**2).sum(), 1e-300)
    if right.size < 2 or not np.allclose(mine, factor * right, rtol=1e-6, atol=1e-9):
        return ""
    n = right.shape[-1]
    sample = "; n − 1 in place of n?" if np.isclose(factor**2, (n - 1) / n) else ""
    return f"; every entry is {factor:.4g} times the right one{sample}"


def same_inputs(now, before):
    """Return whether arguments are still what they were, to the last bit."""
    if isinstance(before, np.ndarray):
        fits = type(now) is np.ndarray and now.shape == before.shape
        return fits and now.dtype == before.dtype and now.tobytes() == before.tobytes()
    if isinstance(before, dict):
        return list(now) == list(before) and all(
            same_inputs(now[key], before[key]) for key in before
        )
    if isinstance(before, (list, tuple)):
        return len(now) == len(before) and all(map(same_inputs, now, before))
    return now == before


def _shown(value):
    """Return a plain value as text of at most 60 characters."""
    whole = isinstance(value, (str, list, tuple)) and len(value) > 100
    return short(value[:100] if whole else value)


def shown(name, value):
    """Return a named value as text: arrays with their shapes, dicts by key."""
    if isinstance(value, dict):
        return "\n".join(shown(f'{name}["{key}"]', value[key]) for key in value)
    if _is_items(value) and not all(isinstance(item, str) for item in value):
        return "\n".join(shown(f"{name}[{i}]", item) for i, item in enumerate(value))
    if isinstance(value, np.ndarray) and value.ndim:
        numbers = np.array2string(value, threshold=60, precision=6, suppress_small=True)
        gap = "\n" if "\n" in numbers else " "
        return f"{name}, shape {value.shape}:{gap}{numbers}"
    return f"{name}: {value.kind if isinstance(value, Other) else short(value, 300)}"


def as_text(value):
    """Return a plain value as a reader would write it."""
    if isinstance(value, Other):
        return f"something {value.kind}"
    if isinstance(value, (float, np.ndarray)) and np.ndim(value) == 0:
        return f"{float(value):g}"
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) <= 9:
        return f"[{', '.join(map(as_text, value))}]"
    return value if isinstance(value, str) and len(value) <= 60 else short(value)
