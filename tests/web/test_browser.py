"""The page in a real browser, beside the library: the same numbers."""

import json
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from browser import Browser
from golden_values import GOLDEN
from web.models import MODELS, convert, random_model
from web.pages import assert_close, drop, library_results, open_folder, page_results

from bert_np import load_pretrained
from bert_np.analysis import without_head
from bert_np.files.pretrained import fetch

pytestmark = pytest.mark.browser
CASES = json.loads((GOLDEN / "tokenizer.json").read_text("utf-8"))
OLD = unicodedata.ucd_3_2_0


def random_texts(tokenizer, rng, count):
    """Texts of pieces of the vocabulary, and pairs of them."""
    words = [t for t in tokenizer.tokens if t.isalpha()] + [".", ",", "[MASK]"]
    for _ in range(count):
        lengths = rng.integers(1, 14, 2)
        text, pair = (" ".join(rng.choice(words, n)) for n in lengths)
        yield text, pair if rng.random() < 0.5 else ""


def assert_same(page, model, text, pair=""):
    ids, segments, found = page_results(page, text, pair)
    encoding = model.tokenizer.encode(text, pair or None)
    assert ids == encoding.input_ids.tolist()
    assert segments == encoding.segment_ids.tolist()
    assert_close(found, library_results(model, ids, segments))


def test_the_toy_gives_the_same_numbers(page):
    toy, rng = load_pretrained("toy"), np.random.default_rng(0)
    for text, pair in random_texts(toy.tokenizer, rng, 20):
        assert_same(page, toy, text, pair)
    assert page.errors() == ([], [])


@pytest.fixture(scope="module")
def minilm_page(chromium, page_file, minilm):
    """A second browser in which MiniLM runs, opened once."""
    with Browser() as browser:
        browser.open(page_file.as_uri())
        browser.wait("shown")
        open_folder(browser, fetch("all-MiniLM-L6-v2"))
        yield browser


def test_minilm_gives_the_same_numbers(minilm_page, minilm):
    report = minilm_page.run("document.getElementById('report').textContent")
    assert report == (
        "Running: all-MiniLM-L6-v2, uncased, 6 layers of 12 attention heads, hidden "
        "size 384, 22,713,216 parameters, no MLM head."
    )
    rng = np.random.default_rng(1)
    for text, pair in random_texts(minilm.tokenizer, rng, 6):
        assert_same(minilm_page, minilm, text, pair)
    guesses = minilm_page.run("document.getElementById('guesses').textContent")
    assert guesses == "This model has no MLM head, so it makes no guesses."


# ------------------------------------------------------------------ text to ids
def page_ids(page, pairs, rules=None):
    script = f"""{json.dumps(pairs)}.map(([text, pair]) => {{
      const rules = {{ ...model.tokenizer, ...{json.dumps(rules or {})} }};
      const found = encode(text, pair, rules);
      return [found.inputIds, found.segmentIds]; }})"""
    return page.run(script)


def test_golden_texts_give_the_same_ids(minilm_page):
    singles = page_ids(minilm_page, [(case["text"], "") for case in CASES["single"]])
    assert singles == [[c["ids"], c["type_ids"]] for c in CASES["single"]]
    assert len(singles) == 45


def is_stable(ch):
    """Whether Unicode 3.2 knew this character as today's tables do."""
    names = ("category", "combining", "decomposition")
    return OLD.category(ch) not in ("Cn", "Cs") and all(
        getattr(OLD, name)(ch) == getattr(unicodedata, name)(ch) for name in names
    )


@pytest.mark.parametrize(
    "rules",
    [{}, {"lowercase": False}, {"strip_accents": False}]
    + [{"handle_chinese_chars": False}, {"lowercase": False, "strip_accents": True}],
)
def test_any_text_gives_the_same_ids(minilm_page, minilm, rules):
    rng = np.random.default_rng(2)
    stable = [chr(code) for code in range(0x110000) if is_stable(chr(code))]
    common = list("abcdeABCDE ,.!?-'éÉßİΣ\t\n\u0301\u0334中[]") + ["[MASK]", "[SEP]"]
    pool = [stable[i] for i in rng.integers(0, len(stable), 3000)] + common * 40
    texts = ["".join(rng.choice(pool, n)) for n in rng.integers(1, 25, 300)]
    tokenizer = replace(minilm.tokenizer, **rules)
    expected = [tokenizer.encode(text).input_ids.tolist() for text in texts]
    found = page_ids(minilm_page, [(text, "") for text in texts], rules)
    assert [ids for ids, _ in found] == expected


