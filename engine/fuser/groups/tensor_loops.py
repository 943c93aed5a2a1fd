"""Loops over tensors inside a kernel: `prim::Loop` with a fixed number of steps, and tensors carried from one to the
next.

In: the node, while its group is lowered (`from_graph`).  Out: descriptions of its results.  The body's nodes become
stages of their own, which are scheduled once and run in every step.

Note [Steps in one kernel]
A tensor that is carried has one buffer, which steps read, and one for its new value, which is copied at the end of a
step: so no nest reads what it writes.  Sizes stay as they are from step to step, or there is no kernel.  A loop takes
at least one step, as its results are new memory then, and never the tensors that it began with.

Note [Long loops]
After `_FUEL` elements, Python's signal handlers are called, so that a loop can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from engine.fuser.groups.extents import Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import Group, Lowered
from engine.fuser.groups.schedule import (
    Body,
    Indices,
    Scheduler,
    Stage,
    Value,
    loop_indices,
    merged,
    needed,
    offset,
    parallel,
)
from engine.fuser.ir.kernel import (
    Allocate,
    Call,
    Expression,
    For,
    If,
    Let,
    Load,
    Name,
    Return,
    Statement,
    Store,
    add,
    all_expressions,
    allocate,
    apply,
    constant,
    convert,
    index,
    product,
)
from engine.fuser.scalars.scalar_writer import INTERRUPTED
from engine.ir.constants import constant_value
from engine.ir.graph import Node
from engine.ir.graph import Value as GraphValue
from engine.lang.records import dataclass
from engine.lang.types import TensorType

LOOP: Final = "prim::Loop"
_FUEL: Final = 1 << 28


class Lowering(Protocol):
    """The part of `from_graph` that lowers node by node."""

    group: Group
    values: dict[GraphValue, Lowered]

    def fresh(self, name: str) -> str: ...
    def node(self, node: Node) -> None: ...
    def given(self, value: GraphValue) -> Lowered: ...
    def put(self, value: Value, name: str, order: tuple[int, ...] | None) -> None: ...


def is_steady(node: Node, is_fusible: Callable[[Node], bool]) -> bool:
    """True for a loop that ends after its number of steps only, and carries tensors that its own nodes make."""
    (body,) = node.blocks
    makers = [value.node for value in body.outputs[1:]]
    return (
        constant_value(node.inputs[1]) is True
        and constant_value(body.outputs[0]) is True
        and bool(makers)
        and all(isinstance(value.type, TensorType) for value in node.outputs)
        and len({*body.outputs[1:]}) == len(makers)
        and all(maker.block is body and maker.kind != "prim::Param" for maker in makers)
        and all(each.kind == "prim::Constant" or (each.kind != LOOP and is_fusible(each)) for each in body.nodes())
    )


@dataclass(frozen=True, slots=True)
class _Carried:
    """A tensor that is carried: its value before the first step and in a step, and buffers for that and the next."""

    first: Value
    value: Value
    buffer: str
    new: str


def lower_loop(lowering: Lowering, node: Node, given: Sequence[Lowered]) -> list[Value]:
    """The results of the loop."""
    group, (body,) = lowering.group, node.blocks
    count = _count(group, given[0])
    carried = [_carried(lowering, each, first) for each, first in zip(body.inputs[1:], given[2:], strict=True)]
    outside, guards = group.stages, len(group.extents.guards)
    step = Name(lowering.fresh("step"), "i64")
    group.stages, group.ranges[step] = [], count
    try:
        lowering.values |= {body.inputs[0]: step}
        lowering.values |= {each: c.value for each, c in zip(body.inputs[1:], carried, strict=True)}
        for each in body.nodes():
            lowering.node(each)
        for result, c in zip(body.outputs[1:], carried, strict=True):
            _carry(lowering, c, lowering.given(result))
        stages = needed(group.stages)
    finally:
        group.stages = outside
    if any(step in all_expressions(guard) for guard in group.extents.guards[guards:]):
        raise Unsupported("what is not the same in each step")
    loop = _stage(group, node, _Loop(group, step, count, carried, stages))
    return [_shown(group, each.debug_name, c, (loop,)) for each, c in zip(node.outputs, carried, strict=True)]


def _count(group: Group, trips: Lowered) -> Extent:
    """The number of steps, at least one."""
    if isinstance(trips, int):
        found = known(trips)
    elif isinstance(trips, Expression) and trips in group.numbers:
        found = Extent(convert(trips, "i64"), int(group.numbers[trips]))
    else:
        raise Unsupported("a number of steps that is not known")
    if found.example < 1:
        raise Unsupported("no step")
    group.extents.guards.append(apply("ge", found.size, index(1)))
    return found


def _carried(lowering: Lowering, value: GraphValue, first: Lowered) -> _Carried:
    if not isinstance(first, Value):
        raise Unsupported("a number that is carried")
    name = value.debug_name
    buffer, new = lowering.fresh(name), lowering.fresh(f"{name}_new")
    made = Value(name, first.type, first.shape, lambda body, at: at[0])
    carried = _Carried(first, made, buffer, new)
    made.at = _loads(lowering.group, carried)
    lowering.group.samples[made] = lowering.group.samples[first]
    return carried


def _loads(group: Group, c: _Carried) -> Callable[[Body, Indices], Expression]:
    return lambda body, at: Load(c.buffer, (offset(at, c.first.shape, group.extents),), c.first.type)


def _carry(lowering: Lowering, c: _Carried, new: Lowered) -> None:
    """Have the new value written at the end of a step."""
    if not isinstance(new, Value) or new.type != c.first.type or len(new.shape) != len(c.first.shape):
        raise Unsupported("a tensor of another type or rank in the next step")
    if new.is_moved:
        raise Unsupported("dimensions in another order in the next step")
    for a, b in zip(new.shape, c.first.shape, strict=True):
        lowering.group.extents.require(a, b)
    lowering.put(new, c.new, None)


def _shown(group: Group, name: str, c: _Carried, stages: tuple[Stage, ...]) -> Value:
    result = Value(name, c.first.type, c.first.shape, _loads(group, c), stages)
    group.samples[result] = group.samples[c.first]
    return result


# ------------------------------------------------------------------ statements


@dataclass(frozen=True, slots=True)
class _Loop:
    group: Group
    step: Name
    count: Extent
    carried: Sequence[_Carried]
    stages: Sequence[Stage]

    @property
    def reads(self) -> tuple[Stage, ...]:
        """The stages from outside that it reads."""
        inside = [read for stage in self.stages for read in stage.reads if read not in self.stages]
        return tuple(dict.fromkeys([*inside, *(stage for c in self.carried for stage in c.first.stages)]))

    @property
    def work(self) -> Extent:
        """The elements of a step."""
        total: Expression = index(0)
        for stage in self.stages:
            total = add(total, product([each.size for each in (*stage.shape, *stage.inner)]))
        return Extent(total, 0)

    def statements(self, scheduler: Scheduler) -> Iterator[Statement]:
        for c in self.carried:
            scheduler.types |= dict.fromkeys((c.buffer, c.new), c.first.type)
            yield from (allocate(name, c.first.type, self.size(c)) for name in (c.buffer, c.new))
        for c in self.carried:
            yield from self.begun(scheduler, c)
        known = {stage: scheduler.buffer_of(stage) for stage in self.reads if not _is_loop(stage)}
        inner = replace(scheduler, stages=self.stages, helpers=(), allocated=known, rooms={}, free=[])
        made = inner.statements()
        scheduler.bring(*inner.helpers)
        yield from (each for each in made if isinstance(each, Allocate))
        copies = (self.copied(scheduler, c) for c in self.carried)
        yield from self.steps((*(each for each in made if not isinstance(each, Allocate)), *copies), scheduler.fresh)

    def steps(self, body: tuple[Statement, ...], fresh: Callable[[str], str]) -> Iterator[Statement]:
        """All steps, some at a time.  See Note [Long loops]."""
        begin, most, end, held, stop = (fresh(each) for each in ("begin", "most", "end", "held", "stop"))
        first, last = Name(begin, "i64"), Name(end, "i64")
        some = apply("quotient", index(_FUEL), apply("maximum", self.work.size, index(1)))
        yield Let(most, apply("maximum", some, index(1)))
        poll = (
            Call("PyGILState_Ensure", (), held, "i32"),
            Call("PyErr_CheckSignals", (), stop, "i32"),
            Call("PyGILState_Release", (Name(held, "i32"),)),
            If(apply("ne", Name(stop, "i32"), constant(0, "i32")), (Return(index(INTERRUPTED)),)),
        )
        part = (
            Let(end, apply("minimum", add(first, Name(most, "i64")), self.count.size)),
            For(self.step.name, first, last, body),
            If(apply("lt", last, self.count.size), poll),
        )
        yield For(begin, index(0), self.count.size, part, step=Name(most, "i64"))

    def size(self, c: _Carried) -> Expression:
        return product([self.group.extents.canonical(each).size for each in c.first.shape])

    def begun(self, scheduler: Scheduler, c: _Carried) -> Sequence[Statement]:
        """The value before the first step into its buffer."""
        extents = self.group.extents
        here = loop_indices(scheduler.fresh("i"), c.first.shape, extents)
        body = Body(scheduler, (), inner=here)
        value = body.element(c.first, here)
        loops: tuple[Statement, ...] = (
            *body.statements, Store(c.buffer, (offset(here, c.first.shape, extents),), value),
        )  # fmt: skip
        for name, extent in zip(reversed(here), reversed(c.first.shape), strict=True):
            if isinstance(name, Name):
                loops = (For(name.name, index(0), extents.canonical(extent).size, loops),)
        return [parallel(merged(each)) for each in loops]

    def copied(self, scheduler: Scheduler, c: _Carried) -> Statement:
        at = Name(scheduler.fresh("at"), "i64")
        copy = Store(c.buffer, (at,), Load(c.new, (at,), c.first.type))
        return parallel(For(at.name, index(0), self.size(c), (copy,)))


def _is_loop(stage: Stage) -> bool:
    return stage.loops is not None


def _stage(group: Group, node: Node, loop: _Loop) -> Stage:
    name = node.outputs[0].debug_name
    stage = Stage(name, loop.carried[0].first.type, (), loop.reads, (loop.count, loop.work), loops=loop.statements)
    group.stages.append(stage)
    return stage
