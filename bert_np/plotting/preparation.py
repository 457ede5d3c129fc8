"""Attention arrays and their tokens, checked and made ready to draw.

The functions work on one map (T, T) and on stacks of maps (..., T, T),
and write to none of their arguments.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short

TOLERANCE = 1e-4
ENDS = ("[CLS]", "[SEP]")
BRACKETED = (*ENDS, "[PAD]", "[MASK]", "[UNK]")
SPECIAL_NOTES = {
    "show": None,
    "hide": "[CLS] and [SEP] hidden, rows not renormalised",
    "renormalise": "[CLS] and [SEP] hidden, rows renormalised to sum to 1",
}
AXES = {2: "(T, T), one head", 3: "(A, T, T), one layer", 4: "(L, A, T, T), all layers"}
MEANS = {"heads": -3, "layers": 0, "layers and heads": (0, 1)}
BETWEEN = {"first to second": (0, 1), "second to first": (1, 0)}
INDEX = {
    2: 'out["attention_probs"][layer][batch][head]',
    3: 'out["attention_probs"][layer][batch]',
    4: '[layer[batch] for layer in out["attention_probs"]]',
}


class Prepared(NamedTuple):
    """What a figure draws: maps, tokens, who may look at whom, remarks.

    The rows of the maps belong to `queries` and the columns to `keys`;
    both are `tokens`, unless `between` chose a block.
    """

    probs: np.ndarray
    tokens: list
    visible: np.ndarray
    notes: list
    queries: list
    keys: list
    mean: str | None = None


def prepare(
    probs,
    tokens,
    ndim,
    *,
    attention_mask=None,
    visible=None,
    mean=None,
    crop=False,
    merge_words=False,
    special="show",
    segment_ids=None,
    between=None,
):
    """Check the arguments of a figure and apply its choices.

    In this order: take the mean, crop the padding, merge word pieces,
    hide specials, choose the block between two sentences.

    Parameters
    ----------
    probs : array of `ndim` axes, the last two of length T
        Attention probabilities, each from 0 to 1. Where `mean` is given,
        with the axes that the mean takes away: see `mean_of_maps`.
    tokens : list of T str
    ndim : 2 (one head), 3 (one layer) or 4 (all layers)
    attention_mask : array of shape (T,), optional
        1 where the key may be looked at, 0 where it is masked.
    visible : array of shape (T, T), optional
        1 where the query (row) may look at the key (column), as in a
        causal mask. With both masks, a cell has to be visible in both.
    mean : "heads", "layers" or "layers and heads", optional
    crop : bool
        Leave out the positions that attention_mask masks.
    merge_words : bool
        Whether word pieces become words; see `merge_word_pieces`.
    special : "show", "hide" or "renormalise"
        What happens to [CLS] and [SEP]; see `hide_special`.
    segment_ids : array of shape (T,), optional
        0 for the first sentence, 1 for the second; `between` needs it.
    between : "first to second" or "second to first", optional
        Draw only the queries of one sentence and the keys of the other.

    Returns
    -------
    Prepared
        probs of shape (..., Tq, Tk), tokens, visible as bool of shape
        (Tq, Tk), remarks, the tokens of the rows and of the columns,
        and the mean that was taken.

    Raises
    ------
    BertError
    """
    probs, tokens, notes = mean_of_maps(probs, tokens, ndim, mean)
    maps = [
        probs,
        visibility(len(tokens), attention_mask, visible),
        block_of(tokens, attention_mask, segment_ids, between),
    ]
    for change, note in chosen(attention_mask, crop, merge_words, special):
        (probs, words), *others = [change(cells, tokens) for cells in maps]
        maps, tokens = [probs, *(cells > 0 for cells, _ in others)], words
        notes.append(note)
    probs, visible, block = maps
    rows, columns = (np.flatnonzero(block.any(axis)) for axis in (1, 0))
    if rows.size == 0:
        raise BertError(
            f"between = {between!r}: no token is left of one sentence; "
            "segment_ids must hold 0 and 1"
        )
    if between is not None:
        notes.append(
            f"only from the {between.replace('to', 'to the')} sentence, "
            "the rest left out"
        )
    return Prepared(
        probs[..., rows, :][..., columns],
        tokens,
        visible[rows][:, columns],
        notes,
        [tokens[i] for i in rows],
        [tokens[i] for i in columns],
        mean,
    )


def mean_of_maps(probs, tokens, ndim, mean):
    """Check maps and tokens, and average over heads or layers.

    Parameters
    ----------
    probs : array of shape (..., T, T)
        For one map (ndim 2): (A, T, T) with "heads", (L, T, T) with
        "layers", (L, A, T, T) with "layers and heads". For panels
        (ndim 3): (L, A, T, T) with "heads" or "layers". For all layers
        (ndim 4): always (L, A, T, T); the averaged axis has length 1.
    tokens : list of T str
    ndim : int
    mean : str or None

    Returns
    -------
    probs, tokens, notes
    """
    if mean is None:
        return *check_maps(probs, tokens, ndim), []
    if not isinstance(mean, str) or mean not in MEANS:
        raise BertError(f"mean = {short(mean)}, allowed: None, {list(MEANS)}")
    axis = MEANS[mean]
    taken = np.size(axis) if ndim < 4 else 0
    if ndim + taken > 4:
        raise BertError(f"mean = {short(mean)} leaves one map: plot_attention draws it")
    try:
        probs, tokens = check_maps(probs, tokens, ndim + taken)
    except BertError as error:
        raise BertError(f"{error} (mean = {short(mean)})") from None
    return probs.mean(axis, keepdims=ndim == 4), tokens, [f"mean over {mean}"]


def chosen(attention_mask, crop, merge_words, special):
    """Give the changes that were asked for, each with its remark."""
    if not isinstance(special, str) or special not in SPECIAL_NOTES:
        raise BertError(f"special = {short(special)}, allowed: {list(SPECIAL_NOTES)}")
    changes = []
    if crop:
        changes.append(
            (partial(crop_padding, attention_mask=attention_mask), "padding cropped")
        )
    if merge_words:
        changes.append((merge_word_pieces, "word pieces merged to words"))
    if special != "show":
        changes.append(
            (
                partial(hide_special, renormalise=special == "renormalise"),
                SPECIAL_NOTES[special],
            )
        )
    return changes


def block_of(tokens, attention_mask, segment_ids, between):
    """Mark the cells from one sentence to the other, without padding.

    Returns
    -------
    bool array of shape (T, T)
        All true where `between` is None.
    """
    length = len(tokens)
    if segment_ids is not None:
        segment_ids = check_binary(
            "segment_ids", segment_ids, (length,), "0 (first sentence) and 1 (second)"
        )
    if between is None:
        return np.ones((length, length), dtype=bool)
    if not isinstance(between, str) or between not in BETWEEN:
        raise BertError(f"between = {short(between)}, allowed: None, {list(BETWEEN)}")
    if segment_ids is None:
        raise BertError(
            f"segment_ids = None: between = {between!r} needs them, "
            "an array of shape (T,)"
        )
    real = np.array([token != "[PAD]" for token in tokens])
    real &= visibility(length, attention_mask)[0]
    query, key = BETWEEN[between]
    return np.outer(real & (segment_ids == query), real & (segment_ids == key))


def crop_padding(probs, tokens, attention_mask):
    """Leave out the rows and columns of padded positions.

    Parameters
    ----------
    probs : array of shape (..., T, T)
    tokens : list of T str
    attention_mask : array of shape (T,)
        1 for a real token, 0 for padding.

    Returns
    -------
    probs, tokens

    Raises
    ------
    BertError
        Also where the mask leaves no token.
    """
    probs, tokens = check_maps(probs, tokens)
    if attention_mask is None:
        raise BertError("attention_mask = None: cropping needs a mask of shape (T,)")
    keep = check_binary("attention_mask", attention_mask, (len(tokens),))
    if not keep.any():
        raise BertError("attention_mask masks every position, expected at least one 1")
    return select(probs, tokens, keep)


def hide_special(probs, tokens, renormalise=False):
    """Leave out the rows and columns of [CLS] and [SEP].

    Parameters
    ----------
    probs : array of shape (..., T, T)
    tokens : list of T str
    renormalise : bool
        Divide each row by its sum, so that it sums to 1 again. A row
        without any attention left stays 0. Otherwise a row sums to the
        share of attention that did not go to the hidden tokens.

    Returns
    -------
    probs, tokens

    Raises
    ------
    BertError
        Also where no other token is left.
    """
    probs, tokens = check_maps(probs, tokens)
    keep = np.array([token not in ENDS for token in tokens])
    if not keep.any():
        raise BertError(f"tokens = {tokens}: nothing is left without [CLS] and [SEP]")
    probs, tokens = select(probs, tokens, keep)
    if renormalise:
        sums = probs.sum(axis=-1, keepdims=True)
        probs = np.divide(probs, sums, out=np.zeros_like(probs), where=sums > 0)
    return probs, tokens


def merge_word_pieces(probs, tokens):
    """Merge the pieces of a word: average its rows, sum its columns.

    A row still sums to 1: the attention to a word is the attention to
    all its pieces, the attention from a word is the mean over them.

    Parameters
    ----------
    probs : array of shape (..., T, T)
    tokens : list of T str
        A piece that continues a word begins with ##.

    Returns
    -------
    probs, tokens
        Of shape (..., W, W) and length W, the number of words.

    Raises
    ------
    BertError

    Source: Clark et al. 2019, section 4.1
    """
    probs, tokens = check_maps(probs, tokens)
    starts = [
        i
        for i, token in enumerate(tokens)
        if i == 0 or tokens[i - 1] in BRACKETED or not continues(token)
    ]
    ends = [*starts[1:], len(tokens)]
    words = [
        "".join([tokens[start], *(piece[2:] for piece in tokens[start + 1 : end])])
        for start, end in zip(starts, ends)
    ]
    pieces = np.subtract(ends, starts).astype(probs.dtype)
    columns = np.add.reduceat(probs, starts, axis=-1)
    return np.add.reduceat(columns, starts, axis=-2) / pieces[:, None], words


def continues(token):
    """Whether a token is a piece that continues a word."""
    return token.startswith("##") and len(token) > 2


def select(probs, tokens, keep):
    """Keep the rows, columns and tokens where `keep`, (T,) bool, is true."""
    return (
        probs[..., keep, :][..., keep],
        [token for token, kept in zip(tokens, keep) if kept],
    )


def visibility(length, attention_mask=None, visible=None):
    """Combine a mask of keys and a mask of cells to one (T, T) of bool."""
    cells = np.ones((length, length), dtype=bool)
    if attention_mask is not None:
        cells &= check_binary("attention_mask", attention_mask, (length,))
    if visible is not None:
        cells &= check_binary("visible", visible, (length, length))
    return cells


def check_maps(probs, tokens, ndim=None):
    """Give probs as floats and tokens as a list, or say what is wrong.

    Parameters
    ----------
    probs : array of `ndim` axes, or of two or more where ndim is None
    tokens : list of str, one for each position
    ndim : int, optional

    Returns
    -------
    probs, tokens

    Raises
    ------
    BertError
    """
    probs = to_array("probs", probs)
    tokens = check_tokens(tokens)
    shape = probs.shape
    if len(shape) != (ndim or max(len(shape), 2)):
        index = f". From a batch take {INDEX[ndim]}" if len(shape) > (ndim or 2) else ""
        raise BertError(
            f"probs has shape {shape}, expected {AXES.get(ndim, '(..., T, T)')}{index}"
        )
    if shape[-1] != shape[-2]:
        raise BertError(f"probs has shape {shape}, expected two equal last axes")
    if probs.size == 0:
        raise BertError(f"probs has shape {shape}: there is nothing to draw")
    if len(tokens) != shape[-1]:
        raise BertError(
            f"tokens has {len(tokens)} entries, but probs of shape "
            f"{shape} has {shape[-1]} positions; the two must be equal"
        )
    refuse(
        "probs",
        probs,
        ~((probs >= -TOLERANCE) & (probs <= 1 + TOLERANCE)),
        "allowed 0 to 1 (probabilities after the softmax)",
    )
    return probs, tokens


def to_array(name, values):
    """Give values as a float array, or say why that cannot be."""
    try:
        if isinstance(values, (list, tuple)):
            values = [np.asarray(value) for value in values]
            shapes = sorted({value.shape for value in values})
            if len(shapes) > 1:
                raise ValueError(f"its entries have different shapes, {shapes}")
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BertError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise BertError(f"{name} has dtype {array.dtype}, expected real numbers")
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def check_numbers(name, values, axes):
    """Give values as an array of finite numbers, or say what is wrong.

    Parameters
    ----------
    name : str
    values : array
    axes : str
        The axes that are expected, such as "(T, D)".

    Returns
    -------
    float array
    """
    array = to_array(name, values)
    if array.ndim != len(axes.strip("(,)").split(",")):
        raise BertError(
            f"{name} has shape {array.shape}, expected {axes}; "
            "from a batch take one sentence, of heads take one"
        )
    if array.size == 0:
        raise BertError(f"{name} has shape {array.shape}: there is nothing to draw")
    refuse(name, array, ~np.isfinite(array), "allowed: finite numbers")
    return array


def check_rows(name, array, tokens):
    """Give tokens as a list, one for each row of an array, or raise."""
    tokens = check_tokens(tokens)
    if len(tokens) != len(array):
        raise BertError(
            f"tokens has {len(tokens)} entries, but {name} of shape "
            f"{array.shape} has {len(array)} rows; the two must be equal"
        )
    return tokens


def check_index(name, value, length):
    """Give a position as an int, or say which are allowed."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value < length:
        raise BertError(f"{name} = {short(value)}, allowed: 0 to {length - 1}")
    return int(value)


def check_tokens(tokens):
    """Give tokens as a list of str, or say what is wrong."""
    if isinstance(tokens, (str, bytes)) or not np.iterable(tokens):
        raise BertError(f"tokens is a {type(tokens).__name__}, expected a list of str")
    tokens = list(tokens)
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise BertError(
                f"tokens[{i}] is a {type(token).__name__}, expected a str; "
                "from a batch take the tokens of one sentence"
            )
    return [str(token) for token in tokens]


def check_binary(name, values, shape, meaning="0 (masked) and 1 (visible)"):
    """Give values as a bool array, or say what is wrong."""
    array = to_array(name, values)
    if array.shape != shape:
        raise BertError(
            f"{name} has shape {array.shape}, expected {shape}; "
            "from a batch take the row of one sentence"
        )
    refuse(name, array, (array != 0) & (array != 1), f"allowed {meaning}")
    return array.astype(bool)


def refuse(name, array, wrong, allowed):
    """Raise BertError about the first entry where `wrong` is true, if any."""
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(
            f"{name}[{', '.join(map(str, place))}] = {array[place]:.6g}, {allowed}"
        )
