"""Every notebook runs offline, ends as committed, and holds no leftovers."""

import re

import nbformat
import pytest
from run_notebooks import (
    NOTEBOOKS,
    ROOT,
    code_cells,
    execute,
    printed,
    same_output,
    warnings,
)

from bert_np.course.exercise import all_exercises, solved, stub

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
EXERCISES = all_exercises()
CHECK = re.compile(r'^check\("([^"]+)"', re.MULTILINE)
OFFLINE = {"PYTHONPATH": str(ROOT / "tests" / "offline"), "HF_HUB_OFFLINE": "1"}


def test_there_are_notebooks():
    assert "quick_tour" in [path.stem for path in PATHS]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_committed_notebook_is_one_clean_run(path):
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert "error" not in kinds and warnings(notebook) == ""
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_committed_notebook_stands_alone(path):
    text = path.read_text(encoding="utf-8")
    assert "widget-state" not in text
    assert "%pip" not in text and "!pip" not in text
    assert 'src=\\"http' not in text
    assert "](http" not in text.replace("](https://arxiv.org/", "")


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_notebook_runs_offline_and_prints_the_committed_numbers(path, minilm):
    committed = code_cells(nbformat.read(path, as_version=4))
    notebook = execute(path, env=OFFLINE)
    assert warnings(notebook) == ""
    for before, now in zip(committed, code_cells(notebook), strict=True):
        assert same_output(before, now), (now.source, printed(before), printed(now))


@pytest.mark.parametrize(
    "tags, text, same",
    [
        ([], "1.0 ms", True),
        ([], "1.0005 ms", True),
        ([], "1.1 ms", False),
        (["timings"], "1.1 ms", True),
        (["timings"], "1.1 s", False),
        (["timings"], "nan ms", False),
    ],
)
def test_other_numbers_pass_where_times_are_shown_and_nowhere_else(tags, text, same):
    old, new = (
        nbformat.v4.new_code_cell(
            "",
            outputs=[nbformat.v4.new_output("stream", text=shown)],
            metadata={"tags": tags},
        )
        for shown in ("1.0 ms", text)
    )
    assert same_output(old, new) == same


# ------------------------------------------------------------- exercises


def exercise_cells(notebook):
    """(id, cell) of every cell that checks an answer."""
    for cell in code_cells(notebook):
        for exercise_id in CHECK.findall(cell.source):
            yield exercise_id, cell


def test_notebooks_and_register_hold_the_same_exercises():
    found = [
        (exercise_id, path.stem[:2])
        for path in PATHS
        for exercise_id, _ in exercise_cells(nbformat.read(path, as_version=4))
    ]
    assert found == [(exercise_id, exercise_id[:2]) for exercise_id in EXERCISES]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_exercises_are_handed_out_untouched(path):
    for exercise_id, cell in exercise_cells(nbformat.read(path, as_version=4)):
        assert cell.source == stub(EXERCISES[exercise_id])
        assert printed(cell).strip() == f"{exercise_id}: not attempted yet"


WITH_EXERCISES = [
    path for path in PATHS if any(exercise_cells(nbformat.read(path, as_version=4)))
]


@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda p: p.stem)
def test_the_notebook_runs_with_all_solutions(path, minilm):
    notebook = nbformat.read(path, as_version=4)
    cells = list(exercise_cells(notebook))
    for exercise_id, cell in cells:
        cell.source = solved(EXERCISES[exercise_id])
    done = execute(path, env=OFFLINE, notebook=notebook)
    for exercise_id, cell in exercise_cells(done):
        assert f"{exercise_id}: passed" in printed(cell)
    assert len(list(exercise_cells(done))) == len(cells) > 0
