"""Train a small model of the toy language, from nothing.

    python -m bert_np.training.toy_model FOLDER [--steps N] [--seed N]

writes the model in HuggingFace's layout, and beside it report.json: how
it was trained, how well it does on held-out passages, how long it took
and on which versions. An interrupted run goes on where it stopped.
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path

import numpy as np

from bert_np.checkpoint import save_pretrained
from bert_np.config import BertConfig
from bert_np.parameters import count_params, init_params, leaves, map_leaves
from bert_np.tokenizer import Tokenizer
from bert_np.training.masking import mask_tokens
from bert_np.training.toy_language import (
    MASK,
    SPECIALS,
    create_grammar,
    find_probes,
    sample_batch,
)
from bert_np.training.toy_skills import evaluate
from bert_np.training.train import TrainingSettings, train

BATCH = 96  # passages a step
RATE = 0.15  # share of ordinary tokens that is masked
SKILL_RATE = 0.75  # chance for one word a passage that its other words settle
SNAPSHOTS = 12


def toy_config(grammar):
    """The sizes of the model: 3 layers of 4 heads, hidden 64."""
    return BertConfig(
        vocab_size=len(grammar.tokens), hidden_size=64, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=256, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )  # fmt: skip


def toy_settings(steps):
    """A short warm-up, the peak for two thirds of the run, then down to 0."""
    warmup = min(200, steps // 10)
    return TrainingSettings(
        steps=steps, warmup_steps=warmup, hold_steps=steps * 2 // 3 - warmup,
        peak_rate=2e-3, beta2=0.98, parts=4,
    )


def start_params(config, rng):
    """The parameters before the first step: random, but for two things.

    The position table begins as waves, so that near positions are alike
    and "the token before" means the same everywhere. The keys begin as
    copies of the queries. Together: a token first looks at tokens like
    itself and near it. From there the model learns which of two things
    has which colour within 1,500 steps; from random tables and keys it
    had not after 3,500.

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
    """One batch of training passages, masked.

    One word that the rest of the passage settles is masked far more often
    than the paper's 15 %, other words less: a small model would otherwise
    see too few of the questions that it is to learn.

    Parameters
    ----------
    rng : numpy.random.Generator
    grammar : Grammar

    Returns
    -------
    dict
        As pretraining lists it.
    """
    batch = sample_batch(rng, BATCH, grammar, held_out=False)
    rate = np.full(batch["input_ids"].shape, RATE)
    probes = find_probes(batch, grammar)
    # The last of a passage in this random order counts: one a passage, since
    # "the [MASK] [MASK]" could not be answered.
    one_a_row = {probes[i].row: probes[i] for i in rng.permutation(len(probes))}
    for row, probe in one_a_row.items():
        rate[row, probe.position] = SKILL_RATE
    input_ids, labels = mask_tokens(
        batch["input_ids"], rng, special_ids=range(len(SPECIALS)), mask_id=MASK,
        vocab_size=len(grammar.tokens), rate=rate,
    )
    return {
        "input_ids": input_ids,
        "segment_ids": batch["segment_ids"],
        "attention_mask": batch["attention_mask"],
        "mlm_labels": labels,
        "nsp_labels": batch["next_labels"],
    }


def train_toy(out, settings, seed, snapshots=None, report=print):
    """Train the toy model and write it with its report.

    Parameters
    ----------
    out : Path
        The folder of the model; the state of the run is kept beside it
        until the model is written.
    settings : TrainingSettings
    seed : int
        Of the generator from which parameters and batches come.
    snapshots : Path, optional
        A folder for float16 copies of the parameters along the way.
    report : function
        Gets lines of text.

    Returns
    -------
    dict
        What report.json holds.
    """
    grammar, start = create_grammar(), time.perf_counter()
    config = toy_config(grammar)
    rng = np.random.default_rng(seed)
    params = start_params(config, rng)
    state = out.with_name(f"{out.name}.run.npz")
    params, _ = train(
        params, config, lambda rng: make_batch(rng, grammar), rng, settings,
        checkpoint=state, resume=state.exists(), report=report,
        after_step=keep_snapshots(snapshots, settings.steps),
    )
    facts = describe_run(params, config, settings, seed, grammar)
    facts["seconds"] = round(time.perf_counter() - start)
    facts["peak_memory_mb"] = peak_memory()
    save_pretrained(out, params, config, Tokenizer.from_tokens(grammar.tokens))
    (out / "report.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    state.unlink()
    return facts


def keep_snapshots(folder, steps):
    """What `train` calls after each step: it saves those of the marked steps."""
    marks = snapshot_steps(steps)

    def after_step(run):
        if folder is not None and run["step"] in marks:
            half = map_leaves(lambda _, a: a.astype(np.float16), run["params"])
            save_snapshot(folder / f"step_{run['step']:05}.npz", half)

    return after_step


def snapshot_steps(steps):
    """A dozen steps, close together at first: 0.5 % to all of the run."""
    marks = np.geomspace(max(1, steps * 0.005), steps, SNAPSHOTS)
    return sorted({int(round(mark)) for mark in marks})


def save_snapshot(path, params):
    """Write parameters as an .npz of their dotted names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **dict(leaves(params)))


def describe_run(params, config, settings, seed, grammar):
    """The facts of a finished run, with its figures on held-out passages."""
    figures = evaluate(params, config, grammar, np.random.default_rng(seed + 1))
    return {
        "command": "python -m bert_np.training.toy_model",
        "seed": seed,
        "settings": settings._asdict(),
        "batch": BATCH,
        "masked": {"ordinary words": RATE, "a word that is settled": SKILL_RATE},
        "parameters": count_params(params),
        "held_out": {name: round(value, 4) for name, value in figures.items()},
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }


def peak_memory():
    """The most memory that this process has held, in MB; None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--snapshots", type=Path)
    options = parser.parse_args(arguments)
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    facts = train_toy(
        options.folder, toy_settings(options.steps), options.seed, options.snapshots
    )
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
