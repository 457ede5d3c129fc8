"""The two pre-training losses, each with the gradient of its logits."""

import numpy as np

from bert_np.training.inputs import IGNORED, check_labels, check_pair_logits


def masked_cross_entropy(logits, labels, count=None):
    """Measure how surprised the model is by the right words.

    loss = mean over the labelled positions of log(sum(exp(z))) - z[label].
    The derivative of the first term is softmax(z), of the second the
    one-hot label. So dL/dz = (softmax(z) - one_hot) / number of labels,
    and 0 at ignored positions.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    labels : ndarray of shape (...)
        Integers in 0..V-1, or IGNORED (-100).
    count : int, optional
        What to divide by, at least 1. None: the number of labels. For one
        part of a batch: the number of labels in the whole batch.

    Returns
    -------
    loss : float
        In nats; 0 if every position is ignored (PyTorch gives NaN).
    d_logits : ndarray of shape (..., V)

    Examples
    --------
    >>> loss, d = masked_cross_entropy(np.zeros((2, 4)), np.array([1, IGNORED]))
    >>> round(loss, 4), d.tolist()
    (1.3863, [[0.25, -0.75, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]])

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    check_labels(logits, labels, count)
    labelled = labels != IGNORED
    count = count or max(1, np.count_nonzero(labelled))
    z = logits[labelled]  # (N, V)
    one_hot = labels[labelled][:, None] == np.arange(z.shape[-1])  # (N, V)
    z = z - z.max(axis=-1, keepdims=True)  # softmax stays, exp cannot overflow
    log_probs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    loss = float((-log_probs[one_hot]).sum()) / count
    d_logits = np.zeros_like(logits)
    d_logits[labelled] = (np.exp(log_probs) - one_hot) / count
    return loss, d_logits


def next_sentence_cross_entropy(logits, labels, count=None):
    """Measure how surprised the model is that B follows A, or does not.

    This is masked_cross_entropy with two classes.

    Parameters
    ----------
    logits : ndarray of shape (B, 2)
        Column 0: B follows A. Column 1: it does not.
    labels : ndarray of shape (B,)
        0 if B follows A, 1 if not, IGNORED (-100) for a single text.
    count : int, optional
        As in masked_cross_entropy.

    Returns
    -------
    loss : float
    d_logits : ndarray of shape (B, 2)

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    check_pair_logits(logits)
    return masked_cross_entropy(logits, labels, count)


def count_right(logits, labels):
    """Count the labelled positions at which the largest logit is the label's.

    No column has the number IGNORED, so ignored positions never count.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    labels : ndarray of shape (...)

    Returns
    -------
    int
    """
    check_labels(logits, labels)
    return int((logits.argmax(axis=-1) == labels).sum())
