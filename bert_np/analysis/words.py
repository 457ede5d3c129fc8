"""From pieces to words: attention and hidden states of whole words.

BERT cuts words into pieces, but grammar speaks of words. Each word is cut
by itself, so that every piece belongs to one word; [CLS] and [SEP] belong
to none and are left out.
"""

from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import report_tenths
from bert_np.config import require_config
from bert_np.errors import BertError, require_callable, short
from bert_np.fast import fast_bert, prepare
from bert_np.model import embed, encoder_layer
from bert_np.tokenizer import check_count, check_text, require_tokenizer


class WordPieces(NamedTuple):
    """The pieces of a sentence, and which word each belongs to."""

    input_ids: np.ndarray  # (T,), [CLS] and [SEP] included
    members: np.ndarray  # (W, T) of bool: piece t belongs to word w


def word_attention(words, params, config, tokenizer):
    """Compute the attention from each word of a sentence to each other.

    The attention to a word is the sum over its pieces, the attention from
    a word is the mean over its pieces. What goes to [CLS] and [SEP] is
    left out, so a row sums to less than 1.

    Parameters
    ----------
    words : list of W str
        Each is cut into pieces by itself.
    params : dict
    config : BertConfig
    tokenizer : Tokenizer

    Returns
    -------
    ndarray of shape (L, A, W, W)
        Row i holds the attention from word i, column j that to word j.

    Source: Clark et al. 2019, section 4.1.
    """
    ((_, maps),) = run_attention([words], params, config, tokenizer, what="words")
    return maps


def run_attention(
    word_lists,
    params,
    config,
    tokenizer,
    *,
    report=None,
    batch_size=32,
    what="words[{}]",
):
    """Yield (number, maps) for each list of words, the longest first.

    The maps are those of `word_attention`. Everything is checked before
    the first is computed.

    Parameters
    ----------
    word_lists : list of lists of str
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    report : function, optional
        Called with a line of text about ten times in all.
    batch_size : int
        How many lists, of similar length, are run together.
    what : str
        What messages call a list; {} stands for its number.
    """
    cut = cut_all(word_lists, tokenizer, config, what)
    prepared = prepare(params, config)

    def run(inputs):
        return fast_bert(**inputs, prepared=prepared, config=config)["attention_probs"]

    return _run_batches(cut, config, run, between_words, report, batch_size)


def run_states(
    word_lists,
    params,
    config,
    tokenizer,
    *,
    report=None,
    batch_size=32,
    what="words[{}]",
):
    """Yield (number, states) for each list of words, the longest first.

    The states have shape (L + 1, W, H): place 0 holds the embeddings,
    place l the output of layer l - 1. The state of a word is the mean
    over its pieces. For the arguments see `run_attention`.
    """
    cut = cut_all(word_lists, tokenizer, config, what)
    prepare(params, config)  # checks params

    def run(inputs):
        mask = inputs["attention_mask"]
        ids = inputs["input_ids"]
        states = [embed(ids, np.zeros_like(ids), params["embeddings"], config)]
        for layer in params["layers"]:
            states.append(encoder_layer(states[-1], layer, mask, config)[0])
        return states

    return _run_batches(cut, config, run, means_of_words, report, batch_size)


def between_words(probs, members):
    """Sum maps (..., T, T) over the pieces of a key, average over a query's.

    >>> members = np.array([[1, 1, 0], [0, 0, 1]])
    >>> between_words(np.array([[0.5, 0.25, 0.25], [1, 0, 0], [0, 0, 1]]), members)
    array([[0.875, 0.125],
           [0.   , 1.   ]])
    """
    members = members.astype(probs.dtype)
    average = members / members.sum(axis=1, keepdims=True)  # (W, T)
    return average @ probs @ members.T


def means_of_words(states, members):
    """Average hidden states (..., T, H) over the pieces of each word."""
    members = members.astype(states.dtype)
    return members / members.sum(axis=1, keepdims=True) @ states


def cut_all(word_lists, tokenizer, config, what):
    """Cut every list of words into pieces, or raise the one error."""
    require_tokenizer(tokenizer)
    require_config(config)
    if not isinstance(word_lists, (list, tuple)) or len(word_lists) == 0:
        raise BertError(f"{short(word_lists)} is no list of one or more lists of str")
    cut = []
    for number, words in enumerate(word_lists):
        name = what.format(number)
        cut.append(cut_words(words, tokenizer, name))
        count = len(cut[-1].input_ids)
        if count > config.max_position_embeddings:
            raise BertError(
                f"{name} has {count} pieces with [CLS] and [SEP], allowed: at most "
                f"{config.max_position_embeddings}; leave it out or shorten it"
            )
    return cut


def cut_words(words, tokenizer, name):
    """Cut one list of words into pieces, each word by itself."""
    if not isinstance(words, (list, tuple)) or len(words) == 0:
        raise BertError(f"{name} is {short(words)}, allowed: a list of one or more str")
    for place, word in enumerate(words):
        check_text(word, f"{name}[{place}]")
    cut = tokenizer.encode(list(words), is_split_into_words=True, allow_special=False)
    numbers = [-1 if number is None else number for number in cut.word_ids]
    members = np.arange(len(words))[:, None] == numbers
    for place in np.flatnonzero(~members.any(axis=1)):
        raise BertError(
            f"{name}[{place}] = {short(words[place])} has no piece, since cleaning "
            "leaves nothing of it; leave it out"
        )
    return WordPieces(cut.input_ids, members)


def _run_batches(cut, config, run, to_words, report, batch_size):
    """Run batches of similar length; yield (number, stack for words)."""
    if report is not None:
        require_callable("report", report)
    batch_size = check_count(batch_size, "batch_size", 1)
    return _generate(cut, config, run, to_words, report, batch_size)


def _generate(cut, config, run, to_words, report, batch_size):
    lengths = np.array([len(pieces.input_ids) for pieces in cut])
    order, N = np.argsort(-lengths, kind="stable"), len(cut)
    for start in range(0, N, batch_size):
        rows = order[start : start + batch_size]
        mask = np.arange(lengths[rows[0]]) < lengths[rows, None]  # (B, T)
        ids = np.zeros(mask.shape, dtype=int)
        ids[mask] = np.concatenate([cut[row].input_ids for row in rows])
        stacks = run({"input_ids": ids, "attention_mask": mask})
        for place, row in enumerate(rows):
            members = cut[row].members
            padded = np.pad(members, ((0, 0), (0, mask.shape[1] - members.shape[1])))
            yield int(row), to_words(np.stack([x[place] for x in stacks]), padded)
        report_tenths(report, start, start + len(rows), N, "sentences")
