"""Launches as LLVM IR for NVPTX, through the emitter of the host.

In: `Launch`es and their `Shape`s.  Out: a function `void NAME(parameters)` of an `llvmlite.ir` module for each, which
every thread of a grid runs.  All parameters have 8 bytes; the last is memory for what rows keep, if they keep any.

What is a GPU's here are the numbers of threads, barriers, shuffles and shared memory (`teams`).  All else the host
runs, too: `emulated` replaces these few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from engine.fuser.backend.llvm_lines import Scope
from engine.fuser.backend.llvm_numbers import Value, ir, stored_type, type_of
from engine.fuser.backend.to_llvm import Emitter, Memory, Slot
from engine.fuser.gpu import library
from engine.fuser.gpu.launches import Launch
from engine.fuser.gpu.narrowing import narrowed
from engine.fuser.gpu.shapes import Shape
from engine.fuser.gpu.teams import READ, Team, neutral
from engine.fuser.gpu.vectors import Vectors, vectors_of
from engine.fuser.gpu.walking import Nest, accumulated, loaded, nest_of, stored
from engine.fuser.ir.kernel import SIZES, Buffer, Expression, For, Load, Scalar, Statement, Store, index, product
from engine.lang.records import dataclass

TRIPLE: Final = "nvptx64-nvidia-cuda"
SHARED: Final = "shared_rooms"
"""Shared memory whose size the launch gives."""
ROOM: Final = 16
"""Bytes of which the size of a row's buffer is a multiple."""


def module(launches: Sequence[tuple[Launch, Shape]], name: str = "launches", has_lines: bool = False) -> Any:
    """A module with a function for each launch, whose instructions say their lines if it `has_lines`."""
    made = ir().Module(name)
    made.triple = TRIPLE
    scope = Scope.of(made) if has_lines else None
    for launch, shape in launches:
        _Grid.of(made, launch, shape, scope).run()
    library.define(made)
    return made


def _passed_type(name: str) -> Any:
    """The type of a number that is a parameter, in 8 bytes."""
    return type_of(name if name == "f64" else "i64")


