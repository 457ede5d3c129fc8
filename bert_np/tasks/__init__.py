"""From text to answers, with one function for each task."""

from bert_np.tasks.answers import Answer, answer
from bert_np.tasks.labels import Span, Tagged, classify, tag
from bert_np.tasks.pretraining import fill_mask, next_sentence
from bert_np.tasks.sentences import Found, embed_sentences, search

__all__ = [
    "Answer",
    "Found",
    "Span",
    "Tagged",
    "answer",
    "classify",
    "embed_sentences",
    "fill_mask",
    "next_sentence",
    "search",
    "tag",
]
