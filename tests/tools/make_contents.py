"""Make the course's page of contents from its notebooks.

    python tests/make_contents.py

Rewrites the two tables in notebooks/README.md, and the pictures in
notebooks/images: one of each chapter. tests/test_contents.py fails where
the tables are not what this would write.
"""

import base64
import re
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PAGE = NOTEBOOKS / "README.md"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
CONTENTS = re.compile(r"(<!-- contents -->\n).*?(<!-- end of contents -->)", re.DOTALL)
MISTAKEN = re.compile(
    r"(<!-- misconceptions -->\n).*?(<!-- end of misconceptions -->)", re.DOTALL
)
MISCONCEPTION = re.compile(r"\*\*Misconception (\d+):\*\* [\"“](.+?)[\"”]", re.DOTALL)
TIMES = re.compile(r"Reading (\d+) minutes, exercises (\d+) minutes")
# Chapter -> which of its pictures stands for it, where it is not the first.
PICTURE = {}


def facts(path):
    """(title, minutes of reading, of exercises, goals) of a chapter."""
    first = nbformat.read(path, as_version=4).cells[0].source
    title = first.splitlines()[0].removeprefix("# ")
    reading, exercises = map(int, TIMES.search(first).groups())
    goals = re.findall(r"^\d\. (.+?)[,.;]?$", first.replace("\n   ", " "), re.MULTILINE)
    return title, reading, exercises, goals


def pictures(path):
    """The PNG outputs of a notebook, as bytes."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [o for cell in cells for o in cell.get("outputs", ())]
    return [
        base64.b64decode(o.data["image/png"])
        for o in outputs
        if "image/png" in o.get("data", {})
    ]


def table():
    """The table of contents as Markdown."""
    lines = ["| chapter | minutes | after it you can … | |", "|---|---:|---|---|"]
    total = [0, 0]
    for path in CHAPTERS:
        title, reading, exercises, goals = facts(path)
        total[0] += reading
        total[1] += exercises
        picture = f'<img src="images/{path.stem}.png" width="220" alt="{title}">'
        lines.append(
            f"| [{title}]({path.name}) | {reading} + {exercises} "
            f"| {'; '.join(goals)} | {picture} |"
        )
    lines.append(f"| all | {total[0]} + {total[1]} | | |")
    return "\n".join(lines)


def misconceptions():
    """{number: (statement, notebook)} of those that a chapter tests."""
    found = {}
    for path in CHAPTERS:
        for cell in nbformat.read(path, as_version=4).cells:
            for number, text in MISCONCEPTION.findall(cell.source):
                found[int(number)] = (" ".join(text.split()), path)
    return found


def misconception_table():
    """Where each misconception is stated, tested and corrected, as Markdown."""
    lines = ["| | often heard, and tested here | chapter |", "|---:|---|---|"]
    for number, (text, path) in sorted(misconceptions().items()):
        lines.append(f"| {number} | {text} | [{path.stem[:2]}]({path.name}) |")
    return "\n".join(lines)


def with_contents(text):
    """The page's text with both tables in their places."""
    text = CONTENTS.sub(lambda m: f"{m[1]}{table()}\n{m[2]}", text)
    return MISTAKEN.sub(lambda m: f"{m[1]}{misconception_table()}\n{m[2]}", text)


def main():
    PAGE.write_text(with_contents(PAGE.read_text("utf-8")), "utf-8")
    for path in CHAPTERS:
        chosen = pictures(path)[PICTURE.get(path.stem[:2], 0)]
        (NOTEBOOKS / "images" / f"{path.stem}.png").write_bytes(chosen)


if __name__ == "__main__":
    main()
