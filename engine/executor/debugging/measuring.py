"""Time and memory of what runs, node by node.

In: a function and the inputs of a call.  Out: a `Measurement`: for each node of each plan that ran, in which module,
the seconds spent there, how often, and the bytes that were allocated.

The plans are those that calls run.  Generated functions run from their own text, with a clock between its statements
and all else as it is, groups and kernels included; what the interpreter runs has the clock as its hook.  So a call that
nobody measures knows nothing of this.  A kernel is one node: what happens inside it is not told apart.

Note [Whose time]
The clock is always at one `Cost`, and what passes until it comes to the next is that one's.  A call has its arguments
and results for itself; what it calls has the rest.  What the clock takes for itself is nobody's.
"""

from __future__ import annotations

import ast
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import takewhile
from time import perf_counter
from typing import Any, Final

from engine.aten.values.hooks import HOOKS
from engine.aten.values.submodules import joined
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import OPERATE
from engine.executor.codegen.source import FUNCTION, GeneratedSource
from engine.executor.interpreter.interpreter import MAX_GENERATED_DEPTH, InterpreterState
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan import ExecutionPlan, failure
from engine.executor.profiling.bailouts import BailoutSite
from engine.ir.facts.program_text import called_module
from engine.ir.graph import Node
from engine.ir.unit import Function
from engine.lang.python_syntax import parse_python
from engine.lang.records import dataclass

_TICK: Final = "tick"


@dataclass(eq=False, slots=True)
class Cost:
    """The cost of one node, of a plan that runs for `module`; of no node: what begins and ends the plan.

    `allocated` is the memory beyond that at the node's beginning, at the worst moment; `kept` what it left.
    """

    plan: ExecutionPlan
    node: Node | None
    module: str
    seconds: float = 0.0
    count: int = 0
    allocated: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """`costs` in the order in which their nodes ran first; `peak` is the most memory beyond that at the beginning."""

    costs: tuple[Cost, ...]
    peak: int
    result: Any

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.costs)


def measure_time(
    function: Function, inputs: Sequence[Any], *, runs: int = 1, seconds: float = float("inf")
) -> tuple[Measurement, int]:
    """Run the function so many times, or for so long; the seconds of the fastest run, and the number of runs.

    Raises ExecutionError.
    """
    run = _Run(_Clock())
    found = [Measurement(run.take_costs(), 0, result) for result in [run.whole(function, inputs)]]
    end = perf_counter() + seconds
    while len(found) < runs and perf_counter() < end:
        result = run.whole(function, inputs)
        found.append(Measurement(run.take_costs(), 0, result))
    return min(found, key=lambda each: each.seconds), len(found)


