"""Exercises of chapter 11: what attention does not tell."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

PROBS = np.array([[0.8, 0.1, 0.1], [0.5, 0.25, 0.25]])
VALUES = np.array([[0.1, 0.0], [3.0, 4.0], [0.0, 2.0]])
LONGER = np.array([[0.6, 0.4], [0.1, 0.9]])
THREE = np.array([[1.0, 2.0, 2.0], [0.0, 3.0, 4.0]])
W_O = np.arange(1.0, 17.0).reshape(4, 4)
WIDE = np.array([[2.0, 1, 0], [1, 0, 1], [0, 3, 1], [1, 1, 1], [4, 0, 2], [0, 0, 5]])


# ------------------------------------------------------------------- moved


def my_moved_shares(probs, moved):
    lengths = np.sqrt((moved**2).sum(axis=-1))
    weighted = probs * lengths
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _not_divided(probs, moved):
    """these are the lengths that are moved: divide each row by its sum"""
    return probs * np.linalg.norm(moved, axis=-1)


def _squared(probs, moved):
    """the root is missing: a length is the root of the sum of squares"""
    weighted = probs * (moved**2).sum(axis=-1)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _summed(probs, moved):
    """you summed the numbers of each vector: a length needs their squares,
    and the root of the sum
    """
    weighted = probs * moved.sum(axis=-1)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _over_columns(probs, moved):
    """your columns sum to 1: rows are queries, divide along axis -1"""
    weighted = probs * np.linalg.norm(moved, axis=-1)
    return weighted / weighted.sum(axis=0)


def _only_probs(probs, moved):
    """these are the probabilities as they were: multiply each by the
    length of its key's vector
    """
    return probs


def _added_sizes(probs, moved):
    """you summed the sizes of the numbers: a length is the root of the sum
    of their squares
    """
    weighted = probs * np.abs(moved).sum(axis=-1)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _sums_in_columns(probs, moved):
    """column j is divided by the sum of row j: keep the summed axis with
    keepdims=True
    """
    weighted = probs * np.linalg.norm(moved, axis=-1)
    return weighted / weighted.sum(axis=-1)


def _largest_size(probs, moved):
    """you took the largest number of each vector: a length is the root of
    the sum of all squares
    """
    weighted = probs * np.abs(moved).max(axis=-1)
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _two_numbers(probs, moved):
    """a vector may have more than two numbers: all their squares count"""
    weighted = probs * np.hypot(moved[:, 0], moved[:, -1])
    return weighted / weighted.sum(axis=-1, keepdims=True)


def _draw_moved(rng):
    """A map, and a vector for each of its keys."""
    Tq, Tk, H = rng.integers(1, 7, 3)
    return rng.dirichlet(np.ones(Tk), Tq), rng.normal(size=(Tk, H))


# ------------------------------------------------------------ without head


def my_without_head(W_o, head, D):
    result = W_o.copy()
    result[head * D : (head + 1) * D] = 0
    return result


def _columns(W_o, head, D):
    """you cleared columns: context @ W_o meets the head's numbers in the
    rows
    """
    result = W_o.copy()
    result[:, head * D : (head + 1) * D] = 0
    return result


def _one_row(W_o, head, D):
    """that is one row: a head has D of them, from head · D on"""
    result = W_o.copy()
    result[head] = 0
    return result


def _all_others(W_o, head, D):
    """only this head is left now: it is the one to remove"""
    return W_o - my_without_head(W_o, head, D)


def _every_nth(W_o, head, D):
    """the heads lie in blocks of D rows, one after the other, not in turns"""
    result = W_o.copy()
    result[head :: len(W_o) // D] = 0
    return result


def _cut_out(W_o, head, D):
    """you cut the rows out, so the matrix no longer fits: set them to 0"""
    return np.delete(W_o, slice(head * D, (head + 1) * D), axis=0)


def _from_the_end(W_o, head, D):
    """you counted the heads from the end: head 0 has the first D rows"""
    return my_without_head(W_o, len(W_o) // D - 1 - head, D)


def _two_rows(W_o, head, D):
    """a head has D rows, not always two"""
    return my_without_head(W_o, head, 2)


def _all_up_to_it(W_o, head, D):
    """the heads before it stay: its rows begin at head · D"""
    result = W_o.copy()
    result[: (head + 1) * D] = 0
    return result


def _draw_output(rng):
    """An output matrix, one of its heads, and the head size."""
    A, D, H = rng.integers(1, 5, 3)
    return rng.normal(size=(A * D, H)), int(rng.integers(A)), int(D)


# -------------------------------------------------------------- patch head


def my_patch_head(own, other, W_o, b_o, head):
    mixed = own.copy()
    mixed[head] = other[head]
    A, T, D = mixed.shape
    return mixed.transpose(1, 0, 2).reshape(T, A * D) @ W_o + b_o


def _others_patched(own, other, W_o, b_o, head):
    """you took all the other heads from the other run: take this one, and
    keep the rest
    """
    return my_patch_head(other, own, W_o, b_o, head)


def _all_patched(own, other, W_o, b_o, head):
    """every head comes from the other run: only one of them should"""
    return my_patch_head(other, other, W_o, b_o, head)


def _nothing_patched(own, other, W_o, b_o, head):
    """this is the output as it was: nothing of the other run is in it"""
    return my_patch_head(own, own, W_o, b_o, head)


def _added_up(own, other, W_o, b_o, head):
    """you added the other run's context to this one's: put it in its place"""
    mixed = own.copy()
    mixed[head] += other[head]
    return my_patch_head(mixed, mixed, W_o, b_o, head)


def _left_out(own, other, W_o, b_o, head):
    """the head is silent: that leaves it out, while here it should say
    what it said in the other run
    """
    return my_patch_head(own, np.zeros_like(own), W_o, b_o, head)


def _no_bias(own, other, W_o, b_o, head):
    """the bias b_o is missing"""
    return my_patch_head(own, other, W_o, b_o, head) - b_o


def _not_transposed(own, other, W_o, b_o, head):
    """the shape is right and the numbers are in disorder: bring the heads
    beside one another with transpose(1, 0, 2) before you reshape
    """
    mixed = own.copy()
    mixed[head] = other[head]
    A, T, D = mixed.shape
    return mixed.reshape(T, A * D) @ W_o + b_o


def _head_alone(own, other, W_o, b_o, head):
    """only the patched head is left: the other heads stay as they were"""
    D = own.shape[-1]
    return other[head] @ W_o[head * D : (head + 1) * D] + b_o


def _before_it(own, other, W_o, b_o, head):
    """all heads up to this one come from the other run: only this one
    should
    """
    mixed = own.copy()
    mixed[: head + 1] = other[: head + 1]
    return my_patch_head(mixed, mixed, W_o, b_o, head)


def _draw_patch(rng):
    """Contexts of two runs, the output's matrix and bias, and a head."""
    A, T, D, H = rng.integers(1, 5, 4)
    own, other = rng.normal(size=(2, A, T, D))
    W_o, b_o = rng.normal(size=(A * D, H)), rng.normal(size=H)
    return own, other, W_o, b_o, int(rng.integers(A))


