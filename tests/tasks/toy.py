"""A small random model with every head, for the tests of the tasks."""

import numpy as np

import bert_np
from bert_np.files.checkpoint import Pretrained
from bert_np.parameters import HEADS

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LIMITS = {"max_position_embeddings": 12, "initializer_range": 0.5, "labels": LABELS}
CONFIG = bert_np.BertConfig(12, 8, 1, 2, 16, **LIMITS)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(8), heads=HEADS)
TOY = Pretrained(PARAMS, CONFIG, bert_np.Tokenizer.from_tokens(WORDS))


def without(part):
    """The model without one of its parts."""
    return TOY._replace(params={k: v for k, v in PARAMS.items() if k != part})


def plain_bert(*texts):
    """What bert gives one text or pair, alone: (1, T, H) and (1, H)."""
    inputs = TOY.tokenizer.encode(*texts).inputs
    out = bert_np.bert(**inputs, params=PARAMS, config=CONFIG)
    return out["last_hidden_state"], out["pooler_output"]
