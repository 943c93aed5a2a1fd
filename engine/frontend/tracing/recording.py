"""Tracing: the operators that a Python program runs, recorded as a graph.

In: calls of operators, while a trace is under way.  Out: their nodes in the graph of the trace.  Operators that give
Python numbers are left out, except sizes: these become 0-dim tensors, so that computations with them are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.parameters import element_of
from engine.aten.dispatch.table import overloads
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor, tensor
from engine.aten.values.traced import TracedFloat, TracedInt, number_of, plain
from engine.frontend.tracing.forms import MADE_OF, UNTIL_RESULTS_REQUIRE_GRAD, WITHOUT_NAMES, as_recorded
from engine.frontend.tracing.out_of_place import out_of_place
from engine.frontend.tracing.position import DATAFLOW, range_of, warn
from engine.frontend.tracing.state import TracingState, current
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.graph import Value
from engine.lang.errors import OperatorError
from engine.lang.scalars import CPU
from engine.lang.schema import Argument
from engine.lang.types import (
    FLOAT,
    INT,
    NUMBER,
    TENSOR,
    ListType,
    OptionalType,
    TensorType,
    Type,
    unwrap_optional,
)  # fmt: skip

_SIZE: Final = tensor_type_of(tensor(0))
SIZE_TYPE: Final = TensorType(_SIZE.dtype, (), (), None, CPU)
"""The type of a size as a tensor."""


# ------------------------------------------------------------------ operators


def record_operator(op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
    """Record the operator if this thread is traced, and run it; the hook around all operators."""
    state = current()
    if state is None:
        return run(*args)
    sized, made_of = _SIZES.get(op.qualified_name), MADE_OF.get(op.qualified_name)
    if made_of is not None:
        return made_of(*args)
    with state.pause():
        if sized is not None:
            found = sized(state, *args)
            return _as_numbers(found) if state.parameter_names else found
        if _is_recorded(op):
            return _record(state, op, args, run)
        if op.name in _LEAKING and isinstance(args[0], Tensor):
            warn(DATAFLOW.format(_LEAKING[op.name]))
        return run(*_plain(args))


def _is_recorded(op: Op) -> bool:
    """False for operators that give numbers to Python, and for those that only set up gradients."""
    if op.name in _EFFECTS or op.name in _UNRECORDED:
        return op.name in _EFFECTS
    if any(a.is_write for a in op.schema.arguments):
        return True
    return any(_is_tensor(r.type) or _is_tensor(element_of(r.type)) for r in op.schema.returns)


_LEAKING: Final = {
    "aten::item": "a Python number", "aten::Int": "a Python integer", "aten::Float": "a Python float",
    "aten::Bool": "a Python boolean", "aten::is_nonzero": "a Python boolean", "prim::tolist": "a Python list",
    "aten::equal": "a Python boolean", "aten::allclose": "a Python boolean", "aten::is_same_size": "a Python boolean",
    "aten::stride": "Python integers",
    "aten::q_scale": "a Python float", "aten::q_zero_point": "a Python integer",
}  # fmt: skip
"""Operators whose numbers depend on elements or sizes of tensors, and that no trace follows; those of sizes are."""


def _as_numbers(sizes: Any) -> Any:
    """The sizes as numbers, for functions of the standard library."""
    return [number_of(size) for size in sizes] if isinstance(sizes, list) else number_of(sizes)


_EFFECTS: Final = ("prim::AddStatValue", "profiler::_record_function_enter_new", "profiler::_record_function_exit")
"""Operators that give no tensors and are recorded for what they do."""
_UNRECORDED: Final = ("aten::requires_grad_", "aten::retain_grad")


def _is_tensor(type: Type | None) -> bool:
    return type is not None and isinstance(unwrap_optional(type), TensorType)


def _record(state: TracingState, op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
    state.look_around()
    state.graph.current_range = range_of(state.frame)
    recorded, values = as_recorded(op, args)
    if state.options.is_out_of_place:
        recorded, values = out_of_place(state, recorded, values)
    node = state.graph.create(recorded.name, (), 0)
    if op.qualified_name in WITHOUT_NAMES:
        state.frame = None
    for value in _inputs(state, recorded, values):
        node.add_input(value)
    state.graph.insert_node(node)
    try:
        result = run(*_plain(args))
    except OperatorError:
        by_number = _by_number(op, args)
        if by_number is None:
            raise
        node.destroy()
        return _record(state, *by_number, by_number[0].run)
    if not recorded.schema.returns:
        return result
    results = result if len(recorded.schema.returns) > 1 else (result,)
    outputs = [node.add_output(each.type) for each in recorded.schema.returns]
    for each, output in zip(results, outputs, strict=True):
        if output.type == ListType(TENSOR):
            set_results(state, each, state.graph.append("prim::ListUnpack", [output], len(each)).outputs)
        else:
            set_results(state, [each], [output])
    if recorded.name in UNTIL_RESULTS_REQUIRE_GRAD:
        _forget_gradients(node.output)
    return result


def _by_number(op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]] | None:
    """The overload that takes a number where this one was given a size, which is a tensor for the trace alone."""
    for place, value in enumerate(args):
        if not isinstance(value, Tensor) or value.array.ndim or value.dtype.category != "int":
            continue
        for other in overloads(op.name):
            types = [argument.type for argument in other.schema.arguments]
            wanted = [a.type if i != place else NUMBER for i, a in enumerate(op.schema.arguments)]
            if types == wanted:
                return other, (*args[:place], number_of(value), *args[place + 1 :])
    return None


def _forget_gradients(value: Value) -> None:
    type = value.type
    assert isinstance(type, TensorType)
    value.set_type(TensorType(type.dtype, type.sizes, type.strides, False, type.device))


def _plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with plain numbers for those that know their tensors."""
    return tuple([plain(part) for part in arg] if type(arg) is list else plain(arg) for arg in args)


