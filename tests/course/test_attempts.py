"""Nothing that student code does stops the checker, and all of it is told."""

import asyncio
import functools
import inspect
import re
from fractions import Fraction

import nbformat
import numpy as np
import pytest

from bert_np.course import check, grade, show_case
from bert_np.course.answers import Other, agrees
from bert_np.course.attempts import is_untouched, plain
from notebooks import code_cells, execute, printed


def softmax_like(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# --------------------------------------------------------- what is raised


def fails(*_):
    raise ValueError("not like this")


def leaves(*_):
    raise SystemExit


class Hostile:
    """Everything that can be asked of it raises."""

    __repr__ = __eq__ = __len__ = __iter__ = __bool__ = __array__ = fails
    __getattr__ = __float__ = __str__ = __hash__ = fails


class Leaving(Hostile):
    __repr__ = __array__ = __getattr__ = __float__ = leaves


class BadText(str):
    __repr__ = __eq__ = __len__ = __iter__ = __str__ = lower = fails
    __hash__ = str.__hash__


class BadArray(np.ndarray):
    __repr__ = __eq__ = __len__ = __iter__ = fails


class BadError(BaseException):
    __str__ = __repr__ = fails


class Tensor:
    """As PyTorch's: it becomes an array only after detach and cpu."""

    def __init__(self, values, free=False):
        self.values, self.free = values, free

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self):
        return Tensor(self.values, free=True)

    def cpu(self):
        return self

    def numpy(self):
        return self.values if self.free else self.__array__()


def endless():
    while True:
        yield 0


def itself():
    items = []
    items.append(items)
    return items


def deep(levels=5000):
    items = []
    for _ in range(levels):
        items = [items]
    return items


def doubled(times):
    items = [0.0]
    for _ in range(times):
        items = [items, items]
    return items


async def later():
    return 0


def bad_array():
    return np.full(3, 7.0).view(BadArray)


ODD_VALUES = {
    "hostile": Hostile, "leaving": Leaving, "text": lambda: BadText("b"),
    "listed": lambda: [Hostile(), 1], "in an array": lambda: np.array([Hostile, 1]),
    "bad array": bad_array, "endless": endless, "itself": itself, "deep": deep,
    "coroutine": later, "map": lambda: map(float, "123"), "huge": lambda: 10**5000,
    "long text": lambda: "b" * 10**6, "long list": lambda: [0.0] * 10**4,
    "long range": lambda: range(10**15), "doubled": lambda: doubled(60),
    "wide": lambda: np.broadcast_to(1.0, (10**5, 10**6)),
    "class": lambda: int, "module": lambda: np, "set": lambda: {1.0, 2.0},
    "masked": lambda: np.ma.masked_equal([1, 2, 3], 2), "nan": lambda: float("nan"),
    "dates": lambda: np.zeros(3, "M8[s]"), "bytes": lambda: b"b", "complex": lambda: 1j,
    "records": lambda: np.zeros(3, "i4,f4"), "ragged": lambda: [[1], [1, 2]],
    "surrogate": lambda: "\ud800", "exit": lambda: exit, "function": lambda: fails,
}  # fmt: skip


ENDLESS = ("doubled", "long range")  # each takes seconds for a function


@pytest.mark.parametrize("make", ODD_VALUES.values(), ids=ODD_VALUES)
@pytest.mark.parametrize(
    "exercise_id", ["03.row", "01.unknown", "00.shape", "05.count"]
)
def test_an_odd_value_is_wrong_and_told(exercise_id, make):
    result = grade(exercise_id, make())
    assert result.passed is False
    assert "your" in result.message and len(result.message) < 300


SLOW_ONES = [
    pytest.param(make, marks=pytest.mark.slow if name in ENDLESS else ())
    for name, make in ODD_VALUES.items()
]


@pytest.mark.parametrize("make", SLOW_ONES, ids=ODD_VALUES)
@pytest.mark.parametrize("exercise_id", ["03.softmax", "03.attention", "01.split"])
def test_a_function_may_return_it_too(exercise_id, make):
    def odd(*case):
        return make()

    odd.__signature__ = inspect.signature(lambda a=0, b=0, c=0: 0)
    result = grade(exercise_id, odd)
    assert result.passed is False and "case 1" in result.message
    assert len(result.message) < 400


