"""Every check of what users hand to training.

Each function accepts its arguments, and may return them in one standard
form, or raises BertError with the argument, the value found and the values
allowed. Of large arrays it checks the type and the shape alone, so that a
step of training stays as quick; only ids, labels and rates are read.
"""

import sys
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from bert_np.config import require_config
from bert_np.errors import BertError, require_bool, require_callable, short
from bert_np.training.settings import TrainingSettings
from bert_np.tree import is_array, leaves

# A position with this label has no loss; PyTorch and HuggingFace agree.
IGNORED = -100
BATCH_KEYS = ("input_ids", "segment_ids", "attention_mask", "mlm_labels", "nsp_labels")
RUN_TYPES = {"step": int, "params": dict, "adam": dict, "history": list, "rng": dict}
MOST_WORDS = 10_000_000  # ten times the largest vocabulary in use
LARGEST = sys.float_info.max  # a number beyond it is no float
RANGES = {
    "a finite number >= 0": lambda value: 0 <= value <= LARGEST,
    "a number >= 0": lambda value: value >= 0,
    "a number > 0": lambda value: 0 < value <= LARGEST,
    "less than 1, at least 0": lambda value: 0 <= value < 1,
}
# What Adam's numbers must be, as arguments of adam and as settings.
ADAM_RANGES = {
    "beta1": "less than 1, at least 0",
    "beta2": "less than 1, at least 0",
    "eps": "a number > 0",
    "weight_decay": "a finite number >= 0",
}


# ------------------------------------------------------- losses and masking


def check_labels(logits, labels, count=None):
    """Refuse labels that do not fit the logits, and a count below 1."""
    _check_array("logits", logits, "f", "floats")
    _check_array("labels", labels, "iu", "integers")
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise BertError(f"logits have shape {logits.shape}, allowed: (..., V), V >= 1")
    if labels.shape != logits.shape[:-1]:
        raise BertError(
            f"labels have shape {labels.shape}, allowed: {logits.shape[:-1]}, "
            "the shape of the logits without its last axis"
        )
    classes = logits.shape[-1]
    wrong = (labels != IGNORED) & ((labels < 0) | (labels >= classes))
    if wrong.any():
        raise BertError(
            f"label {labels[wrong][0]}, allowed: 0..{classes - 1}, or {IGNORED} "
            "for an ignored position"
        )
    if count is not None:
        check_int("count", count, 1)


def check_targets(logits, labels, count, most=None):
    """Return the numbers to be predicted in the dtype of the logits."""
    _check_array("logits", logits, "f", "floats")
    _check_array("labels", labels, "iufb")
    if logits.ndim != 2:
        raise BertError(f"logits have shape {logits.shape}, allowed: (B, K)")
    if labels.shape != logits.shape:
        raise BertError(
            f"labels have shape {labels.shape}, allowed: {logits.shape}, "
            "the shape of the logits"
        )
    allowed = "a finite number" if most is None else f"0..{most}"
    inside = np.isfinite(labels) if most is None else (labels >= 0) & (labels <= most)
    for wrong in labels[~inside][:1]:
        raise BertError(f"labels hold {wrong}, allowed: {allowed}")
    if count is not None:
        check_int("count", count, 1)
    return labels.astype(logits.dtype)


def check_pair_logits(logits):
    """Refuse what is not a row of two logits for each pair."""
    _check_array("logits", logits, "f", "floats")
    if logits.ndim != 2 or logits.shape[1] != 2:
        raise BertError(f"logits have shape {logits.shape}, allowed: (B, 2)")


def check_masking(input_ids, rng, special_ids, mask_id, vocab_size, rate):
    """Return the ids as intp, the special ids as a set in order, the rate."""
    check_rng(rng)
    vocab_size = check_int("vocab_size", vocab_size, 1, MOST_WORDS)
    if not is_array(input_ids) or input_ids.dtype.kind not in "iu":
        found = getattr(input_ids, "dtype", type(input_ids).__name__)
        raise BertError(f"input_ids is {found}, allowed: an array of integers")
    for wrong in input_ids[(input_ids < 0) | (input_ids >= vocab_size)][:1]:
        raise BertError(f"input_ids holds {wrong}, allowed: 0..{vocab_size - 1}")
    check_int("mask_id", mask_id, 0, vocab_size - 1)
    if isinstance(special_ids, (str, bytes, dict)) or not np.iterable(special_ids):
        found = short(special_ids)
        raise BertError(f"special_ids = {found}, allowed: a sequence of ids")
    special = {check_int("special_ids", i, 0, vocab_size - 1) for i in special_ids}
    if len(special) == vocab_size:
        raise BertError(f"special_ids cover all {vocab_size} ids of the vocabulary")
    return input_ids.astype(np.intp), sorted(special), _check_rate(rate, input_ids)


