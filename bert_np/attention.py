"""Multi-head self-attention: which token attends to which, and what it gathers."""

import math

import numpy as np

from bert_np.checked import checked
from bert_np.functional import dropout, linear, softmax
from bert_np.trace import record


@checked
def create_attention_mask(input_ids, pad_token_id):
    """Mark the real tokens with 1 and the padding with 0.

    A token is padding if its id is pad_token_id. If no mask is given,
    HuggingFace assumes all ones instead.

    Parameters
    ----------
    input_ids : ndarray of int of shape (B, T)
    pad_token_id : int or None
        None: nothing is padding.

    Returns
    -------
    ndarray of shape (B, T)
        int64, 1 or 0.

    Examples
    --------
    >>> create_attention_mask(np.array([[101, 7592, 102, 0]]), pad_token_id=0)
    array([[1, 1, 1, 0]])
    """
    if pad_token_id is None:
        return np.ones(input_ids.shape, np.int64)
    return (input_ids != pad_token_id).astype(np.int64)


@checked
def split_heads(x, num_heads):
    """Cut each vector into one slice per head, and put the heads before T.

    Parameters
    ----------
    x : ndarray of any dtype of shape (B, T, H)
    num_heads : int
        A, which divides H.

    Returns
    -------
    ndarray of shape (B, A, T, D)
        A view: head a holds x[:, :, a*D : (a+1)*D].

    Examples
    --------
    >>> split_heads(np.arange(8).reshape(1, 2, 4), num_heads=2)
    array([[[[0, 1],
             [4, 5]],
            [[2, 3],
             [6, 7]]]])
    """
    B, T, H = x.shape
    return x.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)


@checked
def merge_heads(x):
    """Put the heads' slices side by side again: undoes split_heads.

    Parameters
    ----------
    x : ndarray of any dtype of shape (B, A, T, D)

    Returns
    -------
    ndarray of shape (B, T, H)

    Examples
    --------
    >>> x = np.arange(8).reshape(1, 2, 4)
    >>> bool((merge_heads(split_heads(x, num_heads=2)) == x).all())
    True
    """
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, A * D)


@checked
def scaled_dot_product(
    q, k, v, visible=None, *, dropout_rate=0.0, trace=None, rng=None
):
    """Average the values, weighted by how well each query matches each key.

    probs = softmax(q kᵀ / sqrt(D)), context = probs v. A key that is not
    visible gets probability exactly 0. A query that sees no key at all
    attends to every key equally: its row is 1/Tk, never NaN.

    Parameters
    ----------
    q : ndarray of shape (B, A, Tq, D)
    k : ndarray of shape (B, A, Tk, D)
    v : ndarray of shape (B, A, Tk, Dv)
        In BERT Dv is D.
    visible : ndarray of bool that broadcasts to (B, A, Tq, Tk), optional
        True where the query (row) may attend to the key (column).
    dropout_rate : float in 0..1
        The probability with which each entry is dropped, if rng is given.
    trace : dict, optional
    rng : numpy.random.Generator, optional

    Returns
    -------
    context : ndarray of shape (B, A, Tq, Dv)
    probs : ndarray of shape (B, A, Tq, Tk)
        Before dropout; each row (last axis) sums to 1.

    Trace
    -----
    scores : (B, A, T, T)
    masked_scores : (B, A, T, T)
    probs : (B, A, T, T)

    Source: Vaswani et al. 2017, equation 1.
    """
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, A, Tq, Tk)
    record(trace, scores=scores)
    if visible is not None and not visible.all():
        lowest = np.finfo(scores.dtype).min
        if scores.min(initial=0) < lowest / 2:  # even -infinity stays above it
            scores = np.maximum(scores, lowest / 2)
        scores = np.where(visible, scores, lowest)
    probs = softmax(scores)
    record(trace, masked_scores=scores, probs=probs)
    return dropout(probs, dropout_rate, rng, trace) @ v, probs


@checked
def self_attention(x, params, attention_mask, config, *, trace=None, rng=None):
    """Let every token gather from the tokens it attends to, head by head.

    q, k and v are linear maps of x, cut into A heads; each head averages
    its values, weighted by softmax(q kᵀ / sqrt(D)); a last linear map
    joins the heads.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["layers"][i]["attention"] of the parameter tree.
    attention_mask : ndarray of shape (B, T)
        1 for a real token, 0 for padding, which no query attends to.
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches dropout of the attention probabilities on.

    Returns
    -------
    output : ndarray of shape (B, T, H)
    probs : ndarray of shape (B, A, T, T)
        Row: the query, the token that attends. Column: the key.

    Trace
    -----
    q : (B, A, T, D)
    k : (B, A, T, D)
    v : (B, A, T, D)
    scores : (B, A, T, T)
    masked_scores : (B, A, T, T)
    probs : (B, A, T, T)
    context : (B, T, H)
    output : (B, T, H)

    Source: Vaswani et al. 2017, section 3.2.2.
    """
    q, k, v = (
        split_heads(linear(x, **params[name]), config.num_attention_heads)
        for name in ("query", "key", "value")
    )
    record(trace, q=q, k=k, v=v)
    visible = attention_mask[:, None, None, :].astype(bool)  # (B, 1, 1, Tk)
    rate = config.attention_probs_dropout_prob
    context, probs = scaled_dot_product(
        q, k, v, visible, dropout_rate=rate, trace=trace, rng=rng
    )
    context = merge_heads(context)  # (B, T, H)
    output = linear(context, **params["output"])
    record(trace, context=context, output=output)
    return output, probs
