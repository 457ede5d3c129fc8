"""The forward pass of one sentence, stage by stage."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bert_np.analysis.checks import as_floats
from bert_np.analysis.flow import logit_lens, top_words
from bert_np.errors import BertError, require_bool
from bert_np.plotting.checks import check_integer, list_texts
from bert_np.plotting.explorer import load_model
from bert_np.plotting.html import write_page
from bert_np.plotting.labels import token_text
from bert_np.plotting.stage_texts import (
    FOLDED_NAME,
    FOLDED_SENTENCE,
    LENS,
    PARTS,
    STAGE_TEXTS,
)
from bert_np.plotting.step_pages import stage_html, steps_html
from bert_np.plotting.step_texts import stage_text
from bert_np.tree import leaves

LONGEST = 12  # characters of a token
BEST = 3  # words named for each row of the MLM logits


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of the forward pass; ``print`` it, or end a cell with it.

    Attributes
    ----------
    number : int
        Its place in the whole sequence.
    path : str
        Its place in the trace, such as "layers.0.attention.q".
    part : str
        "Embeddings", "Layer 0", ...
    name, sentence, equation : str
        What it is called, does and computes.
    shape : str
        The axes of the array in the trace, and what is shown of it.
    values : ndarray of shape (R, C), read-only
        The numbers shown: a row for each token, or one row.
    masked : bool ndarray of shape (R, C)
        True if a number only says that the key is masked.
    rows, columns : tuple of str
        What the rows and columns are called.
    notes : tuple of str
        What must be known about the remarks.
    remarks : tuple of str
        One for each row, or none: the likeliest words, or where each
        head looks.
    repeats : str
        The earlier stage that has the same numbers, if there is one.
    folded : bool
        Whether it stands for a whole layer.
    """

    number: int
    path: str
    part: str
    name: str
    sentence: str
    equation: str
    shape: str
    values: np.ndarray
    masked: np.ndarray
    rows: tuple
    columns: tuple
    notes: tuple
    remarks: tuple
    repeats: str
    folded: bool

    def __str__(self):
        return stage_text(self)

    __repr__ = __str__

    def _repr_html_(self):
        return stage_html(self)


class Steps(tuple):
    """The stages in the order of computation: a tuple of Stage.

    ``steps[3]`` is a stage, ``steps[3:6]`` and ``steps[::-1]`` are Steps
    again. ``print`` them, or end a cell with them.
    """

    __slots__ = ()

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return Steps(found) if isinstance(index, slice) else found

    def __str__(self):
        return "\n\n".join(map(str, self))

    __repr__ = __str__

    def _repr_html_(self):
        return steps_html(self)

    def save(self, path):
        """Write a page that needs no network and no notebook.

        Parameters
        ----------
        path : str or path-like
            Such as "steps.html".

        Returns
        -------
        Path
        """
        return write_page(path, "The forward pass", steps_html(self))


class Choice(NamedTuple):
    """Which part of a trace is shown."""

    row: int
    layers: tuple
    head: int
    keep: np.ndarray  # the positions shown
    labels: tuple  # one for each of them
    length: int  # T, padding included
    vocabulary: list | None
    guesses: dict  # path of a stage -> one remark for each position shown


def step_through(
    trace,
    tokens=None,
    *,
    row=0,
    layers=0,
    head=0,
    crop=True,
    input_ids=None,
    vocabulary=None,
    model=None,
):
    """Show the forward pass of one sentence as a sequence of stages.

    Where scripts run, a player goes through the stages one by one, by
    button or key, and follows one token: its row, where each head looks
    from it, and what the model guesses there so far.

    Parameters
    ----------
    trace : dict
        Filled by ``bert(..., trace=trace)``, and by the heads if they
        ran.
    tokens : list of T str, optional
        The tokens of that row of the batch, padding included.
    row : int
        The sentence: its row in the batch, 0..B-1.
    layers : int or list of int
        The layers to show in detail; each of the others is a single
        stage, its output.
    head : int
        The head to show, 0..A-1.
    crop : bool
        Leave out padding, which is known from the masked scores.
    input_ids : ndarray of shape (B, T) or (T,), optional
        Adds a first stage, the ids.
    vocabulary : list of V str, optional
        Names the words in the MLM logits, such as ``tokenizer.tokens``.
    model : str or (params, config, tokenizer), optional
        The model that filled the trace, with its MLM head. Adds to the
        embeddings and to each layer the words that the head reads there
        (see `logit_lens`), and names the words in the MLM logits.

    Returns
    -------
    Steps
        Stages in the order of computation. In a notebook it shows itself
        as HTML, printed as text of at most 100 columns.
    """
    arrays = known_arrays(trace)
    if model is not None:
        model = load_model(model)
        vocabulary = vocabulary or list(model[2].tokens)
    choice = choose(arrays, tokens, row, layers, head, crop, vocabulary)
    if model is not None:
        choice = choice._replace(guesses=guesses_by_stage(trace, model, choice))
    if input_ids is not None:
        arrays = {"input_ids": one_row(input_ids, choice), **arrays}
    shown = [path for path in arrays if is_shown(path, choice.layers)]
    stages = []
    for path in shown:
        stage = make_stage(len(stages), path, arrays[path], choice)
        stages.append(mark_repeated(stage, stages))
    return Steps(stages)


