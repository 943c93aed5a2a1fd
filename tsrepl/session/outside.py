"""Names that a door offers from outside the session: functions, classes, enums and modules of a notebook's Python.

In: Python objects by name.  Out: their meaning in entries and definitions, which is the one that programs written in
Python give them.  A `Refusal` stands for what no program can use, and says why.
"""

from __future__ import annotations

import inspect
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any, Final

from engine.frontend.python.resolver import PythonResolver, is_module_class
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import ClassType, Type
from engine.torch.jit.scripting.python_program import MODULES, PYTHON
from engine.torch.jit.scripting.script import script
from tsrepl.session.failures import UsageError

_OWN: Final = ("torch", "math")
"""Namespaces that mean in entries what they mean in any TorchScript text, whatever Python calls so."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a name cannot be used in a program, and what can be done."""

    reason: str
    hints: tuple[str, ...] = ()


class OutsideResolver:
    """Resolves the names of `objects` as the code of a Python function would."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = objects

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = self.objects.get(name)
        if found is None or name in _OWN:
            return None
        if isinstance(found, Refusal):
            raise CompileError(found.reason, range, hints=found.hints)
        return PythonResolver(PYTHON, self.objects).sugared(b, found, range)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        known = {key: each for key, each in self.objects.items() if not isinstance(each, Refusal)}
        return PythonResolver(PYTHON, known).resolve_type(name, range) if name.partition(".")[0] in known else None

    def names(self) -> Iterable[str]:
        return self.objects


def newest_type(value: Any) -> ClassType | None:
    """The type of the newest module of a Python class; None without one, and for other values."""
    return MODULES.newest(value) if isinstance(value, type) and is_module_class(value) else None


def used_names(value: Any) -> set[str]:
    """The global names that the code of a Python function or class uses; none for other values."""
    if isinstance(value, type):
        bases = [base for base in value.__mro__ if not base.__module__.startswith("engine.")]
        members = [_function_of(member) for base in bases if is_module_class(base) for member in vars(base).values()]
        return set().union(*map(used_names, members))
    return _names_in(value.__code__) if inspect.isfunction(value) else set()


def _names_in(code: CodeType) -> set[str]:
    return {*code.co_names}.union(*(_names_in(each) for each in code.co_consts if isinstance(each, CodeType)))


def _function_of(member: Any) -> Any:
    """The function of a static or class method, or of a property; other members as they are."""
    return getattr(member, "__func__", None) or getattr(member, "fget", None) or member


def forget(value: Any) -> None:
    """Compile a function or class of Python, or later modules of a class, anew: what they use has changed."""
    if isinstance(value, type) and is_module_class(value):
        MODULES.forget(value)
    else:
        PYTHON.forget(value)


def reachable(values: Iterable[Any]) -> list[Any]:
    """The functions and classes of Python that the values stand for and that their code uses, directly or not; those of
    the engine and of packages are left out, as they stay what they are."""
    waiting, found = [*values], dict[int, Any]()
    while waiting:
        each = waiting.pop()
        if isinstance(each, ModuleType):
            waiting += [] if is_installed(each) else _members(each)
        elif (inspect.isfunction(each) or isinstance(each, type)) and id(each) not in found and not _is_installed(each):
            found[id(each)] = each
            waiting += _used(each)
    return [*found.values()]


def _members(module: ModuleType) -> list[Any]:
    """The functions and classes that were written in the module."""
    own = (each for each in vars(module).values() if inspect.isfunction(each) or isinstance(each, type))
    return [each for each in own if each.__module__ == module.__name__]


def _used(value: Any) -> list[Any]:
    """The objects that the names in the code of a function or class mean."""
    functions = [value] if inspect.isfunction(value) else _functions_of(value)
    return [each.__globals__[name] for each in functions for name in used_names(each) if name in each.__globals__]


def _functions_of(kind: type) -> list[Any]:
    return [each for each in map(_function_of, vars(kind).values()) if inspect.isfunction(each)]


def code_of(value: Any) -> tuple[CodeType, ...]:
    """The code that a value of Python has now, with that of all it uses: tools change functions and classes in place,
    as IPython's autoreload does, so that one object has other code."""
    kinds = reachable([value])
    functions = (each for kind in kinds for each in ([kind] if inspect.isfunction(kind) else _functions_of(kind)))
    return tuple(each.__code__ for each in functions)


def is_same(code: Sequence[CodeType], other: Sequence[CodeType]) -> bool:
    """True if it is the same code, and not another like it: what is loaded again is compiled again."""
    return len(code) == len(other) and all(map(operator.is_, code, other))


def is_installed(module: ModuleType) -> bool:
    """True for modules that are not the user's: of the engine, of Python and of packages."""
    place = getattr(module, "__file__", None) or _NOWHERE
    is_engine = module.__name__.partition(".")[0] == "engine"
    return is_engine or place == _NOWHERE or any(folder in place for folder in _INSTALLED) or place.startswith(_STDLIB)


_NOWHERE: Final = ""
_INSTALLED: Final = ("site-packages", "dist-packages")
_STDLIB: Final = os.path.dirname(os.__file__)


def _is_installed(value: Any) -> bool:
    module = sys.modules.get(value.__module__)
    return module is not None and value.__module__ != "__main__" and is_installed(module)


def outside_function(objects: Mapping[str, Any], name: str) -> Function | None:
    """The compiled function of that name; None if there is none.  Raises CompileError, UsageError."""
    found = objects.get(name)
    if isinstance(found, Refusal):
        raise UsageError(found.reason, hints=found.hints)
    if found is None or isinstance(found, type) or not callable(found):
        return None
    function = script(found)._function
    assert isinstance(function, Function)
    return function
