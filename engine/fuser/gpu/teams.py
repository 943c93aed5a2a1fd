"""Teams: threads of a block that share a row.

In: the function under construction and the shape of its launch.  Out: `Team`: the place of the thread that runs it,
barriers, and values combined over the team.

Lanes of a team are neighbours, up to the whole block; or neighbours are of different teams, the lanes of one being
`teams` threads apart.  All threads of a block come to the same barriers and shuffles, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from engine.fuser.backend.llvm_numbers import Value, constant, ir, stored_type, type_of
from engine.fuser.backend.to_llvm import Emitter
from engine.fuser.gpu.shapes import WARP, Shape
from engine.fuser.ir.kernel import BOOL, FLOATS, least, most
from engine.lang.records import dataclass

READ: Final = "llvm.nvvm.read.ptx.sreg."
"""Begins the names of the functions that give the numbers of a thread."""
BARRIER: Final = "llvm.nvvm.barrier0"
WARP_BARRIER: Final = "llvm.nvvm.bar.warp.sync"
SHUFFLE: Final = "llvm.nvvm.shfl.sync.bfly.i32"
"""The word that the lane gave whose number differs in these bits."""
WORD: Final = 8
"""Bytes for a partial result, of any type."""
_ALL: Final = -1
"""The mask of all lanes of a warp."""


@dataclass(frozen=True, slots=True)
class Team:
    """`thread`: of the block; `team`: of its teams; `lane`: of the team.  All are i32."""

    e: Emitter
    shape: Shape
    thread: Value
    team: Value
    lane: Value

    @classmethod
    def of(cls, e: Emitter, shape: Shape) -> Team:
        """That of the thread that runs the function."""
        b, half = e.builder, ir().IntType(32)
        thread = b.call(e.declared(f"{READ}tid.x", [], half), [])
        if shape.team == 1:
            return cls(e, shape, thread, thread, half(0))
        size = half(shape.teams if shape.is_across else shape.team)
        parts = b.urem(thread, size), b.udiv(thread, size)
        return cls(e, shape, thread, *(parts if shape.is_across else reversed(parts)))

    @property
    def is_in_warp(self) -> bool:
        return not self.shape.is_across and self.shape.team <= WARP

    def barrier(self) -> None:
        """Wait for the others of the team, and see what they wrote."""
        e, lib = self.e, ir()
        if self.is_in_warp:
            e.builder.call(e.declared(WARP_BARRIER, [lib.IntType(32)], lib.VoidType()), [lib.IntType(32)(_ALL)])
        else:
            e.builder.call(e.declared(BARRIER, [], lib.VoidType()), [])

    def combined(self, function: str, value: Value, type: str) -> Value:
        """The values of all lanes as one, which all get."""
        if self.shape.is_across:
            return self._from_memory(function, value, type)
        value = self._exchanged(function, value, type, min(self.shape.team, WARP))
        if self.is_in_warp:
            return value
        warps = self.shape.team // WARP
        b, half = self.e.builder, ir().IntType(32)
        own = b.udiv(self.thread, half(WARP))
        self._put(own, value, type)
        self.barrier()
        value = self._got(b.urem(self.thread, half(warps)), type)
        self.barrier()
        return self._exchanged(function, value, type, warps)

    def _from_memory(self, function: str, value: Value, type: str) -> Value:
        """Those of lanes that are apart: each thread reads all of its team."""
        b, half = self.e.builder, ir().IntType(32)
        self._put(self.thread, value, type)
        self.barrier()
        for lane in range(self.shape.team):
            other = self._got(b.add(self.team, half(lane * self.shape.teams)), type)
            value = other if lane == 0 else self.e.combined(function, value, other, type)
        self.barrier()
        return value

    def _exchanged(self, function: str, value: Value, type: str, lanes: int) -> Value:
        """Those of so many neighbours, by halves."""
        distance = lanes // 2
        while distance:
            value = self.e.combined(function, value, self._other(value, type, distance), type)
            distance //= 2
        return value

    def _other(self, value: Value, type: str, distance: int) -> Value:
        """The value of the lane that is so far away."""
        e, half = self.e, ir().IntType(32)
        function = e.declared(SHUFFLE, [half] * 4, half)
        words = [
            e.builder.call(function, [half(_ALL), word, half(distance), half(WARP - 1)])
            for word in _words(e.builder, value)
        ]
        return _from_words(e.builder, words, type)

    # -- partial results in shared memory

    def _place(self, number: Value) -> Value:
        lib, name = ir(), f"{self.e.function.name}.partial"
        made = self.e.module
        if name not in made.globals:
            words = self.shape.threads if self.shape.is_across else self.shape.team // WARP
            room = lib.GlobalVariable(made, lib.ArrayType(lib.IntType(64), words), name, addrspace=3)
            room.linkage, room.initializer, room.align = "internal", lib.Constant(room.value_type, lib.Undefined), WORD
        base = self.e.builder.addrspacecast(made.globals[name], lib.PointerType())
        return self.e.builder.gep(base, [self.e.builder.zext(number, lib.IntType(64))], source_etype=lib.IntType(64))

    def _put(self, number: Value, value: Value, type: str) -> None:
        """The value as the partial result of that number; all threads with the number give the same."""
        self.e.store(self._place(number), value, type)

    def _got(self, number: Value, type: str) -> Value:
        return self.e.loaded(self.e.builder.load(self._place(number), typ=stored_type(type)), type)


def neutral(function: str, type: str) -> Value:
    """The value that a function of `ACCUMULATORS` makes no difference with."""
    if function in ("minimum", "maximum"):
        found = most(type) if function == "minimum" else least(type)
        return constant(found, type)
    if function == "bitand":
        return constant(True if type == BOOL else -1, type)
    return constant({"add": 0, "mul": 1, "bitor": 0}[function], type)


def _words(builder: Any, value: Value) -> Iterator[Value]:
    """The value's bits, in words of 32."""
    lib = ir()
    bits = {"float": 32, "double": 64}.get(str(value.type)) or value.type.width
    if str(value.type) in ("float", "double"):
        value = builder.bitcast(value, lib.IntType(bits))
    if bits < 32:
        value = builder.zext(value, lib.IntType(32))
    if bits <= 32:
        yield value
        return
    yield builder.trunc(value, lib.IntType(32))
    yield builder.trunc(builder.lshr(value, lib.IntType(64)(32)), lib.IntType(32))


def _from_words(builder: Any, words: list[Value], type: str) -> Value:
    lib = ir()
    found = words[0]
    if len(words) == 2:
        low, high = (builder.zext(word, lib.IntType(64)) for word in words)
        found = builder.or_(low, builder.shl(high, lib.IntType(64)(32)))
    if type in FLOATS:
        return builder.bitcast(found, type_of(type))
    return found if found.type == type_of(type) else builder.trunc(found, type_of(type))
