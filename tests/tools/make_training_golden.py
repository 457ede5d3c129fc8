"""Store what PyTorch's autograd and AdamW give, for the tests to compare.

    python tests/tools/make_training_golden.py

The tiny checkpoint of golden/tiny, its stored batch, labels drawn here,
float64, no dropout. training.npz holds the labels, the loss, the gradient
of every parameter under our names and in our layout, and a few AdamW
updates of small arrays. tasks/training.npz holds the same for the heads of
golden/tasks, in five problems. Needs torch and transformers; the tests do
not. The versions used are written into the files.
"""

import json
from pathlib import Path

import numpy as np

from bert_np.files.checkpoint import huggingface_name, load_checkpoint
from bert_np.parameters import HEADS
from bert_np.tree import leaves

TINY = Path(__file__).parents[1] / "golden" / "tiny"
GOLDEN = Path(__file__).parents[1] / "golden" / "training.npz"
TASKS = GOLDEN.parent / "tasks"
# A problem -> the folder in golden/tasks, and what the sequence head reads.
PROBLEMS = {
    "single_label_classification": ("sequence", "pooler"),
    "multi_label_classification": ("sequence", "pooler"),
    "regression": ("sequence", "mean"),
    "token": ("token", "pooler"),
    "span": ("question", "pooler"),
}
IGNORED, MASKED = -100, 4  # the label of no word, the id of [MASK]
UPDATES, RATES = 6, (1e-2, 5e-3)  # the rate changes halfway
ADAM = {"betas": (0.8, 0.95), "eps": 1e-7}
DECAY = 0.1


def draw_batch():
    """The stored ids of golden/tiny, some of them masked and labelled."""
    stored = np.load(TINY / "golden.npz")
    ids, mask = stored["input_ids"], stored["attention_mask"]
    rng = np.random.default_rng(0)
    asked = (rng.random(ids.shape) < 0.4) & (mask == 1)
    return {
        "input_ids": np.where(asked, MASKED, ids),
        "segment_ids": stored["token_type_ids"],
        "attention_mask": mask,
        "mlm_labels": np.where(asked, ids, IGNORED),
        "nsp_labels": np.array([0, 1, IGNORED, 1]),
    }


def torch_gradients(batch, **changes):
    """The loss and {our name: gradient in our layout} from autograd.

    ``changes`` are fields of HuggingFace's config, such as hidden_act. Its
    lookup leaves the padding word's row without gradient, which matters
    where a real token has that id; here this is switched off.
    """
    import torch
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig.from_pretrained(TINY, attn_implementation="eager", **changes)
    model = BertForPreTraining.from_pretrained(TINY, config=config).double().eval()
    model.bert.embeddings.word_embeddings.padding_idx = None
    batch = {name: torch.from_numpy(array.copy()) for name, array in batch.items()}
    out = model(
        batch["input_ids"],
        attention_mask=batch["attention_mask"],
        token_type_ids=batch["segment_ids"],
    )
    cross_entropy = torch.nn.functional.cross_entropy
    words = out.prediction_logits.flatten(0, 1)
    loss = cross_entropy(words, batch["mlm_labels"].flatten())
    loss = loss + cross_entropy(out.seq_relationship_logits, batch["nsp_labels"])
    loss.backward()
    params, _, _ = load_checkpoint(TINY)
    return loss.item(), our_names(model, params, lambda array: array.grad)


def draw_task(problem, seed=2):
    """The stored ids of a folder in golden/tasks, with labels of a problem."""
    folder, _ = PROBLEMS[problem]
    with np.load(TASKS / folder / "golden.npz") as golden:
        names = ("input_ids", "segment_ids", "attention_mask")
        batch = {name: golden[name] for name in names}
    rng, (B, T) = np.random.default_rng(seed), batch["input_ids"].shape
    labels = {
        "single_label_classification": rng.integers(0, 3, B),
        "multi_label_classification": rng.integers(0, 2, (B, 3)).astype(np.float64),
        "regression": rng.normal(size=(B, 3)),
        "token": np.where(
            batch["attention_mask"] == 1, rng.integers(0, 5, (B, T)), -100
        ),
        "span": np.sort(
            rng.integers(0, batch["attention_mask"].sum(1, keepdims=True), (B, 2))
        ),
    }
    if problem == "token":
        labels["token"][:, ::3] = IGNORED
    return batch | {"labels": labels[problem]}


def torch_task(problem, dtype="float64"):
    """HuggingFace's model of a task, and the function of a batch to its loss.

    The losses are its own, but for two: no answer is looked for in padding,
    and its class cannot read a mean.
    """
    import torch
    import transformers

    folder, pooling = PROBLEMS[problem]
    kind = {"sequence": "Sequence", "token": "Token"}.get(folder)
    name = f"BertFor{kind}Classification" if kind else "BertForQuestionAnswering"
    options = {"attn_implementation": "eager"}
    if folder == "sequence":
        options["problem_type"] = problem
    model = getattr(transformers, name).from_pretrained(TASKS / folder, **options)
    model = model.to(getattr(torch, dtype)).eval()
    model.bert.embeddings.word_embeddings.padding_idx = None

    def loss_of(batch):
        batch = {key: torch.from_numpy(array.copy()) for key, array in batch.items()}
        labels, mask = batch["labels"], batch["attention_mask"]
        if labels.is_floating_point():
            labels = labels.to(model.dtype)
        inputs = {
            "input_ids": batch["input_ids"],
            "token_type_ids": batch["segment_ids"],
            "attention_mask": mask,
        }
        if problem == "span":
            out, hidden = model(**inputs), mask == 0
            logits = [out.start_logits, out.end_logits]
            logits = torch.stack([z.masked_fill(hidden, -1e9) for z in logits])
            return torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels.T.flatten()
            )
        if pooling == "mean":
            states, real = model.bert(**inputs).last_hidden_state, mask[..., None]
            mean = (states * real).sum(1) / real.sum(1)
            return torch.nn.functional.mse_loss(model.classifier(mean), labels)
        return model(**inputs, labels=labels).loss

    return model, loss_of


