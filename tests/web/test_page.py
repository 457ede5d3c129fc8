"""The page as text: its rules, its constants, its examples."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bert_np import BertError, fill_mask, load_pretrained, minimal
from bert_np.files.weights import read_headers
from bert_np.functional import ERF_COEFFICIENTS
from bert_np.plotting import colours
from bert_np.web import __main__, build_page, page
from bert_np.web.constants import tensor_table

POLICY = 'http-equiv="Content-Security-Policy" content="default-src \'none\''
NETWORK = r"http|//cdn|require\(|import |url\(|fetch\(|XMLHttp|WebSocket|eval\("
TOY = page.PACKAGED["toy"]


@pytest.fixture(scope="module")
def text():
    return build_page()


def data_of(text):
    return json.loads(re.search('id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_asks_for_nothing_and_may_not(text):
    assert text.count(POLICY) == 1
    rest = text.replace(POLICY, "")
    assert not re.search(NETWORK, re.sub(r"[A-Za-z0-9+/]{100,}=*", "", rest))
    assert not re.search(r"\b(src|href)\s*=", re.sub("<script.*", "", rest, flags=re.S))
    assert "innerHTML" not in text and "insertAdjacentHTML" not in text


def test_the_page_is_small_and_whole(text):
    assert len(text.encode()) < 1_200_000
    assert text.startswith("<!doctype html>") and text.count("<h1>") == 1
    ids = re.findall(r'\bid="([^"$]+)"', text)
    assert len(ids) == len(set(ids)) > 20
    labels = re.findall(r'<label for="([^"]+)"', text)
    assert len(labels) == 3 and set(labels) <= set(ids)
    called = set(re.findall(r'find\("(\w+)"\)', text))
    assert called <= set(ids) and not re.search(r"\$[a-z_]+\b(?!\{)", text)


def test_the_style_has_the_colours_of_the_figures(text):
    for name in ("QUERY", "KEY", "VALUE", "HATCH"):
        assert getattr(colours, name) in text
    for medium in ("prefers-color-scheme: dark", "max-width: 520px", "media print"):
        assert medium in text


def test_bert_js_mirrors_minimal_py():
    script = page.page_part("bert.js")
    assert len(script.splitlines()) <= 250
    ours = re.findall(r"^def (\w+)", Path(minimal.__file__).read_text("utf-8"), re.M)
    theirs = re.findall(r"^function (\w+)", script, re.M)
    mirrored = [re.sub("_(.)", lambda m: m[1].upper(), name) for name in ours]
    assert [name for name in theirs if name in mirrored] == mirrored


def test_constants_are_stated_in_python_alone(text):
    scripts = "".join(page.page_part(f"{name}.js") for name in page.SCRIPTS)
    names = [entry["name"] for entry in tensor_table()] + ["gelu_new", "1e-12"]
    for constant in (*map(str, ERF_COEFFICIENTS), *names, "[MASK]|", "440154"):
        assert constant not in scripts
    assert data_of(text)["constants"]["erfCoefficients"] == list(ERF_COEFFICIENTS)


def test_the_table_of_tensors_tells_the_shapes_of_the_toys_file():
    config = json.loads((TOY / "config.json").read_text("utf-8"))
    expected = {}
    for entry in tensor_table():
        shape = tuple(config.get(size, size) for size in entry["shape"])
        for layer in range(config["num_hidden_layers"]):
            expected[entry["name"].replace("{}", str(layer))] = ("F32", shape)
    del expected["cls.predictions.decoder.weight"]  # the toy's is the word table
    (found,) = read_headers(TOY).values()
    assert {
        name.removeprefix("bert."): entry for name, entry in found.items()
    } == expected


def test_the_toy_solves_the_examples(text):
    toy = load_pretrained("toy")
    examples = data_of(text)["model"]["examples"]
    asked = [e for e in examples if "[MASK]" in e["text"] + e["pair"]]
    assert len(asked) == 5 and len(examples) == 7
    for example in asked:
        joined = (example["text"], example["pair"] or None)
        encoding = toy.tokenizer.encode(*joined)
        assert encoding.tokens[example["query"]] == "[MASK]"
        if "[MASK]" in example["text"] and not example["pair"]:
            best = fill_mask(example["text"], *toy)[0][0][0]
            assert re.search(rf"\b{best}\b", example["hint"].split("allows:")[1])


def test_the_weights_inside_are_the_file(text):
    packed = data_of(text)["model"]
    weights = np.frombuffer((TOY / "model.safetensors").read_bytes(), np.uint8)
    assert packed["weights"] == page.base64_text(weights.tobytes())
    assert packed["texts"]["vocab.txt"] == (TOY / "vocab.txt").read_text("utf-8")


def test_the_command_writes_a_page_or_says_why_not(tmp_path, capsys):
    assert __main__.main([str(tmp_path / "bert.html")]) == 0
    assert "MB, open it in a browser" in capsys.readouterr().out
    assert (tmp_path / "bert.html").read_text("utf-8").endswith("</html>\n")
    assert __main__.main([str(tmp_path / "no" / "bert.html")]) == 1
    assert "error: path = " in capsys.readouterr().err
    with pytest.raises(BertError, match="name_or_folder"):
        build_page(tmp_path / "nothing")
