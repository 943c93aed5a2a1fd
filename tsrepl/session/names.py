"""Resolution of names at the prompt and in definitions.

In: a name.  Out: what the compiler needs: functions and classes of the session, and at the prompt operators without
their `torch.`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch import table
from engine.frontend.names.resolve import TextResolver
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction
from engine.ir.unit import CompilationUnit
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import Type

if TYPE_CHECKING:
    from tsrepl.session import outside as outsiders
else:
    outsiders = deferred("tsrepl.session.outside")


STANDARD: Final[Mapping[str, str]] = {"nn": "torch.nn", "F": "torch.nn.functional"}
"""Names that need no import, and the paths that they stand for."""


def no_longer_compiles(name: str, reason: str, range: SourceRange | None = None) -> CompileError:
    """The error for a use of a definition that does not fit what it uses any more."""
    return CompileError(f"{name} no longer compiles: {reason}", range, hints=(f"define {name} again",))


class SessionResolver(TextResolver):
    """Names that the session defines; `broken` holds the reason why some cannot be used any more.

    `outside` are objects of the door's own language, which definitions of the session hide; `imports` the paths that
    names stand for.
    """

    def __init__(
        self, unit: CompilationUnit, broken: Mapping[str, str], outside: Mapping[str, Any], imports: Mapping[str, str]
    ) -> None:
        super().__init__(unit)
        self.broken, self.imports = broken, imports
        self.outside = outsiders.OutsideResolver(outside) if outside else None

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        if name in self.broken:
            raise no_longer_compiles(name, self.broken[name], range)
        own = name in self.unit.functions or name in self.unit.types
        found = None if own or self.outside is None else self.outside.resolve_value(b, name, range)
        if found is None and not own and name in self.imports:
            return self._imported(b, name, range)
        return found or super().resolve_value(b, name, range)

    def _imported(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        first, *rest = self.imports[name].split(".")
        found = super().resolve_value(b, first, range)
        for part in rest:
            found = found.attr(b, part, range) if found is not None else None
        return found

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        found = super().resolve_type(name, range)
        return found or (self.outside.resolve_type(name, range) if self.outside is not None else None)

    def names(self) -> Iterable[str]:
        return [*super().names(), *self.imports, *(self.outside.names() if self.outside is not None else ())]


class PromptResolver(SessionResolver):
    """Names of an entry.  `types` are the annotations of its parameters, `variables` those of the session."""

    def __init__(
        self,
        unit: CompilationUnit,
        broken: Mapping[str, str],
        outside: Mapping[str, Any],
        imports: Mapping[str, str],
        types: Mapping[str, Type],
        variables: Iterable[str],
    ) -> None:
        super().__init__(unit, broken, outside, imports)
        self.types, self.variables = types, variables

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = super().resolve_value(b, name, range)
        if found is None and table.overloads(f"aten::{name}"):
            return BuiltinFunction(f"aten::{name}")
        return found

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.types.get(name) or super().resolve_type(name, range)

    def names(self) -> Iterable[str]:
        operators = (name.rpartition("::")[2] for name in table.names())
        return [*super().names(), *self.variables, *(name for name in operators if name[0] != "_")]


class DefinitionResolver(SessionResolver):
    """Names of a definition, which does not see the session's variables."""

    def __init__(
        self,
        unit: CompilationUnit,
        broken: Mapping[str, str],
        outside: Mapping[str, Any],
        imports: Mapping[str, str],
        variables: Container[str],
    ) -> None:
        super().__init__(unit, broken, outside, imports)
        self.variables = variables

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = super().resolve_value(b, name, range)
        if found is None and name in self.variables:
            hint = f"'{name}' is a variable of the session; a function sees its parameters only, so make it one"
            raise CompileError(f"undefined value {name}", range, hints=(hint,))
        return found
