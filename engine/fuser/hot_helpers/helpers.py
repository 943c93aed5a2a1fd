"""Shared by hot helpers and questions, as LLVM text: offsets that only they use, and small functions.

In: a `Layout`, `Places`.  Out: the text of `@retain`, `@array_of` (a tensor's array), `@storage_of` (its storage, made
if there is none), `@row_of`, `@form_of`, `@count_of` (what an array says of its form), `@numbers_of` (a tuple's).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from engine.fuser import cpython_abi as abi
from engine.fuser.writing import Layout, Text, define, pointer

ARRAY_BASE: Final = 48
"""The offset of an array's `base`, the owner of its memory."""
TUPLE_ITEMS: Final = 24
"""The offset of a tuple's items."""


@dataclass(frozen=True, slots=True)
class Places:
    """Types, offsets of their slots by name, and objects."""

    tensor: Mapping[str, int]
    storage: Mapping[str, int]
    node_type: int
    node: Mapping[str, int]
    saved_type: int
    saved: Mapping[str, int]
    size_type: int
    numbers: int
    """The iterator that numbers nodes."""
    minus_one: int
    tuple_type: int
    set_base: int
    """numpy's `PyArray_SetBaseObject`."""
    device: int
    """That of arrays of numpy."""
    dtypes: Mapping[str, tuple[int, int, int]]
    """By name: numpy's dtype, ours, the bytes of an element."""


def shared(at: Layout, places: Places) -> Iterator[str]:
    yield _retain(at)
    yield _array_of(at)
    yield _storage_of(at, places)
    yield _NUMBERS
    yield _ITEMS.format(
        dims=abi.DIMENSIONS, number=pointer(at.functions["PyLong_FromLongLong"]),
        set=pointer(at.functions["PyTuple_SetItem"]), new=pointer(at.functions["PyTuple_New"]),
        alloc=pointer(at.functions["PyType_GenericAlloc"]), drop=pointer(at.functions["Py_DecRef"]),
        clear=pointer(at.functions["PyErr_Clear"]), items=TUPLE_ITEMS,
    )  # fmt: skip


def _retain(at: Layout) -> str:
    text = Text(at)
    if sys.version_info >= (3, 12):
        text.do("Py_IncRef", "ptr %object")
    else:
        text.retain("%object")
    text.put("ret void")
    return define("internal void @retain(ptr %object) alwaysinline", text)


def _array_of(at: Layout) -> str:
    """A tensor's array, borrowed; null for what is no tensor or parameter on just an array."""
    text = Text(at)
    kind = text.load("%tensor", abi.TYPE_OFFSET)
    is_parameter = text.is_(kind, pointer(at.parameter))
    text.need(text.make(f"or i1 {text.is_(kind, pointer(at.tensor))}, {is_parameter}"))
    array = text.load("%tensor", at.slots["array"])
    text.need(text.make(f"icmp ne ptr {array}, null"))
    text.need(text.is_(text.load(array, abi.TYPE_OFFSET), pointer(at.array)))
    text.put(f"ret ptr {array}")
    text.label("miss")
    text.put("ret ptr null")
    return define("internal ptr @array_of(ptr %tensor)", text)


def _storage_of(at: Layout, places: Places) -> str:
    """A tensor's storage, borrowed, made if there is none; null where that is not simple."""
    text = Text(at)
    storage = text.load("%tensor", at.slots["_storage"])
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    text.put(f"br i1 {text.is_(storage, pointer(at.none))}, label %none, label %some")
    text.label("some")
    text.need(text.is_(text.load(storage, abi.TYPE_OFFSET), pointer(at.storage_type)))
    text.put(f"ret ptr {storage}")
    text.label("none")
    text.need(text.is_(text.load("%array", ARRAY_BASE), "null"))
    made = text.call("PyType_GenericAlloc", "ptr", f"ptr {pointer(at.storage_type)}, i64 0")
    text.need(text.make(f"icmp ne ptr {made}, null"), "failed")
    put(text, made, places.storage["owner"], "%array")
    put(text, made, places.storage["version"], pointer(at.zero))
    text.store("%tensor", at.slots["_storage"], made)
    text.do("Py_DecRef", f"ptr {storage}")
    text.put(f"ret ptr {made}")
    text.label("failed")
    text.do("PyErr_Clear", "")
    text.put("br label %miss")
    text.label("miss")
    text.put("ret ptr null")
    return define("internal ptr @storage_of(ptr %tensor, ptr %array) noinline", text)


