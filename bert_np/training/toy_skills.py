"""What a model of the toy language can do, and which heads do it.

    python -m bert_np.training.toy_skills FOLDER

measures the model in FOLDER on held-out passages. It prints the accuracy
of each skill, the next-sentence accuracy beside the best possible one, the
distance from the exact answers of the grammar, and for each head what it
attends to and how much each skill loses without it.
"""

import sys

import numpy as np

from bert_np.analysis import without_head
from bert_np.files.pretrained import load_pretrained
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import bert
from bert_np.training.toy_grammar import KINDS
from bert_np.training.toy_language import (
    CLS,
    IGNORED,
    MASK,
    PAD,
    SEP,
    create_grammar,
    exact_distribution,
    find_probes,
    next_sentence_ceiling,
    sample_batch,
    vocabulary,
)

AT_ONCE = 256  # passages that run together
SPECIAL = (PAD, CLS, SEP)


def measure_skills(params, config, grammar, batch, probes=None):
    """Measure the accuracy of each skill.

    Each probe masks one word. The model is right if the most probable
    word of the whole vocabulary is one of the probe's answers.

    Parameters
    ----------
    params : dict
    config : BertConfig
    grammar : Grammar
    batch : dict
        Passages, from sample_batch.
    probes : list of Probe, optional
        Probes of the batch. None: its hard_probes.

    Returns
    -------
    dict of str to float
        Skill -> accuracy, 0..1.
    """
    probes = hard_probes(batch, grammar) if probes is None else probes
    ids, rows = _mask_probes(batch, probes)
    places = np.array([probe.position for probe in probes])
    guesses = np.concatenate(
        [
            _word_logits(params, config, ids, batch, rows, places, part).argmax(axis=-1)
            for part in _parts(len(probes))
        ]
    )
    right = np.array([g in probe.answers for g, probe in zip(guesses, probes)])
    skills = np.array([probe.skill for probe in probes])
    return {
        skill: float(right[skills == skill].mean())
        for skill in sorted({probe.skill for probe in probes})
    }


def hard_probes(batch, grammar):
    """Return the probes of a batch that no shortcut solves.

    For agreement, those in which the nearer noun has the other number. For
    binding, those in which both things could have both colours.

    Parameters
    ----------
    batch : dict
    grammar : Grammar

    Returns
    -------
    list of Probe
    """

    def is_hard(probe):
        source, distractor = (
            grammar.tokens[batch["input_ids"][probe.row, place]]
            for place in (probe.source, probe.distractor)
        )
        if probe.skill == "agreement":
            return source.endswith("s") != distractor.endswith("s")
        return probe.skill != "binding" or KINDS[source] == KINDS[distractor]

    return [probe for probe in find_probes(batch, grammar) if is_hard(probe)]


def next_sentence_accuracy(params, config, batch):
    """Return the fraction of pairs that the NSP head gets right, 0..1."""
    pairs = np.flatnonzero(batch["next_labels"] != IGNORED)
    right = []
    for part in _parts(len(pairs)):
        rows = pairs[part]
        out = _run(params, config, batch["input_ids"][rows], batch, rows)
        logits = next_sentence_logits(out["pooler_output"], params)
        right.append(logits.argmax(axis=-1) == batch["next_labels"][rows])
    return float(np.concatenate(right).mean())


def mean_divergence(params, config, grammar, batch, rng, rate=0.15):
    """Return the mean distance from the exact answers of the grammar.

    KL = sum p log(p / q) in nats, with p the exact distribution of a
    masked word and q the model's. The mean is over tokens masked at
    random; 0 is the best possible.

    Parameters
    ----------
    params : dict
    config : BertConfig
    grammar : Grammar
    batch : dict
    rng : numpy.random.Generator
    rate : float
        The probability with which an ordinary token is masked.

    Returns
    -------
    float
    """
    ids = batch["input_ids"]
    chosen = (rng.random(ids.shape) < rate) & ~np.isin(ids, SPECIAL)
    ids = np.where(chosen, MASK, ids)
    rows, places = np.nonzero(chosen)
    exact = np.concatenate(
        [exact_distribution(ids[row], grammar) for row in np.unique(rows)]
    )
    logits = np.concatenate(
        [
            _word_logits(params, config, ids[rows], batch, rows, places, part)
            for part in _parts(len(rows))
        ]
    ).astype(np.float64)
    log_q = np.log(softmax(logits))
    log_p = np.log(np.where(exact > 0, exact, 1))  # p log p is 0 where p is 0
    return float((exact * (log_p - log_q)).sum(axis=-1).mean())


# ---------------------------------------------------------------- heads


def head_habits(params, config, batch, probes):
    """Measure what each head attends to, averaged over passages.

    Parameters
    ----------
    params : dict
    config : BertConfig
    batch : dict
    probes : list of Probe

    Returns
    -------
    dict of str to ndarray of shape (L, A)
        "previous" and "separator": attention from every real token to the
        token before it, and to the [SEP]s. "agreement", "pronoun", ...:
        from the masked word of that skill to the word that determines it.
        "pair": in "a red ball and a blue hat", from the word that
        determines a binding to its partner, the other word of colour and
        thing.
    """
    ids, rows = _mask_probes(batch, probes)
    skills = np.array([probe.skill for probe in probes])
    spots = np.array([(p.position, p.source, _partner(p, batch)) for p in probes])
    looks = {"previous": [], "separator": [], "source": [], "partner": []}
    for part in _parts(len(probes)):
        out = _run(params, config, ids[part], batch, rows[part], attention=True)
        maps = np.stack(out["attention_probs"])  # (L, N, A, T, T)
        real, n = ids[part] != PAD, np.arange(len(maps[0]))
        asked, source, partner = spots[part].T
        to_sep = (maps * (ids[part] == SEP)[:, None, None, :]).sum(axis=-1)
        looks["previous"].append(_mean_previous(maps, real))
        looks["separator"].append(_mean_over_real(to_sep, real))
        looks["source"].append(maps[:, n, :, asked, source])  # (N, L, A)
        looks["partner"].append(maps[:, n, :, source, partner])
    looks = {name: np.concatenate(parts) for name, parts in looks.items()}
    habits = {name: looks[name].mean(axis=0) for name in ("previous", "separator")}
    for skill in np.unique(skills):
        habits[str(skill)] = looks["source"][skills == skill].mean(axis=0)
    if "binding" in habits:
        habits["pair"] = looks["partner"][skills == "binding"].mean(axis=0)
    return habits


