"""Check the arguments of a function against its own docstring.

The equations check nothing. What their docstrings promise is checked by
``@checked``, which reads the Parameters section once and then, at each
call, refuses what does not fit it. So each line of that section is a
check, and the body of the function needs none.

Arrays: lists, integers and bools become float64, float16 becomes float32.
NaN and infinity are let through and give what floating-point arithmetic
gives, without a warning: the softmax of a row that holds infinity is NaN.
"""

import re
from functools import wraps
from numbers import Integral, Real

import numpy as np

from bert_np.errors import BertError, short

ARRAY = re.compile(
    r"ndarray(?: of (int|bool))? (of shape|that broadcasts to) \((.*?)\)"
)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
KINDS = {  # how a docstring describes an array -> NumPy's letters, and in words
    "int": ("iu", "integers"),
    "bool": ("b", "bools"),
    "any dtype": ("fiub", "numbers"),
    None: ("fiub", "numbers"),
}


def checked(function):
    """Decorate a function so that its documented arguments are checked."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    checks = {n: _check_of(n, kind) for n, kind in documented_kinds(function).items()}

    @wraps(function)
    def wrapper(*args, **options):
        given = dict(zip(names, args))
        if len(args) > code.co_argcount or given.keys() & options.keys():
            return function(*args, **options)  # Python's own TypeError
        given, sizes = given | options, {}
        for name in given:
            if name in checks:
                given[name] = checks[name](given[name], sizes)
        try:
            with np.errstate(all="ignore"):
                return function(**given)
        except BertError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
            raise BertError(f"{function.__name__}: {why}") from error

    return wrapper


def documented_kinds(function):
    """Return {name: kind} of the Parameters section of a docstring.

    >>> documented_kinds(checked)
    {}
    """
    text = function.__doc__ or ""
    found = re.search(r"Parameters\n *-+\n(.*?)(\n *\w+\n *---|\Z)", text, re.S)
    lines = re.findall(r"^ *(\w[\w, ]*) : (.+)$", found[1] if found else "", re.M)
    return {name: kind for names, kind in lines for name in names.split(", ")}


def _check_of(name, kind):
    """Return the function of (value, sizes) that checks a documented kind."""
    array, optional = ARRAY.match(kind), kind.endswith((", optional", " or None"))
    if array:
        dtype, relation, letters = array.groups()
        axes = [axis for axis in letters.replace(" ", "").split(",") if axis]
        axes = axes if relation == "of shape" else ["..."]

        def check(value, sizes):
            if optional and value is None:
                return None
            if dtype or type(value) is not np.ndarray or value.dtype not in FLOATS:
                value = _as_array(name, value, dtype)
            if not _fits(value.shape, axes, sizes):
                raise BertError(_wrong_shape(name, value.shape, axes, sizes))
            return value

    else:
        allowed = kind.removesuffix(", optional").removesuffix(" or None")

        def check(value, sizes):
            if (optional and value is None) or _is_a(value, allowed):
                return value
            raise BertError(f"{name} = {short(value)}, allowed: {kind}")

    return check


def _is_a(value, kind):
    """Say whether a value is what a docstring calls int, dict, list of dict, ..."""
    if isinstance(value, (bool, np.bool_)):
        return kind == "bool"
    if kind in ("int", "float"):
        return isinstance(value, Integral if kind == "int" else Real)
    if kind == "float in 0..1":
        return isinstance(value, Real) and 0 <= value <= 1
    # By name, since configs and generators are made in other modules.
    name = kind.split(" of ")[0].rpartition(".")[2]
    return name in [ancestor.__name__ for ancestor in type(value).__mro__]


def _as_array(name, value, dtype):
    """Return an array of float32 or float64, or of integers or bools."""
    allowed, words = KINDS[dtype]
    try:
        if np.ma.isMaskedArray(value):
            raise ValueError("a masked array")
        array = np.asarray(value)
    except Exception as error:  # an object in a list may raise anything
        raise BertError(f"{name} is not an array of {words}: {error!s:.150}") from None
    if array.dtype.kind not in allowed or array.dtype.itemsize > 8:
        raise BertError(f"{name} has dtype {array.dtype}, allowed: {words}")
    if dtype == "int" and (array < 0).any():
        raise BertError(f"{name} holds {array.min()}, allowed: integers >= 0")
    if dtype is None and array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _fits(shape, axes, sizes):
    """Say whether a shape has these axes; note the size of each new letter."""
    lead = len(shape) - len(axes) + 1 if axes[:1] == ["..."] else 0
    rest = axes[1:] if axes[:1] == ["..."] else axes
    if lead < 0 or len(shape) != lead + len(rest):
        return False
    return all(sizes.setdefault(x, n) == n for x, n in zip(rest, shape[lead:]))


def _wrong_shape(name, shape, axes, sizes):
    known = ", ".join(f"{axis} = {sizes[axis]}" for axis in axes if axis in sizes)
    letters = ", ".join(axes) + "," * (len(axes) == 1)
    allowed = f"({letters})" + (f" with {known}" if known else "")
    return f"{name} has shape {shape}, allowed: {allowed}"
