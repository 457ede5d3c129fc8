"""What a linear map can read off the hidden states of each layer.

A probe that reads parts of speech well may have learnt them itself, from
the words: it has enough parameters to remember what label a word has. The
control task (Hewitt and Liang 2019) shows how much of that it can do. It
gives each word a random label, the same wherever the word occurs, so that
nothing but remembering helps. What a probe reads beyond that, its
selectivity, says more about the states.
"""

from collections import Counter, defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import check_sentences, require_generator
from bert_np.analysis.words import run_states
from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.fast import map_over_threads
from bert_np.functional import softmax

TRAIN, DEV, TEST = 0, 1, 2
PARTS = (TRAIN, TRAIN, TRAIN, DEV, TEST)  # of the sentences 0 to 4, 5 to 9, ...
STRENGTHS = (3e-4, 3e-3, 3e-2)  # of the penalty, per training word
STEPS = 30
FARTHEST = 5  # a longer distance counts as this one
DRAWS = 1000  # resamplings for an interval


class ProbeScores(NamedTuple):
    """How well labels are read off the states of each layer, on test sentences.

    Place 0 of the L + 1 belongs to the embeddings, place l to the output
    of layer l - 1. Intervals hold 95 % of 1,000 resamplings of sentences.
    """

    accuracy: np.ndarray  # (L + 1,): share of words whose label is read right
    control: np.ndarray  # (L + 1,): the same for the control task
    selectivity: np.ndarray  # (L + 1,): accuracy - control
    accuracy_interval: np.ndarray  # (L + 1, 2)
    control_interval: np.ndarray  # (L + 1, 2)
    selectivity_interval: np.ndarray  # (L + 1, 2)
    by_word: float  # accuracy of guessing each word's most frequent label
    majority: float  # accuracy of guessing the most frequent label of all
    words: tuple  # how many in the training, development and test sentences
    labels: tuple  # of str


def probe_layers(
    sentences,
    params,
    config,
    tokenizer,
    *,
    rng,
    label="tag",
    report=None,
    batch_size=32,
):
    """Measure what a linear map reads off each layer, beside a control task.

    A softmax over x W + b is fitted to the training words, as in logistic
    regression; least squares would need no steps, but would punish a
    score for being too right. Of every five sentences three are for
    training, one to choose the strength of the penalty, one for the test;
    nothing is chosen on the test sentences.

    Selectivity compares layers. It is not a score out of 1, and is below
    0 where the label is harder than remembering words, as is the distance
    of the syntactic head. There, compare accuracy with by_word.

    Parameters
    ----------
    sentences : list of Sentence
        At least five.
    params : dict
    config : BertConfig
    tokenizer : Tokenizer
    rng : numpy.random.Generator
        Draws the labels of the control task and the resamplings.
    label : "tag", "distance", or function
        What is read: the part of speech; how far away the syntactic head
        is, from "-5" (or farther left) to "+5", or "root"; or what a
        function of a sentence returns, a list of one str per word.
    report : function, optional
        Called with a line of text after each layer.
    batch_size : int
        How many sentences, of similar length, are run together.

    Returns
    -------
    ProbeScores
        float64.

    Source: Hewitt and Liang 2019 (control tasks); Alain and Bengio 2016
    (linear probes of every layer).
    """
    require_config(config)
    require_generator(rng)
    check_sentences(sentences, len(PARTS))
    labels = list_labels(sentences, label)
    types = [
        word.lower() if getattr(tokenizer, "lowercase", True) else word
        for sentence in sentences
        for word in sentence.words
    ]
    lengths = [len(sentence.words) for sentence in sentences]
    numbers = np.repeat(np.arange(len(sentences)), lengths)
    parts = np.array(PARTS)[numbers % len(PARTS)]
    tasks = [labels, control_labels(types, labels[parts == TRAIN], rng)]
    options = {"report": report, "batch_size": batch_size}
    options["what"] = "sentences[{}].words"
    words = [sentence.words for sentence in sentences]
    right = [
        [read_labels(x, task, parts) for task in tasks]
        for x in run_states(words, params, config, tokenizer, **options)
    ]
    right = np.moveaxis(np.array(right, dtype=float), 1, 0)  # (2, L + 1, words)
    right = np.concatenate([right, right[:1] - right[1:]])  # and the selectivity
    means = right.mean(axis=-1)  # (3, L + 1)
    ends = resample_sentences(right, numbers[parts == TEST], rng)
    return ProbeScores(
        *means,
        *ends,
        by_word=guess_by_word(types, labels, parts),
        majority=guess_by_word([""] * len(types), labels, parts),
        words=tuple(np.bincount(parts, minlength=3).tolist()),
        labels=tuple(np.unique(labels).tolist()),
    )


def list_labels(sentences, label):
    """Return the label of every word, an array of str (N,)."""
    name = label if isinstance(label, str) else None
    if name == "tag":
        found = [sentence.tags for sentence in sentences]
    elif name == "distance":
        found = [distance_labels(sentence.heads) for sentence in sentences]
    elif callable(label):
        found = [label(sentence) for sentence in sentences]
    else:
        raise BertError(f"label = {short(label)}, allowed: 'tag', 'distance', function")
    for number, (labels, sentence) in enumerate(zip(found, sentences)):
        is_list = isinstance(labels, (list, tuple))
        if not is_list or len(labels) != len(sentence.words):
            raise BertError(
                f"label of sentences[{number}] is {short(labels)}, allowed: a list of "
                f"{len(sentence.words)} str"
            )
        for value in labels:
            if not isinstance(value, str):
                raise BertError(
                    f"label of sentences[{number}] holds {short(value)}, allowed: str"
                )
    return np.array([value for labels in found for value in labels])


