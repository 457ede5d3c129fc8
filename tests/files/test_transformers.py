"""Saved folders in transformers, and transformers' folders here."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from files.folders import (
    CONFIG,
    TENSORS,
    TINY,
    TOKENS,
    WORD,
    arrays_of,
    assert_same,
    attempt,
    make,
    refuse,
    with_gamma,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import bert_np
from bert_np import BertConfig
from bert_np.files import checkpoint
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.files.weights import WEIGHTS
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves

pytestmark = pytest.mark.references
IDS = np.array([[2, 9, 8, 7, 3, 5, 6, 3], [2, 11, 12, 3, 0, 0, 0, 0]])
SEGMENTS = np.array([[0, 0, 0, 0, 0, 1, 1, 1], [0] * 8])
MASK = np.array([[1] * 8, [1] * 4 + [0] * 4])
SMALL = BertConfig(
    vocab_size=23,
    hidden_size=12,
    num_hidden_layers=11,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=9,
    hidden_act="gelu_new",
    layer_norm_eps=1e-5,
    initializer_range=0.3,
)


@pytest.fixture
def transformers(monkeypatch):
    """The library, offline and quiet about what it loads."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def random_params(dtype=np.float32, without=()):
    """Parameters in which no two arrays are alike, biases included."""
    rng = np.random.default_rng(7)
    params = bert_np.init_params(SMALL, rng, heads=True, dtype=dtype)
    for _, array in leaves(params):
        array += (0.1 * rng.standard_normal(array.shape)).astype(dtype)
    return {part: tree for part, tree in params.items() if part not in without}


def ours(params, config):
    out = bert_np.bert(IDS, params, config, segment_ids=SEGMENTS, attention_mask=MASK)
    hidden, pooled = out["last_hidden_state"], out["pooler_output"]
    results = {"hidden": hidden, "pooled": pooled}
    if "mlm" in params:
        results["mlm"] = bert_np.masked_lm_logits(hidden, params, config)
    if "nsp" in params:
        results["nsp"] = bert_np.next_sentence_logits(pooled, params)
    if "sequence" in params:
        results["logits"] = bert_np.sequence_logits(pooled, params)
    if "token" in params:
        results["logits"] = bert_np.token_logits(hidden, params)
    if "span" in params:
        results["start"], results["end"] = bert_np.span_logits(hidden, params)
    return results


def theirs(model):
    import torch

    names = {"input_ids": IDS, "token_type_ids": SEGMENTS, "attention_mask": MASK}
    inputs = {name: torch.tensor(array) for name, array in names.items()}
    with torch.no_grad():
        out = model.eval()(**inputs, output_hidden_states=True)
    results = {"hidden": out.hidden_states[-1], "pooled": out.get("pooler_output")}
    results["mlm"] = out.get("prediction_logits")
    results["nsp"] = out.get("seq_relationship_logits")
    results["start"], results["end"] = out.get("start_logits"), out.get("end_logits")
    if type(model).__name__ in checkpoint.TASKS.values():
        results["logits"] = out.get("logits")
    elif "logits" in out:
        results["mlm" if out.logits.ndim == 3 else "nsp"] = out.logits
    return {name: array.numpy() for name, array in results.items() if array is not None}


def assert_agree(result, expected, atol=1e-5):
    """Everything that both have is equal; returns the names of it."""
    shared = sorted(result.keys() & expected.keys())
    for name in shared:
        assert result[name].dtype == expected[name].dtype
        np.testing.assert_allclose(result[name], expected[name], rtol=0, atol=atol)
    return shared


