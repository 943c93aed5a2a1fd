"""Running programs.  Importing it gives operators that are written in TorchScript their compiler."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from engine.aten.dispatch import HOOKS
from engine.aten.op import Op


def _compile_composite(op: Op) -> Callable[..., Any]:
    """The compiler is loaded once such an operator runs."""
    compiled: Callable[..., Any] = import_module("engine.executor.composites").compile_composite(op)
    return compiled


HOOKS.composite = _compile_composite
