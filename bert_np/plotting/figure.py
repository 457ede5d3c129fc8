"""The figure that every plot returns."""

import html
import io
import textwrap

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from bert_np.errors import BertError
from bert_np.plotting.labels import readable, text_style
from bert_np.plotting.png import small_png

TITLE_SIZE = 11  # points
AXIS_SIZE = 10  # points
LINE = TITLE_SIZE * 1.3 / 72  # inches: one line of the title


class NotebookFigure(Figure):
    """A matplotlib Figure that a notebook shows as one PNG, and in words.

    pyplot does not know it, so it needs no closing, and a cell shows it
    once: as its last expression or through `display(figure)`. Below the
    PNG stands "In words", which opens to `description`.
    """

    description = ""

    def _repr_png_(self):
        buffer = io.BytesIO()
        self.savefig(
            buffer, format="png", bbox_inches="tight", pil_kwargs={"compress_level": 1}
        )
        with Image.open(buffer) as image:
            return small_png(np.asarray(image.convert("RGB")))

    def _ipython_display_(self):
        from IPython.display import display

        display(
            {"image/png": self._repr_png_(), "text/plain": self.description},
            metadata={"image/png": {"alt": self.description}},
            raw=True,
        )
        if self.description:
            display({"text/html": in_words(self.description)}, raw=True)


def in_words(description):
    """Give a description as HTML that opens with a click or a key.

    Text beside the PNG, not an <img> with alt text in its place: it
    survives wherever PNG and text do, and the PNG is stored once.

    >>> in_words("cat < dog")
    '<details><summary>In words</summary>cat &lt; dog</details>'
    """
    text = html.escape(description, quote=True)
    return f"<details><summary>In words</summary>{text}</details>"


def describe(figure):
    """Say in one sentence what a figure shows.

    Parameters
    ----------
    figure : matplotlib Figure
        Made by, or drawn on by, a function of bert_np.plotting.

    Returns
    -------
    str
        Usable as the alternative text of the picture. One sentence for
        each plot on the figure.

    Raises
    ------
    BertError
    """
    description = getattr(figure, "description", "")
    if not isinstance(figure, Figure) or not description:
        raise BertError(
            f"figure is a {type(figure).__name__} without a description, "
            "expected one that bert_np.plotting drew on"
        )
    return description


def finish(ax, sentence):
    """Add the sentence to the description of the figure, and give it."""
    figure = ax.figure.figure
    figure.description = f"{getattr(figure, 'description', '')} {sentence}".strip()
    return figure


def new_figure(width, height, title=None, notes=()):
    """Make an empty figure with its title.

    Parameters
    ----------
    width, height : float
        Inches, without the title.
    title : str, optional
    notes : list of str
        Remarks on the data, a line each below the title.

    Returns
    -------
    NotebookFigure
    """
    text = title_text(title, notes, width)
    lines = text.count("\n") + 1 if text else 0
    figure = NotebookFigure(
        figsize=(width, height + lines * LINE), dpi=100, layout="compressed"
    )
    if text:
        figure.suptitle(text, fontsize=TITLE_SIZE, **text_style([text]))
    return figure


def add_title(ax, title, notes, inches):
    """Write the title and the remarks above one Axes of this width."""
    text = title_text(title, notes, inches)
    ax.set_title(text, fontsize=TITLE_SIZE, **text_style([text]))


def title_text(title, notes, inches):
    """Give the title and the remarks as lines that fit the width."""
    check_title(title)
    columns = max(10, int(inches * 72 / (0.6 * TITLE_SIZE)))
    lines = "\n".join(line for line in (title, *notes) if line).split("\n")
    return "\n".join(
        textwrap.fill("".join(pieces), columns) for pieces in readable(lines)
    )


def check_title(title):
    """Refuse a title that is no text."""
    if not isinstance(title, (str, type(None))):
        raise BertError(f"title is a {type(title).__name__}, expected a str or None")
