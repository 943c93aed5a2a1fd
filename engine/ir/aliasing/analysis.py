"""Walks a graph and finds which values may share memory, and which nodes write to it.

In: a graph, and the alias marks of its operators' schemas.  Out: `AliasFacts`.  Conservative: where it cannot tell,
values may alias and nodes may write.  One function for each kind of node that has no schema to tell (`_RULES`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.aten.dispatch.op import Op
from engine.ir.aliasing.facts import AliasFacts
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.clone import copy_graph
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.ir.match import callee_of
from engine.ir.ops import has_side_effects, hidden_writes, op_of, writes
from engine.ir.unit import Function
from engine.lang.schema import AliasInfo
from engine.lang.types import ListType, TupleType


def analyze(graph: Graph, *, loops_run: bool = False, into_calls: bool = False) -> AliasFacts:
    """The facts about all of the graph; with `into_calls` a call does what its callee does."""
    facts = AliasFacts()
    for value in graph.inputs:
        facts.set_wildcard(value)
    _Walk(facts, loops_run, callers=() if into_calls else None).block(graph.block)
    facts.connect_wildcards()
    return facts


def analyze_node(facts: AliasFacts, node: Node, *, loops_run: bool = False) -> None:
    """Add what one more node, with its blocks, tells."""
    _Walk(facts, loops_run).node(node)
    facts.connect_wildcards()


def may_write_silently(graph: Graph) -> bool:
    """May a node of the graph write to memory that would not run for another reason?  Quick to tell, and for most
    graphs the end of the question."""
    return any(_may_write(node) and not has_side_effects(node) for node in graph.all_nodes())


def _may_write(node: Node) -> bool:
    """All but `_RULES` that write and what has no rule and no schema; nodes in its blocks are asked themselves."""
    rule = _RULES.get(node.kind, _operator)
    if rule is not _operator:
        return rule in _WRITING
    return op_of(node) is None or writes(node)


_Rule = Callable[["_Walk", Node], None]


class _Walk:
    """The analysis on its way; `loops_run`: see Note [Loops that do not run].

    `is_part` holds in subgraphs, whose results nodes outside of them take apart.  `callers` are the functions whose
    bodies are being walked; None where calls may do anything.
    """

    def __init__(
        self, facts: AliasFacts, loops_run: bool, is_part: bool = False, callers: tuple[Function, ...] | None = None
    ) -> None:
        self.facts, self.loops_run, self.is_part, self.callers = facts, loops_run, is_part, callers

    def block(self, block: Block) -> None:
        for node in block.nodes():
            self.node(node)

    def node(self, node: Node) -> None:
        _RULES.get(node.kind, _operator)(self, node)


def _operator(walk: _Walk, node: Node) -> None:
    op = op_of(node)
    if op is not None:
        _Call(walk.facts, node, op).analyze()
    elif "Subgraph" in node.attributes:
        _subgraph(walk, node)
    else:
        _conservatively(walk, node)


def _fresh(walk: _Walk, node: Node) -> None:
    for value in node.outputs:
        walk.facts.fresh(value)


def _unknown(walk: _Walk, node: Node) -> None:
    """The outputs come out of a container."""
    for value in node.outputs:
        walk.facts.set_wildcard(value)


def _conservatively(walk: _Walk, node: Node) -> None:
    for value in node.inputs:
        walk.facts.write(node, value, with_contents=True)
        walk.facts.set_wildcard(value)
    _unknown(walk, node)


def _construct(walk: _Walk, node: Node) -> None:
    facts, container = walk.facts, node.output
    if not is_mutable_type(container.type):
        return
    uses = container.uses
    local = len(uses) == 1 and (_keeps_elements(uses[0]) or (_is_result(uses[0]) and not walk.is_part))
    facts.fresh(container, holds_unknown=not local)
    for value in node.inputs:
        if local:
            facts.contain(container, value)
        else:
            facts.set_wildcard(value)


def _same(walk: _Walk, node: Node) -> None:
    """Each output is what the input of its place is; further ones are new."""
    for output, given in zip(node.outputs, node.inputs, strict=False):
        walk.facts.point(output, given)
    for output in node.outputs[len(node.inputs) :]:
        walk.facts.fresh(output)


def _any_of(walk: _Walk, node: Node) -> None:
    """The outputs may be, or be parts of, any input."""
    for output in node.outputs:
        walk.facts.fresh(output)
        for given in node.inputs:
            walk.facts.point(output, given)


def _block_of(walk: _Walk, node: Node) -> None:
    """The outputs are what the block gives."""
    (block,) = node.blocks
    walk.block(block)
    for output, given in zip(node.outputs, block.outputs, strict=True):
        walk.facts.point(output, given)


def _subgraph(walk: _Walk, node: Node) -> None:
    """The node does what its subgraph does, at once."""
    _as_its_graph(walk, node, node.attr("Subgraph"), node.inputs, walk.callers)


def _call(walk: _Walk, node: Node) -> None:
    """The body of the callee, a copy for each call, or anything where bodies are not looked at."""
    callee = callee_of(node) if walk.callers is not None else None
    body = None if callee is None or callee in (walk.callers or ()) else callee.body
    if walk.callers is None or callee is None or body is None:
        _operator(walk, node)
        return
    inputs = node.inputs[1:] if node.kind == "prim::CallFunction" else node.inputs
    _as_its_graph(walk, node, copy_graph(body), inputs, (*walk.callers, callee))


def _as_its_graph(
    walk: _Walk, node: Node, graph: Graph, inputs: Sequence[Value], callers: tuple[Function, ...] | None
) -> None:
    facts = walk.facts
    for inner, given in zip(graph.inputs, inputs, strict=True):
        facts.point(inner, given)
    _Walk(facts, walk.loops_run, True, callers).block(graph.block)
    for output, given in zip(node.outputs, graph.outputs, strict=False):
        facts.point(output, given)
    for writer in graph.all_nodes():
        if writer in facts.writes:
            facts.write_as(node, writer)


def _if(walk: _Walk, node: Node) -> None:
    for block in node.blocks:
        walk.block(block)
        for output, given in zip(node.outputs, block.outputs, strict=True):
            walk.facts.point(output, given)


def _loop(walk: _Walk, node: Node) -> None:
    (body,) = node.blocks
    facts = walk.facts
    # Note [Loops that do not run]
    # A loop's result may also be what went in, and the next iteration's input what the last one gave.
    # PyTorch leaves both out, and therefore removes `y.add_(1)` after `y = a` and a loop that may assign y:
    # `loops_run` does the same.  Of a loop that runs at least once the result is only what an iteration gave.
    for inner, initial in zip(body.inputs[1:], node.inputs[2:], strict=True):
        facts.point(inner, initial)
    walk.block(body)
    for inner, output, given in zip(body.inputs[1:], node.outputs, body.outputs[1:], strict=True):
        facts.point(output, given)
        if walk.loops_run:
            continue
        facts.point(inner, given)
        if not _runs_at_least_once(node):
            facts.point(output, inner)


def _set_attr(walk: _Walk, node: Node) -> None:
    walk.facts.write(node, node.inputs[0])
    walk.facts.set_wildcard(node.inputs[1])


def _fork(walk: _Walk, node: Node) -> None:
    for value in node.inputs:
        walk.facts.set_wildcard(value)
    _fresh(walk, node)


def _add_in_place(walk: _Walk, node: Node) -> None:
    """`list += more` gives the list, which its schema does not say.  `loops_run` goes by the schema, as the reference
    does: there of `b = a; b += x; b += y` the second write is lost to who looks at `a`."""
    _operator(walk, node)
    if isinstance(node.output.type, ListType) and not walk.loops_run:
        walk.facts.point(node.output, node.inputs[0])


def _wait(walk: _Walk, node: Node) -> None:
    """The forked graph may have written to anything that it was given, which is all wildcards."""
    walk.facts.write_to_wildcards(node)
    _unknown(walk, node)


class _Call:
    """One node being analysed by the alias marks of its schema."""

    def __init__(self, facts: AliasFacts, node: Node, op: Op) -> None:
        self.facts, self.node, self.op, self.schema = facts, node, op, op.schema
        self.members: dict[str, list[Value]] = {}
        self.elements: dict[str, list[Value]] = {}

    def analyze(self) -> None:
        for argument, value in zip(self.schema.arguments, self.node.inputs, strict=False):
            if argument.alias is not None and is_mutable_type(value.type):
                self._take(argument.alias, value)
        for value in self.node.inputs[len(self.schema.arguments) :]:
            self.facts.set_wildcard(value)
        for value in hidden_writes(self.node):
            self.facts.write(self.node, value)
        if self.op.hands_on:
            for value in self.node.outputs:
                self._hand_on(value)
            return
        marks = [returned.alias for returned in self.schema.returns]
        for index, value in enumerate(self.node.outputs):
            self._give(marks[index] if index < len(marks) else None, value)

    def _take(self, alias: AliasInfo, value: Value) -> None:
        for name in alias.before:
            self.members.setdefault(name, []).append(value)
        if alias.is_write:
            self.facts.write(self.node, value)
        if "*" in alias.after:
            self.facts.set_wildcard(value)
        for inner in alias.elements:
            for name in inner.before:
                self.elements.setdefault(name, []).append(value)
            if inner.is_write:
                self.facts.write(self.node, value, with_contents=True)

    def _give(self, alias: AliasInfo | None, value: Value) -> None:
        if not is_mutable_type(value.type):
            return
        if alias is None:
            self.facts.fresh(value)
            return
        if alias.is_wildcard:
            self.facts.set_wildcard(value)
        held = any(inner.before or inner.after for inner in alias.elements)
        self.facts.fresh(value, holds_unknown=not (alias.before or alias.after) and not held)
        for name in alias.before | alias.after:
            self._alias(value, name)
        for inner in alias.elements:
            for name in inner.before | inner.after:
                self._hold(value, name)

    def _hand_on(self, value: Value) -> None:
        """The output may be, or hold, any tensor that the node takes."""
        self.facts.fresh(value)
        for source in self.node.inputs:
            if isinstance(source.type, ListType) == isinstance(value.type, ListType):
                self.facts.point(value, source)
            elif isinstance(source.type, ListType):
                self.facts.set_wildcard(value)
            else:
                self.facts.contain(value, source)

    def _alias(self, value: Value, name: str) -> None:
        for source in self.members.get(name, ()):
            self.facts.point(value, source)
        if self.elements.get(name):
            self.facts.set_wildcard(value)

    def _hold(self, value: Value, name: str) -> None:
        """The output is a container of what that set names."""
        if name == "*" or self.elements.get(name):
            self.facts.contain_anything(value)
        for source in self.members.get(name, ()):
            self.facts.contain(value, source)


def _runs_at_least_once(loop: Node) -> bool:
    count, condition = map(constant_value, loop.inputs[:2])
    return condition is True and isinstance(count, int) and count > 0


_READ_ONLY_LIST_USERS: Final = ("aten::cat", "aten::stack", "aten::vstack", "aten::hstack", "aten::dstack")


def _keeps_elements(use: Use) -> bool:
    """True if this only use of a container leaves its elements where they are."""
    return use.user.kind in _READ_ONLY_LIST_USERS and isinstance(use.user.inputs[use.offset].type, ListType)


def _is_result(use: Use) -> bool:
    """True if this use of a tuple or list is to be the graph's result, so that nothing in the graph reads it."""
    block, type = use.user.block, use.user.inputs[use.offset].type
    is_return = use.user.kind == "prim::Return" and block is not None and block.owner is None
    return is_return and isinstance(type, (TupleType, ListType))


