"""Colours of the figures, also as seen by eyes without one kind of cone."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from bert_np.plotting import colours

# From sRGB to what is seen, on linear values, severity 1.0.
# Source: Machado, Oliveira and Fernandes 2009, table 1 (and supplement).
DEFICIENCIES = {
    "none": "1 0 0  0 1 0  0 0 1",
    "protanopia": """0.152286 1.052583 -0.204868  0.114503 0.786281 0.099216
        -0.003882 -0.048116 1.051998""",
    "deuteranopia": """0.367322 0.860646 -0.227968  0.280085 0.672501 0.047413
        -0.011820 0.042940 0.968881""",
    "tritanopia": """1.255528 -0.076749 -0.178779  -0.078411 0.930809 0.147602
        0.004733 0.691367 0.303900""",
}
TO_XYZ = """0.4124564 0.3575761 0.1804375  0.2126729 0.7151522 0.0721750
    0.0193339 0.1191920 0.9503041"""


def matrix(text):
    return np.array(text.split(), float).reshape(3, 3)


def seen_lab(rgb, deficiency):
    """CIE L*a*b* (D65) of sRGB colours (N, 3) as seen with a deficiency."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ matrix(DEFICIENCIES[deficiency]).T, 0, 1)
    ratio = seen @ matrix(TO_XYZ).T / matrix(TO_XYZ).sum(axis=1)
    f = np.where(
        ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29
    )
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def scale(colour_map, deficiency):
    return seen_lab(colour_map(np.linspace(0, 1, 256))[:, :3], deficiency)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_scales_are_read_by_lightness_alone(deficiency):
    steps = scale(colours.attention_colour_map(), deficiency)[:, 0]
    assert np.all(np.diff(steps) > 0) and steps[-1] - steps[0] > 60
    lab = scale(colours.signed_colour_map(), deficiency)
    assert np.all(np.diff(lab[:128, 0]) > 0) and np.all(np.diff(lab[128:, 0]) < 0)
    assert lab[127:129, 0].min() > 94
    for offset in (40, 80, 120):  # as far from 0 on either side: told apart
        assert np.linalg.norm(lab[127 - offset] - lab[128 + offset]) > 15


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_with_a_meaning_are_told_apart(deficiency):
    letters = np.array([to_rgb(c) for c in (colours.QUERY, colours.KEY, colours.VALUE)])
    lab = seen_lab(letters, deficiency)
    gaps = [np.linalg.norm(lab[i] - lab[j]) for i in range(3) for j in range(i)]
    assert min(gaps) > 10  # and each letter is named in words wherever it is used
    shades = seen_lab(np.array([to_rgb(c) for c in colours.SEGMENTS]), deficiency)
    assert shades[0, 0] - shades[1, 0] > 5


def test_texts_and_lines_are_readable_on_white():
    letters = (colours.QUERY, colours.KEY, colours.VALUE)
    for colour in (*letters, *colours.SERIES, colours.NEUTRAL):
        assert colours.contrast(colour, "white") >= 4.5
    assert colours.contrast("black", "white") == pytest.approx(21)


def test_the_signed_scale_is_centred_at_zero():
    norm = colours.signed_norm(3.0)
    assert (norm.vmin, norm.vmax, float(norm(0.0))) == (-3, 3, 0.5)
    assert float(colours.signed_norm(0.0)(0.0)) == 0.5


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_heads_shown_at_once_are_told_apart(deficiency):
    lab = seen_lab(np.array([to_rgb(c) for c in colours.HEADS]), deficiency)
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(lab) for b in lab[:i]]
    assert min(gaps) > 25
    for page in ("#ffffff", "#16191d"):  # --paper in viewer.css, light and dark
        assert min(colours.contrast(c, page) for c in colours.HEADS) >= 3
