"""explore: the logic behind its widgets, and what is shown without them."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from oracle import CONFIG, random_params
from plotting.samples import map_of, title_of

import bert_np
from bert_np import BertError, Tokenizer
from bert_np.plotting import describe, explore
from bert_np.plotting.explorer import connect, new_widgets, view_of

EXPLORER = sys.modules[view_of.__module__]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "mat"]
WORDS += ["##s", "on", "<", ">", "script", "$", "x"]
PARAMS = random_params()
MODEL = (PARAMS, CONFIG, Tokenizer.from_tokens(WORDS))
TEXT = "the cat sat"


def expected_map(ids, layer=0, head=0):
    return bert_np.bert([ids], PARAMS, CONFIG)["attention_probs"][layer][0, head]


# ------------------------------------------------------------- the view
def test_a_view_draws_the_map_of_the_layer_and_head():
    view = view_of(TEXT, MODEL, layer=1, head=2)
    assert view.tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    np.testing.assert_allclose(map_of(view.figure), expected_map([2, 5, 6, 7, 3], 1, 2))
    assert title_of(view.figure) == "layer 1, head 2" and view.guesses == []
    hidden = view_of(TEXT, MODEL, special="hide").figure
    expected = expected_map([2, 5, 6, 7, 3])[1:-1, 1:-1]
    np.testing.assert_allclose(map_of(hidden), expected)


def test_a_masked_token_is_run_as_mask_and_guessed():
    view = view_of(TEXT, MODEL, masked=[2])
    assert view.tokens[2] == "[MASK]"
    np.testing.assert_allclose(map_of(view.figure), expected_map([2, 5, 4, 7, 3]))
    best = bert_np.fill_mask("the [MASK] sat", *MODEL)[0]
    assert view.guesses == ["2 cat: " + ", ".join(f"{w} {p:.2f}" for w, p in best)]
    bare = ({k: v for k, v in PARAMS.items() if k != "mlm"}, *MODEL[1:])
    assert "no MLM head" in view_of(TEXT, bare, masked=[1, 2]).guesses[0]


# ---------------------------------------------------------- the controls
def controls_of(text=TEXT):
    """The controls, and the list of all that they have drawn."""
    controls, drawn = new_widgets(text, CONFIG), []
    connect(controls, MODEL, drawn.append)
    return controls, drawn


def assert_drawn(drawn, count, text=TEXT, **view):
    assert len(drawn) == count
    assert describe(drawn[-1]) == describe(view_of(text, MODEL, **view).figure)


def test_sliders_have_the_range_of_the_model_and_redraw():
    controls, drawn = controls_of()
    assert_drawn(drawn, 1)
    assert describe(drawn[0]) in controls.words.value and not controls.message.value
    assert (controls.layer.max, controls.head.max) == (1, 2)
    controls.layer.value = 1
    controls.head.value = 2
    controls.special.value = "renormalise"
    assert_drawn(drawn, 4, layer=1, head=2, special="renormalise")
    assert controls_of()[0].layer.value == 0  # cells know nothing of each other


def test_each_token_has_a_button_that_masks_it():
    controls, drawn = controls_of()
    buttons = controls.tokens.children
    assert [b.description for b in buttons] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert [b.disabled for b in buttons] == [True, False, False, False, True]
    buttons[2].value = True
    assert_drawn(drawn, 2, masked=[2])
    assert controls.guesses.value.startswith("2 cat: ")
    assert [b.button_style for b in buttons] == ["", "", "warning", "", ""]
    buttons[2].value = False
    assert controls.guesses.value == "" and buttons[2].button_style == ""
    buttons[2].value = True
    controls.text.value = "the mats on"
    assert [b.description for b in controls.tokens.children[2:4]] == ["mat", "##s"]
    assert not any(b.value for b in controls.tokens.children)
    assert_drawn(drawn, 5, text="the mats on")


@pytest.mark.parametrize("start", [TEXT, ""])
def test_a_bad_text_leaves_a_message_and_the_last_picture(start):
    controls, drawn = controls_of(start)
    before, buttons = len(drawn), controls.tokens.children
    assert len(buttons) == (5 if start else 0)
    controls.text.value = "the " * 30
    assert "text has 32 tokens" in controls.message.value and len(drawn) == before
    assert controls.tokens.children == buttons
    controls.text.value = TEXT
    assert controls.message.value == ""
    assert_drawn(drawn, before + 1)


def test_no_text_becomes_markup_or_a_formula(monkeypatch):
    controls, _ = controls_of("<script> $x$")
    controls.tokens.children[2].value = True
    for html in (controls.guesses.value, controls.words.value):
        assert "<script" not in html and "$x$" not in html

    def refuse(*_, **__):
        raise BertError("<script> $x$")

    monkeypatch.setattr(EXPLORER, "view_of", refuse)
    controls.layer.value = 1
    shown = "<b>&lt;script&gt; <span>$</span>x<span>$</span></b>"
    assert controls.message.value == shown


# ------------------------------------------------------ without a notebook
def test_without_controls_there_is_the_figure_and_one_line(monkeypatch, capsys):
    without = "layer 0, head 0 without controls\n"
    assert describe(explore(TEXT, MODEL)) == describe(view_of(TEXT, MODEL).figure)
    assert capsys.readouterr().out == f"no notebook here: {without}"
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert isinstance(explore("the cat is tired .", "toy"), Figure)
    assert capsys.readouterr().out == f"ipywidgets is not installed: {without}"


def test_in_a_notebook_controls_come_first_and_the_picture_is_kept(monkeypatch):
    shown = []
    for place in ("display", "DisplayHandle.display", "DisplayHandle.update"):
        show = lambda *data, raw: shown.append(data[-1])  # noqa: E731
        monkeypatch.setattr(f"IPython.display.{place}", show)
    monkeypatch.setattr(EXPLORER, "missing_front_end", lambda: "")
    assert explore(TEXT, MODEL) is None
    widget, _, picture = shown
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert widget["text/plain"] == "Run this cell for the controls."
    assert picture["image/png"].startswith("iVBORw0KGgo")
    assert picture["text/plain"].startswith("Attention of one head over 5 tokens")
