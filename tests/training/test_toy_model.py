"""The toy model: its skills measured, its heads, and the command."""

import json
import math

import numpy as np
import pytest

import bert_np
from bert_np import bert
from bert_np.training import toy_grammar, toy_model
from bert_np.training.toy_grammar import KINDS, MIX
from bert_np.training.toy_language import create_grammar, find_probes, sample_batch
from bert_np.training.toy_skills import (
    evaluate,
    hard_probes,
    head_habits,
    losses_without_heads,
    measure_skills,
    without_head,
)
from bert_np.tree import leaves

GRAMMAR = create_grammar()


@pytest.fixture(scope="module")
def toy():
    """A model that knows nothing yet."""
    config = toy_model.toy_config(GRAMMAR)
    return bert_np.init_params(config, np.random.default_rng(0), heads=True), config


@pytest.fixture(scope="module")
def held_out():
    batch = sample_batch(np.random.default_rng(3), 400, GRAMMAR, held_out=True)
    return batch, hard_probes(batch, GRAMMAR)


def test_agreement_that_a_near_noun_gives_away_does_not_count(held_out):
    batch, probes = held_out
    words = np.array(GRAMMAR.tokens)[batch["input_ids"]]
    asked = [probe for probe in probes if probe.skill == "agreement"]
    assert len(asked) > 5
    for probe in asked:
        nouns = words[probe.row, [probe.source, probe.distractor]]
        assert nouns[0].endswith("s") != nouns[1].endswith("s")


def test_binding_that_the_kind_of_thing_gives_away_does_not_count(held_out):
    batch, probes = held_out
    words = np.array(GRAMMAR.tokens)[batch["input_ids"]]
    asked = [probe for probe in probes if probe.skill == "binding"]
    assert len(asked) > 20
    for probe in asked:
        kinds = [KINDS[words[probe.row, at]] for at in (probe.source, probe.distractor)]
        assert kinds[0] == kinds[1]
    every = [p for p in find_probes(batch, GRAMMAR) if p.skill == "binding"]
    assert len(asked) < 0.7 * len(every)


def test_who_knows_nothing_gets_little_right(toy, held_out):
    params, config = toy
    figures = evaluate(params, config, GRAMMAR, np.random.default_rng(7), 200)
    skills = ("agreement", "pronoun", "copy", "binding", "order")
    assert all(figures[skill] < 0.3 for skill in skills)
    assert 0.99 < figures["next sentence, best possible"] <= 1
    assert 1 < figures["divergence"] < 20


def test_the_right_answers_are_counted(toy, held_out):
    """A bias so large that the model always says "he"."""
    params, config = toy
    bias = params["mlm"]["bias"].copy()
    bias[GRAMMAR.tokens.index("he")] = 1e4
    says_he = params | {"mlm": params["mlm"] | {"bias": bias}}
    batch, probes = held_out
    right = measure_skills(says_he, config, GRAMMAR, batch, probes)
    he = [
        p.answers == (GRAMMAR.tokens.index("he"),)
        for p in probes
        if p.skill == "pronoun"
    ]
    assert right["pronoun"] == np.mean(he) and 0.3 < np.mean(he) < 0.7
    assert right["binding"] == right["copy"] == 0


# ------------------------------------------------------------------ heads


def test_a_skill_loses_what_its_right_answers_lose(toy, held_out):
    params, config = toy
    batch, probes = held_out
    some = probes[:40]
    losses = losses_without_heads(params, config, GRAMMAR, batch, some)
    whole = measure_skills(params, config, GRAMMAR, batch, some)
    ablated = without_head(params, config, 2, 3)
    less = measure_skills(ablated, config, GRAMMAR, batch, some)
    assert losses.keys() == whole.keys()
    for skill, loss in losses.items():
        assert loss.shape == (3, 4)
        assert loss[2, 3] == whole[skill] - less[skill]


def test_a_head_without_output_changes_nothing_else(toy):
    params, config = toy
    ablated = without_head(params, config, 1, 2)
    differing = {
        path
        for (path, a), (_, b) in zip(leaves(params), leaves(ablated))
        if not np.array_equal(a, b)
    }
    assert differing == {"layers.1.attention.output.W"}
    W = ablated["layers"][1]["attention"]["output"]["W"]
    assert not W[32:48].any() and W[:32].any(axis=1).all()