# ------------------------------------------------------------- models of one's own
def test_any_sizes_and_activations(page, tmp_path):
    for name, sizes in MODELS.items():
        model = random_model(tmp_path / name, **sizes)
        assert open_folder(page, tmp_path / name).startswith(f"Running: {name}")
        assert_same(page, model, "a b [MASK] c", "d e f")


@pytest.mark.parametrize("kind", ["F64", "F16", "BF16"])
def test_any_type_of_numbers(page, tmp_path, kind):
    random_model(tmp_path / "own", **MODELS["erf"])
    convert(tmp_path / "own", kind)
    assert open_folder(page, tmp_path / "own").startswith("Running: own")
    assert_same(page, load_pretrained(tmp_path / "own"), "a b [MASK] c", "d e f")


def reported(page):
    """What the page reports, once it has opened a dropped model or refused it."""
    page.wait("shown || find('report').classList.contains('error')")
    return page.run("find('report').textContent")


def test_a_dropped_folder_or_its_files_are_opened(page, tmp_path):
    model = random_model(tmp_path / "own", **MODELS["erf"])
    (tmp_path / "own" / "old").mkdir()  # what lies deeper is of another model
    (tmp_path / "own" / "old" / "config.json").write_text("{}")
    page.run("shown = undefined")
    drop(page, [tmp_path / "own"])
    assert reported(page).startswith("Running: own, ")
    assert_same(page, model, "a b [MASK] c", "d e f")
    page.run("find('back').click()")
    page.wait("model.isBuiltIn && shown")
    page.run("shown = undefined")
    drop(page, [path for path in (tmp_path / "own").iterdir() if path.is_file()])
    assert reported(page).startswith("Running: your model, ")
    assert_same(page, model, "a b [MASK] c")
    assert page.errors() == ([], [])


def test_minilm_is_opened_by_a_drop(page, minilm):
    page.run("shown = undefined")
    drop(page, [fetch("all-MiniLM-L6-v2")])
    assert "6 layers of 12 attention heads" in reported(page)
    assert_same(page, minilm, "Where is the key?", "I left it on the table.")


def test_what_is_dropped_and_no_model_is_refused_or_ignored(page, tmp_path):
    (tmp_path / "notes.txt").write_text("a shopping list")
    before = page.run("model.name")
    drop(page, [tmp_path / "notes.txt"])
    page.wait("find('report').classList.contains('error')")
    assert "config.json" in page.run("find('report').textContent")
    assert page.run("model.name") == before and page.run("!!shown")
    page.run(
        "dispatchEvent(new DragEvent('drop', { dataTransfer: new DataTransfer() }))"
    )
    assert page.errors() == ([], [])


# --------------------------------------------------------------------- changes
def test_changes_do_what_they_say(page):
    toy = load_pretrained("toy")
    text, off = "anna has a red ball and a blue hat .", [(0, 1), (2, 3)]
    params = toy.params
    for layer, head in off:
        params = without_head(params, toy.config, layer, head)
    for layer in range(len(params["layers"])):  # scores / 2
        layers = list(params["layers"])
        attention = dict(layers[layer]["attention"])
        attention["query"] = {n: x / 2 for n, x in attention["query"].items()}
        layers[layer] = layers[layer] | {"attention": attention}
        params = params | {"layers": layers}
    count = len(toy.tokenizer.encode(text).tokens)
    mask = [0 if i in (2, 5) else 1 for i in range(count)]
    off = [f"{layer}.{head}" for layer, head in off]
    ids, segments, found = page_results(page, text, "", mask, 2, off)
    expected = library_results(toy._replace(params=params), ids, segments, mask)
    assert_close(found, expected)
    whole = library_results(toy, ids, segments)
    assert np.abs(whole["mlm"] - expected["mlm"]).max() > 0.1
