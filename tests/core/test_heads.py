"""The two pre-training heads."""

from dataclasses import replace

import numpy as np
import pytest
from reference import CONFIG, random_params

from bert_np import BertError, functional, masked_lm_logits, next_sentence_logits

PARAMS = random_params()
X = np.random.default_rng(0).standard_normal((2, 5, 21))


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu"])
def test_mlm_is_dense_activation_norm_and_the_word_table(hidden_act):
    config = replace(CONFIG, hidden_act=hidden_act, layer_norm_eps=0.1)
    activation = getattr(functional, config.activation)
    mlm = PARAMS["mlm"]
    x = activation(X @ mlm["transform"]["W"] + mlm["transform"]["b"])
    x = functional.layer_norm(x, **mlm["norm"], eps=0.1)
    expected = x @ PARAMS["embeddings"]["word"].T + mlm["bias"]
    logits = masked_lm_logits(X, PARAMS, config)
    np.testing.assert_allclose(logits, expected, atol=1e-13)


def test_nsp_is_one_linear_map():
    pooled, nsp = X[:, 0], PARAMS["nsp"]
    logits = next_sentence_logits(pooled, PARAMS)
    np.testing.assert_allclose(logits, pooled @ nsp["W"] + nsp["b"], atol=1e-14)


def without(part):
    return {name: value for name, value in PARAMS.items() if name != part}


def test_a_model_without_the_head_says_so():
    with pytest.raises(BertError, match="^params has no 'mlm'.*masked-word"):
        masked_lm_logits(X, without("mlm"), CONFIG)
    with pytest.raises(BertError, match="^params has no 'nsp'.*next-sentence"):
        next_sentence_logits(X[:, 0], without("nsp"))


def test_nsp_without_a_pooler_says_so():
    with pytest.raises(BertError, match="^pooler_output is None.*no pooler"):
        next_sentence_logits(None, PARAMS)
