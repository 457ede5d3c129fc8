"""explore: the logic behind its widgets, and what is shown without them."""

import base64
import dataclasses
import json
import sys

import numpy as np
import pytest
from oracle import CONFIG, random_params

import bert_np
from bert_np import BertError, Tokenizer
from bert_np.plotting import explore
from bert_np.plotting.explorer import connect, new_widgets, view_of
from bert_np.plotting.html import Html, write_page

EXPLORER = sys.modules[view_of.__module__]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "mat"]
WORDS += ["##s", "on", "<", ">", "script", "$", "x"]
PARAMS = random_params()
MODEL = (PARAMS, CONFIG, Tokenizer.from_tokens(WORDS))
TEXT = "the cat sat"


def maps_in(viewer):
    """The maps that the page gets, (L, A, T, T), and their tokens."""
    data = json.loads(viewer.data)
    numbers = np.frombuffer(base64.b64decode(data["values"]), np.uint8)
    return numbers.reshape(data["shape"]) / 255, data["keys"]


def expected_maps(ids):
    return np.stack(bert_np.bert([ids], PARAMS, CONFIG)["attention_probs"])[:, 0]


# ------------------------------------------------------------- the view
def test_a_view_holds_the_maps_of_all_layers_and_heads():
    view = view_of(TEXT, MODEL)
    maps, tokens = maps_in(view.viewer)
    assert view.tokens == tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    np.testing.assert_allclose(maps, expected_maps([2, 5, 6, 7, 3]), atol=1 / 509)
    assert view.guesses == []


def test_a_masked_token_is_run_as_mask_and_guessed():
    view = view_of(TEXT, MODEL, masked=[2])
    maps, tokens = maps_in(view.viewer)
    assert view.tokens == tokens and tokens[2] == "[MASK]"
    np.testing.assert_allclose(maps, expected_maps([2, 5, 4, 7, 3]), atol=1 / 509)
    best = bert_np.fill_mask("the [MASK] sat", *MODEL)[0]
    assert view.guesses == ["2 cat: " + ", ".join(f"{w} {p:.2f}" for w, p in best)]
    bare = ({k: v for k, v in PARAMS.items() if k != "mlm"}, *MODEL[1:])
    assert "no MLM head" in view_of(TEXT, bare, masked=[1, 2]).guesses[0]


def test_a_text_whose_maps_no_page_holds_is_refused_before_the_model_runs():
    long = dataclasses.replace(CONFIG, max_position_embeddings=999)
    with pytest.raises(
        BertError, match="text has 502 tokens; the 6 heads .* up to 316"
    ):
        view_of("the " * 500, (PARAMS, long, MODEL[2]))


# ---------------------------------------------------------- the controls
def controls_of(text=TEXT):
    """The controls, and the list of all that they have shown."""
    controls, shown = new_widgets(text), []
    connect(controls, MODEL, shown.append)
    return controls, shown


def assert_shown(shown, count, text=TEXT, masked=()):
    assert len(shown) == count
    assert shown[-1].data == view_of(text, MODEL, masked).viewer.data


def test_each_token_has_a_button_that_masks_it():
    controls, shown = controls_of()
    assert_shown(shown, 1)
    buttons = controls.tokens.children
    assert [b.description for b in buttons] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert [b.disabled for b in buttons] == [True, False, False, False, True]
    buttons[2].value = True
    assert_shown(shown, 2, masked=[2])
    assert controls.guesses.value.startswith("2 cat: ")
    assert [b.button_style for b in buttons] == ["", "", "warning", "", ""]
    buttons[2].value = False
    assert controls.guesses.value == "" and buttons[2].button_style == ""
    buttons[2].value = True
    controls.text.value = "the mats on"
    assert [b.description for b in controls.tokens.children[2:4]] == ["mat", "##s"]
    assert not any(b.value for b in controls.tokens.children)
    assert_shown(shown, 5, text="the mats on")
    assert controls_of()[0].text.value == TEXT  # cells know nothing of each other


