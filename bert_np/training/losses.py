"""The two pre-training losses, each with the gradient of its logits."""

import numpy as np

from bert_np.errors import BertError

# A position with this label has no loss. HuggingFace and torch use it too.
IGNORED = -100


def masked_cross_entropy(logits, labels, count=None):
    """How surprised the model is by the right words, where it was asked.

    loss = mean over the labelled positions of log(sum(exp(z))) - z[label].
    The derivative of the first term is softmax(z), of the second the
    one-hot label, so dL/dz = (softmax(z) - onehot) / number of labels,
    and 0 where the position is ignored.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    labels : ndarray of shape (...)
        Integers in 0..V-1, or IGNORED (-100).
    count : int, optional
        What to divide by in the place of the number of labels, where
        these are a part of a batch: the whole batch's number.

    Returns
    -------
    loss : float
        In nats; 0 where every position is ignored (torch gives NaN).
    d_logits : ndarray of shape (..., V)

    Raises
    ------
    BertError
        Where a label is neither in range nor IGNORED.

    Examples
    --------
    >>> loss, d = masked_cross_entropy(np.zeros((2, 4)), np.array([1, IGNORED]))
    >>> round(loss, 4), d.tolist()
    (1.3863, [[0.25, -0.75, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]])

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    _check_labels(logits, labels)
    z, right = logits.reshape(-1, logits.shape[-1]), labels.ravel()
    asked = np.flatnonzero(right != IGNORED)  # (N,)
    d_logits = np.zeros(z.shape, z.dtype)
    if asked.size == 0:
        return 0.0, d_logits.reshape(logits.shape)
    z, right, rows = z[asked], right[asked], np.arange(asked.size)
    z -= z.max(axis=-1, keepdims=True)
    probs = np.exp(z)
    total = probs.sum(axis=-1)
    count = count or asked.size
    loss = float((np.log(total) - z[rows, right]).sum()) / count
    probs /= total[:, None]
    probs[rows, right] -= 1
    probs /= count
    d_logits[asked] = probs
    return loss, d_logits.reshape(logits.shape)


def next_sentence_cross_entropy(logits, labels, count=None):
    """How surprised the model is by whether the second text follows.

    The same formula as masked_cross_entropy, over two classes.

    Parameters
    ----------
    logits : ndarray of shape (B, 2)
        Column 0: it follows. Column 1: it does not.
    labels : ndarray of shape (B,)
        0 where it follows, 1 where not, IGNORED (-100) for a single text.
    count : int, optional

    Returns
    -------
    loss : float
    d_logits : ndarray of shape (B, 2)

    Raises
    ------
    BertError
        Where a label is not 0, 1 or IGNORED.

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    return masked_cross_entropy(logits, labels, count)


def count_right(logits, labels):
    """At how many labelled positions the largest logit is the label's.

    IGNORED equals no column, so such positions never count.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
    labels : ndarray of shape (...)

    Returns
    -------
    int
    """
    return int((logits.argmax(axis=-1) == labels).sum())


def _check_labels(logits, labels):
    for name, array in (("logits", logits), ("labels", labels)):
        if not isinstance(array, np.ndarray):
            kind = type(array).__name__
            raise BertError(f"{name} is {kind}, allowed: numpy.ndarray")
    if labels.shape != logits.shape[:-1]:
        raise BertError(
            f"labels have shape {labels.shape}, allowed: {logits.shape[:-1]}, "
            "the shape of the logits without its last axis"
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise BertError(f"labels have dtype {labels.dtype}, allowed: integers")
    classes = logits.shape[-1]
    wrong = (labels != IGNORED) & ((labels < 0) | (labels >= classes))
    if wrong.any():
        raise BertError(
            f"label {labels[wrong][0]}, allowed: 0..{classes - 1}, or {IGNORED} "
            "for an ignored position"
        )
