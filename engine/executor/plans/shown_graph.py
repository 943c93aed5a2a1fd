"""The graph of a plan with the checks that its groups make, as `graph_for` and its like show it.

In: a plan.  Out: its graph; where it was made from a profile, with each group that has kernels behind the checks of
these, and in front of what runs where none holds:

    %3 : Tensor = prim::TensorExprGroup_0(%1, %2)

                                          ↓

    %4 : Float(*, device=cpu), %5 : Float(*, device=cpu), %6 : bool =
        prim::TypeCheck[types=[…], arguments=[…], guards=[…]](%1, %2)
    %3 : Tensor = prim::If(%6)
      block0():
        %7 : Float(*, device=cpu) = prim::TensorExprGroup_0(%4, %5)
        -> (%7)
      block1():
        %8 : Function = prim::Constant[name="fallback_function", fallback=1]()
        %9 : (Tensor) = prim::CallFunction(%8, %1, %2)
        %10 : Tensor = prim::TupleUnpack(%9)
        -> (%10)

Behind the branches nothing is known of the results but that they are tensors.  The graph of gradients stands in the
same way behind the question whether all of these are there, since one that misses some is another one.

The plan itself calls one function in place of all of this: the check and the branch are in the stub of the kernels
(see `engine.fuser.stubs`), which goes to the group without a kernel, the fallback, where they do not hold.  So there is
one check for each kernel, one behind the other; `types` are what a stub asks of tensors, `arguments` and `guards` what
it asks besides, in the names of its kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from engine.aten.values.xp import FROM_NUMPY
from engine.executor.codegen.fusion_groups import TENSOREXPR_GROUP, is_fusion_group
from engine.executor.plans.plan import ExecutionPlan
from engine.frontend.tracing.values import schema_of
from engine.ir.clone import ValueMap, copy_graph, copy_node, copy_nodes
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.scalars import CPU, device
from engine.lang.types import BOOL, TENSOR, FunctionType, TensorType, TupleType, Type
from engine.passes.erase_shape_information import unshaped
from engine.passes.pipeline import run_pass

if TYPE_CHECKING:
    from engine.fuser.groups import fusion_group
    from engine.fuser.ir import kernel_text
    from engine.fuser.stubs import binding as bindings
else:
    fusion_group = deferred("engine.fuser.groups.fusion_group")
    kernel_text = deferred("engine.fuser.ir.kernel_text")
    bindings = deferred("engine.fuser.stubs.binding")

TYPE_CHECK: Final = "prim::TypeCheck"
FALLBACK: Final = "fallback_function"
"""The name of the function that runs where a check does not hold."""


def shown_graph(plan: ExecutionPlan) -> Graph:
    """The plan's graph, or a copy with the checks and fallbacks of its groups; do not change it."""
    kernels = {group.node: group.bindings for group in plan.fusion.groups} if plan.fusion is not None else {}
    checked = [*filter(is_fusion_group, plan.graph.all_nodes())]
    if not any(node.kind == TENSOREXPR_GROUP and kernels.get(node) for node in checked):
        return plan.graph
    graph = copy_graph(plan.graph)
    if plan.record is not None and not plan.guards:
        _forget_types(graph.block)
    copies = [*filter(is_fusion_group, graph.all_nodes())]
    place = (plan.fusion.accelerator if plan.fusion is not None else None) or CPU
    for node, copy in zip(checked, copies, strict=True):
        if kernels.get(node):
            _check(copy, kernels[node], place)
    return _where_gradients_are(graph, plan.gradients, plan.graph) if plan.gradients else graph


def _where_gradients_are(backward: Graph, count: int, body: Graph) -> Graph:
    """The backward graph behind the question whether its first inputs, so many gradients, are there."""
    graph, values = Graph(), ValueMap()
    for value in backward.inputs:
        values[value] = graph.add_input(value.name, value.type)
    are_there = graph.append("prim::AutogradAllNonZero", graph.inputs[:count], [BOOL]).output
    branch = graph.append("prim::If", [are_there], [value.type for value in backward.outputs])
    given, missing = branch.add_block(), branch.add_block()
    copy_nodes(backward.nodes(), given, values)
    for value in backward.outputs:
        given.register_output(values[value])
    with graph.inserting_at(missing):
        for value in _call_fallback(graph, body, graph.inputs):
            missing.register_output(value)
    for value in branch.outputs:
        graph.register_output(value)
    return graph


