"""One pre-training batch: both heads' logits, both losses, all gradients.

A batch is a dict of arrays:
    input_ids : (B, T), some of them masked
    segment_ids : (B, T)
    attention_mask : (B, T), 1 real, 0 padding
    mlm_labels : (B, T), the original id, or -100 at other positions
    nsp_labels : (B,), 0 if the second text follows, 1 if it does not,
        -100 if there is no second text

Many checkpoints come with the MLM head alone. Then the MLM loss is the
whole loss, as in RoBERTa's training, and a batch needs no nsp_labels.
"""

import math

import numpy as np

from bert_np.checked import checked
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import bert
from bert_np.training.backward import (
    embed_backward,
    encoder_backward,
    masked_lm_logits_backward,
    next_sentence_logits_backward,
    pool_backward,
)
from bert_np.training.inputs import IGNORED, check_batch
from bert_np.training.losses import (
    count_right,
    masked_cross_entropy,
    next_sentence_cross_entropy,
)
from bert_np.training.parts import add_parts
from bert_np.tree import map_leaves


def losses_and_gradients(params, config, batch, *, rng=None, parts=1, run_all=map):
    """Run a batch forward and backward.

    loss = mlm_loss + nsp_loss, each a mean over its labelled positions.
    Without an NSP head loss = mlm_loss. In a part of a batch, padding that
    all rows share is left out: rows of similar length should be
    neighbours.

    Parameters
    ----------
    params : dict
        The parameter tree with an MLM head, and with or without an NSP
        head and its pooler; never written to.
    config : BertConfig
    batch : dict
        The arrays that the module's docstring lists.
    rng : numpy.random.Generator, optional
        Switches dropout on, with the rates of config. If the batch is
        cut, rng draws a seed for each part.
    parts : int
        1..B: see add_parts.
    run_all : function
        map, or the map of a pool of threads.

    Returns
    -------
    metrics : dict of float
        loss, mlm_loss, nsp_loss in nats; mlm_accuracy, nsp_accuracy in
        0..1, or NaN if nothing is labelled.
    grads : dict
        Shaped like params.

    Source: Devlin et al. 2018, appendix A.2: the sum of the two losses;
    Liu et al. 2019 (1907.11692), section 4.2: the MLM loss alone.
    """
    batch = check_batch(batch, params, parts, rng, run_all)
    counts = {
        task: np.count_nonzero(batch[f"{task}_labels"] != IGNORED)
        for task in ("mlm", "nsp")
    }

    def run_part(part, part_rng):
        short = _trim(part)
        return _losses_and_gradients_of_part(params, config, short, counts, part_rng)

    sums, grads = add_parts(run_part, batch, parts, rng, run_all)
    mlm_loss, nsp_loss, mlm_right, nsp_right = sums
    metrics = {
        "loss": mlm_loss + nsp_loss,
        "mlm_loss": mlm_loss,
        "nsp_loss": nsp_loss,
        "mlm_accuracy": mlm_right / counts["mlm"] if counts["mlm"] else math.nan,
        "nsp_accuracy": nsp_right / counts["nsp"] if counts["nsp"] else math.nan,
    }
    return metrics, grads


def _losses_and_gradients_of_part(params, config, batch, counts, rng):
    """Return the part's terms of both losses, its right answers, its gradients."""
    trace = {}
    mlm_logits, nsp_logits = pretraining_logits(
        params, config, batch, trace=trace, rng=rng
    )
    mlm_labels = batch["mlm_labels"][batch["mlm_labels"] != IGNORED][None]  # (1, N)
    mlm_loss, d_mlm = masked_cross_entropy(
        mlm_logits, mlm_labels, counts["mlm"] or None
    )
    mlm_right = count_right(mlm_logits, mlm_labels)
    nsp_loss, d_nsp, nsp_right = 0.0, None, 0
    if nsp_logits is not None:
        labels = batch["nsp_labels"]
        nsp_loss, d_nsp = next_sentence_cross_entropy(
            nsp_logits, labels, counts["nsp"] or None
        )
        nsp_right = count_right(nsp_logits, labels)
    grads = gradients(trace, d_mlm, d_nsp, batch, params, config)
    return (mlm_loss, nsp_loss, mlm_right, nsp_right), grads


