"""From text to answers: masked words, next sentence, sentence vectors."""

import numpy as np

from bert_np.config import check_pooling
from bert_np.errors import BertError, short
from bert_np.fast import fast_bert, prepare
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import bert
from bert_np.tokenizer import Tokenizer, check_text, pad_rows


def fill_mask(text, params, config, tokenizer, top_k=5):
    """Guess the word behind each [MASK] of a text.

    Parameters
    ----------
    text : str or (str, str)
        With one or more [MASK]; a pair is read as two segments.
    params : dict
        The parameter tree of a model with an MLM head.
    config : BertConfig
    tokenizer : Tokenizer
    top_k : int
        How many guesses to make for each [MASK].

    Returns
    -------
    list of list of (str, float)
        For each [MASK], the likeliest tokens with their probabilities,
        the likeliest first. Each [MASK] is predicted independently: if
        there are several, their best words need not fit together.

    Raises
    ------
    BertError
        If the text has no [MASK] or the model no MLM head.

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    _require_tokenizer(tokenizer)
    if type(top_k) is not int or not 1 <= top_k <= tokenizer.vocab_size:
        raise BertError(f"top_k = {short(top_k)}, allowed: 1..{tokenizer.vocab_size}")
    batch = tokenizer.encode_batch([text])
    masked = np.flatnonzero(batch.input_ids[0] == tokenizer.mask_token_id)
    if masked.size == 0:
        raise BertError(f"text has no [MASK] (upper case): {text!r}")
    hidden = _run(batch, params, config)["last_hidden_state"]
    logits = masked_lm_logits(hidden[:, masked], params, config)[0]
    probs = softmax(logits[:, : tokenizer.vocab_size].astype(np.float64))
    best = np.argsort(-probs, axis=-1, kind="stable")[:, :top_k]
    return [
        [(tokenizer.tokens[i], float(row[i])) for i in ids]
        for ids, row in zip(best, probs)
    ]


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
    encodings = [tokenizer.encode(text, max_length=max_length) for text in texts]
    _check_lengths(encodings, config.max_position_embeddings)
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


def _check_lengths(encodings, most):
    """Refuse the first text that has more tokens than the model positions."""
    for i, encoding in enumerate(encodings):
        if len(encoding.tokens) > most:
            raise BertError(
                f"texts[{i}] has {len(encoding.tokens)} tokens, allowed: at most "
                f"{most}; max_length={most} cuts it"
            )


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
