"""Checks of the tensors given to entries, as LLVM functions in text.

In: a `Layout`.  Out: text of `i64 @size_of(ptr dtype)` and of functions like `ptr @plain(ptr tensor, i1 hooked)`.
"""

from __future__ import annotations

from typing import Final

from engine.fuser import cpython_abi as abi
from engine.fuser.lower import ALL_SIZES
from engine.fuser.writing import Layout, pointer


def size_of(at: Layout) -> str:
    """The function that knows how many bytes an element takes."""
    cases = "\n".join(
        f"  %is.{kind} = icmp eq ptr %d, {pointer(at.dtypes[kind])}\n"
        f"  %size.{kind} = select i1 %is.{kind}, i64 {size}, i64 %size.{before}"
        for before, (kind, size) in zip(("none", *ALL_SIZES), ALL_SIZES.items(), strict=False)
    )
    return _SIZE_OF.format(cases=cases, last=[*ALL_SIZES][-1])


def plain_tensor(at: Layout, name: str = "plain", flags: int = abi.PLAIN) -> str:
    """The function that gives a tensor's array, if entries may look at it and it has these flags."""
    return _TENSOR.format(
        name=name, tensor=pointer(at.tensor), parameter=pointer(at.parameter), grad=at.slots["_requires_grad"],
        false=pointer(at.false), array=at.slots["array"], array_type=pointer(at.array), plain=flags,
    )  # fmt: skip


_SIZE_OF: Final = """; bytes of an element of this dtype; 0 for one that is not known
define internal i64 @size_of(ptr %d) {{
  %size.none = add i64 0, 0
{cases}
  ret i64 %size.{last}
}}"""
_TENSOR: Final = """; the array of what is just a tensor (without grad where hooks count), with the flags; else null
define internal ptr @{name}(ptr %tensor, i1 %hooked) {{
start:
  %type = call ptr @type(ptr %tensor)
  %is.tensor = icmp eq ptr %type, {tensor}
  %is.parameter = icmp eq ptr %type, {parameter}
  %is = or i1 %is.tensor, %is.parameter
  br i1 %is, label %grad, label %no
grad:
  %grad.at = getelementptr i8, ptr %tensor, i64 {grad}
  %grad.is = load ptr, ptr %grad.at
  %off = icmp eq ptr %grad.is, {false}
  %open = xor i1 %hooked, 1
  %may = or i1 %off, %open
  br i1 %may, label %look, label %no
look:
  %array.at = getelementptr i8, ptr %tensor, i64 {array}
  %array = load ptr, ptr %array.at
  %none = icmp eq ptr %array, null
  br i1 %none, label %no, label %kind
kind:
  %array.type = call ptr @type(ptr %array)
  %is.array = icmp eq ptr %array.type, {array_type}
  br i1 %is.array, label %flags, label %no
flags:
  %marks = call i32 @flags(ptr %array)
  %wanted = and i32 %marks, {plain}
  %ordered = icmp eq i32 %wanted, {plain}
  br i1 %ordered, label %yes, label %no
yes:
  ret ptr %array
no:
  ret ptr null
}}"""
