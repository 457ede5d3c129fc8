"""Intermediate results, recorded under the names of the parameters."""

import numpy as np

from bert_np.errors import BertError


def record(trace, **arrays):
    """Store named intermediate results, or do nothing if trace is None.

    Copies are stored, so that later arithmetic in place cannot change
    them. A value of None is not stored.

    Parameters
    ----------
    trace : dict or None
    **arrays : ndarray

    Raises
    ------
    BertError
        If a name is recorded twice: a trace holds one forward pass.
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
    """Open the sub-trace of a named part: a dict, or None without a trace.

    Parameters
    ----------
    trace : dict or None
    name : str
    empty : list, optional
        What the part starts as, if not as a dict.

    Raises
    ------
    BertError
        If the part has been traced already.
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
