"""Every check of what users hand to the model.

Each function accepts its arguments, and may return them in one standard
form, or raises BertError with the argument, the value found and the values
allowed. The equations check nothing: what their docstrings state about
arguments is checked by `checked.py`.
"""

from itertools import chain

import numpy as np

from bert_np.attention import create_attention_mask
from bert_np.config import require_config
from bert_np.errors import BertError, require_bool, short


def check_inputs(input_ids, segment_ids, attention_mask, config):
    """Refuse inputs that the model cannot take, and fill in defaults.

    Parameters
    ----------
    input_ids, segment_ids, attention_mask
        As in ``bert``.
    config : BertConfig

    Returns
    -------
    input_ids, segment_ids, attention_mask : ndarray of shape (B, T)
        The ids are intp, the mask is bool.
    """
    input_ids = _check_ids("input_ids", input_ids, config.vocab_size)
    _check_length(input_ids, config)
    segment_ids = _segment_ids_or_zeros(segment_ids, input_ids, config)
    return input_ids, segment_ids, _mask_or_derived(attention_mask, input_ids, config)


def check_texts(encoding, names, config, advice="shorten it"):
    """Refuse texts that the model cannot take, named as the caller knows them.

    Parameters
    ----------
    encoding : Encoding
        Of one text or pair, or of a batch.
    names : list of str
        What the message calls the text of each row.
    config : BertConfig
    advice : str
        What to do about a text that is too long.
    """
    require_config(config)
    most, V = config.max_position_embeddings, config.vocab_size
    rows = encoding.inputs
    for i, name in enumerate(names):
        ids, segments, mask = (array[i] for array in rows.values())
        if mask.sum() > most:
            raise BertError(
                f"{name} has {mask.sum()} tokens, allowed: at most {most}; {advice}"
            )
        if segments.max() >= config.type_vocab_size:
            raise BertError(
                f"{name}: a pair, but the model has only one segment "
                "(config.type_vocab_size = 1); give one text"
            )
        if ids.max() >= V:
            raise BertError(
                f"{name}: a token has the id {ids.max()}, but the model has {V} "
                "tokens; the tokenizer belongs to another model"
            )


def check_bert_options(trace, rng, return_attention):
    """Refuse options of ``bert`` that have the wrong type."""
    require_bool("return_attention", return_attention)
    check_trace(trace)
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise BertError(
            f"rng is {type(rng).__name__}, allowed: numpy.random.Generator, None"
        )


def check_fast_options(prepared, config, return_attention, threads):
    """Refuse what ``prepare`` did not make, and options of the wrong type."""
    names = {"params", "config", "qkv"}
    if not isinstance(prepared, dict) or prepared.keys() != names:
        raise BertError(
            f"prepared is {type(prepared).__name__}, allowed: what "
            "prepare(params, config) returns"
        )
    require_config(config)
    for name, value in vars(prepared["config"]).items():
        if getattr(config, name) != value:
            found = short(getattr(config, name))
            raise BertError(
                f"config.{name} = {found}, but the parameters were prepared with "
                f"{short(value)}; prepare them with this config"
            )
    require_bool("return_attention", return_attention)
    if threads is not None and (type(threads) is not int or threads < 1):
        raise BertError(f"threads = {short(threads)}, allowed: an int >= 1, None")


def check_trace(trace):
    """Refuse a trace in which nothing can be recorded."""
    if trace is not None and not isinstance(trace, dict):
        raise BertError(
            f"trace is {type(trace).__name__}, allowed: an empty dict, None"
        )


def _check_ids(name, ids, limit):
    """Return the ids as an intp array, or raise BertError."""
    _refuse_bools(name, ids)
    array = _as_array(name, ids)
    if array.ndim != 2:
        raise BertError(f"{name}: expected (B, T), got {array.shape}")
    if array.shape[1] == 0:
        raise BertError(f"{name}: empty sequence, shape {array.shape}; T must be >= 1")
    if array.dtype.kind not in "iu":
        raise BertError(f"{name} has dtype {array.dtype}, allowed: integers")
    outside = (array < 0) | (array >= limit)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise BertError(
            f"{name}[{row}, {column}] = {array[row, column]}, allowed 0..{limit - 1}"
        )
    return array.astype(np.intp)


def _refuse_bools(name, ids):
    """Refuse bools: in a list beside ints, NumPy would read True as 1."""
    for value in _rows_and_cells(ids):
        if "bool" in str(getattr(value, "dtype", type(value).__name__)):
            raise BertError(f"{name} holds a bool, allowed: integers")


