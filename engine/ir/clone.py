"""Copies: of graphs, blocks, nodes, and of one graph into another.

In: what to copy and, for values from outside, what stands for them.  Out: fresh nodes with the same
kinds, attributes, ranges, types and names; `copy.attributes` of subgraphs are shared, as graphs held
by attributes are not changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.ir.graph import Block, Graph, InlinedFrom, Node, Value
from engine.lang.source import SourceRange

ValueMap = dict[Value, Value]
"""Original value -> its copy."""


def copy_graph(graph: Graph) -> Graph:
    """An independent copy; values keep their names and numbers."""
    copy = Graph()
    copy._unique = graph._unique
    copy_block(graph.block, copy.block, {}, keep_numbers=True)
    return copy


def copy_block(block: Block, into: Block, values: ValueMap, *, keep_numbers: bool = False) -> ValueMap:
    """Append inputs, nodes and outputs of `block` to `into`; `values` maps what comes from outside, and grows."""
    for value in block.inputs:
        values[value] = _copy_value(value, into.add_input(value.type), keep_numbers)
    copy_nodes(block.nodes(), into, values, keep_numbers=keep_numbers)
    for value in block.outputs:
        into.register_output(values.get(value, value))
    into.return_node.range = block.return_node.range
    return values


def copy_nodes(nodes: Iterable[Node], into: Block, values: ValueMap, *, keep_numbers: bool = False) -> None:
    """Append copies of the nodes to `into`; inputs that `values` does not map are shared."""
    for node in nodes:
        into.append(copy_node(node, into.graph, values, keep_numbers=keep_numbers))


def clone_nodes(nodes: Iterable[Node], graph: Graph, values: ValueMap) -> ValueMap:
    """Insert copies of the nodes at the graph's insert point."""
    for node in nodes:
        graph.insert_node(copy_node(node, graph, values))
    return values


def copy_block_at(block: Block, place: Node, values: ValueMap | None = None) -> list[Value]:
    """Insert copies of the block's nodes before `place`; returns what stands for the block's outputs."""
    values = {} if values is None else values
    with place.graph.inserting_at(place):
        clone_nodes(block.nodes(), place.graph, values)
    return [values.get(output, output) for output in block.outputs]


def copy_node(node: Node, graph: Graph, values: ValueMap, *, keep_numbers: bool = False) -> Node:
    """A copy that is in no block yet; `values` learns its outputs and those of nested nodes."""
    copy = Node(graph, node.kind, node.range, inlined_from=node.inlined_from)
    copy.attributes = dict(node.attributes)
    for value in node.inputs:
        copy.add_input(values.get(value, value))
    copy.op = node.op
    for value in node.outputs:
        values[value] = _copy_value(value, copy.add_output(value.type), keep_numbers)
    for block in node.blocks:
        copy_block(block, copy.add_block(), values, keep_numbers=keep_numbers)
    return copy


def inline_graph(
    into: Graph, graph: Graph, inputs: Sequence[Value], call: InlinedFrom | None = None,
    *, place: SourceRange | None = None,
) -> list[Value]:  # fmt: skip
    """Insert the nodes of `graph` at the insert point of `into`, with `inputs` as its inputs; returns its outputs.

    `call` tells which call the nodes came from, for tracebacks; with a `place` they stand there, and not where they
    were written, which is text that no author knows.
    """
    assert len(inputs) == len(graph.inputs), f"{len(inputs)} values for {len(graph.inputs)} inputs"
    values: ValueMap = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes():
        copy = into.insert_node(copy_node(node, into, values))
        if call is not None:
            _remember_call(copy, call)
        if place is not None:
            _put_at(copy, place)
    return [values[output] for output in graph.outputs]


def _remember_call(node: Node, call: InlinedFrom) -> None:
    node.inlined_from = (call, *node.inlined_from)
    for block in node.blocks:
        for inner in block.nodes():
            _remember_call(inner, call)


def _put_at(node: Node, place: SourceRange) -> None:
    node.range = place
    for block in node.blocks:
        for inner in block.nodes():
            _put_at(inner, place)


def _copy_value(value: Value, copy: Value, keep_number: bool) -> Value:
    if keep_number:
        copy.unique = value.unique
        if value.name:
            copy.set_debug_name(value.name)
        return copy
    return copy.copy_metadata(value)
