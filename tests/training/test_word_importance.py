"""Which words decide: three measures, each computed in another way."""

from dataclasses import replace

import numpy as np
import pytest

from bert_np import BertError, bert, classify, init_params
from bert_np.config import BertConfig
from bert_np.model import embed, encoder, pool
from bert_np.plotting import plot_coloured_words
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.training.word_importance import REMARKS, word_importance

TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, "a", "b", "##c", "d", "."])
CONFIG = BertConfig(
    vocab_size=10,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=14,
    max_position_embeddings=12,
    initializer_range=0.5,
    labels=("no", "yes", "perhaps"),
    problem_type="single_label_classification",
)
RNG = np.random.default_rng(4)
PARAMS = init_params(CONFIG, RNG, heads=["sequence"], dtype=np.float64)
TEXT = "A bc d, bc."


def model(pooling):
    config = replace(CONFIG, classifier_pooling=pooling)
    parts = [p for p in PARAMS if p != "pooler" or pooling == "pooler"]
    return {part: PARAMS[part] for part in parts}, config, TOKENIZER


def probability(text, label, pooling):
    return dict(classify([text], *model(pooling))[0])[label]


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
@pytest.mark.parametrize("label", [None, "perhaps"])
def test_leave_one_out_is_the_fall_of_the_probability(pooling, label):
    found = word_importance(TEXT, *model(pooling), label=label)
    assert found.words == ["A", "bc", "d", ",", "bc", "."]
    best = classify([TEXT], *model(pooling))[0][0][0]
    assert found.label == (label or best)
    before = probability(TEXT, found.label, pooling)
    assert found.probability == pytest.approx(before, abs=1e-12)
    shorter = [
        "bc d, bc.",
        "A d, bc.",
        "A bc, bc.",
        "A bc d bc.",
        "A bc d, .",
        "A bc d, bc",
    ]
    falls = [before - probability(text, found.label, pooling) for text in shorter]
    np.testing.assert_allclose(found.values["leave one out"], falls, atol=1e-6)


def log_probability(tables, pooling, label):
    """log p of a label, from the word vectors of the tokens: (T, H)."""
    params, config, _ = model(pooling)
    inputs = TOKENIZER.encode(TEXT).inputs
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    table = params["embeddings"] | {"word": tables}
    places = np.arange(ids.shape[1])[None]
    x = embed(places, inputs["segment_ids"], table, config)
    hidden, _ = encoder(x, params["layers"], mask, config)
    vector = (
        pool(hidden, params["pooler"]) if pooling == "pooler" else hidden.mean(axis=1)
    )
    z = (vector @ params["sequence"]["W"] + params["sequence"]["b"])[0]
    return z[CONFIG.labels.index(label)] - np.log(np.exp(z).sum())


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
def test_gradient_times_input_is_a_slope_along_the_vector(pooling):
    found = word_importance(TEXT, *model(pooling))
    encoding = TOKENIZER.encode(TEXT)
    rows = PARAMS["embeddings"]["word"][encoding.input_ids]
    for word, value in enumerate(found.values["gradient x input"]):
        grown = np.array([i == word for i in encoding.word_ids])[:, None] * rows
        up, down = (
            log_probability(rows + step * grown, pooling, found.label)
            for step in (1e-5, -1e-5)
        )
        assert value == pytest.approx((up - down) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
def test_attention_is_what_a_word_gets_in_the_last_layer(pooling):
    params, config, _ = model(pooling)
    encoding = TOKENIZER.encode(TEXT)
    maps = bert(**encoding.inputs, params=params, config=config)["attention_probs"]
    rows = maps[1][0].mean(axis=0)
    row = rows[0] if pooling == "pooler" else rows.mean(axis=0)
    expected = [
        sum(p for p, i in zip(row, encoding.word_ids) if i == word) for word in range(6)
    ]
    found = word_importance(TEXT, *model(pooling)).values["attention"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_each_method_has_a_remark_and_a_row():
    found = word_importance(TEXT, *model("pooler"))
    assert found.values.keys() == REMARKS.keys()
    figure = plot_coloured_words(found.words, found.values, remarks=REMARKS)
    assert len(figure.axes[0].patches) == 3 * len(found.words)


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("", {}, "text = '' has no words"),
        (7, {}, "text must be a str|text is int"),
        ("a " * 20, {}, "text has 22 tokens, allowed: at most 12"),
        (TEXT, {"label": "maybe"}, "label = 'maybe', allowed: None or one of"),
    ],
)
def test_wrong_texts_and_labels(text, options, message):
    with pytest.raises(BertError, match=message):
        word_importance(text, *model("pooler"), **options)


def test_other_heads_are_refused():
    several = replace(CONFIG, problem_type="multi_label_classification")
    with pytest.raises(BertError, match="multi_label_classification, allowed: a label"):
        word_importance(TEXT, PARAMS, several, TOKENIZER)
