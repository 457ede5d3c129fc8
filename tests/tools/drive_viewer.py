"""Drive the viewer in a headless Chromium: a command, not a test.

    python tests/tools/drive_viewer.py [folder for screenshots]

Needs playwright, JupyterLab, nbconvert and chromium on the path. Prints
what it checked; the exit status is 1 if something failed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
from playwright.sync_api import sync_playwright

from bert_np.plotting import attention_viewer

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]
PROBS = np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 3, 5))
ROUNDED = np.rint(PROBS * 255) / 255
ATTACK = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
LAB = "http://127.0.0.1:8917"
CELL = """\
import numpy as np
from bert_np.plotting import attention_viewer
probs = np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 3, 5))
attention_viewer(probs, ["[CLS]", "the", "cat", "sat", "[SEP]"], title="driven")
"""
TEXTS = [".title", ".state", ".live", ".queries .token", ".keys .token", ".rounding"]
TEXTS += [".viewer thead th", ".viewer tbody th", "select.layer", ".queries .token.on"]
CONTRAST = """(element) => {
  const pen = document.createElement("canvas").getContext("2d");
  const rgba = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1); return pen.getImageData(0, 0, 1, 1).data; };
  let behind = element, ground;
  do { ground = rgba(getComputedStyle(behind).backgroundColor);
       behind = behind.parentElement ?? behind.getRootNode().host; }
  while (ground[3] === 0 && behind);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [low, high] = [light(ground), light(rgba(getComputedStyle(element).color))]
    .sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05); }"""
failures = []


def check(name, found, expected=True):
    """Print one finding and remember a failure."""
    good = found == expected
    print(f"{'ok    ' if good else 'FAILED'} {name}{'' if good else f': {found!r}'}")
    if not good:
        failures.append(name)


def open_page(browser, url, requests=None, **options):
    """Open a page whose errors and dialogs are failures."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    page.on("request", lambda r: None if requests is None else requests.append(r.url))
    page.on("pageerror", lambda error: check("no error in the page", str(error)))
    page.on("dialog", lambda d: (check("no dialog", d.message), d.dismiss()))
    page.goto(url, wait_until="domcontentloaded")
    return page


def live(page):
    return page.locator(".live").inner_text()


def state(page):
    return page.locator(".state").inner_text()


def sentence(layer, head, query, key):
    """What the live line says about one value."""
    value = ROUNDED[layer, head, query, key]
    place = f"(layer {layer}, head {head})"
    return f"{TOKENS[query]} attends to {TOKENS[key]}: {value:.2f} {place}"


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def check_contrast(page, where, texts=TEXTS):
    for text in texts:
        ratio = page.locator(text).first.evaluate(CONTRAST)
        check(f"{where}: contrast of {text} is {ratio:.1f}", ratio >= 4.5)


# ------------------------------------------------------- the page by itself
def drive_page(browser, folder):
    """Choose, hover, and use the keyboard in a saved page."""
    path = attention_viewer(PROBS, TOKENS, title="page").save(folder / "page.html")
    requests = []
    page = open_page(browser, path.as_uri(), requests)
    check("starts at the first head", state(page), "layer 0, head 0")
    page.locator("select.layer").select_option("1")
    page.locator("select.head").select_option("2")
    check("menus choose layer and head", state(page), "layer 1, head 2")
    for drive in (drive_pointer, drive_keyboard, drive_thumbnails, drive_specials):
        drive(page)
    urls = [url for url in requests if not url.startswith("data:")]
    check("a page asks for nothing but itself", urls, [path.as_uri()])
    page.close()


def drive_pointer(page):
    queries, keys = page.locator(".queries .token"), page.locator(".keys .token")
    page.locator(".viewer tbody td").nth(2 * 5 + 1).hover()
    check("hover on a cell is stated", live(page), sentence(1, 2, 2, 1))
    check("and marks one line", page.locator("line.pair").count(), 1)
    page.mouse.move(5, 5)
    check("leaving takes the marks away", page.locator(".on").count(), 0)
    queries.nth(2).hover()
    check("a query names its keys", live(page).startswith("cat attends most to "))
    check("and marks its row", page.locator("td.row").count(), 5)
    queries.nth(2).click()
    keys.nth(3).hover()
    check("a chosen query and a key make a pair", live(page), sentence(1, 2, 2, 3))
    press(page, "Escape")
    page.mouse.move(5, 5)
    check("Escape clears", live(page).startswith("Point at a token"))
    keys.nth(1).hover()
    check("a key names its queries", live(page).startswith("the gets most from "))
    page.mouse.move(5, 5)


