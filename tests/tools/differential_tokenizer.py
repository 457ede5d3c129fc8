"""Compare bert_np's tokenizer with HuggingFace's.

    python tests/differential_tokenizer.py sweep            every code point
    python tests/differential_tokenizer.py random --count 1000000
    python tests/differential_tokenizer.py time             1 MB of text, both sides

need the package `tokenizers` and write their figures to
tests/robustness/differential.json. The reference is built from
the vocabulary alone. Ids, segments, offsets, truncation and decoding must
be equal.

The two sides carry Unicode tables of different age (Python's own, and
those compiled into `tokenizers`). The sweep finds the code points on which
cleaning, decomposing, lower-casing or splitting differ, and how; they are
left out of the random strings. A code point that Unicode 3.2 already had,
with the properties of today, cannot differ by age: it counts as a
mismatch if it does.
"""

import argparse
import platform
import random
import sys
import time
import unicodedata
from importlib.metadata import version

from make_robustness import read_figures, write_figures

from bert_np.errors import BertError
from bert_np.files.pretrained import fetch
from bert_np.tokenizer import (
    SPECIAL_TOKENS,
    TRUNCATIONS,
    Tokenizer,
    basic_split,
    normalize,
)

VARIANTS = {
    "uncased": {},
    "cased": {"lowercase": False},
    "cased, accents stripped": {"lowercase": False, "strip_accents": True},
    "uncased, accents kept": {"strip_accents": False},
    "uncased, CJK not spaced": {"handle_chinese_chars": False},
}
WEIGHTS = (4, 3, 1, 1, 1)  # how often the random strings meet a variant
DEFAULTS = {"lowercase": True, "strip_accents": None, "handle_chinese_chars": True}
BLOCKS = [
    (0x20, 0x7F),
    (0xA0, 0x250),
    (0x250, 0x370),
    (0x370, 0x590),
    (0x590, 0x780),
    (0x900, 0xE00),
    (0xE00, 0x1100),
    (0x1100, 0x1200),
    (0x13A0, 0x1400),
    (0x1780, 0x1800),
    (0x1E00, 0x2000),
    (0x2000, 0x2070),
    (0x2070, 0x2C00),
    (0x3000, 0x3200),
    (0x3400, 0x3420),
    (0x4E00, 0xA000),
    (0xA000, 0xAC00),
    (0xAC00, 0xD7A4),
    (0xE000, 0xE100),
    (0xF900, 0xFB00),
    (0xFB00, 0x10000),
    (0x10000, 0x11000),
    (0x11000, 0x12000),
    (0x1D100, 0x1D200),
    (0x1D400, 0x1D800),
    (0x1F300, 0x1FA00),
    (0x20000, 0x2FA20),
    (0xE0000, 0xE0200),
    (0x20, 0xD800),
    (0x10000, 0x110000),
]
MARKS = (
    "\u0300\u0301\u0308\u0323\u0327\u0328\u0334\u0338\u0344\u0345\u034f\u05b0"
    "\u064b\u0651\u093c\u093f\u094d\u0bbe\u0e38\u0f71\u0f73\u1b44\u302a\u302e"
    "\u302f\u3099\uaa7b\U0001d165\U0001d166\U0001d16d\U0001d17b\U0001d185"
)
BASES = (
    "aeoEOIİıΣσςßẞǅﬁÅ\u212b\u212aéẫκ\u1f82한각ᄒがガ中\uf900नकিא\u0622"
    "\U0001d15e\U0001d15f\U0001d1bb\u2260\u0958\u037e\u1fef"
)
SPACES = (
    "\t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000"
    "\u200b\u200d\u00ad\ufeff\u2060\x00\ufffd\x7f\ue000\U000e0041 "
)
EMOJI = ["😀", "🤗", "👍🏽", "❤️", "🇩🇪", "👩‍💻", "☃", "1️⃣", "🏴\U000e0067\U000e007f"]
ODD_SPECIALS = [
    *SPECIAL_TOKENS,
    "[mask]",
    "[MASK",
    "MASK]",
    "[[SEP]]",
    "[CLS] ",
    "[unused5]",
    "[ SEP ]",
    "##ing",
    "[PA\u0301D]",
    "[MASK]\u0301",
]


# -------------------------------------------------------------- the reference
def reference_tokenizer(
    tokens, lowercase=True, strip_accents=None, handle_chinese_chars=True
):
    """Build the `tokenizers` tokenizer of a BERT vocabulary."""
    from tokenizers import (
        AddedToken,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )
    from tokenizers import Tokenizer as Reference

    vocab = {token: i for i, token in enumerate(tokens)}
    reference = Reference(
        models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    reference.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=handle_chinese_chars,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.post_processor = processors.BertProcessing(
        ("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"])
    )
    reference.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    reference.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS]
    )
    return reference


