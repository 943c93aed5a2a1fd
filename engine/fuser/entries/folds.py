"""Reductions of a row of elements to one number, as LLVM functions in text.

In: the name of a fold and a kind of element.  Out: the text of `T sum.KIND(ptr row, i64 n)`, and the like for `max` and
`min`, which give NaN where there is one, and `argmax` and `argmin`, which give the first place of what those give.
Rows have at least one element.  For sums see Note [Sums as numpy has them].
"""

from __future__ import annotations

from typing import Final

LEAF: Final = 128
"""So many numbers are summed eight by eight."""
_SHARED: Final = "declare i16 @llvm.cttz.i16(i16, i1)"
_TYPES: Final = {"f32": ("float", 4), "f64": ("double", 8), "i64": ("i64", 8)}

_FLOAT_SUM: Final = """define internal {T} @leaf.{k}(ptr %x, i64 %n) {{
start:
  %few = icmp ult i64 %n, 8
  br i1 %few, label %check, label %eight
eight:
  %first = load <8 x {T}>, ptr %x, align {size}
  %whole = and i64 %n, -8
  br label %more
more:
  %i = phi i64 [8, %eight], [%i.next, %add]
  %acc = phi <8 x {T}> [%first, %eight], [%acc.next, %add]
  %go = icmp ult i64 %i, %whole
  br i1 %go, label %add, label %join
add:
  %at = getelementptr {T}, ptr %x, i64 %i
  %v = load <8 x {T}>, ptr %at, align {size}
  %acc.next = fadd <8 x {T}> %acc, %v
  %i.next = add i64 %i, 8
  br label %more
join:
  %even = shufflevector <8 x {T}> %acc, <8 x {T}> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %odd = shufflevector <8 x {T}> %acc, <8 x {T}> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %pairs = fadd <4 x {T}> %even, %odd
  %p0 = extractelement <4 x {T}> %pairs, i32 0
  %p1 = extractelement <4 x {T}> %pairs, i32 1
  %p2 = extractelement <4 x {T}> %pairs, i32 2
  %p3 = extractelement <4 x {T}> %pairs, i32 3
  %low = fadd {T} %p0, %p1
  %high = fadd {T} %p2, %p3
  %joined = fadd {T} %low, %high
  br label %check
check:
  %j = phi i64 [0, %start], [%whole, %join], [%j.next, %one]
  %s = phi {T} [-0.0, %start], [%joined, %join], [%s.next, %one]
  %left = icmp ult i64 %j, %n
  br i1 %left, label %one, label %end
one:
  %e.at = getelementptr {T}, ptr %x, i64 %j
  %e = load {T}, ptr %e.at
  %s.next = fadd {T} %s, %e
  %j.next = add i64 %j, 1
  br label %check
end:
  ret {T} %s
}}

define internal {T} @pairwise.{k}(ptr %x, i64 %n) noinline {{
start:
  %short = icmp ule i64 %n, 128
  br i1 %short, label %whole, label %halves
whole:
  %sum = call {T} @leaf.{k}(ptr %x, i64 %n)
  ret {T} %sum
halves:
  %half = lshr i64 %n, 1
  %first = and i64 %half, -8
  %second = sub i64 %n, %first
  %later = getelementptr {T}, ptr %x, i64 %first
  %a = call {T} @pairwise.{k}(ptr %x, i64 %first)
  %b = call {T} @pairwise.{k}(ptr %later, i64 %second)
  %both = fadd {T} %a, %b
  ret {T} %both
}}

define internal {T} @sum.{k}(ptr %x, i64 %n) {{
  %s = call {T} @pairwise.{k}(ptr %x, i64 %n)
  %sum = fadd {T} 0.0, %s
  ret {T} %sum
}}

; the mean of a short row and the sum of squares about it, kept up to date number by number
define internal {{{T}, {T}}} @running.{k}(ptr %x, i64 %n) {{
start:
  %first = load {T}, ptr %x
  %none = fsub {T} %first, %first
  br label %check
check:
  %i = phi i64 [1, %start], [%i.next, %one]
  %mean = phi {T} [%first, %start], [%mean.next, %one]
  %squares = phi {T} [%none, %start], [%squares.next, %one]
  %left = icmp ult i64 %i, %n
  br i1 %left, label %one, label %end
one:
  %at = getelementptr {T}, ptr %x, i64 %i
  %e = load {T}, ptr %at
  %i.next = add i64 %i, 1
  %count = uitofp i64 %i.next to {T}
  %away = fsub {T} %e, %mean
  %share = fdiv {T} %away, %count
  %mean.next = fadd {T} %mean, %share
  %still = fsub {T} %e, %mean.next
  %square = fmul {T} %away, %still
  %squares.next = fadd {T} %squares, %square
  br label %check
end:
  %one.of = insertvalue {{{T}, {T}}} poison, {T} %mean, 0
  %both = insertvalue {{{T}, {T}}} %one.of, {T} %squares, 1
  ret {{{T}, {T}}} %both
}}

define internal {T} @running_mean.{k}(ptr %x, i64 %n) {{
  %both = call {{{T}, {T}}} @running.{k}(ptr %x, i64 %n)
  %mean = extractvalue {{{T}, {T}}} %both, 0
  ret {T} %mean
}}

define internal {T} @running_squares.{k}(ptr %x, i64 %n) {{
  %both = call {{{T}, {T}}} @running.{k}(ptr %x, i64 %n)
  %squares = extractvalue {{{T}, {T}}} %both, 1
  ret {T} %squares
}}"""
_WHOLE_SUM: Final = """define internal {T} @sum.{k}(ptr %x, i64 %n) {{
start:
  br label %one
one:
  %i = phi i64 [0, %start], [%i.next, %one]
  %s = phi {T} [0, %start], [%s.next, %one]
  %at = getelementptr {T}, ptr %x, i64 %i
  %e = load {T}, ptr %at
  %s.next = add {T} %s, %e
  %i.next = add nuw i64 %i, 1
  %left = icmp ult i64 %i.next, %n
  br i1 %left, label %one, label %end
end:
  ret {T} %s.next
}}"""

