"""What conditions tell about types, joined and negated."""

from __future__ import annotations

import pytest

from engine.frontend.emit.refine import Refinements, can_be_none, without_none
from engine.lang.schema_parser import parse_type
from engine.lang.types import INT, STR

X_INT = Refinements({"x": INT}, {"x": STR})
Y_INT = Refinements({"y": INT}, {"y": STR})


def test_not_turns_it_around() -> None:
    assert X_INT.negated() == Refinements({"x": STR}, {"x": INT})
    assert X_INT.negated().negated() == X_INT


def test_and_knows_both_where_it_holds() -> None:
    assert X_INT.both(Y_INT) == Refinements({"x": INT, "y": INT}, {})
    assert list(X_INT.both(Y_INT).true) == ["x", "y"]


def test_or_knows_both_where_it_does_not_hold() -> None:
    assert X_INT.either(Y_INT) == Refinements({}, {"x": STR, "y": STR})


def test_what_both_sides_tell_is_known_either_way() -> None:
    assert X_INT.either(X_INT) == X_INT
    assert X_INT.both(X_INT.negated()).true == {"x": INT}, "the first test came first"


@pytest.mark.parametrize(
    ("type", "rest", "none"),
    [
        ("int", None, False),
        ("NoneType", None, True),
        ("int?", "int", None),
        ("Any", None, False),
        ("Union(int, str, NoneType)", "Union(int, str)", None),
    ],
)
def test_none(type: str, rest: str | None, none: bool | None) -> None:
    found = without_none(parse_type(type))
    assert (None if found is None else str(found)) == rest
    assert can_be_none(parse_type(type)) is none
