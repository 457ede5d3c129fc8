"""Gradients against central differences, and against torch's autograd."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import BertError, bert, functional
from bert_np.attention import scaled_dot_product, self_attention
from bert_np.files.checkpoint import load_checkpoint
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import (
    add_and_norm,
    embed,
    encoder,
    encoder_layer,
    feed_forward,
    pool,
)
from bert_np.training import backward, functional_backward
from bert_np.training.losses import (
    IGNORED,
    count_right,
    masked_cross_entropy,
    next_sentence_cross_entropy,
)
from bert_np.training.pretraining import (
    gradients,
    losses_and_gradients,
    pretraining_logits,
)
from bert_np.tree import leaves, map_leaves

GOLDEN = Path(__file__).parents[1] / "golden"
PARAMS = random_params()
LAYER = PARAMS["layers"][0]
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
BATCH = {
    "input_ids": INPUT_IDS,
    "segment_ids": SEGMENT_IDS,
    "attention_mask": MASK,
    "mlm_labels": np.array([[-100, 9, 22, -100, 0], [3, 2, 5, -100, -100]]),
    "nsp_labels": np.array([1, 0]),
}
for _array in BATCH.values():
    _array.flags.writeable = False
ACTIVATIONS = ("gelu", "gelu_new", "relu")
DROPOUT = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
STEP = 1e-5  # of the central differences


def draw(*shape, seed=3):
    """Read-only normal numbers."""
    array = np.random.default_rng(seed).normal(size=shape)
    array.flags.writeable = False
    return array


def generator():
    """The same draws each time: the same dropout masks."""
    return np.random.default_rng(5)


def slopes(function, x):
    """The derivative of a scalar function by each element of x."""
    found = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        values = []
        for step in (STEP, -STEP):
            moved = np.array(x)
            moved[index] += step
            values.append(function(moved))
        found[index] = (values[0] - values[1]) / (2 * STEP)
    return found


def assert_near(found, expected, rtol=1e-6):
    """Equal to within a share of the largest element, and 1e-9."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= rtol * np.abs(expected).max() + 1e-9


def with_leaf(tree, path, array):
    """The tree with another array at a path."""
    return map_leaves(lambda name, leaf: array if name == path else leaf, tree)


def assert_tree(grads, loss, params, seed=0):
    """Each gradient leaf against differences: in 3 directions that move
    all its elements, and in 4 elements alone."""
    rng = np.random.default_rng(seed)
    grads, params_leaves = dict(leaves(grads)), dict(leaves(params))
    assert grads.keys() == params_leaves.keys()
    for path, leaf in params_leaves.items():
        assert grads[path].shape == leaf.shape
        directions = [rng.normal(size=leaf.shape) for _ in range(3)]
        for place in rng.choice(leaf.size, min(4, leaf.size), replace=False):
            directions.append(np.eye(1, leaf.size, place).reshape(leaf.shape))
        found = np.array([(grads[path] * d).sum() for d in directions])
        expected = np.array(
            [
                (
                    loss(with_leaf(params, path, leaf + STEP * d))
                    - loss(with_leaf(params, path, leaf - STEP * d))
                )
                / (2 * STEP)
                for d in directions
            ]
        )
        assert np.abs(found - expected).max() <= (
            1e-6 * np.abs(expected).max() + 2e-9
        ), path


# ------------------------------------------------------------ bare arrays


def test_linear():
    x, W, b, d_y = draw(2, 5, 7), draw(7, 3), draw(3), draw(2, 5, 3, seed=4)
    d_x, grads = functional_backward.linear_backward(d_y, x, W)

    def loss(x, W, b):
        return (functional.linear(x, W, b) * d_y).sum()

    assert_near(d_x, slopes(lambda x: loss(x, W, b), x))
    assert_near(grads["W"], slopes(lambda W: loss(x, W, b), W))
    assert_near(grads["b"], slopes(lambda b: loss(x, W, b), b))


