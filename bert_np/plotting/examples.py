"""Places where a head's weight stands out: small pictures, and a table."""

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch

from bert_np.analysis.examples import Examples
from bert_np.errors import BertError
from bert_np.plotting.colours import FAINT, KEY, NEUTRAL, QUERY
from bert_np.plotting.drawing import write
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.html import join, tag
from bert_np.plotting.labels import token_labels, token_text, word_width
from bert_np.plotting.table import BLACK_ON_WHITE, AttentionTable

LISTS = {
    "largest": "largest weight",
    "smallest": "smallest weight",
    "surprising": "most surprising: another word gets far more",
}
WIDTH = 9.0  # inches for the words of a sentence
ROW, HEADING = 0.62, 0.42  # inches: the height of a sentence, of a heading
LEAST = 0.1  # the weight from which another word gets a link of its own
GAP = "…"
SPACE = 0.07  # inches between words
USUAL = "usual: the mean weight over all places where the two words are this far apart"
LEGEND = (
    "blue: the word that looks; bold: the word looked at; the deeper the orange, the "
    "larger the weight"
)
LONGEST_WORD = 20


@in_own_style
def plot_examples(examples, *, title=None):
    """Draw the places that were found, one sentence below the other.

    The word that looks, the query, is blue, the key orange. An arc leads
    from the query to the key, fainter ones to every other word that gets
    0.1 or more; the thicker, the larger the weight. Of a long sentence
    only the words around the two are shown. An empty list is left out, as
    after examples._replace(smallest=[]).

    Parameters
    ----------
    examples : Examples
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_examples(examples)
    lists = {n: getattr(examples, n) for n in LISTS if len(getattr(examples, n))}
    rows = sum(map(len, lists.values()))
    height = ROW * rows + HEADING * len(lists)
    notes = [headline(examples), USUAL]
    ax = new_figure(WIDTH + 1.9, height, title, notes).add_subplot()
    ax.set(xlim=(-1.8, WIDTH), ylim=(-height, 0), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    top = 0.0
    for name, places in lists.items():
        style = {"ha": "left", "fontweight": "bold"}
        write(ax, -1.75, top - 0.26, LISTS[name], AXIS_SIZE, **style)
        top -= HEADING
        for example in places:
            draw_example(ax, example, top - ROW + 0.14)
            top -= ROW
    return finish(ax, describe_examples(examples))


def draw_example(ax, example, base):
    """Draw one sentence on a line at height `base`, with its arcs."""
    shown = words_around(example)
    texts = token_labels(
        [GAP if i is None else example.words[i] for i in shown], LONGEST_WORD
    )
    middles, right = {}, 0.0
    for place, text in zip(shown, texts):
        width = word_width(text)
        if place is not None:
            middles[place] = right + width / 2
        role = {example.query: QUERY, example.key: KEY}.get(place, "black")
        bold = "bold" if role != "black" else "normal"
        write(ax, right + width / 2, base, text, color=role, fontweight=bold)
        right += width + SPACE
    start = middles[example.query]
    for place in others(example):
        if place in middles:
            draw_arc(ax, start, middles[place], base, example.row[place], FAINT)
    draw_arc(ax, start, middles[example.key], base, example.weight, NEUTRAL)
    numbers = f"{example.weight:.2f}  usual {example.expected:.2f}"
    write(ax, -1.75, base, numbers, ha="left")


def others(example):
    """List the other words that get a link of their own, the weakest first."""
    order = np.argsort(example.row, kind="stable")
    ends = example.query, example.key
    return [int(i) for i in order if example.row[i] >= LEAST and i not in ends]


def draw_arc(ax, start, end, base, weight, colour):
    """Draw an arc above the words, as thick as its weight."""
    high = 0.11 + 0.03 * min(abs(end - start), 8.0)
    bend = -np.sign(end - start) * 2 * high / max(abs(end - start), 0.2)
    arc = FancyArrowPatch(
        (start, base + 0.1),
        (end, base + 0.1),
        arrowstyle="-|>",
        mutation_scale=6,
        connectionstyle=f"arc3,rad={bend:.3f}",
        color=colour,
        linewidth=0.6 + 2.4 * weight,
        linestyle="-" if weight >= LEAST else ":",
        shrinkA=0,
        shrinkB=0,
    )
    ax.add_patch(arc)


def words_around(example):
    """Choose the words to show: the query, the key and as many near them.

    Returns
    -------
    list of int or None
        Places in the sentence, in order; None where words are left out.
    """
    widths = [
        word_width(label) + SPACE for label in token_labels(example.words, LONGEST_WORD)
    ]
    ends = example.query, example.key, *others(example)[-1:]
    near = sorted(range(len(widths)), key=lambda i: min(abs(i - end) for end in ends))
    kept, room = [], WIDTH - 3 * (word_width(GAP) + SPACE)
    for place in near:
        room -= widths[place]
        if room < 0 and len(kept) >= len(set(ends)):
            break
        kept.append(place)
    kept, shown = sorted(kept), []
    for before, place in zip([-1, *kept], [*kept, len(widths)]):
        shown += [None] * (place > before + 1) + [place] * (place < len(widths))
    return shown


def examples_table(examples, *, title=None):
    """Write the places that were found as a table that needs no script.

    Every sentence is there as a whole. The query is blue and underlined,
    the key orange and bold; the background of a word is the colour of the
    weight that it gets, on the scale of `attention_table`.

    Parameters
    ----------
    examples : Examples
    title : str, optional

    Returns
    -------
    AttentionTable
        HTML in a notebook, text elsewhere: there the query is in square
        brackets, the key between asterisks.
    """
    require_examples(examples)
    if title is not None and not isinstance(title, str):
        raise BertError(f"title is a {type(title).__name__}, expected a str or None")
    texts = [text for text in (title, headline(examples), USUAL, LEGEND) if text]
    cells = [tag("th", name, style=BLACK_ON_WHITE) for name in COLUMNS]
    rows, lines = [tag("tr", *cells)], [token_text(text, 200) for text in texts[:-1]]
    for name, words in LISTS.items():
        style = f"{BLACK_ON_WHITE};text-align:left;font-weight:bold"
        rows.append(tag("tr", tag("td", words, colspan=len(COLUMNS), style=style)))
        lines += ["", words]
        for example in getattr(examples, name):
            rows.append(example_row(example))
            lines.append(example_line(example))
    above = join([token_text(text, 200) for text in texts], tag("br"))
    caption = tag("caption", above, style=f"{BLACK_ON_WHITE};text-align:left")
    return AttentionTable(
        tag("table", caption, *rows, style=BLACK_ON_WHITE), "\n".join(lines)
    )


COLUMNS = ("weight", "usual", "sentence", "source")


def example_row(example):
    """Write one place as a row of the HTML table."""
    words = []
    for place, word in enumerate(example.words):
        style = f"background:{tinted(example.row[place])};color:#000"
        if place == example.query:
            style = f"background:#fff;color:{QUERY};text-decoration:underline"
        elif place == example.key:
            style += f";font-weight:bold;border-bottom:3px solid {KEY}"
        shown = f"{example.row[place]:.2f}"
        words.append(
            tag("span", token_text(word, LONGEST_WORD), style=style, title=shown)
        )
    left = f"{BLACK_ON_WHITE};text-align:left"
    numbers = [f"{example.weight:.2f}", f"{example.expected:.2f}"]
    cells = [tag("td", number, style=BLACK_ON_WHITE) for number in numbers]
    cells.append(tag("td", tag("bdi", join(words, " ")), style=left))
    return tag("tr", *cells, tag("td", token_text(example.source, 40), style=left))


def tinted(weight):
    """Return white for the weight 0, a deeper orange for a larger one."""
    share = 0.6 * min(max(float(weight), 0.0), 1.0)
    return to_hex([1 - share * (1 - part) for part in to_rgb(KEY)])


def example_line(example):
    """Write one place as a line of text."""
    words = [token_text(word, LONGEST_WORD) for word in example.words]
    words[example.query] = f"[{words[example.query]}]"
    words[example.key] = f"*{words[example.key]}*"
    numbers = f"{example.weight:6.2f} {example.expected:6.2f}"
    return f"{numbers}  {' '.join(words)}  ({token_text(example.source, 40)})"


def headline(examples):
    """Say which head was searched for what, and where."""
    layer, head = examples.head
    return (
        f"head ({layer}, {head}), {examples.pattern}: {examples.places:,} places, "
        f"mean weight {examples.mean:.2f}"
    )


def require_examples(examples):
    """Refuse what find_examples did not return."""
    if not isinstance(examples, Examples):
        raise BertError(
            f"examples is {type(examples).__name__}, allowed: what find_examples "
            "returns"
        )


def describe_examples(examples):
    """Name the first place of each list."""
    parts = []
    for name in LISTS:
        if not getattr(examples, name):
            continue
        example = getattr(examples, name)[0]
        query, key = token_labels(
            [example.words[example.query], example.words[example.key]]
        )
        parts.append(f"{name} from {query} to {key}, {example.weight:.2f}")
    what = "Sentences with arcs from the word that looks"
    return f"{what}; {headline(examples)}; {'; '.join(parts)}."
