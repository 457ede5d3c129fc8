"""What a model of the toy language can do, and which heads do it.

    python -m bert_np.training.toy_skills FOLDER

prints, for the model in FOLDER: the share of right answers for each skill
on held-out passages, next-sentence accuracy beside the best possible, the
distance to the grammar's exact answers, and for each head what it looks
at and what each skill loses without it.
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

AT_ONCE = 256  # passages run together
SPECIAL = (PAD, CLS, SEP)


def measure_skills(params, config, grammar, batch, probes=None):
    """The share of right answers for each skill.

    The word asked for is masked; right is the likeliest word of the whole
    vocabulary, where it is one of the probe's answers. Of agreement only
    those probes count whose nearer noun has the other number.

    Parameters
    ----------
    params : dict
    config : BertConfig
    grammar : Grammar
    batch : dict
        Passages, from sample_batch.
    probes : list of Probe, optional
        Of the batch; None: those of hard_probes.

    Returns
    -------
    dict of str to float
        Skill -> share of right answers, 0..1.
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
    """The probes of a batch that a short cut does not solve.

    Of agreement those whose nearer noun has the other number; of binding
    those whose two things come in the same colours.

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
    """The share of pairs that the NSP head judges rightly, 0..1."""
    pairs = np.flatnonzero(batch["next_labels"] != IGNORED)
    right = []
    for part in _parts(len(pairs)):
        rows = pairs[part]
        out = _run(params, config, batch["input_ids"][rows], batch, rows)
        logits = next_sentence_logits(out["pooler_output"], params)
        right.append(logits.argmax(axis=-1) == batch["next_labels"][rows])
    return float(np.concatenate(right).mean())


def mean_divergence(params, config, grammar, batch, rng, rate=0.15):
    """The mean distance, in nats, to the grammar's exact answers.

    KL = sum p log(p / q), p the exact distribution of a masked word, q
    the model's, over tokens masked at random. 0 is the best possible.

    Parameters
    ----------
    params : dict
    config : BertConfig
    grammar : Grammar
    batch : dict
    rng : numpy.random.Generator
    rate : float
        Share of the ordinary tokens that is masked.

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
    """Where each head looks, as mean attention over held-out passages.

    Parameters
    ----------
    params : dict
    config : BertConfig
    batch : dict
    probes : list of Probe

    Returns
    -------
    dict of str to ndarray of shape (L, A)
        "previous" and "separator": from every real token to the one
        before, and to the [SEP]s. "agreement", "pronoun", ...: from the
        masked word of that skill to the word that settles it. "pair": in
        "a red ball and a blue hat", from the word that settles a binding
        to its partner, the colour's thing or the thing's colour.
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
    """The place of the thing or colour beside the source; else its own."""
    tokens, ids = vocabulary(), batch["input_ids"][probe.row]
    beside = [
        at for at in (probe.source - 1, probe.source + 1) if tokens[ids[at]] in KINDS
    ]
    return beside[0] if beside else probe.source


def _mean_over_real(values, real):
    """(L, N, A, T) -> (N, L, A): the mean over each passage's real tokens."""
    weights = real / real.sum(axis=1, keepdims=True)
    return np.einsum("lnat,nt->nla", values, weights)


def _mean_previous(maps, real):
    back = np.diagonal(maps, -1, axis1=-2, axis2=-1)  # (L, N, A, T-1)
    return _mean_over_real(back, real[:, 1:])


def losses_without_heads(params, config, grammar, batch, probes):
    """What each skill loses when a head is taken away.

    Returns
    -------
    dict of str to ndarray of shape (L, A)
        Skill -> loss in share of right answers; positive: it got worse.
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
    """One passage for each probe, its word masked; and their rows."""
    rows = np.array([probe.row for probe in probes])
    ids = batch["input_ids"][rows]
    ids[np.arange(len(probes)), [probe.position for probe in probes]] = MASK
    return ids, rows


def _run(params, config, ids, batch, rows, attention=False):
    """bert on passages whose ids, perhaps masked, come from these rows."""
    return bert(
        ids,
        params,
        config,
        segment_ids=batch["segment_ids"][rows],
        attention_mask=batch["attention_mask"][rows],
        return_attention=attention,
    )


def _word_logits(params, config, ids, batch, rows, places, part):
    """The MLM logits (N, V) at one position of each passage of a part."""
    out = _run(params, config, ids[part], batch, rows[part])
    hidden = out["last_hidden_state"][np.arange(len(ids[part])), places[part]]
    return masked_lm_logits(hidden[None], params, config)[0]


def evaluate(params, config, grammar, rng, passages=12_000):
    """All figures of a model on held-out passages.

    Of 12,000 passages 9,000 are pairs: next-sentence accuracy is then
    exact to 0.1 points (one standard error). The divergence, slow to
    compute, is that of the first 500 passages.

    Returns
    -------
    dict of float
        A share for each skill; "next sentence" and "next sentence, best
        possible"; "divergence" in nats.
    """
    batch = sample_batch(rng, passages, grammar, held_out=True)
    figures = measure_skills(params, config, grammar, batch)
    figures["next sentence"] = next_sentence_accuracy(params, config, batch)
    figures["next sentence, best possible"] = next_sentence_ceiling(batch, grammar)
    some = {name: array[:500] for name, array in batch.items()}
    figures["divergence"] = mean_divergence(params, config, grammar, some, rng)
    return figures


def format_heads(habits, losses):
    """The tables of habits and losses as text, a line for each head."""
    L, A = next(iter(habits.values())).shape
    lines = ["mean attention (and loss of right answers without the head)"]
    lines.append("head   " + "".join(f"{name:>16}" for name in habits))
    for layer, head in np.ndindex(L, A):
        cells = []
        for name, values in habits.items():
            loss = f" ({losses[name][layer, head]:+.2f})" if name in losses else ""
            cells.append(f"{values[layer, head]:.2f}{loss}".rjust(16))
        lines.append(f"({layer}, {head})" + " " + "".join(cells))
    return "\n".join(lines)


def main(arguments):
    """The command line."""
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
