"""Exercises of chapter 13: one vector for a text, a classifier, its gradient."""

import numpy as np

from bert_np.course.exercise import Exercise, mistakes


def _softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------ mean pooling


def my_mean_pool(hidden, attention_mask):
    real = attention_mask[:, :, None]
    return (hidden * real).sum(axis=1) / real.sum(axis=1)


def _padding_counts(hidden, attention_mask):
    """padding is in your mean, both in the sum and in the count"""
    return hidden.mean(axis=1)


def _divided_by_the_width(hidden, attention_mask):
    """the sum is right, but you divide by T: divide each text by its own number
    of real tokens
    """
    return (hidden * attention_mask[:, :, None]).mean(axis=1)


def _padding_in_the_sum(hidden, attention_mask):
    """you divide by the number of real tokens, but padding is still in the sum"""
    return hidden.sum(axis=1) / attention_mask.sum(axis=1)[:, None]


def _not_divided(hidden, attention_mask):
    """that is the sum: divide it by the number of real tokens"""
    return (hidden * attention_mask[:, :, None]).sum(axis=1)


def _first_row(hidden, attention_mask):
    """that is the row of [CLS] alone: take the mean over all real tokens"""
    return hidden[:, 0]


def _without_first_and_last(hidden, attention_mask):
    """you leave [CLS] and [SEP] out: the mask has 1 for them, and MiniLM was
    trained with them in the mean
    """
    inner = attention_mask.copy()
    for row in inner:
        real = np.flatnonzero(row)
        row[real[[0, -1]]] = 0
    count = np.maximum(inner.sum(axis=1), 1)[:, None]
    return (hidden * inner[:, :, None]).sum(axis=1) / count


def _one_count(hidden, attention_mask):
    """you divide every text by the same number: each has its own number of real
    tokens
    """
    mean_length = attention_mask.sum() / len(attention_mask)
    return (hidden * attention_mask[:, :, None]).sum(axis=1) / mean_length


def _of_length_one(hidden, attention_mask):
    """you also scaled the vectors to length 1: return the mean itself"""
    pooled = my_mean_pool(hidden, attention_mask)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def _largest(hidden, attention_mask):
    """that is max pooling: the largest value in each place, not the mean"""
    real = attention_mask[:, :, None] == 1
    return np.where(real, hidden, -np.inf).max(axis=1)


def _without_the_first(hidden, attention_mask):
    """you leave [CLS] out: the mask has 1 for it, and MiniLM was trained with it in
    the mean
    """
    real = attention_mask[:, 1:, None]
    return (hidden[:, 1:] * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)


def _last_row(hidden, attention_mask):
    """that is the row of [SEP] alone: take the mean over all real tokens"""
    last = attention_mask.sum(axis=1) - 1
    return hidden[np.arange(len(hidden)), last]


def _root_of_the_count(hidden, attention_mask):
    """you divide by the root of the number of real tokens: divide by the number"""
    real = attention_mask[:, :, None]
    return (hidden * real).sum(axis=1) / np.sqrt(real.sum(axis=1))


def _draw_states(rng):
    """Some texts of different lengths, with anything at all as padding."""
    B, T, H = rng.integers([2, 3, 2], [5, 7, 6])
    lengths = rng.integers(2, T + 1, B)
    mask = (np.arange(T) < lengths[:, None]).astype(int)
    return rng.normal(size=(B, T, H)), mask


# -------------------------------------------------------------- classifier


def my_classifier(vectors, labels, W, b):
    logits = vectors @ W + b
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -log_probs[np.arange(len(labels)), labels].mean()
    return logits, loss


def _loss_of(logits, labels):
    """The mean of -log softmax(logits)[label]."""
    highest = logits.max(axis=1, keepdims=True)
    log_sum = highest[:, 0] + np.log(np.exp(logits - highest).sum(axis=1))
    return (log_sum - logits[np.arange(len(labels)), labels]).mean()


def _no_bias(vectors, labels, W, b):
    """b is missing from the logits"""
    return vectors @ W, _loss_of(vectors @ W, labels)


def _transposed(vectors, labels, W, b):
    """W is (H, K), one column for each label: vectors @ W, not vectors @ W.T"""
    logits = vectors @ W.T + b
    return logits, _loss_of(logits, labels)


