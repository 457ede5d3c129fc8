"""The candidates of `speed.py`: how each loads a checkpoint and runs a batch.

Each function takes a folder with a checkpoint and gives a function of one
batch, a dict of "ids", "segments" and "mask" (B, T). Attention of all heads
is returned by all but "transformers, sdpa".
"""

import os
from functools import partial

import numpy as np


def plain(folder):
    """This library's teaching code."""
    from bert_np import bert, load_pretrained

    params, config = load_pretrained(folder)[:2]
    return lambda batch: bert(
        batch["ids"],
        params,
        config,
        segment_ids=batch["segments"],
        attention_mask=batch["mask"],
    )


def fast(folder):
    """This library's fast path."""
    from bert_np import load_pretrained
    from bert_np.fast import fast_bert, prepare

    params, config = load_pretrained(folder)[:2]
    prepared = prepare(params, config)
    return lambda batch: fast_bert(
        batch["ids"],
        prepared,
        config,
        segment_ids=batch["segments"],
        attention_mask=batch["mask"],
    )


def transformers(folder, attention="eager", maps=True):
    """HuggingFace's BertModel on PyTorch."""
    import torch
    from transformers import BertModel

    torch.set_num_threads(os.cpu_count())
    model = BertModel.from_pretrained(folder, attn_implementation=attention).eval()

    def run(batch):
        ids, segments, mask = (
            torch.from_numpy(batch[n]) for n in ("ids", "segments", "mask")
        )
        with torch.inference_mode():
            return model(
                ids,
                attention_mask=mask,
                token_type_ids=segments,
                output_attentions=maps,
            )

    return run


def onnx_runtime(folder):
    """ONNX Runtime on HuggingFace's model, exported with its attention."""
    import onnxruntime

    path = os.path.join(folder, "model.onnx")
    if not os.path.exists(path):
        export(folder, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(path, options)
    return lambda batch: session.run(None, batch)


def export(folder, path):
    """Write the model as an ONNX file whose axes B and T are free."""
    import torch
    from transformers import BertModel

    class Tuples(torch.nn.Module):
        """The model with a tuple of tensors for its answer."""

        def __init__(self):
            super().__init__()
            self.model = BertModel.from_pretrained(folder, attn_implementation="eager")

        def forward(self, ids, mask, segments):
            """Hidden states, pooled output and attention maps."""
            out = self.model(
                ids,
                attention_mask=mask,
                token_type_ids=segments,
                output_attentions=True,
            )
            return out.last_hidden_state, out.pooler_output, *out.attentions

    names = ["ids", "mask", "segments"]
    ids = torch.ones((2, 8), dtype=torch.int64)
    torch.onnx.export(
        Tuples().eval(),
        (ids, ids, ids * 0),
        path,
        input_names=names,
        dynamo=False,
        dynamic_axes={name: {0: "B", 1: "T"} for name in names},
    )


def products(folder):
    """Only the matrix products of the fast path, in the same threads."""
    from bert_np import load_pretrained
    from bert_np.fast import _parts, map_over_threads

    params, config = load_pretrained(folder)[:2]
    layers = [
        [
            np.concatenate(
                [layer["attention"][n]["W"] for n in ("query", "key", "value")], axis=1
            ),
            layer["attention"]["output"]["W"],
            layer["ffn"]["inner"]["W"],
            layer["ffn"]["outer"]["W"],
        ]
        for layer in params["layers"]
    ]
    A, D = config.num_attention_heads, config.head_size

    def run(batch):
        lengths = batch["mask"].sum(axis=1)
        parts, ends = _parts(int(lengths.sum())), np.cumsum(lengths)
        x = np.ones((ends[-1], A * D), np.float32)
        heads = np.ones((len(x), 3, A, D), np.float32)
        texts = list(zip(ends - lengths, ends))
        with map_over_threads(len(parts)) as run_all:
            for joined, *others in layers:
                list(run_all(partial(project, x, joined), parts))
                rest = partial(multiply, x, heads, texts, others)
                list(run_all(rest, parts))

    return run


def project(x, joined, part):
    """The first product of a layer for one part of the tokens."""
    x[part] @ joined


def multiply(x, heads, texts, matrices, part):
    """The products of a layer for one part of the tokens, after the first."""
    for start, end in texts:
        first, last = max(start, part.start), min(end, part.stop)
        if first < last:
            q = heads[first:last, 0].swapaxes(0, 1)
            k, v = heads[start:end, 1:].transpose(1, 2, 0, 3)
            q @ k.swapaxes(-1, -2) @ v
    output, widen, narrow = matrices
    x[part] @ output
    x[part] @ widen @ narrow


SIDES = {
    "plain": plain,
    "fast": fast,
    "transformers, eager": transformers,
    "transformers, sdpa": lambda folder: transformers(folder, "sdpa", maps=False),
    "ONNX Runtime": onnx_runtime,
    "products": products,
}
