"""Examples: read from files, split, turned into ids and labels, batched."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_np import BertConfig, BertError
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.training.examples import (
    Row,
    batches_by_length,
    encode_examples,
    find_labels,
    find_problem,
    read_examples,
    split_examples,
)
from bert_np.training.frozen import pad_batch

WORDS = ["the", "un", "##play", "##able", "game", "who", "won", "?", "anna"]
TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, *WORDS])
CONFIG = BertConfig(
    vocab_size=14,
    hidden_size=6,
    num_hidden_layers=1,
    num_attention_heads=3,
    intermediate_size=7,
    max_position_embeddings=12,
)


def tokens_of(row):
    return [TOKENIZER.tokens[i] for i in row.input_ids]


# ------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "text, options, expected",
    [
        ("good\tyes\n\nbad\tno\r\n", {}, [("good", "yes"), ("bad", "no")]),
        ("a\tb\tno", {}, [(("a", "b"), "no")]),
        ("s\t1\tgood", {"columns": [3, 2]}, [("good", "1")]),
        ("a\tx, y", {"problem": "multi_label_classification"}, [("a", ["x", "y"])]),
        ("a\t", {"problem": "multi_label_classification"}, [("a", [])]),
        ("a\t-0.5", {"problem": "regression"}, [("a", -0.5)]),
        (
            "# id\nA\tDET\t2\ncat\tNOUN\t0\n\n\n#\tPUNCT\t0\n",
            {"task": "token"},
            [(["A", "cat"], ["DET", "NOUN"]), (["#"], ["PUNCT"])],
        ),
        (
            "Who?\tAnna, of all.\tAnna\nWhy?\tAnna.\t",
            {"task": "span"},
            [(("Who?", "Anna, of all."), (0, 4)), (("Why?", "Anna."), None)],
        ),
    ],
)
def test_files(tmp_path, text, options, expected):
    (tmp_path / "examples.tsv").write_bytes(text.encode())
    assert read_examples(tmp_path / "examples.tsv", **options) == expected


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("good\n", {}, "line 1, has 1 columns, allowed: a text or two"),
        ("a\tb\tc\td", {}, "line 1, has 4 columns.*choose them with columns"),
        ("a\tb\n\na", {"columns": [1, 2]}, "line 3, has 1 columns, needed: column 2"),
        ("a\tx", {"problem": "regression"}, "line 1: 'x', allowed: a number"),
        ("q\ttext\tno", {"task": "span"}, "line 1: the answer 'no' is not in the text"),
        ("a\tb", {"task": "span"}, "line 1, has 2 columns, allowed: question, text"),
        ("a\tb", {"columns": [1]}, "columns = .1., allowed for a sequence: 2 or 3"),
        ("a\tb", {"columns": [0, 1]}, "columns = 0, allowed"),
        ("a\tb", {"task": "tokens"}, "task = 'tokens', allowed: sequence, token, span"),
    ],
)
def test_wrong_files(tmp_path, text, options, message):
    (tmp_path / "examples.tsv").write_text(text)
    with pytest.raises(BertError, match=message):
        read_examples(tmp_path / "examples.tsv", **options)


# ------------------------------------------------------------------- split


@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30),
    share=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)
def test_a_split_keeps_equal_texts_together(texts, share, seed):
    examples = [(text, i) for i, text in enumerate(texts)]
    others, apart = split_examples(examples, share, np.random.default_rng(seed))
    assert sorted(others + apart, key=lambda example: example[1]) == examples
    assert not {text for text, _ in others} & {text for text, _ in apart}
    assert len(apart) <= share * len(examples)


def test_a_split_is_random_and_full():
    examples = [(str(i), i) for i in range(100)]
    found = [
        split_examples(examples, 0.3, np.random.default_rng(seed))[1]
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]
    assert [len(part) for part in found] == [30, 30, 30]


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    "labels, problem, names",
    [
        (["yes", "no", "yes"], "single_label_classification", ("no", "yes")),
        ([10, 9, 10], "single_label_classification", ("9", "10")),
        ([["b"], [], ["b", "a"]], "multi_label_classification", ("a", "b")),
        ([1.0, 2.5], "regression", ("score",)),
    ],
)
def test_the_labels_tell_the_problem(labels, problem, names):
    examples = [("the game", label) for label in labels]
    assert find_problem(examples) == problem
    assert find_labels(examples) == names


def test_labels_of_words_and_of_spans():
    assert find_labels([(["a", "b"], ["Y", "X"]), (["c"], ["Y"])], "token") == (
        "X",
        "Y",
    )
    assert find_labels([(("a", "b"), (0, 1))], "span") == ()


# ------------------------------------------------------------------ arrays


def test_labels_of_texts():
    config = replace(CONFIG, labels=("no", "yes"))
    one, two = encode_examples(
        [("the game", "yes"), (("the", "game"), "no")], config, TOKENIZER
    )
    assert tokens_of(one) == ["[CLS]", "the", "game", "[SEP]"]
    assert tokens_of(two) == ["[CLS]", "the", "[SEP]", "game", "[SEP]"]
    assert two.segment_ids.tolist() == [0, 0, 0, 1, 1]
    assert (one.labels, two.labels) == (1, 0)
    several = replace(config, problem_type="multi_label_classification")
    rows = encode_examples([("a", ["yes"]), ("b", [])], several, TOKENIZER)
    assert [row.labels.tolist() for row in rows] == [[0, 1], [0, 0]]
    number = replace(config, labels=("score",), problem_type="regression")
    assert encode_examples([("a", 2.5)], number, TOKENIZER)[0].labels.tolist() == [2.5]


def test_the_first_piece_of_a_word_has_its_label():
    config = replace(CONFIG, labels=("D", "A", "N"))
    words, labels = ["the", "unplayable", "\u200b", "game"], ["D", "A", "N", "N"]
    (row,) = encode_examples([(words, labels)], config, TOKENIZER, "token")
    assert tokens_of(row) == ["[CLS]", "the", "un", "##play", "##able", "game", "[SEP]"]
    assert row.labels.tolist() == [-100, 0, 1, -100, -100, 2, -100]
    (row,) = encode_examples(
        [(words, labels)], config, TOKENIZER, "token", max_length=5
    )
    assert row.labels.tolist() == [-100, 0, 1, -100, -100]


def test_an_answer_is_from_its_first_piece_to_its_last():
    text = "anna won the unplayable game"
    examples = [(("who won", text), place) for place in [(9, 23), (15, 16), None]]
    rows = encode_examples(examples, CONFIG, TOKENIZER, "span", max_length=12)
    pieces = ["anna", "won", "the", "un", "##play", "##able", "game", "[SEP]"]
    assert tokens_of(rows[0])[4:] == pieces
    assert rows[0].segment_ids.tolist() == [0] * 4 + [1] * 8
    assert [row.labels.tolist() for row in rows] == [[6, 9], [8, 8], [0, 0]]


def test_of_a_long_text_the_answer_is_kept():
    text, where = "the " * 9 + "game won " + "who " * 9, (36, 44)
    examples = [(("anna", text), place) for place in (where, None, (0, 40))]
    rows = encode_examples(examples, CONFIG, TOKENIZER, "span", max_length=9)
    words = [" ".join(tokens_of(row)[3:-1]) for row in rows[:2]]
    # 20 pieces in windows of 5 that share 2: the answer is 9 and 10.
    assert words == ["the the the game won", "the the the the the"]
    assert rows[0].labels.tolist() == [6, 7] and rows[2] is None
    last = encode_examples([(("anna", text), (77, 80))], CONFIG, TOKENIZER, "span", 9)
    assert tokens_of(last[0])[last[0].labels[0]] == "who"


@pytest.mark.parametrize(
    "examples, task, message",
    [
        ([], "sequence", "examples is empty, allowed: a list of pairs"),
        ("ab", "sequence", "examples is str"),
        ([("a", "x"), "b"], "sequence", r"examples\[1\] = 'b', allowed: a pair"),
        ([("a", "maybe")], "sequence", r"examples\[0\]: label 'maybe', allowed"),
        (
            [("a", "no"), ("b", ["no"])],
            "sequence",
            "one label, several labels; allowed",
        ),
        ([("a", True)], "sequence", r"examples\[0\]: label True, allowed"),
        ([("a", float("nan"))], "sequence", "label nan, allowed: a finite number"),
        ([(7, "no")], "sequence", r"examples\[0\]: int, allowed: a text"),
        ([(["a", "b"], "no")], "sequence", r"\['a', 'b'\], allowed: a text or a pair"),
        ([("\ud800", "no")], "sequence", r"examples\[0\]: text\[0\] is U\+D800"),
        ([(["a"], ["N", "N"])], "token", "1 words, 2 labels, allowed: as many"),
        ([("a b", ["N", "N"])], "token", "words = 'a b', allowed: a list of str"),
        ([(("q", "text"), (2, 2))], "span", "start = 2, allowed: 0..1"),
        ([(("q", "text"), (0, 5))], "span", "end = 5, allowed: 1..4"),
        ([("text", (0, 1))], "span", r"'text', allowed: \(question, text\)"),
    ],
)
def test_wrong_examples(examples, task, message):
    config = replace(CONFIG, labels=("no", "yes"))
    with pytest.raises(BertError, match=message):
        encode_examples(examples, config, TOKENIZER, task)


# ----------------------------------------------------------------- batches


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    size=st.integers(1, 8),
    seed=st.none() | st.integers(0, 99),
)
def test_batches_hold_each_text_once(lengths, size, seed):
    rng = None if seed is None else np.random.default_rng(seed)
    batches = batches_by_length(lengths, size, rng)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert sorted(map(len, batches))[1:] == [size] * (len(batches) - 1)


def test_batches_are_of_similar_length_and_differ():
    lengths = np.random.default_rng(0).integers(3, 64, 1000)
    first, second = (
        batches_by_length(lengths, 20, np.random.default_rng(seed)) for seed in (1, 2)
    )
    padded = sum(len(batch) * lengths[batch].max() for batch in first)
    assert lengths.sum() < padded < 1.15 * lengths.sum()
    assert {frozenset(batch) for batch in first} != {
        frozenset(batch) for batch in second
    }
    means = [lengths[batch].mean() for batch in first]
    assert np.corrcoef(means, range(len(means)))[0, 1] < 0.5  # shuffled


def test_rows_are_padded():
    rows = [
        Row(np.array([2, 5, 3]), np.array([0, 0, 0]), np.array([-100, 1, -100])),
        Row(np.array([2, 3]), np.array([0, 1]), np.array([-100, -100])),
    ]
    hidden = [np.ones((3, 4), np.float32), np.ones((2, 4), np.float32)]
    batch = pad_batch(rows, 7, hidden)
    assert batch["input_ids"].tolist() == [[2, 5, 3], [2, 3, 7]]
    assert batch["segment_ids"].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch["labels"].tolist() == [[-100, 1, -100], [-100, -100, -100]]
    assert batch["hidden"].sum(axis=-1).tolist() == [[4, 4, 4], [4, 4, 0]]
    assert batch["hidden"].dtype == np.float32
    spans = [row._replace(labels=np.array([0, 1])) for row in rows]
    assert pad_batch(spans, 0)["labels"].tolist() == [[0, 1], [0, 1]]
