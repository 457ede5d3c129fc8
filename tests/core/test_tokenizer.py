"""Text to ids and back: HuggingFace's cases, the steps, and what is refused."""

import copy
import dataclasses
import json
import pickle
import time

import numpy as np
import pytest
from golden_values import GOLDEN
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_np import BertError, tokenizer
from bert_np.tokenizer import (
    MAX_PAD_TO,
    SPECIAL_TOKENS,
    Tokenizer,
    longest_pieces,
    normalize,
    wordpiece,
)

CASES = json.loads((GOLDEN / "tokenizer.json").read_text("utf-8"))
VARIANTS = {
    "cased_none": {"lowercase": False},
    "cased_strip": {"lowercase": False, "strip_accents": True},
    "lower_nostrip": {"strip_accents": False},
    "lower_nochinese": {"handle_chinese_chars": False},
}
WORDS = (
    "un ##play ##able ##a ##b play a b c ##c the cat , . ! ' é 中 σ ##σ [ ] mask sep"
)
SMALL = Tokenizer.from_tokens([*reversed(SPECIAL_TOKENS), *WORDS.split()])  # [PAD] is 4


def golden_vocabulary():
    """The golden cases' tokens at their ids, "<i>" for every other id.

    The greedy search finds the same pieces as with the whole vocabulary:
    of the longer pieces, none was there.
    """
    tokens = [f"<{i}>" for i in range(30522)]
    for case in CASES["single"] + CASES["variants"] + CASES["pairs"]:
        for i, token in zip(case.get("ids", []), case.get("tokens", [])):
            tokens[i] = token
    for i, token in zip((0, 100, 101, 102, 103), SPECIAL_TOKENS):
        tokens[i] = token
    return tokens


quick = settings(max_examples=60)
VOCABULARY = golden_vocabulary()
UNCASED = Tokenizer.from_tokens(VOCABULARY)


# Golden cases


def assert_equals_case(found, case):
    assert found.input_ids.tolist() == case["ids"]
    assert found.input_ids.dtype == found.segment_ids.dtype == np.int64
    assert found.tokens == case["tokens"]
    if "type_ids" in case:
        assert found.segment_ids.tolist() == case["type_ids"]
    if "offsets" in case:
        assert found.offsets == [tuple(offset) for offset in case["offsets"]]


@pytest.mark.parametrize("case", CASES["single"], ids=lambda case: case["id"])
def test_golden_text(case):
    assert_equals_case(UNCASED.encode(case["text"]), case)


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_variants(variant):
    cases = [case for case in CASES["variants"] if case["variant"] == variant]
    variant = Tokenizer.from_tokens(VOCABULARY, **VARIANTS[variant])
    assert len(cases) >= 5
    for case in cases:
        assert_equals_case(variant.encode(case["text"]), case)


@pytest.mark.parametrize("case", CASES["pairs"], ids=lambda case: case["id"])
def test_golden_pair(case):
    options = {}
    if case["max_length"] is not None:
        options = {"max_length": case["max_length"], "truncation": case["strategy"]}
    added = 2 if case["b"] is None else 3
    # Below the number of special tokens HuggingFace does not truncate.
    if "error" in case or options and case["max_length"] < added:
        with pytest.raises(BertError, match="max_length"):
            UNCASED.encode(case["a"], case["b"], **options)
    else:
        assert_equals_case(UNCASED.encode(case["a"], case["b"], **options), case)


# Steps


def test_sorted_accents_are_counted_as_huggingface_does():
    # The virama (class 9) and the nukta (class 7) change places: the
    # nukta goes, the virama counts as the third character.
    assert normalize("\u1b13\u1b44\u093c") == ("\u1b13\u1b44", [0, 2])
    assert normalize("\u1b13\u093c\u1b44") == ("\u1b13\u1b44", [0, 2])
    # A note decomposes to head and stem; the overlay comes between.
    assert normalize("\U0001d15e\u0334") == ("\U0001d157\U0001d165", [0, 1])


def test_a_word_of_more_than_100_characters_is_unknown():
    assert wordpiece("a" * 100, SMALL.vocab) == ["a"] + ["##a"] * 99
    assert wordpiece("a" * 101, SMALL.vocab) == ["[UNK]"]


PIECES = st.sets(st.text("abc", min_size=1, max_size=4))


