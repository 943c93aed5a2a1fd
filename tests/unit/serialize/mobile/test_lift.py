"""Graphs from bytecode: what cannot be one is refused with its instruction."""

from __future__ import annotations

import io
from typing import Any

import pytest

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import tensor
from engine.executor.calls.call import call_function
from engine.lang.errors import ArchiveError, ExecutionError
from engine.serialize.archive import load_archive
from engine.serialize.mobile.schema import OPCODES
from engine.serialize.upgrade.upgraders import rewrites_in
from tests.unit.serialize.mobile.flatbuffer_maker import function, program

SELF = ("self", "__torch__.M")
X = ("x", "int")
BEGIN = [("STOREN", 1, 2)]
OPERATORS = [
    {"name": "aten::lt", "overload_name": "int", "num_args_serialized": 2},
    {"name": "aten::add", "overload_name": "int", "num_args_serialized": 2},
    {"name": "nobody::knows", "num_args_serialized": 1},
]
LESS, ADD, UNKNOWN = 0, 1, 2
CONSTANTS = [("Int", (0,)), ("Int", (10,)), ("Bool", (True,)), ("String", {"data": "text"})]
ZERO, TEN, TRUE, TEXT, NONE = range(5)


def module(code: list[tuple[str, int, int]], **more: Any) -> Object:
    """A module with a method `forward(self, x: int) -> int` of these instructions."""
    given = {"arguments": (SELF, X), "returns": "int", "operators": OPERATORS, "constants": [1, 2, 3, 4, 0]} | more
    values = [*CONSTANTS, function(code, **given), ("Object", {"attrs": [1]})]
    types = [{"type_name": "__torch__.M", "type": 1, "attr_names": ["a"]}]
    return load_archive(io.BytesIO(program(values, object_types=types)))


def run(code: list[tuple[str, int, int]], x: int, **more: Any) -> Any:
    made = module(code, **more)
    return call_function(made.type.methods["forward"], [made, x])


def test_two_ways() -> None:
    code = [*BEGIN, ("LOAD", 2, 0), ("LOADC", TEN, 0), ("OP", LESS, 0), ("JF", 3, 0), ("LOADC", TEN, 0),
            ("JMP", 2, 0), ("LOAD", 2, 0), ("RET", 0, 0)]  # fmt: skip
    assert [run(code, x) for x in (3, 12)] == [10, 12]


def test_a_loop() -> None:
    code = [*BEGIN, ("LOADC", ZERO, 0), ("LOAD", 2, 0), ("LOADC", TRUE, 0), ("LOADC", TEN, 0), ("LOOP", 7, 3),
            ("STOREN", 3, 2), ("LOADC", TRUE, 0), ("LOAD", 3, 0), ("LOAD", 4, 0), ("OP", ADD, 0), ("JMP", -6, 0),
            ("RET", 0, 0)]  # fmt: skip
    assert run(code, 4) == 10 + 0 + 1 + 2 + 3


def test_a_loop_whose_value_becomes_wider() -> None:
    """It is None at first and a number then: followed anew, with a type that holds both."""
    code = [*BEGIN, ("LOADC", ZERO, 0), ("LOAD", 2, 0), ("LOADC", TRUE, 0), ("LOADC", NONE, 0), ("LOOP", 5, 3),
            ("STOREN", 3, 2), ("LOADC", TRUE, 0), ("LOAD", 3, 0), ("JMP", -4, 0), ("RET", 0, 0)]  # fmt: skip
    assert [run(code, x, returns="Optional[int]") for x in (0, 3)] == [None, 2]


def test_an_error_shows_the_instruction() -> None:
    code = [*BEGIN, ("LOADC", TEXT, 0), ("LOADC", TEXT, 0), ("RAISE_EXCEPTION", 0, 0), ("LOAD", 2, 0), ("RET", 0, 0)]
    with pytest.raises(ExecutionError) as caught:
        run(code, 1)
    assert "RAISE_EXCEPTION 0 0\n    ~~~~~~~~~~~~~~~~~~~ <--- HERE" in str(caught.value)
    assert "LOADC 3 0               'text'" in str(caught.value)
    assert caught.value.range is not None
    assert (caught.value.range.filename, caught.value.range.line) == ("__torch__.M.forward", 3)


