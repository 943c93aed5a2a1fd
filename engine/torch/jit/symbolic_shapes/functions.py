"""The shape functions of operators: TorchScript that gives the sizes of results from the sizes of arguments.

In: a node.  Out: the graph of its operator's shape function.  Tensors are lists of sizes there, and an operator's last
arguments may be missing.  The texts stand in `functions.txt`; people may register graphs of their own for an operator.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import compile_source
from engine.ir.clone import copy_graph
from engine.ir.facts.fake_run import is_pointwise
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.ir.unit import CompilationUnit
from engine.lang.errors import ArgumentError
from engine.lang.types import INT, ListType, OptionalType, TensorType, TupleType, Type
from engine.passes.pipeline import run_pipeline

_ROWS: Final = """
same               alpha_dropout batch_norm bernoulli clamp clone contiguous cumprod cumsum detach dropout elu
same               empty_like feature_dropout flip full_like gelu group_norm hardtanh instance_norm layer_norm
same               log_softmax.int masked_fill.Scalar ones_like rand_like randn_like roll rms_norm softmax.int
same               alias to.dtype tril triu zeros_like
nothing            all any max mean min norm.Scalar prod std sum var
given              empty.memory_format full ones rand randn zeros
view               reshape view
view_as            expand_as reshape_as view_as
expand             expand
broadcast          masked_fill.Tensor
broadcast_three    addcdiv addcmul clamp.Tensor lerp.Tensor where.self
mm                 mm
bmm                bmm
dot                dot
mv                 mv
matmul             matmul
linear             linear
addmm              addmm
t                  t
transpose          transpose.int
permute            permute
unsqueeze          unsqueeze
squeeze            squeeze
squeeze_dim        squeeze.dim
flatten            flatten.using_ints
select             select.int
slice              slice.Tensor
narrow             narrow
index_select       index_select
gather             gather
embedding          embedding
cat                cat concat
stack              stack
repeat             repeat
padded             constant_pad_nd pad
reduced_dims       mean.dim nansum sum.dim_IntList
amax               amax amin logsumexp
var                std.dim var.dim
var_correction     std.correction var.correction
argmax             argmax argmin
max_dim            max.dim min.dim
topk               topk
sort               sort
conv               conv1d conv2d conv3d
conv_transpose     conv_transpose1d conv_transpose2d.input conv_transpose3d.input
convolution        convolution
_convolution       _convolution
convolution_backward  convolution_backward
max_pool1d         max_pool1d
max_pool2d         max_pool2d
max_pool2d_with_indices  max_pool2d_with_indices
avg_pool1d         avg_pool1d
avg_pool2d         avg_pool2d
adaptive_avg_pool2d  adaptive_avg_pool2d
native_layer_norm  native_layer_norm
native_batch_norm  native_batch_norm
nll_loss           nll_loss nll_loss_nd
cross_entropy      cross_entropy_loss
loss               l1_loss mse_loss
arange_end         arange
arange_start       arange.start
arange_step        arange.start_step
upsample_nearest2d upsample_nearest2d.vec
"""
FUNCTIONS: Final = {
    f"aten::{operator}": function
    for function, *operators in map(str.split, _ROWS.strip().splitlines())
    for operator in operators
}
"""Operator -> shape function; those that work element by element have `same` or `broadcast`."""
SIZES: Final = ListType(INT)
_BY_TENSORS: Final = {1: "same", 2: "broadcast", 3: "broadcast_three"}
REGISTERED: Final[dict[str, Graph]] = {}
"""Operator -> the graph that somebody gave it."""
_PREPARING: Final = ("inline", "constant_propagation", "dce")


def shape_graph(node: Node) -> Graph | None:
    """The graph of the node's shape function, which operators share and nobody changes; None where there is none."""
    op = op_of(node)
    if op is None:
        return None
    if op.qualified_name in REGISTERED:
        return REGISTERED[op.qualified_name]
    name = function_name(op)
    return _prepared(name) if name is not None else None


def function_name(op: Op) -> str | None:
    """The name of the operator's shape function: its own, or for one that works element by element that of its kind."""
    name = FUNCTIONS.get(op.qualified_name)
    has_out = any(argument.is_write and argument.kwarg_only for argument in op.schema.arguments)
    if name is not None or has_out or not is_pointwise(op):
        return name
    tensors = [argument for argument in op.schema.arguments if isinstance(argument.type, TensorType)]
    comes_first = op.schema.arguments[: len(tensors)] == tuple(tensors)
    return _BY_TENSORS.get(len(tensors)) if comes_first and len(op.schema.returns) == 1 else None


def register(node: Node, graph: Graph) -> None:
    """Let this graph give the sizes of the node's operator from now on.

    Raises ArgumentError for nodes that are no operators, and for graphs that take or give something else than sizes
    for tensors, and than the operator's other arguments.
    """
    op = op_of(node)
    if op is None:
        raise ArgumentError(f"{node.kind} is no operator, and has no shape function")
    _check_types(op, graph)
    REGISTERED[op.qualified_name] = copy_graph(graph)


def _check_types(op: Op, graph: Graph) -> None:
    arguments, returns = op.schema.arguments, op.schema.returns
    if len(graph.inputs) > len(arguments):
        raise ArgumentError(
            f"Shape function must have fewer arguments than schema {op.schema}, and has {len(graph.inputs)}"
        )
    for value, argument in zip(graph.inputs, arguments, strict=False):
        wanted = sizes_type(argument.type)
        if not wanted.is_subtype_of(value.type):
            raise ArgumentError(
                f"Expected supertype of {wanted} for argument {argument.name}, but got graph_type {value.type}"
            )
    given = graph.outputs[0].type
    outputs = given.elements if isinstance(given, TupleType) and len(returns) > 1 else (given,)
    if len(outputs) != len(returns):
        raise ArgumentError(
            f"Shape function must give {len(returns)} lists of sizes for {op.schema}, and gives {given}"
        )
    for output, returned in zip(outputs, returns, strict=True):
        wanted = sizes_type(returned.type)
        if not output.is_subtype_of(wanted):
            raise ArgumentError(f"Expected {wanted} for what the operator gives, but got graph_type {output}")


def sizes_type(type: Type) -> Type:
    """The type in shape functions for values of the type: lists of sizes for tensors, the type itself for others."""
    if isinstance(type, ListType):
        return ListType(sizes_type(type.element))
    if isinstance(type, OptionalType):
        return OptionalType(sizes_type(type.element))
    return SIZES if isinstance(type, TensorType) else type


@cache
def compiled() -> CompilationUnit:
    """All shape functions."""
    text = (Path(__file__).parent / "functions.txt").read_text(encoding="utf-8")
    return compile_source(text, filename="functions.txt", strict=False)


@cache
def _prepared(name: str) -> Graph:
    graph = copy_graph(compiled().functions[name].graph)
    run_pipeline(_PREPARING, graph)
    return graph