def test_habits_are_means_of_attention(toy, held_out):
    params, config = toy
    batch, probes = held_out
    some = [p for p in probes if p.skill == "copy"][:3]
    some += [p for p in probes if p.skill == "binding"][:4]
    habits = head_habits(params, config, batch, some)
    expected = {name: np.zeros((3, 4)) for name in ("copy", "binding", "pair")}
    for probe in some:
        ids = batch["input_ids"][[probe.row]]
        words = [GRAMMAR.tokens[i] for i in ids[0]]
        ids[0, probe.position] = GRAMMAR.tokens.index("[MASK]")
        out = bert(ids, params, config, segment_ids=batch["segment_ids"][[probe.row]])
        maps = np.stack(out["attention_probs"])[:, 0]
        skill, count = probe.skill, 3 if probe.skill == "copy" else 4
        expected[skill] += maps[:, :, probe.position, probe.source] / count
        if skill == "binding":
            colours = {*toy_grammar.BRIGHT[1], *toy_grammar.PLAIN[1]}
            step = 1 if words[probe.source] in colours else -1
            expected["pair"] += maps[:, :, probe.source, probe.source + step] / count
    for name, values in expected.items():
        np.testing.assert_allclose(habits[name], values, atol=1e-6)
    assert habits.keys() == {"previous", "separator", *expected}


# ---------------------------------------------------------------- training


def test_the_start_is_random_but_for_positions_and_keys():
    config = toy_model.toy_config(GRAMMAR)
    start = toy_model.start_params(config, np.random.default_rng(0))
    plain = bert_np.init_params(config, np.random.default_rng(0), heads=True)
    differing = {
        path
        for (path, a), (_, b) in zip(leaves(start), leaves(plain))
        if not np.array_equal(a, b)
    }
    keys = {f"layers.{layer}.attention.key.W" for layer in range(3)}
    assert differing == {"embeddings.position"} | keys
    for layer in start["layers"]:
        attention = layer["attention"]
        assert np.array_equal(attention["key"]["W"], attention["query"]["W"])
        assert not np.shares_memory(attention["key"]["W"], attention["query"]["W"])
    position = start["embeddings"]["position"].astype(float)
    angle = 7 * 2 / 20 ** (10 / 64)
    assert position[7, 10] == pytest.approx(math.sqrt(0.02) * math.sin(angle), abs=1e-7)
    assert position[7, 11] == pytest.approx(math.sqrt(0.02) * math.cos(angle), abs=1e-7)
    near = position @ position[20] / (position[20] @ position[20])
    assert near[20] == near.max() and near[19] > near[18] > near[17] > near[:10].max()


@pytest.mark.parametrize("steps", [4, 7, 30, 5000])
def test_the_phases_fit_any_number_of_steps(steps):
    first, second = toy_model.toy_phases(steps)
    assert first.settings.steps + second.settings.steps == steps
    assert set(first.mix) == {"binding"} and second.mix == MIX
    ends = []
    for phase in (first, second):
        settings = phase.settings
        assert 0 <= settings.warmup_steps <= 200
        ends.append(settings.steps - settings.warmup_steps - settings.hold_steps)
    assert ends == [0, second.settings.steps * 2 // 3]


def test_one_settled_word_a_passage_is_masked_more_often():
    rng = np.random.default_rng(0)
    batches = [toy_model.make_batch(rng, GRAMMAR) for _ in range(10)]
    labels = sum((batch["mlm_labels"] != -100).sum() for batch in batches)
    tokens = sum((batch["attention_mask"].sum(axis=1) - 2).sum() for batch in batches)
    beyond = labels - toy_model.RATE * tokens
    assert 0.3 < beyond / (10 * toy_model.BATCH) < toy_model.SKILL_RATE


def test_the_run_reports_takes_snapshots_and_resumes_in_either_phase(tmp_path):
    phases, shots = toy_model.toy_phases(6), tmp_path / "shots"
    whole = toy_model.train_toy(tmp_path / "whole", phases, 0, shots, passages=100)
    assert whole == json.loads((tmp_path / "whole" / "report.json").read_text("utf-8"))
    assert [p["settings"]["steps"] for p in whole["phases"]] == [1, 5]
    assert sorted(shot.name for shot in shots.iterdir()) == [
        f"step_{step:05}.npz" for step in range(1, 7)
    ]
    out, lines = tmp_path / "toy", []

    def stop_at_the_end_of_a_phase(line):
        lines.append(line)
        if line.startswith(("step 1/1", "step 5/5")):
            raise KeyboardInterrupt

    for _ in phases:
        with pytest.raises(KeyboardInterrupt):
            toy_model.train_toy(out, phases, 0, report=stop_at_the_end_of_a_phase)
        assert not out.exists()
    toy_model.train_toy(out, phases, 0, report=lines.append, passages=100)
    assert sum(line.startswith(("step 1/1", "step 5/5")) for line in lines) == 2
    weights = [
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("whole", "toy")
    ]
    assert weights[0] == weights[1]
    assert not list(tmp_path.glob("*.phase_*"))
    params, config, _ = bert_np.load_pretrained(out)
    batch = sample_batch(np.random.default_rng(0), 50, GRAMMAR, held_out=True)
    assert measure_skills(params, config, GRAMMAR, batch).keys() >= {"binding", "copy"}


def test_snapshots_are_a_dozen_and_end_with_the_run():
    marks = toy_model.snapshot_steps(9000)
    assert len(marks) == 12 and marks[-1] == 9000 and marks == sorted(marks)
