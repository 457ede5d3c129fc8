"""Patch one place after the other, and measure how the answer changes."""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import as_floats
from bert_np.analysis.patching import (
    OF_HEADS,
    STAGES,
    Place,
    check_place,
    finish_patched,
    replace_stage,
    resolve_patches,
)
from bert_np.config import require_config
from bert_np.errors import BertError, require_callable, short
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.inputs import check_inputs, require_head
from bert_np.model import bert
from bert_np.tokenizer import check_choice, check_count


class PatchGrid(NamedTuple):
    """How the answer changes with each patch."""

    change: np.ndarray  # 0: the passage's own answer, 1: the other passage's
    answers: np.ndarray  # the same grid, and B: the answer with each patch
    own: np.ndarray  # (B,): the answers without patches
    other: np.ndarray  # (B,): the answers of the other passages


def patch_grid(
    inputs,
    other_inputs,
    params,
    config,
    places,
    answer,
    *,
    report=None,
):
    """Take each place in turn from another passage, and measure the answer.

    change = sum of s (patched - own) / sum of s (other - own) over the
    passages, s = the sign of other - own: 0 if the patch changes nothing,
    1 if it brings about the whole change. It may lie outside 0..1.

    Parameters
    ----------
    inputs : dict
        The passages that are run: input_ids and, if wanted, segment_ids
        and attention_mask, each of shape (B, T), as in encode_batch(...)
        .inputs.
    other_inputs : dict
        The same for the passages whose results are patched in. The n-th
        is compared with the n-th of `inputs`; the two are the same but
        for a word or two, each token in its place.
    params : dict
    config : BertConfig
    places : nested list of Place
        A grid, such as head_places or position_places returns. In place
        of one Place there may be a tuple of several, patched together.
    answer : function
        From what ``bert`` returns to one number for each passage, (B,):
        such as logit_difference(...).
    report : function, optional
        Called with a line of text after each row of the grid.

    Returns
    -------
    PatchGrid

    Raises
    ------
    BertError
        Also if the passages are not aligned, or if both runs give the
        same answers, so that there is no change to bring about.

    Source: Vig et al. 2020 (2004.12265); Zhang & Nanda 2024 (2309.16042)
    on differences of logits as the measure.
    """
    require_callable("answer", answer)
    if report is not None:
        require_callable("report", report)
    inputs, other_inputs = _check_pair(inputs, other_inputs, config)
    (B, T), mask = inputs["input_ids"].shape, inputs["attention_mask"]
    grid = _check_grid(places, (B, T), config)
    own, other = {}, {}
    plain = bert(**inputs, params=params, config=config, trace=own)
    changed = bert(**other_inputs, params=params, config=config, trace=other)
    ends = _ask(answer, plain, B), _ask(answer, changed, B)
    _require_change(*ends)
    answers = np.zeros((len(grid), len(grid[0]), B))
    for row, cells in enumerate(grid):
        for column, cell in enumerate(cells):
            given = dict.fromkeys(cell, other)
            patches = resolve_patches(given, (B, T), params, config)
            out = _run_on(own, plain, params, mask, config, patches)
            answers[row, column] = _ask(answer, out, B)
        if report is not None:
            report(f"row {row + 1}/{len(grid)}: {len(cells)} patches")
    return PatchGrid(_shares(answers, *ends), answers, *ends)


def _run_on(trace, plain, params, mask, config, patches):
    """Run what comes after the lowest patch, on the results of a plain run."""
    first = min((0 if layer is None else layer) for layer in patches)
    before = trace["layers"][first - 1] if first else trace["embeddings"]
    x = before["output"]
    if None in patches:
        x = replace_stage(x, "embeddings", patches[None])
    probs = plain["attention_probs"][:first]
    return finish_patched(x, probs, params, mask, config, patches)


def _shares(answers, own, other):
    """Return the share of the change from own to other: (rows, columns)."""
    signs = np.sign(other - own)
    return (signs * (answers - own)).sum(axis=-1) / np.abs(other - own).sum()


def _ask(answer, out, count):
    """Return the answers, (B,) of float64, or refuse what `answer` returns."""
    given = as_floats("what answer returns", answer(out)).astype(np.float64)
    if given.shape != (count,) or not np.isfinite(given).all():
        raise BertError(
            f"answer returns an array of shape {given.shape}, allowed: ({count},), "
            "one finite number for each passage"
        )
    return given


