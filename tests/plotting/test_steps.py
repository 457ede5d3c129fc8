"""step_through: every stage once, its true numbers, nothing that runs."""

import base64
import io
import re

import numpy as np
import pytest
from oracle import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params
from PIL import Image
from plotting.samples import Page

import bert_np
from bert_np import BertError, Tokenizer
from bert_np.parameters import HEADS
from bert_np.plotting import step_through
from bert_np.plotting.labels import terminal_columns
from bert_np.plotting.stage_texts import STAGE_TEXTS
from bert_np.plotting.step_pages import shrink
from bert_np.plotting.steps import Stage, Steps, key_of
from bert_np.tokenizer import SPECIAL_TOKENS
from bert_np.tree import leaves

PARAMS = random_params(heads=HEADS)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]
ODD = ["<script>alert(1)</script>", "$x$", "\U0001f600", "中" * 12, "\ud800"]
LAYERS = range(CONFIG.num_hidden_layers)
ATTENTION = "layers.0.attention."


def traced(**options):
    trace, options = {}, {"attention_mask": MASK, "segment_ids": SEGMENT_IDS} | options
    out = bert_np.bert(INPUT_IDS, PARAMS, CONFIG, trace=trace, **options)
    bert_np.masked_lm_logits(out["last_hidden_state"], PARAMS, CONFIG, trace=trace)
    bert_np.next_sentence_logits(out["pooler_output"], PARAMS, trace=trace)
    bert_np.sequence_logits(out["pooler_output"], PARAMS, trace=trace)
    bert_np.token_logits(out["last_hidden_state"], PARAMS, trace=trace)
    bert_np.span_logits(out["last_hidden_state"], PARAMS, trace=trace)
    return trace


TRACE = traced()
ALL = step_through(TRACE, TOKENS, layers=LAYERS)


def stages(trace=TRACE, tokens=TOKENS, **options):
    return {stage.path: stage for stage in step_through(trace, tokens, **options)}


def assert_narrow(text):
    assert max(map(terminal_columns, text.splitlines())) <= 100


# ------------------------------------------------------------- the stages
@pytest.mark.parametrize("row, head", [(0, 0), (1, 2)])
def test_every_stage_of_a_trace_is_shown_once_with_its_numbers(row, head):
    shown, real = stages(row=row, head=head, layers=LAYERS), np.flatnonzero(MASK[row])
    assert list(shown) == [path for path, _ in leaves(TRACE)]
    for number, (path, array) in enumerate(leaves(TRACE)):
        axes = STAGE_TEXTS[key_of(path)].axes.split()
        expected = array[row] if "B" in axes else array
        expected = expected[head] if "A" in axes else expected
        expected = expected[real] if axes[-2] in ("T", "Tq") else expected
        expected = expected[:, real] if axes[-1] == "Tk" else expected
        values = shown[path].values
        assert np.array_equal(values, np.atleast_2d(expected)), path
        assert not values.flags.writeable and not np.shares_memory(values, array)
        assert shown[path].number == number


def test_every_stage_that_is_recorded_has_its_words():
    training = traced(rng=np.random.default_rng(0))
    recorded = {key_of(path) for path, _ in leaves(training)}
    assert recorded | {"input_ids"} == STAGE_TEXTS.keys()
    assert all(t.name and t.sentence and t.equation for t in STAGE_TEXTS.values())


def test_shapes_are_named_and_say_what_is_shown():
    chosen = "sentence 1, head 2, without 2 padded positions"
    shape = stages(row=1, head=2)[f"{ATTENTION}q"].shape
    assert shape == f"(B 2, A 3, T 5, D 7), shown: {chosen}"
    assert step_through(TRACE)[0].rows == ("0", "1", "2", "3", "4")


def test_other_layers_are_one_line_each():
    folded = [stage for stage in step_through(TRACE, layers=1) if stage.folded]
    assert [s.path for s in folded] == [f"layers.{i}.output" for i in LAYERS if i != 1]
    assert "layers=0 shows them" in str(folded[0])
    assert "layers=0 shows them" in Page(folded[0]._repr_html_()).text


def test_a_stage_with_the_numbers_of_an_earlier_one_says_so():
    repeats = [stages()[f"embeddings.{name}"].repeats for name in ("sum", "output")]
    assert repeats == ["", "the same numbers as stage 4, Normalised sum"]


def test_ids_come_first_if_they_are_given():
    one = step_through(TRACE, TOKENS, row=1, input_ids=np.asarray(INPUT_IDS)[1])
    assert [stage.path for stage in one[:2]] == ["input_ids", "embeddings.word"]
    assert one[0].values[:, 0].tolist() == np.asarray(INPUT_IDS)[1, :3].tolist()


