"""Masking, the optimiser, and the loop: same bits, stopped or not."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import bert_np
from bert_np import BertConfig, BertError
from bert_np.training import run as run_module
from bert_np.training.adam import (
    adam,
    clip_by_global_norm,
    global_norm,
    init_adam,
    learning_rate,
)
from bert_np.training.loop import TrainingSettings, train, train_step
from bert_np.training.losses import IGNORED
from bert_np.training.masking import mask_tokens
from bert_np.training.pretraining import losses_and_gradients
from bert_np.training.run import load_run, save_run, start_run
from bert_np.tree import leaves, map_leaves

GOLDEN = Path(__file__).parents[1] / "golden" / "training.npz"
CONFIG = BertConfig(
    vocab_size=13,
    hidden_size=12,
    num_hidden_layers=1,
    num_attention_heads=3,
    intermediate_size=14,
    max_position_embeddings=9,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
)
SETTINGS = TrainingSettings(steps=9, warmup_steps=2)
PAD, CLS, SEP, MASK = range(4)
SPECIALS = dict(special_ids=(PAD, CLS, SEP, MASK), mask_id=MASK, vocab_size=13)


def make_batch(rng, size=8):
    """[CLS] a a a [SEP] b b b [SEP]: each word stands three times."""
    words = rng.integers(4, 13, (size, 2))
    follows = rng.random(size) < 0.5
    words[:, 1] = np.where(follows, words[:, 0], words[:, 1])
    ids = np.insert(np.repeat(words, 3, axis=1), [0, 3, 6], [CLS, SEP, SEP], axis=1)
    masked, labels = mask_tokens(ids, rng, rate=0.3, **SPECIALS)
    return {
        "input_ids": masked,
        "segment_ids": np.broadcast_to(np.arange(9) > 4, ids.shape).astype(int),
        "attention_mask": np.ones_like(ids),
        "mlm_labels": labels,
        "nsp_labels": np.where(follows, 0, 1),
    }


def new_params(dtype=np.float32):
    rng = np.random.default_rng(0)
    return bert_np.init_params(CONFIG, rng, heads=True, dtype=dtype)


def generator(kind=np.random.PCG64):
    return np.random.Generator(kind(42))


def silent(line):
    """A report that goes nowhere."""


def run_training(settings=SETTINGS, rng=None, make=make_batch, **options):
    options = {"report": silent} | options
    return train(new_params(), CONFIG, make, rng or generator(), settings, **options)


def same_bits(a, b):
    """Two trees hold the same arrays, to the last bit."""
    a, b = dict(leaves(a)), dict(leaves(b))
    return a.keys() == b.keys() and all(
        a[path].dtype == b[path].dtype and a[path].tobytes() == b[path].tobytes()
        for path in a
    )


def read_only(tree):
    def lock(_, array):
        array = np.array(array)
        array.flags.writeable = False
        return array

    return map_leaves(lock, tree)


# ---------------------------------------------------------------- masking

MANY = np.tile([CLS, *range(4, 13), SEP, PAD], (20_000, 1))


def test_masking_rates():
    masked, labels = mask_tokens(MANY, generator(), **SPECIALS)
    words = np.isin(MANY, range(4, 13))
    chosen = labels != IGNORED
    assert not chosen[~words].any() and (masked[~words] == MANY[~words]).all()
    assert (masked[~chosen] == MANY[~chosen]).all()
    assert (labels[chosen] == MANY[chosen]).all()
    n = chosen.sum()  # about 27,000: a standard deviation is below 0.003
    assert chosen[words].mean() == pytest.approx(0.15, abs=0.004)
    assert (masked[chosen] == MASK).mean() == pytest.approx(0.8, abs=0.012)
    changed = (masked != MANY) & (masked != MASK)
    kept = chosen & (masked == MANY)
    # A random word is the old one in 1 case of 9.
    assert changed.sum() / n == pytest.approx(0.1 * 8 / 9, abs=0.008)
    assert kept.sum() / n == pytest.approx(0.1 + 0.1 / 9, abs=0.008)
    counts = np.bincount(masked[changed], minlength=13)
    assert (counts[:4] == 0).all() and (counts[4:] > 0.8 * counts[4:].mean()).all()


def test_each_word_is_chosen_alone_and_alike():
    _, labels = mask_tokens(MANY, generator(), **SPECIALS)
    chosen = (labels != IGNORED)[:, 1:10]
    np.testing.assert_allclose(chosen.mean(axis=0), 0.15, atol=0.013)
    assert chosen.sum(axis=1).var() == pytest.approx(9 * 0.15 * 0.85, rel=0.05)


def test_masking_rate_is_a_parameter():
    for rate in (0, 0.4, 1):
        _, labels = mask_tokens(MANY, generator(), rate=rate, **SPECIALS)
        share = (labels[:, 1:10] != IGNORED).mean()
        assert share == pytest.approx(rate, abs=0.006 if 0 < rate < 1 else 0)


def test_masking_keeps_its_input_and_repeats():
    ids = MANY[:50].copy()
    ids.flags.writeable = False
    first = mask_tokens(ids, generator(), **SPECIALS)
    second = mask_tokens(ids, generator(), **SPECIALS)
    assert (ids == MANY[:50]).all()
    assert all(np.array_equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rate": 1.5}, "rate = 1.5, allowed: 0..1"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"special_ids": range(13)}, "cover all 13 ids"),
    ],
)
def test_wrong_masking(change, message):
    with pytest.raises(BertError, match=message):
        mask_tokens(MANY, generator(), **SPECIALS | change)


# -------------------------------------------------------------- optimiser


def test_schedule():
    rates = [learning_rate(step, 8.0, 4, 12) for step in range(12)]
    assert rates == [2, 4, 6, 8, 8, 7, 6, 5, 4, 3, 2, 1]
    assert learning_rate(0, 1.0, 0, 2) == 1  # without warm-up
    assert learning_rate(3, 1.0, 4, 4) == 1  # nothing but warm-up
    held = [learning_rate(step, 6.0, 2, 8, 3) for step in range(8)]
    assert held == [3, 6, 6, 6, 6, 6, 4, 2]
    assert learning_rate(3, 1.0, 1, 4, 3) == 1  # never falls


def test_clipping():
    grads = read_only({"a": np.array([3.0]), "b": [np.array([[0.0, 4.0]])]})
    assert global_norm(grads) == 5
    clipped, norm = clip_by_global_norm(grads, 1.0)
    assert norm == 5
    assert clipped["a"] == pytest.approx(0.6)
    assert clipped["b"][0][0, 1] == pytest.approx(0.8)
    assert global_norm(clipped) == pytest.approx(1, rel=1e-15)
    same, norm = clip_by_global_norm(grads, 5.0)
    assert same is grads and norm == 5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_refused(value):
    with pytest.raises(BertError, match=f"norm is {value}"):
        clip_by_global_norm({"a": np.array([1.0, value])}, 1.0)


def test_adam_by_hand():
    params = {"W": np.array([2.0]), "b": np.array([2.0])}
    grads = {"W": np.array([0.5]), "b": np.array([0.5])}
    options = dict(beta1=0.9, beta2=0.99, eps=0.0, weight_decay=0.1)
    moved, state = adam(params, grads, init_adam(params), 0.01, **options)
    # The first step has the length of the rate, whatever the gradient.
    assert moved["b"] == pytest.approx(1.99, rel=1e-14)
    assert moved["W"] == pytest.approx(1.99 - 0.01 * 0.1 * 2, rel=1e-14)
    assert state["step"] == 1
    assert state["m"]["W"] == pytest.approx(0.05)
    assert state["v"]["W"] == pytest.approx(0.0025)


def test_decay_spares_norms_and_biases():
    params = new_params(np.float64)
    params = map_leaves(lambda _, p: p + 1.0, params)
    zero = map_leaves(lambda _, p: np.zeros_like(p), params)
    moved, _ = adam(params, zero, init_adam(params), 0.1, weight_decay=0.5)
    decayed = {
        path
        for (path, p), (_, q) in zip(leaves(params), leaves(moved))
        if not np.array_equal(p, q)
    }
    assert decayed == {path for path, p in leaves(params) if p.ndim == 2}


def read_only_state(state):
    return state | {"m": read_only(state["m"]), "v": read_only(state["v"])}


def adam_trajectory(start, grads, rates, dtype, **options):
    """W and b after each update."""
    params = read_only(map_leaves(lambda _, array: array.astype(dtype), start))
    state, results = init_adam(params), []
    for i, rate in enumerate(rates):
        step_grads = map_leaves(lambda _, array: array[i].astype(dtype), grads)
        params, state = adam(params, step_grads, state, rate, **options)
        params, state = read_only(params), read_only_state(state)
        results.append(params)
    return results


def assert_adam(golden, dtype, tolerance):
    from tools.make_training_golden import ADAM, DECAY, RATES, UPDATES

    start, grads, expected = (
        {name: golden[f"adam.{kind}.{name}"] for name in "Wb"}
        for kind in ("start", "grads", "results")
    )
    beta1, beta2 = ADAM["betas"]
    rates = [RATES[i * 2 // UPDATES] for i in range(UPDATES)]
    found = adam_trajectory(
        start,
        grads,
        rates,
        dtype,
        beta1=beta1,
        beta2=beta2,
        eps=ADAM["eps"],
        weight_decay=DECAY,
    )
    for i, params in enumerate(found):
        for name, array in params.items():
            assert array.dtype == dtype
            np.testing.assert_allclose(array, expected[name][i], rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_adam_gives_what_is_stored_from_torch(dtype, tolerance):
    with np.load(GOLDEN) as golden:
        assert_adam(golden, dtype, tolerance)


@pytest.mark.references
def test_adam_gives_what_torch_gives_live():
    from tools.make_training_golden import torch_adam

    assert_adam(torch_adam(), np.float64, 1e-14)


def test_the_golden_file_names_its_versions():
    with np.load(GOLDEN) as golden:
        assert json.loads(str(golden["versions"])).keys() == {
            "torch",
            "transformers",
            "numpy",
        }


# --------------------------------------------------------------- the loop


def test_the_model_learns():
    settings = TrainingSettings(steps=200, warmup_steps=10, peak_rate=2e-2)
    _, history = run_training(settings, make=lambda rng: make_batch(rng, 32))
    losses = [entry["mlm_loss"] for entry in history]
    assert np.mean(losses[:5]) == pytest.approx(np.log(13), abs=0.2)  # guessing
    # Nine words are equally frequent: who does not look around stays at log 9.
    assert np.mean(losses[-20:]) < 0.75 * np.log(9)
    assert np.mean([entry["mlm_accuracy"] for entry in history[-20:]]) > 0.4


def test_a_step_is_forward_backward_clip_adam():
    settings = SETTINGS._replace(max_norm=0.5)
    run = train_step(
        start_run(new_params(), generator()), CONFIG, make_batch, generator(), settings
    )
    rng = generator()
    batch = make_batch(rng)
    metrics, grads = losses_and_gradients(new_params(), CONFIG, batch, rng=rng)
    norm = global_norm(grads)
    assert norm > 0.5
    grads = map_leaves(lambda _, g: g * (0.5 / norm), grads)
    expected, _ = adam(new_params(), grads, init_adam(new_params()), 0.5e-3)
    assert same_bits(run["params"], expected)
    assert run["history"] == [metrics | {"norm": norm, "rate": 0.5e-3, "tokens": 72}]
    assert run["rng"] == rng.bit_generator.state


def test_dropout_is_on():
    batch = make_batch(generator())
    _, history = run_training(SETTINGS._replace(peak_rate=0.0), make=lambda rng: batch)
    assert len({entry["loss"] for entry in history}) == SETTINGS.steps


def test_twice_the_same_run_gives_the_same_bits():
    first, second = run_training(), run_training()
    assert same_bits(first[0], second[0]) and first[1] == second[1]
    other, _ = run_training(rng=np.random.default_rng(43))
    assert not same_bits(first[0], other)


def test_the_same_bits_in_another_process():
    code = """
        import hashlib, sys
        sys.path.insert(0, sys.argv[1])
        from test_training import leaves, run_training
        params, _ = run_training()
        data = b"".join(array.tobytes() for _, array in leaves(params))
        print(hashlib.sha256(data).hexdigest())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(Path(__file__).parent)]
    lines = {
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(bert_np.__file__).parents[1],
        ).stdout
        for _ in range(2)
    }
    assert len(lines) == 1 and len(lines.pop().strip()) == 64


