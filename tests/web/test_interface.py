"""The page as somebody uses it: typing, clicking, arrow keys, the address."""

import json
import re

import numpy as np
import pytest
from web.models import MODELS, random_model
from web.pages import open_folder

from bert_np import bert, load_pretrained, save_pretrained
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from notebooks import NOTEBOOKS

pytestmark = pytest.mark.browser
CHOSEN = "[state.layer, state.head, shown.tokens[state.query], shown.tokens[state.key]]"
TEXT = "the cat sees the dogs . the [MASK] is old ."
TEACHING = (NOTEBOOKS / "TEACHING.md").read_text(encoding="utf-8")
TEACHERS = re.findall(r"bert\.html(#\S+)", TEACHING)
ATTACK = "<img src=x onerror=alert(1)>"


def act(page, script):
    """Run a script and wait until the page shows what it changed."""
    page.run(script)
    page.wait("shown && find('message').hidden")


def begin(page, **choice):
    act(page, f"start({json.dumps({'text': TEXT} | choice)})")


def type_at(page, place, text):
    """Type into the sentence, with the cursor at a place."""
    page.run(f"find('text').focus(); find('text').setSelectionRange({place}, {place})")
    before = page.run("shown.tokens.length")
    page.send("Input.insertText", text=text)
    page.wait(f"shown.tokens.length !== {before}")


