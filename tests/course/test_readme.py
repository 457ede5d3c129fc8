"""What the pages for readers say is what the code does."""

import re

import pytest

from notebooks import NOTEBOOKS, ROOT, same_text

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


def test_every_notebook_is_linked_from_the_contents():
    text = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in NOTEBOOKS.glob("*.ipynb")]
    assert [name for name in names if f"]({name})" not in text] == []
