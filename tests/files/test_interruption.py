"""Whatever writes files survives being killed, and a full disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bert_np.files.checkpoint import ONE_DAY, remove_leftovers

TESTS = Path(__file__).parent
WHOLE = (
    "save_weights",
    "save_training_run",
    "save_viewer",
    "write_notebook",
    "fill_cache",
    "copy_model",
)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def kill_everywhere(action, folder):
    """What tests/killing.py prints, kind of kill by kind."""
    if action == "write_notebook":
        pytest.importorskip("nbclient")
    run = subprocess.run(
        [sys.executable, str(TESTS / "killing.py"), action, str(folder)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    results = [json.loads(line) for line in run.stdout.splitlines()]
    return [
        [r for r in results if r["kind"] == kind]
        for kind in ("call", "bytes", "full disk")
    ]


def assert_recovers(result):
    """The next run succeeds, and what was left over goes after a day."""
    end, state, left = result["again"]
    assert (end, state) == ("done", "new"), result
    assert not left or result["later"] == ["done", "new", []], result


@needs_fork
@pytest.mark.parametrize("action", WHOLE)
def test_a_kill_leaves_the_old_or_the_new(action, tmp_path):
    calls, in_writes, full = kill_everywhere(action, tmp_path)
    assert len(calls) >= 3 and calls[-1]["at"] == "done"
    for result in calls + in_writes + full:
        assert_recovers(result)
    assert {r["state"][0] for r in calls} == {"old", "new"}
    for result in in_writes + full:
        assert result["state"][0] == "old", result
    assert {r["how"] for r in in_writes} == {"killed"}
    for result in full:
        told = "another exception" if action == "write_notebook" else "BertError: "
        assert result["at"].startswith(told) and len(result["at"]) <= 311
        assert result["state"][1] in ([], ["cache"]), "left over"


@needs_fork
@pytest.mark.parametrize("action", ["save_model", "save_vocabulary"])
def test_a_killed_save_never_leaves_new_weights_with_an_old_vocabulary(
    action, tmp_path
):
    calls, in_writes, full = kill_everywhere(action, tmp_path)
    for result in calls + in_writes + full:
        assert_recovers(result)
    assert {r["state"][0] for r in calls} == {"old", "refused", "new"}
    for result in calls:
        if result["state"][0] == "refused":  # nothing is lost: all files lie aside
            assert len(result["state"][1]) >= 3, result
    assert {r["state"][0] for r in in_writes + full} == {"old"}


@needs_fork
def test_a_file_written_in_its_place_is_found_out(tmp_path):
    calls, in_writes, full = kill_everywhere("write_in_place", tmp_path)
    assert "mixed" in {r["state"][0] for r in in_writes}
    assert {r["at"] for r in full} == {"another exception"}


def test_only_what_is_old_and_named_so_is_removed(tmp_path):
    for name in ("a.partial", "b.partial", "old.txt"):
        (tmp_path / name).touch()
    (tmp_path / "c.partial").mkdir()
    (tmp_path / "c.partial" / "file").touch()
    for name in ("b.partial", "old.txt", "c.partial"):
        os.utime(tmp_path / name, (ONE_DAY, ONE_DAY))
    remove_leftovers(tmp_path, "*.partial")
    assert sorted(os.listdir(tmp_path)) == ["a.partial", "old.txt"]
