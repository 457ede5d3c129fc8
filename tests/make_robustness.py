"""Write tests/ROBUSTNESS.md from the figures in tests/robustness/.

    python tests/make_robustness.py

Each command named on the page writes one JSON file of tests/robustness/,
a section of the page:

    {"order": 10,                  # place on the page
     "section": "Fuzzing",         # its heading
     "command": "python tests/fuzz.py --minutes 10",
     "versions": {"numpy": "2.4.6"},              # may be absent
     "text": ["A paragraph.", "Another."],        # Markdown
     "tables": [{"columns": ["kind", "cases"], "rows": [["x", 1]]}],
     "mended": ["What was found, and how it is mended."]}

tests/test_robustness.py fails where the page is not what this would write.
"""

import json
from pathlib import Path

HERE = Path(__file__).parent
FIGURES, PAGE = HERE / "robustness", HERE / "ROBUSTNESS.md"
KEYS = {"order", "section", "command", "text", "tables", "mended", "versions"}
# Sections that the page must have: the command that writes each.
EXPECTED = {
    "outcomes.json": "python tests/hostile_outcomes.py",
    "loader.json": "python tests/differential_loader.py",
    "differential.json": "python tests/differential_tokenizer.py --vocab VOCAB_TXT",
    "fuzzing.json": "python tests/fuzz.py",
    "interruption.json": "python tests/killing.py",
    "invariance.json": "python tests/measure_invariance.py",
    "versions.json": "python tests/versions.py",
    "coverage.json": "python tests/measure_coverage.py",
}
INTRODUCTION = """\
# What happens with hostile files, strange text and wrong arguments

For every input one of two outcomes: a right answer, or one exception,
`bert_np.BertError`, that names the culprit in at most 300 characters. This page
holds the figures; each is written by the command beside it, and
`python tests/make_robustness.py` writes the page from them.
"""


def write_figures(name, figures):
    """Write a section's figures to tests/robustness/, and the page anew."""
    text = json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / name).write_text(text, "utf-8")
    PAGE.write_text(make_page(), "utf-8")


def read_figures():
    """{file name: figures}, in the order of the page."""
    found = {
        path.name: json.loads(path.read_text("utf-8"))
        for path in FIGURES.glob("*.json")
    }
    for name, figures in found.items():
        if not isinstance(figures, dict) or not {"order", "section"} <= figures.keys():
            raise ValueError(f"{name}: no section as make_robustness.py describes it")
        if unknown := figures.keys() - KEYS:
            raise ValueError(f"{name}: unknown keys {sorted(unknown)}")
    return dict(sorted(found.items(), key=lambda item: item[1]["order"]))


def format_cell(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def format_table(table):
    """A Markdown table; numbers stand on the right."""
    columns, rows = table["columns"], table["rows"]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)
        for i in range(len(columns))
    ]
    lines = [columns, ["---:" if number else "---" for number in right]]
    return "\n".join(f"| {' | '.join(map(format_cell, row))} |" for row in lines + rows)


def format_section(figures):
    parts = [f"## {figures['section']}"]
    if "command" in figures:
        parts.append(f"`{figures['command']}`")
    parts += figures.get("text", [])
    parts += [format_table(table) for table in figures.get("tables", [])]
    if figures.get("versions"):
        found = ", ".join(f"{n} {v}" for n, v in figures["versions"].items())
        parts.append(f"Made with {found}.")
    if figures.get("mended"):
        parts.append("Found and mended:")
        parts.append("\n".join(f"- {line}" for line in figures["mended"]))
    return "\n\n".join(parts)


def make_page():
    """The text of the page."""
    figures = read_figures()
    parts = [INTRODUCTION.rstrip()]
    parts += map(format_section, figures.values())
    missing = {n: command for n, command in EXPECTED.items() if n not in figures}
    if missing:
        lines = [f"- `{command}` ({name})" for name, command in missing.items()]
        parts.append("## Not measured yet\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(make_page(), "utf-8")
