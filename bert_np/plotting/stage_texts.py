"""What a student reads about each stage of the forward pass."""

import re
from typing import NamedTuple

# First its path in the trace, without the number of the layer, with the axes
# of the array and the name of the stage. Then a sentence and an equation.
STAGES = """
input_ids (T) Ids
    Each token has a number, its place in the vocabulary.
    id_t = place of token t in the vocabulary
embeddings.word (B T H) Word vectors
    Each token looks up its row in the word table.
    word_t = E_word[id_t]
embeddings.position (T H) Position vectors
    Each position has one vector, the same in every sentence.
    position_t = E_position[t]
embeddings.segment (B T H) Segment vectors
    One vector marks the tokens of the first text, another those of the second.
    segment_t = E_segment[s_t]
embeddings.sum (B T H) Sum of the three
    Which token, where, and in which text: one vector per token.
    sum = word + position + segment
embeddings.norm (B T H) Normalised sum
    Every vector is brought to the same scale.
    norm = γ (sum − mean) / √(variance + ε) + β
embeddings.dropout_mask layers.*_norm.dropout_mask (B T H) Dropout
    In training, numbers chosen at random are set to 0 and the others scaled up.
    mask = 0 or 1 / (1 − rate)
embeddings.output (B T H) Input of layer 0
    This is what the first layer receives.
    x = norm, times the mask if dropout is on
layers.attention.q (B A T D) Queries
    A token's query says what the token is looking for.
    q = x W_q + b_q, cut into A heads
layers.attention.k (B A T D) Keys
    A token's key is what the queries are compared with.
    k = x W_k + b_k, cut into A heads
layers.attention.v (B A T D) Values
    A token's value is what it hands over to the tokens that attend to it.
    v = x W_v + b_v, cut into A heads
layers.attention.scores (B A Tq Tk) Scores
    How well does each query match each key?
    scores = q kᵀ / √D
layers.attention.masked_scores (B A Tq Tk) Masked scores
    Padding gets the lowest possible score, so no token attends to it.
    scores if the key is a real token, else the lowest number
layers.attention.probs (B A Tq Tk) Attention probabilities
    Every token divides its attention among the keys: each row sums to 1.
    probs = softmax(masked scores), along Tk
layers.attention.dropout_mask (B A Tq Tk) Dropout
    In training, numbers chosen at random are set to 0 and the others scaled up.
    mask = 0 or 1 / (1 − rate)
layers.attention.context (B T H) Context
    Every token averages the values, weighted by its row of probabilities.
    context = probs v, the A heads side by side: A · D = H
layers.attention.output (B T H) Attention output
    One more linear map mixes what the heads have found.
    output = context W_o + b_o
layers.attention_norm.residual (B T H) Residual sum
    The attention output is added to the vector that the layer received.
    residual = x + output
layers.*_norm.output (B T H) Normalised
    Every vector is brought to the same scale.
    x = γ (residual − mean) / √(variance + ε) + β
layers.ffn.inner (B T F) FFN, widened
    Each token's vector, by itself, is compared with F learned directions.
    inner = x W_1 + b_1
layers.ffn.activated (B T F) FFN, activated
    Large positive numbers pass, negative ones nearly vanish.
    activated = GELU(inner), or the model's other activation
layers.ffn.outer (B T H) FFN, narrowed
    The F results are turned into a change to the vector, H numbers again.
    outer = activated W_2 + b_2
layers.ffn_norm.residual (B T H) Residual sum
    The change is added to the vector that the FFN received.
    residual = x + outer
layers.output (B T H) Layer output
    This goes on to the next layer; after the last, it is the encoder's result.
    x
pooler.dense (B H) Pooler, dense
    The vector of the first token goes through one more linear map.
    dense = x_0 W + b
pooler.output (B H) Pooler output
    One vector for the sentence, every number from −1 to 1.
    pooled = tanh(dense)
mlm.transform (B T H) MLM, dense
    Each vector is prepared for comparison with the word vectors.
    transform = x W + b
mlm.activated (B T H) MLM, activated
    Large positive numbers pass, negative ones nearly vanish.
    activated = GELU(transform), or the model's other activation
mlm.norm (B T H) MLM, normalised
    Every vector is brought to the same scale.
    norm = γ (activated − mean) / √(variance + ε) + β
mlm.logits (B T V) MLM logits
    Every word of the vocabulary gets a score at every position.
    logits = norm E_wordᵀ + bias
nsp.logits (B 2) NSP logits
    Does the second text follow the first?
    logits = pooled W + b; column 0: it does, column 1: it does not
sequence.logits (B K) Label logits
    Every label gets a score for the text as a whole.
    logits = pooled W + b
token.logits (B T K) Label logits
    Every label gets a score at every position.
    logits = x W + b
span.logits (B T 2) Span logits
    Does the answer start here, and does it end here?
    logits = x W + b; column 0: start, column 1: end
"""

# A layer that is not shown in detail: one line.
FOLDED_NAME = "The whole layer"
# Beside the guesses after each layer.
LENS = (
    "The guesses are what the MLM head makes of these vectors. It was trained on the "
    "last layer's output only: on earlier layers they are the reading of an instrument "
    "(the logit lens), not the model's opinion."
)
FOLDED_SENTENCE = "The same stages with other parameters; layers={} shows them."
PARTS = {
    "input_ids": "Text",
    "embeddings": "Embeddings",
    "pooler": "Pooler",
    "mlm": "Masked-word head (MLM)",
    "nsp": "Next-sentence head (NSP)",
    "sequence": "Sequence head",
    "token": "Token head",
    "span": "Span head",
}


class StageText(NamedTuple):
    """The words for one stage; `axes` names the axes of its array."""

    name: str
    sentence: str
    equation: str
    axes: str


def read_stages(text):
    """Return {path: StageText}; a * stands for both parts of a layer."""
    lines = re.findall(r"^(\S.*) \((.*)\) (.*)\n +(.*)\n +(.*)$", text, re.MULTILINE)
    return {
        path.replace("*", part): StageText(name, sentence, equation, axes)
        for paths, axes, name, sentence, equation in lines
        for path in paths.split()
        for part in ("attention", "ffn")
    }


STAGE_TEXTS = read_stages(STAGES)
