"""Functions with gradients of their own (`torch.autograd.Function`), which a trace records as calls of Python.

In: such a function and its arguments.  Out: a `prim::PythonOp` node, printed as `^Name[inplace=0, module="m"](3)(%x)`.
Its inputs are the tensors among the arguments; what else the function was given is fixed.  The operators that run
inside are not recorded: their gradients are not the function's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from engine.aten.values.hooks import NOT_TRACED
from engine.aten.values.tensor import Tensor
from engine.aten.values.traced import plain
from engine.frontend.tracing.calls import fresh, take_apart
from engine.frontend.tracing.position import range_of
from engine.frontend.tracing.state import current
from engine.frontend.tracing.values import ONLY_TENSORS
from engine.ir.constants import type_of
from engine.lang.errors import CompileError
from engine.lang.types import TupleType, Type

Outcome = tuple[Any, Sequence[Tensor]]
"""The result of a function, and the arguments that it wrote to."""


class _Place:
    """Stands for a tensor among the arguments that are fixed."""

    def __repr__(self) -> str:
        return "Tensor"


_PLACE: Final = _Place()


def record_function(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], run: Callable[..., Outcome]
) -> Any:  # fmt: skip
    """The result of `run(function, args, kwargs)`, recorded as one node; NOT_TRACED without a trace."""
    state = current()
    if state is None:
        return NOT_TRACED
    state.look_around()
    graph, name = state.graph, function.__name__
    graph.current_range = range_of(state.frame)
    tensors: list[Tensor] = []
    fixed, by_name = _without_tensors(tuple(args), tensors), _without_tensors(dict(kwargs), tensors)
    with state.pause():
        node = graph.create("prim::PythonOp", [state.value_of(each) for each in tensors], 0)
        graph.insert_node(node)
        result, written = run(function, _filled(fixed, iter(tensors)), kwargs)
        # An argument that is returned unchanged is another value in the trace; one that was written to is the result.
        result = fresh(result, set(state.values).difference(map(id, written)))
        take_apart(state, result, node.add_output(_type_of(result, name)))

    def called(*given: Tensor) -> Any:
        rest = iter(given)
        return function.apply(*_filled(fixed, rest), **_filled(by_name, rest))

    node.set_attr("name", name).set_attr("function", called, "ival")
    node.set_attr("inplace", int(bool(written))).set_attr("module", function.__module__)
    shown = [*(each for each in fixed if each is not _PLACE), *(f"{key}={each}" for key, each in by_name.items())]
    node.set_attr("scalar_args", [str(each) for each in shown], "ss")
    return result


def _without_tensors(value: Any, found: list[Tensor]) -> Any:
    """The value with a place for each tensor in it; adds these to `found`."""
    if isinstance(value, Tensor):
        found.append(value)
        return _PLACE
    return _mapped(lambda part: _without_tensors(part, found), value)


def _filled(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The value with the next tensors in its places."""
    return next(tensors) if value is _PLACE else _mapped(lambda part: _filled(part, tensors), value)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The value with `function` of each of its parts; numbers that know their tensors become plain ones."""
    if isinstance(value, (list, tuple)):
        parts = [function(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: function(part) for key, part in value.items()}
    return plain(value)


def _type_of(result: Any, name: str) -> Type:
    """The type of the function's result.  Raises CompileError for what no program knows."""
    if isinstance(result, tuple):
        return TupleType(tuple(_type_of(part, name) for part in result))
    if result is None or isinstance(result, (Tensor, bool, int, float, complex, str)):
        return type_of(result)
    raise CompileError(
        f"{name}: {ONLY_TENSORS.format(type(result).__name__)}",
        hints=(f"let {name}.forward return tensors, alone or in a tuple",),
    )
