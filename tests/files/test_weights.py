"""The files of a folder: which are read, which are refused, and in what words."""

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors
from files.folders import (
    BASE,
    DECODER,
    QUERY,
    RAW,
    TENSORS,
    TINY,
    WORD,
    accept,
    cases,
    link,
    make,
    pack,
    pack_tensors,
    refuse,
)

from bert_np.files import weights
from bert_np.files.weights import INDEX, WEIGHTS

LENGTH = int.from_bytes(RAW[:8], "little")
HEADER, DATA = json.loads(RAW[8 : 8 + LENGTH]), RAW[8 + LENGTH :]


# -------------------------------------------------- no safetensors at all
def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", bytes(40))
    return buffer.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
FILES = [
    ("Git LFS pointer", LFS, "Git LFS pointer", "git lfs pull"),
    ("ZIP", zipped(), "ZIP", "name it pytorch_model.bin"),
    ("pickle", pickle.dumps([1.0] * 9, 2), "pickle", "name it pytorch_model.bin"),
    ("HDF5", b"\x89HDF\r\n\x1a\n" + bytes(90), "HDF5", "name it tf_model.h5"),
    ("GGUF", b"GGUF\x03\0\0\0" + bytes(90), "GGUF"),
    ("npy", b"\x93NUMPY\x01\0v\0{'descr': '<f4'}", "NumPy"),
    ("HTML", b"\xef\xbb\xbf\r\n <!DOCTYPE html><html>", "HTML", "again"),
    ("JSON", b'{"error":"Repository not found"}', "JSON", "again"),
    ("JSON with a brace at 8", b'{"err": {"code": 404}}', "JSON", "again"),
    ("empty", b"", "is empty", "again"),
    ("text", b"404: Not Found", "not a safetensors file", "404: Not"),
    ("four bytes", RAW[:4], "not a safetensors file", "4 bytes"),
    ("zeros", bytes(1000), "not a safetensors file"),
    ("a header that is a list", pack(b"[1]", DATA), "not a safetensors file"),
    ("a header too long", pack(b"{" + b" " * 10_000_000), "not a safetensors file"),
    ("cut in the header", RAW[:400], "truncated", "400", "again"),
    # The length of this header begins like a pickle.
    ("a pickle's length", pack(b"{".ljust(0x280), b"")[:99], "truncated"),
    ("cut in the data", RAW[:-1], "truncated", "94167", "94168", "again"),
    ("more than its header", RAW + b"\0", "damaged", "94169", "94168"),
    ("not UTF-8", pack(b'{"a\xff": {}}'), "not UTF-8 at byte 3"),
    ("not JSON", pack("{nonsense"), "not valid JSON"),
    ("a name twice", pack('{"a": 1, "a": 1}'), "'a' appears twice"),
    ("NaN", pack('{"a": NaN}'), "NaN"),
]


@pytest.mark.parametrize("data, words", cases(FILES))
def test_a_file_that_holds_no_weights_is_named(tmp_path, data, words):
    assert refuse(make(tmp_path, data), *words).startswith(WEIGHTS)


# ------------------------------------------------------------ the header
def entry(**changes):
    """The header with one tensor, changed; None leaves a key out."""
    base = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return {"a": {k: v for k, v in (base | changes).items() if v is not None}}


MALFORMED = [
    ("no object", {"a": [1]}),
    ("dtype a list", entry(dtype=["F32"])),
    ("no shape", entry(shape=None)),
    ("no offsets", entry(data_offsets=None)),
    ("three offsets", entry(data_offsets=[0, 4, 8])),
    ("negative", entry(shape=[-2])),
    ("a bool", entry(shape=[True, 2])),
    ("a long name", {"n" * 9000: 1}, "nnn..."),
]


@pytest.mark.parametrize("header, words", cases(MALFORMED))
def test_a_malformed_entry_is_named(tmp_path, header, words):
    folder = make(tmp_path, pack(header, bytes(8)))
    refuse(folder, "the header's entry", "is malformed", *words)


def test_two_tensors_on_one_place_are_refused(tmp_path):
    key = HEADER[QUERY.replace("query", "key")]
    refuse(
        make(tmp_path, pack(HEADER | {QUERY: key}, DATA)), f"{WEIGHTS} cannot be read"
    )


