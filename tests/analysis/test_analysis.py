"""Numbers about attention: by hand, by scalar loops, and on MiniLM."""

import math

import numpy as np
import pytest
import reference
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import BertError, bert, masked_lm_logits
from bert_np.analysis import (
    ablation_effects,
    attention_distance,
    attention_entropy,
    attention_masses,
    head_distances,
    logit_lens,
    rollout,
    summarise_heads,
    summed_weighted_norms,
    top_words,
    weighted_norms,
    without_head,
    without_layer,
)
from bert_np.analysis.texts import ALICE
from bert_np.tree import leaves

PARAMS = random_params()
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
L, A, H = CONFIG.num_hidden_layers, CONFIG.num_attention_heads, CONFIG.hidden_size
HAND = np.array(
    [  # (T, T): a query that sees one key, one that sees two, all
        [1.0, 0.0, 0.0, 0.0],
        [0.5, 0.0, 0.5, 0.0],
        [0.25, 0.25, 0.25, 0.25],
        [0.0, 0.125, 0.0, 0.875],
    ]
)
TOKENS = ["[CLS]", "cat", ",", "[SEP]"]


def forward(ids=INPUT_IDS, mask=MASK, params=PARAMS, segment_ids=SEGMENT_IDS):
    trace = {}
    out = bert(
        ids, params, CONFIG, segment_ids=segment_ids, attention_mask=mask, trace=trace
    )
    return out, trace


# --------------------------------------------------------- one row of a map


def test_entropy_by_hand():
    last = -(0.125 * math.log(0.125) + 0.875 * math.log(0.875))
    nats = [0, math.log(2), math.log(4), last]
    np.testing.assert_allclose(attention_entropy(HAND, normalise=False), nats)
    np.testing.assert_allclose(attention_entropy(HAND), np.array(nats) / math.log(4))


def test_entropy_is_divided_by_the_visible_keys_of_the_row():
    maps = np.array([[[[1 / 3] * 3 + [0]] * 4], [[[0.5, 0.5, 0, 0]] * 4]])
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    expected = [[[1, 1, 1, 0]], [[1, 1, 0, 0]]]
    np.testing.assert_allclose(attention_entropy(maps, mask), expected)
    in_nats = np.array(expected) * np.log([[[3]], [[2]]])
    np.testing.assert_allclose(attention_entropy(maps, mask, normalise=False), in_nats)


def test_a_row_with_one_visible_key_has_entropy_0():
    assert attention_entropy(np.ones((1, 1))).tolist() == [0]
    nearly = np.array([[1 - 1e-6, 0], [0.5, 0.5]])
    assert attention_entropy(nearly, np.array([1, 0])).tolist() == [0, 0]


def test_distance_by_hand():
    np.testing.assert_allclose(attention_distance(HAND), [0, 1, 1, 0.25])
    hidden = attention_distance(HAND, np.array([1, 1, 1, 0]))
    np.testing.assert_allclose(hidden, [0, 1, 0.75, 0])


def test_masses_by_hand():
    masses = attention_masses(HAND, TOKENS)
    expected = {
        "self": [1, 0, 0.25, 0.875],
        "previous": [0, 0.5, 0.25, 0],
        "next": [0, 0.5, 0.25, 0],
        "[CLS]": [1, 0.5, 0.25, 0],
        "[SEP]": [0, 0, 0.25, 0.875],
        "punctuation": [0, 0.5, 0.25, 0],
    }
    assert masses.keys() == expected.keys()
    for name, values in expected.items():
        assert masses[name].tolist() == values, name


def test_masses_of_a_batch_take_each_sentence_its_tokens():
    maps = np.broadcast_to(HAND, (3, 2, 5, 4, 4))  # (L, B, A, T, T)
    tokens = [TOKENS, ["[CLS]", "...", "[SEP]", "[PAD]"]]
    masses = attention_masses(maps, tokens, np.array([[1, 1, 1, 1], [1, 1, 1, 0]]))
    assert masses["[SEP]"].shape == (3, 2, 5, 4)
    for layer, head in ((0, 0), (2, 4)):
        place = (layer, slice(None), head)
        assert masses["[SEP]"][place].tolist() == [
            [0, 0, 0.25, 0.875],
            [0, 0.5, 0.25, 0],
        ]
        assert masses["punctuation"][place].tolist() == [
            [0, 0.5, 0.25, 0],
            [0, 0, 0.25, 0],
        ]
        assert masses["next"][place].tolist() == [[0, 0.5, 0.25, 0], [0, 0.5, 0, 0]]
        assert masses["self"][place].tolist() == [[1, 0, 0.25, 0.875], [1, 0, 0.25, 0]]


