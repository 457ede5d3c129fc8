"""The forward pass of one sentence, stage by stage."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.plotting.labels import token_text
from bert_np.plotting.pages import write_page
from bert_np.plotting.preparation import check_tokens, to_array
from bert_np.plotting.stage_texts import (
    FOLDED_NAME,
    FOLDED_SENTENCE,
    PARTS,
    STAGE_TEXTS,
)
from bert_np.plotting.step_pages import parts_html, stage_html, steps_html
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
        Where a number only says that the key is masked.
    rows, columns : tuple of str
        What the rows and columns are called.
    notes : tuple of str
        Remarks, such as the likeliest words.
    repeats : str
        The earlier stage that has the same numbers, where there is one.
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

        Raises
        ------
        BertError
            Where the file cannot be written.
        """
        return write_page(path, "The forward pass", parts_html(self, "s"))


class Choice(NamedTuple):
    """What of a trace is shown."""

    row: int
    layers: tuple
    head: int
    keep: np.ndarray  # the positions shown
    labels: tuple  # one for each of them
    length: int  # T, padding included
    vocabulary: list | None


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
):
    """Show the forward pass of one sentence as a sequence of stages.

    Parameters
    ----------
    trace : dict
        Filled by ``bert(..., trace=trace)``, and by the heads where they
        ran.
    tokens : list of T str, optional
        The tokens of that row of the batch, padding included.
    row : int
        The sentence: its row in the batch, 0..B-1.
    layers : int or list of int
        The layers to show in detail; each other one is a single stage,
        its output.
    head : int
        The head to show, 0..A-1.
    crop : bool
        Leave out padding, as the masked scores tell it.
    input_ids : ndarray of shape (B, T) or (T,), optional
        Adds a first stage, the ids.
    vocabulary : list of V str, optional
        Names the words in the MLM logits, such as ``tokenizer.tokens``.

    Returns
    -------
    Steps
        Stages in the order of computation. In a notebook it shows itself
        as HTML, printed as text of at most 100 columns.

    Raises
    ------
    BertError
        Where the trace is none of a model, a number is out of range, or
        tokens and trace differ in length.
    """
    arrays = known_arrays(trace)
    choice = choose(arrays, tokens, row, layers, head, crop, vocabulary)
    if input_ids is not None:
        arrays = {"input_ids": one_row(input_ids, choice), **arrays}
    shown = [path for path in arrays if is_shown(path, choice.layers)]
    stages = []
    for path in shown:
        stage = make_stage(len(stages), path, arrays[path], choice)
        stages.append(mark_repeated(stage, stages))
    return Steps(stages)


def known_arrays(trace):
    """The trace flat, {path: array}, or what is wrong with it."""
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
    """One stage of a trace as an array, or what is wrong with it."""
    text = STAGE_TEXTS.get(key_of(path))
    if text is None or path == "input_ids":
        raise BertError(
            f"trace has {path!r}, which is no stage of the model; "
            "allowed: what bert(..., trace=trace) has filled"
        )
    array = to_array(f"trace: {path}", values)
    axes = text.axes.split()
    if array.ndim != len(axes):
        raise BertError(
            f"trace: {path} has shape {array.shape}, expected ({', '.join(axes)})"
        )
    if 0 in array.shape:
        raise BertError(f"trace: {path} has shape {array.shape}: nothing to show")
    return array


def key_of(path):
    """The key of STAGE_TEXTS for a path.

    >>> key_of("layers.11.attention.q")
    'layers.attention.q'
    """
    return re.sub(r"^layers\.\d+", "layers", path)


def layer_of(path):
    """The number of the layer of a path, or None."""
    match = re.match(r"layers\.(\d+)\.", path)
    return int(match[1]) if match else None


def is_shown(path, layers):
    """Whether a stage is shown: of other layers only the output is."""
    layer = layer_of(path)
    return layer is None or layer in layers or path == f"layers.{layer}.output"


