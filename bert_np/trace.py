"""Intermediate results: record them beside the parameters' names."""

import numpy as np

from bert_np.errors import BertError


def record(trace, **arrays):
    """Store named intermediate results; does nothing where trace is None.

    The trace gets copies, so that later arithmetic in place leaves it
    alone. A value of None is not stored.

    Parameters
    ----------
    trace : dict or None
    **arrays : ndarray

    Raises
    ------
    BertError
        Where a name is recorded twice: a trace holds one forward pass.
    """
    if trace is None:
        return
    for name, array in arrays.items():
        if name in trace:
            raise BertError(
                f"trace[{name!r}] is recorded already; "
                "pass a new dict for each forward pass"
            )
        if array is not None:
            trace[name] = np.array(array)


def branch(trace, name, empty=None):
    """The sub-trace of a named part: a new dict, or None without a trace.

    Parameters
    ----------
    trace : dict or None
    name : str
    empty : list, optional
        What the part starts with, where it is not a dict.

    Raises
    ------
    BertError
        Where the part has been traced already.
    """
    if trace is None:
        return None
    if name in trace:
        raise BertError(
            f"trace[{name!r}] is recorded already; "
            "pass a new dict for each forward pass"
        )
    trace[name] = {} if empty is None else empty
    return trace[name]
