"""The tokenizer's files: all read, and none allowed to contradict another."""

import json

import pytest
from files.folders import TOKENS, VOCAB, WHOLE, accept, cases, make, refuse

from bert_np import BertConfig, BertError
from bert_np.added_tokens import AddedToken
from bert_np.files.checkpoint import load_checkpoint, save_pretrained
from bert_np.files.vocabulary import tokenizer_texts
from bert_np.tokenizer import Tokenizer

RULES = {"normalized": True, "special": False, "single_word": False}
E1 = {"content": "[E1]", "lstrip": False, "rstrip": False, **RULES}
SPEC = E1 | {"content": "<s>", "special": True, "normalized": False}
JAPANESE = {"tokenizer_class": "BertJapaneseTokenizer"}


def put(folder, vocab=VOCAB, config=None, **files):
    """The tiny checkpoint; a file is named by its first word, or two."""
    names = {"settings": "tokenizer_config", "special": "special_tokens_map"}
    names |= {"added": "added_tokens", "whole": "tokenizer"}
    texts = {f"{names[name]}.json": json.dumps(v) for name, v in files.items()}
    texts |= {"vocab.txt": vocab} if vocab else {}
    return make(folder, files=texts, **(config or {}))


def entries(first, *tokens):
    return [token | {"id": first + i} for i, token in enumerate(tokens)]


SOURCES = [
    {"vocab": None, "whole": WHOLE | {"added_tokens": entries(10, E1, SPEC)}},
    {"whole": WHOLE | {"added_tokens": entries(10, E1, SPEC)}, "added": {"[E1]": 10}},
    {"settings": {"added_tokens_decoder": {"10": E1, "11": SPEC}}},
    {"added": {"<s>": 11, "[E1]": 10}, "special": {"extra_special_tokens": ["<s>"]}},
    {"added": {"[E1]": 10}, "settings": {"additional_special_tokens": ["<s>"]}},
    {"added": {"[E1]": 10}, "settings": {"extra_special_tokens": {"s": "<s>"}}},
    {"added": {"[E1]": 10}, "special": {"bos_token": SPEC, "mask_token": "[MASK]"}},
]


@pytest.mark.parametrize("files", SOURCES, ids=str)
def test_added_tokens_are_found_in_every_file(tmp_path, files):
    tokenizer = accept(put(tmp_path / "a", **files))[0].tokenizer
    assert tokenizer.encode("the[e1] <s>a").input_ids.tolist() == [2, 7, 10, 11, 5, 3]
    model = load_checkpoint(tmp_path / "a")
    save_pretrained(tmp_path / "b", *model)
    assert load_checkpoint(tmp_path / "b").tokenizer == model.tokenizer
    assert tokenizer.added[1] == AddedToken("<s>", special=True, normalized=False)


def test_a_token_of_the_vocabulary_keeps_its_id_and_its_pieces(tmp_path):
    settings = {"added_tokens_decoder": {"7": E1 | {"content": "the", "lstrip": True}}}
    tokenizer = accept(put(tmp_path, settings=settings))[0].tokenizer
    assert tokenizer.added == (AddedToken("the", lstrip=True, piece=True),)
    assert (
        tokenizer.encode("a the").offsets[2] == (1, 5) and len(tokenizer.tokens) == 10
    )


# ----------------------------------------------- special tokens by other names
NAMES = ("<pad>", "[UNK]", "<s>", "[SEP]", "<mask>")
RENAMED = VOCAB.replace("[PAD]", "<pad>").replace("[CLS]", "<s>")
ASKED = {"pad_token": "<pad>", "cls_token": "<s>", "mask_token": "<mask>"}
WITH_RULES = ASKED | {"mask_token": SPEC | {"content": "<mask>", "lstrip": True}}
ENDS = {"type": "BertProcessing", "cls": ["<s>", 2], "sep": ["[SEP]", 3]}


def said_in_whole(vocab, **changes):
    ids = {token: i for i, token in enumerate(vocab.split())}
    values = {"model": WHOLE["model"] | {"vocab": ids}, "post_processor": ENDS}
    return WHOLE | values | {"padding": {"pad_token": "<pad>"}} | changes