def test_all_separators_count():
    masses = attention_masses(HAND, ["[SEP]", "[SEP]", "?!", "x."])
    assert masses["[SEP]"].tolist() == [1, 0.5, 0.5, 0.125]
    assert masses["punctuation"].tolist() == [0, 0.5, 0.25, 0]
    assert not masses["[CLS]"].any()


MEASURES = {
    "entropy": attention_entropy,
    "distance": attention_distance,
    **{
        name: lambda maps, mask, name=name: attention_masses(
            maps, ["[CLS]", "[SEP]", ".", "a", "[SEP]"][: maps.shape[-1]], mask
        )[name]
        for name in ("self", "previous", "next", "[CLS]", "[SEP]", "punctuation")
    },
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_padding_changes_no_measure(measure):
    padded = np.stack(forward()[0]["attention_probs"])
    out, _ = forward(INPUT_IDS[1:, :3], MASK[1:, :3], PARAMS, SEGMENT_IDS[1:, :3])
    alone = np.stack(out["attention_probs"])
    values = measure(padded, MASK)
    assert values.shape == (L, 2, A, 5) and not values[:, 1, :, 3:].any()
    expected = measure(alone, None)
    assert expected.any()
    np.testing.assert_allclose(values[:, 1:, :, :3], expected, rtol=1e-12)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_measures_keep_the_dtype_and_their_input(measure, dtype):
    maps = HAND.astype(dtype)
    maps.flags.writeable = False
    assert measure(maps, None).dtype == dtype
    assert measure(maps[None, None], np.array([[1, 1, 1, 0]])).dtype == dtype


# ------------------------------------------------------- heads, many texts

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", ".", ","]
TEXTS = ["the cat sat.", "cat", "", ("the cat", "sat, sat."), "the the, the cat sat."]


@pytest.fixture(scope="module")
def toy():
    config = bert_np.BertConfig(
        vocab_size=10, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=16, max_position_embeddings=12, initializer_range=0.5,
    )  # fmt: skip
    params = bert_np.init_params(config, np.random.default_rng(0), heads=True)
    return params, config, bert_np.Tokenizer.from_tokens(WORDS)


@pytest.mark.parametrize("by_norm", [False, True])
def test_a_summary_is_the_mean_over_all_tokens(toy, by_norm):
    params, config, tokenizer = toy
    found = summarise_heads(TEXTS, *toy, by_norm=by_norm, batch_size=2)
    values = {name: [] for name in found.means}
    for text in TEXTS:
        batch, trace = tokenizer.encode_batch([text]), {}
        out = bert(
            batch.input_ids, params, config, segment_ids=batch.segment_ids, trace=trace
        )
        maps = np.stack(out["attention_probs"])
        if by_norm:
            maps = np.stack(weighted_norms(trace, params))
            maps = maps / maps.sum(axis=-1, keepdims=True)
        maps = maps[:, 0]  # (L, A, T, T)
        values["entropy"].append(attention_entropy(maps, normalise=False))
        values["normalised entropy"].append(attention_entropy(maps))
        values["distance"].append(attention_distance(maps))
        for name, shares in attention_masses(maps, batch.tokens[0]).items():
            first, last = name == "previous", len(batch.tokens[0]) - (name == "next")
            values[name].append(shares[..., first:last])
    assert found.texts == 5 and found.tokens == 6 + 3 + 2 + 9 + 9
    for name, parts in values.items():
        expected = np.concatenate(parts, axis=-1).mean(axis=-1)
        assert found.means[name].shape == (2, 3)
        assert found.means[name].dtype == np.float64
        np.testing.assert_allclose(found.means[name], expected, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 99])
