"""What each trick of bert_np/fast.py gains, alone, on BERT-Base.

    python tests/tools/benchmarks/tricks.py [--rounds 9]

Each trick is switched off and on in turns in one process; printed is the
median of the ratios, time with it to time without it, and their quartiles.
The docstrings of bert_np/fast.py quote these figures.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from timeit import timeit
from unittest import mock

import numpy as np
from speed import make_batch
from threadpoolctl import threadpool_limits
from turns import PAUSE

import bert_np
from bert_np import fast
from bert_np.functional import gelu, linear


def report(name, without, with_it, rounds, pause=0.0):
    """Run both in turns, with pauses; print a line of the table."""
    without(), with_it()
    ratios = [seconds(with_it, pause) / seconds(without, pause) for _ in range(rounds)]
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    print(f"| {name} | {middle:.2f} | {low:.2f}–{high:.2f} |", flush=True)


def seconds(run, pause):
    """The time of one call, after a pause in which BLAS's threads go to sleep."""
    time.sleep(pause)
    return timeit(run, number=1)


@contextmanager
def blas_threads(parts, threads=None):
    """In place of fast.map_over_threads: parts in a row, BLAS with its threads."""
    yield map


def one_part(total):
    """In place of fast._parts: all tokens at once."""
    return [slice(0, total)]


def runner(
    workload, prepared, config, threads=fast.map_over_threads, parts=fast._parts
):
    """A call of fast_bert on a workload, with two names of the module replaced."""
    batch = make_batch(workload)

    def run(mask=batch["mask"]):
        with mock.patch.multiple(fast, map_over_threads=threads, _parts=parts):
            fast.fast_bert(batch["ids"], prepared, config, attention_mask=mask)

    return run, batch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    config = bert_np.BertConfig.base()
    params = bert_np.init_params(config, np.random.default_rng(0))
    prepared = fast.prepare(params, config)
    print("| trick | time, to that without it | quartiles |\n|---|---:|---:|")
    run, batch = runner("32x128 padded", prepared, config)
    report(
        "padding left out, (32, 128) padded",
        lambda: run(np.ones_like(batch["mask"])),
        run,
        rounds,
        PAUSE,
    )
    alone, _ = runner("8x128", prepared, config, blas_threads)
    split, _ = runner("8x128", prepared, config)
    report("parts in threads, (8, 128)", alone, split, rounds, PAUSE)
    whole, _ = runner("8x128", prepared, config, blas_threads, one_part)
    report("parts, (8, 128), without threads", whole, alone, rounds)
    alone, _ = runner("1x512", prepared, config, blas_threads, one_part)
    split, _ = runner("1x512", prepared, config)
    report("one text in parts and threads, (1, 512)", alone, split, rounds, PAUSE)
    products(params["layers"][0]["attention"], prepared["qkv"][0], rounds)
    attention(rounds)
    activation(rounds)
    blocks(rounds)
    tiles(rounds)


def products(params, joined, rounds):
    """One product for query, key and value, on 256 tokens."""
    x = np.random.default_rng(0).standard_normal((256, 768), dtype=np.float32)
    names = ("query", "key", "value")
    report(
        "query, key and value in one product, 256 tokens",
        lambda: [linear(x, **params[name]) for name in names],
        lambda: linear(x, **joined),
        rounds * 5,
    )


def attention(rounds):
    """Dividing what was gathered, not the probabilities, for 12 x 512 x 512."""
    rng = np.random.default_rng(0)
    scores = rng.random((12, 512, 512), dtype=np.float32)
    v = rng.random((12, 512, 64), dtype=np.float32)
    total = scores.sum(axis=-1, keepdims=True)
    report(
        "division after the product with V, 512 tokens, no maps",
        lambda: (scores / total) @ v,
        lambda: (scores @ v) / total,
        rounds * 5,
    )


def activation(rounds):
    """GELU as x / (1 + exp(-2u)), in place of x (1 + tanh(u)) / 2."""
    x = np.random.default_rng(0).standard_normal(fast.BLOCK, dtype=np.float32)
    report(
        "GELU by the logistic function, in one thread",
        lambda: gelu(x),
        lambda: fast._gelu(x),
        rounds * 50,
    )


def blocks(rounds):
    """Large blocks: between two steps a thread waits for Python's lock."""
    alone = get_context("spawn")
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, alone) as processes:
        small = partial(run_twice, threads, 2**15)
        report(
            "GELU in blocks of 2^17 values, not 2^15, in two threads",
            small,
            partial(run_twice, threads, 2**17),
            rounds * 2,
        )
        report(
            "(not used) the blocks of 2^15 in two processes, each with a lock",
            small,
            partial(run_twice, processes, 2**15),
            rounds * 2,
        )


def run_twice(pool, size):
    """The same work in two workers at once."""
    list(pool.map(gelu_in_blocks, [size] * 2))


def gelu_in_blocks(size):
    """GELU of a million values, several times."""
    x = np.linspace(-3, 3, 2**20, dtype=np.float32)
    for _ in range(20):
        for start in range(0, x.size, size):
            fast._gelu(x[start : start + size])


def tiles(rounds):
    """Not in fast.py: weights in tiles of 64 columns, for 16 tokens, BLAS alone."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 768), dtype=np.float32)
    W = rng.standard_normal((768, 3072), dtype=np.float32)
    tiles = np.ascontiguousarray(W.reshape(768, -1, 64).swapaxes(0, 1))
    y = np.empty((16, len(tiles), 64), np.float32)
    with threadpool_limits(1, user_api="blas"):
        report(
            "(not used) weights in tiles, 16 tokens, in one thread",
            lambda: x @ W,
            lambda: np.matmul(x, tiles, out=y.swapaxes(0, 1)),
            rounds * 20,
        )


if __name__ == "__main__":
    main()
