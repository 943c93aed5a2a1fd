"""Native code of methods, each of which calls what is in its place.

In: this process.  Out: the module of a supply of them (`methods`).
"""

from __future__ import annotations

from typing import Any

from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.stubs.methods import PLACES, SUPPLY
from engine.fuser.stubs.process import Process, process
from engine.fuser.stubs.python_objects import Objects, Value, null, pointer_type, whole


def module() -> Any:
    """An `llvmlite.ir` module with `ptr method.N(ptr self, ptr args, i64 n, ptr names)` for each N; raises AbiError."""
    at, lib, pointer = process(), ir(), pointer_type()
    made = lib.Module("methods")
    row = lib.ArrayType(pointer, SUPPLY)
    places = lib.GlobalVariable(made, row, "place")
    places.linkage, places.initializer, places.type = "internal", lib.Constant(row, None), pointer
    ask = Objects.into(lib.Function(made, lib.FunctionType(lib.IntType(64), []), PLACES), at)
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
