"""How WordPiece cuts a word: every attempt, from the longest to the one taken."""

import numpy as np
from matplotlib.patches import Rectangle

from bert_np.errors import BertError, short
from bert_np.plotting.checks import list_texts
from bert_np.plotting.colours import BOX, FAINT, NEUTRAL, SHADED
from bert_np.plotting.diagrams import blank_axes
from bert_np.plotting.drawing import write
from bert_np.plotting.figure import finish, in_own_style
from bert_np.plotting.labels import readable

CELL = (0.3, 0.27)  # inches: width and height of a letter
MOST_LETTERS = 24
MOST_ROWS = 40


@in_own_style
def plot_word_pieces(word, vocab, *, title=None):
    """Draw the cutting of a word: a row for each piece that is tried.

    At each place the longest piece is tried first and one letter fewer
    each time. A piece that the vocabulary lacks is crossed out, the one
    taken is black; the next row starts behind it.

    Parameters
    ----------
    word : str
        Of 1 to 24 characters, as it is after the text was cleaned.
    vocab : list of str, or mapping with such keys
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Source: Wu et al. 2016, section 4.1.
    """
    if not isinstance(word, str) or not 1 <= len(word) <= MOST_LETTERS:
        found = short(word)
        raise BertError(
            f"word = {found}, allowed: a str of 1 to {MOST_LETTERS} letters"
        )
    tries = attempts(word, set(list_texts("vocab", vocab)))
    if len(tries) > MOST_ROWS:
        raise BertError(
            f"word = {short(word)} takes {len(tries)} attempts, allowed: {MOST_ROWS}"
        )
    labels = [("##" if start else "") + word[start:end] for start, end, _ in tries]
    wide = len(word) * CELL[0] + 0.3 + 0.11 * max(map(len, labels)) + 1.2
    ax = blank_axes(wide, (len(tries) + 0.3) * CELL[1] + 0.1, title)
    for row, (attempt, label) in enumerate(zip(tries, labels)):
        draw_attempt(ax, word, row, attempt, label)
    return finish(ax, describe_cutting(word, tries))


def attempts(word, vocab):
    """Return every (start, end, found) of the greedy cutting, in order."""
    tries, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            found = ("##" if start else "") + word[start:end] in vocab
            tries.append((start, end, found))
            if found:
                break
        if not found:
            break
        start = end
    return tries


def draw_attempt(ax, word, row, attempt, label):
    """Draw one row: the letters, those tried framed, and the piece's name."""
    start, end, found = attempt
    for i, letter in enumerate(readable(list(word))):
        inside = start <= i < end
        face = "black" if inside and found else SHADED if inside else BOX
        place = (0.05 + i * CELL[0], 0.05 + row * CELL[1])
        look = {"facecolor": face, "edgecolor": "white"}
        ax.add_patch(Rectangle(place, *CELL, **look))
        colour = "white" if inside and found else "black" if inside else FAINT
        write(ax, *np.add(place, np.divide(CELL, 2)), "".join(letter), color=colour)
    middle, left = 0.05 + (row + 0.5) * CELL[1], 0.2 + len(word) * CELL[0]
    if not found:
        edge = [0.05 + start * CELL[0] + 0.04, 0.05 + end * CELL[0] - 0.04]
        ax.plot(edge, [middle, middle], color=NEUTRAL, linewidth=1)
    text = f"{''.join(readable([label])[0])}  {'taken' if found else 'not found'}"
    write(ax, left, middle, text, ha="left", weight="bold" if found else "normal")


def describe_cutting(word, tries):
    """Say what the word becomes and after how many attempts."""
    pieces = [
        ("##" if start else "") + word[start:end]
        for start, end, found in tries
        if found
    ]
    failed = "[UNK], because nothing fits at the end"
    result = ", ".join(pieces) if tries[-1][2] else failed
    return f"WordPiece cuts {word} in {len(tries)} attempts: {result}."