IN_PLACE = RENAMED.replace("[MASK]", "<mask>")
RENAMINGS = [
    {"vocab": IN_PLACE, "settings": ASKED},
    {"vocab": IN_PLACE, "special": WITH_RULES, "settings": ASKED},
    {"vocab": None, "whole": said_in_whole(IN_PLACE), "settings": ASKED},
    {"vocab": None, "whole": said_in_whole(IN_PLACE), "special": ASKED},
    {"vocab": RENAMED, "settings": ASKED},
    {"vocab": RENAMED, "added": {"<mask>": 10}, "special": ASKED},
]


@pytest.mark.parametrize("files", RENAMINGS, ids=range(len(RENAMINGS)))
def test_special_tokens_have_the_names_that_a_file_gives(tmp_path, files):
    model = accept(put(tmp_path / "a", **files))[0]
    tokenizer, mask = model.tokenizer, 4 if files["vocab"] != RENAMED else 10
    assert tokenizer.special == NAMES and tokenizer.mask_token_id == mask
    found = tokenizer.encode("a <mask>the [MASK]")
    assert found.input_ids.tolist() == [2, 5, mask, 7, 1, 1, 1, 3]
    lstrip = "content" in str(files.get("special"))
    assert found.offsets[2] == (1 if lstrip else 2, 8)
    save_pretrained(tmp_path / "b", *model)
    assert load_checkpoint(tmp_path / "b").tokenizer == tokenizer


