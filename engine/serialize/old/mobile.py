"""Bytecode for mobile devices: the record `bytecode.pkl` of an archive that ends in `.ptl`, to be looked at.

In: an open container.  Out: the functions with their instructions, in a listing.  It is not run: such an archive also
holds the code it was made from, and that runs as any other's.

    __torch__.M.forward(self : __torch__.M, x : Tensor) -> Tensor
       0  MOVE 2 0
       1  OP 0 0             aten::relu, 1 argument
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from engine.lang.counts import counted
from engine.lang.errors import ArchiveError
from engine.serialize.container.read import Container
from engine.serialize.pickling.tensors import TensorReader
from engine.serialize.pickling.unpickle import unpickle

BYTECODE: Final = "bytecode.pkl"
_MAX_SHOWN: Final = 60
T = TypeVar("T")


class Instruction(NamedTuple):
    """An opcode with its two operands; what they mean depends on it."""

    opcode: str
    x: int
    n: int


class Operator(NamedTuple):
    """An operator that the instruction `OP` names by its number; how many arguments it is given, where that is told."""

    name: str
    overload: str
    arguments: int | None

    def __str__(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


class MobileFunction(NamedTuple):
    """One function: what its instructions name by number stands in the tables."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    operators: tuple[Operator, ...]
    constants: tuple[Any, ...]
    types: tuple[str, ...]
    registers: int

    def listing(self) -> str:
        """The signature, and a line for each instruction with what its number stands for."""
        arguments = ", ".join(f"{name} : {type}" for name, type in self.arguments)
        lines = [f"{self.name}({arguments}) -> {', '.join(self.returns) or 'NoneType'}"]
        for at, instruction in enumerate(self.instructions):
            shown = f"{instruction.opcode} {instruction.x} {instruction.n}"
            lines.append(f"{at:4d}  {shown:<24}{self._meaning(at, instruction)}".rstrip())
        return "\n".join(lines)

    def _meaning(self, at: int, instruction: Instruction) -> str:
        explain = _MEANINGS.get(instruction.opcode)
        return explain(self, at, instruction) if explain else ""


class MobileProgram(NamedTuple):
    """All that a `bytecode.pkl` holds."""

    version: int
    functions: tuple[MobileFunction, ...]

    def operators(self) -> list[str]:
        """The qualified names of all operators that the instructions may call, each once."""
        return list(dict.fromkeys(str(each) for function in self.functions for each in function.operators))

    def listing(self) -> str:
        return "\n\n".join(function.listing() for function in self.functions)


def mobile_program(container: Container) -> MobileProgram | None:
    """The bytecode in an archive; None when it has none.  Raises ArchiveError where it makes no sense."""
    if BYTECODE not in container:
        return None
    folder = "constants" if any(name.startswith("constants/") for name in container.names()) else "data"
    value = unpickle(container.read(BYTECODE), BYTECODE, TensorReader(container, folder))
    if not isinstance(value, tuple) or not value or type(value[0]) is not int:
        raise _damaged("it does not begin with its version")
    return MobileProgram(value[0], tuple(map(_function, value[1:])))


def without_code(container: Container) -> ArchiveError | None:
    """Why an archive that has bytecode and nothing else cannot be loaded; None for any other."""
    if BYTECODE not in container or any(name.startswith("code/") for name in container.names()):
        return None
    return ArchiveError(
        "the archive holds instructions for mobile devices, and not the code they were made from",
        record=BYTECODE,
        hints=("tsrepl show lists them; to run the model, export it again with torch.jit.save",),
    )


# -- reading


def _damaged(reason: str) -> ArchiveError:
    return ArchiveError(f"the bytecode is refused: {reason}", record=BYTECODE)


def _function(value: Any) -> MobileFunction:
    if not isinstance(value, tuple) or len(value) not in (2, 3) or type(value[0]) is not str:
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
    )


def _table(value: Any) -> dict[str, Any]:
    """Pairs of a name and a value."""
    if not isinstance(value, tuple) or any(not isinstance(each, tuple) or len(each) != 2 for each in value):
        raise _damaged("a table is no tuple of pairs")
    return {_text(name): found for name, found in value}


def _rows(table: dict[str, Any], name: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    rows = table.get(name, ())
    if not isinstance(rows, tuple):
        raise _damaged(f"'{name}' is no tuple")
    return tuple(map(read, rows))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _damaged("a name is no text")
    return value


def _instruction(value: Any) -> Instruction:
    if not isinstance(value, tuple) or len(value) != 3 or tuple(map(type, value)) != (str, int, int):
        raise _damaged("an instruction is not an opcode with two numbers")
    return Instruction(*value)


def _operator(value: Any) -> Operator:
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        raise _damaged("an operator is no name with its overload")
    arguments = value[2] if len(value) == 3 and type(value[2]) is int else None
    return Operator(_text(value[0]), _text(value[1]), arguments)


def _argument(value: Any) -> tuple[str, str]:
    described = _table(value)
    return _text(described.get("name")), _text(described.get("type"))


# -- what numbers stand for


def _entry(table: Sequence[T], index: int) -> T | str:
    return table[index] if 0 <= index < len(table) else "(no such entry)"


def _named_operator(function: MobileFunction, _: int, instruction: Instruction) -> str:
    found = _entry(function.operators, instruction.x)
    count = found.arguments if isinstance(found, Operator) else None
    return f"{found}" if count is None else f"{found}, {counted(count, 'argument')}"


def _constant(function: MobileFunction, _: int, instruction: Instruction) -> str:
    shown = " ".join(repr(_entry(function.constants, instruction.x)).split())
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def _type(function: MobileFunction, _: int, instruction: Instruction) -> str:
    return str(_entry(function.types, instruction.x))


def _target(_function: MobileFunction, at: int, instruction: Instruction) -> str:
    return f"-> {at + instruction.x}"


_MEANINGS: Final[dict[str, Callable[[MobileFunction, int, Instruction], str]]] = {
    "OP": _named_operator, "OPN": _named_operator, "LOADC": _constant,
    **dict.fromkeys("LIST_CONSTRUCT DICT_CONSTRUCT NAMED_TUPLE_CONSTRUCT CREATE_OBJECT ISINSTANCE".split(), _type),
    **dict.fromkeys(("JF", "JMP", "LOOP"), _target),
}  # fmt: skip
