"""Bytecode for mobile devices: functions as lists of instructions, and how they are shown.

In: what a file holds (`program.py` reads it).  Out: a listing, with what the numbers in instructions stand for.

    __torch__.M.forward(self : __torch__.M, x : Tensor) -> Tensor
       0  MOVE 2 0
       1  OP 0 0             aten::relu, 1 argument
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from engine.lang.counts import counted

_MAX_SHOWN: Final = 60
_SHORT: Final = reprlib.Repr()  # a value may hold the same part any number of times
_SHORT.maxstring = _SHORT.maxother = 2 * _MAX_SHOWN
T = TypeVar("T")


class MobileInstruction(NamedTuple):
    """An opcode with its two operands; what they mean depends on it."""

    opcode: str
    x: int
    n: int


class Operator(NamedTuple):
    """An operator named by the instruction `OP`, with the number of its arguments where the file has it."""

    name: str
    overload: str
    arguments: int | None

    def __str__(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


class MobileFunction(NamedTuple):
    """One function: what its instructions name by number stands in the tables; `defaults` are those of arguments."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: tuple[str, ...]
    instructions: tuple[MobileInstruction, ...]
    operators: tuple[Operator, ...]
    constants: tuple[Any, ...]
    types: tuple[str, ...]
    registers: int
    defaults: dict[str, Any]

    def listing(self) -> str:
        """The signature, and a line for each instruction with what its number stands for."""
        arguments = ", ".join(f"{name} : {type}" for name, type in self.arguments)
        head = f"{self.name}({arguments}) -> {', '.join(self.returns) or 'NoneType'}"
        return "\n".join([head, *(f"{at:4d}  {line}" for at, line in enumerate(self.lines()))])

    def lines(self) -> list[str]:
        """The instructions as text."""
        shown = (f"{each.opcode} {each.x} {each.n}" for each in self.instructions)
        told = (self._meaning(at, each) for at, each in enumerate(self.instructions))
        return [f"{text:<24}{meaning}".rstrip() for text, meaning in zip(shown, told, strict=True)]

    def _meaning(self, at: int, instruction: MobileInstruction) -> str:
        explain = _MEANINGS.get(instruction.opcode)
        return explain(self, at, instruction) if explain else ""


class MobileProgram(NamedTuple):
    """All functions of a file, and the version of their format."""

    version: int
    functions: tuple[MobileFunction, ...]

    def operators(self) -> list[str]:
        """The qualified names of all operators that the instructions may call, each once."""
        return list(dict.fromkeys(str(each) for function in self.functions for each in function.operators))

    def listing(self) -> str:
        return "\n\n".join(function.listing() for function in self.functions)


# -- what numbers stand for


def _entry(table: Sequence[T], index: int) -> T | str:
    return table[index] if 0 <= index < len(table) else "(no such entry)"


def _named_operator(function: MobileFunction, _: int, instruction: MobileInstruction) -> str:
    found = _entry(function.operators, instruction.x)
    count = found.arguments if isinstance(found, Operator) else None
    return f"{found}" if count is None else f"{found}, {counted(count, 'argument')}"


def _constant(function: MobileFunction, _: int, instruction: MobileInstruction) -> str:
    shown = " ".join(_SHORT.repr(_entry(function.constants, instruction.x)).split())
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def _type(function: MobileFunction, _: int, instruction: MobileInstruction) -> str:
    return str(_entry(function.types, instruction.x))


def _target(_function: MobileFunction, at: int, instruction: MobileInstruction) -> str:
    return f"-> {at + instruction.x}"


_MEANINGS: Final[dict[str, Callable[[MobileFunction, int, MobileInstruction], str]]] = {
    "OP": _named_operator, "OPN": _named_operator, "LOADC": _constant,
    **dict.fromkeys("LIST_CONSTRUCT DICT_CONSTRUCT NAMED_TUPLE_CONSTRUCT CREATE_OBJECT ISINSTANCE".split(), _type),
    **dict.fromkeys(("JF", "JMP", "LOOP"), _target),
}  # fmt: skip
