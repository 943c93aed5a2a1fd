"""Takes the dimensions that convolutions are named after for granted, where another number would raise anyway.

    %1 : Tensor = aten::conv2d(%x, …)                  %1 : Tensor = aten::conv2d(%x, …)
    %2 : int = aten::dim(%1)                      →     %2 : int = prim::Constant[value=4]()
    %3 : bool = aten::ne(%2, %four)                     %3 : bool = aten::ne(%2, %four)
     = prim::If(%3) …                                    = prim::If(%3) …

For frozen modules: without the check of the dimensions, normalizations fold into convolutions.  A program that raises
for what has no batch no longer does; one that computes something else for it keeps its question.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Use, Value
from engine.ir.rewrites import allowed
from engine.ir.rewriting.number_facts import surely_raises

_DIMENSIONS: Final = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
_QUESTIONS: Final = ("aten::eq", "aten::ne", "aten::__not__")


def fold_conv_dims(graph: Graph) -> bool:
    """Replace `dim()` of a convolution's result by a constant."""
    changed = False
    for node in graph.find_all_nodes("aten::dim"):
        dimensions = _DIMENSIONS.get(node.input.node.kind)
        if dimensions is None or not _decides_whether_to_raise(node.output) or not allowed(node, str(dimensions)):
            continue
        with graph.inserting_at(node):
            node.output.replace_all_uses_with(insert_constant(graph, dimensions))
        node.destroy()
        changed = True
    return changed


def _decides_whether_to_raise(value: Value) -> bool:
    """True if nothing else depends on the value."""
    return all(_is_for_raising(use) for use in value.uses)


def _is_for_raising(use: Use) -> bool:
    node, block = use.user, use.user.block
    if block is not None and surely_raises(block):  # the number is part of the message
        return True
    if node.kind == "prim::Return" and block is not None and block.owner is not None:
        return block.owner.kind == "prim::If" and _decides_whether_to_raise(block.owner.outputs[use.offset])
    if node.kind == "prim::If" and any(surely_raises(inner) for inner in node.blocks):
        return True
    is_connective = node.kind == "prim::If" and all(_is_made_of_questions(inner) for inner in node.blocks)
    return (is_connective or node.kind in _QUESTIONS) and all(map(_decides_whether_to_raise, node.outputs))


def _is_made_of_questions(block: Block) -> bool:
    """True for the operands of `and` and `or`."""
    return all(node.kind in (*_QUESTIONS, "aten::dim", "prim::Constant") for node in block.nodes())