def test_the_callers_params_and_the_last_run_are_not_written_to():
    params = read_only(new_params())
    seen = []

    def after_step(run):
        history = run["history"]
        seen.append((read_only(run["params"]), run["params"], history, len(history)))

    train(
        params,
        CONFIG,
        make_batch,
        generator(),
        SETTINGS,
        report=silent,
        after_step=after_step,
    )
    assert len(seen) == SETTINGS.steps
    for copy, original, history, length in seen:
        assert same_bits(copy, original) and len(history) == length


def test_parts_in_threads():
    settings = SETTINGS._replace(parts=4)
    first, second = run_training(settings), run_training(settings)
    assert same_bits(first[0], second[0]) and first[1] == second[1]
    rng = generator()
    run = start_run(new_params(), rng)
    for _ in range(settings.steps):  # the same without threads
        run = train_step(run, CONFIG, make_batch, rng, settings)
    assert first[1][0] == pytest.approx(run["history"][0], rel=1e-5)
    for (_, found), (_, expected) in zip(leaves(first[0]), leaves(run["params"])):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_progress_lines():
    lines = []
    run_training(report=lines.append, report_every=4)
    assert [line.split()[1] for line in lines] == ["4/9", "8/9", "9/9"]
    assert all(
        "loss" in line
        and "words" in line
        and "pairs" in line
        and line.endswith("tokens/s")
        for line in lines
    )
    losses = [entry["loss"] for entry in run_training()[1]]
    assert f"loss {np.mean(losses[4:8]):.3f}" in lines[1]


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_a_run_survives_its_file(kind, tmp_path):
    rng = generator(getattr(np.random, kind))
    run = start_run(new_params(), rng)
    for _ in range(2):
        run = train_step(run, CONFIG, make_batch, rng, SETTINGS)
    save_run(tmp_path / "run.npz", run, CONFIG, SETTINGS)
    loaded = load_run(tmp_path / "run.npz", CONFIG, SETTINGS)
    other = generator(getattr(np.random, kind))
    other.bit_generator.state = loaded["rng"]
    assert same_bits(loaded["params"], run["params"])
    assert same_bits(loaded["adam"]["m"], run["adam"]["m"])
    assert same_bits(loaded["adam"]["v"], run["adam"]["v"])
    assert loaded["adam"]["step"] == loaded["step"] == 2
    assert loaded["history"] == run["history"]
    assert (other.random(1000) == rng.random(1000)).all()
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def stopping(function, at):
    """The function, interrupted the at-th time it is called."""
    calls = []

    def stopped(*arguments, **options):
        calls.append(None)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return stopped


