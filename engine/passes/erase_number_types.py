"""Lets every number and bool be a tensor without dimensions, for consumers that know only tensors.

    graph(%x : int):                                      graph(%x : Long(device=cpu)):
      %1 : int = prim::Constant[value=1]()          →       %2 : Long(device=cpu) = prim::Constant[value={1}]()
      %3 : int = aten::add(%x, %1)                          %3 : Long(device=cpu) = aten::add(%x, %2)

Conversions between numbers and tensors fall away.  Numbers inside containers keep their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.rewrites import allowed, retype
from engine.lang import scalars
from engine.lang.types import BOOL, COMPLEX, FLOAT, INT, NUMBER, TENSOR, TensorType, Type

_TENSORS: Final[dict[Type, TensorType]] = {
    INT: TensorType(scalars.int64, (), (), device=scalars.CPU),
    FLOAT: TensorType(scalars.float64, (), (), device=scalars.CPU),
    COMPLEX: TensorType(scalars.complex128, (), (), device=scalars.CPU),
    BOOL: TensorType(scalars.bool_, (), (), device=scalars.CPU),
    NUMBER: TENSOR,
}
_CONVERSIONS: Final = (
    "aten::Bool", "aten::Float", "aten::Int", "aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit",
    "prim::NumToTensor",
)  # fmt: skip


def erase_number_types(graph: Graph) -> bool:
    """Retype the numbers and replace constants."""
    changed = _erase(graph.inputs)
    return _erase_in(graph.block) or changed


def _erase_in(block: Block) -> bool:
    changed = False
    for node in block.nodes():
        changed |= _erase(node.inputs)
        for inner in node.blocks:
            changed |= _erase_in(inner)
        if node.kind == "prim::Constant":
            changed |= _replace_constant(node)
        elif node.kind not in _CONVERSIONS:
            changed |= _erase(node.outputs)
        elif allowed(node, node.inputs[0]):
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
            changed = True
    return changed


def _erase(values: Sequence[Value]) -> bool:
    changed = False
    for value in values:
        changed |= retype(value, _TENSORS.get(value.type, value.type))
    return changed


def _replace_constant(node: Node) -> bool:
    type = _TENSORS.get(node.output.type) or node.output.type
    if not isinstance(type, TensorType) or isinstance(node.attr("value"), Tensor) or type.dtype is None:
        return False
    if not allowed(node, "a tensor"):
        return False
    tensor = Tensor(np.array(node.attr("value"), xp.TO_NUMPY[type.dtype]))
    with node.graph.inserting_at(node, node.range):
        # It keeps its type until an operator uses it: what only leaves a block stays a number, as in PyTorch.
        replacement = insert_constant(node.graph, tensor, node.output.type)
    name = node.output.name
    node.output.set_debug_name("")
    node.output.replace_all_uses_with(replacement)
    replacement.set_debug_name(name)
    node.destroy()
    return True
