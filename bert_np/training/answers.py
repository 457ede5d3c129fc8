"""From logits to answers, kept beside the right ones."""

from typing import NamedTuple

import numpy as np

from bert_np.training.examples import batches_by_length
from bert_np.training.fine_tuning import count_labels, task_logits, task_loss
from bert_np.training.frozen import AT_ONCE, batch_of
from bert_np.training.inputs import IGNORED, find_head
from bert_np.training.metrics import accuracy


class Answers(NamedTuple):
    """A model's answers to examples and the right ones, in their order."""

    loss: float  # the mean over all examples, or over all labelled words
    labels: np.ndarray  # (N,) numbers of labels; (N, K); spans (N, 2)
    predictions: np.ndarray  # the same

    @property
    def accuracy(self):
        """The fraction that is right; None if numbers are predicted."""
        if self.labels.dtype.kind == "f":
            return None
        return accuracy(self.labels, self.predictions)


def answer_rows(params, config, data):
    """Answer examples that have passed the frozen layers; see evaluate_model.

    Parameters
    ----------
    params : dict
        The trained part of the tree, with the head.
    config : BertConfig
    data : Data

    Returns
    -------
    Answers
    """
    task, total, count, answers = find_head(params), 0.0, 0, {}
    lengths = np.array([len(row.input_ids) for row in data.rows])
    for numbers in batches_by_length(lengths, AT_ONCE):
        batch = batch_of(data, numbers, config)
        logits, labels = task_logits(params, config, batch), batch["labels"]
        asked = count_labels(labels)
        total += asked * task_loss(logits, labels, params, config, asked)[0]
        count += asked
        rows = (
            array.reshape(len(numbers), -1)
            for array in (labels, read_logits(logits, task, config))
        )
        for i, label, found in zip(numbers, *rows):
            answers[i] = label[label != IGNORED], found[label != IGNORED]
    pairs = [answers[i] for i in range(len(data.rows))]
    labels, predictions = (np.concatenate(arrays) for arrays in zip(*pairs))
    if task == "span" or labels.dtype.kind == "f":
        width = len(pairs[0][0])
        labels, predictions = labels.reshape(-1, width), predictions.reshape(-1, width)
    if predictions.dtype.kind != "f":
        labels = labels.astype(int)
    return Answers(total / count, labels, predictions)


def read_logits(logits, task, config):
    """Return the answers that the logits of a head amount to.

    One label: that of the largest logit. Several labels: those with a
    logit above 0, a probability above 1/2. Numbers: the logits themselves.
    A span: the one with the largest sum of both logits, of those that do
    not end before they start.

    Parameters
    ----------
    logits : ndarray
        From task_logits.
    task : str
    config : BertConfig

    Returns
    -------
    ndarray
        Shaped like the labels of a batch.
    """
    if task == "span":
        scores = logits[:, 0, :, None] + logits[:, 1, None]  # (B, start, end)
        forward = np.triu(np.ones(scores.shape[1:], bool))
        flat = np.where(forward, scores, -np.inf).reshape(len(scores), -1)
        return np.stack(np.divmod(flat.argmax(axis=1), scores.shape[-1]), axis=1)
    if task == "token" or config.problem == "single_label_classification":
        return logits.argmax(axis=-1)
    several = config.problem == "multi_label_classification"
    return (logits > 0).astype(int) if several else logits
