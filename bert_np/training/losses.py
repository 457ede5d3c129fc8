"""The losses of pre-training and of fine-tuning, with the gradients of logits."""

import numpy as np

from bert_np.training.inputs import (
    IGNORED,
    check_labels,
    check_pair_logits,
    check_targets,
)


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


def binary_cross_entropy(logits, labels, count=None):
    """Measure how surprised the model is by each of several labels.

    Each label is there or not, whatever the others are, with probability
    p = 1 / (1 + exp(-z)). The loss is the mean of -log(p) where it is
    there and of -log(1 - p) where it is not, which is log(1 + exp(z)) - y
    z for y = 1 or 0. The derivative of the first term is p: dL/dz = (p -
    y) / count.

    Parameters
    ----------
    logits : ndarray of shape (B, K)
    labels : ndarray of shape (B, K)
        1 where text i has label k, else 0.
    count : int, optional
        What to divide by, at least 1. None: B K.

    Returns
    -------
    loss : float
        In nats.
    d_logits : ndarray of shape (B, K)

    Examples
    --------
    >>> loss, d = binary_cross_entropy(np.zeros((1, 2)), np.array([[1, 0]]))
    >>> round(loss, 4), d.tolist()
    (0.6931, [[-0.25, 0.25]])

    Source: the loss of HuggingFace's multi_label_classification.
    """
    labels = check_targets(logits, labels, count, most=1)
    count = count or max(1, logits.size)
    shrink = np.exp(-np.abs(logits))  # cannot overflow
    loss = np.maximum(logits, 0) - labels * logits + np.log1p(shrink)
    probs = np.where(logits >= 0, 1, shrink) / (1 + shrink)
    return float(loss.sum()) / count, (probs - labels) / count


def squared_error(logits, labels, count=None):
    """Measure how far the predicted numbers are from the right ones.

    The mean of (z - y)². So dL/dz = 2 (z - y) / count.

    Parameters
    ----------
    logits : ndarray of shape (B, K)
    labels : ndarray of shape (B, K)
    count : int, optional
        What to divide by, at least 1. None: B K.

    Returns
    -------
    loss : float
    d_logits : ndarray of shape (B, K)

    Examples
    --------
    >>> loss, d = squared_error(np.array([[3.0], [1.0]]), np.array([[1.0], [1.0]]))
    >>> loss, d.tolist()
    (2.0, [[2.0], [0.0]])

    Source: the loss of HuggingFace's regression.
    """
    labels = check_targets(logits, labels, count)
    count = count or max(1, logits.size)
    gap = logits - labels
    return float(np.square(gap).sum()) / count, 2 * gap / count


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
