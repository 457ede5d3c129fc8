"""The files of a checkpoint: found, recognised, and read as a whole.

This module knows the safetensors format and the layout of a folder, but
not the name of any tensor. Files are read whole rather than mapped into
memory, because a file that is cut short while it is mapped kills the
process. Nothing is ever unpickled.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from bert_np.config import parse_json, read_json
from bert_np.errors import BertError, did_you_mean

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors")
MAX_HEADER = 10_000_000  # bytes; the header of BERT-Large has 50 thousand
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
INTEGERS = {"I64": "<i8", "I32": "<i4"}  # position ids only
# Every tensor is kept, and no part of a model is invented, as transformers'
# own classes would do; weights_only=True opens nothing but tensors.
TORCH = (
    "with torch installed, run in its folder: import glob, torch, safetensors.torch as "
    "s; s.save_file({{k: v.clone() for f in glob.glob('{}') for k, v in "
    "torch.load(f, weights_only=True).items()}}, 'model.safetensors')"
)
RENAME = "name it pytorch_model.bin, then load again to see how to convert it"
RENAME_KERAS = RENAME.replace("pytorch_model.bin", "tf_model.h5")
# transformers 5 reads no such files, and the last versions of 4 lose the weights.
# These commands were tried with tensorflow 2.21, flax 0.12 and torch 2.13.
OLD = "with transformers==4.49.0, torch, {} installed, run in its folder: "
BY_CLASS = (
    "import json, transformers as t; getattr(t, json.load(open('config.json'))"
    "['architectures'][0]).from_pretrained('.', from_{}=True).save_pretrained('.')"
)
KERAS = OLD.format("tensorflow, tf-keras") + BY_CLASS.format("tf")
FLAX = OLD.format("flax") + BY_CLASS.format("flax")
TENSORFLOW = OLD.format("tensorflow") + (
    "import transformers as t; t.BertForPreTraining.from_pretrained('{}.index', "
    "from_tf=True, config='config.json').save_pretrained('.')"
)
AGAIN = "download it again"
# The first bytes of other files that turn up in place of a safetensors file.
SIGNATURES = (
    (b"version https://git", "a Git LFS pointer, not the weights; run git lfs pull"),
    (b"PK", f"a ZIP archive, which is not opened; if it is PyTorch's, {RENAME}"),
    (b"\x80", f"a Python pickle, which is not opened; if it is PyTorch's, {RENAME}"),
    (b"\x89HDF", f"an HDF5 file (TensorFlow): {RENAME_KERAS}"),
    (b"GGUF", "a GGUF file (llama.cpp): get the model's safetensors file"),
    (b"\x93NUMPY", "a NumPy array file: get the model's safetensors file"),
    (b"<", f"an HTML or XML page, not the weights: {AGAIN}"),
    (b"{", f"JSON text, perhaps a server's error message: {AGAIN}"),
)


def check_folder(folder):
    """Return the folder as a Path, provided that it exists."""
    if not isinstance(folder, (str, Path)):
        raise BertError(f"folder is {type(folder).__name__}, allowed: a str or a Path")
    if not os.path.isdir(folder):
        found = "is a file" if os.path.isfile(folder) else "does not exist"
        raise BertError(f"folder {str(folder)!r} {found}, allowed: a model's folder")
    return Path(folder)


def own_file(folder, name):
    """Return the path of a file in the folder, and refuse links out of it.

    The cache of huggingface_hub is the one exception. Its snapshots are
    links to the model's own blobs in models--owner--name/blobs, which may
    in turn be links to blobs that several models share, in a folder next
    to the model's.
    """
    path, home = folder / name, Path(os.path.realpath(folder))
    blobs = [
        above / "blobs"
        for place in home.parents
        for above in place.parents[:2]
        if place.name == "snapshots" and place.parent.name.startswith("models--")
    ]
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(place) for place in (home, *blobs)):
        raise BertError(f"{name} is a link that leaves the folder; put the file there")
    if not os.path.isfile(path):
        found = "is not a readable file" if os.path.lexists(path) else "is missing"
        near = "" if SHARD.fullmatch(name) else _near_file(folder, name)
        raise BertError(f"{name} {found} in the folder {str(folder)!r}{near}")
    return path


def _near_file(folder, name):
    """Return the advice to rename a file that has almost this name, or ""."""
    near = did_you_mean(name, few_names(folder))
    return f"{near} Rename it" if near else ""


def few_names(folder):
    """List a folder's files, or none if there are very many."""
    with suppress(OSError, ValueError):
        names = sorted(os.listdir(folder))
        return names if len(names) <= 1000 else []
    return []


def read_object(folder, name):
    """Read a JSON object from the folder; None if there is no such file."""
    if not os.path.lexists(folder / name):
        return None
    values = read_json(own_file(folder, name))
    if not isinstance(values, dict):
        raise BertError(f"{name} is {type(values).__name__}, allowed: a JSON object")
    return values


