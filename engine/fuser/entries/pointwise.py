"""Pointwise operators as entries, in LLVM's text.

In: the parameters of an operator, and a typed expression for each kind of element.  Out: its `Work`.

What it is made for: arrays of one dtype and one shape (of two, the second may be one row of the first), neither empty
nor long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple

from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi as abi
from engine.fuser.entries import samples
from engine.fuser.entries.entry import LONGEST
from engine.fuser.entries.operands import plain_tensor
from engine.fuser.expression import FLOATS, HALVES, Value
from engine.fuser.lower import ALL_SIZES, Library, Row, function_text, steps
from engine.fuser.writing import Layout, Text, define, pointer


class Parameter(NamedTuple):
    """`role` is "tensor", "mask" (a tensor of truth values), "number", "least", "most" (numbers that may be None),
    "fixed" (just one of these objects) or "ignored"."""

    name: str
    role: str
    objects: tuple[object, ...] = ()


NUMBERS: Final = ("number", "least", "most")
REAL: Final = (*FLOATS, *HALVES)
"""Kinds whose numbers are floats."""


@dataclass(frozen=True, slots=True)
class Pointwise:
    """`bodies` gives the expression for each kind of element; `in_place` writes to the first tensor."""

    parameters: tuple[Parameter, ...]
    bodies: Mapping[str, Value]
    in_place: bool

    @property
    def kinds(self) -> Sequence[str]:
        return tuple(self.bodies)

    @property
    def written(self) -> int | None:
        return self.tensors[0] if self.in_place else None

    @property
    def tensors(self) -> list[int]:
        return [i for i, p in enumerate(self.parameters) if p.role in ("tensor", "mask")]

    @property
    def masks(self) -> list[str]:
        return [p.name for p in self.parameters if p.role == "mask"]

    @property
    def base(self) -> int:
        """Which of the tensors says what kind of element it is about."""
        return next(place for place, i in enumerate(self.tensors) if self.parameters[i].role == "tensor")

    @property
    def numbers(self) -> list[int]:
        return [i for i, p in enumerate(self.parameters) if p.role in NUMBERS]

    @property
    def repeats(self) -> bool:
        """True if the second tensor may be one row, broadcast over the rows of the first."""
        return len(self.tensors) == 2 and not self.in_place and not self.masks

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield plain_tensor(at)
        if self.in_place:
            yield plain_tensor(at, "writable", abi.PLAIN | abi.WRITEABLE)
        yield from _loops(name, self, library)
        yield _try(at, name, self)

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        """Arguments of the form, for some choices of numbers."""
        rows, truths = (samples.rows(each, len(self.tensors)) for each in (kind, "i1"))
        for numbers in samples.NUMBERS[kind in REAL]:
            given: list[Any] = [p.objects[0] if p.objects else False for p in self.parameters]
            for place, i in enumerate(self.tensors):
                made = rows if self.parameters[i].role == "tensor" else truths
                given[i] = samples.written_to(made[place].copy())
            for place, i in enumerate(self.numbers):
                given[i] = numbers[place % 3]
            yield tuple(given)
            for i in self.numbers if len(self.numbers) > 1 else ():
                if self.parameters[i].role != "number":
                    yield tuple(None if place == i else each for place, each in enumerate(given))

    def takes(self, args: Sequence[Any]) -> str | None:
        arrays = [a.array for a in args if isinstance(a, Tensor)]
        if not arrays or not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
            return None
        first = arrays[0]
        alike = all(a.dtype is first.dtype and a.shape == first.shape for a in arrays)
        return samples.kind_of(first) if alike and 0 < first.size <= LONGEST else None


def library_calls(value: Value) -> list[tuple[str, str]]:
    """The functions of a library that an expression calls, with their kinds of element."""
    return [(step.function, step.kind) for step in steps(value) if isinstance(step, Row)]


def _loops(name: str, form: Pointwise, library: Library) -> Iterator[str]:
    for kind, value in form.bodies.items():
        tensors = {p.name: "i1" if p.role == "mask" else kind for p in (form.parameters[i] for i in form.tensors)}
        numbers = {form.parameters[i].name: "f64" if kind in REAL else "i64" for i in form.numbers}
        yield function_text(f'"loop.{name}.{kind}"', value, tensors, numbers, library, form.in_place)


def _try(at: Layout, name: str, form: Pointwise) -> str:
    text = Text(at)
    for kind in form.bodies:
        for i in form.numbers:
            text.put(f"%number{i}.{kind} = alloca {'double' if kind in REAL else 'i64'}")
    limits = [text.is_(f"%a{i}", pointer(at.none)) for i, p in enumerate(form.parameters) if p.role in _NEUTRAL_ROLES]
    if len(limits) > 1:
        text.need(text.make(f"xor i1 {text.make(f'and i1 {limits[0]}, {limits[1]}')}, 1"))
    arrays = _arrays(text, form)
    for i, p in enumerate(form.parameters):
        if p.role == "fixed":
            found = [text.is_(f"%a{i}", pointer(abi.retain(each))) for each in p.objects]
            text.need(reduce(lambda a, b: text.make(f"or i1 {a}, {b}"), found))
    base = arrays[form.base]
    dtype = text.load(base, abi.DTYPE)
    for i, other in zip(form.tensors, arrays, strict=True):
        if form.parameters[i].role == "mask":
            text.need(text.is_(text.load(other, abi.DTYPE), pointer(at.dtypes["i1"])))
            text.need(text.make(f"call i1 @alike_but_size(ptr {base}, ptr {other})"))
            text.need(text.make(f"icmp ne i64 {text.make(f'call i64 @extent(ptr {other}, i64 1)')}, 0"))
            continue
        if other == base:
            continue
        text.need(text.is_(text.load(other, abi.DTYPE), dtype))
        is_alike = text.make(f"call i1 @alike(ptr {base}, ptr {other})")
        if form.repeats:
            is_row = text.make(f"call i1 @row(ptr {base}, ptr {other})")
            is_alike = text.make(f"or i1 {is_alike}, {is_row}")
        text.need(is_alike)
    for kind in form.bodies:
        is_kind = text.is_(dtype, pointer(at.dtypes[kind]))
        text.put(f"br i1 {is_kind}, label %{kind}, label %not.{kind}")
        text.label(kind)
        _run(text, name, form, kind, arrays)
        text.label(f"not.{kind}")
    text.put("br label %miss")
    text.label("miss")
    text.put("ret ptr null")
    given = ", ".join(f"ptr %a{i}" for i in range(len(form.parameters)))
    return define(f'internal ptr @"try.{name}"({given}, i1 %hooked) noinline', text)


def _arrays(text: Text, form: Pointwise) -> list[str]:
    """The tensors' arrays; where hooks count, nobody wants to step in, and none of the tensors requires grad."""
    text.need(text.make("call i1 @open(i1 %hooked)"))
    found: list[str] = []
    for i in form.tensors:
        asked = "writable" if form.in_place and not found else "plain"
        found.append(text.make(f"call ptr @{asked}(ptr %a{i}, i1 %hooked)"))
        text.need(text.make(f"icmp ne ptr {found[-1]}, null"))
    return found


