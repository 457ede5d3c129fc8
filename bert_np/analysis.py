"""Numbers about attention: where heads look, what they move, what for.

A map is probs (T, T): row i is the query that looks, column j the key
looked at. All functions take stacks of maps, (..., T, T), such as one
layer (A, T, T) or a list of L layers (B, A, T, T), as ``bert`` returns.

An attention_mask of shape (T,) goes with maps of one sentence, one of
shape (B, T) with maps of shape (..., B, A, T, T). Attention to a masked
key is not counted, and a masked query gets 0.
"""

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_np.attention import create_attention_mask
from bert_np.embeddings import embed
from bert_np.encoder import encoder, encoder_layer
from bert_np.errors import BertError, short
from bert_np.fast import fast_bert, prepare
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits
from bert_np.model import bert
from bert_np.tokenizer import check_count, is_punctuation

TOLERANCE = 1e-4
QUERIES_AT_ONCE = 16


# --------------------------------------------------------- one row of a map

def attention_entropy(probs, attention_mask=None, normalise=True):
    """How widely each query spreads its attention.

    -sum_j p_ij log p_ij, divided by log(number of visible keys): 0 where
    all attention goes to one key, 1 where it is even. A row with one
    visible key has 0.

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    attention_mask : ndarray of shape (T,) or (B, T), optional
    normalise : bool
        False: not divided, in nats.

    Returns
    -------
    ndarray of shape (..., T)
        For each query; 0 for a masked one.

    Raises
    ------
    BertError

    Source: Clark et al. 2019, section 3.3 (in nats).

    Examples
    --------
    >>> attention_entropy(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([1., 0.])
    """
    probs, real = _check_maps(probs, attention_mask)
    probs = _hide_masked(probs, real)
    logs = np.log(np.where(probs > 0, probs, 1))  # p log p is 0 where p is 0
    entropy = 0 - (probs * logs).sum(axis=-1)
    if normalise:
        count = real.sum(axis=-1, keepdims=True)
        entropy *= count > 1
        entropy /= np.log(np.maximum(count, 2)).astype(entropy.dtype)
    return entropy


def attention_distance(probs, attention_mask=None):
    """How far away each query looks, in tokens.

    sum_j p_ij |i - j|

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    ndarray of shape (..., T)
        For each query, 0..T-1; 0 for a masked one.

    Raises
    ------
    BertError

    Source: Vig & Belinkov 2019 (1906.04284), here for one query.

    Examples
    --------
    >>> attention_distance(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([0.5, 0. ])
    """
    probs, real = _check_maps(probs, attention_mask)
    places = np.arange(probs.shape[-1], dtype=probs.dtype)
    offsets = np.abs(places[:, None] - places)
    return (_hide_masked(probs, real) * offsets).sum(axis=-1)


def attention_masses(probs, tokens, attention_mask=None):
    """What share of its attention each query gives to kinds of keys.

    Kinds overlap: the row of [CLS] has its [CLS] share as self too.

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    tokens : list of T str, or list of B lists of T str
        B lists go with maps of shape (..., B, A, T, T).
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    dict of str to ndarray of shape (..., T)
        "self", "previous", "next": the query's own position and its
        neighbours, 0 where there is none. "[CLS]", "[SEP]": all keys of
        that name. "punctuation": all keys made of punctuation, where the
        paper takes full stops and commas.

    Raises
    ------
    BertError

    Source: Clark et al. 2019, sections 3.1 and 3.2.
    """
    probs, real = _check_maps(probs, attention_mask)
    names = _check_tokens(tokens, probs)
    probs = _hide_masked(probs, real)
    previous, following = np.zeros_like(probs[..., 0]), np.zeros_like(probs[..., 0])
    previous[..., 1:] = np.diagonal(probs, -1, axis1=-2, axis2=-1)
    following[..., :-1] = np.diagonal(probs, 1, axis1=-2, axis2=-1)

    def share(keys):
        return (probs * keys[..., None, :]).sum(axis=-1)

    return {
        "self": np.diagonal(probs, axis1=-2, axis2=-1).copy(),
        "previous": previous,
        "next": following,
        "[CLS]": share(names == "[CLS]"),
        "[SEP]": share(names == "[SEP]"),
        "punctuation": share(np.vectorize(_is_punctuation, otypes="?")(names)),
    }


def _is_punctuation(token):
    return token != "" and all(map(is_punctuation, token))


