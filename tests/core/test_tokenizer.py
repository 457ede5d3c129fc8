import copy
import dataclasses
import json
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_np import BertError, tokenizer
from bert_np.tokenizer import (
    MAX_PAD_TO,
    SPECIAL_TOKENS,
    Tokenizer,
    basic_split,
    clean_char,
    is_punctuation,
    longest_pieces,
    normalize,
    wordpiece,
)

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "tokenizer.json").read_text("utf-8")
)
VARIANTS = {
    "cased_none": {"lowercase": False},
    "cased_strip": {"lowercase": False, "strip_accents": True},
    "lower_nostrip": {"strip_accents": False},
    "lower_nochinese": {"handle_chinese_chars": False},
}
WORDS = [
    "un",
    "##play",
    "##able",
    "##a",
    "##b",
    "play",
    "a",
    "b",
    "c",
    "##c",
    "the",
    "cat",
    ",",
    ".",
    "!",
    "'",
    "é",
    "中",
    "σ",
    "##σ",
    "[",
    "]",
    "mask",
    "sep",
]
SMALL = Tokenizer.from_tokens([*reversed(SPECIAL_TOKENS), *WORDS])  # [PAD] is 4


def golden_vocabulary():
    """The golden cases' tokens at their ids, "<i>" for every other id.

    The greedy search finds the same pieces as with the whole vocabulary:
    of the longer pieces, none was there.
    """
    tokens = [f"<{i}>" for i in range(30522)]
    for case in GOLDEN["single"] + GOLDEN["variants"] + GOLDEN["pairs"]:
        for i, token in zip(case.get("ids", []), case.get("tokens", [])):
            tokens[i] = token
    for i, token in zip((0, 100, 101, 102, 103), SPECIAL_TOKENS):
        tokens[i] = token
    return tokens


quick = settings(max_examples=60, deadline=None)
VOCABULARY = golden_vocabulary()
UNCASED = Tokenizer.from_tokens(VOCABULARY)


# ----------------------------------------------------------- golden cases
@pytest.mark.parametrize("case", GOLDEN["single"], ids=lambda case: case["id"])
def test_golden_text(case):
    found = UNCASED.encode(case["text"])
    assert found.input_ids.tolist() == case["ids"]
    assert found.tokens == case["tokens"]
    assert found.segment_ids.tolist() == case["type_ids"]
    assert found.attention_mask.tolist() == case["attention_mask"]
    assert found.offsets == [tuple(offset) for offset in case["offsets"]]


@pytest.mark.parametrize(
    "case", GOLDEN["variants"], ids=lambda case: f"{case['id']}-{case['variant']}"
)
def test_golden_variant(case):
    found = Tokenizer.from_tokens(VOCABULARY, **VARIANTS[case["variant"]]).encode(
        case["text"]
    )
    assert found.input_ids.tolist() == case["ids"]
    assert found.tokens == case["tokens"]


@pytest.mark.parametrize("case", GOLDEN["pairs"], ids=lambda case: case["id"])
def test_golden_pair(case):
    options = {}
    if case["max_length"] is not None:
        options = {"max_length": case["max_length"], "truncation": case["strategy"]}
    added = 2 if case["b"] is None else 3
    # Below the number of special tokens HuggingFace does not truncate.
    if "error" in case or options and case["max_length"] < added:
        with pytest.raises(BertError, match="max_length"):
            UNCASED.encode(case["a"], case["b"], **options)
        return
    found = UNCASED.encode(case["a"], case["b"], **options)
    assert found.input_ids.tolist() == case["ids"]
    assert found.tokens == case["tokens"]
    assert found.segment_ids.tolist() == case["type_ids"]


# ------------------------------------------------------------------ steps
@pytest.mark.parametrize(
    "ch, wanted",
    [
        ("\t", " "),
        ("\n", " "),
        ("\r", " "),
        ("\xa0", " "),
        ("\u2028", " "),
        ("\u3000", " "),
        ("\x00", ""),
        ("\x0b", ""),
        ("\x85", ""),
        ("\xad", ""),
        ("\u200b", ""),
        ("\ufeff", ""),
        ("\ufffd", ""),
        ("\ue000", ""),
        ("é", "é"),
        ("\u0378", "\u0378"),
    ],
)
def test_clean_char(ch, wanted):
    assert clean_char(ch) == wanted


