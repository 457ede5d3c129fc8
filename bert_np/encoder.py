"""The encoder: attention and feed-forward, each with residual and norm."""

from bert_np.attention import self_attention
from bert_np.feed_forward import feed_forward
from bert_np.functional import dropout, dropout_mask, layer_norm
from bert_np.trace import branch, record


def encoder_layer(x, params, attention_mask, config, *, trace=None, rng=None):
    """One layer: look around, then think, each added to what was there.

    x = layer_norm(x + self_attention(x))
    x = layer_norm(x + feed_forward(x))

    The norm stands after the residual sum (post-norm), unlike GPT-2's.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["layers"][i] of the parameter tree.
    attention_mask : ndarray of shape (B, T)
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches both dropouts on.

    Returns
    -------
    x : ndarray of shape (B, T, H)
    probs : ndarray of shape (B, A, T, T)

    Trace
    -----
    attention_norm.residual : (B, T, H)
    attention_norm.output : (B, T, H)
    ffn_norm.residual : (B, T, H)
    ffn_norm.output : (B, T, H)
    output : (B, T, H)

    Source: Vaswani et al. 2017, section 3.1.
    """
    attended, probs = self_attention(
        x, params["attention"], attention_mask, config,
        trace=branch(trace, "attention"), rng=rng,
    )
    x = add_and_norm(x, attended, params["attention_norm"], config,
                     trace=branch(trace, "attention_norm"), rng=rng)
    thought = feed_forward(x, params["ffn"], config, trace=branch(trace, "ffn"))
    x = add_and_norm(x, thought, params["ffn_norm"], config,
                     trace=branch(trace, "ffn_norm"), rng=rng)
    record(trace, output=x)
    return x, probs


def add_and_norm(x, update, params, config, *, trace=None, rng=None):
    """Add an update to what was there, and normalise the sum.

    layer_norm(x + dropout(update))

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    update : ndarray of shape (B, T, H)
    params : dict
        "attention_norm" or "ffn_norm" of a layer.
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches hidden dropout on.

    Returns
    -------
    ndarray of shape (B, T, H)

    Trace
    -----
    residual : (B, T, H)
    output : (B, T, H)

    Source: Vaswani et al. 2017, section 3.1.
    """
    mask = dropout_mask(update.shape, config.hidden_dropout_prob, rng, update.dtype)
    residual = x + dropout(update, mask)
    output = layer_norm(residual, **params, eps=config.layer_norm_eps)
    record(trace, dropout_mask=mask, residual=residual, output=output)
    return output


def encoder(
    x, params, attention_mask, config, *, trace=None, rng=None, return_attention=True
):
    """Run all layers, each on the output of the one before.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : list of dict
        params["layers"] of the parameter tree.
    attention_mask : ndarray of shape (B, T)
    config : BertConfig
    trace : list, optional
        Gets one dict a layer.
    rng : numpy.random.Generator, optional
    return_attention : bool
        False: the attention of each layer is let go, to save memory.

    Returns
    -------
    x : ndarray of shape (B, T, H)
    attention_probs : list of L ndarrays of shape (B, A, T, T)
        Empty where return_attention is False.

    Source: Devlin et al. 2018, section 3.
    """
    attention_probs = []
    for layer_params in params:
        layer_trace = None if trace is None else {}
        x, probs = encoder_layer(
            x, layer_params, attention_mask, config, trace=layer_trace, rng=rng
        )
        if trace is not None:
            trace.append(layer_trace)
        if return_attention:
            attention_probs.append(probs)
    return x, attention_probs
