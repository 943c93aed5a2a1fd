"""Resolution of names at the prompt and in definitions.

In: a name.  Out: what the compiler needs: functions and classes of the session, and at the prompt operators without
their `torch.`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.aten.dispatch import table
from engine.frontend.names.resolve import TextResolver
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction
from engine.ir.unit import CompilationUnit
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import Type
from tsrepl.session import python_torch

if TYPE_CHECKING:
    from tsrepl.session import outside as outsiders
else:
    outsiders = deferred("tsrepl.session.outside")


STANDARD: Final[Mapping[str, str]] = {"nn": "torch.nn", "F": "torch.nn.functional"}
"""Names that need no import, and the paths that they stand for."""


def no_longer_compiles(name: str, reason: str, range: SourceRange | None = None) -> CompileError:
    """The error for a use of a definition that does not fit what it uses any more."""
    return CompileError(f"{name} no longer compiles: {reason}", range, hints=(f"define {name} again",))


class KnownNames(Protocol):
    """The names of a session: `broken` holds the reason why some cannot be used any more.

    `outside` are objects of the door's own language, which definitions of the session hide; `imports` the paths that
    names stand for; `refused` the texts with definitions that did not compile.
    """

    unit: CompilationUnit
    broken: dict[str, str]
    outside: dict[str, Any]
    imports: dict[str, str]
    refused: dict[str, str]


class SessionResolver(TextResolver):
    """Names that the session defines, imports or has from outside."""

    def __init__(self, known: KnownNames) -> None:
        super().__init__(known.unit, torch=python_torch.PromptTorch())
        self.known = known
        self.outside = outsiders.OutsideResolver(known.outside) if known.outside else None

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        if name in self.known.broken:
            raise no_longer_compiles(name, self.known.broken[name], range)
        own = name in self.unit.functions or name in self.unit.types
        found = None if own or self.outside is None else self.outside.resolve_value(b, name, range)
        if found is None and not own and name in self.known.imports:
            return self._imported(b, name, range)
        return found or super().resolve_value(b, name, range)

    def refuse(self, name: str, range: SourceRange) -> None:
        """Raise CompileError for a name whose definition did not compile."""
        if name in self.known.refused:
            place = self.known.refused[name].strip("<>")
            raise CompileError(
                f"undefined value {name}", range, hints=(f"its definition in {place} did not compile; define it again",)
            )

    def _imported(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        first, *rest = self.known.imports[name].split(".")
        found = super().resolve_value(b, first, range)
        for part in rest:
            found = found.attr(b, part, range) if found is not None else None
        return found

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        found = super().resolve_type(name, range)
        return found or (self.outside.resolve_type(name, range) if self.outside is not None else None)

    def names(self) -> Iterable[str]:
        return [*super().names(), *self.known.imports, *(self.outside.names() if self.outside is not None else ())]


class PromptResolver(SessionResolver):
    """Names of an entry.  `types` are the annotations of its parameters, `variables` those of the session."""

    def __init__(self, known: KnownNames, types: Mapping[str, Type], variables: Iterable[str]) -> None:
        super().__init__(known)
        self.types, self.variables = types, variables

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = super().resolve_value(b, name, range)
        if found is None and table.overloads(f"aten::{name}"):
            return BuiltinFunction(f"aten::{name}")
        if found is None:
            self.refuse(name, range)
        return found

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.types.get(name) or super().resolve_type(name, range)

    def names(self) -> Iterable[str]:
        operators = (name.rpartition("::")[2] for name in table.names())
        return [*super().names(), *self.variables, *(name for name in operators if name[0] != "_")]


class DefinitionResolver(SessionResolver):
    """Names of a definition, which does not see the session's variables."""

    def __init__(self, known: KnownNames, variables: Container[str]) -> None:
        super().__init__(known)
        self.variables = variables

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = super().resolve_value(b, name, range)
        if found is None and name in self.variables:
            hint = f"'{name}' is a variable of the session; a function sees its parameters only, so make it one"
            raise CompileError(f"undefined value {name}", range, hints=(hint,))
        if found is None:
            self.refuse(name, range)
        return found
