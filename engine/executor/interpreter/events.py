"""Events of a run, and the hooks that make them.

In: an `InterpreterState`, before each of its instructions.  Out: calls of a listener with events, or a stop.
Every class here is a hook (`InterpreterState(code, hooks=[...])`); a run without hooks knows nothing of them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any

from engine.executor.bytecode.instructions import CONSTANT, Instruction
from engine.executor.interpreter.interpreter import InterpreterState
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class InstructionEvent:
    """An instruction that is about to run: in which function, how deep in calls, with which input values."""

    function: str
    depth: int
    pc: int
    instruction: Instruction
    inputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Tracer:
    """Tells the listener of each instruction."""

    listener: Callable[[InstructionEvent], object]

    def __call__(self, state: InterpreterState) -> None:
        frame = state.frame
        inputs = tuple(frame.registers[r] for r in frame.instruction.inputs)
        self.listener(InstructionEvent(frame.code.name, len(state.frames), frame.pc, frame.instruction, inputs))


class Breakpoints:
    """Suspends the run when it comes to one of these source lines, once for each time it comes there.

    `resume` goes on: a line at which the run stands does not stop it again before it has left the line.
    """

    __slots__ = ("_standing_at", "lines")

    def __init__(self, lines: Iterable[int]) -> None:
        self.lines = set(lines)
        self._standing_at: tuple[int, int | None] | None = None

    def __call__(self, state: InterpreterState) -> None:
        instruction = state.frame.instruction
        if instruction.opcode == CONSTANT:
            return  # stands at the start of the graph, wherever the program wrote it
        range = instruction.range
        place = (len(state.frames), range.line if range else None)
        if place == self._standing_at:
            return
        self._standing_at = None
        if place[1] in self.lines:
            self._standing_at = place
            state.suspend()


class InterruptPoll:
    """Lets Ctrl-C wait for the end of an instruction: `with InterruptPoll() as poll: InterpreterState(code, [poll])`.

    Off the main thread, where Python delivers no signals, it does nothing.
    """

    __slots__ = ("_asked", "_previous")

    def __init__(self) -> None:
        self._asked = False
        self._previous: Any = None

    def __enter__(self) -> InterruptPoll:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def __call__(self, _: InterpreterState) -> None:
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked = True
