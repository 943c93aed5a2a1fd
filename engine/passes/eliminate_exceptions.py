"""Takes for granted that nothing is raised.

     = prim::If(%c)                                       %2 : Tensor = aten::neg(%x)
      block0():
         = prim::RaiseException(%message, %class)
        -> ()                                       →
      block1():
        %2 : Tensor = aten::neg(%x)
        -> ()

An If of which one branch surely raises becomes the other one.  For graphs whose assertions are known to hold, since
what a failing one would have raised is lost; an exception outside of an If stays.  Dead code goes if anything changed.
"""

from __future__ import annotations

from engine.ir.graph import Block, Graph
from engine.ir.rewrites import allowed
from engine.ir.rewriting.constant_folding import inline_block
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.rewriting.number_facts import surely_raises


def eliminate_exceptions(graph: Graph) -> bool:
    """Drop the branches that raise."""
    changed = _drop_raising_branches(graph.block)
    if changed:
        remove_dead_code(graph)
    return changed


def _drop_raising_branches(block: Block) -> bool:
    changed = False
    for node in block.nodes():
        for inner in node.blocks:
            changed |= _drop_raising_branches(inner)
        if node.kind != "prim::If":
            continue
        calm = [inner for inner in node.blocks if not surely_raises(inner)]
        if len(calm) == 1 and allowed(node, "the branch that does not raise"):
            inline_block(node, calm[0])
            changed = True
    return changed
