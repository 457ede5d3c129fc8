"""Checks of what the figures are given: arrays, tokens, numbers, options."""

import math
import sys
from collections.abc import Mapping
from numbers import Real

import numpy as np

from bert_np.analysis.checks import TOLERANCE, as_floats, as_maps
from bert_np.errors import BertError, short

AXES = {2: "(T, T), one head", 3: "(A, T, T), one layer", 4: "(L, A, T, T), all layers"}
INDEX = {
    2: 'out["attention_probs"][layer][batch][head]',
    3: 'out["attention_probs"][layer][batch]',
    4: '[layer[batch] for layer in out["attention_probs"]]',
}


def check_probs(probs, tokens, ndim=None):
    """Return probs as an array of float and tokens as a list, checked.

    Parameters
    ----------
    probs : array of `ndim` axes, or of two or more if ndim is None
    tokens : list of str, one for each position
    ndim : int, optional

    Returns
    -------
    probs, tokens
    """
    probs = as_maps(probs)
    shape = probs.shape
    if len(shape) != (ndim or max(len(shape), 2)):
        index = f". From a batch take {INDEX[ndim]}" if len(shape) > (ndim or 2) else ""
        raise BertError(
            f"probs has shape {shape}, expected {AXES.get(ndim, '(..., T, T)')}{index}"
        )
    if shape[-1] != shape[-2]:
        raise BertError(f"probs has shape {shape}, expected two equal last axes")
    tokens = list_texts("tokens", tokens, shape[-1], f"position of probs, {shape}")
    if probs.size == 0:
        raise BertError(f"probs has shape {shape}: there is nothing to draw")
    wrong = ~((probs >= -TOLERANCE) & (probs <= 1 + TOLERANCE))
    refuse("probs", probs, wrong, "allowed 0 to 1 (probabilities after the softmax)")
    return probs, tokens


def check_numbers(name, values, axes):
    """Return values as an array of finite numbers with axes such as "(T, D)"."""
    array = as_floats(name, values)
    if array.ndim != len(axes.strip("(,)").split(",")):
        raise BertError(
            f"{name} has shape {array.shape}, expected {axes}; "
            "from a batch take one sentence, of heads take one"
        )
    if array.size == 0:
        raise BertError(f"{name} has shape {array.shape}: there is nothing to draw")
    refuse(name, array, ~np.isfinite(array), "allowed: finite numbers")
    return array


def check_binary(name, values, shape, meaning="0 (masked) and 1 (visible)"):
    """Return values, each 0 or 1, as an array of bool of this shape."""
    array = as_floats(name, values)
    if array.shape != shape:
        raise BertError(
            f"{name} has shape {array.shape}, expected {shape}; "
            "from a batch take the row of one sentence"
        )
    refuse(name, array, (array != 0) & (array != 1), f"allowed {meaning}")
    return array.astype(bool)


def refuse(name, array, wrong, allowed):
    """Raise BertError about the first entry at which `wrong` is true, if any."""
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(
            f"{name}[{', '.join(map(str, place))}] = {array[place]:.6g}, {allowed}"
        )


def check_mapping(name, given, most):
    """Check that something is a mapping with 1 to `most` entries."""
    if not isinstance(given, Mapping) or not 1 <= len(given) <= most:
        kind = f"is a {type(given).__name__}"
        found = f"has {len(given)} entries" if isinstance(given, Mapping) else kind
        raise BertError(f"{name} {found}, expected a mapping with 1 to {most} entries")


def check_arrays(name, given, axes, most):
    """Return {str: array} for a mapping to arrays, all of one shape."""
    check_mapping(name, given, most)
    arrays = {
        str(key): check_numbers(f"{name}[{key!r}]" if key else name, values, axes)
        for key, values in given.items()
    }
    shapes = {key: array.shape for key, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise BertError(f"{name} have different shapes, {shapes}")
    return arrays


def list_texts(name, texts, length=None, whose=""):
    """Return texts, such as tokens, as a list of str.

    Parameters
    ----------
    name : str
    texts : list of str
    length : int, optional
        How many there must be.
    whose : str
        There must be one for each of these.
    """
    if isinstance(texts, (str, bytes)) or not np.iterable(texts):
        raise BertError(f"{name} is a {type(texts).__name__}, expected a list of str")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise BertError(
                f"{name}[{i}] is a {type(text).__name__}, expected a str; "
                "from a batch take the tokens of one sentence"
            )
    if length is not None:
        check_length(name, texts, length, whose)
    return list(map(str, texts))


def check_length(name, values, length, whose):
    """Check that there are as many values as there are of something else."""
    if len(values) != length:
        count = len(values)
        raise BertError(
            f"{name} has {count} entries, expected {length}, one for each {whose}"
        )


def check_integer(name, value, low, high):
    """Return an integer from low to high as an int."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise BertError(f"{name} = {short(value)}, allowed: {low} to {high}")
    return int(value)


def check_positive(name, value, most=math.inf):
    """Return a finite number above 0 and up to `most` as a float."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value <= min(most, sys.float_info.max):
        allowed = f"above 0, up to {most}" if most < math.inf else "finite, above 0"
        raise BertError(f"{name} = {short(value)}, allowed: {allowed}")
    return float(value)


def check_label(name, text):
    """Check that a label is a str."""
    if not isinstance(text, str):
        raise BertError(f"{name} is a {type(text).__name__}, expected a str")


def check_option(name, value, options):
    """Check that a value is one of these options, each a str."""
    if not isinstance(value, str) or value not in options:
        allowed = ", ".join(map(repr, options))
        raise BertError(f"{name} = {short(value)}, allowed: {allowed}")
