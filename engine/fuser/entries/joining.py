"""Tensors joined along a dimension, as entries in LLVM's text: their memory is copied piece by piece.

In: whether a dimension is made for that (`stack`) or one there is becomes longer (`cat`).  Out: a `Work`.

What it is made for: a list of a few tensors of one dtype with memory in order, none empty, whose shapes fit; no more
elements than numpy is as quick for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.aten.tensor import Tensor
from engine.fuser import cpython_abi as abi
from engine.fuser.entries import samples
from engine.fuser.entries.row_shapes import shape_functions
from engine.fuser.expression import HALVES
from engine.fuser.lower import SIZES, Library
from engine.fuser.prelude import Layout, pointer

MOST: Final = 16
"""So many tensors at most."""
LONGEST: Final = 1 << 18
"""Bytes; numpy lets other threads run while it copies more."""


_SIZES: Final = {**SIZES, **dict.fromkeys(HALVES, 2)}


@dataclass(frozen=True, slots=True)
class Joining:
    """`stacks`: along a new dimension."""

    stacks: bool
    kinds: tuple[str, ...] = tuple(_SIZES)

    @property
    def written(self) -> int | None:
        return None

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield from shape_functions(at)
        yield size_of(at)
        yield plain_tensor(at)
        yield _TRY.format(
            name=name, most=MOST, longest=LONGEST, new=int(self.stacks), old_step=1 - self.stacks,
            type=abi.TYPE_OFFSET, list=pointer(at.list),
            size=pointer(at.functions["PyList_Size"]), item=pointer(at.functions["PyList_GetItem"]),
            retain=pointer(at.functions["Py_IncRef"]), clear=pointer(at.functions["PyErr_Clear"]), ndim=abi.NDIM,
            dimensions=abi.DIMENSIONS, dtype=abi.DTYPE, data=abi.DATA, make=pointer(at.array_new),
            array=pointer(at.array),
        )  # fmt: skip

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        for shapes in (((2, 3), (2, 3)), ((4,), (4,)), ((2, 3, 4),) * 3, ((1, 2, 1), (1, 2, 1)), ((5, 1),)):
            for dim in range(-1, len(shapes[0]) + self.stacks):
                yield ([Tensor(samples.rows(kind, 3, shape)[i % 3]) for i, shape in enumerate(shapes)], dim)
        if not self.stacks:
            yield ([Tensor(samples.rows(kind, 1, shape)[0]) for shape in ((2, 3, 2), (2, 1, 2), (2, 4, 2))], 1)
            yield ([Tensor(samples.rows(kind, 1, shape)[0]) for shape in ((2, 3), (1, 3))], -2)

    def takes(self, args: Sequence[Any]) -> str | None:
        arrays = [a.array for a in args[0]]
        if not 0 < len(arrays) <= MOST or not all(a.flags.c_contiguous and a.flags.aligned and a.size for a in arrays):
            return None
        d: np.dtype[Any] = arrays[0].dtype
        return samples.kind_of(arrays[0]) if all(a.dtype is d for a in arrays) else None


def size_of(at: Layout) -> str:
    """The function that knows how many bytes an element takes."""
    cases = "\n".join(
        f"  %is.{kind} = icmp eq ptr %d, {pointer(at.dtypes[kind])}\n"
        f"  %size.{kind} = select i1 %is.{kind}, i64 {size}, i64 %size.{before}"
        for before, (kind, size) in zip(("none", *_SIZES), _SIZES.items(), strict=False)
    )
    return _SIZE_OF.format(cases=cases, last=[*_SIZES][-1])


def plain_tensor(at: Layout, name: str = "plain", flags: int = abi.PLAIN) -> str:
    """The function that gives a tensor's array, if entries may look at it and it has these flags."""
    return _TENSOR.format(
        name=name, type=abi.TYPE_OFFSET, tensor=pointer(at.tensor), parameter=pointer(at.parameter),
        grad=at.slots["_requires_grad"], false=pointer(at.false), array=at.slots["array"],
        array_type=pointer(at.array), flags=abi.ARRAY_FLAGS, plain=flags,
    )  # fmt: skip


JOINING: Final = {"aten::cat": Joining(stacks=False), "aten::stack": Joining(stacks=True)}
"""The operators that join tensors."""

