"""The two pre-training heads: masked words and next sentence."""

from bert_np.config import require_config
from bert_np.functional import ACTIVATIONS, layer_norm, linear
from bert_np.inputs import (
    check_pooler_output,
    check_trace,
    check_vectors,
    require_head,
)
from bert_np.trace import branch, record


def masked_lm_logits(last_hidden_state, params, config, *, trace=None):
    """Score every word of the vocabulary at every position.

    layer_norm(gelu(x W + b)) word_tableᵀ + bias: a dense layer, GELU, a
    norm, then the word embeddings themselves as the output matrix.

    Parameters
    ----------
    last_hidden_state : ndarray of shape (B, T, H)
    params : dict
        The whole tree: "mlm", and the tied "embeddings".
    config : BertConfig
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, T, V)
        Logits; softmax over the last axis gives probabilities.

    Raises
    ------
    BertError
        If the model has no MLM head.

    Trace
    -----
    mlm.transform : (B, T, H)
    mlm.activated : (B, T, H)
    mlm.norm : (B, T, H)
    mlm.logits : (B, T, V)

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    mlm = require_head(params, "mlm", "masked-word (MLM)")
    require_config(config)
    check_vectors("last_hidden_state", last_hidden_state, mlm["transform"]["W"])
    check_trace(trace)
    trace = branch(trace, "mlm")
    transform = linear(last_hidden_state, **mlm["transform"])  # (B, T, H)
    activated = ACTIVATIONS[config.hidden_act](transform)
    norm = layer_norm(activated, **mlm["norm"], eps=config.layer_norm_eps)
    logits = linear(norm, params["embeddings"]["word"].T, mlm["bias"])  # (B, T, V)
    record(trace, transform=transform, activated=activated, norm=norm, logits=logits)
    return logits


def next_sentence_logits(pooler_output, params, *, trace=None):
    """Score whether the second text follows the first.

    Parameters
    ----------
    pooler_output : ndarray of shape (B, H)
    params : dict
        The whole tree; its "nsp" is used.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, 2)
        Column 0: it is the next sentence. Column 1: it is not.

    Raises
    ------
    BertError
        If the model has no NSP head or no pooler.

    Trace
    -----
    nsp.logits : (B, 2)

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    nsp = require_head(params, "nsp", "next-sentence (NSP)")
    check_pooler_output(pooler_output, nsp["W"])
    check_trace(trace)
    trace = branch(trace, "nsp")
    logits = linear(pooler_output, **nsp)  # (B, 2)
    record(trace, logits=logits)
    return logits