def reference_encode(reference, text, pair, max_length, truncation, allow_special):
    """Encode with the reference: (ids, segments, offsets), or "error"."""
    reference.encode_special_tokens = not allow_special
    reference.no_truncation()
    if max_length is not None:
        reference.enable_truncation(max_length, strategy=truncation)
    try:
        found = reference.encode(text, pair or None)
    except Exception as error:
        if "Truncation error" not in str(error):
            raise
        return "error"
    return found.ids, found.type_ids, found.offsets


def our_encode(tokenizer, *arguments):
    """Encode with bert_np: (ids, segments, offsets), or "error"."""
    try:
        found = tokenizer.encode(*arguments)
    except BertError as error:
        if "truncation" not in str(error):
            raise
        return "error"
    return found.input_ids.tolist(), found.segment_ids.tolist(), found.offsets


# ------------------------------------------------------------------ the sweep
def decomposes_alike(text):
    from tokenizers import normalizers

    return normalizers.NFD().normalize_str(text) == unicodedata.normalize("NFD", text)


def cleans_alike(text, rules):
    from tokenizers import normalizers

    rules = DEFAULTS | rules
    theirs = normalizers.BertNormalizer(clean_text=True, **rules)
    return normalize(text, **rules)[0] == theirs.normalize_str(text)


def splits_alike(text):
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
    return basic_split(text) == [(word, start) for word, (start, _) in split]


def agree(text, variants=tuple(VARIANTS)):
    """Say whether both sides clean, decompose and split a text alike."""
    if not decomposes_alike(text):
        return False
    for name in variants:
        if not cleans_alike(text, VARIANTS[name]):
            return False
        if not splits_alike(normalize(text, **VARIANTS[name])[0]):
            return False
    return True


def probe(code):
    """Put a code point between letters and between accents."""
    return f"a{chr(code)}b a\u0301{chr(code)}\u0334b "


