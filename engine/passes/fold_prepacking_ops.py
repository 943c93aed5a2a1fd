"""Makes the objects of prepacked layers once.

    %p : …LinearOpContext = prepacked::linear_clamp_prepack(%w, %b, %n, %n)   →   %p : … = prim::Constant[value=…]()

Their weights and settings have to be constants.
"""

from __future__ import annotations

from engine.ir.constants import constant_inputs, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed
from engine.lang.errors import OperatorError


def fold_prepacking_ops(graph: Graph) -> bool:
    """Replace each such operator by its result; one that raises stays, to do so when it runs."""
    changed = False
    for node in graph.all_nodes():
        changed |= _is_prepacking(node) and _fold(graph, node)
    return changed


def _is_prepacking(node: Node) -> bool:
    return node.kind.startswith("prepacked::") and node.kind.endswith("_clamp_prepack")


def _fold(graph: Graph, node: Node) -> bool:
    inputs, entry = constant_inputs(node), op_of(node)
    if inputs is None or entry is None or not allowed(node, "its object as a constant"):
        return False
    try:
        made = entry.run(*inputs)
    except OperatorError:
        return False
    with graph.inserting_at(node, node.range):
        constant = insert_constant(graph, made, node.output.type)
    node.output.replace_all_uses_with(constant)
    node.destroy()
    return True
