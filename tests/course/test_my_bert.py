"""Passed answers are kept as source that runs by itself."""

import inspect
import linecache
import os
import re

import nbformat
import numpy as np
import pytest

import bert_np
from bert_np import BertError
from bert_np.course import check, load_my_bert, progress
from bert_np.course.exercise import all_exercises, solved
from bert_np.course.exercises import ch03_one_head as chapter_3
from bert_np.course.my_bert import HEAD, answer_name, kept_file, read_parts
from notebooks import code_cells, execute, printed

EXERCISES = all_exercises()
FUNCTIONS = sum(exercise.is_function for exercise in EXERCISES.values())


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file for passed answers, not there yet."""
    path = tmp_path / "my_bert.py"
    monkeypatch.setenv("BERT_NP_MY_BERT", str(path))
    return path


class Notebook:
    """Cells that share their names, and whose source can be looked up."""

    def __init__(self):
        self.names, self.count = {"__name__": "__main__", "check": check}, 0

    def run(self, source):
        place, self.count = f"<cell {self.count}>", self.count + 1
        linecache.cache[place] = (len(source), None, source.splitlines(True), place)
        exec(compile(source, place, "exec"), self.names)


SOFTMAX = """
def my_softmax(scores):
    # my own comment
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""
ATTENTION = """
def scaled(q, k, root=m.sqrt):
    return FACTOR * q @ k.T / root(q.shape[AXIS])

def my_attention(q, k, v):
    probs = my_softmax(scaled(q, k))
    return probs @ v, probs

check("03.attention", my_attention)
"""


@pytest.fixture
def notebook(path):
    notebook = Notebook()
    notebook.run("import math as m\nimport numpy as np\nimport json\nAXIS = -1")
    notebook.run("from bert_np import gelu\nFACTOR = np.array(1.0)\nunused = 5")
    return notebook


# ---------------------------------------------------------------- keeping


def test_a_passed_function_is_kept_as_it_was_written(notebook, path, capsys):
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    assert capsys.readouterr().out.endswith(" 1e-06. Kept in my_bert.py.\n")
    head, *parts = path.read_text("utf-8").split("\n\n# ---- ")
    assert head + "\n" == HEAD + "\n"
    title = "03.softmax: A softmax that does not overflow\n"
    assert parts == [f"{title}import numpy as np\n\n{SOFTMAX}"]


def test_what_a_function_needs_is_kept_with_it(notebook, path):
    notebook.run(SOFTMAX)
    notebook.run(ATTENTION)
    part = read_parts(path)[1]["03.attention"]
    assert part.startswith("import math as m\nimport numpy as np\n\n\n")
    for needed in (
        "AXIS = -1\n",
        "FACTOR = np.array(1.0, '<f8')\n",
        SOFTMAX,
        "def scaled",
    ):
        assert needed in part
    assert "json" not in part and "unused" not in part and "check" not in part
    assert part.index("def scaled") < part.index("def my_attention")


def test_what_an_earlier_part_defines_is_not_repeated(notebook, path):
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    notebook.run(ATTENTION)
    parts = read_parts(path)[1]
    assert "def my_softmax" not in parts["03.attention"]
    mine = load_my_bert(path, show=False)
    q, k, v = chapter_3.Q, chapter_3.K, chapter_3.V
    assert np.allclose(mine.my_attention(q, k, v)[1].sum(axis=-1), 1)


def test_a_later_try_replaces_an_earlier_one_and_a_wrong_one_does_not(notebook, path):
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    notebook.run(
        SOFTMAX.replace("my own", "a better") + 'check("03.softmax", my_softmax)'
    )
    notebook.run("def my_softmax(scores):\n    return scores\n"
                 'check("03.softmax", my_softmax)')  # fmt: skip
    text = path.read_text("utf-8")
    assert text.count("def my_softmax") == 1 and "# a better comment" in text


