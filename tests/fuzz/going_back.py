"""Do recorded runs go back to what was?

    python -m tests.fuzz.going_back [FILE.jsonl ...] [--generated 1000] [--seed 0]

In: programs with arguments: the cases of conformance files, generated ones.  Out: each call where a recorded run that
went n instructions forward and n back has other registers, values, versions or random numbers than it had on the way;
with journals that hold the whole run, and with such as hold a few instructions, so that the rest is run again.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from typing import Any, Final

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.kernels.random import generator
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import Boundary
from engine.executor.concurrency.futures import Future
from engine.executor.debugging.recording import BOUND, Recording
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import Function
from engine.lang.errors import EngineError, ExecutionError

from .meaning import of_cases
from .typed_programs import arguments, program

SHORT: Final = 2000
"""Bytes of a journal that holds a few instructions."""
MOST: Final = 3000
"""Instructions of a run that are looked at."""


def state_of(recording: Recording) -> Any:
    """All that a run has and may change, as a value that compares."""
    frames = [
        (thread.number, frame.code.name, frame.pc, [_frozen(each, set()) for each in frame.registers[:-1]])
        for thread in recording.threads
        for frame in thread.state.frames
    ]
    inputs = [_frozen(each, set()) for each in recording.inputs]
    drawn = hashlib.sha1(generator().state_bytes()).hexdigest()
    return recording.position, recording.thread.number, frames, inputs, drawn, (MODE.enabled, MODE.inference)


def _frozen(value: Any, seen: set[int]) -> Any:
    if id(value) in seen:
        return "again"
    if isinstance(value, Tensor):
        seen.add(id(value))
        grad = _frozen(value._grad, seen) if value._grad is not None else None
        array = value.array
        return array.dtype.str, array.shape, array.tobytes(), value._version, value.requires_grad, grad
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_frozen(each, seen) for each in value]
    if isinstance(value, dict):
        return "dict", [(_frozen(key, seen), _frozen(each, seen)) for key, each in value.items()]
    if isinstance(value, Object):
        seen.add(id(value))
        return "object", [_frozen(each, seen) for each in value.slots]
    if isinstance(value, Future):
        return "future", value.done()
    return value if isinstance(value, (bool, int, float, complex, str, type(None))) else type(value).__name__


def problem(function: Function, inputs: Sequence[Any], bound: int) -> str:
    """Text about the first position that a run does not come back to as it was; "" if there is none."""
    recording = Recording(function, inputs, bound)
    states = [state_of(recording)]
    try:
        while not recording.finished and len(states) < MOST:
            recording.forward()
            states.append(state_of(recording))
    except ExecutionError:
        pass
    last = recording.position
    for _ in range(2):
        recording.go_to(last)
        if not recording.finished and _differs(states[last], state_of(recording)):
            return f"position {last}, again"
        while recording.back():
            if _differs(states[recording.position], state_of(recording)):
                return f"position {recording.position} of {last}"
    return ""


def _differs(a: Any, b: Any) -> bool:
    return repr(a) != repr(b)  # NaN is like NaN


def problems(name: str, function: Function, calls: Sequence[Callable[[], Sequence[Any]]]) -> Iterator[str]:
    """Each call that does not go back."""
    for number, make in enumerate(calls):
        for bound in (BOUND, SHORT):
            try:
                inputs = Boundary(function.schema).inputs(make(), {})
            except EngineError:
                continue
            with redirect_stdout(io.StringIO()):
                found = problem(function, inputs, bound)
            if found:
                yield f"{name}, call {number}, bound {bound}: {found}"


def generated(random: Random) -> tuple[Function, Callable[[], Sequence[Any]]]:
    """A program and arguments for it."""
    unit = compile_source(program(random))
    seed = random.random()
    return unit.functions["f"], lambda: arguments(Random(seed))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--generated", type=int, default=0, help="how many generated programs")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    count = 0
    for path in given.files:
        for name, _, unit, entry, calls in of_cases(path):
            for each in problems(name, unit.functions[entry], calls):
                count += 1
                print(each)
    for seed in range(given.seed, given.seed + given.generated):
        function, make = generated(Random(seed))
        for each in problems(f"seed {seed}", function, [make]):
            count += 1
            print(each)
    print(f"{count} problems")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
