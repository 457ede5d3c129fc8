"""BERT-Base side by side: this library and what one would otherwise install.

    python tests/tools/benchmarks/speed.py [--rounds 15] [--kernel Haswell]
        [--keep-memory] [--only times memory start]

Needs torch, transformers, onnx and onnxruntime beside requirements.txt. All
sides load one random checkpoint and get the same batches; each is a process
of its own, and they take turns. Each part prints its table and writes it to
README.md in this folder:

times    the ratio of each side's time to transformers with eager attention:
         medians over the rounds in which nobody waited for a processor, or
         over all rounds if these are too few
memory   the highest memory of a process during its first batch (Linux)
start    a new process until the picture of a sentence's attention is saved

--kernel names another kernel of NumPy's BLAS for this run (OpenBLAS only), as an
older processor would run. --keep-memory lets no side give freed memory back to the
system (glibc only). Tables of either have places of their own in README.md.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np
from sides import SIDES
from turns import calm_rounds, rounds_of, start, stop, take_turns

HERE = Path(__file__).resolve().parent
PEER = "transformers, eager"
TIMED = (PEER, "transformers, sdpa", "ONNX Runtime", "plain", "fast", "products")
IN_MEMORY = (PEER, "transformers, sdpa", "ONNX Runtime", "plain", "fast")
WORKLOADS = ("1x16", "2x32", "8x128", "1x512", "32x128 padded")
MEMORY_WORKLOADS = ("2x32", "1x512", "32x128")
FEWEST = 5  # calm rounds that a median is taken of; with fewer, of all rounds
SECONDS_PER_TURN = 0.3  # short batches run several times in a turn
KEEP_MEMORY = {  # settings of glibc: freed memory stays with the process
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
}
PACKAGES = ("numpy", "torch", "transformers", "onnxruntime")


def make_batch(workload):
    """Return ids, segments and mask of a workload such as "8x128"."""
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


# ------------------------------------------------------------------- times
def measure_times(folder, count):
    """Return the table of workloads and sides."""
    workers = [start([__file__, "--worker", n, "--folder", folder]) for n in TIMED]
    lines = [f"| (B, T) | {' | '.join(TIMED)} | calm rounds |", "|---" * 8 + "|"]
    for workload in WORKLOADS:
        first = rounds_of(workers, 2, f"1 {workload}")[1]
        times = max(1, round(SECONDS_PER_TURN / max(seconds for seconds, _ in first)))
        rounds = rounds_of(workers, count, f"{times} {workload}")
        calm = calm_rounds(rounds)
        cells = ratios(calm if len(calm) >= FEWEST else rounds, times)
        lines.append(f"| {workload} | {' | '.join(cells)} | {len(calm)} of {count} |")
        print(lines[-1], flush=True)
    for worker in workers:
        stop(worker)
    return lines


def ratios(rounds, times):
    """Return a cell per side: its median ratio to the peer, and quartiles."""
    cells = []
    for i, name in enumerate(TIMED):
        low, middle, high = np.percentile(
            [row[i][0] / row[0][0] for row in rounds], [25, 50, 75]
        )
        cells.append(f"{middle:.2f} ({low:.2f}–{high:.2f})")
        if name == PEER:
            seconds = statistics.median(row[i][0] for row in rounds) / times
            cells[-1] = f"1 ({seconds * 1e3:.0f} ms)"
    return cells


# ------------------------------------------------------------------ memory
def measure_memory(folder, count):
    """Return the table of the highest resident memory, in MB."""
    lines = [f"| (B, T) | {' | '.join(IN_MEMORY)} |", "|---" * 6 + "|"]
    for workload in MEMORY_WORKLOADS:
        command = [sys.executable, __file__, "--folder", folder, "--memory", workload]
        cells = [
            subprocess.run(
                [*command, "--worker", side], check=True, stdout=subprocess.PIPE
            ).stdout.decode()
            for side in IN_MEMORY
        ]
        lines.append(f"| {workload} | {' | '.join(cell.strip() for cell in cells)} |")
        print(lines[-1], flush=True)
    return lines


def print_memory(side, folder, workload):
    """In a worker: run once; print the highest memory meanwhile, in MB."""
    run, batch = SIDES[side](folder), make_batch(workload)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    run(batch)
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) * 1024 // 10**6)


# ------------------------------------------------------------------- start
STARTS = {
    "bert_np": [str(HERE / "quick_start.py"), "bert_np"],
    "transformers and matplotlib": [str(HERE / "quick_start.py"), "transformers"],
    "matplotlib alone, the same picture": [str(HERE / "quick_start.py"), "drawing"],
    "`import numpy`": ["-c", "import numpy"],
    "`import numpy, bert_np`": ["-c", "import numpy, bert_np"],
}


def measure_start(folder, count):
    """Return the table of whole processes, run in turns."""
    seconds = {name: [] for name in STARTS}
    for _ in range(count + 1):
        for name, command in STARTS.items():
            begin = time.perf_counter()
            run = [sys.executable, *command]
            subprocess.run(run, check=True, cwd=folder, capture_output=True)
            seconds[name].append(time.perf_counter() - begin)
    lines = ["| a new process | seconds |", "|---|---|"]
    for name, taken in seconds.items():  # the first round fills caches
        lines.append(f"| {name} | {statistics.median(taken[1:]):.2f} |")
    print(*lines, sep="\n", flush=True)
    return lines


PARTS = {"times": measure_times, "memory": measure_memory, "start": measure_start}


def machine():
    """Return a line that says what the figures depend on."""
    from threadpoolctl import threadpool_info

    blas = [p for p in threadpool_info() if p["user_api"] == "blas"]
    kernels = ", ".join(
        f"{p['internal_api']} {p['version']} {p.get('architecture', '')}" for p in blas
    )
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return f"{os.cpu_count()} processors; {kernels}; {versions}."


def write_table(part, lines):
    """Replace the part's table in this folder's README.md."""
    readme = HERE / "README.md"
    pattern = rf"(<!-- {part} -->\n).*?(<!-- end -->)"
    table = "\n".join([machine(), "", *lines, ""])
    text = re.sub(
        pattern, lambda m: m[1] + table + m[2], readme.read_text("utf-8"), flags=re.S
    )
    readme.write_text(text, "utf-8")


def make_folder(folder):
    """Write a random BERT-Base checkpoint, the same for all sides."""
    import bert_np

    config = bert_np.BertConfig.base()
    params = bert_np.init_params(config, np.random.default_rng(0))
    bert_np.save_pretrained(folder, params, config)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--kernel")
    parser.add_argument("--keep-memory", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--worker", choices=SIDES)
    parser.add_argument("--memory")
    arguments = parser.parse_args()
    if arguments.memory:
        return print_memory(arguments.worker, arguments.folder, arguments.memory)
    if arguments.worker:
        return work(arguments.worker, arguments.folder)
    kernel = arguments.kernel
    wanted = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
    wanted |= KEEP_MEMORY if arguments.keep_memory else {}
    if wanted.items() - os.environ.items():  # they are read when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)
    kinds = [kernel] * bool(kernel) + ["memory kept"] * arguments.keep_memory
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        for part in arguments.only:
            lines = PARTS[part](folder, arguments.rounds)
            write_table(", ".join([part, *kinds]), lines)


if __name__ == "__main__":
    main()
