"""Row functions: operators over rows of elements that are next to each other, as kernel IR.

In: operators of the table that are pointwise.  Out: the forms of their calls (`forms`), and the row functions that
serve them, one for each type of elements: `i64 ROW(i64 n, i64 *elements, T **places)`: n elements, whose distances
(in elements) and first addresses stand for each operand, and last for the result, in two rows of words.  It gives 1,
and does nothing, where distances are others than 0 of numbers and 1 of tensors: stubs then lay the elements out first
(Note [Tiles] in `pointwise_calls`).

The expression, its types and its refusals are those that groups have (`groups.from_graph`); the definition, on samples,
says the dtype of the result.  Operators with the same expression over the same types share one function.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.layouts import operands_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.scalar import is_tensor, numbers_in_range, promoted_names, rounded_names
from engine.aten.kernels.pointwise import POWERS
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.target import current
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.from_graph import has_kernel, is_pointwise, pointwise
from engine.fuser.groups.fusion_group import Group, Operands
from engine.fuser.groups.schedule import Body, Indices, Scheduler, Value
from engine.fuser.ir.kernel import (
    BOOL,
    FLOATS,
    HALVES,
    Buffer,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    add,
    apply,
    index,
    multiply,
    parts,
)
from engine.fuser.ir.kernel_text import show
from engine.fuser.ir.math import Number
from engine.fuser.library import complex_expressions
from engine.fuser.library.complex_expressions import Pair
from engine.fuser.library.descriptors import DTYPES
from engine.fuser.library.forms import Entry, Form, Given, fewest
from engine.fuser.library.words import COMPLEX
from engine.fuser.stubs.cost import operations
from engine.lang.errors import EngineError
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.schema import Argument
from engine.lang.types import BOOL as BOOLEAN
from engine.lang.types import FLOAT, NUMBER, OptionalType, unwrap_optional

TYPES: Final = {d: type for type, d in DTYPES.items()}
"""Types of elements by their dtypes."""
_INEXACT: Final = (*FLOATS, *HALVES, *COMPLEX)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator whose arguments are these."""

    op: Op
    given: tuple[Given, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands, in order."""
        names = (a.name for a in self.op.schema.arguments)
        return tuple(name for name, each in zip(names, self.given, strict=True) if each.is_operand)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors whose dtype chooses the function."""
        names = (a.name for a in self.op.schema.arguments)
        return tuple(name for name, each in zip(names, self.given, strict=True) if each.kind == "TENSORS")

    @property
    def asked(self) -> tuple[int, ...]:
        """The operands that decide how the result lies; none where it always lies in C order."""
        if self.op.scalar is None and self.op.layout == "contiguous":
            return ()
        return tuple(self.operands.index(name) for name in operands_of(self.op) if name in self.operands)


@dataclass(frozen=True, slots=True)
class Row:
    """A row function, and what forms say of it."""

    entry: Entry
    kernel: Kernel


def rows_of(op: Op, types: Sequence[str]) -> tuple[list[Form], dict[str, Kernel]]:
    """The forms of an operator for operands of these types, and its row functions by their symbols."""
    forms, kernels = list[Form](), dict[str, Kernel]()
    for call in calls_of(op):
        found = {type: row for type in types if (row := row_of(call, type)) is not None}
        if found:
            entries = {type: row.entry for type, row in found.items()}
            mixes = {*call.tensors} <= promoted_names(op) and len(call.tensors) > 1
            forms.append(Form(call.given, fewest(op, call.given), call.asked, entries, is_mixing=mixes))
            kernels.update((row.entry.symbol, row.kernel) for row in found.values())
    return forms, kernels


# ------------------------------------------------------------------ forms


def calls_of(op: Op) -> Iterator[Call]:
    """The calls of a pointwise operator that have row functions, those that are made most first."""
    if op.functional is not None or not has_kernel(op) or not is_pointwise(op):
        return
    if op.scalar is None and op.layout.partition(":")[0] not in ("", "contiguous", "operands"):
        return
    tree = parse_python_expression(op.scalar or op.expression or "")
    truths = {of.args[0].id for of in _calls(tree, "where") if isinstance(of.args[0], ast.Name)}
    choices = [[*_choices(op, a, tree, truths)] for a in op.schema.arguments]
    for given in itertools.product(*choices):
        if any(each.kind in ("TENSORS", "TRUTHS") for each in given):
            yield Call(op, given)


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _choices(op: Op, argument: Argument, tree: ast.AST, truths: set[str]) -> Iterator[Given]:
    """The kinds of values that an argument may have."""
    name, default = argument.name, argument.default
    if is_tensor(argument):
        yield Given("TRUTHS" if name in truths else "POINTS" if _is_point(op, name) else "TENSORS")
    elif unwrap_optional(argument.type) in (NUMBER, FLOAT):
        if default == 1 or op.checks_numbers:
            yield Given("SAME" if type(default) is int and not op.checks_numbers else "EQUAL", default)
        if not op.checks_numbers:
            powers = {of.args[1].id for of in _calls(tree, "pow") if isinstance(of.args[1], ast.Name)}
            yield from (Given("EQUAL", float(power)) for power in POWERS if name in powers)
            yield Given("SETTINGS" if name in numbers_in_range(op) else "NUMBERS")
    if isinstance(argument.type, OptionalType):
        yield Given("SAME", None)
    elif argument.type is BOOLEAN and not argument.has_default:
        yield from (Given("SAME", flag) for flag in (False, True))
    elif not (is_tensor(argument) or unwrap_optional(argument.type) in (NUMBER, FLOAT)) and argument.has_default:
        yield Given("SAME", default)
    yield from (Given("SAME", word) for word in _words(tree, name) if word != default)


def _is_point(op: Op, name: str) -> bool:
    """True for a tensor that stands for a number: it is converted to the dtype of another one, which has to hold it."""
    return name in op.in_range and op.dtype == "same" and op.overload == "Tensor"


def _words(tree: ast.AST, name: str) -> Iterator[str]:
    """The words that the expression compares an argument with."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=ast.Name(id=left), comparators=[ast.Constant(value=str() as word)]) if left == name:
                yield word


# ------------------------------------------------------------------ functions


def row_of(call: Call, type: str) -> Row | None:
    """The row function of a form for operands of a type; None where there is none, or Python has to look."""
    op, given = call.op, call.given
    is_halved = type in HALVES
    numbers = [
        a.name for a, each in zip(op.schema.arguments, given, strict=True) if each.kind in ("NUMBERS", "SETTINGS")
    ]
    if is_halved and not {*numbers} <= rounded_names(op) - numbers_in_range(op):
        return None  # they are not rounded to the half type
    if type not in _INEXACT and any(each.kind == "EQUAL" for each in given):
        return None  # of floats, which are none among whole numbers
    if type == BOOL and numbers:
        return None
    try:
        samples = [_sample(each, type) for each in given]
        sample = op.compiled.run(*samples)
        if not isinstance(sample, Tensor) or sample.array.dtype not in TYPES:
            return None
        if any(isinstance(each, Tensor) and np.shares_memory(sample.array, each.array) for each in samples):
            return None  # numbers that are their own conjugates are shown
        if type not in _INEXACT and TYPES[sample.array.dtype] in FLOATS:
            return None  # of the default dtype, which programs may change
        if not call.tensors and TYPES[sample.array.dtype] != type:
            return None  # numbers have a dtype of their own
        return _function(call, type, sample)
    except (Unsupported, EngineError, TypeError, ValueError, ArithmeticError):
        return None


def _sample(given: Given, type: str) -> Any:
    match given.kind:
        case "TENSORS" | "TRUTHS":
            return Tensor(np.ones(2, DTYPES[BOOL if given.kind == "TRUTHS" else type]))
        case "POINTS":
            return Tensor(np.ones((), DTYPES[type]))
        case "NUMBERS" | "SETTINGS":
            return 1.0 if type in _INEXACT else 1
    return given.value


def _function(call: Call, type: str, sample: Tensor) -> Row:
    kinds = [each.kind for each in call.given if each.is_operand]
    types = [BOOL if kind == "TRUTHS" else type for kind in kinds]
    result = TYPES[sample.array.dtype]
    natural = [int(kind in ("TENSORS", "TRUTHS")) for kind in kinds]
    loop = (_loop_of_complex if type in COMPLEX else _loop)(call, types, sample, natural)
    views = [View(Buffer(name, "i64", None, access="inout"), Name(f"{name}_", "i64")) for name in ("steps", "places")]
    operands = [
        View(Buffer(f"x{k}", COMPLEX.get(each, each), None, access="inout"), Load("places", (index(k),), "i64"))
        for k, each in enumerate([*types, result])
    ]
    parameters = tuple(Scalar(name, "i64") for name in ("n", "steps_", "places_"))
    others = (Return(index(1)),)
    kernel = Kernel("row", parameters, (*views, If(_are([*natural, 1]), (*operands, *loop), others)))
    symbol = f"row_{hashlib.sha256(show(kernel).encode()).hexdigest()[:20]}"
    work = _work(loop) + _MEMORY * (type in COMPLEX)  # which is twice as large
    return Row(Entry(symbol, result, work), replace(kernel, name=symbol))


def _are(steps: Sequence[int]) -> Expression:
    """True if these are the distances."""
    tests = [apply("eq", Load("steps", (index(k),), "i64"), index(step)) for k, step in enumerate(steps)]
    return reduce(lambda found, test: apply("bitand", found, test), tests[1:], tests[0])


def _loop(call: Call, types: Sequence[str], sample: Tensor, natural: Sequence[int]) -> tuple[Statement, ...]:
    """The loop, before which numbers are read."""
    i, out = Name("i", "i64"), len(types)
    values: dict[str, Value] = {}
    before = list[Statement]()
    group = Group()
    for k, (name, type) in enumerate(zip(call.operands, types, strict=True)):
        element: Expression = Load(f"x{k}", (multiply(i, index(natural[k])),), type)
        if natural[k] == 0:
            before.append(Let(f"v{k}", element))
            element = Name(f"v{k}", type)
        values[name] = value = Value(f"e{k}", type, (), _constantly(element))
        group.samples[value] = Tensor(np.ones((), DTYPES[type]))
    given = {
        a.name: values.get(a.name, each.value) for a, each in zip(call.op.schema.arguments, call.given, strict=True)
    }
    found = pointwise(group, call.op, "result", given, sample)
    body = Body(Scheduler(group.extents, [], set(), {}), ())
    result = body.element(found, ())
    store = Store(f"x{out}", (i,), result)
    return (*before, For(i.name, index(0), Name("n", "i64"), (*body.statements, store), kind="vector"))


def _loop_of_complex(call: Call, types: Sequence[str], sample: Tensor, natural: Sequence[int]) -> tuple[Statement, ...]:
    """The loop over complex elements, each of which is two floats."""
    i, arguments, result = Name("i", "i64"), call.op.schema.arguments, TYPES[sample.array.dtype]
    lets = list[Let]()
    given: dict[str, Any] = {a.name: each.value for a, each in zip(arguments, call.given, strict=True)}
    for k, (name, type) in enumerate(zip(call.operands, types, strict=True)):
        given[name] = _part(f"x{k}", multiply(i, index(natural[k])), type, lets)
    like = next(each.re for each in given.values() if isinstance(each, Pair))
    operands = Operands(given, {"dtype"})
    found = complex_expressions.element(call.op.scalar or call.op.expression or "", operands, like)
    unknown = operands.unknown(call.op.schema)
    if unknown is not None or isinstance(found, Pair) != (result in COMPLEX):
        raise Unsupported(f"the expression of {call.op.qualified_name} does not look at '{unknown}'")
    out = len(types)
    if isinstance(found, Pair):
        places = [add(multiply(i, index(2)), index(part)) for part in range(2)]
        stores = [Store(f"x{out}", (places[k],), part.expression) for k, part in enumerate((found.re, found.im))]
    else:
        stores = [Store(f"x{out}", (i,), found.expression)]
    return (For(i.name, index(0), Name("n", "i64"), (*lets, *stores), kind="vector"),)


def _part(buffer: str, place: Expression, type: str, lets: list[Let]) -> Pair | Number:
    """The element of an operand: one number, or two that follow one another."""
    if type not in COMPLEX:
        return Number(Load(buffer, (place,), type), lets)
    first = multiply(place, index(2))
    re, im = (Load(buffer, (add(first, index(k)),), COMPLEX[type]) for k in range(2))
    return Pair(Number(re, lets).let(re), Number(im, lets).let(im))


def _constantly(element: Expression) -> Callable[[Body, Indices], Expression]:
    return lambda body, indices: element


def _work(loop: Sequence[Statement]) -> int:
    """The nanoseconds of 1024 rounds, roughly: some for memory, and more for each function of numbers, the more the
    shorter vectors are."""
    (body,) = (each.body for each in loop if isinstance(each, For))
    roots = (root for each in body for root in parts(each))
    return _MEMORY + 512 // current().vector * sum(map(operations, roots))


_MEMORY: Final = 64
"""Nanoseconds for the memory of 1024 elements, roughly."""
