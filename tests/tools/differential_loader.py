"""Load the altered checkpoints with transformers too, and count differences.

    python tests/differential_loader.py

Needs torch and transformers. Writes tests/robustness/loader.json.
"""

import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from hostile import checkpoints
from hostile.base import expected_array
from hostile.outcomes import attempt
from make_robustness import write_figures

from bert_np.files.checkpoint import load_checkpoint
from bert_np.tree import leaves

# transformers would ask for the memory first.
NOT_TRIED = {
    "config: num_hidden_layers = 1000000000000",
    "config: vocab_size = 1000000000000000",
}
SAME, BOTH_REFUSE = "both load the same numbers", "both refuse"
RANDOM = "ours refuses, transformers loads with random numbers in it"
LEFT_OUT = "ours refuses, transformers leaves tensors out"
STRICTER = "ours refuses, transformers loads the file's numbers"
FEWER = "both load, transformers adds random numbers"
DIFFER = "both load, the numbers differ"
OURS_ALONE = "ours loads, transformers refuses"
WHY = {
    RANDOM: "numbers come out that stand in no file; the log says so, no error does",
    LEFT_OUT: "the file computes what BertModel does not; the log says so, no error does",
    FEWER: "the file has no pooler: transformers makes one up, ours gives None",
}
# For what transformers loads with the file's own numbers, by the case's name.
WHY_STRICTER = {
    "gamma in": "two tools have written this file, or half of it is another model's",
    "both spellings|with and without prefix": "the file says two things, and which of them counts is not known",
    "prefix|one tensor without the prefix": "transformers takes the prefix off tensor by tensor; here a file has one way",
    "cls\\.": "BertModel does not read the heads, ours does",
    "position ids": "transformers drops position ids unread; others than 0, 1, 2, ... "
    "mean another model",
    "decoder": "transformers ties the decoder all the same; the file's own is lost",
    "shard|index": "index and shards contradict each other",
    "is a folder": "BertModel does not read the tokenizer, ours does",
    "Model$": "the model computes something else from tensors that fit",
}
COLUMNS = [SAME, BOTH_REFUSE, RANDOM, LEFT_OUT, STRICTER, FEWER, OURS_ALONE, DIFFER]


def load_theirs(folder):
    """(state dict, names made up, names left out), or None where it refuses."""
    from transformers import BertModel

    try:
        model, info = BertModel.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except Exception:  # whatever it raises is a refusal
        return None
    made_up = {*info["missing_keys"], *(k[0] for k in info["mismatched_keys"])}
    left_out = [
        n
        for n in info["unexpected_keys"]
        if not n.startswith(("cls.", "classifier.", "qa_outputs."))
    ]
    return model.state_dict(), made_up, left_out


def agree(params, state):
    """Whether all that both have is equal, element by element."""
    for path, array in leaves(params):
        if path.startswith(("mlm", "nsp")):
            continue
        theirs = expected_array(path, lambda n: state[n.removeprefix("bert.")].numpy())
        if array.shape != theirs.shape or not np.array_equal(array, theirs):
            return False
    return True


def judge(folder):
    """In which of the columns a folder falls."""
    ours, _ = attempt(lambda: load_checkpoint(folder))
    theirs = load_theirs(folder)
    if theirs is None:
        return BOTH_REFUSE if ours is None else OURS_ALONE
    state, made_up, left_out = theirs
    if ours is None:
        return RANDOM if made_up else LEFT_OUT if left_out else STRICTER
    if not agree(ours[0], state):
        return DIFFER
    return FEWER if made_up else SAME


def reason(column, name):
    """Why ours is right, where the two differ."""
    if column != STRICTER:
        return WHY.get(column, "")
    return next(why for part, why in WHY_STRICTER.items() if re.search(part, name))


def compare_all():
    """({kind: Counter of columns}, {column: Counter of reasons}, names)."""
    found, reasons, differing = {}, {column: Counter() for column in COLUMNS}, []
    for kind, cases in checkpoints.KINDS.items():
        found[kind] = Counter()
        for case in cases:
            if case.name in NOT_TRIED:
                continue
            with tempfile.TemporaryDirectory() as folder:
                case.given(Path(folder))
                column = judge(Path(folder))
            found[kind][column] += 1
            reasons[column][reason(column, case.name)] += 1
            differing += [case.name] if column in (DIFFER, OURS_ALONE) else []
            print(f"{column}: {case.name}", flush=True)
    return found, reasons, differing


def main():
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    found, reasons, differing = compare_all()
    totals = sum(found.values(), Counter())
    used = [column for column in COLUMNS if totals[column]]
    rows = [[kind, sum(n.values()), *(n[c] for c in used)] for kind, n in found.items()]
    rows.append(["together", sum(totals.values()), *(totals[c] for c in used)])
    why = [
        [column, reason, n]
        for column in used
        if column not in (SAME, BOTH_REFUSE)
        for reason, n in reasons[column].most_common()
    ]
    write_figures(
        "loader.json",
        {
            "order": 20,
            "section": "Altered checkpoints: this loader beside transformers",
            "command": "python tests/differential_loader.py",
            "versions": {
                "transformers": transformers.__version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": sys.version.split()[0],
            },
            "text": [
                "Each altered checkpoint was loaded with `BertModel.from_pretrained` "
                "too, and every number of the body compared. Not tried: a config of "
                "10^12 layers and one of 10^15 words, whose memory transformers asks "
                "for first.",
                "Both load, but not the same: "
                + (", ".join(differing) if differing else "none")
                + ".",
            ],
            "tables": [
                {"columns": ["kind", "cases", *used], "rows": rows},
                {"columns": ["outcome", "why ours is right", "cases"], "rows": why},
            ],
        },
    )


if __name__ == "__main__":
    main()
