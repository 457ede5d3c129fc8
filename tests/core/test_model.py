"""bert as a whole: the scalar oracle, and every row of its arguments."""

from dataclasses import replace

import numpy as np
import pytest
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, forward, random_params

import bert_np
from bert_np import BertConfig, BertError, bert
from bert_np.tree import leaves

PARAMS = random_params()
MASKS = {
    "padded": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    "pad id that is real": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]],
    "left and holes": [[0, 0, 1, 1, 1], [1, 0, 1, 0, 1]],
    "nothing visible": [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]],
}
CONFIGS = {
    "gelu": CONFIG,
    "gelu_new": replace(CONFIG, hidden_act="gelu_new"),
    "relu": replace(CONFIG, hidden_act="relu"),
    "large epsilon": replace(CONFIG, layer_norm_eps=0.1),
}


def run(params=PARAMS, config=CONFIG, input_ids=INPUT_IDS, **options):
    """bert and both heads; the outputs and the trace."""
    trace = {}
    out = bert(input_ids, params, config, trace=trace, **options)
    out["mlm"] = bert_np.masked_lm_logits(
        out["last_hidden_state"], params, config, trace=trace
    )
    out["nsp"] = bert_np.next_sentence_logits(out["pooler_output"], params, trace=trace)
    return out, trace


def assert_equals_oracle(config, mask, given):
    out, trace = run(config=config, segment_ids=SEGMENT_IDS, attention_mask=given)
    expected = forward(INPUT_IDS, SEGMENT_IDS, mask, PARAMS, config)
    found = dict(leaves(trace))
    assert list(found) == list(expected)
    for stage in expected:
        np.testing.assert_allclose(
            found[stage], expected[stage], rtol=1e-11, atol=1e-12, err_msg=stage
        )
    outputs = {
        "layers.1.output": out["last_hidden_state"],
        "pooler.output": out["pooler_output"],
        "mlm.logits": out["mlm"],
        "nsp.logits": out["nsp"],
    }
    for i, probs in enumerate(out["attention_probs"]):
        outputs[f"layers.{i}.attention.probs"] = probs
    assert len(outputs) == 6
    for stage, output in outputs.items():
        assert np.array_equal(output, found[stage]), stage


@pytest.mark.parametrize("name", CONFIGS)
def test_every_stage_equals_the_scalar_loops(name):
    assert_equals_oracle(CONFIGS[name], MASKS["padded"], None)


@pytest.mark.parametrize("name", MASKS)
def test_every_stage_equals_the_scalar_loops_under_a_given_mask(name):
    assert_equals_oracle(CONFIG, MASKS[name], MASKS[name])


def test_segments_are_0_by_default():
    _, trace = run()
    first = np.broadcast_to(PARAMS["embeddings"]["segment"][0], (2, 5, 21))
    assert np.array_equal(trace["embeddings"]["segment"], first)


def test_trace_and_outputs_are_float32_for_float32():
    out, trace = run(random_params(dtype=np.float32), segment_ids=SEGMENT_IDS)
    dtypes = {array.dtype for _, array in leaves([trace, out])}
    assert dtypes == {np.dtype(np.float32)}


def test_float32_stays_close_to_float64():
    exact, _ = run()
    rounded, _ = run(random_params(dtype=np.float32))
    for (stage, a), (_, b) in zip(leaves(exact), leaves(rounded)):
        np.testing.assert_allclose(b, a, atol=1e-5, err_msg=stage)


def test_bert_base_gives_the_documented_shapes():
    config = BertConfig()
    params = bert_np.init_params(config, np.random.default_rng(0))
    ids = np.random.default_rng(1).integers(1, config.vocab_size, (2, 32))
    out = bert(ids, params, config)
    assert out["last_hidden_state"].shape == (2, 32, 768)
    assert out["pooler_output"].shape == (2, 768)
    assert [p.shape for p in out["attention_probs"]] == 12 * [(2, 12, 32, 32)]
    assert all(np.isfinite(array).all() for _, array in leaves(out))


