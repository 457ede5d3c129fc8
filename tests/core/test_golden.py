"""Every element against what HuggingFace's BERT computed."""

import numpy as np
import pytest
from golden_values import TASKS, minilm_results, run, task, tiny

from bert_np.files.checkpoint import load_checkpoint


def assert_close(found, expected, atol, attention_atol):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype
        limit = attention_atol if name.startswith("attn") else atol
        np.testing.assert_allclose(found[name], array, rtol=0, atol=limit, err_msg=name)


@pytest.mark.parametrize(
    "prefix, dtype, atol, attention_atol",
    [("f64_", np.float64, 1e-12, 1e-12), ("f32_", np.float32, 1e-5, 5e-5)],
)
def test_the_tiny_checkpoint(prefix, dtype, atol, attention_atol):
    inputs, found, expected = tiny(prefix, dtype)
    assert len(expected) == 8
    assert (inputs[0][inputs[1] == 1] == 0).any()  # a real token with the pad id
    assert_close(found, expected, atol, attention_atol)


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("name", TASKS)
def test_the_heads_of_tasks(name, dtype, atol):
    found, expected = task(name, dtype)
    assert len(expected) == 1 + (name == "question")
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def test_minilm(minilm):
    texts, inputs, found, expected = minilm_results(minilm.params, minilm.config)
    batch = minilm.tokenizer.encode_batch(texts)
    ours = batch.input_ids, batch.attention_mask, batch.segment_ids
    assert all(map(np.array_equal, ours, inputs))
    assert len(expected) == 14 and not inputs[1].all() and inputs[2].any()
    assert_close(found, expected, 1e-5, 5e-5)


SIZES = {
    "vocab_size": 23,
    "num_hidden_layers": 3,
    "intermediate_size": 11,
    "max_position_embeddings": 17,
    "attn_implementation": "eager",
}


def random_model_of_transformers(sizes):
    import torch
    import transformers

    config = transformers.BertConfig(**SIZES, **sizes)
    model = transformers.BertForPreTraining(config).eval().double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.1, 0.3, generator)
    return model


def results_of_transformers(model, *inputs):
    """The results of a transformers model under the names that run gives ours."""
    import torch

    with torch.no_grad():
        tensors = [torch.tensor(array.astype(int)) for array in inputs]
        out = model(*tensors, output_hidden_states=True, output_attentions=True)
        pooled = model.bert.pooler(out.hidden_states[-1])
    found = {f"hidden_{i}": x for i, x in enumerate(out.hidden_states)}
    found |= {f"attn_{i}": x for i, x in enumerate(out.attentions)}
    found |= {"pooled": pooled, "mlm_logits": out.prediction_logits}
    found |= {"nsp_logits": out.seq_relationship_logits}
    return {name: x.numpy() for name, x in found.items()}


@pytest.mark.references
@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_size": 21, "num_attention_heads": 3, "hidden_act": "gelu"},
        {"hidden_size": 20, "num_attention_heads": 5, "hidden_act": "gelu_new"},
        {"hidden_size": 8, "num_attention_heads": 1, "hidden_act": "relu"},
        {"hidden_size": 8, "num_attention_heads": 2, "layer_norm_eps": 1e-3},
        {"hidden_size": 8, "num_attention_heads": 2, "type_vocab_size": 4},
    ],
)
def test_random_models_equal_transformers(tmp_path, sizes):
    model = random_model_of_transformers(sizes)
    model.save_pretrained(tmp_path)
    params, config, _ = load_checkpoint(tmp_path)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 23, (4, 9))
    segment_ids = rng.integers(0, config.type_vocab_size, ids.shape)
    mask = np.arange(9) < [[9], [6], [2], [1]]
    expected = results_of_transformers(model, ids, mask, segment_ids)
    assert_close(run(ids, mask, segment_ids, params, config), expected, 1e-12, 1e-12)
