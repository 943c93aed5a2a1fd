"""Computes with sizes as numbers where a trace recorded them as tensors.

    %t : Long() = prim::NumToTensor(%n)                   %t : Long() = prim::NumToTensor(%n)
    %u : Long() = aten::mul(%t, %two)               →     %m : int = aten::mul(%n, %two)
    %k : int = aten::Int(%u)                              %u : Long() = aten::mul(%t, %two)
                                                          (uses of %k are uses of %m)

What only the tensors were for is left for `dce`.  Tensors that anything but arithmetic uses stay what they are: they
might be written to.  A quotient cut off towards zero is one rounded down where nothing can be negative.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import constant_int
from engine.ir.rewrites import allowed
from engine.lang.types import INT, TensorType

_ARITHMETIC: Final = {"aten::mul": "aten::mul", "aten::add": "aten::add", "aten::sub": "aten::sub"}
_QUOTIENTS: Final = ("aten::div", "aten::floor_divide")
_USERS: Final = frozenset((*_ARITHMETIC, *_QUOTIENTS, "aten::Int"))
_DEEPEST: Final = 100
_COUNTS: Final = ("aten::size", "aten::dim", "aten::len", "aten::numel")


def size_arithmetic(graph: Graph) -> bool:
    """Replace ints read from such tensors by arithmetic on numbers."""
    known: dict[Value, bool] = {}
    numbers: dict[Value, Value] = {}
    changed = False
    for node in graph.all_nodes():
        if node.kind != "aten::Int" or len(node.inputs) != 1 or not isinstance(node.input.type, TensorType):
            continue
        if node.output.has_uses and _is_sum(node.input, known) and allowed(node, "arithmetic of numbers"):
            node.output.replace_all_uses_with(_number(node.input, numbers))
            changed = True
    return changed


def _is_sum(value: Value, known: dict[Value, bool], depth: int = 0) -> bool:
    """True if the tensor is made of sizes, in ways that `_number` knows, and used for nothing else."""
    found = known.get(value)
    if found is None:
        found = known[value] = depth < _DEEPEST and _looks_like_sum(value, known, depth + 1)
    return found


def _looks_like_sum(value: Value, known: dict[Value, bool], depth: int) -> bool:
    if not isinstance(value.type, TensorType):
        return constant_int(value) is not None
    if any(use.user.kind not in _USERS for use in value.uses):
        return False
    node = value.node
    if node.kind == "prim::NumToTensor":
        return node.input.type is INT
    if node.kind in _ARITHMETIC:
        is_plain = all(constant_int(each) == 1 for each in node.inputs[2:])
        return is_plain and all(_is_sum(each, known, depth) for each in node.inputs[:2])
    return node.kind in _QUOTIENTS and _rounds_down(node) and _is_sum(node.inputs[0], known, depth)


def _rounds_down(node: Node) -> bool:
    divisor = constant_int(node.inputs[1])
    if divisor is None or divisor <= 0:
        return False
    mode = constant_value(node.inputs[2]) if len(node.inputs) > 2 else "floor" if node.kind != "aten::div" else None
    return mode == "floor" or (mode == "trunc" and _is_count(node.inputs[0]))


def _is_count(value: Value) -> bool:
    """True if the tensor is a size, or a part of one, and so not negative."""
    node = value.node
    if node.kind in _QUOTIENTS:
        return _is_count(node.inputs[0])
    return node.kind == "prim::NumToTensor" and node.input.node.kind in _COUNTS


def _number(value: Value, numbers: dict[Value, Value]) -> Value:
    """The number that the tensor holds, made behind the node that makes the tensor."""
    if not isinstance(value.type, TensorType):
        return value
    node = value.node
    if node.kind == "prim::NumToTensor":
        return node.input
    found = numbers.get(value)
    if found is None:
        first, second = (_number(each, numbers) for each in node.inputs[:2])
        kind = _ARITHMETIC.get(node.kind, "aten::floordiv")
        made = node.graph.create(kind, (first, second), [INT]).insert_after(node)
        made.range, made.inlined_from = node.range, node.inlined_from
        found = numbers[value] = made.output
    return found
