"""Exercises of chapter 06: GELU, feed-forward, residual and norm."""

import math

import numpy as np

import bert_np
from bert_np.course.exercise import Exercise, Mistake, mistakes

ROOT = math.sqrt(2)
X = np.array([[-ROOT, 0.0, 0.0, ROOT], [-1.0, 1, -1, 1], [0.0, ROOT, -ROOT, 0]])
W1 = np.hstack([np.eye(4), -np.eye(4)])  # (H, F)
W2 = np.array(
    [
        [1.0, 0, 2, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 0, -1],
        [0, 3, 1, 0],
    ]
)  # (F, H)
B1, B2 = np.linspace(-1, 1, 8), np.array([0.5, 0, -0.5, 0])
NORM = {"gamma": np.array([1.0, 2, 1, 1]), "beta": np.array([0.0, 0, 1, 0])}
PLAIN = {"gamma": np.ones(4), "beta": np.zeros(4)}
FFN = {"inner": {"W": W1, "b": B1}, "outer": {"W": W2, "b": B2}}
LAYER = {"attention_norm": NORM, "ffn": FFN, "ffn_norm": PLAIN}
UPDATE = np.array([[-1.0, 1, -1, 1], [0, 2, 0, 0], [3, 0, 0, 1]])


# -------------------------------------------------------------------- gelu


def my_gelu(x):
    phi = [(1 + math.erf(value / math.sqrt(2))) / 2 for value in x]
    return x * np.array(phi)


def _tanh_form(x):
    """that is the tanh form, off by up to 4.7e-4: use math.erf"""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _relu(x):
    """that is ReLU: GELU also lets a little of the negative values through"""
    return np.maximum(x, 0)


def _sigmoid_form(x):
    """that is the sigmoid form, x / (1 + exp(-1.702 x)), off by up to
    0.02: use math.erf
    """
    return x / (1 + np.exp(-1.702 * x))


def _probability_only(x):
    """that is the probability Φ(x): multiply it by x"""
    return np.array([(1 + math.erf(value / math.sqrt(2))) / 2 for value in x])


def _no_root(x):
    """divide by √2 inside erf"""
    return x * np.array([(1 + math.erf(value)) / 2 for value in x])


def _root_too_late(x):
    """√2 divides x inside erf, not the result of erf"""
    erf = np.array([math.erf(value) for value in x])
    return x * (1 + erf / math.sqrt(2)) / 2


def _draw_numbers(rng):
    """Some numbers near 0, some far from it."""
    return (rng.normal(size=rng.integers(1, 9)) * rng.choice([0.3, 2, 8]),)


# ------------------------------------------------------------ feed-forward


def my_feed_forward(x, W1, b1, W2, b2):
    inner = x @ W1 + b1
    phi = [[(1 + math.erf(value / math.sqrt(2))) / 2 for value in row] for row in inner]
    return inner * np.array(phi) @ W2 + b2


def _no_gelu(x, W1, b1, W2, b2):
    """the GELU is missing: two linear maps in a row are one linear map"""
    return (x @ W1 + b1) @ W2 + b2


def _relu_inside(x, W1, b1, W2, b2):
    """that is ReLU in place of GELU"""
    return np.maximum(x @ W1 + b1, 0) @ W2 + b2


def _gelu_late(x, W1, b1, W2, b2):
    """the GELU stands between the two maps, not after them"""
    return np.array([my_gelu(row) for row in _no_gelu(x, W1, b1, W2, b2)])


def _gelu_twice(x, W1, b1, W2, b2):
    """one GELU only, between the maps: nothing follows the second map"""
    return np.array([my_gelu(row) for row in my_feed_forward(x, W1, b1, W2, b2)])


def _with_residual(x, W1, b1, W2, b2):
    """you added x: the residual belongs to the layer, not to this function"""
    return x + my_feed_forward(x, W1, b1, W2, b2)


def _no_biases(x, W1, b1, W2, b2):
    """the biases are missing"""
    return my_feed_forward(x, W1, 0 * b1, W2, 0 * b2)


def _tanh_inside(x, W1, b1, W2, b2):
    """that is GELU's tanh form: BERT uses the form with erf"""
    return bert_np.gelu_tanh(x @ W1 + b1) @ W2 + b2


def _no_second_bias(x, W1, b1, W2, b2):
    """the second bias is missing"""
    return my_feed_forward(x, W1, b1, W2, 0 * b2)


def _bias_after_gelu(x, W1, b1, W2, b2):
    """b1 belongs to the first map, before the GELU"""
    return (bert_np.gelu(x @ W1) + b1) @ W2 + b2


