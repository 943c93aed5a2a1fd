"""Lets every number and bool be a tensor without dimensions, for consumers that know only tensors.

    graph(%x : int):                                      graph(%x : Long(device=cpu)):
      %1 : int = prim::Constant[value=1]()          →       %2 : Long(device=cpu) = prim::Constant[value={1}]()
      %3 : int = aten::add(%x, %1)                          %3 : Long(device=cpu) = aten::add(%x, %2)

Conversions between numbers and tensors fall away.  Numbers inside containers keep their types.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten import xp
from engine.aten.tensor import Tensor
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang import scalars
from engine.lang.types import BOOL, COMPLEX, FLOAT, INT, NUMBER, TENSOR, TensorType, Type

_TENSORS: Final[dict[Type, TensorType]] = {
    INT: TensorType(scalars.int64, device=scalars.CPU),
    FLOAT: TensorType(scalars.float64, device=scalars.CPU),
    COMPLEX: TensorType(scalars.complex128, device=scalars.CPU),
    BOOL: TensorType(scalars.bool_, device=scalars.CPU),
    NUMBER: TENSOR,
}
_CONVERSIONS: Final = (
    "aten::Bool", "aten::Float", "aten::Int", "aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit",
    "prim::NumToTensor",
)  # fmt: skip


def erase_number_types(graph: Graph) -> bool:
    """Retype the numbers and replace constants."""
    before = str(graph)
    for value in graph.inputs:
        _erase(value)
    _erase_in(graph.block)
    return str(graph) != before


def _erase_in(block: Block) -> None:
    for node in block.nodes():
        for value in node.inputs:
            _erase(value)
        for inner in node.blocks:
            _erase_in(inner)
        if node.kind == "prim::Constant":
            _replace_constant(node)
        elif node.kind in _CONVERSIONS:
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
        else:
            for value in node.outputs:
                _erase(value)


def _erase(value: Value) -> None:
    value.set_type(_TENSORS.get(value.type, value.type))


def _replace_constant(node: Node) -> None:
    type = _TENSORS.get(node.output.type) or node.output.type
    if not isinstance(type, TensorType) or isinstance(node.attr("value"), Tensor) or type.dtype is None:
        return
    tensor = Tensor(np.array(node.attr("value"), xp.TO_NUMPY[type.dtype]))
    with node.graph.inserting_at(node, node.range):
        # It keeps its type until an operator uses it: what only leaves a block stays a number, as in PyTorch.
        replacement = insert_constant(node.graph, tensor, node.output.type)
    name = node.output.name
    node.output.set_debug_name("")
    node.output.replace_all_uses_with(replacement)
    replacement.set_debug_name(name)
    node.destroy()