def resumed(path, **options):
    return run_training(
        rng=np.random.default_rng(7), checkpoint=path, resume=True, **options
    )


@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_an_interrupted_run_resumes_to_the_same_bits(at, tmp_path):
    path, expected = tmp_path / "run.npz", run_training()
    with pytest.raises(KeyboardInterrupt):
        run_training(make=stopping(make_batch, at), checkpoint=path)
    assert load_run(path, CONFIG, SETTINGS)["step"] == at - 1
    found = resumed(path)
    assert same_bits(found[0], expected[0]) and found[1] == expected[1]


@pytest.mark.parametrize("place", ["after_step", "report", "replace"])
def test_an_interruption_between_steps_does_no_harm(place, tmp_path, monkeypatch):
    path, expected, steps = tmp_path / "run.npz", run_training(), []
    options = {"report_every": 1, "checkpoint_every": 1, "checkpoint": path}
    if place == "replace":
        monkeypatch.setattr(run_module.os, "replace", stopping(os.replace, 3))
    else:
        options[place] = stopping(lambda _: None, 3)
    with pytest.raises(KeyboardInterrupt):
        run_training(**options)
    monkeypatch.undo()
    found = resumed(path, after_step=lambda run: steps.append(run["step"]))
    assert same_bits(found[0], expected[0]) and found[1] == expected[1]
    # A step whose after_step was cut short is made, and told, again.
    assert steps == list(range(3 if place == "after_step" else 4, 10))


