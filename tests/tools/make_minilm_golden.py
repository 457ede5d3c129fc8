"""Store what HuggingFace's BERT computes with the weights of MiniLM.

    python tests/tools/make_minilm_golden.py [--folder FOLDER]

FOLDER holds sentence-transformers/all-MiniLM-L6-v2; without it the model
is fetched. Needs torch and transformers; the tests do not. The versions
used are written into the file.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from bert_np.files.pretrained import fetch

# The sentence of the course, a pair with a word in pieces, a shorter text. Much
# padding would not do: there float32 itself, HuggingFace's too, is 2e-5 off.
TEXTS = [
    "The cat sat because it was tired.",
    ["Unplayable?", "Yes."],
    "No, it did not.",
]
GOLDEN = Path(__file__).parents[1] / "golden" / "minilm.npz"


def compute(folder):
    """Ids, masks, segments and results as {name: array}."""
    import torch
    import transformers

    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager")
    batch = tokenizer(TEXTS, padding="longest", return_tensors="pt")
    with torch.no_grad():
        out = model.eval()(**batch, output_hidden_states=True, output_attentions=True)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, np)}
    arrays = {name: ids.numpy().astype(np.int32) for name, ids in batch.items()}
    arrays["hidden_states"] = torch.stack(out.hidden_states).numpy()
    arrays["attentions"] = torch.stack(out.attentions).numpy()
    arrays["pooled"] = out.pooler_output.numpy()
    return arrays | {"texts": json.dumps(TEXTS), "versions": json.dumps(versions)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="all-MiniLM-L6-v2")
    arrays = compute(fetch(parser.parse_args().folder))
    np.savez_compressed(GOLDEN, **arrays)
    print(f"{GOLDEN.name}: {GOLDEN.stat().st_size} bytes, {arrays['versions']}")


if __name__ == "__main__":
    main()
