"""Which words decide how a text is classified: three answers, none of them final.

Each method answers a different question; REMARKS says which.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_np.config import PROBLEMS
from bert_np.errors import BertError, short
from bert_np.functional import softmax
from bert_np.heads import sequence_logits
from bert_np.model import bert
from bert_np.tasks.batches import encode_text, run_batches
from bert_np.tasks.sentences import pool_tokens
from bert_np.tokenizer import check_text, cut_text, join_parts
from bert_np.training.fine_tuning import loss_and_gradients
from bert_np.training.inputs import check_single_head, find_head

REMARKS = {
    "leave one out": (
        "How far the probability of the label falls if the word is left out. Two "
        "words that say the same thing hide each other, and the shortened text may be "
        "unlike any that the model was trained on."
    ),
    "attention": (
        "How much of the last layer's attention the word gets, averaged over the "
        "heads; what [CLS] and [SEP] get is not shown. It tells where the model "
        "looked, not what that did to the answer."
    ),
    "gradient x input": (
        "How fast the log-probability of the label begins to change as the word's "
        "vector is scaled up. It holds for a tiny change, and leaving a word out is a "
        "large one."
    ),
}
BODY = ("embeddings", "layers", "pooler", "sequence")


class WordImportance(NamedTuple):
    """The words of a text, and what three methods say of each."""

    words: list  # of N str, as they are written in the text
    label: str  # the label in question
    probability: float  # of the label
    values: dict  # method -> (N,); above 0: for the label


def word_importance(text, params, config, tokenizer, label=None):
    """Ask in three ways which words of a text decide its label.

    Parameters
    ----------
    text : str
    params : dict
        The parameter tree of a model with a sequence head.
    config : BertConfig
        For labels that exclude each other.
    tokenizer : Tokenizer
    label : str, optional
        None: the likeliest.

    Returns
    -------
    WordImportance
        values has an array for each of REMARKS, which says what it is.

    Source: Li et al. 2016 (1612.08220) for leaving words out; Shrikumar et
    al. 2017 (1605.01713) for gradient times input; Jain & Wallace 2019
    (1902.10186) on what attention does not explain.
    """
    params, config, tokenizer = check_single_head((params, config, tokenizer))
    if find_head(params) != "sequence" or config.problem != PROBLEMS[0]:
        found = config.problem if "sequence" in params else find_head(params)
        raise BertError(f"model gives {found}, allowed: a label out of several")
    check_text(text, "text")
    encode_text(text, "text", config, tokenizer)  # refuses what is too long
    pieces = cut_text(text, tokenizer, allow_special=True)
    if not pieces:
        raise BertError(f"text = {short(text)} has no words, allowed: some")
    word_of = np.array([word for *_, word in pieces])
    count = word_of[-1] + 1
    kept = [pieces] + [[p for p in pieces if p[3] != i] for i in range(count)]
    encodings = [join_parts([part], tokenizer) for part in kept]
    probs = _probabilities(encodings, params, config, tokenizer)
    place = _place_of(label, probs[0], config)
    whole = encodings[0].inputs
    values = {
        "leave one out": probs[0, place] - probs[1:, place],
        "attention": _sum_words(_attention(whole, params, config), word_of),
        "gradient x input": _sum_words(
            _gradient_times_input(whole, place, params, config), word_of
        ),
    }
    starts = [pieces[np.flatnonzero(word_of == i)[0]][1] for i in range(count)]
    ends = [pieces[np.flatnonzero(word_of == i)[-1]][2] for i in range(count)]
    words = [text[start:end] for start, end in zip(starts, ends)]
    return WordImportance(words, config.labels[place], float(probs[0, place]), values)


def _place_of(label, probs, config):
    """Return the number of a label, or of the likeliest."""
    if label is None:
        return int(probs.argmax())
    if not isinstance(label, str) or label not in config.labels:
        found = short(config.labels)
        raise BertError(f"label = {short(label)}, allowed: None or one of {found}")
    return config.labels.index(label)


def _probabilities(encodings, params, config, tokenizer):
    """Return the probabilities (N, K) of the labels of texts."""
    probs = np.zeros((len(encodings), len(config.labels)))
    for places, batch, out in run_batches(encodings, params, config, tokenizer):
        vectors = out["pooler_output"]
        if config.classifier_pooling == "mean":
            hidden = out["last_hidden_state"]
            vectors = pool_tokens(hidden, batch.attention_mask, "mean")
        logits = sequence_logits(vectors, params)
        probs[places] = softmax(logits.astype(np.float64))
    return probs


def _attention(inputs, params, config):
    """Return the attention that each piece gets in the last layer: (n,).

    It comes from what the head reads: [CLS], or all tokens.
    """
    maps = bert(**inputs, params=params, config=config)["attention_probs"]
    received = maps[-1][0].mean(axis=0)  # (Tq, Tk): the mean of the heads
    first = config.classifier_pooling == "pooler"
    received = received[0] if first else received.mean(axis=0)
    return received[1:-1]  # without [CLS] and [SEP]


def _gradient_times_input(inputs, place, params, config):
    """Sum each piece's word vector times the slope there over H: (n,).

    A table with a row for each token gives each token a gradient of its
    own, also where two have the same id.
    """
    rows = params["embeddings"]["word"][inputs["input_ids"][0]]  # (T, H)
    tree = {part: params[part] for part in BODY if part in params}
    if config.classifier_pooling == "mean":
        tree.pop("pooler", None)
    tree["embeddings"] = tree["embeddings"] | {"word": rows}
    batch = dict(inputs) | {"input_ids": np.arange(len(rows))[None]}
    batch["labels"] = np.array([place])
    config = replace(config, vocab_size=len(rows), pad_token_id=None)
    _, grads = loss_and_gradients(tree, config, batch)  # of -log probability
    return -(grads["embeddings"]["word"] * rows).sum(axis=1)[1:-1]


def _sum_words(values, word_of):
    """Add up the values of each word's pieces."""
    sums = np.zeros(word_of[-1] + 1)
    np.add.at(sums, word_of, values)
    return sums
