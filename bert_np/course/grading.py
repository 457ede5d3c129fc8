"""The grade of an answer: right, or wrong and why."""

from typing import NamedTuple

import numpy as np

from bert_np.course.answers import first_difference, in_the_form_of
from bert_np.course.attempts import (
    NOTHING,
    Trouble,
    attempt,
    is_untouched,
    name_of,
    read_value,
    undisturbed,
    unfit,
)
from bert_np.course.exercise import find_exercise

FRESH_CASES = 20
FIRST_FRESH = 1000  # the number of a fresh case is the seed that it is drawn with


class Grade(NamedTuple):
    """The outcome of a check; `passed` is None if nothing was attempted."""

    passed: bool | None
    message: str


UNTOUCHED = Grade(None, "not attempted yet")


def grade(exercise_id, answer):
    """Compare an answer with the solution and return the outcome.

    `check` without the printing, for autograders. A function is run on the
    exercise's own cases, then on others that are drawn afresh each time.

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
        return UNTOUCHED
    with undisturbed():
        if exercise.is_function:
            return _grade_function(exercise, answer)
        return _grade_value(exercise, read_value(answer))


def _grade_function(exercise, answer):
    """Return the Grade of a function, by the stored cases and by fresh ones."""
    problem = unfit(answer, exercise.solution)
    if problem is not None:
        return Grade(False, problem)
    if is_untouched(answer):
        return UNTOUCHED
    stored = dict(enumerate(exercise.cases, 1))
    problem = _problem(exercise, answer, stored)
    if problem is None:
        fresh = _fresh_cases(exercise)
        problem = _problem(exercise, answer, stored | fresh)
    if problem is not None:
        return Grade(False, problem)
    count = f"{len(stored)} cases and {len(fresh)} drawn afresh"
    text = f"passed, {count}, tolerance {exercise.tolerance:g}"
    return Grade(True, f"{text}. {exercise.why}".strip())


def _grade_value(exercise, answer):
    """Return the Grade of a value that may be right or wrong."""
    if isinstance(answer, Trouble):
        return Grade(False, answer.message)
    problem = _difference(exercise, answer, exercise.solution)
    if problem is None:
        return Grade(True, f"passed. {exercise.why}")
    for mistake in exercise.mistakes:
        if _difference(exercise, answer, mistake.answer) is None:
            return Grade(False, mistake.message)
    return Grade(False, problem)


def _difference(exercise, answer, expected):
    """Say where an answer differs from a given one, in the exercise's terms."""
    if isinstance(answer, Trouble):
        return answer.message
    if not exercise.is_function:  # the right value would be the whole answer
        answer = in_the_form_of(answer, expected)
    tell = exercise.is_function
    return first_difference(answer, expected, exercise.tolerance, tell)


def _fresh_cases(exercise):
    """Return newly drawn cases by number, so that nobody can know them."""
    seeds = np.random.default_rng().integers(FIRST_FRESH, 10**6, FRESH_CASES)
    return {seed: case_of(exercise, seed) for seed in seeds.tolist()}


def case_of(exercise, number):
    """Return a case by its number: a stored one, or one drawn with that seed."""
    if 1 <= number <= len(exercise.cases):
        return exercise.cases[number - 1]
    return exercise.draw(np.random.default_rng(number))


def _problem(exercise, function, cases):
    """Say what is wrong with a function, and why if that is known."""
    mine = {n: attempt(function, case) for n, case in cases.items()}
    right = {n: attempt(exercise.solution, case) for n, case in cases.items()}
    problems = {n: _difference(exercise, mine[n], right[n]) for n in cases}
    wrong = [n for n, problem in problems.items() if problem is not None]
    if not wrong:
        return None
    for mistake in exercise.mistakes:
        if _is_that(exercise, mistake, mine, cases):
            return mistake.message
    if all(getattr(mine[n], "kind", "") == "nothing" for n in cases):
        return NOTHING
    first = wrong[0]
    link = " " if problems[first].startswith("raises") else ": "
    other = name_of(function) != exercise.solution.__name__
    show = f'show_case("{exercise.id}", {first}{", your_function" * other}) shows it'
    stop = "\n  " if "\n" in problems[first] else "; "
    return f"case {first}{link}{problems[first]}{stop}{show}"


def _is_that(exercise, mistake, mine, cases):
    """Return whether a known mistake gives the same in all cases."""
    for n, case in cases.items():
        theirs = attempt(mistake.answer, case)
        if isinstance(theirs, Trouble) or isinstance(mine[n], Trouble):
            if type(theirs) is not type(mine[n]) or theirs.kind != mine[n].kind:
                return False
        elif _difference(exercise, mine[n], theirs) is not None:
            return False
    return not all(isinstance(result, Trouble) for result in mine.values())
