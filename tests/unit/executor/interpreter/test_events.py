"""Hooks: tracing, breakpoints, a polite Ctrl-C."""

import os
import signal

import pytest

from engine.executor.bytecode import operations
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.events import Breakpoints, InstructionEvent, InterruptPoll, Tracer
from engine.executor.interpreter.interpreter import InterpreterState
from engine.frontend.compilation.compile import compile_source
from engine.ir.parser import parse_ir

PROGRAM = """def f(n: int):
    s = 0
    for i in range(n):
        s = s + i
        s = s * 2
    return s
"""


def code() -> Code:
    return Code(compile_source(PROGRAM).functions["f"].graph, "f")


def test_a_tracer_sees_operations_with_their_inputs() -> None:
    events: list[InstructionEvent] = []
    InterpreterState(code(), [Tracer(events.append)]).run(2)
    multiplied = [event.inputs[0] for event in events if event.instruction.name == "mul"]
    assert multiplied == [0, 1]
    assert {(event.function, event.depth) for event in events} == {("f", 1)}


def test_a_breakpoint_stops_each_time_its_line_is_reached() -> None:
    state = InterpreterState(code(), [Breakpoints([5])])
    state.start(2)
    seen = []
    while not state.resume():
        range = state.frame.instruction.range
        assert range is not None
        seen.append(range.line)
    assert seen == [5, 5]
    assert state.result == 2


def test_ctrl_c_waits_for_the_end_of_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def interrupted(x: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        done.append(x)
        return x + 1

    monkeypatch.setitem(operations.OPERATIONS, "prim::spy", lambda _: interrupted)
    graph = parse_ir("graph(%x : int):\n  %y : int = prim::spy(%x)\n  %z : int = aten::neg(%y)\n  return (%z)\n")
    handler = signal.getsignal(signal.SIGINT)
    with InterruptPoll() as poll:
        state = InterpreterState(Code(graph, "f"), [poll])
        with pytest.raises(KeyboardInterrupt):
            state.run(3)
        assert state.frame.instruction.name == "neg"
        assert state.resume()
    assert (done, state.result) == ([3], -4), "the instruction was not done twice"
    assert signal.getsignal(signal.SIGINT) is handler
