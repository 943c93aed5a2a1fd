"""Records are data classes: each case is made by both decorators, and both answer alike."""

import dataclasses
from typing import Any

import pytest

from engine.lang.records import dataclass


def _point(decorator: Any, **options: Any) -> Any:
    @decorator(**options)
    class Point:
        x: int
        y: Any = 0
        note: str = dataclasses.field(default="", compare=False)
        hidden: int = dataclasses.field(default=0, repr=False)

    return Point


OPTIONS = [{}, {"frozen": True}, {"frozen": True, "slots": True}, {"slots": True}, {"eq": False}, {"repr": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_same_answers_as_the_standard_library(options: dict[str, bool]) -> None:
    answers = []
    for decorator in (dataclass, dataclasses.dataclass):
        point = _point(decorator, **options)
        first, second, other = point(1, [2]), point(1, [2], note="other"), point(1, 3)
        frozen = options.get("frozen", False)
        text = repr(first) if options.get("repr", True) else ""
        hashes = hash(point(1, 2)) == hash(point(1, 2)) if frozen else point.__hash__ is None
        answers.append((first == second, first == other, first != other, text, hashes, first == (1, [2])))
        assert dataclasses.replace(first, y=5).y == 5
    assert answers[0] == answers[1]


def test_frozen_records_refuse_writes() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        _point(dataclass, frozen=True, slots=True)(1).x = 2


def test_what_a_class_writes_itself_stays() -> None:
    @dataclass(frozen=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(3))) == ("own", True, 7)


def test_inherited_fields_count() -> None:
    @dataclass(frozen=True, slots=True)
    class Base:
        x: int

    @dataclass(frozen=True, slots=True)
    class Wide(Base):
        y: int

    assert Wide(1, 2) != Wide(3, 2)
    assert repr(Wide(1, 2)).endswith("Wide(x=1, y=2)")


def test_a_record_within_itself_prints() -> None:
    point = _point(dataclass)
    loop = point(1)
    loop.y = loop
    assert "..." in repr(loop)
