"""Exercises of chapter 02: from ids to normalised vectors."""

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes

WORD = np.array(
    [[0.0, 0, 0, 0], [0, 3, -1, 2], [1, 4, 0, 3], [0, 1, 3, 4], [2, 2, 0, 0]]
)  # (V, H)
POSITION = np.array(
    [
        [1.0, 0, 1, 0],
        [0, 1, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 1, 0],
    ]
)  # (P, H)
SEGMENT = np.array([[0.0, 0, 1, 1], [1, 1, 0, 0]])  # (S, H)


# ----------------------------------------------------------------- one-hot


def my_one_hot(ids, V):
    return (ids[:, None] == np.arange(V)).astype(float)


def _columns(ids, V):
    """your shape is (V, T): a row belongs to a token, so T comes first"""
    return my_one_hot(ids, V).T


def _counts(ids, V):
    """you counted the ids and lost their order: keep a row for each token"""
    return my_one_hot(ids, V).sum(axis=0)


def _from_one(ids, V):
    """ids count from 0: id 0 has its 1 in column 0"""
    return my_one_hot(ids - 1, V)


def _as_wide_as_the_ids(ids, V):
    """your width is the largest id + 1: it must be V, one column for each
    word of the vocabulary
    """
    return my_one_hot(ids, ids.max() + 1)


def _draw_ids(rng):
    """Some ids of a vocabulary that is mostly larger than they show."""
    V = rng.integers(1, 9)
    return rng.integers(0, V, rng.integers(1, 7)), int(V)


# --------------------------------------------------------------------- sum


def my_embedding_sum(input_ids, segment_ids, word, position, segment):
    return word[input_ids] + position[: len(input_ids)] + segment[segment_ids]


def _position_by_id(input_ids, segment_ids, word, position, segment):
    """the position row is found by the place t of the token, not by its id"""
    return word[input_ids] + position[input_ids] + segment[segment_ids]


def _first_position(input_ids, segment_ids, word, position, segment):
    """every token got position 0: token t takes row t"""
    return word[input_ids] + position[0] + segment[segment_ids]


def _positions_from_one(input_ids, segment_ids, word, position, segment):
    """positions count from 0: the first token takes row 0"""
    places = np.arange(len(input_ids)) + 1
    return word[input_ids] + position[places] + segment[segment_ids]


def _no_segment(input_ids, segment_ids, word, position, segment):
    """the segment row is missing; segment 0 has a vector too"""
    return word[input_ids] + position[: len(input_ids)]


def _segment_of_the_first(input_ids, segment_ids, word, position, segment):
    """every token got the first token's segment: each has its own"""
    return word[input_ids] + position[: len(input_ids)] + segment[segment_ids[0]]


def _last_positions(input_ids, segment_ids, word, position, segment):
    """you took the last rows of the position table: token t takes row t"""
    return word[input_ids] + position[-len(input_ids) :] + segment[segment_ids]


def _two_segments(input_ids, segment_ids, word, position, segment):
    """there may be more segments than two: look each id up in the table"""
    rows = segment[np.minimum(segment_ids, 1)]
    return word[input_ids] + position[: len(input_ids)] + rows


def _draw_tables(rng):
    """Tables of different sizes, with ids and segments into them."""
    V, P, S, H = rng.permutation([5, 7, 3, 4])
    T = rng.integers(1, P + 1)
    tables = [rng.normal(size=(rows, H)) for rows in (V, P, S)]
    return rng.integers(0, V, T), rng.integers(0, S, T), *tables


# -------------------------------------------------------------- layer norm


def my_layer_norm(x, gamma, beta, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(variance + eps) + beta


def _sample_variance(x, gamma, beta, eps):
    """you divided the squares by n - 1: LayerNorm divides by n"""
    variance = x.var(axis=-1, keepdims=True, ddof=1)
    return gamma * (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + eps) + beta


def _over_tokens(x, gamma, beta, eps):
    """you normalised over the tokens, axis 0: each token is normalised
    alone, axis -1
    """
    return gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) + beta


def _over_everything(x, gamma, beta, eps):
    """one mean for the whole array: each row has its own, axis=-1 with
    keepdims=True
    """
    return gamma * (x - x.mean()) / np.sqrt(x.var() + eps) + beta


def _epsilon_outside(x, gamma, beta, eps):
    """epsilon belongs inside the root: sqrt(variance + eps)"""
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / (x.std(axis=-1, keepdims=True) + eps) + beta


