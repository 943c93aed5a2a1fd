"""Python functions and classes, compiled with the names that Python gives them."""

from __future__ import annotations

import enum
import math
from typing import Any, List, NamedTuple, Optional  # noqa: UP035

import pytest

import engine
from engine.frontend.python.resolver import PythonUnit
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.lang.types import ClassType, TupleType

LIMIT = 3


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: engine.Tensor
    n: Optional[int] = None  # noqa: UP045


class Counter:
    def __init__(self, start: int):
        self.count = start

    @staticmethod
    def after(start: int) -> Counter:
        return Counter(start + 1)

    def add(self, by: int) -> int:
        self.count += by
        return self.count


def helper(x: engine.Tensor, k: int = 2):
    return engine.relu(x) * k + math.pi


def uses_everything(x: engine.Tensor, color: Color):
    point = Point(helper(x), 3)
    found: List[int] = []  # noqa: UP006
    if color is Color.RED:
        found.append(Counter.after(3).add(1))
    if x.numel() == 0:
        raise ValueError("empty")
    return point.x.to(engine.float64) + len(found)


def closed_over(x):
    return x + LIMIT


def misspelt(x):
    return x.sigmod()


def calls_misspelt(x):
    return misspelt(x)


def kinds(function: Any) -> set[str]:
    graph = PythonUnit().function(function).graph
    verify(graph)
    return {node.kind for node in graph.all_nodes()}


def test_functions_classes_enums_and_constants_are_found() -> None:
    assert {"prim::CallFunction", "prim::CallMethod", "aten::to", "prim::RaiseException"} <= kinds(uses_everything)


def test_each_thing_is_compiled_once() -> None:
    python = PythonUnit()
    assert python.function(helper) is python.function(helper)
    assert python.type_of(Counter) is python.type_of(Counter)
    assert python.function(helper).qualname == f"__torch__.{__name__}.helper"


def test_kinds_of_classes() -> None:
    python = PythonUnit()
    counter, point = python.type_of(Counter), python.type_of(Point)
    assert isinstance(counter, ClassType)
    assert list(counter.static_methods) == ["after"]
    assert isinstance(point, TupleType)
    assert [str(element) for element in point.elements] == ["Tensor", "int?"]
    assert point.defaults == (None,)


def test_closures_see_their_cells() -> None:
    def inner(x):
        return helper(x) + 1

    def outer(x):
        return inner(x)

    assert "prim::CallFunction" in kinds(outer)


def test_globals_are_no_values() -> None:
    with pytest.raises(CompileError, match="python value of type 'int' cannot be used as a value"):
        PythonUnit().function(closed_over).graph  # noqa: B018


def test_errors_point_into_the_file_and_tell_who_called() -> None:
    with pytest.raises(CompileError) as error:
        PythonUnit().function(calls_misspelt).graph  # noqa: B018
    assert error.value.range is not None
    assert error.value.range.filename == __file__
    assert error.value.line == misspelt.__code__.co_firstlineno + 1
    assert [frame.function for frame in error.value.frames] == ["misspelt"]


def test_plain_python_functions_are_refused() -> None:
    def f(n: int):
        return sorted_by_python(n)

    sorted_by_python = type
    with pytest.raises(CompileError, match="Expected a value of type 'Tensor' for argument '0'"):
        PythonUnit().function(f).graph  # noqa: B018
