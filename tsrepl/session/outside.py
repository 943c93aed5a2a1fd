"""Names that a door offers from outside the session: functions, classes, enums and modules of a notebook's Python.

In: Python objects by name.  Out: their meaning in entries and definitions, which is the one that programs written in
Python give them.  A `Refusal` stands for what no program can use, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.frontend.python.resolver import PythonResolver
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import Type
from engine.torch.jit.scripting.python_program import PYTHON
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
