"""Sphinx's settings for the site; build.py beside it lays out the pages."""

import hashlib
import json
import os
import re
from binascii import a2b_base64
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import bert_np

project = "bert_np"
author = "the authors of bert_np"
version = release = bert_np.__version__
root_doc = "README"
exclude_patterns = []
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
]

# Notebooks are shown as they are committed. The widgets of `explore` need a
# kernel, and what would draw them comes from another host: they are left out.
nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None)
]
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3
smartquotes = False

# The docstrings are in numpydoc order, with two sections of our own. Their
# types are words, not names to be looked up.
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Trace", "params_style"), "Source"]
autodoc_preserve_defaults = True
viewcode_line_numbers = True

html_theme = "sphinx_book_theme"
html_title = "bert_np"
html_sourcelink_suffix = ""
html_use_index = False  # the search finds every name
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
}

# Where a workflow of GitHub builds the site, it knows the repository, and
# every notebook can be started from its page.
if "GITHUB_REPOSITORY" in os.environ:
    html_theme_options |= {
        "repository_url": "https://github.com/" + os.environ["GITHUB_REPOSITORY"],
        "use_repository_button": True,
        "launch_buttons": {"binderhub_url": "https://mybinder.org"},
    }


def link_to_sources(app, doctree):
    """Lead links such as `../heads.py` to the pages that show the files."""
    page = app.env.docname
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftarget"].endswith(".py"):
            path = os.path.normpath(Path(page).parent / node["reftarget"])
            source = "_modules/" + path.removesuffix(".py")
            url = app.builder.get_relative_uri(page, source)
            node.replace_self(nodes.reference("", "", *node, refuri=url))


def as_plain_text(app, what, name, obj, options, lines):
    """Keep |x| and **options as they are written, and give sources a title."""
    for i, line in enumerate(lines):
        parts = re.split("(``.*?``|>>> .*)", line)
        parts[::2] = [re.sub(r"[|*]", r"\\\g<0>", text) for text in parts[::2]]
        lines[i] = "".join(parts)
    text = "\n".join(lines)
    lines[:] = re.sub("^Source: ", "Source\n------\n", text, flags=re.M).split("\n")


def describe_pictures(app, doctree):
    """Give the pictures of a notebook their descriptions, as alternative text."""
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return
    descriptions = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                name = hashlib.sha256(a2b_base64("".join(png))).hexdigest()
                descriptions[name] = output["metadata"].get("image/png", {}).get("alt")
    for image in doctree.findall(nodes.image):
        image["alt"] = descriptions.get(Path(image["uri"]).stem) or image.get("alt", "")


def skip_fields(app, what, name, obj, skip, options):
    """The fields of a NamedTuple stand in its signature already."""
    return skip or (
        hasattr(obj, "__get__") and str(obj.__doc__).startswith("Alias for")
    )


def setup(app):
    app.connect("autodoc-process-docstring", as_plain_text, priority=100)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("doctree-read", link_to_sources)
    app.connect("doctree-read", describe_pictures, priority=100)
