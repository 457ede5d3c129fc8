"""Advice that works: what a message says to do is done, and it helps.

Each case is a piece of advice, a call that is refused with it, and what
the advice says to do instead. Advice about files is followed in
files/test_advice.py.
"""

import dataclasses
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from small_run import CONFIG as SMALL
from small_run import SETTINGS, make_batch, new_params, run_training, seeded

import bert_np
from bert_np import BertError, analysis, fast, fill_mask, plotting
from bert_np.analysis.corpora import Sentence, read_reviews
from bert_np.files.pretrained import PACKAGED, load_pretrained
from bert_np.plotting.explorer import view_of
from bert_np.training.examples import read_examples
from bert_np.training.loop import train

TOY = load_pretrained("toy")
PARAMS, CONFIG, TOKENIZER = TOY
BATCH = TOKENIZER.encode_batch(["the cat ran .", "the dog ate"])
MODEL = {"params": PARAMS, "config": CONFIG}
TRACE = {}
out = bert_np.bert(**BATCH.inputs, **MODEL, trace=TRACE)
TOKENS, MAPS = BATCH.tokens[0], np.array([layer[0] for layer in out["attention_probs"]])
LONG = "the cat ran . " * 20  # 82 tokens; the model has 64 positions
NARROW = dataclasses.replace(CONFIG, type_vocab_size=1)
ONE_SEGMENT = PARAMS | {
    "embeddings": PARAMS["embeddings"]
    | {"segment": PARAMS["embeddings"]["segment"][:1]}
}
WITH_LABELS = (
    bert_np.init_params(CONFIG, np.random.default_rng(0), heads=["token"]),
    CONFIG,
    TOKENIZER,
)
OTHER = dataclasses.replace(CONFIG, layer_norm_eps=1e-5)
UNEVEN = [[2, 5, 3], [2, 3]]
WIDE, WIDER = np.full((66, 66), 1 / 66), np.full((513, 513), 1 / 513)
MANY = np.broadcast_to(np.float32(1 / 64), (24, 16, 64, 64))
CATS = Sentence(("the", "cat"), ("DET", "NOUN"), (1, -1), ("det", "root"), "a")


def names(count):
    return [f"t{i}" for i in range(count)]


def table(text):
    """A file with this text in the current folder."""
    Path("table.tsv").write_text(text)
    return "table.tsv"


def fitting(message):
    """The max_length that a message names."""
    return int(re.search(r"max_length=(\d+)", message)[1])


def indexed(message):
    """The part of `out` that a message says to take."""
    place = {"layer": 0, "batch": 0, "head": 0}
    return eval(message.split("From a batch take ")[1], place | {"out": out})


