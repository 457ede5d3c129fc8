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
    batches, _ = _make_batches(cut, report, batch_size)
    return _generate_maps(batches, prepared, config, report)


def run_states(
    word_lists, params, config, tokenizer, *, report=None, batch_size=32, what="words"
):
    """Yield the states (N, H) of all words: the embeddings, then each layer.

    The state of a word is the mean over its pieces; the words are in the
    order of the lists. All sentences go through one layer before the next
    is run, so that only one layer's states are in memory. For the
    arguments see `run_attention`.
    """
    cut = cut_all(word_lists, tokenizer, config, what)
    prepare(params, config)  # checks params
    batches, order = _make_batches(cut, report, batch_size)
    words = np.cumsum([0, *(len(pieces.members) for pieces in cut)])
    rows = np.concatenate([np.arange(words[n], words[n + 1]) for n in order])
    return _generate_states(batches, rows, params, config, report)


def _generate_states(batches, rows, params, config, report):
    tables = params["embeddings"]
    states = [embed(b.ids, np.zeros_like(b.ids), tables, config) for b in batches]
    for number, layer in enumerate((None, *params["layers"])):
        if layer is not None:
            for place, batch in enumerate(batches):
                x = states[place]
                states[place] = encoder_layer(x, layer, batch.mask, config)[0]
        found = np.empty((len(rows), config.hidden_size), states[0].dtype)
        found[rows] = np.concatenate(
            [
                means_of_words(x, members)
                for batch, xs in zip(batches, states)
                for x, members in zip(xs, batch.members)
            ]
        )
        yield found
        if report is not None:
            report(f"layer {number}/{config.num_hidden_layers}")


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
    """Cut every list of words into pieces, or raise BertError."""
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


class Batch(NamedTuple):
    """Some sentences of similar length, padded to the same length."""

    numbers: list  # which sentences of the list
    ids: np.ndarray  # (B, T)
    mask: np.ndarray  # (B, T) of bool
    members: list  # for each sentence (W, T) of bool: see WordPieces


def _make_batches(cut, report, batch_size):
    """Put sentences of similar length together, the longest first."""
    if report is not None:
        require_callable("report", report)
    batch_size = check_count(batch_size, "batch_size", 1)
    lengths = np.array([len(pieces.input_ids) for pieces in cut])
    order, batches = np.argsort(-lengths, kind="stable"), []
    for start in range(0, len(cut), batch_size):
        rows = order[start : start + batch_size]
        mask = np.arange(lengths[rows[0]]) < lengths[rows, None]  # (B, T)
        ids = np.zeros(mask.shape, dtype=int)
        ids[mask] = np.concatenate([cut[row].input_ids for row in rows])
        T = mask.shape[1]
        members = [
            np.pad(cut[row].members, ((0, 0), (0, T - lengths[row]))) for row in rows
        ]
        batches.append(Batch(rows.tolist(), ids, mask, members))
    return batches, order


def _generate_maps(batches, prepared, config, report):
    done, total = 0, sum(len(batch.numbers) for batch in batches)
    for batch in batches:
        out = fast_bert(batch.ids, prepared, config, attention_mask=batch.mask)
        maps = out["attention_probs"]
        for place, number in enumerate(batch.numbers):
            probs = np.stack([layer[place] for layer in maps])  # (L, A, T, T)
            yield number, between_words(probs, batch.members[place])
        before, done = done, done + len(batch.numbers)
        report_tenths(report, before, done, total, "sentences")
