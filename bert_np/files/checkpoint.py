"""From files to parameters and back, in HuggingFace's layout.

This is the only module that knows HuggingFace's tensor names, and the
only place where a linear weight is transposed: their files store weights
as (out, in), our tree as (in, out).

Two faults cannot be detected by any reader, because every shape fits: a
square matrix that was stored transposed, and a wrong number of heads that
still divides the hidden size.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_np.config import BertConfig, read_json
from bert_np.errors import BertError, short
from bert_np.files.notes import MODULES as MODULES_FILE
from bert_np.files.notes import (
    find_pooling,
    note_config,
    note_labels,
    note_other_files,
    read_pooling,
    refuse_misspelled,
)
from bert_np.files.vocabulary import (
    TOKENIZER_FILES,
    check_agrees,
    load_tokenizer,
    tokenizer_texts,
)
from bert_np.files.weights import (
    FLOATS,
    INDEX,
    INTEGERS,
    WEIGHTS,
    check_folder,
    own_file,
    read_headers,
    read_tensors,
    show,
)
from bert_np.parameters import (
    HEADS,
    PRETRAINING_HEADS,
    check_params,
    parameter_shapes,
)
from bert_np.tokenizer import Tokenizer
from bert_np.tree import leaves, map_leaves

# ---------------------------------------------------------------- names
# The place of an array in our tree -> HuggingFace's module; {} is the layer.
MODULES = {
    "embeddings": "embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "layers.{}.attention.query": "encoder.layer.{}.attention.self.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.self.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.self.value",
    "layers.{}.attention.output": "encoder.layer.{}.attention.output.dense",
    "layers.{}.attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers.{}.ffn.inner": "encoder.layer.{}.intermediate.dense",
    "layers.{}.ffn.outer": "encoder.layer.{}.output.dense",
    "layers.{}.ffn_norm": "encoder.layer.{}.output.LayerNorm",
    "pooler": "pooler.dense",
    "mlm": "cls.predictions",
    "mlm.transform": "cls.predictions.transform.dense",
    "mlm.norm": "cls.predictions.transform.LayerNorm",
    "nsp": "cls.seq_relationship",
    "sequence": "classifier",
    "token": "classifier",
    "span": "qa_outputs",
}
# The heads for tasks, and the class of each: two have the same tensor names.
TASKS = {
    "sequence": "BertForSequenceClassification",
    "token": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
}
# The array's own name -> HuggingFace's.
ARRAYS = {
    "word": "word_embeddings.weight",
    "position": "position_embeddings.weight",
    "segment": "token_type_embeddings.weight",
    "W": "weight",
    "b": "bias",
    "gamma": "weight",
    "beta": "bias",
    "bias": "bias",
    "decoder": "decoder.weight",
}
# Second copies that some files contain; each must equal the array named. If
# the decoder is not tied, it is an array of its own, and its bias is used.
DECODER, DECODER_BIAS = (f"cls.predictions.decoder.{n}" for n in ("weight", "bias"))
COPIES = {DECODER: "embeddings.word", DECODER_BIAS: "mlm.bias"}
POSITION_IDS = "embeddings.position_ids"
OLD_NORM = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
BODY = re.compile(r"(.*?)((?:embeddings|encoder\.layer|pooler\.dense)\..*)", re.DOTALL)
OTHER_HEADS = ("classifier.", "qa_outputs.")
UNUSED = ("cls.", *OTHER_HEADS)
# What the report says about files other than the weights.
NOTES = ("unused", "no tokenizer", "overruled", "defaults", "ignored")


def huggingface_name(path):
    """Return HuggingFace's name of an array, without the prefix "bert.".

    >>> huggingface_name("layers.3.ffn.inner.W")
    'encoder.layer.3.intermediate.dense.weight'
    """
    module, array = re.sub("[0-9]+", "{}", path).rsplit(".", 1)
    layer = re.findall("[0-9]+", path)
    return f"{MODULES[module]}.{ARRAYS[array]}".format(*layer)


class Pretrained(NamedTuple):
    """A loaded model, to be unpacked, or passed on as ``*model``."""

    params: dict  # the tree of parameter_shapes, read-only arrays
    config: BertConfig
    tokenizer: Tokenizer | None  # None without a WordPiece vocabulary


# ----------------------------------------------------- into the tree
def load_checkpoint(folder, *, allow_nonfinite=False, report=None):
    """Read a model and its tokenizer from a folder in HuggingFace's layout.

    W = weightᵀ, copied to C order, of shape (in, out). The parameters are
    float64 if every tensor in the files is float64, and float32 otherwise.

    Parameters
    ----------
    folder : str or Path
        Contains config.json, model.safetensors (or shards and their
        index) and, for the tokenizer, vocab.txt or tokenizer.json. Links
        may lead only to files in the folder, or in the model's own part
        of the HuggingFace cache.
    allow_nonfinite : bool
        Whether NaN and infinity are accepted among the values.
    report : dict, optional
        A dict to fill with lists of str under the keys "files",
        "renamed", "converted", "tied", "dropped", "unused", "absent",
        "no tokenizer", "overruled", "defaults" and "ignored". Print it with
        format_report.

    Returns
    -------
    Pretrained
        (params, config, tokenizer). params has "pooler", "mlm", "nsp",
        "sequence", "token" and "span" only if the files contain them;
        tokenizer is None if the folder has no WordPiece vocabulary.
    """
    if type(allow_nonfinite) is not bool:
        found = short(allow_nonfinite)
        raise BertError(f"allow_nonfinite = {found}, allowed: True or False")
    if report is not None and not isinstance(report, dict):
        raise BertError(f"report is {type(report).__name__}, allowed: a dict or None")
    folder = check_folder(folder)
    values, config, tokenizer, notes = _load_texts(folder)
    headers = read_headers(folder)
    found = {name: header[name] for header in headers.values() for name in header}
    tasks = _tasks(values, config, found)
    places, shapes = _place(found, config, tasks)
    dtype = _check_tensors(found, places, dict(leaves(shapes)), config)
    arrays = _read_arrays(folder, headers, places, dtype, allow_nonfinite)
    if report is not None:
        tensors = _report(headers, found, places, shapes, dtype)
        tensors["absent"] = _absent(values, tasks, found, shapes)
        note_labels(values, config, shapes, notes)
        note_other_files(folder, headers, notes)
        notes["unused"] = tensors["unused"] + notes["unused"]
        report.update(tensors | notes)
    params = map_leaves(lambda path, _: arrays[path], shapes)
    return Pretrained(params, config, tokenizer)


def _read_arrays(folder, headers, places, dtype, allow_nonfinite):
    """Read the arrays of the tree: {path: array}."""
    arrays = {}
    for file, header in headers.items():
        for name, data in read_tensors(folder / file, header):
            if name in places:
                array = _to_array(data, *header[name], places[name], dtype)
                _store(arrays, name, places[name], array, allow_nonfinite)
    return arrays


def _load_texts(folder):
    """Read all files but the weights: (values, config, tokenizer, notes).

    The values are those of config.json, unchanged.
    """
    values = read_json(own_file(folder, "config.json"))
    config, notes = BertConfig.from_dict(values), {word: [] for word in NOTES}
    refuse_misspelled(folder)
    config = replace(config, pooling=read_pooling(folder, config))
    note_config(values, config, notes)
    tokenizer = load_tokenizer(folder, values, notes)
    if tokenizer is not None:
        check_agrees(tokenizer, config)
    return values, config, tokenizer, notes


def _tasks(values, config, found):
    """Say which heads "classifier" and "qa_outputs" are, if they are there.

    The classes in config.json say so. Where it names none, "classifier" is
    the token head if there is no pooler, which the sequence head needs;
    beside a pooler it may be either, and is left unused.
    """
    classes = values.get("architectures")
    if not classes:
        pooler = any("pooler.dense." in name for name in found)
        tasks = ["span"] if pooler else ["token", "span"]
    elif isinstance(classes, list):
        tasks = [task for task, kind in TASKS.items() if kind in classes]
    else:
        tasks = [task for task, kind in TASKS.items() if kind == classes]
    if config.classifier_pooling == "mean":
        tasks = ["sequence", *tasks]  # no class of HuggingFace's has it
    both = {"sequence", "token"} <= set(tasks)
    return [task for task in tasks if task == "span" or not both]


def _absent(values, tasks, found, shapes):
    """List the parts that the files lack."""
    absent = [part for part in ("pooler", *PRETRAINING_HEADS) if part not in shapes]
    if values.get("architectures"):
        absent += [task for task in tasks if task not in shapes]
    elif "classifier.weight" in found and "token" not in shapes:
        absent.append("sequence or token (no architectures to tell)")
    return absent


def _place(found, config, tasks):
    """Find the place of each tensor: ({name: path}, the tree of shapes)."""
    names = _standard_names(found)
    layers = {name.split(".")[2] for name in names if name.startswith("encoder.layer.")}
    # However many layers config.json asks for, one too many shows what is missing.
    count = min(config.num_hidden_layers, len(layers) + 1)
    fewer = replace(config, num_hidden_layers=count)
    shapes = parameter_shapes(fewer, heads=[*PRETRAINING_HEADS, *tasks])
    paths = COPIES | {POSITION_IDS: POSITION_IDS}
    paths |= {huggingface_name(path): path for path, _ in leaves(shapes)}
    if not config.tie_word_embeddings and DECODER_BIAS in names:
        del paths[huggingface_name("mlm.bias")]
    places = {name: paths[std] for std, name in names.items() if std in paths}
    parts = {path.split(".")[0] for path in places.values()} | {"embeddings", "layers"}
    shapes = {part: shape for part, shape in shapes.items() if part in parts}
    _require_complete(found, places, shapes, len(layers), config.num_hidden_layers)
    return places, shapes


def _standard_names(found):
    """Return {the name that HuggingFace uses today: the name in the file}."""
    names, prefixes, spellings = {}, {}, {}
    for name in found:
        match = None if name.startswith(UNUSED) else BODY.fullmatch(name)
        standard = match[2] if match else name
        if match:
            prefixes[match[1]] = name
        for old, new in OLD_NORM.items():
            if standard.endswith((old, new)) and not name.startswith(OTHER_HEADS):
                spellings[standard.endswith(old)] = name
                standard = standard.removesuffix(old).removesuffix(new) + new
        if standard in names:
            both = show([names[standard], name])
            raise BertError(f"tensors {both} are two spellings of one, allowed: one")
        names[standard] = name
    _check_naming(prefixes, spellings)
    return names


def _check_naming(prefixes, spellings):
    """Check that one prefix and one spelling of LayerNorm are used."""
    for prefix, name in prefixes.items():
        if prefix not in ("", "bert."):
            raise BertError(
                f"prefix {prefix!r:.60} of tensor {show([name])}, allowed: 'bert.' or "
                "none; rename the tensors"
            )
    for kind in (prefixes, spellings):
        if len(kind) > 1:
            raise BertError(
                f"tensors {show(kind.values())} mix two ways of naming, allowed: one "
                "('bert.' or no prefix; LayerNorm.gamma/beta or weight/bias)"
            )


def _require_complete(found, places, shapes, layers, wanted):
    """Check that every leaf has a tensor and every tensor is known."""
    why, hint = "", ": another architecture than BERT"
    if layers != wanted:
        why, hint = f"config.json has {wanted} layers, the weights {layers}; ", ""
    unknown = [n for n in found if n not in places and not n.startswith(UNUSED)]
    if unknown:
        raise BertError(f"{why}unknown tensors {show(unknown)}{hint}")
    filled = set(places.values())
    missing = [huggingface_name(p) for p, _ in leaves(shapes) if p not in filled]
    if missing:
        raise BertError(f"{why}missing tensors {show(missing)}")


def _check_tensors(found, places, shapes, config):
    """Check dtypes and shapes; return the dtype of the parameters."""
    P, kinds = config.max_position_embeddings, set()
    for name, path in places.items():
        kind, shape = found[name]
        if path == POSITION_IDS:
            dtypes, wanted = INTEGERS, [(1, P), (P,)]
        else:
            dtypes, wanted = FLOATS, [shapes[path]]
            kinds.add(kind)
        if path.endswith(".W"):
            wanted = [shapes[path][::-1]]  # (out, in)
        if kind not in dtypes:
            allowed = ", ".join(dtypes)
            raise BertError(f"{show([name])} is {kind!r:.20}, allowed: {allowed}")
        if shape not in wanted:
            turned = len(shape) == 2 and shape[::-1] in wanted
            hint = "; it looks transposed (TensorFlow layout?)" if turned else ""
            if path.startswith(("sequence", "token")):
                hint = f" ({len(config.labels)} labels)"
            raise BertError(
                f"{show([name])} has shape {str(shape):.60}, config.json asks for "
                f"{wanted[0]}{hint}"
            )
    return np.float64 if kinds == {"F64"} else np.float32


def _to_array(data, kind, shape, path, dtype):
    """Turn the bytes of one tensor into the array of our tree."""
    array = np.frombuffer(data, (FLOATS | INTEGERS)[kind]).reshape(shape)
    if kind in INTEGERS:
        return array
    if kind == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):  # what overflows to inf is refused later
        if path.endswith(".W"):
            return np.array(array.T, dtype, order="C")  # (in, out)
        return np.asarray(array, dtype)


def _store(arrays, name, path, array, allow_nonfinite):
    """Put an array in its place, or compare it with the one that is there."""
    if path == POSITION_IDS:
        if not np.array_equal(array.ravel(), np.arange(array.size)):
            raise BertError(f"{show([name])} has other values than BERT's 0, 1, 2, ...")
        return
    if not allow_nonfinite and not np.isfinite(array).all():
        raise BertError(
            f"{show([name])} contains NaN or infinity, allowed: finite numbers "
            "(or pass allow_nonfinite=True)"
        )
    if path not in arrays:
        array.flags.writeable = False
        arrays[path] = array
    elif not np.array_equal(arrays[path], array, equal_nan=True):
        copy = next(copy for copy, original in COPIES.items() if original == path)
        raise BertError(
            f"{copy} differs from {huggingface_name(path)}, but the two are tied; if "
            'the head has a matrix of its own, set "tie_word_embeddings": false in '
            "config.json"
        )


# -------------------------------------------------------------- reports
def _report(headers, found, places, shapes, dtype):
    """List what happened to the tensors on their way into the tree."""
    target = np.dtype(dtype)
    counts = Counter(places.values())
    copies = [n for n in places if n in COPIES and counts[COPIES[n]] > 1]
    old = [n for n in places if n.endswith(tuple(OLD_NORM)) or n in COPIES]
    floats = {n: path for n, path in places.items() if path != POSITION_IDS}
    return {
        "files": list(headers),
        "renamed": [f"{n} -> {places[n]}" for n in old if n not in copies],
        "converted": [
            f"{n}: {found[n][0]} -> {target}"
            for n in floats
            if found[n][0] != f"F{8 * target.itemsize}"
        ],
        "tied": [f"{n} = {places[n]}" for n in copies],
        "dropped": [n for n in places if n not in floats],
        "unused": [n for n in found if n not in places],
    }


def format_report(report):
    """Turn the report of load_checkpoint into a few lines of text."""
    lines = [f"{word} ({len(n)}): {show(n)}" for word, n in report.items() if n]
    return "\n".join(lines)


# --------------------------------------------------------------- saving
PARTIAL = ".bert_np-partial-"  # begins the name of every temporary folder
ONE_DAY = 86400  # seconds; no run takes so long, so an older folder is abandoned


def save_pretrained(folder, params, config, tokenizer=None):
    """Write a folder that load_checkpoint and HuggingFace's library read.

    weight = Wᵀ; every other array is stored as it is, and float64 stays
    float64. All files are written to a temporary folder and then renamed,
    so that no file is ever half-written. If only the weights change, that
    takes a single step. If other files change too, the old weights are
    moved away first and the new ones put in place last, so that a process
    that is killed in between leaves a folder that load_checkpoint refuses,
    and never new weights beside an old vocabulary. A folder in which
    another model's tokenizer or shards would be left is refused.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    params : dict
        The tree of parameter_shapes. Pooler and heads may be absent; in
        place of a missing pooler HuggingFace's BertModel gets random
        numbers. "sequence" and "token" have the same name in its files,
        so that one folder has room for one of them.
    config : BertConfig
        If the only head for a task is the span head, labels are left
        out unless there are two, as HuggingFace's class requires.
    tokenizer : Tokenizer, optional

    Raises
    ------
    BertError
        If an argument is wrong or a file cannot be written. The folder is
        then as it was before.
    """
    check_params(params, config)
    texts = {"config.json": _config_text(params, config)}
    if tokenizer is not None:
        texts = tokenizer_texts(tokenizer, config) | texts
    folder = _make_folder(folder)
    stale = {*TOKENIZER_FILES, INDEX}.difference(texts)
    for name in sorted(stale):
        if os.path.lexists(folder / name):
            raise BertError(f"{name} of another model is in {str(folder)!r}; remove it")
    place, asked = find_pooling(folder)
    if asked not in (None, config.pooling):
        places = [n for n in (place, MODULES_FILE) if os.path.lexists(folder / n)]
        raise BertError(
            f"config.pooling = {config.pooling!r}, but the pooling of another model in "
            f"{str(folder)!r} is {asked!r}; remove {' and '.join(places)}"
        )
    _write_all(folder, params, texts)


def _config_text(params, config):
    """Return the text of config.json, with the classes that have these heads."""
    heads = tuple(part for part in PRETRAINING_HEADS if part in params)
    kind = {
        (): "BertModel",
        ("mlm",): "BertForMaskedLM",
        ("nsp",): "BertForNextSentencePrediction",
        ("mlm", "nsp"): "BertForPreTraining",
    }[heads]
    tasks = [task for task in TASKS if task in params]
    if {"sequence", "token"} <= set(tasks):
        raise BertError(
            "params has 'sequence' and 'token', but a folder has room for one of them: "
            "both are named 'classifier' in HuggingFace's files"
        )
    if tasks == ["span"] and len(config.labels) != 2:
        config = replace(config, labels=BertConfig.labels)
    if config.classifier_pooling == "mean":  # HuggingFace's class has the pooler
        tasks = [task for task in tasks if task != "sequence"]
    kinds = [TASKS[task] for task in tasks] or [kind]
    dtype = params["embeddings"]["word"].dtype.newbyteorder("=")
    values = config.to_dict() | {"architectures": kinds, "torch_dtype": str(dtype)}
    return json.dumps(values, indent=2) + "\n"


def _make_folder(folder):
    """Create a folder if it does not exist, and return its Path."""
    if isinstance(folder, (str, Path)):
        try:
            os.makedirs(folder, exist_ok=True)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BertError(f"cannot create folder {str(folder)!r}: {why}") from None
    return check_folder(folder)


def _write_all(folder, params, texts):
    """Write every file to a temporary folder, then move them into place."""
    from safetensors import SafetensorError

    try:
        with tempfile.TemporaryDirectory(
            prefix=PARTIAL, dir=folder, ignore_cleanup_errors=True
        ) as workspace:
            new, old = Path(workspace, "new"), Path(workspace, "old")
            new.mkdir()
            old.mkdir()
            for name, text in texts.items():
                (new / name).write_bytes(text.encode("utf-8"))
            _write_weights(new / WEIGHTS, params)
            shutil.copymode(new / "config.json", new / WEIGHTS)
            changed = [n for n in texts if not _holds(folder / n, texts[n])]
            _move_all(_moves(folder, changed, new, old))
    except (OSError, SafetensorError) as error:
        raise BertError(f"{str(folder)!r} cannot be written: {error}") from None
    remove_leftovers(folder, f"{PARTIAL}*")


def _holds(path, text):
    """Say whether a file contains exactly this text."""
    try:
        return path.read_bytes() == text.encode("utf-8")
    except OSError:
        return False


def _moves(folder, changed, new, old):
    """List the renames (from, to) in order: old files away, new ones in."""
    files = [WEIGHTS, *changed] if changed else []
    out = [(folder / n, old / n) for n in files if os.path.isfile(folder / n)]
    return out + [(new / n, folder / n) for n in (*changed, WEIGHTS)]


def _move_all(moves):
    """Rename one file after the other; undo them all if one fails."""
    done = []
    try:
        for source, goal in moves:
            os.replace(source, goal)
            done.append((source, goal))
    except BaseException:
        for source, goal in reversed(done):
            with suppress(OSError):
                os.replace(goal, source)
        raise


def remove_leftovers(folder, pattern):
    """Remove what killed processes left behind, once it is a day old."""
    for path in folder.glob(pattern):
        with suppress(OSError):  # another process may have removed it
            if time.time() - path.stat().st_mtime > ONE_DAY:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_weights(path, params):
    """Write the parameters as a safetensors file with HuggingFace's names."""
    from safetensors.numpy import save_file

    tensors = {}
    for place, array in leaves(params):
        prefix = "" if place.startswith(HEADS) else "bert."
        array = array.T if place.endswith(".W") else array
        # save_file writes wrong numbers if an array is not contiguous
        # (safetensors#825) or, in old versions, not little-endian.
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        tensors[prefix + huggingface_name(place)] = array
    if DECODER in tensors:
        tensors[DECODER_BIAS] = tensors[huggingface_name("mlm.bias")].copy()
    save_file(tensors, path, metadata={"format": "pt"})
