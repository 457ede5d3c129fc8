"""One training step here against the same step in PyTorch on the CPU.

    python tests/tools/benchmarks/training_speed.py [--steps 60] [--length 30]

Same sizes, batches, losses, clipping and AdamW; dropout on everywhere.
Each side is a process of its own, and they take turns, one step each. A
round in which a process waited for a processor for more than 5 % of its
time is left out of "calm" (Linux only). Printed: medians, and the median
over the rounds of each side's time divided by PyTorch's. "bert_np, 4
parts" runs parts of the batch in threads, BLAS held to one; "1 part"
leaves the threads to BLAS. PyTorch's sides are HuggingFace's model with
its two kinds of attention; the MLM logits are computed at
labelled positions only, as here. Needs torch and transformers.
"""

import argparse
import os
import statistics

import numpy as np
from turns import calm_rounds, rounds_of, start, stop, take_turns

SIZES = {
    "vocab_size": 200,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 64,
}
BATCH, IGNORED = 96, -100
RATE, DECAY, MAX_NORM = 1e-3, 0.01, 1.0


def make_batch(rng, length):
    """Random ids, half to full length, 15 % of the real ones labelled."""
    real = rng.integers(length // 2, length + 1, BATCH)[:, None]
    columns = np.arange(length)
    mask = (columns < real).astype(np.int64)
    ids = rng.integers(5, SIZES["vocab_size"], (BATCH, length)) * mask
    asked = (rng.random(ids.shape) < 0.15) & (mask == 1)
    return {
        "input_ids": ids,
        "segment_ids": (columns >= real // 2).astype(np.int64) * mask,
        "attention_mask": mask,
        "mlm_labels": np.where(asked, ids, IGNORED),
        "nsp_labels": rng.integers(0, 2, BATCH),
    }


def numpy_steps(length, parts):
    """Make one training step of this library for each line read."""
    import bert_np
    from bert_np.training.loop import TrainingSettings, train

    config, rng = bert_np.BertConfig(**SIZES), np.random.default_rng(0)
    params = bert_np.init_params(config, rng, heads=True)
    settings = TrainingSettings(
        steps=10**6,
        warmup_steps=0,
        peak_rate=RATE,
        weight_decay=DECAY,
        max_norm=MAX_NORM,
        parts=parts,
    )
    turns = take_turns()
    train(
        params,
        config,
        lambda rng: make_batch(rng, length),
        rng,
        settings,
        report_every=10**6,
        after_step=lambda run: next(turns),
    )


def torch_steps(length, attention):
    """Make one training step of PyTorch for each line read."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    config = BertConfig(**SIZES, attn_implementation=attention)
    model = BertForPreTraining(config).train()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [
        {"params": decayed, "weight_decay": DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    cross_entropy, rng = torch.nn.functional.cross_entropy, np.random.default_rng(0)
    turns = take_turns()
    while True:
        batch = {k: torch.from_numpy(v) for k, v in make_batch(rng, length).items()}
        out = model.bert(
            batch["input_ids"],
            attention_mask=batch["attention_mask"],
            token_type_ids=batch["segment_ids"],
        )
        asked = batch["mlm_labels"] != IGNORED
        mlm = model.cls.predictions(out.last_hidden_state[asked])
        nsp = model.cls.seq_relationship(out.pooler_output)
        loss = cross_entropy(mlm, batch["mlm_labels"][asked])
        loss = loss + cross_entropy(nsp, batch["nsp_labels"])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        next(turns)


def measure(count, length):
    """Rows of (seconds, share waited) a side, taken in turns."""
    command = [__file__, "--length", str(length), "--worker"]
    workers = [start([*command, side]) for side in SIDES]
    rounds = rounds_of(workers, count)
    for worker in workers:
        stop(worker)
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--worker", choices=SIDES)
    arguments = parser.parse_args()
    if arguments.worker:
        function, option = SIDES[arguments.worker]
        return function(arguments.length, option)
    rounds = measure(arguments.steps, arguments.length)[5:]  # without warm-up
    calm = calm_rounds(rounds)
    print(f"batch {BATCH}, length {arguments.length}, {os.cpu_count()} processors")
    for title, kept in (("calm rounds", calm), ("all rounds", rounds)):
        print(f"{title}: {len(kept)} of {len(rounds)}")
        for side, (median, *ratios) in (figures(kept) if kept else {}).items():
            print(
                f"  {side:18} {median * 1e3:7.1f} ms   to torch: sdpa "
                f"{ratios[0]:.2f}, eager {ratios[1]:.2f}"
            )


def figures(rounds):
    """Side -> median seconds, and median ratios to torch's two sides."""
    return {
        side: (
            statistics.median(r[i][0] for r in rounds),
            *(statistics.median(r[i][0] / r[k][0] for r in rounds) for k in (2, 3)),
        )
        for i, side in enumerate(SIDES)
    }


SIDES = {
    "bert_np, 4 parts": (numpy_steps, 4),
    "bert_np, 1 part": (numpy_steps, 1),
    "torch, sdpa": (torch_steps, "sdpa"),
    "torch, eager": (torch_steps, "eager"),
}

if __name__ == "__main__":
    main()
