"""Replaces an If that only chooses between two values by an operator.

    %r : int = prim::If(%c)                               %r : int = prim::IfThenElse(%c, %a, %b)
      block0():
        -> (%a)                                     →
      block1():
        -> (%b)

Constants of the branches go before it.  Branches that compute anything stay, since only one of them may run.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewrites import allowed
from engine.ir.views import IfView


def add_if_then_else(graph: Graph) -> bool:
    """Replace such Ifs, inner ones first, since an outer If can only be replaced once its branches are empty."""
    changed = False
    for node in reversed(graph.find_all_nodes("prim::If")):
        if node.outputs and _only_chooses(IfView(node)) and allowed(node, "prim::IfThenElse"):
            _replace(IfView(node))
            changed = True
    return changed


def _only_chooses(view: IfView) -> bool:
    return all(inner.kind == "prim::Constant" for block in view.node.blocks for inner in block.nodes())


def _replace(view: IfView) -> None:
    node, graph = view.node, view.node.graph
    for block in node.blocks:
        for inner in block.nodes():
            inner.move_before(node)
    for output, *given in zip(view.outputs, view.then_outputs, view.else_outputs, strict=True):
        with graph.inserting_at(node, node.range):
            choice = graph.append("prim::IfThenElse", [view.condition, *given], [output.type]).output
        name = output.name
        output.replace_all_uses_with(choice)
        output.set_debug_name("")
        choice.set_debug_name(name)
    node.destroy()
