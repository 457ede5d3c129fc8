"""Compare bert_np's tokenizer with HuggingFace's on random strings.

    python tests/differential_tokenizer.py --vocab vocab.txt --count 100000

needs the package `tokenizers`. The reference is built from the vocabulary
alone. Ids, segments, offsets, truncation and decoding must be equal.

The two sides carry Unicode tables of different age (Python's own, and
those compiled into `tokenizers`). A sweep of every code point finds those
on which cleaning, decomposing, lower-casing or splitting differ; they are
left out of the random strings. A code point that Unicode 3.2 already had,
with the properties of today, cannot differ by age: it counts as a
mismatch if it does.
"""

import argparse
import random
import sys
import unicodedata

from bert_np.errors import BertError
from bert_np.tokenizer import (SPECIAL_TOKENS, TRUNCATIONS, Tokenizer,
                               basic_split, normalize)

VARIANTS = {
    "uncased": {},
    "cased": {"lowercase": False},
    "cased, accents stripped": {"lowercase": False, "strip_accents": True},
    "uncased, accents kept": {"strip_accents": False},
    "uncased, CJK not spaced": {"handle_chinese_chars": False},
}
BLOCKS = [(0x20, 0x7F), (0xA0, 0x250), (0x250, 0x370), (0x370, 0x590),
          (0x590, 0x780), (0x900, 0xE00), (0xE00, 0x1100), (0x1100, 0x1200),
          (0x13A0, 0x1400), (0x1780, 0x1800), (0x1E00, 0x2000), (0x2000, 0x2070),
          (0x2070, 0x2C00), (0x3000, 0x3200), (0x3400, 0x3420), (0x4E00, 0xA000),
          (0xA000, 0xAC00), (0xAC00, 0xD7A4), (0xE000, 0xE100), (0xF900, 0xFB00),
          (0xFB00, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000),
          (0x1D100, 0x1D200), (0x1D400, 0x1D800), (0x1F300, 0x1FA00),
          (0x20000, 0x2FA20), (0xE0000, 0xE0200), (0x20, 0xD800), (0x10000, 0x110000)]
MARKS = ("\u0300\u0301\u0308\u0323\u0327\u0328\u0334\u0338\u0344\u0345\u034f\u05b0"
         "\u064b\u0651\u093c\u093f\u094d\u0bbe\u0e38\u0f71\u0f73\u1b44\u302a\u302e"
         "\u302f\u3099\uaa7b\U0001d165\U0001d166\U0001d16d\U0001d17b\U0001d185")
BASES = ("aeoEOIİıΣσςßẞǅﬁÅ\u212b\u212aéẫκ\u1f82한각ᄒがガ中\uf900नकিא\u0622"
         "\U0001d15e\U0001d15f\U0001d1bb\u2260\u0958\u037e\u1fef")
SPACES = ("\t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000"
          "\u200b\u200d\u00ad\ufeff\u2060\x00\ufffd\x7f\ue000\U000e0041 ")
EMOJI = ["😀", "🤗", "👍🏽", "❤️", "🇩🇪", "👩‍💻", "☃", "1️⃣", "🏴\U000e0067\U000e007f"]
ODD_SPECIALS = [*SPECIAL_TOKENS, "[mask]", "[MASK", "MASK]", "[[SEP]]", "[CLS] ",
                "[unused5]", "[ SEP ]", "##ing", "[PA\u0301D]", "[MASK]\u0301"]


