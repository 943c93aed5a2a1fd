"""Checks that a graph is well made.

In: a graph.  Out: nothing, or an AssertionError that prints the node at fault.  Linear in the size of the
graph, so that tests run it after every pass.  Checked: each value is used only where it is in scope, uses
and inputs agree both ways, every node has one place and one owner, positions rise, and control flow has
the blocks, arities and types it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.lang.types import ANY, BOOL, COMPLEX, FLOAT, INT, TensorType, Type, members_of


def verify(graph: Graph) -> None:
    """Raise AssertionError unless the graph is well made."""
    assert graph.block.owner is None, "the top block hangs on a node"
    scope: set[Value] = set()
    known: set[Value] = set()
    _verify_block(graph, graph.block, scope, known)
    for value in known:
        _verify_uses(value)
    for name, value in graph._names.by_name.items():
        assert value.name == name, f"%{name} is the name of {value!r}"
    point = graph.insert_point
    assert point.block is not None, f"the insert point {point!r} is in no block"


def _verify_block(graph: Graph, block: Block, scope: set[Value], known: set[Value]) -> None:
    """`scope` holds what is defined so far; what this block defines leaves it at the end."""
    defined: list[Value] = []
    _verify_node(graph, block, block.param_node, None, scope)
    _define(block.param_node, scope, defined, known)
    previous = block.param_node
    for node in block.nodes():
        _verify_node(graph, block, node, previous, scope)
        for inner in node.blocks:
            assert inner.owner is node, f"a block of another node hangs on\n{node}"
            _verify_block(graph, inner, scope, known)
        check = _CHECKS.get(node.kind)
        if check is not None:
            check(node)
        _define(node, scope, defined, known)
        previous = node
    _verify_node(graph, block, block.return_node, previous, scope)
    scope.difference_update(defined)


def _verify_node(graph: Graph, block: Block, node: Node, previous: Node | None, scope: set[Value]) -> None:
    assert node.graph is graph, f"belongs to another graph:\n{node}"
    assert node.block is block, f"belongs to another block:\n{node}"
    if previous is not None:
        assert node.prev is previous, f"its neighbour is another:\n{node}"
        assert previous.next is node, f"its neighbour is another:\n{previous}"
        assert previous._position < node._position, f"stands before its neighbour:\n{node}"
    for offset, value in enumerate(node.inputs):
        assert value in scope, f"%{value.debug_name} is not in scope in\n{node}"
        assert Use(node, offset) in value._uses, f"%{value.debug_name} does not know its use in\n{node}"


def _define(node: Node, scope: set[Value], defined: list[Value], known: set[Value]) -> None:
    for offset, value in enumerate(node.outputs):
        assert value.node is node, f"%{value.debug_name} has another owner than\n{node}"
        assert value.offset == offset, f"%{value.debug_name} has the wrong place in\n{node}"
        assert value not in known, f"%{value.debug_name} is defined twice, last by\n{node}"
        known.add(value)
    scope.update(node.outputs)
    defined.extend(node.outputs)


def _verify_uses(value: Value) -> None:
    for user, offset in value._uses:
        assert offset < len(user.inputs), f"%{value.debug_name} has a use too many in\n{user}"
        assert user.inputs[offset] is value, f"%{value.debug_name} is not what is used by\n{user}"
        assert user.block is not None, f"%{value.debug_name} is used by a node outside the graph\n{user}"


def _verify_if(node: Node) -> None:
    assert len(node.blocks) == 2, f"needs two blocks:\n{node}"
    assert len(node.inputs) == 1, f"needs one condition:\n{node}"
    for block in node.blocks:
        assert not block.inputs, f"its blocks take nothing:\n{node}"
        _verify_same_types(node, block.outputs, node.outputs)


def _verify_loop(node: Node) -> None:
    if len(node.blocks) == 2:
        return  # The emitter's loops, before their conditions moved into the body.
    assert len(node.blocks) == 1, f"needs one block:\n{node}"
    (body,) = node.blocks
    carried = len(node.outputs)
    assert len(node.inputs) == carried + 2, f"needs a count, a condition and what it carries:\n{node}"
    assert len(body.inputs) == carried + 1, f"its body needs a number and what it carries:\n{node}"
    assert len(body.outputs) == carried + 1, f"its body gives a condition and what it carries:\n{node}"
    assert _fits(body.inputs[0].type, INT), f"its body's first input counts:\n{node}"
    assert _fits(body.outputs[0].type, BOOL), f"its body's first output is no bool:\n{node}"
    _verify_same_types(node, node.inputs[2:], body.inputs[1:])
    _verify_same_types(node, body.outputs[1:], node.outputs)


def _verify_constant(node: Node) -> None:
    assert not node.inputs, f"takes nothing:\n{node}"
    assert len(node.outputs) == 1, f"gives one value:\n{node}"


def _verify_same_types(node: Node, given: list[Value], wanted: list[Value]) -> None:
    assert len(given) == len(wanted), f"{len(given)} values stand for {len(wanted)} in\n{node}"
    for mine, theirs in zip(given, wanted, strict=True):
        assert _fits(mine.type, theirs.type), f"%{mine.debug_name} : {mine.type} is no {theirs.type} in\n{node}"


def _fits(type: Type, wanted: Type) -> bool:
    """Facts about tensors may differ; after `erase_number_types` numbers and tensors stand for each other."""
    if isinstance(type, TensorType):
        return any(isinstance(m, TensorType) or m in _NUMBERS for m in members_of(wanted)) or wanted == ANY
    return type.is_subtype_of(wanted) or (type in _NUMBERS and isinstance(wanted, TensorType))


_NUMBERS: Final = (INT, FLOAT, BOOL, COMPLEX)
_CHECKS: Final[dict[str, Callable[[Node], None]]] = {
    "prim::If": _verify_if, "prim::Loop": _verify_loop, "prim::Constant": _verify_constant,
}  # fmt: skip
