"""Rewrite what bert_np/training/README.md shows of fine-tuned models.

    python tests/tools/fine_tuning_tables.py [--seeds 5] [--seeds-of-all 2]
        [--only reviews tags]

MiniLM learns the labels of the reviews and the parts of speech of the treebank.
Each seed sets another fifth of the examples aside as a test, on which nothing is
chosen, and draws everything else that is random. Fine-tuning all layers takes
several times as long, so it may have fewer seeds. A table is written after each
seed.
"""

import argparse
import time

import numpy as np
from make_tables import ROOT, write_table

from bert_np import init_params, load_pretrained
from bert_np.analysis import read_reviews, read_treebank
from bert_np.training.baselines import (
    bag_of_words_answers,
    frozen_vectors_answers,
    majority_answers,
)
from bert_np.training.examples import split_examples
from bert_np.training.fine_tune import evaluate_model, fine_tune
from bert_np.training.metrics import accuracy, confusion_matrix, macro_f1

README = ROOT / "bert_np" / "training" / "README.md"
SETTINGS = {"max_length": 64}
# 800 sentences are 25 batches of 32: too few steps for a head of 17 labels.
TAGGING = {"task": "token", "batch_size": 8, "body_rate": 3e-4, "head_rate": 3e-3}
UNTRAINED = "top two layers, of random weights"


def reviews():
    """Pairs of a sentence and its label."""
    return [(review.text, review.label) for review in read_reviews()]


def tagged_sentences():
    """Pairs of the words of a sentence and their parts of speech."""
    return [(list(s.words), list(s.tags)) for s in read_treebank()]


def tuned(model, training, test, rng, **settings):
    """Accuracy and macro F1 of a model that has learned, and its seconds."""
    start = time.perf_counter()
    report = {"report": lambda line: print("  ", line, flush=True)}
    found = fine_tune(model, training, rng, **SETTINGS, **settings, **report).model
    seconds = time.perf_counter() - start
    answers = evaluate_model(found, test, SETTINGS["max_length"])
    return scores(answers.labels, answers.predictions), seconds


def simple(answer, training, test, *options):
    """Accuracy and macro F1 of a simple method, and its seconds."""
    start = time.perf_counter()
    answers = answer(training, test, *options)
    seconds = time.perf_counter() - start
    labels = [y if isinstance(y, list) else str(y) for _, y in test]
    if isinstance(labels[0], list):
        labels, answers = sum(labels, []), sum(answers, [])
    names = sorted({*labels, *answers})
    numbers = [np.array([names.index(y) for y in ys]) for ys in (labels, answers)]
    return scores(*numbers), seconds


def scores(labels, predictions):
    """Return accuracy and macro F1."""
    matrix = confusion_matrix(labels, predictions, int(max(*labels, *predictions)) + 1)
    return accuracy(labels, predictions), macro_f1(matrix)


def review_methods(model, seed, with_all):
    """Yield the name of each method for the reviews, and a call that measures it."""
    training, test = split_examples(reviews(), 0.2, np.random.default_rng(seed))
    given = training, test, np.random.default_rng(seed)
    yield "bag of words", lambda: simple(bag_of_words_answers, *given)
    yield "frozen vectors", lambda: simple(frozen_vectors_answers, *given, model)
    yield "top two layers", lambda: tuned(model, *given, layers=2)
    random = init_params(model.config, np.random.default_rng(seed))
    random = model._replace(params=random)
    yield UNTRAINED, lambda: tuned(random, *given, layers=2)
    if with_all:
        yield "all layers", lambda: tuned(model, *given)


def tag_methods(model, seed, with_all):
    """Yield the name of each method for the parts of speech, and its call."""
    sentences = tagged_sentences()
    training, test = split_examples(sentences, 0.2, np.random.default_rng(seed))
    given = training, test, np.random.default_rng(seed)
    names = sorted({tag for _, tags in sentences for tag in tags})  # some are rare
    settings = {**TAGGING, "labels": names}
    yield "each word's most frequent tag", lambda: simple(majority_answers, *given[:2])
    yield "top two layers", lambda: tuned(model, *given, layers=2, **settings)
    if with_all:
        yield "all layers", lambda: tuned(model, *given, **settings)


METHODS = {"reviews": review_methods, "tags": tag_methods}


def table(found):
    """Rows of methods: means over the seeds, lowest and highest accuracy."""
    lines = ["| method | accuracy | lowest to highest | macro F1 | seeds |"]
    lines.append("|---|---:|---:|---:|---:|")
    for name, rows in found.items():
        right, f1 = np.transpose([row for row, _ in rows])
        cells = f"{right.mean():.3f}", f"{right.min():.3f} to {right.max():.3f}"
        lines.append(
            f"| {name} | {' | '.join(cells)} | {f1.mean():.3f} | {len(rows)} |"
        )
    return "\n".join(lines)


def measure(marker, methods, model, seeds, seeds_of_all):
    """Run all methods for all seeds; write the table after each."""
    found = {}
    for seed in range(seeds):
        for name, run in methods(model, seed, seed < seeds_of_all):
            result, seconds = run()
            found.setdefault(name, []).append((result, seconds))
            print(f"{marker} seed {seed} {name}: accuracy {result[0]:.3f}, ", end="")
            print(f"macro F1 {result[1]:.3f}, {seconds:.0f} s", flush=True)
        write_table(README, marker, table(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seeds-of-all", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    given = vars(parser.parse_args())
    minilm = load_pretrained("all-MiniLM-L6-v2")
    for marker in given.pop("only"):
        measure(marker, METHODS[marker], minilm, **given)