@quick
@given(st.text("abcd", max_size=12), PIECES, PIECES)
def test_wordpiece_takes_the_longest_piece_and_loses_nothing(word, first, later):
    vocab = first | {"##" + piece for piece in later}
    pieces = wordpiece(word, vocab)
    assert pieces == wordpiece(word, vocab, longest_pieces(vocab))
    if pieces == ["[UNK]"]:
        return
    start = 0
    for piece in pieces:
        end = start + len(piece) - (2 if start else 0)
        prefix = "##" if start else ""
        assert piece == prefix + word[start:end] and piece in vocab
        longer = range(end + 1, len(word) + 1)
        assert not any(prefix + word[start:more] in vocab for more in longer)
        start = end
    assert start == len(word)


# Special tokens, truncation, pairs and batches


def test_special_tokens_typed_in_a_text():
    assert SMALL.tokenize("a[MASK]b [SEP]") == ["a", "[MASK]", "b", "[SEP]"]
    assert SMALL.tokenize("[mask]") == ["[", "mask", "]"]
    assert SMALL.tokenize("[MASK]", allow_special=False) == ["[", "mask", "]"]
    assert SMALL.tokenize("un[PAD]play") == ["un", "[PAD]", "play"]
    found = SMALL.encode("a[MASK]b")
    assert found.input_ids[2] == SMALL.mask_token_id
    assert found.offsets == [(0, 0), (0, 1), (1, 7), (7, 8), (0, 0)]
    assert len(SMALL.encode("a[MASK]b", allow_special=False).tokens) == 7


# Words given as a list, and special tokens of other names

LIST = ["Un", "don't", "[MASK]", "", "the cat", "  ", "plays a\u200b", "\u0301", "x"]
# From transformers 5.24: the pieces of LIST, their words and their places.
LISTED = [
    ("un", 0, (0, 2)),
    ("[UNK]", 1, (0, 3)),
    ("'", 1, (3, 4)),
    ("[UNK]", 1, (4, 5)),
    ("[MASK]", 2, (0, 6)),
    ("the", 4, (0, 3)),
    ("cat", 4, (4, 7)),
    ("[UNK]", 6, (0, 5)),
    ("a", 6, (6, 7)),
    ("[UNK]", 8, (0, 1)),
]


def test_words_of_a_list_are_cut_one_by_one_and_numbered():
    found = SMALL.encode(LIST, is_split_into_words=True)
    pieces = zip(found.tokens, found.word_ids, found.offsets)
    ends = ("[CLS]", None, (0, 0)), ("[SEP]", None, (0, 0))
    assert list(pieces) == [ends[0], *LISTED, ends[1]]
    batch = SMALL.encode_batch([["a"], (["b", "ab"], ["c"])], is_split_into_words=True)
    assert batch.tokens[1] == ["[CLS]", "b", "a", "##b", "[SEP]", "c", "[SEP]"]
    assert batch.word_ids[1] == [None, 0, 1, 1, None, 0, None]
    assert batch.word_ids[0] == [None, 0] + [None] * 5


def test_words_of_a_text_are_those_of_the_basic_split():
    found = SMALL.encode("unplayable a[MASK]c. ", "[SEP]b")
    words = ["un", "##play", "##able", "a", "[MASK]", "c", ".", "[SEP]"]
    assert found.tokens[1:9] == words
    assert found.word_ids == [None, 0, 0, 0, 1, 2, 3, 4, None, 0, 1, None]


NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
RENAMED = Tokenizer.from_tokens([*reversed(NAMES), *WORDS.split()], special=NAMES)


def test_special_tokens_may_have_other_names():
    found = RENAMED.encode("a<mask>b [MASK] zz", "</s>c")
    unk = ["[", "mask", "]", "<unk>"]
    assert found.tokens == [
        "<s>",
        "a",
        "<mask>",
        "b",
        *unk,
        "</s>",
        "</s>",
        "c",
        "</s>",
    ]
    plain = SMALL.encode("a[MASK]b [mask] zz", "[SEP]c")
    assert found.input_ids.tolist() == plain.input_ids.tolist()
    batch = RENAMED.encode_batch(["a", "a b"])
    assert batch.tokens[0] == ["<s>", "a", "</s>", "<pad>"]
    assert (
        batch.input_ids.tolist() == SMALL.encode_batch(["a", "a b"]).input_ids.tolist()
    )
    assert RENAMED.tokenize("a<mask>", allow_special=False)[1] == "<unk>"
    assert RENAMED.decode(found.input_ids, skip_special=True) == "a b [ mask ] c"
    assert pickle.loads(pickle.dumps(RENAMED)) == RENAMED != SMALL