# ------------------------------------------------------- heads, many texts

class HeadSummary(NamedTuple):
    """Means over many texts, for each head."""

    means: dict  # measure -> (L, A), float64
    texts: int
    tokens: int  # real ones, [CLS] and [SEP] included


def summarise_heads(
    texts, params, config, tokenizer, *, by_norm=False, report=None, batch_size=16
):
    """What each head does on average over many texts.

    Every real token of every text counts alike; for "previous" and
    "next" those that have such a neighbour. Sums are made in float64, so
    batch_size changes no more than rounding.

    Parameters
    ----------
    texts : list of str or of tuples (str, str)
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    by_norm : bool
        True: measure what is moved (weighted_norms, each row divided by
        its sum) in place of the attention.
    report : function, optional
        Gets a line of text now and then, about ten in all.
    batch_size : int
        Texts of like length are run together, so many at a time.

    Returns
    -------
    HeadSummary
        Its means: "entropy" (nats), "normalised entropy", "distance",
        and those of attention_masses.

    Raises
    ------
    BertError

    Source: Clark et al. 2019, section 3.
    """
    if tokenizer is None:
        raise BertError("tokenizer is None: this checkpoint came without vocab.txt")
    batch_size = check_count(batch_size, "batch_size", 1)
    batch = tokenizer.encode_batch(texts)
    lengths = batch.attention_mask.sum(axis=1)
    N, total = len(lengths), int(lengths.sum())
    order = np.argsort(-lengths, kind="stable")  # what is too long fails at once
    size = (config.num_hidden_layers, config.num_attention_heads)
    sums = defaultdict(lambda: np.zeros(size))
    prepared = prepare(params, config)
    for start in range(0, N, batch_size):
        rows = order[start : start + batch_size]
        part = _select(batch, rows, lengths[rows[0]])
        for layer, maps in enumerate(_run_maps(part, prepared, config, by_norm)):
            for name, values in _measure(maps, part).items():  # (B, A, T)
                sums[name][layer] += values.sum(axis=(0, 2), dtype=np.float64)
        _report_tenths(report, start, start + len(rows), N)
    count = {"previous": total - N, "next": total - N}
    means = {name: values / count.get(name, total) for name, values in sums.items()}
    return HeadSummary(means, N, total)


def _select(batch, rows, length):
    """Some rows of a batch, cut to a length: what bert and tokens need."""
    return {
        "input_ids": batch.input_ids[rows, :length],
        "segment_ids": batch.segment_ids[rows, :length],
        "attention_mask": batch.attention_mask[rows, :length],
        "tokens": [batch.tokens[row][:length] for row in rows],
    }


def _run_maps(part, prepared, config, by_norm):
    """The maps of a part of a batch: list of L arrays (B, A, T, T)."""
    ids, segments, mask = (
        part[name] for name in ("input_ids", "segment_ids", "attention_mask")
    )
    if not by_norm:
        out = fast_bert(ids, prepared, config, segment_ids=segments,
                        attention_mask=mask)
        return out["attention_probs"]
    params, trace = prepared["params"], {}
    bert(ids, params, config, segment_ids=segments, attention_mask=mask, trace=trace)
    return weighted_norms(trace, params, mask, normalise=True)


def _measure(maps, part):
    mask = part["attention_mask"]
    return {
        "entropy": attention_entropy(maps, mask, normalise=False),
        "normalised entropy": attention_entropy(maps, mask),
        "distance": attention_distance(maps, mask),
        **attention_masses(maps, part["tokens"], mask),
    }


def _report_tenths(report, before, done, total):
    """A line for each tenth of the texts that has been reached."""
    if report is not None and done * 10 // total > before * 10 // total:
        report(f"texts {done:,}/{total:,}")


def head_distances(probs, attention_mask=None):
    """How differently each two heads look, as a matrix.

    JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, H the entropy: the
    Jensen-Shannon divergence of two rows, averaged over the real tokens.
    0: the same maps; log 2 = 0.693: no key in common.

    Parameters
    ----------
    probs : ndarray of shape (L, A, T, T) or (L, B, A, T, T)
        Or the list of L arrays that ``bert`` returns.
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    ndarray of shape (L A, L A)
        float64, in nats. Head a of layer l is number l A + a.

    Raises
    ------
    BertError

    Source: Clark et al. 2019, section 6 (the sum, where this is the mean).
    """
    rows = _real_rows(*_check_model(probs, attention_mask))  # (L A, N, T)
    entropies = _row_entropies(rows)  # (L A, N)
    distances = np.zeros((len(rows), len(rows)))
    for head in range(len(rows) - 1):
        middle = _row_entropies((rows[head] + rows[head + 1 :]) / 2)
        gaps = middle - (entropies[head] + entropies[head + 1 :]) / 2
        distances[head, head + 1 :] = gaps.mean(axis=-1)
    return np.maximum(distances + distances.T, 0)


