"""Dataclasses as script classes."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Optional

import pytest

import engine
from engine.lang.errors import CompileError, NotSupportedError


@engine.script
@dataclass
class Pair:
    a: int
    b: float = 2.0

    def total(self) -> float:
        return self.a + self.b


@engine.script
@dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    note: Optional[str] = field(default=None, compare=False)  # noqa: UP045


@engine.script
@dataclass
class Maybe:
    value: Optional[int] = None  # noqa: UP045


@dataclass
class Scaled:
    value: int
    by: InitVar[int] = 3

    def __post_init__(self, by: int) -> None:
        self.value = self.value * by


@dataclass
class Made:
    parts: list[int] = field(default_factory=list)


@dataclass
class Late:
    a: int

    def __post_init__(self) -> None:
        self.b = self.a


def uses_pair(n: int) -> float:
    pair = Pair(n)
    if pair == Pair(3, 2.0):
        return -1.0
    return pair.total()


def compares(a: int, b: int) -> list[bool]:
    one, two = Version(a, 5), Version(b)
    return [one < two, one <= two, one > two, one >= two, one == two, one == Version(a, 5, "other")]


def compares_nothing(a: Optional[int], b: Optional[int]) -> bool:  # noqa: UP045
    return Maybe(a) == Maybe(b)


def uses_scaled(n: int) -> list[int]:
    return [Scaled(n).value, Scaled(n, 5).value]


def test_the_methods_that_python_makes_are_there() -> None:
    function = engine.script(uses_pair)
    assert [function(n) for n in (1, 3)] == [uses_pair(1), uses_pair(3)]


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 1), (1, 1)])
def test_an_order_compares_field_by_field(a: int, b: int) -> None:
    assert engine.script(compares)(a, b) == compares(a, b)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (1, None), (None, None)])
def test_fields_may_be_none(a: int | None, b: int | None) -> None:
    assert engine.script(compares_nothing)(a, b) == compares_nothing(a, b)


def test_what_only_init_takes_goes_on_to_post_init() -> None:
    engine.script(Scaled)
    assert engine.script(uses_scaled)(2) == uses_scaled(2)


def test_defaults_made_by_functions_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="Default factory initializers are not supported"):
        engine.script(Made)


def test_post_init_adds_no_attributes() -> None:
    with pytest.raises(CompileError, match="Tried to set nonexistent attribute: b"):
        engine.script(Late)
