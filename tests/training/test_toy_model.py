"""How the toy model is trained, and how its skills are measured."""

import json
import math

import numpy as np
import pytest

import bert_np
from bert_np import bert
from bert_np.training import toy_model
from bert_np.training.toy_grammar import KINDS, MIX
from bert_np.training.toy_language import (
    MASK,
    create_grammar,
    find_probes,
    find_targets,
    sample_batch,
)
from bert_np.training.toy_skills import hard_probes, head_habits, measure_skills
from bert_np.tree import leaves

GRAMMAR = create_grammar()
CONFIG = toy_model.toy_config(GRAMMAR)
UNTRAINED = bert_np.init_params(CONFIG, np.random.default_rng(0), heads=True)
BATCH = sample_batch(np.random.default_rng(3), 400, GRAMMAR, held_out=True)
PROBES = hard_probes(BATCH, GRAMMAR)


def test_hard_probes_cannot_be_solved_by_a_shortcut():
    words = np.array(GRAMMAR.tokens)[BATCH["input_ids"]]
    skills = set()
    for probe in PROBES:
        source, distractor = words[probe.row, [probe.source, probe.distractor]]
        if probe.skill == "agreement":
            assert source.endswith("s") != distractor.endswith("s")
        if probe.skill == "binding":
            assert KINDS[source] == KINDS[distractor]
        skills.add(probe.skill)
    assert skills == {"agreement", "binding", "copy", "order", "pronoun"}


def test_right_answers_are_counted():
    """A bias so large that the model always says "he"."""
    he = GRAMMAR.tokens.index("he")
    mlm = UNTRAINED["mlm"]
    bias = np.where(np.arange(len(GRAMMAR.tokens)) == he, 1e4, mlm["bias"])
    says_he = UNTRAINED | {"mlm": mlm | {"bias": bias.astype(np.float32)}}
    right = measure_skills(says_he, CONFIG, GRAMMAR, BATCH)
    answers = [p.answers == (he,) for p in PROBES if p.skill == "pronoun"]
    assert right["pronoun"] == np.mean(answers) and 0.3 < np.mean(answers) < 0.7
    assert right["binding"] == right["copy"] == 0


def test_habits_are_means_of_attention():
    some = [p for p in PROBES if p.skill == "copy"][:3]
    some += [p for p in PROBES if p.skill == "binding"][:4]
    expected = {name: [] for name in ("copy", "binding", "pair")}
    for probe in some:
        row = slice(probe.row, probe.row + 1)
        ids = BATCH["input_ids"][row].copy()
        words = [GRAMMAR.tokens[i] for i in ids[0]]
        ids[0, probe.position] = MASK
        out = bert(ids, UNTRAINED, CONFIG, segment_ids=BATCH["segment_ids"][row])
        maps = np.stack(out["attention_probs"])[:, 0]  # (L, A, T, T)
        expected[probe.skill].append(maps[:, :, probe.position, probe.source])
        if probe.skill == "binding":
            partner = probe.source + (1 if words[probe.source + 1] in KINDS else -1)
            expected["pair"].append(maps[:, :, probe.source, partner])
    habits = head_habits(UNTRAINED, CONFIG, BATCH, some)
    for name, values in expected.items():
        np.testing.assert_allclose(habits[name], np.mean(values, axis=0), atol=1e-6)
    assert habits.keys() == {"previous", "separator", *expected}
    assert "pair" not in head_habits(UNTRAINED, CONFIG, BATCH, some[:3])


# ---------------------------------------------------------------- training


def test_the_start_is_random_but_for_positions_keys_and_outputs():
    start = toy_model.start_params(CONFIG, np.random.default_rng(0))
    for (path, array), (_, plain) in zip(leaves(start), leaves(UNTRAINED)):
        changed = path.endswith(("position", "key.W", "attention.output.W"))
        assert changed != np.array_equal(array, plain), path
    for layer in start["layers"]:
        key, query = (layer["attention"][name]["W"] for name in ("key", "query"))
        assert np.array_equal(key, query) and not np.shares_memory(key, query)
        value, output = (layer["attention"][name]["W"] for name in ("value", "output"))
        assert np.array_equal(output, value.T) and not np.shares_memory(output, value)
    position = start["embeddings"]["position"].astype(float)
    angle, scale = 7 * 2 / 20 ** (10 / 64), math.sqrt(0.02)
    assert position[7, 10] == pytest.approx(scale * math.sin(angle), abs=1e-7)
    assert position[7, 11] == pytest.approx(scale * math.cos(angle), abs=1e-7)


def test_one_determined_word_per_passage_is_masked_more_often():
    rng = np.random.default_rng(0)
    asked = np.concatenate(
        [
            (toy_model.make_batch(rng, GRAMMAR, rate=0)["mlm_labels"] != -100).sum(
                axis=1
            )
            for _ in range(10)
        ]
    )
    with_target = np.unique([row for row, _ in find_targets(BATCH, GRAMMAR)]).size / 400
    assert set(asked) == {0, 1}
    assert asked.mean() == pytest.approx(toy_model.SKILL_RATE * with_target, abs=0.06)


def test_other_words_are_masked_at_the_rate_of_the_phase():
    rng = np.random.default_rng(0)
    batches = [toy_model.make_batch(rng, GRAMMAR, rate=0.3) for _ in range(10)]
    labels = sum((batch["mlm_labels"] != -100).sum() for batch in batches)
    tokens = sum((batch["attention_mask"].sum(axis=1) - 2).sum() for batch in batches)
    beyond = (labels - 0.3 * tokens) / (10 * toy_model.BATCH)
    assert 0.1 < beyond < toy_model.SKILL_RATE - 0.3


