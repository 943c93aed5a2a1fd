"""Shared by passes that fold constants into weights: find the layer before a node, set new weights.

In: nodes of a frozen graph.  Out: layers whose weight and bias are constants and whose result only that node uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from engine.aten.values.promotion import result_type
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import FLOATING, REAL, Array
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import asks_only, constant_bool
from engine.ir.ops import schema_of
from engine.ir.rewrites import allowed
from engine.lang.records import dataclass

CONVOLUTIONS: Final = ("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution", "aten::_convolution")
LINEAR: Final = ("aten::linear",)


@dataclass(frozen=True)
class Layer:
    """A convolution or linear layer: its node, weight (output channels first) and bias, which may be None."""

    node: Node
    weight: Array
    bias: Array | None

    @property
    def channels(self) -> int:
        return int(self.weight.shape[0])

    def put(self, suffix: str, weight: Array, bias: Array) -> None:
        """Give the layer another weight and bias, as constants before it that are named after the old ones."""
        for offset, array in ((1, weight), (2, bias)):
            old, graph = self.node.inputs[offset], self.node.graph
            array = np.ascontiguousarray(array.astype(self.weight.dtype))
            with graph.inserting_at(self.node):
                new = insert_constant(graph, from_numpy(array))
            self.node.replace_input(offset, new.set_debug_name(f"{old.debug_name}_{suffix}"))

    def along_channels(self, factor: Array) -> Array:
        """One number for each output channel, shaped to go with the weight."""
        return factor.reshape(-1, *(1,) * (self.weight.ndim - 1))


Fold = Callable[[Node, Layer], tuple[str, Array, Array] | None]
"""Returns the suffix of the new constants' names, the weight and the bias; None if the node cannot be folded."""


def rewrite(graph: Graph, kinds: tuple[str, ...], layers: tuple[str, ...], fold: Fold) -> bool:
    """Fold nodes of those kinds into the layer before them, and drop what was folded."""
    changed = False
    for node in list(graph.all_nodes()):
        layer = layer_before(node, layers) if node.kind in kinds else None
        folded = fold(node, layer) if layer is not None else None
        if layer is None or folded is None or not allowed(node, layer.node):
            continue
        layer.put(*folded)
        node.output.replace_all_uses_with(layer.node.output)
        node.destroy()
        changed = True
    return changed


def layer_before(node: Node, kinds: tuple[str, ...]) -> Layer | None:
    """The layer that gives the node's first input, if nothing else uses what it gives and its weights are constants."""
    made = node.inputs[0].node
    if made.kind not in kinds or made.block is not node.block or len(made.inputs) < 3 or not _is_only_user(node, made):
        return None
    if not asks_only(made, *_OF_LAYERS):
        return None
    weight, bias = constant_value(made.inputs[1]), constant_value(made.inputs[2])
    if not is_float(weight) or not (bias is None or is_float(bias)) or _is_transposed(made):
        return None
    return Layer(made, weight.array, None if bias is None else bias.array)


_OF_LAYERS: Final = (
    "input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups", "benchmark",
    "deterministic", "cudnn_enabled", "allow_tf32",
)  # fmt: skip
"""Arguments of layers, that may be anything; transposed ones are asked for."""


def _is_only_user(node: Node, made: Node) -> bool:
    """True if no other use reads elements."""
    return all(
        (use.user is node and use.offset == 0) or use.user.kind in _ASKS_FOR_NO_ELEMENT for use in made.output.uses
    )


_ASKS_FOR_NO_ELEMENT: Final = ("aten::dim", "aten::size", "aten::len", "prim::dtype", "prim::device")


def is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.array.dtype in FLOATING


def constant_array(value: Value) -> Array | None:
    """The tensor of floats, or the number, that the value always is."""
    found = constant_value(value)
    if is_float(found):
        assert isinstance(found, Tensor)
        return found.array
    return np.asarray(found, np.float64) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def per_channel(value: Value, layer: Layer) -> Array | None:
    """The operand as one number for each channel of the layer's result, or None where it is not that.

    A tensor operand, of whole numbers, too, must not change the result's dtype or dimensions: it has at most as many
    dimensions, one number, or one for each channel in the place of the channels.
    """
    constant = constant_value(value)
    found = constant.array if isinstance(constant, Tensor) and constant.array.dtype in REAL else constant_array(value)
    if found is None or found.ndim > layer.weight.ndim:
        return None
    if found.ndim and result_type((layer.weight, found)) != layer.weight.dtype:
        return None
    if found.size == 1:
        return np.broadcast_to(found.reshape(1), (layer.channels,))
    place = layer.weight.ndim - 1
    if found.ndim < place or found.size != layer.channels or found.shape[-place] != layer.channels:
        return None
    return found.reshape(layer.channels)


def _is_transposed(node: Node) -> bool:
    schema = schema_of(node)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    return "transposed" in names and constant_bool(node.inputs[names.index("transposed")]) is not False


_OF_NORMS: Final = (
    "input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps", "cudnn_enabled",
)  # fmt: skip


def fold_batch_norm(node: Node, layer: Layer) -> tuple[str, Array, Array] | None:
    """Weights with which the layer computes what `aten::batch_norm` makes of its result."""
    if not asks_only(node, *_OF_NORMS):
        return None
    mean, variance, epsilon = (constant_array(node.inputs[at]) for at in (3, 4, 7))
    if constant_bool(node.inputs[5]) is not False or mean is None or variance is None or epsilon is None:
        return None
    scale, shift = constant_value(node.inputs[1]), constant_value(node.inputs[2])
    gamma = np.ones_like(mean) if scale is None else constant_array(node.inputs[1])
    beta = np.zeros_like(mean) if shift is None else constant_array(node.inputs[2])
    if gamma is None or beta is None or any(each.size != layer.channels for each in (mean, variance, gamma, beta)):
        return None
    factor = gamma / np.sqrt(variance + epsilon.astype(variance.dtype))
    bias = np.zeros_like(mean) if layer.bias is None else layer.bias
    return "fused_bn", layer.weight * layer.along_channels(factor), (bias - mean) * factor + beta
