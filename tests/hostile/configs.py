"""Config files: the bytes of config.json beside the base's weights.

`values` are the fields that an accepted file changes.
"""

import json

from hostile.base import CONFIG, accepted, refused


def text(**changes):
    """The base's config.json with other values; MISSING leaves a key out."""
    values = {k: v for k, v in (CONFIG | changes).items() if v is not MISSING}
    return json.dumps(values).encode()


MISSING = object()
NAME = "config.json"
TEXTS = [
    ("empty", b"", "not valid JSON"),
    ("spaces", b"   ", "not valid JSON"),
    ("not closed", text()[:-1], "not valid JSON"),
    ("closed twice", text() + b"}", "not valid JSON"),
    ("cut in half", text()[: len(text()) // 2], "not valid JSON"),
    ("byte-order mark", b"\xef\xbb\xbf" + text(), "byte-order mark"),
    ("UTF-16", text().decode().encode("utf-16"), "UTF-8"),
    ("UTF-32", text().decode().encode("utf-32"), "UTF-8"),
    ("Latin-1", text(name="é").replace(b"\\u00e9", b"\xe9"), "UTF-8"),
    ("encoded surrogate", text().replace(b"bert", b"\xed\xa0\x80", 1), "UTF-8"),
    ("a NUL at the end", text() + b"\0", "not valid JSON"),
    ("HTML", b"<!DOCTYPE html>", "not valid JSON"),
    (
        "Git LFS pointer",
        b"version https://git-lfs.github.com/spec/v1",
        "not valid JSON",
    ),
    ("YAML", b"hidden_size: 32\n", "not valid JSON"),
    ("Python", b"{'hidden_size': 32}", "not valid JSON"),
    ("comment", b"// BERT\n" + text(), "not valid JSON"),
    ("comma at the end", text()[:-1] + b",}", "not valid JSON"),
    ("key twice", b'{"hidden_size": 32, ' + text()[1:], "'hidden_size' stands twice"),
    ("key twice, escaped", b'{"hidden\\u005fsize": 32, ' + text()[1:], "twice"),
    (
        "key twice, deep down",
        text(id2label={}).replace(b'"id2label": {}', b'"id2label": {"0": 1, "0": 2}'),
        "'0' stands twice",
    ),
    ("long key twice", b'{"%s": 1, "%s": 1}' % ((b"k" * 9999,) * 2), "kkk"),
    ("NaN", text(layer_norm_eps=float("nan")), "NaN"),
    ("Infinity", text(layer_norm_eps=float("inf")), "Infinity"),
    ("-Infinity in a key that is not read", text(x=[float("-inf")]), "-Infinity"),
    ("100,000 levels", b'{"a":' * 100_000, "not valid JSON"),
    (
        "a number of 5,000 digits",
        text(a=1).replace(b'"a": 1', b'"a": ' + b"9" * 5000),
        "not valid JSON",
    ),
    ("PNG", b"\x89PNG\r\n\x1a\n" + bytes(50), "UTF-8"),
]
NO_OBJECT = [
    (kind, raw, "JSON object")
    for kind, raw in (
        ("a list", b"[1, 2]"),
        ("a str", b'"bert"'),
        ("a number", b"12"),
        ("null", b"null"),
        ("true", b"true"),
        ("an object in a list", b"[%s]" % text()),
    )
]
HUGE = 10**400
VALUES = [
    ({"model_type": "roberta"}, "model_type = 'roberta'", "padding_idx + 1"),
    ({"model_type": "xlm-roberta"}, "'xlm-roberta'", "padding_idx + 1"),
    ({"model_type": "BERT"}, "'BERT'", "'bert'"),
    ({"model_type": "bert "}, "'bert '"),
    ({"model_type": ""}, "''"),
    ({"model_type": ["bert"]}, "['bert']"),
    ({"model_type": 0}, "model_type = 0"),
    ({"model_type": MISSING, "architectures": MISSING}, "no model_type", "None"),
    ({"model_type": MISSING, "architectures": ["RobertaModel"]}, "RobertaModel"),
    ({"model_type": MISSING, "architectures": "BertModel"}, "'BertModel'"),
    ({"model_type": MISSING, "architectures": ["x" * 9999]}, "xxx"),
    ({"hidden_act": "swish"}, "hidden_act = 'swish'", "gelu_pytorch_tanh"),
    ({"hidden_act": "GELU"}, "'GELU'"),
    ({"hidden_act": None}, "hidden_act = None"),
    ({"hidden_act": "__class__"}, "'__class__'"),
    ({"hidden_act": {}}, "{}"),
    ({"hidden_act": "x" * 9999}, "hidden_act = 'xxx"),
    *[
        ({"layer_norm_eps": v}, "layer_norm_eps", "0 < eps < 1")
        for v in (0, 1, -1e-12, "1e-12", None, True, HUGE, [1e-12])
    ],
    *[
        ({key: v}, f"{key} = ", "an int >= 1")
        for key in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        )
        for v in (0, -1, True, "50", 12.0, None, [12], {}, -HUGE)
    ],
    ({"num_attention_heads": 5}, "num_attention_heads = 5", "hidden_size = 32"),
    ({"num_attention_heads": HUGE}, "num_attention_heads", "hidden_size = 32"),
    *[
        ({"pad_token_id": v}, "pad_token_id", "0..63")
        for v in (-1, 64, 0.0, False, "0", [0], HUGE)
    ],
    *[
        ({key: v}, key, "0 <= rate <= 1")
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob")
        for v in (-0.1, 1.1, "0.1", None, True, HUGE, 2)
    ],
    *[
        ({"initializer_range": v}, "initializer_range", ">= 0")
        for v in (-0.02, "0.02", None, HUGE, False)
    ],
    *[
        ({"position_embedding_type": v}, "position_embedding_type", "'absolute'")
        for v in ("relative_key", "relative_key_query", "rotary", 1, "", [])
    ],
    *[
        ({key: v}, key, "encoder")
        for key in ("is_decoder", "add_cross_attention")
        for v in (True, 1, "false")
    ],
    ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({"pruned_heads": "x" * 9999}, "pruned_heads"),
    ({"quantization_config": {"load_in_8bit": True}}, "quantization_config"),
    ({"embedding_size": 128}, "embedding_size = 128"),
    ({"embedding_size": "32"}, "embedding_size = '32'"),
    ({"vocab_size": 63}, "config.json asks for", "63"),
    ({"vocab_size": 10**15}, "config.json asks for", "1000000000000000"),
    ({"num_hidden_layers": 10**12}, "1000000000000 layers", "the weights 2"),
    ({"num_hidden_layers": HUGE}, "config.json has 1000", "encoder.layer.2"),
    ({"hidden_size": 10**18, "num_attention_heads": 1}, "config.json asks for"),
    ({"intermediate_size": HUGE}, "config.json asks for"),
]
CHANGES = [
    ("as it is", {}, {}),
    ("BERT by its class alone", {"model_type": MISSING}, {}),
    (
        "keys that do not matter",
        {
            "id2label": {"0": "x"},
            "use_cache": True,
            "torch_dtype": "float16",
            "a" * 9999: "b" * 9999,
        },
        {},
    ),
    ("a key called __class__", {"__class__": "x", "__init__": 1, "self": 2}, {}),
    (
        "dropout 0 and 1",
        {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 1},
        {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 1},
    ),
    *[
        (f"hidden_act {name}", {"hidden_act": name}, {"hidden_act": name})
        for name in (
            "gelu",
            "gelu_python",
            "gelu_new",
            "gelu_pytorch_tanh",
            "gelu_fast",
            "relu",
        )
    ],
    ("epsilon 1e-5", {"layer_norm_eps": 1e-5}, {"layer_norm_eps": 1e-5}),
    ("no padding id", {"pad_token_id": None}, {"pad_token_id": None}),
    ("nothing pruned", {"pruned_heads": {}, "quantization_config": None}, {}),
    ("position type null", {"position_embedding_type": None}, {}),
    ("embedding_size as hidden_size", {"embedding_size": 32}, {}),
    (
        "dropout left out",
        {"hidden_dropout_prob": MISSING},
        {"hidden_dropout_prob": 0.1},
    ),
    ("decoder false and null", {"is_decoder": None, "add_cross_attention": False}, {}),
]


def label(values):
    return ", ".join(
        f"{k} {'missing' if v is MISSING else repr(v)[:30]}" for k, v in values.items()
    )


KINDS = {
    "text": [refused(name, raw, NAME, *words) for name, raw, *words in TEXTS],
    "no object": [
        refused(name, raw, "config", *words) for name, raw, *words in NO_OBJECT
    ],
    "values": [
        refused(label(values), text(**values), *words) for values, *words in VALUES
    ],
    "accepted": [
        accepted(name, text(**changes), values) for name, changes, values in CHANGES
    ],
}
CASES = [case for cases in KINDS.values() for case in cases]
