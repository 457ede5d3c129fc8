"""Exercises of chapter 07: parameters, stack, pooler, and the lab."""

from dataclasses import replace

import numpy as np

import bert_np
from bert_np.config import BertConfig
from bert_np.course.exercise import Exercise, Mistake, mistakes
from bert_np.tree import map_leaves

CONFIG = BertConfig(
    vocab_size=5,
    hidden_size=4,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=6,
    max_position_embeddings=4,
)
WAVE = np.sin(np.arange(4)[:, None] * 3.0 + np.arange(6) * 2.0)  # (4, 6)


def _layer(shift):
    """Literal parameters of one layer, another for each shift."""
    W, flat = WAVE[:, :4] + shift, np.array([0.1, -0.2, 0.3, shift])
    linear = {"W": W, "b": flat}
    norm = {"gamma": np.array([1.0, 2.0, 1.0, 0.5]), "beta": flat}
    return {
        "attention": {
            "query": {"W": W.T, "b": flat},
            "key": linear,
            "value": {"W": -W, "b": flat},
            "output": linear,
        },
        "attention_norm": norm,
        "ffn": {
            "inner": {"W": WAVE + shift, "b": np.zeros(6)},
            "outer": {"W": WAVE.T - shift, "b": flat},
        },
        "ffn_norm": norm,
    }


LAYERS = [_layer(shift) for shift in (0.0, 0.5, -1.0)]
X = np.array([[[1.0, -1, 1, -1], [2, 0, -1, -1], [0, 1, 0, -1]]])  # (B, T, H)
MASK = np.array([[1, 1, 0]])
CLS = np.array(
    [
        [[0.5, -1, 0, 1], [1, 1, 0, 0], [0, 2, 0, 0]],
        [[0.0, 0, 1, 2], [3, 0, 0, 0], [0, 0, 0, -1]],
    ]
)  # (B, T, H)
POOL_W = np.array([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 2, 0], [0, -1, 0, 0.5]])
POOL_B = np.array([0.0, 0.5, 0.0, -0.5])


# ------------------------------------------------------------------- count


def my_count(V, P, S, H, F, L, A):
    embeddings = (V + P + S) * H + 2 * H
    attention = 4 * (H * H + H)
    feed_forward = H * F + F + F * H + H
    layer = attention + 2 * H + feed_forward + 2 * H
    pooler = H * H + H
    return embeddings + L * layer + pooler


def _layers_alone(V, P, S, H, F, L, A):
    """that is the layers alone, 85,054,464 for BERT-Base: embeddings and
    pooler are missing
    """
    return L * (4 * (H * H + H) + 2 * H * F + F + 5 * H)


def _no_pooler(V, P, S, H, F, L, A):
    """the pooler is missing: H·H + H"""
    return my_count(V, P, S, H, F, L, A) - H * H - H


def _no_biases(V, P, S, H, F, L, A):
    """the biases are missing: a linear map from I to O numbers has I·O + O"""
    return my_count(V, P, S, H, F, L, A) - L * (5 * H + F) - H


def _no_norms(V, P, S, H, F, L, A):
    """the norms are missing: each has a gamma and a beta, 2·H"""
    return my_count(V, P, S, H, F, L, A) - 2 * H - 4 * L * H


def _one_norm(V, P, S, H, F, L, A):
    """a layer has two norms, one after each residual sum"""
    return my_count(V, P, S, H, F, L, A) - 2 * L * H


def _no_norm_of_embeddings(V, P, S, H, F, L, A):
    """the embeddings have a norm too: 2·H"""
    return my_count(V, P, S, H, F, L, A) - 2 * H


def _for_each_head(V, P, S, H, F, L, A):
    """the heads share the H numbers: A does not change the count"""
    return my_count(V, P, S, H, F, L, A) + L * (A - 1) * 4 * (H * H + H)


def _three_maps(V, P, S, H, F, L, A):
    """attention has four linear maps: query, key, value and output"""
    return my_count(V, P, S, H, F, L, A) - L * (H * H + H)


def _two_segments(V, P, S, H, F, L, A):
    """you counted two segments: S is an argument"""
    return my_count(V, P, 2, H, F, L, A)


def _four_times_H(V, P, S, H, F, L, A):
    """you took 4·H for the feed-forward size: F is an argument"""
    return my_count(V, P, S, H, 4 * H, L, A)


def _word_table_twice(V, P, S, H, F, L, A):
    """you counted the word table twice: the heads are not counted, and their
    largest matrix is the same table
    """
    return my_count(2 * V, P, S, H, F, L, A)