def _check_rate(rate, input_ids):
    """One probability as a float, or an array with one for each token."""
    if not is_array(rate):
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate <= 1:
            found, shape = short(rate), input_ids.shape
            raise BertError(f"rate = {found}, allowed: 0..1, or an array {shape}")
        return float(rate)
    _check_array("rate", rate, "fiu", "numbers in 0..1")
    if rate.shape not in ((), input_ids.shape):
        found, allowed = rate.shape, input_ids.shape
        raise BertError(f"rate has shape {found}, allowed: {allowed}, that of the ids")
    for wrong in rate[~((rate >= 0) & (rate <= 1))][:1]:
        raise BertError(f"rate holds {wrong}, allowed: 0..1")
    return rate


# ---------------------------------------------------------------- optimiser


def check_schedule(step, peak, warmup_steps, total_steps, hold_steps):
    """Refuse a learning rate that no step of the schedule has."""
    total = check_int("total_steps", total_steps, 1)
    check_int("step", step, 0, total - 1)
    check_number("peak", peak, "a finite number >= 0")
    warmup = check_int("warmup_steps", warmup_steps, 0, total)
    check_int("hold_steps", hold_steps, 0, total - warmup)


def check_float_tree(name, tree):
    """Return the shapes of all leaves, arrays of float32 or float64."""
    shapes = {}
    for path, leaf in leaves(tree):
        if not is_array(leaf) or leaf.dtype.char not in "fd":
            where = f"{name}: {path}" if path else name
            found = leaf.dtype if is_array(leaf) else type(leaf).__name__
            raise BertError(
                f"{where} is {found}, allowed: an array of float32 or float64"
            )
        shapes[path] = leaf.shape
    return shapes


def check_adam(params, grads, state, rate, **numbers):
    """Return the rate and the numbers as floats; refuse trees that differ."""
    if not isinstance(state, dict) or not state.keys() >= {"step", "m", "v"}:
        found = type(state).__name__
        raise BertError(f"state is {found}, allowed: what init_adam or adam returned")
    check_int("state: step", state["step"], 0)
    shapes = check_float_tree("params", params)
    trees = {"grads": grads, "state: m": state["m"], "state: v": state["v"]}
    for name, tree in trees.items():
        found = check_float_tree(name, tree)
        if found != shapes:
            path = next(p for p in shapes | found if shapes.get(p) != found.get(p))
            raise BertError(
                f"{name}: {path} is {found.get(path, 'missing')}, allowed: "
                f"{shapes.get(path, 'nothing')}; the shapes are those of params"
            )
    rate = check_number("rate", rate, "a finite number >= 0")
    return rate, *(check_number(n, numbers[n], ADAM_RANGES[n]) for n in numbers)


# ------------------------------------------------------- the batch, the run


def check_batch(batch, params, parts=1, rng=None, run_all=map):
    """Return the arrays of a batch; refuse those that do not fit each other.

    Without an NSP head no pair has a label, whatever the batch says.
    """
    if not isinstance(batch, dict):
        raise BertError(f"batch is {type(batch).__name__}, allowed: a dict of arrays")
    pairs = isinstance(params, dict) and "nsp" in params
    wanted = BATCH_KEYS if pairs else BATCH_KEYS[:-1]
    missing = [key for key in wanted if key not in batch]
    if missing:
        raise BertError(f"batch has no {missing}; it needs {list(wanted)}")
    for key in wanted:
        of_labels = key.endswith("labels")
        _check_array(f"batch[{key!r}]", batch[key], "iu" if of_labels else "iufb")
    shape = batch["input_ids"].shape
    if len(shape) != 2 or shape[0] == 0:
        raise BertError(f"batch['input_ids'] has shape {shape}, allowed: (B, T)")
    for key in wanted:
        allowed = shape[:1] if key == "nsp_labels" else shape
        if batch[key].shape != allowed:
            raise BertError(
                f"batch[{key!r}] has shape {batch[key].shape}, allowed: {allowed}"
            )
    check_int("parts", parts, 1, shape[0])
    if rng is not None:
        check_rng(rng)
    require_callable("run_all", run_all)
    nobody = {"nsp_labels": np.full(shape[0], IGNORED)}
    return nobody | {key: batch[key] for key in wanted}


