"""Renumbers values in the order in which they are defined; names stay.

    graph(%x.1 : Tensor):                                 graph(%x.1 : Tensor):
      %17 : int = prim::Constant[value=1]()         →       %1 : int = prim::Constant[value=1]()
      %y.1 : Tensor = aten::add(%x.1, %17, %17)             %y.1 : Tensor = aten::add(%x.1, %1, %1)
      %9 : Tensor = aten::neg(%y.1)                         %3 : Tensor = aten::neg(%y.1)
      return (%9)                                           return (%3)

Two graphs that do the same in the same order then print the same, but for names.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.graph import Block, Graph, Value
from engine.ir.rewrites import allowed


def canonicalize(graph: Graph, *, keep_names: bool = True) -> bool:
    """Renumber; with `keep_names=False` values lose their names, too."""
    if not allowed(graph.return_node, "the same with its values numbered anew"):
        return False
    changed = False
    for number, value in enumerate(_values(graph.block)):
        changed |= value.unique != number and not value.has_debug_name
        value.unique = number
        if not keep_names and value.has_debug_name:
            value.set_debug_name("")
            changed = True
    graph._unique = sum(1 for _ in _values(graph.block))
    for node in graph.all_nodes():
        if "Subgraph" in node.attributes:
            changed |= canonicalize(node.attr("Subgraph"), keep_names=keep_names)
    return changed


def _values(block: Block) -> Iterator[Value]:
    yield from block.inputs
    for node in block.nodes():
        yield from node.outputs
        for inner in node.blocks:
            yield from _values(inner)