def our_names(model, params, attribute=lambda array: array):
    """{our path: array in our layout} of the parameters of HuggingFace's model."""
    named, found = dict(model.named_parameters()), {}
    for path, _ in leaves(params):
        prefix = "" if path.startswith(HEADS) else "bert."
        array = attribute(named[prefix + huggingface_name(path)]).detach().numpy()
        found[path] = array.T if path.endswith(".W") else array
    return found


def torch_task_gradients(problem):
    """The loss and {our path: gradient} of a problem, from autograd."""
    model, loss_of = torch_task(problem)
    loss = loss_of(draw_task(problem))
    loss.backward()
    folder, pooling = PROBLEMS[problem]
    params, _, _ = load_checkpoint(TASKS / folder)
    read = {
        part: params[part] for part in params if part != "pooler" or pooling != "mean"
    }
    return loss.item(), our_names(model, read, lambda array: array.grad)


def torch_adam():
    """Start, gradients and results of AdamW on a matrix and a bias."""
    import torch

    rng = np.random.default_rng(1)
    start = {"W": rng.normal(size=(3, 4)), "b": rng.normal(size=5)}
    grads = {name: rng.normal(size=(UPDATES, *start[name].shape)) for name in start}
    params = {name: torch.tensor(start[name], requires_grad=True) for name in start}
    optimizer = torch.optim.AdamW(
        [
            {"params": [params["W"]], "weight_decay": DECAY},
            {"params": [params["b"]], "weight_decay": 0.0},
        ],
        **ADAM,
    )
    results = {name: [] for name in start}
    for i in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = RATES[i * 2 // UPDATES]
        for name, param in params.items():
            param.grad = torch.from_numpy(grads[name][i])
        optimizer.step()
        for name, param in params.items():
            results[name].append(param.detach().numpy().copy())
    return {
        f"adam.{kind}.{name}": np.array(arrays[name])
        for kind, arrays in (("start", start), ("grads", grads), ("results", results))
        for name in start
    }


def torch_steps(problem, batches, rates, settings, dtype):
    """The model after a step of AdamW for each batch, and the losses."""
    import torch

    model, loss_of = torch_task(problem, dtype)
    heads = [rate for name, rate in rates.items() if name in HEADS]
    named, groups = rates | {"head": heads[0]}, []
    for name, parameter in model.named_parameters():
        decay = (
            0.0
            if name.endswith("bias") or "LayerNorm" in name
            else settings.weight_decay
        )
        rate = named.get(group_of(name))
        if rate is not None:  # a mean does not need the pooler
            options = {"params": [parameter], "lr": rate, "weight_decay": decay}
            groups.append(options)
    optimizer = torch.optim.AdamW(groups, betas=(settings.beta1, settings.beta2))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: factor(step, len(batches), settings.warmup)
    )
    losses, trained = [], [group["params"][0] for group in optimizer.param_groups]
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings.max_norm)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return model, losses


def group_of(name):
    """Our name of the group that a parameter of HuggingFace's belongs to."""
    if "encoder.layer." in name:
        return f"layers.{name.split('encoder.layer.')[1].split('.')[0]}"
    parts = {"bert.embeddings": "embeddings", "bert.pooler": "pooler"}
    parts |= {"qa_outputs": "head", "classifier": "head"}
    return next(ours for start, ours in parts.items() if name.startswith(start))


def factor(step, total, warmup):
    """The rate of a step, to the peak: a linear rise, then a linear fall."""
    rise = round(warmup * total)
    return (step + 1) / rise if step < rise else (total - step) / (total - rise)


def store_tasks(versions):
    """Write what autograd gives for each problem of golden/tasks."""
    stored = {"versions": json.dumps(versions)}
    for problem in PROBLEMS:
        loss, grads = torch_task_gradients(problem)
        stored |= {
            f"{problem}/loss": loss,
            f"{problem}/labels": draw_task(problem)["labels"],
        }
        if problem.startswith("multi"):  # all but the loss is as with single labels
            grads = {path: grads[path] for path in grads if path.startswith("sequence")}
        stored |= {f"{problem}/grads/{path}": grad for path, grad in grads.items()}
    np.savez_compressed(TASKS / "training.npz", **stored)


def main():
    import torch
    import transformers

    torch.set_num_threads(1)
    batch = draw_batch()
    loss, grads = torch_gradients(batch)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, np)}
    np.savez_compressed(
        GOLDEN,
        loss=loss,
        versions=json.dumps(versions),
        **torch_adam(),
        **{f"batch.{name}": array for name, array in batch.items()},
        **{f"grads.{name}": array for name, array in grads.items()},
    )
    print(f"{GOLDEN.name}: {GOLDEN.stat().st_size} bytes, {versions}")
    store_tasks(versions)


if __name__ == "__main__":
    main()
