"""The checker: every exercise of the course, right, wrong and untouched."""

import inspect
import re
import sys

import numpy as np
import pytest
from golden_values import GOLDEN

import bert_np
from bert_np import BertError, bert, compare, softmax
from bert_np.course import (
    broken_bert,
    check,
    check_environment,
    environment,
    grade,
    hint,
    show_solution,
    show_source,
)
from bert_np.course.answers import agrees, first_difference
from bert_np.course.exercise import all_exercises, solution_source, solved, stub
from bert_np.course.exercises.ch09_real_weights import damage
from bert_np.files.checkpoint import load_checkpoint

EXERCISES = all_exercises()
IDS = list(EXERCISES)
MISTAKES = [(i, n) for i, e in EXERCISES.items() for n in range(len(e.mistakes))]


def run_cell(source):
    """Run the source of an exercise cell; return its names and grades."""
    grades = []
    names = {"np": np, "bert_np": bert_np, "check": lambda *a: grades.append(grade(*a))}
    exec("import json, math, string, unicodedata\n" + source, names)
    return grades


# ------------------------------------------------------- every exercise


@pytest.mark.parametrize("exercise_id", IDS)
def test_an_exercise_is_complete(exercise_id):
    exercise = EXERCISES[exercise_id]
    assert exercise.id == exercise_id
    assert exercise.level in (1, 2, 3) and 1 <= exercise.minutes <= 20
    assert len(exercise.hints) == 2 and all(len(h) > 15 for h in exercise.hints)
    assert len(exercise.mistakes) >= 2
    messages = [mistake.message for mistake in exercise.mistakes]
    assert len(set(messages)) == len(messages)
    assert exercise.is_function == bool(exercise.cases) == callable(exercise.draw)
    assert exercise.is_function or exercise.name.isidentifier()
    assert exercise.is_function or exercise.why.endswith(".")


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes(exercise_id):
    assert [g.passed for g in run_cell(solved(EXERCISES[exercise_id]))] == [True]


@pytest.mark.parametrize("exercise_id", IDS)
def test_an_untouched_stub_falls_through(exercise_id):
    (result,) = run_cell(stub(EXERCISES[exercise_id]))
    assert result.passed is None and result.message == "not attempted yet"


@pytest.mark.parametrize("exercise_id, number", MISTAKES)
def test_a_known_mistake_gets_its_own_message(exercise_id, number):
    mistake = EXERCISES[exercise_id].mistakes[number]
    result = grade(exercise_id, mistake.answer)
    assert result.passed is False and result.message == mistake.message


@pytest.mark.parametrize("exercise_id", IDS)
def test_another_wrong_answer_is_told_where_it_differs(exercise_id):
    exercise = EXERCISES[exercise_id]
    wrong = (lambda *arguments: "nonsense") if exercise.is_function else "nonsense"
    result = grade(exercise_id, wrong)
    assert result.passed is False
    assert "yours" in result.message and len(result.message) < 200


# ------------------------------------------------------------ the checker


