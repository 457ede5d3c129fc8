"""Sentence vectors: texts to vectors, and the texts nearest to a question."""

from typing import NamedTuple

import numpy as np

from bert_np.config import check_pooling, require_config
from bert_np.errors import BertError
from bert_np.parameters import check_params
from bert_np.tasks.batches import (
    encode_text,
    encode_texts,
    require_count,
    require_list,
    run_batches,
)
from bert_np.tokenizer import check_text, require_tokenizer


class Found(NamedTuple):
    """A text that search has found."""

    text: str
    cosine: float  # between the vectors of query and text, -1 to 1
    index: int  # the text is texts[index]


def embed_sentences(
    texts, params, config, tokenizer, max_length=None, batch_size=None, pooling=None
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
    batch_size : int, optional
        How many texts, of similar length, are run together. None: as
        many as make about 4,000 tokens.
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
    require_tokenizer(tokenizer)
    if batch_size is not None:
        require_count("batch_size", batch_size)
    require_list("texts", texts, "str")
    check_params(params, config)
    pooling = config.pooling if pooling is None else pooling
    check_pooling(pooling)
    ways = pooling.split("+")
    dtype = params["embeddings"]["word"].dtype.newbyteorder("=")
    vectors = np.zeros((len(texts), config.hidden_size * len(ways)), dtype)
    for i, text in enumerate(texts):
        check_text(text, f"texts[{i}]")
    encodings = encode_texts(texts, config, tokenizer, max_length)
    batches = run_batches(encodings, params, config, tokenizer, batch_size)
    for places, batch, out in batches:
        hidden, mask = out["last_hidden_state"], batch.attention_mask
        pools = [pool_tokens(hidden, mask, way) for way in ways]
        vectors[places] = np.concatenate(pools, axis=-1)  # (B, H) or wider
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def search(
    query,
    texts,
    params,
    config,
    tokenizer,
    top_k=5,
    max_length=None,
    pooling=None,
    vectors=None,
):
    """Find the texts whose meaning is nearest to that of a query.

    The query and the texts become sentence vectors, and the texts are
    sorted by the cosine between their vector and the query's.

    Parameters
    ----------
    query : str
    texts : list of str
    params : dict
        Of a model that was trained to give sentence vectors, such as
        all-MiniLM-L6-v2.
    config : BertConfig
    tokenizer : Tokenizer
    top_k : int
        How many texts to return at most.
    max_length, pooling
        As in embed_sentences.
    vectors : ndarray of shape (N, H), optional
        What embed_sentences returned for these texts. Computed once, the
        vectors serve any number of queries.

    Returns
    -------
    list of Found
        (text, cosine, index), the nearest first; the text is
        texts[index].

    Source: Reimers & Gurevych 2019 (1908.10084), section 1.
    """
    require_tokenizer(tokenizer)
    check_text(query, "query")
    require_list("texts", texts, "str")
    require_count("top_k", top_k)
    require_config(config)
    encode_text(query, "query", config, tokenizer, max_length)
    model = {"params": params, "config": config, "tokenizer": tokenizer}
    options = {"max_length": max_length, "pooling": pooling}
    (asked,) = embed_sentences([query], **model, **options)  # (H,)
    if vectors is None:
        vectors = embed_sentences(texts, **model, **options)
    _check_vectors(vectors, (len(texts), len(asked)))
    cosines = vectors @ asked  # (N,)
    best = np.argsort(-cosines, kind="stable")[:top_k]
    return [Found(texts[i], float(cosines[i]), int(i)) for i in best]


def _check_vectors(vectors, shape):
    """Refuse vectors that are not one for each text."""
    found = getattr(vectors, "dtype", None)
    if not isinstance(vectors, np.ndarray) or found.kind != "f":
        kind = found or type(vectors).__name__
        raise BertError(f"vectors is {kind}, allowed: what embed_sentences returns")
    if vectors.shape != shape:
        raise BertError(
            f"vectors has shape {vectors.shape}, allowed: {shape}, one for each text"
        )


def pool_tokens(hidden, attention_mask, way):
    """Make one vector from each text's real tokens: (B, H).

    The ways are those of embed_sentences; the vector is not scaled.
    """
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