def _draw_sizes(rng):
    """Seven sizes; only H depends on another: A divides it."""
    V, P, S, D, F, L, A = rng.integers(1, [99, 20, 5, 9, 50, 6, 5]).tolist()
    return V, P, S, D * A, F, L, A


# ------------------------------------------------------------------- stack


def my_encoder(x, layers, attention_mask, config):
    states = [x]
    for params in layers:
        x, probs = bert_np.encoder_layer(x, params, attention_mask, config)
        states.append(x)
    return np.stack(states)


def _all_read_the_embeddings(x, layers, attention_mask, config):
    """each of your layers reads the embeddings: hand x on from layer to
    layer
    """
    states = [x] + [
        bert_np.encoder_layer(x, params, attention_mask, config)[0] for params in layers
    ]
    return np.stack(states)


def _first_layer_again(x, layers, attention_mask, config):
    """you run the first layer's parameters L times: each layer has its own"""
    return my_encoder(x, [layers[0]] * len(layers), attention_mask, config)


def _from_the_top(x, layers, attention_mask, config):
    """the layers run in the wrong order: layers[0] is first"""
    return my_encoder(x, layers[::-1], attention_mask, config)


def _without_the_embeddings(x, layers, attention_mask, config):
    """L + 1 states: the embeddings x are the first"""
    return my_encoder(x, layers, attention_mask, config)[1:]


def _without_the_last(x, layers, attention_mask, config):
    """L + 1 states: the output of the last layer is missing; append after
    each layer
    """
    return my_encoder(x, layers, attention_mask, config)[:-1]


def _only_the_last(x, layers, attention_mask, config):
    """that is the last state alone: return all L + 1"""
    return my_encoder(x, layers, attention_mask, config)[-1]


def _without_the_mask(x, layers, attention_mask, config):
    """the attention mask is not handed on to the layers"""
    return my_encoder(x, layers, np.ones_like(attention_mask), config)


def _as_config_says(x, layers, attention_mask, config):
    """you ran config.num_hidden_layers layers: L is the length of the list"""
    return my_encoder(x, layers[: config.num_hidden_layers], attention_mask, config)


def _first_mask(x, layers, attention_mask, config):
    """each sequence has its own row of the attention mask"""
    masks = np.broadcast_to(attention_mask[:1], attention_mask.shape)
    return my_encoder(x, layers, masks, config)


def _mask_once(x, layers, attention_mask, config):
    """every layer needs the attention mask, not only the first"""
    first = my_encoder(x, layers[:1], attention_mask, config)
    rest = my_encoder(first[1], layers[1:], np.ones_like(attention_mask), config)
    return np.concatenate([first[:1], rest])


def _first_sequence_alone(x, layers, attention_mask, config):
    """you ran only the first sequence: there are B of them"""
    return my_encoder(x[:1], layers, attention_mask[:1], config)


def _draw_stack(rng):
    """Some layers whose parameters are all at work, and their input."""
    B, T, L = rng.integers(1, 4, 3)
    wide = replace(CONFIG, initializer_range=0.5)
    layers = bert_np.init_params(wide, rng)["layers"][:L]
    layers = map_leaves(lambda _, a: a + rng.normal(0, 0.3, a.shape), layers)
    mask = (rng.random((B, T)) < 0.7).astype(int)
    return rng.normal(size=(B, T, 4)), layers, mask, CONFIG


# ------------------------------------------------------------------ pooler


def my_pool(x, W, b):
    return np.tanh(x[:, 0] @ W + b)


def _cls_row(x, W, b):
    """that is the [CLS] row itself: the pooler maps it by W and b, then
    tanh
    """
    return x[:, 0]


def _no_tanh(x, W, b):
    """the tanh is missing"""
    return x[:, 0] @ W + b


def _mean_of_tokens(x, W, b):
    """you pooled the mean of the tokens: BERT's pooler reads the first
    token alone
    """
    return np.tanh(x.mean(axis=1) @ W + b)


def _first_sequence(x, W, b):
    """x[0] is all tokens of the first sequence; you need the first token
    of all sequences, x[:, 0]
    """
    return np.tanh(x[0] @ W + b)


def _all_tokens(x, W, b):
    """you mapped every token: only [CLS], x[:, 0]"""
    return np.tanh(x @ W + b)


def _transposed(x, W, b):
    """W is (in, out): x @ W, not x @ W.T"""
    return np.tanh(x[:, 0] @ W.T + b)


