"""Nodes without a schema, one by one."""

import pytest

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.operations import op_of, operation_of
from engine.executor.conversion.from_python import is_instance
from engine.executor.interpreter.interpreter import InterpreterState
from engine.ir.graph import Graph, Node
from engine.ir.parser import parse_ir
from engine.lang.errors import OperatorError
from engine.lang.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)  # fmt: skip


def node(kind: str, inputs: list[Type], outputs: list[Type], **attributes: object) -> Node:
    graph = Graph()
    made = graph.append(kind, [graph.add_input("", type) for type in inputs], outputs)
    for name, value in attributes.items():
        made.set_attr(name, value)
    return made


PAIR = TupleType((INT, STR))


@pytest.mark.parametrize(
    ("made", "inputs", "result"),
    [
        (node("prim::TupleConstruct", [INT, STR], [PAIR]), (1, "a"), (1, "a")),
        (node("prim::TupleUnpack", [PAIR], [INT, STR]), ((1, "a"),), (1, "a")),
        (node("prim::TupleUnpack", [TupleType((INT,))], [INT]), ((1,),), 1),
        (node("prim::TupleIndex", [PAIR, INT], [STR]), ((1, "a"), -1), "a"),
        (node("prim::TupleSlice", [PAIR], [TupleType((STR,))], beg=1, end=2), ((1, "a"),), ("a",)),
        (node("prim::ListConstruct", [INT, INT], [ListType(INT)]), (1, 2), [1, 2]),
        (node("prim::ListUnpack", [ListType(INT)], [INT]), ([1],), 1),
        (node("prim::DictConstruct", [STR, INT, STR, INT], [DictType(STR, INT)]), ("a", 1, "b", 2), {"a": 1, "b": 2}),
        (node("prim::isinstance", [ANY], [BOOL], types=[STR, INT]), (1,), True),
    ],
    ids=lambda value: value.kind if isinstance(value, Node) else "",
)
def test_result(made: Node, inputs: tuple[object, ...], result: object) -> None:
    assert operation_of(made)(*inputs) == result


def test_unpacking_checks_the_length() -> None:
    with pytest.raises(OperatorError, match="Expected 2 elements in a list but found 3"):
        operation_of(node("prim::ListUnpack", [ListType(INT)], [INT, INT]))([1, 2, 3])


def test_a_tuple_has_no_element_outside() -> None:
    with pytest.raises(OperatorError, match="Tuple list index out of range"):
        operation_of(node("prim::TupleIndex", [PAIR, INT], [INT]))((1, "a"), 2)


def test_attributes_live_in_slots() -> None:
    kind = ClassType("__torch__.C")
    kind.add_attribute("a", INT)
    kind.add_attribute("b", INT)
    made = operation_of(node("prim::CreateObject", [], [kind]))()
    operation_of(node("prim::SetAttr", [kind, INT], [], name="b"))(made, 5)
    assert isinstance(made, Object)
    assert made.slots == [None, 5]
    assert operation_of(node("prim::GetAttr", [kind], [INT], name="b"))(made) == 5


@pytest.mark.parametrize(
    ("value", "type", "belongs"),
    [
        (True, INT, False), (True, BOOL, True), (1, FLOAT, False), (1, OptionalType(INT), True),
        ([1], ListType(INT), True), ([1], ListType(FLOAT), False), ([], ListType(FLOAT), True),
        ({"a": 1}, DictType(STR, INT), True), ((1, "a"), PAIR, True), ((1, 2), PAIR, False),
        (tensor([1.0]), TENSOR, True), ([tensor([1.0])], ListType(TENSOR), True), (tensor(1), INT, False),
    ],
)  # fmt: skip
def test_what_isinstance_says_of_values(value: object, type: Type, belongs: bool) -> None:
    assert is_instance(value, type) is belongs


def test_print_writes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    operation_of(node("prim::Print", [INT, STR], []))(1, "a")
    assert capsys.readouterr().out == "1 a\n"


def test_operators_are_found_by_the_types_of_the_inputs() -> None:
    assert op_of(node("aten::add", [INT, INT], [INT])).overload == "int"
    assert op_of(node("aten::add", [TENSOR, TENSOR, INT], [TENSOR])).overload == "Tensor"
    assert op_of(node("aten::append", [ListType(INT), INT], [ListType(INT)])).overload == "t"


def test_results_of_operations_without_outputs_stay_nowhere() -> None:
    code = Code(parse_ir("graph(%x : Tensor):\n  prim::Print(%x)\n  return ()\n"), "f")
    assert code.blank == [None], "the scratch register"
    InterpreterState(code).run(tensor([1.0]))
