"""Make the corpora of notebooks/data from the files that were published.

    python tests/tools/make_data.py FOLDER

FOLDER holds en_pud-ud-test.conllu and the three *_labelled.txt, whose sources
are named in notebooks/data/README.md. Each is compared with its SHA-256 first.
Of the treebank the words, tags, heads and relations are kept. In the reviews
spaces at either end of a text are removed, and 8 control characters become the
punctuation marks that they are in the encoding Windows-1252.
"""

import sys
from hashlib import sha256
from pathlib import Path

from bert_np.analysis.corpora import SENT_ID, read_treebank

TARGET = Path(__file__).resolve().parents[2] / "notebooks" / "data"
TREEBANK = "en_pud-ud-test.conllu"
SHA256 = {
    TREEBANK: "c80584f2bc2b31d5bada78a1136f9feec7ac49e5e18898db02dea434b5b8f0aa",
    "amazon_cells_labelled.txt": (
        "47003fc0a0d4840b00e96e715b6189bad09e7443a3da41c4cbe12ffc79f86ae3"
    ),
    "imdb_labelled.txt": (
        "aef2e49e3da25714d61175e3a6e68eeef74a20a2f914318dc3be9947ea86512d"
    ),
    "yelp_labelled.txt": (
        "c76468b7b5c6e56a0804d728345c5f84aa2142ddb214420f61cc9cfd4c00d2ea"
    ),
}
MARKS = {mark: bytes([mark]).decode("cp1252") for mark in (0x85, 0x96, 0x97)}


def check_originals(folder):
    """Stop unless every original is the published file, byte by byte."""
    for name, expected in SHA256.items():
        if sha256((folder / name).read_bytes()).hexdigest() != expected:
            sys.exit(f"{folder / name} is not the file that was published")


def reduced_treebank(folder):
    """Return the treebank with four columns: word, tag, head, relation."""
    blocks = []
    for sentence in read_treebank(folder / TREEBANK):
        words, tags, heads, relations, source = sentence
        numbers = [str(head + 1) for head in heads]
        rows = map("\t".join, zip(words, tags, numbers, relations))
        blocks.append("\n".join([f"{SENT_ID}{source}", *rows]))
    return "\n\n".join(blocks) + "\n"


def joined_reviews(folder):
    """Return all reviews with three columns: source, label, text."""
    rows = []
    for name in sorted(SHA256.keys() - {TREEBANK}):
        text = (folder / name).read_bytes().decode("utf-8")
        for line in text.removesuffix("\n").split("\n"):
            review, label = line.translate(MARKS).rsplit("\t", 1)
            rows.append(f"{name.split('_')[0]}\t{label}\t{review.strip()}\n")
    return "".join(rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    originals = Path(sys.argv[1])
    check_originals(originals)
    made = {
        "treebank.tsv": reduced_treebank(originals),
        "reviews.tsv": joined_reviews(originals),
    }
    for name, text in made.items():
        (TARGET / name).write_text(text, "utf-8", newline="\n")
        print(f"{TARGET / name}: {len(text.encode()):,} bytes")
