"""Runtime library of native code, as LLVM text: functions that read and make tensors, arrays and numbers.

In: a `Layout`.  Out: text; see the comments there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.fuser import cpython_abi as abi
from engine.fuser.writing import Layout, Text, define, pointer


def helpers(at: Layout) -> Iterator[str]:
    """The functions that entries call."""
    yield from (_FIELD.format(name=name, type=type, offset=offset) for name, type, offset in _FIELDS)
    yield _QUIET.format(
        trace=pointer(at.hooks + at.hook_slots["trace"]), rebased=pointer(at.hooks + at.hook_slots["rebased"]),
        none=pointer(at.none), zero=pointer(at.zero),
    )  # fmt: skip
    yield _SHAPES
    yield _ROW
    yield _REAL.format(
        floating=pointer(at.floating), whole=pointer(at.whole), as_double=pointer(at.functions["PyFloat_AsDouble"]),
        as_long=pointer(at.functions["PyLong_AsLongLongAndOverflow"]),
    )  # fmt: skip
    yield _FITS
    yield _new_array(at)
    yield _wrap(at)
    yield _next_version(at)


_FIELDS: Final = (
    ("ndim", "i32", abi.NDIM), ("dims", "ptr", abi.DIMENSIONS), ("strides", "ptr", abi.STRIDES),
    ("dtype", "ptr", abi.DTYPE), ("flags", "i32", abi.ARRAY_FLAGS), ("elements", "ptr", abi.DATA),
    ("type", "ptr", abi.TYPE_OFFSET),
)  # fmt: skip
"""Accessors of arrays (the last one of any object): `ptr @dims(ptr)` and so on."""
_FIELD: Final = """define internal {type} @{name}(ptr %object) alwaysinline {{
  %at = getelementptr i8, ptr %object, i64 {offset}
  %found = load {type}, ptr %at
  ret {type} %found
}}"""
_QUIET: Final = """; does nobody want to step in?
define internal i1 @quiet() {{
  %trace = load ptr, ptr {trace}
  %rebased = load ptr, ptr {rebased}
  %a = icmp eq ptr %trace, {none}
  %b = icmp eq ptr %rebased, {zero}
  %both = and i1 %a, %b
  ret i1 %both
}}

; or are there no hooks to count with?
define internal i1 @open(i1 %hooked) alwaysinline {{
start:
  br i1 %hooked, label %hooks, label %yes
hooks:
  %quiet = call i1 @quiet()
  ret i1 %quiet
yes:
  ret i1 1
}}"""
_SHAPES: Final = """define internal i64 @rank(ptr %array) alwaysinline {
  %ndim = call i32 @ndim(ptr %array)
  %rank = zext i32 %ndim to i64
  ret i64 %rank
}

; the number of elements if the strides are those of a new array, else 0
define internal i64 @extent(ptr %array, i64 %itemsize) noinline {
start:
  %rank = call i64 @rank(ptr %array)
  %dims = call ptr @dims(ptr %array)
  %strides = call ptr @strides(ptr %array)
  %none = icmp eq i64 %rank, 0
  br i1 %none, label %one, label %loop
loop:
  %i = phi i64 [%rank, %start], [%j, %next]
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
}

; how many elements these dimensions have
define internal i64 @product(ptr %array, i64 %begin, i64 %end) {
start:
  %dims = call ptr @dims(ptr %array)
  br label %check
check:
  %i = phi i64 [%begin, %start], [%i.next, %next]
  %n = phi i64 [1, %start], [%more, %next]
  %go = icmp slt i64 %i, %end
  br i1 %go, label %next, label %done
next:
  %at = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %at
  %more = mul i64 %n, %d
  %i.next = add i64 %i, 1
  br label %check
done:
  ret i64 %n
}

