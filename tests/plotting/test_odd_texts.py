"""Whatever stands in a token or a title, pages and figures stay what they are.

The structure of a page (its tags and the names of their attributes) must
be the same as for harmless words; SVG files must be well-formed.
"""

import io
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plotting.odd_pictures import CASES, MAPS, TRACE

from bert_np import BertError, plotting
from bert_np.plotting.html import Html, page as whole_page, write_page
from bert_np.plotting.viewer import viewer_html

PROBS = MAPS[:, 0]
HARMLESS = ["the", "cat", "sat", "on", "x" * 400]
NASTY = [
    "<script>alert(1)</script>",
    "</script><script>",
    "<!--",
    "-->",
    "]]>",
    "\"'`",
    "' onx='1",
    '" onx="1',
    "<b onx=1>",
    "&lt;",
    "&#60;b&#62;",
    "<xss>",
    "</body>",
    "<svg onload=x>",
    "javascript:x",
    "{{x}}",
    "${x}",
    "$x",
    "%s",
    "{0}",
    "\\",
    "$\\frac$",
    "$$",
    "_^",
    "\u2028",
    "\u202e",
    "\ud800",
    "\udfff",
    "\0",
    "\x1b[2J",
    "\ufeff",
    "\U0001f469\u200d\U0001f52c",
    "مرحبا",
    "a\u0301" * 40,
    "",
    " ",
    "\n",
    "<" * 2000,
]
WORDS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.text(st.sampled_from("<>&\"'`=/-![]$\\{}ax "), max_size=20),
)
TOKENS = st.lists(WORDS, min_size=5, max_size=5)
QUICK = settings(max_examples=30, deadline=None)
FEW = settings(max_examples=5, deadline=None)


class Structure(HTMLParser):
    """The tags of a page with the names of their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found |= {tag} | {(tag, name) for name, _ in attributes}

    def handle_comment(self, data):
        self.found.add("a comment")


def structure(html):
    return Structure(html).found


def table(tokens, title):
    return plotting.attention_table(PROBS[0, 0], tokens, title=title)._repr_html_()


def viewer(tokens, title):
    shown = plotting.attention_viewer(PROBS[0, 0], tokens, title=title)
    return viewer_html(shown.table, shown.data)  # without the picture


def steps(tokens, title):
    return plotting.step_through(TRACE, tokens)._repr_html_()


TABLE = structure(table(HARMLESS, "title"))
VIEWER = structure(viewer(HARMLESS, "title"))
STEPS = structure(steps(HARMLESS, ""))


@QUICK
@given(tokens=TOKENS, title=WORDS)
@example(tokens=NASTY[:5], title=NASTY[0])
@example(tokens=NASTY[5:10], title=NASTY[7])
def test_no_token_or_title_changes_the_table(tokens, title):
    assert structure(table(tokens, title)) <= TABLE


@FEW
@given(tokens=TOKENS, title=WORDS)
@example(tokens=NASTY[:5], title=NASTY[0])
@example(tokens=NASTY[5:10], title=NASTY[1])
def test_no_token_or_title_changes_the_viewer(tokens, title):
    assert structure(viewer(tokens, title)) <= VIEWER


@FEW
@given(tokens=TOKENS)
@example(tokens=NASTY[:5])
@example(tokens=NASTY[5:10])
@example(tokens=NASTY[10:15])
def test_no_token_changes_the_steps(tokens):
    assert structure(steps(tokens, "")) <= STEPS


def saved(tokens, title, folder):
    view = plotting.attention_viewer(PROBS[0, 0], tokens, title=title)
    return structure(view.save(folder / "page.html").read_text("utf-8"))


def test_no_token_or_title_changes_a_saved_page(tmp_path):
    assert saved(NASTY[:5], NASTY[1], tmp_path) <= saved(HARMLESS, "title", tmp_path)


def test_no_title_changes_a_page(tmp_path):
    for title in NASTY:
        if title.isprintable():  # what viewer and steps hand over
            path = write_page(tmp_path / "page.html", title, Html("<p>x</p>"))
            found = structure(path.read_text("utf-8"))
            assert found <= structure(whole_page("x", Html("<p>x</p>"))), (
                title
            )


def test_a_structure_that_differs_is_seen():
    assert not structure("<b onx=1>") <= structure("<b>")
    assert not structure("<!-- x -->") <= structure("x")


@FEW
@given(tokens=TOKENS, title=WORDS)
@example(tokens=NASTY[:5], title=NASTY[3])
@example(tokens=["$$", "$\\frac$", "_^", "-->", "\0"], title="$$ -->")
@example(tokens=["\ud800", "\udfff", "\x1b[2J", "\u202e", "<xss>"], title="\ud800")
def test_a_figure_is_drawn_and_its_svg_is_well_formed(tokens, title):
    figure = plotting.plot_attention(PROBS[0, 0], tokens, title=title)
    image = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(image, format="svg")
    root = ElementTree.fromstring(image.getvalue())
    names = {element.tag.split("}")[-1] for element in root.iter()}
    assert {"svg", "g", "path"} <= names
    assert not {"script", "xss", "b", "foreignObject"} & names
    assert not [n for e in root.iter() for n in e.attrib if n.startswith("on")]


@QUICK
@given(tokens=TOKENS)
@example(tokens=NASTY[:5])
def test_a_description_is_one_line_that_can_be_written(tokens):
    text = plotting.describe_attention(PROBS, tokens)
    assert text.encode("utf-8").decode("utf-8") == text
    assert not [ch for ch in text if ord(ch) < 32 or ch in "\x7f\u2028\u2029\u202e"]


def test_maps_are_left_as_they_are():
    before = MAPS.copy()
    viewer(NASTY[:5], NASTY[0])
    np.testing.assert_array_equal(MAPS, before)


@pytest.mark.parametrize(
    "call, words", [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_arguments_that_do_not_fit_are_one_error(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertError) as caught:
        call()
    assert type(caught.value) is BertError and len(str(caught.value)) <= 300
    assert [word for word in words if word not in str(caught.value)] == []
    assert list(tmp_path.iterdir()) == []  # nothing is left half-written
