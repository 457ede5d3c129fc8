"""Train a small model of the toy language from scratch.

    python -m bert_np.training.toy_model FOLDER [--seed N]
    python -m bert_np.training.toy_model FOLDER --seeds 0 1 2 3 4 5

The first command writes the model in HuggingFace's layout, and beside it
report.json: how it was trained, how well it does on held-out passages, how
long training took and with which versions. The second trains one model
from each seed, in FOLDER/seed_0 and so on, and writes FOLDER/seeds.json,
which puts their results side by side. Run again after an interruption,
either command continues where it stopped.
"""

import argparse
import json
import math
import os
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
    find_targets,
    sample_batch,
    vocabulary,
)
from bert_np.training.toy_skills import evaluate, format_skills, measure_skills
from bert_np.tree import leaves, map_leaves

BATCH = 96  # passages per step
SKILL_RATE = 0.9  # how often one word per passage that the rest determines is masked
FIRST_MIX = MIX | {"binding": 0.99}  # so 60 % of the passages are about binding
GOAL = 0.98  # accuracy of each skill that ends the first phase
CHECK_EVERY = 100  # steps between two measurements of the skills
CHECKED = 600  # held-out passages of each measurement
SNAPSHOTS = (50, 100, 200, 300, 400, 600, 800, 1000, 1200, 1400, 1600)  # and the last


def toy_config(grammar):
    """Return the sizes of the model: 3 layers of 4 heads, hidden size 64."""
    return BertConfig(
        vocab_size=len(grammar.tokens), hidden_size=64, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=256, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )  # fmt: skip


class Phase(NamedTuple):
    """One phase of the run: which passages, the settings, and when it ends."""

    mix: dict  # of the grammar: family of templates -> weight
    settings: TrainingSettings
    rate: float  # probability with which an ordinary token is masked
    goal: float | None = None  # accuracy of every skill that ends it early


