"""Names, types and constants as archives write them."""

import math

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    TENSOR,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TupleType,
    UnionType,
)
from engine.serialize.code.python_text import ConstantTable, ConstantWriter, annotation, identifier_from

POINT = TupleType((INT, INT), "__torch__.Point", ("x", "y"))


def named(_type, qualname):
    return qualname.replace("__torch__", "here")


def text(value, type=ANY):
    return ConstantWriter(named, ConstantTable()).text(value, type)


@pytest.mark.parametrize(("name", "identifier"), [("x", "x"), ("0", "_0"), ("a.b", "a_b"), ("", "_"), ("é", "_")])
def test_identifiers(name, identifier):
    assert identifier_from(name) == identifier


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        (INT, "int"),
        (ListType(POINT), "List[here.Point]"),
        (DictType(STR, OptionalType(POINT)), "Dict[str, Optional[here.Point]]"),
        (TupleType(()), "Tuple[()]"),
        (TupleType((INT, FutureType(TENSOR))), "Tuple[int, Future[Tensor]]"),
        (UnionType((INT, POINT)), "Union[int, here.Point]"),
    ],
)
def test_annotations(type, expected):
    assert annotation(type, named) == expected


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (1, INT, "1"),
        (1, BOOL, "True"),
        (0.1, FLOAT, "0.10000000000000001"),
        (-0.0, FLOAT, "-0."),
        (math.inf, FLOAT, "inf"),
        (1e20, FLOAT, "1e+20"),
        ("a'\t", STR, '"a\\\'\\t"'),
        (scalars.CPU, ANY, 'torch.device("cpu")'),
        ((1,), TupleType((INT,)), "(1,)"),
        ((1, 2), POINT, "here.Point(1, 2)"),
        ([], ListType(INT), "annotate(List[int], [])"),
        ([1], ListType(INT), "[1]"),
        ([1], ListType(OptionalType(INT)), "annotate(List[Optional[int]], [1])"),
        ({}, DictType(STR, INT), "annotate(Dict[str, int],{})"),
        ({"a": [1]}, DictType(STR, ListType(INT)), '{"a": [1]}'),
        ("é", STR, "CONSTANTS.c0"),
    ],
)
def test_constants(value, type, expected):
    assert text(value, type) == expected


def test_equal_tensors_have_one_entry():
    table = ConstantTable()
    write = ConstantWriter(named, table).text
    tensors = [Tensor(np.array(v, np.float32)) for v in ([1.0], [1.0], [2.0])]
    assert [write(t, TENSOR) for t in tensors] == ["CONSTANTS.c0", "CONSTANTS.c0", "CONSTANTS.c1"]
    assert len(table.values) == len(table.types) == 2
