"""A browser with the live page, for the tests marked `browser`."""

import pytest
from browser import Browser, find_chromium

from bert_np.web import save_page


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests; without one they fail and say what to do."""
    if find_chromium() is None:
        pytest.fail(
            "no chromium or google-chrome on the path: install one (Debian: "
            "apt install chromium), or leave these tests out: -m 'not browser'"
        )
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    return save_page(tmp_path_factory.mktemp("web") / "bert.html")


@pytest.fixture
def page(chromium, page_file):
    """The live page, fresh, once the toy has run."""
    chromium.open("about:blank")
    chromium.open(page_file.as_uri())
    chromium.wait("shown")
    return chromium
