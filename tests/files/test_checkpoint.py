"""Files <-> parameters: every line of what a checkpoint may hold."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import bert_np
from bert_np import BertConfig, BertError
from bert_np.files import checkpoint
from bert_np.files import weights as weight_files
from bert_np.files.checkpoint import (
    format_report,
    huggingface_name,
    load_checkpoint,
    save_pretrained,
)
from bert_np.parameters import parameter_shapes
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves, map_leaves

ROOT = Path(bert_np.__file__).parents[1]
TINY = Path(__file__).parent / "golden" / "tiny"
WORD = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
INNER = "bert.encoder.layer.1.intermediate.dense.weight"
DECODER = "cls.predictions.decoder.weight"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "The", "the", "##m", "é"]


# ------------------------------------------------------------ builders
def make_folder(folder, tensors=None, **config):
    """A copy of the tiny checkpoint with other tensors or config values."""
    folder.mkdir(exist_ok=True)
    values = json.loads((TINY / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(values))
    if tensors is None:
        shutil.copy(TINY / "model.safetensors", folder)
    else:
        tensors = {k: np.ascontiguousarray(v) for k, v in tensors.items()}
        save_file(tensors, folder / "model.safetensors")
    return folder


def tiny_tensors():
    return load_file(TINY / "model.safetensors")


def pack(header, data=b""):
    """The bytes of a safetensors file with this header (dict, str or bytes)."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return len(header).to_bytes(8, "little") + header + data


