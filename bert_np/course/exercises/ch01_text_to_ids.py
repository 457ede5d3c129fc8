"""Exercises of chapter 01: words, pieces, ids, segments, masks."""

import string
import unicodedata

import bert_np
from bert_np.course.exercise import Exercise, Mistake, mistakes

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "sat", "because", "it", "was", "tired", ".", "?"]
PIECES = ["un", "play", "##play", "##able", "##a", "##s"]
VOCAB = {token: i for i, token in enumerate(SPECIALS + WORDS + PIECES)}


# ------------------------------------------------------------------- split


def my_words(text):
    spaced = ""
    for ch in text.lower():
        is_mark = ch in string.punctuation or unicodedata.category(ch)[0] == "P"
        spaced += f" {ch} " if is_mark else ch
    return spaced.split()


def _every_sign(text):
    """you split off signs that are not punctuation, such as € or ²: look at
    the rule again
    """
    return "".join(ch if ch.isalnum() else f" {ch} " for ch in text.lower()).split()


def _case_kept(text):
    """The and the are two entries for a vocabulary: lower-case the text
    first
    """
    text = "".join(f" {ch} " if _is_mark(ch) else ch for ch in text)
    return text.split()


def _is_mark(ch):
    return ch in string.punctuation or unicodedata.category(ch)[0] == "P"


def _at_spaces(text):
    """punctuation is still attached to its word, as in tired. with its full
    stop: split it off
    """
    return text.lower().split()


def _full_stops_only(text):
    """only full stops are split off: split off commas, quotes and all
    other marks, too
    """
    return text.lower().replace(".", " . ").split()


def _punctuation_dropped(text):
    """punctuation is gone: BERT keeps it, each mark as a word of its own"""
    return "".join(" " if _is_mark(ch) else ch for ch in text.lower()).split()


def _word_signs_only(text):
    r"""the underscore is one of the 32 ASCII signs, though \w in a pattern
    counts it as a letter
    """
    return " ".join(my_words(text)).replace(" _ ", "_").split()


def _ascii_marks_only(text):
    """only the signs of ASCII are split off: « and … are punctuation to
    Unicode
    """
    marks = string.punctuation
    return "".join(f" {c} " if c in marks else c for c in text.lower()).split()


def _unicode_marks_only(text):
    """$, +, <, =, >, ^, `, | and ~ are symbols to Unicode; BERT splits
    off all 32 signs of ASCII
    """
    spaced = ""
    for ch in text.lower():
        spaced += f" {ch} " if unicodedata.category(ch)[0] == "P" else ch
    return spaced.split()


def _digits_alone(text):
    """a digit belongs to its word as a letter does: 1969 is one word"""
    alone = "".join(f" {ch} " if ch.isdigit() else ch for ch in text)
    return my_words(alone)


def _english_letters(text):
    """é is a letter, not a mark: look up its category"""
    spaced = ""
    for ch in text.lower():
        alone = not ch.isascii() or ch in string.punctuation
        spaced += f" {ch} " if alone else ch
    return spaced.split()


def _marks_together(text):
    """marks in a row are glued together: each is a word of its own"""
    spaced = "".join(c if _is_mark(c) else f"\0{c}\0" for c in text.lower())
    return spaced.replace("\0\0", "").replace("\0", " ").split()


def _draw_text(rng):
    """Letters, digits, marks and white space in any order."""
    signs = list("abcABCÉé0379.,;:!?'\"-_()$€²+…–«") + 3 * list(" \t\n")
    return ("".join(rng.choice(signs, rng.integers(0, 25))),)


# --------------------------------------------------------------- wordpiece


def my_wordpiece(word, vocab):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start > 0 else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def _cut(word, vocab, prefix, shortest):
    """Pieces greedily; ends with [UNK] where nothing fits."""
    pieces, start = [], 0
    while start < len(word):
        mark = prefix if start > 0 else ""
        ends = [
            end
            for end in range(start + 1, len(word) + 1)
            if mark + word[start:end] in vocab
        ]
        if not ends:
            return [*pieces, "[UNK]"]
        end = min(ends) if shortest else max(ends)
        pieces.append(mark + word[start:end])
        start = end
    return pieces


def _whole(pieces):
    return ["[UNK]"] if "[UNK]" in pieces else pieces


def _without_mark(word, vocab):
    """inside a word a piece is looked up with ##: able and ##able are two
    entries
    """
    return _whole(_cut(word, vocab, "", False))


def _shortest(word, vocab):
    """you took the shortest piece that fits: begin with the longest"""
    return _whole(_cut(word, vocab, "##", True))


def _keeps_the_start(word, vocab):
    """one piece that does not fit makes the whole word [UNK], also the
    pieces before it
    """
    return _cut(word, vocab, "##", False)


def _mark_left_out(word, vocab):
    """right cuts, but the ## is lost: it belongs to the piece"""
    return [piece.removeprefix("##") for piece in my_wordpiece(word, vocab)]


