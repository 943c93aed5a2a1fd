"""Facts that branches tell: numbers that values, or lengths that lists, are known to have.

In: a graph, what a compared number is about (`Subject`), and what to do where a fact holds (`Use`).  Out: whether
anything changed.

A comparison tells a fact to the branch that it lets through; `!=` tells the other one, `not`, `and` and `or` pass on
what their operands tell.  Where one branch raises, what comes after is told what the other one knew, else what both
did.  Bodies of loops are left alone, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.match import constant_bool, constant_int, is_int_arithmetic
from engine.ir.rewrites import allowed
from engine.ir.views import IfView
from engine.lang.records import dataclass
from engine.lang.types import BOOL

Facts = Mapping[Value, int]
Subject = Callable[[Value], Value | None]
"""The value that a compared number counts; None for one that tells nothing."""
Use = Callable[[Node, Facts], bool]
"""Rewrites a node by the facts; True if it did."""


def surely_raises(block: Block) -> bool:
    return any(node.kind == "prim::RaiseException" for node in block.nodes())


@dataclass(slots=True)
class Refinement:
    """One walk through a graph."""

    subject: Subject
    use: Use
    changed: bool = False

    def run(self, graph: Graph) -> bool:
        self._block(graph.block, {})
        return self.changed

    def _block(self, block: Block, facts: Facts) -> Facts:
        """Rewrite the block; gives what is known at its end."""
        for node in block.nodes():
            self.changed |= self.use(node, facts)
            if node.kind == "prim::If":
                facts = self._if(IfView(node), facts)
        self.changed |= self.use(block.return_node, facts)
        return facts

    def _if(self, view: IfView, facts: Facts) -> Facts:
        """The facts known after both branches."""
        told = [self._told(view.condition, truth) for truth in (True, False)]
        ends = [self._block(b, {**facts, **more}) for b, more in zip(view.node.blocks, told, strict=True)]
        calm = [end for block, end in zip(view.node.blocks, ends, strict=True) if not surely_raises(block)]
        if len(calm) == 1:
            return calm[0]
        self._same_results(view, told)
        return {value: number for value, number in ends[0].items() if ends[1].get(value) == number}

    def _same_results(self, view: IfView, told: list[Facts]) -> None:
        """`4 if x == 4 else x` is `x`."""
        for output, then, otherwise in zip(view.outputs, view.then_outputs, view.else_outputs, strict=True):
            for one, other, facts in ((then, otherwise, told[0]), (otherwise, then, told[1])):
                about = self.subject(other)
                is_same = about is other and other in facts and facts[other] == constant_int(one)
                if is_same and output.has_uses and allowed(view.node, other):
                    output.replace_all_uses_with(other)
                    self.changed = True

    def _told(self, condition: Value, truth: bool) -> Facts:
        """The facts that hold where the condition is (or is not) true."""
        node = condition.node
        if node.kind == "aten::__not__":
            return self._told(node.inputs[0], not truth)
        if node.kind == "prim::If":
            return self._told_by_either(IfView(node), condition.offset, truth)
        if node.kind not in ("aten::eq", "aten::ne") or len(node.inputs) != 2:
            return {}
        is_equal = truth == (node.kind == "aten::eq")
        if node.inputs[0].type == BOOL == node.inputs[1].type:
            return self._told_by_bools(node, is_equal)
        return self._told_by_ints(node) if is_equal and is_int_arithmetic(node) else {}

    def _told_by_bools(self, node: Node, is_equal: bool) -> Facts:
        for value, other in (node.inputs, reversed(node.inputs)):
            constant = constant_bool(other)
            if constant is not None and constant_bool(value) is None:
                return self._told(value, constant == is_equal)
        return {}

    def _told_by_ints(self, node: Node) -> Facts:
        for value, other in (node.inputs, reversed(node.inputs)):
            number, about = constant_int(other), self.subject(value)
            if number is not None and about is not None:
                return {about: number}
        return {}

    def _told_by_either(self, view: IfView, offset: int, truth: bool) -> Facts:
        """A result that one branch does not give is the other one's: `a and b` is `b if a else False`."""
        then, otherwise = view.then_outputs[offset], view.else_outputs[offset]
        if constant_bool(otherwise) is (not truth):
            return {**self._told(view.condition, True), **self._told(then, truth)}
        if constant_bool(then) is (not truth):
            return {**self._told(view.condition, False), **self._told(otherwise, truth)}
        return {}
