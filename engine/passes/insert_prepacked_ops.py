"""Writes linear layers and convolutions of images as phones run them: with an object that holds the weight.

                                                          %p : …LinearOpContext =
                                                              prepacked::linear_clamp_prepack(%w, %b, %none, %none)
    %y : Tensor = aten::linear(%x, %w, %b)          →     %y : Tensor = prepacked::linear_clamp_run(%x, %p)

So are `conv2d`, `conv_transpose2d`, and the forms that traces have for both.  The weight has to be a constant of
float32, since others have no such object, and so does the bias where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from engine.aten.prepacked import CONV2D, CONV_TRANSPOSE2D, LINEAR
from engine.aten.values.tensor import Tensor
from engine.ir.constants import NOT_CONSTANT, constant_value, insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import constant_bool
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed
from engine.lang.types import ClassType

_Layer = tuple[ClassType, str, list[Value]]
"""The class of the object, the operators' name, and what the object is made of."""


def insert_prepacked_ops(graph: Graph) -> bool:
    """Rewrite every layer with such a weight."""
    changed = False
    for node in [*graph.all_nodes()]:
        reader = _READERS.get(node.kind)
        layer = reader(node) if reader is not None else None
        if layer is not None and _is_packable(*layer) and allowed(node, f"prepacked::{layer[1]}_clamp_run"):
            _insert(graph, node, layer)
            changed = True
    return changed


def _is_packable(kind: ClassType, _: str, made_of: list[Value]) -> bool:
    weight, bias = (constant_value(value) for value in made_of[:2])
    if not isinstance(weight, Tensor) or weight.array.ndim != (2 if kind is LINEAR else 4):
        return False
    tensors = [weight] if bias is None else [weight, bias]
    if any(constant_value(value) is NOT_CONSTANT for value in made_of):
        return False
    return all(isinstance(each, Tensor) and each.array.dtype == np.float32 for each in tensors)


def _insert(graph: Graph, node: Node, layer: _Layer) -> None:
    kind, name, made_of = layer
    with graph.inserting_at(node, node.range):
        none = insert_constant(graph, None)
        packed = graph.append(f"prepacked::{name}_clamp_prepack", [*made_of, none, none], [kind]).output
        run = graph.append(f"prepacked::{name}_clamp_run", [node.inputs[0], packed], [node.output.type]).output
    name = node.output.name
    node.output.set_debug_name("")
    node.output.replace_all_uses_with(run)
    run.set_debug_name(name)
    node.destroy()


def _linear(node: Node) -> _Layer:
    return LINEAR, "linear", [*node.inputs[1:3]]


def _conv2d(node: Node) -> _Layer | None:
    entry = op_of(node)
    return None if entry is None or entry.overload else (CONV2D, "conv2d", [*node.inputs[1:7]])


def _conv_transpose2d(node: Node) -> _Layer:
    weight, bias, stride, padding, output_padding, groups, dilation = node.inputs[1:8]
    made_of = [weight, bias, stride, padding, output_padding, dilation, groups]
    return CONV_TRANSPOSE2D, "conv2d_transpose", made_of


def _convolution(node: Node) -> _Layer | None:
    weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.inputs[1:9]
    if constant_bool(transposed) is None:
        return None
    if constant_bool(transposed):
        return CONV_TRANSPOSE2D, "conv2d_transpose", [weight, bias, stride, padding, output_padding, dilation, groups]
    return CONV2D, "conv2d", [weight, bias, stride, padding, dilation, groups]


_READERS: Final[dict[str, Callable[[Node], _Layer | None]]] = {
    "aten::linear": _linear, "aten::conv2d": _conv2d, "aten::conv_transpose2d": _conv_transpose2d,
    "aten::_convolution": _convolution, "aten::convolution": _convolution,
}  # fmt: skip
