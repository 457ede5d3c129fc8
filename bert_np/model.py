"""BERT, from figure 1's bottom to its top: embed, encode, pool.

Each function is one part of the model. ``params`` is that part's own
dict within the parameter tree, ``trace`` (if given) receives its
intermediate results, and ``rng`` (if given) switches dropout on, as in
training.
"""

import numpy as np

from bert_np.attention import self_attention
from bert_np.checked import checked
from bert_np.functional import ACTIVATIONS, dropout, layer_norm, linear
from bert_np.inputs import check_bert_options, check_inputs
from bert_np.parameters import check_params
from bert_np.trace import branch, record


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
    """Run BERT on a batch of token ids: embed, encode, pool.

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
        Integers in 0..V-1, of any integer dtype; nested lists are
        accepted. T is at most config.max_position_embeddings.
    params : dict
        The parameter tree, float32 or float64; never written to.
    config : BertConfig
    segment_ids : ndarray of shape (B, T), optional
        Integers in 0..S-1; 0 everywhere if not given.
    attention_mask : ndarray of shape (B, T), optional
        1 (or True) for a real token, 0 for padding. If not given, it is
        derived: 1 where the id is not config.pad_token_id. HuggingFace
        assumes all ones instead. In a row without any 1, each token
        attends to all positions equally.
    trace : dict, optional
        An empty dict; receives a copy of every intermediate result,
        nested like params.
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

        The attention probabilities are those before dropout; each row
        sums to 1. Positions count from the left, so results differ
        between padding on the left and padding on the right.

    Raises
    ------
    BertError
        Naming the argument, the value found and the values allowed.

    Source: Devlin et al. 2018, section 3.
    """
    check_params(params, config)
    check_bert_options(trace, rng, return_attention)
    input_ids, segment_ids, attention_mask = check_inputs(
        input_ids, segment_ids, attention_mask, config
    )
    part = branch(trace, "embeddings")
    x = embed(input_ids, segment_ids, params["embeddings"], config, trace=part, rng=rng)
    options = {"rng": rng, "return_attention": return_attention}
    part = branch(trace, "layers", [])
    x, attention_probs = encoder(
        x, params["layers"], attention_mask, config, trace=part, **options
    )
    pooled = None
    if "pooler" in params:
        pooled = pool(x, params["pooler"], trace=branch(trace, "pooler"))
    return {
        "last_hidden_state": x,
        "pooler_output": pooled,
        "attention_probs": attention_probs,
    }


@checked
def embed(input_ids, segment_ids, params, config, *, trace=None, rng=None):
    """Add a word, a position and a segment vector, then normalise the sum.

    layer_norm(word[id] + position[t] + segment[s])

    Parameters
    ----------
    input_ids : ndarray of int of shape (B, T)
        Integers in 0..V-1; not checked here.
    segment_ids : ndarray of int of shape (B, T)
        Integers in 0..S-1: 0 for the first text, 1 for the second.
    params : dict
        params["embeddings"] of the parameter tree.
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches hidden dropout on.

    Returns
    -------
    ndarray of shape (B, T, H)

    Trace
    -----
    word : (B, T, H)
    position : (T, H)
    segment : (B, T, H)
    sum : (B, T, H)
    norm : (B, T, H)
    output : (B, T, H)

    Source: Devlin et al. 2018, section 3 and figure 2.
    """
    word = params["word"][input_ids]  # (B, T, H)
    position = params["position"][: input_ids.shape[1]]  # (T, H)
    segment = params["segment"][segment_ids]  # (B, T, H)
    total = word + position + segment
    norm = layer_norm(total, **params["norm"], eps=config.layer_norm_eps)
    record(trace, word=word, position=position, segment=segment, sum=total, norm=norm)
    x = dropout(norm, config.hidden_dropout_prob, rng, trace)
    record(trace, output=x)
    return x


@checked
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
        Receives one dict per layer.
    rng : numpy.random.Generator, optional
    return_attention : bool
        False: attention probabilities are not kept, to save memory.

    Returns
    -------
    x : ndarray of shape (B, T, H)
    attention_probs : list of L ndarrays of shape (B, A, T, T)
        Empty if return_attention is False.

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


@checked
def encoder_layer(x, params, attention_mask, config, *, trace=None, rng=None):
    """Run one layer: gather from other tokens, then process each alone.

    x = layer_norm(x + self_attention(x))
    x = layer_norm(x + feed_forward(x))

    The norm follows the residual sum (post-norm), unlike GPT-2's.

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
    part = branch(trace, "attention")
    attended, probs = self_attention(
        x, params["attention"], attention_mask, config, trace=part, rng=rng
    )
    part = branch(trace, "attention_norm")
    x = add_and_norm(x, attended, params["attention_norm"], config, trace=part, rng=rng)
    part = branch(trace, "ffn")
    thought = feed_forward(x, params["ffn"], config, trace=part)
    part = branch(trace, "ffn_norm")
    x = add_and_norm(x, thought, params["ffn_norm"], config, trace=part, rng=rng)
    record(trace, output=x)
    return x, probs


@checked
def add_and_norm(x, update, params, config, *, trace=None, rng=None):
    """Add an update to the vectors so far, and normalise the sum.

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
    residual = x + dropout(update, config.hidden_dropout_prob, rng, trace)
    output = layer_norm(residual, **params, eps=config.layer_norm_eps)
    record(trace, residual=residual, output=output)
    return output


@checked
def feed_forward(x, params, config, *, trace=None):
    """Widen each vector, pass it through GELU, and narrow it again.

    gelu(x W1 + b1) W2 + b2, with config.hidden_act in place of gelu.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["layers"][i]["ffn"] of the parameter tree.
    config : BertConfig
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, T, H)

    Trace
    -----
    inner : (B, T, F)
    activated : (B, T, F)
    outer : (B, T, H)

    Source: Vaswani et al. 2017, equation 2, with GELU in place of ReLU
    (Devlin et al. 2018, appendix A.2).
    """
    inner = linear(x, **params["inner"])  # (B, T, F)
    activated = ACTIVATIONS[config.hidden_act](inner)
    outer = linear(activated, **params["outer"])  # (B, T, H)
    record(trace, inner=inner, activated=activated, outer=outer)
    return outer


@checked
def pool(x, params, *, trace=None):
    """Map the vector of the first token, [CLS], through a dense tanh layer.

    tanh(x[:, 0] W + b). It is not the [CLS] row itself.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["pooler"] of the parameter tree.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, H)
        Between -1 and 1.

    Trace
    -----
    dense : (B, H)
    output : (B, H)

    Source: Devlin et al. 2018, section 3; the dense tanh layer appears
    only in the released code.
    """
    dense = linear(x[:, 0], **params)  # (B, H)
    output = np.tanh(dense)
    record(trace, dense=dense, output=output)
    return output
