"""The words and sentences of the toy language: data, no computation.

A template is a passage of plain English. Its words in capitals are slots:
"ANNA" stands for any name, "SHE" for the pronoun that goes with it. All
slots of one table are filled together from one of its rows; the rows are
equally likely (a row listed twice is twice as likely). Slots of different
tables are filled independently. So the tables say which words depend on
each other.
"""

from itertools import permutations, product
from typing import NamedTuple

MEN = ("john", "tom", "paul", "peter", "david")
WOMEN = ("anna", "mary", "lisa", "emma", "sarah")
PEOPLE = [(name, "he") for name in MEN] + [(name, "she") for name in WOMEN]
# Things and the colours they can have.
BRIGHT = (("ball", "hat", "book", "cup"), ("red", "blue", "green", "yellow"))
PLAIN = (("box", "coat", "key", "bag"), ("black", "white", "brown", "grey"))
KINDS = {
    word: number
    for number, kind in enumerate((BRIGHT, PLAIN))
    for words in kind
    for word in words
}
PLACES = ("garden", "kitchen", "park", "house", "school", "street")
NOUNS = (
    ("cat", "cats"),
    ("dog", "dogs"),
    ("bird", "birds"),
    ("horse", "horses"),
    ("boy", "boys"),
    ("girl", "girls"),
    ("farmer", "farmers"),
    ("teacher", "teachers"),
)
# Verbs: (singular, plural).
SEES = (("chases", "chase"), ("sees", "see"), ("likes", "like"), ("hears", "hear"))
SLEEPS = (("sleeps", "sleep"), ("runs", "run"), ("waits", "wait"), ("eats", "eat"))
IS = ("is", "are")
EVENTS = [
    *product(("lost", "dropped", "forgot"), ("sad", "angry")),
    *product(("found", "bought", "got"), ("happy", "proud")),
]
NEEDS = [
    *product(("hungry",), ("ate",), ("bread", "soup", "cake", "apple")),
    *product(("thirsty",), ("drank",), ("water", "milk", "tea", "juice")),
]


def _clauses():
    """Return rows of two different nouns, each with verbs that agree with it."""
    return [
        (cat[m], dogs[n], chase[n], sleeps[m], IS[m])
        for cat, dogs in permutations(NOUNS, 2)
        for m, n, chase, sleeps in product((0, 1), (0, 1), SEES, SLEEPS)
    ]


def _two_things():
    """Return rows of two different things with two different colours.

    In half of the passages both things are of one kind, so that either
    could have either colour, and only the passage tells which has which.
    These rows are listed twice: once, they would be only one in three.
    """
    alike = [
        (ball, red, hat, blue)
        for things, colours in (BRIGHT, PLAIN)
        for ball, hat in permutations(things, 2)
        for red, blue in permutations(colours, 2)
    ]
    mixed = [
        (ball, red, hat, blue)
        for first, second in permutations((BRIGHT, PLAIN))
        for ball, red in product(*first)
        for hat, blue in product(*second)
    ]
    return 2 * alike + mixed


# Each table: its columns, named by an example, and the rows that fill them.
TABLES = (
    (("ANNA", "SHE"), PEOPLE),
    (
        ("MARY", "TOM", "HE"),  # HE is TOM
        [
            (giver, taker, his)
            for giver, hers in PEOPLE
            for taker, his in PEOPLE
            if hers != his
        ],
    ),
    (("BALL", "RED", "HAT", "BLUE"), _two_things()),
    (("CAT", "DOGS", "CHASE", "SLEEPS", "IS"), _clauses()),
    (("HORSE", "BIRD"), list(permutations([s for s, _ in NOUNS], 2))),
    (("CHASED",), [("chased",), ("pushed",), ("scared",), ("followed",)]),
    (("LOST", "SAD"), EVENTS),
    (("HUNGRY", "ATE", "BREAD"), NEEDS),
    (("GARDEN",), [(place,) for place in PLACES]),
    (("BIG",), [("big",), ("small",), ("old",), ("quiet",)]),
    (("GOOD",), [("good",), ("cold",), ("warm",), ("fresh",)]),
    (("TIRED",), [("tired",), ("ill",), ("hungry",), ("late",)]),
    (
        ("PLAYING",),
        [("playing",), ("reading",), ("singing",), ("cooking",), ("walking",)],
    ),
    (("SLOWLY",), [("slowly",), ("quietly",), ("loudly",)]),
)
SUFFIXES = ("ing", "ly")  # WordPiece splits playing: play ##ing


class Template(NamedTuple):
    """One passage with slots, and the skills that it can test.

    A probe is (skill, target, source, distractor): the slot to predict,
    the word that determines it, and a word that misleads (or None).
    "BLUE:2" is the second occurrence of BLUE.
    """

    family: str
    text: str
    probes: tuple = ()


