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
    also on a page that nobody runs. No guess raises an error, whatever
    it is, and a wrong one costs nothing.

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
        "The nearest sentence has a Cat that grinned. It shares only the word cat with "
        "the question, as other sentences do: meaning, not spelling, puts it first.",
        "The Cat only grinned when it saw Alice.",
    ),
    "00.again": Prediction(
        4,
        "Its first line makes the list anew, so each run starts from three words.",
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
        "brings some that the list lacks.",
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
        "$ is one of the 32 ASCII signs, which are always split off. € is not, and to "
        "Unicode it is a currency symbol, not punctuation.",
        "['€5']",
    ),
    "01.more": Prediction(
        "yes",
        "In unplayable, ##playa is longer than ##play and is taken. Nothing fits the "
        "rest, ble, and WordPiece never goes back.",
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
        "[UNK], whose id is not that of cat.",
        "'Thé cat sat.'     -> [ 2  5  6  7 12  3]",
        also=(["c", "a"],),
    ),
    "02.nearest": Prediction(
        "cats",
        "Its plural, with a cosine of 0.82; kitten and kitty follow. These words occur "
        "in similar sentences, so training pushed their rows the same way.",
        "cats 0.82",
    ),
    "02.minus": Prediction(
        "the last row",
        "NumPy counts negative places from the end.",
        "word[-1] = [2. 2. 0. 0.]",
    ),
    "02.recover": Prediction(
        1.0,
        "All 500, and all positions too. In 384 dimensions there is room for very many "
        "directions nearly at right angles, so the parts of a sum hardly disturb one "
        "another.",
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
        "The two vectors are the same. Nothing else in the model says where a token "
        "stands, and both sentences hold the same words.",
        "without positions  the two vectors of 'cat' differ by 0.0000",
        0.01,
    ),
    "02.position40": Prediction(
        [39, 41],
        "Its two neighbours, though nobody told the table that 41 follows 40. The next "
        "in line, 197 and 198, are far away.",
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
        "more",
        "0.1065: the exponential of 0 is 1 in both rows, but each is divided by the "
        "sum of its own row, and that of 'sat' is smaller.",
        "sat -> the: 0.1065",
    ),
    "03.large": Prediction(
        "nan",
        "The exponential of 1000 is too large for a float. It becomes infinity, and "
        "infinity divided by infinity is not a number.",
        "naive:   [nan nan]",
    ),
    "03.growth": Prediction(
        0.88,
        "The scores have standard deviation 8, so the largest of ten is on average "
        "about 4 ahead of the next, and the exponential turns a lead of 4 into a "
        "factor of 55.",
        "                     0.88     0.32",
        0.1,
    ),
    "04.forgotten": Prediction(
        0.66,
        "Beside the long sentence 44 positions are [PAD]. More than a third of the "
        "attention goes there and mixes into the sentence what is not in it.",
        "beside 50 tokens: cosine 0.66",
        0.1,
    ),
    "04.naive": Prediction(
        "score 0",
        "Where the softmax comes last, the rows sum to 1. But the exponential of a "
        "score of 0 is 1, so [PAD] keeps a portion.",
        "row sum 0.91",
    ),
    "04.pad_row": Prediction(
        1,
        "The mask strikes out keys, not queries: a padded position divides its "
        "attention among the visible keys, as any other does.",
        "row of [PAD]: [0.5 0.5 0. ]  sum 1.0",
    ),
    "04.low": Prediction(
        ["a huge score", "all masked"],
        "On an ordinary row all three give exactly 0 for a masked key. But 12000 - "
        "10000 is still a huge score, and a row of nothing but -inf gives nan.",
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
        "The real token with the id of [PAD] is taken for padding, so no token attends "
        "to it. Nothing complains.",
        "mask derived  difference in each row:",
        also=("wrong",),
    ),
    "05.swap": Prediction(
        "no, yes",
        "One head hands over the mean of two values, which is the same whichever is "
        "which. Two heads write into different numbers, so there the exchange shows.",
        "one head  [1.5 2.5]  after the swap [1.5 2.5]",
        also=(["no", "yes"],),
    ),
    "05.slice": Prediction(
        "yes",
        "Each number of the query is the dot product of all H numbers of x with a "
        "column of W_q.",
        "row 7 of its matrix",
    ),
    "05.reshape": Prediction(
        "all of the first token and half of the second",
        "A reshape keeps the order of the numbers and only breaks the line in other "
        "places: head 0 gets the first 12 of the 24.",
        "equal to the loop: False",
    ),
    "05.cost": Prediction(
        1,
        "Just as many. The four matrices have the shape (H, H) for any A; the heads "
        "only divide them among themselves.",
        "12    2,362,368",
    ),
    "05.naive": Prediction(
        "yes",
        "A softmax makes its rows sum to 1 whatever goes in.",
        "row sums 1.0000",
    ),
    "06.halves": Prediction(
        "feed-forward",
        "Its updates are longer in every one of the six layers. Attention hands over "
        "means of values, and a mean of different vectors is shorter than they are.",
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
        "There GELU is −0.17. Further down, the probability Φ(x) shrinks faster than x "
        "grows, so their product returns to 0.",
        "lowest: gelu(-0.75) = -0.17",
        0.1,
    ),
    "06.forms": Prediction(
        0.001,
        "They differ by 0.0005 at most, so 0.001 is the nearest of the three.",
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
        "Each layer replaces every token by nearly the same mean of all tokens: their "
        "cosine is 0.98 after one layer and 1.00 after two.",
        "after  2 layers: with residuals 0.514, without 1.000",
    ),
    "06.height": Prediction(
        6.93,
        "That is √48: after LayerNorm the 48 numbers have mean square 1, so their "
        "squares sum to 48.",
        "post-norm (BERT): 6.93, after 24 layers 6.93",
        0.1,
    ),
    "07.recipes": Prediction(
        1,
        "The pooler is a linear map and a tanh of the [CLS] row. The row itself and "
        "the tanh of the mean are other vectors.",
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
        "56, with imports and blank lines: each chapter's equation is a line or two.",
        "56 lines",
    ),
    "07.part": Prediction(
        "feed-forward",
        "Its two matrices hold 2 · H · 4H = 8 H² numbers in each layer, the four of "
        "attention 4 H², half as many.",
        "most are in 12 layers: feed-forward",
        also=("the feed-forward networks", "ffn"),
    ),
    "07.head": Prediction(
        "no",
        "What is missing is the embeddings, 23.8 million. The head would add 0.6 "
        "million, since its largest matrix is the word table, which is counted there.",
        "MLM head, if it were added         622,650",
    ),
    "07.missed": Prediction(
        5,
        "The vector is read off right after the last layer, so no other layer can make "
        "up for it.",
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
        "The subject is cat, which is singular, although dogs stands nearer to the "
        "blank.",
        "[MASK] tired . {'is': 1.0",
    ),
    "08.doubt": Prediction(
        0.99,
        "Nearly always. In training a visible word that was asked for was wrong as "
        "often as right, so the model learned to ask of each whether it fits.",
        "a random wrong word       right 0.99",
        0.04,
    ),
    "08.alike": Prediction(
        1.39,
        "Each word has the probability 1/4, and -log(1/4) is log 4. A model that knows "
        "nothing pays log V.",
        "all four alike: 1.3863",
        0.01,
    ),
    "08.sure": Prediction(
        "infinity",
        "In a float e^-800 is 0, so the right word has the probability 0, and -log 0 "
        "is infinity.",
        "log of softmax: inf",
        also=("inf",),
    ),
    "08.ceiling": Prediction(
        0.8,
        "Eight in ten. Where several words are possible, nobody can do better than "
        "guess, and even the best guess is often wrong.",
        "best possible    loss 0.376, perplexity   1.46, 79.5% right",
        0.07,
    ),
    "08.back": Prediction(
        0.63,
        "Little better than guessing, although the grammar settles the gender in this "
        "direction just as well. What is learned in one direction need not hold in the "
        "other.",
        "the name     hidden, 231 passages: right gender 0.63",
        0.07,
    ),
    "08.alone": Prediction(
        0.07,
        "The last hidden state is not written in the terms of the word table. To "
        "translate it is the work of the layers that were left out.",
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
        "For all of them. A text drawn at random nearly always differs in other ways, "
        "too, so training hardly ever made this head heed the pronoun.",
        "'follows' for 1.00",
        0.03,
    ),
    "09.random": Prediction(
        0.95,
        "It is 0.95 before the first layer already. All tokens share a segment row, "
        "and a mean keeps what its tokens share and averages the rest away.",
        "0.11    0.95  Stock prices fell because of the storm.",
        0.05,
    ),
    "09.bytes": Prediction(
        22.7,
        "Each number takes four bytes, and the header hardly counts.",
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
        "Text is compared character by character, and the 1 of 10 comes before 2.",
        "sorted by name:    [0, 1, 10, 11",
    ),
    "09.alarm": Prediction(
        12,
        "Only the two matrices of each of the six feed-forward networks are not "
        "square.",
        "37 matrices, alarm at 12",
    ),
    "09.nearly": Prediction(
        ["transpose", "epsilon"],
        "One matrix not transposed puts the result off by more than 1, a wrong epsilon "
        "by 0.001. Even that is hundreds of times as much as rounding.",
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
        "A third of the rows belongs to padding. The token before is then nearly "
        "always padding, too, and so is masked and gets 0.",
        "naive, padding included: 0.671",
        0.1,
    ),
    "10.offset": Prediction(
        0.79,
        "Nearly every adjective stands right before its noun, so the rule 'the next "
        "word' is hard to beat, and a head that reaches .84 has shown little.",
        "+1      0.79",
        0.06,
    ),
    "10.forced": Prediction(
        16,
        "It picks the same noun in both sentences of a pair, and that noun is right in "
        "exactly one of them, whichever it is.",
        "so it is right in 16 of 32 sentences",
    ),
    "10.swap": Prediction(
        67,
        "Far more than luck gives. The row of 'he' looks at the person, the row of "
        "'it' at the thing.",
        "| (3, 1) | 0.39 | 0.03 | 0.07 | 0.36 | 0 | 5 | 67 |",
        5,
    ),
    "11.missed": Prediction(
        0,
        "Two other heads look at the same word, and stand in for the one that is gone.",
        "(2, 3)               0.88                      0",
    ),
    "11.sink": Prediction(
        0.08,
        "The values of [CLS] are short, so there is little to hand over.",
        "moved, by v W_o  layers 1 to 4: 0.08",
        0.04,
    ),
    "11.hidden": Prediction(
        "[CLS]",
        "Each row must still sum to 1, so the attention that was parked on [CLS] falls "
        "on words that the heads did not want.",
        "nobody sees [CLS]: the others move by 0.7",
        also=("CLS",),
    ),
    "11.still": Prediction(
        0.53,
        "A query of 0 makes all scores 0, softmax then gives every key the same, and "
        "the head hands over the mean of all values.",
        "query set to 0  length 2.35, or 0.53 of it",
        0.1,
    ),
    "11.turn": Prediction(
        100,
        "This head carries to the blank which thing is asked about, and no other head "
        "of its layer does.",
        "output from the twin                   100% turn",
        2,
    ),
    "11.map": Prediction(
        0.0,
        "In both passages it looks at the word that is asked about. What differs is "
        "what it fetches there, ball or hat.",
        "by 0.00",
        0.02,
    ),
    "12.score": Prediction(
        "fall",
        "What cat gains in probability, 'the' and sat lose, and they have the value 1 "
        "here.",
        "cat: falls",
        also=("falls",),
    ),
    "12.query": Prediction(
        "the",
        "The query falls at place 1, where the key of cat is largest. The keys of "
        "'the' and sat are positive there, too, but 'the' gains more at place 0.",
        "grows: the\n",
    ),
    "12.norm": Prediction(
        0.25,
        "Raising x_0, which is below the mean, raises the mean and lowers the "
        "deviation. Both push z_0 down, and each takes 0.125 away.",
        "right [ 0.25 -0.25  0.    0.  ]",
        0.01,
    ),
    "12.valley": Prediction(
        "a flies off",
        "Each step multiplies a by 1 - 100 · 0.021 = -1.1, so it jumps to the other "
        "side of the valley, a little higher each time.",
        "a flies off",
        also=("a",),
    ),
    "12.nothing": Prediction(
        4.9,
        "The right token gets 1/140, and the loss is -log(1/140) = log(140) = 4.94.",
        "knowing nothing: log(140) = 4.94",
        0.1,
    ),
    "12.half": Prediction(
        0.1,
        "The model has learned which words are frequent and what kind of word goes "
        "where. That halves the loss, and needs no copying.",
        "step  50: loss 2.6, agreement 0.5, copy 0.1",
        0.05,
    ),
    "12.plural": Prediction(
        0.01,
        "The head looks for a singular noun there. Finding none tells the number just "
        "as well.",
        "plural   subject: 38 blanks, looks at it 0.01",
        0.05,
    ),
    "12.patch": Prediction(
        [0, 1],
        "The head that looks carries the number of the subject to the blank; with the "
        "twin's number the answers turn. The other head carries none of it.",
        "that head patched: 0.0, the other: 1.0",
    ),
    "12.last": Prediction(
        "binding",
        "Which of two things has which colour takes steps in several layers, and one "
        "of them helps little without the others.",
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
        "The vectors follow the topic first: the same thing with 'not' is nearer than "
        "the same judgement of another thing.",
        "with 'not' is nearer: 39 of 40",
        3,
    ),
    "13.random": Prediction(
        0.68,
        "Each word starts with a vector of its own, so even the vectors of a random "
        "BERT depend a little on which words stand in a text.",
        "random BERT    right on the test: 0.68",
        0.06,
    ),
    "13.tuned": Prediction(
        2.2,
        "Most of what the task needs was already in the frozen vectors.",
        "gain 2.2 points",
        1.5,
    ),
    "13.words": Prediction(
        0.03,
        "They ask three different questions, and gradient x input agrees with the "
        "other two hardly more than luck.",
        "all three name the same word: 0.0",
        0.05,
    ),
    "13.majority": Prediction(
        0.81,
        "Most words nearly always have the same tag, and the new ones are mostly nouns "
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
        "Each score is a sum over D = H / A numbers, so A heads make A times as many "
        "scores, each A times as short.",
        "heads: 12, numbers in each:  32, operations: 25,165,824\n"
        "heads:  1, numbers in each: 384, operations: 25,165,824",
    ),
    "14.bytes": Prediction(
        0.5,
        "A weight has 4 bytes and is used once, for two operations: one multiplication "
        "and one addition.",
        "tokens:   1, operations for each byte: 0.5",
        0.05,
    ),
    "14.change": Prediction(
        3,
        "A Python loop spends dozens of nanoseconds on each number, NumPy's loops "
        "spend a few. No other change comes near.",
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
        "A part is computed in the same way whichever thread takes it, and no sum is "
        "divided among parts.",
        "one thread or two, the bits are the same: True",
    ),
    "14.divisions": Prediction(
        16,
        "Each query divides the D = 32 numbers of its context instead of T = 512 "
        "exponentials.",
        "16 times fewer",
    ),
    "14.longer": Prediction(
        2.2,
        "The linear maps take 24 T H² and only double. Scores and context, 4 T² H, "
        "grow fourfold, but at these lengths they are the smaller part.",
        "256 to 512 tokens: 2.20 times the operations",
        0.1,
    ),
}
