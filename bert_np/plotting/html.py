"""HTML in one place: escaping, elements, and pages that need no network."""

import base64
import glob
import os
import re
import uuid
from contextlib import suppress
from html import escape as escape_characters
from pathlib import Path

from bert_np.errors import BertError, short
from bert_np.files.checkpoint import remove_leftovers

VOID = {"br", "img", "meta"}  # elements without content and closing tag


class Html(str):
    """Text that is HTML already, so that it is not escaped again."""


def escape(text):
    """Return text as HTML that shows it literally.

    >>> escape("cat < dog"), escape(tag("br"))
    ('cat &lt; dog', '<br>')
    """
    return text if isinstance(text, Html) else Html(escape_characters(str(text)))


def escape_formulas(text):
    r"""Escape text so that a notebook does not typeset it as a formula.

    >>> escape_formulas("<b> $x$")
    '&lt;b&gt; <span>$</span>x<span>$</span>'
    """
    return Html(re.sub(r"[$\\]", r"<span>\g<0></span>", escape(text)))


def join(parts, between=""):
    """Join parts into one piece of HTML; those that are text are escaped."""
    return Html(escape(between).join(map(escape, parts)))


def tag(name, /, *content, **attributes):
    """Write an element. Texts in it and its attributes are escaped.

    >>> tag("b", "cat < dog", tag("br"), title='"')
    '<b title="&quot;">cat &lt; dog<br></b>'
    """
    inside = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    end = "" if name in VOID else f"{join(content)}</{name}>"
    return Html(f"<{name}{inside}>{end}")


def image(png, alt, **attributes):
    """Write a PNG as an image that contains its own data."""
    source = f"data:image/png;base64,{base64_text(png)}"
    return tag("img", alt=alt, **attributes, src=source)


def base64_text(data):
    """Write bytes as base64 in one line.

    >>> base64_text(b"cat")
    'Y2F0'
    """
    return base64.b64encode(data).decode("ascii")


def page(title, body):
    """Write a whole page, light or dark as the reader prefers."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
    ]
    style = "margin:24px;font-family:system-ui,sans-serif"
    whole = [tag("head", join(head, "\n")), tag("body", body, style=style)]
    return Html(f"<!doctype html>\n{tag('html', join(whole), lang='en')}\n")


def write_page(path, title, body):
    """Write a page with this title and body; see write_file.

    A body that is a plain str, not Html, is shown literally.
    """
    return write_file(path, page(title, body))


def write_file(path, text):
    """Write a text to a temporary file, then move it to its place.

    Parameters
    ----------
    path : str or Path
        A file in a folder that exists.
    text : str

    Returns
    -------
    Path

    Raises
    ------
    BertError
        If the file cannot be written; then nothing is left behind.
    """
    goal = check_target(path)
    try:
        partial = goal.with_name(f"{goal.name}.{uuid.uuid4().hex}.partial")
        _replace(goal, partial, text)
        remove_leftovers(goal.parent, f"{glob.escape(goal.name)}.*.partial")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    return goal


def check_target(path):
    """Return the path of a file to write, if its folder exists."""
    try:
        goal = Path(path)
        if goal.name and goal.parent.is_dir() and not goal.is_dir():
            return goal
        reason = "it is a folder" if goal.is_dir() else "its folder does not exist"
    except (OSError, TypeError, ValueError) as error:
        reason = error
    raise _unwritable(path, reason)


def _unwritable(path, reason):
    return BertError(
        f"path = {short(path)} cannot be written: {reason}; allowed: a file "
        "in a folder that exists"
    )


def _replace(goal, partial, text):
    try:
        partial.write_text(text, "utf-8")
        os.replace(partial, goal)
    finally:
        with suppress(OSError, ValueError):
            partial.unlink()
