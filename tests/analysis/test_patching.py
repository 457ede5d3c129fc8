"""Patching: nothing, everything, by scalar loops, and as ablation."""

from copy import deepcopy
from functools import cache

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import BertError, bert, masked_lm_logits, next_sentence_logits
from bert_np.analysis import (
    Place,
    ablation_effects,
    cosine_with,
    head_places,
    logit_difference,
    mean_run,
    next_sentence_difference,
    patch_grid,
    position_places,
    run_patched,
    without_layer,
)
from bert_np.analysis.patching import OF_HEADS, STAGES
from bert_np.tree import leaves

PARAMS = random_params()
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
MODEL = {"params": PARAMS, "config": CONFIG}
INPUTS = {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}
OTHER_IDS = np.array([[4, 17, 22, 3, 1], [13, 5, 9, 0, 0]])
L, A, D = CONFIG.num_hidden_layers, CONFIG.num_attention_heads, CONFIG.head_size


def forward(ids, params=PARAMS):
    trace = {}
    return bert(ids, params, CONFIG, trace=trace, **INPUTS), trace


OUT, TRACE = forward(INPUT_IDS)
OTHER_OUT, OTHER = forward(OTHER_IDS)
HIDDEN, OTHER_HIDDEN = OUT["last_hidden_state"], OTHER_OUT["last_hidden_state"]


def patched(patches, ids=INPUT_IDS, params=PARAMS, **options):
    out = run_patched(ids, params, CONFIG, patches, **INPUTS, **options)
    return out["last_hidden_state"]


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


# Nothing and everything


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_patches_it_is_bert(dtype):
    params, trace = random_params(dtype=dtype), {}
    out, expected = forward(INPUT_IDS, params)
    found = run_patched(INPUT_IDS, params, CONFIG, {}, **INPUTS, trace=trace)
    assert dict(leaves(trace)).keys() == dict(leaves(expected)).keys()
    for (path, array), (_, same) in zip(leaves(out), leaves(found)):
        assert array.dtype == same.dtype and np.array_equal(array, same), path
    for path, array in leaves(trace):
        assert np.array_equal(array, dict(leaves(expected))[path]), path
    plain = run_patched(INPUT_IDS.tolist(), params, CONFIG, {})
    assert np.array_equal(
        plain["pooler_output"], bert(INPUT_IDS, params, CONFIG)["pooler_output"]
    )


EVERYTHING = [
    {Place("embeddings"): OTHER},
    {Place("hidden"): OTHER},
    {Place("hidden", L - 1): OTHER},
    {Place("hidden", 0): OTHER},
    {Place("embeddings", position=t): OTHER for t in range(5)},
    {Place("ffn", 0): OTHER, Place("hidden", 0): OTHER},
    dict.fromkeys(map(Place, STAGES), OTHER),
]


@pytest.mark.parametrize("patches", EVERYTHING)
def test_with_everything_from_another_run_it_is_that_run(patches):
    trace = {}
    out = run_patched(INPUT_IDS, **MODEL, patches=patches, **INPUTS, trace=trace)
    for name in ("last_hidden_state", "pooler_output"):
        assert np.array_equal(out[name], OTHER_OUT[name])
    last = trace["layers"][-1]["output"]
    assert np.array_equal(last, OTHER_HIDDEN)


places = st.builds(
    Place,
    st.sampled_from(list(STAGES)),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 0, 1, 2]),
    st.one_of(st.none(), st.integers(0, 4), st.tuples(*[st.integers(0, 4)] * 2)),
)


def legal(place):
    """The place without a layer or a head where its stage has none."""
    layer = None if place.stage == "embeddings" else place.layer
    return place._replace(
        layer=layer, head=place.head if place.stage in OF_HEADS else None
    )


@settings(max_examples=40)
@given(place=places)
def test_what_is_patched_from_the_same_run_changes_nothing(place):
    found = patched({legal(place): TRACE})
    assert np.array_equal(found, HIDDEN)


