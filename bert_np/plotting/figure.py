"""The figure that every plot returns."""

import functools
import io
import textwrap

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from bert_np.errors import BertError
from bert_np.plotting.colours import legible
from bert_np.plotting.html import base64_text, tag
from bert_np.plotting.labels import readable, text_style
from bert_np.plotting.png import small_png

TITLE_SIZE = 11  # points
AXIS_SIZE = 10  # points
TITLE_LINE = TITLE_SIZE * 1.3 / 72  # inches: one line of the title


# The kinds of matplotlib's settings that change a picture. Those of files,
# such as savefig.dpi or svg.fonttype, remain the reader's.
KINDS = (
    "axes. errorbar. figure. font. grid. hatch. image. legend. lines. markers. "
    "mathtext. patch. path. scatter. text. xaxis. xtick. yaxis. ytick."
)


def own_style():
    """Draw with matplotlib's defaults, black on white, inside a block.

    The colours of the pictures are chosen for a white background, and
    settings such as `text.usetex` may make drawing fail.
    """
    kinds, defaults = tuple(KINDS.split()), matplotlib.rcParamsDefault
    chosen = {name: defaults[name] for name in defaults if name.startswith(kinds)}
    return matplotlib.rc_context(chosen)


def in_own_style(plot):
    """Let a function draw in our style, or in that of the Axes it is given."""

    @functools.wraps(plot)
    def styled(*arguments, **options):
        if options.get("ax") is not None:
            figure = plot(*arguments, **options)
            keep_legible(options["ax"])
            return figure
        with own_style():
            return plot(*arguments, **options)

    return styled


def keep_legible(ax):
    """Make the coloured texts of an Axes readable on its figure."""
    for text in (ax.xaxis.label, ax.yaxis.label, *ax.texts):
        if text.get_color() not in ("black", "white"):  # these stand on cells
            background = ax.figure.figure.get_facecolor()
            text.set_color(legible(text.get_color(), background))


class NotebookFigure(Figure):
    """A matplotlib Figure that a notebook shows as one PNG, and in words.

    pyplot does not know it, so it needs no closing, and a cell shows it
    once: as its last expression or through `display(figure)`. Below the
    PNG is "In words", which opens to show `description`.
    """

    description = ""

    def draw(self, renderer):
        """Draw in our style: ticks are made only now."""
        with own_style():
            super().draw(renderer)

    def savefig(self, *arguments, **options):
        """Save with the figure's own background, whatever the settings."""
        options = {"facecolor": "auto", "edgecolor": "auto"} | options
        with own_style():
            super().savefig(*arguments, **options)

    def to_png(self):
        """Return the bytes of a PNG in at most 256 colours."""
        buffer, options = io.BytesIO(), {"bbox_inches": "tight", "transparent": False}
        options |= {"dpi": self.dpi, "pil_kwargs": {"compress_level": 1}}
        self.savefig(buffer, format="png", **options)
        with Image.open(buffer) as image:
            return small_png(np.asarray(image.convert("RGB")))

    def _repr_png_(self):
        # Not every front end would encode bytes: JupyterLite does not.
        return base64_text(self.to_png())

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
    """Write a description as HTML that opens with a click or a key.

    It is shown beside the PNG, which an <img> with an alternative text
    would replace: so it survives wherever PNG and text do, and the PNG
    is stored only once.

    >>> in_words("cat < dog")
    '<details><summary>In words</summary>cat &lt; dog</details>'
    """
    return tag("details", tag("summary", "In words"), description)


def describe(figure):
    """Describe in one sentence what a figure shows.

    Parameters
    ----------
    figure : matplotlib Figure
        Made by, or drawn on by, a function of bert_np.plotting.

    Returns
    -------
    str
        Usable as the alternative text of the picture. One sentence for
        each plot on the figure.
    """
    description = getattr(figure, "description", "")
    if not isinstance(figure, Figure) or not description:
        raise BertError(
            f"figure is a {type(figure).__name__} without a description, "
            "expected one that bert_np.plotting drew on"
        )
    return description


def finish(ax, sentence):
    """Add the sentence to the description of the figure, and return it."""
    figure = ax.figure.figure
    figure.description = f"{getattr(figure, 'description', '')} {sentence}".strip()
    return figure


def new_figure(width, height, title=None, notes=()):
    """Make an empty figure with its title.

    Parameters
    ----------
    width, height : float
        In inches, without the title.
    title : str, optional
    notes : list of str
        Remarks on the data, one line each below the title.

    Returns
    -------
    NotebookFigure
    """
    text = title_text(title, notes, width)
    lines = text.count("\n") + 1 if text else 0
    size = (width, height + lines * TITLE_LINE)
    figure = NotebookFigure(figsize=size, dpi=100, layout="compressed")
    if text:
        figure.suptitle(text, **text_style([text], TITLE_SIZE))
    return figure


def add_title(ax, title, notes, inches):
    """Write the title and the remarks above one Axes of this width."""
    text = title_text(title, notes, inches)
    ax.set_title(text, **text_style([text], TITLE_SIZE))


def title_text(title, notes, inches):
    """Return the title and the remarks as lines that fit the width."""
    check_title(title)
    columns = max(10, int(inches * 72 / (0.6 * TITLE_SIZE)))
    lines = "\n".join(line for line in (title, *notes) if line).split("\n")
    pieces = ("".join(line) for line in readable(lines))
    return "\n".join(textwrap.fill(line, columns) for line in pieces)


def check_title(title):
    """Check that a title is a str or None."""
    if not isinstance(title, (str, type(None))):
        raise BertError(f"title is a {type(title).__name__}, expected a str or None")
