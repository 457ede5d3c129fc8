"""my_bert.py: the student's own BERT, made of the answers that passed.

`check` keeps each passed answer there as source, one part for each
exercise, with the imports and helpers that it needs.
"""

import ast
import contextlib
import inspect
import linecache
import os
import re
import symtable
import sys
import textwrap
import types
from itertools import takewhile
from pathlib import Path

import numpy as np

from bert_np.course.answers import in_the_form_of
from bert_np.course.attempts import line_of, read_value, undisturbed
from bert_np.course.exercise import all_exercises
from bert_np.course.grading import grade
from bert_np.errors import BertError, require_bool, short

HEAD = '''"""My BERT: the answers that passed, kept by check().

A part is replaced when a newer answer to its exercise passes. The file can
be read, changed and run like any other.
"""
'''
MARK = re.compile(r"^# ---- (\d\d\.\w+): .*\n", re.MULTILINE)


class NotKept(Exception):
    """Why an answer cannot be kept."""


def kept_file():
    """Return the file that passed answers are kept in; None for nowhere.

    In a notebook that is my_bert.py beside it. The environment variable
    BERT_NP_MY_BERT names another file, which counts outside notebooks,
    too; if it is empty, nothing is kept.
    """
    named = os.environ.get("BERT_NP_MY_BERT")
    if named is not None:
        return Path(os.path.expanduser(named)) if named else None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return None if shell is None else Path("my_bert.py")


def keep(exercise, answer):
    """Keep a passed answer; return a sentence about it, or nothing."""
    path = kept_file()
    if path is None:
        return ""
    try:
        with undisturbed():
            _write_part(path, exercise, answer)
    except KeyboardInterrupt:
        raise
    except OSError as error:
        return f" Not kept in {path.name}: {error.strerror or type(error).__name__}."
    except BaseException as error:
        reason = error if isinstance(error, NotKept) else type(error).__name__
        return f" Not kept in {path.name}: {reason}."
    return f" Kept in {path.name}." if exercise.is_function else ""


def _write_part(path, exercise, answer):
    """Put an answer's source in its place among the others."""
    head, parts = read_parts(path)
    parts.pop(exercise.id, None)
    order = list(all_exercises())
    parts[exercise.id] = _part(exercise, answer, parts)
    ids = [i for i in order if i in parts] + [i for i in parts if i not in order]
    texts = [f"# ---- {i}: {_title(i)}\n{parts[i].strip()}\n" for i in ids]
    _replace(path, "\n\n".join([head.rstrip() + "\n", *texts]))


def _part(exercise, answer, parts):
    """Return source that gives the answer without any other code."""
    if not exercise.is_function:
        value = in_the_form_of(read_value(answer), exercise.solution)
        return f"{exercise.name} = {_without_arrays(value)!r}"
    text = _source(answer, answer_name(exercise), _earlier(exercise, parts))
    found = run_parts(parts | {exercise.id: text})[exercise.id]
    passed, message = (
        (None, found) if isinstance(found, str) else grade(exercise.id, found)
    )
    if not passed:
        raise NotKept(f"run by itself it does not pass: {message.splitlines()[0]}")
    return text


def _without_arrays(value):
    """Return a value with lists and numbers in place of arrays."""
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _earlier(exercise, parts):
    """Return the parts that an exercise comes after, by the names they define."""
    before = takewhile(lambda other: other.id != exercise.id, all_exercises().values())
    return {
        answer_name(other): parts[other.id] for other in before if other.id in parts
    }


def answer_name(exercise):
    """Return the name of the function or the variable that an answer gets."""
    return exercise.solution.__name__ if exercise.is_function else exercise.name


def _title(exercise_id):
    exercise = all_exercises().get(exercise_id)
    return exercise.title if exercise else "an exercise of another edition"


def _replace(path, text):
    """Write a file in one step, so that nobody ever reads half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def read_parts(path):
    """Return (what stands before the first part, {exercise id: source})."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return HEAD, {}
    except UnicodeDecodeError:
        raise NotKept("the file there is not UTF-8 text") from None
    head, *rest = MARK.split(text)
    return head, dict(zip(rest[::2], rest[1::2]))


def run_parts(parts):
    """Run the source of each part; return {id: what it defines, or why not}.

    A part sees the answers of earlier ones, and helpers of its own.
    """
    known, found = {}, {}
    for exercise_id, exercise in all_exercises().items():
        if exercise_id not in parts:
            continue
        names, name = {"__name__": "my_bert", **known}, answer_name(exercise)
        place, text = f"<my_bert.py, {exercise_id}>", parts[exercise_id]
        linecache.cache[place] = (len(text), None, text.splitlines(True), place)
        try:
            with undisturbed():
                exec(compile(text, place, "exec"), names)
            known[name] = found[exercise_id] = names[name]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            found[exercise_id] = line_of(error)
    return found


# ------------------------------------------------------------- source


def _source(function, name, earlier):
    """Return source that defines a function by this name, with its helpers.

    What an earlier part defines by the same name and in the same words is not
    repeated.
    """
    parts = {}
    _collect(name, function, parts, earlier)
    imports = {text for text in parts.values() if text.startswith(("import", "from"))}
    rest = [text for text in parts.values() if text not in imports]
    return "\n\n\n".join(["\n".join(sorted(imports))] * bool(imports) + rest)


