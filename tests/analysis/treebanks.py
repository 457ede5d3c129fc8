"""What the tests of syntax share: a small model, three parsed sentences."""

from oracle import CONFIG, random_params

from bert_np.analysis import Sentence
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer

PIECES = "the cat dog ##s saw chase ##d a big old . quick ##ly it he ##n"
TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, *PIECES.split()])
PARAMS = random_params()
MODEL = PARAMS, CONFIG, TOKENIZER


def parsed(text, source="n1"):
    """A Sentence of "word/TAG/head/relation ...", the heads counted from 0."""
    words, tags, heads, relations = zip(*(part.split("/") for part in text.split()))
    return Sentence(words, tags, tuple(map(int, heads)), relations, source)


SENTENCES = [
    parsed(
        "the/DET/2/det big/ADJ/2/amod cats/NOUN/3/nsubj saw/VERB/-1/root "
        "the/DET/5/det dogs/NOUN/3/obj ./PUNCT/3/punct"
    ),
    parsed(
        "quickly/ADV/3/advmod a/DET/2/det dog/NOUN/3/nsubj chased/VERB/-1/root "
        "the/DET/6/det old/ADJ/6/amod cat/NOUN/3/obj"
    ),
    parsed(
        "the/DET/1/det dogs/NOUN/5/nsubj:pass he/PRON/3/nsubj saw/VERB/1/acl "
        "it/PRON/5/expl chased/VERB/-1/root ./PUNCT/5/punct"
    ),
]
