"""Tensors made of numbers, as entries in LLVM's text.

In: what each argument of the operator is for.  Out: its `Work`.

What it is made for: not many elements, of a dtype that native code knows; options that are left out, but for the dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FROM_NUMPY
from engine.fuser import cpython_abi as abi
from engine.fuser.entries import samples
from engine.fuser.entries.operands import plain_tensor, size_of
from engine.fuser.expression import FLOATS
from engine.fuser.lower import LLVM_TYPES, SIZES, Library
from engine.fuser.writing import Layout, Text, define, pointer

LONGEST: Final = 1 << 14
"""Elements; numpy makes more as quickly."""
_ROLES: Final[dict[str, tuple[Any, ...]]] = {
    "none": (None,), "size": ([2, 3], [], [4], [2, 0], [1, 1]), "value": (2.5, 3, -1, 7), "dtype": (None, 6, 7, 4, 3),
    "from": (2, 0), "to": (7, 9, 2), "by": (1, 2), "off": (None, False),
}  # fmt: skip
"""Kinds of arguments, with values to try: None; sizes; the number to fill in; a dtype, or None; where whole numbers
begin, before which they end, and what they go up by; None or False.  "like" is a tensor of that shape."""


@dataclass(frozen=True, slots=True)
class Making:
    """`roles` has one of `_ROLES` for each argument; `value` is what is filled in where no argument says so."""

    roles: tuple[str, ...]
    value: int = 0
    kinds: tuple[str, ...] = ("f32",)
    """One stands for all, which are in the same code."""

    @property
    def written(self) -> int | None:
        return None

    def place(self, role: str) -> int | None:
        return self.roles.index(role) if role in self.roles else None

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield size_of(at)
        yield plain_tensor(at)
        yield _sizes(at)
        for kind in SIZES:
            yield _filling(kind)
            yield _counting(kind)
        yield _Trier(Text(at), name, self).written()

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        for i in range(24):
            given = [values[i % len(values)] for values in (_ROLES.get(role, (None,)) for role in self.roles)]
            if (place := self.place("like")) is not None:
                like = [*samples.DTYPES][i // 3 % len(samples.DTYPES)]
                given[place] = Tensor(samples.rows(like, 1, ((2, 3), (), (4,))[i % 3])[0])
            yield tuple(given)

    def takes(self, args: Sequence[Any]) -> str | None:
        place = self.place("dtype")
        return "f32" if place is None or args[place] is None else None


def _like(value: int = 0) -> Making:
    return Making(("like", "dtype", "none", "none", "off", "none"), value)


def _sized(*roles: str, value: int = 0) -> Making:
    return Making((*roles, "dtype", "none", "none", "off"), value)


MAKING: Final = {
    "aten::zeros": _sized("size"), "aten::ones": _sized("size", value=1), "aten::full": _sized("size", "value"),
    "aten::zeros_like": _like(), "aten::ones_like": _like(1), "aten::empty_like": _like(),
    "aten::full_like": Making(("like", "value", "dtype", "none", "none", "off", "none")),
    "aten::new_zeros": Making(("like", "size", "dtype", "none", "none", "off")),
    "aten::empty.memory_format": Making(("size", "dtype", "none", "none", "off", "none")),
    "aten::arange": _sized("to"), "aten::arange.start": _sized("from", "to"),
    "aten::arange.start_step": _sized("from", "to", "by"),
}  # fmt: skip
"""The operators that make tensors of numbers."""


@dataclass(slots=True)
class _Trier:
    """Writes `try.F`."""

    to: Text
    name: str
    work: Making

    def written(self) -> str:
        to, work = self.to, self.work
        for line in ("%dims = alloca [64 x i64]", "%real = alloca double", "%whole = alloca i64"):
            to.put(line)
        to.need(to.make("call i1 @open(i1 %hooked)"))
        devices = to.load(pointer(to.at.hooks), to.at.hook_slots["devices"])
        to.need(to.is_(devices, pointer(to.at.false)))
        for i, role in enumerate(work.roles):
            if role in ("none", "off"):
                is_fit = to.is_(f"%a{i}", pointer(to.at.none))
                if role == "off":
                    is_fit = to.make(f"or i1 {is_fit}, {to.is_(f'%a{i}', pointer(to.at.false))}")
                to.need(is_fit)
        like = self.like()
        numbers = {role: self.whole(role) for role in ("from", "to", "by")} if "to" in work.roles else {}
        dtype = self.dtype(like)
        size = to.make(f"call i64 @size_of(ptr {dtype})")
        to.need(to.make(f"icmp ne i64 {size}, 0"))
        ndim, dims, count = self.shape(like, size, numbers)
        for kind in SIZES:
            is_kind = to.is_(dtype, pointer(to.at.dtypes[kind]))
            to.put(f"br i1 {is_kind}, label %{kind}, label %not.{kind}")
            to.label(kind)
            self.fill(kind, dtype, ndim, dims, count, numbers)
            to.label(f"not.{kind}")
        to.put("br label %miss")
        to.label("miss")
        to.put("ret ptr null")
        given = ", ".join(f"ptr %a{i}" for i in range(len(work.roles)))
        return define(f'internal ptr @"try.{self.name}"({given}, i1 %hooked) noinline', to)

    def like(self) -> str | None:
        """The array of the tensor that gives the form."""
        to, place = self.to, self.work.place("like")
        if place is None:
            return None
        array = to.make(f"call ptr @plain(ptr %a{place}, i1 %hooked)")
        to.need(to.make(f"icmp ne ptr {array}, null"))
        return array

    def whole(self, role: str) -> str:
        """An argument that is a whole number of 32 bits, so that nothing overflows."""
        to, place = self.to, self.work.place(role)
        if place is None:
            return str(int(role == "by"))
        to.need(to.make(f"call i1 @whole(ptr %a{place}, ptr %whole)"))
        number = to.make("load i64, ptr %whole")
        to.need(to.make(f"icmp ult i64 {to.make(f'add i64 {number}, {1 << 31}')}, {1 << 32}"))
        return number

    def dtype(self, like: str | None) -> str:
        """The argument, or else what follows from the others."""
        to, at, place = self.to, self.to.at, self.work.place("dtype")
        value = self.work.place("value")
        if like is not None:
            found = to.load(like, abi.DTYPE)
        elif "to" in self.work.roles:
            found = pointer(at.dtypes["i64"])
        else:
            found = to.load(pointer(at.defaults), at.floating_slot)
            if value is not None:
                is_whole = to.is_(to.load(f"%a{value}", abi.TYPE_OFFSET), pointer(at.whole))
                found = to.make(f"select i1 {is_whole}, ptr {pointer(at.dtypes['i64'])}, ptr {found}")
        if place is None:
            return found
        to.put(f"br i1 {to.is_(f'%a{place}', pointer(at.none))}, label %usual, label %number")
        to.label("usual")
        to.put("br label %chosen")
        to.label("number")
        to.need(to.make(f"call i1 @whole(ptr %a{place}, ptr %whole)"))
        number, given = to.make("load i64, ptr %whole"), "null"
        for kind, d in samples.DTYPES.items():
            wanted = next(each.number for n, each in FROM_NUMPY.items() if n == d)
            is_it = to.make(f"icmp eq i64 {number}, {wanted}")
            given = to.make(f"select i1 {is_it}, ptr {pointer(at.dtypes[kind])}, ptr {given}")
        to.need(to.make(f"icmp ne ptr {given}, null"))
        to.put("br label %given")
        to.label("given")
        to.put("br label %chosen")
        to.label("chosen")
        return to.make(f"phi ptr [{found}, %usual], [{given}, %given]")

    def shape(self, like: str | None, size: str, numbers: dict[str, str]) -> tuple[str, str, str]:
        """The number of dimensions, the sizes, and the number of elements."""
        to, place = self.to, self.work.place("size")
        if numbers:
            span = to.make(f"sub i64 {numbers['to']}, {numbers['from']}")
            to.need(to.make(f"icmp sge i64 {span}, 0"))
            to.need(to.make(f"icmp sgt i64 {numbers['by']}, 0"))
            less = to.make(f"sub i64 {numbers['by']}, 1")
            more = to.make(f"add i64 {span}, {less}")
            count = to.make(f"udiv i64 {more}, {numbers['by']}")
            to.need(to.make(f"icmp ule i64 {count}, {LONGEST}"))
            to.put(f"store i64 {count}, ptr %dims")
            return "1", "%dims", count
        if place is not None:
            both = to.make(f"call {{i64, i64}} @sizes(ptr %a{place}, ptr %dims)")
            ndim, count = (to.make(f"extractvalue {{i64, i64}} {both}, {i}") for i in range(2))
            to.need(to.make(f"icmp sge i64 {ndim}, 0"))
            return to.make(f"trunc i64 {ndim} to i32"), "%dims", count
        assert like is not None
        own = to.make(f"call i64 @size_of(ptr {to.load(like, abi.DTYPE)})")
        count = to.make(f"call i64 @extent(ptr {like}, i64 {own})")
        to.need(to.make(f"icmp ult i64 {to.make(f'sub i64 {count}, 1')}, {LONGEST}"))
        return to.load(like, abi.NDIM, "i32"), to.load(like, abi.DIMENSIONS), count

    def fill(self, kind: str, dtype: str, ndim: str, dims: str, count: str, numbers: dict[str, str]) -> None:
        to, value = self.to, self.work.place("value")
        if numbers and kind == "i1":
            to.put("br label %miss")
            return
        filled = ("double" if kind in FLOATS else "i64") + f" {self.work.value}" + (".0" if kind in FLOATS else "")
        if value is not None and kind in FLOATS:
            to.need(to.make(f"call i1 @real(ptr %a{value}, ptr %real)"))
            number = to.make("load double, ptr %real")
            to.fit(number, kind)
            filled = f"double {number}"
        elif value is not None:
            to.need(to.make(f"call i1 @whole(ptr %a{value}, ptr %whole)"))
            filled = f"i64 {to.make('load i64, ptr %whole')}"
            if kind == "i32":
                to.need(to.make(f"icmp ult i64 {to.make(f'add i64 {filled[4:]}, {1 << 31}')}, {1 << 32}"))
        made = to.new_array(dtype, ndim, dims)
        to.need(to.make(f"icmp ne ptr {made}, null"))
        data = to.load(made, abi.DATA)
        if numbers:
            to.put(f"call void @count.{kind}(ptr {data}, i64 {count}, i64 {numbers['from']}, i64 {numbers['by']})")
        else:
            to.put(f"call void @fill.{kind}(ptr {data}, i64 {count}, {filled})")
        to.put(f"ret ptr {to.make(f'call ptr @wrap(ptr {made})')}")


def _sizes(at: Layout) -> str:
    return _SIZES.format(
        list=pointer(at.list), size=pointer(at.functions["PyList_Size"]), item=pointer(at.functions["PyList_GetItem"]),
        longest=LONGEST,
    )  # fmt: skip


_SIZES: Final = """; a list of sizes: how many and how many elements; -1 for anything else, or too many
define internal {{i64, i64}} @sizes(ptr %given, ptr %into) noinline {{
start:
  %one = alloca i64
  %type = call ptr @type(ptr %given)
  %is.list = icmp eq ptr %type, {list}
  br i1 %is.list, label %measure, label %no
measure:
  %count = call i64 {size}(ptr %given)
  %fits = icmp ule i64 %count, 64
  br i1 %fits, label %check, label %no
check:
  %i = phi i64 [0, %measure], [%i.next, %taken]
  %n = phi i64 [1, %measure], [%more, %taken]
  %go = icmp ult i64 %i, %count
  br i1 %go, label %item, label %yes
item:
  %element = call ptr {item}(ptr %given, i64 %i)
  %is.whole = call i1 @whole(ptr %element, ptr %one)
  br i1 %is.whole, label %look, label %no
look:
  %d = load i64, ptr %one
  %small = icmp ule i64 %d, {longest}
  br i1 %small, label %multiply, label %no
multiply:
  %more = mul i64 %n, %d
  %few = icmp ule i64 %more, {longest}
  br i1 %few, label %taken, label %no
taken:
  %at = getelementptr i64, ptr %into, i64 %i
  store i64 %d, ptr %at
  %i.next = add i64 %i, 1
  br label %check
yes:
  %first = insertvalue {{i64, i64}} poison, i64 %count, 0
  %both = insertvalue {{i64, i64}} %first, i64 %n, 1
  ret {{i64, i64}} %both
no:
  ret {{i64, i64}} {{i64 -1, i64 0}}
}}"""


def _filling(kind: str) -> str:
    """Put a number everywhere."""
    type, given = LLVM_TYPES[kind], "double" if kind in FLOATS else "i64"
    stored = "i8" if kind == "i1" else type
    return _LOOP.format(
        name=f"fill.{kind}", parameters=f"{given} %value", stored=stored, before=_converted("%value", "%stored", kind),
        each="", value="%stored",
    )  # fmt: skip


def _counting(kind: str) -> str:
    """Put whole numbers at equal distances."""
    stored = "i8" if kind == "i1" else LLVM_TYPES[kind]
    each = "  %far = mul i64 %i, %by\n  %whole = add i64 %from, %far\n"
    each += f"  %e = {'sitofp i64 %whole to ' + stored if kind in FLOATS else _cut('%whole', stored)}\n"
    return _LOOP.format(
        name=f"count.{kind}", parameters="i64 %from, i64 %by", stored=stored, before="", each=each, value="%e"
    )


def _converted(value: str, name: str, kind: str) -> str:
    match kind:
        case "f64":
            return f"  {name} = fadd double {value}, -0.0\n"
        case "f32":
            return f"  {name} = fptrunc double {value} to float\n"
        case "i1":
            return f"  %is.true = icmp ne i64 {value}, 0\n  {name} = zext i1 %is.true to i8\n"
    return f"  {name} = {_cut(value, LLVM_TYPES[kind])}\n"


def _cut(value: str, type: str) -> str:
    return f"add i64 {value}, 0" if type == "i64" else f"trunc i64 {value} to {type}"


_LOOP: Final = """define internal void @{name}(ptr %to, i64 %n, {parameters}) noinline {{
start:
{before}  br label %check
check:
  %i = phi i64 [0, %start], [%i.next, %one]
  %go = icmp ult i64 %i, %n
  br i1 %go, label %one, label %end
one:
{each}  %at = getelementptr {stored}, ptr %to, i64 %i
  store {stored} {value}, ptr %at
  %i.next = add nuw i64 %i, 1
  br label %check
end:
  ret void
}}"""
