"""Gradients of operators that are given from Python.

In: an operator's schema, the function that computes it, `backward` and `setup_context`.  Out: the results, whose
history is a custom function over the tensors among the arguments, those in lists, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from engine.aten.autograd import Function
from engine.aten.values.tensor import Tensor
from engine.lang.errors import ArgumentError, OperatorError
from engine.lang.schema import FunctionSchema

Compute = Callable[[Sequence[Any]], Any]
"""Computes the results from all arguments of the schema."""


class Gradient(NamedTuple):
    """`backward(ctx, *gradients)`, and `setup_context(ctx, inputs, output)`, which keeps what it needs."""

    backward: Callable[..., Any]
    setup_context: Callable[..., None] | None


def differentiated(schema: FunctionSchema, gradient: Gradient, compute: Compute, args: Sequence[Any]) -> Any:
    """The results, which `gradient` differentiates."""
    places = [i for i, argument in enumerate(schema.arguments) if not argument.kwarg_only]
    positional = [args[i] for i in places]
    named = {a.name: args[i] for i, a in enumerate(schema.arguments) if a.kwarg_only}
    result_of: list[Any] = []

    def forward(ctx: Any, *flat: Any) -> Any:
        given, rest = list(args), iter(flat)
        for i in places:
            given[i] = _restored(args[i], rest)
        result = compute(given)
        if gradient.setup_context is not None:
            takes = inspect.signature(gradient.setup_context).parameters
            extra = {"keyword_only_inputs": named} if "keyword_only_inputs" in takes else {}
            gradient.setup_context(ctx=ctx, inputs=tuple(given[i] for i in places), output=result, **extra)
        result_of.append(result)
        return tuple(_flat(result if isinstance(result, tuple) else (result,)))

    def backward(ctx: Any, *gradients: Any) -> Any:
        (result,), rest = result_of, iter(gradients)
        many = isinstance(result, tuple)
        found = gradient.backward(ctx, *(_restored(each, rest) for each in (result if many else (result,))))
        each = found if isinstance(found, tuple) else (found,)
        if len(each) != len(positional):
            raise ArgumentError(
                f"the gradient of operator {schema.qualified_name} gives {len(each)} values, and it takes "
                f"{len(positional)} arguments",
                hints=("give one for each argument by position, None where there is none",),
            )
        return tuple(part for value, own in zip(each, positional, strict=True) for part in _matched(value, own))

    recorded: Any = type(f"{schema.name.replace('::', '_')}_backward", (Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward),
    })  # fmt: skip
    flat = recorded.apply(*_flat(positional))
    (result,), rest = result_of, iter(flat)
    made = tuple(_restored(each, rest) for each in (result if isinstance(result, tuple) else (result,)))
    return made if isinstance(result, tuple) else made[0]


def undifferentiable(schema: FunctionSchema, compute: Compute, args: Sequence[Any]) -> Any:
    """The results, which raise in the backward pass; an operator that writes to its arguments has no history."""
    if any(argument.is_write for argument in schema.arguments) or not schema.returns:
        return compute(args)

    def refuse(ctx: Any, *gradients: Any) -> Any:
        raise OperatorError(
            f"Trying to backward through {schema.qualified_name} but no autograd formula was registered. Please use "
            "register_autograd to add one.",
        )

    return differentiated(schema, Gradient(refuse, None), compute, args)


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    """The values, with the tensors of lists in the place of the lists."""
    for value in values:
        if _is_list(value):
            yield from value
        else:
            yield value


def _restored(like: Any, flat: Iterator[Any]) -> Any:
    return [next(flat) for _ in like] if _is_list(like) else next(flat)


def _matched(gradient: Any, value: Any) -> Sequence[Any]:
    """The gradients for an argument: one, or one for each tensor of a list."""
    if not _is_list(value):
        return (gradient,)
    return [None] * len(value) if gradient is None else gradient


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, Tensor) for part in value)
