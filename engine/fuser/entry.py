"""Entries: operators as functions that CPython calls without Python in between, as LLVM's text.

In: the forms of an operator (its parameters, a typed expression for each kind of element).  Out: the text of a module.
For each form there is

    try.F       the result, or null if the arguments are not what it is made for; then no error is set and nothing
                has happened yet
    entry.F     the operator: as `Op.run`; entry.F.body is the same without a look at the hooks

and for methods `method.M`, which tries several forms.  Who misses calls the Python function that does all of it.

What a form is made for: tensors (of just that type) that require no grad while nobody traces, on arrays of one dtype
and one shape (of two, the second may be one row of the first), contiguous in C's order, neither empty nor long; numbers
that are a float or an int of up to 53 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.fuser import cpython_abi as abi
from engine.fuser.expression import FLOATS, Value
from engine.fuser.lower import DECLARATIONS, SIZES, Library, Row, function_text, steps
from engine.fuser.prelude import Layout, Text, define, helpers, pointer

LONGEST: Final = 16384
"""Elements; longer rows are numpy's, which lets other threads run meanwhile."""


class Parameter(NamedTuple):
    """`role` is "tensor", "number" or "ignored"."""

    name: str
    role: str


@dataclass(frozen=True, slots=True)
class Form:
    """One overload.  `bodies` gives the expression for each kind of element; `in_place` writes to the first tensor."""

    name: str
    parameters: tuple[Parameter, ...]
    bodies: Mapping[str, Value]
    in_place: bool
    fallback: object
    """The Python function; after so many calls it is not called but `noting`, which does the same."""
    noting: object
    patience: int
    body_fallback: object

    @property
    def tensors(self) -> list[int]:
        return [i for i, p in enumerate(self.parameters) if p.role == "tensor"]

    @property
    def numbers(self) -> list[int]:
        return [i for i, p in enumerate(self.parameters) if p.role == "number"]

    @property
    def repeats(self) -> bool:
        """May the second tensor be one row, which is taken for each of the first one's rows?"""
        return len(self.tensors) == 2 and not self.in_place


@dataclass(frozen=True, slots=True)
class Method:
    """A method of tensors: `forms` are tried with the arguments that a call gives, then with these constants."""

    name: str
    given: int
    forms: tuple[tuple[Form, tuple[object, ...]], ...]
    fallback: object


