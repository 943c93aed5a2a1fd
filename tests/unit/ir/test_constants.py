"""Constants in graphs and their values."""

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor
from engine.ir.constants import NOT_CONSTANT, constant_key, constant_value, insert_constant, type_of
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.scalars import device
from engine.lang.types import INT, FunctionType, ListType, OptionalType


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (3, "int = prim::Constant[value=3]()"),
        (True, "bool = prim::Constant[value=1]()"),
        (0.5, "float = prim::Constant[value=0.5]()"),
        (1j, "complex = prim::Constant[value=0.+1.j]()"),
        ("a", 'str = prim::Constant[value="a"]()'),
        (None, "NoneType = prim::Constant()"),
        (device("cpu"), 'Device = prim::Constant[value="cpu"]()'),
        ((1, "a"), '(int, str) = prim::Constant[value=(1, "a")]()'),
        ([1, 2], "int[] = prim::Constant[value=[1, 2]]()"),
        ({"a": 1}, 'Dict(str, int) = prim::Constant[value={"a": 1}]()'),
        (Tensor(np.float32([1, 2])), "Float(2, strides=[1], requires_grad=0, device=cpu) = "
         "prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()"),
        (Tensor(np.array(7)), "Long(requires_grad=0, device=cpu) = prim::Constant[value={7}]()"),
    ],
)  # fmt: skip
def test_insert_and_read(value: object, line: str) -> None:
    graph = Graph()
    inserted = insert_constant(graph, value)
    assert str(inserted.node) == f"%0 : {line}"
    assert constant_value(inserted) is value


def test_no_constant() -> None:
    graph = Graph()
    assert constant_value(graph.add_input("x", INT)) is NOT_CONSTANT


def test_typed_none_and_functions() -> None:
    graph, function = Graph(), Function("__torch__.g")
    none = insert_constant(graph, None, OptionalType(INT))
    assert str(none.node) == "%0 : int? = prim::Constant()"
    assert constant_value(none) is None
    callee = insert_constant(graph, function, FunctionType(function))
    assert str(callee.node) == '%1 : Function = prim::Constant[name="g"]()'
    assert constant_value(callee) is function


def test_elements_share_a_type() -> None:
    assert str(type_of([1, None])) == "int?[]"
    assert str(type_of([])) == "Tensor[]"
    assert type_of([Tensor(np.zeros(2)), Tensor(np.zeros(3))]) == ListType(type_of([]).contained()[0])


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [(1, 1, True), (1, True, False), (1, 1.0, False), ((1, 2), (1, 2), True), ((1,), [1], False), ("a", "a", True),
     (float("nan"), float("nan"), False), ((float("nan"),), (float("nan"),), False), (None, None, True),
     (Tensor(np.ones(2)), Tensor(np.ones(2)), True), (Tensor(np.ones(2)), Tensor(np.ones(2, "float32")), False)],
)  # fmt: skip
def test_keys(a: object, b: object, same: bool) -> None:
    graph = Graph()
    first, second = (constant_key(insert_constant(graph, value).node) for value in (a, b))
    assert (first is not None and first == second) is same


def test_a_parsed_constant_reads_the_same() -> None:
    graph = parse_ir("graph():\n  %0 : float = prim::Constant[value=2.]()\n  return (%0)")
    assert constant_value(graph.outputs[0]) == 2.0
