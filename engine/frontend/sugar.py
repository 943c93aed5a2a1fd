"""Sugared values: what a name or expression stands for while compiling.

In: expressions like `torch`, `self.weight` or `x.size`, most of which have no value in the graph.  Out:
objects that know what attribute access, a call, iteration or unpacking makes of them.  The kinds are in
`values`, `iterables`, `classes` and `namespaces`; what a kind does not define is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.frontend.advice import as_value
from engine.frontend.builder import Builder
from engine.frontend.schema_match import Actual
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import Type


class SugaredValue:
    """Anything an expression can stand for.  Every verb raises CompileError unless a kind defines it."""

    __slots__ = ()
    kind: ClassVar[str] = "value"

    def describe(self) -> str:
        """How error messages call this value."""
        return self.kind

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        """As a first-class value."""
        raise CompileError(f"{self.describe()} cannot be used as a value", range, hints=as_value(self.kind))

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        raise CompileError(f"attribute lookup is not defined on {self.describe()}", range)

    def set_attr(self, b: Builder, name: str, value: Value, range: SourceRange) -> None:
        raise CompileError(f"attribute assignment is not defined on {self.describe()}", range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        raise CompileError(f"cannot call a {self.describe()}", range)

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        """The parts, for unpacking into `size` names (None: any number)."""
        raise CompileError(f"{self.describe()} cannot be used as a tuple", range)

    def iterate(self, b: Builder, range: SourceRange) -> Iterable:
        """What a loop over this goes through."""
        raise CompileError(f"{self.describe()} cannot be used as an iterable", range)

    def item(self, b: Builder, index: Value, hint: Type | None, range: SourceRange) -> SugaredValue:
        """`self[index]` for an index that is one value."""
        raise CompileError(f"'{self.describe()}' object is not subscriptable", range)


class Iterable(SugaredValue):
    """Something that a loop goes through: it has a length, and an item for every index.

    `static_length` is the length where it is known while compiling; a loop over parts of different
    types is unrolled then.
    """

    __slots__ = ()
    static_length: int | None = None

    def length(self, b: Builder, range: SourceRange) -> Value:
        raise NotImplementedError

    def element(self, b: Builder, index: Value, range: SourceRange) -> SugaredValue:
        """The item number `index`."""
        raise NotImplementedError

    def static_element(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        """The item number `index` of an unrolled loop."""
        raise NotImplementedError

    def base_iterables(self) -> list[Iterable]:
        """Those whose lengths bound the loop."""
        return [self]

    def iterate(self, b: Builder, range: SourceRange) -> Iterable:
        return self
