"""Folders of sentence-transformers, and what else a folder's files say."""

import json

import numpy as np
import pytest
from files.folders import CONFIG, VOCAB, accept, cases, make, refuse

from bert_np import BertError, embed_sentences
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.files.weights import INDEX

KINDS = ("Transformer", "Pooling", "Normalize", "Dense")


def put(folder, asks=None, modules=None, path="1_Pooling", **config):
    """The tiny checkpoint with a pooling and the modules of these numbers."""
    make(folder, **config)
    if modules is not None:
        paths = ("", path, "2_Normalize", "2_Dense")
        kinds = [f"sentence_transformers.models.{kind}" for kind in KINDS]
        entries = [{"idx": i, "path": paths[i], "type": kinds[i]} for i in modules]
        (folder / "modules.json").write_text(json.dumps(entries))
    if asks is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(asks))
    return folder


POOLINGS = [
    ({}, "mean"),
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
    ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, "max+mean"),
    ({"pooling_mode": "lasttoken", "pooling_mode_cls_token": True}, "lasttoken"),
    ({"pooling_mode": ["mean", "cls"]}, "mean+cls"),
]


@pytest.mark.parametrize("pooling, wanted", POOLINGS)
@pytest.mark.parametrize("modules", [None, [0, 1], [0, 1, 2]], ids=str)
def test_the_pooling_of_the_folder_is_in_the_config(tmp_path, pooling, wanted, modules):
    model, _ = accept(put(tmp_path / "a", pooling, modules))
    assert model.config.pooling == wanted
    save_pretrained(tmp_path / "b", *model)
    assert load_checkpoint(tmp_path / "b").config == model.config


REFUSED = [
    (
        "Dense",
        {"modules": [0, 1, 3]},
        "modules.json",
        "'Dense'",
        "without modules.json",
    ),
    ("no pooling", {"modules": [0]}, "modules.json lists ['Transformer']"),
    ("missing", {"modules": [0, 1]}, "1_Pooling/config.json is missing"),
    ("above", {"modules": [0, 1], "path": "../x"}, "path '../x', allowed"),
    (
        "unknown",
        {"asks": {"pooling_mode": ["best", 3]}},
        "1_Pooling/config.json: pooling = 'best+3', allowed",
    ),
    (
        "near key",
        {"asks": {"pooling_mode_cls_tokens": True}},
        "has the key 'pooling_mode_cls_tokens'",
        "did you mean 'pooling_mode_cls_token'?",
    ),
    (
        "unknown key",
        {"asks": {"pooling_mode_best": True}},
        "1_Pooling/config.json has the key 'pooling_mode_best', no known pooling",
    ),
    (
        "no pooling",
        {"asks": {"pooling_mode_cls_token": False}},
        "1_Pooling/config.json: none of pooling_mode_cls_token is true",
    ),
    (
        "no bool",
        {"asks": {"pooling_mode_cls_token": "false"}},
        "pooling_mode_cls_token = 'false', allowed: true, false",
    ),
    (
        "another width",
        {"asks": {"word_embedding_dimension": 768}},
        "word_embedding_dimension = 768 in 1_Pooling/config.json",
        "hidden_size = 32 in config.json",
    ),
    (
        "two poolings",
        {"asks": {"pooling_mode": "max"}, "pooling": "cls"},
        "'cls' in config.json, but 'max' in 1_Pooling",
    ),
]


@pytest.mark.parametrize("given, words", cases(REFUSED))
def test_modules_that_are_not_applied_are_refused(tmp_path, given, words):
    refuse(put(tmp_path, **given), *words)


def test_a_model_is_not_saved_beside_the_pooling_of_another(tmp_path):
    params, config, _ = load_checkpoint(make(tmp_path / "a"))
    folder = put(tmp_path / "b", {"pooling_mode": "cls"})
    with pytest.raises(BertError, match="= 'mean', but .* is 'cls'; remove 1_Pooling"):
        save_pretrained(folder, params, config)


