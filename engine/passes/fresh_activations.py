"""Replaces in-place activations of values made just for them by functional ones.

    %y : Tensor = aten::conv2d(%x, %w, %b, …)             %y : Tensor = aten::conv2d(%x, %w, %b, …)
    %z : Tensor = aten::relu_(%y)                   →     %z : Tensor = aten::relu(%y)

Unlike `inplace_to_functional_activation` it asks no alias analysis, and changes nothing that anybody could tell: the
activation is the only user of what an operator in the same block gives, that operator always gives new memory, and no
gradient of it reads its result, so that the write could be no mistake.
"""

from __future__ import annotations

from typing import Final

from engine.ir.graph import Graph, Node
from engine.ir.ops import is_activation, schema_of
from engine.ir.rewrites import allowed

_OF_OTHER_DTYPES: Final = frozenset({"aten::gelu_", "aten::rrelu_", "aten::sigmoid_", "aten::tanh_"})
"""Activations whose result may have another dtype than their argument, or is drawn at random."""
_MAKERS: Final = frozenset(
    f"aten::{name}"
    for name in "add sub mul mm bmm matmul addmm linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d convolution _convolution batch_norm layer_norm group_norm max_pool1d max_pool2d max_pool3d "
    "avg_pool1d avg_pool2d avg_pool3d".split()
)


def fresh_activations(graph: Graph) -> bool:
    """Rename the activations that need not write."""
    written = [node for node in graph.all_nodes() if _is_written(node) and _owns_argument(node)]
    changed = False
    for node in written:
        if allowed(node, node.kind[:-1]):
            _replace(node)
            changed = True
    return changed


def _is_written(node: Node) -> bool:
    return node.kind.endswith("_") and is_activation(node) and node.kind not in _OF_OTHER_DTYPES


def _owns_argument(node: Node) -> bool:
    argument = node.inputs[0]
    maker, schema = argument.node, schema_of(argument.node)
    if maker.kind not in _MAKERS or schema is None or schema.is_mutable:  # with `out` it gives what others see
        return False
    return len(argument.uses) == 1 and maker.block is node.block


def _replace(node: Node) -> None:
    graph, name = node.graph, node.output.name
    with graph.inserting_at(node, node.range):
        new = graph.append(node.kind[:-1], node.inputs, [node.output.type])
    new.inlined_from = node.inlined_from
    node.output.set_debug_name("")
    new.output.set_debug_name(name)
    node.replace_all_uses_with(new)
    node.destroy()
