"""Plant one-line faults in the package and see which test catches each.

    python tests/negative_controls.py [MODULE ...]

MODULE is a name such as attention or training/adam. Each fault is planted
in a copy of the repository, and the module's tests run there. Prints a
table; exits with 1 where a fault survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted_faults import EDITS, TESTS

ROOT = Path(__file__).parents[1]


def edited(module, old, new, root=ROOT):
    """The module's source with one text replaced."""
    source = (root / "bert_np" / f"{module}.py").read_text("utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{module}.py has {source.count(old)} times: {old}")
    return source.replace(old, new)


def copy_repository(root, folder):
    for name in ("bert_np", "tests"):
        shutil.copytree(root / name, folder / name)
    shutil.copy(root / "pyproject.toml", folder)


def run_tests(folder, names):
    """pytest in a copy: its exit code and the first test that failed."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-k", "not live"]  # without those that need torch
    run = subprocess.run(
        [*command, *(f"tests/test_{name}.py" for name in names)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    if run.returncode not in (0, 1, 2):  # 2: a test file failed as it was read
        raise RuntimeError(run.stdout + run.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)( - |$)", run.stdout, re.M)
    return run.returncode, failed[1] if failed else ""


def try_edit(root, module, fault, old, new):
    """Plant a fault; return (module, fault, the test that caught it or "")."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        copy_repository(root, folder)
        source = edited(module, old, new, root)
        (folder / "bert_np" / f"{module}.py").write_text(source, "utf-8")
        code, test = run_tests(folder, own_tests(module))
        return module, fault, test if code else ""


def own_tests(module):
    return TESTS.get(module, [module, "model"])


def main(modules):
    modules = modules or list(EDITS)
    jobs = [(module, *edit) for module in modules for edit in EDITS[module]]
    survived = 0
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(2) as pool:
        root = Path(root)
        copy_repository(ROOT, root)
        code, test = run_tests(root, sorted({t for m in modules for t in own_tests(m)}))
        if code:
            raise RuntimeError(f"fails without a fault: {test}")
        print("| module | fault | caught by |\n|---|---|---|", flush=True)
        for module, fault, test in pool.map(lambda job: try_edit(root, *job), jobs):
            survived += not test
            print(f"| {module} | {fault} | {test or '**nothing**'} |", flush=True)
    print(f"\n{len(jobs)} faults, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
