"""What the pages for readers say is what the code does."""

import re

import pytest

from notebooks import NOTEBOOKS, ROOT, read, same_text

README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = [ROOT / name for name in ("bert_np", "notebooks", "tests")]
PAGES = [ROOT / "README.md", *(p for f in FOLDERS for p in sorted(f.rglob("*.md")))]
CODE = re.compile(r"<!-- (\w+) -->\n```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.S)


def test_the_examples_run_and_print_what_is_shown(
    minilm, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    names = {}
    examples = [found for found in CODE.findall(README) if found[0] != "minimal"]
    for _, code, shown in examples:
        exec(code, names)
        assert same_text(shown, capsys.readouterr().out)
    assert examples
    assert (tmp_path / "all_heads.png").stat().st_size > 10_000
    assert (tmp_path / "one_head.png").stat().st_size > 10_000


def test_the_code_shown_is_that_of_the_library():
    minimal = (ROOT / "bert_np" / "minimal.py").read_text(encoding="utf-8")
    shown = [code for marker, code, _ in CODE.findall(README) if marker == "minimal"]
    assert shown and [code for code in shown if code not in minimal] == []


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}"
)
def test_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r'(?:\]\(|src=")(?!https?:)([^)#"]+)', text)
    assert [link for link in targets if not (page.parent / link).exists()] == []


def cells_named(row):
    """Chapters and cells of a row: "03: cells [3], [7]" or "| 15 | 03 | [3], [7] |"."""
    given = re.findall(r"(\d\d): (?:cells )?((?:\[\d+\](?:, )?)+)", row)
    for chapter, cells in given or [(row.split("|")[2].strip()[:2], row)]:
        yield from ((chapter, int(n)) for n in re.findall(r"\[(\d+)\]", cells))


def test_the_cells_to_project_have_a_picture():
    text = (NOTEBOOKS / "TEACHING.md").read_text(encoding="utf-8")
    named = {
        cell for row in re.findall(r"^\|.*$", text, re.M) for cell in cells_named(row)
    }
    assert len(named) > 30
    for chapter, number in named:
        (path,) = NOTEBOOKS.glob(f"{chapter}_*.ipynb")
        cells = {cell.get("execution_count"): cell for cell in read(path).cells}
        assert any("image/png" in out.get("data", {}) for out in cells[number].outputs)


def test_every_notebook_is_linked_from_the_contents():
    text = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in NOTEBOOKS.glob("*.ipynb")]
    assert [name for name in names if f"]({name})" not in text] == []
