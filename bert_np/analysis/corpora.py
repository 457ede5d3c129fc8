"""Real language to measure on: parsed sentences, and reviews with labels.

Both corpora lie in notebooks/data of the project, with their licences; they
are not part of the installed package. Files of your own can take their
place, including any treebank of Universal Dependencies in CoNLL-U format.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from bert_np.errors import BertError, short

MOST_BYTES = 2**26
SENT_ID = "# sent_id = "
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")  # 7-8, a split word; 7.1, an empty node
# How many columns a line has -> those of word, tag, head and relation.
COLUMNS = {4: (0, 1, 2, 3), 10: (1, 3, 6, 7)}


class Sentence(NamedTuple):
    """A sentence whose words carry tags and point to their heads.

    The head of word i is words[heads[i]], and relations[i] says what word
    i is to it: in "the cat sat", the head of *cat* is *sat*, its relation
    nsubj, the subject. The root of the sentence has no head: -1.
    """

    words: tuple  # of str
    tags: tuple  # of str: parts of speech, such as NOUN
    heads: tuple  # of int: places in words, -1 for the root
    relations: tuple  # of str, such as nsubj
    source: str  # which sentence of the corpus, such as "n01001011"


class Review(NamedTuple):
    """A sentence from a review, and whether it praises."""

    text: str
    label: int  # 1 praise, 0 blame
    source: str  # "amazon", "imdb" or "yelp"


def read_treebank(path=None):
    """Read sentences in which each word points to its syntactic head.

    Parameters
    ----------
    path : str or Path, optional
        A file with one word per line and an empty line after each
        sentence. A line has four columns, separated by tabs: word, tag,
        head (counted from 1, 0 for the root) and relation; or the ten
        columns of CoNLL-U, whose split words and empty nodes are left
        out. None takes the 1,000 sentences of notebooks/data.

    Returns
    -------
    list of Sentence

    Raises
    ------
    BertError
        Naming the file, the line and the value that is wrong.

    Source: Universal Dependencies, UD_English-PUD (Zeman et al. 2017);
    Nivre et al. 2020 for the tags and relations.
    """
    path = _default_path("treebank.tsv") if path is None else path
    sentences, rows, source = [], [], ""
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if line.startswith("#") and "\t" not in line:
            source = line.removeprefix(SENT_ID) if line.startswith(SENT_ID) else source
        elif line:
            rows.append((number, line.split("\t")))
        elif rows:
            sentences.append(_make_sentence(rows, source, path))
            rows, source = [], ""
    if not sentences:
        raise BertError(f"{path}: no sentence in it; a treebank has one word per line")
    return sentences


def read_reviews(path=None):
    """Read sentences from reviews, each labelled as praise or blame.

    Parameters
    ----------
    path : str or Path, optional
        A file with three columns, separated by tabs: source, label (0 or
        1) and text. None takes the 3,000 sentences of notebooks/data.

    Returns
    -------
    list of Review

    Raises
    ------
    BertError
        Naming the file, the line and the value that is wrong.

    Source: Kotzias et al. 2015, "From group to individual labels using
    deep features".
    """
    path = _default_path("reviews.tsv") if path is None else path
    reviews = []
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        _require_columns(columns, (3,), f"{path}, line {number}")
        source, label, text = columns
        if label not in ("0", "1"):
            raise BertError(
                f"{path}, line {number}: label {short(label)}, allowed 0 or 1"
            )
        reviews.append(Review(text, int(label), source))
    if not reviews:
        raise BertError(f"{path}: no review in it")
    return reviews


def _default_path(name):
    """Return a file of notebooks/data, beside the package or in this folder."""
    beside = Path(__file__).resolve().parents[2] / "notebooks" / "data"
    for folder in (beside, Path("data"), Path("notebooks/data")):
        if (folder / name).is_file():
            return folder / name
    raise BertError(
        f"path = None, and {name} is neither beside the package nor in the folder "
        f"data; give the path of notebooks/data/{name} in a copy of the project"
    )


def read_lines(path):
    """Return the lines of a UTF-8 file, without their ends."""
    if not isinstance(path, (str, os.PathLike)):
        raise BertError(f"path = {short(path)}, allowed: a str or a Path")
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BertError(
            f"{path}, line {line}: byte {error.start} of the file is not UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BertError(f"{path}: cannot be read: {reason}") from None
    if len(data) > MOST_BYTES:
        raise BertError(f"{path}: larger than {MOST_BYTES:,} bytes, no corpus")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def _make_sentence(rows, source, path):
    """Make a Sentence from its lines: (line number, columns)."""
    words = []
    for number, columns in rows:
        where = f"{path}, line {number}"
        _require_columns(columns, tuple(COLUMNS), where)
        if len(columns) == 10 and NO_WORD.fullmatch(columns[0]):
            continue
        if len(columns) == 10 and columns[0] != str(len(words) + 1):
            raise BertError(
                f"{where}: number {short(columns[0])}, allowed {len(words) + 1}"
            )
        words.append((where, [columns[i] for i in COLUMNS[len(columns)]]))
    if not words:
        raise BertError(f"{path}, line {rows[0][0]}: a sentence with no word in it")
    forms, tags, _, relations = zip(*(columns for _, columns in words))
    heads = tuple(
        _head_of(place, columns[2], len(words), where)
        for place, (where, columns) in enumerate(words)
    )
    return Sentence(forms, tags, heads, relations, source)


def _head_of(place, number, count, where):
    """Return the place of a word's head, from 0; -1 for the root."""
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if not is_number or int(number) > count or int(number) == place + 1:
        raise BertError(
            f"{where}: head {short(number)}, allowed 0..{count}, but not the "
            f"word itself, {place + 1}"
        )
    return int(number) - 1


def _require_columns(columns, allowed, where):
    """Refuse a line with other columns than these, or with an empty one."""
    line = short("\t".join(columns))
    if len(columns) not in allowed:
        raise BertError(
            f"{where}, {line}, has {len(columns)} columns, allowed "
            f"{' or '.join(map(str, allowed))}, separated by tabs"
        )
    for number, column in enumerate(columns, start=1):
        if not column.strip():
            raise BertError(f"{where}, {line}: column {number} is empty")
