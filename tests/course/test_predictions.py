"""What `predict` says: every registered answer is computed anew."""

import math

import numpy as np
import pytest

import bert_np
from bert_np import BertError, softmax
from bert_np.course import predict
from bert_np.course.exercise import all_exercises, all_predictions
from bert_np.course.exercises.ch01_text_to_ids import VOCAB
from bert_np.course.exercises.ch02_embeddings import POSITION, SEGMENT, WORD
from bert_np.course.exercises.ch03_one_head import K, Q, V
from bert_np.tokenizer import basic_split, normalize, wordpiece

PREDICTIONS = all_predictions()
PROBS = softmax(Q @ K.T / 2)
BASE = bert_np.parameter_ledger(bert_np.BertConfig())
COUNT = {part: number for part, _, number in BASE}
EMBEDDINGS = sum(n for part, n in COUNT.items() if part.startswith("embeddings"))
ONE_LAYER = bert_np.BertConfig(num_hidden_layers=1, vocab_size=9)


def append_twice():
    for _ in range(2):
        tokens = ["the", "cat", "sat"]
        tokens = tokens + ["because"]
    return len(tokens)


def divided_by_row_sums():
    m = np.array([[1.0, 2, 0], [1, 3, 1], [0, 2, 2]])
    result = m / m.sum(axis=1)
    right = np.allclose(result.sum(axis=1), 1)
    return "right" if right else "wrong" if result.shape == m.shape else "fails"


def words(text):
    return [word for word, _ in basic_split(normalize(text)[0])]


def cut_changes(word):
    more = wordpiece(word, VOCAB | {"##playa": 99})
    return "yes" if more == ["[UNK]"] != wordpiece(word, VOCAB) else "no"


def the_moves():
    """Whether, normalised over tokens, one vector moves when another is changed."""
    x = WORD[[3, 1, 4]] + POSITION[:3] + SEGMENT[0]
    other = x.copy()
    other[2] = [9, 3, 1, 1]
    first, second = ((y - y.mean(0)) / np.sqrt(y.var(0) + 1e-12) for y in (x, other))
    return "no" if np.allclose(first[0], second[0]) else "yes"


def place_of_epsilon():
    x = np.array([1.0, 1, 1, 1.000002])
    inside = np.sqrt(x.var() + 1e-12)
    return "no" if math.isclose(inside, x.std() + 1e-12, rel_tol=0.01) else "yes"


def spread():
    rng = np.random.default_rng(0)
    sizes = [np.sum(rng.normal(size=(2, 4000, D)).prod(0), -1).std() for D in (16, 256)]
    return {4: "root", 16: "D"}[round(sizes[1] / sizes[0])]


def still_sums_to_one():
    scores, mask = Q @ K.T / 2, np.array([1, 1, 0])
    sums = {"after": softmax(scores) * mask, "before": softmax(scores * mask)}
    (name,) = (name for name in sums if np.allclose(sums[name].sum(-1), 1))
    return name