@pytest.mark.parametrize(
    "special, message",
    [
        ("[PAD]", "special = '\\[PAD\\]', allowed: five str"),
        (NAMES[:4], "allowed: five str, the names of"),
        ((*NAMES[:4], 5), "allowed: five str, the names of"),
        ((*NAMES[:4], "<s>"), "allowed: five different tokens"),
        ((*NAMES[:4], "[MASK]"), r"tokens lacks \[MASK\]; needed are <pad> <unk> <s>"),
    ],
)
def test_five_different_names_of_the_vocabulary_are_needed(special, message):
    with pytest.raises(BertError, match=message):
        Tokenizer.from_tokens(RENAMED.tokens, special=special)


@pytest.mark.parametrize(
    "sizes, room, wanted",
    [
        ((3, 4), 7, (3, 4)),
        ((3, 7), 7, (3, 4)),
        ((7, 3), 7, (4, 3)),
        ((5, 5), 5, (2, 3)),
        ((6, 5), 5, (3, 2)),
        ((4, 4), 0, (0, 0)),
        ((9, 0), 5, (5, 0)),
    ],
)
def test_longest_first(sizes, room, wanted):
    found = SMALL.encode("a " * sizes[0], "b " * sizes[1] + " ", max_length=room + 3)
    assert (found.tokens.count("a"), found.tokens.count("b")) == wanted
    assert found.tokens.count("[SEP]") == 2


@pytest.mark.parametrize("truncation", ["only_first", "only_second"])
def test_only_one_text_is_cut_and_one_piece_of_it_left(truncation):
    wanted = ["a", *"bbbb"] if truncation == "only_first" else [*"aaaa", "b"]
    found = SMALL.encode("a a a a", "b b b b", max_length=8, truncation=truncation)
    assert [token for token in found.tokens if token in "ab"] == wanted
    with pytest.raises(BertError, match=f"{truncation}.* 4 of the 4 pieces"):
        SMALL.encode("a a a a", "b b b b", max_length=7, truncation=truncation)


def test_a_single_text_shrinks_to_its_special_tokens():
    assert SMALL.encode("a b", max_length=2).tokens == ["[CLS]", "[SEP]"]
    assert len(SMALL.encode("a", max_length=3, truncation="only_second").tokens) == 3


def test_an_empty_second_text_counts_as_none_and_spaces_do_not():
    assert SMALL.encode("a", "").tokens == ["[CLS]", "a", "[SEP]"]
    assert SMALL.encode_batch([("a", "")]).tokens == [["[CLS]", "a", "[SEP]"]]
    assert SMALL.encode("a", " ").tokens == ["[CLS]", "a", "[SEP]", "[SEP]"]


TEXTS = st.text(st.sampled_from("abcé中 ,[]MASKun\u0301\ue000İΣ"), max_size=20)
BATCHES = st.lists(st.tuples(TEXTS) | st.tuples(TEXTS, TEXTS), min_size=1, max_size=5)


@quick
@given(BATCHES, st.integers(0, 5), st.none() | st.integers(3, 30))
def test_a_row_of_a_batch_is_the_single_encoding_and_padding(texts, extra, max_length):
    rows = [SMALL.encode(*text, max_length=max_length) for text in texts]
    length = max(len(row.tokens) for row in rows) + extra
    texts = [text if len(text) == 2 else text[0] for text in texts]
    batch = SMALL.encode_batch(texts, length if extra else None, max_length)
    for i, row in enumerate(rows):
        rest = length - len(row.tokens)
        for name, fill in [("input_ids", 4), ("segment_ids", 0), ("attention_mask", 0)]:
            wanted = getattr(row, name).tolist() + [fill] * rest
            assert getattr(batch, name)[i].tolist() == wanted
        assert batch.tokens[i] == row.tokens + ["[PAD]"] * rest
        assert batch.offsets[i] == row.offsets + [(0, 0)] * rest
        assert batch.word_ids[i] == row.word_ids + [None] * rest


@quick
@given(TEXTS, st.sampled_from([{}, *VARIANTS.values()]))
def test_offsets_cut_the_piece_from_the_original_text(text, options):
    found = Tokenizer.from_tokens(SMALL.tokens, **options).encode(text)
    end = 0
    for token, (start, stop) in zip(found.tokens[1:-1], found.offsets[1:-1]):
        assert 0 <= start < stop <= len(text) and start >= end - 1
        end = stop
        if token not in SPECIAL_TOKENS:
            piece = normalize(text[start:stop], **options)[0].strip()
            assert piece == token.removeprefix("##")


