"""Run the tests with the oldest and the newest versions of everything.

    python tests/versions.py                          all environments
    python tests/versions.py oldest -- -k tokenizer   one; pytest's options
    python tests/versions.py --keep FOLDER            environments stay there

makes a virtual environment for each, installs what requirements.txt names
(for "oldest" exactly the lower bounds of pyproject.toml), runs the tests
there in a copy of the repository, and writes what came out to
tests/robustness/versions.json. A Python that is not on this machine is
said to be missing, and the command fails.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_robustness import read_figures, write_figures

ROOT = Path(__file__).parents[1]
# name: (Python, whether everything is as old as pyproject.toml allows)
ENVIRONMENTS = {
    "oldest": ("3.10", True),
    "middle": ("3.12", False),
    "newest": ("3.13", False),
}
# The oldest matplotlib calls names of pyparsing that its newest warns of, and a
# warning fails a test.
COMPANIONS = ["pyparsing<3.3"]
SHOWN = ("numpy", "matplotlib", "pillow", "safetensors", "huggingface-hub",
         "threadpoolctl", "tqdm", "pytest", "hypothesis")
OUTCOMES = ("passed", "failed", "error", "skipped")


def find_python(wanted):
    """The path of a Python of this version, on the PATH or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = [sys.executable, shutil.which(f"python{wanted}"),
             *sorted(pyenv.glob(f"versions/{wanted}.*/bin/python"))]
    for name in filter(None, names):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        run = subprocess.run([name, "-c", code], capture_output=True, text=True)
        if run.stdout.strip() == wanted:
            return str(name)
    raise SystemExit(f"no Python {wanted} on this machine")


def lower_bounds():
    """The oldest version of each package that pyproject.toml allows."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)[1]
    return [f"{name}=={bound}" for name, bound in re.findall('"(.+?)>=(.+?)"', block)]


def make_environment(folder, python, oldest):
    """A virtual environment with a copy of the repository installed."""
    skip = shutil.ignore_patterns(".[!c]*", "*.egg-info", "__pycache__")
    repository = folder / "repository"
    shutil.rmtree(repository, ignore_errors=True)
    shutil.copytree(ROOT, repository, ignore=skip)
    scripts = "Scripts" if os.name == "nt" else "bin"
    own = folder / "venv" / scripts / "python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    bounds = folder / "bounds.txt"
    wanted = lower_bounds() + COMPANIONS if oldest else []
    bounds.write_text("\n".join(wanted) + "\n", "utf-8")
    subprocess.run(
        [own, "-m", "pip", "install", "-q", "-r", "requirements.txt", "-c", bounds],
        cwd=repository, check=True)
    return own, repository


def installed(python):
    """The versions of the packages that matter, as pip lists them."""
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"],
                            capture_output=True, text=True, check=True)
    found = {p["name"].lower().replace("_", "-"): p["version"]
             for p in json.loads(listed.stdout)}
    return {name: found[name] for name in SHOWN}


def run_tests(python, repository, options):
    """What pytest says: how many passed, failed, ..., and which failed."""
    start = time.perf_counter()
    run = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=repository, capture_output=True, text=True)
    found = re.findall(rf"(\d+) ({'|'.join(OUTCOMES)})", run.stdout[-400:])
    failed = re.findall(r"^(?:FAILED|ERROR) ((?:tests|bert_np).+?)(?: - |$)",
                        run.stdout, re.M)
    if run.returncode not in (0, 1) or failed:
        print(run.stdout[-20_000:], run.stderr[-2_000:])
    return {**{outcome: int(n) for n, outcome in found}, "exit code": run.returncode,
            "seconds": round(time.perf_counter() - start), "failures": failed}


def place(name, keep):
    """A temporary folder, or one that stays."""
    if keep is None:
        return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    (keep / name).mkdir(parents=True, exist_ok=True)
    return contextlib.nullcontext((keep / name).absolute())


def try_versions(name, options, keep):
    """Make one environment, run the tests in it, and say what came out."""
    wanted, oldest = ENVIRONMENTS[name]
    python = find_python(wanted)
    version = subprocess.run([python, "-V"], capture_output=True, text=True).stdout
    with place(name, keep) as folder:
        own, repository = make_environment(Path(folder), python, oldest)
        versions = {"python": version.split()[1], **installed(own)}
        return versions | run_tests(own, repository, options)


def main(arguments):
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--keep", type=Path, help="a folder for the environments")
    given, options = parser.parse_args(arguments[:cut]), arguments[cut + 1:]
    codes = []
    for name in given.names or ENVIRONMENTS:
        found = try_versions(name, options, given.keep)
        print(name, json.dumps(found), flush=True)
        codes.append(found["exit code"])
        write_section(name, found, options)
    return max(codes)


def write_section(name, found, options):
    """Put one environment's line into the table of tests/robustness/versions.json."""
    columns = ["environment", "python", *SHOWN, *OUTCOMES, "seconds", "left out"]
    row = [name, *(found.get(column, 0) for column in columns[1:-1]), " ".join(options)]
    old = read_figures().get("versions.json", {"tables": [{"rows": []}]})
    rows = {line[0]: line for line in old["tables"][0]["rows"]} | {name: row}
    failed = f"{name} failed: {', '.join(found['failures'])}."
    kept = [line for line in old.get("text", [])[1:] if not line.startswith(name)]
    write_figures("versions.json", {
        "order": 60, "section": "Oldest and newest versions",
        "command": "python tests/versions.py",
        "text": ["*Oldest* is exactly the lower bounds of pyproject.toml; the others "
                 "are the newest that pip finds. Each runs all tests of the "
                 "repository, but for what the last column names.",
                 *kept, *([failed] if found["failures"] else [])],
        "tables": [{"columns": columns,
                    "rows": [rows[n] for n in ENVIRONMENTS if n in rows]}],
    })


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