def test_every_printable_ascii_character_is_punctuation_or_alphanumeric():
    for ch in map(chr, range(33, 127)):
        assert is_punctuation(ch) != ch.isalnum(), ch
    assert is_punctuation("…") and is_punctuation("，") and not is_punctuation("€")


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, "οσ 中 e"),
        ({"lowercase": False}, "ΟΣ 中 É"),
        ({"lowercase": False, "strip_accents": True}, "ΟΣ 中 E"),
        ({"strip_accents": False}, "οσ 中 é"),
        ({"handle_chinese_chars": False}, "οσ中e"),
    ],
)
def test_normalize_rules(options, wanted):
    found, sources = normalize("ΟΣ中É", **options)
    assert found == wanted
    spaced = [0, 1, 2, 2, 2, 3] if " " in wanted else [0, 1, 2, 3]
    assert list(sources) == spaced


def test_final_sigma_is_lower_cased_alone():
    assert normalize("ΣΟΦΟΣ")[0] == "σοφοσ" != "ΣΟΦΟΣ".lower()


def test_lowercase_may_lengthen():
    assert normalize("İx", strip_accents=False) == ("i\u0307x", [0, 0, 1])
    assert normalize("İx")[0] == "ix"


def test_sorted_accents_are_counted_like_huggingface_does():
    # The virama (class 9) and the nukta (class 7) change places: the
    # nukta goes, the virama counts as the third character.
    assert normalize("\u1b13\u1b44\u093c") == ("\u1b13\u1b44", [0, 2])
    assert normalize("\u1b13\u093c\u1b44") == ("\u1b13\u1b44", [0, 2])
    # A note decomposes to head and stem; the overlay comes between.
    assert normalize("\U0001d15e\u0334") == ("\U0001d157\U0001d165", [0, 1])


def test_basic_split():
    assert basic_split("") == basic_split("  ") == []
    assert basic_split("a") == [("a", 0)]
    assert basic_split("ab,c  d!") == [
        ("ab", 0),
        (",", 2),
        ("c", 3),
        ("d", 6),
        ("!", 7),
    ]


@pytest.mark.parametrize(
    "word, wanted",
    [
        ("unplayable", ["un", "##play", "##able"]),
        ("una", ["un", "##a"]),
        ("a" * 100, ["a"] + ["##a"] * 99),
        ("a" * 101, ["[UNK]"]),
        ("unx", ["[UNK]"]),
        ("xun", ["[UNK]"]),
        ("", []),
    ],
)
@pytest.mark.parametrize("longest", [None, longest_pieces(SMALL.vocab)])
def test_wordpiece(word, wanted, longest):
    assert wordpiece(word, SMALL.vocab, longest) == wanted


@quick
@given(
    st.text("abcd", max_size=12),
    st.sets(st.text("abc", min_size=1, max_size=4)),
    st.sets(st.text("abc", min_size=1, max_size=4)),
)
def test_wordpiece_takes_the_longest_piece_and_loses_nothing(word, first, later):
    vocab = first | {"##" + piece for piece in later}
    pieces = wordpiece(word, vocab)
    assert pieces == wordpiece(word, vocab, longest_pieces(vocab))
    if pieces == ["[UNK]"]:
        return
    bare = [piece.removeprefix("##") for piece in pieces]
    assert "".join(bare) == word
    start = 0
    for piece, plain in zip(pieces, bare):
        prefix = "##" if start else ""
        assert piece == prefix + plain and piece in vocab
        longer = range(start + len(plain) + 1, len(word) + 1)
        assert not any(prefix + word[start:end] in vocab for end in longer)
        start += len(plain)


