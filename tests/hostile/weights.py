"""Malformed and odd weight files: the bytes in the place of the weights."""

import gzip
import io
import json
import pickle
import tarfile
import zipfile

import numpy as np

from hostile.base import (
    KEY,
    QUERY,
    RAW,
    TENSORS,
    WEIGHTS,
    WORD,
    accepted,
    array_of,
    base_values,
    pack,
    pack_tensors,
    refused,
    split,
    store,
)

LENGTH = int.from_bytes(RAW[:8], "little")
HEADER, DATA = split(RAW)


# ------------------------------------------------ files of another kind
def zip_bytes(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, bytes(40))
    return buffer.getvalue()


def tar_bytes():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("pytorch_model.bin"), io.BytesIO())
    return buffer.getvalue()


def npy_bytes():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


LFS = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:"
    + b"53aa5117" * 8
    + b"\nsize 90868376\n"
)
NO_WEIGHTS = "no safetensors file"
OTHER_KINDS = [
    ("Git LFS pointer", LFS, "Git LFS pointer", "git lfs pull"),
    ("Git LFS pointer with CRLF", LFS.replace(b"\n", b"\r\n"), "Git LFS pointer"),
    ("git-annex pointer", b"/annex/objects/SHA256E-s90868376--53aa5117", NO_WEIGHTS),
    ("HTML page", b"<!DOCTYPE html><html><head><title>404</title>", "HTML", "again"),
    ("HTML page in lower case", b"<html><body>Not found</body></html>", "HTML"),
    ("HTML after blank lines", b"\r\n\r\n  <html></html>" + bytes(9), "HTML"),
    ("HTML after a byte-order mark", b"\xef\xbb\xbf<html></html>", "HTML"),
    ("XML of a storage service", b"<?xml version='1.0'?><Error>Denied</Error>", "XML"),
    ("JSON error body", b'{"error":"Repository not found"}', "JSON", "again"),
    ("JSON error, spaced", b'{\n  "message": "Bad credentials"\n}', "JSON"),
    ("JSON with a brace at byte 8", b'{"err": {"code": 404}}', "JSON"),
    ("plain text", b"404: Not Found", NO_WEIGHTS, "404: Not"),
    ("page in UTF-16", "<html></html>".encode("utf-16"), NO_WEIGHTS),
    ("Python source", b"import os\nos.system('true')\n", NO_WEIGHTS),
    ("shell script", b"#!/bin/sh\nexit 0\n", NO_WEIGHTS),
    ("git conflict", b"<<<<<<< HEAD\n=======\n", "again"),
    (
        "ZIP of PyTorch",
        zip_bytes(["archive/data.pkl", "archive/data/0"]),
        "ZIP",
        "save_pretrained",
    ),
    ("empty ZIP", zip_bytes([]), "ZIP"),
    ("npz", zip_bytes(["arr_0.npy"]), "ZIP"),
    *[
        (
            f"pickle, protocol {n}",
            pickle.dumps({"w": [1.0] * 9}, n),
            "pickle",
            "save_pretrained",
        )
        for n in (2, 3, 4, 5)
    ],
    ("pickle, protocol 0", pickle.dumps({"w": [1.0] * 9}, 0), NO_WEIGHTS),
    ("pickle that would run a command", b"\x80\x02cos\nsystem\nU\x04trueR.", "pickle"),
    ("HDF5", b"\x89HDF\r\n\x1a\n" + bytes(90), "HDF5", "save_pretrained"),
    ("GGUF", b"GGUF\x03\0\0\0" + bytes(90), "GGUF"),
    ("GGML of old", b"lmgg\x01\0\0\0" + bytes(90), NO_WEIGHTS),
    ("npy", npy_bytes(), "NumPy"),
    ("gzip", gzip.compress(RAW[:500]), NO_WEIGHTS),
    ("tar", tar_bytes(), NO_WEIGHTS),
    ("7z", b"7z\xbc\xaf'\x1c" + bytes(90), NO_WEIGHTS),
    ("zstd", b"(\xb5/\xfd" + bytes(90), NO_WEIGHTS),
    ("PNG", b"\x89PNG\r\n\x1a\n" + bytes(90), NO_WEIGHTS),
    ("PDF", b"%PDF-1.7\n" + bytes(90), NO_WEIGHTS),
    ("program (ELF)", b"\x7fELF\x02\x01\x01" + bytes(90), NO_WEIGHTS),
    ("TFLite", b"\x1c\0\0\0TFL3" + bytes(90), NO_WEIGHTS),
    ("Parquet", b"PAR1\x15\x04\x15" + bytes(90), NO_WEIGHTS),
    ("TensorFlow checkpoint", b"\x08\x01\x1a\x02\x08\x01" + bytes(90), NO_WEIGHTS),
    ("empty file", b"", "is empty", "again"),
    ("one line end", b"\n", "1 bytes"),
    ("zeros", bytes(1000), NO_WEIGHTS),
    ("ones", b"\xff" * 1000, NO_WEIGHTS),
    ("every byte once", bytes(range(256)), NO_WEIGHTS),
    ("spaces", b" " * 100, NO_WEIGHTS),
    ("one letter", b"a" * 100, NO_WEIGHTS),
]