def test_the_generator_switches_every_dropout_on():
    trace = {}
    bert(INPUT_IDS, PARAMS, CONFIG, trace=trace, rng=np.random.default_rng(0))
    masks = [
        path.removesuffix(".dropout_mask")
        for path, _ in leaves(trace)
        if path.endswith("dropout_mask")
    ]
    assert masks == ["embeddings"] + [
        f"layers.{i}.{part}"
        for i in (0, 1)
        for part in ("attention", "attention_norm", "ffn_norm")
    ]


def test_without_pooler_the_pooled_output_is_none():
    params = {part: PARAMS[part] for part in ("embeddings", "layers")}
    trace = {}
    out = bert(INPUT_IDS, params, CONFIG, trace=trace)
    assert out["pooler_output"] is None
    assert list(trace) == ["embeddings", "layers"]


def test_attention_can_be_left_out():
    out = bert(INPUT_IDS, PARAMS, CONFIG, return_attention=False)
    with_attention = bert(INPUT_IDS, PARAMS, CONFIG)
    assert out["attention_probs"] == []
    assert np.array_equal(out["last_hidden_state"], with_attention["last_hidden_state"])


def test_the_trace_changes_no_result():
    traced, _ = run()
    plain = bert(INPUT_IDS, PARAMS, CONFIG)
    for (stage, a), (_, b) in zip(leaves(plain), leaves(traced)):
        assert np.array_equal(a, b), stage


def test_a_trace_is_filled_once():
    _, trace = run()
    with pytest.raises(BertError, match="'embeddings'.* recorded already"):
        bert(INPUT_IDS, PARAMS, CONFIG, trace=trace)


# Arguments of bert: what is accepted


@pytest.mark.parametrize(
    "ids",
    [
        INPUT_IDS.tolist(),
        tuple(map(tuple, INPUT_IDS.tolist())),
        list(INPUT_IDS),
        *(INPUT_IDS.astype(dtype) for dtype in "bBhHiIlLqQ"),
        INPUT_IDS.astype(">i4"),
        np.asfortranarray(INPUT_IDS),
        np.ma.masked_array(INPUT_IDS),
        INPUT_IDS.view(np.matrix),
    ],
    ids=lambda ids: getattr(ids, "dtype", type(ids)),
)
def test_integers_in_any_form_are_accepted(ids):
    out = bert(ids, PARAMS, CONFIG)
    expected = bert(INPUT_IDS, PARAMS, CONFIG)
    assert np.array_equal(out["last_hidden_state"], expected["last_hidden_state"])


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda mask: mask == 1,
        lambda mask: mask.view(np.matrix),
        *(lambda mask, d=dtype: mask.astype(d) for dtype in "bBiQefd"),
    ],
)
def test_a_mask_of_exact_0_and_1_is_accepted(convert):
    mask = np.array(MASKS["left and holes"])
    out = bert(INPUT_IDS, PARAMS, CONFIG, attention_mask=convert(mask))
    expected = bert(INPUT_IDS, PARAMS, CONFIG, attention_mask=mask)
    assert np.array_equal(out["last_hidden_state"], expected["last_hidden_state"])


def test_an_empty_batch_gives_empty_results():
    out, trace = run(input_ids=np.zeros((0, 5), int))
    assert out["last_hidden_state"].shape == (0, 5, 21)
    assert out["pooler_output"].shape == (0, 21)
    assert [p.shape for p in out["attention_probs"]] == 2 * [(0, 3, 5, 5)]
    assert out["mlm"].shape == (0, 5, 23) and out["nsp"].shape == (0, 2)


def test_the_longest_sequence_is_accepted():
    out = bert(np.ones((1, 17), int), PARAMS, CONFIG)
    assert out["last_hidden_state"].shape == (1, 17, 21)


