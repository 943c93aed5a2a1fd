"""The names that are defined at one point of a program.

In: assignments, in the order they are compiled.  Out: an `Environment` for each block: the variables
whose value is first-class (their type; the value itself goes through `prim::Store` and `prim::Load`) and
the names that stand for another sugared value, like a module.  An inner block sees the names of outer ones.
"""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from engine.frontend.sugared.sugared_value import SugaredValue
from engine.ir.graph import Block
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import Type


class Variable(NamedTuple):
    """A first-class variable: its type, and the name it is stored under."""

    type: Type
    stored: str


@dataclass(eq=False, slots=True)
class Environment:
    """The names that one block defines; `outer` is the environment around it.

    `errors` has the reasons why a variable that only a branch set cannot be used after it.  A variable is
    stored under its name and `suffix`, which keeps the variables of a comprehension apart.
    """

    block: Block
    outer: Environment | None = None
    suffix: str = ""
    types: dict[str, Type] = field(default_factory=dict)
    sugared: dict[str, SugaredValue] = field(default_factory=dict)
    errors: dict[str, tuple[str, SourceRange]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def find(self, name: str) -> Variable | SugaredValue | None:
        """The variable, or other sugared value, of the name, here or in an outer block."""
        frame: Environment | None = self
        while frame is not None:
            if name in frame.removed:
                return None
            if name in frame.types:
                return Variable(frame.types[name], name + frame.suffix)
            if name in frame.sugared:
                return frame.sugared[name]
            frame = frame.outer
        return None

    def find_outside(self, name: str) -> Variable | SugaredValue | None:
        """The meaning of the name in the blocks around this one."""
        return self.outer.find(name) if self.outer is not None else None

    def error(self, name: str) -> tuple[str, SourceRange] | None:
        """The reason why the variable cannot be used, with its range, if there is one."""
        frame: Environment | None = self
        while frame is not None:
            if name in frame.errors:
                return frame.errors[name]
            frame = frame.outer
        return None

    def define(self, name: str, type: Type) -> None:
        """Make `name` a variable of that type in this block."""
        self.removed.discard(name)
        self.sugared.pop(name, None)
        self.types[name] = type

    def define_sugared(self, name: str, value: SugaredValue) -> None:
        """Give `name` a sugared value that is not first-class."""
        self.removed.discard(name)
        self.types.pop(name, None)
        self.sugared[name] = value

    def remove(self, name: str) -> None:
        """Forget the name, as `del` does; one of an outer block is hidden from here on."""
        self.types.pop(name, None)
        self.sugared.pop(name, None)
        self.removed.add(name)

    def remove_with(self, inner: Environment) -> None:
        """Forget what a block that may have run has forgotten."""
        for name in inner.removed:
            self.remove(name)

    def names(self) -> list[str]:
        """Every name that can be used here, for suggestions."""
        found: dict[str, None] = {}
        frame: Environment | None = self
        while frame is not None:
            found.update(dict.fromkeys(name for name in (*frame.types, *frame.sugared) if name.isidentifier()))
            frame = frame.outer
        return list(found)
