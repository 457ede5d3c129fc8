"""Measure a model on real language, and print the results as a table.

python -m bert_np.analysis relations [MODEL]
python -m bert_np.analysis pairs [MODEL]
python -m bert_np.analysis tags [MODEL]
python -m bert_np.analysis distances [MODEL]
"""

import argparse
import sys
from functools import partial

import numpy as np

from bert_np.analysis.corpora import read_treebank
from bert_np.analysis.minimal_pairs import (
    TEMPLATES,
    format_pairs,
    make_pairs,
    score_pairs,
)
from bert_np.analysis.probing import format_probe, probe_layers
from bert_np.analysis.syntax import format_relations, score_relations
from bert_np.errors import BertError
from bert_np.files.pretrained import MINILM, load_pretrained


def relation_table(options, model):
    """Return which head finds each grammatical relation, and how often."""
    scores = score_relations(
        read_treebank(options.treebank),
        *model,
        rng=np.random.default_rng(options.seed),
        merge_subtypes=options.merge_subtypes,
        report=partial(print, file=sys.stderr, flush=True),
    )
    return format_relations(scores)


def pair_tables(options, model):
    """Return which heads notice the change, for each set of templates."""
    tables = []
    for name, arguments in TEMPLATES.items():
        pairs = make_pairs(**arguments)
        examples = [f"- {' '.join(words)}" for words in pairs[0].words]
        table = format_pairs(score_pairs(pairs, *model))
        lines = [f"{name}: {len(pairs)} pairs, such as", *examples, "", table]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def probe_table(options, model, label):
    """Return what a linear map reads off each layer."""
    scores = probe_layers(
        read_treebank(options.treebank),
        *model,
        rng=np.random.default_rng(options.seed),
        label=label,
        report=partial(print, file=sys.stderr, flush=True),
    )
    return format_probe(scores)


TABLES = {
    "relations": relation_table,
    "pairs": pair_tables,
    "tags": partial(probe_table, label="tag"),
    "distances": partial(probe_table, label="distance"),
}


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bert_np.analysis",
        description="Measure a model on real language, and print a table.",
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument(
        "model",
        nargs="?",
        default=MINILM.name,
        help=f"{MINILM.name} (the default), a hub name, or a folder",
    )
    parser.add_argument(
        "--treebank", metavar="FILE", help="another treebank, also in CoNLL-U"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--merge-subtypes", action="store_true", help="count nsubj:pass as nsubj"
    )
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: must be 0 or more")
    try:
        print(TABLES[options.table](options, load_pretrained(options.model)))
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
