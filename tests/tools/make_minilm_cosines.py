"""Store the sentence similarities that sentence-transformers computes.

    python tests/tools/make_minilm_cosines.py FOLDER

FOLDER holds sentence-transformers/all-MiniLM-L6-v2 with its modules.json.
Needs sentence-transformers; the tests do not.
"""

import json
import sys
from pathlib import Path

SENTENCES = [
    "The cat sat because it was tired.",
    "A sleepy cat was sitting down.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped at the start of the week.",
    "He sat on the river bank and counted fish.",
    "He went to the bank and counted his money.",
    "word",
    "Ein Satz auf Deutsch, mit Umlauten: schön!",
    "long text " * 200,
]
MAX_LENGTH = 256  # where sentence-transformers cuts this model's texts
GOLDEN = Path(__file__).parents[1] / "golden" / "minilm_cosines.json"


def main(folder):
    import sentence_transformers
    import torch
    import transformers

    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    vectors = model.encode(SENTENCES, normalize_embeddings=True).astype("float64")
    versions = {
        module.__name__: module.__version__
        for module in (sentence_transformers, torch, transformers)
    }
    cosines = [[round(float(c), 7) for c in row] for row in vectors @ vectors.T]
    GOLDEN.write_text(json.dumps({"versions": versions, "cosines": cosines}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
