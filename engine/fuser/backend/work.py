"""An estimate of the work of a loop's body, so that threads share what pays.

In: the emitter at the place before the loop, and the body.  Out: its work in simple functions of numbers: a whole
number where all counts are known, else a value that instructions compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from engine.fuser.backend.llvm_numbers import PRIMITIVES, Value, ir
from engine.fuser.ir.kernel import (
    Apply,
    Call,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Name,
    Scalar,
    Statement,
    all_expressions,
    bodies,
    lanes_of,
    parts,
    rewritten,
)

if TYPE_CHECKING:
    from engine.fuser.backend.to_llvm import Emitter

_UNKNOWN_TRIPS: Final = 16
"""Iterations of a loop of which nothing is known."""
_LONG: Final = 16
"""The cost of a function that is no primitive, in those that are."""
Amount = int | Value
"""A whole number, or the value that it has when the code runs: what is known takes no instruction."""


def work_of(e: Emitter, body: Sequence[Statement]) -> Amount:
    """An estimate of the work of a body, in simple functions of numbers; loops count as in their first round."""
    names = e.names
    e.names = dict(names)
    known, unknown = 1, list[Value]()
    for statement in body:
        own: list[Amount] = [own_work(statement) + 1]
        if isinstance(statement, Call) and statement.function in e.helpers:
            own.append(_cost_of_call(e, e.helpers[statement.function], statement))
        trips = _trips(e, statement)
        for name, value in _told(statement):
            _learn(e, name, value)
        own += [_times(e, trips, work_of(e, inner)) for inner in bodies(statement)]
        known += sum(each for each in own if isinstance(each, int))
        unknown += [each for each in own if not isinstance(each, int)]
    e.names = names
    return reduce(e.builder.add, unknown, ir().IntType(64)(known)) if unknown else known


def _times(e: Emitter, a: Amount, b: Amount) -> Amount:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return e.builder.mul(*(ir().IntType(64)(each) if isinstance(each, int) else each for each in (a, b)))


def _cost_of_call(e: Emitter, helper: Kernel, call: Call) -> Amount:
    names, found = e.names, {}
    for parameter, operand in zip(helper.parameters, call.operands, strict=True):
        if isinstance(parameter, Scalar) and _is_known(e, operand):
            found[parameter.name] = e.value(_without_traps(operand))
    e.names = found
    total = work_of(e, helper.body)
    e.names = names
    return total


def _told(s: Statement) -> Iterator[tuple[str, Expression | None]]:
    """A name that the statement gives to something, and what it is at first; None for what changes."""
    match s:
        case Let(name=name, value=value) | For(index=name, start=value):
            yield name, value
        case Declare(name=name):
            yield name, None


def _learn(e: Emitter, name: str, value: Expression | None) -> None:
    if value is not None and _is_known(e, value):
        e.names[name] = e.value(_without_traps(value))
    else:
        e.names.pop(name, None)


def _is_known(e: Emitter, of: Expression) -> bool:
    """True if the expression tells its value here, without a look at memory."""
    found = [*all_expressions(of)]
    return all(
        each.name in e.names if isinstance(each, Name) else isinstance(each, (Constant, Apply)) for each in found
    )


def _without_traps(of: Expression) -> Expression:
    """The expression with divisors that are not 0, for use where it is not said that the program comes to it."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Apply) and part.function in ("quotient", "rest"):
            a, b = part.operands
            return replace(part, operands=(a, Apply("maximum", (b, Constant(1, b.type)), b.type)))
        return part

    return rewritten(of, change)


def own_work(statement: Statement) -> int:
    """The work of the expressions in a statement, less those of statements inside of it."""
    return sum(_work_of_expression(each) for root in parts(statement) for each in all_expressions(root))


def _work_of_expression(each: Expression) -> int:
    is_long = isinstance(each, Apply) and each.function not in PRIMITIVES
    return lanes_of(each.type) * (_LONG if is_long else 1)


def _trips(e: Emitter, s: Statement) -> Amount:
    """The number of times that the body of a statement runs, as far as that is known outside of the loop."""
    if isinstance(s, If):
        return 1
    if not isinstance(s, For) or not all(_is_known(e, each) for each in (s.start, s.stop, s.step)):
        return _UNKNOWN_TRIPS
    match s.start, s.stop, s.step:
        case Constant(value=begin), Constant(value=end), Constant(value=by):
            return max(1, int(end - begin) // int(by))
    start, stop, step = (e.value(_without_traps(each)) for each in (s.start, s.stop, s.step))
    whole = ir().IntType(64)
    one = whole(1)
    span = e.builder.sub(stop, start)
    if not (isinstance(s.step, Constant) and s.step.value == 1):
        span = e.builder.sdiv(span, e.builder.select(e.builder.icmp_signed("==", step, whole(0)), one, step))
    return e.builder.select(e.builder.icmp_signed(">", span, one), span, one)
