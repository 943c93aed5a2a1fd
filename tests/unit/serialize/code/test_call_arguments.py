"""How many arguments of a call must be written, and the defaults of parameters."""

import pytest

from engine.ir.parser import parse_ir
from engine.lang.schema_parser import parse_schema
from engine.serialize.code.call_arguments import necessary_arguments, whole_default

SCHEMA = "x::f(Tensor self, int[2] size=1, float p=0.5, bool b=False, *, int? dtype=None, Tensor(a!) out) -> Tensor(a!)"


def necessary(schema, *values):
    lines = [f"%{i} : {type} = prim::Constant{value}()" for i, (type, value) in enumerate(values, 10)]
    inputs = ", ".join(f"%{i}" for i in range(10, 10 + len(values)))
    text = "\n  ".join(["graph():", *lines, f"%1 : Tensor = x::f({inputs})", "return (%1)"])
    graph = parse_ir(text)
    return necessary_arguments(parse_schema(schema), graph.find_node("x::f"))


SELF = ("int", "[value=0]")
NONE = ("NoneType", "")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([SELF, ("int[]", "[value=[1, 1]]"), ("float", "[value=0.5]"), ("bool", "[value=0]"), NONE], 1),
        ([SELF, ("int[]", "[value=[1, 2]]"), ("float", "[value=0.5]"), ("bool", "[value=0]"), NONE], 2),
        ([SELF, ("int[]", "[value=[1, 1]]"), ("float", "[value=0.25]"), ("bool", "[value=0]"), NONE], 3),
        ([SELF, ("int[]", "[value=[1, 1]]"), ("float", "[value=0.5]"), ("bool", "[value=1]"), NONE], 4),
        ([SELF, ("int[]", "[value=[1, 1]]"), ("float", "[value=0.5]"), ("bool", "[value=0]"), ("int", "[value=6]")], 5),
    ],
)
def test_trailing_defaults_are_dropped(values, expected):
    schema = SCHEMA.replace(", Tensor(a!) out", "").replace("Tensor(a!)", "Tensor")
    assert necessary(schema, *values) == (expected, 0)
    assert necessary(SCHEMA, *values, SELF) == (expected, 1)


def test_a_value_of_another_kind_is_no_default():
    assert necessary("x::f(Scalar a=1) -> Tensor", ("float", "[value=1.]")) == (1, 0)
    assert necessary("x::f(Scalar a=1) -> Tensor", ("int", "[value=1]")) == (0, 0)


def test_varargs_are_all_written():
    assert necessary("x::f(str a, ...) -> Tensor", ("str", '[value="a"]'), SELF, SELF) == (3, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int[2] padding=0", [0, 0]),
        ("int[2] padding=[1, 2]", [1, 2]),
        ("int[1]? stride=None", None),
        ("int[] dims=[]", []),
        ("float p=0.5", 0.5),
    ],
)
def test_a_default_is_written_whole(text: str, expected: object) -> None:
    (argument,) = parse_schema(f"f({text}) -> ()").arguments
    assert whole_default(argument) == expected