@settings(max_examples=40)
@given(place=places)
def test_a_patch_and_its_parts_are_the_same(place):
    place = legal(place)
    heads = range(A) if place.stage in OF_HEADS and place.head is None else [place.head]
    rows = range(5) if place.position is None else [place.position]
    layers = [place.layer]
    if place.layer is None and place.stage != "embeddings":
        layers = range(L)
    parts = [
        place._replace(layer=layer, head=head, position=row)
        for layer in layers
        for head in heads
        for row in rows
    ]
    whole, many = patched({place: OTHER}), patched(dict.fromkeys(parts, OTHER))
    assert_close(many, whole)


# By scalar loops


@cache
def stages(row):
    """The stages of both runs of one passage."""
    return [
        oracle.one_sequence(ids[row], SEGMENT_IDS[row], MASK[row], PARAMS, CONFIG)
        for ids in (INPUT_IDS, OTHER_IDS)
    ]


def looped(row, place):
    """One passage in loops; at the place, what the other run has there."""
    run = deepcopy(stages(row))
    own, other = (stage["layers"][place.layer] for stage in run)
    params, before = PARAMS["layers"][place.layer], run[0]["embeddings"]["output"]
    before = run[0]["layers"][place.layer - 1]["output"] if place.layer else before
    at, head, x = place.position, place.head, own["attention"]
    taken = other["attention"]
    context = [list(vector) for vector in x["context"]]
    for d in range(D):
        if place.stage == "context":
            context[at][head * D + d] = taken["context"][at][head * D + d]
        if place.stage == "probs":
            context[at][head * D + d] = sum(
                taken["probs"][head][at][s] * x["v"][head][s][d] for s in range(5)
            )
    output = [oracle.linear(v, **params["attention"]["output"]) for v in context]
    norm = oracle.add_and_norm(before, output, params["attention_norm"], CONFIG)
    outer = oracle.feed_forward(norm["output"], params["ffn"], CONFIG)["outer"]
    if place.stage == "ffn":
        outer[at] = other["ffn"]["outer"][at]
    x = oracle.add_and_norm(norm["output"], outer, params["ffn_norm"], CONFIG)["output"]
    if place.stage == "hidden":
        x[at] = other["output"][at]
    for rest in PARAMS["layers"][place.layer + 1 :]:
        x = oracle.encoder_layer(x, MASK[row], rest, CONFIG)["output"]
    return x


@pytest.mark.parametrize(
    "place",
    [
        Place("probs", 0, 1, 2),
        Place("probs", 1, 2, 0),
        Place("context", 0, 2, 1),
        Place("context", 1, 0, 2),
        Place("ffn", 0, None, 1),
        Place("hidden", 0, None, 0),
    ],
)
def test_a_patch_equals_the_loops(place):
    expected = [looped(row, place) for row in range(2)]
    assert not np.allclose(expected, HIDDEN)
    assert_close(patched({place: OTHER}), expected)
    if place.stage == "context":
        assert_close(patched({place._replace(stage="head_output"): OTHER}), expected)


def test_each_passage_can_have_its_own_position():
    found = patched({Place("v", 0, 1, (3, 1)): OTHER})
    for row, position in enumerate((3, 1)):
        assert_close(found[row], patched({Place("v", 0, 1, position): OTHER})[row])


# Numbers, arrays, means


def test_patching_zeros_is_ablation():
    effects = ablation_effects(INPUT_IDS, PARAMS, CONFIG, **INPUTS)
    real = MASK.astype(bool)
    for layer, head in np.ndindex(L, A):
        found = patched({Place("context", layer, head): 0})
        moved = np.linalg.norm((found - HIDDEN)[real], axis=-1)
        moved /= np.linalg.norm(HIDDEN[real], axis=-1)
        assert_close(moved.mean(), effects.heads[layer, head])
        assert_close(patched({Place("head_output", layer, head): 0.0}), found)