def pack_tensors(tensors):
    """{name: (dtype name, shape, bytes)} as the bytes of a safetensors file."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += raw
    return pack(header, data)


def with_dtypes(folder, convert):
    """The tiny checkpoint with convert(name, array) -> (dtype name, bytes)."""
    tensors = {}
    for name, array in tiny_tensors().items():
        kind, raw = convert(name, array)
        tensors[name] = (kind, array.shape, raw)
    make_folder(folder)
    (folder / "model.safetensors").write_bytes(pack_tensors(tensors))
    return folder


def with_weights(folder, data):
    make_folder(folder)
    (folder / "model.safetensors").write_bytes(data)
    return folder


def refused(folder, **options):
    """The message of the one error that loading the folder raises."""
    with pytest.raises(BertError) as caught:
        load_checkpoint(folder, **options)
    assert type(caught.value) is BertError
    assert len(str(caught.value)) <= 300
    return str(caught.value)


def assert_same(params, expected):
    left, right = dict(leaves(params)), dict(leaves(expected))
    assert list(left) == list(right)
    for path in left:
        assert left[path].dtype == right[path].dtype
        np.testing.assert_array_equal(left[path], right[path], err_msg=path)


def run_bert(params, config):
    golden = np.load(TINY / "golden.npz")
    return bert_np.bert(
        golden["input_ids"],
        params,
        config,
        segment_ids=golden["token_type_ids"],
        attention_mask=golden["attention_mask"],
    )


# --------------------------------------------------------------- loading
def test_every_tensor_of_the_tiny_checkpoint_is_in_its_place():
    params, config, tokenizer = load_checkpoint(TINY)
    arrays = dict(leaves(params))
    tensors = tiny_tensors()
    assert tokenizer is None
    assert config == BertConfig.from_json(TINY / "config.json")
    assert len(arrays) == len(tensors) == 46
    for path, array in arrays.items():
        name = huggingface_name(path)
        tensor = tensors[name if name.startswith("cls.") else f"bert.{name}"]
        expected = tensor.T if path.endswith(".W") else tensor
        np.testing.assert_array_equal(array, expected, err_msg=path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("layers.0.attention.query.W", QUERY),
        ("layers.0.attention.query.b", QUERY.replace("weight", "bias")),
        ("layers.1.ffn.inner.W", INNER),
        ("layers.1.ffn_norm.gamma", "bert.encoder.layer.1.output.LayerNorm.weight"),
        ("embeddings.segment", "bert.embeddings.token_type_embeddings.weight"),
        ("nsp.W", "cls.seq_relationship.weight"),
        ("mlm.transform.W", "cls.predictions.transform.dense.weight"),
        ("mlm.bias", "cls.predictions.bias"),
    ],
)
def test_named_tensors_land_where_the_architecture_puts_them(path, name):
    array = dict(leaves(load_checkpoint(TINY)[0]))[path]
    tensor = tiny_tensors()[name]
    np.testing.assert_array_equal(array, tensor.T if path.endswith("W") else tensor)


def test_forward_pass_on_the_loaded_parameters_equals_huggingface():
    params, config, _ = load_checkpoint(TINY)
    golden = np.load(TINY / "golden.npz")
    out = run_bert(params, config)
    hidden, pooled = out["last_hidden_state"], out["pooler_output"]
    np.testing.assert_allclose(hidden, golden["f32_hidden_2"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(pooled, golden["f32_pooled"], rtol=0, atol=1e-5)
    logits = bert_np.masked_lm_logits(hidden, params, config)
    np.testing.assert_allclose(logits, golden["f32_mlm_logits"], rtol=0, atol=1e-5)
    logits = bert_np.next_sentence_logits(pooled, params)
    np.testing.assert_allclose(logits, golden["f32_nsp_logits"], rtol=0, atol=1e-5)


def test_loaded_arrays_are_read_only_contiguous_and_float32():
    params, config, _ = load_checkpoint(TINY)
    for path, array in leaves(params):
        assert not array.flags.writeable, path
        assert array.flags.c_contiguous, path
        assert array.dtype == np.float32, path
    bert_np.check_params(params, config)


def test_every_leaf_of_the_tree_has_its_own_huggingface_name():
    paths = [path for path, _ in leaves(parameter_shapes(BertConfig(), heads=True))]
    names = {huggingface_name(path) for path in paths}
    assert len(names) == len(paths)
    assert "encoder.layer.11.output.dense.weight" in names


def test_names_without_prefix_are_accepted(tmp_path):
    bare = {name.removeprefix("bert."): t for name, t in tiny_tensors().items()}
    folder = make_folder(tmp_path / "bare", bare)
    assert_same(load_checkpoint(folder)[0], load_checkpoint(TINY)[0])


def old_name(name):
    if "LayerNorm" not in name:
        return name
    return name.replace(".weight", ".gamma").replace(".bias", ".beta")


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_gamma_and_beta_are_accepted_and_reported(tmp_path, prefix):
    old = {old_name(n).replace("bert.", prefix): t for n, t in tiny_tensors().items()}
    folder = make_folder(tmp_path / "old", old)
    report = {}
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert len(report["renamed"]) == 12
    line = f"{prefix}embeddings.LayerNorm.gamma -> embeddings.norm.gamma"
    assert line in report["renamed"]


@pytest.mark.parametrize("layer", ["bert.embeddings", "cls.predictions.transform"])
def test_a_mixture_of_gamma_and_weight_is_refused(tmp_path, layer):
    tensors = tiny_tensors()
    tensors[f"{layer}.LayerNorm.gamma"] = tensors.pop(f"{layer}.LayerNorm.weight")
    message = refused(make_folder(tmp_path / "mixed", tensors))
    assert "LayerNorm" in message and "mix" in message


def test_both_spellings_of_one_tensor_are_refused(tmp_path):
    tensors = tiny_tensors()
    name = "bert.embeddings.LayerNorm."
    tensors[name + "gamma"] = tensors[name + "weight"]
    message = refused(make_folder(tmp_path / "both", tensors))
    assert name + "gamma" in message and name + "weight" in message


def test_gamma_elsewhere_than_in_a_layer_norm_is_not_renamed(tmp_path):
    tensors = tiny_tensors()
    tensors["bert.pooler.dense.beta"] = tensors.pop("bert.pooler.dense.bias")
    assert "bert.pooler.dense.beta" in refused(make_folder(tmp_path / "beta", tensors))


@pytest.mark.parametrize(
    "prefix", ["model.", "module.", "module.bert.", "roberta.", "x"]
)
def test_other_prefixes_are_named(tmp_path, prefix):
    tensors = {n.replace("bert.", prefix): t for n, t in tiny_tensors().items()}
    message = refused(make_folder(tmp_path / "prefix", tensors))
    assert repr(prefix) in message and "'bert.'" in message


def test_a_mixture_of_prefixes_is_refused(tmp_path):
    tensors = tiny_tensors()
    tensors[QUERY.removeprefix("bert.")] = tensors.pop(QUERY)
    message = refused(make_folder(tmp_path / "mixed", tensors))
    assert QUERY.removeprefix("bert.") in message and "mix" in message


# ------------------------------------------------- complete and nothing else
@pytest.mark.parametrize(
    "name",
    [
        WORD,
        "bert.embeddings.LayerNorm.bias",
        QUERY,
        "bert.pooler.dense.bias",
        "cls.predictions.bias",
        "cls.predictions.transform.dense.weight",
        "cls.seq_relationship.bias",
    ],
)
def test_a_missing_tensor_is_named(tmp_path, name):
    tensors = tiny_tensors()
    del tensors[name]
    message = refused(make_folder(tmp_path / "missing", tensors))
    assert f"missing tensors {name.removeprefix('bert.')}" in message


@pytest.mark.parametrize("layers", [3, 10**12])
def test_fewer_layers_than_the_config_says(tmp_path, layers):
    message = refused(make_folder(tmp_path / "few", num_hidden_layers=layers))
    assert f"config.json has {layers} layers, the weights 2" in message
    for i, name in enumerate(["query", "key"]):
        assert f"encoder.layer.2.attention.self.{name}.weight" in message, i
    assert message.count("encoder.layer.2") == 5


def test_more_layers_than_the_config_says(tmp_path):
    message = refused(make_folder(tmp_path / "many", num_hidden_layers=1))
    assert "config.json has 1 layers, the weights 2" in message
    assert message.count("layer.1") == 5


def test_the_right_number_of_layers_with_a_gap(tmp_path):
    tensors = {n.replace("layer.1.", "layer.2."): t for n, t in tiny_tensors().items()}
    assert "layer.2." in refused(make_folder(tmp_path / "gap", tensors))


def test_without_pooler(tmp_path):
    tensors = {n: t for n, t in tiny_tensors().items() if "pooler" not in n}
    report = {}
    folder = make_folder(tmp_path / "np", tensors)
    params, config, _ = load_checkpoint(folder, report=report)
    assert "pooler" not in params
    assert report["absent"] == ["pooler"]
    out = run_bert(params, config)
    assert out["pooler_output"] is None
    with pytest.raises(BertError, match="pooler"):
        bert_np.next_sentence_logits(out["pooler_output"], params)


def test_without_heads(tmp_path):
    tensors = {n: t for n, t in tiny_tensors().items() if not n.startswith("cls.")}
    report = {}
    folder = make_folder(tmp_path / "nh", tensors)
    params, config, _ = load_checkpoint(folder, report=report)
    assert list(params) == ["embeddings", "layers", "pooler"]
    assert report["absent"] == ["mlm", "nsp"]
    with pytest.raises(BertError, match="MLM"):
        bert_np.masked_lm_logits(np.zeros((1, 1, 32), np.float32), params, config)


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.0.attention.self.distance_embedding.weight",
        "bert.encoder.layer.0.attention.self.query.lora_A.weight",
        "bert.encoder.layer.0.crossattention.self.query.weight",
        "bert.embeddings.unheard_of",
        "encoder_of_another_kind.weight",
        "bert.cls.predictions.bias",
        "",
        "\u202e\n" * 200,
    ],
)
def test_unknown_tensors_are_refused(tmp_path, name):
    tensors = tiny_tensors() | {name: np.zeros(3, np.float32)}
    message = refused(make_folder(tmp_path / "unknown", tensors))
    assert message.startswith("unknown tensors")
    assert "another architecture" in message
    assert message.isprintable()
    if name.isascii():
        assert name[:47] in message


def test_five_unknown_tensors_are_listed(tmp_path):
    extra = {f"extra.{i}": np.zeros(1, np.float32) for i in range(9)}
    message = refused(make_folder(tmp_path / "five", tiny_tensors() | extra))
    assert [f"extra.{i}" in message for i in range(9)] == [True] * 5 + [False] * 4


def test_unused_heads_are_accepted_and_reported(tmp_path):
    unused = [
        "classifier.weight",
        "classifier.LayerNorm.gamma",
        "qa_outputs.bias",
        "cls.unknown_head.weight",
        "classifier.embeddings.x",
    ]
    extra = {name: np.full(2, np.nan, np.float32) for name in unused}
    extra["classifier.scale"] = np.zeros(2, np.int8)
    report = {}
    folder = make_folder(tmp_path / "unused", tiny_tensors() | extra)
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert sorted(report["unused"]) == sorted(extra)


# ------------------------------------------------------------------- ties
def test_a_decoder_equal_to_the_word_table_is_tied(tmp_path):
    tensors = tiny_tensors()
    tensors[DECODER] = tensors[WORD]
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"]
    report = {}
    folder = make_folder(tmp_path / "tied", tensors)
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert sorted(report["tied"]) == [
        "cls.predictions.decoder.bias = mlm.bias",
        f"{DECODER} = embeddings.word",
    ]


@pytest.mark.parametrize(
    ("copy", "original"),
    [(DECODER, WORD), ("cls.predictions.decoder.bias", "cls.predictions.bias")],
)
def test_a_copy_that_differs_is_refused(tmp_path, copy, original):
    tensors = tiny_tensors()
    tensors[copy] = tensors[original].copy()
    tensors[copy].flat[-1] += 1e-6
    assert copy in refused(make_folder(tmp_path / "untied", tensors))


def test_a_decoder_of_another_shape_is_refused(tmp_path):
    tensors = tiny_tensors() | {DECODER: np.zeros((32, 64), np.float32)}
    message = refused(make_folder(tmp_path / "shape", tensors))
    assert DECODER in message and "transposed" in message


def test_the_decoder_bias_alone_is_the_mlm_bias(tmp_path):
    tensors = tiny_tensors()
    tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
    report = {}
    folder = make_folder(tmp_path / "bias", tensors)
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert report["renamed"] == ["cls.predictions.decoder.bias -> mlm.bias"]


def test_tied_copies_with_nan_are_equal(tmp_path):
    tensors = tiny_tensors()
    tensors[WORD] = tensors[WORD].copy()
    tensors[WORD][3, 3] = np.nan
    tensors[DECODER] = tensors[WORD]
    folder = make_folder(tmp_path / "nan", tensors)
    params, _, _ = load_checkpoint(folder, allow_nonfinite=True)
    assert np.isnan(params["embeddings"]["word"][3, 3])


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("shape", [(1, 24), (24,)])
def test_position_ids_in_order_are_dropped(tmp_path, dtype, shape):
    name = "bert.embeddings.position_ids"
    tensors = tiny_tensors() | {name: np.arange(24, dtype=dtype).reshape(shape)}
    report = {}
    folder = make_folder(tmp_path / "ids", tensors)
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert report["dropped"] == [name]


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(24)[::-1],
        np.arange(24) + 2,
        np.arange(23),
        np.arange(24).reshape(2, 12),
        np.arange(24, dtype=np.float32),
        np.arange(24, dtype=np.uint8),
    ],
    ids=["reversed", "shifted", "short", "2x12", "float", "uint8"],
)
def test_other_position_ids_are_refused(tmp_path, ids):
    tensors = tiny_tensors() | {"bert.embeddings.position_ids": ids}
    assert "position_ids" in refused(make_folder(tmp_path / "ids", tensors))


# ------------------------------------------------------ shapes and dtypes
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (WORD, (63, 32)),
        (WORD, (64, 31)),
        (QUERY, (32,)),
        (QUERY, (32, 32, 1)),
        (QUERY, ()),
        (QUERY, (0, 32)),
        ("bert.pooler.dense.bias", (1, 32)),
        ("cls.seq_relationship.weight", (3, 32)),
    ],
)
def test_a_wrong_shape_is_refused_with_both_shapes(tmp_path, name, shape):
    tensors = tiny_tensors()
    right = tensors[name].shape
    tensors[name] = np.zeros(shape, np.float32)
    folder = with_weights(
        tmp_path / "shape",
        pack_tensors({n: ("F32", t.shape, t.tobytes()) for n, t in tensors.items()}),
    )
    message = refused(folder)
    assert name in message and str(shape) in message and str(right) in message
    assert "transposed" not in message


@pytest.mark.parametrize("name", [INNER, WORD, "cls.seq_relationship.weight"])
def test_a_transposed_matrix_gets_a_hint(tmp_path, name):
    tensors = tiny_tensors()
    tensors[name] = tensors[name].T
    message = refused(make_folder(tmp_path / "turned", tensors))
    assert name in message and "looks transposed (TensorFlow layout?)" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 65),
        ("vocab_size", 10**15),
        ("hidden_size", 64),
        ("intermediate_size", 128),
        ("max_position_embeddings", 512),
        ("type_vocab_size", 1),
    ],
)
def test_sizes_of_the_config_must_be_those_of_the_file(tmp_path, key, value):
    message = refused(make_folder(tmp_path / "size", **{key: value}))
    assert "config.json asks for" in message and str(value) in message


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("I8", 1),
        ("U8", 1),
        ("I64", 8),
        ("BOOL", 1),
        ("F8_E4M3", 1),
        ("F8_E5M2", 1),
        ("I32", 4),
        ("X" * 500, 4),
    ],
)
def test_other_number_formats_are_refused(tmp_path, kind, size):
    folder = with_dtypes(
        tmp_path / "kind",
        lambda name, a: (
            (kind, bytes(a.size * size)) if name == QUERY else ("F32", a.tobytes())
        ),
    )
    message = refused(folder)
    assert QUERY in message and kind[:15] in message and "F32" in message


def to_bf16(array):
    """Round towards zero: the upper half of each float32."""
    return (array.view(np.uint32) >> 16).astype("<u2").tobytes()


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_half_precision_becomes_float32(tmp_path, kind):
    def convert(name, array):
        return kind, to_bf16(array) if kind == "BF16" else array.astype("<f2").tobytes()

    report = {}
    folder = with_dtypes(tmp_path / "half", convert)
    params, _, _ = load_checkpoint(folder, report=report)
    for path, exact in leaves(load_checkpoint(TINY)[0]):
        array = dict(leaves(params))[path]
        if kind == "F16":
            expected = exact.astype(np.float16).astype(np.float32)
        else:
            expected = (exact.view(np.uint32) & 0xFFFF0000).view(np.float32)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected, err_msg=path)
    assert len(report["converted"]) == 46
    assert f"{QUERY}: {kind} -> float32" in report["converted"]


def test_float64_stays_and_a_mixture_becomes_float32(tmp_path):
    wide = {n: t.astype(np.float64) / 3 for n, t in tiny_tensors().items()}
    report = {}
    folder = make_folder(tmp_path / "wide", wide)
    params, config, _ = load_checkpoint(folder, report=report)
    query = params["layers"][0]["attention"]["query"]["W"]
    assert query.dtype == np.float64
    np.testing.assert_array_equal(query, wide[QUERY].T)
    assert report["converted"] == []
    assert run_bert(params, config)["last_hidden_state"].dtype == np.float64

    mixed = wide | {WORD: wide[WORD].astype(np.float32)}
    folder = make_folder(tmp_path / "mixed", mixed)
    params, _, _ = load_checkpoint(folder, report=report)
    query = params["layers"][0]["attention"]["query"]["W"]
    np.testing.assert_array_equal(query, wide[QUERY].T.astype(np.float32))
    assert len(report["converted"]) == 45


def test_float64_with_integer_position_ids_stays_float64(tmp_path):
    wide = {n: t.astype(np.float64) for n, t in tiny_tensors().items()}
    wide["bert.embeddings.position_ids"] = np.arange(24)
    params, _, _ = load_checkpoint(make_folder(tmp_path / "wide", wide))
    assert params["embeddings"]["word"].dtype == np.float64


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [WORD, INNER, "cls.predictions.bias"])
def test_nan_and_infinity_are_refused_unless_allowed(tmp_path, name, value):
    tensors = tiny_tensors()
    tensors[name] = tensors[name].copy()
    tensors[name].flat[5] = value
    folder = make_folder(tmp_path / "nan", tensors)
    message = refused(folder)
    assert name in message and "allow_nonfinite" in message
    params, _, _ = load_checkpoint(folder, allow_nonfinite=True)
    assert sum(np.count_nonzero(~np.isfinite(a)) for _, a in leaves(params)) == 1


def test_a_float64_too_large_for_float32_is_refused(tmp_path):
    tensors = tiny_tensors()
    tensors[INNER] = np.full((64, 32), 1e300)
    message = refused(make_folder(tmp_path / "large", tensors))
    assert INNER in message and "infinity" in message


def test_signalling_nan_in_float16_is_one_error(tmp_path):
    folder = with_dtypes(
        tmp_path / "snan",
        lambda name, a: ("F16", np.full(a.size, 0x7D01, "<u2").tobytes()),
    )
    assert "NaN" in refused(folder)


# ------------------------------------------------ files that are no weights
ZIP = b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(90)
PICKLE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j"
NOT_WEIGHTS = {
    "lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64,
        ["Git LFS pointer", "git lfs pull"],
    ),
    "html": (b"<!DOCTYPE html><html><body>Not found</body></html>", ["HTML", "again"]),
    "html after a mark": (b"\xef\xbb\xbf\n <html></html>", ["HTML", "again"]),
    "json": (b'{"error":"Repository not found"}', ["JSON", "again"]),
    "json with a brace at 8": (b'{"err": {"code": 404}}', ["JSON", "again"]),
    "zip": (ZIP, ["ZIP", "save_pretrained"]),
    "pickle": (PICKLE + bytes(50), ["pickle", "save_pretrained"]),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(90), ["HDF5", "save_pretrained"]),
    "gguf": (b"GGUF\x03\0\0\0" + bytes(90), ["GGUF"]),
    "npy": (b"\x93NUMPY\x01\0v\0{'descr': '<f4'}", ["NumPy"]),
    "empty": (b"", ["is empty", "again"]),
    "one byte": (b"\x01", ["1 bytes"]),
    "eight bytes": (bytes(8), ["8 bytes"]),
    "zeros": (bytes(1000), ["no safetensors file"]),
    "noise": (bytes(range(255, 0, -1)), ["no safetensors file"]),
    "truncated header": (
        (TINY / "model.safetensors").read_bytes()[:400],
        ["truncated", "400", "again"],
    ),
    "truncated data": (
        (TINY / "model.safetensors").read_bytes()[:-1],
        ["truncated", "94167", "94168", "again"],
    ),
    "bytes after the end": (
        (TINY / "model.safetensors").read_bytes() + b"\0",
        ["damaged", "94169", "94168"],
    ),
}


@pytest.mark.parametrize("case", NOT_WEIGHTS)
def test_what_stands_in_the_place_of_the_weights_is_named(tmp_path, case):
    data, words = NOT_WEIGHTS[case]
    message = refused(with_weights(tmp_path / "wrong", data))
    assert message.startswith("model.safetensors")
    assert [w for w in words if w not in message] == []


def test_a_short_pickle_head_is_told_from_a_header_length(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
    data = pack(header.ljust(0x280), bytes(3))
    assert data[:2] == b"\x80\x02"
    assert "truncated" in refused(with_weights(tmp_path / "short", data))


def entry(**changes):
    base = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return {k: v for k, v in (base | changes).items() if v is not None}


HEADERS = {
    "not utf-8": (b'{"a\xff": {}}', b"", "UTF-8"),
    "not json": ("{nonsense", b"", "JSON"),
    "json and more": ('{"a": 1} {', b"", "JSON"),
    "deep": ('{"a":' * 100_000, b"", "JSON"),
    "large integer": ('{"a": ' + "9" * 5000 + "}", b"", "JSON"),
    "nan": ('{"a": NaN}', b"", "NaN"),
    "twice": ('{"a": %s, "a": %s}' % ((json.dumps(entry()),) * 2), bytes(8), "'a'"),
    "entry twice": ('{"a": {"dtype": "F32", "dtype": "F32"}}', b"", "dtype"),
    "entry no object": ({"a": [1]}, b"", "malformed"),
    "no dtype": ({"a": entry(dtype=None)}, bytes(8), "malformed"),
    "dtype a list": ({"a": entry(dtype=["F32"])}, bytes(8), "malformed"),
    "no shape": ({"a": entry(shape=None)}, bytes(8), "malformed"),
    "no offsets": ({"a": entry(data_offsets=None)}, bytes(8), "malformed"),
    "three offsets": ({"a": entry(data_offsets=[0, 4, 8])}, bytes(8), "malformed"),
    "negative shape": ({"a": entry(shape=[-2])}, bytes(8), "malformed"),
    "negative offset": ({"a": entry(data_offsets=[-8, 0])}, bytes(8), "malformed"),
    "float shape": ({"a": entry(shape=[2.0])}, bytes(8), "malformed"),
    "bool shape": ({"a": entry(shape=[True, 2])}, bytes(8), "malformed"),
    "long name": ({"n" * 9000: 1}, b"", "nnn..."),
    "too long": ('{"a": "' + "x" * 10_000_001 + '"}', b"", "no safetensors"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_faulty_headers_are_refused(tmp_path, case):
    header, data, word = HEADERS[case]
    message = refused(with_weights(tmp_path / "header", pack(header, data)))
    assert "model.safetensors" in message and word in message


def shift(header):
    """A hole between two tensors, and the file as long as announced."""
    for name, entry in header.items():
        if name > WORD:
            entry["data_offsets"] = [n + 4 for n in entry["data_offsets"]]
    return bytes(4)


def overlap(header):
    header[QUERY]["data_offsets"] = header[QUERY.replace("query", "key")][
        "data_offsets"
    ]


def shorten(header):
    header[QUERY]["data_offsets"][1] -= 4


def swap(header):
    header[QUERY]["data_offsets"].reverse()


def metadata_number(header):
    header["__metadata__"] = {"format": 3}


def metadata_list(header):
    header["__metadata__"] = ["pt"]


@pytest.mark.parametrize(
    "fault", [shift, overlap, shorten, swap, metadata_number, metadata_list]
)
def test_faults_that_the_safetensors_library_finds(tmp_path, fault):
    data = (TINY / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    more = fault(header) or b""
    folder = with_weights(tmp_path / "fault", pack(header, data[8 + length :] + more))
    assert "model.safetensors cannot be read" in refused(folder)


def test_a_file_changed_while_it_is_read(tmp_path, monkeypatch):
    other = safetensors.deserialize((TINY / "model.safetensors").read_bytes())[1:]
    monkeypatch.setattr(safetensors, "deserialize", lambda data: other)
    assert "changed" in refused(TINY)


@pytest.mark.parametrize("error", [OSError("disk"), MemoryError("memory")])
def test_a_file_that_cannot_be_read_whole(monkeypatch, error):
    def fail(data):
        raise error

    monkeypatch.setattr(safetensors, "deserialize", fail)
    assert "model.safetensors cannot be read" in refused(TINY)


def test_a_file_without_permission(tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "closed")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(weight_files, "open", refuse, raising=False)
    assert "model.safetensors cannot be read: Permission denied" in refused(folder)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_files_load_or_give_the_one_error(tmp_path_factory, data):
    raw = bytearray((TINY / "model.safetensors").read_bytes())
    length = int.from_bytes(raw[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, 8 + length - 1))
        raw[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    folder = tmp_path_factory.mktemp("damaged")
    try:
        params, config, _ = load_checkpoint(with_weights(folder, raw))
    except BertError as error:
        assert len(str(error)) <= 300
    else:
        bert_np.check_params(params, config)


# ---------------------------------------------------------------- folders
@pytest.mark.parametrize("folder", [None, 3, b"folder", ["folder"]])
def test_a_folder_of_another_type(folder):
    assert type(folder).__name__ in refused(folder)


def test_folders_that_are_none(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file")
    for folder in [tmp_path / "nowhere", "", "a\0b", "\ud800"]:
        assert "does not exist" in refused(folder)


def test_a_str_is_a_folder_too():
    assert_same(load_checkpoint(str(TINY))[0], load_checkpoint(TINY)[0])


def test_a_folder_without_config(tmp_path):
    shutil.copy(TINY / "model.safetensors", tmp_path)
    assert refused(tmp_path).startswith("config.json is missing")


def test_a_config_that_is_a_folder(tmp_path):
    (tmp_path / "config.json").mkdir()
    assert "config.json is no readable file" in refused(tmp_path)


def test_a_config_of_another_model(tmp_path):
    assert "roberta" in refused(make_folder(tmp_path / "r", model_type="roberta"))


@pytest.mark.parametrize(
    "name",
    [
        "pytorch_model.bin",
        "tf_model.h5",
        "bert_model.ckpt.index",
        "model.pt",
        "pytorch_model-00001-of-00002.bin",
        "flax_model.msgpack",
    ],
)
def test_other_weight_files_are_named_with_the_remedy(tmp_path, name):
    shutil.copy(TINY / "config.json", tmp_path)
    (tmp_path / name).write_bytes(PICKLE)
    message = refused(tmp_path)
    assert message.startswith(name) and "save_pretrained" in message


def test_a_folder_without_weights(tmp_path):
    shutil.copy(TINY / "config.json", tmp_path)
    assert refused(tmp_path).startswith("model.safetensors is missing")


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    shutil.copy(TINY / "config.json", tmp_path)

    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert "Permission denied" in refused(tmp_path)


def test_safetensors_count_before_a_pickle(tmp_path):
    folder = make_folder(tmp_path / "two")
    (folder / "pytorch_model.bin").write_bytes(PICKLE)
    (folder / checkpoint.INDEX).write_text("nonsense")
    assert_same(load_checkpoint(folder)[0], load_checkpoint(TINY)[0])


@pytest.mark.parametrize("value", [1, "yes", None])
def test_allow_nonfinite_is_a_bool(value):
    assert "allow_nonfinite" in refused(TINY, allow_nonfinite=value)


def test_report_is_a_dict():
    assert "report is list" in refused(TINY, report=[])


# ----------------------------------------------------------------- shards
def shard(folder, **changes):
    """The tiny checkpoint in two files with an index."""
    make_folder(folder)
    (folder / "model.safetensors").unlink()
    tensors = tiny_tensors()
    names = sorted(tensors)
    files = {"model-1.safetensors": names[:20], "model-2.safetensors": names[20:]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    shards = {name: file for file, part in files.items() for name in part}
    index = {"metadata": {"total_size": 1}, "weight_map": shards | changes}
    (folder / checkpoint.INDEX).write_text(json.dumps(index))
    return folder


def test_shards_give_the_same_parameters(tmp_path):
    report = {}
    params, _, _ = load_checkpoint(shard(tmp_path / "s"), report=report)
    assert_same(params, load_checkpoint(TINY)[0])
    assert sorted(report["files"]) == ["model-1.safetensors", "model-2.safetensors"]


def test_a_tie_across_shards(tmp_path):
    folder = shard(tmp_path / "s", **{DECODER: "model-0.safetensors"})
    save_file({DECODER: tiny_tensors()[WORD]}, folder / "model-0.safetensors")
    report = {}
    assert_same(load_checkpoint(folder, report=report)[0], load_checkpoint(TINY)[0])
    assert report["tied"] == [f"{DECODER} = embeddings.word"]


@pytest.mark.parametrize(
    "file",
    [
        "../model-1.safetensors",
        "sub/model-1.safetensors",
        "sub\\model-1.safetensors",
        "..",
        ".",
        "",
        "/model-1.safetensors",
        "C:model-1.safetensors",
        "model-1.safetensors\0",
        "model-1.safetensors\n",
        ".model-1.safetensors",
        "model-1.bin",
        "\ud800.safetensors",
        "ｍodel-1.safetensors",
        "x" * 500,
        3,
        None,
        ["model-1.safetensors"],
    ],
)
def test_shard_names_that_are_no_plain_names(tmp_path, file):
    message = refused(shard(tmp_path / "s", **{WORD: file}))
    assert message.startswith(checkpoint.INDEX)
    assert repr(file)[:40] in message


def test_a_name_too_long_for_the_file_system(tmp_path):
    assert "xxx" in refused(shard(tmp_path / "s", **{WORD: "x" * 500 + ".safetensors"}))


def test_a_shard_that_is_not_there(tmp_path):
    folder = shard(tmp_path / "s")
    (folder / "model-2.safetensors").unlink()
    assert refused(folder).startswith("model-2.safetensors is missing")


def test_a_tensor_that_its_shard_lacks(tmp_path):
    message = refused(shard(tmp_path / "s", **{"bert.extra": "model-2.safetensors"}))
    assert message.startswith("model-2.safetensors lacks bert.extra")


def test_a_tensor_in_the_wrong_shard(tmp_path):
    message = refused(shard(tmp_path / "s", **{WORD: "model-2.safetensors"}))
    assert message.startswith(f"model-2.safetensors lacks {WORD}")


def test_a_tensor_in_two_shards(tmp_path):
    folder = shard(tmp_path / "s")
    extra = load_file(folder / "model-2.safetensors") | {WORD: tiny_tensors()[WORD]}
    save_file(extra, folder / "model-2.safetensors")
    message = refused(folder)
    assert WORD in message and "two shards" in message


def test_a_tensor_that_the_index_does_not_list(tmp_path):
    folder = shard(tmp_path / "s")
    extra = {"bert.extra": np.zeros(2, np.float32)}
    tensors = load_file(folder / "model-2.safetensors") | extra
    save_file(tensors, folder / "model-2.safetensors")
    assert "bert.extra is not listed" in refused(folder)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[]", "list"),
        ("{}", "weight_map"),
        ('{"weight_map": {}}', "weight_map"),
        ('{"weight_map": ["a"]}', "weight_map"),
        ('{"weight_map": {"a": "b.safetensors", "a": "c.safetensors"}}', "'a'"),
        ("<html>", "JSON"),
        ("\ufeff{}", "byte-order mark"),
    ],
)
def test_faulty_indices(tmp_path, text, word):
    folder = shard(tmp_path / "s")
    (folder / checkpoint.INDEX).write_text(text, encoding="utf-8")
    message = refused(folder)
    assert checkpoint.INDEX in message and word in message


# ------------------------------------------------------------------ links
def link(path, target):
    try:
        path.symlink_to(target)
    except (OSError, NotImplementedError) as error:
        pytest.skip(f"no symbolic links here: {error}")


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"]
)
def test_links_that_leave_the_folder_are_refused(tmp_path, name):
    folder = make_folder(tmp_path / "folder")
    (folder / name).unlink(missing_ok=True)
    (tmp_path / "outside").write_text("{}")
    link(folder / name, tmp_path / "outside")
    assert f"{name} is a link that leaves the folder" in refused(folder)


def test_a_shard_that_is_a_link_out_is_refused(tmp_path):
    folder = shard(tmp_path / "s")
    os.replace(folder / "model-2.safetensors", tmp_path / "model-2.safetensors")
    link(folder / "model-2.safetensors", Path("..") / "model-2.safetensors")
    assert "model-2.safetensors is a link" in refused(folder)


def test_links_inside_the_folder_and_to_the_folder_work(tmp_path):
    folder = make_folder(tmp_path / "folder")
    os.replace(folder / "model.safetensors", folder / "other")
    link(folder / "model.safetensors", "other")
    link(tmp_path / "alias", folder)
    assert_same(load_checkpoint(tmp_path / "alias")[0], load_checkpoint(TINY)[0])


def test_a_link_in_a_circle(tmp_path):
    folder = make_folder(tmp_path / "folder")
    (folder / "model.safetensors").unlink()
    link(folder / "model.safetensors", "model.safetensors")
    assert "model.safetensors is no readable file" in refused(folder)


def hub_cache(root, owner="models--owner--name"):
    """The layout of huggingface_hub: snapshots are links into blobs."""
    blobs, snapshot = root / owner / "blobs", root / owner / "snapshots" / "0123abcd"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for i, name in enumerate(["config.json", "model.safetensors"]):
        shutil.copy(TINY / name, blobs / f"blob{i}")
        link(snapshot / name, Path("..") / ".." / "blobs" / f"blob{i}")
    return snapshot


def test_the_hub_cache_works(tmp_path):
    snapshot = hub_cache(tmp_path)
    assert_same(load_checkpoint(snapshot)[0], load_checkpoint(TINY)[0])


def test_links_out_of_the_models_own_cache_are_refused(tmp_path):
    snapshot = hub_cache(tmp_path)
    other = hub_cache(tmp_path, "models--owner--other")
    (snapshot / "model.safetensors").unlink()
    link(snapshot / "model.safetensors", other / "model.safetensors")
    assert "model.safetensors is a link" in refused(snapshot)


def test_the_cache_layout_counts_only_under_its_names(tmp_path):
    assert "is a link" in refused(hub_cache(tmp_path, "anything"))


def test_loading_opens_the_folder_only(tmp_path):
    """An audit hook sees no socket, no pickle, no process, no other file."""
    folder = make_folder(tmp_path / "folder")
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    script = """
import sys, pathlib, safetensors, safetensors.numpy, bert_np.checkpoint
folder, seen = pathlib.Path(sys.argv[1]), []
sys.addaudithook(lambda event, args: seen.append((event, args)))
bert_np.checkpoint.load_checkpoint(folder)
events = list(seen)
forbidden = ("socket", "pickle", "subprocess", "os.system", "mmap", "exec", "import")
print([e for e, _ in events if e.startswith(forbidden)])
opened = {pathlib.Path(a[0]).relative_to(folder).name for e, a in events if e == "open"}
print(*sorted(opened))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    events, files = done.stdout.splitlines()
    assert events == "[]"
    assert files == "config.json model.safetensors vocab.txt"


