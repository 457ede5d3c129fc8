"""Every notebook runs offline, ends as committed, and holds no leftovers."""

import re

import pytest

from bert_np.course.exercise import all_exercises, solved, stub
from notebooks import (
    NOTEBOOKS,
    ROOT,
    code_cells,
    execute,
    printed,
    read,
    same_output,
    warnings,
)

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
EXERCISES = all_exercises()
CHECK = re.compile(r'^check\("([^"]+)"', re.MULTILINE)
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def exercise_of(cell):
    """The id of the exercise that a cell checks, or None."""
    found = CHECK.search(cell.source)
    return found and found[1]


@each_notebook
def test_a_committed_notebook_is_one_clean_run(path):
    notebook = read(path)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert "error" not in kinds and warnings(notebook) == ""
    assert path.stat().st_size < 1_000_000


@each_notebook
def test_a_committed_notebook_stands_alone(path):
    text = path.read_text(encoding="utf-8")
    assert "widget-state" not in text
    assert "%pip" not in text and "!pip" not in text
    assert 'src=\\"http' not in text
    assert "](http" not in text.replace("](https://arxiv.org/", "")


@each_notebook
def test_exercises_are_handed_out_untouched(path):
    for cell in filter(exercise_of, code_cells(read(path))):
        exercise_id = exercise_of(cell)
        assert cell.source == stub(EXERCISES[exercise_id])
        assert printed(cell).strip() == f"{exercise_id}: not attempted yet"


def test_every_exercise_is_in_its_chapter_with_its_task():
    found = []
    for path in PATHS:
        notebook = read(path)
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        ids = list(filter(None, map(exercise_of, code_cells(notebook))))
        assert {i[:2] for i in ids} <= {path.stem[:2]}
        assert [i for i in ids if EXERCISES[i].task not in text] == []
        found += ids
    assert found == list(EXERCISES)


def rows_of(text):
    """Each table row of a Markdown text by its first cell; the first if several."""
    rows = re.findall(r"^\| *([^|]+?) *\|(.*)\|$", text, re.MULTILINE)
    return {name: cells.split("|") for name, cells in reversed(rows)}


def test_the_appendix_quotes_the_benchmarks():
    readme = ROOT / "tests" / "tools" / "benchmarks" / "README.md"
    measured = rows_of(readme.read_text(encoding="utf-8"))
    cells = read(NOTEBOOKS / "14_appendix_fast.ipynb").cells
    (text,) = (c.source for c in cells if "| ONNX Runtime |" in c.source)
    quoted = rows_of(text)
    header = [cell.strip() for cell in measured["(B, T)"]]
    places = [header.index(name) for name in ("ONNX Runtime", "fast", "products")]
    for name in ("1x16", "8x128", "1x512", "32x128 padded"):
        medians = [measured[name][place].split()[0] for place in places]
        assert [cell.strip() for cell in quoted[name]] == medians


@pytest.mark.slow
@each_notebook
def test_a_notebook_runs_offline_with_the_solutions_and_prints_the_same(path, minilm):
    notebook = read(path)
    for cell in filter(exercise_of, code_cells(notebook)):
        cell.source = solved(EXERCISES[exercise_of(cell)])
    done = execute(notebook, offline=True)
    assert warnings(done) == ""
    for before, now in zip(code_cells(read(path)), code_cells(done), strict=True):
        if exercise_of(now):
            assert f"{exercise_of(now)}: passed" in printed(now)
        else:
            assert same_output(before, now), (now.source, printed(before), printed(now))
