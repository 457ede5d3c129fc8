"""Exercises of chapter 00: how the checks work, on one matrix product."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes


def my_shares(counts):
    return counts / counts.sum(axis=1, keepdims=True)


def _without_keepdims(counts):
    """you divided column j by the sum of row j: keep the summed axis with
    keepdims=True
    """
    return counts / counts.sum(axis=1)


def _of_columns(counts):
    """your columns sum to 1: to sum within a row, take axis 1"""
    return counts / counts.sum(axis=0)


def _of_everything(counts):
    """the whole array sums to 1: each of its rows must"""
    return counts / counts.sum()


def _first_sum(counts):
    """you divided every row by the first row's sum: each has its own"""
    return counts / counts[0].sum()


def _draw_counts(rng):
    """Counts of any size, from very small to very large."""
    N = rng.integers(1, 7)
    return (10 ** rng.uniform(-3, 3, (N, N)),)


EXERCISES = (
    Exercise(
        id="00.maps",
        title="How many maps?",
        level=1,
        minutes=2,
        task="MiniLM has 6 layers of 12 heads, and each head makes one attention map "
        "of the sentence. Set `maps_in_all` to their number.",
        hints=(
            "Every layer has heads of its own.",
            "6 layers, each with 12 maps.",
        ),
        solution=72,
        name="maps_in_all",
        why="6 · 12: every head of every layer makes a map of its own.",
        mistakes=(
            Mistake(12, "that is one layer: there are 6 of them"),
            Mistake(18, "each of the 6 layers has 12 heads: multiply, do not add"),
            Mistake(6, "that is the number of layers: each has 12 heads"),
        ),
    ),
    Exercise(
        id="00.shape",
        title="The shape of a product",
        level=1,
        minutes=2,
        task="An array of shape (3, 2) is multiplied by one of shape (2, 5). Set "
        "`shape` to the shape of the result, a tuple of two numbers.",
        hints=(
            "In (n, k) @ (k, m) the two inner sizes must be equal. They vanish.",
            "The rows come from the first array, the columns from the second.",
        ),
        solution=(3, 5),
        name="shape",
        why="The inner sizes, 2 and 2, are summed over; the outer ones, 3 and 5, stay.",
        mistakes=(
            Mistake((2, 2), "2 is the inner size: it is summed over and vanishes"),
            Mistake(
                (5, 3),
                "rows first: they come from the left array, columns from the right one",
            ),
            Mistake(
                (6, 10),
                "sizes are not multiplied: the inner 2 vanishes, the outer sizes stay",
            ),
        ),
    ),
    Exercise(
        id="00.shares",
        title="Each row becomes shares",
        level=1,
        minutes=5,
        task="Write `my_shares(counts)` for counts of shape (N, N), all above 0: "
        "divide each number by the sum of its row, so that each row of the "
        "result sums to 1.",
        hints=(
            "A sum over axis 1 has the shape (N,). NumPy lines it up with the "
            "columns, not with the rows.",
            "counts.sum(axis=1, keepdims=True) has the shape (N, 1). Divide by it.",
        ),
        solution=my_shares,
        mistakes=mistakes(_without_keepdims, _of_columns, _of_everything, _first_sum),
        cases=(
            (np.array([[1.0, 3.0], [2.0, 2.0]]),),
            (np.array([[1.0, 2.0, 1.0], [1.0, 3.0, 1.0], [4.0, 2.0, 2.0]]),),
            (np.array([[5.0]]),),
            (1e-6 * np.arange(1.0, 17).reshape(4, 4),),
        ),
        draw=_draw_counts,
    ),
)
