"""Values against the types of their slots."""

import numpy as np
import pytest

from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    OptionalType,
    TupleType,
    UnionType,
)
from engine.serialize.pickling.value_types import misfit

COLOR = EnumType("__torch__.Color", STR, (("RED", "r"),))
CLASS = ClassType("__torch__.C")
X = Tensor(np.zeros(2, np.float32))

FITS = [
    (1, INT),
    (1.0, FLOAT),
    (1j, COMPLEX),
    (True, BOOL),
    ("a", STR),
    (None, NONE),
    (X, TENSOR),
    (1, NUMBER),
    (1.5, NUMBER),
    (scalars.CPU, DEVICE),
    ([1, 2], ListType(INT)),
    ([], ListType(STR)),
    ({"a": 1}, DictType(STR, INT)),
    ((1, "a"), TupleType((INT, STR))),
    (None, OptionalType(INT)),
    (1, OptionalType(INT)),
    ([1], OptionalType(ListType(INT))),
    ("a", UnionType((INT, STR))),
    (object, ANY),
    (EnumValue(COLOR, "RED"), COLOR),
    (Object(CLASS), CLASS),
]
DIFFER = [
    (True, INT),
    (1, FLOAT),
    (1, BOOL),
    (b"a", STR),
    (0, NONE),
    (None, TENSOR),
    ("a", NUMBER),
    ([1, "a"], ListType(INT)),
    ((1, 2), ListType(INT)),
    ({"a": "b"}, DictType(STR, INT)),
    ({1: 1}, DictType(STR, INT)),
    ((1,), TupleType((INT, STR))),
    ([1], TupleType((INT,))),
    ("a", OptionalType(INT)),
    (1.5, UnionType((INT, STR))),
    ("r", COLOR),
    (Object(CLASS), ClassType("__torch__.C")),
    ([[1, ["a"]]], ListType(ListType(INT))),
]


@pytest.mark.parametrize(("value", "type"), FITS)
def test_fits(value, type):
    assert misfit(value, type) is None


@pytest.mark.parametrize(("value", "type"), DIFFER)
def test_differs(value, type):
    assert "is wanted" in misfit(value, type)


def test_shared_parts_are_checked_once():
    value, type = [1], ListType(INT)
    for _ in range(100):
        value, type = [value, value], ListType(type)
    assert misfit(value, type) is None
