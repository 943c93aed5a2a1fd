"""Operators that go over rows as entries, in LLVM's text.

In: a `Program` and what each argument of the operator is for it.  Out: its `Work`.

What it is made for: arrays of one dtype that are not empty; dimensions that are the last ones or, for a program that is
one reduction, any that lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi as abi
from engine.fuser.entries import samples
from engine.fuser.entries.entry import LONGEST
from engine.fuser.entries.folds import PLACES, conversions, fold_functions, shared
from engine.fuser.entries.operands import plain_tensor
from engine.fuser.entries.row_shapes import shape_functions
from engine.fuser.entries.rows import MOST_HALVES, Program, RowText
from engine.fuser.expression import FLOATS, HALVES
from engine.fuser.lower import SIZES, Library
from engine.fuser.writing import Layout, Text, define, pointer

ROLES: Final[Mapping[str, tuple[Any, ...]]] = {
    "none": (None,), "false": (False,), "any": (False,), "two": (2,), "keepdim": (False, True), "dim": (-1,),
    "dim or all": (-1, None), "dims": ([-1], [], None), "dims to last": ([-1],), "number": (0.5, 1e-5),
    "correction": (1, None, 0, 2), "unbiased": (True, False),
}  # fmt: skip
"""Kinds of arguments, with values to try: None, False, whatever; the number 2; whether dimensions stay; a
dimension, or None for all; a list of one dimension, or of none for all; a number that the program names; one that is 1
where it is None, or that says whether it is 1 or 0.

Others are "x", the tensor; "shape", a list of its last dimensions; the name of an optional tensor of that shape."""
_SHAPES: Final = ((3, 201), (5, 7), (2, 1030), (4, 4), (2, 3, 12), (1, 1), (9,))


@dataclass(frozen=True, slots=True)
class Rows:
    """`roles` has one of `ROLES` for each argument."""

    program: Program
    roles: tuple[str, ...]
    kinds: tuple[str, ...] = (*FLOATS, *HALVES)
    names: Mapping[int, str] | None = None
    """The names that the program has for numbers, by the argument's place."""

    @property
    def written(self) -> int | None:
        return None

    @property
    def optional(self) -> list[int]:
        return [i for i, role in enumerate(self.roles) if role in self.program.optional]

    @property
    def tensors(self) -> list[int]:
        return [self.roles.index("x"), *self.optional]

    def place(self, *roles: str) -> int | None:
        """Where the argument is that has one of these roles."""
        return next((i for i, role in enumerate(self.roles) if role in roles), None)

    def row_text(self, name: str, kind: str, library: Library) -> RowText:
        tensors = ("x", *(self.roles[i] for i in self.optional))
        return RowText(name, self.program, tensors, tuple((self.names or {}).values()), kind, library)

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield shared()
        yield plain_tensor(at)
        yield from shape_functions(at)
        for kind in self.kinds:
            yield from fold_functions("f32" if kind in HALVES else kind)
            if kind in HALVES:
                yield conversions(kind)
            rows = self.row_text(name, kind, library)
            yield from rows.functions()
            yield _choice(rows)
        yield _Trier(Text(at), name, self).written()

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        for number in range(6):
            for shape in _SHAPES:
                for special in (False, True):
                    yield self._sample(kind, shape, number, special)

    def _sample(self, kind: str, shape: tuple[int, ...], number: int, special: bool) -> tuple[Any, ...]:
        given: list[Any] = []
        for i, role in enumerate(self.roles):
            if role == "x":
                given.append(Tensor(samples.rows(kind, 1, shape, special)[0]))
            elif role == "shape":
                given.append([*shape[-1:]])
            elif i in self.optional:
                is_there = number >> self.optional.index(i) & 1
                given.append(Tensor(samples.rows(kind, 3, shape[-1:], special)[i % 3]) if is_there else None)
            else:
                values = ROLES[role]
                given.append(values[number % len(values)])
        return tuple(given)

    def takes(self, args: Sequence[Any]) -> str | None:
        arrays = [a.array for a in args if isinstance(a, Tensor)]
        if not arrays or not all(a.flags.c_contiguous and a.flags.aligned and a.size for a in arrays):
            return None
        kind = samples.kind_of(arrays[0])
        return kind if all(a.dtype is arrays[0].dtype for a in arrays) else None


