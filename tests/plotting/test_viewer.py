"""The interactive viewer and the table: what they hold, what they refuse."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bert_np.errors import BertError
from bert_np.plotting import attention_table, attention_viewer, colours, hide_special
from bert_np.plotting.labels import JOINERS, token_text
from bert_np.plotting.viewer import ROUNDING, fixed_data, read_part, viewer_html

WORKED = np.array(
    [[0.6652, 0.2447, 0.0900], [0.2119, 0.5761, 0.2119], [0.1065, 0.1065, 0.7870]]
)
WORDS = ["the", "cat", "sat"]
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>",
    "<!--",
    "]]>",
    "\"'`",
    "&amp;",
    "\u2028",
    "\u2029",
    "\U0001f469\u200d\U0001f52c",
    "مرحبا",
    "\u202e",
    "\ud800",
    "\x00",
    "",
    " ",
    "${x}",
    "\\",
    "a" * 1000,
    "<img src=x onerror=x>",
]
VOID = {"img", "br", "meta"}


def random_probs(*shape, seed=0):
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def names(count):
    return [f"t{i}" for i in range(count)]


class Reader(HTMLParser):
    """Collects tags, attributes and texts, and checks that tags close."""

    def __init__(self, html):
        super().__init__()
        self.open, self.found, self.texts, self.script = [], [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.script += text
        else:
            self.texts.append(text)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def without_picture(viewer):
    return viewer_html(viewer.table, viewer.data)


def data_of(viewer):
    """The data of a viewer, as the script reads it."""
    script = Reader(without_picture(viewer)).script
    start = script.rindex(", {") + 2
    return json.JSONDecoder().raw_decode(script[start:])[0]


def values_of(data):
    numbers = np.frombuffer(base64.b64decode(data["values"]), dtype=np.uint8)
    return numbers.reshape(data["shape"]) / 255


def shown_outputs(viewer, monkeypatch):
    """What a notebook is given to show, in order."""
    display = pytest.importorskip("IPython.display")
    outputs = []

    def record(thing, *, metadata=None, raw=False):
        if raw:
            outputs.append(thing)
        else:
            thing._ipython_display_()

    monkeypatch.setattr(display, "display", record)
    viewer._ipython_display_()
    return outputs


# ------------------------------------------------- the rules of a viewer


def test_no_reference_to_a_network():
    page = attention_viewer(random_probs(2, 3, 5, 5), names(5))._repr_html_()
    page = re.sub(r"[A-Za-z0-9+/]{100,}=*", "", page)  # base64
    for text in (page, read_part("viewer.js"), read_part("viewer.css"), read_part("viewer.html")):
        for word in ("http", "//cdn", "require(", "import ", "url(", "fetch("):
            assert word not in text, word


def test_saved_page_has_no_reference_to_a_network(tmp_path):
    path = attention_viewer(WORKED, WORDS).save(tmp_path / "page.html")
    text = re.sub(r"[A-Za-z0-9+/]{100,}=*", "", path.read_text(encoding="utf-8"))
    assert not re.search(r"http|//cdn|require\(|import ", text)
    sources = [a["src"] for a in Reader(text).all("img")]
    assert [source[:15] for source in sources] == ["data:image/png;"]


def test_ids_differ_between_instances_and_between_showings():
    viewer = attention_viewer(WORKED, WORDS)
    pages = [
        without_picture(viewer),
        without_picture(viewer),
        without_picture(attention_viewer(WORKED, WORDS)),
    ]
    ids = [[a["id"] for _, a in Reader(page).found if "id" in a] for page in pages]
    assert [len(found) for found in ids] == [1, 1, 1]
    assert len({found[0] for found in ids}) == 3
    assert all(page.count(found[0]) == 2 for page, found in zip(pages, ids))


def test_nothing_global():
    script = Reader(attention_viewer(WORKED, WORDS)._repr_html_()).script.strip()
    assert script.startswith("(() => {") and script.endswith("})();")
    assert not re.search(r"\b(window|globalThis|localStorage|eval)\b", script)
    assert " id=" not in read_part("viewer.html") and "#" not in re.sub(
        r"#[0-9A-Fa-f]{3,6}\b", "", read_part("viewer.css")
    )
    assert 'attachShadow({ mode: "open" })' in script


@pytest.mark.parametrize("count", [12, len(HOSTILE)])  # both kinds of table
def test_tokens_and_titles_are_escaped(count):
    probs, tokens = random_probs(count, count), HOSTILE[:count]
    viewer = attention_viewer(probs, tokens, title="".join(HOSTILE))
    plain = attention_viewer(probs, names(count), title="x")
    page, usual = Reader(without_picture(viewer)), Reader(without_picture(plain))
    assert [tag for tag, _ in page.found] == [tag for tag, _ in usual.found]
    assert not any(name.startswith("on") for _, a in page.found for name in a)
    data, seen = data_of(viewer), [token_text(token) for token in tokens]
    assert data["keys"] == data["queries"] == seen
    assert set(seen) <= set(page.texts) and without_picture(viewer).encode("utf-8")
    text = page.script[page.script.rindex(", {") :]
    assert text.isascii() and not set("<>&") & set(text)


def test_a_title_is_escaped_in_the_page(tmp_path):
    title = "</title><script>alert(1)</script>"
    path = attention_viewer(WORKED, WORDS, title=title).save(tmp_path / "page.html")
    page = Reader(path.read_text("utf-8").replace("<!doctype html>", ""))
    assert [tag for tag, _ in page.found].count("script") == 1
    assert title in page.texts


def test_layer_and_head_are_chosen_by_menu_and_by_arrow_keys():
    data = data_of(attention_viewer(random_probs(2, 3, 4, 4), names(4)))
    assert data["layers"] == [0, 1] and data["heads"] == [0, 1, 2]
    menus = [a["class"] for a in Reader(read_part("viewer.html")).all("select")]
    assert menus == ["layer", "head", "special"]
    for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"):
        assert key in read_part("viewer.js")


def test_a_live_line_states_the_value():
    (live,) = [a for _, a in Reader(read_part("viewer.html")).found if "aria-live" in a]
    assert live["aria-live"] == "polite" and live["role"] == "status"
    assert '" attends to "' in read_part("viewer.js")


def test_height_follows_the_number_of_tokens():
    assert "height: var(--row)" in read_part("viewer.css")
    assert "shownQueries.length" in read_part("viewer.js")


def test_light_and_dark():
    style = read_part("viewer.css")
    assert "@media (prefers-color-scheme: dark)" in style
    for colour in ("--jp-layout-color0", "--vscode-editor-background"):
        assert f"var({colour}" in style


def test_colours_are_those_of_the_figures():
    style = read_part("viewer.css")
    for colour in (colours.QUERY, colours.KEY, colours.MASKED, colours.HATCH):
        assert colour in style
    assert "$" not in style
    shades = re.findall("......", fixed_data(1.0)["colours"])
    assert len(shades) == 256 == len(fixed_data(1.0)["dark"])
    lightness = [colours.luminance(f"#{shade}") for shade in shades]
    assert np.all(np.diff(lightness) > -1e-3) and lightness[-1] - lightness[0] > 0.7
    ink = {"0": "white", "1": "black"}
    contrasts = [
        colours.contrast(f"#{shade}", ink[dark])
        for shade, dark in zip(shades, fixed_data(1.0)["dark"])
    ]
    assert min(contrasts) > 4.5


def test_power_moves_the_colours_not_the_values():
    plain, root = (data_of(attention_viewer(WORKED, WORDS, power=p)) for p in (1, 0.5))
    assert plain["values"] == root["values"]
    assert root["colours"][6 * 64 : 6 * 65] == plain["colours"][6 * 128 : 6 * 129]
    assert "p ** 0.5" in root["scale"] and "**" not in plain["scale"]


def test_a_notebook_gets_the_picture_first(monkeypatch):
    outputs = shown_outputs(
        attention_viewer(random_probs(2, 3, 4, 4), names(4)), monkeypatch
    )
    first, *_, last = outputs
    assert first["image/png"].startswith(b"\x89PNG") and "text/html" not in first
    assert "Attention of 2 layers of 3 heads" in first["text/plain"]
    assert [out for out in outputs if "<script>" in out.get("text/html", "")] == [last]
    assert "<img" not in last["text/html"]  # the picture is stored once


def test_without_script_a_table_stands_in_place_of_the_viewer(monkeypatch):
    viewer = attention_viewer(WORKED, WORDS)
    html = shown_outputs(viewer, monkeypatch)[-1]["text/html"]
    table = re.sub(r"<script>.*</script>", "", html, flags=re.DOTALL)
    assert len(Reader(table).all("table")) == 1
    assert {"0.67", "0.58", "0.79"} <= set(Reader(table).texts)


def test_the_piece_of_html_holds_the_picture_with_its_words_first():
    viewer = attention_viewer(random_probs(2, 3, 4, 4), names(4))
    page = Reader(viewer._repr_html_())
    tags = [tag for tag, _ in page.found]
    assert tags.index("img") < tags.index("table") < tags.index("script")
    assert page.all("img")[0]["alt"] == viewer.figure.description != ""


def test_text_fallback(monkeypatch):
    viewer = attention_viewer(WORKED, WORDS)
    last = shown_outputs(viewer, monkeypatch)[-1]
    assert last["text/plain"] == repr(viewer)
    assert repr(viewer).startswith("Attention of one head over 3 tokens, the to sat")


# ------------------------------------------------------------- the values


def test_values_are_within_the_stated_rounding():
    probs = random_probs(3, 4, 9, 9)
    data = data_of(attention_viewer(probs, names(9)))
    assert np.abs(values_of(data) - probs).max() <= 1 / 510 + 1e-12
    assert data["rounding"] == ROUNDING and "1/510" in ROUNDING


def test_shares_are_what_is_left_without_specials():
    probs, tokens = random_probs(2, 2, 4, 4), ["[CLS]", "a", "b", "[SEP]"]
    data = data_of(attention_viewer(probs, tokens))
    shares = np.frombuffer(base64.b64decode(data["shares"]), dtype="<u2") / 65535
    shares = shares.reshape(2, 2, 4)
    np.testing.assert_allclose(shares, probs[..., 1:3].sum(axis=-1), atol=1e-5)
    renormalised, _ = hide_special(probs, tokens, renormalise=True)
    ours = values_of(data)[..., 1:3, 1:3] / shares[..., 1:3, None]
    error = 1 / 510 / shares[..., 1:3, None] + 1e-4  # what the viewer states
    assert np.all(np.abs(ours - renormalised) <= error)


def test_special_choices_are_stated_and_offered_only_where_they_apply():
    probs = random_probs(3, 3)
    data = data_of(attention_viewer(probs, ["[CLS]", "a", "[SEP]"], special="hide"))
    assert data["special"] == "hide" and list(data["choices"]) == list(data["notes"])
    assert "not renormalised" in data["notes"]["hide"]
    data = data_of(attention_viewer(probs, WORDS, special="hide"))
    assert data["special"] == "show" and data["choices"] == {}


def test_the_table_follows_the_first_choice_of_specials():
    viewer = attention_viewer(
        random_probs(3, 3), ["[CLS]", "a", "[SEP]"], special="renormalise"
    )
    texts = Reader(viewer.table).texts
    assert "[CLS]" not in texts and "1.00" in texts
    assert any("renormalised" in text for text in texts)


def test_layers_and_heads_keep_their_numbers():
    probs = random_probs(4, 6, 3, 3)
    viewer = attention_viewer(probs, WORDS, layers=[1, 3], heads=(5, 0, 2))
    data = data_of(viewer)
    assert data["layers"] == [1, 3] and data["heads"] == [5, 0, 2]
    np.testing.assert_allclose(
        values_of(data), probs[[1, 3]][:, [5, 0, 2]], atol=1 / 510
    )
    chosen = probs[[1, 3]][:, [5, 0, 2]]
    layer, head, *_ = np.unravel_index(np.argmax(chosen), chosen.shape)
    place = f"layer {[1, 3][layer]}, head {[5, 0, 2][head]};"
    assert place in viewer.figure.description
    axes = viewer.figure.axes[0]
    viewer.figure.canvas.draw()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["5", "0", "2"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["1", "3"]


def test_heads_of_one_layer_and_one_head():
    viewer = attention_viewer(random_probs(4, 3, 3), WORDS, heads=[3, 1])
    data = data_of(viewer)
    assert data["layers"] is None and data["heads"] == [3, 1]
    titles = [ax.get_title() for ax in viewer.figure.axes[:2]]
    assert titles == ["head 3", "head 1"]
    data = data_of(viewer := attention_viewer(random_probs(4, 3, 3), WORDS, heads=2))
    assert data["heads"] == [2] and "head 2" in viewer.figure.get_suptitle()
    data = data_of(attention_viewer(WORKED, WORDS))
    assert data["layers"] is data["heads"] is None and data["shape"] == [1, 1, 3, 3]


def test_layers_of_a_batch_of_one_sentence():
    probs = random_probs(2, 1, 3, 4, 4)
    data = data_of(attention_viewer(list(probs), names(4)))
    np.testing.assert_allclose(values_of(data), probs[:, 0], atol=1 / 510)


@pytest.mark.parametrize(
    "mean, shape", [("heads", [2, 1]), ("layers", [1, 3]), ("layers and heads", [1, 1])]
)
def test_means(mean, shape):
    probs = random_probs(2, 3, 4, 4)
    viewer = attention_viewer(probs, names(4), mean=mean)
    data = data_of(viewer)
    assert data["shape"][:2] == shape and f"mean over {mean}" in data["remarks"]
    axes = {"heads": 1, "layers": 0, "layers and heads": (0, 1)}[mean]
    expected = probs.mean(axis=axes, keepdims=True)
    assert np.abs(values_of(data) - expected).max() <= 1 / 510 + 1e-12
    assert "mean over" in viewer.figure.description


def test_block_between_two_sentences():
    tokens = ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
    probs, segments = random_probs(2, 2, 6, 6), [0, 0, 0, 1, 1, 1]
    data = data_of(
        attention_viewer(
            probs,
            tokens,
            segment_ids=segments,
            between="first to second",
            special="hide",
        )
    )
    assert data["queries"] == ["a"] and data["keys"] == ["b", "c"]
    assert data["choices"] == {} and len(data["remarks"]) == 2
    assert np.abs(values_of(data) - probs[:, :, 1:2, 3:5]).max() <= 1 / 510 + 1e-12


def test_padding_is_marked_or_cropped():
    tokens = ["a", "b", "[PAD]"]
    probs = np.tile([0.5, 0.5, 0.0], (3, 1))
    data = data_of(attention_viewer(probs, tokens, attention_mask=[1, 1, 0]))
    assert data["masked"] == "001" * 3
    data = data_of(attention_viewer(probs, tokens, attention_mask=[1, 1, 0], crop=True))
    assert data["masked"] == "" and data["keys"] == ["a", "b"]
    assert data["remarks"] == ["padding cropped"]


def test_arguments_are_not_changed():
    probs, tokens = random_probs(2, 3, 4, 4), ["[CLS]", "a", "##b", "[SEP]"]
    mask, before = np.array([1, 1, 1, 0]), probs.copy()
    probs.flags.writeable = mask.flags.writeable = False
    attention_viewer(
        probs,
        tokens,
        attention_mask=mask,
        merge_words=True,
        special="renormalise",
        layers=[1],
    )
    attention_table(probs[0, 0], tokens, attention_mask=mask, crop=True)
    np.testing.assert_array_equal(probs, before)
    assert tokens == ["[CLS]", "a", "##b", "[SEP]"]


# ------------------------------------------------------------ sizes, files


def test_twelve_times_twelve_heads_of_32_tokens_are_below_250_kB(monkeypatch):
    probs = random_probs(12, 12, 32, 32)
    tokens = ["[CLS]", *(f"token{i:02}" for i in range(30)), "[SEP]"]
    viewer = attention_viewer(probs, tokens)
    html = shown_outputs(viewer, monkeypatch)[-1]["text/html"]
    assert len(html.encode("utf-8")) < 250_000


def test_64_tokens_fit_and_65_do_not():
    data = data_of(attention_viewer(random_probs(64, 64), names(64)))
    assert values_of(data).shape == (1, 1, 64, 64)
    with pytest.raises(BertError, match=r"65 entries.*64.*layers= and heads=.*shorter"):
        attention_viewer(random_probs(65, 65), names(65))


def test_what_is_cropped_does_not_count():
    probs = np.zeros((80, 80))
    probs[:, :3] = 1 / 3
    mask = np.arange(80) < 3
    data = data_of(attention_viewer(probs, names(80), attention_mask=mask, crop=True))
    assert data["keys"] == ["t0", "t1", "t2"]


def test_too_many_maps_name_the_cure():
    probs = np.broadcast_to(np.float32(1 / 64), (24, 16, 64, 64))
    with pytest.raises(BertError, match="1,572,864 values.*layers= and heads="):
        attention_viewer(probs, names(64))


def test_save_writes_a_whole_page(tmp_path):
    viewer = attention_viewer(random_probs(2, 2, 3, 3), WORDS, title="a & b")
    path = viewer.save(str(tmp_path / "page.html"))
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    page = Reader(text.replace("<!doctype html>", ""))
    assert page.all("html") == [{"lang": "en"}] and page.all("meta")[0] == {
        "charset": "utf-8"
    }
    assert "a & b" in page.texts and len(page.all("img")) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    viewer.save(path)  # again, over the first
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["missing/page.html", "."])
def test_save_refuses_a_place_that_cannot_be_written(tmp_path, name):
    viewer = attention_viewer(WORKED, WORDS)
    with pytest.raises(BertError, match="cannot be written.*folder that exists"):
        viewer.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_save_refuses_what_is_no_path():
    with pytest.raises(BertError, match="path = None cannot be written"):
        attention_viewer(WORKED, WORDS).save(None)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"layers": [0]}, "layers = .*without an axis of layers"),
        ({"heads": [3]}, "heads = .*0 to 2"),
        ({"heads": []}, "heads = .*0 to 2"),
        ({"heads": [1, 1]}, "heads = .*different numbers"),
        ({"heads": [True]}, "heads = .*0 to 2"),
        ({"heads": "a"}, "heads = 'a'"),
        ({"heads": -1}, "heads = -1"),
        ({"special": "drop"}, "special = 'drop'"),
        ({"special": ["show"]}, "special = "),
        ({"power": 0}, "power = 0"),
        ({"title": 3}, "title is a int"),
        ({"mean": "rows"}, "mean = 'rows'"),
        ({"between": "x"}, "between = 'x'"),
        ({"attention_mask": [1, 1]}, "attention_mask has shape"),
    ],
)
def test_wrong_choices(given, message):
    with pytest.raises(BertError, match=message):
        attention_viewer(random_probs(3, 4, 4), names(4), **given)


def test_wrong_maps():
    with pytest.raises(BertError, match="3 entries"):
        attention_viewer(random_probs(4, 4), WORDS)
    with pytest.raises(BertError, match="expected two equal last axes"):
        attention_viewer(random_probs(3, 4), WORDS)
    with pytest.raises(BertError, match="From a batch take"):
        attention_viewer(random_probs(2, 2, 2, 3, 3), WORDS)
    with pytest.raises(BertError, match="probs has shape"):
        attention_viewer(0.5, WORDS)
    with pytest.raises(BertError, match="probs.*allowed 0 to 1"):
        attention_viewer(WORKED * 2, WORDS)


# ---------------------------------------------------------------- the table


def test_table_holds_every_value_and_the_sums():
    table = attention_table(WORKED, WORDS)
    page = Reader(table._repr_html_())
    cells = [a for a in page.all("td") if "title" in a]
    assert len(cells) == 9
    assert cells[1]["title"] == "the attends to cat: 0.24"
    for row in ("0.67", "0.98", "0.93", "1.09"):
        assert row in page.texts and row in repr(table)
    assert {tag for tag, _ in page.found} == {"table", "tr", "th", "td", "bdi"}
    assert "class" not in str(page.found)


def test_table_text_is_readable_on_its_colours():
    probs = np.eye(40) * 0.5
    probs[0] = np.linspace(0, 1, 40)
    page = Reader(attention_table(probs, names(40))._repr_html_())
    styles = [
        re.findall(r"(?:background|color):([^;]+)", a["style"])
        for a in page.all("td") + page.all("th")
    ]
    assert all(len(style) == 2 for style in styles)
    assert min(colours.contrast(*style) for style in map(expanded, styles)) > 4.5


def expanded(style):
    return [{"#fff": "#ffffff", "#000": "#000000"}.get(c, c) for c in style]


def test_table_marks_masked_cells():
    probs = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    visible = np.tril(np.ones((3, 3)))
    visible[2, 2] = 0
    page = Reader(attention_table(probs, WORDS, visible=visible)._repr_html_())
    titles = [a["title"] for a in page.all("td") if "title" in a]
    assert sum("masked" in title for title in titles) == 4
    assert page.texts.count("\u2013") == 3 and "0.30\u2020" in page.texts
    assert any("grey: masked" in text for text in page.texts)
    assert sum(colours.MASKED in a["style"] for a in page.all("td")) == 3


@pytest.mark.parametrize("token", HOSTILE, ids=lambda token: ascii(token)[:24])
def test_table_escapes(token):
    table = attention_table(WORKED, ["the", token, "sat"], title=token or None)
    page = Reader(table._repr_html_())
    allowed = {"table", "caption", "tr", "th", "td", "bdi", "br"}
    assert {tag for tag, _ in page.found} <= allowed
    assert page.texts.count(token_text(token)) >= 2
    assert table._repr_html_().encode("utf-8") and repr(table).encode("utf-8")


def test_table_writes_a_block_with_its_own_rows_and_columns():
    table = attention_table(
        random_probs(3, 3),
        WORDS,
        segment_ids=[0, 1, 1],
        between="first to second",
        title="block",
    )
    title, _, header, *_ = repr(table).splitlines()
    assert title == "block"
    assert header.split() == ["query", "\\", "key", "cat", "sat", "sum"]
    assert len([a for a in Reader(table.html).all("td") if "title" in a]) == 2


def test_table_refuses_too_many_tokens_and_names_the_cure():
    assert "t39" in repr(attention_table(random_probs(40, 40), names(40)))
    with pytest.raises(BertError, match="41 entries.*40.*shorter text.*plot_attention"):
        attention_table(random_probs(41, 41), names(41))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"decimals": 0}, "decimals = 0"),
        ({"title": b""}, "title is a bytes"),
        ({"power": -1}, "power = -1"),
        ({"special": None}, "special = None"),
    ],
)
def test_table_refuses(given, message):
    with pytest.raises(BertError, match=message):
        attention_table(WORKED, WORDS, **given)


def test_tokens_are_written_so_that_they_can_be_seen():
    assert token_text("") == "''" and token_text("   ") == "'   '"
    assert token_text("\ud800\n") == "\\ud800\\u000a"
    assert token_text("a\u202e") == "a\\u202e"
    assert token_text(f"a{JOINERS}") == f"a{JOINERS}"
    assert len(token_text("a" * 1000)) == 16 == len(token_text(" " * 1000)) - 2
