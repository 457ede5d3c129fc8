"""The page of contents is made from the notebooks, and its links lead on."""

import re

import pytest
from make_contents import (
    CHAPTERS,
    NOTEBOOKS,
    PAGE,
    facts,
    misconceptions,
    pictures,
    with_contents,
)

TEXT = PAGE.read_text(encoding="utf-8")
TEACHING = (NOTEBOOKS / "TEACHING.md").read_text(encoding="utf-8")


def test_the_contents_are_those_of_the_notebooks():
    assert with_contents(TEXT) == TEXT
    assert [path.stem[:2] for path in CHAPTERS] == [f"{n:02}" for n in range(14)]


def test_all_fifteen_misconceptions_have_their_chapter():
    chapters = {number: path.stem[:2] for number, (_, path) in misconceptions().items()}
    assert sorted(chapters) == list(range(1, 16))
    assert set(chapters.values()) == {"02", "03", "04", "05", "06", "07", "10", "11"}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_chapter_says_its_time_and_its_goals(path):
    title, reading, exercises, goals = facts(path)
    assert title.startswith(f"{path.stem[:2]} · ")
    assert 5 <= reading <= 40 and 2 <= exercises <= 45
    assert 3 <= len(goals) <= 5
    assert pictures(path)


@pytest.mark.parametrize("text", [TEXT, TEACHING], ids=["contents", "teaching"])
def test_links_and_pictures_lead_to_files(text):
    targets = re.findall(r'\]\(((?!https?:)[^)]+)\)|src="([^"]+)"', text)
    paths = [NOTEBOOKS / (a or b).split("#")[0] for a, b in targets]
    assert paths and [path for path in paths if not path.exists()] == []