@pytest.mark.parametrize("dtype, atol", [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize(
    "name, without, shared",
    [
        ("BertForPreTraining", (), ["hidden", "mlm", "nsp"]),
        ("BertForMaskedLM", ("nsp", "pooler"), ["hidden", "mlm"]),
        ("BertForNextSentencePrediction", ("mlm",), ["hidden", "nsp"]),
        ("BertModel", ("mlm", "nsp"), ["hidden", "pooled"]),
    ],
)
def test_transformers_computes_the_same_from_a_saved_folder(
    transformers, tmp_path, name, without, shared, dtype, atol
):
    params = random_params(dtype, without)
    save_pretrained(tmp_path, params, SMALL)
    options = {"attn_implementation": "eager", "dtype": "auto"}
    model, info = getattr(transformers, name).from_pretrained(
        tmp_path, output_loading_info=True, **options
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert assert_agree(ours(params, SMALL), theirs(model), atol) == shared


@pytest.mark.parametrize("dtype, atol", [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize(
    "head, labels, problem",
    [
        ("sequence", ("good", "bad", "neither"), "single_label_classification"),
        ("sequence", ("new", "long"), "multi_label_classification"),
        ("sequence", ("stars",), "regression"),
        ("sequence", ("no", "yes"), None),
        ("token", ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), None),
        ("span", ("a", "b"), None),
        ("span", ("a", "b", "c"), None),
    ],
)
def test_transformers_computes_the_same_from_a_saved_head(
    transformers, tmp_path, head, labels, problem, dtype, atol
):
    config = replace(SMALL, labels=labels, problem_type=problem)
    rng = np.random.default_rng(7)
    params = bert_np.init_params(config, rng, heads=[head], dtype=dtype)
    kind = getattr(transformers, checkpoint.TASKS[head])
    if head != "sequence":
        del params["pooler"]
    save_pretrained(tmp_path, params, config)
    options = {"attn_implementation": "eager", "dtype": "auto"}
    model, info = kind.from_pretrained(tmp_path, output_loading_info=True, **options)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    shared = ["end", "hidden", "start"] if head == "span" else ["hidden", "logits"]
    assert assert_agree(ours(params, config), theirs(model), atol) == shared
    if head != "span":
        assert model.config.id2label == dict(enumerate(labels))
        assert model.config.problem_type == problem
    model.save_pretrained(tmp_path / "theirs")
    again = load_checkpoint(tmp_path / "theirs")
    assert again.config.labels == load_checkpoint(tmp_path).config.labels
    assert_same(again.params, dict(leaves(params)))


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForPreTraining"])
def test_an_untied_decoder_computes_the_same_here_and_there(
    transformers, tmp_path, kind
):
    import torch

    options = {"attn_implementation": "eager", "tie_word_embeddings": False}
    config = transformers.BertConfig(**SMALL.to_dict() | options)
    model = getattr(transformers, kind)(config)
    torch.nn.init.normal_(model.cls.predictions.decoder.bias)
    model.save_pretrained(tmp_path / "a")
    params, loaded, _ = load_checkpoint(tmp_path / "a")
    assert "decoder" in params["mlm"]
    assert_agree(ours(params, loaded), theirs(model))
    save_pretrained(tmp_path / "b", params, loaded)
    again, info = getattr(transformers, kind).from_pretrained(
        tmp_path / "b", output_loading_info=True, attn_implementation="eager"
    )
    assert not any(info.values())
    assert_agree(theirs(again), theirs(model), atol=0)


TORCH = ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin"]
TORCH.append("pytorch_model-00002-of-00002.bin")
TASKS = list(checkpoint.TASKS.values())
KINDS = ["BertModel", "BertForPreTraining", "BertForMaskedLM"]


@pytest.mark.parametrize("kind", [*KINDS, *TASKS])
@pytest.mark.parametrize("options", [{}, {"max_shard_size": "20KB"}], ids=str)
def test_what_transformers_saves_is_loaded(transformers, tmp_path, kind, options):
    values = SMALL.to_dict() | {"num_labels": 2 if kind == TASKS[-1] else 4}
    config = transformers.BertConfig(**values, attn_implementation="eager")
    model = getattr(transformers, kind)(config)
    model.save_pretrained(tmp_path, **options)
    assert (tmp_path / "model.safetensors.index.json").exists() == bool(options)
    params, loaded, _ = load_checkpoint(tmp_path)
    found, expected = ours(params, loaded), theirs(model)
    assert assert_agree(found, expected) == sorted(expected)


def follow(folder):
    """Do what the message about the weights of a folder says."""
    message = refuse(folder)
    if "name it pytorch_model.bin, then load again" in message:
        (folder / WEIGHTS).rename(folder / "pytorch_model.bin")
        message = refuse(folder)
    command = [sys.executable, "-c", message.split("run in its folder: ")[1]]
    subprocess.run(command, cwd=folder, check=True, timeout=120)


@pytest.mark.parametrize(
    "kind, files",
    [
        *((kind, TORCH[:1]) for kind in KINDS),
        (KINDS[2], TORCH[1:]),
        (KINDS[2], [WEIGHTS]),
    ],
)
def test_weights_of_torch_are_converted_as_the_message_says(
    transformers, tmp_path, kind, files
):
    import torch

    options = {"attn_implementation": "eager", "initializer_range": 0.5}
    config = transformers.BertConfig(**SMALL.to_dict() | options, architectures=[kind])
    model = getattr(transformers, kind)(config)
    config.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS), "utf-8")
    state = list(model.state_dict().items())
    for i, file in enumerate(files):
        torch.save(dict(state[i :: len(files)]), tmp_path / file)
    follow(tmp_path)
    report = {}
    params, loaded, tokenizer = load_checkpoint(tmp_path, report=report)
    found, expected = ours(params, loaded), theirs(model)
    assert assert_agree(found, expected) == sorted(expected)
    assert ("pooler" in params) == (kind != "BertForMaskedLM")
    assert tokenizer.tokens[: len(TOKENS)] == tuple(TOKENS) and not report["dropped"]


def test_bfloat16_is_read_as_transformers_reads_it(transformers, tmp_path):
    import torch

    kind = transformers.BertForPreTraining
    kind.from_pretrained(TINY, dtype=torch.bfloat16).save_pretrained(tmp_path)
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    params, config, _ = load_checkpoint(tmp_path)
    wide = kind.from_pretrained(tmp_path, **options)
    assert_agree(ours(params, config), theirs(wide))


@pytest.mark.parametrize("case", [True, False])
def test_transformers_reads_the_saved_tokenizer(transformers, tmp_path, case):
    tokenizer = Tokenizer.from_tokens([*TOKENS, "e"], case, None, not case)
    save_pretrained(tmp_path / "ours", random_params(), SMALL, tokenizer)
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    text = "The am é thé[MASK] 中a"
    assert other(text)["input_ids"] == list(tokenizer.encode(text).input_ids)
    assert other.model_max_length == SMALL.max_position_embeddings
    other.save_pretrained(tmp_path / "theirs")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tmp_path / "ours" / name, tmp_path / "theirs")
    assert load_checkpoint(tmp_path / "theirs")[2] == tokenizer


# --------------------------------------------------- other architectures
# These have BERT's names and shapes, so that model_type alone tells them.
TWINS = ["Roberta", "XLMRoberta", "Camembert", "Data2VecText", "Ernie", "Splinter"]
OTHERS = "LayoutLM Lilt MegatronBert MPNet Deberta ConvBert RoFormer FNet Yoso Esm"


@pytest.mark.parametrize("name", [*TWINS, *OTHERS.split()])
def test_other_architectures_are_refused(transformers, tmp_path, name):
    kind = getattr(transformers, f"{name}Model")
    sizes = {key: CONFIG[key] for key in vars(SMALL) if "size" in key or "num_" in key}
    config = kind.config_class(**sizes, max_position_embeddings=24, pad_token_id=1)
    kind(config).save_pretrained(tmp_path)
    refuse(tmp_path, f"model_type = '{config.model_type}'")
    _, message = attempt(make(tmp_path, None))  # config.json says it is a BERT
    assert (message is None) == (name in TWINS)


# ----------------------------------------------------- altered checkpoints
ALTER = {
    "drop": lambda name, tensor: {},
    "turn": lambda name, tensor: {name: np.ascontiguousarray(tensor.T)},
    "short": lambda name, tensor: {name: tensor[:-1]},
    "half": lambda name, tensor: {name: tensor.astype("f2")},
    "no prefix": lambda name, tensor: {name.removeprefix("bert."): tensor},
    "old name": lambda name, tensor: with_gamma({name: tensor}),
}
STEPS = st.tuples(st.sampled_from(sorted(TENSORS)), st.sampled_from(sorted(ALTER)))
MORE = ["bert.extra", "cls.extra", "classifier.weight"]


def altered(steps, prefix, more):
    """The tiny checkpoint's tensors, some changed, all renamed, one added."""
    tensors = dict(TENSORS)
    for name, how in steps:
        tensors |= ALTER[how](name, tensors.pop(name, TENSORS[name]))
    tensors |= {more: TENSORS[WORD]} if more else {}
    return {re.sub("^bert.", prefix, name): t for name, t in tensors.items()}


def assert_same_numbers(params, state):
    wanted = arrays_of({f"bert.{name}": array for name, array in state.items()})
    for path, array in leaves(params):
        if not path.startswith(("mlm", "nsp")):
            np.testing.assert_array_equal(array, wanted[path], err_msg=path)


@pytest.mark.parametrize("examples", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_is_loaded_here_is_what_transformers_loads(transformers, examples):
    @settings(max_examples=examples)
    @given(
        st.lists(STEPS, max_size=2),
        st.sampled_from(["bert.", "", "module.", "model."]),
        st.sampled_from([None, *MORE]),
    )
    def run(steps, prefix, more):
        with tempfile.TemporaryDirectory() as folder:
            model, _ = attempt(make(Path(folder), altered(steps, prefix, more)))
            if model is not None:
                assert_same_numbers(model.params, load_theirs(transformers, folder))

    run()


def load_theirs(transformers, folder):
    """The state of BertModel without what it made up, as the file lacks it."""
    model, info = transformers.BertModel.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, dtype="float32"
    )
    made_up = {*info["missing_keys"], *(key[0] for key in info["mismatched_keys"])}
    state = model.state_dict().items()
    return {name: array.numpy() for name, array in state if name not in made_up}


LISTS = [["[E1]", "[/E1]", "covid", "New York", "##m"], ["COVID", "é", "<x>"], ["a"]]
TEXTS = ["The [E1]covid[/E1] in new york, COVID", "a the[e1]a[MASK] <x>É [/E1", "them"]


RENAMED = {"mask_token": "<mask>", "pad_token": "<PAD>", "cls_token": "<s>"}


@pytest.mark.parametrize("saved_by", ["transformers", "bert_np", "old files"])
@pytest.mark.parametrize("names", [*(dict([p]) for p in RENAMED.items()), RENAMED])
def test_special_tokens_of_other_names(transformers, tmp_path, names, saved_by):
    import tokenizers

    vocab = {token: i for i, token in enumerate(TOKENS)}
    given = {
        key: tokenizers.AddedToken(name, lstrip=True, special=True, normalized=False)
        for key, name in names.items()
    }
    their = transformers.BertTokenizer(vocab=vocab, **given)
    folder = make(tmp_path / "a", pad_token_id=None)
    their.save_pretrained(folder)
    if saved_by == "old files":
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in TOKENS))
        entry = {"lstrip": True, "rstrip": False, "single_word": False}
        entries = {key: entry | {"content": name} for key, name in names.items()}
        (folder / "special_tokens_map.json").write_text(json.dumps(entries))
    if saved_by == "bert_np":
        model = load_checkpoint(folder)
        folder = tmp_path / "b"
        save_pretrained(folder, *model)
    found = load_checkpoint(folder).tokenizer
    their = transformers.AutoTokenizer.from_pretrained(folder)
    for text in ["a <mask>the [MASK] <s>a[CLS]", "é  <PAD>[PAD] [SEP]", "<pad> <MASK>"]:
        wanted = their(text, "a", return_offsets_mapping=True)
        encoding = found.encode(text, "a")
        assert encoding.input_ids.tolist() == wanted["input_ids"]
        assert encoding.offsets == wanted["offset_mapping"]
        assert encoding.word_ids == wanted.word_ids()
        for skip in (True, False):
            decoded = their.decode(encoding.input_ids, skip_special_tokens=skip)
            assert found.decode(encoding.input_ids, skip) == decoded
    wanted = their(["a", "a the"], padding=True)["input_ids"]
    assert found.encode_batch(["a", "a the"]).input_ids.tolist() == wanted
    assert found.mask_token_id == their.mask_token_id