def set_results(state: TracingState, results: Sequence[Any], values: Sequence[Value]) -> None:
    """Let values stand for tensors, with their types, and for objects."""
    for result, value in zip(results, values, strict=True):
        if isinstance(result, Tensor):
            value.set_type(tensor_type_of(result))
        if isinstance(result, (Tensor, Object)):
            state.set_value(result, value)


def _inputs(state: TracingState, op: Op, args: tuple[Any, ...]) -> list[Value]:
    arguments = op.schema.arguments
    # A size that the program uses as a number is converted before anything else is recorded.
    numbers = {
        id(n): taken_out(state, n.tensor, t) for a, v in zip(arguments, args, strict=True) for n, t in _numbers(a, v)
    }
    is_factory = not any(_is_tensor(a.type) or _is_tensor(element_of(a.type)) for a in arguments)
    values = []
    for argument, value in zip(arguments, args, strict=True):
        if value is None and argument.name in _FACTORY_DEFAULTS:
            fills_in = is_factory or (argument.name == "pin_memory" and op.name != "aten::to")
            value = _FACTORY_DEFAULTS[argument.name] if fills_in else None
        values.append(_input(state, argument, value, numbers))
    return values


_FACTORY_DEFAULTS: Final[dict[str, Any]] = {"device": CPU, "pin_memory": False}


def _numbers(argument: Argument, value: Any) -> list[tuple[Any, Type]]:
    """The numbers in an argument that know their tensors, and the type that the operator takes."""
    type = unwrap_optional(argument.type)
    parts = [(part, element_of(type) or type) for part in (value if isinstance(value, list) else [value])]
    return [(part, each) for part, each in parts if isinstance(part, (TracedInt, TracedFloat))]


FROM_TENSOR: Final[dict[Type, str]] = {INT: "aten::Int", FLOAT: "aten::Float", NUMBER: "aten::ScalarImplicit"}


def _input(state: TracingState, argument: Argument, value: Any, numbers: Mapping[int, Value]) -> Value:
    type = argument.type.element if isinstance(argument.type, OptionalType) and value is not None else argument.type
    if isinstance(type, ListType) and isinstance(value, (list, tuple)):
        parts = [_one(state, part, numbers) for part in value]
        return state.graph.append("prim::ListConstruct", parts, [type]).output
    if type == NUMBER and isinstance(value, bool):
        return _truth_as_number(state, value)
    return _one(state, value, numbers)


