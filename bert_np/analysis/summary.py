"""What each head does, on average over many texts."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import report_tenths
from bert_np.analysis.flow import weighted_norms
from bert_np.analysis.statistics import (
    attention_distance,
    attention_entropy,
    attention_masses,
)
from bert_np.config import require_config
from bert_np.errors import require_bool, require_callable
from bert_np.fast import fast_bert, prepare
from bert_np.inputs import check_texts
from bert_np.model import bert
from bert_np.tokenizer import SPECIAL_TOKENS, check_count, require_tokenizer


class HeadSummary(NamedTuple):
    """Means over many texts, for each head."""

    means: dict  # measure -> (L, A), float64
    texts: int
    tokens: int  # real ones, [CLS] and [SEP] included


def summarise_heads(
    texts, params, config, tokenizer, *, by_norm=False, report=None, batch_size=16
):
    """Average what each head does over many texts.

    Every real token of every text counts equally; for "previous" and
    "next" only those that have such a neighbour. Sums are in float64, so
    batch_size changes nothing but rounding.

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
        Called with a line of text about ten times in all.
    batch_size : int
        How many texts, of similar length, are run together.

    Returns
    -------
    HeadSummary
        Its means: "entropy" (nats), "normalised entropy", "distance",
        and those of attention_masses.

    Source: Clark et al. 2019, section 3.
    """
    require_tokenizer(tokenizer)
    require_config(config)
    require_bool("by_norm", by_norm)
    if report is not None:
        require_callable("report", report)
    batch_size = check_count(batch_size, "batch_size", 1)
    batch = tokenizer.encode_batch(texts)
    check_texts(batch, [f"texts[{i}]" for i in range(len(texts))], config)
    lengths = batch.attention_mask.sum(axis=1)
    N, total = len(lengths), int(lengths.sum())
    order = np.argsort(-lengths, kind="stable")  # if memory is short, fail at once
    size = (config.num_hidden_layers, config.num_attention_heads)
    sums = defaultdict(lambda: np.zeros(size))
    prepared = prepare(params, config)
    for start in range(0, N, batch_size):
        rows = order[start : start + batch_size]
        inputs, tokens = _select(batch, rows, lengths[rows[0]], tokenizer)
        for layer, maps in enumerate(_run_maps(inputs, prepared, config, by_norm)):
            measured = _measure(maps, tokens, inputs["attention_mask"])
            for name, values in measured.items():  # (B, A, T)
                sums[name][layer] += values.sum(axis=(0, 2), dtype=np.float64)
        report_tenths(report, start, start + len(rows), N, "texts")
    count = {"previous": total - N, "next": total - N}
    means = {name: values / count.get(name, total) for name, values in sums.items()}
    return HeadSummary(means, N, total)


def _select(batch, rows, length, tokenizer):
    """Return the inputs and tokens of some rows of a batch, cut to a length.

    Special tokens get their usual names.
    """
    inputs = {name: array[rows, :length] for name, array in batch.inputs.items()}
    usual = dict(zip(tokenizer.special, SPECIAL_TOKENS))
    tokens = [batch.tokens[row][:length] for row in rows]
    return inputs, [[usual.get(token, token) for token in row] for row in tokens]


def _run_maps(inputs, prepared, config, by_norm):
    """Return the maps of a part of a batch: a list of L arrays (B, A, T, T)."""
    if not by_norm:
        return fast_bert(**inputs, prepared=prepared, config=config)["attention_probs"]
    params, trace = prepared["params"], {}
    bert(**inputs, params=params, config=config, trace=trace)
    return weighted_norms(trace, params, inputs["attention_mask"], normalise=True)


def _measure(maps, tokens, mask):
    return {
        "entropy": attention_entropy(maps, mask, normalise=False),
        "normalised entropy": attention_entropy(maps, mask),
        "distance": attention_distance(maps, mask),
        **attention_masses(maps, tokens, mask),
    }