_FRESH: Final = (
    "Constant Uninitialized CreateObject AutogradZero AutogradAnyNonZero AutogradAllNonZero AutogradAllZero "
    "EmptyListLiteral MMTreeReduce MMBatchSide FusedConcat VarConcat VarStack BroadcastSizes ReturnSizes ChunkSizes "
    "Closure Function Print TimePoint AddStatValue isinstance rangelist annotate"
)
_EXTRACTORS: Final = "ListUnpack TupleUnpack TupleIndex TupleSlice DictIndex GetAttr Load"
_CONSTRUCTORS: Final = "ListConstruct TupleConstruct NamedTupleConstruct DictConstruct"
_SAME: Final = (
    "unchecked_cast unchecked_unwrap_optional profile profile_ivalue TypeCheck RequiresGradCheck Guard BailOut"
)


def _rows(kinds: str, rule: _Rule) -> dict[str, _Rule]:
    return dict.fromkeys((f"prim::{kind}" for kind in kinds.split()), rule)


_RULES: Final[dict[str, _Rule]] = {
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::GradOf": _block_of,
    "prim::SetAttr": _set_attr,
    "prim::CallFunction": _call,
    "prim::CallMethod": _call,
    "prim::fork": _fork,
    "prim::awaitable": _fork,
    "aten::wait": _wait,
    "prim::awaitable_wait": _wait,
    "aten::add_": _add_in_place,
    **_rows(_CONSTRUCTORS, _construct),
    **_rows(_FRESH, _fresh),
    **_rows(_EXTRACTORS, _unknown),
    **_rows(_SAME, _same),
    **_rows("ConstantChunk BroadcastingChunk AutogradAdd", _any_of),
}
"""Operators go by the marks of their schema; whatever else there is may do anything to what it is given."""

_WRITING: Final = (_set_attr, _call, _wait, _add_in_place)
"""The rules that may find writes; those of control flow leave that to the nodes in their blocks."""