@pytest.mark.parametrize("cell, kept", [
    ("other = lambda scores: np.exp(scores - scores.max(-1)[:, None]) / np.exp("
     "scores - scores.max(-1)[:, None]).sum(-1)[:, None]\n"
     'check("03.softmax", other)', "\n\n\nmy_softmax = other\n"),
    ("def other(scores):\n    return gelu(0 * scores) + bert_np.softmax(scores)\n"
     'import bert_np\ncheck("03.softmax", other)', "import bert_np\n"),
    ('import bert_np\ncheck("03.softmax", bert_np.softmax)',
     "from bert_np import softmax as my_softmax\n"),
    ("from numpy import exp as e\ndef my_softmax(x):\n"
     "    x = x - x.max(1)[:, None]\n    return e(x) / e(x).sum(1)[:, None]\n"
     'check("03.softmax", my_softmax)', "from numpy import exp as e\n"),
    ('check("03.row", np.array([0.1065, 0.1065, 0.787]))',
     "row = [0.1065, 0.1065, 0.787]\n"),
    ('check("03.fingerprint", " (B) ")', "mistake = 'b'\n"),
    ("def even(n):\n    return n == 0 or odd(n - 1)\n"
     "def odd(n):\n    return n > 0 and even(n - 1)\n"
     "def my_padding_share(lengths):\n"
     "    return even(0) - lengths.mean() / lengths.max()\n"
     'check("14.padding", my_padding_share)', "def odd(n):"),
])  # fmt: skip
def test_answers_of_many_kinds_are_kept(notebook, path, cell, kept, capsys):
    notebook.run(cell)
    assert "Not kept" not in capsys.readouterr().out
    assert kept in path.read_text("utf-8")
    names = {}
    exec(path.read_text("utf-8"), names)  # the whole file, as a module
    (exercise_id,) = read_parts(path)[1]
    assert answer_name(EXERCISES[exercise_id]) in names


@pytest.mark.parametrize("cell, reason", [
    ('check("03.softmax", lambda s: my_softmax(s))', "give the function a name"),
    ('exec(source, globals())\ncheck("03.softmax", my_softmax)', "its source cannot"),
    ('check("03.softmax", np.vectorize(my_softmax, signature="(m,n)->(m,n)"))',
     "my_softmax is of type vectorize, whose source cannot be found"),
    ("big = np.zeros(1000)\ndef f(s):\n    return my_softmax(s + big[0])\n"
     'check("03.softmax", f)', "big is of type ndarray"),
    ("def f(s):\n    return my_softmax(s + state[0])\nstate = [0, check]\n"
     'check("03.softmax", f)', "state is of type list"),
    ("def make(n):\n    def f(s):\n        return my_softmax(s + n)\n    return f\n"
     'check("03.softmax", make(0))', "run by itself it does not pass: case 1 raises"),
])  # fmt: skip
def test_what_cannot_be_kept_passes_and_says_why(notebook, path, cell, reason, capsys):
    notebook.names["source"] = SOFTMAX
    notebook.run(SOFTMAX)
    notebook.run(cell)
    out = capsys.readouterr().out
    assert out.startswith("03.softmax: passed, ")
    assert f"Not kept in my_bert.py: {reason}" in out or reason in out
    assert not path.exists()


def test_a_place_that_cannot_be_written_spoils_no_check(
    notebook, path, capsys, monkeypatch
):
    for place in (path / "none" / "my_bert.py", path.parent):
        monkeypatch.setenv("BERT_NP_MY_BERT", str(place))
        notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
        assert re.search(
            r"passed, .* Not kept in .*: .* directory\.", capsys.readouterr().out
        )
    monkeypatch.setenv("BERT_NP_MY_BERT", str(path))
    path.write_bytes(b"# my notes: \xff\n")
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    assert (
        "Not kept in my_bert.py: the file there is not UTF-8" in capsys.readouterr().out
    )
    assert path.read_bytes() == b"# my notes: \xff\n"
    assert os.listdir(path.parent) == ["my_bert.py"]


