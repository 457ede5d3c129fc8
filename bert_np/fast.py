"""The fast path: the results of ``bert``, sooner, for many or long texts.

The tricks, each with its time divided by the time without it (BERT-Base,
two cores, `python tests/tools/benchmarks/tricks.py`):

    0.56  padding is left out: 32 texts of 8 to 128 tokens
    0.77  parts of the batch run in threads, each with one BLAS thread: (8, 128)
    0.89  query, key and value in one product: of these products
    0.65  division by the sums after the product with V: of this step

Besides, additions and activations overwrite their input, and the activation
goes block by block, so that its intermediate results stay in the cache.
"""

import math
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from bert_np.functional import ACTIVATIONS
from bert_np.inputs import check_fast_options, check_inputs
from bert_np.model import bert, embed, pool
from bert_np.parameters import check_params

MOST_TOKENS = 256  # per part, roughly: its arrays stay in the cache
FEWEST_TOKENS = 64  # per part, roughly: with fewer, BLAS is slow
BLOCK = 2**15  # values per block: few enough to stay in the cache
LOCK = threading.Lock()  # held by the one pool of `map_over_threads`


def prepare(params, config):
    """Arrange parameters for `fast_bert`, once for all its calls.

    Returns a dict of "params" and "config", unchanged, and "qkv": for each
    layer the matrices of query, key and value side by side, W (H, 3H) and
    b (3H,). The query's are multiplied by 1 / sqrt(D), which saves a pass
    over the scores. These matrices are copies, and everything else is
    shared with params: if params are changed, prepare them again. Raises
    BertError if params do not fit config.
    """
    check_params(params, config)
    joined, scale = [], 1 / math.sqrt(config.head_size)
    for layer in params["layers"]:
        query, key, value = (layer["attention"][n] for n in ("query", "key", "value"))
        W = np.concatenate([query["W"] * scale, key["W"], value["W"]], axis=1)
        b = np.concatenate([query["b"] * scale, key["b"], value["b"]])
        joined.append({"W": W, "b": b})
    return {"params": params, "config": config, "qkv": joined}


def fast_bert(
    input_ids,
    prepared,
    config,
    *,
    segment_ids=None,
    attention_mask=None,
    return_attention=True,
    threads=None,
):
    """Run BERT on a batch of token ids, without the padding.

    At every real token the results equal those of ``bert`` within 1e-5
    (float32). At padding, where ``bert`` computes numbers that nobody
    reads, hidden states and rows of attention are 0.

    Arguments, results and errors are those of ``bert``, with the dict
    from `prepare` in place of params. Results do not depend on `threads`
    (None: one per processor).
    """
    check_fast_options(prepared, config, return_attention, threads)
    params = prepared["params"]
    ids, segments, mask = check_inputs(input_ids, segment_ids, attention_mask, config)
    lengths = mask.sum(axis=1)
    on_the_right = np.arange(ids.shape[1]) < lengths[:, None]  # (B, T)
    if not lengths.all() or (mask != on_the_right).any():
        warnings.warn("padding is not only on the right: plain bert runs", stacklevel=2)
        inputs = {"segment_ids": segments, "attention_mask": mask}
        return bert(ids, params, config, **inputs, return_attention=return_attention)
    hidden, maps = _run_parts(
        ids, segments, mask, prepared, config, return_attention, threads
    )
    pooled = pool(hidden, params["pooler"]) if "pooler" in params else None
    return {
        "last_hidden_state": hidden,
        "pooler_output": pooled,
        "attention_probs": maps,
    }


@contextmanager
def map_over_threads(parts, threads=None):
    """Yield the map of a pool of threads, or else plain map.

    While there is a pool, BLAS is limited to one thread of its own, for
    its threads and ours would wait for each other. The number of BLAS's
    threads belongs to the whole process, and so does the lock: it admits
    one pool at a time, because the limits of two that overlap would be
    lifted in the wrong order. Plain map serves whoever comes meanwhile,
    a single part, and WebAssembly, where no thread can start.
    """
    alone = parts <= 1 or sys.platform == "emscripten"
    if alone or not LOCK.acquire(blocking=False):
        yield map
        return
    count = min(parts, threads or os.cpu_count() or 1)
    try:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count) as pool:
            yield pool.map
    finally:
        LOCK.release()


