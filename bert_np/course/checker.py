"""The checker: one line that says what is right, or what went wrong."""

import copy
import os
import warnings
from typing import NamedTuple

from bert_np.course.answers import agrees, first_difference, same_inputs
from bert_np.course.exercise import find_exercise, solution_source
from bert_np.errors import BertError, short


class Grade(NamedTuple):
    """The outcome of a check; `passed` is None if nothing was attempted."""

    passed: bool | None
    message: str


def check(exercise_id, answer):
    """Compare an answer with the solution and print one line about it.

    An untouched answer (None or `...`) is not an error, and nothing that
    an answer does wrong raises one here, so that "Run All" reaches the
    end of the notebook.

    Parameters
    ----------
    exercise_id : str
        Such as "03.softmax".
    answer : function or value
        What the exercise asks for.
    """
    print(f"{exercise_id}: {grade(exercise_id, answer).message}")


def grade(exercise_id, answer):
    """Compare an answer with the solution and return the outcome.

    `check` without the printing, for autograders.

    Parameters
    ----------
    exercise_id : str
    answer : function or value

    Returns
    -------
    Grade
    """
    exercise = find_exercise(exercise_id)
    if answer is None or answer is ...:
        return Grade(None, "not attempted yet")
    if not exercise.is_function:
        return _compare(exercise, [answer], [exercise.solution], _one_value)
    if not callable(answer):
        kind = type(answer).__name__
        return Grade(False, f"this asks for a function, yours is of type {kind}")
    results, problem = _run(answer, exercise.cases)
    if problem is not None:
        return problem
    expected, _ = _run(exercise.solution, exercise.cases)
    return _compare(exercise, results, expected, lambda f: _run(f, exercise.cases)[0])


def _one_value(answer):
    return [answer]


def _run(function, cases):
    """Return (results on all cases, None), or (None, the Grade of a failure)."""
    results = []
    for number, case in enumerate(cases, 1):
        given = copy.deepcopy(case)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a wrong answer may overflow
                result = function(*given)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0][:150]
            return None, Grade(False, f"case {number} raises {text}")
        if result is None or result is ...:
            return None, Grade(None, "not attempted yet")
        if not same_inputs(given, case):
            return None, Grade(False, f"case {number}: your function changes its input")
        results.append(result)
    return results, None


def _compare(exercise, results, expected, run):
    """Return the Grade of results that may be right or wrong."""
    within = exercise.tolerance
    pairs = list(zip(results, expected))
    wrong = [i for i, pair in enumerate(pairs) if not agrees(*pair, within)]
    if not wrong:
        count = f"{len(pairs)} cases" if len(pairs) > 1 else "right answer"
        return Grade(True, f"passed, {count}, tolerance {within:g}")
    for mistake in exercise.mistakes:
        theirs = run(mistake.answer)
        if theirs is not None and all(
            agrees(mine, other, within) for mine, other in zip(results, theirs)
        ):
            return Grade(False, mistake.message)
    told = exercise.is_function  # a value would be the whole answer
    problem = first_difference(*pairs[wrong[0]], within, tell=told)
    return Grade(False, (f"case {wrong[0] + 1}: " if told else "") + problem)


def hint(exercise_id, number=1):
    """Print a hint.

    Parameters
    ----------
    exercise_id : str
    number : int
        1 points the way, 2 says more.
    """
    exercise = find_exercise(exercise_id)
    if number not in (1, 2):
        raise BertError(f"number = {short(number)}, allowed: 1 or 2")
    print(f"{exercise_id}, hint {number} of 2: {exercise.hints[number - 1]}")


def show_solution(exercise_id):
    """Print the solution of an exercise.

    A teacher can hide them: with BERT_NP_SOLUTIONS=hidden in the
    environment, it says so instead.

    Parameters
    ----------
    exercise_id : str
    """
    source = solution_source(find_exercise(exercise_id))
    hidden = os.environ.get("BERT_NP_SOLUTIONS") == "hidden"
    print("solutions are hidden here: ask your teacher" if hidden else source)
