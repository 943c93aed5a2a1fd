"""`torch.utils.checkpoint`: intermediate results recomputed in the backward pass instead of being saved.

In: a function and its arguments.  Out: its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.aten.autograd import Function, backward, enable_grad, is_grad_enabled
from engine.aten.kernels.random import generator
from engine.aten.values.tensor import Tensor
from engine.aten.values.traced import is_traced


class _Again(Function):
    """Runs the function without saving intermediate results, and runs it again for gradients."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], kwargs: dict[str, Any], *args: Any) -> Any:
        ctx.again, ctx.kwargs, ctx.args, ctx.random = function, kwargs, args, generator().state_bytes()
        return function(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        now = generator().state_bytes()
        generator().restore(ctx.random)
        inputs = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in ctx.args
        ]  # fmt: skip
        with enable_grad():
            outputs = ctx.again(*inputs, **ctx.kwargs)
        generator().restore(now)
        listed = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(listed, gradients, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(each.grad if isinstance(each, Tensor) else None for each in inputs))


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """The function's result; intermediate values are recomputed in the backward pass.  A trace has its operators."""
    needed = any(isinstance(each, Tensor) and each.requires_grad for each in args)
    if not needed or not is_grad_enabled() or is_traced():
        return function(*args, **kwargs)
    return _Again.apply(function, kwargs, *args)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """The result of modules called in sequence, checkpointed in that many segments."""
    modules: Sequence[Any] = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(modules) // segments
    ends = [size * (i + 1) for i in range(segments - 1)] + [len(modules)]
    begin = 0
    for end in ends:
        part = modules[begin:end]
        input = checkpoint(lambda value, part=part: _through(part, value), input, **options)
        begin = end
    return input


def _through(modules: Sequence[Any], value: Any) -> Any:
    for module in modules:
        value = module(value)
    return value
