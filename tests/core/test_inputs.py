"""The arguments of bert and its heads: what is accepted and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import BertError, bert, masked_lm_logits, next_sentence_logits

PARAMS = random_params()
MASK = np.array([[0, 0, 1, 1, 1], [1, 0, 1, 0, 1]])


def hidden(ids=INPUT_IDS, config=CONFIG, **options):
    return bert(ids, PARAMS, config, **options)["last_hidden_state"]


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda ids: tuple(map(tuple, ids.tolist())),
        list,
        *(lambda ids, d=dtype: ids.astype(d) for dtype in "bBhHiIlLqQ"),
        lambda ids: ids.astype(">i4"),
        np.asfortranarray,
        np.ma.masked_array,
        lambda ids: ids.view(np.matrix),
    ],
)
def test_integers_in_any_form_are_accepted(convert):
    assert np.array_equal(hidden(convert(INPUT_IDS)), hidden())


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda mask: mask.view(np.matrix),
        *(lambda mask, d=dtype: mask.astype(d) for dtype in "?bBiQefd"),
    ],
)
def test_a_mask_of_exact_0_and_1_is_accepted(convert):
    given = hidden(attention_mask=convert(MASK))
    assert np.array_equal(given, hidden(attention_mask=MASK))


def test_by_default_the_pad_id_is_masked_and_segments_are_0():
    config = replace(CONFIG, pad_token_id=9)
    given = hidden(attention_mask=INPUT_IDS != 9, segment_ids=SEGMENT_IDS * 0)
    assert np.array_equal(hidden(config=config), given)


def test_an_empty_batch_gives_empty_results():
    out = bert(np.zeros((0, 5), int), PARAMS, CONFIG)
    last, pooled = out["last_hidden_state"], out["pooler_output"]
    assert last.shape == (0, 5, 21) and pooled.shape == (0, 21)
    assert [p.shape for p in out["attention_probs"]] == 2 * [(0, 3, 5, 5)]
    assert masked_lm_logits(last, PARAMS, CONFIG).shape == (0, 5, 23)
    assert next_sentence_logits(pooled, PARAMS).shape == (0, 2)


def test_the_longest_sequence_is_accepted():
    assert hidden(np.ones((1, 17), int)).shape == (1, 17, 21)


def with_id(value):
    ids = INPUT_IDS.astype(object)
    ids[1, 3] = value
    return ids.tolist()


def with_mask(value):
    mask = np.ones((2, 5))
    mask[1, 4] = value
    return mask


class Odd:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError


HALF_HIDDEN = np.ma.masked_equal(INPUT_IDS, 9)
ADDITIVE = np.where(INPUT_IDS == 0, -10000.0, 0.0)
OTHER = replace(CONFIG, intermediate_size=12)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("input_ids", with_id(-1), r"^input_ids\[1, 3\] = -1, allowed 0\.\.22"),
        ("input_ids", with_id(23), r"^input_ids\[1, 3\] = 23, allowed 0\.\.22"),
        ("input_ids", np.full((1, 2), -3, np.int8), r"\[0, 0\] = -3"),
        ("input_ids", np.full((1, 1), 2**64 - 1, np.uint64), "18446744073709551615"),
        ("input_ids", with_id(2**70), "input_ids has dtype object"),
        ("input_ids", with_id(2.0), "input_ids has dtype float64.*integers"),
        ("input_ids", with_id(True), "^input_ids holds a bool"),
        ("input_ids", with_id(np.True_), "^input_ids holds a bool"),
        ("input_ids", [np.arange(2), np.ones(2, bool)], "^input_ids holds a bool"),
        ("input_ids", [*HALF_HIDDEN], "^input_ids is a masked array"),
        ("attention_mask", [[1, np.ma.masked]], "^attention_mask is a masked array"),
        ("input_ids", [["the", "cat"]], "input_ids has dtype <U3"),
        ("input_ids", INPUT_IDS.astype("m8[s]"), "input_ids has dtype timedelta64"),
        ("input_ids", [[1, 2, 3], [4]], r"rows of lengths \[3, 1\]; pad first"),
        ("input_ids", [[[1, 2], [3]]], "^input_ids: not an array"),
        ("input_ids", [Odd()], "^input_ids: not an array"),
        ("input_ids", np.arange(7), r"^input_ids: expected \(B, T\), got \(7,\)"),
        ("input_ids", np.ones((2, 0), int), r"^input_ids: empty sequence.*\(2, 0\)"),
        ("input_ids", np.ones((1, 18), int), "^input_ids has 18 pos.*at most 17"),
        ("input_ids", HALF_HIDDEN, "^input_ids is a masked array"),
        ("input_ids", "the cat", "^input_ids is str"),
        ("segment_ids", SEGMENT_IDS - 1, r"^segment_ids\[0, 0\] = -1, allowed 0\.\.1"),
        ("segment_ids", SEGMENT_IDS * 1.0, "^segment_ids has dtype float64"),
        ("segment_ids", SEGMENT_IDS[0], r"^segment_ids: expected \(B, T\), got \(5,\)"),
        ("segment_ids", SEGMENT_IDS[:1], r"^segment_ids has shape \(1, 5\).*\(2, 5\)"),
        ("attention_mask", with_mask(2), r"\[1, 4\] = 2\.0, allowed: 0 or 1$"),
        ("attention_mask", with_mask(-1), r"\[1, 4\] = -1\.0, allowed: 0 or 1$"),
        ("attention_mask", with_mask(np.nan), r"^attention_mask\[1, 4\] = nan"),
        ("attention_mask", ADDITIVE, r"\[1, 3\] = -10000\.0.*looks additive"),
        ("attention_mask", np.ones((1, 5)), r"shape \(1, 5\), allowed: \(2, 5\)"),
        ("attention_mask", np.full((2, 5), "1"), "^attention_mask has dtype <U1"),
        ("rng", 0, "^rng is int, allowed: numpy.random.Generator"),
        ("rng", np.random.RandomState(0), "^rng is RandomState"),
        ("trace", [], "^trace is list"),
        ("return_attention", 1, "^return_attention = 1, allowed: True or False"),
        ("config", {}, "^config is dict, allowed: BertConfig"),
        ("config", OTHER, r"^params\.layers\.0\.ffn\.inner\.W has shape"),
        ("params", [], "^params is list"),
    ],
)
def test_what_bert_cannot_take_is_refused(name, value, message):
    arguments = {"input_ids": INPUT_IDS, "params": PARAMS, "config": CONFIG}
    with pytest.raises(BertError, match=message):
        bert(**arguments | {name: value})


def test_a_message_stays_short_and_keeps_its_end():
    with pytest.raises(BertError) as caught:
        hidden([[1] * n for n in range(1, 500)])
    assert len(str(caught.value)) <= 300
    assert str(caught.value).endswith("pad first to one length")


X = np.zeros((2, 5, 21))
UNTIED = replace(CONFIG, tie_word_embeddings=False)
NO_MLM, NO_NSP = (
    {k: PARAMS[k] for k in PARAMS if k != part} for part in ("mlm", "nsp")
)


@pytest.mark.parametrize(
    "head, arguments, message",
    [
        (masked_lm_logits, (X, NO_MLM, CONFIG), "^params has no 'mlm'.*masked-word"),
        (masked_lm_logits, (X, [], CONFIG), "^params is list"),
        (masked_lm_logits, (X, PARAMS, {}), "^config is dict"),
        (masked_lm_logits, (X.tolist(), PARAMS, CONFIG), "^last_hidden_state is list"),
        (
            masked_lm_logits,
            (X, PARAMS, UNTIED),
            "params.mlm has no 'decoder', but .* Fal",
        ),
        (masked_lm_logits, (X > 0, PARAMS, CONFIG), "^last_hidden_state is bool"),
        (masked_lm_logits, (X[..., 1:], PARAMS, CONFIG), r"\(2, 5, 20\), .*\.\., 21\)"),
        (
            next_sentence_logits,
            (X[:, 0], NO_NSP),
            "^params has no 'nsp'.*next-sentence",
        ),
        (next_sentence_logits, (None, PARAMS), "^pooler_output is None.*no pooler"),
    ],
)
def test_what_a_head_cannot_take_is_refused(head, arguments, message):
    with pytest.raises(BertError, match=message):
        head(*arguments)