@pytest.mark.parametrize("eps", [1e-12, 0.3])
def test_layer_norm(eps):
    x, gamma, beta = draw(2, 5, 7), draw(7, seed=1), draw(7, seed=2)
    d_y = draw(2, 5, 7, seed=4)
    d_x, grads = functional_backward.layer_norm_backward(d_y, x, gamma, eps)

    def loss(x, gamma, beta):
        return (functional.layer_norm(x, gamma, beta, eps) * d_y).sum()

    assert_near(d_x, slopes(lambda x: loss(x, gamma, beta), x))
    assert_near(grads["gamma"], slopes(lambda gamma: loss(x, gamma, beta), gamma))
    assert_near(grads["beta"], slopes(lambda beta: loss(x, gamma, beta), beta))


def test_softmax():
    x, d_y = draw(2, 3, 5), draw(2, 3, 5, seed=4)
    found = functional_backward.softmax_backward(d_y, functional.softmax(x))
    assert_near(found, slopes(lambda x: (functional.softmax(x) * d_y).sum(), x))


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu"])
def test_activations(name):
    function = getattr(functional, name)
    x = np.concatenate([draw(60), [-30.0, -6.0, 6.0, 30.0, 1e-7, -1e-7]])
    x = x if name != "relu" else x[np.abs(x) > STEP]
    d_y = draw(x.size, seed=4)
    found = getattr(functional_backward, f"{name}_backward")(d_y, x)
    assert_near(found, slopes(lambda x: (function(x) * d_y).sum(), x))