@quick
@given(st.text())
def test_any_text_is_encoded(text):
    found = UNCASED.encode(text, text)
    assert len(found.tokens) == len(found.offsets) == len(found.input_ids)
    assert UNCASED.decode(found.input_ids).startswith("[CLS]")


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


# What is refused


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: SMALL.encode(None), "^text must be a str, got NoneType"),
        (lambda: SMALL.tokenize(["a"]), "^text must be a str, got list"),
        (lambda: SMALL.encode("a", 3), "^pair must be a str, got int"),
        (lambda: SMALL.encode(["a"]), "^text .* got list; .* pass is_split_into_words"),
        (
            lambda: SMALL.encode("a", is_split_into_words=True),
            "^text must be a list of words with is_split_into_words=True, got str",
        ),
        (
            lambda: SMALL.encode(["a", 3], is_split_into_words=True),
            r"^text\[1\] must be a str, got int",
        ),
        (
            lambda: SMALL.encode(["a"], "b", is_split_into_words=True),
            "^pair must be a list of words",
        ),
        (lambda: SMALL.encode("a", is_split_into_words=1), "^is_split_into_words = 1"),
        (lambda: SMALL.encode("ab\ud800"), r"^text\[2\] is U\+D800, a lone surrogate"),
        (lambda: SMALL.encode("a", "\udfff"), r"^pair\[0\] is U\+DFFF"),
        (lambda: SMALL.tokenize("\ud800"), r"^text\[0\] is U\+D800"),
        (lambda: SMALL.tokenize("a", allow_special="no"), "^allow_special = 'no'"),
        (
            lambda: SMALL.encode("a", max_length="8"),
            "^max_length must be an int, got str",
        ),
        (lambda: SMALL.encode("a", max_length=True), "^max_length .*, got bool"),
        (lambda: SMALL.encode("a", max_length=1), "^max_length = 1, allowed 2 or more"),
        (lambda: SMALL.encode("a", "b", max_length=2), "^max_length = 2, allowed 3 or"),
        (
            lambda: SMALL.encode("a", truncation="most"),
            "^truncation = 'most', allowed 'l",
        ),
        (lambda: SMALL.encode("a", truncation=True), "^truncation = True"),
        (lambda: SMALL.encode("a", None, 2, "only_second"), "only_second"),
        (lambda: SMALL.encode_batch(["a", "\ud800"]), r"^texts\[1\]: text\[0\] is U\+"),
        (lambda: SMALL.encode_batch("a b"), "^texts must be a list .*, got str$"),
        (lambda: SMALL.encode_batch([]), "got list of length 0"),
        (lambda: SMALL.encode_batch([("a", "b", "c")]), r"^texts\[0\]: .* got tuple"),
        (lambda: SMALL.encode_batch(["a"], 8.0), "^pad_to must be an int, got float"),
        (lambda: SMALL.encode_batch(["a"], 0), f"^pad_to = 0, allowed 2..{MAX_PAD_TO}"),
        (lambda: SMALL.encode_batch(["a"], 10**5000), "an int beyond 64 bits"),
        (lambda: SMALL.encode_batch(["a b"], 3), "^pad_to = 3, but a row has 4 tokens"),
        (lambda: SMALL.decode([1], skip_special="no"), "^skip_special = 'no'"),
        (lambda: SMALL.decode([5, -1]), r"^ids\[1\] = -1, allowed 0..28"),
        (
            lambda: SMALL.decode(np.array([2**64 - 1], np.uint64)),
            "18446744073709551615",
        ),
        (lambda: SMALL.decode([1.0]), "float64"),
        (lambda: SMALL.decode("7"), r"shape \(\)"),
        (lambda: SMALL.decode([[1, 2]]), r"shape \(1, 2\)"),
        (lambda: SMALL.decode([[1, 2], [3]]), "one row"),
    ],
)
def test_what_has_no_ids_or_no_text_is_refused(call, message):
    with pytest.raises(BertError, match=message):
        call()


# The vocabulary and the object

LINES = "\n".join(SPECIAL_TOKENS) + "\n"


@pytest.fixture
def vocab_file(tmp_path):
    def write(content):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_vocab_lines_end_at_line_feeds_alone(vocab_file):
    text = LINES + "a\r\n\u2028\n\x85\n\x0b\nb\r\r\nlast"
    found = Tokenizer.from_vocab(vocab_file(text))
    assert found.tokens[5:] == ("a", "\u2028", "\x85", "\x0b", "b\r", "last")
    assert found == Tokenizer.from_vocab(str(vocab_file(text + "\n")))
    assert found.vocab["last"] == 10 and found.vocab_size == 11


