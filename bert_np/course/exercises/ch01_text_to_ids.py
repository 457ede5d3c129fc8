"""Exercises of chapter 01: words, pieces, ids, segments, masks."""

import re

from bert_np.course.exercise import Exercise, Mistake, mistakes

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "sat", "because", "it", "was", "tired", ".", "?"]
PIECES = ["un", "play", "##play", "##able", "##a", "##s"]
VOCAB = {token: i for i, token in enumerate(SPECIALS + WORDS + PIECES)}


# ------------------------------------------------------------------- split


def my_words(text):
    spaced = "".join(ch if ch.isalnum() else f" {ch} " for ch in text.lower())
    return spaced.split()


def _case_kept(text):
    """The and the are two entries for a vocabulary: lower-case the text
    first
    """
    return "".join(ch if ch.isalnum() else f" {ch} " for ch in text).split()


def _at_spaces(text):
    """punctuation is still attached to its word, as in tired. with its full
    stop: split it off
    """
    return text.lower().split()


def _full_stops_only(text):
    """only full stops are split off: commas, quotes and all other signs
    must be too
    """
    return text.lower().replace(".", " . ").split()


def _punctuation_dropped(text):
    """punctuation is gone: BERT keeps it, each mark as a word of its own"""
    return "".join(ch if ch.isalnum() else " " for ch in text.lower()).split()


def _word_signs_only(text):
    r"""the underscore stays in its word: it is no letter, though \w in a
    pattern counts it as one
    """
    return re.findall(r"\w+|[^\w\s]", text.lower())


def _ascii_marks_only(text):
    """only the marks of a keyboard are split off: every sign such as € or …
    must be too
    """
    return re.findall(r"[!-/:-@[-`{-~]|[^\s!-/:-@[-`{-~]+", text.lower())


def _marks_together(text):
    """marks that follow one another are glued: each is a word of its own"""
    return re.findall(r"[^\W_]+|(?:[^\w\s]|_)+", text.lower())


def _digits_alone(text):
    """a digit belongs to its word as a letter does: 1969 is one word"""
    spaced = "".join(ch if ch.isalpha() else f" {ch} " for ch in text.lower())
    return spaced.split()


def _english_letters(text):
    """é is a letter too: ask with ch.isalnum()"""
    return re.findall(r"[a-z0-9]+|[^a-z0-9\s]", text.lower())


def _draw_text(rng):
    """Letters, digits, marks and white space in any order."""
    signs = list("abcABCÉé0379.,;:!?'\"-_()$€…–«") + 3 * list(" \t\n")
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
    """a piece with the id 0 is in the vocabulary too: ask with `in`"""
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


def my_pair(first, second, length):
    tokens = ["[CLS]"] + first + ["[SEP]"] + second + ["[SEP]"]
    spare = length - len(tokens)
    segment_ids = [0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * spare
    attention_mask = [1] * len(tokens) + [0] * spare
    return tokens + ["[PAD]"] * spare, segment_ids, attention_mask


def _separator_in_second(first, second, length):
    """the first [SEP] closes the first text: its segment is 0"""
    tokens, _, attention_mask = my_pair(first, second, length)
    ones = len(second) + 2
    segment_ids = [0] * (len(first) + 1) + [1] * ones
    return tokens, segment_ids + [0] * (length - len(segment_ids)), attention_mask


def _padding_in_second(first, second, length):
    """padding belongs to no text: its segment is 0"""
    tokens, _, attention_mask = my_pair(first, second, length)
    zeros = len(first) + 2
    return tokens, [0] * zeros + [1] * (length - zeros), attention_mask


def _inverted(first, second, length):
    """your mask is inverted: 1 is a real token, 0 padding"""
    tokens, segment_ids, attention_mask = my_pair(first, second, length)
    return tokens, segment_ids, [1 - bit for bit in attention_mask]


def _padding_seen(first, second, length):
    """your mask shows the padding: it must be 0 there"""
    tokens, segment_ids, _ = my_pair(first, second, length)
    return tokens, segment_ids, [1] * length


def _no_last_separator(first, second, length):
    """the second text too is closed by a [SEP]"""
    used = len(first) + len(second) + 2
    tokens = ["[CLS]", *first, "[SEP]", *second] + ["[PAD]"] * (length - used)
    segment_ids = [0] * (len(first) + 2) + [1] * len(second) + [0] * (length - used)
    return tokens, segment_ids, [1] * used + [0] * (length - used)


def _draw_pair(rng):
    """Texts of different lengths, sometimes without room for padding."""
    n, m, spare = (rng.integers(1, 5, 3) - [0, 0, 1]).tolist()
    first, second = ["cat", "sat", "it", "was"][:n], ["un", "##able", ".", "?"][:m]
    return first, second, n + m + 3 + spare


SMALL = {"una": 0, "##b": 1, "##l": 2, "un": 3, "##able": 4, "##a": 5}

EXERCISES = (
    Exercise(
        id="01.split",
        title="Words and punctuation",
        level=1,
        minutes=6,
        task="Write `my_words(text)`: the list of words in lower case. Each "
        "character that is neither a letter, nor a digit, nor white space "
        "becomes a word of its own.",
        hints=(
            "Put a space on both sides of every character that must stand alone; "
            "then split at white space.",
            'ch.isalnum() says letter or digit. Join (ch or f" {ch} ") over '
            "text.lower(), then call .split().",
        ),
        solution=my_words,
        mistakes=mistakes(
            _case_kept,
            _at_spaces,
            _full_stops_only,
            _punctuation_dropped,
            _word_signs_only,
            _ascii_marks_only,
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
        "[UNK], in this order. Use no code.",
        hints=(
            "Cut each word from the left. Every piece after the first must stand "
            "in the vocabulary with ## before it.",
            "Look for ##ed, for ##sat (sat without ## does not count) and for "
            "something that begins replay.",
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
        task="Write `my_wordpiece(word, vocab)`: the list of pieces of a word, the "
        "longest possible piece first, each after the first with ## before "
        'it; `["[UNK]"]` if at some place no piece fits.',
        hints=(
            "Keep the place where the rest begins. Try the ends from len(word) "
            "down; stop at the first piece that is in the vocabulary.",
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
        minutes=8,
        task="Write `my_pair(first, second, length)` for two lists of pieces. Return "
        "three lists of this length: tokens, segment ids, attention mask. "
        "Padding has segment 0.",
        hints=(
            "Write the row down first: [CLS], first, [SEP], second, [SEP], then "
            "padding. Count how many of each.",
            "Segment 0: len(first) + 2 places. Segment 1: len(second) + 1 places. "
            "Mask: 1 for every token that is no padding.",
        ),
        solution=my_pair,
        mistakes=mistakes(
            _separator_in_second,
            _padding_in_second,
            _inverted,
            _padding_seen,
            _no_last_separator,
        ),
        cases=(
            (["the", "cat", "sat"], ["it", "was", "tired", "."], 12),
            (["un", "##able"], ["it"], 8),
            (["it"], ["was", "the", "cat"], 7),  # no room for padding
            (["cat", "sat"], ["it", "was"], 8),
        ),
        draw=_draw_pair,
    ),
)
