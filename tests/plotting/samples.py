"""What the tests of pictures share: inputs, and readers of figures and pages."""

from html.parser import HTMLParser

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bert_np.analysis import Example, Examples, PairScores, ProbeScores, RelationScores
from bert_np.analysis.minimal_pairs import count_outcomes

WORDS = ["the", "cat", "sat"]
ODD = ["[CLS]", "中文", "\U0001f600", "$x$", "$$", '<b>&"', "שלום", "a\x07b"]
ODD += ["\ud800", "", "antidisestablishmentarianism", "W" * 1000, "[SEP]"]
# The worked example: q and k give scores (4, 2, 0) and so on, divided by 2.
Q = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]])
K = np.array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 1, 2, 0]])
V = np.array([[1.0, 0], [0, 1], [1, 1]])
PROBS = np.array(
    [[0.6652, 0.2447, 0.0900], [0.2119, 0.5761, 0.2119], [0.1065, 0.1065, 0.7870]]
)


def random_probs(*shape):
    """Rows of probabilities, read-only."""
    scores = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return frozen(scores / scores.sum(axis=-1, keepdims=True))


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def relation_scores(relations):
    """Scores of (2, 3) heads for these relations, with intervals and control."""
    R = len(relations)
    accuracy = random_probs(R, 3, 2, 2).T  # (2, 2, 3, R)
    accuracy = frozen(accuracy.transpose(0, 3, 1, 2).reshape(2, R, 2, 3))
    best, low = accuracy[..., 1, 2], frozen(np.linspace(0.1, 0.6, R))
    ends = frozen(np.stack([best * 0.9, best], axis=-1))
    return RelationScores(
        relations=tuple(relations),
        counts=frozen(np.arange(R) + 1000),
        accuracy=accuracy,
        heads=frozen(np.tile([1, 2], (2, R, 1))),
        best=best,
        offsets=frozen(np.arange(R) - 2),
        baseline=low,
        best_interval=ends,
        baseline_interval=frozen(np.stack([low - 0.05, low], axis=-1)),
        gain_interval=ends,
        control=frozen(best * 0.1),
    )


def pair_scores(labels):
    """Scores of (2, 3) heads over five pairs; head (1, 2) is right in three."""
    margins = np.full((5, 2, 2, 3), 0.5)
    margins[:, :, 1, 2] = [[0.4, -0.3], [0.1, -0.2], [0.6, 0.1], [-0.3, -0.2], [1, -1]]
    attention = random_probs(2, 2, 2, 3)
    outcomes = count_outcomes(margins)
    return PairScores(tuple(labels), attention, outcomes, frozen(margins), 3)


def found_examples(words, query=1, key=0):
    """One place in each list; the words are those of the sentence."""
    row = random_probs(len(words), len(words))[0]
    one = Example(tuple(words), query, key, float(row[key]), 0.25, row, words[0])
    other = one._replace(query=key, key=query, weight=0.02)
    return Examples([one, other], [other], [one], (3, 1), "obj", 1234, 0.5)


def probe_scores():
    """Scores of three layers, the embeddings among them."""
    curves = np.array([[0.5, 0.9, 0.75], [0.25, 0.3, 0.1], [0.25, 0.6, 0.65]])
    bands = [np.stack([c - 0.05, c + 0.05], axis=-1) for c in curves]
    return ProbeScores(*curves, *bands, 0.8, 0.2, (60, 20, 20), ("NOUN", "VERB"))


def names(count):
    return [f"t{i}" for i in range(count)]


# ----------------------------------------------------------------- figures
def written(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def title_of(figure):
    return figure.get_suptitle().replace("\n", " ") if figure._suptitle else ""


def map_of(figure, panel=0):
    return np.asarray(figure.axes[panel].images[0].get_array())


def hatched(ax):
    return [patch for patch in ax.patches if patch.get_hatch()]


def drawn(figure):
    """The pixels of a figure, (height, width, 3)."""
    FigureCanvasAgg(figure).draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def texts_of(figure):
    """The texts that are drawn, of ticks only those within the axes."""
    axes = [*figure.axes, *(child for ax in figure.axes for child in ax.child_axes)]
    texts = [figure._suptitle, figure._supxlabel, figure._supylabel, *figure.texts]
    for ax in axes:
        texts += [*ax.texts, ax.title, ax._left_title, ax._right_title]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            marks = list(axis._update_ticks())
            texts += [axis.label, *(mark.label1 for mark in marks)]
            texts += [mark.label2 for mark in marks]
    texts = {id(text): text for text in texts if text is not None}.values()
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def assert_text_fits(figure):
    """No text leaves the figure, none overlaps another, none is small."""
    height, width, _ = drawn(figure).shape
    texts = texts_of(figure)
    assert len(texts) > 3 and min(text.get_fontsize() for text in texts) >= 9
    boxes = np.array([text.get_window_extent().extents for text in texts])
    for text, (left, low, right, top) in zip(texts, boxes):
        assert min(left, low) > -1 and right < width + 1 and top < height + 1, text
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    over = np.argwhere(np.triu((high - low > 1.5).all(axis=2), 1))  # pixels
    assert not over.size, [(texts[i], texts[j]) for i, j in over[:5]]


# ------------------------------------------------------------------- pages
class Page(HTMLParser):
    """The elements of a page, its texts and its script; all must be closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.found, self.texts, self.script = [], [], [], ""
        self.feed(html.encode("utf-8").decode("utf-8"))
        self.close()
        assert self.open == []
        self.text = "".join(self.texts)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open += [] if tag in ("br", "img", "meta", "line") else [tag]

    def handle_endtag(self, tag):
        assert tag == "line" or self.open.pop() == tag

    def handle_comment(self, data):
        self.found.append(("a comment", {}))

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.script += text
        else:
            self.texts.append(text)

    def all(self, tag, name=None):
        """The attributes of all elements of a kind, or one of them."""
        found = [attributes for kind, attributes in self.found if kind == tag]
        return [each[name] for each in found if name in each] if name else found

    def structure(self):
        """The kinds of elements with the names of their attributes."""
        pairs = {(tag, name) for tag, each in self.found for name in each}
        return pairs | {tag for tag, _ in self.found}
