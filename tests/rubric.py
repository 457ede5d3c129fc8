"""Score every chapter of the course on the rubric, and write the table.

    python tests/rubric.py          write notebooks/RUBRIC.md from what is known
    python tests/rubric.py --run    before that, run each chapter twice, offline

Items marked A are computed here: from the notebook, from the register of
exercises, and from the record of the last run (tests/rubric_runs.json), which
counts only as long as the chapter's code is the code that ran. The others are
given by a reader, with a reason, in tests/rubric_reading.json; where such an
item has a core that can be checked, its two points are refused without it.
"""

import copy
import hashlib
import json
import re
import sys
import time
from typing import NamedTuple

import nbformat
from run_notebooks import (
    NOTEBOOKS, ROOT, code_cells, execute, printed, same_output, stated_seconds,
    warnings)

from bert_np.course import grade
from bert_np.course.exercise import all_exercises, stub
from bert_np.files.pretrained import fetch

TABLE = NOTEBOOKS / "RUBRIC.md"
RUNS = ROOT / "tests" / "rubric_runs.json"
READING = ROOT / "tests" / "rubric_reading.json"
EXERCISES = all_exercises()
OFFLINE = {"PYTHONPATH": str(ROOT / "tests" / "offline"), "HF_HUB_OFFLINE": "1"}
PASS, MOST_LINES = 36, 15
MOST_COLUMNS = 100  # wider lines are broken in a window of JupyterLab

ITEMS = {
    1: "runs clean twice, offline, in its stated time",
    2: "the untouched student version runs to the end",
    3: "shown numbers reproduced within tolerance",
    4: "no network reference",
    5: "goals at the top, and the end shows them",
    6: "worked example solved on paper, by loop, by product, asserted equal",
    7: "equation, code, numbers, picture, in this order and in the same letters",
    8: "arrays of three or more axes named and checked",
    9: "three predictions before a surprise or a reason",
    10: "something broken on purpose and repaired",
    11: "exercises complete",
    12: "each check names at least two typical mistakes",
    13: "figures needed, titled by their finding, mentioned in the text",
    14: "figures described, colours from the tested palette",
    15: "claims about heads backed by numbers over several texts",
    16: "a misconception stated, tested, corrected",
    17: "short sentences, terms defined at first use, one convention",
    18: "cells of at most 15 lines, one idea each",
    19: "readable without running",
    20: "sources and limits stated",
}


class Chapter(NamedTuple):
    """What is scored: a notebook, and the record of its last run."""

    name: str  # such as "03_one_head_by_hand"
    notebook: nbformat.NotebookNode
    size: int  # bytes of the file
    run: dict  # {} where the code is no longer that which ran

    @property
    def cells(self):
        return self.notebook.cells

    @property
    def code(self):
        return code_cells(self.notebook)

    @property
    def text(self):
        return "\n\n".join(c.source for c in self.cells if c.cell_type == "markdown")

    @property
    def exercises(self):
        return [e for e in EXERCISES.values() if e.id[:2] == self.name[:2]]


def read_chapter(path, runs):
    """Return the Chapter at a path; its run only where its code is the same."""
    notebook = nbformat.read(path, as_version=4)
    run = runs.get(path.stem, {})
    fresh = run.get("code") == code_hash(notebook)
    return Chapter(path.stem, notebook, path.stat().st_size, run if fresh else {})


def code_hash(notebook):
    """A fingerprint of all code cells."""
    sources = "\0".join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256(sources.encode()).hexdigest()[:16]


# ---------------------------------------------------------------- the run

WATCH = """
def _watch():
    import numpy
    shell, seen, found = get_ipython(), {}, []
    def look(result):
        number = shell.execution_count - 1
        for name, value in list(shell.user_ns.items()):
            if (isinstance(value, numpy.ndarray) and value.ndim > 2
                    and name[0] != "_" and seen.get(name) is not value):
                seen[name] = value
                found.append([number, name, value.ndim])
    shell.events.register("post_run_cell", look)
    return found
_found = _watch()
"""
TELL = "import json; print(json.dumps(_found))"


def run_twice(path):
    """Run a chapter twice, offline; return the record of what happened."""
    notebook = nbformat.read(path, as_version=4)
    watched = copy.deepcopy(notebook)
    watched.cells.insert(0, nbformat.v4.new_code_cell(WATCH))
    watched.cells.append(nbformat.v4.new_code_cell(TELL))
    seconds, same = [], []
    for source in (notebook, watched):
        start = time.perf_counter()
        done = execute(path, env=OFFLINE, notebook=source)
        seconds.append(time.perf_counter() - start)
        assert warnings(done) == "", f"{path.stem} warns"
        cells = code_cells(done)
        shown = cells if source is notebook else cells[1:-1]
        same += map(same_output, code_cells(notebook), shown)
    arrays = [[n - 2, name, axes] for n, name, axes in json.loads(printed(cells[-1]))]
    return {"code": code_hash(notebook), "runs": len(seconds),
            "seconds": round(min(seconds), 1), "reproduced": all(same),
            "arrays": arrays}


