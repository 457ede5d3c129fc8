"""A training run as one value, and the file that holds it.

A run is a dict:
    step : int, the number of updates made
    params : the parameter tree
    adam : the optimiser's state
    history : list with one dict of metrics for each step
    rng : the state of the random generator after the step
It is never written to; each step makes a new one. So a run can be stopped
at any moment, and the last complete step is still there.
"""

import numpy as np

from bert_np.errors import BertError
from bert_np.parameters import parameter_shapes
from bert_np.training.adam import init_adam
from bert_np.training.archive import (
    check_identity,
    read_arrays,
    take_trees,
    write_arrays,
)
from bert_np.training.inputs import (
    check_float_tree,
    check_rng,
    check_run,
    check_saving,
)
from bert_np.tree import leaves

TREES = ("params", "m", "v")


def start_run(params, rng):
    """Return the run before its first step.

    Parameters
    ----------
    params : dict
        The parameter tree.
    rng : numpy.random.Generator

    Returns
    -------
    dict
    """
    check_rng(rng)
    return {
        "step": 0,
        "params": params,
        "adam": init_adam(params),
        "history": [],
        "rng": rng.bit_generator.state,
    }


def save_run(path, run, config, settings):
    """Write a run to a file, either completely or not at all.

    The file is written under another name beside path and then renamed.
    If the process is killed on the way, the old file is still there.

    Parameters
    ----------
    path : str or Path
        An .npz file; nothing in it is pickled.
    run : dict
    config : BertConfig
    settings : TrainingSettings
    """
    path = check_saving(path, config, settings)
    check_run(run)
    facts = {"step": run["step"], "rng": run["rng"]} | _identity(config, settings)
    try:
        arrays = _arrays_of(run)
        write_arrays(path, arrays, facts)
    except (LookupError, TypeError) as error:
        raise BertError(f"run: not what train_step returns ({error})") from None


def _arrays_of(run):
    """Return all arrays of a run, and a column for each of its metrics."""
    trees = {"params": run["params"], "m": run["adam"]["m"], "v": run["adam"]["v"]}
    check_float_tree("run", trees)
    arrays = dict(leaves(trees))
    for name in run["history"][0] if run["history"] else ():
        column = np.array([entry[name] for entry in run["history"]])
        if column.dtype.kind not in "iuf":  # anything else would be pickled
            raise TypeError(f"history: {name} holds {column.dtype}")
        arrays[f"history.{name}"] = column
    return arrays


def load_run(path, config, settings):
    """Read a run that save_run wrote for the same model and settings.

    Parameters
    ----------
    path : str or Path
    config : BertConfig
    settings : TrainingSettings

    Returns
    -------
    dict

    Raises
    ------
    BertError
        If the file is not a complete run, or belongs to another model or
        other settings.
    """
    path = check_saving(path, config, settings)
    arrays, facts = read_arrays(path)
    try:
        check_identity(path, facts, _identity(config, settings))
        trees = take_trees(arrays, TREES, _shapes_of_parts(arrays, config))
        names = [name for name in arrays if name.startswith("history.")]
        history = [
            {name.removeprefix("history."): arrays[name][i].item() for name in names}
            for i in range(facts["step"])
        ]
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, BertError):
            raise
        raise BertError(f"{path.name}: not a training run ({error})") from None
    adam = {"step": facts["step"], "m": trees["m"], "v": trees["v"]}
    return {
        "step": facts["step"],
        "params": trees["params"],
        "adam": adam,
        "history": history,
        "rng": _with_arrays(facts["rng"]),
    }


def _shapes_of_parts(arrays, config):
    """Return the shapes of the parts that a run trains: heads may be absent."""
    found = {name.split(".")[1] for name in arrays if name.startswith("params.")}
    shapes = parameter_shapes(config, heads=True)
    needed = found | {"embeddings", "layers"}
    return {part: shape for part, shape in shapes.items() if part in needed}


def _identity(config, settings):
    return {"config": config.to_dict(), "settings": settings._asdict()}


def _with_arrays(state):
    """Return a generator's state with its lists turned back into arrays."""
    return {
        name: _with_arrays(value)
        if isinstance(value, dict)
        else np.array(value, np.uint64)
        if isinstance(value, list)
        else value
        for name, value in state.items()
    }
