"""What the page cannot run, it refuses with the words of the library."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from web.models import MODELS, convert, random_model
from web.pages import open_folder

from bert_np import BertError, load_pretrained

pytestmark = pytest.mark.browser
WORD = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.1.attention.self.query.weight"
NORM = "bert.embeddings.LayerNorm.weight"


def edit_json(name, **changes):
    def edit(folder):
        path = folder / name
        values = json.loads(path.read_text("utf-8")) | changes
        values = {key: value for key, value in values.items() if value != "absent"}
        path.write_text(json.dumps(values), "utf-8")

    return edit


def config(**changes):
    return edit_json("config.json", **changes)


def weights(change):
    """An edit of the tensors, given as a dict that may be changed."""

    def edit(folder):
        path = folder / "model.safetensors"
        tensors = load_file(path)
        tensors = change(tensors) or tensors
        save_file({n: np.ascontiguousarray(x) for n, x in tensors.items()}, path)

    return edit


def file(name, change):
    """An edit of the bytes of a file."""
    return lambda folder: (folder / name).write_bytes(
        change((folder / name).read_bytes())
    )


def rename(old, new):
    return weights(lambda t: {n.replace(old, new): x for n, x in t.items()})


def without(*ends):
    return weights(lambda t: {n: x for n, x in t.items() if not n.endswith(ends)})


SAFETENSORS, VOCAB = "model.safetensors", "vocab.txt"
EDITS = {
    "roberta": config(model_type="roberta"),
    "distilbert": config(model_type="distilbert"),
    "no type": config(model_type="absent", architectures=["ElectraModel"]),
    "silu": config(hidden_act="silu"),
    "relative positions": config(position_embedding_type="relative_key"),
    "a decoder": config(is_decoder=True),
    "pruned": config(pruned_heads={"0": [1]}),
    "factorised": config(embedding_size=5),
    "no sizes": config(hidden_size="absent", vocab_size="absent"),
    "a size of 0": config(intermediate_size=0),
    "a size that is text": config(num_hidden_layers="2"),
    "heads that do not divide": config(num_attention_heads=2),
    "eps of 2": config(layer_norm_eps=2),
    "a tie that is text": config(tie_word_embeddings="yes"),
    "an odd padding": config(pad_token_id=3),
    "more layers": config(num_hidden_layers=3),
    "fewer layers": config(num_hidden_layers=1),
    "another width": config(intermediate_size=12),
    "a bias missing": without("query.bias"),
    "a layer norm missing": without("1.output.LayerNorm.bias"),
    "lora": weights(lambda t: t | {"lora_A.weight": np.zeros(3, "f4")}),
    "a prefix": rename("bert.", "model."),
    "two prefixes": rename("bert.encoder", "encoder"),
    "two spellings": weights(lambda t: t | {NORM.replace("bert.", ""): t[NORM]}),
    "transposed": weights(
        lambda t: t.update(
            {n: x.T for n, x in t.items() if "intermediate.dense.w" in n}
        )
    ),
    "NaN": weights(lambda t: t[QUERY].__setitem__((0, 0), np.nan)),
    "integers": weights(lambda t: t.update({QUERY: t[QUERY].astype("i4")})),
    "untied": weights(lambda t: t | {"cls.predictions.decoder.weight": t[WORD] + 1}),
    "a decoder missing": config(tie_word_embeddings=False),
    "positions": weights(
        lambda t: t | {"embeddings.position_ids": np.arange(17)[None] + 1}
    ),
    "cut short": file(SAFETENSORS, lambda data: data[:-10]),
    "cut in its header": file(SAFETENSORS, lambda data: data[:100]),
    "empty": file(SAFETENSORS, lambda data: b""),
    "a pointer": file(SAFETENSORS, lambda data: b"version https://git-lfs\noid sha"),
    "a page": file(SAFETENSORS, lambda data: b"\n<html> not found </html>"),
    "a token twice": file(VOCAB, lambda data: data + b"a\n"),
    "no mask": file(VOCAB, lambda data: data.replace(b"[MASK]", b"mask")),
    "many tokens": file(VOCAB, lambda data: data + b"1\n2\n3\n4\n5\n"),
    "a byte-order mark": file(VOCAB, lambda data: b"\xef\xbb\xbf" + data),
}


def comparable(message):
    """Without a folder's path and an argument, which a page does not have."""
    message = message.replace(" (or pass allow_nonfinite=True)", "")
    return re.sub(r"\S*/(?=vocab.txt)", "", message)


@pytest.fixture(scope="module")
def folder_page(chromium, page_file):
    chromium.open(page_file.as_uri())
    chromium.wait("shown")
    return chromium


@pytest.mark.parametrize("name", EDITS)
def test_it_refuses_as_the_library_does(folder_page, tmp_path, name):
    folder = tmp_path / "own"
    random_model(folder, **MODELS["erf"])
    EDITS[name](folder)
    with pytest.raises(BertError) as refusal:
        load_pretrained(folder)
    assert open_folder(folder_page, folder) == comparable(str(refusal.value))


@pytest.mark.parametrize(
    "edit, words",
    [
        (
            lambda f: (f / SAFETENSORS).rename(f / "pytorch_model.bin"),
            "pytorch_model.bin",
        ),
        (lambda f: (f / VOCAB).unlink(), "vocab.txt is missing"),
        (lambda f: (f / "config.json").write_text("{"), "config.json: not valid JSON"),
        (
            lambda f: (f / "added_tokens.json").write_text('{"[E1]": 23}'),
            "the added token '[E1]'",
        ),
        (edit_json("tokenizer_config.json", tokenizer_class="T5Tokenizer"), "T5Tok"),
        (lambda f: convert(f, "F8"), "allowed: F64, F32, F16, BF16"),
    ],
)
def test_it_refuses_by_name(folder_page, tmp_path, edit, words):
    folder = tmp_path / "own"
    random_model(folder, **MODELS["erf"])
    edit(folder)
    assert words in open_folder(folder_page, folder)


def test_after_a_refusal_the_model_before_still_runs(folder_page, tmp_path):
    random_model(tmp_path / "own", **MODELS["erf"])
    assert open_folder(folder_page, tmp_path / "own").startswith("Running: own")
    config(model_type="roberta")(tmp_path / "own")
    assert "positions start at padding_idx + 1" in open_folder(
        folder_page, tmp_path / "own"
    )
    folder_page.run("start({ text: 'a b [MASK]' })")
    folder_page.wait("shown")
    assert folder_page.run("model.name + ' ' + shown.tokens.join(' ')") == (
        "own [CLS] a b [MASK] [SEP]"
    )
