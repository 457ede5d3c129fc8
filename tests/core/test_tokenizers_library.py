"""The tokenizer beside HuggingFace's `tokenizers`, on any text.

The two carry Unicode tables of different age: Python's own, and those
compiled into `tokenizers`. Only characters are compared that Unicode 3.2
had with the properties of today, since they cannot differ by age.
"""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_np import BertError
from bert_np.added_tokens import AddedToken
from bert_np.tokenizer import (
    SPECIAL_TOKENS,
    TRUNCATIONS,
    Tokenizer,
    basic_split,
    normalize,
)

pytestmark = pytest.mark.references
VARIANTS = {
    "uncased": {},
    "cased": {"lowercase": False},
    "cased, accents stripped": {"lowercase": False, "strip_accents": True},
    "uncased, accents kept": {"strip_accents": False},
    "uncased, CJK not spaced": {"handle_chinese_chars": False},
}


def normalizer(lowercase=True, strip_accents=None, handle_chinese_chars=True):
    from tokenizers.normalizers import BertNormalizer

    return BertNormalizer(True, handle_chinese_chars, strip_accents, lowercase)


def reference(tokens, **rules):
    """The `tokenizers` tokenizer of a BERT vocabulary."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors

    vocab = {token: i for i, token in enumerate(tokens)}
    made = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    made.normalizer = normalizer(**rules)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocab[token]) for token in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    made.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    special = [tokenizers.AddedToken(t, normalized=False) for t in SPECIAL_TOKENS]
    made.add_special_tokens(special)
    return made


def their_encode(made, text, pair, max_length, truncation, allow_special):
    """(ids, segments, offsets, words), or "error"; of lists of words too."""
    made.encode_special_tokens = not allow_special
    made.no_truncation()
    if max_length is not None:
        made.enable_truncation(max_length, strategy=truncation)
    try:
        found = made.encode(text, pair or None, isinstance(text, list))
    except Exception as error:
        assert "Truncation error" in str(error)
        return "error"
    return found.ids, found.type_ids, found.offsets, found.word_ids


def our_encode(tokenizer, *arguments):
    try:
        found = tokenizer.encode(*arguments, isinstance(arguments[0], list))
    except BertError as error:
        assert "truncation" in str(error)
        return "error"
    ids, segments = found.input_ids.tolist(), found.segment_ids.tolist()
    return ids, segments, found.offsets, found.word_ids


def is_stable(code):
    """Whether Unicode 3.2 had this character with today's properties."""
    old, ch = unicodedata.ucd_3_2_0, chr(code)
    return unicodedata.category(ch) not in ("Cn", "Cs") and all(
        getattr(old, name)(ch) == getattr(unicodedata, name)(ch)
        for name in ("category", "combining", "decomposition")
    )


class Unstable(dict):
    """A translation that deletes the characters that are not stable."""

    def __missing__(self, code):
        self[code] = code if is_stable(code) else None
        return self[code]


# --------------------------------------------------------- every character
CHUNKS = [range(start, start + 64) for start in range(0, 0x110000, 64)]