def softmax_like(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_check_prints_one_line(capsys):
    check("03.softmax", softmax_like)
    check("03.softmax", ...)
    assert capsys.readouterr().out.splitlines() == [
        "03.softmax: passed, 7 cases and 20 drawn afresh, tolerance 1e-06.",
        "03.softmax: not attempted yet",
    ]


def test_check_shows_the_tolerance_and_the_place_of_a_difference():
    result = grade("03.softmax", lambda scores: softmax_like(scores) + 1e-3)
    assert result.passed is False
    assert result.message.startswith("case 1: yours is ")
    assert "tolerance 1e-06" in result.message


@pytest.mark.parametrize("answer, message", [
    (3, "the exercise asks for a function, yours is of type int"),
    (lambda scores: scores[99], "case 1 raises IndexError"),
    (lambda scores: scores.sum(), "yours has the shape (), expected (3, 3)"),
    (lambda scores: [[1, 2], [3]], "yours has rows of different lengths"),
])  # fmt: skip
def test_what_goes_wrong_is_said_and_never_raised(answer, message):
    result = grade("03.softmax", answer)
    assert result.passed is False and message in result.message


def test_a_function_that_writes_to_its_input_is_told():
    def careless(scores):
        scores -= scores.max(axis=-1, keepdims=True)
        return softmax_like(scores)

    assert "changes its input" in grade("03.softmax", careless).message
    assert grade("03.softmax", softmax_like).passed  # the stored case is intact


def test_an_unknown_exercise_names_those_near():
    with pytest.raises(BertError, match="03.softmax"):
        check("03.sotfmax", softmax_like)
    for odd in (None, 3, ["03.softmax"], 10**5000):
        with pytest.raises(BertError, match="id = .*, allowed: 00…, 01…"):
            grade(odd, softmax_like)
    with pytest.raises(BertError, match="number = 3, allowed: 1 or 2"):
        hint("03.softmax", 3)


def test_hints_and_solution_are_printed(capsys):
    exercise = EXERCISES["03.softmax"]
    hint("03.softmax")
    hint("03.softmax", 2)
    show_solution("03.softmax")
    out = capsys.readouterr().out
    assert exercise.hints[0] in out and exercise.hints[1] in out
    assert solution_source(exercise) in out


def test_a_teacher_can_hide_the_solutions(capsys, monkeypatch):
    monkeypatch.setenv("BERT_NP_SOLUTIONS", "hidden")
    show_solution("03.softmax")
    assert capsys.readouterr().out == "solutions are hidden here: ask your teacher\n"


@pytest.mark.parametrize("answer, expected, problem", [
    (1.0, 1, None),
    (True, 1, None),
    (np.array([0, 1]), [False, True], None),
    ("cat", "cat", None),
    ("cat", "dog", "not the expected"),
    ([1, 2], (1, 2), None),
    (["un", "##able"], ["un", "##able"], None),
    (["un"], ["un", "##able"], "1 items, expected 2"),
    ({"a": 1}, {"a": 1, "b": 2}, "keys"),
    ({"a": 1.5}, {"a": 1.0}, "a: yours is 1.5"),
    ((1, [2.0]), (1, np.array([3.0])), "item 1: yours is 2 at (0,), expected 3"),
    ([[1.0], [2.0, 2.0]], [[1.0], [2.0, 3.0]], "item 1: yours is 2 at (1,)"),
    (["x"], [], "yours has 1 items, expected 0"),
    ([1], {"a": 1}, "yours is of type list, expected a dict"),
    (np.nan, 1.0, "yours is nan"),
    (np.inf, np.inf, None),
    ("cat", 1.0, "expected numbers"),
    (np.zeros((1, 2)), np.zeros(2), "shape (1, 2)"),
])  # fmt: skip
def test_answers_are_compared_by_kind_shape_and_value(answer, expected, problem):
    found = first_difference(answer, expected, 1e-6)
    assert agrees(answer, expected, 1e-6) == (problem is None)
    assert found is None if problem is None else problem in found


@pytest.mark.parametrize("exercise_id, answer, message", [
    ("05.count", 100, "yours is 100, not the expected answer (tolerance 1e-06)"),
    ("03.row", [0.1, 0.1065, 0.8], "1 of your 3 entries are right (tolerance 0.001)"),
    ("00.shape", (3, 4), "item 1: yours is 4, not the expected answer"),
    ("11.claims", [True, False, False], "1 of your 3 entries are right"),
    ("03.fingerprint", "d", "yours is 'd', not the expected answer"),
])  # fmt: skip
def test_a_wrong_value_is_not_told_the_right_one(exercise_id, answer, message):
    assert message in grade(exercise_id, answer).message


NUMBERS = [
    i
    for i, e in EXERCISES.items()
    if not e.is_function and np.asarray(e.solution).dtype.kind in "if"
]


@pytest.mark.parametrize("exercise_id", NUMBERS)
def test_no_message_about_wrong_numbers_holds_the_right_ones(exercise_id):
    solution = EXERCISES[exercise_id].solution
    wrong = type(solution)((np.asarray(solution) + 1234).tolist())
    message = grade(exercise_id, wrong).message
    assert not re.search(r"expected [-\d\[(]", message) and "tolerance" in message


@pytest.mark.parametrize("exercise_id, answer, message", [
    ("03.softmax", lambda s: np.exp(s - s.max(-1)) / np.exp(s - s.max(-1)).sum(-1),
     "both times"),
    ("03.softmax", lambda s: softmax_like(s.T).T, "your columns sum to 1"),
    ("02.one_hot", lambda ids, V: np.eye(V)[ids].T, "T comes first"),
    ("04.row", [0.0, 0.576, 0.212], "you masked after the softmax"),
    ("07.patient_2", "layers.1.ffn.activated", "take the first"),
    ("03.attention", lambda q, k, v: (q, bert_np.softmax(q @ k.T / 2)), "item 0"),
    ("08.best", 0.35, "passed"),
])  # fmt: skip
def test_what_students_write_first_is_understood(exercise_id, answer, message):
    assert message in grade(exercise_id, answer).message


def test_show_source_leaves_the_docstring_out(capsys):
    show_source(softmax)
    out = capsys.readouterr().out
    assert out.startswith("def softmax(") and '"""' not in out
    assert "return" in out and out.count("\n") < 12
    show_source(softmax_like)
    assert capsys.readouterr().out == inspect.getsource(softmax_like)
    with pytest.raises(BertError, match="function is a builtin"):
        show_source(len)


def test_the_machine_check_tells_what_is_missing(capsys, monkeypatch):
    def refuse(name):
        raise BertError("toy: not there")

    monkeypatch.setattr(environment, "PACKAGES", {"numpy": "all arithmetic"})
    monkeypatch.setattr(environment, "is_cached", lambda: True)
    assert check_environment()
    assert "MISSING" not in capsys.readouterr().out
    monkeypatch.setitem(environment.PACKAGES, "no-such-package", "nothing")
    monkeypatch.setattr(environment, "is_cached", lambda: False)
    monkeypatch.setattr(environment, "load_pretrained", refuse)
    assert not check_environment(versions=True)
    missing = [line for line in capsys.readouterr().out.splitlines() if "MISS" in line]
    assert len(missing) == 3
    assert "no-such-package" in missing[0] and "model toy" in missing[1]
    assert f"fetch it: {sys.executable} -m bert_np.files.pretrained" in missing[2]


# ---------------------------------------------------------------- the lab

FIRST_WRONG = {
    1: "layers.0.attention.probs",
    2: "layers.0.ffn.activated",
    3: "layers.0.attention.context",
    4: "layers.0.attention.masked_scores",
    5: "layers.0.attention_norm.residual",
}


@pytest.mark.parametrize("number", FIRST_WRONG)
def test_a_patient_parts_from_the_library_where_it_is_broken(number):
    params, config, _ = load_checkpoint(GOLDEN / "tiny")
    ids, trace = [[2, 7, 9, 5, 3], [2, 8, 3, 0, 0]], {}
    bert(ids, params, config, trace=trace)
    healthy = {name: trace[name] for name in ("embeddings", "layers")}
    found = compare(healthy, broken_bert(number, ids, params, config))
    assert found.stage == FIRST_WRONG[number]


def test_the_damaged_checkpoint_first_differs_where_the_exercise_says():
    sizes = {"vocab_size": 9, "hidden_size": 4, "num_attention_heads": 2}
    config = bert_np.BertConfig(num_hidden_layers=6, intermediate_size=4, **sizes)
    params = bert_np.init_params(config, np.random.default_rng(0))
    healthy, damaged = {}, {}
    bert([[2, 3]], params, config, trace=healthy)
    bert([[2, 3]], damage(params), config, trace=damaged)
    assert compare(healthy, damaged).stage == EXERCISES["09.damaged"].solution


def test_there_is_no_other_patient():
    params, config, _ = load_checkpoint(GOLDEN / "tiny")
    with pytest.raises(BertError, match="number = 6, allowed: 1 to 5"):
        broken_bert(6, [[2, 3]], params, config)