# --------------------------------------------------------- special tokens
def test_special_tokens_typed_in_a_text():
    assert SMALL.tokenize("a[MASK]b [SEP]") == ["a", "[MASK]", "b", "[SEP]"]
    assert SMALL.tokenize("[mask]") == ["[", "mask", "]"]
    assert SMALL.tokenize("[MASK]", allow_special=False) == ["[", "mask", "]"]
    found = SMALL.encode("a[MASK]b")
    assert found.input_ids[2] == SMALL.mask_token_id
    assert found.offsets == [(0, 0), (0, 1), (1, 7), (7, 8), (0, 0)]
    assert len(SMALL.encode("a[MASK]b", allow_special=False).tokens) == 7


def test_special_token_separates_words():
    assert SMALL.tokenize("un[PAD]play") == ["un", "[PAD]", "play"]


# ------------------------------------------------------------ truncation
@pytest.mark.parametrize(
    "sizes, room, wanted",
    [
        ((3, 4), 7, (3, 4)),
        ((3, 7), 7, (3, 4)),
        ((7, 3), 7, (4, 3)),
        ((5, 5), 5, (2, 3)),
        ((6, 5), 5, (3, 2)),
        ((5, 6), 5, (2, 3)),
        ((4, 4), 0, (0, 0)),
        ((0, 9), 5, (0, 5)),
        ((9, 0), 5, (5, 0)),
        ((1, 1), 1, (0, 1)),
    ],
)
def test_longest_first(sizes, room, wanted):
    found = SMALL.encode("a " * sizes[0], "b " * sizes[1] + " ", max_length=room + 3)
    assert (found.tokens.count("a"), found.tokens.count("b")) == wanted
    assert found.tokens.count("[SEP]") == 2


@pytest.mark.parametrize(
    "truncation, wanted", [("only_first", (1, 4)), ("only_second", (4, 1))]
)
def test_only_one_text_is_cut(truncation, wanted):
    found = SMALL.encode("a a a a", "b b b b", max_length=8, truncation=truncation)
    assert (found.tokens.count("a"), found.tokens.count("b")) == wanted
    with pytest.raises(BertError, match=f"{truncation}.* 4 of the 4 pieces"):
        SMALL.encode("a a a a", "b b b b", max_length=7, truncation=truncation)


def test_only_second_needs_a_second_text():
    assert len(SMALL.encode("a", max_length=3, truncation="only_second").tokens) == 3
    with pytest.raises(BertError, match="only_second"):
        SMALL.encode("a a", max_length=3, truncation="only_second")


def test_single_text_shrinks_to_its_special_tokens():
    assert SMALL.encode("a b", max_length=2).tokens == ["[CLS]", "[SEP]"]


# ------------------------------------------------------- pairs and batches
def test_pair():
    found = SMALL.encode("a", "b c")
    assert found.tokens == ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
    assert found.segment_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.offsets == [(0, 0), (0, 1), (0, 0), (0, 1), (2, 3), (0, 0)]
    assert found.input_ids.dtype == found.segment_ids.dtype == np.int64
    assert found.attention_mask.dtype == np.int64


def test_empty_second_text_counts_as_none_and_spaces_do_not():
    assert SMALL.encode("a", "").tokens == ["[CLS]", "a", "[SEP]"]
    assert SMALL.encode_batch([("a", "")]).tokens == [["[CLS]", "a", "[SEP]"]]
    assert SMALL.encode("a", " ").tokens == ["[CLS]", "a", "[SEP]", "[SEP]"]


def test_batch_of_a_text_and_a_pair():
    found = SMALL.encode_batch(["a", ("a", "b")], pad_to=6)
    assert found.input_ids.shape == (2, 6) and found.input_ids.dtype == np.int64
    assert found.tokens[0] == ["[CLS]", "a", "[SEP]", "[PAD]", "[PAD]", "[PAD]"]
    assert found.offsets[0] == [(0, 0), (0, 1)] + [(0, 0)] * 4
    assert found.attention_mask.tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
    assert found.segment_ids.tolist() == [[0] * 6, [0, 0, 0, 1, 1, 0]]
    assert (found.input_ids[0, 3:] == SMALL.pad_token_id).all()


TEXTS = st.text(st.sampled_from("abcé中 ,[]MASKun\u0301\ue000İΣ"), max_size=20)
PAIRS = TEXTS | st.tuples(TEXTS, TEXTS)