def price_of_heads():
    def numbers(A):
        shapes = bert_np.parameter_shapes(bert_np.BertConfig(num_attention_heads=A))
        maps = shapes["layers"][0]["attention"].values()
        params = sum(math.prod(shape) for one in maps for shape in one.values())
        _, probs = bert_np.scaled_dot_product(*np.zeros((3, 1, A, 5, 768 // A)))
        return np.array([params, probs.size])

    return numbers(12) / numbers(1)


def swap_is_noticed():
    values, row = np.array([[3.0, 0], [0, 5], [0, 0]]), np.array([0.5, 0.5, 0])
    return "no" if (row @ values == row @ values[[1, 0, 2]]).all() else "yes"


def mean_row_sum():
    rng, kept = np.random.default_rng(0), []
    for _ in range(1000):
        kept.append(bert_np.dropout(PROBS, 0.1, rng).sum(-1))
    return np.mean(kept)


def rows_after_a_naive_reshape():
    q, k = np.random.default_rng(0).normal(size=(2, 5, 6))
    probs = softmax(q.reshape(2, 5, 3) @ k.reshape(2, 5, 3).swapaxes(1, 2))
    return "yes" if np.allclose(probs.sum(-1), 1) else "no"


def height_of_post_norm():
    x = np.random.default_rng(0).normal(size=48)
    return np.linalg.norm(bert_np.layer_norm(x, np.ones(48), np.zeros(48), 1e-12))


def gap_of_gelus():
    grid = np.linspace(-5, 5, 2001)
    return round(np.abs(bert_np.gelu(grid) - bert_np.gelu_tanh(grid)).max(), 4)


def share_moved():
    moved = np.array([0.8, 0.1, 0.1]) * np.linalg.norm(
        [[0.1, 0], [3, 4], [0, 2]], axis=1
    )
    return 100 * moved[0] / moved.sum()


def first_slope():
    def first(x):
        return bert_np.layer_norm(x, np.ones(4), np.zeros(4), 1e-12)[0]

    x, nudge = np.array([1.0, 1, 5, 5]), np.array([1e-5, 0, 0, 0])
    return (first(x + nudge) - first(x - nudge)) / 2e-5


def change_with_the_score_of_cat():
    nudged = softmax(np.array([2.0, 1 + 1e-3, 0])) @ V[:, 0] - PROBS[0] @ V[:, 0]
    return "rise" if nudged > 1e-9 else "fall" if nudged < -1e-9 else "stay"


def naive_softmax_of_1000():
    with np.errstate(all="ignore"):
        e = np.exp(np.array([1000.0, 999]))
        return (e / e.sum())[0]


def naive_loss_of_800():
    with np.errstate(all="ignore"):
        return -np.log(softmax(np.array([800.0, 0, 0, 0])))[1]


ATTENTION, FFN = COUNT["one layer: attention"], COUNT["one layer: ffn"]
SPLIT = "The cat sat because it was tired."
LOST = [word not in VOCAB for word in SPLIT.split()]
MINILM = bert_np.BertConfig(hidden_size=384, intermediate_size=1536)
INNER = bert_np.parameter_shapes(MINILM)["layers"][0]["ffn"]["inner"]["W"]
BACKWARDS = int.from_bytes(bytes([200] + 7 * [0]), "big")
COMPUTED = {
    "00.twice": append_twice,
    "00.entry": lambda: (np.array([[1, 0], [1, 1], [0, 2]])
                         @ np.array([[1, 0], [2, 1], [0, 1]]).T)[1, 1],
    "00.silent": divided_by_row_sums,
    "01.lost": lambda: sum(LOST),
    "01.elan": lambda: words("Élan, élan"),
    "01.longest": lambda: wordpiece("unable", VOCAB)[1],
    "01.more": lambda: cut_changes("unplayable"),
    "02.minus_one": lambda: "last" if (WORD[-1] == WORD[len(WORD) - 1]).all() else "",
    "02.cat": lambda: WORD[1] + POSITION[1] + SEGMENT[0],
    "02.leak": the_moves,
    "02.place": place_of_epsilon,
    "03.sat": lambda: round(PROBS[0, 2], 4),
    "03.back": lambda: round(PROBS[2, 0], 4),
    "03.large": naive_softmax_of_1000,
    "03.spread": spread,
    "04.still": still_sums_to_one,
    "04.padded": lambda: softmax(np.array([0, 0, -np.inf])),
    "05.price": price_of_heads,
    "05.noticed": swap_is_noticed,
    "05.average": lambda: round(mean_row_sum(), 2),
    "05.naive": rows_after_a_naive_reshape,
    "06.forms": gap_of_gelus,
    "06.height": lambda: round(height_of_post_norm(), 2),
    "07.part": lambda: "feed-forward" if FFN > ATTENTION else "attention",
    "07.embeddings": lambda: round(100 * EMBEDDINGS / COUNT["model"]),
    "07.head": lambda: "yes" if COUNT["MLM head"] > EMBEDDINGS else "no",
    "08.alike": lambda: round(-np.log(softmax(np.zeros(4)))[0], 4),
    "08.sure": naive_loss_of_800,
    "09.backwards": lambda: float(f"{BACKWARDS:.2e}"),
    "09.millions": lambda: round(90_868_376 / 4 / 1e6, 1),
    "09.shape": lambda: INNER[::-1],
    "09.third": lambda: int(sorted(map(str, range(12)))[2]),
    "11.share": lambda: round(share_moved(), 2),
    "12.cat": change_with_the_score_of_cat,
    "12.slope": lambda: round(first_slope(), 6),
    "12.nothing": lambda: round(math.log(140) + math.log(2), 2),
}  # fmt: skip


@pytest.mark.parametrize("prediction_id", PREDICTIONS)
def test_a_registered_answer_is_what_is_computed(prediction_id):
    stored, found = PREDICTIONS[prediction_id].answer, COMPUTED[prediction_id]()
    np.testing.assert_array_equal(found, stored)


def test_predictions_are_complete_and_have_ids_of_their_own():
    assert COMPUTED.keys() == PREDICTIONS.keys()
    assert not PREDICTIONS.keys() & all_exercises().keys()
    for prediction in PREDICTIONS.values():
        assert prediction.question.endswith("?") and prediction.why.endswith(".")


@pytest.mark.parametrize("prediction_id, guess, start", [
    ("03.sat", 0, "03.sat: you said 0, the answer is 0.09. exp(0) is 1, not 0"),
    ("03.sat", "0.09", "03.sat: right, 0.09. "),
    ("03.sat", 0.091, "03.sat: right, 0.09. "),
    ("03.large", float("nan"), "03.large: right, nan. "),
    ("03.large", 0.73, "03.large: you said 0.73, the answer is nan. "),
    ("08.sure", 800, "08.sure: you said 800, the answer is inf. "),
    ("08.sure", np.inf, "08.sure: right, inf. "),
    ("02.leak", True, "02.leak: right, yes. "),
    ("02.leak", "No!", "02.leak: you said No!, the answer is yes. "),
    ("05.price", (12, 12), "05.price: you said [12, 12], the answer is [1, 12]. "),
    ("05.price", np.array([1.0, 12.0]), "05.price: right, [1, 12]. "),
    ("01.elan", ["Elan", ",", "elan"], "01.elan: right, [elan, ,, elan]. "),
    ("03.spread", "like √D", "03.spread: you said like √D, the answer is root. "),
    ("03.sat", object(), "03.sat: you said something of type object, the answer is"),
    pytest.param("03.sat", 10**5000, "03.sat: you said int of 16610 bits", id="huge"),
    ("03.sat", "x" * 10**6, "03.sat: you said 'xxxx"),
])  # fmt: skip
def test_a_guess_is_taken_and_the_answer_is_told_with_its_reason(
    prediction_id, guess, start, capsys
):
    predict(prediction_id, guess)
    out = capsys.readouterr().out
    assert out.startswith(start) and out.count("\n") == 1
    assert out.endswith(PREDICTIONS[prediction_id].why + "\n")


@pytest.mark.parametrize("prediction_id", PREDICTIONS)
def test_nothing_is_given_away_before_the_guess(prediction_id, capsys):
    predict(prediction_id, ...)
    out, prediction = capsys.readouterr().out, PREDICTIONS[prediction_id]
    assert out.startswith(f"{prediction_id}: {prediction.question} Put your guess")
    assert prediction.why not in out


def test_an_unknown_prediction_names_those_near():
    with pytest.raises(BertError, match="allowed: 03.sat, 03.back"):
        predict("03.softmax", 1)