def _probabilities(vectors, labels, W, b):
    """the loss is right; the first result should be the logits, before softmax"""
    logits, loss = my_classifier(vectors, labels, W, b)
    return _softmax(logits), loss


def _sum_of_losses(vectors, labels, W, b):
    """your loss is the sum over the texts: take the mean"""
    logits, loss = my_classifier(vectors, labels, W, b)
    return logits, loss * len(labels)


def _sign(vectors, labels, W, b):
    """log of a probability is negative: the loss is minus that"""
    logits, loss = my_classifier(vectors, labels, W, b)
    return logits, -loss


def _over_texts(vectors, labels, W, b):
    """you normalised over the texts, axis 0: the labels of one text compete, axis 1"""
    logits = vectors @ W + b
    return logits, _loss_of(logits.T[labels], np.arange(len(labels)))


def _all_labels(vectors, labels, W, b):
    """you took the mean over all labels: only the right label's probability counts"""
    logits = vectors @ W + b
    return logits, -np.log(_softmax(logits)).mean()


def _not_shifted(vectors, labels, W, b):
    """exp overflows where a logit is large: subtract the row's largest first"""
    logits = vectors @ W + b
    exponentials = np.exp(logits)
    probs = exponentials / exponentials.sum(axis=1, keepdims=True)
    return logits, -np.log(probs[np.arange(len(labels)), labels]).mean()


def _log_of_zero(vectors, labels, W, b):
    """a probability can round to 0, and log(0) is minus infinity: compute the log
    of softmax without it, logit - max - log(sum of exp)
    """
    logits = vectors @ W + b
    probs = _softmax(logits)
    return logits, -np.log(probs[np.arange(len(labels)), labels]).mean()


def _no_logarithm(vectors, labels, W, b):
    """that is one minus the mean probability of the right label: take -log of each
    probability
    """
    logits = vectors @ W + b
    probs = _softmax(logits)
    return logits, 1 - probs[np.arange(len(labels)), labels].mean()


def _log_of_the_mean(vectors, labels, W, b):
    """take the logarithm of each probability first, and the mean afterwards"""
    logits = vectors @ W + b
    probs = _softmax(logits)
    return logits, -np.log(probs[np.arange(len(labels)), labels].mean())


def _no_bias_no_shift(vectors, labels, W, b):
    """b is missing from the logits, and log(0) is minus infinity: compute the log
    of softmax as logit - max - log(sum of exp)
    """
    return _log_of_zero(vectors, labels, W, np.zeros_like(b))


def _held_above_zero(vectors, labels, W, b):
    """you hold the probability above 1e-12, so the loss of a very wrong answer is
    too small: compute the log of softmax as logit - max - log(sum of exp)
    """
    logits = vectors @ W + b
    probs = _softmax(logits)[np.arange(len(labels)), labels]
    return logits, -np.log(np.maximum(probs, 1e-12)).mean()


def _binary_logarithm(vectors, labels, W, b):
    """that is the loss in bits: take the natural logarithm, np.log"""
    logits, loss = my_classifier(vectors, labels, W, b)
    return logits, loss / np.log(2)


def _draw_examples(rng):
    """Some texts' vectors, with a label for each."""
    N, H, K = rng.integers([2, 2, 2], [6, 6, 5])
    labels = rng.integers(0, K, N)
    return rng.normal(size=(N, H)), labels, rng.normal(size=(H, K)), rng.normal(size=K)


# ------------------------------------------------------ classifier backward


def my_classifier_backward(vectors, labels, W, b):
    logits = vectors @ W + b
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    d_logits = exponentials / exponentials.sum(axis=1, keepdims=True)
    d_logits[np.arange(len(labels)), labels] -= 1
    d_logits = d_logits / len(labels)
    return d_logits @ W.T, vectors.T @ d_logits, d_logits.sum(axis=0)


def _back(d_logits, vectors, W):
    """From the gradient of the logits to the three others."""
    return d_logits @ W.T, vectors.T @ d_logits, d_logits.sum(axis=0)


def _right_d_logits(vectors, labels, W, b):
    probs = _softmax(vectors @ W + b)
    return (probs - np.eye(len(b))[labels]) / len(labels)