def module_text(at: Layout, forms: Sequence[Form], methods: Sequence[Method], library: Library) -> str:
    """All the functions of these forms and methods."""
    parts = [DECLARATIONS, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", *helpers(at)]
    for form in forms:
        parts.append(f'@"missed.{form.name}" = internal global i64 0')
        parts += _loops(form, library)
        parts.append(_try(at, form))
        parts.append(_entry(at, form, hooked=True))
        parts.append(_entry(at, form, hooked=False))
    parts += [_method(at, method) for method in methods]
    return "\n\n".join(parts)


def exported(forms: Sequence[Form], methods: Sequence[Method]) -> list[str]:
    """The names of the functions that are to be called from outside."""
    names = [f"entry.{form.name}{suffix}" for form in forms for suffix in ("", ".body")]
    return names + [f"method.{method.name}" for method in methods]


def library_calls(value: Value) -> list[tuple[str, str]]:
    """The functions of a library that an expression calls, with their kinds of element."""
    return [(step.function, step.kind) for step in steps(value) if isinstance(step, Row)]


def _loops(form: Form, library: Library) -> Iterator[str]:
    for kind, value in form.bodies.items():
        tensors = {form.parameters[i].name: kind for i in form.tensors}
        numbers = {form.parameters[i].name: "f64" if kind in FLOATS else "i64" for i in form.numbers}
        yield function_text(f'"loop.{form.name}.{kind}"', value, tensors, numbers, library, form.in_place)


# ------------------------------------------------------------------ forms


def _try(at: Layout, form: Form) -> str:
    text = Text(at)
    for kind in form.bodies:
        for i in form.numbers:
            text.put(f"%number{i}.{kind} = alloca {'double' if kind in FLOATS else 'i64'}")
    _check_tensors(text, form)
    arrays = _arrays(text, form)
    dtype = text.load(arrays[0], abi.DTYPE)
    for other in arrays[1:]:
        text.need(text.is_(text.load(other, abi.DTYPE), dtype))
        is_alike = text.make(f"call i1 @alike(ptr {arrays[0]}, ptr {other})")
        if form.repeats:
            is_row = text.make(f"call i1 @row(ptr {arrays[0]}, ptr {other})")
            is_alike = text.make(f"or i1 {is_alike}, {is_row}")
        text.need(is_alike)
    for kind in form.bodies:
        is_kind = text.is_(dtype, pointer(at.dtypes[kind]))
        text.put(f"br i1 {is_kind}, label %{kind}, label %not.{kind}")
        text.label(kind)
        _run(text, form, kind, arrays)
        text.label(f"not.{kind}")
    text.put("br label %miss")
    text.label("miss")
    text.put("ret ptr null")
    given = ", ".join(f"ptr %a{i}" for i in range(len(form.parameters)))
    return define(f'internal ptr @"try.{form.name}"({given}, i1 %hooked) noinline', text)


def _check_tensors(text: Text, form: Form) -> None:
    """They are just tensors, or parameters; where hooks count, none requires grad and nobody wants to step in."""
    at = text.at
    for i in form.tensors:
        kind = text.load(f"%a{i}", abi.TYPE_OFFSET)
        is_parameter = text.is_(kind, pointer(at.parameter))
        text.need(text.make(f"or i1 {text.is_(kind, pointer(at.tensor))}, {is_parameter}"))
    text.put("br i1 %hooked, label %hooks, label %open")
    text.label("hooks")
    text.need(text.make("call i1 @quiet()"))
    for i in form.tensors:
        text.need(text.is_(text.load(f"%a{i}", at.slots["_requires_grad"]), pointer(at.false)))
    text.put("br label %open")
    text.label("open")


def _arrays(text: Text, form: Form) -> list[str]:
    """The tensors' arrays, which are just arrays, in order and aligned."""
    found: list[str] = []
    for i in form.tensors:
        array = text.load(f"%a{i}", text.at.slots["array"])
        text.need(text.make(f"icmp ne ptr {array}, null"))
        text.need(text.is_(text.load(array, abi.TYPE_OFFSET), pointer(text.at.array)))
        wanted = abi.PLAIN | (abi.WRITEABLE if form.in_place and not found else 0)
        flags = text.load(array, abi.ARRAY_FLAGS, "i32")
        text.need(text.is_(text.make(f"and i32 {flags}, {wanted}"), str(wanted), "i32"))
        found.append(array)
    return found


def _run(text: Text, form: Form, kind: str, arrays: Sequence[str]) -> None:
    """The work for one kind of element, once the arrays are alike."""
    count = text.make(f"call i64 @extent(ptr {arrays[0]}, i64 {SIZES[kind]})")
    text.need(text.make(f"icmp ult i64 {text.make(f'sub i64 {count}, 1')}, {LONGEST}"))
    numbers = []
    for i in form.numbers:
        type, read = ("double", "real") if kind in FLOATS else ("i64", "whole")
        text.need(text.make(f"call i1 @{read}(ptr %a{i}, ptr %number{i}.{kind})"))
        numbers.append(f"{type} {text.make(f'load {type}, ptr %number{i}.{kind}')}")
    rows = [f"ptr {text.load(array, abi.DATA)}" for array in arrays]
    if form.in_place:
        _run_in_place(text, form, kind, rows, count, numbers)
    else:
        _run_fresh(text, form, kind, arrays[0], rows, count, numbers)


def _run_fresh(
    text: Text, form: Form, kind: str, like: str, rows: list[str], count: str, numbers: list[str]
) -> None:  # fmt: skip
    at, label, length = text.at, f"none.{kind}", count
    if form.repeats:
        other = text.load(f"%a{form.tensors[1]}", at.slots["array"])
        length = text.make(f"call i64 @extent(ptr {other}, i64 {SIZES[kind]})")
        text.need(text.make(f"icmp ne i64 {length}, 0"))
    d = pointer(at.dtypes[form.bodies[kind].kind])
    text.retain(d)  # PyArray_NewFromDescr takes the reference over
    ndim, dimensions = text.load(like, abi.NDIM, "i32"), text.load(like, abi.DIMENSIONS)
    array = text.make(
        f"call ptr {pointer(at.array_new)}(ptr {pointer(at.array)}, ptr {d}, i32 {ndim}, ptr {dimensions}, "
        "ptr null, ptr null, i32 0, ptr null)"
    )
    text.need(text.make(f"icmp ne ptr {array}, null"), label)
    out = f"ptr {text.load(array, abi.DATA)}"
    if form.repeats:
        _run_by_rows(text, form, kind, [out, *rows], (length, count), numbers)
    else:
        passed = ", ".join([out, *rows, f"i64 {count}", *numbers])
        text.put(f'call void @"loop.{form.name}.{kind}"({passed})')
    text.put(f"ret ptr {text.make(f'call ptr @wrap(ptr {array})')}")
    text.label(label)
    text.do("PyErr_Clear", "")
    text.put("br label %miss")


def _run_by_rows(
    text: Text, form: Form, kind: str, rows: list[str], counts: tuple[str, str], numbers: list[str]
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
        text.make(f"getelementptr i8, ptr {each}, i64 {text.make(f'mul i64 {at}, {SIZES[size]}')}")
        for each, size in ((out, form.bodies[kind].kind), (first, kind))
    ]
    passed = ", ".join([*(f"ptr {each}" for each in (*moved, second)), f"i64 {length}", *numbers])
    text.put(f'call void @"loop.{form.name}.{kind}"({passed})')
    text.put(f"{at}.next = add i64 {at}, {length}")
    text.put(f"br i1 {text.make(f'icmp ult i64 {at}.next, {count}')}, label %rows.{kind}, label %done.{kind}")
    text.label(f"done.{kind}")


def _run_in_place(text: Text, form: Form, kind: str, rows: list[str], count: str, numbers: list[str]) -> None:
    """Write to the first tensor, if the others show none of its memory (or just the same)."""
    at = text.at
    target = f"%a{form.tensors[0]}"
    storage = text.load(target, at.slots["_storage"])
    text.need(text.make(f"icmp ne ptr {storage}, null"))
    text.need(text.is_(text.load(storage, abi.TYPE_OFFSET), pointer(at.storage_type)))
    size = text.make(f"mul i64 {count}, {SIZES[kind]}")
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
    text.put(f'call void @"loop.{form.name}.{kind}"({", ".join([*rows, f"i64 {count}", *numbers])})')
    text.retain(target)
    text.put(f"ret ptr {target}")


def _entry(at: Layout, form: Form, hooked: bool) -> str:
    text = Text(at)
    text.need(text.is_("%n", str(len(form.parameters)), "i64"))
    given = [f"ptr {text.load('%args', 8 * i)}" for i in range(len(form.parameters))]
    result = text.make(f'call ptr @"try.{form.name}"({", ".join(given)}, i1 {int(hooked)})')
    text.need(text.make(f"icmp ne ptr {result}, null"))
    text.put(f"ret ptr {result}")
    text.label("miss")
    called = _noted(text, form) if hooked else pointer(abi.retain(form.body_fallback))
    text.put(f"ret ptr {text.call('PyObject_Vectorcall', 'ptr', f'ptr {called}, ptr %args, i64 %n, ptr null')}")
    return define(f'ptr @"entry.{form.name}{"" if hooked else ".body"}"(ptr %self, ptr %args, i64 %n)', text)


def _noted(text: Text, form: Form) -> str:
    """Count what is missed; gives the function to call."""
    counter = f'@"missed.{form.name}"'
    missed = text.make(f"add i64 {text.make(f'load i64, ptr {counter}')}, 1")
    is_often = text.make(f"icmp uge i64 {missed}, {form.patience}")
    text.put(f"store i64 {text.make(f'select i1 {is_often}, i64 0, i64 {missed}')}, ptr {counter}")
    noting, fallback = (pointer(abi.retain(each)) for each in (form.noting, form.fallback))
    return text.make(f"select i1 {is_often}, ptr {noting}, ptr {fallback}")


# ------------------------------------------------------------------ methods


def _method(at: Layout, method: Method) -> str:
    text = Text(at)
    text.need(text.is_("%names", "null"))
    text.need(text.is_("%n", str(method.given), "i64"))
    given = ["ptr %self", *(f"ptr {text.load('%args', 8 * i)}" for i in range(method.given))]
    for i, (form, constants) in enumerate(method.forms):
        passed = given + [f"ptr {pointer(abi.retain(each))}" for each in constants]
        result = text.make(f'call ptr @"try.{form.name}"({", ".join(passed)}, i1 1)')
        text.put(f"br i1 {text.is_(result, 'null')}, label %next{i}, label %done{i}")
        text.label(f"done{i}")
        text.put(f"ret ptr {result}")
        text.label(f"next{i}")
    text.put("br label %miss")
    text.label("miss")
    text.lines += _forwarded(at, abi.retain(method.fallback))
    head = f'ptr @"method.{method.name}"(ptr %self, ptr %args, i64 %n, ptr %names)'
    return define(head, text)


def _forwarded(at: Layout, fallback: int) -> Iterable[str]:
    """Call with the tensor before the other arguments, those given by name included."""
    vectorcall = pointer(at.functions["PyObject_Vectorcall"])
    return f"""  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %positional, label %named
named:
  %named.count = call i64 {pointer(at.functions["PyTuple_Size"])}(ptr %names)
  br label %positional
positional:
  %extra = phi i64 [0, %miss], [%named.count, %named]
  %total = add i64 %n, %extra
  %length = add i64 %total, 1
  %all = alloca ptr, i64 %length
  store ptr %self, ptr %all
  %rest = getelementptr ptr, ptr %all, i64 1
  %bytes = mul i64 %total, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 0)
  %count = add i64 %n, 1
  %called = call ptr {vectorcall}(ptr {pointer(fallback)}, ptr %all, i64 %count, ptr %names)
  ret ptr %called""".split("\n")
