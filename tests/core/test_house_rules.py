"""The house rules, held against the source."""

import ast
from collections import defaultdict
from itertools import chain
from pathlib import Path

import pytest

import bert_np

PACKAGE = Path(bert_np.__file__).parent
TESTS = Path(__file__).parents[1]
SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
TEST_CODE = {path: ast.parse(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
TEST_FILES = [path for path in TEST_CODE if path.name.startswith("test_")]
MODULES = sorted(SOURCES.keys() - {PACKAGE / "__init__.py"})  # all but the front door

# From bottom to top: a module imports from lower lines, or from its own folder.
STACK = """
errors tree
checked trace added_tokens
functional tokenizer
config attention comparison
parameters inputs
heads
model minimal
files fast
tasks analysis
plotting
training
course
web
"""
RANKS = {
    name: rank for rank, line in enumerate(STACK.split("\n")) for name in line.split()
}
# Public names that more than one module may give to a function.
SHARED_NAMES = {"main", "save", "tag"}


def room(path):
    """The name in STACK that a source file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree):
    """The modules of bert_np that a module imports, in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("bert_np."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_go_down_the_stack(path):
    own = room(path)
    for name in imported_rooms(SOURCES[path]):
        inside = name == own and path.parent != PACKAGE
        assert inside or RANKS[name] < RANKS[own], f"{own} imports {name}"


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def statements(function):
    """How many statements a function has, docstring not counted."""
    nodes = chain.from_iterable(map(ast.walk, function.body))
    count = sum(isinstance(node, ast.stmt) for node in nodes)
    return count - (ast.get_docstring(function) is not None)


def test_functions_have_at_most_25_statements():
    every = {f"{p.name}: {f.name}": f for p, t in SOURCES.items() for f in functions(t)}
    assert [name for name, f in every.items() if statements(f) > 25] == []


def public(tree):
    """The functions and classes that a module offers, and public methods."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def is_shown_bare(path, node):
    """Code that students read beside its explanation: minimal, solutions."""
    return path.stem == "minimal" or node.name.startswith("my_")


def test_everything_public_has_a_docstring_of_at_most_75_columns():
    wrong = [f"{path.name}" for path in MODULES if not ast.get_docstring(SOURCES[path])]
    for path, tree in SOURCES.items():
        for node in public(tree):
            lines = (ast.get_docstring(node) or "").splitlines()
            missing = not lines and not is_shown_bare(path, node)
            if missing or any(len(line) > 75 and ">>>" not in line for line in lines):
                wrong.append(f"{path.name}: {node.name}")
    assert wrong == []


def test_no_two_public_functions_share_a_name():
    homes = defaultdict(list)
    for path, tree in SOURCES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not is_shown_bare(path, node):
                homes[node.name].append(path.name)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    private = {name for name in twice if name.startswith("_")}
    assert twice.keys() - private - SHARED_NAMES == set(), twice


# ----------------------------------------------------------- the tests


def called(function):
    """The names that a function calls; "assert_" where it asserts itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield "assert_"
        elif isinstance(node, ast.Call):
            yield getattr(node.func, "attr", None) or getattr(node.func, "id", "")


def asserting_names():
    """The functions of all tests and their helpers that assert something."""
    names, calls = {"raises", "warns"}, defaultdict(set)
    for function in chain.from_iterable(map(functions, TEST_CODE.values())):
        calls[function.name] |= set(called(function))
    names |= {n for n in chain(*calls.values()) if n.startswith("assert_")}
    for _ in range(3):  # helpers of helpers
        names |= {name for name in calls if calls[name] & names}
    return names


def test_every_test_asserts_and_has_a_name_of_its_own():
    asserting = asserting_names()
    for path in TEST_FILES:
        names = [node.name for node in functions(TEST_CODE[path])]
        tests = [name for name in names if name.startswith("test_")]
        assert set(tests) <= asserting, path.name
        assert len(set(tests)) == len(tests), path.name
