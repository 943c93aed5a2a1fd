"""Orders the results of If and Loop by their first use.

    %a : int, %b : int = prim::If(%c)                     %b : int, %a : int = prim::If(%c)
      block0():                                             block0():
        -> (%1, %2)                                 →         -> (%2, %1)
      block1():                                             block1():
        -> (%3, %4)                                           -> (%4, %3)
    %d : int = aten::add(%b, %a)                          %d : int = aten::add(%b, %a)

Unused results come last, in the order they had.  Then equal programs give equal graphs, whatever order the
front end met their variables in.
"""

from __future__ import annotations

from functools import cmp_to_key

from engine.ir.graph import Block, Graph, Use, Value
from engine.ir.rewrites import allowed
from engine.ir.views import IfView, LoopView


def canonicalize_outputs(graph: Graph) -> bool:
    """Reorder the results of control flow."""
    return _order_block(graph.block)


def _order_block(block: Block) -> bool:
    """Reorder from the last node to the first, since the order of later results decides first uses."""
    changed = False
    for node in block.reversed_nodes():
        if node.kind in ("prim::If", "prim::Loop"):
            order = _by_first_use(node.outputs)
            if order != sorted(order) and allowed(node, "the same with its results in the order of their use"):
                changed = True
                _reorder(IfView(node) if node.kind == "prim::If" else LoopView(node), order)
        for inner in node.blocks:
            changed |= _order_block(inner)
    return changed


def _reorder(view: IfView | LoopView, order: list[int]) -> None:
    if isinstance(view, IfView):
        view.reorder_results(order)
    else:
        view.reorder_carried(order)


def _by_first_use(values: list[Value]) -> list[int]:
    first = [_first_use(value) for value in values]

    def compare(a: int, b: int) -> int:
        mine, theirs = first[a], first[b]
        if mine is None or theirs is None:
            return (mine is None) - (theirs is None)
        return -1 if _is_before(mine, theirs) else int(_is_before(theirs, mine))

    return sorted(range(len(values)), key=cmp_to_key(compare))


def _first_use(value: Value) -> Use | None:
    first: Use | None = None
    for use in value.uses:
        if first is None or _is_before(use, first):
            first = use
    return first


def _is_before(a: Use, b: Use) -> bool:
    return a.offset < b.offset if a.user is b.user else a.user.is_before(b.user)