def measure_memory(function: Function, inputs: Sequence[Any]) -> Measurement:
    """Run the function and measure bytes: of arrays, and of what Python makes around them.  Raises ExecutionError."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        scale = _Scale()
        run = _Run(scale)
        result = run.whole(function, inputs)
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return Measurement(run.take_costs(), scale.peak - scale.origin, result)


# ------------------------------------------------------------------ instruments


@dataclass(eq=False, slots=True)
class _Clock:
    """`at` is told that the run comes to another cost, whose seconds begin."""

    current: Cost | None = None
    since: float = 0.0

    def at(self, cost: Cost | None, count: int = 0) -> None:
        now = perf_counter()
        if self.current is not None:
            self.current.seconds += now - self.since
        self.current = cost
        if cost is not None:
            cost.count += count
        self.since = perf_counter()


@dataclass(eq=False, slots=True)
class _Scale:
    """The same for memory."""

    current: Cost | None = None
    before: int = 0
    peak: int = 0
    origin: int = field(default_factory=lambda: tracemalloc.get_traced_memory()[0])

    def at(self, cost: Cost | None, count: int = 0) -> None:
        now, highest = tracemalloc.get_traced_memory()
        if self.current is not None:
            self.current.allocated = max(self.current.allocated, highest - self.before)
            self.current.kept += now - self.before
            self.peak = max(self.peak, highest)
        self.current = cost
        if cost is not None:
            cost.count += count
        tracemalloc.reset_peak()
        self.before = tracemalloc.get_traced_memory()[0]


# ------------------------------------------------------------------ running


@dataclass(eq=False, slots=True)
class _Run:
    """One measured call, which runs as `engine.executor.interpreter.interpreter.run` has it."""

    meter: _Clock | _Scale
    known: dict[tuple[ExecutionPlan, Node | None, str], Cost] = field(default_factory=dict)
    functions: dict[tuple[int, str], Callable[..., Any]] = field(default_factory=dict)

    def take_costs(self) -> tuple[Cost, ...]:
        """The costs so far; from now on they begin at zero."""
        found = tuple(replace(each) for each in self.known.values() if each.count)
        for each in self.known.values():
            each.seconds, each.count, each.allocated, each.kept = 0.0, 0, 0, 0
        return found

    def whole(self, function: Function, inputs: Sequence[Any]) -> Any:
        plan = self.plan_for(function, inputs)
        try:
            return self.plan(plan, inputs, "", 0)
        except AssertionError:
            raise
        except Exception as error:
            raise failure(error)  # noqa: B904  (it knows its cause)
        finally:
            self.meter.at(None)

    def plan_for(self, function: Function, inputs: Sequence[Any]) -> ExecutionPlan:
        executor = executor_of(function)
        return (executor.anywhere if HOOKS.devices else executor).plan_for(inputs)

    def plan(self, plan: ExecutionPlan, inputs: Sequence[Any], module: str, depth: int) -> Any:
        """Run a plan for the module at that path."""
        if plan.entry is None:
            return self.interpret(plan, plan.code, inputs, module, depth)
        plan.catch_up()
        source = plan.generated
        if source is None or getattr(plan.entry, "source", None) != source.text:  # all of it is one kernel
            self.meter.at(self.cost(plan, only_node(plan), module), 1)
            return plan.entry(*inputs)
        key = id(source), module
        if key not in self.functions:
            self.meter.at(None)
            self.functions[key] = self.timed(plan, source, module)
        entry = self.functions[key]
        self.meter.at(self.cost(plan, None, module), 1)
        return entry(*inputs, depth) if plan.calls else entry(*inputs)

    def cost(self, plan: ExecutionPlan, node: Node | None, module: str) -> Cost:
        if node is not None:
            module = joined(module, _module_of(node))
        return self.known.setdefault((plan, node, module), Cost(plan, node, module))

    # -- generated functions

    def timed(self, plan: ExecutionPlan, source: GeneratedSource, module: str) -> Callable[..., Any]:
        """The plan's function from the same text, with the meter told of each statement of a node."""
        lines = [self.cost(plan, node, module) for node in source.nodes]
        firsts = {id(cost): at for at, cost in reversed([*enumerate(lines)])}
        meter = self.meter

        def tick(line: int) -> None:
            cost = lines[line]
            meter.at(cost, firsts[id(cost)] == line and cost.node is not None)

        tree = parse_python(source.text)
        _Ticking(source).visit(tree)
        environment = {
            **plan.entry.__globals__, _TICK: tick, "call": partial(self.call, module),
            "resume": partial(self.resume, plan, module),
        }  # fmt: skip
        exec(compile(ast.fix_missing_locations(tree), f"<plan of {plan.name}>", "exec"), environment)
        return environment[FUNCTION]  # type: ignore[no-any-return]

    def call(self, module: str, function: Function, arguments: Sequence[Any], depth: int) -> Any:
        """A call in a generated function: what it calls, then the cost of the call again."""
        caller = self.meter.current
        inside = module
        if caller is not None and caller.node is not None:
            inside = joined(caller.module, called_module(caller.node))
        if depth + 1 >= MAX_GENERATED_DEPTH:
            executor = executor_of(function)
            result = InterpreterState(executor.code, depth=depth + 1).run(*arguments)
        else:
            result = self.plan(self.plan_for(function, arguments), arguments, inside, depth + 1)
        self.meter.at(caller)
        return result

    def resume(self, plan: ExecutionPlan, module: str, site: BailoutSite, live: Sequence[Any], depth: int) -> Any:
        """The rest of the program behind a guard that fails."""
        if site.code is None:
            site.code = Code(site.rest, site.function)
        return self.interpret(plan, site.code, live, module, depth)

    # -- instructions

    def interpret(self, plan: ExecutionPlan, code: Code, inputs: Sequence[Any], module: str, depth: int) -> Any:
        def hook(state: InterpreterState) -> None:
            instruction = state.frame.instruction
            here = module
            for frame in state.frames[:-1]:
                here = _inside(here, frame.instruction.node)
            self.meter.at(self.cost(plan, instruction.node, here), instruction.opcode == OPERATE)

        self.meter.at(self.cost(plan, None, module), 1)
        return InterpreterState(code, [hook], depth=depth).run(*inputs)


def only_node(plan: ExecutionPlan) -> Node | None:
    """The node that is all of the plan; None where there are more."""
    nodes = [each for each in plan.graph.nodes() if each.kind != "prim::Constant"]
    return nodes[0] if len(nodes) == 1 else None


def _inside(module: str, node: Node | None) -> str:
    """The module that a call at the node goes into."""
    if node is None:
        return module
    return joined(module, *(call.module for call in node.inlined_from), called_module(node))


def _module_of(node: Node) -> str:
    """The module that the node was inlined from; of a group, the one that has all its nodes."""
    if not node.has_attribute("Subgraph"):
        return joined(*(call.module for call in node.inlined_from))
    inside = [_module_of(each).split(".") for each in node.attr("Subgraph").nodes() if each.kind != "prim::Constant"]
    same = takewhile(lambda names: len({*names}) == 1, zip(*inside, strict=False))
    return ".".join(names[0] for names in same)


@dataclass(slots=True)
class _Ticking(ast.NodeTransformer):
    """Puts `tick(line)` in front of each statement that has a node."""

    source: GeneratedSource

    def generic_visit(self, node: ast.AST) -> ast.AST:
        ast.NodeTransformer.generic_visit(self, node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and not isinstance(node, ast.Module):
                setattr(node, name, [each for one in statements for each in self._ticked(one)])
        return node

    def _ticked(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        line = statement.lineno - 1
        if self.source.nodes[line] is not None:
            call = ast.Call(ast.Name(_TICK, ast.Load()), [ast.Constant(line)], [])
            yield ast.copy_location(ast.Expr(call), statement)
        yield statement
