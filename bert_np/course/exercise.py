"""What an exercise is, and the register of all of them."""

import importlib
import inspect
import pkgutil
from typing import Any, NamedTuple

from bert_np.course import exercises
from bert_np.errors import BertError, short


class Mistake(NamedTuple):
    """A well-known wrong answer, and what to tell a student who gives it.

    Like the solution, it is a function of the same arguments or a value.
    """

    answer: Any
    message: str


def mistakes(*functions):
    """Return wrong functions as Mistakes; what to tell is their docstring."""
    return tuple(Mistake(f, " ".join((f.__doc__ or "").split())) for f in functions)


class Exercise(NamedTuple):
    """One task of the course.

    The answer is a function, compared with the solution on every case,
    or a value, compared with the solution itself.
    """

    id: str  # "chapter.name", such as "03.softmax"
    title: str
    level: int  # 1 easy, 2 medium, 3 hard
    minutes: int
    task: str  # what to do, in plain words
    hints: tuple  # of two strings; the second says more
    solution: Any  # a function or a value
    mistakes: tuple  # of at least two Mistakes
    cases: tuple = ()  # of tuples of literal arguments; () for a value
    tolerance: float = 1e-6  # largest absolute difference allowed
    draw: Any = None  # a function of a Generator that returns one more case
    name: str = ""  # of the variable that holds a value
    why: str = ""  # one sentence for whoever has the right answer

    @property
    def is_function(self):
        """Whether a function is asked for rather than a value."""
        return callable(self.solution)


class Prediction(NamedTuple):
    """A question to guess at before a cell is run, and what it shows."""

    id: str  # "chapter.name", such as "03.sat"
    question: str
    answer: Any  # a number, a word such as "yes", or a list
    why: str  # one sentence


def all_exercises():
    """Return every exercise of the course, in order, as a dict by id.

    Each module of bert_np/course/exercises lists its own in EXERCISES.
    """
    return _all("EXERCISES")


def all_predictions():
    """Return every prediction of the course as a dict by id."""
    return _all("PREDICTIONS")


def _all(register):
    """Return what the modules of the chapters list under a name, by id."""
    names = sorted(m.name for m in pkgutil.iter_modules(exercises.__path__))
    modules = [importlib.import_module(f"{exercises.__name__}.{n}") for n in names]
    return {one.id: one for m in modules for one in getattr(m, register, ())}


def find_exercise(exercise_id):
    """Return the exercise with this id, such as "03.softmax"."""
    return _find(exercise_id, all_exercises())


def find_prediction(prediction_id):
    """Return the prediction with this id, such as "03.sat"."""
    return _find(prediction_id, all_predictions())


def _find(wanted, known):
    """Return the entry with this id, or name those of the same chapter."""
    if not isinstance(wanted, str) or wanted not in known:
        chapter = wanted[:2] if isinstance(wanted, str) else ""
        near = [name for name in known if name[:2] == chapter] or sorted(
            {name[:2] + "…" for name in known}
        )
        raise BertError(f"id = {short(wanted)}, allowed: {', '.join(near)}")
    return known[wanted]


def stub(exercise):
    """Return the source of the cell that a student begins with.

    It holds a function without a body, or a variable set to `...`, and
    the line that checks it.
    """
    if exercise.is_function:
        head = solution_source(exercise).split("\n    ", 1)[0]
        name = exercise.solution.__name__
        start = f"{head}\n    ...  # your code\n\n"
    else:
        name = exercise.name
        start = f"{name} = ...  # your answer\n"
    return f'{start}check("{exercise.id}", {name})'


def solved(exercise):
    """Return the same cell with the solution filled in."""
    name = exercise.solution.__name__ if exercise.is_function else exercise.name
    gap = "\n\n" if exercise.is_function else "\n"
    return f'{solution_source(exercise)}{gap}check("{exercise.id}", {name})'


def solution_source(exercise):
    """Return the solution as source text."""
    if exercise.is_function:
        return inspect.getsource(exercise.solution).rstrip()
    return f"{exercise.name} = {exercise.solution!r}"
