"""The page of figures is what its command would write from the figures."""

import json

import pytest
from differential_loader import NOT_TRIED
from hostile.outcomes import KINDS, cases
from hostile_outcomes import figures
from make_robustness import (
    EXPECTED,
    FIGURES,
    PAGE,
    format_table,
    make_page,
    read_figures,
)


def stored(name):
    return json.loads((FIGURES / name).read_text("utf-8"))


def test_the_page_is_what_the_command_would_write():
    assert PAGE.read_text("utf-8") == make_page()


def test_every_section_is_on_the_page_or_named_as_missing():
    page = PAGE.read_text("utf-8")
    found = read_figures()
    assert found
    for name, section in found.items():
        assert f"## {section['section']}\n" in page, name
    for name, command in EXPECTED.items():
        assert name in found or f"- `{command}`" in page


def test_the_table_of_outcomes_counts_the_corpus():
    rows = []
    for kind, groups in KINDS.items():
        for name, group in groups.items():
            refused = sum(bool(case.words) for case in group)
            rows.append([kind, name, len(group), refused, len(group) - refused])
    assert figures(rows)["tables"] == stored("outcomes.json")["tables"]


def test_what_was_not_tried_is_in_the_corpus():
    assert NOT_TRIED <= {case.name for case in cases("checkpoints")}


def test_the_loaders_were_compared_on_every_checkpoint():
    rows = {row[0]: row[1] for row in stored("loader.json")["tables"][0]["rows"]}
    assert rows.pop("together") == len(cases("checkpoints")) - len(NOT_TRIED)
    for kind, group in KINDS["checkpoints"].items():
        assert rows[kind] == len([c for c in group if c.name not in NOT_TRIED])


def test_a_table_is_markdown():
    table = {"columns": ["a", "b"], "rows": [["x|y\nz", 1234], ["", 5]]}
    assert format_table(table) == (
        "| a | b |\n| --- | ---: |\n| x\\|y z | 1,234 |\n|  | 5 |"
    )


@pytest.mark.parametrize("text", ["[]", "{}", '{"order": 1, "section": "x", "y": 1}'])
def test_a_file_that_is_no_section_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr("make_robustness.FIGURES", tmp_path)
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json"):
        read_figures()
