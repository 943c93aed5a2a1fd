"""Typed expressions as loops: the text, and what it computes."""

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

from engine.aten.kernels.expression import compile_expression
from engine.fuser import machine
from engine.fuser.entries import process
from engine.fuser.entries.samples import DTYPES
from engine.fuser.expression import FLOATS, KINDS, Element, Literal, typed
from engine.fuser.lower import BLOCK, DECLARATIONS, OUT, Loop, Row, function_text, literal_text, steps

_names = itertools.count()


def run(text: str, kind: str, rows: dict[str, Any], numbers: dict[str, float], in_place: bool = False) -> Any:
    """The expression over these arrays, by machine code."""
    value = typed(text, list(rows), list(numbers), kind)
    number_kind = "f64" if kind in FLOATS else "i64"
    body = function_text(
        "work", value, dict.fromkeys(rows, kind), dict.fromkeys(numbers, number_kind), process.row_function, in_place
    )
    name = f"run_{next(_names)}"
    module = f"{DECLARATIONS}\n{body.replace('define internal', 'define').replace('@work', f'@{name}')}"
    address = machine.compiled(module, [name])[name]
    out = np.zeros(len(next(iter(rows.values()))), DTYPES[value.kind])
    number_type = ctypes.c_double if kind in FLOATS else ctypes.c_longlong
    pointers = [*([] if in_place else [out]), *rows.values()]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_longlong, *[number_type] * len(numbers))(
        address
    )(*(a.ctypes.data for a in pointers), len(out), *numbers.values())
    return next(iter(rows.values())) if in_place else out


@pytest.mark.parametrize("size", [1, 2, 7, 64, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize(
    "text", ["x + n * y", "x * sigmoid(y)", "where(x < 0, expm1(x), y)", "tanh(softplus(x))", "x % y", "maximum(x, n)"]
)
def test_loops_compute_what_numpy_does(text: str, size: int) -> None:
    generator = np.random.default_rng(size)
    for kind in FLOATS:
        x, y = (generator.normal(0, 2, size).astype(DTYPES[kind]) for _ in range(2))
        expected = compile_expression(text, ["x", "y", "n"], ["x", "y"])(x, y, 0.3)
        found = run(text, kind, {"x": x, "y": y}, {"n": 0.3})
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


def test_arguments_may_be_called_what_the_text_calls_its_own() -> None:
    rows = {name: np.full(600, i + 1.0) for i, name in enumerate(["out", "rows", "count", "m", "base", "v1"])}
    text = "exp(out - rows) + count * m - base / v1 + n - left"
    expected = compile_expression(text, [*rows, "n", "left"], rows)(*rows.values(), 0.5, 0.25)
    assert run(text, "f64", rows, {"n": 0.5, "left": 0.25}).tobytes() == expected.tobytes()


def test_in_place_the_first_tensor_is_written() -> None:
    x = np.arange(700.0)
    expected = 1 / (np.exp(-x) + 1) * x
    assert run("x * sigmoid(x)", "f64", {"x": x}, {}, in_place=True) is x
    assert x.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_truth_values_are_bytes(kind: str) -> None:
    x = np.array([0, 1, 1, 0, 1] * 20).astype(DTYPES[kind])
    y = np.array([0, 0, 1, 1, 1] * 20).astype(DTYPES[kind])
    assert run("logical_xor(x, y)", kind, {"x": x, "y": y}, {}).tolist() == (x != y).tolist()
    assert run("logical_not(x)", kind, {"x": x}, {}).tolist() == (x == 0).tolist()


def test_what_a_library_computes_goes_through_buffers() -> None:
    x = Element("x", "f32")
    assert steps(typed("exp(x)", ["x"], [], "f32")) == [Row(OUT, "exp", "f32", ("x",))]
    plan = steps(typed("x * sigmoid(x)", ["x"], [], "f32"))
    assert [type(step) for step in plan] == [Loop, Row, Loop]
    assert plan[0] == Loop("0.row", typed("-x", ["x"], [], "f32"))
    assert plan[1] == Row("1.row", "exp", "f32", ("0.row",))
    assert x in plan[2].value.operands  # type: ignore[union-attr]


def test_equal_calls_of_a_library_are_made_once() -> None:
    rows = [step for step in steps(typed("exp(x) + exp(x) * exp(x)", ["x"], [], "f64")) if isinstance(step, Row)]
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, "f64", "0x3FF0000000000000"),
        (0.1, "f32", "0x3FB99999A0000000"),
        (1e300, "f32", "0x7FF0000000000000"),
        (-1, "i32", "-1"),
        (2**40 + 3, "i32", "3"),
        (1, "i1", "1"),
    ],
)
def test_literals_are_spelled_by_their_bits(value: float, kind: str, text: str) -> None:
    assert literal_text(Literal(value, kind)) == text
