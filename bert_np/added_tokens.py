"""Added tokens: cut out of the text whole, before WordPiece sees it.

    text       I [MASK] New York.      with "New York" as an added token
    cut out      [MASK] New York
    WordPiece  i                 .

The five special tokens are the ones that every BERT has. A fine-tuned
model may have more, such as "[E1]" around an entity. The rules are those
of AddedVocabulary in HuggingFace's `tokenizers` library.
"""

import re
import unicodedata
from typing import NamedTuple

from bert_np.errors import BertError, short

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class AddedToken(NamedTuple):
    """A token that is cut out of the text whole."""

    content: str
    special: bool = False  # plain text if allow_special=False; skipped in decoding
    normalized: bool = True  # sought in the cleaned text: "COVID" finds "covid"
    single_word: bool = False  # not next to a letter or digit
    lstrip: bool = False  # includes the white space on its left
    rstrip: bool = False  # includes the white space on its right
    piece: bool = False  # WordPiece may use it too


def as_added(special):
    """Return the special tokens as {content: AddedToken}."""
    return {token: AddedToken(token, True, False, piece=True) for token in special}


class Finder:
    """Finds the tokens given, {string to look for: AddedToken}, in a text."""

    def __init__(self, tokens):
        longest_first = sorted(tokens, key=len, reverse=True)
        self.tokens = tokens
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def split(self, text, allow_special):
        """Cut a text into (AddedToken or None, start, end), from the left."""
        cuts, done = [], 0
        for match in self.pattern.finditer(text):
            token, (start, end) = self.tokens[match[0]], match.span()
            if token.special and not allow_special:
                continue
            if token.single_word and (
                is_word_char(text[start - 1 : start])
                or is_word_char(text[end : end + 1])
            ):
                continue
            while token.lstrip and start > done and is_space(text[start - 1]):
                start -= 1
            while token.rstrip and end < len(text) and is_space(text[end]):
                end += 1
            if done < start:
                cuts.append((None, done, start))
            cuts.append((token, start, end))
            done = end
        return cuts if done >= len(text) else [*cuts, (None, done, len(text))]


def is_space(ch):
    """Say whether Unicode counts a character as white space."""
    return ch.isspace() and ch not in "\x1c\x1d\x1e\x1f"


def is_word_char(ch):
    """Say whether a character is part of a word; "" is not."""
    kinds = ("Nd", "Nl", "Pc")
    kind = unicodedata.category(ch) if ch else ""
    return kind[:1] in ("L", "M") or kind in kinds or ch in ("\u200c", "\u200d")


def make_finders(added, shown):
    """Return the finders for the text as it is and for the cleaned text.

    `shown` says what each token's content becomes once it is cleaned. Of
    two that become the same, the first counts, special ones before others.
    """
    raw, cleaned = {}, {}
    for token in sorted(added, key=lambda token: not token.special):
        text = shown[token.content]
        if not text:
            raise BertError(f"added token {short(token.content)} is empty once cleaned")
        (cleaned if token.normalized else raw).setdefault(text, token)
    return Finder(raw), Finder(cleaned)


def check_special(special):
    """Refuse what is not five names for the special tokens, all different."""
    whole = isinstance(special, (list, tuple)) and len(special) == len(SPECIAL_TOKENS)
    if not whole or not all(isinstance(t, str) and t for t in special):
        raise BertError(
            f"special = {short(special)}, allowed: five str, the names of "
            f"{' '.join(SPECIAL_TOKENS)}"
        )
    if len(set(special)) < len(special):
        raise BertError(f"special = {short(special)}, allowed: five different tokens")


def check_added(added, vocab, special=SPECIAL_TOKENS):
    """Refuse what is not a list of distinct AddedTokens of the vocabulary."""
    if not isinstance(added, (list, tuple)):
        raise BertError(f"added is {type(added).__name__}, allowed: AddedTokens")
    seen = set()
    for i, token in enumerate(added):
        if not isinstance(token, AddedToken) or not isinstance(token.content, str):
            raise BertError(f"added[{i}] = {short(token)}, allowed: an AddedToken")
        for name, value in list(token._asdict().items())[1:]:
            if type(value) is not bool:
                raise BertError(
                    f"added[{i}].{name} = {short(value)}, allowed: True or False"
                )
        if token.content in special and not token.special:
            raise BertError(f"added token {token.content} must have special=True")
        if token.content not in vocab or token.content in seen:
            found = "twice" if token.content in seen else "but not among tokens"
            raise BertError(f"added token {short(token.content)} is given {found}")
        seen.add(token.content)
