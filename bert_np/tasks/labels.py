"""Labels: of a text as a whole, and of each of its words."""

from typing import NamedTuple

import numpy as np

from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.functional import softmax
from bert_np.heads import sequence_logits, token_logits
from bert_np.inputs import check_texts, require_head
from bert_np.parameters import check_params
from bert_np.tasks.batches import (
    check_window,
    encode_texts,
    require_count,
    require_list,
    run_batches,
    windows,
)
from bert_np.tasks.sentences import pool_tokens
from bert_np.tokenizer import check_text, cut_text, join_parts, require_tokenizer


# -------------------------------------------------------- a text as a whole
def classify(texts, params, config, tokenizer, top_k=None, max_length=None):
    """Say which label fits each text.

    Labels that exclude each other get probabilities that sum to 1
    (softmax). Where a text may have several labels, each gets an
    independent probability (logistic function). A model that was trained
    for regression gives a number in place of a probability.

    Parameters
    ----------
    texts : list of str or of tuples (str, str)
        A pair is read as two segments.
    params : dict
        The parameter tree of a model with a sequence head.
    config : BertConfig
        config.labels are the names; config.problem says which of the
        three it is. One label alone is read as regression.
    tokenizer : Tokenizer
    top_k : int, optional
        How many labels to return for each text. None: all.
    max_length : int, optional
        Longer texts are cut to this many tokens. None: a text longer
        than the model's positions is an error.

    Returns
    -------
    list of list of (str, float)
        For each text its labels with their probabilities, the likeliest
        first; for regression the numbers in the order of config.labels.
        Ten batches or more show a progress bar.

    Raises
    ------
    BertError
        If the model has no sequence head, or no pooler for it.

    Source: Devlin et al. 2018, section 4.1.
    """
    require_tokenizer(tokenizer)
    _check_classifier(params, config, top_k)
    require_list("texts", texts, "str or of pairs (str, str)")
    encodings = encode_texts(texts, config, tokenizer, max_length)
    logits = np.zeros((len(texts), len(config.labels)))
    for places, batch, out in run_batches(encodings, params, config, tokenizer):
        logits[places] = sequence_logits(_vectors(batch, out, config), params)
    scores = label_scores(logits, config.problem)
    return [_ranked(row, config, top_k) for row in scores]


def label_scores(logits, problem):
    """Turn the logits of labels into the scores that classify returns.

    Parameters
    ----------
    logits : ndarray of shape (B, K)
    problem : str
        As BertConfig.problem gives it.

    Returns
    -------
    ndarray of shape (B, K)
        Probabilities, or for regression the logits themselves.
    """
    if problem == "regression":
        return logits
    if problem == "multi_label_classification":
        return 1 / (1 + np.exp(-np.maximum(logits, -700)))  # e^710 overflows
    return softmax(logits)


def _check_classifier(params, config, top_k):
    """Refuse a model that cannot classify, and a top_k that it cannot give."""
    require_config(config)
    require_head(params, "sequence", "sequence-classification")
    if config.classifier_pooling == "pooler" and "pooler" not in params:
        raise BertError(
            "params has no 'pooler', which the sequence head reads; parts present: "
            f"{', '.join(params)}"
        )
    check_params(params, config)
    if top_k is not None and config.problem == "regression":
        raise BertError(f"top_k = {short(top_k)}, allowed: None for regression")
    if top_k is not None:
        require_count("top_k", top_k, len(config.labels))


def _vectors(batch, out, config):
    """Return the vector of each text that the sequence head reads: (B, H)."""
    if config.classifier_pooling == "pooler":
        return out["pooler_output"]
    return pool_tokens(out["last_hidden_state"], batch.attention_mask, "mean")


def _ranked(scores, config, top_k):
    """Return the labels with their scores, the best first."""
    named = [(label, float(score)) for label, score in zip(config.labels, scores)]
    if config.problem != "regression":
        named.sort(key=lambda pair: -pair[1])
    return named[:top_k]


# ---------------------------------------------------------- word by word
class Span(NamedTuple):
    """A word, or several, with a label: text[start:end] of what was given."""

    text: str
    label: str
    probability: float
    start: int
    end: int


class Tagged(NamedTuple):
    """The words of one text with their labels, and the spans they make."""

    words: list  # a Span for each word
    spans: list  # a Span for each run of words with labels B-X, I-X, I-X, ...