def recursion(scores):
    return recursion(scores)


def writes_an_odd_thing(scores):
    scores[:] = np.nan
    return Hostile()


ENDS = [ValueError, SystemExit, GeneratorExit, StopIteration, BadError, MemoryError]
ENDS += [asyncio.CancelledError, AssertionError, NotImplementedError]


class HostileFunction(Hostile):
    __call__ = fails


class LeavingFunction(Leaving):
    def __call__(self, scores):
        return softmax_like(scores)


@pytest.mark.parametrize("make", [HostileFunction, LeavingFunction])
def test_a_function_that_cannot_be_asked_for_anything_is_run(
    make, tmp_path, monkeypatch
):
    monkeypatch.setenv("BERT_NP_MY_BERT", str(tmp_path / "my_bert.py"))
    assert grade("03.softmax", make()).passed is (make is LeavingFunction)
    check("03.softmax", make())
    show_case("03.softmax", 1, make())
    assert not (tmp_path / "my_bert.py").exists()


@pytest.mark.parametrize("kind", ENDS)
def test_whatever_a_function_raises_is_told(kind):
    def raising(scores):
        raise kind

    message = grade("03.softmax", raising).message
    assert f"case 1 raises {kind.__name__}" in message
    assert re.search(r"\n  line \d+ of raising: raise kind\n", message)


@pytest.mark.parametrize("function, told", [
    (lambda scores: exit(), "SystemExit: it calls exit()"),
    (recursion, " of recursion: return recursion(scores)"),
    (writes_an_odd_thing, "case 1 raises ValueError: not like this"),
    (lambda scores: np.zeros((10**6, 10**9)), "case 1 raises"),
    (lambda scores: eval("1 +"), "SyntaxError"),
    (lambda scores: fails(), "ValueError: not like this"),
])  # fmt: skip
def test_no_way_out_of_a_function_stops_the_check(function, told):
    result = grade("03.softmax", function)
    assert result.passed is False and told in result.message


def test_an_error_is_shown_with_its_line_and_its_shapes():
    def transposed(q, k, v):
        scores = q @ k
        return scores, v

    _, line, shapes, show = grade("03.attention", transposed).message.split("\n  ")
    assert re.fullmatch(r"line \d+ of transposed: scores = q @ k", line)
    assert shapes.startswith("shapes: q (") and ", k (" in shapes and "v" not in shapes
    assert show.startswith('show_case("03.attention", ')


def helper(x):
    return x @ x


def test_the_line_shown_is_the_deepest_of_the_students_own():
    class Callable:
        def __call__(self, scores):
            return helper(scores[:, :0])

    for function in (
        lambda scores: helper(scores[:, :0]),
        functools.partial(lambda much, scores: helper(scores[:, :much]), 0),
        Callable(),
    ):
        message = grade("03.softmax", function).message
        assert " of helper: return x @ x\n" in message
        assert "shapes: x (3, 0)" in message


def test_keyboard_interrupts_go_through():
    def stuck(scores):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade("03.softmax", stuck)


def naive(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def test_a_strict_numpy_changes_nothing():
    with np.errstate(all="raise"):
        assert grade("03.softmax", softmax_like).passed
        assert (
            "overflows" in grade("03.softmax", lambda s: np.exp(s) / 0).message or True
        )
        assert grade("03.row", [np.inf, 0, 0]).passed is False


@pytest.mark.slow
def test_exit_in_a_notebook_does_not_take_the_kernel_along():
    cells = [
        "from bert_np.course import check",
        "def my_softmax(scores):\n    exit()",
        'check("03.softmax", my_softmax)',
        'check("03.row", exit)',
        "print('still here', type(exit).__name__)",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, cells))
    )
    done = code_cells(execute(notebook))
    assert "case 1 raises SystemExit: it calls exit()" in printed(done[2])
    assert "line 2 of my_softmax: exit()" in printed(done[2])
    assert printed(done[4]).startswith("still here")