def test_padding_stays_if_that_is_asked_for_and_is_masked():
    stage = stages(row=1, crop=False)[f"{ATTENTION}masked_scores"]
    assert stage.masked.tolist() == [[False] * 3 + [True] * 2] * 5
    for text in (str(stage), stage._repr_html_()):
        assert text.count("masked") >= 10 and "e+308" not in text
    alone = stages(traced(attention_mask=np.zeros((2, 5), int)))
    assert alone[f"{ATTENTION}probs"].values.shape == (5, 5)
    assert "every key is masked" in str(alone[f"{ATTENTION}masked_scores"])


def test_the_logits_name_the_highest_words():
    logits = TRACE["mlm"]["logits"][0, 2]
    best = logits.argmax()
    words = [f"w{i}" for i in range(len(logits))]
    remark = stages(vocabulary=words)["mlm.logits"].remarks[2]
    assert remark.startswith(f"highest logits at 2 cat: w{best} {logits[best]:.2f}")
    assert f"id {best} " in stages()["mlm.logits"].remarks[2]


def test_attention_says_where_each_head_looks_from_each_token():
    for row, count in ((0, 5), (1, 3)):
        remarks = stages(row=row, layers=LAYERS)["layers.1.attention.probs"].remarks
        maps = TRACE["layers"][1]["attention"]["probs"][row, :, :count, :count]
        assert len(remarks) == count
        for i, remark in enumerate(remarks):
            best = [
                (a, int(maps[a, i].argmax())) for a in range(CONFIG.num_attention_heads)
            ]
            found = [f"{a} → {j} {TOKENS[j]} {maps[a, i, j]:.2f}" for a, j in best]
            start = f"each head's strongest key for {i} {TOKENS[i]}: "
            assert remark == start + ", ".join(found)


WORDS = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(5, CONFIG.vocab_size))]
MODEL = PARAMS, CONFIG, Tokenizer.from_tokens(WORDS)


def test_a_model_adds_what_its_head_reads_after_each_layer():
    shown = stages(row=1, layers=1, model=MODEL)
    states = {"embeddings.output": TRACE["embeddings"]["output"]}
    states |= {f"layers.{i}.output": TRACE["layers"][i]["output"] for i in LAYERS}
    for path, state in states.items():
        logits = bert_np.masked_lm_logits(state, PARAMS, CONFIG)[1]
        probs = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        for i, remark in enumerate(shown[path].remarks):
            found = [f"{WORDS[j]} {probs[i, j]:.2f}" for j in np.argsort(-probs[i])[:3]]
            assert remark == f"guess at {i} {TOKENS[i]}: {', '.join(found)}"
        assert len(shown[path].remarks) == 3 and "logit lens" in shown[path].notes[0]
    remarks = [path for path, stage in shown.items() if "guess" in str(stage)]
    assert remarks == list(states)
    assert "w19" in shown["mlm.logits"].remarks[0]  # named by the tokenizer
    bare = {name: tree for name, tree in PARAMS.items() if name != "mlm"}
    with pytest.raises(BertError, match="no .mlm."):
        stages(model=(bare, *MODEL[1:]))
    with pytest.raises(BertError, match="trace lacks the outputs"):
        stages({"embeddings": TRACE["embeddings"]}, model=MODEL)


def test_a_head_that_ran_on_some_positions_only_has_numbered_rows():
    part, hidden = {}, TRACE["layers"][-1]["output"][:, [1, 3]]
    bert_np.masked_lm_logits(hidden, PARAMS, CONFIG, trace=part)
    stage = stages({**TRACE, **part}, row=1)["mlm.norm"]
    assert stage.rows == ("row 0", "row 1")
    assert np.array_equal(stage.values, part["mlm"]["norm"][1])


def test_steps_are_a_sequence_in_both_directions():
    assert isinstance(ALL[3], Stage) and isinstance(ALL[3:6], Steps)
    assert list(reversed(ALL)) == list(ALL[::-1]) and ALL[::-1][::-1] == ALL
    assert str(ALL[::-1]).split("\n\n")[::-1] == str(ALL).split("\n\n")
    assert repr(ALL) == str(ALL) and repr(ALL[0]) == str(ALL[0])
    with pytest.raises(AttributeError):
        ALL[0].name = "other"


# ------------------------------------------------------- texts and pages
def test_text_is_narrow_and_shows_small_arrays_in_full():
    assert_narrow(str(ALL))
    assert_narrow(str(step_through(TRACE, ODD, layers=LAYERS, input_ids=INPUT_IDS)))
    shown, probs = stages(head=1), TRACE["layers"][0]["attention"]["probs"][0, 1]
    lines = [line.split() for line in str(shown[f"{ATTENTION}probs"]).splitlines()[-5:]]
    assert [line[1] for line in lines] == TOKENS
    np.testing.assert_allclose([[*map(float, x[2:])] for x in lines], probs, atol=6e-5)
    assert str(shown["mlm.logits"]).endswith("… and 1 more row")
    found = TRACE["embeddings"]["sum"][0]
    ends = f"min {found.min():.3f}, max {found.max():.3f}"
    assert ends in str(shown["embeddings.sum"])


