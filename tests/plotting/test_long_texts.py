"""The viewer on more tokens than one screen holds, in a browser."""

import numpy as np
import pytest
from plotting.samples import names

from bert_np.plotting import attention_viewer

pytestmark = pytest.mark.browser
SHADOW = "document.querySelector('div > div').shadowRoot"


def test_a_window_slides_over_a_long_text(chromium, tmp_path):
    probs = np.full((2, 100, 100), 0.005)
    probs[:, :, 90] = 0.505
    viewer = attention_viewer(probs, names(100))
    path = viewer.save(tmp_path / "long.html")
    chromium.open(path.as_uri())
    chromium.run(
        f"var shadow = {SHADOW}; var all = (s) => [...shadow.querySelectorAll(s)]"
    )
    assert chromium.run("all('tbody tr').length") == 40
    assert chromium.run("all('thead th').map((x) => x.textContent)") == names(40)
    chromium.run("all('.queries .token')[3].click(); all('.queries .token')[3].focus()")
    said = chromium.run("all('.live')[0].textContent")
    assert said.startswith(f"{names(100)[3]} attends most to {names(100)[90]}: 0.5")
    chromium.run("var slider = all('.from-keys')[0]; slider.value = slider.max")
    chromium.run("slider.dispatchEvent(new Event('input'))")
    assert chromium.run("all('thead th').map((x) => x.textContent)") == names(100)[60:]
    assert chromium.run("all('tbody th').map((x) => x.textContent)") == names(40)
    assert chromium.run("all('tbody tr')[0].cells[1 + 90 - 60].ariaLabel") == "0.51"
    assert chromium.errors() == ([], [])


def test_a_short_text_has_no_sliders(chromium, tmp_path):
    path = attention_viewer(np.eye(5), names(5)).save(tmp_path / "short.html")
    chromium.open(path.as_uri())
    chromium.run(f"var shadow = {SHADOW}")
    hidden = "[...shadow.querySelectorAll('input')].map((x) => x.parentNode.hidden)"
    assert chromium.run(hidden) == [True, True]
