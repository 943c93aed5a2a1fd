"""Removes dropout that drops nothing.

    %train : bool = prim::Constant[value=0]()             %train : bool = prim::Constant[value=0]()
    %y : Tensor = aten::dropout(%x, %p, %train)     →     %z : Tensor = aten::relu(%x)
    %z : Tensor = aten::relu(%y)

That is its way to run outside of training: it gives its argument itself.  Where `train` is True, or only the run tells,
it stays.
"""

from __future__ import annotations

from typing import Final

from engine.ir.graph import Graph, Node
from engine.ir.match import asks_only, constant_bool
from engine.ir.rewrites import allowed

_DROPOUTS: Final = (
    "aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_", "aten::alpha_dropout",
    "aten::alpha_dropout_", "aten::feature_alpha_dropout", "aten::feature_alpha_dropout_",
)  # fmt: skip


def remove_dropout(graph: Graph) -> bool:
    """Replace the results of such dropouts by their arguments."""
    idle = [node for node in graph.all_nodes() if _drops_nothing(node) and allowed(node, node.inputs[0])]
    for node in idle:
        node.output.replace_all_uses_with(node.inputs[0])
        node.destroy()
    return bool(idle)


def _drops_nothing(node: Node) -> bool:
    if node.kind not in _DROPOUTS or not asks_only(node, "input", "self", "p", "train"):
        return False
    return constant_bool(node.inputs[2]) is False
