"""The library's own source, so that the code shown is the code that runs."""

import ast
import inspect
import textwrap

from bert_np.errors import BertError


def show_source(function):
    """Print the source of a function without its docstring and decorator.

    Parameters
    ----------
    function : function
        One written in Python, such as bert_np.softmax.
    """
    print(source_without_docstring(function))


def source_without_docstring(function):
    """Return the source of a function without its docstring and decorator."""
    if not inspect.isfunction(function):
        kind = type(function).__name__
        raise BertError(f"function is a {kind}, allowed: a function in Python")
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        name = function.__name__
        raise BertError(f"the source of function {name} cannot be found") from None
    definition = ast.parse(text).body[0]
    lines = text.splitlines()
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines[definition.lineno - 1 :]).rstrip()
