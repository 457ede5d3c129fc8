"""The pooler."""

import numpy as np
import reference
from reference import random_params

from bert_np import pool

PARAMS = random_params()["pooler"]
X = np.random.default_rng(0).standard_normal((2, 5, 21))


def test_the_pooled_vector_is_tanh_of_a_linear_map_of_the_first_token():
    dense = [reference.linear(row[0], **PARAMS) for row in X]
    np.testing.assert_allclose(pool(X, PARAMS), np.tanh(dense), atol=1e-15)


def test_the_other_tokens_do_not_matter():
    changed = X.copy()
    changed[:, 1:] = np.nan
    assert np.array_equal(pool(changed, PARAMS), pool(X, PARAMS))