def put(text: Text, base: str, offset: int, value: str) -> None:
    """Fill an empty slot, which counts as one more reference."""
    text.put(f"call void @retain(ptr {value})")
    text.store(base, offset, value)


_ITEMS: Final = """
; a row of an array's numbers (sizes, steps), each divided by %unit, as a new tuple of that type (null: tuple);
; null, and no error, where there is no memory
define internal ptr @row_of(ptr %array, ptr %type, i64 %offset, i64 %unit) noinline {{
start:
  %ndim = call i64 @rank(ptr %array)
  %dims.at = getelementptr i8, ptr %array, i64 %offset
  %dims = load ptr, ptr %dims.at
  %plain = icmp eq ptr %type, null
  br i1 %plain, label %tuple, label %derived
tuple:
  %made.tuple = call ptr {new}(i64 %ndim)
  br label %made
derived:
  %made.derived = call ptr {alloc}(ptr %type, i64 %ndim)
  br label %made
made:
  %result = phi ptr [%made.tuple, %tuple], [%made.derived, %derived]
  %nothing = icmp eq ptr %result, null
  br i1 %nothing, label %failed, label %loop
loop:
  %i = phi i64 [0, %made], [%j, %next]
  %end = icmp eq i64 %i, %ndim
  br i1 %end, label %done, label %item
item:
  %d.at = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %d.at
  %units = sdiv i64 %d, %unit
  %number = call ptr {number}(i64 %units)
  %none = icmp eq ptr %number, null
  br i1 %none, label %drop, label %next
next:
  %base = getelementptr i8, ptr %result, i64 {items}
  %place = getelementptr ptr, ptr %base, i64 %i
  store ptr %number, ptr %place
  %j = add i64 %i, 1
  br label %loop
drop:
  call void {drop}(ptr %result)
  br label %failed
failed:
  call void {clear}()
  ret ptr null
done:
  ret ptr %result
}}

; how many elements an array has
define internal i64 @count_of(ptr %array) noinline {{
  %rank = call i64 @rank(ptr %array)
  %count = call i64 @product(ptr %array, i64 0, i64 %rank)
  ret i64 %count
}}

; the sizes and the dtype of an array, as a new tuple
define internal ptr @form_of(ptr %array) noinline {{
start:
  %sizes = call ptr @row_of(ptr %array, ptr null, i64 {dims}, i64 1)
  %none = icmp eq ptr %sizes, null
  br i1 %none, label %miss, label %pair
pair:
  %result = call ptr {new}(i64 2)
  %nothing = icmp eq ptr %result, null
  br i1 %nothing, label %failed, label %fill
fill:
  %dtype = call ptr @dtype(ptr %array)
  call void @retain(ptr %dtype)
  %0 = call i32 {set}(ptr %result, i64 0, ptr %sizes)
  %1 = call i32 {set}(ptr %result, i64 1, ptr %dtype)
  ret ptr %result
failed:
  call void {drop}(ptr %sizes)
  call void {clear}()
  br label %miss
miss:
  ret ptr null
}}"""
_NUMBERS: Final = f"""
; the numbers of a tuple of that many ints; false for other things, and for a number below 0 where all are %natural
define internal i1 @numbers_of(ptr %tuple, i64 %count, ptr %into, i1 %natural) noinline {{
start:
  %items = getelementptr i8, ptr %tuple, i64 {TUPLE_ITEMS}
  br label %loop
loop:
  %i = phi i64 [0, %start], [%j, %next]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %item
item:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %object = load ptr, ptr %item.at
  %place = getelementptr i64, ptr %into, i64 %i
  %is = call i1 @whole(ptr %object, ptr %place)
  br i1 %is, label %check, label %no
check:
  %value = load i64, ptr %place
  %below = icmp slt i64 %value, 0
  %bad = and i1 %below, %natural
  br i1 %bad, label %no, label %next
next:
  %j = add i64 %i, 1
  br label %loop
yes:
  ret i1 1
no:
  ret i1 0
}}"""