def known_arrays(trace):
    """Return a trace as {path: array}."""
    if not isinstance(trace, dict):
        raise BertError(
            f"trace is a {type(trace).__name__}, "
            "allowed: the dict that bert(..., trace=trace) has filled"
        )
    arrays = {path: known_array(path, values) for path, values in leaves(trace)}
    if not arrays:
        raise BertError(
            "trace is empty, allowed: one that bert(..., trace=trace) has filled"
        )
    return arrays


def known_array(path, values):
    """Return one stage of a trace as an array."""
    text = STAGE_TEXTS.get(key_of(path))
    if text is None or path == "input_ids":
        raise BertError(
            f"trace has {path!r}, which is no stage of the model; "
            "allowed: what bert(..., trace=trace) has filled"
        )
    array = as_floats(f"trace: {path}", values)
    axes = text.axes.split()
    if array.ndim != len(axes):
        raise BertError(
            f"trace: {path} has shape {array.shape}, expected ({', '.join(axes)})"
        )
    if 0 in array.shape:
        raise BertError(f"trace: {path} has shape {array.shape}: nothing to show")
    return array


def key_of(path):
    """Return the key of STAGE_TEXTS for a path.

    >>> key_of("layers.11.attention.q")
    'layers.attention.q'
    """
    return re.sub(r"^layers\.\d+", "layers", path)


def layer_of(path):
    """Return the number of the layer of a path, or None."""
    match = re.match(r"layers\.(\d+)\.", path)
    return int(match[1]) if match else None


def is_shown(path, layers):
    """Return whether a stage is shown: of other layers only the output is."""
    layer = layer_of(path)
    return layer is None or layer in layers or path == f"layers.{layer}.output"


def choose(arrays, tokens, row, layers, head, crop, vocabulary):
    """Check what the caller asks for against the sizes of the trace."""
    sizes = {}
    for path, array in arrays.items():
        for letter, size in zip(STAGE_TEXTS[key_of(path)].axes.split(), array.shape):
            sizes.setdefault(letter, size)
    last = max((layer_of(path) or 0 for path in arrays), default=0)
    check_integer("row", row, 0, sizes.get("B", 1) - 1)
    check_integer("head", head, 0, sizes.get("A", 1) - 1)
    several = np.iterable(layers) and not isinstance(layers, (str, bytes))
    layers = tuple(layers) if several else (layers,)
    for layer in layers:
        check_integer("layers", layer, 0, last)
    length = sizes.get("T", 1)
    if tokens is not None:
        tokens = list_texts("tokens", tokens, length, "position of the trace")
    require_bool("crop", crop)
    check_word_names(vocabulary, sizes.get("V"))
    keep = np.flatnonzero(real_positions(arrays, row, length) | (not crop))
    labels = tuple(
        f"{i} {token_text(tokens[i], LONGEST)}" if tokens else f"{i}" for i in keep
    )
    return Choice(row, layers, head, keep, labels, length, vocabulary, {})


def check_word_names(vocabulary, size):
    """Check that the names of words fit the logits."""
    if vocabulary is None:
        return
    if not isinstance(vocabulary, (list, tuple)):
        raise BertError(
            f"vocabulary is a {type(vocabulary).__name__}, expected a list of str"
        )
    if size is not None and len(vocabulary) > size:
        raise BertError(
            f"vocabulary has {len(vocabulary)} entries, "
            f"but the logits are over {size} words"
        )


def real_positions(arrays, row, length):
    """Mark the visible keys; all, if the trace has no mask or masks every key."""
    for path, scores in arrays.items():
        if path.endswith(".masked_scores"):
            seen = ~is_masked(path, scores[row]).all(axis=(0, 1))
            return seen if seen.any() else ~seen
    return np.ones(length, bool)


def is_masked(path, values):
    """Mark the masked scores that only say that the key is masked."""
    if not path.endswith(".masked_scores"):
        return np.zeros(values.shape, bool)
    return values <= np.finfo(values.dtype).min


def one_row(input_ids, choice):
    """Return the ids of the sentence, (T,)."""
    try:
        ids = np.asarray(input_ids)
    except ValueError:  # rows of different lengths
        ids = np.empty(0)
    if ids.ndim == 2 and choice.row < len(ids):
        ids = ids[choice.row]
    if ids.dtype.kind not in "iu" or ids.shape != (choice.length,):
        raise BertError(
            f"input_ids has dtype {ids.dtype} and shape {ids.shape}, "
            f"expected the {choice.length} integers of the sentence"
        )
    return ids


