"""Remove a head or a layer, and measure what changes."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import check_positions, require_layers, require_real
from bert_np.config import require_config
from bert_np.errors import BertError, require_callable
from bert_np.heads import masked_lm_logits
from bert_np.inputs import check_inputs
from bert_np.model import bert, embed, encoder, encoder_layer
from bert_np.tokenizer import check_count


def without_head(params, config, layer, head):
    """Return the parameters with one head's output set to 0.

    The head still computes its attention; the rows of the output matrix
    that would pass its context on are 0.

    Parameters
    ----------
    params : dict
        Never written to; all other arrays are shared.
    config : BertConfig
    layer, head : int

    Returns
    -------
    dict

    Source: Michel et al. 2019, section 3.
    """
    require_config(config)
    layer = check_count(layer, "layer", 0, config.num_hidden_layers - 1)
    head = check_count(head, "head", 0, config.num_attention_heads - 1)
    require_layers(params)
    D = config.head_size
    layers = list(params["layers"])
    attention = dict(layers[layer]["attention"])
    W = attention["output"]["W"].copy()
    W[head * D : (head + 1) * D] = 0
    attention["output"] = attention["output"] | {"W": W}
    layers[layer] = layers[layer] | {"attention": attention}
    return params | {"layers": layers}


def without_layer(params, config, layer):
    """Return the model with one layer removed.

    All of the layer is removed: attention, feed-forward, both residual
    sums and both norms. Its input goes unchanged to the next layer.
    Setting the outputs of attention and feed-forward to 0 would differ:
    the two norms would still act.

    Parameters
    ----------
    params : dict
        Never written to; all arrays are shared.
    config : BertConfig
    layer : int

    Returns
    -------
    params : dict
    config : BertConfig
        Both with one layer fewer.

    Raises
    ------
    BertError
        Also if the model has only one layer.

    Source: Fan et al. 2020 (1909.11556) and Sajjad et al. 2020
    (2004.03844), who drop layers in this way.
    """
    require_config(config)
    L = config.num_hidden_layers
    layer = check_count(layer, "layer", 0, L - 1)
    if L == 1:
        raise BertError(
            "config.num_hidden_layers = 1, allowed: 2 or more; no layer would be left"
        )
    require_layers(params)
    layers = params["layers"][:layer] + params["layers"][layer + 1 :]
    return params | {"layers": layers}, replace(config, num_hidden_layers=L - 1)


class AblationEffects(NamedTuple):
    """What changes without each head and without each layer."""

    heads: np.ndarray  # (L, A): how far the last hidden state moves
    layers: np.ndarray  # (L,)
    heads_kl: np.ndarray | None  # (L, A): how far the MLM predictions move, nats
    layers_kl: np.ndarray | None  # (L,)


def ablation_effects(
    input_ids,
    params,
    config,
    *,
    segment_ids=None,
    attention_mask=None,
    positions=None,
    report=None,
):
    """Measure how far the output moves without each head and each layer.

    The mean over the real tokens of ||h' - h|| / ||h||, where h is the
    last hidden state and h' that of the ablated model: see without_head
    and without_layer. With positions, also the mean of KL(q || q') in
    nats, where q is the MLM prediction and q' the ablated model's.

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
    params : dict
    config : BertConfig
    segment_ids, attention_mask : ndarray of shape (B, T), optional
        As in ``bert``.
    positions : ndarray of shape (B, T), optional
        1 where MLM predictions are compared, such as at [MASK].
    report : function, optional
        Called with a line of text after each layer.

    Returns
    -------
    AblationEffects
        float64.

    Raises
    ------
    BertError
        Also if positions are given and there is no MLM head.

    Source: Michel et al. 2019, section 3 (heads, with task scores in
    place of these two measures).
    """
    if report is not None:
        require_callable("report", report)
    compare, inputs, mask = _prepare_ablation(
        input_ids, segment_ids, attention_mask, positions, params, config
    )
    L, A = config.num_hidden_layers, config.num_attention_heads
    effects = np.zeros((L, A + 1, 2))  # column A: the layer
    for layer, x in enumerate(inputs):
        for head in range(A):
            layers = without_head(params, config, layer, head)["layers"][layer:]
            effects[layer, head] = compare(_finish(x, layers, mask, config))
        effects[layer, A] = compare(
            _finish(x, params["layers"][layer + 1 :], mask, config)
        )
        if report is not None:
            report(f"layer {layer + 1}/{L}: {A} heads and the layer left out")
    moved, kl = effects[..., 0], effects[..., 1]
    if positions is None:
        return AblationEffects(moved[:, :A], moved[:, A], None, None)
    return AblationEffects(moved[:, :A], moved[:, A], kl[:, :A], kl[:, A])


def _finish(x, layers, attention_mask, config):
    """Return the last hidden state, from what goes into the first of `layers`."""
    return encoder(x, layers, attention_mask, config, return_attention=False)[0]


def _prepare_ablation(ids, segment_ids, attention_mask, positions, params, config):
    """Return the function that measures the change of h', the inputs, the mask."""
    given = {"segment_ids": segment_ids, "attention_mask": attention_mask}
    whole = bert(ids, params, config, **given, return_attention=False)  # checks all
    ids, segment_ids, mask = check_inputs(ids, segment_ids, attention_mask, config)
    inputs = [embed(ids, segment_ids, params["embeddings"], config)]
    for layer in params["layers"][:-1]:
        inputs.append(encoder_layer(inputs[-1], layer, mask, config)[0])
    require_real(mask)
    asked = None if positions is None else check_positions(positions, ids.shape)
    compare = _compare_with(whole["last_hidden_state"], mask, asked, params, config)
    return compare, inputs, mask


def _compare_with(hidden, mask, asked, params, config):
    def log_probs(state):
        logits = masked_lm_logits(state[asked][None], params, config)[0]
        logits = logits.astype(np.float64)
        top = logits.max(axis=-1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))

    whole = None if asked is None else log_probs(hidden)
    real = hidden[mask].astype(np.float64)

    def compare(ablated):
        change = np.linalg.norm(ablated[mask] - real, axis=-1)
        moved = (change / np.linalg.norm(real, axis=-1)).mean()
        if asked is None:
            return moved, 0
        gaps = np.exp(whole) * (whole - log_probs(ablated))
        return moved, gaps.sum(axis=-1).mean()

    return compare
