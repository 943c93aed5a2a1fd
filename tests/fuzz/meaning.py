"""Do optimization passes keep what a program means?

    python -m tests.fuzz.meaning FILE.jsonl ... [--orders 20] [--generated 1000] [--seed 0]

In: programs with arguments: the cases of conformance files, generated ones.  Out: each pass, alone and in random
orders, after which a program does something else, or a graph is not well made, reads otherwise than it prints, or has
types that tensors do not have when it runs.

What a program does is told by the interpreter, on the graph as compiled and without passes in what it calls: the
result, what it printed, and what became of the arguments; or the kind and message of its error.  Then every tensor of
the result is written to, so that it shows whether results, arguments and each other share the memory they shared.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from engine.aten.ops.random import manual_seed
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.calls.call import Boundary
from engine.executor.interpreter.interpreter import Hook, InterpreterState
from engine.executor.plans.executor import GraphExecutor
from engine.executor.plans.switches import optimized_execution
from engine.frontend.compilation.compile import compile_source
from engine.ir.clone import copy_graph
from engine.ir.constants import tensor_type_of
from engine.ir.graph import Graph, Value
from engine.ir.parser import parse_ir
from engine.ir.unit import CompilationUnit
from engine.ir.verify import verify
from engine.lang.errors import EngineError, Error
from engine.lang.types import FLOAT, TENSOR, TensorType
from engine.passes.pipeline import names, run_pass

from .typed_programs import arguments, program

OTHER_MEANING: Final = {
    "eliminate_exceptions": "takes for granted that nothing is raised",
    "eliminate_no_ops": "for programs that record no gradients",
    "erase_number_types": "for exporters: ints become tensors",
    "remove_dropout": "for programs that are not being trained",
    "remove_inplace_ops": "for exporters: does not ask who else sees a write",
}
"""Passes that are meant to change what a program does."""
INEXACT: Final = ("batch_mm",)
"""Passes that may round otherwise."""
FOLDS_MEMORY: Final = ("constant_propagation",)
"""Passes after which calls share tensors and lists that were constants: nobody may write to results."""
MOVES: Final = frozenset(
    "create_autodiff_subgraphs create_functional_graphs create_fusion_groups hoist_common_nodes move_chunks "
    "loop_invariant_code_motion remove_list_mutation remove_list_mutation_and_use_variadic remove_mutation "
    "remove_tensor_mutation".split()
)
"""Passes that move nodes: where two of a program fail, another may be the first."""
LAST: Final = {"lower_all_tuples": ("inline", "lower_all_tuples")}
"""Passes after which calls do not fit what they call: these come when no calls are left, and nothing after them."""
_UNREADABLE: Final = ("Function", "__torch__", "<Tensors>")
"""Graphs with these in their text are not read back: text does not tell what these are."""
_FACTS: Final = ("dtype", "requires_grad", "device")
"""What types tell of tensors, besides their sizes and strides."""
PASSES: Final = tuple(name for name in names() if name not in OTHER_MEANING)


@dataclass(frozen=True)
class Outcome:
    """What a call did.  `place` is where in the source it failed."""

    result: Any
    arguments: Any
    printed: str
    error: str
    place: Any = None
    shared: Any = None

    @property
    def raised(self) -> bool:
        """True for an error that the program raises itself."""
        return self.error.startswith(f"{Error.__name__}: ")

    def same(self, other: Outcome, tolerance: float = 0.0) -> bool:
        if (self.error, self.printed) != (other.error, other.printed):
            return False
        if self.error:
            return True  # An operator that fails may do so before or after a write that it does not see.
        mine, theirs = (self.result, self.arguments), (other.result, other.arguments)
        shared = self.shared is None or other.shared is None or _equal(self.shared, other.shared, tolerance)
        return shared and _equal(mine, theirs, tolerance)

    def __str__(self) -> str:
        return f"{self.error or self.result!r}\n  arguments {self.arguments!r}\n  then {self.shared!r}\n{self.printed}"


class Claims:
    """A hook that looks whether tensors are as the types of their values say."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.made = [
            (register, value, value.type)
            for register, value in enumerate(code.values)
            if value is not None and isinstance(value.type, TensorType) and value.type != TENSOR
        ]
        self.untrue: dict[Value, TensorType] = {}

    def __call__(self, state: InterpreterState) -> None:
        frame = state.frame
        if frame.code is not self.code:
            return
        for register, value, claimed in self.made:
            held = frame.registers[register]
            if isinstance(held, Tensor) and not _fits(found := tensor_type_of(held), claimed):
                self.untrue.setdefault(value, found)

    def __str__(self) -> str:
        return "\n".join(f"{value!r} is {found}" for value, found in self.untrue.items())


