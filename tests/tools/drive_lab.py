"""Drive the viewer, explore and step_through in a real JupyterLab: a command.

    python tests/tools/drive_lab.py [folder for screenshots]

Needs JupyterLab, nbconvert, ipywidgets and Chromium. Prints what it checked
and how long a step of explore's sliders takes; the exit status is 1 if
something failed.
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser  # noqa: E402

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
LAB = "http://127.0.0.1:8917"
CELLS = [
    """\
import bert_np
from bert_np.plotting import attention_viewer, explore, step_through
toy, trace = bert_np.load_pretrained("toy"), {}
batch = toy.tokenizer.encode_batch(["anna has a [MASK] ."])
out = bert_np.bert(**batch.inputs, params=toy.params, config=toy.config, trace=trace)
attention_viewer([x[0] for x in out["attention_probs"]], batch.tokens[0])""",
    "step_through(trace, batch.tokens[0], layers=1, model=toy)",
    'explore("The cat sat because it was tired.")',
]
ROOTS = """var roots = () => Array.from(
  document.querySelectorAll("[data-lm-suppress-shortcuts]"), (x) => x.shadowRoot); 0"""
# From the event until the page is painted, fifty times; the median and the slowest.
STEPS = """await (async () => {
  const root = roots().at(-1), slider = root.querySelector("input.head"), times = [];
  for (let i = 0; i < 50; i++) {
    const start = performance.now();
    slider.value = i % 12;
    slider.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
    await new Promise((resume) => setTimeout(resume, 0));
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  return [times[25], times[49]]; })()"""
failures = []


def check(name, found, expected=True):
    """Print one finding and remember a failure."""
    good = found == expected
    print(f"{'ok    ' if good else 'FAILED'} {name}{'' if good else f': {found!r}'}")
    if not good:
        failures.append(name)


def make_notebook(folder):
    """Write and run a notebook that nobody has trusted."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    path = folder / "viewer.ipynb"
    nbformat.write(notebook, path)
    convert = ["-m", "nbconvert", path, "--execute", "--to", "notebook", "--inplace"]
    subprocess.run([sys.executable, *convert], env=ENVIRONMENT, check=True)


def start_lab(folder, theme):
    """Start JupyterLab on a folder and return the process once it answers."""
    settings = folder / "settings" / "overrides.json"
    settings.parent.mkdir(exist_ok=True)
    themes = {"@jupyterlab/apputils-extension:themes": {"theme": theme}}
    news = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
    settings.write_text(json.dumps(themes | news))
    options = ["--no-browser", "--port=8917", "--ServerApp.token=", "--allow-root"]
    options += ["--ServerApp.password=", f"--ServerApp.root_dir={folder}"]
    options += [f"--LabApp.app_settings_dir={settings.parent}"]
    options += ["--expose-app-in-browser"]
    folders = {f"JUPYTER_{x}_DIR": str(folder / x) for x in ("DATA", "CONFIG")}
    command = [sys.executable, "-m", "jupyter", "lab", *options]
    quiet = {"env": {**ENVIRONMENT, **folders}, "stderr": subprocess.DEVNULL}
    lab = subprocess.Popen(command, **quiet)
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{LAB}/api/status", timeout=1)
            return lab
        except OSError:
            time.sleep(0.5)
    lab.terminate()
    raise SystemExit("JupyterLab does not answer")


def drive(page, folder, theme):
    """As cloned, no script runs; after a run all three follow the theme."""
    name = theme.split()[-1].lower()
    size = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.send("Emulation.setDeviceMetricsOverride", **size)
    page.open(f"{LAB}/lab/tree/viewer.ipynb")
    page.wait("document.querySelectorAll('.jp-OutputArea-output').length >= 3")
    time.sleep(3)
    page.run(ROOTS)
    check(f"{name}, untrusted: no script runs", page.run("roots().length"), 0)
    pictures = "document.querySelectorAll('.jp-OutputArea img').length"
    check(f"{name}, untrusted: the pictures stay", page.run(f"{pictures} > 30"))
    cells = "document.querySelectorAll('.jp-OutputArea td[title]').length"
    check(f"{name}, untrusted: the tables stay", page.run(cells), 7 * 7 + 10 * 10)
    page.screenshot(folder / f"{name}_untrusted.png", 1300, 900)
    page.run("await jupyterapp.commands.execute('notebook:run-all-cells'); 0")
    page.wait("roots().length === 3 && roots().at(-1).querySelector('.map td')")
    time.sleep(2)
    live = "roots().at(-1).querySelector('.live').textContent"
    page.run("roots().at(-1).querySelectorAll('.map tbody td')[3].focus(); 0")
    check(
        f"{name}: a cell is stated", page.run(live).startswith("[CLS] attends to sat")
    )
    median, slowest = page.run(STEPS)
    print(
        f"       {name}: a step of explore: {median:.0f} ms, slowest {slowest:.0f} ms"
    )
    page.run("roots().at(-1).host.scrollIntoView(); 0")
    page.screenshot(folder / f"{name}.png", 1300, 900)
    page.run("roots()[1].host.scrollIntoView(); 0")
    page.screenshot(folder / f"{name}_player.png", 1300, 900)
    thrown, foreign = page.errors()
    foreign = [url for url in foreign if not url.startswith((LAB, "blob:"))]
    check(
        f"{name}: nothing is thrown, nothing asked of a network",
        (thrown, foreign),
        ([], []),
    )


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    make_notebook(folder)
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab = start_lab(folder, theme)
        try:
            with Browser() as page:
                drive(page, folder, theme)
        finally:
            lab.terminate()
            lab.wait(timeout=30)
    print(f"{len(failures)} failed; screenshots are in {folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())))
