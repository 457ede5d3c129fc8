"""step_through: every stage once, its true numbers, nothing that runs."""

import base64
import io
import re
import unicodedata
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import BertError
from bert_np.plotting import step_through
from bert_np.plotting.stage_texts import STAGE_TEXTS
from bert_np.plotting.step_pages import shrink
from bert_np.plotting.steps import Stage, Steps, key_of
from bert_np.tree import leaves

PARAMS = random_params()
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]
HOSTILE = ["<script>alert(1)</script>", "\"'&", "\U0001f600", "שלום", "\ud800"]
LAYERS = range(CONFIG.num_hidden_layers)


def traced(
    params=PARAMS, config=CONFIG, ids=INPUT_IDS, mask=MASK, heads=True, rng=None
):
    trace = {}
    segments = SEGMENT_IDS if np.shape(ids) == np.shape(SEGMENT_IDS) else None
    out = bert_np.bert(
        ids,
        params,
        config,
        trace=trace,
        attention_mask=mask,
        segment_ids=segments,
        rng=rng,
    )
    if heads:
        bert_np.masked_lm_logits(out["last_hidden_state"], params, config, trace=trace)
        bert_np.next_sentence_logits(out["pooler_output"], params, trace=trace)
    return trace


TRACE = traced()
ALL = step_through(TRACE, TOKENS, layers=LAYERS)


def by_path(steps):
    return {stage.path: stage for stage in steps}