@pytest.mark.parametrize(
    "last", [0x2000, pytest.param(0x110000, marks=pytest.mark.slow)]
)
def test_every_stable_character_is_cleaned_and_split_alike(last):
    from tokenizers.pre_tokenizers import BertPreTokenizer

    split = BertPreTokenizer().pre_tokenize_str
    variants = [(rules, normalizer(**rules)) for rules in VARIANTS.values()]
    for codes in CHUNKS[: last // 64]:
        probes = [f"a{chr(c)}b a\u0301{chr(c)}\u0334b " for c in codes if is_stable(c)]
        text = "".join(probes)
        for rules, theirs in variants:
            plain, _ = normalize(text, **rules)
            assert plain == theirs.normalize_str(text)
            assert basic_split(plain) == [(word, at[0]) for word, at in split(plain)]


# ---------------------------------------------------------------- any text
MARKS = (
    "\u0300\u0301\u0308\u0323\u0327\u0328\u0334\u0338\u0344\u0345\u034f\u05b0\u064b"
    "\u0651\u093c\u094d\u0bbe\u0e38\u0f71\u0f73\u302a\u3099\U0001d165\U0001d16d"
)
BASES = "aeoEOIİıΣσςßẞǅﬁÅ\u212b\u212aéẫκ\u1f82한각ᄒがガ中\uf900नकিא\u0622\u2260\u0958"
SPACES = "\t\n\r\x0b\x1c\x85\xa0\u1680\u2003\u2028\u3000\u200b\u200d\xad\ufeff\0\ufffd "
ODD = ["[mask]", "[MASK", "MASK]", "[[SEP]]", "[ SEP ]", "##ing", "[PA\u0301D]", "👩‍💻"]


def texts(tokens):
    """Words, pieces, accents, spaces, special tokens, characters, all glued."""
    words = st.sampled_from(tokens)
    part = st.one_of(
        words.map(lambda word: word.removeprefix("##")),
        words.map(str.title).map("{} ".format),
        st.builds(str.__add__, st.sampled_from(BASES), st.text(MARKS, max_size=4)),
        st.text(SPACES, max_size=3),
        st.sampled_from([*SPECIAL_TOKENS, *ODD]),
        st.text(max_size=8),
        st.integers(20, 110).map("aé'".__mul__),
    )
    return st.lists(part, max_size=8).map(lambda parts: "".join(parts))


@pytest.mark.parametrize("examples", [200, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_any_text_is_encoded_and_decoded_alike(minilm, rules, examples):
    tokens, stable = minilm.tokenizer.tokens, Unstable()
    ours, theirs = Tokenizer.from_tokens(tokens, **rules), reference(tokens, **rules)
    text = texts(tokens).map(lambda text: text.translate(stable))

    words = st.lists(text, max_size=4)

    @settings(max_examples=examples)
    @given(
        st.tuples(text, st.none() | text) | st.tuples(words, st.none() | words),
        # Where no token is left to a text, HuggingFace returns none at all.
        st.none() | st.integers(4, 24),
        st.sampled_from(TRUNCATIONS),
        st.booleans(),
        st.lists(st.integers(0, len(tokens) - 1), max_size=12),
    )
    def run(both, max_length, truncation, flag, ids):
        arguments = *both, max_length, truncation, flag
        assert our_encode(ours, *arguments) == their_encode(theirs, *arguments)
        assert ours.decode(ids, flag) == theirs.decode(ids, flag)

    run()


# ------------------------------------------------------------ added tokens
CONTENTS = ["[E1]", "covid", "COVID", "New York", "é", "e\u0301t", "中", "sw", "swan"]
CONTENTS += ["a", "##ing", "[MASK]", "[MASK][", "!", "<x>", "x y ", "\u200bz", "Ünter"]
PIECES = [
    *SPECIAL_TOKENS,
    *"acdeinorstvwxyz[]中!.'_19",
    "##s",
    "##w",
    "##ovid",
    "##ing",
]
PIECES += ["swan", "new", "york", "un", "##ter", "co", "##vid", "é", "New"]
ADDED = st.lists(
    st.builds(AddedToken, st.sampled_from(CONTENTS), *[st.booleans()] * 5).map(
        lambda t: t._replace(special=t.special or t.content in SPECIAL_TOKENS)
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda token: token.content.lower(),  # else the library's order varies
)
GLUE = [" ", "  ", "\t", "\x1c", "\u3000", "\u0301", "\u200b", ".", "'", "_", "s", "9"]
ADDED_TEXTS = st.lists(
    st.sampled_from([*CONTENTS, *map(str.swapcase, CONTENTS), *GLUE]), max_size=9
).map("".join)


@pytest.mark.parametrize("examples", [200, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_added_tokens_are_cut_out_alike(rules, examples):
    import tokenizers

    @settings(max_examples=examples)
    @given(ADDED, ADDED_TEXTS | st.lists(ADDED_TEXTS, max_size=3), st.booleans())
    def run(added, text, flag):
        added = [t._replace(piece=t.content in PIECES) for t in added]
        tokens = [*PIECES, *(t.content for t in added if not t.piece)]
        ours = Tokenizer.from_tokens(tokens, **rules, added=added)
        theirs = reference(PIECES, **rules)
        for token in added:
            their = tokenizers.AddedToken(**dict(list(token._asdict().items())[:-1]))
            theirs.add_tokens([their])
        arguments = text, None, None, "longest_first", flag
        found = our_encode(ours, *arguments)
        assert found == their_encode(theirs, *arguments)
        tokens = ours.encode(*arguments, isinstance(text, list)).tokens
        assert tokens == list(map(theirs.id_to_token, found[0]))
        assert ours.decode(found[0]) == theirs.decode(found[0], False)

    run()