def _partner(probe, batch):
    """Return the position of the source's colour or thing; else its own."""
    tokens, ids = vocabulary(), batch["input_ids"][probe.row]
    beside = [
        at for at in (probe.source - 1, probe.source + 1) if tokens[ids[at]] in KINDS
    ]
    return beside[0] if beside else probe.source


def _mean_over_real(values, real):
    """Average (L, N, A, T) over the real tokens of each passage: (N, L, A)."""
    weights = real / real.sum(axis=1, keepdims=True)
    return np.einsum("lnat,nt->nla", values, weights)


def _mean_previous(maps, real):
    back = np.diagonal(maps, -1, axis1=-2, axis2=-1)  # (L, N, A, T-1)
    return _mean_over_real(back, real[:, 1:])


def losses_without_heads(params, config, grammar, batch, probes):
    """Measure how much accuracy each skill loses without each head.

    Returns
    -------
    dict of str to ndarray of shape (L, A)
        Skill -> accuracy with the head minus accuracy without it.
    """
    whole = measure_skills(params, config, grammar, batch, probes)
    L, A = config.num_hidden_layers, config.num_attention_heads
    losses = {skill: np.zeros((L, A)) for skill in whole}
    for layer, head in np.ndindex(L, A):
        ablated = without_head(params, config, layer, head)
        for skill, right in measure_skills(
            ablated, config, grammar, batch, probes
        ).items():
            losses[skill][layer, head] = whole[skill] - right
    return losses


# --------------------------------------------------------------- the rest


def _parts(count):
    return [slice(i, i + AT_ONCE) for i in range(0, count, AT_ONCE)]


def _mask_probes(batch, probes):
    """Return one passage for each probe, with its word masked, and its row."""
    rows = np.array([probe.row for probe in probes])
    ids = batch["input_ids"][rows]
    ids[np.arange(len(probes)), [probe.position for probe in probes]] = MASK
    return ids, rows


def _run(params, config, ids, batch, rows, attention=False):
    """Run bert on ids, perhaps masked, that come from these rows of a batch."""
    return bert(
        ids,
        params,
        config,
        segment_ids=batch["segment_ids"][rows],
        attention_mask=batch["attention_mask"][rows],
        return_attention=attention,
    )


def _word_logits(params, config, ids, batch, rows, places, part):
    """Return the MLM logits (N, V) at one position of each passage of a part."""
    out = _run(params, config, ids[part], batch, rows[part])
    hidden = out["last_hidden_state"][np.arange(len(ids[part])), places[part]]
    return masked_lm_logits(hidden[None], params, config)[0]


def evaluate(params, config, grammar, rng, passages=12_000):
    """Measure everything about a model on held-out passages.

    Of 12,000 passages 9,000 are pairs, so the standard error of the
    next-sentence accuracy is 0.1 points. The divergence is slow to
    compute, so only the first 500 passages count.

    Returns
    -------
    dict of float
        The accuracy of each skill; "next sentence" and "next sentence,
        best possible"; "divergence" in nats.
    """
    batch = sample_batch(rng, passages, grammar, held_out=True)
    figures = measure_skills(params, config, grammar, batch)
    figures["next sentence"] = next_sentence_accuracy(params, config, batch)
    figures["next sentence, best possible"] = next_sentence_ceiling(batch, grammar)
    some = {name: array[:500] for name, array in batch.items()}
    figures["divergence"] = mean_divergence(params, config, grammar, some, rng)
    return figures


def format_skills(step, right):
    """Return a line with the accuracy of each skill after a step.

    >>> format_skills(1200, {"copy": 1.0, "order": 0.914})
    'skills after step 1,200: copy 100%  order 91%'
    """
    skills = "  ".join(f"{name} {value:.0%}" for name, value in right.items())
    return f"skills after step {step:,}: {skills}"


def format_heads(habits, losses):
    """Return the tables of habits and losses as text, one line per head."""
    L, A = next(iter(habits.values())).shape
    lines = ["mean attention (and accuracy lost without the head)"]
    lines.append("head   " + "".join(f"{name:>16}" for name in habits))
    for layer, head in np.ndindex(L, A):
        cells = []
        for name, values in habits.items():
            loss = f" ({losses[name][layer, head]:+.2f})" if name in losses else ""
            cells.append(f"{values[layer, head]:.2f}{loss}".rjust(16))
        lines.append(f"({layer}, {head})" + " " + "".join(cells))
    return "\n".join(lines)


def main(arguments):
    """Run the command line."""
    params, config, _ = load_pretrained(arguments[0])
    grammar, rng = create_grammar(), np.random.default_rng(1)
    for name, value in evaluate(params, config, grammar, rng).items():
        print(f"{name:30} {value:.4f}")
    batch = sample_batch(rng, 1000, grammar, held_out=True)
    probes = hard_probes(batch, grammar)
    losses = losses_without_heads(params, config, grammar, batch, probes)
    print(format_heads(head_habits(params, config, batch, probes), losses))


if __name__ == "__main__":
    main(sys.argv[1:])
