"""Text to ids: cleaning, basic split, WordPiece, special tokens.

    text         Héllo, unplayable
    cleaning     hello, unplayable
    basic split  hello  ,  unplayable
    WordPiece    hello  ,  un ##play ##able
    Encoding     [CLS] hello , un ##play ##able [SEP]  -> ids

Every step knows where its characters stood in the original text, so each
piece has offsets. Pieces, ids and offsets equal those of HuggingFace's
BERT tokenizer (the `tokenizers` library).
"""

import os
import re
import string
import unicodedata
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from types import MappingProxyType

import numpy as np

from bert_np.added_tokens import (
    SPECIAL_TOKENS,
    as_added,
    check_added,
    check_special,
    make_finders,
)
from bert_np.errors import BertError, short

TRUNCATIONS = ("longest_first", "only_first", "only_second")
MAX_WORD_LENGTH = 100
MAX_VOCAB_BYTES = 2**26
MAX_PAD_TO = 2**20
# U+2B820..U+2B91F is missing here because HuggingFace's table lacks it.
CJK_BLOCKS = (
    ("\u4e00", "\u9fff"),
    ("\u3400", "\u4dbf"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b73f"),
    ("\U0002b740", "\U0002b81f"),
    ("\U0002b920", "\U0002ceaf"),
    ("\U0002f800", "\U0002fa1f"),
)


# ---------------------------------------------------------- text cleaning
def clean_char(ch):
    """Delete a control or format character, turn white space into a space."""
    category = unicodedata.category(ch)
    if ch in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
        return " "
    return "" if category in ("Cc", "Cf", "Co") or ch == "\ufffd" else ch


def space_cjk(ch):
    """Put spaces around a CJK ideograph, so that it becomes a word."""
    return f" {ch} " if any(a <= ch <= b for a, b in CJK_BLOCKS) else ch


def drop_accent(ch):
    """Delete an accent that Unicode counts as a nonspacing mark (Mn)."""
    return "" if unicodedata.category(ch) == "Mn" else ch


def substitute(text, sources, replace):
    """Replace each character by a string, and copy its source along."""
    table = {ch: replace(ch) for ch in set(text)}
    if all(ch == new for ch, new in table.items()):
        return text, sources
    parts = [table[ch] for ch in text]
    return "".join(parts), [s for s, part in zip(sources, parts) for _ in part]


def sort_accents(text, sources):
    """Put each run of accents into Unicode's canonical order (NFD).

    When a run is sorted, the sources stay in place and the characters
    that begin a decomposition take them in turn, as HuggingFace does.
    """
    if unicodedata.is_normalized("NFD", text):
        return text, sources
    begins = [k == 0 or sources[k - 1] != s for k, s in enumerate(sources)]
    ordered = []
    marked = zip(map(unicodedata.combining, text), text, begins)  # 0: no accent
    for _, run in groupby(marked, key=lambda item: item[0] > 0):
        ordered += sorted(run, key=lambda item: item[0])
    counts = accumulate(begin for _, _, begin in ordered)
    origins = [s for s, begin in zip(sources, begins) if begin]
    return (
        "".join(ch for _, ch, _ in ordered),
        [origins[count - 1] for count in counts],
    )


def normalize(text, lowercase=True, strip_accents=None, handle_chinese_chars=True):
    """Clean a text and remember where each character came from.

    Parameters
    ----------
    text : str
    lowercase : bool
        Lower-case character by character.
    strip_accents : bool or None
        Delete accents; None: as `lowercase` says.
    handle_chinese_chars : bool
        Make every CJK ideograph a separate word.

    Returns
    -------
    normalized : str
    sources : sequence of int
        `normalized[k]` comes from `text[sources[k]]`.

    Source: BertNormalizer of HuggingFace tokenizers, in its order.

    >>> normalize("É\\tno")
    ('e no', [0, 1, 2, 3])
    """
    strip = lowercase if strip_accents is None else strip_accents

    def spell(ch):
        ch = clean_char(ch)
        ch = space_cjk(ch) if handle_chinese_chars else ch
        return unicodedata.normalize("NFD", ch) if strip else ch

    def simplify(ch):
        ch = drop_accent(ch) if strip else ch
        return ch.lower() if lowercase else ch

    text, sources = substitute(text, range(len(text)), spell)
    if strip:
        text, sources = sort_accents(text, sources)
    return substitute(text, sources, simplify)


# ------------------------------------------------------------ basic split
def is_punctuation(ch):
    """Say whether a character is punctuation, all of ASCII's included."""
    return ch in string.punctuation or unicodedata.category(ch)[0] == "P"


def basic_split(text):
    """Split at white space and around every punctuation character.

    Returns (word, start) pairs; the word begins at `text[start]`.

    >>> basic_split("well, no")
    [('well', 0), (',', 4), ('no', 6)]
    """
    breaks = {ch for ch in set(text) if ch.isspace() or is_punctuation(ch)}
    words, start = [], 0
    for i, ch in enumerate(text):
        if ch in breaks:
            if start < i:
                words.append((text[start:i], start))
            if not ch.isspace():
                words.append((ch, i))
            start = i + 1
    return words + [(text[start:], start)] if start < len(text) else words


# -------------------------------------------------------------- WordPiece
def longest_pieces(tokens):
    """Map each beginning, "un" or "##un", to its longest piece's length."""
    longest = {}
    for token in tokens:
        begin = token[:4] if token.startswith("##") else token[:2]
        longest[begin] = max(len(token), longest.get(begin, 0))
    return longest


def wordpiece(word, vocab, longest=None):
    """Cut a word greedily into the longest pieces that the vocabulary has.

    Parameters
    ----------
    word : str
    vocab : collection of str
        Pieces; one that continues a word begins with "##".
    longest : mapping or None
        `longest_pieces(vocab)`, so that lengths which no piece has are
        not tried. The result is the same without it.

    Returns
    -------
    list of str
        ["[UNK]"] if no piece fits some remainder of the word, and for a
        word of more than 100 characters.

    Source: Wu et al. 2016 (1609.08144); Devlin et al. 2018, section 3.

    >>> wordpiece("unplayable", {"un", "##play", "##able", "##a"})
    ['un', '##play', '##able']
    """
    if len(word) > MAX_WORD_LENGTH:
        return ["[UNK]"]
    pieces, rest, prefix = [], word, ""
    while rest != prefix:
        most = len(rest)
        if longest is not None:  # no such beginning: one character at most
            begin = rest[: len(prefix) + 2]
            most = min(most, longest.get(begin, len(prefix) + 1))
        for end in range(most, len(prefix), -1):
            if rest[:end] in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(rest[:end])
        prefix = "##"
        rest = prefix + rest[end:]
    return pieces


def cut_word(word, tokenizer):
    """List the pieces of a word as (piece, start, end) within the word."""
    pieces = wordpiece(word, tokenizer.pieces, tokenizer.longest)
    if pieces == ["[UNK]"]:
        return [(tokenizer.tokens[tokenizer.unk_token_id], 0, len(word))]
    ends = list(accumulate(len(p) - 2 * (i > 0) for i, p in enumerate(pieces)))
    return list(zip(pieces, [0] + ends, ends))


def cut_text(text, tokenizer, allow_special):
    """List the pieces of a text as (piece, start, end, number of its word).

    Special and added tokens are cut out first; the text between two of
    them is cut as a separate text. For a list of words the places are
    those within the word.
    """
    pieces = []
    if not isinstance(text, str):
        for i, word in enumerate(text):
            found = cut_text(word, tokenizer, allow_special)
            pieces += [(piece, a, b, i) for piece, a, b, _ in found]
        return pieces
    for token, start, end in tokenizer.finders[0].split(text, allow_special):
        first = pieces[-1][3] + 1 if pieces else 0
        if token:
            pieces.append((token.content, start, end, first))
        else:
            found = cut_plain(text[start:end], tokenizer, allow_special)
            pieces += [(p, start + a, start + b, first + i) for p, a, b, i in found]
    return pieces


def cut_plain(text, tokenizer, allow_special):
    """Clean and cut a text without special tokens; see cut_text.

    Each distinct word is cut once.
    """
    clean, sources = normalize(text, *tokenizer.rules)
    words, cuts = [], {}  # a word: its pieces, each with start and end
    for token, begin, end in tokenizer.finders[1].split(clean, allow_special):
        if token:
            words.append([(token.content, begin, end)])
            continue
        for word, at in basic_split(clean[begin:end]):
            if word not in cuts:
                cuts[word] = cut_word(word, tokenizer)
            at += begin
            words.append([(piece, at + a, at + b) for piece, a, b in cuts[word]])
    return [
        (piece, sources[a], sources[b - 1] + 1, i)
        for i, pieces in enumerate(words)
        for piece, a, b in pieces
    ]


# --------------------------------------------------------------- Encoding
@dataclass(frozen=True, eq=False)
class Encoding:
    """A text, a pair of texts or a batch, ready for the model.

    Attributes
    ----------
    input_ids : ndarray of shape (T,) or (B, T), int64
    segment_ids : ndarray of the same shape, int64
        0 for the first text and for padding, 1 for the second text.
    attention_mask : ndarray of the same shape, int64
        1 for a real token, 0 for padding.
    tokens : list of T str, or B such lists
    offsets : list of T pairs (start, end), or B such lists
        Token i stands for `text[start:end]` of its own original text, or
        of its own word if words were given; (0, 0) for the special tokens
        and the padding added here.
    word_ids : list of T int or None, or B such lists
        The number of the word that token i belongs to, counted from 0 in
        each text: the words that were given, or else those of
        `basic_split` and the special tokens typed in the text. None for
        the special tokens and the padding added here.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    attention_mask: np.ndarray
    tokens: list
    offsets: list
    word_ids: list

    @property
    def inputs(self):
        """The arguments of bert: bert(**encoding.inputs, params=..., ...).

        Arrays of shape (B, T); B is 1 for a single text or pair.
        """
        names = ("input_ids", "segment_ids", "attention_mask")
        return {name: np.atleast_2d(getattr(self, name)) for name in names}


def truncate(parts, room, truncation):
    """Shorten one or two lists of pieces until `room` pieces are left.

    longest_first cuts the longer list, at most to the shorter one's
    length, then both to half of the room; an odd piece stays with the
    longer list, on a tie with the second. only_first and only_second
    leave at least one piece of the list that they cut.
    """
    first, second = lengths = [len(part) for part in [*parts, []][:2]]
    excess = first + second - room
    if excess <= 0:
        return parts
    if truncation == "longest_first":
        short = min(first, second, room // 2)
        kept = (short, room - short) if first <= second else (room - short, short)
    else:
        cut = TRUNCATIONS.index(truncation) - 1
        kept = [n - excess * (i == cut) for i, n in enumerate(lengths)]
        if kept[cut] < 1:
            raise BertError(
                f"truncation = {truncation!r} must remove {excess} of the "
                f"{lengths[cut]} pieces of that text and leave at least one; "
                "use 'longest_first' or a larger max_length"
            )
    return [part[:n] for part, n in zip(parts, kept)]


def join_parts(parts, tokenizer):
    """Build [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
    _, _, cls, sep, _ = tokenizer.special
    row, segments = [(cls, 0, 0, None)], [0]
    for segment, part in enumerate(parts):
        row += [*part, (sep, 0, 0, None)]
        segments += [segment] * (len(part) + 1)
    ids = np.array([tokenizer.vocab[token] for token, *_ in row], dtype=np.int64)
    return Encoding(
        ids,
        np.array(segments, dtype=np.int64),
        np.ones_like(ids),
        [tokenizer.shown.get(token, token) for token, *_ in row],
        [(start, end) for _, start, end, _ in row],
        [word for *_, word in row],
    )


def pad_rows(rows, length, pad_token_id, pad_token="[PAD]"):
    """Stack encodings into a batch of shape (B, T), padded on the right."""
    spare = [length - len(row.tokens) for row in rows]

    def stack(name, fill):
        return np.stack(
            [
                np.pad(getattr(row, name), (0, n), constant_values=fill)
                for row, n in zip(rows, spare)
            ]
        )

    return Encoding(
        stack("input_ids", pad_token_id),
        stack("segment_ids", 0),
        stack("attention_mask", 0),
        [row.tokens + [pad_token] * n for row, n in zip(rows, spare)],
        [row.offsets + [(0, 0)] * n for row, n in zip(rows, spare)],
        [row.word_ids + [None] * n for row, n in zip(rows, spare)],
    )


# ----------------------------------------------------------------- checks
def check_text(text, name):
    """Refuse what is not a str, or holds a lone surrogate."""
    if not isinstance(text, str):
        raise BertError(f"{name} must be a str, got {type(text).__name__}")
    found = re.search("[\ud800-\udfff]", text)
    if found:
        raise BertError(
            f"{name}[{found.start()}] is U+{ord(found[0]):04X}, a lone "
            f"surrogate and no character; {name}.encode('utf-8', 'replace').decode() "
            "has ? in its place"
        )


def check_given(text, name, split):
    """Refuse what is not a text or, if it is split, not a list of words."""
    listed, kind = isinstance(text, (list, tuple)), type(text).__name__
    if listed and not split:
        raise BertError(
            f"{name} must be a str, got {kind}; if it is a list of words, pass "
            "is_split_into_words=True"
        )
    if split and not listed:
        raise BertError(
            f"{name} must be a list of words with is_split_into_words=True, got {kind}"
        )
    for i, word in enumerate(text if split else []):
        check_text(word, f"{name}[{i}]")
    if not split:
        check_text(text, name)


def check_count(value, name, least, most=None):
    """Return an integer from least to most as Python's int, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise BertError(f"{name} must be an int, got {type(value).__name__}")
    value = int(value)
    if value < least or most is not None and value > most:
        found = value if abs(value) < 2**63 else "an int beyond 64 bits"
        allowed = f"{least} or more" if most is None else f"{least}..{most}"
        raise BertError(f"{name} = {found}, allowed {allowed}")
    return value


def check_choice(value, name, allowed):
    """Refuse a value that is not one of those allowed."""
    if not any(value is a or isinstance(value, str) and value == a for a in allowed):
        found = ", ".join(map(repr, allowed))
        raise BertError(f"{name} = {short(value)}, allowed {found}")


def check_ids(ids, vocab_size):
    """Refuse what is not one row of ids of the vocabulary."""
    try:
        ids = np.asarray(ids)
    except (ValueError, TypeError) as error:
        raise BertError(f"ids must be one row of int: {error}") from None
    if ids.ndim != 1 or ids.size and ids.dtype.kind not in "iu":
        raise BertError(
            f"ids must be ints of shape (T,), got {ids.dtype} of shape {ids.shape}"
        )
    for i in np.flatnonzero((ids < 0) | (ids >= vocab_size)):
        raise BertError(f"ids[{i}] = {ids[i]}, allowed 0..{vocab_size - 1}")
    return ids.tolist()


def require_tokenizer(tokenizer):
    """Refuse what is not a Tokenizer, with the usual reason if it is None."""
    if tokenizer is None:
        raise BertError(
            "tokenizer is None: this model came without vocab.txt, or with one that is "
            "not BERT's; load_pretrained(..., report=report) says which in "
            "report['no tokenizer']"
        )
    if not isinstance(tokenizer, Tokenizer):
        raise BertError(f"tokenizer is {type(tokenizer).__name__}, allowed: Tokenizer")


def check_vocabulary(tokens, name, special=SPECIAL_TOKENS):
    """Refuse a vocabulary with duplicates or without a special token."""
    if not isinstance(tokens, (list, tuple)):
        raise BertError(f"{name} must be a list of str, got {type(tokens).__name__}")
    lines = {}
    for line, token in enumerate(tokens, start=1):
        if not isinstance(token, str):
            raise BertError(
                f"{name}: entry {line} must be a str, got {type(token).__name__}"
            )
        if lines.setdefault(token, line) != line:
            raise BertError(
                f"{name}: {token!r} appears on lines {lines[token]} "
                f"and {line}, allowed once"
            )
    missing = [token for token in special if token not in lines]
    if missing:
        missing, needed = (short(" ".join(t))[1:-1] for t in (missing, special))
        raise BertError(f"{name} lacks {missing}; needed are {needed}")


def read_vocab(path):
    """Read a vocab.txt: one entry per line, ended by a line feed alone."""
    if not isinstance(path, (str, os.PathLike)):
        raise BertError(f"path must be a str or a Path, got {type(path).__name__}")
    try:
        with open(path, "rb") as file:
            size = min(os.fstat(file.fileno()).st_size, MAX_VOCAB_BYTES)
            data = file.read(size + 1)  # allocates as much memory as it may read
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BertError(
            f"{path}: byte {error.start} is not UTF-8; is this a vocab.txt?"
        ) from None
    except (OSError, ValueError) as error:
        raise BertError(
            f"{path}: cannot be read: {getattr(error, 'strerror', error)}"
        ) from None
    if len(data) > MAX_VOCAB_BYTES:
        raise BertError(f"{path}: larger than {MAX_VOCAB_BYTES} bytes, no vocab.txt")
    if text.startswith("\ufeff"):
        raise BertError(f"{path}: begins with a byte-order mark; save it without")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


# -------------------------------------------------------------- Tokenizer
@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary and the rules that turn text into ids and back.

    Make one with `Tokenizer.from_vocab` or `Tokenizer.from_tokens`.

    Attributes
    ----------
    tokens : tuple of str
        id -> token.
    vocab : mapping of str to int
        token -> id, read-only.
    lowercase, strip_accents, handle_chinese_chars
        See `normalize`.
    added : tuple of AddedToken
        Tokens that are cut out of the text whole, as the five special
        tokens are.
    special : tuple of str
        What [PAD], [UNK], [CLS], [SEP] and [MASK], in this order, are
        called in this vocabulary.
    pieces : mapping of str to int
        The part of `vocab` that WordPiece uses.
    longest : mapping of str to int
        See `longest_pieces`.
    shown : mapping of str to str
        What an added token looks like among the tokens of a text: as the
        cleaned text does.
    finders : (Finder, Finder)
        They find the added tokens in the text and in the cleaned text.
    vocab_size : int
    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id : int
    """

    tokens: tuple = field(repr=False)
    lowercase: bool = True
    strip_accents: bool | None = None
    handle_chinese_chars: bool = True
    added: tuple = field(default=(), repr=False)
    special: tuple = field(default=SPECIAL_TOKENS, repr=False)
    vocab: MappingProxyType = field(init=False, repr=False, compare=False)
    vocab_size: int = field(init=False)
    pieces: MappingProxyType = field(init=False, repr=False, compare=False)
    shown: MappingProxyType = field(init=False, repr=False, compare=False)
    finders: tuple = field(init=False, repr=False, compare=False)
    longest: MappingProxyType = field(init=False, repr=False, compare=False)
    pad_token_id: int = field(init=False)
    unk_token_id: int = field(init=False)
    cls_token_id: int = field(init=False)
    sep_token_id: int = field(init=False)
    mask_token_id: int = field(init=False)

    def __post_init__(self):
        check_special(self.special)
        check_vocabulary(self.tokens, "tokens", self.special)
        check_choice(self.lowercase, "lowercase", (True, False))
        check_choice(self.strip_accents, "strip_accents", (True, False, None))
        check_choice(self.handle_chinese_chars, "handle_chinese_chars", (True, False))
        vocab = {token: i for i, token in enumerate(self.tokens)}
        check_added(self.added, vocab, self.special)
        added = as_added(self.special) | {token.content: token for token in self.added}
        shown = {
            text: normalize(text, *self.rules)[0] if token.normalized else text
            for text, token in added.items()
        }
        new = {token.content for token in self.added if not token.piece}
        pieces = {token: i for token, i in vocab.items() if token not in new}
        derived = {
            "tokens": tuple(self.tokens),
            "added": tuple(self.added),
            "special": tuple(self.special),
            "vocab": MappingProxyType(vocab),
            "vocab_size": len(vocab),
            "pieces": MappingProxyType(pieces if new else vocab),
            "longest": MappingProxyType(longest_pieces(pieces)),
            "shown": MappingProxyType(shown),
            "finders": make_finders(added.values(), shown),
        }
        for name, token in zip(SPECIAL_TOKENS, self.special):
            derived[f"{name[1:-1].lower()}_token_id"] = vocab[token]
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def rules(self):
        """The arguments of `normalize` after the text."""
        return self.lowercase, self.strip_accents, self.handle_chinese_chars

    def __reduce__(self):  # a mappingproxy cannot be pickled
        return Tokenizer, (self.tokens, *self.rules, self.added, self.special)

    @classmethod
    def from_tokens(
        cls,
        tokens,
        lowercase=True,
        strip_accents=None,
        handle_chinese_chars=True,
        added=(),
        special=SPECIAL_TOKENS,
    ):
        """Make a tokenizer from a list of tokens; a token's place is its id."""
        rules = lowercase, strip_accents, handle_chinese_chars
        return cls(tokens, *rules, added, special)

    @classmethod
    def from_vocab(
        cls,
        path,
        lowercase=True,
        strip_accents=None,
        handle_chinese_chars=True,
        special=SPECIAL_TOKENS,
    ):
        """Make a tokenizer from a vocab.txt; the id is the line, from 0."""
        tokens = read_vocab(path)
        check_special(special)
        check_vocabulary(tokens, path, special)
        rules = lowercase, strip_accents, handle_chinese_chars
        return cls(tokens, *rules, special=special)

    def tokenize(self, text, allow_special=True):
        """Cut a text into its pieces, a list of str, with nothing added."""
        check_text(text, "text")
        check_choice(allow_special, "allow_special", (True, False))
        pieces = cut_text(text, self, allow_special)
        return [self.shown.get(piece, piece) for piece, *_ in pieces]

    def encode(
        self,
        text,
        pair=None,
        max_length=None,
        truncation="longest_first",
        allow_special=True,
        is_split_into_words=False,
    ):
        """Turn a text, or a pair of texts, into ids.

        [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]

        Parameters
        ----------
        text : str, or list of str with is_split_into_words
        pair : str or None, or list of str with is_split_into_words
            The second text. An empty one counts as none.
        max_length : int or None
            The most tokens allowed, [CLS] and [SEP] included.
        truncation : str
            Which text is shortened to reach it: "longest_first" (the
            longer, then both), "only_first", "only_second".
        allow_special : bool
            Whether "[MASK]" and the like in the text (exact case, also
            glued to a word) are special tokens or plain characters.
        is_split_into_words : bool
            True: the texts are lists of words, such as ["I", "don't"].
            Each word is cut by itself, and word_ids are its numbers.

        Returns
        -------
        Encoding
            Arrays of shape (T,).

        Raises
        ------
        BertError
            If text is not a text, or max_length cannot be met.
        """
        check_choice(is_split_into_words, "is_split_into_words", (True, False))
        check_given(text, "text", is_split_into_words)
        if pair is not None:
            check_given(pair, "pair", is_split_into_words)
        check_choice(truncation, "truncation", TRUNCATIONS)
        check_choice(allow_special, "allow_special", (True, False))
        texts = [text, pair] if pair else [text]
        added = len(texts) + 1
        if max_length is not None:
            max_length = check_count(max_length, "max_length", added)
        parts = [cut_text(part, self, allow_special) for part in texts]
        if max_length is not None:
            parts = truncate(parts, max_length - added, truncation)
        return join_parts(parts, self)

    def encode_batch(
        self,
        texts,
        pad_to=None,
        max_length=None,
        truncation="longest_first",
        allow_special=True,
        is_split_into_words=False,
    ):
        """Turn several texts or pairs into ids, padded to one length.

        Parameters
        ----------
        texts : list of str or of tuples (str, str)
            With is_split_into_words, a list of words in place of each str.
        pad_to : int or None
            The length T of every row; None takes the longest row's.
        max_length, truncation, allow_special, is_split_into_words
            As in `encode`, for every row.

        Returns
        -------
        Encoding
            Arrays of shape (B, T).

        Raises
        ------
        BertError
            As in `encode`, naming the row; if the list is empty; if pad_to
            is below the longest row.
        """
        if not isinstance(texts, (list, tuple)) or len(texts) == 0:
            empty = " of length 0" if isinstance(texts, (list, tuple)) else ""
            raise BertError(
                "texts must be a list of one or more str or tuples "
                f"(str, str), got {type(texts).__name__}{empty}"
            )
        if pad_to is not None:
            pad_to = check_count(pad_to, "pad_to", 2, MAX_PAD_TO)
        options = {"max_length": max_length, "truncation": truncation}
        options["allow_special"] = allow_special
        options["is_split_into_words"] = is_split_into_words
        rows = []
        for i, item in enumerate(texts):
            pair = item if isinstance(item, tuple) and len(item) == 2 else (item,)
            try:
                rows.append(self.encode(*pair, **options))
            except BertError as error:
                raise BertError(f"texts[{i}]: {error}") from None
        longest = max(len(row.tokens) for row in rows)
        if pad_to is not None and pad_to < longest:
            raise BertError(
                f"pad_to = {pad_to}, but a row has {longest} tokens; "
                "give max_length too, or a larger pad_to"
            )
        pad = self.shown.get(self.special[0], self.special[0])
        return pad_rows(rows, pad_to or longest, self.pad_token_id, pad)

    def decode(self, ids, skip_special=False):
        """Turn ids back into text.

        A piece with "##" is joined to the one before, and no space is put
        before . , ! ? as in HuggingFace's decoder. Case and accents that
        cleaning removed do not come back.

        Parameters
        ----------
        ids : sequence or ndarray of int, shape (T,)
            Each in 0..vocab_size - 1.
        skip_special : bool
            Leave out the special tokens.
        """
        check_choice(skip_special, "skip_special", (True, False))
        tokens = [self.tokens[i] for i in check_ids(ids, self.vocab_size)]
        tokens = [self.shown.get(token, token) for token in tokens]
        if skip_special:
            special = {t.content for t in self.added if t.special}.union(self.special)
            tokens = [token for token in tokens if token not in special]
        text = " ".join(tokens).replace(" ##", "")
        return re.sub(" (?=[.,!?])", "", text)
