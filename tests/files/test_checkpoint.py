"""Files <-> parameters: names, shapes, numbers, tokenizers, and back."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors
from files.folders import (
    BASE,
    BIAS,
    DECODER,
    INNER,
    QUERY,
    RAW,
    TASKS,
    TENSORS,
    TINY,
    TOKENS,
    VOCAB,
    WORD,
    accept,
    arrays_of,
    assert_same,
    cases,
    make,
    refuse,
    renamed,
    with_gamma,
    without,
)
from safetensors.numpy import load_file

import bert_np
from bert_np import BertConfig, BertError
from bert_np.files import checkpoint
from bert_np.files.checkpoint import (
    format_report,
    huggingface_name,
    load_checkpoint,
    save_pretrained,
)
from bert_np.parameters import parameter_shapes
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves, map_leaves

IDS = "bert.embeddings.position_ids"
WIDE = {name: tensor.astype("f8") / 3 for name, tensor in TENSORS.items()}
SMALL = BertConfig(
    vocab_size=23,
    hidden_size=6,
    num_hidden_layers=11,
    num_attention_heads=3,
    intermediate_size=10,
    max_position_embeddings=7,
    type_vocab_size=3,
)


# --------------------------------------------------------------- loading
def test_every_tensor_is_in_its_place_and_computes_what_huggingface_does():
    model, report = accept(TINY, BASE)
    params, config, tokenizer = model
    assert len(BASE) == len(TENSORS) == 46 and tokenizer is None
    assert config == BertConfig.from_json(TINY / "config.json")
    first, *rest = format_report(report).splitlines()
    assert first == "files (1): model.safetensors"
    assert [line.split(" (")[0] for line in rest] == ["no tokenizer", "ignored"]
    golden = np.load(TINY / "golden.npz")
    mask, segments = golden["attention_mask"], golden["token_type_ids"]
    inputs = {"attention_mask": mask, "segment_ids": segments}
    out = bert_np.bert(golden["input_ids"], params, config, **inputs)
    hidden, pooled = out["last_hidden_state"], out["pooler_output"]
    logits = bert_np.masked_lm_logits(hidden, params, config)
    found = {"hidden_2": hidden, "pooled": pooled, "mlm_logits": logits}
    found["nsp_logits"] = bert_np.next_sentence_logits(pooled, params)
    for name, array in found.items():
        np.testing.assert_allclose(array, golden[f"f32_{name}"], rtol=0, atol=1e-5)


def test_loaded_arrays_are_read_only_and_contiguous():
    params, config, _ = load_checkpoint(str(TINY))
    for path, array in leaves(params):
        assert not array.flags.writeable and array.flags.c_contiguous, path
    bert_np.check_params(params, config)


def test_every_leaf_of_the_tree_has_its_own_huggingface_name():
    paths = [path for path, _ in leaves(parameter_shapes(BertConfig(), heads=True))]
    names = {huggingface_name(path) for path in paths}
    assert len(names) == len(paths)
    assert "encoder.layer.11.output.dense.weight" in names


# ----------------------------------------------------------------- names
@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_old_names_and_names_without_prefix_are_accepted(tmp_path, prefix):
    _, report = accept(make(tmp_path, with_gamma(renamed("bert.", prefix))), BASE)
    assert len(report["renamed"]) == 12
    line = f"{prefix}embeddings.LayerNorm.gamma -> embeddings.norm.gamma"
    assert line in report["renamed"]


GAMMA = "bert.embeddings.LayerNorm.gamma"
HEADS = {
    "classifier.LayerNorm.gamma": np.full(2, np.nan),
    "qa_outputs.bias": WIDE[BIAS],
}
HEADS |= {"cls.new.weight": np.zeros(2, "i1"), "classifier.embeddings.x": np.zeros(0)}
UNKNOWN = "another architecture"
NAMES = [
    ("gamma in one place", with_gamma(TENSORS, "bert.emb"), "mix two ways", "beta"),
    ("gamma in the heads", with_gamma(TENSORS, "cls."), "mix two ways", "beta"),
    ("two spellings", TENSORS | {GAMMA: TENSORS[WORD]}, "two spellings", GAMMA),
    (
        "beta of no LayerNorm",
        renamed("pooler.dense.bias", "pooler.dense.beta"),
        UNKNOWN,
    ),
    ("a wrapper's prefix", renamed("bert.", "module."), "'module.'", "'bert.'"),
    ("prefix of some", renamed(QUERY, QUERY[5:]), "mix two ways", QUERY[5:]),
    ("missing", without(QUERY), f"missing tensors {QUERY[5:]}"),
    ("missing from a head", without(BIAS), f"missing tensors {BIAS}"),
    ("half a pooler", without("pooler.dense.b"), "missing tensors pooler.dense.bias"),
    ("no tensor", {}, "config.json has 2 layers, the weights 0"),
    ("a gap", renamed("layer.1.", "layer.2."), "unknown tensors", "layer.2."),
    (
        "more",
        TENSORS | {"\u202e\n" * 50: WIDE[BIAS]},
        "unknown tensors \\u202e",
        UNKNOWN,
    ),
    ("many", TENSORS | {f"x{i}": WIDE[BIAS] for i in range(9)}, "x4, ...: " + UNKNOWN),
]


@pytest.mark.parametrize("tensors, words", cases(NAMES))
def test_other_names_are_refused(tmp_path, tensors, words):
    refuse(make(tmp_path, tensors), *words)


@pytest.mark.parametrize("layers", [1, 3, 10**12])
def test_another_number_of_layers_than_the_config_says(tmp_path, layers):
    message = refuse(make(tmp_path, num_hidden_layers=layers))
    assert f"config.json has {layers} layers, the weights 2" in message
    assert message.count(f"encoder.layer.{min(layers, 2)}.") == 5


@pytest.mark.parametrize("part, name", [("pooler", "pooler"), ("cls.", "mlm")])
def test_pooler_and_heads_may_be_absent(tmp_path, part, name):
    tensors = without(part)
    model, report = accept(make(tmp_path, tensors), arrays_of(tensors))
    assert name in report["absent"]
    with pytest.raises(BertError, match="pooler|MLM"):
        out = bert_np.bert([[1, 2]], model.params, model.config)
        bert_np.masked_lm_logits(out["last_hidden_state"], model.params, model.config)
        bert_np.next_sentence_logits(out["pooler_output"], model.params)


def test_heads_that_are_not_used_are_reported(tmp_path):
    _, report = accept(make(tmp_path, TENSORS | HEADS), BASE)
    assert sorted(report["unused"]) == sorted(HEADS)


# ------------------------------------------------------ heads of tasks
SEQUENCE, TOKEN, SPAN = checkpoint.TASKS.values()
CLASSIFIER = {
    "classifier.weight": TENSORS[WORD][:2],
    "classifier.bias": TENSORS[BIAS][:2],
}
ANSWERS = {n.replace("classifier", "qa_outputs"): t for n, t in CLASSIFIER.items()}


def with_tasks(*parts):
    """The tiny checkpoint without some parts, with both names of heads."""
    return without("cls.", *parts) | CLASSIFIER | ANSWERS


@pytest.mark.parametrize(
    "architectures, pooler, loaded",
    [
        ([SEQUENCE], True, ["sequence"]),
        ([TOKEN], True, ["token"]),
        ([TOKEN], False, ["token"]),
        ([SPAN], True, ["span"]),
        ([SEQUENCE, SPAN], True, ["sequence", "span"]),
        ([TOKEN, SPAN], False, ["token", "span"]),
        ([SEQUENCE, TOKEN], True, []),
        (["BertForMultipleChoice"], True, []),
        (["BertModel"], True, []),
        (SEQUENCE, True, ["sequence"]),
        (None, False, ["token", "span"]),
        ([], True, ["span"]),
    ],
)
def test_the_class_in_the_config_tells_the_heads(
    tmp_path, architectures, pooler, loaded
):
    tensors = with_tasks() if pooler else with_tasks("pooler")
    folder = make(tmp_path, tensors, architectures=architectures)
    (params, _, _), report = accept(folder)
    assert list(params) == ["embeddings", "layers", *["pooler"] * pooler, *loaded]
    unused = {} if {"sequence", "token"} & {*loaded} else CLASSIFIER
    unused = unused | ({} if "span" in loaded else ANSWERS)
    assert sorted(report["unused"]) == sorted(unused)
    for name in loaded:
        np.testing.assert_array_equal(params[name]["W"], TENSORS[WORD][:2].T)
        np.testing.assert_array_equal(params[name]["b"], TENSORS[BIAS][:2])
    untold = "sequence or token (no architectures to tell)"
    assert (untold in report["absent"]) == (architectures == [])


def test_the_report_on_a_head_that_is_announced_and_on_its_defaults(tmp_path):
    _, report = accept(make(tmp_path, without("cls."), architectures=[SEQUENCE]))
    assert report["absent"] == ["mlm", "nsp", "sequence"]
    assert report["defaults"] == []
    _, report = accept(make(tmp_path, with_tasks(), architectures=[SEQUENCE]))
    assert report["defaults"] == [
        "labels = ('LABEL_0', 'LABEL_1')",
        "problem_type = 'single_label_classification'",
    ]
    assert not [line for line in report["ignored"] if "label" in line]


LABELS = {"id2label": {"0": "a", "1": "b", "2": "c"}}


@pytest.mark.parametrize(
    "kind, changes, words",
    [
        (SEQUENCE, LABELS, ["classifier.weight", "(2, 32)", "(3, 32) (3 labels)"]),
        (
            TOKEN,
            {"num_labels": 1},
            ["classifier.weight", "asks for (1, 32) (1 labels)"],
        ),
        (SEQUENCE, LABELS | {"num_labels": 2}, ["num_labels = 2", "3 labels", "'a'"]),
        (SEQUENCE, {"problem_type": "ranking"}, ["problem_type = 'ranking'"]),
    ],
)
def test_labels_that_do_not_fit_the_weights_are_refused(tmp_path, kind, changes, words):
    refuse(make(tmp_path, with_tasks(), architectures=[kind], **changes), *words)


@pytest.mark.parametrize("name", ["sequence", "token", "question"])
def test_the_checkpoints_of_tasks_are_written_as_they_were(tmp_path, name):
    model, report = accept(TASKS / name)
    assert report["unused"] == report["defaults"][1:] == []
    kind = json.loads((TASKS / name / "config.json").read_text())["architectures"]
    assert model.config.labels[1] == f"{name}_1"
    save_pretrained(tmp_path, *model)
    old, new = (
        load_file(folder / "model.safetensors") for folder in (TASKS / name, tmp_path)
    )
    assert sorted(new) == sorted(old)
    for key, tensor in new.items():
        assert tensor.tobytes() == old[key].tobytes(), key
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == kind
    assert load_checkpoint(tmp_path).config == model.config


def tuned(*heads, labels=("a", "b", "c"), **changes):
    """(params, config) with random heads for tasks."""
    config = replace(SMALL, labels=labels, **changes)
    return bert_np.init_params(config, np.random.default_rng(0), heads), config


@pytest.mark.parametrize(
    "heads, labels, changes, classes",
    [
        (["sequence"], tuple("abc"), {}, [SEQUENCE]),
        (["sequence"], ("score",), {"problem_type": "regression"}, [SEQUENCE]),
        (["mlm", "token"], tuple("abc"), {}, [TOKEN]),
        (["span"], ("a", "b"), {}, [SPAN]),
        (["mlm", "nsp", "sequence", "span"], tuple("abc"), {}, [SEQUENCE, SPAN]),
        (["sequence"], ("a", "b"), {"classifier_pooling": "mean"}, ["BertModel"]),
        (["mlm"], tuple("abc"), {}, ["BertForMaskedLM"]),
    ],
)
def test_heads_of_tasks_are_saved_and_loaded(tmp_path, heads, labels, changes, classes):
    params, config = tuned(*heads, labels=labels, **changes)
    save_pretrained(tmp_path, params, config)
    model, report = accept(tmp_path, dict(leaves(params)))
    assert model.config == config and report["unused"] == []
    values = json.loads((tmp_path / "config.json").read_text())
    assert values["architectures"] == classes


def test_two_heads_of_one_name_are_not_saved(tmp_path):
    with pytest.raises(BertError, match="'sequence' and 'token'.*named 'classifier'"):
        save_pretrained(tmp_path / "new", *tuned("sequence", "token"))
    assert os.listdir(tmp_path) == []


def test_labels_of_no_head_are_left_out_beside_a_span_head(tmp_path):
    save_pretrained(tmp_path, *tuned("span"))
    assert load_checkpoint(tmp_path).config == SMALL


# ------------------------------------------------------- ties and copies
def test_copies_that_are_equal_are_tied(tmp_path):
    copies = {DECODER: TENSORS[WORD], "cls.predictions.decoder.bias": TENSORS[BIAS]}
    _, report = accept(make(tmp_path, TENSORS | copies), BASE)
    assert len(report["tied"]) == 2 and f"{DECODER} = embeddings.word" in report["tied"]
    _, report = accept(
        make(tmp_path, renamed(BIAS, "cls.predictions.decoder.bias")), BASE
    )
    assert report["renamed"] == ["cls.predictions.decoder.bias -> mlm.bias"]


OWN = {DECODER: TENSORS[WORD][::-1].copy()}
DECODER_BIAS = "cls.predictions.decoder.bias"


@pytest.mark.parametrize(
    "biases, used",
    [({}, BIAS), ({DECODER_BIAS: TENSORS[BIAS][::-1].copy()}, DECODER_BIAS)],
)
def test_a_decoder_that_is_not_tied_is_an_array_of_its_own(tmp_path, biases, used):
    tensors = TENSORS | OWN | biases
    folder = make(tmp_path / "a", tensors, tie_word_embeddings=False)
    model, report = accept(folder)
    mlm, config = model.params["mlm"], model.config
    np.testing.assert_array_equal(mlm["decoder"], OWN[DECODER])
    np.testing.assert_array_equal(mlm["bias"], tensors[used])
    assert report["tied"] == [] and report["unused"] == ([BIAS] if biases else [])
    hidden = bert_np.bert([[1, 2]], model.params, config)["last_hidden_state"]
    tied, usual, _ = load_checkpoint(TINY)
    same = bert_np.bert([[1, 2]], tied, usual)["last_hidden_state"]
    np.testing.assert_array_equal(hidden, same)
    logits = bert_np.masked_lm_logits(hidden, model.params, config)
    other = bert_np.masked_lm_logits(hidden, tied, usual)
    norm = other - tied["mlm"]["bias"]
    np.testing.assert_allclose(logits - mlm["bias"], norm[..., ::-1], atol=1e-5)
    save_pretrained(tmp_path / "b", *model)
    found = load_file(tmp_path / "b" / "model.safetensors")
    wanted = tensors | {BIAS: tensors[used], DECODER_BIAS: tensors[used]}
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        np.testing.assert_array_equal(tensor, wanted[name], err_msg=name)
    assert_same(load_checkpoint(tmp_path / "b").params, dict(leaves(model.params)))


def test_without_a_head_a_decoder_may_be_untied_and_with_one_it_must_be_there(tmp_path):
    config = accept(make(tmp_path, without("cls."), tie_word_embeddings=False))[
        0
    ].config
    assert not config.tie_word_embeddings
    refuse(make(tmp_path, tie_word_embeddings=False), f"missing tensors {DECODER}")
    refuse(make(tmp_path, tie_word_embeddings="no"), "tie_word_embeddings = 'no'")


def test_copies_with_nan_are_equal(tmp_path):
    word = TENSORS[WORD].copy()
    word[3, 3] = np.nan
    folder = make(tmp_path, TENSORS | {WORD: word, DECODER: word})
    params = accept(folder, allow_nonfinite=True)[0].params
    assert np.isnan(params["embeddings"]["word"]).sum() == 1


@pytest.mark.parametrize("ids", [np.arange(24)[None], np.arange(24, dtype="i4")])
def test_position_ids_in_order_are_dropped(tmp_path, ids):
    tensors = {name: tensor.astype("f8") for name, tensor in TENSORS.items()}
    _, report = accept(make(tmp_path, tensors | {IDS: ids}), arrays_of(tensors))
    assert report["dropped"] == [IDS] and report["converted"] == []


# ------------------------------------------------------ shapes and dtypes
def set_one(name, value, dtype="f4"):
    array = TENSORS[name].astype(dtype)
    array.flat[-1] = value
    return {name: array}


def zeros(name, *shape):
    return {name: np.zeros(shape, "f4")}


CHANGED = [
    ("a row short", zeros(WORD, 63, 32), WORD, "(63, 32)", "asks for (64, 32)"),
    ("one axis", zeros(QUERY, 32), QUERY, "(32,)", "asks for (32, 32)"),
    ("no axis", zeros(QUERY), QUERY, "()"),
    ("transposed", {INNER: TENSORS[INNER].T.copy()}, INNER, "looks transposed"),
    ("transposed table", {WORD: TENSORS[WORD].T.copy()}, WORD, "looks transposed"),
    ("copy that differs", {DECODER: TENSORS[WORD] + 1}, DECODER, "differs", "tied; if"),
    ("position ids from 2", {IDS: np.arange(2, 26)}, IDS, "0, 1, 2"),
    ("position ids of another length", {IDS: np.arange(23)}, IDS, "(23,)"),
    ("position ids as floats", {IDS: np.arange(24.0)}, IDS, "I64"),
    ("integers", {QUERY: TENSORS[QUERY].astype("i4")}, QUERY, "'I32'", "BF16"),
    ("float8", {QUERY: ("F8_E4M3", (32, 32), bytes(1024))}, QUERY, "'F8_E4M3'"),
    ("another number format", {QUERY: ("X" * 500, (32, 32), bytes(9))}, "'XXX", "F32"),
    ("NaN", set_one(WORD, np.nan), WORD, "NaN", "allow_nonfinite=True"),
    ("infinity", set_one(BIAS, -np.inf), BIAS, "infinity"),
    ("beyond float32", set_one(INNER, 1e300, "f8"), INNER, "infinity"),
    # A signalling NaN, at whose conversion NumPy warns.
    ("NaN in half", {QUERY: ("F16", (32, 32), b"\x01\x7d" * 1024)}, QUERY, "NaN"),
]


@pytest.mark.parametrize("tensors, words", cases(CHANGED))
def test_other_shapes_and_numbers_are_refused(tmp_path, tensors, words):
    refuse(make(tmp_path, TENSORS | tensors), *words)


SIZES = [("vocab_size", 10**15), ("hidden_size", 64), ("type_vocab_size", 1)]


@pytest.mark.parametrize("key, value", SIZES)
def test_sizes_of_the_config_must_be_those_of_the_file(tmp_path, key, value):
    refuse(make(tmp_path, **{key: value}), "config.json asks for", str(value))


def to_bfloat16(array):
    """Round towards zero: the upper half of each float32."""
    return "BF16", array.shape, (array.view("u4") >> 16).astype("<u2").tobytes()


def test_half_precision_becomes_float32(tmp_path):
    half = {name: tensor.astype("f2") for name, tensor in TENSORS.items()}
    wanted = {path: array.astype("f2").astype("f4") for path, array in BASE.items()}
    _, report = accept(make(tmp_path, half), wanted)
    assert len(report["converted"]) == 46
    assert f"{QUERY}: F16 -> float32" in report["converted"]
    half = {name: to_bfloat16(tensor) for name, tensor in TENSORS.items()}
    cut = {
        p: (np.ascontiguousarray(a).view("u4") & 0xFFFF0000) for p, a in BASE.items()
    }
    accept(
        make(tmp_path, half), {path: array.view("f4") for path, array in cut.items()}
    )


def test_float64_stays_and_a_mixture_becomes_float32(tmp_path):
    _, report = accept(make(tmp_path, WIDE), arrays_of(WIDE))
    assert report["converted"] == []
    mixed = make(tmp_path, WIDE | {WORD: WIDE[WORD].astype("f4")})
    wanted = {path: array.astype("f4") for path, array in arrays_of(WIDE).items()}
    assert len(accept(mixed, wanted)[1]["converted"]) == 45


# -------------------------------------------------------------- tokenizer
SETTINGS = {
    "do_lower_case": False,
    "strip_accents": True,
    "tokenize_chinese_chars": False,
    "tokenizer_class": "BertTokenizer",
}
OURS = Tokenizer.from_tokens(TOKENS, False, True, False)


def tokenizer_json(**changes):
    """A tokenizer.json; a change is part__key=value, or part=value."""
    rules = {"lowercase": False, "handle_chinese_chars": False, "strip_accents": True}
    values = {
        "normalizer": {"type": "BertNormalizer", "clean_text": True} | rules,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "truncation": {"max_length": 3},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: i for i, token in reversed(list(enumerate(TOKENS)))},
        },
    }
    for key, value in changes.items():
        part, _, key = key.partition("__")
        values[part] = values[part] | {key: value} if key else value
    return json.dumps(values)


def put(folder, vocab=None, settings=None, tokenizer=None):
    texts = {
        "vocab.txt": vocab,
        "tokenizer_config.json": settings and json.dumps(settings),
        "tokenizer.json": tokenizer,
    }
    return make(folder, files={name: text for name, text in texts.items() if text})


@pytest.mark.parametrize(
    "given, wanted",
    [
        ({"vocab": VOCAB}, Tokenizer.from_tokens(TOKENS)),
        ({"vocab": VOCAB, "settings": SETTINGS}, OURS),
        ({"tokenizer": tokenizer_json()}, OURS),
        (
            {"tokenizer": tokenizer_json(), "settings": {"do_lower_case": True}},
            replace(OURS, lowercase=True),
        ),
        ({"tokenizer": tokenizer_json(), "vocab": VOCAB}, OURS),
    ],
    ids=["vocabulary", "settings", "one file", "settings first", "two files"],
)
def test_tokenizer_files(tmp_path, given, wanted):
    model, report = accept(put(tmp_path, **given), BASE)
    assert model.tokenizer == wanted and report["unused"] == []


OTHERS = [
    {"model__type": "BPE"},
    {"model": None},
    {"normalizer__type": "Sequence"},
    {"pre_tokenizer": []},
]


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_tokenizers_of_another_kind_are_left_unused(tmp_path, changes):
    model, report = accept(put(tmp_path, tokenizer=tokenizer_json(**changes)))
    assert model.tokenizer is None and report["unused"] == ["tokenizer.json"]
    (reason,) = report["no tokenizer"]
    assert reason.startswith(f"tokenizer.json: {min(changes).split('__')[0]}.")


def ids(**changes):
    return {"tokenizer": tokenizer_json(model__vocab=changes)}


MANY = VOCAB + "".join(f"{i}\n" for i in range(55))
TOKENIZERS = [
    ("vocab.txt", {"vocab": "[PAD]"}, "vocab.txt", "lacks [UNK]"),
    ("too many lines", {"vocab": MANY}, "65 tokens", "vocab_size = 64"),
    ("a setting", {"vocab": VOCAB, "settings": {"do_lower_case": "no"}}, "'no'"),
    ("settings a list", {"vocab": VOCAB, "settings": [1]}, "tokenizer_config.json"),
    ("no JSON", {"tokenizer": "<html>"}, "tokenizer.json", "not valid JSON"),
    ("vocab null", {"tokenizer": tokenizer_json(model__vocab=None)}, "vocab must"),
    ("an id a str", ids(a="0"), "tokenizer.json: vocab must give"),
    ("a gap in the ids", ids(a=0, b=2), "tokenizer.json: vocab must give"),
]


@pytest.mark.parametrize("given, words", cases(TOKENIZERS))
def test_faulty_tokenizer_files_are_refused(tmp_path, given, words):
    refuse(put(tmp_path, **given), *words)


# ------------------------------------------------------ reports, arguments
def test_the_report_in_print(tmp_path):
    _, report = accept(make(tmp_path, with_gamma(without("pooler"))))
    lines = format_report(report).splitlines()
    assert lines[0] == "files (1): model.safetensors"
    assert lines[1].startswith("renamed (12): ") and lines[1].endswith(", ...")
    assert lines[2] == "absent (1): pooler"
    assert lines[3].startswith("no tokenizer (1): neither vocab.txt nor tokenizer.json")


def test_a_refused_checkpoint_leaves_no_report(tmp_path):
    report = {}
    refuse(make(tmp_path, num_hidden_layers=1), report=report)
    assert report == {}


@pytest.mark.parametrize(
    "folder, options, word",
    [
        (None, {}, "folder is NoneType"),
        (__file__, {}, "is a file"),
        ("a\0b", {}, "does not exist"),
        (TINY, {"allow_nonfinite": 1}, "allow_nonfinite = 1"),
        (TINY, {"report": []}, "report is list"),
    ],
)
def test_arguments_of_loading(folder, options, word):
    with pytest.raises(BertError, match=word):
        load_checkpoint(folder, **options)


# ----------------------------------------------------------------- saving
def params_of(seed=0, dtype=np.float32, lacking=()):
    rng = np.random.default_rng(seed)
    params = bert_np.init_params(SMALL, rng, True, dtype)
    return {part: tree for part, tree in params.items() if part not in lacking}


@pytest.mark.parametrize(
    "lacking, architecture",
    [
        ((), "BertForPreTraining"),
        (("nsp", "pooler"), "BertForMaskedLM"),
        (("mlm",), "BertForNextSentencePrediction"),
        (("mlm", "nsp"), "BertModel"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_saved_is_what_is_loaded(tmp_path, lacking, architecture, dtype):
    params, folder = params_of(0, dtype, lacking), tmp_path / "new" / "folder"
    config = replace(
        SMALL, hidden_act="gelu_new", layer_norm_eps=1e-7, pad_token_id=None
    )
    for _, array in leaves(params):
        array.flags.writeable = False
    save_pretrained(folder, params, config, OURS)
    model, _ = accept(folder, dict(leaves(params)))
    assert (model.config, model.tokenizer) == (config, OURS)
    names = {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert set(os.listdir(folder)) == names
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    values = json.loads((folder / "config.json").read_text())
    assert values["architectures"] == [architecture] and values["model_type"] == "bert"


def test_the_tiny_checkpoint_is_written_as_it_was(tmp_path):
    params, config, _ = load_checkpoint(TINY)
    save_pretrained(tmp_path, params, config)
    tensors = load_file(tmp_path / "model.safetensors")
    assert sorted(tensors) == sorted(TENSORS)
    for name, tensor in tensors.items():
        assert tensor.tobytes() == TENSORS[name].tobytes(), name
    with safetensors.safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}


LAYOUTS = {
    "F": lambda path, a: np.asfortranarray(a),
    "strided": lambda path, a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed": lambda path, a: a[::-1].copy()[::-1],
    "big-endian": lambda path, a: a.astype(a.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("change", LAYOUTS.values(), ids=LAYOUTS)
def test_any_memory_layout_saves_the_same_bytes(tmp_path, change):
    params, config, _ = load_checkpoint(TINY)
    for name, tree in (("C", params), ("other", map_leaves(change, params))):
        save_pretrained(tmp_path / name, tree, config)
    first, second = [path.read_bytes() for path in tmp_path.rglob("model.safetensors")]
    assert first == second and len(first) == len(RAW)


def with_token(token):
    return {"tokenizer": Tokenizer.from_tokens([*TOKENS[:5], token])}


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"config": replace(SMALL, hidden_size=9)}, "params.embeddings.word"),
        ({"tokenizer": "vocab.txt"}, "tokenizer is str"),
        ({"tokenizer": Tokenizer.from_tokens([*TOKENS, *"bcdefghijklmno"])}, "24"),
        (with_token("x\ny"), "'x\\ny' cannot be a line"),
        (with_token("x\r"), "'x\\r' cannot be a line"),
        (with_token("\ud800"), "'\\ud800' cannot be a line"),
        ({"folder": None}, "folder is NoneType"),
        ({"folder": "a\0b"}, "cannot create folder"),
        ({"folder": Path(__file__, "sub")}, "cannot create folder"),
    ],
)
def test_wrong_arguments_write_nothing(tmp_path, arguments, word):
    given = {"folder": tmp_path / "new", "params": params_of(), "config": SMALL}
    with pytest.raises(BertError) as caught:
        save_pretrained(**given | arguments)
    assert word in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_files_of_another_model_are_not_mixed_in(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(BertError, match=f"{name} of another model"):
        save_pretrained(tmp_path, params_of(), SMALL)
    assert os.listdir(tmp_path) == [name]


# ----------------------------------------------------- saving interrupted
def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def saved(tmp_path):
    """A folder with config, vocabulary and weights."""
    save_pretrained(tmp_path, params_of(), SMALL, OURS)
    return tmp_path


def save_another(folder):
    """Save a model that differs from the fixture's in all three."""
    tokenizer = Tokenizer.from_tokens([*TOKENS, "b"])
    save_pretrained(folder, params_of(1), replace(SMALL, layer_norm_eps=0.5), tokenizer)


