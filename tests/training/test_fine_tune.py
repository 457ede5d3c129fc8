"""Fine-tuning from examples to a saved model, stopped and resumed or not."""

import json
import os

import numpy as np
import pytest
from small_run import bits, silent

import bert_np
from bert_np import BertError, load_pretrained
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.training import fine_tune as module
from bert_np.training.fine_tune import (
    FineTuningSettings,
    evaluate_model,
    fine_tune,
    main,
)
from bert_np.tree import leaves, map_leaves

NAMES, THINGS = ["anna", "john", "mary"], ["ball", "hat", "book"]
COLOURS = ["red", "blue", "green"]
QUICK = FineTuningSettings(
    layers=1, epochs=2, batch_size=8, body_rate=2e-3, head_rate=2e-2, dropout=0.0
)
MODEL = load_pretrained("toy")


def sentences(count, seed=0):
    """(words, colour, thing) of sentences such as "anna has a red ball ."."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name, colour, thing = (rng.choice(x) for x in (NAMES, COLOURS, THINGS))
        yield [str(word) for word in (name, "has", "a", colour, thing, ".")]


def labelled(count, seed=0):
    return [(" ".join(words), words[3]) for words in sentences(count, seed)]


def several(count, seed=0):
    return [
        (" ".join(words), [words[3]] * (words[3] != "red") + [words[4]])
        for words in sentences(count, seed)
    ]


def numbers(count, seed=0):
    return [
        (" ".join(words), float(COLOURS.index(words[3])))
        for words in sentences(count, seed)
    ]


def tagged(count, seed=0):
    tags = ["NAME", "O", "O", "COLOUR", "THING", "O"]
    return [(words, tags) for words in sentences(count, seed)]


def asked(count, seed=0):
    for words in sentences(count, seed):
        text = " ".join(words)
        start = text.index(words[3])
        yield ("which colour ?", text), (start, start + len(words[3]))


def run(examples, seed=3, **options):
    options = {"settings": QUICK, "report": silent} | options
    return fine_tune(MODEL, examples, np.random.default_rng(seed), **options)


# ---------------------------------------------------------------- it learns


@pytest.mark.parametrize(
    "make, options",
    [
        (labelled, {}),
        (labelled, {"pooling": "mean", "layers": None}),
        (several, {"epochs": 4}),
        (tagged, {"task": "token"}),
        (lambda *a: list(asked(*a)), {"task": "span", "layers": 2}),
    ],
    ids=["sequence", "mean, all layers", "several labels", "token", "span"],
)
def test_the_model_learns_a_task(make, options):
    tuned, report = run(make(160), **options)
    assert evaluate_model(tuned, make(40, 1)).accuracy >= 0.95
    assert report["epochs"][report["best_epoch"] - 1]["accuracy"] >= 0.95
    assert report["epochs"][-1]["training_loss"] < report["epochs"][0]["training_loss"]


def test_numbers_are_learned():
    tuned, _ = run(numbers(160), epochs=4)
    answers = evaluate_model(tuned, numbers(40, 1))
    assert answers.accuracy is None and answers.loss < 0.05
    assert np.abs(answers.predictions - answers.labels).mean() < 0.2


# ------------------------------------------------------ what is trained, kept


@pytest.mark.parametrize("layers", [0, 1, 3, None])
def test_only_the_top_layers_change(layers):
    tuned, report = run(labelled(40), layers=layers, epochs=1)
    old, new = dict(leaves(MODEL.params)), dict(leaves(tuned.params))
    moved = {
        path.rsplit(".", 2)[0]
        for path in new
        if path in old and (new[path] != old[path]).any()
    }
    trained = {f"layers.{i}" for i in range(3 - (3 if layers is None else layers), 3)}
    parts = {path.split(".attention")[0].split(".ffn")[0] for path in moved}
    assert parts == trained | {"pooler"} | ({"embeddings"} if layers is None else set())
    assert new.keys() - old.keys() == {"sequence.W", "sequence.b"}
    assert not [path for path in new if path.startswith(("mlm", "nsp"))]
    counts = report["parameters"]
    assert sum(counts.values()) == bert_np.count_params(tuned.params)
    assert (report["kept_bytes"] > 0) == (layers is not None)


def test_keeping_the_frozen_outputs_changes_nothing():
    """As when the lower layers are run again each time, with a rate of 0."""
    exact = map_leaves(lambda _, array: array.astype(np.float64), MODEL.params)
    found = [
        fine_tune(
            (exact, *MODEL[1:]),
            labelled(24),
            np.random.default_rng(0),
            QUICK._replace(layers=layers, layer_decay=0.0, weight_decay=0.0),
            max_norm=1e9,
            report=silent,
        )
        for layers in (1, None)
    ]
    kept, recomputed = (dict(leaves(tuned.model.params)) for tuned in found)
    for path, array in recomputed.items():
        np.testing.assert_allclose(kept[path], array, rtol=0, atol=1e-9, err_msg=path)
    assert (kept["pooler.W"] != exact["pooler"]["W"]).any()


def test_the_best_epoch_is_kept(monkeypatch):
    kept, found = [], iter([0.5, 0.9, 0.9, 0.7])

    def answers(params, config, data):
        kept.append(params)
        accuracy = next(found)
        return type("Answers", (), {"accuracy": accuracy, "loss": 1 - accuracy})

    monkeypatch.setattr(module, "answer_rows", answers)
    tuned, report = run(labelled(24), epochs=4)
    assert report["best_epoch"] == 2 and len(report["epochs"]) == 4
    assert bits(tuned.params["sequence"]) == bits(kept[1]["sequence"])
    assert bits(tuned.params["sequence"]) != bits(kept[3]["sequence"])


def test_without_a_held_out_part_the_last_epoch_is_kept():
    tuned, report = run(labelled(24), held_out=0.0)
    assert report["best_epoch"] == 2 and report["examples"]["held_out"] == 0
    longer, _ = run(labelled(24), held_out=0.0, epochs=1)
    assert bits(tuned.params["sequence"]) != bits(longer.params["sequence"])


def test_the_held_out_part_is_not_trained_on(monkeypatch):
    seen = []
    step = module.fine_tuning_step

    def watched(state, batch, *rest):
        seen.append(batch["labels"])
        return step(state, batch, *rest)

    monkeypatch.setattr(module, "fine_tuning_step", watched)
    texts = [(f"anna has a red ball . {'a ' * i}", i) for i in range(20)]
    _, report = run(texts, epochs=1, held_out=0.25)
    assert len(set(np.concatenate(seen))) == report["examples"]["training"] <= 16


def test_a_report_says_everything():
    lines = []
    _, report = run(labelled(40), report=lines.append, report_every=2)
    assert json.loads(json.dumps(report)) == report
    assert report["settings"] == QUICK._asdict() and report["labels"] == sorted(COLOURS)
    assert report["examples"] == {"training": 36, "held_out": 4, "left_out": 0} or (
        report["examples"]["training"] + report["examples"]["held_out"] == 40
    )
    assert report["steps"] == 2 * -(-report["examples"]["training"] // 8)
    assert any("accuracy" in line for line in lines)


def test_a_head_goes_on_where_it_was():
    tuned, _ = run(labelled(80))
    further, report = fine_tune(
        tuned, labelled(40, 1), np.random.default_rng(0), QUICK, report=silent, epochs=1
    )
    assert further.config == tuned.config
    assert report["epochs"][0]["training_loss"] < 0.2
    other, report = fine_tune(
        tuned, several(40), np.random.default_rng(0), QUICK, report=silent, epochs=1
    )
    assert len(other.config.labels) > 3


# ------------------------------------------------------ stopped and resumed


def assert_same_run(found, expected):
    assert bits(found.model.params) == bits(expected.model.params)
    for name in found.report.keys() - {"seconds"}:
        assert found.report[name] == expected.report[name], name


def stop_at(calls, function):
    """The function, interrupted at one of its calls."""

    def stopped(*arguments, **options):
        calls.append(None)
        if len(calls) == stop_at.number:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return stopped


@pytest.mark.parametrize(
    "place, number",
    [("fine_tuning_step", 1), ("fine_tuning_step", 4), ("answer_rows", 1)],
)
def test_an_interrupted_fine_tuning_resumes(place, number, tmp_path, monkeypatch):
    settings, path = QUICK._replace(dropout=0.1), tmp_path / "run.npz"
    expected = run(labelled(24), settings=settings)
    stop_at.number = number
    monkeypatch.setattr(module, place, stop_at([], getattr(module, place)))
    with pytest.raises(KeyboardInterrupt):
        run(labelled(24), settings=settings, checkpoint=path)
    monkeypatch.undo()
    options = {"settings": settings, "checkpoint": path, "resume": True}
    assert_same_run(run(labelled(24), seed=9, **options), expected)
    assert os.listdir(tmp_path) == ["run.npz"]
    monkeypatch.setattr(module, "fine_tuning_step", None)  # it has ended: no step
    assert_same_run(run(labelled(24), **options), expected)


def test_threads_change_no_bit(monkeypatch):
    from threadpoolctl import threadpool_info

    before = threadpool_info()
    expected = run(labelled(24), parts=3)
    assert threadpool_info() == before
    monkeypatch.setattr(bert_np.fast.sys, "platform", "emscripten")
    assert_same_run(run(labelled(24), parts=3), expected)


def test_a_run_of_something_else_is_not_resumed(tmp_path):
    path = tmp_path / "run.npz"
    run(labelled(24), checkpoint=path)
    with pytest.raises(BertError, match="run.npz exists: set resume=True"):
        run(labelled(24), checkpoint=path)
    for options, message in [
        ({"epochs": 3}, "its epochs is 2, this run's is 3"),
        ({"examples": labelled(24, 1)}, "its examples is"),
        ({"layers": 2}, "its layers is 1"),
    ]:
        examples = options.pop("examples", labelled(24))
        with pytest.raises(BertError, match=message):
            run(examples, checkpoint=path, resume=True, **options)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BertError, match="run.npz"):
        run(labelled(24), checkpoint=path, resume=True)


# ----------------------------------------------------- saved and loaded again


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
def test_a_saved_classifier_answers_as_before(pooling, tmp_path):
    tuned, _ = run(labelled(40), pooling=pooling)
    save_pretrained(tmp_path, *tuned)
    loaded = load_checkpoint(tmp_path)
    assert loaded.config == tuned.config and loaded.config.labels == (
        "blue",
        "green",
        "red",
    )
    assert bits(loaded.params) == bits(tuned.params)
    found = evaluate_model(loaded, labelled(20, 1))
    assert (
        found.predictions == evaluate_model(tuned, labelled(20, 1)).predictions
    ).all()
    assert ("pooler" in loaded.params) == (pooling == "pooler")


@pytest.mark.references
@pytest.mark.parametrize("task", ["sequence", "token"])
def test_transformers_reads_the_folder_of_the_command(task, tmp_path):
    import torch
    import transformers

    write_file(tmp_path, task)
    command(tmp_path, "--task", task)
    kind = {"sequence": "Sequence", "token": "Token"}[task]
    auto = getattr(transformers, f"AutoModelFor{kind}Classification")
    model = auto.from_pretrained(tmp_path / "out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    texts = [text for text, _ in labelled(20, 1)]
    with torch.no_grad():
        theirs = model(**tokenizer(texts, return_tensors="pt", padding=True)).logits
    params, config, own = load_checkpoint(tmp_path / "out")
    out = bert_np.bert(**own.encode_batch(texts).inputs, params=params, config=config)
    ours = (
        bert_np.sequence_logits(out["pooler_output"], params)
        if task == "sequence"
        else bert_np.token_logits(out["last_hidden_state"], params)
    )
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=1e-5)
    assert model.config.id2label == dict(enumerate(config.labels))


# --------------------------------------------------------------- the command


def write_file(folder, task="sequence"):
    lines = [f"{text}\t{label}" for text, label in labelled(100)]
    if task == "token":
        lines = ["\n".join(f"{w}\t{t}" for w, t in zip(*x)) + "\n" for x in tagged(100)]
    if task == "span":
        lines = [f"{q}\t{t}\t{t[a:b]}" for (q, t), (a, b) in asked(100)]
    (folder / "file.tsv").write_text("\n".join(lines) + "\n")


def command(folder, *options):
    settings = "--layers 1 --epochs 3 --batch-size 8 --body-rate 2e-3 --head-rate 2e-2"
    main(
        [str(folder / "file.tsv"), str(folder / "out"), "--model", "toy"]
        + [*settings.split(), *options]
    )


@pytest.mark.parametrize("task", ["sequence", "token", "span"])
def test_the_command(task, tmp_path, capsys):
    write_file(tmp_path, task)
    command(tmp_path, "--task", task)
    assert sorted(os.listdir(tmp_path)) == ["file.tsv", "out"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    test = report["test"]
    assert test["examples"] + sum(report["examples"].values()) == 100
    assert test["accuracy"] >= 0.9 and "test accuracy" in capsys.readouterr().out
    if task != "span":
        assert test["baselines"] and test["macro_f1"] >= 0.9
    assert load_checkpoint(tmp_path / "out").params[task]["W"].shape[0] == 64


def test_the_command_refuses_to_overwrite(tmp_path):
    write_file(tmp_path)
    (tmp_path / "out").mkdir()
    with pytest.raises(SystemExit, match="out' exists: name a new folder"):
        command(tmp_path)
    assert os.listdir(tmp_path / "out") == []


def test_an_interrupted_command_continues(tmp_path, monkeypatch, capsys):
    write_file(tmp_path)
    stop_at.number = 5
    stopped = stop_at([], module.fine_tuning_step)
    monkeypatch.setattr(module, "fine_tuning_step", stopped)
    with pytest.raises(SystemExit, match="interrupted"):
        command(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file.tsv", "out.run.npz"]
    monkeypatch.undo()
    command(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file.tsv", "out"]


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    write_file(tmp_path)

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "rename", fails)
    with pytest.raises(SystemExit, match="cannot be written.*No space"):
        command(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file.tsv", "out.run.npz"]


# ------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layers": 4}, "layers = 4, allowed: None or 0..3"),
        ({"layres": 1}, "'layres'. is no argument of fine_tune"),
        ({"dropout": 1.0}, "dropout = 1.0, allowed: less than 1"),
        ({"batch_size": 0}, "batch_size = 0, allowed: an int >= 1"),
        ({"task": "tokens"}, "task = 'tokens', allowed: sequence, token, span"),
        ({"task": "token"}, r"examples\[0\]: words = '.*', allowed: a list of str"),
        ({"problem": "regression"}, "examples have one label, allowed: a number"),
        ({"pooling": "cls"}, "pooling = 'cls', allowed: pooler, mean"),
        ({"settings": 7}, "settings is int, allowed: FineTuningSettings"),
        ({"labels": ["red"]}, "label 'blue'|label 'green'|two or more"),
        ({"labels": ["red", "red"]}, "labels hold 'red', allowed: a str, once"),
        ({"resume": True}, "checkpoint is None: name the file"),
        ({"checkpoint": "nowhere/run.npz"}, "there is no folder 'nowhere'"),
        ({"report_every": 0}, "report_every = 0"),
    ],
)
def test_wrong_arguments_of_fine_tune(options, message):
    with pytest.raises(BertError, match=message):
        run(labelled(12), **options)


def test_wrong_models():
    rng = np.random.default_rng(0)
    for model, message in [
        (MODEL.params, "model is .*, allowed: .params, config, tokenizer"),
        ((*MODEL[:2], None), "its tokenizer is NoneType"),
        (({}, *MODEL[1:]), "missing"),
    ]:
        with pytest.raises(BertError, match=message):
            fine_tune(model, labelled(12), rng)
    body = {part: MODEL.params[part] for part in ("embeddings", "layers")}
    with pytest.raises(BertError, match="no pooler; settings allowed here: pooling="):
        fine_tune((body, *MODEL[1:]), labelled(12), rng)
    with pytest.raises(BertError, match=r"labels \('x',\), allowed: two or more"):
        run([("anna", "x")] * 9)