def _fits(found: TensorType, claimed: TensorType) -> bool:
    """True if a tensor of the one type is of the other; strides count where there are elements along them."""
    facts: list[tuple[Any, Any]] = [(getattr(claimed, name), getattr(found, name)) for name in _FACTS]
    assert found.sizes is not None and found.strides is not None
    if claimed.sizes is not None:
        facts += [(len(claimed.sizes), len(found.sizes)), *zip(claimed.sizes, found.sizes, strict=False)]
    if claimed.strides and 0 not in found.sizes:
        steps = zip(claimed.strides, found.strides, found.sizes, strict=False)
        facts += [(claim, fact) for claim, fact, size in steps if size != 1]
    return all(claim in (None, fact) for claim, fact in facts)


Arguments = Callable[[], Sequence[Any]]
"""Makes the arguments anew."""


@dataclass
class Program:
    """A graph, ready to be run as compiled, and calls of it; `takes` makes inputs of the arguments."""

    name: str
    text: str
    graph: Graph
    calls: list[Arguments]
    takes: Callable[[Sequence[Any]], list[Any]] = list

    def outcome(self, code: Code, make: Arguments, *, write: bool = True, hooks: Sequence[Hook] = ()) -> Outcome:
        """What the call does when that is the program's code; with or without a look at shared memory."""
        printed = io.StringIO()
        inputs: list[Any] = []
        manual_seed(0)
        with redirect_stdout(printed), optimized_execution(False):
            try:
                inputs = self.takes(make())
                if len(code.graph.inputs) != len(inputs):
                    inputs = _flat(inputs)
                result = _flat([InterpreterState(code, hooks).run(*inputs)])
            except EngineError as error:
                kind = f"{type(error).__name__}: {error.message}"
                return Outcome(None, _frozen(inputs), printed.getvalue(), kind, error.range)
        inputs = _flat(inputs)
        told = _frozen(result), _frozen(inputs)
        if not write:
            return Outcome(*told, printed.getvalue(), "")
        _write_to_all([*result, *inputs])
        return Outcome(*told, printed.getvalue(), "", shared=_frozen((result, inputs)))


def prepared(name: str, text: str, unit: CompilationUnit, entry: str, calls: list[Arguments]) -> Program:
    """The program, with nothing optimized in the functions that it may call."""
    run_as_compiled(unit)
    function = unit.functions[entry]
    boundary = Boundary(function.schema)
    return Program(name, text, function.graph, calls, lambda arguments: boundary.inputs(arguments, {}))


def run_as_compiled(unit: CompilationUnit) -> None:
    """Let calls of the unit's functions run their graphs without passes."""
    for function in unit.functions.values():
        function.executor = executor = GraphExecutor(function)
        executor._graph = copy_graph(function.graph)


def generated(seed: int) -> Program:
    """A program of that number, with three calls."""
    text = program(Random(seed))
    calls: list[Arguments] = [partial(_arguments, seed, number) for number in range(3)]
    return prepared(f"generated {seed}", text, compile_source(text), "f", calls)


def _arguments(seed: int, number: int) -> Sequence[Any]:
    return arguments(Random(f"{seed} {number}"))


def problems(tried: Program, orders: Iterable[Sequence[str]], *, excuses_nan: bool = True) -> Iterator[str]:
    """What goes wrong with the program when passes run on it, one order of passes after the other.

    Unless told otherwise, it excuses `peephole`, which says that every float is itself, also nan, as PyTorch does.
    """
    code = Code(tried.graph, tried.name)
    expected = [tried.outcome(code, make) for make in tried.calls]
    for order in orders:
        graph, done = copy_graph(tried.graph), []
        problem = ""
        for name in order:
            done.append(name)
            problem = _problem_of(name, graph)
            if problem:
                break
        if not problem and not (excuses_nan and "peephole" in order and _compares_with_itself(tried.graph)):
            problem = _difference(tried, graph, expected, set(order))
        if problem:
            graphs = f"--- from\n{tried.graph}--- to\n{graph}"
            yield f"=== {tried.name} after {', '.join(done)}\n{problem}\n{tried.text}\n{graphs}"


def _problem_of(name: str, graph: Graph) -> str:
    """Run the pass; what is wrong with the graph after it."""
    before = str(graph)
    try:
        changed = run_pass(name, graph)
        verify(graph)
        printed = str(graph)
        if printed == before:
            return ""
        again = printed if any(word in printed for word in _UNREADABLE) else str(parse_ir(printed))
    except (AssertionError, EngineError) as error:
        return f"{type(error).__name__}: {error}"
    if again != printed:
        return f"what was printed reads as\n{again}"
    return "" if changed else "it says that it changed nothing"


def _difference(tried: Program, graph: Graph, expected: Sequence[Outcome], done: set[str]) -> str:
    tolerance, write = 1e-5 if done & set(INEXACT) else 0.0, not done & set(FOLDS_MEMORY)
    if str(graph) == str(tried.graph):
        return ""
    code = Code(graph, tried.name)
    for number, (make, before) in enumerate(zip(tried.calls, expected, strict=True)):
        claims = Claims(code)
        after = tried.outcome(code, make, write=write, hooks=[claims] if claims.made else [])
        other_first = before.error and after.error and done & MOVES
        if not after.same(before, tolerance) and not other_first and not _is_gone(before, graph):
            return f"call {number} gave\n{before}\nand gives\n{after}"
        if claims.untrue:
            return f"types are untrue in call {number}\n{claims}"
    return ""


