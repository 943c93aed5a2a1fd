"""What all native entries share: LLVM's text line by line, and functions that look at tensors, arrays and numbers.

In: a `Layout`, which says where this process keeps what.  Out: text; see `helpers`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.fuser import cpython_abi as abi


@dataclass(frozen=True, slots=True)
class Layout:
    """The process, as far as entries look at it: addresses of objects and offsets of slots."""

    functions: Mapping[str, int]
    array_new: int
    tensor: int
    parameter: int
    """The type of tensors, and where they keep what."""
    slots: Mapping[str, int]
    fresh: Mapping[int, int]
    """What the slots of a new tensor hold, by offset."""
    array: int
    floating: int
    whole: int
    list: int
    none: int
    false: int
    true: int
    zero: int
    hooks: int
    hook_slots: Mapping[str, int]
    defaults: int
    floating_slot: int
    """Where the default dtype is found."""
    storage_type: int
    version_slot: int
    dtypes: Mapping[str, int]
    products: Mapping[str, int]
    """Functions of BLAS, by name and kind; none where numpy's are not found."""


def pointer(address: int) -> str:
    """An address as LLVM spells a constant."""
    return f"inttoptr (i64 {address} to ptr)"


@dataclass(slots=True)
class Text:
    """Lines of one function, with names for what they compute."""

    at: Layout
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def put(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def make(self, expression: str) -> str:
        self.count += 1
        self.put(f"%t{self.count} = {expression}")
        return f"%t{self.count}"

    def load(self, base: str, offset: int, type: str = "ptr") -> str:
        return self.make(f"load {type}, ptr {self.place(base, offset)}")

    def place(self, base: str, offset: int) -> str:
        return self.make(f"getelementptr i8, ptr {base}, i64 {offset}")

    def store(self, base: str, offset: int, value: str) -> None:
        self.put(f"store ptr {value}, ptr {self.place(base, offset)}")

    def is_(self, value: str, other: str, type: str = "ptr") -> str:
        return self.make(f"icmp eq {type} {value}, {other}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def need(self, condition: str, otherwise: str = "miss") -> None:
        """Go on where it holds."""
        self.count += 1
        self.put(f"br i1 {condition}, label %go{self.count}, label %{otherwise}")
        self.label(f"go{self.count}")

    def call(self, name: str, type: str, arguments: str) -> str:
        return self.make(f"call {type} {pointer(self.at.functions[name])}({arguments})")

    def do(self, name: str, arguments: str) -> None:
        self.put(f"call void {pointer(self.at.functions[name])}({arguments})")

    def retain(self, value: str) -> None:
        """One more reference; from 3.12 on some objects do not count theirs, which CPython's own function knows."""
        if sys.version_info >= (3, 12):
            self.do("Py_IncRef", f"ptr {value}")
            return
        count = self.make(f"load i64, ptr {value}")
        self.put(f"store i64 {self.make(f'add i64 {count}, 1')}, ptr {value}")


def define(head: str, text: Text) -> str:
    """The definition of a function."""
    return "\n".join([f"define {head} {{", "start:", *text.lines, "}"])


# ------------------------------------------------------------------ helpers


def helpers(at: Layout) -> Iterator[str]:
    """The functions that entries call."""
    yield _QUIET.format(
        trace=pointer(at.hooks + at.hook_slots["trace"]), rebased=pointer(at.hooks + at.hook_slots["rebased"]),
        none=pointer(at.none), zero=pointer(at.zero),
    )  # fmt: skip
    yield _SHAPES
    yield _ROW
    yield _REAL.format(
        floating=pointer(at.floating), whole=pointer(at.whole), as_double=pointer(at.functions["PyFloat_AsDouble"]),
        as_long=pointer(at.functions["PyLong_AsLongLongAndOverflow"]), type=abi.TYPE_OFFSET,
    )  # fmt: skip
    yield _wrap(at)
    yield _next_version(at)


_QUIET: Final = """define internal i1 @quiet() {{
  %trace = load ptr, ptr {trace}
  %rebased = load ptr, ptr {rebased}
  %a = icmp eq ptr %trace, {none}
  %b = icmp eq ptr %rebased, {zero}
  %both = and i1 %a, %b
  ret i1 %both
}}"""
"""Does nobody want to step in?"""
_SHAPES: Final = f"""; the number of elements if the strides are those of a new array, else 0
define internal i64 @extent(ptr %array, i64 %itemsize) noinline {{
start:
  %ndim.at = getelementptr i8, ptr %array, i64 {abi.NDIM}
  %ndim.short = load i32, ptr %ndim.at
  %ndim = zext i32 %ndim.short to i64
  %dims.at = getelementptr i8, ptr %array, i64 {abi.DIMENSIONS}
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr i8, ptr %array, i64 {abi.STRIDES}
  %strides = load ptr, ptr %strides.at
  %none = icmp eq i64 %ndim, 0
  br i1 %none, label %one, label %loop
loop:
  %i = phi i64 [%ndim, %start], [%j, %next]
  %step = phi i64 [%itemsize, %start], [%further, %next]
  %n = phi i64 [1, %start], [%more, %next]
  %j = sub i64 %i, 1
  %s.at = getelementptr i64, ptr %strides, i64 %j
  %s = load i64, ptr %s.at
  %alike = icmp eq i64 %s, %step
  br i1 %alike, label %next, label %odd
next:
  %d.at = getelementptr i64, ptr %dims, i64 %j
  %d = load i64, ptr %d.at
  %further = mul i64 %step, %d
  %more = mul i64 %n, %d
  %end = icmp eq i64 %j, 0
  br i1 %end, label %done, label %loop
done:
  ret i64 %more
one:
  ret i64 1
odd:
  ret i64 0
}}

; the same shape and the same strides
define internal i1 @alike(ptr %a, ptr %b) noinline {{
start:
  %a.ndim.at = getelementptr i8, ptr %a, i64 {abi.NDIM}
  %a.ndim = load i32, ptr %a.ndim.at
  %b.ndim.at = getelementptr i8, ptr %b, i64 {abi.NDIM}
  %b.ndim = load i32, ptr %b.ndim.at
  %same = icmp eq i32 %a.ndim, %b.ndim
  br i1 %same, label %begin, label %no
begin:
  %a.dims.at = getelementptr i8, ptr %a, i64 {abi.DIMENSIONS}
  %a.dims = load ptr, ptr %a.dims.at
  %b.dims.at = getelementptr i8, ptr %b, i64 {abi.DIMENSIONS}
  %b.dims = load ptr, ptr %b.dims.at
  %a.strides.at = getelementptr i8, ptr %a, i64 {abi.STRIDES}
  %a.strides = load ptr, ptr %a.strides.at
  %b.strides.at = getelementptr i8, ptr %b, i64 {abi.STRIDES}
  %b.strides = load ptr, ptr %b.strides.at
  br label %loop
loop:
  %i = phi i32 [0, %begin], [%j, %next]
  %end = icmp eq i32 %i, %a.ndim
  br i1 %end, label %yes, label %next
next:
  %x.at = getelementptr i64, ptr %a.dims, i32 %i
  %x = load i64, ptr %x.at
  %y.at = getelementptr i64, ptr %b.dims, i32 %i
  %y = load i64, ptr %y.at
  %j = add i32 %i, 1
  %v.at = getelementptr i64, ptr %a.strides, i32 %i
  %v = load i64, ptr %v.at
  %w.at = getelementptr i64, ptr %b.strides, i32 %i
  %w = load i64, ptr %w.at
  %equal.dims = icmp eq i64 %x, %y
  %equal.strides = icmp eq i64 %v, %w
  %equal = and i1 %equal.dims, %equal.strides
  br i1 %equal, label %loop, label %no
yes:
  ret i1 1
no:
  ret i1 0
}}

; the same shape
define internal i1 @alike_but_size(ptr %a, ptr %b) noinline {{
start:
  %a.ndim.at = getelementptr i8, ptr %a, i64 {abi.NDIM}
  %a.ndim = load i32, ptr %a.ndim.at
  %b.ndim.at = getelementptr i8, ptr %b, i64 {abi.NDIM}
  %b.ndim = load i32, ptr %b.ndim.at
  %same = icmp eq i32 %a.ndim, %b.ndim
  br i1 %same, label %begin, label %no
begin:
  %a.dims.at = getelementptr i8, ptr %a, i64 {abi.DIMENSIONS}
  %a.dims = load ptr, ptr %a.dims.at
  %b.dims.at = getelementptr i8, ptr %b, i64 {abi.DIMENSIONS}
  %b.dims = load ptr, ptr %b.dims.at
  br label %loop
loop:
  %i = phi i32 [0, %begin], [%j, %next]
  %end = icmp eq i32 %i, %a.ndim
  br i1 %end, label %yes, label %next
next:
  %x.at = getelementptr i64, ptr %a.dims, i32 %i
  %x = load i64, ptr %x.at
  %y.at = getelementptr i64, ptr %b.dims, i32 %i
  %y = load i64, ptr %y.at
  %j = add i32 %i, 1
  %equal = icmp eq i64 %x, %y
  br i1 %equal, label %loop, label %no
yes:
  ret i1 1
no:
  ret i1 0
}}"""
_MOST_ROWS: Final = 64
"""With more of them than that numpy's loops over rows are as quick."""
_ROW: Final = f"""; is the second array like one row of the first, which has not many?
define internal i1 @row(ptr %a, ptr %b) noinline {{
start:
  %a.ndim.at = getelementptr i8, ptr %a, i64 {abi.NDIM}
  %a.ndim = load i32, ptr %a.ndim.at
  %b.ndim.at = getelementptr i8, ptr %b, i64 {abi.NDIM}
  %b.ndim = load i32, ptr %b.ndim.at
  %b.flat = icmp eq i32 %b.ndim, 1
  %a.deep = icmp ugt i32 %a.ndim, 1
  %both = and i1 %b.flat, %a.deep
  br i1 %both, label %look, label %no
look:
  %a.dims.at = getelementptr i8, ptr %a, i64 {abi.DIMENSIONS}
  %a.dims = load ptr, ptr %a.dims.at
  %b.dims.at = getelementptr i8, ptr %b, i64 {abi.DIMENSIONS}
  %b.dims = load ptr, ptr %b.dims.at
  %last = sub i32 %a.ndim, 1
  %a.length.at = getelementptr i64, ptr %a.dims, i32 %last
  %a.length = load i64, ptr %a.length.at
  %b.length = load i64, ptr %b.dims
  %same = icmp eq i64 %a.length, %b.length
  br i1 %same, label %count, label %no
count:
  %i = phi i32 [0, %look], [%j, %count]
  %n = phi i64 [1, %look], [%more, %count]
  %d.at = getelementptr i64, ptr %a.dims, i32 %i
  %d = load i64, ptr %d.at
  %more = mul i64 %n, %d
  %j = add i32 %i, 1
  %end = icmp eq i32 %j, %last
  br i1 %end, label %done, label %count
done:
  %few = icmp ule i64 %more, {_MOST_ROWS}
  ret i1 %few
no:
  ret i1 0
}}"""
_REAL: Final = """; the number as an integer; false for what is no int of 64 bits
define internal i1 @whole(ptr %object, ptr %into) {{
start:
  %type.at = getelementptr i8, ptr %object, i64 {type}
  %type = load ptr, ptr %type.at
  %is = icmp eq ptr %type, {whole}
  %over = alloca i32
  br i1 %is, label %read, label %no
read:
  store i32 0, ptr %over
  %value = call i64 {as_long}(ptr %object, ptr %over)
  %o = load i32, ptr %over
  %fits = icmp eq i32 %o, 0
  br i1 %fits, label %yes, label %no
yes:
  store i64 %value, ptr %into
  ret i1 1
no:
  ret i1 0
}}

; the number as a double; false for what is neither a float nor an int that one holds
define internal i1 @real(ptr %object, ptr %into) noinline {{
start:
  %type.at = getelementptr i8, ptr %object, i64 {type}
  %type = load ptr, ptr %type.at
  %is = icmp eq ptr %type, {floating}
  %long.at = alloca i64
  br i1 %is, label %float, label %int
float:
  %double = call double {as_double}(ptr %object)
  store double %double, ptr %into
  ret i1 1
int:
  %is.whole = call i1 @whole(ptr %object, ptr %long.at)
  br i1 %is.whole, label %check, label %no
check:
  %long = load i64, ptr %long.at
  %shifted = add i64 %long, 9007199254740992
  %small = icmp ule i64 %shifted, 18014398509481984
  br i1 %small, label %yes, label %no
yes:
  %converted = sitofp i64 %long to double
  store double %converted, ptr %into
  ret i1 1
no:
  ret i1 0
}}"""


def _wrap(at: Layout) -> str:
    """The tensor of a new array, whose reference it takes over; null, and no error, where there is no memory."""
    text = Text(at)
    tensor = text.call("PyType_GenericAlloc", "ptr", f"ptr {pointer(at.tensor)}, i64 0")
    text.need(text.make(f"icmp ne ptr {tensor}, null"))
    text.store(tensor, at.slots["array"], "%array")
    for offset, value in at.fresh.items():
        text.retain(pointer(value))
        text.store(tensor, offset, pointer(value))
    text.put(f"ret ptr {tensor}")
    text.label("miss")
    text.do("PyErr_Clear", "")
    text.do("Py_DecRef", "ptr %array")
    text.put("ret ptr null")
    return define("internal ptr @wrap(ptr %array) noinline", text)


def _next_version(at: Layout) -> str:
    """Advance a storage's version; false, and nothing done, if that cannot be."""
    text = Text(at)
    before = text.load("%storage", at.version_slot)
    number = text.make("alloca i64")
    text.need(text.make(f"icmp ne ptr {before}, null"))
    text.need(text.make(f"call i1 @whole(ptr {before}, ptr {number})"))
    advanced = text.make(f"add i64 {text.make(f'load i64, ptr {number}')}, 1")
    after = text.call("PyLong_FromLongLong", "ptr", f"i64 {advanced}")
    text.need(text.make(f"icmp ne ptr {after}, null"), "failed")
    text.store("%storage", at.version_slot, after)
    text.do("Py_DecRef", f"ptr {before}")
    text.put("ret i1 1")
    text.label("failed")
    text.do("PyErr_Clear", "")
    text.put("br label %miss")
    text.label("miss")
    text.put("ret i1 0")
    return define("internal i1 @written(ptr %storage) noinline", text)
