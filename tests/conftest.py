"""Fixtures that several test files share."""

import pytest

from bert_np import BertError


@pytest.fixture(scope="session")
def minilm():
    """The Pretrained of all-MiniLM-L6-v2, downloaded once."""
    from bert_np.files.pretrained import load_pretrained

    try:
        return load_pretrained("all-MiniLM-L6-v2")
    except BertError as error:
        pytest.skip(f"all-MiniLM-L6-v2 is not available: {error}")
