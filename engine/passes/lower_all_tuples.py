"""Removes tuples wherever their elements can travel alone.

    graph(%p : (int, int)):                               graph(%p.0 : int, %p.1 : int):
      %a : int, %b : int = prim::TupleUnpack(%p)            return (%p.1, %p.0)
      %t : (int, int) = prim::TupleConstruct(%b, %a)  →
      return (%t)

Inputs and outputs of the graph, of blocks, of If and Loop and of calls become several; constant tuples become
constants.  A tuple that something else needs whole (a list of tuples, an operator) stays.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.rewriting.tuples import create_tuple, lower_use
from engine.lang.types import TupleType

_FLATTENED = (
    "prim::If", "prim::Loop", "prim::Param", "prim::Return", "prim::Uninitialized", "prim::CallFunction",
    "aten::format",
)  # fmt: skip
"""Nodes that take or give the elements as well as the tuple."""
_WITH_BLOCKS: Final = ("prim::If", "prim::Loop")


def lower_all_tuples(graph: Graph) -> bool:
    """Flatten the tuples."""
    changed = False
    for node in graph.all_nodes():
        changed |= _split_constant(node)
    changed |= _is_wanted(graph.block.param_node) and _flatten_outputs(graph.block.param_node, unused=False)
    changed |= _lower_nodes(graph.block)
    changed |= _is_wanted(graph.return_node) and _flatten_inputs(graph.return_node)
    return remove_dead_code(graph, keep_writes=True) or changed


def _split_constant(node: Node) -> bool:
    """A constant tuple is a tuple of constants, at every depth."""
    if node.kind != "prim::Constant" or not isinstance(node.output.type, TupleType):
        return False
    if not allowed(node, "a tuple of constants"):
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


def _lower_nodes(block: Block) -> bool:
    changed = False
    for node in block.nodes():
        if node.kind == "prim::TupleConstruct":
            continue
        if lower_use(node):
            changed = True
            continue
        # The inner blocks' tuples are flattened with the node's own, so that arities keep agreeing.
        wanted, has_blocks = _is_wanted(node), node.kind in _WITH_BLOCKS
        changed |= wanted and _flatten_inputs(node, whole=node.kind == "prim::Loop")
        for inner in node.blocks:
            changed |= wanted and has_blocks and _flatten_outputs(inner.param_node)
            changed |= _lower_nodes(inner)
            changed |= wanted and has_blocks and _flatten_inputs(inner.return_node, whole=True)
        changed |= wanted and _flatten_outputs(node)
    return changed


def _is_wanted(node: Node) -> bool:
    """True if the node has tuples among its inputs or outputs that can and may be flattened."""
    if node.kind not in _FLATTENED:
        return False
    made = any(value.node.kind == "prim::TupleConstruct" for value in node.inputs)
    given = any(isinstance(value.type, TupleType) for value in node.outputs)
    return (made or given) and allowed(node, "the same with the elements of its tuples")


def _flatten_inputs(node: Node, *, whole: bool = False) -> bool:
    """Put the elements in place of each tuple that is made in the graph; with `whole` others are taken apart."""
    changed, offset = False, 0
    while offset < len(node.inputs):
        value = node.inputs[offset]
        is_made = value.node.kind == "prim::TupleConstruct"
        if not is_made and not (whole and isinstance(value.type, TupleType)):
            offset += 1
            continue
        elements = list(value.node.inputs) if is_made else _taken_apart(value, node)
        node.remove_input(offset)
        for element in reversed(elements):
            node.insert_input(offset, element)
        changed = True
    return changed


def _flatten_outputs(node: Node, *, unused: bool = True) -> bool:
    """Give an output for each element and rebuild the tuple after the node; `unused`: of unused outputs, too."""
    changed, offset = False, 0
    while offset < len(node.outputs):
        output = node.outputs[offset]
        if not isinstance(output.type, TupleType) or not (unused or output.has_uses):
            offset += 1
            continue
        elements = [node.insert_output(offset + 1 + i, type) for i, type in enumerate(output.type.elements)]
        _remake(node, output, elements)
        node.erase_output(offset)
        changed = True
    if changed and node.kind == "prim::Uninitialized":
        _split(node)
    return changed


def _taken_apart(value: Value, before: Node) -> list[Value]:
    assert isinstance(value.type, TupleType)
    unpack = before.graph.create("prim::TupleUnpack", [value], value.type.elements)
    return list(unpack.insert_before(before).outputs)


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
