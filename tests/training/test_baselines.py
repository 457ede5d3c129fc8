"""The simple methods: what they can learn, and what they cannot."""

import numpy as np
import pytest

from bert_np import BertError, functional
from bert_np.training import baselines

RNG = np.random.default_rng


def test_logistic_regression_is_at_the_minimum():
    rng = RNG(0)
    x, labels, penalty = rng.normal(size=(60, 4)), rng.integers(0, 3, 60), 0.05
    x[np.arange(60), labels] += 1

    def loss(params):
        probs = functional.softmax(x @ params["W"] + params["b"])
        of_labels = probs[np.arange(60), labels]
        return -np.log(of_labels).mean() + penalty / 2 * (params["W"] ** 2).sum()

    params = baselines.logistic_regression(x, labels, 3, penalty)
    least = loss(params)
    for _ in range(50):
        step = {name: 0.03 * rng.normal(size=params[name].shape) for name in params}
        assert least < loss({name: params[name] + step[name] for name in params})


def test_a_bag_of_words_knows_words_and_not_their_order():
    rng = RNG(1)
    fillers = [[f"w{i}" for i in rng.integers(0, 30, 6)] for _ in range(200)]
    praise = [(" ".join([*words, "Great!"]), 1) for words in fillers[:100]]
    blame = [(" ".join([*words, "awful"]), 0) for words in fillers[100:]]
    asked = [("w1 great w7", 1), ("w3, awful", 0), ("nothing seen", 0)]
    found = baselines.bag_of_words_answers(praise + blame, asked, RNG(0))
    assert found[:2] == ["1", "0"]
    pairs = [("a bites b", "x"), ("b bites a", "y")] * 50
    found = baselines.bag_of_words_answers(pairs, pairs, RNG(0))
    assert len(set(found)) == 1


def test_the_majority_label_of_each_word():
    training = [
        (["the", "run", "the"], ["D", "N", "D"]),
        (["run", "run"], ["V", "V"]),
        (["x", "y"], ["P", "P"]),
        (["z"], ["N"]),
    ]
    asked = [(["run", "the", "new"], ["N", "D", "N"])]
    assert baselines.majority_answers(training, asked) == [["V", "D", "P"]]


def test_frozen_vectors_separate_what_the_model_separates():
    from bert_np import load_pretrained

    model = load_pretrained("toy")
    training = [("the cat sat .", "cat"), ("the dog sat .", "dog")] * 20
    asked = [("the dog sat .", "dog"), ("the cat sat .", "cat")]
    found = baselines.frozen_vectors_answers(training, asked, RNG(0), model)
    assert found == ["dog", "cat"]


@pytest.mark.parametrize(
    "training, message",
    [
        ([("a", 1.5)], "a number, allowed: one label"),
        ([("a", ["x"])], "several labels, allowed: one label"),
        ([], "examples is empty"),
    ],
)
def test_what_no_baseline_can_learn(training, message):
    with pytest.raises(BertError, match=message):
        baselines.bag_of_words_answers(training, [("a", "x")], RNG(0))
