"""A small model, its batches and a short training run, for several tests."""

import numpy as np

import bert_np
from bert_np.training.loop import TrainingSettings, train
from bert_np.training.masking import mask_tokens
from bert_np.tree import leaves

CONFIG = bert_np.BertConfig(
    vocab_size=13,
    hidden_size=12,
    num_hidden_layers=1,
    num_attention_heads=3,
    intermediate_size=14,
    max_position_embeddings=9,
)
SETTINGS = TrainingSettings(steps=9, warmup_steps=2)
PAD, CLS, SEP, MASK = range(4)


def make_batch(rng, size=8):
    """[CLS] a a a [SEP] b b b [SEP]: each word occurs three times."""
    words = rng.integers(4, 13, (size, 2))
    follows = rng.random(size) < 0.5
    words[:, 1] = np.where(follows, words[:, 0], words[:, 1])
    ids = np.insert(np.repeat(words, 3, axis=1), [0, 3, 6], [CLS, SEP, SEP], axis=1)
    masked, labels = mask_tokens(
        ids, rng, special_ids=range(4), mask_id=MASK, vocab_size=13, rate=0.3
    )
    return {
        "input_ids": masked,
        "segment_ids": np.broadcast_to(np.arange(9) > 4, ids.shape).astype(int),
        "attention_mask": np.ones_like(ids),
        "mlm_labels": labels,
        "nsp_labels": np.where(follows, 0, 1),
    }


def new_params():
    return bert_np.init_params(CONFIG, np.random.default_rng(0), heads=True)


def seeded(kind=np.random.PCG64):
    return np.random.Generator(kind(42))


def silent(line):
    """A report that goes nowhere."""


def run_training(settings=SETTINGS, rng=None, make=make_batch, **options):
    options = {"report": silent} | options
    return train(new_params(), CONFIG, make, rng or seeded(), settings, **options)


def bits(tree):
    """Each array of a tree with its type and bytes: equal only to the last bit."""
    return {path: (array.dtype, array.tobytes()) for path, array in leaves(tree)}