def _no_scale_and_shift(x, gamma, beta, eps):
    """gamma and beta are missing: multiply, then add, at the end"""
    return my_layer_norm(x, 1, 0, eps)


def _variance_not_root(x, gamma, beta, eps):
    """divide by the root of the variance, not by the variance"""
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / (x.var(axis=-1, keepdims=True) + eps) + beta


def _mean_of_all(x, gamma, beta, eps):
    """you subtracted the mean of the whole array: each row has its own"""
    return gamma * (x - x.mean()) / np.sqrt(x.var(-1, keepdims=True) + eps) + beta


def _one_gamma(x, gamma, beta, eps):
    """gamma has H numbers, one per place: you used the first for all"""
    return my_layer_norm(x, gamma[0], beta, eps)


def _no_epsilon(x, gamma, beta, eps):
    """epsilon is missing: a row of equal numbers has no variance"""
    return my_layer_norm(x, gamma, beta, 0)


def _own_epsilon(x, gamma, beta, eps):
    """epsilon is an argument: take the one that is given"""
    return my_layer_norm(x, gamma, beta, 1e-12)


def _shifted_first(x, gamma, beta, eps):
    """first multiply by gamma, then add beta"""
    return gamma * (my_layer_norm(x, 1, 0, eps) + beta)


def _draw_rows(rng):
    """Rows at any place and of any spread, with a gamma and beta of their own."""
    T, H = rng.integers(1, 6), rng.integers(2, 8)
    spread, place = ((1e-6, 0), (1, 0), (1, 100), (50, -20))[rng.integers(4)]
    x = rng.normal(place, spread, (T, H))
    return x, *rng.normal(size=(2, H)), float(rng.choice([1e-12, 1e-3, 0.5]))


# ------------------------------------------------------------------- embed


def my_embed(input_ids, segment_ids, params, eps):
    T = input_ids.shape[1]
    x = (
        params["word"][input_ids]
        + params["position"][:T]
        + params["segment"][segment_ids]
    )
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    gamma, beta = params["norm"]["gamma"], params["norm"]["beta"]
    return gamma * (x - mean) / np.sqrt(variance + eps) + beta


def _without(name):
    """Return my_embed with one table set to 0."""

    def embed(input_ids, segment_ids, params, eps):
        tables = {**params, name: 0 * params[name]}
        return my_embed(input_ids, segment_ids, tables, eps)

    return embed


def _no_position(input_ids, segment_ids, params, eps):
    """the position rows are missing"""
    return _without("position")(input_ids, segment_ids, params, eps)


def _no_segment_row(input_ids, segment_ids, params, eps):
    """the segment rows are missing; segment 0 has a vector too"""
    return _without("segment")(input_ids, segment_ids, params, eps)


def _only_word(input_ids, segment_ids, params, eps):
    """position and segment are missing: three rows are added"""
    tables = {**params, "position": 0 * params["position"]}
    return _no_segment_row(input_ids, segment_ids, tables, eps)


def _not_normalised(input_ids, segment_ids, params, eps):
    """the LayerNorm is missing"""
    T = input_ids.shape[1]
    rows = params["position"][:T] + params["segment"][segment_ids]
    return params["word"][input_ids] + rows


def _norm_before_the_sum(input_ids, segment_ids, params, eps):
    """only the word rows are normalised: add first, then normalise the sum"""
    tables = {**params, "position": 0 * params["position"]}
    tables["segment"] = 0 * params["segment"]
    x = my_embed(input_ids, segment_ids, tables, eps)
    T = input_ids.shape[1]
    return x + params["position"][:T] + params["segment"][segment_ids]


def _position_of_the_sequence(input_ids, segment_ids, params, eps):
    """a whole sequence got one position: token t takes row t, so the position
    rows have the shape (T, H)
    """
    x = np.zeros((*input_ids.shape, params["word"].shape[1]))
    for b, (ids, segments) in enumerate(zip(input_ids, segment_ids)):
        first = {**params, "position": np.tile(params["position"][b], (len(ids), 1))}
        x[b] = my_embed(ids[None], segments[None], first, eps)[0]
    return x


def _norm_without_parameters(input_ids, segment_ids, params, eps):
    """gamma and beta of the norm are missing"""
    norm = {"gamma": 1, "beta": 0}
    return my_embed(input_ids, segment_ids, {**params, "norm": norm}, eps)


