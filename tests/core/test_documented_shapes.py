"""Every shape that a docstring of the core states, beside what happens."""

import inspect
import re

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

from bert_np import attention, functional, heads, inputs, model
from bert_np.parameters import HEADS
from bert_np.tasks import labels
from bert_np.tree import leaves

SIZES = {"B": 2, "T": 5, "H": 21, "A": 3, "D": 7, "F": 11, "V": 23, "2": 2, "K": 4}
PARAMS = random_params(heads=HEADS)
LAYER = PARAMS["layers"][0]
X, HEADS = np.ones((2, 5, 21)), np.ones((2, 3, 5, 7))
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
CALLS = {
    **dict.fromkeys((functional.erf, functional.gelu, functional.gelu_tanh), (X,)),
    **dict.fromkeys((functional.relu, functional.softmax, functional.centre), (X,)),
    functional.linear: (X, np.ones((21, 11)), np.ones(11)),
    functional.layer_norm: (X, np.ones(21), np.ones(21), 1e-12),
    functional.dropout: (X, 0.1, np.random.default_rng(0)),
    attention.create_attention_mask: (INPUT_IDS, 0),
    attention.split_heads: (X, 3),
    attention.merge_heads: (HEADS,),
    attention.scaled_dot_product: (HEADS, HEADS, HEADS),
    attention.self_attention: (X, LAYER["attention"], MASK, CONFIG),
    model.embed: (INPUT_IDS, SEGMENT_IDS, PARAMS["embeddings"], CONFIG),
    model.feed_forward: (X, LAYER["ffn"], CONFIG),
    model.add_and_norm: (X, X, LAYER["ffn_norm"], CONFIG),
    model.encoder_layer: (X, LAYER, MASK, CONFIG),
    model.encoder: (X, PARAMS["layers"], MASK, CONFIG),
    model.pool: (X, PARAMS["pooler"]),
    model.bert: (INPUT_IDS, PARAMS, CONFIG),
    heads.masked_lm_logits: (X, PARAMS, CONFIG),
    heads.next_sentence_logits: (X[:, 0], PARAMS),
    heads.sequence_logits: (X[:, 0], PARAMS),
    heads.token_logits: (X, PARAMS),
    heads.span_logits: (X, PARAMS),
    labels.label_scores: (np.ones((2, 4)), "regression"),
    inputs.check_inputs: (INPUT_IDS, SEGMENT_IDS, MASK, CONFIG),
}
OPTIONS = {model.bert: {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}}


def sections(function):
    """{"Parameters": text, "Returns": text, ...} of a docstring."""
    text = inspect.cleandoc(function.__doc__ or "")
    parts = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def documented_shapes(text):
    """(name or None, whether a list of L, letters) for each array of a section."""
    array = r"ndarrays?(?: of int| of any dtype)? of shape \((.*?)\)"
    pattern = rf"^ *(?:(\w[\w, ]*) : )?(list of L )?{array}"
    for names, many, letters in re.findall(pattern, text, flags=re.MULTILINE):
        for name in names.split(", ") if names else [None]:
            yield name, bool(many), letters


def assert_shape(array, letters, sizes, where):
    """The shape has these letters; new ones get the size found."""
    shape, letters = array.shape, [x for x in letters.replace(" ", "").split(",") if x]
    if letters and letters[0] == "...":
        n = len(shape) - len(letters) + 1
        assert sizes.setdefault("...", shape[:n]) == shape[:n], where
        shape, letters = shape[n:], letters[1:]
    assert len(shape) == len(letters), where
    for letter, size in zip(letters, shape):
        assert sizes.setdefault(letter, size) == size, (where, letter)


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_arguments_and_results_have_the_documented_shapes(function):
    doc, sizes, given = sections(function), dict(SIZES), OPTIONS.get(function, {})
    arguments = inspect.signature(function).bind(*CALLS[function], **given).arguments
    for name, _, letters in documented_shapes(doc["Parameters"]):
        assert_shape(arguments[name], letters, sizes, name)
    documented = list(documented_shapes(doc["Returns"]))
    found = function(*CALLS[function], **given)
    if not isinstance(found, dict):
        found = found if isinstance(found, tuple) else (found,)
        found = dict(zip([name for name, *_ in documented], found, strict=True))
    assert documented and [name for name, *_ in documented] == list(found)
    for name, many, letters in documented:
        assert not many or len(found[name]) == CONFIG.num_hidden_layers
        for array in found[name] if many else [found[name]]:
            assert_shape(array, letters, sizes, name)


@pytest.mark.parametrize(
    "module", [functional, attention, heads, inputs, model, labels]
)
def test_every_function_with_a_documented_result_is_called(module):
    for _, function in inspect.getmembers(module, inspect.isfunction):
        documented = sections(function).get("Returns", "")
        if function.__module__ == module.__name__ and any(
            documented_shapes(documented)
        ):
            assert function in CALLS


def documented_trace(function, prefix=""):
    lines = sections(function)["Trace"].split("\n\n")[0].splitlines()
    stages = dict(line.split(" : ") for line in lines)
    return {prefix + name: letters.strip("()") for name, letters in stages.items()}


def test_the_trace_holds_what_is_documented_and_no_more():
    trace, sizes = {}, dict(SIZES)
    out = model.bert(INPUT_IDS, PARAMS, CONFIG, trace=trace)
    heads.masked_lm_logits(out["last_hidden_state"], PARAMS, CONFIG, trace=trace)
    heads.next_sentence_logits(out["pooler_output"], PARAMS, trace=trace)
    heads.sequence_logits(out["pooler_output"], PARAMS, trace=trace)
    heads.token_logits(out["last_hidden_state"], PARAMS, trace=trace)
    heads.span_logits(out["last_hidden_state"], PARAMS, trace=trace)
    documented = (
        documented_trace(model.embed, "embeddings.")
        | documented_trace(model.pool, "pooler.")
        | documented_trace(heads.masked_lm_logits)
        | documented_trace(heads.next_sentence_logits)
        | documented_trace(heads.sequence_logits)
        | documented_trace(heads.token_logits)
        | documented_trace(heads.span_logits)
    )
    for i in range(CONFIG.num_hidden_layers):
        documented |= (
            documented_trace(attention.self_attention, f"layers.{i}.attention.")
            | documented_trace(model.add_and_norm, f"layers.{i}.attention_norm.")
            | documented_trace(model.feed_forward, f"layers.{i}.ffn.")
            | documented_trace(model.add_and_norm, f"layers.{i}.ffn_norm.")
            | documented_trace(model.encoder_layer, f"layers.{i}.")
        )
    found = dict(leaves(trace))
    assert found.keys() == documented.keys()
    for stage, letters in documented.items():
        assert_shape(found[stage], letters, sizes, stage)
    inner = documented_trace(attention.scaled_dot_product)
    assert inner.items() <= documented_trace(attention.self_attention).items()
