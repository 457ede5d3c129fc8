"""explore: the logic behind its widgets, and what is shown without them."""

import re
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import bert_np
from bert_np import BertConfig, BertError, Tokenizer
from bert_np.plotting import describe
from bert_np.plotting.explorer import (
    connect,
    explore,
    load_model,
    missing_front_end,
    new_widgets,
    view_of,
)

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "sat",
    "mat",
    "on",
    "<",
    ">",
    "script",
    "$",
    "x",
    "##s",
    "&",
]
CONFIG = BertConfig(
    vocab_size=len(WORDS),
    hidden_size=6,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=5,
    max_position_embeddings=12,
)
TOKENIZER = Tokenizer.from_tokens(WORDS)
RNG = np.random.default_rng(0)
MODEL = (bert_np.init_params(CONFIG, RNG, heads=True), CONFIG, TOKENIZER)
HEADLESS = ({k: v for k, v in MODEL[0].items() if k != "mlm"}, CONFIG, TOKENIZER)
TEXT = "the cat sat"


def shown_maps(figure):
    """The cells of the map of a figure."""
    return np.asarray(figure.axes[0].images[0].get_array())


def expected_map(ids, layer, head):
    out = bert_np.bert([ids], MODEL[0], CONFIG)
    return out["attention_probs"][layer][0, head]


# ------------------------------------------------------------- the view


@pytest.mark.parametrize("layer, head", [(0, 0), (2, 1)])
def test_a_view_draws_the_map_of_the_layer_and_head(layer, head):
    view = view_of(TEXT, MODEL, layer=layer, head=head)
    assert view.tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    expected = expected_map([2, 5, 6, 7, 3], layer, head)
    assert np.allclose(shown_maps(view.figure), expected)
    assert view.figure.get_suptitle() == f"layer {layer}, head {head}"
    assert describe(view.figure) and view.guesses == []


def test_a_masked_token_is_run_as_mask():
    view = view_of(TEXT, MODEL, masked=[2])
    assert view.tokens[2] == "[MASK]"
    assert np.allclose(shown_maps(view.figure), expected_map([2, 5, 4, 7, 3], 0, 0))


def test_guesses_are_those_of_fill_mask():
    view = view_of(TEXT, MODEL, masked=[2])
    best = bert_np.fill_mask("the [MASK] sat", *MODEL)[0]
    assert view.guesses == ["2 cat: " + ", ".join(f"{w} {p:.2f}" for w, p in best)]
    typed = view_of("the [MASK] sat", MODEL)
    assert typed.guesses[0].startswith(f"2 [MASK]: {best[0][0]} ")


def test_a_model_without_head_makes_no_guesses():
    assert view_of(TEXT, HEADLESS, masked=[1, 2]).guesses == [
        "This model has no MLM head, so it makes no guesses."
    ]
    assert view_of(TEXT, HEADLESS).guesses == []


def test_special_tokens_can_be_hidden():
    hidden = view_of(TEXT, MODEL, special="hide")
    assert np.allclose(
        shown_maps(hidden.figure), expected_map([2, 5, 6, 7, 3], 0, 0)[1:-1, 1:-1]
    )
    assert "not renormalised" in hidden.figure.get_suptitle()


@pytest.mark.parametrize(
    "text, given, words",
    [
        ("", {}, "text = '': type a sentence"),
        ("  \n", {}, "type a sentence"),
        (None, {}, "text = None: type a sentence"),
        ("the " * 20, {}, "text has 22 tokens, allowed: at most 12"),
        (TEXT, {"layer": 3}, "layer = 3, allowed: 0..2"),
        (TEXT, {"head": -1}, "head = -1, allowed: 0..1"),
        (TEXT, {"head": 0.5}, "head = 0.5, allowed: 0..1"),
        (TEXT, {"masked": [5]}, "masked = 5, allowed: 0..4"),
        (TEXT, {"special": "no"}, "special = 'no'"),
    ],
)
def test_what_cannot_be_shown_is_refused(text, given, words):
    with pytest.raises(BertError, match=re.escape(words)):
        view_of(text, MODEL, **given)


@pytest.mark.parametrize(
    "model, words",
    [
        (3, "model is a int"),
        ((1, 2), "model is a tuple"),
        ((MODEL[0], CONFIG, None), "its tokenizer is None"),
    ],
)
def test_what_is_no_model_is_refused(model, words):
    with pytest.raises(BertError, match=words):
        load_model(model)


# ---------------------------------------------------------- the controls


def controls_of(text=TEXT, model=MODEL):
    """The controls, and the list of all that they have drawn."""
    pytest.importorskip("ipywidgets")
    controls, drawn = new_widgets(text, model[1]), []
    connect(controls, model, drawn.append)
    return controls, drawn


def assert_drawn(drawn, count, **view):
    assert len(drawn) == count
    text = view.pop("text", TEXT)
    assert describe(drawn[-1]) == describe(view_of(text, MODEL, **view).figure)


