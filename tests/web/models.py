"""Small models in folders, of any size and type of numbers."""

import json

import numpy as np
from safetensors.numpy import load_file

from bert_np import BertConfig, init_params, load_pretrained, save_pretrained
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.tree import map_leaves

TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, *"abcdefghijklmnopqr"])
SIZES = {"num_hidden_layers": 2, "intermediate_size": 11, "max_position_embeddings": 17}
MODELS = {
    "erf": {"hidden_size": 21, "num_attention_heads": 3, "hidden_act": "gelu"},
    "tanh": {"hidden_size": 20, "num_attention_heads": 5, "hidden_act": "gelu_new"},
    "relu": {"hidden_size": 6, "num_attention_heads": 1, "hidden_act": "relu"},
    "eps": {"hidden_size": 8, "num_attention_heads": 2, "layer_norm_eps": 1e-3},
    "untied": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "tie_word_embeddings": False,
    },
}


def random_model(folder, dtype=np.float32, **sizes):
    """Save a model of large random weights, and return it as loaded."""
    config = BertConfig(23, initializer_range=0.3, **SIZES, **sizes)
    rng = np.random.default_rng(3)
    params = init_params(config, rng, heads=True, dtype=dtype)
    params = map_leaves(
        lambda path, x: x if path.endswith("W") else x + rng.normal(0, 0.2, x.shape),
        params,
    )
    params = map_leaves(lambda path, x: x.astype(dtype), params)
    save_pretrained(folder, params, config, TOKENIZER)
    return load_pretrained(folder)


def convert(folder, kind):
    """Rewrite a folder's weights in another type of numbers."""
    path = folder / "model.safetensors"
    tensors, header, data = load_file(path), {}, b""
    for name, x in tensors.items():
        if kind == "BF16":  # the upper half of a float32
            part = (x.view("<u4") >> 16).astype("<u2").tobytes()
        else:
            part = x.astype({"F64": "<f8", "F16": "<f2", "F8": "i1"}[kind]).tobytes()
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": kind, "shape": x.shape, "data_offsets": offsets}
        data += part
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
