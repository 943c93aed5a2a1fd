"""Dataclasses as script classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

import engine
from engine.lang.errors import NotSupportedError


@dataclass
class Pair:
    a: int
    b: float = 2.0

    def total(self) -> float:
        return self.a + self.b


@dataclass
class Made:
    parts: list[int] = field(default_factory=list)


def uses_pair(n: int) -> float:
    pair = Pair(n)
    if pair == Pair(3, 2.0):
        return -1.0
    return pair.total()


def uses_made() -> int:
    return len(Made().parts)


def test_the_methods_that_python_makes_are_there() -> None:
    function = engine.script(uses_pair)
    assert [function(n) for n in (1, 3)] == [uses_pair(1), uses_pair(3)]


def test_defaults_made_by_functions_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="Default factory initializers are not supported"):
        engine.script(uses_made)