def test_controls_draw_at_once_and_say_it_in_words():
    controls, drawn = controls_of()
    assert_drawn(drawn, 1)
    assert "Attention of one head over 5 tokens" in controls.words.value
    assert controls.message.value == ""


def test_sliders_have_the_range_of_the_model_and_redraw():
    controls, drawn = controls_of()
    assert (controls.layer.min, controls.layer.max) == (0, 2)
    assert (controls.head.min, controls.head.max) == (0, 1)
    controls.layer.value = 2
    assert_drawn(drawn, 2, layer=2)
    controls.head.value = 1
    assert_drawn(drawn, 3, layer=2, head=1)
    controls.special.value = "renormalise"
    assert_drawn(drawn, 4, layer=2, head=1, special="renormalise")


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
    assert_drawn(drawn, 3)
    assert controls.guesses.value == "" and buttons[2].button_style == ""


def test_a_new_text_has_new_buttons_none_of_them_pressed():
    controls, drawn = controls_of()
    controls.tokens.children[1].value = True
    controls.text.value = "the mats on the mat"
    assert [b.description for b in controls.tokens.children[1:3]] == ["the", "mat"]
    assert controls.tokens.children[3].description == "##s"
    assert not any(b.value for b in controls.tokens.children)
    assert_drawn(drawn, 3, text="the mats on the mat")


@pytest.mark.parametrize(
    "text, words", [("", "type a sentence"), ("the " * 30, "text has 32 tokens")]
)
def test_a_bad_text_leaves_a_message_and_the_last_picture(text, words):
    controls, drawn = controls_of()
    buttons = controls.tokens.children
    controls.text.value = text
    assert words in controls.message.value and len(drawn) == 1
    assert controls.tokens.children == buttons
    controls.layer.value = 1
    assert words in controls.message.value and len(drawn) == 1
    controls.text.value = TEXT
    assert controls.message.value == ""
    assert_drawn(drawn, 2, layer=1)


def test_a_bad_text_to_begin_with_leaves_a_message():
    controls, drawn = controls_of("")
    assert "type a sentence" in controls.message.value
    assert drawn == [] and controls.tokens.children == ()
    controls.text.value = TEXT
    assert_drawn(drawn, 1)


def test_no_text_becomes_markup_or_a_formula():
    controls, _ = controls_of("<script> $x$")
    controls.tokens.children[2].value = True
    for html in (controls.guesses.value, controls.words.value):
        assert "<script" not in html and "$x$" not in html


def test_no_message_becomes_markup_or_a_formula(monkeypatch):
    controls, _ = controls_of()

    def refuse(*_, **__):
        raise BertError("<script> $x$")

    monkeypatch.setattr(sys.modules[view_of.__module__], "view_of", refuse)
    controls.layer.value = 1
    assert controls.message.value == (
        "<b>&lt;script&gt; <span>$</span>x<span>$</span></b>"
    )


def test_two_cells_know_nothing_of_each_other():
    (first, _), (second, drawn) = controls_of(), controls_of()
    first.layer.value = 2
    first.tokens.children[1].value = True
    assert second.layer.value == 0 and len(drawn) == 1
    assert not second.tokens.children[1].value


# ------------------------------------------------------ without a notebook


def test_without_ipywidgets_there_is_the_figure_and_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    figure = explore(TEXT, MODEL)
    assert isinstance(figure, Figure)
    assert describe(figure) == describe(view_of(TEXT, MODEL).figure)
    assert capsys.readouterr().out == (
        "ipywidgets is not installed: layer 0, head 0 without controls\n"
    )


def test_outside_of_a_notebook_there_is_the_figure_and_one_line(capsys):
    pytest.importorskip("ipywidgets")
    assert missing_front_end() == "no notebook here"
    assert isinstance(explore(TEXT, MODEL), Figure)
    assert capsys.readouterr().out == (
        "no notebook here: layer 0, head 0 without controls\n"
    )


def test_without_controls_a_bad_text_is_an_error(capsys):
    with pytest.raises(BertError, match="type a sentence"):
        explore("", MODEL)


def test_in_a_notebook_controls_come_first_and_the_picture_is_kept(monkeypatch):
    pytest.importorskip("ipywidgets")
    from IPython.display import DisplayHandle

    from bert_np.plotting import explore as function

    module = sys.modules[function.__module__]
    shown = []
    monkeypatch.setattr(module, "missing_front_end", lambda: "")
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    monkeypatch.setattr(DisplayHandle, "display", lambda self, data, raw: None)
    monkeypatch.setattr(
        DisplayHandle, "update", lambda self, data, raw: shown.append(data)
    )
    assert explore(TEXT, MODEL) is None
    assert len(shown) == 2 and "application/vnd.jupyter.widget-view+json" in shown[0]
    assert shown[0]["text/plain"] == "Run this cell for the controls."
    assert shown[1]["image/png"].startswith(b"\x89PNG")
    assert shown[1]["text/plain"].startswith("Attention of one head over 5 tokens")


def test_minilm_by_its_name(minilm, capsys):
    assert isinstance(explore("The cat sat."), Figure)
    assert "without controls" in capsys.readouterr().out
