"""The package where no thread and no process can start: in a browser, by Pyodide.

The platform is imitated: it calls itself emscripten, a thread or a process that
is started raises what Pyodide raises, and what is displayed has to be text, since
JupyterLite writes it as JSON. A warning fails a test, as everywhere.
"""

import base64
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from files.pinned import message_of
from IPython.core.formatters import DisplayFormatter
from small_run import SETTINGS, bits, new_params, run_training
from tasks.toy import TOY
from tqdm import tqdm

from bert_np import bert, embed_sentences
from bert_np.files.pretrained import MINILM, fetch_pinned
from bert_np.plotting import (
    attention_table,
    attention_viewer,
    plot_attention,
    step_through,
)


@pytest.fixture
def webassembly(monkeypatch):
    def no_thread(thread):
        raise RuntimeError("can't start new thread")

    def no_process(*arguments, **options):
        raise OSError(138, "emscripten does not support processes.")

    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    monkeypatch.setattr(subprocess, "Popen", no_process)
    monkeypatch.setattr(tqdm, "monitor", None)  # its thread may run already
    monkeypatch.setattr(tqdm, "monitor_interval", 10)


def test_texts_are_embedded_with_a_progress_bar_and_no_warning(webassembly, capsys):
    texts = ["the cat sat .", "cats", "the"] * 4
    found = embed_sentences(texts, *TOY, batch_size=1)
    assert "12/12" in capsys.readouterr().err
    np.testing.assert_allclose(found[3:6], found[:3], rtol=0, atol=1e-6)
    assert np.linalg.norm(found[0] - found[1]) > 0.1


def test_a_model_trains_in_parts(webassembly):
    settings = SETTINGS._replace(parts=4)
    params, history = run_training(settings)
    assert len(history) == settings.steps and bits(params) != bits(new_params())


def test_all_that_a_notebook_shows_is_text(webassembly, monkeypatch):
    shown = []
    collect = lambda data, **options: shown.append((data, options))  # noqa: E731
    monkeypatch.setattr("IPython.display.display", collect)
    trace, tokens = {}, ["[CLS]", "the", "cat", "[SEP]"]
    inputs = TOY.tokenizer.encode("the cat").inputs
    out = bert(**inputs, params=TOY.params, config=TOY.config, trace=trace)
    maps = np.stack(out["attention_probs"])[:, 0]  # (L, A, T, T)
    plot_attention(maps[0, 0], tokens)._ipython_display_()
    for made in [
        attention_viewer(maps, tokens),
        attention_table(maps[0, 0], tokens),
        step_through(trace, tokens),
    ]:
        shown.append(DisplayFormatter().format(made))
        assert shown[-1][0]["text/html"]
    png = base64.b64decode(shown[0][0]["image/png"])
    assert png.startswith(b"\x89PNG") and json.dumps(shown)


def test_a_model_that_a_browser_cannot_fetch_says_where_it_can_be(
    webassembly, tmp_path
):
    message = message_of(fetch_pinned, MINILM, tmp_path / "cache")
    assert "cannot be fetched in a browser" in message
    assert "--to FOLDER" in message and not (tmp_path / "cache").exists()
