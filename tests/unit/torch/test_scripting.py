"""Python classes on their way through programs."""

import enum
from typing import NamedTuple

import engine


class Point(NamedTuple):
    x: int
    y: float = 1.5


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def moved(p: Point) -> Point:
    return Point(p.x + 1, p.y)


def other(c: Color) -> Color:
    if c == Color.RED:
        return Color.BLUE
    return Color.RED


def test_named_tuples_come_back_as_their_own_class() -> None:
    result = engine.script(moved)(Point(1, 2.0))
    assert type(result) is Point
    assert result == Point(2, 2.0)
    assert engine.script(moved)((1, 2)) == Point(2, 2.0)


def test_enum_members_come_back_as_themselves() -> None:
    assert engine.script(other)(Color.RED) is Color.BLUE


def test_a_function_is_compiled_once() -> None:
    assert engine.script(moved).graph is engine.script(moved).graph
    assert engine.script(moved).qualified_name.startswith("__torch__.")
