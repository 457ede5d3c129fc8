"""Altered checkpoints: folders of several files, and 30 other architectures.

A case's `given` writes its files into an empty folder.
"""

import json
from pathlib import Path

import numpy as np

from hostile.base import (
    CONFIG,
    INDEX,
    KEY,
    QUERY,
    TENSORS,
    WEIGHTS,
    WORD,
    accepted,
    array_of,
    base_values,
    expected_array,
    pack_tensors,
    refused,
    store,
)

OTHER_MODELS = json.loads(
    Path(__file__).with_name("other_models.json").read_text("utf-8")
)
DECODER, DECODER_BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
BIAS = "cls.predictions.bias"


def write(folder, tensors=TENSORS, config=CONFIG, more=None):
    """A folder with these tensors, this config and perhaps more files."""
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if tensors is not None:
        (folder / WEIGHTS).write_bytes(pack_tensors(tensors, {"format": "pt"}))
    for name, text in (more or {}).items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / name).write_bytes(content)


def with_tensors(tensors, **config):
    return lambda folder: write(folder, tensors, CONFIG | config)


def with_config(**config):
    return with_tensors(TENSORS, **config)


def renamed(function):
    return with_tensors({function(name): t for name, t in TENSORS.items()})


def prefix(new):
    return renamed(lambda name: name.replace("bert.", new, 1))


def without(*parts):
    return with_tensors(
        {name: t for name, t in TENSORS.items() if not any(p in name for p in parts)}
    )


def plus(**more):
    return with_tensors(TENSORS | {n.replace("__", "."): t for n, t in more.items()})


def adding(name, array):
    return with_tensors(TENSORS | {name: store(np.asarray(array, np.float32))})


def moved(old, new):
    return renamed(lambda name: name.replace(old, new))


def same():
    return base_values()


def lacking(*parts):
    return lambda: {p: a for p, a in base_values().items() if not p.startswith(parts)}


# ------------------------------------------------------------- names
def gamma(name):
    if "LayerNorm" not in name:
        return name
    return name.replace(".weight", ".gamma").replace(".bias", ".beta")


def gamma_in(part):
    return lambda name: gamma(name) if part in name else name


NAMES = [
    accepted("no prefix", prefix(""), same),
    accepted("gamma and beta", renamed(gamma), same),
    accepted(
        "gamma and beta, no prefix",
        renamed(lambda n: gamma(n).replace("bert.", "")),
        same,
    ),
    *[
        refused(f"prefix {new!r}", prefix(new), repr(new), "'bert.'")
        for new in (
            "model.",
            "module.",
            "module.bert.",
            "roberta.",
            "encoder.bert.",
            "BERT.",
            "bert.bert.",
            "bert/",
            " bert.",
            "_orig_mod.bert.",
            "0.auto_model.",
        )
    ],
    refused(
        "prefix on the heads alone",
        moved("cls.", "module.cls."),
        "module.cls",
        "another architecture",
    ),
    refused(
        "one tensor without the prefix",
        with_tensors(
            {
                n.removeprefix("bert.") if n == QUERY else n: t
                for n, t in TENSORS.items()
            }
        ),
        "mix two ways of naming",
    ),
    *[
        refused(f"gamma in {part} alone", renamed(gamma_in(part)), "mix two ways", part)
        for part in ("bert.embeddings", "layer.1.output", "cls.predictions")
    ],
    refused(
        "both spellings of one norm",
        with_tensors(
            TENSORS
            | {
                "bert.embeddings.LayerNorm.gamma": TENSORS[
                    "bert.embeddings.LayerNorm.weight"
                ]
            }
        ),
        "LayerNorm.gamma",
        "LayerNorm.weight",
        "two spellings",
    ),
    refused(
        "one tensor with and without prefix",
        with_tensors(TENSORS | {QUERY.removeprefix("bert."): TENSORS[QUERY]}),
        QUERY.removeprefix("bert.")[:20],
        "two spellings",
    ),
    refused(
        "TensorFlow's names",
        renamed(lambda n: n.replace(".", "/").replace("weight", "kernel")),
        "bert/",
    ),
    refused("names in upper case", renamed(str.upper), "BERT.", "unknown"),
    refused("names that end in :0", renamed(lambda n: n + ":0"), ":0"),
    refused(
        "layers counted from 1",
        renamed(
            lambda n: n.replace("layer.1.", "layer.2.").replace("layer.0.", "layer.1.")
        ),
        "layer.2.",
    ),
    refused(
        "layers with two digits",
        renamed(lambda n: n.replace("layer.0.", "layer.00.")),
        "layer.00",
    ),
    refused(
        "layer in Arabic digits",
        renamed(lambda n: n.replace("layer.1.", "layer.١.")),
        "layer.",
        "unknown",
    ),
    refused(
        "a negative layer",
        renamed(lambda n: n.replace("layer.1.", "layer.-1.")),
        "layer.-1",
    ),
]