def make_stage(number, path, array, choice):
    """Make one stage: its words, and the numbers of the sentence and head."""
    text, layer = STAGE_TEXTS[key_of(path)], layer_of(path)
    axes = text.axes.split()
    values, rows, columns = shown_values(array, axes, choice)
    folded = layer is not None and layer not in choice.layers
    name, sentence = text.name, text.sentence
    if folded:
        name, sentence = FOLDED_NAME, FOLDED_SENTENCE.format(layer)
    return Stage(
        number=number,
        path=path,
        part=PARTS.get(path.split(".")[0], f"Layer {layer}"),
        name=name,
        sentence=sentence,
        equation=text.equation,
        shape=shape_text(axes, array.shape, len(rows), choice),
        values=values,
        masked=is_masked(path, values),
        rows=rows,
        columns=columns,
        notes=(LENS,) * (path in choice.guesses),
        remarks=tuple(remarks_on(path, array, values, rows, choice)),
        repeats="",
        folded=folded,
    )


def mark_repeated(stage, earlier):
    """Add to a stage which earlier one last had the same numbers, if any."""
    for other in reversed(earlier):
        if np.array_equal(other.values, stage.values):
            where = f"stage {other.number}, {other.name}"
            return replace(stage, repeats=f"the same numbers as {where}")
    return stage


def shown_values(array, axes, choice):
    """Return the numbers of one sentence and head, with names: (R, C), R, C."""
    if "B" in axes:
        array = array[choice.row]
    if "A" in axes:
        array = array[choice.head]
    rows, columns = ("sentence",), None
    if axes == ["T"]:
        array, columns = array[:, None], ("id",)
    if "T" in axes or "Tq" in axes:
        rows, kept = positions(len(array), choice)
        array = array[kept]
    if "Tk" in axes:
        columns, kept = positions(array.shape[1], choice)
        array = array[:, kept]
    values = np.array(np.atleast_2d(array))
    values.flags.writeable = False
    return values, rows, columns or tuple(map(str, range(values.shape[1])))


def positions(length, choice):
    """Return the names and indices of the positions shown.

    The MLM head may have run on some positions only; those are counted.
    """
    if length == choice.length:
        return choice.labels, choice.keep
    return tuple(f"row {i}" for i in range(length)), np.arange(length)


def shape_text(axes, shape, rows, choice):
    """Name the axes of the array, and describe which part of it is shown."""
    named = ", ".join(
        f"{axis} {size}" if axis != "2" else axis for axis, size in zip(axes, shape)
    )
    chosen = [f"sentence {choice.row}"] * (axes[0] == "B" and shape[0] > 1)
    chosen += [f"head {choice.head}"] * ("A" in axes)
    cropped = choice.length - len(choice.keep)
    if cropped and rows == len(choice.keep):
        chosen.append(f"without {cropped} padded position{'s' * (cropped > 1)}")
    return f"({named})" + (f", shown: {', '.join(chosen)}" if chosen else "")


def remarks_on(path, array, values, rows, choice):
    """Return one remark for each row of a stage, or none."""
    if path in choice.guesses:
        return choice.guesses[path]
    if path.endswith(".probs"):
        return strongest_keys(array[choice.row][:, choice.keep][..., choice.keep], rows)
    if path == "mlm.logits":
        return best_words(values, rows, choice.vocabulary)
    return ()


def strongest_keys(probs, labels):
    """For each query of maps (A, Tq, Tk), name the key each head looks at most."""
    for i, label in enumerate(labels):
        best = probs[:, i].argmax(axis=-1)
        found = [f"{a} → {labels[j]} {probs[a, i, j]:.2f}" for a, j in enumerate(best)]
        yield f"each head's strongest key for {label}: {', '.join(found)}"


def guesses_by_stage(trace, model, choice):
    """Return {path: one remark for each position} for the MLM head's readings."""
    params, config, tokenizer = model
    try:
        one = slice(choice.row, choice.row + 1)
        states = [{"output": layer["output"][one]} for layer in trace["layers"]]
        trace = {"embeddings": {"output": trace["embeddings"]["output"][one]}}
    except (KeyError, TypeError, IndexError):
        raise BertError(
            "trace lacks the outputs of the embeddings or of a layer, which model = "
            "needs; allowed: what bert(..., trace=trace) has filled"
        ) from None
    positions = choice.keep.tolist()
    lens = logit_lens({**trace, "layers": states}, params, config, positions)
    words, probs = top_words(lens[:, 0], tokenizer, BEST)  # (L + 1, T, BEST)
    paths = ["embeddings.output", *(f"layers.{i}.output" for i in range(len(states)))]
    return {
        path: [guess_text(*found) for found in zip(choice.labels, w, p)]
        for path, w, p in zip(paths, words, probs)
    }


def guess_text(label, words, probs):
    """Write the words that are guessed at one position."""
    pairs = zip(words.tolist(), probs.tolist())
    guesses = ", ".join(f"{token_text(word, LONGEST)} {p:.2f}" for word, p in pairs)
    return f"guess at {label}: {guesses}"


def best_words(values, rows, vocabulary):
    """For each row of MLM logits, name the words with the highest ones."""
    names = list(vocabulary or [])
    for label, logits in zip(rows, values):
        best = np.argsort(-logits[: len(names) or None], kind="stable")[:BEST]
        called = [token_text(names[i], LONGEST) if names else f"id {i}" for i in best]
        words = [f"{name} {logits[i]:.2f}" for name, i in zip(called, best)]
        yield f"highest logits at {label}: {', '.join(words)}"
