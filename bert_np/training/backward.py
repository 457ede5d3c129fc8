"""The backward pass of each part of BERT, in the order of the model.

Each function takes ``d_output``, the gradient of the loss with respect to
what the part returned, and what the forward pass recorded in its trace.
It returns the gradient of what went in, and the gradients of the part's
parameters, nested like them.
"""

import math

import numpy as np

from bert_np.attention import merge_heads, split_heads
from bert_np.functional import ACTIVATIONS
from bert_np.training.functional_backward import (
    ACTIVATION_BACKWARDS,
    dropout_backward,
    layer_norm_backward,
    linear_backward,
    lookup_backward,
    softmax_backward,
)


def embed_backward(d_output, trace, input_ids, segment_ids, params, config):
    """Send a gradient back to the three embedding tables.

    A sum hands its gradient to each term unchanged. The word and segment
    rows collect it by id; position t was added to every sequence, so its
    row sums over the batch.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    trace : dict
        trace["embeddings"].
    input_ids : ndarray of shape (B, T)
    segment_ids : ndarray of shape (B, T)
    params : dict
        params["embeddings"].
    config : BertConfig

    Returns
    -------
    dict
        Shaped like params["embeddings"].
    """
    d_norm = dropout_backward(d_output, trace.get("dropout_mask"))
    d_sum, norm = layer_norm_backward(
        d_norm, trace["sum"], params["norm"]["gamma"], config.layer_norm_eps
    )
    position = np.zeros_like(params["position"])
    position[: d_sum.shape[1]] = d_sum.sum(axis=0)
    return {
        "word": lookup_backward(d_sum, input_ids, len(params["word"])),
        "position": position,
        "segment": lookup_backward(d_sum, segment_ids, len(params["segment"])),
        "norm": norm,
    }


def scaled_dot_product_backward(d_context, trace, visible):
    """Send a gradient back through context = softmax(q kᵀ / sqrt(D)) v.

    For C = P V: d_V = Pᵀ d_C and d_P = d_C Vᵀ. Then softmax_backward. For
    S = Q Kᵀ / sqrt(D): d_Q = d_S K / sqrt(D), d_K = d_Sᵀ Q / sqrt(D). The
    score of a key that is not visible was a constant: its d_S is 0.

    Parameters
    ----------
    d_context : ndarray of shape (B, A, T, D)
    trace : dict
        q, k, v, probs and, where some were dropped, dropout_mask.
    visible : ndarray of bool that broadcasts to (B, A, T, T)

    Returns
    -------
    d_q, d_k, d_v : ndarray of shape (B, A, T, D)
    """
    q, k, v, probs = (trace[name] for name in ("q", "k", "v", "probs"))
    mask = trace.get("dropout_mask")
    used = probs if mask is None else probs * mask
    d_v = used.swapaxes(-1, -2) @ d_context
    d_probs = dropout_backward(d_context @ v.swapaxes(-1, -2), mask)
    d_scores = softmax_backward(d_probs, probs)  # (B, A, Tq, Tk)
    np.copyto(d_scores, 0, where=~visible)
    d_scores /= math.sqrt(q.shape[-1])
    return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, d_v


def self_attention_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through multi-head self-attention.

    Splitting and merging heads only move numbers, so their backwards are
    each other. x went into query, key and value, so d_x is the sum of
    what comes back from the three.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
    trace : dict
        trace["layers"][i]["attention"].
    params : dict
        params["layers"][i]["attention"].
    attention_mask : ndarray of shape (B, T)
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : dict
        Shaped like params.
    """
    d_context, output = linear_backward(
        d_output, trace["context"], params["output"]["W"]
    )
    d_context = split_heads(d_context, config.num_attention_heads)  # (B, A, T, D)
    visible = attention_mask[:, None, None, :].astype(bool)  # (B, 1, 1, Tk)
    d_heads = scaled_dot_product_backward(d_context, trace, visible)
    grads, d_x = {}, 0
    for name, d_head in zip(("query", "key", "value"), d_heads):
        d_part, grads[name] = linear_backward(merge_heads(d_head), x, params[name]["W"])
        d_x = d_x + d_part
    return d_x, {**grads, "output": output}


def feed_forward_backward(d_output, x, trace, params, config):
    """Send a gradient back through the two-layer map.

    The three steps in reverse: outer linear map, activation, inner linear
    map, each with its own derivative (chain rule).

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
    trace : dict
        trace["layers"][i]["ffn"].
    params : dict
        params["layers"][i]["ffn"].
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : dict
        Shaped like params.
    """
    activation_backward = _activation_backward(config)
    d_activated, outer = linear_backward(
        d_output, trace["activated"], params["outer"]["W"]
    )
    d_inner = activation_backward(d_activated, trace["inner"], trace["activated"])
    d_x, inner = linear_backward(d_inner, x, params["inner"]["W"])
    return d_x, {"inner": inner, "outer": outer}


def add_and_norm_backward(d_output, trace, params, config):
    """Send a gradient back through layer_norm(x + dropout(update)).

    The sum hands the same gradient to both terms. So x is reached by a
    road without any matrix on it; this is what residuals are for.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    trace : dict
        trace["layers"][i]["attention_norm"] or ["ffn_norm"].
    params : dict
        The same of params.
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    d_update : ndarray of shape (B, T, H)
        The same array as d_x where nothing was dropped.
    grads : dict
        gamma, beta.
    """
    d_x, grads = layer_norm_backward(
        d_output, trace["residual"], params["gamma"], config.layer_norm_eps
    )
    return d_x, dropout_backward(d_x, trace.get("dropout_mask")), grads


def encoder_layer_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through one encoder layer.

    The layer's steps in reverse. Where a value went two ways, residual
    and block, its gradient is the sum of what both send back.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
        What went into the layer.
    trace : dict
        trace["layers"][i].
    params : dict
        params["layers"][i].
    attention_mask : ndarray of shape (B, T)
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : dict
        Shaped like params.
    """
    d_middle, d_thought, ffn_norm = add_and_norm_backward(
        d_output, trace["ffn_norm"], params["ffn_norm"], config
    )
    middle = trace["attention_norm"]["output"]
    d_block, ffn = feed_forward_backward(
        d_thought, middle, trace["ffn"], params["ffn"], config
    )
    d_x, d_attended, attention_norm = add_and_norm_backward(
        d_middle + d_block, trace["attention_norm"], params["attention_norm"], config
    )
    d_block, attention = self_attention_backward(
        d_attended, x, trace["attention"], params["attention"], attention_mask, config
    )
    return d_x + d_block, {
        "attention": attention,
        "attention_norm": attention_norm,
        "ffn": ffn,
        "ffn_norm": ffn_norm,
    }


