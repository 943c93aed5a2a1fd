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
from dataclasses import replace
from typing import Final

from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.rewriting.partition import create_groups
from engine.lang.types import TensorType

DIFFERENTIABLE_GRAPH: Final = "prim::DifferentiableGraph"
PROFILE: Final = "prim::profile"


def create_autodiff_subgraphs(
    graph: Graph,
    threshold: int = 2,
    is_differentiable: Callable[[Node], bool] | None = None,
    may_end: Callable[[Node], bool] | None = None,
    widens: bool = False,
) -> bool:
    """Group what can be differentiated; each group ends with a node for which `may_end` holds, if it is given.

    Unless it is said what can be differentiated, no two results of a group share memory, and results know what profiles
    say of their gradients.
    """
    if is_differentiable is not None:
        return create_groups(graph, DIFFERENTIABLE_GRAPH, is_differentiable, threshold, may_end, widens=widens)
    changed = create_groups(graph, DIFFERENTIABLE_GRAPH, _is_differentiable, threshold, may_end, apart=True)
    for group in graph.find_all_nodes(DIFFERENTIABLE_GRAPH):
        _take_profiles(group)
    return changed


def _take_profiles(group: Node) -> None:
    """Let results of the group have the `requires_grad` of the profiles of their uses."""
    for value, inner in zip(group.outputs, group.attr("Subgraph").outputs, strict=True):
        profiled = (user.attr("profiled_type") for user, _ in value.uses if user.kind == PROFILE)
        wish = next((type.requires_grad for type in profiled if isinstance(type, TensorType)), None)
        if wish is not None and isinstance(inner.type, TensorType):
            inner.set_type(replace(inner.type, requires_grad=wish))


def _is_differentiable(node: Node) -> bool:
    if node.kind == PROFILE:
        return isinstance(node.output.type, TensorType)
    op = op_of(node)
    if node.kind != "prim::ConstantChunk" and (op is None or not op.gradient or op.side_effects or op.nondeterministic):
        return False
    if op is not None and op.schema.is_mutable:
        return False
    types = [value.type for value in node.inputs if isinstance(value.type, TensorType)]
    return any(type.requires_grad is not False for type in types)
