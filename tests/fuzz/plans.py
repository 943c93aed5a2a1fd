"""Do the plans of the executor do what the interpreter does?

    python -m tests.fuzz.plans [FILE.jsonl ...] [--generated 1000] [--seed 0]

In: programs with arguments: the cases of conformance files, generated ones.  Out: each call that a specialised plan
(optimized, as generated code where that can be) answers otherwise than the interpreter does with the graph that both
start from: the result, what was printed, what became of the arguments, whose memory is whose, and, where arguments
require grad, their gradients; or the kind and message of the error.

Every call is made twice with each way of taking gradients, so that a plan runs once when it is new and once when it is
kept.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

from engine.aten.autograd.engine import backward
from engine.aten.dispatch.grad_mode import no_grad
from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import Boundary
from engine.executor.interpreter.interpreter import run
from engine.executor.plans import tiers
from engine.executor.plans.executor import executor_of
from engine.executor.plans.switches import optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import Function
from engine.lang.errors import EngineError

from .meaning import Outcome, of_cases
from .meaning import _flat as flat
from .meaning import _frozen as frozen
from .meaning import _is_gone as is_gone
from .meaning import _write_to_all as write_to_all
from .typed_programs import arguments, program

Arguments = Callable[[], Sequence[Any]]
WAYS: Final = ("with grad mode off", "with nothing to differentiate", "with gradients")
"""How the calls are made."""


def outcome(function: Function, make: Arguments, way: str, optimized: bool) -> Outcome:
    """What a call does."""
    printed = io.StringIO()
    inputs: list[Any] = []
    leaves: list[Tensor] = []
    silent = no_grad() if way == WAYS[0] else nullcontext()
    with redirect_stdout(printed), optimized_execution(optimized), silent:
        try:
            inputs = Boundary(function.schema).inputs(make(), {})
            if way == WAYS[2]:
                inputs, leaves = differentiable(inputs)
            result = flat([run(executor_of(function), list(inputs))])
            told = frozen(result), frozen(flat(inputs)), needs(result)
            gradients = gradients_of(result, leaves)
        except EngineError as error:
            kind = f"{type(error).__name__}: {error.message}"
            return Outcome(None, frozen(flat(inputs)), printed.getvalue(), kind, error.range)
    write_to_all(result)
    return Outcome((told[0], told[2], gradients), told[1], printed.getvalue(), "", shared=frozen((result, inputs)))


def differentiable(inputs: Sequence[Any]) -> tuple[list[Any], list[Tensor]]:
    """The inputs, with tensors that are computed from leaves which require grad in place of those of floats."""
    leaves: dict[int, Tensor] = {}
    made: dict[int, Tensor] = {}
    times = find("aten::mul.Scalar")
    assert times is not None

    def change(value: Any) -> Any:
        if isinstance(value, Tensor) and value.array.dtype.kind == "f":
            if id(value) not in made:
                value.requires_grad = True
                leaves[id(value)] = value
                made[id(value)] = times.run(value, 1.0)
            return made[id(value)]
        return [change(each) for each in value] if isinstance(value, list) else value

    return [change(value) for value in inputs], list(leaves.values())


def needs(values: Sequence[Any]) -> Any:
    """Which of the tensors require grad."""
    return [value.requires_grad if isinstance(value, Tensor) else None for value in flat_lists(values)]


def flat_lists(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat_lists(value)
        else:
            yield value


def gradients_of(result: Sequence[Any], leaves: Sequence[Tensor]) -> Any:
    """What backward passes from each tensor of the result give the leaves in all."""
    total = find("aten::sum")
    assert total is not None
    for value in flat_lists(result):
        if leaves and isinstance(value, Tensor) and value.requires_grad:
            backward([total.run(value, None)], [None], retain_graph=True)
    return [frozen(leaf.grad) for leaf in leaves]


def problems(name: str, text: str, function: Function, calls: Sequence[Arguments]) -> Iterator[str]:
    """Each call that plans answer otherwise."""
    for number, make in enumerate(calls):
        for way in WAYS:
            expected = outcome(function, make, way, optimized=False)
            for again in ("", ", again"):
                found = outcome(function, make, way, optimized=True)
                plan = executor_of(function)._recent[1]
                if not found.same(expected) and not (plan and is_gone(expected, plan.graph)):
                    source = f"{plan.graph}\n{plan.source}" if plan else ""
                    head = f"=== {name}, call {number} {way}{again}, gives\n{expected}\nand with a plan\n{found}"
                    yield f"{head}\n{text}\n{source}"


def generated(seed: int) -> tuple[str, str, Function, list[Arguments]]:
    """The program of that number, with three calls."""
    text = program(Random(seed))
    calls: list[Arguments] = [partial(_arguments, seed, number) for number in range(3)]
    return f"generated {seed}", text, compile_source(text).functions["f"], calls


def _arguments(seed: int, number: int) -> Sequence[Any]:
    return arguments(Random(f"{seed} {number}"))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--generated", type=int, default=0, help="how many generated programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args(argv)
    patch.object(tiers, "making_takes", lambda nodes: 0).start()  # plans run from the second call on, or the third
    counts = Counter[str]()
    found = (case for path in options.files for case in of_cases(path))
    cases = ((name, text, unit.functions[entry], calls) for name, text, unit, entry, calls in found)
    made = (generated(options.seed + number) for number in range(options.generated))
    for tried in chain(cases, made):
        counts["programs"] += 1
        counts["calls"] += len(tried[3])
        for problem in problems(*tried):
            counts["problems"] += 1
            print(problem if counts["problems"] <= options.show else problem.splitlines()[0])
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["problems"] > 0)


if __name__ == "__main__":
    sys.exit(main())