def _sum_not_mean(vectors, labels, W, b):
    """the loss is a mean over N texts: divide the gradient by N as well"""
    d_logits = _right_d_logits(vectors, labels, W, b) * len(labels)
    return _back(d_logits, vectors, W)


def _away_from_the_label(vectors, labels, W, b):
    """the sign is wrong: the slope of the loss is softmax minus one-hot, and
    descent subtracts it later
    """
    return _back(-_right_d_logits(vectors, labels, W, b), vectors, W)


def _only_probs(vectors, labels, W, b):
    """subtract 1 at the right label: without that all labels are pushed down"""
    return _back(_softmax(vectors @ W + b) / len(labels), vectors, W)


def _only_right_label(vectors, labels, W, b):
    """the other labels have a slope too: each is pushed down by its probability"""
    d_logits = _right_d_logits(vectors, labels, W, b)
    return _back(d_logits * np.eye(len(b))[labels], vectors, W)


def _bias_forgotten(vectors, labels, W, b):
    """b is missing from the logits"""
    return my_classifier_backward(vectors, labels, W, np.zeros_like(b))


def _logits_not_probs(vectors, labels, W, b):
    """softmax is missing: the gradient is probabilities minus one-hot, not logits"""
    d_logits = (vectors @ W + b - np.eye(len(b))[labels]) / len(labels)
    return _back(d_logits, vectors, W)


def _weights_transposed(vectors, labels, W, b):
    """your d_W is transposed: it has the shape of W, so vectors.T stands first"""
    d_vectors, d_W, d_b = my_classifier_backward(vectors, labels, W, b)
    return d_vectors, d_W.T, d_b


def _bias_averaged(vectors, labels, W, b):
    """d_b is the sum over the texts: the 1/N is already in d_logits"""
    d_vectors, d_W, d_b = my_classifier_backward(vectors, labels, W, b)
    return d_vectors, d_W, d_b / len(labels)


def _bias_not_summed(vectors, labels, W, b):
    """all texts share b: sum the gradient of the logits over the texts, axis 0"""
    d_logits = _right_d_logits(vectors, labels, W, b)
    return d_logits @ W.T, vectors.T @ d_logits, d_logits


def _vectors_last(vectors, labels, W, b):
    """the order of the results is d_vectors, d_W, d_b"""
    d_vectors, d_W, d_b = my_classifier_backward(vectors, labels, W, b)
    return d_W, d_b, d_vectors


def _overflows(vectors, labels, W, b):
    """exp overflows where a logit is large: subtract the row's largest first"""
    exponentials = np.exp(vectors @ W + b)
    probs = exponentials / exponentials.sum(axis=1, keepdims=True)
    d_logits = (probs - np.eye(len(b))[labels]) / len(labels)
    return _back(d_logits, vectors, W)


def _divided_by_the_labels(vectors, labels, W, b):
    """you divide by the number of labels, K: the loss is a mean over the N texts"""
    d_logits = _right_d_logits(vectors, labels, W, b) * len(labels) / len(b)
    return _back(d_logits, vectors, W)


def _not_through_W(vectors, labels, W, b):
    """d_W and d_b are right; d_vectors has to go back through W: d_logits @ W.T"""
    _, d_W, d_b = my_classifier_backward(vectors, labels, W, b)
    return _right_d_logits(vectors, labels, W, b), d_W, d_b


def _through_softmax_again(vectors, labels, W, b):
    """softmax minus one-hot is already the gradient of the logits: softmax backward
    is in it
    """
    probs, d_probs = _softmax(vectors @ W + b), _right_d_logits(vectors, labels, W, b)
    mean = (d_probs * probs).sum(axis=1, keepdims=True)
    return _back(probs * (d_probs - mean), vectors, W)


VECTORS = np.array([[1.0, 2], [2, 0], [-1, 1]])
W, BIAS = np.array([[1.0, -1], [0.5, 2]]), np.array([0.0, -1])
LABELS = np.array([1, 0, 0])
THREE = np.array([[1.0, 0, 2], [0, 1, -1]])  # two numbers, three labels

CLASSIFIED = (
    (VECTORS, LABELS, W, BIAS),
    (VECTORS[:2], np.array([2, 0]), THREE, np.array([0.5, 0, -0.5])),
    (VECTORS[1:2], np.array([1]), W, BIAS),
    (VECTORS * 800, LABELS, W, BIAS),
    (VECTORS[:2] * 2, np.array([1, 1]), W, np.zeros(2)),
    (np.array([[0.5, -1, 2], [1, 1, 1]]), np.array([0, 1]), THREE.T, BIAS),
)