# --------------------------------------------- attempted, or still a stub


def empty(scores): ...


def with_a_docstring(scores):
    """Return the shares of each row."""
    # TODO: subtract the maximum
    ...


def passes(scores):
    pass


def forgets(scores):
    shares = softmax_like(scores)
    shares.sum()


def returns_none(scores):
    return None


def prints(scores):
    print(softmax_like(scores))


def forgets_in_a_branch(scores):
    if len(scores) == len(scores.T):
        return softmax_like(scores)


@pytest.mark.parametrize("stub", [empty, with_a_docstring, passes])
def test_only_the_stub_is_not_attempted_yet(stub):
    assert is_untouched(stub)
    assert grade("03.softmax", stub) == (None, "not attempted yet")


@pytest.mark.parametrize("function", [
    forgets, returns_none, lambda scores: None, lambda scores: ..., prints,
    functools.partial(empty), np.vectorize(empty, otypes="O") and print,
])  # fmt: skip
def test_a_forgotten_return_is_told(function, capsys):
    result = grade("03.softmax", function)
    assert result.passed is False
    assert result.message == "your function returns nothing: is a `return` missing?"


def test_a_return_forgotten_in_a_branch_is_told_with_its_case():
    message = grade("03.softmax", forgets_in_a_branch).message
    assert ": your function returns nothing" in message and message[:5] == "case "


def test_a_stub_is_known_without_its_source():
    names = {}
    exec("def f(scores):\n    'text'\n    ...\ndef g(scores):\n    x = 1", names)
    assert is_untouched(names["f"]) and not is_untouched(names["g"])


@pytest.mark.parametrize("answer, told", [
    (lambda: 0, "yours has the parameters (), the exercise asks for (scores)"),
    (lambda q, k: q, "yours has the parameters (q, k), the exercise asks for (scores)"),
    (softmax_like(np.eye(2)), "give my_softmax itself, without calling it"),
    ("softmax", "the exercise asks for a function, yours is of type str"),
])  # fmt: skip
def test_what_is_no_fitting_function_is_told(answer, told):
    assert told in grade("03.softmax", answer).message


def test_an_object_that_cannot_be_asked_is_no_function_either():
    told = "the exercise asks for a function, yours is of type Hostile"
    assert told in grade("03.softmax", Hostile()).message


def test_more_parameters_with_defaults_are_welcome():
    assert grade("03.softmax", lambda scores, axis=-1: softmax_like(scores)).passed


# ------------------------------------------- right in another form


@pytest.mark.parametrize("exercise_id, answers", [
    ("00.shape", [(3, 5), [3, 5], np.array([3, 5]), (3.0, 5), "(3, 5)", [[3, 5]],
                  np.zeros((3, 5)).shape, Tensor(np.array([3, 5]))]),
    ("03.fingerprint", ["b", "B", "(b)", " b ", "'b'", "b)", "b.", ["b"], np.str_("B"),
                        np.array("b"), np.array(["b"]), BadText("b")]),
    ("04.unread", [[0, 1, 1, 0], (False, True, True, False), np.array([0, 1, 1, 0]),
                   "[0, 1, 1, 0]", np.array([False, True, True, False]),
                   [np.False_, np.True_, 1, 0.0], ["False", "True", "True", "False"]]),
    ("02.order", [[1, 0], (1, 0), [True, 0], np.array([1.0, 0.0])]),
    ("05.count", [288, 288.0, np.int64(288), np.array(288), np.array([288]), [288],
                  "288", " 288 ", Fraction(288), np.float32(288)]),
    ("05.dropout", [1.5, "1.5", Fraction(3, 2), np.array([[1.5]])]),
    ("03.row", [(0.1065, 0.1065, 0.787), np.array([0.1065, 0.1065, 0.787]),
                np.array([0.1065, 0.1065, 0.787], object), [[0.1065, 0.1065, 0.787]]]),
    ("06.residual", [1, True, 1.0, "1"]),
    ("01.unknown", [("played", "unsat", "replay"), ["Played", " unsat", "'replay'"],
                    np.array(["played", "unsat", "replay"])]),
    ("10.sink", ["[CLS]", "CLS", "[cls]", "'[CLS]'"]),
    ("07.patient_1", ["layers.0.attention.probs", " Layers.0.attention.probs"]),
])  # fmt: skip
def test_a_right_answer_is_right_in_any_form(exercise_id, answers):
    assert [a for a in answers if not grade(exercise_id, a).passed] == []


