"""Running what a student wrote, so that nothing in it can stop the checker.

Whatever a function does, `attempt` gives back plain values, or a Trouble
that says what went wrong. Only an interrupt from the keyboard goes
through: it is how a student stops a function that never ends.
"""

import ast
import contextlib
import copy
import dis
import inspect
import linecache
import re
import sys
import textwrap
import traceback
import types
import warnings
from typing import NamedTuple

import numpy as np

from bert_np.course.answers import Other, same_inputs

NOTHING = "your function returns nothing: is a `return` missing?"
CHANGED = "your function changes its input: work on a copy of it"
MOST_PARTS = 10**6  # of a result that is looked at: no right one has nearly as many
VIEWS = (range, type({}.keys()), type({}.values()))
# What the compiler makes of a body that is empty, `...`, or a docstring.
EMPTY = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}


class Trouble(NamedTuple):
    """What a student's code did instead of giving an answer."""

    kind: str  # the name of an exception, "nothing" or "changed"
    message: str


def attempt(function, case):
    """Call a function on a copy of a case; return a plain value or Trouble."""
    given = copy.deepcopy(case)
    try:
        with undisturbed():
            result = plain(function(*given))
            changed = not same_inputs(given, case)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Trouble(type(error).__name__, f"raises {_told(error, function)}")
    if result is None:
        return Trouble("nothing", NOTHING)
    return Trouble("changed", CHANGED) if changed else result


def read_value(answer):
    """Return a student's value in plain types, or the Trouble it makes."""
    try:
        with undisturbed():
            return plain(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        name = type(error).__name__
        return Trouble(name, f"yours cannot be read: it raises {line_of(error)}")


@contextlib.contextmanager
def undisturbed():
    """Silence NumPy's warnings, and make exit() raise in notebooks too.

    There it would stop the kernel, and the student's work would be lost.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if shell is None:
            yield
            return
        shell.ask_exit = sys.exit
        try:
            yield
        finally:
            vars(shell).pop("ask_exit", None)


# ------------------------------------------------------- plain values


def plain(value):
    """Return a value as str, numbers, arrays, lists, tuples and dicts of them.

    So the checker compares and prints plain values only.
    None stands for None and `...`; anything unknown becomes an `Other`.
    """
    return _plain(value, iter(range(MOST_PARTS)))


def _plain(value, budget):
    """Return a value in plain types; each part of it takes one of the budget."""
    if next(budget, None) is None:
        raise ValueError(f"a result of more than {MOST_PARTS:,} parts")
    kind = type(value)
    if value is None or value is ...:
        return None
    if issubclass(kind, str):
        return str.__str__(value)
    if kind in (bool, int, float):
        return value
    if issubclass(kind, (np.ndarray, np.generic)):
        return _plain_array(value, budget)
    if issubclass(kind, dict):
        items = dict.items(value)
        return {_plain(key, budget): _plain(item, budget) for key, item in items}
    if issubclass(kind, tuple):
        return tuple(_plain(item, budget) for item in tuple.__iter__(value))
    if issubclass(kind, list):
        return [_plain(item, budget) for item in list.__iter__(value)]
    return _plain_object(value, budget)


def _plain_array(value, budget):
    """Return a copy in NumPy's own array type; lists for strings and objects."""
    if isinstance(value, np.ma.MaskedArray):
        return Other("a masked array")
    if value.size > MOST_PARTS:
        return Other(f"of the shape {value.shape}, far too large")
    array = np.array(value, subok=False)
    return array if array.dtype.kind in "biufc" else _plain(array.tolist(), budget)


def _plain_object(value, budget):
    """Return what a tensor, a view, a fraction or another object stands for."""
    kind = type(value)
    if issubclass(kind, VIEWS):
        return [_plain(item, budget) for item in value]
    if hasattr(value, "detach"):  # a tensor of PyTorch, perhaps on a GPU
        return _plain_array(np.asarray(value.detach().cpu().numpy()), budget)
    if hasattr(kind, "__array__"):
        return _plain_array(np.asarray(value), budget)
    if hasattr(kind, "__float__"):
        return float(value)
    if hasattr(kind, "__next__") or inspect.iscoroutine(value):
        getattr(value, "close", lambda: None)()
        return Other(f"of type {kind.__name__}, not its items: wrap it in list(…)")
    return Other(f"of type {kind.__name__}")


# ------------------------------------------------- what is no attempt


def unfit(function, solution):
    """Say why a function cannot be run on the cases; None if it can."""
    if not callable(function):
        kind = type(function).__name__
        text = f"the exercise asks for a function, yours is of type {kind}"
        return f"{text}; give {solution.__name__} itself, without calling it"
    right = inspect.signature(solution).parameters
    try:
        mine = inspect.signature(function)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a builtin, say, has none: then the call will tell
        return None
    try:
        mine.bind(*right)
    except TypeError:
        theirs, ours = ", ".join(mine.parameters), ", ".join(right)
        return f"yours has the parameters ({theirs}), the exercise asks for ({ours})"
    return None


def name_of(function):
    """Return the name that a function was defined with, or an empty string."""
    return function.__name__ if isinstance(function, types.FunctionType) else ""


def is_untouched(function):
    """Return whether a function is a stub: nothing but `...` and comments."""
    if name_of(function) in ("", "<lambda>"):
        return False
    if {step.opname for step in dis.get_instructions(function)} - EMPTY:
        return False
    return not any(isinstance(node, ast.Return) for node in ast.walk(tree_of(function)))


def tree_of(function):
    """Return the syntax tree of a function's source; an empty one if unknown."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except Exception:
        return ast.Module([], [])


# ------------------------------------------------------ what it raised


def _told(error, function):
    """Say what was raised, by which line, and which shapes that line has."""
    if isinstance(error, SystemExit):
        text = "SystemExit: it calls exit()"
    else:
        text = line_of(error)
    try:
        return text + _place(error, function)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a variable that cannot be asked for its shape, say
        return text


def line_of(error):
    """Return the first line of an exception, cut to 150 characters."""
    try:
        text = str(error).strip()
    except KeyboardInterrupt:
        raise
    except BaseException:
        text = "an error that cannot be printed"
    text = (text.splitlines() or [""])[0]
    name = type(error).__name__
    return f"{name}: {text[:150]}" if text else name


def _place(error, function):
    """Return the deepest line of the student's code that led to an error."""
    inside = (getattr(function, name, 0) for name in ("func", "pyfunc", "__call__"))
    parts = [part for part in (function, *inside) if hasattr(part, "__globals__")]
    homes = [id(part.__globals__) for part in parts]
    steps = traceback.walk_tb(error.__traceback__)
    own = [step for step in steps if id(step[0].f_globals) in homes]
    if not own:
        return ""
    frame, number = own[-1]
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    place = f"\n  line {number} of {frame.f_code.co_name}: {line[:150]}"
    known = frame.f_globals | frame.f_locals
    names = dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*", line))
    sizes = {name: getattr(known.get(name), "shape", None) for name in names}
    shapes = [f"{n} {tuple(size)}" for n, size in sizes.items() if size is not None]
    return place + ("\n  shapes: " + ", ".join(shapes) if shapes else "")
