"""Inputs and outputs of a trace: tensors, alone or in tuples, lists and dicts.

In: example inputs, the results of the program.  Out: the graph's inputs, taken apart into tensors, and its output, put
together from them.  Raises CompileError for values that cannot be traced.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.calls import take_apart
from engine.frontend.tracing.position import warn
from engine.frontend.tracing.state import NO_DEPENDENCE, TracingState
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.graph import Graph, Value
from engine.lang.errors import CompileError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import (
    BOOL,
    FLOAT,
    INT,
    STR,
    DictType,
    ListType,
    TupleType,
    Type,
)
from engine.passes.erase_shape_information import unshaped

_STRICT: Final = (
    "Encountering a {0} at the output of the tracer might cause the trace to be incorrect, this is only valid if the "
    "container structure does not change based on the module's inputs. Consider using a constant container instead "
    "(a tuple for a list, a NamedTuple for a dict). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)
ONLY_TENSORS: Final = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, and this "
    "one returned a {}"
)
_KEYS: Final[dict[type, Type]] = {str: STR, int: INT, float: FLOAT, bool: BOOL}


# ------------------------------------------------------------------ inputs


def input_type(value: Any) -> Type:
    """The type of an example input."""
    found = _input_type(value)
    if found is None:
        raise CompileError(
            f"Type '{_spelt(value)}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of "
            "Tensors can be traced",
            hints=("bind other values before tracing, as in trace(lambda x: f(x, 3), x)",),
        )
    return found


def _input_type(value: Any) -> Type | None:
    if isinstance(value, Tensor):
        return tensor_type_of(value)
    if isinstance(value, tuple):
        parts = [_input_type(part) for part in value]
        known = tuple(part for part in parts if part is not None)
        return TupleType(known) if len(known) == len(parts) else None
    if isinstance(value, list):
        element = _common([_input_type(part) for part in value], value)
        return None if element is None else ListType(element)
    if isinstance(value, dict):
        keys, element = {type(key) for key in value}, _common([_input_type(part) for part in value.values()], value)
        key = _KEYS.get(keys.pop()) if len(keys) == 1 else None
        return None if key is None or element is None else DictType(key, element)
    return None


def _common(types: list[Type | None], container: Any) -> Type | None:
    """The common type of the elements of a list or dict.  Raises CompileError if there is none."""
    if not types:
        wanted = "List trace inputs must have elements" if container == [] else "Dictionary inputs must have entries"
        raise CompileError(wanted, hints=("the example tells what is in it: give one that is not empty",))
    plain = [None if t is None else unshaped(t) for t in types]
    if any(t != plain[0] for t in plain):
        kind = type(container).__name__.capitalize()
        names = sorted({"something else" if t is None else t.annotation_str for t in plain})
        raise CompileError(
            f"{kind} inputs to traced functions must have consistent element type. Found {' and '.join(names)}"
        )
    return plain[0]


def _spelt(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_spelt, value))}]"
    if isinstance(value, list) and value:
        return f"List[{_spelt(value[0])}]"
    if isinstance(value, dict) and value:
        key, first = next(iter(value.items()))
        return f"Dict[{_spelt(key)}, {_spelt(first)}]"
    return type(value).__name__


def add_input(state: TracingState, value: Any, name: str) -> None:
    """A graph input for the value; its tensors get values of their own."""
    value_in = state.graph.add_input(name, input_type(value))
    take_apart(state, value, value_in)


# ------------------------------------------------------------------ outputs


def add_output(state: TracingState, result: Any) -> None:
    if result is None:
        raise CompileError(
            "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a "
            "no-op."
        )
    state.frame = None  # the names of variables do not matter for the output
    state.graph.register_output(put_together(state, result))


def put_together(state: TracingState, result: Any) -> Value:
    """The value of a result: a tensor that is known, or tuples, lists and dicts of such.  Raises CompileError."""
    graph = state.graph
    if isinstance(result, Tensor):
        if not state.knows(result) and id(result) not in state.attributes:
            raise CompileError(
                NO_DEPENDENCE.format("a tensor that is returned"),
                hints=("what is computed without torch's operators, or before the trace, is no result of it",),
            )
        return state.value_of(result)
    if isinstance(result, tuple):
        parts = [put_together(state, part) for part in result]
        types = (state.type_of(r) if isinstance(r, Tensor) else p.type for r, p in zip(result, parts, strict=True))
        return graph.append("prim::TupleConstruct", parts, [TupleType(tuple(types))]).output
    if isinstance(result, list) and result and all(isinstance(part, Tensor) for part in result):
        if state.options.strict:
            warn(_STRICT.format("list"))
        parts = [put_together(state, part) for part in result]
        return graph.append("prim::ListConstruct", parts, [ListType(_element(parts))]).output
    if isinstance(result, dict) and result:
        return _dict(state, result)
    raise CompileError(ONLY_TENSORS.format(_spelt(result)))


def _dict(state: TracingState, result: dict[Any, Any]) -> Value:
    if state.options.strict:
        raise CompileError(_STRICT.format("dict"))
    if not all(map(_is_flat, result.values())):
        raise CompileError(
            "the dict that is returned cannot be understood by the tracer, only outputs matching Dict[str, Tensor] or "
            "Dict[str, Tuple[Tensor, ...]] can be",
            hints=("return a tuple of what it holds",),
        )
    parts: list[Value] = []
    for key, part in result.items():
        if type(key) not in _KEYS and not isinstance(key, Tensor):
            raise CompileError(
                f"a dict that is returned has a key of type {_spelt(key)}, and not str, a number or a tensor"
            )
        known = put_together(state, key) if isinstance(key, Tensor) else insert_constant(state.graph, key)
        parts += [known, put_together(state, part)]
    type_ = DictType(_element(parts[::2]), _element(parts[1::2]))
    return state.graph.append("prim::DictConstruct", parts, [type_]).output


def _is_flat(part: Any) -> bool:
    return isinstance(part, Tensor) or (isinstance(part, tuple) and all(isinstance(each, Tensor) for each in part))


def _element(parts: list[Value]) -> Type:
    """The common type of the elements of a list or dict.  Raises CompileError if they have none."""
    types = [unshaped(part.type) for part in parts]
    if any(t != types[0] for t in types):
        names = ", ".join(sorted({t.annotation_str for t in types}))
        raise CompileError(
            f"the elements of a list or dict that is returned must have one type, and these have {names}"
        )
    return types[0]


# ------------------------------------------------------------------ signature


def schema_of(name: str, graph: Graph) -> FunctionSchema:
    """The signature of a traced graph: tensors of any kind, under the names that the inputs have."""
    arguments = [
        Argument(value.name.partition(".")[0] or f"argument_{i}", unshaped(value.type))
        for i, value in enumerate(graph.inputs)
    ]
    returns = tuple(Argument("", unshaped(output.type)) for output in graph.outputs)
    return FunctionSchema(name, arguments=tuple(arguments), returns=returns)
