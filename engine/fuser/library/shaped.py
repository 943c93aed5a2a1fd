"""Products, convolutions, pooling and triangles as functions of any sizes, as kernel IR.

In: operators of the table that groups lower by a handler of their own.  Out: the forms of their calls, of which there
is a row for each (`CALLS`), and the functions that serve them, `i64 FUNCTION(i64 *words, i64 phase)`: at first it says
the result's sizes, or with another code than 0 that the sizes of the arguments are not for it; then it computes.

The kernel is the one that a group of this operator alone has (`groups.from_graph`), for examples whose sizes tell it
which way to go; guards say which sizes it is for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import (
    Apply,
    Expression,
    If,
    Kernel,
    Let,
    Name,
    Return,
    Statement,
    Store,
    apply,
    index,
)
from engine.fuser.library import complex_products
from engine.fuser.library.forms import Entry, Form, Given, fewest
from engine.fuser.library.functions import WORDS, alone, calling, guards, lies_in_order, tensor_at, word
from engine.fuser.library.words import COMPLEX, SHAPED_WORDS
from engine.fuser.stubs.binding import Binding, Result, TensorArgument, size, stride
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Value
from engine.lang.errors import EngineError
from engine.lang.records import dataclass

_EACH: Final = 5
"""Sizes of a tensor that the words of a function have room for."""
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A tensor of these sizes; `kind`: how it lies, or is taken."""

    shape: Shape
    kind: str = "RANKED"


@dataclass(frozen=True, slots=True)
class ShapedCall:
    """A call with tensors like these, and with constants: lists of ints, or what does not matter (`UNREAD`)."""

    given: tuple[Any, ...]


UNREAD: Final = object()


def _linear(rows: int) -> Iterator[ShapedCall]:
    for bias in (Example((67,)), None):
        yield ShapedCall((Example((rows, 65), "ROWED"), Example((67, 65)), bias))


def _products(rows: int, kind: str) -> Iterator[tuple[str, ShapedCall]]:
    """Products of matrices, the second as it is or exchanged, as in `x @ weight.t()`."""
    second = Example((65, 67), kind)
    first = Example((rows, 65), "STEPPED")
    yield "aten::mm", ShapedCall((first, second))
    yield "aten::addmm", ShapedCall((Example((67,)), first, second, 1, 1))
    yield "aten::matmul", ShapedCall((Example((rows, 65), "ROWED"), second))


def _batches(rows: int, kind: str) -> Iterator[tuple[str, ShapedCall]]:
    for name, outer in (("bmm", (3,)), ("matmul", (3,)), ("matmul", (3, 5))):
        first, second = Example((*outer, rows, 65), "STEPPED"), Example((*outer, 65, 67), kind)
        yield f"aten::{name}", ShapedCall((first, second))


WINDOWS: Final = (
    (1, 1, 0, 1), (3, 1, 1, 1), (3, 2, 1, 1), (1, 2, 0, 1), (7, 2, 3, 1), (5, 1, 2, 1), (3, 1, 0, 1), (5, 1, 0, 1),
    (3, 1, 2, 2),
)  # fmt: skip
"""Sizes of windows, steps, paddings and distances that convolutions of images have most."""


def _convolutions() -> Iterator[tuple[str, ShapedCall]]:
    for window, step, padding, gap in WINDOWS:
        for bias in (Example((24,)), None):
            tensors = Example((2, 16, 15, 17)), Example((24, 16, window, window)), bias
            steps = [step] * 2, [padding] * 2, [gap] * 2
            yield "aten::conv2d", ShapedCall((*tensors, *steps, 1))
            yield "aten::convolution", ShapedCall((*tensors, *steps, False, [0, 0], 1))
            yield "aten::_convolution", ShapedCall((*tensors, *steps, False, [0, 0], 1, *[UNREAD] * 4))


def _pools() -> Iterator[tuple[str, ShapedCall]]:
    for window, step, padding in ((2, 2, 0), (3, 2, 1)):
        sizes = [window] * 2, [step] * 2, [padding] * 2
        yield "aten::max_pool2d", ShapedCall((Example((2, 16, 15, 17)), *sizes, [1, 1], False))
        yield "aten::avg_pool2d", ShapedCall((Example((2, 16, 15, 17)), *sizes, False, True, None))
    yield "aten::adaptive_avg_pool2d", ShapedCall((Example((2, 16, 15, 17)), [1, 1]))


def _triangles() -> Iterator[tuple[str, ShapedCall]]:
    for name, diagonal in (("tril", 0), ("triu", 1), ("triu", 0), ("tril", -1)):
        yield f"aten::{name}", ShapedCall((Example((65, 67)), diagonal))


def _calls() -> Iterator[tuple[str, ShapedCall]]:
    for rows in (64, 3):
        yield from (("aten::linear", each) for each in _linear(rows))
    for kind, rows in itertools.product(("TURNED", "STEPPED"), (64, 3)):  # what is exchanged is not copied then
        yield from _products(rows, kind)
        yield from _batches(rows, kind)
    yield from _convolutions()
    yield from _pools()
    yield from _triangles()


def _by_name() -> dict[str, list[ShapedCall]]:
    found = dict[str, list[ShapedCall]]()
    for name, call in _calls():
        found.setdefault(name, []).append(call)
    return found


CALLS: Final[Mapping[str, Sequence[ShapedCall]]] = _by_name()
"""The calls that have functions, by operator, those that are made most first."""


