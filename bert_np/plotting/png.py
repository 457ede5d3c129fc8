"""PNG files small enough to be stored in notebooks."""

import io

import numpy as np
from PIL import Image

FREQUENT, REMAINING = 208, 48  # together the 256 colours of a palette


def small_png(pixels):
    """Write pixels as a PNG with a palette of at most 256 colours.

    The most frequent colours, such as those of cells and of text, stay
    exactly as they are. Of the others, those are kept that would be
    missed most; the rest, blends at the edges of letters and lines, take
    the nearest colour. The file is about a third of one in full colour.

    Parameters
    ----------
    pixels : array of shape (height, width, 3) of uint8

    Returns
    -------
    bytes
    """
    red, green, blue = np.moveaxis(pixels.astype(np.int32), -1, 0)
    packed, place, count = np.unique(
        red << 16 | green << 8 | blue, return_inverse=True, return_counts=True
    )
    colours = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    palette = choose_palette(colours, count)
    nearest = distances(colours, palette).argmin(axis=0)
    return palette_png(nearest[place.reshape(red.shape)], palette)


def palette_png(index, palette):
    """Write a picture (height, width) of places in a palette (N, 3) as a PNG."""
    image = Image.fromarray(np.ascontiguousarray(index, np.uint8))
    image.putpalette(np.asarray(palette, np.uint8).tobytes())
    buffer = io.BytesIO()
    image.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def choose_palette(colours, count):
    """Choose at most 256 colours (N, 3), seen `count` times each."""
    palette = list(colours[np.argsort(-count, kind="stable")[:FREQUENT]])
    if len(colours) > FREQUENT:
        error = distances(colours, np.array(palette)).min(axis=0)
        for _ in range(REMAINING):
            palette.append(colours[np.argmax(error * count)])
            error = np.minimum(error, distances(colours, palette[-1:])[0])
    return np.array(palette)


def distances(colours, palette):
    """Return the squared distance of each colour to each of a palette."""
    return np.stack([np.square(colours - one).sum(axis=1) for one in palette])
