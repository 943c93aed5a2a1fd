"""Memory for what kernels compute in between, which is kept for the next call instead of given back.

In: nothing.  Out: the addresses of two native functions, `allocate(bytes)`, which gives null where there is no memory,
and `release(address)`.  Without them, each call of a kernel would have its pages from the system anew, which takes
longer than many a kernel.

Large pieces that are released rest in a few slots, from which whoever comes first takes one; slots are exchanged in one
instruction, so threads need no lock.  A header before each piece has its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from engine.fuser.backend.symbols import ALLOCATE, RELEASE, compiled_ahead
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.fuser.backend import machine
else:
    machine = deferred("engine.fuser.backend.machine")  # not needed where the library of operators has this

SLOTS: Final = 16
LEAST: Final = 1 << 16
"""Bytes from which on a piece is kept: the C library does so itself for smaller ones."""
MOST: Final = 1 << 26
"""Bytes up to which a piece is kept."""
HEADER: Final = 64


class _Writer:
    """Builder of one of the functions."""

    def __init__(self, function: Any) -> None:
        self.ir = import_module("llvmlite.ir")
        self.function, self.module = function, function.module
        self.whole, self.pointer = self.ir.IntType(64), self.ir.PointerType()
        self.b = self.ir.IRBuilder(function.append_basic_block("entry"))

    def call(self, name: str, result: Any, *given: Any) -> Any:
        known = self.module.globals.get(name)
        signature = self.ir.FunctionType(result, [each.type for each in given])
        return self.b.call(known or self.ir.Function(self.module, signature, name), given)

    def free(self, address: Any) -> None:
        self.call("free", self.ir.VoidType(), self.b.inttoptr(self.b.sub(address, self.whole(HEADER)), self.pointer))

    def size(self, address: Any) -> Any:
        """The place of a piece's size."""
        return self.b.inttoptr(self.b.sub(address, self.whole(HEADER)), self.pointer)

    def exchanged(self, slot: int, value: Any) -> Any:
        """The slot's piece, in place of which is another."""
        place = self.b.gep(self.module.globals["slots"], [self.whole(0), self.whole(slot)])
        return self.b.atomic_rmw("xchg", place, value, "seq_cst")

    def put(self, slot: int, address: Any) -> None:
        """A piece into the slot, for whatever is there."""
        before = self.exchanged(slot, address)
        with self.b.if_then(self.b.icmp_unsigned("!=", before, self.whole(0))):
            self.free(before)


def _module() -> Any:
    ir = import_module("llvmlite.ir")
    made = ir.Module("scratch")
    made.triple = import_module("llvmlite.binding").get_default_triple()
    slots = ir.GlobalVariable(made, ir.ArrayType(ir.IntType(64), SLOTS), "slots")
    slots.linkage, slots.initializer = "internal", ir.Constant(slots.value_type, None)
    whole = ir.IntType(64)
    _allocate(_Writer(ir.Function(made, ir.FunctionType(whole, [whole]), ALLOCATE)))
    _release(_Writer(ir.Function(made, ir.FunctionType(ir.VoidType(), [whole]), RELEASE)))
    return made


def _allocate(w: _Writer) -> None:
    (size,) = w.function.args
    zero = w.whole(0)
    with w.b.if_then(w.b.icmp_unsigned(">=", size, w.whole(LEAST))):
        for slot in range(SLOTS):
            found = w.exchanged(slot, zero)
            with w.b.if_then(w.b.icmp_unsigned("!=", found, zero)):
                room = w.b.load(w.size(found), typ=w.whole)
                is_fit = w.b.and_(
                    w.b.icmp_unsigned(">=", room, size), w.b.icmp_unsigned("<=", w.b.lshr(room, w.whole(2)), size)
                )
                with w.b.if_then(is_fit):
                    w.b.ret(found)
                w.put(slot, found)
    rounded = w.b.and_(w.b.add(size, w.whole(2 * HEADER - 1)), w.whole(-HEADER))
    piece = w.b.ptrtoint(w.call("aligned_alloc", w.pointer, w.whole(HEADER), rounded), w.whole)
    with w.b.if_then(w.b.icmp_unsigned("==", piece, zero)):
        w.b.ret(zero)
    address = w.b.add(piece, w.whole(HEADER))
    w.b.store(size, w.size(address))
    w.b.ret(address)


def _release(w: _Writer) -> None:
    """A piece into the first slot that is empty, else for the one that is in a slot of its own size."""
    (address,) = w.function.args
    zero = w.whole(0)
    with w.b.if_then(w.b.icmp_unsigned("==", address, zero)):
        w.b.ret_void()
    size = w.b.load(w.size(address), typ=w.whole)
    is_kept = w.b.and_(w.b.icmp_unsigned(">=", size, w.whole(LEAST)), w.b.icmp_unsigned("<=", size, w.whole(MOST)))
    with w.b.if_then(is_kept):
        for slot in range(SLOTS):
            place = w.b.gep(w.module.globals["slots"], [zero, w.whole(slot)])
            done = w.b.cmpxchg(place, zero, address, "seq_cst", "seq_cst")
            with w.b.if_then(w.b.extract_value(done, 1)):
                w.b.ret_void()
    w.free(address)
    w.b.ret_void()


@cache
def addresses() -> Mapping[str, int]:
    """The addresses of both functions, by their symbols.  Raises MachineError."""
    return compiled_ahead((ALLOCATE, RELEASE)) or machine.compile_program(program()).addresses


def program() -> machine.Program:
    """The native code of both functions."""
    return machine.Program("scratch", _module, (ALLOCATE, RELEASE))
