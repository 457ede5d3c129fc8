"""Masked words and the next sentence, against the model's logits."""

import math

import numpy as np
import pytest
from tasks.toy import CONFIG, PARAMS, TOY, WORDS, without

import bert_np
from bert_np import BertError, fill_mask, next_sentence


def test_fill_mask_gives_the_softmax_of_the_logits():
    ids = TOY.tokenizer.encode("the [MASK] sat.").input_ids[None]
    hidden = bert_np.bert(ids, PARAMS, CONFIG)["last_hidden_state"]
    logits = bert_np.masked_lm_logits(hidden, PARAMS, CONFIG)[0, 2, : len(WORDS)]
    probs = np.exp(logits) / np.exp(logits).sum()
    best = np.argsort(-probs)[:3]
    (guesses,) = fill_mask("the [MASK] sat.", *TOY, top_k=3)
    assert [word for word, _ in guesses] == [WORDS[i] for i in best]
    np.testing.assert_allclose([p for _, p in guesses], probs[best], rtol=1e-5)


def test_fill_mask_answers_each_mask_in_order():
    first, second = fill_mask("[MASK] cat [MASK]", *TOY, top_k=len(WORDS))
    assert first != second
    for guesses in (first, second):
        probs = [p for _, p in guesses]
        assert len(probs) == len(WORDS) and probs == sorted(probs, reverse=True)
        assert math.isclose(sum(probs), 1, rel_tol=1e-9)


def test_a_target_of_one_piece_has_the_probability_of_its_token():
    every = dict(fill_mask("the [MASK] sat.", *TOY, top_k=len(WORDS))[0])
    targets = ["Sat", "##s", "the", "[MASK]", "sat"]
    (found,) = fill_mask("the [MASK] sat.", *TOY, top_k=1, targets=targets)
    wanted = {word: every[word.lower() if word == "Sat" else word] for word in targets}
    assert dict(found) == wanted and len(found) == 5
    assert [p for _, p in found] == sorted(wanted.values(), reverse=True)


def test_a_target_of_several_pieces_is_predicted_from_left_to_right():
    cls, sep, mask, the, cat, sat, s = map(WORDS.index, WORDS[2:9])
    segments = [[0, 0, 0, 1, 1, 1, 1, 1, 1]]

    def prob(row, place):
        hidden = bert_np.bert([row], PARAMS, CONFIG, segment_ids=segments)
        logits = bert_np.masked_lm_logits(hidden["last_hidden_state"], PARAMS, CONFIG)
        scores = np.exp(logits[0, place, : len(WORDS)].astype(float))
        return scores / scores.sum()

    head, tail = [cls, mask, sep, the], [sat, sep]
    wanted = prob([*head, mask, mask, mask, *tail], 4)[cat]
    wanted *= prob([*head, cat, mask, mask, *tail], 5)[s]
    wanted *= prob([*head, cat, s, mask, *tail], 6)[s]
    found = fill_mask(("[MASK]", "the [MASK] sat"), *TOY, targets=["catss", "cat"])
    assert math.isclose(dict(found[1])["catss"], wanted, rel_tol=1e-5)
    assert dict(found[0])["catss"] != dict(found[1])["catss"]


def test_the_mask_of_another_name_is_filled():
    names = [*WORDS[:4], "<mask>"]
    renamed = bert_np.Tokenizer.from_tokens([*names, *WORDS[5:]], special=names)
    other = TOY._replace(tokenizer=renamed)
    guesses = fill_mask("the [MASK] sat.", *TOY)
    found = fill_mask("the <mask> sat.", *other)
    assert found == [[(w.replace("[MASK]", "<mask>"), p) for w, p in guesses[0]]]
    with pytest.raises(BertError, match="text has no <mask>"):
        fill_mask("the [MASK] sat.", *other)


def test_fill_mask_reads_a_pair_as_two_segments():
    pair = fill_mask(("the cat", "[MASK]"), *TOY)
    assert pair != fill_mask("the cat [SEP] [MASK]", *TOY)


def test_next_sentence_is_the_first_column():
    pair = TOY.tokenizer.encode("the cat", "sat.")
    out = bert_np.bert(**pair.inputs, params=PARAMS, config=CONFIG)
    follows, other = bert_np.next_sentence_logits(out["pooler_output"], PARAMS)[0]
    expected = 1 / (1 + math.exp(other - follows))
    assert math.isclose(next_sentence("the cat", "sat.", *TOY), expected, rel_tol=1e-5)


@pytest.mark.parametrize(
    "task, arguments, message",
    [
        (fill_mask, ("the cat", *TOY), r"no \[MASK\]"),
        (fill_mask, ("the [mask]", *TOY), r"no \[MASK\]"),
        (fill_mask, (3, *TOY), "int"),
        (fill_mask, ("[MASK]", *TOY, 0), "^top_k = 0, allowed: 1..10"),
        (fill_mask, ("[MASK]", *TOY, 11), "^top_k = 11"),
        (fill_mask, ("[MASK]", *TOY, True), "^top_k = True"),
        (fill_mask, ("[MASK]", *without("mlm")), "no 'mlm'"),
        (fill_mask, ("[MASK]", *TOY, 5, "cat"), r"^targets = 'cat', allowed: a list"),
        (fill_mask, ("[MASK]", *TOY, 5, []), r"^targets = \[\], allowed: a list of"),
        (
            fill_mask,
            ("[MASK]", *TOY, 5, ["cat", "dog"]),
            r"^targets\[1\] = 'dog' holds .UNK",
        ),
        (fill_mask, ("[MASK]", *TOY, 5, [" "]), r"^targets\[0\] = ' ' is empty"),
        (fill_mask, ("[MASK]", *TOY, 5, [3]), r"^targets\[0\] must be a str, got int"),
        (
            fill_mask,
            ("[MASK]" + " the" * 9, *TOY, 5, ["cats"]),
            "^targets: 'cats' has 2 pieces, in this text allowed: at most 1; shorten",
        ),
        (
            fill_mask,
            ("[MASK]" + " the" * 12, *TOY),
            "^text has 15 tokens, allowed: at most 12; shorten it",
        ),
        (
            next_sentence,
            ("the", "the " * 12, *TOY),
            "^a with b has 16 tokens, allowed: at most 12; shorten it",
        ),
        (fill_mask, ("[MASK]", PARAMS, CONFIG, None), "vocab.txt"),
        (fill_mask, ("[MASK]", PARAMS, CONFIG, WORDS), "^tokenizer is list"),
        (next_sentence, ("the", "", *TOY), "^b is empty"),
        (next_sentence, ("the", "cat", *without("nsp")), "no 'nsp'"),
        (next_sentence, ("the", "cat", *without("pooler")), "pooler"),
        (next_sentence, ("the", "cat", PARAMS, CONFIG, None), "vocab.txt"),
    ],
)
def test_a_task_says_what_it_cannot_do(task, arguments, message):
    with pytest.raises(BertError, match=message):
        task(*arguments)
