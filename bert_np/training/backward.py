"""The backward pass of each part of BERT, in the order of the model.

Each function takes ``d_output``, the gradient of the loss with respect to
what the part returned, and the trace that the forward pass recorded. It
returns the gradient with respect to the part's input, and the gradients
of the part's parameters, nested like the parameters themselves.
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

    A sum passes its gradient unchanged to each of its terms. Word and
    segment rows collect it by id. Position t was added to every sequence,
    so the gradient of its row is the sum over the batch.

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

    For C = P V, with P after dropout: d_V = Pᵀ d_C and d_P = d_C Vᵀ. Then
    softmax_backward. For S = Q Kᵀ / sqrt(D): d_Q = d_S K / sqrt(D) and
    d_K = d_Sᵀ Q / sqrt(D). The score of a hidden key was replaced by a
    constant, so its d_S is 0.

    Parameters
    ----------
    d_context : ndarray of shape (B, A, T, D)
    trace : dict
        q, k, v, probs and, if dropout was on, dropout_mask.
    visible : ndarray of bool that broadcasts to (B, A, T, T)

    Returns
    -------
    d_q, d_k, d_v : ndarray of shape (B, A, T, D)
    """
    q, k, v, probs = (trace[name] for name in ("q", "k", "v", "probs"))
    mask = trace.get("dropout_mask")
    dropped = probs if mask is None else probs * mask
    d_v = dropped.swapaxes(-1, -2) @ d_context
    d_probs = dropout_backward(d_context @ v.swapaxes(-1, -2), mask)
    d_masked = softmax_backward(d_probs, probs)  # (B, A, Tq, Tk)
    d_scores = np.where(visible, d_masked, 0) / math.sqrt(q.shape[-1])
    return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, d_v


def self_attention_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through multi-head self-attention.

    Splitting and merging heads only move numbers, so each is the backward
    pass of the other. x went into query, key and value, so d_x is the sum
    of the three gradients that come back.

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
    d_q, d_k, d_v = scaled_dot_product_backward(d_context, trace, visible)
    d_x_query, query = linear_backward(merge_heads(d_q), x, params["query"]["W"])
    d_x_key, key = linear_backward(merge_heads(d_k), x, params["key"]["W"])
    d_x_value, value = linear_backward(merge_heads(d_v), x, params["value"]["W"])
    d_x = d_x_query + d_x_key + d_x_value
    return d_x, {"query": query, "key": key, "value": value, "output": output}


def feed_forward_backward(d_output, x, trace, params, config):
    """Send a gradient back through linear, activation, linear.

    The chain rule: the three steps in reverse order, each with its own
    derivative.

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
    d_inner = activation_backward(d_activated, trace["inner"])
    d_x, inner = linear_backward(d_inner, x, params["inner"]["W"])
    return d_x, {"inner": inner, "outer": outer}


def add_and_norm_backward(d_output, trace, params, config):
    """Send a gradient back through layer_norm(x + dropout(update)).

    The sum passes the same gradient to both terms. So the gradient reaches
    x without going through any matrix: this is what residuals are for.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    trace : dict
        trace["layers"][i]["attention_norm"] or ["ffn_norm"].
    params : dict
        params["layers"][i]["attention_norm"] or ["ffn_norm"].
    config : BertConfig

    Returns
    -------
    d_x : ndarray of shape (B, T, H)
    d_update : ndarray of shape (B, T, H)
        The same array as d_x if dropout was off.
    grads : dict
        gamma, beta.
    """
    d_x, grads = layer_norm_backward(
        d_output, trace["residual"], params["gamma"], config.layer_norm_eps
    )
    return d_x, dropout_backward(d_x, trace.get("dropout_mask")), grads


def encoder_layer_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through one encoder layer.

    The steps of the layer in reverse order. A value that went both into a
    block and around it, through the residual, gets the sum of the two
    gradients that come back.

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
        The input of the layer.
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
    d_residual, d_update, ffn_norm = add_and_norm_backward(
        d_output, trace["ffn_norm"], params["ffn_norm"], config
    )
    middle = trace["attention_norm"]["output"]
    d_block, ffn = feed_forward_backward(
        d_update, middle, trace["ffn"], params["ffn"], config
    )
    d_middle = d_residual + d_block
    d_residual, d_update, attention_norm = add_and_norm_backward(
        d_middle, trace["attention_norm"], params["attention_norm"], config
    )
    d_block, attention = self_attention_backward(
        d_update, x, trace["attention"], params["attention"], attention_mask, config
    )
    return d_residual + d_block, {
        "attention": attention,
        "attention_norm": attention_norm,
        "ffn": ffn,
        "ffn_norm": ffn_norm,
    }


def encoder_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through all layers, the last one first.

    The input of a layer is the output of the layer below, so the d_x of
    one layer is the d_output of the layer below (chain rule).

    Parameters
    ----------
    d_output : ndarray of shape (B, T, H)
    x : ndarray of shape (B, T, H)
        The input of the first layer.
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

    tanh' = 1 - tanh², and the tanh is the recorded output. Only the [CLS]
    row was read, so the other rows of d_x are 0.

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

    The output matrix is the transposed word table, Eᵀ, so the gradient of
    E is that of a linear map, transposed back. E is tied: it collects one
    gradient here, as output matrix, and one as table of the lookup. If it
    is not, mlm.decoder gets this one, and the table's is 0 here.

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
    word_table = params["embeddings"]["word"]
    output_table = mlm.get("decoder", word_table)
    d_norm, output = linear_backward(d_logits, trace["norm"], output_table.T)
    d_activated, norm = layer_norm_backward(
        d_norm, trace["activated"], mlm["norm"]["gamma"], config.layer_norm_eps
    )
    d_transform = activation_backward(d_activated, trace["transform"])
    d_x, transform = linear_backward(d_transform, x, mlm["transform"]["W"])
    grads = {"transform": transform, "norm": norm, "bias": output["b"]}
    if "decoder" in mlm:
        return d_x, grads | {"decoder": output["W"].T}, np.zeros_like(word_table)
    return d_x, grads, output["W"].T


def next_sentence_logits_backward(d_logits, pooler_output, params):
    """Send a gradient back through pooler_output W + b.

    This is a linear map: see linear_backward.

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


