"""Pages that a browser opens without a network."""

import glob
import os
import uuid
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template

from bert_np.errors import BertError
from bert_np.files.checkpoint import remove_leftovers

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
</head>
<body style="margin:24px;font-family:system-ui,sans-serif">
$body
</body>
</html>
""")


def write_page(path, title, body):
    """Write a page beside its place, then move it there.

    Parameters
    ----------
    path : str or Path
        A file in a folder that exists.
    title : str
        As text; escaped here.
    body : str
        As HTML.

    Returns
    -------
    Path

    Raises
    ------
    BertError
        Where it cannot be written; nothing is left half-written.
    """
    page = PAGE.substitute(title=escape(title), body=body)
    try:
        goal = Path(path)
        partial = goal.with_name(f"{goal.name}.{uuid.uuid4().hex}.partial")
        _replace(goal, partial, page)
        remove_leftovers(goal.parent, f"{glob.escape(goal.name)}.*.partial")
    except (OSError, TypeError, ValueError) as error:
        raise BertError(
            f"path = {path!r} cannot be written: {error}; allowed: a file "
            "in a folder that exists"
        ) from None
    return goal


def _replace(goal, partial, page):
    try:
        partial.write_text(page, "utf-8")
        os.replace(partial, goal)
    finally:
        with suppress(OSError, ValueError):
            partial.unlink()
