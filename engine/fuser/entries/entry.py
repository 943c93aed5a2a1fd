"""Entries: operators as functions that CPython calls without Python in between, as LLVM's text.

In: the forms of an operator, each with its `Work`.  Out: the text of a module.  For each form there is

    try.F       the result, or null if the arguments are not what it is made for; then no error is set and nothing
                has happened yet (that is the form's work)
    entry.F     the operator: as `Op.run`; entry.F.body is the same without a look at the hooks

and for methods `method.M`, which tries several forms.  Who misses calls the Python function that does all of it.

What all forms are made for: tensors (of just that type) that require no grad while nobody traces, on arrays that lie
in memory as new ones do; numbers that are a float or an int of up to 53 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from engine.fuser import cpython_abi as abi
from engine.fuser.lower import DECLARATIONS, Library
from engine.fuser.prelude import helpers
from engine.fuser.writing import Layout, Text, define, pointer

LONGEST: Final = 16384
"""Elements; work on more of them lets other threads run meanwhile, or is left to numpy, which does so too."""


class Work(Protocol):
    """The computation of a form."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of element that it is for."""

    @property
    def written(self) -> int | None:
        """The place of the argument that it writes to."""

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        """The functions `ptr try.NAME(ptr <each argument>, i1 %hooked)` and what they call."""

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        """Arguments on which it has to do what the Python function does; new ones each time."""

    def takes(self, args: Sequence[Any]) -> str | None:
        """The kind of element for which it does the work for such arguments; None where Python has to."""


@dataclass(frozen=True, slots=True)
class Form:
    """One overload with so many parameters."""

    name: str
    count: int
    work: Work
    fallback: object
    """The Python function; after so many calls it is not called but `noting`, which does the same."""
    noting: object
    patience: int
    body_fallback: object

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.work.kinds)


@dataclass(frozen=True, slots=True)
class Try:
    """A form with the constants that follow the arguments which a call gives."""

    form: Form
    constants: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of tensors: for each number of arguments what is tried, in that order."""

    name: str
    tries: tuple[tuple[int, tuple[Try, ...]], ...]
    fallback: object


def module_text(at: Layout, forms: Sequence[Form], methods: Sequence[Method], library: Library) -> str:
    """All the functions of these forms and methods."""
    parts = [DECLARATIONS, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", *helpers(at)]
    for form in forms:
        parts.append(f'@"missed.{form.name}" = internal global i64 0')
        parts += form.work.text(at, form.name, library)
        parts.append(_entry(at, form, hooked=True))
        parts.append(_entry(at, form, hooked=False))
    parts += [_method(at, method) for method in methods]
    return "\n\n".join(dict.fromkeys(parts))


def exported(forms: Sequence[Form], methods: Sequence[Method]) -> list[str]:
    """The names of the functions that are to be called from outside."""
    names = [f"entry.{form.name}{suffix}" for form in forms for suffix in ("", ".body")]
    return names + [f"method.{method.name}" for method in methods]


def _entry(at: Layout, form: Form, hooked: bool) -> str:
    text = Text(at)
    text.need(text.is_("%n", str(form.count), "i64"))
    given = [f"ptr {text.load('%args', 8 * i)}" for i in range(form.count)]
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
    cases = " ".join(f"i64 {given}, label %given{given}" for given, _ in method.tries)
    text.put(f"switch i64 %n, label %miss [{cases}]")
    for given, tries in method.tries:
        text.label(f"given{given}")
        arguments = ["ptr %self", *(f"ptr {text.load('%args', 8 * i)}" for i in range(given))]
        for i, each in enumerate(tries):
            passed = arguments + [f"ptr {pointer(abi.retain(constant))}" for constant in each.constants]
            result = text.make(f'call ptr @"try.{each.form.name}"({", ".join(passed)}, i1 1)')
            text.put(f"br i1 {text.is_(result, 'null')}, label %next{given}.{i}, label %done{given}.{i}")
            text.label(f"done{given}.{i}")
            text.put(f"ret ptr {result}")
            text.label(f"next{given}.{i}")
        text.put("br label %miss")
    text.label("miss")
    text.lines += forwarded(at, abi.retain(method.fallback))
    head = f'ptr @"method.{method.name}"(ptr %self, ptr %args, i64 %n, ptr %names)'
    return define(head, text)


def forwarded(at: Layout, fallback: int) -> Iterable[str]:
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
