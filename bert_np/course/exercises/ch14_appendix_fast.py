"""Exercises of the appendix on speed: operations, padding, the cost of length."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

# -------------------------------------------------------------- operations


def my_operations(T, H, F):
    maps = 4 * H * H + 2 * H * F
    attention = 2 * T * H
    return 2 * T * (maps + attention)


def _multiplications(T, H, F):
    """you counted the multiplications alone; each comes with an addition:
    2 m n p
    """
    return my_operations(T, H, F) // 2


def _no_attention(T, H, F):
    """the linear maps are right; q kᵀ and probs v are missing"""
    return 2 * T * (4 * H * H + 2 * H * F)


def _scores_alone(T, H, F):
    """q kᵀ is there; probs v costs as much again"""
    return 2 * T * (4 * H * H + 2 * H * F + T * H)


def _three_maps(T, H, F):
    """query, key and value make three maps of H x H; the output map is the
    fourth
    """
    return 2 * T * (3 * H * H + 2 * H * F + 2 * T * H)


def _one_feed_forward_map(T, H, F):
    """the feed-forward network has two maps: H x F and F x H"""
    return 2 * T * (4 * H * H + H * F + 2 * T * H)


def _one_token(T, H, F):
    """this is the work of one token; there are T"""
    return 2 * (4 * H * H + 2 * H * F + 2 * T * H)


def _four_times_H(T, H, F):
    """you took 4·H for the feed-forward size: F is an argument"""
    return my_operations(T, H, 4 * H)


def _draw_layer_sizes(rng):
    """Three sizes that have nothing to do with one another."""
    return tuple(rng.integers(1, [200, 50, 99]).tolist())


# ----------------------------------------------------------------- padding


def my_padding_share(lengths):
    return 1 - lengths.sum() / (len(lengths) * lengths.max())


def _real_share(lengths):
    """this is the share of the real tokens; padding is the rest"""
    return lengths.sum() / (len(lengths) * lengths.max())


def _beside_real(lengths):
    """you divided by the real tokens; divide by all positions"""
    return len(lengths) * lengths.max() / lengths.sum() - 1


def _of_the_shortest(lengths):
    """this is the share in the shortest row; count all rows"""
    return 1 - lengths.min() / lengths.max()


def _to_512(lengths):
    """a batch is padded to its longest text, not to 512"""
    return 1 - lengths.sum() / (len(lengths) * 512)


def _rounded(lengths):
    """do not round the share"""
    return np.round(my_padding_share(lengths), 2)


def _first_is_longest(lengths):
    """the first text need not be the longest: lengths.max()"""
    return 1 - lengths.sum() / (len(lengths) * lengths[0])


def _last_is_longest(lengths):
    """the last text need not be the longest: lengths.max()"""
    return 1 - lengths.sum() / (len(lengths) * lengths[-1])


def _draw_lengths(rng):
    """The lengths of one text or of several."""
    return (rng.integers(1, 60, rng.integers(1, 9)),)


EXERCISES = (
    Exercise(
        id="14.operations",
        title="The operations of a layer",
        level=2,
        minutes=8,
        task="Write `my_operations(T, H, F)`, which returns how many multiplications "
        "and additions the matrix products of one encoder layer take for one text of "
        "T tokens. Count a product of (m, n) and (n, p) as 2 m n p. Leave out biases, "
        "softmax, GELU and norms.",
        hints=(
            "Six linear maps: four of H x H, one of H x F, one of F x H; each token "
            "goes through all. Then two products inside attention.",
            "Scores: T queries with T keys, H numbers each over all heads: 2 T T H. "
            "The context costs the same.",
        ),
        solution=my_operations,
        mistakes=mistakes(
            _multiplications,
            _no_attention,
            _scores_alone,
            _three_maps,
            _one_feed_forward_map,
            _one_token,
            _four_times_H,
        ),
        cases=((3, 4, 16), (10, 384, 1536), (128, 384, 1536), (7, 5, 11), (1, 3, 2)),
        draw=_draw_layer_sizes,
    ),
    Exercise(
        id="14.padding",
        title="The share of padding",
        level=1,
        minutes=5,
        task="A batch holds texts of these lengths, an array of shape (B,), and is "
        "padded to the longest of them. Write `my_padding_share(lengths)`, which "
        "returns the share of all positions that is padding.",
        hints=(
            "The batch has B rows of as many positions as the longest text has.",
            "1 minus the share of the real tokens: lengths.sum() over all positions.",
        ),
        solution=my_padding_share,
        mistakes=mistakes(
            _real_share,
            _beside_real,
            _of_the_shortest,
            _to_512,
            _rounded,
            _first_is_longest,
            _last_is_longest,
        ),
        cases=(
            (np.array([10, 6]),),
            (np.array([128, 8, 8, 16]),),
            (np.array([5, 5, 5]),),
            (np.array([1, 2, 3, 10]),),
            (np.array([7]),),
            (np.array([11, 13, 3, 1, 7]),),
        ),
        draw=_draw_lengths,
    ),
    Exercise(
        id="14.crossover",
        title="When attention is half of the work",
        level=2,
        minutes=7,
        task="With F = 4 H, at which length T do the two products inside attention "
        "take as many operations as the six linear maps? Set `crossover` to T for "
        "MiniLM, whose H is 384.",
        hints=(
            "With F = 4 H the six maps take 2 T (4 + 8) H² = 24 T H².",
            "The two products take 4 T² H. Set both equal and divide by 4 T H.",
        ),
        solution=2304,
        mistakes=(
            Mistake(4608, "you counted one of the two products inside attention"),
            Mistake(
                1152,
                "2 m n p for the maps, too: you counted their multiplications alone",
            ),
            Mistake(
                768,
                "you counted the four maps of attention alone; the "
                "feed-forward network has 8 H² more",
            ),
            Mistake(
                512,
                "512 is the longest text that the model takes; attention is "
                "not half of the work even there",
            ),
            Mistake(
                384, "T = H is too early: the maps have 12 H² weights for each token"
            ),
        ),
        name="crossover",
        why="24 T H² = 4 T² H at T = 6 H, which is 2304 for MiniLM: far beyond its "
        "limit of 512 tokens.",
    ),
)
