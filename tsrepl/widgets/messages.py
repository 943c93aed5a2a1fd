"""The messages that front ends send: a dataclass each, checked on arrival.

In: the plain data of a message.  Out: the message, or `Refused` with the reason.  A front end may be anything that
holds the notebook's page, so nothing is taken for granted about what it sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, get_type_hints

from engine.lang.records import dataclass


class Refused(Exception):
    """A message that is not one of those a view knows, or holds what it should not."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Open or fold a box of a picture."""

    key: str
    open: bool


@dataclass(frozen=True, slots=True)
class Find:
    """The boxes that contain a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Reveal:
    """Open all boxes around one."""

    key: str


@dataclass(frozen=True, slots=True)
class Inspect:
    """The facts about a box."""

    key: str


@dataclass(frozen=True, slots=True)
class Value:
    """The facts about a value of a graph, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Show:
    """A step of a row of steps, `before` or after it: a pass, or an instruction of a trace."""

    step: int
    before: bool


@dataclass(frozen=True, slots=True)
class Look:
    """A value that an instruction of a trace read or wrote, by its number there."""

    step: int
    slot: int


@dataclass(frozen=True, slots=True)
class Children:
    """The parts of a module, by its path."""

    path: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A text of a kernel, by the numbers of both."""

    number: int
    text: int


@dataclass(frozen=True, slots=True)
class Command:
    """A line for the debugger."""

    line: str


Message = Fold | Find | Reveal | Inspect | Value | Show | Look | Children | Kernel | Command
LONGEST: Final = 10_000
"""Characters of a text in a message."""


def message_of(content: object, known: Sequence[type[Any]]) -> Any:
    """The message, one of the classes known.  Raises Refused."""
    if not isinstance(content, Mapping):
        raise Refused("a message is an object")
    kind = content.get("kind")
    found = next((each for each in known if each.__name__.lower() == kind), None)
    if found is None:
        raise Refused(f"unknown message: {str(kind)[:40]}")
    given = {name: value for name, value in content.items() if name not in ("kind", "id")}
    if given.keys() != {field.name for field in fields(found)}:
        raise Refused(f"{kind} has other fields")
    for name, type in get_type_hints(found).items():
        value = given[name]
        if value.__class__ is not type or (isinstance(value, str) and len(value) > LONGEST):
            raise Refused(f"{kind}.{name} is no {type.__name__}")
    return found(**given)
