"""The one exception that bad input raises, and what its messages share."""

import re

MESSAGE_LIMIT = 300
NEAR = 0.82  # the similarity at which one name is taken for a misspelling of another


def short(value, limit=60):
    """Return a value as text for a message: its repr, cut to a limit.

    Python prints no int of more than 4,300 digits, and an object's own
    repr may fail: then the text names the type.
    """
    try:
        text = repr(value)
    except Exception:
        size = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        return f"{type(value).__name__}{size} that cannot be printed"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def did_you_mean(name, known, cutoff=NEAR):
    """Return "; did you mean 'toy'?" for the nearest known name, or "".

    Only letters and digits count, whatever their case. If `known` is a
    dict, it maps each spelling to the name that is suggested.

    >>> did_you_mean("Hidden-act", ["hidden_size", "hidden_act"])
    "; did you mean 'hidden_act'?"
    """
    from difflib import get_close_matches  # `import bert_np` stays quick

    def plain(text):
        return re.sub(r"[\W_]", "", text.lower())

    known = known if isinstance(known, dict) else {k: k for k in known}
    plainly = {plain(spelling): meant for spelling, meant in known.items()}
    near = get_close_matches(plain(name), plainly, n=1, cutoff=cutoff)
    return f"; did you mean {short(plainly[near[0]])}?" if near else ""


def require_bool(name, value):
    """Refuse what is neither True nor False, such as "no" (true in an if)."""
    if type(value) is not bool:
        raise BertError(f"{name} = {short(value)}, allowed: True or False")


def require_callable(name, value):
    """Refuse what cannot be called."""
    if not callable(value):
        raise BertError(f"{name} = {short(value)}, allowed: a function")


class BertError(ValueError):
    """Input that cannot be used: which argument or file, what was found,
    what is allowed.

    A message of more than 300 characters loses its middle, so that both
    the culprit (first) and the remedy (last) stay readable.
    """

    def __init__(self, message):
        text = message if isinstance(message, str) else short(message)
        if len(text) > MESSAGE_LIMIT:
            half = (MESSAGE_LIMIT - 5) // 2
            text = f"{text[:half]} ... {text[-half:]}"
        super().__init__(text)
