"""Run a case and hold what happens against what must happen."""

import shutil
from dataclasses import replace

import numpy as np

from bert_np import BertConfig, BertError
from bert_np.files.checkpoint import load_checkpoint
from bert_np.tree import leaves
from hostile import arguments, checkpoints, configs, vocabularies, weights
from hostile.base import TINY, WEIGHTS

BASE_CONFIG = BertConfig.from_json(TINY / "config.json")
KINDS = {
    "weight files": weights.KINDS,
    "checkpoints": checkpoints.KINDS,
    "vocabularies": vocabularies.KINDS,
    "config files": configs.KINDS,
    "arguments": arguments.KINDS,
}


def cases(kind):
    return [case for group in KINDS[kind].values() for case in group]


def copy_base(folder, *names):
    for name in names:
        shutil.copyfile(TINY / name, folder / name)


def lay_out(kind, case, folder):
    """Write the files of a case into an empty folder."""
    if kind == "weight files":
        copy_base(folder, "config.json")
        (folder / WEIGHTS).write_bytes(case.given)
    elif kind == "config files":
        copy_base(folder, WEIGHTS)
        (folder / "config.json").write_bytes(case.given)
    elif kind == "vocabularies":
        copy_base(folder, "config.json", WEIGHTS)
        for name, content in case.given.items():
            (folder / name).write_bytes(content)
    else:
        case.given(folder)


def call_of(kind, case, folder):
    """The call that a case makes, its files written."""
    if kind == "arguments":
        return case.given
    lay_out(kind, case, folder)
    return lambda: load_checkpoint(folder)


def attempt(call):
    """(result, None) or (None, the message); no other exception passes."""
    try:
        return call(), None
    except BertError as error:
        assert type(error) is BertError
        return None, str(error)


def assert_outcome(kind, case, folder):
    """The outcome is the one expected; return "accepted" or "refused"."""
    result, message = attempt(call_of(kind, case, folder))
    if case.words:
        assert message is not None, "accepted in silence"
        assert len(message) <= 300
        assert [word for word in case.words if word not in message] == [], message
        return "refused"
    assert message is None, message
    CHECKS[kind](result, case)
    return "accepted"


def assert_same_values(result, case):
    """Every array has the expected place, dtype and values."""
    found, expected = dict(leaves(result[0])), case.values()
    assert found.keys() == expected.keys()
    for path, array in found.items():
        assert array.dtype == expected[path].dtype, path
        np.testing.assert_array_equal(array, expected[path], err_msg=path)


def assert_same_tokenizer(result, case):
    assert result[2] == (case.values() if case.values else None)


def assert_same_config(result, case):
    assert result[1] == replace(BASE_CONFIG, **case.values)


def assert_right(result, case):
    assert case.values(result)


CHECKS = {
    "weight files": assert_same_values,
    "checkpoints": assert_same_values,
    "vocabularies": assert_same_tokenizer,
    "config files": assert_same_config,
    "arguments": assert_right,
}
