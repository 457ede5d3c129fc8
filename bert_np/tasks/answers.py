"""Answers: the span of a text that answers a question about it."""

import sys
from typing import NamedTuple

import numpy as np

from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.heads import span_logits
from bert_np.inputs import check_texts, require_head
from bert_np.parameters import check_params
from bert_np.tasks.batches import (
    check_window,
    require_count,
    run_batches,
    windows,
)
from bert_np.tokenizer import check_text, cut_text, join_parts, require_tokenizer

LENGTH = 384  # tokens of a window and its question, as in google-research's code


class Answer(NamedTuple):
    """A span of the text, text[start:end], which is empty for "no answer"."""

    text: str
    start: int
    end: int
    probability: float


def answer(
    question,
    text,
    params,
    config,
    tokenizer,
    max_length=None,
    overlap=None,
    longest=30,
    no_answer_threshold=None,
):
    """Find the span of a text that answers a question.

    Every piece of the text is scored as the start and as the end of the
    answer, and the span (i, j) with the largest sum of both is returned,
    extended to whole words. A text that is too long for the model is read
    in windows, each after the question, and the best span of all is taken.

    A model that was also trained on questions without an answer, such as
    those of SQuAD 2.0, gives the span from [CLS] to [CLS] for them.
    HuggingFace's files do not say whether a model was trained like this,
    so no_answer_threshold has to.

    Parameters
    ----------
    question, text : str
    params : dict
        The parameter tree of a model with a span head.
    config : BertConfig
    tokenizer : Tokenizer
    max_length : int, optional
        The tokens of one window, question and special tokens included.
        None: 384, or the model's positions if they are fewer.
    overlap : int, optional
        How many pieces two windows share. None: 128, or half a window.
    longest : int
        The most pieces that an answer may have.
    no_answer_threshold : float, optional
        There is no answer unless the best span's score exceeds that of
        [CLS] by more than this; of several windows the smallest score of
        [CLS] counts. 0 favours neither; which value is best is found on
        questions whose answers are known. None:
        config.no_answer_threshold, and if that is None too, a span is
        always returned.

    Returns
    -------
    Answer
        (text, start, end, probability); start and end count characters of
        the text. Without an answer ("", 0, 0, probability). The
        probability is that of the start times that of the end, each a
        softmax over [CLS] and the text's pieces in all windows.

    Raises
    ------
    BertError
        If the model has no span head.

    Source: Devlin et al. 2018, sections 4.2 and 4.3. Windows and lengths
    are those of google-research's run_squad.py.
    """
    require_tokenizer(tokenizer)
    _check_reader(params, config, longest)
    threshold = _threshold(no_answer_threshold, config)
    asked = _pieces("question", question, tokenizer)
    pieces = _pieces("text", text, tokenizer)
    room = _room(asked, max_length, config)
    places = windows(len(pieces), room, check_window(room, overlap))
    encodings = [join_parts([asked, pieces[a:b]], tokenizer) for a, b in places]
    for encoding in encodings:
        check_texts(encoding, ["question with text"], config)
    start, end = _logits(encodings, len(asked) + 2, room, params, config, tokenizer)
    found = [_best_of(*each, longest) for each in zip(start, end, places)]
    score, span = max(found, key=lambda pair: pair[0])
    nothing = (start[:, 0] + end[:, 0]).min()  # [CLS] to [CLS]
    if threshold is not None and score <= nothing + threshold:
        return Answer("", 0, 0, _probability(nothing, start, end))
    first, last = _to_words(pieces, *span)
    return Answer(text[first:last], first, last, _probability(score, start, end))


def _check_reader(params, config, longest):
    """Refuse a model that cannot answer questions."""
    require_config(config)
    require_head(params, "span", "question-answering")
    check_params(params, config)
    require_count("longest", longest)


def _threshold(given, config):
    """Return the threshold for "no answer"; None: a span is always given."""
    if given is None:
        return config.no_answer_threshold
    if type(given) not in (int, float) or not abs(given) <= sys.float_info.max:
        allowed = "a finite number, None"
        raise BertError(f"no_answer_threshold = {short(given)}, allowed: {allowed}")
    return given


def _pieces(name, text, tokenizer):
    """Cut question or text: (piece, start, end, number of its word)."""
    check_text(text, name)
    pieces = cut_text(text, tokenizer, allow_special=True)
    if not pieces:
        raise BertError(f"{name} = {short(text)} has no words, allowed: some")
    return pieces


def _room(asked, max_length, config):
    """Return how many pieces of the text have room beside the question."""
    most = config.max_position_embeddings
    if max_length is None:
        max_length = min(LENGTH, most)
    require_count("max_length", max_length, most)
    room = max_length - len(asked) - 3  # [CLS] and two [SEP]
    if room < 1:
        raise BertError(
            f"question has {len(asked)} pieces, allowed: at most {max_length - 4} "
            f"in windows of {max_length} tokens"
        )
    return room


def _logits(encodings, first, room, params, config, tokenizer):
    """Return the logits of start and end in W windows: two (W, 1 + room).

    Column 0 is [CLS], the others are pieces of the text, which begins at
    token `first`; a window with fewer pieces is filled with -inf.
    """
    start, end = np.full((2, len(encodings), 1 + room), -np.inf)
    for places, _, out in run_batches(encodings, params, config, tokenizer):
        found = span_logits(out["last_hidden_state"], params)  # each (B, T)
        for logits, rows in zip((start, end), found):
            for place, row in zip(places, rows):
                last = len(encodings[place].tokens) - 1  # [SEP]
                logits[place, 0] = row[0]
                logits[place, 1 : 1 + last - first] = row[first:last]
    return start, end


def _best_of(start, end, place, longest):
    """Return the best span of a window: (score, (first, last piece))."""
    n = np.arange(place[1] - place[0])
    length = n - n[:, None]  # (start, end): how far the end lies behind
    scores = start[1 : 1 + len(n), None] + end[1 : 1 + len(n)]
    scores = np.where((length >= 0) & (length < longest), scores, -np.inf)
    i, j = np.unravel_index(scores.argmax(), scores.shape)
    return scores[i, j], (place[0] + int(i), place[0] + int(j))


def _to_words(pieces, i, j):
    """Return the characters from the word of piece i to the word of piece j."""
    words = [word for *_, word in pieces]
    first = words.index(words[i])
    last = len(words) - 1 - words[::-1].index(words[j])
    return pieces[first][1], pieces[last][2]


def _probability(score, start, end):
    """Return softmax(start) softmax(end) of a span with this sum of logits."""
    total = np.logaddexp.reduce(start.ravel()) + np.logaddexp.reduce(end.ravel())
    return float(np.exp(score - total))
