"""The viewer as somebody uses it: sliders, several heads, pairs, long texts."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from plotting.samples import names, random_probs

from bert_np.plotting import attention_viewer, colours

pytestmark = pytest.mark.browser
PROBS = random_probs(2, 3, 5, 5)
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]
ROUNDED = np.rint(PROBS * 255) / 255
ATTACK = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
PAIR = ["[CLS]", "one", "[SEP]", "two", "three", "[SEP]"]


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a viewer; `all` finds its elements, `set` moves a slider."""

    def show(probs, tokens, width=1300, **options):
        viewer = attention_viewer(probs, tokens, **options)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chromium.send("Emulation.setDeviceMetricsOverride", **size)
        chromium.open(viewer.save(tmp_path / "viewer.html").as_uri())
        chromium.run(
            """var shadow = document.querySelector("div > div").shadowRoot;
            var all = (selector) => [...shadow.querySelectorAll(selector)];
            var texts = (selector) => all(selector).map((x) => x.textContent);
            var set = (name, value) => { all(name)[0].value = value;
              all(name)[0].dispatchEvent(new Event("input")); };"""
        )
        return chromium

    yield show
    chromium.send("Emulation.clearDeviceMetricsOverride")


def press(page, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def live(page):
    return page.run("texts('.live')[0]")


def sentence(layer, head, query, key):
    value = f"{ROUNDED[layer, head, query, key]:.2f}"
    place = f"(layer {layer}, head {head})"
    return f"{TOKENS[query]} attends to {TOKENS[key]}: {value} {place}"


def test_sliders_choose_layer_and_head_and_keep_the_cell(opened):
    page = opened(PROBS, TOKENS)
    page.run("all('.map tbody td')[0].focus()")
    press(page, "ArrowDown", "ArrowDown", "ArrowRight")
    assert live(page) == sentence(0, 0, 2, 1)
    page.run("set('.layer', 1); set('.head', 2)")
    assert live(page) == sentence(1, 2, 2, 1)
    shown = [f"{p:.2f}" for p in ROUNDED[1, 2].ravel()]
    assert page.run("texts('.map tbody td')") == shown
    assert page.run("all('canvas[aria-checked=true]').map((x) => x.title)") == [
        "layer 1, head 2"
    ]
    assert page.errors() == ([], [])


def test_keys_lead_through_thumbnails_and_both_columns(opened):
    page = opened(PROBS, TOKENS)
    page.run("all('canvas[tabindex=\"0\"]')[0].focus()")
    press(page, "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight")
    assert page.run("texts('.state')[0]") == "layer 1, head 2"
    page.run("all('.queries .token')[0].focus()")
    press(page, "ArrowDown", "ArrowDown")
    assert live(page).startswith("cat attends most to ")
    press(page, "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown")
    assert live(page) == sentence(1, 2, 2, 3)
    stops = page.run("all('.views [tabindex=\"0\"]').length")
    assert stops == 3  # map, queries, keys
    press(page, "Escape")
    assert live(page).startswith("Point at a token")


def test_the_value_of_a_pointed_at_cell_is_stated(opened):
    page = opened(PROBS, TOKENS)
    box = "JSON.stringify(all('.map tbody td')[2 * 5 + 3].getBoundingClientRect())"
    place = page.run(f"JSON.parse({box})")
    middle = {"x": place["x"] + 9, "y": place["y"] + 9}
    page.send("Input.dispatchMouseEvent", type="mouseMoved", **middle)
    assert live(page) == sentence(0, 0, 2, 3)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert live(page).startswith("Point at a token")


def test_several_heads_are_bars_in_their_own_colours(opened):
    page = opened(PROBS, TOKENS)
    page.run("all('.several')[0].click(); all('canvas')[5].click()")
    page.run("all('canvas')[1].click(); all('.map tbody td')[7].focus()")
    chips = ["layer 0, head 0", "layer 1, head 2", "layer 0, head 1"]
    assert page.run("texts('.picked button')") == chips
    places = [(0, 0), (1, 2), (0, 1)]
    values = [f"({i}, {j}) {ROUNDED[i, j, 1, 2]:.2f}" for i, j in places]
    assert live(page) == "the attends to cat: " + " · ".join(values)
    style = page.run("all('.map tbody td')[7].style.backgroundImage")
    dots = page.run("all('.picked .dot').map((x) => x.style.backgroundColor)")
    rgb = [to_rgb(colour) for colour in colours.HEADS[:3]]
    assert dots == [f"rgb({', '.join(f'{255 * c:.0f}' for c in one)})" for one in rgb]
    assert [style.index(dot) for dot in dots] == sorted(
        style.index(dot) for dot in dots
    )
    heights = page.run("all('.map tbody td')[7].style.backgroundSize").split(", ")
    found = [float(size.split()[1].rstrip("%")) for size in heights]
    expected = [100 * ROUNDED[i, j, 1, 2] for i, j in places]
    np.testing.assert_allclose(found, expected, atol=0.01)
    page.run("all('.picked button')[0].click()")
    assert page.run("texts('.picked button')") == chips[1:]
    page.run("all('.picked button')[0].click(); all('.picked button')[0].click()")
    assert len(page.run("texts('.picked button')")) == 1  # one always stays
    page.run("all('.several')[0].click()")
    assert page.run("texts('.state')[0]") == "layer 0, head 1"


def test_a_pair_has_a_border_also_without_its_special_tokens(opened):
    page = opened(random_probs(6, 6), PAIR)
    borders = "[texts('.map th.beside'), texts('.map th.below'), texts('.token.below')]"
    assert page.run(borders) == [["two"], ["two"], ["two", "two"]]
    page.run("all('.special')[0].value = 'hide'")
    page.run("all('.special')[0].dispatchEvent(new Event('change'))")
    assert page.run("texts('.map thead th')") == ["one", "two", "three"]
    assert page.run(borders) == [["two"], ["two"], ["two", "two"]]
    width = "getComputedStyle(all('.map td.beside')[0]).borderLeftWidth"
    assert page.run(width) == "5px"


@pytest.mark.parametrize("width", [1300, 900, 400])
@pytest.mark.parametrize("count", [10, 100])
def test_the_map_is_on_the_first_screen_and_nothing_is_cut(opened, width, count):
    maps = (
        np.full((12, 12, 10, 10), 0.1)
        if count == 10
        else np.full((1, 3, 100, 100), 0.01)
    )
    page = opened(maps, [f"token{i}" for i in range(count)], width)
    assert page.run("document.documentElement.scrollWidth") <= width
    panels = "all('.panel').every((x) => x.scrollWidth <= x.clientWidth)"
    assert width < 900 or page.run(panels)
    edges = page.run(
        "{ const { top, bottom } = all('.map')[0].getBoundingClientRect();"
        " [top, bottom] }"
    )
    assert width < 900 or edges[1] <= 900


def test_a_window_slides_over_a_long_text(opened):
    probs = np.full((2, 100, 100), 0.005)
    probs[:, :, 90] = 0.505
    page = opened(probs, names(100))
    assert page.run("all('tbody tr').length") == 40
    assert page.run("texts('thead th')") == names(40)
    page.run("all('.queries .token')[3].focus()")
    start = f"{names(100)[3]} attends most to {names(100)[90]}: 0.5"
    assert live(page).startswith(start)
    page.run("set('.from-keys', 60)")
    assert page.run("texts('thead th')") == names(100)[60:]
    assert page.run("texts('tbody th')") == names(40)
    assert page.run("all('tbody tr')[0].cells[1 + 90 - 60].ariaLabel") == "0.51"
    page.run("all('.map tbody td')[39 * 40].focus()")
    press(page, "ArrowDown", "ArrowLeft")  # beyond the window: it follows
    assert page.run("texts('tbody th').at(-1)") == "t40"
    assert page.run("texts('thead th')[0]") == "t59"
    assert page.errors() == ([], [])


def test_a_short_text_has_no_sliders_for_a_window(opened):
    page = opened(np.eye(5), names(5))
    hidden = "all('[class^=from]').map((x) => x.parentNode.hidden)"
    assert page.run(hidden) == [True, True]
    assert page.run("all('input.layer, input.head').every((x) => x.parentNode.hidden)")


def test_values_carry_their_error_where_little_of_a_row_is_left(opened):
    rows = [[0.5, 0.2, 0.2, 0.1], [0.995, 0.003, 0.002, 0], [0.8, 0.15, 0.05, 0]]
    probs, tokens = np.array([*rows, [0.25] * 4]), ["[CLS]", "the", "cat", "[SEP]"]
    page = opened(probs, tokens, special="renormalise")
    assert page.run("texts('.map tbody td')") == ["?", "?", "0.75", "0.25"]
    page.run("all('.map tbody td')[1].focus()")
    assert "? (0.99 of its attention is hidden)" in live(page)
    page.run("all('.map tbody td')[2].focus()")
    assert live(page).endswith("0.75 \u00b1 0.01")


def test_a_token_or_title_with_a_script_stays_text(opened):
    tokens = [ATTACK, "</style><style>*{display:none}", "]]>", "\u2028", "\ud800"]
    page = opened(PROBS, tokens, title=ATTACK)
    page.run("all('.several')[0].click(); all('.map tbody td')[1].focus()")
    assert live(page).startswith("<img src=x oner")
    made = (
        "[document.querySelectorAll('script, img').length, all('script, img').length]"
    )
    assert page.run(made) == [2, 0]  # the picture and the viewer's own script
    assert page.errors() == ([], [])


def test_several_viewers_on_one_page_do_not_interfere(chromium, tmp_path):
    one, other = (attention_viewer(PROBS[..., :n, :n] / 2, TOKENS[:n]) for n in (3, 5))
    html = "".join(viewer._repr_html_() for viewer in (one, other, one))
    (tmp_path / "several.html").write_text(html, "utf-8")
    chromium.open((tmp_path / "several.html").as_uri())
    chromium.run(
        """var shadows = [...document.querySelectorAll("div > div")]
          .map((host) => host.shadowRoot).filter(Boolean);
        var slider = shadows[1].querySelector("input.head");
        slider.value = 2; slider.dispatchEvent(new Event("input"));"""
    )
    states = "shadows.map((x) => x.querySelector('.state').textContent.slice(-6))"
    assert chromium.run(states) == ["head 0", "head 2", "head 0"]


CONTRASTS = """(selectors) => {
  const pen = document.createElement("canvas").getContext("2d");
  const rgba = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1); return pen.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  return selectors.map((selector) => {
    const element = all(selector)[0];
    let behind = element, ground;
    do { ground = rgba(getComputedStyle(behind).backgroundColor);
         behind = behind.parentElement ?? behind.getRootNode().host; }
    while (ground[3] === 0 && behind);
    const [low, high] = [light(ground), light(rgba(getComputedStyle(element).color))]
      .sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05); }); }"""
TEXTS = [".title", ".state", ".live", ".queries .token", ".keys .token", ".rounding"]
TEXTS += [
    ".map thead th",
    ".map tbody th",
    ".special",
    ".queries .token.on",
    ".caption",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_readable_in_both_themes(opened, scheme):
    page = opened(PROBS, TOKENS)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.send("Emulation.setEmulatedMedia", features=[feature])
    page.run("all('.queries .token')[2].focus()")
    contrasts = page.run(f"({CONTRASTS})({TEXTS})")
    assert min(contrasts) >= 4.5, dict(zip(TEXTS, contrasts))
    page.send("Emulation.setEmulatedMedia", features=[])
