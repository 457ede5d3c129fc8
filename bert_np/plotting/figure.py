"""The figure that every plot returns."""

import io
import textwrap

from matplotlib.figure import Figure

from bert_np.errors import BertError
from bert_np.plotting.labels import readable, text_style

TITLE_SIZE = 11  # points
AXIS_SIZE = 10  # points
LINE = TITLE_SIZE * 1.3 / 72  # inches: one line of the title


class NotebookFigure(Figure):
    """A matplotlib Figure that a notebook shows as one PNG.

    pyplot does not know it, so it needs no closing, and a cell shows it
    once: as its last expression or through `display(figure)`.
    """

    def _repr_png_(self):
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()


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
    figure = NotebookFigure(figsize=(width, height + lines * LINE), dpi=100,
                            layout="compressed")
    if text:
        figure.suptitle(text, fontsize=TITLE_SIZE, **text_style([text]))
    return figure


def add_title(ax, title, notes, inches):
    """Write the title and the remarks above one Axes of this width."""
    text = title_text(title, notes, inches)
    ax.set_title(text, fontsize=TITLE_SIZE, **text_style([text]))


def title_text(title, notes, inches):
    """Give the title and the remarks as lines that fit the width."""
    if not isinstance(title, (str, type(None))):
        raise BertError(f"title is a {type(title).__name__}, expected a str or None")
    columns = max(10, int(inches * 72 / (0.6 * TITLE_SIZE)))
    lines = "\n".join(line for line in (title, *notes) if line).split("\n")
    return "\n".join(textwrap.fill("".join(pieces), columns)
                     for pieces in readable(lines))
