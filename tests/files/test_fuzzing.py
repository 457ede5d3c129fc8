"""For any input at all: a right answer, or one BertError, and nothing else.

tests/fuzz.py runs the same properties for longer, led by coverage.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import load, save

import bert_np
from bert_np import BertConfig, BertError, bert
from bert_np.config import ACTIVATIONS, SIZES
from bert_np.files.checkpoint import huggingface_name, load_checkpoint
from bert_np.tokenizer import SPECIAL_TOKENS, TRUNCATIONS, Tokenizer
from bert_np.tree import leaves, map_leaves

CONFIG = BertConfig(
    vocab_size=9,
    hidden_size=6,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=5,
)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(0), heads=True)
TOKENIZER = Tokenizer.from_tokens(
    [*SPECIAL_TOKENS, "un", "##play", "##able", "a", "##a", "b", ",", "é", "中"]
)
VOCAB = "\n".join([*SPECIAL_TOKENS, "a", "##b", "é", "c"]).encode()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
JUNK = (
    JSON
    | st.binary()
    | st.complex_numbers()
    | st.sampled_from(
        [object(), int, np.int64(3), np.float32(2), np.array("a"), np.array(None), {1}]
    )
)


def mostly(usual):
    """The usual in three of four cases, else anything; `|` would spread evenly."""
    return st.integers(0, 3).flatmap(lambda n: usual if n else JUNK)


some = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck)
)


def try_it(function, *arguments, **options):
    """(True, result), or (False, None) after one short BertError."""
    try:
        return True, function(*arguments, **options)
    except BertError as error:
        assert 0 < len(str(error)) <= 300
        return False, None


# ------------------------------------------------------------------- text
TEXTS = st.lists(
    st.sampled_from([*SPECIAL_TOKENS, "unplayable", "##play", "a" * 101, " ", "\u0301"])
    | st.text(max_size=12)
    | st.text("ab\ud800\udfffé中", max_size=4),
    max_size=6,
).map("".join)
LENGTHS = mostly(st.none() | st.integers(-2, 12))


def assert_encoding(found, texts, most):
    """Ids, tokens, segments and offsets that fit each other and the texts."""
    ids, segments = found.input_ids.tolist(), found.segment_ids.tolist()
    assert [TOKENIZER.tokens[i] for i in ids] == found.tokens
    assert len(ids) == len(segments) == len(found.offsets) == len(found.attention_mask)
    assert found.attention_mask.all() and segments == sorted(segments)
    assert found.tokens[0] == "[CLS]" and found.tokens[-1] == "[SEP]"
    assert most is None or len(ids) <= most
    for segment, (start, end) in zip(segments, found.offsets, strict=True):
        assert 0 <= start <= end <= len(texts[segment])


@some
@given(
    text=mostly(TEXTS),
    pair=mostly(st.none() | TEXTS),
    max_length=LENGTHS,
    truncation=mostly(st.sampled_from(TRUNCATIONS)),
    allow_special=st.booleans(),
)
def test_any_text(text, pair, max_length, truncation, allow_special):
    options = {"max_length": max_length, "truncation": truncation}
    answered, found = try_it(
        TOKENIZER.encode, text, pair, allow_special=allow_special, **options
    )
    if answered:
        assert isinstance(text, str) and truncation in TRUNCATIONS
        (text + (pair or "")).encode("utf-8")  # no lone surrogate
        assert_encoding(found, [text, pair], max_length)
        again = TOKENIZER.encode_batch(
            [(text, pair) if pair else text],
            None,
            max_length,
            truncation,
            allow_special,
        )
        assert again.input_ids[0].tolist() == found.input_ids.tolist()


@some
@given(ids=mostly(st.lists(st.integers(-1, 14))), skip_special=mostly(st.booleans()))
def test_any_ids_to_decode(ids, skip_special):
    answered, text = try_it(TOKENIZER.decode, ids, skip_special)
    if answered:
        tokens = [TOKENIZER.tokens[i] for i in ids]
        assert len(text) <= len(" ".join(tokens)) and isinstance(skip_special, bool)
        assert all(0 <= i < TOKENIZER.vocab_size for i in ids)


@some
@given(
    data=st.binary()
    | st.lists(
        st.sampled_from([*SPECIAL_TOKENS, "a", "##b", "\u2028", "\r", ""]) | st.text()
    ).map(lambda lines: "\n".join([*SPECIAL_TOKENS, *lines]).encode("utf-8", "replace"))
)
def test_any_vocabulary(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocab.txt")
        path.write_bytes(data)
        answered, found = try_it(Tokenizer.from_vocab, path)
    if answered:
        lines = data.decode("utf-8").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        assert [line.removesuffix("\r") for line in lines] == list(found.tokens)
        assert len(set(found.tokens)) == found.vocab_size
        assert set(SPECIAL_TOKENS) <= set(found.tokens)


# ----------------------------------------------------------------- config
KEYS = st.sampled_from(
    [
        *CONFIG.to_dict(),
        "architectures",
        "is_decoder",
        "position_embedding_type",
        "pruned_heads",
        "embedding_size",
    ]
)
ODD_NUMBERS = st.sampled_from([0, 1, 2, -1, 10**30, 0.5, 1.0, 1e-300, True, "6"])


def assert_config(found, values):
    """Each field as it was given, and one that a BERT can have."""
    for name, value in found.to_dict().items():
        given = values.get(name, value)
        assert value == given and type(value) is type(given)
    assert all(type(getattr(found, name)) is int for name in SIZES)
    assert min(getattr(found, name) for name in SIZES) >= 1
    assert found.head_size * found.num_attention_heads == found.hidden_size
    assert 0 < found.layer_norm_eps < 1 and found.hidden_act in ACTIVATIONS
    assert not values.get("is_decoder") and not values.get("pruned_heads")


@some
@given(
    values=mostly(
        st.dictionaries(KEYS, mostly(ODD_NUMBERS), min_size=1, max_size=3).map(
            lambda changes: CONFIG.to_dict() | changes
        )
    )
)
def test_any_config(values):
    answered, found = try_it(BertConfig.from_dict, values)
    if answered:
        assert_config(found, values | {"model_type": "bert"})


# ------------------------------------------------------------ checkpoints
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "cut", "append"]),
        st.integers(0, 9999),
        st.binary(min_size=1, max_size=8),
    ),
    max_size=3,
)
FACES = st.sampled_from(["F64", "F32", "F16", "BF16", "I64", "I8", "F8_E4M3", "X", ""])


def edited(data, edits):
    for kind, place, new in edits:
        place %= len(data) + 1
        end = {"insert": place, "cut": len(data)}.get(kind, place + len(new))
        new = b"" if kind in ("delete", "cut") else new
        data = data + new if kind == "append" else data[:place] + new + data[end:]
    return data


def tensors():
    def turn(path, array):
        return np.ascontiguousarray(array.T if path.endswith(".W") else array)

    return {huggingface_name(path): turn(path, a) for path, a in leaves(PARAMS)}


WEIGHTS = save(tensors())
HEADER_END = 8 + int.from_bytes(WEIGHTS[:8], "little")


def with_header(change):
    """The weights with one entry of their header changed; its length fits."""
    header = json.loads(WEIGHTS[8:HEADER_END])
    name = sorted(header)[change[0] % len(header)]
    header[name] = header[name] | change[1]
    if change[2] is not None:
        header[change[2]] = header.pop(name)
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text + WEIGHTS[HEADER_END:]


HEADERS = st.tuples(
    st.integers(0, 99),
    st.fixed_dictionaries(
        {},
        optional={
            "dtype": FACES | JSON,
            "shape": st.lists(st.integers(-1, 9)) | JSON,
            "data_offsets": st.lists(st.integers(-1, 5000), max_size=3) | JSON,
        },
    ),
    st.none()
    | st.text(max_size=20)
    | st.sampled_from(
        [
            f"{prefix}{name}"
            for name in tensors()
            for prefix in ("bert.", "module.", "cls.")
        ]
    ),
)


def assert_loaded(loaded, weights, config_text):
    """The numbers are those that safetensors finds, turned where need be."""
    params, config, tokenizer = loaded
    assert_config(config, json.loads(config_text) | {"model_type": "bert"})
    found = {name.removeprefix("bert."): a for name, a in load(weights).items()}
    for path, array in leaves(params):
        wanted = found[huggingface_name(path)]
        wanted = wanted.T if path.endswith(".W") else wanted
        assert np.isfinite(array).all()
        assert np.array_equal(array, wanted.astype(array.dtype))
    assert tokenizer is None or tokenizer.vocab_size <= config.vocab_size


@some
@given(edits=EDITS, header=st.none() | HEADERS, config_edits=EDITS, vocab_edits=EDITS)
def test_any_checkpoint(edits, header, config_edits, vocab_edits):
    weights = edited(WEIGHTS if header is None else with_header(header), edits)
    config = edited(json.dumps(CONFIG.to_dict()).encode(), config_edits)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.safetensors").write_bytes(weights)
        Path(folder, "config.json").write_bytes(config)
        Path(folder, "vocab.txt").write_bytes(edited(VOCAB, vocab_edits))
        answered, loaded = try_it(load_checkpoint, folder)
    if answered:
        assert_loaded(loaded, weights, config)


# -------------------------------------------------------------- arguments
DTYPES = st.sampled_from(
    [
        "bool",
        "i1",
        "u1",
        "i2",
        "i4",
        "i8",
        "u8",
        "f2",
        "f4",
        "f8",
        "c8",
        "U1",
        "O",
        ">i4",
        "M8[s]",
    ]
)
SHAPES = st.lists(st.integers(0, 6), max_size=3).map(tuple) | st.just((2, 3))


def small_arrays(most):
    numbers = arrays_of.arrays(np.int8, SHAPES, elements=st.integers(0, most))
    return mostly(
        numbers
        | arrays_of.arrays(DTYPES.map(np.dtype), SHAPES)
        | numbers.map(np.ndarray.tolist)
    )


@some
@given(
    ids=small_arrays(8),
    segments=st.none() | small_arrays(1),
    mask=st.none() | small_arrays(1),
    trace=mostly(st.none() | st.just({})),
    rng=mostly(st.none()),
)
def test_any_arguments(ids, segments, mask, trace, rng):
    options = {"segment_ids": segments, "attention_mask": mask}
    answered, found = try_it(bert, ids, PARAMS, CONFIG, trace=trace, rng=rng, **options)
    if answered:
        ids = np.array(ids, np.int64)
        options = {
            name: None if value is None else np.array(value).astype(np.int64)
            for name, value in options.items()
        }
        wanted = bert(ids, PARAMS, CONFIG, **options)
        for (_, a), (_, b) in zip(leaves(found), leaves(wanted), strict=True):
            assert np.isfinite(a).all() and np.array_equal(a, b)
        assert found["last_hidden_state"].shape == (*ids.shape, 6) and ids.ndim == 2


@some
@given(place=st.integers(0, 99), new=small_arrays(8), config=mostly(st.just(CONFIG)))
def test_any_parameters(place, new, config):
    places = [path for path, _ in leaves(PARAMS)]
    chosen = places[place % len(places)]
    params = map_leaves(lambda path, a: new if path == chosen else a, PARAMS)
    answered, _ = try_it(bert, [[1, 2]], params, config)
    wanted = dict(leaves(PARAMS))[chosen]
    fits = isinstance(new, np.ndarray) and new.shape == wanted.shape
    assert not answered or config is CONFIG and fits and new.dtype.kind == "f"