# ------------------------------------------------- missing and unknown
REQUIRED = (
    WORD,
    "bert.embeddings.position_embeddings.weight",
    "bert.embeddings.token_type_embeddings.weight",
    "bert.embeddings.LayerNorm.bias",
    QUERY,
    KEY,
    QUERY.replace("query", "value"),
    "bert.encoder.layer.1.attention.output.dense.weight",
    "bert.encoder.layer.0.attention.output.LayerNorm.weight",
    "bert.encoder.layer.1.intermediate.dense.bias",
    "bert.encoder.layer.0.output.dense.weight",
    "bert.encoder.layer.1.output.LayerNorm.bias",
    "bert.pooler.dense.weight",
    "bert.pooler.dense.bias",
    BIAS,
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.seq_relationship.bias",
)
PARTS = [
    *[
        refused(
            f"without {name}",
            without(name),
            "missing tensors",
            name.removeprefix("bert."),
        )
        for name in REQUIRED
    ],
    accepted(
        "without pooler and NSP head",
        without("pooler", "seq_relationship"),
        lacking("pooler", "nsp"),
    ),
    accepted("without heads", without("cls."), lacking("mlm", "nsp")),
    accepted("without MLM head", without("cls.predictions"), lacking("mlm")),
    accepted("without NSP head", without("seq_relationship"), lacking("nsp")),
    refused(
        "without the last layer",
        without("layer.1."),
        "config.json has 2 layers, the weights 1",
    ),
    refused(
        "without any layer",
        without("encoder."),
        "config.json has 2 layers, the weights 0",
    ),
    refused("without embeddings", without("embeddings."), "missing tensors embeddings"),
    refused("heads alone", without("bert."), "the weights 0"),
    refused("no tensor", with_tensors({}), "missing tensors"),
    *[
        refused(
            f"one more tensor: {name}",
            adding(name, np.zeros(4)),
            name[:47],
            "another architecture",
        )
        for name in (
            "bert.encoder.layer.0.attention.self.distance_embedding.weight",
            "bert.encoder.layer.0.attention.self.query.lora_A.default.weight",
            "bert.encoder.layer.0.crossattention.self.query.weight",
            "bert.encoder.layer.0.adapter.down.weight",
            "bert.encoder.embedding_hidden_mapping_in.weight",
            "bert.embeddings.task_type_embeddings.weight",
            "bert.embeddings.x_position_embeddings.weight",
            "bert.prompt.weight",
            "score.weight",
            "lm_head.weight",
            "optimizer.state.0.exp_avg",
        )
    ],
    *[
        accepted(f"one more head: {name}", adding(name, np.zeros(4)), same)
        for name in (
            "classifier.weight",
            "classifier.out_proj.bias",
            "qa_outputs.weight",
            "cls.seq_relationship.old.bias",
            "cls.other.weight",
        )
    ],
]


# --------------------------------------------------- shapes and config
def reshaped(name, *shape):
    array = np.zeros(shape, np.float32)
    return with_tensors(TENSORS | {name: store(array)})


def turned(name):
    return with_tensors(TENSORS | {name: store(array_of(name).T)})


