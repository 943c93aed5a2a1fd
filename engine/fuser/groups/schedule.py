"""Loops of a fusion group: which values are computed when, and in which loops.

In: `Stage`s in the order in which they depend on each other: values that have to be in memory, and reductions.  Out:
statements.  All else is computed where it is used (`Body.element`).

    for row in parallel(rows):              a nest: stages that have the outer loops in common
        for j in vector(columns):           a loop: stages over the same inner sizes, none of which needs a reduction
            ...                             of the same loop
        for j in vector(columns): ...

A stage joins the nest before it if its outer sizes are the same and it reads what that nest computes just where the
nest is; its values are registers then, or a buffer for one pass of the outer loops.  What other nests read, is in a
buffer of its own, which later stages use again when all have read it.

Matrix products and convolutions bring loops of their own, a `Template`; stages of the same sizes that read each of its
elements where it is made, join its nest.  Nests that several layers have alike are helpers (`outlining`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Final

from engine.fuser.groups import columns
from engine.fuser.groups.extents import ONE, Extent, Extents
from engine.fuser.groups.strategy import HOST, Strategy
from engine.fuser.ir.affine import affine, is_same_product
from engine.fuser.ir.kernel import (
    Accumulate,
    Allocate,
    Apply,
    Assign,
    Declare,
    Expression,
    For,
    Kernel,
    Let,
    Load,
    Name,
    Statement,
    Store,
    add,
    all_statements,
    allocate,
    apply,
    index,
    multiply,
    parts,
    product,
    rewritten,
)
from engine.fuser.ir.outlining import Outliner, bound_names, expanded, renamed
from engine.lang.records import dataclass

Indices = tuple[Expression, ...]


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of the group.  `at` gives an element, for which it may add statements to the body."""

    name: str
    type: str
    shape: tuple[Extent, ...]
    at: Callable[[Body, Indices], Expression]
    stages: tuple[Stage, ...] = ()
    """The stages that elements are computed from."""
    stage: Stage | None = None
    """The stage whose elements it has, in their order."""
    is_moved: bool = False
    """True if an operator's result for it would not have its dimensions in the order of their strides."""
    pieces: tuple[Piece, ...] = ()
    """Its parts, if it is joined of some: in memory, each is computed by itself."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a value, which begins at the index `start` along `axis`."""

    value: Value
    axis: int
    start: Expression


@dataclass(frozen=True, slots=True)
class Template:
    """Loops for a stage: a kernel that stores each element once, to the buffer `PUT`.

    `operands`: an expression for each number that is a parameter, and the name of a buffer for each other buffer.
    `indices`: those of the stage's element, from those of the store.
    """

    kernel: Kernel
    operands: Callable[[Scheduler], tuple[Mapping[str, Expression], Mapping[str, str]]]
    indices: Callable[[Indices], Indices]


PUT: Final = "put"


@dataclass(eq=False, slots=True)
class Stage:
    """A value that is kept, or, with `inner` sizes, a reduction over these; or one with loops of its own.

    `start`: variables and their first values; `update` adds the statements for one element at outer and inner indices;
    `finish` gives the result of the variables.  Without inner sizes `element` gives the value.
    """

    name: str
    type: str
    shape: tuple[Extent, ...]
    reads: tuple[Stage, ...] = ()
    inner: tuple[Extent, ...] = ()
    element: Callable[[Body, Indices], Expression] | None = None
    start: Callable[[Body], Sequence[tuple[str, Expression]]] | None = None
    update: Callable[[Body, Indices, Indices, Sequence[Name]], None] | None = None
    finish: Callable[[Body, Sequence[Name]], Expression] | None = None
    template: Template | None = None
    """The loops that give its elements, each of which is made of as many others as the `inner` sizes say."""
    buffer: str = ""
    """The parameter that it is written to, for results."""
    within: Within | None = None
    """The part of the buffer that it fills; None: all."""
    loops: Callable[[Scheduler], Iterable[Statement]] | None = None
    """The statements that do all of it, for what is no tensor of its own."""

    @property
    def is_reduction(self) -> bool:
        return self.element is None and self.template is None and self.loops is None


