"""Where the time of fast_bert goes, beside its matrix products alone.

    python tests/tools/benchmarks/steps.py [--rounds 5]

BERT-Base. The functions of bert_np/fast.py are timed inside their threads; a step's
time is the sum over the threads, divided by their number. "waiting" is what remains
of the whole: parts that wait for the slowest, and Python. All in percent of the
products alone, in the fastest of the rounds. The table goes to README.md.
"""

import argparse
import tempfile
import threading
import time
from collections import Counter
from unittest import mock

from sides import products
from speed import make_batch, make_folder, write_table

from bert_np import fast, load_pretrained

STEPS = {
    "_activate": "GELU",
    "_add_and_norm": "residuals and norms",
    "_attend": "attention, with its products",
    "_linear": "linear maps and biases",
    "embed": "embeddings",
}
WORKLOADS = ("1x16", "2x32", "8x128", "1x512", "32x128 padded")


def timed(name, seconds, lock):
    """The function of this name in fast.py, which adds up its time."""
    function = getattr(fast, name)

    def run(*arguments, **options):
        start = time.perf_counter()
        result = function(*arguments, **options)
        with lock:
            seconds[name] += time.perf_counter() - start
        return result

    return run


def fastest(run, rounds):
    """The least time of a call, and what `run` returned then."""
    found = []
    for _ in range(rounds):
        time.sleep(0.3)
        start = time.perf_counter()
        result = run()
        found.append((time.perf_counter() - start, result))
    return min(found, key=lambda pair: pair[0])


def row(workload, prepared, config, run_products, rounds):
    """Percents of the products' time: each step, waiting, and the whole."""
    batch = make_batch(workload)
    parts = len(fast._parts(int(batch["mask"].sum())))
    threads = min(parts, fast.os.cpu_count() or 1)

    def run():
        seconds, lock = Counter(), threading.Lock()
        timers = {name: timed(name, seconds, lock) for name in STEPS}
        with mock.patch.multiple(fast, **timers):
            fast.fast_bert(batch["ids"], prepared, config, attention_mask=batch["mask"])
        return seconds

    alone, _ = fastest(lambda: run_products(batch), rounds)
    whole, seconds = fastest(run, rounds)
    steps = [seconds[name] / threads / alone for name in STEPS]
    return [*steps, whole / alone - sum(steps), whole / alone]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    lines = [f"| (B, T) | {' | '.join(STEPS.values())} | waiting | fast in all |"]
    lines.append("|---" * (len(STEPS) + 3) + "|")
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        params, config = load_pretrained(folder)[:2]
        prepared, run_products = fast.prepare(params, config), products(folder)
    for workload in WORKLOADS:
        percents = row(workload, prepared, config, run_products, rounds)
        lines.append(f"| {workload} | {' | '.join(f'{x:.0%}' for x in percents)} |")
        print(lines[-1], flush=True)
    write_table("steps", lines)


if __name__ == "__main__":
    main()
