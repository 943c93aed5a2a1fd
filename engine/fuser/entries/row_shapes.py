"""Shape checks of entries over rows, as LLVM functions in text.

In: a `Layout`.  Out: text; see the comments there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.fuser.writing import Layout, Text, define, pointer


def shape_functions(at: Layout) -> Iterator[str]:
    """The functions that entries over rows call."""
    list_size, list_item = pointer(at.functions["PyList_Size"]), pointer(at.functions["PyList_GetItem"])
    yield _SHAPES
    yield _SPANNED.format(none=pointer(at.none), list=pointer(at.list), size=list_size, item=list_item)
    yield _TRAILING.format(list=pointer(at.list), size=list_size, item=list_item)
    yield _TWO
    yield _CORRECTION.format(none=pointer(at.none), true=pointer(at.true), false=pointer(at.false))
    for count in (2, 3):
        yield _together(at, count)


_SHAPES: Final = """; the shape without some dimensions, or with a size of 1 there; how many are left
define internal i32 @reduced(ptr %array, i64 %begin, i64 %end, i1 %keep, ptr %into) {
start:
  %ndim = call i64 @rank(ptr %array)
  %dims = call ptr @dims(ptr %array)
  br label %check
check:
  %i = phi i64 [0, %start], [%i.next, %next]
  %j = phi i64 [0, %start], [%j.next, %next]
  %go = icmp ult i64 %i, %ndim
  br i1 %go, label %next, label %done
next:
  %at = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %at
  %after = icmp sge i64 %i, %begin
  %before = icmp slt i64 %i, %end
  %inside = and i1 %after, %before
  %size = select i1 %inside, i64 1, i64 %d
  %to = getelementptr i64, ptr %into, i64 %j
  store i64 %size, ptr %to
  %outside = xor i1 %inside, 1
  %stays = or i1 %outside, %keep
  %step = zext i1 %stays to i64
  %j.next = add i64 %j, %step
  %i.next = add i64 %i, 1
  br label %check
done:
  %count = trunc i64 %j to i32
  ret i32 %count
}

; is the other array null, or are its dimensions those that the first one has from some place on?
define internal i1 @tail(ptr %array, i64 %begin, ptr %other) {
start:
  %none = icmp eq ptr %other, null
  br i1 %none, label %yes, label %look
look:
  %ndim = call i64 @rank(ptr %array)
  %rank = sub i64 %ndim, %begin
  %other.ndim = call i64 @rank(ptr %other)
  %same = icmp eq i64 %rank, %other.ndim
  br i1 %same, label %compare, label %no
compare:
  %dims = call ptr @dims(ptr %array)
  %rest = getelementptr i64, ptr %dims, i64 %begin
  %other.dims = call ptr @dims(ptr %other)
  %equal = call i1 @equal(ptr %rest, ptr %other.dims, i64 %rank)
  ret i1 %equal
yes:
  ret i1 1
no:
  ret i1 0
}

