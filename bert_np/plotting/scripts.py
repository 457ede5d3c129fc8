"""Scripts of the pages: their files, their data, and how they are started."""

import json
import uuid
from pathlib import Path
from string import Template

from bert_np.plotting import colours
from bert_np.plotting.html import Html, join, tag

COLOURS = ("QUERY", "KEY", "VALUE", "MASKED", "HATCH")  # named in style sheets


def source_of(name):
    """Read a file beside this one; a style sheet gets its colours."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return with_colours(text) if name.endswith(".css") else text


def read_part(name):
    """Read a file beside this one without its indents: notebooks store it."""
    return "".join(f"{line.strip()}\n" for line in source_of(name).splitlines())


def with_colours(style):
    """Fill the colours of the figures into a style sheet."""
    return Template(style).substitute(
        {name.lower(): getattr(colours, name) for name in COLOURS}
    )


def script_json(data):
    r"""Write data as JSON that is safe inside a script.

    >>> script_json({"token": "</script>"})
    '{"token": "\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=True)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"})


def with_script(still, scripts, start, *data):
    """Write what is shown without scripts, then a script that builds on it.

    Parameters
    ----------
    still : Html
    scripts : list of str
        The files whose functions the script needs.
    start : str
        The function to call with the element that holds `still`.
    data : str
        Further arguments, as JSON.

    Returns
    -------
    Html
    """
    name = f"bert-{uuid.uuid4().hex}"
    parts = "".join(map(read_part, scripts))
    arguments = ", ".join([f'document.getElementById("{name}")', *data])
    script = Html(f"(() => {{\n{parts}{start}({arguments});\n}})();")
    return join([tag("div", "\n", still, "\n", id=name), tag("script", script)], "\n")