CONTEXT = np.arange(12.0).reshape(2, 3, 2)
OTHER = np.array([[[3.0, 1], [0, 2], [5, 5]], [[1, 1], [7, 0], [2, -4]]])
THREE_HEADS = np.array([[[1.0, 2]], [[3, 4]], [[5, 6]]])


EXERCISES = (
    Exercise(
        id="11.moved",
        title="What is moved",
        level=2,
        minutes=8,
        task="Write `my_moved_shares(probs, moved)` for probs of shape (Tq, Tk) and "
        "for moved, the vectors that the keys hand over, of shape (Tk, H). Return each "
        "probability times the length of its key's vector, with each row then divided "
        "by its sum.",
        hints=(
            "The length of a vector is the root of the sum of its squares; there is "
            "one for each key, that is, for each column of probs.",
            "lengths = np.linalg.norm(moved, axis=-1); weighted = probs * lengths; "
            "divide by weighted.sum(axis=-1, keepdims=True).",
        ),
        solution=my_moved_shares,
        mistakes=mistakes(
            _not_divided,
            _squared,
            _summed,
            _over_columns,
            _only_probs,
            _added_sizes,
            _sums_in_columns,
            _largest_size,
            _two_numbers,
        ),
        cases=(
            (PROBS, VALUES),
            (LONGER, THREE),
            (LONGER.repeat(2, axis=1)[:1] / 2, W_O[:, :2] - 5),
            (PROBS.T[:, :1] / PROBS.T[:, :1], W_O[:1]),
        ),
        draw=_draw_moved,
    ),
    Exercise(
        id="11.without_head",
        title="Leave a head out",
        level=2,
        minutes=6,
        task="Write `my_without_head(W_o, head, D)`, which returns a copy of the "
        "output matrix W_o, of shape (A · D, H), in which the rows that carry this "
        "head's D numbers are 0.",
        hints=(
            "merge_heads puts the heads side by side: head 0 has the numbers 0 to "
            "D - 1. Which rows of W_o do they meet in context @ W_o?",
            "Copy first: result = W_o.copy(); then "
            "result[head * D:(head + 1) * D] = 0.",
        ),
        solution=my_without_head,
        mistakes=mistakes(
            _columns,
            _one_row,
            _all_others,
            _every_nth,
            _cut_out,
            _from_the_end,
            _two_rows,
            _all_up_to_it,
        ),
        cases=(
            (W_O, 1, 2),
            (WIDE, 0, 2),
            (WIDE, 1, 3),
            (WIDE, 5, 1),
            (WIDE, 1, 2),
            (WIDE[:3, :2], 0, 3),
        ),
        draw=_draw_output,
    ),
    Exercise(
        id="11.patch_head",
        title="A head from another run",
        level=2,
        minutes=10,
        task="Write `my_patch_head(own, other, W_o, b_o, head)`. own and other are the "
        "contexts of all heads in two runs, of shape (A, T, D); W_o (A · D, H) and b_o "
        "(H,) belong to the output. Return the output of attention, of shape (T, H), "
        "with the context of this one head from the other run, and leave own "
        "unchanged.",
        hints=(
            "Copy own, exchange one head, then do what chapter 05 does with a context: "
            "bring the heads beside one another, and apply the output matrix.",
            "mixed = own.copy(); mixed[head] = other[head]; "
            "mixed.transpose(1, 0, 2).reshape(T, A * D) @ W_o + b_o.",
        ),
        solution=my_patch_head,
        mistakes=mistakes(
            _others_patched,
            _all_patched,
            _nothing_patched,
            _added_up,
            _left_out,
            _no_bias,
            _not_transposed,
            _head_alone,
            _before_it,
        ),
        cases=(
            (CONTEXT, OTHER, W_O, W_O[0], 1),
            (CONTEXT, OTHER, W_O[:, :3], W_O[1, :3], 0),
            (THREE_HEADS, THREE_HEADS[::-1] * 2, WIDE, WIDE[4], 2),
            (THREE_HEADS, THREE_HEADS + 1, WIDE, WIDE[5], 1),
            (OTHER[:1], CONTEXT[:1], WIDE[:2], WIDE[0], 0),
        ),
        draw=_draw_patch,
    ),
    Exercise(
        id="11.same_output",
        title="Another row, the same context",
        level=2,
        minutes=5,
        task="The four values are [1, 0], [0, 1], [1, 1] and [0, 0]; the probabilities "
        "[.4, .4, .1, .1] give the context [.5, .5]. Set `other_row` to the list of "
        "four probabilities that gives the same context with nothing for keys 0 and "
        "1.",
        hints=(
            "Only keys 2 and 3 are left. Key 2 hands over [1, 1]: how much of it makes "
            "[.5, .5]?",
            "Half of [1, 1] is [.5, .5]. The rest must go somewhere, for a row sums to "
            "1: key 3 hands over nothing.",
        ),
        solution=[0.0, 0.0, 0.5, 0.5],
        name="other_row",
        why="½ of [1, 1] is the whole context, and key 3, whose value is 0, takes the "
        "rest of the row without a trace.",
        mistakes=(
            Mistake(
                [0.0, 0.0, 0.5, 0.0],
                "the context is right, but the row sums to 0.5: softmax rows sum to 1",
            ),
            Mistake(
                [0.0, 0.0, 1.0, 0.0], "this gives the context [1, 1], twice too much"
            ),
            Mistake(
                [0.1, 0.1, 0.4, 0.4],
                "the context is right; now give keys 0 and 1 nothing at all",
            ),
            Mistake(
                [0.5, 0.5, 0.0, 0.0],
                "the context is right, but it is keys 0 and 1 that should get nothing",
            ),
        ),
    ),
    Exercise(
        id="11.claims",
        title="Three claims",
        level=2,
        minutes=6,
        task="Judge three claims by the numbers of this chapter. (1) In layers 1 to 4 "
        "of MiniLM about half of the attention goes to [CLS], so about half of what is "
        "moved comes from there. (2) Hiding [CLS] from the other tokens changes their "
        "last states more than hiding one word does. (3) A head whose map is the same "
        "in two passages cannot be the reason why their answers differ. Set `claims` "
        "to a list of three True or False.",
        hints=(
            "(1) is about the curves of section 2, (2) about the tokens that were "
            "hidden there, (3) about the two halves of a head in section 4.",
            "(1) Look at the lower curves. (2) Compare the three lines that were "
            "printed. (3) Was it where the head looks, or what it fetches, that "
            "brought the other answer?",
        ),
        solution=[False, True, False],
        name="claims",
        why="Weighted by length, [CLS] moves less than a tenth (1); the model leans on "
        "it all the same, as a sink (2); and the head that decides the colour looks at "
        "the same place in both passages and fetches another thing there (3).",
        mistakes=(
            Mistake(
                [True, True, False],
                "(1) takes probability for what is moved: "
                "weighted by length, [CLS] has less than a tenth",
            ),
            Mistake(
                [False, False, False],
                "(2) holds: without the sink, its attention falls on other words",
            ),
            Mistake(
                [False, True, True],
                "(3) fails: the same map can fetch another value",
            ),
            Mistake(
                [True, True, True], "two of the three fail: look again at (1) and (3)"
            ),
        ),
    ),
)