# --------------------------------------------------------- the length
def with_length(length):
    return (length % 2**64).to_bytes(8, "little") + RAW[8:]


LENGTHS = [
    *[
        (f"{n} of the 8 bytes of the length", RAW[:n], f"{n} bytes")
        for n in range(1, 8)
    ],
    ("a length and nothing more", RAW[:8], "8 bytes"),
    ("length 0", with_length(0), "not valid JSON"),
    ("length 1", with_length(1), "not valid JSON"),
    ("length one too small", with_length(LENGTH - 1), "damaged"),
    ("length eight too small", with_length(LENGTH - 8), "not valid JSON"),
    ("length one too large", with_length(LENGTH + 1), WEIGHTS, "U"),
    ("length eight too large", with_length(LENGTH + 8), WEIGHTS, "U"),
    ("length of the whole rest", with_length(len(RAW) - 8), WEIGHTS, "UTF-8"),
    ("length one beyond the end", with_length(len(RAW) - 7), "truncated"),
    ("length of the file", with_length(len(RAW)), "truncated"),
    ("length at the limit, beyond the file", with_length(10_000_000), "truncated"),
    *[
        (f"length 2^{n}", with_length(2**n), NO_WEIGHTS)
        for n in (24, 31, 32, 53, 62, 63)
    ],
    ("length 2^64 - 1", with_length(2**64 - 1), NO_WEIGHTS),
    ("length 2^64 - 8", with_length(-8), NO_WEIGHTS),
    ("length with the bytes reversed", RAW[7::-1] + RAW[8:], NO_WEIGHTS),
    ("a byte before the length", b"\0" + RAW, NO_WEIGHTS),
    ("a byte-order mark before the length", b"\xef\xbb\xbf" + RAW, NO_WEIGHTS),
    ("no length", RAW[8:], "JSON"),
]