def press(page, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def text_of(page, name):
    return page.run(f"find('{name}').textContent")


def test_typing_keeps_layer_head_and_tokens(page):
    begin(page, layer=2, head=3, query=8, key=2)
    act(page, "state.hidden.add(2); run()")
    expected = [2, 3, "[MASK]", "cat"]
    assert page.run(CHOSEN) == expected
    type_at(page, 4, "old ")
    assert page.run(CHOSEN) == expected and page.run("[...state.hidden]") == [3]
    type_at(page, len(TEXT), " he ran .")
    assert page.run(CHOSEN) == expected
    assert text_of(page, "place") == "Layer 2, head 3"
    assert page.run("find('live').textContent").startswith(
        "[MASK] attends to cat: 0.000"
    )


def test_a_text_that_is_too_long_leaves_the_last_picture(page):
    begin(page)
    page.run("find('text').value = 'the cat '.repeat(40)")
    page.run("find('text').dispatchEvent(new Event('input'))")
    page.wait("!find('message').hidden")
    assert text_of(page, "message") == "The text has 82 tokens, allowed: at most 64."
    assert page.run("cells.length") == 13


def numbers(page, row):
    """The numbers of the rows of this name below the chosen cell."""
    script = f"""Array.from(find('numbers').querySelectorAll('tr'))
      .filter((line) => line.firstChild.textContent === {json.dumps(row)})
      .flatMap((line) => Array.from(line.cells).slice(1).map((c) => c.textContent))"""
    found = [text.replace("\u2212", "-") for text in page.run(script)]
    return [float(text) for text in found if not text.startswith("Σ")]


def test_a_click_opens_the_numbers_behind_a_cell(page):
    begin(page, layer=1, head=2)
    page.run("cells[8][2].click()")
    toy, trace = load_pretrained("toy"), {}
    ids = toy.tokenizer.encode(TEXT).input_ids[None]
    bert(ids, toy.params, toy.config, attention_mask=np.ones_like(ids), trace=trace)
    head = {
        n: x[0, 2] for n, x in trace["layers"][1]["attention"].items() if x.ndim == 4
    }
    q, k, v = head["q"][8], head["k"][2], head["v"][2]
    p, scores = head["probs"][8], head["scores"][8]
    expected = {"query q": q, "key k": k, "product": q * k, "score": scores}
    expected |= {"exp": np.exp(scores - scores.max()), "probability": p}
    expected |= {"value v": v, f"{p[2]:.3f} × v": p[2] * v, "context": p @ head["v"]}
    for row, values in expected.items():
        found = numbers(page, row)
        np.testing.assert_allclose(found, values, rtol=0, atol=0.00501, err_msg=row)
    text = text_of(page, "numbers").replace("\u2212", "-")
    assert f"q · k = {q @ k:.3f}" in text and f" = {scores[2]:.3f} is the score" in text
    title = f"Where the {p[2]:.3f} comes from: [MASK] looks at cat"
    assert text_of(page, "behindTitle") == title


def test_arrow_keys_lead_through_heads_and_cells(page):
    begin(page, layer=0, head=0, query=1, key=1)
    page.run("thumb(0, 0).focus()")
    press(page, "ArrowDown", "ArrowRight", "ArrowRight")
    assert page.run(CHOSEN)[:2] == [1, 2]
    assert page.run("document.activeElement.getAttribute('aria-checked')") == "true"
    page.run("cells[1][1].focus()")
    press(page, "ArrowRight", "ArrowDown", "ArrowDown", "End")
    assert page.run("[state.query, state.key]") == [3, 12]
    focused = page.run("document.activeElement.getAttribute('aria-label')")
    assert re.fullmatch(r"sees attends to \[SEP\]: 0\.\d{3}", focused)
    stops = page.run("find('map').querySelectorAll('[tabindex=\"0\"]').length")
    assert stops == 1


def test_several_heads_are_bars_and_stand_in_the_address(page, page_file):
    begin(page, layer=0, head=1, query=8, key=2)
    page.run("find('several').click(); thumb(2, 3).click(); thumb(1, 0).click()")
    places = [(0, 1), (2, 3), (1, 0)]
    values = page.run(f"{[list(p) for p in places]}.map((p) => weightOf(8, 2, p))")
    said = [f"({a}, {b}) {p:.3f}" for (a, b), p in zip(places, values)]
    assert text_of(page, "live") == "[MASK] attends to cat: " + " · ".join(said)
    sizes = page.run("cells[8][2].style.backgroundSize").split(", ")
    heights = [float(size.split()[1].rstrip("%")) / 100 for size in sizes]
    np.testing.assert_allclose(heights, values, atol=1e-5)
    assert page.run("find('picked').querySelectorAll('button').length") == 3
    page.run("thumb(1, 0).focus()")
    press(page, "ArrowUp")  # leads on, and chooses nothing yet
    assert page.run("document.activeElement.id") == "thumb-0-0"
    assert page.run("state.picked.length") == 3
    wanted = page.run("writeAddress()")
    page.open("about:blank")
    page.open(page_file.as_uri() + wanted)
    page.wait("shown")
    assert page.run("state.picked") == [list(place) for place in places]
    page.run("find('several').click()")
    assert text_of(page, "place") == "Layer 1, head 0"
    assert page.run("cells[8][2].textContent") == f"{values[2]:.2f}".replace("0.00", "")
    assert page.errors() == ([], [])


def test_changes_show_what_the_guess_was(page):
    begin(page, query=8, key=5, layer=2, head=1)
    before = text_of(page, "guesses")
    act(page, "find('hide').click()")
    assert " was " in text_of(page, "guesses") and "Cosine" in text_of(page, "guesses")
    act(page, "find('off').click()")
    assert text_of(page, "place") == "Layer 2, head 1 (switched off)"
    page.run("find('temperature').value = -0.5")
    page.run("find('temperature').dispatchEvent(new Event('input'))")
    page.wait("find('temperatureText').textContent === '0.32'")
    act(page, "find('undo').click()")
    assert text_of(page, "guesses") == before
    assert page.run("find('off').checked || find('hide').checked") is False


def test_the_address_holds_what_is_shown(page, page_file):
    begin(page, layer=1, head=3, query=2, key=4)
    page.run(
        "state.off.add('0.2'); state.hidden.add(6); state.temperature = 0.5; run()"
    )
    wanted = page.run("writeAddress()")
    page.open("about:blank")
    page.open(page_file.as_uri() + wanted)
    page.wait("shown")
    assert page.run("writeAddress()") == wanted
    assert page.run(CHOSEN) == [1, 3, "cat", "the"]
    assert page.run("[[...state.off], [...state.hidden], state.temperature]") == [
        ["0.2"],
        [6],
        0.5,
    ]
    for odd in ("#text=a&layer=x&head=99&query=-3&temperature=0&off=%00", "#text="):
        page.open("about:blank")
        page.open(page_file.as_uri() + odd)
        page.wait("shown || !find('message').hidden")
        assert page.errors() == ([], [])


def test_insert_mask_replaces_the_selected_word(page):
    begin(page, text="the cat sees the dogs .")
    page.run("find('text').setSelectionRange(4, 7); find('mask').click()")
    page.wait("shown.tokens.includes('[MASK]')")
    assert page.run("state.text") == "the [MASK] sees the dogs ."


def test_markup_stays_text(page, tmp_path):
    model = random_model(tmp_path / "own", **MODELS["erf"])
    tokens = [*SPECIAL_TOKENS, "</script>", "<b>"]  # six of the seven are guessed
    tokenizer = Tokenizer.from_tokens(tokens)
    save_pretrained(tmp_path / "<b>own", model.params, model.config, tokenizer)
    assert open_folder(page, tmp_path / "<b>own").startswith("Running: <b>own")
    act(page, f"start({{ text: {json.dumps(ATTACK + ' [MASK]')} }})")
    assert page.run("document.querySelectorAll('img, b, iframe').length") == 0
    assert len(page.run("shown.tokens")) == 15 and "<" in text_of(page, "guesses")
    assert page.errors() == ([], [])


def test_it_fits_a_narrow_screen_and_a_long_text_slides(page, minilm):
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.send("Emulation.setDeviceMetricsOverride", **size)
    page.run("start({ text: 'the cat sees the dogs . '.repeat(9) })")
    page.wait("cells.length === MOST_CELLS && !find('slides').hidden")
    assert page.run("document.documentElement.scrollWidth") <= 400
    page.run("choose({ query: 50, key: 3 })")
    assert page.run("[state.rowFrom, state.columnFrom]") == [11, 0]
    chosen = page.run("find('map').querySelector('.chosen').ariaLabel")
    assert chosen.startswith("cat attends to sees: ")
    page.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("address", TEACHERS)
def test_the_addresses_for_teachers_open_what_they_hold(page, page_file, address):
    page.open("about:blank")
    page.open(page_file.as_uri() + address)
    page.wait("shown")
    assert page.run("writeAddress()") == address
    assert page.run("find('message').hidden") and page.errors() == ([], [])
