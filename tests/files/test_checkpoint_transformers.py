"""Saved folders in transformers, and transformers' folders here."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_np
from bert_np import BertConfig
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.tokenizer import Tokenizer

TINY = Path(__file__).parent / "golden" / "tiny"
IDS = np.array([[2, 9, 8, 7, 3, 5, 6, 3], [2, 11, 12, 3, 0, 0, 0, 0]])
SEGMENTS = np.array([[0, 0, 0, 0, 0, 1, 1, 1], [0] * 8])
MASK = np.array([[1] * 8, [1] * 4 + [0] * 4])
CONFIG = BertConfig(
    vocab_size=23,
    hidden_size=12,
    num_hidden_layers=11,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=9,
    hidden_act="gelu_new",
    layer_norm_eps=1e-5,
    initializer_range=0.3,
)
TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "The",
    "the",
    "##m",
    "é",
    "e",
]


@pytest.fixture
def transformers(monkeypatch):
    """The library, offline and quiet about what it loads."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    return library


def random_params(dtype=np.float32, without=()):
    """Parameters in which no two arrays are alike, biases included."""
    rng = np.random.default_rng(7)
    params = bert_np.init_params(CONFIG, rng, heads=True, dtype=dtype)
    for _, array in bert_np.parameters.leaves(params):
        array += (0.1 * rng.standard_normal(array.shape)).astype(dtype)
    return {part: tree for part, tree in params.items() if part not in without}


def ours(params, config):
    out = bert_np.bert(IDS, params, config, segment_ids=SEGMENTS, attention_mask=MASK)
    hidden, pooled = out["last_hidden_state"], out["pooler_output"]
    results = {"hidden": hidden, "pooled": pooled}
    if "mlm" in params:
        results["mlm"] = bert_np.masked_lm_logits(hidden, params, config)
    if "nsp" in params:
        results["nsp"] = bert_np.next_sentence_logits(pooled, params)
    return results


def theirs(model):
    import torch

    model.eval()
    with torch.no_grad():
        out = model(
            input_ids=torch.tensor(IDS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=torch.tensor(MASK),
            output_hidden_states=True,
        )
    names = {
        "last_hidden_state": "hidden",
        "pooler_output": "pooled",
        "prediction_logits": "mlm",
        "seq_relationship_logits": "nsp",
    }
    results = {names[k]: v.numpy() for k, v in out.items() if k in names}
    results.setdefault("hidden", out.hidden_states[-1].numpy())
    if "logits" in out:
        results["mlm" if out.logits.ndim == 3 else "nsp"] = out.logits.numpy()
    return results


def assert_agree(result, expected, atol):
    assert set(result) >= {"hidden"}
    for name in result:
        if name in expected:
            assert result[name].dtype == expected[name].dtype
            np.testing.assert_allclose(
                result[name], expected[name], rtol=0, atol=atol, err_msg=name
            )


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize(
    ("name", "without", "shared"),
    [
        ("BertForPreTraining", (), {"hidden", "mlm", "nsp"}),
        ("BertForMaskedLM", ("nsp", "pooler"), {"hidden", "mlm"}),
        ("BertForNextSentencePrediction", ("mlm",), {"hidden", "nsp"}),
        ("BertModel", ("mlm", "nsp"), {"hidden", "pooled"}),
    ],
)
def test_transformers_computes_the_same_from_a_saved_folder(
    transformers, tmp_path, name, without, shared, dtype, atol
):
    params = random_params(dtype, without)
    save_pretrained(tmp_path, params, CONFIG)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [name]
    model, info = getattr(transformers, name).from_pretrained(
        tmp_path, output_loading_info=True, attn_implementation="eager", dtype="auto"
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    result, expected = ours(params, CONFIG), theirs(model)
    assert shared == set(result) & set(expected)
    assert_agree(result, expected, atol)


@pytest.mark.parametrize(
    "kind",
    [
        "BertModel",
        "BertForPreTraining",
        "BertForMaskedLM",
        "BertForSequenceClassification",
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"max_shard_size": "20KB"}], ids=["one", "shards"]
)
def test_what_transformers_saves_is_loaded(transformers, tmp_path, kind, options):
    import torch

    torch.manual_seed(0)
    values = CONFIG.to_dict() | {"initializer_range": 0.3}
    config = transformers.BertConfig(**values, attn_implementation="eager")
    model = getattr(transformers, kind)(config)
    model.save_pretrained(tmp_path, **options)
    if options:
        assert (tmp_path / "model.safetensors.index.json").exists()
    params, loaded, _ = load_checkpoint(tmp_path)
    expected = theirs(model)
    if kind == "BertForSequenceClassification":
        del expected["nsp"]
    assert_agree(ours(params, loaded), expected, 1e-5)


def test_bfloat16_is_read_as_transformers_reads_it(transformers, tmp_path):
    import torch

    model = transformers.BertForPreTraining.from_pretrained(TINY, dtype=torch.bfloat16)
    model.save_pretrained(tmp_path)
    wide = transformers.BertForPreTraining.from_pretrained(
        tmp_path, dtype=torch.float32, attn_implementation="eager"
    )
    params, config, _ = load_checkpoint(tmp_path)
    assert params["pooler"]["W"].dtype == np.float32
    assert_agree(ours(params, config), theirs(wide), 1e-5)


@pytest.mark.parametrize("case", [True, False])
def test_transformers_reads_the_saved_tokenizer(transformers, tmp_path, case):
    tokenizer = Tokenizer.from_tokens(TOKENS, case, None, not case)
    save_pretrained(tmp_path / "ours", random_params(), CONFIG, tokenizer)
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    text = "The am é thé[MASK] 中a"
    assert other(text)["input_ids"] == list(tokenizer.encode(text).input_ids)
    assert other.model_max_length == CONFIG.max_position_embeddings
    other.save_pretrained(tmp_path / "theirs")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tmp_path / "ours" / name, tmp_path / "theirs")
    assert load_checkpoint(tmp_path / "theirs")[2] == tokenizer
