"""Functions of the torch namespace as Python functions.

In: a name, and where programs find it (`torch`, `torch.nn.functional`).  Out: a callable: the operator, or the
function that is written in TorchScript, compiled at its first call.  Its `torch_path` is the name under which programs
know it, so that a program may also refer to it by a variable; pickles find it by its module and qualified name, and its
`__name__` is the operator's, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, Final

from engine.aten.dispatch import calls, table
from engine.aten.dispatch.errors import describe
from engine.executor.calls.call import call_function
from engine.frontend.compilation.compile import library_value
from engine.frontend.names.namespaces import PREFIXED
from engine.frontend.names.torch_names import has_name
from engine.frontend.standard_library import library
from engine.frontend.sugared.classes import ChosenByFlag, FunctionValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.lang.errors import (
    ArgumentError,
    ArgumentTypeError,
    EngineError,
    Error,
    ExecutionError,
    OperatorAssertionError,
    OperatorDtypeError,
    OperatorError,
    OperatorIndexError,
    OperatorTypeError,
    OperatorValueError,
    causes,
    did_you_mean,
)
from engine.torch.compiled.objects import ScriptFunction
from engine.torch.namespace import python_functions
from engine.torch.namespace.wrappers import wrapper


def _prefix(scope: str) -> str:
    """The beginning of the names that the operators of a scope have: `linalg_`."""
    return PREFIXED.get(scope.rpartition(".")[2], "")


def find(name: str, scope: str = "torch") -> Callable[..., Any] | None:
    """The function of that name, or None."""
    path, operator = f"{scope}.{name}", _prefix(scope) + name
    written = library_value(path)
    function: Any = None if written is None else _callable(written, path)
    style = python_functions.STYLES.get(scope, {}).get(name)
    if function is None and table.overloads(f"aten::{operator}"):
        makes_tensors = style is python_functions.with_requires_grad
        function, style = calls.function(operator, makes_tensors), None if makes_tensors else style
    if function is None:
        return None
    function = function if style is None else partial(style, function)
    function.torch_path = path
    function.__name__, function.__qualname__ = operator if written is None else name, name
    function.__module__ = f"engine.{scope}"
    return function  # type: ignore[no-any-return]


def attribute(name: str, scope: str) -> Any:
    """The function of that name in a module.  Raises AttributeError with the nearest known name."""
    value = None if name.startswith("__") else find(name, scope)
    if value is None:
        hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, known(scope)))
        raise AttributeError(f"module '{scope}' has no attribute '{name}'{hint}")
    return value


@cache
def known(scope: str) -> tuple[str, ...]:
    """The public names of the functions that programs find in a namespace with operators, as `torch.nn.functional`."""
    prefix = f"aten::{_prefix(scope)}"
    rest = (name.removeprefix(prefix) for name in table.names() if name.startswith(prefix))
    operators = (name for name in rest if name.isidentifier() and has_name(scope, name, prefix + name))
    written = (name for name in library.names() if library.find(f"{scope}.{name}"))
    return tuple(dict.fromkeys(name for name in chain(operators, written) if not name.startswith("_")))


def _callable(value: SugaredValue, path: str) -> Callable[..., Any] | None:
    """One function, several overloads, or a choice by a flag."""
    if isinstance(value, FunctionValue):
        functions = [ScriptFunction(function) for function in value.functions]
        alone = len(functions) == 1
        compiled = partial(_call_one, path, functions[0]) if alone else partial(_call_first, path, functions)
        own = dict.fromkeys(f"{path.rpartition('.')[0]}.{each.name}" for each in value.functions)
        texts = [each.text for each in library.find(path) or chain.from_iterable(map(library.find, own))]
        return (wrapper(texts, partial(_called, path), compiled) if texts else None) or compiled
    if isinstance(value, ChosenByFlag):
        sides = _callable(value.when_true, path), _callable(value.when_false, path)
        return partial(_call_chosen, value.argument, value.position, *sides)
    return None


def _called(path: str, name: str) -> Callable[..., Any] | None:
    """The function that a library function calls by that name, or None."""
    scope, _, last = name.rpartition(".")
    if scope in ("torch._C._nn", "torch.ops.aten"):
        return calls.function(last) if table.overloads(f"aten::{last}") else None
    return find(last, scope or path.rpartition(".")[0])


def _call_one(path: str, function: ScriptFunction, /, *args: Any, **kwargs: Any) -> Any:
    """Call the function.  Raises ArgumentTypeError, OperatorError."""
    try:
        return call_function(function._function, args, kwargs)
    except (ArgumentError, ExecutionError) as error:
        raise _refusal(path, error, args, kwargs) from None


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
        raise _refusal(path, error, args, kwargs) from None


def _call_chosen(argument: str, position: int, when_true: Any, when_false: Any, /, *args: Any, **kwargs: Any) -> Any:
    flag = kwargs.get(argument, args[position] if len(args) > position else False)
    return (when_true if flag else when_false)(*args, **kwargs)


# -- errors of library functions, of the classes that PyTorch raises and without the TorchScript stack

_CLASSES: Final[dict[type[Exception], type[OperatorError]]] = {
    IndexError: OperatorIndexError, TypeError: OperatorTypeError, ValueError: OperatorValueError,
    NotImplementedError: OperatorDtypeError, AssertionError: OperatorAssertionError,
}  # fmt: skip
_BY_NAME: Final = {kind.__name__: made for kind, made in _CLASSES.items()}


def _refusal(path: str, error: EngineError, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> EngineError:
    """The error that a Python program gets for an error in the library function `path`, called with these arguments."""
    given = ", ".join([*map(describe, args), *(f"{name}={describe(value)}" for name, value in kwargs.items())])
    made = ArgumentTypeError if isinstance(error, ArgumentError) else _class_of(error)
    return made(error.message, hints=(*error.hints, f"in {path}({given})"))


def _class_of(error: EngineError) -> type[OperatorError]:
    if isinstance(error, Error):
        return _BY_NAME.get(error.kind(), OperatorError)
    cause = next((each for each in causes(error) if not isinstance(each, ExecutionError)), None)
    return next((made for kind, made in _CLASSES.items() if isinstance(cause, kind)), OperatorError)