# -------------------------------------------------------------- tokenizer
def write_vocab(folder, tokens=TOKENS, **settings):
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_vocabulary_gives_a_tokenizer(tmp_path):
    folder = write_vocab(make_folder(tmp_path / "v"))
    report = {}
    _, config, tokenizer = load_checkpoint(folder, report=report)
    assert tokenizer == Tokenizer.from_tokens(TOKENS)
    assert len(tokenizer.tokens) < config.vocab_size
    assert report["unused"] == []


def test_tokenizer_config_says_the_case(tmp_path):
    options = {
        "do_lower_case": False,
        "strip_accents": True,
        "tokenize_chinese_chars": False,
        "tokenizer_class": "BertTokenizer",
    }
    folder = write_vocab(make_folder(tmp_path / "v"), **options)
    tokenizer = load_checkpoint(folder)[2]
    assert tokenizer == Tokenizer.from_tokens(TOKENS, False, True, False)


def test_more_words_than_rows_are_refused(tmp_path):
    tokens = TOKENS + [f"t{i}" for i in range(55)]
    folder = write_vocab(make_folder(tmp_path / "v"), tokens[:64])
    assert load_checkpoint(folder)[2].vocab_size == 64
    message = refused(write_vocab(folder, tokens))
    assert "65" in message and "vocab_size = 64" in message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"do_lower_case": "no"}', "no"),
        ("[]", "tokenizer_config.json"),
        ('{"do_lower_case": true, "do_lower_case": false}', "do_lower_case"),
    ],
)
def test_faulty_tokenizer_settings(tmp_path, text, word):
    folder = write_vocab(make_folder(tmp_path / "v"))
    (folder / "tokenizer_config.json").write_text(text)
    assert word in refused(folder)


