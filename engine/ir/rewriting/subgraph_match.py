"""Finds where a graph looks like a pattern.

In: a pattern, itself a graph of one block, and a node to end at.  Out: which values and nodes stand for the pattern's.

    pattern   graph(%a, %b):                     in   %1 : Tensor = aten::mul(%x, %y)      %a is %x, %b is %y,
                %c = aten::mul(%a, %b)                %2 : Tensor = aten::relu(%1)         %c is %1, %d is %2
                %d = aten::relu(%c)
                return (%d)

The pattern's inputs stand for any values; nodes match by kind, attributes and inputs in their order, all in one block.
`match::module[name="Conv2d"](%self)` stands for reading an attribute that is a module of a class of that name.
What the pattern computes and does not return may be used nowhere else; that goes for constants as well.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from engine.ir.graph import Graph, Node, Value
from engine.ir.printer import attribute_text
from engine.lang.errors import IRError
from engine.lang.records import dataclass
from engine.lang.types import ClassType

MODULE: Final = "match::module"


@dataclass(eq=False, slots=True)
class Match:
    """`values` and `nodes` lead from the pattern's to the graph's; `anchor` stands for the pattern's last node."""

    anchor: Node
    values: dict[Value, Value] = field(default_factory=dict)
    nodes: dict[Node, Node] = field(default_factory=dict)


def check_pattern(pattern: Graph) -> None:
    """Raises IRError for a graph that is no pattern: one without nodes, with blocks, or with more than one end."""
    nodes = list(pattern.nodes())
    if not nodes:
        raise IRError("a pattern needs a node that it ends with")
    if any(node.blocks for node in nodes):
        raise IRError("a pattern has one block: it cannot hold If or Loop")
    reached, waiting = {nodes[-1]}, [nodes[-1]]
    while waiting:
        for value in waiting.pop().inputs:
            if value.node not in reached and value.node is not pattern.param_node:
                reached.add(value.node)
                waiting.append(value.node)
    lost = next((node for node in nodes if node not in reached), None)
    if lost is not None:
        raise IRError(f"all of a pattern leads to its last node, {nodes[-1].kind}, and {lost.kind} does not")


def match_at(pattern: Graph, anchor: Node) -> Match | None:
    """The match that ends at the node, or None.  The pattern is one that `check_pattern` lets pass."""
    last = pattern.return_node.prev
    assert last is not None
    match = Match(anchor)
    return match if _match_node(match, pattern, last, anchor) else None


def find_matches(pattern: Graph, graph: Graph) -> list[Match]:
    """Every match in the graph, also where they overlap.  Raises IRError for a graph that is no pattern."""
    check_pattern(pattern)
    found = (match_at(pattern, node) for node in graph.all_nodes())
    return [match for match in found if match is not None]


def _match_node(match: Match, pattern: Graph, wanted: Node, found: Node) -> bool:
    known = match.nodes.get(wanted)
    if known is not None:
        return known is found
    if found.blocks or found.block is not match.anchor.block:
        return False
    if len(wanted.inputs) != len(found.inputs) or len(wanted.outputs) != len(found.outputs):
        return False
    if not (_is_module(wanted, found) if wanted.kind == MODULE else _is_same(wanted, found)):
        return False
    match.nodes[wanted] = found
    if not all(_match_value(match, pattern, a, b) for a, b in zip(wanted.outputs, found.outputs, strict=True)):
        return False
    return all(_match_value(match, pattern, a, b) for a, b in zip(wanted.inputs, found.inputs, strict=True))


def _match_value(match: Match, pattern: Graph, wanted: Value, found: Value) -> bool:
    known = match.values.get(wanted)
    if known is not None:
        return known is found
    match.values[wanted] = found
    if wanted.node is pattern.param_node:
        return True
    if len(wanted.uses) != len(found.uses) and wanted not in pattern.outputs:
        return False
    return wanted.offset == found.offset and _match_node(match, pattern, wanted.node, found.node)


def is_module_access(node: Node) -> bool:
    """True for a node that reads an attribute that is a module of a known class."""
    type = node.output.type if node.kind == "prim::GetAttr" else None
    return isinstance(type, ClassType) and type.is_module


def _is_module(wanted: Node, found: Node) -> bool:
    """True if the node reads a module whose class, by its last name, is the one that the pattern asks for."""
    type = found.output.type if is_module_access(found) else None
    return isinstance(type, ClassType) and type.qualname.rpartition(".")[2] == wanted.attr("name")


def _is_same(wanted: Node, found: Node) -> bool:
    if wanted.kind != found.kind or wanted.attributes.keys() != found.attributes.keys():
        return False
    return all(
        mine.kind == found.attributes[name].kind and attribute_text(mine) == attribute_text(found.attributes[name])
        for name, mine in wanted.attributes.items()
    )
