"""Functions of the library that wrap kernels of groups: what `along` and `shaped` have in common.

In: an operator with examples of its arguments.  Out: the kernel that a group of this operator alone has, and functions
of words that call such kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.fuser.groups.from_graph import lower
from engine.fuser.ir.kernel import (
    Address,
    Buffer,
    Call,
    Expression,
    If,
    Kernel,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    View,
    apply,
    index,
)
from engine.fuser.ir.outlining import nameless
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
    """What tells a sample from others, but for sizes."""
    match sample:
        case Tensor(array=array):
            return "tensor", array.ndim
        case list():
            return "list", len(sample)
    return type(sample).__name__, sample


def _lies_in_order(op: Op, samples: Sequence[Any]) -> bool:
    for way in (np.asfortranarray, _last_turned, _channels_last):
        turned = [Tensor(way(each.array)) if isinstance(each, Tensor) else each for each in samples]
        result = op.compiled.run(*turned)
        if not isinstance(result, Tensor) or not result.array.flags.c_contiguous:
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
    graph.register_output(node.output)
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


def calling(found: Binding, kind: str, parameters: Sequence[str], before: Iterable[Statement]) -> Kernel:
    """A function that calls the kernel after these statements; its symbol begins with its kind and tells what it does.

    Functions that differ in names only are one, as those of operators with several overloads are.  The parameters are
    numbers of 64 bits; the kernel becomes the last of its helpers.
    """
    inner = replace(found.kernel, helpers=())
    call = Call(inner.name, tuple(map(_operand, inner.parameters)), "code", "i64")
    body = (*before, call, Return(Name("code", "i64")))
    scalars = tuple(Scalar(name, "i64") for name in parameters)
    made = Kernel(kind, scalars, body, helpers=(*found.kernel.helpers, inner))
    symbol = f"{kind}_{hashlib.sha256(nameless(made).encode()).hexdigest()[:20]}"
    inner = replace(inner, name=f"{symbol}_of")
    body = (*body[:-2], replace(call, function=inner.name), body[-1])
    return replace(made, name=symbol, body=body, helpers=(*found.kernel.helpers, inner))


def _operand(parameter: Scalar | Buffer) -> Expression:
    if isinstance(parameter, Buffer):
        return Address(parameter.name, (index(0),))
    return Name(parameter.name, parameter.type)