def _norm_over_tokens(input_ids, segment_ids, params, eps):
    """you normalised over the tokens: each token is normalised alone, over the
    last axis
    """
    x = _not_normalised(input_ids, segment_ids, params, eps)
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + eps)
    return params["norm"]["gamma"] * x + params["norm"]["beta"]


def _draw_embeddings(rng):
    """A batch with tables of different sizes, and a norm that does something."""
    V, P, S, H = rng.permutation([5, 8, 3, 4])
    B, T = rng.integers(1, 4), rng.integers(1, min(P, 6) + 1)
    params = {
        name: rng.normal(size=(rows, H))
        for name, rows in (("word", V), ("position", P), ("segment", S))
    }
    params["norm"] = dict(zip(("gamma", "beta"), rng.normal(size=(2, H))))
    ids, segments = rng.integers(0, V, (B, T)), rng.integers(0, S, (B, T))
    return ids, segments, params, float(rng.choice([1e-12, 1e-3, 0.5]))


EMBEDDINGS = {
    "word": WORD,
    "position": POSITION,
    "segment": SEGMENT,
    "norm": {
        "gamma": np.array([1.0, -2.0, 0.5, 3.0]),
        "beta": np.array([0.1, 0.0, -4.0, 1.0]),
    },
}

EXERCISES = (
    Exercise(
        id="02.one_hot",
        title="A lookup is a matrix product",
        level=1,
        minutes=6,
        task="Write `my_one_hot(ids, V)` for ids of shape (T,): an array of shape "
        "(T, V) with a single 1 in each row, at the place of the id. Then "
        "my_one_hot(ids, V) @ word equals word[ids].",
        hints=(
            "Each row answers V questions: is the id 0? is it 1? is it 2? ...",
            "Compare ids[:, None], shape (T, 1), with np.arange(V), shape (V,). Turn "
            "the result into floats.",
        ),
        solution=my_one_hot,
        mistakes=mistakes(_columns, _counts, _from_one, _as_wide_as_the_ids),
        cases=(
            (np.array([3, 1, 4]), 5),
            (np.array([0, 2, 2, 1]), 3),
            (np.array([6]), 7),
            (np.array([1, 0]), 6),
            (np.array([0, 0, 1, 0]), 4),
        ),
        draw=_draw_ids,
    ),
    Exercise(
        id="02.sum",
        title="Three vectors for each token",
        level=1,
        minutes=6,
        task="Write `my_embedding_sum(input_ids, segment_ids, word, position, "
        "segment)` for ids of shape (T,) and the three tables: the sum before "
        "LayerNorm, of shape (T, H).",
        hints=(
            "The word row is found by the id, the segment row by the segment id. "
            "What finds the position row?",
            "Token t takes row t: position[: len(input_ids)] has the shape (T, H).",
        ),
        solution=my_embedding_sum,
        mistakes=mistakes(
            _position_by_id,
            _first_position,
            _positions_from_one,
            _no_segment,
            _segment_of_the_first,
            _last_positions,
            _two_segments,
        ),
        cases=(
            (np.array([3, 1, 4]), np.array([0, 0, 1]), WORD, POSITION, SEGMENT),
            (np.array([1, 4, 2, 1]), np.array([0, 1, 1, 1]), WORD, POSITION, SEGMENT),
            (np.array([2]), np.array([1]), WORD, POSITION, SEGMENT),
            (
                np.array([4, 1, 0, 4]),
                np.array([2, 0, 1, 2]),
                WORD,
                POSITION[2:],
                WORD[1:4] + 0.5,
            ),
        ),
        draw=_draw_tables,
    ),
    Exercise(
        id="02.normed",
        title="LayerNorm in your head",
        level=1,
        minutes=4,
        task="[1, 1, 5, 5] becomes [-1, -1, 1, 1]. What becomes of [110, 110, 150, "
        "150], which is 10 times as large and 100 higher? Set `normed` to a list "
        "of four numbers (gamma 1, beta 0, epsilon 0).",
        hints=(
            "First subtract the mean. What is left of the 100 that was added?",
            "The deviation is 10 times as large too. Divide by it.",
        ),
        solution=[-1.0, -1.0, 1.0, 1.0],
        name="normed",
        why="The norm takes out both the 100 that was added and the factor 10: only "
        "where each number lies among the others is left.",
        tolerance=1e-3,
        mistakes=(
            Mistake(
                [-10.0, -10.0, 10.0, 10.0],
                "the deviation grew with the numbers: "
                "dividing by it, 20, takes the factor 10 away too",
            ),
            Mistake(
                [-20.0, -20.0, 20.0, 20.0],
                "the mean is gone, but you have not yet divided by the deviation, 20",
            ),
            Mistake(
                [-0.8660254, -0.8660254, 0.8660254, 0.8660254],
                "you divided the squares by n - 1: LayerNorm divides by n",
            ),
        ),
    ),
    Exercise(
        id="02.layer_norm",
        title="LayerNorm",
        level=2,
        minutes=8,
        task="Write `my_layer_norm(x, gamma, beta, eps)` for x of shape (T, H): each "
        "row gets mean 0 and variance 1, then is multiplied by gamma and shifted "
        "by beta. Epsilon stands inside the root.",
        hints=(
            "Everything happens within a row: the mean and the variance have the "
            "shape (T, 1).",
            "centred = x - x.mean(axis=-1, keepdims=True); the variance is the mean "
            "of centred squared; divide by np.sqrt(variance + eps).",
        ),
        solution=my_layer_norm,
        mistakes=mistakes(
            _sample_variance,
            _over_tokens,
            _over_everything,
            _epsilon_outside,
            _no_scale_and_shift,
            _variance_not_root,
            _no_epsilon,
            _own_epsilon,
            _shifted_first,
            _mean_of_all,
            _one_gamma,
        ),
        cases=(
            (
                np.array([[1.0, 1, 5, 5], [0, 4, 0, 4], [3, 3, 1, 0]]),
                np.ones(4),
                np.zeros(4),
                1e-12,
            ),
            (
                np.array([[1.0, 1, 2, 2], [0, 4, 0, 2]]),
                np.array([1.0, 2, 1, 3]),
                np.array([0.5, 0, 0, 1]),
                0.5,
            ),
            (
                np.array([[7.7, 7.7, 7.7], [1e-6, 0, 2e-6]]),
                np.array([1.0, -2, 3]),
                np.array([0.5, 1, -1]),
                1e-12,
            ),
            (np.array([[2.0, 4.5]]), np.array([3.0, 2]), np.array([-1.0, 1]), 1e-3),
        ),
        draw=_draw_rows,
    ),
    Exercise(
        id="02.embed",
        title="From ids to what layer 0 sees",
        level=2,
        minutes=8,
        task="Write `my_embed(input_ids, segment_ids, params, eps)` for ids of shape "
        '(B, T). params holds the tables "word", "position" and "segment", '
        'and "norm" with "gamma" and "beta". Return the normalised sums, of '
        "shape (B, T, H). You may call your LayerNorm.",
        hints=(
            "Three lookups, one sum, one norm. Which of the three tables is not looked "
            "up with an array of ids?",
            'params["position"][:T] has the shape (T, H); added to (B, T, H) it is the '
            "same for every sequence. Then LayerNorm over the last axis.",
        ),
        solution=my_embed,
        mistakes=mistakes(
            _no_position,
            _no_segment_row,
            _only_word,
            _not_normalised,
            _norm_before_the_sum,
            _position_of_the_sequence,
            _norm_without_parameters,
            _norm_over_tokens,
        ),
        cases=(
            (np.array([[3, 1, 4]]), np.zeros((1, 3), int), EMBEDDINGS, 1e-12),
            (
                np.array([[3, 1, 4, 2, 0], [1, 3, 0, 4, 2]]),
                np.array([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]]),
                EMBEDDINGS,
                0.25,
            ),
            (np.array([[2], [4]]), np.array([[1], [0]]), EMBEDDINGS, 1e-3),
        ),
        draw=_draw_embeddings,
    ),
    Exercise(
        id="02.order",
        title="What survives a swap?",
        level=2,
        minutes=4,
        task="BERT reads *the cat sat*, then *sat cat the*. Compare the final vectors "
        "of *the*. Set `same` to a list of two bools: are they the same (a) with "
        "the position table set to 0, (b) with the position table as it is?",
        hints=(
            "Without positions, what could tell the first token from the last?",
            "Attention sums over all keys, in whatever order they stand. A position "
            "vector travels with its place, not with its word.",
        ),
        solution=[True, False],
        name="same",
        why="Attention sums over all keys in whatever order they stand: only the "
        "position table tells first from last.",
        mistakes=(
            Mistake(
                [True, True],
                "with positions the sum of the word and row 0 is not "
                "that of the word and row 2",
            ),
            Mistake(
                [False, False],
                "without positions only the words go in, and they are the same three",
            ),
            Mistake(
                [False, True],
                "the other way round: it is the position table that "
                "makes order visible",
            ),
        ),
    ),
)
