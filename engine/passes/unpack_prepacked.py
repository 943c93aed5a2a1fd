"""Writes layers with prepacked weights as the operators that they stand for.

    %w : …LinearOpContext = prim::Constant[…]()           %w : Tensor, %b : Tensor = prim::Constant[…]()
    %y : Tensor = prepacked::linear_clamp_run(%x, %w) →   %1 : Tensor = aten::linear(%x, %w, %b)
                                                          %y : Tensor = aten::relu(%1)

So kernels hold a layer with its limits and what follows.  Where the object is no constant, only the run tells its
settings, and the layer stays.
"""

from __future__ import annotations

from engine.aten.prepacked import CLASSES, PrepackedLayer
from engine.aten.values.ivalue import CustomObject
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed


def unpack_prepacked(graph: Graph) -> bool:
    """Replace the layers whose objects are constants."""
    found = [(node, layer) for node in graph.all_nodes() if (layer := _layer(node)) is not None]
    changed = False
    for node, layer in found:
        if allowed(node, " and ".join(f"aten::{name.partition('.')[0]}" for name, _ in layer.calls())):
            _unpack(graph, node, layer)
            changed = True
    return changed


def _layer(node: Node) -> PrepackedLayer | None:
    if not (node.kind.startswith("prepacked::") and node.kind.endswith("_clamp_run")):
        return None
    packed = constant_value(node.inputs[1])
    known = isinstance(packed, CustomObject) and packed.type in CLASSES
    return packed.content if known and isinstance(packed.content, PrepackedLayer) else None


def _unpack(graph: Graph, node: Node, layer: PrepackedLayer) -> None:
    result = node.inputs[0]
    with graph.inserting_at(node, node.range):
        for name, arguments in layer.calls():
            constants = [insert_constant(graph, value, range=node.range) for value in arguments]
            result = graph.append(f"aten::{name.partition('.')[0]}", [result, *constants], [node.output.type]).output
    name = node.output.name
    node.output.set_debug_name("")
    node.output.replace_all_uses_with(result)
    result.set_debug_name(name)
    node.destroy()
