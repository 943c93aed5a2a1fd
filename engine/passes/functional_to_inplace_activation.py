"""Replaces activations of values that only they use by in-place ones.

    %y : Tensor = aten::add(%x, %x, %1)                   %y : Tensor = aten::add(%x, %x, %1)
    %z : Tensor = aten::relu(%y)                    →     %z : Tensor = aten::relu_(%y)
    %r : Tensor = aten::exp(%z)                           %r : Tensor = aten::exp(%y)

Only where the argument is fresh memory that nobody else sees, of the same dtype as the result: `sigmoid` of ints gives
floats, so it needs a known floating-point dtype.  Inputs, views, and values that are used again or written to, stay;
so does what a loop would write to several times.  For graphs of which nobody wants a derivative: it may need what is
written over.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import is_activation, op_of
from engine.ir.rewrites import allowed
from engine.lang.types import TensorType

_GIVES_FLOATS: Final = ("aten::sigmoid", "aten::tanh")
"""Activations whose result is floating-point for whole numbers, too."""


def functional_to_inplace_activation(graph: Graph) -> bool:
    """Replace the activations that may write to their argument."""
    db, changed = AliasDb(graph), False
    for node in graph.all_nodes():
        if _may_be_written(node) and _owns_argument(node, db) and allowed(node, f"{node.kind}_"):
            changed |= _write(node)
    return changed


def _may_be_written(node: Node) -> bool:
    """True for an activation whose result has the dtype of its argument."""
    if not is_activation(node) or node.kind.endswith("_"):
        return False
    if node.kind not in _GIVES_FLOATS:
        return True
    given, result = node.inputs[0].type, node.output.type
    assert isinstance(given, TensorType)
    assert isinstance(result, TensorType)
    is_float = given.dtype is not None and given.dtype.is_floating_point
    return is_float and result.dtype in (None, given.dtype)


def _owns_argument(node: Node, db: AliasDb) -> bool:
    """True if the activation is the only user of fresh memory."""
    argument = node.inputs[0]
    if len(argument.uses) != 1 or not db.gives_fresh_memory(argument.node) or argument.node.kind == "prim::Constant":
        return False
    if db.has_writers(argument) or _may_run_again(node, argument):
        return False
    siblings = [value for value in argument.node.outputs if value is not argument]
    return not db.may_contain_alias(argument, siblings) and not db.escapes(argument)


def _may_run_again(node: Node, argument: Value) -> bool:
    """True if a loop is around the node but not around the node that makes its argument."""
    block = node.block
    while block is not None and block is not argument.node.block:
        if block.owner is None or block.owner.kind != "prim::If":
            return True
        block = block.owner.block
    return False


def _write(node: Node) -> bool:
    kind, op = node.kind, node.op
    node.kind, node.op = f"{kind}_", None
    if op_of(node) is not None:
        node.output.replace_all_uses_with(node.inputs[0])
        return True
    node.kind, node.op = kind, op
    return False