class Page(HTMLParser):
    """Tags, ids, links, alternative texts and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.links = set(), [], []
        self.alts, self.pictures, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        self.ids += [found["id"]] if "id" in found else []
        if tag == "a":
            self.links.append(found["href"])
        if tag == "img":
            self.alts.append(found["alt"])
            self.pictures.append(found["src"].partition("base64,")[2])

    def handle_data(self, data):
        self.text += data


def wide(line):
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in line
    )


# ------------------------------------------------------------- the stages


def test_every_stage_of_a_trace_is_shown_once_and_in_order():
    assert [stage.path for stage in ALL] == [path for path, _ in leaves(TRACE)]
    assert [stage.number for stage in ALL] == list(range(len(ALL)))


def test_the_words_are_those_of_the_stages_that_are_recorded():
    training = traced(rng=np.random.default_rng(0))
    recorded = {key_of(path) for path, _ in leaves(training)}
    assert recorded | {"input_ids"} == STAGE_TEXTS.keys()
    assert len(step_through(training, TOKENS, layers=LAYERS)) == len(ALL) + 1 + 3 * len(
        LAYERS
    )


def test_every_stage_has_a_name_a_sentence_and_an_equation():
    for text in STAGE_TEXTS.values():
        assert text.name and text.sentence[-1] in ".?" and text.equation


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("head", [0, 2])
def test_the_numbers_are_those_of_the_trace(row, head):
    steps = by_path(step_through(TRACE, TOKENS, row=row, head=head, layers=LAYERS))
    real = np.flatnonzero(MASK[row])
    for path, array in leaves(TRACE):
        axes = STAGE_TEXTS[key_of(path)].axes.split()
        expected = array[row] if "B" in axes else array
        expected = expected[head] if "A" in axes else expected
        expected = expected[real] if axes[-2] in ("T", "Tq") else expected
        expected = expected[:, real] if axes[-1] == "Tk" else expected
        assert np.array_equal(steps[path].values, np.atleast_2d(expected)), path


def test_the_numbers_cannot_be_changed_and_are_no_view_of_the_trace():
    for stage in ALL:
        assert not stage.values.flags.writeable
        assert not any(np.shares_memory(stage.values, a) for _, a in leaves(TRACE))


def test_shapes_are_named_and_say_what_is_shown():
    steps = by_path(step_through(TRACE, TOKENS, row=1, head=2))
    assert steps["layers.0.attention.q"].shape == (
        "(B 2, A 3, T 5, D 7), shown: sentence 1, head 2, without 2 padded positions"
    )
    assert steps["embeddings.position"].shape == (
        "(T 5, H 21), shown: without 2 padded positions"
    )
    assert steps["nsp.logits"].shape == "(B 2, 2), shown: sentence 1"


def test_other_layers_are_one_line_each():
    steps = step_through(TRACE, TOKENS, layers=1)
    folded = [stage for stage in steps if stage.folded]
    assert [stage.path for stage in folded] == [
        f"layers.{i}.output" for i in LAYERS if i != 1
    ]
    assert "layers=0 shows them" in str(folded[0])
    assert [
        s.path for s in step_through(TRACE, layers=()) if s.path.startswith("layers")
    ] == [f"layers.{i}.output" for i in LAYERS]


def test_a_stage_with_the_numbers_of_an_earlier_one_says_so():
    steps = by_path(ALL)
    norm = steps["embeddings.norm"]
    assert steps["embeddings.output"].repeats == (
        f"the same numbers as stage {norm.number}, {norm.name}"
    )
    assert steps["embeddings.sum"].repeats == ""


def test_ids_come_first_where_they_are_given():
    steps = step_through(TRACE, TOKENS, row=1, input_ids=INPUT_IDS)
    assert steps[0].path == "input_ids" and steps[1].path == "embeddings.word"
    assert steps[0].values[:, 0].tolist() == np.asarray(INPUT_IDS)[1, :3].tolist()
    one = step_through(TRACE, TOKENS, row=1, input_ids=np.asarray(INPUT_IDS)[1])
    assert np.array_equal(one[0].values, steps[0].values)


def test_padding_stays_where_it_is_asked_for_and_is_masked():
    stage = by_path(step_through(TRACE, TOKENS, row=1, crop=False))[
        "layers.0.attention.masked_scores"
    ]
    assert stage.masked.tolist() == [[False] * 3 + [True] * 2] * 5
    assert str(stage).count("masked") >= 10 and "e+308" not in str(stage)
    assert "e+308" not in stage._repr_html_()


def test_a_sentence_of_padding_alone_is_shown_whole():
    trace = traced(mask=np.zeros((2, 5), int))
    steps = by_path(step_through(trace, TOKENS))
    assert steps["layers.0.attention.probs"].values.shape == (5, 5)
    assert "every key is masked" in str(steps["layers.0.attention.masked_scores"])


def test_the_logits_name_the_highest_words():
    words = [f"w{i}" for i in range(CONFIG.vocab_size)]
    logits = TRACE["mlm"]["logits"][0]
    stage = by_path(step_through(TRACE, TOKENS, vocabulary=words))["mlm.logits"]
    best = logits[2].argmax()
    assert stage.notes[2].startswith(f"highest at 2 cat: w{best} {logits[2, best]:.2f}")
    assert f"id {best} " in by_path(ALL)["mlm.logits"].notes[2]


def test_a_head_that_ran_on_some_positions_only_has_numbered_rows():
    trace = {"mlm": {}}
    hidden = TRACE["layers"][-1]["output"][:, [1, 3]]
    part = {}
    bert_np.masked_lm_logits(hidden, PARAMS, CONFIG, trace=part)
    trace = {**traced(heads=False), **part}
    stage = by_path(step_through(trace, TOKENS, row=1))["mlm.norm"]
    assert stage.rows == ("row 0", "row 1")
    assert np.array_equal(stage.values, part["mlm"]["norm"][1])


# ------------------------------------------------- a sequence in both ways


def test_forwards_is_backwards_reversed():
    assert list(reversed(ALL)) == list(ALL[::-1])
    assert isinstance(ALL[::-1], Steps) and ALL[::-1][::-1] == ALL
    assert str(ALL[::-1]).split("\n\n")[::-1] == str(ALL).split("\n\n")


def test_steps_are_a_sequence():
    assert isinstance(ALL[3], Stage) and isinstance(ALL[3:6], Steps)
    assert len(ALL[3:6]) == 3 and ALL[3] in ALL and ALL[-1].path == "nsp.logits"
    with pytest.raises(AttributeError):
        ALL[0].name = "other"
    with pytest.raises(TypeError):
        ALL[0] = ALL[1]


@pytest.mark.parametrize("steps", [ALL, ALL[::-1], ALL[4:7], ALL[5:6]])
def test_links_lead_to_the_neighbours(steps):
    page = Page(steps._repr_html_())
    assert len(page.ids) == len(steps) == len(set(page.ids))
    expected = []
    for i in range(len(steps)):
        expected += [page.ids[j] for j in (i - 1, i + 1) if 0 <= j < len(steps)]
    assert page.links == [f"#{name}" for name in expected]


def test_ids_differ_from_one_showing_to_the_next():
    first, second = (set(Page(ALL._repr_html_()).ids) for _ in range(2))
    assert not first & second


# -------------------------------------------------------------- the texts


def assert_narrow(text):
    assert max(map(wide, text.splitlines())) <= 100


def test_text_is_at_most_100_columns_wide():
    assert_narrow(str(ALL))
    assert_narrow(str(step_through(TRACE, HOSTILE, layers=LAYERS)))
    wide_tokens = ["中文中文中文中文中文"] * 5
    assert_narrow(str(step_through(TRACE, wide_tokens, input_ids=INPUT_IDS)))


def test_text_shows_small_arrays_in_full():
    stage = by_path(step_through(TRACE, TOKENS, head=1))["layers.0.attention.probs"]
    lines = str(stage).splitlines()[-5:]
    shown = [[float(x) for x in line.split()[2:]] for line in lines]
    assert np.allclose(shown, TRACE["layers"][0]["attention"]["probs"][0, 1], atol=6e-5)
    assert [line.split()[1] for line in lines] == TOKENS


def test_text_gives_range_and_mean():
    stage = by_path(ALL)["embeddings.sum"]
    low, high, mean = map(
        float, re.search(r"min (\S+), max (\S+), mean (\S+)", str(stage)).groups()
    )
    found = TRACE["embeddings"]["sum"][0]
    assert np.allclose(
        [low, high, mean],
        [found.min(), found.max(), found.mean()],
        rtol=2e-3,
        atol=1e-3,
    )


def test_text_of_a_larger_array_says_how_many_rows_it_leaves_out():
    stage = by_path(ALL)["mlm.logits"]
    assert str(stage).endswith("… and 1 more row")
    first = float(str(stage).splitlines()[-5].split()[2])
    assert first == pytest.approx(TRACE["mlm"]["logits"][0, 0, 0], abs=1e-3)


def test_repr_is_the_text():
    assert repr(ALL) == str(ALL) and repr(ALL[0]) == str(ALL[0])


# --------------------------------------------------------------- the page


def test_page_shows_small_arrays_in_full_and_larger_ones_as_pictures():
    steps = by_path(ALL)
    probs = Page(steps["layers.0.attention.probs"]._repr_html_())
    assert not probs.alts and "table" in probs.tags
    for value in TRACE["layers"][0]["attention"]["probs"][0, 0].ravel():
        assert f"{value:.4f}" in probs.text
    words = Page(steps["embeddings.word"]._repr_html_())
    assert "5 rows, 0 [CLS] to 4 [SEP], by 21 columns; min" in words.alts[0]


def test_pixels_have_the_colours_of_the_numbers():
    page = Page(by_path(ALL)["embeddings.word"]._repr_html_())
    image = Image.open(io.BytesIO(base64.b64decode(page.pictures[0])))
    pixels = np.asarray(image.convert("RGB"))[9::18, 12::24].astype(int)
    assert pixels.shape == (5, 21, 3)
    values = TRACE["embeddings"]["word"][0]
    red = pixels[..., 0] > pixels[..., 2]
    clear = np.abs(values) > 0.1 * np.abs(values).max()
    assert np.array_equal(red[clear], values[clear] > 0)


def test_attention_has_the_scale_from_0_to_1():
    config = bert_np.BertConfig(
        vocab_size=30,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=6,
        max_position_embeddings=40,
    )
    params = bert_np.init_params(config, np.random.default_rng(0))
    trace = traced(params, config, [list(range(1, 21))], None, heads=False)
    page = by_path(step_through(trace))["layers.0.attention.probs"]._repr_html_()
    assert "<div>0 <img" in page and "> 1 &nbsp; min" in page


def test_no_token_becomes_markup():
    steps = step_through(TRACE, HOSTILE, layers=LAYERS, input_ids=INPUT_IDS)
    page = steps._repr_html_()
    found = Page(page)
    assert "script" not in found.tags and "style" not in found.tags
    assert found.tags <= {
        "div",
        "details",
        "summary",
        "b",
        "i",
        "sub",
        "code",
        "table",
        "tr",
        "td",
        "img",
        "a",
        "span",
        "bdi",
    }
    assert "<script>ale…" in found.text and "\"'&" in found.text
    assert "\\ud800" in found.text and "שלום" in found.text
    page.encode("utf-8")


def test_no_token_is_typeset_as_a_formula():
    tokens = ["$x$", "$$", r"\(x\)", r"\[", "a"]
    page = step_through(TRACE, tokens)._repr_html_()
    text = re.sub(r"<[^>]*>", "\0", page)
    assert "$x" not in text and "\\(" not in text and "$$" not in text
    assert "$x$" in Page(page).text


def test_page_needs_no_network_and_no_colour_of_text():
    page = ALL._repr_html_()
    assert (
        "http" not in page
        and "url(" not in page
        and "//" not in re.sub(r"base64,[^\"]*", "", page)
    )
    assert not re.search(r"[;\"]color:", page) and "background" not in page


def test_save_writes_the_page(tmp_path):
    path = tmp_path / "steps.html"
    step_through(TRACE, HOSTILE).save(path)
    page = path.read_text("utf-8")
    assert page.startswith("<!doctype html>") and "http" not in page
    assert len(Page(page).ids) == len(step_through(TRACE, HOSTILE))
    assert page.count("max-height") == 0


def test_a_drawn_cell_is_the_strongest_of_its_block():
    values = np.zeros((130, 9))
    values[4, 3], values[129, 8] = -5, 2
    masked = np.zeros(values.shape, bool)
    cells, hidden, block = shrink(values, masked)
    assert block == (3, 1) and cells.shape == (44, 9) and not hidden.any()
    assert cells[1, 3] == -5 and cells[43, 8] == 2 and np.count_nonzero(cells) == 2


@pytest.mark.parametrize(
    "value, shown",
    [(np.nan, " nan "), (np.inf, " inf "), (1e30, " 1.000e+30 "), (0.0, " 0.000 ")],
)
def test_odd_numbers_are_shown_as_they_are(value, shown):
    word = np.full((1, 3, 40), value)
    word[0, 1, 1], word[0, 2, 0] = -np.inf, 1
    steps = step_through({"embeddings": {"word": word}})
    text, page = str(steps), steps._repr_html_()
    assert_narrow(text)
    assert shown in text and " -inf " in text
    assert len(Page(page).pictures) == 2


def test_without_tokens_the_positions_are_numbered():
    assert step_through(TRACE)[0].rows == ("0", "1", "2", "3", "4")


# ----------------------------------------------------------------- MiniLM


def test_minilm_is_shown_in_less_than_400_kilobytes(minilm):
    params, config, tokenizer = minilm
    batch = tokenizer.encode_batch(["The cat sat on a mat.", "Padded."])
    assert len(batch.tokens[0]) == 9
    trace = traced(params, config, batch.input_ids, batch.attention_mask, heads=False)
    steps = step_through(trace, batch.tokens[0], input_ids=batch.input_ids)
    assert len(steps._repr_html_()) < 400_000
    assert_narrow(str(steps))
    short = step_through(trace, batch.tokens[1], row=1, layers=5, head=11)
    assert by_path(short)["layers.5.attention.probs"].values.shape == (4, 4)


# ----------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "trace, words",
    [
        (None, "trace is a NoneType"),
        ([], "trace is a list"),
        ({}, "trace is empty"),
        ({"loss": np.zeros(3)}, "'loss', which is no stage"),
        ({"input_ids": np.zeros(3)}, "'input_ids', which is no stage"),
        ({"embeddings": {"word": np.zeros(3)}}, "embeddings.word has shape (3,)"),
        ({"embeddings": {"word": "text"}}, "embeddings.word has dtype <U4"),
        ({"embeddings": {"word": np.zeros((1, 0, 3))}}, "(1, 0, 3): nothing to show"),
    ],
)
def test_what_is_no_trace_of_a_model_is_refused(trace, words):
    with pytest.raises(BertError, match=re.escape(words)):
        step_through(trace)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"row": 2}, "row = 2, allowed: 0..1"),
        ({"row": -1}, "row = -1, allowed: 0..1"),
        ({"row": True}, "row = True, allowed: 0..1"),
        ({"head": 3}, "head = 3, allowed: 0..2"),
        ({"layers": [0, 9]}, f"layers = 9, allowed: 0..{len(LAYERS) - 1}"),
        ({"layers": "all"}, "layers = 'all', allowed"),
        ({"tokens": ["a"]}, "tokens has 1 entries, but the trace has 5 positions"),
        ({"tokens": "a b c"}, "tokens is a str"),
        ({"input_ids": [1, 2]}, "expected the 5 integers"),
        ({"input_ids": [[0.5] * 5]}, "expected the 5 integers"),
        ({"input_ids": [["a"] * 5]}, "expected the 5 integers"),
        ({"input_ids": [[1, 2], [1]]}, "expected the 5 integers"),
        ({"input_ids": 7}, "expected the 5 integers"),
        ({"vocabulary": ["a"] * 24}, "vocabulary has 24 entries"),
        ({"vocabulary": 3}, "vocabulary is a int"),
        ({"crop": "no"}, "crop = 'no'"),
    ],
)
def test_what_cannot_be_shown_is_refused(given, words):
    with pytest.raises(BertError, match=re.escape(words)):
        step_through(TRACE, **given)


@pytest.mark.parametrize("path", ["", "no/such/folder/x.html", 3, "a\0b"])
def test_a_file_that_cannot_be_written_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertError, match="path = "):
        ALL[:1].save(path)
