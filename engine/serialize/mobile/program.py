"""The bytecode in a file: from the record `bytecode.pkl` of a zip archive, or from a flatbuffer.

In: an open container, and what makes the values that functions have as constants.  Out: a `MobileProgram`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.serialize.container.read import Container
from engine.serialize.mobile.bare import BareClasses
from engine.serialize.mobile.bytecode import MobileFunction, MobileInstruction, MobileProgram, Operator
from engine.serialize.mobile.file import BYTECODE
from engine.serialize.mobile.flatbuffer import FlatTable, refused
from engine.serialize.mobile.records import version_of
from engine.serialize.mobile.schema import OPCODES
from engine.serialize.mobile.values import Values
from engine.serialize.pickling.scan import PickleRefusal, expect_tuple
from engine.serialize.pickling.tensors import TensorReader
from engine.serialize.pickling.unpickle import unpickle

T = TypeVar("T")


def pickled_program(
    container: Container, classes: BareClasses, *, swapped: bool = False, map_location: scalars.device | None = None
) -> MobileProgram:
    """The bytecode in a zip archive; its tensors as `TensorReader` reads them, objects among the constants of
    `classes`.  Raises ArchiveError."""
    folder = "constants" if any(name.startswith("constants/") for name in container.names()) else "data"
    tensors = TensorReader(container, folder, swapped, map_location)
    value = unpickle(container.read(BYTECODE), BYTECODE, tensors, classes.find, classes.run, classes.fill)
    if not _tuple(value, "it") or type(value[0]) is not int:
        raise _damaged("it does not begin with its version")
    return MobileProgram(value[0], tuple(map(_function, value[1:])))


def flatbuffer_program(values: Values) -> MobileProgram:
    """The bytecode in a flatbuffer; `values` make its constants.  Raises ArchiveError where it makes no sense."""
    members = (table["val"] for table in values.root.listed("ivalues"))
    tables = (member.value for member in members if member is not None and member.kind == "Function")
    return MobileProgram(version_of(values.root), tuple(_from_table(table, values) for table in tables))


# -- from a pickle


def _damaged(reason: str) -> ArchiveError:
    return ArchiveError(f"the bytecode is refused: {reason}", record=BYTECODE)


def _tuple(value: Any, what: str) -> tuple[Any, ...]:
    try:
        return expect_tuple(value, what)
    except PickleRefusal as reason:
        raise _damaged(str(reason)) from None


def _function(value: Any) -> MobileFunction:
    if len(_tuple(value, "a function")) not in (2, 3) or type(value[0]) is not str:
        raise _damaged("a function is no name with its tables")
    tables = _table(value[1])
    schema = _table(value[2]) if len(value) == 3 else {}
    registers = tables.get("register_size", 0)
    return MobileFunction(
        value[0],
        tuple((name, type) for name, type in _rows(schema, "arguments", _argument)),
        tuple(type for _, type in _rows(schema, "returns", _argument)),
        _rows(tables, "instructions", _instruction),
        _rows(tables, "operators", _operator),
        _rows(tables, "constants", lambda constant: constant),
        _rows(tables, "types", _text),
        registers if type(registers) is int else 0,
        {name: default for name, default in _rows(schema, "arguments", _default) if default is not None},
    )


def _table(value: Any) -> dict[str, Any]:
    """Pairs of a name and a value."""
    if any(len(_tuple(each, "a part of a table")) != 2 for each in _tuple(value, "a table")):
        raise _damaged("a table is no tuple of pairs")
    return {_text(name): found for name, found in value}


def _rows(table: dict[str, Any], name: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    return tuple(map(read, _tuple(table.get(name, ()), f"'{name}'")))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _damaged("a name is no text")
    return value


def _instruction(value: Any) -> MobileInstruction:
    if tuple(map(type, _tuple(value, "an instruction"))) != (str, int, int):
        raise _damaged("an instruction is not an opcode with two numbers")
    return MobileInstruction(*value)


def _operator(value: Any) -> Operator:
    if len(_tuple(value, "an operator")) not in (2, 3):
        raise _damaged("an operator is no name with its overload")
    arguments = value[2] if len(value) == 3 and type(value[2]) is int and value[2] >= 0 else None
    return Operator(_text(value[0]), _text(value[1]), arguments)


def _argument(value: Any) -> tuple[str, str]:
    described = _table(value)
    return _text(described.get("name")), _text(described.get("type"))


def _default(value: Any) -> tuple[str, Any]:
    described = _table(value)
    return _text(described.get("name")), described.get("default_value")


# -- from a flatbuffer


def _from_table(table: FlatTable, values: Values) -> MobileFunction:
    schema = table["schema"]
    arguments = [] if schema is None else schema.listed("arguments")
    returns = [] if schema is None else schema.listed("returns")
    defaults = {each["name"] or "": values.value(each["default_value"], each) for each in arguments}
    return MobileFunction(
        table["qn"] or "",
        tuple((each["name"] or "", each["type"] or "") for each in arguments),
        tuple(each["type"] or "" for each in returns),
        tuple(_instruction_of(table, *numbers) for numbers in table.listed("instructions")),
        tuple(_operator_of(each) for each in table.listed("operators")),
        tuple(values.value(index, table) for index in table.listed("constants")),
        tuple(table.listed("type_annotations")),
        table["register_size"],
        {name: default for name, default in defaults.items() if default is not None},
    )


def _instruction_of(table: FlatTable, code: int, n: int, x: int) -> MobileInstruction:
    if not 0 <= code < len(OPCODES):
        raise refused(f"an instruction has the number {code}, and {len(OPCODES)} are known", table.at)
    return MobileInstruction(OPCODES[code], x, n)


def _operator_of(table: FlatTable) -> Operator:
    count = table["num_args_serialized"]
    return Operator(table["name"] or "", table["overload_name"] or "", count if count >= 0 else None)