def _require_change(own, other):
    """Refuse passages between which the answer does not change."""
    if np.array_equal(own, other):
        raise BertError(
            "answer is the same for inputs and other_inputs, allowed: passages "
            "between which it changes"
        )


def _check_pair(inputs, other_inputs, config):
    """Check two batches and that they are aligned; return both, complete."""
    require_config(config)
    names = ("input_ids", "segment_ids", "attention_mask")
    given, pair = {"inputs": inputs, "other_inputs": other_inputs}, []
    for whose, batch in given.items():
        _check_keys(whose, batch, names)
        try:
            pair.append(check_inputs(*map(batch.get, names), config))
        except BertError as error:
            raise BertError(f"{whose}: {error}") from None
    pair = [dict(zip(names, arrays)) for arrays in pair]
    for name in names:
        own, other = (batch[name] for batch in pair)
        if own.shape != other.shape:
            raise BertError(
                f"other_inputs: {name} has shape {other.shape}, allowed: {own.shape}, "
                "as in inputs; the passages must be aligned, token under token"
            )
        if name != "input_ids" and (own != other).any():
            row, place = np.argwhere(own != other)[0]
            raise BertError(
                f"other_inputs: {name}[{row}, {place}] differs from that of inputs; "
                "the passages must be aligned, token under token"
            )
    return pair


def _check_keys(whose, batch, names):
    """Refuse what is not a dict of the inputs of ``bert``."""
    allowed = "allowed: input_ids, and segment_ids and attention_mask if wanted"
    if not isinstance(batch, Mapping):
        raise BertError(f"{whose} is {type(batch).__name__}, {allowed}, in a dict")
    if "input_ids" not in batch or not batch.keys() <= {*names}:
        keys = ", ".join(map(str, batch))
        raise BertError(f"{whose} has the keys {keys}, {allowed}")


def _check_grid(places, shape, config):
    """Return the grid as rows of tuples of places, all of them checked."""
    lists = isinstance(places, (list, tuple)) and not isinstance(places, Place)
    if not lists or not all(isinstance(row, list) for row in places):
        raise BertError(f"places is {short(places)}, allowed: a list of lists of Place")
    lengths = {len(row) for row in places}
    if len(lengths) != 1 or 0 in lengths:
        raise BertError(
            f"places has rows of {sorted(lengths)} cells, allowed: one length, above 0"
        )
    grid = [
        [(cell,) if isinstance(cell, Place) else cell for cell in row] for row in places
    ]
    for cell in chain(*grid):
        if not isinstance(cell, tuple) or not cell:
            raise BertError(
                f"places holds {short(cell)}, allowed: a Place or a tuple of several"
            )
        for place in cell:
            check_place(place, shape, config)
    return grid


def head_places(config, stage="context", position=None):
    """Return the grid of all heads: one row for each layer.

    Parameters
    ----------
    config : BertConfig
    stage : str
        "context", "head_output", "probs", "q", "k" or "v".
    position : int or tuple of B int, optional
        None: at all positions.

    Returns
    -------
    list of L lists of A Place
    """
    require_config(config)
    check_choice(stage, "stage", OF_HEADS)
    return [
        [
            Place(stage, layer, head, position)
            for head in range(config.num_attention_heads)
        ]
        for layer in range(config.num_hidden_layers)
    ]


def position_places(config, length, stage="hidden"):
    """Return the grid of all positions: one row for each layer.

    Parameters
    ----------
    config : BertConfig
    length : int
        T, the number of positions.
    stage : str
        With "hidden" the first row is that of the embeddings.

    Returns
    -------
    list of L, or L + 1, lists of T Place
    """
    require_config(config)
    check_choice(stage, "stage", [name for name in STAGES if name != "embeddings"])
    positions = range(check_count(length, "length", 1, config.max_position_embeddings))
    grid = [
        [Place(stage, layer, position=position) for position in positions]
        for layer in range(config.num_hidden_layers)
    ]
    if stage == "hidden":
        grid.insert(
            0, [Place("embeddings", position=position) for position in positions]
        )
    return grid


# ----------------------------------------------------------------- answers


