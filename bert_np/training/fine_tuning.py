"""One batch of a task: the head's logits, the loss, all gradients, one update.

The tree of parameters holds what is trained and nothing else: the top
layers, the head, the pooler if the head reads it, and the embeddings if
everything is trained. Without "embeddings" a batch brings "hidden", what
the frozen layers made of its texts. A batch is a dict of arrays:
    input_ids, segment_ids : (B, T); needed only for the embeddings
    attention_mask : (B, T), 1 real, 0 padding
    hidden : (B, T, H); needed only without the embeddings
    labels : for a sequence head (B,) or (B, K), for a token head (B, T),
        for a span head (B, 2), as encode_examples makes them
"""

import math

import numpy as np

from bert_np.config import require_config
from bert_np.functional import dropout
from bert_np.heads import sequence_logits, span_logits, token_logits
from bert_np.inputs import check_trace
from bert_np.model import embed, encoder, pool
from bert_np.tasks.sentences import pool_tokens
from bert_np.trace import branch, record
from bert_np.training.adam import adam, clip_by_global_norm, learning_rate
from bert_np.training.backward import (
    embed_backward,
    encoder_backward,
    mean_pool_backward,
    pool_backward,
    sequence_logits_backward,
    span_logits_backward,
    token_logits_backward,
)
from bert_np.training.first_token import (
    first_token_layer,
    first_token_layer_backward,
)
from bert_np.training.functional_backward import dropout_backward
from bert_np.training.inputs import (
    IGNORED,
    TASKS,
    check_int,
    check_number_array,
    check_run_of_task,
    check_task_batch,
    check_task_settings,
    check_trained,
    find_head,
)
from bert_np.training.losses import (
    binary_cross_entropy,
    masked_cross_entropy,
    squared_error,
)
from bert_np.training.parts import add_parts

# What the head gives -> its loss. The start of a span is one label of T, and
# the end another.
LOSSES = {
    "single_label_classification": masked_cross_entropy,
    "multi_label_classification": binary_cross_entropy,
    "regression": squared_error,
    "token": masked_cross_entropy,
    "span": masked_cross_entropy,
}


def fine_tuning_step(run, batch, config, settings, total_steps, rng=None, run_all=map):
    """Make one step of fine-tuning: a gradient, clipped, one update by AdamW.

    Parameters
    ----------
    run : dict
        step : int, the number of updates made
        params : dict, what is trained
        adam : dict, the optimiser's state
        Never written to.
    batch : dict
    config : BertConfig
        Its dropout rates are used.
    settings : FineTuningSettings
    total_steps : int
        When the learning rates reach 0.
    rng : numpy.random.Generator, optional
        Switches dropout on.
    run_all : function
        map, or the map of a pool of threads.

    Returns
    -------
    run : dict
        One step further.
    metrics : dict of float
        loss, norm (of the gradient, before clipping) and rate (a factor
        of all learning rates, 0..1).
    """
    check_task_settings(settings)
    check_run_of_task(run)
    check_int("total_steps", total_steps, 1)
    loss, grads = loss_and_gradients(
        run["params"], config, batch, rng=rng, parts=settings.parts, run_all=run_all
    )
    grads, norm = clip_by_global_norm(grads, settings.max_norm)
    warmup = round(settings.warmup * total_steps)
    rate = learning_rate(run["step"], 1.0, warmup, total_steps)
    params, state = _update(
        run["params"], grads, run["adam"], config, settings, rate, run_all
    )
    metrics = {"loss": loss, "norm": norm, "rate": rate}
    return run | {"step": run["step"] + 1, "params": params, "adam": state}, metrics


def loss_and_gradients(params, config, batch, *, rng=None, parts=1, run_all=map):
    """Run a batch forward and backward.

    Parameters
    ----------
    params : dict
        What is trained; never written to.
    config : BertConfig
    batch : dict
    rng : numpy.random.Generator, optional
        Switches dropout on, with the rates of config.
    parts : int
        At most B parts are made: see add_parts.
    run_all : function

    Returns
    -------
    loss : float
    grads : dict
        Shaped like params.
    """
    check_task_batch(batch, params, config, rng, run_all)
    parts = min(check_int("parts", parts, 1), len(batch["labels"]))
    count = count_labels(batch["labels"])

    def run_part(part, part_rng):
        trace = {}
        logits = _logits(params, config, part, trace, part_rng)
        loss, d_logits = task_loss(logits, part["labels"], params, config, count)
        return (loss,), _gradients(trace, d_logits, part, params, config)

    (loss,), grads = add_parts(run_part, batch, parts, rng, run_all)
    return loss, grads