def _real_rows(probs, real):
    """The rows of all real tokens, by head: (L A, N, T), float64."""
    _require_real(real)
    T = probs.shape[-1]
    rows = _hide_masked(probs, real).astype(np.float64)
    rows = rows.reshape(len(rows), -1, *rows.shape[-3:])  # (L, B, A, T, T)
    B = rows.shape[1]
    rows = rows.swapaxes(1, 2).reshape(-1, B * T, T)
    return rows[:, np.broadcast_to(real.reshape(-1, T), (B, T)).ravel()]


def _row_entropies(rows):
    return 0 - (rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=-1)


# -------------------------------------------------------- beyond the weight

def rollout(probs, attention_mask=None, residual=0.5):
    """How much each input token has reached each position, by layer.

    A_l = residual I + (1 - residual) mean over heads of probs, rows
    divided by their sums; R_l = A_l R_(l-1), R_0 = I.

    Parameters
    ----------
    probs : ndarray of shape (L, A, T, T) or (L, B, A, T, T)
        Or the list of L arrays that ``bert`` returns.
    attention_mask : ndarray of shape (T,) or (B, T), optional
    residual : float
        Share that stays in place, 0..1; 0.5 in the paper.

    Returns
    -------
    ndarray of shape (L, T, T) or (L, B, T, T)
        Entry l: after layer l. Rows of real tokens sum to 1, others
        are 0.

    Raises
    ------
    BertError

    Source: Abnar & Zuidema 2020, section 3, equation 1.
    """
    probs, real = _check_model(probs, attention_mask)
    kinds = (int, float, np.floating)
    if type(residual) is bool or not isinstance(residual, kinds) \
            or not 0 <= residual <= 1:
        raise BertError(f"residual = {short(residual)}, allowed: a number in 0..1")
    residual = float(residual)
    mixed = (1 - residual) * probs.mean(axis=-3)
    mixed += residual * np.eye(probs.shape[-1], dtype=probs.dtype)
    mixed = _divide_by_sums(_hide_masked(mixed, _for_all_heads(real)))
    for layer in range(1, len(mixed)):
        mixed[layer] = mixed[layer] @ mixed[layer - 1]
    return mixed


def weighted_norms(trace, params, attention_mask=None, normalise=False):
    """How much each head moves from each key to each query.

    ||p_ij f(x_j)||, f(x) = (x Wv + bv) Wo, with the columns of Wv and the
    rows of Wo that belong to the head. The output map's own bias is left
    out: it belongs to no key.

    Parameters
    ----------
    trace : dict
        As ``bert`` fills it.
    params : dict
        The parameter tree of the same model.
    attention_mask : ndarray of shape (B, T), optional
    normalise : bool
        True: each row is divided by its sum, so that it can be read, and
        measured, beside the attention.

    Returns
    -------
    list of L ndarrays of shape (B, A, T, T)

    Raises
    ------
    BertError

    Source: Kobayashi et al. 2020.
    """
    norms = []
    for probs, moved in _moved(trace, params):
        norm = probs * np.linalg.norm(moved, axis=-1)[:, :, None, :]
        norm = _hide_masked(norm, _check_mask(attention_mask, probs.shape))
        norms.append(_divide_by_sums(norm) if normalise else norm)
    return norms


