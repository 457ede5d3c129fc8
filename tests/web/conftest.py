"""The live page in a browser, for the tests marked `browser`."""

import pytest

from bert_np.web import save_page


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
