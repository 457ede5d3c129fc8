"""The page of scores is what the command writes, and every item can fail."""

import copy
import re

import nbformat
import pytest
import rubric
import run_notebooks
from rubric import CORES, ITEMS, PASS, TABLE, is_named, known, page, score, scores
from run_notebooks import MOST_SECONDS, NOTEBOOKS, code_cells, stated_seconds

from bert_np.course.environment import environment_rows

CHAPTERS, READING = known()
FOUND = {chapter.name: scores(chapter, READING) for chapter in CHAPTERS}
BY_NUMBER = {chapter.name[:2]: chapter for chapter in CHAPTERS}


def test_the_page_is_what_the_command_writes():
    assert TABLE.read_text(encoding="utf-8") == page(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_each_chapter_passes_without_a_zero(name):
    points = [points for points, _ in FOUND[name].values()]
    assert len(points) == 20
    assert sum(points) >= PASS and min(points) > 0


def test_no_point_of_the_reader_is_refused():
    refused = [(name, item, why) for name, items in FOUND.items()
               for item, (_, why) in items.items() if "points refused" in why]
    assert refused == []


def test_the_reader_has_scored_every_item_and_said_why():
    reasons = [why for items in READING.values() for _, why in items.values()]
    by_reading = {str(item) for item in CORES}
    assert all(set(items) == by_reading for items in READING.values())
    assert READING.keys() == BY_NUMBER.keys() >= {f"{n:02}" for n in range(13)}
    assert all(points in (0, 1, 2) for items in READING.values()
               for points, _ in items.values())
    assert min(map(len, reasons)) > 20


def test_the_stated_seconds_fit_into_the_limit():
    stated = [stated_seconds(chapter.notebook) for chapter in CHAPTERS]
    assert None not in stated and sum(stated) <= MOST_SECONDS


@pytest.mark.parametrize("seconds, late", [(60, False), (-1, True), (None, True)])
def test_a_chapter_that_takes_too_long_is_named(seconds, late, monkeypatch, capsys):
    monkeypatch.setattr(run_notebooks, "execute", lambda path: None)
    monkeypatch.setattr(run_notebooks, "stated_seconds", lambda notebook: seconds)
    path = NOTEBOOKS / f"{BY_NUMBER['03'].name}.ipynb"
    if late:
        with pytest.raises(SystemExit, match="too long: 03_one_head"):
            run_notebooks.time_chapters([path])
    else:
        run_notebooks.time_chapters([path])
    row = rf"\| {path.stem} \| \d\.\d \| {seconds or ''} \|"
    assert re.search(row, capsys.readouterr().out)


# ------------------------------------------------- what is broken loses points

def rewrite(notebook, old, new, kind="markdown"):
    """Replace a text in all cells of a kind; it must be there."""
    cells = [cell for cell in notebook.cells if cell.cell_type == kind]
    assert any(old in cell.source for cell in cells)
    for cell in cells:
        cell.source = cell.source.replace(old, new)


def drop_outputs(notebook, kind):
    for cell in code_cells(notebook):
        cell.outputs = [o for o in cell.outputs if kind not in o.get("data", {})]


def blank_descriptions(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                output.data["text/plain"] = "<Figure size 640x480 with 1 Axes>"


def silence(notebook):
    for cell in code_cells(notebook):
        cell.outputs = []


def print_wide(notebook):
    code_cells(notebook)[1].outputs[0]["text"] = "x" * 101


def add_code(source):
    return lambda nb: nb.cells.append(nbformat.v4.new_code_cell(source))


def add_text(source):
    return lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell(source))


def untidy(notebook):
    code_cells(notebook)[3].execution_count = 99


def widgets(notebook):
    notebook.metadata["widgets"] = {}


BREAKS = {
    "order": (1, untidy),
    "touched": (2, lambda nb: rewrite(nb, "...  # your", "0  # your", "code")),
    "picture": (4, add_text("![](https://example.org/cat.png)")),
    "download": (4, add_code("from urllib.request import urlopen")),
    "point": (5, lambda nb: rewrite(nb, "\n4. Order enters", "\nOrder enters")),
    "goal": (5, lambda nb: rewrite(nb, "\n3. normalise", "\nnormalise")),
    "loop": (6, lambda nb: rewrite(nb, "by_loop", "looped", "code")),
    "no picture": (7, lambda nb: drop_outputs(nb, "image/png")),
    "prompts": (9, lambda nb: rewrite(nb, "**Predict", "**Think")),
    "repair": (10, lambda nb: rewrite(nb, "Repaired", "Done")),
    "minutes": (11, lambda nb: rewrite(nb, "exercises 28", "exercises 30")),
    "task": (11, lambda nb: rewrite(nb, "Write `my_one_hot", "Code `my_one_hot")),
    "title": (13, lambda nb: rewrite(nb, "title=", "name=", "code")),
    "described": (14, blank_descriptions),
    "in words": (14, lambda nb: drop_outputs(nb, "text/html")),
    "colour": (14, add_code("plot_curves(curves, color='red')")),
    "misconception": (16, lambda nb: rewrite(nb, "**Misconception", "**Belief")),
    "untested": (16, lambda nb: add_text("**Misconception:** all is well")(nb)),
    "long sentence": (17, add_text("word " * 40 + ".")),
    "long cell": (18, add_code("x = 1\n" * 16)),
    "silent": (19, silence),
    "wide line": (19, print_wide),
    "widgets": (19, widgets),
    "sources": (20, lambda nb: rewrite(nb, "**Sources and limits.**", "**Books.**")),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_loses_points(name):
    item, edit = BREAKS[name]
    chapter = BY_NUMBER["02"]
    notebook = copy.deepcopy(chapter.notebook)
    edit(notebook)
    broken = chapter._replace(notebook=notebook)
    assert score(chapter, item, READING)[0] == 2
    points, why = score(broken, item, READING)
    assert points < 2 and "not" in why


@pytest.mark.parametrize("item", [1, 3, 4, 8])
def test_a_run_of_other_code_does_not_count(item):
    chapter = BY_NUMBER["02"]
    assert score(chapter, item, READING)[0] == 2
    assert score(chapter._replace(run={}), item, READING)[0] < 2


@pytest.mark.parametrize("item, change", [
    (1, {"seconds": 21.0}), (3, {"reproduced": False}), (8, {"arrays": [[0, "x", 4]]}),
])  # fmt: skip
def test_a_bad_run_loses_points(item, change):
    chapter = BY_NUMBER["02"]
    bad = chapter._replace(run=chapter.run | change)
    assert score(bad, item, READING)[0] < 2


def test_a_heavy_file_loses_points():
    heavy = BY_NUMBER["02"]._replace(size=1_000_001)
    assert score(heavy, 19, READING)[0] < 2


def test_a_head_without_numbers_over_texts_loses_points():
    chapter = BY_NUMBER["10"]
    notebook = copy.deepcopy(chapter.notebook)
    rewrite(notebook, "ALICE[", "ONE[", "code")
    rewrite(notebook, "sample_batch(", "sample(", "code")
    bad = chapter._replace(notebook=notebook)
    assert score(bad, 15, READING)[0] < score(chapter, 15, READING)[0]


@pytest.mark.parametrize("change", [
    {"mistakes": ()}, {"hints": ("one",)}, {"solution": [0.5, 0.5, 0.5, 0.5]},
])  # fmt: skip
def test_an_incomplete_exercise_loses_points(change, monkeypatch):
    exercise = rubric.EXERCISES["02.normed"]
    item = 12 if "hints" not in change else 11
    assert score(BY_NUMBER["02"], item, READING)[0] == 2
    monkeypatch.setitem(rubric.EXERCISES, "02.normed", exercise._replace(**change))
    if "solution" in change:
        monkeypatch.setattr(rubric, "grade", lambda *answer: (False, "nearly"))
    assert score(BY_NUMBER["02"], item, READING)[0] < 2


@pytest.mark.parametrize("source, name, axes, named", [
    ("x = f()\nassert x.shape == (2, 3, 4)  # (B, T, H)", "x", 3, True),
    ("x = f()  # (B, T, H)\nassert x.shape == (2, len(y), 4) and ok", "x", 3, True),
    ("x = f()  # (B, T, H)", "x", 3, False),
    ("assert x.shape == (2, 3, 4)", "x", 3, False),
    ("assert x.shape == (2, 3)  # (B, T)", "x", 3, False),
    ("for x in xs:\n    print(x)", "x", 3, True),
    ("assert x.shape == (*rows.shape, 4)  # (B, T, H)", "x", 3, True),
])  # fmt: skip
def test_an_array_is_named_by_a_comment_and_checked_by_an_assertion(
        source, name, axes, named):
    assert is_named(source, name, axes) == named


def test_items_and_cores_fit():
    assert sorted(ITEMS) == sorted([*rubric.AUTOMATIC, *CORES]) == list(range(1, 21))


# ------------------------------------------------- what chapter 00 says of models

def chapters_named(text):
    """{"08", "10", "11", "12"} of "chapters 08, 10 to 12"."""
    found = set()
    for part in text.removeprefix("chapters ").split(", "):
        first, _, last = part.partition(" to ")
        found |= {f"{n:02}" for n in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize("model", ["toy", "all-MiniLM-L6-v2"])
def test_the_table_of_chapter_00_names_the_chapters_that_need_a_model(model, minilm):
    (purpose,) = [row[3] for row in environment_rows() if row[0] == f"model {model}"]
    using = {chapter.name[:2] for chapter in CHAPTERS if any(
        f'("{model}")' in cell.source for cell in chapter.code)}
    assert using == chapters_named(purpose)
