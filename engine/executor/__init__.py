"""Running programs.  Importing it lets operators compile TorchScript and call functions of programs."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS


def _compile_composite(op: Op) -> Callable[..., Any]:
    """The compiler is loaded once such an operator runs."""
    compiled: Callable[..., Any] = import_module("engine.executor.interpreter.composites").compile_composite(op)
    return compiled


def _call(function: Any, args: Sequence[Any]) -> Any:
    """The interpreter is loaded once an operator calls a program's function, as sorting by `__lt__` does."""
    return import_module("engine.executor.interpreter.interpreter").run_function(function, args)


HOOKS.composite = _compile_composite
HOOKS.call = _call
