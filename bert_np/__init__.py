"""BERT in plain NumPy: functions over a nested dict of parameters."""

import importlib

from bert_np.attention import (
    create_attention_mask,
    merge_heads,
    scaled_dot_product,
    self_attention,
    split_heads,
)
from bert_np.config import BertConfig
from bert_np.embeddings import embed
from bert_np.encoder import encoder, encoder_layer
from bert_np.errors import BertError
from bert_np.feed_forward import feed_forward
from bert_np.functional import (
    dropout,
    erf,
    gelu,
    gelu_tanh,
    layer_norm,
    linear,
    softmax,
)
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import bert
from bert_np.parameters import (
    check_params,
    count_params,
    format_ledger,
    init_params,
    parameter_ledger,
    parameter_shapes,
)
from bert_np.pooler import pool
from bert_np.trace import compare

# Imported when first asked for, so that `import bert_np` stays quick.
ON_DEMAND = {
    "load_pretrained": "pretrained",
    "save_pretrained": "checkpoint",
    "Tokenizer": "tokenizer",
    "Encoding": "tokenizer",
    "fill_mask": "tasks",
    "next_sentence": "tasks",
    "embed_sentences": "tasks",
}


def __getattr__(name):
    if name in ON_DEMAND:
        return getattr(importlib.import_module(f"bert_np.{ON_DEMAND[name]}"), name)
    raise AttributeError(f"module 'bert_np' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *ON_DEMAND])
