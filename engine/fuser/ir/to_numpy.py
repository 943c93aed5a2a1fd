"""Kernel IR in Python, one numpy scalar after the other: the definition of what a kernel does, for tests.

In: a `Kernel`.  Out: a Python function of arrays and numbers in the order of its parameters, which returns the kernel's
code (`compiled`); the text of it (`source`).

Note [The definition of kernel IR]
Statements run in the order in which they are written, in one thread, sums add up in the order of the loops, and
`any_order` changes nothing.  Machine code may differ from that in the last bits of floats only.  What machine code is
free to assume is checked: elements that are read or written lie within the extents of their buffer and within the
array that was given, and loops of independent iterations can run backwards (`backwards`).  Memory that is allocated
begins as NaNs and large numbers, so that results show it if they are made of what was never written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any, Final

import numpy as np

from engine.fuser.ir.externals import ADDRESS_OF, EXTERNALS, INVOKE
from engine.fuser.ir.kernel import (
    POINTER,
    SIZES,
    VECTORS,
    Accumulate,
    Address,
    Allocate,
    Apply,
    Assign,
    Break,
    Buffer,
    Call,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    lanes_of,
    strides_of,
)
from engine.fuser.ir.numeric_functions import NUMERIC, NUMPY, Number
from engine.lang.records import dataclass


def compiled(kernel: Kernel, backwards: bool = False) -> Callable[..., int]:
    """The kernel as a Python function; `backwards`: loops of independent iterations begin with the last.

    Raises OutOfBounds where an element is none of its buffer.
    """
    made = _Module(kernel)
    text = made.text
    names = {**_RUNTIME, **made.constants, "indices": _backwards if backwards else _forwards}
    exec(compile(text, f"<{kernel.name}>", "exec"), names)

    def call(*given: Any) -> int:
        with np.errstate(all="ignore"):
            return int(names[f"k_{kernel.name}"](*given))

    return call


def source(kernel: Kernel) -> str:
    """The text of the Python function and of those of its helpers."""
    return _Module(kernel).text


def evaluated(of: Expression, names: Mapping[str, Any]) -> Number:
    """The value of an expression over numbers of these names."""
    made = _Module(Kernel("expression", (), ()))
    text = made.expression(of)
    with np.errstate(all="ignore"):
        return eval(text, {**_RUNTIME, **made.constants, **{f"v_{name}": value for name, value in names.items()}})


# ------------------------------------------------------------------ memory


class OutOfBounds(Exception):
    """A kernel reads or writes what is no element of its buffer."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address, and the range of addresses around it that it was made for; `owner` keeps the memory."""

    address: int
    begin: int = 0
    end: int = 1 << 64
    owner: Any = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer; no extents: as many elements as the memory has."""

    name: str
    type: str
    pointer: Pointer
    extents: tuple[int, ...] | None
    strides: tuple[int, ...]

    def place(self, indices: Sequence[int]) -> int:
        """The address of an element."""
        offset = sum(int(i) * stride for i, stride in zip(indices, self.strides, strict=True))
        return self.pointer.address + SIZES[self.type] * offset

    def element(self, indices: Sequence[int]) -> int:
        """The address of an element that is there."""
        place, pointer = self.place(indices), self.pointer
        is_inside = self.extents is None or all(0 <= i < n for i, n in zip(indices, self.extents, strict=True))
        if not is_inside or not pointer.begin <= place <= pointer.end - SIZES[self.type]:
            raise OutOfBounds(f"{self.name}[{', '.join(map(str, indices))}] of {self.extents}")
        return place

    def load(self, *indices: int) -> Number:
        held = _HELD[self.type].from_address(self.element(indices)).value
        if self.type in _BITS:
            return np.uint16(held).view(NUMPY[self.type])
        return NUMPY[self.type](held)

    def store(self, value: Number, *indices: int) -> None:
        held = value.view(np.uint16) if self.type in _BITS else value
        _HELD[self.type].from_address(self.element(indices)).value = held.item()

    def load_vector(self, lanes: int, *indices: int) -> Number:
        """The elements from there on."""
        return np.array([self.load(*indices[:-1], indices[-1] + i) for i in range(lanes)])

    def store_vector(self, value: Number, *indices: int) -> None:
        for i, each in enumerate(value):
            self.store(each, *indices[:-1], indices[-1] + i)

    def at(self, *indices: int) -> Pointer:
        """The address of an element, as an operand."""
        return Pointer(self.place(indices), self.pointer.begin, self.pointer.end, self.pointer.owner)


_BITS: Final = ("f16", "bf16")
"""Types that ctypes has none for."""
_HELD: Final[dict[str, Any]] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "f16": ctypes.c_uint16, "bf16": ctypes.c_uint16,
    "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i16": ctypes.c_int16, "i8": ctypes.c_int8, "u8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}  # fmt: skip
_UNWRITTEN: Final = {1: 0x5A, 2: 0x7E5A, 4: 0x7FC5A5A5, 8: 0x7FF85A5A5A5A5A5A}
"""The first value of elements, by their size."""

Sizes = tuple[Number, ...]


def _buffer(name: str, type: str, given: Any, extents: Sizes | None, strides: Sizes) -> Memory:
    """The memory of an array, or of what another kernel hands on."""
    if isinstance(given, np.ndarray):
        begin, end = np.lib.array_utils.byte_bounds(given) if given.size else (0, 0)
        given = Pointer(given.ctypes.data, begin, end, given)
    whole = None if extents is None else tuple(map(int, extents))
    return Memory(name, type, given, whole, tuple(map(int, strides)))


def _allocate(name: str, type: str, extents: Sizes, strides: Sizes) -> Memory:
    count = int(np.prod([int(each) for each in extents], dtype=np.int64))
    room = np.full(max(count, 1), _UNWRITTEN[SIZES[type]], f"u{SIZES[type]}")
    if type == "bool":
        room[:] = 0
    return _buffer(name, type, room[:count], extents, strides)


def _view(name: str, type: str, address: Number) -> Memory:
    return Memory(name, type, Pointer(int(address)), None, (1,))


# ------------------------------------------------------------------ loops and calls


def _forwards(kind: str, start: Number, stop: Number, step: Number) -> Iterator[Number]:
    return map(np.int64, range(int(start), int(stop), int(step)))


def _backwards(kind: str, start: Number, stop: Number, step: Number) -> Iterator[Number]:
    indices = range(int(start), int(stop), int(step))
    return map(np.int64, indices if kind == "range" else reversed(indices))


def _call(name: str, *given: Any) -> Any:
    """The result of an external function."""
    external = EXTERNALS[name]
    if name == INVOKE:
        address, *passed = (each.address if isinstance(each, Pointer) else each.item() for each in given)
        return np.int64(ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(passed))(address)(*passed))
    if name == ADDRESS_OF:
        return np.int64(given[0].address)
    found = _external(name)(*(each.address if isinstance(each, Pointer) else each.item() for each in given))
    if not external.result:
        return None
    return np.int64(found or 0) if external.result == POINTER else NUMPY[external.result](found)


@cache
def _external(name: str) -> Callable[..., Any]:
    if name in _WITHOUT_EFFECT:
        return lambda *given: 0
    external = EXTERNALS[name]
    function = getattr(ctypes.pythonapi if name.startswith("Py") else ctypes.CDLL(None), name)
    types = {**_HELD, POINTER: ctypes.c_void_p}
    function.argtypes = [types[each] for each in external.operands]
    function.restype = types[external.result] if external.result else None
    return function  # type: ignore[no-any-return]


_WITHOUT_EFFECT: Final = ("PyEval_SaveThread", "PyEval_RestoreThread")
"""Functions of the interpreter lock, which Python code cannot run without."""
_RUNTIME: Final[dict[str, Any]] = {
    **{f"f_{name}": function for name, function in NUMERIC.items()}, **{f"t_{type}": NUMPY[type] for type in NUMPY},
    "buffer": _buffer, "allocate": _allocate, "view": _view, "call": _call,
}  # fmt: skip

# ------------------------------------------------------------------ writing


@dataclass(slots=True)
class _Module:
    """The text of a kernel and its helpers, and the constants in it."""

    kernel: Kernel
    constants: dict[str, Number] = field(default_factory=dict)
    helpers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.helpers = frozenset(each.name for each in (*self.kernel.helpers, self.kernel))

    @property
    def text(self) -> str:
        return "\n\n".join(map(self.function, (*self.kernel.helpers, self.kernel)))

    def function(self, kernel: Kernel) -> str:
        names = ", ".join(f"{'v' if isinstance(p, Scalar) else 'b'}_{p.name}" for p in kernel.parameters)
        lines = [f"v_{each.name} = t_{each.type}(v_{each.name})" for each in kernel.scalars]
        lines += [f"b_{b.name} = buffer('{b.name}', '{b.type}', b_{b.name}, {self.layout(b)})" for b in kernel.buffers]
        return "\n".join([f"def k_{kernel.name}({names}):", *_indented([*lines, *self.block(kernel.body), "return 0"])])

    def layout(self, buffer: Buffer) -> str:
        """Extents and strides."""
        extents = "None" if buffer.shape is None else self.tuple(buffer.shape)
        return f"{extents}, {self.tuple(strides_of(buffer))}"

    def tuple(self, of: Sequence[Expression]) -> str:
        return f"({''.join(self.expression(each) + ', ' for each in of)})"

    def block(self, body: Sequence[Statement]) -> list[str]:
        return [line for statement in body for line in self.statement(statement)] or ["pass"]

    def statement(self, of: Statement) -> list[str]:
        match of:
            case Let(name=name, value=value) | Declare(name=name, value=value) | Assign(name=name, value=value):
                return [f"v_{name} = {self.expression(value)}"]
            case Accumulate(name=name, function=function, value=value):
                return [f"v_{name} = f_{function}(v_{name}, {self.expression(value)})"]
            case Store(buffer=buffer, indices=indices, value=value):
                store = "store" if value.type not in VECTORS else "store_vector"
                return [f"b_{buffer}.{store}({self.listed((value, *indices))})"]
            case For(index=name, start=start, stop=stop, step=step, kind=kind, body=body):
                bounds = self.listed((start, stop, step))
                return [f"for v_{name} in indices('{kind}', {bounds}):", *_indented(self.block(body))]
            case While(condition=condition, body=body):
                return [f"while {self.expression(condition)}:", *_indented(self.block(body))]
            case If(condition=condition, body=body, orelse=orelse):
                rest = ["else:", *_indented(self.block(orelse))] if orelse else []
                return [f"if {self.expression(condition)}:", *_indented(self.block(body)), *rest]
            case Return(value=value):
                return [f"return {self.expression(value)}"]
            case Allocate(buffer=made):
                return [f"b_{made.name} = allocate('{made.name}', '{made.type}', {self.layout(made)})"]
            case View(buffer=made, address=address):
                return [f"b_{made.name} = view('{made.name}', '{made.type}', {self.expression(address)})"]
            case Call():
                return [self.call(of)]
        return ["break" if isinstance(of, Break) else "continue"]

    def call(self, of: Call) -> str:
        given = self.listed(of.operands)
        made = f"t_i64(k_{of.function}({given}))" if of.function in self.helpers else f"call('{of.function}', {given})"
        return f"v_{of.name} = {made}" if of.name else made

    def listed(self, of: Sequence[Expression]) -> str:
        return ", ".join(map(self.expression, of))

    def expression(self, of: Expression) -> str:
        match of:
            case Constant(value=value, type=type):
                name = f"c{len(self.constants)}"
                self.constants[name] = NUMPY[type](value)
                return name
            case Name(name=name):
                return f"v_{name}"
            case Load(buffer=buffer, indices=indices, type=type) if type in VECTORS:
                return f"b_{buffer}.load_vector({lanes_of(type)}, {self.listed(indices)})"
            case Load(buffer=buffer, indices=indices):
                return f"b_{buffer}.load({self.listed(indices)})"
            case Address(buffer=buffer, indices=indices):
                return f"b_{buffer}.at({self.listed(indices)})"
            case Apply(function="convert", operands=(operand,), type=type):
                return f"f_convert({self.expression(operand)}, '{type}')"
            case Apply(function=function, operands=operands):
                return f"f_{function}({self.listed(operands)})"
        raise AssertionError(of)


def _indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]
