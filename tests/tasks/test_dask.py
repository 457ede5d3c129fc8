"""The README's lines for Dask give what single calls give."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bert_np
from bert_np import analysis
from notebooks import ROOT

README = (ROOT / "bert_np" / "tasks" / "README.md").read_text(encoding="utf-8")
CODE = re.search(r"<!-- dask -->\n```python\n(.*?)```", README, re.S)[1]


def save_with_a_sequence_head(model, folder):
    """Write the model with two labels and a random head; return it as loaded."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((model.config.hidden_size, 2), np.float32)
    head = {"W": W, "b": np.zeros(2, np.float32)}
    config = replace(model.config, labels=("bad", "good"))
    tree = {**model.params, "sequence": head}
    bert_np.save_pretrained(folder, tree, config, model.tokenizer)
    return bert_np.load_pretrained(folder)


@pytest.mark.references
def test_a_cluster_of_two_processes_gives_what_single_calls_give(minilm, tmp_path):
    model = save_with_a_sequence_head(minilm, tmp_path / "model")
    texts = [review.text for review in analysis.read_reviews()[:200]]
    sentences = analysis.read_treebank()[:500]
    names = {"FOLDER": str(tmp_path / "model"), "texts": texts, "sentences": sentences}
    exec(CODE, names)
    vectors = bert_np.embed_sentences(texts, *model)
    np.testing.assert_allclose(names["all_vectors"], vectors, rtol=0, atol=1e-5)
    for found, ranked in zip(
        names["all_labels"], bert_np.classify(texts, *model), strict=True
    ):
        assert dict(found) == pytest.approx(dict(ranked), abs=1e-5)
    whole = analysis.score_relations(sentences, *model, relations=["obj", "det"])
    assert np.array_equal(sum(names["pairs"]), whole.counts)
    np.testing.assert_allclose(names["accuracy"], whole.accuracy, rtol=0, atol=1e-12)
