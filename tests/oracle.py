"""BERT in scalar loops, straight from the equations: what the tests trust.

``forward`` gives every stage of the model and its heads under the dotted
path that it has in the trace of ``bert_np.bert``. It computes with Python
floats and lists alone. Below it stand the small model and batch that the
tests share: all sizes differ, so that exchanged axes cannot pass.
"""

import math
import sys

import numpy as np

from bert_np import BertConfig, parameter_shapes
from bert_np.tree import map_leaves

LOWEST = -sys.float_info.max  # what a masked score is set to


def linear(x, W, b):
    return [sum(x[i] * W[i][o] for i in range(len(x))) + b[o] for o in range(len(b))]


def layer_norm(x, gamma, beta, eps):
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    return [
        gamma[i] * (x[i] - mean) / math.sqrt(variance + eps) + beta[i]
        for i in range(len(x))
    ]


def softmax(x, visible):
    """The probabilities of one row; uniform if nothing is visible."""
    if not any(visible):
        return [1 / len(x) for _ in x]
    top = max(x[s] for s in range(len(x)) if visible[s])
    powers = [math.exp(x[s] - top) if visible[s] else 0.0 for s in range(len(x))]
    total = sum(powers)
    return [power / total for power in powers]


def gelu(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def relu(x):
    return x if x > 0 else 0.0


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_tanh, "relu": relu}


def add(x, y):
    return [x[i] + y[i] for i in range(len(x))]


def heads_of(vectors, num_heads):
    """(T, H) as (A, T, D): head a has the a-th slice of each vector."""
    D = len(vectors[0]) // num_heads
    return [[x[a * D : (a + 1) * D] for x in vectors] for a in range(num_heads)]


def embed(ids, segment_ids, params, config):
    word = [params["word"][i] for i in ids]
    position = [params["position"][t] for t in range(len(ids))]
    segment = [params["segment"][s] for s in segment_ids]
    total = [add(add(word[t], position[t]), segment[t]) for t in range(len(ids))]
    norm = [layer_norm(x, **params["norm"], eps=config.layer_norm_eps) for x in total]
    return {
        "word": word,
        "position": position,
        "segment": segment,
        "sum": total,
        "norm": norm,
        "output": norm,
    }


def attention(x, visible, params, config):
    A, D, T = config.num_attention_heads, config.head_size, len(x)
    q, k, v = (
        heads_of([linear(row, **params[name]) for row in x], A)
        for name in ("query", "key", "value")
    )
    scores = [
        [
            [
                sum(q[a][t][d] * k[a][s][d] for d in range(D)) / math.sqrt(D)
                for s in range(T)
            ]
            for t in range(T)
        ]
        for a in range(A)
    ]
    masked = [
        [
            [score if seen else LOWEST for score, seen in zip(row, visible)]
            for row in head
        ]
        for head in scores
    ]
    probs = [[softmax(row, visible) for row in head] for head in scores]
    context = [
        [
            sum(probs[a][t][s] * v[a][s][d] for s in range(T))
            for a in range(A)
            for d in range(D)
        ]
        for t in range(T)
    ]
    output = [linear(row, **params["output"]) for row in context]
    return {
        "q": q,
        "k": k,
        "v": v,
        "scores": scores,
        "masked_scores": masked,
        "probs": probs,
        "context": context,
        "output": output,
    }


def add_and_norm(x, update, params, config):
    residual = [add(x[t], update[t]) for t in range(len(x))]
    eps = config.layer_norm_eps
    output = [layer_norm(row, **params, eps=eps) for row in residual]
    return {"residual": residual, "output": output}


def feed_forward(x, params, config):
    activation = ACTIVATIONS[config.hidden_act]
    inner = [linear(row, **params["inner"]) for row in x]
    activated = [[activation(value) for value in row] for row in inner]
    outer = [linear(row, **params["outer"]) for row in activated]
    return {"inner": inner, "activated": activated, "outer": outer}