def summed_weighted_norms(trace, params, attention_mask=None, normalise=False):
    """How much a layer moves from each key to each query, all heads summed.

    ||sum over heads of p_ij f(x_j)||; see weighted_norms. Heads whose
    vectors point apart cancel, so this is at most the sum of theirs.

    Parameters
    ----------
    trace : dict
    params : dict
    attention_mask : ndarray of shape (B, T), optional
    normalise : bool
        True: each row is divided by its sum.

    Returns
    -------
    list of L ndarrays of shape (B, T, T)

    Raises
    ------
    BertError

    Source: Kobayashi et al. 2020.
    """
    norms = []
    for probs, moved in _moved(trace, params):
        by_query = probs.transpose(0, 3, 2, 1)  # (B, Tk, Tq, A)
        moved = moved.transpose(0, 2, 1, 3)  # (B, Tk, A, H)
        blocks = [
            np.linalg.norm(by_query[:, :, i : i + QUERIES_AT_ONCE] @ moved, axis=-1)
            for i in range(0, probs.shape[-1], QUERIES_AT_ONCE)
        ]  # of shape (B, Tk, 16): never all vectors of all pairs at once
        norm = np.concatenate(blocks, axis=2).swapaxes(1, 2)  # (B, Tq, Tk)
        real = _for_all_heads(_check_mask(attention_mask, probs.shape))
        norm = _hide_masked(norm, real)
        norms.append(_divide_by_sums(norm) if normalise else norm)
    return norms


def _moved(trace, params):
    """For each layer: probs, and each head's f(x) of shape (B, A, T, H)."""
    L = len(_stage(trace, "layers"))
    _require_layers(params)
    if L != len(params["layers"]):
        raise BertError(f"trace has {L} layers, params {len(params['layers'])}; "
                        "give those of one model")
    for i, layer in enumerate(params["layers"]):
        v = _stage(trace, "layers", i, "attention", "v")
        W = layer["attention"]["output"]["W"]  # (H, H): D rows for each head
        moved = v @ W.reshape(v.shape[1], -1, W.shape[1])
        yield _stage(trace, "layers", i, "attention", "probs"), moved


def logit_lens(trace, params, config, positions=None):
    """What the MLM head reads in the hidden states after every layer.

    The head was trained on the last layer's output alone; what it reads
    in earlier ones is a way of looking, not the model's opinion. It
    brings its own dense layer and norm.

    Parameters
    ----------
    trace : dict
        As ``bert`` fills it.
    params : dict
        The whole tree, with "mlm".
    config : BertConfig
    positions : list of int, optional
        Places of the token axis, to save memory; None: all.

    Returns
    -------
    ndarray of shape (L + 1, B, T, V)
        Logits; entry 0 reads the embeddings, entry l layer l - 1. With
        positions, the third axis has one entry for each.

    Raises
    ------
    BertError
        Where there is no MLM head.

    Source: nostalgebraist 2020, interpreting GPT: the logit lens.
    """
    states = [_stage(trace, "embeddings", "output")]
    for i in range(len(_stage(trace, "layers"))):
        states.append(_stage(trace, "layers", i, "output"))
    if positions is not None:
        if not np.iterable(positions):
            raise BertError(f"positions = {short(positions)}, allowed: a list of int")
        last = states[0].shape[1] - 1
        places = [check_count(p, "positions", 0, last) for p in positions]
        states = [state[:, places] for state in states]
    return np.stack([masked_lm_logits(state, params, config) for state in states])


def top_words(logits, tokenizer, top_k=5):
    """The likeliest words for each set of logits.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    tokenizer : Tokenizer
    top_k : int

    Returns
    -------
    words : ndarray of shape (..., top_k)
        str, the likeliest first.
    probs : ndarray of shape (..., top_k)

    Raises
    ------
    BertError
    """
    if tokenizer is None:
        raise BertError("tokenizer is None: this checkpoint came without vocab.txt")
    top_k = check_count(top_k, "top_k", 1, tokenizer.vocab_size)
    if not isinstance(logits, np.ndarray) or logits.dtype.kind != "f":
        found = getattr(logits, "dtype", type(logits).__name__)
        raise BertError(f"logits is {found}, allowed: an array of floats (..., V)")
    if logits.shape[-1:] < (tokenizer.vocab_size,):
        raise BertError(f"logits has shape {logits.shape}, allowed: (..., V), V at "
                        f"least {tokenizer.vocab_size}, the tokenizer's words")
    probs = softmax(logits[..., : tokenizer.vocab_size])
    best = np.argsort(-probs, axis=-1, kind="stable")[..., :top_k]
    return np.array(tokenizer.tokens)[best], np.take_along_axis(probs, best, axis=-1)


def _stage(trace, *path):
    """One stage of a trace, or the one error."""
    stage = trace
    for name in path:
        try:
            stage = stage[name]
        except (KeyError, IndexError, TypeError):
            raise BertError(f"trace has no {'.'.join(map(str, path))}; "
                            "give the dict that bert filled") from None
    return stage


