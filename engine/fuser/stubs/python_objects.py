"""Python's objects in native code: builders of what reads, makes and counts them.

In: an `llvmlite.ir` function under construction.  Out: values in it; tensors and the grad mode are looked after by
functions of their own, once in a module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.backend.symbols import WATCH
from engine.fuser.stubs.process import NEW_ARRAY, Process, symbol
from engine.lang.records import dataclass

Value = Any
"""An `llvmlite.ir` value."""
IMMORTAL: Final = sys.version_info >= (3, 12)
"""True if None, False, True and small numbers do not count their references."""


def pointer_type() -> Any:
    return ir().PointerType()


def whole(value: int, bits: int = 64) -> Value:
    return ir().IntType(bits)(value)


def null() -> Value:
    return ir().Constant(pointer_type(), None)


def _untyped(address: Value) -> Value:
    """The address with the type that LLVM gives it; llvmlite still gives it the type of what is there."""
    address.type = pointer_type()
    return address


def signature(name: str) -> Any:
    """The type of one of CPython's or numpy's functions."""
    types = {"p": pointer_type(), "l": ir().IntType(64), "i": ir().IntType(32), "d": ir().DoubleType(), "": None}
    result, operands = _SIGNATURES[name]
    return ir().FunctionType(types[result] or ir().VoidType(), [types[each] for each in operands])


_SIGNATURES: Final = {
    "PyObject_Vectorcall": ("p", "pplp"), "PyObject_GetAttr": ("p", "pp"), "PyType_GenericAlloc": ("p", "pl"),
    "PyLong_AsLongLongAndOverflow": ("l", "pp"), "PyLong_FromLongLong": ("p", "l"), "PyFloat_FromDouble": ("p", "d"),
    "PyErr_Clear": ("", ""), "PyErr_Occurred": ("p", ""), "PyTuple_New": ("p", "l"), "PyTuple_SetItem": ("i", "plp"),
    "PyTuple_GetItem": ("p", "pl"), "PyTuple_Size": ("l", "p"), "PySet_Size": ("l", "p"),
    "PyEval_SaveThread": ("p", ""), "PyEval_RestoreThread": ("", "p"), "Py_IncRef": ("", "p"), "Py_DecRef": ("", "p"),
    NEW_ARRAY: ("p", "ppipppip"), WATCH: ("l", "l"),
}  # fmt: skip
"""Result and operands: a pointer, long (i64), int (i32) or double."""


@dataclass(slots=True)
class Objects:
    """A function under construction that handles Python's objects."""

    function: Any
    b: Any
    """The `IRBuilder`."""
    at: Process

    @classmethod
    def into(cls, function: Any, at: Process) -> Objects:
        return cls(function, ir().IRBuilder(function.append_basic_block("entry")), at)

    # -- control

    def block(self, name: str) -> Any:
        return self.function.append_basic_block(name)

    def need(self, condition: Value, otherwise: Any) -> None:
        """Go on where it holds."""
        go = self.block("go")
        self.b.cbranch(condition, go, otherwise)
        self.b.position_at_end(go)

    def same(self, a: Value, b: Value) -> Value:
        return self.b.icmp_unsigned("==", a, b)

    def differ(self, a: Value, b: Value) -> Value:
        return self.b.icmp_unsigned("!=", a, b)

    # -- objects

    def object(self, name: str) -> Value:
        """One of the objects of `process`."""
        known = self.function.module.globals.get(symbol(name))
        return known or _untyped(ir().GlobalVariable(self.function.module, ir().IntType(8), symbol(name)))

    def call(self, name: str, *given: Value) -> Value:
        """A call of a function of CPython, numpy, or the pool of threads."""
        known = self.function.module.globals.get(name)
        return self.b.call(known or ir().Function(self.function.module, signature(name), name), given)

    def field(self, base: Value, offset: int, type: Any = None) -> Value:
        return self.b.load(self.place(base, offset), typ=type or pointer_type())

    def place(self, base: Value, offset: int) -> Value:
        return _untyped(self.b.gep(base, [whole(offset)], source_etype=ir().IntType(8)))

    def item(self, base: Value, i: int) -> Value:
        """A number in a row of sizes or strides."""
        return self.field(base, 8 * i, ir().IntType(64))

    def type_of(self, of: Value) -> Value:
        return self.field(of, abi.TYPE_OFFSET)

    def slot(self, of: Value, name: str) -> Value:
        return self.field(of, self.at.slots[name])

    def put(self, into: Value, name: str, value: Value) -> None:
        """Let a slot have this object and its reference, whatever it had before."""
        self.b.store(value, self.place(into, self.at.slots[name]))

    def retain(self, value: Value) -> Value:
        """The object with one more reference."""
        if IMMORTAL:
            self.call("Py_IncRef", value)
        else:
            count = self.field(value, 0, ir().IntType(64))
            self.b.store(self.b.add(count, whole(1)), self.place(value, 0))
        return value

    def release(self, value: Value) -> None:
        self.call("Py_DecRef", value)

    def room(self, pointers: Value) -> Value:
        """The address of room on the stack for so many pointers."""
        return _untyped(self.b.alloca(pointer_type(), size=pointers))

    def copy(self, to: Value, of: Value, length: Value) -> None:
        """Copy bytes, which do not overlap."""
        name, types = "llvm.memcpy.p0.p0.i64", [to.type, of.type, length.type, ir().IntType(1)]
        known = self.function.module.globals.get(name)
        copy = known or ir().Function(self.function.module, ir().FunctionType(ir().VoidType(), types), name)
        self.b.call(copy, [to, of, length, whole(0, 1)])

    # -- functions of this module

    def helper(self, name: str, result: Any, given: Sequence[Value], write: Callable[[Objects], None]) -> Value:
        """A call of a function that is written once, when first called."""
        function = self.function.module.globals.get(name)
        if function is None:
            types = [each.type for each in given]
            function = ir().Function(self.function.module, ir().FunctionType(result, types), name)
            function.linkage = "internal"
            write(Objects.into(function, self.at))
        return self.b.call(function, given)

    def is_recording(self) -> Value:
        """True if this thread records operators."""
        return self.helper("py.is_recording", ir().IntType(1), [], _is_recording)

    def new_tensor(self, type: str, dimensions: Value, rank: Value, strides: Value) -> Value:
        """A tensor of a new array, contiguous for null strides; null, and no error, where there is none to be had."""
        given = [self.object(f"dtype.{type}"), rank, dimensions, strides]
        return self.helper("py.new_tensor", pointer_type(), given, _new_tensor)

    def long(self, of: Value) -> tuple[Value, Value]:
        """The number of an int, and true if it has one of 64 bits."""
        with self.b.goto_entry_block():
            overflow = _untyped(self.b.alloca(ir().IntType(32)))
        self.b.store(whole(0, 32), overflow)
        found = self.call("PyLong_AsLongLongAndOverflow", of, overflow)
        return found, self.same(self.b.load(overflow, typ=ir().IntType(32)), whole(0, 32))


