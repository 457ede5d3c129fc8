"""The tokenizer's files: vocabulary, settings and added tokens.

Several files may list the same tokens, because versions of the
transformers library saved different ones. All are read: if two differ,
both are named and refused. What is not used is noted for the report.
"""

import json
import os
import re

from bert_np.added_tokens import SPECIAL_TOKENS, AddedToken, as_added
from bert_np.errors import BertError, did_you_mean, short
from bert_np.files.weights import own_file, read_object
from bert_np.tokenizer import Tokenizer, check_choice, check_vocabulary, read_vocab

VOCAB, TOKENIZER, SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
ADDED, SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"
TOKENIZER_FILES = (VOCAB, TOKENIZER, SETTINGS, ADDED, SPECIAL_MAP)
# A key of tokenizer_config.json -> the argument of Tokenizer.
OPTIONS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
# What a tokenizer.json must say so that its vocabulary is used as BERT's.
WORDPIECE = {
    ("model", "type"): "WordPiece",
    ("model", "continuing_subword_prefix"): "##",
    ("model", "max_input_chars_per_word"): 100,
    ("normalizer", "type"): "BertNormalizer",
    ("normalizer", "clean_text"): True,
    ("pre_tokenizer", "type"): "BertPreTokenizer",
}
# What vocab.txt cannot store: line ends, surrogates, a byte-order mark.
NO_LINE = re.compile("\n|\r\\Z|[\ud800-\udfff]|\\A\ufeff")
CLASSES = (
    "BertTokenizer",
    "BertTokenizerFast",
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
    None,
)
# The keys that name the special tokens, in the order of SPECIAL_TOKENS, and in
# that in which transformers gives ids to those that a vocabulary lacks.
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
ORDER = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")
MORE_SPECIAL = ("additional_special_tokens", "extra_special_tokens")
FLAGS = AddedToken._fields[1:-1]


# -------------------------------------------------------------- reading
def load_tokenizer(folder, values, notes):
    """Load the folder's tokenizer; None if it is not a WordPiece like BERT's.

    Parameters
    ----------
    folder : Path
    values : dict
        What config.json says.
    notes : dict of list of str
        Gets what the load report says about these files, under "unused",
        "no tokenizer", "overruled" and "ignored".

    For case and accents tokenizer_config.json takes precedence over
    tokenizer.json, as in the transformers library.
    """
    settings, whole = (read_object(folder, n) or {} for n in (SETTINGS, TOKENIZER))
    reason = _other_class(settings, values)
    if not reason and whole:
        reason = _other_kind(whole)
        if reason and os.path.lexists(folder / VOCAB):
            raise BertError(f"{VOCAB} is a WordPiece vocabulary, but {reason}")
    if not reason and not whole and not os.path.lexists(folder / VOCAB):
        reason = f"neither {VOCAB} nor {TOKENIZER} is there"
    if reason:
        notes["no tokenizer"].append(reason)
        notes["unused"] += [n for n in TOKENIZER_FILES if (folder / n).exists()]
        return None
    options = _options(settings, whole.get("normalizer", {}), notes)
    maps = {SETTINGS: settings, SPECIAL_MAP: read_object(folder, SPECIAL_MAP) or {}}
    special = _special_names(maps, whole)
    tokens = _base_tokens(folder, whole, special)
    found = _declared(maps, whole, read_object(folder, ADDED) or {})
    tokens, added = _join(tokens, found, special)
    _check_ids(tokens, special, values, whole)
    _note_ignored(settings, whole, notes)
    return Tokenizer.from_tokens(tokens, **options, added=added, special=special)


def _other_class(settings, values):
    """Say which file names a class of tokenizer that is not BERT's, or None."""
    said = {
        name: found["tokenizer_class"]
        for name, found in ((SETTINGS, settings), ("config.json", values))
        if found.get("tokenizer_class") is not None
    }
    other = {name: kind for name, kind in said.items() if kind not in CLASSES}
    if other and len(other) < len(said):
        both = " but ".join(f"{short(kind)} in {name}" for name, kind in said.items())
        raise BertError(f"tokenizer_class = {both}; correct the wrong one")
    for name, kind in other.items():
        return f"tokenizer_class = {short(kind)} in {name}"