@dataclass(eq=False, slots=True)
class _Grid:
    """The function of a launch under construction."""

    e: Emitter
    launch: Launch
    shape: Shape
    team: Team
    indices: set[str] = field(default_factory=set)
    """Names that stand for indices and sizes."""

    @classmethod
    def of(cls, made: Any, launch: Launch, shape: Shape, scope: Scope | None) -> _Grid:
        """The beginning of the function, with names for its parameters."""
        lib = ir()
        types = [lib.PointerType() if isinstance(p, Buffer) else _passed_type(p.type) for p in launch.parameters]
        types += [lib.PointerType()] * bool(launch.rooms)
        function = lib.Function(made, lib.FunctionType(lib.VoidType(), types), launch.name)
        function.calling_convention = "ptx_kernel"
        note = made.add_metadata([function, "maxntidx", lib.IntType(32)(shape.threads)])
        made.add_named_metadata("nvvm.annotations").add(note)
        e = Emitter.into(function, any_order=False, helpers={}, around=scope, line=launch.nest.line)
        e.constant = frozenset(p.name for p in launch.parameters if isinstance(p, Buffer) and p.access == "in")
        for parameter, value in zip(launch.parameters, function.args, strict=False):
            if isinstance(parameter, Scalar):
                e.names[parameter.name] = e.loaded(value, parameter.type)
        for parameter, value in zip(launch.parameters, function.args, strict=False):
            if isinstance(parameter, Buffer):
                value.add_attribute("noalias")
                e.bind_buffer(parameter, value)
        return cls(e, launch, shape, Team.of(e, shape), {*launch.sizes})

    def run(self) -> None:
        self.divide_rooms()
        if self.shape.team > 1:
            self.rows()
        else:
            threads = self.counter(self.shape.threads)
            b = self.e.builder
            first = b.add(b.mul(self.number("ctaid"), threads), self.number("tid"), flags=("nsw",))
            tiles = self.launch.tiles
            nest = tiles.nest if tiles is not None and self.shape.is_tiled else self.launch.nest
            self.spread(nest, first, b.mul(self.number("nctaid"), threads))
        self.e.run(())

    # -- counters

    @property
    def counter(self) -> Any:
        """The type of what is counted."""
        return ir().IntType(32 if self.shape.is_narrow else 64)

    def number(self, name: str) -> Value:
        """One of the numbers that the thread has, or that there are, as a counter."""
        half = ir().IntType(32)
        return self.widened(self.e.builder.call(self.e.declared(f"{READ}{name}.x", [], half), []))

    def widened(self, value: Value) -> Value:
        """An i32 as a counter."""
        return value if self.shape.is_narrow else self.e.builder.zext(value, self.counter)

    def counted(self, of: Expression) -> Value:
        """The value of an i64 expression, as a counter."""
        value = self.e.value(of)
        return self.e.builder.trunc(value, self.counter) if self.shape.is_narrow else value

    def name(self, index_name: str, value: Value) -> None:
        """Have the name of an index stand for a counter."""
        self.indices.add(index_name)
        self.e.names[index_name] = self.e.builder.zext(value, type_of("i64")) if self.shape.is_narrow else value

    @contextmanager
    def loop(self, first: Value, stop: Value, step: Value) -> Iterator[Value]:
        """A loop over counters; names in it are its own."""
        e = self.e
        before, names = e.builder.block, dict(e.names)
        head, body, done = (e.function.append_basic_block() for _ in range(3))
        e.builder.branch(head)
        e.builder.position_at_end(head)
        at = e.builder.phi(self.counter)
        at.add_incoming(first, before)
        e.builder.cbranch(e.builder.icmp_signed("<", at, stop), body, done)
        e.builder.position_at_end(body)
        yield at
        at.add_incoming(e.builder.add(at, step, flags=("nsw",)), e.builder.block)
        e.builder.branch(head)
        e.builder.position_at_end(done)
        e.names = names

    # -- rooms

    def divide_rooms(self) -> None:
        """Give this team its part of the memory for what rows keep.

        Elements of one row follow each other, or lie beside those of the same place in other rows where neighbouring
        threads have neighbouring rows.
        """
        if not self.launch.rooms:
            return
        b, whole = self.e.builder, type_of("i64")
        own, count = b.zext(self.team.team, whole), whole(self.shape.teams)
        base = self.shared() if self.shape.in_shared else self.e.function.args[-1]
        if not self.shape.in_shared:
            blocks, block = (b.zext(self.number(name), whole) for name in ("nctaid", "ctaid"))
            own, count = b.add(b.mul(block, count), own), b.mul(blocks, count)
        for room in self.launch.rooms:
            size = whole(SIZES[room.type])
            bytes_ = b.and_(b.add(b.mul(self.e.value(product(room.shape or ())), size), whole(ROOM - 1)), whole(-ROOM))
            is_apart = self.shape.are_rows_beside
            address = b.gep(base, [b.mul(own, size if is_apart else bytes_)], source_etype=ir().IntType(8))
            self.e.buffers[room.name] = Memory(room, address, (count if is_apart else whole(1),))
            base = b.gep(base, [b.mul(count, bytes_)], source_etype=ir().IntType(8))

    def shared(self) -> Value:
        """The address of the shared memory whose size the launch gives."""
        lib, made = ir(), self.e.module
        if SHARED not in made.globals:
            room = lib.GlobalVariable(made, lib.ArrayType(lib.IntType(8), 0), SHARED, addrspace=3)
            room.linkage, room.align = "external", ROOM
        return self.e.builder.addrspacecast(made.globals[SHARED], lib.PointerType())

    # -- rows

    def rows(self) -> None:
        """Rows for teams.  A team without a row goes along with the last one, and writes nothing."""
        b, nest = self.e.builder, self.launch.nest
        teams = self.counter(self.shape.teams)
        count = self.counted(nest.extents[0])
        first, step = (b.mul(self.number(name), teams) for name in ("ctaid", "nctaid"))
        with self.loop(first, count, step) as begin:
            row = b.add(begin, self.widened(self.team.team), flags=("nsw",))
            is_there = b.icmp_signed("<", row, count)
            last = b.sub(count, self.counter(1))
            self.name(nest.indices[0], b.select(is_there, row, last))
            for statement in nest.body:
                self.row_statement(statement, is_there)
            if self.launch.rooms:
                self.team.barrier()

    def row_statement(self, statement: Statement, is_there: Value) -> None:
        """A statement that all threads of a team run together."""
        b = self.e.builder
        if isinstance(statement, For):
            with self.e.at(statement.line):
                self.shared_loop(nest_of(statement), is_there)
            return
        (narrow,) = self.narrowed([statement])
        if isinstance(statement, Store):
            is_first = b.icmp_signed("==", self.team.lane, self.team.lane.type(0))
            with b.if_then(b.and_(is_there, is_first)):
                self.e.statement(narrow)
            if statement.buffer in loaded(self.launch.nest.body):
                self.team.barrier()
        else:
            self.e.statement(narrow)

    def shared_loop(self, nest: Nest, is_there: Value) -> None:
        """A loop in a row, for the lanes of a team.  What it accumulates, each lane does by itself at first."""
        e, names = self.e, accumulated(nest.body)
        outside = {name: e.names[name] for name in names}
        for name, slot in outside.items():
            own = Slot(e.slot(type_of(slot.type)), slot.type)
            e.builder.store(neutral(names[name], slot.type), own.address)
            e.names[name] = own
        own_names = {name: e.names[name] for name in names}
        self.spread(nest, self.widened(self.team.lane), self.counter(self.shape.team), is_there)
        for name, slot in outside.items():
            type = type_of(slot.type)
            found = self.team.combined(names[name], e.builder.load(own_names[name].address, typ=type), slot.type)
            before = e.builder.load(slot.address, typ=type)
            e.builder.store(e.combined(names[name], before, found, slot.type), slot.address)
            e.names[name] = slot
        if stored(nest.body):
            self.team.barrier()

    def narrowed(self, body: Sequence[Statement]) -> list[Statement]:
        return narrowed(body, self.indices) if self.shape.is_narrow else [*body]

    # -- loops that threads share

    def spread(self, nest: Nest, first: Value, step: Value, is_there: Value = None) -> None:
        """The iterations for threads that begin with `first` and are `step` in all, in vectors as far as can be."""
        b = self.e.builder
        extents = [self.counted(each) for each in nest.extents]
        total = extents[0]
        for each in extents[1:]:
            total = b.mul(total, each, flags=("nsw",))
        if is_there is not None:
            total = b.select(is_there, total, self.counter(0))
        vectors = None if self.shape.are_rows_beside and self.launch.rooms else vectors_of(nest)
        begin = self.counter(0)
        if vectors is not None:
            width = self.counter(vectors.width)
            chunks = b.select(self.is_even(vectors), b.udiv(total, width), begin)
            with self.loop(first, chunks, step) as chunk:
                self.split(b.mul(chunk, width, flags=("nsw",)), nest, extents)
                self.chunk(vectors, nest.indices[-1])
            begin = b.mul(chunks, width, flags=("nsw",))
        with self.loop(b.add(begin, first, flags=("nsw",)), total, step) as at:
            self.split(at, nest, extents)
            self.e.block(self.narrowed(nest.body))

    def split(self, flat: Value, nest: Nest, extents: Sequence[Value]) -> None:
        """Name the indices of an iteration."""
        b = self.e.builder
        for name, extent in zip(nest.indices[:0:-1], extents[:0:-1], strict=True):
            self.name(name, b.urem(flat, extent))
            flat = b.udiv(flat, extent)
        self.name(nest.indices[0], flat)

    def is_even(self, vectors: Vectors) -> Value:
        """True where all vectors begin at multiples of their size."""
        e, b, whole = self.e, self.e.builder, type_of("i64")
        found: Value = ir().IntType(1)(1)
        wanted = [(e.value(each), vectors.width) for each in vectors.multiples]
        buffers = (*(each.buffer for _, each in vectors.loads), *(each.buffer for _, each in vectors.stores))
        for name in dict.fromkeys(buffers):
            memory = e.buffers[name]
            wanted.append((b.ptrtoint(memory.address, whole), vectors.width * SIZES[memory.buffer.type]))
        for value, divisor in wanted:
            left = b.and_(value, whole(divisor - 1))
            found = b.and_(found, b.icmp_signed("==", left, whole(0)))
        return found

    def chunk(self, vectors: Vectors, innermost: str) -> None:
        """One vector of iterations, from where the indices are."""
        e, b, half = self.e, self.e.builder, ir().IntType(32)
        loaded: dict[str, Value] = {}
        for name, load in vectors.loads:
            with e.at(vectors.lines[name]):
                loaded[name] = self.loaded_vector(load, vectors.width)
        places = {name: self.address(store) for name, store in vectors.stores}
        made: dict[str, Value] = {}
        body = self.narrowed(vectors.body)
        begin = e.names[innermost]
        for lane in range(vectors.width):
            e.names[innermost] = b.add(begin, begin.type(lane), flags=("nsw",))
            for name, load in vectors.loads:
                with e.at(vectors.lines[name]):
                    e.names[name] = e.loaded(b.extract_element(loaded[name], half(lane)), load.type)
            for statement in body:
                e.statement(statement)
            for name, store in vectors.stores:
                made[name] = self.inserted(made.get(name), e.names[name], lane, vectors.width, store)
        for name, store in vectors.stores:
            with e.at(vectors.lines[name]):
                b.store(made[name], places[name], align=vectors.width * SIZES[store.value.type])

    def loaded_vector(self, load: Load, width: int) -> Value:
        type = ir().VectorType(stored_type(load.type), width)
        return self.e.load(load.buffer, self.address(load), width * SIZES[load.type], type)

    def address(self, access: Load | Store) -> Value:
        """The address of the access where the indices are."""
        (narrow,) = self.narrowed([Store(access.buffer, access.indices, index(0))])
        assert isinstance(narrow, Store)
        return self.e.address(access.buffer, narrow.indices)

    def inserted(self, vector: Value, value: Value, lane: int, width: int, store: Store) -> Value:
        lib, type = ir(), stored_type(store.value.type)
        if vector is None:
            vector = lib.Constant(lib.VectorType(type, width), lib.Undefined)
        stored = value if value.type == type else self.e.builder.zext(value, type)
        return self.e.builder.insert_element(vector, stored, lib.IntType(32)(lane))
