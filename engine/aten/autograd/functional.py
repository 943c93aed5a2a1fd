"""Whole tables of derivatives of functions, and products with them.

In: a function of tensors, where to take its derivatives.  Out: tensors, nested as inputs and outputs are: one alone
stays alone, several are a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.aten.autograd.engine import grad
from engine.aten.autograd.node import detached_alias
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import enable_grad
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError, OperatorTypeError

Function = Callable[..., Any]
Nested = Any


def jacobian(func: Function, inputs: Nested, create_graph: bool = False, strict: bool = False) -> Nested:
    """Derivatives of every element of the outputs by every element of the inputs: (*output, *input)."""
    given, one_input = _listed(inputs, "inputs", "jacobian")
    outputs, one_output, leaves = _called(func, given, create_graph, strict)
    table = [_rows(output, leaves, create_graph, strict) for output in outputs]
    rows = [row[0] if one_input else tuple(row) for row in table]
    return rows[0] if one_output else tuple(rows)


def _rows(output: Tensor, leaves: Sequence[Tensor], create_graph: bool, strict: bool) -> list[Tensor]:
    """The derivatives of one output by each input."""
    found: list[list[Tensor]] = [[] for _ in leaves]
    for i in range(output.array.size):
        start = np.zeros(output.array.shape, output.array.dtype)
        start.reshape(-1)[i] = 1
        for place, part in enumerate(_grads([output], leaves, [Tensor(start)], create_graph, strict)):
            found[place].append(part)
    shapes = [[*output.shape, *leaf.shape] for leaf in leaves]
    return [
        run("stack", parts, 0).reshape(shape) if parts else Tensor(np.zeros(shape, leaf.array.dtype))
        for parts, shape, leaf in zip(found, shapes, leaves, strict=True)
    ]


def hessian(func: Function, inputs: Nested, create_graph: bool = False, strict: bool = False) -> Nested:
    """Second derivatives of a function with one number as its result."""
    given, one = _listed(inputs, "inputs", "hessian")

    def first(*values: Tensor) -> Any:
        result = func(*values)
        _check_one_number(result)
        found = _grads([result], values, None, True, strict)
        return found[0] if one else tuple(found)

    return jacobian(first, given[0] if one else tuple(given), create_graph, strict)


def vjp(
    func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False
) -> tuple[Nested, Nested]:
    """The outputs, and the vector times the Jacobian."""
    given, one_input = _listed(inputs, "inputs", "vjp")
    outputs, one_output, leaves = _called(func, given, create_graph, strict)
    found = _grads(outputs, leaves, _vectors(v, outputs), create_graph, strict)
    return _nested(outputs, one_output, create_graph), _nested(found, one_input, create_graph)


def jvp(
    func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False
) -> tuple[Nested, Nested]:
    """The outputs, and the Jacobian times the vector: the derivative of a vjp by its vector."""
    given, _ = _listed(inputs, "inputs", "jvp")
    outputs, one_output, leaves = _called(func, given, create_graph, strict)
    directions = _vectors(v, given)
    probes = [_leaf(Tensor(np.zeros(o.array.shape, o.array.dtype))) for o in outputs]
    with enable_grad():
        pulled = grad(outputs, leaves, probes, create_graph=True, allow_unused=True)
    used = [(g, d) for g, d in zip(pulled, directions, strict=True) if g is not None and g.requires_grad]
    found = _grads([g for g, _ in used], probes, [d for _, d in used], create_graph, strict) if used else [
        Tensor(np.zeros(o.array.shape, o.array.dtype)) for o in outputs
    ]  # fmt: skip
    return _nested(outputs, one_output, create_graph), _nested(found, one_output, create_graph)


def vhp(
    func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False
) -> tuple[Nested, Nested]:
    """The result, and the vector times the Hessian."""
    given, one = _listed(inputs, "inputs", "vhp")
    outputs, _, leaves = _called(func, given, create_graph, strict)
    _check_one_number(outputs[0])
    first = _grads(outputs, leaves, None, True, strict)
    directions = _vectors(v, given)
    used = [(g, d) for g, d in zip(first, directions, strict=True) if g.requires_grad]
    found = _grads([g for g, _ in used], leaves, [d for _, d in used], create_graph, strict) if used else [
        Tensor(np.zeros(leaf.array.shape, leaf.array.dtype)) for leaf in leaves
    ]  # fmt: skip
    return _nested(outputs, True, create_graph), _nested(found, one, create_graph)


hvp = vhp
"""The Hessian is symmetric."""

# ------------------------------------------------------------------ inputs and outputs


def _listed(values: Nested, name: str, of: str) -> tuple[list[Tensor], bool]:
    one = not isinstance(values, tuple)
    listed = [values] if one else list(values)
    for i, value in enumerate(listed):
        if not isinstance(value, Tensor):
            place = "" if one else f" the {i}th element of"
            raise OperatorTypeError(
                f"The {name} given to {of} must be either a Tensor or a tuple of Tensors but{place} the given {name} "
                f"has type {type(value).__name__}."
            )
    return listed, one


def _leaf(tensor: Tensor) -> Tensor:
    leaf = detached_alias(tensor)
    leaf.requires_grad = True
    return leaf


def _called(
    func: Function, given: Sequence[Tensor], create_graph: bool, strict: bool
) -> tuple[list[Tensor], bool, list[Tensor]]:
    """The outputs, True if there is a single one, and the inputs that they were computed from."""
    with enable_grad():
        kept = [t.view_as(t) if create_graph and t.requires_grad else _leaf(t) for t in given]
        result = func(*kept)
    outputs, one = _listed(result, "outputs", "the user-provided function")
    if strict and not all(output.requires_grad for output in outputs):
        raise OperatorError("an output of the function does not depend on its inputs, which strict=True refuses")
    return outputs, one, kept


def _grads(
    outputs: Sequence[Tensor],
    leaves: Sequence[Tensor],
    starts: Sequence[Tensor] | None,
    create_graph: bool,
    strict: bool,
) -> list[Tensor]:
    """Gradients, with zeros where nothing depends on the input."""
    used = [i for i, output in enumerate(outputs) if output.requires_grad]
    chosen = None if starts is None else [starts[i] for i in used]
    found: Sequence[Tensor | None] = [None] * len(leaves)
    if used:
        with enable_grad():
            found = grad([outputs[i] for i in used], list(leaves), chosen, True, create_graph, True)
    if strict and any(part is None for part in found):
        raise OperatorError("an output is independent of an input, which strict=True refuses")
    return [
        Tensor(np.zeros(leaf.array.shape, leaf.array.dtype)) if part is None else part
        for part, leaf in zip(found, leaves, strict=True)
    ]


def _vectors(given: Nested, like: Sequence[Tensor]) -> list[Tensor]:
    """The vectors of a product, checked against the shapes of their factors."""
    if given is None:
        if len(like) != 1 or math.prod(like[0].shape) != 1:
            raise OperatorError("The vector v can only be None if there is one number that it belongs to.")
        return [Tensor(np.ones(like[0].array.shape, like[0].array.dtype))]
    vectors, _ = _listed(given, "v", "the product")
    shapes = [tuple(t.shape) for t in vectors], [tuple(t.shape) for t in like]
    if shapes[0] != shapes[1]:
        raise OperatorError(f"v has invalid size: should be {shapes[1]} but got {shapes[0]}.")
    return vectors


def _check_one_number(result: Any) -> None:
    if not isinstance(result, Tensor) or result.array.size != 1:
        raise OperatorError("The Tensor returned by the function given to hessian should contain a single element")


def _nested(tensors: Sequence[Tensor], one: bool, create_graph: bool) -> Nested:
    shown = [t if create_graph else t.detach() for t in tensors]
    return shown[0] if one else tuple(shown)