def _other_kind(whole):
    """Say where a tokenizer.json is not like BERT's, or return None."""
    for (part, key), wanted in WORDPIECE.items():
        values = whole.get(part)
        found = values.get(key) if isinstance(values, dict) else None
        if found != wanted:
            return f"{TOKENIZER}: {part}.{key} = {short(found)}, needed {wanted!r}"
    ends = whole.get("post_processor")
    if ends is not None and _ends(ends) is None:
        return f"{TOKENIZER}: post_processor = {short(ends)}, needed [CLS] A [SEP]"


def _ends(processor):
    """Return what a post_processor uses as [CLS] and [SEP]; None if not BERT's."""
    try:
        if processor["type"] == "BertProcessing":
            return processor["cls"][0], processor["sep"][0]
        single, pair = (
            [(p["id"], p["type_id"]) for part in processor[name] for p in part.values()]
            for name in ("single", "pair")
        )
        (cls, _), _, (sep, _) = single
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    wanted = [(cls, 0), ("A", 0), (sep, 0)]
    if single != wanted or pair != [*wanted, ("B", 1), (sep, 1)]:
        return None
    return cls, sep


def _special_names(maps, whole):
    """Return what the five special tokens are called; the files must agree."""
    said = [
        (role, f"{name}: {role}", values[role])
        for name, values in maps.items()
        for role in ROLES
        if role in values
    ]
    names = {}
    for role, where, entry in said + _names_within(whole):
        content = _token(entry, where, special=True).content
        old, first = names.setdefault(role, (content, where))
        if content != old:
            raise BertError(
                f"{first} is {short(old)}, but {where} is {short(content)}; correct "
                "the wrong one"
            )
    pairs = zip(ROLES, SPECIAL_TOKENS)
    special = tuple(names[role][0] if role in names else t for role, t in pairs)
    for token in special:
        if special.count(token) > 1:
            both = [role for role, t in zip(ROLES, special) if t == token]
            raise BertError(
                f"{' and '.join(both)} of the tokenizer are {short(token)}, allowed: "
                "different tokens"
            )
    return special


def _names_within(whole):
    """List what a tokenizer.json calls special tokens: (role, where, content)."""
    if not whole:
        return []
    found = {"model.unk_token": ("unk_token", whole["model"].get("unk_token"))}
    for role, end in zip(ROLES[2:], _ends(whole.get("post_processor")) or ()):
        found[f"post_processor {role}"] = (role, end)
    if isinstance(whole.get("padding"), dict):
        found["padding.pad_token"] = ("pad_token", whole["padding"].get("pad_token"))
    return [
        (role, f"{TOKENIZER}: {where}", content)
        for where, (role, content) in found.items()
        if content is not None
    ]


def _check_ids(tokens, special, values, whole):
    """Refuse an id of a special token that differs from the vocabulary's.

    Keys of config.json and the post_processor of a tokenizer.json give ids.
    """
    said = [
        (f"config.json: {role}_id", token, values.get(f"{role}_id"))
        for role, token in zip(ROLES[1:], special[1:])
    ]
    ends = _end_ids(whole.get("post_processor"), special[2:4])
    for token, number in zip(special[2:4], ends):
        said.append((f"{TOKENIZER}: post_processor", token, number))
    for where, token, number in said:
        if number is not None and number != tokens.index(token):
            raise BertError(
                f"{where} gives {short(token)} the id {short(number)}, but the "
                f"vocabulary {tokens.index(token)}"
            )


def _end_ids(processor, ends):
    """Return the ids that a post_processor gives to [CLS] and [SEP], or None."""
    try:
        if processor["type"] == "BertProcessing":
            return processor["cls"][1], processor["sep"][1]
        return [processor["special_tokens"][token]["ids"][0] for token in ends]
    except (LookupError, TypeError):
        return None, None


def _base_tokens(folder, whole, special):
    """Return WordPiece's vocabulary in the order of its ids.

    [UNK] must be in it; another special token may be an added one, but
    only if its name is not one of SPECIAL_TOKENS.
    """
    needed = [t for t in special if t in SPECIAL_TOKENS or t == special[1]]
    tokens = None
    if os.path.lexists(folder / VOCAB):
        tokens = read_vocab(own_file(folder, VOCAB))
        check_vocabulary(tokens, VOCAB, needed)
    if whole:
        same = _vocabulary(whole["model"])
        if tokens is not None and tokens != same:
            pairs = enumerate(zip(tokens, same))
            at = next((i for i, (a, b) in pairs if a != b), min(len(tokens), len(same)))
            raise BertError(
                f"{VOCAB} ({len(tokens)} tokens) and {TOKENIZER} ({len(same)}) differ "
                f"from id {at} on; remove the wrong one"
            )
        tokens = same
        check_vocabulary(tokens, TOKENIZER, needed)
    return tokens


