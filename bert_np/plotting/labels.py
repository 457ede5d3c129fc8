"""Tokens as labels: any text, without warnings, never clipped."""

import math
import unicodedata
from itertools import accumulate, groupby

import matplotlib
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

LABEL_SIZE = 9  # points
LONGEST_LABEL = 16  # characters
LINE = LABEL_SIZE * 1.25 / 72  # inches: the height of one label
LETTER = LABEL_SIZE * 0.62 / 72  # inches: the mean width of one letter
BROAD = "W@%"  # wider than the others by two thirds

# DejaVu Sans comes with matplotlib. The others are used if installed.
FAMILIES = (
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans CJK JP, Noto Sans SC, Noto Sans JP, "
    "Noto Sans KR, Source Han Sans SC, Microsoft YaHei, SimHei, PingFang SC, "
    "Hiragino Sans GB, Hiragino Sans, Heiti TC, Yu Gothic, Malgun Gothic, "
    "Apple SD Gothic Neo, WenQuanYi Micro Hei, WenQuanYi Zen Hei, Arial Unicode MS, "
    "Noto Sans Arabic, Noto Sans Devanagari, Nirmala UI, Noto Emoji, "
    "Segoe UI Symbol, Segoe UI Emoji, Symbola"
)
INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # Unicode categories
JOINERS = "\u200c\u200d"  # invisible, but part of many words and emoji
RIGHT_TO_LEFT = {"R", "AL", "NSM"}  # Unicode bidirectional classes


def choose_fonts(texts):
    """Choose the installed fonts that the texts need.

    Returns
    -------
    families : list of str
        In the order in which matplotlib should try them.
    missing : set of str
        The characters that none of them has.
    """
    installed = set(fontManager.get_font_names())
    families, missing = [], set("".join(texts))
    for family in FAMILIES.split(", "):
        if family in installed and (missing or not families):
            font = get_font(findfont(FontProperties(family=[family])))
            known = {c for c in missing if font.get_char_index(ord(c))}
            missing = missing - known
            if known or not families:
                families.append(family)
    return families, missing


def text_style(texts, size=LABEL_SIZE):
    """Return the text properties that show texts as they are written.

    matplotlib would typeset `$x$` as a formula and fail on `$$`.
    """
    fonts, _ = choose_fonts(texts)
    return {"parse_math": False, "fontfamily": fonts, "fontsize": size}


def code_point(character):
    r"""Return the code point of a character, such as \u0007.

    >>> print(code_point("\a"), code_point("\U0001F600"))
    \u0007 \U0001f600
    """
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def readable(texts):
    r"""Split texts into pieces that the screen and the fonts can show.

    A piece is a character; for control characters, lone surrogates and
    characters that no font has, it is the code point.

    >>> readable(["a\a", "$x$"])
    [['a', '\\u0007'], ['$', 'x', '$']]
    """
    _, missing = choose_fonts(texts)

    def show(character):
        hidden = unicodedata.category(character) in INVISIBLE
        return code_point(character) if hidden or character in missing else character

    return [[show(character) for character in text] for text in texts]


def token_labels(tokens, longest=LONGEST_LABEL):
    r"""Write tokens as labels of at most `longest` characters.

    A longer one ends in an ellipsis.

    >>> token_labels(["cat", "antidisestablishmentarian"])
    ['cat', 'antidisestablis…']
    """
    starts = readable([token[: longest + 1] for token in tokens])
    return [visual_order(shorten(pieces, longest)) for pieces in starts]


def token_text(token, longest=LONGEST_LABEL):
    r"""Write a token for a page or a terminal so that all of it is visible.

    >>> [token_text(token) for token in ["cat", "", " ", "a\a"]]
    ['cat', "''", "' '", 'a\\u0007']
    """
    pieces = [code_point(c) if is_invisible(c) else c for c in token[: longest + 1]]
    return shorten(pieces, longest) if token.strip(" ") else repr(token[:longest])


def is_invisible(character):
    """Return whether a character must be written as its code point."""
    return unicodedata.category(character) in INVISIBLE and character not in JOINERS


def terminal_columns(text):
    """Count the columns of a terminal that a text takes.

    >>> terminal_columns("cat"), terminal_columns("中文")
    (3, 4)
    """
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def fill_columns(text, columns, right=False):
    """Pad a text with spaces to this many columns, aligned left or right.

    >>> fill_columns("cat", 5), fill_columns("cat", 5, right=True)
    ('cat  ', '  cat')
    """
    space = " " * (columns - terminal_columns(text))
    return space + text if right else text + space


def visual_order(label):
    """Reverse right-to-left letters, as matplotlib itself does since 3.11."""
    if matplotlib.__version_info__ >= (3, 11):
        return label
    runs = groupby(label, lambda c: unicodedata.bidirectional(c) in RIGHT_TO_LEFT)
    return "".join("".join(run)[:: -1 if reverse else 1] for reverse, run in runs)


def shorten(pieces, longest):
    """Join pieces into a label of at most `longest` characters."""
    ends = list(accumulate(map(len, pieces)))
    if not ends or ends[-1] <= longest:
        return "".join(pieces)
    return "".join(p for p, end in zip(pieces, ends) if end < longest) + "…"


def text_width(text):
    """Estimate the width of a text in inches; when in doubt, too wide."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    broad = sum(text.count(c) for c in BROAD)
    return (len(text) + wide + 0.65 * broad) * LETTER


def word_width(text):
    """Measure a text in inches; estimate it if the font lacks a character."""
    font = get_font(findfont(FontProperties(family=["DejaVu Sans"], weight="bold")))
    if not all(map(font.get_char_index, map(ord, text))):
        return text_width(text)
    font.set_size(LABEL_SIZE, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64 / 72


def widest(labels):
    """Estimate the width in inches of the widest label."""
    return max(map(text_width, labels), default=0)


def thin(count, inches):
    """Choose which of `count` labels to write along `inches`.

    If they have room, all of them, otherwise every second, third, ...
    with some room to spare.

    >>> thin(3, 2.0), thin(100, 2.0)
    (range(0, 3), range(0, 100, 16))
    """
    room = inches / LINE
    return range(0, count, 1 if count <= room else math.ceil(2 * count / room))


def is_turned(labels, inches):
    """Return whether labels along `inches` are too wide to stand side by side."""
    room = inches / max(1, len(thin(len(labels), inches)))
    return widest(labels) + LETTER > room


def key_margin(labels, inches):
    """Estimate the height in inches of labels below or above columns."""
    return widest(labels) if is_turned(labels, inches) else LINE