def drive_keyboard(page):
    page.locator("select.special").focus()
    press(page, "Tab", "Tab")
    check("Tab leads to the queries", live(page).startswith("cat attends most"))
    press(page, "ArrowRight", "ArrowUp")
    check("arrows to a key make a pair", live(page), sentence(1, 2, 2, 1))
    press(page, "Tab", "ArrowDown", "ArrowRight", "ArrowRight")
    check("arrows in the matrix", live(page), sentence(1, 2, 1, 2))
    press(page, "End", "ArrowRight")
    check("End leads to the last key, and it holds", live(page), sentence(1, 2, 1, 4))
    stops = page.locator('.viewer [tabindex="0"]').count()
    check("one Tab stop each for thumbnails, queries, keys, matrix", stops, 4)


def drive_thumbnails(page):
    page.locator("canvas").nth(1).click()
    check("a click on a thumbnail chooses", state(page), "layer 0, head 1")
    check("and keeps the chosen cell", live(page), sentence(0, 1, 1, 4))
    press(page, "ArrowDown", "ArrowLeft")
    check("arrows choose among thumbnails", state(page), "layer 1, head 0")
    chosen = page.locator("canvas[aria-checked=true]")
    check("one is marked", chosen.get_attribute("aria-label"), "layer 1, head 0")
    check("the menus follow", page.locator("select.head").input_value(), "0")


def drive_specials(page):
    page.locator("select.special").select_option("hide")
    check("hidden specials are gone", page.locator(".keys .token").count(), 3)
    check("and that is stated", "not renormalised" in state(page))
    cell = page.locator(".viewer tbody td").nth(1 * 3 + 0)
    check("values are as before", cell.inner_text(), f"{ROUNDED[1, 0, 2, 1]:.2f}")
    page.locator("select.special").select_option("renormalise")
    check("renormalising is stated", "renormalised to sum to 1" in state(page))
    rest = PROBS[1, 0, 2, 1:4]
    off = abs(float(cell.inner_text()) - rest[0] / rest.sum())
    check("within the stated error", off < 1 / 510 / rest.sum() + 0.006)
    page.locator("select.special").select_option("show")


def drive_hidden_rows(browser, folder):
    """A row that is almost all hidden is not blown up out of rounding."""
    rows = [[0.5, 0.2, 0.2, 0.1], [0.995, 0.003, 0.002, 0], [0.8, 0.15, 0.05, 0]]
    probs, tokens = np.array([*rows, [0.25] * 4]), ["[CLS]", "the", "cat", "[SEP]"]
    viewer = attention_viewer(probs, tokens, special="renormalise")
    page = open_page(browser, viewer.save(folder / "hidden.html").as_uri())
    cells = page.locator(".viewer tbody td")
    shown = cells.all_inner_texts()
    check("a hidden row shows no numbers", shown, ["?", "?", "0.75", "0.25"])
    cells.nth(1).hover()
    check("and says why", "? (0.99 of its attention is hidden)" in live(page))
    cells.nth(2).hover()
    check("values carry their error", live(page)[-11:], "0.75 \u00b1 0.01")
    page.close()


def drive_attack(browser, folder):
    """Tokens and titles with markup do nothing."""
    tokens = [ATTACK, "</style><style>*{display:none}", "]]>", "\u2028", "\ud800"]
    viewer, requests = attention_viewer(PROBS, tokens, title=ATTACK), []
    url = viewer.save(folder / "attack.html").as_uri()
    page = open_page(browser, url, requests)
    page.locator(".viewer tbody td").nth(1).hover()
    check("a token with a script stays text", live(page).startswith("<img src=x oner"))
    check("no element was made of it", page.locator("img, script").count(), 2)
    urls = [url for url in requests if not url.startswith("data:")]
    check("nothing was asked for", urls, [url])
    page.close()


def drive_themes(browser, folder):
    for scheme in ("light", "dark"):
        url = (folder / "page.html").as_uri()
        page = open_page(browser, url, color_scheme=scheme)
        page.locator(".queries .token").nth(2).click()
        page.locator(".keys .token").nth(1).hover()
        page.screenshot(path=folder / f"page_{scheme}.png", full_page=True)
        check_contrast(page, scheme)
        page.close()


