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
        (5, "5"),
        ("a", "'a'"),
        (None, "None"),
        ([1, 2], "[1, 2]"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 56}..."),
        (10**5000, "int of 16610 bits that cannot be printed"),
        (-(10**5000), "int of 16610 bits that cannot be printed"),
        ([10**5000], "list that cannot be printed"),
        (Mute(), "Mute that cannot be printed"),
    ],
    ids=[
        "int",
        "str",
        "None",
        "list",
        "60",
        "61",
        "5,001 digits",
        "negative",
        "in a list",
        "mute",
    ],
)
def test_any_value_has_a_short_text(value, text):
    assert short(value) == text
    assert len(short(value)) <= 60


def test_the_limit_can_be_chosen():
    assert short("x" * 50, 20) == "'" + "x" * 16 + "..."


def test_a_long_message_keeps_its_ends():
    message = str(BertError("culprit " + "x" * 999 + " remedy"))
    assert len(message) <= MESSAGE_LIMIT
    assert message.startswith("culprit ") and message.endswith(" remedy")


def test_it_is_a_value_error():
    assert issubclass(BertError, ValueError)
