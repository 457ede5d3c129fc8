"""Every colour of the figures, each with one meaning."""

import matplotlib
from matplotlib.colors import Normalize, PowerNorm, to_rgb

from bert_np.plotting.checks import check_positive

# The letters of attention. Each is readable as text on white.
QUERY = "#0060A8"
KEY = "#B34700"
VALUE = "#00734F"
MASKED = "#D4D4D4"
HATCH = "#8C8C8C"

ATTENTION_MAP = "viridis"
SIGNED_MAP = "RdBu_r"  # blue below 0, white at 0, red above

# Whatever is not a letter of attention: bars, points, curves. Curves also
# differ in their dashes.
NEUTRAL = "#4D4D4D"
FAINT = "#B8B8B8"
SERIES = ("#333333", "#8E44AD", "#8A6700", "#A3305C")
DASHES = ("-", "--", ":", "-.")
# Heads that are shown at once, in this order. Told apart by eyes without one kind
# of cone, each with a contrast of 3 on white and on the dark pages.
HEADS = ("#4095FF", "#D48000", "#802AFF", "#BF2A2A", "#959580", "#955595")
CHOSEN = "#FF2D00"  # the frame of a cell, clear on every colour of a map
BOX, SHADED = "#F4F4F4", "#DADADA"  # backgrounds in diagrams
SEGMENTS = (BOX, SHADED)


def attention_colour_map():
    """Return the colour map of attention; masked cells are grey."""
    return matplotlib.colormaps[ATTENTION_MAP].with_extremes(bad=MASKED)


def attention_norm(power=1.0):
    """Map a probability p to the place p ** power on the colour map.

    Parameters
    ----------
    power : float
        Above 0. 1 is the plain scale from 0 to 1; 0.5 makes small
        probabilities easier to tell apart.

    Returns
    -------
    matplotlib.colors.PowerNorm
        Fixed to 0..1, whatever the data.
    """
    return PowerNorm(gamma=check_positive("power", power), vmin=0, vmax=1)


def signed_colour_map():
    """Return the colour map of signed values; masked cells are grey."""
    return matplotlib.colormaps[SIGNED_MAP].with_extremes(bad=MASKED)


def signed_norm(limit):
    """Map the values from -limit to limit to the signed colour map."""
    limit = limit if limit > 0 else 1.0
    return Normalize(-limit, limit)


def luminance(colour):
    """Return the relative luminance of a colour, 0 black to 1 white.

    Source: WCAG 2.1, definition of relative luminance.
    """
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in to_rgb(colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """Return the contrast of two colours, 1 (equal) to 21.

    Source: WCAG 2.1, definition of contrast ratio.
    """
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def text_colour(background):
    """Choose black or white text, whichever is clearer on a colour."""
    return max(("black", "white"), key=lambda c: contrast(c, background))


def legible(colour, background):
    """Mix a colour with just enough black or white to make it readable."""
    ends = list(zip(to_rgb(colour), to_rgb(text_colour(background))))
    mixed = [[a + s * (b - a) for a, b in ends] for s in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    return next(c for c in mixed if contrast(c, background) >= 4.5)
