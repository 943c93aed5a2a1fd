"""Functions of the library that wrap kernels of groups: what `along` and `shaped` have in common.

In: an operator with examples of its arguments.  Out: the kernel that a group of this operator alone has, and functions
of words that call such kernels.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.fuser.backend.symbols import POLL
from engine.fuser.groups.from_graph import lower
from engine.fuser.ir.kernel import (
    Address,
    Assign,
    Buffer,
    Call,
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
    View,
    add,
    all_expressions,
    all_statements,
    apply,
    bodies,
    index,
    multiply,
)
from engine.fuser.ir.outlining import bound_names, nameless
from engine.fuser.stubs.binding import Binding
from engine.ir.graph import Graph, Value


def lies_in_order(op: Op, samples: Sequence[Any]) -> bool:
    """True if the definition's result lies in C order also where the tensors lie otherwise, so that copies of them
    may stand for them.  Sizes do not matter to that, so it is found out once for calls that differ in those."""
    call = op.qualified_name, tuple(map(_form, samples))
    if call not in _IN_ORDER:
        _IN_ORDER[call] = _lies_in_order(op, samples)
    return _IN_ORDER[call]


_IN_ORDER: Final = dict[Any, bool]()


def _form(sample: Any) -> tuple[str, Any]:
    """Its kind, by which it is told from others, but for sizes."""
    match sample:
        case Tensor(array=array):
            return "tensor", array.ndim
        case list():
            return "list", len(sample)
    return type(sample).__name__, sample


def _lies_in_order(op: Op, samples: Sequence[Any]) -> bool:
    for way in (np.asfortranarray, _last_turned, _channels_last):
        turned = [Tensor(way(each.array)) if isinstance(each, Tensor) else each for each in samples]
        found = op.compiled.run(*turned)
        results = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(each, Tensor) and each.array.flags.c_contiguous for each in results):
            return False
    return True


def _last_turned(array: Array) -> Array:
    """The same elements, of which those of the last two dimensions are exchanged in memory."""
    return array if array.ndim < 2 else np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def _channels_last(array: Array) -> Array:
    """The same elements, of which those of the second dimension are next to each other."""
    return array if array.ndim < 3 else np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


WORDS: Final = View(Buffer("words", "i64", None, access="inout"), Name("words_", "i64"))
"""The words, of the parameter that has their address."""
_GUARDED: Final = -2
"""The code where a guard does not hold, and another function has to do it, or Python."""


def alone(op: Op, graph: Graph, inputs: Sequence[Value], examples: Sequence[Any]) -> Binding:
    """The kernel of a graph that ends with the operator, for examples of the graph's inputs; raises NotFused."""
    node = graph.append(op.name, inputs, [each.type for each in op.schema.returns])
    node.op = op
    for value in node.outputs:
        graph.register_output(value)
    return lower(graph, examples)


def word(place: int) -> Load:
    """The word at this place."""
    return Load("words", (index(place),), "i64")


def tensor_at(name: str, type: str, place: int) -> View:
    """A tensor whose address is the word at this place."""
    return View(Buffer(name, type, None, access="inout"), word(place))


def guards(found: Binding) -> tuple[Statement, ...]:
    """Leave the function where a guard of its kernel does not hold."""
    return tuple(If(apply("bitnot", guard), (Return(index(_GUARDED)),)) for guard in found.guards)


def left_below(least: int, size: Expression) -> tuple[Statement, ...]:
    """Leave the function where a size is less."""
    return (If(apply("lt", size, index(least)), (Return(index(_GUARDED)),)),) if least else ()


# ------------------------------------------------------------------ long loops

_PIECE: Final = 1 << 20
"""Rounds of inner loops in a piece of a loop, roughly: some milliseconds."""
_UNKNOWN: Final = 16
"""Rounds of an inner loop that are not known before."""


