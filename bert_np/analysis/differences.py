"""Two maps compared: of two sentences, two models, before and after."""

from difflib import SequenceMatcher

import numpy as np

from bert_np.analysis.checks import check_maps
from bert_np.errors import BertError, short


def align_tokens(tokens, other_tokens):
    """Pair the tokens of two sentences that say nearly the same.

    Equal tokens are paired in order. Where tokens were exchanged for as
    many others, these are paired one by one; what was added or left out
    has no partner.

    Parameters
    ----------
    tokens, other_tokens : list of str

    Returns
    -------
    list of (int, int)
        A position in tokens and its partner in other_tokens.

    >>> align_tokens("the cat said it slept".split(), "the old cat said he".split())
    [(0, 0), (1, 2), (2, 3)]
    >>> align_tokens("it slept".split(), "he slept well".split())
    [(0, 0), (1, 1)]
    """
    first, second = _texts("tokens", tokens), _texts("other_tokens", other_tokens)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    pairs = []
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        if end - start == other_end - other_start:
            pairs += zip(range(start, end), range(other_start, other_end))
    return pairs


def map_difference(first, second, pairs=None):
    """Subtract the first map from the second, token by token.

    second[q', k'] - first[q, k] for each query q and key k of the first
    that have partners q' and k'. If every token has one, rows sum to 0.

    Parameters
    ----------
    first : ndarray of shape (..., T, T)
        Rows are queries, columns are keys.
    second : ndarray of shape (..., U, U)
    pairs : list of (int, int), optional
        A position of the first map and its partner in the second, such
        as align_tokens finds. None: each position with itself.

    Returns
    -------
    ndarray of shape (..., N, N)
        For the N pairs, in their order; between -1 and 1.
    """
    first, second = check_maps(first, None)[0], check_maps(second, None)[0]
    T, U = first.shape[-1], second.shape[-1]
    own, partners = np.transpose(check_pairs(pairs, T, U))
    if first.shape[:-2] != second.shape[:-2]:
        raise BertError(
            f"second has shape {second.shape}, allowed: that of first, {first.shape}, "
            "but for the last two axes"
        )
    first = first[..., own[:, None], own]
    return second[..., partners[:, None], partners] - first


def check_pairs(pairs, T, U):
    """Return the pairs of positions as a list of tuples, checked.

    Parameters
    ----------
    pairs : list of (int, int), or None
        None: each position with itself.
    T, U : int
        The numbers of positions of the two maps.

    Returns
    -------
    list of (int, int)
    """
    if pairs is None and T != U:
        raise BertError(
            f"pairs = None with maps of {T} and {U} positions, allowed then: maps of "
            "one size; align_tokens pairs two sentences"
        )
    if pairs is None:
        return [(i, i) for i in range(T)]
    good = isinstance(pairs, (list, tuple)) and all(_is_pair(p, T, U) for p in pairs)
    firsts, seconds = zip(*pairs) if good and len(pairs) else ((), ())
    if not firsts or len(set(firsts)) < len(firsts) or len(set(seconds)) < len(seconds):
        raise BertError(
            f"pairs = {short(pairs)}, allowed: a list of (int, int), 0..{T - 1} and "
            f"0..{U - 1}, each position at most once"
        )
    return [(int(i), int(j)) for i, j in pairs]


def _is_pair(pair, T, U):
    """Say whether this is a pair of positions of maps of T and U positions."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        return False
    whole = [isinstance(i, (int, np.integer)) and type(i) is not bool for i in pair]
    return all(whole) and 0 <= pair[0] < T and 0 <= pair[1] < U


def _texts(name, tokens):
    """Return tokens as a list, or refuse what is not a list of str."""
    if not isinstance(tokens, (list, tuple)) or not tokens:
        raise BertError(f"{name} is {short(tokens)}, allowed: a list of str")
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise BertError(f"{name}[{i}] is {type(token).__name__}, allowed: str")
    return list(tokens)