@pytest.mark.parametrize(("version", "wanted"), [(3, 2), (4, 2.5)])
def test_operators_mean_what_they_meant_then(version: int, wanted: float) -> None:
    divide = [{"name": "aten::div", "overload_name": "Scalar", "num_args_serialized": 2}]
    code = [("STOREN", 1, 2), ("LOAD", 2, 0), ("LOADC", 0, 0), ("OP", 0, 0), ("RET", 0, 0)]
    forward = function(code, arguments=(SELF, ("x", "Tensor")), operators=divide, constants=[1])
    values = [("Int", (2,)), forward, ("Object", {"attrs": [1]})]
    types = [{"type_name": "__torch__.M", "type": 1, "attr_names": ["a"]}]
    made = load_archive(io.BytesIO(program(values, object_types=types, operator_version=version)))
    method = made.type.methods["forward"]
    assert call_function(method, [made, tensor(5)]).item() == wanted
    rewrites = [str(each) for each in rewrites_in(method.graph)]
    assert rewrites == (["aten::div is done by div_Scalar_0_3 (__torch__.M.forward:3)"] if version == 3 else [])


def test_an_operator_that_nobody_knows_waits_until_it_is_called() -> None:
    made = module([*BEGIN, ("LOAD", 2, 0), ("OP", UNKNOWN, 0), ("RET", 0, 0)], returns="Tensor")
    assert [node.kind for node in made.type.methods["forward"].graph.nodes()] == ["nobody::knows"]


REFUSED: list[tuple[list[tuple[str, int, int]], str]] = [
    ([], "it does not end with RET"),
    ([*BEGIN, ("LOAD", 2, 0)], "it does not end with RET"),
    ([("LOAD", 7, 0), ("RET", 0, 0)], r"instruction 0 \(LOAD\): register 7 holds nothing here"),
    ([("DROP", 0, 0)] * 3 + [("RET", 0, 0)], r"instruction 2 \(DROP\): it takes a value that is not there"),
    ([("STOREN", 1, 60000), ("RET", 0, 0)], "it takes values that are not there"),
    ([("LOADC", 9, 0), ("RET", 0, 0)], "there is no constant 9"),
    ([("LOADC", -1, 0), ("RET", 0, 0)], "there is no constant -1"),
    ([("OP", 9, 0), ("RET", 0, 0)], "there is no operator 9"),
    ([*BEGIN, ("LOADC", TEXT, 0), ("LOAD", 2, 0), ("OP", ADD, 0), ("RET", 0, 0)], "aten::add.int"),
    ([("LIST_CONSTRUCT", 0, 0), ("RET", 0, 0)], "there is no type 0"),
    ([("TUPLE_CONSTRUCT", -1, 0), ("RET", 0, 0)], "it takes values that are not there"),
    ([("TUPLE_CONSTRUCT", 1 << 30, 0), ("RET", 0, 0)], "it takes values that are not there"),
    ([("LIST_UNPACK", 1 << 30, 0), ("RET", 0, 0)], "is unpacked as a list"),
    ([*BEGIN, ("LOAD", 1, 0), ("GET_ATTR", 5, 0), ("RET", 0, 0)], "has no slot 5"),
    ([*BEGIN, ("LOAD", 1, 0), ("GET_ATTR", -1, 0), ("RET", 0, 0)], "has no slot -1"),
    ([*BEGIN, ("LOAD", 2, 0), ("GET_ATTR", 0, 0), ("RET", 0, 0)], "'int' has no attributes"),
    ([*BEGIN, ("LOAD", 1, 0), ("LOAD", 2, 0), ("SET_ATTR", 1 << 30, 0), ("RET", 0, 0)], "has no slot"),
    ([*BEGIN, ("LOAD", 1, 0), ("INTERFACE_CALL", TEXT, 1), ("RET", 0, 0)], "has no method 'text'"),
    ([("JMP", 0, 0), ("RET", 0, 0)], "no form in a graph"),
    ([("FORK", 0, 0), ("RET", 0, 0)], "no form in a graph"),
    ([*BEGIN, ("LOADC", TRUE, 0), ("JF", 0, 0), ("RET", 0, 0)], "a jump leads where no block can be"),
    ([*BEGIN, ("LOADC", TRUE, 0), ("JF", -2, 0), ("RET", 0, 0)], "a jump leads where no block can be"),
    ([*BEGIN, ("LOADC", TRUE, 0), ("JF", 1 << 30, 0), ("RET", 0, 0)], "a jump leads where no block can be"),
    ([*BEGIN, ("LOADC", TRUE, 0), ("JF", 2, 0), ("JMP", -1, 0), ("RET", 0, 0)], "a jump leads where no block can be"),
    ([*BEGIN, ("LOAD", 2, 0), ("JF", 3, 0), ("LOAD", 2, 0), ("JMP", 1, 0), ("RET", 0, 0)],
     "its two ways leave different numbers of values"),
    ([*BEGIN, ("LOOP", 1, 0), ("RET", 0, 0)], "a jump leads where no block can be"),
    ([*BEGIN, ("LOOP", 2, 0), ("JMP", -1, 0), ("RET", 0, 0)], "a loop has no condition"),
    ([*BEGIN, ("LOOP", 2, 2), ("JMP", -1, 0), ("RET", 0, 0)], "it takes a value that is not there"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "reason"), REFUSED)
