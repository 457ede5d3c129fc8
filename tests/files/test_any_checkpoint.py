"""Any vocabulary, config or checkpoint: a right answer, or one BertError."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from files.folders import (
    CONFIG,
    RAW,
    TENSORS,
    VOCAB,
    WHOLE,
    arrays_of,
    attempt,
    make,
    pack,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load

from bert_np import BertConfig, BertError
from bert_np.files.checkpoint import load_checkpoint
from bert_np.functional import ACTIVATIONS
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.tree import leaves

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
    ),
    max_leaves=4,
)


def mostly(usual, other=JSON):
    """The usual in three of four cases; `|` would give both as often."""
    return st.integers(0, 3).flatmap(lambda n: usual if n else other)


def outcome(function, argument):
    """The result, or None after one short BertError."""
    try:
        return function(argument)
    except BertError as error:
        assert 0 < len(str(error)) <= 300
        return None


# ------------------------------------------------------------ vocabularies
LINES = st.sampled_from([*SPECIAL_TOKENS, "a", "##b", "\u2028", "\r", ""]) | st.text()
TEXTS = st.lists(LINES).map(lambda lines: "\n".join([*SPECIAL_TOKENS, *lines]))


def check_vocabulary(data):
    data = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocab.txt")
        path.write_bytes(data)
        found = outcome(Tokenizer.from_vocab, path)
    if found is not None:
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
        assert [line.removesuffix("\r") for line in lines] == list(found.tokens)
        assert set(SPECIAL_TOKENS) <= set(found.tokens)
        assert len(set(found.tokens)) == found.vocab_size


# ----------------------------------------------------------------- configs
MORE = ["is_decoder", "position_embedding_type", "pruned_heads", "embedding_size"]
ODD = st.sampled_from([0, 1, 2, -1, 10**30, 0.5, 1.0, 1e-300, True, "6", "relu"])
CHANGES = st.dictionaries(
    st.sampled_from([*BertConfig().to_dict(), "architectures", *MORE]),
    mostly(ODD),
    min_size=1,
    max_size=3,
)


def check_config(values):
    found = outcome(BertConfig.from_dict, values)
    if found is not None:
        assert_config(found, values)


def assert_config(found, values):
    """Each field is what was given, and what a BERT can have."""
    for name, value in vars(found).items():
        given = values.get(name, value)
        assert value == given and type(value) is type(given)
        assert "size" not in name or (type(value) is int and value >= 1)
    assert found.head_size * found.num_attention_heads == found.hidden_size
    assert 0 < found.layer_norm_eps < 1 and found.hidden_act in ACTIVATIONS
    assert not any(values.get(name) for name in ("is_decoder", "pruned_heads"))


# ------------------------------------------------------------- checkpoints
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "cut", "append"]),
        st.integers(0, 9999),
        st.binary(min_size=1, max_size=8),
    ),
    max_size=3,
)
END = 8 + int.from_bytes(RAW[:8], "little")
NAMES = [
    prefix + name for name in TENSORS for prefix in ("", "module.", "bert.", "cls.")
]
FACES = st.sampled_from(["F64", "F32", "F16", "BF16", "I64", "I8", "F8_E4M3", "X", ""])
ENTRIES = {
    "dtype": FACES | JSON,
    "shape": st.lists(st.integers(-1, 99)) | JSON,
    "data_offsets": st.lists(st.integers(-1, 99999), max_size=3) | JSON,
}
# A tensor's number, what of its entry is changed, its new name or None.
HEADERS = st.tuples(
    st.integers(0, 99),
    st.fixed_dictionaries({}, optional=ENTRIES),
    st.none() | st.text(max_size=20) | st.sampled_from(NAMES),
)


def edited(data, edits):
    for kind, place, new in edits:
        place %= len(data) + 1
        end = {"insert": place, "cut": len(data)}.get(kind, place + len(new))
        new = b"" if kind in ("delete", "cut") else new
        data = data + new if kind == "append" else data[:place] + new + data[end:]
    return data


def with_header(change):
    """The weights with one entry of their header changed; its length fits."""
    header = json.loads(RAW[8:END])
    name = sorted(header)[change[0] % len(header)]
    header[change[2] or name] = header.pop(name) | change[1]
    return pack(header, RAW[END:])


def check_checkpoint(case):
    header, *edits = case
    weights = edited(with_header(header) if header else RAW, edits[0])
    config = edited(json.dumps(CONFIG).encode(), edits[1])
    files = {"config.json": config, "vocab.txt": edited(VOCAB.encode(), edits[2])}
    with tempfile.TemporaryDirectory() as folder:
        model, message = attempt(make(Path(folder), weights, files))
    if model is None:
        assert 0 < len(message) <= 300
        return
    assert_config(model.config, json.loads(config))
    wanted = arrays_of({rename(n): t for n, t in load(weights).items()})
    for path, array in leaves(model.params):
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(array, wanted[path].astype(array.dtype))


def rename(name):
    """The name that the base has for a tensor, whichever way it is spelled."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    return name.replace("predictions.decoder.bias", "predictions.bias")


# ------------------------------------------------- the tokenizer's files
CONTENTS = st.sampled_from(["a", "[E1]", "é", "[MASK]", "", "\0"])
RULES = {"id": mostly(st.integers(3, 12)), "lstrip": mostly(st.booleans())}
ENTRY = st.fixed_dictionaries({"content": mostly(CONTENTS)}, optional=RULES)
ENTRIES_BY_ID = st.dictionaries(st.just("10") | st.text(max_size=3), ENTRY, max_size=2)
KEYS = {"mask_token": mostly(ENTRY), "added_tokens_decoder": mostly(ENTRIES_BY_ID)}
KEYS["extra_special_tokens"] = mostly(st.lists(ENTRY | CONTENTS, max_size=2))
SETTINGS = mostly(st.fixed_dictionaries({}, optional=KEYS))
ADDED = mostly(st.lists(ENTRY, max_size=2)).map(lambda found: {"added_tokens": found})
FILES = {
    "tokenizer_config.json": SETTINGS,
    "special_tokens_map.json": SETTINGS,
    "added_tokens.json": mostly(st.dictionaries(CONTENTS, st.just(10), max_size=1)),
    "tokenizer.json": mostly(ADDED.map(lambda added: WHOLE | added)),
    "modules.json": JSON,
}


def check_tokenizer_files(files):
    texts = {name: json.dumps(values) for name, values in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        model = outcome(
            load_checkpoint, make(Path(folder), files=texts | {"vocab.txt": VOCAB})
        )
    if model is not None and model.tokenizer is not None:
        found = model.tokenizer.encode("a [E1] b é[MASK]")
        assert len(found.tokens) == len(found.offsets) > 3
        assert found.input_ids.max() < model.config.vocab_size


CASES = {
    check_tokenizer_files: st.fixed_dictionaries({}, optional=FILES),
    check_vocabulary: st.binary() | TEXTS,
    check_config: mostly(CHANGES.map(lambda changes: CONFIG | changes)),
    check_checkpoint: st.tuples(mostly(st.none(), HEADERS), EDITS, EDITS, EDITS)
    | st.tuples(HEADERS, st.just([]), st.just([]), st.just([])),
}


@pytest.mark.parametrize("examples", [60, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("check", CASES)
def test_a_right_answer_or_one_error(check, examples):
    @settings(max_examples=examples)
    @given(CASES[check])
    def run(case):
        check(case)

    run()
