"""The text of a Python function under construction: its lines, and the names of values and objects in them.

In: values of a graph as they get variables, objects that the text names, lines.  Out: lines with the node each belongs
to, and the environment in which the text is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass

_WORD: Final = pattern_of(r"\w+")


@dataclass(eq=False, slots=True)
class FunctionBuilder:
    """Lines of a generated function, and the variables of values: `v3`, or `a3` for the bare array of a tensor."""

    environment: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    """The node of each line."""
    names: dict[Value, str] = field(default_factory=dict)
    arrays: dict[Value, str] = field(default_factory=dict)
    moved: dict[Value, str] = field(default_factory=dict)
    """Values -> expressions that are written where the value is used (see Note [Moved expressions])."""
    bound: dict[Any, str] = field(default_factory=dict)
    count: int = 0
    indent: int = 0

    def line(self, text: str, node: Node | None = None) -> None:
        self.lines.append("    " * self.indent + text)
        self.nodes.append(node)

    def define(self, value: Value, prefix: str = "v") -> str:
        name = f"{prefix}{self.count}"
        self.count += 1
        (self.names if prefix == "v" else self.arrays)[value] = name
        return name

    def bind(self, what: str, thing: Any) -> str:
        """The name of an object in the environment; the same object gets the same name."""
        key = (thing.dtype, thing.tobytes()) if isinstance(thing, np.ndarray) and what == "constant" else id(thing)
        if key not in self.bound:
            self.bound[key] = name = f"{what}_{len(self.bound)}"
            self.environment[name] = thing
        return self.bound[key]

    def value(self, value: Value) -> str:
        """An expression for the value, in parentheses where it is more than a name."""
        if value in self.moved:
            return f"({self.moved[value]})"
        constant = constant_value(value)
        if constant is NOT_CONSTANT:
            return self.names[value]
        if constant is None or type(constant) in (bool, str):
            return repr(constant)
        if type(constant) is int or (type(constant) is float and constant - constant == 0):
            return repr(constant) if not repr(constant).startswith("-") else f"({constant!r})"
        return self.bind("constant", constant)

    def array(self, value: Value) -> str:
        return self.arrays[value] if value in self.arrays else f"{self.value(value)}.array"

    def assign(self, targets: Sequence[str], sources: Sequence[str], node: Node) -> None:
        """Assign sources to targets simultaneously; in separate lines where no target is read after it is written."""
        pairs = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        written: set[str] = set()
        in_order = True
        for target, source in pairs:
            in_order &= written.isdisjoint(_WORD.findall(source))
            written.add(target)
        if in_order:
            for target, source in pairs:
                self.line(f"{target} = {source}", node)
        else:
            self.line(f"{', '.join(t for t, _ in pairs)} = {', '.join(s for _, s in pairs)}", node)
