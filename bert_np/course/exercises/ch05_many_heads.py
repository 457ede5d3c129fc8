"""Exercises of chapter 05: split, merge, and what many heads cost."""

import math

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

X = 10 * np.arange(3)[:, None] + np.arange(8)  # (T, H): 10 t + h
BATCH = np.stack([X, X + 100])  # (B, T, H)
Q = np.array([[2.0, 0, 0, 0, 2, 0], [0, 2, 0, 0, 0, 2], [0, 0, 2, 2, 0, 0]])
K = np.array([[2.0, 1, 0, 0, 1, 0], [1, 2, 0, 0, 0, 2], [0, 1, 2, 1, 0, 0]])
V = np.array([[1.0, 0, 2, 0, 1, 1], [0, 1, 0, 3, 0, 1], [1, 1, 0, 0, 2, 0]])


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
    """you split the first sequence alone: there are B"""
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
    """you added the heads: they stand side by side, nothing is lost"""
    return x.sum(axis=1)


def _without_the_batch(x):
    """the axis of the sequences is lost where B = 1: the result has three
    axes
    """
    return my_merge(x).squeeze()


def _first_merged(x):
    """you merged the first sequence alone: there are B"""
    return my_merge(x[:1])


def _outer_heads(x):
    """you took the first head and the last: there are A"""
    return my_merge(x[:, [0, -1]])


def _draw_split(rng):
    """Vectors in heads, of any four sizes."""
    return (rng.normal(size=rng.integers(1, 5, 4)),)


# ---------------------------------------------------------- loop over heads


def my_attention_by_head(q, k, v, A):
    D = q.shape[-1] // A
    contexts = []
    for a in range(A):
        mine = slice(a * D, (a + 1) * D)
        scores = q[:, mine] @ k[:, mine].T / math.sqrt(D)
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
        contexts.append(probs @ v[:, mine])
    return np.concatenate(contexts, axis=-1)


def _one_head(q, k, v, A):
    """that is one head over all H numbers: cut q, k and v into A slices"""
    return my_attention_by_head(q, k, v, 1)


def _scaled_by_hidden_size(q, k, v, A):
    """you scaled by the root of H: D is H / A"""
    return my_attention_by_head(q / math.sqrt(A), k, v, A)


def _added_heads(q, k, v, A):
    """you added the heads: put them side by side, axis=-1"""
    merged = my_attention_by_head(q, k, v, A)
    return merged.reshape(len(q), A, -1).sum(axis=1)


def _stacked_heads(q, k, v, A):
    """the heads stand below each other: concatenate over axis=-1"""
    merged = my_attention_by_head(q, k, v, A)
    return np.concatenate(np.split(merged, A, axis=-1), axis=0)


def _sums_in_columns(q, k, v, A):
    """column j is divided by the sum of row j: keep the summed axis with
    keepdims=True
    """
    D, contexts = q.shape[-1] // A, []
    for a in range(A):
        mine = slice(a * D, (a + 1) * D)
        scores = q[:, mine] @ k[:, mine].T / math.sqrt(D)
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        contexts.append(exponentials / exponentials.sum(axis=-1) @ v[:, mine])
    return np.concatenate(contexts, axis=-1)


def _first_probs_for_all(q, k, v, A):
    """all your heads use the probs of head 0: each has its own"""
    D = q.shape[-1] // A
    first = slice(0, D)
    repeated = (np.tile(x[:, first], A) for x in (q, k))
    return my_attention_by_head(*repeated, v, A)


def _naive_heads(q, k, v, A):
    """it overflows for large scores: subtract each row's maximum first"""
    D, contexts = q.shape[-1] // A, []
    for a in range(A):
        mine = slice(a * D, (a + 1) * D)
        exponentials = np.exp(q[:, mine] @ k[:, mine].T / math.sqrt(D))
        probs = exponentials / exponentials.sum(axis=-1, keepdims=True)
        contexts.append(probs @ v[:, mine])
    return np.concatenate(contexts, axis=-1)


def _in_turns(q, k, v, A):
    """your head takes every A-th number: a head's numbers stand side by
    side
    """
    order = np.arange(q.shape[-1]).reshape(-1, A).T.ravel()
    return my_attention_by_head(q[:, order], k[:, order], v[:, order], A)


def _last_is_missing(q, k, v, A):
    """the last head is missing: range(A) has them all"""
    merged = my_attention_by_head(q, k, v, A)
    start = (A - 1) * (v.shape[-1] // A) if A > 1 else v.shape[-1]
    return np.concatenate([merged[:, :start], v[:, start:]], axis=-1)


def _draw_heads(rng):
    """Queries, keys and values for some heads; some scores far apart."""
    T, A, D = rng.integers(1, 6), rng.integers(1, 4), rng.integers(1, 4)
    q, k, v = rng.normal(size=(3, T, A * D))
    return q * rng.choice([1, 300]), k, v, int(A)


# Pairwise different sizes: B = 2, T = 5, A = 3, D = 4, H = 12.
WIDE = np.cos(np.arange(120.0)).reshape(2, 5, 12)

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
        id="05.loop",
        title="A loop over heads",
        level=2,
        minutes=10,
        task="Write `my_attention_by_head(q, k, v, A)` for q, k, v of shape (T, H): "
        "the context of all A heads, side by side, of shape (T, H). Use a loop "
        "over the heads.",
        hints=(
            "Each head is chapter 03 on its own slice of q, k and v. What is D for a "
            "slice?",
            "For each a: mine = slice(a * D, (a + 1) * D), attention on q[:, mine], "
            "k[:, mine], v[:, mine] with √D; at the end np.concatenate(…, axis=-1).",
        ),
        solution=my_attention_by_head,
        mistakes=mistakes(
            _one_head,
            _scaled_by_hidden_size,
            _added_heads,
            _stacked_heads,
            _sums_in_columns,
            _first_probs_for_all,
            _naive_heads,
            _in_turns,
            _last_is_missing,
        ),
        cases=(
            (Q, K, V, 2),
            (Q, K, V, 3),
            (WIDE[0], WIDE[1] + 0.5, WIDE[1], 3),
            (300 * WIDE[0, :2], 20 * WIDE[1, :2], WIDE[0, 1:3], 4),
            (WIDE[0, :1], WIDE[1, :1], WIDE[1, 1:2], 1),
        ),
        draw=_draw_heads,
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
        why="Four maps of 8·8 + 8 numbers each; the heads share them, so A costs "
        "nothing.",
        mistakes=(
            Mistake(256, "the biases are missing, 8 for each map"),
            Mistake(216, "the output map is missing: there are four"),
            Mistake(576, "heads do not multiply: A of them share one matrix (H, H)"),
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
        "0.5, the last share is dropped. Set `row_sum` to the sum of the row that "
        "multiplies the values.",
        hints=("What is kept is divided by 1 − rate.", "(0.5 + 0.25) / 0.5."),
        solution=1.5,
        name="row_sum",
        why="What is kept is divided by 1 − rate, so a row sums to 1 on average, "
        "not in each run.",
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