def choose(arrays, tokens, row, layers, head, crop, vocabulary):
    """Check what the caller asks for against the sizes of the trace."""
    sizes = {}
    for path, array in arrays.items():
        for letter, size in zip(STAGE_TEXTS[key_of(path)].axes.split(), array.shape):
            sizes.setdefault(letter, size)
    numbers = [layer_of(path) for path in arrays if layer_of(path) is not None]
    check_index("row", row, sizes.get("B", 1))
    check_index("head", head, sizes.get("A", 1))
    layers = (layers,) if np.ndim(layers) == 0 else tuple(layers)
    for layer in layers:
        check_index("layers", layer, max(numbers, default=0) + 1)
    length = sizes.get("T", 1)
    tokens = fitting_tokens(tokens, length)
    if not isinstance(crop, bool):
        raise BertError(f"crop = {short(crop)}, allowed: True, False")
    check_vocabulary(vocabulary, sizes.get("V"))
    keep = np.flatnonzero(real_positions(arrays, row, length) | (not crop))
    labels = tuple(
        f"{i} {token_text(tokens[i], LONGEST)}" if tokens else f"{i}" for i in keep
    )
    return Choice(row, layers, head, keep, labels, length, vocabulary)


def check_index(name, value, size):
    """Refuse an index outside 0..size-1."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value < size:
        raise BertError(f"{name} = {short(value)}, allowed: 0..{size - 1}")


def fitting_tokens(tokens, length):
    """The tokens as a list, or None; refuse another number of them."""
    tokens = None if tokens is None else check_tokens(tokens)
    if tokens is not None and len(tokens) != length:
        raise BertError(
            f"tokens has {len(tokens)} entries, but the trace has "
            f"{length} positions; the two must be equal"
        )
    return tokens


def check_vocabulary(vocabulary, size):
    """Refuse names of words that do not fit the logits."""
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
    """True where a key is seen; everywhere where the trace has no mask."""
    for path, scores in arrays.items():
        if path.endswith(".masked_scores"):
            seen = ~is_masked(path, scores[row]).all(axis=(0, 1))
            return seen if seen.any() else ~seen
    return np.ones(length, bool)


def is_masked(path, values):
    """True where a masked score only says that the key is masked."""
    if not path.endswith(".masked_scores"):
        return np.zeros(values.shape, bool)
    return values <= np.finfo(values.dtype).min


def one_row(input_ids, choice):
    """The ids of the sentence, (T,), or what is wrong with them."""
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
    """One stage: its words, and the numbers of the sentence and head."""
    text, layer = STAGE_TEXTS[key_of(path)], layer_of(path)
    axes = text.axes.split()
    values, rows, columns = select(array, axes, choice)
    folded = layer is not None and layer not in choice.layers
    name, sentence = text[:2]
    if folded:
        name, sentence = FOLDED_NAME, FOLDED_SENTENCE.format(layer)
    return Stage(
        number,
        path,
        PARTS.get(path.split(".")[0], f"Layer {layer}"),
        name,
        sentence,
        text.equation,
        shape_text(axes, array.shape, len(rows), choice),
        values,
        is_masked(path, values),
        rows,
        columns,
        tuple(best_words(path, values, rows, choice.vocabulary)),
        "",
        folded,
    )


def mark_repeated(stage, earlier):
    """The stage, with a word on the last one that has the same numbers."""
    for other in reversed(earlier):
        if np.array_equal(other.values, stage.values):
            where = f"stage {other.number}, {other.name}"
            return replace(stage, repeats=f"the same numbers as {where}")
    return stage


def select(array, axes, choice):
    """The numbers of one sentence and head, with names: (R, C), R, C."""
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
    """Names and indices of the positions shown.

    The MLM head may have run on some positions only; those are counted.
    """
    if length == choice.length:
        return choice.labels, choice.keep
    return tuple(f"row {i}" for i in range(length)), np.arange(length)


def shape_text(axes, shape, rows, choice):
    """Name the axes of the array, and say what of it is shown."""
    named = ", ".join(
        f"{axis} {size}" if axis != "2" else axis for axis, size in zip(axes, shape)
    )
    chosen = [f"sentence {choice.row}"] * (axes[0] == "B" and shape[0] > 1)
    chosen += [f"head {choice.head}"] * ("A" in axes)
    cropped = choice.length - len(choice.keep)
    if cropped and rows == len(choice.keep):
        chosen.append(f"without {cropped} padded position{'s' * (cropped > 1)}")
    return f"({named})" + (f", shown: {', '.join(chosen)}" if chosen else "")


def best_words(path, values, rows, vocabulary):
    """For each row of MLM logits, the words with the highest ones."""
    if path != "mlm.logits":
        return
    names = list(vocabulary or [])
    for label, logits in zip(rows, values):
        best = np.argsort(-logits[: len(names) or None], kind="stable")[:BEST]
        called = [token_text(names[i], LONGEST) if names else f"id {i}" for i in best]
        words = [f"{name} {logits[i]:.2f}" for name, i in zip(called, best)]
        yield f"highest at {label}: {', '.join(words)}"