; where an array's elements are; null for none
define internal ptr @data(ptr %array) {
start:
  %none = icmp eq ptr %array, null
  br i1 %none, label %done, label %read
read:
  %found = call ptr @elements(ptr %array)
  br label %done
done:
  %data = phi ptr [null, %start], [%found, %read]
  ret ptr %data
}"""
_SPANNED: Final = """; from which dimension to which an argument says: one, or all where it is None or an empty list
define internal i1 @spanned(ptr %array, ptr %given, i1 %lists, i1 %all, ptr %into) noinline {{
start:
  %one = alloca i64
  %ndim = call i64 @rank(ptr %array)
  %second = getelementptr i64, ptr %into, i64 1
  %is.none = icmp eq ptr %given, {none}
  br i1 %is.none, label %every, label %look
every:
  store i64 0, ptr %into
  store i64 %ndim, ptr %second
  ret i1 %all
look:
  %type = call ptr @type(ptr %given)
  %is.list = icmp eq ptr %type, {list}
  br i1 %is.list, label %list, label %number
list:
  br i1 %lists, label %size, label %no
size:
  %count = call i64 {size}(ptr %given)
  %is.empty = icmp eq i64 %count, 0
  br i1 %is.empty, label %every, label %first
first:
  %is.one = icmp eq i64 %count, 1
  br i1 %is.one, label %item, label %no
item:
  %element = call ptr {item}(ptr %given, i64 0)
  br label %number
number:
  %object = phi ptr [%given, %look], [%element, %item]
  %is.whole = call i1 @whole(ptr %object, ptr %one)
  br i1 %is.whole, label %wrap, label %no
wrap:
  %dim = load i64, ptr %one
  %negative = icmp slt i64 %dim, 0
  %shifted = add i64 %dim, %ndim
  %place = select i1 %negative, i64 %shifted, i64 %dim
  %is.in = icmp ult i64 %place, %ndim
  %after = add i64 %place, 1
  store i64 %place, ptr %into
  store i64 %after, ptr %second
  ret i1 %is.in
no:
  ret i1 0
}}"""
_TRAILING: Final = """; from where on the dimensions are those in a list
define internal i1 @trailing(ptr %array, ptr %given, ptr %into) noinline {{
start:
  %one = alloca i64
  %type = call ptr @type(ptr %given)
  %is.list = icmp eq ptr %type, {list}
  br i1 %is.list, label %size, label %no
size:
  %count = call i64 {size}(ptr %given)
  %ndim = call i64 @rank(ptr %array)
  %before = sub i64 %count, 1
  %fits = icmp ult i64 %before, %ndim
  %begin = sub i64 %ndim, %count
  store i64 %begin, ptr %into
  %second = getelementptr i64, ptr %into, i64 1
  store i64 %ndim, ptr %second
  %dims = call ptr @dims(ptr %array)
  %rest = getelementptr i64, ptr %dims, i64 %begin
  br i1 %fits, label %check, label %no
check:
  %i = phi i64 [0, %size], [%i.next, %compare]
  %go = icmp ult i64 %i, %count
  br i1 %go, label %item, label %yes
item:
  %element = call ptr {item}(ptr %given, i64 %i)
  %is.whole = call i1 @whole(ptr %element, ptr %one)
  br i1 %is.whole, label %compare, label %no
compare:
  %wanted = load i64, ptr %one
  %at = getelementptr i64, ptr %rest, i64 %i
  %d = load i64, ptr %at
  %i.next = add i64 %i, 1
  %same = icmp eq i64 %d, %wanted
  br i1 %same, label %check, label %no
yes:
  ret i1 1
no:
  ret i1 0
}}"""
_TWO: Final = """; is it the number 2?
define internal i1 @two(ptr %object) {
start:
  %number = alloca double
  %is = call i1 @real(ptr %object, ptr %number)
  br i1 %is, label %look, label %no
look:
  %value = load double, ptr %number
  %same = fcmp oeq double %value, 2.0
  ret i1 %same
no:
  ret i1 0
}"""

_CORRECTION: Final = """; a number, or None for 1
define internal i1 @correction(ptr %object, ptr %into) {{
start:
  store double 1.0, ptr %into
  %none = icmp eq ptr %object, {none}
  br i1 %none, label %yes, label %look
look:
  %is = call i1 @real(ptr %object, ptr %into)
  ret i1 %is
yes:
  ret i1 1
}}

; True for 1, False for 0
define internal i1 @unbiased(ptr %object, ptr %into) {{
  %is.true = icmp eq ptr %object, {true}
  %is.false = icmp eq ptr %object, {false}
  %number = select i1 %is.true, double 1.0, double 0.0
  store double %number, ptr %into
  %is = or i1 %is.true, %is.false
  ret i1 %is
}}"""


def _together(at: Layout, count: int) -> str:
    """A tuple of so many new tensors; null, and no error, if one of them is null."""
    text = Text(at)
    all_there = "1"
    for i in range(count):
        all_there = text.make(f"and i1 {all_there}, {text.make(f'icmp ne ptr %x{i}, null')}")
    text.need(all_there)
    made = text.call("PyTuple_New", "ptr", f"i64 {count}")
    text.need(text.make(f"icmp ne ptr {made}, null"), "failed")
    for i in range(count):
        text.make(f"call i32 {pointer(at.functions['PyTuple_SetItem'])}(ptr {made}, i64 {i}, ptr %x{i})")
    text.put(f"ret ptr {made}")
    text.label("failed")
    text.do("PyErr_Clear", "")
    text.put("br label %miss")
    text.label("miss")
    for i in range(count):
        text.do("Py_DecRef", f"ptr %x{i}")
    text.put("ret ptr null")
    return define(f"internal ptr @together{count}({', '.join(f'ptr %x{i}' for i in range(count))}) noinline", text)
