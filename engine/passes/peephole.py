"""Simplifies single nodes by what their inputs are.

    x * 1, x + 0, (x + 6) + 36      →   x, x, x + 42       for ints; constants go to the right
    t(t(x))                         →   x
    x is None                       →   False              where x cannot be None
    unchecked_cast(x)               →   x                  where it changes no type
    True if c else False            →   c
    x == x                          →   True               for ints, floats (nan too, as in PyTorch), bools, int lists
    x.dtype, x.dim(), x.size(0)     →   constants          where the type of x tells them
    x.type_as(y)                    →   x                  where the types tell that it is
    int(x / 1)                      →   x                  for ints
    len([a, b]), [a, b][0]          →   2, a               see `peephole_list_idioms`; dicts with constant keys, too

An If whose branches are never None gives no Optional.

Dead code goes if anything changed.
"""

from __future__ import annotations

from typing import Final

from engine.aten.kernels.shapes import normalized_index
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import (
    cannot_be_none,
    constant_bool,
    constant_int,
    is_int_arithmetic,
    must_be_none,
)
from engine.ir.rewrites import allowed, retype
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.rewriting.list_idioms import apply_list_idioms
from engine.ir.rewriting.peepholes import Rule, apply_rules
from engine.ir.views import IfView
from engine.lang.types import BOOL, FLOAT, INT, NONE, TENSOR, ListType, OptionalType, TensorType, Type

_EQUAL_TO_ITSELF: Final = (INT, FLOAT, BOOL, ListType(INT))


def peephole(graph: Graph, *, shapes: bool = True) -> bool:
    """Apply all rules once; without `shapes` only those that do not rely on shapes and dtypes in tensor types."""
    changed = apply_rules(graph, _TENSOR_RULES)
    if shapes:
        changed |= apply_rules(graph, _SHAPE_RULES)
    changed |= apply_list_idioms(graph, shapes=shapes)
    swapped = _put_constants_right(graph)
    changed |= apply_rules(graph, _SCALAR_RULES)
    changed |= _know_nones(graph)
    changed |= _narrow_results(graph)
    if changed:
        remove_dead_code(graph, keep_writes=True)
    return changed or swapped


def _know_nones(graph: Graph) -> bool:
    """Replace values that can only be None by the constant."""
    changed = False
    for node in graph.all_nodes():
        if node.kind == "prim::Constant":
            continue
        for output in node.outputs:
            if output.type is NONE and output.has_uses and allowed(node, "None"):
                with graph.inserting_at(node, node.range):
                    output.replace_all_uses_with(insert_constant(graph, None))
                changed = True
    return changed


def _narrow_results(graph: Graph) -> bool:
    """Let no result of an If be Optional that neither branch lets be None."""
    changed = False
    for node in graph.all_nodes():
        if node.kind != "prim::If":
            continue
        view = IfView(node)
        for output, *given in zip(view.outputs, view.then_outputs, view.else_outputs, strict=True):
            inner = output.type.element if isinstance(output.type, OptionalType) else None
            if inner is not None and all(value.type.is_subtype_of(inner) for value in given):
                changed |= retype(output, inner)
    return changed


# -- ints


def _put_constants_right(graph: Graph) -> bool:
    changed = False
    for node in graph.all_nodes():
        if node.kind not in ("aten::mul", "aten::add") or not is_int_arithmetic(node):
            continue
        first, second = node.inputs
        if constant_int(first) is not None and allowed(node, "the same with the constant on the right"):
            node.replace_input(0, second)
            node.replace_input(1, first)
            changed = True
    return changed


def _constant_operand(node: Node) -> int | None:
    """The constant second operand."""
    return constant_int(node.inputs[1]) if is_int_arithmetic(node) else None


def _times_one(node: Node) -> Value | None:
    return node.inputs[0] if _constant_operand(node) == 1 else None


def _plus(node: Node) -> Value | None:
    """`x + 0`, and sums with a constant of a sum with a constant."""
    constant = _constant_operand(node)
    if constant is None:
        return None
    inner = node.inputs[0].node
    if constant == 0:
        return node.inputs[0]
    delta = _constant_operand(inner) if inner.kind in ("aten::add", "aten::sub") else None
    if delta is None:
        return None
    total = _merged(node, inner, constant, delta)
    if total == 0:
        return inner.inputs[0]
    left = inner.inputs[0]
    return node.graph.append(node.kind, (left, insert_constant(node.graph, total)), [INT]).output


def _merged(node: Node, inner: Node, constant: int, delta: int) -> int:
    total = constant + delta if node.kind == inner.kind else constant - delta
    return (total + 2**63) % 2**64 - 2**63


