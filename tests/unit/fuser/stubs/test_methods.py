"""Methods that call functions get all arguments, whatever way they are called."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from engine.fuser.stubs import method_code, methods


class Thing:
    """A class whose methods are to be made."""

    def __init__(self, *given: Any) -> None:
        self.given = given


def noted(self: Thing, /, *args: Any, **named: Any) -> Any:
    return self, args, named


def made(name: str, function: Callable[..., Any] = noted) -> type[Thing]:
    kind = type("Made", (Thing,), {})
    setattr(kind, name, methods.method(kind, name, function, "Notes.").descriptor)
    return kind


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 200])
@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
def test_arguments(count: int, names: tuple[str, ...]) -> None:
    kind = made("note")
    thing: Any = kind()
    args, named = tuple(range(count)), {name: object() for name in names}
    expected = (thing, args, named)
    assert thing.note(*args, **named) == expected
    assert kind.note(thing, *args, **named) == expected  # type: ignore[attr-defined]
    bound = thing.note
    assert bound(*args, **named) == expected
    assert thing.note.__call__(*args, **named) == expected


def test_operators_find_methods() -> None:
    kind = made("__add__")
    thing: Any = kind()
    assert thing + 3 == (thing, (3,), {})


def test_it_is_a_method_descriptor() -> None:
    kind = made("note")
    assert inspect.ismethoddescriptor(vars(kind)["note"]) and vars(kind)["note"].__doc__ == "Notes."
    with pytest.raises(TypeError, match="note"):
        kind.note(3)  # type: ignore[attr-defined]


def test_errors_pass() -> None:
    def refuse(self: Any, *_: Any) -> Any:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        made("note", refuse)().note(1)  # type: ignore[attr-defined]


def test_each_calls_its_own() -> None:
    kinds = [made("note", lambda self, i=i: i) for i in range(2 * methods.SUPPLY + 3)]
    assert [kind().note() for kind in kinds] == [*range(len(kinds))]  # type: ignore[attr-defined]


def test_references_are_counted_exactly() -> None:
    kind = made("note", lambda self, *args, **named: None)
    thing: Any = kind()
    value = object()
    before = sys.getrefcount(value), sys.getrefcount(thing)
    for _ in range(1000):
        thing.note(value)
        thing.note(value, a=value)
    assert (sys.getrefcount(value), sys.getrefcount(thing)) == before


def test_nothing_is_an_address() -> None:
    assert "inttoptr" not in str(method_code.module())
