"""The toy model in the package: its skills, its heads, its report."""

import json

import numpy as np
import pytest

import bert_np
from bert_np.files.pretrained import PACKAGED
from bert_np.training import toy_model, toy_skills
from bert_np.training.toy_language import create_grammar, sample_batch
from bert_np.tree import map_leaves

GRAMMAR = create_grammar()
REPORT = json.loads((PACKAGED["toy"] / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def toy():
    return bert_np.load_pretrained("toy")


def test_it_is_small_and_what_its_report_says(toy):
    files = list(PACKAGED["toy"].iterdir())
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert toy.tokenizer.tokens == GRAMMAR.tokens
    assert toy.config == toy_model.toy_config(GRAMMAR)
    assert bert_np.count_params(toy.params) == REPORT["parameters"]


@pytest.mark.parametrize(
    "text, word",
    [
        ("the cat that the dogs chase [MASK] tired.", "is"),
        (("john lost the key.", "[MASK] was sad."), "he"),
        (("paul has a black box and a grey bag.", "he likes the [MASK] bag."), "grey"),
        (("tom has a white box and a brown key.", "what is brown? the [MASK]."), "key"),
        (("the dog chased the cat.", "who ran away? the [MASK]."), "cat"),
        (("the cat chased the dog.", "who ran away? the [MASK]."), "dog"),
    ],
)
def test_sentences_that_a_reader_can_judge(toy, text, word):
    assert bert_np.fill_mask(text, *toy)[0][0][0] == word


def test_it_tells_what_follows(toy):
    two = "anna has a red ball and a blue hat."
    assert bert_np.next_sentence(two, "the hat is blue.", *toy) > 0.9
    assert bert_np.next_sentence(two, "the horse was tired.", *toy) < 0.1


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_logits_equal_those_of_transformers(toy, dtype, atol):
    """In float32 the logits, up to 17, are only so exact: transformers' own
    are up to 7e-6 from its float64."""
    from tools.make_toy_golden import GOLDEN, passages

    params = map_leaves(lambda path, array: array.astype(dtype), toy.params)
    ids, segments, mask = passages()
    with np.load(GOLDEN) as golden:
        assert np.array_equal(golden["input_ids"], ids)
        expected = golden["mlm_logits"], golden["nsp_logits"]
    out = bert_np.bert(
        ids, params, toy.config, segment_ids=segments, attention_mask=mask
    )
    words = bert_np.masked_lm_logits(out["last_hidden_state"], params, toy.config)
    pairs = bert_np.next_sentence_logits(out["pooler_output"], params)
    assert np.abs(words - expected[0])[mask == 1].max() <= atol
    assert np.abs(pairs - expected[1]).max() <= min(atol, 1e-5)


@pytest.mark.references
def test_transformers_gives_the_stored_logits():
    from tools.make_toy_golden import GOLDEN, passages, transformers_logits

    mlm, nsp = transformers_logits(*passages())
    with np.load(GOLDEN) as golden:
        np.testing.assert_allclose(mlm, golden["mlm_logits"], rtol=0, atol=1e-10)
        np.testing.assert_allclose(nsp, golden["nsp_logits"], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_it_speaks_the_language(capsys):
    toy_skills.main([str(PACKAGED["toy"])])
    lines = capsys.readouterr().out.splitlines()
    count = len(REPORT["held_out"])
    figures = {line[:30].strip(): float(line[30:]) for line in lines[:count]}
    assert figures == pytest.approx(REPORT["held_out"], abs=0.002)
    assert lines[count].startswith("mean attention") and len(lines) == count + 2 + 12


@pytest.mark.slow
def test_three_skills_lean_on_a_head(toy):
    batch = sample_batch(np.random.default_rng(3), 400, GRAMMAR, held_out=True)
    given = toy.params, toy.config
    probes = toy_skills.hard_probes(batch, GRAMMAR)
    losses = toy_skills.losses_without_heads(*given, GRAMMAR, batch, probes)
    habits = toy_skills.head_habits(*given, batch, probes)
    leaning = []
    for skill, loss in losses.items():
        head = np.unravel_index(loss.argmax(), loss.shape)
        habit = habits["pair" if skill == "binding" else skill]
        if loss[head] > 0.2 and habit[head] > 0.3:
            leaning.append(skill)
    assert len(leaning) >= 3, losses
