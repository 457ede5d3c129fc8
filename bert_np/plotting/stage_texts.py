"""What a student reads about each stage of the forward pass."""

from typing import NamedTuple

NORM = "γ ({} − mean) / √(variance + ε) + β"
DROPOUT = "In training some numbers are set to 0 at random, the others grow to match."


class StageText(NamedTuple):
    """The words for one stage; `axes` names the axes of its array."""

    name: str
    sentence: str
    equation: str
    axes: str


# The key is the path in the trace, without the number of the layer.
STAGE_TEXTS = {
    "input_ids": StageText(
        "Ids",
        "Every token has a number, its place in the vocabulary.",
        "id_t = place of token t in the vocabulary",
        "T",
    ),
    "embeddings.word": StageText(
        "Word vectors",
        "Every token looks up its row in the table of words.",
        "word_t = E_word[id_t]",
        "B T H",
    ),
    "embeddings.position": StageText(
        "Position vectors",
        "Every place has a vector, the same in all sentences.",
        "position_t = E_position[t]",
        "T H",
    ),
    "embeddings.segment": StageText(
        "Segment vectors",
        "One vector marks the first text, another the second.",
        "segment_t = E_segment[s_t]",
        "B T H",
    ),
    "embeddings.sum": StageText(
        "Sum of the three",
        "What, where and in which text: one vector a token.",
        "sum = word + position + segment",
        "B T H",
    ),
    "embeddings.norm": StageText(
        "Normalised sum",
        "Every vector is brought to one scale.",
        "norm = " + NORM.format("sum"),
        "B T H",
    ),
    "embeddings.dropout_mask": StageText(
        "Dropout", DROPOUT, "mask = 0 or 1 / (1 − rate)", "B T H"
    ),
    "embeddings.output": StageText(
        "Input of layer 0",
        "This is what the first layer gets to see.",
        "x = norm, times the mask where dropout is on",
        "B T H",
    ),
    "layers.attention.q": StageText(
        "Queries",
        "Every token asks: whom do I take from?",
        "q = x W_q + b_q, cut into A heads",
        "B A T D",
    ),
    "layers.attention.k": StageText(
        "Keys",
        "Every token says what it can be found by.",
        "k = x W_k + b_k, cut into A heads",
        "B A T D",
    ),
    "layers.attention.v": StageText(
        "Values",
        "Every token holds ready what it hands over.",
        "v = x W_v + b_v, cut into A heads",
        "B A T D",
    ),
    "layers.attention.scores": StageText(
        "Scores",
        "How well does each query fit each key?",
        "scores = q kᵀ / √D",
        "B A Tq Tk",
    ),
    "layers.attention.masked_scores": StageText(
        "Masked scores",
        "Padding gets the lowest score there is: nobody looks at it.",
        "scores where the key is a real token, else the lowest number",
        "B A Tq Tk",
    ),
    "layers.attention.probs": StageText(
        "Attention probabilities",
        "Every token shares out its attention: each row sums to 1.",
        "probs = softmax(masked scores), along Tk",
        "B A Tq Tk",
    ),
    "layers.attention.dropout_mask": StageText(
        "Dropout", DROPOUT, "mask = 0 or 1 / (1 − rate)", "B A Tq Tk"
    ),
    "layers.attention.context": StageText(
        "Context",
        "Every token takes the values in the shares of its row.",
        "context = probs v, the A heads side by side: A · D = H",
        "B T H",
    ),
    "layers.attention.output": StageText(
        "Attention output",
        "One more linear map mixes what the heads have found.",
        "output = context W_o + b_o",
        "B T H",
    ),
    "layers.attention_norm.dropout_mask": StageText(
        "Dropout", DROPOUT, "mask = 0 or 1 / (1 − rate)", "B T H"
    ),
    "layers.attention_norm.residual": StageText(
        "Residual sum",
        "The token keeps what it was and adds what it took.",
        "residual = x + output",
        "B T H",
    ),
    "layers.attention_norm.output": StageText(
        "Normalised",
        "Every vector is brought to one scale.",
        "x = " + NORM.format("residual"),
        "B T H",
    ),
    "layers.ffn.inner": StageText(
        "FFN, widened",
        "Every token by itself is asked F questions.",
        "inner = x W_1 + b_1",
        "B T F",
    ),
    "layers.ffn.activated": StageText(
        "FFN, bent",
        "A clear yes passes, a no is nearly silenced.",
        "activated = GELU(inner), or the model's other activation",
        "B T F",
    ),
    "layers.ffn.outer": StageText(
        "FFN, narrowed",
        "The answers become a change of the vector.",
        "outer = activated W_2 + b_2",
        "B T H",
    ),
    "layers.ffn_norm.dropout_mask": StageText(
        "Dropout", DROPOUT, "mask = 0 or 1 / (1 − rate)", "B T H"
    ),
    "layers.ffn_norm.residual": StageText(
        "Residual sum",
        "The change is added to what was there.",
        "residual = x + outer",
        "B T H",
    ),
    "layers.ffn_norm.output": StageText(
        "Normalised",
        "Every vector is brought to one scale.",
        "x = " + NORM.format("residual"),
        "B T H",
    ),
    "layers.output": StageText(
        "Layer output", "This goes on to the next layer.", "x", "B T H"
    ),
    "pooler.dense": StageText(
        "Pooler, dense",
        "The vector of the first token is mapped once more.",
        "dense = x_0 W + b",
        "B H",
    ),
    "pooler.output": StageText(
        "Pooler output",
        "One vector for the sentence, every number from −1 to 1.",
        "pooled = tanh(dense)",
        "B H",
    ),
    "mlm.transform": StageText(
        "MLM, dense",
        "Every vector is made ready to be compared with words.",
        "transform = x W + b",
        "B T H",
    ),
    "mlm.activated": StageText(
        "MLM, bent",
        "Positive numbers pass, negative ones nearly vanish.",
        "activated = GELU(transform), or the model's other activation",
        "B T H",
    ),
    "mlm.norm": StageText(
        "MLM, normalised",
        "Every vector is brought to one scale.",
        "norm = " + NORM.format("activated"),
        "B T H",
    ),
    "mlm.logits": StageText(
        "MLM logits",
        "Every word of the vocabulary gets a score at every place.",
        "logits = norm E_wordᵀ + bias",
        "B T V",
    ),
    "nsp.logits": StageText(
        "NSP logits",
        "Does the second text follow the first?",
        "logits = pooled W + b; column 0: it does, column 1: it does not",
        "B 2",
    ),
}

# A layer that is not shown in detail: one line.
FOLDED_NAME = "All in one"
FOLDED_SENTENCE = "The same stages with parameters of its own; layers={} shows them."
PARTS = {
    "input_ids": "Text",
    "embeddings": "Embeddings",
    "pooler": "Pooler",
    "mlm": "Masked-word head (MLM)",
    "nsp": "Next-sentence head (NSP)",
}
