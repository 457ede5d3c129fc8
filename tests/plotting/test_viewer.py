"""The interactive viewer and the table: what they hold, how they are shown."""

import base64
import json
import re

import numpy as np
import pytest
from plotting.samples import ODD, PROBS, WORDS, Page, names, random_probs, ticks

from bert_np.plotting import (
    attention_table,
    attention_viewer,
    colours,
    hide_special,
    plot_attention,
)
from bert_np.plotting.labels import token_text
from bert_np.plotting.scripts import read_part
from bert_np.plotting.viewer import ROUNDING, SCRIPTS, fixed_data, sentence_numbers

NETWORK = r"http|//cdn|require\(|import |url\(|fetch\("
GLOBAL = r"\b(window|globalThis|localStorage|eval)\b"


def data_of(*given, **options):
    """The data of a viewer, as the script reads it."""
    data = json.loads(attention_viewer(*given, **options).data)
    numbers = np.frombuffer(base64.b64decode(data["values"]), dtype=np.uint8)
    return data | {"probs": numbers.reshape(data["shape"]) / 255}


def test_what_the_viewer_advises_for_a_long_text_helps():
    probs, tokens = np.eye(65), names(65)
    cropped = {"attention_mask": [1] * 64 + [0], "crop": True}
    for viewer in (
        attention_viewer(probs, tokens, **cropped),
        attention_viewer(probs[:64, :64], tokens[:64]),
    ):
        assert "64 tokens" in viewer.figure.description
    assert "65 tokens" in plot_attention(probs, tokens).description


# ------------------------------------------------- the rules of a viewer
def test_no_reference_to_a_network(tmp_path):
    viewer = attention_viewer(PROBS, WORDS, title="a & b")
    page = viewer.save(str(tmp_path / "page.html")).read_text("utf-8")
    parts = [read_part(name) for name in (*SCRIPTS, "viewer.css", "viewer.html")]
    for text in (page, *parts):
        assert not re.search(NETWORK, re.sub(r"[A-Za-z0-9+/]{100,}=*", "", text))
    assert page.startswith("<!doctype html>") and Page(page).texts.count("a & b") == 1
    assert Page(page).all("img", "src")[0].startswith("data:image/png;")
    assert Page(page).all("html") == [{"lang": "en"}]


def test_a_script_of_its_own_for_each_showing():
    viewer, ids = attention_viewer(PROBS, WORDS), []
    for html in (viewer._repr_html_(), viewer._repr_html_()):
        ids += Page(html).all("div", "id")
        script = Page(html).script.strip()
        assert html.count(ids[-1]) == 2 and not re.search(GLOBAL, script)
        assert script.startswith("(() => {") and script.endswith("})();")
    assert len(ids) == len(set(ids)) == 2 and " id=" not in read_part("viewer.html")


@pytest.mark.parametrize("count", [12, len(ODD)])  # both kinds of table
def test_odd_tokens_and_titles_are_shown_as_text(count):
    probs, title = random_probs(count, count), "</script><script>alert(1)</script>"
    seen, data = list(map(token_text, ODD[:count])), data_of(probs, ODD[:count])
    page = Page(attention_viewer(probs, ODD[:count], title=title)._repr_html_())
    assert data["keys"] == data["queries"] == seen and set(seen) <= set(page.texts)
    text = page.script[page.script.rindex(", {") :]
    assert text.isascii() and not set("<>&") & set(text)


def test_colours_are_those_of_the_figures():
    style, fixed = read_part("viewer.css") + read_part("parts.css"), fixed_data(1.0)
    for colour in (colours.QUERY, colours.KEY, colours.MASKED, colours.HATCH):
        assert colour in style
    assert "$" not in style and "prefers-color-scheme: dark" in style
    shades = [f"#{shade}" for shade in re.findall("......", fixed["colours"])]
    inks = [{"0": "white", "1": "black"}[dark] for dark in fixed["dark"]]
    assert len(shades) == len(inks) == 256
    assert min(map(colours.contrast, shades, inks)) > 4.5
    root, plain = (data_of(PROBS, WORDS, power=power) for power in (0.5, 1))
    assert root["values"] == plain["values"] and "p ** 0.5" in root["scale"]
    assert root["colours"][6 * 64 : 6 * 65] == plain["colours"][6 * 128 : 6 * 129]


def test_without_scripts_there_are_the_picture_its_words_and_a_table():
    viewer = attention_viewer(PROBS, WORDS)
    html = re.sub(r"<script>.*</script>", "", viewer._repr_html_(), flags=re.DOTALL)
    assert html.index("<img") < html.index("<table")
    page = Page(html)
    assert page.all("img", "alt") == [viewer.figure.description]
    assert len(page.all("table")) == 1 and {"0.67", "0.58", "0.79"} <= set(page.texts)
    assert repr(viewer) > viewer.figure.description


# ------------------------------------------------------------- the values
def test_values_are_within_the_stated_rounding():
    probs = random_probs(3, 4, 9, 9)
    data = data_of(probs, names(9))
    assert np.abs(data["probs"] - probs).max() <= 1 / 510 + 1e-12
    assert data["rounding"] == ROUNDING and "1/510" in ROUNDING
    batch = data_of(list(probs[:, None]), names(9))
    assert np.array_equal(batch["probs"], data["probs"])


def test_shares_are_what_is_left_without_specials():
    probs, tokens = random_probs(2, 2, 4, 4), ["[CLS]", "a", "b", "[SEP]"]
    data = data_of(probs, tokens)
    shares = np.frombuffer(base64.b64decode(data["shares"]), dtype="<u2") / 65535
    shares = shares.reshape(2, 2, 4)[..., 1:3, None]
    expected, _ = hide_special(probs, tokens, renormalise=True)
    ours = data["probs"][..., 1:3, 1:3] / shares
    error = 1 / 510 / shares + 1e-4  # what the viewer states
    assert np.all(np.abs(ours - expected) <= error)


