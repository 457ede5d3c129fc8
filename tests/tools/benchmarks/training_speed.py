"""One training step here against the same step in PyTorch on the CPU.

    python tests/tools/benchmarks/training_speed.py [WORK] [--steps 60] [--where]

WORK is one of
    toy   pre-training with both heads: 3 layers of size 64, 96 x 30 tokens
    top   a classifier: the top 2 of MiniLM's 6 layers, 32 x 24 tokens
    tag   a tagger: the same layers, a label for each token
    all   a classifier: all 6 layers and the embeddings
Same sizes, batches, losses, clipping and AdamW on each side; dropout on
everywhere. In top and tag every side starts from what the frozen layers
made of the texts, but for the side that runs them in each step. Each side
is a process of its own, and they take turns, one step each. A round in
which a process waited for a processor for more than 5 % of its time is left
out of "calm" (Linux only). Printed: medians, and the median over the rounds
of each side's time divided by PyTorch's, in which HuggingFace's model has
one of its two kinds of attention; then the highest memory of each process
(Linux only). "4 parts" are parts of the batch in threads, BLAS held to one;
"1 part" leaves the threads to BLAS. On a machine that is never calm, --alone
gives every side one thread and counts the seconds that it computed, not those
that it waited. --where prints instead which of this library's functions the
time of a step goes to, on one core. Needs torch and transformers.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import time
from contextlib import suppress
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits
from turns import calm_rounds, rounds_of, start, stop, take_turns

TOY = {
    "vocab_size": 200,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 64,
}
MINILM = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}
TOP = 2  # layers that are trained in "top" and "tag"
LABELS = 2
IGNORED = -100
ALONE = os.environ.get("OMP_NUM_THREADS") == "1"  # as main sets it for --alone
CLOCK = time.process_time if ALONE else time.perf_counter
RATE, DECAY, MAX_NORM = 1e-3, 0.01, 1.0
SHAPES = {"toy": (96, 30), "top": (32, 24), "tag": (32, 24), "all": (32, 24)}


def make_batch(rng, work):
    """Random ids, half to full length, and labels."""
    sizes = TOY if work == "toy" else MINILM
    B, T = SHAPES[work]
    real = rng.integers(T // 2, T + 1, B)[:, None]
    real[0] = T
    mask = (np.arange(T) < real).astype(np.int64)
    ids = rng.integers(5, sizes["vocab_size"], (B, T)) * mask
    asked = (rng.random(ids.shape) < (1.0 if work == "tag" else 0.15)) & (mask == 1)
    batch = {"input_ids": ids, "attention_mask": mask}
    batch["segment_ids"] = (np.arange(T) >= real // 2).astype(np.int64) * mask
    if work == "toy":
        batch["mlm_labels"] = np.where(asked, ids, IGNORED)
        batch["nsp_labels"] = rng.integers(0, 2, B)
        return batch
    words = np.where(asked, ids % LABELS, IGNORED)
    batch["labels"] = words if work == "tag" else rng.integers(0, LABELS, B)
    batch["hidden"] = rng.standard_normal((B, T, sizes["hidden_size"]), np.float32)
    return batch


# ------------------------------------------------------------- this library


def pretraining_steps(work, parts):
    """Make one pre-training step for each line read."""
    import bert_np
    from bert_np.training.loop import TrainingSettings, train

    config, rng = bert_np.BertConfig(**TOY), np.random.default_rng(0)
    params = bert_np.init_params(config, rng, heads=True)
    settings = TrainingSettings(
        steps=10**6,
        warmup_steps=0,
        peak_rate=RATE,
        weight_decay=DECAY,
        max_norm=MAX_NORM,
        parts=parts,
    )
    turns = take_turns(CLOCK)
    train(
        params,
        config,
        lambda rng: make_batch(rng, work),
        rng,
        settings,
        report_every=10**6,
        after_step=lambda run: next(turns),
    )


def fine_tuning_steps(work, parts, keep=True):
    """Make one step of fine-tuning for each line read."""
    import bert_np
    from bert_np.fast import map_over_threads
    from bert_np.training.adam import init_adam
    from bert_np.training.fine_tuning import fine_tuning_step
    from bert_np.training.frozen import _frozen_model, split_layers
    from bert_np.training.settings import FineTuningSettings

    task, rng = "token" if work == "tag" else "sequence", np.random.default_rng(0)
    config = bert_np.BertConfig(
        **MINILM, labels=("a", "b"), problem_type="single_label_classification"
    )
    params = bert_np.init_params(config, rng, heads=[task])
    if task == "token":
        del params["pooler"]
    frozen, trained = split_layers(params, None if work == "all" else TOP)
    run_frozen = _frozen_model(frozen, config) if frozen else None
    settings = FineTuningSettings(
        body_rate=RATE,
        head_rate=RATE,
        weight_decay=DECAY,
        max_norm=MAX_NORM,
        parts=parts,
    )
    run = {"step": 0, "params": trained, "adam": init_adam(trained)}
    turns = take_turns(CLOCK)
    with map_over_threads(parts) as run_all:
        while True:
            batch = make_batch(rng, work)
            next(turns)
            if not keep:
                batch["hidden"] = run_frozen(batch)
            run, _ = fine_tuning_step(run, batch, config, settings, 10**6, rng, run_all)


PLACES = ("linear", "scaled_dot_product", "gelu", "layer_norm")


def where_the_time_goes(work, steps):
    """Print the share of some functions, forward and backward, on one core."""
    profile, count = cProfile.Profile(), iter(range(steps))

    def a_few_turns(clock):
        profile.enable()
        yield from count
        profile.disable()
        raise KeyboardInterrupt

    function = pretraining_steps if work == "toy" else fine_tuning_steps
    few = mock.patch(f"{__name__}.take_turns", a_few_turns)
    with few, threadpool_limits(1, user_api="blas"), suppress(KeyboardInterrupt):
        function(work, 1)
    stats = pstats.Stats(profile)
    shares = {
        name: sum(
            entry[3]  # seconds, those of functions called included
            for (*_, function), entry in stats.stats.items()
            if function.removesuffix("_backward") == name
        )
        / stats.total_tt
        for name in PLACES
    }
    for name, share in shares.items():
        print(f"{name:20} {share:4.0%}")
    print(f"{'all else':20} {1 - sum(shares.values()):4.0%}")


# ------------------------------------------------------------------ PyTorch


def torch_steps(work, attention):
    """Make one step of PyTorch for each line read."""
    import torch

    torch.set_num_threads(1 if ALONE else os.cpu_count())
    torch.manual_seed(0)
    loss_of, trained = (torch_toy if work == "toy" else torch_task)(work, attention)
    decayed = [p for p in trained if p.ndim > 1]
    others = [p for p in trained if p.ndim == 1]
    groups = [
        {"params": decayed, "weight_decay": DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer, rng = torch.optim.AdamW(groups, lr=RATE), np.random.default_rng(0)
    turns = take_turns(CLOCK)
    while True:
        batch = {k: torch.from_numpy(v) for k, v in make_batch(rng, work).items()}
        next(turns)
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
        optimizer.step()


def torch_toy(work, attention):
    """The function of a batch to its loss, and the parameters."""
    from torch.nn.functional import cross_entropy
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(**TOY, attn_implementation=attention)
    model = BertForPreTraining(config).train()

    def loss_of(batch):
        out = model.bert(
            batch["input_ids"],
            attention_mask=batch["attention_mask"],
            token_type_ids=batch["segment_ids"],
        )
        asked = batch["mlm_labels"] != IGNORED
        mlm = model.cls.predictions(out.last_hidden_state[asked])
        nsp = model.cls.seq_relationship(out.pooler_output)
        loss = cross_entropy(mlm, batch["mlm_labels"][asked])
        return loss + cross_entropy(nsp, batch["nsp_labels"])

    return loss_of, list(model.parameters())


def torch_task(work, attention):
    """The same for a classifier or a tagger, with what is trained."""
    import torch
    from torch.nn.functional import cross_entropy
    from transformers import BertConfig, BertModel

    config = BertConfig(**MINILM, attn_implementation=attention)
    model = BertModel(config, add_pooling_layer=work != "tag").train()
    head = torch.nn.Linear(config.hidden_size, LABELS)
    modules = [model] if work == "all" else [*model.encoder.layer[-TOP:]]
    modules += [model.pooler] if work == "top" else []
    trained = [p for module in (*modules, head) for p in module.parameters()]

    def loss_of(batch):
        if work == "all":
            vector = model(
                batch["input_ids"],
                attention_mask=batch["attention_mask"],
                token_type_ids=batch["segment_ids"],
            ).pooler_output
        else:
            x, hidden = batch["hidden"], batch["attention_mask"] == 0
            bias = torch.zeros(x.shape[0], 1, 1, x.shape[1])
            bias = bias.masked_fill(hidden[:, None, None], torch.finfo(x.dtype).min)
            for layer in model.encoder.layer[-TOP:]:
                x = layer(x, bias)
                x = x[0] if isinstance(x, tuple) else x
            vector = x if work == "tag" else model.pooler(x)
        vector = torch.nn.functional.dropout(vector, 0.1)
        logits, labels = head(vector).flatten(0, -2), batch["labels"].flatten()
        return cross_entropy(logits, labels, ignore_index=IGNORED)

    return loss_of, trained


# -------------------------------------------------------------------- turns


def measure(work, count):
    """Rows of (seconds, share waited) a side, and the memory of each in MB."""
    sides = sides_of(work)
    workers = [start([__file__, work, "--worker", side]) for side in sides]
    rounds = rounds_of(workers, count)
    memory = [highest_memory(worker.pid) for worker in workers]
    for worker in workers:
        stop(worker)
    return rounds, dict(zip(sides, memory))


def highest_memory(pid):
    """The highest memory of a process so far in MB; None where unknown."""
    try:
        with open(f"/proc/{pid}/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1000
    except (OSError, StopIteration):
        return None


def sides_of(work):
    """Name -> (function, its options)."""
    torch = {f"torch, {kind}": (torch_steps, kind) for kind in ("sdpa", "eager")}
    if work == "toy":
        steps = {f"bert_np, {n} part(s)": (pretraining_steps, n) for n in (4, 1)}
        return steps | torch
    steps = {f"bert_np, {n} part(s)": (fine_tuning_steps, n) for n in (2, 1)}
    if work != "all":
        steps["bert_np, nothing kept"] = (fine_tuning_steps, 2, False)
    return steps | torch


def figures(rounds, sides):
    """Side -> median seconds, and median ratios to torch's two sides."""
    sdpa, eager = len(sides) - 2, len(sides) - 1
    return {
        side: (
            statistics.median(r[i][0] for r in rounds),
            *(
                statistics.median(r[i][0] / r[k][0] for r in rounds)
                for k in (sdpa, eager)
            ),
        )
        for i, side in enumerate(sides)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="?", default="toy", choices=SHAPES)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--where", action="store_true")
    parser.add_argument("--worker")
    arguments = parser.parse_args()
    work, sides = arguments.work, sides_of(arguments.work)
    if arguments.worker:
        function, *options = sides[arguments.worker]
        return function(work, *options)
    if arguments.where:
        return where_the_time_goes(work, arguments.steps)
    if arguments.alone:
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    rounds, memory = measure(work, arguments.steps)
    rounds = rounds[5:]  # without warm-up
    calm = calm_rounds(rounds)
    threads = "one thread each, CPU time" if arguments.alone else "all threads"
    print(f"{work}: batch {SHAPES[work]}, {os.cpu_count()} processors, {threads}")
    for title, kept in (("calm rounds", calm), ("all rounds", rounds)):
        print(f"{title}: {len(kept)} of {len(rounds)}")
        for side, (median, *ratios) in (figures(kept, sides) if kept else {}).items():
            print(
                f"  {side:22} {median * 1e3:7.1f} ms   to torch: sdpa "
                f"{ratios[0]:.2f}, eager {ratios[1]:.2f}   {memory[side] or 0:.0f} MB"
            )


if __name__ == "__main__":
    main()
