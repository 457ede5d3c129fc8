"""Added tokens: HuggingFace's ids and offsets, stored; and what is refused."""

import pickle

import pytest

from bert_np import BertError
from bert_np.added_tokens import SPECIAL_TOKENS, AddedToken
from bert_np.tokenizer import Tokenizer

PIECES = ["ein", "sw", "##an", "covid", "##s", "the", "new", "york", "[", "]", "."]
WORDS = [*SPECIAL_TOKENS, *PIECES]
ADDED = [
    AddedToken("[E1]"),
    AddedToken("COVID"),
    AddedToken("New York"),
    AddedToken("<SPEC>", special=True, normalized=False),
    AddedToken("lft", normalized=False, lstrip=True, rstrip=True),
    AddedToken("the", single_word=True, piece=True),
    AddedToken("中", special=True),
    AddedToken("[MASK]", special=True, normalized=False, lstrip=True),
]
NEW = [token.content for token in ADDED if token.content not in WORDS]
OURS = Tokenizer.from_tokens([*WORDS, *NEW], added=ADDED)
# From tokenizers 0.23.3: text, ids, offsets, allow_special.
CASES = [
    (
        "The [E1]covid[e1] in New  York, new york.",
        "10 16 17 16 1 11 12 1 18 15",
        "0:3 4:8 8:13 13:17 18:20 21:24 26:30 30:31 32:40 40:41",
        True,
    ),
    ("COVIDs sw swan", "17 1 6 6 7", "0:5 5:6 7:9 10:12 12:14", True),
    ("a\t lft  .<SPEC>sw", "1 20 15 19 6", "0:1 1:8 8:9 9:15 15:17", True),
    (
        "the thes .the\u0301 the",
        "10 10 9 15 10 10",
        "0:3 4:7 7:8 9:10 10:13 15:18",
        True,
    ),
    ("中中[中]", "21 21 13 21 14", "0:1 1:2 2:3 3:4 4:5", True),
    (" [MASK] [MASK].", "4 4 15", "0:7 7:14 14:15", True),
    (
        "<SPEC> 中 [MASK] covid lft",
        "1 1 1 1 13 1 14 17 20",
        "0:1 1:5 5:6 7:8 9:10 10:14 14:15 16:21 21:25",
        False,
    ),
    ("NEW YO\u0301RK \u0301[E1", "18 13 1", "0:9 11:12 12:14", True),
]


@pytest.mark.parametrize("text, ids, offsets, flag", CASES)
def test_stored_cases(text, ids, offsets, flag):
    found = OURS.encode(text, allow_special=flag)
    assert found.input_ids.tolist() == [2, *map(int, ids.split()), 3]
    assert " ".join(f"{a}:{b}" for a, b in found.offsets[1:-1]) == offsets
    assert OURS.tokenize(text, flag) == found.tokens[1:-1]


def test_decoding_shows_the_cleaned_text_and_can_leave_out_special_ones():
    ids = OURS.encode("COVID <SPEC> [E1] lft").input_ids
    assert OURS.decode(ids) == "[CLS] covid <SPEC> [e1] lft [SEP]"
    assert OURS.decode(ids, skip_special=True) == "covid [e1] lft"


def test_a_copy_has_the_same_added_tokens():
    copy = pickle.loads(pickle.dumps(OURS))
    assert copy == OURS != Tokenizer.from_tokens(OURS.tokens)
    assert copy.tokenize("[E1] covids") == ["[e1]", "covid", "[UNK]"]


@pytest.mark.parametrize(
    "added, message",
    [
        ("covid", "added is str, allowed: AddedTokens"),
        (["covid"], r"added\[0\] = 'covid', allowed: an AddedToken"),
        ([AddedToken("sw", 1)], r"added\[0\].special = 1, allowed: True or False"),
        ([AddedToken("x")], "'x' is given but not among tokens"),
        ([AddedToken("sw")] * 2, "'sw' is given twice"),
        ([AddedToken("[UNK]")], r"\[UNK\] must have special=True"),
        ([AddedToken("\0")], "empty once cleaned"),
    ],
)
def test_what_is_no_added_token_is_refused(added, message):
    with pytest.raises(BertError, match=message):
        Tokenizer.from_tokens([*WORDS, "\0"], added=added)
