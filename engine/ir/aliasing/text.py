"""Results of alias analysis as readable text.

In: a graph and the facts about it.  Out: text: for each mutable value what it may be and hold, and for each node that
writes what it may write to.  Or the same as a drawing, in the language of Graphviz.

    values
      %v may be %a
      %l is new, may hold %x, any Tensor
      %x may be any Tensor
    writes
      %w : Tensor = aten::relu_(%v)
        to %a, %v, %w
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.ir.aliasing.facts import AliasFacts
from engine.ir.graph import Graph, Value
from engine.ir.order import walk
from engine.ir.printer import node_text


def text(graph: Graph, facts: AliasFacts) -> str:
    """The graph, its values and its writes."""
    return "\n".join([f"{graph}values", *_values(graph, facts), "writes", *_writes(graph, facts)]) + "\n"


def graphviz(facts: AliasFacts) -> str:
    """A `digraph`: solid arrows for "may be", dashed ones for "may hold"."""
    names = _names(facts)
    lines = [f'  e{element.index} [label="{names[element.index]}"]' for element in facts.dag.elements]
    for element in facts.dag.elements:
        lines += [f"  e{element.index} -> e{to}" for to in element.points_to]
        lines += [f"  e{element.index} -> e{to} [style=dashed]" for to in element.contains]
    return "\n".join(["digraph alias_db {", *lines, "}"]) + "\n"


def _values(graph: Graph, facts: AliasFacts) -> Iterator[str]:
    names = _names(facts)
    for value in _all_values(graph):
        element = facts.elements.get(value)
        if element is not None:
            parts = [f"may be {_listed(names, element.points_to)}" if element.points_to else "is new"]
            if element.contains:
                parts.append(f"may hold {_listed(names, element.contains)}")
            yield f"  %{value.debug_name} {', '.join(parts)}"


def _writes(graph: Graph, facts: AliasFacts) -> Iterator[str]:
    for node in walk(graph.block):
        mask = facts.write_mask(node)
        if mask:
            yield f"  {node_text(node).splitlines()[0]}"
            written = [f"%{v.debug_name}" for v in _all_values(graph) if v in facts.elements and facts.mask([v]) & mask]
            outside = [f"any {type}" for type, e in facts.wildcards.items() if facts.dag.locations(e) & mask]
            yield f"    to {', '.join(written + outside)}"


def _all_values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in walk(graph.block):
        for block in node.blocks:
            yield from block.inputs
        yield from node.outputs


def _names(facts: AliasFacts) -> dict[int, str]:
    """The printed name of each element."""
    found: dict[int, list[str]] = {}
    for value, element in facts.elements.items():
        found.setdefault(element.index, []).append(f"%{value.debug_name}")
    names = {index: " = ".join(values) for index, values in found.items()}
    return {**dict.fromkeys(range(len(facts.dag.elements)), "?"), **names, **_wildcard_names(facts)}


def _wildcard_names(facts: AliasFacts) -> dict[int, str]:
    return {element.index: f"any {type}" for type, element in facts.wildcards.items()}


def _listed(names: dict[int, str], indices: Iterable[int]) -> str:
    return ", ".join(names[index] for index in indices)
