"""Train the toy model with a GELU that is off by 1e-6, everywhere.

    python tests/tools/nudged_toy.py FOLDER

FOLDER holds what `python -m bert_np.training.toy_model FOLDER --seeds` has
made. Trains FOLDER/nudged from seed 0 and adds a line to FOLDER/seeds.json. A
recipe that can be trusted reaches the same skills; one that works by luck need
not, for after some hundred steps the two runs part.
"""

import json
import sys
from pathlib import Path

from bert_np import functional
from bert_np.training import functional_backward, toy_model

ERROR = 1e-6


def nudged_gelu(x):
    return functional.gelu(x) + x.dtype.type(ERROR)


if __name__ == "__main__":
    functional.ACTIVATIONS["gelu"] = nudged_gelu
    backwards = functional_backward.ACTIVATION_BACKWARDS
    backwards[nudged_gelu] = backwards[functional.gelu]  # a constant has no slope
    folder = Path(sys.argv[1])
    facts = toy_model.train_toy(folder / "nudged", toy_model.toy_phases(), seed=0)
    results = json.loads((folder / "seeds.json").read_text("utf-8"))
    results.append(toy_model.in_short(facts) | {"gelu_error": ERROR})
    toy_model.write_json(folder / "seeds.json", results)