def test_a_resumed_run_that_had_ended_makes_no_step(tmp_path):
    path = tmp_path / "run.npz"
    first = run_training(checkpoint=path)
    assert same_bits(resumed(path, make=stopping(make_batch, 1))[0], first[0])


KILLED = """
    import os, sys
    sys.path.insert(0, sys.argv[1])
    from test_training import make_batch, run_module, run_training
    saves = []
    def die(descriptor):
        saves.append(None)
        if len(saves) == 3:
            os.truncate(sys.argv[2] + ".tmp", 1000)
            os._exit(9)
    run_module.os.fsync = die
    run_training(checkpoint=sys.argv[2], checkpoint_every=2)
"""


def start(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), str(Path(__file__).parent)]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        cwd=Path(bert_np.__file__).parents[1],
    )


def test_a_run_killed_while_it_writes_leaves_the_file_before(tmp_path):
    path = tmp_path / "run.npz"
    with start(KILLED, path) as process:
        assert process.wait(60) == 9
    assert (tmp_path / "run.npz.tmp").stat().st_size == 1000
    assert load_run(path, CONFIG, SETTINGS)["step"] == 4
    assert same_bits(resumed(path)[0], run_training()[0])
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


ENDLESS = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from test_training import CONFIG, SETTINGS, generator, new_params
    from bert_np.training.run import save_run, start_run
    run = start_run(new_params(), generator())
    while True:
        save_run(sys.argv[2], run, CONFIG, SETTINGS)
        print("saved", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path):
    with start(ENDLESS, tmp_path / "run.npz") as process:
        for _ in range(5):
            assert process.stdout.readline() == b"saved\n"
        process.kill()
    assert load_run(tmp_path / "run.npz", CONFIG, SETTINGS)["step"] == 0


