"""Putting neighbouring nodes of a block into a graph of their own, and back.

In: nodes that stand one after the other.  Out: one node with attribute `Subgraph` in their place, whose inputs are what
they take from elsewhere and whose outputs are what is used elsewhere; constants are copied into the subgraph.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from engine.ir.clone import ValueMap, copy_node, inline_graph
from engine.ir.graph import Graph, Node, Value
from engine.ir.order import inputs_inside


def group_nodes(kind: str, nodes: Sequence[Node]) -> Node:
    """Replace the nodes (in order, nothing in between) by one of that kind; returns it.

    Inputs and outputs come in the order in which they turn up when the nodes are taken in from the last to the first.
    """
    graph, inner = nodes[0].graph, Graph()
    members = set(nodes)
    outputs = [value for node in reversed(nodes) for value in node.outputs if _is_used_outside(value, members)]
    inputs = _inputs(nodes)
    group = graph.create(kind, inputs, [value.type for value in outputs]).insert_before(nodes[0])
    values = {value: inner.add_input(value.name, value.type) for value in inputs}
    _copy_constants(nodes, inner, values)
    for node in nodes:
        inner.block.append(copy_node(node, inner, values))
    for value, result in zip(outputs, group.outputs, strict=True):
        inner.register_output(values[value])
        value.replace_all_uses_with(result)
    for node in reversed(nodes):
        node.destroy()
    return group.set_attr("Subgraph", inner)


def ungroup(node: Node) -> None:
    """Put the nodes of the subgraph in place of the node."""
    with node.graph.inserting_at(node):
        results = inline_graph(node.graph, node.attr("Subgraph"), node.inputs)
    for output, result in zip(node.outputs, results, strict=True):
        output.replace_all_uses_with(result)
    node.destroy()


def _is_used_outside(value: Value, members: set[Node]) -> bool:
    return any(not _is_inside(user, members) for user, _ in value.uses)


def _is_inside(node: Node | None, members: Container[Node]) -> bool:
    """True for these nodes and those of their blocks."""
    while node is not None and node not in members:
        node = node.block.owner if node.block is not None else None
    return node is not None


def _taken(node: Node) -> Iterator[Value]:
    """The values from elsewhere that the node and those of its blocks take."""
    yield from node.inputs
    if node.blocks:
        yield from (value for value in inputs_inside(node) if not _is_inside(value.node, (node,)))


def _inputs(nodes: Sequence[Node]) -> list[Value]:
    needed: dict[Value, None] = {}
    for node in reversed(nodes):
        for output in node.outputs:
            needed.pop(output, None)
        needed |= dict.fromkeys(value for value in _taken(node) if value.node.kind != "prim::Constant")
    return list(needed)


def _copy_constants(nodes: Sequence[Node], inner: Graph, values: ValueMap) -> None:
    """Each to the very start, like constant pooling does."""
    for node in nodes:
        for value in _taken(node):
            if value.node.kind == "prim::Constant" and value not in values:
                inner.block.prepend(copy_node(value.node, inner, values))
