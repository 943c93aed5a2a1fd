"""Multiplies transposed matrices instead of transposing their product.

    %1 : Tensor = aten::mm(%a, %b)                        %3 : Tensor = aten::t(%b)
    %2 : Tensor = aten::t(%1)                       →     %4 : Tensor = aten::t(%a)
                                                          %2 : Tensor = aten::mm(%3, %4)

The product must have no other use.  A weight that a program multiplies with as `w.t()` gets a gradient of this kind;
its rows are then contiguous, like those of the weight.
"""

from __future__ import annotations

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node
from engine.ir.match import asks_only
from engine.ir.rewrites import allowed
from engine.lang.types import TENSOR


def transpose_products(graph: Graph) -> bool:
    """Rewrite each transposed product."""
    db: AliasDb | None = None
    changed = False
    for node in graph.find_all_nodes("aten::t"):
        product = node.input.node
        if product.kind != "aten::mm" or not asks_only(product, "self", "mat2"):
            continue
        if product.block is not node.block or len(product.output.uses) != 1:
            continue
        db = db or AliasDb(graph)
        if not db.has_writers(product) and allowed(node, "a product of transposed matrices"):
            _rewrite(node, product)
            changed = True
    return changed


def _rewrite(node: Node, product: Node) -> None:
    graph = node.graph
    with graph.inserting_at(product, product.range):
        factors = [graph.append("aten::t", [each], [TENSOR]).output for each in reversed(product.inputs)]
        made = graph.append("aten::mm", factors, [node.output.type]).output
    name = node.output.name
    node.output.set_debug_name("")
    made.set_debug_name(name)
    node.output.replace_all_uses_with(made)
    node.destroy()
    product.destroy()