def drive_several(browser, folder):
    """Several viewers on one page do not interfere, even one shown twice."""
    parts = [attention_viewer(PROBS[..., :n, :n] / 2, TOKENS[:n]) for n in (3, 5)]
    path = folder / "several.html"
    html = "".join(viewer._repr_html_() for viewer in [*parts, parts[0]])
    path.write_text(html, encoding="utf-8")
    page = open_page(browser, path.as_uri())
    page.locator("select.head").nth(1).select_option("2")
    states = [place.inner_text()[-6:] for place in page.locator(".state").all()]
    check("viewers are independent", states, ["head 0", "head 2", "head 0"])
    page.close()


# ---------------------------------------------------------------- notebooks
def run_notebook(folder):
    """Write and run a notebook with one viewer."""
    cell = nbformat.v4.new_code_cell(CELL)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    path = folder / "viewer.ipynb"
    nbformat.write(notebook, path)
    convert = ["-m", "nbconvert", path, "--execute", "--to", "notebook", "--inplace"]
    subprocess.run([sys.executable, *convert], env=ENVIRONMENT, check=True)
    outputs = nbformat.read(path, as_version=4).cells[0].outputs
    kinds = [sorted(output.data) for output in (outputs[0], outputs[-1])]
    expected = [["image/png", "text/plain"], ["text/html", "text/plain"]]
    check("outputs: the PNG first, the viewer last", kinds, expected)


def start_lab(folder, theme):
    """Start JupyterLab on a folder and return the process once it answers."""
    settings = folder / "settings" / "overrides.json"
    settings.parent.mkdir(exist_ok=True)
    themes = {"@jupyterlab/apputils-extension:themes": {"theme": theme}}
    settings.write_text(json.dumps(themes))
    options = ["--no-browser", "--port=8917", "--ServerApp.token=", "--allow-root"]
    options += ["--ServerApp.password=", f"--ServerApp.root_dir={folder}"]
    options += [f"--LabApp.app_settings_dir={settings.parent}"]
    folders = {f"JUPYTER_{x}_DIR": str(folder / x) for x in ("DATA", "CONFIG")}
    command = [sys.executable, "-m", "jupyter", "lab", *options]
    quiet = {"env": {**ENVIRONMENT, **folders}, "stderr": subprocess.DEVNULL}
    lab = subprocess.Popen(command, **quiet)
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{LAB}/api/status", timeout=1)
            return lab
        except OSError:
            time.sleep(0.5)
    raise SystemExit("JupyterLab does not answer")


def drive_lab(browser, folder, theme):
    """As cloned, no script runs; after a run the viewer follows the theme."""
    requests = []
    page = open_page(browser, f"{LAB}/lab/tree/viewer.ipynb", requests)
    page.locator(".jp-OutputArea-output").first.wait_for(timeout=90_000)
    page.wait_for_timeout(3000)
    check(f"{theme}, untrusted: no script runs", page.locator(".viewer").count(), 0)
    cells = page.locator(".jp-OutputArea td[title]").count()
    check(f"{theme}, untrusted: the table remains", cells, 25)
    page.locator(".jp-Cell").first.click()
    press(page, "Control+Enter")
    page.locator(".viewer").wait_for(timeout=60_000)
    page.locator("select.layer").select_option("1")
    page.locator(".queries .token").nth(2).click()
    press(page, "ArrowRight", "ArrowUp")
    check(f"{theme}: the keyboard drives it", live(page), sentence(1, 0, 2, 1))
    check_contrast(page, theme, TEXTS[:5])
    page.screenshot(path=folder / f"{theme}.png")
    own = (LAB, "ws://127.0.0.1", "data:", "blob:")
    foreign = [url for url in requests if not url.startswith(own)]
    check(f"{theme}: no request leaves the machine", foreign, [])
    page.close()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        place = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        for drive in (drive_page, drive_hidden_rows, drive_attack, drive_themes):
            drive(browser, folder)
        drive_several(browser, folder)
        run_notebook(folder)
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            lab = start_lab(folder, theme)
            drive_lab(browser, folder, theme)
            lab.terminate()
            lab.wait(timeout=30)
    print(f"{len(failures)} failed; screenshots are in {folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())))