# ------------------------------------------------- the items that are computed
# Each returns {what should hold: whether it does}.

def runs_clean(c):
    counts = [cell.execution_count for cell in c.code]
    kinds = {output.output_type for cell in c.code for output in cell.outputs}
    stated = stated_seconds(c.notebook)
    return {
        "every cell has run, in order": counts == list(range(1, len(counts) + 1)),
        "no error, no warning": "error" not in kinds and warnings(c.notebook) == "",
        "ran twice, offline, since its code changed": c.run.get("runs") == 2,
        f"in at most {stated} seconds": c.run.get("seconds", 1e9) <= (stated or 0),
    }


def untouched(c):
    cells = {e.id: [x for x in c.code if f'check("{e.id}"' in x.source]
             for e in c.exercises}
    return {
        "every cell of an exercise is its stub":
            all([x.source for x in cells[e.id]] == [stub(e)] for e in c.exercises),
        "every stub says: not attempted yet":
            all(printed(x).strip() == f"{i}: not attempted yet"
                for i, found in cells.items() for x in found),
        "the last cell has run": c.code[-1].execution_count == len(c.code),
    }


def reproduced(c):
    return {"both runs print the committed numbers": c.run.get("reproduced", False)}


LINK = re.compile(r"\]\(https://arxiv\.org/[^)]*\)|http://www\.w3\.org/[\w/]*")
NETWORK = re.compile(r"https?:|//cdn|[%!]pip|urlopen|requests\.get|require\(|@import")


def no_network(c):
    found = set(NETWORK.findall(LINK.sub("", json.dumps(c.notebook))))
    return {
        f"nothing is fetched by the page {sorted(found) or ''}".strip(): not found,
        "ran with the network refused": bool(c.run),
    }


def named_shapes(c):
    """Arrays of 3 axes or more that a cell has made, as the run saw them."""
    arrays = c.run.get("arrays")
    if arrays is None:
        return {"the shapes are known: ran since the code changed": False}
    unnamed = [f"{name} in code cell {n + 1}" for n, name, axes in arrays
               if not is_named(c.code[n].source, name, axes)]
    return {f"named and asserted: {', '.join(unnamed) or 'all'}": not unnamed}


def is_named(source, name, axes):
    """Whether the cell names that many axes and asserts such a shape.

    A name that a loop runs through is made elsewhere.
    """
    loops = re.findall(r"\bfor (.+?) in ", source)
    if any(re.search(rf"\b{name}\b", targets) for targets in loops):
        return True
    comments = re.findall(r"#.*?\(([^()]+, [^()]+)\)", source)
    asserts = "\n".join(re.findall(r"^\s*assert .*", source, re.MULTILINE))
    sizes = re.findall(r"\.shape == \(((?:[^()#]|\([^()#]*\))*)\)", asserts)
    counts = [[text.count(",") + 1 for text in texts] for texts in (comments, sizes)]
    counts[1] += [axes] * any(text.startswith("*") for text in sizes)  # (*others, 64)
    return axes in counts[0] and axes in counts[1]


def complete_exercises(c):
    least = 2 if c.name[:2] == "00" else 3
    minutes = re.search(r"exercises (\d+) minutes", c.text)
    return {
        f"{least} exercises or more": len(c.exercises) >= least,
        "the stated minutes are their sum":
            minutes and int(minutes[1]) == sum(e.minutes for e in c.exercises),
        "each has level, minutes, task and two hints":
            all(e.level in (1, 2, 3) and e.minutes > 0 and e.task and len(e.hints) == 2
                and f"### Exercise {e.id} · level {e.level} · {e.minutes} minutes"
                in c.text and e.task in c.text for e in c.exercises),
        "each solution passes":
            all(grade(e.id, e.solution).passed for e in c.exercises),
    }


def named_mistakes(c):
    return {
        f"{e.id} knows two mistakes, each with its own message":
            len({m.message for m in e.mistakes}) == len(e.mistakes) >= 2
            and all(grade(e.id, m.answer) == (False, m.message) for m in e.mistakes)
        for e in c.exercises
    }


def images(c):
    """(cell, data of a PNG output, the other outputs of the cell)."""
    for cell in c.code:
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                yield cell, output.data, [o.get("data", {}) for o in cell.outputs]


