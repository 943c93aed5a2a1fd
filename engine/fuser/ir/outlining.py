"""Pieces of a kernel as helpers: what several layers do alike is compiled once.

In: statements, whose names may be anything.  Out: a helper, which takes what the statements read and write from
outside, and the call of it; statements that differ in names only share a helper.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Final

from engine.fuser.ir.kernel import (
    Accumulate,
    Address,
    Allocate,
    Assign,
    Buffer,
    Call,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Parameter,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    all_expressions,
    all_statements,
    apply,
    index,
    parts,
    rewritten,
)
from engine.fuser.ir.kernel_text import show
from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass

Body = tuple[Statement, ...]
Names = Mapping[str, str]


# ------------------------------------------------------------------ names

_WORD: Final = pattern_of(r"\b[A-Za-z_]\w*")


def bound_names(body: Sequence[Statement]) -> Iterator[str]:
    """The names that statements give to something, in order; some more than once."""
    for statement in all_statements(body):
        match statement:
            case Let(name=name) | Declare(name=name):
                yield name
            case For(index=name):
                yield name
            case Allocate(buffer=buffer) | View(buffer=buffer):
                yield buffer.name
            case Call(name=name) if name:
                yield name


def nameless(kernel: Kernel) -> str:
    """The text of a kernel and its helpers, whose own names are numbers: equal for those that differ in names only."""
    kernels = (*kernel.helpers, kernel)
    own = {each.name for each in kernels} | {parameter.name for each in kernels for parameter in each.parameters}
    own.update(name for each in kernels for name in bound_names(each.body))
    numbers = dict[str, str]()

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"_{len(numbers)}") if found[0] in own else found[0]

    return _WORD.sub(number, show(kernel))


def renamed(body: Sequence[Statement], names: Names) -> Body:
    """The statements with other names for values and buffers."""
    return tuple(_renamed(each, names) for each in body)


def _renamed(s: Statement, names: Names) -> Statement:
    def new(name: str) -> str:
        return names.get(name, name)

    def of(expression: Expression) -> Expression:
        return renamed_expression(expression, names)

    match s:
        case Let() | Declare() | Assign() | Accumulate():
            return replace(s, name=new(s.name), value=of(s.value))
        case Store():
            return Store(new(s.buffer), tuple(map(of, s.indices)), of(s.value))
        case For():
            inside = renamed(s.body, names)
            return replace(s, index=new(s.index), start=of(s.start), stop=of(s.stop), step=of(s.step), body=inside)
        case While():
            return While(of(s.condition), renamed(s.body, names))
        case If():
            return If(of(s.condition), renamed(s.body, names), renamed(s.orelse, names))
        case Return():
            return Return(of(s.value))
        case Allocate():
            return Allocate(_renamed_buffer(s.buffer, names))
        case View():
            return View(_renamed_buffer(s.buffer, names), of(s.address))
        case Call():
            return replace(s, operands=tuple(map(of, s.operands)), name=new(s.name))
    return s


def renamed_expression(of: Expression, names: Names) -> Expression:
    def change(part: Expression) -> Expression:
        match part:
            case Name(name=name, type=type) if name in names:
                return Name(names[name], type)
            case Load(buffer=buffer, indices=indices, type=type) if buffer in names:
                return Load(names[buffer], indices, type)
            case Address(buffer=buffer, indices=indices, type=type) if buffer in names:
                return Address(names[buffer], indices, type)
        return part

    return rewritten(of, change)


def renamed_parameter(of: Parameter, names: Names) -> Parameter:
    return _renamed_buffer(of, names) if isinstance(of, Buffer) else replace(of, name=names.get(of.name, of.name))


def _renamed_buffer(buffer: Buffer, names: Names) -> Buffer:
    shape, strides = (
        None if each is None else tuple(renamed_expression(e, names) for e in each)
        for each in (buffer.shape, buffer.strides)
    )
    return replace(buffer, name=names.get(buffer.name, buffer.name), shape=shape, strides=strides)


def expanded(body: Sequence[Statement], buffer: str, store: Callable[[Store], Sequence[Statement]]) -> Body:
    """The statements with others in place of stores to a buffer."""

    def of(statement: Statement) -> Sequence[Statement]:
        match statement:
            case Store() if statement.buffer == buffer:
                return store(statement)
            case For() | While():
                return [replace(statement, body=expanded(statement.body, buffer, store))]
            case If():
                yes, no = (expanded(each, buffer, store) for each in (statement.body, statement.orelse))
                return [replace(statement, body=yes, orelse=no)]
        return [statement]

    return tuple(chain.from_iterable(map(of, body)))


# ------------------------------------------------------------------ what is outside


def free_parameters(body: Sequence[Statement], buffers: Mapping[str, str]) -> list[Parameter]:
    """Numbers and buffers from outside, in the order in which they appear; `buffers`: the types of all buffers."""
    bound = {*bound_names(body)}
    statements = [*all_statements(body)]
    written = {each.buffer for each in statements if isinstance(each, Store)}
    found: dict[str, Parameter] = {}
    for statement in statements:
        if isinstance(statement, Store):
            found.setdefault(statement.buffer, Scalar("", ""))
        for root in _roots(statement):
            for each in all_expressions(root):
                if isinstance(each, Name):
                    found.setdefault(each.name, Scalar(each.name, each.type))
                elif isinstance(each, (Load, Address)):
                    found.setdefault(each.buffer, Scalar("", ""))
    for name in found:
        if name in buffers and name not in bound:
            found[name] = Buffer(name, buffers[name], None, access="inout" if name in written else "in")
    return [each for name, each in found.items() if name not in bound]


def _roots(statement: Statement) -> Iterator[Expression]:
    yield from parts(statement)
    if isinstance(statement, (Allocate, View)):
        yield from (*(statement.buffer.shape or ()), *(statement.buffer.strides or ()))


# ------------------------------------------------------------------ helpers


@dataclass(frozen=True, slots=True)
class Piece:
    """A helper, and a call of it."""

    helper: Kernel
    call: Body


@dataclass(eq=False, slots=True)
class Outliner:
    """The helpers of a kernel, by what they do."""

    buffers: dict[str, str]
    """The types of the kernel's buffers."""
    helpers: dict[tuple[object, ...], Kernel] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    """The number of calls of each."""

    def key_of(self, body: Sequence[Statement], parameters: Sequence[Parameter]) -> tuple[object, ...]:
        """A key that statements share which do the same, whatever is called what."""
        names = [*(each.name for each in parameters), *bound_names(body)]
        numbers = {name: f"v{i}" for i, name in enumerate(dict.fromkeys(names))}
        return (tuple(replace(each, name=numbers[each.name]) for each in parameters), renamed(body, numbers))

    def piece(self, name: str, body: Sequence[Statement]) -> Piece:
        """A helper of these statements, and a call of it, which ends the kernel where the helper fails."""
        parameters = free_parameters(body, self.buffers)
        ordered = sorted(parameters, key=lambda each: isinstance(each, Buffer))
        key = self.key_of(body, ordered)
        if key not in self.helpers:
            self.helpers[key] = Kernel(name, tuple(ordered), (*body,), is_separate=True)
        helper = self.helpers[key]
        self.used[helper.name] = self.used.get(helper.name, 0) + 1
        operands = (Name(e.name, e.type) if isinstance(e, Scalar) else Address(e.name, (_ZERO,)) for e in ordered)
        status = Name(f"status_{sum(self.used.values())}", "i64")
        failed = If(apply("ne", status, _ZERO), (Return(status),))
        return Piece(helper, (Call(helper.name, tuple(operands), status.name, status.type), failed))


_ZERO: Final = index(0)
