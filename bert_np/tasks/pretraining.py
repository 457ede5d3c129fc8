"""What pre-training alone teaches: masked words and the next sentence."""

import numpy as np

from bert_np.errors import BertError, short
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.inputs import check_texts
from bert_np.model import bert
from bert_np.tasks.batches import require_count, with_progress
from bert_np.tokenizer import check_text, require_tokenizer


def fill_mask(text, params, config, tokenizer, top_k=5, targets=None):
    """Guess the word behind each [MASK] of a text, or score given words.

    Parameters
    ----------
    text : str or (str, str)
        With one or more [MASK], or what the tokenizer has in its place; a
        pair is read as two segments.
    params : dict
        The parameter tree of a model with an MLM head.
    config : BertConfig
    tokenizer : Tokenizer
    top_k : int
        How many guesses to make for each [MASK].
    targets : list of str, optional
        The words to score in place of guesses, whatever top_k is. One
        that is no token of the vocabulary is cut into its pieces. A word
        of k pieces takes k [MASK], and its probability is the product of
        those of its pieces from left to right, each predicted while the
        pieces before it are filled in and [MASK] stands for it and those
        after it. So the probabilities of all words of k pieces sum to 1,
        and those of words with different k answer different questions.

    Returns
    -------
    list of list of (str, float)
        For each [MASK], the likeliest tokens with their probabilities, or
        the targets with theirs, the likeliest first. Each [MASK] is
        predicted independently: if there are several, their best words
        need not fit together.

    Raises
    ------
    BertError
        If the text has no [MASK] or the model no MLM head, or if a target
        cannot be cut into pieces of the vocabulary.

    Source: Devlin et al. 2018, section 3.1, task 1. Words of several
    pieces: Kauf & Ivanova 2023 (2305.10588), "PLL-word-l2r".
    """
    require_tokenizer(tokenizer)
    require_count("top_k", top_k, tokenizer.vocab_size)
    words = None if targets is None else _cut_targets(targets, tokenizer)
    batch = tokenizer.encode_batch([text])
    check_texts(batch, ["text"], config)
    (ids,), (segments,) = batch.input_ids, batch.segment_ids
    masked = np.flatnonzero(ids == tokenizer.mask_token_id)
    if masked.size == 0:
        mask = tokenizer.special[-1]
        raise BertError(f"text has no {mask} (in this spelling): {short(text)}")
    model = {"params": params, "config": config, "tokenizer": tokenizer}
    probs = _token_probs(ids[None], segments[None], masked, **model)[0]
    if words is not None:
        return _score_words(words, ids, segments, masked, probs, model)
    best = np.argsort(-probs, axis=-1, kind="stable")[:, :top_k]
    return [
        [(tokenizer.tokens[i], float(row[i])) for i in top]
        for top, row in zip(best, probs)
    ]


def _score_words(words, ids, segments, masked, probs, model):
    """Return the words with their probabilities for each [MASK], best first."""
    most = model["config"].max_position_embeddings - len(ids) + 1
    for word, pieces in words.items():
        if len(pieces) > most:
            raise BertError(
                f"targets: {short(word)} has {len(pieces)} pieces, in this text "
                f"allowed: at most {most}; shorten the text"
            )
    scores = [
        {w: float(row[pieces[0]]) for w, pieces in words.items()} for row in probs
    ]
    several = [(word, pieces) for word, pieces in words.items() if len(pieces) > 1]
    for word, pieces in with_progress(several, "words"):
        for place, found in zip(masked, scores):
            found[word] = _word_prob(ids, segments, place, pieces, **model)
    return [sorted(found.items(), key=lambda pair: -pair[1]) for found in scores]


def _token_probs(ids, segments, places, params, config, tokenizer):
    """Return the probability of each token at N places of B rows: (B, N, V)."""
    inputs = {"segment_ids": segments, "attention_mask": np.ones_like(ids)}
    out = bert(ids, params, config, **inputs, return_attention=False)
    logits = masked_lm_logits(out["last_hidden_state"][:, places], params, config)
    return softmax(logits[..., : tokenizer.vocab_size].astype(np.float64))


def _word_prob(ids, segments, place, pieces, params, config, tokenizer):
    """Return the probability of a word of several pieces at one [MASK].

    Row i of the batch has the first i pieces filled in, and piece i is
    predicted there; see fill_mask.
    """
    k = len(pieces)
    rows = np.insert(ids, place, [tokenizer.mask_token_id] * (k - 1))
    rows = np.tile(rows, (k, 1))  # (k, T)
    for i in range(1, k):
        rows[i, place : place + i] = pieces[:i]
    segments = np.insert(segments, place, [segments[place]] * (k - 1))
    segments = np.broadcast_to(segments, rows.shape)
    places = np.arange(place, place + k)
    probs = _token_probs(rows, segments, places, params, config, tokenizer)
    return float(np.prod(probs[range(k), range(k), pieces]))


def _cut_targets(targets, tokenizer):
    """Return {target: ids of its pieces}, or refuse what cannot be scored."""
    if not isinstance(targets, (list, tuple)) or not targets:
        raise BertError(f"targets = {short(targets)}, allowed: a list of words, None")
    words = {}
    for i, word in enumerate(targets):
        check_text(word, f"targets[{i}]")
        ids = tokenizer.encode(word, allow_special=False).input_ids[1:-1]
        if word in tokenizer.vocab:
            ids = [tokenizer.vocab[word]]
        elif len(ids) == 0 or tokenizer.unk_token_id in ids:
            why = f"holds {tokenizer.special[1]} once cut" if len(ids) else "is empty"
            raise BertError(f"targets[{i}] = {short(word)} {why}, allowed: known words")
        words[word] = list(ids)
    return words


def next_sentence(a, b, params, config, tokenizer):
    """Return the probability that text b follows text a.

    Parameters
    ----------
    a, b : str
        b must not be empty.
    params : dict
        The parameter tree of a model with pooler and NSP head.
    config : BertConfig
    tokenizer : Tokenizer

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    BertError
        If the model has no pooler or no NSP head.

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    require_tokenizer(tokenizer)
    check_text(b, "b")
    if not b:
        raise BertError("b is empty, allowed: a text that may follow a")
    batch = tokenizer.encode_batch([(a, b)])
    check_texts(batch, ["a with b"], config)
    pooled = _run(batch, params, config)["pooler_output"]
    logits = next_sentence_logits(pooled, params)
    return float(softmax(logits.astype(np.float64))[0, 0])


def _run(batch, params, config):
    options = {"params": params, "config": config, "return_attention": False}
    return bert(**batch.inputs, **options)
