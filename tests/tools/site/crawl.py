"""Walk through the built site: no dead link, no outside request, no fault.

    python tests/tools/site/crawl.py                of build/site/html

First every page is read: whatever it links to or loads must be there, down
to the anchor, and only a link that a reader clicks may lead outside. Then
every page is opened in Chromium, which must ask nothing of a network, show
every picture and equation, and fit into a narrow window; and the search must
find something. Links to other sites are counted and not followed.
"""

import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser, find_chromium  # noqa: E402

NARROW = 400  # pixels
# What a page says about itself, as a list of faults.
FAULTS = """await (async () => {
  await window.MathJax?.startup?.promise;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const broken = all("img").filter((e) => e.complete && !e.naturalWidth);
  const bare = all(".math").filter((e) => !e.querySelector("mjx-container"));
  const wide = document.documentElement.scrollWidth - innerWidth;
  return [...broken.map((e) => "picture " + e.src),
    ...bare.concat(all("mjx-merror")).map((e) => "equation " + e.textContent),
    ...(wide > 0 ? [`${wide} pixels too wide`] : [])];
})()"""
FOUND = "document.querySelector('#search-results li a')"


class Page(HTMLParser):
    """The anchors of one page, what it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = {"", "top"}, set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        links = self.links if tag == "a" else self.loads
        links |= {given[name] for name in ("href", "src", "data") if given.get(name)}


def read_pages(folder):
    """Every page of the site under its path."""
    paths = sorted(folder.rglob("*.html"))
    return {path: Page(path.read_text("utf-8")) for path in paths}


def dead_links(pages):
    """The links that lead nowhere, and what comes from outside, page by page."""
    faults = defaultdict(list)
    for path, page in pages.items():
        for link in sorted(page.links | page.loads):
            url = urlsplit(link)
            if url.scheme == "data" or (url.scheme and link not in page.loads):
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            missing = url.scheme or url.netloc or not target.is_file()
            if missing or unquote(url.fragment) not in anchors(pages, target):
                faults[path].append(link)
    return faults


def anchors(pages, target):
    """The anchors of a page; any other file has the empty one alone."""
    return pages[target].anchors if target in pages else {""}


def open_pages(pages):
    """What goes wrong in a browser, page by page."""
    faults = defaultdict(list)
    with Browser() as browser:
        size = {"width": NARROW, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **size)
        for path in pages:
            browser.open(path.as_uri())
            faults[path] += browser.run(FAULTS)
            for found in browser.errors():
                faults[path] += found
    return faults


def search(folder, word):
    """The first page that the site's own search finds for a word."""
    with Browser() as browser:
        browser.open((folder / "search.html").as_uri() + "?q=" + word)
        browser.wait(FOUND)
        return browser.run(FOUND + ".getAttribute('href')")


def main(folder):
    pages = read_pages(folder)
    outside = {link for page in pages.values() for link in page.links if "://" in link}
    count = sum(len(page.links | page.loads) for page in pages.values())
    print(f"{len(pages)} pages, {count} links, {len(outside)} other sites' pages")
    faults = dead_links(pages)
    if not find_chromium():
        sys.exit("no Chromium here: the pages were read, but not opened")
    print(f"the search for softmax finds {search(folder, 'softmax')}")
    for path, found in open_pages(pages).items():
        faults[path] += found
    lines = [
        f"{p.relative_to(folder)}: {f}" for p, found in faults.items() for f in found
    ]
    sys.exit("\n".join(lines) or print("no dead link, no outside request, no fault"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/site/html").resolve())