def test_a_tokenizer_of_another_kind_is_not_used(tmp_path):
    options = {"tokenizer_class": "BertJapaneseTokenizer"}
    folder = write_vocab(make_folder(tmp_path / "v"), **options)
    report = {}
    assert load_checkpoint(folder, report=report)[2] is None
    assert report["unused"] == ["vocab.txt"]


def tokenizer_json(**changes):
    """A tokenizer.json; a change is part__key=value."""
    values = {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "lowercase": False,
            "handle_chinese_chars": False,
            "strip_accents": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "truncation": {"max_length": 3},
        "padding": {"strategy": {"Fixed": 3}},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {t: i for i, t in reversed(list(enumerate(TOKENS)))},
        },
    }
    for key, value in changes.items():
        part, _, key = key.partition("__")
        if key:
            values[part][key] = value
        else:
            values[part] = value
    return json.dumps(values)


def load_tokenizer(folder, **changes):
    make_folder(folder)
    (folder / "tokenizer.json").write_text(tokenizer_json(**changes), encoding="utf-8")
    return load_checkpoint(folder)[2]


def test_tokenizer_json_alone_gives_vocabulary_and_case(tmp_path):
    tokenizer = load_tokenizer(tmp_path / "t")
    assert tokenizer == Tokenizer.from_tokens(TOKENS, False, True, False)
    assert len(tokenizer.encode("a a a a a").tokens) == 7


