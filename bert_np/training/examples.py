"""Examples to learn from: read, split, turned into ids, put into batches.

An example is a pair of what the model reads and what it should answer:
    sequence : (text, label), or ((text, text), label). A str or int is a
        label; a list of them is several labels; a float is a number to
        be predicted.
    token : (words, labels), two lists of str of one length
    span : ((question, text), (start, end)), so that text[start:end] is
        the answer; None in place of (start, end) if there is no answer
"""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from bert_np.analysis.corpora import read_lines
from bert_np.config import require_config
from bert_np.errors import BertError, short
from bert_np.tasks.batches import check_window, windows
from bert_np.tokenizer import cut_text, join_parts, require_tokenizer
from bert_np.training.inputs import (
    IGNORED,
    check_columns,
    check_examples,
    check_int,
    check_lengths,
    check_number,
    check_rng,
    check_task,
)

MULTI, REGRESSION = "multi_label_classification", "regression"
BLUR = 0.2  # lengths count as up to this fraction more, so that batches differ


class Row(NamedTuple):
    """One example as the model meets it."""

    input_ids: np.ndarray  # (T,)
    segment_ids: np.ndarray  # (T,)
    labels: np.ndarray  # (), (K,), (T,) or (2,): see encode_examples


# -------------------------------------------------------------- from files


def read_examples(path, task="sequence", columns=None, problem=None):
    """Read examples from a file of columns that are separated by tabs.

    sequence: a line for each example, with a text or two, and the label.
    Several labels are separated by commas, and none is an empty column.
    token: a line for each word, with its label, and an empty line after
    each sentence; lines that begin with # and have no tab are left out.
    span: a line for each example, with question, text and answer, which
    must occur in the text; the first occurrence is taken. An empty answer
    means that the text does not answer the question.

    Parameters
    ----------
    path : str or Path
    task : str
        "sequence", "token" or "span".
    columns : sequence of int, optional
        Which columns these are, counted from 1, the label last. None: all
        in order; for "token" the first two.
    problem : str, optional
        Of a sequence: "single_label_classification" (also None),
        "multi_label_classification" or "regression".

    Returns
    -------
    list
        Of examples, as the module's docstring describes them.
    """
    check_task(task, problem)
    if columns is not None:
        columns = check_columns(columns, task)
    lines = list(enumerate(read_lines(path), start=1))
    if task == "token":
        lines = [(n, x) for n, x in lines if not (x.startswith("#") and "\t" not in x)]
        groups = groupby(lines, key=lambda numbered: bool(numbered[1].strip()))
        return [
            _sentence(list(rows), path, columns or (1, 2))
            for some, rows in groups
            if some
        ]
    make = _question if task == "span" else _labelled
    return [
        make(_cells(line, columns, f"{path}, line {n}"), problem, path, n)
        for n, line in lines
        if line.strip()
    ]


def _cells(line, columns, where):
    """Return the columns of a line that were asked for, in that order."""
    cells = line.split("\t")
    columns = columns or range(1, len(cells) + 1)
    if max(columns) > len(cells):
        raise BertError(
            f"{where}, has {len(cells)} columns, needed: column {max(columns)}"
        )
    return [cells[number - 1].strip() for number in columns]


def _labelled(cells, problem, path, number):
    """Return a text, or a pair of texts, with its label."""
    *texts, label = cells
    if len(texts) not in (1, 2):
        raise BertError(
            f"{path}, line {number}, has {len(cells)} columns, allowed: a text or two, "
            "and the label; choose them with columns"
        )
    if problem == MULTI:
        label = [name.strip() for name in label.split(",") if name.strip()]
    elif problem == REGRESSION:
        try:
            label = float(label)
        except ValueError:
            raise BertError(
                f"{path}, line {number}: {short(label)}, allowed: a number"
            ) from None
    return texts[0] if len(texts) == 1 else tuple(texts), label


def _sentence(rows, path, columns):
    """Return words and their labels, from lines of one sentence."""
    cells = [_cells(line, columns, f"{path}, line {n}") for n, line in rows]
    words, labels = zip(*cells)
    return list(words), list(labels)


def _question(cells, _, path, number):
    """Return a question and a text, with the place of the answer."""
    if len(cells) != 3:
        raise BertError(
            f"{path}, line {number}, has {len(cells)} columns, allowed: question, text "
            "and answer"
        )
    question, text, answer = cells
    start = text.find(answer)
    if start < 0:
        raise BertError(
            f"{path}, line {number}: the answer {short(answer)} is not in the text"
        )
    return (question, text), (start, start + len(answer)) if answer else None


# ------------------------------------------------------------------- split


def split_examples(examples, share, rng):
    """Set a random share of the examples apart.

    Examples of the same text stay together. Otherwise a text that appears
    twice could be learned by heart on one side and asked for on the other.

    Parameters
    ----------
    examples : list
    share : float
        At least 0, less than 1.
    rng : numpy.random.Generator

    Returns
    -------
    others : list
    apart : list
        At most the share, in random order.
    """
    check_rng(rng)
    check_number("share", share, "less than 1, at least 0")
    check_examples(examples)
    texts = {}
    for example in examples:
        read = example[0]
        key = tuple(read) if isinstance(read, list) else read
        texts.setdefault(key, []).append(example)
    groups = list(texts.values())
    others, apart = [], []
    for i in rng.permutation(len(groups)):
        fits = len(apart) + len(groups[i]) <= share * len(examples)
        (apart if fits else others).extend(groups[i])
    return others, apart


# ------------------------------------------------------------------ labels


def find_problem(examples):
    """Return the problem of a sequence head, from the kind of the labels."""
    label = check_examples(examples, "sequence")[0][1]
    if isinstance(label, (list, tuple)):
        return MULTI
    numbers = isinstance(label, (float, np.floating))
    return REGRESSION if numbers else "single_label_classification"