def needed(stages: Sequence[Stage]) -> list[Stage]:
    """The stages that results are made of, in order."""
    wanted: set[Stage] = set()
    for stage in reversed(stages):
        if stage.buffer or stage in wanted:
            wanted |= {stage, *stage.reads}
    return [stage for stage in stages if stage in wanted]


@dataclass(frozen=True, slots=True)
class Within:
    """The part of an array of this shape that begins at the index `start` along `axis`."""

    shape: tuple[Extent, ...]
    axis: int
    start: Expression

    def indices(self, own: Indices) -> Indices:
        """Those of the array, from those of the part."""
        return (*own[: self.axis], add(own[self.axis], self.start), *own[self.axis + 1 :])


# ------------------------------------------------------------------ bodies


@dataclass(eq=False, slots=True)
class Body:
    """Statements of a loop's body while they are written."""

    scheduler: Scheduler
    outer: Indices
    statements: list[Statement] = field(default_factory=list)
    known: dict[tuple[Value, Indices], Expression] = field(default_factory=dict)
    present: dict[Stage, Expression] = field(default_factory=dict)
    """Values of stages at the indices of this body."""
    rows: Mapping[Stage, str] = field(default_factory=dict)
    """Buffers for one pass of the outer loops."""
    inner: Indices = ()
    read: list[tuple[Stage, Indices]] = field(default_factory=list)

    def element(self, value: Value, indices: Indices) -> Expression:
        """The element of a value, which is computed once."""
        key = (value, indices)
        found = self.known.get(key)
        if found is None:
            found = value.at(self, indices)
            if isinstance(found, (Apply, Load)):
                name = self.scheduler.fresh(value.name)
                self.statements.append(Let(name, found))
                found = Name(name, found.type)
            self.known[key] = found
        return found

    def stage(self, stage: Stage, indices: Indices) -> Expression:
        """The value of a stage."""
        self.read.append((stage, indices))
        if stage in self.present and indices == (*self.outer, *self.inner)[: len(indices)]:
            return self.present[stage]
        if stage in self.rows:
            rest = stage.shape[len(self.outer) :]
            return Load(
                self.rows[stage], (offset(indices[len(self.outer) :], rest, self.scheduler.extents),), stage.type
            )
        return Load(
            self.scheduler.buffer_of(stage), (offset(indices, stage.shape, self.scheduler.extents),), stage.type
        )


def spelled(name: str) -> str:
    """The name of a value of a graph in kernels; those that need it again add to it."""
    base = "".join(c if c.isalnum() else "_" for c in name) or "v"
    return f"v{base}" if base[0].isdigit() else base


def offset(indices: Sequence[Expression], shape: Sequence[Extent], extents: Extents) -> Expression:
    """The place of an element of a contiguous array, by sizes that stand for all equal ones."""
    sizes = [extents.canonical(each).size for each in shape]
    total: Expression = index(0)
    d = 0
    while d < len(indices):
        at, d = indices[d], d + 1
        while d < len(indices) and isinstance(at, Apply) and _is_split(at, indices[d], sizes[d]):
            at, d = at.operands[0], d + 1
        total = add(total, multiply(at, product(sizes[d:])))
    return total


def _is_split(outer: Apply, inner: Expression, size: Expression) -> bool:
    """True if these are the two indices that `split` makes of one."""
    return (outer, inner) == split(outer.operands[0], size)


def split(at: Expression, size: Expression) -> tuple[Expression, Expression]:
    """One index as two, the second of which goes up to that size."""
    return apply("quotient", at, size), apply("rest", at, size)


def loop_indices(prefix: str, shape: Sequence[Extent], extents: Extents) -> Indices:
    """An index for each size: 0 where the size is 1, which needs no loop."""
    return tuple(_ZERO if extents.canonical(e) == ONE else Name(f"{prefix}{i}", "i64") for i, e in enumerate(shape))


# ------------------------------------------------------------------ nests


