"""Constants of one number, where arithmetic takes numbers, are numbers.

    %1 : Tensor = prim::Constant[value={1.5}]()           %1 : float = prim::Constant[value=1.5]()
    %2 : Tensor = aten::add(%x, %1, %3)             →     %2 : Tensor = aten::add(%x, %1, %3)

The dtype of the tensor is forgotten: `x + 1.5` was recorded with a tensor of float64, and integers plus 1.5 are of the
default dtype.  Truth values stay tensors, and so do operands of operators that write.

The divisor of `floor_divide` is a number only where the trace was made: as in PyTorch, a file gives it back as a
tensor, of which the graph does not tell the dtype.
"""

from __future__ import annotations

from typing import Final

from engine.aten.values.tensor import Tensor
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed
from engine.lang.types import TensorType

_TAKES_NUMBERS: Final = frozenset({"aten::add", "aten::sub", "aten::mul", "aten::div"})
_TAKES_NUMBERS_OF_TRACES: Final = frozenset({"aten::floor_divide"})


def scalar_operands(graph: Graph) -> bool:
    """Replace 0-dim tensors, where they are constant second operands, by numbers."""
    changed = False
    for node in graph.all_nodes():
        takes = node.kind in _TAKES_NUMBERS or (node.kind in _TAKES_NUMBERS_OF_TRACES and _is_of_trace(node))
        if takes and _is_number(node) and allowed(node, "the same with a number"):
            _replace(graph, node)
            changed = True
    return changed


def _is_number(node: Node) -> bool:
    value = constant_value(node.inputs[1])
    return isinstance(value, Tensor) and value.array.ndim == 0 and value.dtype.category != "bool"


def _is_of_trace(node: Node) -> bool:
    type = node.inputs[1].type
    return isinstance(type, TensorType) and type.dtype is not None


def _replace(graph: Graph, node: Node) -> None:
    with graph.inserting_at(node):
        number = insert_constant(graph, constant_value(node.inputs[1]).item(), range=node.inputs[1].node.range)
    node.replace_input(1, number)
    node.op = None