def find_labels(examples, task="sequence"):
    """List the names of all labels: numbers by size, words by the alphabet.

    Parameters
    ----------
    examples : list
    task : str

    Returns
    -------
    tuple of str
        ("score",) for numbers to be predicted, and none for spans.
    """
    check_task(task)
    check_examples(examples, task)
    if task == "span":
        return ()
    if task == "sequence" and find_problem(examples) == REGRESSION:
        return ("score",)
    several = task == "token" or isinstance(examples[0][1], (list, tuple))
    found = {name for _, label in examples for name in (label if several else [label])}
    return tuple(map(str, sorted(found, key=lambda x: (isinstance(x, str), x))))


# --------------------------------------------------------------- to arrays


def encode_examples(examples, config, tokenizer, task="sequence", max_length=128):
    """Turn examples into ids, and their labels into numbers.

    A word is cut into pieces, of which the first carries its label; the
    others have none. An answer goes from its first piece to its last;
    where there is no answer, both are [CLS].

    Parameters
    ----------
    examples : list
    config : BertConfig
        Its labels, in the order of the head's columns.
    tokenizer : Tokenizer
    task : str
    max_length : int
        Longer texts are cut to this, or to the model's positions if these
        are fewer. For an answer, the window with most text around it is
        taken.

    Returns
    -------
    list of Row, or None where no window holds the answer whole
        labels is, for a sequence, the number of the label, or K times 0 or
        1, or K numbers; for tokens (T,), IGNORED where nothing is asked;
        for spans (2,), the first and the last token.

    Source: Devlin et al. 2018, section 5.3 (first pieces), section 4.3
    (no answer).
    """
    check_task(task)
    check_examples(examples, task)
    require_config(config)
    require_tokenizer(tokenizer)
    most = config.max_position_embeddings
    max_length = min(check_int("max_length", max_length, 4), most)
    encode = {"sequence": _encode_text, "token": _encode_words, "span": _encode_span}
    numbers = {name: i for i, name in enumerate(config.labels)}
    rows = []
    for i, (read, label) in enumerate(examples):
        try:
            rows.append(
                encode[task](read, label, numbers, config, tokenizer, max_length)
            )
        except BertError as error:
            raise BertError(f"examples[{i}]: {error}") from None
    return rows


def _encode_text(read, label, numbers, config, tokenizer, max_length):
    pair = read if isinstance(read, tuple) else (read,)
    encoding = tokenizer.encode(*pair, max_length=max_length)
    if config.problem == REGRESSION:
        labels = np.array([label], np.float64)
    elif config.problem == MULTI:
        labels = np.zeros(len(numbers))
        labels[[_number_of(name, numbers) for name in label]] = 1
    else:
        labels = np.array(_number_of(label, numbers))
    return Row(encoding.input_ids, encoding.segment_ids, labels)


def _encode_words(words, names, numbers, config, tokenizer, max_length):
    encoding = tokenizer.encode(
        list(words), max_length=max_length, is_split_into_words=True
    )
    labels, before = np.full(len(encoding.input_ids), IGNORED), None
    for i, word in enumerate(encoding.word_ids):
        if word is not None and word != before:
            labels[i] = _number_of(names[word], numbers)
        before = word
    return Row(encoding.input_ids, encoding.segment_ids, labels)


def _encode_span(read, place, numbers, config, tokenizer, max_length):
    """Encode the window with the answer, of those in which `answer` reads."""
    asked, pieces = (cut_text(text, tokenizer, allow_special=True) for text in read)
    room = max_length - len(asked) - 3  # [CLS] and two [SEP]
    if room < 1 or not pieces:
        raise BertError(f"no room for a text beside {len(asked)} pieces of a question")
    first = last = 0
    if place is not None:
        begins, ends = np.array([piece[1:3] for piece in pieces]).T
        inside = np.flatnonzero((ends > place[0]) & (begins < place[1]))
        first, last = inside[[0, -1]] if inside.size else (0, len(pieces))

    def context(window):
        return min(first - window[0], window[1] - 1 - last)

    places = windows(len(pieces), room, check_window(room, None))
    start, end = max(places, key=context)
    if context((start, end)) < 0:
        return None
    encoding = join_parts([asked, pieces[start:end]], tokenizer)
    before = len(asked) + 2 - start  # tokens before piece 0 of the text
    labels = [0, 0] if place is None else [before + first, before + last]
    return Row(encoding.input_ids, encoding.segment_ids, np.array(labels))


def _number_of(label, numbers):
    if str(label) not in numbers:
        found = short(tuple(numbers))
        raise BertError(f"label {short(label)}, allowed: one of {found}")
    return numbers[str(label)]


# ----------------------------------------------------------------- batches


def batches_by_length(lengths, batch_size, rng=None):
    """Put texts of similar length together, so that little is padded.

    Parameters
    ----------
    lengths : ndarray of int of shape (N,)
    batch_size : int
    rng : numpy.random.Generator, optional
        Shuffles the batches, and blurs the lengths by 20 %, so that the
        batches of each epoch differ. None: shortest first.

    Returns
    -------
    list of ndarray of int
        The numbers of the texts in each batch.
    """
    lengths = check_lengths(lengths)
    check_int("batch_size", batch_size, 1)
    if rng is not None:
        check_rng(rng)
        lengths = lengths * rng.uniform(1, 1 + BLUR, len(lengths))
    order = np.argsort(lengths, kind="stable")
    starts = range(0, len(order), batch_size)
    batches = [order[start : start + batch_size] for start in starts]
    return (
        batches if rng is None else [batches[i] for i in rng.permutation(len(batches))]
    )
