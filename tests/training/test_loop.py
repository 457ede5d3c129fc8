"""Training runs: the same bits, stopped and resumed or not."""

import os

import numpy as np
import pytest
from small_run import (
    CONFIG,
    SETTINGS,
    bits,
    make_batch,
    new_params,
    run_training,
    seeded,
)

from bert_np import BertConfig, BertError
from bert_np.training import archive
from bert_np.training.adam import adam, clip_by_global_norm, init_adam
from bert_np.training.loop import TrainingSettings, train_step
from bert_np.training.pretraining import losses_and_gradients
from bert_np.training.run import load_run, save_run, start_run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def test_the_model_learns():
    settings = TrainingSettings(steps=200, warmup_steps=10, peak_rate=2e-2)
    _, history = run_training(settings, make=lambda rng: make_batch(rng, 32))
    losses = [entry["mlm_loss"] for entry in history]
    assert np.mean(losses[:5]) == pytest.approx(np.log(13), abs=0.2)  # guessing
    # Without attention to the other words the loss cannot fall below log 9.
    assert np.mean(losses[-20:]) < 0.75 * np.log(9)
    assert np.mean([entry["mlm_accuracy"] for entry in history[-20:]]) > 0.4


def test_a_step_is_forward_backward_clip_adam():
    settings = SETTINGS._replace(max_norm=0.5)
    start = start_run(new_params(), seeded())
    run = train_step(start, CONFIG, make_batch, seeded(), settings)
    rng, params = seeded(), new_params()
    metrics, grads = losses_and_gradients(params, CONFIG, make_batch(rng), rng=rng)
    grads, norm = clip_by_global_norm(grads, 0.5)
    assert norm > 0.5
    expected, _ = adam(params, grads, init_adam(params), 0.5e-3)
    assert bits(run["params"]) == bits(expected)
    assert run["history"] == [metrics | {"norm": norm, "rate": 0.5e-3, "tokens": 72}]
    assert run["rng"] == rng.bit_generator.state


def test_parts_in_threads():
    rng = seeded()
    run = start_run(new_params(), rng)
    settings = SETTINGS._replace(parts=4)
    for _ in range(settings.steps):  # one part after the other
        run = train_step(run, CONFIG, make_batch, rng, settings)
    params, history = run_training(settings)
    assert bits(params) == bits(run["params"]) and history == run["history"]


def test_progress_lines():
    lines = []
    _, history = run_training(report=lines.append, report_every=4)
    assert [line.split()[1] for line in lines] == ["4/9", "8/9", "9/9"]
    loss, words = (
        np.mean([entry[key] for entry in history[4:8]])
        for key in ("loss", "mlm_accuracy")
    )
    assert f"  loss {loss:.3f}  words {words:.1%}  pairs " in lines[1]


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "SFC64"])
def test_a_run_survives_its_file(kind, path):
    rng = seeded(getattr(np.random, kind))
    run = start_run(new_params(), rng)
    for _ in range(2):
        run = train_step(run, CONFIG, make_batch, rng, SETTINGS)
    save_run(path, run, CONFIG, SETTINGS)
    loaded = load_run(path, CONFIG, SETTINGS)
    other = seeded(getattr(np.random, kind))
    other.bit_generator.state = loaded["rng"]
    assert bits(loaded["params"]) == bits(run["params"])
    assert bits(loaded["adam"]["m"]) == bits(run["adam"]["m"])
    assert bits(loaded["adam"]["v"]) == bits(run["adam"]["v"])
    assert loaded["adam"]["step"] == loaded["step"] == 2
    assert loaded["history"] == run["history"]
    assert (other.random(1000) == rng.random(1000)).all()


# ------------------------------------------------------ stopped and resumed


def stopping(function, at):
    """The function, interrupted the at-th time it is called."""
    calls = []

    def stopped(*arguments, **options):
        calls.append(None)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return stopped


def assert_resumes(path, **options):
    """The resumed run ends with the bits of one that was never stopped."""
    found = run_training(
        rng=np.random.default_rng(7), checkpoint=path, resume=True, **options
    )
    expected = run_training()
    assert bits(found[0]) == bits(expected[0]) and found[1] == expected[1]


@pytest.mark.parametrize("at", [1, 5, 9])
def test_an_interrupted_run_resumes(at, path):
    with pytest.raises(KeyboardInterrupt):
        run_training(make=stopping(make_batch, at), checkpoint=path)
    assert load_run(path, CONFIG, SETTINGS)["step"] == at - 1
    path.with_name("run.npz.tmp").write_bytes(b"what a killed process leaves")
    assert_resumes(path)
    assert os.listdir(path.parent) == ["run.npz"]
    assert_resumes(path, make=stopping(make_batch, 1))  # it had ended: no step


@pytest.mark.parametrize("place", ["after_step", "report", "replace"])
def test_an_interruption_between_steps_does_no_harm(place, path, monkeypatch):
    options = {"report_every": 1, "checkpoint_every": 1, "checkpoint": path}
    if place == "replace":
        monkeypatch.setattr(archive.os, "replace", stopping(os.replace, 3))
    else:
        options[place] = stopping(lambda _: None, 3)
    with pytest.raises(KeyboardInterrupt):
        run_training(**options)
    monkeypatch.undo()
    steps = []
    assert_resumes(path, after_step=lambda run: steps.append(run["step"]))
    # If after_step was interrupted, the step and the call are repeated.
    assert steps == list(range(3 if place == "after_step" else 4, 10))