# ----------------------------------------------------------------- forward


def task_logits(params, config, batch, *, trace=None, rng=None):
    """Run the trained part of the model, from its input to the head's logits.

    Parameters
    ----------
    params : dict
    config : BertConfig
    batch : dict
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches dropout on: in the layers, and on what the head reads.

    Returns
    -------
    ndarray
        Of shape (B, K) for a sequence head, (B, T, K) for a token head.
        For a span head (B, 2, T), start and end, the lowest number of the
        dtype at padding, where no answer can be.

    Trace
    -----
    read.input : (B, H)
    """
    check_task_batch(batch, params, config, rng)
    check_trace(trace)
    return _logits(params, config, batch, trace, rng)


def _logits(params, config, batch, trace, rng):
    hidden = _hidden_states(params, config, batch, trace, rng)
    task, mask = find_head(params), batch["attention_mask"]
    if task == "span":
        start, end = span_logits(hidden, params, trace=trace)
        logits = np.stack([start, end], axis=1)  # (B, 2, T)
        return np.where(mask[:, None].astype(bool), logits, np.finfo(logits.dtype).min)
    read, part = hidden, branch(trace, "read")
    if task == "sequence":
        read = _text_vector(hidden, mask, params, config, trace)  # (B, H)
    read = dropout(read, config.hidden_dropout_prob, rng, part)
    record(part, input=read)
    head = sequence_logits if task == "sequence" else token_logits
    return head(read, params, trace=trace)


def _hidden_states(params, config, batch, trace, rng):
    """Run the trained layers, from the ids or from what the frozen ones made.

    Returns (B, T, H), or (B, 1, H) if the head reads the first token alone.
    """
    mask, x = batch["attention_mask"], batch.get("hidden")
    if "embeddings" in params:
        ids, part = _ids(batch), branch(trace, "embeddings")
        x = embed(*ids, params["embeddings"], config, trace=part, rng=rng)
    record(trace, input=x)
    whole, last = _cut_last(params, config)
    part, options = branch(trace, "layers", []), {"return_attention": False}
    x, _ = encoder(x, whole, mask, config, trace=part, rng=rng, **options)
    if last is not None:
        part = branch(trace, "last")
        x = first_token_layer(x, last, mask, config, trace=part, rng=rng)
    record(trace, hidden=x)
    return x


def _ids(batch):
    return batch["input_ids"], batch["segment_ids"]


def _cut_last(params, config):
    """Return the layers that all tokens pass, and one that [CLS] alone passes."""
    layers, pooler = params["layers"], config.classifier_pooling == "pooler"
    if layers and pooler and "sequence" in params:
        return layers[:-1], layers[-1]
    return layers, None


def _text_vector(hidden, attention_mask, params, config, trace):
    """Return one vector of each text (B, H), as config.classifier_pooling says.

    Source: Devlin et al. 2018, section 4.1; for the mean Reimers & Gurevych
    2019, section 3.
    """
    if config.classifier_pooling == "pooler":
        return pool(hidden, params["pooler"], trace=branch(trace, "pooler"))
    return pool_tokens(hidden, attention_mask, "mean")


# -------------------------------------------------------------------- loss


def task_loss(logits, labels, params, config, count=None):
    """Return the loss of a head's logits, and its gradient.

    Parameters
    ----------
    logits : ndarray
        From task_logits.
    labels : ndarray
        Of the batch.
    params : dict
        Tells which head it is.
    config : BertConfig
        Tells which problem a sequence head solves.
    count : int, optional
        What to divide by. None: the number of labels.

    Returns
    -------
    loss : float
    d_logits : ndarray
        Shaped like logits.
    """
    task = find_head(params)
    require_config(config)
    function = LOSSES[config.problem if task == "sequence" else task]
    return function(logits, labels, count)


def count_labels(labels):
    """Count the labels that a mean loss is divided by; 1 if there is none."""
    check_number_array("labels", labels)
    if labels.dtype.kind == "f":
        return labels.size
    return max(1, int(np.count_nonzero(labels != IGNORED)))


# ---------------------------------------------------------------- backward


