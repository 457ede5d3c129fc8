"""Predictions: any guess gets the answer, and the chapters print the same."""

import sys

import numpy as np
import pytest

from bert_np import BertError
from bert_np.course import predict
from bert_np.course.predictions import PREDICTIONS
from notebooks import NOTEBOOKS, code_cells, printed, read

CHAPTERS = {path.stem[:2]: path for path in sorted(NOTEBOOKS.glob("[01]*.ipynb"))}


class Awkward:
    def __float__(self):
        raise SystemExit

    def __repr__(self):
        raise ValueError


def asked(chapter):
    """Return {id: what the cells after its question print} for a chapter."""
    found, texts = {}, []
    for cell in reversed(code_cells(read(CHAPTERS[chapter]))):
        if "predict(" in cell.source:
            prediction_id = cell.source.split('predict("')[1].split('"')[0]
            found[prediction_id] = cell, "\n".join(reversed(texts))
            texts = []
        else:
            texts.append(printed(cell))
    return dict(reversed(found.items()))


def test_every_prediction_is_asked_in_its_chapter_and_in_order():
    chapters = dict.fromkeys(name[:2] for name in PREDICTIONS)
    assert [name for c in chapters for name in asked(c)] == list(PREDICTIONS)
    assert min(len(asked(chapter)) for chapter in chapters) >= 3


@pytest.mark.parametrize("prediction_id", PREDICTIONS)
def test_the_cells_that_follow_print_the_answer(prediction_id):
    cell, follows = asked(prediction_id[:2])[prediction_id]
    assert PREDICTIONS[prediction_id].shown in follows
    assert cell.source.startswith("guess = ...  # ")
    assert printed(cell).startswith("no guess yet")


@pytest.mark.parametrize("prediction_id", PREDICTIONS)
def test_the_answer_is_right_and_another_one_is_not(prediction_id, capsys):
    prediction = PREDICTIONS[prediction_id]
    for guess in (prediction.answer, *prediction.also):
        predict(prediction_id, guess)
        assert capsys.readouterr().out.startswith("Right: ")
    for guess in ("perhaps", 1234, [], [1, 2, 3, 4, 5], {}):
        predict(prediction_id, guess)
        out = capsys.readouterr().out
        assert out.startswith("You said ") and prediction.why in out


@pytest.mark.parametrize("prediction_id, guess, right", [
    ("03.zero", " NO ", True),
    ("02.position40", "41, 39", True),
    ("04.forgotten", np.float32(0.6), True),
    ("04.forgotten", 0.93, False),
    ("01.lost", ("C", "A"), True),
    ("00.again", "4", True),
    ("00.again", True, False),
    ("00.again", float("nan"), False),
])  # fmt: skip
def test_guesses_may_be_written_in_other_ways(prediction_id, guess, right, capsys):
    predict(prediction_id, guess)
    assert capsys.readouterr().out.startswith("Right: ") == right


@pytest.mark.parametrize(
    "guess", [Awkward(), "x" * 10**6, np.zeros((50, 50)), object()]
)
def test_no_guess_stops_the_notebook(guess, capsys):
    predict("04.forgotten", guess)
    out = capsys.readouterr().out
    assert out.startswith("You said ") and len(out) < 400


def test_without_a_guess_the_answer_is_not_told(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    for guess in (..., None):
        predict("03.zero", guess)
        assert capsys.readouterr().out == (
            "no guess yet: write one in place of ... and run the cell\n"
        )


def test_a_page_that_nobody_runs_holds_the_answer_folded():
    cell, _ = asked("03")["03.zero"]
    (html,) = (o["data"]["text/html"] for o in cell.outputs if "data" in o)
    assert html.startswith("<details><summary>") and PREDICTIONS["03.zero"].why in html


@pytest.mark.parametrize("prediction_id", ["03.zreo", "99.x", "", 3, None])
def test_an_unknown_prediction_names_those_near(prediction_id):
    with pytest.raises(BertError, match="allowed: .*(03.zero|00.…)"):
        predict(prediction_id, "no")
