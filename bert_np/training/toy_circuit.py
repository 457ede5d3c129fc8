"""How a model of the toy language finds which thing has which colour.

    python -m bert_np.training.toy_circuit FOLDER [FOLDER ...]

measures each model on held-out passages such as

    anna has a red ball and a blue hat . the ball is [MASK] .

Four kinds of words play a part in them: the BLANK; the word that is ASKED
about, "ball" in the second sentence; the PARTNERS, "ball" and "hat" beside
their colours; the CANDIDATES, "red" and "blue". Each passage has two twins
whose answer is the other candidate. One ASKS about the other partner ("the
hat is [MASK]"); in the other the partners are SWAPPED ("a red hat and a
blue ball"). Patching from the twins shows where the difference stands after
each layer, which heads bring it there, and whether a head that looks at
the right word acts at all. Heads are chosen on one half of the passages;
the figures are those of the other half.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_np.analysis.patching import Place
from bert_np.analysis.sweeps import logit_difference, patch_grid
from bert_np.files.pretrained import load_pretrained
from bert_np.model import bert
from bert_np.training.toy_grammar import KINDS
from bert_np.training.toy_language import MASK, create_grammar, sample_batch
from bert_np.training.toy_skills import hard_probes

ROLES = ("asked", "partners", "candidates", "blank")
TWINS = ("asks", "swapped")
TITLES = {"asks": "that asks about the other", "swapped": "with swapped partners"}
SHARES = "share of the\nanswer's change (and of the passages whose answer turns)"
PASSAGES = 1000
ACTS = 0.1  # a head acts if alone it brings about this share of the change
# Who could look at whom: (query, key).
LOOKS = (
    ("blank", "asked"),
    ("partners", "asked"),
    ("candidates", "partners"),
    ("blank", "candidates"),
)


class Passages(NamedTuple):
    """Held-out passages with one blank each, their twins, and who is who."""

    inputs: dict  # for bert: ids with the blank masked, segments, mask
    twins: dict  # "asks", "swapped" -> the same of the twins
    roles: dict  # role -> (B, 1) or (B, 2) positions, first those of the answer
    words: np.ndarray  # (B, 2): the ids of the answer and of the twins' answer
    number: np.ndarray  # (B,): which passage; it may have several blanks


class Step(NamedTuple):
    """The heads of a layer that bring the difference to the words of a role.

    `change` and `turned` hold the share of the answer's change and the
    share of passages whose answer turns, when these come from the twin:
    the output there of each head, by its number; "together", of all of
    them; "others", of the layer's other heads; "elsewhere", of the same
    heads at all other words; "looks", the attention that they pay there;
    "values", what they could fetch, at all words.
    """

    twin: str
    layer: int
    role: str
    heads: tuple
    change: dict
    turned: dict


class Look(NamedTuple):
    """The head that looks most from one role at another, and what it does.

    `change` and `turned` are those of Step, when its output at the query
    comes from each twin.
    """

    query: str
    key: str
    layer: int
    head: int
    weight: float  # its mean attention
    largest: float  # the share of rows in which no key gets more
    change: dict
    turned: dict


class Circuit(NamedTuple):
    """Where the difference stands, who brings it there, who looks."""

    right: dict  # "own", "asks", "swapped" -> share of right answers
    stands: dict  # twin -> (L + 1, 5): change by embeddings and layers, by role
    turned: dict  # the same: the share of passages whose answer turns
    steps: list  # of Step, by twin, layer and role, where heads act
    looks: list  # of Look, one for each of LOOKS


# ------------------------------------------------------------- the passages


def binding_passages(rng, count, grammar=None):
    """Draw held-out passages in which either candidate could be the answer.

    Parameters
    ----------
    rng : numpy.random.Generator
    count : int
        How many passages are drawn. Of equal ones one is kept; each blank
        of a passage gives one entry.
    grammar : Grammar, optional
        By default the toy language, reduced to passages of two things.

    Returns
    -------
    Passages
    """
    grammar = create_grammar({"binding": 1.0}) if grammar is None else grammar
    batch = sample_batch(rng, count, grammar, held_out=True)
    _, kept = np.unique(batch["input_ids"], axis=0, return_index=True)
    batch = {name: array[kept] for name, array in batch.items()}
    probes = [p for p in hard_probes(batch, grammar) if p.skill == "binding"]
    rows = np.array([probe.row for probe in probes])
    names = ("input_ids", "segment_ids", "attention_mask")
    inputs = {name: batch[name][rows] for name in names}
    words = inputs["input_ids"]
    places = [_who_is_who(*pair, grammar) for pair in zip(probes, words)]
    roles = {role: np.array([place[role] for place in places]) for role in ROLES}

    def changed(role, new):
        """The inputs with the blank masked and the words of one role new."""
        ids = words.copy()
        np.put_along_axis(ids, roles["blank"], MASK, axis=1)
        np.put_along_axis(ids, roles[role], new, axis=1)
        return inputs | {"input_ids": ids}

    partners = np.take_along_axis(words, roles["partners"], axis=1)
    return Passages(
        changed("blank", MASK),
        {
            "asks": changed("asked", partners[:, 1:]),
            "swapped": changed("partners", partners[:, ::-1]),
        },
        roles,
        np.take_along_axis(words, roles["candidates"], axis=1),
        rows,
    )


def _who_is_who(probe, ids, grammar):
    """The positions of each role in one passage."""

    def partner(place):
        beside = (place - 1, place + 1)
        (found,) = (i for i in beside if grammar.tokens[ids[i]] in KINDS)
        return found

    own, other = partner(probe.source), partner(probe.distractor)
    (asked,) = (i for i in np.flatnonzero(ids == ids[own]) if i != own)
    return {
        "asked": [asked],
        "partners": [own, other],
        "candidates": [probe.source, probe.distractor],
        "blank": [probe.position],
    }


def select(passages, keep):
    """Return the entries for which `keep`, (B,) of bool, is true."""
    inputs, *twins = (
        {name: array[keep] for name, array in given.items()}
        for given in (passages.inputs, *passages.twins.values())
    )
    roles = {role: places[keep] for role, places in passages.roles.items()}
    twins = dict(zip(passages.twins, twins))
    return Passages(inputs, twins, roles, passages.words[keep], passages.number[keep])


# ------------------------------------------------------------- the circuit


def measure_circuit(passages, params, config):
    """Find where the question and the colours stand, and which heads act.

    Heads are chosen on the passages of even number; all figures are
    those of the others. "asks" and "swapped" name the twins: see the top
    of this module. After the embeddings the difference stands at the
    words that differ, and after the last layer at the blank, by design:
    what lies between is found.

    Parameters
    ----------
    passages : Passages
    params : dict
    config : BertConfig

    Returns
    -------
    Circuit
    """
    search, rest = (select(passages, passages.number % 2 == n) for n in (0, 1))
    given, steps = (params, config), []
    for twin in TWINS:
        acts = _change_by_head(search, twin, *given) >= ACTS  # (L, roles, A)
        for layer, role in np.argwhere(acts.any(axis=2)).tolist():
            heads = tuple(np.flatnonzero(acts[layer, role]).tolist())
            step = twin, layer, ROLES[role], heads
            steps.append(Step(*step, *_measure_step(rest, *step, *given)))
    maps = [_attention(half, *given) for half in (search, rest)]
    looks = [_measure_look(search, rest, maps, look, *given) for look in LOOKS]
    stands = {twin: _stands(rest, twin, *given) for twin in TWINS}
    right = {twin: (grid.other < 0).mean() for twin, grid in stands.items()}
    return Circuit(
        {"own": (stands["asks"].own > 0).mean()} | right,
        {twin: grid.change for twin, grid in stands.items()},
        {twin: _turned(grid) for twin, grid in stands.items()},
        steps,
        looks,
    )


def _turned(grid):
    """The share of passages in which a patch makes the rival the likelier."""
    return (grid.answers < 0).mean(axis=-1)


def _places(stage, layer, head, positions):
    """One Place for each column of positions (B, k)."""
    return tuple(
        Place(stage, layer, head, tuple(column)) for column in positions.T.tolist()
    )


def _all_but(passages, *roles):
    """The positions (B, T - k) that none of these roles has."""
    free = np.ones(passages.inputs["input_ids"].shape, bool)
    for role in roles:
        np.put_along_axis(free, passages.roles[role], False, axis=1)
    return np.nonzero(free)[1].reshape(len(free), -1)


def _patch(passages, twin, grid, params, config):
    """patch_grid from a twin; the answer compares the two candidates."""
    blank, (right, rival) = passages.roles["blank"][:, 0], passages.words.T
    answer = logit_difference(params, config, blank, right, rival)
    return patch_grid(
        passages.inputs, passages.twins[twin], params, config, grid, answer
    )


def _stands(passages, twin, params, config):
    """Patch the hidden states of each role, and of all other words."""
    spots = [*passages.roles.values(), _all_but(passages, *ROLES)]
    stages = [("hidden", layer) for layer in range(config.num_hidden_layers)]
    grid = [
        [_places(stage, layer, None, spot) for spot in spots]
        for stage, layer in [("embeddings", None), *stages]
    ]
    return _patch(passages, twin, grid, params, config)


def _change_by_head(passages, twin, params, config):
    """The change that each head alone brings to each role: (L, roles, A)."""
    layers, heads = range(config.num_hidden_layers), range(config.num_attention_heads)
    grid = [
        [_places("context", layer, head, spot) for head in heads]
        for layer in layers
        for spot in passages.roles.values()
    ]
    change = _patch(passages, twin, grid, params, config).change
    return change.reshape(len(layers), len(ROLES), len(heads))


def _measure_step(passages, twin, layer, role, heads, params, config):
    """The changes by the heads found, and by their controls; who turns."""
    at, away = passages.roles[role], _all_but(passages, role)
    others = set(range(config.num_attention_heads)) - set(heads)

    def of(heads, spots, stage="context"):
        return sum((_places(stage, layer, head, spots) for head in heads), ())

    cells = {head: of([head], at) for head in heads}
    cells |= {"together": of(heads, at), "others": of(others, at)}
    cells |= {"elsewhere": of(heads, away), "looks": of(heads, at, "probs")}
    cells |= {"values": tuple(Place("v", layer, head) for head in heads)}
    cells = {name: cell for name, cell in cells.items() if cell}
    grid = _patch(passages, twin, [list(cells.values())], params, config)
    return [dict(zip(cells, row[0].tolist())) for row in (grid.change, _turned(grid))]


def _attention(passages, params, config):
    """All maps of the passages, (L, B, A, T, T)."""
    out = bert(**passages.inputs, params=params, config=config)
    return np.stack(out["attention_probs"])


def _rows(maps, passages, query, key):
    """Rows of the query, and the weight of its key: (L, A, N, T), (L, A, N)."""
    pairs = list(zip(passages.roles[query].T, passages.roles[key].T))
    n = np.arange(maps.shape[1])
    rows = [maps[:, n, :, at].transpose(1, 2, 0, 3) for at, _ in pairs]
    weights = [row[:, :, n, to] for row, (_, to) in zip(rows, pairs)]
    return np.concatenate(rows, axis=2), np.concatenate(weights, axis=2)


def _measure_look(search, rest, maps, look, params, config):
    """Find the head that looks most, and measure what it does."""
    _, weights = _rows(maps[0], search, *look)
    mean = weights.mean(axis=-1)  # (L, A)
    layer, head = (int(i) for i in np.unravel_index(mean.argmax(), mean.shape))
    rows, weights = (values[layer, head] for values in _rows(maps[1], rest, *look))
    largest = (weights >= rows.max(axis=-1)).mean()
    places = [[_places("context", layer, head, rest.roles[look[0]])]]
    grids = {twin: _patch(rest, twin, places, params, config) for twin in TWINS}
    change = {twin: float(grid.change[0, 0]) for twin, grid in grids.items()}
    turned = {twin: float(_turned(grid)[0, 0]) for twin, grid in grids.items()}
    means = float(weights.mean()), float(largest)
    return Look(*look, layer, head, *means, change, turned)


# ------------------------------------------------------------------- a text


def format_circuit(circuit):
    """Return the tables of a circuit as text."""
    own, asks, swapped = (f"{share:.0%}" for share in circuit.right.values())
    lines = [f"right answers: {own}; to the twins: {asks} asks, {swapped} swapped"]
    for twin in TWINS:
        lines += [f"\nhidden states from the twin {TITLES[twin]}: {SHARES}"]
        lines += _table(circuit.stands[twin], circuit.turned[twin])
    lines += [f"\nheads that act, their outputs from a twin: {SHARES}"]
    lines += [line for step in circuit.steps for line in _describe_step(step)]
    lines += [f"\nheads that look, outputs at these words from each twin: {SHARES}"]
    lines += map(_describe_look, circuit.looks)
    return "\n".join(lines)


def _cell(change, turned):
    """A share of the change, and in brackets that of the answers that turn."""
    return f"{round(change, 2) + 0.0:.2f} ({turned:.2f})"


def _table(stands, turned):
    """Lines with a row for each layer and a column for each role."""
    yield " " * 11 + "".join(f"{role:>15}" for role in (*ROLES, "elsewhere"))
    for i, row in enumerate(zip(stands, turned)):
        name = f"layer {i - 1}" if i else "embeddings"
        yield f"{name:11}" + "".join(f"{_cell(*cell):>15}" for cell in zip(*row))


def _describe_step(step):
    """Lines about the heads of one layer, beside their controls."""
    titles = {head: f"head {head}" for head in step.heads}
    titles |= {"together": "together"} if len(step.heads) > 1 else {}
    titles |= {"others": "other heads there", "elsewhere": "these heads elsewhere"}
    titles |= {"looks": "where they look", "values": "what they fetch"}
    yield f"{step.twin}, layer {step.layer}, {step.role}"
    for name, title in titles.items():
        if name in step.change:
            yield f"    {title:22}{_cell(step.change[name], step.turned[name])}"


def _describe_look(look):
    """A line about a head that looks, and what it does."""
    asks, swapped = (_cell(look.change[t], look.turned[t]) for t in TWINS)
    return (
        f"{look.query + ' at ' + look.key:24} ({look.layer}, {look.head}) weight "
        f"{look.weight:.2f}, the largest in {look.largest:4.0%}: asks {asks}, "
        f"swapped {swapped}"
    )


def describe_path(stands):
    """Return in one line which words carry the difference, layer by layer.

    Parameters
    ----------
    stands : array of shape (L + 1, 5)
        Of one twin, from a Circuit.

    Returns
    -------
    str
        Such as "asked > asked > blank 0.98 > blank"; a share is written
        where it is not that of all, and left out below 0.1.
    """
    parts = []
    for row in stands:
        found = [
            role if share >= 0.995 else f"{role} {share:.2f}"
            for role, share in zip((*ROLES, "elsewhere"), row)
            if share >= ACTS
        ]
        parts.append(" + ".join(found) or "nowhere alone")
    return " > ".join(parts)


def describe_heads(circuit):
    """Return {twin: the heads that act, by layer and role} as texts."""
    return {
        twin: "; ".join(
            f"{step.role} by {', '.join(f'({step.layer}, {h})' for h in step.heads)}"
            for step in circuit.steps
            if step.twin == twin
        )
        for twin in TWINS
    }


def summarise_circuit(name, circuit):
    """Return the paths and the heads of one model as a dict for JSON."""
    paths = {twin: describe_path(circuit.stands[twin]) for twin in TWINS}
    return {"model": name, "path": paths, "heads": describe_heads(circuit)}


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, help="a JSON file for the paths")
    options = parser.parse_args(arguments)
    passages, summaries = binding_passages(np.random.default_rng(1), PASSAGES), []
    odd = int((passages.number % 2).sum())
    print(f"{odd} blanks; heads are chosen on {len(passages.number) - odd} others")
    for folder in options.folders:
        params, config, _ = load_pretrained(folder)
        circuit = measure_circuit(passages, params, config)
        summaries.append(summarise_circuit(folder.name, circuit))
        print(f"\n== {folder}\n{format_circuit(circuit)}", flush=True)
    for twin in TWINS:
        print(f"\n== which words carry the difference from the twin {TITLES[twin]}")
        for each in summaries:
            print(f"{each['model']}: {each['path'][twin]}  [{each['heads'][twin]}]")
    if options.write:
        options.write.write_text(json.dumps(summaries, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
