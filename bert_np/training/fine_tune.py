"""Fine-tune a model: from examples to a model that answers like them.

    python -m bert_np.training.fine_tune FILE OUT [--layers N] [...]

reads examples from FILE, sets a part of them aside as a test, trains on the
others and writes the model to the new folder OUT in HuggingFace's layout,
with report.json beside it: every setting, how training went, and how good
the model is on the test part, on which nothing was chosen, beside what
simple methods reach on the same test. FILE has one example per line, text
<TAB> label; `read_examples` says what else it may hold. Run again after an
interruption, the command continues where it stopped.
"""

import argparse
import json
import math
import os
import platform
import shutil
import sys
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_np.config import BertConfig
from bert_np.errors import BertError, require_callable, short
from bert_np.fast import map_over_threads
from bert_np.files.checkpoint import Pretrained, save_pretrained
from bert_np.files.pretrained import load_pretrained
from bert_np.parameters import count_params, keep_freed_memory, parameter_shapes
from bert_np.tasks.answers import answer
from bert_np.training.adam import init_adam
from bert_np.training.answers import Answers, answer_rows
from bert_np.training.archive import (
    check_identity,
    read_arrays,
    take_trees,
    write_arrays,
)
from bert_np.training.baselines import (
    bag_of_words_answers,
    frozen_vectors_answers,
    majority_answers,
)
from bert_np.training.examples import (
    batches_by_length,
    encode_examples,
    find_labels,
    find_problem,
    read_examples,
    split_examples,
)
from bert_np.training.fine_tuning import fine_tuning_step
from bert_np.training.frozen import (
    Data,
    batch_of,
    join_layers,
    run_frozen,
    size_of,
    split_layers,
)
from bert_np.training.inputs import (
    check_examples,
    check_fine_tuning,
    check_int,
    check_label_names,
    check_single_head,
    check_task_settings,
    find_head,
)
from bert_np.training.metrics import confusion_matrix, macro_f1
from bert_np.training.settings import FineTuningSettings as FineTuningSettings
from bert_np.tree import leaves, map_leaves

# What random numbers are drawn for: each purpose has its own generators.
HEAD, SPLIT, ORDER, DROPOUT, TEST = range(5)
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


class FineTuned(NamedTuple):
    """A model that has learned a task, and how it did."""

    model: Pretrained  # (params, config, tokenizer)
    report: dict  # every setting, each epoch, which one was kept


def fine_tune(
    model,
    examples,
    rng,
    settings=None,
    *,
    labels=None,
    checkpoint=None,
    resume=False,
    checkpoint_every=500,
    report=print,
    report_every=25,
    **changes,
):
    """Train a model to answer like the examples.

    A new head is put on the model. The layers below the trained ones run
    once, and what they make of each text is kept. A part of the examples
    is held out: after each epoch it tells how well the model answers what
    it has not been trained on, and the best epoch is kept. The held-out
    accuracy of the epoch chosen is too kind; the figure to report needs
    examples that were never given to this function.

    Parameters
    ----------
    model : Pretrained
        (params, config, tokenizer), from load_pretrained. A head for the
        same task with the same labels is trained on; others are dropped.
    examples : list
        Of pairs: (text, label) or ((text, text), label); (words, labels);
        ((question, text), (start, end)). See the module examples.
    rng : numpy.random.Generator
        Draws one seed, from which everything random follows.
    settings : FineTuningSettings, optional
        None: its defaults.
    labels : list of str, optional
        All labels, in the order of the head's columns. None: those that
        the examples have, see find_labels.
    checkpoint : str or Path, optional
        The file that keeps the run: written every checkpoint_every steps,
        after each epoch, and on an interruption.
    resume : bool
        True: continue from the file, bit for bit like a run without
        interruption. False: the file must not exist.
    checkpoint_every : int
    report : function
        Called with a line of text every report_every steps.
    report_every : int
    **changes
        Fields of the settings by name, such as layers=2.

    Returns
    -------
    FineTuned
        (model, report). The model can be saved, and loaded again by this
        library and by transformers. With pooling="mean" transformers
        cannot compute its answers, since its class reads the pooler; such
        a model has none.

    Raises
    ------
    BertError
        If an argument is wrong or the gradient is no longer finite.
    KeyboardInterrupt
        After the checkpoint has been written.

    Source: Devlin et al. 2018, sections 3.2 and 4.
    """
    clock = time.perf_counter()
    every = {"checkpoint_every": checkpoint_every, "report_every": report_every}
    settings, checkpoint = check_fine_tuning(
        model, examples, rng, settings, changes, checkpoint, resume, every, report
    )
    labels = check_label_names(labels, settings.task)
    arrays, facts = read_arrays(checkpoint) if resume else ({}, {})
    seed = check_int("seed", facts.get("seed"), 0) if resume else _draw_seed(rng)
    task = _prepare(model, examples, labels, settings, seed, report)
    start = _resume(checkpoint, arrays, facts, task) if resume else _begin(task)
    run = start
    keep_freed_memory()
    try:
        with map_over_threads(settings.parts) as run_all:
            for run in _runs(start, task, run_all):
                epoch_ends = run["step"] == len(run["epochs"]) * task.steps
                if epoch_ends or run["step"] % report_every == 0:
                    report(_progress(run, task, epoch_ends, report_every))
                if checkpoint and (epoch_ends or run["step"] % checkpoint_every == 0):
                    _save(checkpoint, run, task)
    except KeyboardInterrupt:
        if checkpoint:
            _save(checkpoint, run, task)
        raise
    tuned = join_layers(task.frozen, run["best"])
    report = _report(run, task, time.perf_counter() - clock)
    return FineTuned(Pretrained(tuned, task.config, model[2]), report)


