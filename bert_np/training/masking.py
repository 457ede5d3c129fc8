"""Masking: choose the tokens that the model has to predict, and hide them."""

import numpy as np

from bert_np.training.inputs import IGNORED, check_masking


def mask_tokens(input_ids, rng, *, special_ids, mask_id, vocab_size, rate=0.15):
    """Choose tokens to be predicted, and hide most of them.

    Each token that is not special is chosen with probability ``rate``. Of
    the chosen, 80 % become [MASK], 10 % become a random ordinary token and
    10 % stay as they are. So the model must form an opinion of every
    token, not only of those that it sees as [MASK].

    Parameters
    ----------
    input_ids : ndarray of int of shape (B, T)
        Never written to.
    rng : numpy.random.Generator
    special_ids : sequence of int
        [PAD], [CLS], [SEP], [MASK], [UNK]: never chosen, and never drawn
        as the random token.
    mask_id : int
        The id of [MASK].
    vocab_size : int
        V.
    rate : float or ndarray of shape (B, T)
        0..1; the paper's is 0.15. An array gives each token its own.

    Returns
    -------
    masked_ids : ndarray of shape (B, T)
    labels : ndarray of shape (B, T)
        The original id of each chosen token, IGNORED (-100) elsewhere.

    Source: Devlin et al. 2018, section 3.1, task 1, and appendix A.1. The
    paper chooses exactly 15 % of each sequence; here each token is chosen
    independently.
    """
    input_ids, special_ids, rate = check_masking(
        input_ids, rng, special_ids, mask_id, vocab_size, rate
    )
    ordinary = np.setdiff1d(np.arange(vocab_size), special_ids)
    chosen = (rng.random(input_ids.shape) < rate) & ~np.isin(input_ids, special_ids)
    fate = rng.random(input_ids.shape)
    random_ids = rng.choice(ordinary, input_ids.shape)
    masked_ids = np.where(chosen & (fate < 0.9), random_ids, input_ids)
    masked_ids = np.where(chosen & (fate < 0.8), mask_id, masked_ids)
    return masked_ids, np.where(chosen, input_ids, IGNORED)