def _gradients(trace, d_logits, batch, params, config):
    """Send the gradient of the head's logits back to what is trained.

    It passes the parts in reverse order, and ends where the frozen part
    begins, whose gradients nobody needs.
    """
    d_x, grads = _head_backward(trace, d_logits, batch, params, config)
    d_x, grads["layers"] = _layers_backward(d_x, trace, batch, params, config)
    if "embeddings" in params:
        tables = params["embeddings"]
        grads["embeddings"] = embed_backward(
            d_x, trace["embeddings"], *_ids(batch), tables, config
        )
    return {part: grads[part] for part in params}


def _layers_backward(d_x, trace, batch, params, config):
    """Go back from the last hidden states to the layers' input: (d_x, grads)."""
    x, mask, top = trace["input"], batch["attention_mask"], []
    whole, last = _cut_last(params, config)
    if last is not None:
        below = trace["layers"][-1]["output"] if whole else x
        d_x, layer = first_token_layer_backward(
            d_x, below, trace["last"], last, mask, config
        )
        top = [layer]
    d_x, layers = encoder_backward(d_x, x, trace["layers"], whole, mask, config)
    return d_x, layers + top


def _head_backward(trace, d_logits, batch, params, config):
    """Go back from the head's logits to the hidden states: (d_hidden, grads)."""
    task, hidden, read = find_head(params), trace["hidden"], trace.get("read")
    if task == "span":
        d_start, d_end = d_logits[:, 0], d_logits[:, 1]
        d_hidden, span = span_logits_backward(d_start, d_end, hidden, params["span"])
        return d_hidden, {"span": span}
    if task == "token":
        d_read, token = token_logits_backward(d_logits, read["input"], params["token"])
        return dropout_backward(d_read, read.get("dropout_mask")), {"token": token}
    d_read, sequence = sequence_logits_backward(
        d_logits, read["input"], params["sequence"]
    )
    d_vector = dropout_backward(d_read, read.get("dropout_mask"))
    if config.classifier_pooling == "mean":
        d_hidden = mean_pool_backward(d_vector, batch["attention_mask"])
        return d_hidden, {"sequence": sequence}
    d_hidden, pooler = pool_backward(
        d_vector, hidden, trace["pooler"], params["pooler"]
    )
    return d_hidden, {"sequence": sequence, "pooler": pooler}


# ------------------------------------------------------------------ update


def _update(params, grads, state, config, settings, factor, run_all):
    """Move every parameter by AdamW, each group at its own rate."""
    rates = group_rates(params, config, settings)
    trees = [_groups_of(tree) for tree in (params, grads, state["m"], state["v"])]

    def update_group(name):
        param, grad, m, v = (tree[name] for tree in trees)
        old = {"step": state["step"], "m": m, "v": v}
        return adam(
            param,
            grad,
            old,
            rates[name] * factor,
            beta1=settings.beta1,
            beta2=settings.beta2,
            eps=settings.eps,
            weight_decay=settings.weight_decay,
        )

    done = dict(zip(rates, run_all(update_group, rates)))
    new = _tree_of({name: param for name, (param, _) in done.items()}, params)
    m, v = (
        _tree_of({name: group[moment] for name, (_, group) in done.items()}, params)
        for moment in ("m", "v")
    )
    return new, {"step": state["step"] + 1, "m": m, "v": v}


def group_rates(params, config, settings):
    """Return the peak rate of each group: a layer, or another part.

    The head has head_rate, the pooler and the top layer body_rate, and
    each layer below layer_decay times the rate of the one above; the
    embeddings count as the layer below the first.

    Parameters
    ----------
    params : dict
    config : BertConfig
    settings : FineTuningSettings

    Returns
    -------
    dict of str to float

    Source: Howard & Ruder 2018, section 3.2, with a factor of 1 / 2.6.
    """
    check_trained(params, config)
    check_task_settings(settings)
    count = len(params["layers"])
    depths = {"pooler": 0, "embeddings": config.num_hidden_layers}
    depths |= {f"layers.{i}": count - 1 - i for i in range(count)}
    return {
        name: settings.head_rate
        if name in TASKS
        else settings.body_rate * math.pow(settings.layer_decay, depths[name])
        for name in _groups_of(params)
    }


def _groups_of(tree):
    """Return the groups of a tree: {"layers.0": ..., "sequence": ...}."""
    layers = {f"layers.{i}": layer for i, layer in enumerate(tree["layers"])}
    return layers | {name: part for name, part in tree.items() if name != "layers"}


def _tree_of(groups, like):
    """Return the tree that has these groups, in the order of another."""
    layers = [groups[f"layers.{i}"] for i in range(len(like["layers"]))]
    return {name: layers if name == "layers" else groups[name] for name in like}
