"""Numbers about attention: by hand, by scalar loops, and on MiniLM."""

import math
from functools import partial

import numpy as np
import oracle
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import BertError, Tokenizer, bert, masked_lm_logits
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
from bert_np.tree import leaves, map_leaves

PARAMS = random_params()
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
INPUTS = {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}
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


def assert_close(found, expected, rtol=1e-11, atol=1e-14):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def forward(ids=INPUT_IDS, params=PARAMS, **inputs):
    trace = {}
    return bert(ids, params, CONFIG, trace=trace, **inputs), trace


OUT, TRACE = forward(**INPUTS)


# One row of a map


def test_entropy_by_hand():
    last = -(0.125 * math.log(0.125) + 0.875 * math.log(0.875))
    nats = np.array([0, math.log(2), math.log(4), last])
    assert_close(attention_entropy(HAND, normalise=False), nats)
    assert_close(attention_entropy(HAND), nats / math.log(4))


def test_entropy_is_divided_by_the_visible_keys_of_the_row():
    maps = np.array([[[[1 / 3] * 3 + [0]] * 4], [[[0.5, 0.5, 0, 0]] * 4]])
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    assert_close(attention_entropy(maps, mask), [[[1, 1, 1, 0]], [[1, 1, 0, 0]]])
    one_key = np.array([[1 - 1e-6, 0], [0.5, 0.5]])
    assert attention_entropy(one_key, np.array([1, 0])).tolist() == [0, 0]


def test_distance_by_hand():
    assert_close(attention_distance(HAND), [0, 1, 1, 0.25])
    assert_close(attention_distance(HAND, np.array([1, 1, 1, 0])), [0, 1, 0.75, 0])


def test_masses_by_hand():
    found = attention_masses(HAND, TOKENS)
    assert {name: values.tolist() for name, values in found.items()} == {
        "self": [1, 0, 0.25, 0.875],
        "previous": [0, 0.5, 0.25, 0],
        "next": [0, 0.5, 0.25, 0],
        "[CLS]": [1, 0.5, 0.25, 0],
        "[SEP]": [0, 0, 0.25, 0.875],
        "punctuation": [0, 0.5, 0.25, 0],
    }
    found = attention_masses(HAND, ["[SEP]", "[SEP]", "?!", "x."])
    assert found["[SEP]"].tolist() == [1, 0.5, 0.5, 0.125]
    assert found["punctuation"].tolist() == [0, 0.5, 0.25, 0]


def test_masses_of_a_batch_take_each_sentence_its_tokens():
    maps = np.broadcast_to(HAND, (3, 2, 5, 4, 4))  # (L, B, A, T, T)
    tokens = [TOKENS, ["[CLS]", "...", "[SEP]", "[PAD]"]]
    found = attention_masses(maps, tokens, np.array([[1, 1, 1, 1], [1, 1, 1, 0]]))
    separators = [[0, 0, 0.25, 0.875], [0, 0.5, 0.25, 0]]
    assert found["[SEP]"][2, :, 4].tolist() == separators
    assert found["next"][2, :, 4].tolist() == [[0, 0.5, 0.25, 0], [0, 0.5, 0, 0]]


def mass(name):
    tokens = ["[CLS]", "[SEP]", ".", "a", "[SEP]"]
    return lambda maps, mask: attention_masses(maps, tokens[: maps.shape[-1]], mask)[
        name
    ]


MASSES = ("self", "previous", "next", "[CLS]", "[SEP]", "punctuation")
MEASURES = [attention_entropy, attention_distance, *map(mass, MASSES)]


@pytest.mark.parametrize("measure", MEASURES)
def test_padding_changes_no_measure(measure):
    alone, _ = forward(INPUT_IDS[1:, :3], segment_ids=SEGMENT_IDS[1:, :3])
    values = measure(np.stack(OUT["attention_probs"]), MASK)
    assert values.shape == (L, 2, A, 5) and not values[:, 1, :, 3:].any()
    expected = measure(np.stack(alone["attention_probs"]), None)
    assert expected.any()
    assert_close(values[:, 1:, :, :3], expected)


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_keep_float32_and_their_input(measure):
    maps = HAND.astype(np.float32)
    maps.flags.writeable = False
    assert measure(maps, None).dtype == np.float32
    assert measure(maps[None, None], np.array([[1, 1, 1, 0]])).dtype == np.float32