def _draw_network(rng):
    """A feed-forward network of pairwise different sizes, and its input."""
    T, H, F = rng.permutation([1, 2, 3, 4, 5, 6])[:3]
    shapes = ((T, H), (H, F), F, (F, H), H)
    return tuple(rng.normal(size=shape) for shape in shapes)


# ------------------------------------------------------------------- layer


def my_layer(x, attended, params):
    x = bert_np.layer_norm(x + attended, **params["attention_norm"], eps=1e-12)
    inner = bert_np.linear(x, **params["ffn"]["inner"])
    thought = bert_np.linear(bert_np.gelu(inner), **params["ffn"]["outer"])
    return bert_np.layer_norm(x + thought, **params["ffn_norm"], eps=1e-12)


def _norm(x, params):
    return bert_np.layer_norm(x, **params, eps=1e-12)


def _think(x, params):
    inner = bert_np.linear(x, **params["inner"])
    return bert_np.linear(bert_np.gelu(inner), **params["outer"])


def _no_first_residual(x, attended, params):
    """the first residual is missing: x + attended"""
    x = _norm(attended, params["attention_norm"])
    return _norm(x + _think(x, params["ffn"]), params["ffn_norm"])


def _no_second_residual(x, attended, params):
    """the second residual is missing: x + feed-forward"""
    x = _norm(x + attended, params["attention_norm"])
    return _norm(_think(x, params["ffn"]), params["ffn_norm"])


def _old_x(x, attended, params):
    """the second sum takes the layer's input: it must take the x that the
    first norm gave
    """
    middle = _norm(x + attended, params["attention_norm"])
    return _norm(x + _think(middle, params["ffn"]), params["ffn_norm"])


def _pre_norm(x, attended, params):
    """that is pre-norm, as in GPT-2: BERT normalises after each sum"""
    x = x + attended
    return x + _think(_norm(x, params["ffn_norm"]), params["ffn"])


def _no_last_norm(x, attended, params):
    """the last norm is missing"""
    x = _norm(x + attended, params["attention_norm"])
    return x + _think(x, params["ffn"])


def _norms_swapped(x, attended, params):
    """the two norms are swapped: attention_norm comes first"""
    swapped = {
        **params,
        "attention_norm": params["ffn_norm"],
        "ffn_norm": params["attention_norm"],
    }
    return my_layer(x, attended, swapped)


def _plain_second_norm(x, attended, params):
    """gamma and beta of ffn_norm are not used"""
    H = x.shape[-1]
    plain = {"gamma": np.ones(H), "beta": np.zeros(H)}
    return my_layer(x, attended, {**params, "ffn_norm": plain})


def _one_norm_twice(x, attended, params):
    """the second norm has parameters of its own, ffn_norm"""
    return my_layer(x, attended, {**params, "ffn_norm": params["attention_norm"]})


def _tanh_layer(x, attended, params):
    """that is GELU's tanh form: BERT uses the form with erf, bert_np.gelu"""
    x = _norm(x + attended, params["attention_norm"])
    inner = bert_np.gelu_tanh(bert_np.linear(x, **params["ffn"]["inner"]))
    thought = bert_np.linear(inner, **params["ffn"]["outer"])
    return _norm(x + thought, params["ffn_norm"])


def _large_epsilon(x, attended, params):
    """epsilon is 1e-12 in BERT: a larger one shows where the numbers of a
    row are small or nearly equal
    """

    def norm(x, params):
        return bert_np.layer_norm(x, **params, eps=1e-5)

    x = norm(x + attended, params["attention_norm"])
    return norm(x + _think(x, params["ffn"]), params["ffn_norm"])


def _no_inner_bias(x, attended, params):
    """the bias of ffn.inner is missing"""
    inner = params["ffn"]["inner"]
    ffn = {**params["ffn"], "inner": {**inner, "b": 0 * inner["b"]}}
    return my_layer(x, attended, {**params, "ffn": ffn})


def _no_second_beta(x, attended, params):
    """the beta of ffn_norm is missing"""
    norm = params["ffn_norm"]
    plain = {**norm, "beta": 0 * norm["beta"]}
    return my_layer(x, attended, {**params, "ffn_norm": plain})


def _draw_layer(rng):
    """A layer whose parameters are all at work, and its two inputs."""
    T, H, F = rng.integers(1, 5), rng.integers(3, 6), rng.integers(2, 8)
    ffn = {
        "inner": {"W": rng.normal(size=(H, F)), "b": rng.normal(size=F)},
        "outer": {"W": rng.normal(size=(F, H)), "b": rng.normal(size=H)},
    }
    first, second = (
        dict(zip(("gamma", "beta"), p)) for p in rng.normal(size=(2, 2, H))
    )
    params = {"attention_norm": first, "ffn": ffn, "ffn_norm": second}
    return *rng.normal(size=(2, T, H)), params


