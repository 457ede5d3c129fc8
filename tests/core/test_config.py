"""BertConfig, and every row of a config.json that it decides."""

import json
import time
from dataclasses import FrozenInstanceError, asdict

import pytest

from bert_np import BertConfig, BertError
from bert_np.config import PROBLEMS, SIZES, parse_json, read_json

BERT = BertConfig().to_dict()


def without(name):
    return {k: v for k, v in BERT.items() if k != name}


def test_what_a_file_may_leave_out_takes_its_default():
    optional = BERT.keys() - {"model_type", *SIZES[:-1]}
    small = {k: v for k, v in BERT.items() if k not in optional} | {"vocab_size": 5}
    assert BertConfig.from_dict(small | {"eos_token_id": 3}) == BertConfig(5)


def test_the_defaults_are_bert_base():
    config = BertConfig()
    assert config == BertConfig.base() == BertConfig.from_dict(BERT)
    sizes = [getattr(config, name) for name in SIZES]
    assert sizes == [30522, 768, 12, 12, 3072, 512, 2]
    assert (config.hidden_act, config.layer_norm_eps) == ("gelu", 1e-12)
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.1
    assert (config.initializer_range, config.pad_token_id) == (0.02, 0)
    assert config.head_size == BertConfig.large().head_size == 64


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        BertConfig().hidden_size = 1


@pytest.mark.parametrize(
    "values",
    [
        {k: v for k, v in BERT.items() if k != "model_type"}
        | {"architectures": ["BertForMaskedLM"]},
        BERT | {"position_embedding_type": "absolute", "is_decoder": False},
        BERT | {"_num_labels": 5, "directionality": "bidi", "pooler_type": "first"},
        BERT | {"pruned_heads": {}, "quantization_config": None, "embedding_size": 768},
        BERT | {"transformers_version": "5.24.0", "use_cache": True, "id2label": {}},
        BERT | {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 1.0},
        BERT | {"pad_token_id": None},
        BERT | {"pad_token_id": 30521, "hidden_act": "gelu_pytorch_tanh"},
    ],
)
def test_accepted(values):
    config = BertConfig.from_dict(values)
    for name, value in asdict(config).items():
        assert value == values.get(name, getattr(BertConfig(), name))


NAN, INFINITY, HUGE = float("nan"), float("inf"), 10**400
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
IMPOSSIBLE = [  # (name of a field, values, what the message says)
    ("hidden_act", ("swish", None, ["gelu"]), "allowed: one of gelu, "),
    ("layer_norm_eps", (0, 1, 1.5, -1e-12, NAN, HUGE, "1e-12", None, True), "0 < eps"),
    ("initializer_range", (-0.02, NAN, INFINITY, HUGE, "0.02"), "a finite number >= 0"),
    ("num_attention_heads", (5,), "must divide.*768"),
    ("pooling", ("best", "", "mean+mean", None, 3), "one or more, joined by '.'"),
    ("labels", ((), "ab", None, {"a": 0}, 2), "a tuple of one or more str"),
    ("problem_type", ("binary", "", 1, ["regression"]), "None or one of single_label_"),
    ("classifier_pooling", ("cls", None, 1), "one of .'pooler', 'mean'"),
    ("pad_token_id", (-1, 30522, 0.0, False, "0"), r"None or an int in 0\.\.30521"),
    *[
        (size, (0, -1, True, "50", 12.0, None), "allowed: an int >= 1")
        for size in SIZES
    ],
    *[(rate, (-0.1, 1.1, NAN, HUGE, "0.1", True), "0 <= rate <= 1") for rate in RATES],
]


@pytest.mark.parametrize("name, values, allowed", IMPOSSIBLE)
def test_a_value_that_no_bert_can_have_is_refused(name, values, allowed):
    for value in values:
        with pytest.raises(BertError, match=f"^{name} = .*{allowed}") as caught:
            BertConfig(**{name: value})
        assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    "values, message",
    [
        ({"model_type": "roberta"}, "model_type = 'roberta'.*padding_idx"),
        ({"model_type": "ernie"}, "model_type = 'ernie', allowed: 'bert'"),
        ({"model_type": ["bert"]}, r"model_type = \['bert'\]"),
        ({}, "no model_type, and architectures = None"),
        ({"architectures": [7]}, r"architectures = \[7\]"),
        ({"architectures": ["RobertaModel", "BertModel"]}, "architectures = .'Roberta"),
        (BERT | {"position_embedding_type": "relative_key"}, "allowed: 'absolute'"),
        (BERT | {"is_decoder": True}, "is_decoder = True"),
        (BERT | {"is_encoder_decoder": True}, "is_encoder_decoder = True"),
        (
            BERT | {"architectures": ["RobertaForMaskedLM"]},
            "model_type = 'bert', but architectures = .'RobertaForMaskedLM'.; correct",
        ),
        (BERT | {"is_decoders": True}, "key 'is_decoders'; did you mean 'is_decoder'"),
        (
            BERT | {"position_embeddings_type": "relative_key"},
            "did you mean 'position_embedding_type'",
        ),
        (BERT | {"pruned_heads": {"0": [1]}}, "pruned_heads = "),
        (BERT | {"quantization_config": {"bits": 8}}, "quantization_config = "),
        (BERT | {"embedding_size": 128}, "embedding_size = 128.*hidden_size"),
        (BERT | {"hidden_act": "x" * 10_000}, r"'xxx.*\.\.\., allowed: one of gelu"),
        ([BERT], "^config = .*, allowed: a JSON object"),
        (without("num_attention_heads"), "^config lacks num_attention_heads: "),
        (
            without("hidden_act") | {"hidden_actt": "relu"},
            "the key 'hidden_actt'; did you mean 'hidden_act'",
        ),
    ],
)
def test_another_architecture_is_refused(values, message):
    with pytest.raises(BertError, match=message):
        BertConfig.from_dict(values)