def _truth_as_number(state: TracingState, value: bool) -> Value:
    """`aten::ScalarImplicit(%true)`: as a constant it would be no number to operators, and an int in an archive."""
    constant = state.constant(tensor(value))
    return state.graph.append("aten::ScalarImplicit", [constant], [NUMBER]).output


def _one(state: TracingState, value: Any, numbers: Mapping[int, Value]) -> Value:
    if isinstance(value, Tensor):
        return state.value_of(value)
    if id(value) in numbers:
        return numbers[id(value)]
    if isinstance(value, Object):
        return state.carry(state.values[id(value)][1], state.scope)
    return insert_constant(state.graph, value)


def taken_out(state: TracingState, tensor: Tensor, type: Type) -> Value:
    """`aten::Int(%size)`, after the node that made the size."""
    state.value_of(tensor)
    found = state.values.get(id(tensor))
    home = state.value_of(tensor) if found is None else found[1]
    node = home.graph.create(FROM_TENSOR.get(type, "aten::ScalarImplicit"), [home], [type])
    node.range = None
    return state.carry(node.insert_after(home.node).output, state.scope)


_TAKEN: Final = ("aten::to", (CPU, None, False, False, None))
_COPIED: Final = ("aten::to", (CPU, None, False, True, None))
_LIFTED: Final[tuple[str, tuple[Any, ...]]] = ("aten::lift_fresh", ())
_DETACHED: Final[tuple[str, tuple[Any, ...]]] = ("aten::detach", ())
MAKERS: Final = {
    "torch.tensor": (_TAKEN, _DETACHED),
    "torch.tensor of an array": (_LIFTED, _COPIED, _DETACHED),
    "torch.as_tensor": (_TAKEN,),
    "torch.as_tensor of an array": (_LIFTED, _TAKEN),
    "torch.from_numpy": (_LIFTED,),
    "new_tensor": (_TAKEN, _DETACHED),
    "legacy constructor": (_TAKEN,),
    "indices": (_TAKEN,),
}
"""Function that makes a tensor of Python values -> the operators recorded between the constant and the tensor."""


def record_constant(state: TracingState, made: Tensor, steps: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    """Record a new tensor as PyTorch does: a constant, and the operators `steps` on it."""
    with state.pause():
        state.look_around()
        graph, type = state.graph, tensor_type_of(made)
        graph.current_range = range_of(state.frame)
        value = state.constant(made)
        for name, given in steps:
            # The dtype is the first argument that a conversion leaves open.
            open_place = given.index(None) if given else -1
            numbers = [made.dtype.number if i == open_place else each for i, each in enumerate(given)]
            value = graph.append(name, [value, *(insert_constant(graph, each) for each in numbers)], [type]).output
        state.set_value(made, value)


# ------------------------------------------------------------------ sizes


def size_of(state: TracingState, x: Tensor, dim: int) -> Tensor:
    """`x.size(dim)` as a tensor."""
    return _as_tensor(state, "aten::size", x, x.array.shape[int(dim)], [int(dim)])


def sizes_of(state: TracingState, x: Tensor) -> list[Tensor]:
    return [size_of(state, x, dim) for dim in range(x.array.ndim)]


def _numel(state: TracingState, x: Tensor) -> Tensor:
    return _as_tensor(state, "aten::numel", x, x.array.size, [])


def _as_tensor(state: TracingState, name: str, x: Tensor, number: int, args: list[int]) -> Tensor:
    state.look_around()
    graph = state.graph
    graph.current_range = range_of(state.frame)
    value = state.value_of(x)
    inputs = [value, *(insert_constant(graph, arg) for arg in args)]
    counted = graph.append(name, inputs, [INT]).output
    made = tensor(number)
    state.set_value(made, graph.append("prim::NumToTensor", [counted], [SIZE_TYPE]).output)
    return made


_SIZES: Final[dict[str, Callable[..., Any]]] = {
    "aten::size.int": size_of, "aten::size": sizes_of, "aten::numel": _numel,
}  # fmt: skip