def in_pieces(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Statements whose loops are done in pieces, with a poll between two: those that are in no other loop, unless
    threads share them, which poll by themselves (`backend.threads`)."""
    taken = {*bound_names(body)}
    return tuple(each for statement in body for each in _pieces(statement, taken))


def _pieces(statement: Statement, taken: set[str]) -> Iterator[Statement]:
    match statement:
        case If(body=body, orelse=orelse):
            inner = (tuple(each for part in of for each in _pieces(part, taken)) for of in (body, orelse))
            yield replace(statement, body=next(inner), orelse=next(inner))
        case For(start=start, stop=stop, body=body) if statement.kind != "parallel" and statement.step == index(1):
            begin, most, end, stopped = (_fresh(name, taken) for name in ("begin", "most", "end", "stopped"))
            unknown = {statement.index, *bound_names(body), *_assigned(body)}
            some = apply("quotient", index(_PIECE), _rounds(body, unknown))
            first, last = Name(begin, "i64"), Name(end, "i64")
            poll = Call(POLL, (), stopped, "i64"), leave_with(Name(stopped, "i64"))
            part = (
                Let(end, apply("minimum", add(first, Name(most, "i64")), stop)),
                replace(statement, start=first, stop=last),
                If(apply("lt", last, stop), poll),
            )
            yield Let(most, apply("maximum", some, index(1)))
            yield For(begin, start, stop, part, step=Name(most, "i64"))
        case _:
            yield statement


def leave_with(code: Name) -> If:
    """Leave the function with a code that is not 0."""
    return If(apply("ne", code, index(0)), (Return(code),))


def _fresh(name: str, taken: set[str]) -> str:
    found = next(each for i in itertools.count() if (each := f"{name}_{i}") not in taken)
    taken.add(found)
    return found


def _assigned(body: Sequence[Statement]) -> Iterator[str]:
    """The variables that have other values in a body than before it."""
    return (each.name for each in all_statements(body) if isinstance(each, Assign))


def _rounds(body: Sequence[Statement], inner: set[str]) -> Expression:
    """The rounds of the loops in a body, at least one, of which `inner` names are not known before."""
    total: Expression = index(1)
    for statement in body:
        rounds: Expression = index(1)
        if isinstance(statement, For):
            bounds = statement.start, statement.stop
            names = {each.name for of in bounds for each in all_expressions(of) if isinstance(each, Name)}
            span = apply("maximum", apply("sub", statement.stop, statement.start), index(1))
            rounds = index(_UNKNOWN) if names & inner else span
        for each in bodies(statement):
            total = add(total, multiply(rounds, _rounds(each, inner)))
    return total


# ------------------------------------------------------------------ functions that call kernels


def calling(
    kernel: Kernel, kind: str, parameters: Sequence[str], before: Iterable[Statement], helpers: Sequence[Kernel] = ()
) -> Kernel:
    """A function that calls the kernel after these statements; its symbol begins with its kind and tells what it does.

    Functions that differ in names only are one, as those of operators with several overloads are, and so are kernels of
    functions that differ in more.  The parameters are numbers of 64 bits; the kernel becomes the last of its helpers,
    after those that the statements call.
    """
    helpers = *helpers, *kernel.helpers
    inner = replace(kernel, body=in_pieces(kernel.body), helpers=())
    call = Call(inner.name, tuple(map(_operand, inner.parameters)), "code", "i64")
    body = (*before, call, Return(Name("code", "i64")))
    scalars = tuple(Scalar(name, "i64") for name in parameters)
    made = Kernel(kind, scalars, body, helpers=(*helpers, inner))
    inner = replace(inner, name=f"{kind}_of_{_digest(inner)}")
    body = (*body[:-2], replace(call, function=inner.name), body[-1])
    return replace(made, name=f"{kind}_{_digest(made)}", body=body, helpers=(*helpers, inner))


def _digest(kernel: Kernel) -> str:
    return hashlib.sha256(nameless(kernel).encode()).hexdigest()[:20]


def _operand(parameter: Scalar | Buffer) -> Expression:
    if isinstance(parameter, Buffer):
        return Address(parameter.name, (index(0),))
    return Name(parameter.name, parameter.type)
