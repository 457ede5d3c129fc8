"""The fast path: the results of ``bert``, sooner, for many or long texts.

The tricks, each with its time divided by the time without it (BERT-Base,
two cores, `python tests/tools/benchmarks/tricks.py`):

    0.58  padding is left out: 32 texts of 8 to 128 tokens
    0.64  parts of the tokens run in threads, each with one BLAS thread: (8, 128)
    0.69  the same for one text of 512 tokens
    0.97  query, key and value in one product: of these products
    0.72  division by the sums after the product with V: of this step
    0.70  GELU by the logistic function: of this step

In addition, sums and activations overwrite their input. Attention takes few
heads, or several short texts, at a time, so that intermediate results stay in
the cache. GELU takes large blocks, and parts are large: threads whose steps are
short wait for Python's lock.
"""

import math
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from bert_np.functional import ACTIVATIONS, BLOCK, ERF_COEFFICIENTS, gelu
from bert_np.inputs import check_fast_options, check_inputs
from bert_np.model import bert, embed, pool
from bert_np.parameters import check_params

MOST_TOKENS = 1024  # per part: more gain nothing, and need more memory
FEWEST_TOKENS = 64  # per part: with fewer, BLAS is slow
SCORES = 2**16  # at a time: few enough to stay in the cache
# u = z P(z²) with z = x / sqrt(2) is what `erf` takes tanh of. This is -2u / x.
LOGISTIC_COEFFICIENTS = [
    np.float32(-math.sqrt(2) * coefficient / 2**power)
    for power, coefficient in enumerate(ERF_COEFFICIENTS)
]
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
    hidden, maps = _run(
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

    While there is a pool, BLAS is limited to one thread of its own, since
    its threads and ours would wait for each other. The number of BLAS's
    threads belongs to the whole process, and so does the lock: it admits
    one pool at a time, because the limits of two that overlap would be
    lifted in the wrong order. Plain map is yielded while another pool is
    running, for a single part, and in WebAssembly, which has no threads.
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


def _run(ids, segments, mask, prepared, config, return_attention, threads):
    """Return the hidden states (B, T, H), and each layer's maps (B, A, T, T).

    The N real tokens lie one after the other, and are cut into parts that
    need not end where a text does. So a layer takes two steps: first the
    queries, keys and values of every part, then all else, where the
    queries of a part need the keys and values of whole texts.
    """
    params, lengths, (B, T) = prepared["params"], mask.sum(axis=1), ids.shape
    dtype = params["embeddings"]["word"].dtype.newbyteorder("=")
    A, D, N = config.num_attention_heads, config.head_size, int(lengths.sum())
    x, heads = np.empty((N, A * D), dtype), np.empty((N, 3, A, D), dtype)
    maps = [np.zeros((B, A, T, T), dtype) for _ in prepared["qkv"] if return_attention]
    parts = _parts(N)
    pieces = [_pieces(lengths, part, A) for part in parts]

    def embed_some(piece):
        here = piece.rows, slice(lengths[piece.rows.start])
        some = embed(ids[here], segments[here], params["embeddings"], config)
        x[piece.queries] = some.reshape(-1, A * D)

    with map_over_threads(len(parts), threads) as run_all:
        list(run_all(embed_some, _pieces(lengths, slice(0, N), A)))
        for layer, (weights, qkv) in enumerate(zip(params["layers"], prepared["qkv"])):
            list(run_all(partial(_project, x, heads, qkv), parts))
            kept = maps[layer] if maps else None
            finish = partial(_finish, x, heads, kept, weights, config)
            list(run_all(finish, parts, pieces))
    hidden = np.zeros((B, T, A * D), dtype)
    hidden[mask] = x
    return hidden, maps


def _parts(total):
    """Return equal slices that keep all processors busy, or one slice of all."""
    processors = os.cpu_count() or 1
    count = processors * math.ceil(total / MOST_TOKENS / processors)
    count = min(count, total // FEWEST_TOKENS)
    if count < min(3, processors):
        return [slice(0, total)]
    edges = [total * number // count for number in range(count + 1)]
    return list(map(slice, edges, edges[1:]))


class Piece(NamedTuple):
    """Some queries of a text, or all of neighbouring texts of one length."""

    rows: slice  # of the batch
    queries: slice  # of all tokens
    keys: slice  # the whole texts


def _pieces(lengths, part, A):
    """Cut a part where texts begin; short ones of one length stay together."""
    ends, pieces, start = np.cumsum(lengths), [], part.start
    while start < part.stop:
        first = last = int(np.searchsorted(ends, start, side="right"))
        n, begin = lengths[first], ends[first] - lengths[first]
        whole = start == begin
        while whole and ends[last] + n <= part.stop and lengths[last + 1] == n:
            if A * n * (ends[last] + n - begin) > SCORES:  # scores in all
                break
            last += 1
        stop = min(part.stop, ends[last])
        rows, keys = slice(first, last + 1), slice(begin, ends[last])
        pieces.append(Piece(rows, slice(start, stop), keys))
        start = stop
    return pieces


def _project(x, heads, qkv, part):
    """Fill heads (N, 3, A, D) with the queries, keys and values of a part."""
    heads[part] = _linear(x[part], **qkv).reshape(heads[part].shape)


def _finish(x, heads, maps, params, config, part, pieces):
    """Run the rest of a layer for one part, and write over its rows of x."""
    eps, context = config.layer_norm_eps, np.empty_like(heads[part, 0])  # (n, A, D)
    for piece in pieces:
        _attend(heads, piece, context[_shift(piece.queries, part.start)], maps)
    context = context.reshape(x[part].shape)
    update = _linear(context, **params["attention"]["output"])
    attended = _add_and_norm(x[part], update, **params["attention_norm"], eps=eps)
    inner = _linear(attended, **params["ffn"]["inner"])
    _activate(inner, ACTIVATIONS[config.hidden_act])
    update = _linear(inner, **params["ffn"]["outer"])
    x[part] = _add_and_norm(attended, update, **params["ffn_norm"], eps=eps)


def _shift(place, start):
    """Return a slice, counted from another start."""
    return slice(place.start - start, place.stop - start)


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
    variance = np.einsum("nh,nh->n", update, update) / update.shape[1]
    update /= np.sqrt(variance + eps)[:, None]
    update *= gamma
    update += beta
    return update


def _activate(x, activation):
    """Apply the activation in place, block by block."""
    if activation is gelu and x.dtype.itemsize == 4:
        activation = _gelu
    values = x.reshape(-1)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        block[...] = activation(block)


@np.errstate(over="ignore")  # infinity is as good: x divided by it is 0
def _gelu(x):
    """x / (1 + exp(-2u)), which is x (1 + tanh(u)) / 2, with the u of `erf`."""
    squared = x * x
    y = squared * LOGISTIC_COEFFICIENTS[-1]
    for coefficient in LOGISTIC_COEFFICIENTS[-2:0:-1]:
        y += coefficient
        y *= squared
    y += LOGISTIC_COEFFICIENTS[0]
    y *= x
    np.exp(y, out=y)
    y += 1
    return np.divide(x, y, out=y)


def _attend(heads, piece, context, maps):
    """Fill the context (n, A, D) of a piece, and its maps if they are kept.

    A long text's heads come one or a few at a time, so that their scores
    stay in the cache.
    """
    count, A, D = piece.rows.stop - piece.rows.start, *context.shape[1:]
    q = heads[piece.queries, 0].reshape(count, -1, A, D).swapaxes(1, 2)
    pairs = heads[piece.keys, 1:].reshape(count, -1, 2, A, D)
    k, v = pairs.transpose(2, 0, 3, 1, 4)  # each (B, A, T, D), as q
    context = context.reshape(count, -1, A, D).swapaxes(1, 2)
    first, n, T = piece.queries.start - piece.keys.start, q.shape[2], k.shape[2]
    step = max(1, SCORES // (count * n * T))
    for start in range(0, A, step):
        some = np.s_[:, start : start + step]
        kept = (
            None if maps is None else maps[piece.rows][some][..., first : first + n, :T]
        )
        _attend_in_cache(q[some], k[some], v[some], context[some], kept)


def _attend_in_cache(q, k, v, context, maps):
    """Fill the context (B, A, n, D), and the maps (B, A, n, T) if they are kept."""
    scores = np.matmul(q, k.swapaxes(-1, -2), out=maps)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)  # (B, A, n, 1)
    gathered = np.matmul(scores, v, out=context)
    gathered /= total  # D divisions per query, not T
    if maps is not None:
        scores /= total