def _run_parts(ids, segments, mask, prepared, config, return_attention, threads):
    """The hidden states (B, T, H) and the maps, computed part by part."""
    params, lengths, (B, T) = prepared["params"], mask.sum(axis=1), ids.shape
    A, dtype = config.num_attention_heads, params["embeddings"]["word"].dtype
    dtype = dtype.newbyteorder("=")
    hidden = np.zeros((B, T, config.hidden_size), dtype)
    maps = [np.zeros((B, A, T, T), dtype) for _ in prepared["qkv"] if return_attention]

    def run(rows):
        x = embed(ids[rows], segments[rows], params["embeddings"], config)
        x = x[mask[rows]]  # (N, H): all real tokens of these rows
        ends = np.cumsum(lengths[rows])
        texts = [(row, slice(end - lengths[row], end)) for row, end in zip(rows, ends)]
        for layer, (weights, qkv) in enumerate(zip(params["layers"], prepared["qkv"])):
            x = _layer(x, weights, qkv, config, texts, maps[layer] if maps else None)
        for row, place in texts:
            hidden[row, : lengths[row]] = x[place]

    parts = _parts(lengths) if B else []
    with map_over_threads(len(parts), threads) as run_all:
        list(run_all(run, parts))
    return hidden, maps


def _parts(lengths):
    """Rows of similar length in groups of similar size, or all in one."""
    total, processors = int(lengths.sum()), os.cpu_count() or 1
    count = max(math.ceil(total / MOST_TOKENS), min(processors, total // FEWEST_TOKENS))
    order = np.argsort(-lengths, kind="stable")
    group = (np.cumsum(lengths[order]) - 1) // math.ceil(total / count)
    parts = [order[group == number] for number in np.unique(group)]
    return parts if len(parts) >= min(3, processors) else [order]


def _layer(x, params, qkv, config, texts, maps):
    """One encoder layer on packed tokens x (N, H), in place if possible."""
    A, eps = config.num_attention_heads, config.layer_norm_eps
    heads = _linear(x, **qkv).reshape(len(x), 3, A, -1)  # (N, 3, A, D)
    context = np.empty_like(heads[:, 0])  # (N, A, D)
    for row, place in texts:
        n = place.stop - place.start
        kept = None if maps is None else maps[row, :, :n, :n]
        _attend(heads[place], context[place], kept)
    update = _linear(context.reshape(x.shape), **params["attention"]["output"])
    x = _add_and_norm(x, update, **params["attention_norm"], eps=eps)
    inner = _linear(x, **params["ffn"]["inner"])
    _activate(inner, ACTIVATIONS[config.hidden_act])
    update = _linear(inner, **params["ffn"]["outer"])
    return _add_and_norm(x, update, **params["ffn_norm"], eps=eps)


def _linear(x, W, b):
    """x W + b, the bias added in place."""
    y = x @ W
    y += b
    return y


def _add_and_norm(x, update, gamma, beta, eps):
    """layer_norm(x + update), written over the update."""
    update += x
    for _ in range(2):  # as `centre` does
        update -= update.mean(axis=-1, keepdims=True)
    variance = np.square(update).mean(axis=-1, keepdims=True)
    update /= np.sqrt(variance + eps)
    update *= gamma
    update += beta
    return update


def _activate(x, activation):
    """Apply the activation in place, block by block."""
    values = x.reshape(-1)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        block[...] = activation(block)


def _attend(heads, context, maps):
    """Fill the context (T, A, D) of one text, and its maps (A, T, T) if kept."""
    q, k, v = heads.transpose(1, 2, 0, 3)  # each (A, T, D)
    scores = np.matmul(q, k.swapaxes(-1, -2), out=maps)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)  # (A, T, 1)
    gathered = np.matmul(scores, v, out=context.swapaxes(0, 1))
    gathered /= total  # D divisions per query, not T
    if maps is not None:
        scores /= total