def _run(text: Text, name: str, form: Pointwise, kind: str, arrays: Sequence[str]) -> None:
    """The work for one kind of element, once the arrays are alike."""
    count = text.make(f"call i64 @extent(ptr {arrays[form.base]}, i64 {ALL_SIZES[kind]})")
    text.need(text.make(f"icmp ult i64 {text.make(f'sub i64 {count}, 1')}, {LONGEST}"))
    numbers = []
    for i in form.numbers:
        type = "double" if kind in REAL else "i64"
        _read_number(text, form, i, kind)
        number = text.make(f"load {type}, ptr %number{i}.{kind}")
        text.fit(number, kind)
        numbers.append(f"{type} {number}")
    rows = [f"ptr {text.load(array, abi.DATA)}" for array in arrays]
    if form.in_place:
        _run_in_place(text, name, form, kind, rows, count, numbers)
    else:
        _run_fresh(text, name, form, kind, arrays[form.base], rows, count, numbers)


def _read_number(text: Text, form: Pointwise, i: int, kind: str) -> None:
    """Put a number where it is looked for; where there may be none, one that changes nothing."""
    target, role = f"%number{i}.{kind}", form.parameters[i].role
    read = f"call i1 @{'real' if kind in REAL else 'whole'}(ptr %a{i}, ptr {target})"
    if role == "number":
        text.need(text.make(read))
        return
    tag = f"{i}.{kind}"
    text.put(f"br i1 {text.is_(f'%a{i}', pointer(text.at.none))}, label %none{tag}, label %some{tag}")
    text.label(f"none{tag}")
    text.put(f"store {_NEUTRAL[kind in REAL, role]}, ptr {target}")
    text.put(f"br label %read{tag}")
    text.label(f"some{tag}")
    text.need(text.make(read))
    text.put(f"br label %read{tag}")
    text.label(f"read{tag}")