@pytest.mark.parametrize("words", LISTS, ids=str)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("source", ["transformers", "bert_np", "old files"])
def test_added_tokens_have_the_same_ids_and_offsets(
    transformers, tmp_path, words, special, source
):
    vocab = {token: i for i, token in enumerate(TOKENS)}
    their = transformers.BertTokenizer(vocab=vocab)
    their.add_tokens(words, special_tokens=special)
    folder = make(tmp_path / "a")
    their.save_pretrained(folder)
    if source == "old files":
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in TOKENS))
        ids = {w: their.convert_tokens_to_ids(w) for w in words if w not in TOKENS}
        (folder / "added_tokens.json").write_text(json.dumps(ids))
        names = {"extra_special_tokens": words} if special else {}
        (folder / "special_tokens_map.json").write_text(json.dumps(names))
    model = load_checkpoint(folder)
    if source == "bert_np":
        save_pretrained(tmp_path / "b", *model)
        folder = tmp_path / "b"
    their = transformers.BertTokenizer.from_pretrained(folder)
    for text in TEXTS:
        wanted = their(text, return_offsets_mapping=True)
        found = load_checkpoint(folder).tokenizer.encode(text)
        assert found.input_ids.tolist() == wanted["input_ids"]
        assert found.offsets == wanted["offset_mapping"]
        assert found.tokens == wanted.tokens()
