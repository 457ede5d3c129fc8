"""BERT-Base side by side: this library and what one would otherwise install.

    python tests/benchmarks/speed.py [--rounds 15] [--only times memory ...]
        [--kernel Haswell] [--out tests/benchmarks/speed.json]

Needs torch, transformers, onnx and onnxruntime beside requirements.txt. All
sides load one random checkpoint and get the same batches; each is a process
of its own, and they take turns. Measured, each under its name for --only:

times    seconds a batch; ratios to transformers with eager attention are
         medians over the rounds in which nobody waited for a processor,
         or over all where these are too few
memory   the highest memory of a process during its first batch (Linux)
curves   seconds against the length T and the batch size B
start    a new process until the picture of a sentence's attention is saved
import   `import bert_np` where numpy is imported already
limits   the machine's own matrix products and reads, and what they allow
shares   which steps take the plain path's time

The figures of each part are written to the file as soon as they are there;
`python tests/make_readme.py` makes the README's tables and picture of them.
--kernel names another BLAS kernel of NumPy's for this run (OpenBLAS only).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from timeit import repeat

import numpy as np
from shares import shares
from sides import SIDES
from turns import calm_rounds, rounds_of, start, stop, take_turns

HERE = Path(__file__).resolve().parent
PEER = "transformers, eager"
TIMED = ("plain", "fast", PEER, "transformers, sdpa", "ONNX Runtime")
CURVES = ("plain", "fast", PEER)
WITH_MEMORY = (
    *TIMED,
    "plain, without maps",
    "fast, without maps",
    "transformers, eager, without maps",
)
WORKLOADS = ("1x16", "2x32", "8x128", "1x512", "32x128 padded")
IN_MEMORY = ("2x32", "1x512", "32x128")
LENGTHS = [f"1x{T}" for T in (16, 32, 64, 128, 192, 256, 384, 512)]
BATCHES = [f"{B}x32" for B in (1, 2, 4, 8, 16, 32, 64)]
FEWEST = 5  # calm rounds that a median is taken of; with fewer, of all rounds
SECONDS_A_TURN = 0.3  # short batches run several times a turn
PACKAGES = ("numpy", "torch", "transformers", "onnxruntime")


def make_batch(workload):
    """Ids, segments and mask of a workload such as "8x128"."""
    shape, _, padded = workload.partition(" ")
    B, T = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    lengths = rng.integers(8, T + 1, B) if padded else np.full(B, T)
    mask = (np.arange(T) < lengths[:, None]).astype(np.int64)
    ids = rng.integers(1000, 30000, (B, T)) * mask
    return {"ids": ids, "segments": np.zeros_like(ids), "mask": mask}


def work(side, folder):
    """In a worker: run the workload of each line read, as often as it says."""
    run = SIDES[side](folder)
    for line in take_turns():
        times, workload = line.split(" ", 1)
        batch = make_batch(workload)
        for _ in range(int(times)):
            run(batch)


def compare_sides(names, workloads, folder, count):
    """Workload -> side -> median seconds, median ratio and its quartiles."""
    workers = [
        start([__file__, "--worker", name, "--folder", folder]) for name in names
    ]
    figures = {}
    for workload in workloads:
        first = rounds_of(workers, 2, f"1 {workload}")[1]
        slowest = max(seconds for seconds, _ in first)
        times = max(1, round(SECONDS_A_TURN / slowest))
        rounds = rounds_of(workers, count, f"{times} {workload}")
        calm = calm_rounds(rounds)
        kept = calm if len(calm) >= FEWEST else rounds
        figures[workload] = summary(names, kept, times)
        figures[workload]["rounds"] = {"all": count, "calm": len(calm)}
        print(workload, json.dumps(figures[workload]), flush=True)
    for worker in workers:
        stop(worker)
    return figures


def summary(names, rounds, times):
    """Side -> its median seconds, and its ratio to the peer."""
    peer = names.index(PEER)
    figures = {}
    for i, name in enumerate(names):
        ratios = [row[i][0] / row[peer][0] for row in rounds]
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        seconds = statistics.median(row[i][0] for row in rounds) / times
        figures[name] = {
            "seconds": round(seconds, 5),
            "ratio": round(middle, 3),
            "quartiles": [round(low, 3), round(high, 3)],
        }
    return figures


def measure_times(folder, count):
    """The table of workloads, and the share of the matrix products."""
    return compare_sides((*TIMED, "products"), WORKLOADS, folder, count)


def measure_curves(folder, count):
    """Seconds against T for one text, and against B for texts of 32."""
    figures = compare_sides(CURVES, [*LENGTHS, *BATCHES], folder, max(3, count // 2))
    T = np.array([int(name.split("x")[1]) for name in LENGTHS])
    fits = {}
    for side in CURVES:
        seconds = np.array([figures[name][side]["seconds"] for name in LENGTHS])
        weights = (1 / seconds)[:, None]  # relative errors count alike
        powers = np.stack([np.ones_like(T), T, T * T], axis=1).astype(float)
        fit = np.linalg.lstsq(powers * weights, np.ones(len(T)), rcond=None)[0]
        error = np.abs(powers @ fit / seconds - 1).max()
        fits[side] = {
            "milliseconds": [float(f"{c * 1e3:.3g}") for c in fit],
            "largest error": round(float(error), 3),
        }
    return {"seconds": figures, "fits of 1, T, T²": fits}


def measure_memory(folder, count):
    """Workload -> side -> the highest resident memory, in MB."""
    figures = {}
    for workload in IN_MEMORY:
        figures[workload] = {}
        for side in WITH_MEMORY:
            command = [
                sys.executable,
                __file__,
                "--memory",
                workload,
                "--worker",
                side,
                "--folder",
                folder,
            ]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            figures[workload][side] = int(printed.stdout)
        print(workload, figures[workload], flush=True)
    return figures


def print_memory(side, folder, workload):
    """In a worker: run once; print the highest memory meanwhile, in MB."""
    run, batch = SIDES[side](folder), make_batch(workload)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    run(batch)
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) * 1024 // 10**6)


def measure_start(folder, count):
    """Seconds of whole processes, in turns: from nothing to a saved picture."""
    return whole_processes(
        {
            "bert_np": [HERE / "quick_start.py", "bert_np"],
            "transformers and matplotlib": [HERE / "quick_start.py", "transformers"],
            "drawing alone": [HERE / "quick_start.py", "drawing"],
        },
        folder,
        count,
    )


def measure_import(folder, count):
    """Seconds that `import bert_np` takes where numpy is there already."""
    code = (
        "import time, numpy; begin = time.perf_counter(); import bert_np; "
        "print(time.perf_counter() - begin)"
    )
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE
            ).stdout
        )
        for _ in range(max(9, count))
    ]
    figures = {"bert_np after numpy": round(statistics.median(seconds), 4)}
    print(figures, flush=True)
    return figures


def whole_processes(commands, folder, count):
    """Name -> the median seconds of a process, run in turns."""
    seconds = {name: [] for name in commands}
    for _ in range(count + 1):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, *command],
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            seconds[name].append(time.perf_counter() - begin)
    figures = {
        name: round(statistics.median(kept[1:]), 4)  # the first fills caches
        for name, kept in seconds.items()
    }
    print(figures, flush=True)
    return figures


def measure_limits(folder, count):
    """What the machine's products and memory allow for each workload."""
    a, b = np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)
    out, big = np.empty_like(a), np.ones((8192, 8192), np.float32)
    product = min(repeat(lambda: np.matmul(a, b, out), number=1, repeat=count))
    moved = min(repeat(lambda: big @ big[0], number=1, repeat=count))  # reads it once
    speed, bandwidth = 2 * 2048**3 / product, big.nbytes / moved
    bounds = {}
    for workload in WORKLOADS:
        lengths = make_batch(workload)["mask"].sum(axis=1).astype(float)
        dense = 2 * 12 * 12 * 768 * 768 * lengths.sum()  # 12 H² weights a layer
        attention = 2 * 2 * 12 * 768 * np.square(lengths).sum()
        read = 4 * 12 * 12 * 768 * 768 / bandwidth
        bounds[workload] = round(max((dense + attention) / speed, read), 5)
    figures = {
        "products, GFLOP/s": round(speed / 1e9),
        "memory, GB/s": round(bandwidth / 1e9, 1),
        "seconds": bounds,
    }
    print(figures, flush=True)
    return figures


