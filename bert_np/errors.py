"""The one exception that bad input raises."""

MESSAGE_LIMIT = 300


class BertError(ValueError):
    """Input that cannot be used: which argument or file, what was found,
    what is allowed.

    A message longer than 300 characters loses its middle, so that both
    the culprit (first) and the remedy (last) stay readable.
    """

    def __init__(self, message):
        text = str(message)
        if len(text) > MESSAGE_LIMIT:
            half = (MESSAGE_LIMIT - 5) // 2
            text = f"{text[:half]} ... {text[-half:]}"
        super().__init__(text)
