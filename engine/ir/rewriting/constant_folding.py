"""Computes when compiling what does not depend on the inputs.

In: a graph, and whether values of mutable types take part.  Out: the same graph, with nodes whose inputs are
constants replaced by constants, the taken branch in place of an If with a constant condition, loops that
never run removed, and results of control flow that do not depend on it drawn out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.constants import constant_key, constant_value
from engine.ir.evaluate import evaluate, insert_result
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import has_side_effects, is_nondeterministic
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.views import IfView, LoopView
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.ir import printer
else:
    printer = deferred("engine.ir.printer")

_NEVER_RUN = (
    "prim::Constant", "prim::AutogradZero", "prim::Uninitialized", "prim::unchecked_unwrap_optional",
)  # fmt: skip


def fold_constants(graph: Graph, *, immutable_types_only: bool = False, loops_run: bool = False) -> bool:
    """Fold what can be folded, then remove dead code (`loops_run` as there); True if anything was folded."""
    folding = _Folding(graph, immutable_types_only)
    folding.fold_block(graph.block)
    if folding.changed:
        remove_dead_code(graph, loops_run=loops_run)
    return folding.changed


class _Folding:
    def __init__(self, graph: Graph, immutable_types_only: bool) -> None:
        self.db = None if immutable_types_only else AliasDb(graph)
        self.changed = False

    def fold_block(self, block: Block) -> None:
        for node in block.nodes():
            if node.kind == "prim::If":
                self._fold_if(IfView(node))
            elif node.kind == "prim::Loop":
                self._fold_loop(LoopView(node))
            elif self._may_run(node):
                self._fold_node(node)
            else:
                self._fold_blocks(node)

    def _fold_blocks(self, node: Node) -> None:
        for block in node.blocks:
            self.fold_block(block)

    def _may_run(self, node: Node) -> bool:
        if node.blocks or node.kind in _NEVER_RUN or not node.outputs:
            return False
        if any(value.node.kind != "prim::Constant" for value in node.inputs):
            return False
        if node.kind == "aten::device" and len(node.inputs) > 1:
            return False  # left to the program, as the original does
        return not has_side_effects(node) and not is_nondeterministic(node) and self._is_unwritten(node)

    def _is_unwritten(self, node: Node) -> bool:
        if self.db is not None:
            return not self.db.has_writers(node)
        return not any(is_mutable_type(value.type) for value in (*node.inputs, *node.outputs))

    def _fold_node(self, node: Node) -> None:
        results = evaluate(node)
        if results is None or not allowed(node, lambda: ", ".join(map(printer.constant_text, results))):
            return
        for output, result in zip(node.outputs, results, strict=True):
            output.replace_all_uses_with(insert_result(node, output, result))
        self.changed = True

    def _fold_if(self, view: IfView) -> None:
        condition = constant_value(view.condition)
        if isinstance(condition, bool) and allowed(view.node, "the branch that it takes"):
            taken = view.then_block if condition else view.else_block
            self.fold_block(taken)
            inline_block(view.node, taken)
            self.changed = True
            return
        self._fold_blocks(view.node)
        for offset in reversed(range(len(view.outputs))):
            same = _same_result(view, offset)
            if same is not None and not allowed(view.node, same):
                if not same.has_uses and same.node.kind == "prim::Constant":
                    same.node.destroy()
            elif same is not None:
                view.outputs[offset].replace_all_uses_with(same)
                view.remove_result(offset)
                self.changed = True

    def _fold_loop(self, view: LoopView) -> None:
        if _never_runs(view) and allowed(view.node, view.carried_inputs):
            for output, given in zip(view.outputs, view.carried_inputs, strict=True):
                output.replace_all_uses_with(given)
            view.node.destroy()
            self.changed = True
            return
        self.fold_block(view.body)
        for offset in reversed(range(len(view.outputs))):
            inner = view.body_carried_inputs[offset]
            if inner is not view.body_carried_outputs[offset] or not allowed(view.node, view.carried_inputs[offset]):
                continue
            for value in (view.outputs[offset], inner):
                value.replace_all_uses_with(view.carried_inputs[offset])
            view.remove_carried(offset)
            self.changed = True


def inline_block(node: Node, block: Block) -> None:
    """Put what one of the node's blocks does in place of the node."""
    for inner in block.nodes():
        inner.move_before(node)
    for output, given in zip(node.outputs, block.outputs, strict=True):
        output.replace_all_uses_with(given)
    node.destroy()


def _same_result(view: IfView, offset: int) -> Value | None:
    """The value both branches return: one from outside, or equal constants (then a new one before the node)."""
    then, otherwise = view.then_outputs[offset], view.else_outputs[offset]
    if then is otherwise:
        return then
    if then.node.kind != "prim::Constant" or otherwise.node.kind != "prim::Constant":
        return None
    key = constant_key(then.node)
    if key is None or key != constant_key(otherwise.node):
        return None
    copy = view.node.graph.create("prim::Constant", (), [then.type]).copy_attributes(then.node)
    return copy.insert_before(view.node).output


def _never_runs(view: LoopView) -> bool:
    count, condition = constant_value(view.max_trip_count), constant_value(view.initial_condition)
    return condition is False or (isinstance(count, int) and count <= 0)
