"""Beyond the weights: what moves between tokens, and what can be read there."""

import numpy as np

from bert_np.analysis.checks import (
    check_mask,
    check_model_maps,
    divide_by_sums,
    for_all_heads,
    hide_masked,
    require_layers,
    stage_of,
)
from bert_np.analysis.patching import head_outputs
from bert_np.errors import BertError, require_bool, short
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits
from bert_np.tokenizer import check_count, require_tokenizer

QUERIES_AT_ONCE = 16


def rollout(probs, attention_mask=None, residual=0.5):
    """Trace how much of each input token reaches each position, by layer.

    A_l = residual I + (1 - residual) mean over heads of probs, rows
    divided by their sums; R_l = A_l R_(l-1), R_0 = I.

    Parameters
    ----------
    probs : ndarray of shape (L, A, T, T) or (L, B, A, T, T)
        Or the list of L arrays that ``bert`` returns.
    attention_mask : ndarray of shape (T,) or (B, T), optional
    residual : float
        The fraction that stays in place, 0..1; 0.5 in the paper.

    Returns
    -------
    ndarray of shape (L, T, T) or (L, B, T, T)
        Entry l: after layer l. Rows of real tokens sum to 1, others
        are 0.

    Source: Abnar & Zuidema 2020, section 3, equation 1.
    """
    probs, real = check_model_maps(probs, attention_mask)
    kinds = (int, float, np.floating)
    if (
        type(residual) is bool
        or not isinstance(residual, kinds)
        or not 0 <= residual <= 1
    ):
        raise BertError(f"residual = {short(residual)}, allowed: a number in 0..1")
    residual = float(residual)
    mixed = (1 - residual) * probs.mean(axis=-3)
    mixed += residual * np.eye(probs.shape[-1], dtype=probs.dtype)
    mixed = divide_by_sums(hide_masked(mixed, for_all_heads(real)))
    for layer in range(1, len(mixed)):
        mixed[layer] = mixed[layer] @ mixed[layer - 1]
    return mixed


def weighted_norms(trace, params, attention_mask=None, normalise=False):
    """Measure how much each head moves from each key to each query.

    ||p_ij f(x_j)||, f(x) = (x Wv + bv) Wo, with the columns of Wv and the
    rows of Wo that belong to the head. The output map's own bias is left
    out: it belongs to no key.

    Parameters
    ----------
    trace : dict
        As ``bert`` fills it.
    params : dict
        The parameter tree of the same model.
    attention_mask : ndarray of shape (B, T), optional
    normalise : bool
        True: each row is divided by its sum, so that it can be read, and
        measured, beside the attention.

    Returns
    -------
    list of L ndarrays of shape (B, A, T, T)

    Source: Kobayashi et al. 2020.
    """
    require_bool("normalise", normalise)
    norms = []
    for probs, moved in _moved(trace, params):
        norm = probs * np.linalg.norm(moved, axis=-1)[:, :, None, :]
        norm = hide_masked(norm, check_mask(attention_mask, probs.shape))
        norms.append(divide_by_sums(norm) if normalise else norm)
    return norms


def summed_weighted_norms(trace, params, attention_mask=None, normalise=False):
    """Measure how much a layer moves from key to query, all heads summed.

    ||sum over heads of p_ij f(x_j)||; see weighted_norms. Vectors that
    point in different directions cancel in part, so this is at most the
    sum of the heads' norms.

    Parameters
    ----------
    trace : dict
    params : dict
    attention_mask : ndarray of shape (B, T), optional
    normalise : bool
        True: each row is divided by its sum.

    Returns
    -------
    list of L ndarrays of shape (B, T, T)

    Source: Kobayashi et al. 2020.
    """
    require_bool("normalise", normalise)
    norms = []
    for probs, moved in _moved(trace, params):
        by_query = probs.transpose(0, 3, 2, 1)  # (B, Tk, Tq, A)
        moved = moved.transpose(0, 2, 1, 3)  # (B, Tk, A, H)
        blocks = [
            np.linalg.norm(by_query[:, :, i : i + QUERIES_AT_ONCE] @ moved, axis=-1)
            for i in range(0, probs.shape[-1], QUERIES_AT_ONCE)
        ]  # of shape (B, Tk, 16): never all vectors of all pairs at once
        norm = np.concatenate(blocks, axis=2).swapaxes(1, 2)  # (B, Tq, Tk)
        real = for_all_heads(check_mask(attention_mask, probs.shape))
        norm = hide_masked(norm, real)
        norms.append(divide_by_sums(norm) if normalise else norm)
    return norms


def _moved(trace, params):
    """Yield for each layer probs, and each head's f(x): (B, A, T, H)."""
    L = len(stage_of(trace, "layers"))
    require_layers(params)
    if len(params["layers"]) != L:
        raise BertError(
            f"trace has {L} layers, params {len(params['layers'])}; "
            "give those of one model"
        )
    for i, layer in enumerate(params["layers"]):
        v = stage_of(trace, "layers", i, "attention", "v")
        moved = head_outputs(v, layer["attention"]["output"]["W"])
        yield stage_of(trace, "layers", i, "attention", "probs"), moved


def logit_lens(trace, params, config, positions=None):
    """Read the hidden states after every layer with the MLM head.

    The head was trained on the last layer's output only: on earlier layers
    this is the reading of an instrument, not the model's opinion.
    It includes the head's own dense layer and norm.

    Parameters
    ----------
    trace : dict
        As ``bert`` fills it.
    params : dict
        The whole tree, with "mlm".
    config : BertConfig
    positions : list of int, optional
        Places on the token axis, to save memory; None: all.

    Returns
    -------
    ndarray of shape (L + 1, B, T, V)
        Logits; entry 0 reads the embeddings, entry l layer l - 1. With
        positions, the third axis has one entry for each.

    Raises
    ------
    BertError
        If there is no MLM head.

    Source: nostalgebraist 2020, interpreting GPT: the logit lens.
    """
    states = [stage_of(trace, "embeddings", "output")]
    for i in range(len(stage_of(trace, "layers"))):
        states.append(stage_of(trace, "layers", i, "output"))
    if positions is not None:
        if not np.iterable(positions):
            raise BertError(f"positions = {short(positions)}, allowed: a list of int")
        last = states[0].shape[1] - 1
        places = [check_count(p, "positions", 0, last) for p in positions]
        states = [state[:, places] for state in states]
    return np.stack([masked_lm_logits(state, params, config) for state in states])


def top_words(logits, tokenizer, top_k=5):
    """List the likeliest words for each set of logits.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    tokenizer : Tokenizer
    top_k : int

    Returns
    -------
    words : ndarray of shape (..., top_k)
        str, the likeliest first.
    probs : ndarray of shape (..., top_k)
    """
    require_tokenizer(tokenizer)
    top_k = check_count(top_k, "top_k", 1, tokenizer.vocab_size)
    if not isinstance(logits, np.ndarray) or logits.dtype.kind != "f":
        found = getattr(logits, "dtype", type(logits).__name__)
        raise BertError(f"logits is {found}, allowed: an array of floats (..., V)")
    if logits.shape[-1:] < (tokenizer.vocab_size,):
        raise BertError(
            f"logits has shape {logits.shape}, allowed: (..., V), V at "
            f"least {tokenizer.vocab_size}, the tokenizer's words"
        )
    probs = softmax(logits[..., : tokenizer.vocab_size])
    best = np.argsort(-probs, axis=-1, kind="stable")[..., :top_k]
    return np.array(tokenizer.tokens)[best], np.take_along_axis(probs, best, axis=-1)