# --------------------------------------------------------- truncation
TRUNCATED = [
    *[
        (f"cut after {text}", RAW[:n], "truncated", str(n), "again")
        for text, n in (
            ("the first byte of the header", 9),
            ("half of the header", 8 + LENGTH // 2),
            ("all of the header but a byte", 7 + LENGTH),
            ("the header", 8 + LENGTH),
            ("one byte of data", 9 + LENGTH),
            ("half of the data", (8 + LENGTH + len(RAW)) // 2),
            ("all but 4096 bytes", len(RAW) - 4096),
            ("all but a number", len(RAW) - 4),
            ("all but a byte", len(RAW) - 1),
        )
    ],
    *[
        (f"{text} after the end", RAW + more, "damaged", str(len(RAW + more)))
        for text, more in (
            ("one byte", b"\0"),
            ("a number", bytes(4)),
            ("a line end", b"\n"),
            ("a page", bytes(4096)),
            ("the file again", RAW),
        )
    ],
]


# ------------------------------------------------------------- the JSON
def entry(**changes):
    base = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return {k: v for k, v in (base | changes).items() if v is not None}


ENTRY = json.dumps(entry())
JSON_FAULTS = [
    ("header not UTF-8", b'{"a\xff": {}}', "UTF-8", "byte 3"),
    ("header in Latin-1", '{"é": {}}'.encode("latin-1"), "UTF-8"),
    ("header with half a character", b'{"a\xe2\x82": {}}', "UTF-8"),
    ("header cut in a string", '{"a', "not valid JSON"),
    ("header cut in an object", '{"a": {"dtype": "F32"', "not valid JSON"),
    ("header not closed", '{"a": ' + ENTRY, "not valid JSON"),
    ("header closed twice", '{"a": ' + ENTRY + "}}", "not valid JSON"),
    ("single quotes", "{'a': {}}", "not valid JSON"),
    ("comma at the end", '{"a": ' + ENTRY + ",}", "not valid JSON"),
    ("a comment", '{/* */"a": ' + ENTRY + "}", "not valid JSON"),
    ("a name without quotes", "{a: 1}", "not valid JSON"),
    ("a NUL at the end", '{"a": ' + ENTRY + "}\0", "not valid JSON"),
    ("a line end in a name", '{"a\n": ' + ENTRY + "}", "not valid JSON"),
    ("two objects", "{}{}", "not valid JSON"),
    ("NaN", '{"a": NaN}', "NaN"),
    ("Infinity", '{"a": {"dtype": "F32", "shape": [Infinity]}}', "Infinity"),
    ("100,000 levels", '{"a":' * 100_000, "not valid JSON"),
    ("a number of 5,000 digits", '{"a": ' + "9" * 5000 + "}", "not valid JSON"),
    ("one name twice", '{"a": %s, "a": %s}' % (ENTRY, ENTRY), "'a' stands twice"),
    ("one name twice, escaped", '{"a": %s, "\\u0061": %s}' % (ENTRY, ENTRY), "twice"),
    ("dtype twice in an entry", '{"a": {"dtype": "F32", "dtype": "F32"}}', "twice"),
    ("metadata twice", '{"__metadata__": {}, "__metadata__": {}}', "twice"),
    ("long name twice", '{"%s": 1, "%s": 2}' % (("n" * 9000,) * 2), "twice", "nnn"),
    ("no tensor", "{}", "missing tensors", "word_embeddings"),
    ("metadata alone", '{"__metadata__": {"format": "pt"}}', "missing tensors"),
]


ENTRY_FAULTS = [
    *[
        (f"entry is {text}", {"a": value}, "a is malformed")
        for text, value in (
            ("a list", [1]),
            ("a number", 3),
            ("a str", "F32"),
            ("null", None),
            ("an empty object", {}),
            ("true", True),
        )
    ],
    *[
        (f"dtype is {text}", {"a": entry(dtype=value)}, "a is malformed")
        for text, value in (
            ("not there", None),
            ("a number", 32),
            ("a list", ["F32"]),
            ("false", False),
        )
    ],
    *[
        (f"shape is {text}", {"a": entry(shape=value)}, "a is malformed")
        for text, value in (
            ("not there", None),
            ("a number", 2),
            ("a str", "2"),
            ("an object", {"0": 2}),
            ("negative", [-2]),
            ("a float", [2.0]),
            ("a bool", [True, 2]),
            ("nested", [[2]]),
            ("[null]", [None]),
            ("a str in a list", ["2"]),
        )
    ],
    *[
        (f"data_offsets is {text}", {"a": entry(data_offsets=value)}, "a is malformed")
        for text, value in (
            ("not there", None),
            ("one number", [8]),
            ("three numbers", [0, 4, 8]),
            ("empty", []),
            ("a number", 8),
            ("negative", [-8, 0]),
            ("floats", [0.0, 8.0]),
            ("strings", ["0", "8"]),
            ("bools", [False, True]),
            ("an object", {}),
        )
    ],
    ("data_offsets beyond the end", {"a": entry(data_offsets=[0, 9])}, "truncated"),
    ("data_offsets of 2^62", {"a": entry(data_offsets=[0, 2**62])}, "truncated"),
    ("data_offsets of 10^400", {"a": entry(data_offsets=[0, 10**400])}, "truncated"),
    ("data_offsets that leave bytes", {"a": entry(data_offsets=[0, 4])}, "damaged"),
]


def changed(change, more=b""):
    """The base file with its header changed."""
    header = json.loads(json.dumps(HEADER))
    header = change(header) or header
    return pack(header, DATA + more)


def set_entry(**values):
    def change(header):
        header[QUERY] = {**header[QUERY], **values}

    return change


def hole(header):
    for name, one in header.items():
        if name != "__metadata__" and one["data_offsets"][0]:
            one["data_offsets"] = [n + 4 for n in one["data_offsets"]]


def hole_at_start(header):
    for name, one in header.items():
        if name != "__metadata__":
            one["data_offsets"] = [n + 4 for n in one["data_offsets"]]


def overlap(header):
    header[QUERY]["data_offsets"] = header[KEY]["data_offsets"]


def half_overlap(header):
    start, end = header[QUERY]["data_offsets"]
    header[QUERY]["data_offsets"] = [start + 4, end + 4]


def swap_offsets(header):
    header[QUERY]["data_offsets"] = header[QUERY]["data_offsets"][::-1]


def shift_end(by):
    def change(header):
        header[QUERY]["data_offsets"][1] += by

    return change


CANNOT = "cannot be read"
LAYOUT_FAULTS = [
    ("hole between two tensors", changed(hole, bytes(4)), CANNOT),
    ("hole before the first tensor", changed(hole_at_start, bytes(4)), CANNOT),
    ("two tensors on one place", changed(overlap), CANNOT),
    ("two tensors that overlap", changed(half_overlap), CANNOT),
    ("offsets the wrong way round", changed(swap_offsets), CANNOT),
    ("offsets a number short", changed(shift_end(-4)), CANNOT),
    ("offsets a number long", changed(shift_end(4)), CANNOT),
    ("offsets a byte long", changed(shift_end(1)), CANNOT),
    (
        "a shape of other size",
        changed(set_entry(shape=[32, 31])),
        QUERY,
        "(32, 31)",
        "(32, 32)",
    ),
    (
        "a shape whose product is 2^64",
        changed(set_entry(shape=[2**32, 2**32])),
        QUERY,
        "4294967296",
    ),
    (
        "a shape whose product is 2^64 and 1,024",
        changed(set_entry(shape=[2**32, 2**32, 1024])),
        QUERY,
        "4294967296",
    ),
    (
        "a shape of 2^62",
        changed(set_entry(shape=[2**62])),
        QUERY,
        "4611686018427387904",
    ),
    ("a shape of 10^400", changed(set_entry(shape=[10**400])), QUERY, "1000"),
    ("a shape of 10,000 axes", changed(set_entry(shape=[1] * 10_000)), QUERY, "(1, 1"),
    ("a shape with a 0", changed(set_entry(shape=[0, 32])), QUERY, "(0, 32)"),
    ("a shape without axes", changed(set_entry(shape=[])), QUERY, "()"),
    ("a shape of one axis", changed(set_entry(shape=[1024])), QUERY, "(1024,)"),
    (
        "a shape with an axis of 1 more",
        changed(set_entry(shape=[1, 32, 32])),
        QUERY,
        "(1, 32, 32)",
    ),
    (
        "metadata with a number",
        changed(lambda h: h.update(__metadata__={"a": 3})),
        CANNOT,
    ),
    ("metadata a list", changed(lambda h: h.update(__metadata__=["pt"])), CANNOT),
    ("metadata nested", changed(lambda h: h.update(__metadata__={"a": {}})), CANNOT),
    (
        "header that begins with a space",
        pack(b" " + json.dumps(HEADER).encode(), DATA),
        NO_WEIGHTS,
    ),
    ("header that is a list", pack(b"[1]", DATA), NO_WEIGHTS),
    ("header that is null", pack(b"null", DATA), NO_WEIGHTS),
    ("header that is a number", pack(b"12345678", DATA), NO_WEIGHTS),
    ("header of 10,000,001 bytes", pack(b"{" + b" " * 10_000_000, b""), NO_WEIGHTS),
]


# -------------------------------------------------------------- dtypes
def with_tensor(name, stored):
    return pack_tensors(TENSORS | {name: stored})


def all_as(convert):
    return pack_tensors({n: convert(n, array_of(n)) for n in TENSORS})


SIZES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "F8_E4M3FNUZ": 1,
    "F8_E5M2FNUZ": 1,
    "I16": 2,
    "U16": 2,
    "I32": 4,
    "U32": 4,
    "I64": 8,
    "U64": 8,
    "C64": 8,
    "F4": 0.5,
    "F6_E2M3": 0.75,
    "F6_E3M2": 0.75,
    "F128": 16,
    "f32": 4,
    "float32": 4,
    "": 4,
    "X" * 500: 4,
    "F32\0": 4,
}
DTYPES = [
    (
        f"dtype {kind[:20]!r}",
        with_tensor(QUERY, (kind, (32, 32), bytes(int(1024 * size)))),
        QUERY,
        repr(kind)[:12],
        "F32",
    )
    for kind, size in SIZES.items()
]


def changed_array(name, place, value, dtype=np.float32):
    array = array_of(name).astype(dtype)
    array.flat[place] = value
    return with_tensor(name, store(array))


NONFINITE = [
    (f"{value} in {kind.__name__}", changed_array(name, 7, value, kind), name, "NaN")
    for value, kind, name in (
        (np.nan, np.float32, WORD),
        (np.inf, np.float32, QUERY),
        (-np.inf, np.float32, "cls.predictions.bias"),
        (np.nan, np.float64, QUERY),
        (np.inf, np.float16, WORD),
        (np.nan, np.float16, QUERY),
        (1e300, np.float64, QUERY),
    )
] + [
    (
        "NaN in bfloat16",
        with_tensor(QUERY, ("BF16", (32, 32), b"\xc0\x7f" * 1024)),
        QUERY,
        "NaN",
    ),
    (
        "signalling NaN in float16",
        with_tensor(QUERY, ("F16", (32, 32), b"\x01\x7d" * 1024)),
        QUERY,
        "NaN",
    ),
    (
        "signalling NaN in float32",
        with_tensor(QUERY, ("F32", (32, 32), b"\x01\0\xa0\x7f" * 1024)),
        QUERY,
        "NaN",
    ),
    ("infinity in the last number", changed_array(WORD, -1, np.inf), WORD, "infinity"),
]


# ------------------------------------------------------ odd and accepted
def bf16(name, array):
    return "BF16", array.shape, (array.view("<u4") >> 16).astype("<u2").tobytes()


def from_bf16(array):
    return (array.view(np.uint32) & 0xFFFF0000).view(np.float32)


def f16(name, array):
    return store(array.astype(np.float16))


def same():
    return base_values()


def mapped(function):
    return lambda: {path: function(array) for path, array in base_values().items()}


def replaced(path, array):
    return lambda: base_values() | {path: array}


def query_with(place, value):
    array = array_of(QUERY).copy()
    array.flat[place] = value
    return array.T


QUERY_PATH = "layers.0.attention.query.W"
REVERSED = dict(reversed(TENSORS.items()))
ESCAPED = json.dumps(HEADER).replace("bert.", "\\u0062ert.")
ACCEPTED = [
    ("as it is", RAW, same),
    ("header padded with spaces", pack(json.dumps(HEADER) + " " * 37, DATA), same),
    ("header padded with line ends", pack(json.dumps(HEADER) + "\n\t\r\n", DATA), same),
    ("header on many lines", pack(json.dumps(HEADER, indent=4), DATA), same),
    ("names with escapes", pack(ESCAPED, DATA), same),
    ("entries in another order", pack(dict(sorted(HEADER.items())), DATA), same),
    ("data in another order", pack_tensors(REVERSED), same),
    ("metadata null", changed(lambda h: h.update(__metadata__=None)), same),
    ("no metadata", pack_tensors(TENSORS), same),
    ("empty metadata", pack_tensors(TENSORS, {}), same),
    ("metadata that says it is Flax", pack_tensors(TENSORS, {"format": "flax"}), same),
    ("metadata with a script", pack_tensors(TENSORS, {"<script>": "${7*7}"}), same),
    ("header at an odd address", pack(json.dumps(HEADER) + " " * 3, DATA), same),
    ("all float16", all_as(f16), mapped(lambda a: a.astype("f2").astype("f4"))),
    ("all bfloat16", all_as(bf16), mapped(from_bf16)),
    (
        "all float64",
        all_as(lambda n, a: store(a.astype("f8") / 3)),
        mapped(lambda a: a.astype("f8") / 3),
    ),
    (
        "float64 among float32",
        with_tensor(QUERY, store(array_of(QUERY).astype("f8") / 3)),
        replaced(QUERY_PATH, (array_of(QUERY).astype("f8") / 3).astype("f4").T),
    ),
    (
        "float16 among float32",
        with_tensor(QUERY, f16(QUERY, array_of(QUERY))),
        replaced(QUERY_PATH, array_of(QUERY).astype("f2").astype("f4").T),
    ),
    (
        "the largest float32",
        changed_array(QUERY, 7, np.finfo("f4").max),
        replaced(QUERY_PATH, query_with(7, np.finfo("f4").max)),
    ),
    (
        "the smallest float32",
        changed_array(QUERY, 7, 1.4e-45),
        replaced(QUERY_PATH, query_with(7, 1.4e-45)),
    ),
    (
        "all zeros in one",
        with_tensor(QUERY, store(np.zeros((32, 32), "f4"))),
        replaced(QUERY_PATH, np.zeros((32, 32), "f4")),
    ),
    (
        "float8 in a head that is not used",
        with_tensor("classifier.weight", ("F8_E4M3", (4,), bytes(4))),
        same,
    ),
    (
        "integers in a head that is not used",
        with_tensor("qa_outputs.bias", store(np.arange(3))),
        same,
    ),
    (
        "NaN in a head that is not used",
        with_tensor("classifier.bias", store(np.full(2, np.nan, "f4"))),
        same,
    ),
    (
        "a head without numbers",
        with_tensor("classifier.bias", ("F32", (0,), b"")),
        same,
    ),
]


def refusals(listed, *words, wrap=bytes):
    return [refused(name, wrap(given), *words, *more) for name, given, *more in listed]


KINDS = {
    "another kind of file": refusals(OTHER_KINDS, WEIGHTS),
    "length of the header": refusals(LENGTHS, WEIGHTS),
    "truncated or too long": refusals(TRUNCATED, WEIGHTS),
    "JSON of the header": refusals(JSON_FAULTS, wrap=pack),
    "entries of the header": refusals(ENTRY_FAULTS, wrap=lambda h: pack(h, bytes(8))),
    "offsets and shapes": refusals(LAYOUT_FAULTS),
    "number formats": refusals(DTYPES),
    "NaN and infinity": refusals(NONFINITE),
    "odd but right": [accepted(name, raw, values) for name, raw, values in ACCEPTED],
}
CASES = [case for cases in KINDS.values() for case in cases]
