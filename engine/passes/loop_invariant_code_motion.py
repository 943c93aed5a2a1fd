"""Computes before a loop what is the same in every iteration.

    %r : int = prim::Loop(%n, %true, %x)                  %k : int = aten::mul(%a, %b)
      block0(%i : int, %y : int):                         %r : int = prim::Loop(%n, %true, %x)
        %k : int = aten::mul(%a, %b)                →       block0(%i : int, %y : int):
        %z : int = aten::add(%y, %k)                          %z : int = aten::add(%y, %k)
        -> (%true, %z)                                        -> (%true, %z)

A loop may not run at all: what could fail is moved only if the loop surely runs once, and nothing that the world
notices comes before it in the body.  What is random, touches memory that anybody writes to, or gives something new that
leaves the graph (one for each iteration) stays.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node
from engine.ir.order import is_inside
from engine.ir.rewrites import allowed
from engine.ir.views import LoopView
from engine.lang.types import BOOL, COMPLEX, FLOAT, INT

_NUMBERS: Final = (INT, FLOAT, BOOL, COMPLEX)
_NEVER_FAIL_ON_NUMBERS: Final = (
    "aten::add", "aten::sub", "aten::mul", "aten::neg", "aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt",
    "aten::ge", "aten::__not__", "aten::__and__", "aten::__or__", "aten::__xor__",
)  # fmt: skip
_NEVER_FAIL: Final = (
    "prim::Constant", "prim::TupleConstruct", "prim::TupleUnpack", "prim::ListConstruct", "prim::dtype",
    "prim::device", "aten::dim", "aten::__is__", "aten::__isnot__",
)  # fmt: skip


def loop_invariant_code_motion(graph: Graph) -> bool:
    """Move out of inner loops first, so that it can go on out of outer ones."""
    loops = graph.find_all_nodes("prim::Loop")
    db = AliasDb(graph) if loops else None
    changed = False
    for loop in reversed(loops):
        assert db is not None
        changed |= _hoist(LoopView(loop), db)
    return changed


def _hoist(view: LoopView, db: AliasDb) -> bool:
    surely_runs, changed = _runs_at_least_once(view), False
    for node in view.body.nodes():
        if (
            _is_invariant(node, view.body, db)
            and (surely_runs or _never_fails(node))
            and allowed(node, "the same before the loop")
        ):
            node.move_before(view.node)
            changed = True
        surely_runs = surely_runs and not db.has_side_effects(node) and not db.is_mutable(node)
    return changed


def _runs_at_least_once(view: LoopView) -> bool:
    count, condition = constant_value(view.max_trip_count), constant_value(view.initial_condition)
    return condition is True and isinstance(count, int) and count > 0


def _is_invariant(node: Node, body: Block, db: AliasDb) -> bool:
    if node.blocks or db.has_side_effects(node) or db.is_nondeterministic(node) or db.has_writers(node):
        return False
    if any(value.node.block is not None and is_inside(value.node, body) for value in node.inputs):
        return False
    return not any(is_mutable_type(value.type) and db.escapes(value) for value in node.outputs)


def _never_fails(node: Node) -> bool:
    if node.kind in _NEVER_FAIL:
        return True
    return node.kind in _NEVER_FAIL_ON_NUMBERS and all(value.type in _NUMBERS for value in node.inputs)
