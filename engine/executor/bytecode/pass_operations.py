"""Operations of nodes that only passes make: batched products, variadic operators, profiles, missing gradients.

In: a node.  Out: a function of its inputs' values.  A missing gradient is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.ir.graph import Node

Operation = Callable[..., Any]
_LEFT: Final = 0


def _run(name: str) -> Operation:
    found = table.find(name)
    assert found is not None, name
    return found.run


def _add_products(_: Node) -> Operation:
    """The sum of left times right: one product of the joined factors where all have the same shapes."""
    cat, mm, add = map(_run, ("aten::cat", "aten::mm", "aten::add.Tensor"))

    def add_products(*factors: Tensor) -> Tensor:
        half = len(factors) // 2
        left, right = factors[:half], factors[half:]
        if _have_one_shape(left) and _have_one_shape(right):
            joined: Tensor = mm(cat(list(left), 1), cat(list(right), 0))
            return joined
        total: Tensor = reduce(lambda total, product: add(total, product, 1), map(mm, left, right))
        return total

    return add_products


def _multiply_with_one(node: Node) -> Operation:
    """Every product with the common factor: one product with the others joined where all have the same shape."""
    cat, mm, split = map(_run, ("aten::cat", "aten::mm", "aten::split.Tensor"))
    is_left = node.attr("side") == _LEFT
    dim = 1 if is_left else 0

    def multiply(common: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        if not _have_one_shape(others):
            return tuple(mm(common, other) if is_left else mm(other, common) for other in others)
        joined = cat(list(others), dim)
        product = mm(common, joined) if is_left else mm(joined, common)
        return tuple(split(product, others[0].shape[dim], dim))

    return multiply


def _have_one_shape(tensors: tuple[Tensor, ...]) -> bool:
    first = tensors[0].shape
    return len(first) == 2 and first[0] > 0 and first[1] > 0 and all(tensor.shape == first for tensor in tensors[1:])


def _joined(name: str) -> Callable[[Node], Operation]:
    """`cat` or `stack` of all arguments but the last, the dimension."""

    def make(_: Node) -> Operation:
        run = _run(name)
        return lambda *values: run(list(values[:-1]), values[-1])

    return make


# -- gradients


def _add_gradients(_: Node) -> Operation:
    add = _run("aten::add.Tensor")

    def add_gradients(a: Tensor | None, b: Tensor | None) -> Tensor | None:
        if a is None or b is None:
            return a if b is None else b
        total: Tensor = add(a, b, 1)
        return total

    return add_gradients


def _is_any_there(_: Node) -> Operation:
    return lambda *values: any(value is not None for value in _gradients(values))


def _gradients(values: tuple[Any, ...]) -> Iterator[Any]:
    """The gradients, those in lists and tuples one by one."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _gradients(tuple(value))
        else:
            yield value


PASS_OPERATIONS: Final[dict[str, Callable[[Node], Operation]]] = {
    "prim::MMTreeReduce": _add_products,
    "prim::MMBatchSide": _multiply_with_one,
    "prim::VarConcat": _joined("aten::cat"),
    "prim::VarStack": _joined("aten::stack"),
    "prim::profile": lambda node: node.attr("profiled_type"),
    "prim::AutogradZero": lambda _: lambda: None,
    "prim::AutogradAdd": _add_gradients,
    "prim::AutogradAnyNonZero": _is_any_there,
}