def shaped_of(op: Op, types: Sequence[str]) -> tuple[list[Form], dict[str, Kernel]]:
    """The forms of an operator for tensors of these types, and its functions by their symbols."""
    forms, kernels = list[Form](), dict[str, Kernel]()
    for call in CALLS.get(op.qualified_name, ()):
        entries = dict[str, Entry]()
        for type in types:
            found = _function(op, call, type)
            if found is not None:
                entry, kernel = found
                entries[type], kernels[entry.symbol] = entry, kernel
        if entries:
            given = tuple(map(_given, call.given))
            may_copy = lies_in_order(op, _samples(call))
            forms.append(Form(given, fewest(op, given), (), entries, "serve_shaped", may_copy=may_copy))
    return forms, kernels


def _given(value: Any) -> Given:
    match value:
        case Example(shape=shape, kind="RANKED" | "STEPPED" | "TURNED" as kind):
            return Given(kind, len(shape))
        case Example():
            return Given("ROWED")
        case list():
            return Given("WORDS", value)
    return Given("UNREAD") if value is UNREAD else Given("SAME", value)


# ------------------------------------------------------------------ functions


def _function(op: Op, call: ShapedCall, type: str) -> tuple[Entry, Kernel] | None:
    """The function of a call for tensors of a type; None where there is none."""
    if type in COMPLEX:
        return _of_complex(op, call, type)
    try:
        found = _lowered(op, call, type)
    except (NotFused, EngineError, TypeError, ValueError, ArithmeticError, KeyError):
        return None
    (result,) = found.results
    if not isinstance(result, Result) or result.shape is None or result.order is not None:
        return None
    kernel = _wrapped(found, result)
    return Entry(kernel.name, result.type, 0), kernel


def _of_complex(op: Op, call: ShapedCall, type: str) -> tuple[Entry, Kernel] | None:
    """The function for complex elements, which is one for all sizes; None of what is no product."""
    if op.qualified_name not in _PRODUCTS:
        return None
    tensors = [each for each in call.given if isinstance(each, Example)]
    places = (1, 2, 0) if op.qualified_name == "aten::addmm" else range(len(tensors))
    ordered = [tensors[place] for place in places]
    ranks, kinds = [len(each.shape) for each in ordered], [each.kind for each in ordered]
    kernel = complex_products.function(type, ranks, places, kinds, is_row=op.qualified_name == "aten::linear")
    return Entry(kernel.name, type, 0), kernel


_PRODUCTS: Final = frozenset({"aten::linear", "aten::mm", "aten::addmm", "aten::matmul", "aten::bmm"})


def _lowered(op: Op, call: ShapedCall, type: str) -> Binding:
    """The kernel of a graph of the operator alone."""
    graph, examples, inputs = Graph(), list[Any](), list[Value]()
    for argument, value in zip(op.schema.arguments, call.given, strict=True):
        if isinstance(value, Example):
            examples.append(_sample(value, type))
            inputs.append(graph.add_input(argument.name, argument.type))
        else:
            inputs.append(insert_constant(graph, _sample(value, type)))
    return alone(op, graph, inputs, examples)


def _samples(call: ShapedCall) -> list[Any]:
    return [_sample(each, "f32") for each in call.given]


def _sample(value: Any, type: str) -> Any:
    if not isinstance(value, Example):
        return False if value is UNREAD else value
    if value.kind not in ("STEPPED", "TURNED"):
        return Tensor(np.ones(value.shape, DTYPES[type]))
    *outer, rows, columns = value.shape
    if value.kind == "STEPPED":
        return Tensor(np.ones((*outer, rows, columns + 1), DTYPES[type])[..., :-1])
    return Tensor(np.ones((*outer, columns, rows + 1), DTYPES[type])[..., :-1].swapaxes(-1, -2))


def _wrapped(found: Binding, result: Result) -> Kernel:
    """A function of words that calls the kernel."""
    names, places = list[Statement](), list[Statement]()
    tensors = [each for each in found.arguments if isinstance(each, TensorArgument)]
    for t, argument in enumerate(tensors):
        sizes = [word(SHAPED_WORDS["EXTENTS"] + t * _EACH + d) for d in range(argument.rank)]
        names += [Let(size(argument.name, d).name, each) for d, each in enumerate(sizes)]
        if argument.layout == "strided":
            steps = [word(SHAPED_WORDS["STRIDES"] + t * _EACH + d) for d in range(argument.rank)]
            names += [Let(stride(argument.name, d).name, each) for d, each in enumerate(steps)]
        places.append(tensor_at(argument.name, argument.type, SHAPED_WORDS["PLACES"] + t))
    places.append(tensor_at(result.name, result.type, SHAPED_WORDS["PLACES"] + len(tensors)))
    assert result.shape is not None
    said = [("RANK", 0, index(len(result.shape))), *(("SIZES", d, each) for d, each in enumerate(result.shape))]
    said.append(("WORK", 0, found.work if found.work is not None else index(0)))
    stores = tuple(Store("words", (index(SHAPED_WORDS[name] + i),), value) for name, i, value in said)
    first = If(apply("eq", Name("phase", "i64"), index(0)), (*stores, Return(index(0))))
    found = replace(found, guards=tuple(each for each in found.guards if not _tells_order(each, tensors)))
    return calling(found.kernel, "shaped", ["words_", "phase"], (WORDS, *names, *guards(found), first, *places))


def _tells_order(guard: Expression, tensors: Sequence[TensorArgument]) -> bool:
    """True for what says in which order a tensor's dimensions lie: here results lie in C order whatever that is."""
    strides = {stride(each.name, d) for each in tensors for d in range(each.rank)}
    return isinstance(guard, Apply) and guard.function == "ge" and strides.issuperset(guard.operands)
