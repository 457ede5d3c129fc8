"""Vocabularies: vocab.txt, tokenizer.json and tokenizer_config.json.

A case's `given` is {file name: bytes}; `values` the expected Tokenizer,
or None where the folder loads without one.
"""

import json

from bert_np.tokenizer import Tokenizer
from hostile.base import TOKENS, accepted, refused

V, J, S = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
LINES = "\n".join(TOKENS)


def vocab(text, **settings):
    files = {V: text if isinstance(text, bytes) else text.encode()}
    if settings:
        files[S] = json.dumps(settings).encode()
    return files


def tokens(*names, **options):
    return lambda: Tokenizer.from_tokens([*TOKENS, *names], **options)


def words_and(*more):
    return "\n".join([*TOKENS, *more]) + "\n"


def lines_without(token):
    return "\n".join(t for t in TOKENS if t != token)


SPECIAL = TOKENS[:5]
VOCAB_TXT = [
    accepted("as it is", vocab(LINES + "\n"), tokens()),
    accepted("without a line end at the end", vocab(LINES), tokens()),
    accepted("CRLF", vocab(LINES.replace("\n", "\r\n") + "\r\n"), tokens()),
    accepted(
        "U+2028 in a word", vocab(words_and("a\u2028b", "c")), tokens("a\u2028b", "c")
    ),
    accepted(
        "U+0085 in a word", vocab(words_and("a\x85b", "c")), tokens("a\x85b", "c")
    ),
    accepted("form feed in a word", vocab(words_and("a\x0cb")), tokens("a\x0cb")),
    accepted("carriage return inside a word", vocab(words_and("a\rb")), tokens("a\rb")),
    accepted("NUL in a word", vocab(words_and("a\0b")), tokens("a\0b")),
    accepted("spaces around a word", vocab(words_and(" b ")), tokens(" b ")),
    accepted("an empty line", vocab(words_and("", "b")), tokens("", "b")),
    accepted("a mark inside the file", vocab(words_and("\ufeffb")), tokens("\ufeffb")),
    accepted("composed and decomposed", vocab(words_and("e\u0301")), tokens("e\u0301")),
    accepted(
        "a word of 100,000 letters", vocab(words_and("x" * 10**5)), tokens("x" * 10**5)
    ),
    accepted(
        "exactly vocab_size lines",
        vocab(words_and(*map(str, range(54)))),
        tokens(*map(str, range(54))),
    ),
    refused(
        "one line more than vocab_size",
        vocab(words_and(*map(str, range(55)))),
        "65",
        "64",
    ),
    refused(
        "byte-order mark", vocab(b"\xef\xbb\xbf" + LINES.encode()), V, "byte-order mark"
    ),
    refused("UTF-16", vocab(LINES.encode("utf-16")), V, "UTF-8"),
    refused("Latin-1", vocab(LINES.encode("latin-1")), V, "UTF-8"),
    refused("overlong UTF-8", vocab(LINES.encode() + b"\n\xc0\xaf"), V, "UTF-8"),
    refused("encoded surrogate", vocab(LINES.encode() + b"\n\xed\xa0\x80"), V, "UTF-8"),
    refused("cut in a character", vocab(LINES.encode()[:-1]), V, "UTF-8"),
    refused("a word twice", vocab(words_and("a")), V, "'a'", "6", "11"),
    refused("two empty lines at the end", vocab(LINES + "\n\n\n"), V, "''"),
    refused("a special token twice", vocab(words_and("[UNK]")), V, "[UNK]", "2", "11"),
    refused("a long word twice", vocab(words_and("y" * 9999, "y" * 9999)), "yyy"),
    *[
        refused(f"without {token}", vocab(lines_without(token)), V, "lacks", token)
        for token in SPECIAL
    ],
    refused("special tokens in lower case", vocab(LINES.lower()), "the"),
    refused(
        "special tokens with angle brackets",
        vocab("\n".join(["<pad>", "<unk>", "<s>", "</s>", "<mask>", "a"])),
        V,
        "lacks",
        "[PAD]",
    ),
    refused("empty", vocab(b""), V, "lacks"),
    refused("one line end", vocab(b"\n"), V, "lacks"),
    refused("an HTML page", vocab("<!DOCTYPE html>\n<html>\n"), V, "lacks"),
    refused(
        "a Git LFS pointer",
        vocab("version https://git-lfs.github.com/spec/v1\n"),
        V,
        "lacks",
    ),
    refused("a JSON vocabulary", vocab(json.dumps(TOKENS)), V, "lacks"),
    refused(
        "numbers beside the words",
        vocab("\n".join(f"{t}\t{i}" for i, t in enumerate(TOKENS))),
        V,
        "lacks",
    ),
    refused("lines ended by CR alone", vocab(LINES.replace("\n", "\r")), V, "lacks"),
    refused("more than 64 MiB", {V: b"x" * (2**26 + 1)}, V, "67108864"),
]

