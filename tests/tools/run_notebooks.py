"""Run the notebooks from top to bottom and rewrite their outputs.

    python tests/tools/run_notebooks.py                 all of them
    python tests/tools/run_notebooks.py quick_tour      those named

The exercises stay untouched, so this also shows that a student who has
answered nothing gets to the end. A notebook that fails, or that prints a
warning, is left as it was.
"""

import sys
import time
from pathlib import Path

import nbformat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bert_np.files.pretrained import fetch
from notebooks import NOTEBOOKS, execute, read, warnings


def main(names):
    fetch("all-MiniLM-L6-v2")  # its progress line does not belong in a notebook
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        start = time.perf_counter()
        notebook = execute(read(path))
        if warnings(notebook):
            sys.exit(f"{path.name} is not written, it warns: {warnings(notebook)}")
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        seconds, size = time.perf_counter() - start, path.stat().st_size / 1000
        print(f"{path.name}: {seconds:.1f} s, {size:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