def test_bytecode_that_is_no_graph(code: list[tuple[str, int, int]], reason: str) -> None:
    method = module(code).type.methods["forward"]
    with pytest.raises(ArchiveError, match=reason) as caught:
        _ = method.graph
    assert caught.value.record == "bytecode" and "'__torch__.M.forward'" in caught.value.message


@pytest.mark.parametrize("opcode", OPCODES)
def test_no_instruction_breaks_on_an_empty_stack(opcode: str) -> None:
    method = module([("DROP", 0, 0), ("DROP", 0, 0), (opcode, 1, 1), ("RET", 0, 0)]).type.methods["forward"]
    if opcode in ("DROPR", "LOADC", "UN_INITIALIZED"):
        assert method.graph
        return
    with pytest.raises(ArchiveError, match="instruction 2"):
        _ = method.graph


def test_blocks_that_nest_without_end() -> None:
    opened = [each for n in range(300) for each in (("LOADC", TRUE, 0), ("JF", 3 * (300 - n) - 1, 0))]
    nested = [*BEGIN, *opened, *([("JMP", 1, 0)] * 300), ("LOAD", 2, 0), ("RET", 0, 0)]
    with pytest.raises(ArchiveError, match="nest deeper than 100"):
        _ = module(nested).type.methods["forward"].graph
    beside = [("LOADC", TRUE, 0), ("JF", 2, 0), ("JMP", 1, 0)] * 2000
    assert module([*BEGIN, *beside, ("LOAD", 2, 0), ("RET", 0, 0)]).type.methods["forward"].graph


def test_loops_whose_types_never_settle_are_given_up() -> None:
    """Each round makes a tuple of what was there."""
    code = [*BEGIN, ("LOADC", ZERO, 0), ("LOAD", 2, 0), ("LOADC", TRUE, 0), ("LOAD", 2, 0), ("LOOP", 7, 3),
            ("STOREN", 3, 2), ("LOADC", TRUE, 0), ("LOAD", 4, 0), ("LOAD", 4, 0), ("TUPLE_CONSTRUCT", 2, 0),
            ("JMP", -6, 0), ("DROP", 0, 0), ("LOAD", 2, 0), ("RET", 0, 0)]  # fmt: skip
    with pytest.raises(ArchiveError, match="do not settle"):
        _ = module(code).type.methods["forward"].graph


@pytest.mark.parametrize("type", ["__torch__.N(", "List[", "Foo", "", "__torch__", "x" * 100000, "List[" * 5000])
def test_types_that_are_none(type: str) -> None:
    with pytest.raises(ArchiveError):
        _ = module([("RET", 0, 0)], arguments=(SELF, ("x", type))).type.methods["forward"].graph
