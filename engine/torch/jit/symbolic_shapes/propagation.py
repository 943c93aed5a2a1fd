"""Symbols for the unknown sizes of a graph's tensors, and the graph that computes them.

In: a graph, some of whose inputs have types with sizes.  Out: types with sizes and symbols; and a graph that computes
the sizes, as a `ShapeComputeGraphMapping`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.aten.values.tensor import Tensor
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node, Use, Value
from engine.lang.records import dataclass
from engine.lang.types import TensorType
from engine.passes.pipeline import run_pass
from engine.torch.compiled.facade import wrap
from engine.torch.compiled.types import new_symbol, with_symbols
from engine.torch.jit.symbolic_shapes.evaluation import ShapeGraph, Sizes


def propagate(graph: Graph) -> None:
    """Write sizes and symbols into the types of the graph's tensors, as far as those of its inputs tell them."""
    run_pass("propagate_shapes_on_graph", graph)
    for value in graph.inputs:
        _name_sizes(value)
    for node in graph.all_nodes():
        _propagate_through(node)
    run_pass("refine_tuple_types", graph)


def _propagate_through(node: Node) -> None:
    """Write sizes into the types of the node's results: those of its shape function, else with new symbols."""
    shapes = ShapeGraph()
    tensors = [output for output in node.outputs if isinstance(output.type, TensorType)]
    results = shapes.add(node) if tensors else None
    if results is not None:
        found = shapes.evaluated(results, _sizes_or_assumed)
        symbols = dict(shapes.symbols)
        for output, sizes in zip(node.outputs, found, strict=True):
            if sizes is not None:
                _write(output, tuple(_number(each, symbols) for each in sizes))
    for output in tensors:
        _name_sizes(output)


def _number(size: Value, symbols: dict[Value, int]) -> int:
    """The size, or the symbol of the value that will be known when the program runs."""
    constant = constant_value(size)
    return constant if isinstance(constant, int) else symbols.setdefault(size, new_symbol())


def _write(value: Value, sizes: Sizes) -> None:
    assert isinstance(value.type, TensorType)
    known = tuple(None if size < 0 else size for size in sizes)
    value.set_type(replace(value.type, sizes=known, symbols=sizes))


def _name_sizes(value: Value) -> None:
    if isinstance(value.type, TensorType):
        value.set_type(with_symbols(value.type))


def sizes_of(value: Value) -> Sizes | None:
    """The sizes of a tensor in the graph, with symbols for unknown ones."""
    constant = constant_value(value)
    if isinstance(constant, Tensor):
        return tuple(constant.shape)
    return with_symbols(value.type).symbols if isinstance(value.type, TensorType) else None


def _sizes_or_assumed(value: Value) -> Sizes | None:
    """The sizes; where not even their number is known, that of images in a batch if the value is convolved."""
    return sizes_of(value) or next(filter(None, map(_batch, value.uses)), None)


def _batch(use: Use) -> Sizes | None:
    """Symbols for the sizes of what is convolved, which PyTorch's shape functions take for a batch."""
    if use.offset > 0 or use.user.kind not in _CONVOLUTIONS:
        return None
    weight = sizes_of(use.user.inputs[1])
    return weight and tuple(new_symbol() for _ in weight)


_CONVOLUTIONS: Final = frozenset(
    f"aten::{name}" for name in "conv1d conv2d conv3d convolution _convolution conv_transpose1d conv_transpose2d "
    "conv_transpose3d".split()
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShapeComputeGraphMapping:
    """A graph that computes unknown sizes, and the symbols of its outputs (`torch._C._ShapeComputeGraphMapping`)."""

    graph: Graph
    symbols: dict[Value, int]

    def partial_eval_shape_graph(self) -> object:
        """The graph: from the sizes of the tensors that the program takes to those that are unknown."""
        return wrap(self.graph)

    def graph_output_to_symbolic_shape_dim(self) -> dict[object, int]:
        """Output of the graph -> the symbol of the size that it computes."""
        return {wrap(value): symbol for value, symbol in self.symbols.items()}


def build_compute(graph: Graph) -> ShapeComputeGraphMapping | None:
    """The graph that computes the unknown sizes of the graph's tensors; their types get symbols for them.

    None where a tensor of the graph comes from something that has no shape function.
    """
    propagate(graph)
    shapes = ShapeGraph()
    lists: list[Value] = []
    tensors: list[Value] = []
    for node in graph.nodes():
        if node.kind != "prim::Constant" and any(isinstance(output.type, TensorType) for output in node.outputs):
            results = shapes.add(node)
            if results is None:
                return None
            lists += results
            tensors += node.outputs
    found = shapes.evaluated(lists, _sizes_or_assumed)
    symbols = dict(shapes.symbols)
    for tensor, sizes in zip(tensors, found, strict=True):
        if sizes is not None:
            _write(tensor, tuple(_number(each, symbols) for each in sizes))
    told = {symbol for value in (*shapes.sources, *tensors) for symbol in sizes_of(value) or ()}
    symbols = {value: symbol for value, symbol in symbols.items() if symbol in told}
    for offset in reversed(range(len(shapes.graph.outputs))):
        if shapes.graph.outputs[offset] not in symbols:
            shapes.graph.block.erase_output(offset)
    run_pass("dce", shapes.graph)
    return ShapeComputeGraphMapping(shapes.graph, symbols)
