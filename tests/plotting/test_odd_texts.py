"""Whatever stands in a token or a title, pages and figures stay what they are.

The structure of a page (its tags and the names of their attributes) must
be the same as for harmless words; SVG files must be well-formed.
"""

import io
import warnings
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plotting.refusals import CASES, TRACE
from plotting.samples import Page, random_probs

from bert_np import BertError, plotting
from bert_np.plotting.html import Html, page, write_page

PROBS = random_probs(5, 5)
NASTY = ["<script>alert(1)</script>", "</script><script>", "<!--", "-->", "]]>"]
NASTY += ["\"'`", "' onx='1", '" onx="1', "<b onx=1>", "&lt;", "&#60;b&#62;", "</body>"]
NASTY += ["<svg onload=x>", "${x}", "%s", "{0}", "\\", "$\\frac$", "$$", "_^", "\u2028"]
NASTY += ["\u202e", "\ud800", "\udfff", "\0", "\x1b[2J", "\ufeff", "مرحبا"]
NASTY += ["\U0001f469\u200d\U0001f52c", "", " ", "\n", "<" * 2000]
WORDS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.text(st.sampled_from("<>&\"'`=/-![]$\\{}ax "), max_size=20),
)
TOKENS = st.lists(WORDS, min_size=5, max_size=5)
FEW = settings(max_examples=5)


def table(tokens, title):
    return plotting.attention_table(PROBS, tokens, title=title)._repr_html_()


def viewer(tokens, title):
    return plotting.attention_viewer(PROBS, tokens, title=title)._repr_html_()


def steps(tokens, title):
    return plotting.step_through(TRACE, tokens, vocabulary=[title])._repr_html_()


@pytest.mark.parametrize("write", [table, viewer, steps])
@FEW
@given(tokens=TOKENS, title=WORDS)
@example(tokens=NASTY[:5], title=NASTY[0])
@example(tokens=NASTY[5:10], title=NASTY[7])
@example(tokens=["\ud800", "\u2028", "", "a", "-->"], title=NASTY[2])
def test_no_token_or_title_changes_a_page(write, tokens, title):
    harmless = Page(write(["the", "cat", "sat", "on", "x" * 400], "title"))
    assert Page(write(tokens, title)).structure() <= harmless.structure()


def test_no_title_changes_a_saved_page(tmp_path):
    body = Html("<p>x</p>")
    for title in filter(str.isprintable, NASTY):  # as viewer and steps hand over
        path = write_page(tmp_path / "page.html", title, body)
        found = Page(path.read_text("utf-8"))
        assert found.structure() == Page(page("x", body)).structure()
        assert title.strip() in found.text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@FEW
@given(tokens=TOKENS, title=WORDS)
@example(tokens=["$$", "$\\frac$", "-->", "\x1b[2J", "<xss>"], title="$$ -->")
def test_a_figure_is_drawn_and_its_svg_is_well_formed(tokens, title):
    figure = plotting.plot_attention(PROBS, tokens, title=title)
    text, picture = figure.description, io.BytesIO()
    assert text.encode("utf-8") and not set(text) & set("\0\n\x7f\u2028\x1b")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(picture, format="svg")
    root = ElementTree.fromstring(picture.getvalue())
    kinds = {element.tag.split("}")[-1] for element in root.iter()}
    assert "path" in kinds and not {"script", "xss", "b", "foreignObject"} & kinds
    assert not [n for e in root.iter() for n in e.attrib if n.startswith("on")]


@pytest.mark.parametrize("call, words", CASES)
def test_what_cannot_be_drawn_is_refused(call, words):
    with pytest.raises(BertError) as refusal:
        call()
    message = str(refusal.value)
    assert len(message) <= 300 and [w for w in words if w not in message] == []
