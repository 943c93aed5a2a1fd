"""Rows of generated code: each gives what its operator gives."""

import itertools
import math
from copy import copy
from typing import Any

import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import find
from engine.aten.values.tensor import tensor
from engine.executor.bytecode.operations import OPERATIONS
from engine.executor.codegen.templates import NAMES, ROWS, Row, asks, question
from engine.ir.parser import parse_ir
from engine.lang.scalars import device
from engine.lang.types import BOOL, DEVICE, FLOAT, INT, STR, DictType, ListType, TensorType, Type, VarType

SAMPLES: dict[Type, list[Any]] = {
    INT: [0, 1, -1, 2, -3, 7, 2**31, 2**62 - 1, 2**63 - 1, -(2**63)],
    FLOAT: [0.0, -0.0, 1.0, -2.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, 2.0**53],
    BOOL: [False, True],
    STR: ["", "a", "b", "ä", "ab"],
}


def samples(type: Type) -> list[Any]:
    if isinstance(type, ListType):
        element = type.element
        return [[], [5], [5, 6, 7]] if isinstance(element, VarType) else [[], *([each] for each in samples(element))]
    if isinstance(type, DictType):
        return [{}, dict.fromkeys(samples(type.key), 3)]
    if isinstance(type, TensorType):
        return [tensor([1.0]), tensor([1.0], requires_grad=True), tensor([1.0], requires_grad=True)[0]]
    if type is DEVICE:
        return [device("cpu"), device("cuda", 1)]
    return SAMPLES.get(type, [3]) if not isinstance(type, VarType) else [3]


def copied(arguments: tuple[Any, ...]) -> list[Any]:
    return [copy(each) if isinstance(each, (list, dict)) else each for each in arguments]


def by_row(row: Row, arguments: list[Any]) -> Any:
    names = [f"v{i}" for i in range(len(arguments))]
    scope = {**NAMES, **dict(zip(names, arguments, strict=True))}
    text = row.text.format(*names)
    if row.is_statement:
        exec(text, scope)
        return arguments[0]
    value = eval(text, scope)
    return NAMES["wrap"](value) if row.wraps else value


def outcome(call: Any, arguments: list[Any]) -> Any:
    try:
        result = call(*arguments)
    except Exception:
        return "raised", repr(arguments)
    return type(result), repr(result), repr(arguments)


@pytest.mark.parametrize("name", [name for name in ROWS if name not in OPERATIONS])
def test_a_row_gives_what_its_operator_gives(name: str) -> None:
    op = find(name)
    assert isinstance(op, Op), f"there is no operator {name}"
    row = ROWS[name]
    for arguments in itertools.product(*(samples(a.type) for a in op.schema.arguments)):
        if row.largest and abs(arguments[1]) > row.largest:
            continue
        wanted = outcome(op.run, copied(arguments))
        found = outcome(lambda *values: by_row(row, list(values)), copied(arguments))
        if row.is_statement:
            values = copied(arguments)
            assert outcome(lambda *_, v=values: by_row(row, v), [])[0] == wanted[0]
            continue
        assert found == wanted, (name, arguments)
        assert wanted[0] != "raised" or row.raises or row.divides, f"{name} can fail, and the row does not say so"


def test_rows_that_may_move_take_each_input_once_and_cannot_fail() -> None:
    assert ROWS["aten::lt.int"].is_plain
    assert not any(ROWS[name].is_plain for name in ("aten::add.int", "aten::div.float", "aten::__getitem__.t"))
    assert not any(ROWS[name].is_plain for name in ("aten::append.t", "aten::remainder.int", "prim::min.int"))


def test_questions_are_asked_of_arrays() -> None:
    graph = parse_ir(
        "graph(%x : Tensor, %l : int[]):\n  %i : int = prim::Constant[value=-1]()\n  %a : int = aten::dim(%x)\n"
        "  %b : int = aten::size(%x, %i)\n  %c : int = aten::len(%x)\n  %d : int = aten::len(%l)\n"
        "  return (%a, %b, %c, %d)\n"
    )
    nodes = [value.node for value in graph.outputs]
    assert [asks(node) for node in nodes] == [True, True, True, False]
    assert [question(node).format("x", "-1") for node in nodes[:3]] == ["x.ndim", "x.shape[-1]", "len(x)"]
