"""Exercises of chapter 05: split, merge, and what many heads cost."""

import math

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

X = 10 * np.arange(3)[:, None] + np.arange(8)  # (T, H): 10 t + h
BATCH = np.stack([X, X + 100])  # (B, T, H)


# ------------------------------------------------------------------- split


def my_split(x, A):
    B, T, H = x.shape
    return x.reshape(B, T, A, H // A).transpose(0, 2, 1, 3)


def _reshape_only(x, A):
    """right shape, wrong numbers: reshape(B, A, T, D) cuts across tokens;
    reshape to (B, T, A, D), then transpose
    """
    B, T, H = x.shape
    return x.reshape(B, A, T, H // A)


def _no_transpose(x, A):
    """your axes are (B, T, A, D): the heads must come before the tokens"""
    B, T, H = x.shape
    return x.reshape(B, T, A, H // A)


def _every_other(x, A):
    """your head takes every A-th number: a head's numbers stand side by
    side
    """
    B, T, H = x.shape
    return x.reshape(B, T, H // A, A).transpose(0, 3, 1, 2)


def _heads_first(x, A):
    """your axes are (A, B, T, D): the sequences come first"""
    return my_split(x, A).swapaxes(0, 1)


def _first_sequence(x, A):
    """you split only the first sequence: there are B of them"""
    return my_split(x[:1], A)


def _draw_unsplit(rng):
    """Vectors that A heads can share."""
    B, T, A, D = rng.integers(1, 5, 4)
    return rng.normal(size=(B, T, A * D)), int(A)


# ------------------------------------------------------------------- merge


def my_merge(x):
    B, A, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, A * D)


def _merge_by_reshape(x):
    """right shape, wrong numbers: a token's row holds numbers of other
    tokens; transpose before the reshape
    """
    B, A, T, D = x.shape
    return x.reshape(B, T, A * D)


def _mixed(x):
    """the heads are shuffled together number by number: A must come before
    D when you reshape
    """
    B, A, T, D = x.shape
    return x.transpose(0, 2, 3, 1).reshape(B, T, A * D)


def _added(x):
    """you added the heads: put them side by side, so nothing is lost"""
    return x.sum(axis=1)


def _without_the_batch(x):
    """the axis of the sequences is lost where B = 1: the result has three
    axes
    """
    return my_merge(x).squeeze()


def _first_merged(x):
    """you merged only the first sequence: there are B of them"""
    return my_merge(x[:1])


def _outer_heads(x):
    """you took only the first head and the last: there are A of them"""
    return my_merge(x[:, [0, -1]])


def _draw_split(rng):
    """Vectors in heads, of any four sizes."""
    return (rng.normal(size=rng.integers(1, 5, 4)),)


# --------------------------------------------------- self-attention, whole


def my_self_attention(x, params, attention_mask, A):
    B, T, H = x.shape
    q, k, v = (
        (x @ params[name]["W"] + params[name]["b"])
        .reshape(B, T, A, H // A)
        .transpose(0, 2, 1, 3)
        for name in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(H // A)
    visible = attention_mask[:, None, None, :] == 1
    scores = np.where(visible, scores, np.finfo(scores.dtype).min)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
    context = (probs @ v).transpose(0, 2, 1, 3).reshape(B, T, H)
    return context @ params["output"]["W"] + params["output"]["b"]


def _with(params, **changes):
    """Parameters in which some maps are others."""
    return {**params, **{name: {**params[name], **c} for name, c in changes.items()}}


def _plain_output(params):
    """An output map that changes nothing."""
    size = len(params["output"]["b"])
    return _with(params, output={"W": np.eye(size), "b": np.zeros(size)})


def _no_output_map(x, params, attention_mask, A):
    """the output map is missing: its matrix adds the heads up"""
    return my_self_attention(x, _plain_output(params), attention_mask, A)


def _no_output_bias(x, params, attention_mask, A):
    """the bias of the output map is missing"""
    changed = _with(params, output={"b": 0 * params["output"]["b"]})
    return my_self_attention(x, changed, attention_mask, A)


def _no_value_bias(x, params, attention_mask, A):
    """the bias of the values is missing"""
    changed = _with(params, value={"b": 0 * params["value"]["b"]})
    return my_self_attention(x, changed, attention_mask, A)


def _no_query_or_key_bias(x, params, attention_mask, A):
    """the biases of the queries and keys are missing"""
    changed = {name: {"b": 0 * params[name]["b"]} for name in ("query", "key")}
    return my_self_attention(x, _with(params, **changed), attention_mask, A)


def _swapped(x, params, attention_mask, A):
    """queries and keys are swapped: q k^T, a row for each query"""
    changed = {**params, "query": params["key"], "key": params["query"]}
    return my_self_attention(x, changed, attention_mask, A)


def _one_head(x, params, attention_mask, A):
    """that is one head over all H numbers: cut q, k and v into A heads"""
    return my_self_attention(x, params, attention_mask, 1)


def _unmasked(x, params, attention_mask, A):
    """the mask is not used: a padded key must get probability 0"""
    return my_self_attention(x, params, np.ones_like(attention_mask), A)


def _inverted(x, params, attention_mask, A):
    """your mask is inverted: 1 is a real token, 0 padding"""
    return my_self_attention(x, params, 1 - attention_mask, A)


def _scaled(x, params, factor):
    """Parameters whose scores are multiplied by a factor."""
    query = params["query"]
    return _with(params, query={"W": factor * query["W"], "b": factor * query["b"]})


def _scaled_by_hidden_size(x, params, attention_mask, A):
    """you scaled by the root of H: D is H / A"""
    changed = _scaled(x, params, 1 / math.sqrt(A))
    return my_self_attention(x, changed, attention_mask, A)


def _unscaled(x, params, attention_mask, A):
    """the scale is missing: divide the scores by the root of D"""
    changed = _scaled(x, params, math.sqrt(x.shape[-1] // A))
    return my_self_attention(x, changed, attention_mask, A)


def _attend(
    x, params, attention_mask, A, split, merge, after=False, low=None, shift=True
):
    """Self-attention with another way to split, to merge, to mask, or softmax."""
    q, k, v = (
        split(x @ params[name]["W"] + params[name]["b"], A)
        for name in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(x.shape[-1] // A)
    visible = attention_mask[:, None, None, :] == 1
    low = np.finfo(scores.dtype).min if low is None else low
    scores = scores if after else np.where(visible, scores, low)
    exponentials = np.exp(scores - shift * scores.max(axis=-1, keepdims=True))
    probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
    context = merge((probs * visible if after else probs) @ v)
    return context @ params["output"]["W"] + params["output"]["b"]


def _naive_split(x, params, attention_mask, A):
    """one reshape to (B, A, T, D) mixes heads and tokens: reshape to
    (B, T, A, D), then transpose
    """
    return _attend(x, params, attention_mask, A, _reshape_only, my_merge)


def _naive_merge(x, params, attention_mask, A):
    """the heads are merged by a reshape alone: transpose to (B, T, A, D)
    first
    """
    return _attend(x, params, attention_mask, A, my_split, _merge_by_reshape)


def _masked_after(x, params, attention_mask, A):
    """you masked after the softmax: the rows no longer sum to 1"""
    return _attend(x, params, attention_mask, A, my_split, my_merge, after=True)


def _overflowing(x, params, attention_mask, A):
    """it overflows for large scores: subtract each row's maximum first"""
    return _attend(x, params, attention_mask, A, my_split, my_merge, shift=False)


def _not_low_enough(x, params, attention_mask, A):
    """a masked score of −100 or −20 is not low enough: other scores may lie
    below it; take np.finfo(scores.dtype).min
    """
    return _attend(x, params, attention_mask, A, my_split, my_merge, low=-100)


def _first_mask(x, params, attention_mask, A):
    """each sequence has its own row of the attention mask"""
    masks = np.repeat(attention_mask[:1], len(x), axis=0)
    return my_self_attention(x, params, masks, A)


def _with_residual(x, params, attention_mask, A):
    """you added x: the residual belongs to the layer, not to self-attention"""
    return x + my_self_attention(x, params, attention_mask, A)


def _draw_attention(rng):
    """Parameters that are all at work, any mask and heads; some scores far apart."""
    B, T, A, D = rng.integers(1, 4), rng.integers(1, 5), *rng.integers(1, 4, 2)
    H = A * D
    names = ("query", "key", "value", "output")
    params = {
        name: {"W": rng.normal(size=(H, H)), "b": rng.normal(size=H)} for name in names
    }
    mask = (rng.random((B, T)) < 0.6).astype(int)
    mask[:, rng.integers(T)] = 1  # some key is visible
    return rng.normal(size=(B, T, H)) * rng.choice([1, 40]), params, mask, int(A)


def _waves(H):
    """Four maps of H to H numbers, all different and none of them 0."""
    return {
        name: {
            "W": np.cos(np.arange(H * H) * (i + 1.3)).reshape(H, H),
            "b": np.sin(np.arange(H) + i + 1.0),
        }
        for i, name in enumerate(("query", "key", "value", "output"))
    }


WIDE = np.cos(np.arange(120.0)).reshape(2, 5, 12)
BATCH_6 = np.sin(np.arange(2 * 5 * 6) ** 2).reshape(2, 5, 6)  # (B, T, H)
PADDED = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])

EXERCISES = (
    Exercise(
        id="05.split",
        title="Split into heads",
        level=1,
        minutes=6,
        task="Write `my_split(x, A)` for x of shape (B, T, H): the array of shape "
        "(B, A, T, D) in which head a holds the numbers a·D to (a + 1)·D − 1 of "
        "each token.",
        hints=(
            "Two steps: cut the last axis in two, then change the order of the axes.",
            "reshape(B, T, A, D) cuts each token's numbers; transpose(0, 2, 1, 3) puts "
            "the heads before the tokens.",
        ),
        solution=my_split,
        mistakes=mistakes(
            _reshape_only, _no_transpose, _every_other, _heads_first, _first_sequence
        ),
        cases=((BATCH, 2), (BATCH[:1], 4), (WIDE, 3), (WIDE[:1], 1), (WIDE, 12)),
        draw=_draw_unsplit,
    ),
    Exercise(
        id="05.merge",
        title="Merge the heads",
        level=1,
        minutes=5,
        task="Write `my_merge(x)` for x of shape (B, A, T, D): the array of shape "
        "(B, T, A·D) with the heads side by side. It undoes the split.",
        hints=(
            "The same two steps as the split, in the other order.",
            "transpose(0, 2, 1, 3) gives (B, T, A, D); reshape joins the last two "
            "axes.",
        ),
        solution=my_merge,
        mistakes=mistakes(
            _merge_by_reshape,
            _mixed,
            _added,
            _without_the_batch,
            _first_merged,
            _outer_heads,
        ),
        cases=(
            (my_split(BATCH, 2),),
            (my_split(BATCH[:1], 4),),
            (my_split(WIDE, 3),),
            (my_split(WIDE[:1], 1),),
            (my_split(WIDE, 12),),
        ),
        draw=_draw_split,
    ),
    Exercise(
        id="05.self_attention",
        title="Self-attention, from x to the output",
        level=3,
        minutes=15,
        task="Write `my_self_attention(x, params, attention_mask, A)` for x of shape "
        '(B, T, H), a mask of shape (B, T) and A heads. params holds "query", '
        '"key", "value" and "output", each with "W" (H, H) and "b" (H,). '
        "Return the output, of shape (B, T, H).",
        hints=(
            "Six steps: three linear maps, split each into heads, scores by √D, mask "
            "and softmax (chapter 04), times v, merge and the output map.",
            'q, k, v = (my_split(x @ params[name]["W"] + params[name]["b"], A) for '
            "the three names); scores = q @ k.swapaxes(-1, -2) / math.sqrt(H // A); "
            "the mask is attention_mask[:, None, None, :].",
        ),
        solution=my_self_attention,
        mistakes=mistakes(
            _no_output_map,
            _no_output_bias,
            _no_value_bias,
            _no_query_or_key_bias,
            _swapped,
            _one_head,
            _unmasked,
            _inverted,
            _scaled_by_hidden_size,
            _unscaled,
            _naive_split,
            _naive_merge,
            _masked_after,
            _overflowing,
            _not_low_enough,
            _first_mask,
            _with_residual,
        ),
        cases=(
            (BATCH_6, _waves(6), PADDED, 2),
            (BATCH_6, _waves(6), PADDED, 3),
            (3 * BATCH_6[:1, :4], _waves(6), np.ones((1, 4), int), 2),
            (-BATCH_6[1:], _waves(6), PADDED[1:], 1),
            (40 * BATCH_6[:, 1:], _waves(6), np.array([[0, 1, 0, 1], [1, 1, 0, 1]]), 3),
        ),
        draw=_draw_attention,
    ),
    Exercise(
        id="05.count",
        title="What do heads cost?",
        level=1,
        minutes=4,
        task="A self-attention with H = 8 and A = 2 has four linear maps, each with a "
        "bias: query, key, value, output. Set `parameters` to how many numbers "
        "they hold.",
        hints=(
            "Each map is a matrix (H, H) and a bias (H,), whatever A is.",
            "4 · (8 · 8 + 8).",
        ),
        solution=288,
        name="parameters",
        why="Four maps of 8·8 + 8 numbers each; the heads share them, so more heads "
        "cost nothing.",
        mistakes=(
            Mistake(256, "the biases are missing, 8 for each map"),
            Mistake(216, "the output map is missing: there are four"),
            Mistake(576, "heads add no parameters: all A share one matrix (H, H)"),
            Mistake(
                144, "each map gives all heads' numbers at once: (H, H), not (H, D)"
            ),
        ),
    ),
    Exercise(
        id="05.dropout",
        title="A row in training",
        level=2,
        minutes=4,
        task="A row of probs is [0.5, 0.25, 0.25]. In training, with a dropout rate of "
        "0.5, the last probability is dropped. Set `row_sum` to the sum of the row "
        "that multiplies the values.",
        hints=("What is kept is divided by 1 − rate.", "(0.5 + 0.25) / 0.5."),
        solution=1.5,
        name="row_sum",
        why="What is kept is divided by 1 − rate, so a row sums to 1 on average, "
        "not every time.",
        mistakes=(
            Mistake(0.75, "what is kept is divided by 1 − rate"),
            Mistake(
                1.0,
                "dropout acts after the softmax, and nothing makes the row "
                "sum to 1 again",
            ),
            Mistake(0.375, "divide by 1 − rate, do not multiply"),
        ),
    ),
)
