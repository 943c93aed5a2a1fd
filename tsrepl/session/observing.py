"""Commands that run an expression to observe it: `%trace`, `%time`, `%bisect`.

In: an expression.  Out: a `TraceReply`: each instruction with the registers it read and wrote; a `TimeReply`, for which
the expression is compiled once and run in rounds that are long enough for the clock; or a `TextReply` naming the
rewrite of a pass that changes the expression's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

from engine.executor.bytecode.instructions import CALL, CONSTANT, DROP, ENTER, EXIT, LOAD, RETURN, Instruction
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.executor import code_of
from engine.frontend.compilation.entries import ENTRY
from engine.ir.unit import Function
from engine.passes.pipeline import ALIASES, OPTIMIZE, PIPELINES, names
from engine.torch.jit.probing.bisection import bisect as find_culprit
from tsrepl.session.replies import Reply, TextReply, TimeReply, TraceReply, TraceRow
from tsrepl.session.values import summary
from tsrepl.session.workspace import Workspace

# -- %trace


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


# -- %time


ROUND_SECONDS: Final = 0.2
REPEATS: Final = 5
LONG_RUN: Final = 2.0
"""An expression that takes longer is not repeated."""


def time(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%time expression`."""
    begin = perf_counter()
    function, arguments = workspace.compile_expression(argument)
    workspace.run(function, arguments)
    first = perf_counter() - begin
    once = _seconds(lambda: workspace.run(function, arguments), 1)
    loops = max(1, int(ROUND_SECONDS / max(once, 1e-9)))
    repeats = 1 if once > LONG_RUN else REPEATS
    rounds = [_seconds(lambda: workspace.run(function, arguments), loops) / loops for _ in range(repeats)]
    yield TimeReply(argument, first, min(rounds), sum(rounds) / len(rounds), loops, repeats)


def _seconds(run: Callable[[], Any], times: int) -> float:
    begin = perf_counter()
    for _ in range(times):
        run()
    return perf_counter() - begin


# -- %bisect


def bisect(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%bisect expression [pass ...]`."""
    words, chosen = argument.split(" "), list[str]()
    known = {*names(), *ALIASES, *PIPELINES}
    while len(words) > 1 and words[-1] in known:
        chosen.insert(0, words.pop())
    pipeline = [name for word in chosen for name in PIPELINES.get(word, (word,))] or list(OPTIMIZE)
    function, arguments = workspace.compile_expression(" ".join(words))
    culprit = find_culprit(function, arguments, pipeline=pipeline)
    if culprit is None:
        yield TextReply(f"no rewrite of {len(pipeline)} passes changes the result", "done")
    else:
        yield TextReply(str(culprit).rstrip(), "warning")