; are these numbers the same?
define internal i1 @equal(ptr %a, ptr %b, i64 %n) {
start:
  br label %check
check:
  %i = phi i64 [0, %start], [%i.next, %next]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %next, label %yes
next:
  %a.at = getelementptr i64, ptr %a, i64 %i
  %x = load i64, ptr %a.at
  %b.at = getelementptr i64, ptr %b, i64 %i
  %y = load i64, ptr %b.at
  %i.next = add i64 %i, 1
  %same = icmp eq i64 %x, %y
  br i1 %same, label %check, label %no
yes:
  ret i1 1
no:
  ret i1 0
}

; the same shape
define internal i1 @alike_but_size(ptr %a, ptr %b) noinline {
start:
  %rank = call i64 @rank(ptr %a)
  %other = call i64 @rank(ptr %b)
  %same = icmp eq i64 %rank, %other
  br i1 %same, label %look, label %no
look:
  %a.dims = call ptr @dims(ptr %a)
  %b.dims = call ptr @dims(ptr %b)
  %equal = call i1 @equal(ptr %a.dims, ptr %b.dims, i64 %rank)
  ret i1 %equal
no:
  ret i1 0
}

; the same shape and the same strides
define internal i1 @alike(ptr %a, ptr %b) noinline {
start:
  %same = call i1 @alike_but_size(ptr %a, ptr %b)
  br i1 %same, label %look, label %no
look:
  %rank = call i64 @rank(ptr %a)
  %a.strides = call ptr @strides(ptr %a)
  %b.strides = call ptr @strides(ptr %b)
  %equal = call i1 @equal(ptr %a.strides, ptr %b.strides, i64 %rank)
  ret i1 %equal
no:
  ret i1 0
}"""
_MOST_ROWS: Final = 64
"""With more of them than that numpy's loops over rows are as quick."""
_ROW: Final = f"""; is the second array like one row of the first, which has not many?
define internal i1 @row(ptr %a, ptr %b) noinline {{
start:
  %a.rank = call i64 @rank(ptr %a)
  %b.rank = call i64 @rank(ptr %b)
  %b.flat = icmp eq i64 %b.rank, 1
  %a.deep = icmp ugt i64 %a.rank, 1
  %both = and i1 %b.flat, %a.deep
  br i1 %both, label %look, label %no
look:
  %last = sub i64 %a.rank, 1
  %a.length = call i64 @product(ptr %a, i64 %last, i64 %a.rank)
  %b.length = call i64 @product(ptr %b, i64 0, i64 1)
  %same = icmp eq i64 %a.length, %b.length
  %rows = call i64 @product(ptr %a, i64 0, i64 %last)
  %few = icmp ule i64 %rows, {_MOST_ROWS}
  %good = and i1 %same, %few
  ret i1 %good
no:
  ret i1 0
}}"""
_REAL: Final = """; the number as an integer; false for what is no int of 64 bits
define internal i1 @whole(ptr %object, ptr %into) {{
start:
  %type = call ptr @type(ptr %object)
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
  %type = call ptr @type(ptr %object)
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


_FITS: Final = """; is the number no larger than that, or none at all (inf, nan)?
define internal i1 @fits(double %x, double %limit) {
  %least = fneg double %limit
  %above = fcmp ogt double %x, %limit
  %below = fcmp olt double %x, %least
  %beyond = or i1 %above, %below
  %none = fsub double %x, %x
  %finite = fcmp oeq double %none, 0.0
  %bad = and i1 %beyond, %finite
  %good = xor i1 %bad, 1
  ret i1 %good
}"""


def _new_array(at: Layout) -> str:
    """A new array of that dtype and shape; null, and no error, where there is no memory."""
    text = Text(at)
    text.retain("%dtype")  # PyArray_NewFromDescr takes the reference over
    array = text.make(
        f"call ptr {pointer(at.array_new)}(ptr {pointer(at.array)}, ptr %dtype, i32 %ndim, ptr %dims, ptr null, "
        "ptr null, i32 0, ptr null)"
    )
    text.need(text.make(f"icmp ne ptr {array}, null"))
    text.put(f"ret ptr {array}")
    text.label("miss")
    text.do("PyErr_Clear", "")
    text.put("ret ptr null")
    return define("internal ptr @new_array(ptr %dtype, i32 %ndim, ptr %dims) noinline", text)


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
