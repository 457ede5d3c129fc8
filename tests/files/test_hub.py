"""The HuggingFace hub: what it sends is verified, what is cached is used."""

import contextlib
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from functools import partial

import huggingface_hub
import pytest
from files.pinned import FILES, SHARDS, TWO, digest, is_tiny, message_of
from hub_server import FAULTS, serve

from bert_np import BertError
from bert_np.files import hub as hub_module
from bert_np.files.hub import TEXT_FILES
from bert_np.files.pretrained import fetch, load_pretrained
from bert_np.files.weights import INDEX, WEIGHTS

HUB = "huggingface_hub.constants"


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty cache, and no pauses between huggingface_hub's attempts."""
    monkeypatch.setattr(f"{HUB}.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(f"{HUB}.HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return tmp_path / "hub"


@pytest.fixture
def hub(hub_cache, monkeypatch):
    """A hub of its own for each test; the model is called owner/tiny."""
    with serve({"owner/tiny": FILES}) as server:
        point_to(server.url, monkeypatch)
        yield server


def point_to(url, monkeypatch):
    monkeypatch.setattr(f"{HUB}.ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    for module in (HUB, "huggingface_hub.file_download"):  # the latter before 0.31
        place = f"{module}.HUGGINGFACE_CO_URL_TEMPLATE"
        monkeypatch.setattr(place, template, raising=False)


def be_impatient(monkeypatch):
    """Let huggingface_hub wait a tenth of a second for an answer, not 10."""
    ask = partial(huggingface_hub.get_hf_file_metadata, timeout=0.1)
    retry = "huggingface_hub.file_download._ETAG_RETRY_TIMEOUT"
    monkeypatch.setattr(f"{HUB}.HF_HUB_ETAG_TIMEOUT", 0.1)
    monkeypatch.setattr(f"{HUB}.HF_HUB_DOWNLOAD_TIMEOUT", 0.1)
    monkeypatch.setattr(retry, 0.1, raising=False)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", ask)


def as_transformers_does(repo, names):
    """Fill the cache as transformers' from_pretrained does."""
    for name in names:
        huggingface_hub.hf_hub_download(repo, name)


# -------------------------------------------------------------- the cache
@pytest.mark.parametrize("files", [FILES, SHARDS], ids=["one file", "shards"])
def test_fetched_once_it_loads_without_the_hub(hub, hub_cache, files):
    hub.repos["owner/tiny"] = files | {"pytorch_model.bin": b"\x80", "tf_model.h5": b""}
    assert is_tiny(load_pretrained("owner/tiny"))
    assert not [path for _, path in hub.requests if path.endswith((".bin", ".h5"))]
    hub.requests.clear()
    assert is_tiny(load_pretrained("owner/tiny"))
    assert fetch("owner/tiny").is_relative_to(hub_cache)
    assert hub.requests == []


def test_an_index_cannot_lead_out_of_the_model(hub):
    names = ["../config.json", "/etc/passwd", "a\\b.safetensors", 7, "x.bin"]
    index = json.dumps({"weight_map": dict(zip("abcde", names))})
    hub.repos["owner/tiny"] = SHARDS | {INDEX: index.encode()}
    assert INDEX in message_of(load_pretrained, "owner/tiny")
    asked = {path.split("/")[-1] for _, path in hub.requests}
    assert asked <= {*FILES, INDEX} | {os.path.basename(name) for name in TEXT_FILES}


@pytest.mark.parametrize("text", [b"[]", b'{"weight_map": []}', b"{"])
def test_an_index_without_a_map_is_refused(hub, text):
    hub.repos["owner/tiny"] = SHARDS | {INDEX: text}
    assert INDEX in message_of(load_pretrained, "owner/tiny")


@pytest.mark.parametrize("cached", ["bert-tiny", "google-bert/bert-tiny"])
@pytest.mark.parametrize("asked", ["bert-tiny", "google-bert/bert-tiny"])
def test_the_cache_of_transformers_is_used_at_once(hub, cached, asked):
    hub.repos |= {"google-bert/bert-tiny": FILES, "bert-tiny": "google-bert/bert-tiny"}
    as_transformers_does(cached, FILES)
    hub.requests.clear()
    assert is_tiny(load_pretrained(asked))
    assert hub.requests == []


def test_a_model_that_was_renamed_is_followed(hub):
    hub.repos |= {"bert-tiny": "google-bert/bert-tiny", "google-bert/bert-tiny": FILES}
    assert is_tiny(load_pretrained("bert-tiny"))


def test_a_blob_shared_between_models_loads(hub, hub_cache):
    folder = fetch("owner/tiny")
    blob = hub_cache / "models--owner--tiny" / "blobs" / digest(FILES[WEIGHTS])
    shared = hub_cache / "blobs" / "ab" / "ab12"
    shared.parent.mkdir(parents=True)
    blob.rename(shared)
    blob.symlink_to(os.path.relpath(shared, blob.parent))
    assert is_tiny(load_pretrained("owner/tiny"))
    assert (folder / WEIGHTS).resolve() == shared


@pytest.mark.parametrize(
    "missing",
    ["config.json", "tokenizer_config.json", "vocab.txt", WEIGHTS, INDEX, TWO[1]],
)
def test_what_a_cache_holds_in_part_is_completed_or_refused(hub, missing, monkeypatch):
    hub.repos["owner/tiny"] = FILES if missing == WEIGHTS else SHARDS
    present = [name for name in hub.repos["owner/tiny"] if name != missing]
    as_transformers_does("owner/tiny", present)
    with monkeypatch.context() as patch:
        point_to("http://127.0.0.1:9", patch)  # nobody listens there
        patch.setattr(time, "sleep", None)  # said at once, without a pause
        message = message_of(fetch, "owner/tiny")
    assert f"{sys.executable} -m bert_np.files.pretrained owner/tiny" in message
    assert "TypeError" not in message
    assert is_tiny(load_pretrained("owner/tiny"))


def test_a_vocabulary_of_either_kind_is_enough_offline(hub):
    hub.repos["owner/tiny"] = FILES | {"tokenizer.json": b"{}"}
    as_transformers_does("owner/tiny", FILES)
    hub.requests.clear()
    assert is_tiny(load_pretrained("owner/tiny"))
    assert hub.requests == []


# --------------------------------------------------------- faulty answers
# What is told of each fault; releases of huggingface_hub notice some of
# them at different points.
DAMAGED, FAILED = "is not what the hub announced", "connection to the hub failed"
LOGIN, UNFETCHED = "login page", "was not fetched"
CAUSES = {
    "truncated": [FAILED, UNFETCHED],
    "short": [DAMAGED],
    "long": [DAMAGED, UNFETCHED],
    "cut": [DAMAGED, UNFETCHED],
    "flipped": [DAMAGED],
    "html": [DAMAGED, UNFETCHED],
    "login": [LOGIN],
    "stalled": [FAILED, UNFETCHED],
    "silent": [FAILED, UNFETCHED],
    "endless": [FAILED, LOGIN],
    "elsewhere": [DAMAGED, LOGIN],
    "gated": ["asks for consent"],
    "broken": ["500"],
}
SMALL_FILES = [
    ("silent", "config.json"),
    ("login", "config.json"),
    ("cut", "vocab.txt"),
]


@pytest.mark.parametrize("fault, file", [*((f, WEIGHTS) for f in FAULTS), *SMALL_FILES])
def test_a_faulty_answer_is_one_error_and_leaves_nothing(
    hub, hub_cache, file, fault, monkeypatch
):
    hub.faults[file] = fault
    with monkeypatch.context() as patch:
        if fault in ("silent", "stalled"):
            be_impatient(patch)
        message = message_of(load_pretrained, "owner/tiny")
    assert message.startswith(("'owner/tiny' ", f"{file} of 'owner/tiny'"))
    assert any(cause in message for cause in CAUSES[fault]), message
    assert not list(hub_cache.glob(f"**/snapshots/*/{file}"))
    hub.faults.clear()
    with contextlib.suppress(BertError):  # older releases first complete what came
        fetch("owner/tiny")
    assert is_tiny(load_pretrained("owner/tiny"))


def test_what_an_earlier_try_left_wrong_is_fetched_from_nothing(hub, monkeypatch):
    download, forced = huggingface_hub.hf_hub_download, []

    def as_older_releases_do(*args, force_download=False, **more):
        forced.append(force_download)
        if not force_download:
            raise OSError("Consistency check failed: file should be of size 2")
        return download(*args, force_download=True, **more)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", as_older_releases_do)
    assert is_tiny(load_pretrained("owner/tiny"))
    assert forced == [False, True] * (len(forced) // 2) and len(forced) >= 4


@pytest.mark.parametrize("file", ["config.json", WEIGHTS])
@pytest.mark.parametrize("header", ["ETag", "X-Repo-Commit"])
@pytest.mark.parametrize("value", ["{}/planted", "../planted", "a\\b", "..", ""])
def test_a_hub_cannot_choose_where_to_write(hub, tmp_path, file, header, value):
    hub.headers[file] = {header: value.format(tmp_path)}
    message = message_of(fetch, "owner/tiny")
    not_the_hub = "'owner/tiny' cannot be fetched: what answers is not the hub"
    assert message.startswith((f"{file} of 'owner/tiny' was not fetched", not_the_hub))
    assert not [path for how, path in hub.requests if how == "GET" and file in path]
    assert not list(tmp_path.rglob("*planted*"))


@pytest.mark.parametrize(
    "etag, accepted",
    [
        (digest(b"abc"), True),
        (digest(b""), False),
        ("f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f", True),  # git hash-object
        (hashlib.sha1(b"abc").hexdigest(), True),
        ("0" * 40, False),
        ("12-a", True),
    ],
)
def test_hashes_that_a_hub_may_give(etag, accepted, tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert hub_module._matches(tmp_path / "file", etag) is accepted


@pytest.mark.parametrize(
    "name, removed, told",
    [
        ("owner/tiny", "config.json", "has no config.json on the hub"),
        ("owner/tiny", WEIGHTS, "has no model.safetensors on the hub"),
        ("owner/tyni", None, "is neither a folder here nor a public model"),
    ],
)
def test_a_model_without_a_file_that_it_needs(hub, name, removed, told):
    hub.repos["owner/tiny"] = {n: b for n, b in FILES.items() if n != removed}
    assert message_of(fetch, name).startswith(f"{name!r} {told}")


def test_a_hub_that_goes_away_midway(hub, monkeypatch):
    LocalEntryNotFoundError = huggingface_hub.utils.LocalEntryNotFoundError

    def gone(*arguments, **options):
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", gone)
    assert "no answer" in message_of(fetch, "owner/tiny")
    with pytest.raises(LocalEntryNotFoundError):  # not taken for "no such file"
        hub_module._download_if_there("owner/tiny", "vocab.txt", "main")


def test_a_cache_that_cannot_be_written(hub, hub_cache):
    hub_cache.write_bytes(b"a file where the folder should be")
    assert message_of(fetch, "owner/tiny").startswith("'owner/tiny' was not fetched")


def test_without_huggingface_hub_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install huggingface-hub" in message_of(fetch, "owner/tiny")


def test_command_line_with_the_variables_of_the_hub(tmp_path):
    """In processes of their own, since huggingface_hub reads these at import."""
    with serve({"owner/tiny": FILES}) as server:
        home = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": server.url}
        home["HF_HUB_CACHE"] = str(tmp_path / "home" / "hub")
        done = run("owner/tiny", "--to", str(tmp_path / "copy"), **home)
    assert done.returncode == 0
    assert done.stdout.startswith(f"owner/tiny: loads from {tmp_path / 'copy'}\n")
    assert "Traceback" not in done.stderr and "RuntimeWarning" not in done.stderr
    assert is_tiny(load_pretrained(tmp_path / "copy"))
    offline = run("owner/other", HF_HUB_OFFLINE="1", **home)
    assert (offline.returncode, offline.stdout) == (1, "")
    told = "error: 'owner/other' is not cached, and HF_HUB_OFFLINE is set"
    assert offline.stderr.startswith(told)


@pytest.mark.parametrize("python", ["/usr/bin/python", "/my home/bin/python", ""])
def test_the_command_in_messages_names_the_python_that_runs(python, monkeypatch):
    monkeypatch.setattr(sys, "executable", python)
    words = shlex.split(hub_module.fetch_command("toy"))
    assert words == [python or "python", "-m", "bert_np.files.pretrained", "toy"]


def run(*arguments, **environment):
    command = [sys.executable, "-m", "bert_np.files.pretrained", *arguments]
    options = {"capture_output": True, "text": True, "timeout": 60}
    return subprocess.run(command, env=os.environ | environment, **options)


def test_added_tokens_and_the_pooling_come_along_from_the_hub_and_in_a_copy(
    hub, tmp_path
):
    pooling = json.dumps({"pooling_mode_cls_token": True}).encode()
    hub.repos["owner/tiny"] = FILES | {
        "added_tokens.json": b"{}",
        "1_Pooling/config.json": pooling,
    }
    assert load_pretrained("owner/tiny").config.pooling == "cls"
    copy = fetch("owner/tiny", tmp_path / "copy")
    assert (copy / "1_Pooling" / "config.json").read_bytes() == pooling
    assert (copy / "added_tokens.json").read_bytes() == b"{}"
    assert load_pretrained(copy).config.pooling == "cls"
