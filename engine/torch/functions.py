"""Functions of the torch namespace as Python functions.

In: a name, and where programs find it (`torch`, `torch.nn.functional`).  Out: something to call: the operator, or the
function that is written in TorchScript, compiled when it is first called.  `torch_path` of it says what it stands
for, so that a program may also name it by a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from engine.aten.dispatch import calls
from engine.aten.dispatch import op as table
from engine.executor.calls.call import call_function
from engine.frontend.compilation.compile import library_value
from engine.frontend.standard_library import library
from engine.frontend.sugared.classes import ChosenByFlag, FunctionValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.lang.errors import ArgumentError, ExecutionError, did_you_mean
from engine.torch import eager
from engine.torch.objects import ScriptFunction
from engine.torch.refusals import refusal
from engine.torch.wrappers import wrapper

_PREFIXES: Final = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}
"""What the names of a scope's operators begin with."""


def find(name: str, scope: str = "torch") -> Callable[..., Any] | None:
    """The function of that name, or None."""
    path, operator = f"{scope}.{name}", _PREFIXES.get(scope, "") + name
    written = library_value(path)
    function: Any = None if written is None else _callable(written, path)
    style = eager.STYLES.get(scope, {}).get(name)
    if function is None and table.overloads(f"aten::{operator}"):
        makes_tensors = style is eager.with_requires_grad
        function, style = calls.function(operator, makes_tensors), None if makes_tensors else style
    if function is None:
        return None
    function = function if style is None else partial(style, function)
    function.torch_path = path
    return function  # type: ignore[no-any-return]


def attribute(name: str, scope: str) -> Any:
    """The function of that name in a module; raises AttributeError with the nearest name when there is none."""
    value = None if name.startswith("__") else find(name, scope)
    if value is None:
        known = (each.removeprefix("aten::").removeprefix(_PREFIXES.get(scope, "")) for each in table.names())
        hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, known))
        raise AttributeError(f"module '{scope}' has no attribute '{name}'{hint}")
    return value


def _callable(value: SugaredValue, path: str) -> Callable[..., Any] | None:
    """One function, several overloads, or a choice by a flag."""
    if isinstance(value, FunctionValue):
        if len(value.functions) == 1:
            compiled = partial(_call_one, path, ScriptFunction(value.functions[0]))
            texts = library.find(path)
            return (wrapper(texts[0].text, partial(_called, path), compiled) if len(texts) == 1 else None) or compiled
        return partial(_call_first, path, [ScriptFunction(function) for function in value.functions])
    if isinstance(value, ChosenByFlag):
        sides = _callable(value.when_true, path), _callable(value.when_false, path)
        return partial(_call_chosen, value.argument, value.position, *sides)
    return None


def _called(path: str, name: str) -> Callable[..., Any] | None:
    """What a library function calls by that name."""
    scope, _, last = name.rpartition(".")
    if scope in ("torch._C._nn", "torch.ops.aten"):
        return calls.function(last) if table.overloads(f"aten::{last}") else None
    return find(last, scope or path.rpartition(".")[0])


def _call_one(path: str, function: ScriptFunction, /, *args: Any, **kwargs: Any) -> Any:
    """Call the function.  Raises ArgumentTypeError, OperatorError."""
    try:
        return call_function(function._function, args, kwargs)
    except (ArgumentError, ExecutionError) as error:
        raise refusal(path, error, args, kwargs) from None


def _call_first(path: str, overloads: Sequence[Callable[..., Any]], /, *args: Any, **kwargs: Any) -> Any:
    """Call the first overload that takes the arguments.  Raises ArgumentTypeError, OperatorError."""
    try:
        for function in overloads[:-1]:
            try:
                return function(*args, **kwargs)
            except ArgumentError:
                continue
        return overloads[-1](*args, **kwargs)
    except (ArgumentError, ExecutionError) as error:
        raise refusal(path, error, args, kwargs) from None


def _call_chosen(argument: str, position: int, when_true: Any, when_false: Any, /, *args: Any, **kwargs: Any) -> Any:
    flag = kwargs.get(argument, args[position] if len(args) > position else False)
    return (when_true if flag else when_false)(*args, **kwargs)
