"""Removes tuples wherever their elements can travel alone.

    graph(%p : (int, int)):                               graph(%p.0 : int, %p.1 : int):
      %a : int, %b : int = prim::TupleUnpack(%p)            return (%p.1, %p.0)
      %t : (int, int) = prim::TupleConstruct(%b, %a)  →
      return (%t)

Inputs and outputs of the graph, of blocks, of If and Loop and of calls become several; constant tuples become
constants.  A tuple that something else needs whole (a list of tuples, an operator) stays.
"""

from __future__ import annotations

from engine.ir.constants import constant_value, insert_constant
from engine.ir.dead_code import remove_dead_code
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.tuples import create_tuple, lower_use
from engine.lang.types import TupleType

_FLATTENED = (
    "prim::If", "prim::Loop", "prim::Param", "prim::Return", "prim::Uninitialized", "prim::CallFunction",
    "aten::format",
)  # fmt: skip
"""Nodes that take or give the elements as well as the tuple."""


def lower_all_tuples(graph: Graph) -> bool:
    """Flatten the tuples."""
    changed = False
    for node in graph.all_nodes():
        changed |= _split_constant(node)
    changed |= _lower_block(graph.block)
    return remove_dead_code(graph, keep_writes=True) or changed


def _split_constant(node: Node) -> bool:
    """A constant tuple is a tuple of constants, at every depth."""
    if node.kind != "prim::Constant" or not isinstance(node.output.type, TupleType):
        return False
    elements = []
    with node.graph.inserting_at(node, node.range):
        for value, type in zip(constant_value(node.output), node.output.type.elements, strict=True):
            elements.append(insert_constant(node.graph, value, type))
        node.output.replace_all_uses_with(create_tuple(node, elements).output)
    for element in elements:
        _split_constant(element.node)
    node.destroy()
    return True


def _lower_block(block: Block) -> bool:
    changed = _flatten_outputs(block.param_node)
    for node in block.nodes():
        if node.kind == "prim::TupleConstruct":
            continue
        if lower_use(node):
            changed = True
            continue
        changed |= _flatten_inputs(node)
        # The inner blocks' tuples are flattened with the node's own, so that arities keep agreeing.
        for inner in node.blocks:
            changed |= _lower_block(inner)
        changed |= _flatten_outputs(node)
    return _flatten_inputs(block.return_node) or changed


def _flatten_inputs(node: Node) -> bool:
    """Put the elements in place of each tuple that is made in the graph."""
    if node.kind not in _FLATTENED:
        return False
    changed, offset = False, 0
    while offset < len(node.inputs):
        made = node.inputs[offset].node
        if made.kind != "prim::TupleConstruct":
            offset += 1
            continue
        elements = list(made.inputs)
        node.remove_input(offset)
        for element in reversed(elements):
            node.insert_input(offset, element)
        changed = True
    return changed


def _flatten_outputs(node: Node) -> bool:
    """Give an output for each element, and make the tuple of them right after the node."""
    if node.kind not in _FLATTENED:
        return False
    changed, offset = False, 0
    while offset < len(node.outputs):
        output = node.outputs[offset]
        if not isinstance(output.type, TupleType):
            offset += 1
            continue
        elements = [node.insert_output(offset + 1 + i, type) for i, type in enumerate(output.type.elements)]
        _remake(node, output, elements)
        node.erase_output(offset)
        changed = True
    if changed and node.kind == "prim::Uninitialized":
        _split(node)
    return changed


def _split(node: Node) -> None:
    """One node for each value, as this kind of node is run."""
    for output in node.outputs:
        alone = node.graph.create(node.kind, (), [output.type]).insert_before(node)
        output.replace_all_uses_with(alone.output)
    node.destroy()


def _remake(node: Node, output: Value, elements: list[Value]) -> None:
    assert isinstance(output.type, TupleType)
    after = node.next
    assert after is not None
    output.replace_all_uses_with(create_tuple(after, elements, output.type).output)