def test_special_choices_are_offered_only_if_they_apply():
    tokens = ["[CLS]", "a", "[SEP]"]
    data = data_of(PROBS, tokens, special="hide")
    assert data["special"] == "hide" and list(data["choices"]) == list(data["notes"])
    data = data_of(PROBS, WORDS, special="hide")
    assert data["special"] == "show" and data["choices"] == {}
    table = Page(attention_viewer(PROBS, tokens, special="renormalise").table)
    assert "[CLS]" not in table.texts and "1.00" in table.texts
    assert any("renormalised" in text for text in table.texts)


def test_texts_of_a_pair_are_told_apart():
    tokens = ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]", "[PAD]", "[PAD]"]
    assert sentence_numbers(tokens) == [0, 0, 0, 1, 1, 1, 1, 1]
    data = data_of(random_probs(8, 8), tokens)
    assert data["sentences"] == dict.fromkeys(("queries", "keys"), [0] * 3 + [1] * 5)
    assert set(sentence_numbers(["the", "cat"])) == {0}


def test_layers_and_heads_keep_their_numbers():
    probs, chosen = random_probs(4, 6, 3, 3), {"layers": [1, 3], "heads": (5, 0, 2)}
    data, kept = data_of(probs, WORDS, **chosen), probs[[1, 3]][:, [5, 0, 2]]
    assert data["layers"] == [1, 3] and data["heads"] == [5, 0, 2]
    np.testing.assert_allclose(data["probs"], kept, atol=1 / 510)
    figure = attention_viewer(probs, WORDS, **chosen).figure
    layer, head, *_ = np.argwhere(probs == kept.max())[0]
    assert f"layer {layer}, head {head};" in figure.description
    figure.canvas.draw()
    numbers = ticks(figure.axes[0].xaxis), ticks(figure.axes[0].yaxis)
    assert numbers == (["5", "0", "2"], ["1", "3"])
    heads = attention_viewer(probs[0], WORDS, heads=[3, 1]).figure.axes[:2]
    assert [ax.get_title() for ax in heads] == ["head 3", "head 1"]
    one = attention_viewer(probs[0], WORDS, heads=2).figure
    assert "head 2" in one.get_suptitle() and data_of(PROBS, WORDS)["layers"] is None


def test_means():
    probs = random_probs(2, 3, 4, 4)
    for mean, axis in {"heads": 1, "layers": 0, "layers and heads": (0, 1)}.items():
        data = data_of(probs, names(4), mean=mean)
        assert f"mean over {mean}" in data["remarks"]
        expected = probs.mean(axis=axis, keepdims=True)
        np.testing.assert_allclose(data["probs"], expected, atol=1 / 510 + 1e-12)


def test_blocks_and_padding():
    tokens, choices = ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"], {"special": "hide"}
    choices |= {"segment_ids": [0, 0, 0, 1, 1, 1], "between": "first to second"}
    data = data_of(random_probs(6, 6), tokens, **choices)
    assert data["queries"] == ["a"] and data["keys"] == ["b", "c"]
    assert data["choices"] == {} and len(data["remarks"]) == 2
    masked = {"attention_mask": [1, 1, 0]}
    assert data_of(PROBS, WORDS, **masked)["masked"] == "001" * 3
    data = data_of(PROBS, WORDS, **masked, crop=True)
    assert data["masked"] == "" and data["remarks"] == ["padding cropped"]
    mask = np.arange(80) < 3  # what is cropped does not count
    data = data_of(np.eye(80), names(80), attention_mask=mask, crop=True)
    assert data["keys"] == ["t0", "t1", "t2"]


# ---------------------------------------------------------------- the table
def test_table_holds_every_value_and_the_sums():
    table = attention_table(PROBS, WORDS)
    page = Page(table._repr_html_())
    titles = page.all("td", "title")
    assert len(titles) == 9 and titles[1] == "the attends to cat: 0.24"
    for text in ("0.67", "0.98", "0.93", "1.09"):
        assert text in page.texts and text in repr(table)
    assert {tag for tag, _ in page.found} == {"table", "tr", "th", "td", "bdi"}


def test_table_text_is_readable_on_its_colours():
    probs = np.eye(40) * 0.5
    probs[0] = np.linspace(0, 1, 40)
    page = Page(attention_table(probs, names(40))._repr_html_())
    for style in page.all("td", "style") + page.all("th", "style"):
        pair = re.findall(r"(?:background|color):([^;]+)", style)
        assert len(pair) == 2 and colours.contrast(*pair) > 4.5


def test_table_marks_masked_cells():
    probs = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]]
    visible = np.tril(np.ones((3, 3)))
    visible[2, 2] = 0
    page = Page(attention_table(probs, WORDS, visible=visible)._repr_html_())
    assert sum("masked" in title for title in page.all("td", "title")) == 4
    assert page.texts.count("\u2013") == 3 and "0.30\u2020" in page.texts
    assert any("grey: masked" in text for text in page.texts)
    grey = [style for style in page.all("td", "style") if colours.MASKED in style]
    assert len(grey) == 3


def test_table_writes_a_block_with_its_own_rows_and_columns():
    choices = {"segment_ids": [0, 1, 1], "between": "first to second"}
    table = attention_table(PROBS, WORDS, title="block", **choices)
    title, _, *rows = repr(table).splitlines()
    assert title == "block" and rows[0].split()[3:] == ["cat", "sat", "sum"]
    assert rows[1].split() == ["the", "0.24", "0.09", "0.33"]