def evaluate_model(model, examples, max_length=128, report=None):
    """Let a model answer examples, and compare.

    Parameters
    ----------
    model : Pretrained
        (params, config, tokenizer) with a head for a task.
    examples : list
        As fine_tune takes them.
    max_length : int
        Longer texts are cut. Questions are the exception: bert_np.answer
        answers them, and it reads a text of any length.
    report : function, optional
        Called with a line of text now and then.

    Returns
    -------
    Answers
        loss : float, the mean; NaN for questions.
        labels, predictions : for one label of a text its number, (N,);
        for several (N, K), 1 where a label is given; for a number (N, 1);
        for tokens (N,), all labelled words one after the other; for
        questions (N, 2), the characters from start to end, 0 and 0 where
        there is no answer.
    """
    params, config, tokenizer = check_single_head(model)
    if report is not None:
        require_callable("report", report)
    task = find_head(params)
    if task == "span":
        return _answer_questions(model, examples, max_length)
    rows = encode_examples(examples, config, tokenizer, task, max_length)
    frozen, trained = split_layers(params, 0)
    return answer_rows(trained, config, run_frozen(rows, frozen, config, report))


def _answer_questions(model, examples, max_length):
    check_examples(examples, "span")
    most = min(max_length, model[1].max_position_embeddings)
    found = [answer(*read, *model, max_length=most) for read, _ in examples]
    return Answers(
        math.nan,
        np.array([place or (0, 0) for _, place in examples]),
        np.array([(span.start, span.end) for span in found]),
    )


# ------------------------------------------------------ before the first step