# Pairwise different sizes: T = 2, H = 3, F = 5; no parameter is 0 or 1.
WAVE = np.cos(np.arange(30.0)).reshape(2, 3, 5)
X3, UPDATE3 = WAVE[:, :, 0], WAVE[:, :, 3]
FFN3 = {
    "inner": {"W": 2 * WAVE[0], "b": WAVE[1, 0]},
    "outer": {"W": 3 * WAVE[1].T, "b": WAVE[0, :, 2]},
}
LAYER3 = {
    "attention_norm": {"gamma": WAVE[0, :, 4], "beta": WAVE[1, :, 4]},
    "ffn": FFN3,
    "ffn_norm": {"gamma": 2 * WAVE[1, :, 1], "beta": WAVE[0, :, 1]},
}
NETWORK3 = tuple(FFN3[part][name] for part in ("inner", "outer") for name in "Wb")

# ------------------------------------------------------------ the layer, whole


def my_encoder_layer(x, params, attention_mask, config):
    attended, _ = bert_np.self_attention(x, params["attention"], attention_mask, config)
    x = bert_np.layer_norm(x + attended, **params["attention_norm"], eps=1e-12)
    inner = bert_np.linear(x, **params["ffn"]["inner"])
    thought = bert_np.linear(bert_np.gelu(inner), **params["ffn"]["outer"])
    return bert_np.layer_norm(x + thought, **params["ffn_norm"], eps=1e-12)


def _whole(after_attention):
    """Return a layer with attention from a mistaken second part."""

    def encoder_layer(x, params, attention_mask, config):
        attention = params["attention"]
        attended, _ = bert_np.self_attention(x, attention, attention_mask, config)
        return after_attention(x, attended, params)

    encoder_layer.__doc__ = after_attention.__doc__
    return encoder_layer


def _unmasked_layer(x, params, attention_mask, config):
    """the mask is not handed to the attention"""
    return my_encoder_layer(x, params, np.ones_like(attention_mask), config)


def _both_results(x, params, attention_mask, config):
    """self_attention returns two things, the output and the maps: your layer
    must return its output alone
    """
    attended, probs = bert_np.self_attention(
        x, params["attention"], attention_mask, config
    )
    return my_layer(x, attended, params), probs


def _no_attention(x, params, attention_mask, config):
    """the attention is missing"""
    return my_layer(x, 0 * x, params)


def _small_config(H, A):
    return bert_np.BertConfig(
        hidden_size=int(H), num_attention_heads=int(A), intermediate_size=5
    )


def _draw_encoder_layer(rng):
    """A whole layer whose parameters are all at work, and a padded batch."""
    B, T, A, D = rng.integers(1, 4), rng.integers(1, 5), *rng.integers(1, 4, 2)
    H, F = A * D + A, rng.integers(2, 8)  # D + 1 numbers per head
    maps = {
        name: {"W": rng.normal(size=(H, H)), "b": rng.normal(size=H)}
        for name in ("query", "key", "value", "output")
    }
    ffn = {
        "inner": {"W": rng.normal(size=(H, F)), "b": rng.normal(size=F)},
        "outer": {"W": rng.normal(size=(F, H)), "b": rng.normal(size=H)},
    }
    first, second = (
        dict(zip(("gamma", "beta"), p)) for p in rng.normal(size=(2, 2, H))
    )
    params = {
        "attention": maps,
        "attention_norm": first,
        "ffn": ffn,
        "ffn_norm": second,
    }
    mask = (np.arange(T) < rng.integers(1, T + 1, B)[:, None]).astype(int)
    return rng.normal(size=(B, T, H)), params, mask, _small_config(H, A)


WHOLE = {
    "attention": {
        name: {"W": np.cos(np.arange(9) * (i + 1.7)).reshape(3, 3), "b": WAVE[1, :, i]}
        for i, name in enumerate(("query", "key", "value", "output"))
    },
    **LAYER3,
}
BATCH3 = np.sin(np.arange(24.0) ** 2).reshape(2, 4, 3)  # (B, T, H)
PADDED = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])

