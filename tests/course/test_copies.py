"""The students' copies of the notebooks."""

import json
import os

import pytest

from bert_np import BertError
from bert_np.course import copies
from bert_np.course.__main__ import main
from bert_np.course.copies import missing_neighbours, write_copies
from bert_np.course.exercise import all_exercises, solved, stub
from notebooks import NOTEBOOKS, code_cells, read

EXERCISES = all_exercises()
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The students' copies of the notebooks of this checkout."""
    return write_copies(tmp_path_factory.mktemp("class") / "student")


def cell(source, **more):
    return {"cell_type": "code", "source": source.splitlines(True), **more}


def small_notebook(*cells):
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})
    return text.encode()


@pytest.fixture
def course(tmp_path):
    """A folder of one notebook that has been worked in, and what lies there."""
    notebooks = tmp_path / "notebooks"
    (notebooks / "images").mkdir(parents=True)
    solution = solved(EXERCISES["03.softmax"])
    shown = {"outputs": [{"text": "passed"}], "execution_count": 3}
    cells = cell(solution, metadata={"tags": ["a"]}, id="x", **shown), cell(
        'guess = [0.1, (2)]  # a list\npredict("03.zero", guess)', **shown
    )  # fmt: skip
    note = {"cell_type": "markdown", "source": ['check("03.softmax", my_softmax)']}
    (notebooks / "a.ipynb").write_bytes(small_notebook(*cells, note))
    for name in ("my_bert.py", ".hidden", "README.md", "images/a.png"):
        (notebooks / name).write_bytes(name.encode())
    return notebooks


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_cleared_and_everything_else_is_as_it_was(folder, name):
    before, after = read(NOTEBOOKS / name), read(folder / name)
    for found in code_cells(after):
        assert found.outputs == [] and found.execution_count is None
    for found in code_cells(before):
        found.outputs, found.execution_count = [], None
    assert after == before


def test_all_that_lies_beside_the_notebooks_is_copied(folder):
    def files(root):
        paths = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path for path in paths}

    copied, theirs = files(folder), files(NOTEBOOKS)
    hidden = {name for name in theirs if name.startswith(".") or "/." in name}
    assert copied.keys() == theirs.keys() - hidden - {"my_bert.py"}
    for name in copied.keys() - set(NAMES):
        assert copied[name].read_bytes() == theirs[name].read_bytes()


def test_answers_and_guesses_are_taken_out(course, tmp_path):
    copy = write_copies(tmp_path / "student", course)
    first, second, note = json.loads((copy / "a.ipynb").read_bytes())["cells"]
    assert "".join(first["source"]) == stub(EXERCISES["03.softmax"])
    assert first["metadata"] == {"tags": ["a"]} and first["id"] == "x"
    assert first["outputs"] == [] and first["execution_count"] is None
    assert second["source"] == [
        "guess = ...  # a list\n",
        'predict("03.zero", guess)',
    ]
    assert note["source"] == ['check("03.softmax", my_softmax)']
    assert sorted(os.listdir(copy)) == ["README.md", "a.ipynb", "images"]


def test_nothing_is_overwritten(course, tmp_path):
    taken = [tmp_path / name for name in ("file", "empty", "link")]
    taken[0].write_text("mine")
    taken[1].mkdir()
    taken[2].symlink_to(tmp_path / "nowhere")
    for place in taken:
        with pytest.raises(BertError, match="exists, allowed: a new one"):
            write_copies(place, course)
    assert taken[0].read_text() == "mine" and os.listdir(taken[1]) == []


@pytest.mark.parametrize("place, told", [
    ("none/student", "none is no folder"),
    ("notebooks/student", "lies in the folder to copy"),
    (3, "folder = 3, allowed: a path"), ("a\0b", "allowed: a path"),
    ("x" * 300, "cannot be written"),
])  # fmt: skip
def test_a_place_that_cannot_be_had_is_named(course, tmp_path, place, told):
    place = tmp_path / place if isinstance(place, str) else place
    with pytest.raises(BertError, match=told):
        write_copies(place, course)
    assert os.listdir(tmp_path) == ["notebooks"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"cells": [1]}', b"\xff"])
def test_a_copy_that_fails_leaves_nothing(course, tmp_path, content):
    (course / "b.ipynb").write_bytes(content)
    with pytest.raises(BertError, match="b.ipynb cannot be read as a notebook"):
        write_copies(tmp_path / "student", course)
    assert os.listdir(tmp_path) == ["notebooks"]


def test_an_interrupt_leaves_nothing(course, tmp_path, monkeypatch):
    def interrupt(path, copy):
        raise KeyboardInterrupt

    monkeypatch.setattr(copies, "_copy_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_copies(tmp_path / "student", course)
    assert os.listdir(tmp_path) == ["notebooks"]


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(BertError, match="holds no notebooks"):
        write_copies(tmp_path / "student", tmp_path)


def test_what_the_copies_need_beside_them_is_told(folder, tmp_path):
    assert "../tests/golden/tiny" in missing_neighbours(folder)
    (folder.parent / "tests").symlink_to(NOTEBOOKS.parent / "tests")
    assert missing_neighbours(folder) == []


def test_the_command_says_what_it_has_done(tmp_path, capsys):
    assert main(["student", str(tmp_path / "class")]) == 0
    out = capsys.readouterr().out
    assert f"class: {len(NAMES)} notebooks\n" in out and "beside notebooks/" in out
    assert main(["student", str(tmp_path / "class")]) == 1
    assert capsys.readouterr().err.startswith("error: folder = ")