def test_the_batch_size_changes_rounding_only(toy, batch_size):
    whole = summarise_heads(TEXTS, *toy, batch_size=5).means
    found = summarise_heads(TEXTS, *toy, batch_size=batch_size).means
    for name, values in whole.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-7)


def test_progress_is_reported_and_an_interruption_harms_nothing(toy):
    before = {path: array.copy() for path, array in leaves(toy[0])}
    lines = []
    whole = summarise_heads(TEXTS, *toy, report=lines.append, batch_size=2)
    assert lines == ["texts 2/5", "texts 4/5", "texts 5/5"]

    def stop(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        summarise_heads(TEXTS, *toy, report=stop, batch_size=2)
    assert all(np.array_equal(array, before[path]) for path, array in leaves(toy[0]))
    again = summarise_heads(TEXTS, *toy, batch_size=2)
    assert all(
        np.array_equal(again.means[name], whole.means[name]) for name in whole.means
    )


def test_many_batches_give_about_ten_lines(toy):
    lines = []
    summarise_heads(["cat"] * 57, *toy, report=lines.append, batch_size=1)
    assert len(lines) == 10 and lines[-1] == "texts 57/57"


def test_head_distances_by_hand():
    even, one = np.full((2, 2), 0.5), np.eye(2)
    other = one[::-1]
    found = head_distances(np.stack([[even, one], [other, one]]))
    half = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) - math.log(2) / 2
    far = math.log(2)
    expected = [
        [0, half, half, half],
        [half, 0, far, 0],
        [half, far, 0, far],
        [half, 0, far, 0],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_head_distances_leave_padding_out():
    maps = forward()[0]["attention_probs"]
    found = head_distances(maps, MASK)
    expected = np.zeros((L * A, L * A))
    for i, j in np.ndindex(expected.shape):
        for row, query in np.argwhere(MASK):
            p, q = (maps[n // A][row, n % A, query] for n in (i, j))
            expected[i, j] += divergence(p, q) / MASK.sum()
    assert found.shape == (6, 6) and found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)


def divergence(p, q):
    """Jensen-Shannon as the mean of two Kullback-Leibler divergences."""
    total = 0
    for a, b in zip(p, q):
        for x in (a, b):
            total += 0.5 * x * math.log(x / ((a + b) / 2)) if x > 0 else 0
    return total


# -------------------------------------------------------- beyond the weight


def rollout_by_loops(maps, visible, residual):
    """Of one sentence: maps[layer][head][query][key] in lists."""
    T, steps = len(visible), []
    for heads in maps:
        step = [[0.0] * T for _ in range(T)]
        for i in range(T):
            for j in range(T):
                if visible[i] and visible[j]:
                    mean = sum(head[i][j] for head in heads) / len(heads)
                    step[i][j] = (1 - residual) * mean + residual * (i == j)
            total = sum(step[i])
            step[i] = [x / total if total else 0.0 for x in step[i]]
        if steps:
            step = [
                [sum(step[i][k] * steps[-1][k][j] for k in range(T)) for j in range(T)]
                for i in range(T)
            ]
        steps.append(step)
    return steps


@pytest.mark.parametrize("residual", [0.5, 0.2, 0, 1])
def test_rollout_equals_the_loops(residual):
    maps = forward()[0]["attention_probs"]
    found = rollout(maps, MASK, residual)
    assert found.shape == (L, 2, 5, 5)
    for row in range(2):
        nested = [layer[row].tolist() for layer in maps]
        expected = rollout_by_loops(nested, MASK[row], residual)
        np.testing.assert_allclose(found[:, row], expected, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=-1), np.stack([MASK] * L), atol=1e-14)


def test_rollout_by_hand():
    """Two layers of one head: 0.5 I + 0.5 probs, multiplied from the left."""
    first, second = np.array([[1, 0], [1, 0]]), np.array([[0, 1], [0, 1]])
    found = rollout([first[None], second[None]])
    assert found.tolist() == [[[1, 0], [0.5, 0.5]], [[0.75, 0.25], [0.5, 0.5]]]


def test_rollout_keeps_float32_and_its_input():
    maps = np.full((2, 3, 4, 4), 0.25, np.float32)
    maps.flags.writeable = False
    assert rollout(maps, residual=np.float64(0.5)).dtype == np.float32
    assert rollout(maps, np.array([1, 1, 0, 0])).dtype == np.float32


def moved_by_loops(x, attention):
    """f(x_j) of each head, [head][key], from the layer's input (T, H)."""
    D = CONFIG.head_size
    W_v, b_v = attention["value"]["W"].tolist(), attention["value"]["b"].tolist()
    W_o = attention["output"]["W"].tolist()
    values = [reference.linear(row, W_v, b_v) for row in x.tolist()]
    return [
        [
            [sum(v[d] * W_o[d][o] for d in range(a * D, (a + 1) * D)) for o in range(H)]
            for v in values
        ]
        for a in range(A)
    ]


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


@pytest.mark.parametrize("normalise", [False, True])
def test_weighted_norms_equal_the_loops(normalise):
    out, trace = forward()
    found = weighted_norms(trace, PARAMS, MASK, normalise)
    summed = summed_weighted_norms(trace, PARAMS, MASK, normalise)
    assert len(found) == len(summed) == L
    for i in range(L):
        inputs = trace["layers"][i - 1] if i else trace["embeddings"]
        probs = out["attention_probs"][i]
        each, total = np.zeros((2, A, 5, 5)), np.zeros((2, 5, 5))
        for row in range(2):
            f = moved_by_loops(inputs["output"][row], PARAMS["layers"][i]["attention"])
            for q, k in np.argwhere(np.outer(MASK[row], MASK[row])):
                parts = [[probs[row, a, q, k] * x for x in f[a][k]] for a in range(A)]
                each[row, :, q, k] = [length(part) for part in parts]
                total[row, q, k] = length([sum(xs) for xs in zip(*parts)])
        if normalise:
            each, total = (
                x / np.maximum(x.sum(axis=-1, keepdims=True), 1e-300)
                for x in (each, total)
            )
        np.testing.assert_allclose(found[i], each, rtol=1e-11)
        np.testing.assert_allclose(summed[i], total, rtol=1e-11)


def test_summed_norms_do_not_depend_on_the_blocks_of_queries():
    T = CONFIG.max_position_embeddings  # 17: a block of 16 and one of 1
    ids = np.random.default_rng(0).integers(1, CONFIG.vocab_size, (1, T))
    _, trace = forward(ids, None, PARAMS, None)
    attention = trace["layers"][1]["attention"]
    W = PARAMS["layers"][1]["attention"]["output"]["W"].reshape(A, -1, H)
    vectors = np.einsum("aqk,akd,ado->qko", attention["probs"][0], attention["v"][0], W)
    found = summed_weighted_norms(trace, PARAMS)[1]
    np.testing.assert_allclose(found[0], np.linalg.norm(vectors, axis=-1), rtol=1e-11)


def test_what_all_keys_move_adds_up_to_the_output():
    """The sum of the vectors, and the output map's bias, is the output."""
    _, trace = forward(INPUT_IDS[:, :1], MASK[:, :1], PARAMS, SEGMENT_IDS[:, :1])
    for norms, stages, layer in zip(
        summed_weighted_norms(trace, PARAMS), trace["layers"], PARAMS["layers"]
    ):
        output = stages["attention"]["output"] - layer["attention"]["output"]["b"]
        expected = np.linalg.norm(output, axis=-1)[..., None]
        np.testing.assert_allclose(norms, expected, rtol=1e-12)


def test_norms_keep_float32():
    params = random_params(dtype=np.float32)
    _, trace = forward(params=params)
    for function in (weighted_norms, summed_weighted_norms):
        for options in ((MASK,), (None, True)):
            for norms in function(trace, params, *options):
                assert norms.dtype == np.float32


def test_the_last_reading_of_the_lens_is_the_model_s():
    out, trace = forward()
    lens = logit_lens(trace, PARAMS, CONFIG)
    assert lens.shape == (L + 1, 2, 5, CONFIG.vocab_size)
    last = masked_lm_logits(out["last_hidden_state"], PARAMS, CONFIG)
    np.testing.assert_array_equal(lens[-1], last)
    for entry, stage in enumerate([trace["embeddings"], trace["layers"][0]]):
        expected = masked_lm_logits(stage["output"], PARAMS, CONFIG)
        np.testing.assert_array_equal(lens[entry], expected)
    some = logit_lens(trace, PARAMS, CONFIG, positions=[4, 1])
    np.testing.assert_allclose(some, lens[:, :, [4, 1]], rtol=1e-12)


def test_top_words(toy):
    logits = np.zeros((2, 12), np.float32)
    logits[0, 6], logits[0, 7], logits[1, 5], logits[:, 11] = 2, 1, 3, 9
    words, probs = top_words(logits, toy[2], top_k=2)
    assert words[0].tolist() == ["cat", "sat"] and words[1, 0] == "the"
    total = math.exp(2) + math.exp(1) + 8  # ids beyond the vocabulary do not count
    np.testing.assert_allclose(probs[0], [math.exp(2) / total, math.e / total], 1e-6)


# ------------------------------------------------------------------ ablation


def with_output_rows_0(layer, head):
    """PARAMS edited by hand: the head's rows of the output matrix are 0."""
    W = PARAMS["layers"][layer]["attention"]["output"]["W"].copy()
    W[head * 7 : head * 7 + 7] = 0
    edited = dict(PARAMS["layers"][layer])
    edited["attention"] = {
        **edited["attention"],
        "output": {"W": W, "b": PARAMS["layers"][layer]["attention"]["output"]["b"]},
    }
    layers = [edited if i == layer else part for i, part in enumerate(PARAMS["layers"])]
    return {**PARAMS, "layers": layers}


def effect_by_loops(whole, ablated, positions):
    """Mean relative change over real tokens, mean KL over positions."""
    moved, gaps = [], []
    for place in map(tuple, np.argwhere(MASK)):
        change = length((ablated[place] - whole[place]).tolist())
        moved.append(change / length(whole[place].tolist()))
    logits = [masked_lm_logits(x, PARAMS, CONFIG) for x in (whole, ablated)]
    for place in map(tuple, np.argwhere(positions)):
        p, q = (reference.softmax(x[place].tolist(), [True] * 23) for x in logits)
        gaps.append(sum(a * math.log(a / b) for a, b in zip(p, q)))
    return sum(moved) / len(moved), sum(gaps) / len(gaps)


POSITIONS = np.array([[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]])
INPUTS = {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}


@pytest.mark.parametrize("layer", range(L))
def test_ablating_equals_editing_by_hand(layer):
    lines = []
    effects = ablation_effects(
        INPUT_IDS, PARAMS, CONFIG, **INPUTS, positions=POSITIONS, report=lines.append
    )
    assert [line.split(":")[0] for line in lines] == ["layer 1/2", "layer 2/2"]
    whole = forward()[0]["last_hidden_state"]
    for head in range(A):
        out, _ = forward(params=with_output_rows_0(layer, head))
        moved, gap = effect_by_loops(whole, out["last_hidden_state"], POSITIONS)
        assert moved > 0.01 and gap > 1e-4
        assert math.isclose(effects.heads[layer, head], moved, rel_tol=1e-11)
        assert math.isclose(effects.heads_kl[layer, head], gap, rel_tol=1e-9)
    params, config = without_layer(PARAMS, CONFIG, layer)
    ablated = bert(INPUT_IDS, params, config, **INPUTS)["last_hidden_state"]
    moved, gap = effect_by_loops(whole, ablated, POSITIONS)
    assert math.isclose(effects.layers[layer], moved, rel_tol=1e-11)
    assert math.isclose(effects.layers_kl[layer], gap, rel_tol=1e-9)


def test_the_mask_and_segments_of_an_ablation_have_the_defaults_of_bert():
    ids = np.array([[4, 9, 22, 7, 1], [13, 2, 9, 5, 0]])
    plain = ablation_effects(ids.tolist(), PARAMS, CONFIG)
    given = ablation_effects(
        ids,
        PARAMS,
        CONFIG,
        segment_ids=np.zeros((2, 5), int),
        attention_mask=np.array([[1] * 5, [1] * 4 + [0]]),
    )
    np.testing.assert_array_equal(plain.heads, given.heads)
    np.testing.assert_array_equal(plain.layers, given.layers)
    assert plain.heads_kl is None and plain.layers_kl is None


def test_padding_changes_no_ablation():
    short = ablation_effects(
        INPUT_IDS[1:, :3], PARAMS, CONFIG, segment_ids=SEGMENT_IDS[1:, :3]
    )
    padded = ablation_effects(
        INPUT_IDS[1:],
        PARAMS,
        CONFIG,
        segment_ids=SEGMENT_IDS[1:],
        attention_mask=MASK[1:],
    )
    np.testing.assert_allclose(short.heads, padded.heads, rtol=1e-11)
    np.testing.assert_allclose(short.layers, padded.layers, rtol=1e-11)


def test_without_head_changes_one_matrix():
    ablated = without_head(PARAMS, CONFIG, 1, 2)
    by_hand = with_output_rows_0(1, 2)
    for (path, a), (other, b) in zip(leaves(ablated), leaves(by_hand), strict=True):
        assert path == other and np.array_equal(a, b)
    assert PARAMS["layers"][1]["attention"]["output"]["W"][14:].all()


@pytest.mark.parametrize("layer", range(L))
def test_without_layer_passes_the_input_on(layer):
    params, config = without_layer(PARAMS, CONFIG, layer)
    assert config.num_hidden_layers == L - 1 and CONFIG.num_hidden_layers == L
    _, trace = forward()
    x = trace["layers"][layer - 1]["output"] if layer else trace["embeddings"]["output"]
    visible = MASK.astype(bool)
    for part in PARAMS["layers"][layer + 1 :]:
        x, _ = bert_np.encoder_layer(x, part, visible, CONFIG)
    found = bert(INPUT_IDS, params, config, **INPUTS)["last_hidden_state"]
    np.testing.assert_allclose(found, x, rtol=1e-12)


# -------------------------------------------------------------------- errors

NO_MLM = {name: part for name, part in PARAMS.items() if name != "mlm"}
STACK = np.broadcast_to(HAND, (2, 3, 4, 4))  # (L, A, T, T)
BATCH = np.broadcast_to(HAND, (2, 3, 4, 4))  # (B, A, T, T)


@pytest.mark.parametrize("call, culprit", [
    (lambda: attention_entropy(np.ones(4)), r"probs has shape \(4,\), allowed"),
    (lambda: attention_entropy(np.ones((2, 3))), r"probs has shape \(2, 3\)"),
    (lambda: attention_entropy(np.ones((0, 0))), r"probs has shape \(0, 0\)"),
    (lambda: attention_entropy(HAND * 2), r"probs\[0, 0\] = 2, allowed: 0..1"),
    (lambda: attention_distance(HAND * np.nan), r"probs\[0, 0\] = nan"),
    (lambda: attention_distance(-HAND), r"probs\[0, 0\] = -1, allowed"),
    (lambda: attention_distance("maps"), "probs has dtype"),
    (lambda: attention_distance([HAND, HAND[:3, :3]]), r"entries have shapes"),
    (lambda: attention_entropy(HAND, np.ones(3)), r"\(3,\), allowed: \(4,\) for"),
    (lambda: attention_entropy(BATCH, np.ones((3, 4))), r"allowed: \(4,\) or \(2, 4\)"),
    (lambda: attention_entropy(BATCH[0], np.ones((3, 4))), r"allowed: \(4,\) for"),
    (lambda: attention_entropy(HAND, [1, 1, 0.5, 0]), r"attention_mask\[2\] = 0.5"),
    (lambda: attention_masses(HAND, "abcd"), "tokens is str"),
    (lambda: attention_masses(HAND, None), "tokens is NoneType"),
    (lambda: attention_masses(HAND, TOKENS[:3]), "3 entries, allowed: 4"),
    (lambda: attention_masses(HAND, []), "0 entries, allowed: 4"),
    (lambda: attention_masses(HAND, [1, 2, 3, 4]), "tokens holds int"),
    (lambda: attention_masses(HAND, [TOKENS]), "tokens has 1 lists"),
    (lambda: attention_masses(BATCH, [TOKENS] * 3), "tokens has 3 lists"),
    (lambda: rollout(HAND), r"probs has shape \(4, 4\), allowed: \(L, A, T, T\)"),
    (lambda: rollout(STACK, residual=1.5), "residual = 1.5, allowed: a number in 0..1"),
    (lambda: rollout(STACK, residual=np.nan), "residual = nan"),
    (lambda: rollout(STACK, residual=True), "residual = True"),
    (lambda: rollout(STACK, residual="half"), "residual = 'half'"),
    (lambda: head_distances(HAND), r"probs has shape \(4, 4\), allowed"),
    (lambda: rollout(STACK, np.ones((2, 4))), "attention_mask has two axes"),
    (lambda: head_distances(STACK, np.ones((2, 4))), "attention_mask has two axes"),
    (lambda: head_distances(STACK, np.zeros(4)), "attention_mask has no 1"),
    (lambda: weighted_norms({}, PARAMS), "trace has no layers"),
    (lambda: weighted_norms(None, PARAMS), "trace has no layers"),
    (lambda: weighted_norms({"layers": [{}, {}]}, PARAMS), "no layers.0.attention.v"),
    (lambda: weighted_norms({"layers": [{}]}, PARAMS), "1 layers, params 2"),
    (lambda: summed_weighted_norms(forward()[1], PARAMS, MASK[:, :3]),
     r"attention_mask has shape \(2, 3\), allowed: \(5,\) or \(2, 5\)"),
    (lambda: logit_lens(forward()[1], NO_MLM, CONFIG), "no 'mlm'"),
    (lambda: logit_lens({"layers": []}, PARAMS, CONFIG), "no embeddings.output"),
    (lambda: logit_lens(forward()[1], PARAMS, CONFIG, [5]), r"positions = 5, allowed"),
    (lambda: logit_lens(forward()[1], PARAMS, CONFIG, 1), r"positions = 1, allowed"),
    (lambda: without_head(PARAMS, CONFIG, 2, 0), "layer = 2, allowed 0..1"),
    (lambda: without_head(PARAMS, CONFIG, 0, -1), "head = -1, allowed 0..2"),
    (lambda: without_head(PARAMS, CONFIG, 0, 1.0), "head must be an int"),
    (lambda: without_layer(PARAMS, CONFIG, -1), "layer = -1, allowed 0..1"),
    (lambda: without_layer(*without_layer(PARAMS, CONFIG, 0), 0),
     "num_hidden_layers = 1, allowed: 2 or more"),
    (lambda: ablation_effects(INPUT_IDS, NO_MLM, CONFIG, positions=POSITIONS),
     "no 'mlm'"),
    (lambda: ablation_effects(INPUT_IDS, PARAMS, CONFIG, positions=[[1, 0]]),
     r"positions has shape \(1, 2\), allowed: \(2, 5\)"),
    (lambda: ablation_effects(INPUT_IDS, PARAMS, CONFIG, positions=POSITIONS * 2),
     r"positions\[0, 1\] = 2, allowed: 0 or 1"),
    (lambda: ablation_effects(INPUT_IDS, PARAMS, CONFIG, positions=POSITIONS * 0),
     "positions has no 1"),
    (lambda: ablation_effects(INPUT_IDS * 0, PARAMS, CONFIG), "no real token"),
    (lambda: ablation_effects([[99]], PARAMS, CONFIG), r"input_ids\[0, 0\] = 99"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(call, culprit):
    with pytest.raises(BertError, match=culprit):
        call()


@pytest.mark.parametrize("texts, options, culprit", [
    ([], {}, "texts must be a list"),
    ("cat", {}, "texts must be a list"),
    (["cat", 3], {}, r"texts\[1\]"),
    (["cat"], {"batch_size": 0}, "batch_size = 0"),
    (["the " * 11], {}, "13 positions"),
])  # fmt: skip
def test_a_summary_refuses(toy, texts, options, culprit):
    with pytest.raises(BertError, match=culprit):
        summarise_heads(texts, *toy, **options)


@pytest.mark.parametrize("call", [
    lambda p, c: summarise_heads(["cat"], p, c, None),
    lambda p, c: top_words(np.zeros(12), None),
])  # fmt: skip
def test_a_checkpoint_without_vocabulary_says_so(toy, call):
    with pytest.raises(BertError, match="vocab.txt"):
        call(*toy[:2])


# ------------------------------------------- MiniLM over a book's sentences


def test_the_sentences_are_whole_and_differ():
    assert len(ALICE) == len(set(ALICE)) >= 120
    for sentence in ALICE:
        assert sentence[0].isupper() and sentence.endswith(".")
        assert sentence == " ".join(sentence.split()) and sentence.isascii()
        assert 8 <= len(sentence.split()) <= 30


@pytest.fixture(scope="module")
def seen(minilm):
    """(means of attention, means of what is moved) of MiniLM over ALICE."""
    found = [summarise_heads(ALICE, *minilm, by_norm=by_norm) for by_norm in (0, 1)]
    assert all(summary.tokens == 2814 for summary in found)
    return [summary.means for summary in found]


def test_minilm_has_one_previous_token_head(seen):
    previous = seen[0]["previous"]
    assert previous[0, 2] > 0.99 and seen[0]["normalised entropy"][0, 2] < 0.01
    others = np.delete(previous.ravel(), 2)
    assert 0.35 < others.max() < 0.45 and previous[2, 11] == others.max()


def test_minilm_has_one_next_token_head(seen):
    following = seen[0]["next"]
    assert 0.65 < following[1, 8] < 0.72
    assert np.delete(following.ravel(), 12 + 8).max() < 0.33


def test_minilm_rests_its_attention_on_cls_and_not_on_sep(seen):
    to_cls, to_sep = (seen[0][name].mean(axis=1) for name in ("[CLS]", "[SEP]"))
    measured = [0.153, 0.482, 0.509, 0.441, 0.548, 0.330]
    np.testing.assert_allclose(to_cls, measured, atol=0.01)
    assert to_sep.max() < 0.06 and (to_cls > 2.5 * to_sep).all()


def test_what_minilm_moves_from_cls_is_small(seen):
    """Norms cut the share of [CLS] in layers 1 to 5 to a quarter or less."""
    looked, moved = (means["[CLS]"].mean(axis=1) for means in seen)
    measured = [0.051, 0.103, 0.102, 0.057, 0.086, 0.053]
    np.testing.assert_allclose(moved, measured, atol=0.01)
    assert (moved[1:] < looked[1:] / 4).all() and moved[0] < looked[0] / 2


def test_no_head_of_minilm_looks_mostly_at_its_own_token(seen):
    assert 0.15 < seen[0]["self"].max() < 0.22
    assert 0.05 < seen[0]["self"].mean() < 0.1


def test_minilm_s_first_layer_looks_widest_and_nearest(seen):
    entropy = seen[0]["normalised entropy"].mean(axis=1)
    distance = seen[0]["distance"].mean(axis=1)
    assert entropy.argmax() == 0 and 0.75 < entropy[0] < 0.8
    assert entropy.argmin() == 1 and 0.42 < entropy[1] < 0.48
    assert distance.argmin() == 0 and 6.9 < distance[0] < 7.4
    assert (distance[3:] > distance[0] + 1.5).all()


def test_heads_of_one_layer_of_minilm_look_more_alike(minilm):
    params, config, tokenizer = minilm
    batch = tokenizer.encode_batch(ALICE[:20])
    out = bert(batch.input_ids, params, config, attention_mask=batch.attention_mask)
    distances = head_distances(out["attention_probs"], batch.attention_mask)
    layer = np.arange(72) // 12
    same = (layer[:, None] == layer) & ~np.eye(72, dtype=bool)
    apart = layer[:, None] != layer
    assert distances[same].mean() + 0.02 < distances[apart].mean()
    assert distances.mean(axis=1).argmax() == 2  # (0, 2), the previous-token head
