"""`%profile f(x)`: where the time and the memory of a call go.

In: an expression.  Out: a `CostReply`: seconds and bytes by module, by line of the program, and by node, of the plans
as they run: a kernel stands for all its nodes, and for all its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from engine.executor.debugging.measuring import Cost, Measurement, measure_memory, measure_time
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import lines_of
from engine.executor.plans.explanation_text import group_name, short_kind
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.source_lines import SourceLine, line_of_node
from engine.executor.plans.source_places import Places, is_generated
from engine.frontend.compilation.entries import ENTRY
from engine.ir.graph import Node
from engine.ir.match import callee_of
from engine.ir.unit import Function
from engine.lang.counts import counted
from tsrepl.session import learning
from tsrepl.session.called import called, compiled_at_once
from tsrepl.session.inspection import flags_of
from tsrepl.session.plan_replies import CostReply, CostRow
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace

_TYPES: Final = "--types"
_MOST_RUNS: Final = 20
LONG_RUN: Final = 2.0
"""Seconds; what takes longer is not repeated."""
_ROUNDS: Final = 5
_ROUND_SECONDS: Final = 0.04
_SECONDS: Final = 0.3
"""The time for runs that are measured, of which the fastest is shown."""
_MOST_NODES: Final = 12
_MOST_LINES: Final = 24
_FEWEST_LINES: Final = 8
_SMALL: Final = 0.005
"""The part of the time below which a module is not shown, nor what is inside it."""


def profile(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%profile f(x)`; with `--types`, or for a name alone, what values were."""
    target, flags = flags_of(argument, "profile", (_TYPES,))
    if flags or called(workspace, target).call is None:
        return learning.types(workspace, target)
    return costs(workspace, target)