@pytest.mark.parametrize(
    "content, message",
    [
        (LINES + "a\nb\na\n", "'a' appears on lines 6 and 8, allowed once"),
        ("\ufeff" + LINES, "byte-order mark"),
        (LINES.encode() + b"a\xff\n", "byte 32 is not UTF-8"),
        (LINES.replace("[MASK]\n", ""), r"lacks \[MASK\]; needed"),
        ("", r"lacks \[PAD\] \[UNK\] \[CLS\] \[SEP\] \[MASK\]"),
    ],
)
def test_a_faulty_vocab_file_is_refused(vocab_file, content, message):
    with pytest.raises(BertError, match=rf"vocab\.txt.*{message}"):
        Tokenizer.from_vocab(vocab_file(content))


def test_a_vocab_file_that_is_too_large_is_refused(vocab_file, monkeypatch):
    monkeypatch.setattr(tokenizer, "MAX_VOCAB_BYTES", 40)
    assert Tokenizer.from_vocab(vocab_file(LINES)).vocab_size == 5
    with pytest.raises(BertError, match="larger than 40 bytes"):
        Tokenizer.from_vocab(vocab_file(LINES + "x" * 20))


def test_a_path_that_cannot_be_read_is_refused(tmp_path):
    for path in ("no/such/vocab.txt", "a\0b", tmp_path):
        with pytest.raises(BertError, match="cannot be read: "):
            Tokenizer.from_vocab(path)
    with pytest.raises(BertError, match="path must be a str or a Path, got int"):
        Tokenizer.from_vocab(7)


@pytest.mark.parametrize(
    "tokens, rules, message",
    [
        ("abc", {}, "tokens must be a list of str, got str"),
        ([*SPECIAL_TOKENS, 5], {}, "entry 6 must be a str, got int"),
        ([*SPECIAL_TOKENS, "a", "a"], {}, "lines 6 and 7"),
        (SPECIAL_TOKENS, {"lowercase": "no"}, "lowercase = 'no', allowed True, False"),
        (
            SPECIAL_TOKENS,
            {"strip_accents": 1},
            "strip_accents = 1, allowed True, False,",
        ),
        (SPECIAL_TOKENS, {"handle_chinese_chars": None}, "chars = None, allowed"),
    ],
)
def test_a_faulty_list_of_tokens_or_rule_is_refused(tokens, rules, message):
    with pytest.raises(BertError, match=message):
        Tokenizer.from_tokens(tokens, **rules)


def test_the_rules_of_a_file_and_the_attributes(vocab_file):
    rules = {"lowercase": False, "strip_accents": True, "handle_chinese_chars": False}
    found = Tokenizer.from_vocab(vocab_file(LINES), **rules)
    assert {name: getattr(found, name) for name in rules} == rules
    names = ("pad", "unk", "cls", "sep", "mask")
    assert [getattr(SMALL, f"{name}_token_id") for name in names] == [4, 3, 2, 1, 0]
    assert SMALL.vocab_size == len(SMALL.tokens) == len(SMALL.vocab) == 29
    assert "vocab_size=29" in repr(SMALL) and "cat" not in repr(SMALL)


def test_nothing_can_be_changed():
    tokens = [*SPECIAL_TOKENS, "a"]
    found = Tokenizer.from_tokens(tokens)
    tokens[5] = "b"
    assert found.tokens[5] == "a"
    with pytest.raises(TypeError):
        found.vocab["b"] = 6
    for thing in (found, found.encode("a")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.tokens = []


def test_pickle_and_copy():
    cased = Tokenizer.from_tokens(SMALL.tokens, lowercase=False)
    for found in (pickle.loads(pickle.dumps(cased)), copy.deepcopy(cased)):
        assert found == cased != SMALL and hash(found) == hash(cased)
        assert found.tokenize("a B") == ["a", "[UNK]"]


@pytest.mark.parametrize("unit", ["a", "[MASK]", "\u0301\u0323"], ids=ascii)
def test_time_does_not_grow_with_the_square_of_the_length(unit):
    # 200,000 accents sorted by insertion, as unicodedata.normalize does,
    # would take 20 s and more.
    text = "a" + unit * (200_000 // len(unit))
    start = time.process_time()
    assert len(SMALL.encode(text).tokens) >= 2
    assert time.process_time() - start < 10
