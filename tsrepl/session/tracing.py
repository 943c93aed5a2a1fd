"""Traces of the interpreter, instruction by instruction.

In: an expression.  Out: a `TraceReply`: each instruction with the registers it read and wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.executor.bytecode.instructions import CALL, CONSTANT, DROP, ENTER, EXIT, LOAD, RETURN, Instruction
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.executor import code_of
from engine.ir.unit import Function
from tsrepl.session.failures import ENTRY
from tsrepl.session.replies import Reply, TraceReply, TraceRow
from tsrepl.session.values import summary
from tsrepl.session.workspace import Workspace

MOST_ROWS: Final = 1000
"""Rows that are kept: a loop may run for millions of instructions."""
_CALLING: Final = (LOAD, CONSTANT, CALL, DROP, RETURN)
"""An entry of these alone is a call, and what is called is of interest, not the entry around it."""


def trace(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%trace f(x)`."""
    function, arguments = workspace.compile_expression(argument)
    yield trace_reply(argument, function, arguments)


def trace_reply(title: str, function: Function, arguments: Sequence[Any]) -> TraceReply:
    """Run the function step by step.  Raises ExecutionError."""
    code = code_of(function)
    state = InterpreterState(code)
    state.start(*arguments)
    rows: list[TraceRow] = []
    total, going = 0, True
    while going:
        total += 1
        if total > MOST_ROWS:
            going = state.step()
            continue
        depth, frame, pc = len(state.frames) - 1, state.frame, state.frame.pc
        reads = _registers(frame, frame.instruction.inputs)
        going = state.step()
        rows.append(_row(frame, depth, pc, reads))
    left_out = max(0, total - MOST_ROWS)
    if function.name.startswith(ENTRY) and all(each.opcode in _CALLING for each in code.instructions):
        rows = [replace(row, depth=row.depth - 1) for row in rows if row.depth]
    return TraceReply(title, tuple(rows), summary(state.result), left_out)


def _row(frame: Frame, depth: int, pc: int, reads: tuple[tuple[str, str], ...]) -> TraceRow:
    instruction = frame.code.instructions[pc]
    name = frame.code.name if not frame.code.name.startswith(ENTRY) else ""
    return TraceRow(depth, name, pc, str(instruction).strip(), reads, _writes(frame, instruction))


def _writes(frame: Frame, instruction: Instruction) -> tuple[tuple[str, str], ...]:
    """The registers the instruction wrote in its own frame: a call has not returned yet."""
    return () if instruction.opcode in (CALL, ENTER, EXIT) else _registers(frame, instruction.outputs)


def _registers(frame: Frame, registers: Sequence[int]) -> tuple[tuple[str, str], ...]:
    return tuple((str(register), summary(frame.registers[register])) for register in dict.fromkeys(registers))
