"""The work of a kernel: bytes that it has to move, and operations on floats that it does.

In: a kernel, and numbers for its scalar parameters, or a binding and arguments.  Out: `Cost`.  Buffers count once,
however often they are read: that is what memory has to give.  Loops whose bounds depend on other loops count as in
their first round, `While` as one round, `If` as its longer branch; calls of others are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Final

from engine.fuser.ir import math
from engine.fuser.ir.kernel import (
    FLOATS,
    SIZES,
    Accumulate,
    Apply,
    Buffer,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Name,
    Statement,
    While,
    all_expressions,
    parts,
    product,
    strides_of,
)
from engine.fuser.stubs.binding import Binding, NumberArgument, Result, TensorArgument, size
from engine.fuser.stubs.binding import stride as stride_of
from engine.lang.records import dataclass

Numbers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Cost:
    bytes: int
    operations: int


def cost_of(binding: Binding, args: Sequence[Any]) -> Cost | None:
    """The work of a call with such arguments, whose sizes count rather than those of the kernel's buffers."""
    numbers: dict[str, float] = {}
    moved = 0
    for argument, value in zip(binding.arguments, args, strict=False):
        if isinstance(argument, NumberArgument):
            numbers[argument.name] = value
        if not isinstance(argument, TensorArgument):
            continue
        array = value.array
        for i, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
            numbers[size(argument.name, i).name] = extent
            numbers[stride_of(argument.name, i).name] = stride // array.itemsize
        distinct = (extent for extent, stride in zip(array.shape, array.strides, strict=True) if stride)
        moved += prod(distinct) * array.itemsize
    for let in binding.lets:
        _note(let.name, let.value, numbers)
    made = (each for each in binding.results if isinstance(each, Result))
    try:
        moved += sum(int(evaluate(product(each.shape), numbers)) * SIZES[each.type] for each in made)
        return Cost(moved, _block(binding.kernel.body, numbers))
    except (KeyError, TypeError):
        return None


def cost(kernel: Kernel, numbers: Numbers) -> Cost | None:
    """The work of one call; None where the numbers do not tell the sizes."""
    try:
        moved = sum(_bytes(buffer, numbers) for buffer in kernel.buffers if buffer.shape is not None)
        return Cost(moved, _block(kernel.body, dict(numbers)))
    except KeyError:
        return None


def _bytes(buffer: Buffer, numbers: Numbers) -> int:
    elements = 1
    for extent, stride in zip(buffer.shape or (), strides_of(buffer), strict=True):
        elements *= int(evaluate(extent, numbers)) if evaluate(stride, numbers) != 0 else 1
    return elements * SIZES[buffer.type] * (2 if buffer.access == "inout" else 1)


# ------------------------------------------------------------------ numbers


_OPERATORS: Final[dict[str, Callable[..., float]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "quotient": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "div": lambda a, b: a / b,
    "minimum": min, "maximum": max, "abs": abs, "select": lambda c, a, b: a if c else b, "convert": lambda a: a,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b, "bitnot": lambda a: not a,
}  # fmt: skip


def evaluate(expression: Expression, numbers: Numbers) -> float:
    """The value of an expression over sizes.  Raises KeyError for what the numbers do not tell."""
    match expression:
        case Constant(value=value):
            return value
        case Name(name=name):
            return numbers[name]
        case Apply(function=function, operands=operands):
            return _OPERATORS[function](*(evaluate(each, numbers) for each in operands))
    raise KeyError(expression)


# ------------------------------------------------------------------ operations


def _block(body: Sequence[Statement], numbers: dict[str, float]) -> int:
    return sum(_statement(each, numbers) for each in body)


def _statement(statement: Statement, numbers: dict[str, float]) -> int:
    own = sum(map(operations, parts(statement)))
    match statement:
        case Let(name=name, value=value) | Declare(name=name, value=value):
            _note(name, value, numbers)
        case Accumulate(value=value):
            own += value.type in FLOATS
        case For(index=index, start=start, body=body):
            rounds = _rounds(statement, numbers)
            return own + rounds * _block(body, {**numbers, index: evaluate(start, numbers)})
        case While(body=body):
            return own + _block(body, numbers)
        case If(body=body, orelse=orelse):
            return own + max(_block(body, dict(numbers)), _block(orelse, dict(numbers)))
    return own


def _note(name: str, value: Expression, numbers: dict[str, float]) -> None:
    try:
        numbers[name] = evaluate(value, numbers)
    except (KeyError, ZeroDivisionError):
        numbers.pop(name, None)


def _rounds(loop: For, numbers: Numbers) -> int:
    start, stop, step = (int(evaluate(each, numbers)) for each in (loop.start, loop.stop, loop.step))
    return max(0, -((start - stop) // step))


_FREE: Final = ("select", "convert", "copysign", "neg", "abs")
"""Functions that move or mark numbers."""


def operations(expression: Expression) -> int:
    """Operations on floats that the value takes."""
    return sum(_weight(each) for each in all_expressions(expression) if isinstance(each, Apply))


def _weight(apply: Apply) -> int:
    type = apply.operands[0].type
    if type not in FLOATS or apply.function in _FREE or apply.function.startswith("bits"):
        return 0
    return _operations_of(apply.function, type)


@cache
def _operations_of(name: str, type: str) -> int:
    """The operations of a function: those that it is written with; 2 for a product with a sum."""
    found = math.function(name, type)
    if found is None:
        return 2 if name == "fma" else 1
    return sum(operations(let.value) for let in found.body) + operations(found.result)
