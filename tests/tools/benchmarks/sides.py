"""The candidates of `speed.py`: how each loads a checkpoint and runs a batch.

Each function takes a folder with a checkpoint and gives a function of one
batch, a dict of "ids", "segments" and "mask" (B, T). Attention of all heads
is returned by all but "transformers, sdpa".
"""

import os
from functools import partial
from unittest import mock

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
    """Only the matrix products of the fast path, in the same threads.

    Their results go where the fast path's go: q kᵀ to new memory for the maps.
    """
    from bert_np import fast, load_pretrained

    params, config = load_pretrained(folder)[:2]
    prepared = fast.prepare(params, config)
    A, D = config.num_attention_heads, config.head_size

    def run(batch):
        (B, T), lengths = batch["mask"].shape, batch["mask"].sum(axis=1)
        parts = fast._parts(int(lengths.sum()))
        pieces = [fast._pieces(lengths, part, A) for part in parts]
        x = np.ones((lengths.sum(), A * D), np.float32)
        heads = np.ones((len(x), 3, A, D), np.float32)
        layers = list(zip(params["layers"], prepared["qkv"]))
        maps = [np.zeros((B, A, T, T), np.float32) for _ in layers]
        only_products = mock.patch.object(fast, "_attend_in_cache", attend)
        with only_products, fast.map_over_threads(len(parts)) as run_all:
            for kept, (layer, joined) in zip(maps, layers):
                list(run_all(partial(project, x, joined["W"]), parts))
                rest = partial(multiply, x, heads, kept, layer)
                list(run_all(rest, parts, pieces))
        return maps

    return run


def project(x, joined, part):
    """The first product of a layer for one part of the tokens."""
    x[part] @ joined


def multiply(x, heads, maps, params, part, pieces):
    """The products of a layer for one part of the tokens, after the first."""
    from bert_np import fast

    context = np.empty_like(heads[part, 0])
    for piece in pieces:
        place = fast._shift(piece.queries, part.start)
        fast._attend(heads, piece, context[place], maps)
    x[part] @ params["attention"]["output"]["W"]
    x[part] @ params["ffn"]["inner"]["W"] @ params["ffn"]["outer"]["W"]


def attend(q, k, v, context, maps):
    """The two products of attention."""
    np.matmul(np.matmul(q, k.swapaxes(-1, -2), out=maps), v, out=context)


SIDES = {
    "plain": plain,
    "fast": fast,
    "transformers, eager": transformers,
    "transformers, sdpa": lambda folder: transformers(folder, "sdpa", maps=False),
    "ONNX Runtime": onnx_runtime,
    "products": products,
}