def _without_the_batch(x, W, b):
    """the axis of the sequences is lost where B = 1: the result is (1, H)"""
    return my_pool(x, W, b).squeeze()


def _last_token(x, W, b):
    """you read the last token: [CLS] is the first, x[:, 0]"""
    return np.tanh(x[:, -1] @ W + b)


def _no_bias(x, W, b):
    """the bias b is missing"""
    return np.tanh(x[:, 0] @ W)


def _largest_of_tokens(x, W, b):
    """you pooled the largest numbers: BERT's pooler reads the first token
    alone
    """
    return np.tanh(x.max(axis=1) @ W + b)


def _draw_states(rng):
    """Hidden states of any size, and a pooler for them."""
    B, T, H = rng.integers(1, 6, 3)
    return tuple(rng.normal(size=shape) for shape in ((B, T, H), (H, H), H))


# --------------------------------------------------------------------- lab

LAB = (
    "Run patient {0} and compare it with the healthy run. Set `patient_{0}` to the "
    "first stage that is wrong, as `compare` writes it, such as "
    '"layers.1.ffn.inner". Then say in one sentence what is broken{1}.'
)
LOOK = (
    "`bert_np.compare(healthy, broken_bert({}, ids, tiny, config))` compares the two "
    "traces; `.stage` is the name."
)


def _patient(number, minutes, stage, hint, why, mistakes, remark=""):
    """The exercise of one broken BERT of `bert_np.course.lab`."""
    return Exercise(
        id=f"07.patient_{number}",
        title=f"Patient {number}",
        level=2 if number < 4 else 3,
        minutes=minutes,
        task=LAB.format(number, remark),
        hints=(LOOK.format(number), hint),
        solution=stage,
        name=f"patient_{number}",
        why=why,
        mistakes=(
            *(Mistake(*mistake) for mistake in mistakes),
            Mistake(
                stage.replace("layers.0", "layers.1"),
                "layer 1 is wrong too, for it reads a wrong layer 0: take the first",
            ),
        ),
    )


