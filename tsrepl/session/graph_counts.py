"""Numbers about graphs: what a long one consists of, and what stays the same between two.

In: graphs.  Out: counts by operator, block and module; the number of nodes that a pass left and changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.ir.graph import Graph, Node
from tsrepl.session.replies import Counts

LONG: Final = 60
"""Nodes from which on a graph has a summary."""
_DEPTH: Final = 2
"""Names of a module's path that tell modules apart in a summary."""


def graph_summary(graph: Graph) -> tuple[Counts, ...]:
    """Nodes by operator, blocks by the operator that holds them, nodes by module; none for a short graph."""
    nodes = list(graph.all_nodes())
    if len(nodes) < LONG:
        return ()
    kinds = Counter(node.kind for node in nodes)
    blocks = Counter(node.kind for node in nodes for _ in node.blocks)
    tables = (("nodes", kinds), ("blocks", blocks), ("by module", _modules(nodes)))
    return tuple(Counts(title, tuple(counts.most_common())) for title, counts in tables if counts)


def _modules(nodes: Iterable[Node]) -> Counter[str]:
    """The operators that read something of a module, by its path."""
    paths: dict[object, tuple[str, ...]] = {}
    found: Counter[str] = Counter()
    for node in nodes:
        above = next((paths[value] for value in node.inputs if value in paths), ())
        if node.kind == "prim::GetAttr":
            paths[node.outputs[0]] = (*above, str(node.attr("name")))
        elif above[:-1]:
            found[".".join(above[:-1][:_DEPTH])] += 1
    return found


def altered_nodes(before: Graph, after: Graph) -> int:
    """The number of nodes that are in both graphs, by the numbers of their outputs, and are not alike."""
    old = {node.outputs[0].unique: node for node in before.all_nodes() if node.outputs}
    pairs = ((old.get(node.outputs[0].unique), node) for node in after.all_nodes() if node.outputs)
    return sum(a is not None and a.kind == b.kind and _looks(a) != _looks(b) for a, b in pairs)


def _looks(node: Node) -> tuple[object, ...]:
    inputs = tuple(value.unique for value in node.inputs)
    return inputs, tuple(value.type for value in node.outputs), sorted(node.attributes)