def encoder_layer(x, visible, params, config):
    stages = {}
    stages["attention"] = attention(x, visible, params["attention"], config)
    stages["attention_norm"] = add_and_norm(
        x, stages["attention"]["output"], params["attention_norm"], config
    )
    x = stages["attention_norm"]["output"]
    stages["ffn"] = feed_forward(x, params["ffn"], config)
    stages["ffn_norm"] = add_and_norm(
        x, stages["ffn"]["outer"], params["ffn_norm"], config
    )
    stages["output"] = stages["ffn_norm"]["output"]
    return stages


def masked_lm(x, params, config):
    mlm, word = params["mlm"], params["embeddings"]["word"]
    activation = ACTIVATIONS[config.hidden_act]
    transform = [linear(row, **mlm["transform"]) for row in x]
    activated = [[activation(value) for value in row] for row in transform]
    eps = config.layer_norm_eps
    norm = [layer_norm(row, **mlm["norm"], eps=eps) for row in activated]
    logits = [
        [
            sum(row[i] * word[v][i] for i in range(len(row))) + mlm["bias"][v]
            for v in range(len(word))
        ]
        for row in norm
    ]
    return {
        "transform": transform,
        "activated": activated,
        "norm": norm,
        "logits": logits,
    }


def one_sequence(ids, segment_ids, visible, params, config):
    """The stages of one sequence, nested like the trace."""
    embeddings = embed(ids, segment_ids, params["embeddings"], config)
    layers, x = [], embeddings["output"]
    for layer_params in params["layers"]:
        layers.append(encoder_layer(x, visible, layer_params, config))
        x = layers[-1]["output"]
    dense = linear(x[0], **params["pooler"])
    pooled = [math.tanh(value) for value in dense]
    stages = {
        "embeddings": embeddings,
        "layers": layers,
        "pooler": {"dense": dense, "output": pooled},
        "mlm": masked_lm(x, params, config),
        "nsp": {"logits": linear(pooled, **params["nsp"])},
    }
    return stages | task_heads(x, pooled, params)


def task_heads(x, pooled, params):
    """The stages of the heads that are added for a task, if there are any."""
    stages = {}
    if "sequence" in params:
        stages["sequence"] = {"logits": linear(pooled, **params["sequence"])}
    if "token" in params:
        stages["token"] = {"logits": [linear(row, **params["token"]) for row in x]}
    if "span" in params:
        stages["span"] = {"logits": [linear(row, **params["span"]) for row in x]}
    return stages


def flatten(stages, path=""):
    """{"layers.0.attention.q": ...} of the nested stages."""
    if isinstance(stages, list) and path.endswith("layers"):
        stages = {str(i): layer for i, layer in enumerate(stages)}
    if not isinstance(stages, dict):
        return {path: stages}
    flat = {}
    for name, part in stages.items():
        flat |= flatten(part, f"{path}.{name}" if path else name)
    return flat


def forward(input_ids, segment_ids, attention_mask, params, config):
    """Every stage as {dotted path: float64 array}, batch first."""
    params = map_leaves(lambda path, array: array.tolist(), params)
    rows = [
        flatten(one_sequence(*row, params, config))
        for row in zip(input_ids, segment_ids, attention_mask)
    ]
    stages = {path: np.array([row[path] for row in rows]) for path in rows[0]}
    stages["embeddings.position"] = stages["embeddings.position"][0]  # (T, H)
    return stages


CONFIG = BertConfig(
    vocab_size=23,
    hidden_size=21,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=11,
    max_position_embeddings=17,
    type_vocab_size=2,
    labels=("w", "x", "y", "z"),
)
INPUT_IDS = np.array([[4, 9, 22, 7, 1], [13, 2, 9, 0, 0]])  # (B, T); 0 is padding
SEGMENT_IDS = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 1]])
for array in (INPUT_IDS, SEGMENT_IDS):
    array.flags.writeable = False


def random_params(config=CONFIG, dtype=np.float64, spread=0.3, seed=1, heads=True):
    """Read-only parameters with heads, far enough from 0 and 1 that a
    mistake shows."""
    rng = np.random.default_rng(seed)

    def draw(path, shape):
        center = 1.0 if path.endswith("gamma") else 0.0
        array = rng.normal(center, spread, shape).astype(dtype)
        array.flags.writeable = False
        return array

    return map_leaves(draw, parameter_shapes(config, heads))