def distance_labels(heads):
    """Say for each word how far away its syntactic head is.

    >>> distance_labels((1, -1, 10, 1))
    ['+1', 'root', '+5', '-2']
    """
    return [
        "root" if head < 0 else f"{np.clip(head - place, -FARTHEST, FARTHEST):+}"
        for place, head in enumerate(heads)
    ]


def control_labels(types, labels, rng):
    """Draw a random label for each type of word, the same wherever it occurs.

    Parameters
    ----------
    types : list of N str
        The word at each place.
    labels : ndarray of str
        The labels are drawn as often as they occur here.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of str of shape (N,)

    Source: Hewitt and Liang 2019, section 2.1.
    """
    kinds, places = np.unique(types, return_inverse=True)
    return rng.choice(labels, len(kinds))[places]


def read_labels(x, labels, parts):
    """Fit a linear map to the training words, and read the test words.

    Of three strengths of the penalty, the one that reads most development
    words right is taken.

    Parameters
    ----------
    x : ndarray of shape (N, H)
        The states; here each number is divided by its standard deviation
        over the training words, after its mean is subtracted.
    labels : ndarray of str of shape (N,)
    parts : ndarray of int of shape (N,)
        0 training, 1 development, 2 test.

    Returns
    -------
    ndarray of bool
        For each test word, whether its label is read right.
    """
    names, y = np.unique(labels, return_inverse=True)
    training = parts == TRAIN
    centre, scale = x[training].mean(axis=0), x[training].std(axis=0) + 1e-6
    X = np.column_stack([(x - centre) / scale, np.ones(len(x))]).astype(x.dtype)
    Y = np.eye(len(names), dtype=x.dtype)[y[training]]
    fit = partial(fit_softmax, X[training], Y)
    with map_over_threads(len(STRENGTHS)) as run_all:
        maps = list(run_all(fit, STRENGTHS))

    def read(part, W):
        return (X[parts == part] @ W).argmax(axis=1) == y[parts == part]

    return read(TEST, max(maps, key=lambda W: read(DEV, W).mean()))


def fit_softmax(X, Y, strength, steps=STEPS):
    """Fit W so that softmax(X W) comes close to the labels Y.

    W <- W + (X^T X / 2 + r I)^-1 (X^T (Y - softmax(X W)) - r W)

    The matrix in brackets is never below the second derivatives of the
    loss, so that every step is safe, and it is inverted once; Nesterov's
    momentum makes 30 of these steps enough. r is strength * N.

    Parameters
    ----------
    X : ndarray of shape (N, H)
    Y : ndarray of shape (N, K)
        1 at the label of each word, 0 elsewhere.
    strength : float
        Of the penalty on the squares of W, per word.
    steps : int

    Returns
    -------
    ndarray of shape (H, K)

    Source: Böhning 1992 (the bound); Nesterov 1983.
    """
    r = strength * len(X)
    bound = X.T.astype(np.float64) @ X / 2 + r * np.eye(X.shape[1])
    inverse = np.linalg.inv(bound).astype(X.dtype)
    W = before = np.zeros((X.shape[1], Y.shape[1]), X.dtype)
    for step in range(steps):
        ahead = W + (step - 1) / (step + 2) * (W - before)
        slope = X.T @ (Y - softmax(X @ ahead)) - r * ahead
        before, W = W, ahead + inverse @ slope
    return W


def guess_by_word(types, labels, parts):
    """Return the accuracy of guessing each word's most frequent label.

    Labels are counted on the training words; a word that does not occur
    there gets the most frequent label of all.
    """
    counts = defaultdict(Counter)
    training = parts == TRAIN
    for word, value in zip(np.array(types)[training], labels[training]):
        counts[str(word)][str(value)] += 1
    usual = sum(counts.values(), Counter()).most_common(1)[0][0]
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    test = parts == TEST
    guesses = [best.get(str(word), usual) for word in np.array(types)[test]]
    return float(np.mean(np.array(guesses) == labels[test]))


def resample_sentences(right, numbers, rng):
    """Return where 95 % of the means lie if sentences are drawn again.

    Parameters
    ----------
    right : ndarray of shape (..., N)
    numbers : ndarray of int of shape (N,)
        The sentence of each word.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (..., 2)
    """
    _, places = np.unique(numbers, return_inverse=True)
    n = places.max() + 1
    draws = rng.multinomial(n, np.full(n, 1 / n), DRAWS)  # how often each is drawn
    member = np.eye(n)[places]  # (N, n)
    means = right @ member @ draws.T / (draws @ member.sum(axis=0))
    return np.moveaxis(np.percentile(means, (2.5, 97.5), axis=-1), 0, -1)


def format_probe(scores):
    """Write probe scores as a Markdown table, one row per layer.

    Parameters
    ----------
    scores : ProbeScores

    Returns
    -------
    str
    """
    if not isinstance(scores, ProbeScores):
        raise BertError(
            f"scores is {type(scores).__name__}, allowed: what probe_layers returns"
        )
    lines = ["| states | accuracy | control task | selectivity |", "|---|---|---|---|"]
    for layer in range(len(scores.accuracy)):
        cells = ["embeddings" if layer == 0 else f"layer {layer - 1}"]
        for name in ("accuracy", "control", "selectivity"):
            low, high = getattr(scores, f"{name}_interval")[layer]
            cells.append(f"{getattr(scores, name)[layer]:.3f} [{low:.3f}, {high:.3f}]")
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| the word's most frequent label | {scores.by_word:.3f} | | |")
    lines.append(f"| the most frequent label of all | {scores.majority:.3f} | | |")
    return "\n".join(lines)