# ------------------------------------------------------------------ ablation

def without_head(params, config, layer, head):
    """The parameters with one head's output set to 0.

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

    Raises
    ------
    BertError

    Source: Michel et al. 2019, section 3.
    """
    layer = check_count(layer, "layer", 0, config.num_hidden_layers - 1)
    head = check_count(head, "head", 0, config.num_attention_heads - 1)
    _require_layers(params)
    D = config.head_size
    layers = list(params["layers"])
    attention = dict(layers[layer]["attention"])
    W = attention["output"]["W"].copy()
    W[head * D : (head + 1) * D] = 0
    attention["output"] = attention["output"] | {"W": W}
    layers[layer] = layers[layer] | {"attention": attention}
    return params | {"layers": layers}


def without_layer(params, config, layer):
    """The model with one layer taken out.

    All of it goes: attention, feed-forward, both residual sums and both
    norms. What came in is passed on unchanged to the next layer. To set
    the outputs of attention and feed-forward to 0 would be another
    thing: the two norms would still act.

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
        Also where the model has one layer only.

    Source: Fan et al. 2020 (1909.11556) and Sajjad et al. 2020
    (2004.03844), who drop layers so.
    """
    L = config.num_hidden_layers
    layer = check_count(layer, "layer", 0, L - 1)
    if L == 1:
        raise BertError("config.num_hidden_layers = 1, allowed: 2 or more; "
                        "no layer would be left")
    _require_layers(params)
    layers = params["layers"][:layer] + params["layers"][layer + 1 :]
    return params | {"layers": layers}, replace(config, num_hidden_layers=L - 1)


class AblationEffects(NamedTuple):
    """What changes without each head and without each layer."""

    heads: np.ndarray  # (L, A): how far the last hidden state moves
    layers: np.ndarray  # (L,)
    heads_kl: np.ndarray | None  # (L, A): how far the MLM predictions move, nats
    layers_kl: np.ndarray | None  # (L,)


def ablation_effects(
    input_ids, params, config, *, segment_ids=None, attention_mask=None,
    positions=None, report=None,
):
    """How far the output moves without each head, and each layer.

    Mean over the real tokens of ||h' - h|| / ||h||, h the last hidden
    state, h' that of the ablated model: see without_head, without_layer.
    With positions also the mean of KL(q || q') in nats, q the MLM
    prediction, q' the ablated model's.

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
        Gets a line of text after each layer.

    Returns
    -------
    AblationEffects
        float64.

    Raises
    ------
    BertError
        Also where positions are given and there is no MLM head.

    Source: Michel et al. 2019, section 3 (heads, with task scores in
    place of these two measures).
    """
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
    """The last hidden state, from what goes into the first of `layers`."""
    return encoder(x, layers, attention_mask, config, return_attention=False)[0]


def _prepare_ablation(ids, segment_ids, attention_mask, positions, params, config):
    """A function of h' that measures its change; each layer's input; mask."""
    whole = bert(ids, params, config, segment_ids=segment_ids,
                 attention_mask=attention_mask, return_attention=False)  # checks all
    ids = np.asarray(ids)
    segment_ids = np.zeros_like(ids) if segment_ids is None else np.asarray(segment_ids)
    mask = (create_attention_mask(ids, config.pad_token_id)
            if attention_mask is None else np.asarray(attention_mask)).astype(bool)
    inputs = [embed(ids, segment_ids, params["embeddings"], config)]
    for layer in params["layers"][:-1]:
        inputs.append(encoder_layer(inputs[-1], layer, mask, config)[0])
    _require_real(mask)
    asked = None if positions is None else _check_positions(positions, ids.shape)
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


# -------------------------------------------------------------------- checks

def _check_maps(probs, attention_mask):
    """The maps as floats, and which keys are real, to broadcast with rows."""
    probs = _as_floats("probs", probs)
    if probs.ndim < 2 or probs.shape[-1] != probs.shape[-2] or probs.size == 0:
        raise BertError(f"probs has shape {probs.shape}, allowed: (..., T, T)")
    wrong = ~((probs >= -TOLERANCE) & (probs <= 1 + TOLERANCE))
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(f"probs[{', '.join(map(str, place))}] = {probs[place]:.6g}, "
                        "allowed: 0..1 (probabilities after the softmax)")
    return probs, _check_mask(attention_mask, probs.shape)


