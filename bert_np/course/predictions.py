"""Predictions: the student guesses first, then sees the answer and its reason.

Each answer is also printed by the cell that follows in its chapter; the
tests hold the two together.
"""

import sys
from typing import Any, NamedTuple

from bert_np.course.answers import agrees, as_text, in_the_form_of
from bert_np.course.attempts import Trouble, read_value
from bert_np.errors import BertError, short


class Prediction(NamedTuple):
    """What comes out, and why."""

    answer: Any  # a str, a number, or a list of them
    why: str  # one or two sentences
    shown: str  # what the next cells of the chapter print, or a part of it
    tolerance: float = 0.0  # how near a guessed number has to be
    also: tuple = ()  # other ways to say the same


def predict(prediction_id, guess):
    """Show what comes out, once you have said what you expect.

    An untouched guess (`...`) shows the answer folded: a click opens it,
    also on a page that nobody runs. Nothing that a guess may be raises
    an error, and a wrong one costs nothing.

    Parameters
    ----------
    prediction_id : str
        Such as "03.zero".
    guess : str, number or list
        In the form that the question names.
    """
    prediction = find_prediction(prediction_id)
    value = read_value(guess)
    if value is None:
        _show_folded(prediction)
    elif _is_right(value, prediction):
        print(f"Right: {_in_words(prediction.answer)}. {prediction.why}")
    else:
        theirs = _in_words(value)
        right = _in_words(prediction.answer)
        print(f"You said {theirs}; it is {right}. {prediction.why}")


def find_prediction(prediction_id):
    """Return the prediction with this id, such as "03.zero"."""
    if not isinstance(prediction_id, str) or prediction_id not in PREDICTIONS:
        start = prediction_id[:2] if isinstance(prediction_id, str) else ""
        near = [name for name in PREDICTIONS if name[:2] == start] or [
            f"{chapter}.…" for chapter in dict.fromkeys(n[:2] for n in PREDICTIONS)
        ]
        raise BertError(f"id = {short(prediction_id)}, allowed: {', '.join(near)}")
    return PREDICTIONS[prediction_id]


def _is_right(value, prediction):
    """Return whether a guess says the same as the answer."""
    return any(
        agrees(in_the_form_of(value, right), right, prediction.tolerance)
        for right in (prediction.answer, *prediction.also)
    )


def _show_folded(prediction):
    """Show the answer behind a click; as plain text, only that it is there."""
    from bert_np.plotting.html import tag

    text = "no guess yet: write one in place of ... and run the cell"
    answer = f"{_in_words(prediction.answer)}. {prediction.why}"
    html = tag("details", tag("summary", "The answer, if you only read"), answer)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        print(text)
    else:
        from IPython.display import display

        display({"text/plain": text, "text/html": html}, raw=True)


def _in_words(value):
    """Write an answer or a guess as a student would."""
    if isinstance(value, Trouble):
        return "something that cannot be read"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_text, value))
    return as_text(value)


