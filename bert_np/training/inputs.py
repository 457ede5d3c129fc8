"""Every check of what users hand to training.

Each function accepts its arguments, and may return them in one standard
form, or raises BertError with the argument, the value found and the values
allowed. Of large arrays it checks the type and the shape alone, so that
checks take almost no time; only ids, labels and rates are read.
"""

import sys
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from bert_np.config import CLASSIFIER_POOLINGS, PROBLEMS, require_config
from bert_np.errors import BertError, require_bool, require_callable, short
from bert_np.inputs import check_inputs
from bert_np.parameters import check_params, parameter_shapes
from bert_np.tokenizer import Tokenizer
from bert_np.training.settings import FineTuningSettings, TrainingSettings
from bert_np.tree import is_array, leaves

# A position with this label has no loss; PyTorch and HuggingFace agree.
IGNORED = -100
BATCH_KEYS = ("input_ids", "segment_ids", "attention_mask", "mlm_labels", "nsp_labels")
TASKS = ("sequence", "token", "span")
# The problem of a sequence head -> the kind of labels that it needs.
PROBLEM_LABELS = dict(zip(PROBLEMS, ("one label", "several labels", "a number")))
RUN_TYPES = {"step": int, "params": dict, "adam": dict, "history": list, "rng": dict}
MOST_WORDS = 10_000_000  # ten times the largest vocabulary in use
LARGEST = sys.float_info.max  # a number beyond it is no float
RANGES = {
    "a finite number >= 0": lambda value: 0 <= value <= LARGEST,
    "a number >= 0": lambda value: value >= 0,
    "a number > 0": lambda value: 0 < value <= LARGEST,
    "less than 1, at least 0": lambda value: 0 <= value < 1,
    "0..1": lambda value: 0 <= value <= 1,
}
# What Adam's numbers must be, as arguments of adam and as settings.
ADAM_RANGES = {
    "beta1": "less than 1, at least 0",
    "beta2": "less than 1, at least 0",
    "eps": "a number > 0",
    "weight_decay": "a finite number >= 0",
}
# The same for fine-tuning: the least of each count, and the ranges.
TASK_COUNTS = {"epochs": 1, "batch_size": 1, "max_length": 4, "parts": 1}
TASK_RANGES = {
    "body_rate": "a finite number >= 0",
    "head_rate": "a finite number >= 0",
    "layer_decay": "0..1",
    "warmup": "0..1",
    "dropout": "less than 1, at least 0",
    "max_norm": "a finite number >= 0",
    "held_out": "less than 1, at least 0",
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
    """Return one probability as a float, or an array with one for each token."""
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
    """Refuse an impossible schedule, and a step outside it."""
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


# ------------------------------------------------------------- fine-tuning


def find_head(params):
    """Return which head is trained: "sequence", "token" or "span"."""
    heads = [task for task in TASKS if isinstance(params, dict) and task in params]
    if len(heads) != 1:
        found = short(list(params) if isinstance(params, dict) else params)
        raise BertError(f"params has {found}, allowed: one head of {', '.join(TASKS)}")
    return heads[0]


def check_trained(params, config):
    """Return the name of the head of what is trained; refuse other trees."""
    require_config(config)
    task = find_head(params)
    expected = parameter_shapes(config, heads=[task])
    layers = params.get("layers")
    if not isinstance(layers, list) or len(layers) > config.num_hidden_layers:
        raise BertError(
            f"params: layers = {short(layers)}, allowed: a list of the top layers, "
            f"at most {config.num_hidden_layers}"
        )
    expected["layers"] = expected["layers"][: len(layers)]
    pooled = task == "sequence" and config.classifier_pooling == "pooler"
    needed = ["layers", task] + ["pooler"] * pooled
    parts = {name for name in expected if name in params or name in needed}
    wanted = dict(leaves({name: expected[name] for name in expected if name in parts}))
    found = check_float_tree("params", params)
    if found != wanted:
        path = next(p for p in wanted | found if wanted.get(p) != found.get(p))
        raise BertError(
            f"params: {path} is {found.get(path, 'missing')}, allowed: "
            f"{wanted.get(path, 'nothing')}"
        )
    return task


def check_task_batch(batch, params, config, rng=None, run_all=map):
    """Refuse a batch that does not fit what is trained."""
    task = check_trained(params, config)
    if not isinstance(batch, dict):
        raise BertError(f"batch is {type(batch).__name__}, allowed: a dict of arrays")
    ids = ("input_ids", "segment_ids") if "embeddings" in params else ("hidden",)
    missing = [key for key in (*ids, "attention_mask", "labels") if key not in batch]
    if missing:
        raise BertError(f"batch has no {missing}, which this model needs")
    for key in batch:
        _check_array(f"batch[{key!r}]", batch[key], "f" if key == "hidden" else "iufb")
    shape = batch["attention_mask"].shape
    if len(shape) != 2 or 0 in shape:
        raise BertError(f"batch['attention_mask'] has shape {shape}, allowed: (B, T)")
    inputs = {key: batch.get(key, np.zeros(shape, int)) for key in BATCH_KEYS[:2]}
    check_inputs(*inputs.values(), batch["attention_mask"], config)
    _check_task_shapes(batch, shape, task, config)
    if rng is not None:
        check_rng(rng)
    require_callable("run_all", run_all)


def _check_task_shapes(batch, shape, task, config):
    """Check the shapes of the labels, and of what the frozen layers made."""
    count = () if config.problem == PROBLEMS[0] else (len(config.labels),)
    labels = {"sequence": (shape[0], *count), "token": shape, "span": (shape[0], 2)}
    allowed = {"labels": labels[task], "hidden": (*shape, config.hidden_size)}
    for key in allowed.keys() & batch.keys():
        if batch[key].shape != allowed[key]:
            raise BertError(
                f"batch[{key!r}] has shape {batch[key].shape}, allowed: {allowed[key]}"
            )


def check_run_of_task(run):
    """Refuse what is not a run: step, params and adam."""
    if not isinstance(run, dict):
        raise BertError(f"run is {type(run).__name__}, allowed: a dict")
    for name in ("step", "params", "adam"):
        kind = RUN_TYPES[name]
        if not isinstance(run.get(name), kind):
            found = type(run.get(name)).__name__
            raise BertError(f"run: {name} is {found}, allowed: {kind.__name__}")
    if not run["adam"].keys() >= {"step", "m", "v"}:
        raise BertError("run: adam is not what init_adam returns")


def check_task_settings(settings):
    """Refuse settings with a value that no fine-tuning can have."""
    if not isinstance(settings, FineTuningSettings):
        kind = type(settings).__name__
        raise BertError(f"settings is {kind}, allowed: FineTuningSettings")
    check_task(settings.task, settings.problem)
    pooling = settings.pooling
    if not isinstance(pooling, str) or pooling not in CLASSIFIER_POOLINGS:
        found, allowed = short(pooling), ", ".join(CLASSIFIER_POOLINGS)
        raise BertError(f"settings: pooling = {found}, allowed: {allowed}")
    if settings.layers is not None:
        _check_plain_int("layers", settings.layers, 0)
    for name, least in TASK_COUNTS.items():
        _check_plain_int(name, getattr(settings, name), least)
    for name, allowed in (TASK_RANGES | ADAM_RANGES).items():
        value = getattr(settings, name)
        if type(value) not in (int, float):  # JSON keeps no other number
            raise BertError(f"settings: {name} = {short(value)}, allowed: {allowed}")
        check_number(f"settings: {name}", value, allowed)


def _check_plain_int(name, value, least):
    if type(value) is not int:
        found = short(value)
        raise BertError(f"settings: {name} = {found}, allowed: an int >= {least}")
    check_int(f"settings: {name}", value, least)


def check_model(model):
    """Return (params, config, tokenizer) of a model that can be trained."""
    if not isinstance(model, tuple) or len(model) != 3:
        raise BertError(
            f"model is {short(model)}, allowed: (params, config, tokenizer), "
            "as load_pretrained returns it"
        )
    params, config, tokenizer = model
    check_params(params, config)
    if not isinstance(tokenizer, Tokenizer):
        found = type(tokenizer).__name__
        raise BertError(f"model: its tokenizer is {found}, allowed: a Tokenizer")
    return params, config, tokenizer


def check_single_head(model):
    """Return (params, config, tokenizer) of a model with one head for a task."""
    params, config, tokenizer = check_model(model)
    find_head(params)
    return params, config, tokenizer


def check_fine_tuning(
    model, examples, rng, settings, changes, checkpoint, resume, every, report
):
    """Check the arguments of fine_tune; return settings and checkpoint."""
    settings = change_settings(settings, changes)
    params, config, _ = check_model(model)
    if settings.layers is not None and settings.layers > config.num_hidden_layers:
        raise BertError(
            f"settings: layers = {short(settings.layers)}, allowed: None or "
            f"0..{config.num_hidden_layers}, as many as the model has"
        )
    pooled = settings.task == "sequence" and settings.pooling == "pooler"
    if pooled and "pooler" not in params:
        raise BertError("model has no pooler; settings allowed here: pooling='mean'")
    check_examples(examples, settings.task, PROBLEM_LABELS.get(settings.problem))
    for name, count in every.items():
        check_int(name, count, 1)
    check_rng(rng)
    require_callable("report", report)
    require_bool("resume", resume)
    if checkpoint is None and resume:
        raise BertError("resume is True, but checkpoint is None: name the file")
    if checkpoint is not None:
        checkpoint = check_path("checkpoint", checkpoint)
        if not resume:
            check_new_file(checkpoint)
    return settings, checkpoint


def change_settings(settings, changes):
    """Return settings, or the default ones, with some fields changed."""
    settings = FineTuningSettings() if settings is None else settings
    check_task_settings(settings)
    unknown = changes.keys() - settings._asdict().keys()
    if unknown:
        raise BertError(
            f"{short(sorted(unknown))} is no argument of fine_tune, and no field of "
            "FineTuningSettings"
        )
    settings = settings._replace(**changes)
    check_task_settings(settings)
    return settings


def check_label_names(labels, task):
    """Return the names of all labels as a tuple, or None to look for them."""
    if labels is None or task == "span":
        return None
    if not isinstance(labels, (list, tuple)) or not labels:
        raise BertError(f"labels = {short(labels)}, allowed: a list of str, or None")
    for name in labels:
        if not isinstance(name, str) or labels.count(name) > 1:
            raise BertError(f"labels hold {short(name)}, allowed: a str, once")
    return tuple(labels)


def check_new_file(path):
    """Refuse a checkpoint that exists, or whose folder does not."""
    if path.exists():
        raise BertError(f"checkpoint {path.name} exists: set resume=True or remove it")
    if not path.parent.is_dir():
        raise BertError(f"checkpoint: there is no folder {str(path.parent)!r}")


# ----------------------------------------------------- examples of a task


def check_task(task, problem=None):
    """Refuse what is no task, and a problem that no sequence head has."""
    if not isinstance(task, str) or task not in TASKS:
        raise BertError(f"task = {short(task)}, allowed: {', '.join(TASKS)}")
    if problem is not None and (
        not isinstance(problem, str) or problem not in PROBLEMS
    ):
        raise BertError(
            f"problem = {short(problem)}, allowed: None, {', '.join(PROBLEMS)}"
        )


def check_columns(columns, task):
    """Return the numbers of the columns of a file as a list of int."""
    counts = {"sequence": (2, 3), "token": (2,), "span": (3,)}[task]
    if isinstance(columns, (str, bytes, dict)) or not np.iterable(columns):
        raise BertError(f"columns = {short(columns)}, allowed: numbers of columns")
    columns = [check_int("columns", number, 1, 1000) for number in columns]
    if len(columns) not in counts:
        raise BertError(
            f"columns = {short(columns)}, allowed for a {task}: "
            f"{' or '.join(map(str, counts))} numbers"
        )
    return columns


def check_examples(examples, task=None, kind=None):
    """Return the examples; refuse one that does not fit the task, by number."""
    listed = isinstance(examples, (list, tuple))
    if not listed or not examples:
        found = "empty" if listed else type(examples).__name__
        raise BertError(f"examples is {found}, allowed: a list of pairs (text, label)")
    checks = {"sequence": _check_labelled, "token": _check_tagged, "span": _check_span}
    kinds = set()
    for i, example in enumerate(examples):
        if not isinstance(example, (list, tuple)) or len(example) != 2:
            raise BertError(
                f"examples[{i}] = {short(example)}, allowed: a pair (text, label)"
            )
        if task is None:
            _check_hashable(example[0], f"examples[{i}]")
        else:
            kinds.add(checks[task](*example, f"examples[{i}]"))
    if len(kinds) > 1:
        raise BertError(
            f"examples have labels of different kinds: {', '.join(sorted(kinds))}; "
            "allowed: one kind"
        )
    if kind is not None and kinds != {kind}:
        raise BertError(f"examples have {kinds.pop()}, allowed: {kind}")
    return examples


def check_lengths(lengths):
    """Return the lengths of texts as an array (N,)."""
    try:
        array = np.asarray(lengths)
    except (ValueError, TypeError):
        raise BertError("lengths is not an array of integers") from None
    _check_array("lengths", array, "iu", "integers")
    if array.ndim != 1 or array.size == 0:
        raise BertError(f"lengths has shape {array.shape}, allowed: (N,)")
    return array


def _check_hashable(read, where):
    """Check what is read: a text, or a tuple or list of texts."""
    parts = read if isinstance(read, (list, tuple)) and read else [read]
    for part in parts:
        if not isinstance(part, str):
            found = type(part).__name__
            raise BertError(f"{where}: {found}, allowed: a text, a pair, or words")


def _check_labelled(read, label, where):
    """Check a text or a pair, with one label, several, or a number."""
    _check_hashable(read, where)
    if isinstance(read, list) or (isinstance(read, tuple) and len(read) != 2):
        raise BertError(f"{where}: {short(read)}, allowed: a text or a pair of texts")
    if isinstance(label, (list, tuple)):
        for name in label:
            _check_label(name, where)
        return "several labels"
    if isinstance(label, (float, np.floating)):
        if not np.isfinite(label):
            raise BertError(f"{where}: label {label}, allowed: a finite number")
        return "a number"
    return _check_label(label, where)


def _check_label(label, where):
    whole = isinstance(label, Integral) and not isinstance(label, bool)
    if not whole and not isinstance(label, str):
        raise BertError(
            f"{where}: label {short(label)}, allowed: a str or an int, a list of them, "
            "or a float to be predicted"
        )
    if whole and not abs(label) < 2**63:
        raise BertError(f"{where}: label {short(label)}, allowed: an int of 64 bits")
    return "one label"


def _check_tagged(words, labels, where):
    """Check words with as many labels."""
    for name, texts in (("words", words), ("labels", labels)):
        if not isinstance(texts, (list, tuple)) or not texts:
            raise BertError(f"{where}: {name} = {short(texts)}, allowed: a list of str")
        for text in texts:
            if not isinstance(text, str):
                raise BertError(f"{where}: {name} hold {short(text)}, allowed: str")
    if len(words) != len(labels):
        found = f"{len(words)} words, {len(labels)} labels"
        raise BertError(f"{where}: {found}, allowed: as many labels as words")
    return "a label for each word"


def _check_span(read, place, where):
    """Check a question and a text, and where in the text the answer is."""
    _check_hashable(read, where)
    if not isinstance(read, (list, tuple)) or len(read) != 2 or not read[1]:
        raise BertError(f"{where}: {short(read)}, allowed: (question, text)")
    if place is not None:
        if not isinstance(place, (list, tuple)) or len(place) != 2:
            found = short(place)
            raise BertError(f"{where}: answer {found}, allowed: (start, end) or None")
        end = check_int(f"{where}: end", place[1], 1, len(read[1]))
        check_int(f"{where}: start", place[0], 0, end - 1)
    return "an answer"


# ---------------------------------------------------------------- answers


def check_answers(labels, predictions, count=None):
    """Return both as arrays of int of one shape, in 0..count-1 if given."""
    arrays = []
    for name, given in (("labels", labels), ("predictions", predictions)):
        try:
            array = np.asarray(given)
        except (ValueError, TypeError):
            raise BertError(f"{name} is not an array of integers") from None
        _check_array(name, array, "iub", "integers")
        if array.ndim not in (1, 2) or array.size == 0:
            raise BertError(f"{name} has shape {array.shape}, allowed: (N,) or (N, K)")
        arrays.append(array.astype(np.int64))
    shapes = [array.shape for array in arrays]
    if shapes[0] != shapes[1]:
        raise BertError(f"labels have shape {shapes[0]}, predictions {shapes[1]}")
    for array in arrays if count is not None else ():
        wrong = array[(array < 0) | (array >= count)]
        if array.ndim != 1 or wrong.size:
            found = wrong[0] if wrong.size else f"an array {array.shape}"
            raise BertError(f"labels: {found}, allowed: (N,) of 0..{count - 1}")
    return arrays


def check_vectors_to_learn(x, labels, count):
    """Return vectors as floats, with as many labels in 0..count-1."""
    _check_array("x", x, "f", "floats")
    if x.ndim != 2 or 0 in x.shape or not np.isfinite(x).all():
        raise BertError(f"x has shape {x.shape}, allowed: (N, D), finite numbers")
    labels, _ = check_answers(labels, labels, count)
    if len(labels) != len(x):
        raise BertError(f"labels are {len(labels)}, allowed: {len(x)}, as many as x")
    return x.astype(x.dtype.newbyteorder("=")), labels


def check_confusion(matrix):
    """Return a matrix of counts."""
    try:
        array = np.asarray(matrix)
    except (ValueError, TypeError):
        raise BertError("matrix is not an array of integers") from None
    _check_array("matrix", array, "iu", "integers")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise BertError(f"matrix has shape {array.shape}, allowed: (K, K)")
    if (array < 0).any() or not 0 < array.astype(float).sum() < 2**62:
        raise BertError("matrix holds no counts, allowed: all >= 0, one above 0")
    return array.astype(np.int64)


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


def check_number_array(name, array):
    """Refuse what is not an array of numbers."""
    _check_array(name, array, "iuf")


def _check_array(name, array, kinds, words="numbers"):
    if not is_array(array):
        raise BertError(f"{name} is {type(array).__name__}, allowed: numpy.ndarray")
    if array.dtype.kind not in kinds:
        raise BertError(f"{name} has dtype {array.dtype}, allowed: {words}")
