"""BertConfig, and every row of "config.json" that it decides."""

import json
import time
from dataclasses import FrozenInstanceError, asdict

import pytest

from bert_np import BertConfig, BertError
from bert_np.config import parse_json, read_json

BERT = {"model_type": "bert"}


def test_the_defaults_are_bert_base():
    config = BertConfig()
    assert config == BertConfig.base() == BertConfig.from_dict(BERT)
    assert asdict(config) == {
        "vocab_size": 30522,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    assert config.head_size == 64


def test_large_has_the_sizes_of_the_paper():
    config = BertConfig.large()
    assert config.num_hidden_layers == 24
    assert config.hidden_size == 1024
    assert config.num_attention_heads == 16
    assert config.intermediate_size == 4096
    assert config.head_size == 64


def test_a_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        BertConfig().hidden_size = 1


@pytest.mark.parametrize(
    "hidden_act, function",
    [
        ("gelu", "gelu"),
        ("gelu_python", "gelu"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("gelu_fast", "gelu_tanh"),
        ("relu", "relu"),
    ],
)
def test_each_activation_name_means_one_function(hidden_act, function):
    assert BertConfig(hidden_act=hidden_act).activation == function


@pytest.mark.parametrize(
    "values",
    [
        BERT,
        {"architectures": ["BertForMaskedLM"]},
        {"architectures": ["BertModel", "Other"]},
        BERT | {"position_embedding_type": "absolute"},
        BERT | {"is_decoder": False, "add_cross_attention": False},
        BERT | {"pruned_heads": {}, "quantization_config": None},
        BERT | {"embedding_size": 768},
        BERT | {"transformers_version": "5.24.0", "use_cache": True, "id2label": {}},
        BERT | {"layer_norm_eps": 1e-5, "hidden_dropout_prob": 0},
        BERT | {"hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1.0},
        BERT | {"pad_token_id": None},
        BERT | {"pad_token_id": 30521},
    ],
)
def test_accepted(values):
    config = BertConfig.from_dict(values)
    for name, value in asdict(config).items():
        assert value == values.get(name, getattr(BertConfig(), name))


SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
NAN, INFINITY, HUGE = float("nan"), float("inf"), 10**400
REFUSED = [
    ({"model_type": "roberta"}, "model_type = 'roberta'.*padding_idx"),
    ({"model_type": "xlm-roberta"}, "model_type = 'xlm-roberta'.*padding_idx"),
    ({"model_type": "camembert"}, "model_type = 'camembert'.*padding_idx"),
    ({"model_type": "data2vec-text"}, "model_type = 'data2vec-text'.*padding_idx"),
    ({"model_type": "ernie"}, "model_type = 'ernie', allowed: 'bert'"),
    ({"model_type": "layoutlm"}, "model_type = 'layoutlm', allowed: 'bert'"),
    ({"model_type": "BERT"}, "model_type = 'BERT'"),
    ({"model_type": ["bert"]}, r"model_type = \['bert'\]"),
    ({}, "no model_type, and architectures = None"),
    ({"architectures": []}, r"architectures = \[\]"),
    ({"architectures": "BertModel"}, "architectures = 'BertModel'"),
    ({"architectures": [7]}, r"architectures = \[7\]"),
    ({"architectures": ["RobertaModel", "BertModel"]}, "architectures = .'Roberta"),
    (BERT | {"hidden_act": "swish"}, "hidden_act = 'swish', allowed: one of gelu, "),
    (BERT | {"hidden_act": None}, "hidden_act = None"),
    (BERT | {"hidden_act": ["gelu"]}, r"hidden_act = \['gelu'\]"),
    *[
        (BERT | {"layer_norm_eps": eps}, r"layer_norm_eps = .*0 < eps < 1")
        for eps in (0, 1, 1.5, -1e-12, NAN, INFINITY, HUGE, "1e-12", None, True)
    ],
    (
        BERT | {"position_embedding_type": "relative_key"},
        "position_embedding_type = 'relative_key', allowed: 'absolute'",
    ),
    (BERT | {"position_embedding_type": 1}, "position_embedding_type = 1"),
    (BERT | {"is_decoder": True}, "is_decoder = True"),
    (BERT | {"add_cross_attention": True}, "add_cross_attention = True"),
    *[
        (BERT | {size: value}, f"^{size} = .*, allowed: an int >= 1")
        for size in SIZES
        for value in (0, -1, True, "50", 12.0, None, [12])
    ],
    (BERT | {"num_attention_heads": 5}, "num_attention_heads = 5 must divide.*768"),
    *[
        (BERT | {"pad_token_id": pad}, r"pad_token_id = .*None or an int in 0\.\.30521")
        for pad in (-1, 30522, 0.0, False, "0")
    ],
    *[
        (BERT | {name: rate}, f"^{name} = .*, allowed: 0 <= rate <= 1")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob")
        for rate in (-0.1, 1.1, NAN, HUGE, "0.1", None, True)
    ],
    *[
        (BERT | {"initializer_range": value}, "^initializer_range = ")
        for value in (-0.02, NAN, INFINITY, HUGE, "0.02", None)
    ],
    (BERT | {"pruned_heads": {"0": [1]}}, "pruned_heads = "),
    (BERT | {"quantization_config": {"bits": 8}}, "quantization_config = "),
    (BERT | {"embedding_size": 128}, "embedding_size = 128.*hidden_size"),
    ([BERT], "^config = .*, allowed: a JSON object"),
    (None, "^config = None"),
]


@pytest.mark.parametrize("values, message", REFUSED)
def test_refused(values, message):
    with pytest.raises(BertError, match=message):
        BertConfig.from_dict(values)


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(BertError) as caught:
        BertConfig(hidden_act="x" * 10_000)
    assert len(str(caught.value)) <= 300
    assert "gelu_pytorch_tanh" in str(caught.value)


def test_to_dict_and_back(tmp_path):
    config = BertConfig(vocab_size=23, hidden_act="relu", pad_token_id=None)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()), "utf-8")
    assert config.to_dict()["model_type"] == "bert"
    assert BertConfig.from_json(path) == config


NOT_JSON = {
    "duplicate key": (b'{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
    "duplicate within": (b'{"x": {"a": 1, "a": 1}}', "'a' stands twice"),
    "NaN": (b'{"layer_norm_eps": NaN}', "NaN is not a JSON value"),
    "infinity": (b'{"layer_norm_eps": -Infinity}', "-Infinity is not a JSON value"),
    "byte-order mark": (b"\xef\xbb\xbf{}", "byte-order mark"),
    "UTF-16": (b"\xff\xfe{\x00}\x00", "not UTF-8 at byte 0"),
    "Latin-1": (b'{"a": "\xe9"}', "not UTF-8 at byte 7"),
    "empty": (b"", "not valid JSON"),
    "truncated": (b'{"a": 1', "not valid JSON"),
    "nested too deep": (b"[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize("case", NOT_JSON)
def test_a_file_that_is_not_strict_json_is_refused(tmp_path, case):
    content, message = NOT_JSON[case]
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BertError, match=f"^config.json: .*{message}"):
        read_json(path)


def test_a_file_that_holds_no_object_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("[1, 2]")
    with pytest.raises(BertError, match=r"^config = \[1, 2\], allowed: a JSON object"):
        BertConfig.from_json(path)


def test_an_object_of_as_many_keys_as_a_vocabulary_is_read_quickly():
    text = json.dumps({f"token {i}": i for i in range(30_522)})
    start = time.process_time()
    assert len(parse_json(text, "tokenizer.json")) == 30_522
    assert time.process_time() - start < 2


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(BertError, match="^config.json: cannot be read"):
        read_json(tmp_path / "config.json")
    with pytest.raises(BertError, match="cannot be read"):
        read_json(tmp_path)
    with pytest.raises(BertError, match="cannot be read"):
        read_json("a\0b")