_EXTREME: Final = """; the better one of a number and those of a row
define internal {T} @{f}.on.{k}({T} %begun, ptr %x, i64 %n) {{
start:
  br label %check
check:
  %i = phi i64 [0, %start], [%i.next, %one]
  %acc = phi {T} [%begun, %start], [%acc.next, %one]
  %left = icmp ult i64 %i, %n
  br i1 %left, label %one, label %end
one:
  %at = getelementptr {T}, ptr %x, i64 %i
  %v = load {T}, ptr %at
  %better = {better} {T} %v, %acc
  %odd = {odd} {T} %v, %v
  %take = or i1 %better, %odd
  %acc.next = select i1 %take, {T} %v, {T} %acc
  %i.next = add nuw i64 %i, 1
  br label %check
end:
  ret {T} %acc
}}

define internal {T} @{f}.{k}(ptr %x, i64 %n) noinline {{
start:
  %lanes = alloca [16 x {T}], align 64
  %few = icmp ult i64 %n, 16
  br i1 %few, label %short, label %wide
short:
  %e = load {T}, ptr %x
  %found = call {T} @{f}.on.{k}({T} %e, ptr %x, i64 %n)
  ret {T} %found
wide:
  %first = load <16 x {T}>, ptr %x, align {size}
  %whole = and i64 %n, -16
  br label %check
check:
  %i = phi i64 [16, %wide], [%i.next, %next]
  %acc = phi <16 x {T}> [%first, %wide], [%acc.next, %next]
  %go = icmp ult i64 %i, %whole
  br i1 %go, label %next, label %join
next:
  %at = getelementptr {T}, ptr %x, i64 %i
  %v = load <16 x {T}>, ptr %at, align {size}
  %better = {better} <16 x {T}> %v, %acc
  %odd = {odd} <16 x {T}> %v, %v
  %take = or <16 x i1> %better, %odd
  %acc.next = select <16 x i1> %take, <16 x {T}> %v, <16 x {T}> %acc
  %i.next = add nuw i64 %i, 16
  br label %check
join:
  store <16 x {T}> %acc, ptr %lanes
  %lane = load {T}, ptr %lanes
  %most = call {T} @{f}.on.{k}({T} %lane, ptr %lanes, i64 16)
  %rest = sub i64 %n, %whole
  %rest.at = getelementptr {T}, ptr %x, i64 %whole
  %all = call {T} @{f}.on.{k}({T} %most, ptr %rest.at, i64 %rest)
  ret {T} %all
}}

define internal i64 @arg{f}.{k}(ptr %x, i64 %n) noinline {{
start:
  %most = call {T} @{f}.{k}(ptr %x, i64 %n)
  %nan = {odd} {T} %most, %most
  %one.of = insertelement <16 x {T}> poison, {T} %most, i32 0
  %sixteen = shufflevector <16 x {T}> %one.of, <16 x {T}> poison, <16 x i32> zeroinitializer
  br label %check
check:
  %i = phi i64 [0, %start], [%i.next, %look]
  %i.next = add nuw i64 %i, 16
  %go = icmp ule i64 %i.next, %n
  br i1 %go, label %look, label %single
look:
  %at = getelementptr {T}, ptr %x, i64 %i
  %v = load <16 x {T}>, ptr %at, align {size}
  %odd = {odd} <16 x {T}> %v, %v
  %same = {same} <16 x {T}> %v, %sixteen
  %hits = select i1 %nan, <16 x i1> %odd, <16 x i1> %same
  %bits = bitcast <16 x i1> %hits to i16
  %none = icmp eq i16 %bits, 0
  br i1 %none, label %check, label %hit
hit:
  %lane = call i16 @llvm.cttz.i16(i16 %bits, i1 1)
  %lane.wide = zext i16 %lane to i64
  %place = add i64 %i, %lane.wide
  ret i64 %place
single:
  %j = phi i64 [%i, %check], [%j.next, %single]
  %e.at = getelementptr {T}, ptr %x, i64 %j
  %e = load {T}, ptr %e.at
  %e.odd = {odd} {T} %e, %e
  %e.same = {same} {T} %e, %most
  %is = select i1 %nan, i1 %e.odd, i1 %e.same
  %j.next = add nuw i64 %j, 1
  br i1 %is, label %end, label %single
end:
  ret i64 %j
}}"""
_TRUTH: Final = """; is one of them {end}?  That decides.
define internal i1 @{f}.i1(ptr %x, i64 %n) noinline {{
start:
  br label %one
one:
  %i = phi i64 [0, %start], [%i.next, %next]
  %at = getelementptr i8, ptr %x, i64 %i
  %e = load i8, ptr %at
  %is = icmp ne i8 %e, 0
  %decided = icmp eq i1 %is, {end}
  br i1 %decided, label %end, label %next
next:
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %one, label %end
end:
  ret i1 %is
}}"""
FOLDS: Final = ("sum", "max", "min", "argmax", "argmin", "any", "all", "running_mean", "running_squares")
"""`running_...`: the mean of a row, and the sum of squares about it, kept up to date number by number."""
PLACES: Final = ("argmax", "argmin")
"""Those that give a place, not an element."""