@pytest.mark.parametrize(
    "pad, mask",
    [
        (0, [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
        (9, [[1, 0, 1, 1, 1], [1, 1, 0, 1, 1]]),
        (None, [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]),
    ],
)
def test_the_mask_is_derived_from_the_pad_id(pad, mask):
    config = replace(CONFIG, pad_token_id=pad)
    derived = bert(INPUT_IDS, PARAMS, config)
    given = bert(INPUT_IDS, PARAMS, config, attention_mask=mask)
    assert np.array_equal(derived["last_hidden_state"], given["last_hidden_state"])


# Arguments of bert: what is refused, and how


def with_id(value, row=1, column=3):
    ids = INPUT_IDS.astype(object)
    ids[row, column] = value
    return ids.tolist()


REFUSED_IDS = {
    "negative": (with_id(-1), r"^input_ids\[1, 3\] = -1, allowed 0\.\.22"),
    "V": (with_id(23, 0, 0), r"^input_ids\[0, 0\] = 23, allowed 0\.\.22"),
    "int8 wraps": (np.full((1, 2), -3, np.int8), r"input_ids\[0, 0\] = -3"),
    "beyond int64": (np.full((1, 1), 2**64 - 1, np.uint64), "18446744073709551615"),
    "beyond uint64": (with_id(2**70), "input_ids has dtype object"),
    "float": (INPUT_IDS.astype(float), "^input_ids has dtype float64.*integers"),
    "float in a list": (with_id(2.0), "input_ids has dtype float64"),
    "NaN": (with_id(float("nan")), "input_ids has dtype float64"),
    "bool": (INPUT_IDS > 0, "input_ids has dtype bool"),
    "str": ([["the", "cat"]], "input_ids has dtype <U3"),
    "object": (INPUT_IDS.astype(object), "input_ids has dtype object"),
    "None in a list": (with_id(None), "input_ids has dtype object"),
    "complex": (INPUT_IDS.astype(complex), "input_ids has dtype complex128"),
    "duration": (INPUT_IDS.astype("m8[s]"), "input_ids has dtype timedelta64"),
    "ragged": ([[1, 2, 3], [4]], r"^input_ids: rows of lengths \[3, 1\]; pad first"),
    "ragged deeper": ([[[1, 2], [3]]], "^input_ids: not an array"),
    "row and number": ([[1, 2], 3], "^input_ids: not an array"),
    "1-D": (np.arange(7), r"^input_ids: expected \(B, T\), got \(7,\)"),
    "3-D": (np.ones((1, 2, 3), int), r"expected \(B, T\), got \(1, 2, 3\)"),
    "0-D": (np.array(3), r"expected \(B, T\), got \(\)"),
    "empty list": ([], r"expected \(B, T\), got \(0,\)"),
    "no positions": (np.ones((2, 0), int), "^input_ids: empty sequence.*(2, 0)"),
    "empty rows": ([[], []], "^input_ids: empty sequence"),
    "too long": (np.ones((1, 18), int), "^input_ids has 18 positions.*at most 17"),
    "text": ("the cat", "^input_ids is str"),
    "None": (None, "^input_ids is NoneType"),
    "dict": ({"input_ids": INPUT_IDS}, "^input_ids is dict"),
}


@pytest.mark.parametrize("case", REFUSED_IDS)
def test_bad_input_ids_are_refused(case):
    ids, message = REFUSED_IDS[case]
    with pytest.raises(BertError, match=message):
        bert(ids, PARAMS, CONFIG)


REFUSED_SEGMENTS = {
    "negative": (SEGMENT_IDS - 1, r"^segment_ids\[0, 0\] = -1, allowed 0\.\.1"),
    "S": (SEGMENT_IDS + 1, r"^segment_ids\[0, 2\] = 2, allowed 0\.\.1"),
    "float": (SEGMENT_IDS * 1.0, "^segment_ids has dtype float64"),
    "bool": (SEGMENT_IDS > 0, "^segment_ids has dtype bool"),
    "(T,)": (SEGMENT_IDS[0], r"^segment_ids: expected \(B, T\), got \(5,\)"),
    "(1, T)": (SEGMENT_IDS[:1], r"^segment_ids has shape \(1, 5\).*\(2, 5\)"),
    "(B, 1)": (SEGMENT_IDS[:, :1], r"^segment_ids has shape \(2, 1\).*\(2, 5\)"),
    "ragged": ([[0, 1], [0]], "^segment_ids: rows of lengths"),
    "number": (0, "^segment_ids is int"),
}


@pytest.mark.parametrize("case", REFUSED_SEGMENTS)
def test_bad_segment_ids_are_refused(case):
    segment_ids, message = REFUSED_SEGMENTS[case]
    with pytest.raises(BertError, match=message):
        bert(INPUT_IDS, PARAMS, CONFIG, segment_ids=segment_ids)


def with_mask_value(value):
    mask = np.ones((2, 5))
    mask[1, 4] = value
    return mask


ADDITIVE = np.where(INPUT_IDS == 0, -10000.0, 0.0)
REFUSED_MASKS = {
    "2": (with_mask_value(2), r"^attention_mask\[1, 4\] = 2\.0, allowed: 0 or 1$"),
    "one half": (with_mask_value(0.5), r"^attention_mask\[1, 4\] = 0\.5"),
    "-1": (with_mask_value(-1), r"^attention_mask\[1, 4\] = -1\.0, allowed: 0 or 1$"),
    "NaN": (with_mask_value(np.nan), r"^attention_mask\[1, 4\] = nan"),
    "inf": (with_mask_value(np.inf), r"^attention_mask\[1, 4\] = inf"),
    "additive": (ADDITIVE, r"^attention_mask\[1, 3\] = -10000\.0.*looks additive"),
    "-inf": (np.where(ADDITIVE < 0, -np.inf, 0), "= -inf.*looks additive"),
    "(T,)": (np.ones(5), r"^attention_mask has shape \(5,\), allowed: \(2, 5\)"),
    "(1, T)": (np.ones((1, 5)), r"^attention_mask has shape \(1, 5\)"),
    "(T, T)": (np.ones((5, 5)), r"^attention_mask has shape \(5, 5\)"),
    "3-D": (np.ones((2, 5, 5)), r"^attention_mask has shape \(2, 5, 5\)"),
    "4-D": (np.ones((2, 1, 1, 5)), r"^attention_mask has shape \(2, 1, 1, 5\)"),
    "complex": (np.ones((2, 5), complex), "^attention_mask has dtype complex128"),
    "str": (np.full((2, 5), "1"), "^attention_mask has dtype <U1"),
    "object": (np.ones((2, 5), object), "^attention_mask has dtype object"),
    "ragged": ([[1, 1], [1]], "^attention_mask: rows of lengths"),
    "number": (1, "^attention_mask is int"),
}


@pytest.mark.parametrize("case", REFUSED_MASKS)
def test_a_bad_attention_mask_is_refused(case):
    mask, message = REFUSED_MASKS[case]
    with pytest.raises(BertError, match=message):
        bert(INPUT_IDS, PARAMS, CONFIG, attention_mask=mask)


REFUSED_OPTIONS = {
    "seed for rng": ({"rng": 0}, "^rng is int, allowed: numpy.random.Generator"),
    "old rng": ({"rng": np.random.RandomState(0)}, "^rng is RandomState"),
    "list for trace": ({"trace": []}, "^trace is list"),
    "dict for config": ({"config": {}}, "^config is dict, allowed: BertConfig"),
    "list for params": ({"params": []}, "^params is list"),
}


@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_bad_options_are_refused(case):
    options, message = REFUSED_OPTIONS[case]
    arguments = {"params": PARAMS, "config": CONFIG, **options}
    with pytest.raises(BertError, match=message):
        bert(INPUT_IDS, **arguments)


def test_params_of_another_config_are_refused():
    config = replace(CONFIG, intermediate_size=12)
    with pytest.raises(BertError, match=r"^params\.layers\.0\.ffn\.inner\.W has shape"):
        bert(INPUT_IDS, PARAMS, config)


def test_messages_stay_short():
    ids = [[1] * n for n in range(1, 500)]
    with pytest.raises(BertError) as caught:
        bert(ids, PARAMS, CONFIG)
    message = str(caught.value)
    assert len(message) <= 300
    assert message.startswith("input_ids: rows of lengths")
    assert message.endswith("pad first to one length")
