"""What is frozen in fine-tuning: computed once, and kept.

While only the top layers are trained, the layers below give the same for a
text in every epoch. So each text goes through them once, by the fast path,
and every epoch begins where they end.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_np.fast import fast_bert, prepare
from bert_np.model import embed
from bert_np.training.examples import batches_by_length
from bert_np.training.inputs import IGNORED

AT_ONCE = 64  # texts that run together


class Data(NamedTuple):
    """Examples as the trained part of the model meets them."""

    rows: list  # of Row
    hidden: list | None  # of (T, H), what the frozen layers made of each


def split_layers(params, layers):
    """Cut a tree into what is frozen and what is trained.

    Parameters
    ----------
    params : dict
        With one head.
    layers : int or None
        How many of the top layers are trained. None: everything.

    Returns
    -------
    frozen : dict
        embeddings and layers, or empty.
    trained : dict
        The other layers, the head, and the pooler if there is one.
    """
    if layers is None:
        return {}, params
    cut = len(params["layers"]) - layers
    frozen = {"embeddings": params["embeddings"], "layers": params["layers"][:cut]}
    rest = {name: part for name, part in params.items() if name != "embeddings"}
    return frozen, rest | {"layers": params["layers"][cut:]}


def join_layers(frozen, trained):
    """Put the two trees of split_layers together again."""
    if not frozen:
        return trained
    layers = frozen["layers"] + trained["layers"]
    return {"embeddings": frozen["embeddings"]} | trained | {"layers": layers}


def run_frozen(rows, frozen, config, report=None):
    """Let every text pass the frozen layers, without dropout.

    Parameters
    ----------
    rows : list of Row
    frozen : dict
        From split_layers.
    config : BertConfig
    report : function, optional
        Called with a line of text now and then.

    Returns
    -------
    Data
        For each text, hidden has the states of its real tokens.
    """
    if not frozen or not rows:
        return Data(rows, None if not frozen else [])
    run = _frozen_model(frozen, config)
    lengths = np.array([len(row.input_ids) for row in rows])
    hidden, done = [None] * len(rows), 0
    for count, numbers in enumerate(batches_by_length(lengths, AT_ONCE), start=1):
        batch = pad_batch([rows[i] for i in numbers], config.pad_token_id)
        for i, states in zip(numbers, run(batch)):
            hidden[i] = states[: lengths[i]].copy()
        done += len(numbers)
        if report is not None and (count % 20 == 0 or done == len(rows)):
            report(f"frozen layers: {done:,} of {len(rows):,} texts")
    return Data(rows, hidden)


def _frozen_model(frozen, config):
    """Return the function of a batch that gives hidden states (B, T, H)."""
    count = len(frozen["layers"])
    if not count:
        return lambda batch: embed(
            batch["input_ids"], batch["segment_ids"], frozen["embeddings"], config
        )
    lower = replace(config, num_hidden_layers=count)
    prepared = prepare(frozen, lower)
    return lambda batch: fast_bert(
        batch["input_ids"],
        prepared,
        lower,
        segment_ids=batch["segment_ids"],
        attention_mask=batch["attention_mask"],
        return_attention=False,
    )["last_hidden_state"]


def batch_of(data, numbers, config):
    """Make the batch of some of the examples."""
    rows = [data.rows[i] for i in numbers]
    hidden = data.hidden and [data.hidden[i] for i in numbers]
    return pad_batch(rows, config.pad_token_id, hidden)


def pad_batch(rows, pad_token_id, hidden=None):
    """Stack examples into the arrays of a batch, padded on the right.

    Parameters
    ----------
    rows : list of B Row
    pad_token_id : int or None
    hidden : list of B ndarray of shape (T, H), optional
        What the frozen layers made of each example.

    Returns
    -------
    dict
        input_ids, segment_ids, attention_mask : (B, T)
        labels : (B,), (B, K), (B, T) or (B, 2)
        hidden : (B, T, H), if given
    """
    longest = max(len(row.input_ids) for row in rows)

    def stack(arrays, fill):
        shape = len(arrays), longest, *arrays[0].shape[1:]
        stacked = np.full(shape, fill, arrays[0].dtype)
        for row, array in zip(stacked, arrays):
            row[: len(array)] = array
        return stacked

    labels = [row.labels for row in rows]
    each_token = all(len(row.input_ids) == row.labels.size for row in rows)
    batch = {
        "input_ids": stack([row.input_ids for row in rows], pad_token_id or 0),
        "segment_ids": stack([row.segment_ids for row in rows], 0),
        "attention_mask": stack([np.ones(len(r.input_ids), int) for r in rows], 0),
        "labels": stack(labels, IGNORED) if each_token else np.stack(labels),
    }
    return batch if hidden is None else batch | {"hidden": stack(hidden, 0)}


def size_of(data):
    """Return how many bytes the kept states take."""
    return sum(states.nbytes for states in data.hidden or ())