def _rows_and_cells(values):
    """Return the rows of a list, and the cells of those rows that are lists."""
    rows = values if isinstance(values, (list, tuple)) else ()
    cells = chain.from_iterable(r for r in rows if isinstance(r, (list, tuple)))
    return chain(rows, cells)


def _as_array(name, values):
    for value in chain([values], _rows_and_cells(values)):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            # NumPy would read the values under the mask.
            raise BertError(f"{name} is a masked array, allowed: a plain array (B, T)")
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # no subclass: np.matrix indexes otherwise
    if not isinstance(values, (list, tuple)):
        raise BertError(
            f"{name} is {type(values).__name__}, "
            "allowed: an array or nested lists (B, T)"
        )
    lengths = [len(row) for row in values if isinstance(row, (list, tuple, np.ndarray))]
    if len(set(lengths)) > 1:
        raise BertError(f"{name}: rows of lengths {lengths}; pad first to one length")
    try:
        return np.asarray(values)
    except Exception:  # an object in the lists may raise anything
        raise BertError(f"{name}: not an array (B, T) of integers") from None


def _check_length(input_ids, config):
    T, limit = input_ids.shape[1], config.max_position_embeddings
    if limit < T:
        raise BertError(
            f"input_ids has {T} positions, allowed: at most {limit} "
            "(config.max_position_embeddings)"
        )


def _segment_ids_or_zeros(segment_ids, input_ids, config):
    if segment_ids is None:
        return np.zeros_like(input_ids)
    segment_ids = _check_ids("segment_ids", segment_ids, config.type_vocab_size)
    _check_same_shape("segment_ids", segment_ids, input_ids)
    return segment_ids


def _mask_or_derived(attention_mask, input_ids, config):
    """Return the mask as a bool array, derived from the ids if there is none."""
    if attention_mask is None:
        return create_attention_mask(input_ids, config.pad_token_id).astype(bool)
    mask = _as_array("attention_mask", attention_mask)
    _check_same_shape("attention_mask", mask, input_ids)
    if mask.dtype.kind not in "biuf":
        raise BertError(f"attention_mask has dtype {mask.dtype}, allowed: bool or 0/1")
    wrong = ~((mask == 0) | (mask == 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        additive = "; it looks additive: give 1 for real, 0 for padding"
        raise BertError(
            f"attention_mask[{row}, {column}] = {mask[row, column]}, "
            f"allowed: 0 or 1{additive if (mask < -1).any() else ''}"
        )
    return mask.astype(bool)


def _check_same_shape(name, array, input_ids):
    if array.shape != input_ids.shape:
        raise BertError(
            f"{name} has shape {array.shape}, allowed: {input_ids.shape}, "
            "the shape of input_ids"
        )


def check_vectors(name, x, W):
    """Refuse what is not an array of floats with H, the rows of W, last."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        found = getattr(x, "dtype", type(x).__name__)
        raise BertError(f"{name} is {found}, allowed: an array of float32 or float64")
    if x.shape[-1:] != W.shape[:1]:
        raise BertError(f"{name} has shape {x.shape}, allowed: (..., {W.shape[0]})")


def check_pooler_output(pooler_output, W, title):
    """Refuse what is not the pooled output that a head with matrix W takes."""
    if pooler_output is None:
        raise BertError(
            f"pooler_output is None: this model has no pooler, {title} needs one"
        )
    check_vectors("pooler_output", pooler_output, W)


def require_word_table(params, config):
    """Return the table that scores words: that of the embeddings, or the MLM
    head's own where config says that the two are not tied."""
    mlm, tied = params["mlm"], config.tie_word_embeddings
    if ("decoder" in mlm) == tied:
        found = "has a" if tied else "has no"
        raise BertError(
            f"params.mlm {found} 'decoder', but config.tie_word_embeddings = {tied}"
        )
    return params["embeddings"]["word"] if tied else mlm["decoder"]


def require_head(params, name, title):
    """Return params[name], or refuse a model that came without that head."""
    if not isinstance(params, dict):
        raise BertError(f"params is {type(params).__name__}, allowed: a nested dict")
    if name not in params:
        raise BertError(
            f"params has no {name!r}: this model came without the {title} head; "
            f"parts present: {', '.join(params)}"
        )
    return params[name]