def test_a_shape_beyond_64_bits_is_refused(tmp_path):
    shape = {QUERY: HEADER[QUERY] | {"shape": [2**32, 2**32]}}
    refuse(
        make(tmp_path, pack(HEADER | shape, DATA)), QUERY, "(4294967296, 4294967296)"
    )


ODD_HEADERS = {
    "escapes": json.dumps(HEADER).replace("bert.", "\\u0062ert."),
    "spaces": json.dumps(HEADER, indent=4) + "\n\t\r\n   ",
    "another order": dict(sorted(HEADER.items())),
    "metadata": HEADER | {"__metadata__": {"<script>": "${7*7}"}},
}


@pytest.mark.parametrize("header", ODD_HEADERS.values(), ids=ODD_HEADERS)
def test_odd_headers_give_the_same_parameters(tmp_path, header):
    accept(make(tmp_path, pack(header, DATA)), BASE)


# ------------------------------------------------------ files that change
def test_a_file_that_changes_while_it_is_read(monkeypatch):
    other = safetensors.deserialize(RAW)[1:]
    monkeypatch.setattr(safetensors, "deserialize", lambda data: list(other))
    refuse(TINY, f"{WEIGHTS} changed while")


@pytest.mark.parametrize("error", [OSError("disk"), MemoryError("memory")])
def test_a_file_that_cannot_be_read_whole(monkeypatch, error):
    def fail(data):
        raise error

    monkeypatch.setattr(safetensors, "deserialize", fail)
    refuse(TINY, f"{WEIGHTS} cannot be read: {error}")


def deny(*arguments):
    raise PermissionError(13, "Permission denied")


def test_files_and_folders_without_permission(tmp_path, monkeypatch):
    folder = make(tmp_path)
    monkeypatch.setattr(weights, "open", deny, raising=False)
    refuse(folder, f"{WEIGHTS} cannot be read: Permission denied")
    (folder / WEIGHTS).unlink()
    monkeypatch.setattr(os, "listdir", deny)
    refuse(folder, str(folder), "Permission denied")


# ---------------------------------------------------------------- folders
OTHERS = {
    "pytorch_model.bin": "torch.load(f, weights_only=True)",
    "pytorch_model-00001-of-00002.bin": "glob.glob('pytorch_model*.bin')",
    "a.pt": "name it pytorch_model.bin",
    "tf_model.h5": "transformers==4.49.0, torch, tensorflow, tf-keras",
    "bert_model.ckpt.index": "from_pretrained('bert_model.ckpt.index', from_tf=True",
    "x.msgpack": "from_flax=True",
}


@pytest.mark.parametrize("name", OTHERS)
def test_weights_of_another_format_are_named_with_the_remedy(tmp_path, name):
    folder = make(tmp_path, None, {name: b"\x80\x02."})
    assert refuse(folder, OTHERS[name]).startswith(name)


def test_of_many_formats_the_one_that_can_be_converted_is_named(tmp_path):
    names = ["flax_model.msgpack", "pytorch_model.bin", "tf_model.h5"]
    folder = make(tmp_path, None, dict.fromkeys(names, b""))
    assert refuse(folder).startswith("pytorch_model.bin")


def test_a_folder_that_lacks_a_file(tmp_path):
    folder = make(tmp_path, None)
    assert refuse(folder).startswith(f"{WEIGHTS} is missing")
    (folder / "config.json").unlink()
    assert refuse(folder).startswith("config.json is missing")
    (folder / "config.json").mkdir()
    assert refuse(folder).startswith("config.json is not a readable file")


def test_what_lies_beside_safetensors_does_not_count(tmp_path):
    more = {"pytorch_model.bin": b"\x80", INDEX: "nonsense", "modeling.py": "1/0"}
    accept(make(tmp_path, files=more, auto_map={"AutoModel": "modeling.Evil"}), BASE)


# ----------------------------------------------------------------- shards
ONE, TWO = "model-1.safetensors", "model-2.safetensors"
NAMES = sorted(TENSORS)
PARTS = {
    ONE: {name: TENSORS[name] for name in NAMES[:20]},
    TWO: {name: TENSORS[name] for name in NAMES[20:]},
}
SHARDS = {name: file for file, part in PARTS.items() for name in part}


