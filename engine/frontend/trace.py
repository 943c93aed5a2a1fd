"""Tracing: the operators that a Python program runs, recorded as a graph.

In: calls of operators, while a trace is under way.  Out: their nodes in the graph of the trace.  Operators that give
Python numbers are left out, except sizes: these become 0-dim tensors, so that what is computed from them is recorded.

Note [Numbers as tensors]
`x * 2` is recorded with a constant tensor for the 2, as in PyTorch, where arithmetic has no other form for Python.
Where a 0-dim tensor would promote to another dtype than the number does, the number stays a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.aten import op as table
from engine.aten.calls import element_of
from engine.aten.op import Op
from engine.aten.tensor import Tensor, tensor
from engine.aten.traced import TracedFloat, TracedInt, number_of, plain
from engine.frontend.trace_source import range_of
from engine.frontend.trace_state import TracingState, current
from engine.ir.constants import insert_constant, tensor_type_of
from engine.ir.graph import Value
from engine.lang.scalars import CPU, DTYPE_BY_NAME
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
)  # fmt: skip

_SIZE: Final = tensor_type_of(tensor(0))
SIZE_TYPE: Final = TensorType(_SIZE.dtype, (), (), None, CPU)
"""The type of a size that was made a tensor."""


# ------------------------------------------------------------------ operators


def record_operator(op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
    """The hook of the dispatcher."""
    state = current()
    if state is None:
        return run(*args)
    sized = _SIZES.get(op.qualified_name)
    with state.pause():
        if sized is not None:
            found = sized(state, *args)
            return _as_numbers(found) if state.parameter_names else found
        return _record(state, op, args, run) if _is_recorded(op) else run(*_plain(args))


def _is_recorded(op: Op) -> bool:
    """What gives numbers to Python is not, nor what belongs to Python's own gradients."""
    return op.name not in _UNRECORDED and any(
        _is_tensor(r.type) or _is_tensor(element_of(r.type)) for r in op.schema.returns
    )


def _as_numbers(sizes: Any) -> Any:
    """Library functions are written for numbers."""
    return [number_of(size) for size in sizes] if isinstance(sizes, list) else number_of(sizes)


_UNRECORDED: Final = ("aten::requires_grad_", "aten::retain_grad")


def _is_tensor(type: Type | None) -> bool:
    return isinstance(type.element if isinstance(type, OptionalType) else type, TensorType)