def _trim(batch):
    """Leave out the columns at the end that are padding in every row.

    Nothing visible reads them and no loss is taken there. Only a row that
    is all padding would read them: it attends to every column alike.
    """
    visible = batch["attention_mask"].astype(bool)
    needed = visible | (batch["mlm_labels"] != IGNORED)
    needed |= ~visible.any(axis=1, keepdims=True)
    length = np.flatnonzero(needed.any(axis=0)).max(initial=0) + 1
    return {key: array[:, :length] if array.ndim > 1 else array
            for key, array in batch.items()}  # fmt: skip


def pretraining_logits(params, config, batch, *, trace=None, rng=None):
    """Compute both heads' logits, the MLM head's at labelled positions only.

    The MLM head treats each position on its own. Positions without a label
    would cost as much and contribute no loss, so only the labelled rows of
    the hidden states are gathered.

    Parameters
    ----------
    params : dict
    config : BertConfig
    batch : dict
    trace : dict, optional
    rng : numpy.random.Generator, optional

    Returns
    -------
    mlm_logits : ndarray of shape (1, N, V)
        N labelled positions, row by row.
    nsp_logits : ndarray of shape (B, 2), or None without an NSP head

    Trace
    -----
    mlm.transform : (1, N, H)
    mlm.activated : (1, N, H)
    mlm.norm : (1, N, H)
    mlm.logits : (1, N, V)
    nsp.logits : (B, 2)
    """
    batch = check_batch(batch, params)
    out = bert(
        batch["input_ids"],
        params,
        config,
        segment_ids=batch["segment_ids"],
        attention_mask=batch["attention_mask"],
        trace=trace,
        rng=rng,
        return_attention=False,
    )
    labelled = batch["mlm_labels"] != IGNORED  # (B, T)
    hidden = out["last_hidden_state"][labelled][None]  # (1, N, H)
    mlm_logits = masked_lm_logits(hidden, params, config, trace=trace)
    if "nsp" not in params:
        return mlm_logits, None
    return mlm_logits, next_sentence_logits(out["pooler_output"], params, trace=trace)


@checked
def gradients(trace, d_mlm_logits, d_nsp_logits, batch, params, config):
    """Send the gradients of both heads' logits back to every parameter.

    The parts of the model in reverse order. The last hidden states feed
    both heads, and the word table serves both the lookup and the MLM head:
    their gradients are sums.

    Parameters
    ----------
    trace : dict
        What pretraining_logits recorded.
    d_mlm_logits : ndarray of shape (1, N, V)
    d_nsp_logits : ndarray of shape (B, 2) or None
        None: the model has no NSP head.
    batch : dict
    params : dict
    config : BertConfig

    Returns
    -------
    dict
        Shaped like params. What no loss depends on has gradient 0.
    """
    hidden = trace["layers"][-1]["output"]  # (B, T, H)
    labelled = batch["mlm_labels"] != IGNORED  # (B, T)
    d_gathered, mlm, d_word = masked_lm_logits_backward(
        d_mlm_logits, hidden[labelled][None], trace["mlm"], params, config
    )
    d_hidden, of_pairs = np.zeros_like(hidden), {}
    if d_nsp_logits is not None:
        d_pooled, nsp = next_sentence_logits_backward(
            d_nsp_logits, trace["pooler"]["output"], params["nsp"]
        )
        d_hidden, pooler = pool_backward(
            d_pooled, hidden, trace["pooler"], params["pooler"]
        )
        of_pairs = {"pooler": pooler, "nsp": nsp}
    d_hidden[labelled] += d_gathered[0]
    d_x, layers = encoder_backward(
        d_hidden,
        trace["embeddings"]["output"],
        trace["layers"],
        params["layers"],
        batch["attention_mask"],
        config,
    )
    embeddings = embed_backward(
        d_x,
        trace["embeddings"],
        batch["input_ids"],
        batch["segment_ids"],
        params["embeddings"],
        config,
    )
    embeddings["word"] += d_word
    found = {"embeddings": embeddings, "layers": layers, "mlm": mlm} | of_pairs
    others = {part: params[part] for part in params if part not in found}
    zeros = map_leaves(lambda _, array: np.zeros_like(array), others)
    return {part: (found | zeros)[part] for part in params}
