"""Sentences to try, each with the head that shows what it is about."""

import numpy as np

from bert_np.training.losses import IGNORED
from bert_np.training.toy_language import (
    MASK,
    create_grammar,
    sample_batch,
    to_texts,
)
from bert_np.training.toy_skills import hard_probes, head_habits

PASSAGES = 200  # from which the examples and their heads are taken
# What each skill of the toy language asks, in words.
QUESTIONS = {
    "agreement": "The verb agrees with a noun that is not the nearest one.",
    "pronoun": "The pronoun stands for the person named before it.",
    "copy": "The word has appeared before.",
    "binding": "The colour belongs to one of two things.",
    "order": "Who did it, and to whom?",
}
# For a model of real English.
GENERAL = [
    {
        "name": "it",
        "hint": "What does the pronoun look at?",
        "text": "The cat sat because it was tired.",
    },
    {
        "name": "a blank",
        "hint": "Which word does a model with an MLM head put there?",
        "text": "The capital of France is [MASK].",
    },
    {
        "name": "a pair",
        "hint": "Two sentences, with [SEP] between them.",
        "text": "Where is the key?",
        "pair": "I left it on the table.",
    },
]


def toy_examples(model):
    """Choose held-out sentences of the toy language, one for each skill.

    The first chosen cell is that of the head which, on average over many
    passages, looks most from the masked word to the word that settles it.
    Short passages come first.

    Parameters
    ----------
    model : Pretrained
        The toy.

    Returns
    -------
    list of dict
        What the page starts with: name, hint, text, pair, layer, head,
        query, key.
    """
    grammar = create_grammar()
    batch = sample_batch(np.random.default_rng(0), PASSAGES, grammar, held_out=True)
    probes = hard_probes(batch, grammar)
    habits = head_habits(model.params, model.config, batch, probes)
    examples = []
    for skill in QUESTIONS:
        asked = [probe for probe in probes if probe.skill == skill]
        probe = min(asked, key=lambda probe: place_in_line(batch, probe.row))
        layer, head = np.unravel_index(habits[skill].argmax(), habits[skill].shape)
        place = {"layer": int(layer), "head": int(head)}
        place |= {"query": int(probe.position), "key": int(probe.source)}
        examples.append(toy_example(probe, batch, grammar) | place)
    return examples + pair_examples(batch, grammar)


def place_in_line(batch, row):
    """Rank a passage: single texts before pairs, then short ones first."""
    return batch["next_labels"][row] != IGNORED, batch["attention_mask"][row].sum()


def toy_example(probe, batch, grammar):
    """Return the name, hint and text of one example with its [MASK]."""
    ids = batch["input_ids"][probe.row].copy()
    ids[probe.position] = MASK
    allowed = " or ".join(grammar.tokens[i] for i in probe.answers[:4])
    texts = name_texts(ids, grammar)
    hint = f"{QUESTIONS[probe.skill]} The toy language allows: {allowed}."
    return {"name": probe.skill, "hint": hint, **texts}


def pair_examples(batch, grammar):
    """Return one pair of texts that belong together and one that do not."""
    examples = []
    for label, name in enumerate(("a pair", "a random pair")):
        row = int(np.flatnonzero(batch["next_labels"] == label)[0])
        hint = "Does the second sentence follow the first?"
        texts = name_texts(batch["input_ids"][row], grammar)
        examples.append({"name": name, "hint": hint, **texts})
    return examples


def name_texts(ids, grammar):
    """Return one row of ids as the two texts of the page."""
    text, pair = to_texts([ids], grammar)[0]
    return {"text": text, "pair": pair or ""}