def reason(message):
    """What the report of a model without a tokenizer says under a key."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(PACKAGED["toy"] / name, ".")
    report = {}
    load_pretrained(Path.cwd(), report=report)
    (told,) = report[re.search(r"report\['(.*?)'\]", message)[1]]
    assert told == "neither vocab.txt nor tokenizer.json is there"
    return told


def replaced(message, text):
    """The text that the expression in a message makes of one."""
    return eval(re.search(r"text\.encode\(.*?\)\.decode\(\)", message)[0])


CASES = {
    # the tokenizer
    "pass is_split_into_words=True": (
        partial(TOKENIZER.encode, ["the", "cat"]),
        lambda _: TOKENIZER.encode(["the", "cat"], is_split_into_words=True),
    ),
    "text.encode('utf-8', 'replace').decode() has ? in its place": (
        partial(TOKENIZER.encode, "the \udcff cat"),
        lambda told: TOKENIZER.encode(replaced(told, "the \udcff cat")),
    ),
    "use 'longest_first' or": (
        lambda: TOKENIZER.encode("the", "a cat", 4, truncation="only_first"),
        lambda _: TOKENIZER.encode("the", "a cat", 4, truncation="longest_first"),
    ),
    "or a larger max_length": (
        lambda: TOKENIZER.encode("the", "a cat", 4, truncation="only_first"),
        lambda _: TOKENIZER.encode("the", "a cat", 6, truncation="only_first"),
    ),
    "give max_length too": (
        lambda: TOKENIZER.encode_batch(["the cat ran"], pad_to=4),
        lambda _: TOKENIZER.encode_batch(["the cat ran"], pad_to=4, max_length=4),
    ),
    "or a larger pad_to": (
        lambda: TOKENIZER.encode_batch(["the cat ran"], pad_to=4),
        lambda _: TOKENIZER.encode_batch(["the cat ran"], pad_to=5),
    ),
    # texts
    "texts[1] has 82 tokens, allowed: at most 64; max_length=64 cuts it": (
        lambda: bert_np.embed_sentences(["a cat", LONG], *TOY),
        lambda told: bert_np.embed_sentences(["a cat", LONG], *TOY, fitting(told)),
    ),
    "text has 83 tokens, allowed: at most 64; shorten it": (
        lambda: fill_mask(f"{LONG}[MASK]", *TOY),
        lambda _: fill_mask(f"{LONG[:100]}[MASK]", *TOY),
    ),
    "a with b has 85 tokens, allowed: at most 64; shorten it": (
        lambda: bert_np.next_sentence(LONG, "a cat", *TOY),
        lambda _: bert_np.next_sentence(LONG[:100], "a cat", *TOY),
    ),
    "texts[1] has 82 tokens, allowed: at most 64; shorten it": (
        lambda: analysis.summarise_heads(["a cat", LONG], *TOY),
        lambda _: analysis.summarise_heads(["a cat", LONG[:100]], *TOY),
    ),
    "allowed: at most 1; shorten the text": (
        lambda: fill_mask("the " * 61 + "[MASK]", *TOY, targets=["playing"]),
        lambda _: fill_mask("the " * 60 + "[MASK]", *TOY, targets=["playing"]),
    ),
    "texts[0][1] = '\\u200b' has no pieces; leave it out": (
        lambda: bert_np.tag([["the", "\u200b"]], *WITH_LABELS),
        lambda _: bert_np.tag([["the"]], *WITH_LABELS),
    ),
    "since cleaning leaves nothing of it; leave it out": (
        lambda: analysis.word_attention(["the", "\u200b"], *TOY),
        lambda _: analysis.word_attention(["the"], *TOY),
    ),
    "allowed: at most 64; leave it out or shorten it": (
        lambda: analysis.word_attention(LONG.split(), *TOY),
        lambda _: analysis.word_attention(LONG.split()[:60], *TOY),
    ),
    "a text or two, and the label; choose them with columns": (
        lambda: read_examples(table("1\ta\tb\tc\tx\n")),
        lambda _: read_examples(table("1\ta\tb\tc\tx\n"), columns=(2, 5)),
    ),
    "the model has only one segment (config.type_vocab_size = 1); give one text": (
        lambda: fill_mask(("a [MASK]", "ran"), ONE_SEGMENT, NARROW, TOKENIZER),
        lambda _: fill_mask("a [MASK] ran", ONE_SEGMENT, NARROW, TOKENIZER),
    ),
    "but the model has 13 tokens; the tokenizer belongs to another model": (
        lambda: fill_mask("john [MASK]", new_params(), SMALL, TOKENIZER),
        lambda _: fill_mask("john [MASK]", *TOY),
    ),
    "type a sentence": (
        lambda: view_of(" ", TOY),
        lambda _: view_of("the cat ran .", TOY).viewer,
    ),
    "load_pretrained(..., report=report) says which in report['no tokenizer']": (
        partial(fill_mask, "a [MASK]", PARAMS, CONFIG, None),
        reason,
    ),
    # arguments of the model
    "rows of lengths [3, 2]; pad first to one length": (
        lambda: bert_np.bert(UNEVEN, **MODEL),
        lambda _: bert_np.bert([UNEVEN[0], [*UNEVEN[1], 0]], **MODEL),
    ),
    "it looks additive: give 1 for real, 0 for padding": (
        lambda: bert_np.bert([[2, 3, 0]], **MODEL, attention_mask=[[0, 0, -1e4]]),
        lambda _: bert_np.bert([[2, 3, 0]], **MODEL, attention_mask=[[1, 1, 0]]),
    ),
    "prepare them with this config": (
        lambda: bert_np.fast_bert([[2, 3]], fast.prepare(PARAMS, CONFIG), OTHER),
        lambda _: bert_np.fast_bert([[2, 3]], fast.prepare(PARAMS, OTHER), OTHER),
    ),
    "as np.random.default_rng(0) makes it": (
        lambda: bert_np.init_params(SMALL, 0),
        lambda _: bert_np.init_params(SMALL, np.random.default_rng(0)),
    ),
    "pass a new dict for each forward pass": (
        lambda: bert_np.bert([[2, 3]], **MODEL, trace=dict(TRACE)),
        lambda _: bert_np.bert([[2, 3]], **MODEL, trace={}),
    ),
    "two or more labels": (
        lambda: bert_np.BertConfig(
            problem_type="single_label_classification", labels=["a"]
        ),
        lambda _: bert_np.BertConfig(
            problem_type="single_label_classification", labels=["a", "b"]
        ),
    ),
    "or problem_type = 'regression'": (
        lambda: bert_np.BertConfig(
            problem_type="single_label_classification", labels=["a"]
        ),
        lambda _: bert_np.BertConfig(problem_type="regression", labels=["a"]),
    ),
    # training
    "try a lower learning rate": (
        lambda: run_training(SETTINGS._replace(peak_rate=1e30)),
        lambda _: run_training(SETTINGS._replace(peak_rate=1e-3)),
    ),
    "resume is True, but checkpoint is None: name the file": (
        lambda: run_training(resume=True),
        lambda _: run_training(checkpoint="a.npz"),
    ),
    # maps
    'out["attention_probs"][layer][batch][head]': (
        lambda: plotting.plot_attention(out["attention_probs"][0], TOKENS),
        lambda told: plotting.plot_attention(indexed(told), TOKENS),
    ),
    'take out["attention_probs"][layer][batch]': (
        lambda: plotting.plot_heads(out["attention_probs"][0], TOKENS),
        lambda told: plotting.plot_heads(indexed(told), TOKENS),
    ),
    '[layer[batch] for layer in out["attention_probs"]]': (
        lambda: plotting.plot_model(out["attention_probs"], TOKENS),
        lambda told: plotting.plot_model(indexed(told), TOKENS),
    ),
    "from a batch take the tokens of one sentence": (
        lambda: plotting.plot_attention(MAPS[0, 0], BATCH.tokens),
        lambda _: plotting.plot_attention(MAPS[0, 0], BATCH.tokens[0]),
    ),
    "from a batch take the row of one sentence": (
        lambda: plotting.plot_tokens(TOKENS, attention_mask=BATCH.attention_mask),
        lambda _: plotting.plot_tokens(TOKENS, attention_mask=BATCH.attention_mask[0]),
    ),
    "from a batch take one sentence": (
        lambda: plotting.plot_split_heads(out["last_hidden_state"], 4, TOKENS),
        lambda _: plotting.plot_split_heads(
            out["last_hidden_state"][0][:, :8], 4, TOKENS
        ),
    ),
    "of heads take one": (
        lambda: plotting.plot_query_key(
            *[TRACE["layers"][0]["attention"]["q"]] * 2, TOKENS, 1
        ),
        lambda _: plotting.plot_query_key(
            *[TRACE["layers"][0]["attention"]["q"][0, 0]] * 2, TOKENS, 1
        ),
    ),
    "bert keeps it with return_attention=True": (
        lambda: plotting.plot_model(
            bert_np.bert([[2, 3]], **MODEL, return_attention=False)["attention_probs"],
            ["a", "b"],
        ),
        lambda _: plotting.plot_model(
            bert_np.bert([[2, 3]], **MODEL, return_attention=True)["attention_probs"],
            ["a", "b"],
        ),
    ),
    "plot_attention draws it": (
        lambda: plotting.plot_heads(MAPS, TOKENS, mean="layers and heads"),
        lambda _: plotting.plot_attention(MAPS, TOKENS, mean="layers and heads"),
    ),
    "needs them, an array of shape (T,)": (
        lambda: plotting.plot_attention(MAPS[0, 0], TOKENS, between="first to second"),
        lambda _: plotting.plot_attention(
            MAPS[0, 0], TOKENS, between="first to second", segment_ids=[0] * 3 + [1] * 3
        ),
    ),
    "segment_ids must hold 0 and 1": (
        lambda: plotting.plot_links(
            MAPS[0, 0], TOKENS, between="second to first", segment_ids=[0] * 6
        ),
        lambda _: plotting.plot_links(
            MAPS[0, 0], TOKENS, between="second to first", segment_ids=[0] * 3 + [1] * 3
        ),
    ),
    "cropping needs a mask of shape (T,)": (
        lambda: plotting.plot_heads(MAPS[0], TOKENS, crop=True),
        lambda _: plotting.plot_heads(
            MAPS[0], TOKENS, crop=True, attention_mask=BATCH.attention_mask[0]
        ),
    ),
    "only=True needs one": (
        lambda: plotting.plot_links(MAPS[0, 0], TOKENS, only=True),
        lambda _: plotting.plot_links(MAPS[0, 0], TOKENS, only=True, query=1),
    ),
    # long texts in tables and in the viewer
    "a table shows at most 40: take a shorter text": (
        lambda: plotting.attention_table(WIDE, names(66)),
        lambda _: plotting.attention_table(WIDE[:40, :40], names(40)),
    ),
    "crop=True, or plot_attention": (
        lambda: plotting.attention_table(WIDE, names(66)),
        lambda _: (
            plotting.plot_attention(WIDE, names(66)),
            plotting.attention_table(
                WIDE, names(66), crop=True, attention_mask=np.arange(66) < 40
            ),
        ),
    ),
    "at most 512 fit: take a shorter text": (
        lambda: plotting.attention_viewer(WIDER, names(513)),
        lambda _: plotting.attention_viewer(WIDE, names(66)),
    ),
    "leave out padding with crop=True": (
        lambda: plotting.attention_viewer(WIDER, names(513)),
        lambda _: plotting.attention_viewer(
            WIDER, names(513), crop=True, attention_mask=np.arange(513) < 9
        ),
    ),
    "or draw each head with plot_attention": (
        lambda: plotting.attention_viewer(WIDER, names(513)),
        lambda _: plotting.plot_attention(WIDER, names(513)),
    ),
    "choose fewer with layers= and heads=": (
        lambda: plotting.attention_viewer(MANY, names(64)),
        lambda _: plotting.attention_viewer(MANY, names(64), layers=[0], heads=[3]),
    ),
    # other things that are drawn and measured
    "allowed: what bert(..., trace=trace) has filled": (
        lambda: plotting.step_through(out),
        lambda _: plotting.step_through(TRACE),
    ),
    "the rows of parameter_ledger(config)": (
        lambda: plotting.plot_parameters("toy"),
        lambda _: plotting.plot_parameters(bert_np.parameter_ledger(CONFIG)),
    ),
    "expected one that bert_np.plotting drew on": (
        lambda: plotting.describe("figure"),
        lambda _: plotting.describe(plotting.plot_attention(MAPS[0, 0], TOKENS)),
    ),
    "give the dict that bert filled": (
        lambda: analysis.logit_lens({}, PARAMS, CONFIG),
        lambda _: analysis.logit_lens(TRACE, PARAMS, CONFIG),
    ),
    "give those of one model": (
        lambda: analysis.weighted_norms(TRACE, new_params()),
        lambda _: analysis.weighted_norms(TRACE, PARAMS),
    ),
    "align_tokens pairs two sentences": (
        lambda: analysis.map_difference(np.eye(2), np.eye(3)),
        lambda _: analysis.map_difference(
            np.eye(2), np.eye(3), analysis.align_tokens(["a", "b"], ["a", "x", "b"])
        ),
    ),
    "pairs=[(0, 0), ...] says which belong together": (
        lambda: plotting.plot_difference(
            np.eye(1), np.eye(2), ["a"], other_tokens=["c", "d"]
        ),
        lambda _: plotting.plot_difference(
            np.eye(1), np.eye(2), ["a"], other_tokens=["c", "d"], pairs=[(0, 0)]
        ),
    ),
    "give more sentences": (
        lambda: analysis.score_relations([CATS] * 2, *TOY, least=2),
        lambda _: analysis.score_relations([CATS] * 4, *TOY, least=2),
    ),
    "or a smaller least": (
        lambda: analysis.score_relations([CATS] * 2, *TOY, least=2),
        lambda _: analysis.score_relations([CATS] * 2, *TOY, least=1),
    ),
}


@pytest.mark.parametrize("advice", CASES)
def test_what_a_message_advises_helps(advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, follow = CASES[advice]
    with np.errstate(all="ignore"), pytest.raises(BertError) as caught:
        wrong()
    message = str(caught.value)
    assert advice in message and len(message) <= 300
    assert "input_ids" not in message or "pad first" in message  # ids were given
    assert follow(message) is not None


@pytest.mark.parametrize("advice", ["set resume=True", "or remove it"])
def test_a_run_that_is_there_is_resumed_or_removed(advice, tmp_path):
    path = tmp_path / "run.npz"
    half = run_training(SETTINGS._replace(steps=4), checkpoint=path)
    assert len(half[1]) == 4
    with pytest.raises(BertError, match=advice):
        run_training(SETTINGS._replace(steps=4), checkpoint=path)
    if advice == "or remove it":
        path.unlink()
    resume = "resume" in advice
    history = run_training(SETTINGS._replace(steps=4), checkpoint=path, resume=resume)
    assert len(history[1]) == 4


@pytest.mark.parametrize("advice", ["use the same", "or another file"])
def test_a_run_with_other_settings_goes_to_another_file(advice, tmp_path):
    path = tmp_path / "run.npz"
    run_training(checkpoint=path)
    other = SETTINGS._replace(peak_rate=1e-4)
    with pytest.raises(BertError, match=advice):
        run_training(other, checkpoint=path, resume=True)
    if advice == "use the same":
        assert run_training(SETTINGS, checkpoint=path, resume=True)
    else:
        assert run_training(other, checkpoint=tmp_path / "other.npz")


def test_another_generator_than_the_run_has(tmp_path):
    path = tmp_path / "run.npz"
    run_training(checkpoint=path)
    options = {"checkpoint": path, "resume": True, "report": str}
    given = new_params(), SMALL, make_batch
    with pytest.raises(BertError, match="rng is a MT19937, allowed: PCG64") as caught:
        train(*given, seeded(np.random.MT19937), SETTINGS, **options)
    kind = re.search("allowed: (\\w+)", str(caught.value))[1]
    assert train(*given, seeded(getattr(np.random, kind)), SETTINGS, **options)


def test_a_corpus_that_is_not_found_is_named_by_its_path(tmp_path, monkeypatch):
    import bert_np.analysis.corpora as corpora

    data = corpora.Path(corpora.__file__).resolve().parents[2] / "notebooks" / "data"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corpora, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    advice = "give the path of notebooks/data/(.*) in a copy of the project"
    with pytest.raises(BertError, match=advice) as caught:
        read_reviews()
    name = re.search(advice, str(caught.value))[1]
    assert len(read_reviews(data / name)) > 100


def test_a_page_goes_into_a_folder_that_exists(tmp_path):
    viewer = plotting.attention_viewer(MAPS[0, 0], TOKENS)
    with pytest.raises(BertError, match="allowed: a file in a folder that exists"):
        viewer.save(tmp_path / "new" / "page.html")
    assert viewer.save(tmp_path / "page.html").stat().st_size > 0


@pytest.mark.references
@pytest.mark.parametrize("kept", [False, True])
def test_attention_of_transformers_is_kept_as_the_message_says(monkeypatch, kept):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    folder = PACKAGED["toy"]
    ids = torch.tensor(BATCH.input_ids[:1])
    model = transformers.BertModel.from_pretrained(folder)
    theirs = model(ids, output_attentions=kept).attentions
    with pytest.raises(BertError, match="transformers with output_attentions=True"):
        plotting.plot_model(theirs, TOKENS)
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager")
    theirs = model(ids, output_attentions=True).attentions
    figure = plotting.plot_model([t.detach() for t in theirs], TOKENS)
    np.testing.assert_allclose(theirs[2][0].detach(), MAPS[2], atol=1e-5)
    assert plotting.describe(figure)