# -- None, casts, conditions


def _none_check(node: Node) -> Value | None:
    for one, other in (node.inputs, reversed(node.inputs)):
        if must_be_none(one) and cannot_be_none(other):
            return insert_constant(node.graph, node.kind == "aten::__isnot__")
    return None


def _unwrapped(node: Node) -> Value | None:
    return node.input if cannot_be_none(node.input) else None


def _useless_cast(node: Node) -> Value | None:
    return node.input if _unshaped(node.input.type).is_subtype_of(_unshaped(node.output.type)) else None


def _unshaped(type: Type) -> Type:
    return TENSOR if isinstance(type, TensorType) else type


def _same_number(node: Node) -> Value | None:
    inner = node.inputs[0].node
    if inner.kind == "aten::div" and _constant_operand(inner) == 1:
        return inner.inputs[0]
    if node.inputs[0].node.kind == "prim::NumToTensor" and node.inputs[0].node.input.type == INT:
        return node.inputs[0].node.input
    return node.inputs[0] if len(node.inputs) == 1 and node.inputs[0].type == INT else None


def _equals_itself(node: Node) -> Value | None:
    if len(node.inputs) != 2 or node.inputs[0] is not node.inputs[1] or node.inputs[0].type not in _EQUAL_TO_ITSELF:
        return None
    return insert_constant(node.graph, node.kind == "aten::eq")


def _condition(node: Node) -> list[Value | None]:
    view = IfView(node)
    return [
        view.condition if constant_bool(then) is True and constant_bool(otherwise) is False else None
        for then, otherwise in zip(view.then_outputs, view.else_outputs, strict=True)
    ]


# -- tensors


def _transposed_twice(node: Node) -> Value | None:
    inner = node.input.node
    return inner.input if inner.kind == "aten::t" else None


def _known_type(node: Node) -> TensorType:
    type = node.inputs[0].type if node.inputs else None
    return type if isinstance(type, TensorType) else TENSOR


def _dtype(node: Node) -> Value | None:
    known = _known_type(node).dtype
    return None if known is None else insert_constant(node.graph, known.number)


def _device(node: Node) -> Value | None:
    known = _known_type(node).device
    is_told = known is not None and (known.type == "cpu" or known.index is not None)  # `cuda` is the current one
    return insert_constant(node.graph, known) if is_told else None


def _is_cuda(node: Node) -> Value | None:
    known = _known_type(node).device
    return None if known is None else insert_constant(node.graph, known.type == "cuda")


def _dim(node: Node) -> Value | None:
    known = _known_type(node).sizes
    return None if known is None else insert_constant(node.graph, len(known))


def _size(node: Node) -> Value | None:
    sizes = _known_type(node).sizes
    if sizes is None or len(node.inputs) != 2:
        return None
    index = constant_int(node.inputs[1])
    at = None if index is None else normalized_index(index, len(sizes))
    size = None if at is None else sizes[at]
    return None if size is None else insert_constant(node.graph, size)


def _type_as(node: Node) -> Value | None:
    one, other = (value.type for value in node.inputs)
    if not isinstance(one, TensorType) or not isinstance(other, TensorType) or None in (one.dtype, one.device):
        return None
    return node.inputs[0] if (one.dtype, one.device) == (other.dtype, other.device) else None


def _is_floating_point(node: Node) -> Value | None:
    known = _known_type(node).dtype
    return None if known is None else insert_constant(node.graph, known.is_floating_point)


_TENSOR_RULES: Final[dict[str, Rule]] = {
    "aten::t": _transposed_twice,
}
_SHAPE_RULES: Final[dict[str, Rule]] = {
    "prim::dtype": _dtype,
    "prim::device": _device,
    "prim::is_cuda": _is_cuda,
    "aten::dim": _dim,
    "aten::size": _size,
    "aten::type_as": _type_as,
    "aten::is_floating_point": _is_floating_point,
}
_SCALAR_RULES: Final[dict[str, Rule]] = {
    "prim::If": _condition,
    "aten::__is__": _none_check,
    "aten::__isnot__": _none_check,
    "prim::unchecked_unwrap_optional": _unwrapped,
    "aten::_unwrap_optional": _unwrapped,
    "prim::unchecked_cast": _useless_cast,
    "aten::Int": _same_number,
    "aten::ceil": _same_number,
    "aten::eq": _equals_itself,
    "aten::ne": _equals_itself,
    "aten::mul": _times_one,
    "aten::floordiv": _times_one,
    "aten::add": _plus,
    "aten::sub": _plus,
}
