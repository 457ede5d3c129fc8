"""Exercises of chapter 01: words, pieces, ids, segments, masks."""

from bert_np.course.exercise import Exercise, Mistake, mistakes

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "sat", "because", "it", "was", "tired", ".", "?"]
PIECES = ["un", "play", "##play", "##able", "##a", "##s"]
VOCAB = {token: i for i, token in enumerate(SPECIALS + WORDS + PIECES)}


# ------------------------------------------------------------------- split


def my_split(text):
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


EXERCISES = (
    Exercise(
        id="01.split",
        title="Words and punctuation",
        level=1,
        minutes=6,
        task="Write `my_split(text)`: the list of words in lower case. Each "
        "character that is neither a letter, nor a digit, nor white space "
        "becomes a word of its own.",
        hints=(
            "Put a space on both sides of every character that must stand alone; "
            "then split at white space.",
            'ch.isalnum() says letter or digit. Join (ch or f" {ch} ") over '
            "text.lower(), then call .split().",
        ),
        solution=my_split,
        mistakes=mistakes(
            _case_kept, _at_spaces, _full_stops_only, _punctuation_dropped
        ),
        cases=(
            ("The cat sat because it was tired.",),
            ("Well, it's 3.5 km!",),
            ("One\ttab,  two spaces",),
        ),
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
        mistakes=mistakes(_without_mark, _mark_left_out, _shortest, _keeps_the_start),
        cases=(
            ("cat", VOCAB),
            ("unplayable", VOCAB),
            ("unable", VOCAB),
            ("cats", VOCAB),
            ("played", VOCAB),
            ("unsat", VOCAB),
        ),
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
        ),
    ),
)