def _compares_with_itself(graph: Graph) -> bool:
    """Does the graph ask whether a float is itself?"""
    asked = (node for node in graph.all_nodes() if node.kind in ("aten::eq", "aten::ne"))
    return any(node.inputs[0] is node.inputs[1] and node.inputs[0].type == FLOAT for node in asked)


def _is_gone(failed: Outcome, graph: Graph) -> bool:
    """Was the operator that failed dead, and is removed?  What the program raises itself is never dead."""
    return bool(failed.error) and not failed.raised and all(node.range != failed.place for node in graph.all_nodes())


# -- values


def _flat(values: Iterable[Any]) -> list[Any]:
    """The values, with elements in place of tuples: `lower_all_tuples` gives and takes these."""
    return [each for value in values for each in (_flat(value) if isinstance(value, tuple) else (value,))]


def _frozen(value: Any) -> Any:
    """A copy that later writes do not change, and that compares and prints."""
    if isinstance(value, Tensor):
        return np.array(value.array, copy=True)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_frozen(each) for each in value]
    if isinstance(value, dict):
        return "dict", [[_frozen(key), _frozen(each)] for key, each in value.items()]
    return value if isinstance(value, (bool, int, float, complex, str, type(None))) else str(type(value))


def _equal(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, (list, tuple)):
        return (
            type(a) is type(b) and len(a) == len(b) and all(_equal(x, y, tolerance) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        inexact = tolerance and a.dtype.kind in "fc"
        return bool(
            np.allclose(a, b, tolerance, tolerance, True) if inexact else np.array_equal(a, b, a.dtype.kind in "fc")
        )
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _write_to_all(value: Any) -> None:
    """Write to each tensor in the value, something else every time; and to each list."""
    for number, found in enumerate(_tensors(value), 1):
        if found.array.flags.writeable and found.array.dtype.kind in "fiu":
            with np.errstate(all="ignore"):
                found.array[...] = np.nan_to_num(found.array * 3, posinf=1, neginf=2) % 101 + number
    for each in _lists(value):
        each.append(each[0] if each else None)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _tensors(each)


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _lists(each)


# -- by hand


def random_orders(random: Random, count: int, passes: Sequence[str] = PASSES) -> list[list[str]]:
    chosen = [[random.choice(passes) for _ in range(random.randint(2, 8))] for _ in range(count)]
    return [_ordered(order) for order in chosen]


def alone(passes: Sequence[str] = PASSES) -> list[list[str]]:
    return [_ordered([name]) for name in passes]


def _ordered(order: Sequence[str]) -> list[str]:
    last = [each for name, tail in LAST.items() if name in order for each in tail]
    return [*(name for name in order if name not in LAST), *last]


def _module(path: Path) -> Any:
    """The module in that file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def of_cases(path: Path) -> Iterator[tuple[str, str, CompilationUnit, str, list[Arguments]]]:
    """The programs of a conformance file that compile: name, text, the unit, the function that is called, its calls."""
    impl = _module(path.parent / "run_cases.py")
    plain = impl.EngineImpl()
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            case = json.loads(line)
            if "source" not in case or not case.get("calls"):
                continue
            try:
                unit = compile_source(case["source"], filename=case["id"])
                calls: list[Arguments] = [partial(_decoded, impl, plain, call["args"]) for call in case["calls"]]
                yield case["id"], case["source"], unit, case["entry"], calls
            except EngineError as error:
                print(f"{case['id']}: {str(error).splitlines()[0]}")


def _decoded(impl: Any, plain: Any, arguments: Any) -> list[Any]:
    return [plain.arg(value) for value in impl.values.decode({"list": arguments})]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--orders", type=int, default=20, help="random orders of passes for each program")
    parser.add_argument("--generated", type=int, default=0, help="how many generated programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--without", default="", help="passes to leave out, separated by commas")
    options = parser.parse_args(argv)
    random, counts = Random(options.seed), Counter[str]()
    programs = (prepared(*each) for path in options.files for each in of_cases(path))
    made = (generated(options.seed + number) for number in range(options.generated))
    passes = [name for name in PASSES if name not in options.without.split(",")]
    for tried in chain(programs, made):
        orders = alone(passes) + random_orders(random, options.orders, passes)
        counts["programs"] += 1
        counts["orders"] += len(orders)
        for problem in problems(tried, orders):
            counts["problems"] += 1
            if counts["problems"] <= options.show:
                print(problem)
            else:
                print(problem.splitlines()[0])
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["problems"] > 0)


if __name__ == "__main__":
    sys.exit(main())
