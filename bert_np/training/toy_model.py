"""Train a small model of the toy language from scratch.

    python -m bert_np.training.toy_model FOLDER [--steps N] [--seed N]

writes the model in HuggingFace's layout, and beside it report.json: how
it was trained, how well it does on held-out passages, how long training
took and with which versions. Run again after an interruption, the command
continues where it stopped.
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_np.config import BertConfig
from bert_np.files.checkpoint import save_pretrained
from bert_np.parameters import count_params, init_params
from bert_np.tokenizer import Tokenizer
from bert_np.training.loop import TrainingSettings, train
from bert_np.training.masking import mask_tokens
from bert_np.training.toy_grammar import MIX
from bert_np.training.toy_language import (
    MASK,
    SPECIALS,
    create_grammar,
    find_probes,
    sample_batch,
    vocabulary,
)
from bert_np.training.toy_skills import evaluate
from bert_np.tree import leaves, map_leaves

BATCH = 96  # passages per step
RATE = 0.15  # probability with which an ordinary token is masked
SKILL_RATE = 0.75  # the same for one word per passage that the rest determines
SNAPSHOTS = 12


def toy_config(grammar):
    """Return the sizes of the model: 3 layers of 4 heads, hidden size 64."""
    return BertConfig(
        vocab_size=len(grammar.tokens), hidden_size=64, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=256, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )  # fmt: skip


class Phase(NamedTuple):
    """One phase of the run: which passages, and the training settings."""

    mix: dict  # of the grammar: family of templates -> weight
    settings: TrainingSettings


def toy_phases(steps):
    """Return the two phases of a run: binding alone, then all passages.

    Binding, which of two things has which colour, takes several layers
    that only help together. Trained alone it is learned quite suddenly,
    within 1,000 steps, and is not forgotten; among the other skills it
    took 4,000 steps or more.

    Parameters
    ----------
    steps : int
        Of both phases together; at least 4.

    Returns
    -------
    list of Phase
    """
    first, second = steps * 3 // 10, steps - steps * 3 // 10
    return [
        Phase({"binding": 1.0}, toy_settings(first, falling=0)),
        Phase(MIX, toy_settings(second, falling=second * 2 // 3)),
    ]


def toy_settings(steps, falling):
    """Return settings: short warm-up, then the peak, then `falling` steps."""
    warmup = min(200, steps // 10)
    return TrainingSettings(
        steps=steps,
        warmup_steps=warmup,
        hold_steps=steps - warmup - falling,
        peak_rate=2e-3,
        beta2=0.98,
        parts=4,
    )


def start_params(config, rng):
    """Return the parameters before the first step: random, with two exceptions.

    The position table starts as waves, so that near positions are similar
    and "the token before" means the same everywhere. The key matrices
    start as copies of the query matrices. So at first a token attends to
    tokens that are like it and near it. From this start binding is learned
    within 1,000 steps; from a random one it was not within 3,000.

    Parameters
    ----------
    config : BertConfig
    rng : numpy.random.Generator

    Returns
    -------
    dict
        With both heads.

    Source: Vaswani et al. 2017, section 3.5 (positions; here with
    wavelengths from 3 to 57 tokens).
    """
    params = init_params(config, rng, heads=True)
    table = params["embeddings"]["position"]
    P, H = table.shape
    frequencies = 2 / 20 ** (np.arange(0, H, 2) / H)
    angles = np.arange(P)[:, None] * frequencies  # (P, H/2)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(P, H)
    scale = math.sqrt(2) * config.initializer_range  # waves have variance 1/2
    params["embeddings"]["position"] = (scale * waves).astype(table.dtype)
    for layer in params["layers"]:
        attention = layer["attention"]
        attention["key"]["W"] = attention["query"]["W"].copy()
    return params


def make_batch(rng, grammar):
    """Draw one batch of training passages, and mask them.

    In each passage one word that the rest determines is masked with
    probability 75 % instead of the paper's 15 %. Otherwise a small model
    would see too few of the questions that it is meant to learn.

    Parameters
    ----------
    rng : numpy.random.Generator
    grammar : Grammar

    Returns
    -------
    dict
        The five arrays that the docstring of pretraining lists.
    """
    batch = sample_batch(rng, BATCH, grammar, held_out=False)
    rate = np.full(batch["input_ids"].shape, RATE)
    probes = find_probes(batch, grammar)
    # In this random order the last probe of a passage wins. It is only one,
    # because "the [MASK] [MASK]" could not be answered.
    chosen = {probes[i].row: probes[i] for i in rng.permutation(len(probes))}
    for row, probe in chosen.items():
        rate[row, probe.position] = SKILL_RATE
    input_ids, labels = mask_tokens(
        batch["input_ids"],
        rng,
        special_ids=range(len(SPECIALS)),
        mask_id=MASK,
        vocab_size=len(grammar.tokens),
        rate=rate,
    )
    return {
        "input_ids": input_ids,
        "segment_ids": batch["segment_ids"],
        "attention_mask": batch["attention_mask"],
        "mlm_labels": labels,
        "nsp_labels": batch["next_labels"],
    }


def train_toy(out, phases, seed, snapshots=None, report=print, passages=12_000):
    """Train the toy model and write it with its report.

    Parameters
    ----------
    out : Path
        The folder for the model. Until the model is written, the state of
        the run is kept beside it.
    phases : list of Phase
    seed : int
        The seed of the generator that draws parameters and batches.
    snapshots : Path, optional
        A folder for float16 copies of the parameters during the run.
    report : function
        Called with lines of text.
    passages : int
        The number of held-out passages that measure the model at the end.

    Returns
    -------
    dict
        The content of report.json.
    """
    start, rng = time.perf_counter(), np.random.default_rng(seed)
    config = toy_config(create_grammar())
    params = start_params(config, rng)
    marks = snapshot_steps(sum(phase.settings.steps for phase in phases))
    before, states = 0, []
    for number, phase in enumerate(phases, 1):
        state = out.with_name(f"{out.name}.phase_{number}.npz")
        report(f"phase {number} of {len(phases)}: {', '.join(phase.mix)}")
        params = train_phase(
            params,
            config,
            phase,
            rng,
            state,
            report,
            keep_snapshots(snapshots, before, marks),
        )
        before += phase.settings.steps
        states.append(state)
    facts = describe_run(params, config, phases, seed, passages)
    facts["seconds"] = round(time.perf_counter() - start)
    facts["peak_memory_mb"] = peak_memory()
    save_pretrained(out, params, config, Tokenizer.from_tokens(vocabulary()))
    (out / "report.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    for state in states:
        state.unlink()
    return facts


def train_phase(params, config, phase, rng, state, report, after_step):
    """Run one phase, or what is left of it, and return the parameters.

    The file `state` keeps the phase. If it holds the last step, nothing is
    run: parameters and generator state come from the file.
    """
    grammar = create_grammar(phase.mix)
    params, _ = train(
        params,
        config,
        lambda rng: make_batch(rng, grammar),
        rng,
        phase.settings,
        checkpoint=state,
        resume=state.exists(),
        report=report,
        after_step=after_step,
    )
    return params


def keep_snapshots(folder, before, marks):
    """Return the function that `train` calls to save the marked steps."""

    def after_step(run):
        step = before + run["step"]
        if folder is not None and step in marks:
            half = map_leaves(lambda _, a: a.astype(np.float16), run["params"])
            save_snapshot(folder / f"step_{step:05}.npz", half)

    return after_step


def snapshot_steps(steps):
    """Return a dozen steps from 0.5 % to 100 % of the run, dense at first."""
    marks = np.geomspace(max(1, steps * 0.005), steps, SNAPSHOTS)
    return sorted({int(round(mark)) for mark in marks})


def save_snapshot(path, params):
    """Write parameters to an .npz file under their dotted names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **dict(leaves(params)))


def describe_run(params, config, phases, seed, passages):
    """Return the report of a finished run, measured on held-out passages."""
    rng = np.random.default_rng(seed + 1)
    figures = evaluate(params, config, create_grammar(), rng, passages)
    return {
        "command": "python -m bert_np.training.toy_model",
        "seed": seed,
        "phases": [{"mix": p.mix, "settings": p.settings._asdict()} for p in phases],
        "batch": BATCH,
        "masked": {"ordinary words": RATE, "a word that is settled": SKILL_RATE},
        "parameters": count_params(params),
        "passages": passages,
        "held_out": {name: round(value, 4) for name, value in figures.items()},
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }


def peak_memory():
    """Return the peak memory of this process in MB, or None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1e6 if sys.platform == "darwin" else 1e3  # macOS: bytes, Linux: kB
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--snapshots", type=Path)
    options = parser.parse_args(arguments)
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    facts = train_toy(
        options.folder, toy_phases(options.steps), options.seed, options.snapshots
    )
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
