"""The text of products of matrices as entries; see `products`.

In: nothing.  Out: functions in LLVM's text, with gaps for names and addresses.
"""

from __future__ import annotations

from typing import Final

MATRIX: Final = """; 0 for a matrix in order, 1 for one whose transpose is; -1 for anything else, single rows too
define internal i32 @matrix(ptr %array) noinline {
start:
  %ndim = call i32 @ndim(ptr %array)
  %two = icmp eq i32 %ndim, 2
  br i1 %two, label %look, label %no
look:
  %dims = call ptr @dims(ptr %array)
  %rows = load i64, ptr %dims
  %columns.at = getelementptr i64, ptr %dims, i64 1
  %columns = load i64, ptr %columns.at
  %some.rows = icmp ugt i64 %rows, 1
  %some.columns = icmp ugt i64 %columns, 1
  %some = and i1 %some.rows, %some.columns
  br i1 %some, label %order, label %no
order:
  %flags = call i32 @flags(ptr %array)
  %c = and i32 %flags, 1
  %is.c = icmp ne i32 %c, 0
  %f = and i32 %flags, 2
  %is.f = icmp ne i32 %f, 0
  %not.c = select i1 %is.f, i32 1, i32 -1
  %found = select i1 %is.c, i32 0, i32 %not.c
  ret i32 %found
no:
  ret i32 -1
}"""
PRODUCT: Final = """; a product of matrices of more than one row and column; `ta`, `tb`: the transpose lies there
define internal void @product.{k}(ptr %a, i1 %ta, ptr %b, i1 %tb, ptr %out, i64 %m, i64 %n, i64 %k) noinline {{
start:
  %lda = select i1 %ta, i64 %m, i64 %k
  %ldb = select i1 %tb, i64 %k, i64 %n
  %trans.a = select i1 %ta, i32 112, i32 111
  %trans.b = select i1 %tb, i32 112, i32 111
  %same = icmp eq ptr %a, %b
  %square = icmp eq i64 %m, %n
  %crosswise = xor i1 %ta, %tb
  %both = and i1 %same, %square
  %own = and i1 %both, %crosswise
  br i1 %own, label %symmetric, label %general
general:
  call void {gemm}(
    i32 101, i32 %trans.a, i32 %trans.b, i64 %m, i64 %n, i64 %k, {T} 1.0, ptr %a, i64 %lda, ptr %b, i64 %ldb, {T} 0.0,
    ptr %out, i64 %n)
  ret void
symmetric:
  %ld = select i1 %ta, i64 %ldb, i64 %lda
  call void {syrk}(
    i32 101, i32 121, i32 %trans.a, i64 %n, i64 %k, {T} 1.0, ptr %a, i64 %ld, {T} 0.0, ptr %out, i64 %n)
  br label %row
row:
  %i = phi i64 [0, %symmetric], [%i.next, %next]
  %i.next = add i64 %i, 1
  br label %check
check:
  %j = phi i64 [%i.next, %row], [%j.next, %copy]
  %go = icmp ult i64 %j, %n
  br i1 %go, label %copy, label %next
copy:
  %far = mul i64 %i, %n
  %from = add i64 %far, %j
  %from.at = getelementptr {T}, ptr %out, i64 %from
  %e = load {T}, ptr %from.at
  %farther = mul i64 %j, %n
  %to = add i64 %farther, %i
  %to.at = getelementptr {T}, ptr %out, i64 %to
  store {T} %e, ptr %to.at
  %j.next = add i64 %j, 1
  br label %check
next:
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %row, label %end
end:
  ret void
}}

define internal void @add_bias.{k}(ptr %out, ptr %bias, i64 %m, i64 %n) noinline {{
start:
  %none = icmp eq ptr %bias, null
  br i1 %none, label %end, label %row
row:
  %i = phi i64 [0, %start], [%i.next, %next]
  %far = mul i64 %i, %n
  %to = getelementptr {T}, ptr %out, i64 %far
  br label %one
one:
  %j = phi i64 [0, %row], [%j.next, %one]
  %at = getelementptr {T}, ptr %to, i64 %j
  %e = load {T}, ptr %at
  %b.at = getelementptr {T}, ptr %bias, i64 %j
  %b = load {T}, ptr %b.at
  %sum = fadd {T} %e, %b
  store {T} %sum, ptr %at
  %j.next = add nuw i64 %j, 1
  %more = icmp ult i64 %j.next, %n
  br i1 %more, label %one, label %next
next:
  %i.next = add nuw i64 %i, 1
  %rows = icmp ult i64 %i.next, %m
  br i1 %rows, label %row, label %end
end:
  ret void
}}"""
MM: Final = """; the arrays of the operands (none as bias), and whether their transposes lie there
define internal i1 @"operands.{name}"(ptr %a0, ptr %a1, i1 %hooked, ptr %found, ptr %turned) noinline {{
start:
  %a = call ptr @aligned(ptr %a0, i1 %hooked)
  %b = call ptr @aligned(ptr %a1, i1 %hooked)
  %no.a = icmp eq ptr %a, null
  %no.b = icmp eq ptr %b, null
  %none = or i1 %no.a, %no.b
  br i1 %none, label %no, label %look
look:
  %ta = call i32 @matrix(ptr %a)
  %tb = call i32 @matrix(ptr %b)
  %either = or i32 %ta, %tb
  %fits = icmp sge i32 %either, 0
  store ptr %a, ptr %found
  %second = getelementptr ptr, ptr %found, i64 1
  store ptr %b, ptr %second
  %third = getelementptr ptr, ptr %found, i64 2
  store ptr null, ptr %third
  store i32 %ta, ptr %turned
  %turned.b = getelementptr i32, ptr %turned, i64 1
  store i32 %tb, ptr %turned.b
  ret i1 %fits
no:
  ret i1 0
}}"""
LINEAR: Final = """; the arrays of the operands, and whether the transposes lie there of what is multiplied
define internal i1 @"operands.{name}"(ptr %a0, ptr %a1, ptr %a2, i1 %hooked, ptr %found, ptr %turned) noinline {{
start:
  %a = call ptr @plain(ptr %a0, i1 %hooked)
  %b = call ptr @aligned(ptr %a1, i1 %hooked)
  %no.a = icmp eq ptr %a, null
  %no.b = icmp eq ptr %b, null
  %none = or i1 %no.a, %no.b
  br i1 %none, label %no, label %bias
bias:
  %is.none = icmp eq ptr %a2, {none}
  br i1 %is.none, label %look, label %some
some:
  %given = call ptr @plain(ptr %a2, i1 %hooked)
  %missing = icmp eq ptr %given, null
  br i1 %missing, label %no, label %fit
fit:
  %d = call ptr @dtype(ptr %a)
  %given.d = call ptr @dtype(ptr %given)
  %alike = icmp eq ptr %d, %given.d
  br i1 %alike, label %look, label %no
look:
  %c = phi ptr [null, %bias], [%given, %fit]
  %order = call i32 @matrix(ptr %b)
  %fits = icmp sge i32 %order, 0
  %tb = sub i32 1, %order
  store ptr %a, ptr %found
  %second = getelementptr ptr, ptr %found, i64 1
  store ptr %b, ptr %second
  %third = getelementptr ptr, ptr %found, i64 2
  store ptr %c, ptr %third
  store i32 0, ptr %turned
  %turned.b = getelementptr i32, ptr %turned, i64 1
  store i32 %tb, ptr %turned.b
  ret i1 %fits
no:
  ret i1 0
}}"""
TRY: Final = """define internal ptr @"try.{name}"({given}, i1 %hooked) noinline {{
start:
  %found = alloca [3 x ptr]
  %turned = alloca [2 x i32]
  %dims = alloca [64 x i64]
  %open = call i1 @open(i1 %hooked)
  br i1 %open, label %take, label %miss
take:
  %fits = call i1 @"operands.{name}"({given}, i1 %hooked, ptr %found, ptr %turned)
  br i1 %fits, label %look, label %miss
look:
  %a = load ptr, ptr %found
  %b.at = getelementptr ptr, ptr %found, i64 1
  %b = load ptr, ptr %b.at
  %bias.at = getelementptr ptr, ptr %found, i64 2
  %bias = load ptr, ptr %bias.at
  %ta.int = load i32, ptr %turned
  %ta = icmp eq i32 %ta.int, 1
  %tb.at = getelementptr i32, ptr %turned, i64 1
  %tb.int = load i32, ptr %tb.at
  %tb = icmp eq i32 %tb.int, 1
  %d = call ptr @dtype(ptr %a)
  %b.d = call ptr @dtype(ptr %b)
  %alike = icmp eq ptr %d, %b.d
  %rank = call i64 @rank(ptr %a)
  %deep = icmp ugt i64 %rank, 1
  %good = and i1 %alike, %deep
  br i1 %good, label %measure, label %miss
measure:
  %last = sub i64 %rank, 1
  %m = call i64 @product(ptr %a, i64 0, i64 %last)
  %k = call i64 @product(ptr %a, i64 %last, i64 %rank)
  %b.first = call i64 @product(ptr %b, i64 0, i64 1)
  %b.second = call i64 @product(ptr %b, i64 1, i64 2)
  %inner = select i1 {linear}, i64 %b.second, i64 %b.first
  %n = select i1 {linear}, i64 %b.first, i64 %b.second
  %same = icmp eq i64 %k, %inner
  %some = icmp ugt i64 %m, 1
  %few.m = icmp ule i64 %m, {most}
  %few.n = icmp ule i64 %n, {most}
  %few.k = icmp ule i64 %k, {most}
  %mn = mul i64 %m, %n
  %mnk = mul i64 %mn, %k
  %few = icmp ule i64 %mnk, {most}
  %c1 = and i1 %same, %some
  %c2 = and i1 %few.m, %few.n
  %c3 = and i1 %few.k, %few
  %c4 = and i1 %c1, %c2
  %c5 = and i1 %c3, %c4
  br i1 %c5, label %add, label %miss
add:
  %unbiased = icmp eq ptr %bias, null
  br i1 %unbiased, label %shape, label %bias.look
bias.look:
  %bias.rank = call i64 @rank(ptr %bias)
  %flat = icmp eq i64 %bias.rank, 1
  br i1 %flat, label %bias.size, label %miss
bias.size:
  %bias.n = call i64 @product(ptr %bias, i64 0, i64 1)
  %bias.fits = icmp eq i64 %bias.n, %n
  br i1 %bias.fits, label %shape, label %miss
shape:
  %bias.data = call ptr @data(ptr %bias)
  %old = call ptr @dims(ptr %a)
  %bytes = mul i64 %last, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %dims, ptr %old, i64 %bytes, i1 0)
  %last.at = getelementptr i64, ptr %dims, i64 %last
  store i64 %n, ptr %last.at
  %is.first = icmp eq ptr %d, {first_dtype}
  %is.second = icmp eq ptr %d, {second_dtype}
  %is.known = or i1 %is.first, %is.second
  br i1 %is.known, label %create, label %miss
create:
  %ndim = call i32 @ndim(ptr %a)
  %made = call ptr @new_array(ptr %d, i32 %ndim, ptr %dims)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %work, label %miss
work:
  %out = call ptr @data(ptr %made)
  %a.data = call ptr @data(ptr %a)
  %b.data = call ptr @data(ptr %b)
  br i1 %is.first, label %is.{first}, label %is.{second}
{cases}
done:
  %result = call ptr @wrap(ptr %made)
  ret ptr %result
miss:
  ret ptr null
}}"""
BATCHES: Final = """define internal ptr @"try.{name}"(ptr %a0, ptr %a1, i1 %hooked) noinline {{
start:
  %dims = alloca [3 x i64]
  %open = call i1 @open(i1 %hooked)
  br i1 %open, label %take, label %miss
take:
  %a = call ptr @plain(ptr %a0, i1 %hooked)
  %b = call ptr @plain(ptr %a1, i1 %hooked)
  %no.a = icmp eq ptr %a, null
  %no.b = icmp eq ptr %b, null
  %none = or i1 %no.a, %no.b
  br i1 %none, label %miss, label %look
look:
  %d = call ptr @dtype(ptr %a)
  %b.d = call ptr @dtype(ptr %b)
  %alike = icmp eq ptr %d, %b.d
  %is.first = icmp eq ptr %d, {first_dtype}
  %is.second = icmp eq ptr %d, {second_dtype}
  %is.known = or i1 %is.first, %is.second
  %a.ndim = call i32 @ndim(ptr %a)
  %b.ndim = call i32 @ndim(ptr %b)
  %a.three = icmp eq i32 %a.ndim, 3
  %b.three = icmp eq i32 %b.ndim, 3
  %g1 = and i1 %alike, %is.known
  %g2 = and i1 %a.three, %b.three
  %good = and i1 %g1, %g2
  br i1 %good, label %measure, label %miss
measure:
  %count = call i64 @product(ptr %a, i64 0, i64 1)
  %m = call i64 @product(ptr %a, i64 1, i64 2)
  %k = call i64 @product(ptr %a, i64 2, i64 3)
  %b.count = call i64 @product(ptr %b, i64 0, i64 1)
  %b.k = call i64 @product(ptr %b, i64 1, i64 2)
  %n = call i64 @product(ptr %b, i64 2, i64 3)
  %same.count = icmp eq i64 %count, %b.count
  %same.k = icmp eq i64 %k, %b.k
  %some.m = icmp ugt i64 %m, 1
  %some.n = icmp ugt i64 %n, 1
  %some.k = icmp ugt i64 %k, 1
  %some = icmp ugt i64 %count, 0
  %few.count = icmp ule i64 %count, {most}
  %few.m = icmp ule i64 %m, {most}
  %few.n = icmp ule i64 %n, {most}
  %few.k = icmp ule i64 %k, {most}
  %mk = mul i64 %m, %k
  %few.mk = icmp ule i64 %mk, {most}
  %cmk = mul i64 %mk, %count
  %few.cmk = icmp ule i64 %cmk, {most}
  %cmnk = mul i64 %cmk, %n
  %few = icmp ule i64 %cmnk, {most}
  %h1 = and i1 %same.count, %same.k
  %h2 = and i1 %some.m, %some.n
  %h3 = and i1 %some.k, %some
  %h4 = and i1 %few.count, %few.m
  %h5 = and i1 %few.n, %few.k
  %h6 = and i1 %few.mk, %few.cmk
  %i1 = and i1 %h1, %h2
  %i2 = and i1 %h3, %h4
  %i3 = and i1 %h5, %h6
  %j1 = and i1 %i1, %i2
  %j2 = and i1 %i3, %few
  %fits = and i1 %j1, %j2
  br i1 %fits, label %create, label %miss
create:
  store i64 %count, ptr %dims
  %second.at = getelementptr i64, ptr %dims, i64 1
  store i64 %m, ptr %second.at
  %third.at = getelementptr i64, ptr %dims, i64 2
  store i64 %n, ptr %third.at
  %made = call ptr @new_array(ptr %d, i32 3, ptr %dims)
  %is.made = icmp ne ptr %made, null
  br i1 %is.made, label %work, label %miss
work:
  %out = call ptr @data(ptr %made)
  %a.data = call ptr @data(ptr %a)
  %b.data = call ptr @data(ptr %b)
  %size = select i1 %is.first, i64 {sizes}, i64 {second_sizes}
  %a.step = mul i64 %mk, %size
  %kn = mul i64 %k, %n
  %b.step = mul i64 %kn, %size
  %mn = mul i64 %m, %n
  %out.step = mul i64 %mn, %size
  br label %one
one:
  %i = phi i64 [0, %work], [%i.next, %next]
  %a.far = mul i64 %i, %a.step
  %b.far = mul i64 %i, %b.step
  %out.far = mul i64 %i, %out.step
  %a.i = getelementptr i8, ptr %a.data, i64 %a.far
  %b.i = getelementptr i8, ptr %b.data, i64 %b.far
  %out.i = getelementptr i8, ptr %out, i64 %out.far
  br i1 %is.first, label %is.{first}, label %is.{second}
{cases}
next:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %one, label %done
done:
  %result = call ptr @wrap(ptr %made)
  ret ptr %result
miss:
  ret ptr null
}}"""
