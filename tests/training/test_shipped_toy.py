"""The toy model that lies in the package: its skills, its heads, its report."""

import json

import numpy as np
import pytest
from tools.make_toy_golden import GOLDEN, passages, transformers_logits

import bert_np
from bert_np import bert, fill_mask, masked_lm_logits, next_sentence
from bert_np.files.pretrained import PACKAGED
from bert_np.training import toy_model
from bert_np.training.toy_language import create_grammar, sample_batch
from bert_np.training.toy_skills import (
    evaluate,
    hard_probes,
    head_habits,
    losses_without_heads,
)
from bert_np.tree import map_leaves

GRAMMAR = create_grammar()
REPORT = json.loads((PACKAGED["toy"] / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def toy():
    return bert_np.load_pretrained("toy")


@pytest.fixture(scope="module")
def held_out():
    batch = sample_batch(np.random.default_rng(3), 400, GRAMMAR, held_out=True)
    return batch, hard_probes(batch, GRAMMAR)


def test_it_is_small_and_has_both_heads(toy):
    params, config, tokenizer = toy
    files = list(PACKAGED["toy"].iterdir())
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert {"mlm", "nsp", "pooler"} <= params.keys()
    assert tokenizer.tokens == GRAMMAR.tokens
    assert bert_np.count_params(params) == REPORT["parameters"]
    assert config == toy_model.toy_config(GRAMMAR)
    steps = sum(phase["settings"]["steps"] for phase in REPORT["phases"])
    for told, phase in zip(REPORT["phases"], toy_model.toy_phases(steps), strict=True):
        assert told == {"mix": phase.mix, "settings": phase.settings._asdict()}


@pytest.fixture(scope="module")
def figures(toy):
    params, config, _ = toy
    rng = np.random.default_rng(REPORT["seed"] + 1)
    return evaluate(params, config, GRAMMAR, rng, REPORT["passages"])


def test_it_speaks_the_language(figures):
    assert figures["agreement"] >= 0.99
    assert figures["pronoun"] >= 0.98
    assert figures["copy"] >= 0.98
    assert figures["binding"] >= 0.98
    assert figures["order"] >= 0.98
    best = figures["next sentence, best possible"]
    assert REPORT["passages"] >= 12_000 and best > 0.99
    assert figures["next sentence"] >= best - 0.01
    assert 0 < figures["divergence"] < 0.15


def test_the_report_holds_the_same_figures(figures):
    assert figures.keys() == REPORT["held_out"].keys()
    for name, value in figures.items():
        assert abs(value - REPORT["held_out"][name]) < 0.002, name


@pytest.mark.parametrize("text, word", [
    ("the cat that the dogs chase [MASK] tired.", "is"),
    ("the cats that the dog chases [MASK] tired.", "are"),
    ("the boy near the girls [MASK] late.", "is"),
    (("john lost the key.", "[MASK] was sad."), "he"),
    (("anna lost the key.", "[MASK] was sad."), "she"),
    (("anna has a red ball.", "the ball is [MASK]."), "red"),
    (("tom has a green hat.", "the hat is [MASK]. he likes the hat."), "green"),
    ("mary has a red ball and a blue hat. the hat is [MASK]. the ball is red.",
     "blue"),
    (("paul has a black box and a grey bag.", "he likes the [MASK] bag."), "grey"),
    (("emma has a white box and a brown coat.", "what is brown? the [MASK]."), "coat"),
    (("the dog chased the cat.", "who ran away? the [MASK]."), "cat"),
    (("the cat chased the dog.", "who ran away? the [MASK]."), "dog"),
])  # fmt: skip
def test_sentences_that_a_reader_can_judge(toy, text, word):
    assert fill_mask(text, *toy)[0][0][0] == word


def test_it_tells_what_follows(toy):
    two = "anna has a red ball and a blue hat."
    follows = next_sentence(two, "the hat is blue.", *toy)
    other = next_sentence(two, "the horse was tired.", *toy)
    assert follows > 0.9 and other < 0.1


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_logits_equal_those_of_transformers(toy, dtype, atol):
    """In float32 the logits, up to 17, are only so exact: transformers' own
    are up to 7e-6 from its float64."""
    params = map_leaves(lambda path, array: array.astype(dtype), toy[0])
    with np.load(GOLDEN) as golden:
        golden = dict(golden)
    assert np.array_equal(golden["input_ids"], passages()[0])
    out = bert(
        golden["input_ids"],
        params,
        toy[1],
        segment_ids=golden["segment_ids"],
        attention_mask=golden["attention_mask"],
    )
    mlm = masked_lm_logits(out["last_hidden_state"], params, toy[1])
    real = golden["attention_mask"] == 1
    np.testing.assert_allclose(mlm[real], golden["mlm_logits"][real], rtol=0, atol=atol)
    nsp = bert_np.next_sentence_logits(out["pooler_output"], params)
    np.testing.assert_allclose(nsp, golden["nsp_logits"], rtol=0, atol=min(atol, 1e-5))


@pytest.mark.references
def test_transformers_gives_the_stored_logits_live():
    mlm, nsp = transformers_logits(*passages())
    with np.load(GOLDEN) as golden:
        np.testing.assert_allclose(mlm, golden["mlm_logits"], rtol=0, atol=1e-10)
        np.testing.assert_allclose(nsp, golden["nsp_logits"], rtol=0, atol=1e-10)


# ------------------------------------------------------------------ heads


def test_three_skills_lean_on_a_head(toy, held_out):
    params, config, _ = toy
    batch, probes = held_out
    losses = losses_without_heads(params, config, GRAMMAR, batch, probes)
    habits = head_habits(params, config, batch, probes)
    leaning = []
    for skill, loss in losses.items():
        head = np.unravel_index(loss.argmax(), loss.shape)
        habit = habits["pair" if skill == "binding" else skill]
        if loss[head] > 0.2 and habit[head] > 0.3:
            leaning.append(skill)
    assert len(leaning) >= 3, losses
