"""Plant mistakes in the package, one at a time, and see which test catches each.

    python tests/tools/negative_controls.py [MODULE ...]

MODULE is a name such as attention or training/adam; planted_faults.txt lists
the faults of each. Each is planted in a copy of the repository, in which the
tests of the module run. Prints a table; exits with 1 if a fault survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]


def read_faults(text):
    """Yield (module, test files, fault, old text, new text)."""
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("## "):
            module, tests = lines[0][3:].split(": ")
        elif len(lines) == 3 and lines[1].startswith("- "):
            yield module, tests.split(), lines[0], lines[1][2:], lines[2][2:]


def copy_repository(folder):
    for name in ("bert_np", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "notebooks" / "data", folder / "notebooks" / "data")
    shutil.copy(ROOT / "pyproject.toml", folder)


def plant(folder, module, old, new):
    path = folder / "bert_np" / f"{module}.py"
    source = path.read_text("utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{module}.py has {source.count(old)} times: {old}")
    path.write_text(source.replace(old, new), "utf-8")


def run_tests(folder, tests):
    """Run test files in a copy; return the first failure, or None."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        + [f"tests/{name}" for name in tests],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if run.returncode not in (0, 1, 2):  # 2: a test file failed as it was read
        raise RuntimeError(run.stdout + run.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)( - |$)", run.stdout, re.M)
    return failed[1] if failed else None


def try_fault(module, tests, fault, old, new):
    """Return (module, fault, the first test that failed, or None)."""
    with tempfile.TemporaryDirectory() as folder:
        copy_repository(Path(folder))
        plant(Path(folder), module, old, new)
        return module, fault, run_tests(folder, tests)


def main(modules):
    text = Path(__file__).with_name("planted_faults.txt").read_text("utf-8")
    faults = [f for f in read_faults(text) if f[0] in modules or not modules]
    survived = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        copy_repository(Path(folder))
        failed = run_tests(folder, sorted({name for f in faults for name in f[1]}))
        if failed:
            raise RuntimeError(f"fails without a fault: {failed}")
        print("| module | fault | caught by |\n|---|---|---|", flush=True)
        for module, fault, test in pool.map(lambda fault: try_fault(*fault), faults):
            survived += test is None
            print(f"| {module} | {fault} | {test or '**nothing**'} |", flush=True)
    print(f"\n{len(faults)} faults, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