def sequence_logits_backward(d_logits, vector, params):
    """Send a gradient back through vector W + b.

    This is a linear map: see linear_backward.

    Parameters
    ----------
    d_logits : ndarray of shape (B, K)
    vector : ndarray of shape (B, H)
        What the head read of each text.
    params : dict
        params["sequence"].

    Returns
    -------
    d_vector : ndarray of shape (B, H)
    grads : dict
        W, b.
    """
    return linear_backward(d_logits, vector, params["W"])


def token_logits_backward(d_logits, last_hidden_state, params):
    """Send a gradient back through last_hidden_state W + b.

    The same W and b serve every token, so their gradients sum over all of
    them: see linear_backward.

    Parameters
    ----------
    d_logits : ndarray of shape (B, T, K)
    last_hidden_state : ndarray of shape (B, T, H)
    params : dict
        params["token"].

    Returns
    -------
    d_last_hidden_state : ndarray of shape (B, T, H)
    grads : dict
        W, b.
    """
    return linear_backward(d_logits, last_hidden_state, params["W"])


def span_logits_backward(d_start, d_end, last_hidden_state, params):
    """Send the gradients of both logits back through one linear map.

    The logits of start and end are the two columns of
    last_hidden_state W + b.

    Parameters
    ----------
    d_start : ndarray of shape (B, T)
    d_end : ndarray of shape (B, T)
    last_hidden_state : ndarray of shape (B, T, H)
    params : dict
        params["span"].

    Returns
    -------
    d_last_hidden_state : ndarray of shape (B, T, H)
    grads : dict
        W, b.
    """
    d_logits = np.stack([d_start, d_end], axis=-1)  # (B, T, 2)
    return linear_backward(d_logits, last_hidden_state, params["W"])


def mean_pool_backward(d_output, attention_mask):
    """Send a gradient back through the mean of each text's real tokens.

    Each of the n real tokens enters the mean with the factor 1/n, so each
    gets d_output / n. Padding did not enter it and gets 0.

    Parameters
    ----------
    d_output : ndarray of shape (B, H)
    attention_mask : ndarray of shape (B, T)

    Returns
    -------
    ndarray of shape (B, T, H)
    """
    real = attention_mask[:, :, None].astype(d_output.dtype)  # (B, T, 1)
    return real / real.sum(axis=1, keepdims=True) * d_output[:, None]


def _activation_backward(config):
    return ACTIVATION_BACKWARDS[ACTIVATIONS[config.hidden_act]]