def read_headers(folder):
    """Read what the weight files contain: {file: {tensor: (dtype, shape)}}."""
    if os.path.lexists(folder / WEIGHTS):
        return {WEIGHTS: _read_header(own_file(folder, WEIGHTS))}
    if os.path.lexists(folder / INDEX):
        return _read_shard_headers(folder)
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise BertError(f"folder {str(folder)!r}: {error.strerror}") from None
    other = [n for n in names if re.search(r"\.(bin|h5|ckpt|pth?|msgpack)\b", n)]
    if other:
        name = min(other, key=lambda n: (not n.startswith("pytorch_model"), n))
        raise BertError(f"{name[:32]} cannot be read, only {WEIGHTS}: {_remedy(name)}")
    near = _near_file(folder, WEIGHTS)
    raise BertError(f"{WEIGHTS} is missing from the folder {str(folder)!r}{near}")


def _remedy(name):
    """Say how weights of another format become a safetensors file."""
    if name.startswith("pytorch_model"):
        return TORCH.format("pytorch_model*.bin")
    if re.search(r"\.(bin|pth?|ckpt)$", name):
        return f"if it is PyTorch's, {RENAME}; otherwise get the safetensors file"
    if ".ckpt" in name:
        return TENSORFLOW.format(
            re.sub(r"(\.ckpt.*?)\.\w+(-\d+-of-\d+)?$", r"\1", name)
        )
    return KERAS if name.endswith(".h5") else FLAX


def _read_shard_headers(folder):
    """Read the headers of all shards that the index names, and check them."""
    shards = read_object(folder, INDEX).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise BertError(f"{INDEX}: weight_map is not an object {{tensor: file}}")
    headers = {}
    for file in shards.values():
        if not isinstance(file, str) or not SHARD.fullmatch(file):
            raise BertError(
                f"{INDEX}: file {file!r:.60}, allowed: names of files in the folder, "
                "such as 'model-00001-of-00002.safetensors'"
            )
        if file not in headers:
            headers[file] = _read_header(own_file(folder, file))
    _check_index(shards, headers)
    return headers


def _check_index(shards, headers):
    """Check that each tensor is only in the shard that the index names."""
    for name, file in shards.items():
        if name not in headers[file]:
            raise BertError(f"{file} lacks {show([name])}, which {INDEX} promises")
    for file, header in headers.items():
        for name in header:
            if name not in shards:
                raise BertError(f"{file}: {show([name])} is not listed in {INDEX}")
            if shards[name] != file:
                raise BertError(
                    f"{show([name])} is in two shards, {file} and {shards[name]}"
                )


def _read_header(path):
    """Read the header of a safetensors file: {tensor: (dtype, shape)}."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(64)
            length = int.from_bytes(start[:8], "little")
            if start[8:9] != b"{" or length > min(size - 8, MAX_HEADER):
                raise BertError(f"{path.name} {_what_is(start, length, size)}")
            file.seek(8)
            text = file.read(length)
    except OSError as error:
        raise BertError(f"{path.name} cannot be read: {error.strerror}") from None
    return _parse_header(text, path.name, size)


def _what_is(start, length, size):
    """Say what a file is, if it is not a complete safetensors file."""
    if size == 0:
        return f"is empty: {AGAIN}"
    if start[8:9] == b"{" and length <= MAX_HEADER:
        return f"is truncated: its header has {length} bytes, the file {size}: {AGAIN}"
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    for signature, kind in SIGNATURES:
        if text.startswith(signature):
            return f"is {kind}"
    return f"is not a safetensors file: {size} bytes, beginning with {start[:8]!r}"


def _parse_header(text, file, size):
    """Decode a header and compare it with the size of its file."""
    try:
        entries = parse_json(text.decode("utf-8"), file)
    except UnicodeDecodeError as error:
        raise BertError(f"{file}: header is not UTF-8 at byte {error.start}") from None
    entries.pop("__metadata__", None)
    for name, entry in entries.items():
        if not _is_entry(entry):
            raise BertError(f"{file}: the header's entry {show([name])} is malformed")
    ends = [entry["data_offsets"][1] for entry in entries.values()]
    announced = 8 + len(text) + max(ends, default=0)
    if size != announced:
        kind = "is truncated" if size < announced else "is damaged"
        raise BertError(
            f"{file} {kind}: it has {size} bytes, its header announces {announced}: "
            f"{AGAIN}"
        )
    return {n: (e["dtype"], tuple(e["shape"])) for n, e in entries.items()}


def _is_entry(entry):
    """Say whether a tensor's entry in a header has the parts it needs."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list):
        return False
    return len(offsets) == 2 and all(type(n) is int and n >= 0 for n in shape + offsets)


def read_tensors(path, header):
    """Yield the (name, bytes) of each tensor, freeing each after its use."""
    import safetensors

    try:
        tensors = safetensors.deserialize(path.read_bytes())
    except (OSError, MemoryError, safetensors.SafetensorError) as error:
        raise BertError(f"{path.name} cannot be read: {error}") from None
    found = {name: (t["dtype"], tuple(t["shape"])) for name, t in tensors}
    if found != header:
        raise BertError(f"{path.name} changed while it was being read")
    while tensors:
        name, tensor = tensors.pop()
        yield name, tensor["data"]


def show(names):
    """Join the first five names, each cut to 50 characters."""
    names = list(names)
    plain = [n if n.isprintable() else ascii(n)[1:-1] for n in names[:5]]
    short = [n if len(n) <= 50 else f"{n[:47]}..." for n in plain]
    return ", ".join(short) + (", ..." if len(names) > 5 else "")
