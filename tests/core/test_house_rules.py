"""The house rules, held against the source."""

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from reference import CONFIG, INPUT_IDS, SEGMENT_IDS, random_params

import bert_np
from bert_np import attention, encoder_layer, functional, heads
from bert_np.inputs import check_inputs
from bert_np.model import add_and_norm
from bert_np.tree import leaves

PACKAGE = Path(bert_np.__file__).parent
TESTS = Path(__file__).parent
SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
TEST_FILES = {path: ast.parse(path.read_text("utf-8")) for path in TESTS.glob("*.py")}
MODULES = sorted(SOURCES.keys() - {PACKAGE / "__init__.py"})  # all but the front door

# From bottom to top: a module imports from lower lines only.
STACK = """
errors
functional config tokenizer
parameters
mistakes
trace
embeddings attention feed_forward pooler heads
encoder weight_files
checkpoint
hub
model pretrained
fast
tasks analysis
plotting course training
"""
RANKS = {
    name: rank for rank, line in enumerate(STACK.split("\n")) for name in line.split()
}


def room(path):
    """The name in STACK that a source file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree):
    """The modules of bert_np that a module imports, at any depth."""
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


def test_import_loads_numpy_and_nothing_heavier():
    code = (
        "import sys, numpy; before = set(sys.modules); import bert_np; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["bert_np"]


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def code_lines(function, lines):
    """The body's lines without docstring, comments and blank lines."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if not body:
        return 0
    lines = [line.strip() for line in lines[body[0].lineno - 1 : body[-1].end_lineno]]
    return sum(line != "" and line[0] != "#" for line in lines)


def test_functions_have_at_most_25_code_lines():
    long = []
    for path, tree in SOURCES.items():
        lines = path.read_text("utf-8").splitlines()
        long += [
            f"{path.name}: {function.name}"
            for function in functions(tree)
            if code_lines(function, lines) > 25
        ]
    assert long == []


def public(tree):
    """The functions and classes that a module offers, and public methods."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (
                    n
                    for n in node.body
                    if isinstance(n, kinds) and not n.name.startswith("_")
                )


def is_solution(node):
    """Solutions are shown to students as they are: my_softmax, ..."""
    return getattr(node, "name", "").startswith("my_")


def test_everything_public_has_a_docstring():
    missing = [
        f"{path.name}: {getattr(node, 'name', 'the module')}"
        for path in MODULES
        for node in [SOURCES[path], *public(SOURCES[path])]
        if not ast.get_docstring(node) and not is_solution(node)
    ]
    assert missing == []


def test_docstrings_have_at_most_75_columns():
    wide = [
        f"{path.name}: {line}"
        for path, tree in SOURCES.items()
        for node in [tree, *public(tree)]
        for line in (ast.get_docstring(node) or "").splitlines()
        if len(line) > 75 and ">>>" not in line
    ]
    assert wide == []


def test_lines_have_at_most_88_columns():
    wide = [
        f"{path.name}:{number}"
        for path in [*SOURCES, *TEST_FILES]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > 88
    ]
    assert wide == []


def test_no_module_is_called_utils():
    assert not [path for path in SOURCES if path.stem in ("utils", "util", "helpers")]


# ----------------------------------------------------------- the tests


def called(function):
    """The names that a function calls; "assert_" where it asserts itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield "assert_"
        elif isinstance(node, ast.Call):
            yield getattr(node.func, "attr", None) or getattr(node.func, "id", "")


def test_every_test_asserts():
    silent = []
    for path, tree in TEST_FILES.items():
        calls = {function.name: set(called(function)) for function in functions(tree)}
        asserting = {"raises"} | {
            name
            for names in calls.values()
            for name in names
            if name.startswith("assert_")
        }
        for _ in range(3):  # helpers of helpers
            asserting |= {name for name in calls if calls[name] & asserting}
        silent += [
            f"{path.name}: {name}"
            for name in calls.keys() - asserting
            if name.startswith("test_")
        ]
    assert silent == []


def test_no_name_is_defined_twice():
    for path, tree in [*TEST_FILES.items(), *SOURCES.items()]:
        names = Counter(node.name for node in tree.body if hasattr(node, "name"))
        assert not [name for name, n in names.items() if n > 1], path.name


# ------------------------------------------------- the documented shapes

