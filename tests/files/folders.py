"""Checkpoint folders for the tests: made, altered, and loaded under watch."""

import json
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from bert_np import BertError
from bert_np.files.checkpoint import huggingface_name, load_checkpoint
from bert_np.files.weights import WEIGHTS
from bert_np.tree import leaves

TINY = Path(__file__).parents[1] / "golden" / "tiny"
TASKS = TINY.parent / "tasks"  # a folder for each of three heads
RAW = (TINY / WEIGHTS).read_bytes()
TENSORS = dict(sorted(load(RAW).items()))  # name -> array
CONFIG = json.loads((TINY / "config.json").read_text("utf-8"))
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "The", "the", "##m", "é"]
VOCAB = "".join(f"{token}\n" for token in TOKENS)
WHOLE = {  # a tokenizer.json
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "padding": {"length": 8},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {token: i for i, token in enumerate(TOKENS)},
    },
}
WORD = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
INNER = "bert.encoder.layer.1.intermediate.dense.weight"
BIAS, DECODER = "cls.predictions.bias", "cls.predictions.decoder.weight"


# ----------------------------------------------------------------- making
def pack(header, data=b""):
    """Return the bytes of a safetensors file with this header."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + data


def pack_tensors(tensors):
    """Return a safetensors file; a tensor is an array or (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        if isinstance(tensor, np.ndarray):
            kind = f"{tensor.dtype.kind.upper()}{8 * tensor.itemsize}"
            tensor = kind, tensor.shape, tensor.tobytes()
        kind, shape, block = tensor
        offsets = [len(data), len(data) + len(block)]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": offsets}
        data += block
    return pack(header, data)


def make(folder, weights=RAW, files=None, **config):
    """Write the tiny checkpoint with other weights, files or config values.

    weights: bytes, tensors for pack_tensors, or None. files: name -> bytes
    or text.
    """
    contents = {"config.json": json.dumps(CONFIG | config)}
    if weights is not None:
        contents[WEIGHTS] = pack_tensors(weights) if type(weights) is dict else weights
    folder.mkdir(exist_ok=True)
    for name, content in (contents | (files or {})).items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    return folder


def without(*parts):
    return {n: t for n, t in TENSORS.items() if not any(part in n for part in parts)}


def renamed(old, new):
    return {n.replace(old, new): t for n, t in TENSORS.items()}


def with_gamma(tensors, part=""):
    """Spell the LayerNorms whose names contain a part in the old way."""
    out = {}
    for name, tensor in tensors.items():
        if "LayerNorm" in name and part in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        out[name] = tensor
    return out


# ---------------------------------------------------------------- loading
def arrays_of(tensors):
    """Return the leaves that tensors must load as: {path: array}."""
    out = {}
    for path, _ in leaves(load_checkpoint(TINY).params):
        name = huggingface_name(path)
        name = name if name.startswith("cls.") else f"bert.{name}"
        if name in tensors:
            out[path] = tensors[name].T if path.endswith(".W") else tensors[name]
    return out


def assert_same(params, expected):
    """The same leaves in the same order, of the same dtypes and values."""
    found = dict(leaves(params))
    assert list(found) == list(expected)
    for path, array in found.items():
        assert array.dtype == expected[path].dtype, path
        np.testing.assert_array_equal(array, expected[path], err_msg=path)


class Watch(list):
    """What this process does (its audit events) while the watch is on."""

    on = False


WATCH = Watch()
sys.addaudithook(lambda *event: WATCH.append(event) if WATCH.on else None)
HARMLESS = {"os.listdir", "object.__getattr__", "object.__setattr__", "compile"}
ROOM = 1_000_000  # bytes that any load may take


def attempt(folder, home=None, **options):
    """Load a folder and return (the model, None) or (None, the message).

    Loading reads files of its home, which is the folder, and does nothing
    else: no import, no process, no socket, no pickle. It needs no more
    memory than its files do.
    """
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    limit = ROOM + 8 * size
    _outcome(folder, options)  # Python's own imports are done
    for _ in range(3):  # a thread of another test may need memory meanwhile
        WATCH.clear()
        tracemalloc.start()
        WATCH.on = True
        try:
            outcome = _outcome(folder, options)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            WATCH.on = False
            tracemalloc.stop()
        if peak <= limit:
            break
    assert peak <= limit
    home = os.path.realpath(home or folder) + os.sep
    for event, arguments in WATCH:
        if event == "open":
            assert os.path.realpath(arguments[0]).startswith(home), arguments
            assert arguments[1] in ("r", "rb"), arguments
        else:
            assert event in HARMLESS, (event, arguments)
    return outcome


def _outcome(folder, options):
    try:
        return load_checkpoint(folder, **options), None
    except BertError as error:
        return None, str(error)


def accept(folder, expected=None, **options):
    """Load a folder that must load; return (the model, its report)."""
    report = {}
    model, message = attempt(folder, report=report, **options)
    assert message is None, message
    if expected is not None:
        assert_same(model.params, expected)
    return model, report


def refuse(folder, *words, **options):
    """Load a folder that must be refused, with these words in the message."""
    model, message = attempt(folder, **options)
    assert model is None, "accepted in silence"
    assert len(message) <= 300 and message.isprintable()
    assert [word for word in words if word not in message] == [], message
    return message


def cases(rows):
    """Turn (name, what is given, *words) into the parameters of a test."""
    return [pytest.param(given, words, id=name) for name, given, *words in rows]


def link(path, target):
    """Make a symbolic link, or skip the test where there are none."""
    try:
        path.symlink_to(target)
    except (OSError, NotImplementedError) as error:
        pytest.skip(f"no symbolic links here: {error}")


BASE = arrays_of(TENSORS)