INNER = "bert.encoder.layer.1.intermediate.dense.weight"
SHAPES = [
    *[
        refused(
            f"{name} of shape {shape}",
            reshaped(name, *shape),
            name,
            str(shape),
            "asks for",
        )
        for name, shape in (
            (WORD, (63, 32)),
            (WORD, (64, 33)),
            (QUERY, (32,)),
            (QUERY, (31, 32)),
            (QUERY, (32, 32, 1)),
            ("bert.pooler.dense.bias", (1, 32)),
            ("bert.embeddings.position_embeddings.weight", (25, 32)),
            ("bert.embeddings.token_type_embeddings.weight", (1, 32)),
            ("bert.embeddings.LayerNorm.weight", (33,)),
            ("cls.seq_relationship.weight", (3, 32)),
            (BIAS, (63,)),
        )
    ],
    *[
        refused(f"{name} transposed", turned(name), name, "looks transposed")
        for name in (
            WORD,
            INNER,
            "cls.seq_relationship.weight",
            "bert.encoder.layer.0.output.dense.weight",
        )
    ],
    *[
        refused(f"config: {key} = {value}", with_config(**{key: value}), str(value))
        for key, value in (
            ("vocab_size", 65),
            ("vocab_size", 30522),
            ("vocab_size", 10**15),
            ("hidden_size", 64),
            ("intermediate_size", 128),
            ("max_position_embeddings", 512),
            ("type_vocab_size", 1),
            ("num_hidden_layers", 1),
            ("num_hidden_layers", 3),
            ("num_hidden_layers", 10**12),
        )
    ],
    refused(
        "position ids reversed",
        with_tensors(
            TENSORS | {"bert.embeddings.position_ids": store(np.arange(24)[::-1])}
        ),
        "position_ids",
    ),
    refused(
        "position ids from 2",
        with_tensors(
            TENSORS | {"bert.embeddings.position_ids": store(np.arange(2, 26)[None])}
        ),
        "position_ids",
    ),
    accepted(
        "position ids in order",
        with_tensors(
            TENSORS | {"bert.embeddings.position_ids": store(np.arange(24)[None])}
        ),
        same,
    ),
    accepted(
        "decoder equal to the word table",
        with_tensors(TENSORS | {DECODER: TENSORS[WORD], DECODER_BIAS: TENSORS[BIAS]}),
        same,
    ),
    accepted("decoder bias for bias", moved(BIAS, DECODER_BIAS), same),
    refused(
        "decoder with other values",
        with_tensors(TENSORS | {DECODER: store(array_of(WORD) + 1)}),
        DECODER,
        "tied",
    ),
    refused(
        "decoder bias with other values",
        with_tensors(TENSORS | {DECODER_BIAS: store(array_of(BIAS) + 1)}),
        DECODER_BIAS,
        "tied",
    ),
    refused(
        "decoder transposed",
        with_tensors(TENSORS | {DECODER: store(array_of(WORD).T)}),
        DECODER,
        "looks transposed",
    ),
    accepted(
        "another number of heads that divides", with_config(num_attention_heads=8), same
    ),
    accepted(
        "a square matrix transposed",
        turned(QUERY),
        lambda: base_values() | {"layers.0.attention.query.W": array_of(QUERY)},
    ),
]


# ------------------------------------------------------------- shards
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def shards(change=None, files=None, text=None):
    """The base in two files; `change` edits {tensor: file} of the index."""
    names = sorted(TENSORS)
    parts = {SHARDS[0]: names[:20], SHARDS[1]: names[20:]}
    where = {name: file for file, part in parts.items() for name in part}
    contents = {file: {n: TENSORS[n] for n in part} for file, part in parts.items()}
    for file, more in (files or {}).items():
        contents[file] = contents.get(file, {}) | more
    where = (change or dict)(where) or where
    index = json.dumps({"metadata": {"total_size": 1}, "weight_map": where})

    def give(folder):
        write(folder, None, more={INDEX: index if text is None else text})
        for file, tensors in contents.items():
            (folder / file).write_bytes(pack_tensors(tensors))

    return give


def naming(file):
    return shards(lambda where: where | {WORD: file})


def lost(folder):
    shards()(folder)
    (folder / SHARDS[1]).unlink()


def cut(folder):
    shards()(folder)
    path = folder / SHARDS[1]
    path.write_bytes(path.read_bytes()[:-4])


def is_folder(folder):
    lost(folder)
    (folder / SHARDS[1]).mkdir()


SHARDED = [
    accepted("two shards", shards(), same),
    accepted(
        "tie across shards",
        shards(
            lambda w: w | {DECODER: "more.safetensors"},
            {"more.safetensors": {DECODER: TENSORS[WORD]}},
        ),
        same,
    ),
    *[
        refused(f"shard {file!r:.40}", naming(file), INDEX, repr(file)[:30])
        for file in (
            "../model.safetensors",
            "sub/model.safetensors",
            "/etc/hostname",
            "..",
            ".",
            "",
            "..\\model.safetensors",
            "C:model.safetensors",
            "model.safetensors\0",
            "model.safetensors\n",
            ".hidden.safetensors",
            "model.bin",
            "~/model.safetensors",
            "file:model.safetensors",
            "$HOME.safetensors",
            "https://example.org/model.safetensors",
            3,
            None,
            ["a.safetensors"],
            {},
        )
    ],
    refused("a shard that is not there", lost, SHARDS[1], "is missing"),
    refused("a shard that is cut short", cut, SHARDS[1], "truncated"),
    refused("a shard that is a folder", is_folder, SHARDS[1], "no readable file"),
    refused(
        "a tensor that its shard lacks",
        shards(lambda w: w | {"classifier.weight": SHARDS[1]}),
        SHARDS[1],
        "lacks classifier.weight",
    ),
    refused("a tensor in the wrong shard", naming(SHARDS[1]), SHARDS[1], "lacks", WORD),
    refused(
        "a tensor in two shards",
        shards(files={SHARDS[1]: {WORD: TENSORS[WORD]}}),
        "two shards",
        WORD,
    ),
    refused(
        "a tensor that the index does not list",
        shards(lambda w: {n: f for n, f in w.items() if n != QUERY}),
        "not listed",
        QUERY[:30],
    ),
    *[
        refused(f"index {text[:30]!r}", shards(text=text), INDEX, word)
        for text, word in (
            ("", "not valid JSON"),
            ("[]", "list"),
            ("{}", "weight_map"),
            ("null", "NoneType"),
            ('{"weight_map": {}}', "weight_map"),
            ('{"weight_map": ["a"]}', "weight_map"),
            ('{"weight_map": {"a": "b.safetensors", "a": "c.safetensors"}}', "'a'"),
            ("<html>", "not valid JSON"),
            ("\ufeff{}", "byte-order mark"),
            ('{"weight_map": ' * 9999, "not valid JSON"),
            ('{"weight_map": NaN}', "NaN"),
        )
    ],
]


