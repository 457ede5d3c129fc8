"""Statistics of attention maps: how wide, how far and to which keys."""

import numpy as np

from bert_np.analysis.checks import (
    check_maps,
    check_model_maps,
    check_tokens,
    hide_masked,
    require_real,
)
from bert_np.errors import require_bool
from bert_np.tokenizer import is_punctuation


def attention_entropy(probs, attention_mask=None, normalise=True):
    """Measure how widely each query spreads its attention.

    -sum_j p_ij log p_ij, divided by log(number of visible keys): 0 if all
    attention goes to one key, 1 if it is uniform. A row with a single
    visible key has 0.

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    attention_mask : ndarray of shape (T,) or (B, T), optional
    normalise : bool
        False: not divided, in nats.

    Returns
    -------
    ndarray of shape (..., T)
        For each query; 0 for a masked one.

    Source: Clark et al. 2019, section 3.3 (in nats).

    Examples
    --------
    >>> attention_entropy(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([1., 0.])
    """
    require_bool("normalise", normalise)
    probs, real = check_maps(probs, attention_mask)
    probs = hide_masked(probs, real)
    logs = np.log(np.where(probs > 0, probs, 1))  # p log p is 0 where p is 0
    entropy = 0 - (probs * logs).sum(axis=-1)
    if normalise:
        count = real.sum(axis=-1, keepdims=True)
        entropy *= count > 1
        entropy /= np.log(np.maximum(count, 2)).astype(entropy.dtype)
    return entropy


def attention_distance(probs, attention_mask=None):
    """Measure how far away each query attends, in tokens.

    sum_j p_ij |i - j|

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    ndarray of shape (..., T)
        For each query, 0..T-1; 0 for a masked one.

    Source: Vig & Belinkov 2019 (1906.04284), here for each query.

    Examples
    --------
    >>> attention_distance(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([0.5, 0. ])
    """
    probs, real = check_maps(probs, attention_mask)
    places = np.arange(probs.shape[-1], dtype=probs.dtype)
    offsets = np.abs(places[:, None] - places)
    return (hide_masked(probs, real) * offsets).sum(axis=-1)


def attention_masses(probs, tokens, attention_mask=None):
    """Measure how much attention each query gives to each kind of key.

    Kinds overlap: what [CLS] gives to itself counts as "[CLS]" and "self".

    Parameters
    ----------
    probs : ndarray of shape (..., T, T)
    tokens : list of T str, or list of B lists of T str
        B lists go with maps of shape (..., B, A, T, T).
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    dict of str to ndarray of shape (..., T)
        "self", "previous", "next": the query's own position and its
        neighbours, 0 if there is none. "[CLS]", "[SEP]": all keys of that
        name. "punctuation": all keys made of punctuation; the paper takes
        full stops and commas.

    Source: Clark et al. 2019, sections 3.1 and 3.2.
    """
    probs, real = check_maps(probs, attention_mask)
    names = check_tokens(tokens, probs)
    probs = hide_masked(probs, real)
    previous, following = np.zeros_like(probs[..., 0]), np.zeros_like(probs[..., 0])
    previous[..., 1:] = np.diagonal(probs, -1, axis1=-2, axis2=-1)
    following[..., :-1] = np.diagonal(probs, 1, axis1=-2, axis2=-1)

    def share(keys):
        return (probs * keys[..., None, :]).sum(axis=-1)

    return {
        "self": np.diagonal(probs, axis1=-2, axis2=-1).copy(),
        "previous": previous,
        "next": following,
        "[CLS]": share(names == "[CLS]"),
        "[SEP]": share(names == "[SEP]"),
        "punctuation": share(np.vectorize(_is_punctuation, otypes="?")(names)),
    }


def _is_punctuation(token):
    return token != "" and all(map(is_punctuation, token))


def head_distances(probs, attention_mask=None):
    """Measure how differently each pair of heads attends, as a matrix.

    JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, where H is the entropy:
    the Jensen-Shannon divergence of two rows, averaged over the real
    tokens. It is 0 for equal maps, log 2 = 0.693 without a common key.

    Parameters
    ----------
    probs : ndarray of shape (L, A, T, T) or (L, B, A, T, T)
        Or the list of L arrays that ``bert`` returns.
    attention_mask : ndarray of shape (T,) or (B, T), optional

    Returns
    -------
    ndarray of shape (L A, L A)
        float64, in nats. Head a of layer l is number l A + a.

    Source: Clark et al. 2019, section 6 (who sum over the tokens).
    """
    rows = _real_rows(*check_model_maps(probs, attention_mask))  # (L A, N, T)
    entropies = _row_entropies(rows)  # (L A, N)
    distances = np.zeros((len(rows), len(rows)))
    for head in range(len(rows) - 1):
        middle = _row_entropies((rows[head] + rows[head + 1 :]) / 2)
        gaps = middle - (entropies[head] + entropies[head + 1 :]) / 2
        distances[head, head + 1 :] = gaps.mean(axis=-1)
    return np.maximum(distances + distances.T, 0)


def _real_rows(probs, real):
    """Return the rows of all real tokens, by head: (L A, N, T), float64."""
    require_real(real)
    T = probs.shape[-1]
    rows = hide_masked(probs, real).astype(np.float64)
    rows = rows.reshape(len(rows), -1, *rows.shape[-3:])  # (L, B, A, T, T)
    B = rows.shape[1]
    rows = rows.swapaxes(1, 2).reshape(-1, B * T, T)
    return rows[:, np.broadcast_to(real.reshape(-1, T), (B, T)).ravel()]


def _row_entropies(rows):
    return 0 - (rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=-1)