PREDICTIONS = {
    "00.search": Prediction(
        "yes",
        "The nearest vector is that of a sentence in which the Cat grins. Meaning, not "
        "spelling, brought the two together.",
        "The Cat only grinned when it saw Alice.",
    ),
    "00.again": Prediction(
        4,
        "Its first line makes the list anew, so that nothing adds up.",
        "4 words",
    ),
    "00.division": Prediction(
        "wrong numbers",
        "A shape (3,) is lined up with the columns: column j is divided by the sum of "
        "row j, and NumPy does not complain.",
        "row sums [0.733 1.183 0.9  ]",
    ),
    "00.columns": Prediction(
        "all of them",
        "What cat no longer gets is divided among the others, for every row must still "
        "sum to 1.",
        "[0.5 0.  0.5]",
    ),
    "01.unseen": Prediction(
        0.16,
        "Nearly one word in six. Most words of a language are rare, so every new text "
        "brings some that no list of words has.",
        "16% of those in the second half are unknown",
        0.05,
    ),
    "01.naive": Prediction(
        2,
        "The first word has a capital and the last one a full stop, and neither "
        "spelling is in the list.",
        "['[UNK]', 'cat', 'sat', 'because', 'it', 'was', '[UNK]']",
    ),
    "01.currency": Prediction(
        [2, 1],
        "$ is one of the 32 ASCII signs and is split off. € is not, and Unicode calls "
        "it a currency symbol, not punctuation.",
        "['€5']",
    ),
    "01.more": Prediction(
        "yes",
        "The longer piece ##playa is taken, ble is left over, and WordPiece never goes "
        "back.",
        "21 entries: ['[UNK]']",
    ),
    "01.separators": Prediction(
        [0, 1],
        "Each [SEP] belongs to the text that it closes.",
        " 5 [SEP]  segment 0",
    ),
    "01.lost": Prediction(
        ["a", "c"],
        "Spaces, capitals and accents are cleaned away. dog is unknown and becomes "
        "[UNK], another id.",
        "'Thé cat sat.'     -> [ 2  5  6  7 12  3]",
        also=(["c", "a"],),
    ),
    "02.nearest": Prediction(
        "cats",
        "Its plural, with a cosine of 0.82; kitten and kitty follow. These words occur "
        "in the same places, and training pushed their rows the same way.",
        "cats 0.82",
    ),
    "02.minus": Prediction(
        "the last row",
        "NumPy counts negative places from the end.",
        "word[-1] = [2. 2. 0. 0.]",
    ),
    "02.recover": Prediction(
        1.0,
        "All 500, and all positions too: in 384 dimensions, directions that were drawn "
        "or learned apart hardly disturb one another.",
        "384          1.00              1.00",
        0.02,
    ),
    "02.axis": Prediction(
        "yes",
        "Over axis 0, the mean and the variance are those of a column, in which all "
        "tokens take part.",
        "axis  0: 'the' is [-0.2673",
    ),
    "02.blind": Prediction(
        0.0,
        "They are the same: without positions nothing in the model says where a token "
        "stands.",
        "without positions  the two vectors of 'cat' differ by 0.0000",
        0.01,
    ),
    "02.position40": Prediction(
        [39, 41],
        "Its two neighbours. The next ones, though, are 197 and 198, far away.",
        "most like 40: 39 (0.88), 41 (0.87), 197 (0.72)",
        also=([41, 39], [39, 41, 197], [41, 39, 197], [39, 40, 41]),
    ),
    "03.zero": Prediction(
        "no",
        "It gets 0.09. The exponential of 0 is 1, so a score of 0 is nothing special: "
        "only its distance from the other scores counts.",
        "probabilities [0.6652 0.2447 0.09  ]",
    ),
    "03.mirror": Prediction(
        0.1065,
        "The scores of the two directions are both 0, but each row is divided by its "
        "own sum, and the sums differ.",
        "sat -> the: 0.1065",
        0.006,
    ),
    "03.large": Prediction(
        "nan",
        "The exponential of 1000 is too large for a float. It becomes infinity, and "
        "infinity divided by infinity is not a number.",
        "naive:   [nan nan]",
    ),
    "03.growth": Prediction(
        0.88,
        "The scores have standard deviation 8, so one of ten is usually far ahead, and "
        "the exponential turns a lead of 8 into a factor of 3,000.",
        "                     0.88     0.32",
        0.1,
    ),
    "04.forgotten": Prediction(
        0.66,
        "Beside the long sentence 44 positions are [PAD], and more than a third of the "
        "attention goes there. The sentence has become another one.",
        "beside 50 tokens: cosine 0.66",
        0.1,
    ),
    "04.naive": Prediction(
        "score 0",
        "The softmax still makes them sum to 1, but a score of 0 has the exponential "
        "1, so [PAD] keeps a portion.",
        "row sum 0.91",
    ),
    "04.pad_row": Prediction(
        1,
        "A padded position is a query like any other: it divides its attention among "
        "the visible keys.",
        "row of [PAD]: [0.5 0.5 0. ]  sum 1.0",
    ),
    "04.low": Prediction(
        ["a huge score", "all masked"],
        "On an ordinary row all three give exactly 0 for a masked key.",
        "all masked   [0.6652 0.2447 0.09  ] [nan nan nan]",
        also=(["all masked", "a huge score"],),
    ),
    "04.causal": Prediction(
        "BERT's",
        "Only with BERT's mask can a token see what comes after it.",
        "triangle    the context of 'it' changes by 0.0000",
        also=("BERT", "BERT's mask"),
    ),
    "04.derived": Prediction(
        "it is wrong",
        "A real token with the id of [PAD] is taken for padding, and nobody attends to "
        "it. Nothing complains.",
        "mask derived  difference in each row:",
        also=("wrong",),
    ),
    "05.swap": Prediction(
        "no, yes",
        "The mean of two values is the same whichever is which. Two heads write into "
        "different numbers, so there the exchange shows.",
        "one head  [1.5 2.5]  after the swap [1.5 2.5]",
        also=(["no", "yes"],),
    ),
    "05.slice": Prediction(
        "yes",
        "Every number of the query is a product of a column with all H numbers of x.",
        "row 7 of its matrix",
    ),
    "05.reshape": Prediction(
        "all of the first token and half of the second",
        "A reshape keeps the order of the numbers and only breaks the line elsewhere.",
        "equal to the loop: False",
    ),
    "05.cost": Prediction(
        1,
        "Just as many: the heads divide the columns of the same four matrices.",
        "12    2,362,368",
    ),
    "05.naive": Prediction(
        "yes",
        "A softmax makes its rows sum to 1 whatever goes in.",
        "row sums 1.0000",
    ),
    "06.halves": Prediction(
        "feed-forward",
        "Its updates are longer in every one of the six layers.",
        "feed-forward from 0.8",
        also=("the feed-forward network", "ffn"),
    ),
    "06.same": Prediction(
        "no",
        "The same update is added to three different vectors, and the sums differ.",
        "[-1.      1.     -1.      1.    ]",
    ),
    "06.dip": Prediction(
        -0.75,
        "There GELU is −0.17. Further down it returns to 0. ReLU has no dip at all.",
        "lowest: gelu(-0.75) = -0.17",
        0.1,
    ),
    "06.forms": Prediction(
        0.001,
        "By 0.0005 at most, so 0.001 is the nearest of the three.",
        "they differ by up to 4.7e-04",
        6e-4,
    ),
    "06.changes": Prediction(
        ["no", "zeros"],
        "Tokens meet only in attention. Without GELU the two maps are one matrix, "
        "W1 W2, and in this example that matrix is 0.",
        "W1 @ W2 is all zeros: True",
        also=(["no", "0"], ["no", 0]),
    ),
    "06.collapse": Prediction(
        2,
        "Each layer replaces every token by nearly the same mean, so one layer does "
        "most of it and the second the rest.",
        "after  2 layers: with residuals 0.514, without 1.000",
        also=(1,),
    ),
    "06.height": Prediction(
        6.93,
        "√48: after LayerNorm the 48 numbers have mean square 1, so their squares sum "
        "to 48.",
        "post-norm (BERT): 6.93, after 24 layers 6.93",
        0.1,
    ),
    "07.recipes": Prediction(
        1,
        "Only the tanh of the [CLS] row, after its linear map. The row itself and the "
        "mean are other vectors.",
        "tanh of the [CLS] row  off by < 1e-5",
    ),
    "07.forgets": Prediction(
        "only a reference",
        "Every layer takes and gives the same shape and ends in a norm, so everything "
        "looks as it should.",
        "forgets   shape (3, 10, 384)",
        also=("a reference", "reference"),
    ),
    "07.lines": Prediction(
        50,
        "56 with its imports: each chapter's equation is a line or two.",
        "56 lines",
    ),
    "07.part": Prediction(
        "feed-forward",
        "2 · H · 4H = 8 H² against 4 H² in each layer, twice as many.",
        "most in 12 layers: feed-forward",
        also=("the feed-forward networks", "ffn"),
    ),
    "07.head": Prediction(
        "no",
        "It is the embeddings, with 23.8 million. The head would add 0.6 million, "
        "since its largest matrix is the word table.",
        "MLM head, were it there            622,650",
    ),
    "07.missed": Prediction(
        5,
        "The vector is read off right behind the last layer, so nothing can make up "
        "for it.",
        "without layer 5: mean cosine 0.48",
    ),
    "07.values": Prediction(
        "yes",
        "The map is made of queries and keys. The values are weighted by it and do not "
        "enter it.",
        "equal to the last bit: q k scores masked_scores probs",
    ),
    "08.number": Prediction(
        "is",
        "The subject is cat, although dogs stands nearer to the blank.",
        "[MASK] tired . {'is': 1.0",
    ),
    "08.doubt": Prediction(
        0.99,
        "Nearly always. In training a visible word that was asked for was wrong as "
        "often as it was right, so the model asks whether it fits.",
        "a random wrong word       right 0.99",
        0.04,
    ),
    "08.alike": Prediction(
        1.39,
        "The logarithm of 4: whoever knows nothing pays log V.",
        "all four alike: 1.3863",
        0.01,
    ),
    "08.sure": Prediction(
        "infinity",
        "The probability of the right word has become 0, and the logarithm of 0 is "
        "minus infinity.",
        "log of softmax: inf",
        also=("inf",),
    ),
    "08.ceiling": Prediction(
        0.8,
        "Eight in ten. At the other blanks several words are possible, and nobody can "
        "do better than guess.",
        "best possible    loss 0.376, perplexity   1.46, 79.5% right",
        0.07,
    ),
    "08.back": Prediction(
        0.63,
        "Little better than guessing, although the grammar settles the gender in "
        "this direction just as well.",
        "the name     hidden, 231 passages: right gender 0.63",
        0.07,
    ),
    "08.alone": Prediction(
        0.07,
        "The last hidden state is not written in the terms of the word table, and "
        "nothing has translated it.",
        "the table alone           0.07",
        0.05,
    ),
    "08.shift": Prediction(
        "cannot tell",
        "Add the same number to all logits of a position and no probability changes, "
        "so logits of two positions cannot be compared.",
        "logits [ -8.  -9. -10. -10.]",
        also=("can not tell", "can't tell"),
    ),
    "08.he": Prediction(
        1.0,
        "For all of them. The NSP head takes no notice of the pronoun.",
        "'follows' for 1.00",
        0.03,
    ),
    "09.random": Prediction(
        0.95,
        "Layers with random parameters make all tokens alike (chapter 06), and so all "
        "sentences, too.",
        "0.11    0.95  Stock prices fell because of the storm.",
        0.05,
    ),
    "09.bytes": Prediction(
        22.7,
        "Four bytes for each number, and a header that hardly counts.",
        "22,713,216 numbers of 4 bytes",
        0.5,
    ),
    "09.shape": Prediction(
        [1536, 384],
        "HuggingFace stores (out, in), the transpose of what x W needs.",
        "encoder.layer.0.intermediate.dense.weight         [1536, 384]",
    ),
    "09.third": Prediction(
        10,
        "As text, 10 comes before 2.",
        "sorted by name:    [0, 1, 10, 11",
    ),
    "09.alarm": Prediction(
        12,
        "Only the two matrices of each feed-forward network are not square.",
        "37 matrices, alarm at 12",
    ),
    "09.nearly": Prediction(
        ["transpose", "epsilon"],
        "One transposed matrix is off by more than 1, a wrong epsilon by 0.001: still "
        "hundreds of times as much as rounding.",
        "one not transposed",
    ),
    "10.self": Prediction(
        0.054,
        "One row in twenty. The residual keeps a token's own vector anyway, so no head "
        "has to.",
        "rows whose largest entry is their own token: 5.4%",
        0.05,
    ),
    "10.padding": Prediction(
        0.671,
        "A third of the rows belongs to padding, whose queries look anywhere.",
        "naive, padding included: 0.671",
        0.1,
    ),
    "10.offset": Prediction(
        0.43,
        "The verb may stand one, two or five words before its object, so no single "
        "offset is right in most cases.",
        "obj ",
        0.1,
    ),
    "10.forced": Prediction(
        16,
        "In each pair the same noun is right once and wrong once, so exactly half of "
        "the sentences come out right, whatever the noun is.",
        "so it is right in 16 of 32 sentences",
    ),
    "10.swap": Prediction(
        67,
        "Far more than luck: from he it looks at the person, from it at the thing.",
        "| (3, 1) | 0.39 | 0.03 | 0.07 | 0.36 | 0 | 5 | 67 |",
        5,
    ),
    "11.missed": Prediction(
        0,
        "Two other heads look at the same word, and stand in for it.",
        "(2, 3)               0.88                      0",
    ),
    "11.sink": Prediction(
        0.08,
        "The values of [CLS] are short: there is little to hand over.",
        "moved, by v W_o  layers 1 to 4: 0.08",
        0.04,
    ),
    "11.hidden": Prediction(
        "[CLS]",
        "Its attention has to go somewhere, and falls on words that were not wanted.",
        "nobody sees [CLS]: the others move by 0.7",
        also=("CLS",),
    ),
    "11.still": Prediction(
        0.53,
        "With all scores equal, softmax gives every key the same: the head hands over "
        "the mean of all values.",
        "query set to 0  length 2.35, or 0.53 of it",
        0.1,
    ),
    "11.turn": Prediction(
        100,
        "The head carries which thing is asked about, and nothing else tells it.",
        "output from the twin                   100% turn",
        2,
    ),
    "11.map": Prediction(
        0.0,
        "It looks at the word that is asked about, whatever it is. What differs is "
        "what it fetches there.",
        "by 0.00",
        0.02,
    ),
    "12.score": Prediction(
        "fall",
        "What cat gains in probability, the and sat lose, and their value is 1.",
        "cat: falls",
        also=("falls",),
    ),
    "12.query": Prediction(
        "the",
        "The keys of cat and sat have a number in common: a query that turns away from "
        "one turns away from the other.",
        "grows: the\n",
    ),
    "12.norm": Prediction(
        0.25,
        "Raising one number raises the mean and the deviation as well, and both work "
        "against it.",
        "right [ 0.25 -0.25  0.    0.  ]",
        0.01,
    ),
    "12.valley": Prediction(
        "a flies off",
        "Each step multiplies a by 1 - 100 · 0.021 = -1.1, so it jumps across the "
        "valley, a little higher each time.",
        "a flies off",
        also=("a",),
    ),
    "12.nothing": Prediction(
        4.9,
        "The loss is -log(1/140) = log(140).",
        "knowing nothing: log(140) = 4.94",
        0.1,
    ),
    "12.half": Prediction(
        0.1,
        "The model has learned which words are frequent and what kind of word goes "
        "where. That halves the loss, and copies nothing.",
        "step  50: loss 2.6, agreement 0.5, copy 0.1",
        0.05,
    ),
    "12.plural": Prediction(
        0.01,
        "It looks for a singular noun there. That it finds none tells the number just "
        "as well.",
        "plural   subject: 38 blanks, looks at it 0.01",
        0.05,
    ),
    "12.patch": Prediction(
        [0, 1],
        "The head that looks carries the number of the subject to the blank. The other "
        "does not.",
        "that head patched: 0.0, the other: 1.0",
    ),
    "12.last": Prediction(
        "binding",
        "Which of two things has which colour takes steps in several layers that help "
        "only together.",
        "last: binding",
    ),
    "13.padding": Prediction(
        0.56,
        "27 of the 34 rows in the second mean are padding, which has hidden states "
        "like any token.",
        "naive mean, alone and in a batch: cosine 0.56",
        0.1,
    ),
    "13.not": Prediction(
        39,
        "The vectors follow the topic first: the same thing with not is nearer than "
        "the same judgement of another thing.",
        "with 'not' is nearer: 39 of 40",
        3,
    ),
    "13.random": Prediction(
        0.68,
        "Each word starts with a vector of its own, so a little of which words stand "
        "in a text gets through even a random BERT.",
        "random BERT    right on the test: 0.68",
        0.06,
    ),
    "13.tuned": Prediction(
        2.2,
        "Most of what the task needs was in the frozen vectors.",
        "gain 2.2 points",
        1.5,
    ),
    "13.words": Prediction(
        0.05,
        "They ask three different questions, and one of the three hardly knows.",
        "all three name the same word: 0.0",
        0.05,
    ),
    "13.majority": Prediction(
        0.81,
        "Most words are nearly always of one kind, and the new ones are mostly nouns "
        "and names.",
        "majority tag right: 0.814",
        0.05,
    ),
    "14.rest": Prediction(
        "more",
        "Each of their steps goes over a whole array to do one operation on each "
        "number. A product does hundreds on each number that it fetches.",
        "softmax, GELU and norms: more than 10 % of the time",
    ),
    "14.heads": Prediction(
        1,
        "Each score is a sum over D = H / A numbers: A times as many scores, each A "
        "times as short.",
        "heads: 12, numbers in each:  32, operations: 25,165,824\n"
        "heads:  1, numbers in each: 384, operations: 25,165,824",
    ),
    "14.bytes": Prediction(
        0.5,
        "A weight has 4 bytes and is used once: for one multiplication and one "
        "addition.",
        "tokens:   1, operations for each byte: 0.5",
        0.05,
    ),
    "14.change": Prediction(
        3,
        "A step of a Python loop costs dozens of nanoseconds, and NumPy's loops take "
        "a few for the same number. No other change comes near.",
        "most: 3 no loop",
        also=("no loop", "3 no loop"),
    ),
    "14.ignored": Prediction(
        "neither",
        "The mask changes scores that have already been computed. Every product, norm "
        "and GELU still runs over every position.",
        "the mask in plain bert ",
    ),
    "14.threads": Prediction(
        "no",
        "A part is computed in the same way whoever computes it, and no sum is "
        "divided among parts.",
        "one thread or two, the bits are the same: True",
    ),
    "14.divisions": Prediction(
        16,
        "Each query divides D = 32 numbers instead of T = 512.",
        "16 times fewer",
    ),
    "14.longer": Prediction(
        2.2,
        "The maps take 24 T H² and only double; 4 T² H grows fourfold, but at these "
        "lengths it is the small part.",
        "256 to 512 tokens: 2.20 times the operations",
        0.1,
    ),
}