def _forget_types(block: Block) -> None:
    """Leave what is known of tensors to the groups, which alone check it."""
    made = (each for node in block.nodes() if not is_fusion_group(node) for each in node.outputs)
    for value in (*block.inputs, *made):
        value.set_type(unshaped(value.type))
    for node in block.nodes():
        for inner in node.blocks:
            _forget_types(inner)


def _check(group: Node, kernels: Sequence[bindings.Binding], place: device) -> None:
    """Put the group behind the checks of its kernels."""
    graph = group.graph
    with graph.inserting_at(group, group.range):
        found = _first_that_holds(group, kernels, place)
    for old, new in zip(group.outputs, found, strict=True):
        old.replace_all_uses_with(new)
    group.destroy()


def _first_that_holds(group: Node, kernels: Sequence[bindings.Binding], place: device) -> list[Value]:
    """The results of the first kernel whose check holds, else of the fallback, at the graph's insert point."""
    graph = group.graph
    if not kernels:
        return _call_fallback(graph, group.attr("Subgraph"), group.inputs)
    first, *others = kernels
    arguments = [*zip(group.inputs, first.arguments, strict=True)]
    tensors = [(value, argument) for value, argument in arguments if isinstance(argument, bindings.TensorArgument)]
    types = [_type(argument, place) for _, argument in tensors]
    check = graph.append(TYPE_CHECK, [value for value, _ in tensors], [*types, BOOL]).set_attr("types", types, "tys")
    for name, texts in (
        ("arguments", map(argument_text, first.arguments)),
        ("guards", map(kernel_text.show, first.guards)),
    ):
        _set_texts(check, name, texts)
    branch = graph.append("prim::If", [check.outputs[-1]], [TENSOR for _ in group.outputs])
    holds, fails = branch.add_block(), branch.add_block()
    known = {value: passed for (value, _), passed in zip(tensors, check.outputs, strict=False)}
    holds.append(copy_node(group, graph, known))
    for value in group.outputs:
        holds.register_output(known[value])
    with graph.inserting_at(fails):
        for value in _first_that_holds(group, others, place):
            fails.register_output(value)
    return branch.outputs


def _call_fallback(graph: Graph, body: Graph, inputs: Sequence[Value]) -> list[Value]:
    """The results of a function that does what the body does, called at the graph's insert point."""
    body = copy_graph(body)
    run_pass("erase_shape_information", body)
    types = [value.type for value in body.outputs]
    result = body.append("prim::TupleConstruct", body.outputs, [TupleType(tuple(types))]).output
    for place in reversed(range(len(types))):
        body.block.erase_output(place)
    body.register_output(result)
    function = Function(FALLBACK)
    function.define(schema_of(FALLBACK, body), body)
    callee = insert_constant(graph, function, FunctionType(function))
    callee.node.set_attr("fallback", 1, "i")
    called = graph.append("prim::CallFunction", [callee, *inputs], [result.type]).output
    return graph.append("prim::TupleUnpack", [called], types).outputs


def _set_texts(check: Node, name: str, texts: Iterator[str]) -> None:
    if found := [*texts]:
        check.set_attr(name, found, "ss")


def _type(argument: bindings.TensorArgument, place: device) -> Type:
    return TensorType(FROM_NUMPY[fusion_group.DTYPES[argument.type]], (None,) * argument.rank, None, None, place)


def argument_text(argument: bindings.Argument) -> str:
    """The text of an argument of a kernel: `x: contiguous f32[*, *]`, `n: i64`, `n = None`."""
    if isinstance(argument, bindings.NoneArgument):
        return f"{argument.name} = None"
    if not isinstance(argument, bindings.TensorArgument):
        return f"{argument.name}: {argument.type}"
    return f"{argument.name}: {argument.layout} {argument.type}[{', '.join('*' * argument.rank)}]"