@quick
@given(
    st.lists(PAIRS, min_size=1, max_size=5),
    st.integers(0, 5),
    st.none() | st.integers(3, 30),
)
def test_batch_row_is_the_single_encoding_and_padding(texts, extra, max_length):
    rows = [
        SMALL.encode(
            *(text if isinstance(text, tuple) else (text,)), max_length=max_length
        )
        for text in texts
    ]
    length = max(len(row.tokens) for row in rows) + extra
    batch = SMALL.encode_batch(texts, length if extra else None, max_length)
    for i, row in enumerate(rows):
        n = len(row.tokens)
        for name, fill in [("input_ids", 4), ("segment_ids", 0), ("attention_mask", 0)]:
            wanted = getattr(row, name).tolist() + [fill] * (length - n)
            assert getattr(batch, name)[i].tolist() == wanted
        assert batch.tokens[i] == row.tokens + ["[PAD]"] * (length - n)
        assert batch.offsets[i] == row.offsets + [(0, 0)] * (length - n)


# ---------------------------------------------------------------- offsets
@quick
@given(TEXTS, st.sampled_from([{}, *VARIANTS.values()]))
def test_offsets_cut_the_piece_from_the_original_text(text, options):
    small = Tokenizer.from_tokens(SMALL.tokens, **options)
    found = small.encode(text)
    end = 0
    for token, (start, stop) in zip(found.tokens[1:-1], found.offsets[1:-1]):
        assert 0 <= start < stop <= len(text) and start >= end - 1
        end = stop
        if token == "[UNK]" or token in SPECIAL_TOKENS:
            continue
        piece = normalize(text[start:stop], **options)[0].strip()
        assert piece == token.removeprefix("##")


@quick
@given(st.text())
def test_any_text_is_encoded_or_refused_as_bert_error(text):
    found = UNCASED.encode(text, text)
    assert len(found.tokens) == len(found.offsets) == len(found.input_ids)
    assert UNCASED.decode(found.input_ids).startswith("[CLS]")


@quick
@given(st.text(st.characters(categories=["Cs", "Lu"]), min_size=1))
def test_lone_surrogate_is_named_with_its_position(text):
    places = [i for i, ch in enumerate(text) if "\ud800" <= ch <= "\udfff"]
    if not places:
        assert SMALL.encode(text).tokens[0] == "[CLS]"
        return
    code = f"U\\+{ord(text[places[0]]):04X}"
    with pytest.raises(BertError, match=rf"^text\[{places[0]}\] is {code}"):
        SMALL.encode(text)
    with pytest.raises(BertError, match=rf"^pair\[{places[0]}\] is {code}"):
        SMALL.encode("a", text)
    with pytest.raises(BertError, match=rf"^texts\[1\]: text\[{places[0]}\]"):
        SMALL.encode_batch(["a", text])
    with pytest.raises(BertError, match=rf"^text\[{places[0]}\]"):
        SMALL.tokenize(text)


# ----------------------------------------------------------------- decode
def test_decode():
    ids = SMALL.encode("Unplayable, a [MASK]. The cat").input_ids
    assert SMALL.decode(ids) == "[CLS] unplayable, a [MASK]. the cat [SEP]"
    assert SMALL.decode(list(ids), skip_special=True) == "unplayable, a. the cat"
    assert SMALL.decode([SMALL.vocab["##able"], SMALL.vocab["##able"]]) == "##ableable"
    assert SMALL.decode([]) == SMALL.decode(np.array([], dtype=int)) == ""
    assert SMALL.decode(ids.astype(np.uint8)) == SMALL.decode(tuple(ids.tolist()))


@quick
@given(st.text(st.sampled_from("abc the,!.'中σ"), max_size=30))
def test_decoded_text_encodes_to_the_same_ids(text):
    ids = SMALL.encode(text).input_ids.tolist()
    if SMALL.unk_token_id not in ids:
        assert SMALL.encode(SMALL.decode(ids[1:-1])).input_ids.tolist() == ids


