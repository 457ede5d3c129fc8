"""A file of arrays and facts: what a run can be resumed from.

An .npz file in which nothing is pickled, with the facts as JSON.
"""

import json
import os
import zipfile
from contextlib import suppress

import numpy as np

from bert_np.errors import BertError, short
from bert_np.tree import map_leaves


def read_arrays(path):
    """Return the arrays of a file, and its facts as a dict."""
    broken = (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile)
    try:
        with open(path, "rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
    except broken as error:
        raise BertError(f"{path.name}: cannot be read as a run ({error})") from None
    try:
        return arrays, dict(json.loads(str(arrays.pop("facts"))))
    except (LookupError, ValueError, TypeError) as error:
        raise BertError(f"{path.name}: not a training run ({error})") from None


def write_arrays(path, arrays, facts):
    """Write arrays, and a dict of facts as JSON, completely or not at all."""
    text = np.array(json.dumps(facts, default=np.ndarray.tolist))
    _write_atomically(path, lambda file: np.savez(file, **arrays, facts=text))


def check_identity(path, found, wanted):
    """Refuse a file of another model, other settings or other data."""
    for group, values in wanted.items():
        for name, value in values.items():
            if found[group].get(name) != value:
                raise BertError(
                    f"{path.name}: its {name} is {short(found[group].get(name))}, "
                    f"this run's is {short(value)}; use the same, or another file"
                )


def take_trees(arrays, names, shapes):
    """Return {name: tree} of arrays that have these shapes."""
    wanted = dict.fromkeys(names, shapes)
    return map_leaves(lambda path, shape: _take(arrays, path, shape), wanted)


def _take(arrays, name, shape):
    if arrays[name].shape != shape:
        raise ValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
    return arrays[name]


def _write_atomically(path, write):
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        raise BertError(f"{path.name} cannot be written: {error}") from None
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink()