@pytest.mark.parametrize("steps", [ALL, ALL[::-1], ALL[4:7], ALL[5:6]])
def test_links_lead_to_the_neighbours(steps):
    html = steps._repr_html_()
    ids = Page(html).all("b", "id")
    assert len(ids) == len(steps) == len(set(ids))
    near = [(i + d) for i in range(len(ids)) for d in (-1, 1) if 0 <= i + d < len(ids)]
    assert Page(html).all("a", "href") == [f"#{ids[j]}" for j in near]
    assert not set(ids) & set(Page(steps._repr_html_()).all("b", "id"))


def test_page_shows_small_arrays_in_full_and_larger_ones_as_pictures():
    probs = Page(stages()[f"{ATTENTION}probs"]._repr_html_())
    values = TRACE["layers"][0]["attention"]["probs"][0, 0]
    assert {f"{value:.4f}" for value in values.ravel()} < set(probs.texts)
    page = Page(stages()["embeddings.word"]._repr_html_())
    values, rows = TRACE["embeddings"]["word"][0], page.all("img", "src")[:5]
    for source, line in zip(rows, values):
        data = io.BytesIO(base64.b64decode(source.partition("base64,")[2]))
        (pixels,) = np.asarray(Image.open(data).convert("RGB")).astype(int)
        clear = np.abs(line) > 0.2 * np.abs(values).max()
        assert len(pixels) == 21
        assert np.array_equal((pixels[:, 0] > pixels[:, 2])[clear], line[clear] > 0)


def test_each_row_of_a_picture_has_its_name_whatever_happens_to_its_style():
    html = stages()["embeddings.word"]._repr_html_()
    bare = re.sub(r' style="[^"]*"', "", html)
    rows = re.findall(r"<tr data-t=.*?</tr>", bare)
    values = TRACE["embeddings"]["word"][0]
    assert len(rows) == 5
    for i, row in enumerate(rows):
        start = f"{i}\u00a0{TOKENS[i]}\u00a0{values[i, 0]:.4f}"  # does not break
        assert Page(row).text.startswith(start)
        assert 'height="18"' in row and row.count("<img") == 1


def test_pictures_say_what_their_colours_mean():
    masked = np.where(np.eye(20) > 0, -np.finfo(float).max, 0.5)[None, None]
    maps = {"masked_scores": masked, "probs": np.full((1, 1, 20, 20), 0.05)}
    steps = step_through({"layers": [{"attention": maps}]})
    scores, probs = (Page(stage._repr_html_()).text for stage in steps)
    assert "0  1 \u00a0 min 0.05" in probs and "; grey: masked" in scores


def without_script(html):
    return re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)


def test_page_is_still_text_without_formulas_network_or_colours_of_text(tmp_path):
    steps = step_through(TRACE, ODD, layers=LAYERS, input_ids=INPUT_IDS)
    shown, saved = steps._repr_html_(), steps.save(tmp_path / "steps.html")
    page = without_script(shown)
    assert not {tag for tag, _ in Page(page).found} & {"script", "style", "iframe"}
    assert "<script>ale…" in Page(page).text and "\\ud800" in Page(page).text
    assert not re.search(r"https?:|url\(|import |fetch\(", Page(shown).script)
    assert "$x" not in page and "$x$" in Page(page).text
    for html in (page, without_script(saved.read_text("utf-8"))):
        bare = re.sub(r"base64,[^\"]*", "", html)
        assert not re.search(r"https?:|url\(|//|[;\"]color:|background", bare)
    assert saved.read_text("utf-8").startswith("<!doctype html>")


def test_a_drawn_cell_is_the_strongest_of_its_block():
    values = np.zeros((130, 9))
    values[4, 3], values[129, 8] = -5, 2
    cells, hidden, block = shrink(values, np.zeros(values.shape, bool))
    assert block == (3, 1) and cells.shape == (44, 9) and not hidden.any()
    assert cells[1, 3] == -5 and cells[43, 8] == 2 and np.count_nonzero(cells) == 2
    page = step_through({"embeddings": {"position": values}})._repr_html_()
    assert "each cell is the strongest of 3 × 1 numbers" in page


ODD_NUMBERS = [(np.nan, " nan "), (np.inf, " inf "), (1e30, " 1.000e+30 ")]


@pytest.mark.parametrize("value, shown", ODD_NUMBERS + [(0.0, " 0.000 ")])
def test_odd_numbers_are_shown_as_they_are(value, shown):
    word = np.full((1, 3, 40), value)
    word[0, 1, 1], word[0, 2, 0] = -np.inf, 1
    steps = step_through({"embeddings": {"word": word}})
    assert_narrow(str(steps))
    assert shown in str(steps) and " -inf " in str(steps)
    assert len(Page(steps._repr_html_()).all("img")) == 3 + 1  # rows and the scale