def template(cls, *rest):
    tokens = [{"SpecialToken": {"id": cls, "type_id": 0}}, *rest]
    tokens += [{"Sequence": {"id": "A", "type_id": 0}}]
    tokens += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    second = [{"Sequence": {"id": "B", "type_id": 1}}]
    second += [{"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": tokens, "pair": tokens + second}


def test_a_template_of_special_tokens_is_read(tmp_path):
    tokenizer = accept(put(tmp_path, **whole(post_processor=template("[CLS]"))))[0][2]
    assert tokenizer.encode("a").tokens == ["[CLS]", "a", "[SEP]"]


def whole(**changes):
    return {"whole": WHOLE | changes}


def settings(**values):
    return {"settings": values}


END_IDS = {token: {"ids": [i]} for token, i in (("[CLS]", 2), ("[SEP]", 9))}
ODD_CASE = WHOLE["normalizer"] | {"lowercase": "no"}
DECODER = {"added_tokens_decoder": {"10": E1}}
REFUSED = [
    ("ids", {"added": {"[E1]": 11}, "settings": DECODER}, "id 10", "added_tokens.json"),
    (
        "rules",
        whole(added_tokens=entries(10, E1 | {"lstrip": True})) | settings(**DECODER),
        "normalized, lstrip in tokenizer.json",
        "normalized in tokenizer_config.json",
    ),
    ("a gap", {"added": {"[E1]": 12}}, "id 12 in added_tokens.json", "asks for 10"),
    ("another id", {"added": {"the": 10}}, "'the' has id 10", "asks for 7"),
    ("no id", {"added": {"the": None}}, "id None", "added_tokens.json"),
    (
        "two names",
        settings(mask_token="<mask>") | {"special": {"mask_token": "[MASK]"}},
        "tokenizer_config.json: mask_token is '<mask>'",
        "special_tokens_map.json: mask_token is '[MASK]'; correct the wrong one",
    ),
    (
        "another [UNK]",
        settings(unk_token="<unk>") | whole(),
        "unk_token is '<unk>', but tokenizer.json: model.unk_token is '[UNK]'",
    ),
    (
        "another [CLS]",
        settings(cls_token="[CLS]") | whole(post_processor=ENDS),
        "cls_token is '[CLS]', but tokenizer.json: post_processor cls_token is '<s>'",
    ),
    (
        "another [PAD]",
        settings(pad_token="[PAD]") | whole(padding={"pad_token": "a"}),
        "pad_token is '[PAD]', but tokenizer.json: padding.pad_token is 'a'",
    ),
    (
        "rules of names",
        settings(**DECODER) | {"special": {"bos_token": E1 | {"rstrip": True}}},
        "normalized in tokenizer_config.json",
        "rstrip in special_tokens_map.json: bos_token",
    ),
    ("one for two", settings(mask_token="[UNK]"), "unk_token and mask_token", "diff"),
    ("not there", settings(unk_token="<unk>"), "vocab.txt lacks <unk>"),
    ("no name", settings(mask_token=None), "config.json: mask_token: None", "allowed"),
    (
        "a template of its own",
        whole(
            post_processor=template("[CLS]", {"Sequence": {"id": "A", "type_id": 0}})
        ),
        "vocab.txt is",
        "tokenizer.json: post_processor = {'ty",
    ),
    (
        "near key",
        settings(do_lowercase=False),
        "config.json has the key 'do_lowercase'; did you mean 'do_lower_case'?",
    ),
    (
        "an id in config.json",
        {"config": {"mask_token_id": 7}},
        "config.json: mask_token_id gives '[MASK]' the id 7, but the vocabulary 4",
    ),
    (
        "an id in the processor",
        whole(post_processor=ENDS | {"cls": ["[CLS]", 5]}),
        "tokenizer.json: post_processor gives '[CLS]' the id 5, but the vocabulary 2",
    ),
    (
        "an id in the template",
        whole(post_processor=template("[CLS]") | {"special_tokens": END_IDS}),
        "tokenizer.json: post_processor gives '[SEP]' the id 9, but the vocabulary 3",
    ),
    (
        "no case",
        whole(normalizer=ODD_CASE),
        "lowercase in the tokenizer's files = 'no'",
    ),
    ("empty", settings(sep_token=""), "tokenizer_config.json: sep_token", "allowed"),
    ("no list", {"special": {"extra_special_tokens": "x"}}, "= 'x', allowed: a list"),
    ("no object", settings(added_tokens_decoder=[1]), "added_tokens_decoder = [1]"),
    ("no content", whole(added_tokens=[{"id": 3}]), "allowed: a token with"),
    ("no rule", whole(added_tokens=[E1 | {"id": 10, "rstrip": 1}]), "true or false"),
    (
        "two vocabularies",
        {"vocab": VOCAB + "more\n"} | whole(),
        "vocab.txt (11 tokens) and tokenizer.json (10) differ from id 10",
    ),
    (
        "another order",
        {"vocab": VOCAB.replace("a\nThe", "The\na")} | whole(),
        "differ from id 5 on",
    ),
    ("another kind", whole(normalizer=None), "vocab.txt is", "normalizer.type = None"),
    (
        "two classes",
        settings(tokenizer_class="BertTokenizer") | {"config": JAPANESE},
        "'BertTokenizer' in tokenizer_config.json but 'BertJ",
        "in config.json",
    ),
    ("padding", {"config": {"pad_token_id": 5}}, "[PAD] has the id 0", "= 5 in config"),
]


@pytest.mark.parametrize("given, words", cases(REFUSED))
def test_what_contradicts_or_cannot_be_used_is_refused(tmp_path, given, words):
    refuse(put(tmp_path, **given), *words)


@pytest.mark.parametrize("name", ["settings", "config"])
def test_another_class_leaves_no_tokenizer_and_gives_the_reason(tmp_path, name):
    model, report = accept(put(tmp_path, **{name: JAPANESE}))
    file = {"settings": "tokenizer_config.json", "config": "config.json"}[name]
    reason = f"tokenizer_class = 'BertJapaneseTokenizer' in {file}"
    assert model.tokenizer is None and report["no tokenizer"] == [reason]
    assert "vocab.txt" in report["unused"]


def test_what_is_overruled_or_ignored_is_reported(tmp_path):
    values = {"do_lower_case": False, "never_split": ["x"]}
    model, report = accept(put(tmp_path, whole=WHOLE, settings=values))
    assert not model.tokenizer.lowercase
    line = "tokenizer.json lowercase = True by tokenizer_config.json do_lower_case = "
    assert report["overruled"] == [f"{line}False"]
    ignored = ["tokenizer_config.json never_split", "tokenizer.json padding"]
    assert report["ignored"][-2:] == ignored


def test_an_added_token_before_the_vocabulary_cannot_be_written():
    tokenizer = Tokenizer.from_tokens(["x", *TOKENS], added=[AddedToken("x")])
    config = BertConfig(vocab_size=11, pad_token_id=None)
    with pytest.raises(BertError, match="'x' must come after the vocabulary's"):
        tokenizer_texts(tokenizer, config)
