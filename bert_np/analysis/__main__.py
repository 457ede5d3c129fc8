"""Print what is measured of a model on real language, as a table.

python -m bert_np.analysis relations [MODEL]
"""

import argparse
import sys
from functools import partial

import numpy as np

from bert_np.analysis.corpora import read_treebank
from bert_np.analysis.syntax import format_relations, score_relations
from bert_np.errors import BertError
from bert_np.files.pretrained import MINILM, load_pretrained


def relation_table(options, sentences, model):
    """Return which head finds each grammatical relation, and how often."""
    merge, rng = options.merge_subtypes, np.random.default_rng(options.seed)
    report = partial(print, file=sys.stderr, flush=True)
    scores = score_relations(
        sentences, *model, rng=rng, merge_subtypes=merge, report=report
    )
    return format_relations(scores)


TABLES = {"relations": relation_table}


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bert_np.analysis",
        description="Print what is measured of a model on real language, as a table.",
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument(
        "model",
        nargs="?",
        default=MINILM.name,
        help=f"{MINILM.name} (the default), a hub name, or a folder",
    )
    parser.add_argument(
        "--treebank", metavar="FILE", help="another one, also in CoNLL-U"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--merge-subtypes", action="store_true", help="count nsubj:pass as nsubj"
    )
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: must be 0 or more")
    try:
        sentences, model = (
            read_treebank(options.treebank),
            load_pretrained(options.model),
        )
        print(TABLES[options.table](options, sentences, model))
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
