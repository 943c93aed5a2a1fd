"""Brings pointwise operators together that could be one kernel.

    %1 : Tensor = aten::mul(%x, %y)                       %2 : Tensor = prim::FusionGroup(%x, %y)
    %2 : Tensor = aten::tanh(%1)                    →     with prim::FusionGroup = graph(%x : Tensor, %y : Tensor):
                                                            %1 : Tensor = aten::mul(%x, %y)
                                                            %2 : Tensor = aten::tanh(%1)
                                                            return (%2)

Only operators that compute every element by itself and write to nothing are taken, chunks that only these use with
them, and only where nodes can change places without anybody telling.  `move_chunks` makes room for more.  `kind`, what
may be fused and how much of it is worth a group are options.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.graph import Graph, Node
from engine.ir.ops import is_pure_pointwise
from engine.ir.rewriting.partition import create_groups


def create_fusion_groups(
    graph: Graph,
    kind: str = "prim::FusionGroup",
    is_fusible: Callable[[Node], bool] | None = None,
    min_size: int = 2,
    may_end: Callable[[Node], bool] | None = None,
    widens: bool = False,
) -> bool:
    """Group what may be fused; each group ends with a node for which `may_end` holds, if it is given."""
    if is_fusible is not None:
        return create_groups(graph, kind, is_fusible, min_size, may_end, widens=widens)
    return create_groups(graph, kind, _may_join, min_size, is_pure_pointwise)


def _may_join(node: Node) -> bool:
    """True for pointwise operators, and for chunks that only these use."""
    if node.kind != "prim::ConstantChunk":
        return is_pure_pointwise(node)
    users = [use.user for value in node.outputs for use in value.uses]
    return all(user.block is node.block and is_pure_pointwise(user) for user in users)