def code_points():
    return [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def differing_code_points(step=64):
    """Sweep every code point and list those on which the two sides differ."""
    codes, differing = code_points(), []
    for start in range(0, len(codes), step):
        some = codes[start : start + step]
        if not agree("".join(map(probe, some))):
            differing += [code for code in some if not agree(probe(code))]
    return differing


def is_stable(code):
    """Say whether Unicode 3.2 had this character with today's properties."""
    old, ch = unicodedata.ucd_3_2_0, chr(code)
    return (
        unicodedata.category(ch) != "Cn"
        and old.category(ch) == unicodedata.category(ch)
        and old.combining(ch) == unicodedata.combining(ch)
        and old.decomposition(ch) == unicodedata.decomposition(ch)
    )


def kind_of(code):
    """Say in which step the two sides part, and which one's table is newer."""
    text = probe(code)
    plain = {"lowercase": False, "strip_accents": False, "handle_chinese_chars": False}
    steps = {
        "deleted as a control or format character": cleans_alike(text, plain),
        "deleted as an accent": cleans_alike(text, plain | {"strip_accents": True}),
        "lower-cased": cleans_alike(text, plain | {"lowercase": True}),
        "split off as punctuation": splits_alike(text),
        "decomposed, or accents put in order": decomposes_alike(text),
    }
    first = next((name for name, alike in steps.items() if not alike), "something else")
    ch, old = chr(code), unicodedata.ucd_3_2_0
    if unicodedata.category(ch) == "Cn":
        age = "not in Python's table"
    elif old.category(ch) == "Cn":
        age = "added after Unicode 3.2"
    else:
        age = "fault" if is_stable(code) else "changed since Unicode 3.2"
    return f"{first}: {age}"


def spell_ranges(codes):
    """Code points as text: "U+0898..U+089C U+08CA"."""
    runs = []
    for code in sorted(codes):
        if runs and runs[-1][-1] == code - 1:
            runs[-1] = [runs[-1][0], code]
        else:
            runs.append([code])
    return " ".join("..".join(f"U+{code:04X}" for code in run) for run in runs)


def read_ranges(text):
    """The code points that spell_ranges wrote."""
    for run in text.split():
        ends = [int(code[2:], 16) for code in run.split("..")]
        yield from range(ends[0], ends[-1] + 1)


def sweep():
    """The figures of a sweep: how many differ, which, and why."""
    differing, kinds = differing_code_points(), {}
    for code in differing:
        kinds.setdefault(kind_of(code), []).append(code)
    counts = [
        sum(not agree(probe(code), [name]) for code in differing)
        for name in ("uncased", "cased")
    ]
    faults = [code for code in differing if is_stable(code)]
    return {
        "swept": {
            "columns": [
                "code points",
                "differ uncased",
                "differ cased",
                "differ in any variant",
                "faults",
            ],
            "rows": [[len(code_points()), *counts, len(differing), len(faults)]],
        },
        "kinds": {
            "columns": ["one side only, by age", "count", "code points"],
            "rows": [
                [kind, len(some), spell_ranges(some)]
                for kind, some in sorted(kinds.items())
            ],
        },
    }


# ----------------------------------------------------------------- random text
def random_string(rng, tokens):
    """Draw a string of one of many kinds, or a mixture of them."""

    def words():
        return [
            rng.choice(tokens).replace("##", rng.choice(["", "##"]))
            for _ in range(rng.randrange(12))
        ]

    def some(alphabet, most):
        return "".join(rng.choices(alphabet, k=rng.randrange(1, most)))

    kind = rng.randrange(9)
    if kind == 0:
        return " ".join(words())
    if kind == 1:
        change = rng.choice([str.upper, str.title, str.swapcase])
        return rng.choice(["", ", ", " ", "-", "\u00a0"]).join(map(change, words()))
    if kind == 2:
        first, last = rng.choice(BLOCKS)
        drawn = (chr(rng.randrange(first, last)) for _ in range(rng.randrange(40)))
        return "".join(ch for ch in drawn if not "\ud800" <= ch <= "\udfff")
    if kind == 3:
        return "".join(
            rng.choice(BASES) + some(MARKS, 5) for _ in range(rng.randrange(10))
        )
    if kind == 4:
        return "".join(
            some("abcdefgXYZ01é.", 6) + some(SPACES, 3)
            for _ in range(rng.randrange(10))
        )
    if kind == 5:
        return "".join(
            rng.choice([*ODD_SPECIALS, "a", " ", "é", "中", "."])
            for _ in range(rng.randrange(14))
        )
    if kind == 6:
        return "".join(
            rng.choice([*EMOJI, "a", " ", "!", "\u200d", "\ufe0f"])
            for _ in range(rng.randrange(14))
        )
    if kind == 7:
        return some("aé'", 4) * rng.randrange(20, 110)
    return rng.choice(["", " "]).join(
        random_string(rng, tokens) for _ in range(rng.randrange(4))
    )


def random_case(rng, tokens, skipped):
    """Draw (arguments of encode, whether a skipped character was taken out)."""
    text, pair = random_string(rng, tokens), None
    if rng.random() < 0.4:
        pair = random_string(rng, tokens)
    kept = [part and part.translate(skipped) for part in (text, pair)]
    max_length, truncation = None, rng.choice(TRUNCATIONS)
    if rng.random() < 0.4:
        # At the number of specials only_first and only_second differ:
        # HuggingFace returns no text at all, bert_np an error.
        least = (3 if kept[1] else 2) + (truncation != "longest_first")
        max_length = rng.randrange(least, 24)
    return (*kept, max_length, truncation, rng.random() < 0.7), kept != [text, pair]


# --------------------------------------------------------------- the comparison
def compare(tokens, count, seed, skipped):
    """Compare texts (or pairs) and ids: (figures, mismatches)."""
    rng = random.Random(seed)
    pairs = [
        (
            name,
            Tokenizer.from_tokens(tokens, **rules),
            reference_tokenizer(tokens, **rules),
        )
        for name, rules in VARIANTS.items()
    ]
    figures = dict.fromkeys(("encoded", "of these pairs", "altered", "decoded"), 0)
    mismatches = []
    for _ in range(count):
        arguments, was_touched = random_case(rng, tokens, skipped)
        ((name, ours, theirs),) = rng.choices(pairs, WEIGHTS)
        found = our_encode(ours, *arguments)
        wanted = reference_encode(theirs, *arguments)
        if found != wanted:
            mismatches.append((name, arguments, found, wanted))
        ids = rng.choices(range(len(tokens)), k=rng.randrange(12))
        skip = rng.random() < 0.5
        text, wanted = ours.decode(ids, skip), theirs.decode(ids, skip)
        if text != wanted:
            mismatches.append(("decode", (ids, skip), text, wanted))
        figures["encoded"] += 1
        figures["decoded"] += 1
        figures["of these pairs"] += arguments[1] is not None
        figures["altered"] += was_touched
    return figures, mismatches


def compare_random(count, seed, kinds):
    """The figures of `count` random strings, without what the sweep found."""
    tokens = Tokenizer.from_vocab(fetch("all-MiniLM-L6-v2") / "vocab.txt").tokens
    skipped = {code: None for _, _, some in kinds["rows"] for code in read_ranges(some)}
    start = time.perf_counter()
    figures, mismatches = compare(tokens, count, seed, skipped)
    for mismatch in mismatches[:5]:
        print(*map(ascii, mismatch), sep="\n    ")
    figures |= {
        "mismatches": len(mismatches),
        "code points left out": len(skipped),
        "seed": seed,
        "seconds": round(time.perf_counter() - start),
    }
    return {"random": {"columns": list(figures), "rows": [list(figures.values())]}}


def long_word(rng):
    return "".join(rng.choices("etaoinshrdlu", k=100)) + " "


def any_character(rng):
    return chr(rng.choice([rng.randrange(0xD800), rng.randrange(0x10000, 0x110000)]))


MEGABYTE = {
    "English": lambda rng: "the cat sat on the mat, unhappily. ",
    "one word of 100 letters": lambda rng: "abcdefghij" * 10 + " ",
    "many words of 100 letters": long_word,
    "one word without a space": lambda rng: "a",
    "Chinese": lambda rng: "中文字",
    "accents out of order": lambda rng: "e\u0301\u0323\u0328",
    "special tokens": lambda rng: "[MASK]",
    "spaces": lambda rng: " ",
    "any code point": any_character,
}


def megabyte(draw, rng):
    """A text of 1,000,000 bytes of UTF-8, or a few less."""
    parts, room = [], 1_000_000
    while room > 0:
        parts.append(draw(rng))
        room -= len(parts[-1].encode("utf-8"))
    return "".join(parts[:-1]) if room < 0 else "".join(parts)


def measure_time(seed):
    """Seconds for a megabyte of each kind of text."""
    path, rng = fetch("all-MiniLM-L6-v2") / "vocab.txt", random.Random(seed)
    ours = Tokenizer.from_vocab(path)
    theirs, rows = reference_tokenizer(ours.tokens), []
    for kind, draw in MEGABYTE.items():
        text, seconds = megabyte(draw, rng), []
        for encode in (ours.encode, theirs.encode):
            start = time.process_time()
            encode(text)
            seconds.append(round(time.process_time() - start, 2))
        rows.append([kind, *seconds])
    columns = ["1 MB of", "bert_np, seconds", "tokenizers, seconds"]
    return {"time": {"columns": columns, "rows": rows}}


TABLES = ("random", "swept", "kinds", "time")
TEXT = [
    "Random strings, and pairs of them, of nine kinds (words, case, blocks of Unicode, "
    "accents in any order, control characters and spaces, special tokens, emoji, words "
    "of more than 100 characters, mixtures): ids, segments, offsets, truncation must "
    "be equal under one of five settings each, and a random row of ids must decode to "
    "the same text.",
    "The sweep puts every code point between letters and between accents. It differs "
    "where Unicode's tables differ in age: `tokenizers` splits, drops accents and puts "
    "accents in order by tables older than Python's, and lower-cases by one that is "
    "newer. A difference in a character that Unicode 3.2 had with the properties of "
    "today would be a fault.",
]


def update(found):
    """Put new tables in the place of the old ones."""
    old = read_figures().get("differential.json", {"tables": []})["tables"]
    tables = dict(zip(TABLES, old)) | found
    empty = {"columns": ["not measured yet"], "rows": []}
    write_figures(
        "differential.json",
        {
            "order": 30,
            "section": "The tokenizer beside HuggingFace's",
            "command": "python tests/differential_tokenizer.py sweep; "
            "python tests/differential_tokenizer.py random --count 1000000; "
            "python tests/differential_tokenizer.py time",
            "versions": {
                "tokenizers": version("tokenizers"),
                "python": platform.python_version(),
                "Unicode of Python": unicodedata.unidata_version,
            },
            "text": TEXT,
            "tables": [tables.get(name, empty) for name in TABLES],
        },
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["sweep", "random", "time"])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faults = 0
    if options.part == "time":
        found = measure_time(options.seed)
    elif options.part == "sweep":
        found = sweep()
        faults = found["swept"]["rows"][0][-1]
    else:
        figures = read_figures().get("differential.json")
        if figures is None:
            parser.error("run the sweep first: it says what to leave out")
        kinds = dict(zip(TABLES, figures["tables"]))["kinds"]
        found = compare_random(options.count, options.seed, kinds)
        faults = found["random"]["rows"][0][4]
    update(found)
    print(found)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
