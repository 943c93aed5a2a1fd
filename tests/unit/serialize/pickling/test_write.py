"""Pickles as archives hold them: opcode for opcode, and readable by Python's own pickle where it can."""

import pickle

import pytest

from engine.aten.values.ivalue import EnumValue, Object
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    STR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    OptionalType,
    TupleType,
    UnionType,
)
from engine.serialize.pickling.unpickle import unpickle
from engine.serialize.pickling.write import Pickler


def dump(value, type=ANY):
    return Pickler(lambda type: type.qualname, lambda type: type.annotation_str).dump(value, type)


@pytest.mark.parametrize(
    ("value", "type", "opcodes"),
    [
        (None, ANY, b"N"),
        (True, BOOL, b"\x88"),
        (7, INT, b"K\x07"),
        (256, INT, b"M\x00\x01"),
        (-3, INT, b"J\xfd\xff\xff\xff"),
        (65536, INT, b"J\x00\x00\x01\x00"),
        (1 << 40, INT, b"\x8a\x08" + (1 << 40).to_bytes(8, "little")),
        (1.0, FLOAT, b"G?\xf0" + bytes(6)),
        ("a", STR, b"X\x01\0\0\0aq\0"),
        ((), TupleType(()), b")"),
        ((1, 2), TupleType((INT, INT)), b"K\x01K\x02\x86"),
        ((1,) * 4, TupleType((INT,) * 4), b"(" + b"K\x01" * 4 + b"t"),
        ([1], ListType(INT), b"ctorch.jit._pickle\nbuild_intlist\nq\0(](K\x01etR"),
        ([], ListType(FLOAT), b"ctorch.jit._pickle\nbuild_doublelist\nq\0(](etR"),
        (
            ["a"],
            ListType(STR),
            b"ctorch.jit._pickle\nrestore_type_tag\nq\0](X\x01\0\0\0aq\x01eX\x09\0\0\0List[str]q\x02\x86R",
        ),
        ({}, DictType(STR, INT), b"ctorch.jit._pickle\nrestore_type_tag\nq\0}(uX\x0e\0\0\0Dict[str, int]q\x01\x86R"),
        ([1], OptionalType(ListType(INT)), b"ctorch.jit._pickle\nbuild_intlist\nq\0(](K\x01etR"),
        (
            ["a"],
            UnionType((INT, ListType(STR))),
            b"ctorch.jit._pickle\nrestore_type_tag\nq\0](X\x01\0\0\0aq\x01eX\x09\0\0\0List[str]q\x02\x86R",
        ),
        (scalars.CPU, DEVICE, b"ctorch\ndevice\nq\0X\x03\0\0\0cpuq\x01\x85Rq\x02"),
        (1 - 2j, COMPLEX, b"cbuiltins\ncomplex\nq\0G?\xf0" + bytes(6) + b"G\xc0" + bytes(7) + b"\x86R"),
    ],
)
def test_opcodes(value, type, opcodes):
    assert dump(value, type) == b"\x80\x02" + opcodes + b"."


def test_python_reads_plain_values_too():
    value = (1, ("a", None), 0.5, "a")
    assert pickle.loads(dump(value)) == value


def test_strings_and_names_are_written_once():
    data = dump((["x"], ["x"]), TupleType((ListType(STR), ListType(STR))))
    assert data.count(b"X\x01\0\0\0x") == 1
    assert data.count(b"restore_type_tag") == 1


def test_a_shared_list_stays_shared():
    names = ["a", "b"]
    first, second = unpickle(dump((names, names), TupleType((ListType(STR),) * 2)), "x")
    assert first == names
    assert first is second


def test_many_references():
    names = [f"n{i}" for i in range(400)]
    value = (names, list(names))
    assert unpickle(dump(value, TupleType((ListType(STR),) * 2)), "x") == value


def test_objects_and_enums():
    color = EnumType("__torch__.Color", STR, (("RED", "r"), ("BLUE", "b")))
    type = ClassType("__torch__.a.C")
    type.add_attribute("n", INT)
    type.add_attribute("color", color)
    classes = {"__torch__.a.C": type, "__torch__.Color": color}
    data = dump(Object(type, [3, EnumValue(color, "BLUE")]), type)
    assert data.startswith(b"\x80\x02c__torch__.a\nC\nq\x00)\x81}(")
    found = unpickle(data, "data.pkl", None, classes.get)
    assert found.type is type
    assert found.slots == [3, EnumValue(color, "BLUE")]


def test_an_object_with_a_slot_of_the_wrong_type_is_refused():
    type = ClassType("__torch__.C")
    type.add_attribute("n", INT)
    with pytest.raises(ArchiveError, match=r"attribute 'n' of '__torch__\.C'"):
        dump(Object(type, ["three"]), type)
    good = dump(Object(type, [3]), type)
    with pytest.raises(ArchiveError, match="attribute 'n'"):
        unpickle(good.replace(b"K\x03", b"\x88"), "data.pkl", None, {"__torch__.C": type}.get)
    with pytest.raises(ArchiveError, match="lacks 'n'"):
        unpickle(good.replace(b"\x01\0\0\0n", b"\x01\0\0\0m"), "data.pkl", None, {"__torch__.C": type}.get)


def test_state_methods_are_run():
    type = ClassType("__torch__.C")
    type.add_attribute("n", INT)

    class Method:
        def __init__(self, name):
            self.name = name

        @property
        def schema(self):
            returns = (Argument("", STR),)
            return FunctionSchema(
                self.name, arguments=(Argument("self", type), Argument("state", STR)), returns=returns
            )

    type.methods.update({"__getstate__": Method("__getstate__"), "__setstate__": Method("__setstate__")})

    def run(function, args):
        if function.name == "__getstate__":
            return str(args[0].get("n"))
        args[0].set("n", int(args[1]))
        return None

    data = Pickler(lambda type: type.qualname, str, run).dump(Object(type, [42]), type)
    assert b"X\x02\0\0\x0042" in data
    found = unpickle(data, "data.pkl", None, {"__torch__.C": type}.get, run)
    assert found.slots == [42]
    with pytest.raises(ArchiveError, match="runs code"):
        unpickle(data, "data.pkl", None, {"__torch__.C": type}.get)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", print])
def test_what_archives_cannot_hold_is_refused(value):
    with pytest.raises(ArchiveError, match="cannot be saved"):
        dump(value)


def test_a_value_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(ArchiveError):
        dump(loop)
