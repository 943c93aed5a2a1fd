"""Records are data classes: each case is made by both decorators, and both answer alike."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from engine.lang.records import FEW, dataclass


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


def _written(decorator: Any, **options: Any) -> Any:
    @decorator(**options)
    class Written:
        x: int
        made: list[int] = dataclasses.field(default_factory=list)
        kept: dict[str, int] = dataclasses.field(init=False, default_factory=dict)
        late: int = dataclasses.field(init=False, default=4)
        sum: int = dataclasses.field(init=False)
        named: str = dataclasses.field(default="n", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + len(self.made))

    return Written


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"kw_only": True}, {"frozen": True, "slots": True}], ids=str)
def test_fields_are_filled_as_the_standard_library_fills_them(options: dict[str, bool]) -> None:
    answers = []
    for decorator in (dataclass, dataclasses.dataclass):
        made = _written(decorator, **options)
        objects = made(x=1), made(x=1, made=[2, 3], named="m"), made(x=2)
        assert objects[0].made is not objects[2].made
        signature = [(each.name, each.kind) for each in inspect.signature(made).parameters.values()]
        answers.append(([dataclasses.astuple(each) for each in objects], signature, made.__match_args__))
        with pytest.raises(TypeError):
            made()
    assert answers[0] == answers[1]


@dataclass(frozen=True, slots=True)
class Kept:
    x: int
    y: list[int]


def test_copies_and_pickles_of_frozen_records() -> None:
    kept = Kept(1, [2])
    for copied in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert copied == kept
    assert copy.deepcopy(kept).y is not kept.y


def test_methods_are_written_with_their_first_call() -> None:
    point = _point(dataclass)
    before = dict(vars(point))
    first, second = point(1), point(1)
    after = dict(vars(point))
    assert {name for name in after if after[name] is not before.get(name)} == {"__dataclass_fields__", "__match_args__"}
    assert first == second
    assert inspect.isfunction(vars(point)["__eq__"])
    assert after["__init__"] is vars(point)["__init__"]


def test_init_is_written_once_there_were_some_objects() -> None:
    point = _point(dataclass)
    objects = [point(1) for _ in range(FEW + 1)]
    assert inspect.isfunction(vars(point)["__init__"])
    assert objects[0] == objects[-1]


WRONG = [((), {}), ((1, 2, "n", 4, 5), {}), ((1,), {"x": 2}), ((1,), {"w": 2})]


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_the_first_objects_are_refused_in_the_same_words(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, named = given
    refusals = []
    for decorator in (dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError) as refused:
            _point(decorator)(*args, **named)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]


def test_a_data_class_may_be_derived_from_a_record() -> None:
    @dataclasses.dataclass
    class Far(_point(dataclass)):  # type: ignore[misc]
        z: int = 3

    assert [each.name for each in dataclasses.fields(Far)] == ["x", "y", "note", "hidden", "z"]
    assert (Far(1).x, Far(1, z=4).z) == (1, 4)


def test_subclasses_share_what_was_written() -> None:
    class Near(_point(dataclass)):  # type: ignore[misc]
        def __init__(self, x: int) -> None:
            super().__init__(x, y=7)

    assert (Near(3).x, Near(3).y) == (3, 7)
    assert repr(Near(3)).endswith("Near(x=3, y=7, note='')")


@pytest.mark.parametrize("default", [[], {}, set()], ids=repr)
@pytest.mark.parametrize("is_described", [False, True])
def test_defaults_that_objects_would_share_are_refused_in_the_same_words(default: Any, is_described: bool) -> None:
    refusals = []
    for decorator in (dataclass, dataclasses.dataclass):
        with pytest.raises(ValueError, match="mutable default") as refused:

            @decorator
            class Shared:
                x: Any = dataclasses.field(default=default) if is_described else default

        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