def _is_recording(o: Objects) -> None:
    failed, ask = o.block("failed"), o.block("ask")
    o.need(o.same(o.call("PySet_Size", o.slot(o.object("HOOKS"), "paused")), whole(0)), ask)
    o.b.ret(whole(1, 1))  # no thread is paused
    o.b.position_at_end(ask)
    found = o.call("PyObject_GetAttr", o.object("MODE"), o.object("enabled"))
    o.need(o.differ(found, null()), failed)
    o.release(found)
    o.b.ret(o.differ(found, o.object("False")))
    o.b.position_at_end(failed)
    o.call("PyErr_Clear")
    o.b.ret(whole(1, 1))


def _new_tensor(o: Objects) -> None:
    dtype, rank, dimensions, strides = o.function.args
    no_array, no_tensor = o.block("no_array"), o.block("no_tensor")
    o.retain(dtype)  # which the function takes over
    array = o.call(NEW_ARRAY, o.object("ndarray"), dtype, rank, dimensions, strides, null(), whole(0, 32), null())
    o.need(o.differ(array, null()), no_array)
    tensor = o.call("PyType_GenericAlloc", o.object("Tensor"), whole(0))
    o.need(o.differ(tensor, null()), no_tensor)
    o.put(tensor, "array", array)
    for offset, name in o.at.fresh.items():
        value = o.object(name)
        o.b.store(value if IMMORTAL else o.retain(value), o.place(tensor, offset))
    o.b.ret(tensor)
    o.b.position_at_end(no_tensor)
    o.release(array)
    o.b.branch(no_array)
    o.b.position_at_end(no_array)
    o.call("PyErr_Clear")
    o.b.ret(null())