SIZES = {"B": 2, "T": 5, "H": 21, "A": 3, "D": 7, "F": 11, "V": 23, "2": 2}
PARAMS = random_params()
LAYER = PARAMS["layers"][0]
X, HEADS = np.ones((2, 5, 21)), np.ones((2, 3, 5, 7))
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
CALLS = {
    functional.erf: (X,),
    functional.softmax: (X, -1, np.empty_like(X)),
    **{
        function: (X, np.empty_like(X))
        for function in (functional.gelu, functional.gelu_tanh, functional.relu)
    },
    functional.linear: (X, np.ones((21, 11)), np.ones(11)),
    functional.layer_norm: (X, np.ones(21), np.ones(21), 1e-12),
    functional.dropout: (X, np.ones(X.shape)),
    bert_np.embed: (INPUT_IDS, SEGMENT_IDS, PARAMS["embeddings"], CONFIG),
    attention.create_attention_mask: (INPUT_IDS, 0),
    attention.split_heads: (X, 3),
    attention.merge_heads: (HEADS,),
    attention.scaled_dot_product: (HEADS, HEADS, HEADS),
    attention.self_attention: (X, LAYER["attention"], MASK, CONFIG),
    bert_np.feed_forward: (X, LAYER["ffn"], CONFIG),
    add_and_norm: (X, X, LAYER["ffn_norm"], CONFIG),
    encoder_layer: (X, LAYER, MASK, CONFIG),
    bert_np.encoder: (X, PARAMS["layers"], MASK, CONFIG),
    bert_np.pool: (X, PARAMS["pooler"]),
    heads.masked_lm_logits: (X, PARAMS, CONFIG),
    heads.next_sentence_logits: (X[:, 0], PARAMS),
    check_inputs: (INPUT_IDS, SEGMENT_IDS, MASK, CONFIG),
    bert_np.bert: (INPUT_IDS, PARAMS, CONFIG),
}
BERT_OPTIONS = {"segment_ids": SEGMENT_IDS, "attention_mask": MASK}
CORE = [
    f"bert_np.{name}"
    for name in (
        "functional",
        "embeddings",
        "attention",
        "feed_forward",
        "encoder",
        "pooler",
        "heads",
        "model",
        "parameters",
    )
]


def sections(docstring):
    """{"Parameters": text, "Returns": text, ...} of a docstring."""
    parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def documented_shapes(text):
    """(names, number of arrays, letters) for each line with a shape."""
    pattern = r"^ *(?:(\w[\w, ]*) : )?(list of L )?ndarrays? of shape \((.*?)\)"
    for names, many, letters in re.findall(pattern, text, flags=re.MULTILINE):
        yield names.split(", ") if names else [None], bool(many), letters


def assert_shape(array, letters, sizes, where):
    """The shape has these letters; new ones get the size found."""
    shape, letters = array.shape, [x for x in letters.replace(" ", "").split(",") if x]
    if letters and letters[0] == "...":
        n = len(shape) - len(letters) + 1
        assert sizes.setdefault("...", shape[:n]) == shape[:n], where
        shape, letters = shape[n:], letters[1:]
    assert len(shape) == len(letters), where
    for letter, size in zip(letters, shape):
        assert sizes.setdefault(letter, size) == size, (where, letter)


def results(function, found, names):
    """{name: result} for what a function returned."""
    if isinstance(found, dict):
        return found
    found = found if isinstance(found, tuple) else (found,)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_arguments_and_results_have_the_documented_shapes(function):
    given = BERT_OPTIONS if function is bert_np.bert else {}
    arguments = inspect.signature(function).bind(*CALLS[function], **given).arguments
    doc, sizes = sections(function.__doc__), dict(SIZES)
    for names, _, letters in documented_shapes(doc["Parameters"]):
        for name in names:
            assert_shape(arguments[name], letters, sizes, name)
    documented = list(documented_shapes(doc["Returns"]))
    names = [name for names, _, _ in documented for name in names]
    found = results(function, function(*CALLS[function], **given), names)
    assert documented and found.keys() == set(names)
    for name, (_, many, letters) in [(n, d) for d in documented for n in d[0]]:
        arrays = found[name] if many else [found[name]]
        assert len(arrays) == (CONFIG.num_hidden_layers if many else 1)
        for array in arrays:
            assert_shape(array, letters, sizes, name)


def test_every_function_of_the_core_with_a_documented_shape_is_called():
    documented = {
        function
        for module in CORE
        for function in vars(import_module(module)).values()
        if inspect.isfunction(function)
        and function.__module__ == module
        and any(documented_shapes(sections(function.__doc__ or "").get("Returns", "")))
    }
    assert documented == CALLS.keys()


def documented_trace(function, prefix=""):
    lines = sections(function.__doc__)["Trace"].split("\n\n")[0].splitlines()
    return {
        prefix + name: letters.strip("()")
        for name, letters in (line.split(" : ") for line in lines)
    }


def test_the_trace_holds_what_is_documented_and_no_more():
    trace, sizes = {}, dict(SIZES)
    out = bert_np.bert(INPUT_IDS, PARAMS, CONFIG, trace=trace)
    heads.masked_lm_logits(out["last_hidden_state"], PARAMS, CONFIG, trace=trace)
    heads.next_sentence_logits(out["pooler_output"], PARAMS, trace=trace)
    documented = (
        documented_trace(bert_np.embed, "embeddings.")
        | documented_trace(bert_np.pool, "pooler.")
        | documented_trace(heads.masked_lm_logits)
        | documented_trace(heads.next_sentence_logits)
    )
    for i in range(CONFIG.num_hidden_layers):
        documented |= (
            documented_trace(attention.self_attention, f"layers.{i}.attention.")
            | documented_trace(add_and_norm, f"layers.{i}.attention_norm.")
            | documented_trace(bert_np.feed_forward, f"layers.{i}.ffn.")
            | documented_trace(add_and_norm, f"layers.{i}.ffn_norm.")
            | documented_trace(encoder_layer, f"layers.{i}.")
        )
    found = dict(leaves(trace))
    assert found.keys() == documented.keys()
    for stage, letters in documented.items():
        assert_shape(found[stage], letters, sizes, stage)


def test_attention_documents_the_stages_of_its_inner_function():
    inner = documented_trace(attention.scaled_dot_product)
    outer = documented_trace(attention.self_attention)
    assert inner.items() <= outer.items() and len(inner) == 3
