"""Calls that a traced program makes: of submodules and of compiled functions; and values that hold tensors.

In: a call of a submodule, of a script function or method.  Out: one node for it.  The call of a submodule gets a graph
of its own; of a compiled function the control flow is kept.  Tensors in tuples, lists and dicts are taken apart and put
together around it.  Calls of the standard library are not kept: the operators that they run are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, count
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.values.hooks import NOT_TRACED
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.aten.values.traced import TracedInt, float_of, number_of
from engine.frontend.compilation.compile import is_library
from engine.frontend.tracing.position import DATAFLOW, range_of, warn
from engine.frontend.tracing.recording import FROM_TENSOR, set_results, taken_out
from engine.frontend.tracing.state import Scope, TracedModule, TracingState, current
from engine.ir.constants import insert_constant, type_of
from engine.ir.graph import Graph, Value
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.schema import Argument
from engine.lang.types import (
    FLOAT,
    DictType,
    FunctionType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    members_of,
    unwrap_optional,
)

# ------------------------------------------------------------------ submodules


def record_module(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the call of a submodule as a call of its method; NOT_TRACED for any other module.

    What the hooks of the module do is recorded in the caller.
    """
    state = current()
    known = None if state is None else state.modules.get(id(module))
    if state is None or known is None or known[1].owner is None:
        return NOT_TRACED
    return module._call_with_hooks(args, kwargs, partial(_call_forward, state, module, known[1]))


def _call_forward(state: TracingState, module: Any, traced: TracedModule, *args: Any, **kwargs: Any) -> Any:
    outer = state.scope
    state.scope = _enter(state, module, traced)
    try:
        return module.forward(*args, **kwargs)
    finally:
        state.scope = outer


def _enter(state: TracingState, module: Any, traced: TracedModule) -> Scope:
    """The graph of one call, and its node in the graph of the caller."""
    state.look_around()
    graph = Graph()
    graph.add_input("self", traced.type)
    state.graph.current_range = range_of(state.frame)
    receiver = state.attribute_of(state.scope, state.attributes[id(module)])
    taken = {scope.method for scope in state.scopes.values() if scope.module is traced} | set(traced.type.methods)
    names = chain(["forward"], (f"forward{number}" for number in count(1)))
    method = next(name for name in names if name not in taken)
    node = state.graph.append("prim::CallMethod", [receiver], 0).set_attr("name", method)
    return state.add_scope(Scope(graph, traced, state.scope, node, method))


# ------------------------------------------------------------------ compiled functions


def record_call(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], run: Callable[..., Any]) -> Any:
    """Record the call of a compiled function: one node for all that the call does."""
    state = current()
    if state is None:
        return run(function, args, kwargs)
    if is_library(function):
        return _run_library(state, function, args, kwargs, run)
    with state.pause():
        return _record_call(state, function, args, kwargs, run)


def _record_call(
    state: TracingState, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], run: Callable[..., Any]
) -> Any:
    state.look_around()
    graph = state.graph
    graph.current_range = range_of(state.frame)
    values = [any_value(state, value, a.type) for value, a in zip(*_in_order(function, args, kwargs), strict=True)]
    if args and isinstance(args[0], Object) and function.name in args[0].type.methods:
        node = graph.create("prim::CallMethod", values, 0).set_attr("name", function.name)
    else:
        callee = graph.append("prim::Constant", (), [FunctionType(function)]).output
        callee.node.set_attr("name", function.name)
        node = graph.create("prim::CallFunction", [callee, *values], 0)
    graph.insert_node(node)
    # A tensor that a call returns unchanged is another value in the trace: on other inputs the call may change it.
    result = fresh(run(function, args, kwargs), set(state.values))
    declared = function.schema.returns[0].type if function.schema.returns else type_of(None)
    take_apart(state, result, node.add_output(declared))
    return result


