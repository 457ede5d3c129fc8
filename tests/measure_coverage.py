"""Measure the branch coverage of what reads files, names and text.

    python tests/measure_coverage.py

Needs coverage (pip install coverage) and hypothesis. Runs the tests of
these modules and writes tests/robustness/coverage.json.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from make_robustness import write_figures

ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    "errors",
    "config",
    "weight_files",
    "checkpoint",
    "hub",
    "pretrained",
    "tokenizer",
    "parameters",
    "model",
    "heads",
)
TESTS = (
    "config",
    "checkpoint",
    "pretrained",
    "tokenizer",
    "hostile",
    "parameters",
    "model",
    "heads",
)


def run(folder):
    """Run the tests under coverage; its report as a dict."""
    data = f"--data-file={folder / 'data'}"
    sources = ",".join(f"bert_np/{name}.py" for name in MODULES)
    command = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        "--branch",
        data,
        f"--include={sources}",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += [f"tests/test_{name}.py" for name in TESTS]
    subprocess.run(command, cwd=ROOT, check=True)
    report = folder / "report.json"
    subprocess.run(
        [sys.executable, "-m", "coverage", "json", data, "-q", "-o", str(report)],
        cwd=ROOT,
        check=True,
    )
    return json.loads(report.read_text("utf-8"))


def rows_of(report):
    """(module, statements, branches, missed, percent) of each module."""
    for name in MODULES:
        summary = report["files"][f"bert_np/{name}.py"]["summary"]
        missed = summary["missing_lines"] + summary["missing_branches"]
        yield [
            f"{name}.py",
            summary["num_statements"],
            summary["num_branches"],
            missed,
            f"{summary['percent_covered']:.1f} %",
        ]


def main():
    with tempfile.TemporaryDirectory() as folder:
        report = run(Path(folder))
    for name in MODULES:
        entry = report["files"][f"bert_np/{name}.py"]
        if entry["missing_lines"] or entry["missing_branches"]:
            print(name, entry["missing_lines"], entry["missing_branches"])
    write_figures(
        "coverage.json",
        {
            "order": 60,
            "section": "Branch coverage",
            "command": "python tests/measure_coverage.py",
            "versions": {
                "coverage": version("coverage"),
                "python": sys.version.split()[0],
            },
            "text": [
                "Statements and branches of the modules that read files, names, text "
                "and arguments, failing paths included, reached by their tests. What "
                "runs in subprocesses does not count."
            ],
            "tables": [
                {
                    "columns": [
                        "module",
                        "statements",
                        "branches",
                        "missed",
                        "covered",
                    ],
                    "rows": list(rows_of(report)),
                }
            ],
        },
    )


if __name__ == "__main__":
    main()
