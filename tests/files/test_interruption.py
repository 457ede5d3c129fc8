"""Whatever writes files survives being killed, and a full disk."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import bert_np

PATHS = [str(Path(bert_np.__file__).parents[1]), str(Path(__file__).parents[1])]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def kill_everywhere(action, folder):
    """What killing.py prints, in the order of the kinds of kill."""
    command = [sys.executable, Path(__file__).with_name("killing.py"), action, folder]
    more = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(PATHS)}
    options = {"capture_output": True, "text": True, "timeout": 300}
    run = subprocess.run(command, env=os.environ | more, **options)
    assert run.returncode == 0, run.stderr
    results = defaultdict(list)
    for line in run.stdout.splitlines():
        result = json.loads(line)
        results[result["kind"]].append(result)
    return results["call"], results["bytes"], results["full disk"]


SLOW = ["save_weights", "save_training_run", "save_page", "fill_cache", "copy_model"]


@pytest.mark.parametrize(
    "action", ["save_model", *(pytest.param(a, marks=pytest.mark.slow) for a in SLOW)]
)
def test_a_kill_leaves_the_old_or_the_new(action, tmp_path):
    calls, in_writes, full = kill_everywhere(action, tmp_path)
    for result in calls + in_writes + full:  # the next run succeeds and cleans up
        assert result["again"][:2] == ["done", "new"], result
        assert result["later"] == ["done", "new", []], result
    assert len(calls) >= 3 and calls[-1]["end"] == "done"
    # A model of several files is refused between two of its renames.
    between = {"refused"} if action == "save_model" else set()
    assert {result["state"][0] for result in calls} == {"old", "new"} | between
    for result in calls:
        if result["state"][0] == "refused":  # nothing is lost: all files lie aside
            assert len(result["state"][1]) >= 3, result
    assert {result["end"] for result in in_writes} == {"killed"}
    for result in in_writes + full:
        assert result["state"][0] == "old", result
    for result in full:
        assert result["end"].startswith("BertError: ") and len(result["end"]) <= 311
        assert result["state"][1] in ([], ["cache"]), "left over"


def test_a_file_written_in_its_place_is_found_out(tmp_path):
    calls, in_writes, full = kill_everywhere("write_in_place", tmp_path)
    assert "mixed" in {result["state"][0] for result in in_writes}
    assert {result["end"] for result in full} == {"another exception"}