def test_to_dict_and_back(tmp_path):
    config = BertConfig(vocab_size=23, hidden_act="relu", pad_token_id=None)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()), "utf-8")
    assert config.to_dict()["model_type"] == "bert"
    assert BertConfig.from_json(path) == config


SENTIMENT = {"id2label": {"0": "bad", "1": "good"}, "label2id": {"bad": 0, "good": 1}}
TEN = {str(i): f"label {i}" for i in (3, 1, 0, 2, 10, 4, 5, 6, 7, 8, 9)}


@pytest.mark.parametrize(
    "values, labels",
    [
        ({}, ("LABEL_0", "LABEL_1")),
        ({"id2label": None, "label2id": {}}, ("LABEL_0", "LABEL_1")),
        ({"num_labels": 3}, ("LABEL_0", "LABEL_1", "LABEL_2")),
        (SENTIMENT, ("bad", "good")),
        (SENTIMENT | {"num_labels": 2}, ("bad", "good")),
        ({"label2id": {"good": 1, "bad": 0}}, ("bad", "good")),
        ({"id2label": {0: "bad", 1: "good"}}, ("bad", "good")),
        ({"id2label": TEN}, tuple(f"label {i}" for i in range(11))),
        (
            {"id2label": {"0": "same", "1": "same"}, "label2id": {"same": 1}},
            ("same", "same"),
        ),
    ],
)
def test_labels_are_read_in_the_order_of_their_ids(values, labels):
    config = BertConfig.from_dict(BERT | values)
    assert config.labels == labels
    assert BertConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "values, message",
    [
        (SENTIMENT | {"num_labels": 3}, "num_labels = 3, but id2label has 2 labels"),
        (
            SENTIMENT | {"label2id": {"bad": 1, "good": 0}},
            "label2id gives 'bad' the id 1, but id2label is {0: 'bad', 1: 'good'}",
        ),
        (SENTIMENT | {"label2id": {"bad": 0}}, "label2id gives 'good' the id None"),
        (
            SENTIMENT | {"label2id": {"bad": 0, "good": 1, "fine": 2}},
            "label2id gives 'fine' the id 2",
        ),
        (
            {"id2label": {"0": "bad", "2": "good"}},
            r"id2label has the ids = \['0', '2'\], all.* 0..1",
        ),
        (
            {"id2label": ["bad", "good"]},
            r"id2label = \['bad', 'good'\], allowed: a JSON",
        ),
        (
            {"id2label": {"0": "bad", "1": 1}},
            "id2label has the label = 1, allowed: a s",
        ),
        ({"label2id": {"bad": 0, "good": [1]}}, r"label2id has the ids = .*\[1\]"),
        ({"num_labels": 0}, "num_labels = 0, allowed: an int in 1.."),
        ({"num_labels": 10**9}, "num_labels = 1000000000, allowed: an int in 1.."),
        ({"num_labels": True}, "num_labels = True"),
    ],
)
def test_labels_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(BertError, match=f"^config {message}"):
        BertConfig.from_dict(BERT | values)


def test_a_single_label_cannot_be_chosen_among_others():
    single, several, number = PROBLEMS
    assert BertConfig().problem == single
    assert BertConfig(labels=["score"]).problem == number
    assert BertConfig(problem_type=several).problem == several
    with pytest.raises(BertError, match="with one label, 'only'; allowed: two or"):
        BertConfig(labels=("only",), problem_type=single)
    with pytest.raises(BertError, match=r"^labels\[1\] = 3, allowed: a str"):
        BertConfig(labels=("a", 3))


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"a": 1, "b": 2, "a": 3}', "'a' appears twice"),
        (b'{"layer_norm_eps": NaN}', "NaN is not a JSON value"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 at byte 0"),
        (b'{"a": "\xe9"}', "not UTF-8 at byte 7"),
        (b"", "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        pytest.param(b"[" * 100_000, "not valid JSON", id="nested too deep"),
    ],
)
def test_a_file_that_is_not_strict_json_is_refused(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BertError, match=f"^config.json: .*{message}"):
        read_json(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "config.json", tmp_path, "a\0b"):
        with pytest.raises(BertError, match="cannot be read"):
            read_json(path)
    with pytest.raises(BertError, match="^path is int, allowed: a str or a Path"):
        read_json(7)


def test_an_object_of_as_many_keys_as_a_vocabulary_is_read_quickly():
    text = json.dumps({f"token {i}": i for i in range(30_522)})
    start = time.process_time()
    assert len(parse_json(text, "tokenizer.json")) == 30_522
    assert time.process_time() - start < 2