def _goes_back(word, vocab):
    """you try a shorter piece when the rest does not fit: WordPiece never
    goes back
    """

    def cut(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            piece = "##" * (start > 0) + word[start:end]
            rest = cut(end) if piece in vocab else None
            if rest is not None:
                return [piece, *rest]
        return None

    return cut(0) or ["[UNK]"]


def _id_0_is_none(word, vocab):
    """a piece with the id 0 is in the vocabulary too: test with `in`"""
    return my_wordpiece(word, {piece for piece in vocab if vocab[piece]})


def _draw_word(rng):
    """A random vocabulary of pieces over three letters, and a word."""

    def pick(n):
        return "".join(rng.choice(list("abc"), n))

    pieces = {pick(n) for n in rng.integers(1, 4, 8)} | {"a"}
    inside = {"##" + pick(n) for n in rng.integers(1, 4, 8)} | {"##b"}
    entries = rng.permutation(sorted(pieces | inside)).tolist()
    word = pick(rng.integers(1, 8))
    return word, {piece: i for i, piece in enumerate(entries)}


# -------------------------------------------------------------------- pair


def my_encode_pair(first, second, vocab, length):
    tokens, segment_ids = ["[CLS]"], [0]
    for segment, text in enumerate((first, second)):
        clean, _ = bert_np.tokenizer.normalize(text)
        for word, _ in bert_np.tokenizer.basic_split(clean):
            tokens += bert_np.tokenizer.wordpiece(word, vocab)
        tokens += ["[SEP]"]
        segment_ids += [segment] * (len(tokens) - len(segment_ids))
    padding = length - len(tokens)
    input_ids = [vocab[token] for token in tokens] + [vocab["[PAD]"]] * padding
    return input_ids, segment_ids + [0] * padding, [1] * len(tokens) + [0] * padding


def _used(row):
    """How many tokens of a row (input ids, segment ids, mask) are real."""
    return sum(row[2])


def _separator_in_second(first, second, vocab, length):
    """the first [SEP] closes the first text: its segment is 0"""
    ids, segments, mask = my_encode_pair(first, second, vocab, length)
    segments[segments.index(1) - 1] = 1
    return ids, segments, mask


def _padding_in_second(first, second, vocab, length):
    """padding belongs to no text: its segment is 0"""
    ids, segments, mask = my_encode_pair(first, second, vocab, length)
    return ids, [s if bit else 1 for s, bit in zip(segments, mask)], mask


def _inverted(first, second, vocab, length):
    """your mask is inverted: 1 is a real token, 0 padding"""
    ids, segments, mask = my_encode_pair(first, second, vocab, length)
    return ids, segments, [1 - bit for bit in mask]


def _padding_seen(first, second, vocab, length):
    """your mask shows the padding: it must be 0 there"""
    ids, segments, _ = my_encode_pair(first, second, vocab, length)
    return ids, segments, [1] * length


def _no_last_separator(first, second, vocab, length):
    """the second text is closed by a [SEP], too"""
    row = my_encode_pair(first, second, vocab, length)
    last, zeros = _used(row) - 1, (vocab["[PAD]"], 0, 0)
    return tuple(
        values[:last] + values[last + 1 :] + [zero] for values, zero in zip(row, zeros)
    )


def _at_white_space(first, second, vocab, length):
    """punctuation is still attached to its word: clean and split the text
    first
    """
    pieces = [text.lower().split() for text in (first, second)]
    tokens = ["[CLS]", *pieces[0], "[SEP]", *pieces[1], "[SEP]"]
    spare = length - len(tokens)
    ids = [vocab.get(token, vocab["[UNK]"]) for token in tokens]
    segments = [0] * (len(pieces[0]) + 2) + [1] * (len(pieces[1]) + 1) + [0] * spare
    mask = [1] * len(tokens) + [0] * spare
    return ids + [vocab["[PAD]"]] * spare, segments, mask


def _padded_with_zero(first, second, vocab, length):
    """the id of [PAD] is not 0 in every vocabulary: look it up"""
    ids, segments, mask = my_encode_pair(first, second, vocab, length)
    return [i if bit else 0 for i, bit in zip(ids, mask)], segments, mask


def _draw_pair(rng):
    """Two texts, a vocabulary in any order, sometimes no room for padding."""
    entries = rng.permutation([*VOCAB]).tolist()
    words = ["The", "cat", "unplayable", "plays", "it", "was?", "tired.", "dog", ""]
    texts = [" ".join(rng.choice(words, rng.integers(1, 4))) for _ in range(2)]
    vocab = {token: i for i, token in enumerate(entries)}
    used = _used(my_encode_pair(*texts, vocab, 100))
    return *texts, vocab, int(used + rng.integers(0, 4))


TURNED = {token: i for i, token in enumerate(reversed(VOCAB))}
SMALL = {"una": 0, "##b": 1, "##l": 2, "un": 3, "##able": 4, "##a": 5}

EXERCISES = (
    Exercise(
        id="01.split",
        title="Words and punctuation",
        level=1,
        minutes=6,
        task="Write `my_words(text)`: the list of words in lower case, split at "
        "white space. Each punctuation mark becomes a word of its own: each of the "
        "32 signs in `string.punctuation`, and each character whose "
        "`unicodedata.category` begins with P.",
        hints=(
            "Put a space on both sides of every character that must stand alone; "
            "then split at white space.",
            "For each ch of text.lower(): ch in string.punctuation, or "
            'unicodedata.category(ch)[0] == "P"? Then add f" {ch} ", else ch; at the '
            "end .split().",
        ),
        solution=my_words,
        mistakes=mistakes(
            _case_kept,
            _at_spaces,
            _full_stops_only,
            _punctuation_dropped,
            _word_signs_only,
            _ascii_marks_only,
            _unicode_marks_only,
            _every_sign,
            _marks_together,
            _digits_alone,
            _english_letters,
        ),
        cases=(
            ("The cat sat because it was tired.",),
            ("Well, it's 3.5 km!",),
            ("One\ttab,  two spaces\nand a line",),
            ("snake_case, x_1 and _",),
            ("«Élan» costs €5…",),
            ("Really?! In 1969",),
            (" ",),
        ),
        draw=_draw_text,
    ),
    Exercise(
        id="01.unknown",
        title="Which words are unknown?",
        level=1,
        minutes=4,
        task="Six words: cats, its, played, unsat, unplayable, replay. Set "
        "`unknown` to the list of those that the vocabulary above turns into "
        "[UNK], in this order, without any code.",
        hints=(
            "Cut each word from the left. Every piece after the first must be in the "
            "vocabulary with ## before it.",
            "Look for ##ed, for ##sat (sat without ## does not count) and for "
            "a piece that begins replay.",
        ),
        solution=["played", "unsat", "replay"],
        name="unknown",
        why="Each of the three meets a piece that the vocabulary lacks (##ed, ##sat, "
        "replay), and one such piece makes the whole word [UNK].",
        mistakes=(
            Mistake(
                ["replay"],
                "played and unsat begin well, but one missing piece "
                "makes the whole word [UNK]",
            ),
            Mistake(
                ["played", "replay"],
                "unsat needs ##sat; the vocabulary has only sat, which begins a word",
            ),
            Mistake(
                ["unsat", "replay"],
                "played needs ##ed after play, or letters "
                "that make it up; none is there",
            ),
            Mistake([], "three of them meet a piece that the vocabulary lacks"),
        ),
    ),
    Exercise(
        id="01.wordpiece",
        title="The longest piece first",
        level=2,
        minutes=12,
        task="Write `my_wordpiece(word, vocab)`: the list of pieces of a word, at each "
        "place the longest that fits, each after the first with ## before "
        'it; `["[UNK]"]` if at some place no piece fits.',
        hints=(
            "Remember the place where the rest of the word begins. Try the ends from "
            "len(word) down; stop at the first piece that is in the vocabulary.",
            "Python's for ... else runs the else part when no break happened: "
            'there return ["[UNK]"].',
        ),
        solution=my_wordpiece,
        mistakes=mistakes(
            _without_mark,
            _mark_left_out,
            _shortest,
            _keeps_the_start,
            _goes_back,
            _id_0_is_none,
        ),
        cases=(
            ("cat", VOCAB),
            ("unplayable", VOCAB),
            ("unable", VOCAB),
            ("cats", VOCAB),
            ("played", VOCAB),
            ("unsat", VOCAB),
            ("playplay", VOCAB),
            ("replay", VOCAB),
            ("Cat", VOCAB),
            ("unable", SMALL),  # una, ##b, ##l, then no piece for the rest
            ("unab", SMALL),
            ("unaable", SMALL),
        ),
        draw=_draw_word,
    ),
    Exercise(
        id="01.pair",
        title="Two texts in one padded row",
        level=2,
        minutes=10,
        task="Write `my_encode_pair(first, second, vocab, length)` for two texts. "
        "Return three lists of this length: input ids, segment ids, attention mask. "
        "Padding has segment 0. You may call `normalize`, `basic_split` and "
        "`wordpiece` of `bert_np.tokenizer`, as in sections 2 and 3.",
        hints=(
            "Write down the row of tokens first: [CLS], the pieces of the first text, "
            "[SEP], those of the second, [SEP], then padding. Count how many of each.",
            "Segment 0: the pieces of the first text and 2 more. Segment 1: those of "
            "the second and 1 more. Then vocab[token] for each token, and "
            'vocab["[PAD]"] for the rest.',
        ),
        solution=my_encode_pair,
        mistakes=mistakes(
            _separator_in_second,
            _padding_in_second,
            _inverted,
            _padding_seen,
            _no_last_separator,
            _at_white_space,
            _padded_with_zero,
        ),
        cases=(
            ("The cat sat.", "It was tired.", VOCAB, 13),
            ("unplayable", "plays?", VOCAB, 9),
            ("It", "was the CAT", VOCAB, 7),  # no room for padding
            ("cat sat", "it was", TURNED, 10),
            ("a dog", "", VOCAB, 8),
        ),
        draw=_draw_pair,
    ),
)