EXERCISES = (
    Exercise(
        id="06.residual",
        title="Without the residual",
        level=1,
        minutes=4,
        task="Every query looks at all keys alike, so each of three tokens gets the "
        "same update. The residual x + is left out. Set `different` to the number "
        "of different vectors that the three tokens have after the first norm.",
        hints=(
            "What in norm(update) still depends on which token it is?",
            "Nothing: without x + only the update is left, and it is the same for all.",
        ),
        solution=1,
        name="different",
        why="Without x + nothing is left of the token itself: all three are the norm "
        "of the same update.",
        mistakes=(
            Mistake(
                3,
                "that is with the residual: without it a token keeps nothing of "
                "its own",
            ),
            Mistake(
                0,
                "the vectors are not lost: each is the norm of the same mean of values",
            ),
        ),
    ),
    Exercise(
        id="06.gelu",
        title="The exact GELU",
        level=1,
        minutes=6,
        task="Write `my_gelu(x)` for x of shape (F,): x times the probability that a "
        "number from the standard normal distribution is below x. `math.erf` "
        "takes one number at a time.",
        hints=(
            "The probability is Φ(x) = (1 + erf(x / √2)) / 2.",
            "Make a list of the probabilities with math.erf(value / math.sqrt(2)) for "
            "each value in x, turn it into an array, multiply by x.",
        ),
        solution=my_gelu,
        mistakes=mistakes(
            _tanh_form,
            _sigmoid_form,
            _relu,
            _probability_only,
            _no_root,
            _root_too_late,
        ),
        cases=(
            (np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]),),
            (np.array([-8.0, 8.0, 2.0]),),
            (np.array([-1.7]),),
            (np.array([0.001, -0.001, -2.5, 40]),),
        ),
        draw=_draw_numbers,
    ),
    Exercise(
        id="06.feed_forward",
        title="Feed-forward",
        level=2,
        minutes=7,
        task="Write `my_feed_forward(x, W1, b1, W2, b2)` for x of shape (T, H), W1 of "
        "shape (H, F) and W2 of shape (F, H). No residual, no norm. You may call "
        "`bert_np.gelu`.",
        hints=(
            "Three steps: widen, GELU, narrow.",
            "inner = x @ W1 + b1, then GELU of inner, then the product with W2, plus "
            "b2.",
        ),
        solution=my_feed_forward,
        mistakes=mistakes(
            _no_gelu,
            _relu_inside,
            _gelu_late,
            _gelu_twice,
            _with_residual,
            _no_biases,
            _tanh_inside,
            _no_second_bias,
            _bias_after_gelu,
        ),
        cases=(
            (X, W1, B1, W2, B2),
            (X[::-1] * 2, W1, B1[::-1], W2, B2 + 1),
            (X3, *NETWORK3),
            (UPDATE3[:1], *NETWORK3),
        ),
        draw=_draw_network,
    ),
    Exercise(
        id="06.layer",
        title="The whole layer",
        level=3,
        minutes=12,
        task="Write `my_encoder_layer(x, params, attention_mask, config)` for x of "
        'shape (B, T, H); params has "attention", "attention_norm", "ffn" and '
        '"ffn_norm" as in the library. Return the layer\'s output. You may call '
        "`bert_np.self_attention` (it returns two things), `bert_np.layer_norm` "
        "(eps=1e-12), `bert_np.linear` and `bert_np.gelu`.",
        hints=(
            "Two lines of equations: norm(x + attention), and norm(x + feed-forward). "
            "Which x does the second line take?",
            'attended, probs = bert_np.self_attention(x, params["attention"], '
            "attention_mask, config); x = bert_np.layer_norm(x + attended, "
            '**params["attention_norm"], eps=1e-12); the feed-forward then takes this '
            "new x, and is added to it.",
        ),
        solution=my_encoder_layer,
        mistakes=mistakes(
            _unmasked_layer,
            _no_attention,
            _both_results,
            *map(
                _whole,
                (
                    _no_first_residual,
                    _no_second_residual,
                    _old_x,
                    _pre_norm,
                    _no_last_norm,
                    _norms_swapped,
                    _plain_second_norm,
                    _one_norm_twice,
                    _tanh_layer,
                    _large_epsilon,
                    _no_inner_bias,
                    _no_second_beta,
                ),
            ),
        ),
        cases=(
            (BATCH3, WHOLE, PADDED, _small_config(3, 3)),
            (BATCH3[1:, :2], WHOLE, PADDED[1:, :2], _small_config(3, 1)),
            (4 * BATCH3[:1], WHOLE, PADDED[:1], _small_config(3, 3)),
        ),
        draw=_draw_encoder_layer,
    ),
    Exercise(
        id="06.length",
        title="How long is a vector?",
        level=2,
        minutes=4,
        task="H = 64, gamma 1, beta 0, epsilon 0. Set `length` to the length of a "
        "token's vector after a post-norm layer (the root of the sum of its "
        "squares).",
        hints=(
            "A layer ends in a norm: what is the mean of the 64 squares?",
            "The variance is 1 and the mean 0, so the squares sum to 64.",
        ),
        solution=8.0,
        name="length",
        why="Mean 0 and variance 1 over 64 numbers: their squares sum to 64, whose "
        "root is 8.",
        mistakes=(
            Mistake(64.0, "that is the sum of the squares: take its root"),
            Mistake(
                1.0,
                "LayerNorm sets the variance to 1, not the length: there are "
                "64 numbers",
            ),
        ),
    ),
)