def measure_shares(folder, count):
    """Workload -> step -> its share of the plain path's time."""
    run, figures = SIDES["plain"](folder), {}
    for workload in WORKLOADS:
        batch = make_batch(workload)
        figures[workload] = shares(lambda: run(batch), max(3, count // 2))
        print(workload, figures[workload], flush=True)
    return figures


PARTS = {
    "times": measure_times,
    "memory": measure_memory,
    "curves": measure_curves,
    "start": measure_start,
    "import": measure_import,
    "limits": measure_limits,
    "shares": measure_shares,
}


def machine():
    """What the figures depend on."""
    from threadpoolctl import threadpool_info

    blas = [
        f"{p['internal_api']} {p['version']}, {p.get('architecture', '?')}"
        for p in threadpool_info()
        if p["user_api"] == "blas"
    ]
    return {
        "processors": os.cpu_count(),
        "BLAS of NumPy": blas,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def make_folder(folder):
    """A random BERT-Base checkpoint, the same for all sides."""
    import bert_np

    config = bert_np.BertConfig.base()
    params = bert_np.init_params(config, np.random.default_rng(0))
    bert_np.save_pretrained(folder, params, config)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--kernel")
    parser.add_argument("--out", type=Path, default=HERE / "speed.json")
    parser.add_argument("--folder")
    parser.add_argument("--worker", choices=SIDES)
    parser.add_argument("--memory")
    arguments = parser.parse_args()
    if arguments.memory:
        return print_memory(arguments.worker, arguments.folder, arguments.memory)
    if arguments.worker:
        return work(arguments.worker, arguments.folder)
    if arguments.kernel:
        os.environ["OPENBLAS_CORETYPE"] = arguments.kernel
        os.execv(sys.executable, [sys.executable, __file__, *without_kernel()])
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        for part in arguments.only:
            add_figures(arguments.out, part, PARTS[part](folder, arguments.rounds))


def without_kernel():
    """The arguments of this run without --kernel and its value."""
    place = sys.argv.index("--kernel")
    return sys.argv[1:place] + sys.argv[place + 2 :]


def add_figures(path, part, figures):
    """Put the figures of one part in the file, beside those of the others."""
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[part] = {"machine": machine(), "figures": figures}
    path.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