def test_tokenizer_config_counts_before_tokenizer_json(tmp_path):
    load_tokenizer(tmp_path / "t")
    settings = {"do_lower_case": True, "strip_accents": None}
    (tmp_path / "t" / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_checkpoint(tmp_path / "t")[2]
    assert tokenizer == Tokenizer.from_tokens(TOKENS, True, None, False)


def test_vocab_txt_counts_before_tokenizer_json(tmp_path):
    load_tokenizer(tmp_path / "t")
    write_vocab(tmp_path / "t", [*TOKENS, "more"])
    tokenizer = load_checkpoint(tmp_path / "t")[2]
    assert tokenizer == Tokenizer.from_tokens([*TOKENS, "more"])


@pytest.mark.parametrize(
    "changes",
    [
        {"model__type": "BPE"},
        {"model__unk_token": "<unk>"},
        {"model": None},
        {"model__max_input_chars_per_word": 200},
        {"normalizer__type": "Sequence"},
        {"normalizer": None},
        {"normalizer__clean_text": False},
        {"pre_tokenizer": []},
    ],
    ids=str,
)
def test_other_kinds_of_tokenizer_json_give_none(tmp_path, changes):
    assert load_tokenizer(tmp_path / "t", **changes) is None
    report = {}
    load_checkpoint(tmp_path / "t", report=report)
    assert report["unused"] == ["tokenizer.json"]


@pytest.mark.parametrize(
    "vocab",
    [None, [], {"a": "0"}, {"a": True}, {"a": 1}, {"a": 0, "b": 2}, {"a": 0, "b": 0}],
    ids=str,
)
def test_faulty_vocabularies_in_tokenizer_json(tmp_path, vocab):
    with pytest.raises(BertError, match="tokenizer.json: vocab"):
        load_tokenizer(tmp_path / "t", model__vocab=vocab)


def test_too_many_words_in_tokenizer_json(tmp_path):
    vocab = {token: i for i, token in enumerate([*TOKENS, *map(str, range(55))])}
    with pytest.raises(BertError, match="65"):
        load_tokenizer(tmp_path / "t", model__vocab=vocab)


# ---------------------------------------------------------------- reports
def test_the_report_in_print(tmp_path):
    tensors = {old_name(n): t for n, t in tiny_tensors().items() if "pooler" not in n}
    report = {}
    load_checkpoint(make_folder(tmp_path / "old", tensors), report=report)
    lines = format_report(report).splitlines()
    assert lines[0] == "files (1): model.safetensors"
    assert lines[1].startswith("renamed (12): ") and lines[1].endswith(", ...")
    assert lines[2] == "absent (1): pooler"
    assert len(lines) == 3


def test_a_plain_load_reports_its_file_only():
    report = {}
    load_checkpoint(TINY, report=report)
    assert set(report) == {
        "files",
        "renamed",
        "converted",
        "tied",
        "dropped",
        "unused",
        "absent",
    }
    assert format_report(report) == "files (1): model.safetensors"


def test_a_refused_checkpoint_leaves_no_report(tmp_path):
    report = {}
    refused(make_folder(tmp_path / "many", num_hidden_layers=1), report=report)
    assert report == {}


# ----------------------------------------------------------------- saving
SMALL = BertConfig(
    vocab_size=23,
    hidden_size=6,
    num_hidden_layers=11,
    num_attention_heads=3,
    intermediate_size=10,
    max_position_embeddings=7,
    type_vocab_size=3,
)


def small_params(heads=True, dtype=np.float32, seed=0):
    return bert_np.init_params(SMALL, np.random.default_rng(seed), heads, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "without", [(), ("pooler",), ("mlm",), ("nsp",), ("mlm", "nsp")]
)
def test_what_is_saved_is_what_is_loaded(tmp_path, dtype, without):
    params = small_params(dtype=dtype)
    for part in without:
        del params[part]
    tokenizer = Tokenizer.from_tokens(TOKENS, False, True, False)
    config = replace(
        SMALL, hidden_act="gelu_new", layer_norm_eps=1e-7, pad_token_id=None
    )
    folder = tmp_path / "new" / "folder"
    save_pretrained(folder, params, config, tokenizer)
    loaded, loaded_config, loaded_tokenizer = load_checkpoint(folder)
    assert_same(loaded, params)
    assert loaded_config == config
    assert loaded_tokenizer == tokenizer


@pytest.mark.parametrize(
    ("without", "architecture"),
    [
        ((), "BertForPreTraining"),
        (("nsp",), "BertForMaskedLM"),
        (("mlm",), "BertForNextSentencePrediction"),
        (("mlm", "nsp"), "BertModel"),
    ],
)
def test_saved_files_are_in_huggingfaces_layout(tmp_path, without, architecture):
    params = small_params()
    for part in without:
        del params[part]
    save_pretrained(tmp_path, params, SMALL, Tokenizer.from_tokens(TOKENS))
    assert sorted(os.listdir(tmp_path)) == [
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    values = json.loads((tmp_path / "config.json").read_text())
    assert values["architectures"] == [architecture]
    assert values["model_type"] == "bert"
    tensors = load_file(tmp_path / "model.safetensors")
    inner = tensors["bert.encoder.layer.10.intermediate.dense.weight"]
    np.testing.assert_array_equal(inner, params["layers"][10]["ffn"]["inner"]["W"].T)
    assert ("cls.seq_relationship.weight" in tensors) == ("nsp" not in without)
    with safetensors.safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_the_tiny_checkpoint_is_written_as_it_was(tmp_path):
    params, config, _ = load_checkpoint(TINY)
    save_pretrained(tmp_path, params, config)
    tensors, original = load_file(tmp_path / "model.safetensors"), tiny_tensors()
    assert sorted(tensors) == sorted(original)
    for name, tensor in tensors.items():
        assert tensor.tobytes() == original[name].tobytes(), name


def test_any_memory_layout_saves_the_same_bytes(tmp_path):
    params = small_params()
    layouts = {
        "F": lambda path, a: np.asfortranarray(a),
        "strided": lambda path, a: np.repeat(a, 2, axis=-1)[..., ::2],
        "reversed": lambda path, a: a[::-1].copy()[::-1],
        "big-endian": lambda path, a: a.astype(a.dtype.newbyteorder(">")),
    }
    save_pretrained(tmp_path / "C", params, SMALL)
    expected = (tmp_path / "C" / "model.safetensors").read_bytes()
    for name, change in layouts.items():
        save_pretrained(tmp_path / name, map_leaves(change, params), SMALL)
        assert (tmp_path / name / "model.safetensors").read_bytes() == expected, name


def test_saving_changes_no_parameter(tmp_path):
    params = small_params()
    before = map_leaves(lambda path, a: a.copy(), params)
    for _, array in leaves(params):
        array.flags.writeable = False
    save_pretrained(tmp_path, params, SMALL)
    assert_same(params, before)


def test_saving_again_replaces(tmp_path):
    for seed in (1, 2):
        save_pretrained(tmp_path, small_params(seed=seed), SMALL)
    assert_same(load_checkpoint(tmp_path)[0], small_params(seed=2))


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX's")
def test_all_saved_files_have_the_same_mode(tmp_path):
    save_pretrained(tmp_path, small_params(), SMALL, Tokenizer.from_tokens(TOKENS))
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"config": None}, "config is NoneType"),
        ({"config": replace(SMALL, hidden_size=9)}, "params.embeddings.word"),
        ({"params": []}, "params is list"),
        ({"tokenizer": "vocab.txt"}, "tokenizer is str"),
        ({"tokenizer": Tokenizer.from_tokens([*TOKENS, *"bcdefghijklmno"])}, "24"),
        ({"tokenizer": Tokenizer.from_tokens([*TOKENS, "x\ny"])}, "x\\ny"),
        ({"tokenizer": Tokenizer.from_tokens([*TOKENS, "x\r"])}, "x\\r"),
        ({"tokenizer": Tokenizer.from_tokens([*TOKENS, "\ud800"])}, "\\ud800"),
        ({"tokenizer": Tokenizer.from_tokens(["\ufeff", *TOKENS])}, "\\ufeff"),
        ({"folder": None}, "folder is NoneType"),
        ({"folder": b"here"}, "folder is bytes"),
        ({"folder": ""}, "folder ''"),
        ({"folder": "a\0b"}, "cannot be made"),
    ],
)
def test_wrong_arguments_write_nothing(tmp_path, arguments, word):
    folder = tmp_path / "new"
    wanted = {"folder": folder, "params": small_params(), "config": SMALL} | arguments
    with pytest.raises(BertError) as caught:
        save_pretrained(**wanted)
    assert word in str(caught.value)
    assert not folder.exists()


