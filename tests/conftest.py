"""Fixtures that several test files share."""

import pytest
from browser import Browser, find_chromium
from hypothesis import HealthCheck, settings

from bert_np import BertError

# How long an example takes depends on who else uses the machine.
slow = [HealthCheck.too_slow]
settings.register_profile("no times", deadline=None, suppress_health_check=slow)
settings.load_profile("no times")


@pytest.fixture(scope="session")
def minilm():
    """The Pretrained of all-MiniLM-L6-v2, downloaded once."""
    from bert_np.files.pretrained import load_pretrained

    try:
        return load_pretrained("all-MiniLM-L6-v2")
    except BertError as error:
        pytest.skip(f"all-MiniLM-L6-v2 is not available: {error}")


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