def test_a_failed_save_names_the_file_and_keeps_the_old_one(tmp_path, monkeypatch):
    path, run = tmp_path / "run.npz", start_run(new_params(), generator())
    save_run(path, run, CONFIG, SETTINGS)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_module.os, "fsync", full)
    with pytest.raises(BertError, match="run.npz cannot be written.*No space"):
        save_run(path, run | {"step": 5}, CONFIG, SETTINGS)
    assert load_run(path, CONFIG, SETTINGS)["step"] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_a_broken_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(BertError, match="run.npz"):
        resumed(path)


def test_a_truncated_or_foreign_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    save_run(path, start_run(new_params(), generator()), CONFIG, SETTINGS)
    content = path.read_bytes()
    for length in (100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(BertError, match="run.npz"):
            load_run(path, CONFIG, SETTINGS)
    for facts in ("[]", "{}", '{"config": 1, "settings": {}}', "no JSON"):
        np.savez(path, facts=np.array(facts))
        with pytest.raises(BertError, match="run.npz: not a training run"):
            load_run(path, CONFIG, SETTINGS)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(BertError, match="run.npz: not a training run"):
        load_run(path, CONFIG, SETTINGS)
    np.savez(path, facts=np.array([{}], dtype=object))
    with pytest.raises(BertError, match="run.npz.*pickle"):
        load_run(path, CONFIG, SETTINGS)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    save_run(path, start_run(new_params(), generator()), CONFIG, SETTINGS)
    with pytest.raises(BertError, match="its steps is 9, this run's is 10"):
        load_run(path, CONFIG, SETTINGS._replace(steps=10))
    other = BertConfig.from_dict(CONFIG.to_dict() | {"intermediate_size": 15})
    with pytest.raises(BertError, match="intermediate_size is 14, this run's is 15"):
        load_run(path, other, SETTINGS)
    with pytest.raises(BertError, match="rng is a MT19937, allowed: PCG64"):
        run_training(rng=generator(np.random.MT19937), checkpoint=path, resume=True)


def test_an_old_checkpoint_is_not_overwritten(tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"precious")
    with pytest.raises(BertError, match="run.npz exists: resume=True, or remove it"):
        run_training(checkpoint=path)
    assert path.read_bytes() == b"precious"
    with pytest.raises(BertError, match="there is no folder"):
        run_training(checkpoint=tmp_path / "nowhere" / "run.npz")
    with pytest.raises(BertError, match="checkpoint None: name the file"):
        run_training(resume=True)


def test_a_diverged_run_stops_and_says_why():
    settings = SETTINGS._replace(peak_rate=1e30, max_norm=1e30)
    with np.errstate(all="ignore"), pytest.raises(BertError, match="try a lower"):
        run_training(settings)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": 1}, r"warmup_steps, hold_steps = \(2, 0\), steps = 1"),
        ({"hold_steps": 8}, r"= \(2, 8\), steps = 9, allowed"),
        ({"hold_steps": -1}, r"= \(2, -1\), steps = 9, allowed"),
        ({"steps": 9.5}, "steps = 9.5, allowed"),
        ({"peak_rate": float("nan")}, "peak_rate = nan"),
        ({"weight_decay": -0.1}, "weight_decay = -0.1"),
        ({"parts": 0}, "parts = 0, allowed: an int >= 1"),
        ({"parts": 2.0}, "parts = 2.0, allowed: an int >= 1"),
        ({"beta2": 1}, "beta2 = 1, allowed: less than 1"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(BertError, match=message):
        run_training(SETTINGS._replace(**change))


@pytest.mark.parametrize("name", ["report_every", "checkpoint_every"])
def test_intervals_are_whole_numbers(name):
    with pytest.raises(BertError, match=f"{name} = 0, allowed: an int >= 1"):
        run_training(**{name: 0})


def test_rng_must_be_a_generator():
    with pytest.raises(BertError, match="rng is int, allowed: numpy.random.Generator"):
        run_training(rng=42)
