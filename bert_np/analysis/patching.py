"""Run a passage with intermediate results from another passage's run.

What a head, a layer or a position contributes is seen when it is taken
from another run while all else stays: if the answer changes, what was
taken carried the difference. ``Place`` names what is replaced; the values
come from a trace that ``bert`` filled, from a mean over runs, or are a
number or an array.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import as_floats, stage_of
from bert_np.attention import merge_heads, scaled_dot_product, split_heads
from bert_np.errors import BertError, short
from bert_np.functional import linear
from bert_np.inputs import check_inputs, check_trace
from bert_np.model import add_and_norm, embed, feed_forward, pool
from bert_np.parameters import check_params
from bert_np.tokenizer import check_choice, check_count
from bert_np.trace import branch, record

# Where a trace holds each stage: below "layers", i, except for the embeddings.
STAGES = {
    "embeddings": ("embeddings", "output"),
    "q": ("attention", "q"),
    "k": ("attention", "k"),
    "v": ("attention", "v"),
    "probs": ("attention", "probs"),
    "context": ("attention", "context"),
    "head_output": ("attention", "context"),  # which the output matrix maps
    "attention": ("attention", "output"),
    "ffn": ("ffn", "outer"),
    "hidden": ("output",),
}
OF_HEADS = ("q", "k", "v", "probs", "context", "head_output")


class Place(NamedTuple):
    """Where a run is changed: a stage, and which layer, head, position.

    None stands for all layers, all heads or all positions. `stage` is one
    of

    - "embeddings": the hidden states after the embeddings; no layer
    - "hidden": the hidden states after a layer
    - "q", "k", "v", "probs": of a head; a position of "probs" is a query
    - "context": what a head gathers, probs v
    - "head_output": what a head adds to the output of its layer's
      attention, its context times its rows of the output matrix
    - "attention", "ffn": what attention and the feed-forward network add
      to the hidden states

    `position` is one number for all passages, or a tuple with one number
    for each passage of the batch. Only the stages from "q" to
    "head_output" have heads.
    """

    stage: str
    layer: int | None = None
    head: int | None = None
    position: int | tuple | None = None


def run_patched(
    input_ids,
    params,
    config,
    patches,
    *,
    segment_ids=None,
    attention_mask=None,
    trace=None,
):
    """Run BERT with some of its intermediate results replaced.

    All that comes after a replaced result is computed from it. Without
    patches the results are those of ``bert``, number for number.

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
    params : dict
    config : BertConfig
    patches : dict of Place to its new values
        The values are a trace that ``bert`` or ``mean_run`` filled, with
        as many positions and with B passages or one; or a number; or an
        array that broadcasts to the whole stage: (B, A, T, D) of heads,
        (B, A, T, T) of probs, (B, A, T, H) of head_output, (B, T, H) of
        the others. Where two places overlap, the later one counts.
    segment_ids, attention_mask : ndarray of shape (B, T), optional
        As in ``bert``.
    trace : dict, optional
        An empty dict; receives the intermediate results, replaced or not.

    Returns
    -------
    dict
        As of ``bert``: last_hidden_state, pooler_output, attention_probs.

    Raises
    ------
    BertError
        Also if a trace has another number of positions: the two passages
        must be aligned, word under word.

    Source: Vig et al. 2020 (2004.12265); Geiger et al. 2021 (2106.02997),
    who call it an interchange intervention.
    """
    check_params(params, config)
    check_trace(trace)
    ids, segment_ids, mask = check_inputs(
        input_ids, segment_ids, attention_mask, config
    )
    patches = resolve_patches(patches, ids.shape, params, config)
    part = branch(trace, "embeddings")
    x = embed(ids, segment_ids, params["embeddings"], config, trace=part)
    x = replace_stage(x, "embeddings", patches.get(None, {}), part)
    return finish_patched(x, [], params, mask, config, patches, trace)


def finish_patched(x, probs_before, params, mask, config, patches, trace=None):
    """Run the layers that are left, with patches, and pool.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
        What goes into the first of them.
    probs_before : list of ndarrays of shape (B, A, T, T)
        The attention of the layers that have been run.
    params : dict
        The whole tree.
    mask : ndarray of bool of shape (B, T)
    config : BertConfig
    patches : dict
        From resolve_patches.
    trace : dict, optional

    Returns
    -------
    dict
        As of ``bert``.
    """
    all_probs, traces = list(probs_before), branch(trace, "layers", [])
    for layer in range(len(probs_before), config.num_hidden_layers):
        here, part = patches.get(layer, {}), None if trace is None else {}
        x, probs = _layer(x, params["layers"][layer], mask, config, here, part)
        all_probs.append(probs)
        if trace is not None:
            traces.append(part)
    pooled = None
    if "pooler" in params:
        pooled = pool(x, params["pooler"], trace=branch(trace, "pooler"))
    return {
        "last_hidden_state": x,
        "pooler_output": pooled,
        "attention_probs": all_probs,
    }


def _layer(x, params, mask, config, here, trace):
    """Run encoder_layer with the patches that are `here`."""
    part = branch(trace, "attention")
    attended, probs = _attend(x, params["attention"], mask, config, here, part)
    part = branch(trace, "attention_norm")
    x = add_and_norm(x, attended, params["attention_norm"], config, trace=part)
    part = branch(trace, "ffn")
    thought = feed_forward(x, params["ffn"], config, trace=part)
    thought = replace_stage(thought, "ffn", here, part)
    part = branch(trace, "ffn_norm")
    x = add_and_norm(x, thought, params["ffn_norm"], config, trace=part)
    return replace_stage(x, "hidden", here, trace), probs


def _attend(x, params, mask, config, here, trace):
    """Run self_attention with the patches that are `here`."""
    q, k, v = (
        split_heads(linear(x, **params[name]), config.num_attention_heads)
        for name in ("query", "key", "value")
    )
    q, k, v = (replace_stage(y, name, here, trace) for y, name in zip((q, k, v), "qkv"))
    visible = mask[:, None, None, :]  # (B, 1, 1, Tk)
    _, probs = scaled_dot_product(q, k, v, visible, trace=trace)
    probs = replace_stage(probs, "probs", here, trace)
    context = replace_stage(probs @ v, "context", here)  # (B, A, T, D)
    record(trace, context=merge_heads(context))
    output = linear(merge_heads(context), **params["output"])  # (B, T, H)
    if "head_output" in here:
        own = head_outputs(context, params["output"]["W"])  # (B, A, T, H)
        output = output + (replace_stage(own, "head_output", here) - own).sum(axis=1)
    return replace_stage(output, "attention", here, trace), probs


def head_outputs(context, W):
    """Return what each head adds to the attention's output, without its bias.

    Parameters
    ----------
    context : ndarray of shape (B, A, T, D)
    W : ndarray of shape (H, H)
        The output matrix: D rows for each head.

    Returns
    -------
    ndarray of shape (B, A, T, H)
    """
    return context @ W.reshape(context.shape[1], -1, W.shape[1])


def replace_stage(x, stage, here, trace=None):
    """Put the new values of a stage in place of x, and into the trace."""
    for selected, values in here.get(stage, ()):
        x = np.where(selected, values.astype(x.dtype, copy=False), x)
    if trace is not None:
        trace[STAGES[stage][-1]] = np.array(x)
    return x


# ------------------------------------------------------- places and values


def resolve_patches(patches, shape, params, config):
    """Check patches, and sort them by layer and stage.

    Parameters
    ----------
    patches : dict of Place to its new values
        As in run_patched.
    shape : (B, T)
    params : dict
    config : BertConfig

    Returns
    -------
    dict
        layer -> stage -> list of (selected, values); the layer of the
        embeddings is None. Both arrays broadcast to the stage.
    """
    if not isinstance(patches, Mapping):
        raise BertError(
            f"patches is {type(patches).__name__}, allowed: a dict of Place to a "
            "trace, a number or an array"
        )
    resolved = {}
    for place, source in patches.items():
        selected = check_place(place, shape, config)
        every = [None] if place.stage == "embeddings" else range(len(params["layers"]))
        for layer in every if place.layer is None else [place.layer]:
            values = _values(source, place, layer, shape, params, config)
            stages = resolved.setdefault(layer, {})
            stages.setdefault(place.stage, []).append((selected, values))
    return resolved


def check_place(place, shape, config):
    """Check a place; return which rows it covers: (B, T, 1) or (B, A, T, 1)."""
    if not isinstance(place, Place):
        raise BertError(f"patches has the key {short(place)}, allowed: a Place")
    check_choice(place.stage, "Place.stage", STAGES)
    B, T = shape
    layers = 0 if place.stage == "embeddings" else config.num_hidden_layers
    heads = config.num_attention_heads if place.stage in OF_HEADS else 0
    _check_index(place, "layer", layers)
    _check_index(place, "head", heads)
    positions = place.position if type(place.position) is tuple else (place.position,)
    if len(positions) not in (1, B):
        raise BertError(
            f"Place.position has {len(positions)} numbers, allowed: one for each "
            f"of the {B} passages"
        )
    chosen = np.ones((len(positions), T), bool)
    for row, position in zip(chosen, positions):
        if position is not None:
            row[:] = np.arange(T) == check_count(position, "Place.position", 0, T - 1)
    if not heads:
        return chosen[:, :, None]
    head = np.ones(heads, bool)
    if place.head is not None:
        head = np.arange(heads) == place.head
    return head[:, None, None] & chosen[:, None, :, None]


def _check_index(place, name, count):
    """Check the layer or the head of a place, of which there are `count`."""
    index = getattr(place, name)
    if index is not None and not count:
        raise BertError(
            f"Place.{name} = {short(index)}, allowed for {place.stage!r}: None, "
            f"it has no {name}"
        )
    if index is not None:
        check_count(index, f"Place.{name}", 0, count - 1)


def _values(source, place, layer, shape, params, config):
    """Return the new values of one stage, an array that broadcasts to it."""
    name = f"the values of {place.stage}"
    name += "" if layer is None else f" of layer {layer}"
    (B, T), A, H = shape, config.num_attention_heads, config.hidden_size
    last = {"probs": T, "head_output": H}.get(place.stage, config.head_size)
    whole = (B, A, T, last) if place.stage in OF_HEADS else (B, T, H)
    if not isinstance(source, dict):
        values = as_floats(name, source)
        return _require_broadcast(name, values, whole)
    path = STAGES[place.stage]
    values = stage_of(source, *(path if layer is None else ("layers", layer, *path)))
    values = as_floats(name, values)
    recorded = (B, T, H) if place.stage in ("context", "head_output") else whole
    if values.shape not in (recorded, (1, *recorded[1:])):
        raise BertError(
            f"{name} have shape {values.shape} in the trace, allowed: {recorded}, "
            "or one passage; the two passages must be aligned, token under token"
        )
    if recorded is whole:
        return values
    context = split_heads(values, A)
    W = params["layers"][layer]["attention"]["output"]["W"]
    return context if place.stage == "context" else head_outputs(context, W)


def _require_broadcast(name, values, whole):
    """Return values, or refuse those that do not broadcast to a shape."""
    try:
        if np.broadcast_shapes(values.shape, whole) == whole:
            return values
    except ValueError:
        pass
    raise BertError(
        f"{name} have shape {values.shape}, allowed: what broadcasts to {whole}"
    )


def mean_run(traces):
    """Average runs stage by stage, position by position.

    Padding is averaged like any other position, so the passages should
    have the same length.

    Parameters
    ----------
    traces : list of dict
        As ``bert`` fills them; all with the same number of positions.

    Returns
    -------
    dict
        A trace of one passage with the stages that run_patched replaces.
    """
    if not isinstance(traces, (list, tuple)) or not traces:
        raise BertError(
            f"traces is {short(traces)}, allowed: a list of the dicts that bert filled"
        )
    mean = {"embeddings": {}, "layers": []}
    mean["embeddings"]["output"] = _mean(traces, *STAGES["embeddings"])
    for layer in range(len(stage_of(traces[0], "layers"))):
        part = {"attention": {}, "ffn": {}}
        for stage in STAGES.keys() - {"embeddings", "head_output"}:
            *inside, name = STAGES[stage]
            inner = part[inside[0]] if inside else part
            inner[name] = _mean(traces, "layers", layer, *STAGES[stage])
        mean["layers"].append(part)
    return mean


def _mean(traces, *path):
    """Return the mean over all passages of all traces, (1, ...)."""
    name = ".".join(map(str, path))
    arrays = [as_floats(name, stage_of(trace, *path)) for trace in traces]
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise BertError(
            f"traces: {name} has the shapes {sorted(shapes)} without the axis of "
            "passages, allowed: one shape; the passages must be of one length"
        )
    total = np.concatenate(arrays).mean(axis=0, keepdims=True, dtype=np.float64)
    return total.astype(arrays[0].dtype)
