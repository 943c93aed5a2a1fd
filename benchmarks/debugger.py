"""The cost of debugging: an instruction of a recorded run beside one of the interpreter, with and without stops.

    python benchmarks/debugger.py

Prints microseconds of the thread's own time for an instruction, and the ratio to the interpreter's step, of a loop of
tensors and a loop of whole numbers: recorded, with a conditional breakpoint that never holds, with a watch, and going
back.  All ways take turns, and the least time of each counts, so that what else a machine does falls on all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from engine.aten.values.tensor import tensor
from engine.executor.debugging.debugger import Debugger
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import code_of
from engine.frontend.compilation.compile import compile_source

PROGRAM = """
def tensors(x: Tensor, n: int):
    h = x
    for i in range(n):
        h = torch.tanh(h * 0.5 + x)
        h.add_(1.0)
    return h

def numbers(x: Tensor, n: int):
    h = 0
    for i in range(n):
        h = h + i * 3
        if h > 1000:
            h = h - 1000
    return h
"""
ROUNDS = 2000
REPEATS = 7


def stepped(function: Any, inputs: list[Any]) -> tuple[float, int]:
    """Seconds and instructions of the interpreter, step by step."""
    state = InterpreterState(code_of(function))
    state.start(*inputs)
    count, start = 0, time.thread_time()
    while state.step():
        count += 1
    return time.thread_time() - start, count


def debugged(
    prepare: Callable[[Debugger], object], go: Callable[[Debugger], object], function: Any
) -> tuple[float, int]:
    """Seconds and instructions of a recorded run that is prepared, and then goes somewhere."""
    debugger = Debugger(function, arguments())
    prepare(debugger)
    before, start = debugger.recording.position, time.thread_time()
    go(debugger)
    return time.thread_time() - start, abs(debugger.recording.position - before)


def arguments() -> list[Any]:
    return [tensor([0.1, 0.2, 0.3, 0.4]), ROUNDS]


Way = tuple[Callable[[Debugger], object], Callable[[Debugger], object]]
WAYS: dict[str, Way] = {
    "recorded": (lambda d: None, Debugger.go),
    "breakpoint … if i == -1": (lambda d: d.break_at("if i == -1"), Debugger.go),
    "breakpoint … if h.max() > 1e9": (lambda d: d.break_at("if h.max() > 1e9"), Debugger.go),
    "watch nan": (lambda d: d.watch("nan"), Debugger.go),
    "back": (Debugger.go, Debugger.back_go),
}


def main() -> None:
    unit = compile_source(PROGRAM, filename="prog.py")
    for name, function in unit.functions.items():
        ways = {way: call for way, call in WAYS.items() if name == "tensors" or "max" not in way}
        least = dict.fromkeys(["", *ways], float("inf"))
        for _ in range(REPEATS):
            for way, (seconds, count) in measured(function, ways):
                least[way] = min(least[way], seconds / count)
        base = least.pop("")
        print(f"{name:32} {base * 1e6:7.2f} µs a step of the interpreter")
        for way, seconds in least.items():
            print(f"  {way:30} {seconds * 1e6:7.2f} µs  {seconds / base:5.1f} times")


def measured(function: Any, ways: dict[str, Way]) -> Iterator[tuple[str, tuple[float, int]]]:
    """Seconds and instructions of one run without a debugger (""), and one in each way."""
    yield "", stepped(function, arguments())
    for way, (prepare, go) in ways.items():
        yield way, debugged(prepare, go, function)


if __name__ == "__main__":
    main()
