"""The corpus of hostile and odd inputs: each case gets its outcome."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hostile.outcomes import KINDS, assert_outcome, attempt, call_of, cases, lay_out

ROOT = Path(__file__).parents[1]


def params(kind):
    return [pytest.param(case, id=case.name[:70]) for case in cases(kind)]


@pytest.mark.parametrize("case", params("weight files"))
def test_weight_file(case, tmp_path):
    assert_outcome("weight files", case, tmp_path)


@pytest.mark.parametrize("case", params("checkpoints"))
def test_checkpoint(case, tmp_path):
    assert_outcome("checkpoints", case, tmp_path)


@pytest.mark.parametrize("case", params("vocabularies"))
def test_vocabulary(case, tmp_path):
    assert_outcome("vocabularies", case, tmp_path)


@pytest.mark.parametrize("case", params("config files"))
def test_config_file(case, tmp_path):
    assert_outcome("config files", case, tmp_path)


@pytest.mark.parametrize("case", params("arguments"))
def test_arguments(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_outcome("arguments", case, tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing is left half-written


@pytest.mark.parametrize(
    "kind, least",
    [
        ("weight files", 120),
        ("checkpoints", 60),
        ("vocabularies", 25),
        ("config files", 40),
        ("arguments", 90),
    ],
)
def test_the_corpus_is_as_large_as_promised(kind, least):
    names = [case.name for case in cases(kind)]
    assert len(names) >= least
    assert len(names) == len(set(names))
    assert any(case.words for case in cases(kind))
    assert any(not case.words for case in cases(kind))


def test_twenty_other_architectures_are_among_the_checkpoints():
    assert len(KINDS["checkpoints"]["other architectures"]) >= 20


# ------------------------------------------------------------ resources
def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak(call):
    """The most memory that Python and NumPy held during a call, in bytes."""
    tracemalloc.start()
    try:
        attempt(call)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ROOM = 1_000_000  # bytes for what any load needs


@pytest.mark.parametrize("kind", ["weight files", "checkpoints", "config files"])
def test_no_refusal_allocates_more_than_its_files_hold(kind, tmp_path):
    attempt(lambda: call_of(kind, cases(kind)[0], tmp_path)())  # imports are done
    greedy = []
    for number, case in enumerate(cases(kind)):
        folder = tmp_path / str(number)
        folder.mkdir()
        used = peak(call_of(kind, case, folder)) if case.words else 0
        if used > ROOM + 8 * size_of(folder):
            greedy.append((case.name, used))
    assert greedy == []


@pytest.mark.parametrize(
    "name",
    [
        "init_params: 10^12 layers",
        "init_params: a vocabulary of 10^15",
        "init_params: sizes of 10^30",
        "parameter_ledger: 10^12 layers",
        "bert: config with 10^12 layers",
        "bert: T = 10^6",
        "encode_batch: pad_to 10^12",
    ],
)
def test_no_size_is_allocated_before_it_is_checked(name, tmp_path):
    (case,) = [case for case in cases("arguments") if case.name == name]
    assert peak(call_of("arguments", case, tmp_path)) < 4 * ROOM + 10**7


# ------------------------------------------------------------ isolation
WATCH = """
import json, os, sys
import numpy, safetensors, safetensors.numpy
from bert_np import BertError
from bert_np.files import checkpoint
root = os.path.realpath(sys.argv[1])
folders = [os.path.join(root, name) for name in sorted(os.listdir(root), key=int)]
def load(folder):
    try:
        return checkpoint.load_checkpoint(folder)
    except BertError:
        return None
for folder in folders:  # so that Python's own imports are done
    load(folder)
seen = []
sys.addaudithook(lambda event, args: seen.append((event, args)))
SAFE = {"open", "os.listdir", "os.scandir", "object.__getattr__", "object.__setattr__",
        "compile"}
bad, loaded = [], 0
for folder in folders:
    del seen[:]
    loaded += load(folder) is not None
    for event, args in list(seen):
        home = folder + os.sep
        inside = event != "open" or os.path.realpath(args[0]).startswith(home)
        reading = event != "open" or args[1] in ("r", "rb", None)
        if event not in SAFE or not inside or not reading:
            bad.append([folder, event, str(args)[:80]])
print(json.dumps({"bad": bad, "loaded": loaded}))
"""


def test_loading_reads_files_of_its_folder_and_does_nothing_else(tmp_path):
    """No socket, process, import, pickle; no other file; over the corpus."""
    given = [
        (kind, case)
        for kind in ("weight files", "checkpoints", "vocabularies")
        for case in cases(kind)
    ]
    for number, (kind, case) in enumerate(given):
        (tmp_path / str(number)).mkdir()
        lay_out(kind, case, tmp_path / str(number))
    command = [sys.executable, "-c", WATCH, str(tmp_path)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    found = json.loads(done.stdout)
    assert found["bad"] == []
    assert found["loaded"] == sum(not case.words for _, case in given)
