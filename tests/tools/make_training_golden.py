"""Store what PyTorch's autograd and AdamW give, for the tests to compare.

    python tests/tools/make_training_golden.py

The tiny checkpoint of golden/tiny, its stored batch, labels drawn here,
float64, no dropout. The file holds the labels, the loss, the gradient of
every parameter under our names and in our layout, and a few AdamW updates
of small arrays. Needs torch and transformers; the tests do not. The
versions used are written into the file.
"""

import json
from pathlib import Path

import numpy as np

from bert_np.files.checkpoint import huggingface_name, load_checkpoint
from bert_np.tree import leaves

TINY = Path(__file__).parents[1] / "golden" / "tiny"
GOLDEN = Path(__file__).parents[1] / "golden" / "training.npz"
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
    named = dict(model.named_parameters())
    grads = {}
    for path, _ in leaves(params):
        prefix = "" if path.startswith(("mlm", "nsp")) else "bert."
        grad = named[prefix + huggingface_name(path)].grad.numpy()
        grads[path] = grad.T if path.endswith(".W") else grad
    return loss.item(), grads


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


if __name__ == "__main__":
    main()