def described(c):
    sentences = [(data.get("text/plain", ""), others) for _, data, others in images(c)]
    code = "\n".join(cell.source for cell in c.code)
    return {
        "there is a figure": bool(sentences),
        "each has a sentence": all(
            len(text.split()) > 5 and text[0] != "<" for text, _ in sentences),
        "the sentence can be read on the page": all(
            any("In words" in o.get("text/html", "") for o in others)
            for _, others in sentences),
        "no cell chooses a colour": not re.search(
            r"\bcolor=|\bcmap=|\bcolour=|matplotlib|\bplt\.", code),
    }


def readable(c):
    silent = [n for n, cell in enumerate(c.code, 1) if not cell.outputs
              and re.search(r"^(print|plot_|show_|check\(|figure$)", cell.source, re.M)]
    allowed = {"image/png", "text/html", "text/plain"}
    kinds = {k for cell in c.code for o in cell.outputs for k in o.get("data", {})}
    scripts = [cell for cell in c.code for o in cell.outputs
               if "<script" in o.get("data", {}).get("text/html", "")]
    lines = "\n".join(o.get("text", "") for cell in c.code for o in cell.outputs)
    widest = max(map(len, lines.split("\n")))
    return {
        "at most 1 MB": c.size <= 1_000_000,
        f"no printed line over {MOST_COLUMNS} columns": widest <= MOST_COLUMNS,
        "every cell that shows something has shown it": not silent,
        f"only {', '.join(sorted(allowed))}": kinds <= allowed,
        "no widget state": "widgets" not in c.notebook.metadata,
        "a picture before each script": all(
            any(cell is other for other, *_ in images(c)) for cell in scripts),
    }


AUTOMATIC = {1: runs_clean, 2: untouched, 3: reproduced, 4: no_network,
             8: named_shapes, 11: complete_exercises, 12: named_mistakes,
             14: described, 19: readable}


# --------------------------------------------- the cores of the items by reading

def goals_and_points(c):
    def numbered(start):
        _, _, rest = c.text.partition(start)
        return re.findall(r"^(\d)\. ", rest.split("\n\n## ")[0].split("**Sources")[0],
                          re.MULTILINE)

    goals, points = numbered("After this you can"), numbered("## Key points")
    return {"3 to 5 goals": 3 <= len(goals) <= 5, "as many key points": goals == points}


def solved_three_ways(c):
    code = "\n".join(cell.source for cell in c.code)
    return {"on paper": bool(re.search(r"[Oo]n paper|[Bb]y hand", c.text)),
            "by loop": "by_loop" in code,
            "asserted equal": bool(re.search(r"assert .*by_loop|by_loop.*==", code))}


def in_order(c):
    """A formula, then code that prints, then a picture."""
    def has_formula(cell):
        text = cell.source if cell.cell_type == "markdown" else ""
        return re.search(r"^    .*=", text, re.MULTILINE)

    stages = [has_formula,
              lambda cell: cell.cell_type == "code" and printed(cell),
              lambda cell: any("image/png" in o.get("data", {})
                               for o in cell.get("outputs", ()))]
    for cell in c.cells:
        if stages and stages[0](cell):
            stages.pop(0)
        if stages and stages[0](cell):  # numbers and picture may share a cell
            stages.pop(0)
    return {"formula, numbers, picture": not stages}


def predictions(c):
    return {"three prompts": c.text.count("**Predict") >= 3}


def broken(c):
    return {"a failure": bool(re.search(r"[Ff]ailure first|naive|[Ww]rong", c.text)),
            "its repair": bool(re.search(r"[Rr]epair", c.text))}


def titled(c):
    cells = [cell for cell, *_ in images(c)]
    return {"each figure has a title": all(
        "title=" in cell.source or "new_figure(" in cell.source
        or cell.source.startswith("attention_viewer") for cell in cells)}


def over_many(c):
    names_a_head = re.search(r"[Hh]eads? \(\d, \d\)", c.text)
    many = any(re.search(r"ALICE\[|sample_batch\(", cell.source) for cell in c.code)
    return {"numbers over many texts": many or not names_a_head}


def tested_misconception(c):
    kinds = [(cell.cell_type, cell.source) for cell in c.cells]
    starts = [i for i, (kind, source) in enumerate(kinds)
              if kind == "markdown" and "**Misconception" in source]
    return {"one is stated": bool(starts), "and tested by the code below": all(
        "code" in [kind for kind, _ in kinds[i + 1:i + 3]] for i in starts)}


