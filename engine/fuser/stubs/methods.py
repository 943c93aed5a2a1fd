"""Method descriptors that call any function, as quickly as those of builtin types.

In: a type and a function that takes the object first.  Out: a `Method`, whose descriptor operators (`x + y`) and calls
of methods find without making bound methods.

CPython gives the C function of a method no object of its own, so there are native functions each with a place for the
object that it calls.  The library of operators has `SUPPLY` of them; without it, or beyond, so many are compiled.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any, Final

from engine.fuser.backend import cpython_abi, machine
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.backend.symbols import compiled_ahead
from engine.fuser.stubs.process import Process, process
from engine.fuser.stubs.python_objects import Objects, Value, null, pointer_type, whole
from engine.lang.locks import lock
from engine.lang.records import dataclass

SUPPLY: Final = 256
_free: Final[list[tuple[int, int]]] = []
"""Addresses of native functions, and of the places for what they call."""
_supplies: Final = itertools.count()
_lock: Final = lock()


@dataclass(frozen=True, slots=True)
class Method:
    """A method descriptor, and the address of the place of what it calls."""

    descriptor: Any
    place: int

    def call(self, function: Callable[..., Any]) -> None:
        """Let this function serve calls from now on."""
        ctypes.c_void_p.from_address(self.place).value = cpython_abi.retain(function)


def method(kind: type, name: str, function: Callable[..., Any], doc: str = "") -> Method:
    """A method of that type which calls `function(self, …)`; raises AbiError, MachineError."""
    with _lock:
        if not _free:
            _free.extend(_supply())
        address, place = _free.pop()
    made = Method(cpython_abi.method(kind, name, address, doc), place)
    made.call(function)
    return made


def _supply() -> list[tuple[int, int]]:
    number = next(_supplies)
    made = program(number)
    addresses = (compiled_ahead(made.names) if number == 0 else None) or machine.compile_program(made).addresses
    first = ctypes.CFUNCTYPE(ctypes.c_int64)(addresses[_PLACES])()
    return [(addresses[name], first + 8 * i) for i, name in enumerate(made.names[:-1])]


def program(number: int = 0) -> machine.Program:
    """The native code of a supply, each of which has places of its own."""
    names = (*(f"method.{i}" for i in range(SUPPLY)), _PLACES)
    return machine.Program(f"methods {number} {process().layout}", module, names)


_PLACES: Final = "method.places"
"""A function that gives the address of the first place."""


def module() -> Any:
    """An `llvmlite.ir` module with `ptr method.N(ptr self, ptr args, i64 n, ptr names)` for each N; raises AbiError."""
    at, lib, pointer = process(), ir(), pointer_type()
    made = lib.Module("methods")
    row = lib.ArrayType(pointer, SUPPLY)
    places = lib.GlobalVariable(made, row, "place")
    places.linkage, places.initializer, places.type = "internal", lib.Constant(row, None), pointer
    ask = Objects.into(lib.Function(made, lib.FunctionType(lib.IntType(64), []), _PLACES), at)
    ask.b.ret(ask.b.ptrtoint(places, lib.IntType(64)))
    signature = lib.FunctionType(pointer, [pointer, pointer, lib.IntType(64), pointer])
    forward = _forward(made, signature, at)
    for i in range(SUPPLY):
        o = Objects.into(lib.Function(made, signature, f"method.{i}"), at)
        o.b.ret(o.b.call(forward, [o.field(places, 8 * i), *o.function.args]))
    return made


def _forward(made: Any, signature: Any, at: Process) -> Any:
    """`ptr forward(ptr function, ptr self, ptr args, i64 n, ptr names)`."""
    kind = ir().FunctionType(pointer_type(), [pointer_type(), *signature.args])
    o = Objects.into(ir().Function(made, kind, "forward"), at)
    o.function.linkage = "internal"
    function, this, args, count, names = o.function.args
    one, many = o.block("one"), o.block("many")
    is_one = o.b.and_(o.same(count, whole(1)), o.same(names, null()))
    o.b.cbranch(is_one, one, many)
    o.b.position_at_end(one)
    _answer(o, function, this, args, whole(1), whole(1), null())
    o.b.position_at_end(many)
    _answer(o, function, this, args, count, o.b.add(count, _named(o, names)), names)
    return o.function


def _named(o: Objects, names: Value) -> Value:
    """The number of arguments given by name."""
    start, some, done = o.b.block, o.block("some"), o.block("done")
    o.b.cbranch(o.same(names, null()), done, some)
    o.b.position_at_end(some)
    found = o.call("PyTuple_Size", names)
    o.b.branch(done)
    o.b.position_at_end(done)
    count = o.b.phi(ir().IntType(64))
    count.add_incoming(whole(0), start)
    count.add_incoming(found, some)
    return count


def _answer(o: Objects, function: Value, this: Value, args: Value, count: Value, total: Value, names: Value) -> None:
    """Return what the function gives for the object and these arguments, `total` with those given by name."""
    room = o.room(o.b.add(total, whole(1)))
    o.b.store(this, room)
    o.copy(o.place(room, 8), args, o.b.mul(total, whole(8)))
    o.b.ret(o.call("PyObject_Vectorcall", function, room, o.b.add(count, whole(1)), names))