@pytest.mark.parametrize(
    "name, meant",
    [
        ("tokenizer-config.json", "tokenizer_config.json"),
        ("Vocab.txt", "vocab.txt"),
        ("vocab (1).txt", "vocab.txt"),
        ("special_token_map.json", "special_tokens_map.json"),
        ("module.json", "modules.json"),
    ],
)
def test_a_misspelled_file_is_not_passed_over(tmp_path, name, meant):
    if (tmp_path / name).exists() or (tmp_path / meant).exists():
        pytest.skip("names that differ in case are one here")
    folder = make(tmp_path, files={name: "{}"})
    if (folder / meant).exists():
        pytest.skip("names that differ in case are one here")
    message = refuse(folder, name, f"did you mean {meant!r}? Rename or remove it")
    assert message.startswith(f"{name} is no file of a model")


def test_other_files_do_not_count_as_misspelled(tmp_path):
    names = ["generation_config.json", "tokenizer_old.json", "vocab.json", "README.md"]
    names += ["config_sentence_transformers.json", "training_args.bin", "merges.txt"]
    accept(make(tmp_path, files=dict.fromkeys(names, "{}")))


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("name", ["{}", "bert_{}", "My {}"])
def test_a_missing_file_may_have_almost_its_name(tmp_path, missing, name):
    folder = make(tmp_path)
    near = name.format(missing.title() if name == "{}" else missing)
    (folder / missing).rename(folder / near)
    if (folder / missing).exists():
        pytest.skip("names that differ in case are one here")
    words = f"{missing} is missing", f"; did you mean {near!r}? Rename it"
    refuse(folder, *words)
    (folder / near).rename(folder / missing)
    accept(folder)


def test_modules_must_be_a_list(tmp_path):
    refuse(make(tmp_path, files={"modules.json": "{}"}), "modules.json = {}", "a list")


def test_a_transformer_in_another_folder_is_refused(tmp_path):
    folder = put(tmp_path, {}, [0, 1])
    text = (folder / "modules.json").read_text()
    text = text.replace('"path": ""', '"path": "0_Transformer"')
    (folder / "modules.json").write_text(text)
    refuse(folder, "path '0_Transformer' of Transformer, allowed: ''")


def test_every_file_that_is_not_read_is_reported(tmp_path):
    files = dict.fromkeys(["pytorch_model.bin", "README.md", INDEX, ".hidden"], "x")
    make(tmp_path, files=files)
    (tmp_path / "2_Pooling").mkdir()
    _, report = accept(tmp_path)
    unread = ["2_Pooling/", "README.md", INDEX, "pytorch_model.bin"]
    assert report["ignored"][-4:] == unread
    assert report["no tokenizer"] == ["neither vocab.txt nor tokenizer.json is there"]


def test_defaults_and_unread_files_are_reported(tmp_path):
    config = {k: v for k, v in CONFIG.items() if k != "hidden_act"}
    files = {"config.json": json.dumps(config), "sentence_bert_config.json": "{}"}
    _, report = accept(make(tmp_path, files=files))
    assert report["defaults"] == ["hidden_act = 'gelu'"]
    assert "sentence_bert_config.json" in report["ignored"]
    assert "config.json use_cache" in report["ignored"]


@pytest.mark.references
@pytest.mark.parametrize("pooling", ["cls", "max", "mean", "weightedmean", "lasttoken"])
def test_vectors_equal_those_of_sentence_transformers(tmp_path, monkeypatch, pooling):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    make(tmp_path / "a", files={"vocab.txt": VOCAB})
    parts = [modules.Transformer(str(tmp_path / "a"))]
    parts += [modules.Pooling(CONFIG["hidden_size"], pooling), modules.Normalize()]
    their = SentenceTransformer(modules=parts, device="cpu")
    their.save_pretrained(str(tmp_path / "b"))
    model = load_checkpoint(tmp_path / "b")
    assert model.config.pooling == pooling
    texts = ["a the The", "them", "a a a a é the"]
    vectors = embed_sentences(texts, *model)
    np.testing.assert_allclose(vectors, their.encode(texts), atol=1e-5)