def test_what_a_student_wrote_into_the_file_stays(notebook, path):
    path.write_text(
        "# my notes\nanswer = 42\n\n# ---- 99.later: Of another edition\nx = 1\n"
    )
    notebook.run('check("05.count", 288)')
    text = path.read_text("utf-8")
    assert text.startswith(
        "# my notes\nanswer = 42\n\n\n# ---- 05.count: What do heads"
    )
    assert (
        text.endswith("x = 1\n") and "# ---- 99.later: an exercise of another" in text
    )


def test_nothing_is_kept_unless_asked_or_in_a_notebook(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("BERT_NP_MY_BERT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert kept_file() is None
    check("03.softmax", bert_np.softmax)
    assert os.listdir(tmp_path) == [] and "ept" not in capsys.readouterr().out
    monkeypatch.setenv("BERT_NP_MY_BERT", "")
    assert kept_file() is None


# ---------------------------------------------------------------- loading


def test_what_is_missing_or_no_longer_right_is_the_librarys(notebook, path, capsys):
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    notebook.run('check("00.shape", (3, 5))')
    with path.open("a") as file:
        file.write("# ---- 04.mask: x\ndef my_mask(ids, pad):\n    return ids\n")
        file.write("# ---- 05.merge: x\nraise SystemExit\n# ---- 05.split: x\nx = (\n")
    capsys.readouterr()
    mine = load_my_bert()
    table = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert table["03.softmax"].split() == ["03.softmax", "my_softmax", "yours"]
    assert "the course's (not answered yet)" in table["03.attention"]
    assert "the course's (case 1: yours is " in table["04.mask"]
    assert "the course's (SystemExit" in table["05.merge"]
    assert "the course's (SyntaxError" in table["05.split"]
    assert table["1"] == f"1 of {FUNCTIONS} functions are yours, from my_bert.py"
    assert "# my own comment" in inspect.getsource(mine.my_softmax)
    assert mine.my_attention is chapter_3.my_attention
    assert len(vars(mine)) == FUNCTIONS


def test_without_a_file_everything_is_the_librarys(path, capsys):
    mine = load_my_bert()
    assert mine.my_softmax is chapter_3.my_softmax
    assert f"0 of {FUNCTIONS} functions are yours" in capsys.readouterr().out
    progress()
    out = capsys.readouterr().out
    assert (
        f"0 of {len(EXERCISES)} exercises are done\nmy_bert.py holds no function yet\n"
        in out
    )


def test_progress_shows_what_is_done_and_what_is_open(notebook, path, capsys):
    notebook.run(SOFTMAX + 'check("03.softmax", my_softmax)')
    notebook.run('check("00.shape", [3, 5])\ncheck("03.row", [1, 0, 0])')
    capsys.readouterr()
    progress()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "00   1 of 3   open: 00.maps, 00.shares"
    assert lines[3] == "03   1 of 4   open: 03.row, 03.attention, 03.fingerprint"
    assert lines[-2:] == [
        f"2 of {len(EXERCISES)} exercises are done",
        "my_bert.py holds my_softmax",
    ]


@pytest.mark.parametrize("path", [3, b"x", ["x"], "a\0b", "."])
def test_a_file_that_cannot_be_read_is_named(path):
    with pytest.raises(BertError):
        load_my_bert(path)
    with pytest.raises(BertError):
        progress(path)


def test_no_two_answers_have_the_same_name():
    names = [answer_name(exercise) for exercise in EXERCISES.values()]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_a_student_who_solves_everything_has_a_bert_of_their_own(tmp_path, capsys):
    setup = "import json, math, string, unicodedata\nimport numpy as np\n"
    cells = [setup + "import bert_np\nfrom bert_np.course import check"]
    cells += [solved(exercise) for exercise in EXERCISES.values()]
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, cells))
    )
    path = tmp_path / "my_bert.py"
    done = execute(notebook, my_bert=path)
    texts = [printed(cell) for cell in code_cells(done)[1:]]
    assert [
        text for text in texts if ": passed" not in text or "Not kept" in text
    ] == []
    exec(path.read_text("utf-8"), {})  # runs as a module, too
    load_my_bert(path)
    assert f"{FUNCTIONS} of {FUNCTIONS} functions are yours" in capsys.readouterr().out
