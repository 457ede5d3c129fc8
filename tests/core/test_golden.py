"""Every element against what HuggingFace's BERT computed."""

import numpy as np
import pytest
from golden_values import minilm_results, run, tiny

from bert_np import bert, masked_lm_logits
from bert_np.files import hub, pretrained
from bert_np.files.checkpoint import load_checkpoint


def assert_close(found, expected, atol, attention_atol):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype
        limit = attention_atol if name.startswith("attn") else atol
        np.testing.assert_allclose(found[name], array, rtol=0, atol=limit, err_msg=name)


@pytest.mark.parametrize(
    "prefix, dtype, atol, attention_atol",
    [
        ("f64_", np.float64, 1e-12, 1e-12),
        ("f32_", np.float32, 1e-5, 5e-5),
    ],
)
def test_the_tiny_checkpoint(prefix, dtype, atol, attention_atol):
    inputs, found, expected = tiny(prefix, dtype)
    assert len(expected) == 8
    assert (inputs[0][inputs[1] == 1] == 0).any()  # a real token with the pad id
    assert_close(found, expected, atol, attention_atol)


def test_minilm(minilm):
    params, config, tokenizer = minilm
    texts, (ids, mask, segment_ids), found, expected = minilm_results(params, config)
    batch = tokenizer.encode_batch(texts)
    assert np.array_equal(batch.input_ids, ids)
    assert np.array_equal(batch.attention_mask, mask)
    assert np.array_equal(batch.segment_ids, segment_ids)
    assert len(expected) == 14 and not mask.all() and segment_ids.any()
    assert_close(found, expected, 1e-5, 5e-5)


def test_published_values_of_bert_base_uncased(monkeypatch):
    name = "bert-base-uncased"
    not_cached = f"{name} is not in the hub cache"
    monkeypatch.setattr(hub, "_download", lambda _: pytest.skip(not_cached))
    params, config, _ = pretrained.load_pretrained(name)
    # transformers: tests/models/bert/test_modeling_bert.py
    ids = [[0, 345, 232, 328, 740, 140, 1695, 69, 6078, 1588, 2]]
    out = bert(ids, params, config, attention_mask=[[0] + 10 * [1]])
    np.testing.assert_allclose(
        out["last_hidden_state"][0, 1:4, 1:4],
        [
            [0.4249, 0.1008, 0.7531],
            [0.3771, 0.1188, 0.7467],
            [0.4152, 0.1098, 0.7108],
        ],
        rtol=0,
        atol=1e-4,
    )
    # Bumblebee: "the capital of france is [MASK] ."
    ids = [[101, 1996, 3007, 1997, 2605, 2003, 103, 1012, 102]]
    last = bert(ids, params, config)["last_hidden_state"]
    logits = masked_lm_logits(last, params, config)
    np.testing.assert_allclose(
        logits[0, 1:4, 1:4],
        [
            [-14.7240, -14.2120, -14.6434],
            [-10.3125, -9.7459, -9.9923],
            [-15.1105, -14.8048, -14.9276],
        ],
        rtol=0,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_act": "gelu", "hidden_size": 21, "num_attention_heads": 3},
        {"hidden_act": "gelu_new", "hidden_size": 20, "num_attention_heads": 5},
        {
            "hidden_act": "relu",
            "hidden_size": 8,
            "num_attention_heads": 1,
            "layer_norm_eps": 1e-3,
            "type_vocab_size": 4,
        },
    ],
)
def test_random_models_equal_transformers(tmp_path, sizes):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    theirs = (
        transformers.BertForPreTraining(
            transformers.BertConfig(
                vocab_size=23,
                num_hidden_layers=3,
                intermediate_size=11,
                max_position_embeddings=17,
                attn_implementation="eager",
                **sizes,
            )
        )
        .eval()
        .double()
    )
    generator = torch.Generator().manual_seed(0)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, 0.1, 0.3, generator)
    theirs.save_pretrained(tmp_path)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 23, (4, 9))
    segment_ids = rng.integers(0, theirs.config.type_vocab_size, ids.shape)
    mask = np.arange(9) < [[9], [6], [2], [1]]
    with torch.no_grad():
        tensors = map(torch.tensor, (ids, mask.astype(int), segment_ids))
        out = theirs(*tensors, output_hidden_states=True, output_attentions=True)
    expected = {f"hidden_{i}": x.numpy() for i, x in enumerate(out.hidden_states)}
    expected |= {f"attn_{i}": x.numpy() for i, x in enumerate(out.attentions)}
    pooled = theirs.bert.pooler(out.hidden_states[-1]).detach().numpy()
    expected |= {
        "pooled": pooled,
        "mlm_logits": out.prediction_logits.numpy(),
        "nsp_logits": out.seq_relationship_logits.numpy(),
    }
    params, config, _ = load_checkpoint(tmp_path)
    assert_close(run(ids, mask, segment_ids, params, config), expected, 1e-12, 1e-12)