def test_no_phase_withholds_a_word():
    for phase in toy_model.toy_phases():
        slots = [s for p in create_grammar(phase.mix).single for s in p.slots]
        seen = np.unique(np.concatenate([slot.rows.ravel() for slot in slots]))
        ordinary = range(len(toy_model.SPECIALS), len(GRAMMAR.tokens))
        assert set(ordinary) <= set(seen.tolist())


def test_targets_are_the_words_that_probes_ask_for():
    probes = find_probes(BATCH, GRAMMAR)
    asked = [(probe.row, probe.position) for probe in probes]
    assert find_targets(BATCH, GRAMMAR) == asked


def test_passages_of_a_batch_are_in_order_of_length():
    batch = toy_model.make_batch(np.random.default_rng(0), GRAMMAR, rate=0.15)
    lengths = batch["attention_mask"].sum(axis=1)
    assert (np.diff(lengths) >= 0).all() and lengths[0] < lengths[-1]


def short_phases():
    """Three steps with a goal that is out of reach, then two without one."""
    settings = [toy_model.toy_settings(3, falling=0), toy_model.toy_settings(2, 2)]
    return [
        toy_model.Phase(MIX, s, 0.1, goal) for s, goal in zip(settings, (0.9, None))
    ]


def test_a_phase_ends_when_every_skill_has_reached_the_goal(tmp_path, monkeypatch):
    """The skills are said to grow by a third with each measurement."""
    rights = iter([0.3, 0.6, 0.9, 1.0, 1.0, 1.0])
    skills = lambda *_: {"copy": 1.0, "order": next(rights)}  # noqa: E731
    monkeypatch.setattr(toy_model, "measure_skills", skills)
    monkeypatch.setattr(toy_model, "evaluate", lambda *_: {"copy": 1.0})
    monkeypatch.setattr(toy_model, "CHECK_EVERY", 2)
    first = toy_model.Phase(MIX, toy_model.toy_settings(20, falling=0), 0.1, goal=0.9)
    phases = [
        first,
        first._replace(settings=toy_model.toy_settings(3, 3), goal=None),
    ]
    lines = []
    facts = toy_model.train_toy(tmp_path / "toy", phases, 0, report=lines.append)
    assert [phase["ended"] for phase in facts["phases"]] == [6, 9]
    assert {step: right["order"] for step, right in facts["curve"].items()} == {
        "2": 0.3, "4": 0.6, "6": 0.9, "8": 1.0,
    }  # fmt: skip
    assert "skills after step 4: copy 100%  order 60%" in lines


@pytest.mark.slow
def test_the_run_takes_snapshots_and_resumes_in_either_phase(tmp_path, monkeypatch):
    monkeypatch.setattr(toy_model, "evaluate", lambda *_: {"copy": 1.0})
    monkeypatch.setattr(toy_model, "CHECK_EVERY", 2)
    monkeypatch.setattr(toy_model, "SNAPSHOTS", (1, 4))
    monkeypatch.setattr(toy_model, "toy_phases", short_phases)
    out, shots = tmp_path / "toy", tmp_path / "shots"
    toy_model.main([str(tmp_path / "whole"), "--snapshots", str(shots)])
    names = [f"step_{step:05}.npz" for step in (1, 4, 5)]
    assert sorted(shot.name for shot in shots.iterdir()) == names

    def stop_at_the_end_of_a_phase(line):
        if line.startswith(("step 3/3", "step 2/2")):
            raise KeyboardInterrupt

    phases, lines = short_phases(), []
    for _ in phases:
        with pytest.raises(KeyboardInterrupt):
            toy_model.train_toy(out, phases, 0, report=stop_at_the_end_of_a_phase)
        assert not out.exists()
    report = toy_model.train_toy(out, phases, 0, report=lines.append)
    assert not any(line.startswith("step") for line in lines)
    assert report == json.loads((out / "report.json").read_text("utf-8"))
    assert list(report["curve"]) == ["2", "4"]
    models = [tmp_path / name / "model.safetensors" for name in ("whole", "toy")]
    assert models[0].read_bytes() == models[1].read_bytes()
    assert not list(tmp_path.glob("toy.*"))
    assert bert_np.load_pretrained(out).config == CONFIG


def test_several_seeds_are_put_side_by_side_and_kept(tmp_path, monkeypatch):
    trained = []

    def train_toy(out, phases, seed, snapshots, report, passages):
        trained.append(seed)
        held_out, ends = {"copy": seed / 10}, [{"ended": 3}, {"ended": 5}]
        facts = {"seed": seed, "held_out": held_out, "phases": ends}
        out.mkdir(parents=True)
        toy_model.write_json(out / "report.json", facts)
        return facts

    monkeypatch.setattr(toy_model, "train_toy", train_toy)
    toy_model.main([str(tmp_path / "all"), "--seeds", "1", "2"])
    toy_model.main([str(tmp_path / "all"), "--seeds", "1", "2", "3"])
    assert trained == [1, 2, 3]
    results = json.loads((tmp_path / "all" / "seeds.json").read_text("utf-8"))
    assert [result["held_out"]["copy"] for result in results] == [0.1, 0.2, 0.3]
    assert results[0]["phases_ended"] == [3, 5] and results[0]["seed"] == 1
