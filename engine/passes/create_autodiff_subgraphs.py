"""Brings differentiable operators together whose gradient could be compiled.

    %1 : Tensor = aten::mul(%x, %y)                       %2 : Tensor = prim::DifferentiableGraph(%x, %y)
    %2 : Tensor = aten::tanh(%1)                    →     with prim::DifferentiableGraph = graph(…):
                                                            %1 : Tensor = aten::mul(%x, %y)
                                                            %2 : Tensor = aten::tanh(%1)
                                                            return (%2)

Operators whose gradient is a formula and that write to nothing are taken, where a gradient may be asked for; groups of
fewer than `threshold` are left as they were.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.rewriting.partition import create_groups
from engine.lang.types import TensorType


def create_autodiff_subgraphs(
    graph: Graph,
    threshold: int = 2,
    is_differentiable: Callable[[Node], bool] | None = None,
    may_end: Callable[[Node], bool] | None = None,
) -> bool:
    """Group what can be differentiated; each group ends with a node for which `may_end` holds, if it is given."""
    return create_groups(
        graph, "prim::DifferentiableGraph", is_differentiable or _is_differentiable, threshold, may_end
    )


def _is_differentiable(node: Node) -> bool:
    op = op_of(node)
    if node.kind != "prim::ConstantChunk" and (op is None or not op.gradient or op.side_effects or op.nondeterministic):
        return False
    if op is not None and op.schema.is_mutable:
        return False
    types = [value.type for value in node.inputs if isinstance(value.type, TensorType)]
    return any(type.requires_grad is not False for type in types)
