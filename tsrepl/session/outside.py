"""Names that a door offers from outside the session: functions, classes, enums and modules of a notebook's Python.

In: Python objects by name.  Out: their meaning in entries and definitions, which is the one that programs written in
Python give them.  A `Refusal` stands for what no program can use, and says why.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import CodeType
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
    """Compile a function of Python, or later modules of a class, anew: what they use has changed."""
    if isinstance(value, type):
        MODULES.forget(value)
    else:
        PYTHON.forget(value)


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