def costs(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """The time and the memory of a call."""
    entry, arguments = workspace.compile_expression(argument)
    entry.inlines = not any(node.kind.startswith("prim::Call") for node in entry.graph.all_nodes())
    with compiled_at_once():
        warm_up(workspace, entry, arguments)
        rounds, _ = measured_rounds(partial(workspace.run, entry, arguments), _ROUND_SECONDS)
        fastest, runs = measure_time(entry, arguments, runs=_MOST_RUNS, seconds=_SECONDS)
        memory = measure_memory(entry, arguments)
    yield _reply(argument, min(rounds), fastest, runs, memory)
    call = workspace.suggested(argument)
    yield TextReply(f"more: %profile --types {call}, %kernels {call}, %explain {call}")


def warm_up(workspace: Workspace, entry: Function, arguments: Sequence[Any]) -> None:
    """Run it until what runs are the plans that further calls have: the first calls make them, and their kernels."""
    for _ in range(3):
        workspace.run(entry, arguments)
        executor_of(entry).wait()


def measured_rounds(run: Callable[[], Any], seconds: float) -> tuple[list[float], int]:
    """The seconds of a run, on average over each of some rounds of about so many seconds, and the runs of a round.

    What takes longer than `LONG_RUN` runs once.
    """
    loops, spent = 1, _seconds_of(run, 1)
    if spent > LONG_RUN:
        return [spent], 1
    while spent < seconds / 4:  # the first runs may be slow: few of them tell little of how many fit
        loops *= 4
        spent = _seconds_of(run, loops)
    loops = max(1, int(loops * seconds / spent))
    return [_seconds_of(run, loops) / loops for _ in range(_ROUNDS)], loops


def _seconds_of(run: Callable[[], Any], times: int) -> float:
    begin = perf_counter()
    for _ in range(times):
        run()
    return perf_counter() - begin


def _reply(title: str, call: float, time: Measurement, runs: int, memory: Measurement) -> CostReply:
    bytes_of = {(each.plan, each.node, each.module): each.allocated for each in memory.costs}
    measured = [(each, bytes_of.get((each.plan, each.node, each.module), 0)) for each in time.costs]
    places = Places(line for each in time.costs for line in _lines(each))
    nodes = sorted(measured, key=lambda each: -each[0].seconds)
    left = nodes[_MOST_NODES:]
    by_module, by_line = _by_module(measured, time.seconds), _by_line(measured, places, time.seconds)
    return CostReply(
        title, call, time.seconds, runs, memory.peak, tuple(_tiers(time.costs)), tuple(by_module), tuple(by_line),
        tuple(_node(*each, places) for each in nodes[:_MOST_NODES]), len(left), sum(each.seconds for each, _ in left),
    )  # fmt: skip


Measured = tuple[Cost, int]


def _tiers(costs: Iterable[Cost]) -> Iterator[tuple[str, str]]:
    """Each plan that ran, and what it runs as; that of an entry around a call goes without saying."""
    plans = list(dict.fromkeys(each.plan for each in costs))
    for plan in plans:
        if len(plans) == 1 or not plan.name.startswith(ENTRY):
            yield tier_row(plan)


def tier_row(plan: ExecutionPlan) -> tuple[str, str]:
    """A plan by its name and arguments, and what it runs as."""
    name = "" if plan.name.startswith(ENTRY) else plan.name
    return f"{name}{plan.spec}", ", with ".join(filter(None, (tier_of(plan), _kernel_count(plan))))


def _kernel_count(plan: ExecutionPlan) -> str:
    count = sum(len(group.kernels) for group in plan.fusion.groups) if plan.fusion is not None else 0
    return counted(count, "kernel") if count and plan.entry is not None else ""


def tier_of(plan: ExecutionPlan) -> str:
    """The way in which a plan runs, in words."""
    if plan.entry is None:
        return f"instructions for the interpreter: {plan.reason}" if plan.reason else "instructions for the interpreter"
    return "one native kernel" if is_native(plan) else "code for Python"


def is_native(plan: ExecutionPlan) -> bool:
    """True for a plan of numbers, lists and dicts that is one kernel."""
    return plan.scalar is not None and plan.scalar.native is plan.entry


# -- nodes


def _node(cost: Cost, allocated: int, places: Places) -> CostRow:
    node, lines = cost.node, _lines(cost)
    held = _kinds(node) if node is not None and group_of(cost.plan, node) else ""
    return CostRow(
        _name(cost), cost.seconds, cost.seconds, cost.count, allocated, cost.module,
        places.span(lines) if lines else "", held,
    )  # fmt: skip


def _name(cost: Cost) -> str:
    node = cost.node
    if node is None and is_native(cost.plan):
        return f"kernel {cost.plan.name}"
    if node is None or node.kind == "prim::Return":
        return "begin and end of the call"
    callee = callee_of(node)
    return f"call {callee.name}" if callee is not None else group_of(cost.plan, node) or short_kind(node.kind)


def group_of(plan: ExecutionPlan, node: Node | None) -> str:
    """The name of the group that the node is, with what runs it; "" for any other node."""
    for group in plan.fusion.groups if plan.fusion is not None else ():
        if group.node is node:
            return f"{'kernel' if group.kernels else 'no kernel yet for'} {group_name(group.name)}"
    for each in plan.differentiation.groups if plan.differentiation is not None else ():
        if each.node is node:
            return f"{group_name(each.name)}, with its gradient"
    return ""


def _kinds(node: Node) -> str:
    """The operators that a group holds, those with a name of their own once."""
    inside = (each for each in node.attr("Subgraph").nodes() if each.kind.startswith("aten::"))
    return ", ".join(dict.fromkeys(short_kind(each.kind) for each in inside))


# -- lines


def _lines(cost: Cost) -> tuple[SourceLine, ...]:
    """The lines that the cost is of: one, or those of a group; of a plan that is one kernel, all of it; of an entry
    around a call, none."""
    node = cost.node
    if node is None:
        return lines_of(cost.plan.graph.all_nodes()) if is_native(cost.plan) else ()
    if cost.plan.name.startswith(ENTRY) and callee_of(node) is not None:
        return ()
    if node.has_attribute("Subgraph"):
        return lines_of(node.attr("Subgraph").nodes())
    line = line_of_node(node) if node.kind != "prim::Return" else None
    return () if line is None else (line,)


def _by_line(measured: Sequence[Measured], places: Places, seconds: float) -> list[CostRow]:
    """A row for each line, and for lines that run together; the most expensive ones, in the program's order."""
    found: dict[tuple[SourceLine, ...], list[Measured]] = {}
    for each in measured:
        if lines := _lines(each[0]):
            found.setdefault(lines, []).append(each)
    authors = {lines for lines in found if not any(is_generated(line) for line in lines)}
    shown = [(lines, here) for lines, here in found.items() if lines in authors or not authors]
    heaviest = sorted(shown, key=lambda each: -_seconds(each[1]))[:_MOST_LINES]
    chosen = [each for at, each in enumerate(heaviest) if at < _FEWEST_LINES or _seconds(each[1]) > _SMALL * seconds]
    ordered = sorted(chosen, key=lambda each: [(line.file, line.number) for line in each[0]])
    return [
        CostRow(
            places.span(lines), _seconds(here), _seconds(here), max(cost.count for cost, _ in here),
            max(allocated for _, allocated in here), "\n".join(line.text for line in lines), how=_how(here),
        )
        for lines, here in ordered
    ]  # fmt: skip


def _how(measured: Sequence[Measured]) -> str:
    groups = [group for cost, _ in measured if (group := group_of(cost.plan, cost.node))]
    return ", ".join(dict.fromkeys(groups or (tier_of(cost.plan).partition(":")[0] for cost, _ in measured)))


def _seconds(measured: Iterable[Measured]) -> float:
    return sum(cost.seconds for cost, _ in measured)


# -- modules


def _by_module(measured: Sequence[Measured], seconds: float) -> Iterator[CostRow]:
    """The modules in the order in which they ran, each behind the one around it."""
    own: dict[str, list[Measured]] = {}
    for each in measured:
        for path in _around(each[0].module):
            own.setdefault(path, [])
        own[each[0].module].append(each)
    if len(own) < 2:
        return
    for path in _nested(own):
        inside = [each for other in own if path in _around(other) for each in own[other]]
        total = _seconds(inside)
        if total >= _SMALL * seconds:
            yield CostRow(path, _seconds(own[path]), total, 0, max((size for _, size in inside), default=0))


def _around(path: str) -> list[str]:
    """The paths of the module and those around it, outermost first: "", "layer1", "layer1.0"."""
    names = path.split(".") if path else []
    return [".".join(names[:count]) for count in range(len(names) + 1)]


def _nested(paths: Iterable[str]) -> list[str]:
    order = {path: at for at, path in enumerate(paths)}
    return sorted(order, key=lambda path: [order[each] for each in _around(path)])
