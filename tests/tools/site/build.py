"""Build the course as a site: chapters, reference of the API, the live page.

    python tests/tools/site/build.py                into build/site

What the pages show is what the repository holds: notebooks with their
committed outputs, READMEs, and docstrings.
"""

import importlib
import inspect
import pkgutil
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from bert_np.web import save_page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
COPIED = ["README.md", "bert_np/**/*.md", "tests/**/*.md", "notebooks/**/*.md"]
COPIED += ["notebooks/*.ipynb", "notebooks/images/*", "notebooks/data/*"]
COPIED += ["tests/tools/benchmarks/*.png"]
# The rooms of the library in reading order; "" is what `bert_np` itself offers.
ROOMS = ["", "files", "tasks", "analysis", "plotting", "training", "course", "web"]
LIVE = '<a href="{}bert.html">the live page</a>'
FRONT = f"""
[Start the course](notebooks/README.md) · [take the tour](notebooks/quick_tour.ipynb)
· open {LIVE.format("")}, a BERT that runs in your browser
· [look up a function](reference/bert_np.md)
"""


def main(target):
    """Lay out the sources, build the pages, and put the live page beside them."""
    source, pages = target / "source", target / "html"
    shutil.rmtree(target, ignore_errors=True)
    copy_sources(source)
    write_reference(source / "reference")
    insert(source / "README.md", FRONT, before="\n## ")
    live = f"\nOpen {LIVE.format('../../')}.\n"
    insert(source / "bert_np/web/README.md", live, before="\n```")
    with open(source / "README.md", "a", encoding="utf-8") as front:
        front.write("".join(contents(source)))
    options = ["-q", "-W", "--keep-going", "-c", str(HERE)]
    if build_main([*options, "-d", str(target / "cache"), str(source), str(pages)]):
        sys.exit("Sphinx warned: see above")
    shutil.copy(pages / "README.html", pages / "index.html")
    for bundle in pages.glob("_static/mathjax/*.js"):
        if bundle.name != "tex-chtml.js":  # the one that the pages load
            bundle.unlink()
    for template in pages.glob("_static/*macros.html"):  # of the theme, no pages
        template.unlink()
    save_page(pages / "bert.html")


def copy_sources(source):
    """Copy all that becomes a page, or stands in one."""
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            copy = source / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)


def insert(path, text, before):
    """Put a paragraph into a page, for the site alone."""
    page = path.read_text("utf-8")
    path.write_text(page.replace(before, text + before, 1), "utf-8")


def contents(source):
    """The table of contents at the side, part by part."""
    notebooks = sorted(f"notebooks/{p.stem}" for p in source.glob("notebooks/*.ipynb"))
    chapters = [name for name in notebooks if Path(name).name[0].isdigit()]
    others = [name for name in notebooks if name not in chapters]
    course = [
        "notebooks/README",
        *chapters,
        "notebooks/TEACHING",
        "notebooks/data/README",
    ]
    yield toctree("The course", course)
    yield toctree("Pictures and tours", [*others, "bert_np/web/README"])
    yield toctree("Reference", [f"reference/{page_name(room)}" for room in ROOMS])
    placed = {"README", "notebooks/README", "notebooks/TEACHING"}
    placed |= {"notebooks/data/README", "bert_np/web/README"}
    readmes = sorted(p.relative_to(source) for p in source.rglob("README.md"))
    names = [path.with_suffix("").as_posix() for path in readmes]
    yield toctree("Behind it", [name for name in names if name not in placed])


def toctree(caption, pages):
    lines = [":hidden:", f":caption: {caption}", "", *pages]
    return "\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


# ------------------------------------------------------- the reference


def page_name(room):
    return f"bert_np.{room}".rstrip(".")


def write_reference(folder):
    """Write one page per room, with a section for each module.

    What `bert_np` offers from a room is described on that room's page, so
    that every function has one place; the first page lists it.
    """
    folder.mkdir()
    homes = {room: offered(importlib.import_module(page_name(room))) for room in ROOMS}
    known = {value: name for room in ROOMS[1:] for name, value in homes[room]}
    for room in ROOMS:
        name = page_name(room)
        package = importlib.import_module(name)
        parts = [f"# {name}\n\n{inspect.getdoc(package)}\n"]
        if not room:
            elsewhere = {n: known[value] for n, value in homes[""] if value in known}
            parts += [
                listed(elsewhere),
                section("bert_np.minimal", ["bert_np.minimal.bert"]),
            ]
            homes[""] = [pair for pair in homes[""] if pair[0] not in elsewhere]
        modules = in_reading_order(package, {v.__module__ for _, v in homes[room]})
        for module in modules:
            names = [n for n, value in homes[room] if value.__module__ == module]
            parts.append(section(module, names))
        (folder / f"{name}.md").write_text("\n".join(parts), "utf-8")


def offered(package):
    """Name and value of the public functions and classes of a package.

    They are those of `__all__` where the package has it, and else those
    that its modules define without an underscore.
    """
    prefix = package.__name__ + "."
    if hasattr(package, "__all__"):
        return [(prefix + name, getattr(package, name)) for name in package.__all__]
    names = [prefix + found.name for found in pkgutil.iter_modules(package.__path__)]
    modules = map(importlib.import_module, names)
    return [pair for module in modules for pair in defined_in(module)]


def in_reading_order(package, modules):
    """Modules in the order in which the package's README lists them."""
    readme = (Path(package.__file__).parent / "README.md").read_text("utf-8")
    place = {name: readme.find(f"`{name.split('.')[-1]}.py`") for name in modules}
    return sorted(modules, key=place.get)


def defined_in(module):
    """Name and value of the public functions and classes of one module."""
    for name, value in vars(module).items():
        ours = getattr(value, "__module__", None) == module.__name__
        if ours and not name.startswith("_") and callable(value):
            yield f"{module.__name__}.{name}", value


def listed(names):
    """A line of links, from the short names to where they are described."""
    links = [f":py:obj:`{short} <{full}>`" for short, full in names.items()]
    line = "Offered here too, and described with their folders: " + ", ".join(links)
    return f"```{{eval-rst}}\n{line}.\n```\n"


def section(module, names):
    """One module of the reference: its own words, then what it offers."""
    title = module.removeprefix("bert_np.").replace(".", "/") + ".py"
    text = inspect.getdoc(importlib.import_module(module))
    lines = [f"## {title}", "", *text.splitlines(), "", "```{eval-rst}"]
    for name in names:
        kind = "class" if inspect.isclass(pkgutil.resolve_name(name)) else "function"
        lines += [f".. auto{kind}:: {name}", *["   :members:"] * (kind == "class"), ""]
    return "\n".join([*lines, "```", ""])


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "site").resolve())