@pytest.mark.parametrize("start", [TEXT, ""])
def test_a_bad_text_leaves_a_message_and_the_last_viewer(start):
    controls, shown = controls_of(start)
    before, buttons = len(shown), controls.tokens.children
    assert len(buttons) == (5 if start else 0)
    controls.text.value = "the " * 30
    assert "text has 32 tokens" in controls.message.value and len(shown) == before
    assert controls.tokens.children == buttons
    controls.text.value = TEXT
    assert controls.message.value == ""
    assert_shown(shown, before + 1)


def test_no_text_becomes_markup_or_a_formula(monkeypatch):
    controls, _ = controls_of("<script> $x$")
    controls.tokens.children[2].value = True
    assert "<script" not in controls.guesses.value
    assert "$x$" not in controls.guesses.value

    def refuse(*_, **__):
        raise BertError("<script> $x$")

    monkeypatch.setattr(EXPLORER, "view_of", refuse)
    controls.tokens.children[2].value = False
    shown = "<b>&lt;script&gt; <span>$</span>x<span>$</span></b>"
    assert controls.message.value == shown


# ------------------------------------------------------ without a notebook
def test_without_controls_there_is_the_viewer_and_one_line(monkeypatch, capsys):
    without = "so here is the viewer without its text box\n"
    assert explore(TEXT, MODEL).data == view_of(TEXT, MODEL).viewer.data
    assert capsys.readouterr().out == f"this is not a notebook, {without}"
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "7 tokens" in repr(explore("the cat is tired .", "toy"))
    assert capsys.readouterr().out == f"ipywidgets is not installed, {without}"


def show_in_a_notebook(monkeypatch):
    """What explore hands to a notebook, one after the other."""
    shown = []
    for place in ("display", "DisplayHandle.display", "DisplayHandle.update"):
        show = lambda *data, raw: shown.append(data[-1])  # noqa: E731
        monkeypatch.setattr(f"IPython.display.{place}", show)
    monkeypatch.setattr(EXPLORER, "missing_front_end", lambda: "")
    assert explore(TEXT, MODEL) is None
    return shown


def test_in_a_notebook_controls_come_first_and_the_viewer_is_kept(monkeypatch):
    widget, _, viewer = show_in_a_notebook(monkeypatch)
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert widget["text/plain"].startswith("Run this cell for a text box")
    assert "startViewer" in viewer["text/html"] and "<img" in viewer["text/html"]
    assert viewer["text/plain"].startswith("Attention of 2 layers of 3 heads")


@pytest.mark.browser
def test_layer_head_and_choices_stay_for_the_next_text(monkeypatch, chromium, tmp_path):
    *_, viewer = show_in_a_notebook(monkeypatch)
    path = write_page(tmp_path / "cell.html", "cell", Html(viewer["text/html"]))
    chromium.open(path.as_uri())
    chromium.run(
        """var all = (selector) => [...document.querySelector("div > div")
          .shadowRoot.querySelectorAll(selector)];
        var change = (name, value, type) => { all(name)[0].value = value;
          all(name)[0].dispatchEvent(new Event(type)); };
        change("input.layer", 1, "input"); change("input.head", 2, "input");
        change(".special", "hide", "change");"""
    )
    chromium.run(  # as a front end shows what replaces an output
        """var script = document.querySelector("script");
        var root = document.querySelector("body > div");
        root.replaceChildren(); new Function(script.textContent)();"""
    )
    state = chromium.run("all('.state')[0].textContent")
    assert state.startswith("layer 1, head 2 \u00b7 [CLS] and [SEP] hidden")
    assert chromium.run("all('input.layer, input.head').map((x) => x.value)") == [
        "1",
        "2",
    ]
    assert chromium.run("all('tbody tr').length") == 3
    assert chromium.errors() == ([], [])