@dataclass(eq=False, slots=True)
class Nest:
    """Stages with the same outer loops; `outer` is None while there is no reduction to tell.

    The first may have loops of its own.
    """

    stages: list[Stage]
    outer: tuple[Extent, ...] | None


@dataclass(eq=False, slots=True)
class Scheduler:
    """Makes the statements of a group's stages."""

    extents: Extents
    stages: Sequence[Stage]
    names: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)
    """The types of the buffers that there are."""
    helpers: tuple[Kernel, ...] = ()
    """Those that the statements call."""
    allocated: dict[Stage, str] = field(default_factory=dict)
    rooms: dict[str, Expression] = field(default_factory=dict)
    """The allocated buffers, and how many elements they have."""
    free: list[str] = field(default_factory=list)
    """Those that nothing reads any more."""
    strategy: Strategy = HOST

    def fresh(self, name: str) -> str:
        """A name that no other statement has."""
        base = spelled(name)
        found, count = base, 1
        while found in self.names:
            found, count = f"{base}_{count}", count + 1
        self.names.add(found)
        return found

    def buffer_of(self, stage: Stage) -> str:
        """The buffer in which a stage is for all indices."""
        if stage.buffer:
            return stage.buffer
        if stage not in self.allocated:
            self.allocated[stage] = self._room(stage)
        return self.allocated[stage]

    def _room(self, stage: Stage) -> str:
        """A buffer for the stage: a free one of that size, else a new one."""
        size = product([self.extents.canonical(e).size for e in stage.shape])
        for name in self.free:
            if self.rooms[name] == size and self.types[name] == stage.type:
                self.free.remove(name)
                return name
        name = self.fresh(stage.name)
        self.rooms[name], self.types[name] = size, stage.type
        return name

    def statements(self) -> list[Statement]:
        nests = self.nests()
        shared = self._read_elsewhere(nests)
        last = self._last_readers(nests)
        made: list[list[Statement]] = []
        for nest in nests:
            made.append(self._nest(nest, shared))
            self.free += [name for stage, name in self.allocated.items() if last.get(stage) is nest]
        rooms = [allocate(name, self.types[name], size) for name, size in self.rooms.items()]
        return [*rooms, *self._outlined(nests, made)]

    def _outlined(self, nests: Sequence[Nest], made: Sequence[Sequence[Statement]]) -> Iterator[Statement]:
        """The nests, those with loops of their own and those that there are several of as calls.

        What a nest allocates stays outside of a helper, as nests behind it may read that.
        """
        outliner = Outliner(self.types)
        apart = [_rooms_apart(nest, body) for nest, body in zip(nests, made, strict=True)]
        names = [self.fresh(f"{nest.stages[-1].name}_loops") for nest in nests]
        pieces = [outliner.piece(name, rest) for name, (_, rest) in zip(names, apart, strict=True)]
        for nest, body, (rooms, _), piece in zip(nests, made, apart, pieces, strict=True):
            template = nest.stages[0].template
            is_repeated = outliner.used[piece.helper.name] > 1 and not self.strategy.is_threaded
            if template is not None or is_repeated:
                self.bring(*(template.kernel.helpers if template is not None else ()), piece.helper)
                yield from rooms
                yield from piece.call
            else:
                yield from body

    def bring(self, *helpers: Kernel) -> None:
        """Have these helpers in the kernel."""
        self.helpers = (*self.helpers, *(each for each in helpers if each not in self.helpers))

    def _last_readers(self, nests: Sequence[Nest]) -> dict[Stage, Nest]:
        own = {*self.stages}
        return {read: nest for nest in nests for stage in nest.stages for read in stage.reads if read in own}

    # -- which stages go together

    def nests(self) -> list[Nest]:
        found: list[Nest] = []
        for stage in self.stages:
            if not (found and self._joined(found[-1], stage)):
                has_loops = stage.element is None
                found.append(Nest([stage], stage.shape if has_loops else None))
        return found

    def _joined(self, nest: Nest, stage: Stage) -> bool:
        """Take the stage into the nest if it fits."""
        outer = nest.outer
        if stage.template is not None or stage.loops is not None or nest.stages[0].loops is not None:
            return False
        if nest.stages[0].template is not None and (stage.is_reduction or len(stage.shape) != len(outer or ())):
            return False
        if outer is None and stage.is_reduction:
            outer = stage.shape
            if not all(self._begins_with(each.shape, outer) for each in nest.stages):
                return False
        elif outer is None:
            if not self._same(nest.stages[0].shape, stage.shape):
                return False
        elif (stage.is_reduction and not self._same(stage.shape, outer)) or not self._begins_with(stage.shape, outer):
            return False
        if not self._reads_in_step(stage, nest, outer) or self._are_few([*nest.stages, stage], outer):
            return False
        nest.stages.append(stage)
        nest.outer = outer
        return True

    def _same(self, a: Sequence[Extent], b: Sequence[Extent]) -> bool:
        return [self.extents.canonical(e).size for e in a] == [self.extents.canonical(e).size for e in b]

    def _are_few(self, stages: Sequence[Stage], outer: tuple[Extent, ...] | None) -> bool:
        """True for what leaves most threads nothing to do: few rows of many elements, each of which is written."""
        if not self.strategy.is_threaded or outer is None or _count(outer) >= _FEW:
            return False
        least = self.strategy.long * _count(outer)
        return any(not each.is_reduction and _count(each.shape) >= least for each in stages)

    def _begins_with(self, shape: Sequence[Extent], outer: Sequence[Extent]) -> bool:
        return self._same(shape[: len(outer)], outer)

    def _reads_in_step(self, stage: Stage, nest: Nest, outer: tuple[Extent, ...] | None) -> bool:
        """True if the stage reads those of the nest only at the present indices of the outer loops."""
        rank = len(stage.shape) if outer is None else len(outer)
        here = loop_indices("i", stage.shape[:rank], self.extents)
        trial = replace(self, names=set(self.names), types=dict(self.types), allocated={}, rooms={}, free=[])
        body = Body(trial, here, inner=loop_indices("j", stage.inner or stage.shape[rank:], self.extents))
        trial._write(body, stage, {})
        within = [(s, at) for s, at in body.read if s in nest.stages]
        return all(at[:rank] == here for s, at in within if s.shape or rank) and all(
            len(s.shape) >= rank for s, _ in within
        )

    def _read_elsewhere(self, nests: Sequence[Nest]) -> set[Stage]:
        home = {stage: nest for nest in nests for stage in nest.stages}
        return {s for stage in self.stages for s in stage.reads if home.get(s) is not home[stage]}

    # -- writing

    def _nest(self, nest: Nest, shared: set[Stage]) -> list[Statement]:
        outer = nest.outer or ()
        if (loops := nest.stages[0].loops) is not None:
            return [*loops(self)]
        if (template := nest.stages[0].template) is not None:
            return self._from_template(nest, template, shared)
        here = loop_indices("i", outer, self.extents)
        groups = self._loops(nest)
        rows = {
            stage: self.fresh(f"{stage.name}_row")
            for stage in nest.stages
            if not stage.is_reduction and self._is_needed_later(stage, groups)
        }
        rows = {stage: name for stage, name in rows.items() if not (stage.buffer or stage in shared)}
        rooms: list[Statement] = [
            allocate(name, stage.type, product([self.extents.canonical(e).size for e in stage.shape[len(outer) :]]))
            for stage, name in rows.items()
        ]
        inside: list[Statement] = []
        present: dict[Stage, Expression] = {}
        for group in groups:
            inside += self._loop(group, here, rows, present, shared)
        if all(each == _ZERO for each in here):
            return [*rooms, *(self._parallel(self._of_rows(merged(each))) for each in inside)]
        if not rooms and not self.strategy.is_threaded:
            here, outer, inside = self._in_blocks(here, outer, inside)
        return [self._parallel(self._collapsed(here, outer, rooms, inside))]

    def _parallel(self, loop: Statement) -> Statement:
        return parallel(loop, everywhere=self.strategy.is_threaded)

    def _in_blocks(
        self, here: Indices, outer: tuple[Extent, ...], inside: list[Statement]
    ) -> tuple[Indices, tuple[Extent, ...], list[Statement]]:
        """The loops over columns in blocks, where that is better; see `columns`."""
        column, extent = here[-1], self.extents.canonical(outer[-1])
        if not isinstance(column, Name) or extent.example < columns.LEAST:
            return here, outer, inside
        block = self.fresh("block")
        found = columns.in_blocks(inside, column.name, extent.size, block, self.fresh)
        if found is None:
            return here, outer, inside
        blocks = Extent(columns.blocks(extent.size), -(-extent.example // columns.WIDTH))
        return (*here[:-1], Name(block, "i64")), (*outer[:-1], blocks), found

    def _of_rows(self, loop: Statement) -> Statement:
        """A nest of loops, those around the innermost one as one, which threads share whichever size is the large
        one."""
        outer: list[For] = []
        while isinstance(loop, For) and len(loop.body) == 1 and isinstance(loop.body[0], For):
            outer.append(loop)
            loop = loop.body[0]
        if len(outer) < 2 or self.strategy.is_threaded:
            return _around(outer, loop)
        return self._as_one({each.index: each.stop for each in outer}, (), (loop,))

    def _collapsed(
        self, here: Indices, outer: Sequence[Extent], rooms: Sequence[Statement], inside: Sequence[Statement]
    ) -> For:
        """The outer loops as one, so that there is enough for several threads, whichever size is the large one."""
        sizes = {
            i.name: self.extents.canonical(e).size for i, e in zip(here, outer, strict=True) if isinstance(i, Name)
        }
        body = map(merged, inside)
        if len(sizes) == 1:
            ((name, size),) = sizes.items()
            return For(name, index(0), size, (*rooms, *body))
        return self._as_one(sizes, rooms, body)

    def _as_one(self, sizes: Mapping[str, Expression], rooms: Iterable[Statement], body: Iterable[Statement]) -> For:
        """A loop for several with these indices and sizes, the outermost first."""
        flat = self.fresh("row")
        rest: Expression = Name(flat, "i64")
        lets: list[Let] = []
        for name, size in [*sizes.items()][:0:-1]:
            rest, own = split(rest, size)
            lets.append(Let(name, own))
        first = next(iter(sizes))
        return For(flat, index(0), product([*sizes.values()]), (*rooms, Let(first, rest), *lets, *body))

    def _from_template(self, nest: Nest, template: Template, shared: set[Stage]) -> list[Statement]:
        """The template's loops, with what becomes of each element in place of its stores."""
        kernel, (numbers, buffers) = template.kernel, template.operands(self)
        names = {each.name: self.fresh(each.name) for each in kernel.scalars}
        names |= {name: self.fresh(name) for name in bound_names(kernel.body)}
        names |= buffers
        lets = [Let(names[each.name], numbers[each.name]) for each in kernel.scalars]

        def store(element: Store) -> Sequence[Statement]:
            made = zip(template.indices(element.indices), nest.stages[0].shape, strict=True)
            at = tuple(_ZERO if self.extents.canonical(extent) == ONE else each for each, extent in made)
            return self._consumed(nest, at, element.value, shared)

        return [*lets, *expanded(renamed(kernel.body, names), PUT, store)]

    def _consumed(self, nest: Nest, at: Indices, value: Expression, shared: set[Stage]) -> list[Statement]:
        """An element of the nest's first stage, and the elements of other stages made of it."""
        body = Body(self, at)
        for stage in nest.stages:
            name = self.fresh(stage.name)
            found = value if stage.element is None else stage.element(body, at)
            body.statements.append(Let(name, found))
            body.present[stage] = Name(name, found.type)
            if stage.buffer or stage in shared:
                place = (self._place(stage, at),)
                body.statements.append(Store(self.buffer_of(stage), place, body.present[stage]))
        return body.statements

    def _loops(self, nest: Nest) -> list[list[Stage]]:
        """The stages of a nest by the inner loops that they share."""
        groups: list[list[Stage]] = []
        outer = len(nest.outer or ())
        for stage in nest.stages:
            sizes = stage.inner or stage.shape[outer:]
            last = groups[-1] if groups else []
            fits = last and self._same(last[0].inner or last[0].shape[outer:], sizes)
            if fits and not any(s.is_reduction for s in stage.reads if s in last):
                last.append(stage)
            else:
                groups.append([stage])
        return groups

    def _is_needed_later(self, stage: Stage, groups: Sequence[Sequence[Stage]]) -> bool:
        own = next(group for group in groups if stage in group)
        return any(stage in other.reads for group in groups if group is not own for other in group)

    def _loop(
        self, group: Sequence[Stage], here: Indices, rows: Mapping[Stage, str], present: dict[Stage, Expression],
        shared: set[Stage],
    ) -> list[Statement]:  # fmt: skip
        """The inner loops of some stages, with what comes before and after."""
        sizes = group[0].inner or group[0].shape[len(here) :]
        inner = loop_indices("j", sizes, self.extents)
        before = Body(self, here, present=dict(present), rows=rows)
        variables: dict[Stage, Sequence[Name]] = {}
        for stage in group:
            if stage.is_reduction:
                variables[stage] = self._started(before, stage)
        body = Body(self, here, present=dict(present), rows=rows, inner=inner)
        for stage in group:
            self._write(body, stage, variables)
        loops: tuple[Statement, ...] = tuple(body.statements)
        for name, extent in zip(reversed(inner), reversed(sizes), strict=True):
            if isinstance(name, Name):
                loops = (For(name.name, index(0), self.extents.canonical(extent).size, loops),)
        after = Body(self, here, present=present, rows=rows)
        for stage, names in variables.items():
            self._finished(after, stage, names, shared)
        return [*before.statements, *loops, *after.statements]

    def _started(self, body: Body, stage: Stage) -> list[Name]:
        assert stage.start is not None
        names: list[Name] = []
        for wanted, value in stage.start(body):
            name = self.fresh(wanted)
            body.statements.append(Declare(name, value))
            names.append(Name(name, value.type))
        return names

    def _write(self, body: Body, stage: Stage, variables: Mapping[Stage, Sequence[Name]]) -> None:
        """The statements of one stage for one element."""
        if stage.is_reduction:
            assert stage.update is not None
            names = variables.get(stage) or [Name(n, v.type) for n, v in (stage.start or (lambda _: []))(body)]
            stage.update(body, body.outer, body.inner, names)
            return
        assert stage.element is not None
        indices = (*body.outer, *body.inner)[: len(stage.shape)]
        value = stage.element(body, indices)
        body.present[stage] = value
        if stage in body.rows:
            place = offset(indices[len(body.outer) :], stage.shape[len(body.outer) :], self.extents)
            body.statements.append(Store(body.rows[stage], (place,), value))
        else:
            body.statements.append(Store(self.buffer_of(stage), (self._place(stage, indices),), value))

    def _place(self, stage: Stage, indices: Indices) -> Expression:
        """The place of an element in the stage's buffer."""
        if stage.within is None:
            return offset(indices, stage.shape, self.extents)
        return offset(stage.within.indices(indices), stage.within.shape, self.extents)

    def _finished(self, body: Body, stage: Stage, names: Sequence[Name], shared: set[Stage]) -> None:
        assert stage.finish is not None
        result = stage.finish(body, names)
        name = self.fresh(stage.name)
        body.statements.append(Let(name, result))
        body.present[stage] = Name(name, result.type)
        if stage.buffer or stage in shared:
            place = (offset(body.outer, stage.shape, self.extents),)
            body.statements.append(Store(self.buffer_of(stage), place, body.present[stage]))


def _count(shape: Sequence[Extent]) -> int:
    """The number of elements in the example."""
    return prod(extent.example for extent in shape)


_FEW: Final = 64
"""Rows up to which threads that share a row leave most of a machine's threads idle."""

# ------------------------------------------------------------------ loops made simpler


def _around(outer: Sequence[For], loop: Statement) -> Statement:
    """The loop inside of these, the last of them innermost."""
    for each in reversed(outer):
        loop = replace(each, body=(loop,))
    return loop


def _rooms_apart(nest: Nest, body: Sequence[Statement]) -> tuple[list[Statement], list[Statement]]:
    """The allocations of a nest with loops of its own, and the rest; what a template has written is all rest, as nobody
    else reads its buffers."""
    if nest.stages[0].template is not None:
        return [], [*body]
    rooms: list[Statement] = [each for each in body if isinstance(each, Allocate)]
    return rooms, [each for each in body if not isinstance(each, Allocate)]


def parallel(loop: Statement, everywhere: bool = False) -> Statement:
    """The outermost loop in parallel, the innermost ones as vectors; those between, too, if `everywhere`."""
    inside = [*all_statements(loop.body)] if isinstance(loop, For) else []
    declared = {each.name for each in inside if isinstance(each, Declare)}
    written = {each.name for each in inside if isinstance(each, (Accumulate, Assign))}
    if not isinstance(loop, For) or not written <= declared:
        return _vectors(loop, everywhere)
    return replace(loop, kind="parallel", body=tuple(_vectors(each, everywhere) for each in loop.body))


def _vectors(statement: Statement, everywhere: bool) -> Statement:
    if not isinstance(statement, For):
        return statement
    inside = [*all_statements(statement.body)]
    is_marked = everywhere or not any(isinstance(each, For) for each in inside)
    kind = "vector" if is_marked and not any(isinstance(each, Assign) for each in inside) else statement.kind
    return replace(statement, kind=kind, body=tuple(_vectors(each, everywhere) for each in statement.body))


def merged(statement: Statement) -> Statement:
    """Two loops as one, where they go over memory as one does; likewise inside."""
    if not isinstance(statement, For):
        return statement
    outer = replace(statement, body=tuple(map(merged, statement.body)))
    if len(outer.body) != 1 or not isinstance(outer.body[0], For):
        return outer
    inner = outer.body[0]
    names, flat = (outer.index, inner.index), f"{outer.index}{inner.index}"
    changed = [_flattened(each, names, inner.stop, flat) for each in inner.body]
    if any(each is None for each in changed):
        return outer
    return For(flat, index(0), multiply(outer.stop, inner.stop), tuple(each for each in changed if each is not None))


def _flattened(s: Statement, names: tuple[str, str], extent: Expression, flat: str) -> Statement | None:
    """The statement with one index for two; None where that cannot be."""
    if not isinstance(s, (Let, Store, Accumulate)):
        return None
    failed: list[Expression] = []

    def place(old: Expression) -> Expression:
        found = _flat_place(old, names, extent, flat)
        if found is None:
            failed.append(old)
        return found or old

    value = rewritten(s.value, lambda e: replace(e, indices=(place(e.indices[0]),)) if isinstance(e, Load) else e)
    if failed or any(_mentions(each, names) for each in _outside_loads(value)):
        return None
    if not isinstance(s, Store):
        return replace(s, value=value)
    target = _flat_place(s.indices[0], names, extent, flat)
    return None if target is None else replace(s, value=value, indices=(target,))


def _outside_loads(of: Expression) -> Iterable[Expression]:
    """The expression and those inside, but for the indices of loads."""
    yield of
    if not isinstance(of, Load):
        for part in parts(of):
            yield from _outside_loads(part)


def _mentions(of: Expression, names: Sequence[str]) -> bool:
    return isinstance(of, Name) and of.name in names


def _flat_place(at: Expression, names: tuple[str, str], extent: Expression, flat: str) -> Expression | None:
    """`a * outer + b * inner + c` as `b * flat + c`, if a is b * extent."""
    found = affine(at, names)
    if found is None:
        return None
    outer, inner = (found.steps.get(name, _ZERO) for name in names)
    if not is_same_product(outer, multiply(inner, extent)):
        return None
    return add(multiply(Name(flat, "i64"), inner), found.first)


_ZERO: Final = index(0)


def accumulate(body: Body, variable: Name, function: str, value: Expression) -> None:
    """Add an `Accumulate` to a body."""
    body.statements.append(Accumulate(variable.name, function, value))