_NEUTRAL_ROLES: Final = ("least", "most")
_NEUTRAL: Final = {
    (True, "least"): "double 0xFFF0000000000000", (True, "most"): "double 0x7FF0000000000000",
    (False, "least"): f"i64 {-(2**63)}", (False, "most"): f"i64 {2**63 - 1}",
}  # fmt: skip


def _run_fresh(
    text: Text, name: str, form: Pointwise, kind: str, like: str, rows: list[str], count: str, numbers: list[str]
) -> None:  # fmt: skip
    length = count
    if form.repeats:
        other = text.load(f"%a{form.tensors[1]}", text.at.slots["array"])
        length = text.make(f"call i64 @extent(ptr {other}, i64 {ALL_SIZES[kind]})")
        text.need(text.make(f"icmp ne i64 {length}, 0"))
    ndim, dims = text.load(like, abi.NDIM, "i32"), text.load(like, abi.DIMENSIONS)
    array = text.new_array(pointer(text.at.dtypes[form.bodies[kind].kind]), ndim, dims)
    text.need(text.make(f"icmp ne ptr {array}, null"))
    out = f"ptr {text.load(array, abi.DATA)}"
    if form.repeats:
        _run_by_rows(text, name, form, kind, [out, *rows], (length, count), numbers)
    else:
        passed = ", ".join([out, *rows, f"i64 {count}", *numbers])
        text.put(f'call void @"loop.{name}.{kind}"({passed})')
    text.put(f"ret ptr {text.make(f'call ptr @wrap(ptr {array})')}")


def _run_by_rows(
    text: Text, name: str, form: Pointwise, kind: str, rows: list[str], counts: tuple[str, str], numbers: list[str]
) -> None:  # fmt: skip
    """Row after row, as long as the second tensor is; that is all at once where the shapes are the same."""
    length, count = counts
    out, first, second = (row.removeprefix("ptr ") for row in rows)
    at = f"%at.{kind}"
    text.put(f"br label %before.{kind}")
    text.label(f"before.{kind}")
    text.put(f"br label %rows.{kind}")
    text.label(f"rows.{kind}")
    text.put(f"{at} = phi i64 [0, %before.{kind}], [{at}.next, %rows.{kind}]")
    moved = [
        text.make(f"getelementptr i8, ptr {each}, i64 {text.make(f'mul i64 {at}, {ALL_SIZES[size]}')}")
        for each, size in ((out, form.bodies[kind].kind), (first, kind))
    ]
    passed = ", ".join([*(f"ptr {each}" for each in (*moved, second)), f"i64 {length}", *numbers])
    text.put(f'call void @"loop.{name}.{kind}"({passed})')
    text.put(f"{at}.next = add i64 {at}, {length}")
    text.put(f"br i1 {text.make(f'icmp ult i64 {at}.next, {count}')}, label %rows.{kind}, label %done.{kind}")
    text.label(f"done.{kind}")


def _run_in_place(
    text: Text, name: str, form: Pointwise, kind: str, rows: list[str], count: str, numbers: list[str]
) -> None:  # fmt: skip
    """Write to the first tensor, if the others show none of its memory (or just the same)."""
    at = text.at
    target = f"%a{form.tensors[0]}"
    storage = text.load(target, at.slots["_storage"])
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    text.need(text.is_(text.load(storage, abi.TYPE_OFFSET), pointer(at.storage_type)))
    size = text.make(f"mul i64 {count}, {ALL_SIZES[kind]}")
    begin = text.make(f"ptrtoint {rows[0]} to i64")
    for i, row in zip(form.tensors[1:], rows[1:], strict=True):
        is_same = text.is_(f"%a{i}", target)
        is_other = text.make(f"icmp ne ptr {text.load(f'%a{i}', at.slots['_storage'])}, {storage}")
        text.need(text.make(f"or i1 {is_same}, {is_other}"))
        apart = text.make(f"sub i64 {text.make(f'ptrtoint {row} to i64')}, {begin}")
        reach = text.make(f"sub i64 {text.make(f'mul i64 {size}, 2')}, 1")
        shifted = text.make(f"sub i64 {text.make(f'add i64 {apart}, {size}')}, 1")
        is_apart = text.make(f"icmp uge i64 {shifted}, {reach}")
        text.need(text.make(f"or i1 {is_apart}, {text.is_(apart, '0', 'i64')}"))
    text.need(text.make(f"call i1 @written(ptr {storage})"))
    text.put(f'call void @"loop.{name}.{kind}"({", ".join([*rows, f"i64 {count}", *numbers])})')
    text.retain(target)
    text.put(f"ret ptr {target}")
