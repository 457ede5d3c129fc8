"""The two pre-training heads."""

from dataclasses import replace

import numpy as np
import pytest
from oracle import CONFIG, random_params

from bert_np import BertError, functional, masked_lm_logits, next_sentence_logits

PARAMS = random_params()
X = np.random.default_rng(0).standard_normal((2, 5, 21))
NO_MLM, NO_NSP = (
    {k: PARAMS[k] for k in PARAMS if k != name} for name in ("mlm", "nsp")
)


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu"])
def test_mlm_is_dense_activation_norm_and_the_word_table(hidden_act):
    config = replace(CONFIG, hidden_act=hidden_act, layer_norm_eps=0.1)
    mlm, activation = PARAMS["mlm"], functional.ACTIVATIONS[hidden_act]
    x = activation(X @ mlm["transform"]["W"] + mlm["transform"]["b"])
    x = functional.layer_norm(x, **mlm["norm"], eps=0.1)
    expected = x @ PARAMS["embeddings"]["word"].T + mlm["bias"]
    logits = masked_lm_logits(X, PARAMS, config)
    np.testing.assert_allclose(logits, expected, atol=1e-13)


def test_nsp_is_one_linear_map():
    logits, nsp = next_sentence_logits(X[:, 0], PARAMS), PARAMS["nsp"]
    np.testing.assert_allclose(logits, X[:, 0] @ nsp["W"] + nsp["b"], atol=1e-14)


@pytest.mark.parametrize(
    "head, arguments, message",
    [
        (masked_lm_logits, (X, NO_MLM, CONFIG), "^params has no 'mlm'.*masked-word"),
        (masked_lm_logits, (X, [], CONFIG), "^params is list"),
        (masked_lm_logits, (X, PARAMS, {}), "^config is dict"),
        (masked_lm_logits, (X.tolist(), PARAMS, CONFIG), "^last_hidden_state is list"),
        (masked_lm_logits, (X > 0, PARAMS, CONFIG), "^last_hidden_state is bool"),
        (masked_lm_logits, (X[..., 1:], PARAMS, CONFIG), r"\(2, 5, 20\), .*\.\., 21\)"),
        (
            next_sentence_logits,
            (X[:, 0], NO_NSP),
            "^params has no 'nsp'.*next-sentence",
        ),
        (next_sentence_logits, (None, PARAMS), "^pooler_output is None.*no pooler"),
    ],
)
def test_a_head_refuses_what_it_cannot_use(head, arguments, message):
    with pytest.raises(BertError, match=message):
        head(*arguments)
