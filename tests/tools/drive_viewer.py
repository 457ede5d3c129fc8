"""Drive the viewer in a headless Chromium: a command, not a test.

    python tests/drive_viewer.py [folder for screenshots]

Needs playwright, jupyterlab, nbconvert and /usr/bin/chromium. Prints what
it checked; the exit status is 1 where something failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient

from bert_np.plotting import attention_viewer

ROOT = Path(__file__).resolve().parents[1]
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]
ATTACK = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
PORT = 8917
CELLS = """\
import numpy as np
from bert_np.plotting import attention_viewer
probs = np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 3, 5))
attention_viewer(probs, ["[CLS]", "the", "cat", "sat", "[SEP]"], title="driven")
"""
failures = []


def check(name, good, found=""):
    """Print one finding and remember a failure."""
    print(f"{'ok    ' if good else 'FAILED'} {name}{'' if good else f': {found}'}")
    if not good:
        failures.append(name)


def example_probs():
    """(L, A, T, T) of 2 layers and 3 heads."""
    return np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 3, 5))


def new_page(browser, requests, **options):
    """Open a page that records requests, errors and dialogs."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    page.on("request", lambda r: requests.append(r.url))
    page.on("pageerror", lambda error: check("no error in the page", False, error))
    page.on("dialog", lambda d: (check("no dialog", False, d.message), d.dismiss()))
    return page


def live(page):
    return page.locator(".live").inner_text()


def focused(page):
    """The class or tag of the focused element inside the viewer."""
    return page.evaluate("""() => {
      let e = document.activeElement;
      while (e.shadowRoot) e = e.shadowRoot.activeElement;
      return e.className || e.tagName; }""")


# ------------------------------------------------------- the page by itself


def drive_page(browser, folder):
    """Choose, hover, and use the keyboard in a saved page."""
    probs = example_probs()
    path = attention_viewer(probs, TOKENS, title="page").save(folder / "page.html")
    requests = []
    page = new_page(browser, requests)
    page.context.set_offline(True)
    page.goto(path.as_uri())
    expect = sentences(probs)
    check(
        "starts at layer 0, head 0",
        "layer 0, head 0" in page.locator(".state").inner_text(),
    )
    page.locator("select.layer").select_option("1")
    page.locator("select.head").select_option("2")
    check(
        "menus choose layer and head",
        page.locator(".state").inner_text() == "layer 1, head 2",
    )
    drive_pointer(page, expect)
    drive_keyboard(page, expect)
    drive_thumbnails(page, expect)
    drive_specials(page, probs)
    check("globals", page.evaluate("typeof startViewer") == "undefined")
    urls = [url for url in requests if not url.startswith("data:")]
    check("a page asks for nothing but itself", urls == [path.as_uri()], urls)
    page.close()


def sentences(probs):
    """What the live line says about (layer, head, query, key)."""
    values = np.rint(probs * 255) / 255

    def sentence(layer, head, query, key):
        return (
            f"{TOKENS[query]} attends to {TOKENS[key]}: "
            f"{values[layer, head, query, key]:.2f} (layer {layer}, head {head})"
        )

    return sentence


def drive_pointer(page, expect):
    page.locator(".viewer tbody td").nth(2 * 5 + 1).hover()
    check("hover on a cell is stated", live(page) == expect(1, 2, 2, 1), live(page))
    marked = page.locator(".token.on").all_inner_texts()
    check(
        "and marks the head view",
        [text.split("\n")[0].strip() for text in marked] == ["cat", "the"],
        marked,
    )
    lines = page.locator("line.pair")
    check("and one line", lines.count() == 1)
    page.mouse.move(5, 5)
    check("leaving takes the marks away", page.locator(".on").count() == 0)
    page.locator(".queries .token").nth(2).hover()
    check(
        "hover on a query names the strongest keys",
        live(page).startswith("cat attends most to ") and live(page).count(":") == 3,
        live(page),
    )
    check("and marks the row of the matrix", page.locator("td.row").count() == 5)
    page.locator(".queries .token").nth(2).click()
    page.locator(".keys .token").nth(3).hover()
    check(
        "a chosen query and a key under the pointer make a pair",
        live(page) == expect(1, 2, 2, 3),
        live(page),
    )
    page.keyboard.press("Escape")
    page.mouse.move(5, 5)
    check("Escape clears", live(page).startswith("Point at a token"), live(page))
    page.locator(".keys .token").nth(1).hover()
    check(
        "a key alone names its strongest queries",
        live(page).startswith("the gets most from "),
        live(page),
    )
    page.mouse.move(5, 5)