def short_sentences(c):
    lengths = [len(sentence.split()) for sentence in sentences(c.text)]
    return {"12 words on average at most": sum(lengths) / len(lengths) <= 12,
            "none over 32 words": max(lengths) <= 32}


def sentences(text):
    """The sentences of a text in Markdown, without formulas and tables."""
    lines = [x for x in text.splitlines() if not x.startswith(("    ", "|", "#"))]
    for block in re.split(r"\n\s*\n|\n- |\n\d\. ", "\n".join(lines)):
        yield from filter(str.strip, re.split(r"(?<=[.?!:])\s+", block))


def short_cells(c):
    longest = max(len(cell.source.splitlines()) for cell in c.code)
    return {f"at most {MOST_LINES} lines": longest <= MOST_LINES}


def has_sources(c):
    _, found, end = c.text.partition("**Sources and limits.**")
    return {"a section of sources and limits": bool(found) and len(end) > 100}


CORES = {5: goals_and_points, 6: solved_three_ways, 7: in_order, 9: predictions,
         10: broken, 13: titled, 15: over_many, 16: tested_misconception,
         17: short_sentences, 18: short_cells, 20: has_sources}


# ------------------------------------------------------------------ scores

def score(chapter, item, reading):
    """(points, why): computed, or by the reader and its core."""
    if item in AUTOMATIC:
        claims = AUTOMATIC[item](chapter)
        missing = [text for text, holds in claims.items() if not holds]
        points = 2 if not missing else 1 if len(missing) < len(claims) else 0
        return points, "; ".join(f"not: {text}" for text in missing)
    points, reason = reading[chapter.name[:2]][str(item)]
    refused = [text for text, holds in CORES[item](chapter).items() if not holds]
    if points == 2 and refused:
        return 1, f"2 points refused, not: {'; '.join(refused)}"
    return points, reason


def scores(chapter, reading):
    """{item: (points, why)} of a chapter."""
    return {item: score(chapter, item, reading) for item in ITEMS}


def page(found):
    """The page of scores as Markdown, from {name of a chapter: its scores}."""
    marks = [f"{item}{'A' if item in AUTOMATIC else ''}" for item in ITEMS]
    lines = [f"| chapter | {' | '.join(marks)} | sum |",
             "|---|" + "---:|" * (len(ITEMS) + 1)]
    notes = []
    for name, items in found.items():
        points = [points for points, _ in items.values()]
        cells = " | ".join(map(str, points))
        lines.append(f"| [{name[:2]}]({name}.ipynb) | {cells} | **{sum(points)}** |")
        notes += [f"\n### {name[:2]}\n", *(
            f"- {item} ({points}): {why}" for item, (points, why) in items.items()
            if why)]
    items = [f"- {mark}: {text}" for mark, text in zip(marks, ITEMS.values())]
    return PAGE.format(passing=PASS, items="\n".join(items), table="\n".join(lines),
                       notes="\n".join(notes))


PAGE = """# The rubric

Each chapter on twenty items: 0 absent, 1 partly, 2 fully. A chapter passes with
{passing} of 40 and no 0. Items marked A are computed by a command; the others are
given by a reader, and where an item has a core that can be counted, the command
refuses the second point without it. This page is written by

    python tests/rubric.py

{items}

{table}

## Why

What the reader found, and what is missing where an item has less than 2.
{notes}
"""


def read_paths(reading):
    """The notebooks that somebody has read."""
    paths = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    return [path for path in paths if path.stem[:2] in reading]


def known():
    """(chapters, reading): all that the page is made of."""
    runs = json.loads(RUNS.read_text("utf-8"))
    reading = json.loads(READING.read_text("utf-8"))
    return [read_chapter(path, runs) for path in read_paths(reading)], reading


def run_all(names):
    """Run the chapters of these names, or all; keep the record."""
    fetch("all-MiniLM-L6-v2")
    runs = json.loads(RUNS.read_text("utf-8")) if RUNS.exists() else {}
    paths = read_paths(json.loads(READING.read_text("utf-8")))
    for path in [p for p in paths if p.stem in names or not names]:
        runs[path.stem] = run_twice(path)
        print(f"{path.stem}: {runs[path.stem]['seconds']} s", flush=True)
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(runs.items())]
        RUNS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main(arguments):
    if "--run" in arguments:
        run_all([name for name in arguments if name != "--run"])
    chapters, reading = known()
    found = {chapter.name: scores(chapter, reading) for chapter in chapters}
    TABLE.write_text(page(found), "utf-8")
    for name, items in found.items():
        print(name[:2], sum(points for points, _ in items.values()))
        for item, (points, why) in items.items():
            if points < 2:
                print(f"   {item} ({points}): {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