STATES = np.array(
    [
        [[1.0, 2], [3, 4], [5, 0], [9, 9]],
        [[2.0, 0], [0, 2], [7, -7], [8, 1]],
        [[1.0, -1], [4, 2], [0, 3], [3, 0]],
    ]
)

EXERCISES = (
    Exercise(
        id="13.mean_pool",
        title="One vector for a text",
        level=2,
        minutes=8,
        task="Write `my_mean_pool(hidden, attention_mask)`: hidden states of shape "
        "(B, T, H) and a mask of shape (B, T), 1 for real tokens ([CLS] and [SEP] "
        "too) and 0 for padding. Return the mean hidden state over the real tokens of "
        "each text, of shape (B, H).",
        hints=(
            "Multiply by the mask before you sum over T: padding then adds 0. Then "
            "divide, but not by T.",
            "real = attention_mask[:, :, None] has the shape (B, T, 1). The sum of "
            "hidden * real over axis 1, divided by the sum of real over axis 1.",
        ),
        solution=my_mean_pool,
        mistakes=mistakes(
            _padding_counts,
            _divided_by_the_width,
            _padding_in_the_sum,
            _not_divided,
            _first_row,
            _without_first_and_last,
            _one_count,
            _of_length_one,
            _largest,
            _without_the_first,
            _last_row,
            _root_of_the_count,
        ),
        cases=(
            (STATES, np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]])),
            (STATES, np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])),
            (STATES[:1], np.array([[1, 1, 0, 0]])),
            (STATES[1:], np.ones((2, 4), int)),
            (STATES[:2, :3], np.array([[0, 1, 1], [1, 1, 1]])),
        ),
        draw=_draw_states,
    ),
    Exercise(
        id="13.classifier",
        title="A classifier and its loss",
        level=2,
        minutes=10,
        task="Write `my_classifier(vectors, labels, W, b)` for vectors of shape "
        "(N, H), labels of shape (N,) in 0 … K - 1, W of shape (H, K) and b of shape "
        "(K,). Return the logits, of shape (N, K), and the loss: the mean over the "
        "texts of -log softmax(logits)[label]. It has to work for large logits too.",
        hints=(
            "The logits are one linear map. For the loss, subtract each row's largest "
            "logit before exp, as in chapter 03.",
            "log softmax(z) = z - max - log(sum of exp(z - max)); then take entry "
            "[np.arange(N), labels], and minus the mean.",
        ),
        solution=my_classifier,
        mistakes=mistakes(
            _no_bias,
            _transposed,
            _probabilities,
            _sum_of_losses,
            _sign,
            _over_texts,
            _all_labels,
            _not_shifted,
            _log_of_zero,
            _no_logarithm,
            _log_of_the_mean,
            _no_bias_no_shift,
            _held_above_zero,
            _binary_logarithm,
        ),
        cases=CLASSIFIED,
        draw=_draw_examples,
    ),
    Exercise(
        id="13.classifier_backward",
        title="The gradient of the classifier",
        level=3,
        minutes=12,
        task="Write `my_classifier_backward(vectors, labels, W, b)` for the same "
        "arguments: return d_vectors, d_W and d_b, the gradients of the loss, each of "
        "the shape of what it belongs to.",
        hints=(
            "Begin with the gradient of the logits of one text: softmax minus one-hot. "
            "The loss is a mean over N texts, so divide by N.",
            "The rest is the linear map backwards, as in chapter 12: d_logits @ W.T, "
            "vectors.T @ d_logits, and the sum of d_logits over the texts.",
        ),
        solution=my_classifier_backward,
        mistakes=mistakes(
            _sum_not_mean,
            _away_from_the_label,
            _only_probs,
            _only_right_label,
            _bias_forgotten,
            _logits_not_probs,
            _weights_transposed,
            _bias_averaged,
            _bias_not_summed,
            _vectors_last,
            _overflows,
            _divided_by_the_labels,
            _not_through_W,
            _through_softmax_again,
        ),
        cases=CLASSIFIED,
        draw=_draw_examples,
    ),
)