@pytest.mark.parametrize("layer", range(L))
def test_a_layer_whose_input_is_its_output_is_left_out(layer):
    before = TRACE["layers"][layer - 1] if layer else TRACE["embeddings"]
    expected = bert(INPUT_IDS, *without_layer(PARAMS, CONFIG, layer), **INPUTS)
    found = patched({Place("hidden", layer): before["output"]})
    assert_close(found, expected["last_hidden_state"])


def test_arrays_are_put_where_the_place_says():
    rng, trace = np.random.default_rng(0), {}
    vector, probs = rng.normal(size=D), np.eye(5)
    patches = {Place("q", 0, 1, 2): vector, Place("probs", 1, 0): probs}
    patches |= {Place("ffn", 1): 7, Place("ffn", 1, None, 4): -1.5}  # the later holds
    patched(patches, trace=trace)
    first, second = (layer["attention"] for layer in trace["layers"])
    assert np.array_equal(first["q"][:, 1, 2], [vector, vector])
    same = np.delete(first["q"].reshape(2, -1, D), 7, axis=1)
    expected = TRACE["layers"][0]["attention"]["q"].reshape(2, -1, D)
    assert np.array_equal(same, np.delete(expected, 7, axis=1))
    assert np.array_equal(second["probs"][:, 0], [probs, probs])
    assert np.array_equal(second["context"][..., :D], second["v"][:, 0])
    outer = trace["layers"][1]["ffn"]["outer"]
    assert (outer[:, 4] == -1.5).all() and (outer[:, :4] == 7).all()


def test_the_outputs_of_heads_add_up():
    """All of them moved by one vector: the output moves by A of it."""
    vector, trace = np.arange(CONFIG.hidden_size, dtype=float), {}
    patched({Place("head_output", 0): vector}, trace=trace)
    bias = PARAMS["layers"][0]["attention"]["output"]["b"]
    output = trace["layers"][0]["attention"]["output"]
    assert_close(output, np.broadcast_to(A * vector + bias, output.shape))


def test_a_mean_run_is_the_mean_of_all_passages():
    mean = mean_run([TRACE, OTHER])
    for stage, path in STAGES.items():
        for layer in range(L):
            a, b, found = (
                dict(leaves(run))[
                    ".".join(
                        path if stage == "embeddings" else ("layers", str(layer), *path)
                    )
                ]
                for run in (TRACE, OTHER, mean)
            )
            assert_close(found, (a.sum(0) + b.sum(0))[None] / 4)
    place, context = (
        Place("context", 1, 2, 3),
        mean["layers"][1]["attention"]["context"],
    )
    array = context[0, 3, 2 * D : 3 * D]
    assert_close(patched({place: mean}), patched({place: array}))


# Sweeps and answers

GIVEN = INPUTS | {"input_ids": INPUT_IDS}, INPUTS | {"input_ids": OTHER_IDS}


def first_number(out):
    return out["last_hidden_state"][:, 0, 0]


def swept(places, answer=first_number, **options):
    return patch_grid(*GIVEN, PARAMS, CONFIG, places, answer, **options)


@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_a_sweep_is_patch_by_patch_what_run_patched_gives(signs):
    """With one answer that rises in both passages, one that falls in one."""
    lines = []
    grid = swept(
        head_places(CONFIG),
        lambda out: first_number(out) * signs,
        report=lines.append,
    )
    assert lines == ["row 1/2: 3 patches", "row 2/2: 3 patches"]
    assert grid.change.shape == (L, A) and grid.answers.shape == (L, A, 2)
    own, other = HIDDEN[:, 0, 0] * signs, OTHER_HIDDEN[:, 0, 0] * signs
    assert np.array_equal(grid.own, own) and np.array_equal(grid.other, other)
    for cell in np.ndindex(L, A):
        answers = patched({Place("context", *cell): OTHER})[:, 0, 0] * signs
        assert_close(grid.answers[cell], answers)
        change = [
            (a - o) * (1 if p > o else -1) for a, o, p in zip(answers, own, other)
        ]
        expected = sum(change) / sum(abs(p - o) for p, o in zip(other, own))
        assert_close(grid.change[cell], expected)


