"""A text with its words on coloured backgrounds, once for each measure."""

import numpy as np
from matplotlib.patches import Rectangle

from bert_np.errors import BertError
from bert_np.plotting.checks import (
    check_label,
    check_mapping,
    check_numbers,
    list_texts,
)
from bert_np.plotting.colours import (
    FAINT,
    NEUTRAL,
    signed_colour_map,
    signed_norm,
    text_colour,
)
from bert_np.plotting.diagrams import blank_axes
from bert_np.plotting.drawing import write
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import text_style, text_width, token_labels
from bert_np.plotting.tokens import room

WIDEST = 8.0  # inches of a line of words
HIGH = 0.24  # inches of a word
NUMBER = 0.19  # inches of the number below it
LINE = 0.18  # inches of a line of remarks
GAP = 0.12
LONGEST_NAME = 40  # letters
MOST_WORDS = 60
MOST_MEASURES = 6


@in_own_style
def plot_coloured_words(words, values, *, remarks=None, title=None):
    """Draw a text once for each measure, its words on coloured backgrounds.

    Red is above 0, blue below. The strongest colour is the largest
    absolute value of that measure, so that colours can be compared within
    a measure, but not between two. The values are below the words.

    Parameters
    ----------
    words : list of N str
        At most 60 are shown.
    values : mapping of str to array of shape (N,)
        The name of each measure and its value for each word; 6 at most.
    remarks : mapping of str to str, optional
        What a measure says and what it does not, written below it.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    words = list_texts("words", words)
    values = check_measures(values, words)
    remarks = check_remarks(remarks, values)
    cut = [] if len(words) <= MOST_WORDS else [f"the first {MOST_WORDS} words"]
    labels = token_labels(words[:MOST_WORDS])
    title = "\n".join(line for line in (title, *cut) if line) if cut else title
    numbers = {name: write_row(row) for name, row in values.items()}
    places = place_words(labels, numbers)
    lines = places[-1][1] + 1
    height = sum(
        LINE + lines * (HIGH + NUMBER + GAP) + LINE * len(remarks[name]) + GAP
        for name in values
    )
    ax, top = blank_axes(WIDEST + 0.1, height, title), 0.0
    for name, row in values.items():
        write_line(ax, top, token_labels([name], LONGEST_NAME)[0], weight="bold")
        top += LINE + 0.05
        draw_words(ax, top, labels, row[:MOST_WORDS], numbers[name], places)
        top += lines * (HIGH + NUMBER + GAP) - GAP / 2
        for line in remarks[name]:
            write_line(ax, top, line, color=NEUTRAL)
            top += LINE
        top += 1.5 * GAP - 0.05
    return finish(ax, describe_words(words, values))


def check_measures(values, words):
    """Return {name: array (N,)}, checked."""
    if not words:
        raise BertError("words is empty: there is nothing to draw")
    check_mapping("values", values, MOST_MEASURES)
    checked = {}
    for name, row in values.items():
        check_label("values: a name", name)
        checked[name] = check_numbers(f"values[{name!r}]", row, "(N,)")
        if len(checked[name]) != len(words):
            raise BertError(
                f"values[{name!r}] has {len(checked[name])} entries, expected "
                f"{len(words)}, one for each word"
            )
    return checked


def check_remarks(remarks, values):
    """Return the lines of the remark on each measure."""
    lines = dict.fromkeys(values, [])
    if remarks is not None:
        check_mapping("remarks", remarks, 1000)
        for name in values:
            check_label(f"remarks[{name!r}]", remarks.get(name, ""))
            lines[name] = break_lines(remarks.get(name, ""))
    return lines


def break_lines(text):
    """Break a text into lines that are not too wide."""
    lines = []
    for word in token_labels(text.split(), LONGEST_NAME):
        if lines and text_width(f"{lines[-1]} {word}") <= WIDEST:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def write_row(row):
    """Write the values of a measure, with signs if any is below 0."""
    form = "{:+.2f}" if (row < 0).any() else "{:.2f}"
    return [form.format(value) for value in row]


def place_words(labels, numbers):
    """Return (x, line, width) of each word, the same for all measures."""
    places, x, line = [], 0.0, 0
    for i, label in enumerate(labels):
        texts = [label, *(row[i] for row in numbers.values())]
        wide = max(map(room, texts)) + 0.14
        if x and x + wide > WIDEST:
            x, line = 0.0, line + 1
        places.append((x, line, wide))
        x += wide
    return places


def draw_words(ax, top, labels, row, numbers, places):
    """Draw the words of one measure, each with its value below."""
    norm, colours = signed_norm(float(np.abs(row).max())), signed_colour_map()
    for label, value, number, (x, line, wide) in zip(labels, row, numbers, places):
        y, fill = top + line * (HIGH + NUMBER + GAP), colours(norm(value))[:3]
        box = {"facecolor": fill, "edgecolor": FAINT, "linewidth": 0.5}
        ax.add_patch(Rectangle((x + 0.02, y), wide - 0.04, HIGH, **box))
        middle = x + wide / 2
        write(ax, middle, y + HIGH / 2, label, color=text_colour(fill))
        write(ax, middle, y + HIGH + NUMBER / 2, number, color=NEUTRAL)


def write_line(ax, top, text, **style):
    """Write a line of text from the left edge."""
    ax.text(0.02, top + LINE / 2, text, va="center", **text_style([text]), **style)


def describe_words(words, values):
    """Name the word with the largest absolute value of each measure."""
    labels = token_labels(words)
    found = []
    for name, row in values.items():
        i = int(np.abs(row).argmax())
        found.append(
            f"{token_labels([name], LONGEST_NAME)[0]}, {labels[i]} ({row[i]:+.2f})"
        )
    return (
        f"{len(words)} words on coloured backgrounds; the strongest for each measure: "
        f"{'; '.join(found)}."
    )
