"""Runs what is forked where it is forked, when every use of the future waits for it.

    %f : Future[Tensor] = prim::fork_0(%x)                %y : Tensor = aten::neg(%x)
    %y : Tensor = aten::wait(%f)                    →
    with prim::fork_0 = graph(..)

Futures that go elsewhere (into a list, out of the graph) stay.
"""

from __future__ import annotations

from engine.ir.clone import inline_graph
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed


def inline_fork_wait(graph: Graph) -> bool:
    """Inline forks whose futures are only waited for."""
    forks = [node for node in graph.find_all_nodes("prim::fork") if _is_only_waited_for(node)]
    forks = [node for node in forks if allowed(node, "its body")]
    for node in forks:
        _inline(node)
    return bool(forks)


def _is_only_waited_for(node: Node) -> bool:
    return all(use.user.kind == "aten::wait" for use in node.output.uses)


def _inline(node: Node) -> None:
    with node.graph.inserting_at(node):
        (result,) = inline_graph(node.graph, node.attr("Subgraph"), node.inputs)
    for use in node.output.uses:
        use.user.output.replace_all_uses_with(result)
        use.user.destroy()
    node.destroy()
