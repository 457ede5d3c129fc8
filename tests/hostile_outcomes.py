"""Run the whole corpus of hostile inputs and count the outcomes.

    python tests/hostile_outcomes.py

Writes tests/robustness/outcomes.json; stops at the first wrong outcome.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors
from hostile.outcomes import KINDS, assert_outcome
from make_robustness import FIGURES, write_figures

TEXT = [
    "Files and calls are made by code in `tests/hostile/`, each with its expected "
    "outcome. Refused: `BertError` of at most 300 characters that holds the culprit, "
    "by name, and what was found. Accepted: every array, token or setting equals what "
    "it must be. `tests/test_hostile.py` runs each case as a test of its own.",
    "Over the weight files, checkpoints and config files, no refusal held more memory "
    "than eight times its files and a megabyte. Over the files, an audit hook saw no "
    "socket, process, import or pickle, and no file opened outside the folder.",
    "Three things cannot be seen in a file, so they are accepted: a square matrix "
    "stored transposed, another number of heads that divides, and another model's "
    "tensors that have BERT's names and shapes beside a config.json that says BERT.",
]
MENDED = [
    "An int of more than 4,300 digits in an argument (Python prints none) raised a "
    "plain ValueError while the message was written: such values now go through "
    "`errors.short`.",
    "`init_params`, `parameter_shapes` and `parameter_ledger` of a config with 10^12 "
    "layers filled the memory; sizes that no memory holds raised NumPy's errors: one "
    "BertError, before anything is allocated.",
    "`parameter_ledger` counted in 64 bits and gave wrong totals beyond: exact ints.",
    "`masked_lm_logits` and `next_sentence_logits` took vectors of any type, and int "
    "vectors in silence: arrays of floats with H columns.",
    "A NumPy masked array as ids or mask was read below its mask: refused.",
    "An object in a list of ids that fails in its own way raised what it liked.",
    "`BertConfig.from_json(None)` and `count_params(None)` raised TypeError and "
    "AttributeError.",
    '`bert(return_attention="no")` counted as True: only True and False.',
    "`init_params(dtype=array)` raised a NumPy error.",
    "A hub whose header announced fewer bytes than it sent broke the connection "
    "between the download and the check of the hash, and a file cut in half stayed in "
    "the cache: the hash is asked for before the download.",
    "`next_sentence` with an empty second text, or None, scored a single text in "
    "silence; a tokenizer of another type raised AttributeError.",
    "`top_words` named words for logits of fewer columns than the vocabulary; "
    "`without_head`, `without_layer` and `weighted_norms` raised TypeError for params "
    "that are no tree.",
    "`compare` took a tolerance of NaN, or below 0, in silence; `train`, `mask_tokens` "
    "and the losses raised AttributeError or NumPy's errors for arguments of another "
    "type.",
]


def count(group, kind, folder):
    """How many cases are refused, and how many accepted."""
    found = {"refused": 0, "accepted": 0}
    for number, case in enumerate(group):
        place = folder / str(number)
        place.mkdir()
        found[assert_outcome(kind, case, place)] += 1
    return found


def run_all():
    """The rows of the table, by kind and group."""
    rows, home = [], os.getcwd()
    for kind, groups in KINDS.items():
        for name, group in groups.items():
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    found = count(group, kind, Path(folder))
                finally:
                    os.chdir(home)
            rows.append([kind, name, len(group), *found.values()])
    return rows


def summed(rows, kind):
    part = [row[2:] for row in rows if kind in (row[0], "together")]
    return [kind, *map(sum, zip(*part))]


def figures(rows):
    """What tests/robustness/outcomes.json holds."""
    columns = ["cases", "refused", "accepted, values right"]
    totals = [summed(rows, kind) for kind in [*KINDS, "together"]]
    tables = [["kind", *columns]], [["kind", "group", *columns]]
    return {
        "order": 10,
        "section": "Hostile files and arguments",
        "command": "python tests/hostile_outcomes.py",
        "versions": {
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "safetensors": safetensors.__version__,
        },
        "text": TEXT,
        "tables": [
            {"columns": head[0], "rows": body}
            for head, body in zip(tables, (totals, rows))
        ],
        "mended": MENDED,
    }


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    write_figures("outcomes.json", figures(run_all()))
    print(f"written: {FIGURES / 'outcomes.json'}")
