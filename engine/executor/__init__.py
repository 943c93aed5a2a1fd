"""Running programs.

Importing it takes two slots of `engine.aten.values.hooks`, which operators, a lower layer, call: one compiles operators
that are written in TorchScript, the other runs functions of programs.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS


def _compile_composite(op: Op) -> Any:
    """The function of an operator written in TorchScript; what makes it is loaded when it is needed."""
    return import_module("engine.executor.interpreter.composites").composite_function(op)


def _call(function: Any, args: Sequence[Any]) -> Any:
    """Run a program's function for an operator, as sorting by `__lt__` does; loads the interpreter on first use."""
    return import_module("engine.executor.interpreter.interpreter").run_function(function, args)


HOOKS.composite = _compile_composite
HOOKS.call = _call