def tag(texts, params, config, tokenizer, overlap=None):
    """Give each word of each text a label, and join words into spans.

    The label of a word is read from its first piece. Labels that begin
    with "B-" and "I-", as those of named entities do, mark the first and
    the following words of a span: B-PER I-PER is one person, B-PER B-PER
    are two. An "I-" without a beginning starts a span too.

    Parameters
    ----------
    texts : list of str, or list of lists of str
        A text is cut into words at white space and around punctuation; a
        list of words is left as it is.
    params : dict
        The parameter tree of a model with a token head.
    config : BertConfig
        config.labels are the names.
    tokenizer : Tokenizer
    overlap : int, optional
        A text longer than the model's positions is read in windows that
        share this many pieces; each piece takes its label from the window
        in which it has more context. None: 128, or half a window.

    Returns
    -------
    list of Tagged
        (words, spans) for each text: lists of Span, that is (text, label,
        probability, start, end). In a text start and end count
        characters, in a list of words they count words. The probability
        of a span is the mean of its words'. Ten batches or more show a
        progress bar.

    Raises
    ------
    BertError
        If the model has no token head, or a word has no pieces.

    Source: Devlin et al. 2018, section 5.3; the labels: Ramshaw & Marcus
    1995 (cmp-lg/9505040).
    """
    require_tokenizer(tokenizer)
    require_config(config)
    require_head(params, "token", "token-classification")
    check_params(params, config)
    require_list("texts", texts, "str or of lists of words")
    room = config.max_position_embeddings - 2  # beside [CLS] and [SEP]
    overlap = check_window(room, overlap)
    cuts = [_pieces(text, f"texts[{i}]", tokenizer) for i, text in enumerate(texts)]
    logits = _piece_logits(cuts, room, overlap, params, config, tokenizer)
    return [
        _tagged(text, pieces, softmax(scores), config.labels)
        for text, pieces, scores in zip(texts, cuts, logits)
    ]


def _pieces(text, name, tokenizer):
    """Cut a text or a list of words: (piece, start, end, number of its word)."""
    if not isinstance(text, (list, tuple)):
        check_text(text, name)
        return cut_text(text, tokenizer, allow_special=True)
    for i, word in enumerate(text):
        check_text(word, f"{name}[{i}]")
    pieces = cut_text(text, tokenizer, allow_special=True)
    for i in sorted(set(range(len(text))) - {word for *_, word in pieces}):
        raise BertError(f"{name}[{i}] = {short(text[i])} has no pieces; leave it out")
    return pieces


def _piece_logits(cuts, room, overlap, params, config, tokenizer):
    """Return the logits of each text's pieces, from windows with most context.

    They are a list of N arrays (number of pieces, K).
    """
    parts = [
        (i, start, end)
        for i, pieces in enumerate(cuts)
        for start, end in windows(len(pieces), room, overlap)
    ]
    encodings = [join_parts([cuts[i][a:b]], tokenizer) for i, a, b in parts]
    for (i, *_), encoding in zip(parts, encodings):
        check_texts(encoding, [f"texts[{i}]"], config)
    logits = [np.zeros((len(pieces), len(config.labels))) for pieces in cuts]
    context = [np.full(len(pieces), -1) for pieces in cuts]
    for places, _, out in run_batches(encodings, params, config, tokenizer):
        for place, row in zip(places, token_logits(out["last_hidden_state"], params)):
            i, start, end = parts[place]
            n = np.arange(end - start)
            nearest = np.minimum(n, n[::-1])  # pieces to the nearer edge
            better = nearest > context[i][start:end]
            logits[i][start:end][better] = row[1 : 1 + len(n)][better]
            context[i][start:end][better] = nearest[better]
    return logits


def _tagged(text, pieces, probs, labels):
    """Return the words and spans of one text, from its pieces' probabilities."""
    listed, words = not isinstance(text, str), {}
    for (_, start, end, word), row in zip(pieces, probs):
        if word in words:  # a later piece: it only moves the end
            words[word][-1] = end
        else:
            best = row.argmax()
            words[word] = [labels[best], float(row[best]), start, end]
    if listed:
        words = {i: [*word[:2], i, i + 1] for i, word in words.items()}
    words = [_span(text, *word) for word in words.values()]
    return Tagged(words, join_spans(text, words))


def join_spans(text, words):
    """Join words into spans, as tag does.

    B-X begins a span, I-X continues one of X or else begins one, and any
    other label belongs to none.

    Parameters
    ----------
    text : str or list of str
        The text, or the words that were given.
    words : list of Span
        All its words with their labels, in order.

    Returns
    -------
    list of Span
    """
    groups, last = [], None
    for word in words:
        kind, _, name = word.label.partition("-")
        inside = kind in ("B", "I") and name != ""
        if inside and kind == "I" and name == last:
            groups[-1].append(word)
        elif inside:
            groups.append([word])
        last = name if inside else None
    return [
        _span(
            text,
            group[0].label[2:],
            sum(word.probability for word in group) / len(group),
            group[0].start,
            group[-1].end,
        )
        for group in groups
    ]


def _span(text, label, probability, start, end):
    shown = text[start:end] if isinstance(text, str) else " ".join(text[start:end])
    return Span(shown, label, probability, start, end)