def _check_model(probs, attention_mask):
    """_check_maps for the maps of a whole model."""
    probs, real = _check_maps(probs, attention_mask)
    if probs.ndim not in (4, 5):
        raise BertError(f"probs has shape {probs.shape}, allowed: (L, A, T, T) "
                        "or (L, B, A, T, T)")
    if probs.ndim == 4 and real.ndim > 1:
        raise BertError(f"attention_mask has two axes, allowed with probs of shape "
                        f"{probs.shape}, (L, A, T, T): shape (T,)")
    return probs, real


def _as_floats(name, values):
    try:
        if isinstance(values, (list, tuple)):
            shapes = [np.shape(value) for value in values]
            if len(set(shapes)) > 1:
                raise ValueError(f"its entries have shapes {shapes}")
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BertError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise BertError(f"{name} has dtype {array.dtype}, allowed: real numbers")
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def _check_mask(attention_mask, shape):
    """Which keys are real, (T,), or (B, 1, T) for maps (..., B, A, T, T)."""
    T = shape[-1]
    if attention_mask is None:
        return np.ones(T, bool)
    mask = _as_floats("attention_mask", attention_mask)
    allowed = [(T,)] if len(shape) < 4 else [(T,), (shape[-4], T)]
    if mask.shape not in allowed:
        raise BertError(f"attention_mask has shape {mask.shape}, allowed: "
                        f"{' or '.join(map(str, allowed))} for maps of shape {shape}")
    _refuse_not_binary("attention_mask", mask)
    return mask.astype(bool) if mask.ndim == 1 else mask.astype(bool)[:, None]


def _require_layers(params):
    if not isinstance(params, dict) or not isinstance(params.get("layers"), list):
        raise BertError(f"params is {type(params).__name__}, allowed: the tree of "
                        "parameters, a dict with a list of layers")


def _require_real(mask):
    if not mask.any():
        raise BertError("attention_mask has no 1: there is no real token to measure")


def _for_all_heads(real):
    """The mask for maps without the axis of heads: (T,) or (B, T)."""
    return real if real.ndim == 1 else real[:, 0]


def _check_positions(positions, shape):
    asked = _as_floats("positions", positions)
    if asked.shape != shape:
        raise BertError(f"positions has shape {asked.shape}, allowed: {shape}, "
                        "the shape of input_ids")
    _refuse_not_binary("positions", asked)
    if not asked.any():
        raise BertError("positions has no 1: there is no prediction to compare")
    return asked.astype(bool)


def _refuse_not_binary(name, array):
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(f"{name}[{', '.join(map(str, place))}] = {array[place]:.6g}, "
                        "allowed: 0 or 1")


def _check_tokens(tokens, probs):
    """The tokens as an array (T,), or (B, 1, T), that fits the maps."""
    T, shape = probs.shape[-1], probs.shape
    if isinstance(tokens, (str, bytes)) or not np.iterable(tokens):
        raise BertError(f"tokens is {type(tokens).__name__}, allowed: a list of str")
    nested = len(tokens) > 0 and not isinstance(tokens[0], str)
    rows = [list(row) if np.iterable(row) else [row] for row in tokens] \
        if nested else [list(tokens)]
    for row in rows:
        for token in row:
            if not isinstance(token, str):
                kind = type(token).__name__
                raise BertError(f"tokens holds {kind}, allowed: a list of str")
        if len(row) != T:
            raise BertError(f"tokens: a sentence has {len(row)} entries, allowed: "
                            f"{T}, for probs of shape {shape}")
    if nested and (len(shape) < 4 or shape[-4] != len(rows)):
        raise BertError(f"tokens has {len(rows)} lists, allowed with probs of shape "
                        f"{shape}: one list of {T} str, or one for each sentence B "
                        "of (..., B, A, T, T)")
    return np.array(rows)[:, None] if nested else np.array(rows[0])


def _hide_masked(values, real):
    """The maps with 0 in the rows and columns of masked tokens."""
    if real.all():
        return values
    return values * (real[..., :, None] & real[..., None, :])


def _divide_by_sums(maps):
    """Each row divided by its sum; a row of zeros stays."""
    sums = maps.sum(axis=-1, keepdims=True)
    return np.divide(maps, sums, out=np.zeros_like(maps), where=sums > 0)