def _collect(name, value, parts, earlier):
    """Add the statement that defines a name, after those that it needs."""
    if name in parts:
        return
    imported = _import(name, value)
    if imported or not isinstance(value, types.FunctionType):
        parts[name] = imported or _constant(name, value)
        if "np.array(" in parts[name]:
            parts["np"] = "import numpy as np"
        return
    text, defined = _definition(value)
    if defined == name and text in earlier.get(name, ""):
        return
    parts[name], known = "", value.__globals__  # the name is there: it may call itself
    for other in sorted(_global_names(text) & known.keys() - {"__builtins__", defined}):
        _collect(other, known[other], parts, earlier)
    del parts[name]
    parts[name] = text if defined == name else f"{text}\n\n\n{name} = {defined}"


def _definition(function):
    """Return (the source of a student's function, the name it defines)."""
    try:
        text = textwrap.dedent(inspect.getsource(function)).strip()
        (statement,) = ast.parse(text).body
    except Exception:
        raise NotKept("its source cannot be found") from None
    if isinstance(statement, ast.FunctionDef):
        return text, statement.name
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
        return text, getattr(statement.targets[0], "id", "")
    raise NotKept("give the function a name, with def")


def _global_names(text):
    """Return the global names that a source refers to."""
    tables, names = [symtable.symtable(text, "my_bert", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        if table.get_type() == "module":
            names |= {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return names


def _import(name, value):
    """Return the import that gives a name this value, or nothing."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__}" + f" as {name}" * (value.__name__ != name)
    own = getattr(value, "__name__", name)
    if not isinstance(own, str):
        return ""
    for module in ("bert_np", getattr(value, "__module__", None), "numpy"):
        place = sys.modules.get(module) if module != "__main__" else None
        if place is not None and getattr(place, own, None) is value:
            return f"from {module} import {own}" + f" as {name}" * (own != name)
    return ""


def _constant(name, value):
    """Return the assignment that gives a name a number, a text or an array."""
    kind = ""
    if isinstance(value, np.ndarray) and value.size <= 64:
        value, kind = value.tolist(), f", {value.dtype.str!r}"
    text = repr(value)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        text = ""
    if not 0 < len(text) < 1000:
        kind = type(value).__name__
        raise NotKept(f"{name} is of type {kind}, whose source cannot be found")
    return f"{name} = np.array({text}{kind})" if kind else f"{name} = {text}"


# ------------------------------------------------------- what is done


def load_my_bert(path=None, show=True):
    """Return the functions of the course: yours where they pass.

    What you have not answered yet, or what no longer passes, is the
    course's, so that nothing is missing.

    Parameters
    ----------
    path : str or Path
        By default where `check` keeps passed answers.
    show : bool
        Print a table of what is yours and what is the course's.

    Returns
    -------
    types.SimpleNamespace
        Every function of the exercises by its name, such as my_softmax.
    """
    require_bool("show", show)
    path, parts = _kept(path)
    found, functions, lines = run_parts(parts), {}, []
    for i, exercise in all_exercises().items():
        if not exercise.is_function:
            continue
        mine = found.get(i, "not answered yet")
        if callable(mine):
            result = grade(i, mine)
            mine = mine if result.passed else result.message.splitlines()[0]
        whose = "yours" if callable(mine) else f"the course's ({mine})"
        functions[answer_name(exercise)] = mine if callable(mine) else exercise.solution
        lines.append(f"{i:22} {answer_name(exercise):24} {whose}")
    yours = [line for line in lines if line.endswith("  yours")]
    lines.append(f"{len(yours)} of {len(lines)} functions are yours, from {path.name}")
    if show:
        print("\n".join(lines))
    return types.SimpleNamespace(**functions)


def progress(path=None):
    """Print what is done in each chapter, and what is kept.

    Parameters
    ----------
    path : str or Path
        By default where `check` keeps passed answers.
    """
    path, parts = _kept(path)
    chapters, exercises = {}, all_exercises()
    for i in exercises:
        chapters.setdefault(i[:2], []).append(i)
    for chapter, ids in chapters.items():
        still = [i for i in ids if i not in parts]
        left = f"open: {', '.join(still)}" if still else "all done"
        print(f"{chapter}   {len(ids) - len(still)} of {len(ids)}   {left}")
    done = [exercises[i] for i in parts if i in exercises]
    names = [answer_name(exercise) for exercise in done if exercise.is_function]
    print(f"{len(done)} of {len(exercises)} exercises are done")
    print(f"{path.name} holds {', '.join(names) or 'no function yet'}")


def _kept(path):
    """Return (the file of passed answers, its parts)."""
    if not isinstance(path, (str, os.PathLike, type(None))):
        raise BertError(f"path = {short(path)}, allowed: a path")
    path = Path(path) if path is not None else kept_file() or Path("my_bert.py")
    try:
        return path, read_parts(path)[1]
    except (OSError, ValueError, NotKept) as error:
        raise BertError(f"{path.name} cannot be read: {error}") from None
