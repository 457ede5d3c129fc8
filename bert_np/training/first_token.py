"""One layer, run for the first token alone, forward and backward.

A pooler reads the last hidden state of [CLS] and no other. So the last
layer needs one query for each text. Keys and values come from all tokens,
but the feed-forward network, most of a layer's work, runs on one token.
Both results and gradients are those of the whole layer.
"""

from bert_np.attention import merge_heads, scaled_dot_product, split_heads
from bert_np.functional import linear
from bert_np.model import add_and_norm, feed_forward
from bert_np.trace import branch, record
from bert_np.training.backward import (
    add_and_norm_backward,
    feed_forward_backward,
    scaled_dot_product_backward,
)
from bert_np.training.functional_backward import linear_backward


def first_token_layer(x, params, attention_mask, config, *, trace=None, rng=None):
    """Run one layer for the first token of each text; see encoder_layer.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["layers"][i] of the parameter tree.
    attention_mask : ndarray of shape (B, T)
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional

    Returns
    -------
    ndarray of shape (B, 1, H)
    """
    first, part = x[:, :1], branch(trace, "attention")
    attended = _attend(first, x, params["attention"], attention_mask, config, part, rng)
    part = branch(trace, "attention_norm")
    middle = add_and_norm(
        first, attended, params["attention_norm"], config, trace=part, rng=rng
    )
    thought = feed_forward(middle, params["ffn"], config, trace=branch(trace, "ffn"))
    part = branch(trace, "ffn_norm")
    return add_and_norm(
        middle, thought, params["ffn_norm"], config, trace=part, rng=rng
    )


def _attend(first, x, params, attention_mask, config, trace, rng):
    """Run self_attention with the queries of the first token alone."""
    q, k, v = (
        split_heads(linear(rows, **params[name]), config.num_attention_heads)
        for name, rows in (("query", first), ("key", x), ("value", x))
    )
    record(trace, q=q, k=k, v=v)
    visible = attention_mask[:, None, None, :].astype(bool)  # (B, 1, 1, Tk)
    rate = config.attention_probs_dropout_prob
    context, _ = scaled_dot_product(
        q, k, v, visible, dropout_rate=rate, trace=trace, rng=rng
    )
    context = merge_heads(context)  # (B, 1, H)
    record(trace, context=context)
    return linear(context, **params["output"])


def first_token_layer_backward(d_output, x, trace, params, attention_mask, config):
    """Send a gradient back through first_token_layer.

    The steps of encoder_layer_backward. The first token's residual and
    query meet the keys and values in the first row of d_x.

    Parameters
    ----------
    d_output : ndarray of shape (B, 1, H)
    x : ndarray of shape (B, T, H)
    trace : dict
    params : dict
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
    d_residual, d_update, attention_norm = add_and_norm_backward(
        d_residual + d_block, trace["attention_norm"], params["attention_norm"], config
    )
    d_x, d_first, attention = _attend_backward(
        d_update, x, trace["attention"], params["attention"], attention_mask, config
    )
    d_x[:, :1] += d_first + d_residual
    return d_x, {
        "attention": attention,
        "attention_norm": attention_norm,
        "ffn": ffn,
        "ffn_norm": ffn_norm,
    }


def _attend_backward(d_output, x, trace, params, attention_mask, config):
    """Return (d_x of keys and values, d_x of the first query, grads)."""
    d_context, output = linear_backward(
        d_output, trace["context"], params["output"]["W"]
    )
    d_context = split_heads(d_context, config.num_attention_heads)  # (B, A, 1, D)
    visible = attention_mask[:, None, None, :].astype(bool)
    d_q, d_k, d_v = scaled_dot_product_backward(d_context, trace, visible)
    d_first, query = linear_backward(merge_heads(d_q), x[:, :1], params["query"]["W"])
    d_x_key, key = linear_backward(merge_heads(d_k), x, params["key"]["W"])
    d_x_value, value = linear_backward(merge_heads(d_v), x, params["value"]["W"])
    grads = {"query": query, "key": key, "value": value, "output": output}
    return d_x_key + d_x_value, d_first, grads
