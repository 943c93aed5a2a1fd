"""Brings pointwise operators together that could be one kernel.

    %1 : Tensor = aten::mul(%x, %y)                       %2 : Tensor = prim::FusionGroup(%x, %y)
    %2 : Tensor = aten::tanh(%1)                    →     with prim::FusionGroup = graph(%x : Tensor, %y : Tensor):
                                                            %1 : Tensor = aten::mul(%x, %y)
                                                            %2 : Tensor = aten::tanh(%1)
                                                            return (%2)

Only operators that compute every element by itself and write to nothing are taken, and only where nodes can change
places without anybody telling.  `kind`, what may be fused and how much of it is worth a group are options.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.partition import create_groups
from engine.lang.types import TensorType


def create_fusion_groups(
    graph: Graph,
    kind: str = "prim::FusionGroup",
    is_fusible: Callable[[Node], bool] | None = None,
    min_size: int = 2,
) -> bool:
    """Group what may be fused."""
    return create_groups(graph, kind, is_fusible or _is_pointwise, min_size)


def _is_pointwise(node: Node) -> bool:
    op = op_of(node)
    if op is None or op.scalar is None or op.side_effects or op.nondeterministic:
        return False
    takes = any(isinstance(value.type, TensorType) for value in node.inputs)
    return takes and all(isinstance(value.type, TensorType) for value in node.outputs)
