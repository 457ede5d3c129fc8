"""The two pre-training heads: masked words and next sentence."""

import numpy as np

from bert_np import functional
from bert_np.config import require_config
from bert_np.errors import BertError
from bert_np.functional import layer_norm, linear
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
        Where the model has no MLM head.

    Trace
    -----
    mlm.transform : (B, T, H)
    mlm.activated : (B, T, H)
    mlm.norm : (B, T, H)
    mlm.logits : (B, T, V)

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    mlm = _require_head(params, "mlm", "masked-word (MLM)")
    require_config(config)
    _require_vectors("last_hidden_state", last_hidden_state, mlm["transform"]["W"])
    trace = branch(trace, "mlm")
    activation = getattr(functional, config.activation)
    transform = linear(last_hidden_state, **mlm["transform"])  # (B, T, H)
    activated = activation(transform)
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
        Where the model has no NSP head or no pooler.

    Trace
    -----
    nsp.logits : (B, 2)

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    nsp = _require_head(params, "nsp", "next-sentence (NSP)")
    if pooler_output is None:
        raise BertError(
            "pooler_output is None: this model has no pooler, NSP needs one"
        )
    _require_vectors("pooler_output", pooler_output, nsp["W"])
    trace = branch(trace, "nsp")
    logits = linear(pooler_output, **nsp)  # (B, 2)
    record(trace, logits=logits)
    return logits


def _require_vectors(name, x, W):
    """An array of floats whose last axis is H, the rows of W."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        found = getattr(x, "dtype", type(x).__name__)
        raise BertError(f"{name} is {found}, allowed: an array of float32 or float64")
    if x.shape[-1:] != W.shape[:1]:
        raise BertError(f"{name} has shape {x.shape}, allowed: (..., {W.shape[0]})")


def _require_head(params, name, title):
    if not isinstance(params, dict):
        raise BertError(f"params is {type(params).__name__}, allowed: a nested dict")
    if name not in params:
        raise BertError(
            f"params has no {name!r}: this model came without the {title} head; "
            f"parts present: {', '.join(params)}"
        )
    return params[name]