def test_a_sweep_over_positions_ends_where_it_is_read():
    grid = swept(position_places(CONFIG, 5))
    assert grid.change.shape == (L + 1, 5)
    assert_close(grid.change[-1], [1, 0, 0, 0, 0])
    rows = [
        [tuple(row), tuple(Place("hidden", layer, None, t) for t in (1, 2))]
        for layer, row in enumerate(position_places(CONFIG, 5)[1:])
    ]
    assert_close(swept(rows).change[:, 0], [1, 1])
    assert swept([[Place("embeddings"), Place("hidden")]]).change.tolist() == [[1, 1]]
    (first, *_), *_ = position_places(CONFIG, 5, "ffn")
    assert first == Place("ffn", 0, None, 0)


def test_the_answer_sees_the_attention_of_every_layer():
    def look(out):
        assert [probs.shape for probs in out["attention_probs"]] == [(2, A, 5, 5)] * L
        return out["attention_probs"][0][:, 1, 2, 0]

    grid = swept([[Place("hidden", 1), Place("embeddings")]], look)
    assert grid.change.tolist() == [[0, 1]]


def test_answers_are_differences_of_logits_and_cosines():
    logits = masked_lm_logits(HIDDEN, PARAMS, CONFIG)
    found = logit_difference(PARAMS, CONFIG, [3, 1], 7, [2, 9])(OUT)
    expected = [logits[0, 3, 7] - logits[0, 3, 2], logits[1, 1, 7] - logits[1, 1, 9]]
    assert_close(found, expected)
    pair = next_sentence_logits(OUT["pooler_output"], PARAMS)
    assert_close(next_sentence_difference(PARAMS)(OUT), pair[:, 0] - pair[:, 1])
    vector = np.arange(21.0)
    for row, count in ((0, 5), (1, 3)):
        mean = HIDDEN[row, :count].mean(axis=0)
        cosine = mean @ vector / np.linalg.norm(mean) / np.linalg.norm(vector)
        assert_close(cosine_with(vector, MASK)(OUT)[row], cosine)


# What is refused


def run(patches, **options):
    return lambda: patched(patches, **options)


def sweep(*arguments):
    return lambda: swept(*arguments)


def pair(inputs, **changed):
    given = GIVEN[0], inputs | changed
    return lambda: patch_grid(*given, PARAMS, CONFIG, HEADS, first_number)


HEADS = head_places(CONFIG)
SHORT = {}
bert([[1, 2, 3]], PARAMS, CONFIG, trace=SHORT)


