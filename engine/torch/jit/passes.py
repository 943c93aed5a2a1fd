"""`torch.jit.passes`: every pass by its name, `passes.dce(graph)`, and passes that take more than a graph.

In: a graph (the engine's, or as `torch.jit.Graph` shows it).  Out: the same graph, changed; the result is True if
it was changed, unless said otherwise.  Names of passes are looked up at their first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from engine.aten.values.tensor import Tensor
from engine.ir.clone import copy_graph
from engine.ir.constants import tensor_type_of
from engine.ir.graph import Graph
from engine.ir.rewriting import decompositions, subgraph_rewriter
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.schema import FunctionSchema
from engine.passes import pipeline
from engine.torch.compiled.facade import unwrap, wrap
from engine.torch.jit.scripting import freezing, mobile_optimizing
from engine.torch.jit.scripting.module_handle import ModuleHandle
from engine.torch.jit.symbolic_shapes import functions as shape_functions
from engine.torch.jit.symbolic_shapes import propagation as symbolic_shapes

G = TypeVar("G")

FOR_GRAPHS: Final = (
    "batch_mm", "complete_shape_analysis", "constant_pooling", "constant_propagation", "create_autodiff_subgraphs",
    "create_functional_graphs", "cse", "dce", "erase_shape_information", "functional_to_inplace_activation",
    "fuse_linear", "inline", "inline_fork_wait", "inplace_to_functional_activation", "loop_unrolling",
    "lower_all_tuples", "peephole_list_idioms", "propagate_device", "propagate_dtype", "refine_integer_values",
    "remove_mutation", "run_decompositions",
)  # fmt: skip
"""PyTorch's names of passes that run on a graph alone; those of `pipeline.names()` are available, too."""


def run_pass(name: str, graph: G) -> G:
    """Run the pass on the graph, and return the graph.  Raises CompileError for an unknown pass."""
    pipeline.run_pass(name, unwrap(graph))
    return graph


def run_pipeline(names: str | Iterable[str], graph: G) -> G:
    """Run the passes in order, and return the graph; the names may be one text: "inline,dce".  Raises CompileError."""
    pipeline.run_pipeline(names, unwrap(graph))
    return graph


def peephole(graph: Any, disable_shape_peepholes: bool = False) -> bool:
    """Simplify single nodes, what needs a look at aliases among them.

    With `disable_shape_peepholes`, without using shapes and dtypes known from types.
    """
    options = {"shapes": False} if disable_shape_peepholes else {}
    changed = _run("peephole", graph, **options)
    return bool(_run("peephole_alias_sensitive", graph, **options) or changed)


def canonicalize(graph: G, keep_unique_names: bool = True) -> G:
    """A copy of the graph with its values numbered in order."""
    copy = copy_graph(unwrap(graph))
    pipeline.run_pass("canonicalize", copy)
    if not keep_unique_names:
        for value in [*copy.inputs, *(output for node in copy.all_nodes() for output in node.outputs)]:
            value.set_debug_name("")
    made: G = _like(graph, copy)
    return made


def propagate_shapes(graph: G, inputs: Sequence[Any], with_grad: bool = False) -> G:
    """A copy of the graph whose types have the ranks and dtypes that follow from those of the inputs."""
    copy = copy_graph(unwrap(graph))
    _run("complete_shape_analysis", copy, tuple(inputs), with_grad, with_sizes=False)
    made: G = _like(graph, copy)
    return made


def propagate_shapes_on_graph(graph: Any) -> None:
    """Write sizes into the graph's types; equal symbols (`symbolic_sizes()`) stand for unknown sizes that are equal."""
    symbolic_shapes.propagate(unwrap(graph))


def propagate_shapes_on_graph_and_build_compute(graph: Any) -> symbolic_shapes.ShapeComputeGraphMapping | None:
    """`propagate_shapes_on_graph`, and the graph that computes the unknown sizes from those of the inputs.

    None where a tensor comes from what has no shape function.
    """
    return symbolic_shapes.build_compute(unwrap(graph))


def shape_compute_graph_for_node(node: Any) -> Any:
    """The graph of the shape function of the node's operator; None where it has none."""
    found = shape_functions.shape_graph(unwrap(node))
    return None if found is None else wrap(found)


def register_shape_compute_graph_for_node(node: Any, graph: Any) -> None:
    """Let this graph give the sizes of the node's operator from now on.  Raises ArgumentError for other nodes."""
    shape_functions.register(unwrap(node), unwrap(graph))