class Task(NamedTuple):
    """What a run needs and never changes."""

    settings: FineTuningSettings
    seed: int
    config: BertConfig  # with labels
    training: Data
    held_out: Data
    left_out: int  # examples whose answer was cut away
    frozen: dict
    trained: dict  # as before the first step

    @property
    def steps(self):
        """How many steps an epoch has."""
        return -(-len(self.training.rows) // self.settings.batch_size)


def _prepare(model, examples, labels, settings, seed, report):
    """Prepare for the first step: labels, head, split, frozen outputs."""
    config = _config_of(model, examples, labels, settings)
    params = _with_head(model, config, settings, _generator(seed, HEAD))
    frozen, trained = split_layers(params, settings.layers)
    parts = split_examples(examples, settings.held_out, _generator(seed, SPLIT))
    options = config, model[2], settings.task, settings.max_length
    encoded = [encode_examples(part, *options) if part else [] for part in parts]
    rows = [[row for row in part if row is not None] for part in encoded]
    if not rows[0]:
        raise BertError("examples: none is left to train on")
    data = [run_frozen(part, frozen, config, report) for part in rows]
    left_out = len(examples) - sum(map(len, rows))
    return Task(settings, seed, config, *data, left_out, frozen, trained)


def _config_of(model, examples, labels, settings):
    """Return the model's config with the labels of the examples."""
    params, config, _ = model
    if settings.task == "span":
        nothing = any(place is None for _, place in examples)
        return replace(config, no_answer_threshold=0.0 if nothing else None)
    labels, problem = labels or find_labels(examples, settings.task), None
    if settings.task == "sequence":
        problem = settings.problem or find_problem(examples)
    if settings.task in params and {*labels} <= {*config.labels}:
        labels = config.labels  # the head goes on with its own
    if problem != "regression" and len(labels) < 2:
        raise BertError(f"examples have the labels {labels}, allowed: two or more")
    pooling = settings.pooling if settings.task == "sequence" else "pooler"
    return replace(
        config, labels=labels, problem_type=problem, classifier_pooling=pooling
    )


def _with_head(model, config, settings, rng):
    """Return the parts of a model that its task needs, with a head."""
    params, task, body = model[0], settings.task, ["embeddings", "layers"]
    if task == "sequence" and settings.pooling == "pooler":
        body.append("pooler")
    tree = {part: params[part] for part in body}
    if task in params and model[1].labels == config.labels:
        return tree | {task: params[task]}
    dtype = params["embeddings"]["word"].dtype.newbyteorder("=")
    shape = parameter_shapes(config, heads=[task])[task]
    W = rng.standard_normal(shape["W"]) * config.initializer_range
    return tree | {task: {"W": W.astype(dtype), "b": np.zeros(shape["b"], dtype)}}


def _draw_seed(rng):
    return int(rng.integers(2**62))


def _generator(seed, purpose, number=0):
    """Return the generator of one purpose, or of one epoch or step of it.

    So a step draws the same numbers whether or not the run was interrupted
    before it.
    """
    return np.random.default_rng([seed, purpose, number])


# ------------------------------------------------------------------- the run


def _begin(task):
    """Return the run before its first step.

    step : int, the number of updates made
    params : dict, what is trained
    adam : dict, the optimiser's state
    losses : list of float, of each step
    epochs : list of dict, what was found after each epoch
    best : dict, params after the best of them
    """
    run = {"step": 0, "params": task.trained, "adam": init_adam(task.trained)}
    return run | {"losses": [], "epochs": [], "best": task.trained}


def _runs(run, task, run_all):
    """Yield the run after each step, and again after each epoch's end."""
    settings = task.settings
    lengths = np.array([len(row.input_ids) for row in task.training.rows])
    for epoch in range(len(run["epochs"]), settings.epochs):
        rng = _generator(task.seed, ORDER, epoch)
        batches = batches_by_length(lengths, settings.batch_size, rng)
        for numbers in batches[run["step"] - epoch * task.steps :]:
            run = _next_step(run, task, numbers, run_all)
            yield run
        run = _end_epoch(run, task)
        yield run


def _next_step(run, task, numbers, run_all):
    """Return the run after a step on these examples."""
    settings = task.settings
    dropout = dict.fromkeys(DROPOUTS, settings.dropout)
    new, metrics = fine_tuning_step(
        {name: run[name] for name in ("step", "params", "adam")},
        batch_of(task.training, numbers, task.config),
        replace(task.config, **dropout),
        settings,
        task.steps * settings.epochs,
        _generator(task.seed, DROPOUT, run["step"]),
        run_all,
    )
    return run | new | {"losses": [*run["losses"], metrics["loss"]]}


def _end_epoch(run, task):
    """Return the run, measured on the held-out part; keep it if it is the best."""
    found = {"training_loss": float(np.mean(run["losses"][-task.steps :]))}
    if task.held_out.rows:
        answers = answer_rows(run["params"], task.config, task.held_out)
        found |= {"held_out_loss": answers.loss, "accuracy": answers.accuracy}
    best = max(run["epochs"], key=_rank, default=None)
    better = best is None or not task.held_out.rows or _rank(found) > _rank(best)
    return run | {
        "epochs": [*run["epochs"], found],
        "best": run["params"] if better else run["best"],
    }


def _rank(found):
    """Rank an epoch, better is larger: by accuracy, then by the lower loss."""
    return found.get("accuracy") or 0.0, -found.get("held_out_loss", 0.0)


def _progress(run, task, epoch_ends, recent):
    """Return a line about the last steps, or about the epoch that has ended."""
    epochs = task.settings.epochs
    if not epoch_ends:
        loss = np.mean(run["losses"][-recent:])
        total = task.steps * epochs
        return f"step {run['step']:,}/{total:,}  loss {loss:.3f}"
    found = run["epochs"][-1]
    line = f"epoch {len(run['epochs'])}/{epochs}  loss {found['training_loss']:.3f}"
    if "held_out_loss" in found:
        line += f"  held out: loss {found['held_out_loss']:.3f}"
    if found.get("accuracy") is not None:
        line += f", accuracy {found['accuracy']:.1%}"
    return line


def _report(run, task, seconds):
    """Return every setting and what happened, as a dict for a JSON file."""
    best = max(run["epochs"], key=_rank) if task.held_out.rows else run["epochs"][-1]
    return {
        "settings": task.settings._asdict(),
        "seed": task.seed,
        "labels": list(task.config.labels) if task.settings.task != "span" else [],
        "problem": task.config.problem if task.settings.task == "sequence" else None,
        "examples": {
            "training": len(task.training.rows),
            "held_out": len(task.held_out.rows),
            "left_out": task.left_out,
        },
        "parameters": {
            "trained": count_params(task.trained),
            "frozen": count_params(task.frozen),
        },
        "kept_bytes": size_of(task.training) + size_of(task.held_out),
        "steps": run["step"],
        "epochs": run["epochs"],
        "best_epoch": run["epochs"].index(best) + 1,
        "seconds": round(seconds, 1),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }


# ------------------------------------------------------------ the run's file


def _save(path, run, task):
    """Write a run to its file, completely or not at all."""
    trees = {"params": run["params"], "m": run["adam"]["m"], "v": run["adam"]["v"]}
    facts = {name: run[name] for name in ("step", "losses", "epochs")}
    facts |= {"seed": task.seed} | _identity(task)
    write_arrays(path, dict(leaves(trees | {"best": run["best"]})), facts)


def _resume(path, arrays, facts, task):
    """Return the run that a file holds, if it is one of this task."""
    try:
        check_identity(path, facts, _identity(task))
        shapes = map_leaves(lambda _, array: array.shape, task.trained)
        trees = take_trees(arrays, ("params", "m", "v", "best"), shapes)
        adam = {"step": facts["step"], "m": trees["m"], "v": trees["v"]}
        run = {"adam": adam} | {name: trees[name] for name in ("params", "best")}
        return run | {name: facts[name] for name in ("step", "losses", "epochs")}
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, BertError):
            raise
        raise BertError(f"{path.name}: not a fine-tuning run ({error})") from None