@pytest.mark.parametrize(
    "name, slope", [("gelu", 0.5), ("gelu_tanh", 0.5), ("relu", 0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_at_zero(name, slope, dtype):
    x = np.array([0.0, -0.0], dtype)
    function = getattr(functional_backward, f"{name}_backward")
    found = function(np.ones(2, dtype), x)
    assert found.tolist() == [slope, slope] and found.dtype == dtype


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu"])
def test_activations_in_float32_are_near_those_in_float64(name):
    x = np.linspace(-12, 12, 100_001)
    function, forward = (
        getattr(functional_backward, f"{name}_backward"),
        getattr(functional, name),
    )
    ones, x32 = np.ones(x.shape), x.astype(np.float32)
    exact = function(ones, x32.astype(float))
    found = function(ones.astype(np.float32), x32)
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() < 5e-6


def test_dropout():
    x, d_y = draw(4, 5), draw(4, 5, seed=4)
    trace = {}
    functional.dropout(x, 0.4, generator(), trace)
    found = functional_backward.dropout_backward(d_y, trace["dropout_mask"])

    def loss(x):
        return (functional.dropout(x, 0.4, generator()) * d_y).sum()

    assert_near(found, slopes(loss, x))
    assert (found == 0).any()
    assert functional_backward.dropout_backward(d_y, None) is d_y


def test_lookup():
    table, ids = draw(6, 3), np.array([[4, 0, 4], [5, 4, 0]])
    d_rows = draw(2, 3, 3, seed=4)
    found = functional_backward.lookup_backward(d_rows, ids, 6)
    assert_near(found, slopes(lambda table: (table[ids] * d_rows).sum(), table))
    assert (found[[1, 2, 3]] == 0).all()


# -------------------------------------------------------------- the parts
# Each part's loss is the sum of its output times a random array, which is
# then the gradient of its output.


def trained(config, **changes):
    """A config with dropout, and the generator that draws it, or neither."""
    return replace(config, **DROPOUT, **changes), generator


DROPPED = pytest.mark.parametrize(
    "config, rng", [(CONFIG, lambda: None), trained(CONFIG)], ids=["plain", "dropout"]
)


@DROPPED
def test_embeddings(config, rng):
    trace, d_output = {}, draw(2, 5, 21)
    embed(INPUT_IDS, SEGMENT_IDS, PARAMS["embeddings"], config, trace=trace, rng=rng())
    grads = backward.embed_backward(
        d_output, trace, INPUT_IDS, SEGMENT_IDS, PARAMS["embeddings"], config
    )

    def loss(params):
        found = embed(INPUT_IDS, SEGMENT_IDS, params, config, rng=rng())
        return (found * d_output).sum()

    assert_tree(grads, loss, PARAMS["embeddings"])
    assert (grads["position"][5:] == 0).all() and (grads["word"][3] == 0).all()


@DROPPED
def test_scaled_dot_product(config, rng):
    rate, d_context = config.attention_probs_dropout_prob, draw(2, 3, 5, 7)
    inputs = [draw(2, 3, 5, 7, seed=seed) for seed in (1, 2, 4)]
    visible = np.array(MASK)[:, None, None, :].astype(bool)
    visible = np.broadcast_to(visible, (2, 3, 5, 5)).copy()
    visible[0, 1, 2] = False  # a query that sees no key
    trace = dict(zip("qkv", inputs))

    def context(*qkv, trace=None):
        return scaled_dot_product(
            *qkv, visible, dropout_rate=rate, trace=trace, rng=rng()
        )[0]

    context(*inputs, trace=trace)
    found = backward.scaled_dot_product_backward(d_context, trace, visible)
    for place in range(3):

        def loss(x):
            moved = [x if i == place else other for i, other in enumerate(inputs)]
            return (context(*moved) * d_context).sum()

        assert_near(found[place], slopes(loss, inputs[place]))


@DROPPED
def test_self_attention(config, rng):
    x, d_output = draw(2, 5, 21), draw(2, 5, 21, seed=4)
    trace, params = {}, LAYER["attention"]
    self_attention(x, params, MASK, config, trace=trace, rng=rng())
    d_x, grads = backward.self_attention_backward(
        d_output, x, trace, params, MASK, config
    )

    def loss(x, params):
        return (self_attention(x, params, MASK, config, rng=rng())[0] * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, params), x))
    assert_tree(grads, lambda params: loss(x, params), params)
    # Softmax does not see what is added to all keys alike.
    assert np.abs(grads["key"]["b"]).max() < 1e-12


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_feed_forward(act):
    config = replace(CONFIG, hidden_act=act)
    x, d_output = draw(2, 5, 21), draw(2, 5, 21, seed=4)
    trace, params = {}, LAYER["ffn"]
    feed_forward(x, params, config, trace=trace)
    d_x, grads = backward.feed_forward_backward(d_output, x, trace, params, config)

    def loss(x, params):
        return (feed_forward(x, params, config) * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, params), x))
    assert_tree(grads, lambda params: loss(x, params), params)


@DROPPED
def test_add_and_norm(config, rng):
    x, update, params = draw(2, 5, 21), draw(2, 5, 21, seed=1), LAYER["ffn_norm"]
    trace, d_output = {}, draw(2, 5, 21, seed=4)
    add_and_norm(x, update, params, config, trace=trace, rng=rng())
    d_x, d_update, grads = backward.add_and_norm_backward(
        d_output, trace, params, config
    )

    def loss(x, update, params):
        return (add_and_norm(x, update, params, config, rng=rng()) * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, update, params), x))
    assert_near(d_update, slopes(lambda update: loss(x, update, params), update))
    assert_tree(grads, lambda params: loss(x, update, params), params)


@DROPPED
def test_encoder_layer(config, rng):
    x, trace, d_output = draw(2, 5, 21), {}, draw(2, 5, 21, seed=4)
    encoder_layer(x, LAYER, MASK, config, trace=trace, rng=rng())
    d_x, grads = backward.encoder_layer_backward(
        d_output, x, trace, LAYER, MASK, config
    )

    def loss(x, params):
        return (encoder_layer(x, params, MASK, config, rng=rng())[0] * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, LAYER), x))
    assert_tree(grads, lambda params: loss(x, params), LAYER)