def encoder_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through all layers, the last one first.

    Each layer's input was the output of the one before, so the d_x of one
    is the d_output of the next one down (chain rule).

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
        What went into the first layer.
    trace : list of dict
        trace["layers"].
    params : list of dict
        params["layers"].
    attention_mask : ndarray of shape (B, T)
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : list of dict
        Shaped like params.
    """
    inputs = [x] + [layer["output"] for layer in trace[:-1]]
    grads, d_x = [], d_output
    for layer_input, layer_trace, layer_params in zip(
        reversed(inputs), reversed(trace), reversed(params)
    ):
        d_x, layer_grads = encoder_layer_backward(
            d_x, layer_input, layer_trace, layer_params, attention_mask, config
        )
        grads.insert(0, layer_grads)
    return d_x, grads


def pool_backward(d_output, x, trace, params):
    """Send a gradient back through tanh(x[:, 0] W + b).

    tanh' = 1 - tanh², and tanh is what the forward pass gave. Only the
    [CLS] row was read, so the other rows of d_x are 0.

    Parameters
    ----------
    d_output : ndarray of shape (B, H)
    x : ndarray of shape (B, T, H)
    trace : dict
        trace["pooler"].
    params : dict
        params["pooler"].

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : dict
        W, b.
    """
    d_dense = d_output * (1 - np.square(trace["output"]))
    d_x = np.zeros_like(x)
    d_x[:, 0], grads = linear_backward(d_dense, x[:, 0], params["W"])
    return d_x, grads


def masked_lm_logits_backward(d_logits, x, trace, params, config):
    """Send a gradient back through layer_norm(gelu(x W + b)) Eᵀ + bias.

    The output matrix is the word table E, transposed, so its gradient is
    that of a linear map, transposed back. E is tied: this is one of the
    two ends from which it learns, the other is the lookup.

    Parameters
    ----------
    d_logits : ndarray of shape (B, T, V)
    x : ndarray of shape (B, T, H)
    trace : dict
        trace["mlm"].
    params : dict
        The whole tree.
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    grads : dict
        Shaped like params["mlm"].
    d_word : ndarray of shape (V, H)
    """
    mlm, activation_backward = params["mlm"], _activation_backward(config)
    d_norm, output = linear_backward(
        d_logits, trace["norm"], params["embeddings"]["word"].T
    )
    d_activated, norm = layer_norm_backward(
        d_norm, trace["activated"], mlm["norm"]["gamma"], config.layer_norm_eps
    )
    d_transform = activation_backward(
        d_activated, trace["transform"], trace["activated"]
    )
    d_x, transform = linear_backward(d_transform, x, mlm["transform"]["W"])
    grads = {"transform": transform, "norm": norm, "bias": output["b"]}
    return d_x, grads, output["W"].T


def next_sentence_logits_backward(d_logits, pooler_output, params):
    """Send a gradient back through pooler_output W + b.

    A plain linear map: see linear_backward.

    Parameters
    ----------
    d_logits : ndarray of shape (B, 2)
    pooler_output : ndarray of shape (B, H)
    params : dict
        params["nsp"].

    Returns
    -------
    d_pooler_output : ndarray of shape (B, H)
    grads : dict
        W, b.
    """
    return linear_backward(d_logits, pooler_output, params["W"])


def _activation_backward(config):
    return ACTIVATION_BACKWARDS[ACTIVATIONS[config.hidden_act]]
