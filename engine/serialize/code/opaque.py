"""Unknown operators: calls of them in archived code stay in the graph as they are.

In: a call of `ops.mylib.fancy(x, 2)`.  Out: a node `mylib::fancy` that passes, printers and archives carry along, and
that names itself when it runs.  What it gives is taken for a tensor, or for as many tensors as it is unpacked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.aten.dispatch import table
from engine.frontend.matching.schema_match import Actual
from engine.frontend.names.namespaces import OperatorNamespace
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, UnknownResult
from engine.ir.graph import Node
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import EngineError, MissingOperatorError
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR

if TYPE_CHECKING:
    from engine.lang import missing_operators
else:
    missing_operators = deferred("engine.lang.missing_operators")

KEYWORDS: Final = "keywords"
"""The attribute of a node of an unknown operator that names its last arguments."""

_WRITTEN_ELSEWHERE: Final = ("prim", "torch")
"""Namespaces whose names may be no rows of the operator table and still mean something."""


def is_opaque(node: Node) -> bool:
    """True if the node calls an operator that is not in the table."""
    namespace = node.kind.partition("::")[0]
    return namespace not in _WRITTEN_ELSEWHERE and not table.overloads(node.kind)


class OpaqueCalls:
    """Makes the values that unknown operators of one archive stand for, and keeps their names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def operator(self, name: str) -> SugaredValue:
        self.names.append(name)
        return OpaqueOperator(name)

    def or_opaque(self, b: Builder, found: SugaredValue) -> SugaredValue:
        """`found`, or in place of an operator that there is not, one that stays opaque."""
        first = table.first_name(found.name) if isinstance(found, BuiltinFunction) else ""
        if not isinstance(found, BuiltinFunction) or first != found.name or table.overloads(first):
            return found
        return found if b.written(found.name) else self.operator(found.name)


class ArchivedNamespace(OperatorNamespace):
    """`ops` in archived code: `ops.mylib.fancy`, known or not."""

    __slots__ = ("_calls",)

    def __init__(self, calls: OpaqueCalls, namespace: str = "") -> None:
        super().__init__(namespace)
        self._calls = calls

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if not self.namespace:
            return ArchivedNamespace(self._calls, name)
        found = super().attr(b, name, range)
        return found if self.namespace in _WRITTEN_ELSEWHERE else self._calls.or_opaque(b, found)


class OpaqueOperator(SugaredValue):
    """An operator that is not in the table, to be called."""

    __slots__ = ("name",)
    kind = "builtin"

    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self) -> str:
        return f"unknown operator '{self.name}'"

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        node = b.node(self.name, [actual.value for actual in (*args, *kwargs)], [TENSOR], range)
        if kwargs:
            node.set_attr(KEYWORDS, [actual.name for actual in kwargs])
        return UnknownResult(node.output)


class MissingOperators(MissingOperatorError):
    """A function does not compile because nothing is known of operators that it calls."""


def unusable(function: Function, calls: OpaqueCalls, names: Sequence[str], error: EngineError) -> None:
    """Let a function that does not compile, because nothing is known of these operators, say so whenever it is needed.

    `calls` hears of them each time, since what calls the function does not compile for want of them either.
    """
    names = tuple(names)

    def refuse(_: Function) -> None:
        calls.names.extend(names)
        listed = ", ".join(f"'{name}'" for name in dict.fromkeys(names))
        text = (
            f"'{function.name}' cannot run: it calls {listed}, which is not known here, and needs to know what it gives"
        )
        raise MissingOperators(text, hints=(missing_operators.where_missing_ones_are(names),)) from error

    function.creator = refuse