@DROPPED
def test_encoder(config, rng):
    x, trace, d_output = draw(2, 5, 21), [], draw(2, 5, 21, seed=4)
    params = PARAMS["layers"]
    encoder(x, params, MASK, config, trace=trace, rng=rng())
    d_x, grads = backward.encoder_backward(d_output, x, trace, params, MASK, config)

    def loss(x, params):
        return (encoder(x, params, MASK, config, rng=rng())[0] * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, params), x))
    assert_tree(grads, lambda params: loss(x, params), params)


def test_pooler():
    x, d_output = draw(2, 5, 21), draw(2, 21, seed=4)
    trace, params = {}, PARAMS["pooler"]
    pool(x, params, trace=trace)
    d_x, grads = backward.pool_backward(d_output, x, trace, params)

    def loss(x, params):
        return (pool(x, params) * d_output).sum()

    assert_near(d_x, slopes(lambda x: loss(x, params), x))
    assert_tree(grads, lambda params: loss(x, params), params)


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_masked_lm_head(act):
    config = replace(CONFIG, hidden_act=act)
    x, trace, d_logits = draw(2, 5, 21), {}, draw(2, 5, 23, seed=4)
    masked_lm_logits(x, PARAMS, config, trace=trace)
    d_x, grads, d_word = backward.masked_lm_logits_backward(
        d_logits, x, trace["mlm"], PARAMS, config
    )

    def loss(x, params):
        return (masked_lm_logits(x, params, config) * d_logits).sum()

    assert_near(d_x, slopes(lambda x: loss(x, PARAMS), x))
    assert_tree(grads, lambda mlm: loss(x, {**PARAMS, "mlm": mlm}), PARAMS["mlm"])
    word = PARAMS["embeddings"]["word"]
    assert_near(
        d_word,
        slopes(lambda word: loss(x, with_leaf(PARAMS, "embeddings.word", word)), word),
    )


def test_next_sentence_head():
    x, d_logits, params = draw(2, 21), draw(2, 2, seed=4), PARAMS["nsp"]
    d_x, grads = backward.next_sentence_logits_backward(d_logits, x, params)

    def loss(x, params):
        return (next_sentence_logits(x, {"nsp": params}) * d_logits).sum()

    assert_near(d_x, slopes(lambda x: loss(x, params), x))
    assert_tree(grads, lambda params: loss(x, params), params)


# ------------------------------------------------------------- the losses


def test_masked_cross_entropy_by_hand():
    logits = np.log(np.array([[1.0, 2.0, 5.0], [9.0, 9.0, 9.0], [3.0, 1.0, 4.0]]))
    loss, d_logits = masked_cross_entropy(logits, np.array([2, IGNORED, 0]))
    assert loss == pytest.approx(-(np.log(5 / 8) + np.log(3 / 8)) / 2, rel=1e-14)
    expected = [[1 / 16, 2 / 16, -3 / 16], [0, 0, 0], [-5 / 16, 1 / 16, 4 / 16]]
    np.testing.assert_allclose(d_logits, expected, atol=1e-15)


def test_masked_cross_entropy_against_differences():
    logits, labels = 3 * draw(2, 5, 23), BATCH["mlm_labels"]
    _, d_logits = masked_cross_entropy(logits, labels)
    expected = slopes(lambda x: masked_cross_entropy(x, labels)[0], logits)
    assert_near(d_logits, expected)
    assert (d_logits[labels == IGNORED] == 0).all()


def test_next_sentence_cross_entropy_against_differences():
    logits, labels = draw(4, 2), np.array([1, 0, IGNORED, 0])
    loss, d_logits = next_sentence_cross_entropy(logits, labels)
    kept = np.log(
        1
        + np.exp(
            [
                logits[0, 0] - logits[0, 1],
                logits[1, 1] - logits[1, 0],
                logits[3, 1] - logits[3, 0],
            ]
        )
    ).mean()
    assert loss == pytest.approx(kept, rel=1e-12)
    assert_near(
        d_logits, slopes(lambda x: next_sentence_cross_entropy(x, labels)[0], logits)
    )