# ------------------------------------------------------------- folders
def files(**contents):
    def give(folder):
        write(folder, None)
        for name, content in contents.items():
            (folder / name.replace("__", ".")).write_bytes(content)

    return give


def no_config(folder):
    write(folder)
    (folder / "config.json").unlink()


def folder_for(name):
    def give(folder):
        write(folder)
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return give


PICKLE = b"\x80\x02cos\nsystem\nU\x04trueR."
FOLDERS = [
    *[
        refused(
            f"only {name}",
            files(**{name.replace(".", "__"): PICKLE}),
            name,
            "save_pretrained",
        )
        for name in (
            "pytorch_model.bin",
            "tf_model.h5",
            "flax_model.msgpack",
            "model.pt",
            "bert_model.ckpt.index",
            "pytorch_model-00001-of-00002.bin",
            "model.pth",
        )
    ],
    refused("nothing but a config", files(), WEIGHTS, "missing"),
    refused("an ONNX file", files(model__onnx=b"\x08\x07"), WEIGHTS, "missing"),
    refused("no config", no_config, "config.json is missing"),
    *[
        refused(f"{name} is a folder", folder_for(name), name, "no readable file")
        for name in ("config.json", WEIGHTS, "vocab.txt", "tokenizer_config.json")
    ],
    accepted(
        "a pickle beside the weights",
        lambda f: write(f, more={"pytorch_model.bin": PICKLE}),
        same,
    ),
    accepted(
        "a faulty index beside the weights",
        lambda f: write(f, more={INDEX: "nonsense"}),
        same,
    ),
    accepted(
        "Python files beside the weights",
        lambda f: write(
            f, more={"modeling_bert.py": "raise SystemExit", "setup.py": "1/0"}
        ),
        same,
    ),
    accepted(
        "config with code of its own",
        with_config(
            auto_map={"AutoModel": "modeling_bert.Evil"}, trust_remote_code=True
        ),
        same,
    ),
]


# ------------------------------------------------ other architectures
def random_arrays(model):
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(shape).astype(np.float32) / 50
        for name, shape in model["tensors"].items()
    }


def other(model, config):
    """Another model's tensors, small and random, with a config.json."""

    def give(folder):
        tensors = {name: store(a) for name, a in random_arrays(model).items()}
        write(folder, tensors, config)

    return give


def own_values(model):
    """The tree of another model whose names and shapes are BERT's."""

    def give():
        arrays = random_arrays(model)
        return {
            path: expected_array(path, lambda n: arrays[n.removeprefix("bert.")])
            for path in base_values()
            if not path.startswith(("mlm", "nsp"))
            and (path.split(".")[0] != "pooler" or "pooler.dense.bias" in arrays)
        }

    return give


def fits(model):
    """Whether names and shapes alone cannot tell the model from a BERT."""
    bert = {
        name.removeprefix("bert."): list(shape)
        for name, (_, shape, _) in TENSORS.items()
        if name.startswith("bert.")
    }
    needed = {name for name in bert if not name.startswith("pooler.")}
    found = model["tensors"]
    return needed <= found.keys() and all(bert.get(n) == s for n, s in found.items())


MODELS = OTHER_MODELS["models"]
OTHERS = [
    refused(
        m["class"],
        other(m, m["config"]),
        f"model_type = {m['config']['model_type']!r}",
        "'bert'",
    )
    for m in MODELS
]
# The same with a config.json that says it is a BERT of the base's sizes.
LYING = [
    accepted(f"{m['class']} that says it is BERT", other(m, CONFIG), own_values(m))
    if fits(m)
    else refused(
        f"{m['class']} that says it is BERT",
        other(m, CONFIG),
        "(26, 32)" if m["class"] == "YosoModel" else "tensors",
    )
    for m in MODELS
]
KINDS = {
    "names and prefixes": NAMES,
    "missing and further tensors": PARTS,
    "shapes, ties and sizes": SHAPES,
    "shards": SHARDED,
    "folders": FOLDERS,
    "other architectures": OTHERS,
    "other architectures that say they are BERT": LYING,
}
CASES = [case for cases in KINDS.values() for case in cases]