_SIZE_OF: Final = """; bytes of an element of this dtype; 0 for one that is not known
define internal i64 @size_of(ptr %d) {{
  %size.none = add i64 0, 0
{cases}
  ret i64 %size.{last}
}}"""
_TENSOR: Final = """; the array of what is just a tensor (without grad where hooks count), with the flags; else null
define internal ptr @{name}(ptr %tensor, i1 %hooked) noinline {{
start:
  %type.at = getelementptr i8, ptr %tensor, i64 {type}
  %type = load ptr, ptr %type.at
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
  %array.type.at = getelementptr i8, ptr %array, i64 {type}
  %array.type = load ptr, ptr %array.type.at
  %is.array = icmp eq ptr %array.type, {array_type}
  br i1 %is.array, label %flags, label %no
flags:
  %flags.at = getelementptr i8, ptr %array, i64 {flags}
  %marks = load i32, ptr %flags.at
  %wanted = and i32 %marks, {plain}
  %ordered = icmp eq i32 %wanted, {plain}
  br i1 %ordered, label %yes, label %no
yes:
  ret ptr %array
no:
  ret ptr null
}}"""
_TRY: Final = """; do the shapes fit but for one dimension (or in all of them where that is -1)?
define internal i1 @"fit.{name}"(ptr %a, ptr %b, i64 %dim) noinline {{
start:
  %a.ndim.at = getelementptr i8, ptr %a, i64 {ndim}
  %a.ndim = load i32, ptr %a.ndim.at
  %b.ndim.at = getelementptr i8, ptr %b, i64 {ndim}
  %b.ndim = load i32, ptr %b.ndim.at
  %n = zext i32 %a.ndim to i64
  %a.dims.at = getelementptr i8, ptr %a, i64 {dimensions}
  %a.dims = load ptr, ptr %a.dims.at
  %b.dims.at = getelementptr i8, ptr %b, i64 {dimensions}
  %b.dims = load ptr, ptr %b.dims.at
  %same = icmp eq i32 %a.ndim, %b.ndim
  br i1 %same, label %check, label %no
check:
  %i = phi i64 [0, %start], [%i.next, %next]
  %go = icmp ult i64 %i, %n
  br i1 %go, label %next, label %yes
next:
  %x.at = getelementptr i64, ptr %a.dims, i64 %i
  %x = load i64, ptr %x.at
  %y.at = getelementptr i64, ptr %b.dims, i64 %i
  %y = load i64, ptr %y.at
  %i.next = add i64 %i, 1
  %equal = icmp eq i64 %x, %y
  %free = icmp eq i64 %i, %dim
  %fits = or i1 %equal, %free
  br i1 %fits, label %check, label %no
yes:
  ret i1 1
no:
  ret i1 0
}}

define internal ptr @"try.{name}"(ptr %a0, ptr %a1, i1 %hooked) noinline {{
start:
  %arrays = alloca [{most} x ptr]
  %pieces = alloca [{most} x i64]
  %dims = alloca [66 x i64]
  %dim.at = alloca i64
  br i1 %hooked, label %hooks, label %open
hooks:
  %quiet = call i1 @quiet()
  br i1 %quiet, label %open, label %miss
open:
  %type.at = getelementptr i8, ptr %a0, i64 {type}
  %type = load ptr, ptr %type.at
  %is.list = icmp eq ptr %type, {list}
  br i1 %is.list, label %size, label %miss
size:
  %count = call i64 {size}(ptr %a0)
  %less = sub i64 %count, 1
  %few = icmp ult i64 %less, {most}
  br i1 %few, label %begin, label %miss
begin:
  %item0 = call ptr {item}(ptr %a0, i64 0)
  %first = call ptr @plain(ptr %item0, i1 %hooked)
  %is.plain0 = icmp ne ptr %first, null
  br i1 %is.plain0, label %where, label %miss
where:
  %is.whole = call i1 @whole(ptr %a1, ptr %dim.at)
  br i1 %is.whole, label %wrap, label %miss
wrap:
  %given = load i64, ptr %dim.at
  %ndim.at = getelementptr i8, ptr %first, i64 {ndim}
  %ndim.short = load i32, ptr %ndim.at
  %ndim = zext i32 %ndim.short to i64
  %ranks = add i64 %ndim, {new}
  %negative = icmp slt i64 %given, 0
  %shifted = add i64 %given, %ranks
  %dim = select i1 %negative, i64 %shifted, i64 %given
  %is.in = icmp ult i64 %dim, %ranks
  %free = select i1 {new}, i64 -1, i64 %dim
  %d.at = getelementptr i8, ptr %first, i64 {dtype}
  %d = load ptr, ptr %d.at
  %itemsize = call i64 @size_of(ptr %d)
  %is.known = icmp ne i64 %itemsize, 0
  %may = and i1 %is.in, %is.known
  br i1 %may, label %measure, label %miss
measure:
  %outer = call i64 @product(ptr %first, i64 0, i64 %dim)
  br label %look
look:
  %i = phi i64 [0, %measure], [%i.next, %taken]
  %bytes = phi i64 [0, %measure], [%bytes.next, %taken]
  %length = phi i64 [0, %measure], [%length.next, %taken]
  %i.next = add i64 %i, 1
  %item = call ptr {item}(ptr %a0, i64 %i)
  %array = call ptr @plain(ptr %item, i1 %hooked)
  %is.plain = icmp ne ptr %array, null
  br i1 %is.plain, label %alike, label %miss
alike:
  %other.at = getelementptr i8, ptr %array, i64 {dtype}
  %other = load ptr, ptr %other.at
  %same.dtype = icmp eq ptr %other, %d
  %fits = call i1 @"fit.{name}"(ptr %first, ptr %array, i64 %free)
  %total = call i64 @extent(ptr %array, i64 %itemsize)
  %some = icmp ne i64 %total, 0
  %is.fit = and i1 %same.dtype, %fits
  %is.good = and i1 %is.fit, %some
  br i1 %is.good, label %taken, label %miss
taken:
  %begun = call i64 @product(ptr %array, i64 %dim, i64 %ndim)
  %piece = mul i64 %begun, %itemsize
  %array.to = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %array, ptr %array.to
  %piece.to = getelementptr i64, ptr %pieces, i64 %i
  store i64 %piece, ptr %piece.to
  %bytes.next = add i64 %bytes, %piece
  %past = add i64 %dim, 1
  %along.cat = call i64 @product(ptr %array, i64 %dim, i64 %past)
  %along = select i1 {new}, i64 1, i64 %along.cat
  %length.next = add i64 %length, %along
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %look, label %all
all:
  %whole.size = mul i64 %bytes.next, %outer
  %is.short = icmp ule i64 %whole.size, {longest}
  br i1 %is.short, label %shape, label %miss
shape:
  %dims.at = getelementptr i8, ptr %first, i64 {dimensions}
  %old = load ptr, ptr %dims.at
  br label %fill
fill:
  %j = phi i64 [0, %shape], [%j.next, %filled]
  %from = phi i64 [0, %shape], [%from.next, %filled]
  %j.next = add i64 %j, 1
  %is.dim = icmp eq i64 %j, %dim
  br i1 %is.dim, label %joined, label %kept
joined:
  %from.joined = add i64 %from, {old_step}
  br label %filled
kept:
  %old.at = getelementptr i64, ptr %old, i64 %from
  %old.size = load i64, ptr %old.at
  %from.kept = add i64 %from, 1
  br label %filled
filled:
  %new.size = phi i64 [%length.next, %joined], [%old.size, %kept]
  %from.next = phi i64 [%from.joined, %joined], [%from.kept, %kept]
  %new.at = getelementptr i64, ptr %dims, i64 %j
  store i64 %new.size, ptr %new.at
  %fill.more = icmp ult i64 %j.next, %ranks
  br i1 %fill.more, label %fill, label %create
create:
  call void {retain}(ptr %d)
  %ranks.short = trunc i64 %ranks to i32
  %made = call ptr {make}(ptr {array}, ptr %d, i32 %ranks.short, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %copy, label %failed
copy:
  %made.at = getelementptr i8, ptr %made, i64 {data}
  %to = load ptr, ptr %made.at
  br label %block
block:
  %o = phi i64 [0, %copy], [%o.next, %blockend]
  %done = phi i64 [0, %copy], [%done.next, %blockend]
  br label %part
part:
  %k = phi i64 [0, %block], [%k.next, %part]
  %so.far = phi i64 [%done, %block], [%done.next, %part]
  %source.at = getelementptr ptr, ptr %arrays, i64 %k
  %source = load ptr, ptr %source.at
  %data.at = getelementptr i8, ptr %source, i64 {data}
  %data = load ptr, ptr %data.at
  %length.at = getelementptr i64, ptr %pieces, i64 %k
  %copied = load i64, ptr %length.at
  %offset = mul i64 %o, %copied
  %source.row = getelementptr i8, ptr %data, i64 %offset
  %target.row = getelementptr i8, ptr %to, i64 %so.far
  call void @llvm.memcpy.p0.p0.i64(ptr %target.row, ptr %source.row, i64 %copied, i1 0)
  %done.next = add i64 %so.far, %copied
  %k.next = add i64 %k, 1
  %parts = icmp ult i64 %k.next, %count
  br i1 %parts, label %part, label %blockend
blockend:
  %o.next = add i64 %o, 1
  %blocks = icmp ult i64 %o.next, %outer
  br i1 %blocks, label %block, label %end
end:
  %result = call ptr @wrap(ptr %made)
  ret ptr %result
failed:
  call void {clear}()
  br label %miss
miss:
  ret ptr null
}}"""