def fold_functions(kind: str) -> list[str]:
    """The functions for one kind of element; empty where there are none."""
    if kind == "i1":
        return [_TRUTH.format(f=f, end=end) for f, end in (("any", 1), ("all", 0))]
    if kind not in _TYPES:
        return []
    type, size = _TYPES[kind]
    is_whole = kind == "i64"
    codes = {"odd": "icmp ne" if is_whole else "fcmp uno", "same": "icmp eq" if is_whole else "fcmp oeq"}
    better = {"max": "icmp sgt", "min": "icmp slt"} if is_whole else {"max": "fcmp ogt", "min": "fcmp olt"}
    extremes = [_EXTREME.format(T=type, k=kind, size=size, f=f, better=code, **codes) for f, code in better.items()]
    return [(_WHOLE_SUM if is_whole else _FLOAT_SUM).format(T=type, k=kind, size=size), *extremes]


_CONVERSIONS: Final = """define internal void @widen.{k}(ptr noalias %to, ptr %from, i64 %n) noinline {{
start:
  br label %one
one:
  %i = phi i64 [0, %start], [%i.next, %one]
  %at = getelementptr i16, ptr %from, i64 %i
  %bits = load i16, ptr %at
{wide}
  %to.at = getelementptr float, ptr %to, i64 %i
  store float %e, ptr %to.at
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %one, label %end
end:
  ret void
}}

define internal i16 @half.{k}(float %e) alwaysinline {{
{narrow}
  ret i16 %bits
}}

define internal void @narrow.{k}(ptr noalias %to, ptr %from, i64 %n) noinline {{
start:
  br label %one
one:
  %i = phi i64 [0, %start], [%i.next, %one]
  %at = getelementptr float, ptr %from, i64 %i
  %e = load float, ptr %at
  %bits = call i16 @half.{k}(float %e)
  %to.at = getelementptr i16, ptr %to, i64 %i
  store i16 %bits, ptr %to.at
  %i.next = add nuw i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %one, label %end
end:
  ret void
}}"""
_WIDE: Final = {
    "f16": "  %h = bitcast i16 %bits to half\n  %e = fpext half %h to float",
    "bf16": "  %low = zext i16 %bits to i32\n  %high = shl i32 %low, 16\n  %e = bitcast i32 %high to float",
}
_NARROW: Final = {
    "f16": "  %h = fptrunc float %e to half\n  %bits = bitcast half %h to i16",
    "bf16": """  %whole = bitcast float %e to i32
  %above = lshr i32 %whole, 16
  %odd = and i32 %above, 1
  %more.than = add i32 %odd, 32767
  %rounded = add i32 %whole, %more.than
  %kept = lshr i32 %rounded, 16
  %sign = and i32 %above, 32768
  %quiet = or i32 %sign, 32704
  %nan = fcmp uno float %e, %e
  %found = select i1 %nan, i32 %quiet, i32 %kept
  %bits = trunc i32 %found to i16""",
}


def conversions(kind: str) -> str:
    """Rows of halves to rows of `f32`, and back, rounded to the nearest (of two, the even one)."""
    return _CONVERSIONS.format(k=kind, wide=_WIDE[kind], narrow=_NARROW[kind])


def shared() -> str:
    """The declarations that a module with these functions needs."""
    return _SHARED
