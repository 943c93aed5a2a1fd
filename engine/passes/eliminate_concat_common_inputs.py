"""Lets a concatenation go on from a shorter one.

    %1 : Tensor = prim::VarConcat(%a, %b, %dim)           %1 : Tensor = prim::VarConcat(%a, %b, %dim)
    %2 : Tensor = prim::VarConcat(%a, %b, %c, %dim) →     %2 : Tensor = prim::VarConcat(%1, %c, %dim)

The shorter one has to come before it in the same block or around it, join the same tensors first (or last) along the
same dimension, and nobody may write to it or to what it joins.  `use_variadic` makes the nodes that this looks at.
"""

from __future__ import annotations

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.rewrites import allowed

_Joined = tuple[Value | bool, ...]
"""True, the dimension and the tensors; False, the dimension and the tensors from the last to the first."""


def eliminate_concat_common_inputs(graph: Graph) -> bool:
    """Reuse the longest one that fits, beginnings before ends."""
    if graph.find_node("prim::VarConcat") is None:
        return False
    return _reuse(graph.block, AliasDb(graph), {})


def _reuse(block: Block, db: AliasDb, outer: dict[_Joined, Value]) -> bool:
    known, changed = dict(outer), False
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _reuse(inner, db, known)
        if node.kind != "prim::VarConcat" or db.has_writers(node):
            continue
        tensors = tuple(node.inputs[:-1])
        changed |= _shorten(node, known)
        known.setdefault((True, node.inputs[-1], *tensors), node.output)
        known.setdefault((False, node.inputs[-1], *reversed(tensors)), node.output)
    return changed


def _shorten(node: Node, known: dict[_Joined, Value]) -> bool:
    *tensors, dim = node.inputs
    for from_start in (True, False):
        ordered = tensors if from_start else tensors[::-1]
        for count in range(len(tensors) - 1, 1, -1):
            found = known.get((from_start, dim, *ordered[:count]))
            if found is not None and allowed(node, found):
                kept = [found, *ordered[count:]]
                _set_inputs(node, [*(kept if from_start else kept[::-1]), dim])
                return True
    return False


def _set_inputs(node: Node, inputs: list[Value]) -> None:
    node.remove_inputs_from(0)
    for value in inputs:
        node.add_input(value)
