"""One batch of a task: gradients, rates, steps, against PyTorch's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params
from slopes import assert_slopes

from bert_np import BertError, bert
from bert_np.files.checkpoint import load_checkpoint
from bert_np.model import embed, encoder
from bert_np.training import fine_tuning
from bert_np.training.adam import adam, init_adam
from bert_np.training.backward import mean_pool_backward
from bert_np.training.fine_tuning import (
    fine_tuning_step,
    group_rates,
    loss_and_gradients,
    task_logits,
)
from bert_np.training.frozen import split_layers
from bert_np.training.losses import masked_cross_entropy
from bert_np.training.settings import FineTuningSettings
from bert_np.tree import leaves, map_leaves

TASKS = Path(__file__).parents[1] / "golden" / "tasks"
FOLDERS = {"token": "token", "span": "question"}  # of a problem, or "sequence"
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
BATCH = {"input_ids": INPUT_IDS, "segment_ids": SEGMENT_IDS, "attention_mask": MASK}
LABELS = ("a", "b", "c", "d")
SINGLE = "single_label_classification"
PROBLEMS = {
    SINGLE: np.array([3, 1]),
    "multi_label_classification": np.array([[1.0, 0, 0, 1], [0, 0, 1, 0]]),
    "regression": np.array([[0.3, -1, 2, 0], [1, 0.5, 0, -2]]),
    "token": np.array([[-100, 2, 0, -100, 3], [-100, 1, -100, -100, -100]]),
    "span": np.array([[1, 3], [0, 0]]),
}
DROPPED = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
PARAMS = random_params()


def case(problem, pooling="pooler", layers=None, **changes):
    """(params, config, batch) of a problem; only the top layers, if asked."""
    task = problem if problem in FOLDERS else "sequence"
    kind = problem if task == "sequence" else None
    options = {"labels": LABELS, "problem_type": kind, "classifier_pooling": pooling}
    config = replace(CONFIG, **options | changes)
    rng = np.random.default_rng(1)
    width = 2 if task == "span" else 4
    head = {
        "W": rng.normal(size=(CONFIG.hidden_size, width)),
        "b": rng.normal(size=width),
    }
    parts = ["embeddings", "layers"]
    parts += ["pooler"] * (task == "sequence" and pooling == "pooler")
    params = {part: PARAMS[part] for part in parts} | {task: head}
    batch = BATCH | {"labels": PROBLEMS[problem]}
    if layers is not None:
        frozen, params = split_layers(params, layers)
        x = embed(INPUT_IDS, SEGMENT_IDS, frozen["embeddings"], config)
        batch["hidden"], _ = encoder(x, frozen["layers"], MASK, config)
    return params, config, batch


def loss_of(params, config, batch, seed):
    """The loss alone, forward."""
    rng = None if seed is None else np.random.default_rng(seed)
    logits = task_logits(params, config, batch, rng=rng)
    return fine_tuning.task_loss(logits, batch["labels"], params, config)[0]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("layers, seed", [(None, None), (None, 5), (1, 5), (0, 5)])
def test_every_gradient_is_a_slope(problem, layers, seed):
    pooling = "mean" if problem in ("regression", SINGLE) and seed else "pooler"
    params, config, batch = case(problem, pooling, layers, **DROPPED)
    rng = None if seed is None else np.random.default_rng(seed)
    loss, grads = loss_and_gradients(params, config, batch, rng=rng)
    assert loss == loss_of(params, config, batch, seed)
    assert_slopes(lambda tree: loss_of(tree, config, batch, seed), params, grads)


def test_the_mean_of_real_tokens():
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 3))

    def loss(tree):
        rows = [row[:n].mean(axis=0) for row, n in zip(tree["x"], (5, 3))]
        return (np.array(rows) * d).sum()

    assert_slopes(loss, {"x": x}, {"x": mean_pool_backward(d, MASK)})


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("parts", [2, 7])
def test_parts_add_up(problem, parts):
    params, config, batch = case(problem)
    loss, grads = loss_and_gradients(params, config, batch)
    other, found = loss_and_gradients(params, config, batch, parts=parts)
    assert other == pytest.approx(loss, rel=1e-12)
    for (path, grad), (_, of_parts) in zip(leaves(grads), leaves(found)):
        np.testing.assert_allclose(of_parts, grad, rtol=0, atol=1e-12, err_msg=path)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_kept_outputs_change_nothing(problem):
    params, config, batch = case(problem)
    loss, grads = loss_and_gradients(params, config, batch)
    top, _, kept = case(problem, layers=1)
    del kept["input_ids"], kept["segment_ids"]  # not needed any more
    found, of_top = loss_and_gradients(top, config, kept)
    assert found == pytest.approx(loss, rel=1e-13)
    expected = split_layers(grads, 1)[1]
    for (path, grad), (_, found) in zip(leaves(expected), leaves(of_top), strict=True):
        np.testing.assert_allclose(found, grad, rtol=0, atol=1e-13, err_msg=path)


def test_padding_is_no_answer_and_does_not_matter():
    params, config, batch = case("span")
    logits = task_logits(params, config, batch)
    assert (logits[1, :, 3:] == np.finfo(float).min).all()
    short = {key: array[1:, :3] for key, array in batch.items() if key != "labels"}
    short["labels"] = batch["labels"][1:]
    np.testing.assert_allclose(
        task_logits(params, config, short), logits[1:, :, :3], rtol=1e-12
    )


def test_the_mean_leaves_padding_out():
    params, config, batch = case(SINGLE, "mean")
    logits = task_logits(params, config, batch)
    options = {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}
    hidden = bert(INPUT_IDS, params, config, **options)["last_hidden_state"]
    means = np.array([hidden[0].mean(axis=0), hidden[1, :3].mean(axis=0)])
    head = params["sequence"]
    np.testing.assert_allclose(logits, means @ head["W"] + head["b"], rtol=1e-12)


# ------------------------------------------------------------ rates and steps


def test_rates_fall_from_layer_to_layer():
    params, config, _ = case(SINGLE)
    settings = FineTuningSettings(body_rate=0.8, head_rate=3.0, layer_decay=0.5)
    L = config.num_hidden_layers
    expected = {f"layers.{i}": 0.8 * 0.5 ** (L - 1 - i) for i in range(L)}
    expected |= {"embeddings": 0.8 * 0.5**L, "pooler": 0.8, "sequence": 3.0}
    assert group_rates(params, config, settings) == pytest.approx(expected)
    top, *_ = case(SINGLE, layers=1)
    assert group_rates(top, config, settings) == {
        "layers.0": 0.8,
        "pooler": 0.8,
        "sequence": 3.0,
    }


def test_a_step_is_forward_backward_clip_adam():
    params, config, batch = case(SINGLE)
    settings = FineTuningSettings(
        warmup=0.5, max_norm=0.01, body_rate=0.02, head_rate=0.5, layer_decay=1.0
    )
    run = {"step": 1, "params": params, "adam": init_adam(params)}
    new, metrics = fine_tuning_step(run, batch, config, settings, total_steps=8)
    loss, grads = loss_and_gradients(params, config, batch, parts=2)
    norm = np.sqrt(sum((grad**2).sum() for _, grad in leaves(grads)))
    assert metrics == pytest.approx({"loss": loss, "norm": norm, "rate": 0.5})
    clipped = map_leaves(lambda _, grad: grad * 0.01 / norm, grads)
    slow, quick = (
        adam(params, clipped, init_adam(params), rate)[0] for rate in (0.01, 0.25)
    )
    expected = slow | {"sequence": quick["sequence"]}
    for (path, found), (_, array) in zip(leaves(new["params"]), leaves(expected)):
        np.testing.assert_allclose(found, array, rtol=0, atol=1e-12, err_msg=path)
    assert new["step"] == 2 and new["adam"]["step"] == 1
    assert run["step"] == 1 and run["adam"]["step"] == 0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"labels": np.array([4, 0])}, "label 4, allowed: 0..3"),
        ({"labels": np.array([[1, 0]])}, r"\(1, 2\), allowed: \(2,\)"),
        ({"attention_mask": MASK[0]}, r"shape \(5,\), allowed: \(B, T\)"),
        ({"attention_mask": 2 * MASK}, r"attention_mask\[0, 0\] = 2"),
        ({"input_ids": INPUT_IDS - 30}, "input_ids"),
        ({"labels": None}, "batch.'labels'. is NoneType"),
    ],
)
def test_wrong_batches_of_a_task(changes, message):
    params, config, batch = case(SINGLE)
    with pytest.raises(BertError, match=message):
        loss_and_gradients(params, config, batch | changes)


def test_wrong_trees():
    params, config, batch = case(SINGLE, layers=1)
    del batch["hidden"]
    with pytest.raises(BertError, match="batch has no .'hidden'"):
        task_logits(params, config, batch)
    for change, message in [
        ({"token": params["sequence"]}, "allowed: one head"),
        ({"pooler": {}}, "pooler.W is missing"),
        ({"layers": params["layers"] * 9}, "at most"),
        ({"mlm": {"bias": np.zeros(23)}}, "mlm.bias is .*allowed: nothing"),
    ]:
        with pytest.raises(BertError, match=message):
            group_rates(params | change, config, FineTuningSettings())


# ------------------------------------------------------------ against PyTorch


def golden_case(problem, dtype=np.float64):
    """(params, config) of golden/tasks for a problem."""
    folder = FOLDERS.get(problem, "sequence")
    params, config, _ = load_checkpoint(TASKS / folder)
    pooling = "mean" if problem == "regression" else "pooler"
    if pooling == "mean":
        del params["pooler"]
    kind = problem if folder == "sequence" else None
    config = replace(config, problem_type=kind, classifier_pooling=pooling)
    return map_leaves(lambda _, array: array.astype(dtype), params), config


def golden_batch(problem, labels):
    names = ("input_ids", "segment_ids", "attention_mask")
    with np.load(TASKS / FOLDERS.get(problem, "sequence") / "golden.npz") as golden:
        return {name: golden[name] for name in names} | {"labels": labels}


def assert_gradients(problem, labels, loss, grads):
    params, config = golden_case(problem)
    batch = golden_batch(problem, labels)
    found, of_loss = loss_and_gradients(params, config, batch)
    assert found == pytest.approx(loss, rel=1e-12)
    of_loss = dict(leaves(of_loss))
    assert grads.keys() <= of_loss.keys() and len(grads) >= 2
    for path, grad in grads.items():
        assert np.abs(of_loss[path] - grad).max() <= 1e-10, path
    return of_loss


@pytest.mark.parametrize("problem", PROBLEMS)
def test_gradients_of_tasks_are_those_stored_from_autograd(problem):
    with np.load(TASKS / "training.npz") as file:
        start = f"{problem}/grads/"
        grads = {n.removeprefix(start): file[n] for n in file if n.startswith(start)}
        labels, loss = file[f"{problem}/labels"], float(file[f"{problem}/loss"])
    assert_gradients(problem, labels, loss, grads)


@pytest.mark.references
@pytest.mark.parametrize("problem", PROBLEMS)
def test_gradients_of_tasks_are_those_of_autograd(problem):
    from tools.make_training_golden import draw_task, torch_task_gradients

    loss, grads = torch_task_gradients(problem)
    found = assert_gradients(problem, draw_task(problem)["labels"], loss, grads)
    assert found.keys() == grads.keys()


@pytest.mark.references
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_twenty_steps_are_those_of_pytorch(problem, dtype):
    from tools.make_training_golden import draw_task, our_names, torch_steps

    params, config = golden_case(problem, dtype)
    settings = FineTuningSettings(
        body_rate=1e-3, head_rate=1e-2, layer_decay=0.9, warmup=0.25, parts=2
    )
    batches = [draw_task(problem, seed) for seed in range(20)]
    run, losses = {"step": 0, "params": params, "adam": init_adam(params)}, []
    for batch in batches:
        run, metrics = fine_tuning_step(run, batch, config, settings, len(batches))
        losses.append(metrics["loss"])
    rates = group_rates(params, config, settings)
    model, expected = torch_steps(problem, batches, rates, settings, dtype)
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    theirs, start = our_names(model, params), dict(leaves(params))
    for path, array in leaves(run["params"]):
        if dtype == "float64" or not is_without_effect(path, problem):
            assert np.abs(theirs[path] - array).max() <= 1e-5, path
            moved = np.abs(array - start[path]).max() > 1e-4
            assert moved != is_without_effect(path, problem), path


def is_without_effect(path, problem):
    """Whether a parameter moves all scores of a softmax alike.

    Its gradient is 0 but for rounding errors, which Adam enlarges in float32:
    the biases of the keys, and what is added to all tokens before a span head.
    """
    shifts = ("span.b", "layers.1.ffn_norm.beta") if problem == "span" else ()
    return path.endswith("key.b") or path in shifts


def test_the_loss_of_a_text_is_that_of_its_label():
    params, config, batch = case(SINGLE)
    logits = task_logits(params, config, batch)
    expected, _ = masked_cross_entropy(logits, batch["labels"])
    assert loss_and_gradients(params, config, batch)[0] == expected