def _choice(rows: RowText) -> str:
    """Over rows, or else over columns; false where that cannot be."""
    results = [f"ptr %r{i}" for i in range(len(rows.program.results))]
    tensors = [f"ptr %x{i}" for i in range(len(rows.tensors))]
    type = "double" if rows.kind in FLOATS else "i64"
    numbers = "".join(f", {type} %n{i}" for i in range(len(rows.numbers)))
    name, pointers = f"{rows.name}.{rows.stored}", ", ".join([*results, *tensors])
    columns = ""
    if rows.reduction() is not None:
        columns = f'  call void @"columns.{name}"({pointers}, i64 %outer, i64 %n, i64 %inner{numbers})\n'
    return f"""define internal void @"go.{name}"({pointers}, i64 %outer, i64 %n, i64 %inner{numbers}) noinline {{
start:
  %whole = icmp eq i64 %inner, 1
  br i1 %whole, label %rows, label %columns
rows:
  call void @"rows.{name}"({pointers}, i64 %outer, i64 %n{numbers})
  ret void
columns:
{columns}  ret void
}}"""


@dataclass(slots=True)
class _Trier:
    """Writes `try.F`."""

    to: Text
    name: str
    work: Rows

    @property
    def x(self) -> str:
        return f"%a{self.work.roles.index('x')}"

    def written(self) -> str:
        to, work = self.to, self.work
        to.put("%span = alloca [2 x i64]")
        to.put("%dims = alloca [64 x i64]")
        for i in work.names or {}:
            to.put(f"%number{i} = alloca i64")
        array, others = self.arrays()
        self.plain_arguments()
        keep = self.keep()
        self.span(array)
        low, high = (to.load("%span", 8 * i, "i64") for i in range(2))
        ndim = to.make(f"zext i32 {to.load(array, abi.NDIM, 'i32')} to i64")
        outer, n, inner = (
            to.make(f"call i64 @product(ptr {array}, i64 {begin}, i64 {end})")
            for begin, end in (("0", low), (low, high), (high, ndim))
        )
        for other in others.values():
            to.need(to.make(f"call i1 @tail(ptr {array}, i64 {low}, ptr {other})"))
        dtype = to.load(array, abi.DTYPE)
        for kind in work.kinds:
            is_kind = to.is_(dtype, pointer(to.at.dtypes[kind]))
            to.put(f"br i1 {is_kind}, label %{kind}, label %not.{kind}")
            to.label(kind)
            self.run(kind, array, others, (outer, n, inner), (low, high, keep))
            to.label(f"not.{kind}")
        to.put("br label %miss")
        to.label("miss")
        to.put("ret ptr null")
        given = ", ".join(f"ptr %a{i}" for i in range(len(work.roles)))
        return define(f'internal ptr @"try.{self.name}"({given}, i1 %hooked) noinline', to)

    # -------------------------------------------------------------- arguments

    def arrays(self) -> tuple[str, dict[int, str]]:
        """The array of `x`, and of the optional tensors those of the same dtype, null where they are left out."""
        to, others = self.to, {}
        to.need(to.make("call i1 @open(i1 %hooked)"))
        array = self.array(self.x)
        for i in self.work.optional:
            is_none = to.is_(f"%a{i}", pointer(to.at.none))
            other = self.array(to.make(f"select i1 {is_none}, ptr {self.x}, ptr %a{i}"))
            to.need(to.is_(to.load(other, abi.DTYPE), to.load(array, abi.DTYPE)))
            others[i] = to.make(f"select i1 {is_none}, ptr null, ptr {other}")
        return array, others

    def array(self, tensor: str) -> str:
        array = self.to.make(f"call ptr @plain(ptr {tensor}, i1 %hooked)")
        self.to.need(self.to.make(f"icmp ne ptr {array}, null"))
        return array

    def plain_arguments(self) -> None:
        to, at = self.to, self.to.at
        for i, role in enumerate(self.work.roles):
            if role in ("none", "false"):
                to.need(to.is_(f"%a{i}", pointer(at.none if role == "none" else at.false)))
            elif role == "two":
                to.need(to.make(f"call i1 @two(ptr %a{i})"))
            elif role in ("correction", "unbiased"):
                to.need(to.make(f"call i1 @{role}(ptr %a{i}, ptr %number{i})"))
            elif i in (self.work.names or {}):
                to.need(to.make(f"call i1 @real(ptr %a{i}, ptr %number{i})"))

    def keep(self) -> str:
        """True if reduced dimensions are kept with size 1."""
        to = self.to
        place = self.work.place("keepdim")
        if place is None:
            return str(int(self.work.place("shape") is not None))
        is_true = to.is_(f"%a{place}", pointer(to.at.true))
        to.need(to.make(f"or i1 {is_true}, {to.is_(f'%a{place}', pointer(to.at.false))}"))
        return is_true

    def span(self, array: str) -> None:
        """From which dimension to which is gone over."""
        to, work = self.to, self.work
        if (place := work.place("shape")) is not None:
            to.need(to.make(f"call i1 @trailing(ptr {array}, ptr %a{place}, ptr %span)"))
        elif (place := work.place("dim", "dim or all", "dims", "dims to last")) is not None:
            may = f"i1 {int(work.roles[place].startswith('dims'))}, i1 {int(work.roles[place] != 'dim')}"
            to.need(to.make(f"call i1 @spanned(ptr {array}, ptr %a{place}, {may}, ptr %span)"))
        else:
            to.put("store i64 0, ptr %span")
            ndim = to.make(f"zext i32 {to.load(array, abi.NDIM, 'i32')} to i64")
            to.put(f"store i64 {ndim}, ptr {to.place('%span', 8)}")

    # -------------------------------------------------------------- the work

    def run(
        self, kind: str, array: str, others: Mapping[int, str], sizes: tuple[str, str, str], reduced: tuple[str, ...]
    ) -> None:
        to, results = self.to, self.work.program.results
        count = to.make(f"call i64 @extent(ptr {array}, i64 {SIZES.get(kind, 2)})")
        to.need(to.make(f"icmp ne i64 {count}, 0"))
        if kind in HALVES:
            to.need(to.make(f"icmp ule i64 {sizes[1]}, {MOST_HALVES}"))
        rows = self.work.row_text(self.name, kind, _no_library)
        if rows.reduction() is None:
            to.need(to.is_(sizes[2], "1", "i64"))
        elif self.work.program.short:
            is_long = to.make(f"icmp uge i64 {sizes[1]}, {self.work.program.few}")
            to.need(to.make(f"or i1 {is_long}, {to.is_(sizes[2], '1', 'i64')}"))
        made: list[str] = []
        for i, result in enumerate(results):
            made.append(self.new_array(kind, result, array, reduced, f"drop{i}.{kind}" if i else "miss"))
        data = [f"ptr {to.load(each, abi.DATA)}" for each in (*made, array)]
        data += [f"ptr {to.make(f'call ptr @data(ptr {other})')}" for other in others.values()]
        type = "i64" if kind == "i64" else "double"
        numbers = [f"{type} {to.make(f'load {type}, ptr %number{i}')}" for i in self.work.names or {}]
        passed = ", ".join([*data, *(f"i64 {size}" for size in sizes), *numbers])
        call = f'call void @"go.{self.name}.{kind}"({passed})'
        self.alone(call, count, [array, *others.values()], kind)
        wrapped = [to.make(f"call ptr @wrap(ptr {each})") for each in made]
        result = wrapped[0] if len(wrapped) == 1 else to.make(f"call ptr @together{len(wrapped)}({_pointers(wrapped)})")
        to.put(f"ret ptr {result}")
        for i in reversed(range(1, len(results))):
            to.label(f"drop{i}.{kind}")
            to.do("Py_DecRef", f"ptr {made[i - 1]}")
            to.put(f"br label %{f'drop{i - 1}.{kind}' if i > 1 else 'miss'}")

    def new_array(self, kind: str, result: str, array: str, reduced: tuple[str, ...], otherwise: str) -> str:
        to = self.to
        if result == "out":
            ndim, dims = to.load(array, abi.NDIM, "i32"), to.load(array, abi.DIMENSIONS)
        else:
            low, high, keep = reduced
            ndim = to.make(f"call i32 @reduced(ptr {array}, i64 {low}, i64 {high}, i1 {keep}, ptr %dims)")
            dims = "%dims"
        made = to.new_array(pointer(to.at.dtypes["i64" if self._is_place(result) else kind]), ndim, dims)
        to.need(to.make(f"icmp ne ptr {made}, null"), otherwise)
        return made

    def _is_place(self, result: str) -> bool:
        return any(f"{result} = {each}(" in self.work.program.statements for each in PLACES)

    def alone(self, call: str, count: str, arrays: Sequence[str], kind: str) -> None:
        """Much work is done while other threads run; the arrays are held, for tensors may get others meanwhile."""
        to = self.to
        is_long = to.make(f"icmp ugt i64 {count}, {LONGEST}")
        to.put(f"br i1 {is_long}, label %alone.{kind}, label %here.{kind}")
        to.label(f"here.{kind}")
        to.put(call)
        to.put(f"br label %made.{kind}")
        to.label(f"alone.{kind}")
        for each in arrays:
            to.do("Py_IncRef", f"ptr {each}")
        state = to.call("PyEval_SaveThread", "ptr", "")
        to.put(call)
        to.do("PyEval_RestoreThread", f"ptr {state}")
        for each in arrays:
            to.do("Py_DecRef", f"ptr {each}")
        to.put(f"br label %made.{kind}")
        to.label(f"made.{kind}")


def _no_library(name: str, kind: str) -> Any:
    raise AssertionError(f"{name} of {kind} is not written here")


def _pointers(values: Sequence[str]) -> str:
    return ", ".join(f"ptr {each}" for each in values)
