"""Gradients against central differences, and against PyTorch's autograd."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params
from slopes import assert_slopes, with_leaf

from bert_np import BertError, bert, functional
from bert_np.attention import scaled_dot_product
from bert_np.files.checkpoint import load_checkpoint
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.training import backward, functional_backward
from bert_np.training.losses import (
    IGNORED,
    masked_cross_entropy,
    next_sentence_cross_entropy,
)
from bert_np.training.pretraining import losses_and_gradients
from bert_np.tree import leaves, map_leaves

GOLDEN = Path(__file__).parents[1] / "golden"
PARAMS = random_params()
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
DROPPED = replace(CONFIG, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)


def draw(*shape, seed=3):
    """Read-only normal numbers."""
    array = np.random.default_rng(seed).normal(size=shape)
    array.flags.writeable = False
    return array


def generator():
    """The same draws each time, and so the same dropout masks."""
    return np.random.default_rng(5)


def no_generator():
    return None


def assert_backward(function, inputs, d_output, grads):
    """grads of each input are the slopes of the sum of output times d_output."""

    def loss(inputs):
        return (function(*inputs) * d_output).sum()

    assert_slopes(loss, list(inputs), list(grads))


# ------------------------------------------------------------ bare arrays


def test_linear():
    x, W, b, d_y = draw(2, 5, 7), draw(7, 3), draw(3), draw(2, 5, 3, seed=4)
    d_x, grads = functional_backward.linear_backward(d_y, x, W)
    assert_backward(functional.linear, (x, W, b), d_y, (d_x, grads["W"], grads["b"]))


@pytest.mark.parametrize("eps", [1e-12, 0.3])
def test_layer_norm(eps):
    inputs, d_y = (draw(2, 5, 7), draw(7, seed=1), draw(7, seed=2)), draw(2, 5, 7)
    d_x, grads = functional_backward.layer_norm_backward(d_y, *inputs[:2], eps)

    def function(x, gamma, beta):
        return functional.layer_norm(x, gamma, beta, eps)

    assert_backward(function, inputs, d_y, (d_x, grads["gamma"], grads["beta"]))


def test_softmax():
    x, d_y = draw(2, 3, 5), draw(2, 3, 5, seed=4)
    d_x = functional_backward.softmax_backward(d_y, functional.softmax(x))
    assert_backward(functional.softmax, [x], d_y, [d_x])


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu"])
def test_activations(name):
    function = getattr(functional, name)
    function_backward = getattr(functional_backward, f"{name}_backward")
    x = np.array([-30, -6, -3, -1.5, -0.7, -0.1, 0.2, 0.9, 2, 4, 6, 30])
    for d_y in np.eye(len(x)):  # each value alone: their slopes differ in size
        assert_backward(function, [x], d_y, [function_backward(d_y, x)])
    x = np.linspace(-12, 12, 100_001).astype(np.float32)  # with 0
    found = function_backward(np.ones_like(x), x)
    exact = function_backward(np.ones(x.shape), x.astype(np.float64))
    assert found.dtype == np.float32 and np.abs(found - exact).max() < 5e-6


@pytest.mark.parametrize("rate", [0, 0.2])
def test_scaled_dot_product(rate):
    inputs, d_context = [draw(2, 3, 5, 7, seed=s) for s in (1, 2, 4)], draw(2, 3, 5, 7)
    visible = np.broadcast_to(MASK[:, None, None, :] == 1, (2, 3, 5, 5)).copy()
    visible[0, 1, 2] = False  # a query that sees no key
    trace = dict(zip("qkv", inputs))

    def function(*qkv, trace=None):
        options = {"dropout_rate": rate, "trace": trace, "rng": generator()}
        return scaled_dot_product(*qkv, visible, **options)[0]

    function(*inputs, trace=trace)
    grads = backward.scaled_dot_product_backward(d_context, trace, visible)
    assert_backward(function, inputs, d_context, grads)


# --------------------------------------------------------- the whole model


def whole_loss(params, config, rng, batch=BATCH):
    """Both losses, straight from the forward pass at every position."""
    inputs = {name: batch[name] for name in ("segment_ids", "attention_mask")}
    out = bert(batch["input_ids"], params, config, **inputs, rng=rng)
    words = masked_lm_logits(out["last_hidden_state"], params, config)
    pairs = next_sentence_logits(out["pooler_output"], params)
    return (
        masked_cross_entropy(words, batch["mlm_labels"])[0]
        + next_sentence_cross_entropy(pairs, batch["nsp_labels"])[0]
    )


@pytest.mark.parametrize(
    "config, rng",
    [
        (CONFIG, no_generator),
        (replace(DROPPED, hidden_act="gelu_new"), generator),
        (replace(CONFIG, hidden_act="relu", layer_norm_eps=0.2), no_generator),
    ],
    ids=["gelu", "gelu_new with dropout", "relu with a large epsilon"],
)
def test_every_gradient_of_the_whole_model(config, rng):
    metrics, grads = losses_and_gradients(PARAMS, config, BATCH, rng=rng())
    loss = whole_loss(PARAMS, config, rng())
    assert metrics["loss"] == pytest.approx(loss, rel=1e-12)
    assert metrics["loss"] == metrics["mlm_loss"] + metrics["nsp_loss"]
    assert_slopes(lambda params: whole_loss(params, config, rng()), PARAMS, grads)


def test_a_decoder_that_is_not_tied_has_a_gradient_of_its_own():
    untied = replace(CONFIG, tie_word_embeddings=False)
    params = random_params(untied)
    _, grads = losses_and_gradients(params, untied, BATCH)
    both = {"word": params["embeddings"]["word"], "decoder": params["mlm"]["decoder"]}
    found = {"word": grads["embeddings"]["word"], "decoder": grads["mlm"]["decoder"]}

    def loss(both):
        changed = with_leaf(params, "embeddings.word", both["word"])
        changed = with_leaf(changed, "mlm.decoder", both["decoder"])
        return whole_loss(changed, untied, None)

    assert_slopes(loss, both, found)


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
    whole, expected = losses_and_gradients(PARAMS, CONFIG, larger_batch())
    found, grads = losses_and_gradients(PARAMS, CONFIG, larger_batch(), parts=parts)
    assert found == pytest.approx(whole, rel=1e-13)
    for (_, grad), (_, of_whole) in zip(leaves(grads), leaves(expected), strict=True):
        np.testing.assert_allclose(grad, of_whole, rtol=0, atol=1e-13)


def test_padding_at_the_end_of_a_part_changes_nothing():
    """Not even if a row is all padding, which sees all its columns alike."""
    batch = larger_batch()
    wide = {name: np.pad(array, [(0, 0), (0, 3)] if array.ndim > 1 else 0)
            for name, array in batch.items()}  # fmt: skip
    wide["mlm_labels"][:, 5:] = IGNORED
    with_hidden = wide | {"attention_mask": wide["attention_mask"].copy()}
    with_hidden["attention_mask"][2] = False
    for padded, other in ((wide, batch), (with_hidden, None)):
        expected = whole_loss(PARAMS, CONFIG, None, padded)
        for parts in (1, 4):
            found, _ = losses_and_gradients(PARAMS, CONFIG, padded, parts=parts)
            assert found["loss"] == pytest.approx(expected, rel=1e-13)
        if other is not None:
            assert expected == pytest.approx(whole_loss(PARAMS, CONFIG, None, other))


def test_each_part_has_a_dropout_of_its_own():
    batch = {name: array[[0, 0]] for name, array in BATCH.items()}
    part = {name: array[:1] for name, array in BATCH.items()}
    both, _ = losses_and_gradients(PARAMS, DROPPED, batch, rng=generator(), parts=2)
    seed = generator().integers(2**63, size=(2, 2))[0]
    rng = np.random.default_rng(seed)
    first, _ = losses_and_gradients(PARAMS, DROPPED, part, rng=rng)
    assert both["loss"] != pytest.approx(first["loss"], rel=1e-3)


def test_nothing_labelled_gives_no_loss_and_no_gradient():
    labels = {name: np.full_like(BATCH[name], IGNORED) for name in list(BATCH)[3:]}
    metrics, grads = losses_and_gradients(PARAMS, CONFIG, BATCH | labels)
    assert metrics["loss"] == 0
    assert np.isnan([metrics["mlm_accuracy"], metrics["nsp_accuracy"]]).all()
    assert not any(grad.any() for _, grad in leaves(grads))


def test_float32_gives_float32_near_float64():
    params = random_params(dtype=np.float32)
    exact = map_leaves(lambda _, array: array.astype(np.float64), params)
    _, grads = losses_and_gradients(params, DROPPED, BATCH, rng=generator())
    _, expected = losses_and_gradients(exact, DROPPED, BATCH, rng=generator())
    for (path, grad), (_, of_exact) in zip(leaves(grads), leaves(expected)):
        assert grad.dtype == np.float32
        gap = np.abs(grad - of_exact).max()
        assert gap <= 1e-5 * np.abs(of_exact).max() + 1e-6, path


def test_the_content_of_padding_does_not_matter():
    batch = BATCH | {"input_ids": np.array([[4, 9, 22, 7, 1], [13, 2, 9, 17, 18]])}
    _, grads = losses_and_gradients(PARAMS, CONFIG, batch)
    _, expected = losses_and_gradients(PARAMS, CONFIG, BATCH)
    for (path, grad), (_, other) in zip(leaves(grads), leaves(expected)):
        assert np.array_equal(grad, other) or path == "embeddings.word"


@pytest.mark.parametrize(
    "batch, options, message",
    [
        ({"input_ids": INPUT_IDS}, {}, "batch has no .*nsp_labels"),
        (BATCH | {"mlm_labels": [[1] * 5] * 2}, {}, "is list, allowed: numpy.ndarray"),
        (
            BATCH | {"mlm_labels": np.ones((2, 4), int)},
            {},
            r"\(2, 4\), allowed: \(2, 5",
        ),
        (BATCH | {"input_ids": np.full((2, 5), 23)}, {}, r"input_ids\[0, 0\] = 23"),
        (BATCH | {"input_ids": INPUT_IDS[0]}, {}, r"shape \(5,\), allowed: \(B, T"),
        (BATCH, {"parts": 3}, "parts = 3, allowed: 1..2"),
    ],
)
def test_wrong_batches(batch, options, message):
    with pytest.raises(BertError, match=message):
        losses_and_gradients(PARAMS, CONFIG, batch, **options)


# -------------------------------------------------------- against autograd


def assert_autograd(batch, torch_loss, torch_grads, **changes):
    """Loss and gradients of the tiny checkpoint are those of PyTorch."""
    params, config, _ = load_checkpoint(GOLDEN / "tiny")
    params = map_leaves(lambda _, array: array.astype(np.float64), params)
    metrics, grads = losses_and_gradients(params, replace(config, **changes), batch)
    assert metrics["loss"] == pytest.approx(torch_loss, rel=1e-12)
    assert dict(leaves(grads)).keys() == torch_grads.keys()
    for path, grad in leaves(grads):
        assert np.abs(torch_grads[path] - grad).max() <= 1e-10, path


def test_gradients_are_those_stored_from_autograd():
    with np.load(GOLDEN / "training.npz") as golden:
        stored = dict(golden)
    batch, grads = (
        {name.removeprefix(kind): stored[name] for name in stored if kind in name}
        for kind in ("batch.", "grads.")
    )
    grads = {path: grad for path, grad in grads.items() if "adam" not in path}
    assert_autograd(batch, float(stored["loss"]), grads)


@pytest.mark.references
@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_gradients_are_those_of_autograd(act):
    from tools.make_training_golden import draw_batch, torch_gradients

    batch = draw_batch()
    assert_autograd(batch, *torch_gradients(batch, hidden_act=act), hidden_act=act)
