"""What else a folder says: pooling, defaults, and what is ignored.

A folder of sentence-transformers lists its modules in modules.json: the
transformer, which lies in the folder itself; Pooling, in a folder of its
own, usually 1_Pooling; and perhaps Normalize, which scales to length 1.
"""

import os

from bert_np.config import (
    CHECKED,
    LABEL_KEYS,
    OPTIONAL,
    BertConfig,
    check_pooling,
    read_json,
)
from bert_np.errors import BertError, did_you_mean, short
from bert_np.files.vocabulary import TOKENIZER_FILES
from bert_np.files.weights import (
    INDEX,
    WEIGHTS,
    few_names,
    own_file,
    read_object,
)

MODULES, POOLING = "modules.json", "1_Pooling"
KNOWN = ("config.json", MODULES, POOLING, *TOKENIZER_FILES)
VERY_NEAR = 0.93  # stricter than NEAR, for names that resemble each other
OLD_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def read_pooling(folder, config):
    """Return the pooling that a folder of sentence-transformers asks for.

    It must not contradict config.json, whose pooling is returned if the
    folder asks for none; without either it is "mean".
    """
    place, pooling = find_pooling(folder)
    said = config.pooling
    if pooling is None:
        return said
    values = read_object(folder, f"{place}/config.json")
    for key in ("word_embedding_dimension", "embedding_dimension"):
        if values.get(key, config.hidden_size) != config.hidden_size:
            raise BertError(
                f"{key} = {short(values[key])} in {place}/config.json, but hidden_size "
                f"= {config.hidden_size} in config.json"
            )
    if said not in (pooling, BertConfig.pooling):
        raise BertError(
            f"pooling = {said!r} in config.json, but {pooling!r} in {place}/config.json"
        )
    return pooling


def find_pooling(folder):
    """Return (the folder of the pooling, the pooling or None if not there)."""
    place = _pooling_folder(folder)
    where = f"{place}/config.json"
    values = read_object(folder, where)
    return place, None if values is None else _pooling(values, where)


def _pooling_folder(folder):
    """Return the name of the folder with the pooling, and check the modules."""
    if not os.path.lexists(folder / MODULES):
        return POOLING
    modules = read_json(own_file(folder, MODULES))
    if not isinstance(modules, list) or not all(isinstance(m, dict) for m in modules):
        raise BertError(f"{MODULES} = {short(modules)}, allowed: a list of objects")
    kinds = [str(module.get("type")).rsplit(".", 1)[-1] for module in modules]
    if kinds not in (
        ["Transformer", "Pooling"],
        ["Transformer", "Pooling", "Normalize"],
    ):
        raise BertError(
            f"{MODULES} lists {short(kinds, 100)}, allowed: Transformer, Pooling and "
            f"perhaps Normalize; without {MODULES} the transformer alone is loaded"
        )
    home, path = (module.get("path") for module in modules[:2])
    if home not in ("", ".", None):
        raise BertError(f"{MODULES}: path {short(home)} of Transformer, allowed: ''")
    if not isinstance(path, str) or path in ("", ".", "..") or "/" in path:
        raise BertError(f"{MODULES}: path {short(path)}, allowed: a folder's name")
    own_file(folder, f"{path}/config.json")
    return path


def _pooling(values, where):
    """Read the pooling's config.json, in its old or its new form."""
    for key in values.keys() - OLD_KEYS.keys() - {"pooling_mode"}:
        near = did_you_mean(key, [*OLD_KEYS], VERY_NEAR)
        if near or (key.startswith("pooling_mode") and values[key]):
            raise BertError(f"{where} has the key {short(key)}, no known pooling{near}")
    modes = values.get("pooling_mode")
    if modes is None:
        asked = {key: values[key] for key in OLD_KEYS if key in values}
        for key, value in asked.items():
            if type(value) is not bool:
                raise BertError(
                    f"{where}: {key} = {short(value)}, allowed: true, false"
                )
        modes = [OLD_KEYS[key] for key in asked if asked[key]]
        if asked and not modes:
            raise BertError(f"{where}: none of {', '.join(asked)} is true")
        modes = modes or ["mean"]
    modes = modes if isinstance(modes, list) else [modes]
    try:
        check_pooling("+".join(map(str, modes)))
    except BertError as error:
        raise BertError(f"{where}: {error}") from None
    return "+".join(modes)


def note_config(values, config, notes):
    """Note the defaults that were taken, and the keys that are ignored."""
    fields = [n for n in BertConfig.__dataclass_fields__ if n not in OPTIONAL]
    notes["defaults"] += [
        f"{name} = {getattr(config, name)!r}" for name in fields if name not in values
    ]
    known = {*fields, *CHECKED, *OPTIONAL}
    notes["ignored"] += [f"config.json {k}" for k in values if k not in known]


def note_labels(values, config, parts, notes):
    """Note the defaults that heads with labels take."""
    if {"sequence", "token"} & set(parts) and not any(map(values.get, LABEL_KEYS)):
        notes["defaults"].append(f"labels = {config.labels}")
    if "sequence" in parts and values.get("problem_type") is None:
        notes["defaults"].append(f"problem_type = {config.problem!r}")


def refuse_misspelled(folder):
    """Refuse a file that is not read, but almost has the name of one that is."""
    absent = [n for n in (*KNOWN, INDEX) if not os.path.lexists(folder / n)]
    for name in few_names(folder):
        near = "" if name in KNOWN else did_you_mean(name, absent, VERY_NEAR)
        if near:
            raise BertError(f"{name} is no file of a model{near} Rename or remove it")


def note_other_files(folder, weights, notes):
    """Note the files and folders that are not read, except hidden ones."""
    used = {*KNOWN, *weights} | ({INDEX} if WEIGHTS not in weights else set())
    names = [name for name in few_names(folder) if name not in used | {"2_Normalize"}]
    marks = ["/" if os.path.isdir(folder / name) else "" for name in names]
    notes["ignored"] += [n + mark for n, mark in zip(names, marks) if n[0] != "."]
