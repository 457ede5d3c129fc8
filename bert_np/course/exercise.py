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
    """Return wrong functions as Mistakes; their docstring is the message."""
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


def all_exercises():
    """Return every exercise of the course, in order, as a dict by id.

    Each module of bert_np/course/exercises lists its own in EXERCISES.
    """
    names = sorted(m.name for m in pkgutil.iter_modules(exercises.__path__))
    modules = [importlib.import_module(f"{exercises.__name__}.{n}") for n in names]
    return {exercise.id: exercise for m in modules for exercise in m.EXERCISES}


def find_exercise(exercise_id):
    """Return the exercise with this id, such as "03.softmax"."""
    known = all_exercises()
    if not isinstance(exercise_id, str) or exercise_id not in known:
        chapter = exercise_id[:2] if isinstance(exercise_id, str) else ""
        near = [name for name in known if name[:2] == chapter] or sorted(
            {name[:2] + "…" for name in known}
        )
        raise BertError(f"id = {short(exercise_id)}, allowed: {', '.join(near)}")
    return known[exercise_id]


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
