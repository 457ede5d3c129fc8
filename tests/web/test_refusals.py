"""What the page cannot run, it refuses with the words of the library."""

import json
import random
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from web.models import MODELS, convert, random_model
from web.pages import open_folder

from bert_np import BertError, load_pretrained
from bert_np.errors import did_you_mean
from bert_np.web.constants import config_rules

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
    "no type, odd classes": config(model_type="absent", architectures=[["BertModel"]]),
    "RoBERTa's class": config(architectures=["RobertaModel"]),
    "a second class": config(architectures=["BertModel", "ElectraForPreTraining"]),
    "a class without a list": config(architectures="AlbertModel"),
    "silu": config(hidden_act="silu"),
    "two activations": config(hidden_act=["gelu"]),
    "relative positions": config(position_embedding_type="relative_key"),
    "a decoder": config(is_decoder=True),
    "an encoder and a decoder": config(is_encoder_decoder=True),
    "cross-attention": config(add_cross_attention=1),
    "pruned": config(pruned_heads={"0": [1]}),
    "quantized": config(quantization_config={"bits": 8}),
    "factorised": config(embedding_size=5),
    "factorised, no size": config(embedding_size=768, hidden_size="absent"),
    "another name of eps": config(layer_norm_eps="absent", layer_norm_epsilon=1e-5),
    "a misspelled activation": config(hidden_act="absent", HiddenAct="relu"),
    "a misspelled size": config(hidden_size="absent", hiden_size=21),
    "a key twice": file(
        "config.json", lambda data: data.replace(b"{", b'{"hidden_act": "relu",', 1)
    ),
    "no sizes": config(hidden_size="absent", vocab_size="absent"),
    "a size of 0": config(intermediate_size=0),
    "a size that is text": config(num_hidden_layers="2"),
    "heads that do not divide": config(num_attention_heads=2),
    "eps of 2": config(layer_norm_eps=2),
    "a tie that is text": config(tie_word_embeddings="yes"),
    "an odd padding": config(pad_token_id=3),
    "a padding too high": config(pad_token_id=23),
    "a padding that is false": config(pad_token_id=False),
    "an odd [CLS]": config(cls_token_id=101),
    "another tokenizer": config(tokenizer_class="RobertaTokenizer"),
    "a copy of a file": lambda folder: (folder / "tokenizer_config.json").rename(
        folder / "tokenizer_config (1).json"
    ),
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


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": "BertModel", "model_type": "absent"},
        {"is_decoder": [], "add_cross_attention": {}, "is_encoder_decoder": 0},
        {"embedding_size": None, "quantization_config": {}, "pruned_heads": None},
        {"position_embedding_type": None, "pad_token_id": None, "_num_labels": 2},
        {"cls_token_id": 2, "tokenizer_class": None},
        {"note": [{"a": {"b": '"}}"'}, "b": 0}, {"b": 0}]},
    ],
)
def test_what_the_library_accepts_it_opens(folder_page, tmp_path, changes):
    folder = tmp_path / "own"
    random_model(folder, **MODELS["erf"])
    config(**changes)(folder)
    load_pretrained(folder)
    assert open_folder(folder_page, folder).startswith("Running: own")


def test_misspellings_are_those_of_the_library(folder_page):
    rng, keys = random.Random(0), config_rules()["configKeys"]
    names = [*keys, "layer_norm_epsilon", "LayerNormEps", "note", "_", ""]
    for key in keys * 4:
        cut = rng.randrange(len(key))
        names.append(key[:cut] + rng.choice(["", "x", "_-"]) + key[cut + 1 :])
    known = [key for key in keys if key not in rng.sample(keys, 3)]
    script = f"{json.dumps(names)}.map((name) => didYouMean(name, {json.dumps(known)}))"
    assert folder_page.run(script) == [did_you_mean(name, known) for name in names]


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
