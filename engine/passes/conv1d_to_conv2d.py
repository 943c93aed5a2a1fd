"""Writes convolutions over one dimension as such over two, for which phones have prepacked layers.

                                                          %1 : Tensor = aten::unsqueeze(%x, %2)
                                                          %v : Tensor = aten::unsqueeze(%w, %2)
    %y : Tensor = aten::conv1d(%x, %w, %b, [1], …)  →     %3 : Tensor = aten::conv2d(%1, %v, %b, [1, 1], …)
                                                          %y : Tensor = aten::squeeze(%3, %2)

Lines become images of one row.  A convolution whose numbers only the run tells stays, and so does one whose padding is
a word.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.match import constant_bool
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed
from engine.lang.types import TENSOR

_KINDS: Final = {"aten::conv1d": 6, "aten::convolution": 8, "aten::_convolution": 8}
"""Operator -> the place of the number of groups among its inputs.  Traces have the longer forms."""
_ROWS: Final = -2
"""The dimension of size 1, from the last."""
_NEW: Final = (1, 0, 1)
"""Stride, padding and dilation over rows."""


def conv1d_to_conv2d(graph: Graph) -> bool:
    """Rewrite every such convolution."""
    found = [node for node in graph.all_nodes() if node.kind in _KINDS and _numbers(node) is not None]
    found = [node for node in found if allowed(node, "aten::conv2d of images of one row")]
    for node in found:
        _rewrite(graph, node)
    return bool(found)


def _numbers(node: Node) -> list[list[int]] | None:
    """Stride, padding and dilation over two dimensions."""
    entry = op_of(node)
    if node.kind != "aten::conv1d" and constant_bool(node.inputs[6]) is not False:
        return None
    given = [constant_value(value) for value in node.inputs[3:6]]
    if (
        entry is None
        or entry.overload == "padding"
        or not all(isinstance(each, list) and len(each) == 1 for each in given)
    ):
        return None
    return [[new, each[0]] for new, each in zip(_NEW, given, strict=True)]


def _rewrite(graph: Graph, node: Node) -> None:
    x, weight, bias = node.inputs[:3]
    groups = node.inputs[_KINDS[node.kind]]
    numbers = _numbers(node)
    assert numbers is not None
    with graph.inserting_at(node, node.range):
        rows = insert_constant(graph, _ROWS)
        images, kernels = (graph.append("aten::unsqueeze", [each, rows], [TENSOR]).output for each in (x, weight))
        settings = [insert_constant(graph, each) for each in numbers]
        made = graph.append("aten::conv2d", [images, kernels, bias, *settings, groups], [TENSOR]).output
        result = graph.append("aten::squeeze", [made, rows], [node.output.type]).output
    node.output.replace_all_uses_with(result)
    node.destroy()
