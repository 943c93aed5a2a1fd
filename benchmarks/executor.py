"""What running a program costs: generated code beside the interpreter, CPython and, where it is installed, torch.jit.

    python benchmarks/executor.py [PART OF A NAME]

Out: for each program the microseconds of one call: with the engine, with its interpreter alone, with CPython running
the same source as Python (on the engine's eager tensors where there are tensors), with torch.jit; then how many times
as long the engine takes.  The same text runs everywhere.  At most 3 times as long as CPython is what we want of the
scalar loops, at most 1.0 times as long as torch.jit of the chain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, summary, table

import engine.torch as engine_torch
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering

CHAIN: Final = """
def f(x: Tensor, y: Tensor):
    a = x * y
    b = a + x
    c = torch.tanh(b)
    d = c - y
    e = torch.sigmoid(d)
    g = e * c
    h = torch.relu(g)
    i = h + 0.5
    j = torch.exp(i)
    return j / 2.0
"""
LSTM: Final = """
def f(x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    cy = (torch.sigmoid(forgetgate) * cx) + (torch.sigmoid(ingate) * torch.tanh(cellgate))
    hy = torch.sigmoid(outgate) * torch.tanh(cy)
    return hy, cy
"""
WHILE: Final = """
def f(n: int):
    total = 0
    i = 0
    while i < n:
        if i % 3 == 0:
            total += i * 2
        else:
            total -= i
        i += 1
    return total
"""
COLLATZ: Final = """
def f(n: int):
    longest = 0
    for start in range(1, n):
        x = start
        steps = 0
        while x != 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        longest = max(longest, steps)
    return longest
"""
FLOATS: Final = """
def f(n: int):
    total = 0.0
    for i in range(n):
        x = float(i) / 7.0
        total = total * 0.5 + x if x > total else total - x * 0.25
    return total
"""
ROUNDS: Final = """
def f(x: Tensor, y: Tensor):
    for i in range(6):
        x = torch.tanh(x * 0.5 + i) * y
    return x
"""
LISTS: Final = """
def f(n: int):
    found: List[int] = []
    for i in range(n):
        if i % 7 == 3:
            found.append(i)
    total = 0
    for j in range(len(found)):
        total += found[j]
    return total
"""
TEXT: Final[dict[str, tuple[str, Sequence[Any]]]] = {
    "chain of 10 on 4 x 4": (CHAIN, [(4, 4), (4, 4)]),
    "chain of 10 on 64 x 64": (CHAIN, [(64, 64), (64, 64)]),
    "LSTM cell of 4": (LSTM, [(2, 4), (2, 4), (2, 4), (16, 4), (16, 4), (16,), (16,)]),
    "6 rounds on 4 x 4": (ROUNDS, [(4, 4), (4, 4)]),
    "while of ints, 1000 rounds": (WHILE, [1000]),
    "nested loops of ints": (COLLATZ, [30]),
    "for with floats, 1000 rounds": (FLOATS, [1000]),
    "lists, 1000 rounds": (LISTS, [1000]),
}
"""Name -> program, and its arguments: numbers, or the shape of a tensor."""


def _arguments(torch: Any, wanted: Sequence[Any]) -> list[Any]:
    random = np.random.default_rng(0)
    return [
        torch.from_numpy(random.uniform(-1.0, 1.0, each).astype(np.float32)) if isinstance(each, tuple) else each
        for each in wanted
    ]


def _compiled(torch: Any, text: str, wanted: Sequence[Any]) -> Call:
    function, arguments = torch.jit.CompilationUnit(text).f, _arguments(torch, wanted)
    return lambda: function(*arguments)


def _interpreted(text: str, wanted: Sequence[Any]) -> Call:
    function = engine_torch.jit.CompilationUnit(text)._unit.functions["f"]
    code, arguments = executor_of(function).code, _arguments(engine_torch, wanted)
    return lambda: InterpreterState(code).run(*arguments)


def _python(text: str, wanted: Sequence[Any]) -> Call:
    names: dict[str, Any] = {"torch": engine_torch, "Tensor": engine_torch.Tensor, "List": list}
    exec(text, names)
    function: Callable[..., Any] = names["f"]
    arguments = _arguments(engine_torch, wanted)
    return lambda: function(*arguments)


def _warm(call: Call) -> Call:
    """The call, once native entries have come for what it does."""
    for _ in range(2):
        for _ in range(300):
            call()
        tiering.wait()
    return call


def rows(wanted: str) -> Iterator[tuple[str, Mapping[str, Call | None]]]:
    for name, (text, arguments) in TEXT.items():
        if wanted in name:
            yield (
                name,
                {
                    "engine": _warm(_compiled(engine_torch, text, arguments)),
                    "interp": _interpreted(text, arguments),
                    "CPython": _warm(_python(text, arguments)),
                    "torch": None if TORCH is None else _compiled(TORCH, text, arguments),
                },
            )


def main(wanted: str) -> None:
    if TORCH is not None:
        TORCH.set_num_threads(1)
    results = table("us per call", rows(wanted), seconds=0.5)
    print(summary(results, "CPython", 3.0))
    print(summary(results, "torch", 1.0))


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
