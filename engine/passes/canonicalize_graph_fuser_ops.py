"""Writes operators the way the fuser reads them.

    %l : Tensor[] = aten::chunk(%x, %2, %1)               %a : Tensor, %b : Tensor =
    %a : Tensor, %b : Tensor = prim::ListUnpack(%l)  →       prim::ConstantChunk[chunks=2, dim=1](%x)

    %r : Tensor = aten::mul(%x, %c)      c = tensor(3)  →   %r : Tensor = aten::mul(%x, %3)

A chunk is only rewritten when its list is unpacked into as many tensors.  Dead code goes.
"""

from __future__ import annotations

from typing import Final

from engine.aten.values.tensor import Tensor
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.match import constant_int
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code

_ARITHMETIC: Final = ("aten::add", "aten::sub", "aten::mul", "aten::div")


def canonicalize_graph_fuser_ops(graph: Graph) -> bool:
    """Rewrite chunks and arithmetic with constant tensors."""
    changed = False
    for node in graph.all_nodes():
        if node.kind in _ARITHMETIC:
            changed |= _use_number(node)
        elif node.kind == "aten::chunk":
            changed |= _split_constantly(node)
    return remove_dead_code(graph) or changed


def _use_number(node: Node) -> bool:
    other = constant_value(node.inputs[1]) if len(node.inputs) > 1 else None
    if not isinstance(other, Tensor) or other.array.ndim != 0 or not allowed(node, "the same with a number"):
        return False
    with node.graph.inserting_at(node, node.range):
        node.replace_input(1, insert_constant(node.graph, other.item()))
    return True


def _split_constantly(node: Node) -> bool:
    count, dim = map(constant_int, node.inputs[1:])
    unpacks = [use.user for use in node.output.uses]
    if count is None or dim is None or not unpacks:
        return False
    if any(user.kind != "prim::ListUnpack" or len(user.outputs) != count for user in unpacks):
        return False
    if not allowed(node, "prim::ConstantChunk"):
        return False
    types = [value.type for value in unpacks[0].outputs]
    chunk = node.graph.create("prim::ConstantChunk", node.inputs[:1], types)
    chunk.set_attr("chunks", count).set_attr("dim", dim).insert_before(node)
    for user in unpacks:
        user.replace_all_uses_with(chunk)
    return True
