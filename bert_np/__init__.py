"""BERT in plain NumPy: functions over a nested dict of parameters."""

import importlib

from bert_np.attention import (
    create_attention_mask,
    merge_heads,
    scaled_dot_product,
    self_attention,
    split_heads,
)
from bert_np.comparison import compare
from bert_np.config import BertConfig
from bert_np.errors import BertError
from bert_np.functional import (
    dropout,
    erf,
    gelu,
    gelu_tanh,
    layer_norm,
    linear,
    relu,
    softmax,
)
from bert_np.heads import (
    masked_lm_logits,
    next_sentence_logits,
    sequence_logits,
    span_logits,
    token_logits,
)
from bert_np.model import (
    add_and_norm,
    bert,
    embed,
    encoder,
    encoder_layer,
    feed_forward,
    pool,
)
from bert_np.parameters import (
    check_params,
    count_params,
    format_ledger,
    init_params,
    parameter_ledger,
    parameter_shapes,
)

__version__ = "0.2.0"

# What is imported when first asked for, so that `import bert_np` needs NumPy
# alone and is quick: a name and the module that holds it, then whole modules.
NAMES_ON_DEMAND = {
    "load_pretrained": "files.pretrained",
    "save_pretrained": "files.checkpoint",
    "Tokenizer": "tokenizer",
    "Encoding": "tokenizer",
    "fill_mask": "tasks",
    "next_sentence": "tasks",
    "embed_sentences": "tasks",
    "search": "tasks",
    "classify": "tasks",
    "tag": "tasks",
    "answer": "tasks",
    "fast_bert": "fast",
}
MODULES_ON_DEMAND = (
    "added_tokens",
    "analysis",
    "course",
    "fast",
    "files",
    "minimal",
    "plotting",
    "tasks",
    "tokenizer",
    "training",
    "web",
)

__all__ = [
    "BertConfig",
    "BertError",
    "add_and_norm",
    "bert",
    "check_params",
    "compare",
    "count_params",
    "create_attention_mask",
    "dropout",
    "embed",
    "encoder",
    "encoder_layer",
    "erf",
    "feed_forward",
    "format_ledger",
    "gelu",
    "gelu_tanh",
    "init_params",
    "layer_norm",
    "linear",
    "masked_lm_logits",
    "merge_heads",
    "next_sentence_logits",
    "parameter_ledger",
    "parameter_shapes",
    "pool",
    "relu",
    "scaled_dot_product",
    "self_attention",
    "sequence_logits",
    "softmax",
    "span_logits",
    "split_heads",
    "token_logits",
    *NAMES_ON_DEMAND,
]


def __getattr__(name):
    if name in NAMES_ON_DEMAND:
        module = importlib.import_module(f"bert_np.{NAMES_ON_DEMAND[name]}")
        return getattr(module, name)
    if name in MODULES_ON_DEMAND:
        return importlib.import_module(f"bert_np.{name}")
    raise AttributeError(f"module 'bert_np' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *NAMES_ON_DEMAND, *MODULES_ON_DEMAND})