def test_huge_logits_give_a_finite_loss():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    loss, d_logits = masked_cross_entropy(logits, np.array([1, 1]))
    assert loss == 1e4
    assert d_logits.tolist() == [[0.5, -0.5], [0, 0]] and d_logits.dtype == np.float32


def test_nothing_labelled_gives_no_loss_and_no_gradient():
    logits = draw(2, 5, 23)
    loss, d_logits = masked_cross_entropy(logits, np.full((2, 5), IGNORED))
    assert loss == 0 and d_logits.shape == logits.shape and not d_logits.any()
    batch = BATCH | {
        "mlm_labels": np.full((2, 5), IGNORED),
        "nsp_labels": np.full(2, IGNORED),
    }
    metrics, grads = losses_and_gradients(PARAMS, CONFIG, batch)
    assert metrics["loss"] == 0 and np.isnan(metrics["mlm_accuracy"])
    assert not any(grad.any() for _, grad in leaves(grads))


def test_the_loss_of_a_part_is_divided_by_the_whole_count():
    logits, labels = draw(6, 23), np.array([3, IGNORED, 0, 22, IGNORED, 7])
    loss, d_logits = masked_cross_entropy(logits, labels)
    parts = [
        masked_cross_entropy(logits[a:b], labels[a:b], 4) for a, b in ((0, 2), (2, 6))
    ]
    assert loss == pytest.approx(parts[0][0] + parts[1][0], rel=1e-14)
    np.testing.assert_allclose(d_logits, np.concatenate([d for _, d in parts]), 1e-14)
    nsp, d_nsp = next_sentence_cross_entropy(draw(1, 2), np.array([1]), 5)
    whole, d_whole = next_sentence_cross_entropy(draw(1, 2), np.array([1]))
    assert nsp == pytest.approx(whole / 5, rel=1e-14)
    np.testing.assert_allclose(d_nsp, d_whole / 5, rtol=1e-14)


def test_count_right():
    logits = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 0.0], [0.0, 2.0, 1.0]])
    assert count_right(logits, np.array([1, 1, IGNORED])) == 1
    assert count_right(logits, np.array([1, 0, 1])) == 3
    assert count_right(logits, np.full(3, IGNORED)) == 0


@pytest.mark.parametrize(
    "labels, message",
    [
        (np.array([23, 0]), "label 23, allowed: 0..22, or -100"),
        (np.array([-1, 0]), "label -1, allowed: 0..22, or -100"),
        (np.array([0.0, 1.0]), "dtype float64"),
        (np.array([0, 1, 2]), r"shape \(3,\), allowed: \(2,\)"),
    ],
)
def test_wrong_labels(labels, message):
    with pytest.raises(BertError, match=message):
        masked_cross_entropy(draw(2, 23), labels)


# --------------------------------------------------------- the whole model


def whole_loss(params, config, rng):
    """The two losses, straight from the forward pass at every position."""
    out = bert(
        INPUT_IDS, params, config, segment_ids=SEGMENT_IDS, attention_mask=MASK, rng=rng
    )
    words = masked_lm_logits(out["last_hidden_state"], params, config)
    pairs = next_sentence_logits(out["pooler_output"], params)
    return (
        masked_cross_entropy(words, BATCH["mlm_labels"])[0]
        + next_sentence_cross_entropy(pairs, BATCH["nsp_labels"])[0]
    )


@pytest.mark.parametrize("act", ACTIVATIONS)
@DROPPED
def test_every_gradient_against_central_differences(config, rng, act):
    config = replace(config, hidden_act=act)
    metrics, grads = losses_and_gradients(PARAMS, config, BATCH, rng=rng())
    loss = whole_loss(PARAMS, config, rng())
    assert metrics["loss"] == pytest.approx(loss, rel=1e-12)
    assert metrics["loss"] == metrics["mlm_loss"] + metrics["nsp_loss"]
    assert_tree(grads, lambda params: whole_loss(params, config, rng()), PARAMS)