def _record(state: TracingState, op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
    state.look_around()
    state.graph.current_range = range_of(state.frame)
    recorded, values = _as_recorded(op, args)
    node = state.graph.create(recorded.name, (), 0)
    for value in _inputs(state, recorded, values):
        node.add_input(value)
    state.graph.insert_node(node)
    result = run(*_plain(args))
    if recorded.schema.returns[0].type == ListType(TENSOR):
        made = state.graph.append("prim::ListUnpack", [node.add_output(ListType(TENSOR))], len(result))
        set_results(state, result, made.outputs)
        return result
    results = result if len(recorded.schema.returns) > 1 else (result,)
    set_results(state, results, [node.add_output() for _ in results])
    return result


def _plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without what numbers remember."""
    return tuple([plain(part) for part in arg] if type(arg) is list else plain(arg) for arg in args)


def set_results(state: TracingState, results: Sequence[Any], values: Sequence[Value]) -> None:
    """Let values stand for tensors, with all that is known of them."""
    for result, value in zip(results, values, strict=True):
        if isinstance(result, Tensor):
            value.set_type(tensor_type_of(result))
            state.set_value(result, value)


# ------------------------------------------------------------------ what is recorded

_NUMBERS_AS_TENSORS: Final = frozenset(
    f"aten::{name}{suffix}.Scalar" for name in ("add", "sub", "mul", "div") for suffix in ("", "_")
)
"""See Note [Numbers as tensors]."""
_CONVOLUTIONS: Final = {
    f"aten::conv{'_transpose' if transposed else ''}{dims}d{overload}": transposed
    for transposed in (False, True)
    for dims, overload in ((1, ""), (2, ".input" if transposed else ""), (3, ".input" if transposed else ""))
}
"""Recorded as what they all are.  Value: do they go backwards?"""


def _as_recorded(op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """The operator and arguments that the node has; seldom others than those that run."""
    name = op.qualified_name
    if name in _NUMBERS_AS_TENSORS or name == "aten::floor_divide.Scalar":
        return _with_tensor(op, args)
    transposed = _CONVOLUTIONS.get(name)
    if transposed is None:
        return op, args
    x, weight, bias, stride, padding = args[:5]
    dims = len(stride)
    output_padding, groups, dilation = args[5:] if transposed else ([0] * dims, args[6], args[5])
    convolution = table.find("aten::_convolution")
    assert convolution is not None
    return convolution, (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_CUDNN)


_CUDNN: Final = (False, False, True, True)
"""benchmark, deterministic, cudnn_enabled, allow_tf32: what PyTorch's defaults are."""


def _with_tensor(op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    x, number, *rest = args
    form = table.find(f"{op.name}.Tensor") or table.find(op.name)
    if form is None or not isinstance(x, Tensor):
        return op, args
    known = isinstance(number, (TracedInt, TracedFloat))
    if _RANK[type(plain(number))] > _RANK_OF_CATEGORY.get(x.dtype.category, 3):
        return op, args
    made = number.tensor if known else tensor(number, dtype=_DTYPES.get(type(number)))
    return form, (x, made, *rest)


_DTYPES: Final = {float: DTYPE_BY_NAME["float64"], complex: DTYPE_BY_NAME["complex128"]}
_RANK: Final = {bool: 0, int: 1, float: 2, complex: 3}
_RANK_OF_CATEGORY: Final = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def _inputs(state: TracingState, op: Op, args: tuple[Any, ...]) -> list[Value]:
    arguments = op.schema.arguments
    # Where a program's own size is used as a number, the number is taken out before anything else is recorded.
    numbers = {
        id(n): taken_out(state, n.tensor, t) for a, v in zip(arguments, args, strict=True) for n, t in _numbers(a, v)
    }
    is_factory = not any(_is_tensor(a.type) or _is_tensor(element_of(a.type)) for a in arguments)
    values = []
    for argument, value in zip(arguments, args, strict=True):
        if value is None and argument.name in _FACTORY_DEFAULTS:
            value = _FACTORY_DEFAULTS[argument.name] if is_factory or argument.name == "pin_memory" else None
        values.append(_input(state, argument, value, numbers))
    return values


_FACTORY_DEFAULTS: Final[dict[str, Any]] = {"device": CPU, "pin_memory": False}


def _numbers(argument: Argument, value: Any) -> list[tuple[Any, Type]]:
    """The numbers in an argument that remember their tensors, and the type they have to the operator."""
    type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    parts = [(part, element_of(type) or type) for part in (value if isinstance(value, list) else [value])]
    return [(part, each) for part, each in parts if isinstance(part, (TracedInt, TracedFloat))]


FROM_TENSOR: Final[dict[Type, str]] = {INT: "aten::Int", FLOAT: "aten::Float", NUMBER: "aten::ScalarImplicit"}


def _input(state: TracingState, argument: Argument, value: Any, numbers: Mapping[int, Value]) -> Value:
    type = argument.type.element if isinstance(argument.type, OptionalType) and value is not None else argument.type
    if isinstance(type, ListType) and isinstance(value, (list, tuple)):
        parts = [_one(state, part, numbers) for part in value]
        return state.graph.append("prim::ListConstruct", parts, [type]).output
    return _one(state, value, numbers)


def _one(state: TracingState, value: Any, numbers: Mapping[int, Value]) -> Value:
    if isinstance(value, Tensor):
        return state.value_of(value)
    if id(value) in numbers:
        return numbers[id(value)]
    return insert_constant(state.graph, value)


def taken_out(state: TracingState, tensor: Tensor, type: Type) -> Value:
    """`aten::Int(%size)`, behind the node that made the size."""
    state.value_of(tensor)
    found = state.values.get(id(tensor))
    home = state.value_of(tensor) if found is None else found[1]
    node = home.graph.create(FROM_TENSOR.get(type, "aten::ScalarImplicit"), [home], [type])
    node.range = None
    return state.carry(node.insert_after(home.node).output, state.scope)


def record_constant(state: TracingState, made: Tensor) -> None:
    """A new tensor, as PyTorch records it: taken from a constant, and outside of gradients."""
    with state.pause():
        state.look_around()
        graph = state.graph
        graph.current_range = range_of(state.frame)
        plain = Tensor(made.array)
        constant = state.value_of(plain)
        moved = [insert_constant(graph, each) for each in (CPU, made.dtype.number, False, False, None)]
        taken = graph.append("aten::to", [constant, *moved])
        detached = graph.append("aten::detach", taken.outputs)
        set_results(state, [plain, made], [*taken.outputs, *detached.outputs])


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
