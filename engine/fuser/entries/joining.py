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

from engine.aten.values.tensor import Tensor
from engine.fuser.entries import samples
from engine.fuser.entries.operands import plain_tensor, size_of
from engine.fuser.entries.row_shapes import shape_functions
from engine.fuser.lower import ALL_SIZES, Library
from engine.fuser.writing import Layout, pointer

MOST: Final = 16
"""So many tensors at most."""
LONGEST: Final = 1 << 18
"""Bytes; numpy lets other threads run while it copies more."""


@dataclass(frozen=True, slots=True)
class Joining:
    """`stacks`: along a new dimension."""

    stacks: bool
    kinds: tuple[str, ...] = tuple(ALL_SIZES)

    @property
    def written(self) -> int | None:
        return None

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield from shape_functions(at)
        yield size_of(at)
        yield plain_tensor(at)
        yield _TRY.format(
            name=name, most=MOST, longest=LONGEST, new=int(self.stacks), old_step=1 - self.stacks,
            list=pointer(at.list), size=pointer(at.functions["PyList_Size"]),
            item=pointer(at.functions["PyList_GetItem"]),
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


JOINING: Final = {"aten::cat": Joining(stacks=False), "aten::stack": Joining(stacks=True)}
"""The operators that join tensors."""

_TRY: Final = """; do the shapes fit but for one dimension (or in all of them where that is -1)?
define internal i1 @"fit.{name}"(ptr %a, ptr %b, i64 %dim) noinline {{
start:
  %n = call i64 @rank(ptr %a)
  %b.n = call i64 @rank(ptr %b)
  %a.dims = call ptr @dims(ptr %a)
  %b.dims = call ptr @dims(ptr %b)
  %same = icmp eq i64 %n, %b.n
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
  %open = call i1 @open(i1 %hooked)
  br i1 %open, label %take, label %miss
take:
  %type = call ptr @type(ptr %a0)
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
  %ndim = call i64 @rank(ptr %first)
  %ranks = add i64 %ndim, {new}
  %negative = icmp slt i64 %given, 0
  %shifted = add i64 %given, %ranks
  %dim = select i1 %negative, i64 %shifted, i64 %given
  %is.in = icmp ult i64 %dim, %ranks
  %free = select i1 {new}, i64 -1, i64 %dim
  %d = call ptr @dtype(ptr %first)
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
  %other = call ptr @dtype(ptr %array)
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
  %old = call ptr @dims(ptr %first)
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
  %ranks.short = trunc i64 %ranks to i32
  %made = call ptr @new_array(ptr %d, i32 %ranks.short, ptr %dims)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %copy, label %miss
copy:
  %to = call ptr @elements(ptr %made)
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
  %data = call ptr @elements(ptr %source)
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
miss:
  ret ptr null
}}"""
