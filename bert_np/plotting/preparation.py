"""Attention maps and their tokens, made ready to draw.

The functions work on one map (T, T) and on stacks of maps (..., T, T).
None of them writes to its arguments.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import divide_by_sums
from bert_np.errors import BertError, require_bool, short
from bert_np.plotting.checks import (
    check_binary,
    check_integer,
    check_option,
    check_probs,
)

ENDS = ("[CLS]", "[SEP]")
BRACKETED = (*ENDS, "[PAD]", "[MASK]", "[UNK]")
SPECIAL_NOTES = {
    "show": None,
    "hide": "[CLS] and [SEP] hidden, rows not renormalised",
    "renormalise": "[CLS] and [SEP] hidden, rows renormalised to sum to 1",
}
MEANS = {"heads": -3, "layers": 0, "layers and heads": (0, 1)}
BETWEEN = {"first to second": (0, 1), "second to first": (1, 0)}


class Prepared(NamedTuple):
    """What a figure draws: maps, tokens, who may attend to whom, remarks.

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


def prepare_maps(
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

    They are applied in this order: take the mean, crop the padding,
    merge word pieces, hide special tokens, choose the block between two
    sentences.

    Parameters
    ----------
    probs : array of `ndim` axes, the last two of length T
        Attention probabilities, each from 0 to 1. If `mean` is given,
        with the axes that the mean removes: see `mean_of_maps`.
    tokens : list of T str
    ndim : 2 (one head), 3 (one layer) or 4 (all layers)
    attention_mask : array of shape (T,), optional
        1 if the key is visible, 0 if it is masked.
    visible : array of shape (T, T), optional
        1 if the query (row) may attend to the key (column), as in a
        causal mask. With both masks, a cell must be visible in both.
    mean : "heads", "layers" or "layers and heads", optional
    crop : bool
        Leave out the positions that attention_mask masks.
    merge_words : bool
        Merge word pieces into words; see `merge_word_pieces`.
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
    """
    check_integer("ndim", ndim, 2, 4)
    probs, tokens, notes = mean_of_maps(probs, tokens, ndim, mean)
    visible = visibility(len(tokens), attention_mask, visible)
    block = block_of(tokens, attention_mask, segment_ids, between)
    for change, note in changes(attention_mask, crop, merge_words, special):
        if note == SPECIAL_NOTES[special] and not set(tokens) & {*ENDS}:
            note = "no [CLS] or [SEP] among the tokens to hide"
        visible, block = (change(cells, tokens)[0] > 0 for cells in (visible, block))
        probs, tokens = change(probs, tokens)
        notes.append(note)
    rows, columns = (np.flatnonzero(block.any(axis)) for axis in (1, 0))
    if rows.size == 0:
        raise BertError(
            f"between = {between!r}: no token is left of one sentence; "
            "segment_ids must hold 0 and 1"
        )
    if between is not None:
        queries, keys = between.split(" to ")
        notes.append(f"queries of the {queries} sentence, keys of the {keys}")
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
        return *check_probs(probs, tokens, ndim), []
    check_option("mean", mean, MEANS)
    axis = MEANS[mean]
    taken = np.size(axis) if ndim < 4 else 0
    if ndim + taken > 4:
        raise BertError(f"mean = {short(mean)} leaves one map: plot_attention draws it")
    try:
        probs, tokens = check_probs(probs, tokens, ndim + taken)
    except BertError as error:
        raise BertError(f"{error} (mean = {short(mean)})") from None
    return probs.mean(axis, keepdims=ndim == 4), tokens, [f"mean over {mean}"]


def changes(attention_mask, crop, merge_words, special):
    """Return the changes that were asked for, each with its remark."""
    check_option("special", special, SPECIAL_NOTES)
    require_bool("crop", crop)
    require_bool("merge_words", merge_words)
    cropping = partial(crop_padding, attention_mask=attention_mask)
    hiding = partial(hide_special, renormalise=special == "renormalise")
    steps = [
        (crop, cropping, "padding cropped"),
        (merge_words, merge_word_pieces, "word pieces merged into words"),
        (special != "show", hiding, SPECIAL_NOTES[special]),
    ]
    return [(change, note) for asked, change, note in steps if asked]


def block_of(tokens, attention_mask, segment_ids, between):
    """Mark the cells from one sentence to the other, without padding.

    Returns
    -------
    bool array of shape (T, T)
        All true if `between` is None.
    """
    length = len(tokens)
    if segment_ids is not None:
        meaning = "0 (first sentence) and 1 (second)"
        segment_ids = check_binary("segment_ids", segment_ids, (length,), meaning)
    if between is None:
        return np.ones((length, length), dtype=bool)
    check_option("between", between, BETWEEN)
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
        1 for a real token, 0 for padding; at least one 1.

    Returns
    -------
    probs, tokens
    """
    probs, tokens = check_probs(probs, tokens)
    if attention_mask is None:
        raise BertError("attention_mask = None: cropping needs a mask of shape (T,)")
    keep = check_binary("attention_mask", attention_mask, (len(tokens),))
    if not keep.any():
        raise BertError("attention_mask masks every position, expected at least one 1")
    return keep_positions(probs, tokens, keep)


def hide_special(probs, tokens, renormalise=False):
    """Leave out the rows and columns of [CLS] and [SEP].

    Tokens of other names, such as the "<s>" of some vocabularies, stay.

    Parameters
    ----------
    probs : array of shape (..., T, T)
    tokens : list of T str
        At least one of them is another token.
    renormalise : bool
        Divide each row by its sum, so that it sums to 1 again. A row
        without any attention left stays 0. Otherwise a row sums to the
        share of attention that did not go to the hidden tokens.

    Returns
    -------
    probs, tokens
    """
    require_bool("renormalise", renormalise)
    probs, tokens = check_probs(probs, tokens)
    keep = np.array([token not in ENDS for token in tokens])
    if not keep.any():
        raise BertError(f"tokens = {tokens}: nothing is left without [CLS] and [SEP]")
    probs, tokens = keep_positions(probs, tokens, keep)
    return divide_by_sums(probs) if renormalise else probs, tokens


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

    Source: Clark et al. 2019, section 4.1
    """
    probs, tokens = check_probs(probs, tokens)
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
    """Return whether a token is a piece that continues a word."""
    return token.startswith("##") and len(token) > 2


def keep_positions(probs, tokens, keep):
    """Keep the rows, columns and tokens at which `keep`, (T,) bool, is true."""
    kept = [token for token, wanted in zip(tokens, keep) if wanted]
    return probs[..., keep, :][..., keep], kept


def visibility(length, attention_mask=None, visible=None):
    """Combine a mask of keys and a mask of cells into one (T, T) of bool."""
    cells = np.ones((length, length), dtype=bool)
    if attention_mask is not None:
        cells &= check_binary("attention_mask", attention_mask, (length,))
    if visible is not None:
        cells &= check_binary("visible", visible, (length, length))
    return cells
