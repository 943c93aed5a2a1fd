"""Do plans do what the interpreter does, whatever calls come with, one after the other?

    python -m tests.fuzz.varied_plans [--generated 1000] [--seed 0] [--mode eager] [--profiled]

In: generated programs with forms of arguments (`varied_programs`).  Out: each call that plans answer otherwise than the
interpreter: the result, what became of the arguments, whose memory is whose, gradients; or the error, and the lines
that it shows.

A function is called with all the forms in turn, so that its plans meet calls that they were not made for: guards fail,
kernels have other sizes, graphs are split anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.grad_mode import no_grad
from engine.executor.calls.call import Boundary
from engine.executor.interpreter.interpreter import run
from engine.executor.plans.executor import executor_of
from engine.executor.plans.switches import optimized_execution
from engine.executor.profiling.settings import PROFILING
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.ir.unit import Function
from engine.lang.errors import EngineError, ExecutionError

from .meaning import Outcome
from .meaning import _flat as flat
from .meaning import _frozen as frozen
from .meaning import _is_gone as is_gone
from .meaning import _tensors as tensors
from .plans import gradients_of, needs
from .varied_programs import Form, batches, forms, program

_WRITTEN: Final = "one of the variables needed for gradient computation has been modified by an inplace operation"
"""What a backward pass says; which variable it says that of is another one where operators are in groups."""
TOLERANCE: Final = 1e-4
"""Kernels round otherwise."""
Forms = Callable[[Random], list[Form]]


@contextmanager
def running(mode: str, *, profiled: bool) -> Iterator[None]:
    """While the block runs, plans are made in this mode, from profiles or not."""
    before = tiering.mode(), PROFILING.is_enabled
    tiering.set_mode(mode)
    PROFILING.is_enabled = profiled
    try:
        yield
    finally:
        tiering.set_mode(before[0])
        PROFILING.is_enabled = before[1]


def outcome(function: Function, form: Form, *, optimized: bool) -> Outcome:
    """What a call does."""
    inputs: list[Any] = []
    with optimized_execution(optimized), nullcontext() if form.is_recorded else no_grad():
        try:
            given, leaves = form.arguments()
            inputs = Boundary(function.schema).inputs(given, {})
            result = flat([run(executor_of(function), [*inputs])])
            told = frozen(result), frozen(flat(inputs)), needs(result)
            gradients = gradients_of(result, leaves)
        except EngineError as error:
            kind = _WRITTEN if _WRITTEN in error.message else f"{type(error).__name__}: {error.message}"
            return Outcome(None, frozen(flat(inputs)), "", kind, error.range, lines(error))
    write_to_all(result)
    return Outcome((told[0], told[2], gradients), told[1], "", "", shared=frozen((result, inputs)))


def write_to_all(result: list[Any]) -> None:
    """Write to each tensor of the result, something else each time, that is no other number for one a little less."""
    for number, each in enumerate(tensors(result), 1):
        if each.array.flags.writeable:
            each.array[...] = np.nan_to_num(each.array.astype(float)).clip(-9, 9) + 100 * number


def lines(error: EngineError) -> list[tuple[str, int]]:
    """The functions and lines that the error shows."""
    frames = error.frames if isinstance(error, ExecutionError) else ()
    return [(frame.function, frame.range.line) for frame in frames]


def problems(name: str, text: str, forms: list[Form], mode: str, *, profiled: bool) -> Iterator[str]:
    """Each call that plans answer otherwise."""
    function, reference = (compile_source(text).functions["f"] for _ in range(2))
    with running(mode, profiled=profiled):
        for number, form in enumerate(forms):
            expected = outcome(reference, form, optimized=False)
            found = outcome(function, form, optimized=True)
            executor = executor_of(function)
            if not _same(found, expected) and not is_gone(expected, executor.recent_graph):
                head = f"=== {name}, call {number} in mode {mode}, {profiled=}: {form}"
                yield f"{head}\ngives\n{expected}\nand with a plan\n{found}\n{text}\n{executor.recent_graph}"


def _same(found: Outcome, expected: Outcome) -> bool:
    """True for the same outcome; errors show the same lines.  A plan may need less of what the program writes to."""
    if expected.error == _WRITTEN and not found.error:
        return True
    return found.same(expected, TOLERANCE) and (not found.error or found.shared == expected.shared)


def generated(seed: int, forms: Forms = forms) -> tuple[str, str, list[Form]]:
    """The program of that number, with the forms of its calls."""
    random = Random(seed)
    text = program(random)
    return f"generated {seed}", text, forms(random)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--generated", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--mode", choices=tiering.MODES, default="eager")
    parser.add_argument("--profiled", action="store_true", help="make plans from profiles")
    parser.add_argument("--batches", action="store_true", help="calls differ in the number of rows alone")
    options = parser.parse_args(argv)
    count = 0
    for seed in range(options.seed, options.seed + options.generated):
        tried = generated(seed, batches if options.batches else forms)
        for problem in problems(*tried, options.mode, profiled=options.profiled):
            count += 1
            print(problem if count <= options.show else problem.splitlines()[0])
        for mistake in tiering.failures():
            print(f"=== generated {seed}, the compiler fails\n{mistake}")
        tiering.forget_failures()
    print(f"{options.generated} programs, {count} problems")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