@pytest.mark.parametrize("exercise_id, answer", [
    ("03.fingerprint", "a"), ("03.fingerprint", 1), ("03.fingerprint", ["b", "b"]),
    ("00.shape", "3, 6"), ("00.shape", [3, 5, 1]), ("05.count", "two"),
    ("05.count", [288, 288]), ("02.order", [1, 1]), ("02.order", [[1], [0, 0]]),
    ("01.unknown", ["replay", "unsat", "played"]), ("04.unread", {1, 0}),
    ("02.order", "__import__('os')"), ("06.residual", False),
])  # fmt: skip
def test_a_wrong_one_stays_wrong_in_any_form(exercise_id, answer):
    assert grade(exercise_id, answer).passed is False


@pytest.mark.parametrize("form", [
    np.ndarray.tolist, Tensor, np.asmatrix, np.asfortranarray,
    lambda a: list(map(list, a)),
    lambda a: a.astype(object), lambda a: tuple(map(tuple, a)), np.array,
])  # fmt: skip
def test_a_function_may_return_its_numbers_in_any_form(form):
    assert grade("03.softmax", lambda scores: form(softmax_like(scores))).passed


def test_a_function_may_return_bools_for_ones_and_a_list_for_a_tuple():
    assert grade("04.mask", lambda input_ids, pad: input_ids != pad).passed
    solution = "the words".split
    assert grade("01.split", lambda text: solution()).passed is False

    def stacked(q, k, v):
        probs = softmax_like(q @ k.T / q.shape[-1] ** 0.5)
        return [probs @ v, probs.tolist()]

    assert grade("03.attention", stacked).passed


def test_plain_values_are_copies_of_standard_types():
    array = np.eye(2)
    found = plain({"a": (array, [Tensor(array), Fraction(1, 2)]), 1: endless()})
    assert type(found["a"][1][0]) is np.ndarray and found["a"][1][1] == 0.5
    assert isinstance(found[1], Other) and "list(…)" in found[1].kind
    found["a"][0][0, 0] = 5
    assert array[0, 0] == 1 and not agrees(found[1], 0, 1)


@pytest.mark.references
def test_tensors_of_pytorch_are_read():
    import torch

    def with_grad(scores):
        return torch.softmax(torch.tensor(scores, requires_grad=True), dim=-1)

    assert grade("03.softmax", with_grad).passed
    assert (
        "raises TypeError"
        in grade("03.softmax", lambda s: with_grad(s).bfloat16()).message
    )
    assert grade("05.count", torch.tensor(288.0, requires_grad=True)).passed
    shares = [torch.tensor(x, requires_grad=True) for x in (0.1065, 0.1065, 0.787)]
    assert grade("03.row", shares).passed
    assert grade("03.row", torch.tensor([1 + 1j])).passed is False


# --------------------------------------------------- right, or nearly


def test_a_right_answer_is_told_why(capsys):
    check("03.fingerprint", "B")
    assert "03.fingerprint: passed. " in capsys.readouterr().out


@pytest.mark.parametrize("change, cause", [
    (lambda y: y * (1 + 3e-6), "epsilon"),
    (lambda y: (y * (1 + 4e-6)).astype(np.float32), "yours is float32"),
    (lambda y: y * 2, "every entry is 2 times the right one"),
    (lambda y: -y, "every entry is -1 times the right one"),
])  # fmt: skip
def test_a_small_or_regular_difference_is_told_with_its_cause(change, cause):
    def nearly(q, k, v):
        probs = softmax_like(q @ k.T / q.shape[-1] ** 0.5)
        return change(probs @ v), probs

    message = grade("03.attention", nearly).message
    assert cause in message and message.startswith("case 1: item 0: yours is ")
    if "epsilon" in cause:
        assert " apart: perhaps " in message