def _vocabulary(model):
    """Return the tokens of a tokenizer.json in the order of their ids."""
    ids = model.get("vocab")
    whole = isinstance(ids, dict) and all(type(i) is int for i in ids.values())
    if not whole or sorted(ids.values()) != list(range(len(ids))):
        raise BertError(f"{TOKENIZER}: vocab must give the tokens the ids 0, 1, 2, ...")
    return sorted(ids, key=ids.get)


def _options(settings, normalizer, notes):
    """Return the rules of cleaning, and note which value overrules another."""
    options = {}
    for old, new in OPTIONS.items():
        if new in normalizer:
            options[new] = normalizer[new]
        if old in settings:
            if options.get(new, settings[old]) != settings[old]:
                notes["overruled"].append(
                    f"{TOKENIZER} {new} = {short(options[new])} by {SETTINGS} "
                    f"{old} = {short(settings[old])}"
                )
            options[new] = settings[old]
    for name, value in options.items():
        where = f"{name} in the tokenizer's files"
        allowed = (True, False, None) if name == "strip_accents" else (True, False)
        check_choice(value, where, allowed)
    return options


# --------------------------------------------------------- added tokens
def _declared(maps, whole, ids):
    """Collect the added tokens of all files: {content: (id, token, source)}.

    The id is None if no file gives one. Two files that give different ids
    or rules are refused; a mere list of names overrules nothing.
    """
    found = {}
    entries = _list_of(whole.get("added_tokens"), f"{TOKENIZER}: added_tokens")
    for entry in entries:
        where = f"{TOKENIZER}: added_tokens"
        _declare(found, where, _token(entry, where), _id(entry.get("id"), where))
    decoder = maps[SETTINGS].get("added_tokens_decoder") or {}
    where = f"{SETTINGS}: added_tokens_decoder"
    if not isinstance(decoder, dict):
        raise BertError(f"{where} = {short(decoder)}, allowed: an object {{id: token}}")
    for i, entry in decoder.items():
        _declare(found, where, _token(entry, where), _id(i, where))
    names = list(_special(maps))
    # A mere name does not contradict the rules in another file.
    rules = {token.content: token for token, *_ in sorted(names, key=lambda n: n[2])}
    for content, i in ids.items():
        old = found.get(content)
        token = old[1] if old else rules.get(content, AddedToken(content))
        _declare(found, ADDED, token, _id(i, ADDED))
    for token, where, has_rules in names:
        if has_rules or token.content not in found:
            _declare(found, where, token if has_rules else rules[token.content])
    return found


def _special(maps):
    """Yield what files call special: (token, where, whether it has rules)."""
    for name, values in maps.items():
        keys = [key for key in values if key.endswith("_token")]
        keys = sorted(keys, key=lambda k: ORDER.index(k) if k in ORDER else len(ORDER))
        for key in (*keys, *MORE_SPECIAL):
            entries, where = values.get(key), f"{name}: {key}"
            if key in MORE_SPECIAL:
                more = isinstance(entries, dict)
                entries = _list_of(list(entries.values()) if more else entries, where)
            else:
                entries = [entries] if isinstance(entries, (str, dict)) else []
            for entry in entries:
                token = _token(entry, where, special=True)
                yield token, where, isinstance(entry, dict)


def _list_of(value, where):
    if not isinstance(value, (list, type(None))):
        raise BertError(f"{where} = {short(value)}, allowed: a list")
    return value or []


def _token(entry, where, special=False):
    """Read an added token: a str, or an object with content and rules."""
    entry = {"content": entry} if isinstance(entry, str) and special else entry
    content = entry.get("content") if isinstance(entry, dict) else None
    if not isinstance(content, str) or not content:
        raise BertError(f"{where}: {short(entry)}, allowed: a token with its content")
    special = special or entry.get("special", False)
    rules = {"special": special, "normalized": not special}
    rules |= {key: entry[key] for key in FLAGS[1:] if key in entry}
    if any(type(rule) is not bool for rule in rules.values()):
        raise BertError(f"{where}: {short(entry)}, allowed: rules true or false")
    return AddedToken(content, **rules)