@pytest.mark.parametrize(
    "ids, message",
    [
        ([5, -1], r"ids\[1\] = -1, allowed 0..28"),
        ([29], r"ids\[0\] = 29, allowed 0..28"),
        (np.array([2**64 - 1], dtype=np.uint64), "18446744073709551615"),
        ([1.0], "float64"),
        ([True], "bool"),
        (["a"], "<U1"),
        ([2**70], "object"),
        ([None], "object"),
        (7, r"shape \(\)"),
        ("7", r"shape \(\)"),
        (None, "object"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([[1, 2], [3]], "one row"),
        ([1j], "complex"),
        (np.zeros((0, 3), dtype=int), r"shape \(0, 3\)"),
    ],
)
def test_decode_refuses(ids, message):
    with pytest.raises(BertError, match=message):
        SMALL.decode(ids)


# -------------------------------------------------------------- arguments
@pytest.mark.parametrize("value", [None, 7, 1.5, b"a", ["a"], ("a",), np.array(["a"])])
def test_what_is_not_a_str_is_refused_by_type(value):
    kind = type(value).__name__
    with pytest.raises(BertError, match=f"^text must be a str, got {kind}"):
        SMALL.encode(value)
    with pytest.raises(BertError, match=f"^text must be a str, got {kind}"):
        SMALL.tokenize(value)
    with pytest.raises(BertError, match=r"^texts\[1\]: text must be a str"):
        SMALL.encode_batch(["a", value])
    if value is not None:
        with pytest.raises(BertError, match=f"^pair must be a str, got {kind}"):
            SMALL.encode("a", value)


@pytest.mark.parametrize(
    "texts, message",
    [
        ("a b", "got str"),
        ([], "got list of length 0"),
        ((), "got tuple of length 0"),
        (None, "got NoneType"),
        ({"a": 1}, "got dict"),
        (np.array(["a"]), "got ndarray"),
        ([("a", "b", "c")], r"texts\[0\]: text must be a str, got tuple"),
        ([("a", 3)], r"texts\[0\]: pair must be a str, got int"),
    ],
)
def test_batch_refuses(texts, message):
    with pytest.raises(BertError, match=message):
        SMALL.encode_batch(texts)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_length": True}, "max_length must be an int, got bool"),
        ({"max_length": 8.0}, "max_length must be an int, got float"),
        ({"max_length": "8"}, "max_length must be an int, got str"),
        ({"max_length": -1}, "max_length = -1, allowed 2 or more"),
        ({"max_length": 1}, "max_length = 1, allowed 2 or more"),
        ({"truncation": "longest"}, "truncation = 'longest', allowed 'longest_first'"),
        ({"truncation": True}, "truncation = True"),
        ({"truncation": None}, "truncation = None"),
        ({"allow_special": 1}, "allow_special = 1, allowed True, False"),
    ],
)
def test_encode_refuses_an_option(options, message):
    with pytest.raises(BertError, match=message):
        SMALL.encode("a", **options)
    with pytest.raises(BertError, match=message):
        SMALL.encode_batch(["a"], **options)


def test_max_length_of_any_integer_type():
    for length in (4, np.int8(4), np.uint64(4)):
        assert len(SMALL.encode("a a a a", max_length=length).tokens) == 4
        assert SMALL.encode_batch(["a"], pad_to=length).input_ids.shape == (1, 4)
    assert len(SMALL.encode("a", max_length=10**30).tokens) == 3


def test_max_length_of_a_pair_leaves_room_for_three():
    with pytest.raises(BertError, match="max_length = 2, allowed 3 or more"):
        SMALL.encode("a", "b", max_length=2)


@pytest.mark.parametrize(
    "pad_to, message",
    [
        (True, "pad_to must be an int, got bool"),
        (8.0, "pad_to must be an int, got float"),
        (-1, f"pad_to = -1, allowed 2..{MAX_PAD_TO}"),
        (0, "pad_to = 0"),
        (MAX_PAD_TO + 1, f"allowed 2..{MAX_PAD_TO}"),
        (3, "pad_to = 3, but a row has 4 tokens"),
    ],
)
def test_pad_to_refuses(pad_to, message):
    with pytest.raises(BertError, match=message):
        SMALL.encode_batch(["a", "a b"], pad_to)


