"""A teacher's key to the course: all answers on one page of Markdown."""

import os
from pathlib import Path

from bert_np.course.answers import as_text
from bert_np.course.exercise import all_exercises, solution_source
from bert_np.course.predictions import PREDICTIONS
from bert_np.errors import BertError, short

TOP = """# Answers

What the course asks, chapter by chapter: first the predictions, then the exercises
with a solution, the reason, and the mistakes that the checker names.
"""


def write_answers(path):
    """Write the answers to all predictions and exercises into one file.

    Parameters
    ----------
    path : str or Path
        A new file; nothing is ever overwritten.

    Returns
    -------
    Path
        The new file, Markdown.
    """
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise BertError(f"path = {short(path)}, allowed: a path")
    target, text = Path(path), answer_key()
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BertError(f"path = {str(target)!r} exists, allowed: a new file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BertError(f"{target.name} cannot be written: {reason}") from None
    return target


def answer_key():
    """Return the answers to all predictions and exercises as Markdown."""
    exercises = all_exercises()
    parts = [TOP]
    for chapter in sorted({name[:2] for name in (*exercises, *PREDICTIONS)}):
        parts.append(f"## Chapter {chapter}\n")
        guesses = (item for item in PREDICTIONS.items() if item[0][:2] == chapter)
        parts += [prediction_text(*item) for item in guesses]
        tasks = (exercises[name] for name in exercises if name[:2] == chapter)
        parts += [exercise_text(exercise) for exercise in tasks]
    return "\n".join(parts)


def prediction_text(name, prediction):
    """Return the answer to a prediction, and its reason."""
    answer = prediction.answer
    parts = answer if isinstance(answer, (list, tuple)) else [answer]
    return f"**{name}** {', '.join(map(as_text, parts))}. {prediction.why}\n"


def exercise_text(exercise):
    """Return the task of an exercise, its solution, reason and mistakes."""
    head = f"### {exercise.id} · {exercise.title}\n\n{exercise.task}\n"
    code = f"```python\n{solution_source(exercise)}\n```\n"
    told = "\n".join(f"- {mistake.message}" for mistake in exercise.mistakes)
    why = [f"{exercise.why}\n"] if exercise.why else []
    return "\n".join(
        [head, code, *why, "Mistakes that the checker names:\n", f"{told}\n"]
    )
