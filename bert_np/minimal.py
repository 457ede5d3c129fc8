"""BERT on one page: no checks, no trace, no dropout, GELU in its erf form."""

import math

import numpy as np

from bert_np.functional import erf  # NumPy has none


def bert(input_ids, segment_ids, attention_mask, params, config):
    """Return (last_hidden_state, pooler_output, attention_probs), as bert does."""
    table, eps = params["embeddings"], config.layer_norm_eps
    position = table["position"][: input_ids.shape[1]]
    x = table["word"][input_ids] + position + table["segment"][segment_ids]
    x, attention_probs = layer_norm(x, **table["norm"], eps=eps), []
    for layer in params["layers"]:
        x, probs = encoder_layer(x, **layer, visible=attention_mask == 1, config=config)
        attention_probs.append(probs)
    return x, np.tanh(linear(x[:, 0], **params["pooler"])), attention_probs


def encoder_layer(x, attention, attention_norm, ffn, ffn_norm, visible, config):
    attended, probs = self_attention(x, **attention, visible=visible, config=config)
    x = layer_norm(x + attended, **attention_norm, eps=config.layer_norm_eps)
    thought = linear(gelu(linear(x, **ffn["inner"])), **ffn["outer"])
    return layer_norm(x + thought, **ffn_norm, eps=config.layer_norm_eps), probs


def self_attention(x, query, key, value, output, visible, config):
    (B, T, H), A = x.shape, config.num_attention_heads
    maps = (linear(x, **params) for params in (query, key, value))
    q, k, v = (y.reshape(B, T, A, H // A).swapaxes(1, 2) for y in maps)  # (B, A, T, D)
    scores = q @ k.swapaxes(2, 3) / math.sqrt(H // A)  # (B, A, Tq, Tk)
    lowest = np.finfo(scores.dtype).min
    probs = softmax(np.where(visible[:, None, None, :], scores, lowest))
    context = (probs @ v).swapaxes(1, 2).reshape(B, T, H)
    return linear(context, **output), probs


def linear(x, W, b):
    return x @ W + b


def softmax(x):
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def gelu(x):
    return x * ((1 + erf(x / math.sqrt(2))) / 2)


def layer_norm(x, gamma, beta, eps):
    x = x - x.mean(axis=-1, keepdims=True)
    variance = (x * x).mean(axis=-1, keepdims=True)
    return gamma * x / np.sqrt(variance + eps) + beta
