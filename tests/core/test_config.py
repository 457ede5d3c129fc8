"""BertConfig, and every row of a config.json that it decides."""

import json
import time
from dataclasses import FrozenInstanceError, asdict

import pytest

from bert_np import BertConfig, BertError
from bert_np.config import SIZES, parse_json, read_json

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