def _identity(task):
    """Return what a resumed run must have in common with the stopped one."""
    rows = [row for data in (task.training, task.held_out) for row in data.rows]
    trees = [task.frozen, task.trained]
    start = {
        "examples": _checksum(array for row in rows for array in row),
        "parameters": _checksum(array for tree in trees for _, array in leaves(tree)),
    }
    settings, config = task.settings._asdict(), task.config.to_dict()
    return {"settings": settings, "config": config, "start": start}


def _checksum(arrays):
    """Return a number that differs, almost surely, if any value does."""
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
    return checksum


# --------------------------------------------------------------- the command


def main(arguments=None):
    """Run the command line."""
    options = _read_options(arguments)
    try:
        _run_command(options)
    except BertError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command continues where it stopped")


def _read_options(arguments):
    """Return the options of the command; each setting has one of its name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="examples: text <TAB> label, one in a line")
    parser.add_argument("out", type=Path, help="a new folder for the model")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="name or folder")
    parser.add_argument(
        "--columns", metavar="N,N", help="those of the file to read, the label's last"
    )
    parser.add_argument("--test", type=float, default=0.2, help="fraction set aside")
    parser.add_argument("--seed", type=int, default=0)
    for name, default in FineTuningSettings._field_defaults.items():
        kind = {"problem": str, "layers": int}.get(name, type(default))
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=kind, default=default, help=f"({default})")
    return parser.parse_args(arguments)


def _run_command(given):
    """Read, split, train, test, write."""
    names = FineTuningSettings._fields
    settings = FineTuningSettings(**{name: getattr(given, name) for name in names})
    check_task_settings(settings)
    check_int("seed", given.seed, 0)
    run = _check_new_folder(given.out)
    examples = read_examples(
        given.file, settings.task, _numbers(given.columns), settings.problem
    )
    rng = _generator(given.seed, TEST)
    training, test = split_examples(examples, given.test, rng)
    print(f"{len(training):,} examples to learn from, {len(test):,} as a test")
    model = load_pretrained(given.model)
    labels = find_labels(examples, settings.task)
    options = {"labels": labels, "checkpoint": run, "resume": run.exists()}
    tuned, report = fine_tune(model, training, rng, settings, **options)
    report = {"model": given.model, "file": given.file} | report
    if test:
        report["test"] = _measure(tuned, model, training, test, settings, rng)
    _write_folder(given.out, tuned, report)
    run.unlink()
    print(f"the model and report.json are in {given.out}")


def _check_new_folder(out):
    """Return the file that keeps the run; refuse a folder that exists."""
    if os.path.lexists(out):
        raise BertError(f"{str(out)!r} exists: name a new folder, or remove it")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BertError(f"no folder {str(out.parent)!r}: {error.strerror}") from None
    return out.with_name(f"{out.name}.run.npz")


def _numbers(columns):
    """Return the numbers of an option such as 3,2."""
    if columns is None:
        return None
    try:
        return [int(number) for number in columns.split(",")]
    except ValueError:
        raise BertError(f"--columns {short(columns)}, allowed: such as 3,2") from None


def _measure(tuned, model, training, test, settings, rng):
    """Measure the model on the test, beside what simple methods reach."""
    answers = evaluate_model(tuned, test, settings.max_length)
    found = {"examples": len(test), "answers": len(answers.labels)}
    if settings.task != "span":
        found["loss"] = round(answers.loss, 4)
    if answers.accuracy is not None:
        found["accuracy"] = round(answers.accuracy, 4)
    if answers.labels.ndim == 1:
        labels = tuned.config.labels
        matrix = confusion_matrix(answers.labels, answers.predictions, len(labels))
        found["macro_f1"] = round(macro_f1(matrix), 4)
        found["confusion"] = matrix.tolist()
        found["baselines"] = _baselines(training, test, model, settings, rng)
    for name, value in found.items():
        print(f"test {name.replace('_', ' ')}: {value}")
    return found


def _baselines(training, test, model, settings, rng):
    """Return the accuracy of simple methods on the same test."""
    if settings.task == "token":
        found = {"majority label": majority_answers(training, test)}
        pairs = [
            ([y for _, ys in test for y in ys], sum(f, [])) for f in found.values()
        ]
    else:
        found = {
            "bag of words": bag_of_words_answers(training, test, rng),
            "frozen vectors": frozen_vectors_answers(
                training, test, rng, model, settings.max_length
            ),
        }
        pairs = [
            ([str(label) for _, label in test], answers) for answers in found.values()
        ]
    return {
        name: round(float(np.mean(np.equal(*map(np.array, pair)))), 4)
        for name, pair in zip(found, pairs)
    }


def _write_folder(out, model, report):
    """Write everything beside the folder's place, then move it there."""
    partial = Path(tempfile.mkdtemp(prefix=f"{out.name}.", dir=out.parent))
    try:
        save_pretrained(partial, *model)
        text = json.dumps(report, indent=1) + "\n"
        (partial / "report.json").write_text(text, "utf-8")
        partial.chmod(0o755)
        os.rename(partial, out)
    except OSError as error:
        raise BertError(f"{str(out)!r} cannot be written: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


if __name__ == "__main__":
    main()