def test_saving_where_a_file_stands(tmp_path):
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "sub"):
        with pytest.raises(BertError, match="folder"):
            save_pretrained(folder, small_params(), SMALL)
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "model.safetensors.index.json", "vocab.txt"]
)
def test_files_of_another_model_are_not_mixed_in(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(BertError, match=name):
        save_pretrained(tmp_path, small_params(), SMALL)
    assert os.listdir(tmp_path) == [name]


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def no_space(*args, **kwargs):
    raise OSError(28, "No space left on device")


def safetensors_no_space(*args, **kwargs):
    raise safetensors.SafetensorError("Error while serializing: No space left")


@pytest.mark.parametrize(
    ("place", "fail"),
    [
        ("safetensors.numpy.save_file", no_space),
        ("safetensors.numpy.save_file", safetensors_no_space),
        ("pathlib.Path.write_bytes", no_space),
        ("os.replace", no_space),
        ("shutil.copymode", no_space),
    ],
)
def test_a_failed_save_leaves_the_old_files(tmp_path, monkeypatch, place, fail):
    save_pretrained(tmp_path, small_params(), SMALL, Tokenizer.from_tokens(TOKENS))
    before = snapshot(tmp_path)
    monkeypatch.setattr(place, fail)
    with pytest.raises(BertError, match="No space left"):
        save_pretrained(
            tmp_path, small_params(seed=1), SMALL, Tokenizer.from_tokens(TOKENS)
        )
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("count", range(1, 6))
def test_a_rename_that_fails_midway_is_undone(tmp_path, monkeypatch, count):
    save_pretrained(tmp_path, small_params(), SMALL, Tokenizer.from_tokens(TOKENS))
    before, calls, replace_file = snapshot(tmp_path), [], os.replace

    def fail_once(source, target):
        calls.append(target)
        if len(calls) == count:
            no_space()
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", fail_once)
    config = replace(SMALL, layer_norm_eps=1e-7)  # so config.json changes too
    with pytest.raises(BertError, match="No space left"):
        save_pretrained(
            tmp_path,
            small_params(seed=1),
            config,
            Tokenizer.from_tokens([*TOKENS, "more"]),
        )
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_a_rename_that_fails_puts_the_old_files_back(tmp_path, monkeypatch, fails_at):
    save_pretrained(tmp_path, small_params(), SMALL, Tokenizer.from_tokens(TOKENS))
    before, calls, replace_file = snapshot(tmp_path), [], os.replace

    def fail_once(source, goal):
        calls.append(goal)
        if len(calls) == fails_at:
            no_space()
        replace_file(source, goal)

    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(BertError, match="No space left"):  # all three files change
        save_pretrained(
            tmp_path,
            small_params(seed=1),
            replace(SMALL, layer_norm_eps=0.5),
            Tokenizer.from_tokens(sorted(TOKENS)),
        )
    assert snapshot(tmp_path) == before


def test_where_the_weights_alone_change_they_alone_are_renamed(tmp_path, monkeypatch):
    save_pretrained(tmp_path, small_params(), SMALL, Tokenizer.from_tokens(TOKENS))
    calls, replace_file = [], os.replace
    monkeypatch.setattr(
        os, "replace", lambda *pair: (calls.append(pair[1].name), replace_file(*pair))
    )
    save_pretrained(
        tmp_path, small_params(seed=1), SMALL, Tokenizer.from_tokens(TOKENS)
    )
    assert calls == ["model.safetensors"]
    assert_same(load_checkpoint(tmp_path)[0], small_params(seed=1))


def test_a_later_save_removes_what_a_killed_one_left(tmp_path):
    old, young = (tmp_path / f"{checkpoint.PARTIAL}{name}" for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
    os.utime(old, (0, 0))
    save_pretrained(tmp_path, small_params(), SMALL)
    assert young.exists() and not old.exists()


def test_an_interrupted_save_leaves_the_old_files(tmp_path, monkeypatch):
    save_pretrained(tmp_path, small_params(), SMALL)
    before = snapshot(tmp_path)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("safetensors.numpy.save_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_pretrained(tmp_path, small_params(seed=1), SMALL)
    assert snapshot(tmp_path) == before


def test_a_temporary_file_that_cannot_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("safetensors.numpy.save_file", no_space)

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(BertError, match="No space left"):
        save_pretrained(tmp_path, small_params(), SMALL)


FULL = """
import resource, sys
import numpy as np
import bert_np
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
params, config, _ = load_checkpoint(sys.argv[1])
params = bert_np.init_params(config, np.random.default_rng(1), heads=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    save_pretrained(sys.argv[1], params, config)
except bert_np.BertError as error:
    print(error)
"""


def test_a_file_that_may_not_grow_leaves_the_old_files(tmp_path):
    pytest.importorskip("resource")
    save_pretrained(tmp_path, small_params(), SMALL)
    before = snapshot(tmp_path)
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(
        command, timeout=60, check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert "cannot be written" in done.stdout
    assert snapshot(tmp_path) == before