def test_the_epsilon_of_the_config_is_used():
    config = replace(CONFIG, layer_norm_eps=0.2)
    _, grads = losses_and_gradients(PARAMS, config, BATCH)
    assert_tree(grads, lambda params: whole_loss(params, config, None), PARAMS)


def larger_batch(size=7):
    rng = generator()
    batch = {
        "input_ids": rng.integers(0, 23, (size, 5)),
        "segment_ids": rng.integers(0, 2, (size, 5)),
        "attention_mask": np.arange(5) < rng.integers(2, 6, (size, 1)),
        "mlm_labels": rng.integers(0, 23, (size, 5)),
        "nsp_labels": np.array([0, 1, 1, IGNORED, 0, 1, 0])[:size],
    }
    batch["mlm_labels"][:, 1::2] = IGNORED
    batch["mlm_labels"][-2:] = IGNORED  # a part without any label
    return batch


@pytest.mark.parametrize("parts", [2, 4, 7])
def test_a_batch_cut_into_parts_gives_the_same(parts):
    batch = larger_batch()
    whole, grads = losses_and_gradients(PARAMS, CONFIG, batch)
    found, of_parts = losses_and_gradients(PARAMS, CONFIG, batch, parts=parts)
    assert found == pytest.approx(whole, rel=1e-13)
    of_parts = dict(leaves(of_parts))
    assert of_parts.keys() == dict(leaves(grads)).keys()
    for path, grad in leaves(grads):
        assert_near(of_parts[path], grad, rtol=1e-12)


def test_parts_in_threads_give_the_same_bits():
    config, rng = trained(CONFIG)
    runs = [losses_and_gradients(PARAMS, config, larger_batch(), rng=rng(), parts=3)]
    with ThreadPoolExecutor(3) as pool:
        runs += [
            losses_and_gradients(
                PARAMS, config, larger_batch(), rng=rng(), parts=3, run_all=pool.map
            )
            for _ in range(5)
        ]
    for metrics, grads in runs[1:]:
        assert metrics == runs[0][0]
        for (_, grad), (_, first) in zip(leaves(grads), leaves(runs[0][1])):
            assert grad.tobytes() == first.tobytes()


def test_each_part_has_dropout_of_its_own():
    config, rng = trained(CONFIG)
    batch = {name: np.concatenate([array[:1]] * 2) for name, array in BATCH.items()}
    part = {name: array[:1] for name, array in BATCH.items()}
    both, _ = losses_and_gradients(PARAMS, config, batch, rng=rng(), parts=2)
    seed = rng().integers(2**63, size=(2, 2))[0]
    one, _ = losses_and_gradients(PARAMS, config, part, rng=np.random.default_rng(seed))
    assert both["loss"] != pytest.approx(one["loss"], rel=1e-3)


@pytest.mark.parametrize("parts", [0, 3])
def test_wrong_number_of_parts(parts):
    with pytest.raises(BertError, match=f"parts = {parts}, allowed: 1..2"):
        losses_and_gradients(PARAMS, CONFIG, BATCH, parts=parts)


def test_float32_gives_float32_near_float64():
    config, rng = trained(CONFIG)
    params = random_params(dtype=np.float32)
    exact = map_leaves(lambda _, array: array.astype(np.float64), params)
    _, grads = losses_and_gradients(params, config, BATCH, rng=rng())
    _, expected = losses_and_gradients(exact, config, BATCH, rng=rng())
    expected = dict(leaves(expected))
    for path, grad in leaves(grads):
        assert grad.dtype == np.float32
        gap = np.abs(grad - expected[path]).max()
        assert gap <= 1e-5 * np.abs(expected[path]).max() + 1e-6, path