def test_an_int_too_long_to_print_is_refused():
    with pytest.raises(BertError, match="pad_to = an int beyond 64 bits"):
        SMALL.encode_batch(["a"], 10**5000)
    with pytest.raises(BertError, match="max_length = an int beyond 64 bits"):
        SMALL.encode("a", max_length=-(10**5000))


def test_other_switches_are_refused():
    with pytest.raises(BertError, match="allow_special = 'no'"):
        SMALL.tokenize("a", allow_special="no")
    with pytest.raises(BertError, match="skip_special = 'no'"):
        SMALL.decode([1], skip_special="no")


# ------------------------------------------------------------- vocabulary
@pytest.fixture
def vocab_file(tmp_path):
    def write(content):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


SPECIAL_LINES = "\n".join(SPECIAL_TOKENS) + "\n"


def test_vocab_lines_end_at_line_feeds_alone(vocab_file):
    text = SPECIAL_LINES + "a\r\n\u2028\n\x85\n\x0b\nb\r\r\nlast"
    found = Tokenizer.from_vocab(vocab_file(text))
    assert found.tokens[5:] == ("a", "\u2028", "\x85", "\x0b", "b\r", "last")
    assert found == Tokenizer.from_vocab(str(vocab_file(text + "\n")))
    assert found.vocab["last"] == 10 and found.vocab_size == 11


@pytest.mark.parametrize(
    "content, message",
    [
        (SPECIAL_LINES + "a\nb\na\n", "'a' stands on lines 6 and 8, allowed once"),
        ("\ufeff" + SPECIAL_LINES, "byte-order mark"),
        (SPECIAL_LINES.encode() + b"a\xff\n", "byte 32 is not UTF-8"),
        (SPECIAL_LINES.encode("utf-16"), "byte 0 is not UTF-8"),
        (SPECIAL_LINES.encode() + b"\xed\xa0\x80", "not UTF-8"),
        (SPECIAL_LINES.replace("[MASK]\n", ""), r"lacks \[MASK\]; needed"),
        ("a\nb\n", r"lacks \[PAD\] \[UNK\] \[CLS\] \[SEP\] \[MASK\]"),
        ("", "lacks"),
    ],
)
def test_vocab_file_faults(vocab_file, content, message):
    with pytest.raises(BertError, match=rf"vocab\.txt.*{message}"):
        Tokenizer.from_vocab(vocab_file(content))


def test_vocab_file_too_large(vocab_file, monkeypatch):
    monkeypatch.setattr(tokenizer, "MAX_VOCAB_BYTES", 40)
    assert Tokenizer.from_vocab(vocab_file(SPECIAL_LINES)).vocab_size == 5
    with pytest.raises(BertError, match="larger than 40 bytes"):
        Tokenizer.from_vocab(vocab_file(SPECIAL_LINES + "x" * 20))


@pytest.mark.parametrize(
    "path, message",
    [
        (7, "path must be a str or a Path, got int"),
        (None, "got NoneType"),
        (b"vocab.txt", "got bytes"),
        ("no/such/vocab.txt", "cannot be read: No such"),
        ("a\0b", "cannot be read: .*null"),
    ],
)
def test_vocab_path_faults(path, message):
    with pytest.raises(BertError, match=message):
        Tokenizer.from_vocab(path)


def test_vocab_path_is_a_folder(tmp_path):
    with pytest.raises(BertError, match="cannot be read"):
        Tokenizer.from_vocab(tmp_path)


@pytest.mark.parametrize(
    "tokens, message",
    [
        ("abc", "tokens must be a list of str, got str"),
        (dict(SMALL.vocab), "got dict"),
        (None, "got NoneType"),
        ([], "lacks"),
        ([*SPECIAL_TOKENS, 5], "entry 6 must be a str, got int"),
        ([*SPECIAL_TOKENS, "a", "a"], "lines 6 and 7"),
    ],
)
def test_token_list_faults(tokens, message):
    with pytest.raises(BertError, match=message):
        Tokenizer.from_tokens(tokens)


