"""Measure what a row's results depend on, besides the row itself.

    python tests/measure_invariance.py

runs MiniLM and models with random weights, plain and fast, in several
batches, times the two ways of plain on BERT-Base, side by side, and writes
tests/robustness/invariance.json.
"""

import statistics
import sys
from contextlib import ExitStack
from importlib import import_module
from timeit import timeit
from unittest import mock

import numpy as np
from make_robustness import write_figures

from bert_np import BertConfig, bert, init_params
from bert_np.fast import fast_bert, prepare
from bert_np.files.pretrained import load_pretrained

SMALL = BertConfig(
    vocab_size=60,
    hidden_size=21,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=11,
    max_position_embeddings=40,
)
WIDE = BertConfig(
    vocab_size=60,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=256,
    max_position_embeddings=128,
)
BATCHES = [(2, 5), (5, 9), (7, 33), (16, 8)]  # (B, T)
COSTS = [(1, 16), (2, 32), (8, 16), (8, 128), (32, 16)]
QUESTIONS = (
    "run again",
    "other rows hold other tokens",
    "padding holds other ids",
    "rows in another order",
    "alone",
    "alone and without padding",
)


def plain(params, config):
    return lambda ids, mask: bert(ids, params, config, attention_mask=mask)


def fast(params, config):
    prepared = prepare(params, config)
    return lambda ids, mask: fast_bert(ids, prepared, config, attention_mask=mask)


def linear_by_rows(x, W, b):
    """linear with a product for each text, where bert_np has one for all."""
    y = x @ W if x.ndim > 2 else (x[:, None] @ W)[:, 0]
    return y + b


def plain_by_rows(params, config):
    """bert where each text has its own products."""

    def run(ids, mask):
        with ExitStack() as stack:
            for module in ("attention", "feed_forward", "pooler"):
                module = import_module(f"bert_np.{module}")
                stack.enter_context(mock.patch.object(module, "linear", linear_by_rows))
            return bert(ids, params, config, attention_mask=mask)

    return run


def make_batch(shape, vocab_size, rng):
    """Ids without special meaning, and a mask; the first row is full."""
    lengths = rng.integers(1, shape[1] + 1, shape[0])
    lengths[0] = shape[1]
    mask = np.arange(shape[1]) < lengths[:, None]
    return rng.integers(0, vocab_size, shape), mask


def row_of(out, i, n):
    """All results of row i at its n real positions."""
    pooled = [] if out["pooler_output"] is None else [out["pooler_output"][i]]
    return [
        out["last_hidden_state"][i, :n],
        *pooled,
        *(probs[i, :, :n, :n] for probs in out["attention_probs"]),
    ]


def gap(a, b):
    """The largest difference of two rows' results; exactly 0 is bit-equal."""
    return max(
        float(np.abs(x.astype(np.float64) - y).max()) for x, y in zip(a, b, strict=True)
    )


def gaps(run, ids, mask, rng):
    """{question: the largest difference over all rows of a batch}."""
    other = rng.integers(0, ids.max() + 1, ids.shape)
    order, found = rng.permutation(len(ids)), dict.fromkeys(QUESTIONS, 0.0)
    base, again = run(ids, mask), run(ids, mask)
    padded, moved = run(np.where(mask, ids, other), mask), run(ids[order], mask[order])
    for i, n in enumerate(mask.sum(axis=1)):
        others = np.where(np.arange(len(ids))[:, None] == i, ids, other)
        one = slice(i, i + 1)
        answers = [
            row_of(again, i, n),
            row_of(run(others, mask), i, n),
            row_of(padded, i, n),
            row_of(moved, order.tolist().index(i), n),
            row_of(run(ids[one], mask[one]), 0, n),
            row_of(run(ids[one, :n], mask[one, :n]), 0, n),
        ]
        for question, answer in zip(QUESTIONS, answers, strict=True):
            found[question] = max(found[question], gap(answer, row_of(base, i, n)))
    return found


def largest(make, params, config, batches=BATCHES, seed=0):
    """{question: the largest difference over several batches}."""
    rng, run = np.random.default_rng(seed), make(params, config)
    found = [
        gaps(run, *make_batch(shape, config.vocab_size, rng), rng) for shape in batches
    ]
    return {question: max(g[question] for g in found) for question in QUESTIONS}


def models():
    """Yield (name, params, config) of what is measured."""
    for name, config in {"H=21, random": SMALL, "H=64, random": WIDE}.items():
        for dtype in (np.float32, np.float64):
            params = init_params(config, np.random.default_rng(1), dtype=dtype)
            yield f"{name}, {dtype.__name__}", params, config
    params, config, _ = load_pretrained("all-MiniLM-L6-v2")
    yield "MiniLM, float32", params, config


def costs(rounds=7):
    """Yield ((B, T), how many times as long plain by rows takes as plain)."""
    config = BertConfig.base()
    params = init_params(config, np.random.default_rng(0))
    one, many = plain(params, config), plain_by_rows(params, config)
    for shape in COSTS:
        ids = np.random.default_rng(1).integers(1000, 30000, shape)
        batch = ids, np.ones(shape, bool)
        one(*batch), many(*batch)
        ratios = [
            timeit(lambda: many(*batch), number=1)
            / timeit(lambda: one(*batch), number=1)
            for _ in range(rounds)
        ]
        yield shape, statistics.median(ratios)


def main():
    rows = []
    for name, params, config in models():
        for make in (plain, fast, plain_by_rows):
            found = largest(make, params, config)
            shown = ["0" if g == 0 else f"{g:.1e}" for g in found.values()]
            rows.append([name, make.__name__.replace("_", " "), *shown])
            print(*rows[-1], flush=True)
    times = [[str(shape), f"{ratio:.2f}"] for shape, ratio in costs()]
    print(*times, flush=True)
    write_figures(
        "invariance.json",
        {
            "order": 70,
            "section": "What a row depends on",
            "command": "python tests/measure_invariance.py",
            "versions": {"numpy": np.__version__},
            "text": [
                f"Batches of (B, T) = {', '.join(map(str, BATCHES))} with rows of random "
                "lengths; the largest difference at real positions of hidden states, "
                "pooled output and attention. 0 is bit-equal.",
                "A row is the same to the bit when it runs again in a batch of the same "
                "shape, whatever stands in the other rows and in its padding. Alone or in "
                "another place it may differ in the last bits: one matrix product for all "
                "texts of the batch is quicker, and BLAS adds up in another order where "
                "there are other numbers of rows. *Plain by rows* is the plain model with "
                "a product for each text: nothing else in it depends on the batch. The "
                "second table is what it would cost.",
            ],
            "tables": [
                {"columns": ["model", "path", *QUESTIONS], "rows": rows},
                {
                    "columns": ["BERT-Base, (B, T)", "time of plain by rows to plain"],
                    "rows": times,
                },
            ],
        },
    )


if __name__ == "__main__":
    sys.exit(main())
