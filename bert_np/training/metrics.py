"""How good answers are: accuracy, F1 of each label, the confusion matrix."""

import numpy as np

from bert_np.training.inputs import check_answers, check_confusion, check_int


def confusion_matrix(labels, predictions, count):
    """Count how often each label was predicted for each right label.

    Parameters
    ----------
    labels : ndarray of int of shape (N,)
        The right ones, in 0..K-1.
    predictions : ndarray of int of shape (N,)
    count : int
        K.

    Returns
    -------
    ndarray of int of shape (K, K)
        Row: the right label. Column: the prediction. So the right answers
        are on the diagonal.

    Examples
    --------
    >>> confusion_matrix([0, 0, 1, 1], [0, 1, 1, 1], count=2)
    array([[1, 1],
           [0, 2]])
    """
    count = check_int("count", count, 1, 10_000)
    labels, predictions = check_answers(labels, predictions, count)
    matrix = np.zeros((count, count), int)
    np.add.at(matrix, (labels, predictions), 1)
    return matrix


def f1_scores(matrix):
    """Return the F1 of each label: are its answers right, are all found?

    With precision = right / predicted and recall = right / there, F1 is
    their harmonic mean, 2 right / (predicted + there).

    Parameters
    ----------
    matrix : ndarray of int of shape (K, K)
        From confusion_matrix.

    Returns
    -------
    ndarray of shape (K,)
        In 0..1; NaN for a label that is neither there nor predicted.

    Source: van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    matrix = check_confusion(matrix)
    right = np.diagonal(matrix).astype(float)
    total = matrix.sum(axis=0) + matrix.sum(axis=1)  # predicted + there
    return np.divide(
        2 * right, total, out=np.full(len(matrix), np.nan), where=total > 0
    )


def macro_f1(matrix):
    """Return the mean F1 of all labels, rare ones counting like others.

    Accuracy hides a label that is rare: a model that never predicts it
    loses little. Here it counts like any other.

    Parameters
    ----------
    matrix : ndarray of int of shape (K, K)
        From confusion_matrix.

    Returns
    -------
    float
        In 0..1; the mean over the labels that are there or predicted.

    Examples
    --------
    >>> round(macro_f1([[98, 0], [2, 0]]), 4)  # with an accuracy of 0.98
    0.4949
    """
    return float(np.nanmean(f1_scores(matrix)))


def accuracy(labels, predictions):
    """Return the fraction of answers of which every part is right.

    Parameters
    ----------
    labels, predictions : ndarray of int of shape (N,) or (N, K)
        With (N, K), such as start and end, all K must be right.

    Returns
    -------
    float
    """
    labels, predictions = check_answers(labels, predictions)
    right = (labels == predictions).reshape(len(labels), -1)
    return float(right.all(axis=1).mean())
