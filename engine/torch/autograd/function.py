"""`torch.autograd.function`: re-exports under the module path that scripts import, and a map over nested values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.aten.autograd import Function as Function
from engine.aten.autograd import once_differentiable as once_differentiable
from engine.aten.autograd.function import FunctionContext as FunctionCtx  # noqa: F401


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str = "other values"
) -> Callable[[Any], Any]:
    """A function that replaces what meets the condition by `fn` of it, inside of lists, tuples and dicts, too."""

    def mapped(value: Any) -> Any:
        if condition(value):
            return fn(value)
        if isinstance(value, dict):
            return {key: mapped(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            parts = [mapped(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if value is None:
            return None
        raise ValueError(f"there is no way to map a {type(value).__name__}; only {condition_msg} and their containers")

    return mapped