EXERCISES = (
    Exercise(
        id="07.pool",
        title="The pooler",
        level=1,
        minutes=4,
        task="Write `my_pool(x, W, b)` for x of shape (B, T, H): the pooled vectors, "
        "of shape (B, H).",
        hints=(
            "Only one of the T rows of each sequence is read. Which is `[CLS]`?",
            "Row 0 of each sequence is x[:, 0], of shape (B, H). Then the linear map, "
            "then np.tanh.",
        ),
        solution=my_pool,
        mistakes=mistakes(
            _cls_row,
            _no_tanh,
            _mean_of_tokens,
            _first_sequence,
            _all_tokens,
            _transposed,
            _without_the_batch,
            _last_token,
            _no_bias,
            _largest_of_tokens,
        ),
        cases=(
            (CLS, POOL_W, POOL_B),
            (-CLS[:, :2], POOL_W, POOL_B),
            (CLS[1:], POOL_W, POOL_B),
            (CLS[:, 1:2, 1:], POOL_W[1:, 1:] + 0.5, POOL_B[1:]),
        ),
        draw=_draw_states,
    ),
    Exercise(
        id="07.encoder",
        title="Stack the layers",
        level=2,
        minutes=6,
        task="Write `my_encoder(x, layers, attention_mask, config)` for x of shape "
        "(B, T, H) and a list of L layers' parameters. Return all L + 1 hidden "
        "states as one array (L + 1, B, T, H), x first. You may call "
        "`bert_np.encoder_layer`, which returns two things.",
        hints=(
            "A loop over the layers. What must happen to x in each round, so that the "
            "next layer reads what this one wrote?",
            "states = [x]; in the loop: x, probs = bert_np.encoder_layer(x, params, "
            "attention_mask, config), then states.append(x); at the end np.stack.",
        ),
        solution=my_encoder,
        mistakes=mistakes(
            _all_read_the_embeddings,
            _first_layer_again,
            _from_the_top,
            _without_the_embeddings,
            _without_the_last,
            _only_the_last,
            _without_the_mask,
            _as_config_says,
            _first_mask,
            _mask_once,
            _first_sequence_alone,
        ),
        cases=(
            (X, LAYERS, MASK, CONFIG),
            (-X, LAYERS[1:], MASK, CONFIG),
            (CLS, LAYERS[2:], np.array([[1, 0, 1], [1, 1, 0]]), CONFIG),
            (CLS[:, :1] * 2, LAYERS + LAYERS[:1], np.ones((2, 1), int), CONFIG),
        ),
        draw=_draw_stack,
    ),
    Exercise(
        id="07.count",
        title="Count the parameters",
        level=2,
        minutes=8,
        task="Write `my_count(V, P, S, H, F, L, A)`: the number of parameters of a "
        "BERT with embeddings, L layers and pooler, without the pre-training "
        "heads. V words, P positions, S segments, hidden size H, feed-forward "
        "size F, A attention heads.",
        hints=(
            "Embeddings, one layer, pooler. A linear map from I to O numbers has "
            "I·O + O, a norm over H numbers 2·H. One of the seven letters is not "
            "needed.",
            "Embeddings (V + P + S)·H + 2·H. A layer: 4·(H·H + H) for attention, "
            "H·F + F + F·H + H for feed-forward, two norms 4·H. Pooler H·H + H.",
        ),
        solution=my_count,
        mistakes=mistakes(
            _layers_alone,
            _no_pooler,
            _no_biases,
            _no_norms,
            _one_norm,
            _no_norm_of_embeddings,
            _for_each_head,
            _three_maps,
            _two_segments,
            _four_times_H,
            _word_table_twice,
        ),
        cases=(
            (13, 16, 2, 4, 8, 2, 2),
            (64, 24, 2, 32, 64, 2, 4),
            (30522, 512, 2, 768, 3072, 12, 12),
            (7, 11, 3, 5, 13, 1, 1),
        ),
        draw=_draw_sizes,
    ),
    _patient(
        1,
        3,
        "layers.0.attention.probs",
        "The scores are still right, and what is made of them is not. Sum the rows and "
        "the columns of its probs, as in chapter 03.",
        "Its softmax runs over the queries: the columns of its probs sum to 1.",
        (
            (
                "layers.0.attention.context",
                "the context is wrong because its probs are: look one stage earlier",
            ),
            (
                "layers.0.attention.masked_scores",
                "the masked scores of the two runs agree: the fault comes after them",
            ),
            (
                "layers.0.attention",
                'name the stage in it, such as "layers.0.attention.q"',
            ),
        ),
    ),
    _patient(
        2,
        3,
        "layers.0.ffn.activated",
        "What goes into GELU agrees, what comes out does not, by less than 0.001. "
        "Chapter 06 had two forms of one function.",
        "Its GELU has the tanh form: what goes in agrees, what comes out is off by "
        "less than 0.001.",
        (
            (
                "layers.0.ffn.outer",
                "outer is wrong because it is computed from a wrong "
                "stage: look one stage earlier",
            ),
            ("layers.0.ffn.inner", "inner, before GELU, agrees in both runs"),
            (
                "layers.0.output",
                "the layer's output is wrong because its feed-forward is: look earlier",
            ),
        ),
    ),
    _patient(
        3,
        3,
        "layers.0.attention.context",
        "The probs and the values are right, each head's product too. Then A heads of "
        "D numbers become one row of H again (chapter 05).",
        "Its heads are merged by a reshape without the transpose, which mixes the "
        "tokens.",
        (
            (
                "layers.0.attention.output",
                "the output map is right; it gets a wrong context",
            ),
            (
                "layers.0.attention.probs",
                "the probs agree in both runs: look one stage later",
            ),
            ("layers.0.attention.v", "the values agree in both runs"),
        ),
    ),
    _patient(
        4,
        4,
        "layers.0.attention.masked_scores",
        "Run it on the first sequence alone, which has no padding: there it is right.",
        "It masks nothing, and one sentence at a time has no padding to show it.",
        (
            (
                "layers.0.attention.probs",
                "the softmax is right; it gets wrong scores: look one stage earlier",
            ),
            (
                "layers.0.attention.scores",
                "the scores before the mask agree in both runs",
            ),
        ),
        remark=", and why nobody notices with one sentence at a time",
    ),
    _patient(
        5,
        4,
        "layers.0.attention_norm.residual",
        "`residual` is the sum x + update. Subtract attention's output from each of "
        "the two residuals: what is left?",
        "It adds no x after attention: its residual is the update alone.",
        (
            (
                "layers.0.attention_norm.output",
                "the norm is right; it gets a wrong sum: look one stage earlier",
            ),
            (
                "layers.0.attention.output",
                "attention's output agrees in both runs: the fault comes after it",
            ),
            (
                "layers.0.output",
                "the layer's output is wrong because an earlier stage is: look earlier",
            ),
        ),
        remark="; `compare` gives no hint for this one",
    ),
)
