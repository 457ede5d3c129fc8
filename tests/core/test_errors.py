"""The one exception, and values as its messages show them."""

import pytest

from bert_np import BertError
from bert_np.errors import MESSAGE_LIMIT, short


class Mute:
    """An object whose repr fails."""

    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "value, text",
    [
        ("a", "'a'"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 56}..."),
        pytest.param(10**5000, "int of 16610 bits that cannot be printed", id="long"),
        ([Mute()], "list that cannot be printed"),
    ],
)
def test_any_value_has_a_short_text(value, text):
    assert short(value) == text


def test_a_long_message_keeps_its_ends():
    message = str(BertError("culprit " + "x" * 999 + " remedy"))
    assert issubclass(BertError, ValueError) and len(message) <= MESSAGE_LIMIT
    assert message.startswith("culprit ") and message.endswith(" remedy")