@pytest.mark.parametrize("name", ["lowercase", "strip_accents", "handle_chinese_chars"])
def test_rules_are_true_or_false(name, vocab_file):
    with pytest.raises(BertError, match=f"{name} = 'false', allowed True, False"):
        Tokenizer.from_tokens(SMALL.tokens, **{name: "false"})
    with pytest.raises(BertError, match=f"{name} = 1, allowed"):
        Tokenizer.from_vocab(vocab_file(SPECIAL_LINES), **{name: 1})


def test_rules_reach_the_tokenizer(vocab_file):
    path = vocab_file(SPECIAL_LINES)
    rules = {"lowercase": False, "strip_accents": True, "handle_chinese_chars": False}
    for found in (
        Tokenizer.from_vocab(path, **rules),
        Tokenizer.from_tokens(list(SPECIAL_TOKENS), **rules),
    ):
        assert {name: getattr(found, name) for name in rules} == rules


# -------------------------------------------------------------- the object
def test_attributes():
    assert SMALL.tokens[SMALL.vocab["cat"]] == "cat"
    assert SMALL.vocab_size == len(SMALL.tokens) == len(SMALL.vocab) == 29
    ids = (
        SMALL.pad_token_id,
        SMALL.unk_token_id,
        SMALL.cls_token_id,
        SMALL.sep_token_id,
        SMALL.mask_token_id,
    )
    assert ids == (4, 3, 2, 1, 0)
    assert "vocab_size=29" in repr(SMALL) and "cat" not in repr(SMALL)


def test_nothing_can_be_changed():
    tokens = [*SPECIAL_TOKENS, "a"]
    found = Tokenizer.from_tokens(tokens)
    tokens[5] = "b"
    assert found.tokens[5] == "a"
    with pytest.raises(TypeError):
        found.vocab["b"] = 6
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.lowercase = False
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.encode("a").tokens = []


def test_pickle_and_copy():
    cased = Tokenizer.from_tokens(SMALL.tokens, lowercase=False)
    for found in (pickle.loads(pickle.dumps(cased)), copy.deepcopy(cased)):
        assert found == cased != SMALL and hash(found) == hash(cased)
        assert found.tokenize("a B") == ["a", "[UNK]"]


# ------------------------------------------------------------------- speed
@pytest.mark.parametrize(
    "unit", ["a", "[MASK]", "中", "ab" * 50 + " ", "\u0301\u0323"], ids=ascii
)
def test_time_does_not_grow_with_the_square_of_the_length(unit):
    # 200,000 accents sorted by insertion, as unicodedata.normalize does,
    # would take 20 s and more.
    text = "a" + unit * (200_000 // len(unit))
    start = time.process_time()
    assert len(SMALL.encode(text).tokens) >= 2
    assert time.process_time() - start < 10


# ------------------------------------------------------- against HuggingFace
class Unstable(dict):
    """Translation that deletes code points whose properties may have changed."""

    def __missing__(self, code):
        import differential_tokenizer

        self[code] = code if differential_tokenizer.is_stable(code) else None
        return self[code]


def test_random_strings_against_tokenizers():
    pytest.importorskip("tokenizers")
    import differential_tokenizer

    figures, mismatches = differential_tokenizer.compare(
        VOCABULARY, 1200, 1, Unstable()
    )
    assert mismatches == [] and figures["encoded"] == figures["decoded"] == 1200


def test_comparison_with_tokenizers_sees_a_fault(monkeypatch):
    pytest.importorskip("tokenizers")
    import differential_tokenizer

    monkeypatch.setattr(tokenizer, "drop_accent", lambda ch: ch)
    _, mismatches = differential_tokenizer.compare(VOCABULARY, 300, 1, Unstable())
    assert mismatches
    assert not differential_tokenizer.agree("é\u0301")


def test_no_old_code_point_differs():
    pytest.importorskip("tokenizers")
    import differential_tokenizer

    assert all(
        differential_tokenizer.agree(differential_tokenizer.probe(code))
        for code in range(0x20, 0x2000)
        if differential_tokenizer.is_stable(code)
    )
    assert not differential_tokenizer.is_stable(0x1F600)  # Unicode 6.1
    assert not differential_tokenizer.is_stable(0x1FFF)  # not assigned
