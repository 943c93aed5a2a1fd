"""Python values for programs: what is taken, what is refused, and what comes back."""

import enum

import numpy as np
import pytest

from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.conversion.from_python import Mismatch, from_python
from engine.executor.conversion.to_python import to_python
from engine.lang.scalars import device, float32
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBERS,
    STR,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
    union_of,
)  # fmt: skip

COLOR = EnumType("__torch__.Color", INT, (("RED", 1), ("BLUE", 2)))
POINT = TupleType((INT, FLOAT), "__torch__.Point", ("x", "y"))


@pytest.mark.parametrize(
    ("type", "given", "taken"),
    [
        (INT, True, 1), (INT, np.int64(3), 3), (INT, float32, 6), (INT, -(2**63), -(2**63)),
        (FLOAT, 1, 1.0), (FLOAT, True, 1.0), (FLOAT, np.float32(2.5), 2.5), (COMPLEX, 1, 1 + 0j),
        (BOOL, 1, True), (BOOL, np.bool_(True), True), (BOOL, None, False), (STR, b"a", "a"),
        (DEVICE, "cpu", device("cpu")), (NONE, None, None), (TENSOR, None, None),
        (OptionalType(INT), None, None), (OptionalType(INT), True, 1),
        (ListType(INT), (1, True), [1, 1]), (ListType(INT), range(3), [0, 1, 2]), (ListType(INT), np.arange(2), [0, 1]),
        (ListType(FLOAT), [1, 2.5], [1.0, 2.5]), (DictType(STR, INT), {"a": True}, {"a": 1}),
        (TupleType((INT, FLOAT)), [1, 2], (1, 2.0)), (UnionType((INT, STR)), "a", "a"),
        (union_of(NUMBERS), True, True), (ANY, [1, 2], [1, 2]), (ANY, {"a": (1, "b")}, {"a": (1, "b")}),
    ],
)  # fmt: skip
def test_taken(type: Type, given: object, taken: object) -> None:
    value = from_python(type)(given)
    assert value == taken
    assert value.__class__ is taken.__class__


@pytest.mark.parametrize(
    ("type", "given"),
    [
        (INT, 1.0), (INT, "1"), (INT, None), (INT, 2**63), (INT, [1]), (FLOAT, "x"), (FLOAT, 10**400), (FLOAT, 1j),
        (BOOL, "x"), (STR, 1), (TENSOR, 1), (TENSOR, [1.0]), (OptionalType(INT), 1.5), (ListType(INT), [1.5]),
        (ListType(INT), 3), (ListType(STR), "ab"), (ListType(TENSOR), [1]), (DictType(STR, INT), {1: 1}),
        (DictType(STR, INT), [1]), (TupleType((INT,)), (1, 2)), (TupleType((INT,)), 1), (UnionType((INT, STR)), 1.5),
        (UnionType((INT, STR)), True), (union_of([ListType(INT), ListType(FLOAT)]), []), (ANY, [1, "a"]), (ANY, []),
        (ANY, object()), (COLOR, 1), (NONE, 0), (DEVICE, 1),
    ],
)  # fmt: skip
def test_refused(type: Type, given: object) -> None:
    with pytest.raises(Mismatch):
        from_python(type)(given)


def test_tensors_stand_for_numbers_and_arrays_for_tensors() -> None:
    assert from_python(INT)(tensor([3.5])) == 3
    assert from_python(FLOAT)(tensor(3)) == 3.0
    with pytest.raises(Mismatch, match="2 elements"):
        from_python(INT)(tensor([1, 2]))
    array = np.zeros(2, np.float32)
    converted = from_python(TENSOR)(array)
    array[0] = 5
    assert isinstance(converted, Tensor)
    assert converted.tolist() == [5.0, 0.0], "it shares the memory"
    with pytest.raises(Mismatch):
        from_python(TENSOR)(np.array(["a"]))


def test_containers_are_copied_in_and_out() -> None:
    given = [[1], [2]]
    taken = from_python(ListType(ListType(INT)))(given)
    taken[0].append(5)
    assert given == [[1], [2]]
    out = to_python(ListType(ListType(INT)))
    assert out is not None
    out(taken)[1].append(6)
    assert taken == [[1, 5], [2]]


def test_enums_and_named_tuples_come_back_as_such() -> None:
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    assert from_python(COLOR)(Color.BLUE) == EnumValue(COLOR, "BLUE")
    back = to_python(COLOR)
    assert back is not None
    assert (back(EnumValue(COLOR, "RED")).name, back(EnumValue(COLOR, "RED")).value) == ("RED", 1)
    named = to_python(POINT)
    assert named is not None
    assert repr(named((1, 2.0))) == "Point(x=1, y=2.0)"
    assert to_python(TupleType((INT, FLOAT))) is None, "nothing to convert costs nothing"


def test_an_instance_of_the_python_class_is_copied_attribute_by_attribute() -> None:
    kind = ClassType("__torch__.Foo")
    kind.add_attribute("n", INT)

    class Foo:
        n = 3

    made = from_python(kind)(Foo())
    assert (type(made), made.slots) == (Object, [3])
    Foo.n = "x"  # type: ignore[assignment]
    with pytest.raises(Mismatch):
        from_python(kind)(Foo())