_SLEEPS = ("agreement", "SLEEPS:1", "CAT:1", "DOGS:1")
_IS = ("agreement", "IS:1", "CAT:1", "DOGS:1")
_SHE = ("pronoun", "SHE:1", "ANNA:1", None)
_COPY = ("copy", "RED:2", "RED:1", None)
_SAME = ("copy", "HORSE:2", "HORSE:1", None)
_RED = ("binding", "RED:2", "RED:1", "BLUE:1")
_BLUE = ("binding", "BLUE:2", "BLUE:1", "RED:1")
_BALL = ("binding", "BALL:2", "BALL:1", "HAT:1")
_HAT = ("binding", "HAT:2", "HAT:1", "BALL:1")
_BIRD = ("order", "BIRD:2", "BIRD:1", "HORSE:1")
_HORSE = ("order", "HORSE:2", "HORSE:1", "BIRD:1")
_TWO = "ANNA has a RED BALL and a BLUE HAT . "

TEMPLATES = (
    Template(
        "agreement",
        "the CAT that the DOGS CHASE SLEEPS . the DOGS went home .",
        (_SLEEPS,),
    ),
    Template(
        "agreement",
        "the CAT that the DOGS CHASE IS TIRED . the DOGS went home .",
        (_IS,),
    ),
    Template(
        "agreement",
        "the CAT near the DOGS SLEEPS in the GARDEN . the GARDEN is BIG .",
        (_SLEEPS,),
    ),
    Template(
        "agreement", "the CAT near the DOGS IS TIRED . the DOGS went home .", (_IS,)
    ),
    Template(
        "pronoun",
        "ANNA LOST the BALL . SHE was SAD . the BALL was in the GARDEN .",
        (_SHE,),
    ),
    Template(
        "pronoun",
        "ANNA went to the GARDEN . SHE LOST a BALL there . the BALL was RED .",
        (_SHE,),
    ),
    Template(
        "pronoun",
        "MARY gave TOM a BALL . HE was glad .",
        (("pronoun", "HE:1", "TOM:1", "MARY:1"),),
    ),
    Template(
        "copy",
        "ANNA has a RED BALL . the BALL is RED . SHE likes the RED BALL .",
        (_COPY, _SHE),
    ),
    Template(
        "copy", "there is a RED BALL in the GARDEN . ANNA LOST the RED BALL .", (_COPY,)
    ),
    Template("copy", "there is a HORSE in the GARDEN . the HORSE is BIG .", (_SAME,)),
    Template("copy", "ANNA sees a HORSE . the HORSE is BIG .", (_SAME,)),
    Template("binding", _TWO + "the BALL is RED .", (_RED,)),
    Template("binding", _TWO + "the HAT is BLUE .", (_BLUE,)),
    Template("binding", _TWO + "SHE likes the RED BALL .", (_RED, _BALL, _SHE)),
    Template("binding", _TWO + "SHE likes the BLUE HAT .", (_BLUE, _HAT, _SHE)),
    Template("binding", _TWO + "what is RED ? the BALL .", (_BALL,)),
    Template("binding", _TWO + "what is BLUE ? the HAT .", (_HAT,)),
    Template(
        "order",
        "the HORSE CHASED the BIRD . the BIRD ran away . the HORSE was tired .",
        (_BIRD, _HORSE),
    ),
    Template(
        "order",
        "the HORSE CHASED the BIRD . the HORSE was tired . the BIRD ran away .",
        (_BIRD, _HORSE),
    ),
    Template(
        "order", "the BIRD was CHASED by the HORSE . the BIRD ran away .", (_BIRD,)
    ),
    Template(
        "order", "the BIRD was CHASED by the HORSE . the HORSE was tired .", (_HORSE,)
    ),
    Template(
        "order", "the HORSE CHASED the BIRD . who ran away ? the BIRD .", (_BIRD,)
    ),
    Template(
        "activity",
        "ANNA is PLAYING in the GARDEN . the GARDEN is BIG . SHE likes PLAYING .",
        (_SHE,),
    ),
    Template(
        "activity",
        "ANNA is PLAYING SLOWLY . SHE likes PLAYING in the GARDEN .",
        (_SHE,),
    ),
    Template(
        "need", "ANNA was HUNGRY . SHE ATE the BREAD . the BREAD was GOOD .", (_SHE,)
    ),
)

# The probability of each family; the templates of a family are equally likely.
MIX = {
    "agreement": 0.12,
    "pronoun": 0.08,
    "copy": 0.20,
    "binding": 0.34,
    "order": 0.16,
    "activity": 0.05,
    "need": 0.05,
}
