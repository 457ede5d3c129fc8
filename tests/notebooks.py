"""Running notebooks, and comparing what two runs of one print."""

import copy
import os
import re
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
CELL_TIMEOUT = 300  # seconds: on a busy machine, too
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# What `working` prints: it depends on whether an exercise is solved.
WHOSE = re.compile(
    r"^\d\d\.\w+: (?:yours|the course's function) runs here.*\n", re.MULTILINE
)
CLEAN_METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


def read(path):
    """Return the notebook of this file."""
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    """Return the code cells of a notebook, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def execute(notebook, offline=False, my_bert=""):
    """Run a notebook from top to bottom in a fresh kernel and return the result.

    Its kernel imports the library of this checkout, and keeps passed answers
    in the file my_bert, if one is given. Versions, widget
    state and times, which differ from run to run, are left out. An error
    in a cell is raised at once; a kernel that hangs or dies, as happens
    now and then, is given one more try.
    """
    paths = [str(ROOT), *([str(ROOT / "tests" / "offline")] if offline else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment["BERT_NP_MY_BERT"] = str(my_bert)
    if offline:
        environment["HF_HUB_OFFLINE"] = "1"
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    for attempt in (1, 2):
        done = copy.deepcopy(notebook)
        client = NotebookClient(
            done,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources=resources,
        )
        try:
            client.execute(env=environment)
        except (CellTimeoutError, DeadKernelError):
            if attempt == 2:
                raise
        else:
            done.metadata = CLEAN_METADATA
            return done


def printed(cell):
    """Return what a code cell shows as text: its streams and text results."""
    texts = [
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    ]
    text = "\n".join(text for text in texts if not text.startswith("<Figure"))
    return WHOSE.sub("", text)


def warnings(notebook):
    """Return what the code cells wrote to stderr."""
    return "".join(
        output.text
        for cell in code_cells(notebook)
        for output in cell.outputs
        if output.get("name") == "stderr"
    )


def same_output(old, new):
    """Whether two runs of a cell print the same words and the same numbers.

    In a cell with the tag "timings" numbers are not compared, nor is the
    description of its figure, since no two runs take the same time.
    """
    if "timings" not in new.metadata.get("tags", ()):
        return same_text(printed(old), printed(new))
    return _draws(new) or _words(printed(old)) == _words(printed(new))


def same_text(old, new):
    """Whether two texts hold the same words, and the same numbers within 0.1 %."""
    return _words(old) == _words(new) and np.allclose(
        _numbers(new), _numbers(old), rtol=1e-3, atol=1e-4
    )


def _draws(cell):
    return any("image/png" in output.get("data", {}) for output in cell.outputs)


def _words(text):
    return NUMBER.sub("#", text).split()


def _numbers(text):
    return [float(n.replace(",", "").rstrip(".") or 0) for n in NUMBER.findall(text)]
