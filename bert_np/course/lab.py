"""The debugging lab: five BERTs, the "patients", each broken in one place.

The student runs a patient, compares its trace with the library's, and
names the first stage that differs. All functions of a patient but one are
the library's own.
"""

import math
from dataclasses import replace

import numpy as np

from bert_np.attention import merge_heads, split_heads
from bert_np.errors import BertError, short
from bert_np.functional import linear, softmax
from bert_np.inputs import check_inputs
from bert_np.model import add_and_norm, embed, feed_forward
from bert_np.parameters import check_params
from bert_np.trace import branch, record


def broken_bert(number, input_ids, params, config):
    """Run the patient with this number and return its trace.

    Parameters
    ----------
    number : int
        1 to 5.
    input_ids : array-like of shape (B, T)
        An id equal to config.pad_token_id is padding.
    params : dict
        The parameter tree; never written to.
    config : BertConfig

    Returns
    -------
    dict
        The trace of the embeddings and the layers, as `bert` fills it.
    """
    if type(number) is not int or number not in PATIENTS:
        raise BertError(f"number = {short(number)}, allowed: 1 to {len(PATIENTS)}")
    check_params(params, config)
    input_ids, segment_ids, mask = check_inputs(input_ids, None, None, config)
    parts, trace = HEALTHY | PATIENTS[number], {}
    visible = parts["mask"](mask)
    x = embed(
        input_ids,
        segment_ids,
        params["embeddings"],
        config,
        trace=branch(trace, "embeddings"),
    )
    layers = branch(trace, "layers", [])
    for layer_params in params["layers"]:
        layers.append({})
        x = _layer(x, layer_params, visible, config, parts, layers[-1])
    return trace


def _layer(x, params, visible, config, parts, trace):
    """Run one encoder layer, made of the given parts."""
    update = _attention(
        x, params["attention"], visible, config, parts, branch(trace, "attention")
    )
    x = parts["first norm"](
        x,
        update,
        params["attention_norm"],
        config,
        trace=branch(trace, "attention_norm"),
    )
    update = parts["feed-forward"](x, params["ffn"], config, trace=branch(trace, "ffn"))
    x = add_and_norm(
        x, update, params["ffn_norm"], config, trace=branch(trace, "ffn_norm")
    )
    record(trace, output=x)
    return x


def _attention(x, params, visible, config, parts, trace):
    """Run self-attention, made of the given parts."""
    q, k, v = (
        split_heads(linear(x, **params[name]), config.num_attention_heads)
        for name in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(config.head_size)
    seen = visible[:, None, None, :] > 0
    masked_scores = np.where(seen, scores, np.finfo(scores.dtype).min)
    probs = parts["softmax"](masked_scores)
    context = parts["merge"](probs @ v)
    output = linear(context, **params["output"])
    record(
        trace,
        q=q,
        k=k,
        v=v,
        scores=scores,
        masked_scores=masked_scores,
        probs=probs,
        context=context,
        output=output,
    )
    return output


# ------------------------------------------------------------- the faults


def _merge_by_reshape(x):
    B, A, T, D = x.shape
    return x.reshape(B, T, A * D)


def _softmax_over_queries(scores):
    return softmax(scores, axis=-2)


def _tanh_feed_forward(x, params, config, *, trace):
    return feed_forward(x, params, replace(config, hidden_act="gelu_new"), trace=trace)


def _without_residual(x, update, params, config, *, trace):
    return add_and_norm(np.zeros_like(x), update, params, config, trace=trace)


HEALTHY = {
    "mask": np.asarray,
    "softmax": softmax,
    "merge": merge_heads,
    "first norm": add_and_norm,
    "feed-forward": feed_forward,
}
PATIENTS = {
    1: {"softmax": _softmax_over_queries},
    2: {"feed-forward": _tanh_feed_forward},
    3: {"merge": _merge_by_reshape},
    4: {"mask": np.ones_like},
    5: {"first norm": _without_residual},
}
