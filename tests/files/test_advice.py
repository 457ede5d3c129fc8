"""Advice about files: what a message says to do is done, and the model loads.

How weights of torch are converted is followed in test_transformers.py.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import huggingface_hub
import numpy as np
import pytest
from files.folders import (
    BASE,
    CONFIG,
    DECODER,
    RAW,
    TENSORS,
    TOKENS,
    VOCAB,
    WHOLE,
    WORD,
    accept,
    attempt,
    link,
    make,
    refuse,
    renamed,
    with_gamma,
)
from files.pinned import FILES, is_tiny, message_of
from hub_server import serve

from bert_np import BertError
from bert_np.files import pretrained
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.files.hub import EXPLANATIONS
from bert_np.files.pretrained import fetch, load_pretrained
from bert_np.files.weights import INDEX, WEIGHTS


def named(message):
    """The file of the folder that a message suggests or names first."""
    near = re.search(r"did you mean '(.*?)'\?", message)
    return near[1] if near else os.path.basename(message.split()[0].rstrip(":"))


def write_json(folder, name, values):
    (folder / name).write_text(json.dumps(values))


# ---------------------------------------------- a folder, mended as it is told
def with_nan():
    word = TENSORS[WORD].copy()
    word[0, 0] = np.nan
    return TENSORS | {WORD: word}


KINDS = ["Transformer", "Pooling", "Dense"]
DENSE = [{"type": f"models.{kind}", "path": kind.lower()} for kind in KINDS]
OTHER_CLASS = {"tokenizer_class": "BertJapaneseTokenizer"}
BIG, SHORT = json.dumps(CONFIG | {"vocab_size": 63}), dict(list(CONFIG.items())[:3])
PUT = {WEIGHTS: RAW, "config.json": json.dumps(CONFIG).encode(), "vocab.txt": VOCAB}


def put(folder, name):
    """Put the right file in the place of another."""
    (folder / name).unlink()
    content = PUT[name]
    (folder / name).write_bytes(content if type(content) is bytes else content.encode())


def again(folder, message):
    put(folder, named(message))


def rename(folder, message):
    """Give the near file the name that is missing, or the other way round."""
    first, near = message.split()[0], named(message)
    known = first if "is missing" in message else near
    other = near if "is missing" in message else message.split(" is no file")[0]
    (folder / other).rename(folder / known)


def remove(*names):
    def follow(folder, message):
        for name in names:
            assert name in message
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return follow


def correct(name, **values):
    return lambda folder, message: write_json(folder, name, values)


def change_config(**changes):
    return lambda folder, message: write_json(folder, "config.json", CONFIG | changes)


SETTINGS = "tokenizer_config.json"
GIT_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
NO_TYPE = {n: t for n, t in CONFIG.items() if n not in ("model_type", "architectures")}
REST = {n: t for n, t in CONFIG.items() if n != "hidden_act"}
# The advice, (weights, files), what is done.
FOLDERS = [
    ("run git lfs pull", {"weights": GIT_LFS}, again),
    ("download it again", {"weights": b"<!DOCTYPE html>"}, again),
    ("download it again", {"weights": b'{"error": 1}'}, again),
    ("download it again", {"weights": RAW[:-9]}, again),
    ("get the model's safetensors file", {"weights": b"GGUF1234"}, again),
    ("get the model's safetensors file", {"weights": b"\x93NUMPY12"}, again),
    (
        "rename the tensors",
        {"weights": renamed("bert.", "module.")},
        lambda folder, message: make(folder, renamed("bert.", "bert.")),
    ),
    (
        "allowed: one ('bert.' or no prefix; LayerNorm.gamma/beta or weight/bias)",
        {"weights": with_gamma(TENSORS, "bert.emb")},
        lambda folder, message: make(folder, with_gamma(TENSORS)),
    ),
    (
        'set "tie_word_embeddings": false in config.json',
        {"weights": TENSORS | {DECODER: TENSORS[WORD] + 1}},
        change_config(tie_word_embeddings=False),
    ),
    ("save it without", {"files": {"config.json": "\ufeff{}"}}, again),
    ("save it without", {"files": {"vocab.txt": "\ufeff" + VOCAB}}, again),
    (
        "a file must give each size",
        {"files": {"config.json": json.dumps(SHORT)}},
        lambda folder, message: put(folder, "config.json"),
    ),
    (
        'if it is a BERT, add "model_type": "bert"',
        {"files": {"config.json": json.dumps(NO_TYPE)}},
        lambda folder, message: write_json(
            folder,
            "config.json",
            NO_TYPE | json.loads("{" + message.split("add ")[1] + "}"),
        ),
    ),
    (
        "did you mean 'hidden_act'?",
        {"files": {"config.json": json.dumps(REST | {"hidden_actt": "gelu"})}},
        lambda folder, message: write_json(
            folder, "config.json", REST | {named(message): "gelu"}
        ),
    ),
    (
        "did you mean 'do_lower_case'?",
        {"files": {"vocab.txt": VOCAB, SETTINGS: '{"do_lowercase": false}'}},
        lambda folder, message: write_json(folder, SETTINGS, {named(message): False}),
    ),
    ("Rename or remove it", {"files": {"Vocabs.txt": VOCAB}}, rename),
    ("Rename or remove it", {"files": {"Vocabs.txt": "?"}}, remove("Vocabs.txt")),
    (
        "correct the wrong one",
        {
            "files": {"vocab.txt": VOCAB, SETTINGS: json.dumps(OTHER_CLASS)},
            "tokenizer_class": "BertTokenizer",
        },
        correct(SETTINGS, tokenizer_class="BertTokenizer"),
    ),
    (
        "correct the wrong one",
        {
            "files": {
                "vocab.txt": VOCAB,
                SETTINGS: '{"mask_token": "a"}',
                "special_tokens_map.json": '{"mask_token": "[MASK]"}',
            }
        },
        correct(SETTINGS, mask_token="[MASK]"),
    ),
    (
        "remove the wrong one",
        {"files": {"vocab.txt": VOCAB + "x\n", "tokenizer.json": json.dumps(WHOLE)}},
        remove("vocab.txt"),
    ),
    (
        "without modules.json the transformer alone is loaded",
        {"files": {"modules.json": json.dumps(DENSE)}},
        remove("modules.json"),
    ),
    (
        "such as 'model-00001-of-00002.safetensors'",
        {"weights": None, "files": {INDEX: '{"weight_map": {"a": "../x"}}'}},
        lambda folder, message: _shard(folder, re.search("such as '(.*)'", message)[1]),
    ),
]


def _shard(folder, name):
    (folder / name).write_bytes(RAW)
    write_json(folder, INDEX, {"weight_map": dict.fromkeys(TENSORS, name)})


@pytest.mark.parametrize("advice, given, follow", FOLDERS)
def test_a_folder_loads_once_the_advice_is_followed(tmp_path, advice, given, follow):
    if os.path.exists(str(tmp_path).upper()):
        pytest.skip("names that differ in case are one here")
    message = refuse(make(tmp_path, **given), advice)
    follow(tmp_path, message)
    model, _ = accept(tmp_path)
    if "vocab.txt" in given.get("files", {}):
        assert model.tokenizer.tokens[: len(TOKENS)] == tuple(TOKENS)


def test_a_link_out_of_the_folder_is_replaced_by_the_file(tmp_path):
    (tmp_path / "outside").write_bytes(RAW)
    folder = make(tmp_path / "model", None)
    link(folder / WEIGHTS, tmp_path / "outside")
    message = refuse(folder, "is a link that leaves the folder; put the file there")
    (folder / named(message)).unlink()
    shutil.copy(tmp_path / "outside", folder / named(message))
    accept(folder, BASE)


def test_what_is_not_finite_is_loaded_where_it_is_allowed(tmp_path):
    message = refuse(make(tmp_path, with_nan()), "or pass allow_nonfinite=True")
    name, value = re.search(r"pass (\w+)=(\w+)", message).groups()
    params, _, _ = load_pretrained(tmp_path, **{name: value == "True"})
    assert np.isnan(params["embeddings"]["word"]).sum() == 1


@pytest.mark.parametrize("files", [["vocab.txt"], [INDEX, SETTINGS], ["1_Pooling"]])
def test_a_folder_is_saved_to_once_what_is_named_is_gone(tmp_path, files):
    params, config, _ = load_checkpoint(make(tmp_path / "a"))
    folder = tmp_path / "b"
    folder.mkdir()
    for name in files:
        (folder / name).mkdir() if "Pooling" in name else (folder / name).touch()
    if "1_Pooling" in files:
        write_json(folder / "1_Pooling", "config.json", {"pooling_mode": "cls"})
        modules = [{"type": "Transformer", "path": ""}]
        modules += [{"type": "Pooling", "path": "1_Pooling"}]
        write_json(folder, "modules.json", modules)
    for _ in files:
        message = message_of(save_pretrained, folder, params, config)
        names = re.search(r"remove (\S+) and (\S+)$", message)
        names = names.groups() if names else [message.split()[0]]
        assert names[0] != "it" and ("remove" in message)
        for name in names:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    save_pretrained(folder, params, config)
    accept(folder, BASE)


# ------------------------------------------------------ weights of other formats
STAND_IN = """
import shutil