def logit_difference(params, config, position, word, other):
    """Return the function that compares two words as answers to a blank.

    logit of `word` - logit of `other`, from the MLM head at a position:
    above 0 where `word` is the likelier, and a change of 1 multiplies
    the ratio of their probabilities by e.

    Parameters
    ----------
    params : dict
        The whole tree, with "mlm".
    config : BertConfig
    position, word, other : int, or list of B int
        Where the blank is, and the ids of the two words; one for all
        passages or one for each.

    Returns
    -------
    function
        From what ``bert`` returns to an ndarray of shape (B,).
    """
    require_head(params, "mlm", "masked-word (MLM)")
    require_config(config)
    last = config.max_position_embeddings - 1
    position = _check_numbers("position", position, last)
    word = _check_numbers("word", word, config.vocab_size - 1)
    other = _check_numbers("other", other, config.vocab_size - 1)

    def answer(out):
        hidden = out["last_hidden_state"]
        _require_fit(hidden, position=position, word=word, other=other)
        rows = np.arange(len(hidden))
        vectors = hidden[rows, position]  # (B, H)
        logits = masked_lm_logits(vectors, params, config)  # (B, V)
        return logits[rows, word] - logits[rows, other]

    return answer


def next_sentence_difference(params):
    """Return the function that says how clearly the second text follows.

    Logit of "it is the next sentence" - logit of "it is not", from the
    NSP head.

    Parameters
    ----------
    params : dict
        The whole tree, with "pooler" and "nsp".

    Returns
    -------
    function
        From what ``bert`` returns to an ndarray of shape (B,).
    """
    require_head(params, "nsp", "next-sentence (NSP)")

    def answer(out):
        logits = next_sentence_logits(out["pooler_output"], params)
        return logits[:, 0] - logits[:, 1]

    return answer


def cosine_with(vector, attention_mask):
    """Return the function that compares each passage with a vector.

    The cosine of `vector` and the mean of the last hidden states of the
    real tokens, which is how all-MiniLM-L6-v2 makes the vector of a
    sentence. It needs no head.

    Parameters
    ----------
    vector : ndarray of shape (H,)
        Such as a row of embed_sentences.
    attention_mask : ndarray of shape (B, T)
        Of the passages that are run.

    Returns
    -------
    function
        From what ``bert`` returns to an ndarray of shape (B,), -1..1.
    """
    vector, mask = as_floats("vector", vector), as_floats("mask", attention_mask)
    if vector.ndim != 1 or not np.linalg.norm(vector) > 0:
        raise BertError(
            f"vector has shape {vector.shape}, allowed: (H,), not all of it 0"
        )
    if mask.ndim != 2 or not ((mask == 0) | (mask == 1)).all() or not mask.any(1).all():
        raise BertError(
            f"attention_mask has shape {mask.shape}, allowed: (B, T) of 0 and 1, "
            "a 1 in each row"
        )

    def answer(out):
        hidden = out["last_hidden_state"]
        if hidden.shape != (*mask.shape, *vector.shape):
            raise BertError(
                f"last_hidden_state has shape {hidden.shape}, allowed: "
                f"{(*mask.shape, *vector.shape)}, by attention_mask and vector"
            )
        total = (hidden * mask[:, :, None]).sum(axis=1)  # (B, H)
        lengths = np.linalg.norm(total, axis=-1) * np.linalg.norm(vector)
        return total @ vector / lengths

    return answer


def _check_numbers(name, numbers, most):
    """Return an int, or several as an array (B,); each from 0 to `most`."""
    rows = isinstance(numbers, (list, tuple)) or np.ndim(numbers) == 1
    checked = [
        check_count(number, name, 0, most)
        for number in (numbers if rows else [numbers])
    ]
    if not checked:
        raise BertError(f"{name} is empty, allowed: an int, or one for each passage")
    return np.array(checked) if rows else checked[0]


def _require_fit(hidden, **numbers):
    """Refuse a position beyond T, and lists that do not have B numbers."""
    B, T, _ = hidden.shape
    for name, given in numbers.items():
        if np.shape(given) not in ((), (B,)):
            raise BertError(
                f"{name} has {len(given)} numbers, allowed: one, or one for each of "
                f"the {B} passages"
            )
    if np.max(numbers["position"]) >= T:
        raise BertError(
            f"position = {np.max(numbers['position'])}, allowed: 0..{T - 1}"
        )
