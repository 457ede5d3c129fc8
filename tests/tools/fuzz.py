"""Run the properties of test_fuzzing.py for long, led by coverage.

    python tests/fuzz.py --minutes 10

needs the package `atheris` (libFuzzer for Python). It watches which
branches of bert_np an input reaches, and changes those inputs further that
reached a new one; hypothesis makes the values of a property out of its
bytes. Each property runs in a process of its own. Figures go to
tests/robustness/fuzzing.json; the command fails where anything was found.
"""

import argparse
import platform
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path

from make_robustness import write_figures

ROOT = Path(__file__).parents[1]
TARGETS = (
    "test_any_text",
    "test_any_ids_to_decode",
    "test_any_vocabulary",
    "test_any_config",
    "test_any_checkpoint",
    "test_any_arguments",
    "test_any_parameters",
)


# ------------------------------------------------- in a process of its own
def fuzz(target, seconds, folder):
    """Run one property until the time is over; note what fails."""
    import atheris

    with atheris.instrument_imports(include=["bert_np"]):
        import test_fuzzing
    warnings.simplefilter("error")
    one_input = getattr(test_fuzzing, target).hypothesis.fuzz_one_input
    counts, seen = {"tried": 0}, set()

    def run(data):
        try:
            counts["tried"] += one_input(data) is not None
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            key = (type(error).__name__, where.filename, where.lineno)
            if key not in seen:
                seen.add(key)
                print(f"FOUND {key}: {error!s:.200}", flush=True)
        if counts["tried"] % 100 == 0:
            (folder / "tried").write_text(str(counts["tried"]))

    corpus = folder / "corpus"
    corpus.mkdir()
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-max_total_time={seconds}",
            "-max_len=2048",
            "-print_final_stats=1",
            "-len_control=0",
        ],
        run,
    )
    atheris.Fuzz()


# ------------------------------------------------------------ all of them
def start(target, seconds):
    """The figures of one property: (row of the table, what was found)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            __file__,
            "--target",
            target,
            "--seconds",
            str(seconds),
            "--folder",
            folder,
        ]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        kept = len(list(Path(folder, "corpus").iterdir()))
        tried = int(Path(folder, "tried").read_text())
    log = run.stdout + run.stderr
    executed = re.search(r"number_of_executed_units: (\d+)", log)
    if run.returncode or not executed:
        raise RuntimeError(log[-2000:])
    reached = [int(n) for n in re.findall(r" cov: (\d+)", log)]
    found = re.findall(r"^FOUND .*", log, re.M)
    row = [
        target.removeprefix("test_any_"),
        seconds,
        int(executed[1]),
        tried,
        reached[0],
        reached[-1],
        kept,
        len(found),
    ]
    return row, found


def main(minutes):
    rows, findings = [], []
    for target in TARGETS:
        row, found = start(target, round(60 * minutes / len(TARGETS)))
        print(*row, *found, sep="\n    ", flush=True)
        rows.append(row)
        findings += found
    totals = [sum(column) for column in list(zip(*rows))[1:]]
    write_figures(
        "fuzzing.json",
        {
            "order": 40,
            "section": "Fuzzing led by coverage",
            "command": f"python tests/fuzz.py --minutes {minutes:g}",
            "versions": {
                "atheris": version("atheris"),
                "hypothesis": version("hypothesis"),
                "python": platform.python_version(),
            },
            "text": [
                "Any text, ids, vocabulary, config, checkpoint (bytes and entries of the "
                "header changed), arguments and parameters: the outcome must be a right "
                "answer, checked by another way to it, or one `BertError` of at most 300 "
                "characters; any other exception, and any warning, is a finding. The same "
                "properties run in the test run, with 150 examples each.",
            ],
            "tables": [
                {
                    "columns": [
                        "property",
                        "seconds",
                        "executions",
                        "of these whole inputs",
                        "branches reached at first",
                        "at the end",
                        "inputs kept",
                        "findings",
                    ],
                    "rows": [*rows, ["all", *totals]],
                }
            ],
        },
    )
    return int(bool(findings))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--target", choices=TARGETS, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.target:
        sys.path.insert(0, str(ROOT))
        fuzz(given.target, given.seconds, given.folder)
    sys.exit(main(given.minutes))
