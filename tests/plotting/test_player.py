"""The player of step_through in a browser: stages, a followed token, keys."""

import numpy as np
import pytest

import bert_np
from bert_np.plotting import step_through

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def steps():
    toy, trace = bert_np.load_pretrained("toy"), {}
    batch = toy.tokenizer.encode_batch(["anna has a [MASK] ."])
    bert_np.bert(**batch.inputs, params=toy.params, config=toy.config, trace=trace)
    return step_through(trace, batch.tokens[0], layers=1, model=toy)


@pytest.fixture
def player(chromium, steps, tmp_path):
    chromium.open(steps.save(tmp_path / "steps.html").as_uri())
    chromium.run(
        """var shadow = document.querySelector("div > div").shadowRoot;
        var button = (name) => shadow.querySelector("." + name);
        var shown = (selector) => [...document.querySelectorAll(selector)]
          .filter((x) => x.checkVisibility()).map((x) => x.textContent);
        var live = () => button("live").textContent;"""
    )
    return chromium


def press(page, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def titles(page):
    return page.run("shown('[data-stage] b[id]')")


def test_one_stage_is_shown_at_a_time(player, steps):
    names = [f"{stage.number} · {stage.name}" for stage in steps]
    assert titles(player) == names[:1]
    player.run("button('next').click(); button('next').click()")
    assert titles(player) == names[2:3]
    player.run("button('back').focus()")
    press(player, "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight")
    assert titles(player) == names[4:5]
    press(player, "End")
    assert titles(player) == names[-1:]
    press(player, "ArrowRight", "Home")
    assert titles(player) == names[:1]
    player.run("[...button('parts').children][2].click()")  # Layer 1
    first = next(i for i, stage in enumerate(steps) if stage.part == "Layer 1")
    assert titles(player) == names[first : first + 1]
    player.run("button('all').click()")
    assert titles(player) == names
    assert player.errors() == ([], [])


def test_a_token_is_followed_through_rows_heads_and_guesses(player, steps):
    assert player.run("button('token').selectedOptions[0].text") == "4 [MASK]"
    paths = [stage.path for stage in steps]
    for path in ("layers.0.output", "layers.1.attention.probs", "layers.2.output"):
        number = paths.index(path)
        player.run(f"button('stage').value = {number}")
        player.run("button('stage').dispatchEvent(new Event('input'))")
        remark = steps[number].remarks[4]
        assert player.run("shown('div[data-t]')") == [remark]
        if path.endswith("output"):
            assert player.run("live()").endswith(remark.removeprefix("guess"))
    player.run("button('token').value = '1'")
    player.run("button('token').dispatchEvent(new Event('change'))")
    assert player.run("shown('div[data-t]')") == [steps[number].remarks[1]]
    player.run("button('stage').value = 0")
    player.run("button('stage').dispatchEvent(new Event('input'))")
    framed = """[...document.querySelectorAll('[data-stage="0"] tr')]
      .filter((row) => row.style.outline).map((row) => row.dataset.t)"""
    assert player.run(framed) == ["1"]
    assert "guess" not in player.run("live()")  # nothing has been read yet


def test_it_plays_and_pauses(player, steps):
    player.run("button('stage').focus()")
    press(player, " ")
    player.wait("live().startsWith('Stage 1 ')")
    press(player, " ")
    assert player.run("button('play').textContent") == "▶ play"
    before = player.run("live()")
    player.run("await new Promise((wait) => setTimeout(wait, 2200))")
    assert player.run("live()") == before


def test_without_a_position_nothing_is_followed(chromium, tmp_path):
    trace = {"pooler": {"dense": np.ones((1, 4)), "output": np.ones((1, 4))}}
    path = step_through(trace).save(tmp_path / "steps.html")
    chromium.open(path.as_uri())
    assert chromium.errors() == ([], [])