def _id(value, where):
    """Read a token's id: an int, or its digits as a key of an object."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        value = int(value)
    if type(value) is not int or value < 0:
        raise BertError(f"{where}: id {short(value)}, allowed: an int >= 0")
    return value


def _declare(found, where, token, number=None):
    """Enter one token, or compare it with what another file says."""
    old_number, old, old_where = found.setdefault(token.content, (number, token, where))
    number = old_number if number is None else number
    if (old_number, old) != (number, token):
        a, b = (
            f"id {i}" if old_number != number else ", ".join(_rules(t)) or "no rules"
            for i, t in ((old_number, old), (number, token))
        )
        raise BertError(
            f"the added token {short(token.content, 40)} has {a} in {old_where}, "
            f"but {b} in {where}"
        )


def _rules(token):
    return [name for name in FLAGS if getattr(token, name)]


def _join(tokens, found, special):
    """Put the new tokens after the vocabulary: (all tokens, the added)."""
    ids, added = {token: i for i, token in enumerate(tokens)}, {}
    in_order = sorted(found.values(), key=lambda f: (f[0] is None, f[0] or 0))
    for number, token, where in in_order:
        content, piece = token.content, token.content in ids
        place = ids.setdefault(content, len(ids))
        if number not in (None, place):
            raise BertError(
                f"the added token {short(content, 40)} has id {number} in {where}, but "
                f"the vocabulary asks for {place}"
            )
        added[place] = token._replace(piece=piece)
    known = as_added(special).values()
    return list(ids), [added[i] for i in sorted(added) if added[i] not in known]


def _note_ignored(settings, whole, notes):
    """Note the keys that have a value and are not used."""
    known = {*OPTIONS, *MORE_SPECIAL, "tokenizer_class", "added_tokens_decoder"}
    ignored = [k for k in settings if k not in known and not k.endswith("_token")]
    for key in ignored:
        near = did_you_mean(key, {*known, *ROLES} - settings.keys(), 0.9)
        if near:
            raise BertError(f"{SETTINGS} has the key {short(key)}{near}")
    notes["ignored"] += [f"{SETTINGS} {k}" for k in ignored if settings[k] is not None]
    known = {"model", "normalizer", "pre_tokenizer", "post_processor", "added_tokens"}
    known.add("version")
    ignored = [k for k in whole if k not in known and whole[k] is not None]
    notes["ignored"] += [f"{TOKENIZER} {k}" for k in ignored]


# -------------------------------------------------------------- writing
def tokenizer_texts(tokenizer, config):
    """Return the texts of the tokenizer's two files: {name: text}."""
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise BertError(f"tokenizer is {kind}, allowed: a Tokenizer or None")
    check_agrees(tokenizer, config)
    lines = tokenizer.tokens[: len(tokenizer.pieces)]
    for token in tokenizer.tokens:
        if NO_LINE.search(token):
            raise BertError(f"token {token!r:.60} cannot be a line of {VOCAB}")
        if (token in tokenizer.pieces) != (tokenizer.vocab[token] < len(lines)):
            raise BertError(f"token {token!r:.60} must come after the vocabulary's")
    settings = {old: getattr(tokenizer, new) for old, new in OPTIONS.items()}
    settings["tokenizer_class"] = "BertTokenizer"
    settings["model_max_length"] = config.max_position_embeddings
    if tokenizer.special != SPECIAL_TOKENS:
        settings |= dict(zip(ROLES, tokenizer.special))
    if tokenizer.added:
        every = as_added(tokenizer.special) | {
            token.content: token for token in tokenizer.added
        }
        settings["added_tokens_decoder"] = {
            str(tokenizer.vocab[content]): {"content": content}
            | {name: getattr(token, name) for name in FLAGS}
            for content, token in every.items()
        }
    return {
        VOCAB: "".join(f"{token}\n" for token in lines),
        SETTINGS: json.dumps(settings, indent=2) + "\n",
    }


def check_agrees(tokenizer, config):
    """Refuse a vocabulary and a config that contradict each other."""
    if tokenizer.vocab_size > config.vocab_size:
        raise BertError(
            f"the vocabulary has {tokenizer.vocab_size} tokens, allowed: at most "
            f"vocab_size = {config.vocab_size} of config.json"
        )
    if config.pad_token_id not in (None, tokenizer.pad_token_id):
        raise BertError(
            f"{tokenizer.special[0]} has the id {tokenizer.pad_token_id} in the "
            f"vocabulary, but pad_token_id = {config.pad_token_id} in config.json"
        )