def toy_phases(first=12_000, second=3000):
    """Return the two phases of a run: learning the skills, then settling.

    Both phases show all kinds of passages from their first step. The first
    one keeps the learning rate at its peak and ends when every skill is
    there, which is measured on held-out passages. Binding, which of two
    things has which colour, decides when that is: it takes several layers
    that only help together, and appears abruptly, after the other skills.
    So in this phase six passages in ten are about binding, and ordinary
    words are masked less often than in the paper. In the second phase
    the passages come in the proportions of the language, masking is as in
    the paper, and the learning rate falls to 0.

    Parameters
    ----------
    first : int
        The largest number of steps of the first phase.
    second : int
        The number of steps of the second phase.

    Returns
    -------
    list of Phase
    """
    return [
        Phase(FIRST_MIX, toy_settings(first, falling=0), rate=0.05, goal=GOAL),
        Phase(MIX, toy_settings(second, falling=second * 2 // 3), rate=0.15),
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
    """Return the parameters before the first step: random, with three exceptions.

    The position table starts as waves, so that near positions are similar
    and "the token before" means the same everywhere. The key matrices
    start as copies of the query matrices, so at first a token attends to
    tokens that are like it and near it. The output matrices start as the
    value matrices transposed, so at first a head adds to a token something
    like what it has read there. A skill that takes several layers, such as
    binding, needs heads that pass words on and heads that compare them;
    from this start neither has to be found from nothing.

    Parameters
    ----------
    config : BertConfig
    rng : numpy.random.Generator

    Returns
    -------
    dict
        With both heads.

    Source: Vaswani et al. 2017, section 3.5 (positions; here with
    wavelengths from 3 to 57 tokens); Trockman & Kolter 2023 (products of
    query and key, and of value and output, that start near a multiple of
    the identity).
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
        attention["output"]["W"] = attention["value"]["W"].T.copy()
    return params


def make_batch(rng, grammar, rate):
    """Draw one batch of training passages, and mask them.

    In each passage one word that the rest determines is masked with
    probability 90 %. Otherwise a small model would see too few of the
    questions that it is meant to learn. All others are masked with
    probability `rate`. The lower it is, the less often the words that
    settle the answer are hidden.

    Parameters
    ----------
    rng : numpy.random.Generator
    grammar : Grammar
    rate : float
        The probability with which an ordinary token is masked.

    Returns
    -------
    dict
        The five arrays that the docstring of pretraining lists.
    """
    batch = sample_batch(rng, BATCH, grammar, held_out=False)
    # In order of length, so that the parts of a step have little padding.
    order = np.argsort(batch["attention_mask"].sum(axis=1), kind="stable")
    batch = {name: array[order] for name, array in batch.items()}
    rates = np.full(batch["input_ids"].shape, float(rate))
    # In this random order the last target of a passage wins. It is only one,
    # because "the [MASK] [MASK]" could not be answered.
    chosen = dict(rng.permutation(find_targets(batch, grammar)).tolist())
    rates[list(chosen), list(chosen.values())] = SKILL_RATE
    input_ids, labels = mask_tokens(
        batch["input_ids"],
        rng,
        special_ids=range(len(SPECIALS)),
        mask_id=MASK,
        vocab_size=len(grammar.tokens),
        rate=rates,
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
    config, ends = toy_config(create_grammar()), [0]
    params = start_params(config, rng)
    for number, phase in enumerate(phases, 1):
        report(f"phase {number} of {len(phases)}: {', '.join(phase.mix)}")
        state = out.with_name(f"{out.name}.phase_{number}.npz")
        params, history = train_phase(
            params, config, phase, rng, state, report,
            *watch(out, config, phase, ends[-1], snapshots, report),
        )  # fmt: skip
        ends.append(ends[-1] + len(history))
    if snapshots is not None:
        save_snapshot(snapshots, ends[-1], params)
    facts = describe_run(params, config, phases, ends[1:], seed, passages)
    facts |= {"curve": read_curve(out), "seconds": round(time.perf_counter() - start)}
    facts |= {"processors": os.cpu_count(), "peak_memory_mb": peak_memory()}
    save_pretrained(out, params, config, Tokenizer.from_tokens(vocabulary()))
    write_json(out / "report.json", facts)
    for path in out.parent.glob(f"{out.name}.phase_*.npz"):
        path.unlink()
    curve_file(out).unlink(missing_ok=True)
    return facts


def train_phase(params, config, phase, rng, state, report, after_step, stop_when):
    """Run one phase, or what is left of it; return parameters and history.

    The file `state` keeps the phase. If the phase has ended, nothing is
    run: parameters and generator state come from the file.
    """
    grammar = create_grammar(phase.mix)
    return train(
        params,
        config,
        lambda rng: make_batch(rng, grammar, phase.rate),
        rng,
        phase.settings,
        checkpoint=state,
        resume=state.exists(),
        report=report,
        after_step=after_step,
        stop_when=stop_when,
    )


def watch(out, config, phase, before, snapshots, report):
    """Return the two functions through which `train` is watched and ended.

    The first saves snapshots and measures the skills on held-out passages,
    always the same ones; a file beside the model keeps the curve, so that
    a resumed run knows it. The second tells whether the phase has reached
    its goal. `before` is the number of steps of the earlier phases.
    """
    grammar = create_grammar()
    held_out = sample_batch(np.random.default_rng(0), CHECKED, grammar, held_out=True)

    def after_step(run):
        step = before + run["step"]
        if snapshots is not None and step in SNAPSHOTS:
            save_snapshot(snapshots, step, run["params"])
        if step % CHECK_EVERY == 0:
            right = measure_skills(run["params"], config, grammar, held_out)
            write_json(curve_file(out), read_curve(out) | {str(step): rounded(right)})
            report(format_skills(step, right))

    def goal_is_met(run):
        right = read_curve(out).get(str(before + run["step"]))
        return phase.goal is not None and right and min(right.values()) >= phase.goal

    return after_step, goal_is_met


def curve_file(out):
    """Return the file that keeps the curve until the model is written."""
    return out.with_name(f"{out.name}.curve.json")


def read_curve(out):
    """Return {step: {skill: accuracy}} as far as it was measured."""
    path = curve_file(out)
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def rounded(figures):
    """Return the same figures with four digits."""
    return {name: round(value, 4) for name, value in figures.items()}


def save_snapshot(folder, step, params):
    """Write float16 copies of the parameters under their dotted names."""
    folder.mkdir(parents=True, exist_ok=True)
    half = map_leaves(lambda _, array: array.astype(np.float16), params)
    np.savez_compressed(folder / f"step_{step:05}.npz", **dict(leaves(half)))


def write_json(path, facts):
    """Write facts as JSON, with one line for each."""
    path.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def describe_run(params, config, phases, ends, seed, passages):
    """Return the report of a finished run, measured on held-out passages."""
    rng = np.random.default_rng(seed + 1)
    figures = evaluate(params, config, create_grammar(), rng, passages)
    return {
        "command": "python -m bert_np.training.toy_model",
        "seed": seed,
        "phases": [
            {"mix": phase.mix, "settings": phase.settings._asdict(),
             "masked": {"ordinary words": phase.rate,
                        "a word that is settled": SKILL_RATE},
             "goal": phase.goal, "ended": end}
            for phase, end in zip(phases, ends)
        ],
        "batch": BATCH,
        "parameters": count_params(params),
        "passages": passages,
        "held_out": rounded(figures),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }  # fmt: skip


def train_seeds(folder, phases, seeds, report=print, passages=12_000):
    """Train a model from each seed and put the results side by side.

    A model that is there already is not trained again: its report counts.

    Parameters
    ----------
    folder : Path
        Of the models, each in a folder of its own, and of seeds.json.
    phases : list of Phase
    seeds : list of int
    report : function
        Called with lines of text.
    passages : int
        As in train_toy.

    Returns
    -------
    list of dict
        The content of seeds.json: for each seed the steps at which its
        phases ended, and what its model can do.
    """
    results = []
    for seed in seeds:
        out = folder / f"seed_{seed}"
        report(f"seed {seed}")
        if (out / "report.json").exists():
            facts = json.loads((out / "report.json").read_text("utf-8"))
        else:
            facts = train_toy(out, phases, seed, None, report, passages)
        results.append(in_short(facts))
        write_json(folder / "seeds.json", results)
    return results


def in_short(facts):
    """Return what seeds.json keeps of a report."""
    ended = [phase["ended"] for phase in facts["phases"]]
    return {"seed": facts["seed"], "phases_ended": ended, "held_out": facts["held_out"]}


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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--snapshots", type=Path)
    options = parser.parse_args(arguments)
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    given = options.folder, toy_phases()
    if options.seeds:
        options.folder.mkdir(exist_ok=True)
        facts = train_seeds(*given, options.seeds)
    else:
        facts = train_toy(*given, options.seed, options.snapshots)
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
