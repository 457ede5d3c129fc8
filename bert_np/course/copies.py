"""The students' copies of the notebooks: without outputs and answers."""

import json
import os
import re
import tempfile
from pathlib import Path

from bert_np.course.exercise import all_exercises, stub
from bert_np.errors import BertError, short

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LEFT_OUT = {"my_bert.py", "__pycache__"}
CHECK = re.compile(r'^check\("([^"]+)"', re.MULTILINE)
GUESS = re.compile(r"^guess = [^#\n]*", re.MULTILINE)


def write_copies(folder, notebooks=NOTEBOOKS):
    """Write the students' copies of the notebooks, and all that lies there.

    Outputs are cleared, answers and guesses are taken out; everything else
    is as it was. The folder appears in one step, with everything in it.

    Parameters
    ----------
    folder : str or Path
        A new one; nothing is ever overwritten.
    notebooks : str or Path
        The folder to copy.

    Returns
    -------
    Path
        The new folder.
    """
    for name, path in (("folder", folder), ("notebooks", notebooks)):
        if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
            raise BertError(f"{name} = {short(path)}, allowed: a path")
    target, source = Path(os.path.abspath(folder)), Path(notebooks).resolve()
    _check_places(target, source)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            copy = Path(work) / target.name
            for path in _files(source):
                _copy_file(path, copy / path.relative_to(source))
            copy.rename(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BertError(f"{target.name} cannot be written: {reason}") from None
    return target


def _check_places(target, source):
    """Refuse a target that exists or has no place, or a source without notebooks."""
    if os.path.lexists(target):
        raise BertError(f"folder = {str(target)!r} exists, allowed: a new one")
    if not target.parent.is_dir():
        raise BertError(f"folder = {str(target)!r}: {target.parent.name} is no folder")
    if not any(source.glob("*.ipynb")):
        raise BertError(f"notebooks = {str(source)!r} holds no notebooks")
    if source in target.resolve().parents:
        raise BertError(f"folder = {str(target)!r} lies in the folder to copy")


def _files(folder):
    """Yield the files of a folder, hidden and generated ones left out."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in LEFT_OUT:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _copy_file(path, copy):
    """Write one file's copy; a notebook becomes a student's."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes()
    if path.suffix == ".ipynb":
        try:
            notebook = student_notebook(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BertError(f"{path.name} cannot be read as a notebook") from None
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
        content = f"{text}\n".encode()
    copy.write_bytes(content)


def student_notebook(notebook):
    """Return a notebook's JSON without outputs, answers and guesses."""
    exercises = all_exercises()

    def clear(cell):
        if cell["cell_type"] != "code":
            return cell
        source = "".join(cell["source"])
        found = CHECK.search(source)
        if found and found[1] in exercises:
            source = stub(exercises[found[1]])
        if "\npredict(" in source:
            source = GUESS.sub("guess = ...  ", source)
        lines = source.splitlines(keepends=True)
        return cell | {"source": lines, "outputs": [], "execution_count": None}

    return notebook | {"cells": [clear(cell) for cell in notebook["cells"]]}


def missing_neighbours(folder, notebooks=NOTEBOOKS):
    """Return the files outside their folder that the copies do not find."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.ipynb"))
    paths = set(re.findall(r"\.\./[\w./]*\w", "".join(texts)))
    there = (path for path in sorted(paths) if (Path(notebooks) / path).exists())
    return [path for path in there if not (folder / path).exists()]
