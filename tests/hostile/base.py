"""What the kinds share: a case, the base checkpoint, the file format."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_np.files.checkpoint import huggingface_name, load_checkpoint
from bert_np.tree import leaves

TINY = Path(__file__).parents[1] / "golden" / "tiny"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
WORD = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
KEY = QUERY.replace("query", "key")
RAW = (TINY / WEIGHTS).read_bytes()
CONFIG = json.loads((TINY / "config.json").read_text("utf-8"))
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "The", "the", "##m", "é"]


@dataclass(frozen=True)
class Case:
    """An input and what it gets.

    words: what the message of the refusal contains; () where the input is
    accepted. values: for what is accepted, what the result must equal.
    """

    name: str
    given: object
    words: tuple = ()
    values: object = None


def refused(name, given, *words):
    if not words:
        raise ValueError(f"{name}: a refusal names its culprit")
    return Case(name, given, words)


def accepted(name, given, values=None):
    return Case(name, given, (), values)


def split(raw):
    """The header and the data of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def pack(header, data=b""):
    """The bytes of a safetensors file with this header (dict, str or bytes)."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return len(header).to_bytes(8, "little") + header + data


def pack_tensors(tensors, metadata=None):
    """{name: (dtype name, shape, bytes)} as the bytes of a safetensors file."""
    header = {} if metadata is None else {"__metadata__": metadata}
    blocks, end = [], 0
    for name, (dtype, shape, block) in tensors.items():
        offsets = [end, end + len(block)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        blocks.append(block)
        end = offsets[1]
    return pack(header, b"".join(blocks))


def tensors_of(raw):
    """{name: (dtype name, shape, bytes)} of a safetensors file."""
    header, data = split(raw)
    header.pop("__metadata__", None)
    return {
        name: (
            entry["dtype"],
            tuple(entry["shape"]),
            data[slice(*entry["data_offsets"])],
        )
        for name, entry in header.items()
    }


TENSORS = tensors_of(RAW)


def array_of(name):
    """A tensor of the base checkpoint."""
    dtype, shape, block = TENSORS[name]
    return np.frombuffer(block, "<f4").reshape(shape)


def store(array):
    """An array as (dtype name, shape, bytes)."""
    array = np.asarray(array)
    kind = {"f": "F", "i": "I", "u": "U", "b": "BOOL"}[array.dtype.kind]
    name = kind if kind == "BOOL" else f"{kind}{8 * array.itemsize}"
    plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    return name, array.shape, plain.tobytes()


def base_values():
    """{path: array} of the base checkpoint, as it must load."""
    return {
        path: expected_array(path, array_of)
        for path, _ in leaves(load_checkpoint(TINY)[0])
    }


def expected_array(path, tensor):
    """One array of our tree from the tensors of the base checkpoint."""
    name = huggingface_name(path)
    array = tensor(name if name.startswith("cls.") else f"bert.{name}")
    return array.T if path.endswith(".W") else array
