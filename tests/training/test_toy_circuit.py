"""The circuit for binding: who is who, and what is found in a known model."""

import json

import numpy as np
import pytest

import bert_np
from bert_np import masked_lm_logits
from bert_np.analysis import Place, run_patched
from bert_np.files.pretrained import PACKAGED
from bert_np.training import toy_circuit
from bert_np.training.toy_circuit import ROLES, binding_passages, measure_circuit
from bert_np.training.toy_grammar import KINDS
from bert_np.training.toy_language import create_grammar, is_held_out, to_texts

GRAMMAR = create_grammar()
PASSAGES = binding_passages(np.random.default_rng(0), 150)


def texts(inputs):
    return [
        a + (f" {b}" if b else "") for a, b in to_texts(inputs["input_ids"], GRAMMAR)
    ]


def words(passages, role, inputs):
    ids = np.take_along_axis(inputs["input_ids"], passages.roles[role], axis=1)
    return np.array(GRAMMAR.tokens)[ids].tolist()


def test_the_roles_and_twins_are_what_the_texts_say():
    own, asks, swapped = (
        PASSAGES.inputs,
        PASSAGES.twins["asks"],
        PASSAGES.twins["swapped"],
    )
    assert len(PASSAGES.number) > 40
    pairs = np.array(GRAMMAR.tokens)[PASSAGES.words].tolist()
    roles = [words(PASSAGES, role, own) for role in ROLES]
    for n, (text, (right, rival)) in enumerate(zip(texts(own), pairs)):
        (asked,), (partner, other), candidates, blank = (role[n] for role in roles)
        assert blank == ["[MASK]"] and text.count("[MASK]") == 1
        assert candidates == [right, rival] and asked == partner != other
        first, second = text.split(" . ", 1)
        things = [f"{right} {partner}", f"{rival} {other}"]
        if f" {things[0]}" not in first:  # the thing is asked for, by its colour
            things = [f"{partner} {right}", f"{other} {rival}"]
        assert all(f"a {thing}" in first for thing in things)
        assert second.count(asked) == 1 and KINDS[right] == KINDS[rival]
        # the twins, word by word
        assert texts(asks)[n] == f"{first} . {second.replace(asked, other)}"
        exchange = {partner: other, other: partner}
        turned = " ".join(exchange.get(word, word) for word in first.split())
        assert texts(swapped)[n] == f"{turned} . {second}"
    filled = own["input_ids"].copy()
    np.put_along_axis(filled, PASSAGES.roles["blank"], PASSAGES.words[:, :1], axis=1)
    assert is_held_out(filled).all()


def test_halves_share_no_passage():
    halves = [toy_circuit.select(PASSAGES, PASSAGES.number % 2 == n) for n in (0, 1)]
    filled = []
    for half in halves:
        ids = half.inputs["input_ids"].copy()
        np.put_along_axis(ids, half.roles["blank"], half.words[:, :1], axis=1)
        filled.append({tuple(row) for row in ids.tolist()})
    assert min(map(len, filled)) > 10 and not filled[0] & filled[1]
    assert sum(len(half.number) for half in halves) == len(PASSAGES.number)


@pytest.fixture(scope="module")
def circuit():
    toy = bert_np.load_pretrained("toy")
    return measure_circuit(PASSAGES, toy.params, toy.config)


@pytest.mark.slow
def test_the_difference_stands_where_it_must_at_both_ends(circuit):
    """By design: at first where the words differ, at last at the blank."""
    asks, swapped = circuit.stands["asks"], circuit.stands["swapped"]
    at = {role: i for i, role in enumerate(ROLES)}
    for shares, role in ((asks[0], "asked"), (swapped[0], "partners")):
        np.testing.assert_allclose(shares, np.arange(5) == at[role], atol=1e-5)
    for shares in (asks[-1], swapped[-1]):
        np.testing.assert_allclose(shares, np.arange(5) == at["blank"], atol=1e-5)
    assert circuit.right == {"own": 1, "asks": 1, "swapped": 1}


@pytest.mark.slow
def test_a_step_and_a_look_are_those_of_one_passage_after_the_other(circuit):
    toy = bert_np.load_pretrained("toy")
    model = {"params": toy.params, "config": toy.config}
    rest = toy_circuit.select(PASSAGES, PASSAGES.number % 2 == 1)
    step, look = circuit.steps[0], circuit.looks[0]
    ends, weights = [], []
    for n in range(len(rest.number)):
        T = int(rest.inputs["attention_mask"][n].sum())
        own, twin = (
            {name: array[n : n + 1, :T] for name, array in batch.items()}
            for batch in (rest.inputs, rest.twins[step.twin])
        )
        at = {role: places[n].tolist() for role, places in rest.roles.items()}
        trace = {}
        other = bert_np.bert(**twin, **model, trace=trace)
        patches = {
            Place("context", step.layer, head, position): trace
            for head in step.heads
            for position in at[step.role]
        }
        plain, patched = (
            bert_np.bert(**own, **model),
            run_patched(**own, **model, patches=patches),
        )
        logits = [
            masked_lm_logits(out["last_hidden_state"], *model.values())[
                0, at["blank"][0]
            ]
            for out in (plain, patched, other)
        ]
        right, rival = rest.words[n]
        ends.append([vector[right] - vector[rival] for vector in logits])
        probs = plain["attention_probs"][look.layer][0, look.head]
        weights.append(probs[at[look.query][0], at[look.key][0]])
    own, patched, other = np.array(ends).T
    together = (own - patched).sum() / (own - other).sum()  # other is the lower
    assert step.change["together"] == pytest.approx(together, abs=1e-4)
    assert step.turned["together"] == pytest.approx((patched < 0).mean())
    assert look.weight == pytest.approx(np.mean(weights), abs=1e-5)


def test_a_path_names_who_carries_the_difference_and_how_much():
    stands = [[1, 0, 0, 0, 0], [0.4, 0.6, 0.09, 0, 0], [0, 0, 0, 0.05, 0]]
    path = toy_circuit.describe_path(np.array(stands))
    assert path == "asked > asked 0.40 + partners 0.60 > nowhere alone"


@pytest.mark.slow
def test_the_command_compares_models(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(toy_circuit, "PASSAGES", 100)
    folder = str(PACKAGED["toy"])
    toy_circuit.main([folder, folder, "--write", str(tmp_path / "paths.json")])
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == second and first.startswith("toy: partners > ")
    written = json.loads((tmp_path / "paths.json").read_text("utf-8"))
    assert all(each["path"]["asks"].startswith("asked > ") for each in written)
