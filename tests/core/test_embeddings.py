"""Word, position and segment vectors: their sum, normalised."""

from dataclasses import replace

import numpy as np
import reference
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import embed

PARAMS = random_params()["embeddings"]


def test_the_output_is_the_norm_of_the_sum_of_three_rows():
    x = embed(INPUT_IDS, SEGMENT_IDS, PARAMS, CONFIG)
    total = PARAMS["word"][22] + PARAMS["position"][2] + PARAMS["segment"][1]
    expected = reference.layer_norm(total, **PARAMS["norm"], eps=1e-12)
    assert INPUT_IDS[0, 2] == 22 and SEGMENT_IDS[0, 2] == 1
    np.testing.assert_allclose(x[0, 2], expected, atol=1e-14)


def test_padding_is_embedded_like_any_other_id():
    trace = {}
    embed(INPUT_IDS, SEGMENT_IDS, PARAMS, CONFIG, trace=trace)
    assert np.array_equal(trace["word"][1, 4], PARAMS["word"][0])
    assert PARAMS["word"][0].any()


def test_epsilon_comes_from_the_config():
    config = replace(CONFIG, layer_norm_eps=0.5)
    x = embed(INPUT_IDS, SEGMENT_IDS, PARAMS, config)
    total = PARAMS["word"][4] + PARAMS["position"][0] + PARAMS["segment"][0]
    expected = reference.layer_norm(total, **PARAMS["norm"], eps=0.5)
    np.testing.assert_allclose(x[0, 0], expected, atol=1e-14)


def test_dropout_comes_after_the_norm():
    trace, rng = {}, np.random.default_rng(0)
    x = embed(INPUT_IDS, SEGMENT_IDS, PARAMS, CONFIG, trace=trace, rng=rng)
    mask = trace["dropout_mask"]
    assert np.array_equal(x, trace["norm"] * mask)
    assert np.array_equal(x, trace["output"])
    np.testing.assert_allclose(np.unique(mask), [0, 1 / 0.9], rtol=1e-6)