def _run_library(state: TracingState, function: Function, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
    """Run a function of the standard library, of which the trace records the operators."""
    known = {argument.name: argument for argument in function.schema.arguments}
    given = dict(zip(known, args, strict=False))
    names = {id(value): name for name, value in (*given.items(), *kwargs.items()) if isinstance(value, Tensor)}
    numbers = [_with_numbers(value, a.type, a.broadcast) for value, a in zip(args, known.values(), strict=False)]
    by_name = {
        name: _with_numbers(value, known[name].type, known[name].broadcast) if name in known else value
        for name, value in kwargs.items()
    }
    _warn_of_rounds(function, numbers)
    state.parameter_names.append(names)
    try:
        return run(function, [*numbers, *args[len(numbers) :]], by_name)
    finally:
        state.parameter_names.pop()


def _warn_of_rounds(function: Function, given: Sequence[Any]) -> None:
    """Warn where a loop of the function runs as often as a size that it is given: the trace has these rounds."""
    sizes = {v for v, number in zip(function.graph.inputs, given, strict=False) if isinstance(number, TracedInt)}
    if sizes and any(loop.inputs[0] in sizes for loop in function.graph.find_all_nodes("prim::Loop")):
        warn(DATAFLOW.format("a Python integer"))


def _with_numbers(value: Any, type: Type, broadcast: int | None = None) -> Any:
    """Convert sizes that are traced tensors to numbers, where the function takes numbers; or a list of so many, for
    which one number may stand."""
    type = unwrap_optional(type)
    if isinstance(value, Tensor):
        wanted = members_of(type.element if broadcast and isinstance(type, ListType) else type)
        if not all(each in FROM_TENSOR for each in wanted):
            return value
        return float_of(value) if wanted == (FLOAT,) else number_of(value)
    if isinstance(value, (list, tuple)) and isinstance(type, ListType):
        return [_with_numbers(part, type.element) for part in value]
    return value


def _in_order(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[Argument]]:
    """The arguments of the call in the schema's order, with their declarations; the call itself refuses too many."""
    arguments = function.schema.arguments
    values = [
        args[i] if i < len(args) else kwargs.get(a.name, a.default if a.has_default else None)
        for i, a in enumerate(arguments)
    ]
    return values, list(arguments)


# ------------------------------------------------------------------ values that hold tensors


def any_value(state: TracingState, value: Any, type: Type) -> Value:
    """The graph value of a Python value; tensors in lists, tuples and dicts are put together to one value again."""
    graph = state.graph
    type = type.element if isinstance(type, OptionalType) and value is not None else type
    if isinstance(value, Tensor):
        if isinstance(type, TensorType) or type not in FROM_TENSOR:
            return state.value_of(value)
        return taken_out(state, value, type)
    if isinstance(value, Object):
        return _object_value(state, value)
    if isinstance(type, TupleType) and isinstance(value, tuple):
        parts = [any_value(state, part, each) for part, each in zip(value, type.elements, strict=True)]
        known = TupleType(tuple(part.type for part in parts), type.name, type.fields, type.defaults)
        return graph.append("prim::TupleConstruct", parts, [known]).output
    if isinstance(type, ListType) and isinstance(value, (list, tuple)):
        parts = [any_value(state, part, type.element) for part in value]
        return graph.append("prim::ListConstruct", parts, [type]).output
    if isinstance(type, DictType) and isinstance(value, dict):
        pairs = [any_value(state, part, t) for item in value.items() for part, t in zip(item, _of(type), strict=True)]
        return graph.append("prim::DictConstruct", pairs, [type]).output
    if type == FLOAT and isinstance(value, int):
        value = float(value)
    return insert_constant(graph, value)


def _of(type: DictType) -> tuple[Type, Type]:
    return type.key, type.value


def _object_value(state: TracingState, value: Object) -> Value:
    if id(value) in state.values:
        return state.carry(state.values[id(value)][1], state.scope)
    attribute = state.attributes.get(id(value))
    if attribute is None:
        raise CompileError(
            f"a method of {value.type.name} is called, which is no submodule of what is traced",
            state.graph.current_range,
            hints=("assign the compiled module to an attribute of the module that is traced",),
        )
    return state.attribute_of(state.scope, attribute)


def fresh(value: Any, seen: set[int]) -> Any:
    """The value, with a new tensor in the same memory for each that was `seen`, so that no tensor occurs twice."""
    if isinstance(value, Tensor):
        again = id(value) in seen
        seen.add(id(value))
        return call("alias", (value,), {}) if again else value
    if isinstance(value, (list, tuple)):
        parts = [fresh(part, seen) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: fresh(part, seen) for key, part in value.items()}
    return value


def take_apart(state: TracingState, result: Any, value: Value) -> None:
    """Make nodes that take the value apart, and let their outputs stand for the tensors in `result`."""
    graph = state.graph
    if isinstance(result, Tensor):
        set_results(state, [result], [value])
    elif isinstance(result, tuple) and isinstance(value.type, TupleType):
        unpack = graph.append("prim::TupleUnpack", [value], list(value.type.elements))
        for part, output in zip(result, unpack.outputs, strict=True):
            take_apart(state, part, output)
    elif isinstance(result, list) and isinstance(value.type, ListType) and _holds_tensors(value.type):
        unpack = graph.append("prim::ListUnpack", [value], [value.type.element] * len(result))
        for part, output in zip(result, unpack.outputs, strict=True):
            take_apart(state, part, output)
    elif isinstance(result, dict) and isinstance(value.type, DictType) and _holds_tensors(value.type):
        for key, part in result.items():
            inputs = [value, insert_constant(graph, key)]
            take_apart(state, part, graph.append("aten::__getitem__", inputs, [value.type.value]).output)


def _holds_tensors(type: Type) -> bool:
    return isinstance(type, TensorType) or any(map(_holds_tensors, type.contained()))