def drive_keyboard(page, expect):
    page.locator("select.special").focus()
    page.keyboard.press("Tab")
    check(
        "Tab: from the menus to the thumbnails",
        focused(page) == "CANVAS",
        focused(page),
    )
    page.keyboard.press("Tab")
    check(
        "the chosen layer and head stay",
        page.locator(".state").inner_text() == "layer 1, head 2",
    )
    check(
        "Tab: to the queries, where they were left",
        "token" in focused(page) and live(page).startswith("cat attends most"),
        focused(page),
    )
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    check("arrows to a key make a pair", live(page) == expect(1, 2, 2, 1), live(page))
    page.keyboard.press("Tab")
    check(
        "Tab: to the matrix",
        focused(page).startswith(("row", "column", "TD")),
        focused(page),
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    check("arrows in the matrix", live(page) == expect(1, 2, 1, 2), live(page))
    page.keyboard.press("End")
    check("End: the last key", live(page) == expect(1, 2, 1, 4), live(page))
    page.keyboard.press("ArrowRight")
    check("the edge holds", live(page) == expect(1, 2, 1, 4), live(page))
    stops = page.evaluate("""() => [...document.querySelectorAll('*')]
      .find((e) => e.shadowRoot).shadowRoot
      .querySelectorAll('[tabindex="0"]').length""")
    check("one Tab stop each for thumbnails, queries, keys, matrix", stops == 4, stops)


def drive_thumbnails(page, expect):
    page.locator("canvas").nth(1).click()
    check(
        "a click on a thumbnail chooses",
        page.locator(".state").inner_text() == "layer 0, head 1",
    )
    check("and keeps the chosen cell", live(page) == expect(0, 1, 1, 4), live(page))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    check(
        "arrows choose among thumbnails",
        page.locator(".state").inner_text() == "layer 1, head 0",
    )
    chosen = page.locator("canvas[aria-checked=true]")
    check(
        "one thumbnail is marked",
        chosen.count() == 1 and chosen.get_attribute("aria-label") == "layer 1, head 0",
    )
    check(
        "the menus follow",
        page.locator("select.layer").input_value() == "1"
        and page.locator("select.head").input_value() == "0",
    )


def drive_specials(page, probs):
    page.locator("select.special").select_option("hide")
    check(
        "hidden specials are gone, and it is stated",
        page.locator(".keys .token").count() == 3
        and "not renormalised" in page.locator(".state").inner_text(),
    )
    cell = page.locator(".viewer tbody td").nth(1 * 3 + 0)
    check(
        "hidden: values as they were",
        cell.inner_text() == f"{np.rint(probs[1, 0, 2, 1] * 255) / 255:.2f}",
    )
    page.locator("select.special").select_option("renormalise")
    check(
        "renormalising is stated",
        "renormalised to sum to 1" in page.locator(".state").inner_text(),
    )
    rest = probs[1, 0, 2, 1:4]
    error = 1 / 510 / rest.sum() + 0.006
    check(
        "renormalised: within the stated error",
        abs(float(cell.inner_text()) - rest[0] / rest.sum()) < error,
    )
    page.locator("select.special").select_option("show")


def drive_hidden_rows(browser, folder):
    """A row that is almost all hidden is not blown up out of rounding."""
    probs = np.array(
        [
            [0.5, 0.2, 0.2, 0.1],
            [0.995, 0.003, 0.002, 0],
            [0.8, 0.15, 0.05, 0],
            [0.25] * 4,
        ]
    )
    path = attention_viewer(
        probs, ["[CLS]", "the", "cat", "[SEP]"], special="renormalise"
    ).save(folder / "hidden.html")
    page = new_page(browser, [])
    page.goto(path.as_uri())
    cells = page.locator(".viewer tbody td")
    check(
        "a hidden row shows no numbers",
        cells.all_inner_texts() == ["?", "?", "0.75", "0.25"],
        cells.all_inner_texts(),
    )
    cells.nth(1).hover()
    check(
        "and says why",
        live(page) == "the attends to cat: ? (0.99 of its attention is hidden)",
        live(page),
    )
    cells.nth(2).hover()
    check(
        "renormalised values carry their error",
        live(page) == "cat attends to the: 0.75 \u00b1 0.01",
        live(page),
    )
    page.close()


def drive_attack(browser, folder):
    """Hostile tokens and titles do nothing."""
    tokens = [ATTACK, "</style><style>*{display:none}", "]]>", "\u2028", "\ud800"]
    path = attention_viewer(example_probs(), tokens, title=ATTACK).save(
        folder / "attack.html"
    )
    requests = []
    page = new_page(browser, requests)
    page.goto(path.as_uri())
    page.locator(".queries .token").first.click()
    page.locator(".viewer tbody td").nth(1).hover()
    check("a token with a script stays text", live(page).startswith("<img src=x oner"))
    check(
        "no element was made of it",
        page.locator("img").count() == 1 and page.locator("script").count() == 1,
    )
    urls = [url for url in requests if not url.startswith("data:")]
    check("nothing was asked for", urls == [path.as_uri()], urls)
    page.close()


def drive_themes(browser, folder):
    """Text stands out on light and on dark pages."""
    path = folder / "page.html"
    for scheme in ("light", "dark"):
        page = new_page(browser, [], color_scheme=scheme)
        page.goto(path.as_uri())
        page.locator(".queries .token").nth(2).click()
        page.locator(".keys .token").nth(1).hover()
        page.screenshot(path=folder / f"page_{scheme}.png", full_page=True)
        for part in (
            ".title",
            ".state",
            ".live",
            ".queries .token",
            ".keys .token",
            ".keys .token b",
            ".queries .token.on",
            ".viewer thead th",
            ".viewer tbody th",
            ".rounding",
            "select.layer",
        ):
            ratio = contrast(page, part)
            check(f"{scheme}: contrast of {part} is {ratio:.1f}", ratio >= 4.5)
        page.close()


def contrast(page, part):
    """The contrast of a text with the colour behind it, by the browser."""
    return page.locator(part).first.evaluate("""(element) => {
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
      return (high + 0.05) / (low + 0.05); }""")


def drive_several(browser, folder):
    """Several viewers on one page do not meet, a copy twice included."""
    viewers = [
        attention_viewer(example_probs()[:, :, :n, :n] * 0.5, TOKENS[:n])
        for n in (3, 5)
    ]
    html = "".join(viewer._repr_html_() for viewer in [*viewers, viewers[0]])
    path = folder / "several.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
    page = new_page(browser, [])
    page.goto(path.as_uri())
    page.locator("select.head").nth(1).select_option("2")
    states = [s.inner_text() for s in page.locator(".state").all()]
    check(
        "viewers on one page are independent",
        states == ["layer 0, head 0", "layer 0, head 2", "layer 0, head 0"],
        states,
    )
    sizes = [
        box.locator(".queries .token").count() for box in page.locator(".viewer").all()
    ]
    heights = [box.bounding_box()["height"] for box in page.locator("svg").all()]
    check("each has its tokens", sizes == [3, 5, 3], sizes)
    check("height follows the number of tokens", heights[1] * 3 == heights[0] * 5)
    page.close()


# ---------------------------------------------------------------- notebooks


def run_notebook(folder):
    """Write and run a notebook with one viewer."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELLS)])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    path = folder / "viewer.ipynb"
    nbformat.write(notebook, path)
    kinds = [sorted(output.data) for output in notebook.cells[0].outputs]
    check(
        "outputs: the PNG first, the viewer last",
        kinds[0] == ["image/png", "text/plain"]
        and kinds[-1] == ["text/html", "text/plain"],
        kinds,
    )
    return path


def drive_nbconvert(browser, folder, notebook):
    """The page that nbconvert makes works without a network."""
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", notebook.name],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    page = new_page(browser, [])
    page.context.set_offline(True)
    page.goto((folder / "viewer.html").as_uri(), wait_until="domcontentloaded")
    page.locator("select.head").select_option("1")
    page.locator(".viewer tbody td").nth(3).hover()
    check(
        "nbconvert, offline: the viewer works",
        live(page).endswith("(layer 0, head 1)"),
        live(page),
    )
    images = page.locator("img").evaluate_all("all => all.map((i) => i.naturalWidth)")
    check("nbconvert: the PNG is there", len(images) == 1 and images[0] > 100, images)
    page.screenshot(path=folder / "nbconvert.png", full_page=True)
    page.close()


def start_lab(folder, theme=None):
    """Start JupyterLab on a folder; returns the process once it answers."""
    settings = folder / "settings" / "overrides.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(
        json.dumps(
            {
                "@jupyterlab/apputils-extension:themes": {
                    "theme": theme or "JupyterLab Light"
                }
            }
        )
    )
    lab = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyter",
            "lab",
            "--no-browser",
            f"--port={PORT}",
            "--ServerApp.token=",
            "--ServerApp.password=",
            "--allow-root",
            f"--LabApp.app_settings_dir={settings.parent}",
            f"--ServerApp.root_dir={folder}",
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/status", timeout=1)
            return lab
        except OSError:
            time.sleep(0.5)
    raise SystemExit("JupyterLab does not answer")


def open_in_lab(browser, requests, name):
    page = new_page(browser, requests)
    page.goto(f"http://127.0.0.1:{PORT}/lab/tree/{name}", wait_until="domcontentloaded")
    page.locator(".jp-OutputArea-output").first.wait_for(timeout=90_000)
    page.wait_for_timeout(3000)
    return page


def drive_untrusted(browser, folder, name):
    """As cloned: no script runs, the PNG and the table remain."""
    page = open_in_lab(browser, [], name)
    output = page.locator(".jp-OutputArea").first
    check("untrusted: no script runs", page.locator(".viewer").count() == 0)
    width = output.locator("img").first.evaluate("image => image.naturalWidth")
    check("untrusted: the PNG remains", width > 100, width)
    cells = output.locator("td[title]")
    colours = cells.evaluate_all(
        "all => new Set(all.map((c) => getComputedStyle(c).backgroundColor)).size"
    )
    check(
        "untrusted: the table remains, with its colours",
        cells.count() == 25 and colours > 5,
        (cells.count(), colours),
    )
    page.screenshot(path=folder / f"untrusted_{name}.png")
    page.close()


def drive_trusted(browser, folder, name, theme):
    """After a run the viewer works and follows the theme."""
    requests = []
    page = open_in_lab(browser, requests, name)
    page.locator(".jp-Cell").first.click()
    page.keyboard.press("Control+Enter")
    page.locator(".viewer").wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    page.locator("select.layer").select_option("1")
    page.locator(".queries .token").nth(2).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    probs = example_probs()
    check(
        f"JupyterLab, {theme}: the keyboard drives the viewer",
        live(page) == sentences(probs)(1, 0, 2, 1),
        live(page),
    )
    for part in (
        ".title",
        ".live",
        ".queries .token",
        ".keys .token",
        ".viewer thead th",
    ):
        ratio = contrast(page, part)
        check(f"JupyterLab, {theme}: contrast of {part} is {ratio:.1f}", ratio >= 4.5)
    page.locator(".viewer").scroll_into_view_if_needed()
    page.screenshot(path=folder / f"lab_{theme}.png")
    foreign = [
        url
        for url in requests
        if not url.startswith(
            (f"http://127.0.0.1:{PORT}/", f"ws://127.0.0.1:{PORT}/", "data:", "blob:")
        )
    ]
    check(f"JupyterLab, {theme}: no request leaves the machine", foreign == [], foreign)
    page.close()


def drive_lab(browser, folder, notebook):
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab = start_lab(folder, theme)
        try:
            if theme.endswith("Light"):
                drive_untrusted(browser, folder, notebook.name)
            drive_trusted(browser, folder, notebook.name, theme.split()[1].lower())
        finally:
            lab.terminate()
            lab.wait(timeout=30)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=FLAGS.split()
        )
        drive_page(browser, folder)
        drive_hidden_rows(browser, folder)
        drive_attack(browser, folder)
        drive_themes(browser, folder)
        drive_several(browser, folder)
        notebook = run_notebook(folder)
        drive_nbconvert(browser, folder, notebook)
        drive_lab(browser, folder, notebook)
        browser.close()
    print(f"{len(failures)} failed; screenshots are in {folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())))