def test_a_run_ends_where_a_condition_holds(path):
    asked = []

    def stop_when(run):
        asked.append(run["step"])
        return run["step"] == 4

    params, history = run_training(checkpoint=path, stop_when=stop_when)
    assert len(history) == 4 and asked == [0, 1, 2, 3, 4]
    assert load_run(path, CONFIG, SETTINGS)["step"] == 4
    options = {"checkpoint": path, "resume": True, "make": stopping(make_batch, 1)}
    again, _ = run_training(**options, stop_when=stop_when)  # no step, no batch
    assert asked[5:] == [4] and bits(again) == bits(params)
    assert_resumes(path)  # without the condition it goes on as if never stopped


def test_an_interruption_without_a_checkpoint_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        run_training(make=stopping(make_batch, 2))


# ------------------------------------------------------------ bad arguments


@pytest.fixture
def saved(path):
    save_run(path, start_run(new_params(), seeded()), CONFIG, SETTINGS)
    return path


def test_a_failed_save_names_the_file_and_keeps_the_old_one(saved, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full)
    run = start_run(new_params(), seeded()) | {"step": 5}
    with pytest.raises(BertError, match="run.npz cannot be written.*No space"):
        save_run(saved, run, CONFIG, SETTINGS)
    assert load_run(saved, CONFIG, SETTINGS)["step"] == 0
    assert os.listdir(saved.parent) == ["run.npz"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"history": [{"loss": None}]}, "history: loss holds object"),
        ({"params": {"W": [1]}}, "run: params.W.0 is int, allowed: an array of float"),
    ],
)
def test_what_is_no_run_is_not_saved(change, message, path):
    run = start_run(new_params(), seeded()) | change
    with pytest.raises(BertError, match=message):
        save_run(path, run, CONFIG, SETTINGS)
    assert not path.exists()


def test_a_truncated_checkpoint_is_refused(saved):
    content = saved.read_bytes()
    for length in (0, 100, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:length])
        with pytest.raises(BertError, match="run.npz"):
            load_run(saved, CONFIG, SETTINGS)


@pytest.mark.parametrize(
    "facts, message",
    [
        ("[]", "run.npz: not a training run"),
        ("no JSON", "run.npz: not a training run"),
        ('{"config": 1, "settings": {}}', "run.npz: not a training run"),
        (np.array([{}], dtype=object), "run.npz.*pickle"),
    ],
)
def test_a_foreign_checkpoint_is_refused(facts, message, path):
    np.savez(path, facts=facts)
    with pytest.raises(BertError, match=message):
        load_run(path, CONFIG, SETTINGS)


def test_a_checkpoint_with_a_wrong_shape_is_refused(saved):
    with np.load(saved) as file:
        arrays = dict(file) | {"params.nsp.b": np.zeros(3)}
    np.savez(saved, **arrays)
    with pytest.raises(BertError, match=r"params.nsp.b has shape \(3,\), not \(2,\)"):
        load_run(saved, CONFIG, SETTINGS)


def test_a_checkpoint_of_another_run_is_refused(saved):
    with pytest.raises(BertError, match="its steps is 9, this run's is 10"):
        load_run(saved, CONFIG, SETTINGS._replace(steps=10))
    other = BertConfig.from_dict(CONFIG.to_dict() | {"intermediate_size": 15})
    with pytest.raises(BertError, match="intermediate_size is 14, this run's is 15"):
        load_run(saved, other, SETTINGS)
    with pytest.raises(BertError, match="rng is a MT19937, allowed: PCG64"):
        run_training(rng=seeded(np.random.MT19937), checkpoint=saved, resume=True)


def test_a_checkpoint_is_not_overwritten(saved):
    before = saved.read_bytes()
    with pytest.raises(BertError, match="run.npz exists: set resume=True or remove it"):
        run_training(checkpoint=saved)
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rng": 42}, "rng is int, allowed: numpy.random.Generator"),
        ({"resume": True}, "checkpoint is None: name the file"),
        ({"checkpoint": "nowhere/run.npz"}, "there is no folder 'nowhere'"),
        ({"report_every": 0}, "report_every = 0, allowed: an int >= 1"),
        ({"settings": 9}, "settings is int, allowed: TrainingSettings"),
        ({"steps": 1}, r"warmup_steps, hold_steps = \(2, 0\), steps = 1"),
        ({"hold_steps": 8}, r"= \(2, 8\), steps = 9, allowed"),
        ({"steps": 9.5}, "steps = 9.5, allowed"),
        ({"peak_rate": np.float32(1)}, "peak_rate = .*allowed: a number >= 0"),
        ({"parts": 2.0}, "parts = 2.0, allowed: an int >= 1"),
        ({"beta2": 1}, "beta2 = 1, allowed: less than 1"),
    ],
)
def test_wrong_arguments(options, message):
    if options.keys() <= SETTINGS._asdict().keys():
        options = {"settings": SETTINGS._replace(**options)}
    with pytest.raises(BertError, match=message):
        run_training(**options)


def test_a_diverged_run_stops_and_says_why():
    settings = SETTINGS._replace(peak_rate=1e30, max_norm=1e30)
    with np.errstate(all="ignore"), pytest.raises(BertError, match="try a lower"):
        run_training(settings)
