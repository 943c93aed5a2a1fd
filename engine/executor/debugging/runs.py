"""Runs of instructions that follow one another whatever the values are, of which a journal needs one entry only.

In: a code, and which of its instructions a run may go past.  Out: the `Run` at an instruction.  All that the
instructions of a run change is registers, so to undo it is to restore these, and to be in its middle is to execute
its first instructions again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import ASSIGN, CONSTANT, DROP, JUMP, LOAD, OPERATE
from engine.executor.debugging.effects import Effect
from engine.lang.records import dataclass
from engine.lang.types import BOOL, NONE, NUMBER, NUMBERS, STR

LONGEST: Final = 64
"""Instructions of a run at most: so many are executed again to go back by one."""
_STRAIGHT: Final = frozenset({OPERATE, CONSTANT, ASSIGN, LOAD, DROP})
"""Opcodes behind which comes the next instruction."""
_SMALL: Final = frozenset({BOOL, NONE, NUMBER, STR, *NUMBERS})
"""Types of values that take no memory to speak of."""

Gather = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """Instructions, each once, the registers that they write, their values, and those of them that may be large.

    `is_passed` says that nothing asks where the run stands behind it.
    """

    pcs: tuple[int, ...]
    is_passed: bool
    registers: tuple[int, ...]
    values: Gather
    large: Gather | None


class Runs:
    """The runs of a code, each of `longest` instructions at most, and worked out once.

    A run ends behind an instruction for which `is_passed` is false: somebody asks there whether to stop.
    """

    def __init__(
        self, code: Code, effects: Sequence[Effect], is_passed: Sequence[bool] | None = None, longest: int = LONGEST
    ) -> None:
        self._code, self._effects, self._longest = code, effects, longest
        self._is_passed = is_passed or [True] * len(effects)
        self._known: dict[int, Run | None] = {}

    def at(self, pc: int) -> Run | None:
        """The run that begins there; None where more than registers is changed."""
        if pc not in self._known:
            self._known[pc] = self._found(pc)
        return self._known[pc]

    def _found(self, start: int) -> Run | None:
        pcs: dict[int, None] = {}
        at: int | None = start
        is_passed = True
        while at is not None and at not in pcs and len(pcs) < self._longest and self._effects[at].is_plain:
            pcs[at] = None
            if not (is_passed := self._is_passed[at]):
                break
            at = self._next(at)
        if not pcs:
            return None
        registers = (*{r: None for pc in pcs for r in self._effects[pc].registers},)
        large = (*filter(self._is_large, registers),)
        return Run((*pcs,), is_passed, registers, _gather(registers), _gather(large) if large else None)

    def _next(self, at: int) -> int | None:
        """The instruction that comes next; None where a value decides."""
        opcode, target, *_ = self._code.program[at]
        return at + 1 if opcode in _STRAIGHT else target if opcode == JUMP else None

    def _is_large(self, register: int) -> bool:
        value = self._code.values[register] if register < len(self._code.values) else None
        return value is not None and value.type not in _SMALL


def _gather(registers: tuple[int, ...]) -> Gather:
    if len(registers) == 1:
        return itemgetter(slice(registers[0], registers[0] + 1))
    return itemgetter(*registers)
