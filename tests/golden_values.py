"""Our results beside the stored ones of HuggingFace, under the same names."""

import json
from pathlib import Path

import numpy as np

from bert_np import (
    bert,
    masked_lm_logits,
    next_sentence_logits,
    sequence_logits,
    span_logits,
    token_logits,
)
from bert_np.files.checkpoint import load_checkpoint
from bert_np.tree import map_leaves

GOLDEN = Path(__file__).parent / "golden"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def run(ids, mask, segment_ids, params, config):
    """All results under the names that the golden file gives them."""
    trace = {}
    out = bert(
        ids, params, config, segment_ids=segment_ids, attention_mask=mask, trace=trace
    )
    last, pooled = out["last_hidden_state"], out["pooler_output"]
    hidden = [trace["embeddings"]["output"], *(x["output"] for x in trace["layers"])]
    assert np.array_equal(last, hidden[-1])
    found = {f"hidden_{i}": x for i, x in enumerate(hidden)}
    found |= {f"attn_{i}": probs for i, probs in enumerate(out["attention_probs"])}
    found["pooled"] = pooled
    if "mlm" in params:
        found["mlm_logits"] = masked_lm_logits(last, params, config)
        found["nsp_logits"] = next_sentence_logits(pooled, params)
    return found


def tiny(prefix, dtype):
    """(inputs, found, expected) of the tiny checkpoint, in one precision."""
    params, config, _ = load_checkpoint(GOLDEN / "tiny")
    params = map_leaves(lambda path, array: array.astype(dtype), params)
    with np.load(GOLDEN / "tiny" / "golden.npz") as golden:
        inputs = [golden[name] for name in INPUTS]
        expected = {
            name.removeprefix(prefix): golden[name]
            for name in golden
            if name.startswith(prefix)
        }
    return inputs, run(*inputs, params, config), expected


TASKS = ("sequence", "token", "question")


def task(name, dtype):
    """(found, expected) of a tiny checkpoint with the head of a task."""
    params, config, _ = load_checkpoint(GOLDEN / "tasks" / name)
    params = map_leaves(lambda path, array: array.astype(dtype), params)
    prefix = f"f{8 * np.dtype(dtype).itemsize}_"
    with np.load(GOLDEN / "tasks" / name / "golden.npz") as golden:
        inputs = {n: golden[n] for n in golden if not n.startswith("f")}
        expected = [golden[n] for n in golden if n.startswith(prefix)]
    out = bert(**inputs, params=params, config=config)
    if name == "sequence":
        return [sequence_logits(out["pooler_output"], params)], expected
    if name == "token":
        return [token_logits(out["last_hidden_state"], params)], expected
    return span_logits(out["last_hidden_state"], params), expected


def minilm_results(params, config):
    """(texts, inputs, found, expected) of MiniLM."""
    with np.load(GOLDEN / "minilm.npz") as golden:
        texts = json.loads(str(golden["texts"]))
        inputs = [golden[name] for name in INPUTS]
        expected = {f"hidden_{i}": x for i, x in enumerate(golden["hidden_states"])}
        expected |= {f"attn_{i}": x for i, x in enumerate(golden["attentions"])}
        expected["pooled"] = golden["pooled"]
    texts = [text if isinstance(text, str) else tuple(text) for text in texts]
    return texts, inputs, run(*inputs, params, config), expected


def largest_differences(found, expected):
    """(over hidden states, pooled and logits; over attention)."""
    gaps = {n: float(np.abs(found[n] - expected[n]).max()) for n in expected}
    attention = max(gap for name, gap in gaps.items() if name.startswith("attn"))
    other = max(gap for name, gap in gaps.items() if not name.startswith("attn"))
    return other, attention