def no_space(*arguments, **options):
    raise OSError(28, "No space left on device")


def no_space_in_safetensors(*arguments, **options):
    raise safetensors.SafetensorError("No space left")


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "place, fail",
    [
        ("safetensors.numpy.save_file", no_space_in_safetensors),
        ("safetensors.numpy.save_file", interrupt),
        ("pathlib.Path.write_bytes", no_space),
        ("shutil.copymode", no_space),
    ],
)
def test_a_failed_save_leaves_the_old_files(saved, monkeypatch, place, fail):
    before = snapshot(saved)
    monkeypatch.setattr(place, fail)
    with pytest.raises((BertError, KeyboardInterrupt), match="No space left|^$"):
        save_another(saved)
    assert snapshot(saved) == before


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_a_rename_that_fails_puts_the_old_files_back(saved, monkeypatch, fails_at):
    before, calls, rename = snapshot(saved), [], os.replace

    def fail_once(source, goal):
        calls.append(goal)
        (no_space if len(calls) == fails_at else rename)(source, goal)

    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(BertError, match="No space left"):
        save_another(saved)
    assert snapshot(saved) == before


def test_where_the_weights_alone_change_they_alone_are_renamed(saved, monkeypatch):
    calls, rename = [], os.replace

    def note(source, goal):
        calls.append(goal.name)
        rename(source, goal)

    monkeypatch.setattr(os, "replace", note)
    save_pretrained(saved, params_of(1), SMALL, OURS)
    assert calls == ["model.safetensors"]
    assert_same(load_checkpoint(saved).params, dict(leaves(params_of(1))))


def test_a_later_save_removes_what_a_killed_one_left(saved):
    old, young = (saved / f"{checkpoint.PARTIAL}{name}" for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
    os.utime(old, (0, 0))
    save_another(saved)
    assert young.exists() and not old.exists()


def test_only_what_is_old_and_named_so_is_removed(tmp_path):
    for name in ("a.partial", "b.partial", "old.txt"):
        (tmp_path / name).touch()
    for name in ("b.partial", "old.txt"):
        os.utime(tmp_path / name, (0, 0))
    checkpoint.remove_leftovers(tmp_path, "*.partial")
    assert sorted(os.listdir(tmp_path)) == ["a.partial", "old.txt"]