# -------------------------------------------------------------- the reference
def reference_tokenizer(tokens, lowercase=True, strip_accents=None,
                        handle_chinese_chars=True):
    """Build the `tokenizers` tokenizer of a BERT vocabulary."""
    from tokenizers import (AddedToken, decoders, models, normalizers,
                            pre_tokenizers, processors)
    from tokenizers import Tokenizer as Reference
    vocab = {token: i for i, token in enumerate(tokens)}
    reference = Reference(models.WordPiece(
        vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    reference.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=handle_chinese_chars,
        strip_accents=strip_accents, lowercase=lowercase)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.post_processor = processors.BertProcessing(
        ("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    reference.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    reference.add_special_tokens([AddedToken(token, normalized=False, special=True)
                                  for token in SPECIAL_TOKENS])
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
def agree(text):
    """Say whether both sides clean, decompose and split a text alike."""
    from tokenizers import normalizers, pre_tokenizers
    if (normalizers.NFD().normalize_str(text)
            != unicodedata.normalize("NFD", text)):
        return False
    for rules in VARIANTS.values():
        rules = {"lowercase": True, "strip_accents": None,
                 "handle_chinese_chars": True} | rules
        theirs = normalizers.BertNormalizer(clean_text=True, **rules)
        clean = theirs.normalize_str(text)
        if normalize(text, **rules)[0] != clean:
            return False
        split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(clean)
        if basic_split(clean) != [(word, start) for word, (start, _) in split]:
            return False
    return True


def probe(code):
    """Put a code point between letters and between accents."""
    return f"a{chr(code)}b a\u0301{chr(code)}\u0334b "


def differing_code_points(step=64):
    """Sweep every code point and list those on which the two sides differ."""
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    differing = []
    for start in range(0, len(codes), step):
        some = codes[start:start + step]
        if not agree("".join(map(probe, some))):
            differing += [code for code in some if not agree(probe(code))]
    return differing


def is_stable(code):
    """Say whether Unicode 3.2 had this character with today's properties."""
    old, ch = unicodedata.ucd_3_2_0, chr(code)
    return (unicodedata.category(ch) != "Cn"
            and old.category(ch) == unicodedata.category(ch)
            and old.combining(ch) == unicodedata.combining(ch)
            and old.decomposition(ch) == unicodedata.decomposition(ch))


# ----------------------------------------------------------------- random text
def random_string(rng, tokens):
    """Draw a string of one of many kinds, or a mixture of them."""
    def words():
        return [rng.choice(tokens).replace("##", rng.choice(["", "##"]))
                for _ in range(rng.randrange(12))]

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
        return "".join(rng.choice(BASES) + some(MARKS, 5)
                       for _ in range(rng.randrange(10)))
    if kind == 4:
        return "".join(some("abcdefgXYZ01é.", 6) + some(SPACES, 3)
                       for _ in range(rng.randrange(10)))
    if kind == 5:
        return "".join(rng.choice([*ODD_SPECIALS, "a", " ", "é", "中", "."])
                       for _ in range(rng.randrange(14)))
    if kind == 6:
        return "".join(rng.choice([*EMOJI, "a", " ", "!", "\u200d", "\ufe0f"])
                       for _ in range(rng.randrange(14)))
    if kind == 7:
        return some("aé'", 4) * rng.randrange(20, 110)
    return rng.choice(["", " "]).join(
        random_string(rng, tokens) for _ in range(rng.randrange(4)))


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
    """Return (comparisons, strings with characters taken out, mismatches)."""
    rng = random.Random(seed)
    pairs = [(name, Tokenizer.from_tokens(tokens, **rules),
              reference_tokenizer(tokens, **rules))
             for name, rules in VARIANTS.items()]
    comparisons, touched, mismatches = 0, 0, []
    for _ in range(count):
        arguments, was_touched = random_case(rng, tokens, skipped)
        touched += was_touched
        for name, ours, theirs in [*pairs[:2], rng.choice(pairs[2:])]:
            found = our_encode(ours, *arguments)
            wanted = reference_encode(theirs, *arguments)
            comparisons += 1
            if found != wanted:
                mismatches.append((name, arguments, found, wanted))
        ids = rng.choices(range(len(tokens)), k=rng.randrange(12))
        skip = rng.random() < 0.5
        comparisons += 1
        text, wanted = ours.decode(ids, skip), theirs.decode(ids, skip)
        if text != wanted:
            mismatches.append(("decode", (ids, skip), text, wanted))
    return comparisons, touched, mismatches


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocab", required=True, help="a vocab.txt")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tokens = Tokenizer.from_vocab(options.vocab).tokens
    differing = differing_code_points()
    faults = [code for code in differing if is_stable(code)]
    print(f"code points on which the Unicode tables differ, skipped: {len(differing)}")
    print(f"of these unchanged since Unicode 3.2, so a fault: {len(faults)}",
          *[f"U+{code:04X}" for code in faults[:20]])
    comparisons, touched, mismatches = compare(
        tokens, options.count, options.seed, dict.fromkeys(differing))
    for mismatch in mismatches[:5]:
        print(*map(ascii, mismatch), sep="\n    ")
    print(f"strings or pairs: {options.count}, of these with skipped characters "
          f"taken out: {touched}")
    print(f"comparisons: {comparisons}, mismatches: {len(mismatches)}")
    return 1 if mismatches or faults else 0


if __name__ == "__main__":
    sys.exit(main())