def test_the_trace_is_not_written_to():
    config, rng = trained(CONFIG)
    trace = {}
    logits = pretraining_logits(PARAMS, config, BATCH, trace=trace, rng=rng())
    d_logits = [np.ones(array.shape) for array in logits]
    for _, array in [*leaves(trace), *enumerate(d_logits)]:
        array.flags.writeable = False  # the parameters and the batch are already
    grads = gradients(trace, *d_logits, BATCH, PARAMS, config)
    shapes = {path: array.shape for path, array in leaves(PARAMS)}
    assert {path: grad.shape for path, grad in leaves(grads)} == shapes


def test_what_stands_in_the_padding_does_not_matter():
    batch = BATCH | {"input_ids": np.array([[4, 9, 22, 7, 1], [13, 2, 9, 17, 18]])}
    _, grads = losses_and_gradients(PARAMS, CONFIG, batch)
    _, other = losses_and_gradients(PARAMS, CONFIG, BATCH)
    rest = [grad for path, grad in leaves(grads) if path != "embeddings.word"]
    same = [grad for path, grad in leaves(other) if path != "embeddings.word"]
    assert all(np.array_equal(a, b) for a, b in zip(rest, same))


@pytest.mark.parametrize(
    "batch, message",
    [
        ({"input_ids": INPUT_IDS}, "batch has no .*nsp_labels"),
        (BATCH | {"mlm_labels": [[1] * 5] * 2}, "is list, allowed: numpy.ndarray"),
        (BATCH | {"mlm_labels": np.ones((2, 4), int)}, r"\(2, 4\), allowed: \(2, 5\)"),
        (BATCH | {"nsp_labels": np.array([0, 2])}, "label 2, allowed: 0..1"),
        (BATCH | {"input_ids": np.full((2, 5), 23)}, r"input_ids\[0, 0\] = 23"),
    ],
)
def test_wrong_batches(batch, message):
    with pytest.raises(BertError, match=message):
        losses_and_gradients(PARAMS, CONFIG, batch)


@pytest.mark.parametrize("part", ["mlm", "nsp"])
def test_a_model_without_heads_is_refused(part):
    params = {name: tree for name, tree in PARAMS.items() if name != part}
    with pytest.raises(BertError, match=f"no '{part}'"):
        losses_and_gradients(params, CONFIG, BATCH)


# -------------------------------------------------------- against autograd


def tiny_gradients(batch, **changes):
    params, config, _ = load_checkpoint(GOLDEN / "tiny")
    params = map_leaves(lambda _, array: array.astype(np.float64), params)
    metrics, grads = losses_and_gradients(params, replace(config, **changes), batch)
    return metrics["loss"], dict(leaves(grads))


def assert_autograd(found, expected):
    (loss, grads), (torch_loss, torch_grads) = found, expected
    assert loss == pytest.approx(torch_loss, rel=1e-12)
    assert grads.keys() == torch_grads.keys()
    for path, grad in torch_grads.items():
        assert np.abs(grads[path] - grad).max() <= 1e-10, path


def test_gradients_of_the_tiny_checkpoint_are_those_stored_from_autograd():
    with np.load(GOLDEN / "training.npz") as golden:
        stored = dict(golden)
    batch, grads = (
        {
            path.removeprefix(part): array
            for path, array in stored.items()
            if path.startswith(part)
        }
        for part in ("batch.", "grads.")
    )
    assert max(np.abs(grad).max() for grad in grads.values()) > 0.1
    assert_autograd(tiny_gradients(batch), (float(stored["loss"]), grads))


@pytest.mark.references
@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_gradients_of_the_tiny_checkpoint_are_those_of_autograd_live(act):
    from tools.make_training_golden import draw_batch, torch_gradients

    batch = draw_batch()
    assert_autograd(
        tiny_gradients(batch, hidden_act=act), torch_gradients(batch, hidden_act=act)
    )
