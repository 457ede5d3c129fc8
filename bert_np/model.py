"""BERT: ids in, hidden states, pooled output and attention out."""

import numpy as np

from bert_np.attention import create_attention_mask
from bert_np.embeddings import embed
from bert_np.encoder import encoder
from bert_np.errors import BertError, short
from bert_np.parameters import check_params
from bert_np.pooler import pool
from bert_np.trace import branch


def bert(
    input_ids,
    params,
    config,
    *,
    segment_ids=None,
    attention_mask=None,
    trace=None,
    rng=None,
    return_attention=True,
):
    """Run BERT on a batch of token ids.

    embed, then encoder, then pool.

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
        Integers in 0..V-1, of any integer dtype; nested lists are
        accepted. T is at most config.max_position_embeddings.
    params : dict
        The parameter tree, float32 or float64; never written to.
    config : BertConfig
    segment_ids : ndarray of shape (B, T), optional
        Integers in 0..S-1; 0 everywhere where none is given.
    attention_mask : ndarray of shape (B, T), optional
        1 (or True) for a real token, 0 for padding. Where none is given
        it is derived: 1 where the id is not config.pad_token_id.
        HuggingFace takes all ones there. A row without any 1 is finite:
        each token looks at all positions alike.
    trace : dict, optional
        An empty dict; gets a copy of every intermediate result, nested
        like params.
    rng : numpy.random.Generator, optional
        Switches dropout on, with the rates of config: the forward pass
        of training. Without it the result is deterministic.
    return_attention : bool
        False: attention_probs is an empty list, which saves memory.

    Returns
    -------
    dict
        last_hidden_state : ndarray of shape (B, T, H)
        pooler_output : ndarray of shape (B, H), or None without pooler
        attention_probs : list of L ndarrays of shape (B, A, T, T)

        Attention is the distribution before dropout; each row sums to 1.
        Positions count from the left, so a row padded on the left has
        other results than the same row padded on the right.

    Raises
    ------
    BertError
        Naming the argument, the value found and the values allowed.

    Source: Devlin et al. 2018, section 3.
    """
    check_params(params, config)
    _check_options(trace, rng, return_attention)
    input_ids, segment_ids, attention_mask = check_inputs(
        input_ids, segment_ids, attention_mask, config
    )
    x = embed(
        input_ids, segment_ids, params["embeddings"], config,
        trace=branch(trace, "embeddings"), rng=rng,
    )
    x, attention_probs = encoder(
        x, params["layers"], attention_mask, config,
        trace=branch(trace, "layers", []), rng=rng, return_attention=return_attention,
    )
    pooled = None
    if "pooler" in params:
        pooled = pool(x, params["pooler"], trace=branch(trace, "pooler"))
    return {
        "last_hidden_state": x,
        "pooler_output": pooled,
        "attention_probs": attention_probs,
    }


def check_inputs(input_ids, segment_ids, attention_mask, config):
    """Refuse inputs that the model cannot take, and fill in what is None.

    Parameters
    ----------
    input_ids, segment_ids, attention_mask
        As in ``bert``.
    config : BertConfig

    Returns
    -------
    input_ids, segment_ids, attention_mask : ndarray of shape (B, T)
        The ids are intp, the mask is bool.

    Raises
    ------
    BertError
    """
    input_ids = _check_ids("input_ids", input_ids, config.vocab_size)
    _check_length(input_ids, config)
    segment_ids = _prepare_segment_ids(segment_ids, input_ids, config)
    return input_ids, segment_ids, _prepare_mask(attention_mask, input_ids, config)


def _check_options(trace, rng, return_attention):
    if type(return_attention) is not bool:
        found = short(return_attention)
        raise BertError(f"return_attention = {found}, allowed: True or False")
    if trace is not None and not isinstance(trace, dict):
        raise BertError(
            f"trace is {type(trace).__name__}, allowed: an empty dict, None"
        )
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise BertError(
            f"rng is {type(rng).__name__}, allowed: numpy.random.Generator, None"
        )


def _check_ids(name, ids, limit):
    """The ids as an intp array, or the one error."""
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
    """In a list beside ints, NumPy would take True for 1."""
    rows = ids if isinstance(ids, (list, tuple)) else ()
    for row in rows:
        if isinstance(row, (list, tuple)) and bool in map(type, row):
            raise BertError(f"{name} holds a bool, allowed: integers")


def _as_array(name, values):
    if np.ma.is_masked(values):  # NumPy would read what lies below the mask
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
    except Exception:  # what stands in the lists may raise anything
        raise BertError(f"{name}: not an array (B, T) of integers") from None


def _check_length(input_ids, config):
    T, limit = input_ids.shape[1], config.max_position_embeddings
    if T > limit:
        raise BertError(
            f"input_ids has {T} positions, allowed: at most {limit} "
            "(config.max_position_embeddings)"
        )


def _prepare_segment_ids(segment_ids, input_ids, config):
    if segment_ids is None:
        return np.zeros_like(input_ids)
    segment_ids = _check_ids("segment_ids", segment_ids, config.type_vocab_size)
    _check_same_shape("segment_ids", segment_ids, input_ids)
    return segment_ids


def _prepare_mask(attention_mask, input_ids, config):
    """The mask as a bool array, derived from the ids where there is none."""
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