@pytest.mark.parametrize(
    "call, message",
    [
        (run([Place("hidden")]), "patches is list, allowed: a dict of Place"),
        (run({"hidden": 0}), "patches has the key 'hidden', allowed: a Place"),
        (run({Place("output"): 0}), "Place.stage = 'output', allowed 'embeddings'"),
        (run({Place("hidden", 2): 0}), r"Place.layer = 2, allowed 0..1"),
        (run({Place("embeddings", 0): 0}), "Place.layer = 0, allowed for 'embeddings'"),
        (run({Place("ffn", 0, 1): 0}), "Place.head = 1, allowed for 'ffn': None"),
        (run({Place("q", 0, 3): 0}), r"Place.head = 3, allowed 0..2"),
        (run({Place("q", 0, 1, 5): 0}), r"Place.position = 5, allowed 0..4"),
        (run({Place("q", 0, 1, (1, 2, 3)): 0}), "3 numbers, allowed: one for each of"),
        (run({Place("q", 0): SHORT}), r"\(1, 3, 3, 7\) in the trace.*aligned"),
        (run({Place("hidden"): {}}), "trace has no layers.0.output"),
        (run({Place("probs", 0): np.ones(4)}), r"layer 0 have shape \(4,\), allowed"),
        (run({Place("probs", 0): np.ones((2, 2, 3, 5, 5))}), "what broadcasts to"),
        (run({Place("probs", 0): "x"}), "values of probs of layer 0 has dtype"),
        (lambda: mean_run([]), "traces is"),
        (lambda: mean_run([TRACE, SHORT]), "the passages must be of one length"),
        (sweep(HEADS[0]), "places is .* allowed: a list of lists of Place"),
        (sweep([HEADS[0], HEADS[0][:2]]), r"rows of \[2, 3\] cells"),
        (sweep([["hidden"]]), "places holds 'hidden', allowed: a Place or a tuple"),
        (sweep([[Place("hidden", 7)]]), "Place.layer = 7"),
        (sweep(HEADS, lambda out: out["last_hidden_state"]), "one finite number"),
        (sweep(HEADS, lambda out: [1.0, 2.0]), "answer is the same"),
        (pair({"input_ids": [[1, 23]]}), r"other_inputs: input_ids\[0, 1\] = 23"),
        (pair({}), "other_inputs has the keys , allowed: input_ids"),
        (sweep(HEADS, 3), "answer = 3, allowed: a function"),
        (
            pair({"input_ids": [[1, 2], [1, 3]]}),
            r"\(2, 2\), allowed: \(2, 5\).*aligned",
        ),
        (
            pair(GIVEN[1], attention_mask=1 - 0 * MASK),
            r"attention_mask\[1, 3\] differs.*aligned",
        ),
        (
            pair(GIVEN[1], segment_ids=1 - SEGMENT_IDS),
            r"segment_ids\[0, 0\] differs.*aligned",
        ),
        (pair(GIVEN[1], words="x"), "other_inputs has the keys .*, words, allowed"),
        (
            lambda: logit_difference(PARAMS, CONFIG, 0, 23, 1),
            r"word = 23, allowed 0..22",
        ),
        (
            lambda: logit_difference(PARAMS, CONFIG, 9, 1, 2)(OUT),
            r"position = 9, allowed",
        ),
        (lambda: logit_difference(PARAMS, CONFIG, [1], 1, 2)(OUT), "has 1 numbers"),
        (lambda: logit_difference(PARAMS, CONFIG, [], 1, 2), "position is empty"),
        (lambda: cosine_with(np.zeros(21), MASK), "not all of it 0"),
        (lambda: cosine_with(np.ones(21), MASK * 2), "of 0 and 1"),
        (lambda: cosine_with(np.ones(20), MASK)(OUT), r"allowed: \(2, 5, 20\)"),
    ],
)
def test_what_cannot_be_patched_is_refused(call, message):
    with pytest.raises(BertError, match=message):
        call()


# Real weights


@pytest.mark.slow
def test_a_head_of_minilm_carries_a_meaning_to_the_vector(minilm):
    """The crane of the fish is a bird, that of the steel a machine."""
    texts = [f"The crane lifted the {it} from the water." for it in ("fish", "steel")]
    pair = [minilm.tokenizer.encode_batch([text]) for text in texts]
    names = ["A bird caught its food.", "A machine moved a heavy load."]
    bird, machine = bert_np.embed_sentences(names, *minilm)
    to_bird, to_machine = (
        cosine_with(v, pair[0].attention_mask) for v in (bird, machine)
    )
    grid = patch_grid(
        pair[0].inputs,
        pair[1].inputs,
        minilm.params,
        minilm.config,
        position_places(minilm.config, 11),
        lambda out: to_bird(out) - to_machine(out),
    )
    assert grid.own[0] > 0 > grid.other[0]
    word = pair[0].tokens[0].index("fish")
    assert_close(grid.change[0], np.arange(11) == word)
    crane = grid.change[1:5, 2]
    assert crane.min() > 0.05 and crane.max() < 0.2  # the neighbour that is told
