"""Run the notebooks from top to bottom and rewrite their outputs.

    python tests/run_notebooks.py                 all of them
    python tests/run_notebooks.py quick_tour      those named
    python tests/run_notebooks.py --times         chapters, timed; nothing is written

A notebook that fails, or prints a warning, is left as it was.
"""

import copy
import os
import re
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from bert_np.files.pretrained import fetch

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
STATED = re.compile(r"All cells together run in (\d+) seconds")
MOST_SECONDS = 300 + 40  # chapters 00 to 12 together, and 13
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def execute(path, cell_timeout=120, env=None, notebook=None):
    """Run a notebook in a fresh kernel; return it with clean outputs.

    With `notebook`, its cells run in the place of those of the file.

    A kernel that hangs or dies is given one more try; an error in a cell
    is raised at once.
    """
    source = nbformat.read(path, as_version=4) if notebook is None else notebook
    for attempt in (1, 2):
        notebook = copy.deepcopy(source)
        client = NotebookClient(
            notebook,
            timeout=cell_timeout,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(path.parent)}},
        )
        try:
            client.execute(env={**os.environ, **(env or {})})
            return clean(notebook)
        except (CellTimeoutError, DeadKernelError):
            if attempt == 2:
                raise


def clean(notebook):
    """Drop what differs from run to run: versions, widget state, timings."""
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def write(notebook, path):
    """Write a notebook beside its place, then move it there."""
    text = nbformat.writes(notebook) + "\n"
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell):
    """What a code cell shows as text: its streams and text results."""
    texts = [
        o.get("text", "") or o.get("data", {}).get("text/plain", "")
        for o in cell.outputs
    ]
    return "\n".join(text for text in texts if not text.startswith("<Figure"))


def warnings(notebook):
    """What the code cells wrote to stderr."""
    return "".join(
        output.text
        for cell in code_cells(notebook)
        for output in cell.outputs
        if output.get("name") == "stderr"
    )


def split_numbers(text):
    """(the text with # for each number, the numbers)."""
    numbers = [float(n.replace(",", "").rstrip(".") or 0) for n in NUMBER.findall(text)]
    return NUMBER.sub("#", text), numbers


def same_output(old, new):
    """Whether two runs of a cell print the same text and the same numbers.

    Numbers may differ by 0.1 %. Those of a cell with the tag "timings" are
    not compared, nor what is said of its figure, since no two runs take the
    same time.
    """
    timed = "timings" in new.metadata.get("tags", ())
    if timed:
        old, new = map(without_figures, (old, new))
    (old_text, olds), (new_text, news) = map(split_numbers, map(printed, (old, new)))
    if old_text.split() != new_text.split():
        return False
    if timed:
        return bool(np.isfinite(news).all())
    return np.allclose(news, olds, rtol=1e-3, atol=1e-4)


def without_figures(cell):
    """A copy of a cell without its pictures; their number stays."""
    cell = copy.deepcopy(cell)
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            output.data = {"text/plain": "a figure"}
    return cell


def stated_seconds(notebook):
    """How long a chapter says that it runs; None where it does not say."""
    found = STATED.search(notebook.cells[0].source)
    return int(found[1]) if found else None


def time_chapters(paths):
    """Print the seconds of each chapter; exit where one, or all, take too long."""
    print("| chapter | seconds | stated |\n|---|---:|---:|")
    total, late = 0, []
    for path in paths:
        start = time.perf_counter()
        execute(path)
        seconds = time.perf_counter() - start
        stated = stated_seconds(nbformat.read(path, as_version=4))
        print(f"| {path.stem} | {seconds:.1f} | {stated or ''} |", flush=True)
        total += seconds
        late += [path.stem] * (stated is None or seconds > stated)
    print(f"| all | {total:.1f} | {MOST_SECONDS} |")
    if late or total > MOST_SECONDS:
        sys.exit(f"too long: {', '.join(late) or 'all together'}")


def main(arguments):
    names = [name for name in arguments if name != "--times"]
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    if names:
        paths = [p for p in paths if p.stem in names]
    fetch("all-MiniLM-L6-v2")  # its progress line does not belong in a notebook
    if "--times" in arguments:
        return time_chapters([p for p in paths if p.stem[:2].isdigit()])
    for path in paths:
        print(f"{path.name} ...", end=" ", flush=True)
        start = time.perf_counter()
        notebook = execute(path)
        if warnings(notebook):
            sys.exit(f"not written, it warns: {warnings(notebook)}")
        write(notebook, path)
        size = path.stat().st_size / 1000
        print(f"{time.perf_counter() - start:.1f} s, {size:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
