"""Breakpoints and watchpoints: where, and when, a run stops.

In: their text, as people write it.  Out: `Breakpoint`s, which know the instructions of a code at which they stop, and
what has to hold there.

    12   model.py:12            a line, or the next one at which something is done
    f   Net.forward   layer1.0  a function, a method, a module, when a call begins; .0 is the module 0
    aten::relu   relu           an operator, before each of its calls
    %z.5                        a node of the graph, by the name of its result
    guard                       a check of a plan that fails
    … if h.max() > 10           any of them, where that holds; alone: whenever a variable in it has changed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final, Protocol

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import CALL, LOAD, OPERATE, TAIL_CALL, Instruction
from engine.executor.debugging.places import line_starts, place_of, writers_of
from engine.executor.interpreter.interpreter import Frame
from engine.executor.profiling.bailouts import BAIL_OUT
from engine.ir.graph import Value
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import ClassType

Holds = Callable[[Frame], bool]
"""True where a frame is as a condition wants it; False also where the condition cannot be asked."""
Where = Callable[[Code], Iterable[int]]
"""The instructions of a code at which to stop."""


class Asked(Protocol):
    """A condition: why it could not be computed the last time, and why it never could so far; else ""."""

    @property
    def problem(self) -> str: ...

    @property
    def never(self) -> str: ...


@dataclass(eq=False, slots=True)
class Breakpoint:
    """`number` and `text` are what people call it; `hits` counts its stops, `ignore` those still to be skipped.

    `after` says that it stops behind the instructions instead of before them: a value has changed.  `condition` is the
    one that was written for it, which `holds` asks.
    """

    number: int
    text: str
    where: Where
    holds: Holds | None = None
    condition: Asked | None = None
    after: bool = False
    is_temporary: bool = False
    is_enabled: bool = True
    hits: int = 0
    ignore: int = 0
    _known: dict[Code, frozenset[int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Breakpoint {self.number}: {self.text}>"

    def pcs(self, code: Code) -> frozenset[int]:
        """The instructions of the code, found once."""
        found = self._known.get(code)
        if found is None:
            found = self._known[code] = frozenset(self.where(code))
        return found

    def forget(self) -> None:
        """Look its instructions up again: it stands somewhere else."""
        self._known.clear()

    def stops(self, frame: Frame) -> bool:
        """True if the run stops, where the frame is at, or behind, one of the instructions; counts that."""
        if not self.is_enabled or (self.holds is not None and not self.holds(frame)):
            return False
        if self.ignore:
            self.ignore -= 1
            return False
        self.hits += 1
        return True


# ------------------------------------------------------------------ places


def at_line(line: int, file: str) -> Where:
    """The beginnings of a line; `file` is the end of the file's path, "" for any."""
    return lambda code: [at for at, each in lines_of(code) if each.line == line and is_file(each.filename, file)]


def lines_of(code: Code) -> list[tuple[int, SourceRange]]:
    """The instructions at which lines begin, with their places in the author's text."""
    starts = zip(code.instructions, line_starts(code), strict=True)
    ranges = [place_of(instruction) if is_start else None for instruction, is_start in starts]
    return [(at, range) for at, range in enumerate(ranges) if range is not None]


def is_file(name: str, wanted: str) -> bool:
    """True if the wanted path is the end of the name's."""
    return not wanted or f"/{name}".endswith(f"/{wanted}")


def at_call(name: str) -> Where:
    """The beginning of functions of this name, or methods by the name of their class too: `Net.forward`."""
    return lambda code: [_first_line(code)] if name in names_of(code) else []


def _first_line(code: Code) -> int:
    """The instruction at which the first line begins, behind constants."""
    return next((at for at, is_start in enumerate(line_starts(code)) if is_start), 0)


def names_of(code: Code) -> tuple[str, ...]:
    """The names of a function: `forward`, and if it is a method `Net.forward`."""
    owner = code.graph.inputs[0].type if code.graph.inputs else None
    if not isinstance(owner, ClassType) or code.name not in owner.methods:
        return (code.name,)
    return code.name, f"{owner.qualname.rpartition('.')[2]}.{code.name}"


def at_beginning(code: Code) -> Iterable[int]:
    """The beginning of any function; that it is a module's method is a condition on the calls."""
    return [_first_line(code)]


def at_operator(kind: str) -> Where:
    """All calls of an operator, `aten::relu` or `relu`."""
    return lambda code: [at for at, i in enumerate(code.instructions) if _operator(i) and _is_kind(i, kind)]


def _operator(instruction: Instruction) -> bool:
    return instruction.opcode in (OPERATE, CALL) and instruction.node is not None


def _is_kind(instruction: Instruction, kind: str) -> bool:
    assert instruction.node is not None
    return kind in (instruction.node.kind, instruction.node.kind.partition("::")[2])


def at_node(name: str) -> Where:
    """The instruction that computes the value of that name in the graph."""

    def where(code: Code) -> Iterable[int]:
        registers = {at for at, value in enumerate(code.values) if value is not None and value.debug_name == name}
        found = [at for at, i in enumerate(code.instructions) if registers & {*i.outputs} and i.opcode != LOAD]
        return found[:1]

    return where


def at_failing_guard(code: Code) -> Iterable[int]:
    """The calls of what comes behind guards that have failed."""
    return [at for at, i in enumerate(code.instructions) if i.opcode == TAIL_CALL and _is_kind(i, BAIL_OUT)]


def at_writes(names: Iterable[str]) -> Where:
    """The instructions that give one of these variables a value."""
    return lambda code: {at for name in names for at in writers_of(code, name)}


def at_results(code: Code) -> Iterable[int]:
    """The instructions that compute values."""
    return [at for at, i in enumerate(code.instructions) if i.opcode == OPERATE and i.outputs]


# ------------------------------------------------------------------ conditions on values


@dataclass(eq=False, slots=True)
class BadResult:
    """True if the instruction before has computed a value with NaN ("nan"), infinities ("inf"), or either.

    `value` and `holds` are then the value of the graph, and what it is.
    """

    kinds: tuple[str, ...]
    value: Value | None = None
    holds: Any = None

    def __call__(self, frame: Frame) -> bool:
        for register in frame.code.instructions[frame.pc - 1].outputs:
            held = frame.registers[register]
            if is_bad(held, self.kinds):
                self.value, self.holds = frame.code.values[register], held
                return True
        return False


def is_bad(value: Any, kinds: Iterable[str] = ("nan",)) -> bool:
    """True for a number, or a tensor, list or tuple of numbers, one of which is of these kinds."""
    if isinstance(value, (list, tuple)):
        return any(is_bad(each, kinds) for each in value)
    array = _array(value)
    return array is not None and any(_TESTS[kind](array).any() for kind in kinds)


def _array(value: Any) -> Any:
    """The numbers of a tensor or float on the CPU; None where there are none to ask."""
    if isinstance(value, (float, complex)):
        return np.asarray(value)
    if not isinstance(value, Tensor) or type(value.array) is not np.ndarray or value.is_quantized:
        return None
    return value.array if value.dtype.is_floating_point or value.dtype.is_complex else None


_TESTS: Final[dict[str, Callable[[Any], Any]]] = {"nan": np.isnan, "inf": np.isinf}
BAD_VALUES: Final = frozenset(_TESTS)