class BertForPreTraining:
    def from_pretrained(name, from_tf=False, from_flax=False, config=None):
        print(name, from_tf, from_flax, config)
        return BertForPreTraining()

    def save_pretrained(self, folder):
        shutil.copy("saved", folder + "/model.safetensors")
"""
FORMATS = [
    ("tf_model.h5", "tensorflow, tf-keras", ". True False None"),
    ("flax_model.msgpack", "flax", ". False True None"),
    (
        "bert_model.ckpt.data-00000-of-00001",
        "tensorflow",
        "bert_model.ckpt.index True False config.json",
    ),
]


@pytest.mark.parametrize("name, packages, asked", FORMATS)
def test_weights_of_other_formats_are_given_to_an_old_transformers(
    tmp_path, name, packages, asked
):
    """A stand-in for transformers 4.49, in which the commands were tried."""
    (tmp_path / "transformers.py").write_text(STAND_IN)
    folder = make(tmp_path / "model", None, {name: b"\x89HDF", "saved": RAW})
    message = refuse(folder, f"transformers==4.49.0, torch, {packages} installed, run")
    code = message.split("run in its folder: ")[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"{asked}\n", "")
    accept(folder, BASE)


# ------------------------------------------------------- names, caches, the hub
@pytest.fixture
def home(tmp_path, monkeypatch):
    """The variables of an empty home, for this process and for others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path / "cache"))
    return {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_CACHE": str(tmp_path / "hf/hub")}


def test_the_name_that_is_suggested_loads(home, monkeypatch):
    def unknown(name):
        raise BertError(f"{name!r} is no model")

    monkeypatch.setattr(pretrained, "fetch_from_hub", unknown)
    message = message_of(load_pretrained, "Toy")
    assert load_pretrained(named(message)).tokenizer is not None


def test_the_command_fetches_with_a_network_and_the_model_loads_without(home):
    code = "import sys, bert_np; print(bert_np.load_pretrained(sys.argv[1]).config)"
    options = {"capture_output": True, "text": True, "timeout": 60}
    with serve({"owner/tiny": FILES}) as server:
        environment = os.environ | home | {"HF_ENDPOINT": server.url}
        offline = environment | {"HF_HUB_OFFLINE": "1"}
        call = [sys.executable, "-c", code, "owner/tiny"]
        first = subprocess.run(call, env=offline, **options)
        told = first.stderr.strip().splitlines()[-1]
        command = shlex.split(told.split("with a network, run: ")[1])
        assert os.path.isabs(command[0]) and first.returncode == 1
        done = subprocess.run(command, env=environment, **options)
        assert done.returncode == 0, done.stderr
    again = subprocess.run(call, env=offline, **options)
    assert again.stdout.startswith("BertConfig(vocab_size=11"), again.stderr


def test_a_model_of_another_format_is_brought_as_the_message_says(
    home, tmp_path, monkeypatch
):
    other = {name: data for name, data in FILES.items() if name != WEIGHTS}
    other["pytorch_model.bin"] = b"\x80weights"
    with serve({"owner/tiny": other}) as server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        for module in ("constants", "file_download"):
            place = f"huggingface_hub.{module}.HUGGINGFACE_CO_URL_TEMPLATE"
            monkeypatch.setattr(place, template, raising=False)
        message = message_of(fetch, "owner/tiny")
        call = re.search(r"huggingface_hub\.snapshot_download\(.*?\)", message)[0]
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", server.url)
        eval(call, {"huggingface_hub": huggingface_hub})
    told = message_of(load_pretrained, re.search(r"\('(FOLDER)'\)", message)[1])
    assert told.startswith("pytorch_model.bin cannot be read") and "run in its" in told
    (tmp_path / "FOLDER" / WEIGHTS).write_bytes(FILES[WEIGHTS])
    assert is_tiny(load_pretrained("FOLDER"))


def test_the_package_that_is_missing_is_installed_by_this_python(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "huggingface_hub", None)
        command = shlex.split(message_of(fetch, "owner/x").split("run: ")[1])
    done = subprocess.run([*command, "--no-index"], capture_output=True, text=True)
    assert command[0] == sys.executable and "already satisfied" in done.stdout


def test_terms_are_given_consent_to_after_a_login():
    name = re.search(r"huggingface_hub\.(\w+)\(\)", EXPLANATIONS["GatedRepoError"])[1]
    assert callable(getattr(huggingface_hub, name))


def test_a_cache_elsewhere_is_used(home, tmp_path, monkeypatch):
    (tmp_path / "cache").write_bytes(b"a file")
    monkeypatch.setattr(pretrained, "_fill", lambda model, workspace, files: None)
    monkeypatch.setattr(pretrained, "_check_bytes", lambda path, expected: None)
    message = message_of(fetch, "all-MiniLM-L6-v2")
    variable = re.search(r"set (\w+) to a folder with room", message)[1]
    monkeypatch.setenv(variable, str(tmp_path / "other"))
    assert fetch("all-MiniLM-L6-v2").parent == tmp_path / "other"
    assert attempt(make(tmp_path / "model"))[1] is None
