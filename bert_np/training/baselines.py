"""What simple methods reach, so that BERT's figures can be judged.

One looks at which words a text has, in any order; one at the vectors of a
model that is not trained further; one gives each word the label that it
had most often. All learn from the same examples, and nothing is chosen on
the examples that are asked.
"""

from collections import Counter, defaultdict

import numpy as np

from bert_np.functional import linear
from bert_np.tasks import embed_sentences
from bert_np.tokenizer import basic_split, normalize
from bert_np.training.adam import adam, init_adam, learning_rate
from bert_np.training.inputs import (
    check_examples,
    check_int,
    check_model,
    check_number,
    check_rng,
    check_vectors_to_learn,
)
from bert_np.training.losses import masked_cross_entropy

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
STEPS, RATE = 300, 0.1  # of logistic regression
MOST_WORDS = 5000  # of a bag of words: the most frequent


def bag_of_words_answers(training, asked, rng):
    """Answer by which words occur in a text, whatever their order.

    A logistic regression on vectors with a 1 for each word that is there.

    Parameters
    ----------
    training, asked : list of (text, label)
        With single labels. Two texts in place of one are joined.
    rng : numpy.random.Generator
        Chooses the penalty on a tenth of the training examples.

    Returns
    -------
    list of str
        A label for each of the examples asked.
    """
    texts, labels, questions = _check_single_labels(training, asked, rng)
    words = Counter(word for text in texts for word in _words(text))
    place = {word: i for i, (word, _) in enumerate(words.most_common(MOST_WORDS))}

    def bags(texts):
        x = np.zeros((len(texts), len(place)), np.float32)
        for row, text in zip(x, texts):
            row[[place[word] for word in _words(text) if word in place]] = 1
        return x

    return _learn_and_answer(bags(texts), labels, bags(questions), rng)


def _words(text):
    """Return the different words of a text, in lower case."""
    return {word for word, _ in basic_split(normalize(text)[0])}


def frozen_vectors_answers(training, asked, rng, model, max_length=128):
    """Answer by the vectors of a model that is not trained any further.

    A logistic regression on the vectors of embed_sentences.

    Parameters
    ----------
    training, asked : list of (text, label)
        With single labels. Two texts in place of one are joined.
    rng : numpy.random.Generator
        Chooses the penalty on a tenth of the training examples.
    model : Pretrained
    max_length : int

    Returns
    -------
    list of str
        A label for each of the examples asked.
    """
    check_model(model)
    texts, labels, questions = _check_single_labels(training, asked, rng)
    x, y = (
        embed_sentences(t, *model, max_length=max_length) for t in (texts, questions)
    )
    return _learn_and_answer(x, labels, y, rng)


def majority_answers(training, asked):
    """Answer with the label that each word had most often.

    A word that was not seen gets the label most frequent among words seen
    only once, since new words are like rare ones.

    Parameters
    ----------
    training, asked : list of (words, labels)

    Returns
    -------
    list of list of str
        A label for each word of the examples asked.
    """
    for examples in (training, asked):
        check_examples(examples, "token")
    counts = defaultdict(Counter)
    for words, labels in training:
        for word, label in zip(words, labels):
            counts[word][label] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    rare = Counter(best[word] for word in best if sum(counts[word].values()) == 1)
    unseen = (rare or Counter(best.values())).most_common(1)[0][0]
    return [[best.get(word, unseen) for word in words] for words, _ in asked]


def logistic_regression(x, labels, count, penalty):
    """Find the weights that make the labels most probable.

    They minimise the mean of -log(softmax(x W + b)[label]), plus half the
    penalty times the sum of W². The problem is convex: it has one minimum,
    which Adam approaches, seeing all vectors in each step.

    Parameters
    ----------
    x : ndarray of shape (N, D)
    labels : ndarray of int of shape (N,)
        In 0..K-1.
    count : int
        K.
    penalty : float
        0 or more.

    Returns
    -------
    dict
        W : ndarray of shape (D, K)
        b : ndarray of shape (K,)
    """
    count = check_int("count", count, 1, 10_000)
    penalty = check_number("penalty", penalty, "a finite number >= 0")
    x, labels = check_vectors_to_learn(x, labels, count)
    params = {
        "W": np.zeros((x.shape[1], count), x.dtype),
        "b": np.zeros(count, x.dtype),
    }
    state = init_adam(params)
    for step in range(STEPS):
        _, d_logits = masked_cross_entropy(linear(x, **params), labels)
        grads = {"W": x.T @ d_logits + penalty * params["W"], "b": d_logits.sum(axis=0)}
        rate = learning_rate(step, RATE, 0, STEPS)
        params, state = adam(params, grads, state, rate, weight_decay=0)
    return params


def _learn_and_answer(x, names, asked, rng):
    """Choose the penalty on a tenth, learn from all, answer what is asked."""
    labels = sorted(set(names))
    numbers, count = np.array([labels.index(name) for name in names]), len(labels)
    order = rng.permutation(len(x))
    choosing, learning = order[: len(x) // 10], order[len(x) // 10 :]

    def right(penalty):
        params = logistic_regression(x[learning], numbers[learning], count, penalty)
        found = linear(x[choosing], **params).argmax(axis=1)
        return np.count_nonzero(found == numbers[choosing])

    penalty = max(PENALTIES, key=right) if len(choosing) else PENALTIES[0]
    params = logistic_regression(x, numbers, count, penalty)
    return [labels[i] for i in linear(asked, **params).argmax(axis=1)]


def _check_single_labels(training, asked, rng):
    """Return the texts and labels to learn from, and the texts that are asked."""
    check_rng(rng)
    for examples in (training, asked):
        check_examples(examples, "sequence", "one label")
    texts, questions = (
        [text if isinstance(text, str) else " ".join(text) for text, _ in examples]
        for examples in (training, asked)
    )
    return texts, [str(label) for _, label in training], questions
