"""The teacher's key: every answer, and nothing overwritten."""

import re

import pytest

from bert_np import BertError
from bert_np.course.__main__ import main
from bert_np.course.answer_key import write_answers
from bert_np.course.exercise import all_exercises
from bert_np.course.grading import grade
from bert_np.course.predictions import PREDICTIONS

EXERCISES = all_exercises()


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = write_answers(tmp_path_factory.mktemp("key") / "answers.md")
    return path.read_text("utf-8")


def test_each_exercise_and_each_prediction_stands_once_in_order(key):
    assert re.findall(r"^### (\S+) ·", key, re.M) == list(EXERCISES)
    assert re.findall(r"^\*\*(\S+)\*\*", key, re.M) == list(PREDICTIONS)
    for prediction in PREDICTIONS.values():
        assert prediction.why in key


def test_a_value_that_is_printed_passes_its_check(key):
    values = [exercise for exercise in EXERCISES.values() if not exercise.is_function]
    assert values
    for exercise in values:
        section = key.split(f"### {exercise.id} ·")[1]
        names = {}
        exec(re.search(r"```python\n(.*?)```", section, re.S)[1], names)
        assert grade(exercise.id, names[exercise.name]).passed, exercise.id


def test_nothing_is_overwritten(tmp_path, capsys):
    place = tmp_path / "answers.md"
    assert main(["answers", str(place)]) == 0
    assert "answers.md: " in capsys.readouterr().out
    place.write_text("mine")
    assert main(["answers", str(place)]) == 1
    assert "exists, allowed: a new file" in capsys.readouterr().err
    assert place.read_text() == "mine"


@pytest.mark.parametrize("place", [3, "a\0b", "none/answers.md", ""])
def test_a_place_that_cannot_be_had_is_named(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertError, match="allowed: a |cannot be written"):
        write_answers(place)
