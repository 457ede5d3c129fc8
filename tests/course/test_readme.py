"""What the README says is what the code does."""

import re

import pytest
from make_readme import README, with_ledger, with_speed, with_toy

import bert_np

TEXT = README.read_text(encoding="utf-8")


def test_ledger_is_made_by_the_code():
    assert with_ledger(TEXT) == TEXT
    assert "| model | embeddings + layers + pooler | 109,482,240 | 100.0% |" in TEXT
    assert "| all 12 layers | 12 × 7,087,872 | 85,054,464 | 77.7% |" in TEXT
    assert " | 110,106,428 |" in TEXT


def test_the_toy_models_figures_are_those_of_its_report():
    assert with_toy(TEXT) == TEXT
    assert "| binding |" in TEXT


def test_the_speed_is_that_of_the_benchmark():
    assert with_speed(TEXT) == TEXT
    assert "| (8, 128) | 1 (" in TEXT and "| (32, 128) padded | 1 (" in TEXT


def test_the_stated_differences_keep_their_bounds():
    table = TEXT.split("<!-- agreement")[1].split("<!-- end")[0]
    rows = re.findall(r"float(\d+) \| (\S+) \| (\S+) \|", table)
    assert len(rows) == 3
    for bits, other, attention in rows:
        limits = (1e-12, 1e-12) if bits == "64" else (1e-5, 5e-5)
        assert 0 < float(other) <= limits[0] and 0 < float(attention) <= limits[1]


def test_every_file_of_the_package_has_its_line():
    for path in (README.parent / "bert_np").iterdir():
        if path.name in ("__init__.py", "__pycache__"):
            continue
        name = f"{path.name}/" if path.is_dir() else path.name
        assert f"`{name}`" in TEXT, name


def test_pictures_and_links_lead_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", TEXT)
    assert targets
    assert [t for t in targets if not (README.parent / t).exists()] == []


def test_glossary_agrees_with_the_config():
    section = TEXT.split("<!-- glossary -->")[1].split("\n\n")[0]
    rows = re.findall(r"`(\w+)` \| [≤ ]*(\d+)", section)
    assert len(rows) == 8
    config = bert_np.BertConfig.base()
    assert {name: int(value) for name, value in rows} == {
        name: getattr(config, name) for name, _ in rows
    }


def test_the_examples_run(minilm, tmp_path, monkeypatch, capsys):
    example = TEXT.split("<!-- example -->")[1].split("```python\n")[1].split("```")[0]
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert (tmp_path / "all_heads.png").stat().st_size > 10_000
    assert (tmp_path / "one_head.png").stat().st_size > 10_000
    assert names["out"]["last_hidden_state"].shape == (1, 10, 384)
    assert names["out"]["pooler_output"].shape == (1, 384)
    assert [m.shape for m in names["maps"]] == [(12, 10, 10)] * 6
    code, shown = TEXT.split("<!-- compare -->")[1].split("```")[1:4:2]
    exec(code.removeprefix("python"), names)
    stage, _, hint = capsys.readouterr().out.partition("[")
    assert shown.strip().startswith(stage) and "layers.0.ffn.activated" in stage
    assert hint.split("\n")[1] == shown.strip().split("\n")[1]


@pytest.mark.parametrize("marker", ["pytest", "jupyter lab"])
def test_each_command_is_one_line(marker):
    lines = [line for line in TEXT.splitlines() if line.startswith("python3 -m venv")]
    assert len([line for line in lines if marker in line]) == 1