# Heads over many texts

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", ".", ","]
TEXTS = ["the cat sat.", "cat", "", ("the cat", "sat, sat."), "the the, the cat sat."]
TOY = PARAMS, CONFIG, Tokenizer.from_tokens(WORDS)


def test_a_summary_knows_special_tokens_of_other_names():
    special = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    renamed = Tokenizer.from_tokens([*special, *WORDS[5:]], special=special)
    found = summarise_heads(TEXTS, *TOY[:2], renamed).means
    for name, values in summarise_heads(TEXTS, *TOY).means.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    assert found["[SEP]"].min() > 0


@pytest.mark.parametrize("by_norm", [False, True])
def test_a_summary_is_the_mean_over_all_tokens(by_norm):
    found = summarise_heads(TEXTS, *TOY, by_norm=by_norm, batch_size=2)
    values = {name: [] for name in found.means}
    for text in TEXTS:
        batch = TOY[2].encode_batch([text])
        out, trace = forward(batch.input_ids, segment_ids=batch.segment_ids)
        maps = np.stack(out["attention_probs"])
        if by_norm:
            maps = np.stack(weighted_norms(trace, PARAMS))
            maps = maps / maps.sum(axis=-1, keepdims=True)
        maps, tokens = maps[:, 0], batch.tokens[0]  # (L, A, T, T)
        values["entropy"].append(attention_entropy(maps, normalise=False))
        values["normalised entropy"].append(attention_entropy(maps))
        values["distance"].append(attention_distance(maps))
        for name, masses in attention_masses(maps, tokens).items():
            neighbours = slice(name == "previous", len(tokens) - (name == "next"))
            values[name].append(masses[..., neighbours])
    assert found.texts == 5 and found.tokens == 6 + 3 + 2 + 9 + 9
    for name, parts in values.items():
        assert_close(found.means[name], np.concatenate(parts, axis=-1).mean(axis=-1))


def test_progress_is_reported_and_the_batch_size_changes_rounding_only():
    lines = []
    found = summarise_heads(TEXTS, *TOY, report=lines.append, batch_size=2)
    assert lines == ["texts 2/5", "texts 4/5", "texts 5/5"]
    for name, values in summarise_heads(TEXTS, *TOY).means.items():
        assert_close(found.means[name], values)
    lines.clear()
    summarise_heads(["cat"] * 57, *TOY, report=lines.append, batch_size=1)
    assert len(lines) == 10 and lines[-1] == "texts 57/57"


def divergence(p, q):
    """Jensen-Shannon as the mean of two Kullback-Leibler divergences."""
    pairs = [(x, (a + b) / 2) for a, b in zip(p, q) for x in (a, b)]
    return sum(0.5 * x * math.log(x / middle) for x, middle in pairs if x > 0)


