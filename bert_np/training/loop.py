"""The training loop: batches in, trained parameters out."""

import time

import numpy as np

from bert_np.errors import BertError
from bert_np.fast import map_over_threads
from bert_np.parameters import check_params, keep_freed_memory
from bert_np.training.adam import adam, clip_by_global_norm, learning_rate
from bert_np.training.inputs import check_new_file, check_step, check_training
from bert_np.training.pretraining import losses_and_gradients
from bert_np.training.run import load_run, save_run, start_run
from bert_np.training.settings import TrainingSettings as TrainingSettings


def train(
    params,
    config,
    make_batch,
    rng,
    settings,
    *,
    checkpoint=None,
    resume=False,
    checkpoint_every=500,
    report=print,
    report_every=100,
    after_step=None,
    stop_when=None,
):
    """Train a model on batch after batch.

    On one machine the same params, make_batch, generator state and
    settings give the same bits, even if the run is stopped and resumed.

    Parameters
    ----------
    params : dict
        The parameter tree with both heads, or with the MLM head alone;
        never written to. What the losses do not depend on, such as a
        pooler without an NSP head, is returned as it was.
    config : BertConfig
        Dropout is on, with the rates of config.
    make_batch : function
        make_batch(rng) returns a dict of input_ids, segment_ids,
        attention_mask, mlm_labels and, for an NSP head, nsp_labels: see
        pretraining. It must draw everything random from rng and keep no
        state.
    rng : numpy.random.Generator
        Draws the batches and the dropout masks.
    settings : TrainingSettings
        With parts > 1 each step runs in as many threads as there are
        processors, and BLAS uses one thread in each.
    checkpoint : str or Path, optional
        The file that keeps the run: written every checkpoint_every steps,
        at the end, and on an interruption.
    resume : bool
        True: continue from the file, which then replaces params and the
        state of rng. False: the file must not exist.
    checkpoint_every : int
    report : function
        Called with a line of text every report_every steps.
    report_every : int
    after_step : function, optional
        Called with the run after each step, for snapshots and tests: run
        has step, params and history, and must not be written to. If the
        call is interrupted, the resumed run repeats step and call.
    stop_when : function, optional
        Called with the run before each step; the training ends where it
        returns True, even before settings.steps are made. It must decide
        by the run alone, since a resumed run asks it again.

    Returns
    -------
    params : dict
    history : list of dict
        For each step: loss, mlm_loss, nsp_loss, mlm_accuracy,
        nsp_accuracy, norm (of the gradient, before clipping), rate,
        tokens (without padding).

    Raises
    ------
    BertError
        If an argument is wrong or the gradient is no longer finite.
    KeyboardInterrupt
        After the checkpoint has been written.
    """
    every = {"checkpoint_every": checkpoint_every, "report_every": report_every}
    calls = {"make_batch": make_batch, "report": report}
    calls |= {"after_step": after_step, "stop_when": stop_when}
    checkpoint = check_training(calls, rng, settings, checkpoint, resume, every)
    run = _begin(_reached(params, config), config, rng, settings, checkpoint, resume)
    rng.bit_generator.state = run["rng"]
    keep_freed_memory()
    since = (run["step"], time.perf_counter())
    try:
        with map_over_threads(settings.parts) as run_all:
            while run["step"] < settings.steps and not _stops(stop_when, run):
                new = train_step(run, config, make_batch, rng, settings, run_all)
                if after_step is not None:
                    after_step(new)
                run, step, last = new, new["step"], new["step"] == settings.steps
                if step % report_every == 0 or last:
                    report(_progress(run, settings, since))
                    since = (step, time.perf_counter())
                if step % checkpoint_every == 0:
                    _keep(checkpoint, run, config, settings)
    except KeyboardInterrupt:
        _keep(checkpoint, run, config, settings)
        raise
    _keep(checkpoint, run, config, settings)
    return params | run["params"], run["history"]


def train_step(run, config, make_batch, rng, settings, run_all=map):
    """Make one training step: a batch, its gradient, one update by Adam.

    Parameters
    ----------
    run : dict
        See run; never written to.
    config : BertConfig
    make_batch : function
    rng : numpy.random.Generator
    settings : TrainingSettings
    run_all : function
        map, or the map of a pool of threads.

    Returns
    -------
    dict
        The run one step further.
    """
    check_step(run, make_batch, rng, settings)
    batch = make_batch(rng)
    metrics, grads = losses_and_gradients(
        run["params"], config, batch, rng=rng, parts=settings.parts, run_all=run_all
    )
    grads, norm = clip_by_global_norm(grads, settings.max_norm)
    rate = learning_rate(
        run["step"],
        settings.peak_rate,
        settings.warmup_steps,
        settings.steps,
        settings.hold_steps,
    )
    params, state = adam(
        run["params"],
        grads,
        run["adam"],
        rate,
        beta1=settings.beta1,
        beta2=settings.beta2,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )
    tokens = int(np.count_nonzero(batch["attention_mask"]))
    metrics = metrics | {"norm": norm, "rate": rate, "tokens": tokens}
    return {
        "step": run["step"] + 1,
        "params": params,
        "adam": state,
        "history": [*run["history"], metrics],
        "rng": rng.bit_generator.state,
    }


def _reached(params, config):
    """Return the parts of a checked tree that a gradient of the losses reaches.

    A gradient of 0 would not leave the others as they are: weight decay
    moves them, too.
    """
    check_params(params, config)
    parts = ["embeddings", "layers", "mlm"]
    parts += ["pooler", "nsp"] if "nsp" in params else []
    return {name: part for name, part in params.items() if name in parts}


def _begin(params, config, rng, settings, checkpoint, resume):
    if resume:
        return _resume(checkpoint, params, config, rng, settings)
    if checkpoint is not None:
        check_new_file(checkpoint)
    return start_run(params, rng)


def _resume(path, params, config, rng, settings):
    run = load_run(path, config, settings)
    if run["params"].keys() != params.keys():
        found, wanted = list(run["params"]), list(params)
        raise BertError(f"{path.name} holds the parts {found}, params {wanted}")
    wanted, found = run["rng"]["bit_generator"], type(rng.bit_generator).__name__
    if found != wanted:
        raise BertError(f"rng is a {found}, allowed: {wanted}, as in {path.name}")
    return run


def _stops(stop_when, run):
    return stop_when is not None and stop_when(run)


def _keep(checkpoint, run, config, settings):
    if checkpoint is not None:
        save_run(checkpoint, run, config, settings)


def _progress(run, settings, since):
    """Return a line with the means over the steps since (step, time)."""
    recent = run["history"][since[0] :]
    seconds = max(time.perf_counter() - since[1], 1e-9)
    speed = sum(entry["tokens"] for entry in recent) / seconds
    mean = {
        name: sum(entry[name] for entry in recent) / len(recent) for name in recent[0]
    }
    pairs = f"pairs {mean['nsp_accuracy']:.1%}  " if "nsp" in run["params"] else ""
    return (
        f"step {run['step']:,}/{settings.steps:,}  loss {mean['loss']:.3f}  "
        f"words {mean['mlm_accuracy']:.1%}  {pairs}{speed:,.0f} tokens/s"
    )