SETTINGS = [
    accepted("cased", vocab(LINES, do_lower_case=False), tokens(lowercase=False)),
    accepted(
        "accents kept", vocab(LINES, strip_accents=False), tokens(strip_accents=False)
    ),
    accepted(
        "CJK not spaced",
        vocab(LINES, tokenize_chinese_chars=False),
        tokens(handle_chinese_chars=False),
    ),
    accepted(
        "another tokenizer's class",
        vocab(LINES, tokenizer_class="BertJapaneseTokenizer"),
        None,
    ),
    accepted(
        "a class of its own",
        vocab(
            LINES,
            tokenizer_class="evil.Tokenizer",
            auto_map={"AutoTokenizer": ["evil.py", None]},
        ),
        None,
    ),
    *[
        refused(f"{key} = {value!r}", vocab(LINES, **{key: value}), name, repr(value))
        for key, name, value in (
            ("do_lower_case", "lowercase", "false"),
            ("do_lower_case", "lowercase", 1),
            ("do_lower_case", "lowercase", None),
            ("strip_accents", "strip_accents", 0),
            ("tokenize_chinese_chars", "handle_chinese_chars", []),
        )
    ],
    *[
        refused(f"settings {text[:20]!r}", {V: LINES.encode(), S: text}, S, word)
        for text, word in (
            (b"", "JSON"),
            (b"[]", "list"),
            (b"{", "JSON"),
            (b"\xff", "UTF-8"),
            (b'{"do_lower_case": true, "do_lower_case": false}', "do_lower_case"),
            (b"\xef\xbb\xbf{}", "byte-order mark"),
            (b'{"a": NaN}', "NaN"),
        )
    ],
]


def tokenizer_json(**changes):
    """A tokenizer.json; a change is part__key=value."""
    values = {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "lowercase": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "truncation": {"max_length": 3},
        "padding": {"strategy": {"Fixed": 3}},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {t: i for i, t in enumerate(TOKENS)},
        },
    }
    for key, value in changes.items():
        part, _, key = key.partition("__")
        values[part] = values[part] | {key: value} if key else value
    return {J: json.dumps(values).encode()}


def ids(**changes):
    return {t: i for i, t in enumerate(TOKENS)} | changes


TOKENIZER_JSON = [
    accepted("tokenizer.json", tokenizer_json(), tokens()),
    accepted(
        "tokenizer.json, cased",
        tokenizer_json(normalizer__lowercase=False),
        tokens(lowercase=False),
    ),
    accepted("tokenizer.json of BPE", tokenizer_json(model__type="BPE"), None),
    accepted("tokenizer.json without a model", tokenizer_json(model=None), None),
    accepted(
        "tokenizer.json, another prefix",
        tokenizer_json(model__continuing_subword_prefix="@@"),
        None,
    ),
    *[
        refused(
            f"tokenizer.json: vocab {name}",
            tokenizer_json(model__vocab=value),
            J,
            "vocab",
        )
        for name, value in (
            ("null", None),
            ("a list", []),
            ("an id a str", {"a": "0"}),
            ("an id true", {"a": True}),
            ("ids from 1", {"a": 1}),
            ("an id twice", ids(a=0)),
            ("an id below 0", ids(a=-1)),
            ("an id of 10^9", ids(a=10**9)),
            ("an id a float", ids(a=5.0)),
        )
    ],
    refused(
        "tokenizer.json without [MASK]",
        tokenizer_json(
            model__vocab={
                t: i for i, t in enumerate(t for t in TOKENS if t != "[MASK]")
            }
        ),
        "[MASK]",
    ),
    refused(
        "tokenizer.json: lowercase 'yes'",
        tokenizer_json(normalizer__lowercase="yes"),
        "lowercase",
        "'yes'",
    ),
    refused("tokenizer.json that is no JSON", {J: b"<html>"}, J, "JSON"),
    refused("tokenizer.json of 100,000 levels", {J: b"[" * 10**5}, J, "JSON"),
    refused("tokenizer.json: a word twice", {J: b'{"a": 1, "a": 2}'}, J, "'a'"),
    refused(
        "tokenizer.json, more words than rows",
        tokenizer_json(model__vocab=ids(**{str(i): i + 10 for i in range(55)})),
        "65",
        "64",
    ),
]
KINDS = {
    "vocab.txt": VOCAB_TXT,
    "tokenizer_config.json": SETTINGS,
    "tokenizer.json": TOKENIZER_JSON,
}
CASES = [case for cases in KINDS.values() for case in cases]