def check_step(run, make_batch, rng, settings):
    """Check the arguments of train_step, all but the model's."""
    check_run(run)
    check_settings(settings)
    check_rng(rng)
    require_callable("make_batch", make_batch)


def check_run(run):
    """Refuse what is not a run, the dict that start_run makes."""
    if not isinstance(run, dict):
        raise BertError(f"run is {type(run).__name__}, allowed: what start_run returns")
    for name, kind in RUN_TYPES.items():
        if not isinstance(run.get(name), kind):
            found = type(run.get(name)).__name__
            raise BertError(f"run: {name} is {found}, allowed: {kind.__name__}")


def check_saving(path, config, settings):
    """Return the path of a run's file; refuse what cannot go with it."""
    require_config(config)
    check_settings(settings)
    return check_path("path", path)


def check_training(calls, rng, settings, checkpoint, resume, every):
    """Check the arguments of train, all but the model's."""
    check_settings(settings)
    for name, count in every.items():
        check_int(name, count, 1)
    check_rng(rng)
    for name, function in calls.items():
        if name in ("make_batch", "report") or function is not None:
            require_callable(name, function)
    require_bool("resume", resume)
    if checkpoint is not None:
        return check_path("checkpoint", checkpoint)
    if resume:
        raise BertError("resume is True, but checkpoint is None: name the file")


def check_settings(settings):
    """Refuse settings with a value that no run can have."""
    if not isinstance(settings, TrainingSettings):
        kind = type(settings).__name__
        raise BertError(f"settings is {kind}, allowed: TrainingSettings")
    steps, *before = settings.steps, settings.warmup_steps, settings.hold_steps
    whole = all(type(count) is int and count >= 0 for count in (steps, *before))
    if not whole or sum(before) > steps:
        raise BertError(
            f"settings: warmup_steps, hold_steps = {short(tuple(before))}, "
            f"steps = {short(steps)}, "
            "allowed: ints >= 0, the first two together at most steps"
        )
    for name, value in settings._asdict().items():
        if not isinstance(value, (int, float)):  # JSON keeps no other number
            found = short(value)
            raise BertError(f"settings: {name} = {found}, allowed: a number >= 0")
        allowed = ADAM_RANGES.get(name, "a finite number >= 0")
        check_number(f"settings: {name}", value, allowed)
    if type(settings.parts) is not int or settings.parts < 1:
        found = short(settings.parts)
        raise BertError(f"settings: parts = {found}, allowed: an int >= 1")


# ------------------------------------------------------------ single values


def check_rng(rng):
    """Refuse what is not one of NumPy's random generators."""
    if not isinstance(rng, np.random.Generator):
        kind = type(rng).__name__
        raise BertError(f"rng is {kind}, allowed: numpy.random.Generator")


def check_path(name, path):
    """Return the name of a file as a Path."""
    named = isinstance(path, (str, Path)) and "\0" not in str(path) and Path(path).name
    if not named:
        raise BertError(f"{name} = {short(path)}, allowed: the path of a file")
    return Path(path)


def check_int(name, value, least, most=None):
    """Return an integer from least to most as an int."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= (2**63 if most is None else most):
        allowed = f"an int >= {least}" if most is None else f"{least}..{most}"
        raise BertError(f"{name} = {short(value)}, allowed: {allowed}")
    return int(value)


def check_number(name, value, allowed):
    """Return a number in one of the RANGES as a float."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not RANGES[allowed](value):
        raise BertError(f"{name} = {short(value)}, allowed: {allowed}")
    return float(value) if value <= LARGEST else np.inf


def _check_array(name, array, kinds, words="numbers"):
    if not is_array(array):
        raise BertError(f"{name} is {type(array).__name__}, allowed: numpy.ndarray")
    if array.dtype.kind not in kinds:
        raise BertError(f"{name} has dtype {array.dtype}, allowed: {words}")
