"""BERT on one page gives what bert gives, and stays on one page."""

import ast
from pathlib import Path

import numpy as np
from golden_values import GOLDEN, tiny

from bert_np import bert, load_pretrained, minimal

PAGE = Path(minimal.__file__).read_text("utf-8")


def assert_equal_to_bert(inputs, model):
    found = minimal.bert(**inputs, params=model.params, config=model.config)
    out = bert(**inputs, params=model.params, config=model.config)
    for array, (name, expected) in zip(found, out.items(), strict=True):
        np.testing.assert_allclose(array, expected, rtol=0, atol=1e-5, err_msg=name)


def test_it_equals_bert_on_the_tiny_checkpoint():
    (ids, mask, segment_ids), _, _ = tiny("f32_", np.float32)
    inputs = {"input_ids": ids, "attention_mask": mask, "segment_ids": segment_ids}
    assert_equal_to_bert(inputs, load_pretrained(GOLDEN / "tiny"))


def test_it_equals_bert_on_the_toy():
    toy = load_pretrained("toy")
    batch = toy.tokenizer.encode_batch([("the cat ran .", "he slept ."), "the dog ."])
    assert_equal_to_bert(batch.inputs, toy)


def test_it_equals_bert_on_minilm(minilm):
    batch = minilm.tokenizer.encode_batch([("A cat sat.", "Why?"), "It was tired."])
    assert_equal_to_bert(batch.inputs, minilm)


def test_it_fits_on_a_page_and_takes_from_the_library_erf_alone():
    assert len(PAGE.splitlines()) <= 60
    imports = [n for n in ast.walk(ast.parse(PAGE)) if isinstance(n, ast.Import)]
    froms = [n for n in ast.walk(ast.parse(PAGE)) if isinstance(n, ast.ImportFrom)]
    assert {a.name for n in imports for a in n.names} == {"math", "numpy"}
    assert [(n.module, [a.name for a in n.names]) for n in froms] == [
        ("bert_np.functional", ["erf"])
    ]
