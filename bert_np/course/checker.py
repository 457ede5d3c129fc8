"""What a student calls: check an answer, show a case, a hint, a solution."""

import inspect
import os
import sys

from bert_np.course.answers import shown
from bert_np.course.attempts import Trouble, attempt, undisturbed
from bert_np.course.exercise import find_exercise, solution_source
from bert_np.course.grading import FIRST_FRESH, case_of, grade
from bert_np.course.my_bert import keep
from bert_np.errors import BertError, short

OURS_RUNS = "the course's function runs here until yours passes its check"


def check(exercise_id, answer):
    """Compare an answer with the solution and print what was found.

    In a notebook, an answer that passes is kept in my_bert.py beside it.
    An untouched answer (the stub of a function, None or `...`) is not an
    error, and nothing that an answer does wrong raises one here, so that
    "Run All" reaches the end of the notebook. To stop a function that
    never ends, interrupt the kernel.

    Parameters
    ----------
    exercise_id : str
        Such as "03.softmax".
    answer : function or value
        What the exercise asks for.
    """
    result = grade(exercise_id, answer)
    kept = keep(find_exercise(exercise_id), answer) if result.passed else ""
    print(f"{exercise_id}: {result.message}{kept}")


# ------------------------------------------------------------- a case


def show_case(exercise_id, number, answer=None):
    """Print one case of a check: its inputs, your result and the right one.

    The right result is left out where a teacher hides the solutions, with
    BERT_NP_SOLUTIONS=hidden in the environment.

    Parameters
    ----------
    exercise_id : str
        Of an exercise that asks for a function.
    number : int
        As the message of `check` gives it. The exercise's own cases are
        numbered from 1 on; a number from 1000 on is the seed from which
        a case is drawn again.
    answer : function
        Your function; by default the one that has the name of the
        exercise's function, such as my_softmax, where you call this.
    """
    exercise = find_exercise(exercise_id)
    if not exercise.is_function:
        return print(f"{exercise_id} asks for a value: there are no cases to show")
    _require_case(exercise, number)
    name = exercise.solution.__name__
    with undisturbed():
        case = case_of(exercise, number)
    if answer is None:
        frame = sys._getframe(1)
        answer = (frame.f_globals | frame.f_locals).get(name)
    print(f"{exercise_id}, case {number}")
    for parameter, value in zip(inspect.signature(exercise.solution).parameters, case):
        print(shown(parameter, value))
    if callable(answer):
        mine = attempt(answer, case)
        trouble = isinstance(mine, Trouble)
        print(f"problem: {mine.message}" if trouble else shown("your result", mine))
    else:
        print(f"your result: no {name} here; give your function as the third argument")
    right = attempt(exercise.solution, case)
    hidden = "right result: hidden here; ask your teacher"
    print(hidden if _are_hidden() else shown("right result", right))


def _require_case(exercise, number):
    """Refuse a number that no case has."""
    count = len(exercise.cases)
    known = type(number) is int and (1 <= number <= count or number >= FIRST_FRESH)
    if not known:
        allowed = f"1 to {count}, or the number of a case drawn afresh"
        raise BertError(f"number = {short(number)}, allowed: {allowed}")


HIDDEN = "solutions are hidden here: ask your teacher"


def _are_hidden():
    return os.environ.get("BERT_NP_SOLUTIONS") == "hidden"


def working(exercise_id, answer):
    """Return your function if it passes its check, else the course's.

    A chapter goes on with what you wrote, but never depends on it. One
    line says whose function runs.

    Parameters
    ----------
    exercise_id : str
        Of an exercise that asks for a function.
    answer : function

    Returns
    -------
    function
    """
    exercise = find_exercise(exercise_id)
    if not exercise.is_function:
        raise BertError(
            f"id = {short(exercise_id)} asks for a value, allowed: one for a function"
        )
    passed = grade(exercise_id, answer).passed
    print(f"{exercise_id}: {'yours runs here' if passed else OURS_RUNS}")
    return answer if passed else exercise.solution


def hint(exercise_id, number=1):
    """Print a hint.

    Parameters
    ----------
    exercise_id : str
    number : int
        1 points the way, 2 says more.
    """
    exercise = find_exercise(exercise_id)
    if type(number) is not int or number not in (1, 2):
        raise BertError(f"number = {short(number)}, allowed: 1 or 2")
    print(f"{exercise_id}, hint {number} of 2: {exercise.hints[number - 1]}")


def show_solution(exercise_id):
    """Print the solution of an exercise.

    A teacher can hide all solutions: with BERT_NP_SOLUTIONS=hidden in the
    environment, this prints only that they are hidden.

    Parameters
    ----------
    exercise_id : str
    """
    source = solution_source(find_exercise(exercise_id))
    print(HIDDEN if _are_hidden() else source)
