"""Settles which gradients there are, where that is known when compiling.

    %z : Tensor = prim::AutogradZero()
    %d : Tensor = aten::neg(%x)
    %da : Tensor = prim::GradOf[name="mul"](%z) …         %d : Tensor = aten::neg(%x)
    %db : Tensor = prim::GradOf[name="exp"](%d)     →     %2 : Tensor = aten::mul(%d, %y)
      block0():                                           return (%2)
        %2 : Tensor = aten::mul(%d, %y)
        -> (%2)
    %s : Tensor = prim::AutogradAdd(%da, %db)
    return (%s)

A formula all of whose gradients are missing gives missing ones, one that has them all runs without a question, and
sums leave out what is missing.  Whether inputs of the graph are missing is for the caller to say; where nothing is
known, and in loops for what they carry, the question stays for the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.rewrites import allowed
from engine.ir.rewriting.constant_folding import inline_block
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.views import IfView
from engine.lang.types import TensorType


class _Is(Enum):
    MISSING = "missing"
    THERE = "there"
    UNKNOWN = "unknown"


def specialize_autogradzero(graph: Graph, *, missing: Collection[int] = (), there: Collection[int] = ()) -> bool:
    """Specialise for inputs (by their numbers) that have no gradient, or surely have one; dead code goes if any did."""
    state = dict.fromkeys((graph.inputs[number] for number in missing), _Is.MISSING)
    state |= dict.fromkeys((graph.inputs[number] for number in there), _Is.THERE)
    changed = _Specializer(state).visit(graph.block)
    if changed:
        remove_dead_code(graph)
    return changed


class _Specializer:
    def __init__(self, state: dict[Value, _Is]) -> None:
        self.state = state

    def visit(self, block: Block) -> bool:
        changed = False
        for node in block.nodes():
            changed |= self._visit_node(node)
        return changed

    def _visit_node(self, node: Node) -> bool:
        rule = _RULES.get(node.kind)
        if rule is not None:
            return rule(self, node)
        changed = self._visit_blocks(node)
        for value in node.outputs:
            self.state[value] = _Is.UNKNOWN if node.blocks or not _is_computed(node) else _Is.THERE
        return changed

    def _visit_blocks(self, node: Node) -> bool:
        changed = False
        for inner in node.blocks:
            changed |= self.visit(inner)
        return changed

    def _of(self, value: Value) -> _Is:
        return self.state.get(value, _Is.UNKNOWN)

    def _all(self, values: Iterable[Value]) -> _Is:
        """The common state of all, or UNKNOWN."""
        found = {self._of(value) for value in values}
        return found.pop() if len(found) == 1 else _Is.UNKNOWN

    def _any_is_there(self, values: Sequence[Value]) -> bool | None:
        """True if any gradient is present, False if none is; None if only the run can tell."""
        if any(self._of(value) is _Is.THERE for value in values):
            return True
        return False if self._all(values) is _Is.MISSING else None

    # -- rules: True if they changed the graph

    def _zero(self, node: Node) -> bool:
        self.state[node.output] = _Is.MISSING
        return False

    def _formula(self, node: Node) -> bool:
        gradients = self._all(node.inputs)
        if gradients is _Is.MISSING and allowed(node, "prim::AutogradZero"):
            with node.graph.inserting_at(node, node.range):
                zero = node.graph.append("prim::AutogradZero").output
            self.state[zero] = _Is.MISSING
            for value in node.outputs:
                value.replace_all_uses_with(zero)
            node.destroy()
            return True
        changed = self.visit(node.blocks[0])
        if gradients is _Is.THERE and allowed(node, "its formula"):
            inline_block(node, node.blocks[0])
            return True
        return changed

    def _sum(self, node: Node) -> bool:
        a, b = node.inputs
        for one, other in ((a, b), (b, a)):
            if self._of(one) is _Is.MISSING and allowed(node, other):
                node.output.replace_all_uses_with(other)
                node.destroy()
                return True
        if self._all((a, b)) is not _Is.THERE or not allowed(node, "aten::add"):
            self.state[node.output] = _Is.THERE if self._any_is_there((a, b)) else _Is.UNKNOWN
            return False
        with node.graph.inserting_at(node, node.range):
            total = insert_op(node.graph, "aten::add", a, b)
        self.state[total] = _Is.THERE
        node.output.replace_all_uses_with(total)
        node.destroy()
        return True

    def _sum_to_size(self, node: Node) -> bool:
        if self._of(node.inputs[0]) is _Is.MISSING and allowed(node, node.inputs[0]):
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
            return True
        self.state[node.output] = self._of(node.inputs[0])
        return False

    def _question(self, node: Node) -> bool:
        answer = self._any_is_there(node.inputs)
        if answer is None or not allowed(node, str(answer)):
            return False
        with node.graph.inserting_at(node, node.range):
            node.output.replace_all_uses_with(insert_constant(node.graph, answer))
        node.destroy()
        return True

    def _branches(self, node: Node) -> bool:
        view = IfView(node)
        changed = self._visit_blocks(node)
        for output, *given in zip(view.outputs, view.then_outputs, view.else_outputs, strict=True):
            self.state[output] = self._all(given)
        return changed


def _is_computed(node: Node) -> bool:
    """True if the node surely returns a tensor; elements of containers may be missing."""
    if node.namespace != "aten" or node.kind in ("aten::__getitem__", "aten::wait"):
        return False
    return all(isinstance(value.type, TensorType) for value in node.outputs)


_RULES = {
    "prim::AutogradZero": _Specializer._zero,
    "prim::GradOf": _Specializer._formula,
    "prim::AutogradAdd": _Specializer._sum,
    "aten::_grad_sum_to_size": _Specializer._sum_to_size,
    "prim::AutogradAnyNonZero": _Specializer._question,
    "prim::If": _Specializer._branches,
}