def apply_input_props_using_example(graph: Any, example_input: Sequence[Any]) -> None:
    """Give the graph's inputs the types of these values, behind `self` if it is a method's graph."""
    inputs = unwrap(graph).inputs
    for value, example in zip(inputs[len(inputs) - len(example_input) :], example_input, strict=True):
        if isinstance(example, Tensor):
            value.set_type(replace(tensor_type_of(example), strides=None, requires_grad=None))


def custom_pattern_based_rewrite_graph(
    pattern: str, replacement: str, graph: Any, value_name_pairs: Iterable[tuple[str, str]] = ()
) -> bool:
    """Replace every match of the pattern graph by the replacement graph.

    Of each pair the first value, of the replacement, gets the source range of the second, of the pattern.
    """
    return subgraph_rewriter.custom_pattern_based_rewrite_graph(pattern, replacement, unwrap(graph), value_name_pairs)


def register_decomposition(op: Any, graph: Any) -> None:
    """Let `run_decompositions` put the graph in the place of the operator, `torch.ops.aten.square.default`.

    Raises AssertionError for what is no single overload, ArgumentError for a graph that takes or gives other values.
    """
    schema = getattr(op, "_schema", None)
    if isinstance(schema, FunctionSchema):
        decompositions.register(schema, copy_graph(unwrap(graph)))
    elif hasattr(op, "overloads"):
        names = ", ".join(op.overloads())
        raise AssertionError(f"Must pass specific op overload, not overload packet, found {op}; it has {names}")
    else:
        raise AssertionError(f"Expected OpOverload, got {type(op)}; torch.ops.aten.square.default is one")


def register_decomposition_for_schema(schema: Any, graph: Any) -> None:
    """`register_decomposition` by the operator's schema."""
    decompositions.register(unwrap(schema), copy_graph(unwrap(graph)))


def freeze_module(
    module: Any, preservedAttrs: Sequence[str] = (), freezeInterfaces: bool = True, preserveParameters: bool = False
) -> Any:
    """A copy of the module whose attributes, unless preserved, are constants in its code."""
    return freezing.freeze_module(module, preservedAttrs, freezeInterfaces, preserveParameters)


def remove_dropout_of(module: Any) -> None:
    """Remove dropout that drops nothing from `forward` of a module as `torch._C.ScriptModule`, or from a graph.

    Raises ArgumentError for a module in training mode, whose dropout drops.
    """
    if not isinstance(module, ModuleHandle):
        _run("remove_dropout", module)
        return
    if getattr(module._module, "training", False):
        raise ArgumentError(
            "Dropout removal module in training mode is not yet supported", hints=("call module.eval() first",)
        )
    _run("remove_dropout", module.graph)


def freeze_handle(
    module: Any, preservedAttrs: Sequence[str] = (), freezeInterfaces: bool = True, preserveParameters: bool = False
) -> Any:
    """`freeze_module` of a module as `torch._C.ScriptModule`; the result is one, too."""
    return freeze_module(module._module, preservedAttrs, freezeInterfaces, preserveParameters)._c


def optimize_handle_for_mobile(module: Any, optimization_blocklist: Any = (), preserved_methods: Any = ()) -> Any:
    """`optimize_for_mobile` of a module as `torch._C.ScriptModule`; the result is one, too."""
    return mobile_optimizing.optimized(module._module, frozenset(optimization_blocklist), [*preserved_methods])._c


def _on_methods(name: str) -> Callable[[Any], None]:
    """The pass on a graph, or on every method of a module as `torch._C.ScriptModule`."""

    def run(target: Any) -> None:
        graphs = [method.graph for method in target._get_methods()] if isinstance(target, ModuleHandle) else [target]
        for graph in graphs:
            _run(name, graph)

    return run


insert_prepacked_ops: Final = _on_methods("insert_prepacked_ops")
fuse_prepacked_clamp: Final = _on_methods("fuse_prepacked_clamp")
fold_prepacking_ops: Final = _on_methods("fold_prepacking_ops")
conv1d_to_conv2d: Final = _on_methods("conv1d_to_conv2d")


def _like(given: Any, made: Graph) -> Any:
    """The graph in the form of the given one: the engine's graph, or its facade."""
    return made if isinstance(given, Graph) else wrap(made)


def _run(name: str, graph: Any, *args: Any, **options: Any) -> Any:
    return pipeline.run_pass(name, unwrap(graph), None, *map(unwrap, args), **options)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.jit.passes' has no attribute '{name}'")
    if name in FOR_GRAPHS or name in pipeline.names() or name in pipeline.ALIASES:
        return partial(_run, name)
    hint = "".join(f"; {h}" for h in did_you_mean(name, __dir__()))
    raise AttributeError(f"module 'torch.jit.passes' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if not name.startswith("_")), *FOR_GRAPHS, *pipeline.names()})