def test_head_distances_equal_the_loops_and_leave_padding_out():
    maps = OUT["attention_probs"]
    expected = np.zeros((L * A, L * A))
    for i, j in np.ndindex(expected.shape):
        for row, query in np.argwhere(MASK):
            p, q = (maps[n // A][row, n % A, query] for n in (i, j))
            expected[i, j] += divergence(p, q) / MASK.sum()
    found = head_distances(maps, MASK)
    assert found.dtype == np.float64
    assert_close(found, expected, atol=1e-12)
    one, other = np.eye(2), np.eye(2)[::-1]
    assert head_distances([[one, other]])[0, 1] == math.log(2)


# Beyond the weights


@pytest.mark.parametrize("residual", [0.5, 0.2, 0, 1])
def test_rollout_equals_the_loops(residual):
    found = rollout(OUT["attention_probs"], MASK, residual)
    assert found.shape == (L, 2, 5, 5)
    for row, visible in enumerate(MASK):
        before, T = np.eye(5), visible.sum()
        for layer, probs in enumerate(OUT["attention_probs"]):
            step = np.zeros((5, 5))
            for i, j in np.ndindex(T, T):
                mean = sum(head[i, j] for head in probs[row]) / A
                step[i, j] = (1 - residual) * mean + residual * (i == j)
            before = step @ before
            assert_close(found[layer, row], before)


def moved_by_loops(x, attention):
    """f(x_j) of each head, [head][key], from the layer's input (T, H)."""
    D, W = CONFIG.head_size, attention["output"]["W"].tolist()
    values = [oracle.linear(row, **attention["value"]) for row in x.tolist()]

    def moved(v, a):
        return [sum(v[d] * W[d][o] for d in range(a * D, a * D + D)) for o in range(H)]

    return [[moved(v, a) for v in values] for a in range(A)]


@pytest.mark.parametrize("normalise", [False, True])
def test_weighted_norms_equal_the_loops(normalise):
    found = weighted_norms(TRACE, PARAMS, MASK, normalise)
    summed = summed_weighted_norms(TRACE, PARAMS, MASK, normalise)
    assert len(found) == len(summed) == L
    for i in range(L):
        inputs = TRACE["layers"][i - 1] if i else TRACE["embeddings"]
        each, total = np.zeros((2, A, 5, 5)), np.zeros((2, 5, 5))
        for row in range(2):
            f = moved_by_loops(inputs["output"][row], PARAMS["layers"][i]["attention"])
            for q, k in np.argwhere(np.outer(MASK[row], MASK[row])):
                weights = OUT["attention_probs"][i][row, :, q, k]
                parts = [[p * x for x in f[a][k]] for a, p in enumerate(weights)]
                each[row, :, q, k] = [math.hypot(*part) for part in parts]
                total[row, q, k] = math.hypot(*map(sum, zip(*parts)))
        if normalise:
            each, total = (
                x / np.maximum(x.sum(axis=-1, keepdims=True), 1e-300)
                for x in (each, total)
            )
        assert_close(found[i], each)
        assert_close(summed[i], total)


def test_summed_norms_do_not_depend_on_the_blocks_of_queries():
    T = CONFIG.max_position_embeddings  # 17: a block of 16 and one of 1
    ids = np.random.default_rng(0).integers(1, CONFIG.vocab_size, (1, T))
    _, trace = forward(ids)
    attention = trace["layers"][1]["attention"]
    W = PARAMS["layers"][1]["attention"]["output"]["W"].reshape(A, -1, H)
    vectors = np.einsum("aqk,akd,ado->qko", attention["probs"][0], attention["v"][0], W)
    found = summed_weighted_norms(trace, PARAMS)[1]
    assert_close(found[0], np.linalg.norm(vectors, axis=-1))


def test_norms_and_rollout_keep_float32():
    params = random_params(dtype=np.float32)
    out, trace = forward(params=params)
    assert rollout(out["attention_probs"], residual=np.float64(0.5)).dtype == np.float32
    for function in (weighted_norms, summed_weighted_norms):
        for options in ((MASK,), (None, True)):
            dtypes = {norms.dtype for norms in function(trace, params, *options)}
            assert dtypes == {np.dtype(np.float32)}


def test_the_lens_reads_every_layer_with_the_head_of_the_model():
    lens = logit_lens(TRACE, PARAMS, CONFIG)
    stages = [TRACE["embeddings"], *TRACE["layers"]]
    expected = [masked_lm_logits(stage["output"], PARAMS, CONFIG) for stage in stages]
    assert np.array_equal(lens, expected)
    some = logit_lens(TRACE, PARAMS, CONFIG, positions=[4, 1])
    assert_close(some, lens[:, :, [4, 1]])


def test_top_words():
    logits = np.zeros((2, 12))
    logits[0, 6], logits[0, 7], logits[1, 5], logits[:, 11] = 2, 1, 3, 9
    words, probs = top_words(logits, TOY[2], top_k=2)
    assert words[0].tolist() == ["cat", "sat"] and words[1, 0] == "the"
    total = math.exp(2) + math.exp(1) + 8  # ids beyond the vocabulary do not count
    assert_close(probs[0], [math.exp(2) / total, math.e / total])


# Ablation


def with_output_rows_0(layer, head):
    """PARAMS edited by hand: the head's rows of the output matrix are 0."""
    path = f"layers.{layer}.attention.output.W"
    rows = (np.arange(H) // CONFIG.head_size != head)[:, None]
    return map_leaves(lambda p, x: x * rows if p == path else x, PARAMS)


def effect_by_loops(ablated, positions):
    """Mean relative change over real tokens, mean KL over positions."""
    whole = OUT["last_hidden_state"]
    moved = [
        math.dist(ablated[place], whole[place]) / math.hypot(*whole[place])
        for place in map(tuple, np.argwhere(MASK))
    ]
    logits = [masked_lm_logits(x, PARAMS, CONFIG) for x in (whole, ablated)]
    gaps = []
    for place in map(tuple, np.argwhere(positions)):
        p, q = (oracle.softmax(x[place].tolist(), [True] * 23) for x in logits)
        gaps.append(sum(a * math.log(a / b) for a, b in zip(p, q)))
    return sum(moved) / len(moved), sum(gaps) / len(gaps)


POSITIONS = np.array([[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]])


def test_ablating_equals_editing_by_hand():
    lines = []
    options = {"positions": POSITIONS, "report": lines.append}
    effects = ablation_effects(INPUT_IDS, PARAMS, CONFIG, **INPUTS, **options)
    assert [line.split(":")[0] for line in lines] == ["layer 1/2", "layer 2/2"]
    for layer, head in np.ndindex(L, A):
        out, _ = forward(params=with_output_rows_0(layer, head), **INPUTS)
        expected = effect_by_loops(out["last_hidden_state"], POSITIONS)
        found = effects.heads[layer, head], effects.heads_kl[layer, head]
        assert_close(found, expected, rtol=1e-9)
    for layer in range(L):
        params, config = without_layer(PARAMS, CONFIG, layer)
        out = bert(INPUT_IDS, params, config, **INPUTS)
        expected = effect_by_loops(out["last_hidden_state"], POSITIONS)
        found = effects.layers[layer], effects.layers_kl[layer]
        assert_close(found, expected, rtol=1e-9)


def test_the_mask_and_segments_of_an_ablation_have_the_defaults_of_bert():
    plain = ablation_effects(INPUT_IDS.tolist(), PARAMS, CONFIG)
    inputs = {"segment_ids": SEGMENT_IDS * 0, "attention_mask": MASK}
    given = ablation_effects(INPUT_IDS, PARAMS, CONFIG, **inputs)
    assert np.array_equal(plain.heads, given.heads)
    assert np.array_equal(plain.layers, given.layers)
    assert plain.heads_kl is None and plain.layers_kl is None


def test_without_head_changes_one_matrix():
    pairs = zip(
        leaves(without_head(PARAMS, CONFIG, 1, 2)), leaves(with_output_rows_0(1, 2))
    )
    assert all(a == b and np.array_equal(x, y) for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("layer", range(L))
def test_without_layer_passes_the_input_on(layer):
    params, config = without_layer(PARAMS, CONFIG, layer)
    assert config.num_hidden_layers == L - 1 and CONFIG.num_hidden_layers == L
    x = (TRACE["layers"][layer - 1] if layer else TRACE["embeddings"])["output"]
    x, _ = bert_np.encoder(x, PARAMS["layers"][layer + 1 :], MASK, CONFIG)
    found = bert(INPUT_IDS, params, config, **INPUTS)["last_hidden_state"]
    assert_close(found, x)


# What is refused

NO_MLM = {name: part for name, part in PARAMS.items() if name != "mlm"}
BATCH = np.broadcast_to(HAND, (2, 3, 4, 4))  # (B, A, T, T) or (L, A, T, T)
ONE_LAYER = without_layer(PARAMS, CONFIG, 0)
MODEL = INPUT_IDS, PARAMS, CONFIG


def at(positions):
    return partial(ablation_effects, positions=positions)


@pytest.mark.parametrize(
    "function, arguments, message",
    [
        (attention_entropy, (np.ones((2, 3)),), r"probs has shape \(2, 3\)"),
        (attention_entropy, (np.ones((0, 0)),), r"probs has shape \(0, 0\)"),
        (attention_entropy, (HAND * 2,), r"probs\[0, 0\] = 2, allowed: 0..1"),
        (attention_distance, (HAND * np.nan,), r"probs\[0, 0\] = nan"),
        (attention_distance, ("maps",), "probs has dtype"),
        (attention_distance, ([HAND, HAND[:3, :3]],), "entries have shapes"),
        (attention_entropy, (HAND, np.ones(3)), r"\(3,\), allowed: \(4,\) for"),
        (attention_entropy, (BATCH, np.ones((3, 4))), r"allowed: \(4,\) or \(2, 4\)"),
        (attention_entropy, (HAND, [1, 1, 0.5, 0]), r"attention_mask\[2\] = 0.5"),
        (attention_masses, (HAND, "abcd"), "tokens is str"),
        (attention_masses, (HAND, TOKENS[:3]), "3 entries, allowed: 4"),
        (attention_masses, (HAND, [1, 2, 3, 4]), "tokens holds int"),
        (attention_masses, (BATCH, [TOKENS] * 3), "tokens has 3 lists"),
        (rollout, (HAND,), r"probs has shape \(4, 4\), allowed: \(L, A, T, T\)"),
        (rollout, (BATCH, None, 1.5), "residual = 1.5, allowed: a number in 0..1"),
        (rollout, (BATCH, None, True), "residual = True"),
        (rollout, (BATCH, np.ones((2, 4))), "attention_mask has two axes"),
        (head_distances, (BATCH, np.zeros(4)), "attention_mask has no 1"),
        (weighted_norms, (None, PARAMS), "trace has no layers"),
        (weighted_norms, ({"layers": [{}, {}]}, PARAMS), "no layers.0.attention.v"),
        (weighted_norms, ({"layers": [{}]}, PARAMS), "1 layers, params 2"),
        (weighted_norms, (TRACE, []), "params is list"),
        (logit_lens, (TRACE, NO_MLM, CONFIG), "no 'mlm'"),
        (logit_lens, ({"layers": []}, PARAMS, CONFIG), "no embeddings.output"),
        (logit_lens, (TRACE, PARAMS, CONFIG, [5]), "positions = 5, allowed"),
        (logit_lens, (TRACE, PARAMS, CONFIG, 1), "positions = 1, allowed"),
        (without_head, (PARAMS, CONFIG, 2, 0), "layer = 2, allowed 0..1"),
        (without_head, (PARAMS, CONFIG, 0, -1), "head = -1, allowed 0..2"),
        (without_layer, (*ONE_LAYER, 0), "num_hidden_layers = 1, allowed: 2 or more"),
        (ablation_effects, (INPUT_IDS * 0, PARAMS, CONFIG), "no real token"),
        (at(POSITIONS), (INPUT_IDS, NO_MLM, CONFIG), "no 'mlm'"),
        (at([[1, 0]]), MODEL, r"positions has shape \(1, 2\), allowed: \(2, 5\)"),
        (at(POSITIONS * 2), MODEL, r"positions\[0, 1\] = 2, allowed: 0 or 1"),
        (at(POSITIONS * 0), MODEL, "positions has no 1"),
        (summarise_heads, (["cat"], *TOY[:2], None), "vocab.txt"),
        (summarise_heads, (["cat", 3], *TOY), r"texts\[1\]"),
        (top_words, (np.zeros(12), None), "vocab.txt"),
        (top_words, (np.zeros(12, int), TOY[2]), "logits is int64"),
        (top_words, (np.zeros(9), TOY[2]), r"logits has shape \(9,\).*least 10"),
    ],
)
def test_what_cannot_be_measured_is_refused(function, arguments, message):
    with pytest.raises(BertError, match=message):
        function(*arguments)


# MiniLM over a book's sentences: what the course says about its heads


@pytest.mark.slow
def test_heads_of_minilm(minilm):
    looked, moved = (
        summarise_heads(ALICE, *minilm, by_norm=by_norm).means
        for by_norm in (False, True)
    )
    previous, following = looked["previous"].ravel(), looked["next"].ravel()
    assert previous[2] > 0.99 and np.delete(previous, 2).max() < 0.45
    assert following[20] > 0.65 and np.delete(following, 20).max() < 0.33
    to_cls, to_sep = (looked[name].mean(axis=1) for name in ("[CLS]", "[SEP]"))
    assert_close(to_cls, [0.153, 0.482, 0.509, 0.441, 0.548, 0.330], atol=0.01)
    assert to_sep.max() < 0.06
    moved = moved["[CLS]"].mean(axis=1)
    assert_close(moved, [0.051, 0.103, 0.102, 0.057, 0.086, 0.053], atol=0.01)
    widths = looked["normalised entropy"].mean(axis=1)
    assert widths.argmax() == 0 and widths.argmin() == 1


@pytest.mark.slow
def test_heads_of_one_layer_of_minilm_look_more_alike(minilm):
    batch = minilm.tokenizer.encode_batch(ALICE[:20])
    out = bert(**batch.inputs, params=minilm.params, config=minilm.config)
    distances = head_distances(out["attention_probs"], batch.attention_mask)
    layer = np.arange(72) // 12
    same = (layer[:, None] == layer) & ~np.eye(72, dtype=bool)
    apart = layer[:, None] != layer
    assert distances[same].mean() + 0.02 < distances[apart].mean()
    assert distances.mean(axis=1).argmax() == 2  # (0, 2), the previous-token head
