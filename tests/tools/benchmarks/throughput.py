"""Sentences a second: vectors of MiniLM here, and by what one would otherwise install.

    python tests/tools/benchmarks/throughput.py [--rounds 5]

Needs torch, sentence-transformers, onnx and onnxruntime. Every side turns the same
texts into vectors of length 1, from the text on, in batches of its own choice; for
ONNX Runtime they are sorted by length, in batches of 32. Each side is a process of
its own, they take turns, and their vectors are compared first. The table of medians
goes to README.md in this folder.
"""

import argparse
import statistics
import tempfile

import numpy as np
from sides import onnx_runtime
from speed import write_table
from turns import rounds_of, start, stop, take_turns

from bert_np import embed_sentences, load_pretrained, save_pretrained
from bert_np.analysis import read_reviews, read_treebank

PEER = "sentence-transformers"
TEXTS = {
    "3,000 sentences of reviews": lambda: [review.text for review in read_reviews()],
    "1,000 of the treebank": lambda: [" ".join(s.words) for s in read_treebank()],
}


def ours(folder):
    """This library's function."""
    model = load_pretrained(folder)
    return lambda texts: embed_sentences(texts, *model, max_length=256)


def sentence_transformers(folder):
    """The library for which MiniLM was trained."""
    from sentence_transformers import SentenceTransformer, models

    bert = models.Transformer(folder, max_seq_length=256)
    pooling = models.Pooling(bert.get_word_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[bert, pooling, models.Normalize()])
    return lambda texts: model.encode(texts, show_progress_bar=False)


def onnx_sentences(folder):
    """ONNX Runtime, with this library's tokenizer and a mean in NumPy."""
    tokenizer, run = load_pretrained(folder).tokenizer, onnx_runtime(folder)

    def embed(texts):
        vectors = np.zeros((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(order), 32):
            places = order[first : first + 32]
            batch = tokenizer.encode_batch([texts[i] for i in places], max_length=256)
            mask = batch.attention_mask.astype(np.int64)
            ids = batch.input_ids.astype(np.int64)
            hidden = run({"ids": ids, "mask": mask, "segments": np.zeros_like(ids)})[0]
            vectors[places] = np.einsum("bth,bt->bh", hidden, mask.astype(np.float32))
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    return embed


SIDES = {
    "bert_np": ours,
    PEER: sentence_transformers,
    "ONNX Runtime": onnx_sentences,
}


def work(side, folder):
    """In a worker: embed the texts of each line read; compare once before."""
    embed, texts = SIDES[side](folder), {name: read() for name, read in TEXTS.items()}
    some = texts["1,000 of the treebank"][:50]
    difference = np.abs(embed(some) - ours(folder)(some)).max()
    if difference > 1e-5:
        raise SystemExit(f"{side}: vectors differ by {difference:.0e}")
    for line in take_turns():
        embed(texts[line])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", choices=SIDES)
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.worker:
        return work(given.worker, given.folder)
    lines = [f"| sentences a second | {' | '.join(SIDES)} | bert_np, to its peer |"]
    lines.append("|---" * 5 + "|")
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(folder, *load_pretrained("all-MiniLM-L6-v2"))
        onnx_runtime(folder)
        workers = [start([__file__, "--worker", n, "--folder", folder]) for n in SIDES]
        for name, read in TEXTS.items():
            rounds = rounds_of(workers, given.rounds, name)
            seconds = np.array([[taken for taken, _ in row] for row in rounds])
            cells = [f"{len(read()) / s:.0f}" for s in np.median(seconds, axis=0)]
            ratios = seconds[:, 1] / seconds[:, 0]
            cells.append(f"{statistics.median(ratios):.2f}")
            cells[-1] += f" ({min(ratios):.2f}–{max(ratios):.2f})"
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        for worker in workers:
            stop(worker)
    write_table("throughput", lines)


if __name__ == "__main__":
    main()
