"""Indices in 32 bits, in which a GPU computes several times as fast as in 64.

In: statements, where all that is computed for indices is less than 2³¹.  Out: the same statements, in which places in
buffers, and the indices that others are split into, are computed in i32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from engine.fuser.ir.kernel import (
    BOOL,
    Accumulate,
    Apply,
    Assign,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Let,
    Load,
    Name,
    Statement,
    Store,
    While,
    all_expressions,
    constant,
    convert,
    rewritten,
)

_KEPT: Final = frozenset("add sub mul quotient rest minimum maximum select".split())
"""Functions whose result in 32 bits is right if their operands and it fit."""
_COMPARED: Final = frozenset("eq ne lt le gt ge bitand bitor".split())


def narrowed(body: Sequence[Statement], known: set[str]) -> list[Statement]:
    """The statements; `known` are names of indices and sizes, to which lets are added that are parts of them."""
    return [_narrowed(each, known) for each in body]


def _narrowed(s: Statement, known: set[str]) -> Statement:
    match s:
        case Let(value=value) if _is_index(value, known):
            known.add(s.name)
            return replace(s, value=_narrow(value))
        case Let() | Declare() | Assign() | Accumulate():
            return replace(s, value=rewritten(s.value, _with_narrow_place))
        case Store():
            place = tuple(map(_narrow, s.indices))
            return replace(s, indices=place, value=rewritten(s.value, _with_narrow_place))
        case For():
            known.add(s.index)
            return replace(s, body=tuple(narrowed(s.body, known)))
        case While():
            condition = rewritten(s.condition, _with_narrow_place)
            return replace(s, condition=condition, body=tuple(narrowed(s.body, known)))
        case If():
            yes, no = (tuple(narrowed(each, known)) for each in (s.body, s.orelse))
            return replace(s, condition=rewritten(s.condition, _with_narrow_place), body=yes, orelse=no)
    return s


def _is_index(value: Expression, known: set[str]) -> bool:
    """True for a part of an index, which is no greater than that."""
    match value:
        case Apply(function="quotient" | "rest", operands=(Name(name=whole), size)) if whole in known:
            names = (each.name for each in all_expressions(size) if isinstance(each, Name))
            return known.issuperset(names) and not any(isinstance(each, Load) for each in all_expressions(size))
    return False


def _with_narrow_place(of: Expression) -> Expression:
    return replace(of, indices=tuple(map(_narrow, of.indices))) if isinstance(of, Load) else of


def _narrow(of: Expression) -> Expression:
    return convert(_in_32_bits(of), "i64")


def _in_32_bits(of: Expression) -> Expression:
    match of:
        case Constant(value=value) if of.type != BOOL:
            return constant(value, "i32")
        case Apply(function="select", operands=(condition, a, b)):
            return Apply("select", (_condition(condition), _in_32_bits(a), _in_32_bits(b)), "i32")
        case Apply(function=function, operands=operands) if function in _KEPT:
            return Apply(function, tuple(map(_in_32_bits, operands)), "i32")
    return convert(of, "i32")


def _condition(of: Expression) -> Expression:
    """A condition with i64 comparisons in 32 bits."""
    match of:
        case Apply(function="bitand" | "bitor", operands=operands) if of.type == BOOL:
            return replace(of, operands=tuple(map(_condition, operands)))
        case Apply(function=function, operands=operands) if function in _COMPARED and operands[0].type == "i64":
            return replace(of, operands=tuple(map(_in_32_bits, operands)))
    return of
