"""The table of planted faults fits the source as it is."""

import pytest
from negative_controls import ROOT, edited, own_tests
from planted_faults import EDITS

JOBS = [(module, *edit) for module, edits in EDITS.items() for edit in edits]


@pytest.mark.parametrize("module, fault, old, new", JOBS)
def test_the_edit_applies_and_compiles(module, fault, old, new):
    source = edited(module, old, new)
    assert new != old and compile(source, module, "exec")


def test_the_table_is_long_and_its_test_files_exist():
    assert len(JOBS) >= 35
    names = {name for module in EDITS for name in own_tests(module)}
    assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in names)