def shard(folder, shards=SHARDS, more=None):
    """The tiny checkpoint in two files and an index; more tensors in the second."""
    index = shards if isinstance(shards, str) else json.dumps({"weight_map": shards})
    one, two = pack_tensors(PARTS[ONE]), pack_tensors(PARTS[TWO] | (more or {}))
    return make(folder, None, {ONE: one, TWO: two, INDEX: index})


def test_shards_give_the_same_parameters(tmp_path):
    _, report = accept(shard(tmp_path), BASE)
    assert sorted(report["files"]) == [ONE, TWO]


def test_a_tie_across_shards(tmp_path):
    folder = shard(tmp_path, SHARDS | {DECODER: TWO}, {DECODER: TENSORS[WORD]})
    assert accept(folder, BASE)[1]["tied"] == [f"{DECODER} = embeddings.word"]


BAD_NAMES = [
    "../" + ONE,
    "/" + ONE,
    "..\\" + ONE,
    "..",
    "",
    ONE + "\0",
    "a.bin",
    "é" + ONE,
    3,
]


@pytest.mark.parametrize("file", BAD_NAMES)
def test_only_plain_names_of_shards_are_accepted(tmp_path, file):
    message = refuse(shard(tmp_path, SHARDS | {WORD: file}), repr(file))
    assert message.startswith(INDEX)


NEW = {"bert.new": np.zeros(2, np.float32)}
CONTRADICTIONS = [
    ("an entry of nothing", [SHARDS | {"bert.new": TWO}], f"{TWO} lacks bert.new"),
    ("the wrong shard", [SHARDS | {WORD: TWO}], f"{TWO} lacks {WORD}"),
    ("two shards", [SHARDS, {WORD: TENSORS[WORD]}], WORD, "two shards"),
    ("not listed", [SHARDS, {"bert.new": np.zeros(2)}], "bert.new is not listed"),
    ("no such shard", [SHARDS | {WORD: "a.safetensors"}], "a.safetensors is missing"),
    ("a list", ["[]"], INDEX, "list"),
    ("no map", ["{}"], INDEX, "weight_map"),
    ("an empty map", [{}], INDEX, "weight_map"),
    ("no JSON", ["<html>"], INDEX, "not valid JSON"),
]


@pytest.mark.parametrize("given, words", cases(CONTRADICTIONS))
def test_an_index_that_its_shards_contradict(tmp_path, given, words):
    refuse(shard(tmp_path, *given), *words)


# ------------------------------------------------------------------ links
@pytest.mark.parametrize("name", ["config.json", WEIGHTS, "vocab.txt"])
def test_links_that_leave_the_folder_are_refused(tmp_path, name):
    folder = make(tmp_path / "folder")
    (folder / name).unlink(missing_ok=True)
    (tmp_path / "outside").write_text("{}")
    link(folder / name, tmp_path / "outside")
    refuse(folder, f"{name} is a link that leaves the folder")


def test_links_inside_the_folder_and_to_the_folder_work(tmp_path):
    folder = make(tmp_path / "folder")
    os.replace(folder / WEIGHTS, folder / "other")
    link(folder / WEIGHTS, "other")
    link(tmp_path / "alias", folder)
    accept(tmp_path / "alias", BASE)
    (folder / WEIGHTS).unlink()
    link(folder / WEIGHTS, WEIGHTS)  # a circle
    refuse(folder, f"{WEIGHTS} is not a readable file")


def hub_cache(root, owner="models--owner--name"):
    """The layout of huggingface_hub: snapshots are links into blobs."""
    blobs, snapshot = root / owner / "blobs", root / owner / "snapshots" / "0123abcd"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name in ("config.json", WEIGHTS):
        shutil.copy(TINY / name, blobs)
        link(snapshot / name, Path("..", "..", "blobs", name))
    return snapshot


def test_a_model_in_the_hub_cache_has_its_own_blobs_alone(tmp_path):
    snapshot, other = hub_cache(tmp_path), hub_cache(tmp_path, "models--owner--other")
    accept(snapshot, BASE, home=tmp_path)
    refuse(hub_cache(tmp_path, "no cache"), "is a link")
    (snapshot / WEIGHTS).unlink()
    link(snapshot / WEIGHTS, other / WEIGHTS)
    refuse(snapshot, f"{WEIGHTS} is a link", home=tmp_path)
