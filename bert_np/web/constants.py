"""What the page's JavaScript must know, taken from where Python states it."""

import string

import numpy as np

from bert_np.config import (
    ALTERED_KEYS,
    CHECKED,
    DECODER_KEYS,
    LABEL_KEYS,
    OTHER_CLASSES,
    SHIFTED_POSITIONS,
    SIZES,
    BertConfig,
)
from bert_np.errors import MESSAGE_LIMIT, NEAR
from bert_np.files import checkpoint, notes, vocabulary, weights
from bert_np.functional import ACTIVATIONS, ERF_COEFFICIENTS
from bert_np.parameters import parameter_shapes
from bert_np.tokenizer import CJK_BLOCKS, MAX_WORD_LENGTH, SPECIAL_TOKENS, Tokenizer
from bert_np.tree import leaves

# Different numbers for all sizes, so that a shape tells which size is where.
DISTINCT = {name: 101 + i for i, name in enumerate(SIZES)}
DISTINCT |= {"hidden_size": 206, "num_attention_heads": 103, "num_hidden_layers": 1}


def page_constants():
    """Return the constants of the page, ready for JSON.

    Returns
    -------
    dict
        Names as the JavaScript uses them.
    """
    return mathematics() | config_rules() | tokenizer_rules() | checkpoint_rules()


def mathematics():
    """Return the constants of the forward pass and of its config."""
    return {
        "erfCoefficients": ERF_COEFFICIENTS,
        "activations": {name: f.__name__ for name, f in ACTIVATIONS.items()},
        "hidden": float(np.finfo(np.float32).min),
        "sizes": SIZES,
        "defaults": default_config(),
    }


def default_config():
    """Return the fields of a config that the page uses, with their defaults."""
    names = (*SIZES, "hidden_act", "layer_norm_eps", "pad_token_id")
    config = BertConfig()
    return {name: getattr(config, name) for name in (*names, "tie_word_embeddings")}


def config_rules():
    """Return the keys of a config.json, and what tells other architectures."""
    return {
        "configKeys": [*BertConfig.__dataclass_fields__, *CHECKED],
        "labelKeys": ["labels", *LABEL_KEYS],
        "decoderKeys": DECODER_KEYS,
        "alteredKeys": ALTERED_KEYS,
        "otherClasses": OTHER_CLASSES,
        "shiftedPositions": SHIFTED_POSITIONS,
        "near": NEAR,
    }


def tokenizer_rules():
    """Return the special tokens, and how files describe a tokenizer."""
    return {
        "specialTokens": SPECIAL_TOKENS,
        "maxWordLength": MAX_WORD_LENGTH,
        "punctuation": string.punctuation,
        "cjkBlocks": [(ord(a), ord(b)) for a, b in CJK_BLOCKS],
        "tokenizerFiles": {
            "vocab": vocabulary.VOCAB,
            "whole": vocabulary.TOKENIZER,
            "settings": vocabulary.SETTINGS,
        },
        "tokenizerClasses": vocabulary.CLASSES,
        "roles": vocabulary.ROLES,
        "tokenizerOptions": vocabulary.OPTIONS,
        "tokenizerDefaults": {
            name: Tokenizer.__dataclass_fields__[name].default
            for name in vocabulary.OPTIONS.values()
        },
        "wordPiece": [(*place, want) for place, want in vocabulary.WORDPIECE.items()],
    }


def checkpoint_rules():
    """Return the names of tensors, and how weight files are recognised."""
    return {
        "tensors": tensor_table(),
        "copies": checkpoint.COPIES,
        "decoder": {"place": "mlm.decoder", "bias": checkpoint.DECODER_BIAS},
        "positionIds": checkpoint.POSITION_IDS,
        "oldNorm": checkpoint.OLD_NORM,
        "body": checkpoint.BODY.pattern,
        "unused": checkpoint.UNUSED,
        "otherHeads": checkpoint.OTHER_HEADS,
        "weights": weights.WEIGHTS,
        "weightsIndex": weights.INDEX,
        "modelFiles": [*notes.KNOWN, weights.INDEX],
        "veryNear": notes.VERY_NEAR,
        "maxHeader": weights.MAX_HEADER,
        "floats": list(weights.FLOATS),
        "integers": list(weights.INTEGERS),
        "signatures": [(list(begin), text) for begin, text in weights.SIGNATURES],
        "again": weights.AGAIN,
        "messageLimit": MESSAGE_LIMIT,
    }


def tensor_table():
    """List every tensor of a BERT: its place, its name, its shape in a file.

    "{}" stands for the number of the layer. The shape is that of the
    file, so a weight is (out, in); a size is the name of its field. The
    MLM head's own matrix is there, although most models have none.
    """
    untied = {"model_type": "bert", "tie_word_embeddings": False}
    config = BertConfig.from_dict(untied | DISTINCT)
    fields = {size: name for name, size in DISTINCT.items()}
    table = []
    for path, shape in leaves(parameter_shapes(config, heads=True)):
        name = checkpoint.huggingface_name(path)
        turned = shape[::-1] if path.endswith(".W") else shape
        table.append(
            {
                "path": path.replace("layers.0.", "layers.{}."),
                "name": name.replace("encoder.layer.0.", "encoder.layer.{}."),
                "shape": [fields.get(size, size) for size in turned],
            }
        )
    return table
