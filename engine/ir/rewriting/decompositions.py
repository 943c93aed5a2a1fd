"""Graphs that do what an operator does, by the schemas of the operators.

In: a node.  Out: the graph of its decomposition: that of the operator's own text, or one that a program registered.
"""

from __future__ import annotations

from typing import Final

from engine.ir.composites import composite_graph
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.lang.errors import ArgumentError
from engine.lang.schema import FunctionSchema

_OURS: Final = frozenset({"aten::var", "aten::var.correction"})
"""Operators whose own texts are decompositions, as they are in PyTorch."""
_REGISTERED: Final[dict[str, Graph]] = {}


def register(schema: FunctionSchema, graph: Graph) -> None:
    """Let the graph stand for the operator.  Raises ArgumentError where it takes or gives another number of values."""
    if len(graph.inputs) != len(schema.arguments) or len(graph.outputs) != len(schema.returns):
        raise ArgumentError(
            f"the graph takes {len(graph.inputs)} values and gives {len(graph.outputs)}, where '{schema}' takes "
            f"{len(schema.arguments)} and gives {len(schema.returns)}",
            hints=("a decomposition has the operator's arguments, those with defaults too, in their order",),
        )
    _REGISTERED[str(schema)] = graph


def decomposition_of(node: Node) -> Graph | None:
    """The graph that does what the node's operator does; None where there is none."""
    op = op_of(node)
    if op is None:
        return None
    return _REGISTERED.get(str(op.schema)) or (composite_graph(op) if op.qualified_name in _OURS else None)
