"""From text to answers: masked words, next sentence, sentence vectors."""

import numpy as np

from bert_np.config import check_pooling
from bert_np.errors import BertError, short
from bert_np.fast import fast_bert, prepare
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.inputs import check_texts
from bert_np.model import bert
from bert_np.tokenizer import Tokenizer, check_text, pad_rows


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
    _require_tokenizer(tokenizer)
    if type(top_k) is not int or not 1 <= top_k <= tokenizer.vocab_size:
        raise BertError(f"top_k = {short(top_k)}, allowed: 1..{tokenizer.vocab_size}")
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
    """For each [MASK], the words with their probabilities, the best first."""
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
    for word, pieces in _progress(several, "words"):
        for place, found in zip(masked, scores):
            found[word] = _word_prob(ids, segments, place, pieces, **model)
    return [sorted(found.items(), key=lambda pair: -pair[1]) for found in scores]


def _token_probs(ids, segments, places, params, config, tokenizer):
    """The probability of every token at some places of rows: (B, N, V)."""
    inputs = {"segment_ids": segments, "attention_mask": np.ones_like(ids)}
    out = bert(ids, params, config, **inputs, return_attention=False)
    logits = masked_lm_logits(out["last_hidden_state"][:, places], params, config)
    return softmax(logits[..., : tokenizer.vocab_size].astype(np.float64))


def _word_prob(ids, segments, place, pieces, params, config, tokenizer):
    """The probability of a word of several pieces at one [MASK]; see fill_mask.

    Row i of the batch has the first i pieces filled in, and piece i is
    predicted there.
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
    _require_tokenizer(tokenizer)
    check_text(b, "b")
    if not b:
        raise BertError("b is empty, allowed: a text that may follow a")
    batch = tokenizer.encode_batch([(a, b)])
    check_texts(batch, ["a with b"], config)
    pooled = _run(batch, params, config)["pooler_output"]
    logits = next_sentence_logits(pooled, params)
    return float(softmax(logits.astype(np.float64))[0, 0])


def embed_sentences(
    texts, params, config, tokenizer, max_length=None, batch_size=32, pooling=None
):
    """Give each text one vector; the cosine of two is their dot product.

    The last hidden states of the real tokens, [CLS] and [SEP] included,
    are pooled, and the result is scaled to length 1.

    Parameters
    ----------
    texts : list of str
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    max_length : int, optional
        Longer texts are cut to this many tokens. None: a text longer
        than the model's positions is an error. sentence-transformers
        cuts at 256 for all-MiniLM-L6-v2.
    batch_size : int
        How many texts, of similar length, are run together.
    pooling : str, optional
        "mean" over the tokens; "cls", the vector of [CLS]; "max", the
        largest value in each place; "mean_sqrt_len_tokens", the sum
        divided by the root of the number of tokens; "weightedmean",
        weighted by 1, 2, 3, ...; "lasttoken", the vector of [SEP].
        Several are joined by "+": "cls+mean" gives vectors of length 2H.
        None: config.pooling, which is what the model's folder asks for.

    Returns
    -------
    ndarray of shape (N, H), or wider for several poolings
        Row i belongs to texts[i]. Ten batches or more show a progress
        bar.

    Source: Reimers & Gurevych 2019 (1908.10084), section 3.
    """
    _require_tokenizer(tokenizer)
    if type(batch_size) is not int or batch_size < 1:
        raise BertError(f"batch_size = {short(batch_size)}, allowed: an int >= 1")
    if not isinstance(texts, (list, tuple)):
        raise BertError(f"texts is {type(texts).__name__}, allowed: a list of str")
    prepared = prepare(params, config)
    pooling = config.pooling if pooling is None else pooling
    check_pooling(pooling)
    ways = pooling.split("+")
    dtype = params["embeddings"]["word"].dtype.newbyteorder("=")
    vectors = np.zeros((len(texts), config.hidden_size * len(ways)), dtype)
    encodings = [
        _encode(text, f"texts[{i}]", config, tokenizer, max_length)
        for i, text in enumerate(texts)
    ]
    by_length = sorted(range(len(texts)), key=lambda i: len(encodings[i].tokens))
    for start in _progress(range(0, len(texts), batch_size), "batches"):
        rows = by_length[start : start + batch_size]
        longest = len(encodings[rows[-1]].tokens)
        batch = pad_rows([encodings[i] for i in rows], longest, tokenizer.pad_token_id)
        out = fast_bert(
            **batch.inputs, prepared=prepared, config=config, return_attention=False
        )
        hidden = out["last_hidden_state"]
        pools = [_pool(hidden, batch.attention_mask, way) for way in ways]
        vectors[rows] = np.concatenate(pools, axis=-1)  # (B, H) or wider
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _encode(text, name, config, tokenizer, max_length):
    """Encode one text of several, and name it in what is refused."""
    check_text(text, name)
    encoding = tokenizer.encode(text, max_length=max_length)
    advice = f"max_length={config.max_position_embeddings} cuts it"
    check_texts(encoding, [name], config, advice)
    return encoding


def _pool(hidden, attention_mask, way):
    """Make one vector of each text's real tokens: (B, H)."""
    real = attention_mask[:, :, None].astype(hidden.dtype)
    length = real.sum(axis=1)  # (B, 1)
    if way == "cls":
        return hidden[:, 0]
    if way == "lasttoken":
        return hidden[np.arange(len(hidden)), attention_mask.sum(axis=1) - 1]
    if way == "max":
        return np.where(real > 0, hidden, -np.inf).max(axis=1)
    if way == "weightedmean":
        weights = real * np.arange(1, hidden.shape[1] + 1, dtype=hidden.dtype)[:, None]
        return (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    total = (hidden * real).sum(axis=1)
    return total / (length if way == "mean" else np.sqrt(length))


def _run(batch, params, config):
    options = {"params": params, "config": config, "return_attention": False}
    return bert(**batch.inputs, **options)


def _require_tokenizer(tokenizer):
    if tokenizer is None:
        raise BertError("tokenizer is None: this checkpoint came without vocab.txt")
    if not isinstance(tokenizer, Tokenizer):
        raise BertError(f"tokenizer is {type(tokenizer).__name__}, allowed: Tokenizer")


def _progress(items, unit):
    """The items, with a progress bar if there are ten or more."""
    from tqdm.auto import tqdm

    return tqdm(items, unit=unit, disable=len(items) < 10)
